"""Casts of single values as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import groupby, zip_longest

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from castsim.execution.outcomes import Outcome
from castsim.isa.formats import Format
from castsim.numerics.codec import value_of
from castsim.reports.numbers import bits_text
from castsim.reports.terminal import composed, table
from castsim.reports.value_casts import AcceptedResults, CastResult, CastResults, CastText, SourceValue

_OUTCOME = "outcome"

DIGITS = 20
"""Maximum number of digits of a decimal that is shown exactly; longer ones are rounded to 9 digits and marked."""


def string_table(casts: CastText) -> RenderableType:
    """Return casts from or to text, one row each."""
    keys = ("given", "text") if casts.destination_format == "string" else ("given", "output_bits", "value")
    headings = [key.replace("_", " ") for key in keys]
    grid = table(*headings, rows=([str(getattr(row, key)) for key in keys] for row in casts.results))
    return Group(Text(f"{casts.source_format} -> {casts.destination_format}", style="bold"), grid)


def number_text(value: Fraction | float) -> str:
    """Return a number exactly if its decimal is short, otherwise to 9 significant digits with `~` before it."""
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


def coded_number(code: int, fmt: Format) -> str:
    """Return the number of a code, followed by the code."""
    return f"{number_text(value_of(code, fmt))} ({bits_text(code, fmt)})"


@composed
def cast_text(results: CastResults) -> Iterator[RenderableType]:
    """Yield the table, one row per value, target and mode, and the warnings."""
    request = results.request
    yield Text(f"{request.src.name} -> {request.dst.name}", style="bold")
    yield _table(results)
    if any(not source.exact for source in request.sources):
        yield Text(f"* not representable in {request.src.name}: rounded to nearest first", style="dim")
    if request.targets:
        yield from _comparison(results)
    for cast in request.specified:
        yield Text(f"{cast.label} accepts ({cast.rule.status.value}): {cast.rule.meaning}", style="dim")
    for skipped in results.skipped:
        yield Text(f"not shown: {skipped.target}: {skipped.reason}", style="dim")
    for warning in results.warnings:
        yield Text.assemble(("warning: ", "bold yellow"), warning)


def _comparison(results: CastResults) -> Iterator[RenderableType]:
    """Yield the meaning of the distances, and the values whose results differ."""
    dst = results.request.dst
    yield Text(f"ulps: distance from the abstract cast in steps of {dst.name}; none for NaN", style="dim")
    if any(len(row.forms) == 1 for row in results.rows):
        yield Text("1d: tiles of full rows or of one row; 2d: tiles with rows beyond their valid part", style="dim")
    for difference in results.differences:
        first, apart = difference.rows[0], difference.max_ulps_apart
        distance = "NaN and numbers" if apart is None else f"{apart:,} ulp{'' if apart == 1 else 's'} apart"
        mode = "" if first.asked is None else f" by {first.asked}"
        yield Text.assemble(("differ: ", "bold red"), f"{first.source.text}{mode}: {distance}")


def _table(results: CastResults) -> Table:
    """Return one row per result; each value appears once, beside its rows."""
    request = results.request
    return _targets_table(results) if request.targets or request.specified else _abstract_table(results)


def _abstract_table(results: CastResults) -> Table:
    grid = table("given", ">input bits", ">read as", "rounding", "overflow", ">output bits", ">value", _OUTCOME)
    _make_room(grid, results)
    before = None
    for row in results.rows:
        source = row.source
        read = (_given(source), source.bits, number_text(source.value))
        grid.add_row(
            *(read if source is not before else ("", "", "")),
            row.rounding,
            row.overflow,
            row.output_bits,
            number_text(row.result.number),
            _mark(row),
        )
        before = source
    return grid


def _targets_table(results: CastResults) -> Table:
    """Return the targets' results one below the other, with differences from the abstract cast highlighted.

    The results that specifications accept follow.
    """
    request = results.request
    judged = "rejected by" if request.specified else _OUTCOME  # the latter column says what became of the value
    grid = table("given", "target", "rounding", "overflow", "sat", ">output bits", ">value", ">ulps", judged)
    if judged == _OUTCOME:
        _make_room(grid, results)
    grid.columns[1].min_width = max(len(name) for name in _names(results))
    versions = {cast.label: f"{cast.spec.name}@{cast.version}" for cast in request.specified}
    for source, rows in groupby(results.rows, key=lambda row: row.source):
        group = [_cells(row, versions) for row in rows]
        group += [_accepted_cells(row) for row in results.accepted if row.source is source]
        lines = [_given(source), source.bits]
        if not source.exact:
            lines.append(number_text(source.value))
        # One line beside each row; what is left over goes beside the last.
        beside = [*lines[: len(group) - 1], "\n".join(lines[len(group) - 1 :])]
        for cells, given in zip_longest(group, beside[: len(group)], fillvalue=""):
            assert isinstance(given, str)
            grid.add_row(given, *cells)
    return grid


def _names(results: CastResults) -> Iterator[str]:
    yield from (row.name for row in results.rows)
    yield from (cast.label for cast in results.request.specified)


def _cells(row: CastResult, versions: Mapping[str, str]) -> list[str | Text]:
    style = "bold red" if row.ulps != 0 else ""
    return [
        row.name,
        row.rounding if row.asked in (None, row.rounding) else f"{row.asked} -> {row.rounding}",
        row.overflow,
        row.saturation or "-",
        Text(row.output_bits, style=style),
        Text(number_text(row.result.number), style=style),
        Text(_ulps(row), style=style),
        _judgement(row, versions) if row.accepted_by else _mark(row),
    ]


def _judgement(row: CastResult, versions: Mapping[str, str]) -> Text:
    """Return the specifications that reject a result, with their attributes next to the results they accept."""
    against = [versions[label] for label, good in row.accepted_by.items() if not good]
    return Text("\n".join(against) or "-", style="bold red")


def _accepted_cells(row: AcceptedResults) -> list[str | Text]:
    """Return the row of a specification: one line per end of an interval, further code, or NaN."""
    bits, values = [], []
    if row.anything:
        bits, values = ["any"], ["any"]
    ends = [("", row.lowest)]
    if row.highest != row.lowest:
        ends.append(("to ", row.highest))
    ends.append(("or ", row.further))
    for word, end in ends:
        if end is not None:
            bits.append(f"{word}{end.bits}")
            values.append(f"{word}{number_text(end.number)}")
    if row.nan and not row.anything:
        bits.append("or NaN" if bits else "NaN")
        values.append("or nan" if values else "nan")
    return [row.specification, row.accepts, "-", "-", "\n".join(bits), "\n".join(values), "", ""]


def _make_room(grid: Table, results: CastResults) -> None:
    """Keep the last column from becoming too narrow."""
    grid.columns[-1].no_wrap = True
    grid.columns[-1].min_width = max(len(_OUTCOME), *(len(_mark(row)) for row in results.rows))


def _given(source: SourceValue) -> str:
    return source.text + ("" if source.exact else " *")


def _mark(row: CastResult) -> Text:
    """Return the change of the value; empty if it is unchanged."""
    word = _MARKS.get(row.outcome, str(row.outcome))
    return Text(word, style="yellow" if row.outcome is Outcome.ROUNDED else "bold yellow")


_MARKS = {Outcome.EXACT: "", Outcome.NAN: "NaN lost"}


def _ulps(row: CastResult) -> str:
    if row.target is None:
        return ""
    return "NaN" if row.ulps is None else f"{row.ulps:+d}" if row.ulps else "0"
