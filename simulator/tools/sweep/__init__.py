"""Sweeps: estimates or simulations of every point of a grid."""

from __future__ import annotations

from castsim.commands.feature import Feature
from castsim.commands.shared_options import OptionParser


def _sweep(parser: OptionParser) -> None:
    """SPEC is a TOML file that describes the grid:

      [sweep]
      kind = "cast"                # or "program"
      mode = "estimate"            # or "simulate"
      [grid]                       # one value, a list, or a range
      src = ["f32", "f16"]
      dst = "bf16"
      rows = "8..64:8"
      cols = { from = 64, to = 1024, step = 64 }
      target = ["a2a3", "a5"]
      [[exclude]]                  # leave out points
      where = "rows * cols > 32768"

    Keys of a cast: src, dst, rows, cols, row_stride, rounding, saturation, target; of a program: program, target,
    args.NAME (scalar arguments and parameters), option.NAME. The results have a row for every point: the grid's
    columns, cycles, one column for every cause, bound_by, status (ok, failed), error. Finished points are kept in
    RESULTS.parquet.ledger: after an interruption, the same command continues from there. The exit code is 1 if a
    point failed.

    examples:
      castsim sweep shapes.toml --out shapes.parquet
      castsim sweep kernels.toml --out kernels.parquet --workers 8
      castsim sweep kernels.toml --out kernels.parquet --scheduler tcp://host:8786
      castsim sweep --report shapes.parquet --html shapes.html
    """
    add = parser.add_argument
    add("specification", metavar="SPEC", nargs="?", help="TOML file that describes the grid")
    add("--out", metavar="FILE", help="write the results to this Parquet file, and the progress to FILE.ledger")
    add("--workers", metavar="N", help="number of processes; default: one per processor")
    parser.take("scheduler")
    add("--report", metavar="FILE", help="plot the results in the Parquet file FILE; needs --html")
    add("--html", metavar="PAGE", help="write the plots of --report to this HTML file")


FEATURES = (
    Feature(
        "sweep",
        "improve",
        "estimate or simulate every point of a grid, and write a Parquet file",
        _sweep,
        "castsim.tools.sweep.command",
        documents=(
            "castsim.tools.sweep.studies:Sweep",
            "castsim.tools.sweep.specification:SweepDrawn",
        ),
    ),
)
