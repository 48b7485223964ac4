"""Row and column operations as strided-repeat instructions: sequences worked by hand.

Source: docs/reference/pto.md section 7.
"""

from __future__ import annotations

import pytest
from strided_works import BANK, column, listing, tile, work

from castsim.execution.tiles import ResolvedTileOp

A, B, D = 0, 2 * BANK, BANK


# ------------------------------------------------------------------------------------------- rows: reductions, spreads
def reduction(
    mnemonic: str, element: str, rows: int, cols: int, dst_layout: str = "col_major", tmp: tuple[int, int] | None = None
) -> ResolvedTileOp:
    dst = column(element, rows, D) if dst_layout == "col_major" else tile(element, rows, 8, D, valid=(rows, 1))
    source = tile(element, rows, -(-cols // 16) * 16, A, valid=(rows, cols))
    return work(mnemonic, dst, source, tmp=tile(element, *(tmp or (rows, -(-cols // 16) * 16)), B))


def test_a_row_of_one_repeat_is_reduced_at_once():
    # One element of result per row: 4 bytes apart in a column, a row pitch apart in a row-major tile.
    assert listing(reduction("trowsum", "f32", 300, 64)) == [
        f"vcadd x255 [128] @{D}+4 <- @{A}+256",
        f"vcadd x45 [128] @{D + 1020}+4 <- @{A + 255 * 256}+256",
    ]
    assert listing(reduction("trowmax", "f16", 16, 100)) == [
        "mask [100]",
        f"vcmax x16 [100] @{D}+2 <- @{A}+224",
        "mask [128]",
    ]
    assert listing(reduction("trowmin", "f32", 16, 64, "row_major")) == [f"vcmin x16 [128] @{D}+32 <- @{A}+256"]


@pytest.mark.parametrize(
    ("tmp", "step"),
    [
        pytest.param((20, 336), 1344, id="of the source's shape"),
        pytest.param((20, 128), 512, id="of two repeats a row"),
        pytest.param((10, 336), 512, id="too small for its rows to lie apart"),
        pytest.param((40, 64), 512, id="of narrow rows"),
    ],
)
def test_repeats_of_a_row_are_joined_in_pairs(tmp: tuple[int, int], step: int):
    # 5 repeats and 10 columns of f32, rows 1344 bytes apart: two pairs, the odd repeat and the rest onto the first, one
    # pair of pairs. Of each row tmp holds two repeats, as far apart as its rows are.
    pitch = 1344
    assert listing(reduction("trowsum", "f32", 20, 330, tmp=tmp)) == [
        f"vadd x20 [128] @{B}+{step} <- @{A}+{pitch} @{A + 256}+{pitch}",
        f"vadd x20 [128] @{B + 256}+{step} <- @{A + 512}+{pitch} @{A + 768}+{pitch}", "barrier",
        f"vadd x20 [128] @{B}+{step} <- @{B}+{step} @{A + 1024}+{pitch}", "barrier", "mask [10]",
        f"vadd x20 [10] @{B}+{step} <- @{B}+{step} @{A + 1280}+{pitch}", "barrier", "mask [128]",
        f"vadd x20 [128] @{B}+{step} <- @{B}+{step} @{B + 256}+{step}", "barrier",
        f"vcadd x20 [128] @{D}+4 <- @{B}+{step}",
    ]  # fmt: skip


def test_a_repeat_and_a_rest_go_through_a_copy():
    assert listing(reduction("trowmax", "f32", 4, 96)) == [
        f"vcopy x4 [128] @{B}+384 <- @{A}+384", "barrier", "mask [32]",
        f"vmax x4 [32] @{B}+384 <- @{B}+384 @{A + 256}+384", "barrier", "mask [128]",
        f"vcmax x4 [128] @{D}+4 <- @{B}+384",
    ]  # fmt: skip


def test_integers_end_on_the_scalar_unit():
    # Two blocks of eight i32 per row: the second joined onto the first in tmp, then eight reads per row.
    row = ["mask [8]", "vcopy x1 [8] @{b}+0 <- @{a}+64", "barrier", "vadd x1 [8] @{b}+0 <- @{b}+0 @{a2}+64", "barrier",
           "setflag", "waitflag", *["scalar read"] * 8, "scalar arithmetic", "mask [128]"]  # fmt: skip
    expected = [line.format(b=B, a=A + 64 * k, a2=A + 64 * k + 32) for k in range(3) for line in row]
    assert listing(reduction("trowsum", "i32", 3, 16)) == expected


def test_products_are_halved_down_to_a_block():
    # 64 -> 32 -> 16 -> 8 lanes, then eight reads and a result for each of two rows.
    step = "vmul x2 [{n}] @{b}+256 <- @{b}+256 @{c}+256"
    halving = []
    for lanes in (32, 16, 8):
        halving += [f"mask [{lanes}]", step.format(n=lanes, b=B, c=B + 4 * lanes), "barrier"]
    assert listing(reduction("trowprod", "f32", 2, 64)) == [
        f"vcopy x2 [128] @{B}+256 <- @{A}+256", "barrier", *halving, "setflag", "waitflag",
        *(["scalar read"] * 8 + ["scalar arithmetic"]) * 2, "mask [128]",
    ]  # fmt: skip


def test_a_column_of_values_is_spread_to_blocks_240_rows_at_a_time():
    # ceil(R/8) x 256 bytes of tmp below 256 rows, else 7680 (docs/reference/pto.md section 7.4): 240 rows of 32 bytes.
    made = work("trowexpandmul", tile("f32", 260, 64, D), tile("f32", 260, 64, A), column("f32", 260, B),
                tmp=tile("f32", 1, 2048, B + 8192))  # fmt: skip
    tmp = B + 8192
    assert listing(made) == [
        f"vbrcb x30 [128] @{tmp}+256 <- @{B}+32", "barrier", f"vmul x240 [128] @{D}+256 <- @{A}+256 @{tmp}+32",
        "barrier", f"vbrcb x3 [128] @{tmp}+256 <- @{B + 960}+32", "barrier",
        f"vmul x20 [128] @{D + 240 * 256}+256 <- @{A + 240 * 256}+256 @{tmp}+32",
    ]  # fmt: skip


def test_without_scratch_the_window_at_the_end_of_the_buffer_is_used():
    made = work("trowexpandsub", tile("f16", 16, 128, D), column("f16", 16, B), tile("f16", 16, 128, A))
    # 8 elements of f16 are 16 bytes per repeat. The broadcast operand comes first: its order is kept.
    assert listing(made) == [
        f"vbrcb x2 [128] @188416+256 <- @{B}+16",
        "barrier",
        f"vsub x16 [128] @{D}+256 <- @188416+32 @{A}+256",
    ]


def test_a_block_per_row_is_read_as_it_stands():
    made = work("trowexpandexpdif", tile("f32", 16, 96, D), tile("f32", 16, 96, A), tile("f32", 16, 8, B))
    assert listing(made) == [
        f"vsub x16 [128] @{D}+384 <- @{A}+384 @{B}+32", "mask [32]",
        f"vsub x16 [32] @{D + 256}+384 <- @{A + 256}+384 @{B}+32", "barrier", "mask [128]",
        f"vexp x24 [128] @{D}+256 <- @{D}+256",
    ]  # fmt: skip


def test_rows_are_filled_one_by_one():
    made = work("trowexpand", tile("f32", 2, 64, D), tile("f32", 2, 8, A, valid=(2, 1)))
    assert listing(made) == [
        "setflag", "waitflag", "set ctrl", "mask 0x40",
        "scalar read", f"vector_dup x1 [128] @{D}+256",
        "scalar read", f"vector_dup x1 [128] @{D + 256}+256",
        "set ctrl", "mask [128]",
    ]  # fmt: skip


# ------------------------------------------------------------------------------------------------------- columns
def test_columns_in_row_order():
    # Row 0 of 96 x 4 bytes is 12 blocks. The formulas have 17.5 cycles for every further row of a repeat and 35 where a
    # rest needs a call of its own, so the repeats of all rows come first, then what is left of them under one mask.
    made = work("tcolmax", tile("f32", 1, 96, D), tile("f32", 3, 96, A))
    assert listing(made) == [
        f"copy_ubuf_to_ubuf x12 [128] @{D}+32 <- @{A}+32", "barrier", "barrier",
        f"vmax x1 [128] @{D}+256 <- @{D}+256 @{A + 384}+256", "barrier",
        f"vmax x1 [128] @{D}+256 <- @{D}+256 @{A + 768}+256", "barrier", "mask [32]",
        f"vmax x1 [32] @{D + 256}+256 <- @{D + 256}+256 @{A + 384 + 256}+256", "barrier",
        f"vmax x1 [32] @{D + 256}+256 <- @{D + 256}+256 @{A + 768 + 256}+256", "barrier", "mask [128]",
    ]  # fmt: skip


def test_sums_of_columns_in_row_order():
    # In count mode: 19.5 cycles for every further row, and 2 for each further repeat of it, but no second step.
    made = work("tcolsum", tile("f32", 1, 96, D), tile("f32", 3, 96, A))
    rows = []
    for row in (1, 2):
        at = A + 384 * row
        rows += [
            f"vadd x1 [128] @{D}+256 <- @{D}+256 @{at}+256",
            f"vadd x1 [32] @{D + 256}+256 <- @{D + 256}+256 @{at + 256}+256",
            "barrier",
        ]
    assert listing(made) == [
        f"copy_ubuf_to_ubuf x12 [128] @{D}+32 <- @{A}+32", "barrier", "barrier", "set ctrl", "mask 0x60", *rows,
        "set ctrl", "mask [128]",
    ]  # fmt: skip


def test_columns_in_pairs():
    # Five rows: (0,1) and (2,3) into tmp, row 4 onto the first; then the pair into the destination. 64 rows of 64 take
    # 1263 cycles (targets/a2a3_measured_operations.csv), 64 steps of 19.5: so a barrier stands behind every pair.
    made = work("tcolsum", tile("f32", 1, 64, D), tile("f32", 5, 64, A), tmp=tile("f32", 3, 64, B), binary=True)
    assert listing(made) == [
        "barrier", "set ctrl", "mask 0x40", f"vadd x1 [128] @{B}+256 <- @{A}+256 @{A + 256}+256", "barrier",
        f"vadd x1 [128] @{B + 256}+256 <- @{A + 512}+256 @{A + 768}+256", "barrier",
        f"vadd x1 [128] @{B}+256 <- @{B}+256 @{A + 1024}+256", "barrier",
        f"vadd x1 [128] @{D}+256 <- @{B}+256 @{B + 256}+256", "barrier", "set ctrl", "mask [128]",
    ]  # fmt: skip


def test_one_row_of_columns_is_copied():
    made = work("tcolsum", tile("f32", 1, 64, D), tile("f32", 1, 64, A))
    assert listing(made) == [f"copy_ubuf_to_ubuf x8 [128] @{D}+32 <- @{A}+32", "barrier"]


def test_spread_columns_read_one_row_again_and_again():
    made = work("tcolexpandmul", tile("f32", 4, 64, D), tile("f32", 4, 64, A), tile("f32", 1, 64, B))
    assert listing(made) == [f"vmul x4 [128] @{D}+256 <- @{A}+256 @{B}+0"]
    assert listing(work("tcolexpand", tile("i8", 4, 256, D), tile("i8", 1, 256, A))) == [
        f"vcopy x4 [128] @{D}+256 <- @{A}+0"  # 256 bytes are 128 lanes of 16 bits
    ]
