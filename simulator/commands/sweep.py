"""A specification names what is swept, in TOML:

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

Keys of a cast: src, dst, rows, cols, row_stride, rounding, saturation, target; of a program: program, target, args.NAME
(scalar arguments and parameters), option.NAME. A row of the results is a point: the grid's columns, cycles, one column
for every cause, bound_by, status (ok, failed), error. What is done stands in RESULTS.parquet.ledger: the same command
goes on from there. The exit code is 1 if a row failed.

examples:
  castsim sweep shapes.toml --out shapes.parquet
  castsim sweep kernels.toml --out kernels.parquet --workers 8
  castsim sweep kernels.toml --out kernels.parquet --scheduler tcp://host:8786
  castsim sweep --report shapes.parquet --html shapes.html
"""

from __future__ import annotations

from argparse import ArgumentParser

SUMMARY = "estimate or simulate every point of a grid; results as a Parquet file"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `sweep`."""
    add = parser.add_argument
    add("specification", metavar="SPEC", nargs="?", help="TOML file that says what is swept")
    add("--out", metavar="FILE", help="Parquet file of the results; what is done is kept in FILE.ledger")
    add("--workers", metavar="N", help="processes that compute; default: as many as there are processors")
    add("--scheduler", metavar="ADDRESS", help="let the workers of a Dask scheduler compute, such as tcp://host:8786")
    add("--report", metavar="FILE", help="draw the results of a sweep that FILE holds; needs --html")
    add("--html", metavar="PAGE", help="HTML file with the drawings of --report")
