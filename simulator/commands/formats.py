"""Without NAME, all formats are listed. A NAME is a format or one of its aliases, in any case. A target is listed if it
casts from or to the format. f8_143@BIAS has the exponent bias BIAS, 0 to 15.

examples:
  castsim formats
  castsim formats e4m3 f8_143@11
  castsim formats --json formats.json
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from castsim.commands.outcome import CommandOutcome
from castsim.commands.shared_options import OptionParser
from castsim.reports.pairs import FormatEntry, FormatsList, formats
from castsim.reports.terminal import composed, table


def declare(parser: OptionParser) -> None:
    """Add the arguments of `formats`."""
    parser.add_argument("names", metavar="NAME", nargs="*", help="a format; default: all")


def execute(options: Namespace) -> CommandOutcome:
    """List formats.

    Raises:
        ReadError: there is no such format.
    """
    listed = formats(*options.names)
    return CommandOutcome(FormatsList.of(formats=listed), lambda _: formats_text(listed))


@composed
def formats_text(listed: Sequence[FormatEntry]) -> Iterator[RenderableType]:
    """Yield a table of limits and one of names, each with the format first."""
    floats = [entry for entry in listed if entry.kind != "integer"]
    integers = [entry for entry in listed if entry.kind == "integer"]
    if floats:
        numbers = ("bits", "exp", "man", "bias", "largest", "least normal", "subnormal")
        limits = table("format", *numbers, "special", numbers=numbers)
        for entry in floats:
            special = ["inf"] * entry.infinities + ["NaN"] * entry.nan
            widths = (entry.exponent_bits, entry.mantissa_bits, entry.bias)
            subnormal = "-" if entry.smallest_subnormal is None else f"{entry.smallest_subnormal:.5g}"
            limits.add_row(
                entry.name, str(entry.bits), *("-" if width is None else str(width) for width in widths),
                f"{entry.largest:.6g}", f"{entry.smallest_normal:.5g}",
                subnormal, " ".join(special) or "-",
            )  # fmt: skip
        yield limits
        yield Text()
    if integers:
        limits = table("format", "bits", "smallest", "largest", numbers=("bits", "smallest", "largest"))
        for entry in integers:
            limits.add_row(entry.name, str(entry.bits), f"{entry.smallest:,}", f"{entry.largest:,}")
        yield limits
        yield Text()
    names = table("format", "cast by", "also written")
    for entry in listed:
        names.add_row(entry.name, ", ".join(entry.targets) or "-", ", ".join(entry.aliases) or "-")
    yield names
