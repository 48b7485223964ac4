"""The lowering of vector operations against the public cost model's own figures for its own test cases.

That model adds `slope x repeats` per vector instruction, its head where the queue is empty, the pending tail at a
barrier, and one cycle per scalar instruction (docs/reference/a2a3.md section 6.1); it sees no repeats in count mode.
Its figures are therefore a fingerprint of the instructions that the library issues: that of its time, which takes the
rows of scalar operations one by one.
"""

from __future__ import annotations

import csv
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.paths import TESTS
from kit.strided_works import BANK, TARGET, column, cycles, example, issued, tile, touched, vectors, work

from castsim.execution.pipe_operations import ControlWrite, PipeBarrier
from castsim.execution.tree import ResolvedTileOp, Tile
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Role
from castsim.machines.strided.strided_instructions import StridedInstruction
from castsim.targets.description import with_options

VECTORS = TESTS / "vectors" / "a2a3_cost_model.csv"

# Head, slope and tail of docs/reference/a2a3.md section 6.1; the last is the class of everything that is not listed.
CLASSES = {
    **dict.fromkeys(("vadd", "vsub", "vmax", "vmin"), (10, 2, 14)),
    "vmul": (10, 2, 15), "vmuls": (11, 1, 15), "vmaxs": (10, 1, 13), "vdiv": (11, 4, 19), "vexp": (13, 2, 18),
    "vrsqrt": (10, 1, 14), "vsqrt": (14, 2, 25), "vabs": (13, 1, 16), "vadds": (13, 1, 18), "vmins": (14, 1, 16),
    "vsel": (13, 2, 14), "vector_dup": (11, 1, 13),
}  # fmt: skip
DEFAULT = (6, 2, 0)
COPY_BYTES_PER_CYCLE = 594.3
"""docs/reference/a2a3.md section 5: buffer to buffer."""

OLDER = with_options(TARGET, {"scalar_rows": "separate"})


def predicted(made: ResolvedTileOp) -> int:
    """Cycles by the rules of the public model."""
    total, idle, pending, counting = 0, True, 0, False
    for operation in issued(made, OLDER):
        if isinstance(operation, StridedInstruction):
            if operation.mnemonic == "copy_ubuf_to_ubuf":
                total += int(operation.repeats * 32 / COPY_BYTES_PER_CYCLE)
                continue
            head, slope, tail = CLASSES.get(operation.mnemonic, DEFAULT)
            total += (head if idle else 0) + (0 if counting else slope * operation.repeats)
            idle, pending = False, tail
        elif isinstance(operation, PipeBarrier):
            total, idle, pending = total + 1 + pending, True, 0
        else:
            total += 1
            if isinstance(operation, ControlWrite) and operation.register == "ctrl":
                counting = bool(operation.value >> TARGET.control.mask_is_count & 1)
    return total


def made_for(row: dict[str, str]) -> ResolvedTileOp:
    """The operation of a case, with the tiles that its template parameters state."""
    extra = dict(part.split("=") for part in row["extra"].split(";") if part)
    name, element = row["op"].lower(), row["src"]
    valid = (int(row["rows"]), int(row["cols"]))
    stated = [int(extra.get(key, 0)) for key in ("dstRow", "row", "dstTileH")]
    rows = max(*stated, valid[0])
    cols = max(int(extra[key]) for key in ("dstCol", "col", "dstTileW") if key in extra) if any(stated) else valid[1]
    source_cols = int(extra.get("srcCol", extra.get("srcTileW", cols)))
    in_place = extra.get("isInPlace") == "true"
    dst = tile(element, rows, cols, 0 if in_place else BANK, valid=valid)
    one = tile(element, rows, source_cols, 0, valid=valid)
    two = tile(element, rows, source_cols, 2 * BANK, valid=valid)
    if name == "tcmp":
        width = -(-int(row["case"].split("_")[2].split("x")[1]) // 64) * 64
        sources = [tile(element, rows, width, at, valid=valid) for at in (0, 2 * BANK)]
        return work(name, tile("i8", rows, 256, BANK), *sources, mode=extra["cmpMode"].lower())
    if name in ("tsel", "tsels"):
        mask, tmp = tile("i8", rows, 1024, 2 * BANK + BANK // 2), tile("u32", 1, 16, 3 * BANK - 64)
        sources = [one, two] if name == "tsel" else [one]
        return work(name, dst, *sources, mask=mask, tmp=tmp)
    if name.startswith("tcol"):
        height = int(extra.get("srcValidRow", row["rows"]))
        source = tile(element, int(extra.get("srcRow", height)), cols, 0, valid=(height, valid[1]))
        binary = extra.get("isBinary") == "true"
        tmp = tile(element, max(height // 2, 1), cols, 2 * BANK) if binary else None
        return work(name, tile(element, 1, cols, BANK), source, tmp=tmp, binary=binary)
    tmp = tile(element, 1, 16, 2 * BANK) if name == "trsqrt" and in_place else None
    sources = [one, two] if name in ("tadd", "tsub", "tmul", "tdiv", "tmax", "tmin") else [one]
    return work(name, dst, *sources, tmp=tmp)


def cases() -> list[dict[str, str]]:
    with VECTORS.open(newline="") as file:
        return [row for row in csv.DictReader(file) if not contradicted(row)]


def contradicted(row: dict[str, str]) -> bool:
    """Whether cycles that were read off something show another sequence than the model, and so the target has that.

    The formulas of column maxima have 17.5 cycles for every further row and 35 where a rest needs a call of its own, so
    they run under lane masks; the model counts. Column sums in pairs take 1263 cycles for 64 x 64, one step of 19.5 per
    pair; the model has 180, one step per level (docs/reference/a2a3.md section 6.2).
    """
    return row["op"] in ("TCOLMAX", "TCOLMIN") or row["extra"] == "isBinary=true"


def unexplained(row: dict[str, str]) -> int:
    """Cycles that the model has more than the sequence explains: one less for sums of columns in row order."""
    return -1 if (row["op"], row["extra"]) == ("TCOLSUM", "isBinary=false") else 0


@pytest.mark.parametrize("row", cases(), ids=lambda row: f"{row['op']}-{row['case']}-{row['extra'][-12:]}")
def test_the_sequence_has_the_models_cycles(row: dict[str, str]) -> None:
    assert predicted(made_for(row)) == int(row["predicted_cycles"]) - unexplained(row)


def test_there_are_enough_cases_of_every_kind() -> None:
    assert len(cases()) == 127
    assert len({row["op"] for row in cases()}) >= 20
    assert sum(unexplained(row) == 0 for row in cases()) >= 120


# ----------------------------------------- the streams of vector operations cover exactly what the operation is about
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
    assert {(byte - blocks) // 32 for byte in read(made, 1, ("vadd",))} == set(range(one.valid_rows))


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
