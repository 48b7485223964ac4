"""The results of casting single values: the table of `castsim cast` as data and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from castsim.execution.outcomes import Outcome
from castsim.isa.formats import Format
from castsim.machines.mechanisms import CastForm
from castsim.reports.documents import CommandDocument, Document, Keys, identifier, says
from castsim.reports.numbers import bits_text, ends_document, json_value
from castsim.reports.schemas.keys import Bits, Name, Ulps, Value
from castsim.reports.schemas.keys import Number as NumberKeys
from castsim.reports.value_casts import Accepted, CastResultRow, CastResults, ordinal

if TYPE_CHECKING:
    pass


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


class Skipped(Keys):
    """A target that was skipped."""

    target: str = says("Its name.")
    reason: str = says("The reason.")


class CastResult(Keys):
    """The result of one value on one target under one mode."""

    target: str | None = says("Name of the target; null for the abstract cast.")
    forms: list[CastForm]
    """The forms of the target's tile cast that give this result: `1d` (contiguous tiles), `2d` (others); empty if it
    has no forms."""
    rounding: str = says("The effective rounding.")
    overflow: str = says("The effective overflow policy: `saturate`, `special` or `wrap`.")
    saturation: str | None
    """The saturation mode in force, `on` or `off`, if the target has a choice; otherwise the effect beyond the range:
    `clamps`, `none: inf`, `none: NaN`, `none: low bits`, or `not needed`; null for the abstract cast."""
    input_bits: Bits = says("The code that was cast.")
    output_bits: Bits = says("The code of the result.")
    value: Value = says("The number that the result represents, or `nan`, `inf`, `-inf`.")
    inexact: bool = says("Whether it differs from the original value.")
    outcome: Outcome
    """Effect on the value: `exact`, `rounded`, `clamped`, `wrapped`, `overflow` or `nan` (NaN became a number)."""
    ulps_from_abstract: Ulps | None = says(of="ulps")
    """Distance from the abstract cast with the requested rounding; null between NaN and a number."""
    accepted_by: dict[Name, bool] = says("Whether each specification accepts it, by name and version.")


class CastDifference(Keys):
    """A value and a rounding whose results differ between targets."""

    input_bits: Bits = says("The code that was cast.")
    rounding_asked: str | None = says("The requested rounding; null for the default.")
    output_bits: dict[Name, Bits]
    """The result on each target (and its form, `a5_2d`, if they differ), and of the abstract cast as `abstract`."""
    max_ulps_apart: Ulps | None = says("The largest distance among the results; null if some are NaN and some are not.")


class Cast(CommandDocument, name="cast", version=3):
    """Values cast, value by value."""

    results: list[CastResult] = says("One entry for each value, target and mode.")
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
    """Return the largest distance in ulps within a group of results, None if only some are NaN."""
    places = [ordinal(row.code, fmt) for row in group]
    ordinals = [position for position in places if position is not None]
    if len(ordinals) == len(places):
        return max(ordinals) - min(ordinals)
    return None if ordinals else 0
