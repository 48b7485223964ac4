"""CONVERT, CONVERT_INT8 to CONVERT_UINT32 and NEARBYINT: forms of a generation, policies, lanes, values.

Source: docs/reference/tpc.md sections 2.1 to 2.4 and 5.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from castsim.execution.outcomes import Judge, tell_change
from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, Codes, FloatFormat, Format, IntFormat, Overflow, Rounding
from castsim.isa.tpc.program import GROUPED, File, Immediate, Register, TpcInstruction
from castsim.machines.vliw.semantics.moves import narrow_result
from castsim.machines.vliw.semantics.operands import (
    Drawn,
    Effects,
    Mask,
    OperandValues,
    State,
    Unit,
    Value,
    Words,
    check_element,
    check_mode,
    convert_mode,
    destination_file,
    draw,
    element_format,
    elements,
    group_of,
    integers,
    lanes_of,
    nan_code,
    signed_word,
    vector_of,
    vectors,
    whole_bytes,
)
from castsim.numerics.blocks import code_dtype
from castsim.numerics.cast import Scale, round_to_integral_codes, scaled_cast_codes
from castsim.numerics.policy import NanToFloat, NanToInteger, Policy
from castsim.numerics.tiers import convert_codes
from castsim.targets.vliw import ConvertRow, IntegerConvertRow, RoundingMode, VliwTarget

# Policies of conversions, and of arithmetic, where the formats leave something open (docs/reference/tpc.md section 5).


def policy_of(src: Format, dst: Format, mode: RoundingMode, clip: bool, target: VliwTarget) -> Policy:
    """Return the policy of a conversion if the formats leave it open: rounding, range, NaN.

    Conversions between integers and from float to integer equal those of CONVERT; `clip` is the switch clip_fp.
    """
    if isinstance(dst, IntFormat):
        kind = "integer" if isinstance(src, IntFormat) else "float"
        wrap = target.option(f"{kind}_to_integer_overflow") == "wrap"
        return integer_policy(mode, wrap, NanToInteger(str(target.option("nan_to_integer"))))
    assert isinstance(dst, FloatFormat)
    values = target.special_values
    payload = (src.name, dst.name) in values.payload_kept
    from_float = isinstance(src, FloatFormat)
    narrowing = from_float and dst.bits < FORMATS[values.intermediate].bits
    guard = not narrowing or target.option("stochastic_exact") == "keep"
    return _float_policy(dst, mode, clip, payload, from_float, guard)


@lru_cache(maxsize=1024)
def integer_policy(mode: RoundingMode, wrap: bool = False, nan: NanToInteger = NanToInteger.ZERO) -> Policy:
    """Return the policy of a conversion to an integer: saturating, or to the low bits."""
    assert mode.rounding is not None
    overflow = Overflow.WRAP if wrap else Overflow.SATURATE
    return Policy(rounding=mode.rounding, overflow=overflow, nan_to_integer=nan)


@lru_cache(maxsize=1024)
def _float_policy(
    dst: FloatFormat, mode: RoundingMode, clip: bool, payload: bool, from_float: bool, guard: bool
) -> Policy:
    assert mode.rounding is not None
    return Policy(
        rounding=mode.rounding,
        overflow=Overflow.SATURATE if clip else Overflow.SPECIAL,
        nan_to_float=NanToFloat.PAYLOAD if payload else NanToFloat.FIXED,
        nan_code=nan_code(dst),
        subnormal_rounding=mode.subnormal_rounding,
        stochastic_guard=guard,
        stochastic_far_zero=from_float,
    )


@lru_cache(maxsize=64)
def same_format_policy(fmt: FloatFormat, rounding: Rounding | None) -> Policy:
    """Return the policy of arithmetic, and of rounding to integral values: infinities stay, NaN is the format's."""
    assert rounding is not None
    return Policy(rounding, Overflow.SPECIAL, nan_to_float=NanToFloat.FIXED, nan_code=nan_code(fmt))


_EXACT = Policy(Rounding.TRUNC, Overflow.SPECIAL)


def converted(codes: Codes, src: Format, dst: Format, policy: Policy, random: Words | None, through: str) -> Codes:
    """Convert elements by a policy.

    A float narrower than the format `through` is first converted to it, exactly, on its way to another narrow one. This
    matters only for random rounding: that format decides what is below the smallest subnormal.
    """
    middle = FORMATS[through]
    floats = isinstance(src, FloatFormat) and isinstance(dst, FloatFormat)
    if random is not None and floats and max(src.bits, dst.bits) < middle.bits:
        codes, src = convert_codes(codes, src, middle, _EXACT), middle
    return convert_codes(codes, src, dst, policy, random=random)


# Which form of a conversion a text asks for, and what is to be said of forms that the intrinsic header lacks.
#
# The compiler prints forms that no intrinsic has: pairs of types of its own, all_lanes on types of one width, lane
# numbers beyond the pair. They are taken, each with a notice. Source: docs/reference/tpc.md sections 2.2 and 2.7.

_SINGLE, _ALL = "single_lane", "all_lanes"
_PAIR = 2


class NoticeKind(StrEnum):
    """The reason for a notice on a form."""

    COMPILER_FORM = "compiler form"
    """Only the compiler's output contains it; the intrinsic header lacks it."""
    LANE_BEYOND_PAIR = "lane beyond the pair"
    """`lane_sel` 2 or 3 although a wide element contains only two narrow ones."""


@dataclass(frozen=True, slots=True)
class FormNotice:
    """A notice on a form that runs although the intrinsic header lacks it."""

    kind: NoticeKind
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


@dataclass(frozen=True, slots=True)
class ConversionForm:
    """A form of a pair: its row, the lane of single_lane (None: all lanes), and its notices."""

    row: ConvertRow | IntegerConvertRow
    lane: int | None
    notices: tuple[FormNotice, ...]


def convert_form(instruction: TpcInstruction, src: str, dst: str, unit: str, target: VliwTarget) -> ConversionForm:
    """Return the form of a CONVERT: one of the intrinsic header, or else one that the compiler prints.

    Raises:
        IllegalError: the unit lacks the pair, or the pair lacks such lanes; the message lists the legal ones.
    """
    header = target.convert(src, dst, unit)
    shown = next((row for row in target.compiler_converts if (row.unit, row.src, row.dst) == (unit, src, dst)), None)
    row = header
    if header is None or (shown is not None and not _has_form(header, instruction) and _has_word(shown, instruction)):
        row = shown
    if row is None:
        raise _no_pair(instruction, src, dst, unit, target)
    form = ConversionForm(row, None, ()) if unit == "spu" else lane_form(instruction, row, target)
    if row is header:
        return form
    lacks = "this pair" if header is None else "this form of the pair"
    text = f"the intrinsic header lacks {lacks}, {src} -> {dst}; the compiler prints it ({row.note})"
    return ConversionForm(row, form.lane, (FormNotice(NoticeKind.COMPILER_FORM, text), *form.notices))


def lane_form(instruction: TpcInstruction, row: ConvertRow | IntegerConvertRow, target: VliwTarget) -> ConversionForm:
    """Return the lanes of a conversion of the vector unit, by the row of its pair.

    Raises:
        IllegalError: the pair lacks the form or the lane; the message lists those it has.
    """
    pair = f"{row.src} -> {row.dst}"
    word, lane = _asked(instruction)
    if word == _ALL and _ratio(row) == 1 and not row.lanes and lane == 0:
        text = f"all_lanes on {pair} has no effect: the types have the same width"
        return ConversionForm(row, None, (FormNotice(NoticeKind.COMPILER_FORM, text),))
    if word not in (row.lanes or (_SINGLE,)):
        legal = row.lanes or ("no lane switch, because the widths are equal",)
        raise IllegalError(f"the conversion {pair} has no {word} here", span=instruction.span, legal=legal)
    last = 0 if word == _ALL else row.lane_sel_max or 0
    if lane <= last:
        return ConversionForm(row, None if word == _ALL else lane, ())
    if last == _PAIR - 1 and _ratio(row) == _PAIR and target.option("lane_beyond_pair") == "modulo":
        text = f"lane_sel={lane} of {pair}, which has two lanes: taken as lane_sel={lane % _PAIR} (undocumented)"
        return ConversionForm(row, lane % _PAIR, (FormNotice(NoticeKind.LANE_BEYOND_PAIR, text),))
    legal = tuple(f"lane_sel={number}" for number in range(last + 1))
    raise IllegalError(f"the conversion {pair} with {word} has no lane_sel={lane}", span=instruction.span, legal=legal)


def registers_named(instruction: TpcInstruction) -> int:
    """Return the larger number of registers that destination or source name: two for D, four for A."""
    operands = [operand for operand in map(instruction.operand, ("dest", "src_a")) if isinstance(operand, Register)]
    return max(GROUPED.get(operand.file, (operand.file, 1))[1] for operand in operands)


def is_lane_by_lane(row: ConvertRow | IntegerConvertRow) -> bool:
    """Return whether both types of a pair have equal width."""
    return _ratio(row) == 1


def _asked(instruction: TpcInstruction) -> tuple[str, int]:
    lane = instruction.switch("lane_sel") or 0
    assert isinstance(lane, int)
    return str(instruction.switch("num_lanes") or _SINGLE), lane


def _has_word(row: ConvertRow, instruction: TpcInstruction) -> bool:
    return _asked(instruction)[0] in (row.lanes or (_SINGLE,))


def _has_form(row: ConvertRow, instruction: TpcInstruction) -> bool:
    word, lane = _asked(instruction)
    return _has_word(row, instruction) and lane <= (0 if word == _ALL else row.lane_sel_max or 0)


def _ratio(row: ConvertRow | IntegerConvertRow) -> int:
    widths = FORMATS[row.src].bits, FORMATS[row.dst].bits
    return max(widths) // min(widths)


def _no_pair(instruction: TpcInstruction, src: str, dst: str, unit: str, target: VliwTarget) -> IllegalError:
    legal = [other.dst for other in target.converts if (other.unit, other.src) == (unit, src)]
    legal = legal or [f"from {name}" for name in dict.fromkeys(o.src for o in target.converts if o.unit == unit)]
    kind = "scalar" if unit == "spu" else "vector"
    message = f"{target.name} has no {kind} conversion {src} -> {dst}"
    return IllegalError(message, span=instruction.span, legal=legal)


# Which element of which register a conversion reads and writes (docs/reference/tpc.md section 2.2).
#
# With r the ratio of the widths, i an element of the wide side and k a lane, the narrow element of a pair is r*i + k.

Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class ElementPlacement:
    """The element indices of all conversions of an instruction, counted through the registers of a group.

    `gather` and `scatter` are the elements read and written, `places` the byte of the narrow element in its own
    register, whose predicate bit decides. `lane` is the index of a conversion within a register, for random words;
    `sources` and `destinations` are indices of registers.
    """

    gather: Indices
    scatter: Indices
    places: Indices
    lane: Indices
    sources: int
    destinations: int


def place(src: Format, dst: Format, vector_bytes: int, *, lane: int | None, registers: int) -> ElementPlacement:
    """Place the conversions of an instruction.

    `lane` is the lane_sel of a single_lane form, None for all_lanes; `registers` is the number of registers that an
    instruction between types of equal width converts.
    """
    ratio = max(src.bits, dst.bits) // min(src.bits, dst.bits)
    narrow_bits = min(src.bits, dst.bits)
    wide = vector_bytes * 8 // max(src.bits, dst.bits)
    if ratio == 1:
        every = np.arange(wide * registers)
        within = every % wide
        return ElementPlacement(every, every, within * narrow_bits // 8, within, registers, registers)
    if lane is not None:
        slots = np.arange(wide)
        narrow = slots * ratio + lane
        own = slots
    else:
        narrow = np.arange(wide * ratio)
        slots = narrow % ratio * wide + narrow // ratio
        own = narrow
    group = 1 if lane is not None else ratio
    places = narrow * narrow_bits // 8
    if dst.bits < src.bits:
        return ElementPlacement(slots, narrow, places, own, group, 1)
    return ElementPlacement(narrow, slots, places, own, 1, group)


def admitted(placement: ElementPlacement | None, operands: OperandValues) -> Mask | None:
    """Return the conversions that a vector predicate admits; None without such a predicate."""
    if placement is None or not isinstance(operands.predicate, np.ndarray):
        return None
    return operands.predicate[placement.places]


def gathered(value: Value, src: Format, where: Indices) -> Codes:
    """Return elements of a vector or of a group of vectors."""
    return elements(value, src)[where]


def scattered(
    results: Codes, dst: Format, placement: ElementPlacement, operands: OperandValues, vector_bytes: int
) -> Value:
    """Return the destination with the results at their positions, and income elsewhere or for a false predicate."""
    lanes = lanes_of(dst, vector_bytes)
    income = operands.income
    where, kept = placement.scatter, results
    active = admitted(placement, operands)
    if active is not None:
        where, kept = where[active], results[active]
    if where.size == lanes * placement.destinations or income is None:
        out = np.zeros(lanes * placement.destinations, results.dtype)
    else:
        out = elements(income, dst).astype(results.dtype)
    out[where] = kept
    if placement.destinations == 1 and not isinstance(income, tuple):
        return vector_of(out, dst)
    return tuple(vector_of(part, dst) for part in out.reshape(placement.destinations, lanes))


WIDE_LANE = "lane_sel above 0 of a conversion to a wider type: accepted by the assembler, but not documented"
"""Remark on a form of undocumented meaning."""

_MULTIPLES = {"x2": 2, "x4": 4}


@dataclass(frozen=True, slots=True)
class PlacedUnit(Unit):
    """A prepared elementwise conversion; `placement` is None in the scalar unit."""

    placement: ElementPlacement | None

    def drawn(self, rounding: Rounding | None, operands: OperandValues, state: State) -> Drawn:
        """Return the random words of the conversions if their rounding needs any."""
        lanes = self.placement.lane if self.placement else None
        return draw(rounding, lanes, admitted(self.placement, operands), self.target, state)

    def codes(self, operands: OperandValues, src: Format) -> Codes:
        """Return the elements to convert, one per conversion."""
        value = self.value(operands, "src_a")
        if self.placement is not None:
            return gathered(value, src, self.placement.gather)
        assert isinstance(value, int)
        return np.array([value & (1 << src.bits) - 1], code_dtype(src))

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers of the operands."""
        return {role: group_of(self.instruction, role, count, self.target) for role, count in self.counts().items()}

    def counts(self) -> Mapping[str, int]:
        """Return the number of registers of each register operand, by role."""
        placement = self.placement
        return {"src_a": placement.sources, "dest": placement.destinations} if placement else {"src_a": 1, "dest": 1}

    def placed(self, results: Codes, dst: Format, operands: OperandValues) -> Value:
        """Return the destination with the results at their positions."""
        if self.placement is None:
            return narrow_result(int(results[0]), dst, operands, self.target)
        return scattered(results, dst, self.placement, operands, self.vector_bytes)


@dataclass(frozen=True, slots=True)
class PreparedConversion(PlacedUnit):
    """A prepared conversion of element types."""

    src: str
    dst: str
    mode: RoundingMode
    clip: bool
    remarks: tuple[str, ...]
    notices: tuple[FormNotice, ...] = ()

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the converted elements at their positions."""
        target = self.target
        src, dst = (element_format(name, target, state) for name in (self.src, self.dst))
        mode = convert_mode(self.mode, target, state, self.instruction.span)
        policy = policy_of(src, dst, mode, self.clip, target)
        random = self.drawn(mode.rounding, operands, state)
        through = target.special_values.intermediate
        results = converted(self.codes(operands, src), src, dst, policy, random.words, through)
        return random.effects(self.placed(results, dst, operands), self.remarks)

    def counts(self) -> Mapping[str, int]:
        """Return the counts of the base; in the scalar unit, the number that the elements fill."""
        if self.placement is not None:
            return PlacedUnit.counts(self)
        return {role: -(-FORMATS[name].bits // 32) for role, name in (("src_a", self.src), ("dest", self.dst))}


def prepare_convert(instruction: TpcInstruction, target: VliwTarget) -> PreparedConversion:
    """Prepare a CONVERT from the tables of the generation.

    Raises:
        IllegalError: the unit lacks the pair, mode, lane, or switch.
    """
    src, dst = str(instruction.type), str(instruction.switch("target_type"))
    unit = "spu" if destination_file(instruction) is File.S else "vpu"
    form = convert_form(instruction, src, dst, unit, target)
    assert isinstance(form.row, ConvertRow)
    mode = check_mode(instruction, target.convert_rounding, instruction.switch("rounding"))
    multiple = _check_switches(instruction, form.row)
    placement = None
    remarks: tuple[str, ...] = ()
    if unit == "vpu":
        formats = FORMATS[src], FORMATS[dst]
        if instruction.switch("num_lanes") == _ALL and is_lane_by_lane(form.row) and multiple == 1:
            multiple = registers_named(instruction)
        placement = place(*formats, target.registers.vector_bytes, lane=form.lane, registers=multiple)
        if form.lane and formats[1].bits > formats[0].bits:
            remarks = (WIDE_LANE,)
            if target.option("wide_lane_select") == "refuse":
                raise IllegalError(WIDE_LANE, span=instruction.span, legal=("lane_sel=0",))
    clip = instruction.switch("clip_fp") == 1
    return PreparedConversion(instruction, target, placement, src, dst, mode, clip, remarks, form.notices)


def _check_switches(instruction: TpcInstruction, row: ConvertRow) -> int:
    """Return how many registers x2 and x4 ask for, after checking that the pair has the switches that are set."""
    set_ones = [name for name in (*_MULTIPLES, "clip_fp") if instruction.switch(name) == 1]
    for name in set_ones:
        if name not in row.switches:
            message = f"the conversion {row.src} -> {row.dst} has no switch {name} here"
            by_pair = (*_MULTIPLES, "clip_fp")
            others = (switch.name for switch in instruction.form.switches if switch.name not in by_pair)
            raise IllegalError(message, span=instruction.span, legal=(*row.switches, *others))
    multiples = [_MULTIPLES[name] for name in set_ones if name in _MULTIPLES]
    if len(multiples) > 1:
        raise IllegalError("x2 and x4 cannot be combined", span=instruction.span, legal=tuple(_MULTIPLES))
    return multiples[0] if multiples else 1


# CONVERT_INT8 to CONVERT_UINT32: shift, round once, saturate to a narrower integer.
#
# Source: docs/reference/tpc.md section 2.4.

Shifts = NDArray[np.int64]

POSITIVE_SHIFT = "a shift above 0 multiplies: no source documents this; vendor code uses only shifts up to 0"
"""Remark on a shift of undocumented meaning."""

_BYTE = 8


@dataclass(frozen=True, slots=True)
class ConvertInteger(PlacedUnit):
    """A prepared narrowing with shift.

    `shift` is the format of a shift vector's elements: bytes of which the lowest of a value's lane counts, or elements
    beside the values (`by_value`) or beside the results.
    """

    src: IntFormat
    dst: IntFormat
    mode: RoundingMode
    shift: IntFormat
    by_value: bool
    notices: tuple[FormNotice, ...] = ()

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the shifted, rounded and saturated elements at their positions."""
        shifts = self.shifts(self.value(operands, "src_b"))
        remarks = self._check_shifts(shifts, operands)
        random = self.drawn(self.mode.rounding, operands, state)
        codes, policy = self.codes(operands, self.src), integer_policy(self.mode)
        results = scaled_cast_codes(codes, self.src, self.dst, Scale(1), policy, shifts=shifts, random=random.words)
        return random.effects(self.placed(results, self.dst, operands), remarks)

    def shifts(self, value: Value) -> Shifts:
        """Return one shift per conversion from the contents of `src_b`.

        Raises:
            IllegalError: bytes of one lane differ, and option vector_shift_byte refuses that.
        """
        count = 1 if self.placement is None else self.placement.gather.size
        if isinstance(value, int):
            bits = self.target.integer_shift.scalar_bits
            return np.full(count, signed_word(value) if bits is None else _signed(value, bits))
        assert self.placement is not None
        distances = self._vector_shifts(value, self.placement)
        bits = self.target.integer_shift.vector_bits
        if bits is not None and bits < self.shift.bits:
            top = 64 - bits
            distances = distances << top >> top
        return distances

    def counts(self) -> Mapping[str, int]:
        """Return the counts of the base, and that of the shift."""
        immediate = isinstance(self.instruction.operand("src_b"), Immediate)
        return PlacedUnit.counts(self) if immediate else {**PlacedUnit.counts(self), "src_b": 1}

    def _vector_shifts(self, value: Value, placement: ElementPlacement) -> Shifts:
        lanes = placement.gather % (self.vector_bytes * 8 // self.src.bits)
        if not self.by_value:
            return integers(elements(value, self.shift), self.shift)[placement.scatter]
        if self.shift.bits == self.src.bits:
            return integers(elements(value, self.shift), self.shift)[lanes]
        chosen = vectors(value)[0].reshape(-1, self.src.bits // _BYTE)
        if self.target.option("vector_shift_byte") == "refuse" and (chosen != chosen[:, :1]).any():
            message = "which byte of a lane holds its shift is not documented (option vector_shift_byte)"
            raise IllegalError(message, span=self.instruction.span, legal=("equal bytes in every lane",))
        return chosen[:, 0].view(np.int8).astype(np.int64)[lanes]

    def _check_shifts(self, shifts: Shifts, operands: OperandValues) -> tuple[str, ...]:
        """Return remarks on undocumented shifts.

        Raises:
            IllegalError: a shift is above 0, and option positive_shift refuses that.
        """
        active = admitted(self.placement, operands)
        if not (shifts if active is None else shifts[active]).max(initial=0) > 0:
            return ()
        if self.target.option("positive_shift") == "refuse":
            raise IllegalError(POSITIVE_SHIFT, span=self.instruction.span, legal=("shifts of 0 and below",))
        return (POSITIVE_SHIFT,)


def _signed(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (value & (1 << bits) - 1 ^ half) - half


def prepare_convert_integer(instruction: TpcInstruction, target: VliwTarget) -> ConvertInteger:
    """Prepare a CONVERT_INT* from the tables of the generation.

    Raises:
        IllegalError: the unit lacks the destination width, mode or lane.
    """
    unit = "spu" if destination_file(instruction) is File.S else "vpu"
    row = _row(instruction, target, unit)
    mode = check_mode(instruction, target.integer_rounding, instruction.switch("rounding"))
    src, dst = _integer(row.src), _integer(row.dst)
    placement, shift, by_value = None, src, True
    notices: tuple[FormNotice, ...] = ()
    if unit == "vpu":
        form = lane_form(instruction, row, target)
        notices = form.notices
        placement = place(src, dst, target.registers.vector_bytes, lane=form.lane, registers=1)
        shift, by_value = _shift_format(row, src, dst, single=form.lane is not None)
    return ConvertInteger(instruction, target, placement, src, dst, mode, shift, by_value, notices)


def _row(instruction: TpcInstruction, target: VliwTarget, unit: str) -> IntegerConvertRow:
    rows = [row for row in target.integer_converts if (row.unit, row.mnemonic) == (unit, instruction.mnemonic)]
    width = instruction.switch("width")
    for row in rows:
        if width in (None, f"to_{FORMATS[row.dst].bits}"):
            return row
    legal = [f"to_{FORMATS[row.dst].bits}" for row in rows]
    legal = legal or list(dict.fromkeys(row.mnemonic for row in target.integer_converts))
    message = f"{target.name} has no {instruction.mnemonic} {width or ''}".rstrip()
    raise IllegalError(message, span=instruction.span, legal=legal)


def _integer(name: str) -> IntFormat:
    integer = FORMATS[name]
    assert isinstance(integer, IntFormat)
    return integer


def _shift_format(row: IntegerConvertRow, src: Format, dst: Format, *, single: bool) -> tuple[IntFormat, bool]:
    """Return the element format of a shift vector, and whether shifts are beside the values.

    The table names them for single_lane (the value's width) and all_lanes (the result's); if it only has bytes,
    every value uses the lowest byte of its lane.
    """
    widths = {FORMATS[name].bits: _integer(name) for name in row.shifts}
    wanted = src.bits if single else dst.bits
    if wanted in widths:
        return widths[wanted], single
    return widths[_BYTE], True


# NEARBYINT: floats rounded to integral values, and with `cnvrt` the same as integers.
#
# Source: docs/reference/tpc.md section 2.3 (modes) and 5 (values), docs/reference/tpc.md section 5.2 (`cnvrt`).

_INTEGER_OF = {32: "i32", 16: "i16", 8: "i8"}
"""The integer that `cnvrt` makes of a float, by its width."""


@dataclass(frozen=True, slots=True)
class NearbyInt(PlacedUnit):
    """A prepared rounding of floats to integral values.

    `integer` is the format of a second result (None: there is only one): the
    rounded value in the source type goes to the first register of a pair, the same value as an integer to the second.
    """

    element: str
    mode: RoundingMode
    integer: str | None = None

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the rounded elements."""
        target = self.target
        fmt = element_format(self.element, target, state)
        assert isinstance(fmt, FloatFormat)
        mode = convert_mode(self.mode, target, state, self.instruction.span)
        policy = same_format_policy(fmt, mode.rounding)
        random = self.drawn(mode.rounding, operands, state)
        codes = self.codes(operands, fmt)
        results = round_to_integral_codes(codes, fmt, policy, random=random.words)
        assert mode.rounding is not None
        tell_change(Judge(fmt, fmt, mode.rounding), codes, results)
        if self.integer is None:
            return random.effects(self.placed(results, fmt, operands))
        whole = FORMATS[self.integer]
        through = target.special_values.intermediate
        numbers = converted(codes, fmt, whole, policy_of(fmt, whole, mode, False, target), random.words, through)
        tell_change(Judge(fmt, whole, mode.rounding), codes, numbers)
        return random.effects(self._pair(operands, results, numbers))

    def _pair(self, operands: OperandValues, results: Codes, numbers: Codes) -> Value:
        """Return both registers; a false predicate keeps both."""
        assert operands.income is not None and self.integer is not None
        parts = zip((self.element, self.integer), (results, numbers), vectors(operands.income), strict=True)
        return tuple(
            vector
            for name, codes, income in parts
            for vector in vectors(self.placed(codes, FORMATS[name], replace(operands, income=income)))
        )

    def counts(self) -> Mapping[str, int]:
        """Return one for each operand, and two results if there is an integer."""
        return {"src_a": 1, "dest": 1 if self.integer is None else 2}


def prepare_nearbyint(instruction: TpcInstruction, target: VliwTarget) -> NearbyInt:
    """Check a NEARBYINT.

    Raises:
        IllegalError: the generation lacks the float or mode, or the integer is not the result of `cnvrt` for the
            type.
    """
    floats = tuple(name for name in whole_bytes(target) if isinstance(FORMATS[name], FloatFormat))
    element = check_element(instruction, target, instruction.type, floats)
    mode = check_mode(instruction, target.convert_rounding, instruction.switch("rounding"))
    placement, integer = None, None
    if destination_file(instruction) is not File.S:
        fmt = FORMATS[element]
        placement = place(fmt, fmt, target.registers.vector_bytes, lane=None, registers=1)
        if instruction.switch("cnvrt"):
            integer = _INTEGER_OF[fmt.bits]
            if instruction.switch("target_type") != integer:
                message = f"nearbyint.{element} cnvrt makes {integer} of {element}"
                raise IllegalError(message, span=instruction.span, legal=(f"target_type=int{fmt.bits}",))
    return NearbyInt(instruction, target, placement, element, mode, integer)
