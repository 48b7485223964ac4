"""Verifications find what differs, can be interrupted anywhere, and lose nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest

import castsim
from castsim.evidence.verification import (
    ComparisonResult,
    PartProgress,
    VerificationPart,
    VerificationRecord,
    comparison,
    input_set,
    running,
    verify,
)
from castsim.evidence.verification.comparison import probe
from castsim.evidence.verification.planning import plan
from castsim.isa import DETERMINISTIC, IllegalError, Overflow, ReadError, Rounding
from castsim.numerics import convert_codes

HALF = VerificationPart("f16", "e4m3fn", Rounding.RINT, Overflow.SPECIAL, "table", "reference", "exhaustive")


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[np.ndarray], np.ndarray]], None]:
    """Make the table tier wrong for the codes that a function selects."""

    def spoil(where: Callable[[np.ndarray], np.ndarray]) -> None:
        def spoilt(codes: np.ndarray, *args: Any, tier: Any = None, **options: Any) -> np.ndarray:
            result = convert_codes(codes, *args, tier=tier, **options)
            return np.where(where(codes), result ^ 1, result).astype(result.dtype) if str(tier) == "table" else result

        monkeypatch.setattr(comparison, "convert_codes", spoilt)

    return spoil


def small_pieces(monkeypatch: pytest.MonkeyPatch, codes: int = 4096) -> None:
    monkeypatch.setattr(running, "_piece", lambda one: codes)


def of(*parts: VerificationPart) -> VerificationRecord:
    record = VerificationRecord.of(parts)
    record.begin_run()
    return record


# --------------------------------------------------------------------------------------------------------- findings


@pytest.mark.parametrize(
    ("src", "dst"),
    [("f16", "e5m2"), ("bf16", "hif8"), ("e4m3fn", "f32"), ("u8", "i4"), ("f16", "e8m0"), ("i8", "bool")],
)
def test_all_codes_against_the_oracle(src: str, dst: str) -> None:
    record = of(*plan(src, dst))
    verify(record)
    assert record.complete
    assert record.mismatches == 0
    assert all(one.checked == 1 << oracle.fmt(src).bits for one in record.progress)


@pytest.mark.parametrize(
    ("src", "dst", "mode"),
    [("f32", "hif8", "hybrid"), ("f64", "e4m3fn", "odd"), ("f32", "bf16", "stochastic"), ("u64", "f32", "half_up")],
)
def test_samples_against_the_oracle(src: str, dst: str, mode: str) -> None:
    record = of(*plan(src, dst, roundings=[mode], inputs="samples", count=3000, seed=7))
    verify(record)
    assert record.complete
    assert record.mismatches == 0


def test_what_the_sources_leave_open_is_left_out_and_counted() -> None:
    record = of(*plan("bf16", "e8m0", roundings=["floor"], overflows=["special"]))
    verify(record)
    above = [code for code in range(1 << 16) if (value := oracle.decode(code, "bf16")).kind != "nan" and not
             value.negative and (value.kind == "inf" or value.magnitude > 2**127)]  # fmt: skip
    assert (record.mismatches, record.progress[0].undecided) == (0, len(above))


def test_differences_are_counted_and_the_first_ones_kept(wrong: Any) -> None:
    wrong(lambda codes: codes % 1000 == 7)
    record = of(HALF)
    verify(record)
    (one,) = record.progress
    assert one.mismatches == len(range(7, 1 << 16, 1000))
    assert [mismatch.code for mismatch in one.first] == list(range(7, 10_000, 1000))
    for mismatch in one.first:
        expected = oracle.cast(mismatch.code, "f16", "e4m3fn", "rint", "special")
        assert (mismatch.position, mismatch.expected, mismatch.result) == (mismatch.code, expected, expected ^ 1)


def test_a_structured_set_tells_all_modes_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tier that rounds by another mode than asked for differs on the structured set, whichever two they are."""
    policy = {mode: plan("f32", "e4m3fn", roundings=[mode], overflows=["saturate"])[0].policy for mode in DETERMINISTIC}
    for asked, done in product(DETERMINISTIC, DETERMINISTIC):

        def swapped(codes: Any, src: Any, dst: Any, _: Any, tier: Any, random: Any, modes: Any = (asked, done)) -> Any:
            return convert_codes(codes, src, dst, policy[modes[str(tier) == "table"]], tier=tier, random=random)

        monkeypatch.setattr(comparison, "convert_codes", swapped)
        part = VerificationPart("f32", "e4m3fn", asked, Overflow.SATURATE, "table", "reference", "structured")
        finding = comparison.compare(part, 0, input_set(part).size)
        assert (finding.mismatches == 0) == (asked == done), (asked, done)


def test_a_part_that_cannot_be_computed_is_refused_at_once() -> None:
    for part, message in [
        (
            VerificationPart("f32", "i32", Rounding.RINT, Overflow.WRAP, "table", "reference", "structured"),
            "has no table",
        ),
        (
            VerificationPart("f32", "f16", Rounding.RINT, Overflow.WRAP, "table", "oracle", "exhaustive"),
            "legal: saturate, special",
        ),
    ]:
        with pytest.raises(IllegalError, match=message):
            probe(part)


def test_a_format_that_the_oracle_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(oracle.FLOATS, "e2m3")
    with pytest.raises(IllegalError, match=r"the oracle has no format e2m3\n  help: --against reference"):
        probe(VerificationPart("f16", "e2m3", Rounding.RINT, Overflow.SPECIAL, "table", "oracle", "exhaustive"))


def test_without_its_tests_castsim_has_no_oracle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(castsim, "__file__", str(tmp_path / "simulator" / "__init__.py"))
    with pytest.raises(IllegalError, match=r"(?s)source checkout.*pip install -e.*--against reference"):
        probe(VerificationPart("f16", "e4m3fn", Rounding.RINT, Overflow.SPECIAL, "table", "oracle", "exhaustive"))


# ------------------------------------------------------------------------------------------------- taking work apart


def test_stretches_are_merged_and_none_counts_twice() -> None:
    one = PartProgress(HALF, 100)
    for start, stop in [(10, 20), (40, 50), (20, 40), (0, 10)]:
        one.add(ComparisonResult(start, stop, 1, 2, (), 0.5))
    assert one.done == [(0, 50)]
    assert (one.checked, one.mismatches, one.undecided, one.cpu_seconds) == (50, 4, 8, 2.0)
    assert list(one.missing()) == [(50, 100)]
    with pytest.raises(ValueError, match="twice"):
        one.add(ComparisonResult(45, 60, 0, 0, (), 0.0))
    one.add(ComparisonResult(60, 70, 0, 0, (), 0.0))
    assert list(one.missing()) == [(50, 60), (70, 100)]
    assert one.status == "partial"


class Interrupting:
    """Sends SIGINT after some pieces, and notes all of them."""

    def __init__(self, after: int) -> None:
        self.after = after
        self.seen: list[int] = []

    def advance(self, one: PartProgress, codes: int) -> None:
        self.seen.append(codes)
        if len(self.seen) == self.after:
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("after", [1, 5, 16])
def test_an_interrupt_loses_nothing(after: int, wrong: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wrong(lambda codes: codes % 5000 == 1)
    small_pieces(monkeypatch)
    path = tmp_path / "record.json"
    record = of(HALF)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        verify(record, save=lambda: record.save(path), observer=Interrupting(after))
    assert signal.getsignal(signal.SIGINT) is before
    kept = VerificationRecord.load(path)
    assert kept.progress[0].done == [(0, 4096 * after)]
    kept.begin_run()
    rest = Interrupting(after=-1)
    verify(kept, save=lambda: kept.save(path), observer=rest)
    assert sum(rest.seen) == (1 << 16) - 4096 * after
    whole, (one,) = of(HALF), VerificationRecord.load(path).progress
    verify(whole)
    (same,) = whole.progress
    assert (one.done, one.mismatches, one.first) == (same.done, same.mismatches, same.first)
    assert one.status == "done"


def test_an_error_on_the_way_loses_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    small_pieces(monkeypatch)
    path = tmp_path / "record.json"
    record = of(HALF)

    class Failing:
        def advance(self, one: PartProgress, codes: int) -> None:
            if one.checked > 10_000:
                raise MemoryError

    with pytest.raises(MemoryError):
        verify(record, save=lambda: record.save(path), observer=Failing())
    assert VerificationRecord.load(path).progress[0].done == [(0, 12288)]


def test_saved_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    small_pieces(monkeypatch)
    monkeypatch.setattr(running, "SAVE_SECONDS", 0.0)
    record = of(HALF)
    seen: list[int] = []
    verify(record, save=lambda: seen.append(record.progress[0].checked))
    assert seen == [*range(4096, (1 << 16) + 1, 4096), 1 << 16]


def test_several_processes_find_the_same(tmp_path: Path) -> None:
    parts = plan("bf16", "e5m2", roundings=["floor", "odd"], tier="table", against="reference")
    alone, together = of(*parts), of(*parts)
    verify(alone)
    verify(together, workers=2)
    for one, other in zip(alone.progress, together.progress, strict=True):
        assert (one.part, one.done, one.mismatches) == (other.part, other.done, other.mismatches)
    assert together.complete


def test_pieces_grow_until_they_take_long_enough() -> None:
    one = PartProgress(HALF, 1 << 32)
    sizes = []
    start = 0
    for _ in range(12):
        size = running._piece(one)
        sizes.append(size)
        one.add(ComparisonResult(start, start + size, 0, 0, (), size / 1e9))  # a thousand million codes a second
        start += size
    assert all(first <= second for first, second in pairwise(sizes))
    assert sizes[0] <= 1 << 14
    assert sizes[-1] in range(int(0.45e9) - 4096, int(0.5e9) + 1) or sizes[-1] == running.LARGEST_PIECE
    assert all(size % 4096 == 0 for size in sizes)


# ------------------------------------------------------------------------------------------------------ record files


@pytest.fixture
def saved(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "record.json"
    record = of(*plan("f16", "e2m1", tier="table", against="reference", roundings=["rint"]))
    record.progress[0].add(ComparisonResult(0, 5, 0, 0, (), 0.1))
    record.save(path)
    yield path
    assert [file.name for file in tmp_path.iterdir()] == ["record.json"]


def test_a_record_comes_back(saved: Path) -> None:
    record = VerificationRecord.load(saved)
    assert record.document() == VerificationRecord.load(saved).document()
    assert [one.status for one in record.progress] == ["partial", "pending"]
    record.save(saved)
    assert VerificationRecord.load(saved).document() == record.document()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("castsim verification record", "shopping list", "is not a record"),
        ('"schema_version": 1', '"schema_version": 9', "schema version 9"),
        ('"parts": [', '"pieces": [', "lacks 'parts'"),
        ('"dst": "e2m1"', '"dst": "e2m9"', "unknown format 'e2m9'"),
        ('"rounding": "rint"', '"rounding": "up"', "is not a record"),
        ('"codes": 65536', '"codes": 65535', "stretches done"),
        ('"done": [[0, 5]]', '"done": [[0, 70000]]', "stretches done"),
        ('"done": [[0, 5]]', '"done": [[0, 5], [3, 8]]', "stretches done"),
        ('"done": [[0, 5]]', '"done": 5', "is not a record"),
        ("{", "[", "is not a record"),
    ],
)
def test_what_is_no_record_is_refused(saved: Path, old: str, new: str, message: str) -> None:
    text = saved.read_text()
    assert old in text
    saved.write_text(text.replace(old, new, 1))
    with pytest.raises(ReadError, match=message) as refusal:
        VerificationRecord.load(saved)
    assert str(saved) in str(refusal.value)


def test_a_record_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="cannot write record"):
        of(HALF).save(tmp_path / "nowhere" / "record.json")
