"""A calibration as text: every parameter and every row, before and after."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.reports.terminal import indented, table
from castsim.tools.calibrate.calibration import CalibratedParameter, CalibratedRow, Calibration


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
