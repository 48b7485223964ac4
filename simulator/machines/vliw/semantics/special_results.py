"""Results by the class or the bits of the operand: CALC_FP_SPECIAL, division steps, intervals, POPCNT to FORM_FP_NUM.

Source: docs/reference/tpc.md sections 5.4 to 5.6; results by class follow IEEE 754 (inferred).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, Codes, FloatFormat, Format
from castsim.isa.tpc.program import File, Immediate, Register, TpcInstruction
from castsim.machines.vliw.semantics.moves import narrow_result, scalar
from castsim.machines.vliw.semantics.operands import (
    WORD_MASK,
    Effects,
    OperandValues,
    State,
    Unit,
    broadcast,
    check_element,
    destination_file,
    element_format,
    elements,
    merged,
    nan_code,
    vector_of,
    whole_bytes,
)
from castsim.numerics.blocks import code_dtype
from castsim.targets.vliw import VliwTarget

# Values that no source states: the instruction is read, encoded, linted and timed, and refused where values count.


class UnstatedError(IllegalError):
    """No source states the result of an instruction, or of one of its words."""


# Values of UDIV_STEP, UDIV_4STEP and UDIV (docs/reference/tpc.md section 5.6): all of it inferred.

_STEPS = {"udiv_step": 1, "udiv_4step": 4}
DIVISIONS = (*_STEPS, "udiv")
"""The mnemonics of division steps."""

_WORD_BITS = 32
_UNSIGNED = ("u32", "u16", "u8")


@dataclass(frozen=True, slots=True)
class Division(Unit):
    """A prepared division, or steps of one.

    A step shifts remainder and dividend left by one, subtracts the divisor from the remainder if that does not become
    negative, and then sets the lowest bit. The pair has the dividend, finally the quotient, in its lower register and
    the remainder in its upper one, or (option division_pair) the other way round.
    """

    bits: int

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return quotient, or quotient and remainder."""
        mask = (1 << self.bits) - 1
        if self.instruction.mnemonic in _STEPS:
            divisor = scalar(operands.sources["src_a"]) & mask
            assert isinstance(operands.income, int)
            return Effects(self._pair(*self._stepped(*self._parts(operands.income), divisor)))
        dividend = scalar(operands.sources["src_a"]) & mask
        divisor = scalar(self.value(operands, "src_b")) & mask
        quotient, remainder = divmod(dividend, divisor) if divisor else (mask, dividend)
        paired = destination_file(self.instruction) is File.Z
        return Effects(self._pair(quotient, remainder) if paired else quotient)

    def _stepped(self, quotient: int, remainder: int, divisor: int) -> tuple[int, int]:
        mask = (1 << self.bits) - 1
        for _ in range(_STEPS[self.instruction.mnemonic]):
            remainder = remainder << 1 | quotient >> (self.bits - 1)
            quotient = quotient << 1 & mask
            if remainder >= divisor:
                remainder, quotient = remainder - divisor & mask, quotient | 1
        return quotient, remainder

    def _parts(self, pair: int) -> tuple[int, int]:
        mask = (1 << self.bits) - 1
        lower, upper = pair & mask, pair >> _WORD_BITS & mask
        return (upper, lower) if self._swapped() else (lower, upper)

    def _pair(self, quotient: int, remainder: int) -> int:
        lower, upper = (remainder, quotient) if self._swapped() else (quotient, remainder)
        return lower & WORD_MASK | (upper & WORD_MASK) << _WORD_BITS

    def _swapped(self) -> bool:
        return self.target.option("division_pair") == "remainder_first"


def prepare_division(instruction: TpcInstruction, target: VliwTarget) -> Division:
    """Check a division.

    Raises:
        IllegalError: it lacks the type.
        UnstatedError: an option refuses it, or the steps have no register for the remainder.
    """
    name = check_element(instruction, target, instruction.type, _UNSIGNED)
    if target.option("division_values") == "refuse":
        message = f"no source documents what {instruction.mnemonic} computes (option division_values)"
        raise UnstatedError(message, legal=("castsim lint", "castsim run --timing-only"))
    division = Division(instruction, target, FORMATS[name].bits)
    if instruction.mnemonic in _STEPS and destination_file(instruction) is not File.Z:
        operand = instruction.operand("dest")
        assert isinstance(operand, Register)
        first = operand.index - operand.index % 2
        message = f"{instruction.mnemonic}: a step needs a pair, for dividend and remainder, not {operand}"
        raise UnstatedError(message, legal=(f"Z{first}",))
    return division


_SPECIAL_RESULTS_FLOATS = ("f32", "bf16", "f16")
_FLUSHED = ("f32", "bf16")


class _Kind(StrEnum):
    NAN = "nan"
    INFINITE = "infinite"
    FINITE = "finite"
    TINY = "tiny"
    """The class of subnormals: below one, and not integral."""
    ZERO = "zero"


@dataclass(frozen=True, slots=True)
class _Class:
    kind: _Kind
    negative: bool = False


_Answer = str | None
"""`nan`, or sign and magnitude (0, 1 or inf) of a result; None: the classes do not decide it."""

_NAN = "nan"
_NUMBERS = (_Kind.FINITE, _Kind.TINY)
_CLASSES = 10
_UNARY: Mapping[str, tuple[_Answer, _Answer, _Answer, _Answer, _Answer]] = {
    "recip": ("+inf", "-inf", "+0", "-0", None),
    "rsqrt": ("+inf", "-inf", "+0", "nan", "nan"),
    "sqrt": ("+0", "-0", "+inf", "nan", "nan"),
    "log": ("-inf", "-inf", "+inf", "nan", "nan"),
    "exp": ("+1", "+1", "+inf", "+0", None),
    "tanh": ("+0", "-0", "+1", "-1", None),
}
"""The results of functions of +0, -0, +inf, -inf and other negative numbers; positive ones have none by their class."""
_BINARY = ("div", "pow")


def _div(x: _Class, y: _Class) -> _Answer:
    sign = "-" if x.negative != y.negative else "+"
    if x.kind is y.kind and x.kind not in _NUMBERS:
        return _NAN
    if x.kind is _Kind.INFINITE or y.kind is _Kind.ZERO:
        return f"{sign}inf"
    return f"{sign}0" if x.kind is _Kind.ZERO or y.kind is _Kind.INFINITE else None


def _pow(x: _Class, y: _Class) -> _Answer:
    """Return the result that classes decide; they may leave open whether y is an odd integer and whether |x| is above
    1."""
    if y.kind is _Kind.ZERO:
        return "+1"
    if y.kind is _Kind.NAN:
        return None if x.kind is _Kind.FINITE and not x.negative else _NAN  # x may be 1
    determined = y.kind is not _Kind.FINITE or not x.negative
    if x.kind in (_Kind.ZERO, _Kind.INFINITE) and determined:
        return "+inf" if (x.kind is _Kind.INFINITE) != y.negative else "+0"
    if x.kind is _Kind.TINY and y.kind is _Kind.INFINITE:
        return "+inf" if y.negative else "+0"
    return _NAN if x.negative and x.kind in _NUMBERS and y.kind is _Kind.TINY else None


def _class_at(class_number: int, *, flushed: bool) -> _Class:
    """Return the class whose bit FCLASS sets; a flushed subnormal is zero."""
    if class_number >= 8:
        return _Class(_Kind.NAN)
    negative = class_number < 4
    distance = class_number if negative else 7 - class_number
    kinds = (_Kind.INFINITE, _Kind.FINITE, _Kind.ZERO if flushed else _Kind.TINY, _Kind.ZERO)
    return _Class(kinds[distance], negative)


def _answer(function: str, x: _Class, y: _Class) -> _Answer:
    unity = function == "pow" and y.kind is _Kind.ZERO
    if not unity and (x.kind is _Kind.NAN or (function == "div" and y.kind is _Kind.NAN)):
        return _NAN
    if function in _BINARY:
        return (_div if function == "div" else _pow)(x, y)
    if x.kind in _NUMBERS:
        return _UNARY[function][4] if x.negative else None
    return _UNARY[function][2 * (x.kind is _Kind.INFINITE) + x.negative]


@dataclass(frozen=True, slots=True)
class SpecialResult(Unit):
    """A prepared instruction: result and whether there is one, by the indices of both classes."""

    fmt: FloatFormat
    codes: NDArray[np.int64]
    decided: NDArray[np.bool_]

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the special results, income where the classes decide none."""
        fmt, dtype = self.fmt, code_dtype(self.fmt)
        single = destination_file(self.instruction) is File.S
        lanes = 1 if single else self.lanes(fmt)
        x, y = (
            _places(broadcast(self.value(operands, role), fmt, lanes).astype(np.int64)) for role in ("src_a", "src_b")
        )
        codes, decided = self.codes[x, y].astype(dtype), self.decided[x, y]
        if single:
            if not decided[0]:
                return Effects(operands.income)
            return Effects(merged(narrow_result(int(codes[0]), fmt, operands, self.target), operands))
        assert isinstance(operands.income, np.ndarray)
        kept = elements(operands.income, fmt)
        return Effects(merged(vector_of(np.where(decided, codes, kept).astype(dtype), fmt), operands))


def _places(masks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of the lowest class bit of each mask, and one past all classes where none is set."""
    numbers = np.bitwise_count((masks & -masks) - 1).astype(np.int64)
    return np.where(numbers < _CLASSES, numbers, _CLASSES)


def prepare_special(instruction: TpcInstruction, target: VliwTarget) -> SpecialResult:
    """Check the instruction.

    Raises:
        IllegalError: the generation lacks the type.
        UnstatedError: option special_results refuses it.
    """
    name = check_element(instruction, target, instruction.type, _SPECIAL_RESULTS_FLOATS)
    if target.option("special_results") == "refuse":
        message = f"no source documents the results of {instruction.mnemonic} (option special_results)"
        raise UnstatedError(message, legal=("castsim lint", "castsim run --timing-only"))
    fmt = FORMATS[name]
    assert isinstance(fmt, FloatFormat)
    flushed = name in _FLUSHED and target.option("arithmetic_subnormals") == "flush"
    function = str(instruction.switch("func"))
    codes = np.zeros((_CLASSES + 1, _CLASSES + 1), np.int64)
    decided = np.zeros(codes.shape, np.bool_)
    for first, second in product(range(_CLASSES), range(_CLASSES + 1)):
        if second == _CLASSES and function in _BINARY:
            continue
        y = _class_at(min(second, _CLASSES - 1), flushed=flushed)
        answer = _answer(function, _class_at(first, flushed=flushed), y)
        if answer is not None:
            codes[first, second], decided[first, second] = _code(answer, fmt), True
    return SpecialResult(instruction, target, fmt, codes, decided)


def _code(answer: str, fmt: FloatFormat) -> int:
    if answer == _NAN:
        return nan_code(fmt)
    infinite = fmt.exponent_mask << fmt.fraction_bits
    magnitude = {"inf": infinite, "1": fmt.bias << fmt.fraction_bits, "0": 0}[answer[1:]]
    return magnitude | (answer[0] == "-") << (fmt.bits - 1)


# Values of GET_LUT_ENTRY_AND_INTERVAL_START (docs/reference/tpc.md section 5.5).

_FLOATS = ("f32", "bf16", "f16")
_Intervals = tuple[NDArray[np.int64], NDArray[np.int64]]
_Rule = Callable[[NDArray[np.int64], FloatFormat, int], _Intervals]
"""A function from codes to the numbers of their entries and the codes of the starts, given the shift."""


def _by_fraction(codes: NDArray[np.int64], fmt: FloatFormat, shift: int, exponent_bits: int = 0) -> _Intervals:
    """Return the entries that the highest fraction bits name, below some of the exponent's lowest bits."""
    wanted = (1 << (fmt.fraction_bits + exponent_bits)) - 1
    dropped = (1 << min(shift, fmt.fraction_bits)) - 1
    return (codes & wanted) >> shift, codes & ~dropped


def _uniform(codes: NDArray[np.int64], fmt: FloatFormat, shift: int) -> _Intervals:
    """Return the entries of intervals of equal length from 0 on, as many as a binade has below 1, modulo 1 above."""
    magnitude = codes & (fmt.sign_bit - 1)
    exponent = np.maximum(magnitude >> fmt.fraction_bits, 1)
    significand = (magnitude & fmt.fraction_mask) + np.where(magnitude > fmt.fraction_mask, 1 << fmt.fraction_bits, 0)
    down = shift + fmt.bias - exponent  # an interval is 2 ** (shift - fraction bits) long
    kept = np.clip(down, 0, fmt.fraction_bits + 1)
    entries = (significand >> kept) & ((1 << max(0, fmt.fraction_bits - shift)) - 1)
    starts = np.where(significand >> kept == 0, 0, magnitude & ~((1 << kept) - 1))
    return np.where(down < 0, 0, entries), starts | codes & fmt.sign_bit


def _by_binade(codes: NDArray[np.int64], fmt: FloatFormat, shift: int) -> _Intervals:
    """Return equal intervals below 1, then the binades of 1, 2 and 4 in sequence, modulo 8."""
    entries, starts = _uniform(codes, fmt, shift)
    above, beginnings = _by_fraction(codes, fmt, shift)
    binade = ((codes & (fmt.sign_bit - 1)) >> fmt.fraction_bits) - fmt.bias + 1
    count = 1 << max(0, fmt.fraction_bits - shift)
    far = binade > 0
    return np.where(far, above + binade % _BINADES * count, entries), np.where(far, beginnings, starts)


_BINADES = 4
_VARIANTS: Mapping[str, _Rule] = {
    "sqrt_rsqrt": partial(_by_fraction, exponent_bits=1),
    "sin_cos": _uniform,
    "tanh": _by_binade,
}
"""The variants of the instruction, inferred from the sizes of the tables that the vendor's functions read with them."""


@dataclass(frozen=True, slots=True)
class TableEntry(Unit):
    """A prepared table entry instruction."""

    fmt: FloatFormat
    shift: int
    rule: _Rule

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the indices of the entries, and the starts of their intervals."""
        fmt = self.fmt
        lanes = self.lanes(fmt)
        codes = broadcast(self.value(operands, "src_a"), fmt, lanes).astype(np.int64)
        entries, starts = (part.astype(code_dtype(fmt)) for part in self.rule(codes, fmt, self.shift))
        return Effects(merged((vector_of(entries, fmt), vector_of(starts, fmt)), operands))


def prepare_entry(instruction: TpcInstruction, target: VliwTarget) -> TableEntry:
    """Check the instruction.

    Raises:
        IllegalError: the generation lacks the type.
        UnstatedError: no source states the arithmetic of a variant or switch.
    """
    name = check_element(instruction, target, instruction.type, _FLOATS)
    for switch in ("opt", "exp0"):
        if instruction.switch(switch) == 1:
            message = f"no source documents what {switch} does to the entry"
            raise UnstatedError(message, legal=(f"{instruction.mnemonic} without {switch}",))
    variant = str(instruction.switch("entry_variant"))
    inferred = variant in _VARIANTS and target.option("lut_entry_variants") == "inferred"
    if variant != "none" and not inferred:
        options = (f"{variant} under option lut_entry_variants=inferred",) if variant in _VARIANTS else ()
        raise UnstatedError(f"no source documents which entry variant {variant} uses", legal=("no variant", *options))
    shift = instruction.operand("shift")
    fmt = FORMATS[name]
    assert isinstance(shift, Immediate) and isinstance(fmt, FloatFormat)
    return TableEntry(instruction, target, fmt, shift.value, _VARIANTS[variant] if inferred else _by_fraction)


# Bits, exponents and classes of elements: POPCNT to FORM_FP_NUM (docs/reference/tpc.md section 5.4).

Wide = NDArray[np.int64]

_BitRule = Callable[[tuple[Wide, ...], Format, TpcInstruction, VliwTarget], Wide]
"""A function from the codes of all sources to the result's, whose bits above the element are dropped."""


# ------------------------------------------------------------------------------------------------------- bits


def _wanted(codes: Wide, fmt: Format, instruction: TpcInstruction) -> Wide:
    """Return codes whose ones are the bits to count or search."""
    return codes if instruction.switch("set") == 1 else codes ^ ((1 << fmt.bits) - 1)


def _count(sources: tuple[Wide, ...], fmt: Format, instruction: TpcInstruction, target: VliwTarget) -> Wide:
    del target
    return np.bitwise_count(_wanted(sources[0], fmt, instruction)).astype(np.int64)


def _find_first(sources: tuple[Wide, ...], fmt: Format, instruction: TpcInstruction, target: VliwTarget) -> Wide:
    """Return the position of the first bit; an option gives the result if there is none."""
    codes = _wanted(sources[0], fmt, instruction)
    lowest = np.bitwise_count((codes & -codes) - 1).astype(np.int64)
    spread = codes.copy()
    for step in (1, 2, 4, 8, 16):
        spread |= spread >> step
    highest = np.bitwise_count(spread).astype(np.int64) - 1
    position = lowest
    if instruction.switch("start") == "start_msb":
        position = highest if target.option("find_first_position") == "bit" else fmt.bits - 1 - highest
    nothing = fmt.bits if target.option("find_first_none") == "width" else 0xFF
    return np.where(codes == 0, nothing, position)


def _reverse(sources: tuple[Wide, ...], fmt: Format, instruction: TpcInstruction, target: VliwTarget) -> Wide:
    """Return elements with their bits in the opposite order."""
    del instruction, target
    reversed_bits = np.zeros_like(sources[0])
    for bit in range(fmt.bits):
        reversed_bits |= (sources[0] >> bit & 1) << (fmt.bits - 1 - bit)
    return reversed_bits


# -------------------------------------------------------------------------------------------------- exponents


def _exponent(codes: Wide, fmt: FloatFormat) -> Wide:
    return codes >> fmt.fraction_bits & fmt.exponent_mask


def _extract(sources: tuple[Wide, ...], fmt: Format, instruction: TpcInstruction, target: VliwTarget) -> Wide:
    """Return the exponent field, or the field less the bias."""
    assert isinstance(fmt, FloatFormat)
    field = _exponent(sources[0], fmt)
    if instruction.switch("biased") is not None:
        subtracts = instruction.switch("biased") == 0
    else:
        subtracts = (instruction.switch("subtract_bias") == 1) == (target.option("exponent_word") == "named")
    return field - fmt.bias if subtracts else field


_FORCED = ("force_sign0", "force_sign1", "sign_lsb")


def _form(sources: tuple[Wide, ...], fmt: Format, instruction: TpcInstruction, target: VliwTarget) -> Wide:
    """Return numbers put together from the exponent of the first source, the sign of the second, the third's rest."""
    del target
    assert isinstance(fmt, FloatFormat)
    exponent, sign, mantissa = sources
    field = exponent & 0xFF if instruction.switch("exp_is_num") == 1 else _exponent(exponent, fmt)
    if instruction.switch("exp_add_bias") == 1:
        field = field + fmt.bias
    top = sign >> (fmt.bits - 1)
    if instruction.switch("sign_lsb") == 1:
        top = sign & 1
    if instruction.switch("force_sign0") == 1:
        top = np.zeros_like(sign)
    if instruction.switch("force_sign1") == 1:
        top = np.ones_like(sign)
    return (top & 1) << (fmt.bits - 1) | (field & fmt.exponent_mask) << fmt.fraction_bits | mantissa & fmt.fraction_mask


def _classes(sources: tuple[Wide, ...], fmt: Format, instruction: TpcInstruction, target: VliwTarget) -> Wide:
    """Return one bit per class: -inf, -normal, -subnormal, -0, +0, and so on; 8-bit types have one zero and one NaN."""
    del instruction, target
    assert isinstance(fmt, FloatFormat)
    codes = sources[0]
    field, fraction, negative = _exponent(codes, fmt), codes & fmt.fraction_mask, codes >> (fmt.bits - 1) & 1
    special, small = field == fmt.exponent_mask, field == 0
    distance = np.select([special, ~small, fraction != 0], [0, 1, 2], 3)  # from infinity towards zero
    narrow = fmt.bits == 8
    last = 6 if narrow else 7
    bit = np.where(negative == 1, distance, last - distance)
    quiet = 7 if narrow else 8 + (fraction >> (fmt.fraction_bits - 1))
    return np.left_shift(1, np.where(special & (fraction != 0), quiet, bit))


# -------------------------------------------------------------------------------------------------------- units


@dataclass(frozen=True, slots=True)
class _BitField:
    """One mnemonic: its rule, the roles of its sources, whether integers have it, the type of its result."""

    rule: _BitRule
    roles: tuple[str, ...] = ("src_a",)
    integers: bool = True
    result: str = "u"
    """`u` or `i` and the width of the source, or empty for the source's own type."""


_KINDS: Mapping[str, _BitField] = {
    "popcnt": _BitField(_count),
    "brev": _BitField(_reverse, result=""),
    "find_first": _BitField(_find_first),
    "extract_exp": _BitField(_extract, integers=False, result="i"),
    "form_fp_num": _BitField(_form, ("src_a", "src_b", "src_c"), integers=False, result=""),
    "fclass": _BitField(_classes, integers=False),
}
BIT_FIELDS = tuple(_KINDS)
"""The mnemonics of operations on bits."""


@dataclass(frozen=True, slots=True)
class BitField(Unit):
    """A prepared operation on the bits of elements."""

    kind: _BitField

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the result in the form of the destination."""
        target = self.target
        fmt = element_format(str(self.instruction.type), target, state)
        scalar = destination_file(self.instruction) is File.S
        lanes = 1 if scalar else self.lanes(fmt)
        values = (self.value(operands, role) for role in self.kind.roles)
        sources = tuple(broadcast(value, fmt, lanes).astype(np.int64) for value in values)
        bits = self.kind.rule(sources, fmt, self.instruction, target) & ((1 << fmt.bits) - 1)
        codes: Codes = bits.astype(code_dtype(fmt))
        if not scalar:
            return Effects(merged(vector_of(codes, fmt), operands))
        dst = FORMATS[f"{self.kind.result}{fmt.bits}"] if self.kind.result else fmt
        return Effects(merged(narrow_result(int(codes[0]), dst, operands, target), operands))


def prepare_bit_field(instruction: TpcInstruction, target: VliwTarget) -> BitField:
    """Check an operation on bits.

    Raises:
        IllegalError: the generation or the operation lacks the element type, or no source documents a switch.
    """
    kind = _KINDS[instruction.mnemonic]
    legal = tuple(name for name in whole_bytes(target) if kind.integers or isinstance(FORMATS[name], FloatFormat))
    check_element(instruction, target, instruction.type, legal)
    for name in ("limit", "special_func"):
        ignored = name == "limit" and target.option("class_limit") == "ignore"
        if instruction.switch(name) and not ignored:
            message = f"{instruction.mnemonic}: no source documents what {name} computes"
            raise IllegalError(message, span=instruction.span, legal=(f"{instruction.mnemonic} without {name}",))
    forced = [name for name in _FORCED if instruction.switch(name) == 1]
    if len(forced) > 1:
        message = f"{instruction.mnemonic}: {' and '.join(forced)} cannot be combined"
        raise IllegalError(message, span=instruction.span, legal=_FORCED)
    return BitField(instruction, target, kind)
