"""Findings: registers that are read too early, in the bundle of their write, or without a write; broken issue rules."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import Span, StaleReadError

if TYPE_CHECKING:
    from castsim.isa.tpc.program import Slot, TpcInstruction


class StaleReadKind(StrEnum):
    """The fault of a read or a write."""

    EARLY = "early"
    """The reader was issued inside the latency window of the write and got the older value."""
    SAME_BUNDLE = "same bundle"
    """Reader and writer are in one bundle; by definition the reader gets the older value."""
    OVERTAKEN = "overtaken"
    """A write of a predicate lands before an earlier load into it, which therefore wins."""
    UNWRITTEN = "unwritten"
    """A read of a register that was never written and is zero."""


@dataclass(frozen=True, slots=True)
class InstructionSite:
    """One instruction of the program text: the number of its bundle, its slot."""

    bundle: int
    slot: Slot
    instruction: TpcInstruction = field(compare=False)

    def __repr__(self) -> str:
        return f"<Site line {self.span.line}, bundle {self.bundle}: {self.text}>"

    @property
    def span(self) -> Span:
        """The place in the text."""
        return self.instruction.span

    @property
    def text(self) -> str:
        """The instruction as canonical text."""
        from castsim.isa.tpc.parser import print_instruction  # noqa: PLC0415 - loads the table of instructions

        return print_instruction(self.instruction)


@dataclass(frozen=True, slots=True)
class StaleRead:
    """A pair of instructions of which the second did not see, or not keep, the result of the first.

    `place` is the register, memory or state. `distance` counts issued bundles between them, `needed` is
    the smallest one at which the new value is visible, `missing` the difference; all 0 if nothing was ever written.
    `first` is the number of the issued bundle of its first occurrence, `times` the number of occurrences.
    """

    kind: StaleReadKind
    place: str
    role: str
    reader: InstructionSite
    writer: InstructionSite | None
    distance: int
    needed: int
    first: int
    times: int

    def __repr__(self) -> str:
        writer = "" if self.writer is None else f" after line {self.writer.span.line}, {self.missing} bundles missing"
        return f"<StaleRead {self.kind}: {self.place} in line {self.reader.span.line}{writer}, {self.times} times>"

    @property
    def stale(self) -> bool:
        """Whether it leaves a stale value."""
        return self.kind in STALE

    @property
    def missing(self) -> int:
        """Number of bundles missing between writer and reader."""
        return self.needed - self.distance

    def sentence(self) -> str:
        """Return the finding as a sentence for messages."""
        reader = f"'{self.reader.text}' (line {self.reader.span.line}, bundle {self.reader.bundle})"
        if self.writer is None:
            return f"{reader} reads {self.place}, which is never written"
        writer = f"'{self.writer.text}' (line {self.writer.span.line}, bundle {self.writer.bundle})"
        if self.kind is StaleReadKind.OVERTAKEN:
            return f"{reader} writes {self.place} before {writer} lands, which then overwrites it: {self._distances()}"
        return f"{reader} reads the old value of {self.place}, written by {writer}: {self._distances()}"

    def _distances(self) -> str:
        return f"distance {self.distance}, needed {self.needed}, {self.missing} missing"


STALE = (StaleReadKind.EARLY, StaleReadKind.OVERTAKEN)
"""The kinds of findings that leave a stale value; reports list the others separately."""

Counts = Mapping[tuple[object, ...], int]
"""The number of occurrences of each finding."""


class Findings:
    """Collection of findings; repetitions of one pair at one distance are counted. `stop` raises at a stale one."""

    def __init__(self, *, wanted: bool, stop: bool = False) -> None:
        self.wanted = wanted
        self._stop = stop
        self._first: dict[tuple[object, ...], StaleRead] = {}
        self._times: dict[tuple[object, ...], int] = {}

    def add(
        self,
        kind: StaleReadKind,
        location: str,
        role: str,
        reader: InstructionSite,
        now: int,
        writer: InstructionSite | None = None,
        distance: int = 0,
        needed: int = 0,
    ) -> None:
        """Record a finding of the bundle issued as number `now`.

        Raises:
            StaleReadError: it is a stale read, and those stop the run.
        """
        if not self.wanted:
            return
        writer_key = None if writer is None else (writer.bundle, writer.slot)
        key = (kind, location, role, reader.bundle, reader.slot, writer_key, distance)
        self._times[key] = self._times.get(key, 0) + 1
        if key not in self._first:
            self._first[key] = stale = StaleRead(kind, location, role, reader, writer, distance, needed, now, 1)
            if self._stop and kind in STALE:
                raise StaleReadError(stale.sentence(), span=reader.span)

    def counts(self) -> Counts:
        """Return how often each finding has occurred so far."""
        return dict(self._times)

    def repeat(self, before: Counts, after: Counts, times: int) -> None:
        """Add the findings between two moments `times` more times."""
        for key, count in after.items():
            self._times[key] += times * (count - before.get(key, 0))

    def all(self) -> tuple[StaleRead, ...]:
        """Return all findings in order of first occurrence."""
        return tuple(
            StaleRead(f.kind, f.place, f.role, f.reader, f.writer, f.distance, f.needed, f.first, self._times[key])
            for key, f in self._first.items()
        )


@dataclass(frozen=True, slots=True)
class LintFinding:
    """A broken rule: its name, location, and explanation. `bundle` counts from 0.

    `certain` is False for findings that depend on more than the text: the path, a predicate, initial register values.
    """

    rule: str
    bundle: int
    message: str
    span: Span
    certain: bool = True
