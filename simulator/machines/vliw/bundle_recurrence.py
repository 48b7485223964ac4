"""The recurrence over bundles, with the rules and names of `event_vliw`.

The core stalls for an occupied VPU, for a due load, and for a slot in the queue of accesses. An access crosses its
port after all earlier ones, so its end is known when it is issued.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from castsim.execution.timing import Cause, Listener
from castsim.execution.tree import Block, Instruction, Lowered, Node, operations
from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import EngineError
from castsim.machines.vliw.stage_latency import ELEMENT_FACT, LATENCY_FACT, SLOTS, BundleOperation, MemoryTiming

# What happened, in columns: a row per bundle that was really stepped through, and the repetitions between them.
#
# Times here are *stepped* cycles: those of repetitions that were skipped do not count. `Repetition` says where they
# belong, so that real times can be told afterwards.

VPU = SLOTS.index("VPU")


@dataclass(frozen=True, slots=True)
class BundleKind:
    """One distinct bundle: the data for the recurrence, as plain integers.

    `vpu` are the cycles for which it occupies the VPU, `accesses` its loads and stores together, `count` the occupied
    slots. A `plain` one takes a cycle, and only its results can be waited for.
    """

    instruction: int
    operation: BundleOperation
    vpu: int
    loads: int
    stores: int
    accesses: int
    due: int
    effect: int
    bubbles: int
    count: int
    plain: bool
    elements: int

    @classmethod
    def of(cls, instruction: int, operation: BundleOperation) -> BundleKind:
        """Read an operation."""
        return cls(
            instruction=instruction,
            operation=operation,
            vpu=operation.slot_cycles[VPU],
            loads=operation.loads,
            stores=operation.stores,
            accesses=operation.loads + operation.stores,
            due=operation.data_due,
            effect=operation.effect,
            bubbles=operation.bubbles,
            count=sum(map(bool, operation.slot_cycles)),
            plain=not (operation.loads or operation.stores or operation.bubbles) and operation.slot_cycles[VPU] <= 1,
            elements=operation.elements,
        )


class Kinds:
    """The distinct bundles of a tree by number; nodes are identified as objects, equal ones being one object."""

    def __init__(self) -> None:
        self.all: list[BundleKind] = []
        self._of_node: dict[int, tuple[Lowered, tuple[int, ...]]] = {}
        self._of_block: dict[int, tuple[Block, list[array[int] | Node]]] = {}

    def of(self, lowered: Lowered) -> tuple[int, ...]:
        """Return the numbers of the bundles of a node."""
        entry = self._of_node.get(id(lowered))
        if entry is None:
            first = len(self.all)
            for operation in operations(lowered, None):
                assert isinstance(operation, BundleOperation)
                self.all.append(BundleKind.of(lowered.instruction, operation))
            # The node is kept, or another one could come to have its identity.
            entry = self._of_node[id(lowered)] = (lowered, tuple(range(first, len(self.all))))
        return entry[1]

    def parts(self, block: Block) -> list[array[int] | Node]:
        """Return the items of a block, neighbouring instructions combined as the numbers of their bundles."""
        entry = self._of_block.get(id(block))
        if entry is None:
            parts: list[array[int] | Node] = []
            run: array[int] | None = None
            numbers_of = self._of_node
            for item in block.items:
                if not isinstance(item, Lowered):
                    parts.append(item)
                    run = None
                    continue
                if run is None:
                    run = array("i")
                    parts.append(run)
                numbers = numbers_of.get(id(item))
                run.extend(self.of(item) if numbers is None else numbers[1])
            entry = self._of_block[id(block)] = (block, parts)
        return entry[1]


@dataclass(frozen=True, slots=True)
class Repetition:
    """Rows [first, end), which repeat `times` more times directly after themselves.

    `rows`, `cycles` and `operations` are the contribution of one of these repetitions, nested repetitions included.
    """

    first: int
    end: int
    times: int
    rows: int
    cycles: int
    operations: int


@dataclass(slots=True)
class IssueHistory:
    """The columns. `issued_at[c]` is the cycle of the first bundle issued in bundle slot c or later."""

    kinds: Sequence[BundleKind]
    kind: array[int] = field(default_factory=lambda: array("i"))
    clock: array[int] = field(default_factory=lambda: array("I"))
    """The bundle slot of each row; `issued_at`, with eight bytes for each slot, exhausts memory long before this."""
    done_at: array[int] = field(default_factory=lambda: array("q"))
    """The cycle in which the last access of the bundle is complete, 0 for bundles without accesses."""
    issued_at: array[int] = field(default_factory=lambda: array("q"))
    waits: dict[int, dict[Cause, int]] = field(default_factory=dict)
    """The causes of core stalls before a row."""
    repetitions: list[Repetition] = field(default_factory=list)
    """Repetitions ordered by `end`; nested ones come first."""

    def start(self, row: int) -> int:
        """Return the cycle in which a row was issued."""
        return self.issued_at[self.clock[row]]

    def finish(self, row: int) -> int:
        """Return the cycle after the last effect of a row: the core records effects when it issues."""
        kind = self.kinds[self.kind[row]]
        return max(self.issued_at[self.clock[row] + max(kind.effect, 1)], self.done_at[row])


PROGRESS_INTERVAL = 65536
"""Number of bundles between two calls of `Listener.progress`."""

JUMP_FACT = "options.taken_jump_cycles"


@dataclass(slots=True)
class AccessInFlight:
    """An access in flight: `due` is the bundle slot that needs its data (None: a store).

    All waits for an `element` count as latency.
    """

    due: int | None
    crossed_at: int
    done_at: int
    element: bool = False


@dataclass(slots=True)
class Totals:
    """The sums over the run, skipped repetitions included: issues of each kind of bundle, cycles of stalls."""

    issues: list[int] = field(default_factory=list)
    stalls: dict[Cause, int] = field(default_factory=dict)

    def copy(self) -> Totals:
        """Return a copy that later work does not change."""
        return Totals(list(self.issues), dict(self.stalls))

    def repeat(self, before: Totals, after: Totals, times: int) -> None:
        """Add the difference of two earlier states `times` more times."""
        for number, count in enumerate(after.issues):
            then = before.issues[number] if number < len(before.issues) else 0
            self.issues[number] += times * (count - then)
        for cause, cycles in after.stalls.items():
            self.stalls[cause] += times * (cycles - before.stalls.get(cause, 0))

    def operations(self, kinds: Sequence[BundleKind]) -> int:
        """Return how many operations were issued."""
        return sum(count * kinds[number].count for number, count in enumerate(self.issues))


class RecurrenceCore:
    """The state of the core. `now` and all times compared with it are stepped cycles.

    `skipped` are the cycles of skipped repetitions so far: the real time is `now + skipped`. `clock` counts bundle
    slots, `current` is the instruction being issued.
    """

    def __init__(
        self,
        history: IssueHistory,
        instructions: tuple[Instruction, ...],
        memory: MemoryTiming,
        max_cycles: int,
        listener: Listener | None,
        *,
        keep_waits: bool,
    ) -> None:
        self.history = history
        self.totals = Totals([], {})
        self.facts: set[str] = set()
        self.now = 0
        self.skipped = 0
        self.clock = 0
        self.current = 0
        self.vpu_free = 0
        self.port_free = [0, 0]
        self.crossed = [0, 0]
        self.element_free = 0
        self.outstanding: list[AccessInFlight] = []
        self.max_cycles = max_cycles
        self._instructions = instructions
        self._memory = memory
        self._listener = listener
        self._keep_waits = keep_waits
        self._waits: dict[Cause, int] = {}
        self._untold = 0

    def issue_all(self, numbers: Sequence[int]) -> None:
        """Issue bundles, each given by its kind's number.

        Raises:
            EngineError: the cycle limit is reached.
        """
        kinds, issues = self.history.kinds, self.totals.issues
        if len(issues) < len(kinds):
            issues.extend([0] * (len(kinds) - len(issues)))
        index, end = 0, len(numbers)
        while index < end:
            number = numbers[index]
            kind = kinds[number]
            if kind.plain and not self.outstanding and self.vpu_free <= self.now < self.max_cycles - self.skipped:
                index = self._issue_plain(numbers, index)
                continue
            self.current = kind.instruction
            if kind.vpu or self.outstanding or kind.accesses:
                self._wait(kind)
            self._issue(number, kind)
            index += 1

    def _issue_plain(self, numbers: Sequence[int], start: int) -> int:
        """Issue bundles that cannot wait or delay others, from `start` on; return the end."""
        history, issues, kinds = self.history, self.totals.issues, self.history.kinds
        first, now, clock = start, self.now, self.clock
        end = min(len(numbers), start + self.max_cycles - self.skipped - now)
        while start < end:
            number = numbers[start]
            if not kinds[number].plain:
                break
            issues[number] += 1
            start += 1
        count = start - first
        if count:
            history.kind.extend(numbers[first:start])
            history.clock.extend(range(clock, clock + count))
            self._fill_slots(now)
            history.issued_at.extend(range(now, now + count))
            history.done_at.extend(bytes(count))
            self.current = kinds[numbers[start - 1]].instruction
            self.now, self.clock = now + count, clock + count
            self.vpu_free = self.now
            self._tell(count)
        return start

    # ---------------------------------------------------------------------------------------------------- waiting

    def _wait(self, kind: BundleKind) -> None:
        """Stand still until the bundle can go."""
        if kind.vpu and self.vpu_free > self.now:
            self._stand_until(self.vpu_free, Cause.INITIATION_INTERVAL)
        if self.outstanding:
            clock = self.clock
            for access in [request for request in self.outstanding if request.due is not None and request.due <= clock]:
                if access.done_at >= self.now:
                    self._wait_for(access)
            count = kind.accesses
            if count:
                self._find_places(count)
            else:
                now = self.now
                self.outstanding = [request for request in self.outstanding if request.done_at >= now]

    def _find_places(self, count: int) -> None:
        places = max(self._memory.entries, count)
        while True:
            now = self.now
            waiting = self.outstanding = [request for request in self.outstanding if request.done_at >= now]
            if len(waiting) + count <= places:
                return
            first = min(waiting, key=lambda request: request.done_at)  # the earliest issued among equals
            self._wait_for(first)
            self.outstanding = [pending for pending in waiting if pending.done_at > self.now]

    def _wait_for(self, access: AccessInFlight) -> None:
        """Stall until an access is done, and charge the cycles to its cause."""
        if self.now < access.done_at:
            self.facts.add(ELEMENT_FACT if access.element else LATENCY_FACT)
        if self.now < access.crossed_at and not access.element:
            self._stand_until(min(access.crossed_at, access.done_at), Cause.MEMORY_BANDWIDTH)
        if self.now < access.done_at:
            self._stand_until(access.done_at, Cause.MEMORY_LATENCY)

    def _stand_until(self, cycle: int, cause: Cause) -> None:
        self._check(cycle)
        spent = cycle - self.now
        self.now = cycle
        stalls = self.totals.stalls
        stalls[cause] = stalls.get(cause, 0) + spent
        if self._keep_waits:
            self._waits[cause] = self._waits.get(cause, 0) + spent

    # ---------------------------------------------------------------------------------------------------- issuing

    def _issue(self, number: int, kind: BundleKind) -> None:
        now, clock, history = self.now, self.clock, self.history
        if self._waits:
            history.waits[len(history.kind)] = self._waits
            self._waits = {}
        history.kind.append(number)
        history.clock.append(clock)
        self._fill_slots(now)
        history.issued_at.append(now)
        history.done_at.append(self._enter(kind, now) if kind.accesses else 0)
        self.totals.issues[number] += 1
        if kind.vpu and now + kind.vpu > self.vpu_free:
            self.vpu_free = now + kind.vpu
        self.clock = clock + 1
        if now + self.skipped >= self.max_cycles:
            raise self.beyond_limit()
        self.now = now + 1
        if kind.bubbles:
            self._jump(kind.bubbles)
        self._tell(1)

    def _fill_slots(self, now: int) -> None:
        """Assign the bundle slots in which bubbles passed to the bundle that is issued now."""
        issued_at = self.history.issued_at
        if len(issued_at) < self.clock:
            issued_at.extend([now] * (self.clock - len(issued_at)))

    def _tell(self, count: int) -> None:
        """Tell the listener now and then how far the run has come; `count` bundles were issued since the last call."""
        if self._listener is not None:
            self._untold += count
            if self._untold >= PROGRESS_INTERVAL:
                self._untold = 0
                self._listener.progress(self.now + self.skipped, self.totals.operations(self.history.kinds))

    def _enter(self, kind: BundleKind, now: int) -> int:
        """Send accesses to their ports; return the cycle in which the last of them is complete."""
        memory = self._memory
        last = 0
        for port, count, due in ((0, kind.loads, self.clock + kind.due), (1, kind.stores, None)):
            port_index = 0 if memory.shared else port
            elements = kind.elements if due is not None and memory.element else 0
            for number in range(count):
                element = number < elements
                begin = max(now, self.port_free[port_index], self.element_free if element else 0)
                interval = memory.interval(self.crossed[port_index])
                self.crossed[port_index] += 1
                crossed = done = self.port_free[port_index] = begin + interval
                if due is not None:
                    done = begin + memory.load_cycles(interval, element=element)
                self.element_free = done if element else self.element_free
                self.outstanding.append(AccessInFlight(due, crossed, done, element))
                last = max(last, done)
        return last

    def _jump(self, bubbles: int) -> None:
        """Pass the bubbles after a taken jump; their slots have no bundle."""
        self.facts.add(JUMP_FACT)
        self._check(self.now + bubbles)
        self.now += bubbles
        self.clock += bubbles
        stalls = self.totals.stalls
        stalls[Cause.SERIALISING_BRANCH] = stalls.get(Cause.SERIALISING_BRANCH, 0) + bubbles

    def drain(self) -> None:
        """Complete the last effects without stalls: every remaining slot takes a cycle."""
        issued_at = self.history.issued_at
        issued_at.extend([self.now] * (self.clock - len(issued_at)))
        reach = max((kind.effect for kind in self.history.kinds), default=0)
        issued_at.extend(range(self.now, self.now + reach + 1))

    def state(self) -> tuple[object, ...]:
        """Return everything that later cycles depend on, relative to now."""
        now, clock = self.now, self.clock
        waiting = tuple(
            (
                None if request.due is None else request.due - clock,
                max(request.crossed_at - now, 0),
                request.done_at - now,
                request.element,
            )
            for request in self.outstanding
            if request.done_at >= now
        )
        phases = map(self._memory.phase, self.crossed)
        free = (max(cycle - now, 0) for cycle in (self.vpu_free, self.element_free, *self.port_free))
        return (*free, *phases, waiting)

    def _check(self, cycle: int) -> None:
        """Reject cycles beyond the limit.

        Raises:
            EngineError: the limit is exceeded.
        """
        if cycle + self.skipped > self.max_cycles:
            raise self.beyond_limit()

    def beyond_limit(self) -> EngineError:
        """Return the error about a run that is given up in the current cycle."""
        source = self._instructions[self.current]
        return EngineError(
            f"cycle limit of {self.max_cycles} reached at '{source.text}' ({source.span})", span=source.span
        )
