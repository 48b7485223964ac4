"""Heads, tails and control writes of a cast against sequences worked out by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import oracle_a2a3
import pytest
from kit.paths import PROGRAMS
from kit.strided_cases import A2A3, CTRL_OFF, CTRL_ON, LOWERER, SPAN, TMP, calls, lower, texts, tile, tile_cast
from kit.strided_model import SIZE, Cast, repeat_shape

from castsim import cast, run
from castsim.execution.tree import TileCast
from castsim.isa.errors import IllegalError, ScratchError, TileError
from castsim.isa.formats import Overflow, Rounding, Saturation, format_named
from castsim.isa.pto.program import RoundMode
from castsim.machines.strided.plan import plan_cast
from castsim.machines.strided.strided_instructions import (
    BitwiseAnd,
    DuplicateCode,
)
from castsim.targets.description import with_options
from castsim.targets.loader import load_target


def test_head_and_tail() -> None:
    # f32 -> f16, 3 x 130 in tiles of 144 columns: E = 64, nRep = 2, nRem = 2. Row pitches 576 and 288 bytes, that is
    # 18 and 9 blocks. Head: one call of 2 repeats per row, strides 8 and 4. Tail: column 128, one repeat per row.
    model = Cast("f32", "f16", 3, 130, 144, 0, 65536, mode="floor")
    assert texts(model) == [
        CTRL_ON, "vconv_f322f16f 2x64 65536+4 <- 0+8", "vconv_f322f16f 2x64 65824+4 <- 576+8",
        "vconv_f322f16f 2x64 66112+4 <- 1152+8", "mask 2", "vconv_f322f16f 3x2 65792+9 <- 512+18", "mask 128",
        CTRL_ON,
    ]  # fmt: skip


@pytest.mark.parametrize("pair", oracle_a2a3.legal_pairs(), ids="-".join)
def test_control_register_brackets_the_cast(pair: tuple[str, str]) -> None:
    for saturation, with_tmp in product((None, "on", "off"), (False, True)):
        model = Cast(*pair, 1, 2, 32, 0, 65536, TMP if with_tmp else None, "rint", saturation)
        off = oracle_a2a3.effective_saturation(*pair, saturation, with_tmp) == "off"
        got = texts(model, 256)
        assert (got[0], got[-1]) == (CTRL_OFF if off else CTRL_ON, CTRL_ON)  # CTRL[59] starts at 0 and is put back
        for operation in calls(lower(model, 256)):
            policy = getattr(operation.action, "policy", None)
            if operation.timing == "vconv" and operation.destination.format.name == pair[1] and pair[1][0] in "iu":
                assert policy is not None
                assert policy.overflow is (Overflow.WRAP if off else Overflow.SATURATE)


@pytest.mark.parametrize("pair", oracle_a2a3.legal_pairs(), ids="-".join)
def test_mnemonic_and_mode(pair: tuple[str, str]) -> None:
    # Stems: f/s/u and the width, bf16 as itself (docs/reference/a2a3.md section 1).
    named = [name.replace("i", "s") for name in pair]
    stem = "vconv_deq" if pair == ("i32", "f16") else f"vconv_{named[0]}2{named[1]}"
    for mode in (None, *RoundMode):
        asked = "rint" if mode is None else mode.name.lower()
        plan = plan_cast(A2A3, format_named(pair[0]), format_named(pair[1]), mode, Saturation.ON, scratch=False)
        rounding = oracle_a2a3.effective_mode(*pair, asked)
        selectable, fallback = oracle_a2a3._PAIRS[pair]
        # Where the last column of the table says "plain", NONE and every unlisted mode take the unsuffixed form.
        plain = not selectable or (fallback == oracle_a2a3.PLAIN and asked in ("none", "odd"))
        assert plan.mnemonic == (stem if plain else stem + oracle_a2a3.SUFFIX[rounding])
        assert plan.rounding is Rounding(rounding)
        honoured = not selectable or asked == "none" or oracle_a2a3.SUFFIX[asked] in selectable
        if selectable:
            assert bool(plan.warnings) == (not honoured)


def test_sequence_a() -> None:
    # f32 -> i16 OFF with tmp, 3 x 66 in tiles of 80 columns: head calls of one repeat at stride 8, then the tail:
    # 3 rows at the source pitch of 320 bytes = 10 blocks, on both sides of tmp; destination pitch 160 bytes = 5.
    model = Cast("f32", "i16", 3, 66, 80, 0, 65536, TMP, "trunc", "off")

    def call(wide: str, narrow: str) -> list[str]:
        return [CTRL_ON, f"vconv_f322s32z {wide}", "barrier V", CTRL_OFF, f"vconv_s322s16 {narrow}"]

    expected = [CTRL_OFF]
    for row in range(3):
        expected += call(f"1x64 {TMP}+8 <- {320 * row}+8", f"1x64 {65536 + 160 * row}+4 <- {TMP}+8")
    expected += ["mask 2", *call(f"3x2 {TMP}+10 <- 256+10", f"3x2 {65536 + 128}+5 <- {TMP}+10"), "mask 128", CTRL_ON]
    assert texts(model, 704) == expected  # 32 x (2 x 10 + 1) = 672 bytes, and one block to spare


def chunk_b(lanes: int, dst: int, src: int) -> list[str]:
    return [
        f"mask {lanes}", CTRL_ON, f"vconv_f162s32a 1x{lanes} {TMP}+8 <- {src}+8", "barrier V", CTRL_OFF,
        f"vconv_s322s16 1x{lanes} {dst}+8 <- {TMP}+8", "barrier V",
    ]  # fmt: skip


def test_sequence_b() -> None:
    # f16 -> i16 OFF with tmp, 2 x 200 in tiles of 208 columns (416 bytes a row): head of one repeat per row, sub-chunks
    # of 64 and 64 lanes; tail of 72 lanes: sub-chunks of 64 and 8. The mask is written full after each call.
    model = Cast("f16", "i16", 2, 200, 208, 0, 65536, TMP, "round", "off")
    expected = [CTRL_OFF]
    for row in (0, 416):
        expected += [*chunk_b(64, 65536 + row, row), *chunk_b(64, 65536 + row + 128, row + 128), "mask 128"]
    expected.append("mask 72")
    for row in (256, 672):
        expected += [*chunk_b(64, 65536 + row, row), *chunk_b(8, 65536 + row + 128, row + 128)]
    expected += ["mask 128", "mask 128", CTRL_ON]
    assert texts(model, 256) == expected


def test_sequence_c() -> None:
    # f16 -> i8 OFF with tmp, 2 x 70 in tiles of 96 columns: tail only, 192 source bytes and 96 destination bytes a row.
    model = Cast("f16", "i8", 2, 70, 96, 0, 65536, TMP, None, "off")

    def chunk(lanes: int, dst: int, src: int) -> list[str]:
        one = f"1x{lanes}"
        return [
            f"mask {lanes}", CTRL_ON, f"vconv_f162s32r {one} {TMP}+8 <- {src}+8", "barrier V", CTRL_OFF,
            f"vconv_s322s16 {one} {TMP}+8 <- {TMP}+8", "barrier V", f"vector_dup {one} {TMP + 128}+8 <- ",
            "barrier V", f"vand {one} {TMP}+8 <- {TMP}+8, {TMP + 128}+8", "barrier V",
            f"vconv_s162f16 {one} {TMP + 128}+8 <- {TMP}+8", "barrier V",
            f"vconv_f162s8z {one} {dst}+8 <- {TMP + 128}+8", "barrier V",
        ]  # fmt: skip

    expected = [CTRL_OFF, "mask 70"]
    for row in (0, 1):
        expected += [*chunk(64, 65536 + 96 * row, 192 * row), *chunk(6, 65536 + 96 * row + 64, 192 * row + 128)]
    expected += ["mask 128", "mask 128", CTRL_ON]
    assert texts(model, 256) == expected
    operations = calls(lower(model, 256))
    duplicates = [operation.action for operation in operations if operation.mnemonic == "vector_dup"]
    assert duplicates == [DuplicateCode(255)] * 4
    assert sum(isinstance(operation.action, BitwiseAnd) for operation in operations) == 4


@pytest.mark.parametrize(
    ("pair", "shape", "given", "missing"),
    [
        (("f32", "i16"), (3, 66, 80), 640, 32),  # 32 x (2 x 10 + 1) = 672
        (("f32", "i16"), (2, 640, 640), 2048, 512),  # 256 x 10
        (("f16", "i16"), (5, 64, 64), 224, 32),  # 4 x 64 = 256
        (("f16", "i8"), (5, 33, 64), 192, 32),  # 128 + 32 x 3 = 224
    ],
)
def test_scratch_too_small_names_the_missing_bytes(pair, shape, given, missing) -> None:
    model = Cast(*pair, *shape, 0, 65536, TMP, None, "off")
    with pytest.raises(ScratchError, match=f"{missing} bytes too few") as caught:
        LOWERER.cast(tile_cast(model, given))
    assert caught.value.span is SPAN
    assert str(given) in caught.value.message
    assert str(given + missing) in caught.value.message
    LOWERER.cast(tile_cast(model, given + missing))


@pytest.mark.parametrize(
    ("code", "scale"), [(0x3800, 0.5), (0x4200, 3.0), (0x2E66, float(np.float16(0.1))), (0xBC00, -1.0)]
)
def test_a_dequantisation_scale_other_than_one(code, scale, tmp_path):
    path = tmp_path / "scaled.toml"
    path.write_text(
        f'base = "a2a3"\nname = "scaled"\n[dequantisation_scale]\ncode = {code}\nsource = "test"\nstatus = "assumed"\n'
    )
    target = load_target(path)
    values = np.array([0, 1, -7, 2049, 100_000, -(2**31), 2**31 - 1, 65519, 65520, 131_039], np.int32)
    # The product of a 32-bit integer and a half is exact in float64; one rounding, to infinity if need be.
    exact = values.astype(np.float64) * scale
    with np.errstate(over="ignore"):
        wanted = exact.astype(np.float16)
        wanted_of_array = (np.resize(values, (8, 128)) * scale).astype(np.float16)
    assert cast(values, "i32", "f16", target=target).tolist() == wanted.tolist()
    array = np.resize(values, (8, 128)).astype(np.int32)
    result = run(PROGRAMS / "i32_to_f16_deq.pto", target, inputs={"src": array})
    assert np.array_equal(result.outputs["dst"], wanted_of_array)


def lower_cast(src: object, dst: object, tmp: object = None, **asked: object) -> None:
    LOWERER.cast(TileCast(src, dst, tmp, asked.get("mode"), asked.get("saturation"), SPAN))


@pytest.mark.parametrize(
    ("src", "dst", "message"),
    [
        (tile("a", "f32", 2, 20, 0), tile("b", "f16", 2, 20, 4096), "80 bytes per line, not a multiple of 32"),
        (tile("a", "f32", 2, 32, 16), tile("b", "f16", 2, 32, 4096), "byte 16, which is not 32-byte aligned"),
        (tile("a", "f32", 2, 32, 196_608 - 224), tile("b", "f16", 2, 32, 0), "32 bytes past the end"),
        (tile("a", "f32", 2, 32, -32), tile("b", "f16", 2, 32, 4096), "takes bytes -32"),
        (tile("a", "f32", 2, 32, 0, (3, 32)), tile("b", "f16", 2, 32, 4096, (3, 32)), "3 x 32 exceeds 2 x 32"),
        (tile("a", "f32", 2, 32, 0), tile("b", "f16", 2, 64, 4096), "valid region of %a is 2 x 32, of %b 2 x 64"),
        (tile("a", "f32", 2, 32, 0, (1, 32)), tile("b", "f16", 2, 32, 4096), "valid region of %a is 1 x 32"),
        (tile("a", "f16", 2, 32, 0, (2, 31)), tile("b", "i4", 2, 32, 4096, (2, 31)), "must be even"),
        (tile("a", "f32", 2, 32, 0), tile("b", "f16", 2, 32, 128), "partly overlaps"),
        (tile("a", "f16", 2, 32, 0), tile("b", "f32", 2, 32, 0), "partly overlaps"),
    ],
)
def test_tiles_that_do_not_fit(src: object, dst: object, message: str) -> None:
    with pytest.raises(TileError, match=message):
        lower_cast(src, dst)


def test_scaled_conversion_writes_its_scale_before_every_call() -> None:
    # i32 -> f16, 2 x 66: 1.0 as f16 is 0x3C00. Pitches 80 * 4 = 320 bytes = 10 blocks, 160 bytes = 5 blocks.
    model = Cast("i32", "f16", 2, 66, 80, 0, 65536, mode="floor")
    before = ["deqscale 0x3c00", "barrier V"]
    assert texts(model) == [
        CTRL_ON, *before, "vconv_deq 1x64 65536+4 <- 0+8", *before, "vconv_deq 1x64 65696+4 <- 320+8", "mask 2",
        *before, "vconv_deq 2x2 65664+5 <- 256+10", "mask 128", CTRL_ON,
    ]  # fmt: skip


@pytest.mark.parametrize("rows", [0, 1, 2, 254, 255, 256, 300, 511])
@pytest.mark.parametrize("pair", [("f32", "f16"), ("f16", "u8"), ("i64", "f32")], ids="-".join)
def test_number_of_calls_and_repeats(pair: tuple[str, str], rows: int) -> None:
    per = repeat_shape(*pair)[0]
    for cols in (0, 1, per - 1, per, per + 1, 2 * per, 3 * per + per // 2):
        declared = -(-max(cols, 1) // 32) * 32
        if max(rows, 1) * declared * (SIZE[pair[0]] + SIZE[pair[1]]) > 196_608:
            continue
        whole, rest = divmod(cols, per)
        issue = lower(Cast(*pair, rows, cols, declared, 0, max(rows, 1) * declared * SIZE[pair[0]]))
        operations = calls(issue)
        # docs/reference/a2a3.md section 6.1: two CTRL writes, two mask writes if there is a tail, nothing
        # else but the conversions.
        assert len(issue) - len(operations) == 2 + (2 if rest and rows else 0)
        # Head R x ceil(nRep / 255), tail ceil(R / 255); repeats R x nRep + R if there is a tail.
        assert len(operations) == rows * -(-whole // 255) + (-(-rows // 255) if rest else 0)
        assert sum(operation.repeats for operation in operations) == rows * whole + (rows if rest else 0)


def test_saturation_asked_in_vain_is_reported() -> None:
    lowered = LOWERER.cast(tile_cast(Cast("f32", "i32", 1, 2, 32, 0, 65536, saturation="off")))
    assert any("OFF is ignored" in warning for warning in lowered.warnings)
    lowered = LOWERER.cast(tile_cast(Cast("f32", "i32", 1, 2, 32, 0, 65536, TMP, saturation="off"), 32))
    assert not lowered.warnings


def test_pair_outside_the_table_names_the_legal_ones() -> None:
    with pytest.raises(IllegalError, match="f32 -> i8") as caught:
        LOWERER.cast(TileCast(tile("a", "f32", 1, 32, 0), tile("b", "i8", 1, 32, 1024), None, None, None, SPAN))
    assert {"f32 -> f16", "f32 -> i16"} <= set(caught.value.legal)
    assert caught.value.span is SPAN


def test_casts_are_refused_while_masks_are_counts():
    target = with_options(load_target("a2a3"), {"count_mask_at_start": "1"})
    with pytest.raises(IllegalError, match="read the lane masks of a cast as counts") as error:
        run(PROGRAMS / "f32_to_f16.pto", target, timing_only=True)
    assert error.value.span is not None
