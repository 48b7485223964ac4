"""Programs with products into accumulators: values by an independent model, stale reads, lint, binaries, cycles."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from kit.paths import PROGRAMS
from kit.tpc_machine import END, assembled, early, nops, ran, timed
from kit.tpc_text import dialect, target
from oracle_tpc import fused

from castsim import check, run
from castsim.isa.errors import IllegalError, TileError
from castsim.isa.tpc.parser import parse
from castsim.tools.tpc_assembly.scheduling import schedule
from castsim.tools.tpc_binary.assembler import assemble, disassemble
from castsim.tools.tpc_binary.tpc_encoding import encoding_of
from castsim.tools.tpc_lint.lint_checking import lint

WITH_PAIRS = ("gaudi", "gaudib", "greco", "gaudi2")
STEPS = 5


def dot(distance: int) -> str:
    """An f32 sum of products of bf16 over the rows of two tensors; accumulation steps stand so many bundles apart."""
    loads = "".join(f"set_indx I{1 + row}, b00010, {row}; nop; nop; nop\n" for row in range(STEPS))
    fetched = "".join(
        f"ld_tnsr V{8 + row}, 0x0, I{1 + row}; nop; nop; nop\nld_tnsr V{20 + row}, 0x1, I{1 + row}; nop; nop; nop\n"
        for row in range(STEPS)
    )
    steps = "".join(
        f"nop; nop; mac.bf16 acc_fp32 D4, V{8 + row}, V{20 + row}; nop\n{nops(distance - 1)}" for row in range(STEPS)
    )
    return (
        "// castsim: tensor 0 a in bf16 [128, 5]\n// castsim: tensor 1 b in bf16 [128, 5]\n"
        "// castsim: tensor 2 y out f32 [64, 2]\n"
        f"{loads}{nops(6)}{fetched}nop; nop; mov.f32 V4, 0x0; nop\nnop; nop; mov.f32 V5, 0x0; nop\n{nops(6)}{steps}"
        f"{nops(6)}nop; nop; nop; st_tnsr 0x2, I1, V4\nnop; nop; nop; st_tnsr 0x2, I2, V5\n{END}"
    )


def factors() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    a, b = (rng.normal(size=(STEPS, 128)).astype(np.float32).view(np.uint32) >> 16 for _ in range(2))
    return a.astype(np.uint16), b.astype(np.uint16)


def summed(a: np.ndarray, b: np.ndarray, rows: range) -> np.ndarray:
    """The accumulators after some rows: even elements in the first register, odd ones in the second."""
    total = np.zeros(128, np.int64)
    for row in rows:
        triples = np.stack([a[row], b[row], total], axis=1).tolist()
        total = np.array([fused(*each, "bf16", "f32", "RHNE") for each in triples])
    return total.reshape(64, 2).T.astype(np.uint32)


@pytest.mark.parametrize("generation", WITH_PAIRS)
def test_a_dot_product_at_the_distance_of_its_accumulator(generation: str) -> None:
    a, b = factors()
    found = ran(dot(4), generation, {"a": a, "b": b})
    assert early(found) == []
    (y,) = found.outputs.values()
    assert np.array_equal(y.reshape(2, 64).view(np.uint32), summed(a, b, range(STEPS)))


@pytest.mark.parametrize("generation", WITH_PAIRS)
def test_a_step_too_early_adds_to_an_old_accumulator(generation: str) -> None:
    """At distance 3 a step sees the sum of two steps before: those of even and of odd rows go past each other."""
    a, b = factors()
    found = ran(dot(3), generation, {"a": a, "b": b})
    steps = [reader - writer for writer, reader in early(found)]
    assert steps
    assert set(steps) == {3}
    (y,) = found.outputs.values()
    old = summed(a[::2], b[::2], range((STEPS + 1) // 2))
    assert np.array_equal(y.reshape(2, 64).view(np.uint32), old)
    rules = [finding.rule for finding in lint(assembled(dot(3), generation).program, target(generation))]
    assert rules.count("stale read") == len(set(early(found))) * 2
    close = [finding.rule for finding in lint(assembled(dot(1), generation).program, target(generation))]
    assert close.count("product write") >= STEPS - 1
    assert "stale read" not in [f.rule for f in lint(assembled(dot(4), generation).program, target(generation))]


@pytest.mark.parametrize("generation", WITH_PAIRS)
def test_cycles_and_binaries_of_the_same_program(generation: str) -> None:
    text, chip = dot(4), target(generation)
    a, b = factors()
    bundles = len(parse(text, dialect(generation)).bundles)
    values = ran(text, generation, {"a": a, "b": b})
    assert timed(text, chip).total >= bundles - 3
    code = assemble(parse(text, dialect(generation)), encoding_of(chip)).code
    listing = disassemble(code, encoding_of(chip))
    assert all(line.known and line.remark is None for line in listing.lines)
    declarations = "".join(line + "\n" for line in text.splitlines() if line.startswith("//"))
    again = ran(declarations + listing.text(), generation, {"a": a, "b": b})
    for one, other in zip(values.outputs.values(), again.outputs.values(), strict=True):
        assert np.array_equal(one, other)


def test_divisions_have_a_time_and_events_change_nothing() -> None:
    assert timed(f"nop; udiv.u32 Z2, S4, S5; nop; nop\n{END}", target("gaudi2")).total > 4
    text = f"event vpu 0xff; nop; nop; nop\nnop; nop; nop; event spu S1\n{END}"
    assert ran(text, "gaudi2", S1=3).outputs == {}


# -------------------------------------------------------------------------- a matrix times a vector, as written by hand


PROGRAM = PROGRAMS / "tpc" / "gemv_table_gaudi2.tpc"
VALUES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
"""The numbers of FP4 (e2m1)."""
TABLE = np.stack([VALUES[np.arange(256) & 15], VALUES[np.arange(256) >> 4]], axis=1).astype(ml_dtypes.bfloat16)
RNG = np.random.default_rng(12)
CODES = RNG.integers(0, 256, (40, 128)).astype(np.uint16)
X = RNG.standard_normal(80).astype(ml_dtypes.bfloat16)


def model() -> np.ndarray:
    """Products and sums in the order of the loop, each sum rounded once to f32; products of bf16 are exact in f64."""
    total = np.zeros(128, np.float32)
    for k, row in enumerate(CODES):
        for half in (0, 1):
            product = TABLE[row, half].astype(np.float64) * np.float64(X[2 * k + half])
            total = (total + product).astype(np.float32)
    return total


def tensors(table: np.ndarray = TABLE) -> dict[str, np.ndarray]:
    return {"codes": CODES, "x": X, "table": table.reshape(-1)}


def test_it_is_found_right() -> None:
    assert [each for each in check(PROGRAM) if each.severity == "error"] == []


def test_every_output_is_that_of_the_model() -> None:
    found = run(PROGRAM, inputs=tensors(), stale_reads="stop").outputs["y"]
    np.testing.assert_array_equal(found, np.stack([model()[0::2], model()[1::2]]))


def test_the_number_of_trips_is_the_size_in_the_descriptor(tmp_path: Path) -> None:
    """Half the rows are half the trips, and the rest of the program stays as it is."""
    text = PROGRAM.read_text(encoding="utf-8").replace("[128, 40]", "[128, 20]")
    path = tmp_path / "half.tpc"
    path.write_text(text, encoding="utf-8")
    whole, half = (run(each, timing_only=True).cycles for each in (PROGRAM, path))
    assert whole - half == 20 * (whole - half) // 20 > 0
    small = dict(tensors(), codes=CODES[:20])
    found = run(path, inputs=small, stale_reads="stop").outputs["y"]
    assert not np.array_equal(found, run(PROGRAM, inputs=tensors()).outputs["y"])


def test_a_table_that_lies_in_no_tensor_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "short.tpc"
    path.write_text(PROGRAM.read_text(encoding="utf-8").replace("bf16 [512]", "bf16 [500]"), encoding="utf-8")
    with pytest.raises(TileError, match="1024 bytes there are in no tensor"):
        run(path, inputs={**tensors(), "table": TABLE.reshape(-1)[:500]})


LOOKUPS = """// castsim: target gaudi2
// castsim: tensor 0 n in u32 [64]
// castsim: tensor 1 table in f32 [960]
// castsim: tensor 2 y out f32 [64, 3]
ld_l mmio %s.low, 0x50
ld_l mmio %s.high, 0x54
st_l mmio 0xcd8, %s.low
st_l mmio 0xcdc, %s.high
mov.i32 %s.number, 0x4
mov b11111 %i.at, 0x0
ld_tnsr %v.n, 0x0, %i.at
lookup_1c BV32 lut_ptr %v.c0, %v.n, %s.number
lookup_2c BV32 lut_ptr %d.rest, %v.n, %s.number
st_tnsr 0x2, %i.at, %v.c0
add.i32 b00010 %i.at, 0x1, %i.at
st_tnsr 0x2, %i.at, %v.rest.0
add.i32 b00010 %i.at, 0x1, %i.at
st_tnsr 0x2, %i.at, %v.rest.1
"""


def test_entries_of_three_values_stand_ten_to_a_line(tmp_path: Path) -> None:
    """Table 1 of 256 entries begins at byte 256: 26 lines of 128 bytes, whose last 8 bytes are unused."""
    path = tmp_path / "lookups.tpc"
    path.write_text(schedule(LOOKUPS, "lookups.tpc", target("gaudi2")).text, encoding="utf-8")
    entries = np.arange(256 * 3, dtype=np.float32).reshape(256, 3) + 0.5
    lines = np.zeros((26, 32), np.float32)
    padded = np.zeros((260, 3), np.float32)
    padded[:256] = entries
    lines[:, :30] = padded.reshape(26, 30)
    table = np.concatenate([np.zeros(64, np.float32), lines.reshape(-1), np.zeros(64, np.float32)])
    n = np.random.default_rng(3).integers(0, 256, 64).astype(np.uint32)
    found = run(path, inputs={"n": n, "table": table}, stale_reads="stop").outputs["y"]
    np.testing.assert_array_equal(found, entries[n].T)
    bad = path.read_text(encoding="utf-8").replace("lookup_1c BV32", "lookup_1c BV16")
    path.write_text(bad, encoding="utf-8")
    with pytest.raises(IllegalError, match="no source documents how entries of lookup_1c BV16 are laid out"):
        run(path, inputs={"n": n, "table": table})
