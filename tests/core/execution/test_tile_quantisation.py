"""tquant, tdequant and tpack on both chips: values, bytes left behind, refusals, published cycles.

Expected values: docs/reference/pto.md section 7.12, whose examples were worked in exact arithmetic, and NumPy's f32.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from core.numerics.test_block_quantisation import blocks as quantised_blocks
from kit.a5_benchmark import benchmark, tiles_in_a_row
from kit.execution_programs import kernel_file
from kit.pto_text import module, moved
from kit.work_programs import Spot, computed, noise, program, target, walked

import castsim
from castsim import quantise
from castsim.__main__ import main
from castsim.execution.tree import ResolvedTileOp
from castsim.isa.errors import CastsimError, IllegalError, ReadError, TileError
from castsim.machines.mechanisms import lowerer_of
from castsim.tools.estimate.cast_estimates import HERE, timed_alone
from castsim.tools.estimate.operation_estimates import estimate_tile_operation

CHIPS = ("a2a3", "a5")


def quantisation(
    chip: str, x: np.ndarray, factor: Any, offset: Any = None, cols: int | None = None, dst: str = "i8", **places: int
) -> tuple[np.ndarray, np.ndarray, dict[str, Spot]]:
    """The buffer before and after a tquant, and its tiles by name."""
    rows, valid = x.shape
    cols = cols or -(-valid // 32) * 32
    even = -(-rows // 8) * 8
    spots = {
        "x": Spot("x", "f32", rows, cols, 0, (rows, valid)),
        "f": Spot("f", "f32", even, 1, 0x18000, (rows, 1), column=True),
        "o": Spot("o", "f32", even, 1, 0x19000, (rows, 1), column=True),
        "d": Spot("d", dst, rows, max(32, cols), places.get("d", 0x1A000), (rows, valid)),
        "t": Spot("t", "f32", rows, cols, 0x22000, (rows, valid)),
    }
    chosen = [spots[name] for name in ("x", "f", "o")[: 2 + (offset is not None)]]
    outs = [spots["d"], *([spots["t"]] if chip == "a2a3" else [])]
    kind = "INT8_SYM" if offset is None else "INT8_ASYM"
    text = (
        f"pto.tquant ins({', '.join('%' + one.name for one in chosen)} : {', '.join(one.type for one in chosen)}) "
        f"outs({', '.join('%' + one.name for one in outs)} : {', '.join(one.type for one in outs)}) "
        f"{{quant_type = #pto<quant_type {kind}>}}"
    )
    before = noise(target(chip), 3)
    spots["x"].put(before, x.astype(np.float32))
    for name, values in (("f", factor), ("o", offset)):
        if values is not None:
            spots[name].put(before, np.broadcast_to(np.float32(values), (rows, 1)).reshape(rows, 1))
    return before, computed(program(text, [*chosen, *outs]), target(chip), before), spots


SYMMETRIC = [
    (2, 127), (-2, -127), (0.5, 32), (-1.004, -64), (2.1, 127), (3000, 127), (1e9, 127), (-(2**-7), 0),
    (np.nan, 0), (np.inf, 127), (-np.inf, -128), (-0.0, 0),
]  # fmt: skip
ASYMMETRIC = [(-2, 0), (0, 128), (0.01, 129), (0.04, 131), (2, 255), (-2.01, 0), (np.nan, 0), (np.inf, 255), (-9e9, 0)]


@pytest.mark.parametrize("chip", CHIPS)
def test_worked_examples(chip: str) -> None:
    x, wanted = (np.array([column], np.float32) for column in zip(*SYMMETRIC, strict=True))
    _, after, spots = quantisation(chip, x, 63.5)
    assert spots["d"].get(after).tolist() == wanted.astype(int).tolist()
    x, wanted = (np.array([column], np.float32) for column in zip(*ASYMMETRIC, strict=True))
    _, after, spots = quantisation(chip, x, 63.75, 128, dst="ui8")
    assert spots["d"].get(after).tolist() == wanted.astype(int).tolist()
    _, after, spots = quantisation(chip, np.float32([[126.53125]]), 1)  # by way of f16 alone it would be 126
    assert spots["d"].get(after).tolist() == [[127]]


def exact(x: float, factor: float, offset: float | None) -> int:
    """Product and sum rounded to f32, then to nearest even, then clamped: one rational number after the other."""
    product = Fraction(float(np.float32(Fraction(x) * Fraction(factor))))
    if offset is not None:
        product = Fraction(float(np.float32(product + Fraction(offset))))
    low, high = (-128, 127) if offset is None else (0, 255)
    return max(low, min(high, round(product)))


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("shape", [(3, 60), (8, 64), (5, 129), (17, 40)])
@pytest.mark.parametrize("asymmetric", [False, True])
def test_random_rows(chip: str, shape: tuple[int, int], asymmetric: bool) -> None:
    generator = np.random.default_rng(sum(shape))
    x = (generator.uniform(-2, 2, shape) * 2.0 ** generator.integers(-8, 9, shape)).astype(np.float32)
    factor = generator.uniform(30, 90, (shape[0], 1)).astype(np.float32)
    offset = generator.uniform(0, 255, (shape[0], 1)).astype(np.float32) if asymmetric else None
    before, after, spots = quantisation(chip, x, factor, offset, dst="ui8" if asymmetric else "i8")
    wanted = [
        [exact(float(one), float(factor[row, 0]), None if offset is None else float(offset[row, 0])) for one in line]
        for row, line in enumerate(x)
    ]
    assert spots["d"].get(after).tolist() == wanted
    if chip == "a5":
        spots["d"].put(before, spots["d"].get(after))
        assert np.array_equal(before, after)


def test_what_the_a2a3_leaves_in_source_and_scratch() -> None:
    x = np.array([[2.0, -1.004, 3000.0, 1e9], [0.5, 1.0, -0.25, 7.0]], np.float32)
    _, after, spots = quantisation("a2a3", x, 63.5)
    whole = np.array([[127, -64, 190500, 2**31 - 1], [32, 64, -16, 444]])  # rint to even, clamped to 32 bits
    assert Spot("t", "i32", 2, 32, spots["t"].address, (2, 4)).get(after).tolist() == whole.tolist()
    halves = Spot("h", "f16", 2, 32, spots["x"].address, (2, 4))
    assert halves.get(after).tolist() == [[127, -64, np.inf, np.inf], [32, 64, -16, 444]]
    scratch = after[spots["t"].address :][:256].view("<f4")
    assert (scratch[4:8] == 63.5).all()  # what the spread factor left behind the integers of the first row
    _, after, spots = quantisation("a5", x, 63.5)
    assert spots["x"].get(after).tolist() == x.tolist()


def test_in_place_on_the_a5() -> None:
    x = np.random.default_rng(1).uniform(-2, 2, (4, 64)).astype(np.float32)
    _, after, spots = quantisation("a5", x, 63.5, d=0)
    assert spots["d"].get(after).tolist() == np.rint(x * np.float32(63.5)).astype(int).tolist()
    with pytest.raises(TileError, match="share bytes"):
        quantisation("a2a3", x, 63.5, d=0)


def dequantisation(
    chip: str, q: np.ndarray, scale: Any, offset: Any, *options: tuple[str, int | str], column: bool = True
) -> tuple[np.ndarray, np.ndarray, Spot]:
    rows, valid = q.shape
    cols = -(-valid // 32) * 32
    source = Spot("q", f"i{q.itemsize * 8}", rows, cols, 0, (rows, valid))
    shape = (-(-rows // 8) * 8, 1) if column else (rows, 8)
    parameters = [
        Spot(name, "f32", *shape, address, (rows, shape[1]), column=column)
        for name, address in (("s", 0x10000), ("o", 0x14000))
    ]
    d = Spot("d", "f32", rows, cols, 0x18000, (rows, valid))
    before = noise(target(chip), 4)
    source.put(before, q)
    for spot, values in zip(parameters, (scale, offset), strict=True):
        spot.put(before, np.broadcast_to(np.float32(values).reshape(-1, 1), (rows, 1)))
    spots = [source, *parameters]
    text = f"pto.tdequant ins(%q, %s, %o : {', '.join(one.type for one in spots)}) outs(%d : {d.type})"
    return before, computed(program(text, [*spots, d]), target(chip, *options), before), d


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(
    ("q", "offset", "scale", "code"),
    [
        (np.int8(-128), 3.5, 0.1, 0xC1526667),
        (np.int8(127), 0.3, 0.7, 0x42B16147),
        (np.int16(1000), 0.1, 0.3, 0x4395FC2A),
        (np.int16(-32768), 0.25, 0.001, 0xC20312B1),
    ],
)
def test_dequantised_examples(chip: str, q: Any, offset: float, scale: float, code: int) -> None:
    _, after, d = dequantisation(chip, np.array([[q]]), scale, offset)
    assert d.get(after).view(np.uint32).tolist() == [[code]]


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("dtype", [np.int8, np.int16])
@pytest.mark.parametrize("column", [True, False])
def test_dequantised_rows(chip: str, dtype: Any, column: bool) -> None:
    generator = np.random.default_rng(2)
    q = generator.integers(-100, 100, (9, 64)).astype(dtype)
    scale, offset = generator.uniform(-100, 100, (2, 9)).astype(np.float32)
    before, after, d = dequantisation(chip, q, scale, offset, column=column)
    wanted = (q.astype(np.float32) - offset[:, None]) * scale[:, None]
    assert d.get(after).tobytes() == wanted.tobytes()
    d.put(before, wanted)
    assert np.array_equal(before, after)


def test_whole_registers_at_the_end_of_rows() -> None:
    q = np.random.default_rng(2).integers(-100, 100, (3, 80)).astype(np.int8)
    before, after, d = dequantisation("a5", q, 0.5, 1)
    wanted = (q.astype(np.float32) - 1) * np.float32(0.5)
    assert d.get(after).tobytes() == wanted.tobytes()
    assert not np.array_equal(before[d.end :][:128], after[d.end :][:128])  # 128 columns of 96 in the last row
    before, after, d = dequantisation("a5", q, 0.5, 1, ("tdequant_tail", "template"))
    d.put(before, wanted)
    assert np.array_equal(before, after)


@pytest.mark.parametrize(
    ("source", "narrow"),
    [("f32", "f16"), ("i32", "i16"), ("f32", "i8"), ("ui32", "ui8"), ("i16", "i8"), ("f16", "ui8"), ("bf16", "i8")],
)
def test_packing_keeps_low_bytes(source: str, narrow: str) -> None:
    s, d = Spot("s", source, 4, 64, 0, (4, 50)), Spot("d", narrow, 4, 64, 0x8000, (4, 50))
    text = f"pto.tpack ins(%s : {s.type}) outs(%d : {d.type})"
    before = noise(target("a5"), 5)
    after = computed(program(text, [s, d]), target("a5"), before)
    lanes = s.get(before).view(np.uint8).reshape(4, 50, s.size)[..., : d.size]
    assert d.get(after).tobytes() == np.ascontiguousarray(lanes).tobytes()
    d.put(before, d.get(after))
    assert np.array_equal(before, after)


X, F = Spot("x", "f32", 4, 64, 0), Spot("f", "f32", 8, 1, 0x4000, (4, 1), column=True)
D, T = Spot("d", "i8", 4, 64, 0x5000), Spot("t", "f32", 4, 64, 0x6000)
SYM, ASYM = ("{quant_type = #pto<quant_type %s>}" % kind for kind in ("INT8_SYM", "INT8_ASYM"))  # noqa: UP031


@pytest.mark.parametrize(
    ("text", "chip", "error", "told"),
    [
        (f"pto.tquant ins(%x, %f : {X.type}, {F.type}) outs(%d : {D.type})", "a5", ReadError, "needs the attribute"),
        (f"pto.tquant ins(%x, %f : {X.type}, {F.type}) outs(%d : {D.type}) {ASYM}", "a5", ReadError, "needs offset"),
        (
            f"pto.tquant ins(%x, %f, %f : {X.type}, {F.type}, {F.type}) outs(%d : {D.type}) {SYM}",
            "a5", ReadError, "has no offset",
        ),
        (
            f"pto.tquant ins(%x, %f : {X.type}, {F.type}) outs(%d : {D.type}) {{quant_type = #pto<quant_type MXFP8>}}",
            "a5", ReadError, "unknown quant_type 'MXFP8'",
        ),
        (f"pto.tquant ins(%x, %f : {X.type}, {F.type}) outs(%d : {D.type}) {SYM}", "a2a3", TileError, "needs a tmp"),
        (f"pto.tquant ins(%x, %f : {X.type}, {F.type}) outs(%t : {T.type}) {SYM}", "a5", ReadError, "of 8 bits"),
        (f"pto.tquant ins(%x, %x : {X.type}, {X.type}) outs(%d, %t : {D.type}, {T.type}) {SYM}", "a2a3", TileError,
         "a column"),
        (f"pto.tpack ins(%x : {X.type}) outs(%t : {T.type})", "a5", ReadError, "packs 4-byte elements"),
        (f"pto.tpack ins(%x : {X.type}) outs(%d : {D.type})", "a2a3", IllegalError, "no operation pto.tpack"),
        (f"pto.tdequant ins(%x, %f, %f : {X.type}, {F.type}, {F.type}) outs(%t : {T.type})", "a5", IllegalError,
         "does not take f32"),
    ],
)  # fmt: skip
def test_refusals(text: str, chip: str, error: type[CastsimError], told: str) -> None:
    with pytest.raises(error, match=told) as caught:
        walked(program(text, [X, F, D, T]), target(chip))
    assert caught.value.span is not None


def test_scratch_that_spread_factors_overrun() -> None:
    """Nine rows of eight columns: 288 bytes of scratch, of which spreading to whole repeats writes 512."""
    before, after, spots = quantisation("a2a3", np.ones((9, 8), np.float32), 7, cols=8, dst="i8")
    behind = slice(spots["t"].end, spots["t"].address + 512)
    assert not np.array_equal(before[behind], after[behind])
    assert np.array_equal(before[behind.stop :][:64], after[behind.stop :][:64])


UNFITTED = ("case_fp32_fp16_128x128", "case_s32_s16_128x128")
"""Rows that no fact of `timing.paced` was fitted to; the others decided three."""


def cycles(operation: str, case: str) -> int:
    """Cycles of a published case: tiles one behind the other, valid regions of run time."""
    row = next(row for row in benchmark() if (row.operation, row.case) == (operation, case))
    rows, cols = row.tile
    narrow = {"fp8": "i8", "f16": "f16", "i16": "i16", "u8": "u8", "i8": "i8"}[row.dst]
    shapes: list[Any] = [(row.src, (rows, cols), {}), (narrow, (rows, cols), {})]
    if operation == "tquant":
        shapes[1:1] = [("f32", (rows, 1), {"block_layout": "col_major"})] * (1 + ("asym" in case))
    *sources, dst = tiles_in_a_row([(element, shape, shape, layout) for element, shape, layout in shapes])
    chip = target("a5")
    return timed_alone(
        chip, lowerer_of(chip).work(ResolvedTileOp(operation, dst, tuple(sources), HERE)), operation
    ).cycles


PUBLISHED = [row for row in benchmark() if row.operation in ("tpack", "tquant") and row.dst != "mxfp8"]


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: row.case)
def test_published_cycles(row: Any) -> None:
    assert cycles(row.operation, row.case) == pytest.approx(row.cycles, rel=0.01 if row.case in UNFITTED else 0.03)


WIDE, NARROW, COLUMN = (
    f"!pto.tile_buf<vec, {fields}>" for fields in ("8x64xf32", "8x64xi8", "8x1xf32, blayout=col_major")
)


def kernel(to: str, body: str) -> str:
    """Load %a and the column %p, do what the body says, store %b of elements `to`."""
    tiles = {"a": WIDE, "p": COLUMN, "t": WIDE, "q": NARROW, "b": f"!pto.tile_buf<vec, 8x64x{to}>"}
    lines = [f"%{name} = pto.alloc_tile : {kind}" for name, kind in tiles.items()]
    lines += moved("x", ("%a", WIDE), "f32", 8, 64) + moved("f", ("%p", COLUMN), "f32", 8, 1, dn=True)
    lines += [body, *moved("y", ("%b", tiles["b"]), to, 8, 64, load=False)]
    return module("", ["%x: !pto.ptr<f32>", "%f: !pto.ptr<f32>", f"%y: !pto.ptr<{to}>"], lines)


THERE = f"pto.tquant ins(%a, %p : {WIDE}, {COLUMN}) outs(%q : {NARROW}) {SYM}"
BACK = f"pto.tdequant ins(%q, %p, %p : {NARROW}, {COLUMN}, {COLUMN}) outs(%b : {WIDE})"


@pytest.mark.parametrize("chip", CHIPS)
def test_whole_programs(chip: str, tmp_path: Path) -> None:
    """There and back, with the flags that the tool inserts; both engines agree, nothing races."""
    there = THERE.replace(f"%q : {NARROW}", f"%q, %t : {NARROW}, {WIDE}") if chip == "a2a3" else THERE
    path = kernel_file(tmp_path, kernel(to="f32", body=f"{there}\n{BACK}"))
    x = np.random.default_rng(0).uniform(-2, 2, (8, 64)).astype(np.float32)
    factors = np.random.default_rng(1).uniform(20, 60, (8, 1)).astype(np.float32)
    made = castsim.run(path, chip, inputs={"x": x, "f": factors})
    assert not made.races
    assert made.cycles == castsim.run(path, chip, inputs={"x": x, "f": factors}, engine="event").cycles
    q = np.clip(np.rint(x * factors), -128, 127).astype(np.float32)
    assert made.outputs["y"].tobytes() == ((q - factors) * factors).tobytes()


def test_packing_in_a_program(tmp_path: Path) -> None:
    path = kernel_file(tmp_path, kernel(to="i8", body=f"pto.tpack ins(%a : {WIDE}) outs(%b : {NARROW})"))
    x = np.arange(512, dtype=np.uint32).reshape(8, 64).view(np.float32)
    inputs = {"x": x, "f": np.zeros((8, 1), np.float32)}
    made = castsim.run(path, "a5", inputs=inputs)
    assert made.outputs["y"].view(np.uint8).tolist() == (np.arange(512) % 256).reshape(8, 64).tolist()
    assert made.cycles == castsim.run(path, "a5", inputs=inputs, engine="event").cycles


def blocks(x: np.ndarray, rule: str) -> dict[str, Any]:
    """What a tquant.mx makes of rows, all groups in one line: codes, exponents, maxima and reciprocals as codes."""
    found = quantised_blocks(x, "MXFP8", rule, ("tquant_mx_forms", "library"))
    scaling = found["after"][0x1C000:][: x.size // 16 * x.itemsize].view(f"<u{x.itemsize}")
    return found | {"exponents": found["exponents"][0], "maxima": found["maxima"][0], "scaling": scaling}


def group(*values: float, dtype: Any = np.float32) -> np.ndarray:
    found = np.zeros((1, 32), dtype)
    found[0, : len(values)] = values
    return found


GROUP = (1000, -3, 0.1, 2**-10, 457, 480)


@pytest.mark.parametrize(
    ("rule", "values", "exponent", "reciprocal", "codes"),
    [  # worked examples of docs/reference/pto.md section 7.12
        ("ocp", GROUP, 128, 0x3F000000, [0x7E, 0xBC, 0x15, 0x00, 0x76, 0x77]),
        ("nv", GROUP, 129, 0x3E800000, [0x78, 0xB4, 0x0D, 0x00, 0x6E, 0x6F]),
        ("ocp", (448,), 127, 0x3F800000, [0x7E]),
        ("nv", (448,), 127, 0x3F800000, [0x7E]),
        ("ocp", (449,), 127, 0x3F800000, [0x7E]),
        ("nv", (449,), 128, 0x3F000000, [0x76]),
        ("ocp", (7,), 121, 0x42800000, None),
        ("nv", (7,), 121, 0x42800000, None),
        ("ocp", (2.0**-149,), 0, 0x7F000000, [0]),
        ("nv", (2.0**-130,), 0, 0x7F000000, None),
        ("ocp", (3.4e38,), 246, 0x04000000, None),
        ("nv", (3.4e38,), 247, 0x03800000, None),
        ("ocp", (np.inf, 1), 247, 0x03800000, [0x7E, 0x00]),
        ("nv", (np.inf, 1), 254, 0x00400000, [0x7E, 0x00]),
        ("ocp", (np.nan, 1), 255, 0x7FC00000, [0x7F, 0x7F]),
        ("nv", (np.nan, 1), 255, 0x7FC00000, [0x7F, 0x7F]),
        ("ocp", (0.0, -0.0), 0, 0x7F000000, [0x00, 0x80]),
        ("nv", (0.0, -0.0), 0, 0x7F000000, [0x00, 0x80]),
    ],
)
def test_block_examples(rule: str, values: Any, exponent: int, reciprocal: int, codes: list[int] | None) -> None:
    found = blocks(group(*values), rule)
    assert (found["exponents"].tolist(), found["scaling"][0]) == ([exponent], reciprocal)
    assert codes is None or found["codes"][0, : len(codes)].tolist() == codes


@pytest.mark.parametrize("element", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("rule", ["ocp", "nv"])
def test_random_blocks(element: str, rule: str) -> None:
    """The rules are floor and the ceiling of the quotient where no step of the library rounds; codes as ml_dtypes'."""
    dtype = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[element]
    generator = np.random.default_rng(3)
    x = np.exp(generator.normal(0, 2, (8, 64))) * generator.choice((-1, 1), (8, 64))
    x = x.astype(dtype)
    found = blocks(x, rule)
    wide = x.astype(np.float32)
    greatest = np.abs(wide.reshape(-1, 32)).max(axis=1)
    powers = np.floor(np.log2(greatest)) - 8 if rule == "ocp" else np.ceil(np.log2(greatest.astype(float) / 448))
    assert found["exponents"].tolist() == (powers + 127).astype(int).tolist()
    scaled = wide.reshape(-1, 32) * np.exp2(-powers)[:, None]
    expected = np.clip(scaled, -448, 448).astype(np.float32).astype(ml_dtypes.float8_e4m3fn)
    assert found["codes"].tobytes() == expected.tobytes()


def test_maxima_and_reciprocals_as_the_passes_leave_them() -> None:
    """f16 under ocp is cut to bf16 for its maximum; unrolled passes of f32 keep each reciprocal twice."""
    half = group(1.0 + 2**-9, dtype=np.float16)
    assert blocks(half, "ocp")["maxima"].tolist() == [0x3F80]  # bf16 of 1
    assert blocks(half, "nv")["maxima"].tolist() == [0x3C02]
    assert blocks(group(np.nan, dtype=np.float16), "ocp")["scaling"][0] == 0x7F81
    x = np.ones((32, 64), np.float32)
    assert (blocks(x, "ocp")["scaling"] == 0x43800000).all()  # 128 of 64 groups: 2**(127 - 119)
    found = blocks(x[:16], "ocp")["scaling"]
    assert (found[:32] == 0x43800000).all()
    assert found[32:].tolist() == noise(target("a5"), 6)[0x1C000:][:256].view("<u4")[32:].tolist()


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        ("quant_type = #pto<quant_type HIF4>", "unknown quant_type 'HIF4'"),
        ("quant_type = #pto<quant_type MXFP4_E2M1>", "MXFP4_E2M1 must be written to tiles of !pto.f4E2M1x2"),
        ("quant_type = #pto<quant_type MXFP8>, grpAxis = #pto<mx_group_axis axis2>", "unknown mx_group_axis 'axis2'"),
        ("quant_type = #pto<quant_type MXFP8>, interleave = 1", "interleave is '1', not true or false"),
        ("quant_type = #pto<quant_type MXFP8>, storeMode = #pto<vec_store_mode nz>", "needs a fifth tile"),
        ("quant_type = #pto<quant_type MXFP8>, quantScaleAlg = #pto<quant_scale_alg up>", "unknown quant_scale_alg"),
        ("interleave = false", "needs the attribute quant_type"),
    ],
)
def test_blocks_that_are_not_modelled(attributes: str, told: str) -> None:
    spots = [X, D, Spot("e", "ui8", 1, 32, 0x8000), Spot("m", "f32", 1, 8, 0x9000), Spot("s", "f32", 1, 8, 0xA000)]
    types = ", ".join(one.type for one in spots[1:])
    text = f"pto.tquant.mx ins(%x : {X.type}) outs(%d, %e, %m, %s : {types}) {{{attributes}}}"
    with pytest.raises(ReadError, match=told):
        walked(program(text, spots), target("a5"))


@pytest.mark.parametrize(("rows", "cols", "published", "within"), [(32, 32, 274, 0.085), (64, 128, 611, 0.035)])
def test_published_cycles_of_blocks(rows: int, cols: int, published: int, within: float) -> None:
    """Both rows decided facts of `timing.paced`."""
    chip, line = target("a5"), (1, rows * cols // 32)
    whole = [(element, (rows, cols), (rows, cols), {}) for element in ("f32", "i8")]
    lines = [("u8", line, line, {}), ("f32", line, line, {}), ("f32", (1, 2 * line[1]), line, {})]
    x, codes, *further = tiles_in_a_row([*whole, *lines])
    work = ResolvedTileOp("tquant.mx", codes, (x,), HERE, mode="ocp", further=tuple(further))
    found = timed_alone(chip, lowerer_of(chip).work(work), "tquant.mx").cycles
    # The text of the smaller is one chain of 32 rows, of which the window of the front end holds a part.
    assert found == pytest.approx(published, rel=within)


def test_blocks_in_a_program(tmp_path: Path) -> None:
    """Codes stored by the tool's flags; both engines agree; what CTRL is left at is told."""
    kinds = [f"!pto.tile_buf<vec, 1x64x{element}, valid=1x16>" for element in ("ui8", "f32", "f32")]
    more = "".join(f"%{name} = pto.alloc_tile : {kind}\n" for name, kind in zip("ems", kinds, strict=True))
    outs = ", ".join([NARROW, *kinds])
    text = f"{more}pto.tquant.mx ins(%a : {WIDE}) outs(%b, %e, %m, %s : {outs}) {{quant_type = #pto<quant_type MXFP8>}}"
    path = kernel_file(tmp_path, kernel(to="i8", body=text))
    x = np.random.default_rng(0).standard_normal((8, 64)).astype(np.float32)
    inputs = {"x": x, "f": np.zeros((8, 1), np.float32)}
    made = castsim.run(path, "a5", inputs=inputs)
    assert made.cycles == castsim.run(path, "a5", inputs=inputs, engine="event").cycles
    assert not made.races
    expected = quantise(x, "mxfp8_e4m3", scale="floor").elements.view(np.uint8)
    assert made.outputs["y"].view(np.uint8).tolist() == expected.tolist()
    assert any("CTRL at 1 << 50" in str(warning) for warning in made.warnings)


@pytest.mark.parametrize(
    "body",
    [
        f"{THERE}\n{BACK}",
        BACK,
        f"pto.tpack ins(%a : {WIDE}) outs(%q : {NARROW})",
    ],
)
def test_expand_refuses_by_name(body: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = kernel_file(tmp_path, kernel(to="f32", body=body))
    assert main(["expand", str(path), "--target", "a5"]) in (1, 2)
    told = capsys.readouterr().err
    assert "expand cannot write pto.t" in told
    assert "its lowering has " in told


@pytest.mark.parametrize(
    ("operation", "element"),
    [("tquant", "f32"), ("tdequant", "i8"), ("tdequant", "i16"), ("tquant.mx", "f32"), ("trowargmax", "f32")],
)
def test_more_rows_and_more_columns_take_longer(operation: str, element: str) -> None:
    small, tall, wide = (
        estimate_tile_operation(operation, element, *shape, target="a5").cycles
        for shape in ((8, 64), (64, 64), (64, 256))
    )
    assert small < tall < wide
