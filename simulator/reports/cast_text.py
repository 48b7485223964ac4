"""What single values become, as text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from simulator.reports.cast import CastTable, bits_text
from simulator.reports.terminal import table

DIGITS = 20
"""Longest decimal that is written out exactly; longer ones are cut to 9 significant digits and marked."""


def cast_text(found: CastTable) -> RenderableType:
    """Return the table, one row per value, target and mode, and the warnings."""
    return Group(*_sections(found))


def number_text(value: Fraction | float) -> str:
    """Return a number exactly if that is short, else to 9 significant digits with `~` before it."""
    if isinstance(value, float):
        return str(value) if not math.isnan(value) else "nan"
    if value.denominator == 1 and abs(value) < 10**DIGITS:
        return str(value.numerator)
    places = value.denominator.bit_length() - 1  # the denominator is a power of two: that many decimals are exact
    exact = f"{value.numerator * 5**places:d}"
    digits = exact.lstrip("-").rjust(places + 1, "0")
    if len(digits) + 1 <= DIGITS:
        return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"
    return f"~{float(value):.9g}"  # no format has a finite number beyond the range of a double


def _sections(found: CastTable) -> Iterator[RenderableType]:
    request = found.request
    yield Text(f"{request.src.name} -> {request.dst.name}", style="bold")
    yield _table(found)
    if any(not source.exact for source in request.sources):
        yield Text(f"* not a number of {request.src.name}: rounded to nearest first", style="dim")
    for warning in found.warnings:
        yield Text.assemble(("warning: ", "bold yellow"), warning)


def _table(found: CastTable) -> Table:
    request = found.request
    numbers = ("input bits", "read as", "output bits", "value")
    switch = ("sat",) if request.targets else ()
    modes = ("target", "rounding", "overflow", *switch)
    made = table("given", "input bits", "read as", *modes, "output bits", "value", "", numbers=numbers)
    before = None
    for row in found.rows:
        source = row.source
        given = source.text + ("" if source.exact else " *")
        read = (given, bits_text(source.code, request.src), number_text(source.value))
        made.add_row(
            *(read if source is not before else ("", "", "")),
            row.target or "abstract",
            row.rounding if row.asked in (None, row.rounding) else f"{row.asked} -> {row.rounding}",
            row.overflow,
            *((row.saturation or "-",) if request.targets else ()),
            bits_text(row.code, request.dst),
            number_text(row.value),
            Text("inexact", style="yellow") if row.inexact else "",
        )
        before = source
    return made
