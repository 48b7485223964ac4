"""What a run does about stale reads: tell of them first of all, end at the first, or say nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_output import document_of, out_of
from tpc_machine import END, nops

from castsim import run
from castsim.__main__ import main
from castsim.isa.errors import ReadError, StaleReadError

Capture = pytest.CaptureFixture[str]

EARLY = (
    "// castsim: target gaudi2\n// castsim: vlm 0x0 y out i32 [64]\nnop; nop; mov.i32 V0, 0x7; nop\n"
    f"nop; nop; mov V1, V0; nop\n{nops(5)}nop; nop; mov V2, V1; st_l_v 0x0, V1\n{END}"
)
FRESH = EARLY.replace("0x7; nop\n", f"0x7; nop\n{nops(3)}")
OVERTAKEN = (
    "// castsim: target gaudi2\n// castsim: reg S1 = 1\nnop; nop; nop; st_l 0x0, S1\nld_l SP1, 0x0; nop; nop; nop\n"
    f"nop; mov SP1, S1; nop; nop\n{nops(5)}{END}"
)


def written(folder: Path, text: str) -> str:
    path = folder / "kernel.tpc"
    path.write_text(text)
    return str(path)


def test_the_report_begins_with_them(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path, EARLY)
    out = out_of(capsys, ["run", path])
    head = " ".join(out.partition(f"{path} @kernel")[0].split())
    assert head.startswith("warning: 1 stale read: the values are the old ones")
    assert "'mov V1, V0' (line 4, bundle 1) reads the old value of V0" in head
    assert "distance 1, needed 4, 3 missing" in head
    assert "--stale-reads stop" in head
    assert out.startswith("warning: ")


def test_a_fresh_run_does_not_mention_them_above(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path, FRESH)
    assert out_of(capsys, ["run", path]).startswith(f"{path} @kernel")


def test_json_names_them_among_the_warnings(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path, EARLY)
    found = document_of(capsys, "run", path)
    (warning,) = found["warnings"]
    assert "1 stale read" in warning
    assert "line 4, bundle 1" in warning
    assert [entry["kind"] for entry in found["stale_reads"]] == ["early"]


@pytest.mark.parametrize(("text", "place"), [(EARLY, ":4:11:"), (OVERTAKEN, ":5:6:")])
def test_stop_ends_at_the_first(text: str, place: str, tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path, text)
    assert main(["run", path, "--stale-reads", "stop"]) == 1
    captured = capsys.readouterr()
    assert f"{path}{place}" in captured.err
    assert captured.out == ""
    assert main(["run", path, "--stale-reads", "stop", "--timing-only"]) == 1
    (error,) = document_of(capsys, "run", path, "--stale-reads", "stop", code=1)["errors"]
    assert error["kind"] == "stale read"
    with pytest.raises(StaleReadError):
        run(path, stale_reads="stop")


def test_stop_lets_pass_what_is_no_stale_read(tmp_path: Path) -> None:
    """Registers that nothing wrote, and reads beside a write in the same bundle."""
    beside = "// castsim: target gaudi2\nld_l_v V0, 0x0; nop; mov V1, V0; nop\n" + END
    for text in (FRESH, beside):
        assert main(["run", written(tmp_path, text), "--stale-reads", "stop"]) == 0


def test_ignore_says_nothing(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path, EARLY)
    found = document_of(capsys, "run", path, "--stale-reads", "ignore")
    assert "stale_reads" not in found
    assert found["warnings"] == []
    assert "stale" not in out_of(capsys, ["run", path, "--stale-reads", "ignore"])


def test_values_are_old_ones_in_every_mode(tmp_path: Path) -> None:
    path = written(tmp_path, EARLY)
    results = [
        run(path),
        run(path, stale_reads="ignore"),
    ]
    for found in results:
        np.testing.assert_array_equal(found.outputs["y"], np.zeros(64, np.int32))  # V0 was zero before
    assert [found.stale_reads is None for found in results] == [False, True]
    assert run(path, stale_reads="report").stale_reads


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"stale_reads": "never"}, "unknown way to treat stale reads 'never'"),
    ],
)
def test_words_that_mean_nothing(words: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=message):
        run(written(tmp_path, FRESH), **words)  # type: ignore[arg-type]  # two keywords of text
