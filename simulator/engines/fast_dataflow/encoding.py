"""From the operation tree to rows: every distinct operation and instruction once, however often it is executed.

What timing does not depend on is left out: values, global memory (unless the program both reads and writes it), and
whole turns of the addresses around the banks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from castsim.engines.fast_dataflow import state
from castsim.engines.fast_dataflow.execution_rows import MachineMemory
from castsim.engines.fast_dataflow.state import PortsRow
from castsim.engines.fast_dataflow.state_codes import (
    CAUSES,
    FENCE,
    FENCE_ALL,
    MEMORY_LATENCY,
    NONE,
    SCALAR,
    SCALAR_PIPE,
    SET,
    TRANSFER,
    WAIT,
    WIDTH,
)
from castsim.execution.dataflow.pipe_operations import (
    ALL_PIPES,
    BLOCK,
    Barrier,
    ControlWrite,
    Placeholder,
    ScalarAccess,
    ScalarWork,
    SetFlag,
    Survey,
    Transfer,
    WaitFlag,
    cost_of,
)
from castsim.execution.dataflow.transfer_timing import NO_TICK, TransferPlan, latency_ahead
from castsim.execution.tree import Access, Deltas, Operation, Tree
from castsim.targets.dataflow import DataflowTarget

# What a mechanism adds to the fast engine: its operations as rows of numbers, its banks.
#
# A unit is to a vector pipe what `event_pipes.VectorUnit` is in the event engine.


@dataclass(frozen=True, slots=True)
class Banking:
    """The buffer's ports: where each block of a `period` lies, after which the pattern starts over.

    `port_of` holds the ports for reads, then those for writes; which accesses exclude each other say
    `exclusive_ports` and `exclusive_banks`. `grouped`: instead, a group serves so many accesses per cycle
    (`reads_per_group`, `reads_beside_write`, `writes_per_group`), and there are no banks.
    """

    period: int
    port_of: tuple[int, ...]
    bank_of: tuple[int, ...]
    ports: int
    banks: int
    exclusive_ports: bool = False
    exclusive_banks: bool = False
    grouped: bool = False
    reads_per_group: int = 0
    reads_beside_write: int = 0
    writes_per_group: int = 0

    @property
    def bytes(self) -> int:
        """Bytes after which addresses start over."""
        return self.period * BLOCK


@dataclass(frozen=True, slots=True)
class Work:
    """An operation of the vector unit: its kind, the number of its row, and the facts it rests on."""

    kind: int
    row: int
    facts: tuple[str, ...]


class Places(Protocol):
    """The tables of the program's rows."""

    def add(self, table: str, rows: Sequence[object]) -> int:
        """Append rows to a table and return the number of the first."""

    def distances(self, blocks: tuple[int, ...]) -> int:
        """Store distances in blocks from the first block of a repeat and return where they begin in `numbers`."""

    def integers(self, numbers: tuple[int, ...]) -> int:
        """Store integers and return where they begin in `numbers`."""

    def make_room(self, **rows: int) -> None:
        """Ensure that tables have so many rows for the vector function at work."""


class Unit(Protocol):
    """The vector unit of one target."""

    @property
    def banking(self) -> Banking:
        """Ports and banks of the buffer."""

    def check(self, operation: object) -> None:
        """Reject an operation of the vector pipe that the unit cannot execute.

        Raises:
            IllegalError: it is of another mechanism, or needs a fact that the target does not have.
        """

    def encode(self, operation: Operation, addresses: tuple[int, ...], places: Places) -> Work:
        """Put the operation, with these addresses, into the tables."""


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
    memory: MachineMemory = field(default_factory=MachineMemory)
    operations: list[Operation] = field(default_factory=list)
    flags: dict[Key, int] = field(default_factory=dict)
    spaces: dict[str, int] = field(default_factory=dict)
    facts: set[str] = field(default_factory=set)
    most_accesses: int = 0
    room: dict[str, int] = field(default_factory=dict)
    """Rows that the largest vector function needs, by table."""
    _known: dict[tuple[int, ...], int] = field(default_factory=dict)
    _known_numbers: dict[tuple[int, ...], int] = field(default_factory=dict)
    _lowered: dict[tuple[int, tuple[int, ...], tuple[tuple[int, ...], ...]], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.tree.interlocked:
            self.spaces = {
                space: self.memory.append("spaces", [state.SpaceRow()]) for space in self.survey.followed_spaces()
            }

    # ---------------------------------------------------------------------------------------------- instructions

    def lowered(self, instruction: int, operations: Sequence[int], accesses: Iterable[Access] = ()) -> int:
        """Return the row of an instruction, or part of one, that issues these operations and touches these bytes."""
        followed = [
            (self.spaces[access.space], access.start, access.end, int(access.write))
            for access in accesses
            if access.space in self.spaces and access.start < access.end
        ]
        key = (instruction, tuple(operations), tuple(followed))
        known = self._lowered.get(key)
        if known is None:
            self.most_accesses = max(self.most_accesses, len(followed))
            first = self.memory.append("numbers", operations)
            first_access = self.memory.append("accesses", [state.AccessRow(*each) for each in followed])
            row = state.LoweredRow(instruction, first, len(operations), first_access, len(followed))
            known = self._lowered[key] = self.memory.append("lowered", [row])
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
        elif isinstance(operation, ScalarAccess):
            moved = ()  # no port serves it
        moved = tuple(address % turn for address in moved)
        key = (id(operation), *moved)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._encode(operation, moved)
        return known

    def _encode(self, operation: Operation, addresses: tuple[int, ...]) -> int:
        cost, cause, facts = cost_of(operation, self.target)
        self.facts.update(facts)
        sent = (operation, cost, CAUSES.index(cause))
        match operation:
            case ScalarWork() | ScalarAccess():
                return self._add(*sent, SCALAR)
            case ControlWrite(pipe=name) if name == self.pipes[SCALAR_PIPE]:
                return self._add(*sent, SCALAR)
            case Placeholder(pipe=name) if name == self.pipes[SCALAR_PIPE]:
                return self._add(*sent, SCALAR)
            case Placeholder(cycles=cycles):
                nothing = state.TransferRow(0, 0, 1, 1, 0, 0, 0, 0, 0, streaming=cycles, overlaps=0)
                return self._add(*sent, TRANSFER, row=self.add("transfers", [nothing]))
            case SetFlag():
                return self._add(*sent, SET, flag=self._flag((operation.pipe, operation.waiter, operation.event)))
            case WaitFlag():
                return self._add(*sent, WAIT, flag=self._flag((operation.signaller, operation.pipe, operation.event)))
            case Barrier(pipe=name):
                return self._add(
                    *sent, FENCE_ALL if name == ALL_PIPES else SCALAR if name == self.pipes[SCALAR_PIPE] else FENCE
                )
            case Transfer():
                return self._add(*sent, TRANSFER, row=self._transfer(operation, addresses[0]))
        encoded = self.unit.encode(operation, addresses, self)
        self.facts.update(encoded.facts)
        return self._add(*sent, encoded.kind, row=encoded.row)

    def _add(self, operation: Operation, cost: int, cause: int, kind: int, *, flag: int = NONE, row: int = NONE) -> int:
        pipe = SCALAR_PIPE if operation.pipe == ALL_PIPES else self.pipes.index(operation.pipe)
        self.operations.append(operation)
        added = state.OperationRow(len(self.operations) - 1, kind, pipe, cost, cause, flag, row)
        return self.memory.append("operations", [added])

    def _flag(self, key: Key) -> int:
        if key not in self.flags:
            from_scalar = int(key[0] == self.pipes[SCALAR_PIPE])
            self.flags[key] = self.memory.append("flags", [state.FlagRow(from_scalar=from_scalar)])
        return self.flags[key]

    def _transfer(self, operation: Transfer, address: int) -> int:
        """Put a transfer into its table."""
        plan = TransferPlan.of(operation, self.target)
        self.facts.update(plan.facts)
        row = state.TransferRow(
            ahead=plan.ahead,
            behind=plan.behind,
            rate=plan.rate,
            per=plan.per,
            # A load writes the buffer in the event engine's words: it takes the port of its direction.
            write=int(operation.load),
            address=address,
            pitch=operation.ub_pitch,
            bursts=operation.bursts,
            burst_bytes=operation.burst_bytes,
            streaming=plan.streaming,
            overlaps=int(plan.overlaps),
        )
        return self.add("transfers", [row])

    # ---------------------------------------------------------------------------------------------------- places

    def add(self, table: str, rows: Sequence[object]) -> int:
        """Append rows to a table and return the number of the first."""
        return self.memory.append(table, rows)

    def distances(self, blocks: tuple[int, ...]) -> int:
        """Store distances in blocks from the first block of a repeat and return where they begin in `numbers`."""
        return self.integers(tuple(block % self.unit.banking.period for block in blocks))

    def integers(self, numbers: tuple[int, ...]) -> int:
        """Store integers and return where they begin in `numbers`."""
        place = self._known_numbers.get(numbers)
        if place is None:
            place = self._known_numbers[numbers] = self.memory.append("numbers", numbers)
        return place

    def make_room(self, **rows: int) -> None:
        """Ensure that tables have so many rows for the vector function at work."""
        for table, count in rows.items():
            self.room[table] = max(self.room.get(table, 0), count)


# A machine at the start of a program.


def start(encoder: Encoder, remaining: Mapping[str, int], max_cycles: int, *, recording: bool, patience: int) -> None:
    """Set up the machine, pipes and ports; `remaining` is the number of the program's operations by pipe."""
    memory, banking, count = encoder.memory, encoder.unit.banking, len(encoder.pipes)
    m = memory.machine
    m.maximum, m.recording, m.interlocked = max_cycles, int(recording), int(encoder.tree.interlocked)
    m.pipe_count, m.issuer.patience = count, patience
    for table in ("pipes", "accounts", "progress"):
        memory.take(table, count)
    memory.take("causes", count * WIDTH)
    for pipe, name in zip(m.pipes[1:], encoder.pipes[1:], strict=True):
        pipe.remaining = remaining.get(name, 0)
        pipe.reach = latency_ahead(encoder.target, name)
        if name == encoder.target.pipes.store:
            pipe.behind = MEMORY_LATENCY
        m.issuer.remaining += pipe.remaining
    m.ports = PortsRow(
        period=banking.period,
        banks=banking.banks,
        grouped=int(banking.grouped),
        exclusive_ports=int(banking.exclusive_ports),
        exclusive_banks=int(banking.exclusive_banks),
        reads_per_group=banking.reads_per_group,
        reads_beside_write=banking.reads_beside_write,
        writes_per_group=banking.writes_per_group,
    )
    memory.append("port_of", banking.port_of)
    memory.append("bank_of", banking.bank_of)
    memory.take("port_free", banking.ports, NONE if banking.grouped else 0)
    memory.take("bank_free", 2 * banking.banks)
    memory.make_room()


class FunctionRoom:
    """Room for the vector function at work; grows with the largest one that the program has shown so far."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def make(self) -> None:
        """Ensure that there is room for what was encoded last; what is at work keeps its rows."""
        memory = self._encoder.memory
        memory.machine.most_accesses = self._encoder.most_accesses
        for table, needed in self._encoder.room.items():
            if needed > memory.size(table):
                memory.take(table, 2 * needed - memory.size(table), NO_TICK)
