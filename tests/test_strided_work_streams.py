"""The streams of vector operations cover exactly what the operation is about."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strided_works import BANK, TARGET, column, cycles, example, tile, touched, vectors, work

from castsim.execution.tiles import ResolvedTileOp, Tile
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Role

# Operations of one instruction on so many tiles.
OF_TILES = {
    count: {
        rule.mnemonic: rule.instructions
        for rule in TARGET.tile_operations
        if rule.structure == "elementwise"
        and VECTOR_OPERATIONS[rule.mnemonic].forms[0].count(Role.SOURCE) == count
        and len(rule.instructions) == 1
    }
    for count in (1, 2)
}

SHAPES = st.tuples(
    st.integers(1, 40), st.integers(1, 300), st.integers(0, 3), st.integers(0, 2), st.sampled_from(["f32", "f16"])
)


def valid_bytes(one: Tile) -> Counter[int]:
    """The bytes of the valid region of a row-major tile, each once."""
    size = one.element_bits // 8
    return Counter(
        one.address + row * one.row_pitch + at for row in range(one.valid_rows) for at in range(one.valid_cols * size)
    )


def written(made: ResolvedTileOp, mnemonics: tuple[str, ...]) -> Counter[int]:
    return Counter(byte for one in vectors(made) if one.mnemonic in mnemonics for byte in touched(one, 0))


def read(made: ResolvedTileOp, number: int, mnemonics: tuple[str, ...]) -> Counter[int]:
    return Counter(byte for one in vectors(made) if one.mnemonic in mnemonics for byte in touched(one, number + 1))


def tiles(shape: tuple[int, int, int, int, str], count: int) -> list[Tile]:
    """Tiles with one valid region, each with columns of its own behind it."""
    rows, cols, wider, lower, element = shape
    step = 256 // (32 if element == "f32" else 16)
    cols = min(cols, 96) if rows > 20 else cols
    return [
        tile(element, rows + lower, -(-cols // step) * step + wider * step * number, number * BANK, valid=(rows, cols))
        for number in range(count)
    ]


@settings(max_examples=60, deadline=None)
@given(SHAPES, st.sampled_from(sorted(OF_TILES[2])))
def test_two_tiles(shape, mnemonic):
    dst, one, two = tiles(shape, 3)
    made = work(mnemonic, dst, one, two)
    names = OF_TILES[2][mnemonic]
    assert written(made, names) == valid_bytes(dst)
    assert (read(made, 0, names), read(made, 1, names)) == (valid_bytes(one), valid_bytes(two))


@settings(max_examples=60, deadline=None)
@given(SHAPES, st.sampled_from(sorted(OF_TILES[1])))
def test_one_tile(shape, mnemonic):
    dst, one = tiles(shape, 2)
    made, names = work(mnemonic, dst, one), OF_TILES[1][mnemonic]
    assert written(made, names) == valid_bytes(dst)
    assert read(made, 0, names) == valid_bytes(one)


@settings(max_examples=40, deadline=None)
@given(SHAPES)
def test_every_step_of_a_division_covers_the_tile(shape):
    dst, one = tiles(shape, 2)
    made = work("trecip", dst, one)
    for name in ("vector_dup", "vdiv"):
        assert written(made, (name,)) == valid_bytes(dst)
    assert read(made, 1, ("vdiv",)) == valid_bytes(one)


@settings(max_examples=40, deadline=None)
@given(SHAPES, st.booleans())
def test_row_broadcasts(shape, dense):
    dst, one = tiles(shape, 2)
    values = column(one.format.name, one.valid_rows, 2 * BANK)
    if not dense:
        values = tile(one.format.name, one.valid_rows, 256 // one.element_bits, 2 * BANK)
    tmp = tile("f32", 1, 2048, 2 * BANK + BANK // 2)
    made = work("trowexpandadd", dst, one, values, tmp=tmp)
    assert written(made, ("vadd",)) == valid_bytes(dst)
    assert read(made, 0, ("vadd",)) == valid_bytes(one)
    blocks = tmp.address if dense else values.address
    rows = {(byte - blocks) // 32 for byte in read(made, 1, ("vadd",))}
    assert rows == set(range(one.valid_rows))


@settings(max_examples=40, deadline=None)
@given(SHAPES)
def test_column_broadcasts_and_reductions(shape):
    dst, one = tiles(shape, 2)
    row = tile(one.format.name, 1, one.cols, 2 * BANK, valid=(1, one.valid_cols))
    spread = work("tcolexpandmul", dst, one, row)
    assert written(spread, ("vmul",)) == valid_bytes(dst)
    assert set(read(spread, 1, ("vmul",))) == set(valid_bytes(row))
    reduced = work("tcolmax", row, one)
    assert read(reduced, 1, ("vmax",)) == valid_bytes(one) - Counter(
        byte for byte in valid_bytes(one) if byte < one.address + one.row_pitch
    )


@settings(max_examples=40, deadline=None)
@given(SHAPES)
def test_row_reductions_read_every_element_and_write_one_per_row(shape):
    _, one = tiles(shape, 2)
    size, lanes = one.element_bits // 8, 2048 // one.element_bits
    made = work("trowsum", column(one.format.name, one.valid_rows, 0), one, tmp=tile("f32", 1, 12288, 2 * BANK))
    assert written(made, ("vcadd",)) == Counter(range(one.valid_rows * size))
    everything = Counter(
        byte
        for operation in vectors(made)
        for number in range(1, 1 + len(operation.sources))
        for byte in touched(operation, number)
        if one.address <= byte < one.end
    )
    assert everything == valid_bytes(one)
    inner = [operation for operation in vectors(made) if operation.mnemonic == "vadd"]
    pieces = -(-one.valid_cols // lanes)
    # A tree over n pieces has n - 1 joins per row, a copy standing for none.
    assert sum(operation.repeats for operation in inner) == one.valid_rows * (pieces - 1)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(1, 60), st.integers(0, 4), st.sampled_from(["f32", "f16"]))
def test_padding_writes_all_but_the_source_once(rows, cols, below, element):
    step = 256 // (32 if element == "f32" else 16)
    width = -(-cols // step) * step + step
    src = tile(element, rows + below, width, BANK, valid=(rows, cols))
    dst = tile(element, rows + below, width, 0, pad=1)
    made = work("tfillpad", dst, src)
    kept = Counter(byte - BANK for byte in valid_bytes(src))
    assert written(made, ("vector_dup",)) == valid_bytes(dst) - kept


@pytest.mark.parametrize("mnemonic", ["tadd", "tmuls", "texp", "trowsum", "tcolmax", "trowexpandmul", "tsel", "tcmp"])
def test_more_rows_take_longer(mnemonic):
    found = [cycles(TARGET, example(mnemonic, rows=rows)) for rows in (4, 8, 16, 32)]
    assert found == sorted(found)
    assert len(set(found)) == len(found)
