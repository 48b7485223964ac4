"""`castsim diff` of what `castsim run --json` wrote, of results in Python, and what it refuses."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from diff_mutations import PROGRAMS

import castsim
from castsim.__main__ import main
from castsim.reports.documents import VERSIONS

SMALL = PROGRAMS / "f32_to_f16.pto"
MICRO = PROGRAMS / "micro" / "f32_to_f16_parts.pto"
GREATER = PROGRAMS / "tpc_f32_i16_quantise_greco.tpc"
Capture = pytest.CaptureFixture[str]


def recorded(folder: Path, name: str, program: Path, *words: str) -> Path:
    """Run a program, and return the file of its JSON."""
    file = folder / f"{name}.json"
    assert main(["run", str(program), *words, "--quiet", "--json", str(file)]) == 0
    return file


@pytest.fixture
def truncated(tmp_path: Path) -> Path:
    """The small program with another rounding mode."""
    file = tmp_path / "truncated.pto"
    file.write_text(SMALL.read_text().replace("RINT", "TRUNC"))
    return file


def document(words: list[object], capsys: Capture) -> tuple[int, dict]:
    code = main(["diff", *map(str, words), "--json", "-"])
    return code, json.loads(capsys.readouterr().out)


def test_results_compare_as_their_programs_do(truncated: Path, tmp_path: Path, capsys: Capture) -> None:
    words = ["--in", "src=random:0"]
    a = recorded(tmp_path, "a", SMALL, *words, "--out", str(tmp_path / "a"))
    b = recorded(tmp_path, "b", truncated, *words, "--out", str(tmp_path / "b"))
    _, direct = document([SMALL, truncated, *words], capsys)
    for sides in ([a, b], [a, truncated, *words], [SMALL, b, *words]):
        code, found = document(sides, capsys)
        assert code == 1
        assert [found[key] for key in ("cycles_a", "cycles_b", "outputs", "pipes")] == [
            direct[key] for key in ("cycles_a", "cycles_b", "outputs", "pipes")
        ]
    assert document([a, SMALL, *words], capsys)[0] == 0


def test_without_files_digests_tell(truncated: Path, tmp_path: Path, capsys: Capture) -> None:
    a = recorded(tmp_path, "a", SMALL, "--in", "src=random:0")
    b = recorded(tmp_path, "b", truncated, "--in", "src=random:0", "--out", str(tmp_path / "b"))
    assert document([a, a], capsys)[0] == 0
    code, found = document([a, b], capsys)
    (output,) = found["outputs"]
    assert (code, output["equal"], output["differing"], output["first"]) == (1, False, None, [])
    np.save(tmp_path / "b" / "dst.npy", np.zeros((4, 64), np.float16))  # written over since: not what the run gave
    assert document([b, b], capsys)[1]["outputs"][0]["equal"]
    assert document([b, truncated, "--in", "src=random:0"], capsys)[0] == 0


def test_lines_of_results_match_by_instruction(tmp_path: Path, capsys: Capture) -> None:
    lines = SMALL.read_text().split("\n")
    lines.insert(15, lines[14])
    after = tmp_path / "after.pto"
    after.write_text("\n".join(lines))
    files = [recorded(tmp_path, path.stem, path, "--timing-only") for path in (SMALL, after)]
    for sides in (files, [files[0], after, "--timing-only"]):
        _, found = document([*sides], capsys)
        shown = [
            (each["change"], each["line_a"], each["line_b"]) for each in found["lines"] if each["change"] != "cycles"
        ]
        assert shown == [("added", None, 16)]
        assert [each["text_b"] for each in found["lines"] if each["change"] == "added"] == ["tcvt"]


def test_results_in_python() -> None:
    runs = [castsim.run(SMALL, inputs={"src": f"random:{seed}"}) for seed in (0, 0, 1)]
    assert castsim.diff(runs[0], runs[1]).equal
    found = castsim.diff(runs[0], runs[2])
    different = int((runs[0].outputs["dst"] != runs[2].outputs["dst"]).sum())
    assert (found.cycles_a == found.cycles_b, found.outputs[0].differing) == (True, different)
    spans = [(each.line, each.start, each.end) for each in found.a.spans()]
    timing = runs[0].timing
    assert set(spans) <= {
        (runs[0].loaded.tree.instructions[one.instruction].span.line, one.start, one.end) for one in timing.executions
    }
    assert [line for line, _, _ in spans] == [14, 15, 16]  # tload, tcvt, tstore


def test_standard_input_is_a_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    for text in (SMALL.read_bytes(), recorded(tmp_path, "a", SMALL, "--timing-only").read_bytes()):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        assert document(["-", SMALL, "--timing-only"], capsys)[0] == 0


def changed(file: Path, **values: object) -> Path:
    """Write a result with other values for some keys."""
    found = json.loads(file.read_text()) | values
    other = file.with_name("changed.json")
    other.write_text(json.dumps({key: value for key, value in found.items() if value is not ...}))
    return other


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"schema_version": VERSIONS["run"] - 1}, f"has schema_version {VERSIONS['run'] - 1}, and this castsim"),
        ({"schema_version": "2"}, 'has schema_version "2"'),
        ({"schema_version": ...}, "has schema_version null"),
        ({"instructions": ...}, "not what `castsim run --json` writes"),
        ({"total_cycles": "many"}, "total_cycles: Input should be a valid integer"),
        ({"pipes": {"V": {"causes": {"sleep": 1}}}}, "unknown cause of cycles 'sleep'"),
        ({"outputs": [{"name": "y"}]}, "outputs.0.file: Field required"),
        ({"traceEvents": []}, "is a trace"),
        ({"errors": []}, "is a run that failed"),
        ({"total_cycles": None}, "has no cycles"),
    ],
)
def test_another_document_is_refused(values: dict, message: str, tmp_path: Path, capsys: Capture) -> None:
    file = recorded(tmp_path, "a", SMALL, "--timing-only")
    other = changed(file, **values)
    for sides in ([file, other], [other, file]):
        assert main(["diff", *map(str, sides)]) == 2
        assert message in capsys.readouterr().err


def test_what_is_no_json_has_a_place(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "bad.json"
    file.write_text('{"schema_version": 2,\n "program" 3}')
    assert main(["diff", str(file), str(SMALL), "--timing-only"]) == 2
    assert capsys.readouterr().err.startswith(f"error: {file}:2:12: not JSON:")
    for text in (b"[" * 100_000, b"[]", b"\xff", b"", b"1" * 5000):
        file.write_bytes(text)
        assert main(["diff", str(file), str(SMALL), "--timing-only"]) == 2
        assert "internal error" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("{small}", "only one program, and nothing to compare it with"),
        ("{small} {small}", "no input given (side A)"),
        ("{small} {small} --in src=random:0 --target-b goya", "(side B)"),
        ("{small} {greater} --timing-only --option native_off_infinity=clamp", None),
        ("{small} nosuch.pto --timing-only", "No such file"),
        ("{small} {racing} --timing-only", "(side B)"),
        ("{small} {illegal} --timing-only", "(side B)"),
        ("{small} {small} --timing-only --max-cycles 5", "(side A)"),
        ("{small} {small} --timing-only --option zz=1", "no option 'zz'"),
        ("{small} {small} --timing-only --option-b zz=1", "no option 'zz'"),
        ("{timed} {small} --in src=random:0", "has no outputs"),
        ("{timed} {timed} --target a5", "both sides are results"),
        ("{small} {timed} --timing-only --target-b a5", "B is a result"),
        ("{timed} {small} --timing-only --option zz=1", "no option 'zz'"),
        ("casts.mlir {small} --timing-only", "is a graph"),
        ("{small} {small} --timing-only --max-slowdown nan", "not a percentage"),
        ("{small} {small} --timing-only --max-slowdown -1", "not a percentage"),
    ],
)
def test_what_cannot_be_compared_gives_two(words: str, message: str | None, tmp_path: Path, capsys: Capture) -> None:
    text = SMALL.read_text()
    (tmp_path / "illegal.pto").write_text(text.replace("f16", "e4m3fn"))
    (tmp_path / "racing.pto").write_text(MICRO.read_text().replace("pto.barrier #pto.pipe<PIPE_ALL>", ""))
    files = {
        "small": SMALL, "greater": GREATER, "timed": recorded(tmp_path, "timed", SMALL, "--timing-only"),
        "illegal": tmp_path / "illegal.pto", "racing": tmp_path / "racing.pto",
    }  # fmt: skip
    code = main(["diff", *words.format(**files).split(), "--quiet"])
    if message is None:
        assert code == 1  # options of one target are none of the other's
        return
    assert code == 2
    assert message in capsys.readouterr().err


def test_errors_in_python_have_their_cause() -> None:
    with pytest.raises(castsim.ComparisonError, match="side A") as caught:
        castsim.diff(SMALL, SMALL)
    assert isinstance(caught.value.__cause__, castsim.ReadError)


def test_the_text_fits_a_narrow_terminal(truncated: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(PROGRAMS)
    assert main(["diff", SMALL.name, "f32_to_f16_pipelined.pto", "--timing-only"]) == 1
    assert main(["diff", SMALL.name, str(truncated), "--in", "src=random:0"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines if not line.startswith("B /")) <= 80
    assert not [line for line in lines if line.endswith(" ")]
