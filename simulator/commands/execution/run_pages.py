"""`castsim run --html FILE`: the report of a run as a page."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from castsim.commands.execution.page_files import write_page
from castsim.commands.execution.run_views import window_of

if TYPE_CHECKING:
    from castsim.reports.documents import Document
    from castsim.reports.run_report import RunReport


def write_run_page(options: Namespace, report: RunReport, document: Document) -> list[str]:
    """Write the page if one was asked for, whole or not at all; return a sentence on it.

    Raises:
        ReadError: it cannot be written, or the window reaches beyond the run.
    """
    if options.html is None:
        return []
    from castsim.reports.pages.run_page import run_page  # noqa: PLC0415 - takes a while, and few ask for a page

    window = None if options.window is None else window_of(options)
    write_page(options.html, run_page(report, document, window))
    return [f"html: written to {options.html}"]
