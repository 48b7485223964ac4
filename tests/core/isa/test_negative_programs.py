"""What the vendor's assembler or library must refuse is refused, with the reason, the line and the column."""

from __future__ import annotations

from pathlib import Path

import pytest
from core.isa.negative_programs import CASES, Case, text

from castsim import run
from castsim.__main__ import main
from castsim.isa.errors import CastsimError

Capture = pytest.CaptureFixture[str]
RUNS = [(case, target) for case in CASES for target in case.targets]


@pytest.mark.parametrize(("case", "target"), RUNS, ids=[f"{case.name}, {target}" for case, target in RUNS])
def test_refused_with_reason_and_place(case: Case, target: str, tmp_path: Path):
    program, line, column = text(case)
    path = tmp_path / "k.pto"
    path.write_text(program)
    with pytest.raises(CastsimError) as caught:
        run(path, target, args={"x": 1.5, "n": 3}, timing_only=True)
    assert case.reason in caught.value.message
    span = caught.value.span
    assert (span.file, span.line, span.column) == (str(path), line, column)


ADDRESSED = "%a = arith.constant 0 : i64\n%t = pto.alloc_tile addr = %a : !pto.tile_buf<vec, 16x64xf32>\n"
PLACED = "%t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>\n"


@pytest.mark.parametrize(
    ("body", "level", "message"),
    [
        (ADDRESSED, "2", "unexpected 'addr' operand: the tool places tiles at level 2"),
        (ADDRESSED, "1", "unexpected 'addr' operand: the tool places tiles at level 1"),
        (PLACED, "3", "%t has no address; every tile needs one at level 3"),
        (ADDRESSED, "3", None),
        (PLACED, "2", None),
        (PLACED, "4", "--level 4: not a placement level"),
    ],
)
def test_placement_levels(body: str, level: str, message: str | None, tmp_path: Path, capsys: Capture):
    path = tmp_path / "k.pto"
    path.write_text(f"func.func @k() attributes {{pto.entry}} {{\n{body}return\n}}\n")
    code = main(["run", str(path), "--target", "a5", "--timing-only", "--level", level])
    error = capsys.readouterr().err
    assert (code == 0) is (message is None)
    assert (message or "") in error
    if message and "--level" not in message:
        assert f"{path}:{2 + (body is ADDRESSED)}:6: " in error


def test_cases_cover_the_nearest_names(tmp_path: Path):
    path = tmp_path / "k.pto"
    for case, near in (("misspelt", "pto.tadd"), ("no operation", "pto.tload")):
        path.write_text(text(next(each for each in CASES if each.name == case))[0])
        with pytest.raises(CastsimError) as caught:
            run(path, "a5", args={"x": 1.5, "n": 3}, timing_only=True)
        assert near in caught.value.legal
