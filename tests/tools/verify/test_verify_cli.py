"""`castsim verify`: what is compared, what is said, what is refused."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.command_output import document_of, err_of, out_of

from castsim.__main__ import main
from castsim.numerics.tiers import convert_codes
from castsim.tools.verify import comparison, kept
from castsim.tools.verify.running import VerificationRecord, required_parts

Capture = pytest.CaptureFixture[str]


def documented(capsys: Capture, *argv: str, code: int = 0) -> dict[str, Any]:
    return document_of(capsys, "verify", *argv, code=code)


def interrupted(record: VerificationRecord, **_: Any) -> None:
    raise KeyboardInterrupt


def test_every_mode_and_every_code(capsys: Capture) -> None:
    document = documented(capsys, "f16", "hif8")
    assert next(iter(document)) == "schema_version"
    assert [(part["rounding"], part["overflow"]) for part in document["parts"]] == [
        (mode, overflow)
        for mode in ("round", "floor", "ceil", "trunc", "hybrid")
        for overflow in ("saturate", "special")
    ]
    assert {part["inputs"] for part in document["parts"]} == {"exhaustive"}
    assert document["complete"]
    assert (document["codes_checked"], document["mismatches"]) == (10 << 16, 0)
    assert document["runs"][0]["numpy"] == np.__version__
    assert {part["undecided"] for part in document["parts"] if part["rounding"] == "hybrid"} == {2048}


def test_a_wide_source_takes_the_structured_set_and_says_why(capsys: Capture) -> None:
    argv = ["f32", "e2m1", "--tier", "table", "--rounding", "rint", "odd", "--overflow", "saturate"]
    text = " ".join(out_of(capsys, ["verify", *argv]).split())
    assert "structured: Every sign and exponent" in text
    assert "sees only the kept bits, the half bit, the sticky bit and the sign" in text
    assert re.search(r" \d{1,3}(,\d{3})+ results, no mismatch$", text)


@pytest.mark.parametrize(
    ("modes", "least"), [([], 1 << 16), (["--rounding", "rint"], 1 << 19), (["--overflow", "special"], 1 << 16)]
)
def test_the_samples_that_nobody_counts_are_shared_among_the_modes(
    modes: list[str], least: int, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """So that a pair takes seconds, whatever its modes; how many there are is said before they are tried."""

    monkeypatch.setattr("castsim.tools.verify.command.verify", interrupted)
    assert main(["verify", "i64", "f32", *modes]) == 130
    said, total = re.findall(r"^trying (\d+) casts? on ([\d,]+) codes: samples", capsys.readouterr().err)[0]
    assert int(total.replace(",", "")) <= 1 << 20
    assert least <= int(total.replace(",", "")) // int(said)


def test_64_bit_sources_are_sampled_where_the_set_is_too_large(capsys: Capture) -> None:
    argv = ("f64", "f32", "--tier", "reference", "--rounding", "rint", "--overflow", "special", "--samples", "2000")
    (part,) = documented(capsys, *argv, "--seed", "9")["parts"]
    assert (part["inputs"], part["count"], part["seed"], part["codes"]) == ("samples", 2000, 9, 2000)


def test_differences_are_shown_and_cost_the_exit_code(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def spoilt(codes: np.ndarray, *args: Any, tier: Any = None, **options: Any) -> np.ndarray:
        result = convert_codes(codes, *args, tier=tier, **options)
        return np.where(codes == 0x3C01, 0x3F, result).astype(result.dtype) if str(tier) == "table" else result

    monkeypatch.setattr(comparison, "convert_codes", spoilt)
    argv = ["verify", "f16", "e4m3fn", "--tier", "table", "--rounding", "rint", "--overflow", "special"]
    out = out_of(capsys, argv, 1)
    assert "1 of 65,536 results differ" in out
    (row,) = [line.split() for line in out.splitlines() if "0x3c01" in line]
    # f16 0x3c01 is 1 + 2**-10; e4m3fn 0x38 is 1.0 and 0x3f is 1.875.
    assert row == ["f16", "->", "e4m3fn", "rint", "special", "0x3c01", "1.0009765625", "0x3f", "1.875", "0x38", "1"]
    (detail,) = documented(capsys, *argv[1:], code=1)["mismatch_details"]
    assert (detail["input_bits"], detail["output_bits"], detail["expected_bits"]) == ("0x3c01", "0x3f", "0x38")
    assert detail["random_word"] is None


# --------------------------------------------------------------------------------------------------------- recording


def recorded(path: Path) -> list[str]:
    return ["verify", "f16", "e5m2", "--tier", "table", "--against", "reference", "--record", str(path)]


def test_a_finished_record(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "r.json"
    assert f"recorded in {path}" in " ".join(out_of(capsys, recorded(path)).split())
    record = VerificationRecord.load(path)
    assert record.complete
    document = json.loads(path.read_text())
    assert document["sources"]["files"] == kept.source_digests(oracle=False)
    assert (document["parts_by_status"], document["mismatches"]) == ({"done": 14, "partial": 0, "pending": 0}, 0)
    assert "already exists; continue it with --resume" in err_of(capsys, recorded(path))
    assert main([*recorded(path), "--resume"]) == 0  # nothing is left to do
    assert main(["verify", "--resume", "--record", str(path)]) == 0
    assert len(VerificationRecord.load(path).runs) == 3


def test_a_record_of_something_else(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "r.json"
    assert main([*recorded(path), "--rounding", "odd"]) == 0
    message = "covers parts that were not requested, such as f16 -> e5m2"
    assert message in err_of(capsys, [*recorded(path), "--resume"])
    message = "--resume without SRC and DST already determines what is compared; leave out --seed"
    assert message in err_of(capsys, ["verify", "--resume", "--record", str(path), "--seed", "3"])


def test_a_stale_record(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "r.json"
    assert main([*recorded(path), "--rounding", "odd"]) == 0
    text = path.read_text()
    digest = json.loads(text)["sources"]["files"]["castsim/numerics/rounding.py"]
    path.write_text(text.replace(digest, "0" * 64))
    capsys.readouterr()
    err = err_of(capsys, [*recorded(path), "--rounding", "odd", "--resume"])
    assert "is stale" in err
    assert "castsim/numerics/rounding.py" in err


def test_the_matrix_can_be_started_and_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("castsim.tools.verify.command.verify", interrupted)
    path = tmp_path / "f32.json"
    assert main(["verify", "--matrix", "--record", str(path)]) == 130
    assert tuple(one.part for one in VerificationRecord.load(path).progress) == required_parts()
    assert main(["verify", "--matrix", "--record", str(path), "--resume"]) == 130
    assert main(["verify", "--record", str(path), "--resume"]) == 130


SAVING_OFTEN = """
import sys
from castsim.__main__ import main
from castsim.tools.verify import running
running.SAVE_SECONDS = 0.1
sys.exit(main())
"""


@pytest.mark.parametrize(("workers", "least"), [("1", 1), ("2", 1), ("2", 0)])
def test_interrupting_the_command(tmp_path: Path, workers: str, least: int) -> None:
    """A real process, a real SIGINT to the whole group as a terminal sends it, and the rest afterwards.

    It is sent when the record has at least so many codes; with none the workers are still starting.
    """
    path = tmp_path / "r.json"
    argv = [sys.executable, "-c", SAVING_OFTEN, "verify"]
    cast = ["f32", "f16", "--tier", "table", "--against", "reference", "--rounding", "rint", "--overflow", "special"]
    few = ["--samples", str(1 << 31), "--record", str(path), "--workers", workers, "--quiet"]
    process = subprocess.Popen([*argv, *cast, *few], stderr=subprocess.PIPE, text=True, start_new_session=True)
    while process.poll() is None and not (path.exists() and VerificationRecord.load(path).progress[0].checked >= least):
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert f"saved in {path}: continue with --resume" in err
    (one,) = VerificationRecord.load(path).progress
    assert least <= one.checked < one.size
    assert err.startswith(f"interrupted; {one.checked:,} of {one.size:,} codes tried, 0 mismatches")
    assert [file.name for file in tmp_path.iterdir()] == ["r.json"]


# ---------------------------------------------------------------------------------------------------------- progress


def test_progress_is_for_those_who_watch(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    argv = ["verify", "f16", "e4m3fn", "--rounding", "rint"]
    assert err_of(capsys, argv, 0) == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "f16 -> e4m3fn rint" in err_of(capsys, argv, 0)
    assert err_of(capsys, [*argv, "--quiet"], 0) == ""


def test_a_tier_that_is_not_there_is_not_said_to_be_right(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("castsim.numerics.tiers._compiled_tier", lambda: "numba cannot be imported")
    words = "verify f16 e4m3fn --tier compiled --samples 4 --rounding rint --overflow saturate"
    assert "tier 'compiled' is not available: numba cannot be imported" in err_of(capsys, words.split())
