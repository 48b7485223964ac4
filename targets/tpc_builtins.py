"""The cast builtins of TPC-C with their steps per generation.

Sources: the vendor's document `tpc_builtin_support` (names and signatures), docs/reference/tpc.md section 3 (value
steps, operation counts, lane orders of the helper headers), section 2.5 (what moves lanes).
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, Field

from castsim.targets.description import LIST_SEPARATOR, Listed, Status, Table
from castsim.targets.tpc_compiler import csv_rows
from castsim.targets.vliw import VliwTarget

_CASTS, _ROUNDING = "tpc_builtins.csv", "tpc_builtin_rounding.csv"
_STEP = re.compile(r"(?P<head>\S.*?) x(?:, (?P<operand>\S+))?")


class ResultOrder(StrEnum):
    """The origin of the elements of a result; r is the ratio of widths or the number of registers."""

    LINEAR = "linear"
    """Element i of the result from element i of the sources, all registers laid end to end."""
    INTERLEAVED = "interleaved"
    """Element r * i + k of the result from element i of source register k."""
    SPLIT = "split"
    """Element i of result register k from element r * i + k of the source."""
    UNDEFINED = "undefined"
    """No source says."""


class Recipe(StrEnum):
    """The movement of elements between registers by a builtin; the numbers count VPU operations of that alone."""

    PACK_TWO_SINGLE = "pack_two_single"
    """Two registers of wide slots into one; MOV_DG of single dual groups: 11."""
    PACK_TWO_ALL = "pack_two_all"
    """The same with MOV_DG of all dual groups: 8."""
    PACK_FOUR = "pack_four"
    """Four registers of wide slots into one: 23."""
    UNPACK_TWO_SINGLE = "unpack_two_single"
    """One register into two of wide slots, MOV_DG of single dual groups: 8."""
    UNPACK_TWO_ALL = "unpack_two_all"
    """The same with MOV_DG of all dual groups behind the UNPACK: 6."""
    UNPACK_TWO_SWAPPED = "unpack_two_swapped"
    """The same with MOV_G and MOV_DG of all dual groups before the UNPACK: 5."""
    UNPACK_FOUR_SINGLE = "unpack_four_single"
    """One register into four of wide slots, MOV_DG of single dual groups: 19."""
    UNPACK_FOUR_ALL = "unpack_four_all"
    """The same with MOV_DG of all dual groups: 12."""
    ALL_LANES = "all_lanes"
    """One conversion of all lanes (column `joint`): 1."""
    UNPACK_LANES = "unpack_lanes"
    """UNPACK to two lanes, then MOV_DG unpack: 4."""
    HALF_IN_WIDE_LANES = "half_in_wide_lanes"
    """f16 in 32-bit lanes to f32 by arithmetic on the bits: 12."""


class StepText(Table):
    """One instruction on a running value x: what stands before it, and the second source (an immediate or a name)."""

    head: str
    operand: str | None


def _steps(cell: object) -> object:
    """Read `mul.f32 x, scale; convert.f32 target_type=int16 MODE x`."""
    if not isinstance(cell, str):
        return cell
    found = []
    for text in filter(None, (part.strip() for part in cell.split(LIST_SEPARATOR))):
        match = _STEP.fullmatch(text)
        if match is None:
            raise ValueError(f"'{text}' is not a step: HEAD x, or HEAD x, OPERAND")
        found.append(StepText(head=match["head"], operand=match["operand"]))
    return tuple(found)


Steps = Annotated[tuple[StepText, ...], BeforeValidator(_steps)]
"""Instructions in order; the word MODE stands for the rounding of the generation's builtins."""


class BuiltinRow(Table):
    """A cast builtin of a generation.

    `signature` is output(inputs) in C types, `source` and `result` are the formats of their elements. `before` is done
    to every source register, `joint` is the conversion of all lanes, `after` is done to every result register; `recipe`
    moves the elements between. `vector_operations` counts all instructions of the vector unit, zeroing and copies of
    registers aside.
    """

    generation: str
    builtin: str
    signature: str
    source: str
    result: str
    before: Steps
    recipe: Recipe
    joint: Steps
    after: Steps
    vector_operations: Annotated[int, Field(gt=0)]
    result_order: ResultOrder
    status: Status
    note: str


class BuiltinRounding(Table):
    """The rounding of a generation's builtins; `build_options` are the modes that a build option can choose instead."""

    generation: str
    mode: str
    build_options: Listed
    status: Status
    source: Annotated[str, Field(min_length=1)]


def builtins_of(target: VliwTarget) -> tuple[BuiltinRow, ...]:
    """Return the cast builtins of a target: those of the generation that it is or inherits from."""
    return tuple(row for row in csv_rows(_CASTS, BuiltinRow) if row.generation in target.architectures)


def all_builtins() -> tuple[BuiltinRow, ...]:
    """Return the cast builtins of all generations."""
    return csv_rows(_CASTS, BuiltinRow)


def builtin_rounding(target: VliwTarget) -> BuiltinRounding | None:
    """Return the rounding of a target's builtins; None if its generation is unknown."""
    rows = csv_rows(_ROUNDING, BuiltinRounding)
    return next((row for row in rows if row.generation in target.architectures), None)
