"""A chip's cast of loose elements: the steps that the kernel of contiguous tiles takes every element through.

There is no second description of what a cast does: the steps are those traced through the lowered kernel.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from isa.errors import Span
from isa.formats import Format
from isa.modes import Saturation
from isa.pto.program import RoundMode, TileType
from simulator.target_cast import TargetCast
from simulator.tiles import Tile, TileCast
from simulator.vector_function.lowering import lower_cast
from simulator.vector_function.trace import MaskStep, trace_nest
from simulator.vector_function.whole_tile import apply_chain
from targets.vector_function import VectorFunctionTarget

_HERE = Span("<cast>", 1, 1)


def cast_elements(
    target: VectorFunctionTarget,
    codes: NDArray[Any],
    src: Format,
    dst: Format,
    mode: RoundMode | None,
    saturation: Saturation | None,
    *,
    scratch: bool,
) -> TargetCast:
    """Convert codes of any shape as the chip's cast of a contiguous tile does.

    Raises:
        IllegalError: no such type pair.
    """
    size = target.registers.register_bytes
    source = _tile("src", src, 0, size)
    tmp = _tile("tmp", src, 0, size) if scratch else None
    lowered = lower_cast(target, TileCast(source, _tile("dst", dst, source.end, size), tmp, mode, saturation, _HERE))
    chain = trace_nest(lowered.function, lowered.function.nests[-1])
    assert chain is not None  # tests trace every variant of every pair
    plan = lowered.plan
    overflow = next(step.policy.overflow for step in reversed(chain) if not isinstance(step, MaskStep))
    return TargetCast(apply_chain(chain, codes), plan.rounding.value, plan.saturation, overflow, lowered.warnings)


def _tile(name: str, fmt: Format, address: int, cols: int) -> Tile:
    """One full row of `cols` elements: whole trips of every kernel."""
    bits = fmt.bits if fmt.bits == 4 else fmt.storage_bits
    return Tile(name, fmt, TileType("vec", fmt.name, 1, cols, 1, cols), address, 1, cols, bits)
