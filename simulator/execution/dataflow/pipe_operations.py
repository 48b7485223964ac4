"""Operations of the pipes around the vector unit, the same for every mechanism with a tile buffer: transfers, control
writes, scalar work, flags and barriers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from castsim.execution.tree import Block, Deltas, GlobalSpace, Loop, Lowered, Node, Operation, Tree
from castsim.isa.errors import EngineError, IllegalError
from castsim.targets.dataflow import BLOCK_BYTES, DataflowTarget
from castsim.timing import Cause

BLOCK = BLOCK_BYTES
"""Bytes of one buffer access, the unit of strides (the instruction set's own definition, not a chip's)."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """One DMA instruction between global memory and the unified buffer: `bursts` rows of `burst_bytes`.

    Row k moves between byte `gm_address + k * gm_pitch` of argument `argument` and byte `ub_address + k * ub_pitch`.
    `pipe` is the target's load or store pipe; `load` tells the direction. A load with `pad_byte_pattern` fills the
    rest of the last 32-byte block of each row with it.
    """

    pipe: str
    load: bool
    argument: str
    gm_address: int
    gm_pitch: int
    ub_address: int
    ub_pitch: int
    bursts: int
    burst_bytes: int
    pad_pattern: bytes = b""

    @property
    def addresses(self) -> tuple[int, ...]:
        """Buffer address first, then the offset in global memory."""
        return (self.ub_address, self.gm_address)

    def shifted(self, deltas: Deltas) -> Transfer:
        """Return the transfer with both ends moved."""
        if not any(deltas):
            return self
        return replace(self, ub_address=self.ub_address + deltas[0], gm_address=self.gm_address + deltas[1])


@dataclass(frozen=True, slots=True)
class Unaddressed:
    """Base of operations that no loop can move."""

    @property
    def addresses(self) -> tuple[int, ...]:
        """None."""
        return ()

    def shifted(self, deltas: Deltas) -> Self:
        """Return the operation itself."""
        return self


@dataclass(frozen=True, slots=True)
class ControlWrite(Unaddressed):
    """A scalar write to control state: `register` is `ctrl`, `mask` or `deqscale`, `value` its new content."""

    register: str
    value: int
    pipe: str = "S"


@dataclass(frozen=True, slots=True)
class ScalarWork(Unaddressed):
    """Work of the scalar unit: `kind` is `arithmetic`, `loop` (one loop turnaround), `read` or `write` (of an element
    of the buffer).
    """

    kind: str
    pipe: str = "S"


@dataclass(frozen=True, slots=True)
class Placeholder(Unaddressed):
    """What stands in for an operation of which nothing is known but its pipe: `cycles` is what it is taken for.

    `kind` is the operation of the text. For 0 cycles not even its issue costs anything.
    """

    kind: str
    pipe: str
    cycles: int


@dataclass(frozen=True, slots=True)
class ScalarAccess:
    """One element that the scalar unit reads or writes, at byte `address` of an argument, or of the buffer (None).

    `kind` is the operation of the text (`load_scalar`, `store_scalar`, `tgetval`, `tsetval`), `code` what is written,
    empty for a read: that what it read decides has been decided. A write to a tile counts for all `tile_bytes`.
    """

    kind: str
    argument: str | None
    address: int
    code: bytes = b""
    tile_bytes: tuple[int, int] | None = None
    pipe: str = "S"

    @property
    def addresses(self) -> tuple[int, ...]:
        """Where the element is."""
        return (self.address,)

    def shifted(self, deltas: Deltas) -> ScalarAccess:
        """Return the access moved."""
        return replace(self, address=self.address + deltas[0]) if any(deltas) else self


@dataclass(frozen=True, slots=True)
class SetFlag(Unaddressed):
    """Signal `event` to pipe `waiter` once everything issued before it on `pipe` has finished."""

    pipe: str
    waiter: str
    event: int


@dataclass(frozen=True, slots=True)
class WaitFlag(Unaddressed):
    """Hold `pipe` until the signal (`signaller`, `pipe`, `event`) arrives, and consume it."""

    pipe: str
    signaller: str
    event: int


@dataclass(frozen=True, slots=True)
class Barrier(Unaddressed):
    """Later operations of `pipe` wait until all earlier ones retired; `pipe` ALL covers every pipe."""

    pipe: str


# What reports call an operation.


def operation_name(operation: Operation) -> str:
    """Return what reports call an operation."""
    match operation:
        case Transfer():
            return f"{'load' if operation.load else 'store'} {operation.argument}"
        case ControlWrite():
            return f"set {operation.register}"
        case ScalarWork() | Placeholder():
            return operation.kind
        case ScalarAccess():
            return operation.kind if operation.argument is None else f"{operation.kind} {operation.argument}"
        case SetFlag():
            return f"set_flag {operation.pipe} -> {operation.waiter} id {operation.event}"
        case WaitFlag():
            return f"wait_flag {operation.signaller} -> {operation.pipe} id {operation.event}"
        case Barrier():
            return f"barrier {operation.pipe}"
        case _:
            return str(getattr(operation, "name", type(operation).__name__))


# What the scalar unit itself spends on an operation, before it executes it or sends it to a pipe.


def cost_of(operation: Operation, target: DataflowTarget) -> tuple[int, Cause, tuple[str, ...]]:
    """Return the cycles, what they are charged to, and the paths of the facts that they rest on."""
    timing = target.timing.scalar
    match operation:
        case ControlWrite():
            cycles = timing.control_write_cycles
        case ScalarWork(kind):
            cycles, fact = target.timing.scalar_work(kind)
            return cycles, Cause.LOOP_TURNAROUND if kind == "loop" else Cause.BUSY, ("timing.scalar", fact)
        case ScalarAccess(kind):
            cycles, fact = target.timing.cycles_of_access(kind)
            return cycles, Cause.BUSY, ("timing.scalar", fact)
        case Placeholder(pipe=pipe, cycles=stated):
            cycles = stated if pipe == target.pipes.scalar else timing.issue_cycles if stated else 0
        case SetFlag() | WaitFlag() | Barrier():
            cycles = timing.synchronisation_cycles
        case _:
            cycles = timing.issue_cycles
    return cycles, Cause.BUSY, ("timing.scalar",)


# Instructions that do nothing which some question is about, and loops of nothing but such.

Kinds = tuple[type, ...]

PATH_ONLY: Kinds = (ScalarWork,)
"""Operations that touch no byte and order nothing."""

NO_VALUES: Kinds = (ScalarWork, SetFlag, WaitFlag, Barrier)
"""Operations that compute no value."""


class Idle:
    """Tells what in a tree consists of some kinds of operations alone; each node is looked at once."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._known: dict[int, bool] = {}

    def __call__(self, node: Node) -> bool:
        """Whether nothing in `node` is of another kind. The tree must outlive this object."""
        if isinstance(node, Loop):
            return self(node.body)
        if isinstance(node, Lowered):
            return not node.accesses and node.shortcut is None and self(node.body)
        if not isinstance(node, Block):
            return isinstance(node, self._kinds)
        found = self._known.get(id(node))
        if found is None:
            found = self._known[id(node)] = all(map(self, node.items))
        return found


# What a program consists of and needs of the machine, seen without running it; both engines begin with it.
#
# Every distinct node is looked at once: a straight-line program of ten million instructions may consist of a dozen
# different ones.

ALL_PIPES = "ALL"
"""What a barrier over every pipe names."""


class Survey:
    """A look at one tree; its blocks must live as long."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._items: dict[int, tuple[Mapping[int, Node], Mapping[int, int]]] = {}
        self.executions = self._count_executions(tree.root)
        """How many instructions are executed, loops multiplied and not unrolled."""
        self.operations = self._count_operations(tree.root)
        """How many operations every pipe executes."""

    def check(self, target: DataflowTarget, check_work: Callable[[object], None]) -> None:
        """Refuse what the target's machine cannot execute; `check_work` refuses operations of the vector unit.

        Raises:
            IllegalError: an operation of another mechanism, an unknown pipe or timing row, work for the scalar unit.
        """
        span = None
        try:
            for element in self.elements():
                if isinstance(element, Lowered):
                    span = self._tree.instructions[element.instruction].span
                else:
                    _check_operation(element, target, check_work)
        except IllegalError as error:
            raise (error.at(span) if span is not None else error) from None

    def followed_spaces(self) -> list[str]:
        """Return the address spaces in which accesses in flight have to be followed.

        Global memory that the whole program only reads, or only writes, is not among them: loads do not disturb each
        other, and stores never overlap in time because one pipe does them one by one.
        """
        touched: dict[str, set[bool]] = {}
        for element in self.elements():
            if isinstance(element, Lowered):
                for access in element.accesses:
                    touched.setdefault(access.space, set()).add(access.write)
        return [
            space
            for space, writes in touched.items()
            if True in writes and (len(writes) > 1 or not isinstance(space, GlobalSpace))
        ]

    def elements(self) -> Iterator[Lowered | Operation]:
        """Yield the elements of the tree in pre-order; what stands several times in a block only once."""
        return self._elements(self._tree.root)

    def _elements(self, node: Node) -> Iterator[Lowered | Operation]:
        if isinstance(node, Block):
            for item in self._distinct(node)[0].values():
                yield from self._elements(item)
        elif isinstance(node, Loop):
            yield from self._elements(node.body)
        else:
            yield node
            if isinstance(node, Lowered):
                yield from self._elements(node.body)

    def _distinct(self, block: Block) -> tuple[Mapping[int, Node], Mapping[int, int]]:
        """Return the items of a block by identity, and how often each stands there."""
        known = self._items.get(id(block))
        if known is None:
            items = block.items
            known = self._items[id(block)] = (dict(zip(map(id, items), items, strict=True)), Counter(map(id, items)))
        return known

    def _count_executions(self, node: Node) -> int:
        if isinstance(node, Block):
            items, times = self._distinct(node)
            return sum(times[key] * self._count_executions(item) for key, item in items.items())
        return node.trips * self._count_executions(node.body) if isinstance(node, Loop) else 1

    def _count_operations(self, node: Node) -> Counter[str]:
        if isinstance(node, Block):
            items, times = self._distinct(node)
            counts: Counter[str] = Counter()
            for key, item in items.items():
                counts.update(_multiplied(self._count_operations(item), times[key]))
            return counts
        if isinstance(node, Loop):
            return _multiplied(self._count_operations(node.body), node.trips)
        return self._count_operations(node.body) if isinstance(node, Lowered) else Counter((node.pipe,))


def _multiplied(counts: Counter[str], times: int) -> Counter[str]:
    return Counter({name: times * count for name, count in counts.items()})


def _check_operation(operation: Operation, target: DataflowTarget, check_work: Callable[[object], None]) -> None:
    """Refuse an operation that the target's machine cannot execute; the error has no place yet."""
    pipes = target.pipes
    working = (pipes.vector, pipes.load, pipes.store)
    every = (pipes.scalar, *working, *pipes.others)
    match operation:
        case SetFlag():
            _check_pipe(operation.pipe, every, target)
            _check_pipe(operation.waiter, every, target)
        case WaitFlag():
            _check_pipe(operation.pipe, every, target)
            _check_pipe(operation.signaller, every, target)
        case Barrier(pipe):
            _check_pipe(pipe, (*every, ALL_PIPES), target)
        case ScalarWork() | ScalarAccess():
            _check_pipe(operation.pipe, (pipes.scalar,), target)
        case ControlWrite(pipe=pipe) if pipe != pipes.vector:
            _check_pipe(pipe, (pipes.scalar,), target)
        case Placeholder():
            _check_pipe(operation.pipe, every, target)
        case Transfer():
            _check_pipe(operation.pipe, working, target)
        case _:
            check_work(operation)
            _check_pipe(operation.pipe, working, target)


def _check_pipe(name: str, legal: tuple[str, ...], target: DataflowTarget) -> None:
    if name not in legal:
        raise IllegalError(f"target '{target.name}' has no pipe '{name}' for this", legal=legal)


# Why a simulation cannot go on, in words that all engines share: who waits for whom, or where a limit struck.

LOOK_AHEAD = 100_000
"""Operations of the rest of the program in which a missing signal is looked for: a bound on the time an error takes."""


@dataclass(frozen=True, slots=True)
class Standstill:
    """What a pipe stands still for: operation `index`, of source instruction `instruction`, is at its head.

    `flag` is set if it awaits a flag, `needed` if it awaits the bytes of that instruction, neither at a barrier.
    """

    pipe: str
    index: int
    instruction: int
    flag: WaitFlag | None = None
    needed: int | None = None


@dataclass(frozen=True, slots=True)
class Rest:
    """What is left of a program that stands still.

    `queued` returns the instruction of a signal that stands in a queue, None if it does not; `unreached` are the next
    operations that the scalar unit, called `scalar`, cannot reach.
    """

    scalar: str
    queued: Callable[[SetFlag], int | None]
    unreached: Sequence[Operation]


def explain_deadlock(tree: Tree, waits: Sequence[Standstill], rest: Rest) -> EngineError:
    """Return the error that names every wait, in the order of the waiting operations."""
    ordered = sorted(waits, key=lambda wait: wait.index)
    sentences = [f"{wait.pipe} waits for {_reason(tree, wait, rest)}" for wait in ordered]
    return EngineError(f"deadlock: {'; '.join(sentences)}", span=tree.instructions[ordered[0].instruction].span)


def explain_limit(tree: Tree, max_cycles: int, reached: int | None) -> EngineError:
    """Return the error of a run that took longer than allowed and had reached that instruction, if any."""
    message = f"cycle limit of {max_cycles} reached"
    if reached is None:
        return EngineError(message)
    instruction = tree.instructions[reached]
    return EngineError(f"{message} at '{instruction.text}' ({instruction.span})", span=instruction.span)


def _reason(tree: Tree, wait: Standstill, rest: Rest) -> str:
    place = tree.instructions[wait.instruction].span
    if wait.flag is not None:
        key = wait.flag
        return f"flag {key.signaller} -> {key.pipe} id {key.event} ({place}), {_signal(tree, wait.flag, rest)}"
    if wait.needed is not None:
        needed = tree.instructions[wait.needed]
        return f"the bytes of '{needed.text}' ({needed.span}), which has not ended ({place})"
    return f"all pipes to drain ({place})"


def _signal(tree: Tree, flag: WaitFlag, rest: Rest) -> str:
    """Say what has become of the signal."""
    signal = SetFlag(flag.signaller, flag.pipe, flag.event)
    setter = rest.queued(signal)
    if setter is not None:
        return f"set after what {flag.signaller} waits for ({tree.instructions[setter].span})"
    if signal in rest.unreached:
        return f"not issued yet because {rest.scalar} waits"
    return "which nothing sets again"
