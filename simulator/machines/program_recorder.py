"""Recording of a program of vector instructions as a tree for the engines: everything around the instructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from castsim.execution.buffer_values import CastCounts
from castsim.execution.interpreter.vector_unit import BytePointer, Copy, MicroMemory, Value, mark
from castsim.execution.outcomes import CastTally
from castsim.execution.pipe_operations import FlagSignal, FlagWait, PipeBarrier, ScalarElementAccess, Transfer
from castsim.execution.tree import Access, Block, GlobalSpace, Instruction, Lowered, Operation, Tree
from castsim.execution.vector_operations.shapes import BUFFER
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import IllegalError, Warnings
from castsim.isa.pto import program as pto
from castsim.isa.pto.value_types import MicroOperation, StridedStatement
from castsim.machines.mechanisms import compute_of
from castsim.targets.dataflow import DataflowTarget
from castsim.targets.loader import TileTarget

_FIRST_BUFFER = 1 << 10
"""The first number of the flags for buffers, beyond those of events."""
_WORDS: Mapping[type[pto.Operation], str] = {
    pto.SetFlag: "set_flag",
    pto.WaitFlag: "wait_flag",
    pto.Barrier: "barrier",
}


@dataclass(slots=True)
class ProgramRecorder:
    """Follows a walk (`castsim.execution.interpreter.vector_unit.VectorUnit`) and computes nothing.

    `untimed` is the reason why the program has no cycles, empty if it has; `incomplete`: the tree lacks work
    a pipe does. `as_written`: a program without flags is taken at its word too.
    """

    target: DataflowTarget
    as_written: bool = False
    untimed: str = ""
    incomplete: bool = False
    warnings: Warnings = ()
    _instructions: dict[int, int] = field(default_factory=dict)
    _nodes: list[Instruction] = field(default_factory=list)
    _items: list[Lowered] = field(default_factory=list)
    _released: dict[int, tuple[str, int]] = field(default_factory=dict)
    """The last releasing pipe of each buffer by number, and its place in the program."""
    _flags: bool = False

    @property
    def tree(self) -> Tree:
        """The issued tree; in programs without flags its instructions wait for each other's bytes."""
        items = tuple(item for item in self._items if item.accesses or item.body.items)
        return Tree(Block(items), tuple(self._nodes), interlocked=not (self._flags or self.as_written))

    @property
    def issued(self) -> Sequence[Lowered]:
        """What has been recorded so far."""
        return self._items

    def strided(self, node: StridedStatement, operands: tuple[Value, ...], control: int) -> int:
        """Refuse an instruction of A2/A3."""
        raise no_strided(self.target, node)

    def control(self, node: MicroOperation, value: int) -> None:
        """Hear of a write of CTRL, which costs nothing."""

    def transfer(self, copy: Copy, node: MicroOperation) -> None:
        """Record a transfer: an instruction of the transfer engine for each of its outer repetitions."""
        load = copy.source.argument is not None
        if load == (copy.destination.argument is not None):
            self.incomplete = True
            self._refuse(f"the cycles of pto.{node.mnemonic} are unknown")
            return
        if 0 in copy.shape:
            return
        pipe = self.target.pipes.load if load else self.target.pipes.store
        outside, inside = (copy.source, copy.destination) if load else (copy.destination, copy.source)
        argument = outside.argument
        assert argument is not None
        *outer, (bursts, *pitches) = copy.levels or ((1, 0, 0),)
        far, near = pitches if load else reversed(pitches)
        operations = []
        for index in product(*(range(count) for count, _, _ in outer)):
            steps = [sum(i * level[1 + side] for i, level in zip(index, outer, strict=True)) for side in (0, 1)]
            there, here = steps if load else reversed(steps)
            operations.append(
                Transfer(
                    pipe, load, argument, outside.address + there, far, inside.address + here, near, bursts, copy.length
                )
            )
        spaces = (end.argument and GlobalSpace.of(end.argument) for end in (copy.source, copy.destination))
        accesses = tuple(copy.touched(side, space or BUFFER) for side, space in enumerate(spaces))
        self._add(node, node.mnemonic, pipe, tuple(operations), accesses)

    def synchronise(self, node: pto.SetFlag | pto.WaitFlag | pto.Barrier, event: int) -> None:
        """Record a flag or a barrier."""
        operation: Operation
        names: tuple[str, ...]
        match node:
            case pto.SetFlag():
                names, operation = (node.src.name, node.dst.name), FlagSignal(node.src.name, node.dst.name, event)
            case pto.WaitFlag():
                names, operation = (node.src.name, node.dst.name), FlagWait(node.dst.name, node.src.name, event)
            case _:
                names, operation = (node.pipe.name,), PipeBarrier(node.pipe.name)
        self._flags |= not isinstance(node, pto.Barrier)
        if self._has_pipes(*names):
            self._add(node, _WORDS[type(node)], operation.pipe, (operation,), ())

    def element(self, node: pto.ScalarAccess, pointer: BytePointer, code: bytes) -> None:
        """Record an element that the scalar unit reads or writes; one of the buffer counts as one of a tile."""
        pipe = self.target.pipes.scalar
        kind = node.mnemonic if pointer.argument is not None else "tgetval" if node.reads else "tsetval"
        operation = ScalarElementAccess(kind, pointer.argument, pointer.address, code, pipe=pipe)
        space = BUFFER if pointer.argument is None else GlobalSpace.of(pointer.argument)
        access = Access(space, pointer.address, pointer.address + pointer.size, not node.reads)
        self._add(node, node.mnemonic, pipe, (operation,), (access,))

    def hold(self, node: MicroOperation, pipe: str, buffer: int, *, release: bool) -> None:
        """Record that a pipe takes a buffer, which waits as for a flag that another's release sets, or releases it."""
        self._flags = True
        if not self._has_pipes(pipe):
            return
        if release:
            self._released[buffer] = pipe, len(self._items)
            self._add(node, node.mnemonic, pipe, (), ())
            return
        holder, index = self._released.pop(buffer, (pipe, 0))
        if holder != pipe:
            event = _FIRST_BUFFER + buffer
            self._items[index] = replace(self._items[index], body=Block((FlagSignal(holder, pipe, event),)))
            self._add(node, node.mnemonic, pipe, (FlagWait(pipe, holder, event),), ())

    def tile(self, node: pto.Operation, lowered: Lowered, instruction: Instruction) -> None:
        """Record what a tile operation issues."""
        self._items.append(replace(lowered, instruction=self._number(node, instruction)))

    def external(self, node: pto.External) -> None:
        """Note that there are no cycles."""
        self.incomplete = True
        self._refuse(node.untimed)

    def _has_pipes(self, *names: str) -> bool:
        """Return whether the target has these pipes; a program that names others has no cycles."""
        pipes = self.target.pipes
        pipe_names = {pipes.scalar, pipes.vector, pipes.load, pipes.store, *pipes.others, "ALL"}
        if not pipe_names.issuperset(names):
            self.incomplete = True
            self._refuse(f"{self.target.name} has no pipe {' or '.join(sorted({*names} - pipe_names))}")
        return pipe_names.issuperset(names)

    def _add(
        self,
        node: pto.Operation,
        text: str,
        pipe: str,
        operations: tuple[Operation, ...],
        accesses: tuple[Access, ...],
    ) -> None:
        number = self._number(node, Instruction(text, pipe, node.span, mnemonic=text))
        self._items.append(Lowered(number, Block(operations), accesses))

    def _number(self, node: pto.Operation, instruction: Instruction) -> int:
        """Return the number of an operation's instruction, which is new the first time."""
        number = self._instructions.setdefault(id(node), len(self._nodes))
        if number == len(self._nodes):
            self._nodes.append(instruction)
        return number

    def _refuse(self, why: str) -> None:
        self.untimed = self.untimed or why


def no_strided(target: DataflowTarget, node: StridedStatement) -> IllegalError:
    """Return (not raise) the refusal of an instruction that only A2/A3 has."""
    return IllegalError(f"{target.name} has no pto.strided.{node.mnemonic}", span=node.span, legal=("--target a2a3",))


def execute_tile(
    target: TileTarget, memory: MicroMemory, lowered: Lowered, instruction: Instruction, tally: CastTally | None
) -> None:
    """Execute a tile operation between vector instructions; the bytes that it writes count as defined."""
    counts = CastCounts()
    tree = Tree(Block((replace(lowered, instruction=0),)), (instruction,), interlocked=False)
    compute_of(target)(tree, memory.buffer, memory.arguments, counts=counts)
    for access in lowered.accesses:
        if access.write:
            argument = access.space.argument if isinstance(access.space, GlobalSpace) else None
            mark(memory.defined if argument is None else memory.stores(argument), access)
    if tally is not None:
        for cast_place, outcomes in counts.by_place((instruction,)).items():
            tally.add(replace(cast_place, number=None), outcomes)
