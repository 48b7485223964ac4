"""The conforming results of a cast, element by element."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, FloatFormat, Format, IntFormat
from castsim.isa.modes import Overflow, Rounding
from castsim.numerics import (
    Policy,
    abstract_policy,
    cast_codes,
    convert_codes,
    decode_to_float64,
    round_to_integral_codes,
)
from castsim.numerics.blocks import check_codes
from castsim.specifications.interval import interval_sets
from castsim.specifications.sets import AcceptanceSets, Mask, one_of
from castsim.specifications.specified import AttributeValue, SpecifiedCast, specified_cast
from castsim.targets import Specification
from castsim.targets.specification import Accept, Case


def acceptance(
    spec: Specification | SpecifiedCast | str | Path,
    src: Format | str,
    dst: Format | str,
    codes: Codes,
    *,
    version: str | int | None = None,
    attributes: Mapping[str, AttributeValue] | None = None,
) -> AcceptanceSets:
    """Return the acceptable results of a cast, one set per element.

    Args:
        spec: a specification, its name or path; or a cast that was looked up already, whose formats, version and
            attributes then count.
        src: format of the codes.
        dst: format of the results.
        codes: unsigned integers of `src`'s storage width, any shape.
        version: of the specification, for ONNX the opset; None: its default.
        attributes: of the cast operator.

    Raises:
        ReadError: an unknown name or value, or no codes of `src`.
        IllegalError: the specification does not have the cast, or it is one of text.
    """
    found = spec
    if not isinstance(found, SpecifiedCast):
        found = specified_cast(found, src, dst, version=version, attributes=attributes)
    if found.src is None or found.dst is None:
        raise IllegalError("casts of text have no codes on one side; see text_acceptance and accepts_text")
    codes = check_codes(codes, found.src)
    if found.rule.accept is Accept.INTERVAL:
        assert isinstance(found.dst, FloatFormat)  # the schema asks for it
        may_flush = found.spec.subnormals.may_flush if found.spec.subnormals else ()
        sets = interval_sets(codes, found.src, found.dst, found.rule, may_flush)
    else:
        sets = _exact(codes, found, found.src, found.dst)
    undefined = _undefined(codes, found, found.src, found.dst)
    return replace(sets, anything=undefined) if undefined.any() else sets


def accepts(
    spec: Specification | SpecifiedCast | str | Path,
    src: Format | str,
    dst: Format | str,
    in_codes: Codes,
    out_codes: Codes,
    *,
    version: str | int | None = None,
    attributes: Mapping[str, AttributeValue] | None = None,
) -> Mask:
    """Return a mask of the results that conform; parameters and errors as `acceptance`, results as codes of `dst`."""
    return acceptance(spec, src, dst, in_codes, version=version, attributes=attributes).contains(out_codes)


def exact_policies(cast: SpecifiedCast, src: Format, dst: Format) -> tuple[Policy, ...]:
    """Return the policies whose results an exact rule accepts.

    Raises:
        IllegalError: a rounding or overflow, given as attribute, that has no meaning for the pair.
    """
    chosen = {attribute.effect: cast.attributes[name] for name, attribute in cast.spec.attributes.items()}
    rounding, overflow = chosen.get("rounding", "default"), chosen.get("overflow", "default")
    roundings: tuple[Rounding | None, ...] = cast.rule.roundings or (
        None if rounding == "default" else Rounding(rounding),
    )
    result = cast.rule.overflow or (None if overflow == "default" else Overflow(overflow))
    return tuple(abstract_policy(src, dst, mode, result) for mode in roundings)


def _exact(codes: Codes, cast: SpecifiedCast, src: Format, dst: Format) -> AcceptanceSets:
    policies = exact_policies(cast, src, dst)
    sets = one_of(dst, *(convert_codes(codes, src, dst, policy) for policy in policies))
    if not cast.rule.unclear_overflow:
        return sets
    assert isinstance(dst, FloatFormat)
    return _either_order(codes, src, dst, policies[0], sets)


def _either_order(codes: Codes, src: Format, dst: FloatFormat, policy: Policy, sets: AcceptanceSets) -> AcceptanceSets:
    """Accept the largest number as well as NaN where only rounding brings a source down to it.

    A further exponent bit shows to which power the source rounds.
    """
    wide = replace(dst, name=f"{dst.name} widened", exponent_bits=dst.exponent_bits + 1)
    rounded = cast_codes(codes, src, wide, policy)
    reached = sets.nan & (rounded == dst.max_finite_code)
    largest = np.where(reached, sets.lowest.dtype.type(dst.max_finite_code), sets.lowest)
    return replace(sets, lowest=largest, highest=largest, further=largest, numbers=sets.numbers | reached)


def _undefined(codes: Codes, cast: SpecifiedCast, src: Format, dst: Format) -> Mask:
    cases = cast.rule.undefined
    undefined = np.zeros(codes.shape, bool)
    if not cases:
        return undefined
    # Float64 holds all floats, and of integers at least the sign; only floats have the other cases.
    values = decode_to_float64(codes, src)
    if Case.NAN in cases:
        undefined |= np.isnan(values)
    if Case.INFINITE in cases:
        undefined |= np.isinf(values)
    if Case.NEGATIVE in cases:
        undefined |= values < 0
    if Case.NEGATIVE_ZERO in cases:
        undefined |= (values == 0) & np.signbit(values)
    if Case.OUT_OF_RANGE in cases and isinstance(dst, IntFormat) and not isinstance(src, IntFormat):
        for policy in exact_policies(cast, src, dst):
            undefined |= _out_of_range(values, policy.rounding, dst)
    return undefined


def _out_of_range(values: NDArray[np.float64], rounding: Rounding, dst: IntFormat) -> Mask:
    """Return a mask of the numbers that round to integers beyond the destination; its bounds are exact.

    Rounding moves a number by less than 1, so only those within 1 of a bound have to be rounded.
    """
    lowest, beyond = float(dst.minimum), float(dst.maximum + 1)
    with np.errstate(invalid="ignore"):  # signalling NaNs among the sources
        near = (np.abs(values - lowest) <= 1) | (np.abs(values - beyond) <= 1)
    rounded = values.copy()
    policy = Policy(rounding, Overflow.SPECIAL)
    rounded[near] = round_to_integral_codes(values[near].view(np.uint64), FORMATS["f64"], policy).view(np.float64)
    out: Mask = (rounded < lowest) | (rounded >= beyond)
    return out & np.isfinite(values)
