"""What a step does to an element, as the machine models do it, and whether it keeps the order of numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from castsim.isa.codes import Codes
from castsim.isa.formats import Format, IntFormat
from castsim.isa.modes import Overflow, Rounding
from castsim.numerics import (
    Policy,
    Scale,
    Tier,
    convert_codes,
    round_to_integral_codes,
    scaled_cast_codes,
)


@dataclass(frozen=True, slots=True)
class FormatCast:
    """A cast between formats."""

    src: Format
    dst: Format
    policy: Policy


@dataclass(frozen=True, slots=True)
class Integral:
    """Rounding to an integral value of the same format."""

    src: Format
    policy: Policy


@dataclass(frozen=True, slots=True)
class Scaled:
    """An integer times an exact factor, rounded once."""

    src: IntFormat
    dst: Format
    scale: Scale
    policy: Policy


@dataclass(frozen=True, slots=True)
class And:
    """Bitwise AND with a constant."""

    mask: int


@dataclass(frozen=True, slots=True)
class Reread:
    """The same bits, read as another format of the same width."""

    src: Format
    dst: Format


@dataclass(frozen=True, slots=True)
class ConstantArithmetic:
    """An operation with constants, executed by the machine model's own function.

    `name` identifies it; `monotone` tells that larger operands never give smaller results. `constant` is the one
    constant there is, as a code or an amount. `facts` is the digest of what its values rest on: the target's facts and
    the options that bear on it. Without it two targets with one name would pass for one.
    """

    name: str
    src: Format
    run: Callable[[Codes], Codes] = field(compare=False, repr=False)
    monotone: bool = False
    constant: int | None = None
    facts: str = ""


Primitive = FormatCast | Integral | Scaled | And | Reread | ConstantArithmetic


def apply(primitive: Primitive, codes: Codes, tier: Tier | None = None) -> Codes:
    """Return codes of any shape after one primitive."""
    match primitive:
        case FormatCast(src, dst, policy):
            return convert_codes(codes, src, dst, policy, tier=tier)
        case Integral(src, policy):
            return round_to_integral_codes(codes, src, policy)
        case Scaled(src, dst, scale, policy):
            return scaled_cast_codes(codes, src, dst, scale, policy)
        case And(mask):
            masked: Codes = codes & codes.dtype.type(mask)
            return masked
        case Reread():
            return codes
        case ConstantArithmetic():
            return primitive.run(codes)


def keeps_order(primitive: Primitive) -> bool:
    """Whether numbers in rising order give results in rising order, by how the primitive is made.

    Every deterministic rounding does, clamping does, and so does overflow to infinity; NaN from overflow counts as
    beyond the largest number.
    """
    match primitive:
        case FormatCast(src, dst, policy) | Scaled(src, dst, _, policy):
            return _settles_in_order(src, dst, policy)
        case Integral(src, policy):
            return _settles_in_order(src, src, policy)
        case ConstantArithmetic():
            return primitive.monotone
        case And() | Reread():
            return False


def _settles_in_order(src: Format, dst: Format, policy: Policy) -> bool:
    ordered = all(isinstance(fmt, IntFormat) or (fmt.signed and fmt.has_zero) for fmt in (src, dst))
    draws = policy.rounding in (Rounding.STOCHASTIC, Rounding.HYBRID)
    if not ordered or draws or policy.subnormal_rounding is not None:
        return False
    boolean = any(isinstance(fmt, IntFormat) and fmt.boolean for fmt in (src, dst))
    if boolean or (policy.overflow is Overflow.WRAP and not _fits(src, dst)):
        return False
    return not (policy.infinity_to_max or policy.keep_infinity)


def _fits(src: Format, dst: Format) -> bool:
    """Whether every integer of the source is one of the destination, so that wrapping changes nothing."""
    if not isinstance(src, IntFormat) or not isinstance(dst, IntFormat):
        return False
    return dst.minimum <= src.minimum and src.maximum <= dst.maximum
