"""Launches of vector functions: operations of the vector pipe, their time, and the attribution of their cycles."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

from castsim.execution.pipe_operations import BLOCK, Unaddressed
from castsim.execution.timing import Cause, Timing, repeated
from castsim.execution.transfer_timing import TICKS, ticks
from castsim.execution.tree import Instruction, Lowered, Tree, elements, instances, operations
from castsim.isa.dataclass import dataclass, field, fields, replace
from castsim.isa.errors import IllegalError
from castsim.isa.pto.value_types import MicroOperation
from castsim.machines.mechanisms import InstructionLaunches, LaunchSlice, LineLaunches, LineWait
from castsim.machines.vector_function.function_operations import (
    INTEGER_DIVISION,
    LONG_DIVISION,
    Nest,
    VectorFunction,
    computes,
    distribution_in,
    formats_of,
    is_load,
    mnemonic,
    number_of,
    of_every_trip,
    width_of,
)
from castsim.machines.vector_function.function_timing import (
    branch_rest,
    busy_of_hold,
    bytes_of_row,
    function_end,
    row_turn,
)
from castsim.machines.vector_function.instruction_scoreboard import Board, PortSpans, ScopeTiming
from castsim.machines.vector_function.launched_scope import (
    Item,
    RecordedLoop,
    Scope,
    ScopeFacts,
    ScopeInstruction,
    ScopeIssue,
    TimingKind,
    issues,
)
from castsim.machines.vector_function.trip_timing import (
    HEAD_FACTS,
    conversion_row,
    exclusive_ticks,
    head_of,
    issue_ticks,
    row_address,
    touched_bytes,
)
from castsim.targets.loader import Target
from castsim.targets.vector_function import DistributionMode, VectorFunctionTarget

# What a trip of a loop has for the serial port, for the loads and for the stores (docs/reference/micro.md 6.2).

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
                case TimingKind.COMPUTE if held := facts.cost(instruction).serial:
                    serial.append((instruction.line, held))
                case TimingKind.COMPUTE:
                    others += TICKS * facts.cost(instruction).held
        self.hold = sum(held for _, held in serial)
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
        ends = list(accumulate(held for _, held in self._lines))
        ends[-1:] = [self.hold] * bool(ends)
        return [(line, end) for (line, _), end in zip(self._lines, ends, strict=True)]


# How long a launch takes: its loops as the front end walks them, its instructions as the board places them.
#
# One rule for both engines and for the closed forms. Source: docs/reference/micro.md 6.2, 6.3.


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
        held = board.held
        for cause, wait in (
            (Cause.PORT, held.port),
            (Cause.MEMORY_BANDWIDTH, held.path),
            (Cause.STORE_BARRIER, held.barrier),
            (Cause.BANK_CONFLICT, held.buffer),
        ):
            before = account.spans[-1].until if account.spans else 0
            account.settle(cause, min(cycles, before + wait // TICKS), held.line)
        for (line, _), (_, start) in pairwise(held.chain):
            account.settle(Cause.DRAIN, min(cycles, start // TICKS), line)
        account.settle(Cause.DRAIN, min(cycles, board.completed // TICKS), held.line)
        account.settle(Cause.DRAIN, cycles)
        facts = frozenset(board.used | self._scope.facts)
        words = () if self.ends is not None else board.groups.words
        return ScopeTiming(cycles, tuple(account.spans), facts, dict(account.uses), words)

    @cached_property
    def _only_stores(self) -> bool:
        """Whether loops only store constants: no compute instruction reads a register made in a loop."""
        body = self._scope.body
        loops = [item for item in body if isinstance(item, RecordedLoop) and _repeats(item)]
        made = {name for issue in issues(loops) for name in issue.writes if not issue.instruction.masks}
        kinds = {issue.instruction.kind for issue in issues(body)}
        varying = any(
            issue.instruction.kind is TimingKind.COMPUTE and not made.isdisjoint(issue.reads) for issue in issues(loops)
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
        lines = sum(each.kind is TimingKind.LOAD and not each.masks for each in instructions)
        stores = any(each.kind is TimingKind.STORE for each in instructions)
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
        updating = [each.instruction for each in issued if each.instruction.updates]
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
    found: list[ScopeIssue] = []
    for item in loop.trips[0]:
        found += _first_trips(item) if isinstance(item, RecordedLoop) else [item]
    return found


def _straight(items: Sequence[Item]) -> list[ScopeIssue]:
    """Return the items, including those of nested loops with a single trip."""
    found: list[ScopeIssue] = []
    for item in items:
        if isinstance(item, ScopeIssue):
            found.append(item)
        elif len(item.trips) == 1:
            found += _straight(item.trips[0])
    return found


@dataclass(frozen=True, slots=True, eq=False)
class MicroFunction(Unaddressed):
    """One launch with its issued instructions and addresses; it shares no buffer port with transfers."""

    name: str
    scope: Scope
    pipe: str
    _timed: list[tuple[VectorFunctionTarget, ScopeTiming]] = field(default_factory=list, repr=False)

    @property
    def issued(self) -> int:
        """The number of instructions that the launch issues."""
        return sum(1 for _ in issues(self.scope.body))

    def timed(self, target: VectorFunctionTarget) -> ScopeTiming:
        """Return its time on a target; the last target's time is cached."""
        if not self._timed or self._timed[0][0] is not target:
            self._timed[:] = [(target, time_scope(self.scope, target))]
        return self._timed[0][1]


def turn_bytes(target: VectorFunctionTarget) -> int:
    """Return the bytes of a turn around the banks: moving a function by whole turns does not change its time."""
    return target.banks.groups * target.banks.banks_per_group * BLOCK


class _Placed:
    """A tile function on a target as the key of its time, independent of its name and of whole turns around the banks.

    Targets are equal if they are the same object, or differ only in the initial value of CTRL, which changes the
    functions of a program but the time of none.
    """

    __slots__ = ("_facts", "_hash", "_key", "function", "target")

    def __init__(self, function: VectorFunction, target: VectorFunctionTarget) -> None:
        turn = turn_bytes(target)
        destination, source, *operands = (address % turn for address in function.addresses)
        self.target, self._facts = target, _timed_facts(target)
        self.function = replace(function, destination=destination, source=source, operands=tuple(operands))
        nests = [
            (tuple(getattr(nest, name) for name in _NEST_FIELDS), *nest.counters.items()) for nest in function.timed
        ]
        bits = function.source_format.bits, function.destination_format.bits
        self._key = (destination, source, *operands, *nests, *bits)
        self._hash = hash(self._key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Placed) and other._facts == self._facts and other._key == self._key


def _timed_facts(target: VectorFunctionTarget) -> tuple[object, ...]:
    """Return the identities of a target's tables, and the values of its options but for CTRL at the start."""
    known = _FACTS_OF.get(id(target))
    if known is None or known[0] is not target:
        if len(_FACTS_OF) >= _MOST_TARGETS:
            _FACTS_OF.clear()
        tables = tuple(id(getattr(target, name)) for name in type(target).model_fields if name != "options")
        start = {"ctrl", *(f"ctrl_{bit}_at_start" for bit in target.control.bits)}
        values = tuple((name, option.value) for name, option in target.options.items() if name not in start)
        known = _FACTS_OF[id(target)] = target, (*tables, *values)  # the target keeps its tables alive
    return known[1]


_MOST_TARGETS = 64
_FACTS_OF: dict[int, tuple[VectorFunctionTarget, tuple[object, ...]]] = {}

_NEST_FIELDS = tuple(each.name for each in fields(Nest) if each.name != "counters")


@lru_cache(256)
def _placed(key: _Placed) -> ScopeTiming:
    return time_scope(FunctionLaunch(key.function, key.target).scope, key.target)


def timed(function: VectorFunction | MicroFunction, target: VectorFunctionTarget) -> ScopeTiming:
    """Return the time of a function on a target, cached for tile functions."""
    return function.timed(target) if isinstance(function, MicroFunction) else _placed(_Placed(function, target))


def check_scope(function: MicroFunction, target: VectorFunctionTarget) -> None:
    """Reject instructions for which the target has no latency.

    Raises:
        IllegalError: there is such an instruction; the message names the latencies that the target has.
    """
    facts = ScopeFacts(target)
    for issue in issues(function.scope.body):
        instruction = issue.instruction
        if instruction.kind is TimingKind.COMPUTE and not facts.has(instruction.mnemonic, instruction.width):
            known = (*target.timing.chain.latency_cycles, *target.arithmetic)
            raise IllegalError(f"target '{target.name}' has no latency for '{instruction.mnemonic}'", legal=known)


# What a vector-function engine can time, and the facts that every function rests on.

FACTS = ("timing.launch", "timing.access", "timing.loops", "timing.chain", "timing.port", "banks")
"""The timing facts that every function depends on."""


def check_function(operation: object, target: VectorFunctionTarget) -> None:
    """Reject nodes other than vector functions, and instructions without a latency on the target.

    Raises:
        IllegalError: there is such a node or instruction; the message names the latencies that the target has.
    """
    if isinstance(operation, MicroFunction):
        check_scope(operation, target)
        return
    if not isinstance(operation, VectorFunction):
        raise IllegalError(f"target '{target.name}' cannot execute a {type(operation).__name__}")
    for nest in operation.timed:
        for item in (*nest.trip, *nest.close):
            if computes(item) and not _is_timed(item, target):
                known = (*target.timing.chain.latency_cycles, *target.arithmetic)
                raise IllegalError(f"target '{target.name}' has no latency for '{item.mnemonic}'", legal=known)


def _is_timed(item: MicroOperation, target: VectorFunctionTarget) -> bool:
    known = item.mnemonic in (LONG_DIVISION, INTEGER_DIVISION)
    return known or target.latency(item.mnemonic, width_of(item)) is not None


# The launches of vector functions, from the time of their instructions one by one (docs/reference/micro.md 6).

# The vector function of a tile operation, written out as the instructions of its kernel text.
#
# Source: docs/reference/micro.md 6.3.


class FunctionLaunch:
    """A vector function as one launch.

    `scope` are its issued instructions, by the timed nests; lines are indices of instructions and loops in kernel
    order.
    """

    def __init__(self, function: VectorFunction, target: VectorFunctionTarget) -> None:
        self.scope = Scope()
        self._function, self._target = function, target
        self._names: dict[str, int] = {}
        self._numbers: dict[tuple[int, str, int], int] = {}
        self._steps: dict[tuple[int, str, int], _Step | None] = {}
        for number, nest in enumerate(function.timed):
            if nest.runs:
                self._nest(number, nest)

    @property
    def count(self) -> int:
        """The number of instructions and loops of the kernel."""
        return len(self._numbers)

    def _line(self, nest: int, part: str, item: int) -> int:
        """Return the number of an instruction or a loop."""
        return self._numbers.setdefault((nest, part, item), len(self._numbers) + 1)

    def _nest(self, number: int, nest: Nest) -> None:
        if nest.row_loop:
            self.scope.begin_loop(nest.rows, self._line(number, "rows", 0))
        trip, late = of_every_trip(nest), nest.runtime_trips and nest.row_loop
        lead = row_address(self._function, nest, self._target) + nest.broadcasts * TICKS * late
        spread = sum(number_of(item, "held") for item in trip)
        hold = max(spread * TICKS, exclusive_ticks(trip, self._target))
        if nest.paced is not None:
            fact = self._target.timing.paced[nest.paced]
            self.scope.facts.add(f"timing.paced.{nest.paced}")
            lead, hold = lead + ticks(fact.row(nest.trips)), max(hold, ticks(fact.trip(nest.trips)))
        for row in range(nest.rows):
            self._names.clear()  # accumulators start anew
            self._issue(number, "row", nest.row, _Trip(nest, row, 0))
            self.scope.begin_loop(nest.trips, self._line(number, "trips", 0), lead, fixed=not late, hold=hold)
            for turn in range(nest.trips):
                self._issue(number, "trip", trip, _Trip(nest, row, turn))
                self.scope.end_trip()
            self._issue(number, "close", nest.close, _Trip(nest, row, 0, closing=True))
            if nest.row_loop:
                self.scope.end_trip()

    def _issue(self, number: int, part: str, items: Iterable[MicroOperation], trip: _Trip) -> None:
        for index, item in enumerate(items):
            key = number, part, index
            if key not in self._steps:
                self._steps[key] = self._step(item, key, trip)
            step = self._steps[key]
            if step is None:  # predicates by counters are ready when wanted
                self._names.pop(item.results[0], None)
                continue
            instruction, rows, start = step.instruction, None, trip.turn * step.trip
            if instruction.unpacks:  # the start of the function depends on the bytes of the tile
                rows = 1, 0, max(0, min(instruction.size, trip.row_bytes(trip.nest.source_trip) - start))
            elif instruction.kind is TimingKind.STORE and not trip.closing:
                left = trip.row_bytes(trip.nest.destination_trip) - start - step.offset
                if left < instruction.size:
                    instruction = replace(instruction, size=max(0, left))
            address = step.base + trip.row * step.row + start
            known = [self._names[name] for name in step.reads if name in self._names]
            made = self.scope.issue(instruction, known, len(step.writes), address, rows)
            self._names.update(zip(step.writes, made, strict=True))

    def _step(self, item: MicroOperation, key: tuple[int, str, int], trip: _Trip) -> _Step | None:
        """Return an instruction of a nest in the form common to its executions; None: it takes no time."""
        if mnemonic(item) in ("plt", "pset"):
            return None
        line, nest = self._line(*key), trip.nest
        if is_load(item):
            read, pointer = distribution_in(item), int(item.operands[0])
            instruction = ScopeInstruction(
                "vlds",
                TimingKind.LOAD,
                word=item.word("dist") or "",
                size=touched_bytes(item, self._target),
                unpacks=read.mode is DistributionMode.UNPK and not nest.row_loop,
                updates=nest.post_update,
                masks=read.mode is DistributionMode.MASK,
                line=line,
                text=_text(item),
            )
            moves = number_of(item, "row", nest.source_row), number_of(item, "trip", nest.source_trip)
            return _Step(instruction, (), item.results, self._function.operand(pointer), *moves)
        if item.mnemonic == "vsts":
            offset = number_of(item, "offset")
            room = nest.close_bytes if trip.closing else nest.destination_trip - offset
            size = max(0, min(touched_bytes(item, self._target), room))
            instruction = ScopeInstruction("vsts", TimingKind.STORE, size=size, line=line, text=_text(item))
            base = self._function.destination if nest.writes is None else self._function.operand(nest.writes)
            moves = nest.destination_row, nest.destination_trip
            return _Step(instruction, item.operands, (), base + offset, *moves, offset)
        kind = _KINDS.get(item.mnemonic, TimingKind.COMPUTE)
        instruction = ScopeInstruction(
            item.mnemonic,
            kind,
            width_of(item) or 32,
            word=item.word("barrier") or "",
            masks=item.mnemonic == "punpack",
            row=conversion_row(item, self._target),
            profiled=kind is TimingKind.COMPUTE,
            line=line,
            text=_text(item),
            held=number_of(item, "held") if item.word("held") else None,
        )
        return _Step(instruction, item.operands, item.results if computes(item) else ())


class _Trip(NamedTuple):
    """A trip of a nest; `closing`: what follows the last one of the row."""

    nest: Nest
    row: int
    turn: int
    closing: bool = False

    def row_bytes(self, trip_bytes: int) -> int:
        """Return the bytes of a row, given the bytes of its full trips."""
        return bytes_of_row(self.nest.count, trip_bytes, self.nest.elements)


class _Step(NamedTuple):
    """An instruction of a nest: the names that it reads and writes, its first address and how far that moves."""

    instruction: ScopeInstruction
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    base: int = 0
    row: int = 0
    trip: int = 0
    offset: int = 0


_KINDS = {"mem_bar": TimingKind.BARRIER, "select": TimingKind.SELECT}


def _text(item: MicroOperation) -> str:
    """Return an instruction as reports name it."""
    formats, word = formats_of(item), item.word("dist") or item.word("barrier")
    if formats is not None:
        between = " -> ".join(dict.fromkeys(each.name for each in formats))
        return " ".join(filter(None, (item.mnemonic, between, item.word("rnd"), item.word("part"))))
    if item.mnemonic == "select":
        return "scalar select"
    width = width_of(item)
    return f"{item.mnemonic} b{width}" if width else " ".join(filter(None, (item.mnemonic, word)))


_LOOP = "loop"
_LAUNCH = "launch"


@dataclass(slots=True)
class _Total:
    """The totals of an instruction's launches."""

    executions: int = 0
    cycles: int = 0
    causes: defaultdict[int, defaultdict[Cause, int]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(int))
    )
    counts: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    texts: dict[int, str] = field(default_factory=dict)
    waits: defaultdict[tuple[int, Cause, int], int] = field(default_factory=lambda: defaultdict(int))

    def add(self, timing: ScopeTiming, first: int = 0) -> None:
        """Add a launch whose lines are counted from `first` on."""
        self.cycles += timing.cycles
        for (line, cause), cycles in timing.by_line.items():
            self.causes[line + first * (line > 0)][cause] += cycles
        for line, use in timing.uses.items():
            number = line + first
            self.counts[number] += use.executions
            self.texts.setdefault(number, " / ".join(use.texts))
            for (cause, behind), waited in use.waits.items():
                self.waits[number, cause, behind and behind + first] += waited

    def lines(self) -> tuple[LineLaunches, ...]:
        """Return the lines in order, after the entry of the launch itself."""
        waits: defaultdict[int, list[LineWait]] = defaultdict(list)
        for (number, cause, behind), waited in self.waits.items():
            made = (behind, self.texts.get(behind, _LOOP)) if behind else (None, None)
            waits[number].append(LineWait(cause, waited / TICKS, *made))
        return tuple(self._line(number, waits[number]) for number in sorted({*self.causes, *self.counts}))

    def _line(self, number: int, waits: Iterable[LineWait]) -> LineLaunches:
        causes = {cause: self.causes[number][cause] for cause in Cause if self.causes[number].get(cause)}
        inside = number > 0
        return LineLaunches(
            number if inside else None,
            self.texts.get(number, _LOOP) if inside else _LAUNCH,
            self.counts[number] if inside else self.executions,
            sum(causes.values()),
            causes,
            tuple(sorted(waits, key=lambda each: -each.cycles)),
        )


def written(tree: Tree, target: Target) -> Sequence[InstructionLaunches]:
    """Return the launches written in a program."""
    assert isinstance(target, VectorFunctionTarget)
    found: defaultdict[int, _Total] = defaultdict(_Total)
    for lowered, _ in instances(tree):
        for operation in lowered.body.items:
            if isinstance(operation, MicroFunction):
                total = found[lowered.instruction]
                total.executions += 1
                total.add(operation.timed(target))
    return _launches(tree, found, {number: total.cycles for number, total in found.items()})


def slices(tree: Tree, timing: Timing, target: Target) -> Sequence[LaunchSlice]:
    """Return the cycles of the launches written in a program, in order."""
    assert isinstance(target, VectorFunctionTarget)
    starts = {each.execution: each.start for each in timing.operations if each.pipe == target.pipes.vector}
    found: list[LaunchSlice] = []
    for number, (lowered, _) in enumerate(instances(tree)):
        for operation in lowered.body.items:
            if isinstance(operation, MicroFunction):
                found += _slices(operation.timed(target), starts[number])
    return found


def sent(lowered: Lowered, target: Target) -> Sequence[int]:
    """Return when the front end sends the instructions of a launch written in a program."""
    assert isinstance(target, VectorFunctionTarget)
    found: list[int] = []
    for operation in lowered.body.items:
        if isinstance(operation, MicroFunction):
            time_scope(operation.scope, target, found.append)
    return found


def _slices(timing: ScopeTiming, start: int) -> Iterator[LaunchSlice]:
    before = start
    for span in timing.spans:
        use = timing.uses.get(span.line)
        text = " / ".join(use.texts) if use is not None else _LOOP if span.line else _LAUNCH
        yield LaunchSlice(before, start + span.until, span.cause, span.line or None, text)
        before = start + span.until


def lowered(tree: Tree, timing: Timing, target: Target) -> Sequence[InstructionLaunches]:
    """Return the first launch of each tile operation as the instructions of its kernel."""
    assert isinstance(target, VectorFunctionTarget)
    found: dict[int, _Total] = {}
    counts = _executions(timing)
    for item in _first_executions(tree):
        total = _Total(counts.get(item.instruction, 0))
        first = 0
        for operation in operations(item, None):
            if isinstance(operation, VectorFunction):
                kernel = FunctionLaunch(operation, target)
                total.add(time_scope(kernel.scope, target), first)
                first += kernel.count
        if total.cycles:
            found[item.instruction] = total
    return _launches(tree, found, _cycles(tree, timing, found))


def _launches(tree: Tree, found: Mapping[int, _Total], cycles: Mapping[int, int]) -> Sequence[InstructionLaunches]:
    made = [_launch(tree.instructions[number], total, cycles[number]) for number, total in found.items()]
    return sorted(made, key=lambda each: each.line)


def _launch(instruction: Instruction, total: _Total, pipe_cycles: int) -> InstructionLaunches:
    return InstructionLaunches(
        instruction.span.line, instruction.text, instruction.pipe, total.executions, total.cycles, pipe_cycles,
        total.lines(),
    )  # fmt: skip


def _first_executions(tree: Tree) -> Iterable[Lowered]:
    """Return every instruction as it is executed first."""
    seen: dict[int, Lowered] = {}
    for element in elements(tree.root):
        if isinstance(element, Lowered):
            seen.setdefault(element.instruction, element)
    return seen.values()


def _executions(timing: Timing) -> Mapping[int, int]:
    """Return how often every instruction was executed."""
    found: defaultdict[int, int] = defaultdict(int)
    for execution, _, times in repeated(timing.executions):
        found[execution.instruction] += times
    return found


def _cycles(tree: Tree, timing: Timing, wanted: Iterable[int]) -> Mapping[int, int]:
    """Return the cycles of each instruction's operations on its pipe in its first execution."""
    first = dict.fromkeys(wanted, len(timing.executions))
    found: defaultdict[int, int] = defaultdict(int)
    for operation, _, _ in repeated(timing.operations):
        number = timing.executions[operation.execution].instruction
        if operation.pipe != tree.instructions[number].pipe or operation.execution > first.get(number, -1):
            continue
        if operation.execution < first[number]:
            first[number], found[number] = operation.execution, 0
        found[number] += operation.end - operation.start
    return found
