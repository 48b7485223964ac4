"""Fits numbers of a target (startups, cycles per repeat, bandwidths) to your own measurements by least squares, and
writes a description derived from the target, which every --target takes. The table has the columns of `castsim
accuracy --data`. Parameters are the numbers of the description on which the rows depend; --fit and --fix choose among
them, by name or pattern. Refused is a table that cannot determine them: the refusal names those that it cannot tell
apart, and a row that would. Needs scipy: pip install 'castsim[calibrate]'.

examples:
  castsim calibrate --target a2a3 --data rows.csv --out my_chip.toml --fit 'timing.load.*'
  castsim calibrate --target a5 --data rows.csv --out my_chip.toml --fix 'timing.scalar.*'
"""

from __future__ import annotations

from argparse import ArgumentParser

from castsim.commands.shared_options import declare_required_target

SUMMARY = "fit numbers of a target to your own measurements, and write the derived target"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `calibrate`."""
    declare_required_target(parser)
    add = parser.add_argument
    add("--data", metavar="FILE.csv", required=True, help="measurements, in the columns of `castsim accuracy --data`")
    add("--out", metavar="FILE.toml", required=True, help="write the derived description here; it must not exist")
    add(
        "--fit",
        metavar="NAME",
        action="append",
        default=[],
        help="fit only these, such as timing.load.startup_cycles or 'timing.load.*'",
    )
    add("--fix", metavar="NAME", action="append", default=[], help="leave these as they are")
    add("--bounds", metavar="NAME=LOW..HIGH", action="append", default=[], help="keep a parameter within these values")
