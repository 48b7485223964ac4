"""The reports on specifications as JSON: one in the list, one with its casts and rules, one type pair in full."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from castsim.isa.errors import IllegalError
from castsim.isa.formats import format_named
from castsim.reports.documents import VERSIONS, Document, document, numbered
from castsim.targets import Specification
from castsim.targets.specification import TEXT, AcceptanceRule

_ACRONYMS = {"tosa", "onnx", "ocp"}

_LEFT_OUT = {"informational", "evidence"}
"""Of facts about hardware: a specification is a text."""


@dataclass(frozen=True, slots=True)
class PairRule:
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


def pair_rules(spec: Specification, src: str, dst: str) -> list[PairRule]:
    """Return all rules of a pair; formats by any of their names, or `string`.

    Raises:
        ReadError: an unknown format.
        IllegalError: no version has the pair; names the destinations of the source.
    """
    names = _type_name(src), _type_name(dst)
    found = [
        PairRule(spec.since(row, *names), row.requires, row.when or {}, row.rule, spec.rules[row.rule])
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
