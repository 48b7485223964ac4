"""`castsim run --html FILE`: the report of a run as a page."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.commands.execution.run_views import window_of
from castsim.files import whole_file
from castsim.isa.errors import ReadError
from castsim.reports.pages.shell import page_html

if TYPE_CHECKING:
    from castsim.reports.documents import Document
    from castsim.reports.pages.blocks import Page
    from castsim.reports.run_report import RunReport


def write_run_page(options: Namespace, report: RunReport, document: Document) -> list[str]:
    """Write the page if one was asked for, whole or not at all; return a sentence on it.

    Raises:
        ReadError: it cannot be written, or the window reaches beyond the run.
    """
    if options.html is None:
        return []
    from castsim.reports.pages.run_page import run_page  # noqa: PLC0415 - loads rich, and few ask for a page

    window = None if options.window is None else window_of(options)
    write_page(options.html, run_page(report, document, window))
    return [f"html: written to {options.html}"]


def write_page(file: str, page: Page) -> None:
    """Write a page to a file, which is then complete or as it was.

    Raises:
        ReadError: it cannot be written.
    """
    data = page_html(page).encode("utf-8", "backslashreplace")
    try:
        with whole_file(Path(file)) as target:
            target.write(data)
    except (OSError, ValueError) as error:
        raise ReadError(f"--html {file}: cannot be written: {getattr(error, 'strerror', None) or error}") from None
