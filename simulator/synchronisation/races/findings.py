"""The findings of the detector, in words and as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from castsim.isa.errors import EngineError, RaceError, Span

_SHOWN = 5
"""Findings that a refusal spells out."""


class RaceKind(StrEnum):
    """The kind of a finding."""

    DEADLOCK = "deadlock"
    UNMATCHED = "unmatched flag"
    PENDING_TWICE = "flag pending twice"
    RACE = "race"
    MISSING_BARRIER = "missing barrier"
    UNWRITTEN = "nothing wrote"
    CONTROL = "control state"
    UNFINISHED = "unfinished at the end"


@dataclass(frozen=True, slots=True)
class RaceRegion:
    """Bytes [start, end) of an address space; in the first trips, where loops move them."""

    space: str
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.space} bytes {self.start} .. {self.end - 1}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    `spans` are the places of the instructions involved in program order, the finding belongs to the last; `pipes` are
    those of the instructions, or signaller and waiter of a flag. `missing` says what would put it right.
    """

    kind: RaceKind
    message: str
    spans: tuple[Span, ...]
    pipes: tuple[str, ...]
    region: RaceRegion | None = None
    missing: str = ""

    @property
    def sentence(self) -> str:
        """The finding with its remedy."""
        return f"{self.kind}: {self.message}" + (f"; missing: {self.missing}" if self.missing else "")


def refusal(findings: Sequence[Finding]) -> RaceError | EngineError:
    """Return the error that rejects a program for its findings, of which there is at least one."""
    spelt = [finding.sentence for finding in findings[:_SHOWN]]
    more = len(findings) - len(spelt)
    message = "\n  ".join(spelt) + (f"\n  and {more} more" if more else "")
    span = findings[0].spans[-1]
    if findings[0].kind is RaceKind.DEADLOCK:
        return EngineError(message, span=span)
    return RaceError(message, span=span, legal=("--races report", "--races ignore"))
