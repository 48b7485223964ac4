"""The values of conversions: policies, intermediate format, random words (docs/reference/tpc.md section 5)."""

from __future__ import annotations

from functools import lru_cache

from castsim.isa.codes import Codes
from castsim.isa.formats import FORMATS, FloatFormat, Format, IntFormat
from castsim.isa.modes import Overflow, Rounding
from castsim.machines.vliw.semantics.interface import Words
from castsim.numerics import NanToFloat, NanToInteger, Policy, convert_codes
from castsim.targets.vliw import RoundingMode, VliwTarget


def nan_code(fmt: FloatFormat) -> int:
    """Return the NaN that conversions and arithmetic produce: every bit but the sign."""
    return (1 << (fmt.bits - 1)) - 1


def policy_of(src: Format, dst: Format, mode: RoundingMode, clip: bool, target: VliwTarget) -> Policy:
    """Return the policy of a conversion where the formats leave it open: rounding, range, NaN.

    Conversions between integers and from float to integer are those of CONVERT; `clip` is the switch clip_fp.
    """
    if isinstance(dst, IntFormat):
        kind = "integer" if isinstance(src, IntFormat) else "float"
        wrap = target.option(f"{kind}_to_integer_overflow") == "wrap"
        return integer_policy(mode, wrap, NanToInteger(str(target.option("nan_to_integer"))))
    assert isinstance(dst, FloatFormat)
    values = target.special_values
    payload = (src.name, dst.name) in values.payload_kept
    from_float = isinstance(src, FloatFormat)
    narrowing = from_float and dst.bits < FORMATS[values.intermediate].bits
    guard = not narrowing or target.option("stochastic_exact") == "keep"
    return _float_policy(dst, mode, clip, payload, from_float, guard)


@lru_cache(maxsize=1024)
def integer_policy(mode: RoundingMode, wrap: bool = False, nan: NanToInteger = NanToInteger.ZERO) -> Policy:
    """Return the policy of a conversion to an integer: saturating, or to the low bits."""
    assert mode.rounding is not None
    overflow = Overflow.WRAP if wrap else Overflow.SATURATE
    return Policy(rounding=mode.rounding, overflow=overflow, nan_to_integer=nan)


@lru_cache(maxsize=1024)
def _float_policy(
    dst: FloatFormat, mode: RoundingMode, clip: bool, payload: bool, from_float: bool, guard: bool
) -> Policy:
    assert mode.rounding is not None
    return Policy(
        rounding=mode.rounding,
        overflow=Overflow.SATURATE if clip else Overflow.SPECIAL,
        nan_to_float=NanToFloat.PAYLOAD if payload else NanToFloat.FIXED,
        nan_code=nan_code(dst),
        subnormal_rounding=mode.subnormal_rounding,
        stochastic_guard=guard,
        stochastic_far_zero=from_float,
    )


@lru_cache(maxsize=64)
def integral_policy(fmt: FloatFormat, mode: RoundingMode) -> Policy:
    """Return the policy of rounding to an integral value: infinities stay, NaN is the format's."""
    assert mode.rounding is not None
    return Policy(mode.rounding, Overflow.SPECIAL, nan_to_float=NanToFloat.FIXED, nan_code=nan_code(fmt))


_EXACT = Policy(Rounding.TRUNC, Overflow.SPECIAL)


def converted(codes: Codes, src: Format, dst: Format, policy: Policy, random: Words | None, through: str) -> Codes:
    """Convert elements by a policy.

    A float narrower than the format `through` becomes that first, exactly, on its way to another narrow float. This
    matters for random rounding alone: what counts as below the smallest subnormal is judged there.
    """
    middle = FORMATS[through]
    floats = isinstance(src, FloatFormat) and isinstance(dst, FloatFormat)
    if random is not None and floats and max(src.bits, dst.bits) < middle.bits:
        codes, src = convert_codes(codes, src, middle, _EXACT), middle
    return convert_codes(codes, src, dst, policy, random=random)
