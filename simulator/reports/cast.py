"""The results of casting single values: the table of `castsim cast` as data and as JSON."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from castsim.execution.outcomes import Outcome
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import Warnings
from castsim.isa.formats import Format, IntFormat, Overflow, Saturation, TaperedFormat
from castsim.machines.mechanisms import CastForm
from castsim.numerics.codec import value_of
from castsim.reports.documents import CommandDocument, Document, Keys, apart, derived, identifier, record, says
from castsim.reports.numbers import Number, bits_text, ends_document, json_value
from castsim.reports.schemas.keys import Bits, Name, Ulps, Value
from castsim.reports.schemas.keys import Number as NumberKeys
from castsim.targets.loader import Target

if TYPE_CHECKING:
    from castsim.running.acceptance import AcceptanceSets, SpecifiedCast

# The results that specifications accept for single values: rows beside those of targets, as data and as JSON.


@dataclass(frozen=True, slots=True)
class Accepted:
    """Results that a specification accepts for one value, the `number`-th of the request.

    Every code if `anything`; otherwise the numbers from `lowest` to `highest` and `further`, codes with their values
    (None: no such number), and every NaN if `nan`.
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
    further: NumberKeys | None = says("A number outside that range; null if there is none.")
    nan: bool = says("Whether every NaN is accepted.", lambda row: row.nan or row.anything)
    rule: str = says("Name of the rule.", "cast.rule_name")
    meaning: str = says("The rule in words.", "cast.rule.meaning")
    requires: list[str] = says("Profiles and extensions that the cast needs.", "cast.requires")
    status: str = says("Evidence for the rule.", "cast.rule.status")
    source: str = says("Source of the rule.", "cast.rule.source")


def accepted_document(row: Accepted, input_bits: str, dst: Format) -> Document:
    """Return one row as JSON; missing numbers are null."""
    return AcceptedResults.of(row, input_bits=input_bits, **ends_document((row.lowest, row.highest, row.further), dst))


# The distance between two results, in steps from one number of the format to the next.


def ulp_distance(first: int, second: int, fmt: Format) -> int | None:
    """Return the number of steps from one code's number up to another's, negative for steps down.

    Both zeros are one number, infinity is one step beyond the largest. Between two NaNs it is 0, between NaN and a
    number it is None.
    """
    left, other = ordinal(first, fmt), ordinal(second, fmt)
    if left is None or other is None:
        return 0 if left is other else None
    return other - left


def ordinal(code: int, fmt: Format) -> int | None:
    """Return the position of a number among the numbers of its format; zero (or code 0) is at 0; None for NaN."""
    value = value_of(code, fmt)
    if isinstance(fmt, IntFormat):
        return int(value)
    if math.isnan(value):
        return None
    magnitude = code & ~fmt.sign_bit if fmt.signed else code
    position = _tapered_place(magnitude, fmt) if isinstance(fmt, TaperedFormat) else magnitude
    return -position if fmt.signed and code & fmt.sign_bit else position


def _tapered_place(magnitude: int, fmt: TaperedFormat) -> int:
    if magnitude == 0:
        return 0
    codes, places = _tapered_places(fmt)
    index = bisect_right(codes, magnitude) - 1
    return places[index] + magnitude - codes[index]


@lru_cache(maxsize=8)
def _tapered_places(fmt: TaperedFormat) -> tuple[list[int], list[int]]:
    """Return the first code of every binade, rising, and that code's rank among the positive numbers."""
    position, positions = 1, {}
    for binade in sorted(fmt.binades, key=lambda binade: binade.exponent):
        positions[binade.first_code] = position
        position += 1 << binade.fraction_bits
    codes = sorted(positions)
    return codes, [positions[code] for code in codes]


@dataclass(frozen=True, slots=True)
class SourceValue:
    """One value to cast: its text, and the code of the source format for it.

    `exact` is False if the text names a number that the source format does not have.
    """

    text: str
    code: int
    value: Number
    exact: bool


@dataclass(frozen=True, slots=True)
class ValueCastRequest:
    """The values to cast and the modes; empty modes mean the default.

    `abstract` requests the cast without a chip, in addition to those of `targets`. If `lenient`, targets without
    the cast are skipped. `specified` are the specifications that judge the results.
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


@record
class CastResultRow(Keys, title="CastResult"):
    """The result of one value on one target under one mode."""

    request: ValueCastRequest = apart()
    source: SourceValue = apart()
    target: str | None = says("Name of the target; null for the abstract cast.")
    asked: str | None = apart()
    """The requested rounding; None: the default."""
    forms: tuple[CastForm, ...]
    """The forms of the target's tile cast that give this result: `1d` (contiguous tiles), `2d` (others); empty if it
    has no forms."""
    rounding: str = says("The effective rounding.")
    overflow: str = says("The effective overflow policy: `saturate`, `special` or `wrap`.")
    saturation: str | None
    """The saturation mode in force, `on` or `off`, if the target has a choice; otherwise the effect beyond the range:
    `clamps`, `none: inf`, `none: NaN`, `none: low bits`, or `not needed`; null for the abstract cast."""
    code: int = apart()
    value: Number = apart()
    input_bits: Bits = derived("The code that was cast.", lambda own: bits_text(own.source.code, own.request.src))
    output_bits: Bits = derived("The code of the result.", lambda own: bits_text(own.code, own.request.dst))
    json_value: Value = derived(
        "The number that the result represents, or `nan`, `inf`, `-inf`.",
        lambda own: json_value(own.value, own.request.dst),
        key="value",
    )
    inexact: bool = derived("Whether it differs from the original value.", lambda own: own.outcome is not Outcome.EXACT)
    outcome: Outcome
    """Effect on the value: `exact`, `rounded`, `clamped`, `wrapped`, `overflow` or `nan` (NaN became a number)."""
    ulps: Ulps | None = says(
        "Distance from the abstract cast with the requested rounding; null between NaN and a number.",
        key="ulps_from_abstract",
        default=0,
    )
    accepted_by: Mapping[Name, bool] = says(
        "Whether each specification accepts it, by name and version.", default_factory=dict
    )

    @property
    def name(self) -> str:
        """The target, and the form if other forms give another result; `abstract` without a target."""
        if self.target is None:
            return "abstract"
        return f"{self.target} {self.forms[0]}" if len(self.forms) == 1 else self.target

    def form_of(self, other: CastResultRow) -> bool:
        """Return whether this row is another form of the same cast, on the same target with the same rounding."""
        same = (self.target, self.asked) == (other.target, other.asked)
        return same and bool(self.forms) and not set(self.forms) & set(other.forms)


@dataclass(frozen=True, slots=True)
class Skipped(Keys):
    """A target that was skipped."""

    target: str = says("Its name.")
    reason: str = says("The reason.")


@dataclass(frozen=True, slots=True)
class CastResults:
    """All rows, value by value, deviations of targets from the request, skipped targets, and the accepted results."""

    request: ValueCastRequest
    rows: tuple[CastResultRow, ...]
    warnings: Warnings
    skipped: tuple[Skipped, ...] = ()
    accepted: tuple[Accepted, ...] = ()

    def differences(self) -> list[tuple[CastResultRow, ...]]:
        """Return the groups of rows with one value and one requested rounding whose results differ."""
        groups: dict[tuple[int, str | None], list[CastResultRow]] = {}
        for row in self.rows:
            groups.setdefault((id(row.source), row.asked), []).append(row)
        differing = [tuple(group) for group in groups.values() if len({row.code for row in group}) > 1]
        return differing if self.request.targets else []


class CastDifference(Keys):
    """A value and a rounding whose results differ between targets."""

    input_bits: Bits = says("The code that was cast.")
    rounding_asked: str | None = says("The requested rounding; null for the default.")
    output_bits: dict[Name, Bits]
    """The result on each target (and its form, `a5_2d`, if they differ), and of the abstract cast as `abstract`."""
    max_ulps_apart: Ulps | None = says("The largest distance among the results; null if some are NaN and some are not.")


class Cast(CommandDocument, name="cast", version=3):
    """Values cast, value by value."""

    results: list[CastResultRow] = says("One entry for each value, target and mode.", "rows")
    differences: list[CastDifference] = says("The differences between targets.")
    skipped: list[Skipped] = says("Targets without the cast.")
    warnings: list[str] = says("Deviations of targets from the request.")
    specifications: list[AcceptedResults] = says("The accepted results of the requested specifications.")


class TextResult(Keys):
    """The result of one value, from text or to text."""

    given: str = says("The value as typed.")
    text: str | None = says("The result, if it is text.")
    output_bits: Bits | None = says("The code of the result, if it is a number.")
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
    """Return the largest distance in ulps within a group of results, None if only some are NaN."""
    places = [ordinal(row.code, fmt) for row in group]
    ordinals = [position for position in places if position is not None]
    if len(ordinals) == len(places):
        return max(ordinals) - min(ordinals)
    return None if ordinals else 0
