"""Which documents each command may write, and their JSON Schemas."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from castsim.isa.errors import ReadError
from castsim.reports.documents import VERSIONS, Document, Json
from castsim.reports.schemas import (
    advice,
    assembly,
    block_lowering,
    cast,
    compiler,
    conform,
    difference,
    findings,
    own_conversions,
    quantise,
    run,
    specifications,
    stepping,
    targets,
    tosa,
)
from castsim.reports.schemas import verification as verify
from castsim.reports.schemas.graph import Graph
from castsim.reports.schemas.keys import Form
from castsim.reports.schemas.lowering import Lower
from castsim.reports.schemas.sweeps import SweepDrawn, SweepResults
from castsim.reports.schemas.tuning import Tune

COMMANDS: Mapping[str, tuple[type[Form], ...]] = {
    "run": (run.Run, run.AllEntries, Graph),
    "record": (assembly.Recorded,),
    "diff": (difference.Difference,),
    "view": (difference.Viewed,),
    "debug": (stepping.Debug,),
    "advise": (advice.Advise,),
    "expand": (assembly.Expanded,),
    "targets": (
        targets.TargetsList,
        targets.TargetDescription,
        targets.TargetPair,
        targets.TargetsDiff,
        specifications.SpecificationDescription,
        specifications.SpecificationPair,
    ),
    "cast": (cast.Cast, cast.CastText),
    "quantise": (quantise.Quantise,),
    "compare": (own_conversions.Compare,),
    "verify": (verify.Verification, verify.LoweringVerification, verify.SubstitutionVerification),
    "scratch": (cast.Scratch, cast.EveryScratch, cast.ScratchSweep, cast.ProgramScratch),
    "lower": (Lower, conform.LoweredMatrix, block_lowering.LoweredBlocks),
    "conform": (conform.Conform,),
    "graph": (Graph,),
    "tosa": (tosa.Tosa,),
    "accuracy": (conform.Accuracy, conform.CrossValidated),
    "calibrate": (conform.Calibrated,),
    "check": (findings.Check,),
    "tune": (Tune,),
    "sweep": (SweepResults, SweepDrawn),
    "lint": (assembly.Lint,),
    "latency": (assembly.Latency,),
    "asm": (assembly.Assembled, assembly.CanonicalText),
    "disasm": (assembly.Disassembled,),
    "schedule": (assembly.Schedule,),
    "builtin": (compiler.BuiltinList, compiler.BuiltinCall, compiler.FunctionCall, compiler.DescriptorCall),
    "compiled": (compiler.CompiledValues, compiler.CompiledAssembly, compiler.CompiledTable),
    "unswizzle": (assembly.Unswizzled,),
    "schema": (findings.SchemaList, findings.SchemaEntry),
    "completion": (findings.Completion,),
    "manual": (findings.Manual,),
}
"""The documents of each command that succeeds, in the order of the help."""

FAILURE = findings.Failure
"""The document of every command that fails."""

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def version_of(form: type[Form]) -> int:
    """Return the `schema_version` of a document."""
    return VERSIONS.get(form.NAME, 1)


def every_command() -> tuple[tuple[str, tuple[type[Form], ...]], ...]:
    """Return all commands with their documents, and last what any command writes that fails."""
    return (*COMMANDS.items(), (FAILURE.NAME, (FAILURE,)))


def every_form() -> tuple[type[Form], ...]:
    """Return all documents, each once."""
    return tuple(dict.fromkeys((*(form for forms in COMMANDS.values() for form in forms), FAILURE)))


def schema_of(command: str) -> Document:
    """Return the JSON Schema of what `castsim COMMAND --json` writes; of `errors`, what a failing command writes.

    Raises:
        ReadError: there is no such command.
    """
    if command == FAILURE.NAME:
        return _schema(FAILURE)
    if command not in COMMANDS:
        raise ReadError(f"no command '{command}' writes JSON", legal=(*COMMANDS, FAILURE.NAME))
    return _schema(*COMMANDS[command], FAILURE)


def form_schema(form: type[Form]) -> Document:
    """Return the JSON Schema of one document."""
    return _schema(form)


def shape_digest(form: type[Form]) -> str:
    """Return the SHA-256 of the schema of one document without its descriptions."""
    text = json.dumps(_bare(_schema(form)), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def list_document() -> Document:
    """Return the documents of all commands as JSON."""
    return {
        "commands": [
            {"command": name, "documents": [_entry(form) for form in forms]} for name, forms in every_command()
        ]
    }


def _entry(form: type[Form]) -> Document:
    return {
        "name": form.NAME,
        "version": version_of(form),
        "shape_sha256": shape_digest(form),
        "meaning": (form.__doc__ or "").strip(),
    }


class _Generator(GenerateJsonSchema):
    """Leaves out titles, which would only repeat the names of keys."""

    def field_title_should_be_set(self, schema: object) -> bool:
        """Never set one."""
        del schema
        return False


def _schema(*forms: type[Form]) -> Document:
    """Return the schema of a document that is one of `forms`."""
    references, whole = models_json_schema(
        [(form, "validation") for form in forms], by_alias=True, schema_generator=_Generator
    )
    definitions: Document = {name: _untitled(each) for name, each in whole["$defs"].items()}
    choices: list[Json] = []
    for form in forms:
        reference = str(references[form, "validation"]["$ref"])
        definition = definitions[reference.rpartition("/")[2]]
        assert isinstance(definition, dict)
        definition["properties"]["schema_version"]["const"] = version_of(form)
        choices.append({"$ref": reference})
    return {"$schema": DRAFT, "anyOf": choices, "$defs": definitions}


def _untitled(definition: Mapping[str, Json]) -> Document:
    return {name: each for name, each in definition.items() if name != "title"}


def _bare(schema: Json) -> Json:
    """Return a schema without descriptions."""
    if isinstance(schema, Mapping):
        return {
            # a key of a document may itself be called `description`: its schema is an object, not a text
            name: _bare(each)
            for name, each in schema.items()
            if name != "description" or not isinstance(each, str)
        }
    if isinstance(schema, list):
        return [_bare(each) for each in schema]
    return schema
