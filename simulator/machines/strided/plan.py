"""What one tile cast means on a strided-repeat chip: which instructions, in which control state, under which policy.

Everything that differs from pair to pair is read from the target's cast rules; nothing here knows a chip. Facts:
docs/reference/a2a3.md section 1 (modes and fallbacks), 3.1, 3.2 (who honours the saturation mode) and 3.4 (scratch
sequences).
"""

from __future__ import annotations

from dataclasses import dataclass

from castsim.isa.errors import IllegalError, WarningKind, Warnings, WarningText
from castsim.isa.formats import FloatFormat, Format, TaperedFormat, format_named
from castsim.isa.modes import Overflow, Rounding, Saturation
from castsim.isa.pto.program import RoundMode
from castsim.machines.mechanisms import DEFAULT_MODE, lacks_pair
from castsim.machines.strided.operations import Action, ElementwiseCast, RoundToIntegral, ScaledConvert
from castsim.numerics import InfinityWrap, NanToFloat, NanToInteger, Policy
from castsim.targets.strided_repeat import RepeatInstruction, ScratchInstructions, StridedCast, StridedRepeatTarget

_CONVERSION = "vconv"
"""The timing row of conversions that have none of their own."""


@dataclass(frozen=True, slots=True)
class CastPlan:
    """How a tile cast runs.

    `mnemonic` is the single instruction (unused where `sequence` is set), `rounding` the mode in force after
    fallbacks, `saturation` the one in force after overrides, `ctrl` the CTRL register during the conversion,
    `warnings` what the program asked for in vain.
    """

    rule: StridedCast
    src: Format
    dst: Format
    mnemonic: str
    rounding: Rounding
    saturation: Saturation
    ctrl: int
    action: Action
    sequence: ScratchInstructions | None
    warnings: Warnings = ()


def plan_cast(
    target: StridedRepeatTarget,
    src: Format,
    dst: Format,
    mode: RoundMode | None,
    saturation: Saturation | None,
    *,
    scratch: bool,
) -> CastPlan:
    """Settle mode, saturation and instruction of one cast; `scratch` says whether a tmp tile is given.

    Raises:
        IllegalError: the chip has no such type pair; names the destinations it has for this source, and a detour. Or
            it needs a tmp tile.
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
            text = f"{rule.src} -> {rule.dst} on {target.name} runs through a tmp tile at any saturation; it has none"
            raise IllegalError(text, legal=("a tmp tile behind the source",))
    elif not scratch or in_force is Saturation.ON:
        sequence = None
    return CastPlan(
        rule=rule,
        src=src,
        dst=dst,
        mnemonic=rule.stem + suffix,
        rounding=rounding,
        saturation=in_force,
        ctrl=ctrl,
        action=action_of(target, rule, dst, rounding, ctrl),
        sequence=sequence,
        warnings=mode_warnings + saturation_warnings,
    )


def switched_saturation(target: StridedRepeatTarget, plan: CastPlan) -> Saturation | None:
    """Return the saturation mode in force where the other one, with a tmp tile, is another conversion; else None."""
    asked = (Saturation.ON, Saturation.OFF)
    on, off = (plan_cast(target, plan.src, plan.dst, None, either, scratch=True) for either in asked)
    return None if (on.action, on.sequence) == (off.action, off.sequence) else plan.saturation


def timing_of(target: StridedRepeatTarget, plan: CastPlan) -> str:
    """Return the timing row of a single conversion: that of its mode if it has one, else that of its pair."""
    rows = (target.timing_row(name, plan.src.name) for name in (plan.mnemonic, plan.rule.stem, _CONVERSION))
    return next((row for row in rows if row is not None), plan.rule.stem)


def start_ctrl(target: StridedRepeatTarget) -> int:
    """Return CTRL as a kernel finds it, from the target's options."""
    ctrl = with_bit(0, target.control.float_saturation_off, bool(target.option("float_saturation_off_at_start")))
    return with_bit(ctrl, target.control.integer_saturation_off, bool(target.option("integer_saturation_off_at_start")))


def with_bit(value: int, bit: int, on: bool) -> int:
    """Return `value` with one bit set or cleared."""
    return value | 1 << bit if on else value & ~(1 << bit)


def single_cast(target: StridedRepeatTarget, src: str, dst: str, rounding: Rounding | None, ctrl: int) -> CastPlan:
    """Return one native conversion of a longer sequence, with CTRL as the sequence has set it.

    `rounding` None takes the unsuffixed instruction.
    """
    rule = target.cast(src, dst)
    if rule is None:
        raise IllegalError(f"{target.name}: a scratch sequence needs {src} -> {dst}, which it does not have")
    suffix = "" if rounding is None or not rule.suffixes else rule.suffixes[rounding]
    mode = rounding or rule.fallback or Rounding.RINT
    destination = format_named(dst)
    off = bool(ctrl >> target.control.integer_saturation_off & 1)
    return CastPlan(
        rule=rule,
        src=format_named(src),
        dst=destination,
        mnemonic=rule.stem + suffix,
        rounding=mode,
        saturation=Saturation.OFF if off else Saturation.ON,
        ctrl=ctrl,
        action=action_of(target, rule, destination, mode, ctrl),
        sequence=None,
    )


def action_of(target: StridedRepeatTarget, rule: StridedCast, dst: Format, rounding: Rounding, ctrl: int) -> Action:
    """Return what the instruction does to an element, given CTRL at its issue.

    Source: docs/reference/a2a3.md sections 3.1 and 4.3.
    """
    policy = _policy(target, dst, rounding, ctrl)
    if rule.action == "integral":
        return RoundToIntegral(policy)
    if rule.action == "scaled":
        return ScaledConvert(target.dequantisation_scale.code, policy)
    return ElementwiseCast(policy)


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
        text = f"rounding {mode.name} silently becomes {fallback.upper()}: {rule.src} -> {rule.dst} has {legal}"
        warnings = (WarningText(WarningKind.ROUNDING, text),)
    return fallback, "" if rule.plain else rule.suffixes[fallback], warnings


def _settle_saturation(rule: StridedCast, asked: Saturation | None, *, scratch: bool) -> tuple[Saturation, Warnings]:
    """Apply the table of docs/reference/a2a3.md section 3.2."""
    if rule.saturation_off_by_default:
        return asked or Saturation.OFF, ()
    if asked is Saturation.OFF and not scratch:
        text = f"saturation OFF is ignored: {rule.src} -> {rule.dst} honours it only with a tmp tile"
        return Saturation.ON, (WarningText(WarningKind.SATURATION, text),)
    return asked or Saturation.ON, ()


# How many bytes of scratch a tile cast needs: the published sizing formulas, every term by name.
#
# Source: the `pto.tcvt` instruction page, constraints on the temporary tile. The enumeration of docs/reference/a2a3.md
# section 3.5 found them equal to the blocks really touched for every shape with at least one row.


@dataclass(frozen=True, slots=True)
class ScratchNeed:
    """Scratch bytes of one cast; `terms` are the named parts of the formula whose largest decides."""

    total: int
    terms: tuple[tuple[str, int], ...]


NOTHING = ScratchNeed(0, ())


def scratch_need(plan: CastPlan, repeat: RepeatInstruction, rows: int, cols: int, row_stride: int) -> ScratchNeed:
    """Return the bytes that a cast of `rows` x `cols` valid elements needs; `row_stride` of the source in elements.

    Nothing is issued, and nothing needed, when either extent is 0 or the plan uses no scratch.
    """
    return scratch_formula(plan, repeat, rows, cols, row_stride) if rows else NOTHING


def packed_need(
    target: StridedRepeatTarget,
    pair: tuple[Format, Format],
    modes: tuple[RoundMode | None, Saturation | None],
    rows: int,
    cols: int,
) -> ScratchNeed:
    """Return what a cast with a tmp tile needs for source rows without gaps."""
    return scratch_need(plan_cast(target, *pair, *modes, scratch=True), target.repeat, rows, cols, cols)


def scratch_formula(plan: CastPlan, repeat: RepeatInstruction, rows: int, cols: int, row_stride: int) -> ScratchNeed:
    """Return what the published formulas say to the letter; they know the case of no columns, not that of no rows."""
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
