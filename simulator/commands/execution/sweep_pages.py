"""`castsim sweep --report FILE --html PAGE`: the results of a sweep as a page."""

from __future__ import annotations

from pathlib import Path

from castsim.commands.execution.page_files import write_page
from castsim.isa.errors import ReadError
from castsim.reports.documents import Document
from castsim.reports.pages.sweep_page import sweep_page


def write_sweep_page(report: str, html: str) -> Document:
    """Draw a file of results, and return the document of the same.

    Raises:
        ReadError: the file is none; the page cannot be written.
    """
    try:
        page, document = sweep_page(Path(report), html)
    except ReadError as error:
        raise ReadError(f"--report {error.message}", legal=error.legal) from None
    write_page(html, page)
    return document
