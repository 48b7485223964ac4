"""The possible successions of bundles: delay bundles, jumps, loops, the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from enum import StrEnum
from functools import cached_property
from itertools import product

from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.tpc.program import (
    WORD_MASK,
    Bundle,
    File,
    Immediate,
    Register,
    RegisterDeclaration,
    Slot,
    TpcInstruction,
    TpcProgram,
    is_constant,
)
from castsim.machines.vliw.control import Jump, LoopShape, Structure, trips_of
from castsim.machines.vliw.findings import InstructionSite, LintFinding
from castsim.machines.vliw.plans import (
    InstructionPlan,
    OperandPlan,
    planned,
)
from castsim.machines.vliw.storage import GENERATORS, Registers
from castsim.targets.vliw import VliwTarget
from castsim.targets.vliw_latency import PREDICATE

# From which bundle to which: every step that a program may take, with what hardware loops do on the way.
#
# Meaning of LOOP and the jumps: docs/reference/tpc.md section 7.1, control.


class LoopStep(StrEnum):
    """The action of a hardware loop on a step from one bundle to another."""

    ENTER = "enter"
    """Its first trip begins."""
    BACK = "back"
    """Another trip begins."""
    EXIT = "exit"
    """The last trip has ended."""
    SKIP = "skip"
    """The loop has zero trips."""


@dataclass(frozen=True, slots=True)
class BundleStep:
    """A step from one bundle to another.

    `cycles` is the distance between the two (1, and the bubbles of a taken jump), `loops` the events of hardware loops
    on the way, in time order, each with its number.
    """

    first: int
    second: int
    cycles: int = 1
    loops: tuple[tuple[LoopStep, int], ...] = ()

    @property
    def back(self) -> bool:
        """Whether it begins another trip of a hardware loop."""
        return bool(self.loops) and self.loops[-1][0] is LoopStep.BACK


def arrivals(
    loops: Sequence[LoopShape],
    index: int,
    following: int,
    cycles: int = 1,
    before: tuple[tuple[LoopStep, int], ...] = (),
) -> Iterator[BundleStep]:
    """Yield the successors of a step: the end of a body leads to its start and, after the last trip, beyond it."""
    ending = (loop for loop in loops if loop.end == following and loop.holds(index))
    for loop in sorted(ending, key=lambda loop: -loop.depth):
        yield BundleStep(index, loop.start, cycles, (*before, (LoopStep.BACK, loop.number)))
        before = (*before, (LoopStep.EXIT, loop.number))
    yield BundleStep(index, following, cycles, before)


def entries(loops: Sequence[LoopShape], loop: LoopShape) -> Iterator[BundleStep]:
    """Yield where a loop leads from the last bundle before its body: into it, and past it."""
    yield BundleStep(loop.start - 1, loop.start, 1, ((LoopStep.ENTER, loop.number),))
    yield from arrivals(loops, loop.start - 1, loop.end, 1, ((LoopStep.SKIP, loop.number),))


class _StepFinder:
    """The steps of one program; those of a jump through a register are unknown."""

    def __init__(self, structure: Structure, halts: Sequence[bool], target: VliwTarget) -> None:
        self._count = len(structure.bundles)
        self._structure = structure
        self._loops = structure.loops
        self._halts = halts
        self._entered = {loop.start - 1: loop for loop in structure.loops}
        self._cost = 1 + int(target.option("taken_jump_cycles"))
        delay = target.jump_rules.delay_bundles
        self._jumps = {index + delay: (index, jump) for index, jump in structure.jumps}
        goals = {structure.static_target(index, jump) for index, jump in structure.jumps}
        self._landed_on = goals | {loop.start for loop in structure.loops} | {loop.end for loop in structure.loops}

    def all(self) -> tuple[tuple[BundleStep, ...], ...]:
        """Return the steps after every bundle."""
        return tuple(
            tuple(edge for edge in self._behind(index) if edge.second < self._count) for index in range(self._count)
        )

    def _behind(self, index: int) -> Iterator[BundleStep]:
        loop = self._entered.get(index)
        if loop is not None:
            yield from entries(self._loops, loop)
            return
        goes_on = not self._halts[index]
        if index in self._jumps:
            origin, jump = self._jumps[index]
            goal = self._structure.static_target(origin, jump)
            if goal is not None:
                yield from arrivals(self._loops, index, goal, self._cost)
            # A delay bundle that is reached on another way than from its jump goes on to the next one.
            goes_on &= not jump.surely_acts or index in self._landed_on
        if goes_on:
            yield from arrivals(self._loops, index, index + 1)


class Flow:
    """A program prepared for the linter: bundles, looked-up instructions, successors and predecessors.

    A jump through a register may have any target; only its fall-through is known.

    Raises:
        IllegalError: the machine refuses the program before a run.
    """

    def __init__(self, program: TpcProgram, target: VliwTarget) -> None:
        self.target = target
        self.program = program
        self.bundles: tuple[Bundle, ...] = program.bundles
        self.structure = Structure(program, target)
        self.registers = Registers(target)
        self.plans: tuple[tuple[InstructionPlan, ...], ...] = planned(program, self.registers, target)
        self.jumps: tuple[Jump, ...] = self.structure.jumps
        self.loops: tuple[LoopShape, ...] = self.structure.loops

    @property
    def every(self) -> Iterator[tuple[int, InstructionPlan]]:
        """All instructions in text order, with their bundles."""
        return ((index, plan) for index, plans in enumerate(self.plans) for plan in plans)

    def at(self, index: int, slot: Slot) -> InstructionPlan | None:
        """Return the instruction in a slot of a bundle."""
        return next((plan for plan in self.plans[index] if plan.site.slot is slot), None)

    def loop_head(self, loop: LoopShape) -> InstructionPlan:
        """Return the LOOP of a loop."""
        head = self.at(loop.head, Slot.SPU)
        assert head is not None
        return head

    def halts(self, index: int) -> bool:
        """Return whether a bundle ends the program."""
        return any(plan.instruction.mnemonic == "halt" for plan in self.plans[index])

    @cached_property
    def writers(self) -> Mapping[str, tuple[tuple[int, InstructionPlan], ...]]:
        """For each register, the instructions that write it, with their bundles."""
        writes_of: dict[str, list[tuple[int, InstructionPlan]]] = {}
        for index, plan in self.every:
            for cell in plan.results:
                writes_of.setdefault(cell.name, []).append((index, plan))
        return {name: tuple(writes) for name, writes in writes_of.items()}

    @cached_property
    def edges(self) -> tuple[tuple[BundleStep, ...], ...]:
        """For each bundle, the steps that may follow it."""
        halts = [self.halts(index) for index in range(len(self.bundles))]
        return _StepFinder(self.structure, halts, self.target).all()

    @cached_property
    def incoming(self) -> tuple[tuple[BundleStep, ...], ...]:
        """For each bundle, the steps that may lead to it from reachable bundles."""
        edges: list[list[BundleStep]] = [[] for _ in self.bundles]
        for index, following in enumerate(self.edges):
            for edge in following if index in self.reached else ():
                edges[edge.second].append(edge)
        return tuple(map(tuple, edges))

    @cached_property
    def reached(self) -> frozenset[int]:
        """The bundles that some path reaches; all of them if a register gives a jump's target."""
        if any(self.structure.static_target(index, jump) is None for index, jump in self.jumps):
            return frozenset(range(len(self.bundles)))
        return frozenset(facts_at(self.successors, lambda _, facts: facts, {0: ()} if self.bundles else {}))

    @cached_property
    def successors(self) -> tuple[frozenset[int], ...]:
        """For each bundle, those that may be issued next."""
        return tuple(frozenset(edge.second for edge in following) for following in self.edges)

    @cached_property
    def predecessors(self) -> tuple[frozenset[int], ...]:
        """For each bundle, those that may be issued before."""
        predecessors_of: list[set[int]] = [set() for _ in self.bundles]
        for index, following in enumerate(self.successors):
            for successor in following:
                predecessors_of[successor].add(index)
        return tuple(map(frozenset, predecessors_of))

    def after(self, index: int, distance: int) -> frozenset[int]:
        """Return the bundles that may be issued a number of bundles later."""
        return self._reach(index, distance, self.successors)

    def before(self, index: int, distance: int) -> frozenset[int]:
        """Return the bundles that may be issued a number of bundles earlier."""
        return self._reach(index, distance, self.predecessors)

    def _reach(self, index: int, distance: int, edges: tuple[frozenset[int], ...]) -> frozenset[int]:
        places = frozenset({index})
        for _ in range(distance):
            places = frozenset(successor for index in places for successor in edges[index])
        return places


def facts_at(
    steps: Sequence[Iterable[int]], passed: Callable[[int, Set[str]], Set[str]], start: Mapping[int, Iterable[str]]
) -> dict[int, set[str]]:
    """Return the facts at the nodes of a flow graph along any path from `start`, for reachable nodes.

    `steps` are the successors of each node, `passed` returns the facts that a node passes on.
    """
    facts_of = {node: set(facts) for node, facts in start.items()}
    waiting = list(start)
    while waiting:
        node = waiting.pop()
        facts = passed(node, facts_of[node])
        for following in steps[node]:
            current = facts_of.get(following)
            if current is None or not facts <= current:
                facts_of[following] = {*facts, *(current or ())}
                waiting.append(following)
    return facts_of


def live_behind(into: Sequence[Iterable[int]], before: Callable[[int, Set[str]], Set[str]]) -> dict[int, set[str]]:
    """Return the live registers after each node of a flow graph: those that some later path reads.

    `into` are the predecessors of each node, `before` returns the live registers before a node from those after it.
    """
    return facts_at(into, before, dict.fromkeys(range(len(into)), ()))


# What a register was written by on the way to one of its readers: every path backwards, judged as the machine would.
#
# A read is *certain* to be stale if it is on every way of getting there. Ways that the text decides do not weaken
# that:
# the first trip of a loop and its later ones both happen, so it is enough if the read is stale in one of them. A loop
# whose count of trips the text does not tell is taken to make many.

_MOST_PATHS = 256
"""Maximum number of paths examined for one read, beyond which nothing is certain."""
_MOST_DOUBTFUL = 6
"""Maximum number of writes under predicates on one path, beyond which nothing is certain either."""

Writers = Sequence[Mapping[str, tuple[InstructionPlan, ...]]]
"""For each bundle, the instructions that write a register or state, in slot order."""


@dataclass(frozen=True, slots=True)
class ReadPlace:
    """A read of one register or state by one instruction.

    `needed` returns the distance at which it sees an instruction's result, `reach` the largest of them. `in_order` says
    whether writes there take effect in program order: those of predicates and random generators do not.
    """

    bundle: int
    plan: InstructionPlan
    role: str
    place: str
    needed: Callable[[InstructionPlan], int]
    reach: int
    in_order: bool = True


@dataclass(frozen=True, slots=True)
class MissedWrite:
    """A write that a reader misses: the reader's distance, and the distance at which it would see the write."""

    writer: InstructionSite
    distance: int
    needed: int


@dataclass(frozen=True, slots=True)
class StaleVerdict:
    """The writes that a read certainly misses, empty if it is not certainly stale, and those that it may also miss."""

    certain: frozenset[MissedWrite] = frozenset()
    possible: frozenset[MissedWrite] = frozenset()

    def doubted(self) -> StaleVerdict:
        """Return the same verdict with nothing certain."""
        return StaleVerdict(possible=self.certain | self.possible)


def _all_of(verdicts: Sequence[StaleVerdict]) -> StaleVerdict:
    """Return the verdict if each of these may happen: certain if all are."""
    merged = _any_of(verdicts)
    return merged if all(verdict.certain for verdict in verdicts) else merged.doubted()


def _any_of(verdicts: Sequence[StaleVerdict]) -> StaleVerdict:
    """Return the verdict if each of these certainly happens at some time."""
    certain = frozenset(read for verdict in verdicts for read in verdict.certain)
    return StaleVerdict(certain, frozenset(read for verdict in verdicts for read in verdict.possible) - certain)


@dataclass(frozen=True, slots=True)
class _Write:
    """A write on a path; `doubtful` if a predicate decides whether it happens."""

    plan: InstructionPlan
    distance: int
    doubtful: bool


@dataclass(frozen=True, slots=True)
class _Place:
    """The progress of a backward walk.

    `passed` has, for each enclosing loop, the number of trip ends crossed, and whether it was entered from
    after the last one. `same_predicate` is False once the reader's predicate was written on the way.
    """

    bundle: int
    distance: int = 0
    writes: tuple[_Write, ...] = ()
    passed: Mapping[int, tuple[int, bool]] = field(default_factory=dict)
    same_predicate: bool = True


class WriteHistory:
    """The check of a program's reads; `trips` are the counts of its loops, `many` replaces larger counts."""

    def __init__(self, flow: Flow, writers: Writers, trips: Sequence[int | None], many: int) -> None:
        self._flow = flow
        self._writers = writers
        self._reaches: dict[tuple[str, str, int], int] = {}
        self._trips = [many if count is None else count for count in trips]
        self._unknown = [count is None for count in trips]
        self._conditional = [flow.loop_head(loop).instruction.predicate is not None for loop in flow.loops]
        self._iterators = {str(flow.structure.iterator(loop.depth)): loop.depth for loop in flow.loops}
        self._many = many
        self._window = flow.target.distances.predicate_load_then_write

    def judge(self, reading: ReadPlace) -> StaleVerdict:
        """Return the verdict on a read."""
        beside = tuple(
            _Write(plan, 0, doubtful=plan.instruction.predicate is not None)
            for plan in reversed(self._writers[reading.bundle].get(reading.place, ()))
            if plan.site.slot < reading.plan.site.slot
        )
        walk = _PathWalk(self, reading)
        verdict = walk.before(_Place(reading.bundle, writes=beside), strict=False)
        return verdict if walk.paths <= _MOST_PATHS else verdict.doubted()

    # ------------------------------------------------------------------------------------------------------- paths

    def incoming(self, bundle: int) -> tuple[BundleStep, ...]:
        """Return the steps that may lead to a bundle."""
        return self._flow.incoming[bundle]

    def written(self, bundle: int) -> Iterable[str]:
        """Return the registers and states that a bundle writes."""
        return self._writers[bundle]

    def steps_to(self, at: _Place) -> Iterator[tuple[BundleStep, Mapping[int, tuple[int, bool]], bool]]:
        """Yield the steps that may lead here, the loops passed with each, and whether it certainly happens."""
        for edge in self._flow.incoming[at.bundle]:
            passed: dict[int, tuple[int, bool]] | None = dict(at.passed)
            usual = True
            for step, loop in reversed(edge.loops):
                passed = self._passed(step, loop, passed) if passed is not None else None
                usual &= step is not LoopStep.SKIP or not self._unknown[loop] or self._conditional[loop]
            if passed is not None:
                yield edge, passed, usual

    def _passed(
        self, step: LoopStep, loop: int, passed: dict[int, tuple[int, bool]]
    ) -> dict[int, tuple[int, bool]] | None:
        """Return the loops passed before a step, None if the trip counts exclude it."""
        trips = self._trips[loop]
        ends, from_behind = passed.get(loop, (0, False))
        others = {number: count for number, count in passed.items() if number != loop}
        match step:
            case LoopStep.EXIT:
                return others | {loop: (0, True)} if trips else None
            case LoopStep.BACK:
                return others | {loop: (ends + 1, from_behind)} if ends + 1 < trips or trips == self._many else None
            case LoopStep.ENTER:
                fits = trips > 0 and (not from_behind or (ends + 1 == trips and trips < self._many))
                return others if fits else None
            case LoopStep.SKIP:
                return others if trips == 0 or self._unknown[loop] or self._conditional[loop] else None

    def sets(self, cell: str, edge: BundleStep) -> bool:
        """Return whether a hardware loop sets a register on a step, for all readers."""
        depth = self._iterators.get(cell)
        if depth is None:
            return False
        loops = self._flow.loops
        return any(step is not LoopStep.SKIP and loops[number].depth == depth for step, number in edge.loops)

    # ------------------------------------------------------------------------------------------------------ writes

    def added(self, at: _Place, reading: ReadPlace) -> _Place:
        """Return a path extended by a bundle and its writes."""
        predicate = reading.plan.predicate
        same = at.same_predicate
        if predicate is not None and any(cell.name in self._writers[at.bundle] for cell in predicate.cells):
            same = False
        writes = list(at.writes)
        for plan in reversed(self._writers[at.bundle].get(reading.place, ())):
            happens = self._happens(plan, at, reading, same=same)
            if happens is not False:
                writes.append(_Write(plan, at.distance, doubtful=happens is None))
        return replace(at, writes=tuple(writes), same_predicate=same)

    def _happens(self, writer: InstructionPlan, at: _Place, reading: ReadPlace, *, same: bool) -> bool | None:
        """Return whether a write happens whenever the reader executes; None if that is unknown."""
        predicate = writer.instruction.predicate
        if predicate is None:
            return True
        scalar = predicate.register.file is File.SP
        unlike = False if scalar else None  # a mask without any lane is a write all the same
        if is_constant(predicate.register):
            return unlike if predicate.inverted else True
        own = None if reading.role == PREDICATE else reading.plan.instruction.predicate
        if own is None or own.register != predicate.register or not same or self._just_written(at, reading):
            return None
        return True if own.inverted == predicate.inverted else unlike

    def _just_written(self, at: _Place, reading: ReadPlace) -> bool:
        """Return whether the reader's predicate is written so shortly before a bundle that not all see it there."""
        predicate = reading.plan.predicate
        assert predicate is not None
        names = [cell.name for cell in predicate.cells]
        places = {at.bundle}
        seen: set[int] = set()
        for _ in range(self._reach(predicate, names)):
            places = {edge.first for index in places for edge in self._flow.incoming[index]} - seen
            seen |= places
        return any(name in self._writers[index] for index in seen for name in names)

    def _reach(self, operand: OperandPlan, names: Sequence[str]) -> int:
        """Return the largest distance at which an operand may still miss a write of its register."""
        key = (names[0], operand.role, id(operand.distances))
        if key not in self._reaches:
            writers = (plan for bundle in self._writers for name in names for plan in bundle.get(name, ()))
            self._reaches[key] = max(map(operand.needed, writers), default=0)
        return self._reaches[key]

    def stale(self, writes: Sequence[_Write], reading: ReadPlace) -> StaleVerdict:
        """Return the stale reads of one path, given its writes, the last write first."""
        doubtful = [index for index, write in enumerate(writes) if write.doubtful]
        missed: set[MissedWrite] = set()
        certain = len(doubtful) <= _MOST_DOUBTFUL
        for kept in product((True, False), repeat=min(len(doubtful), _MOST_DOUBTFUL)):
            absent = {index for index, happens in zip(doubtful, kept, strict=False) if not happens}
            miss = self._read([write for index, write in enumerate(writes) if index not in absent], reading)
            certain &= miss is not None
            missed |= {miss} if miss is not None else set()
        return StaleVerdict(frozenset(missed)) if certain else StaleVerdict(possible=frozenset(missed))

    def _read(self, writes: Sequence[_Write], reading: ReadPlace) -> MissedWrite | None:
        """Return the newest write that a reader misses.

        Results land in program order, except loads into predicates, and draws of random words that miss a reseed:
        these continue the old sequence.
        """
        delay = self._flow.target.distances.reseed
        landing: list[_Write] = []
        for write in reversed(writes):
            overtaken = [
                number
                for number, older in enumerate(landing)
                if older.plan.loads and older.distance - write.distance < self._window
            ]
            late = write.plan.into_predicate and not write.plan.loads and overtaken
            if reading.place in GENERATORS and write.plan.reseeds is None:
                overtaken = late = [
                    number
                    for number, older in enumerate(landing)
                    if older.plan.reseeds is not None and older.distance - write.distance < delay
                ]
            landing.insert(overtaken[0] if late else len(landing), write)
        missed = None
        for write in reversed(landing):
            if write.distance >= reading.needed(write.plan):
                break
            if write.distance and missed is None:
                missed = MissedWrite(write.plan.site, write.distance, reading.needed(write.plan))
        return missed

    @property
    def window(self) -> int:
        """The distance before a write of a predicate within which a load lands after it."""
        return self._window


class _PathWalk:
    """A walk of all paths back from one read; `paths` counts them."""

    def __init__(self, history: WriteHistory, reading: ReadPlace) -> None:
        self._history = history
        self._reading = reading
        self._in_order = reading.in_order
        self._limit = reading.reach - 1 + (0 if self._in_order else history.window)
        predicate = reading.plan.predicate
        self._concerned = {reading.place, *(cell.name for cell in (predicate.cells if predicate else ()))}
        self.paths = 0

    def before(self, at: _Place, *, strict: bool) -> StaleVerdict:
        """Judge the read over all paths that lead to a place; `strict` counts the trips of a loop as alternatives."""
        at = self._through_others(at)
        if at.distance > self._limit:
            return self._leaf(at)
        steps = list(self._history.steps_to(at))
        begun: dict[tuple[LoopStep, int], list[StaleVerdict]] = {}
        plain: list[StaleVerdict] = []
        unusual: list[StaleVerdict] = []
        beside = [_begins(edge) for edge, _, usual in steps if usual]
        if at.bundle == 0:
            beside.append(None)
            plain.append(self._leaf(at))
        for edge, passed, usual in steps:
            if self.paths > _MOST_PATHS:
                break
            begins = _begins(edge)
            verdict = self._along(edge, at, passed, strict=strict or beside.count(begins) > 1)
            group = unusual if not usual else plain if begins is None else begun.setdefault(begins, [])
            group.append(verdict)
        trips = [_all_of(group) for group in begun.values()]
        straight = [_all_of(plain)] if plain else []
        if strict or not trips:
            verdict = _all_of([*trips, *straight])
        else:
            verdict = _any_of([*trips, *(judged.doubted() for judged in straight)])
        return _any_of([verdict, *(judged.doubted() for judged in unusual)])

    def _through_others(self, at: _Place) -> _Place:
        """Return the length of the single path back, past bundles that are irrelevant to the read."""
        bundle, distance = at.bundle, at.distance
        while bundle and distance <= self._limit:
            edge, *others = self._history.incoming(bundle) or (None,)
            if (
                edge is None
                or others
                or edge.loops
                or not self._concerned.isdisjoint(self._history.written(edge.first))
            ):
                break
            bundle, distance = edge.first, distance + edge.cycles
        return at if bundle == at.bundle else replace(at, bundle=bundle, distance=distance)

    def _along(
        self, edge: BundleStep, at: _Place, passed: Mapping[int, tuple[int, bool]], *, strict: bool
    ) -> StaleVerdict:
        """Judge the paths that end with one step."""
        if self._history.sets(self._reading.place, edge) or at.distance + edge.cycles > self._limit:
            return self._leaf(at)
        position = replace(at, bundle=edge.first, distance=at.distance + edge.cycles, passed=passed)
        position = self._history.added(position, self._reading)
        if self._in_order and position.writes and not position.writes[-1].doubtful and position.writes[-1].distance:
            return self._leaf(position)  # what was written before is neither seen nor missed
        return self.before(position, strict=strict)

    def _leaf(self, at: _Place) -> StaleVerdict:
        self.paths += 1
        return self._history.stale(at.writes, self._reading)


def _begins(edge: BundleStep) -> tuple[LoopStep, int] | None:
    """Return the trip of a loop that begins with a step: its first, or a later one."""
    last = edge.loops[-1] if edge.loops else None
    return last if last is not None and last[0] in (LoopStep.ENTER, LoopStep.BACK) else None


# Forms that run but that the intrinsic header lacks: what is to be said of them, without running a program.
#
# They break no rule. Source: docs/reference/tpc.md section 2.7.


def notices(flow: Flow) -> tuple[LintFinding, ...]:
    """Return one notice per instruction and kind, in text order; `rule` is the kind."""
    return tuple(
        LintFinding(notice.kind, plan.site.bundle, notice.text, plan.site.span)
        for plans in flow.plans
        for plan in plans
        if plan.meaning is not None
        for notice in plan.meaning.notices
    )


# How many trips hardware loops make, where the text tells.

_PLAIN = (None, "i32", "u32", "f32")
"""Types for which MOV fills all of an S register."""


def trip_counts(flow: Flow, most: int) -> tuple[int | None, ...]:
    """Return the trips of every loop, by its number: `most` means that many or more, None unknown.

    Known values are immediates, registers that only a declaration sets, and those that a single MOV of an immediate
    writes, on every path and early enough.
    """
    return tuple(_trips(flow, loop, most) for loop in flow.loops)


def _trips(flow: Flow, loop: LoopShape, most: int) -> int | None:
    instruction = flow.loop_head(loop).instruction
    start, bound, step = (_constant(flow, loop, instruction, role) for role in ("start", "bound", "step"))
    if start is None or bound is None or step is None:
        return None
    return trips_of(instruction, start, bound, step, most)


def _constant(flow: Flow, loop: LoopShape, instruction: TpcInstruction, role: str) -> int | None:
    operand = instruction.operand(role)
    if isinstance(operand, Immediate):
        return operand.value & WORD_MASK
    if not isinstance(operand, Register) or operand in map(flow.structure.iterator, range(len(flow.loops))):
        return None
    writes = flow.writers.get(str(operand), ())
    declared = [
        declaration.values[0]
        for declaration in flow.program.declarations
        if isinstance(declaration, RegisterDeclaration) and declaration.register == operand
    ]
    if not writes and declared:
        return int(declared[0]) & WORD_MASK
    if declared or len(writes) != 1:
        return None
    ((index, plan),) = writes
    mov, value = plan.instruction, plan.instruction.operand("src_a")
    on_every_path = (
        not any(jump_index < loop.head for jump_index, _ in flow.jumps) and not flow.structure.enclosing[index]
    )
    early = loop.head - index >= flow.target.loop_rules.register_distance
    plain = mov.mnemonic == "mov" and mov.predicate is None and mov.type in _PLAIN and operand.file is File.S
    return value.value & WORD_MASK if isinstance(value, Immediate) and plain and on_every_path and early else None
