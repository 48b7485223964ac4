"""`castsim run --html FILE`: the report of a run as a page, with the changes of its program that were tried."""

from __future__ import annotations

from argparse import Namespace

from castsim.commands.editor.grammars import page_grammar
from castsim.commands.option_parsers import assignments, run_limits_of, scalars_of
from castsim.exploration.advice_search import Advice, advice_on
from castsim.exploration.equivalence import original
from castsim.exploration.program_edits import RunConfig
from castsim.isa.errors import CastsimError, EngineError
from castsim.isa.sources import Language, Source
from castsim.reports.documents import Document
from castsim.reports.pages.blocks import Page
from castsim.reports.pages.run_page import run_page
from castsim.reports.run_report import RunReport
from castsim.reports.views.recording import Window
from castsim.running import Result

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
    result = report.result
    grammar = page_grammar("pto" if result.loaded.target.has_tiles else "tpc")
    return run_page(report, document, window, advice_of(options, result, is_read=is_read), grammar)


def advice_of(options: Namespace, result: Result, *, is_read: bool) -> Advice | str | None:
    """Return the changes that save cycles of a run, or why none was tried; None where the run itself is in doubt."""
    if result.untimed or result.races or result.stale_reads:
        return None
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
