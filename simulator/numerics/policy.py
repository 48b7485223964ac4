"""The choices of a cast beyond its formats: rounding, overflow, special values.

Chips differ in the values of a `Policy`, never in code. `abstract_policy` returns the cast without a
chip; docs/reference/formats.md section 6 defines it cell by cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from castsim.isa.errors import IllegalError
from castsim.isa.formats import Format, IntFormat, Overflow, Rounding, TaperedFormat


class NanToFloat(StrEnum):
    """The result of NaN in a float format."""

    CANONICAL = "canonical"
    """The format's canonical NaN, with its sign if the NaN has one; +0 in a format without NaN."""
    FIXED = "fixed"
    """`Policy.nan_code`, whatever the sign."""
    ZERO = "zero"
    """+0; the NaN code in a format without zero."""
    PAYLOAD = "payload"
    """Sign and fraction preserved, left-aligned and not quieted; canonical where that would not be a NaN."""


class NanToInteger(StrEnum):
    """The result of NaN in an integer format."""

    ZERO = "zero"
    MAXIMUM = "maximum"
    MINIMUM = "minimum"


class InfinityWrap(StrEnum):
    """The result of infinity in an integer format under `wrap`, because it has no low bits."""

    ZERO = "zero"
    """0."""
    CLAMP = "clamp"
    """The low bits of the extreme of the intermediate integer (`Policy.wrap_bits`)."""
    EXTREME = "extreme"
    """The destination's extreme with the sign of the infinity."""


class E8M0Rule(StrEnum):
    """A rule for rounding to a pure power of two."""

    ONNX = "onnx"
    """Round the value: ceil is `up`, floor and trunc are `down`, round and half_up are `nearest`, ties up."""
    ASL = "asl"
    """Round the exponent as a real number, in any deterministic mode (docs/reference/pto.md section 6.2)."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The handling of all inexact results and special values of a cast. Defaults are those of the abstract cast.

    `wrap_bits` is the width of the signed intermediate integer to which the rounded value is clamped before its low
    bits are taken (overflow `wrap`); None: the exact integer. `infinity_to_max` turns infinite sources into the
    largest finite value under `special`; `keep_infinity` preserves them under `saturate`. `flush_source` and
    `flush_result` replace subnormals of that side by zero of the same sign; `drop_negative_zero` makes every zero
    result +0. `subnormal_rounding` replaces the mode for results below the smallest normal number.
    With `stochastic_guard` False exact values round too; `stochastic_far_zero` compares 0 instead of the dropped
    bits for magnitudes below half the smallest subnormal.
    """

    rounding: Rounding
    overflow: Overflow
    nan_to_float: NanToFloat = NanToFloat.CANONICAL
    nan_code: int | None = None
    nan_to_integer: NanToInteger = NanToInteger.ZERO
    infinity_wrap: InfinityWrap = InfinityWrap.ZERO
    wrap_bits: int | None = None
    infinity_to_max: bool = False
    keep_infinity: bool = False
    flush_source: bool = False
    flush_result: bool = False
    drop_negative_zero: bool = False
    subnormal_rounding: Rounding | None = None
    stochastic_guard: bool = True
    stochastic_far_zero: bool = False
    e8m0_rule: E8M0Rule = E8M0Rule.ONNX


HYBRID_WORDS: dict[str, tuple[int, int, int]] = {"f32": (0x3FFF, 18, 0), "f16": (0x1, 31, 1 << 30)}
"""Sources of the hybrid mode: the comparison word is `(code & mask) << shift | low bits`.

Source: docs/reference/formats.md section 2.
"""

_TAPERED_ROUNDINGS = (Rounding.ROUND, Rounding.FLOOR, Rounding.CEIL, Rounding.TRUNC, Rounding.HYBRID)
_POWER_ROUNDINGS = {
    E8M0Rule.ONNX: (Rounding.CEIL, Rounding.FLOOR, Rounding.TRUNC, Rounding.ROUND, Rounding.HALF_UP),
    E8M0Rule.ASL: tuple(mode for mode in Rounding if mode not in (Rounding.STOCHASTIC, Rounding.HYBRID)),
}


def is_power_format(dst: Format) -> bool:
    """Return whether a float format holds powers of two only (no zero, no sign, no fraction)."""
    return not isinstance(dst, IntFormat) and not dst.has_zero


def legal_roundings(src: Format, dst: Format, rule: E8M0Rule = E8M0Rule.ONNX) -> tuple[Rounding, ...]:
    """Return the rounding modes that apply to the pair."""
    if isinstance(dst, TaperedFormat):
        has_hybrid = src.name in HYBRID_WORDS
        return tuple(mode for mode in _TAPERED_ROUNDINGS if has_hybrid or mode is not Rounding.HYBRID)
    if is_power_format(dst):
        return _POWER_ROUNDINGS[rule]
    return tuple(mode for mode in Rounding if mode is not Rounding.HYBRID)


def legal_overflows(dst: Format) -> tuple[Overflow, ...]:
    """Return the overflow behaviours that apply to the destination."""
    other = Overflow.WRAP if isinstance(dst, IntFormat) else Overflow.SPECIAL
    return (Overflow.SATURATE, other)


def check_policy(src: Format, dst: Format, policy: Policy) -> None:
    """Reject a policy that does not apply to the pair.

    Raises:
        IllegalError: the destination lacks a rounding or overflow, or a NaN code or intermediate width
            does not fit; the message lists the legal ones.
    """
    roundings = legal_roundings(src, dst, policy.e8m0_rule)
    if policy.rounding not in roundings:
        raise IllegalError(f"rounding '{policy.rounding}' is not defined for {src.name} -> {dst.name}", legal=roundings)
    overflows = legal_overflows(dst)
    if policy.overflow not in overflows:
        raise IllegalError(f"overflow '{policy.overflow}' is not defined for destination {dst.name}", legal=overflows)
    if policy.subnormal_rounding in (Rounding.STOCHASTIC, Rounding.HYBRID):
        raise IllegalError(f"subnormal results cannot round by '{policy.subnormal_rounding}'")
    if isinstance(dst, IntFormat):
        _check_integer_policy(policy)
    elif policy.nan_to_float is NanToFloat.FIXED and (policy.nan_code is None or policy.nan_code >> dst.bits):
        legal = (f"0 to {(1 << dst.bits) - 1:#x}",)
        raise IllegalError(f"NaN code {policy.nan_code} is not a code of {dst.name}", legal=legal)


def _check_integer_policy(policy: Policy) -> None:
    """Reject an intermediate width beyond 64-bit integers, and clamping without a width."""
    if policy.wrap_bits is not None and not 1 <= policy.wrap_bits <= 64:
        raise IllegalError(f"intermediate of {policy.wrap_bits} bits", legal=("1 to 64 bits",))
    if policy.overflow is Overflow.WRAP and policy.infinity_wrap is InfinityWrap.CLAMP and policy.wrap_bits is None:
        raise IllegalError("infinity_wrap 'clamp' needs wrap_bits, the width of the intermediate")


def default_rounding(dst: Format) -> Rounding:
    """Return the abstract cast's rounding for a destination."""
    if isinstance(dst, TaperedFormat):
        return Rounding.ROUND
    return Rounding.CEIL if is_power_format(dst) else Rounding.RINT


def default_overflow(src: Format, dst: Format) -> Overflow:
    """Return the abstract cast's overflow for a pair."""
    if isinstance(dst, IntFormat):
        return Overflow.WRAP if isinstance(src, IntFormat) else Overflow.SATURATE
    return Overflow.SATURATE if is_power_format(dst) else Overflow.SPECIAL


def abstract_policy(
    src: Format, dst: Format, rounding: Rounding | None = None, overflow: Overflow | None = None
) -> Policy:
    """Return the policy of the cast without a chip (docs/reference/formats.md section 6).

    Defaults: rint (HiFloat8: round; e8m0: ceil, the `up` of ONNX); integers to integers wrap, floats to integers and
    anything to e8m0 saturate, other float destinations follow IEEE 754.

    Raises:
        IllegalError: the rounding or overflow does not apply to the pair; the message lists the legal ones.
    """
    policy = Policy(
        rounding=default_rounding(dst) if rounding is None else Rounding(rounding),
        overflow=default_overflow(src, dst) if overflow is None else Overflow(overflow),
    )
    check_policy(src, dst, policy)
    return policy
