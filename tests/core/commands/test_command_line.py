"""The command line itself: help, global options, colours, where text and JSON go; the help says what is done."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import shlex
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest
from kit.cli_programs import written
from kit.command_output import err_of, out_of
from kit.paths import PROGRAMS, ROOT

from castsim import __version__
from castsim.__main__ import main
from castsim.commands import command_line
from castsim.commands.failure import report_failure
from castsim.commands.feature import COMMANDS, shipped_features
from castsim.execution.run_limits import MAX_COMPUTED, MAX_ELEMENTS, MAX_WALK
from castsim.isa.errors import MAX_STATEMENTS
from castsim.tools.graphs.graph_execution import MOST_ELEMENTS

CHECKOUT = ROOT
Capture = pytest.CaptureFixture[str]


def test_import_and_its_names_load_nothing_of_the_extras() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    extras = {re.split(r"[\[<>=]", each)[0] for extra in project["optional-dependencies"].values() for each in extra}
    assert {"onnx", "pygls", "pandas"} <= extras
    script = (
        "import sys, castsim; before = set(sys.modules); [getattr(castsim, name) for name in castsim.__all__]; "
        f"print('numpy' in before, *({extras!r} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


@pytest.mark.parametrize(
    ("typed", "as_if"),
    [([], ["--help"]), (["help"], ["--help"]), (["help", "run"], ["run", "--help"]), (["-V"], ["--version"])],
)
def test_short_ways_to_help_and_version(typed: list[str], as_if: list[str], capsys: Capture) -> None:
    assert main(as_if) == 0
    expected = capsys.readouterr()
    assert main(typed) == 0
    assert capsys.readouterr() == expected


def test_help_names_every_command_and_the_version_is_told(capsys: Capture) -> None:
    out = out_of(capsys, ["--help"])
    assert all(f"\n  {name} " in out for name in COMMANDS)
    assert [line[2:].split()[1] for line in out.split("Start with:")[1].split("\n\n")[0].splitlines() if line] == [
        "run", "check", "cast", "targets", "advise",
    ]  # fmt: skip
    for group in (
        "Run and look",
        "Casts and specifications",
        "Improve",
        "TPC tools",
        "Evidence",
        "Editors and scripts",
    ):
        assert f"\n\n{group}:\n  " in out
    assert out_of(capsys, ["--version"]) == f"castsim {__version__}\n"


@pytest.mark.parametrize(
    ("argv", "destination"),
    [
        ([], None),
        (["--json", "a", "run"], "a"),
        (["run", "--json=b", "x"], "b"),
        (["run", "--json", "a", "--json", "-"], "-"),
        (["cast", "f32", "f16", "--", "--json", "a"], None),
        (["run", "--json"], None),
    ],
)
def test_the_json_destination_is_found_whatever_else_is_wrong(argv: list[str], destination: str | None) -> None:
    assert command_line.json_destination(argv) == destination


@pytest.mark.parametrize("argv", [["--json", "-", "targets"], ["targets", "--json", "-"], ["targets", "--json=-"]])
def test_json_on_standard_output_stands_alone(argv: list[str], capsys: Capture) -> None:
    document = json.loads(out_of(capsys, argv))
    assert next(iter(document)) == "schema_version"


def test_json_in_a_file_comes_beside_the_text(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "report.json"
    assert "a2a3" in out_of(capsys, ["targets", "--json", str(file)])
    assert json.loads(file.read_text())["targets"][0]["name"] == "a2a3"
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
    assert file.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_json_file_that_cannot_be_written_costs_the_exit_code_but_not_the_text(
    tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "nowhere" / "report.json"
    assert main(["targets", "--json", str(file)]) == 2
    out, err = capsys.readouterr()
    assert err == (f"error: cannot write --json '{file}': No such file or directory\n  help: --json FILE, --json -\n")
    assert "a2a3" in out


@pytest.mark.parametrize("argv", [["--quiet", "targets"], ["targets", "--quiet"]])
def test_quiet(argv: list[str], capsys: Capture) -> None:
    assert main(argv) == 0
    assert capsys.readouterr() == ("", "")


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def text_on_a_terminal(monkeypatch: pytest.MonkeyPatch, argv: list[str]) -> str:
    stream = Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    assert main(argv) == 0
    return stream.getvalue()


def test_colour_is_for_terminals_and_adds_nothing_else(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = ["run", written(tmp_path), "--timing-only"]
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    piped = out_of(capsys, argv)
    assert "\x1b" not in piped
    coloured = text_on_a_terminal(monkeypatch, argv)
    assert "\x1b[" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    assert text_on_a_terminal(monkeypatch, argv) == piped


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (BrokenPipeError(32, "Broken pipe"), 0, ""),
        (OSError(28, "No space"), 2, "error: cannot write standard output: No space\n"),
    ],
    ids=["closed", "full"],
)
def test_only_a_full_disk_is_an_error(
    raised: OSError, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    class Failing(Terminal):
        def write(self, text: str) -> int:
            raise raised

    monkeypatch.setattr(sys, "stdout", Failing())
    assert err_of(capsys, ["targets"], code) == said


def test_a_terminal_without_unicode_gets_escapes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    path = written(tmp_path, name="k\u00fchl.pto")
    assert main(["run", path, "--timing-only"]) == 0
    stream.seek(0)
    assert "k\\xfchl.pto @narrow" in stream.read()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("redirection", [">/dev/full", ">&-"])
@pytest.mark.parametrize("argv", ["targets", "targets --json -", "--help", "run --help", "-V", ""])
def test_an_unusable_standard_output_is_said_once(redirection: str, argv: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = f"{sys.executable} -m castsim {argv} {redirection}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("error: cannot write standard output: ")


def test_a_closed_error_output_does_not_spill_into_the_document() -> None:
    command = f"{sys.executable} -m castsim cast f32 f16 x --json - 2>&-"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert json.loads(done.stdout)["errors"][0]["message"].startswith("'x' is not a number")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["run", "a\0.pto"], "contains a null character"),
        (["run", "a.pto", "--max-cycles", "9" * 5000], "is too long"),
        (["scratch", "f32", "i16", "--rows", "9" * 5000, "--cols", "8"], "is too long"),
        (["run", "a.pto", "--json", "a\0b"], "contains a null character"),
    ],
)
def test_arguments_that_are_neither_name_nor_number(argv: list[str], message: str, capsys: Capture) -> None:
    err = err_of(capsys, argv)
    assert message in err
    assert "internal" not in err


def test_too_little_memory_is_no_internal_error(capsys: Capture) -> None:
    assert report_failure(MemoryError("Unable to allocate 512. GiB"), "-") == 1
    out, err = capsys.readouterr()
    assert err == "error: not enough memory: Unable to allocate 512. GiB\n"
    assert json.loads(out)["errors"][0]["kind"] == "engine cannot go on"


VARIABLES = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE")
FAILING = (sys.executable, "-m", "castsim", "cast", "f32", "f99", "1")
RED = b"\x1b[1;31merror:\x1b[0m unknown format"


def environment(variables: dict[str, str]) -> dict[str, str]:
    """The variables, and of all others those that do not decide about colour."""
    rest = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    return {**rest, "TERM": "xterm-256color", **variables}


def on_terminal(variables: dict[str, str]) -> bytes:
    """What a failing command writes to a pseudo-terminal: a few lines, which its buffer holds."""
    ours, theirs = pty.openpty()
    try:
        subprocess.run(FAILING, stdout=theirs, stderr=theirs, env=environment(variables), check=False)
    finally:
        os.close(theirs)
    written = b""
    with suppress(OSError), os.fdopen(ours, "rb", buffering=0) as terminal:  # nobody has it open: EIO at the end
        while more := terminal.read(4096):
            written += more
    return written


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"CLICOLOR": "0"}, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
    ],
)
def test_errors_on_a_terminal(variables: dict[str, str], coloured: bool) -> None:
    written = on_terminal(variables).rpartition(b"\x1b[2K")[2]  # on a busy machine a bar comes first
    assert written.startswith(RED if coloured else b"error: unknown format")
    assert (b"\x1b" in written) == coloured


@pytest.mark.parametrize(("variables", "coloured"), [({}, False), ({"FORCE_COLOR": "1"}, True)])
def test_errors_in_a_pipe(variables: dict[str, str], coloured: bool) -> None:
    done = subprocess.run(FAILING, capture_output=True, env=environment(variables), check=False)
    assert done.stderr.startswith(RED if coloured else b"error: unknown format")


QUANTISE = str(PROGRAMS / "quantise_block.onnx")


def shown(capsys: Capture, command: str) -> dict[str, str]:
    """Return what the help says of each option, in one line."""
    assert main([command, "--help"]) == 0
    found: dict[str, list[str]] = {}
    words: list[str] = []
    for line in capsys.readouterr().out.partition("options:")[2].splitlines():
        if line.startswith("  --"):
            words = found.setdefault(line.split()[0], [])
        elif not line.strip():
            words = []
        words.append(line.strip())
    return {option: " ".join(lines) for option, lines in found.items()}


def test_the_limits_in_the_help_are_those_that_are_kept(capsys: Capture) -> None:
    run, graph = shown(capsys, "run"), shown(capsys, "graph")
    assert [int(number) for number in re.findall(r"\d+", run["--max-walk"])] == [MAX_WALK, MAX_COMPUTED]
    assert [int(number) for number in re.findall(r"\d+", run["--max-statements"])] == [MAX_STATEMENTS]
    assert [int(number) for number in re.findall(r"\d+", run["--max-elements"])] == [MAX_ELEMENTS]
    assert [int(number) for number in re.findall(r"\d+", graph["--max-elements"])] == [MOST_ELEMENTS]


@pytest.mark.parametrize(
    "words",
    [
        "--entry f", "--no-skip", "--timing-only", "--tile R=3", "--max-cycles 5", "--sync interlock", "--show-sync",
        "--races ignore", "--report kernel", "--timeline", "--trace t", "--window 1:2", "--what-if all",
        "--unsafe-scratch", "--lint", "--stale-reads stop", "--declare d", "--machine 3",
    ],
)  # fmt: skip
def test_run_refuses_what_means_nothing_for_a_graph(words: str, capsys: Capture) -> None:
    command = ["run", QUANTISE, "--target", "a5", "--in", "x=zeros", "--arg", "rows=2", *words.split()]
    assert f"{words.split(maxsplit=1)[0]} applies to programs" in err_of(capsys, command)


# ---------------------------------------------------------------------------------------------------------- examples


def examples() -> list[str]:
    texts = [feature.text for feature in shipped_features()]
    lines = [line.strip() for text in texts for line in text.partition("examples:")[2].split("\n")]
    return [line.removeprefix("castsim ") for line in lines if line.startswith("castsim ")]


@pytest.mark.parametrize("line", examples())
def test_examples_of_the_help_are_understood(line: str) -> None:
    command_line.parse(shlex.split(re.split(" [<>] ", line)[0]))


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_help_fits_the_terminal(columns: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for words in (["--help"], *([command, "--help"] for command in COMMANDS)):
        printed = out_of(capsys, words)
        usage, _, rest = printed.partition("\n\n")
        too_long = [line for line in rest.splitlines() if len(line) > min(columns, 120)]
        # Examples, tables and samples are indented by two and stay as they are written.
        assert [line for line in too_long if not line.startswith("  ")] == [], words
        assert usage.startswith("usage: castsim")
