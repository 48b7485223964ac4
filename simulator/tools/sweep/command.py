"""The command `sweep`: estimate or simulate every point of a grid, and write a Parquet file."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from rich.text import Text

from castsim.commands.outcome import STDOUT, CommandOutcome
from castsim.commands.run_views import check_file, check_page, refuse_same, resume_hint, write_page
from castsim.files import LEDGER
from castsim.isa.errors import ReadError, escaped
from castsim.reports.documents import Document
from castsim.reports.numbers import grouped
from castsim.reports.progress import stage_progress
from castsim.tools.distribution.distributing import refuse_both, workers_of
from castsim.tools.sweep.studies import Sweep, sweep

_OTHER_SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".xlsx", ".html", ".npy", ".txt")
"""Suffixes of other file formats, in lower case: a user of one expects that format."""


def execute(options: Namespace) -> CommandOutcome:
    """Sweep, or draw the results of a sweep; the exit code is 1 if a row failed.

    Raises:
        ReadError: an option, the specification, the ledger or the scheduler is wrong.
        EngineError: a worker runs another version or dies.
        KeyboardInterrupt: SIGINT or SIGTERM arrived; the ledger contains all finished points.
    """
    if options.report is not None or options.html is not None:
        given = {"SPEC": options.specification, "--out": options.out, "--workers": options.workers,
                 "--scheduler": options.scheduler}  # fmt: skip
        return _drawn(options.report, options.html, given, options.json)
    _check(options.specification, options.out, options.json)
    refuse_both(options.workers, options.scheduler)
    workers = None if options.workers is None else workers_of(options.workers, None).count
    with resume_hint(f"{options.out}{LEDGER}"), stage_progress(options.quiet, options.json, rate="points") as progress:
        result = sweep(
            options.specification, options.out, workers=workers, scheduler=options.scheduler, progress=progress
        )
    return CommandOutcome(
        result.as_json(),
        lambda _: _text(result),
        code=1 if result.failed else 0,
    )


def _drawn(report: str | None, html: str | None, given: Mapping[str, str | None], json: str | None) -> CommandOutcome:
    """Draw the results of a sweep; `given` are the options that only a sweep takes."""
    if report is None:
        raise ReadError(f"--html {html} draws the results of --report", legal=("--report FILE.parquet",))
    if html is None:
        raise ReadError(f"--report {report} needs --html, the page that shows it", legal=("--html PAGE.html",))
    for name, value in given.items():
        if value is not None:
            raise ReadError(
                f"--report {report} --html {html} only draw existing results; leave out {name} {value}",
                legal=("castsim sweep --report FILE.parquet --html PAGE.html",),
            )
    check_page(html, {"--json": json, "--report": report})
    document = _write_page(report, html)
    return CommandOutcome(document, lambda _: f"html: written to {html}")


def _write_page(report: str, html: str) -> Document:
    """Draw the page of a file of results, and return its JSON document.

    Raises:
        ReadError: the file has no results, or the page cannot be written.
    """
    from castsim.tools.sweep.page import sweep_page  # noqa: PLC0415 - pyarrow is an extra

    try:
        page, document = sweep_page(Path(report), html)
    except ReadError as error:
        raise ReadError(f"--report {error.message}", legal=error.legal) from None
    write_page(html, page)
    return document


def _check(specification: str | None, out: str | None, json: str | None) -> None:
    usage = ("castsim sweep SPEC.toml --out FILE.parquet", "castsim sweep --report FILE.parquet --html PAGE.html")
    if specification is None or out is None:
        raise ReadError("castsim sweep needs a specification and --out", legal=usage)
    if Path(out).suffix.lower() in _OTHER_SUFFIXES:
        raise ReadError(f"--out {out}: results are written as Parquet", legal=("--out FILE.parquet",))
    check_file("--out", out)
    if json is not None and json != STDOUT:
        refuse_same("--json", json, {"--out": out, "the ledger beside --out": f"{out}{LEDGER}"})


def _text(found: Sweep) -> Text:
    """Return the written files and the failed points."""
    rows = f"{grouped(found.rows)} rows in {escaped(str(found.path))}"
    failed = f"; {grouped(found.failed)} of them failed: the column `error` has the reason" if found.failed else ""
    resumed = f"; {grouped(found.resumed)} of {grouped(found.chunks)} chunks were done before" if found.resumed else ""
    return Text(rows + failed + resumed)
