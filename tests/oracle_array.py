"""The oracle for whole arrays: the same rules as `oracle_scalar`, on float64 numbers that are all exact.

Every number of a format of up to 16 bits, every midpoint of two neighbouring ones, and everything such a number
rounds to is a float64, so comparing with a sorted codebook involves no rounding. So are the numbers of f32, f64 and
integers of up to 48 bits. What remains, 64-bit integers and wide sources to narrower wide floats, goes through the
scalar oracle, one call per distinct code.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from oracle_formats import Float, Int, codebook, codes, decode, fmt
from oracle_scalar import MODES, Policy, cast, check, defaults, overflow_code

STORAGE = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def storage(name: str) -> type:
    """Return the unsigned dtype that holds one code of the format."""
    return STORAGE[fmt(name).storage]


@cache
def _decoded(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return magnitude, negative, is-inf, is-NaN of every code of a narrow format."""
    values = [decode(code, name) for code in codes(name)]
    magnitude = np.array([float(value.magnitude) for value in values])
    assert all(value.magnitude == number for value, number in zip(values, magnitude.tolist(), strict=True))
    negative = np.array([value.negative for value in values])
    kinds = np.array([value.kind for value in values])
    return magnitude, negative, kinds == "inf", kinds == "nan"


def _taken_apart(all_codes: np.ndarray, src: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return magnitude (0 of infinity and NaN), negative, is-inf, is-NaN of every element, all exact."""
    row = fmt(src)
    if row.bits <= 16:
        magnitude, negative, is_inf, is_nan = (part[all_codes.astype(np.intp)] for part in _decoded(src))
        return magnitude, negative, is_inf, is_nan
    if isinstance(row, Int):
        assert row.bits <= 48
        signed = np.int32 if row.storage == 32 else np.int64
        integers = all_codes.view(signed) if row.low else all_codes
        none = np.zeros(all_codes.shape, dtype=bool)
        return np.abs(integers.astype(np.float64)), integers < 0, none, none
    native = all_codes.view(np.float32 if row.name == "f32" else np.float64)
    finite = np.isfinite(native)
    magnitude = np.abs(np.where(finite, native, 0).astype(np.float64))
    return magnitude, np.signbit(native), np.isinf(native), np.isnan(native)


def _is_exact_in_float64(src: str, dst: str, rule: str) -> bool:
    """Whether a cast compares float64 numbers only and never rounds one (see the head of this file)."""
    source, row = fmt(src), fmt(dst)
    if source.bits <= 16:
        return True
    if isinstance(source, Int) and source.bits > 48:
        return False
    if dst == "e8m0":
        return rule == "onnx" or src == "f32"  # the rule asl squares significands: 24 bits stay exact
    if isinstance(row, Int) or row.bits <= 16:
        return True
    return dst in ("f64", src)  # every such source is a number of the destination


@cache
def _book(name: str) -> tuple[np.ndarray, np.ndarray]:
    numbers, patterns = zip(*codebook(name), strict=True)
    return np.array([float(number) for number in numbers]), np.array(patterns, dtype=np.uint64)


def _choose(low_odd: np.ndarray, side: np.ndarray, exact: np.ndarray, negative: np.ndarray, mode: str) -> np.ndarray:
    """Return where the larger magnitude is taken. `side` is -1, 0, 1: below, at, above the midpoint."""
    up = {
        "rint": (side > 0) | ((side == 0) & low_odd),
        "round": side >= 0,
        "half_up": (side > 0) | ((side == 0) & ~negative),
        "floor": negative,
        "ceil": ~negative,
        "trunc": np.zeros_like(negative),
        "odd": ~low_odd,
    }[mode]
    return up & ~exact


def _to_float(all_codes: np.ndarray, src: str, row: Float, mode: str, overflow: str) -> np.ndarray:
    size, negative, is_inf, is_nan = _taken_apart(all_codes, src)
    beyond_inf = [overflow_code(sign, row, "rint", overflow) for sign in (False, True)]
    beyond = [overflow_code(sign, row, mode, overflow) for sign in (False, True)]
    if row.bits > 16:  # every source that comes here is a number of the wide format: nothing to round
        native = np.float32 if row.name == "f32" else np.float64
        assert np.array_equal(size.astype(native).astype(np.float64), size)
        out = size.astype(native).view(storage(row.name)).astype(np.uint64)
        too_big = np.zeros_like(negative)
    else:
        numbers, patterns = _book(row.name)
        low = np.searchsorted(numbers, size, side="right") - 1
        high = np.minimum(low + 1, len(numbers) - 1)
        middle = numbers[low] + (numbers[high] - numbers[low]) / 2
        odd = (patterns[low] & 1).astype(bool)
        up = _choose(odd, np.sign(size - middle), size == numbers[low], negative, mode)
        index = np.where(up, high, low)
        out = patterns[index]
        too_big = index == len(numbers) - 1
    keep_sign = negative & ((out != 0) | row.negative_zero)
    out = out | np.where(keep_sign, np.uint64(row.sign_code), np.uint64(0))
    out = np.where(too_big, np.where(negative, np.uint64(beyond[1]), np.uint64(beyond[0])), out)
    out = np.where(is_inf, np.where(negative, np.uint64(beyond_inf[1]), np.uint64(beyond_inf[0])), out)
    nan = np.full(out.shape, row.nan or 0, dtype=np.uint64)
    if row.signed_nan and row.nan is not None:
        nan |= np.where(negative, np.uint64(row.sign_code), np.uint64(0))
    return np.where(is_nan, nan, out).astype(storage(row.name))


def _to_int(all_codes: np.ndarray, src: str, row: Int, mode: str, overflow: str) -> np.ndarray:
    size, negative, is_inf, is_nan = _taken_apart(all_codes, src)
    if row.name == "bool":
        return (is_inf | is_nan | (size != 0)).astype(np.uint8)
    low = np.floor(size)
    part = size - low  # exact: both have the fraction bits of `size`
    odd = np.fmod(low, 2.0) == 1
    whole = low + _choose(odd, np.sign(part - 0.5), part == 0, negative, mode)
    mask = np.uint64((1 << (64 if row.name == "i48" else row.bits)) - 1)
    if overflow == "saturate":
        bounds = np.where(negative, float(-row.low), float(row.high + 1))
        top, bottom = np.uint64(row.high), np.uint64(row.low & 0xFFFFFFFFFFFFFFFF)
        too_big = is_inf | (whole >= bounds)
        small = np.where(too_big, 0.0, whole).astype(np.uint64)
        out = np.where(negative, np.uint64(0) - small, small)
        out = np.where(too_big, np.where(negative, bottom, top), out)
    else:
        small = np.fmod(np.where(is_inf, 0.0, whole), 2.0**row.bits).astype(np.uint64)
        out = np.where(negative, np.uint64(0) - small, small)
        if row.name == "i48":  # sign-extend bit 47
            out = out & np.uint64((1 << 48) - 1)
            out = np.where(out >> np.uint64(47), out | np.uint64(0xFFFF << 48), out)
    out = np.where(is_nan, np.uint64(0), out) & mask
    return out.astype(storage(row.name))


def _to_e8m0(all_codes: np.ndarray, src: str, mode: str, overflow: str, rule: str) -> np.ndarray:
    size, negative, is_inf, is_nan = _taken_apart(all_codes, src)
    half_significand, above = np.frexp(size)  # exact: size = half_significand * 2**above, in [1/2, 1)
    significand, exponent = 2 * half_significand, above - 1
    inexact = significand > 1
    if rule == "onnx":
        up = {"up": inexact, "down": np.zeros_like(inexact), "nearest": significand >= 1.5}[mode]
        low = size < 2.0**-127  # zero included
        high = exponent + up > 127
        invalid = is_nan | (negative & (is_inf | (size != 0)))
    else:
        past_middle = significand**2 > 2  # the geometric middle; 22 bits at most
        up = {
            "floor": np.zeros_like(inexact),
            "ceil": inexact,
            "trunc": inexact & (exponent < 0),
            "odd": inexact & (exponent % 2 == 0),
        }.get(mode, past_middle)
        low = exponent < -127
        high = (exponent == 127) & inexact
        invalid = is_nan | negative | (~is_inf & (size == 0))
    saturate = overflow == "saturate"
    out = np.where(low, 0x00 if saturate else 0xFF, exponent + up + 127)
    out = np.where(is_inf | (high & ~low), 0xFE if saturate else 0xFF, out)
    return np.where(invalid, 0xFF, out).astype(np.uint8)


def cast_array(
    source: np.ndarray, src: str, dst: str, rounding: str | None = None, overflow: str | None = None, **policy
) -> np.ndarray:
    """Return the destination codes of an array of source codes; the policy fields are those of the scalar oracle."""
    rules = Policy(**policy)
    rounding, overflow = defaults(src, dst, rounding, overflow, rules)
    row = fmt(dst)
    exact = _is_exact_in_float64(src, dst, rules.e8m0)
    if dst == "e8m0" and exact:
        check(src, dst, rounding, overflow, rules)
        return _to_e8m0(source, src, rounding, overflow, rules.e8m0)
    if policy or not exact or rounding not in MODES:
        return _by_scalar(source, src, dst, rounding, overflow, policy)
    check(src, dst, rounding, overflow)
    if isinstance(row, Int):
        return _to_int(source, src, row, rounding, overflow)
    return _to_float(source, src, row, rounding, overflow)


def _by_scalar(source: np.ndarray, src: str, dst: str, rounding: str, overflow: str, policy: dict) -> np.ndarray:
    distinct, places = np.unique(source, return_inverse=True)
    results = [cast(int(code), src, dst, rounding, overflow, **policy) for code in distinct]
    return np.array(results, dtype=np.uint64).astype(storage(dst))[places].reshape(source.shape)


def is_nan(source: np.ndarray, name: str) -> np.ndarray:
    """Return which codes are NaN."""
    row = fmt(name)
    if isinstance(row, Int):
        return np.zeros(source.shape, dtype=bool)
    if row.bits <= 16:
        return _decoded(name)[3][source.astype(np.intp)]
    low = source.astype(np.uint64) & np.uint64(row.sign_code - 1)
    return low > np.uint64(row.inf)
