"""Verifications find what differs, can be interrupted anywhere, and lose nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from kit.command_output import document_of
from kit.held_documents import hold

import castsim
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import DETERMINISTIC, Overflow, Rounding, format_named
from castsim.numerics.blocks import check_codes, code_dtype
from castsim.numerics.tiers import convert_codes
from castsim.tools.verify import comparison, running
from castsim.tools.verify.comparison import ComparisonResult, probe
from castsim.tools.verify.inputs import LARGEST, Exhaustive, Samples, Structured, VerificationPart, input_set
from castsim.tools.verify.running import PartProgress, VerificationRecord, plan, verify

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
    assert (record.complete, record.mismatches) == (True, 0)
    assert all(one.checked == 1 << oracle.fmt(src).bits for one in record.progress)


@pytest.mark.parametrize(
    ("src", "dst", "mode"),
    [("f32", "hif8", "hybrid"), ("f64", "e4m3fn", "odd"), ("f32", "bf16", "stochastic"), ("u64", "f32", "half_up")],
)
def test_samples_against_the_oracle(src: str, dst: str, mode: str) -> None:
    record = of(*plan(src, dst, roundings=[mode], inputs="samples", count=3000, seed=7))
    verify(record)
    assert (record.complete, record.mismatches) == (True, 0)


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


def test_a_document_with_differences_is_what_the_schema_says(wrong: Any, capsys: pytest.CaptureFixture[str]) -> None:
    wrong(lambda codes: codes == 7)
    document = document_of(capsys, "verify", "f16", "e4m3fn", "--tier", "table", code=1)
    assert {mismatch["position"] for part in document["parts"] for mismatch in part["first_mismatches"]} == {7}
    hold("verify", document)


def test_a_structured_set_tells_all_modes_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = {mode: plan("f32", "e4m3fn", roundings=[mode], overflows=["saturate"])[0].policy for mode in DETERMINISTIC}
    for asked, done in product(DETERMINISTIC, DETERMINISTIC):

        def swapped(codes: Any, src: Any, dst: Any, _: Any, tier: Any, random: Any, modes: Any = (asked, done)) -> Any:
            return convert_codes(codes, src, dst, policy[modes[str(tier) == "table"]], tier=tier, random=random)

        monkeypatch.setattr(comparison, "convert_codes", swapped)
        part = VerificationPart("f32", "e4m3fn", asked, Overflow.SATURATE, "table", "reference", "structured")
        finding = comparison.compare(part, 0, input_set(part).size)
        assert (finding.mismatches == 0) == (asked == done), (asked, done)


@pytest.mark.parametrize(
    ("dst", "overflow", "against", "inputs", "message"),
    [
        ("i32", Overflow.WRAP, "reference", "structured", "has no table"),
        ("f16", Overflow.WRAP, "oracle", "exhaustive", "legal: saturate, special"),
    ],
)
def test_a_part_that_cannot_be_computed_is_refused_at_once(
    dst: str, overflow: Overflow, against: str, inputs: str, message: str
) -> None:
    with pytest.raises(IllegalError, match=message):
        probe(VerificationPart("f32", dst, Rounding.RINT, overflow, "table", against, inputs))


def test_a_format_that_the_oracle_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(oracle.FLOATS, "e2m3")
    with pytest.raises(IllegalError, match=r"the oracle has no format e2m3\n  help: --against reference"):
        probe(replace(HALF, dst="e2m3", against="oracle"))


def test_without_its_tests_castsim_has_no_oracle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(castsim, "__file__", str(tmp_path / "simulator" / "__init__.py"))
    with pytest.raises(IllegalError, match=r"(?s)source checkout.*pip install -e.*--against reference"):
        probe(replace(HALF, against="oracle"))


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
    sizes: list[int] = []
    for _ in range(12):
        start, size = sum(sizes), running._piece(one)
        sizes.append(size)
        one.add(ComparisonResult(start, start + size, 0, 0, (), size / 1e9))  # a thousand million codes a second
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


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("castsim verification record", "shopping list", "is not a record"),
        ('"schema_version": 1', '"schema_version": 9', "schema version 9"),
        ('"parts": [', '"pieces": [', "lacks 'parts'"),
        ('"dst": "e2m1"', '"dst": "e2m9"', "unknown format 'e2m9'"),
        ('"rounding": "rint"', '"rounding": "up"', "is not a record"),
        ('"codes": 65536', '"codes": 65535', "finished ranges"),
        ('"done": [[0, 5]]', '"done": [[0, 70000]]', "finished ranges"),
        ('"done": [[0, 5]]', '"done": [[0, 5], [3, 8]]', "finished ranges"),
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


# ------------------------------------------------------------------------------------ the codes that casts are tried on


WIDE = ["f32", "f64", "i32", "u32", "i48", "i64", "u64"]


def structured(src: str, dst: str, overflow: str) -> Structured:
    return Structured(format_named(src), format_named(dst), Overflow(overflow))


def part(src: str, dst: str, inputs: str, count: int = 0, rounding: Rounding = Rounding.RINT) -> VerificationPart:
    return VerificationPart(src, dst, rounding, Overflow.SATURATE, "table", "reference", inputs, count)


def cases_of(codes: np.ndarray, src: str, between: list[Fraction]) -> set[tuple[bool, Fraction, str]]:
    """Where numbers lie: sign, the destination's number below, and exact, below, at or above the middle to the next."""
    found = set()
    for code in codes.tolist():
        value = oracle.decode(code, src)
        if value.kind != "finite" or value.magnitude >= between[-1]:
            continue
        index = np.searchsorted(np.array(between, object), value.magnitude, side="right") - 1
        low, high = between[index], between[index + 1]
        middle = (low + high) / 2
        size = value.magnitude
        side = "exact" if size == low else "below" if size < middle else "middle" if size == middle else "above"
        found.add((value.negative, low, side))
    return found


def every_case(numbers: list[Fraction]) -> set[tuple[bool, Fraction, str]]:
    """From exactly on each number to almost the next, of both signs, in all four positions."""
    return set(product((False, True), numbers[:-1], ("exact", "below", "middle", "above")))


@pytest.mark.parametrize("src", ["f32", "f64"])
@pytest.mark.parametrize("dst", ["e4m3fn", "e5m2", "e2m1", "e1m2", "e3m2", "hif8", "e5m2fnuz"])
def test_every_case_of_a_float_destination_is_there(src: str, dst: str) -> None:
    numbers = [number for number, _ in oracle.codebook(dst)]
    inputs = structured(src, dst, "special")
    assert every_case(numbers) <= cases_of(inputs.codes(0, inputs.size), src, numbers)


@pytest.mark.parametrize("overflow", ["saturate", "wrap"])
def test_every_case_of_an_integer_destination_is_there(overflow: str) -> None:
    inputs = structured("f32", "i8", overflow)
    codes = inputs.codes(0, inputs.size)
    integers = [Fraction(number) for number in range(257 if overflow == "saturate" else 130)]
    small = codes[abs(codes.view(np.float32)) < float(integers[-1])]
    assert every_case(integers) <= cases_of(small, "f32", integers)


@pytest.mark.parametrize(("src", "dst"), [("i32", "e4m3fn"), ("u32", "e5m2"), ("i64", "hif8"), ("u64", "e2m1")])
def test_every_case_of_an_integer_source_is_there(src: str, dst: str) -> None:
    inputs = structured(src, dst, "special")
    found = cases_of(inputs.codes(0, inputs.size), src, [number for number, _ in oracle.codebook(dst)])
    numbers = [number for number, _ in oracle.codebook(dst) if number.denominator == 1]
    gaps = {low: high - low for low, high in pairwise(number for number, _ in oracle.codebook(dst))}
    for low in numbers[:-1]:
        for negative in (False, True) if src[0] == "i" and low else (False,):
            assert (negative, low, "exact") in found
            if gaps[low] >= 4:
                assert {(negative, low, side) for side in ("below", "middle", "above")} <= found


@pytest.mark.parametrize("src", WIDE)
def test_specials_and_extremes_are_there(src: str) -> None:
    inputs = structured(src, "e5m2", "special")
    codes = set(inputs.codes(0, inputs.size).tolist())
    bits = format_named(src).storage_bits
    if src == "f32":
        wanted = [0, 1 << 31, 1, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800001, 0x7FFFFFFF]
    elif src == "f64":
        wanted = [0, 1 << 63, 1, 0x7FF0 << 48, 0xFFF0 << 48, 0x7FF8 << 48, (0x7FF0 << 48) - 1, (0x7FF0 << 48) + 1]
    elif src[0] == "u":
        wanted = [0, 1, (1 << bits) - 1, 1 << (bits - 1)]
    else:
        top = int(src[1:]) - 1
        wanted = [0, 1, (1 << bits) - 1, (1 << top) - 1, ((1 << bits) - 1) ^ ((1 << top) - 1)]
    assert codes >= set(wanted)


@pytest.mark.parametrize(("src", "dst", "overflow"), [("f64", "f32", "special"), ("f64", "i32", "wrap")])
def test_sets_that_are_too_large(src: str, dst: str, overflow: str) -> None:
    with pytest.raises(IllegalError, match=f"(?s)structured set of {src} -> {dst}.*--samples N") as refusal:
        structured(src, dst, overflow)
    assert f"{LARGEST:.1e}" in str(refusal.value)


@pytest.mark.parametrize("src", ["f16", "hif8", "i8"])
def test_narrow_sources_need_no_structured_set(src: str) -> None:
    with pytest.raises(IllegalError, match="--exhaustive"):
        structured(src, "e4m3fn", "special")


@pytest.mark.parametrize("src", ["f64", "i64", "u64", "i48"])
def test_wider_sources_cannot_be_tried_on_all_codes(src: str) -> None:
    with pytest.raises(IllegalError, match=r"--structured, --samples N"):
        Exhaustive(format_named(src))


@pytest.mark.parametrize("rounding", [Rounding.HYBRID, Rounding.STOCHASTIC])
def test_modes_that_see_more_are_not_decided_by_a_structured_set(rounding: Rounding) -> None:
    dst = "hif8" if rounding is Rounding.HYBRID else "f16"
    with pytest.raises(IllegalError, match="sees more than kept bits"):
        part("f32", dst, "structured", rounding=rounding).check()


# ---------------------------------------------------------------------------------------------------- all of the sets


@pytest.mark.parametrize("name", ["e2m1", "e3m2", "hif8", "u4", "i8", "f16", "u16", "bool"])
def test_all_codes_are_all_codes(name: str) -> None:
    inputs = Exhaustive(format_named(name))
    wanted = 256 if name == "bool" else 1 << oracle.fmt(name).bits
    assert inputs.codes(0, inputs.size).tolist() == list(range(wanted))  # any byte is a bool


@pytest.mark.parametrize(
    ("src", "kind"),
    [(src, kind) for kind in ("structured", "samples") for src in WIDE]
    + [(src, "samples") for src in ("f16", "hif8", "e2m1", "i4", "bool")],
)
def test_stretches_and_legal_codes(src: str, kind: str) -> None:
    inputs = input_set(part(src, "e5m2", kind, 20_000 if kind == "samples" else 0))
    row = format_named(src)
    whole = inputs.codes(0, inputs.size)
    assert len(whole) == inputs.size
    assert whole.dtype == code_dtype(row)
    check_codes(whole, row)
    size = inputs.size
    edges = sorted({0, 1, 2, 4095, 4096, 4097, size // 2 - 1, size // 2 + 3, size - 1, size} & {*range(size + 1)})
    pieces = [inputs.codes(start, stop) for start, stop in pairwise(edges)]
    assert np.array_equal(np.concatenate(pieces), whole)


def test_samples_depend_on_the_seed_alone_and_reach_everything() -> None:
    first, again, other = (
        Samples(format_named("f32"), format_named("e4m3fn"), Overflow.SPECIAL, 1 << 14, seed).codes(0, 1 << 14)
        for seed in (5, 5, 6)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert len(set((first >> 23).tolist())) == 512  # every sign and exponent
    ties = np.count_nonzero(first & 0xFFFFF == 0x80000)  # half, under three kept bits
    assert ties > 200  # of 8192 near boundaries one in six is a tie, if the number is in range


def test_every_word_of_a_part_is_checked() -> None:
    good = part("f32", "e4m3fn", "samples", 5)
    good.check()
    for change, message in [
        ({"tier": "fastest"}, "unknown tier 'fastest'"),
        ({"against": "fastest"}, "legal: default, reference, table, .*6 in all"),
        ({"against": "table"}, "tier 'table' against itself"),
        ({"inputs": "some"}, "unknown kind of input set 'some'"),
        ({"count": 0}, "0 samples"),
        ({"src": "f33"}, "unknown format 'f33'"),
    ]:
        with pytest.raises(ReadError, match=message):
            replace(good, **change).check()
