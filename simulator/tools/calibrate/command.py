"""The command `calibrate`: fit a target to your own measurements, and write the fitted target."""

from __future__ import annotations

from argparse import Namespace
from math import isfinite
from pathlib import Path

from castsim.commands.option_parsers import assignments
from castsim.commands.outcome import CommandOutcome
from castsim.isa.errors import ReadError
from castsim.reports.progress import stage_progress
from castsim.targets.loader import load_target
from castsim.tools.accuracy.measured_rows import read_table
from castsim.tools.calibrate.calibration import (
    FitSelection,
    calibrate,
    check_out,
    derived_description,
    write_description,
)
from castsim.tools.calibrate.report import calibration_document, calibration_text


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
    with stage_progress(options.quiet, options.json) as progress:
        calibration = calibrate(target, table, choice, progress)
    write_description(derived_description(calibration, options.target, out), out)

    return CommandOutcome(
        calibration_document(calibration, options.out), lambda _: calibration_text(calibration, options.out)
    )


def _range(name: str, text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(".."))
    except ValueError:
        low = high = float("nan")
    if not (isfinite(low) and isfinite(high)):
        raise ReadError(f"--bounds {name}={text}: expected a range of numbers", legal=(f"{name}=100..400",))
    return low, high
