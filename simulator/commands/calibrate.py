"""Fits numbers of a target (startups, cycles per repeat, bandwidths) to your own measurements by least squares, and
writes a description derived from the target, which every --target takes. The table has the columns of `castsim
accuracy --data`. Parameters are the numbers of the description on which the rows depend; --fit and --fix choose among
them, by name or pattern. A table that cannot determine them is refused: the message names those that it cannot tell
apart, and a row that would. Needs scipy: pip install 'castsim[calibrate]'.

examples:
  castsim calibrate --target a2a3 --data rows.csv --out my_chip.toml --fit 'timing.load.*'
  castsim calibrate --target a5 --data rows.csv --out my_chip.toml --fix 'timing.scalar.*'
"""

from __future__ import annotations

from argparse import Namespace
from math import isfinite
from pathlib import Path

from castsim.commands.option_parsers import assignments
from castsim.commands.outcome import CommandOutcome
from castsim.commands.shared_options import OptionParser
from castsim.evidence.calibration import FitSelection, calibrate, check_out, derived_description, write_description
from castsim.evidence.measured_rows import read_table
from castsim.isa.errors import ReadError
from castsim.reports.accuracy import calibration_document, calibration_text
from castsim.reports.progress import stage_progress
from castsim.targets.loader import load_target


def declare(parser: OptionParser) -> None:
    """Add the arguments of `calibrate`."""
    parser.take("required_target")
    add = parser.add_argument
    add("--data", metavar="FILE.csv", required=True, help="measurements, in the columns of `castsim accuracy --data`")
    add("--out", metavar="FILE.toml", required=True, help="write the fitted target to this new file")
    what = "fit only these numbers, such as timing.load.startup_cycles or 'timing.load.*'"
    add("--fit", metavar="NAME", action="append", default=[], help=what)
    add("--fix", metavar="NAME", action="append", default=[], help="leave these numbers unchanged")
    add("--bounds", metavar="NAME=LOW..HIGH", action="append", default=[], help="keep a number within these bounds")


def execute(options: Namespace) -> CommandOutcome:
    """Fit the numbers, and write the derived description.

    Raises:
        ReadError: scipy is missing, an option or the table is wrong, a parameter is undetermined, or the output exists.
        IllegalError, TileError: a row that the target cannot run.
    """
    out = Path(options.out)
    check_out(out)
    bounds = {name: _range(name, text) for name, text in assignments("--bounds", options.bounds).items()}
    choice = FitSelection(tuple(options.fit), tuple(options.fix), bounds)
    target, table = load_target(options.target), read_table(Path(options.data))
    with stage_progress(options) as progress:
        found = calibrate(target, table, choice, progress)
    write_description(derived_description(found, options.target, out), out)

    return CommandOutcome(calibration_document(found, options.out), lambda _: calibration_text(found, options.out))


def _range(name: str, text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(".."))
    except ValueError:
        low = high = float("nan")
    if not (isfinite(low) and isfinite(high)):
        raise ReadError(f"--bounds {name}={text}: expected a range of numbers", legal=(f"{name}=100..400",))
    return low, high
