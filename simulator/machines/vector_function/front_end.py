"""The front end of a launch: how its loops and trips send instructions to the board, and when the launch ends.

One rule for both engines and for the closed forms. Source: docs/reference/micro.md 6.2, 6.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple

from castsim.execution.timing import Cause
from castsim.execution.transfer_timing import TICKS, ticks
from castsim.machines.vector_function.function_timing import (
    branch_rest,
    busy_of_hold,
    function_end,
    head_penalty,
    row_turn,
)
from castsim.machines.vector_function.instruction_scoreboard import Board, PortSpans, ScopeTiming
from castsim.machines.vector_function.launched_scope import (
    Item,
    RecordedLoop,
    Scope,
    ScopeFacts,
    ScopeIssue,
    TimingKind,
    issues,
)
from castsim.targets.vector_function import VectorFunctionTarget


def issue_ticks(loads: int, lines: int, stores: int, target: VectorFunctionTarget) -> int:
    """Return the ticks for which a trip's accesses occupy the front end; the queue limits trips that only store.

    A cycle issues two loads, or a load and a store (docs/reference/a5.md section 1). `lines` of the loads fill a
    register each; every two of them take as long as those of a kernel with two, whose trips wait in the memory path
    (timing.memory_floor).
    """
    timing = target.timing
    per_cycle = timing.loads.per_cycle
    if not loads:
        return 0
    alone = max(-(-loads // per_cycle) * TICKS, stores * ticks(timing.port.store_cycles))
    if loads <= 2 or not stores:
        return alone
    together = (loads + stores) * TICKS // per_cycle
    pairs = lines // 2 if lines > 2 else 0
    return max(alone, together, pairs * ticks(timing.memory_floor["two_loads"].trip_cycles))


HEAD_FACTS = ("timing.unpack_head", "timing.store_barrier")
"""The facts behind the start of a kernel with an unpacking load."""


def head_of(target: VectorFunctionTarget, source_bytes: int) -> int:
    """Return the ticks by which an unpacking load delays the start of a 1D kernel, by source bytes; also for arrays.

    Source: docs/reference/a5.md section 6.2, rule 9.
    """
    facts, wait = target.timing.unpack_head, ticks(target.timing.store_barrier.cycles)
    return head_penalty(source_bytes, facts.waits, wait, facts.line_bytes, facts.step_bytes, facts.bank_bit)


Part = tuple[int, int]
"""A line, and the ticks up to which a trip's time belongs to it."""


class TripWork:
    """The work of one trip: `hold` are the ticks for which it occupies the front end.

    `loop` is the trip's own, which may set a minimum time between trips. `fed` are the kinds of instructions in a trip
    of the loop around it, which may load for trips that do not.
    """

    def __init__(
        self,
        trip: Sequence[Item],
        facts: ScopeFacts,
        loop: RecordedLoop | None = None,
        fed: Set[TimingKind] = frozenset(),
    ) -> None:
        full, others, per_cycle = 0, 0, facts.target.timing.loads.per_cycle
        copies = False
        loads: list[int] = []
        stores: list[int] = []
        serial: list[Part] = []
        for item in trip:
            if not isinstance(item, ScopeIssue):
                continue
            instruction = item.instruction
            alone = facts.alone(instruction)
            match instruction.kind:
                case TimingKind.LOAD:
                    copies = copies or bool(stores)
                    loads += [instruction.line] * (1 if alone is None else alone * per_cycle)
                    full += instruction.size >= facts.target.registers.register_bytes
                case TimingKind.STORE:
                    stores += [instruction.line] * (alone or 1)
                case TimingKind.COMPUTE if duration := facts.cost(instruction).serial:
                    serial.append((instruction.line, duration))
                case TimingKind.COMPUTE:
                    others += TICKS * facts.cost(instruction).held
        self.hold = sum(occupancy for _, occupancy in serial)
        self.serial_bound = bool(serial) and others <= self.hold and not copies
        """Whether the bound is that of the instructions for the first port alone, while others have room on the second.

        If a load follows a store, trips are unrolled: converts of a later trip do not wait for an earlier one.
        """
        self._lines = serial
        issue = issue_ticks(max(len(loads), TimingKind.LOAD in fed), full, len(stores), facts.target)
        self.expands = TimingKind.LOAD in fed and bool(stores) and not (loads or serial or others)
        if self.expands and TimingKind.COMPUTE in fed:
            issue = len(stores) * ticks(facts.target.timing.micro.expansions.computed_store_cycles)
        if issue > self.hold and (loads or stores):
            self.hold, self.serial_bound = issue, False
            lines = loads if len(loads) >= len(stores) else stores
            self._lines = [(line, self.hold // len(lines)) for line in lines]
        if loop is not None and loop.hold > self.hold:
            self.hold = loop.hold
            self._lines = self._lines or [(loop.line, 0)]

    def parts(self) -> Sequence[Part]:
        """Return the shares of the lines that determine the hold, in their order."""
        ends = list(accumulate(duration for _, duration in self._lines))
        ends[-1:] = [self.hold] * bool(ends)
        return [(line, end) for (line, _), end in zip(self._lines, ends, strict=True)]


def time_scope(
    scope: Scope, target: VectorFunctionTarget, heard: Callable[[int], None] = lambda _: None
) -> ScopeTiming:
    """Time one launch; the target must have a latency for every computing instruction.

    `heard` receives, for each instruction in program order, the cycle of the launch in which the front end sends it.
    """
    return _FrontEnd(ScopeFacts(target), scope, heard).run()


class EarlyEnd(NamedTuple):
    """A launch that ends with a trip of its loop: its cycles, also by cause, and whether a store of that trip waited.

    If none waited, a last trip that stores fewer bytes takes the same time.
    """

    cycles: int
    causes: Mapping[Cause, int]
    waited: bool


def time_trips(scope: Scope, target: VectorFunctionTarget) -> Sequence[EarlyEnd]:
    """Time a launch of one loop as if it ended with its second trip, its third, and so on up to the last."""
    front = _FrontEnd(ScopeFacts(target), scope, lambda _: None)
    front.ends = []
    front.run()
    return front.ends


class _FrontEnd:
    """One launch."""

    def __init__(self, facts: ScopeFacts, scope: Scope, heard: Callable[[int], None]) -> None:
        self._facts = facts
        self._heard = heard
        self._scope = scope
        self._account = PortSpans()
        readers = Counter(name for issue in issues(scope.body) for name in set(issue.reads))
        self._board = Board(facts, dict(readers), self._account)
        self._repeats = 0
        """Loops around this place that the front end turns."""
        self._fed: Set[TimingKind] = frozenset()  # kinds of instructions in the trip of the loop around this place
        self._opened = False
        """Whether an outermost loop has begun."""
        self.ends: list[EarlyEnd] | None = None
        """The results for `time_trips`."""

    def run(self) -> ScopeTiming:
        """Walk the scope and settle when it ends."""
        function, account, board = self._facts.function, self._account, self._board
        account.spend(Cause.FILL, function.startup)
        self._begun = account.now
        if any(isinstance(item, RecordedLoop) and _repeats(item) for item in self._scope.body):
            account.spend(Cause.LOOP_TURNAROUND, account.now + function.setup)
        board.begin_trip()
        straight = _straight(self._scope.body)
        board.serial_bound = TripWork(straight, self._facts).serial_bound
        self._head(straight)
        self._updates(straight)
        self._walk(self._scope.body)
        return self._end()

    def _end(self) -> ScopeTiming:
        """Decide when the launch ends if nothing follows."""
        function, board, account = self._facts.function, self._board, self._account
        account = PortSpans(account.now, [*account.spans], account.uses)
        if self._only_stores:  # nobody waits until the last has completed (docs/reference/micro.md 6.2)
            cycles = function_end(board.stored, account.now, 0)
        else:
            cycles = function_end(max(board.completed, board.serving), account.now, function.drain)
        store = board.held
        for cause, wait in (
            (Cause.PORT, store.port),
            (Cause.MEMORY_BANDWIDTH, store.path),
            (Cause.STORE_BARRIER, store.barrier),
            (Cause.BANK_CONFLICT, store.buffer),
        ):
            before = account.spans[-1].until if account.spans else 0
            account.settle(cause, min(cycles, before + wait // TICKS), store.line)
        for (line, _), (_, start) in pairwise(store.chain):
            account.settle(Cause.DRAIN, min(cycles, start // TICKS), line)
        account.settle(Cause.DRAIN, min(cycles, board.completed // TICKS), store.line)
        account.settle(Cause.DRAIN, cycles)
        facts = frozenset(board.used | self._scope.facts)
        words = () if self.ends is not None else board.groups.words
        return ScopeTiming(cycles, tuple(account.spans), facts, dict(account.uses), words)

    @cached_property
    def _only_stores(self) -> bool:
        """Whether loops only store constants: no compute instruction reads a register made in a loop."""
        body = self._scope.body
        loops = [item for item in body if isinstance(item, RecordedLoop) and _repeats(item)]
        computed = {name for issue in issues(loops) for name in issue.writes if not issue.instruction.masks}
        kinds = {issue.instruction.kind for issue in issues(body)}
        varying = any(
            issue.instruction.kind is TimingKind.COMPUTE and not computed.isdisjoint(issue.reads)
            for issue in issues(loops)
        )
        return bool(loops) and TimingKind.LOAD not in kinds and not varying

    # ---------------------------------------------------------------------------------------------------------- loops

    def _walk(self, items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, RecordedLoop):
                self._loop(item)
            else:
                self._board.step(item)
                self._heard(self._account.now // TICKS)

    def _loop(self, loop: RecordedLoop) -> None:
        """Walk a loop; a single trip does not count as a loop."""
        repeats = loop.repeats
        outermost = not self._repeats
        if outermost and repeats:
            self._open(loop)
        if loop.lead:
            self._account.spend(Cause.LOOP_TURNAROUND, self._account.now + loop.lead, loop.line)
        self._repeats += repeats
        innermost = loop.innermost
        branches = self._branches(loop) if len(loop.trips) > 1 and innermost else 0
        if branches:
            self._branch(branches)
        for number, trip in enumerate(loop.trips):
            if innermost:
                self._trip(loop, trip, repeats=repeats, branches=branches)
                if outermost and number:
                    self._note_end()
                continue
            self._fed = {item.instruction.kind for item in trip if isinstance(item, ScopeIssue)}
            if number:
                self._turn(trip, loop.line)
            self._walk(trip)
            if outermost and repeats and number:
                self._note_end()
        self._fed = self._fed if innermost else frozenset()
        self._repeats -= repeats
        if outermost and repeats:
            self._begun = self._account.now
            self._board.path_hold, self._board.path_opened = 0, None
            self._board.begin_trip()

    def _note_end(self) -> None:
        if self.ends is not None:
            timing = self._end()
            self.ends.append(EarlyEnd(timing.cycles, timing.causes, self._board.waited))

    def _open(self, loop: RecordedLoop) -> None:
        """Set up an outermost loop: the cost of a nest before its first trip, and the memory path of its lines."""
        facts, account, board = self._facts, self._account, self._board
        timing = facts.target.timing
        if not loop.innermost:
            account.spend(Cause.LOOP_TURNAROUND, account.now + facts.function.row_loop, loop.line)
        else:
            self._head([item for trip in loop.trips for item in trip if isinstance(item, ScopeIssue)])
        self._updates(_first_trips(loop))
        inner = _innermost(loop)
        instructions = [issue.instruction for issue in inner.trips[0] if isinstance(issue, ScopeIssue)]
        lines = sum(instruction.kind is TimingKind.LOAD and not instruction.masks for instruction in instructions)
        stores = any(instruction.kind is TimingKind.STORE for instruction in instructions)
        hold, opened = 0, None
        if stores and lines == 2:
            floor = timing.memory_floor["two_loads"]
            around = timing.launch.startup_cycles + timing.access.store_cycles + timing.launch.drain_cycles
            # The launch hides nothing of the first line of a later loop.
            ahead = facts.function.load_use if self._opened else ticks(floor.start_cycles - around)
            hold, opened = ticks(floor.trip_cycles), self._begun + ahead
            board.used.add("timing.memory_floor.two_loads")
        elif stores and lines == 1 and not loop.innermost and len(inner.trips) > 1:
            hold = ticks(timing.memory_path.trip_cycles)
            board.used.add("timing.memory_path")
        board.path_hold, board.path_opened = hold, opened
        self._opened = True

    def _updates(self, issued: Sequence[ScopeIssue]) -> None:
        """Return whether loads update their addresses, which takes longer to set up."""
        updating = [issue.instruction for issue in issued if issue.instruction.updates]
        if updating:
            self._board.used.add("timing.loads")
            delay = len(updating) * ticks(self._facts.target.timing.loads.post_update_cycles)
            self._account.spend(Cause.LOOP_TURNAROUND, self._account.now + delay, updating[0].line)

    def _head(self, issued: Sequence[ScopeIssue]) -> None:
        """Unpacking loads outside of nested loops delay the start."""
        loads = [issue for issue in issued if issue.instruction.unpacks]
        if loads:
            self._board.used.update(HEAD_FACTS)
            begin = min(issue.address for issue in loads)
            end = max(issue.address + (issue.rows[2] if issue.rows else issue.instruction.size) for issue in loads)
            delay = head_of(self._facts.target, end - begin)
            line = loads[0].instruction.line
            self._account.spend(Cause.BANK_CONFLICT, self._account.now + delay, line)

    def _turn(self, trip: Sequence[Item], line: int) -> None:
        """Go to the next row of a nest: its inner loop starts over."""
        inner = next((_innermost(item) for item in trip if isinstance(item, RecordedLoop)), None)
        if inner is None or not inner.repeats or (len(inner.trips) > 1 and self._branches(inner)):
            return
        loops, work = self._facts.target.timing.loops, TripWork(inner.trips[0], self._facts, inner, self._fed)
        between = row_turn(ticks(loops.turnaround_cycles), ticks(loops.turnaround_hidden_cycles), work.hold)
        if work.expands:
            between += ticks(self._facts.target.timing.micro.expansions.turn_cycles)
            self._board.used.add("timing.micro.expansions")
        self._account.spend(Cause.LOOP_TURNAROUND, self._account.now + between, line)

    # ---------------------------------------------------------------------------------------------------------- trips

    def _trip(self, loop: RecordedLoop, trip: Sequence[Item], *, repeats: bool, branches: int) -> None:
        """Send a trip; the front end is free for the next when its converts, loads and stores have been.

        `branches` is the line of its branch, 0 if there is none.
        """
        account, board = self._account, self._board
        if branches:
            self._branch(branches)
        begun = account.now
        hold = 0
        parts: Sequence[Part] = ()
        if repeats or self._repeats or loop.hold:
            board.begin_trip()
            work = TripWork(trip, self._facts, loop, self._fed)
            hold, parts = work.hold, work.parts()
            board.serial_bound = work.serial_bound
        board.holding = [(line, begun + until) for line, until in parts]
        if branches:  # its stores leave behind the branch
            board.released = begun + hold + branch_rest(self._facts.function.branch, hold)
        self._walk(trip)
        board.holding = ()
        for line, until in parts:
            account.spend(Cause.BUSY, begun + min(until, busy_of_hold(hold)), line)
            account.spend(Cause.INITIATION_INTERVAL, begun + until, line)
        if branches:
            rest = branch_rest(self._facts.function.branch, hold)
            account.spend(Cause.SERIALISING_BRANCH, account.now + rest, branches)

    def _branch(self, line: int) -> None:
        account = self._account
        account.spend(Cause.SERIALISING_BRANCH, account.now + self._facts.function.branch, line)

    def _branches(self, loop: RecordedLoop) -> int:
        """Return the line of the first scalar select or branch of a loop, its own if that has none; 0: no branch."""
        for item in loop.trips[0]:
            if isinstance(item, ScopeIssue) and item.instruction.kind is TimingKind.SELECT:
                self._board.used.add("timing.branch")
                return item.instruction.line or loop.line or _NOWHERE
        return 0


_NOWHERE = -1
"""The line number of a branch without a line in the text."""


def _repeats(loop: RecordedLoop) -> bool:
    """Return whether it, or an inner loop, is turned by the front end."""
    return loop.repeats or any(
        isinstance(item, RecordedLoop) and _repeats(item) for trip in loop.trips for item in trip
    )


def _innermost(loop: RecordedLoop) -> RecordedLoop:
    """Return the first loop inside that has no other."""
    for item in loop.trips[0]:
        if isinstance(item, RecordedLoop):
            return _innermost(item)
    return loop


def _first_trips(loop: RecordedLoop) -> list[ScopeIssue]:
    """Return the instructions of a loop's first trip, including the first trips of nested loops."""
    trips: list[ScopeIssue] = []
    for item in loop.trips[0]:
        trips += _first_trips(item) if isinstance(item, RecordedLoop) else [item]
    return trips


def _straight(items: Sequence[Item]) -> list[ScopeIssue]:
    """Return the items, including those of nested loops with a single trip."""
    straight: list[ScopeIssue] = []
    for item in items:
        if isinstance(item, ScopeIssue):
            straight.append(item)
        elif len(item.trips) == 1:
            straight += _straight(item.trips[0])
    return straight
