"""A calibration as JSON and as text: every parameter and every row, before and after."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.reports.documents import CommandDocument, Document, Keys, says
from castsim.reports.schemas.keys import Cycles, Percent
from castsim.reports.terminal import indented, table
from castsim.tools.calibrate.calibration import Calibration, misfits


class CalibratedParameter(Keys):
    """A fitted number of the description."""

    path: str = says("Its path in the description.")
    before: float = says("Value in the target.")
    value: float = says("Fitted value.")
    standard_error: float | None
    """Its standard error; null at a bound, or if there are no more rows than parameters."""
    low: float = says("Lower end of the range of possible values.")
    high: float | None = says("Upper end of the range of possible values; null if there is none.")
    at_bound: bool = says("Whether the fitted value is at a bound.")
    rows: int = says("Number of rows that depend on the fact.")


class CalibratedRow(Keys):
    """A measured row, simulated before and after the fit."""

    line: int = says("Its line in the table.", "span.line")
    operation: str = says("The operation and its parameters.", "label")
    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    measured_cycles: Cycles = says("Measured cycles.")
    before_cycles: Cycles = says("Simulated on the target.")
    after_cycles: Cycles = says("Simulated on the derived target.")
    before_percent: Percent = says("Error of the target relative to the measured cycles.")
    after_percent: Percent = says("Error of the derived target relative to the measured cycles.")


class Calibrated(CommandDocument, name="calibrate"):
    """Numbers of a target fitted to a table; all of its rows are fitted."""

    target: str = says("Name of the target.")
    file: str = says("The table.")
    out: str = says("The derived description.")
    residual_before_percent: Percent = says("Root of the mean squared error of the rows on the target.")
    residual_percent: Percent = says("Root of the mean squared error of the rows on the derived target.")
    warnings: list[str]
    """Doubts about the fit: errors beyond the noise of the rows, numbers that the rows hardly determine."""
    parameters: list[CalibratedParameter] = says("The fitted parameters.")
    rows: list[CalibratedRow] = says("The rows.")


def calibration_document(calibration: Calibration, out: str) -> Document:
    """Return the JSON of a calibration."""
    before, after = (calibration.errors(cycles) for cycles in (calibration.before, calibration.after))
    return Calibrated.of(
        calibration,
        file=calibration.table.file,
        out=out,
        residual_before_percent=calibration.deviation(calibration.before),
        residual_percent=calibration.deviation(calibration.after),
        warnings=misfits(calibration),
        rows=[
            CalibratedRow.of(
                row,
                before_cycles=calibration.before[number],
                after_cycles=calibration.after[number],
                before_percent=before[number],
                after_percent=after[number],
            )
            for number, row in enumerate(calibration.table.rows)
        ],
    )


def calibration_text(calibration: Calibration, out: str) -> RenderableType:
    """Return the report; `out` is the written description."""
    parameters = table("parameter", ">before", ">fitted", ">+-", ">rows")
    for parameter in calibration.parameters:
        spread = (
            "at bound"
            if parameter.at_bound
            else "-"
            if parameter.standard_error is None
            else f"{parameter.standard_error:.2g}"
        )
        parameters.add_row(
            parameter.path,
            f"{parameter.before.normalize():f}",
            f"{parameter.value.normalize():f}",
            spread,
            str(parameter.rows),
        )
    rows = table("line", "operation", "shape", ">measured", ">before", ">after", ">off %")
    for row, before, after, error in zip(
        calibration.table.rows,
        calibration.before,
        calibration.after,
        calibration.errors(calibration.after),
        strict=True,
    ):
        formats = row.src.name if row.src.name == row.dst.name else f"{row.src.name} -> {row.dst.name}"
        shape = f"{row.valid_rows} x {row.valid_cols}"
        cells = (str(row.measured_cycles), str(before), str(after), f"{error:+.2f}")
        rows.add_row(str(row.span.line), f"{row.label} {formats}", shape, *cells)
    count = len(calibration.table.rows)
    deviations = [calibration.deviation(cycles) for cycles in (calibration.before, calibration.after)]
    before_after = f"{deviations[0]:.2f} % rms before, {deviations[1]:.2f} % after"
    return Group(
        Text(f"{calibration.target.name}: {len(calibration.parameters)} parameters fitted to {count} rows of "
             f"{Path(calibration.table.file).name}, written to {out}"),
        Text(f"error of these rows, all of them fitted: {before_after}"),
        indented(parameters), Text(""), indented(rows),
        Text("+- is one standard error, from the residuals and the slopes of the cycles."),
        *(Text(f"warning: {message}", style="yellow") for message in misfits(calibration)),
    )  # fmt: skip
