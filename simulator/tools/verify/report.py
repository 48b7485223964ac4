"""The results of a verification, as JSON and as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from castsim.isa.formats import Format
from castsim.numerics.codec import value_of
from castsim.reports.documents import Document, numbered
from castsim.reports.numbers import grouped
from castsim.reports.terminal import composed, indented, table
from castsim.tools.verify.documents import LoweringVerification, Verification
from castsim.tools.verify.inputs import VerificationPart, input_set
from castsim.tools.verify.running import PartProgress, VerificationRecord

if TYPE_CHECKING:
    from castsim.tools.verify.lowering import Checked, LoweringRecord, SubstitutionRecord


def verify_document(record: VerificationRecord, path: Path | None) -> Document:
    """Return the record, its file, and the mismatches with their bits and numbers."""
    details = [detail for part_progress in record.progress for detail in mismatch_details(part_progress)]
    return {
        **record.document(),
        "schema_version": Verification.VERSION,  # of the command's document, not of the record
        "record": None if path is None else str(path),
        "mismatch_details": [
            {name: _value(text) if text and name.endswith("_value") else text for name, text in mismatch.items()}
            for mismatch in details
        ],
    }


def _value(text: str) -> int | float | str:
    """Return the number that `number_text` spells; `nan`, `inf`, `-inf` and `no code` stay words."""
    if text.lstrip("-").isdigit():
        return int(text)
    return text if text.lstrip("-").isalpha() or " " in text else float(text)


def mismatch_details(part_progress: PartProgress) -> list[dict[str, str | None]]:
    """Return the recorded mismatches of a part: mode, input bits and value, both outputs as bits and values."""
    src, dst = part_progress.part.source, part_progress.part.destination
    return [
        {
            "src": src.name,
            "dst": dst.name,
            "rounding": str(part_progress.part.rounding),
            "overflow": str(part_progress.part.overflow),
            "tier": part_progress.part.tier,
            "against": part_progress.part.against,
            "input_bits": bits_text(mismatch.code, src),
            "input_value": number_text(mismatch.code, src),
            "random_word": None if mismatch.random is None else f"0x{mismatch.random:08x}",
            "output_bits": bits_text(mismatch.result, dst),
            "output_value": number_text(mismatch.result, dst),
            "expected_bits": bits_text(mismatch.expected, dst),
            "expected_value": number_text(mismatch.expected, dst),
        }
        for mismatch in part_progress.first
    ]


def bits_text(code: int, fmt: Format) -> str:
    """Return a code in hexadecimal, with at least as many digits as the format has."""
    return f"0x{code:0{-(-fmt.bits // 4)}x}"


def number_text(code: int, fmt: Format) -> str:
    """Return the number of a code, to 17 significant digits; `no code` if it is not a code of the format."""
    if code >> fmt.storage_bits or (code >> fmt.bits and fmt.bits < 8):
        return "no code"
    value = value_of(code, fmt)
    if isinstance(value, float):
        return str(value)
    return str(value.numerator) if value.denominator == 1 and abs(value) < 10**20 else repr(float(value))


# The findings of a verification, as text.

_COLUMNS: dict[str, Callable[[VerificationPart], str]] = {
    "cast": lambda part: f"{part.src} -> {part.dst}",
    "tier": lambda part: part.tier,
    "against": lambda part: part.against,
    "inputs": lambda part: part.inputs,
    "rounding": lambda part: str(part.rounding),
    "overflow": lambda part: str(part.overflow),
}
"""The properties that distinguish the parts of a record."""


@composed
def verify_text(record: VerificationRecord, path: Path | None) -> Iterator[RenderableType]:
    """Yield one row per part, the first mismatches, why the input sets suffice, and the total."""
    yield from _parts(record)
    if record.mismatches:
        yield Text()
        yield _mismatches(record)
    yield Text()
    for kind, argument in _arguments(record).items():
        yield Text.assemble((f"{kind}: ", "bold"), argument)
    left_out = sum(part_progress.undecided for part_progress in record.progress)
    if left_out:
        yield Text(f"left out: {left_out} results on which the published sources contradict each other or are silent")
    yield Text(_sum(record), style="bold red" if record.mismatches else "bold")
    if path is not None:
        yield indented(Text(f"recorded in {path}"))


def _parts(record: VerificationRecord) -> Iterator[RenderableType]:
    """Yield the values common to all parts, and a table of the others."""
    shared = {
        name for name in _COLUMNS if len({_COLUMNS[name](part_progress.part) for part_progress in record.progress}) == 1
    }
    if shared:
        first = record.progress[0].part
        yield Text("; ".join(f"{name} {_COLUMNS[name](first)}" for name in _COLUMNS if name in shared), style="bold")
    varying = [name for name in _COLUMNS if name not in shared]
    rows: Iterator[tuple[RenderableType, ...]] = (
        (*(_COLUMNS[name](part_progress.part) for name in varying), grouped(part_progress.checked),
         Text(grouped(part_progress.mismatches), style="bold red" if part_progress.mismatches else ""),
         rate_text(part_progress))
        for part_progress in record.progress
    )  # fmt: skip
    yield table(*varying, ">codes", ">mismatches", ">codes/s", rows=rows)


def rate_text(part_progress: PartProgress) -> str:
    """Return the codes tried per second of processor time, in three digits with a unit."""
    rate = part_progress.codes_per_second
    if rate is None:
        return "-"
    for unit, name in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if rate >= unit:
            return f"{rate / unit:.3g}{name}"
    return f"{rate:.3g}"


def _mismatches(record: VerificationRecord) -> Table:
    keys = ("overflow", "input_bits", "input_value", "output_bits", "output_value", "expected_bits", "expected_value")
    rows = []
    for detail in (detail for part_progress in record.progress for detail in mismatch_details(part_progress)):
        word = "" if detail["random_word"] is None else f" (word {detail['random_word']})"
        cells = [detail[key] or "" for key in keys]
        rows.append((f"{detail['src']} -> {detail['dst']}", f"{detail['rounding']}{word}", *cells))
    headings = ("cast", "rounding", "overflow", ">input bits", ">value", ">got", ">is", ">expected", ">is")
    return table(*headings, title="first mismatches", rows=rows)


def _arguments(record: VerificationRecord) -> dict[str, str]:
    return {
        part_progress.part.inputs: input_set(part_progress.part).argument for part_progress in reversed(record.progress)
    }


def _sum(record: VerificationRecord) -> str:
    checked = sum(part_progress.checked for part_progress in record.progress)
    if record.mismatches:
        return f"{grouped(record.mismatches)} of {grouped(checked)} results differ"
    return f"{grouped(checked)} results, no mismatch"


# A record of substitutions that were tried on all codes, as text.


def substitutions_text(record: SubstitutionRecord, path: Path | None) -> RenderableType:
    """Return the report on a record: a line per instruction, then the totals."""
    cells = (
        (trial.identity.name, trial.identity.shape, *map(grouped, (trial.tried, trial.codes, trial.mismatches)))
        for trial in record.trials
    )
    rows = table("instruction", "replaced by", ">codes", ">of", ">differ", rows=cells)
    done = sum(trial.done for trial in record.trials)
    tried = f"{grouped(done)} of {grouped(len(record.trials))} substitutions tried on all codes"
    summary = f"{tried}, {grouped(record.mismatches)} results differ"
    first = [
        Text(f"{trial.identity.name}: the first code that differs is 0x{trial.first[0]:08x}")
        for trial in record.trials
        if trial.first
    ]
    kept = [] if path is None else [Text(f"recorded in {path}")]
    return Group(indented(rows), Text(""), *first, Text(summary), *kept)


# A record of lowered casts that were run again.


def lowering_document(record: LoweringRecord) -> Document:
    """Return a record as JSON, with attributes by name."""
    document = record.document()
    return {
        **document,
        "schema_version": LoweringVerification.VERSION,  # of the command's document, not of the record
        "results": [{**row, "attributes": numbered(dict(row["attributes"]))} for row in document["results"]],
        "missing": [{**row, "attributes": numbered(dict(row["attributes"]))} for row in document["missing"]],
    }


def lowering_text(record: LoweringRecord, path: Path | None) -> RenderableType:
    """Return the report on a record: a line per executed cell, then the totals."""
    rows = table("cast", "target", "claim", "tried", ">codes", ">wrong")
    for checked in record.checked:
        cell = checked.cell
        attributes = "".join(f", {name}={value}" for name, value in cell.attributes)
        cast = f"{cell.src} -> {cell.dst}{attributes}"
        rows.add_row(cast, cell.target, _claim(checked), checked.inputs, str(checked.codes), str(checked.wrong))
    document = record.document()
    summary = (
        f"{record.spec} {record.version}: {document['programs_run']} programs and {document['counterexamples_run']} "
        f"counterexamples run, {document['codes']:,} codes, {document['wrong']} claims refuted; "
        f"{document['cells_without_a_way']} cells without a program"
    )
    notes = []
    if document["programs_with_options"]:
        notes.append(
            Text(f"{document['programs_with_options']} programs were run with the named options of the target")
        )
    kept = [] if path is None else [Text(f"recorded in {path}")]
    return Group(indented(rows), Text(""), Text(summary), *notes, *kept)


def _claim(checked: Checked) -> str:
    from castsim.tools.lowering.lowering_answers import setting_text  # noqa: PLC0415 - loads the planner

    options = f" ({setting_text(checked.options)})" if checked.options else ""
    return f"{checked.way}{options}, {checked.verdict}"
