"""Programs of `pto.strided` statements: their units, which compute values or record a tree for the engines."""

from __future__ import annotations

from itertools import product

from castsim.execution.interpreter.vector_unit import (
    Body,
    BytePointer,
    Copy,
    Followed,
    MicroMemory,
    Value,
    VectorIssue,
    mark,
)
from castsim.execution.outcomes import CastTally, Judge, Listener, heard_by
from castsim.execution.tree import Access, Instruction, Lowered
from castsim.execution.vector_operations.shapes import BUFFER
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import IllegalError
from castsim.isa.formats import Codes, format_named
from castsim.isa.pto import program as pto
from castsim.isa.pto.micro_forms import ROWS, SCOPES, Place
from castsim.isa.pto.strided_statements import PREFIX, STRIDED_ROWS
from castsim.isa.pto.value_types import MicroOperation, StridedStatement
from castsim.machines.program_recorder import ProgramRecorder, execute_tile
from castsim.machines.strided.kernel_sequence import Operand
from castsim.machines.strided.statement_work import ControlState, ExecutedStatement, accesses_of
from castsim.machines.strided.strided_instructions import StridedInstruction, start_ctrl
from castsim.machines.strided.values import execute_vector
from castsim.targets.strided_repeat import StridedRepeatTarget


@dataclass(frozen=True, slots=True)
class StridedUnits:
    """The vector units of a chip; see `castsim.machines.mechanisms.VectorUnits`."""

    target: StridedRepeatTarget

    def unit(self, memory: MicroMemory, casts: CastTally | None = None) -> StridedUnit:
        """Return a unit that computes values."""
        return StridedUnit(memory, self.target, casts)

    def recorder(self, *, as_written: bool) -> StridedRecorder:
        """Return a recorder of a program for the engines; without flags it runs as written or waits for bytes."""
        return StridedRecorder(self.target, as_written)

    def control_at_start(self, *, saturating: bool) -> int:
        """Return CTRL by the options."""
        del saturating
        return start_ctrl(self.target)

    def lowered(self, function: pto.Function) -> pto.Function:
        """Return the function, which has no instructions of registers.

        Raises:
            IllegalError: it has some, or a vecscope.
        """
        for node in pto.nodes(function.body or ()):
            registers = isinstance(node, pto.DialectOperation) or (
                isinstance(node, MicroOperation) and ROWS[node.mnemonic].place is Place.SCOPE
            )
            if registers or (isinstance(node, pto.Section) and node.kind in SCOPES):
                raise IllegalError(
                    f"{self.target.name} has no vector registers: it runs pto.{PREFIX}NAME statements",
                    span=node.span, legal=("--target a5",),
                )  # fmt: skip
        return function

    def body_cycles(self, body: Body) -> int:
        """Refuse a body of vector functions."""
        del body
        raise IllegalError(f"{self.target.name} has no vector functions")


@dataclass(slots=True)
class StridedUnit(Followed):
    """Executes statements on the buffer of `memory`; see `castsim.execution.interpreter.vector_unit.VectorUnit`."""

    memory: MicroMemory
    target: StridedRepeatTarget
    casts: CastTally | None = None
    state: ControlState = field(init=False)

    def __post_init__(self) -> None:
        self.state = ControlState(self.target)

    def strided(self, node: StridedStatement, operands: tuple[Value, ...], control: int) -> int:
        """Execute a statement; return CTRL after it.

        Raises:
            IllegalError, TileError: see `ExecutedStatement.issued`.
        """
        if not STRIDED_ROWS[node.mnemonic].elements:
            write = self.state.write(node, operands, control)
            return write.value if write.register == "ctrl" else control
        with heard_by(None if self.casts is None else self._listener(node)):
            for part in ExecutedStatement.of(node, operands, self.state, control).issued():
                execute_vector(part, self.memory.buffer)
                for access in accesses_of(part):
                    if access.write:
                        mark(self.memory.defined, access)
        return control

    def _listener(self, node: StridedStatement) -> Listener:
        tally = self.casts
        assert tally is not None

        def hear(judge: Judge, before: Codes, after: Codes, converts: bool) -> None:
            tally.count(node.span.line, node.mnemonic, judge, before, after, converts=converts)

        return hear

    def tile(self, node: pto.Operation, lowered: Lowered, instruction: Instruction) -> None:
        """Execute a tile operation between statements."""
        del node
        execute_tile(self.target, self.memory, lowered, instruction, self.casts)

    def execute(self, issue: VectorIssue) -> tuple[Value, ...]:
        """Refuse an instruction of registers."""
        raise IllegalError(f"{self.target.name} has no pto.{issue.node.mnemonic}", span=issue.node.span)


@dataclass(slots=True)
class StridedRecorder(ProgramRecorder):
    """Records statements as the instructions of a tree."""

    target: StridedRepeatTarget
    state: ControlState = field(init=False)

    def __post_init__(self) -> None:
        self.state = ControlState(self.target)

    def enter(self, scope: pto.Section) -> None:
        """Hear of a launch, of which there is none."""

    leave = loop = trip = branch = enter

    def strided(self, node: StridedStatement, operands: tuple[Value, ...], control: int) -> int:
        """Record a statement; return CTRL after it."""
        if not STRIDED_ROWS[node.mnemonic].elements:
            write = self.state.write(node, operands, control)
            accesses: tuple[Access, ...] = ()
            if write.register == "cmpmask":
                accesses = (Access(BUFFER, write.value, write.value + 16, write=False),)
            self._add(node, node.mnemonic, write.pipe, (write,), accesses)
            return write.value if write.register == "ctrl" else control
        parts = ExecutedStatement.of(node, operands, self.state, control).issued()
        accesses = tuple(access for part in parts for access in accesses_of(part))
        self._add(node, node.mnemonic, self.target.pipes.vector, timed(parts), accesses)
        return control

    def transfer(self, copy: Copy, node: MicroOperation) -> None:
        """Record a transfer; one within the buffer is an instruction of the vector pipe for each of its rows."""
        if copy.source.argument is not None or copy.destination.argument is not None:
            ProgramRecorder.transfer(self, copy, node)
            return
        rows = []
        for index in product(*(range(count) for count, _, _ in copy.levels)):
            far, near = (
                sum(i * level[1 + side] for i, level in zip(index, copy.levels, strict=True)) for side in (0, 1)
            )
            source, to = (
                Operand(start, format_named("u8"), 0)
                for start in (copy.source.address + far, copy.destination.address + near)
            )
            rows.append(self.state.sequence.copy(to, source, copy.length))
        accesses = tuple(copy.touched(side, BUFFER) for side in (0, 1))
        self._add(node, node.mnemonic, self.target.pipes.vector, tuple(rows) if copy.length else (), accesses)

    def element(self, node: pto.ScalarAccess, place: BytePointer, code: bytes) -> None:
        """Record an element; one of the buffer takes as long as those of a row expansion."""
        if place.argument is not None:
            ProgramRecorder.element(self, node, place, code)
            return
        access = Access(BUFFER, place.address, place.address + place.size, not node.reads)
        work = self.state.sequence.scalar("read" if node.reads else "write")
        self._add(node, node.mnemonic, work.pipe, (work,), (access,))

    def control(self, node: MicroOperation, value: int) -> None:
        """Record a write of CTRL."""
        write = self.state.sequence.control("ctrl", value)
        self._add(node, node.mnemonic, write.pipe, (write,), ())

    def execute(self, issue: VectorIssue) -> tuple[Value, ...]:
        """Refuse an instruction of registers."""
        raise IllegalError(f"{self.target.name} has no pto.{issue.node.mnemonic}", span=issue.node.span)


def timed(parts: tuple[StridedInstruction, ...]) -> tuple[StridedInstruction, ...]:
    """Return the parts of an instruction as the engines time them: a conversion in count mode is one instruction, as is
    a transposition to several blocks."""
    if len(parts) > 2:
        return parts[:1]
    if len(parts) == 2 and STRIDED_ROWS[parts[0].mnemonic].converts:
        first, last = parts
        return (replace(first, repeats=first.repeats + last.repeats),)
    return parts
