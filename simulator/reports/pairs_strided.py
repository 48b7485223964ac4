"""The casts of a strided-repeat chip for reports: all data comes from the lowering."""

from __future__ import annotations

from itertools import starmap

from castsim.execution.pipe_operations import ControlWrite, PipeBarrier
from castsim.isa.errors import WarningKind, of_kind
from castsim.isa.formats import Format, Saturation, format_named
from castsim.isa.pto.program import RoundMode
from castsim.machines.mechanisms import saturation_in_force
from castsim.machines.strided.plan import (
    CastPlan,
    element_steps,
    overflow_of,
    plan_cast,
    switched_saturation,
)
from castsim.machines.strided.strided_instructions import StridedInstruction, StridedOperation
from castsim.reports.documents import extended
from castsim.reports.pairs import ConfigurationEntry, ModeEntry, PairEntry, SaturationEntry, ScratchSequence, TargetPair
from castsim.targets.strided_repeat import StridedCast, StridedRepeatTarget


def rows(target: StridedRepeatTarget) -> tuple[PairEntry, ...]:
    """Return every legal pair."""
    return tuple(_row(target, rule) for rule in target.casts)


def detail(target: StridedRepeatTarget, src: Format, dst: Format) -> TargetPair:
    """Return one pair in full.

    Raises:
        IllegalError: the chip lacks the pair.
    """
    rule = plan_cast(target, src, dst, None, None, scratch=False).rule
    configuration = {
        "lanes_per_repeat": rule.lanes,
        "dst_repeat_stride_blocks": rule.dst_repeat_stride,
        "src_repeat_stride_blocks": rule.src_repeat_stride,
        "max_repeats": target.repeat.max_repeats,
        "repeat_stride_field_bits": _stride_bits(target, rule),
    }
    return extended(
        TargetPair,
        _row(target, rule),
        target=target,
        mnemonics=tuple(_mode(target, rule, mode) for mode in (None, *RoundMode)),
        saturation_modes=tuple(
            _saturation(target, rule, asked, scratch=scratch)
            for asked in (None, Saturation.ON, Saturation.OFF)
            for scratch in (False, True)
        ),
        configuration=tuple(starmap(ConfigurationEntry, configuration.items())),
        scratch_sequence=_scratch(target, rule),
        note=rule.note,
        status=target.casts_fact.status,
        source=target.casts_fact.source,
    )


def _row(target: StridedRepeatTarget, rule: StridedCast) -> PairEntry:
    plan = plan_cast(target, format_named(rule.src), format_named(rule.dst), None, None, scratch=False)
    sequence = target.scratch_sequence(rule.src, rule.dst)
    return PairEntry(
        src=rule.src,
        dst=rule.dst,
        modes=tuple(mode.value for mode in rule.suffixes),
        default=plan.rounding.value if rule.fallback is not None else None,
        fallback=rule.fallback.value if rule.fallback is not None else None,
        saturation=_in_force(target, plan),
        switchable=_switchable(target, rule),
        scratch=sequence.steps if sequence else None,
    )


def _in_force(target: StridedRepeatTarget, plan: CastPlan) -> str:
    return saturation_in_force(plan.src, plan.dst, overflow_of(plan), switched_saturation(target, plan))


def _switchable(target: StridedRepeatTarget, rule: StridedCast) -> str:
    """Return when a request for the other saturation mode takes effect, by requesting it."""
    src, dst = format_named(rule.src), format_named(rule.dst)
    plan = plan_cast(target, src, dst, None, None, scratch=False)
    if _in_force(target, plan) not in tuple(Saturation):
        return "never"
    default = plan.saturation
    other = Saturation.ON if default is Saturation.OFF else Saturation.OFF
    if plan_cast(target, src, dst, None, other, scratch=False).saturation is other:
        return "always"
    return "with tmp" if plan_cast(target, src, dst, None, other, scratch=True).saturation is other else "never"


def _mode(target: StridedRepeatTarget, rule: StridedCast, asked: RoundMode | None) -> ModeEntry:
    plan = plan_cast(target, format_named(rule.src), format_named(rule.dst), asked, None, scratch=False)
    return ModeEntry(
        requested="default" if asked is None else asked.name.lower(),
        in_force=plan.rounding.value if rule.fallback is not None else None,
        mnemonic=plan.mnemonic,
        warning=next(iter(of_kind(plan.warnings, WarningKind.ROUNDING)), None),
    )


def _saturation(
    target: StridedRepeatTarget, rule: StridedCast, asked: Saturation | None, *, scratch: bool
) -> SaturationEntry:
    plan = plan_cast(target, format_named(rule.src), format_named(rule.dst), None, asked, scratch=scratch)
    return SaturationEntry(
        requested="default" if asked is None else asked.value,
        scratch=scratch,
        in_force=_in_force(target, plan),
        warning=next(iter(of_kind(plan.warnings, WarningKind.SATURATION)), None),
    )


def _stride_bits(target: StridedRepeatTarget, rule: StridedCast) -> int:
    """Return the width of the repeat stride fields; all mnemonics of a pair share it."""
    narrow = [row for row in target.narrow_strides if rule.stem in row.mnemonics]
    return narrow[0].repeat_stride_field_bits if narrow else target.repeat.repeat_stride_field_bits


def _scratch(target: StridedRepeatTarget, rule: StridedCast) -> ScratchSequence | None:
    plan = plan_cast(target, format_named(rule.src), format_named(rule.dst), None, Saturation.OFF, scratch=True)
    if plan.sequence is None:
        return None
    return ScratchSequence(
        steps=plan.sequence.steps,
        operations=tuple(
            _described(operation)
            for operation in element_steps(target, plan)
            if isinstance(operation, StridedOperation)
        ),
        status=plan.sequence.status,
        source=plan.sequence.source,
    )


def _described(operation: StridedOperation) -> str:
    match operation:
        case StridedInstruction():
            return operation.mnemonic
        case ControlWrite(register, value):
            return f"set {register} {value:#x}"
        case PipeBarrier(pipe):
            return f"barrier {pipe}"
        case _:
            return type(operation).__name__
