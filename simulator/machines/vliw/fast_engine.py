"""The fast engine of a core that issues bundles: the same cycles and causes as the event engine, without events.

`bundle_recurrence` steps bundle by bundle and stores events in columns; this module skips repeated trips, and
reads the columns back as executions and operations.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import accumulate
from operator import eq
from typing import TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from castsim.execution.run_limits import MAX_CYCLES
from castsim.execution.timing import Cause, Execution, Listener, OperationTiming, PipeTiming, Timing
from castsim.execution.tree import Block, Loop, Lowered, Node, Tree
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import IllegalError
from castsim.machines.vliw.bundle_recurrence import (
    IssueHistory,
    Kinds,
    RecurrenceCore,
    Repetition,
    Totals,
)
from castsim.machines.vliw.stage_latency import (
    SEPARATE_PORTS,
    SHARED_PORT,
    SLOTS,
    BundleOperation,
    MemoryTiming,
)
from castsim.targets.vliw import VliwTarget

# Reading the history back: executions and operations in order, with real times, made when they are asked for.

_AT_ONCE = 1 << 16
"""The number of rows processed together, which keeps temporary data small beside the history."""


@dataclass(frozen=True, slots=True)
class HistoryShift:
    """The distance of a copy from the stepped original: cycles, rows and operations."""

    cycles: int = 0
    rows: int = 0
    operations: int = 0

    def plus(self, repetition: Repetition, times: int) -> HistoryShift:
        """Return the shift after a number of additional repetitions."""
        return HistoryShift(
            self.cycles + times * repetition.cycles,
            self.rows + times * repetition.rows,
            self.operations + times * repetition.operations,
        )

    def __add__(self, other: HistoryShift) -> HistoryShift:
        """Return the sum of both shifts."""
        return HistoryShift(self.cycles + other.cycles, self.rows + other.rows, self.operations + other.operations)


@dataclass(frozen=True, slots=True)
class SteppedRows:
    """Rows [first, end) as they were stepped, `shift` later."""

    first: int
    end: int
    shift: HistoryShift


@dataclass(frozen=True, slots=True)
class Copies:
    """`parts` once for each of the repetitions, with the shifts of the first of these."""

    first: int
    end: int
    repetition: Repetition
    parts: tuple[Part, ...]


Part = SteppedRows | Copies


def parts_of(history: IssueHistory) -> tuple[Part, ...]:
    """Return the parts of the history in order."""
    repetitions = sorted(history.repetitions, key=lambda repetition: repetition.end)
    return _parts(0, len(history.kind), repetitions, HistoryShift())


def _parts(first: int, end: int, repetitions: Sequence[Repetition], base: HistoryShift) -> tuple[Part, ...]:
    """Return the parts of rows [first, end), which begin `base` later; `repetitions` are those among them, by end."""
    collected: list[Part] = []
    ends = [repetition.end for repetition in repetitions]
    shifts = [base]
    for number, repetition in enumerate(repetitions):
        collected.append(SteppedRows(first, repetition.end, shifts[-1]))
        first = repetition.end
        # What ends at or before its first row has already put that row off; what ends later lies inside.
        before = bisect_right(ends, repetition.first)
        inner = [
            inner_repetition
            for inner_repetition in repetitions[before:number]
            if inner_repetition.first >= repetition.first
        ]
        parts = _parts(repetition.first, repetition.end, inner, shifts[before].plus(repetition, 1))
        collected.append(Copies(repetition.first, repetition.end, repetition, parts))
        shifts.append(shifts[-1].plus(repetition, repetition.times))
    collected.append(SteppedRows(first, end, shifts[-1]))
    return tuple(part for part in collected if part.first < part.end)


class Finishes:
    """The cycle after the last effect of every stepped row, in stepped cycles, computed on demand."""

    def __init__(self, history: IssueHistory) -> None:
        self._effects = np.array([max(kind.effect, 1) for kind in history.kinds], np.int64)
        self._kind = np.frombuffer(history.kind, np.int32) if history.kind else np.empty(0, np.int32)
        self._clock = np.frombuffer(history.clock, np.uint32) if history.clock else np.empty(0, np.uint32)
        self._done = np.frombuffer(history.done_at, np.int64) if history.done_at else np.empty(0, np.int64)
        self._issued = np.frombuffer(history.issued_at, np.int64)

    def of(self, first: int, end: int) -> NDArray[np.int64]:
        """Return the finish cycles of rows [first, end)."""
        ends = np.empty(end - first, np.int64)
        for start in range(first, end, _AT_ONCE):
            part = slice(start, min(end, start + _AT_ONCE))
            effects = self._issued[self._clock[part] + self._effects[self._kind[part]]]
            np.maximum(effects, self._done[part], out=ends[part.start - first : part.stop - first])
        return ends

    def latest(self, parts: Sequence[Part], shift: HistoryShift | None = None) -> int:
        """Return the real cycle of the last effect of all parts."""
        extra = shift or HistoryShift()
        finish = 0
        for part in parts:
            if isinstance(part, SteppedRows):
                for start in range(part.first, part.end, _AT_ONCE):
                    last = int(self.of(start, min(part.end, start + _AT_ONCE)).max())
                    finish = max(finish, last + part.shift.cycles + extra.cycles)
            else:
                finish = max(finish, self.latest(part.parts, extra.plus(part.repetition, part.repetition.times - 1)))
        return finish


class Rows:
    """Every row of the run, with its shift, by number."""

    def __init__(self, history: IssueHistory, parts: tuple[Part, ...]) -> None:
        self.history = history
        self._parts = parts
        last = parts[-1] if parts else None
        # Parts end with the stretch behind the last repetition, or with copies if nothing came after them.
        self.count = 0 if last is None else _end_of(last)

    def __iter__(self) -> Iterator[tuple[int, HistoryShift]]:
        return _each(self._parts, HistoryShift())

    def repeated(self) -> Iterator[tuple[int, HistoryShift, HistoryShift, int]]:
        """Yield every stepped row, part by part: the shifts of its first and last copy, and the number of copies."""
        return _repeated(self._parts, HistoryShift(), HistoryShift(), 1)

    def find(self, number: int) -> tuple[int, HistoryShift]:
        """Return stepped row and shift of a real row."""
        parts, extra = self._parts, HistoryShift()
        while True:
            starts = [_start_of(part) + extra.rows for part in parts]
            part = parts[bisect_right(starts, number) - 1]
            if isinstance(part, SteppedRows):
                shift = part.shift + extra
                return number - shift.rows, shift
            behind = number - (_start_of(part) + extra.rows)
            parts, extra = part.parts, extra.plus(part.repetition, behind // part.repetition.rows)

    @cached_property
    def finishes(self) -> NDArray[np.int64]:
        """For every stepped row the cycle after its last effect, in stepped cycles."""
        return Finishes(self.history).of(0, len(self.history.kind))

    @cached_property
    def operations_before(self) -> Sequence[int]:
        """For every stepped row the operations of the stepped rows before it, and all of them at the end."""
        kinds = self.history.kinds
        return list(accumulate((kinds[number].count for number in self.history.kind), initial=0))


def _start_of(part: Part) -> int:
    return part.first + part.shift.rows if isinstance(part, SteppedRows) else _start_of(part.parts[0])


def _end_of(part: Part) -> int:
    if isinstance(part, SteppedRows):
        return part.end + part.shift.rows
    return _end_of(part.parts[-1]) + (part.repetition.times - 1) * part.repetition.rows


def _each(parts: Sequence[Part], extra: HistoryShift) -> Iterator[tuple[int, HistoryShift]]:
    for part in parts:
        if isinstance(part, SteppedRows):
            shift = part.shift + extra
            for row in range(part.first, part.end):
                yield row, shift
        else:
            for copy in range(part.repetition.times):
                yield from _each(part.parts, extra.plus(part.repetition, copy))


def _repeated(
    parts: Sequence[Part], first: HistoryShift, last: HistoryShift, times: int
) -> Iterator[tuple[int, HistoryShift, HistoryShift, int]]:
    for part in parts:
        if isinstance(part, SteppedRows):
            for row in range(part.first, part.end):
                yield row, part.shift + first, part.shift + last, times
        else:
            copies = part.repetition.times
            yield from _repeated(part.parts, first, last.plus(part.repetition, copies - 1), times * copies)


_Item = TypeVar("_Item")


class _ReadBack(Sequence[_Item]):
    """A sequence of items that are created from the rows on demand."""

    def __init__(self, rows: Rows, count: int) -> None:
        self._rows = rows
        self._count = count

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> _Item: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[_Item, ...]: ...
    def __getitem__(self, index: int | slice) -> _Item | tuple[_Item, ...]:
        if isinstance(index, slice):
            return tuple(self[number] for number in range(len(self))[index])
        return self._item(range(len(self))[index])

    def _item(self, number: int) -> _Item:
        raise NotImplementedError


class Executions(_ReadBack[Execution]):
    """The issued bundles in order."""

    def _item(self, number: int) -> Execution:
        return self._make(*self._rows.find(number))

    def __iter__(self) -> Iterator[Execution]:
        return (self._make(row, shift) for row, shift in self._rows)

    def repeated(self) -> Iterator[tuple[Execution, Execution, int]]:
        """Yield every stepped bundle: its first and its last copy, and the number of copies."""
        for row, first, last, times in self._rows.repeated():
            yield self._make(row, first), self._make(row, last), times

    def _make(self, row: int, shift: HistoryShift) -> Execution:
        history = self._rows.history
        kind = history.kinds[history.kind[row]]
        start, end = history.start(row), int(self._rows.finishes[row])
        return Execution(kind.instruction, start + shift.cycles, end + shift.cycles)


class SlotOperations(_ReadBack[OperationTiming]):
    """The instructions in their slots; stalls of the core count for the first of a bundle."""

    def _item(self, number: int) -> OperationTiming:
        row, shift = self._rows.find(self._row_of(number))
        return next(timing for timing in self._make(row, shift) if timing.index == number)

    def __iter__(self) -> Iterator[OperationTiming]:
        for row, shift in self._rows:
            yield from self._make(row, shift)

    def repeated(self) -> Iterator[tuple[OperationTiming, OperationTiming, int]]:
        """Yield every stepped instruction: its first and its last copy, and the number of copies."""
        for row, first, last, times in self._rows.repeated():
            for first_copy, last_copy in zip(self._make(row, first), self._make(row, last), strict=True):
                yield first_copy, last_copy, times

    def _row_of(self, number: int) -> int:
        """Return the real row of an operation: the last one before which no more operations exist."""
        rows = self._rows

        def before(real: int) -> int:
            row, shift = rows.find(real)
            return rows.operations_before[row + 1] + shift.operations

        return bisect_left(range(rows.count), number + 1, key=before)

    def _make(self, row: int, shift: HistoryShift) -> Iterator[OperationTiming]:
        rows, history = self._rows, self._rows.history
        operation = history.kinds[history.kind[row]].operation
        start, end = history.start(row) + shift.cycles, int(rows.finishes[row]) + shift.cycles
        index = rows.operations_before[row] + shift.operations
        waits = history.waits.get(row, {})
        for slot_index, slot in enumerate(SLOTS):
            if operation.slot_cycles[slot_index]:
                causes = {**waits, Cause.BUSY: 1}
                yield OperationTiming(index, row + shift.rows, slot, operation.names[slot_index], start, end, causes)
                index, waits = index + 1, {}


# Loops: trips are stepped through until the state of the core repeats; those that only repeat it are skipped. Bundles
# that repeat in a row are a loop that the program has unrolled.
#
# The state is taken relative to now behind every trip. When it equals an earlier one, the trips in between are a
# period: all further periods take the same cycles for the same reasons. The last effects of a period may happen in
# later ones, so stepping goes on until all of them have; then whole periods are skipped and the rest is stepped
# through.

_LOOK = 256
"""Bundles of straight-line code that are looked at together for repetition."""
_LONGEST = 64
"""Maximum number of bundles after which they may repeat."""
_TRIP = 16
"""Bundles that a trip of straight-line code has at least: before every trip there is a look at the core."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """The run after a trip; `rows` are those stepped through, `real_rows` and `real_now` include skipped ones."""

    trip: int
    rows: int
    real_rows: int
    real_now: int
    clock: int
    totals: Totals


class TreeStepper:
    """Walk of a tree. `skip` False steps through every trip."""

    def __init__(self, core: RecurrenceCore, kinds: Kinds, reach: int, *, skip: bool) -> None:
        self._core = core
        self._kinds = kinds
        self._reach = reach
        self._skip = skip
        self._skipped_rows = 0

    def walk(self, node: Node) -> None:
        """Issue everything in a node.

        Raises:
            EngineError: the cycle limit is reached.
        """
        if isinstance(node, Block):
            for part in self._kinds.parts(node):
                if isinstance(part, array):
                    self._straight(part)
                else:
                    self.walk(part)
        elif isinstance(node, Loop):
            self._trips(node.trips, partial(self.walk, node.body))
        elif isinstance(node, Lowered):
            self._core.issue_all(self._kinds.of(node))
        else:
            raise TypeError("an operation outside an instruction")

    def _straight(self, numbers: Sequence[int]) -> None:
        """Issue consecutive bundles, repetitions as a loop."""
        first = 0
        while first < len(numbers):
            size, end = _repetition(numbers, first) if self._skip else (0, len(numbers))
            if size:
                trips = (end - first) // size
                self._trips(trips, partial(self._core.issue_all, numbers[first : first + size]))
                first += trips * size
            else:
                self._core.issue_all(numbers[first:end])
                first = end

    def _trips(self, trips: int, walk: Callable[[], None]) -> None:
        """Walk trips of a loop."""
        seen: dict[tuple[object, ...], list[_Mark]] = {}
        trip = 0
        while trip < trips:
            walk()
            trip += 1
            if not self._skip or trips - trip < 1:
                continue
            marks = seen.setdefault(self._core.state(), [])
            if len(marks) < 2:
                marks.append(self._mark(trip))
            elif self._core.clock - marks[1].clock >= self._reach:
                skipped = self._repeat(marks[0], marks[1], trips - trip)
                if skipped:
                    trip += skipped
                    seen.clear()

    def _mark(self, trip: int) -> _Mark:
        core = self._core
        rows = len(core.history.kind)
        return _Mark(trip, rows, rows + self._skipped_rows, core.now + core.skipped, core.clock, core.totals.copy())

    def _repeat(self, first: _Mark, second: _Mark, left: int) -> int:
        """Skip as many periods as fit into the trips and cycles that are left; return the number of trips skipped."""
        core = self._core
        period, cycles = second.trip - first.trip, second.real_now - first.real_now
        times = min(left // period, (core.max_cycles - core.now - core.skipped) // cycles)
        if times < 1:
            return 0
        rows = second.real_rows - first.real_rows
        kinds = core.history.kinds
        operations = second.totals.operations(kinds) - first.totals.operations(kinds)
        core.history.repetitions.append(Repetition(first.rows, second.rows, times, rows, cycles, operations))
        core.totals.repeat(first.totals, second.totals, times)
        core.skipped += times * cycles
        self._skipped_rows += times * rows
        return times * period


def _repetition(numbers: Sequence[int], first: int) -> tuple[int, int]:
    """Return how many bundles from `first` on repeat, and where that ends; 0 and the next place to look."""
    ahead = numbers[first : first + _LOOK]
    end = first + len(ahead)
    for period in range(1, min(_LONGEST, len(ahead) // _TRIP) + 1):
        if ahead[period] == ahead[0] and ahead[period:] == ahead[:-period]:
            while end < len(numbers):
                following = numbers[end : end + _LOOK]
                if following != numbers[end - period : end - period + len(following)]:
                    break
                end += len(following)
            return period * -(-_TRIP // period), end
    return 0, end


_WIDTH_FACT = "options.all_lanes_cycles"


def simulate_bundles(
    tree: Tree,
    target: VliwTarget,
    max_cycles: int = MAX_CYCLES,
    listener: Listener | None = None,
    *,
    record_operations: bool = True,
    skip: bool = True,
) -> Timing:
    """Return how long a tree of bundles takes; `skip` False steps through every trip of every loop.

    Raises:
        IllegalError: the tree has operations of another mechanism.
        EngineError: the end is beyond `max_cycles`.
    """
    issued = _operations(tree, target)
    kinds = Kinds()
    history = IssueHistory(kinds.all)
    memory = MemoryTiming.of(target)
    core = RecurrenceCore(history, tree.instructions, memory, max_cycles, listener, keep_waits=record_operations)
    reach = max((operation.effect for operation in issued), default=0) + 1
    TreeStepper(core, kinds, reach, skip=skip).walk(tree.root)
    stepped = core.now + core.skipped
    core.drain()
    parts = parts_of(history)
    total = Finishes(history).latest(parts)
    if total > max_cycles:
        raise core.beyond_limit()
    count = core.totals.operations(kinds.all)
    if listener is not None:
        listener.progress(total, count)
    rows = Rows(history, parts)
    facts = {*core.facts, *(memory.facts if any(bundle.loads or bundle.stores for bundle in issued) else ())}
    if any(max(kind.operation.slot_cycles) > 1 for kind in kinds.all):
        facts.add(_WIDTH_FACT)
    return Timing(
        total,
        {**_slots(core, kinds, stepped, total), **_ports(core, kinds, memory, total)},
        Executions(rows, rows.count),
        SlotOperations(rows, count) if record_operations else (),
        frozenset(facts),
    )


def _operations(tree: Tree, target: VliwTarget) -> list[BundleOperation]:
    """Return the distinct bundles of a tree; a shared node is visited once."""
    operations: list[BundleOperation] = []
    seen: set[int] = set()
    nodes: list[Node] = [tree.root]
    while nodes:
        node = nodes.pop()
        if isinstance(node, BundleOperation):
            operations.append(node)
        elif isinstance(node, Block):
            fresh = {id(item): item for item in node.items if id(item) not in seen}
            seen.update(fresh)
            nodes.extend(reversed(fresh.values()))
        elif isinstance(node, Loop | Lowered):
            nodes.append(node.body)
        else:
            raise IllegalError(f"{target.name} issues bundles; {type(node).__name__} is not a bundle")
    return operations


def _slots(core: RecurrenceCore, kinds: Kinds, stepped: int, total: int) -> Mapping[str, PipeTiming]:
    """Return the cycles of the slots, which stall together."""
    bundles = sum(core.totals.issues)
    busy = [0] * len(SLOTS)
    for kind, count in zip(kinds.all, core.totals.issues, strict=True):
        for index, cycles in enumerate(kind.operation.slot_cycles):
            busy[index] += count if cycles else 0
    return {
        slot: _timing(
            {
                **core.totals.stalls,
                Cause.BUSY: busy[slot_index],
                Cause.EMPTY: bundles - busy[slot_index],
                Cause.DRAIN: total - stepped,
            }
        )
        for slot_index, slot in enumerate(SLOTS)
    }


def _ports(core: RecurrenceCore, kinds: Kinds, memory: MemoryTiming, total: int) -> Mapping[str, PipeTiming]:
    """Return the cycles of the ports of global memory."""
    loads = sum(kind.loads * count for kind, count in zip(kinds.all, core.totals.issues, strict=True))
    stores = sum(kind.stores * count for kind, count in zip(kinds.all, core.totals.issues, strict=True))
    names, counts = (SHARED_PORT, (loads + stores,)) if memory.shared else (SEPARATE_PORTS, (loads, stores))
    return {
        name: _timing({Cause.BUSY: memory.busy(count), Cause.EMPTY: total - memory.busy(count)})
        for name, count in zip(names, counts, strict=True)
    }


def _timing(causes: Mapping[Cause, int]) -> PipeTiming:
    return PipeTiming({cause: cycles for cause, cycles in causes.items() if cycles})
