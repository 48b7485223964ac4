"""The vendor's cost model of A2/A3 in its newest text (docs/reference/a2a3.md section 6), on judged rows.

It shares no code of time with the product, which gives only the instructions. An instruction costs its slope for each
repeat, and its startup where the vector queue is empty: first of all and behind a barrier, which takes 16 cycles if
vector work is outstanding. Other control writes take one. The profile is `vectors/a2a3_instruction_profiles.csv`, with
what its authors charge twice left as it is.

    python tests published_model_a2a3  # writes the column `peer_predicted_cycles` of the judged tables anew
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from functools import cache
from unittest.mock import patch

from kit.paths import VECTORS
from kit.strided_works import TARGET

from castsim.execution.pipe_operations import ControlWrite, PipeBarrier
from castsim.execution.tree import Lowered, Operation, Tile, TileCast, operations
from castsim.isa.formats import Format, IntFormat
from castsim.isa.pto.program import TileType
from castsim.machines.mechanisms import lowerer_of
from castsim.machines.strided.strided_instructions import StridedInstruction
from castsim.targets.csv_tables import SHIPPED
from castsim.tools.accuracy.measured_rows import CAST, TRANSFERS, MeasuredRow, read_table
from castsim.tools.estimate.cast_estimates import HERE
from castsim.tools.estimate.operation_estimates import estimate_tile_operation

DRAIN = 16
TABLES = tuple(SHIPPED / f"a2a3_measured_{name}.csv" for name in ("casts", "operations"))
COLUMN = "peer_predicted_cycles"
_NAMES = {"vsel": "vsel cmpmask", "vsel_scalar": "vsel tensor-scalar", "vcmpv": "vcmpv_lt float"}
_OTHER_CAST = 14 + 13, 1
"""Startup and slope of casts that the profile lacks. It has no copies either, and nothing tells how they count."""


@cache
def profiles() -> dict[str, dict[str, str]]:
    """Rows by instruction."""
    path = VECTORS / "a2a3_instruction_profiles.csv"
    with path.open(newline="", encoding="utf-8") as file:
        return {row["instruction"]: row for row in csv.DictReader(file)}


def _line(call: StridedInstruction, starts: bool) -> float:
    """Cycles of one instruction; `starts`: a stream starts with it."""
    name, repeats = TARGET.timing.vector[call.timing].instruction, call.repeats
    name = call.mnemonic if call.mnemonic in profiles() else name
    cast = name.startswith("vconv")
    if not cast and name.startswith("copy"):
        return math.nan
    row = profiles().get(_NAMES.get(name, name)) or profiles().get(f"{name}r")
    if row is None:
        assert cast, name
        startup, slope = _OTHER_CAST
        return startup * starts + slope * repeats
    if row["kind"] == "exp_fill":
        counted = min(repeats, int(row["valid_repeat_max"]) or repeats)
        filled = float(row["startup"]) + float(row["fill"]) * math.exp(-counted / float(row["decay"]))
        return filled * (starts or row["serialize_every_call"] == "true") + float(row["slope"]) * counted
    fmt: Format = (call.sources[0] if cast and call.sources else call.destination).format
    integer = bool(row["integer_startup"]) and isinstance(fmt, IntFormat)
    column = "integer" if integer else "fp16" if fmt.storage_bits == 16 else "fp32"
    return float(row[f"{column}_startup"]) * starts + float(row[f"{column}_slope"]) * repeats


def predicted(issued: Iterable[Operation]) -> int | None:
    """Cycles of one operation on tiles, rounded half up; None with copies."""
    total, starts, outstanding = 0.0, True, False
    for operation in issued:
        if isinstance(operation, StridedInstruction):
            total += _line(operation, starts)
            starts, outstanding = False, True
        elif isinstance(operation, PipeBarrier):
            total += DRAIN * outstanding
            starts, outstanding = True, False
        elif isinstance(operation, ControlWrite):
            total += 1
    return None if math.isnan(total) else max(0, math.floor(total + 0.5))


def of_row(row: MeasuredRow) -> int | None:
    """What the model says of a judged row; None of transfers and copies, of which it has nothing newer."""
    if row.operation in TRANSFERS:
        return None
    lowerer = lowerer_of(TARGET)
    shape, valid = (row.rows, row.cols), (row.valid_rows, row.valid_cols)
    if row.operation == CAST:
        tiles = [
            Tile(fmt.name, fmt, TileType("vec", fmt.name, *shape, *valid), at, *valid, fmt.storage_bits)
            for fmt, at in ((row.src, 0), (row.dst, 0x10000))
        ]
        lowered = lowerer.cast(TileCast(tiles[0], tiles[1], None, None, None, HERE))
    else:
        with patch("castsim.tools.estimate.operation_estimates.timed_alone", lambda _, lowered, *__: lowered):
            lowered = estimate_tile_operation(
                row.operation, row.src.name, *shape, target=TARGET, valid_rows=valid[0], valid_cols=valid[1],
                in_place=row.in_place, scratch=row.parameters == "isBinary",
            )  # fmt: skip
    return predicted(operations(Lowered(0, lowered.body), None))


def main() -> None:
    """Write the column."""
    for path in TABLES:
        rows = {row.span.line: of_row(row) for row in read_table(path).rows}
        with path.open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
        for number, line in enumerate(lines, 2):
            found = rows.get(number)
            line[COLUMN] = "" if found is None else str(found)
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)


if __name__ == "__main__":
    main()
