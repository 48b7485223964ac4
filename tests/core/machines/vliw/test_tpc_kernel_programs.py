"""Kernels: products into accumulators, tables, and casts on boundary values, by hand and scheduled, by models."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from kit import tpc_programs_oracle, tpc_quantise_oracle
from kit.paths import PROGRAMS, ROOT
from kit.schedule_programs import target_of
from kit.tpc_machine import END, early, nops, ran
from kit.tpc_text import target
from oracle_tpc import fused

from castsim import check, run
from castsim.isa.errors import IllegalError, TileError
from castsim.isa.tpc.parser import parse
from castsim.machines.vliw.assembled import assemble, execute
from castsim.machines.vliw.findings import StaleReadKind
from castsim.numerics.codec import codes_from_array
from castsim.tools.tpc_assembly.scheduling import executed_bundles, schedule
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


KINDS = tuple(tpc_quantise_oracle.KERNELS)
NAMES = sorted(
    each
    for each in tpc_programs_oracle.INPUTS
    if each.removeprefix("tpc_").rpartition("_")[0] in tpc_quantise_oracle.KERNELS
)
SPECIAL = (
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000, 0x3F800000,
    0xBF800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F800001, 0x7FFFFFFF,
    0xC2AEAC08, 0xC2AEAC07, 0xC2AEAC09, 0x42B171AA, 0x42B171A9, 0x42B171AB, 0x3EB17218, 0xBEB17218, 0x3F317218,
    0x4F000000, 0xCF000000, 0x42FF0000, 0xC3000000, 0x43000000, 0x3F000000, 0x3FC00000, 0x33000000, 0x34000000,
)  # fmt: skip
"""f32: zeros, subnormals, limits of normals, infinities, NaN, limits of exp and their neighbours, halves of ln 2."""


def near_steps() -> np.ndarray:
    """f32 arguments that the quantisation brings to halves between integers, and their neighbours."""
    inverse, zero = (np.array(code, "u4").view("f4") for code in (0x3FA28F5C, 0xC0400000))
    halves = np.arange(-140, 140) + 0.5
    codes = ((halves - zero) / inverse).astype("f4").view("u4").astype(np.int64)
    return np.concatenate([codes - 1, codes, codes + 1]).astype("u4")


def boundary(kind: str) -> np.ndarray:
    """Codes of an input: boundary values, then random ones of all exponents."""
    fmt, shape, *_ = tpc_quantise_oracle.KERNELS[kind]
    rng, size = np.random.default_rng(18), shape[0] * shape[1]
    if fmt == "i8":
        return np.resize(np.arange(256, dtype="u1"), shape)
    some = np.concatenate([np.array(SPECIAL, "u4"), near_steps() if kind == "f32_i8_quantise" else []]).astype("u4")
    moderate = (rng.uniform(-90, 90, size // 4).astype("f4")).view("u4")
    found = np.concatenate([some, moderate, rng.integers(0, 1 << 32, size, "u4")])[:size]
    if fmt == "bf16":
        f8_steps = np.arange(0x3C00, 0x4400, 11)
        found = np.concatenate([np.array(SPECIAL, "u4") >> 16, f8_steps, f8_steps | 0x8000, found >> 16])[:size]
        return found.astype("u2").reshape(shape)
    return found.reshape(shape)


def values(codes: np.ndarray, fmt: str) -> np.ndarray:
    return codes.view({"f32": "f4", "i8": "i1", "bf16": "u2"}[fmt])


@pytest.mark.smoke
@pytest.mark.parametrize("name", NAMES)
def test_boundary_values(name: str) -> None:
    kind, _, generation = name.removeprefix("tpc_").rpartition("_")
    codes = boundary(kind)
    found = run(PROGRAMS / f"{name}.tpc", inputs={"x": values(codes, tpc_quantise_oracle.KERNELS[kind][0])})
    got = codes_from_array(found.outputs["y"], found.loaded.arguments["y"].format)
    np.testing.assert_array_equal(got, tpc_quantise_oracle.outputs(kind, generation, codes))


@pytest.mark.parametrize("kind", [*KINDS, "f32_i16_quantise"])
@pytest.mark.parametrize("longer", [False, True])
def test_scheduled_lines_against_the_bundles_by_hand(kind: str, longer: bool) -> None:
    """Values are the oracle's; no more bundles run than by hand; the text is longer by an eighth, or pipelined."""
    chip = target_of("gaudi2")
    source = PROGRAMS / "sequential" / f"{kind}_gaudi2.tpc"
    by_hand = parse((PROGRAMS / f"tpc_{kind}_gaudi2.tpc").read_text(), chip.dialect)
    found = schedule(source.read_text(), source.name, chip, longer=longer)
    assert lint(found.program, chip) == ()
    assembled = assemble(found.text, source.name, chip, {})
    given = tpc_programs_oracle.sources(f"tpc_{kind}_gaudi2", 7)
    if kind in KINDS:
        codes = boundary(kind)
        given = {"x": values(codes, tpc_quantise_oracle.KERNELS[kind][0])}
        wanted = tpc_quantise_oracle.outputs(kind, "gaudi2", codes)
    else:
        wanted = tpc_programs_oracle.outputs(f"tpc_{kind}_gaudi2", 7)["y"]
    ran = execute(assembled, given, values=True, checked=True, max_bundles=10**5)
    assert {each.kind for each in ran.stale_reads} <= {StaleReadKind.SAME_BUNDLE}
    np.testing.assert_array_equal(codes_from_array(ran.outputs["y"], assembled.arguments["y"].format), wanted)
    hand = executed_bundles(by_hand, "hand", chip)
    assert found.length.executed is not None and hand is not None
    assert found.length.executed <= hand
    assert longer or found.method == "pipelined" or found.length.static <= len(by_hand.bundles) * 9 // 8


def test_the_page_names_the_lengths() -> None:
    """The table beside the reference page, row by row."""
    chip = target_of("gaudi2")
    table = (ROOT / "docs" / "reference" / "tpc-schedules.csv").read_text().splitlines()
    for kind in (*KINDS, "f32_i16_quantise"):
        source = (PROGRAMS / "sequential" / f"{kind}_gaudi2.tpc").read_text()
        by_hand = parse((PROGRAMS / f"tpc_{kind}_gaudi2.tpc").read_text(), chip.dialect)
        usual, longer = (schedule(source, kind, chip, longer=each) for each in (False, True))
        cells = [
            (len(by_hand.bundles), executed_bundles(by_hand, kind, chip)),
            *((each.static, each.executed) for each in (usual.padding, usual.length, longer.length)),
        ]
        row = ",".join([kind, *(f"{static} / {executed}" for static, executed in cells)])
        assert row in table, row


def test_the_oracle_agrees_with_other_libraries() -> None:
    """NumPy and ml_dtypes on ordinary values, each step in f32; exp within the accuracy that was measured for it."""
    rng = np.random.default_rng(5)
    x = rng.uniform(-85, 85, 3000).astype("f4")
    inverse, zero, scale, offset = (
        np.array(code, "u4").view("f4") for code in (0x3FA28F5C, 0xC0400000, 0x3D4CCCCD, 0xBFA66666)
    )
    fused = (x.astype("f8") * inverse + zero).astype("f4")
    assert np.array_equal(
        tpc_quantise_oracle.quantised(x.view("u4")), np.clip(np.rint(fused), -128, 127).astype("i1").view("u1")
    )
    codes = np.arange(256, dtype="u1")
    exact = codes.view("i1").astype("f8") * scale + offset
    assert np.array_equal(tpc_quantise_oracle.dequantised(codes), exact.astype("f4").view("u4"))
    assert np.array_equal(tpc_quantise_oracle.halved(x.view("u4")), x.astype(ml_dtypes.bfloat16).view("u2"))
    half = (x / 100).astype(ml_dtypes.bfloat16)
    small = (half.astype("f4") * np.float32(3)).astype(ml_dtypes.float8_e4m3).view("u1")
    assert np.array_equal(tpc_quantise_oracle.scaled_f8(half.view("u2")), small)
    exponential = tpc_quantise_oracle.exponential(x.view("u4")).view("f4")
    true = np.exp(x.astype("f8"))
    assert np.max(np.abs(exponential - true) / np.spacing(true.astype("f4"))) < 1.3


def test_a_table_that_lies_in_no_tensor_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "short.tpc"
    path.write_text(PROGRAM.read_text(encoding="utf-8").replace("bf16 [512]", "bf16 [500]"), encoding="utf-8")
    with pytest.raises(TileError, match="1024 bytes there are in no tensor"):
        run(path, inputs={**tensors(), "table": TABLE.reshape(-1)[:500]})
