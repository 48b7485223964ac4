"""The execution of `castsim calibrate`."""

from __future__ import annotations

from argparse import Namespace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.commands.option_parsers import assignments
from castsim.commands.outcome import Outcome
from castsim.evidence.accuracy import read_table
from castsim.evidence.calibration import Choice, calibrate, check_out, derived_description, write_description
from castsim.isa.errors import ReadError
from castsim.reports.accuracy import calibration_document
from castsim.reports.progress import stage_progress
from castsim.targets import load_target

if TYPE_CHECKING:
    from rich.console import RenderableType


def execute(options: Namespace) -> Outcome:
    """Fit, and write the derived description.

    Raises:
        ReadError: scipy is missing, what was typed, the table, parameters that it cannot determine, a file in the way.
        IllegalError, TileError: a row that the target cannot run.
    """
    out = Path(options.out)
    check_out(out)
    bounds = {name: _range(name, text) for name, text in assignments("--bounds", options.bounds).items()}
    choice = Choice(tuple(options.fit), tuple(options.fix), bounds)
    target, table = load_target(options.target), read_table(Path(options.data))
    with stage_progress(quiet=options.quiet) as progress:
        found = calibrate(target, table, choice, progress)
    write_description(derived_description(found, options.target, out), out)

    def text(_: int) -> RenderableType:
        from castsim.reports.accuracy import calibration_text  # noqa: PLC0415 - rich, only if printed

        return calibration_text(found, options.out)

    return Outcome(calibration_document(found, options.out), text)


def _range(name: str, text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(".."))
    except ValueError:
        low = high = float("nan")
    if not (isfinite(low) and isfinite(high)):
        raise ReadError(f"--bounds {name}={text}: not a range of numbers", legal=(f"{name}=100..400",))
    return low, high
