"""`castsim verify --lowering`: programs run again, records, resuming, and claims that do not hold."""

import json
from pathlib import Path

import numpy as np
import oracle_lowering
import pytest

from castsim.__main__ import main

DOCS = Path(__file__).parent.parent / "docs"


def verify(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["verify", "--lowering", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_all_codes_of_narrow_sources(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = verify(capsys, "f16", "i8", "--spec", "tosa", "--target", "a5", "gaudib")
    assert code == 0
    assert "2 programs and 0 counterexamples run, 131072 codes, 0 claims that do not hold" in " ".join(out.split())


def test_samples_of_wide_sources_and_counterexamples(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = verify(
        capsys, "i32", "f16", "--spec", "tosa", "--target", "a5,gaudi2,goya", "--samples", "3000", "--json", "-"
    )
    found = json.loads(out)
    assert code == 0
    # Once signless and once as unsigned; Goya has no f16, and A5 cannot read i32 as unsigned.
    assert (found["programs_run"], found["counterexamples_run"], found["cells_without_a_way"]) == (3, 1, 2)
    assert found["codes"] == 3 * 3000 + 1
    inputs = {(row["target"], row["result"]["inputs"]) for row in found["results"] if row["result"]}
    assert inputs == {("a5", "samples"), ("a5", "counterexample"), ("gaudi2", "samples")}


def test_options_that_a_claim_rests_on_are_set_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "record.json"
    cast = ("f32", "f16", "--spec", "tosa", "--target", "a5", "--samples", "3000")
    code, out, _ = verify(capsys, *cast, "--record", str(path))
    assert code == 0
    assert "native with options (ctrl_48_at_start=1)" in out
    assert "1 programs and 0 counterexamples run" in " ".join(out.split())
    held = json.loads(path.read_text())
    assert held["programs_with_options"] == 1
    assert held["results"][0]["result"]["options"] == [["ctrl_48_at_start", 1]]
    # A record that is read and written again keeps them.
    assert verify(capsys, "--record", str(path), "--resume")[0] == 0
    assert json.loads(path.read_text())["results"] == held["results"]


def test_records_are_kept_and_continued(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "record.json"
    assert verify(capsys, "f16", "i8", "--target", "a5", "a2a3", "--record", str(path))[0] == 0
    held = json.loads(path.read_text())
    assert held["complete"]
    held["missing"] = [{key: row[key] for key in ("src", "dst", "attributes", "target")} for row in held["results"][1:]]
    held["results"], held["complete"] = held["results"][:1], False
    path.write_text(json.dumps(held))
    assert verify(capsys, "--record", str(path), "--resume")[0] == 0
    again = json.loads(path.read_text())
    assert again["complete"]
    assert len(again["runs"]) == 2
    assert [row["target"] for row in again["results"]] == ["a5", "a2a3"]


def test_stale_and_foreign_records_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "record.json"
    verify(capsys, "f16", "i8", "--target", "a5", "--record", str(path))
    held = json.loads(path.read_text())
    held["planner_sha256"] = "0" * 64
    path.write_text(json.dumps(held))
    code, _, err = verify(capsys, "--record", str(path), "--resume")
    assert code == 2
    assert "stale" in err
    path.write_text('{"kind": "shopping list"}')
    code, _, err = verify(capsys, "--record", str(path), "--resume")
    assert code == 2
    assert "castsim lowering record" in err


def test_a_claim_that_does_not_stand_fails(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    judge = oracle_lowering.accepted

    def stricter(*arguments: object) -> np.ndarray:
        good = judge(*arguments)
        good[:5] = False
        return good

    monkeypatch.setattr(oracle_lowering, "accepted", stricter)
    code, out, _ = verify(capsys, "f16", "i8", "--target", "a5", "--json", "-")
    assert code == 1
    assert json.loads(out)["results"][0]["result"]["wrong"] == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("f16",), "SRC and DST"),
        (("f16", "i8", "--rounding", "rint"), "--rounding"),
        (("f16", "i8", "--spec", "nope"), "nope"),
        (("f16", "i8", "--target", "a9"), "unknown target"),
        (("f16", "i8", "--samples", "0"), "--samples 0"),
    ],
)
def test_inputs(arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = verify(capsys, *arguments)
    assert code == 2
    assert message in err


def test_options_of_lowering_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "f16", "i8", "--spec", "tosa"]) == 2
    assert "--lowering" in capsys.readouterr().err


@pytest.mark.parametrize("path", sorted(DOCS.glob("lowering-*.json")), ids=lambda path: path.stem)
def test_shipped_records_hold_no_false_claim(path: Path) -> None:
    held = json.loads(path.read_text())
    assert held["kind"] == "castsim lowering record"
    assert held["complete"]
    assert held["wrong"] == 0
    assert held["programs_run"] > 100
    for row in held["results"]:
        result = row["result"]
        if result is not None:
            assert result["wrong"] == 0
            assert result["codes"] == 1 or result["inputs"] != "counterexample"
