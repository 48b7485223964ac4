"""The results that specifications accept for single values: rows beside those of targets, as data and as JSON."""

from __future__ import annotations

from dataclasses import dataclass

from castsim.isa.formats import Format
from castsim.numerics import value_of
from castsim.reports.documents import Document, document
from castsim.reports.numbers import Number, ends_document
from castsim.specifications import AcceptanceSets, SpecifiedCast


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
