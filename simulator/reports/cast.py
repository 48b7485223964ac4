"""The results of casting single values: the table of `castsim cast` as data and as JSON."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from castsim.execution.outcomes import Outcome
from castsim.isa.formats import Format, IntFormat, TaperedFormat
from castsim.isa.modes import Overflow, Saturation
from castsim.isa.warning_text import Warnings
from castsim.machines.target_cast import CastForm
from castsim.numerics import value_of
from castsim.reports.documents import VERSIONS, Document, document, identifier, json_of
from castsim.reports.numbers import Number, bits_text, ends_document, json_value
from castsim.specifications import AcceptanceSets, SpecifiedCast
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


def accepted_document(row: Accepted, input_bits: str, dst: Format) -> Document:
    """Return one row as JSON; numbers that are not there are null."""

    cast, rule = row.cast, row.cast.rule
    return {
        "specification": cast.label,
        "input_bits": input_bits,
        "accepts": row.kind,
        **ends_document((row.lowest, row.highest, row.further), dst),
        "nan": row.nan or row.anything,
        "rule": cast.rule_name,
        **document(rule, "meaning"),
        **document(cast, "requires"),
        **document(rule, "status", "source"),
    }


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
class SkippedTarget:
    """A target that was passed over, and why."""

    target: str
    reason: str


@dataclass(frozen=True, slots=True)
class CastResults:
    """All rows, value by value, what targets did not do as asked, which did nothing, and what specifications accept."""

    request: ValueCastRequest
    rows: tuple[CastResultRow, ...]
    warnings: Warnings
    skipped: tuple[SkippedTarget, ...] = ()
    accepted: tuple[Accepted, ...] = ()

    def differences(self) -> list[tuple[CastResultRow, ...]]:
        """Return the groups of rows of one value and one rounding asked for whose results are not all the same."""
        groups: dict[tuple[int, str | None], list[CastResultRow]] = {}
        for row in self.rows:
            groups.setdefault((id(row.source), row.asked), []).append(row)
        found = [tuple(group) for group in groups.values() if len({row.code for row in group}) > 1]
        return found if self.request.targets else []


def cast_document(table: CastResults) -> Document:
    """Return the table as JSON. A finite value is a number, others are `nan`, `inf`, `-inf`."""
    request = table.request
    return {
        "schema_version": VERSIONS["cast"],
        "results": [
            {
                **document(row, "target", "forms", "rounding", "overflow", "saturation"),
                "input_bits": bits_text(row.source.code, request.src),
                "output_bits": bits_text(row.code, request.dst),
                "value": json_value(row.value, request.dst),
                **document(row, "inexact", "outcome", "ulps", "accepted_by", ulps="ulps_from_abstract"),
            }
            for row in table.rows
        ],
        "differences": [_difference(group, request) for group in table.differences()],
        "skipped": json_of(table.skipped),
        "warnings": list(table.warnings),
        "specifications": [
            accepted_document(row, bits_text(request.sources[row.number].code, request.src), request.dst)
            for row in table.accepted
        ],
    }


def spread(group: Sequence[CastResultRow], fmt: Format) -> int | None:
    """Return the largest distance in ulps within a group of results, None if some are NaN and some are not."""
    places = [ordinal(row.code, fmt) for row in group]
    known = [place for place in places if place is not None]
    if len(known) == len(places):
        return max(known) - min(known)
    return None if known else 0


def _difference(group: Sequence[CastResultRow], request: ValueCastRequest) -> Document:
    return {
        "input_bits": bits_text(group[0].source.code, request.src),
        "rounding_asked": group[0].asked,
        "output_bits": {identifier(row.name): bits_text(row.code, request.dst) for row in group},
        "max_ulps_apart": spread(group, request.dst),
    }
