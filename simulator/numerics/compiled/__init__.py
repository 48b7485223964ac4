"""The compiled tier: machine code for casts, made by numba on first need and kept on disk. Importing it imports numba.

Three kinds of loops give the reference's bits. Two compile the reference's own steps (`steps`), for a family of formats
with everything else at run time, or for one cast, and read tables that the reference fills; the third goes through
single precision where a conversion instruction or an addition rounds the same way. `fastest_loop` chooses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
from numba import types
from numba.np.unsafe import ndarray

from castsim import files
from castsim.isa.errors import hint
from castsim.isa.formats import Codes, FloatFormat, Format, IntFormat, Overflow, Rounding, TaperedFormat
from castsim.numerics import rounding
from castsim.numerics.blocks import code_dtype
from castsim.numerics.compiled import steps
from castsim.numerics.compiled.steps import (
    Fields,
    FormatFamily,
    KernelFunction,
    Word,
    above,
    add,
    band,
    bits_of_float,
    bor,
    double_bits_of_float,
    equal,
    family_of,
    fields_of,
    float_at_least,
    float_bits_of_double_bits,
    float_of_bits,
    float_of_half_bits,
    float_of_signed,
    float_of_unsigned,
    greater,
    greater_float,
    half_bits_of_float,
    inline,
    lesser,
    lesser_float,
    like,
    normalise,
    pack_float,
    pack_integer,
    pack_power,
    pack_tapered,
    pick,
    sar,
    settle_sign,
    settle_specials,
    shl,
    shr,
    signed_of_float,
    sub,
    tables_of,
    to_ceil,
    to_floor,
    to_nearest,
    to_zero,
    unpack_float,
    unpack_integer,
    unpack_tapered,
    unsigned_of_float,
    word_bits,
)
from castsim.numerics.policy import NanToFloat, Policy
from castsim.numerics.tables import LookupTable, table_of, table_size

_settings: Any = numba.config
if _settings.DISABLE_JIT:
    raise ImportError("it is told not to compile, by NUMBA_DISABLE_JIT")


SOURCES = (__file__, rounding.__file__, steps.__file__)
"""The files that decide what kernels compute."""


@cache
def source_stamp() -> int:
    """Return a hash of all of them."""
    digest = hashlib.sha256(b"".join(Path(file).read_bytes() for file in SOURCES))
    return int.from_bytes(digest.digest()[:7], "big")


@cache
def has_half_conversion() -> bool:
    """Whether the processor converts between f16 and f32; elsewhere a slow library routine would."""
    features = llvm.get_host_cpu_features()
    return bool(features.get("f16c")) or llvm.get_process_triple().startswith(("aarch64", "arm64"))


def compiled(make: Callable[[], Any], signature: Any) -> Callable[..., None]:
    """Return the machine code of the loop that `make` returns, from the disk where it is there."""
    loop, is_kept = files.compiled(make(), signature, nogil=True)
    if not is_kept:
        hint(
            "compiled casts cannot be kept on disk and are compiled anew; set NUMBA_CACHE_DIR to a folder that "
            "only you can write to"
        )
    found: Callable[..., None] = loop
    return found


def signature(codes: np.dtype[Any], results: np.dtype[Any], extra: np.dtype[Any], parameters: np.dtype[Any]) -> Any:
    """Return the types of a loop over contiguous arrays of these dtypes, of which only the results are written."""
    read = [types.Array(numba.from_dtype(dtype), 1, "C", readonly=True) for dtype in (codes, extra, parameters)]
    return types.void(read[0], types.Array(numba.from_dtype(results), 1, "C"), read[1], read[2])


_LARGEST_TABLE = 1 << 16
"""Entries of a table that second-level caches hold; larger ones lose against computing."""

_NO_WORDS = np.zeros(1, np.uint32)
_NO_FIELDS = np.zeros(1, np.uint32)


@dataclass(frozen=True, slots=True)
class CompiledLoop:
    """Machine code for one cast: `run(codes, results, words, fields)` over contiguous native arrays."""

    code: Callable[..., None]
    words: Codes
    fields: Codes

    def run(self, results: Codes, codes: Codes, words: Codes | None = None) -> None:
        """Convert one block; `words` are the random ones of a stochastic cast."""
        self.code(codes, results, self.words if words is None else words, self.fields)


@lru_cache(maxsize=256)
def fastest_loop(src: Format, dst: Format, policy: Policy) -> CompiledLoop:
    """Return the fastest loop for a cast that `check_policy` accepts."""
    word = np.dtype(f"u{word_bits(src, dst, policy) // 8}")
    if takes_low_bits(src, dst, policy):
        p = fields_of(src, dst, policy)
        model = word.type(0)
        return _loop(src, dst, lambda stamp: low_bits_kernel(p, model.itemsize * 8, model, stamp))
    loop = _single_precision_loop(src, dst, policy)
    if loop is not None:
        return loop
    size = table_size(src, dst, policy)
    if size is not None and size <= _LARGEST_TABLE and (src.storage_bits <= 16 or isinstance(dst, TaperedFormat)):
        table = table_of(src, dst, policy)
        assert table is not None
        return _lookup_loop(src, dst, table)
    return _single_loop(src, dst, policy)


def _dtypes(src: Format, dst: Format) -> tuple[np.dtype[Any], np.dtype[Any]]:
    return code_dtype(src), code_dtype(dst)


def _loop(src: Format, dst: Format, make: Callable[[int], Any]) -> CompiledLoop:
    """Compile a loop whose numbers are all constants of its code."""
    types = signature(*_dtypes(src, dst), _NO_WORDS.dtype, _NO_FIELDS.dtype)
    return CompiledLoop(compiled(lambda: make(source_stamp()), types), _NO_WORDS, _NO_FIELDS)


def _single_precision_loop(src: Format, dst: Format, policy: Policy) -> CompiledLoop | None:
    inward, outward = path_to_f32(src, dst), path_from_f32(dst, policy)
    if inward is None or outward is None or policy.flush_source:
        return None
    if F32Path.HALF in (inward, outward) and not has_half_conversion():
        return None
    paths = int(inward), int(outward), TO_INTEGRAL.get(policy.rounding, 0)
    p, (largest, beyond) = fields_of(src, dst, policy), constants(dst)
    modes = {policy.rounding, policy.subnormal_rounding or policy.rounding}
    if rounds_to_f32(src) and modes != {Rounding.RINT}:
        return None
    if inward is F32Path.DOUBLE:
        if p.saturates or not is_natural(p):
            return None  # infinities that overflow made cannot be told from the source's
        return _loop(src, dst, lambda stamp: double_precision_kernel(p, np.uint64(0), stamp))
    return _loop(
        src,
        dst,
        lambda stamp: single_precision_kernel(*paths, p, largest, beyond, np.uint32(0), stamp),
    )


@lru_cache(maxsize=32)
def _lookup_code(codes: np.dtype[Any], results: np.dtype[Any], shortened: bool) -> Callable[..., None]:
    model = np.uint64(0) if codes.itemsize > 4 else np.uint32(0)
    types = signature(codes, results, results, _NO_FIELDS.dtype)
    return compiled(lambda: lookup_kernel(shortened, model, source_stamp()), types)


def _lookup_loop(src: Format, dst: Format, table: LookupTable) -> CompiledLoop:
    code = _lookup_code(*_dtypes(src, dst), table.dropped_bits > 0)
    return CompiledLoop(code, table.entries, np.array([table.dropped_bits], np.uint32))


def _family(src: Format, dst: Format, policy: Policy) -> tuple[int, int, int, bool]:
    source = family_of(src)
    source = FormatFamily.FLOAT if source is FormatFamily.POWER else source
    draws = policy.rounding is Rounding.STOCHASTIC
    return int(source), int(family_of(dst)), word_bits(src, dst, policy), draws


def _single_loop(src: Format, dst: Format, policy: Policy) -> CompiledLoop:
    family = _family(src, dst, policy)
    bits = family[2]
    p, tables, model = fields_of(src, dst, policy), tables_of(src, dst, bits), np.dtype(f"u{bits // 8}").type(0)
    return _loop(src, dst, lambda stamp: single_kernel(*family, tables, p, model, stamp))


@lru_cache(maxsize=64)
def _family_code(
    family: tuple[int, int, int, bool],
    dtypes: tuple[np.dtype[Any], np.dtype[Any]],
    tapered: tuple[Format | None, Format | None],
) -> Callable[..., None]:
    bits = family[2]
    types = signature(*dtypes, _NO_WORDS.dtype, np.dtype(f"u{bits // 8}"))
    tables = tables_of(*tapered, bits)
    return compiled(lambda: family_kernel(*family, tables, source_stamp()), types)


@lru_cache(maxsize=256)
def generic_loop(src: Format, dst: Format, policy: Policy) -> CompiledLoop:
    """Return the loop that serves all casts of a family and takes formats and policy at run time."""
    family = _family(src, dst, policy)
    tapered = tuple(fmt if isinstance(fmt, TaperedFormat) else None for fmt in (src, dst))
    code = _family_code(family, _dtypes(src, dst), (tapered[0], tapered[1]))
    fields = np.array(fields_of(src, dst, policy), dtype=object).astype(np.dtype(f"u{family[2] // 8}"))
    return CompiledLoop(code, _NO_WORDS, fields)


# Loops over arrays: the compiled steps for any cast of a family or for a single one, and look-ups in a table.

_FLOAT, _INTEGER, _TAPERED, _POWER, _BOOLEAN = (int(kind) for kind in FormatFamily)


@inline
def convert(code: Word, word: Word, p: Word, tables: Codes, source: int, destination: int, width: int) -> Word:
    """Return the code of one element; `source` and `destination` are kinds, `width` the bits of a word."""
    if source == _FLOAT:
        negative, exponent, significand, nan, infinite = unpack_float(code, p)
    elif source == _TAPERED:
        negative, exponent, significand, nan, infinite = unpack_tapered(code, p, tables)
    else:
        negative, exponent, significand, nan, infinite = unpack_integer(code, p, width - 1)
        if source == _BOOLEAN:
            significand = above(code, 0)
    if destination == _BOOLEAN:
        return bor(above(significand, 0), bor(nan, infinite))
    shifted = normalise(exponent, significand, width - 1)
    if p.normalise:
        exponent, significand = shifted
    drawn = bor(like(word, code), bor(shl(band(code, p.draw_mask), p.draw_left), p.draw_low))
    if destination == _FLOAT:
        result = pack_float(negative, exponent, significand, drawn, p, width)
    elif destination == _TAPERED:
        result = pack_tapered(negative, exponent, significand, drawn, p, width, tables)
    elif destination == _POWER:
        result = pack_power(negative, exponent, significand, drawn, p, width)
    else:
        result = pack_integer(negative, exponent, significand, drawn, p, width)
    return settle_specials(result, code, negative, nan, infinite, p)


_COUNT = len(Fields._fields)
_fixed_tuple: Callable[..., Word] = ndarray.to_fixed_tuple


def family_kernel(source: int, destination: int, width: int, draws: bool, tables: Codes, stamp: int) -> KernelFunction:
    """Make the loop for every cast between two families of formats; the formats and the policy come at run time.

    The kernel takes codes, results, random words (one per element if `draws`) and the fields as words. `stamp`
    changes with the sources; being part of the function it keys numba's cache, which itself looks at one file only.
    """

    def kernel(codes: Codes, results: Codes, random: Codes, fields: Codes) -> None:
        if stamp < 0:
            return
        p = Fields(*_fixed_tuple(fields, _COUNT))
        for index in range(codes.size):
            word = random[index] if draws else 0
            code = like(codes[index], p.rule)
            results[index] = convert(code, word, p, tables, source, destination, width)

    return kernel


def single_kernel(
    source: int, destination: int, width: int, draws: bool, tables: Codes, p: Fields, model: Word, stamp: int
) -> KernelFunction:
    """Make the same loop for one cast, all of whose fields are constants of the code; `model` is a word."""

    def kernel(codes: Codes, results: Codes, random: Codes, fields: Codes) -> None:
        if stamp < 0:
            return
        for index in range(codes.size):
            word = random[index] if draws else 0
            results[index] = convert(like(codes[index], model), word, p, tables, source, destination, width)

    return kernel


# The loop of the table tier, for any table: two integers describe it.


def lookup_kernel(shortened: bool, model: Word, stamp: int) -> KernelFunction:
    """Make the loop that looks codes up; `shortened` by `fields[0]` bits first, the last one sticky."""

    def kernel(codes: Codes, results: Codes, table: Codes, fields: Codes) -> None:
        if stamp < 0:
            return
        dropped = like(fields[0], model)
        mask = sub(shl(like(1, model), dropped), 1)
        for index in range(codes.size):
            code = like(codes[index], model)
            if shortened:
                code = shr(bor(code, add(band(code, mask), mask)), dropped)
            results[index] = table[code]

    return kernel


# Shorter paths through single precision, for casts that the general steps do more slowly than memory.
#
# Exact on the way in (every source value is an f32), one rounding on the way out: to nearest even by the processor or
# by adding a constant, or to an integral value. Each is the same function as the reference's; `castsim verify` and
# the tests compare all codes. No other module lets floating point decide a bit.

_INFINITY = 0x7F800000
_QUIET = 0x7FC00000
_SIGN = 0x80000000
_MAGNITUDE = 0x7FFFFFFF


class F32Path(IntEnum):
    """A path between a format and single precision, in either direction."""

    SINGLE = 0
    HALF = 1
    BRAIN = 2
    SMALL = 3
    SIGNED = 4
    UNSIGNED = 5
    DOUBLE = 6


_SINGLE, _HALF, _BRAIN, _SMALL, _SIGNED, _UNSIGNED, _DOUBLE = (int(path) for path in F32Path)

TO_INTEGRAL = {Rounding.RINT: 0, Rounding.FLOOR: 1, Rounding.CEIL: 2, Rounding.TRUNC: 3}
"""Modes that processors have for rounding to integral values."""


def _layout(fmt: Format) -> tuple[int, int, int] | None:
    return (fmt.exponent_bits, fmt.fraction_bits, fmt.bias) if isinstance(fmt, FloatFormat) and fmt.signed else None


_PATHS = {
    (8, 23, 127): F32Path.SINGLE,
    (5, 10, 15): F32Path.HALF,
    (8, 7, 127): F32Path.BRAIN,
    (11, 52, 1023): F32Path.DOUBLE,
}


def path_to_f32(src: Format, dst: Format) -> F32Path | None:
    """Return the path from `src` to f32, None if f32 cannot hold every number.

    The value stays the same, except where `rounds_to_f32` says so and the f32 is the result.
    """
    layout = _layout(src)
    if isinstance(src, IntFormat):
        exact = src.bits <= 16 or (src.bits == 32 and _PATHS.get(_layout(dst) or (0, 0, 0)) is F32Path.SINGLE)
        return (F32Path.SIGNED if src.signed else F32Path.UNSIGNED) if exact and not src.boolean else None
    if layout is None or not isinstance(src, FloatFormat):
        return None
    known = _PATHS.get(layout) if src.has_infinity else None
    if known is F32Path.DOUBLE and _PATHS.get(_layout(dst) or (0, 0, 0)) is not F32Path.SINGLE:
        return None  # the way in may round only if nothing rounds after it
    return known if known is not None else F32Path.SMALL if src.bits <= 8 else None


def rounds_to_f32(src: Format) -> bool:
    """Whether becoming an f32 rounds, to nearest even."""
    return src.bits > 16 and (isinstance(src, IntFormat) or src.bits > 32)


def path_from_f32(dst: Format, policy: Policy) -> F32Path | None:
    """Return the path from f32 to the result, None if only the general steps have it."""
    if isinstance(dst, IntFormat):
        clamps = policy.overflow is Overflow.SATURATE and policy.rounding in TO_INTEGRAL
        narrow = dst.bits <= 32 and not dst.boolean
        return (F32Path.SIGNED if dst.signed else F32Path.UNSIGNED) if clamps and narrow else None
    layout = _layout(dst)
    plain = policy.nan_to_float is not NanToFloat.PAYLOAD and not (policy.flush_source or policy.flush_result)
    plain = plain and policy.stochastic_guard  # without it exact values move
    if layout is None or not isinstance(dst, FloatFormat) or not plain:
        return None
    known = _PATHS.get(layout) if dst.has_infinity else None
    if policy.rounding is not Rounding.RINT or policy.subnormal_rounding not in (None, Rounding.RINT):
        return (
            known if known in (F32Path.SINGLE, F32Path.DOUBLE) else None
        )  # nothing is rounded from single precision up
    return known if known is not None else F32Path.SMALL if dst.bits <= 8 else None


@inline
def widen(code: Word, p: Fields, path: int) -> Word:
    """Return the f32 bits of a source code; a NaN stays some NaN of its sign."""
    if path == _HALF:
        return bits_of_float(float_of_half_bits(code))
    if path == _BRAIN:
        return shl(code, 16)
    if path == _SIGNED:
        return bits_of_float(float_of_signed(sar(shl(code, 32 - p.src_width), 32 - p.src_width)))
    if path == _UNSIGNED:
        return bits_of_float(float_of_unsigned(code))
    if path == _SMALL:
        return _widen_small(code, p)
    return code


@inline
def _widen_small(code: Word, p: Fields) -> Word:
    """Move the fields of a float of up to 8 bits into place; subnormal numbers by an exact subtraction."""
    magnitude = band(code, p.src_magnitude)
    placed = shl(magnitude, 23 - p.src_fraction)
    one = like(p.src_one, code)  # exponent field of the smallest normal number, as f32 bits
    normal = add(placed, sub(one, 1 << 23))
    tiny = bits_of_float(float_of_bits(add(placed, one)) - float_of_bits(one))
    bits = pick(shr(magnitude, p.src_fraction), normal, tiny)
    nan = bor(above(magnitude, p.src_nan_above), equal(code, p.src_nan_exact))
    sign = band(shr(code, p.src_width - 1), pick(nan, p.src_nan_signed, 1))
    bits = pick(equal(magnitude, p.src_infinity), _INFINITY, pick(nan, _QUIET, bits))
    return bor(bits, shl(sign, 31))


@inline
def narrow(
    bits: Word, p: Fields, path: int, natural: bool, settled: bool, integral: int, largest: Word, beyond: Word
) -> Word:
    """Return the result's code for f32 bits.

    `natural`: infinities and overflow need no care, or only a clamp, see `is_natural`. `settled`: f32 results have
    their infinities and NaN already. The last three concern integer results; `integral` is from `TO_INTEGRAL`.
    """
    magnitude = band(bits, _MAGNITUDE)
    if path in (_SIGNED, _UNSIGNED):
        code = _narrow_integer(float_of_bits(bits), p, path, integral, largest, beyond)
        return pick(above(magnitude, _INFINITY), p.nan, code)
    negative = shr(bits, 31)
    if path == _DOUBLE:
        wide = double_bits_of_float(float_of_bits(bits))
        return _settle(wide, like(magnitude, wide), like(negative, wide), p)
    if path == _SINGLE:
        signed = pick(bor(magnitude, p.dst_signed_zero), bits, 0)
        if natural:
            return _settle_nan(signed, magnitude, negative, p)
        return signed if settled else _settle(signed, magnitude, negative, p)
    if path == _SMALL:
        code = _narrow_small(magnitude, p)
        signed = settle_sign(code, above(code, p.dst_largest), negative, p)
        return _settle(signed, magnitude, negative, p)
    if natural:
        inside = bor(lesser(magnitude, p.dst_cut), shl(negative, 31)) if p.saturates else bits
        return _settle_nan(_narrow_wide(inside, path), magnitude, negative, p)
    code = _narrow_wide(magnitude, path)
    signed = settle_sign(code, above(code, p.dst_largest), negative, p)
    return _settle(signed, magnitude, negative, p)


@inline
def _narrow_wide(bits: Word, path: int) -> Word:
    """Round to nearest even in f16 or bf16; overflow gives infinity, NaN something."""
    if path == _HALF:
        return half_bits_of_float(float_of_bits(bits))
    return shr(add(add(bits, 0x7FFF), band(shr(bits, 16), 1)), 16)


@inline
def _narrow_small(magnitude: Word, p: Fields) -> Word:
    """Round to nearest even by an addition whose result has its last place where the result's is.

    Numbers far above the range are cut to one that still overflows, so that the constant stays a number.
    """
    low, dropped = like(p.dst_one, magnitude), 23 - p.dst_fraction
    inside = lesser(magnitude, p.dst_cut)
    exponent = greater(band(inside, _INFINITY), low)
    constant = add(exponent, dropped << 23)
    kept = sub(bits_of_float(float_of_bits(inside) + float_of_bits(constant)), constant)
    return add(kept, shr(sub(exponent, low), dropped))


@inline
def _settle(code: Word, magnitude: Word, negative: Word, p: Fields) -> Word:
    """Replace infinities and NaN by their codes under the policy."""
    code = pick(equal(magnitude, _INFINITY), pick(negative, p.infinity_negative, p.infinity), code)
    return _settle_nan(code, magnitude, negative, p)


@inline
def _settle_nan(code: Word, magnitude: Word, negative: Word, p: Fields) -> Word:
    return pick(above(magnitude, _INFINITY), pick(negative, p.nan_negative, p.nan), code)


@inline
def _narrow_integer(value: Word, p: Fields, path: int, integral: int, largest: Word, beyond: Word) -> Word:
    """Round to an integral f32 and clamp; `largest` is the last f32 inside the range, `beyond` the first outside."""
    if integral == 0:
        rounded = to_nearest(value)
    elif integral == 1:
        rounded = to_floor(value)
    elif integral == 2:
        rounded = to_ceil(value)
    else:
        rounded = to_zero(value)
    # The comparison fails for NaN, which so becomes a number; what NaN gives is settled by the caller.
    clamped = lesser_float(rounded, largest)
    if path == _SIGNED:
        code = signed_of_float(greater_float(clamped, -beyond))
    else:
        code = unsigned_of_float(greater_float(clamped, largest - largest))
    code = pick(float_at_least(rounded, beyond), p.dst_limit, code)
    return band(code, p.dst_mask)


def constants(dst: Format) -> tuple[np.float32, np.float32]:
    """Return the last f32 inside the range of an integer format and the first beyond it; zeros for other formats."""
    if not isinstance(dst, IntFormat):
        return np.float32(0), np.float32(0)
    beyond = np.float32(dst.maximum + 1)
    return np.float32(min(dst.maximum, int(np.nextafter(beyond, np.float32(0))))), beyond


def takes_low_bits(src: Format, dst: Format, policy: Policy) -> bool:
    """Whether a cast between integers is their low bits, in a code without bits of its own."""
    integers = [fmt for fmt in (src, dst) if isinstance(fmt, IntFormat) and not fmt.boolean]
    exact = policy.overflow is Overflow.WRAP and policy.wrap_bits is None
    return len(integers) == 2 and exact and (dst.bits <= 8 or dst.bits == dst.storage_bits)


def low_bits_kernel(p: Fields, width: int, model: Word, stamp: int) -> KernelFunction:
    """Make the loop that takes the low bits of integers; `width` is that of the word `model`."""
    unused = width - p.src_width if p.src_signed else 0

    def kernel(codes: Codes, results: Codes, random: Codes, fields: Codes) -> None:
        if stamp < 0:
            return
        for index in range(codes.size):
            code = like(codes[index], model)
            results[index] = band(sar(shl(code, unused), unused) if unused else code, p.dst_mask)

    return kernel


def is_natural(p: Fields) -> bool:
    """Whether results beyond the range of a wide float are what rounding gives: infinity, or after a clamp the largest.

    Infinity is then the code after the largest finite one, and the signs of all codes are a bit.
    """
    sign = 1 << (p.dst_width - 1)
    last = p.dst_largest if p.saturates else p.dst_largest + 1
    clamps = p.dst_cut > 0 and p.dst_width < 32
    pairs = (p.infinity, p.infinity_negative), (p.over, p.over_negative)
    alike = all(pair == (last, last | sign) for pair in pairs)
    return alike and bool(p.dst_signed_zero) and (not p.saturates or clamps)


def single_precision_kernel(
    source: int, destination: int, integral: int, p: Fields, largest: Word, beyond: Word, model: Word, stamp: int
) -> KernelFunction:
    """Make the loop that casts through f32; arguments as for the other kernels, `model` is a 32-bit word."""

    specials = (p.infinity, p.infinity_negative, p.nan, p.nan_negative)
    usual = specials == (_INFINITY, _INFINITY | _SIGN, _QUIET, _QUIET | _SIGN)
    settled = usual and source in (_SMALL, _SIGNED, _UNSIGNED)
    natural = is_natural(p) and not settled

    def kernel(codes: Codes, results: Codes, random: Codes, fields: Codes) -> None:
        if stamp < 0:
            return
        for index in range(codes.size):
            bits = widen(like(codes[index], model), p, source)
            results[index] = narrow(bits, p, destination, natural, settled, integral, largest, beyond)

    return kernel


def double_precision_kernel(p: Fields, model: Word, stamp: int) -> KernelFunction:
    """Make the loop from f64 to f32, where infinity is natural; `model` is a 64-bit word."""

    def kernel(codes: Codes, results: Codes, random: Codes, fields: Codes) -> None:
        if stamp < 0:
            return
        for index in range(codes.size):
            bits = float_bits_of_double_bits(like(codes[index], model))
            results[index] = _settle_nan(bits, band(bits, _MAGNITUDE), shr(bits, 31), p)

    return kernel
