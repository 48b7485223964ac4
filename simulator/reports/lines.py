"""Where the cycles of a run went, by source instruction."""

from __future__ import annotations

from dataclasses import dataclass

from isa.errors import Span
from simulator.timing import Execution, Timing
from simulator.tree import Instruction, Tree

BOOKKEEPING = frozenset({"index arithmetic", "loop"})
"""Instructions that only decide path and addresses, as `simulator.execution` calls them."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """All executions of one source instruction.

    `cycles` adds up their spans from start to end, which may overlap each other; `pipe_cycles` are those that the pipe
    of each operation spent on its behalf, work and waiting, which do not.
    """

    text: str
    pipe: str
    span: Span
    executions: int
    first_start: int
    last_end: int
    cycles: int
    pipe_cycles: int


def listed(instruction: Instruction) -> bool:
    """Return whether reports have a row for an instruction: it stands in the source and is no bookkeeping."""
    return not instruction.inserted and instruction.text not in BOOKKEEPING


def source_lines(tree: Tree, timing: Timing) -> tuple[SourceLine, ...]:
    """Return one row per source instruction that was executed, in the order of the source; those that are `listed`."""
    spent = _pipe_cycles(timing)
    found = [
        _line(tree.instructions[number], executions, spent.get(number, 0))
        for number, executions in _by_instruction(timing).items()
        if listed(tree.instructions[number])
    ]
    return tuple(sorted(found, key=lambda line: (line.span.line, line.span.column)))


def bookkeeping(tree: Tree, timing: Timing) -> tuple[int, int]:
    """Return executions and cycles of index arithmetic and loop turnarounds, which are not listed by line."""
    ours = [e for e in timing.executions if tree.instructions[e.instruction].text in BOOKKEEPING]
    return len(ours), sum(execution.end - execution.start for execution in ours)


def inserted(tree: Tree, timing: Timing) -> tuple[int, int]:
    """Return executions of inserted flags and barriers, and the cycles that pipes waited at them."""
    spent = _pipe_cycles(timing)
    executions = sum(tree.instructions[execution.instruction].inserted for execution in timing.executions)
    return executions, sum(cycles for number, cycles in spent.items() if tree.instructions[number].inserted)


def _by_instruction(timing: Timing) -> dict[int, list[Execution]]:
    found: dict[int, list[Execution]] = {}
    for execution in timing.executions:
        found.setdefault(execution.instruction, []).append(execution)
    return found


def _pipe_cycles(timing: Timing) -> dict[int, int]:
    found: dict[int, int] = {}
    for operation in timing.operations:
        number = timing.executions[operation.execution].instruction
        found[number] = found.get(number, 0) + sum(operation.causes.values())
    return found


def _line(instruction: Instruction, executions: list[Execution], pipe_cycles: int) -> SourceLine:
    return SourceLine(
        text=instruction.text,
        pipe=instruction.pipe,
        span=instruction.span,
        executions=len(executions),
        first_start=min(execution.start for execution in executions),
        last_end=max(execution.end for execution in executions),
        cycles=sum(execution.end - execution.start for execution in executions),
        pipe_cycles=pipe_cycles,
    )
