"""The steps that a tile cast of a vector function makes of an element, traced through its kernel."""

from __future__ import annotations

from castsim.execution.tiles import Tile, TileCast
from castsim.isa.errors import Span
from castsim.isa.formats import Format
from castsim.isa.pto.program import TileType
from castsim.lowering.steps import And, FormatCast, Integral, Primitive, TileCastForm
from castsim.lowering.tile_casts import Primitives, TilePlanning, Tracer
from castsim.machines.vector_function.lowering import lower_cast
from castsim.machines.vector_function.plan import plan_cast
from castsim.machines.vector_function.values import ConvertStep, IntegralStep, MaskStep, trace_nest
from castsim.targets.vector_function import VectorFunctionTarget

_HERE = Span("<plan>", 1, 1)


def _tracer(target: VectorFunctionTarget) -> Tracer:
    """Return a function for the steps of each form of a type pair; what a form does not change is traced once."""
    traced: dict[tuple[object, ...], Primitives] = {}

    def primitives(src: Format, dst: Format, form: TileCastForm) -> Primitives:
        plan = plan_cast(target, src, dst, form.rounding, form.saturation, contiguous=True, scratch=False)
        key = plan.variant, plan.rounding, plan.saturation, plan.ctrl
        if key not in traced:
            traced[key] = _traced(target, src, dst, form)
        return traced[key]

    return primitives


def _traced(target: VectorFunctionTarget, src: Format, dst: Format, form: TileCastForm) -> Primitives:
    size = target.registers.register_bytes
    source = _row("src", src, 0, size)
    cast = TileCast(source, _row("dst", dst, source.end, size), None, form.rounding, form.saturation, _HERE)
    function = lower_cast(target, cast).function
    chain = trace_nest(function, function.nests[-1])
    assert chain is not None  # tests trace every variant of every pair
    found: list[Primitive] = []
    for step in chain:
        match step:
            case ConvertStep(before, after, policy):
                found.append(FormatCast(before, after, policy))
            case IntegralStep(fmt, policy):
                found.append(Integral(fmt, policy))
            case MaskStep(mask):
                found.append(And(mask))
    return tuple(found)


def _row(name: str, fmt: Format, address: int, cols: int) -> Tile:
    """One full row of whole trips of every kernel."""
    bits = fmt.bits if fmt.bits == 4 else fmt.storage_bits
    return Tile(name, fmt, TileType("vec", fmt.name, 1, cols, 1, cols), address, 1, cols, bits)


PLANNING = TilePlanning(_tracer)
