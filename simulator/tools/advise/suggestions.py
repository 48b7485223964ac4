"""A change to a program's text, the run that checks it, and its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import unified_diff
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

from castsim.execution.run_limits import DEFAULT_LIMITS, Limits
from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import WarningKind
from castsim.isa.formats import Codes
from castsim.isa.reading import Source
from castsim.reports.documents import Keys, apart, derived, record, says
from castsim.reports.schemas.keys import Cycles, Line, Percent
from castsim.running.loaded import LoadedProgram
from castsim.running.program_loading import load
from castsim.targets.description import with_options
from castsim.targets.loader import Target

TRIES = 4
"""Minimum number of inputs on which an unproven change is tried."""

SECONDS = 3.0
"""Processor time in seconds for making changes, and again for checking them."""


class SuggestionEvidence(StrEnum):
    """Evidence that a change keeps every bit of the outputs."""

    PROVEN = "proven"
    """Every output byte is the same term of the same input bytes."""
    TRIED = "tried"
    """Equal bit for bit on random and boundary inputs."""


@dataclass(frozen=True, slots=True)
class ProposedChange:
    """A text that may be better: `kind` names the change, `line` its position, `reason` its expected effect.

    `recasts` marks a change of intermediate formats, which must be tried on every code; `warns` are the warnings that
    the change inherently adds.
    """

    kind: str
    title: str
    reason: str
    line: int
    text: str
    recasts: bool = False
    warns: frozenset[WarningKind] = frozenset()


@record
class RejectedChange(Keys):
    """A change that was tried and rejected."""

    change: ProposedChange = apart()
    kind: str = derived("Kind of the change, as in docs/tools/advise.md.", "change.kind")
    title: str = derived("The change and its place.", "change.title")
    line: Line = derived("The line where it begins.", "change.line")
    why: str = says("The reason why it is not offered.")


HowKept: TypeAlias = Annotated[SuggestionEvidence, ("enum", tuple(SuggestionEvidence)), ("type", "string")]
"""Evidence that the outputs stay the same."""


def _gained_percent(change: Change) -> float:
    return round(100 * change.gained / change.cycles_before, 2)


@record
class Change(Keys):
    """A change that keeps the outputs and saves cycles."""

    change: ProposedChange = apart()
    number: int = says("Number of the change, from 1, for `--apply`.")
    kind: str = derived("Kind of the change, as in docs/tools/advise.md.", "change.kind")
    title: str = derived("The change and its place.", "change.title")
    reason: str = derived("The reason why it saves cycles.", "change.reason")
    line: Line = derived("The line where it begins.", "change.line")
    how: HowKept = says("Evidence that the outputs stay the same.")
    runs: int = says("Number of inputs for which both programs gave the same bits.")
    cycles_before: int = apart()
    cycles: Cycles = says("Cycles of the changed program.")
    gained: Cycles = derived("Cycles saved.", lambda change: change.cycles_before - change.cycles)
    gained_percent: Percent = derived(
        "Cycles saved, as a percentage of those of the original program.", _gained_percent
    )
    diff: str = says("A unified diff of the file.")

    @property
    def evidence(self) -> str:
        """Evidence that the outputs stay the same, in words."""
        return self.how.value if self.how is SuggestionEvidence.PROVEN else f"{self.how} on {self.runs} inputs"


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """A search for changes: target and arguments of the runs, ranges of inputs, and limits of the search."""

    target: str | Path | Target | None = None
    entry: str | None = None
    args: Mapping[str, int | float] = field(default_factory=dict)
    inputs: Mapping[str, Codes | str] = field(default_factory=dict)
    options: Mapping[str, int | str] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    tries: int = TRIES
    seconds: float = SECONDS
    limits: Limits = DEFAULT_LIMITS

    def loaded(self, source: Source) -> LoadedProgram:
        """Read a program.

        Raises:
            CastsimError: the program is refused.
        """
        return load(
            source, self.target, self.entry, self.args, lambda chosen: with_options(chosen, self.options),
            limits=self.limits,
        )  # fmt: skip


def diff_of(file: str, before: str, after: str) -> str:
    """Return a unified diff that `patch` applies to the file."""
    lines: Sequence[str] = list(
        unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), file, file)
    )
    ended = [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines]
    return "".join(ended)
