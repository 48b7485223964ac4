"""What casts did to their numbers, judged in exact fractions: all inputs of 16 bits, wide integers, casts of runs."""

from __future__ import annotations

import math
import os
import stat
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import oracle
import pytest
from kit.cast_kernels import kernel
from kit.strided_works import tile
from makers.expected_files import PROGRAMS

from castsim.execution.buffer_values import CastCounts
from castsim.execution.input_data import write_array
from castsim.execution.outcomes import Judge, Outcome, Outcomes
from castsim.execution.tree import Access, Block, CastTiles, Lowered
from castsim.isa.errors import ReadError
from castsim.isa.formats import FORMATS, IntFormat, Rounding
from castsim.running.program_runs import run

EVERY = np.arange(1 << 16)
PAIRS = [
    ("f16", "i8", "rint", "saturate"), ("f16", "u8", "floor", "wrap"), ("f16", "e4m3fn", "rint", "special"),
    ("f16", "e4m3fn", "rint", "saturate"), ("bf16", "f16", "ceil", "special"), ("bf16", "i16", "round", "saturate"),
    ("bf16", "i64", "trunc", "saturate"), ("bf16", "e2m1", "rint", "saturate"), ("i16", "u8", "rint", "wrap"),
    ("u16", "f16", "rint", "special"), ("f16", "i4", "odd", "saturate"), ("bf16", "f32", "rint", "special"),
]  # fmt: skip
"""From, to, rounding, overflow: casts of the test oracle."""


def exact(code: int, name: str) -> Fraction | float:
    """Return what a code stands for: a fraction, an infinity or NaN."""
    found = oracle.decode(code, name)
    if found.kind != "finite":
        return math.nan if found.kind == "nan" else -math.inf if found.negative else math.inf
    return -found.magnitude if found.negative else found.magnitude


def is_nan(x: Fraction | float) -> bool:
    return isinstance(x, float) and math.isnan(x)


IEEE = {"f64": (52, 1023), "f32": (23, 127), "f16": (10, 15), "bf16": (7, 127)}
"""Bits of the fraction and bias of formats that have a codebook too long to go through."""


@cache
def ends(name: str) -> tuple[tuple[Fraction, bool], tuple[Fraction, bool], Fraction]:
    """Return the smallest and the largest number, each with whether its last bit is 1, and the step at the largest."""
    if name in oracle.INTS:
        row = FORMATS[name]
        assert isinstance(row, IntFormat)
        low = Fraction(-(2 ** (row.bits - 1)) if row.signed else 0)
        high = Fraction(2 ** (row.bits - row.signed) - 1)
        return (low, bool(low % 2)), (high, True), Fraction(1)
    if name in IEEE:
        fraction, bias = IEEE[name]
        most = (2 - Fraction(1, 2**fraction)) * 2**bias
        return (-most, True), (most, True), Fraction(2) ** (bias - fraction)
    *_, (below, _), (most, code), (beyond, _) = oracle.codebook(name)
    assert most - below == beyond - most
    return (-most, bool(code & 1)), (most, bool(code & 1)), beyond - most


def is_beyond(x: Fraction, name: str, rounding: str) -> bool:
    """Whether rounding leads beyond the range, were there one more number of the same step on either side."""
    low, high, step = ends(name)
    if low[0] <= x <= high[0]:
        return False
    end, odd = high if x > 0 else low
    past = abs(x - end)
    match rounding:
        case "rint":
            return past > step / 2 or (past == step / 2 and odd)
        case "round":
            return past >= step / 2
        case "trunc":
            return past >= step
        case "floor":
            return x < 0 or past >= step
        case "ceil":
            return x > 0 or past >= step
        case "odd":
            return past >= step or not odd
    raise AssertionError(rounding)


def expected(x: Fraction | float, y: Fraction | float, dst: str, rounding: str, overflow: str) -> Outcome:
    """Return the outcome of a number, by the definitions of the glossary."""
    if x == y or (is_nan(x) and is_nan(y)):
        return Outcome.EXACT
    if is_nan(x):
        return Outcome.NAN
    if isinstance(y, float):
        return Outcome.OVERFLOW
    if not isinstance(x, float) and not is_beyond(x, dst, rounding):
        return Outcome.ROUNDED
    end = ends(dst)[1 if x > 0 else 0][0]
    by_low_bits = overflow == "wrap" and not isinstance(x, float)
    return Outcome.CLAMPED if y == end and not by_low_bits else Outcome.WRAPPED


def counted(xs: list, ys: list, dst: str, rounding: str, overflow: str) -> Outcomes:
    """Count the outcomes of numbers that are given exactly."""
    found = Outcomes(len(xs))
    for x, y in zip(xs, ys, strict=True):
        outcome = expected(x, y, dst, rounding, overflow)
        if outcome is not Outcome.EXACT:
            setattr(found, outcome, getattr(found, outcome) + 1)
    return found


@pytest.mark.parametrize(("src", "dst", "rounding", "overflow"), PAIRS)
def test_all_inputs_of_16_bits(src: str, dst: str, rounding: str, overflow: str) -> None:
    before = EVERY.astype(np.uint16)
    after = oracle.cast_array(before, src, dst, rounding, overflow)
    judge = Judge(FORMATS[src], FORMATS[dst], Rounding(rounding), overflow == "wrap")
    known = {code: exact(code, dst) for code in np.unique(after).tolist()}
    xs, ys = [exact(code, src) for code in range(1 << 16)], [known[code] for code in after.tolist()]
    found = judge.count(before, after)
    assert found == counted(xs, ys, dst, rounding, overflow)
    assert found.exact == sum(x == y or (is_nan(x) and is_nan(y)) for x, y in zip(xs, ys, strict=True))
    for code in (*range(0, 1 << 16, 4099), 0x7BFF, 0x7C00, 0xFC00, 0x7E00):
        assert judge.outcome(code, int(after[code])) is expected(xs[code], ys[code], dst, rounding, overflow)


def test_each_outcome_occurs_among_the_pairs() -> None:
    found = Outcomes()
    for src, dst, rounding, overflow in PAIRS[:6]:
        before = EVERY.astype(np.uint16)
        after = oracle.cast_array(before, src, dst, rounding, overflow)
        found.add(Judge(FORMATS[src], FORMATS[dst], Rounding(rounding), overflow == "wrap").count(before, after))
    assert all((found.exact, found.rounded, found.clamped, found.wrapped, found.overflow, found.nan))


WIDE = [
    ("i64", "f32", "rint", "special"), ("u64", "f64", "rint", "special"), ("f64", "i64", "trunc", "saturate"),
    ("f64", "u64", "rint", "saturate"), ("u64", "i64", "rint", "wrap"), ("i64", "u64", "rint", "saturate"),
    ("i64", "i32", "rint", "saturate"), ("i64", "i8", "rint", "wrap"), ("f32", "i32", "floor", "saturate"),
    ("f64", "f32", "rint", "special"), ("i64", "f16", "rint", "saturate"),
]  # fmt: skip


@pytest.mark.parametrize(("src", "dst", "rounding", "overflow"), WIDE)
def test_64_bits_are_compared_exactly(src: str, dst: str, rounding: str, overflow: str) -> None:
    """No double holds all 64-bit integers: numbers next to powers of two, to the ends, and between."""
    bits = 64 if "64" in src else 32
    drawn = np.random.default_rng(5).integers(0, 2**bits, 300, dtype=np.uint64).tolist()
    if src[0] in "iu":
        near = [(1 << power) + step for power in range(bits) for step in (-1, 0, 1)]
        drawn += [code % (1 << bits) for one in near for code in (one, -one)]
    else:
        powers = [sign * 2.0**power * (1 + step) for sign in (-1, 1) for power in range(-2, 66) for step in (0, 2**-23)]
        kind = np.float64 if bits == 64 else np.float32
        numbers = np.array([*powers, 2.0**31 - 0.5, 2.0**63, np.inf, -np.inf, np.nan, 0.5, -0.5, 0.0], kind)
        drawn += numbers.view(f"u{bits // 8}").tolist()
        drawn += (numbers.view(f"u{bits // 8}")[numbers != 0] - 1).tolist()
    before = np.array(drawn, oracle.storage(src))
    after = np.array([oracle.cast(code, src, dst, rounding, overflow) for code in drawn], oracle.storage(dst))
    xs, ys = [exact(code, src) for code in drawn], [exact(code, dst) for code in after.tolist()]
    judge = Judge(FORMATS[src], FORMATS[dst], Rounding(rounding), overflow == "wrap")
    assert judge.count(before, after) == counted(xs, ys, dst, rounding, overflow)


RUNS = [
    ("f16_to_i8_wrap", "f16", "i8", "trunc", "wrap"),
    ("f32_to_f16", "f32", "f16", "rint", "special"),
    ("f32_to_bf16_rows", "f32", "bf16", "round", "special"),
    ("a5_f32_to_e4m3fn_padded", "f32", "e4m3fn", "rint", "special"),
    ("a5_bf16_to_e2m1", "bf16", "e2m1", "rint", "saturate"),
]
"""Programs of one cast, and its modes."""


@pytest.mark.parametrize(("name", "src", "dst", "rounding", "overflow"), RUNS)
def test_a_run_counts_what_its_casts_did(name: str, src: str, dst: str, rounding: str, overflow: str) -> None:
    """Of arrays in and out: whatever loops, tiles and packed elements lie between."""
    plain = run(PROGRAMS / f"{name}.pto", inputs={"src": "zeros"})
    use = plain.loaded.arguments["src"]
    generator = np.random.default_rng(3)
    if src == "bf16":
        given = generator.choice([0.3, 1.5, 1.75, 6.0, 7.5, 1e30, 0.0], use.shape).astype(np.float32).view("u4") >> 16
        given = (given | generator.integers(0, 2, use.shape, dtype=np.uint32) << 15).astype(np.uint16)
    else:
        pool = generator.standard_normal(100) * 10.0 ** generator.integers(-3, 6, 100)
        pool[:4] = (np.inf, -np.inf, np.nan, 0)
        given = generator.choice(pool, use.shape).astype({"f16": np.float16, "f32": np.float32}[src])
    result = run(PROGRAMS / f"{name}.pto", inputs={"src": given})
    (output,) = result.outputs.values()
    before = given.view(f"u{given.dtype.itemsize}").reshape(-1)
    after = np.ascontiguousarray(output).view(f"u{output.dtype.itemsize}").reshape(-1)
    assert before.size == after.size
    pairs, times = np.unique(before.astype(np.uint64) << np.uint64(32) | after.astype(np.uint64), return_counts=True)
    wanted = Outcomes(before.size)
    for pair, count in zip(pairs.tolist(), times.tolist(), strict=True):
        outcome = expected(exact(pair >> 32, src), exact(pair % 2**32, dst), dst, rounding, overflow)
        if outcome is not Outcome.EXACT:
            setattr(wanted, outcome, getattr(wanted, outcome) + count)
    (found,) = result.casts.values()
    assert found == wanted


@pytest.mark.parametrize(("rows", "cols", "valid"), [(16, 5, (12, 4)), (16, 1, (9, 1)), (8, 3, (8, 3))])
def test_elements_of_column_major_tiles_pair_up(rows: int, cols: int, valid: tuple[int, int]) -> None:
    """Element (i, j) lies at i + j * rows; what lies behind the valid rows and columns does not count.

    Neither chip casts such tiles today: the counts do not rest on that.
    """
    generator = np.random.default_rng(11)
    buffer = np.zeros(4096, np.uint8)
    wide = (generator.standard_normal(rows * cols) * 10.0 ** generator.integers(-2, 7, rows * cols)).astype(np.float32)
    slim = oracle.cast_array(wide.view(np.uint32), "f32", "f16", "rint", "special").astype(np.uint16)
    buffer[64 : 64 + wide.nbytes] = wide.view(np.uint8)
    src, dst = (
        tile(name, rows, cols, at, valid=valid, layout="col_major") for name, at in (("f32", 64), ("f16", 2048))
    )
    cast = CastTiles(src, dst, Rounding.RINT, wraps=None)
    accesses = tuple(Access("ub", each.address, each.end, write=each is dst) for each in (src, dst))
    lowered = Lowered(0, Block(()), accesses, cast=cast)
    counts = CastCounts()
    pending = counts.before(lowered, None, buffer)
    assert pending is not None
    buffer[2048 : 2048 + slim.nbytes] = slim.view(np.uint8)
    counts.after(lowered, pending, buffer)
    places = [i + j * rows for j in range(valid[1]) for i in range(valid[0])]
    xs, ys = ([exact(int(codes[place]), name) for place in places]
              for codes, name in ((wide.view(np.uint32), "f32"), (slim, "f16")))  # fmt: skip
    outcomes = counts.found.pop((0, "f32", "f16"))
    assert outcomes == counted(xs, ys, "f16", "rint", "special")
    assert not counts.found
    assert outcomes.overflow and outcomes.rounded


def test_runs_without_values_count_nothing() -> None:
    assert not run(PROGRAMS / "f32_to_f16.pto", timing_only=True).casts


def codes(name: str, *shape: int) -> np.ndarray:
    row = oracle.fmt(name)
    limit = (1 << row.bits) - 1
    drawn = np.random.default_rng(3).integers(0, limit, shape, dtype=np.uint64, endpoint=True)
    return drawn.astype(oracle.storage(name))


# ------------------------------------------------- outputs of a run as files, and runs fed with arrays, files and words


# --------------------------------------------------------------------------------------------------------------- output


def test_output_replaces_an_older_file_whole(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "y.npy"
    write_array(path, np.zeros(1000, np.float32))
    with path.open("rb") as reader:  # whoever has the old file open keeps the old content
        write_array(path, np.ones(4, np.int8))
        assert np.load(reader).size == 1000
    assert np.load(path).tolist() == [1, 1, 1, 1]
    assert [found.name for found in path.parent.iterdir()] == ["y.npy"]
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


def test_failed_output_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "y.npy").mkdir()
    with pytest.raises(ReadError, match="cannot write"):
        write_array(tmp_path / "y.npy", np.zeros(4))
    assert [found.name for found in tmp_path.iterdir()] == ["y.npy"]
    (tmp_path / "file").write_text("")
    with pytest.raises(ReadError, match="cannot write"):
        write_array(tmp_path / "file" / "y.npy", np.zeros(4))


def test_interrupted_output_keeps_the_older_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "y.npy"
    write_array(path, np.arange(4))

    def broken(file: Any, *_: Any, **__: Any) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "save", broken)
    with pytest.raises(KeyboardInterrupt):
        write_array(path, np.arange(9))
    monkeypatch.undo()
    assert np.load(path).tolist() == [0, 1, 2, 3]
    assert [found.name for found in tmp_path.iterdir()] == ["y.npy"]


# -------------------------------------------------------------------------------------------------------- whole program


def cast_file(folder: Path) -> Path:
    """f32 -> bf16, 1 x 64."""
    path = folder / "cast.pto"
    path.write_text(kernel(("f32", "bf16"), ((1, 64), (1, 64)), arch="a3"))
    return path


def test_inputs_are_not_changed_by_a_run(tmp_path: Path) -> None:
    given = np.linspace(-5, 5, 64, dtype=np.float32).reshape(1, 64)
    kept = given.copy()
    given.flags.writeable = False
    run(cast_file(tmp_path), inputs={"x": given})
    assert np.array_equal(given, kept)


def test_run_takes_arrays_files_and_words(tmp_path: Path) -> None:
    program = cast_file(tmp_path)
    given = np.linspace(-5, 5, 64, dtype=np.float32)
    np.save(tmp_path / "x.npy", given)
    wanted = given.astype(ml_dtypes.bfloat16)
    for value in (given, str(tmp_path / "x.npy"), given.view(np.uint32)):
        (output,) = run(program, inputs={"x": value}).outputs.values()
        assert output.shape == (1, 64)
        assert np.array_equal(np.ascontiguousarray(output).view(np.uint16).reshape(-1), wanted.view(np.uint16))
    assert not np.ascontiguousarray(run(program, inputs={"x": "zeros"}).outputs["y"]).view(np.uint16).any()


def test_run_names_the_missing_input(tmp_path: Path) -> None:
    program = cast_file(tmp_path)
    with pytest.raises(ReadError, match="%x") as caught:
        run(program)
    assert caught.value.exit_code == 2
    assert run(program, timing_only=True).outputs == {}
    with pytest.raises(ReadError, match="'z'"):
        run(program, inputs={"z": "zeros"}, timing_only=True)
