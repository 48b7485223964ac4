"""The command line itself: help at once, global options, where text and JSON go."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from cli_programs import written

from castsim import __version__
from castsim.__main__ import main
from castsim.commands import command_line
from castsim.commands.failure import report_failure

CHECKOUT = Path(__file__).resolve().parent.parent
Capture = pytest.CaptureFixture[str]
HEAVY = ("numpy", "rich", "pydantic", "simpy", "ml_dtypes", "numba", "dataclasses")
"""Modules that take tens of milliseconds to import; the last one because it pulls in `inspect`."""


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with castsim as an installation lays it out, by links into this checkout."""
    checkout, folder = Path(command_line.__file__).parents[2], tmp_path_factory.mktemp("installed")
    (folder / "castsim").mkdir()
    for entry in (*(checkout / "simulator").iterdir(), checkout / "isa", checkout / "targets"):
        (folder / "castsim" / entry.name).symlink_to(entry)
    return folder


@pytest.mark.parametrize("argv", [["--help"], ["--version"], *([name, "--help"] for name in command_line.COMMANDS)])
def test_help_and_version_import_nothing_heavy(argv: list[str], laid_out: Path) -> None:
    script = (
        "import sys; from castsim.__main__ import main; code = main(sys.argv[1:]); "
        f"print(code, *[name for name in {HEAVY!r} if name in sys.modules])"
    )
    # -S keeps the import hooks of an editable installation out, which are not ours.
    environment = {**os.environ, "PYTHONPATH": str(laid_out)}
    done = subprocess.run(
        [sys.executable, "-S", "-c", script, *argv], capture_output=True, text=True, check=True, env=environment
    )
    assert (done.stdout.splitlines()[-1], done.stderr) == ("0", "")


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


def test_help_names_every_command(capsys: Capture) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"\n  {name} " in out for name in command_line.COMMANDS)


def test_version(capsys: Capture) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"castsim {__version__}\n"


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
    assert main(argv) == 0
    document = json.loads(capsys.readouterr().out)
    assert next(iter(document)) == "schema_version"


def test_json_in_a_file_comes_beside_the_text(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "report.json"
    assert main(["targets", "--json", str(file)]) == 0
    assert "a2a3" in capsys.readouterr().out
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


def test_quiet_does_not_silence_errors(capsys: Capture) -> None:
    assert main(["--quiet", "targets", "nowhere"]) == 2
    assert capsys.readouterr().err.startswith("error: unknown target")


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
    assert main(argv) == 0
    piped = capsys.readouterr().out
    assert "\x1b" not in piped
    coloured = text_on_a_terminal(monkeypatch, argv)
    assert "\x1b[" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    assert text_on_a_terminal(monkeypatch, argv) == piped


def test_a_reader_that_leaves_is_no_error() -> None:
    command = f"{sys.executable} -m castsim targets a2a3 | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert (done.stdout.splitlines()[-1], done.stderr) == ("0", "")


def test_a_closed_standard_output_is_no_error(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    class Closed(Terminal):
        def write(self, text: str) -> int:
            raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(sys, "stdout", Closed())
    assert main(["targets"]) == 0
    assert capsys.readouterr().err == ""


def test_a_full_disk_is_an_error(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    class Full(Terminal):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    assert main(["targets"]) == 2
    assert capsys.readouterr().err == "error: cannot write standard output: No space left on device\n"


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
@pytest.mark.parametrize("argv", ["targets", "targets --json -"])
def test_an_unusable_standard_output_is_said_once(redirection: str, argv: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = f"{sys.executable} -m castsim {argv} {redirection}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("error: cannot write standard output: ")


@pytest.mark.parametrize("argv", ["--help", "run --help", "-V", ""])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_help_into_a_full_disk_is_an_error(argv: str, unbuffered: str) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}  # empty: buffered, as without it
    command = f"{sys.executable} -m castsim {argv} > /dev/full"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (2, "error: cannot write standard output: No space left on device\n")


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
    assert main(argv) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "internal" not in err


def test_too_little_memory_is_no_internal_error(capsys: Capture) -> None:
    assert report_failure(MemoryError("Unable to allocate 512. GiB"), "-") == 1
    out, err = capsys.readouterr()
    assert err == "error: not enough memory: Unable to allocate 512. GiB\n"
    assert json.loads(out)["errors"][0]["kind"] == "engine cannot go on"
