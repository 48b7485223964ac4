"""The proofs that are shipped: about today's sources, of everything that was promised, without a mismatch.

A part that has not been run yet is `pending` in its record; it is skipped here, which is not a success.
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import oracle
import pytest

import castsim.evidence.verification
from castsim.evidence.verification import VerificationRecord, required_parts

SHIPPED = Path(castsim.evidence.verification.__file__).parent / "records"
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


@pytest.mark.parametrize("dst", DESTINATIONS)
def test_every_promised_part_has_been_run(dst: str) -> None:
    status = {key: one.status for path in RECORDS for record in [VerificationRecord.load(path)]
              for key, one in zip(keys(record), record.progress, strict=True)}  # fmt: skip
    waiting = sorted(key for key in promised() if key[1] == dst and status.get(key) != "done")
    if waiting:
        pytest.skip(f"pending: {len(waiting)} parts of f32 -> {dst}, such as {' '.join(waiting[0])}")
