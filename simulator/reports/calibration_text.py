"""A calibration as text: the parameters, the rows, and how far they are off before and after."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.evidence.calibration import Calibration, misfits
from castsim.reports.terminal import indented, table


def calibration_text(found: Calibration, out: str) -> RenderableType:
    """Return the report; `out` is the description that was written."""
    numbers = ("before", "fitted", "+-", "rows")
    parameters = table("parameter", *numbers, numbers=numbers)
    for each in found.parameters:
        spread = "at bound" if each.at_bound else "-" if each.standard_error is None else f"{each.standard_error:.2g}"
        parameters.add_row(
            each.path, f"{each.before.normalize():f}", f"{each.value.normalize():f}", spread, str(each.rows)
        )
    columns = ("measured", "before", "after", "off %")
    rows = table("line", "operation", "shape", *columns, numbers=columns)
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
