"""Heads, tails and control writes of a cast against sequences worked out by hand."""

from __future__ import annotations

from itertools import product

import oracle_a2a3
import pytest
from strided_cases import LOWERER, SPAN, tile, tile_cast
from strided_listing import A2A3, CTRL_OFF, CTRL_ON, TMP, calls, lower, texts
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
        CTRL_ON, "vconv_f322f16f 2x64 65536+4 <- 0+8", "vconv_f322f16f 2x64 65824+4 <- 576+8",
        "vconv_f322f16f 2x64 66112+4 <- 1152+8", "mask 2", "vconv_f322f16f 3x2 65792+9 <- 512+18", "mask 128",
        CTRL_ON,
    ]  # fmt: skip


def test_rows_are_never_merged() -> None:
    # docs/reference/a2a3.md section 2.3: a tile with C = E costs R calls of one repeat each, although its rows
    # are contiguous.
    model = Cast("f32", "f16", 4, 64, 64, 0, 65536)
    head = [f"vconv_f322f16r 1x64 {65536 + 128 * row}+4 <- {256 * row}+8" for row in range(4)]
    assert texts(model) == [CTRL_ON, *head, CTRL_ON]


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
