"""An open text, and what is known of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from castsim.execution.entry_and_target import choose_target, entries
from castsim.execution.interpreter.arguments import core_numbers
from castsim.isa import pto
from castsim.isa.errors import CastsimError, EngineError
from castsim.isa.sources import Language, Source
from castsim.machines.vliw.source import chosen_target
from castsim.running.loading import load
from castsim.running.request import LoadRequest
from castsim.running.runs import run_loaded
from castsim.running.source_lines import SourceLine, source_lines
from castsim.synchronisation.races import IGNORE
from castsim.targets import Target, load_target


@dataclass(frozen=True, slots=True)
class Settings:
    """What the editor asks for beyond a text: a target by name or path, values of scalar arguments."""

    target: str | None = None
    args: Mapping[str, int | float] = field(default_factory=dict)

    def request(self) -> LoadRequest:
        """Return what a program is loaded by.

        Raises:
            ReadError, TargetDataError: the target cannot be read.
        """
        target: Target | None = None if self.target is None else load_target(self.target)
        return LoadRequest(target, args=self.args)


@dataclass(frozen=True)
class Text:
    """One version of a text. `name` is what messages call it, `language` one of `castsim.checking.LANGUAGES`."""

    name: str
    language: str
    text: str
    version: int = 0

    @cached_property
    def lines(self) -> list[str]:
        """Its lines, without their ends."""
        return self.text.split("\n")

    def with_lines(self, lines: list[str]) -> Text:
        """Return another version of the text."""
        return Text(self.name, self.language, "\n".join(lines), self.version)


def normalised(text: str) -> str:
    """Return a text with `\\n` at the ends of all lines, as `castsim.check_text` reads it."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


# Cycles of the lines of a program, from a run without values.

_MOST_CYCLES = 10**9


@dataclass(frozen=True, slots=True)
class LineCycles:
    """What a line, counted from 1, costs: cycles that its pipe spends on all of its executions, work and waiting."""

    line: int
    cycles: int
    executions: int
    about: str

    @property
    def label(self) -> str:
        """What stands beside the line."""
        times = f"{self.executions:,} x, " if self.executions > 1 else ""
        return f"{times}{self.cycles:,} cycle{'s' * (self.cycles != 1)}"


def line_cycles(text: Text, settings: Settings) -> tuple[LineCycles, ...]:
    """Return the cycles of a program's lines; none of functions that lack an argument, or that are refused."""
    try:
        timed = list(_timed(text, settings))
    except (CastsimError, EngineError):
        return ()
    by_line: dict[int, list[SourceLine]] = {}
    for one in timed:
        by_line.setdefault(one.span.line, []).append(one)
    # The slots of a bundle run at the same time, statements that share a line one after the other.
    total = max if text.language == "tpc" else sum
    return tuple(
        LineCycles(line, total(one.pipe_cycles for one in found), max(one.executions for one in found), _about(found))
        for line, found in sorted(by_line.items())
    )


def _timed(text: Text, settings: Settings) -> Iterator[SourceLine]:
    request = settings.request()
    source = Source(text.name, Language(text.language), text.text)
    if source.language is Language.ASSEMBLY:
        yield from _lines(source, settings, None)
        return
    if source.language is not Language.TILES:
        return  # sizes and index space of a kernel in C stand in no text
    for function in entries(pto.parse(text.text, text.name)):
        scalars = {one.name for one in function.arguments if isinstance(one.type, pto.ScalarType)}
        if scalars <= request.args.keys():
            taken = scalars | core_numbers(function)
            given = {name: value for name, value in settings.args.items() if name in taken}
            yield from _lines(source, replace(settings, args=given), function.name)


def _lines(source: Source, settings: Settings, entry: str | None) -> Iterator[SourceLine]:
    request = settings.request()
    try:
        loaded = load(source, request.target, entry, request.args)
        if loaded.tree is None and source.language is Language.TILES:
            return  # its path rests on what memory holds
        result = run_loaded(
            loaded, {}, timing_only=True, max_cycles=_MOST_CYCLES, races=IGNORE, stale_reads=IGNORE
        )  # fmt: skip
    except (CastsimError, EngineError):
        return
    if not result.untimed:
        yield from source_lines(result.loaded.tree, result.timing)


def _about(found: list[SourceLine]) -> str:
    return "\n".join(
        f"{one.text}: {one.executions:,} execution{'s' * (one.executions != 1)} on {one.pipe}, cycles "
        f"{one.first_start:,} to {one.last_end:,}; {one.pipe_cycles:,} of its pipe, work and waiting, "
        f"{one.cycles:,} from start to end of each, added up"
        for one in found
    )


# The target of a text, also of one that cannot be read as a whole.

_ARCHITECTURE = re.compile(r'pto\.target_arch\s*=\s*"([^"\n]*)"')


def target_of_text(text: Text, settings: Settings) -> Target | None:
    """Return the target that is asked for, else the one that a text names; None if it cannot be told."""
    try:
        asked = settings.request().target
        if text.language == "pto":
            named = _ARCHITECTURE.search(text.text)
            return choose_target(named and named[1], asked)
        return chosen_target(text.text, text.name, asked)
    except CastsimError:
        return None
