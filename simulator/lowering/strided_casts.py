"""The steps that a tile cast of strided instructions makes of an element."""

from __future__ import annotations

from functools import partial

from castsim.execution.tree import Block, Lowered, operations
from castsim.isa.formats import Format, IntFormat
from castsim.lowering.steps import And, FormatCast, Integral, Primitive, Scaled, TileCastForm
from castsim.lowering.tile_casts import Primitives, TilePlanning, Tracer
from castsim.machines.strided import operations as strided
from castsim.machines.strided.operations import BitwiseAnd, DuplicateCode, StridedInstruction
from castsim.machines.strided.plan import plan_cast
from castsim.machines.strided.sequences import ConversionCall, emit_call
from castsim.machines.strided.values import SCALE_FORMAT
from castsim.numerics import scale_of
from castsim.targets.strided_repeat import StridedRepeatTarget

_SOURCE, _SCRATCH, _DESTINATION = 0, 1 << 20, 1 << 21


def _tracer(target: StridedRepeatTarget) -> Tracer:
    """Return the function that gives the steps of each form of a type pair."""
    return partial(_primitives, target)


def _primitives(target: StridedRepeatTarget, src: Format, dst: Format, form: TileCastForm) -> Primitives:
    """Return the steps of an instruction, or of the scratch sequence that a form selects."""
    plan = plan_cast(target, src, dst, form.rounding, form.saturation, scratch=form.scratch)
    if plan.sequence is None:
        return (_of_action(plan.action, src, dst),)
    sequence = Lowered(
        0, Block(tuple(emit_call(target, plan, ConversionCall(1, _DESTINATION, _SOURCE, 0, 0, 1), _SCRATCH)))
    )
    return _through_scratch(sequence)


def _through_scratch(sequence: Lowered) -> Primitives:
    """Return the primitives of an element on its way through a scratch sequence."""
    held: dict[int, Primitives] = {_SOURCE: ()}
    constants: dict[int, int] = {}
    for operation in operations(sequence, None):
        if not isinstance(operation, StridedInstruction):
            continue
        place, action = operation.destination.address, operation.action
        sources = [source.address for source in operation.sources]
        if isinstance(action, DuplicateCode):
            constants[place] = action.value
            continue
        if isinstance(action, BitwiseAnd):
            value, mask = sources
            held[place] = (*held[value], And(constants[mask]))
        else:
            step = _of_action(action, operation.sources[0].format, operation.destination.format)
            held[place] = (*held[sources[0]], step)
        constants.pop(place, None)
    return held[_DESTINATION]


def _of_action(action: object, src: Format, dst: Format) -> Primitive:
    match action:
        case strided.ElementwiseCast(policy):
            return FormatCast(src, dst, policy)
        case strided.RoundToIntegral(policy):
            return Integral(dst, policy)
        case strided.ScaledConvert(scale, policy):
            assert isinstance(src, IntFormat)
            return Scaled(src, dst, scale_of(scale, SCALE_FORMAT), policy)
    raise TypeError(f"{action} converts nothing")


PLANNING = TilePlanning(_tracer)
