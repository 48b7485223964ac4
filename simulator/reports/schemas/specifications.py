"""The documents of `castsim targets` on specifications."""

from __future__ import annotations

from typing import ClassVar

from castsim.reports.schemas.keys import Form, Keys, Name, Scalar
from castsim.targets.description import Status


class Rule(Keys):
    """A rule that says which results are accepted."""

    name: str
    """Its name."""
    source: str
    """Where it is from."""
    status: Status
    """How well it is known."""
    note: str
    """What else is to be said; may be empty."""
    meaning: str
    """The rule in words."""
    accept: str
    """Form of the set: `exact`, `interval` and the like."""
    roundings: list[str]
    """The roundings of an exact rule."""
    overflow: str | None
    """The overflow policy of an exact rule; null if an attribute or the cast decides."""
    below_ulps: float
    """How far below the exact magnitude results may be."""
    above_ulps: float
    """How far above it."""
    beyond: str
    """What holds beyond the range."""
    undefined: list[str]
    """Sources for which every result is right."""
    flush_source: bool
    """Whether subnormal sources may be taken for 0."""
    flush_result: bool
    """Whether subnormal results may be 0."""
    zero_of_either_sign: bool
    """Whether the sign of 0 is free."""
    unclear_overflow: bool
    """Whether both orders of rounding and overflow are right."""


class SpecifiedPairs(Keys):
    """Type pairs that share a rule: every source with every destination."""

    src: list[str]
    """Names of the source formats."""
    dst: list[str]
    """Names of the destination formats."""
    since: str
    """The version that introduced them."""
    requires: list[str]
    """Profiles and extensions that they need."""
    when: dict[Name, Scalar]
    """The attribute values for which the rule holds."""
    rule: str
    """Name of the rule."""


class SpecifiedType(Keys):
    """A type."""

    name: str
    """Name of the format."""
    since: str
    """The version that introduced it."""


class AttributeEntry(Keys):
    """An attribute of the operator."""

    name: str
    """Its name."""
    source: str
    """Where it is from."""
    status: Status
    """How well it is known."""
    note: str
    """What else is to be said; may be empty."""
    values: list[Scalar]
    """Its values, the default first."""
    since: str
    """The version that introduced it."""
    effect: str
    """What it does."""
    meaning: str
    """The same in words."""


class RescaleRounding(Keys):
    """A rounding mode of RESCALE."""

    number: int
    """Its number."""
    requires: list[str]
    """Profiles and extensions that it needs."""
    wide_only: bool
    """Whether it needs the 32-bit multiplier."""


class Rescale(Keys):
    """The rules of RESCALE."""

    source: str
    """Where they are from."""
    status: Status
    """How well they are known."""
    note: str
    """What else is to be said; may be empty."""
    inputs: dict[Name, list[str]]
    """What each input type needs."""
    outputs: list[str]
    """The output types."""
    unsigned_types: list[str]
    """Types that may be unsigned."""
    wide_inputs: list[str]
    """Input types of the 32-bit multiplier."""
    any_zero_point: list[str]
    """Types with any zero point."""
    unsigned_zero_points: dict[Name, list[int]]
    """Zero points of types that have them only when unsigned."""
    wide_multiplier: str
    """Type of the wide multiplier."""
    narrow_multiplier: str
    """Type of the narrow multiplier."""
    shift_type: str
    """Type of the shift."""
    min_shift: int
    """The smallest shift."""
    max_shift: int
    """The largest shift."""
    double_round_above_shift: int
    """DOUBLE_ROUND rounds twice above this shift."""
    double_round_bit: int
    """At which bit it rounds first."""
    relative_errors: int
    """INEXACT_ROUND: how many units of error."""
    relative_error_exponent: int
    """The exponent of 2 of such a unit."""
    rounding_modes: dict[Name, RescaleRounding]
    """The rounding modes."""


class SpecificationDescription(Form):
    """One specification."""

    NAME: ClassVar[str] = "specification"

    name: str
    """Its name."""
    title: str
    """What it specifies."""
    kind: str
    """Always `specification`."""
    versions: list[str]
    """Its versions; these are names, `1.1`."""
    default_version: str
    """The one that is taken if none is named."""
    casts: int
    """How many type pairs it has."""
    pairs: list[SpecifiedPairs]
    """Its type pairs."""
    types: list[SpecifiedType]
    """Its types."""
    rules: list[Rule]
    """Its rules."""
    attributes: list[AttributeEntry]
    """Its attributes."""
    rescale: Rescale | None
    """Its RESCALE; null if it has none."""
    status: Status
    """How well the type pairs are known."""
    source: str
    """Where they are from."""


class PairRule(Rule):
    """A rule of a type pair."""

    since: str
    """The version that introduced it."""
    requires: list[str]
    """Profiles and extensions that it needs."""
    when: dict[Name, Scalar]
    """The attribute values for which it holds."""


class SpecificationPair(Form):
    """One type pair of a specification."""

    NAME: ClassVar[str] = "specification-pair"

    specification: str
    """Name of the specification."""
    src: str
    """The source as it was given."""
    dst: str
    """The destination as it was given."""
    rules: list[PairRule]
    """Its rules."""
