"""Operators of TOSA: RESCALE in exact integers with the outcomes that TOSA distinguishes, TABLE and helper functions.

Definitions: type_conversion.adoc and RESCALE.tosac of the TOSA specification (docs/reference/semantics.md section 2).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import FORMATS, Codes, Format, IntFormat, format_named
from castsim.numerics.blocks import check_codes, code_dtype
from castsim.running.acceptance import AcceptanceSets, order_keys
from castsim.targets.loader import load_specification
from castsim.targets.specification import RescaleRounding, RescaleRules, Specification

_I64 = NDArray[np.int64]

SINGLE_ROUND, INEXACT_ROUND, DOUBLE_ROUND = "SINGLE_ROUND", "INEXACT_ROUND", "DOUBLE_ROUND"


class GraphValidity(StrEnum):
    """The validity of a TOSA graph."""

    VALID = "valid"
    """The result is defined."""
    ERROR = "error"
    """The graph is illegal; an implementation must reject it."""
    UNPREDICTABLE = "unpredictable"
    """A requirement on the values is violated; an implementation may return anything."""


@dataclass(frozen=True, slots=True)
class Rescale:
    """A RESCALE operator with its constant operands; names and defaults are TOSA's.

    `src` and `dst` are the signless types `i8`, `i16`, `i32`, `i48`. `multiplier` and `shift` hold one number, or with
    `per_channel` one per entry of the last dimension. Zero points are mathematical values (0 to 255 for an unsigned
    i8). A rounding mode may also be given as a number.
    """

    src: str
    dst: str
    multiplier: tuple[int, ...]
    shift: tuple[int, ...]
    scale32: bool = True
    rounding_mode: str | int = SINGLE_ROUND
    per_channel: bool = False
    input_zp: int = 0
    output_zp: int = 0
    input_unsigned: bool = False
    output_unsigned: bool = False


@dataclass(frozen=True, slots=True)
class Rescaled:
    """Result of RESCALE: the validity and its reason, the required profiles and extensions, and the acceptable outputs.

    `sets` is None after an error; its format is the unsigned one if the output is unsigned. When unpredictable,
    every output is acceptable.
    """

    outcome: GraphValidity
    reasons: tuple[str, ...]
    requires: tuple[str, ...]
    sets: AcceptanceSets | None


def rescale(operator: Rescale, codes: Codes, spec: Specification | str = "tosa") -> Rescaled:
    """Execute RESCALE on codes of the source type, unsigned integers of its storage width; channel last.

    Raises:
        ReadError: a type or rounding mode is unknown; an operand type cannot hold a multiplier, shift or zero point;
            the codes are not those of the source.
        IllegalError: the specification has no RESCALE.
    """
    specification = load_specification(spec) if isinstance(spec, str) else spec
    rules = specification.rescale
    if rules is None:
        raise IllegalError(f"{specification.name} has no RESCALE")
    operator = _named(operator, rules)
    mode = _mode(operator, rules)
    _check_operands(operator, rules)
    src = read_as(operator.src, operator.input_unsigned)
    dst = read_as(operator.dst, operator.output_unsigned)
    codes = check_codes(codes, src)
    requires = tuple(dict.fromkeys((*rules.inputs[operator.src], *mode.requires)))
    if errors := tuple(_errors(operator, mode, rules, codes.shape)):
        return Rescaled(GraphValidity.ERROR, errors, requires, None)
    values = _values(codes, src) - operator.input_zp
    multiplier, shift = (np.array(operand, np.int64) for operand in (operator.multiplier, operator.shift))
    reasons = tuple(operand_violations(operator, rules))
    if not reasons:
        scaled = _apply_scale(values, multiplier, shift, operator, rules)
        reasons = tuple(_value_violations(values, shift, scaled, operator))
    if reasons:
        return Rescaled(GraphValidity.UNPREDICTABLE, reasons, requires, _anything(dst, codes.shape))
    if operator.rounding_mode == INEXACT_ROUND:
        low, high = _bounds(values, multiplier, shift, operator.output_zp, rules)
    else:
        low = high = np.clip(scaled + operator.output_zp, *_limits(FORMATS["i32"]))
    return Rescaled(
        GraphValidity.VALID, (), requires, _between(dst, np.clip(low, *_limits(dst)), np.clip(high, *_limits(dst)))
    )


def _named(operator: Rescale, rules: RescaleRules) -> Rescale:
    """Return the operator with the name of its rounding mode where it has the number."""
    names = {mode.number: name for name, mode in rules.rounding_modes.items()}
    mode = operator.rounding_mode
    return operator if isinstance(mode, str) else replace(operator, rounding_mode=names.get(mode, str(mode)))


def _mode(operator: Rescale, rules: RescaleRules) -> RescaleRounding:
    mode = rules.rounding_modes.get(str(operator.rounding_mode))
    if mode is None:
        raise ReadError(f"unknown rounding mode '{operator.rounding_mode}'", legal=rules.rounding_modes)
    return mode


def _check_operands(operator: Rescale, rules: RescaleRules) -> None:
    """Reject operands that no TOSA graph can hold: other types, and numbers that their operands cannot store."""
    for name, legal in ((operator.src, tuple(rules.inputs)), (operator.dst, rules.outputs)):
        if name not in legal:
            raise ReadError(f"RESCALE does not take type '{name}' here", legal=legal)
    multiplier = rules.wide_multiplier if operator.scale32 else rules.narrow_multiplier
    for what, numbers, name in (
        ("multiplier", operator.multiplier, multiplier),
        ("shift", operator.shift, rules.shift_type),
        ("input_zp", (operator.input_zp,), read_as(operator.src, operator.input_unsigned).name),
        ("output_zp", (operator.output_zp,), read_as(operator.dst, operator.output_unsigned).name),
    ):
        low, high = _limits(format_named(name))
        for number in numbers:
            if not low <= number <= high:
                raise ReadError(f"{what} {number} is not a value of {name}", legal=(f"{low} to {high}",))


def read_as(name: str, unsigned: bool) -> IntFormat:
    """Return the format in which signless integers are read."""
    # There is no unsigned i48, and asking for it is an error of the graph: its values do not matter then.
    read_format = FORMATS.get(f"u{name[1:]}" if unsigned else name, FORMATS[name])
    assert isinstance(read_format, IntFormat)
    return read_format


def _errors(operator: Rescale, mode: RescaleRounding, rules: RescaleRules, shape: tuple[int, ...]) -> list[str]:
    """Return the ERROR_IF conditions that hold, and shapes of operands that do not fit."""
    errors = []
    for what, name, unsigned, zero_point in (
        ("input", operator.src, operator.input_unsigned, operator.input_zp),
        ("output", operator.dst, operator.output_unsigned, operator.output_zp),
    ):
        legal = rules.unsigned_zero_points.get(name, ()) if unsigned else ()
        if zero_point and name not in rules.any_zero_point and zero_point not in legal:
            errors.append(f"{what}_zp {zero_point} with {'unsigned ' if unsigned else ''}{name}")
    if operator.scale32 and operator.src not in rules.wide_inputs:
        errors.append(f"scale32 with {operator.src} input")
    if mode.wide_only and not operator.scale32:
        errors.append(f"{operator.rounding_mode} without scale32")
    if operator.input_unsigned and operator.output_unsigned:
        errors.append("input_unsigned and output_unsigned together")
    for attribute, asked in (
        ("input_unsigned", operator.input_unsigned),
        ("output_unsigned", operator.output_unsigned),
    ):
        for what, name in (("input", operator.src), ("output", operator.dst)):
            if asked and name not in rules.unsigned_types:
                errors.append(f"{attribute} with {name} {what}")
    if operator.per_channel and not shape:
        return [*errors, "per_channel with an input of rank 0"]
    expected = shape[-1] if operator.per_channel else 1
    for what, operand in (("multiplier", operator.multiplier), ("shift", operator.shift)):
        if len(operand) != expected:
            errors.append(f"{what} has {len(operand)} entries for {expected}")
    return errors


def operand_violations(operator: Rescale, rules: RescaleRules) -> list[str]:
    """Return the violated REQUIRE conditions on multiplier and shift."""
    violations = [f"multiplier {number} is negative" for number in sorted({m for m in operator.multiplier if m < 0})]
    low, high = rules.min_shift, rules.max_shift
    outside = sorted({number for number in operator.shift if not low <= number <= high})
    return [*violations, *(f"shift {number} is outside {low} to {high}" for number in outside)]


def _value_violations(values: _I64, shift: _I64, scaled: _I64, operator: Rescale) -> list[str]:
    """Return the violated REQUIRE conditions on values, each with its first value."""
    if operator.scale32:
        half = np.int64(1) << (shift - 1)
        outside = (values < -half) | (values >= half)
        what = "value {} is outside -2**(shift - 1) to 2**(shift - 1) - 1"
        shown = values
    else:
        low, high = _limits(FORMATS["i32"])
        outside = (scaled < low) | (scaled > high)
        what = "scaled value {} is outside i32"
        shown = scaled
    return [what.format(int(shown[outside][0]))] if outside.any() else []


def _apply_scale(values: _I64, multiplier: _I64, shift: _I64, operator: Rescale, rules: RescaleRules) -> _I64:
    """Return apply_scale_32 or apply_scale_16 of values; 63 bits and a sign hold every legal product."""
    rounding = np.int64(1) << (shift - 1)
    if operator.rounding_mode == DOUBLE_ROUND:
        term = np.where(shift > rules.double_round_above_shift, np.int64(1) << rules.double_round_bit, 0)
        rounding = rounding + np.where(values >= 0, term, -term)
    scaled: _I64 = (values * multiplier + rounding) >> shift
    return scaled


def _bounds(values: _I64, multiplier: _I64, shift: _I64, zero_point: int, rules: RescaleRules) -> tuple[_I64, _I64]:
    """Return the smallest and the largest acceptable integer of INEXACT_ROUND, before clipping to the type.

    TOSA defines these bounds by float64 arithmetic, its roundings included, and so they are computed.
    """
    exact = np.ldexp(values.astype(np.float64) * multiplier.astype(np.float64), -shift)
    error = 0.5 + np.ldexp(rules.relative_errors * np.abs(exact), rules.relative_error_exponent)
    return _integers(np.ceil(exact - error + zero_point)), _integers(np.floor(exact + error + zero_point))


def _integers(numbers: NDArray[np.float64]) -> _I64:
    """Convert integral numbers; those beyond int32 are clipped by every output type, so to a little more here."""
    return np.clip(numbers, -(2.0**40), 2.0**40).astype(np.int64)


def _values(codes: Codes, src: IntFormat) -> _I64:
    if src.signed:
        return order_keys(codes, src)
    return codes.astype(np.int64)


def _limits(fmt: Format) -> tuple[int, int]:
    assert isinstance(fmt, IntFormat)
    return fmt.minimum, fmt.maximum


def _codes(values: _I64, dst: IntFormat) -> Codes:
    return values.astype(np.dtype(f"{'i' if dst.signed else 'u'}{dst.storage_bits // 8}")).view(code_dtype(dst))


def _between(dst: IntFormat, low: _I64, high: _I64) -> AcceptanceSets:
    lowest, none = _codes(low, dst), np.zeros(low.shape, bool)
    return AcceptanceSets(dst, lowest, _codes(high, dst), lowest, ~none, none, none)


def _anything(dst: IntFormat, shape: tuple[int, ...]) -> AcceptanceSets:
    codes, none = np.zeros(shape, code_dtype(dst)), np.zeros(shape, bool)
    return AcceptanceSets(dst, codes, codes, codes, none, none, ~none)


# The helper functions of the TOSA specification, as its introduction writes them, and TABLE.
#
# Source: TOSA 1.0, introduction: scaling helpers and general unary functions; operator TABLE. Arguments outside what a
# function requires make its result unpredictable, which is an error here.

LOOKUP_ENTRIES = 513
"""Number of 16-bit entries of an interpolated table."""

BYTE_ENTRIES = 256
"""Number of entries of a byte table, one for each source."""

_LOW, _HIGH = -32768, 32767


class ScaleT(NamedTuple):
    """A scale of `multiplier * 2**-shift`, the specification's `scale_t`."""

    multiplier: int
    shift: int


def reciprocal_scale(value: int) -> ScaleT:
    """Return the scale that turns a product into a quotient by `value`, an unsigned 32-bit integer.

    Raises:
        IllegalError: 0, not such an integer, or one of the few (2**30 + 1, 2**31 + 1) whose multiplier exceeds i32.
    """
    _require(0 < value < 1 << 32, f"value {value} is not from 1 to 2**32 - 1")
    k = (value - 1).bit_length()  # (1 << k) / 2 < value <= (1 << k)
    multiplier = (((1 << 30) + 1) << k) // value
    _require(multiplier < 1 << 31, f"the multiplier for {value}, {multiplier}, is not an i32")
    return ScaleT(multiplier, 30 + k)


def apply_scale_32(value: int, multiplier: int, shift: int, *, double_round: bool = False) -> int:
    """Return `value * multiplier * 2**-shift`, rounded half up, or in two steps with `double_round`.

    Raises:
        IllegalError: a requirement of the function is violated.
    """
    _check_scale(multiplier, shift, 32)
    _require(-(1 << (shift - 1)) <= value < 1 << (shift - 1), f"value {value} is outside of shift - 1 bits and a sign")
    _require(-(1 << 31) <= value < 1 << 31, f"value {value} is not an i32")
    rounding = 1 << (shift - 1)
    if double_round and shift > 31:
        rounding += 1 << 30 if value >= 0 else -(1 << 30)
    return (value * multiplier + rounding) >> shift


def apply_scale_16(value: int, multiplier: int, shift: int) -> int:
    """Return `value * multiplier * 2**-shift` for a 48-bit value and a 15-bit multiplier, rounded half up.

    Raises:
        IllegalError: a requirement of the function is violated.
    """
    _check_scale(multiplier, shift, 16)
    _require(-(1 << 47) <= value < 1 << 47, f"value {value} is not an i48")
    result = (value * multiplier + (1 << (shift - 1))) >> shift
    _require(-(1 << 31) <= result < 1 << 31, f"result {result} is not an i32")
    return result


def _check_scale(multiplier: int, shift: int, bits: int) -> None:
    _require(0 <= multiplier < 1 << (bits - 1), f"multiplier {multiplier} is not from 0 to 2**{bits - 1} - 1")
    _require(2 <= shift <= 62, f"shift {shift} is not from 2 to 62")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise IllegalError(f"unpredictable: {what}")


def generate_lookup_table(reference: Callable[[int], int]) -> NDArray[np.int16]:
    """Return the table of 513 entries of a function of -256 to 256, its values clipped to i16."""
    values = (max(_LOW, min(_HIGH, int(reference(at)))) for at in range(-256, 257))
    return np.fromiter(values, np.int16, LOOKUP_ENTRIES)


def apply_lookup_s(table: NDArray[np.integer], value: NDArray[np.integer] | int) -> NDArray[np.int32]:
    """Return the results of a table of 513 entries for values, clipped to i16: 16 bits, and 7 of interpolation.

    Raises:
        ReadError: the table has another form.
        IllegalError: the difference of two neighbouring entries exceeds i16.
    """
    entries = _entries(table, np.int16, LOOKUP_ENTRIES)
    clipped = np.clip(np.asarray(value, np.int64), _LOW, _HIGH)
    index, fraction = (clipped - _LOW) >> 7, clipped & 0x7F
    base = entries[index]
    slope = entries[index + 1] - base
    far = (slope < _LOW) | (slope > _HIGH)
    if far.any():
        _require(False, f"a step of {int(np.ravel(slope)[np.ravel(far)][0])} between two entries is not an i16")
    results: NDArray[np.int32] = np.asarray((base << 7) + slope * fraction, np.int32)
    return results


def table(values: NDArray[np.integer], entries: NDArray[np.integer]) -> NDArray[np.integer]:
    """Return TABLE of integers: i8 by 256 entries of i8, i16 by 513 entries of i16, interpolated, to i32.

    Raises:
        ReadError: the values have another type, or the table does not fit them.
        IllegalError: see `apply_lookup_s`.
    """
    if values.dtype == np.int8:
        chosen: NDArray[np.integer] = _entries(entries, np.int8, BYTE_ENTRIES)[values.astype(np.int64) + 128]
        return chosen.astype(np.int8)
    if values.dtype == np.int16:
        return apply_lookup_s(entries, values)
    raise ReadError(f"TABLE takes no values of {values.dtype}", legal=("int8", "int16"))


def _entries(given: NDArray[np.integer], dtype: type[np.integer], count: int) -> NDArray[np.int64]:
    if not isinstance(given, np.ndarray) or given.dtype != dtype or given.shape != (count,):
        shown = f"{getattr(given, 'dtype', type(given).__name__)}{list(np.shape(given))}"
        raise ReadError(f"the table is {shown}", legal=(f"{count} entries of {np.dtype(dtype)}",))
    return given.astype(np.int64)
