"""The reports on specifications as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.reports.specification import header, pair_rules
from castsim.reports.terminal import indented, table
from castsim.targets import Specification
from castsim.targets.specification import AcceptanceRule


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
