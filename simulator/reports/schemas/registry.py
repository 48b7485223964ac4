"""Which documents each command may write, their JSON Schemas, and the digests of shapes that documents have had."""

from __future__ import annotations

import ast
import hashlib
import json
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
    own_conversions,
    program_scratch,
    scratch,
    specification,
    stepping,
    targets,
    tuning,
)
from castsim.reports.documents import VERSIONS, CommandDocument, Document, Json, Keys, keys_of
from castsim.reports.run_findings import Run
from castsim.reports.schemas import command_documents as own

COMMANDS: Mapping[str, tuple[type[CommandDocument], ...]] = {
    "run": (Run, own.AllEntries, graph_text.Graph),
    "record": (own.Recorded,),
    "diff": (comparing.Difference,),
    "view": (own.Viewed,),
    "debug": (stepping.Debug,),
    "advise": (tuning.Advise,),
    "expand": (own.Expanded,),
    "targets": (
        targets.TargetsList,
        targets.TargetDescription,
        targets.TargetPair,
        targets.TargetsDiff,
        specification.SpecificationDescription,
        specification.SpecificationPair,
    ),
    "cast": (cast.Cast, cast.CastText),
    "quantise": (cast_text.Quantise,),
    "compare": (own_conversions.Compare,),
    "verify": (own.Verification, own.LoweringVerification, own.SubstitutionVerification),
    "scratch": (scratch.Scratch, scratch.EveryScratch, scratch.ScratchSweep, program_scratch.ProgramScratch),
    "lower": (lower.Lower, conform.LoweredMatrix, lower.LoweredBlocks),
    "conform": (conform.Conform,),
    "graph": (graph_text.Graph,),
    "tosa": (own.Tosa,),
    "accuracy": (accuracy.Accuracy, accuracy.CrossValidated),
    "calibrate": (accuracy.Calibrated,),
    "check": (own.Check,),
    "tune": (tuning.Tune,),
    "sweep": (own.SweepResults, own.SweepDrawn),
    "lint": (listing.Lint,),
    "latency": (listing.Latency,),
    "asm": (listing.Assembled, listing.CanonicalText),
    "disasm": (listing.Disassembled,),
    "schedule": (own.Schedule,),
    "builtin": (targets.BuiltinList, builtins.BuiltinCall, builtins.FunctionCall, builtins.DescriptorCall),
    "compiled": (compiled.CompiledValues, compiled.CompiledAssembly, compiled.CompiledTable, compiled.CompiledText),
    "unswizzle": (listing.Unswizzled,),
    "schema": (own.SchemaList, own.SchemaEntry),
    "completion": (own.Completion,),
    "manual": (own.Manual,),
}
"""The documents of each command that succeeds, in the order of the help."""

FAILURE = own.Failure
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


# The shapes that documents have had, as digests: a shape that changes needs a new version.

DIGESTS: Mapping[str, Mapping[int, str]] = {
    "accuracy": {
        2: "582466f8e51acac910f1a3cdddc25be5ad864b4c37e585796f0f776fc358c3c5",
        3: "b226b03495ab4479d0a6ab64d8aed7b22f0e9123f03469787761420cb4d0b56d",
        4: "4e2f8c41e7bcc81a6f1a0fba3e36d13c1df45e12e6f640dafb891be3180033a2",
        5: "2633cac8d876d5f3c70c6d44674d0b3df9ce3fe8ba2fdef97596a4723d684b5e",
    },
    "accuracy-cross-validation": {1: "f57da7fe0086bab10f157d74d633297d364348104106d2e4c6a15c21d5c4fe16"},
    "advise": {
        1: "13108fa7166febaee81417f77d21fc89e6938da84fb08a031e0e1dcf2b16a546",
        2: "cb2be41626304db002182be34f0dbb98f9f86f79a0eb310c54f03489dcdb656e",
    },
    "asm": {1: "e52936620fc71f0c4ab07039d37989175850031b08041dc89c37428d1bafdb3e"},
    "asm-text": {1: "f2caa3e967a78e998c8a6aa9c9a4a4797d768494ed5b844f94efce02f0b9cfbc"},
    "builtin": {1: "3d296a94b4b9eaccddfaf2752234131500392ffb62e53279df7b94b8c806746f"},
    "builtin-descriptor": {1: "5374f157ed0218bee2e9b78dc9a1652d0cd2fd1edfeac7a5a0ae99583728bd76"},
    "builtin-function": {1: "051835981ff2046eccd086b1f0773c06e7d3f7e6dbac9a5574f9896f7c4bdd42"},
    "builtin-list": {1: "44e5352736b8b4c801a88492fb5765ebb2643910cddb50108a136d8b6748a966"},
    "calibrate": {1: "9ab9de4caf6c9bedff02ae9701755e98e2f6e1f7be46409326db52d81e384746"},
    "cast": {
        1: "2f1d28838524c1431efe25e7c1119e3ac6f5dc9eb8654e967d8a87b7329edcf7",
        2: "7643b2f9cde915409ea3bb8e943ef08b8a0f5756160f311d0942e5d5948e5199",
        3: "425157e6d2a91c9ea5eab15db604dcfe4a20cf89fadcd09a1be3553c416ff8dd",
    },
    "cast-text": {1: "1abe419d7e88c35335e3772bb7763d6026fb7bad246af204c8bb6365b29f32c4"},
    "check": {1: "67777cdac608aecb4bbab72a8ebd487f9dd3d01a062d1cc9d008bd8f2b79f192"},
    "compare": {1: "55f1d5d539fca317ae3eb185b02475a86c3b8f26bf26d4c793b6871c6905d09b"},
    "compiled": {1: "85750043262e964f9fabec88d414deb0c2f9f5f69f9e61115c5ea8ca95936a10"},
    "compiled-emit": {1: "f8b8b1591bfa4ffcc1b02401369734f91ce24d892d52ba5e80a03a6c90477516"},
    "compiled-ir": {1: "1b4168326fdbd392f04a03df76f8dbce6c7a7fe215bfc93db9d9fabc64147a4c"},
    "compiled-table": {1: "8590d4ddd5b35f4550dad89077ba6885c72404347968ee48d0c64500785dca8e"},
    "completion": {1: "1af64faa540c403677a0cca3b9b9efafc1d32c8771f338875ae06db9d263775e"},
    "conform": {
        2: "4ca43676f0f0136ee867b6b86a1625ed010d236d0c2662487f719703bafe8155",
        3: "1d5bd42e282f075a51647465035026c40bb92d3de4c0094af3a03b2378808ede",
        4: "dde9816d83fc1b75740868b7de9a91eebfc673b04b76fee92c02f159a2a8d9c0",
    },
    "diff": {
        1: "6e180b3f0e060841779886bde0cfccfa210ec56af74fab2a1b7c29526704ee42",
        2: "8771d2a47fbc58bb00c0adacae3d3c2e5c44aebab6d2de9992ae1277e3562af4",
    },
    "debug": {1: "edc10f4057e5251844697168e5404f0be0c91df77efbd4c8afb5d4bdbac50e37"},
    "disasm": {1: "ccfb69fa1375d933f1e138d34363f9707f33ca4932b9f56ecae02832edb83d06"},
    "errors": {1: "cf6c4daf152a7b26fc30afccc5bbdb83ca463c9ebbe82148cdc482869cc05450"},
    "expand": {1: "24187567aaa897843641f1ee56fc35055e901d5e1eaa69dd97da05d770a3defc"},
    "graph": {
        2: "15c0ce2ecbd2a4b46e4861c7ef4b9b618c4fcf29624fbbb21d44b4a3bf352a66",
        3: "5e1f2a98f71a6eb084899436aa2ab226d7fcbc2b165f74ef95e6cbd9a05d9afc",
    },
    "latency": {1: "5449578098740bb4d7cc321da99c412663fd32a793f2f8219f9411e73c4a0ed4"},
    "lint": {1: "b67132cec1fb1daece1b072c8163e84a91cf6ce7d6d1e9a4b99bfea23384085a"},
    "lower": {
        1: "1ac51dd290ea3f20fcc25d8a9f406f284fa1109a0ec8673412fd7d9ef485ad36",
        2: "95e53e3740c12880e2b1c6e09151abee27b8560650e6e4e0bd140be19ed008cc",
    },
    "lower-blocks": {1: "10cfcc14f7fda4f300cde3cdaf870a8fe0bc281110ae95a041e0c0f11ccb7991"},
    "lower-matrix": {
        1: "b6f27b950dec92ad28a4d00374edb243b74f16dab6b6e5c9242882f08cffe766",
        2: "bc0fc1f24d5ad2c74c6226809855a3f9eb84afc812ad356d0cf0cfab4fe463bc",
    },
    "manual": {1: "e391c8574e76abff397aac5f7b65c0db6e84f57ae2c9d74a9f2842028cd49a6d"},
    "quantise": {1: "8b801dc9f393b9a43fa0e3533198c76f30775d4bcd31b05c664b6fe62cd8c536"},
    "record": {1: "230a01ccde64432235bbb28059bf5dbf241f97efc474988f711e8a0852ccf2ae"},
    "run": {
        2: "6aa4d4a9bd0adc2363a18282687462b2ac05c1741a99a602751e21d297a010d8",
        3: "dbe4bc0202d47b92a453602f75b22a8fcdd27b7ab05187c58cdffd36996d3ec8",
        4: "24fa55039891b9f082fc5473fb5af1c809c1dcb8d184a47f4615d0ecae507f93",
        5: "4ecbd117f9107f7cb2fb36a25f2282cff00769816032743ad9b7e46d84b32b69",
        6: "e467bff8948b54fa355c9cb10bf9c6ae62e892cfc6a3c85fe149967ecf430769",
        7: "baa7657d8efbe5ba2b2bae9fa576f1018730f312cefff644952e3ea54ee41cfa",
    },
    "run-all-entries": {1: "00da867b491103544d0191d9eb763a6fca4a30f7e8704c82699940901bd51e2f"},
    "schedule": {1: "839389c3b6b2fd0a0f2bda5aab980a4a330c212f5956c7c413f25b1272b3ed1f"},
    "schema": {1: "c60343411102767c8c53363d96a55426a3265f41f2def3561bd8814aa1e8d78b"},
    "schema-list": {1: "47dc6240060d78872ff8c0d375fc0631ddb9f9d9287826a1d67a56994b013a16"},
    "scratch": {1: "e08b0e4d252fc609603b6c82387b974ac853e42c60aa1dcb6fe276b5ea0f3c00"},
    "scratch-all": {1: "7bc5231ed8eaa9b06e34f570d9c4e55a35ed9b6465317b71d142aeb7612a7671"},
    "scratch-program": {1: "666845e275dd97feea1be88a15fccdf7e9a152bde1d12c40e547e5c13589d9ed"},
    "scratch-sweep": {1: "5e81b1432afcee67f6bb3e2f8e9a3bd7e4f2ae578b4aa5a3f6e7c1acc299ee5c"},
    "specification": {2: "0965436a25408618d5ca9b93cbda55af2231c090a0cdac11b6aa1c72a8576123"},
    "specification-pair": {2: "c371d4c65965663ac19b82bf18ef73aa8389f62411cb40c3db97ca1b5990a29b"},
    "sweep": {1: "40421d032cf0a4224f9c6aa819bd00ed8bb37dc3e282c0dad5ba146fe7d180e3"},
    "sweep-report": {1: "f57710da272cb4b30cdb31bb6e73cf0e260993438d733317fd8e8a4f76323440"},
    "targets": {1: "6b2cf1dcd80030e46792ac259990bbd8754254af8df301258ffe42ff15da093e"},
    "targets-diff": {
        2: "c1c6e617ea37bc2fa81feed6a34402d2d5a4e04501563899ae4bb532ca71854b",
        3: "c1b65049228e23e39ea55374f94fc975703b6a29ce834cdb684c5937a379890b",
    },
    "targets-list": {1: "d8d8984983f5988c6095bfd25a7553f906d1284875410c6c4d22fc591e8febdc"},
    "targets-pair": {2: "72d2659f20a01ca1b7a75b9be4674178211f5b8a3894934b5abcab3e60e142f4"},
    "tosa": {1: "cdbf336af5e52ba66a86f60b6441be8fa5bbe967489312ec78f5127350277b94"},
    "tune": {1: "903c5a73387d67abb81978f5ed0ae13299d169489e238779fe4b7444f901bfb6"},
    "unswizzle": {1: "8c08a06ec43948482ab8adeddd3bb326651bce5636271a0d7f8c6956a4190294"},
    "verify": {
        2: "cad0c3451bd6ad070fca81dbff86c5eaf46ac480a8b7fea21e74807d104dde94",
        3: "d2ab856e5a66c8a0727bc0dd29f780c24efbb9b666b1c096f8313b0aa6640735",
    },
    "verify-lowering": {
        2: "e4f9c096732a745f2276a2c447cacb72a098f840241d634df845ce095a37ac9d",
        3: "5f8f57072792de0c817894f4714802a070955703f2fa6e3b9479a8b4d93954a2",
    },
    "verify-substitutions": {
        1: "f24b5b013bb040767c39e4a1897e29679068d330712eef812a18642fd03c79f3",
        2: "bcfdc3e2df157ad5ce96b89a2dd33a84f89bf4f748087e80e27a0bc421b12531",
    },
    "view": {1: "79039746a96587f14d49e67ffdbf30e2a33bf1a9edf333fecb1891322d6d7e9a"},
}
"""SHA-256 of the schema of each document without its descriptions, by name and `schema_version`.

Digests that have been released are never edited: a new shape gets a number of its own here, and in
`castsim.reports.documents.VERSIONS`.
"""
