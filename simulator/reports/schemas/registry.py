"""The documents that each command may write, and their JSON Schemas."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from inspect import cleandoc, getdoc, getsource
from itertools import pairwise
from textwrap import dedent
from typing import Annotated, Any, Literal, get_args, get_origin

from castsim.isa.errors import ReadError
from castsim.reports import (
    accuracy,
    builtins,
    cast,
    cast_text,
    comparing,
    compiled,
    conform,
    graph_text,
    listing,
    lower,
    pairs,
    scratch,
    stepping,
    targets,
    tuning,
)
from castsim.reports.documents import VERSIONS, CommandDocument, Document, Json, Keys, keys_of
from castsim.reports.run_findings import Run
from castsim.reports.schemas import command_documents as own

COMMANDS: Mapping[str, tuple[type[CommandDocument], ...]] = {
    "run": (Run, own.AllEntries, graph_text.Graph),
    "view": (own.Viewed,),
    "debug": (stepping.Debug,),
    "check": (own.Check,),
    "diff": (comparing.Difference,),
    "record": (own.Recorded,),
    "graph": (graph_text.Graph,),
    "expand": (own.Expanded,),
    "cast": (cast.Cast, cast.CastText),
    "estimate": (pairs.EstimateDocument,),
    "formats": (pairs.FormatsList,),
    "targets": (
        targets.TargetsList,
        targets.TargetDescription,
        targets.TargetPair,
        targets.TargetsDiff,
        targets.SpecificationDescription,
        targets.SpecificationPair,
    ),
    "lower": (lower.Lower, conform.LoweredMatrix, lower.LoweredBlocks),
    "conform": (conform.Conform,),
    "compare": (cast_text.Compare,),
    "quantise": (cast_text.Quantise,),
    "scratch": (scratch.Scratch, scratch.EveryScratch, scratch.ScratchSweep, scratch.ProgramScratch),
    "tosa": (own.Tosa,),
    "advise": (tuning.Advise,),
    "tune": (tuning.Tune,),
    "sweep": (own.SweepResults, own.SweepDrawn),
    "builtin": (targets.BuiltinList, builtins.BuiltinCall, builtins.FunctionCall, builtins.DescriptorCall),
    "compiled": (compiled.CompiledValues, compiled.CompiledAssembly, compiled.CompiledTable, compiled.CompiledText),
    "lint": (listing.Lint,),
    "latency": (listing.Latency,),
    "schedule": (own.Schedule,),
    "unswizzle": (listing.Unswizzled,),
    "asm": (listing.Assembled, listing.CanonicalText),
    "disasm": (listing.Disassembled,),
    "accuracy": (accuracy.Accuracy, accuracy.CrossValidated),
    "verify": (own.Verification, own.LoweringVerification, own.SubstitutionVerification),
    "calibrate": (accuracy.Calibrated,),
    "completion": (own.Completion,),
    "manual": (own.Manual,),
    "schema": (own.SchemaList, own.SchemaEntry),
}
"""The documents of each successful command, in the order of the help."""

FAILURE = own.Failure
"""The document of every failing command."""

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def version_of(form: type[CommandDocument]) -> int:
    """Return the `schema_version` of a document."""
    return VERSIONS.get(form.NAME, 1)


def every_command() -> tuple[tuple[str, tuple[type[CommandDocument], ...]], ...]:
    """Return all commands with their documents, and last the document of failing commands."""
    return (*COMMANDS.items(), (FAILURE.NAME, (FAILURE,)))


def schema_of(command: str) -> Document:
    """Return the JSON Schema of the documents of `castsim COMMAND --json`; for `errors`, of a failing command.

    Raises:
        ReadError: the command does not exist.
    """
    if command == FAILURE.NAME:
        return form_schema(FAILURE)
    if command not in COMMANDS:
        raise ReadError(f"no command '{command}' writes JSON", legal=(*COMMANDS, FAILURE.NAME))
    return form_schema(*COMMANDS[command], FAILURE)


def list_document() -> Document:
    """Return the documents of all commands as JSON."""
    return own.SchemaList.of(
        commands=[{"command": name, "documents": [_entry(form) for form in forms]} for name, forms in every_command()]
    )


def _entry(form: type[CommandDocument]) -> Document:
    return {
        "name": form.NAME,
        "version": version_of(form),
        "meaning": (form.__doc__ or "").strip(),
    }


def form_schema(*forms: type[CommandDocument]) -> Document:
    """Return the JSON Schema of a document that is one of `forms`."""
    found: dict[str, Document] = {}
    choices: list[Json] = []
    for form in forms:
        choices.append(_reference(form, found))
        properties = found[form.__name__]["properties"]
        assert isinstance(properties, dict)
        properties["schema_version"] |= {"const": version_of(form)}
    return {"$schema": DRAFT, "anyOf": choices, "$defs": dict(sorted(found.items()))}


_SIMPLE = {
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
}
_ANYTHING = "JsonValue"


def _reference(form: type, found: dict[str, Document]) -> Document:
    """Return a reference to the definition of an object, an enumeration or, for `object`, of anything."""
    name = _ANYTHING if form is object else form.__name__
    if name not in found:
        found[name] = {}
        if issubclass(form, Keys):
            found[name] = _object(form, found)
        elif issubclass(form, Enum):
            found[name] = {"description": getdoc(form), "enum": [each.value for each in form], "type": "string"}
    return {"$ref": f"#/$defs/{name}"}


def _object(form: type[Keys], found: dict[str, Document]) -> Document:
    """Return the definition of an object."""
    properties: Document = {}
    required: list[Json] = []
    told = {name: text for part in (form, *form.further_keys()) for each in part.__mro__ for name, text in _below(each)}
    for name, (meaning, hint, _) in keys_of(form).items():
        key = meaning.alias or name
        properties[key] = dict(sorted({"description": meaning.text or told[name], **_typed(hint, found)}.items()))
        required += [] if meaning.optional else [key]
    return {
        "additionalProperties": False,
        "description": getdoc(form),
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
    if hint in _SIMPLE:
        return dict(_SIMPLE[hint])
    inner = get_args(hint)
    made: Document
    match get_origin(hint):
        case None:
            return _reference(hint, found)
        case origin if origin is Annotated:
            made = _typed(inner[0], found) | {
                name: list(value) if isinstance(value, tuple) else value for name, value in hint.__metadata__
            }
        case origin if origin is Literal:
            made = {"enum": list(inner), "type": "string"}
        case origin if origin in (list, Sequence):
            made = {"items": _typed(inner[0], found), "type": "array"}
        case origin if origin is dict:
            names, values = (_typed(each, found) for each in inner)
            made = {"additionalProperties": values, "type": "object"}
            if "pattern" in names:
                made = {"patternProperties": {str(names["pattern"]): values}, "type": "object"}
            if "enum" in names:
                made["propertyNames"] = {"enum": names["enum"]}
        case _:
            made = {"anyOf": [_typed(each, found) for each in inner]}
    return dict(sorted(made.items()))
