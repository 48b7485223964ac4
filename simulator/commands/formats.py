"""Without NAME, all formats are listed. A NAME is a format or one of its aliases, in any case. A target is listed if it
casts from or to the format. f8_143@BIAS has the exponent bias BIAS, 0 to 15.

examples:
  castsim formats
  castsim formats e4m3 f8_143@11
  castsim formats --json formats.json
"""

from __future__ import annotations

from argparse import Namespace

from castsim.commands.outcome import CommandOutcome, answer
from castsim.commands.shared_options import OptionParser
from castsim.reports.pages.answer_pages import formats_page
from castsim.reports.pairs import FormatsList, formats


def declare(parser: OptionParser) -> None:
    """Add the arguments of `formats`."""
    parser.add_argument("names", metavar="NAME", nargs="*", help="a format; default: all")


def execute(options: Namespace) -> CommandOutcome:
    """List number formats.

    Raises:
        ReadError: the format does not exist.
    """
    return answer(formats_page, FormatsList.of(formats=formats(*options.names)))
