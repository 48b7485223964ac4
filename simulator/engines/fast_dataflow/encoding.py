"""From the operation tree to rows: every distinct operation and instruction once, however often it is executed.

What timing does not depend on is left out: values, global memory (unless the program both reads and writes it), and
whole turns of the addresses around the banks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from simulator.dataflow.operations import Barrier, ControlWrite, ScalarWork, SetFlag, Transfer, WaitFlag
from simulator.engines.event_dataflow.survey import ALL_PIPES, Survey
from simulator.engines.fast_dataflow.heap import Heap
from simulator.engines.fast_dataflow.layout import (
    ACCESS_WIDTH,
    BUSY,
    FENCE,
    FENCE_ALL,
    LOOP_TURNAROUND,
    NONE,
    SCALAR,
    SCALAR_PIPE,
    SET,
    TRANSFER,
    WAIT,
)
from simulator.engines.fast_dataflow.requests import TICKS
from simulator.engines.fast_dataflow.units import Unit
from simulator.tree import Access, Deltas, Operation, Tree
from targets.dataflow import DataflowTarget

Key = tuple[str, str, int]
"""Signaller, waiter, event id of a flag."""


@dataclass(slots=True)
class Encoder:
    """The rows of one program on one target; `pipes` are numbered from the scalar unit on.

    `operations` are those of the rows, by their number; `flags` and `spaces` are rows too.
    """

    tree: Tree
    survey: Survey
    target: DataflowTarget
    unit: Unit
    pipes: tuple[str, ...]
    heap: Heap = field(default_factory=Heap)
    operations: list[Operation] = field(default_factory=list)
    flags: dict[Key, int] = field(default_factory=dict)
    spaces: dict[str, int] = field(default_factory=dict)
    facts: set[str] = field(default_factory=set)
    most_accesses: int = 0
    room: list[int] = field(default_factory=lambda: [1, 1, 1, 1])
    """Trips, stores, registers and special ports of the largest vector function."""
    _known: dict[tuple[int, ...], int] = field(default_factory=dict)
    _known_distances: dict[tuple[int, ...], int] = field(default_factory=dict)
    _lowered: dict[tuple[int, ...], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.tree.interlocked:
            self.spaces = {space: self.heap.put((NONE, NONE)) for space in self.survey.followed_spaces()}

    # ---------------------------------------------------------------------------------------------- instructions

    def lowered(self, instruction: int, operations: Sequence[int], accesses: Iterable[Access] = ()) -> int:
        """Return the row of an instruction, or part of one, that issues these operations and touches these bytes."""
        followed = [
            number
            for access in accesses
            if access.space in self.spaces and access.start < access.end
            for number in (self.spaces[access.space], access.start, access.end, int(access.write))
        ]
        key = (instruction, len(operations), *operations, *followed)
        known = self._lowered.get(key)
        if known is None:
            number = len(followed) // ACCESS_WIDTH
            self.most_accesses = max(self.most_accesses, number)
            known = self.heap.put((instruction, len(operations), number, *operations, *followed))
            self._lowered[key] = known
        return known

    # ------------------------------------------------------------------------------------------------ operations

    def operation(self, operation: Operation, deltas: Deltas | None) -> int:
        """Return the row of an operation of the tree whose addresses have moved by `deltas`."""
        turn = self.unit.banking.bytes
        moved = operation.addresses
        if deltas is not None:
            moved = tuple(address + delta for address, delta in zip(moved, deltas, strict=True))
        if isinstance(operation, Transfer):
            moved = moved[:1]  # the other end is in global memory
        moved = tuple(address % turn for address in moved)
        key = (id(operation), *moved)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._encode(operation, moved)
        return known

    def _encode(self, operation: Operation, addresses: tuple[int, ...]) -> int:
        timing = self.target.timing.scalar
        self.facts.add("timing.scalar")
        match operation:
            case ControlWrite():
                return self._add(operation, SCALAR, timing.control_write_cycles)
            case ScalarWork(kind):
                cause = LOOP_TURNAROUND if kind == "loop" else BUSY
                taken, fact = self.target.timing.scalar_work(kind)
                self.facts.add(fact)
                return self._add(operation, SCALAR, taken, cause=cause)
            case SetFlag():
                flag = self._flag((operation.pipe, operation.waiter, operation.event))
                return self._add(operation, SET, timing.synchronisation_cycles, flag=flag)
            case WaitFlag():
                flag = self._flag((operation.signaller, operation.pipe, operation.event))
                return self._add(operation, WAIT, timing.synchronisation_cycles, flag=flag)
            case Barrier(pipe=name):
                fence = FENCE_ALL if name == ALL_PIPES else SCALAR if name == self.pipes[SCALAR_PIPE] else FENCE
                return self._add(operation, fence, timing.synchronisation_cycles)
            case Transfer():
                return self._add(
                    operation, TRANSFER, timing.issue_cycles, values=self._transfer(operation, addresses[0])
                )
        work = self.unit.encode(operation, addresses, self)
        self.facts.update(work.facts)
        return self._add(operation, work.kind, timing.issue_cycles, values=work.values)

    def _add(
        self,
        operation: Operation,
        kind: int,
        cost: int,
        *,
        cause: int = BUSY,
        flag: int = NONE,
        values: tuple[int, ...] = (),
    ) -> int:
        pipe = SCALAR_PIPE if operation.pipe == ALL_PIPES else self.pipes.index(operation.pipe)
        self.operations.append(operation)
        return self.heap.put((len(self.operations) - 1, kind, pipe, cost, cause, flag, *values))

    def _flag(self, key: Key) -> int:
        if key not in self.flags:
            from_scalar = int(key[0] == self.pipes[SCALAR_PIPE])
            self.flags[key] = self.heap.put((NONE, NONE, NONE, from_scalar, 0))
        return self.flags[key]

    def _transfer(self, operation: Transfer, address: int) -> tuple[int, ...]:
        """Return the values of a transfer in the order of `requests`."""
        timing = self.target.timing.load if operation.load else self.target.timing.store
        self.facts.update(("timing.load" if operation.load else "timing.store", "banks"))
        rate = int(timing.bytes_per_cycle * TICKS)
        size = operation.bursts * operation.burst_bytes
        return (
            timing.startup_cycles if operation.load else 0,
            0 if operation.load else timing.startup_cycles,
            rate,
            # A load writes the buffer in the event engine's words: it takes the port of its direction.
            int(operation.load),
            address,
            operation.ub_pitch,
            operation.bursts,
            operation.burst_bytes,
            (2 * size * TICKS + rate) // (2 * rate),  # rounded half up
        )

    # ---------------------------------------------------------------------------------------------------- places

    def values(self, numbers: Iterable[int]) -> int:
        """Store numbers and return where they begin."""
        return self.heap.put(numbers)

    def distances(self, blocks: tuple[int, ...]) -> int:
        """Store distances in blocks from the first block of a repeat and return where they begin."""
        place = self._known_distances.get(blocks)
        if place is None:
            place = self.heap.put(block % self.unit.banking.period for block in blocks)
            self._known_distances[blocks] = place
        return place

    def function_room(self, trips: int, stores: int, registers: int, special_ports: int) -> None:
        """See to it that a vector function of this size has room at work."""
        needed = (trips, stores, registers, special_ports)
        self.room = [max(room, number) for room, number in zip(self.room, needed, strict=True)]
