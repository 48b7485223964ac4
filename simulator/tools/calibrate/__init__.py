"""Calibration: targets fitted to a user's own measurements."""

from __future__ import annotations

from castsim.commands.feature import Feature
from castsim.commands.shared_options import OptionParser


def _calibrate(parser: OptionParser) -> None:
    """Fits numbers of a target (startups, cycles per repeat, bandwidths) to your own measurements by least squares,
    and writes a description derived from the target, which every --target takes. The table has the columns of
    `castsim accuracy --data`. Parameters are the numbers of the description on which the rows depend; --fit and
    --fix choose among them, by name or pattern. A table that cannot determine them is refused: the message names
    those that it cannot tell apart, and a row that would. Needs scipy: pip install 'castsim[calibrate]'.

    examples:
      castsim calibrate --target a2a3 --data rows.csv --out my_chip.toml --fit 'timing.load.*'
      castsim calibrate --target a5 --data rows.csv --out my_chip.toml --fix 'timing.scalar.*'
    """
    parser.take("required_target")
    add = parser.add_argument
    add("--data", metavar="FILE.csv", required=True, help="measurements, in the columns of `castsim accuracy --data`")
    add("--out", metavar="FILE.toml", required=True, help="write the fitted target to this new file")
    what = "fit only these numbers, such as timing.load.startup_cycles or 'timing.load.*'"
    add("--fit", metavar="NAME", action="append", default=[], help=what)
    add("--fix", metavar="NAME", action="append", default=[], help="leave these numbers unchanged")
    add("--bounds", metavar="NAME=LOW..HIGH", action="append", default=[], help="keep a number within these bounds")


FEATURES = (
    Feature(
        "calibrate",
        "evidence",
        "fit a target to your own measurements, and write the fitted target",
        _calibrate,
        "castsim.tools.calibrate.command",
        documents=("castsim.tools.calibrate.calibration:Calibration",),
    ),
)
