"""Rows of the public test kernels of A5 (`vectors/a5_benchmark.csv`) as operations on tiles of the shapes they name.

The case text holds the shapes of the tiles: destination first, then sources, then the valid region. Tiles leave their
valid region to run time, except those of compares, of maximum and minimum with a scalar and of fills, as the test
kernels do.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kit.paths import VECTORS

from castsim.execution.tree import ResolvedTileOp, Tile
from castsim.isa.formats import format_named
from castsim.isa.pto.program import TileType
from castsim.machines.mechanisms import lowerer_of
from castsim.targets.vector_function import VectorFunctionTarget
from castsim.tools.estimate.cast_estimates import HERE, timed_alone
from castsim.tools.estimate.operation_estimates import estimate_tile_operation

TABLE = VECTORS / "a5_benchmark.csv"

STATIC = ("tcmp", "tcmps", "tmaxs", "tmins", "tfillpad")
"""Operations whose test kernels state the valid region in the type."""

Shape = tuple[int, int]


@dataclass(frozen=True, slots=True)
class BenchmarkRow:
    """One test kernel; `cycles` is how long the vector unit was busy, None if the table does not say."""

    operation: str
    case: str
    src: str
    dst: str
    tile: Shape
    valid: Shape
    cycles: int | None

    @property
    def shapes(self) -> list[Shape]:
        return [(int(rows), int(cols)) for rows, cols in re.findall(r"(\d+)x(\d+)", self.case)]

    @property
    def vectors(self) -> int:
        """Return how many registers a valid row of the source fills."""
        return -(-self.valid[1] * format_named(self.src).storage_bits // 2048)


def benchmark() -> list[BenchmarkRow]:
    with TABLE.open(newline="", encoding="utf-8") as file:
        return [
            BenchmarkRow(
                row["operation"], row["case"], row["src"], row["dst"], (int(row["tile_rows"]), int(row["tile_cols"])),
                (int(row["valid_rows"]), int(row["valid_cols"])),
                int(row["simd_cycles"]) if row["simd_cycles"] else None,
            )
            for row in csv.DictReader(file)
        ]  # fmt: skip


def simulated(row: BenchmarkRow, target: VectorFunctionTarget) -> int:
    """Return the cycles that the simulator gives.

    Raises:
        CastsimError: castsim has no such operation, or no such tile.
    """
    laid_out = _LAYOUTS.get(row.operation)
    if laid_out is None:
        fixed = row.operation in STATIC
        estimate = estimate_tile_operation(
            row.operation, row.src, *row.tile, target=target, valid_rows=row.valid[0], valid_cols=row.valid[1],
            runtime_valid=not fixed,
        )  # fmt: skip
        return estimate.cycles
    lowerer = lowerer_of(target)
    tiles: list[Tile] = []
    for number, (element, shape, valid) in enumerate(laid_out(row)):
        fmt = format_named(element)
        layout = "col_major" if shape[1] == 1 else "row_major"
        kind = TileType("vec", element, *shape, None, None, layout)
        begin = -(-tiles[-1].end // 32) * 32 if tiles else 0
        tile = Tile(f"t{number}", fmt, kind, begin, *valid, fmt.storage_bits)
        lowerer.check_tile(tile, HERE)
        tiles.append(tile)
    dst, *sources = tiles
    work = ResolvedTileOp(row.operation, dst, tuple(sources), span=HERE)
    return timed_alone(target, lowerer.work(work), row.operation).cycles


Operand = tuple[str, Shape, Shape]
"""Element, shape and valid region of a tile."""


def tiles_in_a_row(operands: Iterable[tuple[str, Shape, Shape, Mapping[str, Any]]]) -> list[Tile]:
    """Tiles one behind the other, each at a multiple of 512 bytes; with each operand goes its layout."""
    at, tiles = 0, []
    for element, shape, valid, layout in operands:
        fmt = format_named(element)
        kind = TileType("vec", fmt.name, *shape, *valid, **layout)
        tiles.append(Tile(f"t{len(tiles)}", fmt, kind, at, *valid, fmt.storage_bits))
        at = -(-tiles[-1].end // 512) * 512
    return tiles


"""Element, shape and valid region of a tile."""


def _row_argument(row: BenchmarkRow) -> list[Operand]:
    dst, src, valid = row.shapes
    return [("i32", dst, (valid[0], 1)), (row.src, src, valid)]


def _transposed(row: BenchmarkRow) -> list[Operand]:
    dst, src, valid = row.shapes
    return [(row.dst, dst, (valid[1], valid[0])), (row.src, src, valid)]


def _concatenated(row: BenchmarkRow) -> list[Operand]:
    dst, first, second, one, other = row.shapes
    return [
        (row.dst, dst, (one[0], one[1] + other[1])), (row.src, first, one), (row.src, second, other)
    ]  # fmt: skip


def _spread_column(row: BenchmarkRow) -> list[Operand]:
    """The case names the rows of the source and of the destination, the columns of the tiles and the valid ones."""
    _, rows, cols, valid = (int(each) for each in re.findall(r"_(\d+)", row.case)[-4:])
    return [(row.dst, (rows, cols), (rows, valid)), (row.src, (1, cols), (1, valid))]


def _parts(row: BenchmarkRow) -> list[Operand]:
    dst, first, second = row.shapes
    return [(row.dst, dst, dst), (row.src, first, first), (row.src, second, second)]


_LAYOUTS = {
    "trowargmax": _row_argument, "trowargmin": _row_argument, "ttrans": _transposed, "tconcat": _concatenated,
    "tcolexpand": _spread_column, **dict.fromkeys(("tpartadd", "tpartmul", "tpartmax", "tpartmin"), _parts),
}  # fmt: skip
