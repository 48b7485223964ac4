"""A calibration as JSON and as text: every parameter and every row, before and after."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.reports.documents import CommandDocument, Document, Keys, says
from castsim.reports.schemas.keys import Cycles, Percent
from castsim.reports.terminal import indented, table
from castsim.tools.accuracy.report import PLACES
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


def calibration_document(found: Calibration, out: str) -> Document:
    """Return the JSON of a calibration."""
    before, after = (found.errors(cycles) for cycles in (found.before, found.after))
    return Calibrated.of(
        found,
        file=found.table.file,
        out=out,
        residual_before_percent=round(found.deviation(found.before), PLACES),
        residual_percent=round(found.deviation(found.after), PLACES),
        warnings=misfits(found),
        rows=[
            CalibratedRow.of(
                row,
                before_cycles=found.before[number],
                after_cycles=found.after[number],
                before_percent=round(before[number], PLACES),
                after_percent=round(after[number], PLACES),
            )
            for number, row in enumerate(found.table.rows)
        ],
    )


def calibration_text(found: Calibration, out: str) -> RenderableType:
    """Return the report; `out` is the written description."""
    parameters = table("parameter", ">before", ">fitted", ">+-", ">rows")
    for each in found.parameters:
        spread = "at bound" if each.at_bound else "-" if each.standard_error is None else f"{each.standard_error:.2g}"
        parameters.add_row(
            each.path, f"{each.before.normalize():f}", f"{each.value.normalize():f}", spread, str(each.rows)
        )
    rows = table("line", "operation", "shape", ">measured", ">before", ">after", ">off %")
    for row, before, after, error in zip(
        found.table.rows, found.before, found.after, found.errors(found.after), strict=True
    ):
        formats = row.src.name if row.src.name == row.dst.name else f"{row.src.name} -> {row.dst.name}"
        shape = f"{row.valid_rows} x {row.valid_cols}"
        cells = (str(row.measured_cycles), str(before), str(after), f"{error:+.2f}")
        rows.add_row(str(row.span.line), f"{row.label} {formats}", shape, *cells)
    count = len(found.table.rows)
    before_after = f"{found.deviation(found.before):.2f} % rms before, {found.deviation(found.after):.2f} % after"
    return Group(
        Text(f"{found.target.name}: {len(found.parameters)} parameters fitted to {count} rows of "
             f"{Path(found.table.file).name}, written to {out}"),
        Text(f"error of these rows, all of them fitted: {before_after}"),
        indented(parameters), Text(""), indented(rows),
        Text("+- is one standard error, from the residuals and the slopes of the cycles."),
        *(Text(f"warning: {each}", style="yellow") for each in misfits(found)),
    )  # fmt: skip
