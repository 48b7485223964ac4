"""Cycles of the lines of a program, from a run without values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from castsim.editor.document import Settings, Text
from castsim.execution.entry_and_target import entries
from castsim.execution.interpreter.arguments import core_numbers
from castsim.isa import pto
from castsim.isa.errors import CastsimError, EngineError
from castsim.isa.sources import Language, Source
from castsim.running.loading import load
from castsim.running.runs import run_loaded
from castsim.running.source_lines import SourceLine, source_lines
from castsim.synchronisation.races import IGNORE

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
