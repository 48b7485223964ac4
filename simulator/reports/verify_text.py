"""The findings of a verification, as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from castsim.evidence.verification import PartProgress, VerificationPart, VerificationRecord, input_set
from castsim.reports.terminal import indented, table
from castsim.reports.verify import mismatch_details

_COLUMNS: dict[str, Callable[[VerificationPart], str]] = {
    "cast": lambda part: f"{part.src} -> {part.dst}",
    "tier": lambda part: part.tier,
    "against": lambda part: part.against,
    "inputs": lambda part: part.inputs,
    "rounding": lambda part: str(part.rounding),
    "overflow": lambda part: str(part.overflow),
}
"""The properties that tell the parts of a record apart."""


def verify_text(record: VerificationRecord, path: Path | None) -> RenderableType:
    """Return one row per part, the first mismatches, why the input sets suffice, and the sum."""
    return Group(*_sections(record, path))


def _sections(record: VerificationRecord, path: Path | None) -> Iterator[RenderableType]:
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
    """Yield what all parts have in common, and a table of the rest."""
    shared = {name for name in _COLUMNS if len({_COLUMNS[name](one.part) for one in record.progress}) == 1}
    if shared:
        first = record.progress[0].part
        yield Text("; ".join(f"{name} {_COLUMNS[name](first)}" for name in _COLUMNS if name in shared), style="bold")
    varying = [name for name in _COLUMNS if name not in shared]
    numbers = ("codes", "mismatches", "codes/s")
    made = table(*varying, *numbers, numbers=numbers)
    for one in record.progress:
        made.add_row(
            *(_COLUMNS[name](one.part) for name in varying),
            str(one.checked),
            Text(str(one.mismatches), style="bold red" if one.mismatches else ""),
            rate_text(one),
        )
    yield made


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
    numbers = ("input bits", "value", "got", "is", "expected", "is ")
    made = table("cast", "rounding", "overflow", *numbers, title="first mismatches", numbers=numbers)
    for one in record.progress:
        for detail in mismatch_details(one):
            word = "" if detail["random_word"] is None else f" (word {detail['random_word']})"
            made.add_row(
                f"{detail['src']} -> {detail['dst']}",
                f"{detail['rounding']}{word}",
                detail["overflow"],
                detail["input_bits"],
                detail["input_value"],
                detail["output_bits"],
                detail["output_value"],
                detail["expected_bits"],
                detail["expected_value"],
            )
    return made


def _arguments(record: VerificationRecord) -> dict[str, str]:
    return {one.part.inputs: input_set(one.part).argument for one in reversed(record.progress)}


def _sum(record: VerificationRecord) -> str:
    checked = sum(one.checked for one in record.progress)
    if record.mismatches:
        return f"{record.mismatches} of {checked} results differ"
    return f"{checked} results, no mismatch"
