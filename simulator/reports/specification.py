"""The reports on specifications as JSON and as text: the list, one with its casts and rules, one type pair in full."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.isa.errors import IllegalError
from castsim.isa.formats import format_named
from castsim.reports.documents import VERSIONS, Document, document, numbered
from castsim.reports.terminal import indented, table
from castsim.targets import Specification
from castsim.targets.specification import TEXT, AcceptanceRule

_ACRONYMS = {"tosa", "onnx", "ocp"}

_LEFT_OUT = {"informational", "evidence"}
"""Of facts about hardware: a specification is a text."""


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


def header(spec: Specification) -> Document:
    """Return name, title, versions and number of legal pairs."""
    return {
        **document(spec, "name", "title", "kind"),
        "versions": list(spec.versions.known),
        "default_version": spec.versions.default,
        "casts": len({pair for row in spec.casts for pair in spec.pairs(row)}),
    }


def specification_document(spec: Specification) -> Document:
    """Return everything but the sources of tables: header, legal casts, rules, attributes, RESCALE."""
    rescale = spec.rescale
    return {
        "schema_version": VERSIONS["specification"],
        **header(spec),
        "pairs": [
            {
                "src": list(spec.members(row.src)),
                "dst": list(spec.members(row.dst)),
                **document(row, "since", "requires"),
                "when": numbered(row.when or {}),
                "rule": row.rule,
            }
            for row in spec.casts
        ],
        "types": [document(entry, "name", "since") for entry in spec.types],
        "rules": [rule_document(name, rule) for name, rule in spec.rules.items()],
        "attributes": [
            {"name": name, **attribute.model_dump(mode="json", exclude=_LEFT_OUT)}
            for name, attribute in spec.attributes.items()
        ],
        "rescale": rescale.model_dump(mode="json", exclude=_LEFT_OUT) if rescale else None,
        **document(spec.casts_fact, "status", "source"),
    }


def rule_document(name: str, rule: AcceptanceRule) -> Document:
    """Return one rule."""
    ulps = {"below_ulps": float(rule.below_ulps), "above_ulps": float(rule.above_ulps)}
    return {"name": name, **rule.model_dump(mode="json", exclude=_LEFT_OUT), **ulps}


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
    return {
        "schema_version": VERSIONS["specification-pair"],
        "specification": spec.name,
        "src": src,
        "dst": dst,
        "rules": [
            {
                **document(found, "since", "requires"),
                "when": numbered(found.when),
                **rule_document(found.name, found.rule),
            }
            for found in pair_rules(spec, src, dst)
        ],
    }


def _type_name(name: str) -> str:
    return TEXT if name.lower() == TEXT else format_named(name).name


# The reports on specifications as text.


def list_text(specifications: Sequence[Specification]) -> RenderableType:
    """Return the list of specifications."""
    made = table("specification", "title", "versions", "casts", numbers=("casts",))
    for spec in specifications:
        made.add_row(spec.name, spec.title, " ".join(spec.versions.known), str(header(spec)["casts"]))
    return made


def specification_text(spec: Specification) -> RenderableType:
    """Return one specification: versions, legal casts, rules, attributes, RESCALE."""
    return Group(*_specification(spec))


def pair_text(spec: Specification, src: str, dst: str) -> RenderableType:
    """Return all rules of one pair."""
    return Group(*_pair(spec, src, dst))


def _specification(spec: Specification) -> Iterator[RenderableType]:
    yield Text.assemble((spec.name, "bold"), f": {spec.title}")
    yield Text("a specification: it says what casts must give, nothing runs on it")
    yield Text(f"versions {', '.join(spec.versions.known)}; {spec.versions.default} unless another is named")
    yield Text()
    made = table("from", "to", "since", "requires", "when", "rule")
    for row in spec.casts:
        when = " ".join(f"{name}={value}" for name, value in (row.when or {}).items())
        made.add_row(" ".join(row.src), " ".join(row.dst), row.since, " ".join(row.requires), when or "-", row.rule)
    yield made
    for name, members in spec.classes.items():
        yield Text(f"{name}: {' '.join(members)}", style="dim")
    later = [entry for entry in spec.types if entry.since != spec.versions.known[0]]
    if later:
        yield Text(f"types by version: {', '.join(f'{entry.name} {entry.since}' for entry in later)}", style="dim")
    yield Text()
    yield Text("rules", style="bold")
    for name, rule in spec.rules.items():
        yield from _rule(name, rule)
    if spec.attributes:
        yield Text()
        yield Text("attributes", style="bold")
    for name, attribute in spec.attributes.items():
        values = ", ".join(map(str, attribute.values))
        yield indented(Text(f"{name} = {attribute.default} (of {values}; since {attribute.since})"))
        yield indented(indented(Text(attribute.meaning, style="dim")))
    if spec.rescale is not None:
        inputs, outputs = " ".join(spec.rescale.inputs), " ".join(spec.rescale.outputs)
        yield Text()
        yield Text(f"RESCALE from {inputs} to {outputs}; rounding {', '.join(spec.rescale.rounding_modes)}")
        yield indented(Text(f"{spec.rescale.status.value}: {spec.rescale.source}", style="dim"))


def _rule(name: str, rule: AcceptanceRule) -> Iterator[RenderableType]:
    yield indented(Text(f"{name} ({rule.accept.value}; {rule.status.value}): {rule.meaning}"))
    if rule.note:
        yield indented(indented(Text(rule.note, style="dim")))


def _pair(spec: Specification, src: str, dst: str) -> Iterator[RenderableType]:
    yield Text.assemble((f"{src} -> {dst}", "bold"), f" in {spec.name} ({spec.title})")
    for found in pair_rules(spec, src, dst):
        needs = f"; requires {' and '.join(found.requires)}" if found.requires else ""
        when = " ".join(f"{name}={value}" for name, value in found.when.items())
        yield Text()
        yield Text(f"since {found.since}{needs}{f'; with {when}' if when else ''}")
        yield from _rule(found.name, found.rule)
        yield indented(indented(Text(f"source: {found.rule.source}", style="dim")))
