"""How many trips hardware loops make, where the text tells."""

from __future__ import annotations

from castsim.isa.tpc import Comparison, Immediate, Register, RegisterDeclaration, TpcInstruction
from castsim.isa.tpc.program import WORD_MASK, File
from castsim.machines.vliw.lint.flow import Flow
from castsim.machines.vliw.structure import LoopShape, holds, signed

_PLAIN = (None, "i32", "u32", "f32")
"""Types under which MOV fills all of an S register."""


def trip_counts(flow: Flow, most: int) -> tuple[int | None, ...]:
    """Return the trips of every loop, by its number: `most` stands for that many or more, None for unknown.

    Known are immediates, registers that only a declaration gives a value, and those that only one MOV of an immediate
    writes, on every path and early enough.
    """
    return tuple(_trips(flow, loop, most) for loop in flow.loops)


def _trips(flow: Flow, loop: LoopShape, most: int) -> int | None:
    instruction = flow.loop_head(loop).instruction
    compare = instruction.operand("compare")
    assert isinstance(compare, Comparison)
    start, bound, step = (_constant(flow, loop, instruction, role) for role in ("start", "bound", "step"))
    if start is None or bound is None or step is None:
        return None
    value, trips = signed(start), 0
    while trips < most and holds(compare, value, signed(bound)):
        value, trips = signed((value + step) & WORD_MASK), trips + 1
    return trips


def _constant(flow: Flow, loop: LoopShape, instruction: TpcInstruction, role: str) -> int | None:
    operand = instruction.operand(role)
    if isinstance(operand, Immediate):
        return operand.value & WORD_MASK
    if not isinstance(operand, Register) or operand in map(flow.structure.iterator, range(len(flow.loops))):
        return None
    writes = flow.writers.get(str(operand), ())
    declared = [
        each.values[0]
        for each in flow.program.declarations
        if isinstance(each, RegisterDeclaration) and each.register == operand
    ]
    if not writes and declared:
        return int(declared[0]) & WORD_MASK
    if declared or len(writes) != 1:
        return None
    ((index, plan),) = writes
    mov, value = plan.instruction, plan.instruction.operand("src_a")
    on_every_path = not any(place < loop.head for place, _ in flow.jumps) and not flow.structure.enclosing[index]
    early = loop.head - index >= flow.target.loop_rules.register_distance
    plain = mov.mnemonic == "mov" and mov.predicate is None and mov.type in _PLAIN and operand.file is File.S
    return value.value & WORD_MASK if isinstance(value, Immediate) and plain and on_every_path and early else None
