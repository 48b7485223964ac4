"""Facts of the vector operations other than casts on chips that run vector functions: kernels and arithmetic.

Facts: docs/reference/a5.md section 9 (structure of the kernels, latencies), section 6.2 (ports).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BeforeValidator

from castsim.isa.pto.vector_operations import Kind
from castsim.targets.cells import Words
from castsim.targets.schema import Count, Fact
from castsim.targets.tile_operations import LANEWISE, MANY, StructureOf, TileOperationFacts
from castsim.targets.vector_function_timing import Fitted

KernelVariant = Literal["1D_POST_UPDATE", "1D_NO_POST_UPDATE", "2D_POST_UPDATE", "2D_NO_POST_UPDATE"]

FLAT: frozenset[KernelVariant] = frozenset(["1D_POST_UPDATE", "1D_NO_POST_UPDATE"])
"""Variants that take a tile as one row."""
POST_UPDATES: frozenset[KernelVariant] = frozenset(["1D_POST_UPDATE", "2D_POST_UPDATE"])
"""Variants whose loads advance their addresses themselves."""

Structure = Literal[
    "elementwise",
    "compare",
    "select",
    "row_reduction",
    "row_product",
    "column_reduction",
    "row_expansion",
    "row_broadcast",
    "column_argument",
    "row_argument",
    "column_expansion",
    "column_broadcast",
    "move",
    "fill",
    "part",
    "ramp",
    "gather",
    "merge",
    "compare_gather",
    "sort",
    "pattern_gather",
    "transposition",
    "concatenation",
    "counted_concatenation",
    "quantisation",
    "dequantisation",
    "packing",
    "block_quantisation",
    "boxing",
]
"""Shapes of kernels; `castsim.machines.vector_function.kernel_lowering` lays them out."""


class ComputeInstruction(Fact):
    """One compute instruction.

    Latencies are those on lanes of 32 bits and more, and of 16 bits and less. `port`: `any` is never short, `serial`
    is the port of the converts, held for `held` cycles, `special` the ports of the special functions, `exclusive`
    stands for instructions whose trips do not overlap. Integer lanes hold their port for `integers_held` cycles, in the
    vector instructions of a text; without it, and in tile operations, for one. `again` is the distance of two that
    accumulate into the same register; without it, what forwarding leaves of the latency.
    """

    latency_32: Fitted
    latency_16: Fitted
    port: Literal["any", "serial", "special", "exclusive"]
    held: Fitted | None = None
    integers_held: Fitted | None = None
    again: Fitted | None = None

    def latency(self, width: int) -> Fitted:
        """Return the latency on lanes of `width` bits."""
        return self.latency_32 if width >= 32 else self.latency_16


class VectorFunctionOperation(TileOperationFacts):
    """One vector operation with its kernel.

    `structure` names its loops; `instructions` stand between load and store, in order; `choice` names the table of
    variants. `broadcasts` are the scalars that each row of a loop over rows spreads first. `scalar_integers` names the
    instruction of a scalar element loop that integer types run instead.
    `control` is the class of CTRL bits written around it for the formats `controlled`.
    """

    structure: Structure
    choice: str
    scalar_integers: str | None = None
    broadcasts: Count = 0
    control: str | None = None
    controlled: Words = ()


STRUCTURES = {
    "elementwise": StructureOf(LANEWISE, 1, MANY),
    "compare": StructureOf((Kind.COMPARE,), 1, 1),
    "select": StructureOf((Kind.SELECT,), 1, 1),
    "row_reduction": StructureOf((Kind.ROW_REDUCE,), 2, 2),
    "row_product": StructureOf((Kind.ROW_REDUCE,), 1, 1),
    "column_reduction": StructureOf((Kind.COLUMN_REDUCE,), 1, 1),
    "row_expansion": StructureOf((Kind.ROW_EXPAND,)),
    "row_broadcast": StructureOf((Kind.ROW_BROADCAST,), 1, MANY),
    "row_argument": StructureOf((Kind.ROW_ARGUMENT,), 3, 3),
    "column_argument": StructureOf((Kind.COLUMN_ARGUMENT,), 2, 2),
    "column_expansion": StructureOf((Kind.COLUMN_EXPAND,)),
    "column_broadcast": StructureOf((Kind.COLUMN_BROADCAST,), 1, MANY),
    "move": StructureOf((Kind.MOVE,)),
    "fill": StructureOf((Kind.FILL,)),
    "part": StructureOf((Kind.PART,), 1, 1),
    "ramp": StructureOf((Kind.RAMP,), 1, 1),
    "gather": StructureOf((Kind.GATHER,), 1, 1),
    "pattern_gather": StructureOf((Kind.PATTERN_GATHER,), 1, 1),
    "compare_gather": StructureOf((Kind.COMPARE_GATHER,), 2, 2),
    "sort": StructureOf((Kind.SORT,), 1, 1),
    "merge": StructureOf((Kind.MERGE,), 1, 1),
    "transposition": StructureOf((Kind.TRANSPOSE,), 2, MANY),
    "concatenation": StructureOf((Kind.CONCATENATE,), 1, MANY),
    "counted_concatenation": StructureOf((Kind.COUNTED_CONCATENATE,), 1, MANY),
    "quantisation": StructureOf((Kind.QUANTISE,), 2, MANY),
    "dequantisation": StructureOf((Kind.DEQUANTISE,), 2, 2),
    "packing": StructureOf((Kind.PACK,)),
    "block_quantisation": StructureOf((Kind.BLOCK_QUANTISE,), 1, MANY),
    "boxing": StructureOf((Kind.BOX,), 0, MANY),
}
"""The purposes of the structures of kernels."""


class KernelVariants(Fact):
    """The code variant that runs: indexed by implementation kind, for contiguous and for padded tiles."""

    contiguous: tuple[KernelVariant, ...]
    padded: tuple[KernelVariant, ...]


def by_column(name: str) -> BeforeValidator:
    """Return a validator that maps the rows of a table by one of their columns, whose values must be distinct."""

    def mapped(rows: Any) -> Any:
        if isinstance(rows, Mapping):
            return rows
        found: dict[str, Any] = {}
        for row in rows:
            key = row.get(name)
            if not isinstance(key, str) or key in found:
                raise ValueError(f"{name} {key!r} is listed twice" if key in found else f"a row without {name}")
            found[key] = {column: value for column, value in row.items() if column != name and value is not None}
        return found

    return BeforeValidator(mapped)
