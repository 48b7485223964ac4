"""One launch of a vector function as its issued instructions: the engines' input from a micro program.

A scope is a tree: instructions in program order and loops, whose trips are listed one by one, so all decisions about
the path (`scf.if`, counts, nested loops) are already made. Registers and masks are numbers: each result is a new one.
Source: docs/reference/micro.md 6.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from enum import Enum, auto

from castsim.execution.transfer_timing import TICKS, ticks
from castsim.isa.dataclass import dataclass, field
from castsim.machines.vector_function.function_operations import INTEGER_DIVISION, LONG_DIVISION
from castsim.machines.vector_function.function_timing import FunctionTicks
from castsim.targets.vector_function import VectorFunctionTarget


class TimingKind(Enum):
    """The timing class of an instruction."""

    LOAD = auto()
    STORE = auto()
    COMPUTE = auto()
    PREDICATE = auto()
    """Masks by counters and patterns, moves of names: ready on demand."""
    BARRIER = auto()
    SELECT = auto()
    """A scalar select inside a loop, which branches."""


@dataclass(frozen=True, slots=True)
class ScopeInstruction:
    """An instruction of the text: `mnemonic` without widths, `width` bits of a lane, `line` in its file (0: unknown).

    `word` is the distribution of a load or store, or the order of a barrier (`VST_VLD`). `size` counts the bytes of
    an access; `updates`: it updates its address. `unpacks`: a load whose register has more than its bytes.
    `masks`: its results are masks, not registers; `integers`: its lanes are integers; `lanewise`: it ignores the lanes
    that its mask leaves out. `row` is the row of the table of
    instructions that times it; '': that of its mnemonic. `profiled`: it passes the ports like published kernels.
    `held` are the cycles for which it occupies the serial port if its addresses decide them; None: as in the target's
    table. `text` is its report label.
    """

    mnemonic: str
    kind: TimingKind
    width: int = 32
    word: str = ""
    size: int = 0
    updates: bool = False
    unpacks: bool = False
    masks: bool = False
    integers: bool = False
    lanewise: bool = False
    row: str = ""
    profiled: bool = False
    line: int = 0
    text: str = field(default="", compare=False)
    held: int | None = None


@dataclass(frozen=True, slots=True)
class ScopeIssue:
    """One executed instruction: the registers and masks that it reads and writes, the first byte of its access.

    `rows` are count, distance and length of the stretches that an access with these operands touches; None: the `size`
    of the instruction.
    """

    instruction: ScopeInstruction
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    address: int = 0
    rows: tuple[int, int, int] | None = None


@dataclass(slots=True)
class RecordedLoop:
    """A loop that ran; each trip is a list of issued instructions. `line` is that of its head.

    `lead` are the ticks for the addresses of its trips before the first one, `hold` the minimum between trips.
    `late`: it is nested or contains a loop,
    and the trip count of the inner one is known only at run time, so a single trip is a loop too.
    """

    trips: list[list[Item]] = field(default_factory=list)
    line: int = 0
    lead: int = 0
    late: bool = False
    hold: int = 0

    @property
    def repeats(self) -> bool:
        """Whether the front end turns it; a single trip does not count as a loop."""
        return len(self.trips) > 1 or self.late

    @property
    def innermost(self) -> bool:
        """Whether it contains no loop."""
        return not any(isinstance(item, RecordedLoop) for trip in self.trips for item in trip)


Item = ScopeIssue | RecordedLoop


@dataclass(slots=True)
class Scope:
    """One launch, built in program order: `begin_loop`, then for each trip its instructions and `end_trip`."""

    body: list[Item] = field(default_factory=list)
    leading: dict[int, int] = field(default_factory=dict)
    """The number of leading mask bits that may be set, by mask number; registers have no entry."""
    facts: set[str] = field(default_factory=set)
    """Paths of the facts behind the times of its loops."""
    _open: list[tuple[RecordedLoop, int]] = field(default_factory=list)
    _registers: int = 0

    @property
    def in_loop(self) -> bool:
        """Whether the next instruction is inside a loop."""
        return bool(self._open)

    def issue(
        self,
        instruction: ScopeInstruction,
        reads: Sequence[int] = (),
        results: int = 0,
        address: int = 0,
        rows: tuple[int, int, int] | None = None,
    ) -> tuple[int, ...]:
        """Add an executed instruction; return the numbers of its results."""
        writes = tuple(range(self._registers, self._registers + results))
        self._registers += results
        self._here().append(ScopeIssue(instruction, tuple(reads), writes, address, rows))
        return writes

    def begin_loop(self, trips: int, line: int = 0, lead: int = 0, *, fixed: bool = True, hold: int = 0) -> None:
        """Begin a loop after `lead` ticks; a loop without trips leaves no trace.

        `fixed`: the number of trips is known before the run.
        """
        if trips <= 0:
            return
        loop = RecordedLoop([[]], line, lead, late=not fixed and self.in_loop, hold=hold)
        if loop.late:
            for around, _ in self._open:
                around.late = True
        self._here().append(loop)
        self._open.append((loop, trips))

    def end_trip(self) -> None:
        """End a trip of the innermost loop and, with its last trip, the loop."""
        loop, trips = self._open[-1]
        if len(loop.trips) == trips:
            self._open.pop()
        else:
            loop.trips.append([])

    def _here(self) -> list[Item]:
        return self._open[-1][0].trips[-1] if self._open else self.body


def issues(items: Sequence[Item]) -> Iterator[ScopeIssue]:
    """Yield the issued instructions in program order."""
    for item in items:
        if isinstance(item, ScopeIssue):
            yield item
        else:
            for trip in item.trips:
                yield from issues(trip)


# What an instruction of a micro program costs on a target, in ticks (docs/reference/micro.md 6.2).


@dataclass(frozen=True, slots=True)
class ComputeCost:
    """A compute instruction: when its result returns, and its port.

    `serial`: how long it occupies the first port, 0 if it may use any; `held`: cycles for which it occupies its
    port; `special`: how long the special functions' ports wait for it, 0 if it is none. `to_store` is the
    time until a store can use its result, `facts` are the paths of the facts behind these times.
    """

    latency: int
    to_store: int
    serial: int = 0
    special: int = 0
    held: int = 1
    facts: tuple[str, ...] = ()


def division_ticks(mnemonic: str, width: int, target: VectorFunctionTarget) -> tuple[int, int] | None:
    """Return how late the results of a division that is timed as a whole are, and how long it occupies the serial port.

    The long body of the high-precision division, and that of integers, occupies the front end for a whole trip; its end
    overlaps with later work (docs/reference/a5.md section 6.3). None for other instructions.
    """
    if mnemonic not in (LONG_DIVISION, INTEGER_DIVISION):
        return None
    bits = 32 if width >= 32 else 16
    division = target.timing.division
    cycles = division.trip_cycles[f"{'f' if mnemonic == LONG_DIVISION else 'i'}{bits}"]
    return ticks(cycles - division.overlap_cycles), ticks(cycles)


@dataclass(slots=True)
class ScopeFacts:
    """The facts of one target, and the costs of the instructions seen so far."""

    target: VectorFunctionTarget
    function: FunctionTicks = field(init=False)
    _costs: dict[tuple[str, int, bool, str, bool, int | None], ComputeCost] = field(default_factory=dict)
    _forwarding: dict[tuple[str, str, int, bool, str], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.function = FunctionTicks.of(self.target)

    def has(self, mnemonic: str, width: int) -> bool:
        """Return whether the target has a latency of an instruction."""
        return self.target.latency(mnemonic, width) is not None

    def alone(self, instruction: ScopeInstruction) -> int | None:
        """Return the cycles for which an access occupies the port of its kind alone, None if it shares it."""
        cycles = self.target.timing.micro.single_access.cycles
        return cycles.get(instruction.mnemonic, cycles.get(instruction.word.partition("_")[0]))

    def cost(self, instruction: ScopeInstruction) -> ComputeCost:
        """Return the cost of a compute instruction, whose latency the target must have."""
        its = instruction
        key = its.mnemonic, its.width, its.integers, its.row, its.profiled, its.held
        entry = self._costs.get(key)
        if entry is None:
            entry = self._costs[key] = self._cost(instruction)
        return entry

    def forwarded(self, producer: ScopeInstruction, consumer: ScopeInstruction, *, first: bool = True) -> int:
        """Return the time from the start of an instruction to that of one which computes with its result, or of itself.

        `first`: the result is the first operand, through which an instruction accumulates fastest.
        """
        row = self.target.arithmetic.get(producer.mnemonic)
        if row is not None and row.again is not None and producer.line != 0 and producer == consumer:
            return ticks(row.again) if first else self.cost(producer).to_store
        key = producer.mnemonic, consumer.mnemonic, producer.width, producer.integers, producer.row
        latency = self._forwarding.get(key)
        if latency is None:
            micro = self.target.timing.micro
            pair = micro.forwarding_to.get(consumer.mnemonic)
            stated = None if pair is None else pair.cycles.get(producer.mnemonic)
            if stated is None:
                stated = micro.forwarding.cycles.get(producer.mnemonic)
            latency = self.cost(producer).to_store if stated is None else ticks(stated)
            self._forwarding[key] = latency
        return latency

    def _cost(self, instruction: ScopeInstruction) -> ComputeCost:
        timing, target = self.target.timing, self.target
        mnemonic, width, integers = instruction.mnemonic, instruction.width, instruction.integers
        division = division_ticks(mnemonic, width, target)
        if division is not None:
            latency, serial = division
            return ComputeCost(latency, latency - self.function.forwarding, serial, facts=("timing.division",))
        cycles = target.latency(instruction.row or mnemonic, width, integers=integers, kernel=instruction.profiled)
        assert cycles is not None  # checked before the run
        latency = ticks(cycles)
        own = bool(instruction.row) and not instruction.profiled
        row = target.arithmetic.get(instruction.row if own else mnemonic)
        occupancy = None if own else timing.port.occupancy_cycles.get(mnemonic)
        if instruction.held is not None:
            occupancy = Decimal(instruction.held)
        special, several = 0, None
        if occupancy is None and row is not None and row.port in ("serial", "exclusive"):
            occupancy = row.held
        elif row is not None and row.port == "any":
            several = row.integers_held if integers and row.integers_held else row.held
        if occupancy is None and mnemonic in timing.micro.execution.first_port:
            occupancy = Decimal(1)
        if row is not None and row.port == "special":
            special = ticks(timing.special_function.port_cycles["f32" if width >= 32 else "f16"])
        serial = max(TICKS, ticks(occupancy)) if occupancy else 0
        to_store = latency - self.function.forwarding
        named = instruction.row or mnemonic
        facts = (f"arithmetic.{named}",) * (named in target.arithmetic) + ("timing.special_function",) * bool(special)
        return ComputeCost(latency, to_store, serial, special, int(several or 1), facts)
