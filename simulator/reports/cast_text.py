"""Casts of single values, block quantisation, and comparisons of a user's conversion with a cast, as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import groupby, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from castsim.execution.outcomes import Outcome
from castsim.isa.dataclass import dataclass
from castsim.isa.formats import FORMATS, Codes, Format
from castsim.numerics.codec import codes_from_array, value_of
from castsim.numerics.quantisation import RULES, Quantised
from castsim.reports.cast import Accepted, CastResultRow, CastResults, SourceValue, ValueCastRequest, spread
from castsim.reports.documents import CommandDocument, Document, Keys, says
from castsim.reports.numbers import Number, bits_text, grouped, json_value
from castsim.reports.schemas.keys import Bits, Elements, Name, Ulps, Value
from castsim.reports.terminal import composed, table

if TYPE_CHECKING:
    from castsim.evidence.user_conversions import BinadeErrors, Comparison, ConversionCounterexample

_OUTCOME = "outcome"

DIGITS = 20
"""Maximum number of digits of a decimal that is shown exactly; longer ones are rounded to 9 digits and marked."""


def string_table(src: str, dst: str, rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Return casts from or to text, one row each."""
    keys = ("given", "text") if dst == "string" else ("given", "output_bits", "value")
    headings = [key.replace("_", " ") for key in keys]
    made = table(*headings, rows=([str(row[key]) for key in keys] for row in rows))
    return Group(Text(f"{src} -> {dst}", style="bold"), made)


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
def cast_text(found: CastResults) -> Iterator[RenderableType]:
    """Yield the table, one row per value, target and mode, and the warnings."""
    request = found.request
    yield Text(f"{request.src.name} -> {request.dst.name}", style="bold")
    yield _table(found)
    if any(not source.exact for source in request.sources):
        yield Text(f"* not representable in {request.src.name}: rounded to nearest first", style="dim")
    if request.targets:
        yield from _comparison(found)
    for cast in request.specified:
        yield Text(f"{cast.label} accepts ({cast.rule.status.value}): {cast.rule.meaning}", style="dim")
    for skipped in found.skipped:
        yield Text(f"not shown: {skipped.target}: {skipped.reason}", style="dim")
    for warning in found.warnings:
        yield Text.assemble(("warning: ", "bold yellow"), warning)


def _comparison(found: CastResults) -> Iterator[RenderableType]:
    """Yield the meaning of the distances, and the values whose results differ."""
    dst = found.request.dst
    yield Text(f"ulps: distance from the abstract cast in steps of {dst.name}; none for NaN", style="dim")
    if any(len(row.forms) == 1 for row in found.rows):
        yield Text("1d: tiles of full rows or of one row; 2d: tiles with rows beyond their valid part", style="dim")
    for group in found.differences():
        first = group[0]
        apart = spread(group, dst)
        distance = "NaN and numbers" if apart is None else f"{apart:,} ulp{'' if apart == 1 else 's'} apart"
        mode = "" if first.asked is None else f" by {first.asked}"
        yield Text.assemble(("differ: ", "bold red"), f"{first.source.text}{mode}: {distance}")


def _table(found: CastResults) -> Table:
    """Return one row per result; each value appears once, beside its rows."""
    request = found.request
    return _targets_table(found) if request.targets or request.specified else _abstract_table(found)


def _abstract_table(found: CastResults) -> Table:
    request = found.request
    made = table("given", ">input bits", ">read as", "rounding", "overflow", ">output bits", ">value", _OUTCOME)
    _make_room(made, found)
    before = None
    for row in found.rows:
        source = row.source
        read = (_given(source), bits_text(source.code, request.src), number_text(source.value))
        made.add_row(
            *(read if source is not before else ("", "", "")),
            row.rounding,
            row.overflow,
            bits_text(row.code, request.dst),
            number_text(row.value),
            _mark(row),
        )
        before = source
    return made


def _targets_table(found: CastResults) -> Table:
    """Return the targets' results one below the other, with differences from the abstract cast highlighted.

    The results that specifications accept follow.
    """
    request = found.request
    judged = "rejected by" if request.specified else _OUTCOME  # the latter column says what became of the value
    made = table("given", "target", "rounding", "overflow", "sat", ">output bits", ">value", ">ulps", judged)
    if judged == _OUTCOME:
        _make_room(made, found)
    made.columns[1].min_width = max(len(name) for name in _names(found))
    for index, (source, rows) in enumerate(groupby(found.rows, key=lambda row: row.source)):
        group = [_cells(row, request) for row in rows]
        group += [_accepted_cells(row, request.dst) for row in found.accepted if row.number == index]
        lines = [_given(source), bits_text(source.code, request.src)]
        if not source.exact:
            lines.append(number_text(source.value))
        # One line beside each row; what is left over goes beside the last.
        beside = [*lines[: len(group) - 1], "\n".join(lines[len(group) - 1 :])]
        for cells, given in zip_longest(group, beside[: len(group)], fillvalue=""):
            assert isinstance(given, str)
            made.add_row(given, *cells)
    return made


def _names(found: CastResults) -> Iterator[str]:
    yield from (row.name for row in found.rows)
    yield from (cast.label for cast in found.request.specified)


def _cells(row: CastResultRow, request: ValueCastRequest) -> list[str | Text]:
    dst = request.dst
    style = "bold red" if row.ulps != 0 else ""
    return [
        row.name,
        row.rounding if row.asked in (None, row.rounding) else f"{row.asked} -> {row.rounding}",
        row.overflow,
        row.saturation or "-",
        Text(bits_text(row.code, dst), style=style),
        Text(number_text(row.value), style=style),
        Text(_ulps(row), style=style),
        _judgement(row, request) if row.accepted_by else _mark(row),
    ]


def _judgement(row: CastResultRow, request: ValueCastRequest) -> Text:
    """Return the specifications that reject a result, with their attributes next to the results they accept."""
    versions = {cast.label: f"{cast.spec.name}@{cast.version}" for cast in request.specified}
    against = [versions[label] for label, good in row.accepted_by.items() if not good]
    return Text("\n".join(against) or "-", style="bold red")


def _accepted_cells(row: Accepted, dst: Format) -> list[str | Text]:
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
            bits.append(f"{word}{bits_text(end[0], dst)}")
            values.append(f"{word}{number_text(end[1])}")
    if row.nan and not row.anything:
        bits.append("or NaN" if bits else "NaN")
        values.append("or nan" if values else "nan")
    return [row.cast.label, row.kind, "-", "-", "\n".join(bits), "\n".join(values), "", ""]


def _make_room(made: Table, found: CastResults) -> None:
    """Keep the last column from becoming too narrow."""
    made.columns[-1].no_wrap = True
    made.columns[-1].min_width = max(len(_OUTCOME), *(len(_mark(row)) for row in found.rows))


def _given(source: SourceValue) -> str:
    return source.text + ("" if source.exact else " *")


def _mark(row: CastResultRow) -> Text:
    """Return the change of the value; empty if it is unchanged."""
    word = _MARKS.get(row.outcome, str(row.outcome))
    return Text(word, style="yellow" if row.outcome is Outcome.ROUNDED else "bold yellow")


_MARKS = {Outcome.EXACT: "", Outcome.NAN: "NaN lost"}


def _ulps(row: CastResultRow) -> str:
    if row.target is None:
        return ""
    return "NaN" if row.ulps is None else f"{row.ulps:+d}" if row.ulps else "0"


# What block quantisation made of an array, as data, as JSON and as text.

SHOWN = 256
"""Maximum number of an array's elements that are shown individually."""


@dataclass(frozen=True, slots=True)
class QuantisedRow:
    """One number: its code, the codes of its element and block scale, and the value of both together."""

    code: int
    number: Number
    element: int
    scale: int
    value: Number


def quantised_rows(array: Codes, src: Format, made: Quantised) -> tuple[QuantisedRow, ...]:
    """Return the numbers of an array in C order."""
    codes = codes_from_array(np.asarray(array), src)
    scales = codes_from_array(made.scales, made.format.scale)
    elements = codes_from_array(made.elements, made.format.element)
    values = codes_from_array(np.asarray(made.dequantise("f64")), FORMATS["f64"])
    return tuple(
        QuantisedRow(
            int(codes[place]),
            value_of(int(codes[place]), src),
            int(elements[place]),
            int(scales[tuple(index // size for index, size in zip(place, made.blocks, strict=True))]),
            value_of(int(values[place]), FORMATS["f64"]),
        )
        for place in np.ndindex(codes.shape)
    )


class QuantisedElement(Keys):
    """One number of the array."""

    input_bits: Bits = says("Its code.")
    number: Value = says("The number, or `nan`, `inf`, `-inf`.")
    element_bits: Bits = says("The code of the element.")
    scale_bits: Bits = says("The code of its block's scale.")
    value: Value = says("Element times scale.")


def _finite(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else value


class QuantisationError(Keys):
    """The errors of the finite numbers outside blocks with NaN; null where f64 cannot hold one."""

    elements: Elements = says("Number of elements of the array.")
    compared: Elements = says("Number of elements with an error.")
    largest_error: float | None = says(of=lambda found: _finite(found.largest_error))
    """The largest absolute error."""
    largest_relative_error: float | None = says(of=lambda found: _finite(found.largest_relative_error))
    """The largest error relative to the number."""
    root_mean_square_error: float | None = says(of=lambda found: _finite(found.root_mean_square_error))
    """Root mean square of the absolute errors."""
    signal_to_noise_db: float | None = says(of=lambda found: _finite(found.signal_to_noise_db))
    """Signal to noise in decibels; null without an error or without numbers."""
    clamped: Elements = says("Number of values above the largest element in magnitude, including infinities.")
    to_zero: Elements = says("Number of values that became zero.")
    nan_blocks: int = says("Number of blocks with NaN.")


class Quantise(CommandDocument, name="quantise"):
    """An array quantised to elements that share scales."""

    format: str = says("The block format, or the format of the elements.", "format.name")
    source_format: str = says("Format of the numbers.")
    element_format: str = says("Format of the elements.", "format.element")
    scale_format: str = says("Format of the scales.", "format.scale")
    scale_rule: Annotated[str, ("enum", tuple(RULES))] = says(of="format.rule")
    """The rule that derives scales from the largest magnitude."""
    shape: list[int] = says("Shape of the array.", "elements.shape")
    block: list[Elements] = says("Size of a block along each axis.", "blocks")
    blocks: int = says("Number of blocks, each with a scale.", "scales.size")
    error: QuantisationError = says("The errors.", "statistics")
    elements: list[QuantisedElement] = says("The elements in C order; empty if there are more than 256.")
    files: dict[Name, str] = says("With `--out`: the files written.")


def quantised_document(
    src: Format, made: Quantised, rows: Sequence[QuantisedRow], files: Mapping[str, Path]
) -> Document:
    """Return a quantised array as JSON; individual elements only for small arrays."""
    element, scale = made.format.element, made.format.scale
    elements = [
        QuantisedElement.of(
            input_bits=bits_text(row.code, src),
            number=json_value(row.number, src),
            element_bits=bits_text(row.element, element),
            scale_bits=bits_text(row.scale, scale),
            value=json_value(row.value, FORMATS["f64"]),
        )
        for row in rows
    ]
    return Quantise.of(made, source_format=src, elements=elements, files=files)


# What block quantisation made of an array, as text.


@composed
def quantised_text(
    src: Format, made: Quantised, rows: Sequence[QuantisedRow], files: Mapping[str, Path]
) -> Iterator[RenderableType]:
    """Yield the elements of a small array, and the statistics of the error."""
    chosen, found = made.format, made.statistics
    yield Text(f"{src.name} -> {chosen.name}", style="bold")
    blocks = f"{made.scales.size} block{'' if made.scales.size == 1 else 's'}"
    size = "x".join(map(str, made.blocks)) or "1"
    yield Text(f"{found.elements} elements {chosen.element.name} in {blocks} of up to {size}, ", end="")
    yield Text(f"scales {chosen.scale.name} by {chosen.rule}")
    if rows:
        cells = (
            (number_text(row.number), bits_text(row.code, src), bits_text(row.element, chosen.element),
             bits_text(row.scale, chosen.scale), number_text(row.value))
            for row in rows
        )  # fmt: skip
        yield table(">number", ">input bits", ">element", ">scale", ">value", rows=cells)
    noise = "-" if found.signal_to_noise_db is None else f"{found.signal_to_noise_db:.2f} dB"
    yield Text(f"largest error: {found.largest_error:.6g} (relative: {found.largest_relative_error:.3g})")
    yield Text(f"root mean square error: {found.root_mean_square_error:.6g}, signal to noise: {noise}")
    yield Text(f"clamped: {found.clamped}, became zero: {found.to_zero}, blocks with NaN: {found.nan_blocks}")
    if found.compared < found.elements:
        yield Text(f"errors are of the {found.compared} finite numbers outside blocks with NaN", style="dim")
    for name, path in files.items():
        yield Text(f"{name}: {path}")


# Comparison of a user's conversion with a cast, as JSON and as text.


class FirstDifference(Keys):
    """The first input, in order, whose result differs."""

    position: int = says("Position of the input, from 0.")
    input_bits: Bits = says("Its code.")
    input: Value = says("Its number, or `nan`, `inf`, `-inf`.")
    expected_bits: Bits = says("The code of the cast's result.")
    expected: Value = says("Its number.")
    given_bits: Bits | None = says("The given code; null if the destination has no such number.")
    given: Value = says("The given number.")


class DifferingBinade(Keys):
    """Inputs of one binade, some of whose results differ."""

    kind: Literal["number", "zero", "infinite", "nan"] = says("Kind of the inputs.")
    exponent: int | None = says(
        "Exponent of 2 of the smallest magnitude in the range, which ends below twice that; null unless numbers."
    )
    inputs: Elements = says("Number of inputs of that magnitude.")
    differing: Elements = says("Number of these inputs with different results.")
    largest_ulps: Ulps = says("The largest distance between their results.")


class Compare(CommandDocument, name="compare"):
    """A user's conversion compared with a cast."""

    src: Name = says("Format of the inputs.")
    dst: Name = says("Format of the results.")
    target: str | None = says("The chip with the cast; null for the abstract cast.")
    inputs: Elements = says("Number of compared inputs.")
    all_codes: bool = says("Whether these are all codes of the source.")
    differing: Elements = says("Number of results that differ.")
    unrepresentable: Elements = says("Number of results that the destination lacks.")
    largest_ulps: Ulps = says("The largest distance between results that are both numbers.")
    mean_ulps: float = says("The mean distance between results that are both numbers, in ulps.")
    signal_to_noise_db: float | None
    """Signal-to-noise ratio of finite results against the inputs, in decibels; null without an error."""
    cast_signal_to_noise_db: float | None = says("The signal-to-noise ratio of the cast.")
    first: FirstDifference | None = says("The first difference; null if there is none.")
    binades: list[DifferingBinade] = says("Magnitudes with differences, in ascending order.")
    verdict: str = says("A sentence with the number and place of the differences, and the results of both there.")
    remedy: dict[Name, str] | None = says("Options of the cast that make all results equal; null if there are none.")


def comparison_document(found: Comparison) -> Document:
    """Return the comparison."""
    first = None if found.first is None else _first(found, found.first)
    return Compare.of(found, first=first)


def _first(found: Comparison, first: ConversionCounterexample) -> Document:
    number = first.number
    return FirstDifference.of(
        first,
        input_bits=bits_text(first.code, found.src),
        input=json_value(value_of(first.code, found.src), found.src),
        expected_bits=bits_text(first.expected, found.dst),
        expected=json_value(value_of(first.expected, found.dst), found.dst),
        given_bits=None if first.given is None else bits_text(first.given, found.dst),
        given=json_value(number, FORMATS["f64"]) if not math.isfinite(number) else number,
    )


_BINADES_SHOWN = 12
"""Maximum number of binades that are printed."""


@composed
def comparison_text(found: Comparison) -> Iterator[RenderableType]:
    """Yield the findings, the answer first."""
    cast = f"{found.src.name} -> {found.dst.name}" + (f" on {found.target}" if found.target else "")
    tried = f"all {grouped(found.inputs)} codes" if found.all_codes else f"{grouped(found.inputs)} inputs"
    if found.equal:
        end = "" if found.all_codes else ": evidence, no proof"
        yield Text(f"equal to {cast} on {tried}{end}")
        return
    yield Text(f"{found.verdict}. {_advice(found)}", style="bold")
    yield Text(f"compared with {cast} on {tried}")
    if found.first is not None:
        yield Text(_first_text(found, found.first))
    yield Text(f"largest distance {grouped(found.largest_ulps)} ulps, mean {found.mean_ulps:.3g}", end="")
    missing = (
        f"; {grouped(found.unrepresentable)} are not representable in {found.dst.name}" if found.unrepresentable else ""
    )
    yield Text(missing)
    own, other = (
        "no error" if each is None else f"{each:.2f} dB"
        for each in (found.signal_to_noise_db, found.cast_signal_to_noise_db)
    )
    yield Text(f"signal to noise {own}, of the cast {other}")
    binades = sorted(found.binades, key=lambda binade: -binade.differing)[:_BINADES_SHOWN]
    rows = ((_magnitude(one), *map(grouped, (one.inputs, one.differing, one.largest_ulps))) for one in binades)
    yield Text()
    yield table("magnitude", ">inputs", ">differ", ">largest ulps", rows=rows)
    if len(found.binades) > _BINADES_SHOWN:
        yield Text(f"... and {len(found.binades) - _BINADES_SHOWN} more binades (--json)")


def _advice(found: Comparison) -> str:
    """Return the options that make the results equal, or a sentence that none does."""
    if found.remedy is None:
        return "No option of the cast makes them equal."
    from castsim.evidence.user_conversions import CAST_WORDS  # noqa: PLC0415 - `castsim compare` has loaded it

    words = (
        f"--{name} {value}" if name in (*CAST_WORDS, "nan") else f"--option {name}={value}"
        for name, value in found.remedy.items()
    )
    return f"Try `{' '.join(words)}`."


def _first_text(found: Comparison, first: ConversionCounterexample) -> str:
    dst = found.dst
    given = f"{first.number:.9g}, which {dst.name} lacks" if first.given is None else coded_number(first.given, dst)
    right = coded_number(first.expected, dst)
    return f"first: {coded_number(first.code, found.src)} gives {given}; the cast gives {right}"


def _magnitude(binade: BinadeErrors) -> str:
    return binade.kind if binade.exponent is None else f"2^{binade.exponent} .. 2^{binade.exponent + 1}"
