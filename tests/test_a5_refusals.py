"""What A5 refuses and what it warns of; each message names the tile, value or mode and what is legal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from a5_cases import A5, SPAN, UB, Shape, check, lowerer, make_cast, source_codes, tile

from castsim.casting import cast, cast_on_target
from castsim.execution.tiles import Part, TileCast, TileTransfer
from castsim.isa.errors import IllegalError, TileError
from castsim.isa.formats import format_named
from castsim.isa.modes import Saturation
from castsim.isa.pto.program import RoundMode, TileType
from castsim.machines.target_cast import no_such_pair
from castsim.targets.options import with_options

FULL = Shape(2, 256, 2, 256)


def warnings(src: str, dst: str, mode: str | None = None, saturation: str | None = None, **options: int | str) -> str:
    return "\n".join(lowerer(**options).cast(make_cast(src, dst, FULL, mode, saturation)).warnings)


@pytest.mark.parametrize(
    ("src", "dst", "detour"),
    [("f32", "i8", "f32 -> f16 -> i8"), ("f32", "u8", "f32 -> f16 -> u8"), ("i32", "f16", "i32 -> f32 -> f16")],
)
def test_illegal_pairs_name_the_legal_ones_and_a_detour(src: str, dst: str, detour: str) -> None:
    with pytest.raises(IllegalError, match=f"a5 has no cast {src} -> {dst}; from {src} it has: ") as caught:
        cast(np.zeros(3, np.float32 if src == "f32" else np.int32), src, dst, target=A5)
    assert detour in caught.value.message
    assert detour in caught.value.legal


def test_sources_without_any_cast() -> None:
    with pytest.raises(IllegalError, match="a5 has no cast from i4; it casts from: f32, f16, bf16"):
        lowerer().cast(make_cast("i4", "f16", FULL))


def test_modes_in_vain() -> None:
    assert warnings("f32", "e4m3fn", "floor") == "rounding FLOOR is ignored: f32 -> e4m3fn always rounds RINT"
    assert warnings("f32", "e4m3fn", "rint") == warnings("f32", "e4m3fn", "none") == warnings("f32", "e4m3fn") == ""
    assert warnings("f16", "hif8", "rint") == "rounding RINT is ignored: f16 -> hif8 always rounds ROUND"
    assert warnings("f16", "hif8", "round") == ""
    assert warnings("bf16", "f32", "round") == "rounding ROUND has no effect: bf16 -> f32 rounds nothing"
    assert warnings("i32", "i16", "ceil") == "rounding CEIL has no effect: i32 -> i16 rounds nothing"
    assert "ODD silently becomes TRUNC: f32 -> i32 has RINT, ROUND" in warnings("f32", "i32", "odd")
    assert "ODD silently becomes RINT" in warnings("f32", "bf16", "odd")
    assert warnings("f32", "f16", "odd") == ""


def test_saturation_in_vain() -> None:
    for src, dst in (("f32", "e4m3fn"), ("f16", "hif8"), ("bf16", "e2m1"), ("f16", "f32"), ("i16", "u32")):
        assert warnings(src, dst, None, "off").startswith(f"saturation OFF has no effect: {src} -> {dst}")
    for src, dst in (("f32", "e4m3fn"), ("f16", "hif8"), ("bf16", "e2m1"), ("i16", "u32")):
        assert warnings(src, dst, None, "on") == ""  # it clamps as ON asks, whatever it is that does it
    assert "saturation ON has no effect" in warnings("f16", "f32", None, "on")
    assert "saturation ON has no effect" in warnings("f32", "e4m3fn", None, "on", ctrl_60_at_start=0)
    assert "saturation OFF has no effect" in warnings("f32", "f16", None, "off")
    assert warnings("f32", "f16", None, "on") == ""
    assert "saturation ON has no effect" in warnings("bf16", "f16", None, "on", ctrl_60_at_start=0)
    assert warnings("bf16", "f16", None, "on") == ""
    assert warnings("f32", "i32", None, "off") == warnings("i64", "i32", None, "on") == ""
    assert "saturation OFF" in warnings("f32", "i32", None, "off", control_writes="suppressed")


def test_a_tmp_tile_is_ignored_with_a_warning() -> None:
    plain = make_cast("f32", "i16", FULL)
    with_tmp = replace(plain, tmp=tile("tmp", "i32", Shape(1, 8, 1, 8), 0))  # too small, and over the source
    lowered = lowerer().cast(with_tmp)
    assert lowered.warnings == ("the tmp tile is ignored: no cast of a5 uses scratch",)
    assert lowered.accesses == lowerer().cast(plain).accesses


def refused(cast_: TileCast, message: str) -> None:
    with pytest.raises(TileError, match=message) as caught:
        lowerer().cast(cast_)
    assert caught.value.span == SPAN


def test_tiles_that_do_not_fit() -> None:
    refused(make_cast("f32", "f16", Shape(2, 20, 2, 20)), "%src: 20 x f32 is 80 bytes per line, not a multiple of 32")
    refused(make_cast("bf16", "e2m1", Shape(2, 32, 2, 32)), "%dst: 32 x e2m1 is 16 bytes per line")
    refused(make_cast("f32", "f16", FULL, places=(16, 4096)), "%src starts at byte 16, which is not 32-byte aligned")
    refused(make_cast("f32", "f16", FULL, places=(0, UB - 32)), "the buffer has 262144")
    refused(make_cast("f32", "f16", FULL, places=(0, 1024)), "%dst .* partly overlaps its source %src")
    refused(make_cast("f16", "f32", FULL, places=(0, 0)), "partly overlaps")
    odd = make_cast("f32", "f16", FULL)
    refused(replace(odd, dst=replace(odd.dst, valid_cols=128)), "valid region of %src is 2 x 256, of %dst 2 x 128")
    column = replace(odd.src, type=replace(odd.src.type, block_layout="col_major", rows=8))
    refused(replace(odd, src=replace(column, type=replace(column.type, rows=64))), "col_major; tcvt takes row_major")


def test_the_zero_fill_and_its_neighbours() -> None:
    refused(make_cast("bf16", "e2m1", FULL, places=(0, 0)), "%dst is cleared before %src is read")
    small = Shape(1, 64, 1, 64)
    refused(
        make_cast("bf16", "e2m1", small, places=(0, UB - 64)), "the zero fill of %dst writes bytes 262080 .. 262335"
    )
    # Destination in front of its source: the fill reaches the source before it is read.
    hit = lowerer().cast(make_cast("bf16", "e2m1", small, places=(32, 0)))
    assert "writes 224 bytes past the end of %dst, the first 128 bytes of %src among them" in hit.warnings[0]
    assert hit.shortcut is None
    assert max(access.end for access in hit.accesses if access.write) == 256


def test_an_odd_last_column_of_4_bits_is_dropped_with_a_warning() -> None:
    odd = lowerer(zero_fill_last_store="limited").cast(make_cast("bf16", "e2m1", Shape(2, 64, 2, 33)))
    assert odd.warnings == ("%dst has 33 valid columns: the last one shares its byte with none and becomes 0",)
    assert lowerer().cast(make_cast("e2m1", "bf16", Shape(2, 64, 2, 33))).warnings == ()


def test_narrowing_in_place_runs_and_says_so() -> None:
    lowered = check(make_cast("f32", "e4m3fn", FULL, places=(0, 0)), source_codes("f32", "e4m3fn"))
    assert "narrowed in place" in lowered.warnings[0]


def transfer(tile_pad: int, element: str) -> TileTransfer:
    kind = TileType("vec", element, 2, 16, 2, 16, pad=tile_pad)
    made = replace(tile("t", element, Shape(2, 16, 2, 16), 0), type=kind)
    part = Part("x", format_named(element), 0, (1, 1, 1, 2, 16), (32, 32, 32, 16, 1), "nd")
    return TileTransfer(made, part, True, SPAN)


def test_64_bit_loads_are_padded_with_zero_or_not_at_all() -> None:
    for pad in (2, 3):
        with pytest.raises(TileError, match="i64 is padded with zero or not at all"):
            lowerer().transfer(transfer(pad, "i64"))
    lowerer().transfer(transfer(1, "i64"))
    lowerer().transfer(transfer(3, "f32"))


def test_elementwise_reports_what_was_in_force() -> None:
    codes = np.zeros(3, np.uint32)
    asked = cast_on_target(
        codes, format_named("f32"), format_named("i16"), A5, rounding="odd", saturation=Saturation.OFF, scratch=True
    )
    assert (asked.rounding, asked.saturation, asked.overflow.value) == ("trunc", "off", "wrap")
    assert len(asked.warnings) == 2
    assert RoundMode.ODD.name in asked.warnings[0]
    for start, overflow in ((1, "saturate"), (0, "special")):
        chip = with_options(A5, {"ctrl_60_at_start": start})
        found = cast_on_target(codes, format_named("f32"), format_named("hif8"), chip)
        assert (found.rounding, found.overflow.value) == ("round", overflow)


def test_elementwise_takes_any_shape() -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3) - 0.5
    assert cast(values, "f32", "f16", target="a5").tolist() == values.tolist()
    assert cast(np.float32(2.5), "f32", "i32", target="a5").item() == 2
    assert cast(np.zeros((0, 4), np.float32), "f32", "f16", target="a5").shape == (0, 4)


@pytest.mark.parametrize(
    ("pairs", "src", "dst", "said", "unsaid"),
    [
        # i8 is exact in f16: i8 -> f16 -> i4 rounds nowhere; u8 has no negative numbers.
        ([("i8", "f16"), ("i8", "u8"), ("f16", "i4"), ("u8", "i4")], "i8", "i4", "i8 -> f16 -> i4 (the first", "u8 ->"),
        # Through u8 nothing of f16 is left; through f32 everything is.
        ([("bf16", "u8"), ("bf16", "f32"), ("u8", "f16"), ("f32", "f16")], "bf16", "f16", "-> f32 -> f16", "-> u8 ->"),
        (
            [("f32", "f16"), ("f32", "i4"), ("f16", "i8"), ("i4", "i8")],
            "f32",
            "i8",
            "f16 -> i8 (rounds twice)",
            "i4 ->",
        ),
    ],
)
def test_detours_keep_values(pairs: list[tuple[str, str]], src: str, dst: str, said: str, unsaid: str) -> None:
    error = no_such_pair("chip", pairs, src, dst)
    assert said in error.message
    assert unsaid not in error.message
