"""A chip's cast of loose elements: the steps that the kernel of a form takes every element through.

There is no second description of what a cast does: the steps are those traced through the lowered kernel.
"""

from __future__ import annotations

from castsim.execution.tiles import Tile, TileCast
from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError, Span
from castsim.isa.formats import Format
from castsim.isa.pto.program import TileType
from castsim.machines.target_cast import CastAsked, CastForm, TargetCast, saturation_in_force
from castsim.machines.tile_modes import tile_mode
from castsim.machines.vector_function.lowering import lower_cast
from castsim.machines.vector_function.plan import switched_saturation
from castsim.machines.vector_function.values import MaskStep, apply_chain, trace_nest
from castsim.targets.vector_function import VectorFunctionTarget

_HERE = Span("<cast>", 1, 1)


def cast_elements(target: VectorFunctionTarget, codes: Codes, asked: CastAsked) -> TargetCast:
    """Convert codes of any shape as the chip's cast of a tile does: contiguous, or in the 2-D form of padded rows.

    Raises:
        ReadError, IllegalError: see `castsim.machines.tile_modes.tile_mode`.
        IllegalError: no such type pair, or a kernel of a description that converts something else.
    """
    src, dst, mode = asked.src, asked.dst, tile_mode(asked.rounding, target.name)
    size = target.registers.register_bytes
    source = _tile("src", src, 0, size, asked.form)
    tmp = _tile("tmp", src, 0, size, asked.form) if asked.scratch else None
    destination = _tile("dst", dst, source.end, size, asked.form)
    lowered = lower_cast(target, TileCast(source, destination, tmp, mode, asked.saturation, _HERE))
    chain = trace_nest(lowered.function, lowered.function.nests[-1])
    if chain is None:  # tests trace every variant of every pair of shipped targets
        raise IllegalError(f"{target.name}: the kernel of {src.name} -> {dst.name} converts no register lane by lane")
    plan = lowered.plan
    overflow = next(step.policy.overflow for step in reversed(chain) if not isinstance(step, MaskStep))
    saturation = saturation_in_force(src, dst, overflow, switched_saturation(target, plan))
    return TargetCast(apply_chain(chain, codes), plan.rounding.value, saturation, overflow, lowered.warnings)


def _tile(name: str, fmt: Format, address: int, valid: int, form: CastForm | None) -> Tile:
    """Rows of `valid` elements, whole trips of every kernel: one full row, or two that go on behind them."""
    bits = fmt.bits if fmt.bits == 4 else fmt.storage_bits
    rows, cols = (2, 2 * valid) if form == "2d" else (1, valid)
    return Tile(name, fmt, TileType("vec", fmt.name, rows, cols, rows, valid), address, rows, valid, bits)
