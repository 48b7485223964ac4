"""Every `--json` document of every sample command is what its schema says."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import sys
from pathlib import Path
from subprocess import run

import pytest
from kit.held_documents import hold
from kit.paths import PROGRAMS, ROOT
from kit.sample_arguments import command as sample_command
from makers.json_schemas import SCHEMAS, bundle
from project.test_docs import COMMANDS as README_COMMANDS
from project.test_docs import commands, some_codes

from castsim.__main__ import main
from castsim.commands.feature import COMMANDS
from castsim.tools.graphs import graph_execution
from castsim.tools.reference import schema as registry

SHAPES = json.loads(Path(__file__).with_name("schema_shapes.json").read_text(encoding="utf-8"))
"""Digests of the shapes that documents have had, by name and version."""

FORMS = {form.NAME: form for _, forms in registry.every_command() for form in forms}
KEY = re.compile(r"[a-z][a-z0-9_]*")

WRITTEN = re.compile(r"(?<![\w/])\w+\.(tpc|pto|toml|bin)\b|--out|--json|--format|sweep --report")
"""What marks commands that read or write files beside the page, or whose standard output is for something else."""

FURTHER = """\
run programs/f32_to_f16_pipelined.pto --timing-only --what-if all --report kernel
run programs/a5_f32_to_e4m3fn_padded.pto --timing-only --report kernel
run programs/micro/f32_to_f16_parts.pto --in x=random:0 --report kernel
run programs/f32_to_f16.pto --timing-only --sync interlock
run programs/tpc_f32_i32_pipelined_goya.tpc --in x=random:0 --lint
run programs/quantise_half.onnx --target a5 --in x=random:1 --arg rows=32
run nosuch.pto
tune programs/tuning/f32_to_bf16_tiles.pto --tile "R in 16,24, C in 512" --simulate 1 --in src=zeros
run programs/f32_to_f16.pto --bogus
lint programs/tpc_f32_i32_pipelined_stale_goya.tpc
latency "add.f32 V6, V1, V2" "add.f32 V7, V8, V3" --target gaudi2
verify f16 e4m3fn --against reference --samples 1000
verify f16 i8 --lowering --spec tosa --target a2a3
lower f32 mxint8 --target a2a3
lower f32 nvfp4 --target gaudi2
targets tosa
targets a5
targets goya
targets a5 f32 f16
targets gaudi2 f32 i16
targets onnx f32 e4m3fn
targets onnx string f32
scratch f32 i16 --rows 4 --cols 200 --row-stride 256
scratch f32 i16 --rows 1:4 --cols 8:64:8 --sweep
scratch programs/f32_to_i16_partial.pto
builtin
builtin --target goya
builtin f32_to_u8_lin_order --target greco --emit
builtin log --target gaudi2
lower f16 i8 --spec tosa --target greco
lower f32 e4m3fn --spec onnx --target a5
lower f32 bf16 --spec exact --target a2a3
schema
schema run
schema errors
""".splitlines()


def commands_of_pages() -> list[str]:
    """Return the commands of the how-to pages, and of some others, that need no file which a page makes."""
    pages = [*(ROOT / "docs" / "how-to").glob("*.md")]
    pages += [ROOT / "docs" / name for name in ("tools/accuracy.md", "inputs-outputs.md")]
    found = dict.fromkeys(line for page in sorted(pages) for line in commands(page.read_text(encoding="utf-8")))
    return [line for line in found if line not in README_COMMANDS and not WRITTEN.search(line)]


def check(words: list[str], path: Path) -> None:
    """Run a command as it stands, and hold its document against the schema."""
    words = [word for word in words if word not in ("--json", "-")] if "--json" in words else words
    main([*words, "--quiet", "--json", str(path)])
    hold(words[0], json.loads(path.read_text()))


def programs() -> list[list[str]]:
    """Return the commands that stand with the programs."""
    found = []
    for path in sorted(PROGRAMS.rglob("*")):
        if path.suffix in (".pto", ".tpc") and (
            path.with_suffix(".expected").exists() or "// castsim " in path.read_text()
        ):
            words = sample_command(path) if "castsim run" in head(path) else []
            if words[1:]:
                found.append(words[1:])
    return found


def head(path: Path) -> str:
    report = path.with_suffix(".expected")
    return (report if report.exists() else path).read_text().replace("\n//", "")


@pytest.mark.parametrize("line", [*README_COMMANDS, *commands_of_pages()])
def test_commands_of_the_readme_and_pages(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_execution, "all_codes", some_codes)
    for entry in ROOT.glob("[a-zA-Z]*"):  # what commands write goes beside the links
        (tmp_path / entry.name).symlink_to(entry)
    monkeypatch.chdir(tmp_path)
    check(shlex.split(line)[1:], tmp_path / "document.json")


@pytest.mark.parametrize("words", programs(), ids=lambda words: words[1])
def test_commands_of_programs(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    check(words, tmp_path / "document.json")


@pytest.mark.parametrize("line", FURTHER)
def test_further_commands(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_execution, "all_codes", some_codes)
    monkeypatch.chdir(ROOT)
    check(shlex.split(line), tmp_path / "document.json")


def test_commands_that_lack_a_schema() -> None:
    named = [name for name, _ in registry.every_command()]
    assert named == [*(name for name in COMMANDS if name != "lsp"), "errors"]  # which speaks a protocol


def shape_digest(name: str) -> str:
    """The SHA-256 of a document's schema without descriptions."""
    text = json.dumps(without_descriptions(registry.form_schema(FORMS[name])), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def without_descriptions(schema: object) -> object:
    """A schema without texts; a key of a document may itself be called `description`: its schema is an object."""
    if isinstance(schema, dict):
        return {
            name: without_descriptions(part)
            for name, part in schema.items()
            if name != "description" or not isinstance(part, str)
        }
    return [without_descriptions(part) for part in schema] if isinstance(schema, list) else schema


@pytest.mark.parametrize("name", FORMS)
def test_a_shape_that_changes_needs_a_new_version(name: str) -> None:
    """After a change: a greater number of its class, its digest in schema_shapes.json, and a line in CHANGELOG.md."""
    held = {int(version): digest for version, digest in SHAPES[name].items()}
    assert max(held) == FORMS[name].VERSION
    assert held[max(held)] == shape_digest(name)


@pytest.mark.parametrize("name", FORMS)
def test_schemas_are_closed_and_told(name: str) -> None:
    """No further keys, keys that are identifiers, names without blanks, a meaning for each."""
    for title, each in registry.form_schema(FORMS[name])["$defs"].items():
        if each.get("type") != "object":
            continue
        assert each["additionalProperties"] is False, title
        assert each["description"], title
        for key, property_ in each["properties"].items():
            assert KEY.fullmatch(key) and property_.get("description"), (title, key)


def test_the_schemas_are_what_the_models_say() -> None:
    assert SCHEMAS.read_text(encoding="utf-8") == bundle(), "python tests json_schemas"


def test_other_commands_do_not_load_the_documents_of_all() -> None:
    code = "import sys; from castsim.__main__ import main; main(['cast', 'f32', 'f16', '1', '--json', '-']); "
    code += "assert 'castsim.tools.reference.schema' not in sys.modules"
    shown = run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
