"""Heads, tails and control writes of a cast against sequences worked out by hand."""

from __future__ import annotations

from itertools import product

import oracle_a2a3
import pytest
from strided_cases import LOWERER, SPAN, tile, tile_cast
from strided_listing import A2A3, CTRL_OFF, CTRL_ON, TMP, calls, lower, text, texts
from strided_model import SIZE, Cast, repeat_shape

from castsim.execution.tiles import TileCast
from castsim.isa.errors import IllegalError
from castsim.isa.formats import format_named
from castsim.isa.modes import Overflow, Rounding, Saturation
from castsim.isa.pto.program import RoundMode
from castsim.machines.strided.operations import (
    ElementwiseCast,
    RoundToIntegral,
    ScaledConvert,
)
from castsim.machines.strided.plan import plan_cast

# ---------------------------------------------------------------------------------------------------- head and tail


def test_head_and_tail() -> None:
    # f32 -> f16, 3 x 130 in tiles of 144 columns: E = 64, nRep = 2, nRem = 2. Row pitches 576 and 288 bytes, that is
    # 18 and 9 blocks. Head: one call of 2 repeats per row, strides 8 and 4. Tail: column 128, one repeat per row.
    model = Cast("f32", "f16", 3, 130, 144, 0, 65536, mode="floor")
    assert texts(model) == [
        CTRL_ON,
        "vconv_f322f16f 2x64 65536+4 <- 0+8",
        "vconv_f322f16f 2x64 65824+4 <- 576+8",
        "vconv_f322f16f 2x64 66112+4 <- 1152+8",
        "mask 2",
        "vconv_f322f16f 3x2 65792+9 <- 512+18",
        "mask 128",
        CTRL_ON,
    ]


def test_rows_are_never_merged() -> None:
    # docs/reference/a2a3.md section 2.3: a tile with C = E costs R calls of one repeat each, although its rows
    # are contiguous.
    model = Cast("f32", "f16", 4, 64, 64, 0, 65536)
    head = [f"vconv_f322f16r 1x64 {65536 + 128 * row}+4 <- {256 * row}+8" for row in range(4)]
    assert texts(model) == [CTRL_ON, *head, CTRL_ON]


def test_tail_alone_goes_down_the_rows() -> None:
    # R = 256, C = 32 f32 -> f16: two tail calls, 255 rows and 1. Pitches 128 and 64 bytes, 4 and 2 blocks.
    model = Cast("f32", "f16", 256, 32, 32, 0, 65536)
    assert texts(model) == [
        CTRL_ON,
        "mask 32",
        "vconv_f322f16r 255x32 65536+2 <- 0+4",
        f"vconv_f322f16r 1x32 {65536 + 255 * 64}+2 <- {255 * 128}+4",
        "mask 128",
        CTRL_ON,
    ]


def test_rows_longer_than_255_repeats() -> None:
    # f32 -> bf16, 1 x 16385: nRep = 256 = 255 + 1, nRem = 1. The second call starts 255 * 64 elements on; declared
    # columns 16400: 65600 bytes = 2050 blocks, 32800 bytes = 1025 blocks.
    model = Cast("f32", "bf16", 1, 16385, 16400, 0, 98304, mode="odd")
    assert texts(model) == [
        CTRL_ON,
        "vconv_f322bf16r 255x64 98304+4 <- 0+8",
        f"vconv_f322bf16r 1x64 {98304 + 255 * 128}+4 <- {255 * 256}+8",
        "mask 1",
        f"vconv_f322bf16r 1x1 {98304 + 256 * 128}+1025 <- {256 * 256}+2050",
        "mask 128",
        CTRL_ON,
    ]


def test_int4_pointer_counts_bytes() -> None:
    # f16 -> s4, 2 x 192 in tiles of 192 columns: one head call per row (E = 128, s4 stride 2 blocks), row pitches 384
    # and 192 bytes; the tail's s4 address is 128 bytes into the row, where 64 would continue the packed data (2.4).
    model = Cast("f16", "i4", 2, 192, 192, 0, 65536, mode="none")
    assert texts(model) == [
        CTRL_ON,
        "vconv_f162s4 1x128 65536+2 <- 0+8",
        "vconv_f162s4 1x128 65728+2 <- 384+8",
        "mask 64",
        "vconv_f162s4 2x64 65664+6 <- 256+12",
        "mask 128",
        CTRL_ON,
    ]


def test_int4_source_of_more_than_255_repeats() -> None:
    # s4 -> f16, 1 x 32768: 256 repeats; the second call reads from byte 128 * 255 of the row (2.4).
    model = Cast("i4", "f16", 1, 32768, 32768, 0, 65536)
    assert texts(model)[1:-1] == [
        "vconv_s42f16 255x128 65536+8 <- 0+2",
        f"vconv_s42f16 1x128 {65536 + 255 * 256}+8 <- {255 * 128}+2",
    ]


def test_scaled_conversion_writes_its_scale_before_every_call() -> None:
    # i32 -> f16, 2 x 66: 1.0 as f16 is 0x3C00. Pitches 80 * 4 = 320 bytes = 10 blocks, 160 bytes = 5 blocks.
    model = Cast("i32", "f16", 2, 66, 80, 0, 65536, mode="floor")
    before = ["deqscale 0x3c00", "barrier V"]
    assert texts(model) == [
        CTRL_ON,
        *before,
        "vconv_deq 1x64 65536+4 <- 0+8",
        *before,
        "vconv_deq 1x64 65696+4 <- 320+8",
        "mask 2",
        *before,
        "vconv_deq 2x2 65664+5 <- 256+10",
        "mask 128",
        CTRL_ON,
    ]


# docs/reference/a2a3.md sections 2.1 and 3.5: fields of 8 bits. 2064 i32 are 258 blocks, cut to 2; 4128 f16 are 258
# blocks, cut to 2.
@pytest.mark.parametrize(
    ("pair", "cols", "tail"),
    [
        (("i32", "f16"), 2064, f"vconv_deq 2x16 {98304 + 2048 * 2}+129 <- {2048 * 4}+2"),
        (("i4", "f16"), 4128, f"vconv_s42f16 2x32 {98304 + 4096 * 2}+2 <- 4096+129"),
    ],
)
def test_narrow_stride_fields(pair: tuple[str, str], cols: int, tail: str) -> None:
    assert tail in texts(Cast(*pair, 2, cols, cols, 0, 98304))


def test_wide_stride_fields() -> None:
    # 65504 u8 are 2047 blocks and fit 12 bits; as f16 they are 4094 blocks and fit too. 65536 is cut to 0 by the
    # 16-bit operand before it becomes a stride (2.3), harmlessly: there is room for one row only.
    for cols, strides in ((65504, (4094, 2047)), (65536, (0, 0))):
        tail = calls(lower(Cast("u8", "f16", 1, cols - 64, cols, 131_072, 0)))[-1]
        assert (tail.destination.repeat_stride, tail.sources[0].repeat_stride) == strides


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


@pytest.mark.parametrize("pair", oracle_a2a3.legal_pairs(), ids="-".join)
def test_nothing_is_converted_in_an_empty_tile(pair: tuple[str, str]) -> None:
    for rows, cols in ((0, 64), (4, 0), (0, 0), (0, 66)):
        operations = lower(Cast(*pair, rows, cols, 96, 0, 65536))
        assert not calls(operations)
        assert [text(operation) for operation in (operations[0], operations[-1])][-1] == CTRL_ON


# ------------------------------------------------------------------------------------------------- control and policy


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


def test_actions() -> None:
    def action(src: str, dst: str) -> object:
        return calls(lower(Cast(src, dst, 1, 2, 32, 0, 65536)))[0].action

    assert isinstance(action("f32", "f32"), RoundToIntegral)
    assert isinstance(action("i32", "f32"), ElementwiseCast)
    scaled = action("i32", "f16")
    assert isinstance(scaled, ScaledConvert)
    assert scaled.scale == 0x3C00


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
