"""`castsim run --all-entries`: a line per function, exit code 1 if any fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from castsim import run
from castsim.__main__ import main

GOOD = "func.func @good() {\npto.barrier <PIPE_ALL>\nreturn\n}\n"
CALLS = "func.func @calls(%n: index) {\nfunc.call @helper() : () -> ()\nreturn\n}\n"
HELPER = "func.func @helper() {\npto.barrier <PIPE_V>\nreturn\n}\n"
BAD = "func.func @bad() {\nnonsense\nreturn\n}\n"


def entries(
    text: str, folder: Path, capsys: pytest.CaptureFixture[str], *more: str
) -> tuple[int, list[dict[str, object]]]:
    file = folder / "k.pto"
    file.write_text(text)
    code = main(["run", str(file), "--all-entries", "--timing-only", "--json", "-", *more])
    return code, json.loads(capsys.readouterr().out)["entries"]


def test_every_function_that_no_other_calls(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    code, found = entries(GOOD + CALLS + HELPER, tmp_path, capsys, "--arg", "n=2")
    assert code == 0
    file = tmp_path / "k.pto"
    runs = (("good", {}), ("calls", {"n": 2}))
    expected = [run(file, entry=name, args=args, timing_only=True).cycles for name, args in runs]
    assert found == [
        {"entry": "good", "cycles": expected[0], "error": None},
        {"entry": "calls", "cycles": expected[1], "error": None},
    ]


def test_failures_do_not_keep_the_others_from_running(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    code, found = entries(BAD + CALLS + GOOD + HELPER, tmp_path, capsys)
    assert code == 1
    assert {one["entry"]: one["error"] is None for one in found} == {"calls": False, "good": True, "bad": False}
    errors = {one["entry"]: str(one["error"]) for one in found}
    assert "k.pto:5:18: scalar argument %n of @calls needs a value" in errors["calls"]
    assert "k.pto:2:1: unknown operation 'nonsense'" in errors["bad"]
    assert main(["run", str(tmp_path / "k.pto"), "--all-entries", "--timing-only"]) == 1
    assert "3 functions, 2 failed" in capsys.readouterr().out


@pytest.mark.parametrize("option", [["--entry", "good"], ["--timeline"], ["--show-sync"], ["--trace", "t.json"]])
def test_what_is_about_one_function(option: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "k.pto"
    file.write_text(GOOD)
    assert main(["run", str(file), "--all-entries", "--timing-only", *option]) == 2
    assert "--all-entries runs several" in capsys.readouterr().err
