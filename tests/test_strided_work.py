"""Vector operations on tiles as strided-repeat instructions: sequences worked by hand.

Source: docs/reference/a2a3.md sections 2, 6.
"""

from __future__ import annotations

import pytest
from strided_works import BANK, MNEMONICS, SPAN, TARGET, example, issued, listing, tile, vectors, work

from castsim.execution.tiles import ResolvedTileOp
from castsim.execution.tree import Lowered, operations
from castsim.isa.errors import IllegalError
from castsim.machines.strided.kernel_lowering import lower_work
from castsim.machines.strided.operations import ControlWrite
from castsim.machines.strided.strided_lowering import StridedLowerer
from castsim.targets.options import with_options

A, B, D = 0, 2 * BANK, BANK


def three(mnemonic: str, element: str, rows: int, cols: int, valid: tuple[int, int] | None = None) -> ResolvedTileOp:
    return work(mnemonic, *(tile(element, rows, cols, at, valid=valid) for at in (D, A, B)))


def two(mnemonic: str, element: str, rows: int, cols: int, valid: tuple[int, int] | None = None) -> ResolvedTileOp:
    return work(mnemonic, *(tile(element, rows, cols, at, valid=valid) for at in (D, A)))


# ----------------------------------------------------------------------------------------------------- elementwise
def test_count_mode_is_the_documented_bit_of_ctrl():
    values = [op.value for op in issued(three("tmin", "f16", 2, 4096, (2, 3600))) if isinstance(op, ControlWrite)]
    assert values == [1 << 48 | 1 << 56, 3600, 1 << 48, (1 << 128) - 1]


def test_a_tile_and_a_scalar_take_adjacent_rows_together():
    # The formulas have one startup and no drain for 32 x 64 of f16, 17 more where rows are longer and no whole repeats.
    assert listing(two("tadds", "f32", 7, 448)) == [f"vadds x49 [128] @{D}+256 <- @{A}+256"]
    assert listing(two("tadds", "f16", 32, 64)) == [f"vadds x16 [128] @{D}+256 <- @{A}+256"]
    counted = issued(two("tadds", "f32", 8, 96))
    assert [op.value for op in counted if isinstance(op, ControlWrite)] == [
        1 << 48 | 1 << 56, 768, 1 << 48, (1 << 128) - 1,
    ]  # fmt: skip
    assert [op.repeats for op in counted if not isinstance(op, ControlWrite)] == [12]


def test_an_older_library_takes_rows_of_a_scalar_one_by_one():
    # 7 x 448 of f32: published are 77 = 49 + 19 + startup; rows are 1792 bytes apart.
    older = with_options(TARGET, {"scalar_rows": "separate"})
    calls = list(operations(Lowered(0, lower_work(older, two("tadds", "f32", 7, 448))), None))
    assert [(op.repeats, op.destination.step) for op in calls] == [(7, 1792)] * 7


def test_division_by_and_of_a_scalar():
    # The destination is filled first; trecip is 1 / a (docs/reference/pto.md section 7.3).
    fill, barrier = f"vector_dup x32 [128] @{D}+256", "barrier"
    assert listing(two("tdivs", "f32", 32, 64)) == [fill, barrier, f"vdiv x32 [128] @{D}+256 <- @{A}+256 @{D}+256"]
    assert listing(two("trecip", "f32", 32, 64)) == [fill, barrier, f"vdiv x32 [128] @{D}+256 <- @{D}+256 @{A}+256"]
    dividend = work("tdivs", tile("f32", 32, 64, D), tile("f32", 32, 64, A), scalar_first=True)
    assert listing(dividend) == listing(two("trecip", "f32", 32, 64))


def test_division_in_place_multiplies_by_the_reciprocal():
    same = tile("f32", 32, 64, A)
    assert listing(work("tdivs", same, same)) == [f"vmuls x32 [128] @{A}+256 <- @{A}+256"]


def test_integers_are_divided_as_floats_of_their_width():
    # The source is converted in place: it is left holding floats.
    assert listing(two("tdivs", "i32", 4, 64)) == [
        f"vconv_s322f32 x4 [128] @{A}+256 <- @{A}+256", f"vector_dup x4 [128] @{D}+256", "barrier",
        f"vdiv x4 [128] @{D}+256 <- @{A}+256 @{D}+256", "barrier", f"vconv_f322s32z x4 [128] @{D}+256 <- @{D}+256",
    ]  # fmt: skip
    assert {operation.timing for operation in vectors(two("tdivs", "i16", 4, 128))} == {"vconv", "vector_dup", "vdiv"}


def test_reciprocal_root_with_scratch_divides_a_block_of_ones():
    made = work("trsqrt", tile("f32", 64, 64, D), tile("f32", 64, 64, A), tmp=tile("f32", 1, 8, B))
    assert listing(made) == [
        f"vector_dup x1 [128] @{B}+0", "set ctrl", "mask 0x1000", f"vsqrt x64 [128] @{D}+256 <- @{A}+256", "barrier",
        f"vdiv x64 [128] @{D}+256 <- @{B}+0 @{D}+256", "set ctrl", "mask [128]",
    ]  # fmt: skip


# ---------------------------------------------------------------------------------------------- moves and selections
def test_moves_copy_whole_blocks():
    assert listing(two("tmov", "f32", 64, 128)) == [f"copy_ubuf_to_ubuf x1024 [128] @{D}+32 <- @{A}+32"]
    # 23 of 24 columns: three blocks of each row of 96 bytes.
    assert listing(two("tmov", "f32", 2, 24, (2, 23))) == [
        f"copy_ubuf_to_ubuf x3 [128] @{D + 96 * row}+32 <- @{A + 96 * row}+32" for row in (0, 1)
    ]


def filled(pad: int, mnemonic: str = "tfillpad") -> ResolvedTileOp:
    src = tile("f32", 4, 32, A if mnemonic != "tfillpad_inplace" else D, valid=(3, 10), pad=pad)
    return work(mnemonic, tile("f32", 4, 32, D, pad=1), src)


def test_padding_fills_right_of_the_columns_and_below_the_rows():
    # Column 10 is lane 2 of block 1 of its row of 128 bytes; two blocks follow; row 3 is below.
    rest = [
        "mask 0xfc", f"vector_dup x3 {0xFC:#x} @{D + 32}+128", "mask [16]", f"vector_dup x3 [16] @{D + 64}+128",
        "mask [32]", f"vector_dup x1 [32] @{D + 384}+256", "mask [128]",
    ]  # fmt: skip
    copies = [f"copy_ubuf_to_ubuf x2 [128] @{D + 128 * row}+32 <- @{A + 128 * row}+32" for row in range(3)]
    assert listing(filled(0)) == [*copies, "barrier", *rest]
    assert listing(filled(0, "tfillpad_inplace")) == rest
    # The load has padded up to the block when both declare one pad.
    assert listing(filled(1)) == [*copies, "barrier", *rest[2:]]


def test_comparisons_take_whole_repeats_and_pack_a_bit_per_lane():
    made = work("tcmp", tile("i8", 2, 32, D), *(tile("f32", 2, 104, at, valid=(2, 100)) for at in (A, B)), mode="lt")
    # Two repeats of 64 lanes give 8 bytes each; rows of 416 and 32 bytes.
    assert listing(made) == [
        "mask [128]",
        f"vcmpv x2 [128] @{D}+8 <- @{A}+256 @{B}+256",
        f"vcmpv x2 [128] @{D + 32}+8 <- @{A + 416}+256 @{B + 416}+256",
        "mask [128]",
    ]


def test_unequal_is_equal_inverted_over_the_whole_tile():
    made = work("tcmps", tile("i8", 2, 32, D), tile("f16", 2, 128, A), mode="ne")
    # 64 bytes of destination are 32 lanes of 16 bits.
    assert listing(made)[-4:] == ["barrier", "mask [32]", f"vnot x1 [32] @{D}+256 <- @{D}+256", "mask [128]"]


def test_selection_per_row_through_the_compare_mask_register():
    mask, tmp = tile("i8", 2, 32, B), tile("u32", 1, 16, B + 8192)
    made = work("tsel", *(tile("f16", 2, 256, at, valid=(2, 200)) for at in (D, A, B + 16384)), mask=mask, tmp=tmp)
    b = B + 16384
    row = [
        ["mask [8]", f"vector_dup x1 [8] @{tmp.address}+0", "barrier", "set cmpmask", "barrier",
         "mask [128]", f"vsel x1 [128] @{D + 512 * k}+256 <- @{A + 512 * k}+256 @{b + 512 * k}+256 @{B + 32 * k}+16",
         "mask [72]",
         f"vsel x1 [72] @{D + 512 * k + 256}+256 <- @{A + 512 * k + 256}+256 @{b + 512 * k + 256}+256 "
         f"@{B + 32 * k + 16}+16"]
        for k in (0, 1)
    ]  # fmt: skip
    assert listing(made) == ["set ctrl", *row[0], *row[1], "set ctrl", "mask [128]"]


# ---------------------------------------------------------------------------------------------------------- refusals
def test_every_operation_of_the_text_is_lowered():
    for mnemonic in MNEMONICS:
        made = example(mnemonic)
        assert vectors(made), mnemonic
        assert all(operation.timing in TARGET.timing.vector for operation in vectors(made)), mnemonic


def test_unknown_operations_are_refused():
    with pytest.raises(IllegalError, match="tmatmul is not modelled") as caught:
        lower_work(TARGET, work("tmatmul", tile("f32", 8, 8)))
    assert caught.value.span == SPAN


def test_count_masks_at_start_are_refused():
    option = TARGET.options["count_mask_at_start"].model_copy(update={"value": 1})
    target = TARGET.model_copy(update={"options": {**TARGET.options, "count_mask_at_start": option}})
    with pytest.raises(IllegalError, match="count mode is on"):
        lower_work(target, example("tadd"))


def test_equal_operations_are_lowered_once():
    lowerer = StridedLowerer(TARGET)
    assert lowerer.lower_work(example("tadd")) is lowerer.lower_work(example("tadd"))
