"""The command line itself: help, global options, colours, where text and JSON go; the help says what is done."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import webbrowser
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from kit.cli_programs import written
from kit.command_output import document_of, err_of, out_of
from kit.held_documents import hold
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


@pytest.mark.parametrize("argv", [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)])
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


TILES, ASSEMBLY = str(PROGRAMS / "f32_to_f16.pto"), str(PROGRAMS / "tpc_f32_f8_143_gaudi2.tpc")


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
    ("words", "option"),
    [
        *((f"run {TILES}", option) for option in ("--engine", "--sync", "--races", "--report", "--stale-reads")),
        ("cast f32 f16 1", "--overflow"),
        ("cast f32 f16 1 --target a5", "--saturation"),
        *(("verify f16 i8", option) for option in ("--overflow", "--tier")),
        (f"graph {QUANTISE} --target a5", "--engine"),
        *(("compiled f32 u16 1 --target gaudi", option) for option in ("--form", "--rounding", "--reading", "--order")),
        ("lower f16 i8 --target a5", "--spec"),
    ],
)
def test_the_words_of_an_option_are_the_same_in_its_help_and_in_its_refusal(
    words: str, option: str, capsys: Capture
) -> None:
    (error,) = document_of(capsys, *words.split(), option, "zz", code=2)["errors"]
    assert "zz" in error["message"]
    told = shown(capsys, words.split(maxsplit=1)[0])[option]
    assert [word for word in error["legal"] if word != "PATH.toml" and word not in told] == []


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


CPP = """\
#include <pto/pto-inst.hpp>
using namespace pto;
extern "C" __global__ AICORE void to_half(GM_ADDR x, GM_ADDR y, int64_t n) {
  GlobalTensor<float, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<1, 1, 1, 64, 1>> from((__gm__ float *)x);
  GlobalTensor<half, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<1, 1, 1, 64, 1>> into((__gm__ half *)y);
  Tile<TileType::Vec, float, 16, 64> wide;
  Tile<TileType::Vec, half, 16, 64> slim;
  TASSIGN(wide, 0);
  TASSIGN(slim, 8192);
  TLOAD(wide, from);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  TCVT(slim, wide, RoundMode::CAST_RINT);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(into, slim);
}
"""


REFUTED = (
    "lower f16 i8 --spec tosa --target greco --via",
    "lower --spec tosa --target gaudi2",
    "diff kernel.pto --timing-only --option-b",
)
"""Examples that show why something is not right, or a difference: their exit code is 1."""


UNSURE = ("graph model.onnx",)
"""Examples with arithmetic on f32, for which only the run speaks: so is theirs."""


# ---------------------------------------------------------------------------------------------------------- examples


def examples() -> list[str]:
    texts = [feature.text for feature in shipped_features()]
    lines = [line.strip() for text in texts for line in text.partition("examples:")[2].split("\n")]
    return [line.removeprefix("castsim ") for line in lines if line.startswith("castsim ")]


def kernel(rows: str, argument: str) -> str:
    """Return a tile program from %x to %y, i16 from f32 with a tmp tile."""
    view, part = "!pto.tensor_view<?x64xf32>", "!pto.partition_tensor_view<4x64xf32>"
    source, result, tmp = (f"!pto.tile_buf<vec, {what}>" for what in ("4x64xf32", "4x64xi16", "1x256xi32"))
    return f"""module attributes {{pto.target_arch = "a3"}} {{
  func.func @kernel(%x: !pto.ptr<f32>, %y: !pto.ptr<i16>{argument}) attributes {{pto.entry}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    {rows}
    %vx = pto.make_tensor_view %x, shape = [%rows, %c64], strides = [%c64, %c1] : {view}
    %vy = pto.make_tensor_view %y, shape = [%rows, %c64], strides = [%c64, %c1] : {view.replace("f32", "i16")}
    %px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c4, %c64] : {view} -> {part}
    %py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%c4, %c64] : {view.replace("f32", "i16")} -> \
{part.replace("f32", "i16")}
    %wide = pto.alloc_tile : {source}
    %slim = pto.alloc_tile : {result}
    %tmp = pto.alloc_tile : {tmp}
    pto.tload ins(%px : {part}) outs(%wide : {source})
    pto.tcvt ins(%wide, %tmp {{sat_mode = #pto<saturation_mode OFF>}} : {source}, {tmp}) outs(%slim : {result})
    pto.tstore ins(%slim : {result}) outs(%py : {part.replace("f32", "i16")})
    return
  }}
}}
"""


def tuned(argument: str) -> str:
    """Return a tile program with parameters."""
    text = (PROGRAMS / "tuning" / "f32_to_bf16_tiles.pto").read_text()
    if not argument:
        return text
    text = text.replace("    %rows = arith.constant 256 : index\n", "")
    return text.replace("!pto.ptr<bf16>)", f"!pto.ptr<bf16>{argument})")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the files that the examples name, as the current one."""
    monkeypatch.chdir(tmp_path)
    linear = PROGRAMS / "tpc_bf16_scale_linear_gaudi.tpc"
    (tmp_path / "programs").mkdir()  # of its own: an example writes there
    for path in (linear, PROGRAMS / "a5_bf16_to_e2m1.pto"):
        shutil.copy(path, tmp_path / "programs")
    text = linear.read_text().replace("target gaudi\n", "target gaudi2\n")
    for name in ("kernel.tpc", "kernel.s"):
        (tmp_path / name).write_text(text)
    for name in ("kernel.bin", "kernel.o"):
        target = ["--target", "greco"] if name == "kernel.o" else []
        assert main(["asm", "kernel.tpc", "--out", name, "--quiet", *target]) == 0
    (tmp_path / "my_a5.toml").write_text('base = "a5"\nname = "my_a5"\n')
    (tmp_path / "my.toml").write_text('base = "a2a3"\nname = "my"\n')
    np.save(tmp_path / "x.npy", np.linspace(-9, 9, 200 * 300, dtype=np.float32).reshape(200, 300))
    (tmp_path / "model.onnx").write_bytes((PROGRAMS / "quantise_block.onnx").read_bytes())
    np.save(tmp_path / "numbers.npy", np.linspace(-9, 9, 300, dtype=np.float32))
    np.save(tmp_path / "results.npy", np.linspace(-9, 9, 300, dtype=np.float32).astype(np.float16))
    np.save(tmp_path / "entries.npy", np.arange(-128, 128).astype(np.int8))
    (tmp_path / "pack.py").write_text(PACK)
    (tmp_path / "casts.mlir").write_text(CASTS)
    (tmp_path / "casts.ll").write_text(LLVM)
    shutil.copy(PROGRAMS / "measure" / "rows.csv", tmp_path)
    shutil.copy(PROGRAMS / "sequential" / "f32_i16_quantise_gaudi2.tpc", tmp_path / "lines.tpc")
    measured = (PROGRAMS.parent / "targets" / "a5_measured_casts.csv").read_text().splitlines()[:9]
    (tmp_path / "mine.csv").write_text("\n".join(measured) + "\n")
    return tmp_path


def kernels_in_c(line: str, folder: Path) -> None:
    """Write the kernel in C, C++ or TileLang that an example names, and the folder that it includes from."""
    if "kernel.c " in line:
        shutil.copy(PROGRAMS / "tpc_c" / "cast_f32_bf16.c", folder / "kernel.c")
    if "kernel.py:" in line:
        shutil.copy(PROGRAMS / "tilelang" / "quantise.py", folder / "kernel.py")
    if "kernel.cpp" in line:
        (folder / "include").mkdir(exist_ok=True)
        (folder / "kernel.cpp").write_text(CPP)


def sweeps(folder: Path) -> None:
    """Write the specifications that the examples name, and the results of one."""
    shutil.copy(PROGRAMS / "sweeps" / "f32_to_bf16_shapes.toml", folder / "shapes.toml")
    tiles = (PROGRAMS / "sweeps" / "f32_to_bf16_tiles.toml").read_text()
    (folder / "kernels.toml").write_text(tiles.replace("../tuning", str(PROGRAMS / "tuning")))
    assert main(["sweep", "shapes.toml", "--out", "shapes.parquet", "--quiet"]) == 0


PACK = """import ml_dtypes


def to_fp8(x):
    return x.astype(ml_dtypes.float8_e4m3fn)


def to_bf16(x):
    return x.astype(ml_dtypes.bfloat16)
"""


LLVM = "define void @f(<64 x float> %x) {\n  %y = fptosi <64 x float> %x to <64 x i32>\n}\n"


CASTS = """func.func @main(%arg0: tensor<4x64xf32>) -> tensor<4x64xi16> {
  %0 = tosa.cast %arg0 : (tensor<4x64xf32>) -> tensor<4x64xi16>
  return %0 : tensor<4x64xi16>
}
"""


@pytest.mark.parametrize("line", examples())
def test_examples_of_the_help_run(line: str, folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """They end as they should, and their documents are what the schemas say."""
    monkeypatch.setattr(webbrowser, "open", lambda address: address.endswith(".html"))
    scalar = re.search(r"--arg '?rows", line)
    rows, argument = ("", ", %rows: index") if scalar else ("%rows = arith.constant 128 : index", "")
    (folder / "kernel.pto").write_text(tuned(argument) if line.startswith("tune") else kernel(rows, argument))
    for name in ("before.pto", "after.pto"):
        shutil.copy(folder / "kernel.pto", name)
    np.save(
        folder / "x.npy",
        np.linspace(-9, 9, 128 * 64).astype(np.float32).reshape(-1, 64)[: 4 if "model" in line else 128],
    )
    kernels_in_c(line, folder)
    for name in ("kernels", "include"):
        (folder / name).mkdir(exist_ok=True)
    shutil.copy(folder / "kernel.pto", folder / "kernels")
    if "--target goya" in line:
        (folder / "kernel.tpc").write_text((PROGRAMS / "tpc_f32_i16_quantise_goya.tpc").read_text())
    if "--apply 1 -o faster.pto" in line:  # a kernel that can be made faster
        shutil.copy(PROGRAMS / "a5_f32_to_e4m3fn_padded.pto", folder / "kernel.pto")
    if line.startswith("sweep"):
        sweeps(folder)
    words = shlex.split(line.partition(" > ")[0])
    for made in {*words} & {"yesterday.json", "today.json", "baseline.json", "report.html"}:
        option = "--json" if made.endswith("json") else "--html"
        run = ["run", "kernel.pto", "--in", "x=random:1", "--out", "outputs", "--quiet", option, made]
        assert main(run) == 0
    if "model.onnx" in words and "--arg" not in words:
        words += ["--arg", "rows=2"]
    expected = 1 if line.startswith((*REFUTED, *UNSURE)) else 0
    if "--json" not in words:
        words += ["--json", "document.json"]
    assert main(words) == expected, capsys.readouterr().err
    path = words[words.index("--json") + 1]
    hold(words[0], json.loads(capsys.readouterr().out if path == "-" else Path(path).read_text()))


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
