"""A record of lowered casts that were run again, as JSON and as text."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.evidence.verification.lowering import Checked
from castsim.evidence.verification.lowering_record import LoweringRecord
from castsim.planning.lowering_answers.answer import setting_text
from castsim.reports.documents import VERSIONS, Document, numbered
from castsim.reports.terminal import indented, table


def lowering_document(record: LoweringRecord) -> Document:
    """Return a record as JSON, attributes by name."""
    found = record.document()
    return {
        **found,
        "schema_version": VERSIONS["verify-lowering"],  # of the command's document, not of the record
        "results": [{**row, "attributes": numbered(dict(row["attributes"]))} for row in found["results"]],
        "missing": [{**row, "attributes": numbered(dict(row["attributes"]))} for row in found["missing"]],
    }


def lowering_text(record: LoweringRecord, path: Path | None) -> RenderableType:
    """Return the report on a record: a line per cell that was run, then the sums."""
    rows = table("cast", "target", "claim", "tried", "codes", "wrong", numbers=("codes", "wrong"))
    for one in record.checked:
        cell = one.cell
        attributes = "".join(f", {name}={value}" for name, value in cell.attributes)
        cast = f"{cell.src} -> {cell.dst}{attributes}"
        rows.add_row(cast, cell.target, _claim(one), one.inputs, str(one.codes), str(one.wrong))
    found = record.document()
    summary = (
        f"{record.spec} {record.version}: {found['programs_run']} programs and {found['counterexamples_run']} "
        f"counterexamples run, {found['codes']} codes, {found['wrong']} claims that do not hold; "
        f"{found['cells_without_a_way']} cells without a way"
    )
    notes = []
    if found["programs_with_options"]:
        notes.append(Text(f"{found['programs_with_options']} programs were run with the options of the target named"))
    kept = [] if path is None else [Text(f"recorded in {path}")]
    return Group(indented(rows), Text(""), Text(summary), *notes, *kept)


def _claim(one: Checked) -> str:
    options = f" ({setting_text(one.options)})" if one.options else ""
    return f"{one.way}{options}, {one.verdict}"
