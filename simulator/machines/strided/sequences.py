"""The three conversions that run through a scratch tile when saturation is off (docs/reference/a2a3.md section 3.4).

They convert to a wider integer with clamping and take its low bits afterwards, so that overflow keeps the low bits of
a large integer and infinities become -1 and 0. CTRL changes between the steps; each instruction captures it at issue.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from castsim.execution.tree import Block, Lowered, Node, loop_of, operations
from castsim.isa.codes import Codes
from castsim.isa.formats import FloatFormat, Format, IntFormat, format_named
from castsim.isa.modes import Overflow, Rounding, Saturation
from castsim.machines.strided.operations import (
    BLOCK,
    Action,
    BitwiseAnd,
    ControlWrite,
    DuplicateCode,
    PipeBarrier,
    Stream,
    StridedInstruction,
    StridedOperation,
    TimedArithmetic,
)
from castsim.machines.strided.plan import CastPlan, plan_cast, single_cast, switched_saturation, timing_of, with_bit
from castsim.machines.strided.values import apply_action
from castsim.machines.target_cast import CastAsked, TargetCast, saturation_in_force, tile_mode
from castsim.numerics import code_dtype, value_of
from castsim.targets.strided_repeat import StridedRepeatTarget

LOW_BYTE = 255
"""Mask that keeps the low eight bits of an int16 on its way to int8."""


@dataclass(frozen=True, slots=True)
class ConversionCall:
    """One call of the conversion: byte addresses, repeat strides in blocks, the lane mask of every repeat."""

    repeats: int
    dst: int
    src: int
    dst_stride: int
    src_stride: int
    mask: int


def emit_call(target: StridedRepeatTarget, plan: CastPlan, call: ConversionCall, scratch: int) -> Iterator[Node]:
    """Yield the instructions of one call through the scratch tile at byte `scratch`."""
    sequence = _Sequence(target, plan, call, scratch)
    assert plan.sequence is not None
    if plan.sequence.steps == "via_i32":
        yield from sequence.via_int32()
    else:
        yield from sequence.chunked(plan.sequence.chunk_lanes or 0, masked=plan.sequence.steps == "chunked_masked")


class _Sequence:
    def __init__(self, target: StridedRepeatTarget, plan: CastPlan, call: ConversionCall, scratch: int) -> None:
        self.target = target
        self.plan = plan
        self.call = call
        self.scratch = scratch
        self.full_stride = target.repeat.repeat_bytes // target.repeat.block_bytes
        bit = target.control.integer_saturation_off
        self.clamping = with_bit(plan.ctrl, bit, False)
        self.wrapping = with_bit(plan.ctrl, bit, True)

    def via_int32(self) -> Iterator[StridedOperation]:
        """Sequence A: the whole call to int32 at the source's repeat stride, then narrowed."""
        call = self.call
        yield self._ctrl(self.clamping)
        yield self._convert(
            (self.plan.src.name, "i32", self.plan.rounding),
            self.clamping,
            (call.repeats, call.mask),
            (self.scratch, call.src_stride),
            (call.src, call.src_stride),
        )
        yield self._barrier()
        yield self._ctrl(self.wrapping)
        yield self._convert(
            ("i32", self.plan.dst.name, None),
            self.wrapping,
            (call.repeats, call.mask),
            (call.dst, call.dst_stride),
            (self.scratch, call.src_stride),
        )

    def chunked(self, chunk: int, *, masked: bool) -> Iterator[Node]:
        """Sequences B and C: every repeat in sub-chunks of `chunk` lanes that reuse the same scratch bytes."""
        call = self.call
        lanes = call.mask.bit_length() if call.mask.bit_length() < self.plan.rule.lanes else self.plan.rule.lanes
        whole, last = (lanes - 1) // chunk, (lanes - 1) % chunk + 1
        steps = self._chunk_masked if masked else self._chunk_plain

        def row(repeat: int) -> Block:
            src = call.src + repeat * call.src_stride * BLOCK
            dst = call.dst + repeat * call.dst_stride * BLOCK

            def piece(index: int, active: int) -> Block:
                src_at = src + index * chunk * self.plan.src.storage_bits // 8
                dst_at = dst + index * chunk * self.plan.dst.storage_bits // 8
                return Block(tuple(steps(src_at, dst_at, active, chunk)))

            return Block((*loop_of(whole, lambda index: piece(index, chunk)), *piece(whole, last).items))

        yield from loop_of(call.repeats, row)
        yield self._mask((1 << self.target.repeat.mask_lanes) - 1)

    def _chunk_plain(self, src: int, dst: int, active: int, _chunk: int) -> Iterator[StridedOperation]:
        """Sequence B, one sub-chunk: to int32, then narrowed."""
        once = (1, (1 << active) - 1)
        yield self._mask(once[1])
        yield self._ctrl(self.clamping)
        wide = (self.scratch, self.full_stride)
        yield self._convert(
            (self.plan.src.name, "i32", self.plan.rounding), self.clamping, once, wide, (src, self.full_stride)
        )
        yield self._barrier()
        yield self._ctrl(self.wrapping)
        yield self._convert(("i32", self.plan.dst.name, None), self.wrapping, once, (dst, self.full_stride), wide)
        yield self._barrier()

    def _chunk_masked(self, src: int, dst: int, active: int, chunk: int) -> Iterator[StridedOperation]:
        """Sequence C, one sub-chunk: int32, int16 in place, the low byte kept, then through f16 to int8."""
        once = (1, (1 << active) - 1)
        low, high = (self.scratch, self.full_stride), (self.scratch + 2 * chunk, self.full_stride)
        yield self._mask(once[1])
        yield self._ctrl(self.clamping)
        yield self._convert(
            (self.plan.src.name, "i32", self.plan.rounding), self.clamping, once, low, (src, self.full_stride)
        )
        yield self._barrier()
        yield self._ctrl(self.wrapping)
        yield self._convert(("i32", "i16", None), self.wrapping, once, low, low)
        yield self._barrier()
        yield self._int16("vector_dup", DuplicateCode(LOW_BYTE), once, high, ())
        yield self._barrier()
        yield self._int16("vand", BitwiseAnd(), once, low, (low, high))
        yield self._barrier()
        yield self._convert(("i16", "f16", None), self.wrapping, once, high, low)
        yield self._barrier()
        yield self._convert(("f16", "i8", Rounding.TRUNC), self.wrapping, once, (dst, self.full_stride), high)
        yield self._barrier()

    def _convert(
        self,
        pair: tuple[str, str, Rounding | None],
        ctrl: int,
        extent: tuple[int, int],
        destination: tuple[int, int],
        source: tuple[int, int],
    ) -> StridedInstruction:
        """One native conversion; `extent` is (repeats, mask), the streams are (byte address, repeat stride)."""
        plan = single_cast(self.target, pair[0], pair[1], pair[2], ctrl)
        return StridedInstruction(
            mnemonic=plan.mnemonic,
            timing=timing_of(self.target, plan),
            repeats=extent[0],
            lanes=plan.rule.lanes,
            mask=extent[1],
            destination=_stream(destination, plan.dst),
            sources=(_stream(source, plan.src),),
            action=plan.action,
            pipe=self.target.pipes.vector,
        )

    def _int16(
        self,
        mnemonic: str,
        action: Action,
        extent: tuple[int, int],
        destination: tuple[int, int],
        sources: tuple[tuple[int, int], ...],
    ) -> StridedInstruction:
        """One instruction on 16-bit lanes."""
        int16 = format_named("i16")
        return StridedInstruction(
            mnemonic=mnemonic,
            timing=self.target.timing_row(mnemonic, "i16") or mnemonic,
            repeats=extent[0],
            lanes=self.target.repeat.repeat_bytes * 8 // int16.storage_bits,
            mask=extent[1],
            destination=_stream(destination, int16),
            sources=tuple(_stream(source, int16) for source in sources),
            action=action,
            pipe=self.target.pipes.vector,
        )

    def _ctrl(self, value: int) -> ControlWrite:
        return ControlWrite("ctrl", value, pipe=self.target.pipes.scalar)

    def _mask(self, value: int) -> ControlWrite:
        return ControlWrite("mask", value, pipe=self.target.pipes.vector)

    def _barrier(self) -> PipeBarrier:
        return PipeBarrier(self.target.pipes.vector)


def _stream(place: tuple[int, int], fmt: Format) -> Stream:
    return Stream(place[0], fmt, 1, place[1])


# A chip's cast of loose elements: the instructions that a tile cast would issue, applied to whole arrays.
#
# There is no second description of what a cast does: the operations come from the same lowering, run on arrays that
# stand for the lanes instead of on a buffer.

Number = Fraction | float

_SOURCE, _SCRATCH, _DESTINATION = 0, 1 << 20, 1 << 21
"""Addresses that keep the three operands of a sequence apart."""


def cast_elements(target: StridedRepeatTarget, codes: Codes, asked: CastAsked) -> TargetCast:
    """Convert codes of any shape as the chip's tile cast does.

    Raises:
        ReadError, IllegalError: see `castsim.machines.target_cast.tile_mode`.
        IllegalError: no such type pair.
    """
    src, dst, mode = asked.src, asked.dst, tile_mode(asked.rounding, target.name)
    plan = plan_cast(target, src, dst, mode, asked.saturation, scratch=asked.scratch)
    saturation = saturation_in_force(src, dst, overflow_of(plan), switched_saturation(target, plan))
    if plan.sequence is None:
        converted = apply_action(plan.action, [codes], src, dst, codes.shape)
        return _outcome(plan, saturation, converted)
    call = ConversionCall(1, _DESTINATION, _SOURCE, 0, 0, 1)
    sequence = Lowered(0, Block(tuple(emit_call(target, plan, call, _SCRATCH))))
    held = {_SOURCE: codes}
    for operation in operations(sequence, None):
        if isinstance(operation, StridedInstruction):
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
    if not isinstance(plan.action, DuplicateCode | BitwiseAnd | TimedArithmetic):
        return plan.action.policy.overflow
    off = plan.saturation is Saturation.OFF and isinstance(plan.dst, IntFormat)
    return Overflow.WRAP if off else Overflow.SATURATE
