"""The results of casting single values: the table of `castsim cast` as data and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from castsim.execution.outcomes import Outcome
from castsim.isa.formats import Format
from castsim.isa.modes import Overflow, Saturation
from castsim.isa.warning_text import Warnings
from castsim.machines.target_cast import CastForm
from castsim.reports.cast_specifications import Accepted, accepted_document
from castsim.reports.documents import VERSIONS, Document, document, json_of
from castsim.reports.numbers import Number, bits_text, json_value
from castsim.reports.ulp import ordinal
from castsim.specifications import SpecifiedCast
from castsim.targets import Target


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
        "output_bits": {row.name: bits_text(row.code, request.dst) for row in group},
        "max_ulps_apart": spread(group, request.dst),
    }
