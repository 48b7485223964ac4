"""CONVERT_INT8 to CONVERT_UINT32: shift, round once, saturate to a narrower integer.

Source: docs/reference/tpc.md section 2.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, Format, IntFormat
from castsim.isa.tpc.program import File, Immediate, Register, TpcInstruction
from castsim.machines.vliw.semantics.configuration import check_mode, draw
from castsim.machines.vliw.semantics.conversion_forms import Notice, lane_form
from castsim.machines.vliw.semantics.interface import Effects, OperandValues, State, Value
from castsim.machines.vliw.semantics.lanes import elements, given, integers, signed_word, vectors
from castsim.machines.vliw.semantics.moves import narrow_result
from castsim.machines.vliw.semantics.placement import ElementPlacement, admitted, gathered, place, scattered
from castsim.machines.vliw.semantics.policies import integer_policy
from castsim.machines.vliw.semantics.registers import destination_file, group_of
from castsim.numerics import Scale, code_dtype, scaled_cast_codes
from castsim.targets.vliw import IntegerConvertRow, RoundingMode, VliwTarget

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
