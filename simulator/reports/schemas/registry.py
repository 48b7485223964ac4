"""Which documents each command may write, and their JSON Schemas."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator, Mapping
from enum import Enum
from inspect import cleandoc, getdoc, getsource
from itertools import pairwise
from textwrap import dedent
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin

from castsim.exploration.suggestion import SuggestionEvidence
from castsim.isa.errors import ReadError
from castsim.quantisation import RULES
from castsim.reports import accuracy, conform, graph_text, lower
from castsim.reports.documents import VERSIONS, CommandDocument, Document, Json, Keys, keys_of, says
from castsim.reports.run import Run
from castsim.reports.schemas import cast, compiler, run, targets, verification
from castsim.reports.schemas.keys import Bits, Bytes, Cycles, Elements, Line, Name, Percent, Sha256, Ulps, Value

# The document of `castsim tune`.


class TuningAxis(Keys):
    """A choice."""

    name: str = says("Its name.")
    kind: str = says("What it is about: tile, arg, option or target.")
    values: list[int | float | str] = says("The values to choose from.")


class TuningRow(Keys):
    """A point of the space."""

    choices: dict[Name, int | float | str] = says("The value of each choice.")
    cycles: Cycles | None = says("Cycles; null if it was not simulated or does not run.")
    at_least: Cycles = says("A lower bound of the cycles; 0 if none is known.")
    cycles_per_element: float | None = says("Cycles for each element of the outputs; null as `cycles`.")
    buffer_bytes: Bytes | None
    """Size of the range of the tile buffer that the program touches; null if it is not known."""
    bound_by: str | None = says("The pipe that spends most cycles on work of its own; null as `cycles`.")
    pareto: bool = says("Whether no simulated point has fewer cycles or bytes and no more of the other.")
    outputs: dict[Name, Sha256] = says("Digest of the elements of each output; empty if no values were computed.")
    reason: str | None = says("Why it does not run; null if it does, or was not tried.")


class TuningDifference(Keys):
    """A point whose outputs are not those of the best."""

    choices: dict[Name, int | float | str] = says("The value of each choice.")
    outputs: list[str] = says("The names of the outputs that differ.")


class Tune(CommandDocument, name="tune"):
    """The tile shapes and choices of a kernel, ranked."""

    program: str = says("The program.")
    space: list[TuningAxis] = says("The choices.")
    conditions: list[str] = says("The conditions between them.")
    combinations: int = says("Combinations of all values.")
    left_out: int = says("Combinations for which a condition does not hold.")
    points: int = says("The other combinations.")
    simulated: int = says("Points with cycles.")
    refused: int = says("Points that do not run.")
    best_is_proven: bool = says("Whether no other point can have fewer cycles.")
    pareto_is_proven: bool = says("Whether no other point can be on the front.")
    best: TuningRow | None = says("The point with fewest cycles; null if none runs.")
    command: str | None = says("The command that runs it; null as `best`.")
    outputs_equal: bool | None
    """Whether all simulated points give the same bits; null if no inputs were given."""
    differing: list[TuningDifference] = says("The points that do not.")
    rows: list[TuningRow]
    """All points: simulated ones by cycles, then the others by lower bounds, then those that do not run."""


# The document of `castsim advise`.

HowKept: TypeAlias = Annotated[str, ("enum", tuple(how.value for how in SuggestionEvidence))]
"""How it is known that the outputs stay the same."""


class Change(Keys):
    """A change that keeps the outputs and saves cycles."""

    number: int = says("Its place, from 1; `--apply` takes it.")
    kind: str = says("What is done, in the words of docs/advice.md.")
    title: str = says("What is done where.")
    reason: str = says("Why that saves cycles.")
    line: Line = says("The line where it begins.")
    how: HowKept = says("How it is known that the outputs stay the same.")
    runs: int = says("Inputs on which both programs gave the same bits.")
    cycles: Cycles = says("What the changed program takes.")
    gained: Cycles = says("Cycles saved.")
    gained_percent: Percent = says("Cycles saved, of those of the program as it is.")
    diff: str = says("A unified diff of the file.")


class RejectedChange(Keys):
    """A change that was tried and is not offered."""

    kind: str = says("What was done, in the words of docs/advice.md.")
    title: str = says("What was done where.")
    line: Line = says("The line where it begins.")
    why: str = says("Why it is not offered.")


class Advise(CommandDocument, name="advise"):
    """What would make a program faster."""

    file: str = says("The program.")
    target: str = says("Name of the target.")
    cycles: Cycles = says("What the program takes as it is.")
    looked_at: int = says("Changes that were made and checked.")
    offers: list[Change] = says("Those that hold, most cycles saved first.")
    rejected: list[RejectedChange] = says("Those that are not offered, in the order in which they were made.")
    unfinished: bool = says("Whether the time was over before all changes were tried.")
    applied: int | None = says("The number of the change that was written; null if none was.")
    output: str | None = says("The file that it was written to.")


# The document of `castsim quantise`.


class QuantisedElement(Keys):
    """One number of the array."""

    input_bits: Bits = says("Its code.")
    number: Value = says("The number, or `nan`, `inf`, `-inf`.")
    element_bits: Bits = says("The code of the element.")
    scale_bits: Bits = says("The code of its block's scale.")
    value: Value = says("Element times scale.")


class QuantisationError(Keys):
    """The errors of the finite numbers outside blocks with NaN; null where f64 cannot hold one."""

    elements: Elements = says("Elements of the array.")
    compared: Elements = says("How many of them the errors are of.")
    largest_error: float | None = says("The largest error, in the numbers' own unit.")
    largest_relative_error: float | None = says("The largest error as a part of the number.")
    root_mean_square_error: float | None = says("In the numbers' own unit.")
    signal_to_noise_db: float | None = says("Signal to noise in decibels; null without an error or without numbers.")
    clamped: Elements = says("Numbers beyond the largest element, infinities among them.")
    to_zero: Elements = says("Numbers that became zero.")
    nan_blocks: int = says("Blocks that hold NaN.")


class Quantise(CommandDocument, name="quantise"):
    """An array quantised to elements that share scales."""

    format: str = says("The block format, or the format of the elements.")
    source_format: str = says("Format of the numbers.")
    element_format: str = says("Format of the elements.")
    scale_format: str = says("Format of the scales.")
    scale_rule: Annotated[str, ("enum", tuple(RULES))]
    """The rule by which scales follow from the largest magnitude."""
    shape: list[int] = says("Shape of the array.")
    block: list[Elements] = says("Size of a block along each axis.")
    blocks: int = says("Number of blocks, each with a scale.")
    error: QuantisationError = says("The errors.")
    elements: list[QuantisedElement] = says("The elements in C order; empty if there are more than 256.")
    files: dict[Name, str] = says("With `--out`: the files written.")


# The document of `castsim compare`.


class FirstDifference(Keys):
    """The first input, in the order of inputs, whose result differs."""

    position: int = says("Its place among the inputs.")
    input_bits: Bits = says("Its code.")
    input: Value = says("Its number, or `nan`, `inf`, `-inf`.")
    expected_bits: Bits = says("The code that the cast gives.")
    expected: Value = says("Its number.")
    given_bits: Bits | None = says("The code that was given; null if the destination has no such number.")
    given: Value = says("The number that was given.")


class DifferingBinade(Keys):
    """Inputs of one magnitude, some of whose results differ."""

    kind: Literal["number", "zero", "infinite", "nan"] = says("What the inputs are.")
    exponent: int | None = says("Magnitudes from 2 to the power of this on, below twice that; null unless numbers.")
    inputs: Elements = says("Inputs of the magnitude.")
    differing: Elements = says("How many of their results differ.")
    largest_ulps: Ulps = says("The largest distance among them.")


class Compare(CommandDocument, name="compare"):
    """A conversion of somebody's own compared with a cast."""

    src: Name = says("Format of the inputs.")
    dst: Name = says("Format of the results.")
    target: str | None = says("The chip whose cast it is; null: the abstract cast.")
    inputs: Elements = says("Inputs tried.")
    all_codes: bool = says("Whether these are all codes of the source.")
    differing: Elements = says("Results that differ.")
    unrepresentable: Elements = says("Results that the destination does not have.")
    largest_ulps: Ulps = says("The largest distance between results that are both numbers.")
    mean_ulps: float = says("The mean distance between results that are both numbers, in ulps.")
    signal_to_noise_db: float | None
    """Of finite results against the inputs, in decibels; null without an error."""
    cast_signal_to_noise_db: float | None = says("The same of the cast.")
    first: FirstDifference | None = says("The first difference; null if there is none.")
    binades: list[DifferingBinade] = says("Magnitudes with differences, rising.")


# The document of `castsim sweep`.


class Crossing(Keys):
    """Two routes of which one is faster below, and the other from `x` on."""

    what: str = says("What both do, such as the type pair.")
    below: str = says("The route that is faster below.")
    above: str = says("The route that is faster from there on.")
    x: float = says("Elements of a cast; of programs, the value of the argument that the plots are over.")


class SweepDrawn(CommandDocument, name="sweep-report"):
    """The results of a sweep, drawn."""

    report: str = says("The Parquet file.")
    html: str = says("The page.")
    rows: int = says("Rows of the results.")
    failed: int = says("Those that failed.")
    crossings: list[Crossing] = says("Where another of two routes becomes the faster one.")


class SweepResults(CommandDocument, name="sweep"):
    """A finished sweep; its rows stand in the Parquet file."""

    out: str = says("The Parquet file.")
    ledger: str = says("The file that holds what is done, and from which the same command goes on.")
    rows: int = says("Rows of the results: points that are not excluded.")
    failed: int = says("Those that failed.")
    chunks: int = says("Chunks into which the points were divided.")
    resumed_chunks: int = says("Those that an earlier start had done.")
    version: str = says("The version of castsim.")
    facts_digest: Sha256 = says("Digest of the facts of all targets of the sweep.")


# The document of `castsim debug`.


class Stop(Keys):
    """A place at which the program stood."""

    line: Line = says("The line of the operation about to be executed; at the end that of the last.")
    cycle: Cycles | None
    """The cycle in which it starts, at the end the cycles of the run; null if none are modelled."""
    ended: bool = says("Whether every operation had been executed.")


class Debug(CommandDocument, name="debug"):
    """The stops of a session, in their order."""

    file: str = says("The program.")
    entry: str = says("The part of it that was run.")
    target: str = says("The target's name.")
    operations: int = says("How many operations were executed in all, which `step` goes through.")
    stops: list[Stop] = says("The first stop, and that of each command that moved the program.")
    failed: int = says("Commands that could not be carried out.")


# The document of `castsim tosa`.


class TosaResult(Keys):
    """One call of a function."""

    arguments: list[int] = says("Its arguments.")
    result: list[int] = says("Its result; a scale is multiplier and shift.")


class Tosa(CommandDocument, name="tosa"):
    """The results of a helper function of the TOSA specification."""

    function: str = says("Name of the function.")
    results: list[TosaResult] = says("One entry for each call.")


COMMANDS: Mapping[str, tuple[type[CommandDocument], ...]] = {
    "run": (Run, run.AllEntries, graph_text.Graph),
    "record": (compiler.Recorded,),
    "diff": (cast.Difference,),
    "view": (cast.Viewed,),
    "debug": (Debug,),
    "advise": (Advise,),
    "expand": (compiler.Expanded,),
    "targets": (
        targets.TargetsList,
        targets.TargetDescription,
        targets.TargetPair,
        targets.TargetsDiff,
        targets.SpecificationDescription,
        targets.SpecificationPair,
    ),
    "cast": (cast.Cast, cast.CastText),
    "quantise": (Quantise,),
    "compare": (Compare,),
    "verify": (verification.Verification, verification.LoweringVerification, verification.SubstitutionVerification),
    "scratch": (cast.Scratch, cast.EveryScratch, cast.ScratchSweep, cast.ProgramScratch),
    "lower": (lower.Lower, conform.LoweredMatrix, lower.LoweredBlocks),
    "conform": (conform.Conform,),
    "graph": (graph_text.Graph,),
    "tosa": (Tosa,),
    "accuracy": (accuracy.Accuracy, accuracy.CrossValidated),
    "calibrate": (accuracy.Calibrated,),
    "check": (run.Check,),
    "tune": (Tune,),
    "sweep": (SweepResults, SweepDrawn),
    "lint": (compiler.Lint,),
    "latency": (compiler.Latency,),
    "asm": (compiler.Assembled, compiler.CanonicalText),
    "disasm": (compiler.Disassembled,),
    "schedule": (compiler.Schedule,),
    "builtin": (compiler.BuiltinList, compiler.BuiltinCall, compiler.FunctionCall, compiler.DescriptorCall),
    "compiled": (compiler.CompiledValues, compiler.CompiledAssembly, compiler.CompiledTable, compiler.CompiledText),
    "unswizzle": (compiler.Unswizzled,),
    "schema": (run.SchemaList, run.SchemaEntry),
    "completion": (run.Completion,),
    "manual": (run.Manual,),
}
"""The documents of each command that succeeds, in the order of the help."""

FAILURE = run.Failure
"""The document of every command that fails."""

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def version_of(form: type[CommandDocument]) -> int:
    """Return the `schema_version` of a document."""
    return VERSIONS.get(form.NAME, 1)


def every_command() -> tuple[tuple[str, tuple[type[CommandDocument], ...]], ...]:
    """Return all commands with their documents, and last what any command writes that fails."""
    return (*COMMANDS.items(), (FAILURE.NAME, (FAILURE,)))


def every_form() -> tuple[type[CommandDocument], ...]:
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


def form_schema(form: type[CommandDocument]) -> Document:
    """Return the JSON Schema of one document."""
    return _schema(form)


def shape_digest(form: type[CommandDocument]) -> str:
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


def _entry(form: type[CommandDocument]) -> Document:
    return {
        "name": form.NAME,
        "version": version_of(form),
        "shape_sha256": shape_digest(form),
        "meaning": (form.__doc__ or "").strip(),
    }


def _schema(*forms: type[CommandDocument]) -> Document:
    """Return the schema of a document that is one of `forms`."""
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
    """Return a reference to the definition of an object, an enumeration or, of `object`, of anything."""
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
    """Yield the keys of a class under which a text stands, with it."""
    if not issubclass(form, Keys) or "__annotations__" not in vars(form):
        return
    (tree,) = ast.parse(dedent(getsource(form))).body
    assert isinstance(tree, ast.ClassDef)
    for key, text in pairwise(tree.body):
        if isinstance(key, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            assert isinstance(key.target, ast.Name)
            yield key.target.id, cleandoc(str(text.value.value))


def _typed(hint: Any, found: dict[str, Document]) -> Document:
    """Return the schema of the type of a key; `Annotated` adds to that of a type."""
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
        case origin if origin is list:
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
