"""Loop nests of quantisation to 8 bits, the way back, and packing (docs/reference/pto.md section 7.12).

Facts: pto-isa include/pto/npu/a5 @ 3186c381, TQuant.hpp and TDeQuant.hpp; packing: the library of 2026-04-16.
"""

from __future__ import annotations

from dataclasses import replace

from castsim.execution.tiles import TileWork
from castsim.execution.vector_operations.shapes import MX_GROUP, stored_groups
from castsim.machines.vector_function.kernel_nests import Operands, Region, Trip, chain, region_of
from castsim.machines.vector_function.operations import Compute, MemoryBarrier, Nest, Store
from castsim.targets.vector_function import VectorFunctionTarget
from castsim.targets.vector_function_operations import VectorFunctionOperation

QUANTISING = ("quantisation", "dequantisation", "packing", "block_quantisation")
"""The structures that are laid out here."""

_SHORT = 1024
"""Elements up to which maxima are taken register by register."""

_EXPONENT = ("vand", "vand", "vshrs", "vsub", "vsub", "vshls", "vcmps", "vcmps", "vcmps")
"""Instructions that make exponent and reciprocal of a largest magnitude, before those that choose."""

_TO_BYTES = 4
"""Conversions from f32 to 8 bits: by way of s32, f32 and f16."""

_PACKED = {(32, 16): "PK_B32", (32, 8): "PK4_B32", (16, 8): "PK_B16"}
"""Distribution of a store that keeps the low bytes, by the bits of elements before and after."""

_PACED = {"PK4_B32": "quarter_store", "PK_B16": "byte_store"}
"""The fact that keeps the trips of a packing apart, by the distribution of its store."""


def quantising_nests(
    operands: Operands, work: TileWork, kernel: VectorFunctionOperation, target: VectorFunctionTarget
) -> tuple[Nest, ...]:
    """Return the nests of an operation: loops over rows, and over their registers."""
    register_bytes = target.registers.register_bytes
    match kernel.structure:
        case "quantisation":
            return (_quantisation(operands, work, kernel, register_bytes),)
        case "dequantisation":
            return (_dequantisation(operands, work, kernel, register_bytes),)
        case "block_quantisation":
            return _block_quantisation(operands, work, register_bytes)
        case _:
            source, dst = work.sources[0], work.dst
            region = region_of(source, source.valid_rows, source.valid_cols, register_bytes)
            load = operands.load("v0", "NORM", source.address, region.steps(source))
            packed = _PACKED[source.element_bits, dst.element_bits]
            trip: Trip = (region.predicate, load, Store("v0", "p", packed))
            stored = dst.row_pitch, region.elements * dst.element_bits // 8
            return (region.nest(trip, stored, paced=_PACED.get(packed)),)


def _quantisation(operands: Operands, work: TileWork, kernel: VectorFunctionOperation, register_bytes: int) -> Nest:
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


def _dequantisation(operands: Operands, work: TileWork, kernel: VectorFunctionOperation, register_bytes: int) -> Nest:
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


def _block_quantisation(operands: Operands, work: TileWork, register_bytes: int) -> tuple[Nest, ...]:
    """Three passes over memory in one function: largest magnitudes, exponents and reciprocals, codes.

    Of short tiles each register gives the maxima of two groups by two reductions; of others four give those of eight.
    """
    source = work.sources[0]
    _, maxima, scaling = work.further
    width, count = source.element_bits, source.valid_rows * source.valid_cols
    groups = count // MX_GROUP
    lanes = register_bytes * 8 // width
    short = width == 32 and count <= _SHORT
    vectors = 1 if short else 256 // lanes
    first = Region(width, vectors * register_bytes, 1, count, flat=True)
    loads = tuple(
        operands.load(f"v{number}", "NORM", source.address + number * register_bytes, (0, vectors * register_bytes))
        for number in range(vectors)
    )
    reductions = ("vcmax", "vcmax") if short else ("vcgmax",)
    steps = chain((*("vabs",) * vectors, *("vmax",) * (vectors - 1), *reductions), ("v0",), width)
    found = first.nest((*loads, first.predicate, *steps, first.store(steps[-1].results[0])),
                       (0, vectors * lanes // MX_GROUP * width // 8), writes=operands.add(maxima.address))  # fmt: skip
    second = Region(width, register_bytes, 1, groups, flat=True)
    read = operands.load("m", "NORM", maxima.address, (0, register_bytes))
    shared = chain((*_EXPONENT, *("vsel",) * 4), ("m",), width)
    kept = operands.add(scaling.address)
    made = second.nest(
        (read, second.predicate, *shared, MemoryBarrier("VST_VST"), second.store(shared[-1].results[0])),
        (0, register_bytes), writes=kept,
    )  # fmt: skip
    unrolled = stored_groups(work)[2] > groups or width == 16
    third = Region(width, (2 if unrolled else 1) * register_bytes, 1, count, flat=True)
    steps_of = (0, third.elements // MX_GROUP * width // 8)
    factors = ("s0",) if unrolled else ("s0", "s1")
    spread = tuple(operands.load(name, f"BRC_B{width}", scaling.address, steps_of) for name in factors)
    given = tuple(
        operands.load(f"v{number}", "NORM", source.address + number * register_bytes, (0, third.trip_bytes))
        for number in range(2 if unrolled else 1)
    )
    products = chain(("vmul", "vmul", *("vcvt",) * (4 if width == 16 else 2 if unrolled else 1), "vor"), ("v0",), width)
    stored = Store(products[-1].results[0], "p", f"PK_B{width}" if unrolled else "PK4_B32")
    codes = third.nest(
        (*spread, *given, third.predicate, *products, stored), (0, third.elements), paced="codes_after_stores"
    )
    made = replace(made, paced="after_stores")
    return found, made, codes
