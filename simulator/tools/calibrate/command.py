"""The command `calibrate`: fit a target to your own measurements, and write the fitted target."""

from __future__ import annotations

from argparse import Namespace
from math import isfinite
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.commands.option_parsers import assignments
from castsim.commands.outcome import CommandOutcome
from castsim.isa.dataclass import replace
from castsim.isa.errors import ReadError
from castsim.reports.progress import stage_progress
from castsim.reports.terminal import indented, table
from castsim.targets.loader import load_target
from castsim.tools.accuracy.measured_rows import read_table
from castsim.tools.calibrate.calibration import (
    CalibratedParameter,
    CalibratedRow,
    Calibration,
    FitSelection,
    calibrate,
    check_out,
    derived_description,
    write_description,
)


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
    target, measured = load_target(options.target), read_table(Path(options.data))
    with stage_progress(options.quiet, options.json) as progress:
        calibration = calibrate(target, measured, choice, progress)
    write_description(derived_description(calibration, options.target, out), out)
    calibration = replace(calibration, out=options.out)
    return CommandOutcome(calibration.as_json(), lambda _: calibration_text(calibration))


def _range(name: str, text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(".."))
    except ValueError:
        low = high = float("nan")
    if not (isfinite(low) and isfinite(high)):
        raise ReadError(f"--bounds {name}={text}: expected a range of numbers", legal=(f"{name}=100..400",))
    return low, high


def calibration_text(calibration: Calibration) -> RenderableType:
    """Return the report."""
    parameters = table("parameter", ">before", ">fitted", ">+-", ">rows", rows=map(_parameter, calibration.parameters))
    headings = ("line", "operation", "shape", ">measured", ">before", ">after", ">off %")
    before_after = f"{calibration.residual_before_percent:.2f} % rms before, {calibration.residual_percent:.2f} % after"
    return Group(
        Text(f"{calibration.target.name}: {len(calibration.parameters)} parameters fitted to {len(calibration.rows)} "
             f"rows of {Path(calibration.file).name}, written to {calibration.out}"),
        Text(f"error of these rows, all of them fitted: {before_after}"),
        indented(parameters), Text(""), indented(table(*headings, rows=map(_row, calibration.rows))),
        Text("+- is one standard error, from the residuals and the slopes of the cycles."),
        *(Text(f"warning: {message}", style="yellow") for message in calibration.warnings),
    )  # fmt: skip


def _parameter(parameter: CalibratedParameter) -> tuple[str, ...]:
    error = "-" if parameter.standard_error is None else f"{parameter.standard_error:.2g}"
    numbers = (f"{number.normalize():f}" for number in (parameter.before, parameter.value))
    return parameter.path, *numbers, "at bound" if parameter.at_bound else error, str(parameter.rows)


def _row(entry: CalibratedRow) -> tuple[str, ...]:
    formats = entry.src if entry.src == entry.dst else f"{entry.src} -> {entry.dst}"
    shape = f"{entry.row.valid_rows} x {entry.row.valid_cols}"
    cycles = map(str, (entry.measured_cycles, entry.before_cycles, entry.after_cycles))
    return str(entry.line), f"{entry.operation} {formats}", shape, *cycles, f"{entry.after_percent:+.2f}"
