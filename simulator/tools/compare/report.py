"""A comparison of a user's conversion with a cast, as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from castsim.reports.cast_text import coded_number
from castsim.reports.numbers import grouped
from castsim.reports.terminal import composed, table

if TYPE_CHECKING:
    from castsim.tools.compare.user_conversions import Comparison, ConversionCounterexample, DifferingBinade


_BINADES_SHOWN = 12
"""Maximum number of binades that are printed."""


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


def _magnitude(binade: DifferingBinade) -> str:
    return binade.kind if binade.exponent is None else f"2^{binade.exponent} .. 2^{binade.exponent + 1}"
