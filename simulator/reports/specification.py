"""The reports on specifications as JSON and as text: the list, one with its casts and rules, one type pair in full."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from castsim.isa.errors import IllegalError
from castsim.isa.formats import format_named
from castsim.reports.documents import CommandDocument, Document, Keys, numbered, says
from castsim.reports.schemas.keys import Name, Scalar
from castsim.targets.description import Status
from castsim.targets.specification import TEXT, AcceptanceRule, Specification

_ACRONYMS = {"tosa", "onnx", "ocp"}


@dataclass(frozen=True, slots=True)
class LegalPair:
    """One way in which a pair is legal: since when, what it needs, under which attribute values, by which rule."""

    since: str
    requires: tuple[str, ...]
    when: Mapping[str, str]
    name: str
    rule: AcceptanceRule


def specification_words(label: str) -> str:
    """Return a specification in words: `tosa@1.1:input_unsigned=1` is TOSA 1.1 with input_unsigned=1."""
    named, _, further = label.partition(" ")
    head, *attributes = named.split(":")
    name, _, version = head.partition("@")
    name = name.upper() if name in _ACRONYMS else name
    given = f" with {', '.join(attributes)}" if attributes else ""
    return f"{name} {version}".rstrip() + given + (f", {further}" if further else "")


def _casts(spec: Specification) -> int:
    return len({pair for row in spec.casts for pair in spec.pairs(row)})


class SpecificationHeader(Keys):
    """A specification in the list."""

    name: str = says("Its name.")
    title: str = says("What it specifies.")
    kind: str = says("Always `specification`.")
    versions: list[str] = says("Its versions; these are names, `1.1`.", "versions.known")
    default_version: str = says("The one that is taken if none is named.", "versions.default")
    casts: int = says(of=_casts)
    """How many type pairs it has."""


class Rule(Keys):
    """A rule that says which results are accepted."""

    name: str = says("Its name.")
    source: str = says("Where it is from.")
    status: Status = says("How well it is known.")
    note: str = says("What else is to be said; may be empty.")
    meaning: str = says("The rule in words.")
    accept: str = says("Form of the set: `exact`, `interval` and the like.")
    roundings: list[str] = says("The roundings of an exact rule.")
    overflow: str | None = says("The overflow policy of an exact rule; null if an attribute or the cast decides.")
    below_ulps: float = says("How far below the exact magnitude results may be.", lambda rule: float(rule.below_ulps))
    above_ulps: float = says("How far above it.", lambda rule: float(rule.above_ulps))
    beyond: str = says("What holds beyond the range.")
    undefined: list[str] = says("Sources for which every result is right.")
    flush_source: bool = says("Whether subnormal sources may be taken for 0.")
    flush_result: bool = says("Whether subnormal results may be 0.")
    zero_of_either_sign: bool = says("Whether the sign of 0 is free.")
    unclear_overflow: bool = says("Whether both orders of rounding and overflow are right.")


class SpecifiedPairs(Keys):
    """Type pairs that share a rule: every source with every destination."""

    src: list[str] = says("Names of the source formats.")
    dst: list[str] = says("Names of the destination formats.")
    since: str = says("The version that introduced them.")
    requires: list[str] = says("Profiles and extensions that they need.")
    when: dict[Name, Scalar] = says(of=lambda row: numbered(row.when or {}))
    """The attribute values for which the rule holds."""
    rule: str = says("Name of the rule.")


class SpecifiedType(Keys):
    """A type."""

    name: str = says("Name of the format.")
    since: str = says("The version that introduced it.")


class AttributeEntry(Keys):
    """An attribute of the operator."""

    name: str = says("Its name.")
    source: str = says("Where it is from.")
    status: Status = says("How well it is known.")
    note: str = says("What else is to be said; may be empty.")
    values: list[Scalar] = says("Its values, the default first.")
    since: str = says("The version that introduced it.")
    effect: str = says("What it does.")
    meaning: str = says("The same in words.")


class RescaleRounding(Keys):
    """A rounding mode of RESCALE."""

    number: int = says("Its number.")
    requires: list[str] = says("Profiles and extensions that it needs.")
    wide_only: bool = says("Whether it needs the 32-bit multiplier.")


class Rescale(Keys):
    """The rules of RESCALE."""

    source: str = says("Where they are from.")
    status: Status = says("How well they are known.")
    note: str = says("What else is to be said; may be empty.")
    inputs: dict[Name, list[str]] = says("What each input type needs.")
    outputs: list[str] = says("The output types.")
    unsigned_types: list[str] = says("Types that may be unsigned.")
    wide_inputs: list[str] = says("Input types of the 32-bit multiplier.")
    any_zero_point: list[str] = says("Types with any zero point.")
    unsigned_zero_points: dict[Name, list[int]] = says("Zero points of types that have them only when unsigned.")
    wide_multiplier: str = says("Type of the wide multiplier.")
    narrow_multiplier: str = says("Type of the narrow multiplier.")
    shift_type: str = says("Type of the shift.")
    min_shift: int = says("The smallest shift.")
    max_shift: int = says("The largest shift.")
    double_round_above_shift: int = says("DOUBLE_ROUND rounds twice above this shift.")
    double_round_bit: int = says("At which bit it rounds first.")
    relative_errors: int = says("INEXACT_ROUND: how many units of error.")
    relative_error_exponent: int = says("The exponent of 2 of such a unit.")
    rounding_modes: dict[Name, RescaleRounding] = says("The rounding modes.")


class SpecificationDescription(SpecificationHeader, CommandDocument, name="specification"):
    """One specification."""

    pairs: list[SpecifiedPairs] = says(
        of=lambda spec: [
            SpecifiedPairs.of(row, src=spec.members(row.src), dst=spec.members(row.dst)) for row in spec.casts
        ]
    )
    """Its type pairs."""
    types: list[SpecifiedType] = says("Its types.")
    rules: list[Rule] = says("Its rules.", lambda spec: [Rule.of(rule, name=name) for name, rule in spec.rules.items()])
    attributes: list[AttributeEntry] = says(
        of=lambda spec: [AttributeEntry.of(each, name=name) for name, each in spec.attributes.items()]
    )
    """Its attributes."""
    rescale: Rescale | None = says("Its RESCALE; null if it has none.")
    status: Status = says("How well the type pairs are known.", "casts_fact.status")
    source: str = says("Where they are from.", "casts_fact.source")


class PairRule(Rule):
    """A rule of a type pair."""

    since: str = says("The version that introduced it.")
    requires: list[str] = says("Profiles and extensions that it needs.")
    when: dict[Name, Scalar] = says("The attribute values for which it holds.")


class SpecificationPair(CommandDocument, name="specification-pair"):
    """One type pair of a specification."""

    specification: str = says("Name of the specification.")
    src: str = says("The source as it was given.")
    dst: str = says("The destination as it was given.")
    rules: list[PairRule] = says("Its rules.")


def pair_rules(spec: Specification, src: str, dst: str) -> list[LegalPair]:
    """Return all rules of a pair; formats by any of their names, or `string`.

    Raises:
        ReadError: an unknown format.
        IllegalError: no version has the pair; names the destinations of the source.
    """
    names = _type_name(src), _type_name(dst)
    found = [
        LegalPair(spec.since(row, *names), row.requires, row.when or {}, row.rule, spec.rules[row.rule])
        for row in spec.casts
        if names in spec.pairs(row)
    ]
    if not found:
        known = dict.fromkeys(other for row in spec.casts for one, other in spec.pairs(row) if one == names[0])
        raise IllegalError(f"{spec.name} has no cast {names[0]} -> {names[1]}", legal=known)
    return found


def pair_document(spec: Specification, src: str, dst: str) -> Document:
    """Return all rules of a pair."""
    rules = [
        PairRule.of(each.rule, name=each.name, since=each.since, requires=each.requires, when=numbered(each.when))
        for each in pair_rules(spec, src, dst)
    ]
    return SpecificationPair.of(specification=spec.name, src=src, dst=dst, rules=rules)


def _type_name(name: str) -> str:
    return TEXT if name.lower() == TEXT else format_named(name).name
