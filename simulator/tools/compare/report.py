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
    from castsim.tools.compare.user_conversions import CAST_WORDS  # noqa: PLC0415 - `castsim compare` has loaded it

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
