"""CONVERT and NEARBYINT: what a generation has of them, and their lanes (tpc.md sections 2.1 to 2.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from isa.errors import IllegalError
from isa.formats import FORMATS, FloatFormat
from isa.tpc.program import File, Instruction, Register
from simulator.numerics import code_dtype, round_to_integral_codes
from simulator.vliw.semantics.configuration import (
    check_element,
    check_mode,
    convert_mode,
    draw,
    element_format,
    whole_bytes,
)
from simulator.vliw.semantics.interface import Effects, Operands, State
from simulator.vliw.semantics.lanes import given
from simulator.vliw.semantics.placement import Placement, admitted, gathered, place, scattered
from simulator.vliw.semantics.policies import converted, integral_policy, policy_of
from simulator.vliw.semantics.registers import destination_file, group_of
from simulator.vliw.semantics.scalars import narrow_result
from targets.vliw import ConvertRow, IntegerConvertRow, RoundingMode, VliwTarget

WIDE_LANE = "lane_sel above 0 of a conversion to a wider type: the assembler takes it, no source says what it reads"
"""Remark on a form without documented meaning."""

_SINGLE, _ALL = "single_lane", "all_lanes"
_MULTIPLES = {"x2": 2, "x4": 4}


@dataclass(frozen=True, slots=True)
class Convert:
    """A conversion of element types, ready to run; `placement` is None in the scalar unit."""

    instruction: Instruction
    target: VliwTarget
    src: str
    dst: str
    mode: RoundingMode
    clip: bool
    placement: Placement | None
    remarks: tuple[str, ...]

    def __call__(self, operands: Operands, state: State) -> Effects:
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


def prepare_convert(instruction: Instruction, target: VliwTarget) -> Convert:
    """Look a CONVERT up in the tables of the generation.

    Raises:
        IllegalError: the unit has no such pair, mode, lane, or switch, or an operand names another number of registers.
    """
    src, dst = str(instruction.type), str(instruction.switch("target_type"))
    unit = "spu" if destination_file(instruction) is File.S else "vpu"
    row = target.convert(src, dst, unit)
    if row is None:
        legal = [other.dst for other in target.converts if (other.unit, other.src) == (unit, src)]
        legal = legal or [f"from {name}" for name in dict.fromkeys(o.src for o in target.converts if o.unit == unit)]
        kind = "scalar" if unit == "spu" else "vector"
        message = f"{target.name} has no {kind} conversion {src} -> {dst}"
        raise IllegalError(message, span=instruction.span, legal=legal)
    mode = check_mode(instruction, target.convert_rounding, instruction.switch("rounding"))
    multiple = _check_switches(instruction, row)
    placement = None
    remarks: tuple[str, ...] = ()
    if unit == "vpu":
        lane = chosen_lane(instruction, row)
        formats = FORMATS[src], FORMATS[dst]
        placement = place(*formats, target.registers.vector_bytes, lane=lane, registers=multiple)
        if lane and formats[1].bits > formats[0].bits:
            remarks = (WIDE_LANE,)
            if target.option("wide_lane_select") == "refuse":
                raise IllegalError(WIDE_LANE, span=instruction.span, legal=("lane_sel=0",))
    clip = instruction.switch("clip_fp") == 1
    found = Convert(instruction, target, src, dst, mode, clip, placement, remarks)
    found.registers()
    return found


def _check_switches(instruction: Instruction, row: ConvertRow) -> int:
    """Return how many registers x2 and x4 ask for, after checking that the pair has the switches that are set."""
    set_ones = [name for name in (*_MULTIPLES, "clip_fp") if instruction.switch(name) == 1]
    for name in set_ones:
        if name not in row.switches:
            message = f"the conversion {row.src} -> {row.dst} has no switch {name} here"
            raise IllegalError(message, span=instruction.span, legal=row.switches or ("none",))
    multiples = [_MULTIPLES[name] for name in set_ones if name in _MULTIPLES]
    if len(multiples) > 1:
        raise IllegalError("x2 and x4 exclude each other", span=instruction.span, legal=tuple(_MULTIPLES))
    return multiples[0] if multiples else 1


def chosen_lane(instruction: Instruction, row: ConvertRow | IntegerConvertRow) -> int | None:
    """Return the lane of a single_lane form, None for all_lanes.

    Raises:
        IllegalError: the pair lacks the form or the lane; those it has are listed.
    """
    pair = f"{row.src} -> {row.dst}"
    word = instruction.switch("num_lanes") or _SINGLE
    lane = instruction.switch("lane_sel") or 0
    if word not in (row.lanes or (_SINGLE,)):
        legal = row.lanes or ("no lane switch: the widths are equal",)
        raise IllegalError(f"the conversion {pair} has no {word} here", span=instruction.span, legal=legal)
    last = 0 if word == _ALL else row.lane_sel_max or 0
    if not isinstance(lane, int) or lane > last:
        legal = tuple(f"lane_sel={number}" for number in range(last + 1))
        message = f"the conversion {pair} with {word} has no lane_sel={lane}"
        raise IllegalError(message, span=instruction.span, legal=legal)
    return None if word == _ALL else lane


# ------------------------------------------------------------------------------------------------------- NEARBYINT


@dataclass(frozen=True, slots=True)
class NearbyInt:
    """Rounding of floats to integral values, ready to run; `placement` is None in the scalar unit."""

    instruction: Instruction
    target: VliwTarget
    element: str
    mode: RoundingMode
    placement: Placement | None

    def __call__(self, operands: Operands, state: State) -> Effects:
        """Return the rounded elements."""
        target, placement = self.target, self.placement
        fmt = element_format(self.element, target, state)
        assert isinstance(fmt, FloatFormat)
        mode = convert_mode(self.mode, target, state, self.instruction.span)
        policy = integral_policy(fmt, mode)
        value = given(self.instruction, operands, "src_a")
        lanes = placement.lane if placement else None
        random = draw(mode.rounding, lanes, admitted(placement, operands), target, state)
        if placement is None:
            assert isinstance(value, int)
            codes = np.array([value & (1 << fmt.bits) - 1], code_dtype(fmt))
            code = int(round_to_integral_codes(codes, fmt, policy, random=random.words)[0])
            return random.effects(narrow_result(code, fmt, operands, target))
        codes = gathered(value, fmt, placement.gather)
        results = round_to_integral_codes(codes, fmt, policy, random=random.words)
        return random.effects(scattered(results, fmt, placement, operands, target.registers.vector_bytes))

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return {role: group_of(self.instruction, role, 1, self.target) for role in ("src_a", "dest")}


def prepare_nearbyint(instruction: Instruction, target: VliwTarget) -> NearbyInt:
    """Check a NEARBYINT.

    Raises:
        IllegalError: no float of the generation, no such mode, or the form `cnvrt`, whose values no source states.
    """
    floats = tuple(name for name in whole_bytes(target) if isinstance(FORMATS[name], FloatFormat))
    element = check_element(instruction, target, instruction.type, floats)
    if instruction.switch("cnvrt"):
        message = "nearbyint cnvrt: no source states its values, they are not computed"
        raise IllegalError(message, span=instruction.span, legal=("nearbyint without cnvrt",))
    mode = check_mode(instruction, target.convert_rounding, instruction.switch("rounding"))
    placement = None
    if destination_file(instruction) is not File.S:
        fmt = FORMATS[element]
        placement = place(fmt, fmt, target.registers.vector_bytes, lane=None, registers=1)
    found = NearbyInt(instruction, target, element, mode, placement)
    found.registers()
    return found
