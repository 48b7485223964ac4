"""Completion as shells do it, the manual page, the short ways into castsim; grammars and extension of editors."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from kit.measured_record import MEASURED, read, rows
from kit.paths import PROGRAMS, ROOT

from castsim import __version__
from castsim.__main__ import main
from castsim.commands.command_line import parser_of
from castsim.commands.feature import COMMANDS
from castsim.isa.formats import FORMATS
from castsim.reports.pages.grammars import FILES, written
from castsim.targets.loader import specification_names, target_names
from castsim.tools.reference.completion import SHELLS, words_of

Capture = pytest.CaptureFixture[str]
PAGE = ROOT / "docs" / "man" / "castsim.1"
TILES = str(PROGRAMS / "f32_to_f16.pto")

BASH = """
source "$1"
COMP_WORDS=("${@:2}")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
complete_with=$(complete -p castsim)
[[ $complete_with =~ -F\\ ([^\\ ]+) ]] && ${BASH_REMATCH[1]} castsim "${COMP_WORDS[COMP_CWORD]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
"""Takes the script and the words typed, the last of which is to be completed."""


def script(shell: str, folder: Path) -> Path:
    path = folder / f"castsim.{shell}"
    assert main(["completion", shell, "--json", str(folder / "it.json"), "--quiet"]) == 0
    path.write_text(json.loads((folder / "it.json").read_text())["script"])
    return path


@pytest.fixture(scope="module")
def bash_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The script for bash."""
    return script("bash", tmp_path_factory.mktemp("bash"))


def completed(path: Path, *words: str) -> set[str]:
    """Return what bash offers for the last of some words."""
    done = subprocess.run(
        ["bash", "--norc", "-c", BASH, "bash", str(path), "castsim", *words],
        capture_output=True, text=True, check=True, cwd=PROGRAMS,
    )  # fmt: skip
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("",), {*COMMANDS, "help"}),
        (("ca",), {"calibrate", "cast"}),
        (("--js",), {"--json"}),
        (("help", "comp"), {"compare", "compiled", "completion"}),
        (("run", "--st"), {"--stale-reads"}),
        (("run", "--engine", ""), {"fast", "event"}),
        (("run", "--target", "ga"), {"gaudi", "gaudi2", "gaudib"}),
        (("run", "x.pto", "--races", ""), {"stop", "report", "ignore"}),
        (("cast", "e4"), {"e4m3fn", "e4m3fnuz"}),
        (("cast", "f32", "bf"), {"bf16"}),
        (("cast", "f32", "f16", "1", "--target", ""), {*target_names(), "all", "abstract"}),
        (("cast", "f32", "f16", "1", "--rounding", "t"), {"trunc"}),
        (("lower", "f32", "i8", "--spec", ""), set(specification_names())),
        (("conform", "--src", ""), set(FORMATS)),
        (("targets", "go"), {"goya"}),
        (("check", "--format", ""), {"text", "json", "github", "sarif"}),
        (("run", "f32_to_f16.p"), {"f32_to_f16.pto"}),
        (("run", "x.pto", "--out", "micr"), {"micro"}),
        (("completion", "z"), {"zsh"}),
    ],
)  # fmt: skip
def test_bash_offers(words: tuple[str, ...], offered: set[str], bash_script: Path) -> None:
    assert {each.rstrip("/") for each in completed(bash_script, *words)} == offered


@pytest.mark.parametrize("name", COMMANDS)
def test_bash_offers_all_options_of_a_command(name: str, bash_script: Path) -> None:
    options = {option for action in parser_of(name)._actions for option in action.option_strings}
    assert completed(bash_script, name, "-") >= {option for option in options if option.startswith("-")}


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_has_the_syntax_of_its_shell(shell: str, tmp_path: Path) -> None:
    path = script(shell, tmp_path)
    assert all(name in path.read_text() for name in COMMANDS)
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    checked = ["source", str(path)] if shell == "tcsh" else None
    command = ["tcsh", "-f", "-c", " ".join(checked)] if checked else [shell, "-n", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_script_says_as_text_what_it_says_as_json(capsys: Capture, bash_script: Path) -> None:
    assert main(["completion", "bash"]) == 0
    assert capsys.readouterr().out.rstrip("\n") == bash_script.read_text().rstrip("\n")


REFUSED = {
    **{f"run {option}": [TILES, "--timing-only"] for option in ("level", "sync", "races", "stale_reads")},
    **{f"run {option}": [TILES, "--timing-only"] for option in ("engine", "toolchain", "report")},
    "run backend": ["-e", "tcvt f32 -> e4m3fn 16x512 sat", "--target", "a5"],
    "run target": [TILES],
    "cast rounding": ["f32", "f16", "1"],
    "cast overflow": ["f32", "f16", "1"],
    "cast saturation": ["f32", "f16", "1", "--target", "a5"],
    "cast spec": ["f32", "f16", "1"],
    "verify rounding": ["f16", "i8"],
    "verify tier": ["f16", "i8"],
    "verify against": ["f16", "i8"],
    "conform src": ["--spec", "tosa"],
    "conform dst": ["--spec", "tosa"],
    "lower spec": ["f16", "i8", "--target", "a5"],
    "lower via": ["f16", "i8", "--target", "a5"],
    "check format": [TILES],
    "check language": [TILES],
    **{f"compiled {option}": ["f32", "u16", "1", "--target", "gaudi"] for option in ("form", "reading", "order")},
    "compiled rounding": ["f32", "u16", "1", "--target", "gaudi"],
}


@pytest.mark.parametrize("option", REFUSED)
def test_the_words_are_those_that_a_refusal_lists(option: str, capsys: Capture) -> None:
    command, name = option.split()
    (action,) = (each for each in parser_of(command)._actions if each.dest == name)
    main([command, *REFUSED[option], action.option_strings[-1], "zzq", "--json", "-"])
    (error,) = json.loads(capsys.readouterr().out)["errors"]
    assert set(words_of(command, action)) == set(error["legal"]) - {"PATH.toml"}


# ------------------------------------------------------------------------------------------------------ manual page


def test_the_page_is_what_the_parsers_say(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")  # which must not matter
    assert main(["manual"]) == 0
    assert capsys.readouterr().out == PAGE.read_text(), "castsim manual > docs/man/castsim.1"


def test_the_page_is_installed() -> None:
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["data-files"]
    assert built == {"share/man/man1": ["docs/man/castsim.1"]}


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_the_page_is_set_without_a_warning() -> None:
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-P-cbou", str(PAGE)], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    shown = " ".join(done.stdout.split())
    assert f"castsim {__version__}" in shown
    for name in COMMANDS:
        assert f"castsim {name} " in shown


# -------------------------------------------------------------------------------------------------------- short ways


# ------------------------------- grammars and extension under `docs/editors/`: what the tables give, what programs have


VSCODE = ROOT / "docs" / "editors" / "vscode"


@pytest.mark.parametrize("language", FILES)
def test_files_are_what_the_tables_give(language: str) -> None:
    assert (VSCODE / "syntaxes" / FILES[language]).read_text(encoding="utf-8") == written(language)


def scope(language: str, text: str, word: str) -> str:
    """Return the scope of a word of a line: that of the first rule which matches from its start."""
    at = text.index(word)
    found = [
        (match.start(), number, rule["name"])
        for number, rule in enumerate(json.loads(written(language))["patterns"])
        if "match" in rule
        for match in re.finditer(rule["match"].replace("(?<=-)", ""), text)
        if match.start() <= at < match.end()
    ]
    return min(found)[2] if found else ""


@pytest.mark.parametrize(
    ("language", "text", "word", "name"),
    [
        ("pto", "    pto.tcvt ins(%a : f32) // x", "pto.tcvt", "support.function"),
        ("pto", "    pto.tfillpad_expand ins(%a)", "_expand", "support.function"),
        ("pto", "    %v = pto.vcvt %a", "pto.vcvt", "support.function"),
        ("pto", "    pto.tcvt ins(%a : f32) // x", "%a", "variable.other"),
        ("pto", "    pto.tcvt ins(%a : f32) // x", "// x", "comment.line.double-slash"),
        ("pto", "    scf.for %i = %c0 to %n", "scf.for", "keyword.control"),
        ("pto", "{rmode = #pto<round_mode ROUND>}", "ROUND", "constant.language"),
        ("pto", "!pto.tile_buf<vec, 16x512xf8E4M3FN>", "f8E4M3FN", "storage.type"),
        ("tpc", "nop; nop; convert.f32 target_type=int16 rhne V4, V2; nop", "convert.f32", "support.function"),
        ("tpc", "nop; nop; convert.f32 target_type=int16 rhne V4, V2; nop", "int16", "storage.type"),
        ("tpc", "nop; nop; convert.f32 target_type=int16 rhne V4, V2; nop", "rhne", "constant.language"),
        ("tpc", "nop; nop; convert.f32 target_type=int16 rhne V4, V2; nop", "V4", "variable.language"),
        ("tpc", "// castsim: target gaudi2", "castsim", "comment.line.documentation"),
        ("tpc", "End:", "End", "entity.name.label"),
    ],
)
def test_words_have_their_scopes(language: str, text: str, word: str, name: str) -> None:
    assert scope(language, text, word) == name


def test_the_extension_names_its_files() -> None:
    package = json.loads((VSCODE / "package.json").read_text(encoding="utf-8"))
    contributes = package["contributes"]
    bundled = package["scripts"]["vscode:prepublish"].split()  # esbuild makes `main` of it
    assert bundled[0] == "esbuild" and f"--outfile={package['main'].removeprefix('./')}" in bundled
    places = [bundled[1], *(one["path"] for one in contributes["grammars"])]
    places += [one["configuration"] for one in contributes["languages"]]
    assert all((VSCODE / place).is_file() for place in places)
    assert package["version"] == __version__
    assert [one["scopeName"] for one in contributes["grammars"]] == [
        json.loads(written(language))["scopeName"] for language in FILES
    ]


def test_launches_have_the_attributes_that_the_adapter_reads() -> None:
    package = json.loads((VSCODE / "package.json").read_text(encoding="utf-8"))
    (debugger,) = package["contributes"]["debuggers"]
    read = (ROOT / "simulator" / "tools" / "debugger" / "debug_adapter.py").read_text(encoding="utf-8")
    attributes = debugger["configurationAttributes"]["launch"]["properties"]
    assert [name for name in attributes if f'"{name}"' not in read] == []


def test_edits_in_long_texts_are_answered_within_the_limit() -> None:
    """As measured by `tests/benchmarks/editing.py`: 10,000 lines, 200 ms at the median."""
    found = rows(read(MEASURED / "editing.json")["tables"][0])
    assert len(found) == 3
    assert all(row["lines"] >= 9_990 and row["median ms"] < 200 for row in found)


def test_names_and_colours_in_long_texts_are_found_within_the_limits() -> None:
    """As measured by `tests/benchmarks/navigation.py`: the server's own time, 99th percentile of each question."""
    found = rows(read(MEASURED / "navigation.json")["tables"][0])
    assert {row["question"] for row in found} == {"definition", "references", "colours", "colours that changed"}
    assert len(found) == 12
    assert all(row["lines"] >= 9_990 and row["own 99 % ms"] <= row["limit ms"] for row in found)
