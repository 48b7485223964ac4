"""Loop nests of quantisation to 8 bits, the way back, and packing (docs/reference/pto.md section 7.12).

Facts: pto-isa include/pto/npu/a5 @ 3186c381, TQuant.hpp and TDeQuant.hpp; packing: the library of 2026-04-16.
"""

from __future__ import annotations

from castsim.execution.tiles import ResolvedTileOp
from castsim.machines.vector_function.kernel_blocks import block_nests, box_nests
from castsim.machines.vector_function.kernel_nests import Operands, Region, Trip, chain, region_of
from castsim.machines.vector_function.operations import Compute, Nest, Store
from castsim.targets.vector_function import VectorFunctionTarget
from castsim.targets.vector_function_operations import VectorFunctionOperation

QUANTISING = ("quantisation", "dequantisation", "packing", "block_quantisation", "boxing")
"""The structures that are laid out here."""

_TO_BYTES = 4
"""Conversions from f32 to 8 bits: by way of s32, f32 and f16."""

_PACKED = {(32, 16): "PK_B32", (32, 8): "PK4_B32", (16, 8): "PK_B16"}
"""Distribution of a store that keeps the low bytes, by the bits of elements before and after."""

_PACED = {"PK4_B32": "quarter_store", "PK_B16": "byte_store"}
"""The fact that keeps the trips of a packing apart, by the distribution of its store."""


def quantising_nests(
    operands: Operands, work: ResolvedTileOp, kernel: VectorFunctionOperation, target: VectorFunctionTarget
) -> tuple[Nest, ...]:
    """Return the nests of an operation: loops over rows, and over their registers."""
    register_bytes = target.registers.register_bytes
    match kernel.structure:
        case "quantisation":
            return (_quantisation(operands, work, kernel, register_bytes),)
        case "dequantisation":
            return (_dequantisation(operands, work, kernel, register_bytes),)
        case "block_quantisation":
            return block_nests(operands, work, register_bytes)
        case "boxing":
            return box_nests(operands, work, kernel.instructions, register_bytes)
        case _:
            source, dst = work.sources[0], work.dst
            region = region_of(source, source.valid_rows, source.valid_cols, register_bytes)
            load = operands.load("v0", "NORM", source.address, region.steps(source))
            packed = _PACKED[source.element_bits, dst.element_bits]
            trip: Trip = (region.predicate, load, Store("v0", "p", packed))
            stored = dst.row_pitch, region.elements * dst.element_bits // 8
            return (region.nest(trip, stored, paced=_PACED.get(packed)),)


def _quantisation(
    operands: Operands, work: ResolvedTileOp, kernel: VectorFunctionOperation, register_bytes: int
) -> Nest:
    """Parameters are loaded again in every trip."""
    source, *parameters = work.sources
    region = region_of(source, source.valid_rows, source.valid_cols, register_bytes)
    names = tuple(f"s{number}" for number in range(len(parameters)))
    spread = tuple(
        operands.load(name, "BRC_B32", tile.address, (4, 0)) for name, tile in zip(names, parameters, strict=True)
    )
    load = operands.load("v0", "NORM", source.address, region.steps(source))
    computed, last = [], "v0"
    for mnemonic, name in zip(kernel.instructions, names, strict=False):
        computed.append(Compute(mnemonic, (f"{name}r",), (last, name), region.width))
        last = f"{name}r"
    converted = chain(("vcvt",) * _TO_BYTES, (last,), region.width)
    trip: Trip = (
        region.predicate,
        *spread,
        load,
        *computed,
        *converted,
        Store(converted[-1].results[0], "p", "PK4_B32"),
    )
    paced = "quarter_store_offset" if len(parameters) > 1 else "quarter_store"
    return region.nest(trip, (work.dst.row_pitch, region.elements), paced=paced)


def _dequantisation(
    operands: Operands, work: ResolvedTileOp, kernel: VectorFunctionOperation, register_bytes: int
) -> Nest:
    """Parameters are loaded once per row; bytes are widened in two steps."""
    source, scale, offset = work.sources
    region = Region(32, register_bytes, work.dst.valid_rows, work.dst.valid_cols)
    row = tuple(
        operands.load(
            name, "BRC_B32", tile.address, (4 if tile.type.block_layout == "col_major" else tile.row_pitch, 0)
        )
        for name, tile in (("s0", scale), ("s1", offset))
    )
    narrow = source.element_bits
    steps = (source.row_pitch, region.elements * narrow // 8)
    load = operands.load("v0", "UNPK4_B8" if narrow == 8 else "UNPK_B16", source.address, steps)
    widened = chain(("vcvt",) * (2 if narrow == 8 else 1), ("v0",), region.width)
    less, times = kernel.instructions
    shifted = Compute(less, ("d",), (widened[-1].results[0], "s1"), region.width)
    scaled = Compute(times, ("e",), ("d", "s0"), region.width)
    trip: Trip = (load, region.predicate, *widened, shifted, scaled, region.store("e"))
    return region.nest(trip, region.steps(work.dst), row=row, post_update=True)
