"""Conversions that run through a scratch tile: three when saturation is off (docs/reference/a2a3.md section 3.4).

They convert to a wider integer with clamping and take its low bits afterwards, so that overflow keeps the low bits of
a large integer and infinities become -1 and 0. CTRL changes between the steps; each instruction captures it at issue.
Integers that no instruction converts pass through f16 instead: either they or their low bytes are exact in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from castsim.execution.tree import Block, Lowered, Node, loop_of, operations
from castsim.isa.codes import Codes
from castsim.isa.formats import FloatFormat, Format, IntFormat, format_named
from castsim.isa.modes import Overflow, Rounding, Saturation
from castsim.machines.mechanisms import CastAsked, TargetCast, saturation_in_force, tile_mode
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
from castsim.numerics import code_dtype, value_of
from castsim.targets.strided_repeat import StridedRepeatTarget

LOW_BYTE = 255
"""Mask that keeps the low eight bits of an int16 on its way to int8."""


Place = tuple[int, int]
"""Byte address and repeat stride of a stream."""


@dataclass(frozen=True, slots=True)
class ConversionCall:
    """One call of the conversion: byte addresses, repeat strides in blocks, the lane mask of every repeat."""

    repeats: int
    dst: int
    src: int
    dst_stride: int
    src_stride: int
    mask: int


_VIA_I32 = """
clamping
low = src : src to i32 in mode
barrier
wrapping
dst = low : i32 to dst
"""
_CHUNKED = """
mask
clamping
low = src : src to i32 in mode
barrier
wrapping
dst = low : i32 to dst
barrier
"""
_CHUNKED_MASKED = f"""
mask
clamping
low = src : src to i32 in mode
barrier
wrapping
low = low : i32 to i16
barrier
high = vector_dup {LOW_BYTE}
barrier
low = vand low high
barrier
high = low : i16 to f16
barrier
dst = high : f16 to i8 in trunc
barrier
"""
_THROUGH_F16 = """
low = src : i16 to f16
barrier
dst = low : f16 to dst in trunc
barrier
"""
_CLAMPED_THROUGH_F16 = f"mask{_THROUGH_F16}"
_MASKED_THROUGH_F16 = f"""
mask
high = vector_dup {LOW_BYTE}
barrier
low = vand src high
barrier{_THROUGH_F16.replace("src", "low")}"""
_STEPS: Mapping[str, str] = {
    "via_i32": _VIA_I32, "chunked": _CHUNKED, "chunked_masked": _CHUNKED_MASKED, "through_f16": _MASKED_THROUGH_F16
}  # fmt: skip
"""Sequences A, B and C of docs/reference/a2a3.md section 3.4 and the one of other pairs, an instruction a line.

`mask` enables the lanes of the chunk, `clamping` and `wrapping` switch the saturation of integers. `low` and `high` lie
in the scratch tile, the latter behind the int16 of a chunk. A conversion names its formats and its mode: the cast's own
(`mode`), another, or none for the unsuffixed instruction; instructions without formats work on 16-bit lanes.
"""


def emit_call(target: StridedRepeatTarget, plan: CastPlan, call: ConversionCall, scratch: int) -> Iterator[Node]:
    """Yield the instructions of one call through the scratch tile at byte `scratch`.

    Sequence A converts the whole call at the source's repeat stride; B and C every repeat in chunks of lanes that reuse
    the same scratch bytes.
    """
    sequence = plan.sequence
    assert sequence is not None
    text = _STEPS[sequence.steps] if plan.saturation is Saturation.OFF else _CLAMPED_THROUGH_F16
    if sequence.steps == "via_i32":
        places = {
            "src": (call.src, call.src_stride),
            "dst": (call.dst, call.dst_stride),
            "low": (scratch, call.src_stride),
        }
        yield from _steps(target, plan, text, (call.repeats, call.mask), places)
        return
    chunk, full = sequence.chunk_lanes or 0, target.repeat.repeat_bytes // target.repeat.block_bytes
    lanes = min(call.mask.bit_length(), plan.rule.lanes)
    whole, last = (lanes - 1) // chunk, (lanes - 1) % chunk + 1

    def row(repeat: int) -> Block:
        src = call.src + repeat * call.src_stride * BLOCK
        dst = call.dst + repeat * call.dst_stride * BLOCK

        def piece(index: int, active: int) -> Block:
            places = {
                "src": (src + index * chunk * plan.src.storage_bits // 8, full),
                "dst": (dst + index * chunk * plan.dst.storage_bits // 8, full),
                "low": (scratch, full),
                "high": (scratch + 2 * chunk, full),
            }
            return Block(tuple(_steps(target, plan, text, (1, (1 << active) - 1), places)))

        return Block((*loop_of(whole, lambda index: piece(index, chunk)), *piece(whole, last).items))

    yield from loop_of(call.repeats, row)
    yield ControlWrite("mask", (1 << target.repeat.mask_lanes) - 1, pipe=target.pipes.vector)


def _steps(
    target: StridedRepeatTarget, plan: CastPlan, text: str, extent: tuple[int, int], places: Mapping[str, Place]
) -> Iterator[StridedOperation]:
    """Yield the operations of a text; `extent` is (repeats, mask)."""
    bit, pipes, ctrl = target.control.integer_saturation_off, target.pipes, plan.ctrl
    formats, modes = {"src": plan.src.name, "dst": plan.dst.name}, {"mode": plan.rounding}
    for line in text.strip().splitlines():
        match line.split():
            case ["mask"]:
                yield ControlWrite("mask", extent[1], pipe=pipes.vector)
            case ["barrier"]:
                yield PipeBarrier(pipes.vector)
            case [switch]:
                ctrl = with_bit(plan.ctrl, bit, switch == "wrapping")
                yield ControlWrite("ctrl", ctrl, pipe=pipes.scalar)
            case [to, "=", source, ":", before, "to", after, *mode]:
                rounding = modes.get(mode[1]) or Rounding(mode[1]) if mode else None
                step = single_cast(target, formats.get(before, before), formats.get(after, after), rounding, ctrl)
                yield _instruction(
                    target, step.mnemonic, timing_of(target, step), step.rule.lanes, step.action, extent,
                    ((places[to], step.dst), (places[source], step.src)),
                )  # fmt: skip
            case [to, "=", mnemonic, *operands]:
                fmt, row = format_named("i16"), target.timing_row(mnemonic, "i16") or mnemonic
                action = DuplicateCode(int(operands[0])) if mnemonic == "vector_dup" else BitwiseAnd()
                streams = [(places[name], fmt) for name in (to, *operands) if name in places]
                lanes = target.repeat.repeat_bytes * 8 // fmt.storage_bits
                yield _instruction(target, mnemonic, row, lanes, action, extent, streams)


def _instruction(
    target: StridedRepeatTarget, mnemonic: str, timing: str, lanes: int, action: Action, extent: tuple[int, int],
    operands: Iterable[tuple[Place, Format]],
) -> StridedInstruction:  # fmt: skip
    destination, *sources = (Stream(address, fmt, 1, stride) for (address, stride), fmt in operands)
    return StridedInstruction(
        mnemonic, timing, extent[0], lanes, extent[1], destination, tuple(sources), action, target.pipes.vector
    )


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
        ReadError, IllegalError: see `castsim.machines.mechanisms.tile_mode`.
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
