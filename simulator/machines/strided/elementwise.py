"""A chip's cast of loose elements: the instructions that a tile cast would issue, applied to whole arrays.

There is no second description of what a cast does: the operations come from the same lowering, run on arrays that
stand for the lanes instead of on a buffer.
"""

from __future__ import annotations

from castsim.execution.tree import Block, Lowered, operations
from castsim.isa.codes import Codes
from castsim.isa.formats import IntFormat
from castsim.isa.modes import Overflow, Saturation
from castsim.machines.strided.operations import Arithmetic, BitwiseAnd, Duplicate, VectorOperation
from castsim.machines.strided.plan import CastPlan, plan_cast
from castsim.machines.strided.sequences import Call, emit_call
from castsim.machines.strided.values import apply_action
from castsim.machines.target_cast import CastAsked, TargetCast
from castsim.machines.tile_modes import tile_mode
from castsim.targets.strided_repeat import StridedRepeatTarget

_SOURCE, _SCRATCH, _DESTINATION = 0, 1 << 20, 1 << 21
"""Addresses that keep the three operands of a sequence apart."""


def cast_elements(target: StridedRepeatTarget, codes: Codes, asked: CastAsked) -> TargetCast:
    """Convert codes of any shape as the chip's tile cast does.

    Raises:
        ReadError, IllegalError: see `castsim.machines.tile_modes.tile_mode`.
        IllegalError: no such type pair.
    """
    src, dst, mode = asked.src, asked.dst, tile_mode(asked.rounding, target.name)
    plan = plan_cast(target, src, dst, mode, asked.saturation, scratch=asked.scratch)
    if plan.sequence is None:
        converted = apply_action(plan.action, [codes], src, dst, codes.shape)
        return _outcome(plan, converted)
    call = Call(1, _DESTINATION, _SOURCE, 0, 0, 1)
    sequence = Lowered(0, Block(tuple(emit_call(target, plan, call, _SCRATCH))))
    held = {_SOURCE: codes}
    for operation in operations(sequence, None):
        if isinstance(operation, VectorOperation):
            sources = [held[source.address] for source in operation.sources]
            from_format = operation.sources[0].format if operation.sources else None
            to_format = operation.destination.format
            result = apply_action(operation.action, sources, from_format, to_format, codes.shape)
            held[operation.destination.address] = result
    return _outcome(plan, held[_DESTINATION])


def _outcome(plan: CastPlan, codes: Codes) -> TargetCast:
    return TargetCast(codes, plan.rounding.value, plan.saturation, _overflow(plan), plan.warnings)


def _overflow(plan: CastPlan) -> Overflow:
    if not isinstance(plan.action, Duplicate | BitwiseAnd | Arithmetic):
        return plan.action.policy.overflow
    off = plan.saturation is Saturation.OFF and isinstance(plan.dst, IntFormat)
    return Overflow.WRAP if off else Overflow.SATURATE
