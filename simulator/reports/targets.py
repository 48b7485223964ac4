"""Reports on targets and specifications: lists, one with its casts, one cast in full, two targets compared."""

from __future__ import annotations

from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, format_named
from castsim.reports.documents import ABSENT, CommandDocument, Document, Keys, numbered, says
from castsim.reports.numbers import OPTIONS, facts_by_part, facts_of
from castsim.reports.pairs import PairEntry, pair_rows
from castsim.reports.schemas.keys import FactEntry, Name, Scalar
from castsim.targets.description import Status
from castsim.targets.loader import Target
from castsim.targets.specification import TEXT, Specification
from castsim.targets.tpc_compiler import FunctionKind, builtins_of, special_functions

# Specifications: in the list, one with its casts and rules, one cast in full.

_ACRONYMS = {"tosa", "onnx", "ocp"}


def specification_words(label: str) -> str:
    """Return a specification in words: `tosa@1.1:input_unsigned=1` becomes TOSA 1.1 with input_unsigned=1."""
    named, _, further = label.partition(" ")
    head, *attributes = named.split(":")
    name, _, version = head.partition("@")
    name = name.upper() if name in _ACRONYMS else name
    given = f" with {', '.join(attributes)}" if attributes else ""
    return f"{name} {version}".rstrip() + given + (f", {further}" if further else "")


def _cast_count(spec: Specification) -> int:
    return len({pair for row in spec.casts for pair in spec.pairs(row)})


class SpecificationHeader(Keys):
    """A specification in the list."""

    name: str = says("Its name.")
    title: str = says("Subject of the specification.")
    kind: str = says("Always `specification`.")
    versions: list[str] = says("Its versions; these are names, `1.1`.", "versions.known")
    default_version: str = says("The default version.", "versions.default")
    casts: int = says(of=_cast_count)
    """Number of its type pairs."""


class Rule(Keys):
    """A rule about the accepted results."""

    name: str = says("Its name.")
    source: str = says("Source of the rule.")
    status: Status = says("Evidence for the rule.")
    note: str = says("A note; may be empty.")
    meaning: str = says("The rule in words.")
    accept: str = says("Form of the set: `exact`, `interval` or another form.")
    roundings: list[str] = says("The roundings of an exact rule.")
    overflow: str | None = says("The overflow policy of an exact rule; null if an attribute or the cast decides.")
    below_ulps: float = says(
        "The largest distance of results below the exact magnitude.", lambda rule: float(rule.below_ulps)
    )
    above_ulps: float = says(
        "The largest distance of results above the exact magnitude.", lambda rule: float(rule.above_ulps)
    )
    beyond: str = says("The rule for values outside the range.")
    undefined: list[str] = says("Sources for which any result is accepted.")
    flush_source: bool = says("Whether subnormal sources may be taken for 0.")
    flush_result: bool = says("Whether subnormal results may be 0.")
    zero_of_either_sign: bool = says("Whether the sign of 0 is free.")
    unclear_overflow: bool = says("Whether both orders of rounding and overflow are accepted.")


class SpecifiedPairs(Keys):
    """Type pairs that share a rule: every source with every destination."""

    src: list[str] = says("Names of the source formats.")
    dst: list[str] = says("Names of the destination formats.")
    since: str = says("The version that introduced them.")
    requires: list[str] = says("Profiles and extensions that they need.")
    when: dict[Name, Scalar] = says(of=lambda row: numbered(row.when or {}))
    """The attribute values to which the rule applies."""
    rule: str = says("Name of the rule.")


class SpecifiedType(Keys):
    """A type."""

    name: str = says("Name of the format.")
    since: str = says("The version that introduced it.")


class AttributeEntry(Keys):
    """An attribute of the operator."""

    name: str = says("Its name.")
    source: str = says("Source of the attribute.")
    status: Status = says("Evidence for the attribute.")
    note: str = says("A note; may be empty.")
    values: list[Scalar] = says("Its values, the default first.")
    since: str = says("The version that introduced it.")
    effect: str = says("Effect of the attribute.")
    meaning: str = says("The effect in words.")


class RescaleRounding(Keys):
    """A rounding mode of RESCALE."""

    number: int = says("Its number.")
    requires: list[str] = says("Profiles and extensions that it needs.")
    wide_only: bool = says("Whether it needs the 32-bit multiplier.")


class Rescale(Keys):
    """The rules of RESCALE."""

    source: str = says("Sources of the rules.")
    status: Status = says("Evidence for the rules.")
    note: str = says("A note; may be empty.")
    inputs: dict[Name, list[str]] = says("The requirements of each input type.")
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
    double_round_bit: int = says("Bit of the first rounding.")
    relative_errors: int = says("INEXACT_ROUND: the allowed error in units.")
    relative_error_exponent: int = says("The exponent of 2 of such a unit.")
    rounding_modes: dict[Name, RescaleRounding] = says("The rounding modes.")


class SpecificationDescription(SpecificationHeader, CommandDocument, name="specification", version=3):
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
    status: Status = says("Evidence for the type pairs.", "casts_fact.status")
    source: str = says("Source of the type pairs.", "casts_fact.source")


class PairRule(Rule):
    """A rule of a type pair."""

    since: str = says("The version that introduced it.")
    requires: list[str] = says("Profiles and extensions that it needs.")
    when: dict[Name, Scalar] = says("The attribute values to which it applies.")


class SpecificationPair(CommandDocument, name="specification-pair", version=3):
    """One type pair of a specification."""

    specification: str = says("Name of the specification.")
    src: str = says("The given source.")
    dst: str = says("The given destination.")
    rules: list[PairRule] = says("Its rules.")


def specification_pair_document(spec: Specification, src: str, dst: str) -> Document:
    """Return all rules of a pair; formats by any of their names, or `string`.

    Raises:
        ReadError: a format is unknown.
        IllegalError: no version has the pair; the message names the destinations of the source.
    """
    names = _type_name(src), _type_name(dst)
    rules = [
        PairRule.of(
            spec.rules[row.rule], name=row.rule, since=spec.since(row, *names), requires=row.requires,
            when=numbered(row.when or {}),
        )
        for row in spec.casts
        if names in spec.pairs(row)
    ]  # fmt: skip
    if not rules:
        legal = dict.fromkeys(other for row in spec.casts for first, other in spec.pairs(row) if first == names[0])
        raise IllegalError(f"{spec.name} has no cast {names[0]} -> {names[1]}", legal=legal)
    return SpecificationPair.of(specification=spec.name, src=src, dst=dst, rules=rules)


def _type_name(name: str) -> str:
    return TEXT if name.lower() == TEXT else format_named(name).name


# The builtin functions of TPC-C that a target has, as JSON.


class BuiltinEntry(Keys):
    """A cast builtin of TPC-C."""

    name: str = says("Its name.", "builtin")
    signature: str = says("Result and operands.")
    vpu_operations: int = says("Documented number of vector operations of a call.", "vector_operations")
    result_order: str = says("Order of the result's elements.")
    status: Status = says("Evidence for the row.")
    note: str = says("A note; may be empty.")


class FunctionEntry(Keys):
    """A special function of TPC-C."""

    name: str = says("Its name.", "builtin")
    signature: str = says("Result and operands.")
    modelled: bool = says("Whether castsim implements it.", lambda row: row.kind is not FunctionKind.UNPUBLISHED)
    kind: str = says("`sequence`, `table`, `descriptor` or `unpublished`.")


class TargetBuiltins(Keys):
    """The builtins of a target."""

    name: str = says("Name of the target.")
    builtins: list[BuiltinEntry] = says("The cast builtins.", builtins_of)
    special_functions: list[FunctionEntry] = says("The special functions.", lambda _: special_functions())


class BuiltinList(CommandDocument, name="builtin-list", version=2):
    """The builtins of targets."""

    targets: list[TargetBuiltins] = says("The targets.")


class TargetHeader(Keys):
    """A target in the list."""

    name: str = says("Its name.")
    title: str = says("The chip.")
    mechanism: str = says("Mechanism of execution: `strided-repeat`, `vector-function` or `vliw`.")
    languages: list[str] = says("The languages of its programs.")
    architectures: list[str] = says("The names of the target in programs.")
    casts: int = says("Number of type pairs.", lambda target: len(target.casts))


class TargetsList(CommandDocument, name="targets-list"):
    """All targets and specifications."""

    targets: list[TargetHeader] = says("The targets.")
    specifications: list[SpecificationHeader] = says("The specifications.")


class OptionEntry(Keys):
    """An option of a target."""

    name: str = says("Its name.")
    value: int | str = says("The default value.")
    legal: list[int | str] = says("The possible values.")
    meaning: str = says("Meaning of the option.")
    set_by: str = says("The part that sets it on the chip; may be empty.")
    status: Status = says("Evidence for the default.")
    source: str = says("Source of the default.")


class TargetDescription(CommandDocument, TargetHeader, name="targets", version=2):
    """One target."""

    pairs: list[PairEntry] = says("Its type pairs.", pair_rows)
    facts: list[FactEntry] = says(
        of=lambda target: [fact for part, found in facts_by_part(target).items() if part != OPTIONS for fact in found]
    )
    """The facts in its description."""
    options: list[OptionEntry] = says(
        of=lambda target: [OptionEntry.of(option, name=name) for name, option in target.options.items()]
    )
    """Its options."""
    builtins: list[BuiltinEntry] = says(
        of=lambda target: builtins_of(target) if target.has_builtins else ABSENT, optional=True
    )
    """The cast builtins, for chips with TPC-C."""
    special_functions: list[FunctionEntry] = says(
        of=lambda target: special_functions() if target.has_builtins else ABSENT, optional=True
    )
    """The special functions, for chips with TPC-C."""


# Two targets side by side: which conversions each has, source type by source type, and the facts that differ.


class DiffFact(Keys):
    """A fact whose value differs between two targets."""

    name: str = says("Its path in the description.")
    first: object = says()
    """Its value on the first target; null if that target lacks it."""
    second: object = says()
    """Its value on the second target; null if that target lacks it."""


class DiffEntry(Keys):
    """The casts from one format on both targets."""

    src: str = says("Name of the source format.")
    first: list[str] = says("Its destinations on the first target.")
    second: list[str] = says("Its destinations on the second target.")
    only_first: list[str] = says("Destinations that the second target lacks.")
    only_second: list[str] = says("Destinations that the first target lacks.")
    difference: str = says("The difference in words.")


class TargetsDiff(CommandDocument, name="targets-diff", version=3):
    """Two targets side by side; with `--diff`."""

    targets: list[str] = says("Names of the first and of the second target.")
    rows: list[DiffEntry] = says("One entry for each source format.")
    facts: list[DiffFact] = says("The facts whose values differ; none for two chips of the same facts.")


def targets_diff(first: Target, second: Target) -> Document:
    """Return the casts of two targets side by side, in the order of the format table, and the facts that differ."""
    destinations = [_destinations(target) for target in (first, second)]
    rows = []
    for src in FORMATS:
        here, there = (casts.get(src, ()) for casts in destinations)
        if here or there:
            alone = tuple(dst for dst in here if dst not in there), tuple(dst for dst in there if dst not in here)
            if here and there:
                added = zip((first, second), alone, strict=True)
                words = "; ".join(f"{target.name} adds {', '.join(dsts)}" for target, dsts in added if dsts) or "same"
            else:
                words = f"{(first if here else second).name} only"
            ends = {"first": here, "second": there, "only_first": alone[0], "only_second": alone[1]}
            rows.append(DiffEntry.of(src=src, **ends, difference=words))
    own, other = ({fact.name: fact.value for fact in facts_of(target)} for target in (first, second))
    facts = [
        DiffFact.of(name=name, first=own.get(name), second=other.get(name))
        for name in dict.fromkeys((*own, *other))
        if own.get(name) != other.get(name)
    ]
    return TargetsDiff.of(targets=[first, second], rows=rows, facts=facts)


def _destinations(target: Target) -> dict[str, tuple[str, ...]]:
    destinations: dict[str, list[str]] = {}
    for row in pair_rows(target):
        names = destinations.setdefault(row.src, [])
        if row.dst not in names:
            names.append(row.dst)
    return {src: tuple(sorted(held, key=list(FORMATS).index)) for src, held in destinations.items()}
