"""The casts of a target, in the same words for every mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from castsim.isa.formats import Format
from castsim.machines.registry import MachinePart
from castsim.targets import Target


@dataclass(frozen=True, slots=True)
class PairRow:
    """One legal pair in a table.

    `modes` are those it honours (none: there is one instruction), `default` is in force when a program names no mode,
    `fallback` when it names one that the pair does not have; both None where nothing is ever rounded. `saturation`
    is the default in the words of `saturation_in_force`, `switchable` says when the other value takes effect. `scratch`
    names the sequence that runs through a tmp tile.
    """

    src: str
    dst: str
    modes: tuple[str, ...]
    default: str | None
    fallback: str | None
    saturation: str
    switchable: str
    scratch: str | None


@dataclass(frozen=True, slots=True)
class ModeRow:
    """The result of requesting a rounding mode (`requested` default: none is named)."""

    requested: str
    in_force: str | None
    mnemonic: str
    warning: str | None


@dataclass(frozen=True, slots=True)
class SaturationRow:
    """The result of requesting a saturation mode, without and with a tmp tile."""

    requested: str
    scratch: bool
    in_force: str
    warning: str | None


@dataclass(frozen=True, slots=True)
class ScratchRow:
    """The sequence through a tmp tile: its name and the operations it issues for one element."""

    steps: str
    operations: tuple[str, ...]
    status: str
    source: str


@dataclass(frozen=True, slots=True)
class PairDetail:
    """One legal pair in full; `configuration` are the mechanism's own numbers of the instruction."""

    row: PairRow
    modes: tuple[ModeRow, ...]
    saturation: tuple[SaturationRow, ...]
    configuration: Mapping[str, Any]
    scratch: ScratchRow | None
    note: str
    status: str
    source: str


class PairsReport(Protocol):
    """The interface of a mechanism's module; `target` is of the mechanism."""

    def rows(self, target: Target) -> tuple[PairRow, ...]:
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


def pair_rows(target: Target) -> tuple[PairRow, ...]:
    """Return every legal pair of a target, in the order of its description."""
    return PAIRS.of(target).rows(target)


def pair_detail(target: Target, src: Format, dst: Format) -> PairDetail:
    """Return one pair in full.

    Raises:
        IllegalError: the target does not have it; names the destinations it has.
    """
    return PAIRS.of(target).detail(target, src, dst)
