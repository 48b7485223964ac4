"""Forms that real kernels are written in, against what they say element by element."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import ml_dtypes
import numpy as np
import pytest
from kit.pto_text import module, moved

import castsim
from castsim.__main__ import main
from castsim.isa.errors import CastsimError
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program


def _tile(rows: int, cols: int, element: str, more: str = "") -> str:
    return f"!pto.tile_buf<vec, {rows}x{cols}x{element}{more}>"


T = _tile(4, 32, "f32")


def _program(arch, sources, lines: list[str], dst, *, more: str = "", arrow: bool = True) -> str:
    """Load every source (name, rows, columns, element), do what the lines say, store %tz of such rows and columns."""
    rows, cols, element = dst
    body = []
    for name, *extent, kind in sources:
        tile = f"%t{name}", _tile(*extent, kind)
        body += [f"{tile[0]} = pto.alloc_tile : {tile[1]}", *moved(name, tile, kind, *extent, typed=arrow)]
    tile = "%tz", _tile(rows, cols, element, more)
    body += [
        f"%tz = pto.alloc_tile : {tile[1]}",
        *lines,
        *moved("z", tile, element, rows, cols, load=False, typed=arrow),
    ]
    arguments = [f"%{name}: !pto.ptr<{kind}>" for name, _, _, kind in [*sources, ("z", *dst)]]
    return module(arch, arguments, body).replace(" attributes {pto.entry}", "")


def _run(text: str, args: dict[str, int | float] | None = None, **inputs: np.ndarray) -> np.ndarray:
    program = parse(text)
    assert parse(print_program(program)) == program
    with TemporaryDirectory() as folder:
        path = Path(folder, "kernel.pto")
        path.write_text(text)
        return np.asarray(castsim.run(path, inputs=inputs, args=args).outputs["z"])


@pytest.mark.parametrize("arch", ["a2a3", "a5", "a2"])
@pytest.mark.parametrize("element", ["i16", "i32", "ui16", "ui32"])
@pytest.mark.parametrize("amount", ["i8", "i16", "i32", "i64"])
def test_amounts_of_shifts_are_integers_of_any_width(arch: str, element: str, amount: str) -> None:
    line = f"pto.tshls ins(%ta, %s : {_tile(4, 32, element)}, {amount}) outs(%tz : {_tile(4, 32, element)})"
    text = _program(arch, [("a", 4, 32, element)], [f"%s = arith.constant 3 : {amount}", line], (4, 32, element))
    kind = element.replace("ui", "uint") if element[0] == "u" else element.replace("i", "int")
    given = np.arange(-64, 64).astype(kind).reshape(4, 32)
    assert np.array_equal(_run(text, a=given), (given.astype(np.int64) * 8).astype(kind))


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_a_slope_is_f32_and_scalars_of_unsigned_tiles_are_signless(arch: str) -> None:
    half, word = _tile(4, 32, "f16"), _tile(4, 32, "ui16")
    line = f"pto.tlrelu ins(%ta, %s : {half}, f32) outs(%tz : {half})"
    text = _program(arch, [("a", 4, 32, "f16")], ["%s = arith.constant 0.25 : f32", line], (4, 32, "f16"))
    given = np.arange(-64, 64).astype("float16").reshape(4, 32)
    assert np.array_equal(_run(text, a=given), np.where(given > 0, given, given / 4))
    line = f"pto.tadds ins(%ta, %s : {word}, i16) outs(%tz : {word})"
    if arch == "a5":
        text = _program(arch, [("a", 4, 32, "ui16")], ["%s = arith.constant -1 : i16", line], (4, 32, "ui16"))
        words = np.arange(1, 129, dtype="uint16").reshape(4, 32)
        assert np.array_equal(_run(text, a=words), words - 1)


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
@pytest.mark.parametrize("element", ["i8", "ui8"])
@pytest.mark.parametrize("name", ["tcolargmax", "tcolargmin"])
def test_places_of_extreme_bytes(arch: str, element: str, name: str) -> None:
    tile = _tile(16, 64, element)
    lines = [f"%tmp = pto.alloc_tile : {tile}"]
    lines.append(f"pto.{name} ins(%ta, %tmp : {tile}, {tile}) outs(%tz : {_tile(1, 64, 'i32')})")
    text = _program(arch, [("a", 16, 64, element)], lines, (1, 64, "i32"))
    kind = "uint8" if element[0] == "u" else "int8"
    given = np.random.default_rng(3).integers(0, 256, (16, 64), "uint8").view(kind)
    find = np.argmax if name == "tcolargmax" else np.argmin
    assert np.array_equal(_run(text, a=given).reshape(-1), find(given, axis=0))


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_one_row_of_numbers_serves_all_rows_of_a_sort(arch: str) -> None:
    kinds = f"{_tile(4, 64, 'f32')}, {_tile(1, 64, 'ui32')}"
    line = f"pto.tsort32 ins(%ta, %ti : {kinds}) outs(%tz : {_tile(4, 128, 'f32')})"
    text = _program(arch, [("a", 4, 64, "f32"), ("i", 1, 64, "ui32")], [line], (4, 128, "f32"))
    given = np.random.default_rng(4).permutation(256).astype("float32").reshape(4, 64)
    numbers = np.arange(100, 164, dtype="uint32").reshape(1, 64)
    found = _run(text, a=given, i=numbers).reshape(4, 64, 2)
    for row in range(4):
        for first in (0, 32):
            order = sorted(range(first, first + 32), key=lambda k: -given[row, k])
            assert found[row, first : first + 32, 0].tolist() == [given[row, k] for k in order]
            assert found[row, first : first + 32, 1].view("uint32").tolist() == [int(numbers[0, k]) for k in order]


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_a_fill_may_enlarge(arch: str) -> None:
    line = f"pto.tfillpad ins(%ta : {_tile(8, 64, 'f32')}) outs(%tz : {_tile(16, 128, 'f32', ', pad=1')})"
    text = _program(arch, [("a", 8, 64, "f32")], [line], (16, 128, "f32"), more=", pad=1")
    given = np.arange(512, dtype="float32").reshape(8, 64)
    want = np.zeros((16, 128), "float32")
    want[:8, :64] = given
    assert np.array_equal(_run(text, a=given), want)


def test_what_newer_front_ends_leave_out() -> None:
    # Types of partitions, names of results that nothing uses, and `!pto.ptr` before its parameters.
    tile = _tile(4, 32, "f32")
    lines = [
        "%w = arith.constant -1 : i32",
        "%u = builtin.unrealized_conversion_cast %w : i32 to ui32",
        "%l = builtin.unrealized_conversion_cast %u : ui32 to i64",
        "%x = pto.load_scalar %a[%c1] : <f32> -> f32",
        "scf.for %k = %c0 to %c1 step %c1 iter_args(%q = %c0) -> (index) {",
        f"pto.tadds ins(%ta, %x : {tile}, f32) outs(%tz : {tile})",
        "scf.yield %q : index",
        "}",
    ]
    text = _program("a5", [("a", 4, 32, "f32")], lines, (4, 32, "f32"), arrow=False)
    given = np.arange(128, dtype="float32").reshape(4, 32)
    assert np.array_equal(_run(text, a=given), given + 1)


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
@pytest.mark.parametrize("ending", ["", " -> i64", " : i64"])
def test_the_number_of_the_core_is_an_argument(arch: str, ending: str) -> None:
    lines = [
        f"%b = pto.get_block_idx{ending}",
        f"%w = pto.get_block_num{ending}",
        "%x = arith.muli %b, %w : i64",
        "%y = arith.trunci %x : i64 to i32",
        f"pto.tadds ins(%ta, %y : {_tile(4, 32, 'i32')}, i32) outs(%tz : {_tile(4, 32, 'i32')})",
    ]
    text = _program(arch, [("a", 4, 32, "i32")], lines, (4, 32, "i32"))
    given = np.arange(128, dtype="int32").reshape(4, 32)
    assert np.array_equal(_run(text, a=given), given)
    assert np.array_equal(_run(text, {"get_block_idx": 3, "get_block_num": 5}, a=given), given + 15)
    with pytest.raises(CastsimError, match="no scalar argument 'get_subblock_idx'") as caught:
        _run(text, {"get_subblock_idx": 3}, a=given)
    assert "get_block_idx" in caught.value.legal


def test_the_number_of_the_core_places_what_expand_writes(tmp_path: Path) -> None:
    lines = [
        "%b = pto.get_block_idx -> i64",
        "%y = arith.trunci %b : i64 to i32",
        f"pto.tadds ins(%ta, %y : {_tile(4, 32, 'i32')}, i32) outs(%tz : {_tile(4, 32, 'i32')})",
    ]
    (tmp_path / "k.pto").write_text(_program("a5", [("a", 4, 32, "i32")], lines, (4, 32, "i32")))
    given = np.arange(128, dtype="int32").reshape(4, 32)
    found = [given + 7]
    for arguments in ([], ["--arg", "get_block_idx=7"]):
        assert main(["expand", str(tmp_path / "k.pto"), "--out", str(tmp_path / "e.pto"), *arguments]) == 0
        found.append(_run((tmp_path / "e.pto").read_text(), {} if arguments else None, a=given.reshape(-1)))
    assert np.array_equal(found[1].reshape(4, 32), given)
    assert np.array_equal(found[2].reshape(4, 32), given + 7)


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_a_move_may_have_a_scratch_tile(arch: str) -> None:
    tile, tmp = _tile(4, 32, "f32"), _tile(1, 96, "ui8")
    lines = [f"%tmp = pto.alloc_tile : {tmp}", f"pto.tmov ins(%ta, %tmp : {tile}, {tmp}) outs(%tz : {tile})"]
    text = _program(arch, [("a", 4, 32, "f32")], lines, (4, 32, "f32"))
    given = np.arange(128, dtype="float32").reshape(4, 32)
    assert np.array_equal(_run(text, a=given), given)


@pytest.mark.parametrize("space", ["", ", gm"])
def test_a_pointer_type_without_its_name_may_tell_the_space(space: str) -> None:
    tile, given = _tile(4, 32, "f32"), np.full((4, 32), 3, "float32")
    lines = [f"%x = pto.load_scalar %a[%c1] : <f32{space}> -> f32", f"pto.texpands ins(%x : f32) outs(%tz : {tile})"]
    text = _program("a5", [("a", 4, 32, "f32")], lines, (4, 32, "f32"))
    assert np.array_equal(_run(text.replace("%a: !pto.ptr<f32>", f"%a: !pto.ptr<f32{space}>"), a=given), given)


def test_scratch_that_nothing_touches_takes_no_bytes() -> None:
    """Two tiles of 104 kB fit into the 248 kB of an A5 beside a scratch tile of as many that it ignores."""
    tile, column = _tile(104, 256, "f32"), _tile(104, 1, "f32", ", blayout=col_major")
    lines = [f"%s = pto.alloc_tile : {column}", f"%tmp = pto.alloc_tile : {tile}"]
    lines.append(f"pto.trowsum ins(%ta, %tmp : {tile}, {tile}) outs(%s : {column})")
    lines.append(f"pto.trowexpandadd ins(%ta, %s : {tile}, {column}) outs(%tz : {tile})")
    given = np.arange(26624, dtype="float32").reshape(104, 256) % 64
    want = given + given.sum(axis=1, keepdims=True)
    assert np.array_equal(_run(_program("a5", [("a", 104, 256, "f32")], lines, (104, 256, "f32")), a=given), want)


# Texts of spring 2026, and texts that are none of the assembler's input.


def test_strides_may_follow_without_a_comma() -> None:
    text = _program("a3", [("a", 4, 32, "f32")], [f"pto.tmov ins(%ta : {T}) outs(%tz : {T})"], (4, 32, "f32"))
    older = text.replace("], strides", "] strides")
    assert older != text
    assert parse(older) == parse(text)


@pytest.mark.parametrize(
    ("argument", "body", "what"),
    [
        ("%a: memref<32x32xf32, #pto.address_space<vec>>", "", "type 'memref<...>'"),
        ("%a: !llvm.ptr", "", "type '!llvm.ptr'"),
        ("%a: index", "%m = memref.alloc() : index", "memref.alloc"),
        ("%a: index", 'emitc.call "x"', "emitc.call"),
    ],
)
def test_texts_after_lowering_are_refused_as_such(argument: str, body: str, what: str) -> None:
    with pytest.raises(CastsimError, match="this text was already lowered; give the text before lowering") as caught:
        parse(f"func.func @k({argument}) {{\n{body}\nreturn\n}}\n", "k.pto")
    assert caught.value.message.startswith(what)
    assert caught.value.span is not None


def test_a_scatter_by_pattern_is_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"pto.tscatter ins(%ta, {{maskPattern = #pto.mask_pattern<P0101>}} : {T}) outs(%tz : {_tile(4, 64, 'f32')})"
    file = tmp_path / "k.pto"
    file.write_text(_program("a5", [("a", 4, 32, "f32")], [line], (4, 64, "f32")))
    assert main(["run", str(file), "--timing-only"]) == 1
    assert "pto.tscatter is not modelled" in capsys.readouterr().err
    assert main(["run", str(file), "--timing-only", "--opaque", "tscatter=9"]) == 0


def test_tquant_without_tmp_gets_one_on_a2a3() -> None:
    """Clamped, rounded products with the factor of each row, by docs/reference/pto.md 7.12; ties to even."""
    column = "!pto.tile_buf<vec, 8x1xf32, blayout=col_major>"
    lines = [
        f"%ts = pto.alloc_tile : {column}",
        "%one = arith.constant 1 : index",
        "%eight = arith.constant 8 : index",
        "%vs = pto.make_tensor_view %s, shape = [%eight, %one], strides = [%one, %one] {layout = #pto.layout<dn>} : "
        "!pto.tensor_view<?x?xf32>",
        "%ps = pto.partition_view %vs, offsets = [%c0, %c0], sizes = [%eight, %one] : !pto.tensor_view<?x?xf32> -> "
        "!pto.partition_tensor_view<8x1xf32>",
        f"pto.tload ins(%ps : !pto.partition_tensor_view<8x1xf32>) outs(%ts : {column})",
        f"pto.tquant ins(%ta, %ts : {_tile(8, 32, 'f32')}, {column}) outs(%tz : {_tile(8, 32, 'i8')}) "
        "{quant_type = #pto<quant_type INT8_SYM>}",
    ]
    text = _program("a3", [("a", 8, 32, "f32")], lines, (8, 32, "i8"))
    text = text.replace("(%a: !pto.ptr<f32>,", "(%a: !pto.ptr<f32>, %s: !pto.ptr<f32>,")
    x = (np.arange(256, dtype=np.float32).reshape(8, 32) - 128) * np.float32(1.5)
    scale = np.exp2(-np.arange(8, dtype=np.float32)).reshape(8, 1)
    assert np.array_equal(_run(text, a=x, s=scale), np.clip(np.rint(x * scale), -128, 127).astype(np.int8))


def test_tquant_mx_stores_32_reciprocals_into_a_tile_of_32(tmp_path: Path) -> None:
    """The vendor's own kernel: 16 x 64, one line of exponents; every group of a largest number of 448 has scale 1."""
    names = {"e": _tile(1, 32, "i8"), "m": _tile(1, 32, "f32"), "r": _tile(1, 32, "f32")}
    lines = [f"%{name} = pto.alloc_tile : {kind}" for name, kind in names.items()]
    lines.append(
        f"pto.tquant.mx ins(%ta : {_tile(16, 64, 'f32')}) outs(%tz, %e, %m, %r : {_tile(16, 64, 'i8')}, "
        f"{', '.join(names.values())}) {{quant_type = #pto<quant_type MXFP8>}}"
    )
    file = tmp_path / "k.pto"
    file.write_text(_program("a5", [("a", 16, 64, "f32")], lines, (16, 64, "i8")))
    x = np.tile(np.array([448.0, 1.0, -2.0, 0.5] * 16, np.float32), (16, 1))
    result = castsim.run(file, inputs={"a": x})
    codes = np.asarray(result.outputs["z"]).view(np.uint8)
    assert np.array_equal(codes, x.astype(ml_dtypes.float8_e4m3fn).view(np.uint8))
    assert any("behind %r are overwritten" in each.text for each in result.loaded.executed.warnings)
