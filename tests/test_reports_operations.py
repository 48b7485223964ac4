"""What a run report says of vector operations: which cycles nobody published, which values are not claimed exact."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from work_model import TARGETS

from castsim.__main__ import main
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind
from castsim.targets import load_target

ROOT = Path(__file__).parent.parent
KERNEL = str(ROOT / "programs" / "kernels" / "rms_norm_a2a3.pto")
WORDS = ["run", KERNEL, "--in", "src=random:0", "--in", "gamma=random:1", "--arg", "eps=1e-6"]


def test_the_document_lists_every_operation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS, "--json", "-", "--quiet"]) == 0
    found = {(note["op"], note["element"]): note for note in json.loads(capsys.readouterr().out)["operations"]}
    assert {op for op, _ in found} == {
        "texpands", "tmul", "trowsum", "tadd", "tmuls", "tadds", "tsqrt", "trecip", "trowexpandmul", "tcolexpandmul",
    }  # fmt: skip
    assert found["tmul", "f32"]["validated"] is True
    assert found["tmul", "f32"]["not_bit_exact"] is None
    assert found["tcolexpandmul", "f32"]["validated"] is False
    assert "order" in found["trowsum", "f32"]["not_bit_exact"]


def test_the_text_marks_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(WORDS) == 0
    text = " ".join(capsys.readouterr().out.split())
    marked = text.split("cycles not validated (none published): ")[1].split(" values")[0]
    assert "tcolexpandmul f32" in marked
    assert "tmul f32" not in marked.replace("trowexpandmul f32", "").replace("tcolexpandmul f32", "")
    assert "values not bit-exact: trowsum f32: order of the sum within a row is assumed" in text


def test_programs_of_casts_say_nothing_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(ROOT / "programs" / "f32_to_f16.pto"), "--in", "src=random:0"]) == 0
    assert "not validated" not in capsys.readouterr().out


def test_validated_are_the_operations_with_published_cycles() -> None:
    with (ROOT / "targets" / "a2a3_measured_operations.csv").open() as file:
        published = {(row["op"].lower(), row["src"]) for row in csv.DictReader(file)}
    published = {(op, element) for op, element in published if op in VECTOR_OPERATIONS}
    target = load_target("a2a3")
    assert {(rule.mnemonic, element) for rule in target.tile_operations for element in rule.validated} == published


def test_what_is_approximate() -> None:
    """Divisions, exponentials, logarithms, reciprocal roots; sums and products along a row; nothing else."""
    for name in TARGETS:
        for rule in load_target(name).tile_operations:
            operation = VECTOR_OPERATIONS[rule.mnemonic]
            doubtful = operation.function in (
                "div",
                "recip",
                "exp",
                "expdif",
                "log",
                "rsqrt",
                "shl",
                "shr",
                "rem",
                "fmod",
                "axpy",
                "addc",
            )
            doubtful |= operation.kind in (Kind.ROW_ARGUMENT, Kind.COLUMN_ARGUMENT, Kind.SORT, Kind.MERGE)
            doubtful |= rule.mnemonic in ("trowsum", "trowprod")
            assert (rule.approximate is not None) == doubtful, rule.mnemonic
