"""One launch of a vector function as its instructions were issued: what a micro program hands to the engines.

A scope is a tree: instructions in program order and loops, whose trips are listed one by one, so that whatever decided
the path (`scf.if`, counts, nested loops) has been decided. Registers and masks are numbers: each result is a new one.
Source: docs/reference/micro.md 6.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto


class Kind(Enum):
    """What an instruction does to time."""

    LOAD = auto()
    STORE = auto()
    COMPUTE = auto()
    PREDICATE = auto()
    """Masks by counters and patterns, moves of names: ready when wanted."""
    BARRIER = auto()
    SELECT = auto()
    """A scalar select inside a loop, which branches."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction of the text: `mnemonic` without widths, `width` bits of a lane, `line` in its file (0: unknown).

    `word` is the distribution of a load or store, and what a barrier orders (`VST_VLD`). `size` are the bytes of an
    access; `updates`: it advances its address itself. `unpacks`: a load whose register holds more than its bytes.
    `masks`: its results are masks, not registers; `integers`: its lanes are integers. `text` is what reports call it.
    """

    mnemonic: str
    kind: Kind
    width: int = 32
    word: str = ""
    size: int = 0
    updates: bool = False
    unpacks: bool = False
    masks: bool = False
    integers: bool = False
    line: int = 0
    text: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Issue:
    """One executed instruction: the registers and masks that it reads and writes, the byte its access begins at.

    `rows` are count, distance and length of the stretches that an access touches whose operands say so; None: the
    `size` of the instruction.
    """

    instruction: Instruction
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    address: int = 0
    rows: tuple[int, int, int] | None = None


@dataclass(slots=True)
class Loop:
    """A loop that ran; each of its trips is a list of what it issued. `line` is that of its head.

    `lead` are the ticks that the addresses of its trips take before the first. `late`: it stands in another,
    or has one inside, and only the run knows how many trips the inner one has, so that a single trip is a loop too.
    """

    trips: list[list[Item]] = field(default_factory=list)
    line: int = 0
    lead: int = 0
    late: bool = False

    @property
    def repeats(self) -> bool:
        """Whether the front end turns it; one with a single trip is none."""
        return len(self.trips) > 1 or self.late

    @property
    def innermost(self) -> bool:
        """Whether no loop stands inside."""
        return not any(isinstance(item, Loop) for trip in self.trips for item in trip)


Item = Issue | Loop


@dataclass(slots=True)
class Scope:
    """One launch. Built in program order: `begin_loop`, then for each trip its instructions and `end_trip`."""

    body: list[Item] = field(default_factory=list)
    leading: dict[int, int] = field(default_factory=dict)
    """Of masks, by their numbers, how many of the leading bits may be set; a register is none of them."""
    _open: list[tuple[Loop, int]] = field(default_factory=list)
    _registers: int = 0

    @property
    def in_loop(self) -> bool:
        """Whether what comes next stands in a loop."""
        return bool(self._open)

    def register(self) -> int:
        """Return the number of a register or mask that has not been used."""
        self._registers += 1
        return self._registers - 1

    def issue(
        self,
        instruction: Instruction,
        reads: Sequence[int] = (),
        results: int = 0,
        address: int = 0,
        rows: tuple[int, int, int] | None = None,
    ) -> tuple[int, ...]:
        """Add an executed instruction with so many results; return their numbers."""
        writes = tuple(self.register() for _ in range(results))
        self._here().append(Issue(instruction, tuple(reads), writes, address, rows))
        return writes

    def begin_loop(self, trips: int, line: int = 0, lead: int = 0, *, fixed: bool = True) -> None:
        """Begin a loop of so many trips, which `lead` ticks precede; one without any leaves nothing behind.

        `fixed`: how many they are is known before the run.
        """
        if trips <= 0:
            return
        loop = Loop([[]], line, lead, late=not fixed and self.in_loop)
        if loop.late:
            for around, _ in self._open:
                around.late = True
        self._here().append(loop)
        self._open.append((loop, trips))

    def end_trip(self) -> None:
        """End a trip of the innermost loop, and with its last one the loop."""
        loop, trips = self._open[-1]
        if len(loop.trips) == trips:
            self._open.pop()
        else:
            loop.trips.append([])

    def _here(self) -> list[Item]:
        return self._open[-1][0].trips[-1] if self._open else self.body


def issues(items: Sequence[Item]) -> Iterator[Issue]:
    """Yield what was issued, in program order."""
    for item in items:
        if isinstance(item, Issue):
            yield item
        else:
            for trip in item.trips:
                yield from issues(trip)
