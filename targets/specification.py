"""Schema of specifications: legal casts, and their acceptable results.

A specification is not a chip. It has versions, attributes of its cast operator, a table of legal casts and named rules
of acceptance: exact (one result), interval (in units in the last place), class (any NaN), any (undefined).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from decimal import Decimal
from enum import StrEnum
from itertools import product
from typing import Annotated, Literal

from castsim.isa.formats import DETERMINISTIC, FORMATS, FloatFormat, IntFormat, Overflow, Rounding
from castsim.targets.description import Fact, Table, TargetKind, Words
from castsim.targets.validated import BeforeValidator, Field, model_validator

TEXT = "string"
"""Name of the text type among the types of casts; it is not a number format."""

ALL = "all"
"""Word for every number format."""


class Accept(StrEnum):
    """The form of a rule."""

    EXACT = "exact"
    """The results of `roundings`, usually a single one."""
    INTERVAL = "interval"
    """Results from `below_ulps` below to `above_ulps` above the exact magnitude, with its sign."""
    TEXT = "text"
    """Numbers written as text, or text read as a number."""


class Case(StrEnum):
    """Sources for which a rule may leave the result undefined."""

    NAN = "nan"
    INFINITE = "infinite"
    OUT_OF_RANGE = "out_of_range"
    """The rounded number is beyond the integer destination."""
    NEGATIVE = "negative"
    """The number is below zero."""
    NEGATIVE_ZERO = "negative_zero"


class Beyond(StrEnum):
    """The overflow rule of an interval."""

    AFTER_ROUNDING = "after_rounding"
    """A source beyond the range is first rounded to one of its two neighbours; one beyond the range overflows."""
    INTERVAL_END = "interval_end"
    """Overflow is acceptable as soon as the interval reaches beyond the range."""


Version = Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, int) else value)]
Ulps = Annotated[Decimal, Field(ge=0, le=1)]


class AcceptanceRule(Fact):
    """A rule that defines which results of a cast conform.

    `roundings` and `overflow` belong to an exact rule; without them, the attributes with that effect or the abstract
    cast decide. NaN conforms as any NaN. `undefined` lists sources for which every result conforms. `flush_source`
    and `flush_result` allow zero with the sign for subnormal sources and for results below the smallest normal number,
    in the formats that the specification names. `unclear_overflow` accepts a result under both orders of rounding and
    overflow. `zero_of_either_sign` applies to a zero source. `keep_infinity`: infinity is not clamped, and is NaN in a
    format without infinity.
    """

    meaning: Annotated[str, Field(min_length=1)]
    accept: Accept
    roundings: tuple[Rounding, ...] = ()
    overflow: Overflow | None = None
    below_ulps: Ulps = Decimal(0)
    above_ulps: Ulps = Decimal(0)
    beyond: Beyond = Beyond.AFTER_ROUNDING
    undefined: tuple[Case, ...] = ()
    flush_source: bool = False
    flush_result: bool = False
    zero_of_either_sign: bool = False
    keep_infinity: bool = False
    unclear_overflow: bool = False

    @model_validator(mode="after")
    def _fits_its_form(self) -> AcceptanceRule:
        if self.accept is Accept.INTERVAL:
            if self.roundings or self.overflow or self.unclear_overflow or self.keep_infinity:
                raise ValueError("an interval has no roundings, overflow, keep_infinity or unclear_overflow")
            if self.below_ulps not in (0, Decimal("0.5"), 1) or self.above_ulps not in (0, Decimal("0.5")):
                raise ValueError("below_ulps must be 0, 0.5 or 1 and above_ulps 0 or 0.5")
        elif self.below_ulps or self.above_ulps or self.flush_source or self.flush_result or self.zero_of_either_sign:
            raise ValueError("below_ulps, above_ulps, flush_* and zero_of_either_sign belong to intervals")
        if len(self.roundings) > 1 and self.accept is Accept.TEXT:
            raise ValueError("casts from text take exactly one rounding")
        if not set(self.roundings) <= set(DETERMINISTIC):
            raise ValueError(f"roundings must be among {', '.join(DETERMINISTIC)}")
        return self


class CastAttribute(Fact):
    """An attribute of the cast operator: its legal values, the default first, and its first version."""

    values: Annotated[tuple[int | str, ...], Field(min_length=1)]
    since: Version
    effect: Literal["selects the rule", "reads the source as unsigned", "rounding", "overflow"]
    meaning: Annotated[str, Field(min_length=1)]

    @property
    def default(self) -> str:
        """The default value."""
        return str(self.values[0])


class Versions(Fact):
    """Versions in order, the default, and whether numbers between two of them mean the lower."""

    known: Annotated[tuple[Version, ...], Field(min_length=1)]
    default: Version
    between: bool = False

    @model_validator(mode="after")
    def _default_is_known(self) -> Versions:
        if self.default not in self.known:
            raise ValueError(f"default {self.default!r} is not among {list(self.known)}")
        return self


class TypeRow(Table):
    """A type and the version that introduced it."""

    name: str
    since: Version


class LegalCasts(Table):
    """Legal casts from every type of `src` to every other type of `dst`, names or classes.

    `requires` are profiles or extensions, all needed; `when` restricts the row to values of attributes. `until` is the
    first version for which another row has the rule.
    """

    src: Words
    dst: Words
    since: Version
    until: Version | None = None
    requires: Words = ()
    rule: str
    when: Mapping[str, str] | None = None


class Subnormals(Fact):
    """Formats whose subnormal numbers an implementation may flush to zero."""

    may_flush: tuple[str, ...]


class RescaleRounding(Table):
    """A rounding mode of RESCALE: its number, the extension it needs, whether it needs the 32-bit multiplier."""

    number: int
    requires: Words = ()
    wide_only: bool = False


class RescaleRules(Fact):
    """The rules of TOSA RESCALE."""

    inputs: dict[str, Words]
    """Input types and the profile or extension each needs."""
    outputs: tuple[str, ...]
    unsigned_types: tuple[str, ...]
    """Types whose values may be read or written as unsigned, never on both sides at once."""
    wide_inputs: tuple[str, ...]
    """Input types that the 32-bit multiplier supports."""
    any_zero_point: tuple[str, ...]
    unsigned_zero_points: dict[str, tuple[int, ...]]
    """Zero points of types that have them only when unsigned."""
    wide_multiplier: str
    narrow_multiplier: str
    shift_type: str
    min_shift: int
    max_shift: int
    double_round_above_shift: int
    double_round_bit: int
    relative_errors: int
    relative_error_exponent: int
    """INEXACT_ROUND: half a unit plus `relative_errors` * 2**`relative_error_exponent` of the exact result."""
    rounding_modes: dict[str, RescaleRounding]


class Specification(Table):
    """A loaded specification."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    title: str
    kind: Literal[TargetKind.SPECIFICATION]
    same_type: bool
    """Whether a type may be cast to itself."""
    versions: Versions
    classes: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    types: tuple[TypeRow, ...] = ()
    types_fact: Fact | None = None
    casts: tuple[LegalCasts, ...]
    casts_fact: Fact
    rules: dict[str, AcceptanceRule]
    attributes: dict[str, CastAttribute] = Field(default_factory=dict)
    subnormals: Subnormals | None = None
    rescale: RescaleRules | None = None

    def members(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the types of names and classes."""
        formats: dict[str, None] = {}
        for name in names:
            formats.update(dict.fromkeys(tuple(FORMATS) if name == ALL else self.classes.get(name, (name,))))
        return tuple(formats)

    def pairs(self, row: LegalCasts) -> Iterator[tuple[str, str]]:
        """Yield the (source, destination) pairs of a row."""
        for src, dst in product(self.members(row.src), self.members(row.dst)):
            if self.same_type or src != dst:
                yield src, dst

    def rank(self, version: str) -> int:
        """Return the rank of a version."""
        return self.versions.known.index(version)

    def in_force(self, row: LegalCasts, src: str, dst: str, version: str) -> bool:
        """Return whether a row has the rule of one of its pairs in a version."""
        ended = row.until is not None and self.rank(row.until) <= self.rank(version)
        return self.rank(self.since(row, src, dst)) <= self.rank(version) and not ended

    def since(self, row: LegalCasts, src: str, dst: str) -> str:
        """Return the first version in which a pair has the rule of a row."""
        introduced = {entry.name: entry.since for entry in self.types}
        first = [row.since, *(introduced[name] for name in (src, dst) if name in introduced)]
        return max(first, key=self.rank)

    def legal_since(self, src: str, dst: str) -> str | None:
        """Return the first version in which a pair is legal; None if it never is."""
        first = [self.since(row, src, dst) for row in self.casts if (src, dst) in self.pairs(row)]
        return min(first, key=self.rank, default=None)

    @model_validator(mode="after")
    def _names_exist(self) -> Specification:
        legal = {*FORMATS, TEXT}
        used = [name for row in self.casts for name in self.members((*row.src, *row.dst))]
        used += [entry.name for entry in self.types]
        for name in (*used, *(self.subnormals.may_flush if self.subnormals else ())):
            if name not in legal:
                raise ValueError(f"'{name}' is not a format or a class of this file")
        introduced = {entry.name for entry in self.types}
        if introduced and (stray := sorted(set(used) - introduced)):
            raise ValueError(f"types {', '.join(stray)} appear in casts but not in the table of types")
        versions = {*(row.since for row in self.casts), *(entry.since for entry in self.types)}
        versions |= {attribute.since for attribute in self.attributes.values()}
        ends = {row.until for row in self.casts if row.until is not None}
        for word, named in (("since", versions), ("until", ends)):
            if stray := sorted(named - set(self.versions.known)):
                raise ValueError(f"{word} {', '.join(stray)} is not a known version")
        return self

    @model_validator(mode="after")
    def _rules_fit(self) -> Specification:
        named = {row.rule for row in self.casts}
        if named != set(self.rules):
            raise ValueError(f"rules and casts do not match: {', '.join(sorted(named ^ set(self.rules)))}")
        for row in self.casts:
            rule = self.rules[row.rule]
            for src, dst in self.pairs(row):
                if (TEXT in (src, dst)) != (rule.accept is Accept.TEXT):
                    raise ValueError(f"{src} -> {dst}: rule {row.rule} is of the form {rule.accept}")
                target = FORMATS.get(dst)
                if rule.accept is Accept.INTERVAL and not (isinstance(target, FloatFormat) and target.has_zero):
                    raise ValueError(f"{src} -> {dst}: rule {row.rule} needs a float destination with zero")
                if Case.OUT_OF_RANGE in rule.undefined and not isinstance(target, IntFormat):
                    raise ValueError(f"{src} -> {dst}: rule {row.rule} needs an integer destination")
        return self

    @model_validator(mode="after")
    def _one_row_per_cast(self) -> Specification:
        rows = defaultdict(list)
        for row in self.casts:
            for name, value in (row.when or {}).items():
                if name not in self.attributes or value not in map(str, self.attributes[name].values):
                    raise ValueError(f"when {name}={value}: unknown attribute or value")
            for pair in self.pairs(row):
                rows[pair].append(row)
        for (src, dst), candidates in rows.items():
            names = sorted({name for row in candidates for name in row.when or {}})
            for values in product(*(map(str, self.attributes[name].values) for name in names)):
                setting = dict(zip(names, values, strict=True))
                matching = [row for row in candidates if (row.when or {}).items() <= setting.items()]
                matching.sort(key=lambda row: self.rank(row.since))
                # Each row ends where the next begins, and the last does not end.
                ends, begins = [row.until for row in matching], [row.since for row in matching[1:]]
                if ends != [*begins, None]:
                    raise ValueError(f"{src} -> {dst} with {setting or 'no attributes'}: {len(matching)} rows of casts")
        return self
