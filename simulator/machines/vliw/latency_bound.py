"""The minimum time that the dependences of a bundle program allow, and the cost of its latencies.

Bundles are issued as written, so a late result shows as nearly empty bundles on no pipe. A stretch is a run of bundles
with one entry at its first and one exit after its last. A chain connects a result with its reader, and an access of
memory with the next one on its port. Other memory, and reuse of registers, delay nothing here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise

from castsim.execution.timing import WAITING, Timing, repeated, share
from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import CastsimError, Span
from castsim.isa.tpc.forms import MemoryOperation
from castsim.isa.tpc.program import GROUPED, Register, Slot, Special, TpcInstruction, TpcProgram
from castsim.machines.vliw.control import Structure, name_of
from castsim.machines.vliw.findings import InstructionSite
from castsim.machines.vliw.plans import InstructionPlan, OperandPlan, computes, planned, prepare
from castsim.machines.vliw.stage_latency import ACCUMULATOR, DEST, IMPLICIT, MemoryTiming, operand_key
from castsim.machines.vliw.storage import CONSTANT, RANDOM, Registers
from castsim.targets.vliw import BundleDistance, VliwTarget, names, smallest
from castsim.targets.vliw_latency import PREDICATE, DistanceRule, OperandKey, SmallestDistance

_NEVER = 1 << 40
_WORTH = 5
"""Minimum share of cycles for latencies to count as binding: below it, the busiest pipe leaves other orders no gain.
"""


@dataclass(frozen=True, slots=True)
class AwaitedResult:
    """A result that the longest chain waits for: its producer, register, reader, and the bundles between."""

    producer: InstructionSite
    register: str
    consumer: InstructionSite
    distance: int

    @property
    def names(self) -> tuple[str, str]:
        """The instructions of producer and consumer."""
        return name_of(self.producer.instruction), name_of(self.consumer.instruction)

    def words(self) -> str:
        """Return a sentence about the result."""
        first, second = self.names
        lines = f"lines {self.producer.span.line} -> {self.consumer.span.line}"
        return f"{first} -> {second} ({self.register}, {lines}, {bundles(self.distance)})"


@dataclass(frozen=True, slots=True)
class LeastCycles:
    """The lower bound of cycles over all orders of a run's instructions, with its causes.

    `loop` is the loop with most issued bundles: its first line, its trips, the bundles of one trip and the initiation
    interval that slots, ports and dependences between trips allow; None without loops.
    """

    cycles: int
    limit: str
    loop: LeastInterval | None

    def sentence(self) -> str:
        """Return a sentence about the bound."""
        loop = "" if self.loop is None else f"; {self.loop.sentence()}"
        return f"no order of these instructions takes fewer than {self.cycles:,} cycles ({self.limit}){loop}"


@dataclass(frozen=True, slots=True)
class LeastInterval:
    """The bundles of one trip of a loop, and the minimum of any schedule; `span` is its first instruction."""

    span: Span
    trips: int
    bundles: int
    least: int

    def sentence(self) -> str:
        """Return a sentence about the interval."""
        trips = f"the loop of line {self.span.line} takes {self.trips:,} trips of {bundles(self.bundles)}"
        return f"{trips}, initiation interval at least {self.least:,}"


@dataclass(frozen=True, slots=True)
class LatencyBound:
    """The dependences of a run.

    `cycles` is the sum of the longest chains of all executed stretches, with the distances of the target, and `gained`
    the saving if every result could be read in the next bundle; it never falls below the
    `occupied` cycles of the busiest pipe. `links` are the chain with the largest share, in program order: `trips` times
    `length` bundles. `least` bounds any order of the same instructions.
    """

    cycles: int
    gained: int
    occupied: int
    total: int
    least: LeastCycles
    links: tuple[AwaitedResult, ...]
    length: int
    trips: int

    @property
    def binds(self) -> bool:
        """Whether the busiest pipe idles because of them, for at least a fifth of the run."""
        return bool(self.links) and self.gained * _WORTH >= self.total > 0

    @property
    def longest(self) -> AwaitedResult:
        """The link with the largest distance, the first if equal."""
        return max(self.links, key=lambda link: link.distance)

    def sentence(self) -> str:
        """Return a sentence about the bound."""
        return f"Latency limits: {self.longest.words()}"

    def costs(self) -> str:
        """Return how much of the run the dependence chains take, and how much of it latencies cost."""
        gained, chains = share(self.gained, self.total), share(self.cycles, self.total)
        return f"latencies cost {gained} of the run, and dependency chains take {chains}"


def bundles(count: int) -> str:
    """Return a number of bundles in words."""
    return f"{count} bundle{'s' * (count != 1)}"


def latency_bound(program: TpcProgram, target: VliwTarget, timing: Timing) -> LatencyBound:
    """Return the cost of a run's latencies."""
    counts = [0] * len(program.bundles)
    for record, _, times in repeated(timing.executions):
        counts[record.instruction] += times
    plans = planned(program, Registers(target), target)
    ports = _Ports.of(target)
    stretches = [
        _Stretch.of(plans[start:end], counts[start], ports) for start, end in _stretches(program, target, counts)
    ]
    busy = (
        sum(cycles for cause, cycles in pipe.causes.items() if cause not in WAITING) for pipe in timing.pipes.values()
    )
    occupied = max(busy, default=0)
    worst = max(stretches, key=lambda stretch: stretch.lost * stretch.times, default=None)
    return LatencyBound(
        cycles=sum(stretch.chain * stretch.times for stretch in stretches),
        gained=max(0, min(sum(stretch.lost * stretch.times for stretch in stretches), timing.total - occupied)),
        occupied=occupied,
        total=timing.total,
        least=_least(stretches),
        links=worst.links if worst is not None and worst.lost else (),
        length=0 if worst is None else worst.chain,
        trips=0 if worst is None else worst.times,
    )


def _least(stretches: Sequence[_Stretch]) -> LeastCycles:
    """Return the lower bound of a run: the fullest slot or port over all of it, or the longest row of dependences."""
    used: Counter[str] = Counter()
    for stretch in stretches:
        for name, cycles in stretch.used.items():
            used[name] += cycles * stretch.times
    limits = dict(used)
    through = max(stretches, key=lambda item: item.through, default=None)
    if through is not None:
        limits["latencies"] = through.through
    limit = max(limits, key=lambda name: limits[name], default="nothing")
    repeated = [each for each in stretches if each.times > 1 and each.span is not None]
    longest = max(repeated, key=lambda each: each.size * each.times, default=None)
    loop = None
    if longest is not None and longest.span is not None:
        loop = LeastInterval(longest.span, longest.times, longest.size, longest.interval)
    return LeastCycles(limits.get(limit, 0), limit, loop)


def _stretches(program: TpcProgram, target: VliwTarget, counts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first bundle and the end of each executed stretch."""
    structure, size = Structure(program, target), len(program.bundles)
    leaders = {0, size}
    for loop in structure.loops:
        leaders |= {loop.start, loop.end}
    for index, jump in structure.jumps:
        goal = structure.static_target(index, jump)
        leaders |= {index + 1} if goal is None else {index + 1, goal}
    # A jump through a register shows in how often its target ran.
    leaders |= {index for index in range(1, size) if counts[index] != counts[index - 1]}
    places = sorted(leaders)
    yield from ((start, end) for start, end in pairwise(places) if counts[start])


@dataclass(frozen=True, slots=True)
class _Ports:
    """Ports of global memory, one in common or one each for loads and stores: cycles of an access, and of LD_G."""

    interval: int
    element: int
    separate: bool

    @classmethod
    def of(cls, target: VliwTarget) -> _Ports:
        """Return the ports of a target."""
        memory = MemoryTiming.of(target)
        interval = memory.interval(0)
        return cls(interval, memory.element, not memory.shared)

    def used(self, plan: InstructionPlan) -> tuple[int, int]:
        """Return the port of an instruction, and the cycles."""
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
    """A stretch that ran `times` times: the bundles of its longest chain, those lost to latencies, and the chain.

    `used` are the cycles of each slot and port in one trip, `again` the bundles that dependences add with each trip,
    `through` the minimum cycles of all trips.
    """

    times: int
    chain: int
    lost: int
    links: tuple[AwaitedResult, ...]
    size: int
    used: Mapping[str, int]
    again: int
    through: int
    span: Span | None

    @property
    def interval(self) -> int:
        """The fewest bundles between the beginnings of two trips."""
        return max(1, self.again, *self.used.values())

    @classmethod
    def of(cls, plans: Sequence[Sequence[InstructionPlan]], times: int, ports: _Ports) -> _Stretch:
        """Return the longest chain of a stretch, or its growth per trip if the stretch repeats."""
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
        alone, again = once.longest(_by_register)[0], 0
        if times > 1:
            longer = (_Chains([*plans] * trips, ports) for trips in (3, 4))
            lengths = [alone, *(chains.longest(_by_register)[0] for chains in (twice, *longer))]
            again = min(later - earlier for earlier, later in pairwise(lengths))
            # Trips do not overlap as the program is written; where each needs the last, chains go on through them.
            more, through = twice.longest(lambda read: read.distance)
            if more - chain > chain:
                chain, links = more - chain, through
            needed = max(needed, twice.longest(lambda read: read.at_once)[0] - packed)
        used = {f"{slot.name} slot": count for slot, count in slots.items()}
        used |= {f"port {port} of global memory" if ports.separate else "global memory": cycles
                 for port, cycles in crossing.items()}  # fmt: skip
        elements = sum(plan.memory is MemoryOperation.ELEMENT_LOAD for own in plans for plan in own)
        used |= {"latency of LD_G": elements * ports.element} if elements * ports.element else {}
        span = next((plan.site.span for own in plans for plan in own), None)
        all_trips = max(alone, again * (times - 1) + 1)
        lost = max(0, chain - max(packed, needed))
        return cls(times, chain, lost, links, len(plans), used, again, all_trips, span)


def _by_register(read: _Read) -> int:
    """Return the distance of a read; the order of accesses at a port could be another and does not count."""
    return read.distance if read.register else -_NEVER


class _Chains:
    """The reads of a stretch."""

    def __init__(self, plans: Sequence[Sequence[InstructionPlan]], ports: _Ports) -> None:
        self._plans = [(bundle, plan) for bundle, own in enumerate(plans) for plan in own]
        self._reads: list[list[_Read]] = [[] for _ in self._plans]
        written: dict[str, list[int]] = {}
        crossed: dict[int, tuple[int, int]] = {}
        for index, (bundle, plan) in enumerate(self._plans):
            port, cycles = ports.used(plan)
            if cycles:
                if port in crossed:
                    before, took = crossed[port]
                    self._reads[index].append(_Read(before, index, "", took))
                crossed[port] = index, cycles
            for operand in _operands(plan):
                self._reads[index] += self._seen(index, bundle, operand, written)
            for cell in plan.results:
                written.setdefault(cell.name, []).append(index)

    def _seen(
        self, index: int, bundle: int, operand: OperandPlan, written: Mapping[str, Sequence[int]]
    ) -> Iterator[_Read]:
        """Yield the newest visible results of an operand, one for each of its registers written earlier."""
        for cell in operand.cells:
            for producer in reversed(written.get(cell.name, ())):
                before, writer = self._plans[producer]
                distance = operand.needed(writer)
                if before < bundle and bundle - before >= distance:
                    yield _Read(producer, index, cell.name, distance)
                    break

    def longest(self, weight: Callable[[_Read], int]) -> tuple[int, tuple[AwaitedResult, ...]]:
        """Return the number of bundles of the longest chain, and its links."""
        starts = [0] * len(self._plans)
        last: list[_Read | None] = [None] * len(self._plans)
        for index, reads in enumerate(self._reads):
            for read in reads:
                at = starts[read.producer] + weight(read)
                if at > starts[index]:
                    starts[index], last[index] = at, read
        if not starts:
            return 0, ()
        links: list[AwaitedResult] = []
        on_way = last[starts.index(max(starts))]
        while on_way is not None:
            if on_way.register:
                first, second = (self._plans[bundle][1].site for bundle in (on_way.producer, on_way.consumer))
                links.append(AwaitedResult(first, on_way.register, second, on_way.distance))
            on_way = last[on_way.producer]
        return max(starts) + 1, tuple(reversed(links))


def _operands(plan: InstructionPlan) -> Iterator[OperandPlan]:
    """Yield the operands that an instruction waits for: sources, predicate, and the kept lanes of its destination."""
    yield from plan.sources
    if plan.predicate is not None:
        yield plan.predicate
    keeps = plan.predicate is not None or plan.instruction.switch("lane_sel")
    if plan.income is not None and keeps:
        yield plan.income


# How far apart two instructions must stand: by the register that one writes and the other reads, and by issue rules.
#
# Facts: docs/reference/tpc.md section 6.1 (latency) and 6.2 (issue).


@dataclass(frozen=True, slots=True)
class SlottedInstruction:
    """An instruction in its slot."""

    slot: Slot
    instruction: TpcInstruction


@dataclass(frozen=True, slots=True)
class _Access:
    """A register or named state by its name, with the operand or result that reads or writes it."""

    register: str
    key: OperandKey
    role: str


@dataclass(frozen=True, slots=True)
class SharedRegister:
    """A register that a producer writes and a consumer reads: the operand that sees it last, and its distance."""

    register: str
    operand: str
    latency: SmallestDistance


@dataclass(frozen=True, slots=True)
class PairDistance:
    """The distances of a pair in bundles.

    `shared` is the register that decides, None if no register is written by one and read by the other; `rules` are the
    issue rules for the pair, `minimum` the smallest distance that they allow (None without rules). After
    LD_G the core continues with the register `latency_cycles` after the access; 0: the first instruction is no LD_G, or
    takes no longer.
    """

    shared: SharedRegister | None
    rules: tuple[BundleDistance, ...]
    latency_cycles: int = 0

    @property
    def minimum(self) -> int | None:
        """The smallest distance that the issue rules allow."""
        return smallest(self.rules)

    def allows(self, distance: int) -> bool:
        """Return whether the consumer may follow the producer at a distance in bundles, by latency and by all rules."""
        late = self.shared is not None and distance < self.shared.latency.distance
        return not late and not any(distance < rule.distance or distance in rule.excluded for rule in self.rules)


def pair_distance(
    target: VliwTarget, producer: SlottedInstruction, consumer: SlottedInstruction
) -> PairDistance | None:
    """Return the distances of a pair; None if it shares no register and no rule applies.

    Among several registers the first one decides, in the order of the producer's destination; among several operands
    that read it the one with the greatest distance.
    """
    written, read = tuple(_written(target, producer)), tuple(_read(target, consumer))
    shared = None
    for result in written:
        shared_registers = [
            SharedRegister(result.register, operand.key.operand, _latency(target, result, operand))
            for operand in read
            if operand.register == result.register
        ]
        if shared_registers:
            shared = max(shared_registers, key=lambda candidate: candidate.latency.distance)
            break
    rules = tuple(rule for rule in target.bundle_distances if applies(rule, target, producer, consumer))
    loads = shared is not None and producer.instruction.form.memory is MemoryOperation.ELEMENT_LOAD
    waits = target.element_loads.latency_cycles if loads else 0
    return None if shared is None and not rules else PairDistance(shared, rules, waits)


def _latency(target: VliwTarget, result: _Access, operand: _Access) -> SmallestDistance:
    if operand.role in IMPLICIT and operand.key.file != "hw":
        rule = DistanceRule.TENSOR_REGISTER
        return SmallestDistance(target.distances.tensor_register, None, None, None, rule, (rule,))
    return target.latencies.latency(result.key, operand.key)


# --------------------------------------------------------------------------------------------- what is written and read


def _written(target: VliwTarget, placed: SlottedInstruction) -> Iterator[_Access]:
    """Yield the results of an instruction in the order of its destination, then a generator that it steps."""
    slot, instruction = placed.slot, placed.instruction
    dest = instruction.operand(DEST)
    if isinstance(dest, Register | Special):
        key = operand_key(target, slot, instruction, DEST, _file(dest))
        for register in _registers(target, instruction, DEST, dest):
            yield _Access(register, key, DEST)
    if instruction.draws:
        name, key = _generator(target, placed)
        yield _Access(name, replace(key, random=True), "random")


def _read(target: VliwTarget, placed: SlottedInstruction) -> Iterator[_Access]:
    """Yield the registers that an instruction reads, in the order of its operands, its predicate last."""
    slot, instruction = placed.slot, placed.instruction
    for spec, operand in instruction.specified:
        if not isinstance(operand, Register | Special) or str(operand) in CONSTANT:
            continue
        role = spec.role
        if role == DEST:
            if instruction.form.accumulator is None:
                continue
            role = ACCUMULATOR
        key = operand_key(target, slot, instruction, role, _file(operand))
        for register in _registers(target, instruction, spec.role, operand):
            yield _Access(register, key, role)
    if instruction.draws:
        name, key = _generator(target, placed)
        yield _Access(name, key, "random")
    if instruction.predicate is not None:
        predicate = instruction.predicate.register
        key = operand_key(target, slot, instruction, PREDICATE, str(predicate.file))
        yield _Access(str(predicate), key, PREDICATE)


def _generator(target: VliwTarget, placed: SlottedInstruction) -> tuple[str, OperandKey]:
    name = "S_LFSR" if placed.slot is Slot.SPU else "LFSR"
    return name, operand_key(target, placed.slot, placed.instruction, "src_a", name)


def _file(operand: Register | Special) -> str:
    return operand.name if isinstance(operand, Special) else str(operand.file)


def _registers(
    target: VliwTarget, instruction: TpcInstruction, role: str, operand: Register | Special
) -> tuple[str, ...]:
    """Return the single registers of an operand; of a conversion also where a V operand names the first of a group."""
    if isinstance(operand, Special):
        return (RANDOM[operand.name].generator if operand.name in RANDOM else operand.name,)
    groups: tuple[Register, ...] = (operand,)
    if computes(instruction):
        with suppress(CastsimError):  # a form that does not run is in the tables all the same
            groups = tuple(prepare(instruction, target).registers.get(role, groups))
    cells: list[str] = []
    for register in groups:
        file, count = GROUPED.get(register.file, (register.file, 1))
        cells += [f"{file}{register.index + offset}" for offset in range(count)]
    return tuple(cells)


# ------------------------------------------------------------------------------------------------------- issue rules


def applies(rule: BundleDistance, target: VliwTarget, first: SlottedInstruction, second: SlottedInstruction) -> bool:
    """Return whether a rule belongs to the generation and applies to this pair."""
    return (
        _matches(first, rule.first, rule.first_types, rule.first_switches)
        and _matches(second, rule.second, rule.second_types, rule.second_switches)
        and rule.holds(target.dialect.features)
        and (not rule.first_reads or _reads_any(target, first, rule.first_reads))
        and (not rule.second_reads or _reads_any(target, second, rule.second_reads))
        and (not rule.same_destination or _destinations_meet(target, first, second))
    )


def _matches(
    placed: SlottedInstruction, listed: tuple[str, ...], types: tuple[str, ...], switches: dict[str, str]
) -> bool:
    instruction = placed.instruction
    return (
        names(listed, placed.slot.name.lower(), instruction.mnemonic)
        and (not types or instruction.type in types)
        and all(str(instruction.switch(name)) == value for name, value in switches.items())
    )


def _reads_any(target: VliwTarget, placed: SlottedInstruction, wanted: tuple[str, ...]) -> bool:
    return any(access.register in wanted or access.role in wanted for access in _read(target, placed))


def _destinations_meet(target: VliwTarget, first: SlottedInstruction, second: SlottedInstruction) -> bool:
    left, other = ({access.register for access in _written(target, placed)} for placed in (first, second))
    return not left.isdisjoint(other)
