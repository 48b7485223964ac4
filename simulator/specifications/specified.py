"""One cast of a specification: its row, its rule and the attributes in force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import FORMATS, Format, IntFormat, format_named
from castsim.targets import Specification, load_specification
from castsim.targets.specification import TEXT, AcceptanceRule, LegalCasts

AttributeValue = str | int


@dataclass(frozen=True, slots=True)
class SpecifiedCast:
    """A legal cast: formats (None: text), the rule named `rule_name` and the attributes in force, all of them.

    `since` is the first version that has the pair, `requires` the profiles and extensions it needs, all of them.
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
        """The rule that says which results conform."""
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
        ReadError: an unknown name, or attributes not in this form; versions and values are judged with a cast.
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
        raise ReadError(f"'{text}' names no version", legal=("NAME@VERSION",))
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
        spec: a loaded specification, or its name or path.
        src: format of the sources, or `string`.
        dst: format of the results, or `string`.
        version: of the specification, for ONNX the opset; None: its default.
        attributes: of the cast operator, by name; the others have their defaults.

    Raises:
        ReadError: unknown specification, format, version, attribute or value.
        IllegalError: the version does not have the cast or the attribute; the legal destinations are listed.
    """
    found = load_specification(spec) if isinstance(spec, str | Path) else spec
    chosen = _version(found, version)
    values = _attributes(found, chosen, attributes or {})
    names = _type_name(src), _type_name(dst)
    source: Format | None = None if names[0] == TEXT else _format(src)
    row = _row(found, chosen, *names, values)
    if any(values[name] == "1" for name in _unsigning(found)):
        source = _unsigned(found, source)
    return SpecifiedCast(
        spec=found,
        version=chosen,
        src=source,
        dst=None if names[1] == TEXT else _format(dst),
        rule_name=row.rule,
        since=found.since(row, *names),
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
    known = spec.versions.known
    if version is None:
        return spec.versions.default
    text = str(version)
    if text in known:
        return text
    if spec.versions.between and text.isdecimal() and int(known[0]) <= int(text) <= int(known[-1]):
        return max((name for name in known if int(name) <= int(text)), key=int)
    raise ReadError(f"{spec.name} has no version '{text}'", legal=known)


def _attributes(spec: Specification, version: str, given: Mapping[str, AttributeValue]) -> dict[str, str]:
    for name, value in given.items():
        if name not in spec.attributes:
            raise ReadError(f"{spec.name} has no attribute '{name}'", legal=spec.attributes)
        attribute = spec.attributes[name]
        if str(value) not in map(str, attribute.values):
            raise ReadError(f"attribute {name} cannot be '{value}'", legal=map(str, attribute.values))
        if spec.rank(attribute.since) > spec.rank(version):
            raise IllegalError(f"{spec.name} {version} has no attribute {name}; it came with {attribute.since}")
    return {name: str(given.get(name, attribute.default)) for name, attribute in spec.attributes.items()}


def _row(spec: Specification, version: str, src: str, dst: str, attributes: Mapping[str, str]) -> LegalCasts:
    later = None
    for row in spec.casts:
        if (src, dst) not in spec.pairs(row) or not (row.when or {}).items() <= attributes.items():
            continue
        since = spec.since(row, src, dst)
        if spec.rank(since) <= spec.rank(version):
            return row
        later = since
    known = dict.fromkeys(
        other
        for row in spec.casts
        for source, other in spec.pairs(row)
        if source == src and spec.rank(spec.since(row, src, other)) <= spec.rank(version)
    )
    hint = f"; it came with {later}" if later else ""
    raise IllegalError(f"{spec.name} {version} has no cast {src} -> {dst}{hint}", legal=known)


def _unsigning(spec: Specification) -> list[str]:
    return [name for name, row in spec.attributes.items() if row.effect == "reads the source as unsigned"]


def _unsigned(spec: Specification, src: Format | None) -> Format:
    if not isinstance(src, IntFormat) or not src.signed:
        name = "text" if src is None else src.name
        raise IllegalError(f"{spec.name}: {name} cannot be read as unsigned", legal=("signless integers",))
    return FORMATS[src.name.replace("i", "u", 1)]
