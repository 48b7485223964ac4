"""`castsim verify`: the shipped proofs, which sources a proof is about, and what the command says and refuses."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import oracle_lowering
import pytest
from kit.command_output import Capture, document_of, ended, err_of, out_of

import castsim.tools.verify
from castsim.__main__ import main
from castsim.numerics.tiers import convert_codes
from castsim.tools.verify import comparison, kept
from castsim.tools.verify.kept import digest_of, source_digests, stripped
from castsim.tools.verify.running import VerificationRecord, required_parts

SHIPPED = Path(castsim.tools.verify.__file__).parent / "records"
RECORDS = sorted(SHIPPED.glob("*.json"))

DESTINATIONS = ["f16", "bf16", "e4m3fn", "e5m2", "e2m1", "e1m2", "hif8", "i8", "u8", "i16", "i32"]
Key = tuple[str, str, str, str, str, str, str]


def modes(dst: str) -> tuple[str, ...]:
    """The deterministic modes of docs/reference/formats.md section 6."""
    return oracle.HIF8_MODES if dst == "hif8" else oracle.MODES


def promised() -> set[Key]:
    """Source, destination, rounding, overflow, tier, against, inputs of everything that must be proved."""
    found: set[Key] = set()
    for dst in DESTINATIONS:
        overflows = ("saturate", "wrap" if dst in oracle.INTS else "special")
        for mode, overflow in product(modes(dst), overflows):
            found.add(("f32", dst, mode, overflow, "compiled", "generic", "exhaustive"))
            whole = mode in ("hybrid", "round" if dst == "hif8" else "rint")
            inputs = "exhaustive" if whole else "structured"
            found.add(("f32", dst, mode, overflow, "generic", "reference", inputs))
    return found


def keys(record: VerificationRecord) -> list[Key]:
    return [
        (part.src, part.dst, str(part.rounding), str(part.overflow), part.tier, part.against, part.inputs)
        for part in (one.part for one in record.progress)
    ]


def test_the_matrix_is_what_was_promised() -> None:
    planned = keys(VerificationRecord.of(required_parts()))
    assert len(planned) == len(set(planned))
    assert set(planned) == promised()


def test_the_promise_is_in_the_records() -> None:
    held = [key for path in RECORDS for key in keys(VerificationRecord.load(path))]
    assert len(held) == len(set(held))
    assert promised() - set(held) == set()


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.name)
def test_a_record_is_about_the_sources_as_they_are(path: Path) -> None:
    changed = VerificationRecord.load(path).changed_files()
    assert not changed, (
        f"{path.name} is stale, because these have changed: {', '.join(changed)}. Prove it again:"
        f" rm {path}; castsim verify --matrix --record {path}"
    )


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.name)
def test_a_record_found_nothing_and_says_how(path: Path) -> None:
    document = json.loads(path.read_text())
    record = VerificationRecord.load(path)
    counted = {
        status: sum(one.status == status for one in record.progress) for status in ("done", "partial", "pending")
    }
    assert document["parts_by_status"] == counted
    assert document["complete"] == (counted["done"] == len(record.progress))
    assert document["mismatches"] == 0
    assert "sees only the kept bits, the half bit, the sticky bit" in document["input_sets"]["structured"]
    for part in document["parts"]:
        assert (part["mismatches"], part["first_mismatches"]) == (0, [])
        assert part["inputs"] != "exhaustive" or part["codes"] == 1 << 32
    if counted["done"]:
        assert document["runs"]
        for run in document["runs"]:
            assert {"date", "python", "numpy", "numba", "castsim"} <= set(run)


SAMPLE = '''"""Docstring."""

import one  # a comment
from two import three


def increment(value: int) -> int:
    """Return more.

    Much more.
    """

    # This is why.
    text = "# no comment"  # but this is
    return value + 1, text


LIMIT = 3
"""What it means."""
'''


def test_what_cannot_change_a_bit_does_not_count() -> None:
    bare = [
        "import one", "from two import three", "def increment(value: int) -> int:", '    text = "# no comment"',
        "    return value + 1, text", "LIMIT = 3",
    ]  # fmt: skip
    assert stripped(SAMPLE) == "\n".join(bare)


@pytest.mark.parametrize(
    ("old", "new"), [("value + 1", "value - 1"), ("LIMIT = 3", "LIMIT = 4"), ("# no comment", "# a comment")]
)
def test_everything_else_counts(old: str, new: str) -> None:
    assert stripped(SAMPLE.replace(old, new)) != stripped(SAMPLE)


@pytest.mark.parametrize("path", sorted(kept.PACKAGES["castsim"].joinpath("numerics").rglob("*.py")), ids=str)
def test_what_remains_is_the_same_program(path: Path) -> None:

    class Docless(ast.NodeTransformer):
        def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
            is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
            return None if is_text else node

    source = path.read_text()
    wanted = Docless().visit(ast.parse(source))
    for node in ast.walk(wanted):  # a body that was a docstring only would be empty and is not valid on its own
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.body:
            pytest.skip("has a class or function that is a docstring only")
    assert ast.dump(ast.parse(stripped(source))) == ast.dump(wanted)


def test_imports_for_annotations_decide_no_bit() -> None:
    plain = "import numpy as np\n\nx = np.uint8(1)\n"
    typed = f"from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from numpy.typing import NDArray\n\n{plain}"
    assert kept.imports_for_annotations(plain) == set()
    assert stripped(typed, kept.imports_for_annotations(typed)) == stripped(plain)
    assert stripped(plain) != stripped(plain.replace("numpy as np", "numpy.ma as np"))


def test_the_files_are_those_that_computing_a_cast_imports() -> None:
    names = set(source_digests(oracle=False))
    for module in ("rounding", "pack", "cast", "blocks", "policy", "tables", "tiers"):
        assert f"castsim/numerics/{module}.py" in names
    assert "castsim/isa/formats.py" in names
    assert {f"castsim/tools/verify/{module}.py" for module in ("inputs", "comparison")} <= names
    assert not names & {f"castsim/{name}.py" for name in ("tools/quantise/quantisation", "isa/errors", "isa/pto/lexer")}
    loaded = {name: found for name, found in sys.modules.items() if name.startswith("castsim.numerics.compiled")}
    assert {f"castsim/numerics/compiled/{Path(str(found.__file__)).name}" for found in loaded.values()} <= names


def test_the_oracle_counts_where_it_takes_part() -> None:
    more = set(source_digests(oracle=True)) - set(source_digests(oracle=False))
    assert more >= {"tests/oracle.py", "tests/oracle_array.py", "tests/oracle_formats.py", "tests/oracle_scalar.py"}
    assert all(name.startswith("tests/oracle") for name in more)


def test_one_digest_for_all() -> None:
    files = {"b": "2" * 64, "a": "1" * 64}
    text = f"{'1' * 64}  a\n{'2' * 64}  b\n"  # the lines that sha256sum prints
    assert digest_of(files) == hashlib.sha256(text.encode()).hexdigest()


def verify(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return ended(capsys, "verify", "--lowering", *arguments)


def test_all_codes_of_narrow_sources(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = verify(capsys, "f16", "i8", "--spec", "tosa", "--target", "a5", "gaudib")
    assert code == 0
    assert "2 programs and 0 counterexamples run, 131,072 codes, 0 claims refuted" in " ".join(out.split())


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
