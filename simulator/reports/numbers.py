"""Codes and their numbers as reports spell them, and causes of cycles as they order and colour them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

from castsim.execution.timing import Cause, PipeTiming
from castsim.isa.formats import Format, IntFormat
from castsim.reports.documents import Document

Number = Fraction | float

End = tuple[int, Number] | None
"""A code and its number, if there is one."""


def grouped(number: int) -> str:
    """Return an integer with commas between thousands."""
    return f"{number:,}"


def bits_text(code: int, fmt: Format) -> str:
    """Return a code in hexadecimal, with as many digits as the format has; of i48 without the copies of its sign."""
    return f"0x{code & ((1 << fmt.bits) - 1):0{-(-fmt.bits // 4)}x}"


def json_value(value: Number, fmt: Format) -> int | float | str:
    """Return a finite value as a number, others as `nan`, `inf`, `-inf`."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return int(value) if isinstance(fmt, IntFormat) else float(value)


def number_document(code: int, value: Number, fmt: Format, text: Callable[[int, Format], str] = bits_text) -> Document:
    """Return a code and the number that it stands for; `text` spells the code."""
    return {"bits": text(code, fmt), "value": json_value(value, fmt)}


def ends_document(ends: tuple[End, End, End], fmt: Format, text: Callable[[int, Format], str] = bits_text) -> Document:
    """Return the lowest and the highest number of a set of results, and one apart: null where there is none."""
    return {
        name: None if end is None else number_document(*end, fmt, text)
        for name, end in zip(("lowest", "highest", "further"), ends, strict=True)
    }


def causes_of(pipe: PipeTiming) -> dict[Cause, int]:
    """Return the cycles of a pipe by cause, without zeros, in the order of `Cause`."""
    return {cause: pipe.causes[cause] for cause in Cause if pipe.causes.get(cause)}


def present_causes(pipes: Mapping[str, PipeTiming]) -> list[Cause]:
    """Return the causes that some pipe has, in the order of `Cause`."""
    return [cause for cause in Cause if any(pipe.causes.get(cause) for pipe in pipes.values())]


CAUSE_COLOURS: Mapping[Cause, tuple[str, str, str]] = {
    Cause.BUSY: ("#2b6cb0", "#5a9fe0", "bright_blue"),
    Cause.FILL: ("#63a375", "#79c08d", "green"),
    Cause.DRAIN: ("#9ac7a6", "#4e8a62", "green"),
    Cause.OPERAND_WAIT: ("#a9a1c9", "#7d74a8", "dim"),
    Cause.FLAG_WAIT: ("#b6bcc6", "#5f6b7a", "dim"),
    Cause.BARRIER: ("#8b93a0", "#8e9aab", "dim"),
    Cause.DEPENDENCE: ("#7a6ba8", "#a79ad0", "dim"),
    Cause.STORE_BARRIER: ("#6d7684", "#707c8c", "dim"),
    Cause.BANK_CONFLICT: ("#c0392b", "#ef6a5b", "red"),
    Cause.PORT: ("#e08a1e", "#f0a64a", "yellow"),
    Cause.INITIATION_INTERVAL: ("#d9b310", "#e5c94a", "yellow"),
    Cause.LOOP_TURNAROUND: ("#b5651d", "#d08a4a", "yellow"),
    Cause.SERIALISING_BRANCH: ("#8e44ad", "#b87bd6", "magenta"),
    Cause.MEMORY_LATENCY: ("#d35f8d", "#e58bb0", "magenta"),
    Cause.MEMORY_BANDWIDTH: ("#a93b66", "#d0638f", "magenta"),
    Cause.EMPTY: ("#d5dbe3", "#2a323d", "dim"),
}
"""The colours of causes on light and on dark pages, and in a terminal: work is blue and green, waits for others grey,
what slows a pipe itself from yellow to red. Notebooks, whose ground nobody knows, take the first.
"""
