"""Narrow element types: newer spellings, 4-bit floats whose columns count pairs, and f32 to fp8 by either back end.

Expected values are those of ml_dtypes, of exact arithmetic by the test oracle, and of docs/reference/a5.md section 4.
"""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import oracle_scalar
import pytest
from kit.cast_kernels import chip, codes, kernel, outputs
from kit.command_output import document_of, file_of, out_of
from kit.paths import VECTORS
from oracle_formats import decode

from castsim import run
from castsim.isa.errors import CastsimError, IllegalError, ReadError, TileError, WarningKind, of_kind
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program
from castsim.isa.pto.types import format_type, parse_type

SPELLINGS = ("!pto.hif8", "!pto.f8E8M0", "!pto.f4E2M1x2", "!pto.f4E1M2x2", "!pto.hif8x2", "!pto.bf16x2")
BYTES = dict(zip(SPELLINGS, (1, 1, 1, 1, 2, 4), strict=True))
FP4 = {"!pto.f4E2M1x2": ("e2m1", ml_dtypes.float4_e2m1fn, 6.0), "!pto.f4E1M2x2": ("e1m2", None, 1.75)}
SPECIAL = np.array(
    [0, -0.0, 1, -1, 0.24, 0.25, 0.26, 0.75, 1.25, 1.75, 2.5, -2.5, 3.5, 5, -5, 6, 6.5, 7, -9, 1e30, -1e30,
     np.inf, -np.inf, np.nan, -np.nan, 1e-30, -1e-30, 0.125, 0.375, 0.625, -0.625, 1.7],
    np.float32,
).astype(ml_dtypes.bfloat16)  # fmt: skip


def expected_fp4(values: np.ndarray, spelling: str) -> np.ndarray:
    """Nearest code, ties to even; clamped; NaN becomes 0 (docs/reference/a5.md section 4.1)."""
    name, _, _ = FP4[spelling]
    flat = codes(values).reshape(-1)
    table = {code: 0 if np.isnan(value) else oracle_scalar.cast(int(code), "bf16", name, "rint", "saturate")
             for code, value in zip(flat, values.reshape(-1).astype(np.float32), strict=True)}  # fmt: skip
    return np.array([table[code] for code in flat], np.uint8).reshape(values.shape)


@pytest.mark.parametrize("spelling", [*SPELLINGS, "f8E4M3FN", "f8E5M2"])
@pytest.mark.parametrize(
    "text",
    [
        "!pto.ptr<{}>",
        "!pto.ptr<{}, gm>",
        "!pto.tensor_view<?x?x{}>",
        "!pto.partition_tensor_view<8x64x{}>",
        "!pto.tile_buf<vec, 8x64x{}>",
        "!pto.tile_buf<vec, 8x64x{}, valid=?x?>",
        "!pto.tile_buf<loc=vec, dtype={}, rows=8, cols=64, v_row=8, v_col=32, blayout=row_major, slayout=none_box, "
        "fractal=512, pad=0>",
        "!pto.multi_tile_buf<vec, 8x64x{}, count=2>",
        "!pto.tile_buf<scaling, 128x4x{}, slayout=row_major, fractal=32>",
    ],
)
def test_they_stand_wherever_an_element_type_stands(text: str, spelling: str) -> None:
    kind = parse_type(text.format(spelling))
    assert parse_type(format_type(kind)) == kind


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_newer_spellings_are_read_without_a_warning(spelling: str) -> None:
    program = parse(f"func.func @f(%p: !pto.ptr<{spelling}>) {{\nreturn\n}}\n", "k.pto")
    assert not program.warnings


# ----------------------------------------------------------------------------------------------------------- types


@pytest.mark.parametrize(("prefixed", "own"), [("!pto.f4E2M1x2", "f4E2M1x2"), ("!pto.f4E1M2x2", "f4E1M2x2")])
def test_the_prefix_tells_pairs_from_elements(prefixed: str, own: str) -> None:
    assert parse_type(f"!pto.ptr<{prefixed}>") != parse_type(f"!pto.ptr<{own}>")
    assert format_type(parse_type(f"!pto.tensor_view<4x8x{own}>")) == f"!pto.tensor_view<4x8x{own}>"
    assert format_type(parse_type(f"!pto.tensor_view<4x8x{prefixed}>")) == f"!pto.tensor_view<4x8x{prefixed}>"


@pytest.mark.parametrize("types", [("bf16", "!pto.f4E2M1x2"), ("f32", "!pto.hif8"), ("f32", "f8E5M2")])
def test_programs_print_and_read_back(types: tuple[str, str]) -> None:
    wide = 64 // (2 if "f4" in types[1] else 1)
    program = parse(kernel(types, ((16, 64), (16, wide)), "satmode = #pto<saturation_mode ON>"), "k.pto")
    assert parse(print_program(program), "again.pto") == program


# ---------------------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize("spelling", FP4)
@pytest.mark.parametrize(("rows", "cols"), [(16, 64), (1, 64), (3, 192), (7, 128)])
def test_bf16_to_pairs(spelling: str, rows: int, cols: int, tmp_path: Path) -> None:
    file = tmp_path / "k.pto"
    file.write_text(kernel(("bf16", spelling), ((rows, cols), (rows, cols // 2))))
    ordinary = np.linspace(-8, 8, 99, dtype=np.float32).astype(ml_dtypes.bfloat16)
    draw = np.random.default_rng(5).choice(np.concatenate([SPECIAL, ordinary]), (rows, cols))
    _, found = outputs(file, chip("a5"), {"x": draw})
    assert np.array_equal(found["y"], expected_fp4(draw, spelling))
    name, library, top = FP4[spelling]
    if library is not None:  # a second witness
        wide = np.clip(np.nan_to_num(draw.astype(np.float32), nan=0.0, posinf=top, neginf=-top), -top, top)
        seen = wide.astype(library).view(np.uint8)
        signs = np.isnan(draw.astype(np.float32))
        assert np.array_equal(np.where(signs, 0, seen), found["y"]), name


@pytest.mark.parametrize("spelling", FP4)
def test_every_byte_of_pairs_to_bf16(spelling: str, tmp_path: Path) -> None:
    """The low half of a byte is the even column: the input is the 512 codes in the order of 256 bytes."""
    file = tmp_path / "k.pto"
    file.write_text(kernel((spelling, "bf16"), ((8, 32), (8, 64))))
    stored = np.arange(256, dtype=np.uint8).reshape(8, 32)
    values = np.stack([stored & 15, stored >> 4], axis=-1).reshape(8, 64)
    found, results = outputs(file, chip("a5"), {"x": values})
    assert found.loaded.arguments["x"].shape == (8, 64)
    name = FP4[spelling][0]
    exact = [float((-1 if (one := decode(int(code), name)).negative else 1) * one.magnitude) for code in values.flat]
    wanted = np.array(exact, np.float32).reshape(8, 64)
    wanted[values == 8] = -0.0
    assert np.array_equal(results["y"], codes(wanted.astype(ml_dtypes.bfloat16)))


@pytest.mark.parametrize("spelling", FP4)
@pytest.mark.parametrize("valid", [(5, 32), (16, 17), (3, 1), (0, 8)])
def test_valid_pairs_given_at_run_time(spelling: str, valid: tuple[int, int], tmp_path: Path) -> None:
    rows, pairs = valid
    file = tmp_path / "k.pto"
    both = ((rows, 2 * pairs), (rows, pairs))
    file.write_text(kernel(("bf16", spelling), ((16, 64), (16, 32)), valid=both))
    values = np.random.default_rng(6).uniform(-8, 8, both[0]).astype(ml_dtypes.bfloat16)
    _, found = outputs(file, chip("a5"), {"x": values})
    assert found["y"].size == values.size
    assert np.array_equal(found["y"].reshape(values.shape), expected_fp4(values, spelling))


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_parts_of_views_are_counted_in_elements_as_spelt(spelling: str, tmp_path: Path) -> None:
    """Rows 2 .. 6, elements 32 .. 63 of 8 x 96 come out as 5 x 32, byte for byte."""
    wide = BYTES[spelling]
    kind, part = f"!pto.tensor_view<?x?x{spelling}>", f"!pto.partition_tensor_view<5x32x{spelling}>"
    tile = f"!pto.tile_buf<vec, 5x32x{spelling}>"
    lines = [f"%c{n} = arith.constant {n} : index" for n in (0, 1, 2, 5, 8, 32, 96)]
    lines += [
        f"%v = pto.make_tensor_view %x, shape = [%c8, %c96], strides = [%c96, %c1] : {kind}",
        f"%p = pto.partition_view %v, offsets = [%c2, %c32], sizes = [%c5, %c32] : {kind} -> {part}",
        f"%w = pto.make_tensor_view %y, shape = [%c5, %c32], strides = [%c32, %c1] : {kind}",
        f"%q = pto.partition_view %w, offsets = [%c0, %c0], sizes = [%c5, %c32] : {kind} -> {part}",
        f"%t = pto.alloc_tile : {tile}",
        f"pto.tload ins(%p : {part}) outs(%t : {tile})",
        f"pto.tstore ins(%t : {tile}) outs(%q : {part})",
    ]
    body = "\n".join((*lines, "return"))
    text = f"func.func @k(%x: !pto.ptr<{spelling}>, %y: !pto.ptr<{spelling}>) attributes {{pto.entry}} {{\n{body}\n}}\n"
    file = tmp_path / "k.pto"
    file.write_text(text)
    stored = np.random.default_rng(2).integers(0, 256, (8, 96, wide), dtype=np.uint8)
    inside = stored[2:7, 32:64].reshape(5, -1)
    if "f4" in spelling:
        given, wanted = (
            np.stack([a & 15, a >> 4], axis=-1).reshape(len(a), -1) for a in (stored.reshape(8, -1), inside)
        )
    elif spelling == "!pto.bf16x2":
        given, wanted = stored.view(np.uint16).reshape(8, -1), inside.view(np.uint16)
    else:
        given, wanted = stored.reshape(8, -1), inside
    _, found = outputs(file, chip("a5"), {"x": given})
    assert np.array_equal(found["y"], wanted)
    with pytest.raises(IllegalError, match=r"a2a3 has no .* elements; loads and stores cannot move them") as caught:
        run(file, "a2a3", timing_only=True)
    assert caught.value.span is not None
    assert caught.value.span.line == 14


def test_a_part_of_a_tile_begins_at_a_pair(tmp_path: Path) -> None:
    """Pairs 32 .. 63 of the tile are columns 64 .. 127.

    (The other direction clears its result first, in whole rows of the tile that the part is of.)
    """
    text = kernel(("!pto.f4E2M1x2", "bf16"), ((4, 64), (4, 128)))
    source, half = "!pto.tile_buf<vec, 4x64x!pto.f4E2M1x2>", "!pto.tile_buf<vec, 4x32x!pto.f4E2M1x2>"
    whole, part = "!pto.tile_buf<vec, 4x128xbf16>", "!pto.tile_buf<vec, 4x64xbf16>"
    cast = f"pto.tcvt ins(%xt : {source}) outs(%yt : {whole})"
    assert cast in text
    halves = ["%c32 = arith.constant 32 : index", "%c64 = arith.constant 64 : index"]
    for number, (at, to) in enumerate((("%c0", "%c0"), ("%c32", "%c64"))):
        halves += [
            f"%s{number} = pto.subview %xt[%c0, {at}] sizes [4, 32] : {source} -> {half}",
            f"%d{number} = pto.subview %yt[%c0, {to}] sizes [4, 64] : {whole} -> {part}",
            f"pto.tcvt ins(%s{number} : {half}) outs(%d{number} : {part})",
        ]
    file = tmp_path / "k.pto"
    file.write_text(text.replace(cast, "\n".join(halves)))
    values = np.random.default_rng(9).integers(0, 16, (4, 128), dtype=np.uint8)
    _, found = outputs(file, chip("a5"), {"x": values})
    wide = values.view(ml_dtypes.float4_e2m1fn).astype(ml_dtypes.bfloat16)
    assert np.array_equal(found["y"], codes(wide))


OWN = VECTORS / "pto_own" / "low_precision.pto"


def clamped_hif8(every: np.ndarray) -> np.ndarray:
    """Codes as they are with CTRL[60] = 1 and [48] = 0: infinity becomes 2^15 of its sign, NaN 0."""
    return np.select([every == 0x6F, every == 0xEF, every == 0x80], [0x6E, 0xEE, 0], every.astype(np.int64))


def test_the_own_program() -> None:
    generator = np.random.default_rng(1)
    x = generator.uniform(-9, 9, (16, 64)).astype(ml_dtypes.bfloat16)
    y = (generator.uniform(-1, 1, (16, 64)) * 70000).astype(np.float32)
    found, results = outputs(OWN, chip("a5"), {"in": x, "in32": y})
    assert np.array_equal(results["out4"], expected_fp4(x, "!pto.f4E2M1x2"))
    hif8 = [[oracle_scalar.cast(int(code), "f32", "hif8", "round", "special") for code in row] for row in codes(y)]
    assert np.array_equal(results["out8"], clamped_hif8(np.array(hif8)))
    assert np.array_equal(results["out16"].view(np.int16), np.clip(np.trunc(y), -32768, 32767).astype(np.int16))
    assert not of_kind(found.warnings, WarningKind.ELEMENT_TYPE)


def test_own_spelling_counts_elements_as_before(tmp_path: Path) -> None:
    file, other = tmp_path / "k.pto", tmp_path / "o.pto"
    file.write_text(kernel(("bf16", "f4E2M1x2"), ((16, 64), (16, 64))))
    other.write_text(kernel(("bf16", "!pto.f4E2M1x2"), ((16, 64), (16, 32))))
    values = np.random.default_rng(3).uniform(-8, 8, (16, 64)).astype(ml_dtypes.bfloat16)
    one, first = outputs(file, chip("a5"), {"x": values})
    two, second = outputs(other, chip("a5"), {"x": values})
    assert np.array_equal(first["y"], second["y"])
    assert one.cycles == two.cycles


def test_of_column_major_tiles_the_rows_are_pairs() -> None:
    text = kernel(("bf16", "!pto.f4E2M1x2"), ((64, 16), (32, 16)))
    text = text.replace("x16xbf16>", "x16xbf16, blayout=col_major>").replace(
        "partition_tensor_view<64x16xbf16, blayout=col_major>", "partition_tensor_view<64x16xbf16>"
    )
    turned = text.replace("buf<vec, 32x16x!pto.f4E2M1x2>", "buf<vec, 32x16x!pto.f4E2M1x2, blayout=col_major>")
    assert parse(turned, "k.pto").functions
    with pytest.raises(TileError, match="src has 64x16, dst has 32x32"):
        parse(text, "k.pto")


# --------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (kernel(("bf16", "!pto.f4E2M1x2"), ((16, 64), (16, 64))), TileError, "src has 16x64, dst has 16x128"),
        (kernel(("bf16", "!pto.f4E1M2x2"), ((16, 64), (16, 48))), TileError, "in values, two per element"),
        (kernel(("f32", "!pto.hif8x2"), ((16, 64), (16, 64))), IllegalError, "no cast f32 -> hif8_pair"),
        (kernel(("f16", "!pto.f4E2M1x2"), ((16, 64), (16, 32))), IllegalError, "no cast f16 -> e2m1"),
        (kernel(("f32", "!pto.f8E8M0"), ((16, 64), (16, 64))), IllegalError, "no cast f32 -> e8m0"),
        (kernel(("f32", "!pto.hif9"), ((16, 64), (16, 64))), ReadError, "unknown element type '!pto.hif9'"),
        ("func.func @k(%x: !pto.hif8) {\nreturn\n}\n", ReadError, "!pto.hif8 is an element type"),
        (
            kernel(("!pto.f4E2M1x2", "!pto.f4E2M1x2"), ((8, 32), (8, 32))).replace("pto.tcvt ", "pto.trelu "),
            IllegalError,
            "pto.trelu does not take e2m1_pair",
        ),
    ],
)
def test_refusals(text: str, kind: type[CastsimError], message: str, tmp_path: Path) -> None:
    file = tmp_path / "k.pto"
    file.write_text(text)
    with pytest.raises(kind) as caught:
        run(file, "a5", timing_only=True)
    assert message in caught.value.message
    assert caught.value.span is not None
    assert caught.value.span.line > 0


@pytest.mark.parametrize("types", [("f32", "!pto.hif8"), ("bf16", "!pto.f4E2M1x2"), ("f8E4M3FN", "f32")])
def test_a2a3_has_none_of_them(types: tuple[str, str], tmp_path: Path) -> None:
    file = tmp_path / "k.pto"
    wide = 32 if "f4" in types[1] else 64
    file.write_text(kernel(types, ((16, 64), (16, wide)), arch="a3"))
    with pytest.raises(IllegalError, match="a2a3 has no") as caught:
        run(file, timing_only=True)
    assert caught.value.span is not None


FORMATS = {"f8E4M3FN": ("e4m3fn", ml_dtypes.float8_e4m3fn, 448.0), "f8E5M2": ("e5m2", ml_dtypes.float8_e5m2, 57344.0)}
OUTSIDE = {"f8E4M3FN": {np.inf: 0x7E, -np.inf: 0xFE, 1e30: 0x7E, -1e30: 0xFE},
           "f8E5M2": {np.inf: 0x7B, -np.inf: 0xFB, 1e30: 0x7B, -1e30: 0xFB}}  # fmt: skip
"""What the device tests of the micro back end expect; NaN gives 0 (docs/reference/a5.md section 4.2)."""
MODES = {"RINT": "rint", "ROUND": "round", "FLOOR": "floor", "CEIL": "ceil", "TRUNC": "trunc"}


def values(count: int, seed: int) -> np.ndarray:
    """Numbers of every magnitude around both ranges, ties, NaN and infinities."""
    generator = np.random.default_rng(seed)
    found = (generator.uniform(-1, 1, count) * 2.0 ** generator.integers(-20, 20, count)).astype(np.float32)
    found[:14] = [np.inf, -np.inf, np.nan, -np.nan, 448, 464, 465, 480, -480, 57344, 61439, 61440, -65536, -0.0]
    return found


def clamped(found: np.ndarray, spelling: str, rounding: str) -> np.ndarray:
    """NaN to 0, everything else rounded and held within the range, by exact arithmetic."""
    name = FORMATS[spelling][0]
    every = [
        0 if np.isnan(value) else oracle_scalar.cast(int(code), "f32", name, rounding, "saturate")
        for value, code in zip(found.flat, codes(found).flat, strict=True)
    ]
    return np.array(every, np.uint8).reshape(found.shape)


@pytest.mark.parametrize("spelling", FORMATS)
@pytest.mark.parametrize("mode", [None, *MODES])
@pytest.mark.parametrize("valid", [None, ((5, 50), (5, 50))])
def test_the_micro_back_end_clamps(
    spelling: str, mode: str | None, valid: tuple[tuple[int, int], tuple[int, int]] | None, tmp_path: Path
) -> None:
    file = tmp_path / "k.pto"
    words = f"rmode = #pto<round_mode {mode}>" if mode else ""
    file.write_text(kernel(("f32", spelling), ((8, 64), (8, 64)), words, valid=valid))
    given = values(512 if valid is None else 250, 4).reshape((8, 64) if valid is None else (5, 50))
    _, found = outputs(file, chip("a5", backend="vpto"), {"x": given})
    assert np.array_equal(found["y"], clamped(given, spelling, MODES[mode or "RINT"]))
    for value, code in OUTSIDE[spelling].items():
        assert set(found["y"][given == np.float32(value)]) <= {code}
    if mode in (None, "RINT"):  # a second witness within the range
        inside = np.abs(given) <= FORMATS[spelling][2]
        assert np.array_equal(found["y"][inside], given[inside].astype(FORMATS[spelling][1]).view(np.uint8))


@pytest.mark.parametrize("spelling", FORMATS)
@pytest.mark.parametrize("start", [0, 1])
def test_start_state_and_saturation_do_not_matter_to_it(spelling: str, start: int, tmp_path: Path) -> None:
    given = values(512, 7).reshape(8, 64)
    for words in ("", "sat_mode = #pto<saturation_mode OFF>", "satmode = #pto<saturation_mode ON>"):
        file = file_of(tmp_path / "k.pto", kernel(("f32", spelling), ((8, 64), (8, 64)), words))
        _, found = outputs(file, chip("a5", backend="vpto", ctrl_60_at_start=start), {"x": given})
        assert np.array_equal(found["y"], clamped(given, spelling, "rint"))


@pytest.mark.parametrize("spelling", FORMATS)
@pytest.mark.parametrize(("start", "overflow"), [(0, "special"), (1, "saturate")])
def test_the_library_follows_ctrl(spelling: str, start: int, overflow: str, tmp_path: Path) -> None:
    file = file_of(tmp_path / "k.pto", kernel(("f32", spelling), ((8, 64), (8, 64)), "rmode = #pto<round_mode FLOOR>"))
    given = values(512, 8).reshape(8, 64)
    result, found = outputs(file, chip("a5", ctrl_60_at_start=start), {"x": given})
    name = FORMATS[spelling][0]
    if start:
        wanted = clamped(given, spelling, "rint")
    else:
        every = [oracle_scalar.cast(int(code), "f32", name, "rint", overflow) for code in codes(given).flat]
        wanted = np.array(every, np.uint8).reshape(8, 64)
    finite = ~np.isnan(given)
    assert np.array_equal(found["y"][finite], wanted[finite])
    kept = found["y"][~finite]
    assert all(code == 0 for code in kept) if start else np.isnan(kept.view(FORMATS[spelling][1]).astype(float)).all()
    assert of_kind(result.warnings, WarningKind.ROUNDING)


@pytest.mark.parametrize("start", [0, 1])
def test_the_micro_back_end_clears_bit_60(start: int, tmp_path: Path) -> None:
    """So hif8, which leaves CTRL alone, does not saturate, whatever the bit was."""
    file = file_of(tmp_path / "k.pto", kernel(("f32", "!pto.hif8"), ((8, 64), (8, 64))))
    given = values(512, 9).reshape(8, 64)
    _, found = outputs(file, chip("a5", backend="vpto", ctrl_60_at_start=start), {"x": given})
    wanted = [
        [oracle_scalar.cast(int(code), "f32", "hif8", "round", "special") for code in row] for row in codes(given)
    ]
    assert found["y"].tolist() == wanted


@pytest.mark.parametrize("back_end", ["library", "vpto"])
def test_reports_name_it_where_it_matters(back_end: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = kernel(("f32", "f8E4M3FN"), ((8, 64), (8, 64)))
    file = file_of(tmp_path / "k.pto", text)
    other = file_of(tmp_path / "o.pto", kernel(("f32", "f16"), ((8, 64), (8, 64))))
    words, others = (["run", str(path), "--timing-only", "--backend", back_end] for path in (file, other))
    assert f"results depend on --backend {back_end}" in out_of(capsys, words)
    assert f"backend = {back_end} (also " in out_of(capsys, [*words, "--report", "full"])
    (choice,) = document_of(capsys, *words)["choices"]
    (line,) = (number for number, content in enumerate(text.splitlines(), 1) if "tcvt" in content)
    assert (choice["option"], choice["value"], choice["lines"]) == ("backend", back_end, [line])
    assert choice["legal"] == ["library", "vpto"]
    assert ("clamps" in choice["effect"].split("(")[0]) is (back_end == "vpto")
    assert "backend" not in out_of(capsys, others)
    assert "choices" not in document_of(capsys, *others)


def test_backends_that_there_are_not(tmp_path: Path) -> None:
    file = file_of(tmp_path / "k.pto", kernel(("f32", "f16"), ((8, 64), (8, 64)), arch="a3"))
    with pytest.raises(ReadError, match="a2a3 has no option 'backend'"):
        run(file, timing_only=True, backend="vpto")
    with pytest.raises(ReadError, match="option backend cannot be 'micro'") as caught:
        run(file, "a5", timing_only=True, backend="micro")
    assert caught.value.legal == ("library", "vpto")
