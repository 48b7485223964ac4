"""Hostile files: every command ends soon, in little memory, with a place and a reason, and steers no terminal.

The small ones are in `vectors/hostile`, the large ones are made by `hostile_large`. Without CASTSIM_THOROUGH=1 those of
a few kilobytes are run, and of programs that only take long those that are quick.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from forked_commands import Commands, forked_commands
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


@pytest.fixture(scope="module")
def commands() -> Iterator[Commands]:
    names = ("run", "lint", "targets", "accuracy", "graph")
    with forked_commands([f"castsim.commands.{name}" for name in names] + ["onnx"]) as found:
        yield found


def judge(commands: Commands, argv: list[str], tmp_path: Path) -> tuple[int, str]:
    """Run a command as a process of its own; return its exit code and all that it printed."""
    ended = commands.run(argv, tmp_path / "heard", 2 * CPU_SECONDS)
    code, text = ended.code, ended.text
    assert code in (0, 1, 2), (code, text[-500:])
    assert ended.seconds < CPU_SECONDS
    assert ended.bytes < MEMORY_BYTES
    assert not STEERING.search(text), STEERING.findall(text)[:5]
    assert "internal error" not in text
    assert "Traceback" not in text
    return code, text


def check(commands: Commands, path: Path, command: tuple[str, ...], tmp_path: Path) -> None:
    words = {"FILE": str(path), "OUT": str(tmp_path / "out")}
    if "INPUT=random:0" in command:
        words["INPUT=random:0"] = f"{input_of(path)}=random:0"
    argv = [word.replace("FILE", str(path)) if "=" in word else words.get(word, word) for word in command]
    argv = [words.get(word, word) for word in argv]
    code, text = judge(commands, argv, tmp_path)
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
def test_a_hostile_file_does_no_harm(commands: Commands, path: Path, command: tuple[str, ...], tmp_path: Path) -> None:
    check(commands, path, command, tmp_path)


@pytest.mark.skipif(not THOROUGH, reason="CASTSIM_THOROUGH=1 makes the large files")
@pytest.mark.parametrize("name", LARGE)
def test_a_large_hostile_program_does_no_harm(commands: Commands, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(LARGE[name](PROGRAM.read_text(encoding="utf-8")), encoding="utf-8")
    for command in COMMANDS[".pto"]:
        check(commands, path, command, tmp_path)


def test_each_kind_of_file_is_there() -> None:
    assert {path.suffix for path in FILES} == set(COMMANDS)
    assert len(FILES) > 80
