"""The reference page of all documents, `docs/reference/json.md`, made from their schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from castsim.reports.documents import Json
from castsim.reports.schemas.keys import Form
from castsim.reports.schemas.registry import every_command, every_form, form_schema, version_of

_HEAD = """# JSON documents

Made from the models in `simulator/reports/schemas/` by `python tests/json_page.py`; do not edit. `castsim COMMAND
--json FILE` writes one of the documents of the command, `--json -` to standard output; where the command fails, the
document `errors`. `castsim schema COMMAND` prints the same as JSON Schema (draft 2020-12).

`schema_version` is the first key of every document. It grows with every change of the document's shape, and only then:
keys that are added, removed or renamed, other types, other words of a closed list. A document has no other keys than
those listed. A key marked "may be absent" is left out where it does not apply; null is written only where "null" is a
type. Keys have no blanks. Where JSON has no number (NaN, the infinities) stand the words `nan`, `inf` and `-inf`.
Codes are hexadecimal text, versions of specifications and packages are names. Lines and columns count from 1, columns
in code points.

1. [Documents by command](#1-documents-by-command)
2. [Documents](#2-documents)
3. [Objects](#3-objects)
4. [Closed lists of words](#4-closed-lists-of-words)
"""


def page() -> str:
    """Return the page as Markdown."""
    objects: dict[str, Mapping[str, Json]] = {}
    documents: list[str] = []
    forms = sorted(every_form(), key=lambda form: form.NAME)
    for number, form in enumerate(forms, 1):
        definitions = _definitions(form)
        objects |= {name: each for name, each in definitions.items() if name != form.__name__}
        documents += ["", f"### 2.{number} `{form.NAME}`, version {version_of(form)}", ""]
        documents += _object(definitions[form.__name__])
    lists = sorted(name for name, each in objects.items() if "enum" in each)
    rest = sorted(name for name, each in objects.items() if "properties" in each)
    lines = [_HEAD, "## 1. Documents by command", "", *_commands(), "", "## 2. Documents", *documents]
    lines += ["", "## 3. Objects", ""]
    for number, name in enumerate(rest, 1):
        lines += [f"### 3.{number} {name}", "", *_object(objects[name]), ""]
    lines += ["## 4. Closed lists of words", ""]
    for number, name in enumerate(lists, 1):
        lines += [f"### 4.{number} {name}", "", f"{_text(objects[name])} {_words(objects[name])}", ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _definitions(form: type[Form]) -> dict[str, Mapping[str, Json]]:
    held = form_schema(form)["$defs"]
    assert isinstance(held, Mapping)
    return {name: each for name, each in held.items() if isinstance(each, Mapping)}


def _commands() -> Iterator[str]:
    yield "| command | documents |"
    yield "|---|---|"
    for command, forms in every_command():
        yield f"| {command} | {', '.join(f'`{form.NAME}`' for form in forms)} |"


def _object(schema: Mapping[str, Json]) -> Iterator[str]:
    yield _text(schema)
    yield ""
    yield "| key | type | unit | meaning |"
    yield "|---|---|---|---|"
    required, properties = schema.get("required", ()), schema["properties"]
    assert isinstance(properties, Mapping) and isinstance(required, Sequence)
    for name, each in properties.items():
        assert isinstance(each, Mapping)
        optional = "" if name in required else " May be absent."
        yield f"| `{name}` | {_type(each)} | {_unit(each)} | {_text(each)}{optional} |"


def _text(schema: Mapping[str, Json]) -> str:
    return " ".join(str(schema.get("description", "")).split()).replace("|", "\\|")


def _words(schema: Mapping[str, Json]) -> str:
    words = schema["enum"]
    assert isinstance(words, Sequence)
    return ", ".join(f"`{word}`" for word in words)


def _type(schema: Mapping[str, Json]) -> str:
    """Return a type in words."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2].replace("JsonValue", "any")
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return _words(schema)
    choices = schema.get("anyOf")
    if isinstance(choices, Sequence):
        return " or ".join(dict.fromkeys(_type(each) for each in choices if isinstance(each, Mapping)))
    kind, inner = str(schema.get("type", "any")), schema.get("items", schema.get("additionalProperties"))
    if kind == "array" and isinstance(inner, Mapping):
        return f"list of ({_type(inner)})" if "anyOf" in inner else f"list of {_type(inner)}"
    if kind == "object" and isinstance(inner, Mapping):
        return f"object of {_type(inner)} by name"
    return kind


def _unit(schema: Json) -> str:
    """Return the unit of the numbers in a value, empty if they have none."""
    if isinstance(schema, Mapping):
        own = schema.get("unit")
        if isinstance(own, str):
            return own
        return next((unit for each in schema.values() if (unit := _unit(each))), "")
    if isinstance(schema, list):
        return next((unit for each in schema if (unit := _unit(each))), "")
    return ""
