"""Executions of a run: the rows of the ring are stored in columns once nothing refers to them any more."""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import accumulate, starmap
from operator import attrgetter
from pathlib import Path
from typing import Any, Generic, TypeVar, cast, get_args, get_type_hints, overload

import numpy as np

from castsim.engines.fast_dataflow.pipe_steps import execution_of, over
from castsim.engines.fast_dataflow.state import (
    BEGUN,
    MARKER,
    NONE,
    SCALAR_END,
    STALE,
    WIDTH,
    EntryRow,
    ExecutionRow,
    MachineState,
    NodeRow,
    chain,
    names_of,
)
from castsim.execution import pipe_operations, timing, transfer_timing
from castsim.isa.dataclass import dataclass, replace
from castsim.machines.strided import strided_instructions as strided_timing
from castsim.machines.vector_function import function_timing

# Where the state of a run lies, and making more room for it: lists of objects, or bare memory for compiled code.
#
# In bare memory a table is an array of records. Compiled code gets the address of `MachineRecord`, in which its own
# fields and the addresses of all tables stand; Python sees the same memory through ctypes, by the same names.

_MEMORY_FIRST_ROOM = 16


@cache
def record_of(row: type) -> type[ctypes.Structure]:
    """Return the record of a class of rows."""
    members = [(name, ctypes.c_int64) for name in names_of(row)]
    return type(f"{row.__name__}Record", (ctypes.Structure,), {"_fields_": members})


@cache
def parts_of_machine() -> tuple[tuple[str, ...], dict[str, type], dict[str, type]]:
    """Return the fields of `MachineState`: numbers, single rows with their classes, tables with theirs (or `int`)."""
    numbers, rows, tables = [], {}, {}
    for name, hint in get_type_hints(MachineState).items():
        if hint is int:
            numbers.append(name)
        elif get_args(hint):
            tables[name] = get_args(hint)[0]
        else:
            rows[name] = hint
    return tuple(numbers), rows, tables


@cache
def machine_record() -> type[ctypes.Structure]:
    """Return the record of the machine; the address of a table is in the field `address_of(table)`."""
    numbers, rows, tables = parts_of_machine()
    members: list[tuple[str, Any]] = [(name, ctypes.c_int64) for name in numbers]
    members += [(name, record_of(row)) for name, row in rows.items()]
    members += [(address_of(table), ctypes.c_int64) for table in tables]
    return type("MachineRecord", (ctypes.Structure,), {"_fields_": members})


def address_of(table: str) -> str:
    """Return the field of the machine's record with the address of a table."""
    return f"at_{table}"


class MachineMemory:
    """The state of one run. `machine` is a `MachineState`, after `compile` a record with the same fields."""

    def __init__(self) -> None:
        _, rows, tables = parts_of_machine()
        given: dict[str, Any] = {name: row() for name, row in rows.items()}
        given |= {table: [] for table in tables}
        self.machine = MachineState(**given)
        self._columns: dict[str, _Column] | None = None

    @property
    def is_compiled(self) -> bool:
        """Whether the state is in raw memory."""
        return self._columns is not None

    # ---------------------------------------------------------------------------------------------------- any table

    def append(self, table: str, rows: Sequence[object]) -> int:
        """Append rows, or numbers, to a table and return the index of the first."""
        if self._columns is not None:
            return self._grow(table, len(rows), [_cells(row) for row in rows])
        rows_so_far: list[object] = getattr(self.machine, table)
        rows_so_far.extend(rows)
        return len(rows_so_far) - len(rows)

    def take(self, table: str, count: int, fill: int = 0) -> int:
        """Append new rows, or a repeated number, to a table and return the index of the first."""
        row = parts_of_machine()[2][table]
        if self._columns is not None:
            return self._grow(table, count, fill if row is int else [_cells(row())])
        rows: list[object] = getattr(self.machine, table)
        rows.extend([fill] * count if row is int else [row() for _ in range(count)])
        return len(rows) - count

    def size(self, table: str) -> int:
        """Return the number of rows of a table."""
        return len(getattr(self.machine, table)) if self._columns is None else self._columns[table].size

    def columns(self, table: str, first: int, end: int) -> dict[str, Any]:
        """Return the fields of some rows as sequences of integers."""
        members = names_of(parts_of_machine()[2][table])
        if self._columns is not None:
            part = self._columns[table].array[first:end]
            return {name: part[name] for name in members}
        rows = getattr(self.machine, table)[first:end]
        return {name: [getattr(row, name) for row in rows] for name in members}

    def compile(self) -> None:
        """Store the state in raw memory, as compiled code needs it."""
        numbers, rows, tables = parts_of_machine()
        old, new = self.machine, machine_record()()
        for name in numbers:
            setattr(new, name, getattr(old, name))
        for name in rows:
            setattr(new, name, record_of(rows[name])(*_cells(getattr(old, name))))
        self._columns = {}
        for table, row in tables.items():
            content = getattr(old, table)
            self._columns[table] = _Column(row, content if row is int else list(map(_getter(row), content)))
        self.machine = cast(MachineState, new)
        for table in tables:
            self._show(table)

    def _grow(self, table: str, count: int, cells: Any) -> int:
        assert self._columns is not None
        first = self._columns[table].grow(count, cells)
        self._show(table)
        return first

    def _show(self, table: str) -> None:
        """Tell the machine's record where a table lies."""
        assert self._columns is not None
        column = self._columns[table]
        setattr(self.machine, table, column.view)
        setattr(self.machine, address_of(table), column.array.ctypes.data)

    # -------------------------------------------------------------------------------------------------- single tables

    def put_tokens(self, tokens: list[int]) -> None:
        """Pass the next tokens to the scalar unit."""
        m = self.machine
        missing = len(tokens) - self.size("tokens")
        if missing > 0:
            self.take("tokens", max(missing, self.size("tokens")))
        m.tokens[: len(tokens)] = tokens
        m.issuer.token, m.issuer.token_end = 0, len(tokens)

    def make_room(self) -> None:
        """Extend every table that may be too short for the next step, except executions."""
        m = self.machine
        if m.entry_spare <= m.pipe_count + 2:
            count = max(self.size("entries"), _MEMORY_FIRST_ROOM)
            m.entry_free = self._add("entries", count, m.entry_free)
            m.entry_spare += count
            if m.recording:
                self.take("operation_causes", count * WIDTH)
        needed = max(2 * m.pipe_count, (m.live + 2) * (2 * m.most_accesses + 1)) + 1
        if m.node_spare <= needed:
            count = max(self.size("nodes"), needed)
            m.node_free = self._add("nodes", count, m.node_free)
            m.node_spare += count
        if m.result_count >= m.result_mask:
            self._double_results()

    def _add(self, table: str, count: int, free: int) -> int:
        """Prepend a list of new rows to the free ones, and return the first."""
        first = self.take(table, count)
        rows: Sequence[EntryRow] | Sequence[NodeRow] = getattr(self.machine, table)
        for number in range(first, first + count - 1):
            rows[number].next = number + 1
        rows[first + count - 1].next = free
        return first

    def _double_results(self) -> None:
        """Double the ring of results on their way."""
        m = self.machine
        waiting = [m.results[(m.result_head + k) & m.result_mask] for k in range(m.result_count)]
        kept = [(result.time, result.entry) for result in waiting]
        self.take("results", max(self.size("results"), _MEMORY_FIRST_ROOM))
        for result, (time, entry) in zip(m.results, kept, strict=False):
            result.time, result.entry = time, entry
        m.result_head, m.result_mask = 0, self.size("results") - 1

    def lengthen_executions(self, room: int) -> None:
        """Extend the ring of executions to a power of two; its contents stay."""
        m = self.machine
        live = range(m.first_execution, m.issuer.execution + 1)
        old, new = [x & m.execution_mask for x in live], [x & (room - 1) for x in live]
        m.execution_mask = room - 1
        if self._columns is None:
            executions, m.executions = m.executions, [ExecutionRow() for _ in range(room)]
            for source, target in zip(old, new, strict=True):
                m.executions[target] = executions[source]
            return
        kept = self._columns["executions"].array[old]
        self.take("executions", room - self.size("executions"))
        self._columns["executions"].array[new] = kept


class _Column:
    """A table in bare memory: an array of records (or integers) that has room for more, and how Python sees it."""

    def __init__(self, row: type, cells: list[Any]) -> None:
        self._row = row
        self.size = len(cells)
        self._allot()
        self.array[: self.size] = cells

    def grow(self, count: int, cells: Any) -> int:
        """Append rows and return the index of the first; all are equal if only one is given."""
        first, self.size = self.size, self.size + count
        if self.size > len(self.array):
            shorter = self.array
            self._allot()
            self.array[:first] = shorter[:first]
        if count:
            self.array[first : self.size] = cells
        return first

    def _allot(self) -> None:
        """Create an array of sufficient length; lengths are powers of two, because each is a separate ctypes type."""
        room = 1 << (max(self.size, _MEMORY_FIRST_ROOM) - 1).bit_length()
        self.array: Any = np.zeros(room, _dtype(self._row))
        self.view: Any = _array_type(self._row, room).from_buffer(self.array)


@cache
def _dtype(row: type) -> Any:
    return np.dtype(np.int64 if row is int else [(name, np.int64) for name in names_of(row)])


@cache
def _array_type(row: type, room: int) -> Any:
    kind: Any = ctypes.c_int64 if row is int else record_of(row)
    return kind * room


def _cells(row: Any) -> Any:
    """Return the fields of a row, or a number as it is."""
    kind: type = type(row)
    return row if kind is int else _getter(kind)(row)


@cache
def _getter(row: type) -> Callable[[Any], Any]:
    """Return the function that reads all fields of a row of a class."""
    return attrgetter(*names_of(row))


_FIRST_ROOM = 256
"""Initial size of the ring, a power of two of at least 2; it only affects how often the ring is compacted."""
_COMPILED_ROOM = 1 << 14
_LARGEST_GUESS = 1 << 24
"""Maximum number of executions reserved ahead: memory is used only when written."""
_BITS = BEGUN | SCALAR_END


class ExecutionRows:
    """Start, end, instruction and origin of every execution. `expected` is their maximum number."""

    def __init__(self, memory: MachineMemory, spaces: list[int], expected: int) -> None:
        self._memory = memory
        self._spaces = spaces
        self._room = min(expected, _LARGEST_GUESS) + 1
        self.starts: Any = np.empty(self._room, np.int64)
        self.ends: Any = np.empty(self._room, np.int64)
        self.instructions: Any = np.empty(self._room, np.int32)
        self.origins: Any = np.empty(self._room, np.int8)
        self.count = 0
        memory.lengthen_executions(_FIRST_ROOM)

    def make_room(self) -> None:
        """Extend the ring if it may be too small for the next step."""
        m = self._memory.machine
        if m.issuer.execution - m.first_execution < m.execution_mask:
            return
        self._forget_ended()
        self._keep(self._oldest())
        if 2 * (m.issuer.execution - m.first_execution) > m.execution_mask:
            self._memory.lengthen_executions(2 * (m.execution_mask + 1))

    def widen(self) -> None:
        """Enlarge the ring, which compiled runs fill quickly."""
        self._memory.lengthen_executions(max(_COMPILED_ROOM, self._memory.machine.execution_mask + 1))

    def close(self) -> None:
        """Store the rest at the end of the run."""
        self._keep(self._memory.machine.issuer.execution + 1)

    def _keep(self, end: int) -> None:
        """Move the rows before execution `end` from the ring to the columns."""
        m = self._memory.machine
        first, room = m.first_execution, m.execution_mask + 1
        while first < end:
            offset = first % room
            count = min(end - first, room - offset)
            self._append(self._memory.columns("executions", offset, offset + count))
            first += count
        m.first_execution = max(m.first_execution, end)

    def _append(self, rows: Mapping[str, Any]) -> None:
        first, end = self.count, self.count + len(rows["start"])
        if end > self._room:
            self._room = 2 * end
            for name in ("starts", "ends", "instructions", "origins"):
                old = getattr(self, name)
                new = np.empty(self._room, old.dtype)
                new[:first] = old[:first]
                setattr(self, name, new)
        self.starts[first:end] = rows["start"]
        self.ends[first:end] = rows["end"]
        self.instructions[first:end] = rows["instruction"]
        self.origins[first:end] = np.asarray(rows["open"]) & _BITS
        self.count = end

    # ---------------------------------------------------------------------------------------- what is referred to

    def _oldest(self) -> int:
        """Return the oldest execution that anything refers to."""
        latest = self._memory.machine.issuer.execution
        entries = (entry.execution for entry in self._entries())
        nodes = (node.execution for node in (*self._accesses(), *self._needs()) if not node.kind & STALE)
        return min((*entries, *nodes), default=latest)

    def _accesses(self) -> Iterator[NodeRow]:
        """Yield the accesses in flight."""
        m = self._memory.machine
        for space in self._spaces:
            yield from chain(m.nodes, m.spaces[space].first)

    def _needs(self) -> Iterator[NodeRow]:
        """Yield the executions waited for: those of the operations that have not been executed.

        The latest execution is included before any of its operations is issued. What it needs may be stored nowhere
        else: it has taken the bytes it writes from the accesses before it.
        """
        m = self._memory.machine
        waiting = {entry.execution for entry in self._entries()}
        if m.issuer.execution != NONE:
            waiting.add(m.issuer.execution)
        for x in waiting if m.interlocked else ():
            yield from chain(m.nodes, execution_of(m, x).needs)

    def _entries(self) -> Iterator[EntryRow]:
        """Yield the operations of all pipes: queued, in flight, to act once these have ended, and at work."""
        m = self._memory.machine
        for p in range(1, m.pipe_count):
            pipe = m.pipes[p]
            for head in (pipe.queue, pipe.in_flight, pipe.action):
                yield from (entry for entry in chain(m.entries, head) if entry.operation != MARKER)
            if pipe.current != NONE:
                yield m.entries[pipe.current]

    def _forget_ended(self) -> None:
        """Reduce executions that have ended to that fact."""
        m = self._memory.machine
        for node in (*self._accesses(), *self._needs()):
            if not node.kind & STALE and over(m, node.execution, m.now):
                node.kind |= STALE
                node.execution = NONE


# The files on which compiled code of the machine depends.


def sources() -> tuple[Path, ...]:
    """Return the machine's source files, the timing rules that it calls, and constants of both."""
    modules = (timing, pipe_operations, transfer_timing, strided_timing, function_timing)
    outside = (Path(module.__file__) for module in modules if module.__file__ is not None)
    return (*sorted(Path(__file__).parent.glob("*.py")), *outside)


# What is reported of executions and operations: worked out from columns when it is read.
#
# A run that skipped trips has executed fewer of them than it reports. Each `Jump` says which part of what was
# executed stands for how many repetitions, and how much later each of them is than the one before.

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class RecordShift:
    """The distance of a repetition from the executed original: cycles of the pipes and of the scalar unit, executions,
    operations.
    """

    pipes: int = 0
    scalar: int = 0
    executions: int = 0
    operations: int = 0

    def plus(self, other: RecordShift, times: int = 1) -> RecordShift:
        """Return the sum of this shift and `times` another one."""
        return RecordShift(
            self.pipes + times * other.pipes,
            self.scalar + times * other.scalar,
            self.executions + times * other.executions,
            self.operations + times * other.operations,
        )


@dataclass(frozen=True, slots=True)
class Jump:
    """The records from `first` to before `end` happened `times` more times, each `shift` after the previous one.

    `inner` are the jumps among them, in order. Everything after `end` is later by the total.
    """

    first: int
    end: int
    times: int
    shift: RecordShift
    inner: tuple[Jump, ...] = ()

    def total(self) -> RecordShift:
        """Return how much later everything afterwards is than it was executed; the clocks of all units agree there."""
        total = RecordShift().plus(replace(self.shift, scalar=self.shift.pipes), self.times)
        for jump in self.inner:
            total = total.plus(jump.total())
        return total


@dataclass(frozen=True, slots=True)
class ExecutedRecords:
    """Records as executed, all later by `offset`."""

    first: int
    end: int
    offset: RecordShift

    @property
    def length(self) -> int:
        """The number of records."""
        return self.end - self.first

    def find(self, index: int, shift: RecordShift) -> tuple[int, RecordShift]:
        """Return the row of a record and how much later it is than executed."""
        return self.first + index, self.offset.plus(shift)

    def walk(self, shift: RecordShift) -> Iterator[tuple[int, RecordShift]]:
        """Yield all records in order."""
        behind = self.offset.plus(shift)
        for row in range(self.first, self.end):
            yield row, behind

    def repeated(self, first: RecordShift, last: RecordShift, times: int) -> Iterator[RepeatedRow]:
        """Yield every executed row: how much later its first and its last copy are, and the number of copies."""
        start, other = self.offset.plus(first), self.offset.plus(last)
        for row in range(self.first, self.end):
            yield row, start, other, times


class RepeatedRecords:
    """Parts in sequence, all of them `times` times, each time `shift` later."""

    def __init__(self, parts: Sequence[RecordSequence], times: int, shift: RecordShift) -> None:
        self._parts = parts
        self._starts = [0, *accumulate(part.length for part in parts)]
        self._times = times
        self._shift = shift
        self.length: int = self._starts[-1] * times

    def find(self, index: int, shift: RecordShift) -> tuple[int, RecordShift]:
        """Return the row of a record and how much later it is than executed."""
        time, offset = divmod(index, self._starts[-1])
        number = bisect_right(self._starts, offset) - 1
        return self._parts[number].find(offset - self._starts[number], shift.plus(self._shift, time))

    def walk(self, shift: RecordShift) -> Iterator[tuple[int, RecordShift]]:
        """Yield all records in order."""
        for time in range(self._times if self.length else 0):
            for part in self._parts:
                yield from part.walk(shift.plus(self._shift, time))

    def repeated(self, first: RecordShift, last: RecordShift, times: int) -> Iterator[RepeatedRow]:
        """Yield every executed row: how much later its first and its last copy are, and the number of copies."""
        for part in self._parts:
            yield from part.repeated(first, last.plus(self._shift, self._times - 1), times * self._times)


RecordSequence = ExecutedRecords | RepeatedRecords
RepeatedRow = tuple[int, RecordShift, RecordShift, int]


def parts_of(first: int, end: int, jumps: Sequence[Jump], offset: RecordShift) -> list[RecordSequence]:
    """Return the parts of records `first` to before `end`, of which `jumps` repeat some, later by `offset`."""
    parts: list[RecordSequence] = []
    for jump in jumps:
        if first < jump.first:
            parts.append(ExecutedRecords(first, jump.first, offset))
        if jump.first < jump.end:
            inner = parts_of(jump.first, jump.end, jump.inner, offset)
            parts.append(RepeatedRecords(inner, jump.times + 1, jump.shift))
        offset = offset.plus(jump.total())
        first = jump.end
    if first < end:
        parts.append(ExecutedRecords(first, end, offset))
    return parts


@dataclass(frozen=True, slots=True)
class RunRecords(Generic[Record]):
    """Records of a run: `count` were executed, `jumps` say which of them repeat, `make` creates one.

    It receives the row, and how much later the record is than executed.
    """

    count: int
    jumps: Sequence[Jump]
    make: Callable[[int, RecordShift], Record]


class Records(Sequence[Record], Generic[Record]):
    """Records in program order, each created when it is read, which may also start the run."""

    def __init__(self, run: Callable[[], RunRecords[Record]]) -> None:
        self._run = run

    @cached_property
    def _left(self) -> tuple[RepeatedRecords, Callable[[int, RecordShift], Record]]:
        left = self._run()
        return RepeatedRecords(parts_of(0, left.count, left.jumps, RecordShift()), 1, RecordShift()), left.make

    def __len__(self) -> int:
        return self._left[0].length

    @overload
    def __getitem__(self, index: int) -> Record: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Record, ...]: ...

    def __getitem__(self, index: int | slice) -> Record | tuple[Record, ...]:
        if isinstance(index, slice):
            return tuple(self[number] for number in range(*index.indices(len(self))))
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(f"record {index} of {len(self)}")
        parts, make = self._left
        return make(*parts.find(number, RecordShift()))

    def __iter__(self) -> Iterator[Record]:
        parts, make = self._left
        return starmap(make, parts.walk(RecordShift()))

    def repeated(self) -> Iterator[tuple[Record, Record, int]]:
        """Yield every executed record: its first and its last copy, and the number of copies."""
        parts, make = self._left
        for row, first, last, times in parts.repeated(RecordShift(), RecordShift(), 1):
            yield make(row, first), make(row, last), times

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return len(self) == len(other) and all(left == right for left, right in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # as of lists: equal to sequences of other types

    def __repr__(self) -> str:
        return f"<{len(self)} records>" if "_left" in self.__dict__ else "<records not worked out>"
