"""The plan of one tile cast on a strided-repeat chip: instructions, control state and policies, for tiles and single
elements.

All differences between pairs are in the target's cast rules; this module is independent of the chip. Facts:
docs/reference/a2a3.md section 1 (modes and fallbacks), 3.1, 3.2 (instructions that honour the saturation mode) and
3.4 (scratch sequences).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

import numpy as np

from castsim.execution.tree import Lowered, Operation, TileCast, operations
from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import IllegalError, WarningKind, Warnings, WarningText
from castsim.isa.formats import (
    Codes,
    FloatFormat,
    Format,
    Overflow,
    Rounding,
    Saturation,
    TaperedFormat,
    format_named,
)
from castsim.isa.pto.program import RoundMode
from castsim.machines.mechanisms import DEFAULT_MODE, CastAsked, ElementCast, lacks_pair, saturation_in_force, tile_mode
from castsim.machines.strided.kernel_sequence import WORDS, KernelSequence
from castsim.machines.strided.strided_instructions import (
    BitwiseAnd,
    Conversion,
    DuplicateCode,
    Stream,
    StridedInstruction,
    start_ctrl,
    with_bit,
)
from castsim.machines.strided.values import SCALE_FORMAT, apply_action
from castsim.numerics.blocks import code_dtype
from castsim.numerics.cast import Scale, scale_of
from castsim.numerics.codec import value_of
from castsim.numerics.policy import InfinityWrap, NanToFloat, NanToInteger, Policy
from castsim.targets.strided_repeat import RepeatInstruction, ScratchInstructions, StridedCast, StridedRepeatTarget

_CONVERSION = "vconv"
"""The timing row of conversions that have none of their own."""


@dataclass(frozen=True, slots=True)
class CastPlan:
    """The plan of one tile cast.

    `mnemonic` is the single instruction (unused if `sequence` is set), `rounding` the mode after fallbacks,
    `saturation` the one after overrides, `ctrl` the CTRL register during the conversion, `warnings` the requests
    without effect.
    """

    rule: StridedCast
    src: Format
    dst: Format
    mnemonic: str
    rounding: Rounding
    saturation: Saturation
    ctrl: int
    action: Conversion
    sequence: ScratchInstructions | None
    warnings: Warnings = ()

    @classmethod
    def of(
        cls, target: StridedRepeatTarget, rule: StridedCast, mode: tuple[Rounding, str], ctrl: int,
        sequence: ScratchInstructions | None = None, warnings: Warnings = (),
    ) -> CastPlan:  # fmt: skip
        """Return the plan of a rule under CTRL; `mode` is the rounding with its suffix.

        Source of the action: docs/reference/a2a3.md sections 3.1 and 4.3.
        """
        (rounding, suffix), dst = mode, format_named(rule.dst)
        off = ctrl >> target.control.integer_saturation_off & 1
        scale = target.dequantisation_scale.code if rule.action == "scaled" else None
        action = Conversion(_policy(target, dst, rounding, ctrl), rule.action == "integral", scale)
        saturation = Saturation.OFF if off else Saturation.ON
        source, name = format_named(rule.src), rule.stem + suffix
        return cls(rule, source, dst, name, rounding, saturation, ctrl, action, sequence, warnings)


def plan_cast(
    target: StridedRepeatTarget,
    src: Format,
    dst: Format,
    mode: RoundMode | None,
    saturation: Saturation | None,
    *,
    scratch: bool,
) -> CastPlan:
    """Return the mode, saturation and instruction of one cast; `scratch` tells whether there is a tmp tile.

    Raises:
        IllegalError: the chip lacks the type pair (the message names the destinations of this source, and a detour),
            or the pair needs a tmp tile.
    """
    rule = target.cast(src.name, dst.name)
    if rule is None:
        raise lacks_pair(target, [(row.src, row.dst) for row in target.casts], src.name, dst.name)
    rounding, suffix, mode_warnings = _settle_mode(rule, DEFAULT_MODE if mode is None else mode)
    in_force, saturation_warnings = _settle_saturation(rule, saturation, scratch=scratch)
    ctrl = with_bit(start_ctrl(target), target.control.integer_saturation_off, in_force is Saturation.OFF)
    sequence = target.scratch_sequence(rule.src, rule.dst)
    if sequence is not None and sequence.steps == "through_f16":
        if not scratch:
            text = f"{rule.src} -> {rule.dst} on {target.name} always needs a tmp tile"
            raise IllegalError(text, legal=("a tmp tile after the source",))
    elif not scratch or in_force is Saturation.ON:
        sequence = None
    return CastPlan.of(target, rule, (rounding, suffix), ctrl, sequence, mode_warnings + saturation_warnings)


def plan_of(target: StridedRepeatTarget, cast: TileCast) -> CastPlan:
    """Return the plan of a cast of tiles; see `plan_cast`."""
    ends, scratch = (cast.src.format, cast.dst.format), cast.tmp is not None
    return plan_cast(target, *ends, cast.rounding, cast.saturation, scratch=scratch)


def switched_saturation(target: StridedRepeatTarget, plan: CastPlan) -> Saturation | None:
    """Return the saturation mode in force if the other one, with a tmp tile, is another conversion; otherwise None."""
    asked = (Saturation.ON, Saturation.OFF)
    on, off = (plan_cast(target, plan.src, plan.dst, None, either, scratch=True) for either in asked)
    return None if (on.action, on.sequence) == (off.action, off.sequence) else plan.saturation


def timing_of(target: StridedRepeatTarget, plan: CastPlan) -> str:
    """Return the timing row of a single conversion: that of its mode if it has one, otherwise that of its pair."""
    rows = (target.timing_row(name, plan.src.name) for name in (plan.mnemonic, plan.rule.stem, _CONVERSION))
    return next((row for row in rows if row is not None), plan.rule.stem)


def single_cast(target: StridedRepeatTarget, src: str, dst: str, rounding: Rounding | None, ctrl: int) -> CastPlan:
    """Return one native conversion of a longer sequence, with CTRL as set by the sequence.

    With `rounding` None, it is the unsuffixed instruction.
    """
    rule = target.cast(src, dst)
    if rule is None:
        raise IllegalError(f"{target.name}: a scratch sequence needs {src} -> {dst}, which it does not have")
    suffix = "" if rounding is None or not rule.suffixes else rule.suffixes[rounding]
    return CastPlan.of(target, rule, (rounding or rule.fallback or Rounding.RINT, suffix), ctrl)


def _policy(target: StridedRepeatTarget, dst: Format, rounding: Rounding, ctrl: int) -> Policy:
    if isinstance(dst, FloatFormat | TaperedFormat):
        keeps = bool(ctrl >> target.control.float_saturation_off & 1)
        if dst.name not in target.control.float_formats or keeps:
            return Policy(rounding=rounding, overflow=Overflow.SPECIAL)
        return Policy(rounding=rounding, overflow=Overflow.SATURATE, nan_to_float=NanToFloat.ZERO)
    wraps = bool(ctrl >> target.control.integer_saturation_off & 1)
    return Policy(
        rounding=rounding,
        overflow=Overflow.WRAP if wraps else Overflow.SATURATE,
        nan_to_integer=NanToInteger(str(target.option("nan_to_integer"))),
        infinity_wrap=InfinityWrap(str(target.option("native_off_infinity"))),
        wrap_bits=64 if target.option("native_off_intermediate") == "int64" else None,
    )


def _settle_mode(rule: StridedCast, mode: RoundMode) -> tuple[Rounding, str, Warnings]:
    """Return the mode in force, the mnemonic suffix, and a warning where the request has no effect."""
    fallback = rule.fallback or Rounding.RINT
    if not rule.suffixes:
        ignored = rule.fallback is not None and mode not in (RoundMode.NONE, DEFAULT_MODE)
        text = f"rounding {mode.name} is ignored: {rule.src} -> {rule.dst} always rounds {fallback}"
        return fallback, "", (WarningText(WarningKind.ROUNDING, text),) if ignored else ()
    if mode is RoundMode.NONE and rule.plain:
        return fallback, "", ()
    wanted = None if mode is RoundMode.NONE else Rounding(mode.name.lower())
    if wanted in rule.suffixes:
        return wanted, rule.suffixes[wanted], ()
    warnings: Warnings = ()
    if wanted is not None:
        legal = ", ".join(name.upper() for name in rule.suffixes)
        text = f"rounding {mode.name} becomes {fallback.upper()}: {rule.src} -> {rule.dst} has {legal}"
        warnings = (WarningText(WarningKind.ROUNDING, text),)
    return fallback, "" if rule.plain else rule.suffixes[fallback], warnings


def _settle_saturation(rule: StridedCast, asked: Saturation | None, *, scratch: bool) -> tuple[Saturation, Warnings]:
    """Apply the table of docs/reference/a2a3.md section 3.2."""
    if rule.saturation_off_by_default:
        return asked or Saturation.OFF, ()
    if asked is Saturation.OFF and not scratch:
        text = f"saturation OFF is ignored: {rule.src} -> {rule.dst} needs a tmp tile for it"
        return Saturation.ON, (WarningText(WarningKind.SATURATION, text),)
    return asked or Saturation.ON, ()


# How many bytes of scratch a tile cast needs: the published sizing formulas, every term by name.
#
# Source: the `pto.tcvt` instruction page, constraints on the temporary tile. The enumeration of docs/reference/a2a3.md
# section 3.5 found them equal to the blocks really touched for every shape with at least one row.


@dataclass(frozen=True, slots=True)
class ScratchNeed:
    """The scratch bytes of one cast: the maximum of the named `terms` of the formula."""

    total: int
    terms: tuple[tuple[str, int], ...]


NOTHING = ScratchNeed(0, ())


def scratch_need(plan: CastPlan, repeat: RepeatInstruction, rows: int, cols: int, row_stride: int) -> ScratchNeed:
    """Return the bytes that a cast of `rows` x `cols` valid elements needs; `row_stride` of the source in elements.

    Nothing is issued, and nothing needed, if either extent is 0 or the plan uses no scratch.
    """
    return scratch_formula(plan, repeat, rows, cols, row_stride) if rows else NOTHING


def packed_need(
    target: StridedRepeatTarget,
    pair: tuple[Format, Format],
    modes: tuple[RoundMode | None, Saturation | None],
    rows: int,
    cols: int,
) -> ScratchNeed:
    """Return the scratch need of a cast whose source rows are contiguous."""
    return scratch_need(plan_cast(target, *pair, *modes, scratch=True), target.repeat, rows, cols, cols)


def scratch_formula(plan: CastPlan, repeat: RepeatInstruction, rows: int, cols: int, row_stride: int) -> ScratchNeed:
    """Return the size by the published formulas, which cover zero columns but not zero rows."""
    if plan.sequence is None or not cols:
        return NOTHING
    block = repeat.block_bytes
    if plan.sequence.steps == "via_i32":
        return _via_i32(repeat, rows, cols, row_stride)
    lanes = min(cols, plan.sequence.chunk_lanes or cols)
    wide = ("int32 chunk", block * _blocks(4 * lanes, block))
    narrow = block * _blocks(2 * lanes, block)
    if plan.sequence.steps == "through_f16" and plan.saturation is Saturation.ON:
        return ScratchNeed(narrow, (("f16 chunk", narrow),))
    if plan.sequence.steps == "chunked":
        return ScratchNeed(wide[1], (wide,))
    half = 2 * (plan.sequence.chunk_lanes or 0)
    masked = ("int16 chunk after the first half", half + narrow)
    return (
        ScratchNeed(max(wide[1], masked[1]), (wide, masked))
        if plan.sequence.steps == "chunked_masked"
        else (ScratchNeed(masked[1], (masked,)))
    )


def _via_i32(repeat: RepeatInstruction, rows: int, cols: int, row_stride: int) -> ScratchNeed:
    block = repeat.block_bytes
    lanes = repeat.repeat_bytes // 4
    head = repeat.repeat_bytes * min(cols // lanes, repeat.max_repeats)
    tail = 0
    if cols % lanes:
        row_blocks = row_stride * 4 // block
        tail = block * ((min(rows, repeat.max_repeats) - 1) * row_blocks + _blocks(4 * (cols % lanes), block))
    return ScratchNeed(
        max(head, tail), (("head: whole repeats of one row", head), ("tail: rows at the source pitch", tail))
    )


def _blocks(size: int, block: int) -> int:
    return -(-size // block)


# Conversions that run through a scratch tile: three when saturation is off (docs/reference/a2a3.md section 3.4).
#
# They convert to a wider integer with clamping and take its low bits afterwards, so that overflow keeps the low bits of
# a large integer and infinities become -1 and 0. CTRL changes between the steps; each instruction captures it at issue.
# Integers that no instruction converts pass through f16 instead: either they or their low bytes are exact in it.

LOW_BYTE = 255
"""Mask that preserves the low eight bits of an int16 on its way to int8."""


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
"""Sequences A, B and C of docs/reference/a2a3.md section 3.4 and those of other pairs, one instruction per line.

`mask` enables the lanes of the chunk, `clamping` and `wrapping` switch the saturation of integers. `low` and `high` are
in the scratch tile, the latter after the int16 of a chunk. A conversion names its formats and its mode: the cast's own
(`mode`), another, or none for the unsuffixed instruction; instructions without formats work on 16-bit lanes.
"""


def append_call(
    sequence: KernelSequence, plan: CastPlan, extent: tuple[int, int], dst: Stream, src: Stream, scratch: int
) -> None:
    """Append the instructions of one call through the scratch tile at byte `scratch`; `extent` is (repeats, mask).

    Sequence A converts the whole call at the source's repeat stride; B and C process every repeat in lane chunks that
    reuse the same scratch bytes.
    """
    steps, (repeats, mask) = plan.sequence, extent
    assert steps is not None
    text = _STEPS[steps.steps] if plan.saturation is Saturation.OFF else _CLAMPED_THROUGH_F16
    if steps.steps == "via_i32":
        _append_steps(sequence, plan, text, extent, {"src": src, "dst": dst, "low": replace(src, address=scratch)})
        return
    chunk = steps.chunk_lanes or 0
    whole, last = divmod(min(mask.bit_length(), plan.rule.lanes) - 1, chunk)

    def row(inner: KernelSequence, repeat: int) -> None:
        def piece(within: KernelSequence, index: int, active: int = chunk) -> None:
            places = {"src": (src, repeat * src.step), "dst": (dst, repeat * dst.step)}
            streams = {
                name: Stream(
                    stream.address + start + index * chunk * stream.format.storage_bits // 8,
                    stream.format, 1, sequence.repeat_blocks,
                )
                for name, (stream, start) in places.items()
            }  # fmt: skip
            streams["low"] = replace(streams["src"], address=scratch)
            streams["high"] = replace(streams["src"], address=scratch + 2 * chunk)
            _append_steps(within, plan, text, (1, (1 << active) - 1), streams)

        inner.each(whole, piece)
        piece(inner, whole, last + 1)

    sequence.each(repeats, row)
    sequence.add((sequence.control("mask", sequence.full),))


def _append_steps(
    sequence: KernelSequence, plan: CastPlan, text: str, extent: tuple[int, int], streams: Mapping[str, Stream]
) -> None:
    """Append the operations of a text; `extent` is (repeats, mask)."""
    target, ctrl, (repeats, mask) = sequence.target, plan.ctrl, extent
    formats, modes = {"src": plan.src.name, "dst": plan.dst.name}, {"mode": plan.rounding}
    for line in text.strip().splitlines():
        match line.split():
            case ["mask"]:
                sequence.add((sequence.control("mask", mask),))
            case ["barrier"]:
                sequence.barrier()
            case [switch]:
                ctrl = with_bit(plan.ctrl, target.control.integer_saturation_off, switch == "wrapping")
                sequence.add((sequence.control("ctrl", ctrl),))
            case [to, "=", source, ":", before, "to", after, *mode]:
                rounding = modes.get(mode[1]) or Rounding(mode[1]) if mode else None
                step = single_cast(target, formats.get(before, before), formats.get(after, after), rounding, ctrl)
                sequence.add((conversion(sequence, step, extent, streams[to], streams[source]),))
            case [to, "=", mnemonic, *operands]:
                action = DuplicateCode(int(operands[0])) if mnemonic == "vector_dup" else BitwiseAnd()
                dst, *sources = (replace(streams[name], format=WORDS) for name in (to, *operands) if name in streams)
                lanes = sequence.lanes(WORDS)
                sequence.add((sequence.vector(mnemonic, repeats, dst, sources, mask=mask, lanes=lanes, action=action),))


def conversion(
    sequence: KernelSequence, plan: CastPlan, extent: tuple[int, int], dst: Stream, src: Stream
) -> StridedInstruction:
    """Return the instruction of a plan between two streams, in its formats; `extent` is (repeats, mask)."""
    repeats, mask = extent
    return sequence.vector(
        plan.mnemonic, repeats, replace(dst, format=plan.dst), (replace(src, format=plan.src),), mask=mask,
        lanes=plan.rule.lanes, row=timing_of(sequence.target, plan), action=plan.action,
    )  # fmt: skip


def element_steps(target: StridedRepeatTarget, plan: CastPlan) -> Iterator[Operation]:
    """Yield the operations of a sequence on one element, from `SOURCE` to `DESTINATION`."""
    sequence = KernelSequence(target)
    ends = (Stream(DESTINATION, plan.dst, 1, 0), Stream(SOURCE, plan.src, 1, 0))
    append_call(sequence, plan, (1, 1), *ends, _SCRATCH)
    return operations(Lowered(0, sequence.close()), None)


# A chip's cast of loose elements: the instructions that a tile cast would issue, applied to whole arrays.
#
# There is no second description of what a cast does: the operations come from the same lowering, run on arrays that
# stand for the lanes instead of on a buffer.

Number = Fraction | float

SOURCE, _SCRATCH, DESTINATION = 0, 1 << 20, 1 << 21
"""Addresses that separate the three operands of a sequence."""


def element_cast(target: StridedRepeatTarget, asked: CastAsked) -> ElementCast:
    """Return the conversion of elements by the chip's tile cast.

    Raises:
        ReadError, IllegalError: see `castsim.machines.mechanisms.tile_mode`.
        IllegalError: the type pair does not exist.
    """
    src, dst, mode = asked.src, asked.dst, tile_mode(asked.rounding, target.name)
    plan = plan_cast(target, src, dst, mode, asked.saturation, scratch=asked.scratch)
    saturation = saturation_in_force(src, dst, overflow_of(plan), switched_saturation(target, plan))
    modes = plan.rounding.value, saturation, overflow_of(plan), plan.warnings
    if plan.sequence is None:

        def at_once(codes: Codes) -> Codes:
            return apply_action(plan.action, [codes], src, dst)

        policy, scale = plan.action.policy, plan.action.scale
        if plan.action.integral:
            return ElementCast(at_once, *modes, integral=policy)
        plain = scale is None or scale_of(scale, SCALE_FORMAT) == Scale(1)
        return ElementCast(at_once, *modes, policy=policy if plain else None)
    issued = [step for step in element_steps(target, plan) if isinstance(step, StridedInstruction)]

    def by_steps(codes: Codes) -> Codes:
        held = {SOURCE: codes}
        for operation in issued:
            sources = [held[source.address] for source in operation.sources]
            from_format = operation.sources[0].format if operation.sources else None
            to_format = operation.destination.format
            result = apply_action(operation.action, sources, from_format, to_format)
            held[operation.destination.address] = result
        return held[DESTINATION].reshape(codes.shape)

    return ElementCast(by_steps, *modes)


def told_by_scratch(target: StridedRepeatTarget, asked: CastAsked) -> str:
    """Return in words where a cast without a tmp tile gives other results than with one.

    These are NaN, infinities and the first numbers of either sign; for a source of more than 16 bits, among powers of
    two.
    """
    codes = _probes(asked.src)
    without, with_tmp = (element_cast(target, replace(asked, scratch=given)).run(codes) for given in (False, True))
    where = np.flatnonzero(without != with_tmp)
    found = {
        value_of(int(codes[at]), asked.src): [value_of(int(one[at]), asked.dst) for one in (without, with_tmp)]
        for at in where
    }
    words = [f"{_word(value)} gives {_word(one)}, with tmp {_word(other)}" for value, (one, other) in _telling(found)]
    return "; ".join(words) or "the results are the same"


def _probes(src: Format) -> Codes:
    """Return all codes of a source of up to 16 bits; for a wider one those of powers of two, of halves above them, and
    similar ones.

    The largest exponent includes infinities and NaN.
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


def overflow_of(plan: CastPlan) -> Overflow:
    """Return the treatment of out-of-range numbers by a cast."""
    return plan.action.policy.overflow
