"""Generations, pairs and inputs that the tests of compiled casts go through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from kit import boundaries
from oracle_array import storage
from oracle_compiled import GENERATIONS, direct
from oracle_formats import fmt

from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, Codes
from castsim.numerics.blocks import code_dtype
from castsim.targets.tpc_compiler import ChainReading, LoweringKind
from castsim.targets.vliw import VliwTarget
from castsim.tools.compiled.compiled_casts import CompiledCast, MatrixEntry, SourceForm, compile_cast, kept, prepared
from castsim.tools.tpc_compiler.c_table import bits_of, native_elements
from castsim.tools.tpc_compiler.cast_building import Order

UNUSED = ("i4", "u4")
"""They have no linear order."""


def elements(generation: str) -> tuple[str, ...]:
    """Return the types of a generation that its vector conversions mention, and have at least 8 bits."""
    return tuple(sorted({name for pair in direct(generation) for name in pair if name not in UNUSED}))


def pairs(generation: str) -> list[tuple[str, str]]:
    """Return every pair of different types."""
    return [(src, dst) for src in elements(generation) for dst in elements(generation) if src != dst]


ALL_PAIRS = [(generation, *pair) for generation in GENERATIONS for pair in pairs(generation)]


def sample(src: str, dst: str, points: int = 16, random: int = 40) -> np.ndarray:
    """Return inputs: all of 8 bits; of wider types those around what rounds and saturates, and random ones."""
    if fmt(src).bits <= 8:
        return np.arange(1 << fmt(src).bits, dtype=storage(src))
    return boundaries.hard_codes(src, dst, points=points, reach=1, random=random, seed=7)


def every_code(src: str) -> np.ndarray:
    """Return all codes of a type of up to 16 bits."""
    return np.arange(1 << fmt(src).bits, dtype=storage(src))


def compiled_cast(
    codes: Codes | Sequence[int], src: str, dst: str, *, target: VliwTarget | str, **options: Any
) -> Codes:
    """Return the result of the compiler's cast for codes; arguments and errors as `compile_cast`."""
    found = compile_cast(src, dst, target, **options)
    element = found.src.element if found.src.element != "i1" else f"u{bits_of(found.dst.element)}"
    return found.values(np.asarray(codes, code_dtype(FORMATS[element])))


# The compiler's lowering matrix as casts that run: what each of its entries means for vectors of these sizes.
#
# Entries with equal numbers of elements are casts of LLVM IR. Those that lead from one register to one register
# convert the lane 0 of wide slots. `Skip` keeps the first registers. What the other entries with unequal numbers
# convert to what is not documented (docs/reference/tpc.md section 4 names kinds only); they are refused.

_BYTE_BITS = 8
"""Narrower elements have no PACK and UNPACK, so that no linear order."""


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
