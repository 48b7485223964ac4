"""A chip's cast of loose elements: the instructions that a tile cast would issue, applied to whole arrays.

There is no second description of what a cast does: the operations come from the same lowering, run on arrays that
stand for the lanes instead of on a buffer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from castsim.execution.tree import Block, Lowered, operations
from castsim.isa.codes import Codes
from castsim.isa.formats import FloatFormat, Format, IntFormat
from castsim.isa.modes import Overflow, Saturation
from castsim.machines.strided.operations import Arithmetic, BitwiseAnd, Duplicate, VectorOperation
from castsim.machines.strided.plan import CastPlan, plan_cast, switched_saturation
from castsim.machines.strided.sequences import Call, emit_call
from castsim.machines.strided.values import apply_action
from castsim.machines.target_cast import CastAsked, TargetCast, saturation_in_force
from castsim.machines.tile_modes import tile_mode
from castsim.numerics import code_dtype, value_of
from castsim.targets.strided_repeat import StridedRepeatTarget

Number = Fraction | float

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
    saturation = saturation_in_force(src, dst, overflow_of(plan), switched_saturation(target, plan))
    if plan.sequence is None:
        converted = apply_action(plan.action, [codes], src, dst, codes.shape)
        return _outcome(plan, saturation, converted)
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
    return _outcome(plan, saturation, held[_DESTINATION])


def told_by_scratch(target: StridedRepeatTarget, asked: CastAsked) -> str:
    """Return in words where a cast without a tmp tile gives other results than with one.

    These are NaN, infinities and the first numbers of either sign, of a source of more than 16 bits among powers of
    two.
    """
    codes = _probes(asked.src)
    without, with_tmp = (cast_elements(target, codes, replace(asked, scratch=given)).codes for given in (False, True))
    where = np.flatnonzero(without != with_tmp)
    found = {
        value_of(int(codes[at]), asked.src): [value_of(int(one[at]), asked.dst) for one in (without, with_tmp)]
        for at in where
    }
    words = [f"{_word(value)} gives {_word(one)}, with tmp {_word(other)}" for value, (one, other) in _telling(found)]
    return "; ".join(words) or "the results are the same"


def _probes(src: Format) -> Codes:
    """Return all codes of a source of up to 16 bits; of a wider one those of powers of two, halves more, and the like.

    The largest exponent brings infinities and NaN.
    """
    if src.bits <= 16 or not isinstance(src, FloatFormat):
        return np.arange(1 << min(src.bits, 16), dtype=code_dtype(src))
    exponents = np.arange(1 << src.exponent_bits, dtype=code_dtype(src)) << src.fraction_bits
    halves = exponents | 1 << src.fraction_bits - 1
    positive = np.concatenate([exponents, halves])
    return np.concatenate([positive, positive | 1 << src.bits - 1])


def _telling(found: Mapping[Number, list[Number]]) -> Iterator[tuple[Number, list[Number]]]:
    """Yield one NaN, the infinities, then the number nearest to 0 of either sign."""
    yield from [row for row in found.items() if row[0] != row[0]][:1]
    yield from (row for row in found.items() if row[0] in (np.inf, -np.inf))
    for sign in (1, -1):
        own = [row for row in found.items() if 0 < row[0] * sign < np.inf]
        yield from sorted(own, key=lambda row: row[0] * sign)[:1]


def _word(number: Number) -> str:
    return str(number) if isinstance(number, float) or number.denominator == 1 else str(float(number))


def _outcome(plan: CastPlan, saturation: str, codes: Codes) -> TargetCast:
    return TargetCast(codes, plan.rounding.value, saturation, overflow_of(plan), plan.warnings)


def overflow_of(plan: CastPlan) -> Overflow:
    """Return what a cast makes of numbers out of range."""
    if not isinstance(plan.action, Duplicate | BitwiseAnd | Arithmetic):
        return plan.action.policy.overflow
    off = plan.saturation is Saturation.OFF and isinstance(plan.dst, IntFormat)
    return Overflow.WRAP if off else Overflow.SATURATE
