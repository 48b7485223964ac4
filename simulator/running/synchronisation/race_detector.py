"""Detection of accesses whose order a program does not guarantee."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from castsim.execution.pipe_operations import (
    ALL_PIPES,
    ControlWrite,
    FlagSignal,
    FlagWait,
    PipeBarrier,
    ScalarElementAccess,
    ScalarWork,
)
from castsim.execution.tree import (
    Access,
    Block,
    Bytes,
    Instruction,
    InstructionRole,
    Lowered,
    Tree,
    common_bytes,
    elements,
    run_length,
    scratch_reads,
)
from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import Span
from castsim.isa.pto.strided_statements import REPEAT, STRIDED_ROWS
from castsim.running.synchronisation.race_findings import (
    SLOTS,
    Instance,
    RaceFinding,
    RaceKind,
    RaceRegion,
    Touch,
    contended_spaces,
    distance,
    hazard_between,
    unfold,
)
from castsim.targets.dataflow import DataflowTarget, Hazard, Pipes

# The pipes of a program without times: what each of them knows to have ended before its next instruction starts.
#
# Every pipe executes in order and counts its instructions. A signal carries the counts that its pipe knew, and that of
# the pipe itself, because it is sent only when everything before it has ended; who waits for it knows all that from
# then on. The scalar unit issues in program order: what it knows, later instructions of every pipe know. A pipe whose
# flag is not there stands still while the others go on, as in the machine.

Key = tuple[str, str, int]
"""Signaller, waiter, event id."""

Clock = list[int]
"""Number of finished instructions of each pipe."""

Start = Callable[[Instance, str, Clock, int], None]
"""A callback at the start of an instance: its pipe, the clock of that pipe, and the instance's number on it."""


@dataclass(slots=True)
class _Queued:
    """An entry of a pipe's queue: a flag, a barrier, or the work of an instance, with the issuer's clock."""

    action: FlagSignal | FlagWait | PipeBarrier | None
    instance: Instance
    issued: tuple[int, ...]


@dataclass(slots=True)
class _Pipe:
    name: str
    number: int
    known: Clock
    ended: int = 0
    queue: deque[_Queued] = field(default_factory=deque)
    """Not empty only while the first of it waits for a flag."""
    last: Instance | None = None
    """The instance that was started last."""


class Clocks:
    """All pipes; `start` is called for every instance that starts."""

    def __init__(self, pipes: Pipes, start: Start) -> None:
        names = (pipes.scalar, pipes.vector, pipes.load, pipes.store, *pipes.others)
        self.pipes = {name: _Pipe(name, number, [0] * len(names)) for number, name in enumerate(names)}
        self.numbers = {name: pipe.number for name, pipe in self.pipes.items()}
        self.scalar = self.pipes[pipes.scalar]
        self.stuck: tuple[Instance, FlagWait | PipeBarrier] | None = None
        """The flags that the scalar unit itself waits for and that nothing sets."""
        self._start = start
        self._signals: dict[Key, deque[Clock]] = {}
        self._waiting: dict[Key, _Pipe] = {}
        self._issuer: tuple[int, ...] = tuple(self.scalar.known)

    def work(self, instance: Instance, name: str) -> None:
        """Issue the work of an instance to a pipe."""
        self._push(self.pipes[name], None, instance)

    def act(self, instance: Instance, action: FlagSignal | FlagWait | PipeBarrier) -> None:
        """Issue a flag or barrier."""
        if action.pipe in (ALL_PIPES, self.scalar.name):
            self._scalar(instance, action)
        else:
            self._push(self.pipes[action.pipe], action, instance)

    def blocked(self) -> list[tuple[_Pipe, _Queued]]:
        """Return the stalled pipes with the flags that they wait for, in program order."""
        waiting = [(pipe, pipe.queue[0]) for pipe in self.pipes.values() if pipe.queue]
        return sorted(waiting, key=lambda entry: entry[1].instance.number)

    def unfinished(self) -> list[_Pipe]:
        """Return the pipes whose end the scalar unit does not know; it knows its own."""
        others = (pipe for pipe in self.pipes.values() if pipe is not self.scalar)
        return [pipe for pipe in others if self.scalar.known[pipe.number] < pipe.ended]

    def _scalar(self, instance: Instance, action: FlagSignal | FlagWait | PipeBarrier) -> None:
        """Execute an action of the scalar unit; all pipes have advanced as far as they can."""
        scalar = self.scalar
        if isinstance(action, FlagSignal):
            woken = self._signal(scalar, action)
            if woken is not None:
                self._run(woken)
        elif isinstance(action, FlagWait):
            signals = self._signals.get((action.signaller, action.pipe, action.event))
            if signals:
                _join(scalar.known, signals.popleft())
            else:
                self.stuck = (instance, action)
        elif action.pipe != ALL_PIPES:
            return
        elif self.blocked():
            self.stuck = (instance, action)
        else:
            for pipe in self.pipes.values():
                scalar.known[pipe.number] = pipe.ended
        self._issuer = tuple(scalar.known)

    def _push(self, pipe: _Pipe, action: FlagSignal | FlagWait | PipeBarrier | None, instance: Instance) -> None:
        pipe.queue.append(_Queued(action, instance, self._issuer))
        if len(pipe.queue) == 1:
            self._run(pipe)

    def _run(self, pipe: _Pipe) -> None:
        """Advance a pipe until it waits; wake the pipes that it signals."""
        ready = [pipe]
        while ready:
            current = ready.pop()
            while current.queue and self._execute(current, current.queue[0], ready):
                current.queue.popleft()

    def _execute(self, pipe: _Pipe, queued: _Queued, ready: list[_Pipe]) -> bool:
        """Execute the head of a queue; return False if it waits for its flag."""
        _join(pipe.known, queued.issued)
        action = queued.action
        if action is None:
            pipe.ended += 1
            pipe.last = queued.instance
            self._start(queued.instance, pipe.name, pipe.known, pipe.ended)
        elif isinstance(action, FlagSignal):
            woken = self._signal(pipe, action)
            if woken is not None:
                ready.append(woken)
        elif isinstance(action, FlagWait):
            key = (action.signaller, action.pipe, action.event)
            signals = self._signals.get(key)
            if not signals:
                self._waiting[key] = pipe
                return False
            _join(pipe.known, signals.popleft())
        else:
            pipe.known[pipe.number] = pipe.ended
        return True

    def _signal(self, pipe: _Pipe, action: FlagSignal) -> _Pipe | None:
        """Send a signal; return the pipe that was waiting for it."""
        clock = list(pipe.known)
        clock[pipe.number] = pipe.ended
        key = (action.pipe, action.waiter, action.event)
        self._signals.setdefault(key, deque()).append(clock)
        return self._waiting.pop(key, None)


def _join(clock: Clock, other: Clock | tuple[int, ...]) -> None:
    """Merge the clock of another pipe."""
    for number, count in enumerate(other):
        clock[number] = max(clock[number], count)


# Accesses to the same bytes that nothing keeps in order.
#
# Of each access the latest execution per pipe is remembered: whoever waits for it has waited for those before it on
# the same pipe. Global memory that the program only reads, or that one pipe alone touches, is not followed.

_VERBS = {True: "writes", False: "reads"}


@dataclass(frozen=True, slots=True)
class _Record:
    instance: Instance
    touch: Touch
    count: int
    repeats: int = 0
    """Repeats of statements on the vector pipe before it."""


_PAGE, _MOST_PAGES = 512, 128
"""Bytes of a page, and the maximum number of pages under which an access is listed."""


class _Accesses:
    """The latest accesses to one memory, in order of first occurrence; indexed by the pages that they touch."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._records: list[_Record] = []
        self._by_page: dict[int | None, list[int]] = {None: []}  # None: those that may be anywhere

    def put(self, key: object, record: _Record) -> None:
        """Store an access, replacing an earlier one with its key."""
        number = self._numbers.setdefault(key, len(self._records))
        if number < len(self._records):
            self._records[number] = record
            return
        self._records.append(record)
        for page in _pages(record.touch) or (None,):
            self._by_page.setdefault(page, []).append(number)

    def near(self, touch: Touch) -> list[_Record]:
        """Return the accesses that may share bytes with another one."""
        pages = _pages(touch)
        if pages is None:
            return list(self._records)
        numbers = {number for page in (None, *pages) for number in self._by_page.get(page, ())}
        return [self._records[number] for number in sorted(numbers)]


def _pages(touch: Touch) -> range | None:
    """Return the pages that an access touches, None where a loop moves it or there are many."""
    first, last = touch.access.start // _PAGE, touch.access.end // _PAGE
    return None if any(touch.steps) or last - first >= _MOST_PAGES else range(first, last + 1)


class Conflicts:
    """The latest accesses and the conflicts; `numbers` are the positions of the pipes in a clock."""

    def __init__(self, tree: Tree, target: DataflowTarget, numbers: Mapping[str, int]) -> None:
        self._instructions = tree.instructions
        self._vector = target.pipes.vector
        self._required = target.synchronisation.required_barriers
        self._unordered = target.synchronisation.unordered_bytes
        self._numbers = numbers
        self._told: set[tuple[int, int, RaceKind]] = set()
        self._repeats = 0
        self._latest = {space: _Accesses() for space in contended_spaces(tree.root, tree.instructions, self._vector)}

    def start(self, instance: Instance, pipe: str, clock: Clock, count: int) -> Iterator[RaceFinding]:
        """Process an execution that starts on `pipe` as number `count`; yield its unordered earlier accesses."""
        followed = [touch for touch in instance.touches if touch.access.space in self._latest]
        for touch in followed:
            for record in self._latest[touch.access.space].near(touch):
                hazard = hazard_between(record.touch.access, touch.access)
                if hazard is None or clock[self._numbers[record.touch.pipe]] >= record.count:
                    continue
                if record.touch.pipe == pipe and (
                    pipe != self._vector or hazard not in self._required or self._follows(record, instance, touch)
                ):
                    continue
                yield from self._compare(record, instance, touch, hazard)
        for touch in followed:
            self._latest[touch.access.space].put(_key(instance, touch), _Record(instance, touch, count, self._repeats))
        if self._is_statement(instance):
            self._repeats += _repeats(instance)

    def _is_statement(self, instance: Instance) -> bool:
        """Return whether an execution is one of a `pto.strided` statement."""
        return self._instructions[instance.lowered.instruction].mnemonic in STRIDED_ROWS

    def _follows(self, record: _Record, instance: Instance, touch: Touch) -> bool:
        """Return whether a vector instruction may follow closely: it reads exactly the written bytes, and many."""
        wrote = record.touch
        if self._unordered is not None and wrote.access.write and self._is_statement(record.instance):
            # Statements are parts of what a tile operation issues: the same limit holds for each of their repeats.
            since = self._repeats - record.repeats
            return self._is_statement(instance) and _trails(record, instance, touch, since, self._unordered // REPEAT)
        start, end = wrote.access.start, wrote.access.end
        if self._unordered is None or not wrote.access.write or wrote.access.runs or end - start < self._unordered:
            return False
        if (touch.access.start, touch.access.end) != (start, end) or not _move_alike(record, instance, touch):
            return False
        return any(
            (touch_before.access.space, touch_before.access.start, touch_before.access.end)
            == (wrote.access.space, start, end)
            and not (touch_before.access.write or touch_before.access.runs)
            and touch_before.steps == touch.steps
            for touch_before in instance.touches
        )

    def _compare(self, record: _Record, instance: Instance, touch: Touch, hazard: Hazard) -> Iterator[RaceFinding]:
        """Compare bytes with an access that may not have ended."""
        kind = RaceKind.MISSING_BARRIER if record.touch.pipe == touch.pipe else RaceKind.RACE
        pair = (record.instance.lowered.instruction, instance.lowered.instruction, kind)
        if pair in self._told:
            return
        meeting = _meet(record, instance, touch)
        if meeting is not None:
            self._told.add(pair)
            yield self._finding(record, instance, touch, (kind, hazard, RaceRegion(touch.access.space, *meeting)))

    def _finding(
        self, record: _Record, instance: Instance, touch: Touch, what: tuple[RaceKind, Hazard, RaceRegion]
    ) -> RaceFinding:
        kind, hazard, region = what
        first = self._instructions[record.instance.lowered.instruction]
        second = self._instructions[instance.lowered.instruction]
        verb = "write" if record.touch.access.write else "read"
        message = (
            f"{second.text} ({second.span}) on {touch.pipe} {_VERBS[touch.access.write]} {region} while {first.text} "
            f"({first.span}) on {record.touch.pipe}{_when(record.instance, instance)} may still {verb} them ({hazard})"
        )
        pipes = (record.touch.pipe, touch.pipe)
        spans = (first.span, second.span)
        return RaceFinding(kind, message, spans, pipes, region, self._missing(first, second, pipes))

    def _missing(self, first: Instruction, second: Instruction, pipes: tuple[str, str]) -> str:
        former, other = pipes
        if former == other:
            return f"barrier {former} before line {second.span.line}"
        return (
            f"set_flag {former} -> {other} after line {first.span.line} and wait_flag {former} -> {other} before line "
            f"{second.span.line}, or a barrier on all pipes"
        )


def _move_alike(record: _Record, instance: Instance, touch: Touch) -> bool:
    """Whether no loop moves two accesses apart: none moves either, or they are in the same trip and move together."""
    if not any(record.touch.steps) and not any(touch.steps):
        return True
    return record.touch.steps == touch.steps and record.instance.path == instance.path


def _when(first: Instance, second: Instance) -> str:
    """Return in words in which trip the first of two executions is, relative to the second."""
    for mine, theirs in zip(first.path, second.path, strict=False):
        if mine.entry != theirs.entry:
            break
        if mine.slot != theirs.slot:
            return " of an earlier trip"
    return ""


def _meet(record: _Record, instance: Instance, touch: Touch) -> Bytes | None:
    """Return the bytes that both touch; the program order determines the movement by loops."""
    if not any(record.touch.steps) and not any(touch.steps):
        return common_bytes(record.touch.access, touch.access)
    if record.instance.number <= instance.number:
        shift, moves = distance(record.instance, record.touch, instance, touch)
        return common_bytes(record.touch.access, touch.access, shift, moves)
    shift, moves = distance(instance, touch, record.instance, record.touch)
    return common_bytes(touch.access, record.touch.access, shift, moves)


def _repeats(instance: Instance) -> int:
    """Return the repeats of a statement."""
    return sum(getattr(operation, "repeats", 0) for operation in instance.lowered.body.items)


def _trails(record: _Record, instance: Instance, touch: Touch, since: int, least: int) -> bool:
    """Return whether a statement reaches each byte that an earlier one wrote at least so many repeats later.

    `since` are the repeats from the beginning of the earlier one to that of this one.
    """
    first, behind = _rows(record.touch.access, _repeats(record.instance))
    start, end = _rows(touch.access, _repeats(instance))
    last = np.searchsorted(first, end) - 1
    meets = (last >= 0) & (behind[last] > start)
    return bool(np.all((since - last + np.arange(len(start)))[meets] >= least))


def _rows(access: Access, repeats: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first byte and the end of each repeat of a statement."""
    size, numbers = access.end - access.start, np.arange(max(repeats, 1))
    if access.runs and access.runs[0][0] == repeats:
        starts = access.start + numbers * access.runs[0][1]
        return starts, starts + size - (repeats - 1) * access.runs[0][1]
    edges = access.start + size * np.arange(len(numbers) + 1) // len(numbers)
    return edges[:-1], edges[1:]


def _key(instance: Instance, touch: Touch) -> object:
    """Return the key that identifies an access: if loops move it, including the trip."""
    return (touch, instance.path) if any(touch.steps) else touch


# Bytes of on-chip buffers that are read before anything has written them.
#
# Reads are looked at in the trips that are followed, writes count in all trips that these stand for.

_PLACES = 65536
"""Maximum number of byte stretches per access; a larger access counts as one piece."""


class WrittenBytes:
    """The bytes written so far, per buffer; `capacities` are their sizes in bytes."""

    def __init__(self, capacities: Mapping[str, int], instructions: Sequence[Instruction]) -> None:
        self._written = {name: np.zeros(size, bool) for name, size in capacities.items()}
        self._instructions = instructions
        self._told: set[int] = set()
        self._settled: set[Touch] = set()
        """Touches without loop movement whose bytes are all written."""

    def execute(self, instance: Instance) -> Iterator[RaceFinding]:
        """Process the next execution in program order; yield its reads of unwritten bytes."""
        own = scratch_reads(instance.lowered.accesses)
        for number, touch in enumerate(instance.touches):
            written = self._written.get(touch.access.space)
            if written is None or touch.access.write or number in own or instance.lowered.instruction in self._told:
                continue
            if touch in self._settled:
                continue
            gap = self._gap(instance, touch, written)
            if gap is None:
                self._settle(touch)
            else:
                self._told.add(instance.lowered.instruction)
                yield self._finding(instance, RaceRegion(touch.access.space, *gap))
        for touch in instance.touches:
            written = self._written.get(touch.access.space)
            if written is not None and touch.access.write and touch not in self._settled:
                self._settle(touch)
                for start, end in _stretches(touch.access, _moves(instance, touch, all_trips=True)):
                    written[max(0, start) : end] = True
                for start, end in _whole_tiles(instance):
                    written[max(0, start) : end] = True

    def _settle(self, touch: Touch) -> None:
        if not any(touch.steps):
            self._settled.add(touch)

    def _gap(self, instance: Instance, touch: Touch, written: NDArray[np.bool_]) -> Bytes | None:
        for start, end in _stretches(touch.access, _moves(instance, touch, all_trips=False)):
            flags = written[max(0, start) : end]
            if not flags.all():
                first = int(np.argmin(flags))
                rest = np.flatnonzero(flags[first:])
                length = int(rest[0]) if rest.size else flags.size - first
                return start + first, start + first + length
        return None

    def _finding(self, instance: Instance, region: RaceRegion) -> RaceFinding:
        instruction = self._instructions[instance.lowered.instruction]
        message = (
            f"{instruction.text} ({instruction.span}) on {instruction.pipe} reads {region} before anything writes them"
        )
        return RaceFinding(RaceKind.UNWRITTEN, message, (instruction.span,), (instruction.pipe,), region)


def _whole_tiles(instance: Instance) -> Iterator[Bytes]:
    """Yield the tiles whose elements the scalar unit writes: such a tile counts as written (docs/reference/pto.md
    section 7.9)."""
    for operation in instance.lowered.body.items:
        if isinstance(operation, ScalarElementAccess) and operation.code and operation.tile_bytes is not None:
            yield operation.tile_bytes


def _moves(instance: Instance, touch: Touch, *, all_trips: bool) -> list[Sequence[int]]:
    """Return the byte movement of an access per loop: in the followed trip, or in all that it represents."""
    moves: list[Sequence[int]] = []
    for turn, step in zip(instance.path, touch.steps, strict=True):
        last = all_trips and not turn.exact and turn.slot == SLOTS - 1
        trips = range(turn.slot, turn.trips if last else turn.slot + 1)
        if step:
            moves.append(range(trips.start * step, trips.stop * step, step))
    return moves


def _stretches(access: Access, moves: Sequence[Sequence[int]]) -> Iterator[Bytes]:
    """Yield the stretches without gaps of an access moved by every combination of `moves`."""
    distances = [*moves, *(range(0, count * distance, distance) for count, distance in access.runs)]
    places = 1
    for distance_range in distances:
        places *= len(distance_range)
    if places > _PLACES:
        reach = [sorted((move_range[0], move_range[-1])) for move_range in moves]
        yield access.start + sum(low for low, _ in reach), access.end + sum(high for _, high in reach)
        return
    length = run_length(access)
    for offsets in product(*distances):
        start = access.start + sum(offsets)
        yield start, start + length


Action = FlagSignal | FlagWait | PipeBarrier


def find_races(tree: Tree, target: DataflowTarget, *, unwritten: bool = True) -> tuple[RaceFinding, ...]:
    """Return all violations of the order of a program, deadlocks first.

    An interlocked tree has no races by definition; only reads of unwritten bytes are reported, on request
    (`unwritten`).
    """
    return _Detector(tree, target, unwritten).run()


@dataclass(frozen=True, slots=True)
class _Profile:
    """The effect of an instruction's operations on the order: actions before and after its work, control writes."""

    before: tuple[Action, ...]
    works: bool
    behind: tuple[Action, ...]
    early_control: tuple[str, ...]
    late_control: tuple[str, ...]


def _profile(body: Block) -> _Profile:
    before: list[Action] = []
    behind: list[Action] = []
    control: tuple[list[str], list[str]] = ([], [])
    works = False
    for operation in elements(body):
        match operation:
            case FlagSignal() | FlagWait() | PipeBarrier():
                (behind if works else before).append(operation)
            case ControlWrite(register):
                control[works].append(register)
            case ScalarWork() | Lowered():
                pass
            case _:
                works = True
                # Barriers between the steps of an instruction order nothing outside it.
                behind.clear()
    return _Profile(tuple(before), works, tuple(behind), tuple(control[False]), tuple(control[True]))


@dataclass(slots=True)
class _FlagUse:
    """The numbers of sets and waits of a flag in program order, and the places of the last ones."""

    pending: int = 0
    sets: int = 0
    waits: int = 0
    set_at: Span | None = None


@dataclass(slots=True)
class _Detector:
    tree: Tree
    target: DataflowTarget
    unwritten: bool
    findings: dict[tuple[RaceKind, str], RaceFinding] = field(default_factory=dict)
    flags: dict[Key, _FlagUse] = field(default_factory=dict)
    profiles: dict[int, _Profile] = field(default_factory=dict)
    clocks: Clocks = field(init=False)
    conflicts: Conflicts = field(init=False)

    def __post_init__(self) -> None:
        self.clocks = Clocks(self.target.pipes, self._start)
        self.conflicts = Conflicts(self.tree, self.target, self.clocks.numbers)

    def run(self) -> tuple[RaceFinding, ...]:
        capacities = {name: memory.capacity_bytes for name, memory in self.target.memories.items()}
        written = WrittenBytes(capacities, self.tree.instructions)
        is_checked = self.unwritten
        for instance in unfold(self.tree.root, self.tree.instructions):
            # An opaque instruction may have written anything: from there on nothing is known of the bytes.
            is_checked = is_checked and self._instruction(instance).role is not InstructionRole.OPAQUE
            if is_checked:
                self._tell(written.execute(instance))
            if not self.tree.interlocked:
                self._issue(instance)
        if not self.tree.interlocked:
            self._close()
        order = list(RaceKind)
        return tuple(sorted(self.findings.values(), key=lambda finding: order.index(finding.kind)))

    # -------------------------------------------------------------------------------------------- program order

    def _issue(self, instance: Instance) -> None:
        body = instance.lowered.body
        profile = self.profiles.get(id(body))
        if profile is None:
            profile = self.profiles[id(body)] = _profile(body)
        self._control(instance, profile.early_control)
        for action in profile.before:
            self._act(instance, action)
        pipe, accesses = self._instruction(instance).pipe, bool(instance.lowered.accesses)
        # What is opaque and touches nothing that is known stands on its pipe for the time alone.
        works = profile.works and (accesses or self._instruction(instance).role is not InstructionRole.OPAQUE)
        on_scalars = pipe == self.target.pipes.scalar and accesses
        if (works or on_scalars) and self.clocks.stuck is None:
            self.clocks.work(instance, pipe)
        self._control(instance, profile.late_control)
        for action in profile.behind:
            self._act(instance, action)

    def _act(self, instance: Instance, action: Action) -> None:
        """Count flags in program order, also after an unreachable place."""
        if isinstance(action, FlagSignal):
            use = self.flags.setdefault((action.pipe, action.waiter, action.event), _FlagUse())
            use.sets += 1
            use.pending += 1
            if use.pending > 1:
                self._tell([self._pending(instance, action, use)])
            use.set_at = self._span(instance)
        elif isinstance(action, FlagWait):
            use = self.flags.setdefault((action.signaller, action.pipe, action.event), _FlagUse())
            use.waits += 1
            use.pending -= 1
        if self.clocks.stuck is None:
            self.clocks.act(instance, action)

    def _start(self, instance: Instance, pipe: str, clock: Clock, count: int) -> None:
        self._tell(self.conflicts.start(instance, pipe, clock, count))

    def _control(self, instance: Instance, registers: tuple[str, ...]) -> None:
        """Look whether vector instructions may still run that do not hold the control state themselves."""
        captured = self.target.synchronisation.captured_control
        changed = [register for register in registers if register not in captured]
        vector = self.clocks.pipes[self.target.pipes.vector]
        if not changed or vector not in self.clocks.unfinished() or vector.last is None:
            return
        running, writer = self._instruction(vector.last), self._instruction(instance)
        message = (
            f"{writer.text} ({writer.span}) changes {changed[0]} while {running.text} ({running.span}) "
            f"on {vector.name} may still read it"
        )
        self._tell(
            [RaceFinding(RaceKind.CONTROL, message, (running.span, writer.span), (vector.name,), missing="barrier ALL")]
        )

    # ------------------------------------------------------------------------------------------------- the end

    def _close(self) -> None:
        """Check the remaining state after everything was issued."""
        blocked = [(pipe.name, head.instance, head.action) for pipe, head in self.clocks.blocked()]
        if self.clocks.stuck is not None:
            blocked.append((self.clocks.scalar.name, *self.clocks.stuck))
        if blocked:
            self._tell([self._deadlock(blocked)])
        for key, use in self.flags.items():
            if use.sets > use.waits and use.set_at is not None:
                self._tell([_left(key, use.set_at)])
        if not blocked:
            self._tell(self._unfinished())

    def _unfinished(self) -> Iterable[RaceFinding]:
        last = [(pipe.name, self._instruction(pipe.last)) for pipe in self.clocks.unfinished() if pipe.last is not None]
        if last:
            running = ", ".join(
                f"{running_instruction.text} ({running_instruction.span}) on {name}"
                for name, running_instruction in last
            )
            message = f"the function ends while this may still be running: {running}"
            spans = tuple(
                sorted(
                    (running_instruction.span for _, running_instruction in last),
                    key=lambda span: (span.line, span.column),
                )
            )
            missing = "barrier ALL at the end of the function"
            yield RaceFinding(RaceKind.UNFINISHED, message, spans, tuple(name for name, _ in last), missing=missing)

    def _deadlock(self, blocked: list[tuple[str, Instance, Action | None]]) -> RaceFinding:
        reasons = []
        for name, instance, action in blocked:
            location = self._span(instance)
            if isinstance(action, FlagWait):
                flag = f"flag {action.signaller} -> {action.pipe} id {action.event} ({location})"
                reasons.append(f"{name} waits for {flag}, {self._signal(action)}")
            else:
                reasons.append(f"{name} waits for all pipes to drain ({location})")
        spans = tuple(self._span(instance) for _, instance, _ in reversed(blocked))
        return RaceFinding(RaceKind.DEADLOCK, "; ".join(reasons), spans, tuple(name for name, _, _ in blocked))

    def _signal(self, action: FlagWait) -> str:
        """Describe the fate of a signal that is waited for and never set."""
        use = self.flags[action.signaller, action.pipe, action.event]
        if use.sets >= use.waits:
            return f"set after what {action.signaller} waits for"
        return "which nothing sets again" if use.sets else "which nothing sets"

    def _pending(self, instance: Instance, action: FlagSignal, use: _FlagUse) -> RaceFinding:
        here = self._span(instance)
        before = use.set_at or here
        message = (
            f"set_flag {action.pipe} -> {action.waiter} id {action.event} ({here}) sets the flag again before "
            f"anything waits for the previous one ({before})"
        )
        missing = f"wait_flag {action.pipe} -> {action.waiter} id {action.event} between the two, or another id"
        return RaceFinding(
            RaceKind.PENDING_TWICE, message, (before, here), (action.pipe, action.waiter), missing=missing
        )

    def _instruction(self, instance: Instance) -> Instruction:
        return self.tree.instructions[instance.lowered.instruction]

    def _span(self, instance: Instance) -> Span:
        return self._instruction(instance).span

    def _tell(self, findings: Iterable[RaceFinding]) -> None:
        """Store each finding once, however many trips have it."""
        for finding in findings:
            self.findings.setdefault((finding.kind, finding.message), finding)


def _left(key: Key, span: Span) -> RaceFinding:
    signaller, waiter, event = key
    flag = f"{signaller} -> {waiter} id {event}"
    message = f"set_flag {flag} ({span}) is never waited for"
    return RaceFinding(RaceKind.UNMATCHED, message, (span,), (signaller, waiter), missing=f"wait_flag {flag}")
