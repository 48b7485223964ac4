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
    details = [detail for one in record.progress for detail in mismatch_details(one)]
    return {
        **record.document(),
        "schema_version": Verification.VERSION,  # of the command's document, not of the record
        "record": None if path is None else str(path),
        "mismatch_details": [
            {name: _value(text) if text and name.endswith("_value") else text for name, text in each.items()}
            for each in details
        ],
    }


def _value(text: str) -> int | float | str:
    """Return the number that `number_text` spells; `nan`, `inf`, `-inf` and `no code` stay words."""
    if text.lstrip("-").isdigit():
        return int(text)
    return text if text.lstrip("-").isalpha() or " " in text else float(text)


def mismatch_details(one: PartProgress) -> list[dict[str, str | None]]:
    """Return the recorded mismatches of a part: mode, input bits and value, both outputs as bits and values."""
    src, dst = one.part.source, one.part.destination
    return [
        {
            "src": src.name,
            "dst": dst.name,
            "rounding": str(one.part.rounding),
            "overflow": str(one.part.overflow),
            "tier": one.part.tier,
            "against": one.part.against,
            "input_bits": bits_text(mismatch.code, src),
            "input_value": number_text(mismatch.code, src),
            "random_word": None if mismatch.random is None else f"0x{mismatch.random:08x}",
            "output_bits": bits_text(mismatch.result, dst),
            "output_value": number_text(mismatch.result, dst),
            "expected_bits": bits_text(mismatch.expected, dst),
            "expected_value": number_text(mismatch.expected, dst),
        }
        for mismatch in one.first
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
    left_out = sum(one.undecided for one in record.progress)
    if left_out:
        yield Text(f"left out: {left_out} results on which the published sources contradict each other or are silent")
    yield Text(_sum(record), style="bold red" if record.mismatches else "bold")
    if path is not None:
        yield indented(Text(f"recorded in {path}"))


def _parts(record: VerificationRecord) -> Iterator[RenderableType]:
    """Yield the values common to all parts, and a table of the others."""
    shared = {name for name in _COLUMNS if len({_COLUMNS[name](one.part) for one in record.progress}) == 1}
    if shared:
        first = record.progress[0].part
        yield Text("; ".join(f"{name} {_COLUMNS[name](first)}" for name in _COLUMNS if name in shared), style="bold")
    varying = [name for name in _COLUMNS if name not in shared]
    rows: Iterator[tuple[RenderableType, ...]] = (
        (*(_COLUMNS[name](one.part) for name in varying), grouped(one.checked),
         Text(grouped(one.mismatches), style="bold red" if one.mismatches else ""), rate_text(one))
        for one in record.progress
    )  # fmt: skip
    yield table(*varying, ">codes", ">mismatches", ">codes/s", rows=rows)


def rate_text(one: PartProgress) -> str:
    """Return the codes tried per second of processor time, in three digits with a unit."""
    rate = one.codes_per_second
    if rate is None:
        return "-"
    for unit, name in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if rate >= unit:
            return f"{rate / unit:.3g}{name}"
    return f"{rate:.3g}"


def _mismatches(record: VerificationRecord) -> Table:
    keys = ("overflow", "input_bits", "input_value", "output_bits", "output_value", "expected_bits", "expected_value")
    rows = []
    for detail in (detail for one in record.progress for detail in mismatch_details(one)):
        word = "" if detail["random_word"] is None else f" (word {detail['random_word']})"
        cells = [detail[key] or "" for key in keys]
        rows.append((f"{detail['src']} -> {detail['dst']}", f"{detail['rounding']}{word}", *cells))
    headings = ("cast", "rounding", "overflow", ">input bits", ">value", ">got", ">is", ">expected", ">is")
    return table(*headings, title="first mismatches", rows=rows)


def _arguments(record: VerificationRecord) -> dict[str, str]:
    return {one.part.inputs: input_set(one.part).argument for one in reversed(record.progress)}


def _sum(record: VerificationRecord) -> str:
    checked = sum(one.checked for one in record.progress)
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
    found = record.document()
    return {
        **found,
        "schema_version": LoweringVerification.VERSION,  # of the command's document, not of the record
        "results": [{**row, "attributes": numbered(dict(row["attributes"]))} for row in found["results"]],
        "missing": [{**row, "attributes": numbered(dict(row["attributes"]))} for row in found["missing"]],
    }


def lowering_text(record: LoweringRecord, path: Path | None) -> RenderableType:
    """Return the report on a record: a line per executed cell, then the totals."""
    rows = table("cast", "target", "claim", "tried", ">codes", ">wrong")
    for one in record.checked:
        cell = one.cell
        attributes = "".join(f", {name}={value}" for name, value in cell.attributes)
        cast = f"{cell.src} -> {cell.dst}{attributes}"
        rows.add_row(cast, cell.target, _claim(one), one.inputs, str(one.codes), str(one.wrong))
    found = record.document()
    summary = (
        f"{record.spec} {record.version}: {found['programs_run']} programs and {found['counterexamples_run']} "
        f"counterexamples run, {found['codes']:,} codes, {found['wrong']} claims refuted; "
        f"{found['cells_without_a_way']} cells without a program"
    )
    notes = []
    if found["programs_with_options"]:
        notes.append(Text(f"{found['programs_with_options']} programs were run with the named options of the target"))
    kept = [] if path is None else [Text(f"recorded in {path}")]
    return Group(indented(rows), Text(""), Text(summary), *notes, *kept)


def _claim(one: Checked) -> str:
    from castsim.tools.lowering.lowering_answers import setting_text  # noqa: PLC0415 - loads the planner

    options = f" ({setting_text(one.options)})" if one.options else ""
    return f"{one.way}{options}, {one.verdict}"
