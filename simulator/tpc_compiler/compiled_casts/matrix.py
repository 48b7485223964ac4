"""The compiler's lowering matrix as casts that run: what each of its entries means for vectors of these sizes.

Entries with equal numbers of elements are casts of LLVM IR. Those that lead from one register to one register convert
the lane 0 of wide slots. `Skip` keeps the first registers. What the other entries with unequal numbers convert to what
is not documented (docs/reference/tpc.md section 4 names kinds only); they are refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from castsim.isa.errors import IllegalError
from castsim.targets.tpc_compiler import ChainReading, LoweringKind, lowering_matrix
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.compiled_casts.building import Order
from castsim.tpc_compiler.compiled_casts.c_table import VectorType, bits_of, native_elements
from castsim.tpc_compiler.compiled_casts.compiling import CompiledCast, SourceForm, kept, prepared

_BYTE_BITS = 8
"""Narrower elements have no PACK and UNPACK, so that no linear order."""


@dataclass(frozen=True, slots=True)
class MatrixEntry:
    """One entry: two vector types and the kind of lowering between them."""

    src: VectorType
    dst: VectorType
    kind: LoweringKind

    def __str__(self) -> str:
        return f"{self.src.element} x {self.src.elements} -> {self.dst.element} x {self.dst.elements} ({self.kind})"


def entries(target: VliwTarget, src: str | None = None, dst: str | None = None) -> tuple[MatrixEntry, ...]:
    """Return the entries of a generation, or those of a pair of element types."""
    return tuple(
        MatrixEntry(VectorType(row.src, before), VectorType(row.dst, after), row.kind)
        for row in lowering_matrix(target.name)
        if src in (None, row.src) and dst in (None, row.dst)
        for before, after in row.counts
    )


def order_of(entry: MatrixEntry, target: VliwTarget) -> Order | None:
    """Return the order in which an entry's result stands, None where no source says what it converts."""
    pair = entry.src, entry.dst
    if entry.kind in (LoweringKind.BOOL_TO, LoweringKind.SKIP):
        return Order.LINEAR
    if entry.src.elements == entry.dst.elements:
        return Order.LINEAR if min(bits_of(each.element) for each in pair) >= _BYTE_BITS else Order.SWIZZLE
    if all(each.elements == native_elements(each.element, target) for each in pair):
        return Order.LANE
    return None


def lowered(entry: MatrixEntry, target: VliwTarget) -> CompiledCast:
    """Return the cast that an entry stands for.

    Raises:
        IllegalError: what it converts is not documented; or nothing in the instruction set leads there.
    """
    order = order_of(entry, target)
    if order is None:
        raise IllegalError(
            f"{entry}: the numbers of elements differ, and what such an entry converts is not documented",
            legal=("entries with equal numbers", "one register to one register"),
        )
    if entry.kind is LoweringKind.SKIP:
        return kept(entry.src, entry.dst, target, SourceForm.IR)
    return prepared(
        entry.src, entry.dst, target, form=SourceForm.AS, rounding=None, reading=ChainReading.COMPILER, order=order
    )
