"""The command `conform`: plan every cast of a specification on every target."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from typing import TYPE_CHECKING

from castsim.commands.option_parsers import assignments
from castsim.commands.outcome import CommandOutcome
from castsim.commands.run_views import check_page, ledger_of, removal, resume_hint, write_page_of
from castsim.isa.errors import ReadError
from castsim.reports.progress import stage_progress
from castsim.running.acceptance import parse_specification
from castsim.tools.distribution.distributing import workers_of
from castsim.tools.lowering.conform_report import conform_document, matrix_report
from castsim.tools.lowering.conformance import conform

if TYPE_CHECKING:
    from rich.console import RenderableType


def execute(options: Namespace) -> CommandOutcome:
    """Plan every cell of the matrix.

    Raises:
        ReadError: an option, the ledger or the scheduler is wrong.
        IllegalError: the choice leaves no cast.
        EngineError: a worker runs another version or dies.
    """
    spec, version, attributes = parse_specification(options.spec)
    if attributes:
        raise ReadError("the matrix covers all attributes; give only the specification and its version")
    check_page(options.html, {"--json": options.json})
    workers = workers_of(options.workers, options.scheduler)
    ledger = ledger_of(options.ledger, {"--json": options.json, "--html": options.html})
    values = assignments("--option", options.options)
    names = [name for text in options.target for name in text.split(",")]
    with resume_hint(ledger), stage_progress(options.quiet, options.json) as progress:
        matrix = conform(
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

    write_page_of(options.html, "castsim.tools.lowering.page", matrix)

    def text(_: int, *, summary: bool = False) -> RenderableType:
        return matrix_report(matrix, options.html, summary=summary, markdown=options.markdown)

    return CommandOutcome(
        conform_document(matrix), text, summary=partial(text, summary=True), delivered=removal(ledger)
    )
