"""The cycles of a run by source instruction."""

from __future__ import annotations

from dataclasses import dataclass

from castsim.execution.timing import WAITING, Cause, Timing, repeated
from castsim.execution.tree import Instruction, InstructionRole, Tree
from castsim.isa.errors import Span


@dataclass(frozen=True, slots=True)
class SourceLine:
    """All executions of one source instruction.

    `cycles` adds up their spans from start to end, which may overlap each other; `pipe_cycles` are those that the pipe
    of each operation spent on its behalf, work and waiting, which do not; `work` are those of them that it worked.
    """

    text: str
    pipe: str
    span: Span
    executions: int
    first_start: int
    last_end: int
    cycles: int
    pipe_cycles: int
    work: int


def listed(instruction: Instruction) -> bool:
    """Whether reports have a row for an instruction: it stands in the source and is not bookkeeping."""
    return not instruction.inserted and instruction.role is not InstructionRole.BOOKKEEPING


def source_lines(tree: Tree, timing: Timing) -> tuple[SourceLine, ...]:
    """Return one row per source instruction that was executed, in the order of the source; those that are `listed`."""
    spent = _pipe_cycles(timing)
    found = [
        _line(tree.instructions[number], spans, *spent.get(number, (0, 0)))
        for number, spans in _by_instruction(timing).items()
        if listed(tree.instructions[number])
    ]
    return tuple(sorted(found, key=lambda line: (line.span.line, line.span.column)))


def bookkeeping(tree: Tree, timing: Timing) -> tuple[int, int]:
    """Return executions and cycles of index arithmetic and loop turnarounds, which are not listed by line."""
    ours = [
        s
        for number, s in _by_instruction(timing).items()
        if tree.instructions[number].role is InstructionRole.BOOKKEEPING
    ]
    return sum(spans.count for spans in ours), sum(spans.cycles for spans in ours)


def inserted(tree: Tree, timing: Timing) -> tuple[int, int]:
    """Return executions of inserted flags and barriers, and the cycles that pipes waited at them."""
    spent, spans = _pipe_cycles(timing), _by_instruction(timing)
    executions = sum(each.count for number, each in spans.items() if tree.instructions[number].inserted)
    return executions, sum(cycles for number, (cycles, _) in spent.items() if tree.instructions[number].inserted)


def causes_by_line(tree: Tree, timing: Timing) -> dict[int, dict[Cause, int]]:
    """Return the cycles that pipes spent on the `listed` instructions of each source line, by cause."""
    found: dict[int, dict[Cause, int]] = {}
    for operation, _, times in repeated(timing.operations):
        instruction = tree.instructions[timing.executions[operation.execution].instruction]
        if listed(instruction):
            own = found.setdefault(instruction.span.line, {})
            for cause, cycles in operation.causes.items():
                own[cause] = own.get(cause, 0) + times * cycles
    return found


@dataclass(slots=True)
class _ExecutionSpans:
    """The executions of one instruction together."""

    first_start: int
    last_end: int
    count: int = 0
    cycles: int = 0


def _by_instruction(timing: Timing) -> dict[int, _ExecutionSpans]:
    found: dict[int, _ExecutionSpans] = {}
    for execution, last, times in repeated(timing.executions):
        spans = found.setdefault(execution.instruction, _ExecutionSpans(execution.start, last.end))
        spans.first_start = min(spans.first_start, execution.start)
        spans.last_end = max(spans.last_end, execution.end, last.end)
        spans.count += times
        # What is issued ahead of a loop's slower pipes lasts longer from copy to copy, by the same amount each time.
        spans.cycles += times * (execution.end - execution.start + last.end - last.start) // 2
    return found


def _pipe_cycles(timing: Timing) -> dict[int, tuple[int, int]]:
    """Return the cycles that pipes spent on each instruction, and those of them that they worked."""
    found: dict[int, tuple[int, int]] = {}
    executions = timing.executions
    for operation, _, times in repeated(timing.operations):
        number = executions[operation.execution].instruction
        spent, worked = found.get(number, (0, 0))
        waited = sum(cycles for cause, cycles in operation.causes.items() if cause in WAITING)
        whole = sum(operation.causes.values())
        found[number] = spent + times * whole, worked + times * (whole - waited)
    return found


def _line(instruction: Instruction, spans: _ExecutionSpans, pipe_cycles: int, work: int) -> SourceLine:
    return SourceLine(
        text=instruction.text,
        pipe=instruction.pipe,
        span=instruction.span,
        executions=spans.count,
        first_start=spans.first_start,
        last_end=spans.last_end,
        cycles=spans.cycles,
        pipe_cycles=pipe_cycles,
        work=work,
    )
