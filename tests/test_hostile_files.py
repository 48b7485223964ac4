"""Hostile files: every command ends soon, in little memory, with a place and a reason, and steers no terminal.

The small ones are in `vectors/hostile`, the large ones are made by `hostile_large`. Without CASTSIM_THOROUGH=1 those of
a few kilobytes are run, and of programs that only take long those that are quick.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_large import LARGE

ROOT = Path(__file__).parent.parent
HOSTILE = Path(__file__).parent / "vectors" / "hostile"
PROGRAM = ROOT / "programs" / "f32_to_f16.pto"
THOROUGH = os.environ.get("CASTSIM_THOROUGH") == "1"
QUICK_BYTES = 4096
SLOW = ("empty10.pto", "empty12.pto", "empty20.pto", "empty40.pto", "if1e+18.pto")
"""Programs that differ from others by their length alone."""

CPU_SECONDS = 10
MEMORY_BYTES = 1 << 30

STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

COMMANDS: dict[str, tuple[tuple[str, ...], ...]] = {
    ".pto": (("run", "FILE", "--timing-only"), ("run", "FILE", "--in", "src=random:0")),
    ".tpc": (("run", "FILE", "--in", "x=random:0"), ("lint", "FILE")),
    ".toml": (("targets", "FILE"), ("run", str(PROGRAM), "--timing-only", "--target", "FILE")),
    ".csv": (("accuracy", "--target", "a5", "--data", "FILE"),),
    ".npy": (("run", str(PROGRAM), "--in", "src=FILE"),),
    ".mlir": (("graph", "FILE", "--target", "a5", "--in", "a=random:0"), ("run", "FILE", "--target", "gaudi2")),
    ".onnx": (("graph", "FILE", "--target", "a5", "--in", "INPUT=random:0", "--out", "OUT"),),
}
"""Commands by the suffix of the file that they are given."""

FILES = sorted(path for path in HOSTILE.iterdir() if path.suffix in COMMANDS)
CASES = [(path, command) for path in FILES for command in COMMANDS[path.suffix]]


def input_of(path: Path) -> str:
    """The name of the first input of a model, x where it cannot be told."""
    onnx = pytest.importorskip("onnx")
    model = onnx.load_model_from_string(path.read_bytes())
    return model.graph.input[0].name if model.graph.input else "x"


MEASURING = f"""
import os, resource, subprocess, sys
resource.setrlimit(resource.RLIMIT_CPU, ({2 * CPU_SECONDS}, {3 * CPU_SECONDS}))
code = subprocess.call([sys.executable, "-m", "castsim", *sys.argv[2:]])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], "w") as file:
    print(code, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, file=file)
"""
"""Runs a command from a small process: what it is charged with in memory begins with that of who starts it."""


def judge(argv: list[str], tmp_path: Path) -> tuple[int, str]:
    """Run a command as a process of its own; return its exit code and all that it printed."""
    heard, measured = tmp_path / "heard", tmp_path / "measured"
    with heard.open("wb") as file:
        subprocess.run(
            [sys.executable, "-c", MEASURING, str(measured), *argv],
            cwd=ROOT, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, check=True,
        )  # fmt: skip
    text = heard.read_bytes().decode()  # UTF-8, whatever the file holds
    said = measured.read_text().split()
    code, seconds, memory = int(said[0]), float(said[1]), int(said[2])
    assert code in (0, 1, 2), (code, text[-500:])
    assert seconds < CPU_SECONDS
    assert memory < MEMORY_BYTES
    assert not STEERING.search(text), STEERING.findall(text)[:5]
    assert "internal error" not in text
    assert "Traceback" not in text
    return code, text


def check(path: Path, command: tuple[str, ...], tmp_path: Path) -> None:
    words = {"FILE": str(path), "OUT": str(tmp_path / "out")}
    if "INPUT=random:0" in command:
        words["INPUT=random:0"] = f"{input_of(path)}=random:0"
    argv = [word.replace("FILE", str(path)) if "=" in word else words.get(word, word) for word in command]
    argv = [words.get(word, word) for word in argv]
    code, text = judge(argv, tmp_path)
    if code:
        reason = re.search(r"^error: (.+)", text, re.MULTILINE)
        # What was read and found wanting says so in its report; all else is an error with a reason.
        assert reason or code == 1, text[:500]
        assert all(len(line) < 2000 or "legal:" in line or "error:" in line for line in text.split("\n"))


@pytest.mark.parametrize(
    ("path", "command"),
    [
        pytest.param(
            path, command, id=f"{path.name}-{command[0]}{number}",
            marks=() if path.stat().st_size <= QUICK_BYTES and path.name not in SLOW else pytest.mark.skipif(
                not THOROUGH, reason="CASTSIM_THOROUGH=1 also runs the larger and slower files"
            ),
        )
        for number, (path, command) in enumerate(CASES)
    ],
)  # fmt: skip
def test_a_hostile_file_does_no_harm(path: Path, command: tuple[str, ...], tmp_path: Path) -> None:
    check(path, command, tmp_path)


@pytest.mark.skipif(not THOROUGH, reason="CASTSIM_THOROUGH=1 makes the large files")
@pytest.mark.parametrize("name", LARGE)
def test_a_large_hostile_program_does_no_harm(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(LARGE[name](PROGRAM.read_text(encoding="utf-8")), encoding="utf-8")
    for command in COMMANDS[".pto"]:
        check(path, command, tmp_path)


def test_each_kind_of_file_is_there() -> None:
    assert {path.suffix for path in FILES} == set(COMMANDS)
    assert len(FILES) > 80
