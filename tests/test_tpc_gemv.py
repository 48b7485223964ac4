"""A matrix times a vector as people write it by hand: a tensor as look-up table, a bound that the body overwrites."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from castsim import check, run
from castsim.isa.errors import IllegalError, TileError

PROGRAM = Path(__file__).parent.parent / "programs" / "tpc" / "gemv_table_gaudi2.tpc"
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


def inputs(table: np.ndarray = TABLE) -> dict[str, np.ndarray]:
    return {"codes": CODES, "x": X, "table": table.reshape(-1)}


def test_it_is_found_right() -> None:
    assert [each for each in check(PROGRAM) if each.severity == "error"] == []


def test_every_output_is_that_of_the_model() -> None:
    found = run(PROGRAM, inputs=inputs(), stale_reads="stop").outputs["y"]
    np.testing.assert_array_equal(found, np.stack([model()[0::2], model()[1::2]]))


def test_the_number_of_trips_is_the_size_in_the_descriptor(tmp_path: Path) -> None:
    """Half the rows are half the trips, and the rest of the program stays as it is."""
    text = PROGRAM.read_text(encoding="utf-8").replace("[128, 40]", "[128, 20]")
    path = tmp_path / "half.tpc"
    path.write_text(text, encoding="utf-8")
    whole, half = (run(each, timing_only=True).cycles for each in (PROGRAM, path))
    assert whole - half == 20 * (whole - half) // 20 > 0
    small = dict(inputs(), codes=CODES[:20])
    found = run(path, inputs=small, stale_reads="stop").outputs["y"]
    assert not np.array_equal(found, run(PROGRAM, inputs=inputs()).outputs["y"])


def test_a_table_that_lies_in_no_tensor_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "short.tpc"
    path.write_text(PROGRAM.read_text(encoding="utf-8").replace("bf16 [512]", "bf16 [500]"), encoding="utf-8")
    with pytest.raises(TileError, match="1024 bytes there lie in no tensor"):
        run(path, inputs={**inputs(), "table": TABLE.reshape(-1)[:500]})


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
    from castsim.targets import load_target  # noqa: PLC0415 - one test alone schedules
    from castsim.tpc_compiler.scheduling import schedule  # noqa: PLC0415 - as above

    made = schedule(LOOKUPS, "lookups.tpc", load_target("gaudi2"))
    from castsim.isa.tpc.parser import print_program  # noqa: PLC0415 - as above

    path.write_text(print_program(made.program), encoding="utf-8")
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
    with pytest.raises(IllegalError, match="no source states how entries of lookup_1c BV16 lie"):
        run(path, inputs={"n": n, "table": table})
