"""Sequences through scratch, and its size, against the tables and formulas of the datasheet."""

from __future__ import annotations

import oracle_a2a3
import pytest
from strided_cases import LOWERER, SPAN, tile_cast
from strided_listing import A2A3, CTRL_OFF, CTRL_ON, TMP, calls, lower, texts
from strided_model import Cast

from castsim.isa.errors import ScratchError
from castsim.isa.formats import format_named
from castsim.isa.modes import Saturation
from castsim.machines.strided.operations import (
    BitwiseAnd,
    DuplicateCode,
)
from castsim.machines.strided.plan import plan_cast, scratch_need


# ------------------------------------------------------------------------------------------------ scratch sequences
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


# ----------------------------------------------------------------------------------------------------- scratch sizes
def test_scratch_is_needed_by_three_pairs_and_off_only() -> None:
    for pair in oracle_a2a3.legal_pairs():
        for saturation in (None, Saturation.ON, Saturation.OFF):
            plan = plan_cast(A2A3, *map(format_named, pair), None, saturation, scratch=True)
            off = saturation is not Saturation.ON
            needs = pair in oracle_a2a3.TMP_BACKED and off
            assert bool(scratch_need(plan, A2A3.repeat, 2, 70, 96).total) == needs
        plan = plan_cast(A2A3, *map(format_named, pair), None, Saturation.OFF, scratch=False)
        assert scratch_need(plan, A2A3.repeat, 2, 70, 96).total == 0


@pytest.mark.parametrize(
    ("pair", "shape", "given", "missing"),
    [
        (("f32", "i16"), (3, 66, 80), 640, 32),  # 32 x (2 x 10 + 1) = 672
        (("f32", "i16"), (2, 640, 640), 2048, 512),  # 256 x 10
        (("f16", "i16"), (5, 64, 64), 224, 32),  # 4 x 64 = 256
        (("f16", "i8"), (5, 33, 64), 192, 32),  # 128 + 32 x 3 = 224
    ],
)
def test_scratch_too_small_names_the_missing_bytes(
    pair: tuple[str, str], shape: tuple[int, int, int], given: int, missing: int
) -> None:
    model = Cast(*pair, *shape, 0, 65536, TMP, None, "off")
    with pytest.raises(ScratchError, match=f"{missing} bytes missing") as caught:
        LOWERER.cast(tile_cast(model, given))
    assert caught.value.span is SPAN
    assert str(given) in caught.value.message
    assert str(given + missing) in caught.value.message
    LOWERER.cast(tile_cast(model, given + missing))
