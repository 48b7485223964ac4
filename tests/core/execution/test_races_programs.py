"""Every sample program: intact it has no races; without any one of its flags and barriers it is refused by name."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from kit import sample_arguments
from kit.execution_programs import kernel
from kit.pto_text import moved
from makers.expected_files import PROGRAMS

from castsim import run
from castsim.__main__ import main
from castsim.isa.errors import WarningKind, of_kind
from castsim.running.program_loading import load_program
from castsim.running.synchronisation.race_detector import find_races
from castsim.running.synchronisation.race_findings import RaceFinding, RaceKind

FLAG = re.compile(r"pto\.(set|wait)_flag\s*\[\W*PIPE_(\w+?)\W+PIPE_(\w+?)\W+EVENT_ID(\d)")
BARRIER = re.compile(r"pto\.barrier\s*\W*PIPE_(\w+)")
NAMES = sorted(
    str(path.relative_to(PROGRAMS).with_suffix(""))
    for path in PROGRAMS.rglob("*.pto")
    if "micro" not in path.parts  # races of these are not looked for
)


def scalars(name: str) -> dict[str, int | float]:
    return sample_arguments.scalars(PROGRAMS / f"{name}.pto")


def synchronising_lines(name: str) -> list[int]:
    """Return the lines with a flag or barrier, counted from 0."""
    lines = (PROGRAMS / f"{name}.pto").read_text().splitlines()
    return [number for number, line in enumerate(lines) if FLAG.search(line) or BARRIER.search(line)]


NEEDLESS = ("f32_to_i8_own_barriers", 19)
"""A barrier between casts of which the second reads the 8 KiB that the first writes: the tool would put none there."""
CASES = [(name, line) for name in NAMES for line in synchronising_lines(name) if (name, line) != NEEDLESS]


def findings(path: Path, args: dict[str, int | float], sync: str = "program") -> tuple[RaceFinding, ...]:
    """What is found in a program as it is written, or with what is inserted."""
    loaded = load_program(path, None, None, args, sync=sync)
    return find_races(loaded.tree, loaded.target)


def without(name: str, line: int, folder: Path) -> tuple[Path, str]:
    """Write a program without one line; return the file and the line."""
    lines = (PROGRAMS / f"{name}.pto").read_text().splitlines(keepends=True)
    path = folder / f"{Path(name).name}.pto"
    path.write_text("".join(lines[:line] + lines[line + 1 :]))
    return path, lines[line]


def names(finding: RaceFinding, line: str) -> bool:
    """Return whether a finding names the flag or barrier of a source line, or what else would put it right."""
    flag = FLAG.search(line)
    if flag is None:
        return "barrier" in finding.missing or "barriers" in finding.missing
    _, signaller, waiter, event = flag.groups()
    return f"{signaller} -> {waiter}" in finding.sentence and (
        f"id {event}" in finding.sentence or finding.kind is RaceKind.RACE
    )


@pytest.mark.parametrize("name", NAMES)
def test_intact_programs_have_no_races(name):
    assert findings(PROGRAMS / f"{name}.pto", scalars(name), "insert") == ()


def test_a_barrier_that_is_not_needed(tmp_path):
    assert findings(without(*NEEDLESS, tmp_path)[0], {}) == ()


@pytest.mark.parametrize(("name", "line"), CASES)
def test_without_any_one_flag_or_barrier_there_is_a_report_that_names_it(name, line, tmp_path):
    path, text = without(name, line, tmp_path)
    found = findings(path, scalars(name))
    assert any(names(finding, text) for finding in found), [finding.sentence for finding in found]


WIDE, COLUMN = "!pto.tile_buf<vec, 16x64xf32>", "!pto.tile_buf<vec, 16x1xf32, blayout=col_major>"
PARTLY_WRITTEN = [
    *(f"%{name} = pto.alloc_tile : {WIDE}" for name in ("a", "h", "tmp")),
    f"%row = pto.alloc_tile : {COLUMN}",
    f"%s = pto.subview %a[%c4, %c0] sizes [8, 64] : {WIDE}",
    *moved("x", ("%s", "!pto.tile_buf<vec, 8x64xf32>"), "f32", 8, 64),
    f"pto.trowmax ins(%a, %tmp : {WIDE}, {WIDE}) outs(%row : {COLUMN})",
    f"pto.trowexpandadd ins(%a, %row : {WIDE}, {COLUMN}) outs(%h : {WIDE})",
    *moved("y", ("%h", WIDE), "f32", 16, 64, load=False),
]


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_what_nothing_wrote_is_marked_in_the_outputs(target, tmp_path, capsys) -> None:
    """Rows 4 to 11 are loaded: they are right, and the others are marked; scratch tiles mark nothing."""
    path, out = tmp_path / "k.pto", tmp_path / "out"
    path.write_text(kernel("\n".join(PARTLY_WRITTEN), "%x: !pto.ptr<f32>, %y: !pto.ptr<f32>"))
    x = np.arange(8 * 64, dtype=np.float32).reshape(8, 64)
    found = run(path, target, inputs={"x": x})
    marks = np.ones((16, 64), bool)
    marks[4:12] = False
    np.testing.assert_array_equal(found.undefined["y"], marks)
    np.testing.assert_array_equal(found.outputs["y"][4:12], x + x.max(axis=1, keepdims=True))
    (warning,) = of_kind(found.warnings, WarningKind.UNDEFINED)[:1]
    assert "before anything writes them" in warning
    assert not found.races
    assert run(path, target, timing_only=True).cycles == found.cycles
    command = ["run", str(path), "--target", target, "--in", "x=zeros", "--out", str(out), "--json", "-"]
    assert main(command) == 0
    (first,) = json.loads(capsys.readouterr().out)["outputs_undefined"]
    assert (first["name"], first["elements"], first["first"]) == ("y", 8 * 64, [0, 0])
    np.testing.assert_array_equal(np.load(first["mask_file"]), marks)
    assert main(["check", str(path), "--target", target]) == 0
    assert "warning" in capsys.readouterr().out
