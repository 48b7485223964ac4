"""Facts of the vector operations other than casts on chips that run vector functions: kernels and arithmetic.

Facts: a5.md section 9 (structure of the kernels, latencies), section 6.2 (ports).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from targets.schema import Fact
from targets.vector_function_timing import Fitted

WorkVariant = Literal["1D_POST_UPDATE", "1D_NO_POST_UPDATE", "2D_POST_UPDATE", "2D_NO_POST_UPDATE"]

Structure = Literal[
    "elementwise",
    "compare",
    "select",
    "row_reduction",
    "row_product",
    "column_reduction",
    "row_expansion",
    "row_broadcast",
    "column_expansion",
    "column_broadcast",
    "move",
    "fill",
]
"""Shapes of kernels; `simulator.vector_function.work_kernels` lays them out."""


class Arithmetic(Fact):
    """One compute instruction.

    Latencies are those on lanes of 32 bits and more, and of 16 bits and less. `port`: `any` is never short, `serial`
    is the port of the converts, held for `held` cycles, `special` the ports of the special functions, `exclusive`
    stands for instructions whose trips do not overlap. `again` is the distance of two that accumulate into the same
    register; without it, what forwarding leaves of the latency.
    """

    latency_32: Fitted
    latency_16: Fitted
    port: Literal["any", "serial", "special", "exclusive"]
    held: Fitted | None = None
    again: Fitted | None = None

    def latency(self, width: int) -> Fitted:
        """Return the latency on lanes of `width` bits."""
        return self.latency_32 if width >= 32 else self.latency_16


def _words(text: object) -> object:
    return tuple(text.split()) if isinstance(text, str) else text or ()


Words = Annotated[tuple[str, ...], BeforeValidator(_words)]


class WorkKernel(Fact):
    """How one operation is carried out.

    `compute` are the instructions between load and store, in order; `choice` names the table of variants. `validated`
    are the formats for which published cycles have been compared. `scalar_integers` names the instruction of a scalar
    element loop that integer types run instead. `control` is the class of CTRL bits written around it for the
    formats `controlled`.
    """

    structure: Structure
    compute: Words = ()
    choice: str
    validated: Words = ()
    scalar_integers: str | None = None
    control: str | None = None
    controlled: Words = ()


class WorkVariants(Fact):
    """Which code variant runs: indexed by implementation kind, for contiguous and for padded tiles."""

    contiguous: tuple[WorkVariant, ...]
    padded: tuple[WorkVariant, ...]


def by_column(name: str) -> BeforeValidator:
    """Return what turns the rows of a table into a mapping by one of their columns; no value may occur twice."""

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
