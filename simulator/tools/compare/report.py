"""A comparison of a user's conversion with a cast, as JSON and as text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from rich.console import RenderableType
from rich.text import Text

from castsim.isa.formats import FORMATS
from castsim.numerics.codec import value_of
from castsim.reports.cast_text import coded_number
from castsim.reports.documents import CommandDocument, Document, Keys, says
from castsim.reports.numbers import bits_text, grouped, json_value
from castsim.reports.schemas.keys import Bits, Elements, Name, Ulps, Value
from castsim.reports.terminal import composed, table

if TYPE_CHECKING:
    from castsim.tools.compare.user_conversions import BinadeErrors, Comparison, ConversionCounterexample


_BINADES_SHOWN = 12
"""Maximum number of binades that are printed."""


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


class Compare(CommandDocument, name="compare", version=2):
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


def comparison_document(comparison: Comparison) -> Document:
    """Return the comparison."""
    first = None if comparison.first is None else _first(comparison, comparison.first)
    return Compare.of(comparison, first=first)


def _first(comparison: Comparison, first: ConversionCounterexample) -> Document:
    number = first.number
    return FirstDifference.of(
        first,
        input_bits=bits_text(first.code, comparison.src),
        input=json_value(value_of(first.code, comparison.src), comparison.src),
        expected_bits=bits_text(first.expected, comparison.dst),
        expected=json_value(value_of(first.expected, comparison.dst), comparison.dst),
        given_bits=None if first.given is None else bits_text(first.given, comparison.dst),
        given=json_value(number, FORMATS["f64"]) if not math.isfinite(number) else number,
    )


@composed
def comparison_text(comparison: Comparison) -> Iterator[RenderableType]:
    """Yield the findings, the answer first."""
    cast = f"{comparison.src.name} -> {comparison.dst.name}" + (f" on {comparison.target}" if comparison.target else "")
    tried = (
        f"all {grouped(comparison.inputs)} codes" if comparison.all_codes else f"{grouped(comparison.inputs)} inputs"
    )
    if comparison.equal:
        end = "" if comparison.all_codes else ": evidence, no proof"
        yield Text(f"equal to {cast} on {tried}{end}")
        return
    yield Text(f"{comparison.verdict}. {_advice(comparison)}", style="bold")
    yield Text(f"compared with {cast} on {tried}")
    if comparison.first is not None:
        yield Text(_first_text(comparison, comparison.first))
    yield Text(f"largest distance {grouped(comparison.largest_ulps)} ulps, mean {comparison.mean_ulps:.3g}", end="")
    missing = (
        f"; {grouped(comparison.unrepresentable)} are not representable in {comparison.dst.name}"
        if comparison.unrepresentable
        else ""
    )
    yield Text(missing)
    own, other = (
        "no error" if ratio is None else f"{ratio:.2f} dB"
        for ratio in (comparison.signal_to_noise_db, comparison.cast_signal_to_noise_db)
    )
    yield Text(f"signal to noise {own}, of the cast {other}")
    binades = sorted(comparison.binades, key=lambda binade: -binade.differing)[:_BINADES_SHOWN]
    rows = ((_magnitude(row), *map(grouped, (row.inputs, row.differing, row.largest_ulps))) for row in binades)
    yield Text()
    yield table("magnitude", ">inputs", ">differ", ">largest ulps", rows=rows)
    if len(comparison.binades) > _BINADES_SHOWN:
        yield Text(f"... and {len(comparison.binades) - _BINADES_SHOWN} more binades (--json)")


def _advice(comparison: Comparison) -> str:
    """Return the options that make the results equal, or a sentence that none does."""
    if comparison.remedy is None:
        return "No option of the cast makes them equal."
    from castsim.tools.compare.user_conversions import CAST_WORDS  # noqa: PLC0415 - `castsim compare` has loaded it

    words = (
        f"--{name} {value}" if name in (*CAST_WORDS, "nan") else f"--option {name}={value}"
        for name, value in comparison.remedy.items()
    )
    return f"Try `{' '.join(words)}`."


def _first_text(comparison: Comparison, first: ConversionCounterexample) -> str:
    dst = comparison.dst
    given = f"{first.number:.9g}, which {dst.name} lacks" if first.given is None else coded_number(first.given, dst)
    right = coded_number(first.expected, dst)
    return f"first: {coded_number(first.code, comparison.src)} gives {given}; the cast gives {right}"


def _magnitude(binade: BinadeErrors) -> str:
    return binade.kind if binade.exponent is None else f"2^{binade.exponent} .. 2^{binade.exponent + 1}"
