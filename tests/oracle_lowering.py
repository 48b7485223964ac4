"""What specifications accept, for whole arrays, from exact arithmetic and the wording: the judge of lowered casts.

Sources: docs/reference/semantics.md sections 1.2 and 3, docs/reference/formats.md section 6. Shares nothing with the
product. An element that equals the nearest result rounded once conforms to every rule here but those that name another
rounding; only the others are judged one by one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import oracle_acceptance
from oracle_array import cast_array, is_nan
from oracle_formats import FLOATS, INTS, decode, fmt

FP8 = ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz")
SMALL_FLOATS = ("e2m1", "e2m3", "e3m2")
SMALL_INTEGERS = ("i2", "u2", "i4", "u4")


def accepted(
    spec: str, src: str, dst: str, attributes: Mapping[str, str], codes: np.ndarray, results: np.ndarray
) -> np.ndarray:
    """Return which results conform; `src` is the format that the codes are read in."""
    if spec == "tosa":
        return _tosa(src, dst, codes, results)
    if spec == "onnx":
        return _onnx(src, dst, attributes, codes, results)
    rounding = attributes.get("rounding", "default")
    overflow = attributes.get("overflow", "default")
    return _same(
        cast_array(
            codes, src, dst, None if rounding == "default" else rounding, None if overflow == "default" else overflow
        ),
        results,
        dst,
    )


def _same(right: np.ndarray, results: np.ndarray, dst: str) -> np.ndarray:
    """Equal codes; any NaN is one."""
    return (right == results) | (is_nan(right, dst) & is_nan(results, dst))


def _tosa(src: str, dst: str, codes: np.ndarray, results: np.ndarray) -> np.ndarray:
    overflow = "special" if dst in FLOATS else "saturate" if src in FLOATS or dst == "bool" else "wrap"
    nearest = cast_array(codes, src, dst, "rint", overflow)
    good = _same(nearest, results, dst)
    if src in FLOATS and dst in INTS and dst != "bool":
        good |= is_nan(codes, src)
    for place in np.flatnonzero(~good):
        good[place] = oracle_acceptance.accepts(int(codes[place]), int(results[place]), src, dst)
    return good


def _onnx(src: str, dst: str, attributes: Mapping[str, str], codes: np.ndarray, results: np.ndarray) -> np.ndarray:
    if dst == "bool":
        values = [decode(int(code), src) for code in codes]
        return results == np.array([value.kind != "finite" or value.magnitude != 0 for value in values])
    if dst in FP8:
        overflow = "saturate" if attributes.get("saturate", "1") == "1" else "special"
        return _same(cast_array(codes, src, dst, "rint", overflow), results, dst)
    if dst in SMALL_FLOATS:
        return _same(cast_array(codes, src, dst, "rint", "saturate"), results, dst) | is_nan(codes, src)
    if dst in FLOATS:
        return _same(cast_array(codes, src, dst, "rint", "special"), results, dst)
    if src in INTS:
        return cast_array(codes, src, dst, "rint", "wrap") == results
    mode = "rint" if dst in SMALL_INTEGERS else "trunc"
    clamped, wrapped = (cast_array(codes, src, dst, mode, overflow) for overflow in ("saturate", "wrap"))
    good: np.ndarray = (results == wrapped) & (clamped == wrapped)
    todo = np.flatnonzero(~good)
    good[todo] = ~_in_range(codes[todo], src, dst, mode)
    return good


def _in_range(codes: np.ndarray, src: str, dst: str, mode: str) -> np.ndarray:
    """Finite numbers that round to integers of the destination."""
    row = fmt(dst)
    found = np.zeros(codes.shape, bool)
    for place, code in enumerate(codes.tolist()):
        value = decode(code, src)
        if value.kind != "finite":
            continue
        whole = value.magnitude.numerator // value.magnitude.denominator
        if mode == "rint":
            whole = round(value.magnitude)  # of a Fraction: ties to even
        found[place] = row.low <= (-whole if value.negative else whole) <= row.high
    return found
