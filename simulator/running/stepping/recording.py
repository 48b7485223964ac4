"""Following a run: the memories as they are at its start, and what each operation changed in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from castsim.execution.dataflow.uncomputed import TaintTracker
from castsim.execution.dataflow.values import Follower
from castsim.execution.micro import Issue, MicroMemory, Value, VectorUnit
from castsim.execution.micro.unit import Copy, Pointer
from castsim.execution.tree import Deltas, GlobalSpace, Lowered, accesses
from castsim.isa.pto import program as pto
from castsim.isa.pto.micro.nodes import MicroOperation
from castsim.isa.pto.value_types import MaskType, PointerType, ScalarType, VectorType
from castsim.isa.tpc import Register
from castsim.isa.tpc.forms import MemoryOperation
from castsim.isa.tpc.program import File
from castsim.machines.vliw.machine import VliwCore
from castsim.machines.vliw.registers import RegisterCell
from castsim.running.stepping.journal import Bytes, Journal, changed_bytes
from castsim.running.stepping.places import BUFFER, UNKNOWN, global_space

Reach = tuple[str, int, int | None]
"""A memory, the first byte that an operation may change, and the first behind the last (None: to the end)."""

_ELEMENT_STORES = (MemoryOperation.ELEMENT_STORE, MemoryOperation.TENSOR_STORE)


class Seen(NamedTuple):
    """An operation of a program of vector instructions: its node, whether a vector function issues it, its pointers."""

    node: pto.Operation
    inside: bool
    pointers: tuple[tuple[str, Pointer], ...] = ()


@dataclass(slots=True)
class Recording:
    """Follows one run; see `castsim.running.watching.Watch`. `initial` and `registers` are those of its start.

    `seen` are the operations of a program of vector instructions, `bundles` those of assembly, each in program order;
    the journal has a change for each, and for each operation of a tile program that computes something.
    """

    journal: Journal = field(default_factory=Journal)
    initial: dict[str, Bytes] = field(default_factory=dict)
    registers: dict[str, object] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    bundles: list[int] = field(default_factory=list)
    files: dict[str, File | None] = field(default_factory=dict)
    """The files of registers of assembly by name; None for those that have no number."""
    core: VliwCore | None = None
    _live: dict[str, Bytes] = field(default_factory=dict)
    _before: dict[str, Bytes] = field(default_factory=dict)
    _reach: Sequence[Reach] | None = None
    _written: list[tuple[str, object, object]] = field(default_factory=list)
    _held: dict[str, object] = field(default_factory=dict)
    _cells: list[RegisterCell] = field(default_factory=list)
    _stores: dict[int, list[Reach]] = field(default_factory=dict)

    def tiles(self, buffer: Bytes, arguments: Mapping[str, Bytes], follower: Follower | None) -> Follower:
        """Begin to follow a tile program."""
        self._follow({BUFFER: buffer, **_global(arguments)})
        if isinstance(follower, TaintTracker):
            marks = {BUFFER: follower.buffer, **_global(follower.arguments)}
            self._follow({f"{UNKNOWN}{name}": each for name, each in marks.items()})
        return _Following(self, follower)

    def micro(self, unit: VectorUnit, memory: MicroMemory) -> VectorUnit:
        """Begin to follow a program of vector instructions."""
        self._follow({BUFFER: memory.buffer, **_global(memory.arguments)})
        return _Recorded(self, unit)

    def bundle(self, core: VliwCore, index: int) -> None:
        """Hear that a core is about to issue a bundle."""
        if self.core is None:
            self._begin_core(core)
        self.begin(self._stores[index])
        self.bundles.append(index)

    def finish(self) -> None:
        """Write down what the last operation changed, and let go of what only a run needs."""
        self._close()
        self._live, self._before, self._cells = {}, {}, []

    def begin(self, reach: Sequence[Reach]) -> None:
        """Begin an operation that changes no bytes but those in reach; the one before it is over."""
        self._close()
        self._reach = reach

    def write(self, register: str, value: object) -> None:
        """Note that the operation under way has written a register."""
        self._written.append((register, self._held.get(register), value))
        self._held[register] = value

    def knows(self, space: str) -> bool:
        """Whether a memory is followed."""
        return space in self._live

    # --------------------------------------------------------------------------------------------------------- inside

    def _follow(self, memories: Mapping[str, Bytes]) -> None:
        self._live.update(memories)
        self.initial.update({name: each.copy() for name, each in memories.items()})
        self._before.update({name: each.copy() for name, each in memories.items()})

    def _close(self) -> None:
        if self._reach is None:
            return
        for cell in self._cells:
            if cell.newest is not self._held[cell.name]:
                self.write(cell.name, cell.newest)
        changed = [
            (space, first, changes)
            for space, start, end in self._reach
            for first, changes in changed_bytes(self._before[space], self._live[space], start, end)
        ]
        self.journal.add(changed, self._written)
        self._written, self._reach = [], None

    def _begin_core(self, core: VliwCore) -> None:
        self.core = core
        tensors = core.globals.memory.tensors.values()
        local = {each.name: each.bytes for each in (core.local.vlm, core.local.slm)}
        self._follow({**local, **_global({each.name: each.codes.view(np.uint8) for each in tensors})})
        sizes = core.target.registers
        named = [Register(file, index) for file in _FILES for index in range(getattr(sizes, file.value))]
        held = {cell.name: cell for each in named for cell in core.registers.cells(each)}
        held |= {cell.name: cell for plans in core.plans for plan in plans for cell in plan.results}
        self._cells = list(held.values())
        self.registers = {cell.name: cell.newest for cell in self._cells}
        self._held = dict(self.registers)
        self.files = {cell.name: cell.file for cell in self._cells}
        writable = [each.name for each in core.globals.memory.declared if each.direction != "in"]
        for index, plans in enumerate(core.plans):
            kinds = {plan.memory for plan in plans}
            reach: list[Reach] = [("vlm", 0, None)] if MemoryOperation.VECTOR_STORE in kinds else []
            reach += [("slm", 0, None)] if MemoryOperation.SCALAR_STORE in kinds else []
            reach += [(global_space(name), 0, None) for name in writable if kinds.intersection(_ELEMENT_STORES)]
            self._stores[index] = reach


_FILES = (File.V, File.S, File.I, File.AD, File.SP, File.VP)


def _global(arguments: Mapping[str, Bytes]) -> dict[str, Bytes]:
    return {global_space(name): each for name, each in arguments.items()}


@dataclass(slots=True)
class _Following:
    """Follows the instructions of a tile program for a recording; see `castsim.execution.dataflow.values.Follower`."""

    recording: Recording
    inner: Follower | None

    def step(self, lowered: Lowered, deltas: Sequence[Deltas] | None) -> bool:
        reach: list[Reach] = [(BUFFER, 0, None)]
        for access in accesses(lowered, deltas):
            if access.write and isinstance(access.space, GlobalSpace):
                reach.append((str(access.space), access.start, access.end))
        marks = [(f"{UNKNOWN}{space}", start, end) for space, start, end in reach]
        self.recording.begin([*reach, *(each for each in marks if self.recording.knows(each[0]))])
        return True if self.inner is None else self.inner.step(lowered, deltas)


@dataclass(slots=True)
class _Recorded:
    """A vector unit before another one: it writes down what happens; see `castsim.execution.micro.VectorUnit`."""

    recording: Recording
    inner: VectorUnit
    inside: bool = False
    """Whether a vector function is being executed."""

    def enter(self, scope: pto.Section) -> None:
        self._begin(Seen(scope, inside=False))
        self.inside = True
        self.inner.enter(scope)

    def leave(self, scope: pto.Section) -> None:
        self.inside = False
        self.inner.leave(scope)

    def loop(self, loop: pto.For, trips: int, *, fixed: bool) -> None:
        self.inner.loop(loop, trips, fixed=fixed)

    def trip(self, loop: pto.For) -> None:
        self.inner.trip(loop)

    def execute(self, issue: Issue) -> tuple[Value, ...]:
        node = issue.node
        self._begin(
            Seen(node, inside=True, pointers=_pointers(node, issue.operands)),
            [] if issue.address is None else [(BUFFER, 0, None)],
        )
        found = self.inner.execute(issue)
        values = iter(found)
        for name, kind in zip(node.results, node.result_types, strict=True):
            if isinstance(kind, PointerType | ScalarType):
                continue
            value = next(values)
            if isinstance(kind, VectorType | MaskType):
                self.recording.write(name, value)
        return found

    def branch(self, node: pto.Operation) -> None:
        self.inner.branch(node)

    def transfer(self, copy: Copy, node: MicroOperation) -> None:
        pointers = _pointers(node, (copy.source, copy.destination))
        to = copy.destination
        reach = (BUFFER, 0, None) if to.argument is None else _reach(to, *copy.reach(1))
        self._begin(Seen(node, inside=False, pointers=pointers), [reach])
        self.inner.transfer(copy, node)

    def synchronise(self, node: pto.SetFlag | pto.WaitFlag | pto.Barrier, event: int) -> None:
        self._begin(Seen(node, inside=False))
        self.inner.synchronise(node, event)

    def element(self, node: pto.ScalarAccess, place: Pointer, code: bytes) -> None:
        reach = [_reach(place, place.address, place.address + len(code))] if code else []
        self._begin(Seen(node, inside=self.inside), reach)
        self.inner.element(node, place, code)

    def hold(self, node: MicroOperation, pipe: str, buffer: int, *, release: bool) -> None:
        self._begin(Seen(node, inside=False))
        self.inner.hold(node, pipe, buffer, release=release)

    def external(self, node: pto.External) -> None:
        self._begin(Seen(node, inside=False), [(BUFFER, 0, None)])
        self.inner.external(node)

    def _begin(self, seen: Seen, reach: Sequence[Reach] = ()) -> None:
        self.recording.begin(reach)
        self.recording.seen.append(seen)


def _pointers(node: MicroOperation, values: Sequence[Value]) -> tuple[tuple[str, Pointer], ...]:
    pairs = zip(node.operands, values, strict=False)
    return tuple((name, value) for name, value in pairs if isinstance(value, Pointer))


def _reach(pointer: Pointer, start: int, end: int) -> Reach:
    space = BUFFER if pointer.argument is None else global_space(pointer.argument)
    return space, max(start, 0), end
