"""A change of a program's text, what it is checked against, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from enum import StrEnum

from castsim.execution.run_limits import DEFAULT_LIMITS, Limits
from castsim.isa.codes import Codes
from castsim.isa.sources import Source
from castsim.isa.warning_text import WarningKind
from castsim.running import MAX_CYCLES, LoadedProgram, load
from castsim.targets import Target
from castsim.targets.options import with_options

TRIES = 4
"""Inputs on which what is not proven is tried at least."""

SECONDS = 10.0
"""Processor time after which no further change is made, and again as much to check those made."""


class SuggestionEvidence(StrEnum):
    """By what is known that a change keeps every bit of the outputs."""

    PROVEN = "proven"
    """Every output byte is the same term of the same input bytes."""
    TRIED = "tried"
    """Bit for bit over random and boundary inputs."""


@dataclass(frozen=True, slots=True)
class ProposedChange:
    """A text that may be better: `kind` names what was done, `line` where, `reason` why it should help.

    `recasts` tells one that takes elements through other steps, which has to be tried on every code; `warns`, of what
    the changed program is warned because of what the change is.
    """

    kind: str
    title: str
    reason: str
    line: int
    text: str
    recasts: bool = False
    warns: frozenset[WarningKind] = frozenset()


@dataclass(frozen=True, slots=True)
class Rejection:
    """A change that was looked at and is not offered, and `why`."""

    change: ProposedChange
    why: str


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A change that keeps the outputs and saves cycles; `runs` are the inputs that it was tried on."""

    change: ProposedChange
    how: SuggestionEvidence
    runs: int
    cycles_before: int
    cycles: int
    diff: str

    @property
    def gained(self) -> int:
        """Cycles saved."""
        return self.cycles_before - self.cycles

    @property
    def gained_percent(self) -> float:
        """Cycles saved, in percent of those of the program as it is."""
        return round(100 * self.gained / self.cycles_before, 2)


@dataclass(frozen=True, slots=True)
class RunConfig:
    """For which target and with what a program is run, as it is and changed."""

    target: str | Target | None = None
    entry: str | None = None
    args: Mapping[str, int | float] = field(default_factory=dict)
    inputs: Mapping[str, Codes | str] = field(default_factory=dict)
    options: Mapping[str, int | str] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    tries: int = TRIES
    seconds: float = SECONDS
    max_cycles: int = MAX_CYCLES
    limits: Limits = DEFAULT_LIMITS

    def loaded(self, source: Source, args: Mapping[str, int | float] | None = None) -> LoadedProgram:
        """Read a program.

        Raises:
            CastsimError: whatever it is refused for.
        """
        return load(
            source, self.target, self.entry, self.args if args is None else args,
            lambda chosen: with_options(chosen, self.options), limits=self.limits,
        )  # fmt: skip


def diff_of(file: str, before: str, after: str) -> str:
    """Return a unified diff that `patch` applies to the file."""
    lines: Sequence[str] = list(
        unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), file, file)
    )
    ended = [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines]
    return "".join(ended)
