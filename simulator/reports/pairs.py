"""The casts of a target, in the same words for every mechanism."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from castsim.isa.formats import Format
from castsim.machines.registry import MachinePart
from castsim.reports.documents import Keys, says
from castsim.targets.description import Status
from castsim.targets.loader import Target


@dataclass(frozen=True, slots=True)
class PairEntry(Keys):
    """A type pair."""

    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    modes: Sequence[str] = says("The rounding modes that it honours; none if there is one instruction only.")
    default: str | None = says("The mode in force if none is named; null where nothing is rounded.")
    fallback: str | None = says("The mode in force if one is named that the pair lacks; null where there is none.")
    saturation: str = says()
    """The default, `on` or `off`, where there is a choice; else what happens beyond the range by the options in force:
    `clamps`, `none: inf`, `none: NaN`, `none: low bits`, or `not needed` where all numbers have their place."""
    switchable: str = says("When the other value takes effect.")
    scratch: str | None = says("The sequence that runs through a tmp tile; null if there is none.")


@dataclass(frozen=True, slots=True)
class ModeEntry(Keys):
    """What asking for a rounding mode gives."""

    requested: str = says("The mode asked for; `default` if none is named.")
    in_force: str | None = says("The mode in force; null where nothing is rounded.")
    mnemonic: str = says("The instruction.")
    warning: str | None = says("What a program is warned of; null for nothing.")


@dataclass(frozen=True, slots=True)
class SaturationEntry(Keys):
    """What asking for a saturation mode gives."""

    requested: str = says("The mode asked for; `default` if none is named.")
    scratch: bool = says("Whether a tmp tile is given.")
    in_force: str = says("The mode in force, in the words of `saturation` of the pair.")
    warning: str | None = says("What a program is warned of; null for nothing.")


@dataclass(frozen=True, slots=True)
class ScratchSequence(Keys):
    """The sequence through a tmp tile."""

    steps: str = says("Its name.")
    operations: Sequence[str] = says("The operations that it issues for one element.")
    status: Status = says("How well it is known.")
    source: str = says("Where it is from.")


@dataclass(frozen=True, slots=True)
class PairDetail:
    """One legal pair in full; `configuration` are the mechanism's own numbers of the instruction."""

    row: PairEntry
    modes: tuple[ModeEntry, ...]
    saturation: tuple[SaturationEntry, ...]
    configuration: Mapping[str, Any]
    scratch: ScratchSequence | None
    note: str
    status: str
    source: str


class PairsReport(Protocol):
    """The interface of a mechanism's module; `target` is of the mechanism."""

    def rows(self, target: Target) -> tuple[PairEntry, ...]:
        """See `pair_rows`."""
        ...

    def detail(self, target: Target, src: Format, dst: Format) -> PairDetail:
        """See `pair_detail`."""
        ...


PAIRS: MachinePart[PairsReport] = MachinePart(
    "report on the casts",
    {
        "strided-repeat": "castsim.reports.pairs_strided",
        "vector-function": "castsim.reports.pairs_vector_function",
        "vliw": "castsim.reports.pairs_vliw",
    },
)
"""The module that describes the casts of each mechanism."""


def pair_rows(target: Target) -> tuple[PairEntry, ...]:
    """Return every legal pair of a target, in the order of its description."""
    return PAIRS.of(target).rows(target)


def pair_detail(target: Target, src: Format, dst: Format) -> PairDetail:
    """Return one pair in full.

    Raises:
        IllegalError: the target does not have it; names the destinations it has.
    """
    return PAIRS.of(target).detail(target, src, dst)
