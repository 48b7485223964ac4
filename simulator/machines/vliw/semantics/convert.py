"""CONVERT: what a generation has of it, and its lanes (docs/reference/tpc.md sections 2.1 to 2.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS
from castsim.isa.tpc.program import File, Register, TpcInstruction
from castsim.machines.vliw.semantics.configuration import check_mode, convert_mode, draw, element_format
from castsim.machines.vliw.semantics.conversion_forms import Notice, convert_form, is_lane_by_lane, registers_named
from castsim.machines.vliw.semantics.interface import Effects, OperandValues, State
from castsim.machines.vliw.semantics.lanes import given
from castsim.machines.vliw.semantics.moves import narrow_result
from castsim.machines.vliw.semantics.placement import ElementPlacement, admitted, gathered, place, scattered
from castsim.machines.vliw.semantics.policies import converted, policy_of
from castsim.machines.vliw.semantics.registers import destination_file, group_of
from castsim.numerics import code_dtype
from castsim.targets.vliw import ConvertRow, RoundingMode, VliwTarget

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
