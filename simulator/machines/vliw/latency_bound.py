"""Least time that the dependences of a program of bundles leave it, and what its latencies cost.

Bundles are issued as they are written, so that a result which comes late shows as bundles with little in them, on no
pipe. A stretch is a run of bundles that is entered at its first and left behind its last. A chain goes from a result
to who reads it, and from an access of global memory to the next one on its port. Other memory, and registers that are
used again, hold back nothing here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from castsim.isa.tpc import TpcProgram
from castsim.isa.tpc.program import JUMPS
from castsim.machines.vliw.findings import Site
from castsim.machines.vliw.plans import InstructionPlan, OperandPlan, planned
from castsim.machines.vliw.registers import Registers
from castsim.machines.vliw.structure import Structure, name_of
from castsim.targets.vliw import VliwTarget
from castsim.timing import WAITING, Cause, Timing, repeated, share

_WORTH = 5
"""Latencies bind from one cycle in so many: below, the busiest pipe leaves little for another order to gain."""


@dataclass(frozen=True, slots=True)
class Link:
    """A result that the longest chain waits for: who gives it, in which register, who reads it, bundles between."""

    producer: Site
    register: str
    consumer: Site
    distance: int

    @property
    def names(self) -> tuple[str, str]:
        """The instructions of producer and consumer."""
        return name_of(self.producer.instruction), name_of(self.consumer.instruction)

    def words(self) -> str:
        """Return it in words."""
        first, second = self.names
        lines = f"lines {self.producer.span.line} -> {self.consumer.span.line}"
        return f"{first} -> {second} ({self.register}, {lines}, {bundles(self.distance)})"


@dataclass(frozen=True, slots=True)
class LatencyBound:
    """The dependences of a run.

    `cycles` is the sum of the longest chains of all stretches that ran, with the distances of the target, and
    `gained` what the run would save if every result could be read in the next bundle; it never goes below the
    `occupied` cycles of the busiest pipe. `links` are the chain that costs most of it, in the order of the program:
    `trips` times `length` bundles.
    """

    cycles: int
    gained: int
    occupied: int
    total: int
    links: tuple[Link, ...]
    length: int
    trips: int

    @property
    def binds(self) -> bool:
        """Whether the busiest pipe idles for them: a fifth of the run is the least that counts."""
        return bool(self.links) and self.gained * _WORTH >= self.total > 0

    @property
    def longest(self) -> Link:
        """The link with the largest distance, of equals the first."""
        return max(self.links, key=lambda link: link.distance)

    def sentence(self) -> str:
        """Return it in words."""
        return f"Latency binds: {self.longest.words()}"

    def costs(self) -> str:
        """Return how much of the run the chains take, and what latencies are to blame for."""
        return (
            f"latencies cost {share(self.gained, self.total)}: chains take {share(self.cycles, self.total)} of the time"
        )


def bundles(count: int) -> str:
    """Return a number of bundles in words."""
    return f"{count} bundle{'s' * (count != 1)}"


def latency_bound(program: TpcProgram, target: VliwTarget, timing: Timing) -> LatencyBound:
    """Find what the latencies of a run cost."""
    counts = [0] * len(program.bundles)
    for record, _, times in repeated(timing.executions):
        counts[record.instruction] += times
    plans = planned(program, Registers(target), target)
    ports = _Ports.of(target)
    found = [_Stretch.of(plans[start:end], counts[start], ports) for start, end in _stretches(program, target, counts)]
    occupied = max((_occupied(pipe.causes) for pipe in timing.pipes.values()), default=0)
    worst = max(found, key=lambda stretch: stretch.lost * stretch.times, default=None)
    return LatencyBound(
        cycles=sum(stretch.chain * stretch.times for stretch in found),
        gained=max(0, min(sum(stretch.lost * stretch.times for stretch in found), timing.total - occupied)),
        occupied=occupied,
        total=timing.total,
        links=worst.links if worst is not None and worst.lost else (),
        length=0 if worst is None else worst.chain,
        trips=0 if worst is None else worst.times,
    )


def _occupied(causes: Mapping[Cause, int]) -> int:
    return sum(cycles for cause, cycles in causes.items() if cause not in WAITING)


def _stretches(program: TpcProgram, target: VliwTarget, counts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first bundle of each stretch that ran, and the first behind it."""
    structure, size = Structure(program, target), len(program.bundles)
    leaders = {0, size}
    for loop in structure.loops:
        leaders |= {loop.start, loop.end}
    for index, bundle in enumerate(program.bundles):
        if bundle.spu is not None and bundle.spu.mnemonic in JUMPS:
            leaders |= {
                index + 1,
                *(each for each in (structure.static_target(index, bundle.spu),) if each is not None),
            }
    # A jump through a register shows in how often its target ran.
    leaders |= {index for index in range(1, size) if counts[index] != counts[index - 1]}
    places = sorted(leaders)
    yield from ((start, end) for start, end in pairwise(places) if counts[start])


@dataclass(frozen=True, slots=True)
class _Ports:
    """Ports of global memory: cycles that an access takes, and whether loads and stores have one each."""

    interval: int
    separate: bool

    @classmethod
    def of(cls, target: VliwTarget) -> _Ports:
        """Return those of a target."""
        return cls(target.global_memory.cycles_per_access, target.option("global_ports") == "separate")

    def used(self, plan: InstructionPlan) -> tuple[int, int]:
        """Return which port an instruction uses, and the cycles."""
        loads, stores = plan.accesses
        return int(self.separate and stores > 0), (loads + stores) * self.interval


@dataclass(frozen=True, slots=True)
class _Read:
    """A read and the result that it gets, by their places in a stretch; without a register: the port that it gets."""

    producer: int
    consumer: int
    register: str
    distance: int

    @property
    def at_once(self) -> int:
        """The distance if every result could be read in the next bundle."""
        return min(self.distance, 1) if self.register else self.distance


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A stretch that ran so many `times`: bundles of its longest chain, those it loses to latencies, the chain."""

    times: int
    chain: int
    lost: int
    links: tuple[Link, ...]

    @classmethod
    def of(cls, plans: Sequence[Sequence[InstructionPlan]], times: int, ports: _Ports) -> _Stretch:
        """Find the longest chain of a stretch, or what one adds to each trip where the stretch repeats."""
        once = _Chains(plans, ports)
        twice = _Chains([*plans, *plans], ports)
        chain, links = once.longest(lambda read: read.distance)
        packed, _ = once.longest(lambda read: read.at_once)
        slots = Counter(plan.site.slot for own in plans for plan in own)
        crossing: Counter[int] = Counter()
        for plan in (plan for own in plans for plan in own):
            port, cycles = ports.used(plan)
            crossing[port] += cycles
        needed = max((*slots.values(), *crossing.values()), default=0)
        if times > 1:
            # Trips do not overlap as the program is written; where each needs the last, chains go on through them.
            more, through = twice.longest(lambda read: read.distance)
            if more - chain > chain:
                chain, links = more - chain, through
            needed = max(needed, twice.longest(lambda read: read.at_once)[0] - packed)
        return cls(times, chain, max(0, chain - max(packed, needed)), links)


class _Chains:
    """The reads of a stretch."""

    def __init__(self, plans: Sequence[Sequence[InstructionPlan]], ports: _Ports) -> None:
        self._plans = [(bundle, plan) for bundle, own in enumerate(plans) for plan in own]
        self._reads: list[list[_Read]] = [[] for _ in self._plans]
        written: dict[str, list[int]] = {}
        crossed: dict[int, tuple[int, int]] = {}
        for place, (bundle, plan) in enumerate(self._plans):
            port, cycles = ports.used(plan)
            if cycles:
                if port in crossed:
                    before, took = crossed[port]
                    self._reads[place].append(_Read(before, place, "", took))
                crossed[port] = place, cycles
            for operand in _operands(plan):
                self._reads[place] += self._seen(place, bundle, operand, written)
            for cell in plan.results:
                written.setdefault(cell.name, []).append(place)

    def _seen(
        self, place: int, bundle: int, operand: OperandPlan, written: Mapping[str, Sequence[int]]
    ) -> Iterator[_Read]:
        """Yield the newest results that an operand sees, one for each of its registers written before it."""
        for cell in operand.cells:
            for producer in reversed(written.get(cell.name, ())):
                before, writer = self._plans[producer]
                distance = operand.needed(writer)
                if before < bundle and bundle - before >= distance:
                    yield _Read(producer, place, cell.name, distance)
                    break

    def longest(self, weight: Callable[[_Read], int]) -> tuple[int, tuple[Link, ...]]:
        """Return the bundles that the longest chain takes, and its links."""
        starts = [0] * len(self._plans)
        last: list[_Read | None] = [None] * len(self._plans)
        for place, reads in enumerate(self._reads):
            for read in reads:
                at = starts[read.producer] + weight(read)
                if at > starts[place]:
                    starts[place], last[place] = at, read
        if not starts:
            return 0, ()
        links: list[Link] = []
        on_way = last[starts.index(max(starts))]
        while on_way is not None:
            if on_way.register:
                first, second = (self._plans[each][1].site for each in (on_way.producer, on_way.consumer))
                links.append(Link(first, on_way.register, second, on_way.distance))
            on_way = last[on_way.producer]
        return max(starts) + 1, tuple(reversed(links))


def _operands(plan: InstructionPlan) -> Iterator[OperandPlan]:
    """Yield what an instruction waits for: sources, predicate, and the lanes of its destination that it keeps."""
    yield from plan.sources
    if plan.predicate is not None:
        yield plan.predicate
    keeps = plan.predicate is not None or plan.instruction.switch("lane_sel")
    if plan.income is not None and keeps:
        yield plan.income
