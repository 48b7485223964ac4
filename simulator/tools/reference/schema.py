"""The command `schema`: the documents that each command may write, and their JSON Schemas."""

from __future__ import annotations

import ast
import json
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from importlib import import_module
from inspect import cleandoc, getdoc, getsource
from itertools import pairwise
from pathlib import PurePath
from textwrap import dedent
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from castsim.commands.feature import Feature, shipped_features
from castsim.commands.outcome import CommandOutcome, plain
from castsim.isa.errors import ReadError
from castsim.isa.formats import Format
from castsim.reports.documents import CommandDocument, Document, Json, Keys, keys_of, says
from castsim.reports.schemas.keys import Failure
from castsim.targets.description import TargetHeader

if TYPE_CHECKING:
    from rich.console import RenderableType


def _meaning(form: type[Keys]) -> str:
    """Return the first paragraph of a class's text; further ones are for Python."""
    return (getdoc(form) or "").partition("\n\n")[0]


class FormEntry(Keys):
    """A document that a command may write."""

    name: str = says("Its name.", "NAME")
    version: int = says("Its `schema_version`.", "VERSION")
    meaning: str = says("Meaning of the form.", _meaning)


class CommandSchemas(Keys):
    """A command."""

    command: str = says("Its name.")
    documents: list[FormEntry] = says("The documents that it may write.")


class SchemaList(CommandDocument, name="schema-list", version=2):
    """The documents of all commands."""

    commands: list[CommandSchemas] = says("The commands.")


class SchemaEntry(CommandDocument, name="schema"):
    """The schema of a command's documents."""

    command: str = says("Its name.")
    schema_: dict[str, object] = says("The JSON Schema, draft 2020-12.", key="schema")


DRAFT = "https://json-schema.org/draft/2020-12/schema"


def every_command() -> tuple[tuple[str, tuple[type[CommandDocument], ...]], ...]:
    """Return the commands that write JSON with their documents, and last the document of failing commands."""
    documents = ((feature.name, documents_of(feature)) for feature in shipped_features())
    return (*((name, forms) for name, forms in documents if forms), (Failure.NAME, (Failure,)))


def documents_of(feature: Feature) -> tuple[type[CommandDocument], ...]:
    """Return the documents that a command may write."""
    named = (document.split(":") for document in feature.documents)
    return tuple(getattr(import_module(module), name) for module, name in named)


def schema_of(command: str) -> Document:
    """Return the JSON Schema of the documents of `castsim COMMAND --json`; for `errors`, of a failing command.

    Raises:
        ReadError: the command does not exist.
    """
    forms = dict(every_command())
    if command not in forms:
        raise ReadError(f"no command '{command}' writes JSON", legal=tuple(forms))
    return form_schema(*dict.fromkeys((*forms[command], Failure)))


def list_document() -> Document:
    """Return the documents of all commands as JSON."""
    return SchemaList.of(commands=[CommandSchemas.of(command=name, documents=forms) for name, forms in every_command()])


def form_schema(*forms: type[CommandDocument]) -> Document:
    """Return the JSON Schema of a document that is one of `forms`."""
    schemas: dict[str, Document] = {}
    choices: list[Json] = []
    for form in forms:
        choices.append(_reference(form, schemas))
        properties = schemas[form.TITLE]["properties"]
        assert isinstance(properties, dict)
        properties["schema_version"] |= {"const": form.VERSION}
    return {"$schema": DRAFT, "anyOf": choices, "$defs": dict(sorted(schemas.items()))}


_SIMPLE = {
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    Decimal: {"type": "number"},
    type(None): {"type": "null"},
}
_ANYTHING = "JsonValue"


def _reference(form: type, schemas: dict[str, Document]) -> Document:
    """Return a reference to the definition of an object, an enumeration or, for `object`, of anything."""
    name = _ANYTHING if form is object else getattr(form, "TITLE", form.__name__)
    if name not in schemas:
        schemas[name] = {}
        if issubclass(form, Keys):
            schemas[name] = _object(form, schemas)
        elif issubclass(form, Enum):
            schemas[name] = {"description": getdoc(form), "enum": [member.value for member in form], "type": "string"}
    return {"$ref": f"#/$defs/{name}"}


def _object(form: type[Keys], schemas: dict[str, Document]) -> Document:
    """Return the definition of an object."""
    properties: Document = {}
    required: list[Json] = []
    texts = {
        name: text for part in (form, *form.further_keys()) for base in part.__mro__ for name, text in _below(base)
    }
    for name, (meaning, hint, _) in keys_of(form).items():
        key = meaning.key or name
        properties[key] = dict(sorted({"description": meaning.text or texts[name], **_typed(hint, schemas)}.items()))
        required += [] if meaning.optional else [key]
    return {
        "additionalProperties": False,
        "description": _meaning(form),
        "properties": properties,
        "required": required,
        "type": "object",
    }


def _below(form: type) -> Iterator[tuple[str, str]]:
    """Yield the keys of a class that have a text, with the text."""
    if not issubclass(form, Keys) or "__annotations__" not in vars(form):
        return
    (tree,) = ast.parse(dedent(getsource(form))).body
    assert isinstance(tree, ast.ClassDef)
    for key, text in pairwise(tree.body):
        if isinstance(key, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            assert isinstance(key.target, ast.Name)
            yield key.target.id, cleandoc(str(text.value.value))


def _typed(hint: Any, found: dict[str, Document]) -> Document:
    """Return the schema of a key's type; `Annotated` adds to that of the bare type."""
    if isinstance(hint, type) and issubclass(hint, Format | TargetHeader | PurePath):  # written as their names
        hint = str
    if any(value == "null" for _, value in getattr(hint, "__metadata__", ())):  # written as null in some cases
        hint = hint.__origin__ | None
    if hint in _SIMPLE:
        return dict(_SIMPLE[hint])
    inner = get_args(hint)
    typed: Document
    match get_origin(hint):
        case None:
            return _reference(hint, found)
        case origin if origin is Annotated:
            given = {name: list(value) if isinstance(value, tuple) else value for name, value in hint.__metadata__}
            typed = given if "type" in given else _typed(inner[0], found) | given
        case origin if origin is Literal:
            typed = {"enum": list(inner), "type": "string"}
        case origin if origin in (list, Sequence, tuple):
            typed = {"items": _typed(inner[0], found), "type": "array"}
        case origin if origin in (dict, Mapping):
            names, values = (_typed(each, found) for each in inner)
            typed = {"additionalProperties": values, "type": "object"}
            if "pattern" in names:
                typed = {"patternProperties": {str(names["pattern"]): values}, "type": "object"}
            if "enum" in names:
                typed["propertyNames"] = {"enum": names["enum"]}
        case _:
            kinds = [_typed(each, found) for each in inner]
            distinct = [kind for number, kind in enumerate(kinds) if kind not in kinds[:number]]
            typed = {"anyOf": distinct} if distinct[1:] else distinct[0]
    return dict(sorted(typed.items()))


# The command.


def execute(options: Namespace) -> CommandOutcome:
    """Print the schema of a command's documents, or list the documents of all commands.

    Raises:
        ReadError: the command does not exist.
    """
    if options.command is None:
        return CommandOutcome(list_document(), lambda _: _listed())
    schema = schema_of(options.command)

    return CommandOutcome({"command": options.command, "schema": schema}, lambda _: plain(json.dumps(schema, indent=2)))


def _listed() -> RenderableType:
    from castsim.reports.terminal import table  # noqa: PLC0415 - rich, only if printed

    rows = (
        (command, form.NAME, str(form.VERSION), _meaning(form)) for command, forms in every_command() for form in forms
    )
    return table("command", "document", ">version", "content", rows=rows)
