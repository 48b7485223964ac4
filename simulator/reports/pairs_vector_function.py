"""The casts of a vector-function chip for reports: all data comes from the lowering."""

from __future__ import annotations

from collections.abc import Iterator

from castsim.isa.errors import WarningKind, of_kind
from castsim.isa.formats import Format, Saturation, format_named
from castsim.isa.pto.program import RoundMode
from castsim.machines.mechanisms import saturation_in_force
from castsim.machines.vector_function.plan import FunctionCastPlan, plan_cast, step_policy, switched_saturation
from castsim.reports.documents import extended
from castsim.reports.pairs import ConfigurationEntry, ModeEntry, PairEntry, SaturationEntry, TargetPair
from castsim.targets.vector_function import VectorCast, VectorFunctionTarget


def rows(target: VectorFunctionTarget) -> tuple[PairEntry, ...]:
    """Return every legal pair."""
    return tuple(_row(target, rule) for rule in target.casts)


def detail(target: VectorFunctionTarget, src: Format, dst: Format) -> TargetPair:
    """Return one pair in full.

    Raises:
        IllegalError: the chip lacks the pair.
    """
    rule = _plan(target, src, dst).rule
    return extended(
        TargetPair,
        _row(target, rule),
        target=target,
        mnemonics=tuple(_mode(target, src, dst, rule, mode) for mode in (None, *RoundMode)),
        saturation_modes=tuple(
            _saturation(target, src, dst, asked, scratch=scratch)
            for asked in (None, Saturation.ON, Saturation.OFF)
            for scratch in (False, True)
        ),
        configuration=tuple(_kernels(target, rule)),
        scratch_sequence=None,
        note=f"CTRL bits written: {rule.control}",
        status=target.casts_fact.status,
        source=target.casts_fact.source,
    )


def _plan(
    target: VectorFunctionTarget,
    src: Format,
    dst: Format,
    mode: RoundMode | None = None,
    saturation: Saturation | None = None,
    *,
    scratch: bool = False,
) -> FunctionCastPlan:
    return plan_cast(target, src, dst, mode, saturation, contiguous=True, scratch=scratch)


def _row(target: VectorFunctionTarget, rule: VectorCast) -> PairEntry:
    src, dst = format_named(rule.src), format_named(rule.dst)
    plan = _plan(target, src, dst)
    return PairEntry(
        src=rule.src,
        dst=rule.dst,
        modes=tuple(mode.value for mode in rule.suffixes),
        default=plan.rounding.value if rule.fallback is not None else None,
        fallback=rule.fallback.value if rule.fallback is not None else None,
        saturation=_in_force(target, plan),
        switchable="always" if _in_force(target, plan) in tuple(Saturation) else "never",
        scratch=None,
    )


def _in_force(target: VectorFunctionTarget, plan: FunctionCastPlan) -> str:
    overflow = step_policy(target, plan, plan.src, plan.dst).overflow
    return saturation_in_force(plan.src, plan.dst, overflow, switched_saturation(target, plan))


def _mode(
    target: VectorFunctionTarget, src: Format, dst: Format, rule: VectorCast, asked: RoundMode | None
) -> ModeEntry:
    plan = _plan(target, src, dst, asked)
    convert = next(line.mnemonic for line in plan.kernel.trip if line.mnemonic in ("vcvt", "vtrc"))
    letter = rule.suffixes.get(plan.rounding)
    return ModeEntry(
        requested="default" if asked is None else asked.name.lower(),
        in_force=plan.rounding.value if rule.fallback is not None else None,
        mnemonic=convert if letter is None else f"{convert} {letter}",
        warning=next(iter(of_kind(plan.warnings, WarningKind.ROUNDING)), None),
    )


def _saturation(
    target: VectorFunctionTarget, src: Format, dst: Format, asked: Saturation | None, *, scratch: bool
) -> SaturationEntry:
    plan = _plan(target, src, dst, None, asked, scratch=scratch)
    return SaturationEntry(
        requested="default" if asked is None else asked.value,
        scratch=scratch,
        in_force=_in_force(target, plan),
        warning=next(iter(of_kind(plan.warnings, WarningKind.SATURATION)), None),
    )


def _kernels(target: VectorFunctionTarget, rule: VectorCast) -> Iterator[ConfigurationEntry]:
    """Yield the kernel and elements per trip of each code variant, by its condition."""
    for variant in target.variants:
        if (variant.src, variant.dst) == (rule.src, rule.dst):
            when = "" if variant.when == "always" else f" {variant.when}"
            elements = target.kernels.texts[variant.kernel].elements
            yield ConfigurationEntry(f"{variant.variant}{when}", f"{variant.kernel}, {elements} elements per trip")
