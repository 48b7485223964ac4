"""Elements in S registers: how a result narrower than the register is held there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, Format, IntFormat
from castsim.isa.tpc.program import WORD_BITS, DimensionMask, File, Immediate, Register, Special, TpcInstruction
from castsim.machines.vliw.semantics.configuration import (
    check_element,
    check_mode,
    convert_mode,
    draw,
    element_format,
    stepped,
)
from castsim.machines.vliw.semantics.conversion_forms import (
    Notice,
    convert_form,
    is_lane_by_lane,
    lane_form,
    registers_named,
)
from castsim.machines.vliw.semantics.interface import (
    Coordinates,
    Effects,
    Mask,
    OperandValues,
    State,
    Value,
    Vector,
    Words,
)
from castsim.machines.vliw.semantics.lanes import (
    WORD_MASK,
    broadcast,
    elements,
    given,
    integers,
    lanes_of,
    merged,
    signed_word,
    vector_of,
    vectors,
)
from castsim.machines.vliw.semantics.placement import ElementPlacement, admitted, gathered, place, scattered
from castsim.machines.vliw.semantics.policies import converted, integer_policy, policy_of
from castsim.machines.vliw.semantics.registers import destination_file, group_of, plain_registers
from castsim.numerics import Scale, code_dtype, scaled_cast_codes
from castsim.targets.vliw import ConvertRow, IntegerConvertRow, RoundingMode, VliwTarget


def narrow_result(code: int, fmt: Format, operands: OperandValues, target: VliwTarget) -> int:
    """Return S after an instruction put an element into its low bits (option narrow_scalar_result).

    Scalar predicates only: an instruction whose predicate is false does not come here.
    """
    if fmt.bits >= WORD_MASK.bit_length():
        return code & WORD_MASK
    low = (1 << fmt.bits) - 1
    rule = target.option("narrow_scalar_result")
    if rule == "keep" and isinstance(operands.income, int):
        return operands.income & ~low & WORD_MASK | code & low
    if rule == "sign_extend" and isinstance(fmt, IntFormat) and fmt.signed and code >> (fmt.bits - 1) & 1:
        return code & low | WORD_MASK & ~low
    return code & low


def scalar(value: object) -> int:
    """Return the content of an S register or immediate as an unsigned number."""
    assert isinstance(value, int)
    return value & WORD_MASK


def signed_scalar(value: object) -> int:
    """Return the content of an S register or immediate as a signed number."""
    return signed_word(scalar(value))


# CONVERT: what a generation has of it, and its lanes (docs/reference/tpc.md sections 2.1 to 2.3).

WIDE_LANE = "lane_sel above 0 of a conversion to a wider type: the assembler takes it, no source says what it reads"
"""Remark on a form without documented meaning."""

_ALL = "all_lanes"
_MULTIPLES = {"x2": 2, "x4": 4}


@dataclass(frozen=True, slots=True)
class PreparedConversion:
    """A conversion of element types, ready to run; `placement` is None in the scalar unit."""

    instruction: TpcInstruction
    target: VliwTarget
    src: str
    dst: str
    mode: RoundingMode
    clip: bool
    placement: ElementPlacement | None
    remarks: tuple[str, ...]
    notices: tuple[Notice, ...] = ()

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the converted elements in their places."""
        target, placement = self.target, self.placement
        src, dst = (element_format(name, target, state) for name in (self.src, self.dst))
        mode = convert_mode(self.mode, target, state, self.instruction.span)
        policy = policy_of(src, dst, mode, self.clip, target)
        value = given(self.instruction, operands, "src_a")
        lanes = placement.lane if placement else None
        random = draw(mode.rounding, lanes, admitted(placement, operands), target, state)
        through = target.special_values.intermediate
        if placement is None:
            assert isinstance(value, int)
            codes = np.array([value & (1 << src.bits) - 1], code_dtype(src))
            code = int(converted(codes, src, dst, policy, random.words, through)[0])
            return random.effects(narrow_result(code, dst, operands, target), self.remarks)
        codes = gathered(value, src, placement.gather)
        results = converted(codes, src, dst, policy, random.words, through)
        result = scattered(results, dst, placement, operands, target.registers.vector_bytes)
        return random.effects(result, self.remarks)

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
    found = PreparedConversion(instruction, target, src, dst, mode, clip, placement, remarks, form.notices)
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
class ConvertInteger:
    """A narrowing with shift, ready to run; `placement` is None in the scalar unit.

    `shift` is the format of a shift vector's elements: bytes of which each value's lane has the lowest, elements beside
    the values (`by_value`) or beside the results.
    """

    instruction: TpcInstruction
    target: VliwTarget
    src: IntFormat
    dst: IntFormat
    mode: RoundingMode
    placement: ElementPlacement | None
    shift: IntFormat
    by_value: bool
    notices: tuple[Notice, ...] = ()

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the shifted, rounded and saturated elements in their places."""
        target, placement = self.target, self.placement
        value = given(self.instruction, operands, "src_a")
        shifts = self.shifts(given(self.instruction, operands, "src_b"))
        remarks = self._check_shifts(shifts, operands)
        lanes = placement.lane if placement else None
        random = draw(self.mode.rounding, lanes, admitted(placement, operands), target, state)
        if placement is None:
            assert isinstance(value, int)
            codes = np.array([value & (1 << self.src.bits) - 1], code_dtype(self.src))
        else:
            codes = gathered(value, self.src, placement.gather)
        policy = integer_policy(self.mode)
        results = scaled_cast_codes(codes, self.src, self.dst, Scale(1), policy, shifts=shifts, random=random.words)
        if placement is None:
            return random.effects(narrow_result(int(results[0]), self.dst, operands, target), remarks)
        result = scattered(results, self.dst, placement, operands, target.registers.vector_bytes)
        return random.effects(result, remarks)

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
        lanes = placement.gather % (self.target.registers.vector_bytes * 8 // self.src.bits)
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
    notices: tuple[Notice, ...] = ()
    if unit == "vpu":
        form = lane_form(instruction, row, target)
        notices = form.notices
        placement = place(src, dst, target.registers.vector_bytes, lane=form.lane, registers=1)
        shift, by_value = _shift_format(row, src, dst, single=form.lane is not None)
    found = ConvertInteger(instruction, target, src, dst, mode, placement, shift, by_value, notices)
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


# Index registers: SET_INDX, PRMT_INDX, MOV_IRF_DIM and arithmetic on coordinates.
#
# Source: docs/reference/tpc.md section 7.1.

_FIELD_BITS = 3
"""Width of one dimension number in the pattern of PRMT_INDX."""


def masked_dimensions(instruction: TpcInstruction, operands: OperandValues, target: VliwTarget) -> tuple[bool, ...]:
    """Return which dimensions the mask of an instruction admits, dimension 0 first.

    Raises:
        IllegalError: a mask register holds bits beyond the dimensions.
    """
    mask = instruction.operand("mask")
    bits = mask.bits if isinstance(mask, DimensionMask) else scalar(operands.sources["mask"])
    count = target.registers.index_dimensions
    if bits >> count:
        message = f"dimension mask {bits:#x} has bits beyond the {count} dimensions"
        raise IllegalError(message, span=instruction.span, legal=(f"0 to {(1 << count) - 1:#x}",))
    return tuple(bool(bits >> dimension & 1) for dimension in range(count))


def written_dimensions(new: Value, dimensions: tuple[bool, ...], operands: OperandValues) -> Value:
    """Return an index register with the admitted dimensions replaced."""
    parts = zip(dimensions, coordinates_of(new), coordinates_of(operands.income), strict=True)
    return merged(tuple(one if admitted else old for admitted, one, old in parts), operands)


def coordinates_of(value: Value | None) -> Coordinates:
    """Return an index register's value as such."""
    assert isinstance(value, tuple)
    return tuple(one for one in value if isinstance(one, int))


@dataclass(frozen=True, slots=True)
class SetIndex:
    """SET_INDX: a scalar to the masked dimensions."""

    instruction: TpcInstruction
    target: VliwTarget

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the changed coordinates."""
        value = signed_scalar(given(self.instruction, operands, "src_a"))
        dimensions = masked_dimensions(self.instruction, operands, self.target)
        return Effects(written_dimensions((value,) * len(dimensions), dimensions, operands))

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)


@dataclass(frozen=True, slots=True)
class PermuteIndex:
    """PRMT_INDX: dimension k takes the dimension that the k-th field of a scalar names."""

    instruction: TpcInstruction
    target: VliwTarget

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the permuted coordinates.

        Raises:
            IllegalError: a field names no dimension.
        """
        source = coordinates_of(given(self.instruction, operands, "src_a"))
        pattern = scalar(given(self.instruction, operands, "src_b"))
        fields = [pattern >> _FIELD_BITS * k & (1 << _FIELD_BITS) - 1 for k in range(len(source))]
        wrong = [field for field in fields if field >= len(source)]
        if wrong:
            message = f"prmt_indx: pattern {pattern:#x} names dimension {wrong[0]}"
            raise IllegalError(message, span=self.instruction.span, legal=(f"0 to {len(source) - 1}",))
        return Effects(merged(tuple(source[field] for field in fields), operands))

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)


@dataclass(frozen=True, slots=True)
class MoveDimension:
    """MOV_IRF_DIM: one coordinate to a scalar."""

    instruction: TpcInstruction
    target: VliwTarget

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the coordinate as 32 bits."""
        dimension = self.instruction.operand("dimension")
        assert isinstance(dimension, Immediate)
        coordinates = coordinates_of(given(self.instruction, operands, "src_a"))
        return Effects(merged(coordinates[dimension.value] & WORD_MASK, operands))

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)


# MOV in all its forms (docs/reference/tpc.md section 7.1, table of moves).

_MASK_BITS = 4
"""Bits of a VP per 32-bit lane in moves between VP and V."""

_LANE_NUMBERS = {"V_LANE_ID_32": "u32", "V_LANE_ID_16": "u16", "V_LANE_ID_8": "u8"}
"""Registers that hold the number of every lane, and its type."""

_VECTOR_RANDOM = {"LFSR": True, "LFSR_NO_CHANGE": False}
_SCALAR_RANDOM = {"S_LFSR": True, "S_LFSR_NO_CHANGE": False}
"""Names of the random generators, and whether reading advances them."""

_Value = Callable[["Move", OperandValues, State], Effects]


@dataclass(frozen=True, slots=True)
class Move:
    """A MOV, ready to run."""

    instruction: TpcInstruction
    target: VliwTarget
    run: _Value

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the value moved."""
        return self.run(self, operands, state)

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)

    @property
    def vector_bytes(self) -> int:
        """Size of a vector."""
        return self.target.registers.vector_bytes

    def source(self, operands: OperandValues) -> Value:
        """Return the value of the source."""
        return given(self.instruction, operands, "src_a")


def prepare_move(instruction: TpcInstruction, target: VliwTarget) -> Move:
    """Choose what a MOV does by the classes of its operands.

    Raises:
        IllegalError: an element type that the generation lacks.
    """
    dest, source = (_class_of(instruction, role) for role in ("dest", "src_a"))
    if instruction.type is not None and dest in (File.V, File.S):
        legal = tuple(name for name in target.elements.formats if FORMATS[name].bits <= WORD_BITS)
        check_element(instruction, target, instruction.type, legal)
    run = _BY_CLASS.get((dest, source)) or _BY_CLASS.get((dest, "")) or _copy
    found = Move(instruction, target, run)
    found.registers()
    return found


def _class_of(instruction: TpcInstruction, role: str) -> str:
    operand = instruction.operand(role)
    if isinstance(operand, Register):
        return operand.file
    return operand.name if isinstance(operand, Special) else "imm"


# ------------------------------------------------------------------------------------------------------- to vectors


def _copy(move: Move, operands: OperandValues, state: State) -> Effects:
    return Effects(merged(move.source(operands), operands))


def _broadcast(move: Move, operands: OperandValues, state: State) -> Effects:
    fmt = FORMATS[str(move.instruction.type)]
    codes = broadcast(move.source(operands), fmt, lanes_of(fmt, move.vector_bytes))
    return Effects(merged(vector_of(codes, fmt), operands))


def _lane_numbers(move: Move, operands: OperandValues, state: State) -> Effects:
    fmt = FORMATS[_LANE_NUMBERS[_class_of(move.instruction, "src_a")]]
    return Effects(merged(vector_of(np.arange(lanes_of(fmt, move.vector_bytes)), fmt), operands))


def _bytes_of(words: Words) -> Vector:
    return words.astype("<u4").view(np.uint8)


def _read_random(move: Move, operands: OperandValues, state: State) -> Effects:
    after = None
    if _VECTOR_RANDOM[_class_of(move.instruction, "src_a")]:
        after = stepped(state.vector_lfsr, "vector_lfsr_polynomial", move.target, state)
    return Effects(merged(_bytes_of(state.vector_lfsr), operands), vector_lfsr=after)


def _reseed(move: Move, operands: OperandValues, state: State) -> Effects:
    seed = vectors(move.source(operands))[0]
    if isinstance(operands.predicate, np.ndarray):
        seed = np.where(operands.predicate, seed, _bytes_of(state.vector_lfsr))
    return Effects(None, vector_lfsr=seed.view("<u4").astype(np.uint32))


def _bits_to_lanes(move: Move, operands: OperandValues, state: State) -> Effects:
    mask = vectors(move.source(operands))[0].reshape(-1, _MASK_BITS)
    lanes: Words = (mask.astype("<u4") << np.arange(_MASK_BITS, dtype="<u4")).sum(axis=1, dtype="<u4")
    return Effects(merged(lanes.view(np.uint8), operands))


# ---------------------------------------------------------------------------------------------------- to predicates


def _lanes_to_bits(move: Move, operands: OperandValues, state: State) -> Effects:
    lanes = vectors(move.source(operands))[0].view("<u4")
    mask: Mask = (lanes[:, None] >> np.arange(_MASK_BITS, dtype="<u4") & 1 != 0).reshape(-1)
    return Effects(merged(mask, operands))


def _word_to_mask(move: Move, operands: OperandValues, state: State) -> Effects:
    """The 32 bits to every section of the VP, or to one."""
    bits: Mask = (scalar(move.source(operands)) >> np.arange(WORD_BITS) & 1) != 0
    section = move.instruction.operand("section")
    mask = np.tile(bits, move.vector_bytes // WORD_BITS)
    if isinstance(section, Immediate):
        assert operands.income is not None
        kept = np.arange(mask.size) // WORD_BITS != section.value
        mask = np.where(kept, vectors(operands.income)[0] != 0, mask)
    return Effects(merged(mask, operands))


def _truth_to_mask(move: Move, operands: OperandValues, state: State) -> Effects:
    mask: Mask = np.full(move.vector_bytes, bool(move.source(operands)))
    return Effects(merged(mask, operands))


def _word_to_truth(move: Move, operands: OperandValues, state: State) -> Effects:
    return Effects(merged(bool(scalar(move.source(operands)) & 1), operands))


# ------------------------------------------------------------------------------------------------------- to scalars


def _to_scalar(move: Move, operands: OperandValues, state: State) -> Effects:
    """An immediate of a narrow type gives its low bits, a register all of its own."""
    value = scalar(move.source(operands))
    if isinstance(move.instruction.operand("src_a"), Immediate):
        fmt = FORMATS[str(move.instruction.type)]
        value = narrow_result(value & (1 << fmt.bits) - 1, fmt, operands, move.target)
    return Effects(merged(value, operands))


def _read_scalar_random(move: Move, operands: OperandValues, state: State) -> Effects:
    after = None
    if _SCALAR_RANDOM[_class_of(move.instruction, "src_a")]:
        word = np.array([state.scalar_lfsr], np.uint32)
        after = int(stepped(word, "scalar_lfsr_polynomial", move.target, state)[0])
    return Effects(merged(state.scalar_lfsr, operands), scalar_lfsr=after)


def _reseed_scalar(move: Move, operands: OperandValues, state: State) -> Effects:
    return Effects(None, scalar_lfsr=scalar(move.source(operands)))


def _to_index(move: Move, operands: OperandValues, state: State) -> Effects:
    value = move.source(operands)
    dimensions = masked_dimensions(move.instruction, operands, move.target)
    if isinstance(value, int):
        value = (signed_scalar(value),) * move.target.registers.index_dimensions
    return Effects(written_dimensions(value, dimensions, operands))


_BY_CLASS: dict[tuple[str, str], _Value] = {
    (File.V, File.S): _broadcast,
    (File.V, "imm"): _broadcast,
    (File.V, File.VP): _bits_to_lanes,
    **{(File.V, name): _lane_numbers for name in _LANE_NUMBERS},
    **{(File.V, name): _read_random for name in _VECTOR_RANDOM},
    ("LFSR", File.V): _reseed,
    (File.VP, File.V): _lanes_to_bits,
    (File.VP, File.S): _word_to_mask,
    (File.VP, "imm"): _word_to_mask,
    (File.VP, File.SP): _truth_to_mask,
    (File.SP, File.S): _word_to_truth,
    (File.SP, "imm"): _word_to_truth,
    (File.S, File.S): _to_scalar,
    (File.S, "imm"): _to_scalar,
    **{(File.S, name): _read_scalar_random for name in _SCALAR_RANDOM},
    ("S_LFSR", File.S): _reseed_scalar,
    (File.I, ""): _to_index,
}
"""What moves between unlike classes do; all others copy."""
