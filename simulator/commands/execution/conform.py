"""The execution of `castsim conform`."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from typing import TYPE_CHECKING

from castsim.commands.execution.page_files import check_page, with_note, write_page_of
from castsim.commands.execution.workers import ledger_of, removal, resume_hint, workers_of
from castsim.commands.option_parsers import assignments
from castsim.commands.outcome import Outcome
from castsim.isa.errors import ReadError
from castsim.planning.conformance import conform
from castsim.reports.conform import conform_document
from castsim.reports.progress import stage_progress
from castsim.specifications import parse_specification

if TYPE_CHECKING:
    from rich.console import RenderableType

    from castsim.planning.conformance import Matrix


def execute(options: Namespace) -> Outcome:
    """Plan the cells.

    Raises:
        ReadError: what was typed; the ledger; the scheduler.
        IllegalError: no cast is left.
        EngineError: workers that are others, or die.
    """
    spec, version, attributes = parse_specification(options.spec)
    if attributes:
        raise ReadError("the matrix goes through all attributes; name the specification and its version only")
    check_page(options, {})
    workers, ledger = workers_of(options), ledger_of(options)
    values = assignments("--option", options.options)
    names = [name for text in options.target for name in text.split(",")]
    with resume_hint(ledger, "matrix"), stage_progress(quiet=options.quiet) as progress:
        found = conform(
            spec,
            names,
            version=version,
            src=options.src,
            dst=options.dst,
            prove=options.prove,
            workers=workers.count,
            progress=progress,
            options=values,
            scheduler=workers.scheduler,
            ledger=ledger,
        )

    write_page_of(found, options)

    def text(_: int, *, summary: bool = False) -> RenderableType:
        return matrix_report(found, options, summary=summary, markdown=options.markdown)

    return Outcome(conform_document(found), text, summary=partial(text, summary=True), delivered=removal(ledger))


def matrix_report(
    found: Matrix, options: Namespace, *notes: str, summary: bool, markdown: bool = False
) -> RenderableType:
    """Return a matrix as text, with notes under it."""
    from castsim.reports import conform as texts  # noqa: PLC0415 - rich, only if printed

    if markdown and not summary:
        return texts.markdown_text(found)
    return with_note(texts.conform_summary(found) if summary else texts.conform_text(found), options, *notes)
