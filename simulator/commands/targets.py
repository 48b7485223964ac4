"""NAME is a shipped target or specification, or the path of a description (a name ending in .toml).

examples:
  castsim targets
  castsim targets a2a3
  castsim targets my.toml f32 f16
  castsim targets --diff a2a3 a5
  castsim targets --template a5 > chip.toml
  castsim targets tosa f32 e4m3fn
"""

from __future__ import annotations

from argparse import ArgumentParser

from castsim.commands.shared_options import declare_page

SUMMARY = "list targets and specifications, the casts, facts and options of one, or one type pair in full"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `targets`."""
    parser.add_argument(
        "what", metavar="NAME SRC DST", nargs="*", help="a target or specification, and one of its type pairs"
    )
    parser.add_argument(
        "--diff", metavar=("A", "B"), nargs=2, help="compare the conversions of two targets side by side"
    )
    parser.add_argument("--template", metavar="T", help="print the description of a target, to start another from")
    declare_page(parser)
