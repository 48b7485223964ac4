"""Ten tasks of a new user, done with what the README and the tutorial say and with nothing else.

    python tests new_user BIN [--extras]

BIN is the folder of an environment's programs (`.venv/bin`) in which castsim is installed, with all of its extras or
with none. Commands, programs and lines of Python are read from the pages when a task is done, never written down here.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import ml_dtypes
import numpy as np
from kit.paths import PROGRAMS, ROOT

README = ROOT / "README.md"
TUTORIAL = ROOT / "docs" / "tutorial"


@dataclass
class Desk:
    """Where a user works: a folder with the shipped programs, and the programs of an environment."""

    folder: Path
    bin: Path
    extras: bool

    def __post_init__(self) -> None:
        (self.folder / "programs").symlink_to(PROGRAMS)

    def type(self, line: str, *further: str, code: int = 0) -> str:
        """Type a command line, with further words; return what it says if it ends with the given exit code."""
        program, *words = shlex.split(line)
        done = subprocess.run(
            [self.bin / program, *words, *further],
            cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == code, f"{line}: exit code {done.returncode}\n{done.stdout}"
        assert "Traceback" not in done.stdout
        return done.stdout

    def document(self, line: str, code: int = 0) -> Any:
        """Return the JSON document that a command writes."""
        return json.loads(self.type(line, "--json", "-", code=code))

    def save(self, page: Path) -> None:
        """Save the files of a page: its blocks with a title."""
        for name, text in re.findall(r'^```\w+ title="([\w.]+)"\n(.*?)^```$', page.read_text(), re.M | re.S):
            (self.folder / name).write_text(text)

    def try_python(self, page: Path) -> None:
        """Run all Python of a page as one script, which prints first what the comments beside `print` say."""
        text = "\n".join(re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S))
        (self.folder / "script.py").write_text(text)
        said = re.findall(r"^print\(.*  # (?:.*: )?(.*)$", text, re.M)
        assert said
        assert self.type("python script.py").splitlines()[: len(said)] == said


def command(page: Path, *words: str) -> str:
    """Return the first command line of a page that has all of these words."""
    blocks = re.findall(r"^```console\n(.*?)^```$", page.read_text(), re.M | re.S)
    lines = [line for block in blocks for line in block.splitlines()]
    return next(line for line in lines if all(word in shlex.split(line) for word in words))


def run_the_sample(desk: Desk) -> None:
    """What stands behind the installation in the README's first line: NumPy's result, in Inf/NaN mode to the bit."""
    desk.type(command(README, "python3", "--out").rpartition("&& ")[2].removeprefix(".venv/bin/"))
    given, found = (np.load(desk.folder / name) for name in ("programs/f32_to_f16.src.npy", "out/dst.npy"))
    with np.errstate(over="ignore"):
        assert np.array_equal(found, given.astype(np.float16), equal_nan=True)


def cast_numbers(desk: Desk) -> None:
    """Bits and numbers as JSON, which the schema accepts that castsim prints."""
    line = command(README, "cast", "e4m3fn")
    found = desk.document(line)
    jsonschema.validate(found, json.loads(desk.type("castsim schema cast")))
    numbers = np.array(shlex.split(line)[4:], np.float32)
    codes = [int(each["output_bits"], 16) for each in found["results"]]
    assert codes == numbers.astype(ml_dtypes.float8_e4m3fn).view(np.uint8).tolist()


def write_a_kernel(desk: Desk) -> None:
    """A fragment first, then the kernel of the tutorial: run, and compared."""
    assert "cycles" in desk.type(command(README, "run", "-e"))
    page = TUTORIAL / "first-kernel.md"
    desk.save(page)
    desk.type(command(page, "first.pto", "--out"))
    assert np.load(desk.folder / "out" / "dst.npy").shape == (64, 256)
    desk.try_python(page)


def make_it_faster(desk: Desk) -> None:
    """What-if names the limit, larger tiles and two buffers lift it."""
    page = TUTORIAL / "faster.md"
    desk.save(page)
    found = desk.document(command(page, "slow.pto", "--what-if"))
    gains = {each["name"]: each["gained_cycles"] or 0 for each in found["what_if"]}
    assert max(gains, key=lambda name: gains[name]) == "instant-loads"  # as the tutorial says
    desk.try_python(page)


def find_all_errors(desk: Desk) -> None:
    """Two errors of one file are told at once: the one of the tutorial, and an array that does not exist."""
    page = TUTORIAL / "first-kernel.md"
    desk.save(page)
    desk.try_python(page)  # writes wrong.pto
    text = (desk.folder / "wrong.pto").read_text().replace("outs(%pdst", "outs(%nowhere")
    (desk.folder / "wrong.pto").write_text(text)
    told = desk.type(command(page, "check", "wrong.pto"), code=2)
    places = [int(line) for line in re.findall(r"^wrong\.pto:(\d+):\d+: ", told, re.M)]
    lines = [number for number, each in enumerate(text.splitlines(), 1) if "NEAREST" in each or "nowhere" in each]
    assert places == lines


def prove_a_lowering(desk: Desk) -> None:
    """A chain that is proven, written as a program, and run."""
    page = TUTORIAL / "prove.md"
    assert "exact" in desk.type(command(page, "lower", "--out"))
    desk.type(command(page, "run", "chain.pto"))
    desk.try_python(page)


def find_a_stale_read(desk: Desk) -> None:
    """A TPC program that stores one bundle too early: told by a run, and by the linter without one."""
    line = command(README, "run", "--stale-reads")
    program = shlex.split(line)[2]
    assert "stale reads" in desk.type(line)
    assert "stale read" in desk.type(f"castsim lint {program}", code=1)


def use_extras(desk: Desk) -> None:
    """An ONNX model and the server for editors; without the extras the refusals name them."""
    line = command(README, "graph")
    if desk.extras:
        assert "proven" in desk.type(line)
        desk.type("castsim lsp")  # ends with its input
    else:
        assert "[onnx]" in desk.type(line, code=2)
        assert "[lsp]" in desk.type("castsim lsp", code=2)


def describe_a_chip(desk: Desk) -> None:
    """A chip of one's own, checked, and used by its path."""
    page = TUTORIAL / "target.md"
    desk.save(page)
    desk.type(command(page, "my_chip.toml", "check"))
    assert "my_chip" in desk.type(command(page, "my_chip.toml", "--what-if"))
    desk.try_python(page)


def write_a_script(desk: Desk) -> None:
    """The README's Python, beside modules of one's own that are called like castsim's folders."""
    for name in ("targets", "isa", "simulator"):
        (desk.folder / f"{name}.py").write_text("raise ImportError('not this one')\n")
    desk.try_python(README)


TASKS: tuple[Callable[[Desk], None], ...] = (
    run_the_sample, cast_numbers, write_a_kernel, make_it_faster, find_all_errors, prove_a_lowering, find_a_stale_read,
    use_extras, describe_a_chip, write_a_script,
)  # fmt: skip


def main() -> None:
    """Do all tasks, each in a folder of its own."""
    for number, task in enumerate(TASKS, 1):
        with tempfile.TemporaryDirectory() as folder:
            task(Desk(Path(folder), Path(sys.argv[1]).absolute(), "--extras" in sys.argv))
        print(f"{number:2} {task.__name__.replace('_', ' ')}: {(task.__doc__ or '').splitlines()[0]}")


if __name__ == "__main__":
    main()
