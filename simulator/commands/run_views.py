"""The options of `castsim run` that show a run cycle by cycle, and its page, with the changes that were tried."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.commands.option_parsers import assignments, run_limits_of, scalars_of
from castsim.commands.page_files import check_file, write_page
from castsim.engines import observe
from castsim.files import whole_file
from castsim.isa.errors import CastsimError, EngineError, ReadError
from castsim.isa.reading import Language, Source
from castsim.reports.views.recording import SegmentRecorder, Window

if TYPE_CHECKING:
    from rich.console import RenderableType

    from castsim.execution.timing import Listener
    from castsim.exploration.advice_search import Advice
    from castsim.reports.documents import Document
    from castsim.reports.pages.blocks import Page
    from castsim.reports.run_report import RunReport
    from castsim.reports.views.timeline import Timeline
    from castsim.running import Result


SHOWN = 80
"""Cycles that the text view shows unless a window is asked for."""


def wanted(options: Namespace) -> bool:
    """Whether the run must be observed in detail."""
    return bool(options.timeline or options.trace or options.kanata)


def check_views(options: Namespace) -> None:
    """Reject views that cannot be shown or written, before anything is simulated.

    Raises:
        ReadError: a window of nothing or without a view, a file that cannot be made or is named twice.
    """
    if options.window is not None and not wanted(options) and options.html is None:
        legal = ("--timeline", "--trace FILE", "--kanata FILE", "--html FILE")
        raise ReadError("--window has nothing to show", legal=legal)
    window_of(options)
    files = {os.path.realpath(options.program): "PROGRAM"}
    written = {"--json": options.json, **{f"--{name}": getattr(options, name) for name in ("trace", "kanata", "html")}}
    for name, text in written.items():
        if text is None or (name == "--json" and text == "-"):
            continue
        path = Path(text)
        if name != "--json":
            check_file(name, text)
        if path.is_file() or not path.exists():  # a device takes more than one
            other = files.setdefault(os.path.realpath(path), name)
            if other != name:
                raise ReadError(f"{other} and {name} name the same file, '{text}'")


def window_of(options: Namespace) -> Window:
    """Return the window asked for.

    Raises:
        ReadError: it has another form.
    """
    return Window() if options.window is None else Window.parse(options.window.strip())


def timeline_of(options: Namespace, result: Result, listener: Listener | None) -> Timeline | None:
    """Return the recording of the window, None if no view was requested; `listener` receives the progress.

    It comes from a run of its own that goes no further than the window; all else is in the result of either engine.

    Raises:
        ReadError: the window reaches beyond the run.
    """
    if not wanted(options):
        return None
    from castsim.reports.views.timeline import make_timeline  # noqa: PLC0415 - few runs need it

    loaded = result.loaded
    window = window_of(options)
    start, end = window.within(result.cycles)
    if options.window is None and options.trace is None and options.kanata is None:
        end = min(end, SHOWN)
    window = Window(start, end)
    recorder = SegmentRecorder(window, listener)
    recorder.issued = observe(loaded.tree, loaded.target, recorder, engine=options.engine)
    return make_timeline(f"{loaded.file} @{loaded.entry}", loaded.tree, result.timing, recorder, window)


def write_views(options: Namespace, result: Result, timeline: Timeline) -> list[str]:
    """Write the files asked for, each whole or not at all; return a sentence for each.

    Raises:
        ReadError: one cannot be written.
    """
    if options.trace is None and options.kanata is None:
        return []
    from castsim.reports.views import perfetto  # noqa: PLC0415 - as above
    from castsim.reports.views.timeline import dependences  # noqa: PLC0415 - as above
    from castsim.running.program_runs import launch_slices  # noqa: PLC0415 - few runs need these

    notes: list[str] = []
    loaded = result.loaded
    found = dependences(loaded.tree, timeline)
    target = loaded.target
    for name, text in (("trace", options.trace), ("kanata", options.kanata)):
        if text is None:
            continue
        if name == "trace":
            sizes = {each: memory.capacity_bytes for each, memory in target.memories.items()}
            amounts = perfetto.counters(loaded.tree, result.timing, timeline, sizes)
            inside = launch_slices(loaded.tree, result.timing, target)
            data = perfetto.perfetto_text(timeline, found, amounts, target.name, inside)
        else:
            data = (f"{line}\n" for line in perfetto.kanata_lines(timeline, found))
        try:
            with whole_file(Path(text)) as file:
                for piece in data:
                    file.write(piece.encode())
        except OSError as error:
            raise ReadError(f"--{name} {text}: {error.strerror or error}") from None
        cut = "" if timeline.cut is None else ", cut there because there was too much to keep; choose a --window"
        shown = f"cycles {timeline.start} .. {timeline.end - 1}" if timeline.end > timeline.start else "no cycles"
        notes.append(f"{name}: {shown} written to {text}{cut}")
    return notes


def timeline_text(
    options: Namespace, timeline: Timeline | None, notes: list[str], width: int
) -> Iterator[RenderableType]:
    """Yield what to print behind the report."""

    from rich.text import Text  # noqa: PLC0415 - only if printed

    yield from (Text(line) for line in notes)
    if options.timeline and timeline is not None:
        from castsim.reports.views.timeline import pipeline_lines  # noqa: PLC0415 - as above

        end = timeline.end if options.window is not None else min(timeline.end, timeline.start + SHOWN)
        rows = tuple(row for row in timeline.rows if min(row.dispatched, row.start) < end)
        shown = replace(timeline, end=end, rows=rows)
        yield Text()
        yield Text("\n".join(pipeline_lines(shown, width)), no_wrap=True, overflow="ignore")


def write_run_page(options: Namespace, report: RunReport, document: Document, *, is_read: bool) -> list[str]:
    """Write the page if one was asked for, whole or not at all; return a sentence on it.

    `is_read` tells a program whose text is what a file holds; others are recorded or compiled.

    Raises:
        ReadError: it cannot be written, or the window reaches beyond the run.
    """
    if options.html is None:
        return []
    window = None if options.window is None else window_of(options)
    write_page(options.html, page_of_run(options, report, document, window, is_read=is_read))
    return [f"html: written to {options.html}"]


_ADVICE_SECONDS = 1.0
"""Processor time for making changes of a run that is shown, and as much for checking them."""

_MOST_ADVISED = 20_000
"""Executions of a program that is changed beside its run: each change is run again, on both engines."""


def page_of_run(
    options: Namespace, report: RunReport, document: Document, window: Window | None, *, is_read: bool
) -> Page:
    """Return the page; `is_read` tells a program whose text is what a file holds.

    Raises:
        ReadError: the window reaches beyond the run.
    """
    from castsim.commands.editor.grammars import page_grammar  # noqa: PLC0415 - takes a while, and few ask for a page
    from castsim.reports.pages.run_page import run_page  # noqa: PLC0415 - as above

    result = report.result
    grammar = page_grammar("pto" if result.loaded.target.has_tiles else "tpc")
    return run_page(report, document, window, advice_of(options, result, is_read=is_read), grammar)


def advice_of(options: Namespace, result: Result, *, is_read: bool) -> Advice | str | None:
    """Return the changes that save cycles of a run, or why none was tried; None where the run itself is in doubt."""
    if result.untimed or result.races or result.stale_reads:
        return None
    from castsim.exploration.advice_search import advice_on  # noqa: PLC0415 - as above
    from castsim.exploration.equivalence import original  # noqa: PLC0415 - as above
    from castsim.exploration.program_edits import RunConfig  # noqa: PLC0415 - as above

    loaded = result.loaded
    changing = ("sync", "opaque", "declare", "machine", "unsafe_scratch", "max_cycles")
    given = [name for name in changing if getattr(options, name) not in (None, [], False, "insert")]
    if not is_read or not loaded.source:
        return "castsim advise changes kernels in C and C++" if loaded.source else "a binary has no text"
    if given:
        return f"the run has --{given[0].replace('_', '-')}"
    if len(result.timing.executions) > _MOST_ADVISED:
        return f"more than {_MOST_ADVISED:,} executions; castsim advise tries them"
    setting = RunConfig(
        loaded.target, loaded.entry if loaded.target.has_tiles else None,
        scalars_of(options),
        assignments("--in", options.inputs), seconds=_ADVICE_SECONDS, limits=run_limits_of(options),
    )  # fmt: skip
    language = Language.TILES if loaded.target.has_tiles else Language.ASSEMBLY
    try:
        return advice_on(original(Source(loaded.file, language, loaded.source), setting))
    except (CastsimError, EngineError) as error:
        return f"castsim advise refuses it: {str(error).partition(chr(10))[0]}"
