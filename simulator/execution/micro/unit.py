"""What the walk through a micro program hands to a vector unit, and what it gets back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from castsim.execution.interpreter.dependence import Scalar
from castsim.execution.micro.copies import Copy
from castsim.execution.micro.pointers import Pointer
from castsim.execution.tree import Tree
from castsim.isa.pto.micro.nodes import MicroOperation
from castsim.isa.pto.program import Barrier, External, For, Operation, ScalarAccess, Section, SetFlag, WaitFlag
from castsim.isa.warning_text import Warnings

Value = Scalar | Pointer | object
"""A scalar or pointer, which the walk computes; all else, registers and masks, is the vector unit's."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One executed vector instruction: its operands in the order of the text, registers as the unit gave them.

    `address` is the first byte of the buffer that it reads or writes, None if it does neither. `updates` tells that it
    also hands on a pointer. `control` is the CTRL register.
    """

    node: MicroOperation
    operands: tuple[Value, ...]
    address: int | None = None
    updates: bool = False
    control: int = 0


class VectorUnit(Protocol):
    """Executes vector instructions in program order.

    What a unit does with them is its own: compute values, record what is issued, or both. Loops are announced, so that
    whoever counts cycles sees the program's own.
    """

    def enter(self, scope: Section) -> None:
        """Begin a launch of a vector function."""
        ...

    def leave(self, scope: Section) -> None:
        """End it."""
        ...

    def loop(self, loop: For, trips: int, *, fixed: bool) -> None:
        """Begin a loop of so many trips inside a vecscope, which constants of the text fix or not."""
        ...

    def trip(self, loop: For) -> None:
        """End a trip of the innermost loop."""
        ...

    def execute(self, issue: Issue) -> tuple[Value, ...]:
        """Execute an instruction; return its results that are registers, masks and alignment states.

        Raises:
            IllegalError, TileError: the unit does not have it, or it reaches beyond the buffer.
        """
        ...

    def branch(self, node: Operation) -> None:
        """Hear of a scalar select or a branch inside a vecscope."""
        ...

    def transfer(self, copy: Copy, node: MicroOperation) -> None:
        """Hear of a transfer; the walk makes it."""
        ...

    def synchronise(self, node: SetFlag | WaitFlag | Barrier, event: int) -> None:
        """Hear of a flag, with its event, or of a barrier."""
        ...

    def element(self, node: ScalarAccess, place: Pointer, code: bytes) -> None:
        """Hear of an element that the scalar unit reads, or writes as `code`."""
        ...

    def hold(self, node: MicroOperation, pipe: str, buffer: int, *, release: bool) -> None:
        """Hear of a pipe that takes the buffer of a number, or releases it."""
        ...

    def external(self, node: External) -> None:
        """Hear of a function that is not the program's own; the walk makes it happen."""
        ...


class Recording(VectorUnit, Protocol):
    """A unit that records what the machine issues."""

    @property
    def tree(self) -> Tree:
        """What it has recorded."""
        ...

    @property
    def untimed(self) -> str:
        """Why that has no cycles; the empty text if it has."""
        ...

    @property
    def incomplete(self) -> bool:
        """Whether the tree lacks something that a pipe does."""
        ...

    @property
    def warnings(self) -> Warnings:
        """What it has found doubtful."""
        ...


class Followed:
    """What a unit does that only executes instructions: nothing of all else."""

    __slots__ = ()

    def enter(self, scope: Section) -> None:
        """Do nothing."""

    def leave(self, scope: Section) -> None:
        """Do nothing."""

    def loop(self, loop: For, trips: int, *, fixed: bool) -> None:
        """Do nothing."""

    def trip(self, loop: For) -> None:
        """Do nothing."""

    def branch(self, node: Operation) -> None:
        """Do nothing."""

    def transfer(self, copy: Copy, node: MicroOperation) -> None:
        """Do nothing."""

    def synchronise(self, node: SetFlag | WaitFlag | Barrier, event: int) -> None:
        """Do nothing."""

    def element(self, node: ScalarAccess, place: Pointer, code: bytes) -> None:
        """Do nothing."""

    def hold(self, node: MicroOperation, pipe: str, buffer: int, *, release: bool) -> None:
        """Do nothing."""

    def external(self, node: External) -> None:
        """Do nothing."""


class PathOnly(Followed):
    """A unit that computes nothing: the path of a program does not rest on registers."""

    def execute(self, issue: Issue) -> tuple[Value, ...]:
        """Return a result of nothing for each that there is."""
        return (None,) * len(issue.node.results)
