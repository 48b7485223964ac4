"""Block quantisation: numbers as narrow elements that share scales.

A block is a run of elements along an axis, a row, a column or a whole tensor; its scale comes from its largest
magnitude by a named rule, and every element is rounded once from the exact quotient of number and scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from functools import cached_property, lru_cache
from math import prod
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray

from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import IllegalError, ReadError, arguments_checked
from castsim.isa.formats import (
    FORMATS,
    Codes,
    FloatFormat,
    Format,
    IntFormat,
    Overflow,
    Rounding,
    TaperedFormat,
    format_named,
)
from castsim.isa.value_expressions import mode_named
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import (
    FormatLike,
    array_from_codes,
    codes_from_array,
    decode_to_float64,
    format_name,
    native_dtype,
)
from castsim.numerics.policy import Policy, abstract_policy, default_rounding
from castsim.numerics.tiers import convert_codes
from castsim.reports.documents import INFINITE_IS_NULL, Keys, record, says
from castsim.reports.schemas.keys import Elements

# Quotients of float64 that may be rounded once more: the bits behind the last one are kept in it.

F64 = NDArray[np.float64]

_REACH = 400
"""Largest exponent of a quotient that any element or scale format can distinguish from a larger one."""

_SPLIT = float((1 << 27) + 1)


def quotient(numbers: F64, divisors: F64 | np.float64) -> F64:
    """Return numbers / divisors, rounded to odd at 53 bits, so a second rounding equals one from the exact quotient.

    Divisors have up to 24 significant bits and are positive. Exponents beyond those of any narrow format are clamped;
    NaN and infinities divide as usual.
    """
    numerator, up = np.frexp(numbers)
    denominator, down = np.frexp(divisors)
    with np.errstate(invalid="ignore"):
        found = numerator / denominator
        finite = np.isfinite(found)
        # The remainder is exact: the halves of the quotient, of 26 and 27 bits, times 24 bits fit 53.
        spread = found * _SPLIT
        upper = spread - (spread - found)
        rest = (numerator - upper * denominator) - (found - upper) * denominator
    inexact = finite & (rest != 0)
    bits = found.view(np.int64)
    # Where the quotient was rounded away from zero, the truncated one is the number before it.
    away = inexact & ((rest < 0) != (found < 0))
    bits = np.where(away, bits - 1, bits) | inexact
    made: F64 = np.ldexp(bits.view(np.float64), np.clip(up - down, -_REACH, _REACH))
    return made


# Rules for the scale of a block, from its largest magnitude.
#
# Four give powers of two, whatever the scale format: `floor` (OCP MX 1.0, section 6.3), `ceil`, `even` (both after
# the names in PyTorch's torchao) and `rceil` (NVIDIA's). `nearest` divides by the largest element, as kernels with f32
# and e4m3 scales do. All are defined here on exact numbers; docs/tools/quantise.md has the table.


class ScaleRule(StrEnum):
    """The rule for a block's scale, given its largest magnitude m; e is the exponent of the largest element."""

    FLOOR = "floor"
    """2**(floor(log2 m) - e): elements beyond the largest one are clamped."""
    CEIL = "ceil"
    """2**(ceil(log2 m) - e)."""
    EVEN = "even"
    """Like floor, with m rounded to the fraction bits of the element, ties to even."""
    RCEIL = "rceil"
    """The smallest power of two for which m divided by it does not exceed the largest element."""
    NEAREST = "nearest"
    """m divided by the largest element, rounded to the scale format: ties to even, or up in e8m0."""


RULES = tuple(rule.value for rule in ScaleRule)

INFINITE_EXPONENT = 128
"""Exponent of infinity in the rules that use the exponent of m: that of f32's infinity."""


@lru_cache(maxsize=64)
def largest(element: Format) -> float:
    """Return the largest finite element."""
    code = element.maximum if isinstance(element, IntFormat) else element.max_finite_code
    dtype = np.dtype(f"u{element.storage_bits // 8}")
    return float(decode_to_float64(np.array([code], dtype), element)[0])


def _top_fraction_bits(element: Format) -> int:
    """Return the fraction bits of the largest elements."""
    if isinstance(element, IntFormat):
        return element.bits - 2
    return element.binades[-1].fraction_bits if isinstance(element, TaperedFormat) else element.fraction_bits


def scale_codes(
    magnitudes: F64, element: Format, unit_exponent: int, scale: FloatFormat, rule: ScaleRule, *, zero_is_one: bool
) -> Codes:
    """Return the codes of the scales of blocks, given their largest magnitudes.

    A NaN gives the scale NaN. An infinity counts as 2**128 for floor, ceil and even, and gives the largest scale by
    rceil and nearest. Zeros have the smallest scale (zero if the format has it) or 1; other blocks have
    no scale below the smallest positive one.
    """
    top = math.ldexp(largest(element), unit_exponent)
    zero, nan = magnitudes == 0, np.isnan(magnitudes)
    greatest = np.where(zero | nan, 1.0, magnitudes)
    if rule is ScaleRule.NEAREST:
        exact = quotient(greatest, np.float64(top))
    else:
        low = scale.min_exponent - (scale.fraction_bits if scale.has_zero else 0)
        powers = _exponents(greatest, top, _top_fraction_bits(element), rule)
        powers = np.clip(powers, low, math.frexp(largest(scale))[1] - 1)
        if not scale.has_zero:  # codes are exponents
            codes = (powers + scale.bias).astype(code_dtype(scale))
            codes = np.where(zero, codes.dtype.type(scale.bias if zero_is_one else 0), codes)
            return np.where(nan, codes.dtype.type(scale.nan_code or 0), codes)
        exact = np.ldexp(1.0, powers)
    policy = Policy(Rounding.RINT if scale.has_zero else Rounding.ROUND, Overflow.SATURATE)
    codes = convert_codes(exact.view(np.uint64), FORMATS["f64"], scale, policy)
    if scale.has_zero:
        codes = np.maximum(codes, codes.dtype.type(1))
    codes = np.where(zero, codes.dtype.type(scale.bias << scale.fraction_bits if zero_is_one else 0), codes)
    assert scale.nan_code is not None
    return np.where(nan, codes.dtype.type(scale.nan_code), codes)


def _exponents(greatest: F64, top: float, fraction_bits: int, rule: ScaleRule) -> NDArray[np.int64]:
    """Return the exponents of the powers of two of blocks without zeros and NaN; `top` is the largest element."""
    fraction, exponent = np.frexp(greatest)  # fraction in [1/2, 1)
    top_fraction, top_exponent = math.frexp(top)
    powers: NDArray[np.int64] = exponent.astype(np.int64) - top_exponent
    if rule is ScaleRule.CEIL:
        powers += fraction != 0.5
    elif rule is ScaleRule.EVEN:
        powers += fraction >= 1 - math.ldexp(1, -fraction_bits - 2)
    elif rule is ScaleRule.RCEIL:
        powers += fraction > top_fraction
    infinite = np.iinfo(np.int32).max if rule is ScaleRule.RCEIL else INFINITE_EXPONENT + 1 - top_exponent
    return np.where(np.isinf(greatest), infinite, powers)


# How far quantised numbers are from the ones that they were made of.


@record
class QuantisationError(Keys):
    """The errors of the finite numbers outside blocks with NaN; null where f64 cannot hold one."""

    elements: Elements = says("Number of elements of the array.")
    compared: Elements = says("Number of elements with an error.")
    largest_error: Annotated[float, INFINITE_IS_NULL] = says("The largest absolute error.")
    largest_relative_error: Annotated[float, INFINITE_IS_NULL] = says("The largest error relative to the number.")
    root_mean_square_error: Annotated[float, INFINITE_IS_NULL] = says("Root mean square of the absolute errors.")
    signal_to_noise_db: Annotated[float | None, INFINITE_IS_NULL] = says(
        "Signal to noise in decibels; null without an error or without numbers."
    )
    clamped: Elements = says("Number of values above the largest element in magnitude, including infinities.")
    to_zero: Elements = says("Number of values that became zero.")
    nan_blocks: int = says("Number of blocks with NaN.")


def error_statistics(numbers: F64, values: F64, clamped: NDArray[np.bool_], nan_blocks: int) -> QuantisationError:
    """Return the statistics; `values` are the values of the elements."""
    good = np.isfinite(numbers) & np.isfinite(values)
    given, found = numbers[good], values[good]
    with np.errstate(over="ignore"):
        error = np.abs(found - given)
        # Squares of numbers scaled by the largest one neither overflow nor vanish.
        unit = float(np.abs(given).max(initial=0.0)) or 1.0
        noise, signal = (float(np.mean(np.square(each / unit))) if each.size else 0.0 for each in (error, given))
    nonzero = given != 0
    relative = error[nonzero] / np.abs(given[nonzero])
    return QuantisationError(
        elements=numbers.size,
        compared=given.size,
        largest_error=float(error.max(initial=0.0)),
        largest_relative_error=float(relative.max(initial=0.0)),
        root_mean_square_error=math.sqrt(noise) * unit,
        signal_to_noise_db=10 * math.log10(signal / noise) if noise and signal else None,
        clamped=int(clamped.sum()),
        to_zero=int((nonzero & (found == 0)).sum()),
        nan_blocks=nan_blocks,
    )


# Block formats as rows: an element format, a scale format, a block size and the usual rule of the scale.
#
# Sources: OCP Microscaling Formats (MX) 1.0, section 5, for the names that begin with mx, all with blocks of 32 and
# e8m0 scales; NVFP4 has blocks of 16 and e4m3 scales. TOSA 1.1 has the same MX types (docs/reference/semantics.md).

_WIDEST_FLOAT, _WIDEST_INTEGER = 8, 16
"""Maximum number of bits of an element: wider ones need no scale."""


@dataclass(frozen=True, slots=True)
class BlockFormat:
    """Elements that share scales.

    An element represents its own value times `2**unit_exponent`: MXINT8 counts in 64ths. `block` is the number of
    elements along the axis, None: all of them.
    """

    name: str
    element: Format
    scale: Format
    block: int | None
    rule: ScaleRule
    unit_exponent: int = 0

    def with_scale(self, scale: Format) -> BlockFormat:
        """Return the format with another scale format.

        Raises:
            IllegalError: the scale format is an integer or tapered, and so lacks NaN or exact powers of two.
        """
        if isinstance(scale, IntFormat | TaperedFormat) or not scale.has_nan:
            legal = [
                name for name, row in FORMATS.items() if not isinstance(row, IntFormat | TaperedFormat) and row.has_nan
            ]
            raise IllegalError(f"scales cannot be {scale.name}: they need a NaN", legal=legal)
        usual = ScaleRule.FLOOR if not scale.has_zero else ScaleRule.NEAREST
        return replace(self, scale=scale, rule=self.rule if scale == self.scale else usual)


def _mx(name: str, element: str, unit_exponent: int = 0) -> BlockFormat:
    return BlockFormat(name, FORMATS[element], FORMATS["e8m0"], 32, ScaleRule.FLOOR, unit_exponent)


BLOCK_FORMATS: dict[str, BlockFormat] = {
    row.name: row
    for row in (
        _mx("mxfp8_e4m3", "e4m3fn"),
        _mx("mxfp8_e5m2", "e5m2"),
        _mx("mxfp6_e3m2", "e3m2"),
        _mx("mxfp6_e2m3", "e2m3"),
        _mx("mxfp4_e2m1", "e2m1"),
        _mx("mxint8", "i8", -6),
        BlockFormat("nvfp4", FORMATS["e2m1"], FORMATS["e4m3fn"], 16, ScaleRule.NEAREST),
    )
}
"""Every named block format."""

_ALIASES = {
    "mxfp8": "mxfp8_e4m3",
    "mxfp8e4m3": "mxfp8_e4m3",
    "mxfp8_e4m3fn": "mxfp8_e4m3",
    "mxfp8e5m2": "mxfp8_e5m2",
    "mxfp6e3m2": "mxfp6_e3m2",
    "mxfp6e2m3": "mxfp6_e2m3",
    "mxfp4": "mxfp4_e2m1",
    "mxfp4e2m1": "mxfp4_e2m1",
}


def block_format(text: str) -> BlockFormat:
    """Return the block format with a name; an element format alone has f32 scales, one for each row.

    Raises:
        ReadError: the format does not exist.
        IllegalError: the elements have no sign, or are too wide.
    """
    name = text.strip().lower()
    name = _ALIASES.get(name, name)
    if name in BLOCK_FORMATS:
        return BLOCK_FORMATS[name]
    try:
        element = format_named(text)
    except ReadError as error:
        raise ReadError(f"unknown block format '{text}'", legal=(*BLOCK_FORMATS, *error.legal)) from None
    widest = _WIDEST_INTEGER if isinstance(element, IntFormat) else _WIDEST_FLOAT
    if not element.signed or element.bits > widest:
        why = "they have no sign" if not element.signed else f"they have more than {widest} bits"
        legal = [*BLOCK_FORMATS, *(row.name for row in FORMATS.values() if _is_element(row))]
        raise IllegalError(f"elements cannot be {element.name}: {why}", legal=legal)
    return BlockFormat(element.name, element, FORMATS["f32"], None, ScaleRule.NEAREST)


def _is_element(row: Format) -> bool:
    return row.signed and row.bits <= (_WIDEST_INTEGER if isinstance(row, IntFormat) else _WIDEST_FLOAT)


SPANS = ("block", "group", "token", "channel", "tensor")
"""Sets of elements that share a scale: a run along the axis (block, group), a row along it, an index of it, all."""


@dataclass(frozen=True, eq=False)
class Quantised:
    """A quantised array: elements of the array's shape, and one scale for each block.

    `elements` and `scales` have the native dtypes of their formats, or are codes if there is none. `blocks` is
    the size of a block along each axis; the last block of an axis may be smaller. Scales have as many dimensions as
    elements. `source` are the numbers as they were given, `policy` how elements were rounded.
    """

    elements: Codes
    scales: Codes
    format: BlockFormat
    blocks: tuple[int, ...]
    source: _Source
    policy: Policy

    @cached_property
    def statistics(self) -> QuantisationError:
        """The error, worked out when it is first asked for.

        Raises:
            ReadError: the array that was quantised is another by now.
        """
        return _statistics(self)

    def __repr__(self) -> str:
        shape, size = ("x".join(map(str, each)) or "1" for each in (self.elements.shape, self.blocks))
        return f"Quantised({self.format.name}, {shape}, {self.scales.size} scales {self.format.scale.name} of {size})"

    def dequantise(self, dst: FormatLike = "f32") -> Codes:
        """Return the numbers represented by elements and scales, each rounded once to `dst`.

        Raises:
            ReadError: the format is unknown.
        """
        return _dequantised(self.elements, self.scales, self.format, self.blocks, format_named(format_name(dst)))


@arguments_checked
def quantise(
    array: ArrayLike,
    src: FormatLike | None = None,
    dst: str | None = None,
    *,
    block: int | Sequence[int] | None = None,
    per: str | None = None,
    axis: int = -1,
    scale: str | None = None,
    scale_format: FormatLike | None = None,
    rounding: str | None = None,
    zero_scale: str = "smallest",
) -> Quantised:
    """Quantise an array to a block format, bit-exactly.

        quantise(x, "mxfp8_e4m3"), quantise(x, "f32", "i8", per="token"), quantise(x, "e4m3fn", block=(128, 128))

    Args:
        array: numbers or codes of a float format, any shape; lists are f64 unless `src` says otherwise.
        src: format of the array; None: that of its dtype. If only one format is given, it is `dst`.
        dst: a block format (mxfp8_e4m3, mxfp8_e5m2, mxfp6_e3m2, mxfp6_e2m3, mxfp4_e2m1, mxint8, nvfp4), or the format
            of the elements, which then have f32 scales.
        block: elements along `axis` that share a scale, or sizes along the last axes; None: the format's own.
        per: block or group (runs along `axis`), token (all along `axis`), channel (all but `axis`), tensor; None: block
            if there is a size, otherwise token.
        axis: the axis of blocks, tokens and channels.
        scale: rule of the scale: floor, ceil, even, rceil or nearest; None: the format's own.
        scale_format: e8m0, f32, e4m3fn or another float format with NaN; None: the format's own.
        rounding: rounding of the elements; None: rint (HiFloat8: round).
        zero_scale: scale of blocks of zeros: smallest (0 if the format has it) or one.

    Returns:
        Elements and scales; their error is worked out when `statistics` is asked for. Numbers beyond the largest
        element are clamped to it, as are infinities; a block that holds NaN has the scale NaN, and its elements are
        NaN, or 0 in formats without it.

    Raises:
        ReadError: a format, rule, span, axis or dtype is unknown, or a block has no elements.
        IllegalError: the source is not a float format, or the format cannot have the elements or scales.
    """
    if dst is None:
        if not isinstance(src, str):
            raise ReadError("the block format is missing", legal=["quantise(x, 'mxfp8_e4m3')"])
        src, dst = None, src
    assert dst is not None
    chosen = block_format(dst)
    if scale_format is not None:
        chosen = chosen.with_scale(format_named(format_name(scale_format)))
    if scale is not None:
        if str(scale).lower() not in RULES:
            raise ReadError(f"unknown scale rule '{scale}'", legal=RULES)
        chosen = replace(chosen, rule=ScaleRule(str(scale).lower()))
    if zero_scale not in (legal := ("smallest", "one")):
        raise ReadError(f"unknown scale of zeros '{zero_scale}'", legal=legal)
    source = _source(array, src)
    blocks = _blocks(source.codes.shape, chosen.block if block is None else block, per, axis)
    policy, zero_is_one = _policy(chosen.element, rounding), zero_scale == "one"
    make = _by_exponents if _scales_exactly(source, chosen, blocks, policy) else _by_quotients
    elements, scales = make(source, chosen, blocks, policy, zero_is_one)
    return Quantised(
        array_from_codes(elements, chosen.element),
        array_from_codes(scales, chosen.scale),
        chosen,
        blocks,
        source,
        policy,
    )


@arguments_checked
def dequantise(
    elements: Codes | Quantised,
    scales: Codes | None = None,
    src: str | None = None,
    dst: FormatLike = "f32",
    *,
    block: int | Sequence[int] | None = None,
    per: str | None = None,
    axis: int = -1,
    scale_format: FormatLike | None = None,
) -> Codes:
    """Return the numbers represented by elements and scales, each rounded once to `dst`.

        dequantise(quantised), dequantise(elements, scales, "mxfp8_e4m3", "bf16")

    Args:
        elements: the result of `quantise`, which is complete, or an array of elements.
        scales: one for each block, of any shape with as many elements.
        src: the block format, as for `quantise`.
        dst: format of the result.
        block, per, axis, scale_format: see `quantise`.

    Raises:
        ReadError: a format, span or dtype is unknown, or the scales do not fit the blocks.
        IllegalError: see `quantise`.
    """
    if isinstance(elements, Quantised):
        return elements.dequantise(dst)
    if scales is None or src is None:
        raise ReadError("scales and the block format are missing", legal=["dequantise(e, s, 'mxfp8_e4m3')"])
    chosen = block_format(src)
    if scale_format is not None:
        chosen = chosen.with_scale(format_named(format_name(scale_format)))
    blocks = _blocks(np.shape(elements), chosen.block if block is None else block, per, axis)
    counts = tuple(-(-size // each) for size, each in zip(np.shape(elements), blocks, strict=True))
    if np.size(scales) != prod(counts):
        raise ReadError(f"{np.size(scales)} scales for {prod(counts)} blocks", legal=(f"scales of shape {counts}",))
    return _dequantised(elements, np.asarray(scales).reshape(counts), chosen, blocks, format_named(format_name(dst)))


@dataclass(frozen=True, slots=True)
class _Source:
    """Codes of a float format: the memory of the array that was given."""

    codes: Codes
    format: Format


def _source(array: ArrayLike, src: FormatLike | None) -> _Source:
    """Return the codes of an array.

    Raises:
        ReadError: a dtype that no format has, or not that of `src`.
        IllegalError: not a float format.
    """
    fmt = None if src is None else format_named(format_name(src))
    given: Codes
    if isinstance(array, np.ndarray | np.generic):
        given = np.asarray(array)
    else:
        dtype = None if fmt is None else native_dtype(fmt)
        try:
            given = np.asarray(array, np.float64 if dtype is None else dtype)
        except (TypeError, ValueError) as error:
            raise ReadError(f"the values to quantise are not an array of numbers: {error}") from None
    fmt = format_named(format_name(given.dtype)) if fmt is None else fmt
    if isinstance(fmt, IntFormat) or not fmt.has_zero:
        legal = [name for name, row in FORMATS.items() if not isinstance(row, IntFormat) and row.has_zero]
        raise IllegalError(f"quantised are floats, not {fmt.name}", legal=legal)
    return _Source(codes_from_array(given, fmt), fmt)


def _wide(codes: Codes, fmt: Format) -> F64:
    """Return the exact numbers of codes of up to 53 significant bits."""
    wide = codes if fmt.name == "f64" else convert_codes(codes, fmt, FORMATS["f64"], _EXACT)
    return wide.astype(np.uint64, copy=False).view(np.float64)


_EXACT = Policy(Rounding.RINT, Overflow.SPECIAL)


def _policy(element: Format, rounding: str | None) -> Policy:
    """Return how elements are rounded.

    Raises:
        IllegalError: a rounding that the format does not have, or that needs random words.
    """
    mode = default_rounding(element) if rounding is None else mode_named(Rounding, str(rounding), "rounding")
    if mode is Rounding.STOCHASTIC:
        raise IllegalError("elements are not rounded by 'stochastic'", legal=("rint", "trunc"))
    return abstract_policy(FORMATS["f64"], element, mode, Overflow.SATURATE)


def _blocks(shape: tuple[int, ...], block: int | Sequence[int] | None, per: str | None, axis: int) -> tuple[int, ...]:
    """Return the size of a block along each axis.

    Raises:
        ReadError: the span is unknown, the axis does not exist, or a size is invalid or redundant.
    """
    span = ("token" if block is None else "block") if per is None else str(per).lower()
    if span not in SPANS:
        raise ReadError(f"unknown span '{per}'", legal=SPANS)
    if span == "tensor" or not shape:
        return tuple(max(1, size) for size in shape)
    if isinstance(block, tuple | list) and span in ("block", "group"):
        if len(block) > len(shape) or not block or not all(map(_is_size, block)):
            raise ReadError(f"blocks of {tuple(block)} in an array of shape {shape}", legal=("sizes from 1",))
        return (1,) * (len(shape) - len(block)) + tuple(map(int, block))
    if not isinstance(axis, int | np.integer) or not -len(shape) <= axis < len(shape):
        raise ReadError(f"no axis {axis} in shape {shape}", legal=(f"{-len(shape)} to {len(shape) - 1}",))
    at = int(axis) % len(shape)
    whole = [max(1, size) for size in shape]
    if span == "channel":
        return tuple(1 if each == at else size for each, size in enumerate(whole))
    size = whole[at] if span == "token" else block
    if not _is_size(size):
        what = "the size of the blocks is missing" if size is None else f"a block of {size!r} elements"
        raise ReadError(what, legal=("block=32",))
    assert isinstance(size, int)
    return tuple(size if each == at else 1 for each in range(len(shape)))


def _is_size(given: object) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and given >= 1


def _by_quotients(
    source: _Source, chosen: BlockFormat, blocks: tuple[int, ...], policy: Policy, zero_is_one: bool
) -> tuple[Codes, Codes]:
    """Return the codes of elements and scales, from exact quotients in f64."""
    numbers = _wide(source.codes, source.format)
    greatest = np.abs(numbers)
    for axis, size in enumerate(blocks):
        if size > 1:
            starts = np.arange(0, greatest.shape[axis], size)
            greatest = np.maximum.reduceat(greatest, starts, axis=axis) if starts.size else greatest
    assert isinstance(chosen.scale, FloatFormat)
    scales = scale_codes(
        greatest, chosen.element, chosen.unit_exponent, chosen.scale, chosen.rule, zero_is_one=zero_is_one
    )
    scaled, _ = _scaled(numbers, scales, chosen, blocks)
    return convert_codes(scaled.view(np.uint64), FORMATS["f64"], chosen.element, policy), scales


def _scaled(numbers: F64, scales: Codes, chosen: BlockFormat, blocks: tuple[int, ...]) -> tuple[F64, F64]:
    """Return the quotients of numbers and scales, and the scale of each number."""
    divisors = _spread(np.ldexp(_wide(scales, chosen.scale), chosen.unit_exponent), numbers.shape, blocks)
    scaled = quotient(numbers, np.where(divisors == 0, 1.0, divisors))  # 0 / 1 in blocks of zeros
    return np.where(np.isnan(divisors), np.nan, scaled), divisors


def _statistics(made: Quantised) -> QuantisationError:
    chosen = made.format
    codes, scales = codes_from_array(made.elements, chosen.element), codes_from_array(made.scales, chosen.scale)
    numbers = _wide(made.source.codes, made.source.format)
    scaled, divisors = _scaled(numbers, scales, chosen, made.blocks)
    if not np.array_equal(convert_codes(scaled.view(np.uint64), FORMATS["f64"], chosen.element, made.policy), codes):
        raise ReadError("the array has changed since it was quantised", legal=("statistics before the array changes",))
    values = _wide(codes, chosen.element) * divisors
    nan_blocks = int(np.isnan(_wide(scales, chosen.scale)).sum())
    return error_statistics(numbers, values, _beyond(scaled, chosen.element, made.policy), nan_blocks)


# Blocks along the last axis whose scales are powers of two: f32 times a power of two is exact, or so small that every
# element rounds it to zero.

_TOWARDS_ZERO_AT_LAST = (Rounding.RINT, Rounding.ROUND, Rounding.TRUNC)
"""Modes by which numbers far below the smallest element become zero."""

_PIECE = 1 << 16
"""Elements at a time, which stay in the second-level cache."""


def _scales_exactly(source: _Source, chosen: BlockFormat, blocks: tuple[int, ...], policy: Policy) -> bool:
    along_rows = bool(blocks) and all(size == 1 for size in blocks[:-1])
    powers = chosen.scale.name == "e8m0" and chosen.rule is not ScaleRule.NEAREST
    return along_rows and powers and policy.rounding in _TOWARDS_ZERO_AT_LAST and source.format.name != "f64"


def _by_exponents(
    source: _Source, chosen: BlockFormat, blocks: tuple[int, ...], policy: Policy, zero_is_one: bool
) -> tuple[Codes, Codes]:
    """Return the codes of elements and scales piece by piece."""
    shape, block = source.codes.shape, blocks[-1]
    count = -(-shape[-1] // block)
    codes = source.codes.reshape(math.prod(shape[:-1]), shape[-1])
    elements = np.empty(codes.shape, code_dtype(chosen.element))
    scales = np.empty((codes.shape[0], count), code_dtype(chosen.scale))
    cols = min(max(_PIECE // block, 1), max(count, 1)) * block
    rows = max(_PIECE // cols, 1)
    work = _ExponentWork(chosen, policy, zero_is_one)
    for top in range(0, codes.shape[0], rows):
        for left in range(0, shape[-1], cols):
            piece = codes[top : top + rows, left : left + cols]
            whole = piece.shape[1] // block * block
            first = left // block
            for begin, end in ((0, whole), (whole, piece.shape[1])):  # the last block may be smaller
                if begin < end:
                    size = min(block, end - begin)
                    run = np.ascontiguousarray(piece[:, begin:end]).reshape(-1, size)
                    made, powers = work.quantised(_single(run, source.format))
                    elements[top : top + rows, left + begin : left + end] = made.reshape(-1, end - begin)
                    at = first + begin // block
                    scales[top : top + rows, at : at + (end - begin) // size] = powers.reshape(len(piece), -1)
    return elements.reshape(shape), scales.reshape(*shape[:-1], count)


def _single(codes: Codes, fmt: Format) -> NDArray[np.float32]:
    """Return the exact numbers of codes of up to 24 significant bits."""
    wide = codes if fmt.name == "f32" else convert_codes(codes, fmt, FORMATS["f32"], _EXACT)
    return wide.astype(np.uint32, copy=False).view(np.float32)


class _ExponentWork:
    """Scales and elements of rows that are a block each."""

    def __init__(self, chosen: BlockFormat, policy: Policy, zero_is_one: bool) -> None:
        self.chosen, self.policy, self.zero_is_one = chosen, policy, zero_is_one
        assert isinstance(chosen.scale, FloatFormat)
        self._exponents = chosen.scale.bias - chosen.unit_exponent - np.arange(256)
        with np.errstate(over="ignore"):
            self._factors = np.ldexp(1.0, self._exponents).astype(np.float32)
        nan = np.array([math.nan])
        self._memory = np.empty((2, _PIECE), np.uint32)
        self._nan = convert_codes(nan.view(np.uint64), FORMATS["f64"], chosen.element, policy)[0]

    def quantised(self, numbers: NDArray[np.float32]) -> tuple[Codes, Codes]:
        """Return the codes of the elements, which the next call overwrites, and of the scales."""
        chosen = self.chosen
        assert isinstance(chosen.scale, FloatFormat)
        memory = self._memory if numbers.size <= _PIECE else np.empty((2, numbers.size), np.uint32)
        work, result = memory[0, : numbers.size].reshape(numbers.shape), memory[1, : numbers.size]
        magnitudes = np.bitwise_and(numbers.view(np.uint32), np.uint32(0x7FFFFFFF), out=work)
        starts = np.arange(0, magnitudes.size, magnitudes.shape[1])
        greatest = np.maximum.reduceat(magnitudes.reshape(-1), starts).view(np.float32).astype(np.float64)
        scales = scale_codes(
            greatest, chosen.element, chosen.unit_exponent, chosen.scale, chosen.rule, zero_is_one=self.zero_is_one
        )
        factors = self._factors[scales]
        with np.errstate(all="ignore"):
            scaled = np.multiply(numbers, factors[:, None], out=work.view(np.float32))
        if np.isinf(factors).any():  # beyond f32: such blocks are of zeros, or so small that two steps are exact
            large = np.isinf(factors)
            scaled[large] = np.ldexp(numbers[large], self._exponents[scales[large], None])
        codes = result.view(code_dtype(chosen.element))[: numbers.size]
        convert_codes(work.reshape(-1), FORMATS["f32"], chosen.element, self.policy, out=codes)
        codes = codes.reshape(numbers.shape)
        unknown = scales == chosen.scale.nan_code
        if unknown.any():
            codes[unknown] = self._nan
        return codes, scales


def _beyond(scaled: F64, element: Format, policy: Policy) -> NDArray[np.bool_]:
    """Return a mask of numbers that would round beyond the largest element, were there more: clamping changes these.

    They are rounded to multiples of the distance of the two largest elements, which have that spacing.
    """
    top = largest(element)
    step = 0 if isinstance(element, IntFormat) else math.frexp(top)[1] - 1 - _top_fraction_bits(element)
    least = element.minimum if isinstance(element, IntFormat) else -math.ldexp(top, -step)
    counted = np.ldexp(np.where(np.isnan(scaled), 0.0, scaled), -step)
    unbounded = Policy(policy.rounding, Overflow.SATURATE)
    multiples = convert_codes(counted.view(np.uint64), FORMATS["f64"], FORMATS["i32"], unbounded).view(np.int32)
    return (multiples > math.ldexp(top, -step)) | (multiples < least)


def _spread(scales: F64, shape: tuple[int, ...], blocks: tuple[int, ...]) -> F64:
    """Return the scale of each element."""
    for axis, size in enumerate(blocks):
        if scales.shape[axis] != shape[axis]:
            scales = np.repeat(scales, size, axis=axis)
            scales = scales[(slice(None),) * axis + (slice(shape[axis]),)]
    return scales


def _dequantised(elements: Codes, scales: Codes, chosen: BlockFormat, blocks: tuple[int, ...], dst: Format) -> Codes:
    values = _wide(codes_from_array(np.asarray(elements), chosen.element), chosen.element)
    factors = np.ldexp(_wide(codes_from_array(scales, chosen.scale), chosen.scale), chosen.unit_exponent)
    with np.errstate(invalid="ignore"):
        products = values * _spread(factors, values.shape, blocks)  # exact: 16 bits times 24
    codes = convert_codes(products.view(np.uint64), FORMATS["f64"], dst, abstract_policy(FORMATS["f64"], dst))
    return array_from_codes(codes, dst)
