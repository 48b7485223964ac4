"""The command `accuracy`: compare simulated with measured cycles, per row and curve, beside the public model."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from statistics import fmean, median

from castsim.commands.option_parsers import given_of, output_folder
from castsim.commands.outcome import CommandOutcome, answer
from castsim.commands.run_views import ledger_of, removal, resume_hint
from castsim.execution.timing import ProgressCallback
from castsim.isa.dataclass import replace
from castsim.isa.errors import ReadError
from castsim.reports.documents import Document, Json, shortened
from castsim.reports.pages.answer_pages import (
    PAGES,
    Columns,
    Entry,
    Sections,
    columns_of,
    page_of_document,
    same,
    summary_section,
    table_section,
    titled_section,
)
from castsim.reports.pages.blocks import Packed, Page, ResultsView
from castsim.reports.progress import stage_progress
from castsim.targets.csv_tables import SHIPPED
from castsim.targets.loader import load_target
from castsim.tools.accuracy.accuracy_assessment import Errors, accuracy, measured_targets
from castsim.tools.accuracy.left_out import LeftOut, cross_validate, together, write_record
from castsim.tools.accuracy.measured_rows import read_table
from castsim.tools.distribution.distributing import refuse_workers, workers_of


def execute(options: Namespace) -> CommandOutcome:
    """Compare simulated with published cycles.

    Raises:
        ReadError: the target is unknown or has no measurements, or the table, ledger or scheduler cannot be used.
        IllegalError, TileError: a row that the target cannot run.
        EngineError: a worker runs another version or dies.
    """
    chosen = {"--target": options.target, "--data": options.data, "--cross-validate": options.cross_validate}
    if options.record is not None and (excess := [name for name, value in chosen.items() if value is not None]):
        raise ReadError(f"--record covers all shipped measurements; leave out {', '.join(excess)}")
    if options.cross_validate is not None:
        given = given_of(options, "workers", "scheduler", "ledger")
        refuse_workers(given, "--cross-validate uses a single process")
        with stage_progress(options.quiet, options.json) as progress:
            return _cross_validation(options.cross_validate, options.target, options.data, progress)
    workers = workers_of(options.workers, options.scheduler)
    ledger = ledger_of(options.ledger, {"--json": options.json, "--html": options.html, "--data": options.data})
    with resume_hint(ledger), stage_progress(options.quiet, options.json) as progress:
        accuracies = accuracy(
            options.target or None,
            data=options.data,
            workers=workers.count,
            scheduler=workers.scheduler,
            ledger=ledger,
            progress=progress,
        )

    if (folder := output_folder(options.record, "--record")) is not None:
        write_record(folder, accuracies.tables)
    return replace(answer(accuracy_page, accuracies.as_json()), delivered=removal(ledger))


def _cross_validation(left_out: str, name: str | None, data: str | None, progress: ProgressCallback) -> CommandOutcome:
    """Predict each published figure from facts fitted without it.

    Raises:
        ReadError: an option is wrong, no target is named, there are no casts or free facts, or the table does not fit.
    """
    if left_out not in tuple(LeftOut):
        message = f"--cross-validate: '{left_out}' cannot be left out"
        raise ReadError(message, legal=[str(choice) for choice in LeftOut])
    legal = [target.name for target in measured_targets() if target.free_facts]
    if name is None:
        raise ReadError("--cross-validate needs --target", legal=legal)
    target = load_target(name)
    if not target.free_facts:
        raise ReadError(f"{target.name} has no free facts to cross-validate", legal=legal)
    if data is not None:
        table = read_table(Path(data))
    elif left_out in (LeftOut.OPERATION, LeftOut.SOURCE) or target.measured_casts is None:
        table = together([read_table(SHIPPED / measurement.file) for measurement in target.measurements])
    else:
        table = read_table(SHIPPED / target.measured_casts.file)
    validation = cross_validate(target, table, LeftOut(left_out), progress)
    return answer(cross_validation_page, validation.as_json())


# The pages: simulated against measured cycles, and facts fitted without the rows that they predict.

_ACCURACY_PAGE_MOST_ROWS = 1000
"""Maximum number of rows for which the page contains their JSON too; its lists have all rows."""


@page_of_document(
    "accuracy",
    "Simulated against measured cycles",
    lambda document: (
        f"castsim accuracy on {', '.join(dict.fromkeys(entry['target'] for entry in document['targets']))}"
    ),
)
def _accuracy_page(document: Entry) -> Sections:
    """Yield the sections on assessed tables, starting with errors of held-out rows."""
    held_out, fitted, public = document["unfitted"], document["fitted"], document["public_model"]
    if held_out is None:
        every = len(document["rows"])
        answer = f"castsim's facts were fitted to all {every:,} rows, with a mean error of {document['mean']:.1f} %."
    else:
        answer = (
            "On {rows:,} held-out rows the mean error is {mean:.1f} %, the median {median:.1f} % and the largest "
            "{max:.1f} %.".format_map(held_out)
        )
    yield summary_section(
        answer,
        f"The {fitted['rows']:,} rows that facts were fitted to have a mean error of {fitted['mean']:.1f} %; they "
        "confirm nothing."
        if fitted and held_out
        else "",
        f"The vendor's public cost model has a mean error of {public['mean']:.1f} % where it covers a row."
        if public
        else "",
        *(
            f"{entry['target']} was compared with measurements of {entry['measured_on']}: the errors show how far "
            "the two chips differ."
            for entry in document["targets"]
            if entry["measured_on"] != entry["target"]
        ),
    )
    rows: list[Entry] = list(_accuracy_rows(document))
    groups: dict[tuple[str, str, str], list[float]] = {}
    for row in sorted(rows, key=lambda row: str(row["evidence"]), reverse=True):
        groups.setdefault((row["target"], row["table"], row["evidence"]), []).append(abs(row["error"]))
    by_source = [
        {"target": target, "table": file, "rows are": evidence, "rows": len(errors), "mean": fmean(errors),
         "median": median(errors), "max": max(errors)}
        for (target, file, evidence), errors in groups.items()
    ]  # fmt: skip
    measured: Columns = {
        "measurements": lambda row: row["table"].removeprefix(f"{row['target']}_measured_").removesuffix(".csv")
    }
    sources = {**same("target"), **measured, **same("rows are", "rows"), **_ERRORS}
    caption = "Errors are absolute, in percent of the measured cycles."
    yield table_section("Errors by source", by_source, sources, caption)
    yield titled_section("Residuals", _residuals(rows))
    intervals = {
        **same("target"), "kind of operation": "kind", "interval": "{low:+.1f} to {high:+.1f} %", "holds, %": "share",
        "held-out rows": "rows", "of these refitted": "refitted",
    }  # fmt: skip
    caption = "Where measured cycles lie around simulated ones, in percent of the simulated cycles."
    yield table_section("Intervals", document["intervals"], intervals, caption)
    curves: Columns = {
        **same("target", "operation"), "types": _types_of, **same("path", "rows"), **_ERRORS,
        "vendor's model, mean %": lambda entry: _public(entry, "mean"),
        "vendor's model, max %": lambda entry: _public(entry, "max"),
    }  # fmt: skip
    caption = "Absolute errors by operation and types."
    yield table_section("Operations", document["curves"], curves, caption, most=25)
    tables: Columns = {
        **same("target"), "table": lambda entry: PurePath(entry["file"]).name, **same("rows"),
        "skipped": lambda entry: entry["rows_skipped"] or None, **_ERRORS,
        "source": lambda entry: entry["source"] or "given with --data",
    }  # fmt: skip
    yield table_section("Sources", document["targets"], tables, sources=1)


def accuracy_page(document: Entry) -> Page:
    """Return the page of assessed tables, without the JSON of the rows if there are many."""
    page = _accuracy_page(document)
    return replace(page, result=shortened(page.result, "rows", _ACCURACY_PAGE_MOST_ROWS))


PAGES["accuracy"] = accuracy_page

_ERRORS = columns_of(Errors)


def _public(entry: Entry, name: str) -> str | None:
    """Return an error of the vendor's public cost model."""
    return f"{entry['public_model'][name]:.2f}" if entry["public_model"] else None


def _types_of(entry: Entry) -> str:
    src, dst = entry["src"], entry["dst"]
    return str(src) if src == dst else f"{src} -> {dst}"


def _residuals(rows: Sequence[Json]) -> ResultsView:
    return ResultsView("measurements", "Errors are in percent of the measured cycles.", Packed({"rows": rows}))


def _accuracy_rows(document: Entry) -> Iterator[Document]:
    """Yield the rows of all tables in the form that `measurements.js` reads."""
    rows = iter(document["rows"])
    for entry in document["targets"]:
        for _, row in zip(range(entry["rows"]), rows, strict=False):
            yield _accuracy_row(entry["target"], PurePath(entry["file"]).name, row)


def _accuracy_row(target: str, file: str, row: Entry) -> Document:
    """Return a row of a table, or of a cross-validation fold, which has fewer keys."""
    cells, low, simulated = row.get("columns", row), row["measured_cycles"], row["simulated_cycles"]
    measured = min(max(simulated, low), row.get("measured_high") or low)  # the nearer end of a range
    src, dst = (cells.get(end) or cells.get("dtype") or "" for end in ("src", "dst"))
    kind, public_error = row.get("source_kind"), row.get("public_model_error_percent")
    public = None if public_error is None else round(low * (1 + public_error / 100))
    shape = f"{row['simulated_rows']} x {row['simulated_cols']}"
    return {
        "table": file,
        "target": target,
        "operation": row.get("operation") or "",
        "types": _types_of({"src": src, "dst": dst}),
        "path": cells.get("path") or "",
        "shape": f"{shape}, {cells['convention']}" if cells.get("convention") else shape,
        "measured": measured,
        "simulated": simulated,
        "error": row["error_percent"],
        "evidence": f"{'fitted' if row.get('fitted') else 'held out'}{f', {kind}' if kind else ''}",
        "public": public,
        "public_error": None if public is None else 100 * (public - low) / low,
        "reason": row.get("reason") or "",
    }


@page_of_document(
    "accuracy-cross-validation",
    "Cross-validation of {target}",
    "castsim accuracy --target {target} --cross-validate {left_out}: {stem}",
)
def cross_validation_page(document: Entry) -> Sections:
    """Yield the sections on a cross-validation: the prediction of each row from facts fitted without it."""
    left_out, whole = document["left_out"], document["nothing_left_out"]
    yield summary_section(
        f"With each {left_out} left out in turn, facts fitted to the rest predict it with a mean error of "
        f"{document['mean']:.1f} % (largest {document['max']:.1f} %).",
        f"Fitted to all {document['rows']:,} rows, the mean error is {whole['mean']:.1f} % "
        f"(largest {whole['max']:.1f} %).",
    )
    rows = [
        _accuracy_row(document["target"], f"without {fold['left_out']}", row)
        for fold in document["folds"]
        for row in fold["predictions"]
    ]
    yield titled_section("Measurements", _residuals(rows))
    folds = {"left out": "left_out", **same("rows"), **_ERRORS}
    yield table_section("Left out in turn", document["folds"], folds, most=25)
    facts = [{"fact": name, "value": value} for name, value in whole["facts"].items()]
    yield table_section("Facts fitted to all rows", facts, same("fact", "value"))
