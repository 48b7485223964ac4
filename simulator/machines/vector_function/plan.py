"""The plan of one tile cast on a vector-function chip: modes, CTRL, and the policies of its conversions.

All differences between pairs are in the target's description; this module is independent of the chip. Facts:
docs/reference/a5.md section 4 (rounding, saturation, CTRL) and section 5 (values).
"""

from __future__ import annotations

from collections.abc import Iterable

from castsim.execution.input_data import BACKEND, MICRO
from castsim.execution.pipe_operations import ControlWrite
from castsim.execution.tree import Block, Node
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import WarningKind, Warnings, WarningText
from castsim.isa.formats import Format, IntFormat, Overflow, Rounding, Saturation, format_named
from castsim.isa.pto.program import RoundMode
from castsim.machines.mechanisms import DEFAULT_MODE, lacks_pair
from castsim.numerics.policy import InfinityWrap, NanToFloat, NanToInteger, Policy
from castsim.targets.dataflow import Level
from castsim.targets.vector_function import KernelText, VectorCast, VectorFunctionTarget, VectorVariant

# The two back ends of the assembler: calls of the C++ library, or instructions that say whether they saturate.
#
# Facts: docs/reference/a5.md section 4.2.


def is_micro(target: VectorFunctionTarget) -> bool:
    """Return whether casts are instructions of the micro back end."""
    return BACKEND in target.options and target.option(BACKEND) == MICRO


def micro_rule(target: VectorFunctionTarget, rule: VectorCast) -> VectorCast | None:
    """Return the rule of a cast whose instruction saturates by itself; None if the library's rule applies."""
    facts = target.instruction_saturation
    if facts is None or not _is_listed(target, rule.src, rule.dst) or not is_micro(target):
        return None
    suffixes = {mode: rule.suffixes.get(mode, "") for mode in facts.roundings}
    return rule.model_copy(update={"rounding": "user", "suffixes": suffixes})


def backend_matters(target: VectorFunctionTarget, src: Format, dst: Format) -> bool:
    """Return whether the back ends give different results for a cast."""
    return BACKEND in target.options and _is_listed(target, src.name, dst.name)


def backend_effect(target: VectorFunctionTarget) -> str:
    """Return the effects of the chosen and the other back end on out-of-range numbers."""
    if is_micro(target):
        return "clamps, turns NaN into 0, rounds by mode (library: follows CTRL, rounds RINT)"
    return "follows CTRL beyond the range (vpto: clamps, turns NaN into 0)"


def _is_listed(target: VectorFunctionTarget, src: str, dst: str) -> bool:
    facts = target.instruction_saturation
    return facts is not None and src in facts.sources and dst in facts.formats


@dataclass(frozen=True, slots=True)
class FunctionCastPlan:
    """The plan of one tile cast.

    `rounding` and `saturation` are the modes after fallbacks and defaults, `ctrl` the CTRL register during the
    conversion, `writes` its successive values before it and `restores` those after it; the warnings name requests
    without effect.
    """

    rule: VectorCast
    src: Format
    dst: Format
    variant: VectorVariant
    kernel: KernelText
    rounding: Rounding
    saturation: Saturation
    ctrl: int
    writes: tuple[int, ...]
    restores: tuple[int, ...]
    warnings: Warnings


def plan_cast(
    target: VectorFunctionTarget,
    src: Format,
    dst: Format,
    mode: RoundMode | None,
    saturation: Saturation | None,
    *,
    contiguous: bool,
    scratch: bool,
) -> FunctionCastPlan:
    """Return the mode, saturation, CTRL and code variant of one cast.

    `contiguous` tells whether the tile condition of the 1D kernels is met, `scratch` whether a tmp tile is given.

    Raises:
        IllegalError: the chip lacks the type pair; the message names those of this source, and a detour if one
            exists.
    """
    rule = target.cast(src.name, dst.name)
    if rule is None:
        raise lacks_pair(target, [(row.src, row.dst) for row in target.casts], src.name, dst.name)
    rounding, mode_warnings = _settle_mode(micro_rule(target, rule) or rule, mode)
    in_force = saturation or (Saturation.OFF if rule.saturation_off_by_default else Saturation.ON)
    writes, restores = control_writes(target, rule.control, in_force)
    ctrl = writes[-1] if writes else start_ctrl(target)
    choice = target.variant_choice.contiguous if contiguous else target.variant_choice.padded
    name = choice[int(target.option("implementation_kind"))]
    variant = target.variant(rule.src, rule.dst, name, saturation_off=in_force is Saturation.OFF)
    ignored = f"the tmp tile is ignored: casts on {target.name} need no scratch"
    return FunctionCastPlan(
        rule=rule,
        src=src,
        dst=dst,
        variant=variant,
        kernel=target.kernels.texts[variant.kernel],
        rounding=rounding,
        saturation=in_force,
        ctrl=ctrl,
        writes=writes,
        restores=restores,
        warnings=(
            *mode_warnings,
            *((WarningText(WarningKind.SCRATCH, ignored),) if scratch else ()),
            *_saturation_in_vain(target, rule, src, dst, rounding, saturation),
        ),
    )


def start_ctrl(target: VectorFunctionTarget) -> int:
    """Return the initial CTRL of a kernel, from the target's options; a kernel of the micro back end clears a bit."""
    ctrl = ctrl_of_level(target, "micro" if is_micro(target) else "tile")
    return ctrl & ~(1 << target.control.saturation_global) if is_micro(target) else ctrl


def ctrl_of_level(target: VectorFunctionTarget, level: Level) -> int:
    """Return the initial CTRL of a kernel of tile operations, or of vector instructions."""
    return sum(target.control_at_start(bit, level) << bit for bit in target.control.bits)


def step_policy(target: VectorFunctionTarget, plan: FunctionCastPlan, src: Format, dst: Format) -> Policy:
    """Return the policy of one conversion of the plan; those before the last belong to multi-step casts.

    Source: docs/reference/a5.md sections 4.1 and 5.
    """
    if micro_rule(target, plan.rule) is not None:
        return _micro_policy(plan.rounding)
    first_of_many = src == plan.src and dst != plan.dst
    return conversion_policy(target, src, dst, plan.rounding, plan.ctrl, first_of_many=first_of_many)


def _micro_policy(rounding: Rounding) -> Policy:
    return Policy(rounding=rounding, overflow=Overflow.SATURATE, nan_to_float=NanToFloat.ZERO)


def conversion_policy(
    target: VectorFunctionTarget,
    src: Format,
    dst: Format,
    rounding: Rounding,
    ctrl: int,
    *,
    first_of_many: bool = False,
) -> Policy:
    """Return the policy of a conversion while CTRL is `ctrl`."""
    if isinstance(dst, IntFormat):
        return _integer_policy(target, src, dst, rounding, ctrl, first_of_many=first_of_many)
    return _float_policy(target, dst, rounding, ctrl)


def _float_policy(target: VectorFunctionTarget, dst: Format, rounding: Rounding, ctrl: int) -> Policy:
    control = target.control
    keeps_all = Policy(rounding=rounding, overflow=Overflow.SPECIAL)
    clamps = Policy(rounding=rounding, overflow=Overflow.SATURATE, nan_to_float=NanToFloat.ZERO)
    if dst.name in control.clamped_formats:
        return clamps
    if dst.name not in control.float_formats:
        return keeps_all
    kept_nan = dst.name in control.nan_kept_formats and _bit(ctrl, control.nan_kept)
    if kept_nan:
        clamps = Policy(rounding=rounding, overflow=Overflow.SATURATE)
    stated = target.option("eight_bit_float_overflow")
    if dst.storage_bits == 8 and stated != "ctrl":
        return clamps if stated == "saturate" else keeps_all
    clamping = _bit(ctrl, control.saturation_global) and not _bit(ctrl, control.float_saturation_off)
    return clamps if clamping else keeps_all


def _integer_policy(
    target: VectorFunctionTarget, src: Format, dst: IntFormat, rounding: Rounding, ctrl: int, *, first_of_many: bool
) -> Policy:
    nan = NanToInteger(str(target.option("nan_to_integer")))
    clamps = Policy(rounding=rounding, overflow=Overflow.SATURATE, nan_to_integer=nan)
    if isinstance(src, IntFormat) and src.bits < dst.bits:
        return clamps  # nothing but the sign can be lost: a negative number to an unsigned format becomes 0
    control = target.control
    if _bit(ctrl, control.saturation_global) and not _bit(ctrl, control.integer_saturation_off):
        return clamps
    first = target.option("multi_step_intermediate") if first_of_many else "low_bits"
    if first == "clamp":
        return clamps
    kept = str(target.option("native_off_intermediate"))
    infinity = {"extreme": InfinityWrap.EXTREME, "exact": InfinityWrap.ZERO}.get(kept, InfinityWrap.CLAMP)
    return Policy(
        rounding=rounding,
        overflow=Overflow.WRAP,
        nan_to_integer=nan,
        infinity_wrap=InfinityWrap.EXTREME if first == "clamp_infinity" else infinity,
        wrap_bits=format_named("i64").bits if infinity is InfinityWrap.CLAMP else None,
    )


def _bit(value: int, bit: int) -> bool:
    return bool(value >> bit & 1)


def _settle_mode(rule: VectorCast, asked: RoundMode | None) -> tuple[Rounding, Warnings]:
    """Return the mode in force, and a warning where the request has no effect."""
    pair = f"{rule.src} -> {rule.dst}"
    mode = DEFAULT_MODE if asked is None else asked
    fallback = rule.fallback or Rounding.RINT
    wanted = None if mode is RoundMode.NONE else Rounding(mode.name.lower())
    if rule.rounding == "user":
        if wanted is None or wanted in rule.suffixes:
            return wanted or fallback, ()
        legal = ", ".join(name.upper() for name in rule.suffixes)
        text = f"rounding {mode.name} becomes {fallback.upper()}: {pair} has {legal}"
        return fallback, (WarningText(WarningKind.ROUNDING, text),)
    if asked in (None, RoundMode.NONE):
        return fallback, ()
    if rule.rounding == "fixed":
        ignored = wanted is not fallback
        text = f"rounding {mode.name} is ignored: {pair} always rounds {fallback.upper()}"
    else:
        ignored = mode is not DEFAULT_MODE
        text = f"rounding {mode.name} has no effect: {pair} never rounds"
    return fallback, (WarningText(WarningKind.ROUNDING, text),) if ignored else ()


def control_writes(
    target: VectorFunctionTarget, control: str, saturation: Saturation
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the successive values of CTRL before and after an instruction of a control class.

    There is one read-modify-write per bit.
    """
    if target.option("control_writes") == "suppressed":
        return (), ()
    values = {"zero": False, "one": True, "saturation_off": saturation is Saturation.OFF}
    rules = target.control_classes[control].writes
    start = start_ctrl(target)
    before = _successive(start, [(write.bit, values[write.value]) for write in rules])
    after = _successive(before[-1] if before else start, [(write.bit, _bit(start, write.bit)) for write in rules])
    return before, after


def controlled(target: VectorFunctionTarget, writes: Iterable[int], function: Node, restores: Iterable[int]) -> Block:
    """Return a function between the writes of CTRL before it and those after it."""
    pipe = target.pipes.scalar
    before, after = (tuple(ControlWrite("ctrl", each, pipe=pipe) for each in values) for values in (writes, restores))
    return Block((*before, function, *after))


def _successive(value: int, writes: Iterable[tuple[int, bool]]) -> tuple[int, ...]:
    values = []
    for bit, on in writes:
        value = value | 1 << bit if on else value & ~(1 << bit)
        values.append(value)
    return tuple(values)


def switched_saturation(target: VectorFunctionTarget, plan: FunctionCastPlan) -> Saturation | None:
    """Return the saturation mode in force if the other one gives other results, None if both are equivalent."""
    on, off = _by_saturation(target, plan.rule, plan.src, plan.dst, plan.rounding)
    return None if on == off else plan.saturation


def _by_saturation(
    target: VectorFunctionTarget, rule: VectorCast, src: Format, dst: Format, rounding: Rounding
) -> tuple[Policy, Policy]:
    """Return the policies of a conversion with saturation ON and OFF."""
    if micro_rule(target, rule) is not None:
        return _micro_policy(rounding), _micro_policy(rounding)
    ctrls = [control_writes(target, rule.control, either)[0] for either in (Saturation.ON, Saturation.OFF)]
    start = start_ctrl(target)
    on, off = (conversion_policy(target, src, dst, rounding, writes[-1] if writes else start) for writes in ctrls)
    return on, off


def _saturation_in_vain(
    target: VectorFunctionTarget,
    rule: VectorCast,
    src: Format,
    dst: Format,
    rounding: Rounding,
    asked: Saturation | None,
) -> Warnings:
    """Return a warning if ON and OFF have the same effect, other than the requested one."""
    if asked is None:
        return ()
    on, off = _by_saturation(target, rule, src, dst, rounding)
    if on != off or (asked is Saturation.ON and on.overflow is Overflow.SATURATE):
        return ()
    text = f"saturation {asked.upper()} has no effect: {rule.src} -> {rule.dst} gives the same result with ON and OFF"
    return (WarningText(WarningKind.SATURATION, text),)
