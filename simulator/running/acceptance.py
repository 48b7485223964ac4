"""The conforming results of a cast, element by element."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import (
    FORMATS,
    Codes,
    FloatFormat,
    Format,
    IntFormat,
    Overflow,
    Rounding,
    Specials,
    TaperedFormat,
    code_bits,
    format_named,
)
from castsim.numerics.blocks import check_codes, code_dtype
from castsim.numerics.cast import cast_codes, round_to_integral_codes
from castsim.numerics.codec import decode_to_float64
from castsim.numerics.pack import tapered_tables
from castsim.numerics.policy import Policy, abstract_policy
from castsim.numerics.tables import table_size
from castsim.numerics.tiers import Tier, convert_codes
from castsim.targets.loader import load_specification
from castsim.targets.specification import TEXT, Accept, AcceptanceRule, Beyond, Case, LegalCasts, Specification

# The order of codes by value.

Keys = NDArray[np.int64]


def order_keys(codes: Codes, fmt: Format) -> Keys:
    """Return integers in the order of the numbers that codes represent, consecutive where the numbers are.

    Minus zero comes right before zero, infinity right after the largest number. Keys of NaN are meaningless.
    """
    wide = codes.astype(np.uint64)
    if isinstance(fmt, IntFormat):
        if not fmt.signed:
            return (wide ^ np.uint64(1 << 63)).view(np.int64)
        left = np.uint64(64 - code_bits(fmt))
        return (wide << left).view(np.int64) >> left.astype(np.int64)
    sign = np.uint64(fmt.sign_bit)
    magnitude = wide & ~sign
    position = _places(fmt)[magnitude] if isinstance(fmt, TaperedFormat) else magnitude.view(np.int64)
    return np.where((wide & sign) != 0, -1 - position, position)


def is_nan(codes: Codes, fmt: Format) -> NDArray[np.bool_]:
    """Return a mask of the codes that are NaN."""
    if isinstance(fmt, IntFormat) or not fmt.has_nan:
        return np.zeros(codes.shape, bool)
    nan: NDArray[np.bool_]
    if isinstance(fmt, FloatFormat) and fmt.infinity_code is not None:  # all magnitudes beyond infinity's
        nan = (codes & (fmt.sign_bit - 1)) > fmt.infinity_code
    else:
        nan = np.isnan(decode_to_float64(codes, fmt))
    return nan


@lru_cache(maxsize=8)
def _places(fmt: TaperedFormat) -> Keys:
    """Return the rank of every code without sign among the positive numbers; code 0 has rank 0."""
    significand, exponent = tapered_tables(fmt)
    places = np.empty(significand.size, np.int64)
    places[np.lexsort((significand, exponent))] = np.arange(significand.size)
    return places


# Sets of acceptable results, one per element.

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class AcceptanceSets:
    """The acceptable results of a cast to `dst`, one set per element; all arrays have the shape of the source.

    Where `anything`, every code is acceptable. Otherwise, where `numbers`, those from `lowest` to `highest` in order
    of their values (minus zero before zero, infinity after the largest number), and `further`, which is one of them or
    one additional code. Where `nan`, every NaN.
    """

    dst: Format
    lowest: Codes
    highest: Codes
    further: Codes
    numbers: Mask
    nan: Mask
    anything: Mask

    def contains(self, codes: Codes) -> Mask:
        """Return a mask of the codes in the set of their element.

        Raises:
            ReadError: the codes are not those of the destination, or have another shape.
        """
        codes = check_codes(codes, self.dst)
        if codes.shape != self.lowest.shape:
            raise ReadError(f"results of shape {codes.shape} for sources of shape {self.lowest.shape}")
        nan = is_nan(codes, self.dst)
        inside = codes == self.further
        if self.lowest is not self.highest or self.highest is not self.further:  # else one code is accepted
            keys = order_keys(codes, self.dst)
            inside |= (order_keys(self.lowest, self.dst) <= keys) & (keys <= order_keys(self.highest, self.dst))
        number = self.numbers & inside & ~nan
        accepted: Mask = number | (self.nan & nan) | self.anything
        return accepted

    @property
    def single(self) -> Mask:
        """A mask of the sets with a single code."""
        single_number = self.numbers & (self.lowest == self.highest) & (self.further == self.lowest)
        alone: Mask = single_number & ~self.nan & ~self.anything
        return alone


def one_of(dst: Format, first: Codes, *others: Codes) -> AcceptanceSets:
    """Return the sets from the lowest to the highest of several results; NaN means any NaN."""
    if not others:
        nan = is_nan(first, dst)
        return AcceptanceSets(dst, first, first, first, ~nan, nan, np.zeros(first.shape, bool))
    results = [first, *others]
    nans = [is_nan(codes, dst) for codes in results]
    nan = np.logical_or.reduce(nans)
    numbers = ~np.logical_and.reduce(nans)
    limits = np.iinfo(np.int64)
    low = np.min(
        [np.where(mask, limits.max, order_keys(codes, dst)) for codes, mask in zip(results, nans, strict=True)], 0
    )
    high = np.max(
        [np.where(mask, limits.min, order_keys(codes, dst)) for codes, mask in zip(results, nans, strict=True)], 0
    )
    lowest, highest = first.copy(), first.copy()
    for codes, mask in zip(results, nans, strict=True):
        keys = order_keys(codes, dst)
        np.copyto(lowest, codes, where=~mask & (keys == low))
        np.copyto(highest, codes, where=~mask & (keys == high))
    return AcceptanceSets(dst, lowest, highest, lowest, numbers, nan, np.zeros(first.shape, bool))


def converted(codes: Codes, src: Format, dst: Format, policy: Policy) -> Codes:
    """Return codes of `dst` for codes of `src`, without machine code.

    Planning converts some millions of codes by dozens of policies: less than loading the machine code takes.
    """
    if codes.size > 1 << 20:  # some tens of milliseconds
        return convert_codes(codes, src, dst, policy)
    entries = table_size(src, dst, policy)
    tier = Tier.TABLE if entries is not None and entries <= codes.size else Tier.REFERENCE
    return convert_codes(codes, src, dst, policy, tier=tier)


# One cast of a specification: its row, its rule and the attributes in force.

AttributeValue = str | int


@dataclass(frozen=True, slots=True)
class SpecifiedCast:
    """A legal cast: formats (None: text), the rule named `rule_name` and all attributes in force.

    `since` is the first version that has the pair, `requires` are all profiles and extensions that it needs.
    """

    spec: Specification
    version: str
    src: Format | None
    dst: Format | None
    rule_name: str
    since: str
    requires: tuple[str, ...]
    attributes: Mapping[str, str]

    @property
    def rule(self) -> AcceptanceRule:
        """The rule that defines the conforming results."""
        return self.spec.rules[self.rule_name]

    @property
    def label(self) -> str:
        """Name, version and the attributes that differ from their defaults: `onnx@24:saturate=0`."""
        changed = [
            f":{name}={value}" for name, value in self.attributes.items() if value != self.spec.attributes[name].default
        ]
        return f"{self.spec.name}@{self.version}{''.join(changed)}"


def parse_specification(text: str) -> tuple[Specification, str | None, dict[str, str]]:
    """Read `NAME[@VERSION][:ATTRIBUTE=VALUE]...`, NAME a shipped specification or the path of one.

    Raises:
        ReadError: the name is unknown, or attributes are malformed; versions and values are checked with a cast.
    """
    head, *settings = text.strip().split(":")
    name, at, version = head.partition("@")
    attributes: dict[str, str] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key or not value or key in attributes:
            raise ReadError(f"'{setting}' in '{text}' sets no attribute", legal=("NAME@VERSION:ATTRIBUTE=VALUE:...",))
        attributes[key] = value
    if at and not version:
        raise ReadError(f"'{text}' does not name a version", legal=("NAME@VERSION",))
    return load_specification(name), version or None, attributes


def specified_cast(
    spec: Specification | str | Path,
    src: Format | str,
    dst: Format | str,
    *,
    version: str | int | None = None,
    attributes: Mapping[str, AttributeValue] | None = None,
) -> SpecifiedCast:
    """Look up a cast.

    Args:
        spec: a loaded specification, its name or its path.
        src: format of the sources, or `string`.
        dst: format of the results, or `string`.
        version: version of the specification, for ONNX the opset; None: its default.
        attributes: attributes of the cast operator, by name; the others have their defaults.

    Raises:
        ReadError: a specification, format, version, attribute or value is unknown.
        IllegalError: the version lacks the cast or the attribute; the message lists the legal destinations.
    """
    specification = load_specification(spec) if isinstance(spec, str | Path) else spec
    chosen = _version(specification, version)
    values = _attributes(specification, chosen, attributes or {})
    names = _type_name(src), _type_name(dst)
    source: Format | None = None if names[0] == TEXT else _format(src)
    row = _row(specification, chosen, *names, values)
    if any(
        values[name] == "1"
        for name in [
            name for name, row in specification.attributes.items() if row.effect == "reads the source as unsigned"
        ]
    ):
        source = _unsigned(specification, source)
    return SpecifiedCast(
        spec=specification,
        version=chosen,
        src=source,
        dst=None if names[1] == TEXT else _format(dst),
        rule_name=row.rule,
        since=specification.legal_since(*names) or row.since,
        requires=row.requires,
        attributes=values,
    )


def _type_name(fmt: Format | str) -> str:
    if isinstance(fmt, str):
        return TEXT if fmt.strip().lower() == TEXT else format_named(fmt).name
    return fmt.name


def _format(fmt: Format | str) -> Format:
    return format_named(fmt) if isinstance(fmt, str) else fmt


def _version(spec: Specification, version: str | int | None) -> str:
    versions = spec.versions.known
    if version is None:
        return spec.versions.default
    text = str(version)
    if text in versions:
        return text
    if spec.versions.between and text.isdecimal() and int(versions[0]) <= int(text) <= int(versions[-1]):
        return max((name for name in versions if int(name) <= int(text)), key=int)
    raise ReadError(f"{spec.name} has no version '{text}'", legal=versions)


def _attributes(spec: Specification, version: str, given: Mapping[str, AttributeValue]) -> dict[str, str]:
    for name, value in given.items():
        if name not in spec.attributes:
            raise ReadError(f"{spec.name} has no attribute '{name}'", legal=spec.attributes)
        attribute = spec.attributes[name]
        if str(value) not in map(str, attribute.values):
            raise ReadError(f"attribute {name} cannot be '{value}'", legal=map(str, attribute.values))
        if spec.rank(attribute.since) > spec.rank(version):
            raise IllegalError(f"{spec.name} {version} has no attribute {name}; it was added in {attribute.since}")
    return {name: str(given.get(name, attribute.default)) for name, attribute in spec.attributes.items()}


def _row(spec: Specification, version: str, src: str, dst: str, attributes: Mapping[str, str]) -> LegalCasts:
    for row in spec.casts:
        if (src, dst) not in spec.pairs(row) or not (row.when or {}).items() <= attributes.items():
            continue
        if spec.in_force(row, src, dst, version):
            return row
    later = spec.legal_since(src, dst)
    casts = dict.fromkeys(
        other
        for row in spec.casts
        for source, other in spec.pairs(row)
        if source == src and spec.rank(spec.since(row, src, other)) <= spec.rank(version)
    )
    hint = f"; it came with {later}" if later else ""
    raise IllegalError(f"{spec.name} {version} has no cast {src} -> {dst}{hint}", legal=casts)


def _unsigned(spec: Specification, src: Format | None) -> Format:
    if not isinstance(src, IntFormat) or not src.signed:
        name = "text" if src is None else src.name
        raise IllegalError(f"{spec.name}: {name} cannot be read as unsigned", legal=("signless integers",))
    return FORMATS[src.name.replace("i", "u", 1)]


# Results that lie within a distance of the exact value, in units in the last place (ulps).

_I64 = NDArray[np.int64]
_HALF = Decimal("0.5")


@dataclass(frozen=True, slots=True)
class _Magnitudes:
    """Exact magnitudes against the destination's numbers.

    `below` is the code of the number at or below, counted on beyond the largest as if exponents had no end. `rest` is
    the way from there to the next number: 0 none, 1 less than half, 2 half, 3 more than half.
    """

    below: _I64
    rest: _I64


def interval_sets(
    codes: Codes, src: Format, dst: FloatFormat, rule: AcceptanceRule, may_flush: tuple[str, ...]
) -> AcceptanceSets:
    """Return the acceptable results of an interval rule; NaN sources give any NaN."""
    negative, magnitude, fmt = _split(codes, src)
    nan, infinite = _specials(codes, src)
    exact = _against(magnitude, fmt, dst)
    low, high, overflows = _ends(exact, dst, rule)
    low, high = np.where(infinite, dst.max_finite_code + 1, low), np.where(infinite, dst.max_finite_code + 1, high)
    overflows = overflows | infinite
    numbers, not_a_number = ~nan, nan
    largest = dst.max_finite_code
    if dst.has_infinity:
        largest += 1  # the code after the largest finite number
        high = np.where(overflows, largest, high)
    elif dst.has_nan:
        not_a_number = nan | overflows
        numbers = numbers & (low <= largest)
    else:
        high = np.where(overflows, largest, high)
    low, high = np.minimum(low, largest), np.minimum(high, largest)
    sign = np.where(negative, np.int64(dst.sign_bit), np.int64(0))
    lowest, highest = np.where(negative, high, low) | sign, np.where(negative, low, high) | sign
    further = lowest
    flushed = ~nan & ~infinite & _flushed(exact, magnitude, fmt, src, dst, rule, may_flush)
    further = np.where(flushed, sign, further)
    if rule.zero_of_either_sign:
        further = np.where((exact.below == 0) & (exact.rest == 0) & ~nan, np.int64(dst.sign_bit), further)
    dtype = code_dtype(dst)
    return AcceptanceSets(
        dst=dst,
        lowest=lowest.astype(dtype),
        highest=highest.astype(dtype),
        further=further.astype(dtype),
        numbers=numbers,
        nan=not_a_number,
        anything=np.zeros(codes.shape, bool),
    )


def _split(codes: Codes, src: Format) -> tuple[Mask, Codes, Format]:
    """Return signs, and magnitudes as codes of a format."""
    if isinstance(src, IntFormat):
        if not src.signed:
            return np.zeros(codes.shape, bool), codes, src
        values = order_keys(codes, src)
        negative = values < 0
        return (
            negative,
            np.where(negative, np.uint64(0) - values.view(np.uint64), values.view(np.uint64)),
            FORMATS["u64"],
        )
    sign = codes.dtype.type(src.sign_bit)
    return (codes & sign) != 0, codes & ~sign, src


def _specials(codes: Codes, src: Format) -> tuple[Mask, Mask]:
    if isinstance(src, IntFormat):
        return np.zeros(codes.shape, bool), np.zeros(codes.shape, bool)
    values = decode_to_float64(codes, src)
    return np.isnan(values), np.isinf(values)


def _against(magnitude: Codes, fmt: Format, dst: FloatFormat) -> _Magnitudes:
    """Place magnitudes among the destination's numbers.

    They are cast to the destination widened by an exponent bit, so overflow keeps its position, and by two
    fraction bits, rounding to odd: these are then zero, below half, half or above half. Codes of the widened format
    without those two bits are codes of the destination.
    """
    wide = replace(
        dst,
        name=f"{dst.name} widened",
        exponent_bits=dst.exponent_bits + 1,
        fraction_bits=dst.fraction_bits + 2,
        specials=Specials.NONE,
        nan_override=None,
    )
    odd = cast_codes(magnitude, fmt, wide, Policy(Rounding.ODD, Overflow.SATURATE)).astype(np.int64)
    return _Magnitudes(below=odd >> 2, rest=odd & 3)


def _ends(exact: _Magnitudes, dst: FloatFormat, rule: AcceptanceRule) -> tuple[_I64, _I64, Mask]:
    """Return codes of the smallest and the largest acceptable magnitude, and where overflow is acceptable."""
    below, rest, largest = exact.below, exact.rest, dst.max_finite_code
    low = _low_end(exact, dst, rule.below_ulps)
    high = below + (rest >= 2) if rule.above_ulps == _HALF else below
    if rule.beyond is Beyond.INTERVAL_END:
        reached = rest != 2 if rule.above_ulps == _HALF else rest != 0  # beyond `high`, not on it
        return low, high, (high > largest) | ((high == largest) & reached)
    beyond = (below > largest) | ((below == largest) & (rest != 0))
    return np.where(beyond, below, low), high, high > largest


def _low_end(exact: _Magnitudes, dst: FloatFormat, ulps: Decimal) -> _I64:
    """Return the code of the smallest number within `ulps` below.

    Below a power of two numbers are half as far apart, except at the smallest normal one.
    """
    below, rest = exact.below, exact.rest
    power = ((below & dst.fraction_mask) == 0) & (below >> dst.fraction_bits > 1)
    if ulps == 1:
        low = below - 1 + (rest != 0) - (power & (rest <= 2))
    elif ulps == _HALF:
        low = below + (rest == 3) - (power & (rest == 0))
    else:
        low = below + (rest != 0)
    ends: _I64 = np.maximum(low, 0)
    return ends


def _flushed(
    exact: _Magnitudes,
    magnitude: Codes,
    fmt: Format,
    src: Format,
    dst: FloatFormat,
    rule: AcceptanceRule,
    may_flush: tuple[str, ...],
) -> Mask:
    """Return a mask of the elements where zero is acceptable because a subnormal source or result may be flushed."""
    flushed = np.zeros(magnitude.shape, bool)
    if rule.flush_source and src.name in may_flush and isinstance(fmt, FloatFormat):
        flushed |= magnitude >> fmt.fraction_bits == 0
    if rule.flush_result and dst.name in may_flush:
        flushed |= exact.below >> dst.fraction_bits == 0
    return flushed


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
        spec: a specification, its name or its path; or a cast from `specified_cast`, whose formats, version and
            attributes take precedence.
        src: format of the codes.
        dst: format of the results.
        codes: unsigned integers of `src`'s storage width, any shape.
        version: version of the specification, for ONNX the opset; None: its default.
        attributes: attributes of the cast operator.

    Raises:
        ReadError: a name or value is unknown, or the codes are not those of `src`.
        IllegalError: the specification lacks the cast, or it is a cast of text.
    """
    specified = spec
    if not isinstance(specified, SpecifiedCast):
        specified = specified_cast(specified, src, dst, version=version, attributes=attributes)
    if specified.src is None or specified.dst is None:
        raise IllegalError("a cast from or to text has no codes on one side")
    codes = check_codes(codes, specified.src)
    if specified.rule.accept is Accept.INTERVAL:
        assert isinstance(specified.dst, FloatFormat)  # the schema asks for it
        may_flush = specified.spec.subnormals.may_flush if specified.spec.subnormals else ()
        sets = interval_sets(codes, specified.src, specified.dst, specified.rule, may_flush)
    else:
        sets = _exact(codes, specified, specified.src, specified.dst)
    undefined = _undefined(codes, specified, specified.src, specified.dst)
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
    """Return a mask of the conforming results, given as codes of `dst`; for parameters and errors see `acceptance`."""
    return acceptance(spec, src, dst, in_codes, version=version, attributes=attributes).contains(out_codes)


def exact_policies(cast: SpecifiedCast, src: Format, dst: Format) -> tuple[Policy, ...]:
    """Return the policies whose results an exact rule accepts.

    Raises:
        IllegalError: a rounding or overflow attribute does not apply to the pair.
    """
    chosen = {attribute.effect: cast.attributes[name] for name, attribute in cast.spec.attributes.items()}
    rounding, overflow = chosen.get("rounding", "default"), chosen.get("overflow", "default")
    roundings: tuple[Rounding | None, ...] = cast.rule.roundings or (
        None if rounding == "default" else Rounding(rounding),
    )
    result = cast.rule.overflow or (None if overflow == "default" else Overflow(overflow))
    policies = (abstract_policy(src, dst, mode, result) for mode in roundings)
    return tuple(replace(policy, keep_infinity=cast.rule.keep_infinity) for policy in policies)


def _exact(codes: Codes, cast: SpecifiedCast, src: Format, dst: Format) -> AcceptanceSets:
    policies = exact_policies(cast, src, dst)
    sets = one_of(dst, *(converted(codes, src, dst, policy) for policy in policies))
    if not cast.rule.unclear_overflow:
        return sets
    assert isinstance(dst, FloatFormat)
    return _either_order(codes, src, dst, policies[0], sets)


def _either_order(codes: Codes, src: Format, dst: FloatFormat, policy: Policy, sets: AcceptanceSets) -> AcceptanceSets:
    """Accept both the largest number and NaN where only rounding reduces a source to the largest number.

    An additional exponent bit shows the power to which the source rounds.
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
