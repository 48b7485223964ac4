"""The casts of a VLIW chip for reports: the CONVERT rows of its vector unit, and other instructions for the pair."""

from __future__ import annotations

from itertools import starmap

from castsim.isa.errors import IllegalError
from castsim.isa.formats import Format, format_named
from castsim.machines.mechanisms import saturation_in_force
from castsim.machines.vliw.semantics.convert import policy_of
from castsim.reports.documents import extended
from castsim.reports.pairs import ConfigurationEntry, ModeEntry, PairEntry, SaturationEntry, TargetPair
from castsim.targets.vliw import ConvertRow, VliwTarget

_VECTOR = "vpu"


def rows(target: VliwTarget) -> tuple[PairEntry, ...]:
    """Return every pair that a single CONVERT of the vector unit converts."""
    return tuple(_row(target, rule) for rule in target.converts if rule.unit == _VECTOR)


def detail(target: VliwTarget, src: Format, dst: Format) -> TargetPair:
    """Return one pair in full.

    Raises:
        IllegalError: the vector unit has no CONVERT; the message names the destinations of this source.
    """
    rule = target.convert(src.name, dst.name)
    if rule is None:
        legal = [row.dst for row in target.converts if row.unit == _VECTOR and row.src == src.name]
        has = ", ".join(legal) or "none"
        raise IllegalError(
            f"{target.name} has no CONVERT {src.name} -> {dst.name}; from {src.name} it has: {has}",
            legal=[f"{src.name} -> {other}" for other in legal],
        )
    row = _row(target, rule)
    return extended(
        TargetPair,
        row,
        target=target,
        mnemonics=tuple(_mode(target, rule, name) for name in (None, *target.convert_rounding.modes)),
        saturation_modes=(SaturationEntry("default", scratch=False, in_force=row.saturation, warning=None),),
        configuration=tuple(starmap(ConfigurationEntry, _configuration(target, rule).items())),
        scratch_sequence=None,
        note=rule.note or "",
        status=target.converts_fact.status,
        source=target.converts_fact.source,
    )


def _row(target: VliwTarget, rule: ConvertRow) -> PairEntry:
    src, dst = format_named(rule.src), format_named(rule.dst)
    mode = next(
        rounding_mode for rounding_mode in target.convert_rounding.modes.values() if rounding_mode.rounding is not None
    )
    return PairEntry(
        src=rule.src,
        dst=rule.dst,
        modes=tuple(target.convert_rounding.modes),
        default=target.convert_rounding.default,
        fallback=None,
        saturation=saturation_in_force(src, dst, policy_of(src, dst, mode, False, target).overflow, None),
        switchable="by clip_fp" if "clip_fp" in rule.switches else "never",
        scratch=None,
    )


def _mode(target: VliwTarget, rule: ConvertRow, asked: str | None) -> ModeEntry:
    name = asked or target.convert_rounding.default
    return ModeEntry(
        requested="default" if asked is None else asked,
        in_force=name,
        mnemonic=f"CONVERT from {rule.src} to {rule.dst}, rounding code {target.convert_rounding.modes[name].code}",
        warning=None,
    )


def _configuration(target: VliwTarget, rule: ConvertRow) -> dict[str, str | int]:
    """Return the forms of the instruction, and the other instructions that convert the same pair."""
    settings: dict[str, str | int] = {"lanes": ", ".join(rule.lanes) or "lane by lane"}
    if rule.lane_sel_max is not None:
        settings["lane_sel_max"] = rule.lane_sel_max
    for name, values in (("switches", rule.switches), ("predicate_masks", rule.masks)):
        if values:
            settings[name] = ", ".join(values)
    if target.convert(rule.src, rule.dst, "spu") is not None:
        settings["scalar_unit"] = "the same CONVERT"
    integer = [
        other.mnemonic
        for other in target.integer_converts
        if (other.unit, other.src, other.dst) == (_VECTOR, rule.src, rule.dst)
    ]
    if integer:
        settings["with_shift"] = ", ".join(dict.fromkeys(integer))
    return settings
