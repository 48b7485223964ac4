"""The results of a verification as JSON and as text, and its progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from castsim.isa.formats import Format
from castsim.numerics.codec import value_of
from castsim.reports.documents import Document, apart, numbered, record, says
from castsim.reports.numbers import grouped
from castsim.reports.progress import close_bars, is_watched
from castsim.reports.schemas.keys import Bits
from castsim.reports.terminal import composed, indented, table
from castsim.tools.verify.inputs import VerificationPart
from castsim.tools.verify.running import PartProgress, RecordedVerification, VerificationRecord, VerifiedCast

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

    from castsim.tools.verify.lowering import LoweredResult, LoweringRecord
    from castsim.tools.verify.substitutions import SubstitutionRecord


@record
class MismatchDetail(VerifiedCast):
    """A mismatch with its numbers; `no code` replaces the number of an invalid code."""

    part: VerificationPart = apart()
    input_bits: Bits = says("The code of the input.")
    input_value: int | float | str = says("Its number, or `nan`, `inf`, `-inf`.")
    random_word: Bits | None = says("The random word of stochastic rounding; null for other roundings.")
    output_bits: Bits = says("The result.")
    output_value: int | float | str = says("Its number, or `nan`, `inf`, `-inf`.")
    expected_bits: Bits = says("The correct result.")
    expected_value: int | float | str = says("Its number, or `nan`, `inf`, `-inf`.")


class Verification(RecordedVerification, name="verify", version=4):
    """Casts compared bit by bit."""

    record: str | None = says("The file of the record; null if there is none.")
    mismatch_details: list[MismatchDetail] = says("The first mismatches with their numbers.")


def verify_document(record: VerificationRecord, path: Path | None) -> Document:
    """Return the record, its file, and the mismatches with their bits and numbers."""
    return {
        **record.document(),
        "schema_version": Verification.VERSION,  # of the command's document, not of the record
        "record": None if path is None else str(path),
        "mismatch_details": [detail.as_json() for detail in mismatch_details(record)],
    }


def mismatch_details(record: VerificationRecord) -> Iterator[MismatchDetail]:
    """Yield the recorded mismatches of all parts."""
    for part_progress in record.progress:
        part = part_progress.part
        for mismatch in part_progress.first:
            yield MismatchDetail(
                part=part,
                input_bits=bits_text(mismatch.code, part.source),
                input_value=number_of(mismatch.code, part.source),
                random_word=None if mismatch.random is None else f"0x{mismatch.random:08x}",
                output_bits=bits_text(mismatch.result, part.destination),
                output_value=number_of(mismatch.result, part.destination),
                expected_bits=bits_text(mismatch.expected, part.destination),
                expected_value=number_of(mismatch.expected, part.destination),
            )


def bits_text(code: int, fmt: Format) -> str:
    """Return a code in hexadecimal, with at least as many digits as the format has."""
    return f"0x{code:0{-(-fmt.bits // 4)}x}"


def number_of(code: int, fmt: Format) -> int | float | str:
    """Return the number of a code, `nan`, `inf` or `-inf`; `no code` if it is not a code of the format."""
    if code >> fmt.storage_bits or (code >> fmt.bits and fmt.bits < 8):
        return "no code"
    value = value_of(code, fmt)
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    return value.numerator if value.denominator == 1 and abs(value) < 10**20 else float(value)


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
    for kind, argument in record.arguments.items():
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
    rows = []
    for detail in mismatch_details(record):
        part = detail.part
        word = "" if detail.random_word is None else f" (word {detail.random_word})"
        numbers = (detail.input_bits, detail.input_value, detail.output_bits, detail.output_value, detail.expected_bits,
                   detail.expected_value)  # fmt: skip
        rows.append((f"{part.src} -> {part.dst}", f"{part.rounding}{word}", str(part.overflow), *map(str, numbers)))
    headings = ("cast", "rounding", "overflow", ">input bits", ">value", ">got", ">is", ">expected", ">is")
    return table(*headings, title="first mismatches", rows=rows)


def _sum(record: VerificationRecord) -> str:
    if record.mismatches:
        return f"{grouped(record.mismatches)} of {grouped(record.checked)} results differ"
    return f"{grouped(record.checked)} results, no mismatch"


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
        "schema_version": record.FORM.VERSION,  # of the command's document, not of the record
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
    summary = (
        f"{record.spec} {record.version}: {record.programs_run} programs and {record.counterexamples_run} "
        f"counterexamples run, {record.codes:,} codes, {len(record.wrong)} claims refuted; "
        f"{record.cells_without_a_way} cells without a program"
    )
    notes = []
    if record.programs_with_options:
        notes.append(Text(f"{record.programs_with_options} programs were run with the named options of the target"))
    kept = [] if path is None else [Text(f"recorded in {path}")]
    return Group(indented(rows), Text(""), Text(summary), *notes, *kept)


def _claim(checked: LoweredResult) -> str:
    from castsim.tools.lowering.lowering_answers import setting_text  # noqa: PLC0415 - loads the planner

    options = f" ({setting_text(checked.setting)})" if checked.setting else ""
    return f"{checked.way}{options}, {checked.verdict}"


# The progress of a verification on standard error, only on a terminal.

_MANY = 1_000_000
"""Number of codes above which their number is announced, because they take long."""


@contextmanager
def verification_progress(
    record: VerificationRecord, *, quiet: bool, json: str | None
) -> Iterator[VerificationProgress | None]:
    """Show the progress of a record while the block lasts; None if progress is not shown.

    Work of more than some seconds is announced with its sets of codes and their sizes.
    """
    total = sum(part_progress.size - part_progress.checked for part_progress in record.progress)
    if not quiet and total >= _MANY:
        kinds = ", ".join(dict.fromkeys(part_progress.part.inputs for part_progress in record.progress))
        casts = f"{len(record.progress)} cast{'s' if len(record.progress) > 1 else ''}"
        print(f"trying {casts} on {total:,} codes: {kinds}", file=sys.stderr)
    if not is_watched(quiet, json):
        yield None
        return
    from rich.progress import MofNCompleteColumn, TimeElapsedColumn  # noqa: PLC0415 - only a watched run pays for rich

    from castsim.reports.bars import Words, bars  # noqa: PLC0415 - as above

    close_bars()
    with bars(MofNCompleteColumn(), TimeElapsedColumn(), Words("rate")) as shown:
        yield VerificationProgress(shown, record)


class VerificationProgress:
    """Progress of a record: the current part, its finished share, the rate, and the number of remaining parts."""

    def __init__(self, bars: Bars, record: VerificationRecord) -> None:
        self._bars = bars
        self._record = record
        self._task = bars.add_task("starting", total=None, rate="")

    def advance(self, part_progress: PartProgress, codes: int) -> None:
        """Move the bar to the current position in the part."""
        number = next(index for index, other in enumerate(self._record.progress, 1) if other is part_progress)
        part = part_progress.part
        self._bars.update(
            self._task,
            description=f"[{number}/{len(self._record.progress)}] {part.src} -> {part.dst} {part.rounding}"
            f" {part.overflow}, {part.inputs}",
            total=part_progress.size,
            completed=part_progress.checked,
            rate=f"{rate_text(part_progress)} codes/s, {self._record.mismatches} mismatches",
        )
