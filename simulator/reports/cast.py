"""The results of casting single values: the table of `castsim cast` as data, JSON and text."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import groupby, zip_longest
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from castsim.execution.outcomes import Outcome
from castsim.isa.formats import Format, IntFormat, TaperedFormat
from castsim.isa.modes import Overflow, Saturation
from castsim.isa.warning_text import Warnings
from castsim.lowering.specifications.acceptance import SpecifiedCast
from castsim.lowering.specifications.tosa_operators import AcceptanceSets
from castsim.machines.target_cast import CastForm
from castsim.numerics import value_of
from castsim.reports.documents import CommandDocument, Document, Keys, identifier, says
from castsim.reports.numbers import Number, bits_text, ends_document, json_value
from castsim.reports.schemas.keys import Bits, Name, Ulps, Value
from castsim.reports.schemas.keys import Number as NumberKeys
from castsim.reports.terminal import table
from castsim.targets import Target

# The results that specifications accept for single values: rows beside those of targets, as data and as JSON.


@dataclass(frozen=True, slots=True)
class Accepted:
    """The results that a specification accepts for one value, the `number`-th of the request.

    Every code if `anything`; else the numbers from `lowest` to `highest` and `further`, codes with their values (None:
    no number; no further one), and every NaN if `nan`.
    """

    number: int
    cast: SpecifiedCast
    lowest: tuple[int, Number] | None
    highest: tuple[int, Number] | None
    further: tuple[int, Number] | None
    nan: bool
    anything: bool

    @property
    def kind(self) -> str:
        """The form of the set: exact, interval, class (NaN only) or any."""
        if self.anything:
            return "any"
        if self.lowest is None:
            return "class"
        return "exact" if self.lowest == self.highest and self.further is None and not self.nan else "interval"


def accepted(cast: SpecifiedCast, sets: AcceptanceSets, number: int) -> Accepted:
    """Return the accepted results for one element of the sets."""
    anything, nan = bool(sets.anything[number]), bool(sets.nan[number])
    if anything or not sets.numbers[number]:
        return Accepted(number, cast, None, None, None, nan, anything)
    low, high, further = (
        (int(codes[number]), value_of(int(codes[number]), sets.dst))
        for codes in (sets.lowest, sets.highest, sets.further)
    )
    return Accepted(number, cast, low, high, None if further in (low, high) else further, nan, anything)


class AcceptedResults(Keys):
    """The results that a specification accepts for one value."""

    specification: str = says("Name and version, `tosa@1.1`.", "cast.label")
    input_bits: Bits = says("The code that was cast.")
    accepts: str = says("Form of the set: `exact`, `interval`, `class` (NaN only) or `any`.", "kind")
    lowest: NumberKeys | None = says("The lowest number; null if there is none.")
    highest: NumberKeys | None = says("The highest number; null if there is none.")
    further: NumberKeys | None = says("A number beside those from `lowest` to `highest`; null if there is none.")
    nan: bool = says("Whether every NaN is accepted.", lambda row: row.nan or row.anything)
    rule: str = says("Name of the rule.", "cast.rule_name")
    meaning: str = says("The rule in words.", "cast.rule.meaning")
    requires: list[str] = says("Profiles and extensions that the cast needs.", "cast.requires")
    status: str = says("How well the rule is known.", "cast.rule.status")
    source: str = says("Where it is from.", "cast.rule.source")


def accepted_document(row: Accepted, input_bits: str, dst: Format) -> Document:
    """Return one row as JSON; numbers that are not there are null."""
    return AcceptedResults.of(row, input_bits=input_bits, **ends_document((row.lowest, row.highest, row.further), dst))


# The distance between two results, in steps from one number of the format to the next.


def ulp_distance(first: int, second: int, fmt: Format) -> int | None:
    """Return the number of steps from one code's number up to another's, negative if they lead down.

    Both zeros are one number, infinity is one step beyond the largest. From NaN to NaN it is 0 steps, from NaN to a
    number there is no way: None.
    """
    one, other = ordinal(first, fmt), ordinal(second, fmt)
    if one is None or other is None:
        return 0 if one is other else None
    return other - one


def ordinal(code: int, fmt: Format) -> int | None:
    """Return the place of a number among those of its format, zero (or, without one, code 0) at 0; None for NaN."""
    value = value_of(code, fmt)
    if isinstance(fmt, IntFormat):
        return int(value)
    if math.isnan(value):
        return None
    magnitude = code & ~fmt.sign_bit if fmt.signed else code
    place = _tapered_place(magnitude, fmt) if isinstance(fmt, TaperedFormat) else magnitude
    return -place if fmt.signed and code & fmt.sign_bit else place


def _tapered_place(magnitude: int, fmt: TaperedFormat) -> int:
    if magnitude == 0:
        return 0
    codes, places = _tapered_places(fmt)
    index = bisect_right(codes, magnitude) - 1
    return places[index] + magnitude - codes[index]


@lru_cache(maxsize=8)
def _tapered_places(fmt: TaperedFormat) -> tuple[list[int], list[int]]:
    """Return the first code of every binade, rising, and the place of that code among the positive numbers."""
    place, found = 1, {}
    for binade in sorted(fmt.binades, key=lambda binade: binade.exponent):
        found[binade.first_code] = place
        place += 1 << binade.fraction_bits
    codes = sorted(found)
    return codes, [found[code] for code in codes]


@dataclass(frozen=True, slots=True)
class SourceValue:
    """One value to cast: the text given, the code of the source format it stands for.

    `exact` is False if the text names a number that the source format does not have.
    """

    text: str
    code: int
    value: Number
    exact: bool


@dataclass(frozen=True, slots=True)
class ValueCastRequest:
    """The values to cast and the modes; empty modes mean the default.

    `abstract` asks for the cast without a chip, beside those of `targets` if there are any. If `lenient`, targets that
    do not have the cast are passed over. `specified` are the specifications to judge by.
    """

    src: Format
    dst: Format
    sources: tuple[SourceValue, ...]
    targets: tuple[Target, ...]
    roundings: tuple[str, ...]
    overflows: tuple[Overflow, ...]
    saturation: Saturation | None
    scratch: bool
    abstract: bool
    lenient: bool
    specified: tuple[SpecifiedCast, ...] = ()


@dataclass(frozen=True, slots=True)
class CastResultRow:
    """One value under one target and mode; `target` None is the abstract cast.

    `asked` is the rounding that was asked for (None: the default); the other modes are those in force. `ulps` is the
    distance from the abstract cast with the rounding asked for; None between NaN and a number. `accepted_by` says of
    each specification whether it accepts the result, `outcome` what became of the value. `forms` are those of the
    target's tile casts that give this result; none where it has no more than one.
    """

    source: SourceValue
    target: str | None
    asked: str | None
    rounding: str
    overflow: str
    saturation: str | None
    code: int
    value: Number
    ulps: int | None = 0
    accepted_by: Mapping[str, bool] = field(default_factory=dict)
    outcome: Outcome = Outcome.EXACT
    forms: tuple[CastForm, ...] = ()

    @property
    def name(self) -> str:
        """The target, and the form if others of it give another result; `abstract` without a target."""
        if self.target is None:
            return "abstract"
        return f"{self.target} {self.forms[0]}" if len(self.forms) == 1 else self.target

    def form_of(self, other: CastResultRow) -> bool:
        """Whether this is another form of the same cast, on the same target with the same rounding."""
        same = (self.target, self.asked) == (other.target, other.asked)
        return same and bool(self.forms) and not set(self.forms) & set(other.forms)

    @property
    def inexact(self) -> bool:
        """Whether the result differs from the value that was cast."""
        return self.outcome is not Outcome.EXACT


@dataclass(frozen=True, slots=True)
class Skipped(Keys):
    """A target that was passed over."""

    target: str = says("Its name.")
    reason: str = says("Why.")


@dataclass(frozen=True, slots=True)
class CastResults:
    """All rows, value by value, what targets did not do as asked, which did nothing, and what specifications accept."""

    request: ValueCastRequest
    rows: tuple[CastResultRow, ...]
    warnings: Warnings
    skipped: tuple[Skipped, ...] = ()
    accepted: tuple[Accepted, ...] = ()

    def differences(self) -> list[tuple[CastResultRow, ...]]:
        """Return the groups of rows of one value and one rounding asked for whose results are not all the same."""
        groups: dict[tuple[int, str | None], list[CastResultRow]] = {}
        for row in self.rows:
            groups.setdefault((id(row.source), row.asked), []).append(row)
        found = [tuple(group) for group in groups.values() if len({row.code for row in group}) > 1]
        return found if self.request.targets else []


class CastResult(Keys):
    """What one value becomes on one target under one mode."""

    target: str | None = says("Name of the target; null for the abstract cast.")
    forms: list[CastForm]
    """The forms of the target's tile cast that give this result: `1d` of contiguous tiles, `2d` of others; empty if it
    has no forms."""
    rounding: str = says("The rounding in force.")
    overflow: str = says("The overflow policy in force: `saturate`, `special` or `wrap`.")
    saturation: str | None
    """The saturation mode in force, `on` or `off`, where the target has a choice; else what happens beyond the range:
    `clamps`, `none: inf`, `none: NaN`, `none: low bits`, or `not needed`; null for the abstract cast."""
    input_bits: Bits = says("The code that was cast.")
    output_bits: Bits = says("The code of the result.")
    value: Value = says("The number that the result stands for, or `nan`, `inf`, `-inf`.")
    inexact: bool = says("Whether it differs from the value that was cast.")
    outcome: Outcome
    """What became of the value: `exact`, `rounded`, `clamped`, `wrapped`, `overflow` or `nan` (NaN became a number)."""
    ulps_from_abstract: Ulps | None = says(of="ulps")
    """Distance from the abstract cast with the rounding asked for; null between NaN and a number."""
    accepted_by: dict[Name, bool] = says("Whether each specification accepts it, by name and version.")


class CastDifference(Keys):
    """A value and a rounding for which targets differ."""

    input_bits: Bits = says("The code that was cast.")
    rounding_asked: str | None = says("The rounding asked for; null for the default.")
    output_bits: dict[Name, Bits]
    """The result on each target (and its form, `a5_2d`, if they differ), and of the abstract cast as `abstract`."""
    max_ulps_apart: Ulps | None = says("The largest distance among them; null if some are NaN and some are not.")


class Cast(CommandDocument, name="cast"):
    """Values cast, value by value."""

    results: list[CastResult] = says("One entry for each value, target and mode.")
    differences: list[CastDifference] = says("Where targets differ.")
    skipped: list[Skipped] = says("Targets that do not have the cast.")
    warnings: list[str] = says("What targets did not do as asked.")
    specifications: list[AcceptedResults] = says("What the specifications asked for accept.")


class TextResult(Keys):
    """What one value becomes, from text or to text."""

    given: str = says("The value as typed.")
    text: str | None = says("The result where it is text.")
    output_bits: Bits | None = says("The code of the result where it is a number.")
    value: Value | None = says("That number, or `nan`, `inf`, `-inf`.")


class CastText(CommandDocument, name="cast-text"):
    """Values cast from text or to text."""

    source_format: str = says("Name of the source format, or `string`.")
    destination_format: str = says("Name of the destination format, or `string`.")
    results: list[TextResult] = says("One entry for each value.")


def cast_document(table: CastResults) -> Document:
    """Return the table as JSON. A finite value is a number, others are `nan`, `inf`, `-inf`."""
    src, dst, sources = table.request.src, table.request.dst, table.request.sources
    return Cast.of(
        table,
        results=[
            CastResult.of(
                row,
                input_bits=bits_text(row.source.code, src),
                output_bits=bits_text(row.code, dst),
                value=json_value(row.value, dst),
            )
            for row in table.rows
        ],
        differences=[
            CastDifference.of(
                input_bits=bits_text(group[0].source.code, src),
                rounding_asked=group[0].asked,
                output_bits={identifier(row.name): bits_text(row.code, dst) for row in group},
                max_ulps_apart=spread(group, dst),
            )
            for group in table.differences()
        ],
        specifications=[
            accepted_document(row, bits_text(sources[row.number].code, src), dst) for row in table.accepted
        ],
    )


def spread(group: Sequence[CastResultRow], fmt: Format) -> int | None:
    """Return the largest distance in ulps within a group of results, None if some are NaN and some are not."""
    places = [ordinal(row.code, fmt) for row in group]
    known = [place for place in places if place is not None]
    if len(known) == len(places):
        return max(known) - min(known)
    return None if known else 0


# The results of casting single values, as text.

_OUTCOME = "outcome"

DIGITS = 20
"""Longest decimal that is written out exactly; longer ones are cut to 9 significant digits and marked."""


def cast_text(found: CastResults) -> RenderableType:
    """Return the table, one row per value, target and mode, and the warnings."""
    return Group(*_sections(found))


def string_table(src: str, dst: str, rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Return casts from or to text, one row each."""
    numbers = dst != "string"
    made = table("given", "output bits", "value") if numbers else table("given", "text")
    for row in rows:
        made.add_row(row["given"], *((row["output_bits"], str(row["value"])) if numbers else (row["text"],)))
    return Group(Text(f"{src} -> {dst}", style="bold"), made)


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


def _sections(found: CastResults) -> Iterator[RenderableType]:
    request = found.request
    yield Text(f"{request.src.name} -> {request.dst.name}", style="bold")
    yield _table(found)
    if any(not source.exact for source in request.sources):
        yield Text(f"* not a number of {request.src.name}: rounded to nearest first", style="dim")
    if request.targets:
        yield from _comparison(found)
    for cast in request.specified:
        yield Text(f"{cast.label} accepts ({cast.rule.status.value}): {cast.rule.meaning}", style="dim")
    for skipped in found.skipped:
        yield Text(f"not shown: {skipped.target}: {skipped.reason}", style="dim")
    for warning in found.warnings:
        yield Text.assemble(("warning: ", "bold yellow"), warning)


def _comparison(found: CastResults) -> Iterator[RenderableType]:
    """Yield what the distances mean, and the values on which the results are not the same."""
    dst = found.request.dst
    yield Text(f"ulps: steps of {dst.name} from the abstract cast, rounding as asked; NaN has none", style="dim")
    if any(len(row.forms) == 1 for row in found.rows):
        yield Text("1d: tiles of full rows, or of a single row; 2d: tiles whose rows go on behind them", style="dim")
    for group in found.differences():
        first = group[0]
        apart = spread(group, dst)
        distance = "NaN and numbers" if apart is None else f"{apart} ulp{'' if apart == 1 else 's'} apart"
        mode = "" if first.asked is None else f" by {first.asked}"
        yield Text.assemble(("differ: ", "bold red"), f"{first.source.text}{mode}: {distance}")


def _table(found: CastResults) -> Table:
    """Return one row per result; each value is named once, beside its rows."""
    request = found.request
    return _targets_table(found) if request.targets or request.specified else _abstract_table(found)


def _abstract_table(found: CastResults) -> Table:
    request = found.request
    numbers = ("input bits", "read as", "output bits", "value")
    made = table(
        "given", "input bits", "read as", "rounding", "overflow", "output bits", "value", _OUTCOME, numbers=numbers
    )
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
    """Return the results of targets below one another, what differs from the abstract cast highlighted.

    Below them what specifications accept.
    """
    request = found.request
    numbers = ("output bits", "value", "ulps")
    judged = "rejected by" if request.specified else _OUTCOME  # the latter column says what became of the value
    made = table("given", "target", "rounding", "overflow", "sat", *numbers, judged, numbers=numbers)
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
    """Return the specifications that reject a result; their attributes stand beside what they accept."""
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
    """Keep the last column from being squeezed."""
    made.columns[-1].no_wrap = True
    made.columns[-1].min_width = max(len(_OUTCOME), *(len(_mark(row)) for row in found.rows))


def _given(source: SourceValue) -> str:
    return source.text + ("" if source.exact else " *")


def _mark(row: CastResultRow) -> Text:
    """Return what became of the value, nothing if it stayed the same."""
    word = _MARKS.get(row.outcome, str(row.outcome))
    return Text(word, style="yellow" if row.outcome is Outcome.ROUNDED else "bold yellow")


_MARKS = {Outcome.EXACT: "", Outcome.NAN: "NaN lost"}


def _ulps(row: CastResultRow) -> str:
    if row.target is None:
        return ""
    return "NaN" if row.ulps is None else f"{row.ulps:+d}" if row.ulps else "0"
