"""CONVERT, CONVERT_INT8 to CONVERT_UINT32 and NEARBYINT: what a generation has of them, their lanes, their values.

Source: docs/reference/tpc.md sections 2.1 to 2.4 and 5.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, FloatFormat, Format, IntFormat
from castsim.isa.modes import Rounding
from castsim.isa.tpc.program import File, Immediate, Register, TpcInstruction
from castsim.machines.vliw.semantics.configuration import (
    Drawn,
    Effects,
    Mask,
    OperandValues,
    State,
    Value,
    check_element,
    check_mode,
    convert_mode,
    draw,
    element_format,
    whole_bytes,
)
from castsim.machines.vliw.semantics.element_lanes import (
    Unit,
    destination_file,
    elements,
    group_of,
    integers,
    lanes_of,
    signed_word,
    vector_of,
    vectors,
)
from castsim.machines.vliw.semantics.moves import narrow_result
from castsim.machines.vliw.semantics.policies import (
    FormNotice,
    convert_form,
    converted,
    integer_policy,
    integral_policy,
    is_lane_by_lane,
    lane_form,
    policy_of,
    registers_named,
)
from castsim.numerics import Scale, code_dtype, round_to_integral_codes, scaled_cast_codes
from castsim.targets.vliw import ConvertRow, IntegerConvertRow, RoundingMode, VliwTarget

# Which element of which register a conversion reads and writes (docs/reference/tpc.md section 2.2).
#
# With r the ratio of the widths, i an element of the wide side and k a lane, the narrow element of a pair is r*i + k.

Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class ElementPlacement:
    """Element numbers of every conversion that one instruction performs, counted through the registers of a group.

    `gather` and `scatter` are the elements read and written, `places` the byte of the narrow element in its own
    register, whose predicate bit decides. `lane` numbers the conversions within a register, for random words;
    `sources` and `destinations` are numbers of registers.
    """

    gather: Indices
    scatter: Indices
    places: Indices
    lane: Indices
    sources: int
    destinations: int


def place(src: Format, dst: Format, vector_bytes: int, *, lane: int | None, registers: int) -> ElementPlacement:
    """Place the conversions of an instruction.

    `lane` is the lane_sel of a single_lane form, None for all_lanes; `registers` is how many registers an instruction
    between types of equal width converts.
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
    """Return which conversions a vector predicate admits, None if there is no such predicate."""
    if placement is None or not isinstance(operands.predicate, np.ndarray):
        return None
    return operands.predicate[placement.places]


def gathered(value: Value, src: Format, where: Indices) -> Codes:
    """Return elements of a vector or of a group of vectors."""
    return elements(value, src)[where]


def scattered(
    results: Codes, dst: Format, placement: ElementPlacement, operands: OperandValues, vector_bytes: int
) -> Value:
    """Return the destination with the results in their places, and income where none is or the predicate is false."""
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


WIDE_LANE = "lane_sel above 0 of a conversion to a wider type: the assembler takes it, no source says what it reads"
"""Remark on a form without documented meaning."""

_ALL = "all_lanes"
_MULTIPLES = {"x2": 2, "x4": 4}


@dataclass(frozen=True, slots=True)
class PlacedUnit(Unit):
    """A conversion of elements one by one, ready to run; `placement` is None in the scalar unit."""

    placement: ElementPlacement | None

    def drawn(self, rounding: Rounding | None, operands: OperandValues, state: State) -> Drawn:
        """Return the random words of the conversions, if their rounding needs any."""
        lanes = self.placement.lane if self.placement else None
        return draw(rounding, lanes, admitted(self.placement, operands), self.target, state)

    def codes(self, operands: OperandValues, src: Format) -> Codes:
        """Return what is converted, an element per conversion."""
        value = self.value(operands, "src_a")
        if self.placement is not None:
            return gathered(value, src, self.placement.gather)
        assert isinstance(value, int)
        return np.array([value & (1 << src.bits) - 1], code_dtype(src))

    def placed(self, results: Codes, dst: Format, operands: OperandValues) -> Value:
        """Return the destination with the results in their places."""
        if self.placement is None:
            return narrow_result(int(results[0]), dst, operands, self.target)
        return scattered(results, dst, self.placement, operands, self.vector_bytes)


@dataclass(frozen=True, slots=True)
class PreparedConversion(PlacedUnit):
    """A conversion of element types, ready to run."""

    src: str
    dst: str
    mode: RoundingMode
    clip: bool
    remarks: tuple[str, ...]
    notices: tuple[FormNotice, ...] = ()

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the converted elements in their places."""
        target = self.target
        src, dst = (element_format(name, target, state) for name in (self.src, self.dst))
        mode = convert_mode(self.mode, target, state, self.instruction.span)
        policy = policy_of(src, dst, mode, self.clip, target)
        random = self.drawn(mode.rounding, operands, state)
        through = target.special_values.intermediate
        results = converted(self.codes(operands, src), src, dst, policy, random.words, through)
        return random.effects(self.placed(results, dst, operands), self.remarks)

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        if self.placement is None:
            words = {"src_a": FORMATS[self.src].bits, "dest": FORMATS[self.dst].bits}
            counts = {role: -(-bits // 32) for role, bits in words.items()}
        else:
            counts = {"src_a": self.placement.sources, "dest": self.placement.destinations}
        return {role: group_of(self.instruction, role, count, self.target) for role, count in counts.items()}


def prepare_convert(instruction: TpcInstruction, target: VliwTarget) -> PreparedConversion:
    """Look up a CONVERT in the tables of the generation.

    Raises:
        IllegalError: the unit has no such pair, mode, lane, or switch, or an operand names another number of registers.
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
    found = PreparedConversion(instruction, target, placement, src, dst, mode, clip, remarks, form.notices)
    found.registers()
    return found


def _check_switches(instruction: TpcInstruction, row: ConvertRow) -> int:
    """Return how many registers x2 and x4 ask for, after checking that the pair has the switches that are set."""
    set_ones = [name for name in (*_MULTIPLES, "clip_fp") if instruction.switch(name) == 1]
    for name in set_ones:
        if name not in row.switches:
            message = f"the conversion {row.src} -> {row.dst} has no switch {name} here"
            by_pair = (*_MULTIPLES, "clip_fp")
            others = (each.name for each in instruction.form.switches if each.name not in by_pair)
            raise IllegalError(message, span=instruction.span, legal=(*row.switches, *others))
    multiples = [_MULTIPLES[name] for name in set_ones if name in _MULTIPLES]
    if len(multiples) > 1:
        raise IllegalError("x2 and x4 exclude each other", span=instruction.span, legal=tuple(_MULTIPLES))
    return multiples[0] if multiples else 1


# CONVERT_INT8 to CONVERT_UINT32: shift, round once, saturate to a narrower integer.
#
# Source: docs/reference/tpc.md section 2.4.

Shifts = NDArray[np.int64]

POSITIVE_SHIFT = "a shift above 0 multiplies: vendor code only uses shifts up to 0, no source states this"
"""Remark on a shift without documented meaning."""

_BYTE = 8


@dataclass(frozen=True, slots=True)
class ConvertInteger(PlacedUnit):
    """A narrowing with shift, ready to run.

    `shift` is the format of a shift vector's elements: bytes of which each value's lane has the lowest, elements beside
    the values (`by_value`) or beside the results.
    """

    src: IntFormat
    dst: IntFormat
    mode: RoundingMode
    shift: IntFormat
    by_value: bool
    notices: tuple[FormNotice, ...] = ()

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the shifted, rounded and saturated elements in their places."""
        shifts = self.shifts(self.value(operands, "src_b"))
        remarks = self._check_shifts(shifts, operands)
        random = self.drawn(self.mode.rounding, operands, state)
        codes, policy = self.codes(operands, self.src), integer_policy(self.mode)
        results = scaled_cast_codes(codes, self.src, self.dst, Scale(1), policy, shifts=shifts, random=random.words)
        return random.effects(self.placed(results, self.dst, operands), remarks)

    def shifts(self, value: Value) -> Shifts:
        """Return one shift per conversion from what `src_b` holds.

        Raises:
            IllegalError: bytes of one lane differ, and option vector_shift_byte refuses that.
        """
        count = 1 if self.placement is None else self.placement.gather.size
        if isinstance(value, int):
            bits = self.target.integer_shift.scalar_bits
            return np.full(count, signed_word(value) if bits is None else _signed(value, bits))
        assert self.placement is not None
        found = self._vector_shifts(value, self.placement)
        bits = self.target.integer_shift.vector_bits
        if bits is not None and bits < self.shift.bits:
            top = 64 - bits
            found = found << top >> top
        return found

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        counts = {"src_a": 1, "dest": 1}
        if self.placement is not None:
            counts = {"src_a": self.placement.sources, "dest": self.placement.destinations}
        if not isinstance(self.instruction.operand("src_b"), Immediate):
            counts["src_b"] = 1
        return {role: group_of(self.instruction, role, count, self.target) for role, count in counts.items()}

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
        """Return remarks on shifts that nothing documents.

        Raises:
            IllegalError: one is above 0, and option positive_shift refuses that.
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
    """Look up a CONVERT_INT* in the tables of the generation.

    Raises:
        IllegalError: the unit has no such destination width, mode or lane, or an operand names another number of
            registers.
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
    found = ConvertInteger(instruction, target, placement, src, dst, mode, shift, by_value, notices)
    found.registers()
    return found


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
    found = FORMATS[name]
    assert isinstance(found, IntFormat)
    return found


def _shift_format(row: IntegerConvertRow, src: Format, dst: Format, *, single: bool) -> tuple[IntFormat, bool]:
    """Return the elements of a shift vector and whether they stand beside the values.

    The table names them for single_lane (the value's width) and all_lanes (the result's); where it only has bytes,
    every value takes the lowest byte of its lane.
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
    """Rounding of floats to integral values, ready to run.

    `integer` is the format of a second result (None: there is one): the
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
        policy = integral_policy(fmt, mode)
        random = self.drawn(mode.rounding, operands, state)
        codes = self.codes(operands, fmt)
        results = round_to_integral_codes(codes, fmt, policy, random=random.words)
        if self.integer is None:
            return random.effects(self.placed(results, fmt, operands))
        whole = FORMATS[self.integer]
        through = target.special_values.intermediate
        numbers = converted(codes, fmt, whole, policy_of(fmt, whole, mode, False, target), random.words, through)
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

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        counts = {"src_a": 1, "dest": 1 if self.integer is None else 2}
        return {role: group_of(self.instruction, role, count, self.target) for role, count in counts.items()}


def prepare_nearbyint(instruction: TpcInstruction, target: VliwTarget) -> NearbyInt:
    """Check a NEARBYINT.

    Raises:
        IllegalError: no float of the generation, no such mode, another integer than `cnvrt` makes of the type, or a
            destination of another number of registers.
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
    found = NearbyInt(instruction, target, placement, element, mode, integer)
    found.registers()
    return found
