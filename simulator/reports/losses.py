"""The instruction of a run that lost most cycles, and the causes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from castsim.execution.tree import Instruction, Tree
from castsim.reports.documents import Document, document, identifier
from castsim.reports.numbers import grouped
from castsim.timing import Cause, Timing, repeated

_NOT_LOST = (Cause.BUSY, Cause.EMPTY, Cause.FLAG_WAIT, Cause.OPERAND_WAIT)
"""Causes of cycles in which a pipe works, has nothing to do, or waits for another pipe, which then lost them."""


@dataclass(frozen=True, slots=True)
class Loss:
    """The cycles that pipes spent on an instruction, all its executions together, without working for it."""

    instruction: Instruction
    causes: Mapping[Cause, int]

    @property
    def cycles(self) -> int:
        """All of them."""
        return sum(self.causes.values())

    @property
    def cause(self) -> Cause:
        """The cause that took most of them, of equals the first one in the order of `Cause`."""
        return max(Cause, key=lambda cause: self.causes.get(cause, 0))

    def sentence(self) -> str:
        """Return the loss as a report says it."""
        most, instruction = self.causes[self.cause], self.instruction
        inserted = "inserted " if instruction.inserted else ""
        part = "" if most == self.cycles else f", {grouped(most)} of them"
        return (
            f"Line {instruction.span.line} ({inserted}{instruction.name}) leaves {instruction.pipe} idle for "
            f"{grouped(self.cycles)} cycles: {self.cause}{part}"
        )

    def entry(self) -> Document:
        """Return the loss as JSON."""
        return {
            "line": self.instruction.span.line,
            **document(self.instruction, "name", "pipe", "inserted", name="op"),
            **document(self, "cycles", "cause", cycles="lost_cycles"),
            "causes": {identifier(cause): self.causes[cause] for cause in Cause if cause in self.causes},
        }


def lost_most(tree: Tree, timing: Timing, scalar: str | None) -> Loss | None:
    """Return the instruction on which most cycles were lost, of equals the first one; None if none lost any.

    `scalar` is the pipe that issues for all others, None if there is none: whatever it waits for, usually the end of
    the program, others lose.
    """
    found: dict[int, dict[Cause, int]] = {}
    executions = timing.executions
    for operation, _, times in repeated(timing.operations):
        if operation.pipe == scalar:
            continue
        for cause, cycles in operation.causes.items():
            if cause not in _NOT_LOST and cycles:
                lost = found.setdefault(executions[operation.execution].instruction, {})
                lost[cause] = lost.get(cause, 0) + times * cycles
    if not found:
        return None
    number = max(sorted(found), key=lambda number: sum(found[number].values()))
    return Loss(tree.instructions[number], found[number])
