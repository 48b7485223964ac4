"""`castsim debug` with commands from standard input: what it prints, to the letter."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import import_module
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from cli_programs import NARROW, TCVT, TLOAD, TSTORE, written
from debug_programs import PROGRAMS, debug_words

import castsim
from castsim.__main__ import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", np.arange(256, dtype=np.float32).reshape(4, 64) - 100)
    return Path(written(tmp_path))


def debug(
    kernel: Path, commands: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture, *words: str
) -> tuple[int, list[str], str]:
    monkeypatch.setattr(sys, "stdin", StringIO(commands))
    code = main(["debug", str(kernel), "--in", f"x={kernel.parent / 'x.npy'}", *words])
    told = capsys.readouterr()
    return code, told.out.splitlines(), told.err


def test_a_session_of_a_process(kernel: Path) -> None:
    """No prompt, the stops, the elements, an error that ends nothing, exit code 2 for it."""
    result = castsim.run(kernel, inputs={"x": np.load(kernel.parent / "x.npy")}, engine="event")
    start = {result.loaded.tree.instructions[e.instruction].span.line: e.start for e in result.timing.executions
             if not result.loaded.tree.instructions[e.instruction].inserted}  # fmt: skip
    script = (
        f"step\nprint wide[0:2,3]\nprynt\nbreak {TSTORE}\ncontinue\nprint slim[1,0]\ncontinue\nprint y[3,63] as u16\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "castsim", "debug", kernel.name, "--in", "x=x.npy"],
        input=script, capture_output=True, text=True, timeout=120, check=False, cwd=kernel.parent,
    )  # fmt: skip
    last = int(np.float16(155).view("u2"))
    assert done.stdout.splitlines() == [
        f"{kernel.name}:{TLOAD} cycle {start[TLOAD]}",
        f"{kernel.name}:{TCVT} cycle {start[TCVT]}",
        f"wide[0,3] = -97.0 (0x{int(np.float32(-97).view('u4')):08x})",
        f"wide[1,3] = -33.0 (0x{int(np.float32(-33).view('u4')):08x})",
        f"breakpoint 1: line {TSTORE}",
        f"{kernel.name}:{TSTORE} cycle {start[TSTORE]}",
        f"slim[1,0] = -36.0 (0x{int(np.float16(-36).view('u2')):04x})",
        f"{kernel.name}:{TSTORE} cycle {result.cycles}",
        "the program has ended",
        f"y[3,63] = {last} (0x{last:04x})",
    ]
    assert done.stderr.startswith("error: unknown command 'prynt'\n  legal: step, next, continue, ")
    assert done.returncode == 2


@pytest.mark.parametrize("end", ["quit\nstep\n", "q", ""])
def test_it_ends_at_quit_or_with_its_input(
    end: str, kernel: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    code, lines, err = debug(kernel, f"s\n\n# nothing\n{end}", monkeypatch, capsys)
    assert (code, len(lines), err) == (0, 2, "")


def test_the_last_line_may_lack_its_end_and_short_forms_do(
    kernel: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    code, lines, _ = debug(kernel, f"b {TCVT}\nc\nrs\nn\nrc\nd 1\ni b\nw\nh\nl\ni names\np x[0,0]", monkeypatch, capsys)
    stops = [int(found[1]) for line in lines if (found := re.fullmatch(r".*:(\d+) cycle \d+", line))]
    assert code == 0
    assert stops == [TLOAD, TCVT, TLOAD, TCVT, TLOAD, TLOAD]
    assert "operation 1 of 3: tload f32 4 x 64 on MTE2, cycles 0 .. " in "\n".join(lines)
    assert "slim: tile f16 [4, 64]" in lines
    assert lines[-1] == "x[0,0] = -100.0 (0xc2c80000)"
    assert any(line.startswith(f"> {TLOAD}  ") for line in lines)


@pytest.mark.parametrize(
    "command",
    [
        "stop", "step x", "step -1", "next 2", "break", "break x", "break 0", "break 10000", "break cycle",
        "break cycle x",
        "break cycle 99999999", "break if", "break if x", "break if nobody[0] is nan", "break 15 if x[0,0] is odd",
        "print", "print nobody", "print x[0", "print x[4,0]", "print x[0,0,0]", "print x as f33", "print x[0,0] of f32",
        "info", "info weather", "delete 7", "delete x", "quit now", "continue 3", "print x[\x1b[2J]", "\x1b[31m",
        "print %", "break 99999999999999999999999999",
    ],
)  # fmt: skip
def test_a_bad_command_is_an_error_and_the_session_goes_on(
    command: str, kernel: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    code, lines, err = debug(kernel, f"{command}\nprint x[0,1]\n", monkeypatch, capsys)
    assert code == 2
    assert lines[-1] == "x[0,1] = -99.0 (0xc2c60000)"
    assert err.startswith("error: ") and "internal error" not in err and "\x1b" not in err
    assert len(lines) == 2


def test_the_stops_as_json(kernel: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    code, lines, _ = debug(kernel, "next\nbad\ncontinue\n", monkeypatch, capsys, "--json", "-")
    document = json.loads("\n".join(lines))
    assert code == 2
    assert [stop["line"] for stop in document["stops"]] == [TLOAD, TCVT, TSTORE]
    assert [stop["ended"] for stop in document["stops"]] == [False, False, True]
    assert (document["operations"], document["failed"]) == (3, 1)


def test_both_engines_stop_in_the_same_cycles(kernel: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    script = "step\nstep\nstep\n"
    fast = debug(kernel, script, monkeypatch, capsys, "--engine", "fast")
    assert fast == debug(kernel, script, monkeypatch, capsys, "--engine", "event")


@pytest.mark.parametrize("name", ["tpc_f32_i16_quantise_greco.tpc", "micro/masked_tail.pto", "a5_hif8_round_trip.pto"])
def test_every_kind_of_program(name: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    path = PROGRAMS / name
    monkeypatch.setattr(sys, "stdin", StringIO("step\ncontinue\nreverse-continue\nwhere\ninfo pipes\n"))
    assert main(["debug", *debug_words(path)]) == 0
    stops = [line for line in capsys.readouterr().out.splitlines() if line.startswith(f"{path}:")]
    assert len(stops) == 5
    assert stops[0] == stops[3] == stops[4]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "castsim debug needs a program"),
        (["-"], "standard input is used for the commands"),
        (["k.onnx"], "has no operations to step through"),
        (["P", "--port", "1"], "--port is for --dap"),
        (["P"], "no input given"),
        (["P", "--in", "x=zeros", "--engine", "slow"], "engine 'slow' is not available"),
        (["P", "--in", "z=zeros"], "no tensor argument 'z'"),
        (["--dap", "--port", "70000"], "no port"),
        (["nowhere.pto"], "nowhere.pto"),
    ],
)
def test_what_cannot_be_debugged(words: list[str], message: str, kernel: Path, capsys: Capture) -> None:
    assert main(["debug", *(str(kernel) if word == "P" else word for word in words)]) == 2
    assert message in capsys.readouterr().err


def test_hostile_names_stay_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    """A file may be called anything; what would steer the terminal is escaped."""
    np.save(tmp_path / "x.npy", np.zeros((4, 64), np.float32))
    kernel = Path(written(tmp_path, NARROW, "<script>\x1b[2J\u202e.pto"))
    code, lines, _ = debug(kernel, "step\nwhere\nlist\ninfo names\nbreak if x[0,0] > 1\n", monkeypatch, capsys)
    assert code == 0
    assert lines[0].endswith(f"<script>\\x1b[2J\\u202e.pto:{TLOAD} cycle 0")
    assert not re.search("[\x1b\u202e]", "\n".join(lines))


def test_the_examples_of_the_help(kernel: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    """Those of the help that read commands; the one that serves an editor is tests/test_debug_adapter.py's."""
    text = (import_module("castsim.commands.debug").__doc__ or "").partition("examples:")[2]
    lines = [line.split() for line in text.splitlines() if line.strip() and "--dap" not in line]
    assert len(lines) == 3
    (kernel.parent / "kernel.tpc").write_text((PROGRAMS / "tpc_f32_exp_goya.tpc").read_text())
    (kernel.parent / "kernel.c").write_text((PROGRAMS / "tpc_c" / "cast_f32_bf16.c").read_text())
    monkeypatch.chdir(kernel.parent)
    for words in lines:
        monkeypatch.setattr(sys, "stdin", StringIO("next\nquit\n"))
        assert main([word for word in words[1:] if word not in ("<", "commands.txt")]) == 0, capsys.readouterr().err
        assert len(capsys.readouterr().out.splitlines()) == 2


def test_input_that_cannot_be_read(kernel: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    class Broken(StringIO):
        def __next__(self) -> str:
            raise OSError("it is a folder")

    monkeypatch.setattr(sys, "stdin", Broken())
    assert main(["debug", str(kernel), "--in", "x=zeros"]) == 2
    assert "standard input cannot be read: it is a folder" in capsys.readouterr().err
