"""A VLIW chip's cast of loose elements: what one CONVERT, or one narrowing with shift 0, makes of them.

Rounding modes go by the chip's own words (`rhne`, `rz`) or by the abstract ones (`rint`, `trunc`).
"""

from __future__ import annotations

from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import Format
from castsim.isa.modes import Overflow, Rounding, Saturation
from castsim.isa.warning_text import WarningKind, WarningText
from castsim.machines.target_cast import CastAsked, TargetCast, saturation_in_force
from castsim.machines.vliw.semantics.policies import converted, policy_of
from castsim.targets.vliw import RoundingMode, VliwTarget


def cast_elements(target: VliwTarget, codes: Codes, asked: CastAsked) -> TargetCast:
    """Convert codes of any shape as the vector unit does.

    Raises:
        ReadError: a word that is not a rounding mode.
        IllegalError: no single instruction makes this pair, or a mode that it does not have or that needs random words.
    """
    src, dst = asked.src, asked.dst
    _check_pair(target, src, dst)
    word, mode = _mode(target, asked.rounding)
    policy = policy_of(src, dst, mode, False, target)
    result = converted(codes, src, dst, policy, None, target.special_values.intermediate)
    clamps = Saturation.ON if policy.overflow is Overflow.SATURATE else Saturation.OFF
    warnings = []
    if asked.saturation not in (None, clamps):
        text = f"saturation {asked.saturation} is ignored: CONVERT {src.name} -> {dst.name} has no such switch"
        warnings.append(WarningText(WarningKind.SATURATION, text))
    if asked.scratch:
        warnings.append(WarningText(WarningKind.SCRATCH, "the tmp tile is ignored: CONVERT works on registers"))
    saturation = saturation_in_force(src, dst, policy.overflow, None)
    return TargetCast(result, word, saturation, policy.overflow, tuple(warnings))


def _check_pair(target: VliwTarget, src: Format, dst: Format) -> None:
    source, destination = (fmt.name.partition("@")[0] for fmt in (src, dst))
    pairs = {(row.src, row.dst) for row in target.converts if row.unit == "vpu"}
    pairs |= {(row.src, row.dst) for row in target.integer_converts if row.unit == "vpu"}
    if (source, destination) not in pairs:
        legal = sorted(to for other, to in pairs if other == source)
        has = f"from {source} it converts to: {', '.join(legal)}" if legal else f"it converts nothing from {source}"
        raise IllegalError(
            f"{target.name} has no instruction {source} -> {destination}; {has}",
            legal=[f"{source} -> {other}" for other in legal],
        )


def _mode(target: VliwTarget, asked: str | None) -> tuple[str, RoundingMode]:
    """Return the mode in force: the register's reset value where the instruction leaves it open."""
    modes = target.convert_rounding.modes
    fixed = {word: mode for word, mode in modes.items() if mode.rounding is not None}
    if asked is None or asked.lower() in (target.convert_rounding.default, "none"):
        register = target.configuration.get("convert_round", target.configuration.get("round"))
        reset = register.reset if register is not None else 0
        return next((word, mode) for word, mode in fixed.items() if mode.code == reset)
    wanted = asked.lower()
    for word, mode in fixed.items():
        if wanted in (word, mode.rounding if mode.subnormal_rounding is None else word):
            if mode.rounding is Rounding.STOCHASTIC:
                raise IllegalError(
                    f"rounding {word} draws from the chip's random generator; run a program",
                    legal=[name for name, other in fixed.items() if other.rounding is not Rounding.STOCHASTIC],
                )
            return word, mode
    if wanted in {mode.value for mode in Rounding}:
        raise IllegalError(f"{target.name} has no rounding mode {asked}", legal=fixed)
    raise ReadError(f"unknown rounding mode '{asked}'", legal=fixed)
