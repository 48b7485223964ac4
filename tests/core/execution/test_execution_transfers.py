"""Tiles: valid regions that change at run time, where tiles are placed, and loads and stores through any view.

Loads and stores are compared with indexing in NumPy, one element at a time.
"""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.execution_programs import issued, kernel, moved, run, walk
from kit.walker_cases import VIEWS, X32, both
from kit.work_programs import target, walked

from castsim.execution.buffer_values import execute_transfer
from castsim.execution.interpreter.tile_allocation import lifetimes_of
from castsim.execution.pipe_operations import Transfer
from castsim.execution.tree import instances
from castsim.isa.errors import CastsimError, TileError
from castsim.isa.pto.pto_parser import parse
from castsim.machines.strided.strided_instructions import StridedInstruction
from castsim.targets.description import with_options
from castsim.targets.loader import load_target

UB = 196_608
SIZES = {"f32": 4, "f16": 2, "bf16": 2, "si8": 1, "ui8": 1, "i16": 2, "i32": 4, "i64": 8}


def constants(values: list[int], prefix: str) -> tuple[str, str]:
    """Definitions of index constants, and the list that names them."""
    lines = "".join(f"%{prefix}{n} = arith.constant {value} : index\n" for n, value in enumerate(values))
    return lines, "[" + ", ".join(f"%{prefix}{n}" for n in range(len(values))) + "]"


def transfer(
    element: str,
    shape: list[int],
    strides: list[int],
    offsets: list[int],
    sizes: list[int],
    tile: str,
    *,
    load: bool,
    layout: str | None = None,
) -> str:
    """One load or store of a part of a view of %x at address 64 of the buffer."""
    text = ""
    names = []
    for prefix, values in (("n", shape), ("s", strides), ("o", offsets), ("z", sizes)):
        lines, named = constants(values, prefix)
        text += lines
        names.append(named)
    view, part = (
        f"!pto.tensor_view<{'?x' * len(shape)}{element}>",
        f"!pto.partition_tensor_view<{'x'.join(map(str, sizes))}x{element}>",
    )
    attribute = f" {{layout = #pto.layout<{layout}>}}" if layout else ""
    text += f"%at = arith.constant 64 : i64\n%t = pto.alloc_tile addr = %at : {tile}\n"
    text += f"%v = pto.make_tensor_view %x, shape = {names[0]}, strides = {names[1]}{attribute} : {view}\n"
    text += f"%p = pto.partition_view %v, offsets = {names[2]}, sizes = {names[3]} : {view} -> {part}\n"
    if load:
        text += f"pto.tload ins(%p : {part}) outs(%t : {tile})"
    else:
        text += f"pto.tstore ins(%t : {tile}) outs(%p : {part})"
    return kernel(text, f"%x: !pto.ptr<{element}>")


def element_numbers(strides: list[int], offsets: list[int], sizes: list[int]) -> np.ndarray:
    """Element numbers in global memory, one row per tile row: row-major over all dimensions but the last."""
    base = sum(o * s for o, s in zip(offsets, strides, strict=True))
    rows = [
        [base + sum(i * s for i, s in zip((*index, column), strides, strict=True)) for column in range(sizes[-1])]
        for index in product(*map(range, sizes[:-1]))
    ]
    return np.array(rows, np.int64).reshape(prod(sizes[:-1]), sizes[-1])


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, list[int], list[int], list[int], list[int]]:
    element = draw(st.sampled_from(sorted(SIZES)))
    rank = draw(st.integers(1, 5))
    shape = [draw(st.integers(1, 4)) for _ in range(rank - 1)] + [draw(st.integers(1, 40))]
    offsets = [draw(st.integers(0, extent - 1)) for extent in shape]
    sizes = [draw(st.integers(1, extent - offset)) for extent, offset in zip(shape, offsets, strict=True)]
    strides = [1]
    for extent in reversed(shape[1:]):
        # dense, with gaps, or any small number at all: rows may overlap
        dense = strides[0] * extent
        strides.insert(0, draw(st.one_of(st.just(dense), st.integers(dense, dense + 9), st.integers(0, 70))))
    return element, shape, strides, offsets, sizes


def tile_type(element: str, sizes: list[int], pad: int = 0) -> tuple[str, int, int]:
    """A tile of the part's rows and columns, its physical columns, and the columns' bytes."""
    granule = 32 // SIZES[element]
    columns = -(-sizes[-1] // granule) * granule + granule
    rows = prod(sizes[:-1])
    text = f"!pto.tile_buf<vec, {rows}x{columns}x{element}, valid={rows}x{sizes[-1]}" + (
        f", pad={pad}>" if pad else ">"
    )
    return text, columns, columns * SIZES[element]


def extent(shape: list[int], strides: list[int]) -> int:
    return 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases())
def test_load(case: tuple[str, list[int], list[int], list[int], list[int]]) -> None:
    element, shape, strides, offsets, sizes = case
    size = SIZES[element]
    tile, _, pitch = tile_type(element, sizes)
    memory = np.random.default_rng(1).integers(0, 256, extent(shape, strides) * size, np.uint8)
    text = transfer(element, shape, strides, offsets, sizes, tile, load=True)
    assert walk(text).arguments["x"].elements * size == memory.size
    far, buffer = run(text, {"x": memory}, fill=0xEE)
    wanted = np.full(UB, 0xEE, np.uint8)
    for row, line in enumerate(element_numbers(strides, offsets, sizes)):
        start = 64 + row * pitch
        wanted[start : start + sizes[-1] * size] = memory.reshape(-1, size)[line].reshape(-1)
    assert np.array_equal(buffer, wanted)
    assert np.array_equal(far["x"], memory)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases())
def test_store(case: tuple[str, list[int], list[int], list[int], list[int]]) -> None:
    element, shape, strides, offsets, sizes = case
    size = SIZES[element]
    tile, _, pitch = tile_type(element, sizes)
    memory = np.random.default_rng(2).integers(0, 256, extent(shape, strides) * size, np.uint8)
    executed = walk(transfer(element, shape, strides, offsets, sizes, tile, load=False))
    assert not executed.arguments["x"].needs_input
    buffer = np.random.default_rng(3).integers(0, 256, UB, np.uint8)
    got = memory.copy()
    for _, operation in issued(executed):
        if isinstance(operation, Transfer):
            execute_transfer(operation, buffer, {"x": got})
    wanted = memory.copy().reshape(-1, size)
    for row, line in enumerate(element_numbers(strides, offsets, sizes)):
        for column, place in enumerate(line):  # in order: where rows overlap, the last one stays
            start = 64 + row * pitch + column * size
            wanted[place] = buffer[start : start + size]
    assert np.array_equal(got.reshape(-1, size), wanted)


# docs/reference/pto.md section 7.2: padding reaches the next 32-byte boundary, not the end of the row. Largest and
# smallest value.
PAD = {
    ("f32", 1): "00000000", ("f32", 2): "0000807f", ("f32", 3): "000080ff",
    ("f16", 1): "0000", ("f16", 2): "007c", ("f16", 3): "00fc",
    ("bf16", 1): "0000", ("bf16", 2): "807f", ("bf16", 3): "80ff",
    ("si8", 1): "00", ("si8", 2): "7f", ("si8", 3): "80",
    ("ui8", 1): "00", ("ui8", 2): "ff", ("ui8", 3): "00",
    ("i16", 2): "ff7f", ("i16", 3): "0080", ("i32", 2): "ffffff7f", ("i32", 3): "00000080",
}  # fmt: skip


@pytest.mark.parametrize(("key", "pattern"), PAD.items(), ids=str)
@pytest.mark.parametrize("columns", [1, 7, 8, 15, 31, 32])
def test_padding_on_load(key: tuple[str, int], pattern: str, columns: int) -> None:
    element, pad = key
    size, sizes = SIZES[element], [3, columns]
    tile, _, pitch = tile_type(element, sizes, pad)
    memory = np.random.default_rng(4).integers(0, 256, 3 * columns * size, np.uint8)
    _, buffer = run(transfer(element, sizes, [columns, 1], [0, 0], sizes, tile, load=True), {"x": memory}, fill=0x5A)
    for row in range(3):
        line = buffer[64 + row * pitch : 64 + (row + 1) * pitch]
        length = columns * size
        block = -(-length // 32) * 32
        assert np.array_equal(line[:length], memory[row * length : (row + 1) * length])
        assert line[length:block].tobytes() == bytes.fromhex(pattern) * ((block - length) // size)
        assert (line[block:] == 0x5A).all()
    assert (buffer[:64] == 0x5A).all()
    assert (buffer[64 + 3 * pitch :] == 0x5A).all()


# -------------------------------------------------------------------------------------------------------- 4-bit types
@pytest.mark.parametrize("columns", [2, 6, 32, 62, 64])
@pytest.mark.parametrize("load", [True, False])
def test_int4_is_packed_in_global_memory(columns: int, load: bool) -> None:
    # In the buffer a row of `cols` s4 elements has a pitch of cols bytes; its data is packed at the start of the row.
    tile = f"!pto.tile_buf<vec, 3x64xs4, valid=3x{columns}>"
    text = transfer("s4", [3, columns], [columns, 1], [0, 0], [3, columns], tile, load=load)
    rng = np.random.default_rng(columns)
    memory = rng.integers(0, 256, 3 * columns // 2, np.uint8)
    if load:
        _, buffer = run(text, {"x": memory}, fill=0xC3)
        rows = buffer[64 : 64 + 3 * 64].reshape(3, 64)
        assert np.array_equal(rows[:, : columns // 2], memory.reshape(3, -1))
        assert (rows[:, columns // 2 :] == 0xC3).all()
        return
    far, _ = run(text, {"x": memory}, fill=0xC3)
    assert (far["x"] == 0xC3).all()


def test_int4_part_at_an_even_offset() -> None:
    text = transfer("s4", [4, 16], [16, 1], [1, 6], [2, 4], "!pto.tile_buf<vec, 2x32xs4, valid=2x4>", load=True)
    memory = np.arange(32, dtype=np.uint8)  # row 1 is bytes 8 .. 15; column 6 is byte 3 of it
    _, buffer = run(text, {"x": memory})
    assert buffer[64:66].tolist() == [11, 12]
    assert buffer[96:98].tolist() == [19, 20]


@pytest.mark.parametrize(
    ("shape", "strides", "offsets", "sizes"),
    [
        ([4, 16], [16, 1], [0, 1], [2, 4]),  # odd offset
        ([4, 16], [17, 1], [0, 0], [2, 4]),  # odd row stride
        ([4, 16], [16, 1], [0, 0], [2, 5]),  # half a byte at the end of a row
    ],
)
@pytest.mark.parametrize("load", [True, False])
def test_int4_parts_that_split_bytes(shape, strides, offsets, sizes, load) -> None:
    tile = f"!pto.tile_buf<vec, 2x32xs4, valid={sizes[0]}x{sizes[1]}>"
    with pytest.raises(TileError, match="even"):
        walk(transfer("s4", shape, strides, offsets, sizes, tile, load=load))


@pytest.mark.parametrize(("pad", "byte"), [(1, 0x00), (2, 0x77), (3, 0x88)])
def test_int4_padding_fills_both_nibbles(pad: int, byte: int) -> None:
    tile = f"!pto.tile_buf<vec, 1x64xs4, valid=1x6, pad={pad}>"
    text = transfer("s4", [1, 6], [6, 1], [0, 0], [1, 6], tile, load=True)
    _, buffer = run(text, {"x": np.array([0x21, 0x43, 0x65], np.uint8)}, fill=0xEE)
    assert buffer[64:67].tolist() == [0x21, 0x43, 0x65]
    assert buffer[67:96].tolist() == [byte] * 29
    assert (buffer[96:] == 0xEE).all()


# ---------------------------------------------------------------------------------------------- column-major, one line
@pytest.mark.parametrize("load", [True, False])
def test_column_major(load: bool) -> None:
    # A dn view and a col_major tile: element (i, j) lies at i + j * rows in the tile, i + j * stride in memory.
    tile = "!pto.tile_buf<vec, 16x5xf32, valid=12x4, blayout=col_major>"
    text = transfer("f32", [12, 4], [1, 13], [0, 0], [12, 4], tile, load=load, layout="dn")
    memory = np.random.default_rng(7).integers(0, 256, (11 + 3 * 13 + 1) * 4, np.uint8)
    if load:
        _, buffer = run(text, {"x": memory})
        words = buffer[64 : 64 + 16 * 5 * 4].view("<u4")
        for i, j in product(range(12), range(4)):
            assert words[i + 16 * j] == memory.view("<u4")[i + 13 * j]
        assert not words[12:16].any()
        return
    executed = walk(text)
    (operation,) = [op for _, op in issued(executed) if isinstance(op, Transfer)]
    assert (operation.bursts, operation.burst_bytes, operation.ub_pitch, operation.gm_pitch) == (4, 48, 64, 52)


@pytest.mark.parametrize(
    ("tile", "sizes", "strides", "element_of"),
    [
        # one valid column of a col_major tile: its elements are adjacent in the buffer
        ("!pto.tile_buf<vec, 16x4xf32, valid=5x1, blayout=col_major>", [5, 1], [3, 1], lambda i, j: i + 16 * j),
        # one valid row: its elements are 16 apart
        ("!pto.tile_buf<vec, 16x4xf32, valid=1x4, blayout=col_major>", [1, 4], [4, 1], lambda i, j: i + 16 * j),
        # one valid column of a row_major tile, as a column of the view
        ("!pto.tile_buf<vec, 5x8xf32, valid=5x1>", [5, 1], [3, 1], lambda i, j: 8 * i + j),
    ],
)
def test_one_line_stores_do_not_mind_the_layout(tile, sizes, strides, element_of) -> None:
    text = transfer("f32", sizes, strides, [0, 0], sizes, tile, load=False)
    buffer = np.zeros(UB, np.uint8)
    buffer[64 : 64 + 64 * 4] = np.arange(64, dtype="<u4").view(np.uint8)
    memory = np.full(extent(sizes, strides) * 4, 0xFF, np.uint8)
    for _, operation in issued(walk(text)):
        if isinstance(operation, Transfer):
            execute_transfer(operation, buffer, {"x": memory})
    wanted = np.full(memory.size // 4, 0xFFFFFFFF, "<u4")
    for i, j in product(range(sizes[0]), range(sizes[1])):
        wanted[i * strides[0] + j * strides[1]] = element_of(i, j)
    assert np.array_equal(memory.view("<u4"), wanted)


# ------------------------------------------------------------------------------------------------------------ refusals
@pytest.mark.parametrize(
    ("shape", "strides", "sizes", "tile", "layout", "message"),
    [
        ([4, 8], [8, 1], [4, 8], "!pto.tile_buf<vec, 8x4xf32, blayout=col_major>", None, "row_major|valid|layout"),
        ([4, 8], [8, 1], [3, 8], "!pto.tile_buf<vec, 4x8xf32>", None, "3 x 8|24|elements"),
        ([4, 8], [16, 2], [4, 8], "!pto.tile_buf<vec, 4x8xf32>", None, "adjacent"),
        ([4, 8], [8, 1], [4, 8], "!pto.tile_buf<vec, 4x8xf32>", "nz", "nz"),
        ([8, 4], [1, 8], [8, 4], "!pto.tile_buf<vec, 8x8xf32, valid=8x4>", None, "dn"),
    ],
)
@pytest.mark.parametrize("load", [True, False])
def test_transfers_that_do_not_fit(shape, strides, sizes, tile, layout, message, load) -> None:
    with pytest.raises(CastsimError, match=message) as caught:
        walk(transfer("f32", shape, strides, [0] * 2, sizes, tile, load=load, layout=layout))
    assert caught.value.span is not None
    assert caught.value.exit_code == 1


def test_burst_limit() -> None:
    # docs/reference/a2a3.md section 5: fewer than 4096 bursts, and tile rows.
    for rows, fits in ((4095, True), (4096, False)):
        text = transfer("si8", [rows, 32], [32, 1], [0, 0], [rows, 32], f"!pto.tile_buf<vec, {rows}x32xsi8>", load=True)
        if fits:
            walk(text)
            continue
        with pytest.raises(TileError, match=r"4096 rows.*4095"):
            walk(text)


# ------------------------------------------------------------------------------- dynamic valid extents, ragged tiles
def ragged(total: int, block: int = 16) -> str:
    """Rows in blocks of 16, the last one shorter: minsi decides its valid rows."""
    kind32, kind16 = "!pto.tile_buf<vec, 16x64xf32, valid=?x64>", "!pto.tile_buf<vec, 16x64xf16, valid=?x64>"
    part = "!pto.partition_tensor_view<?x64x"
    return kernel(f"""\
%rows = arith.constant {total} : index
{VIEWS}
%n = arith.constant {block} : index
scf.for %i = %c0 to %rows step %n {{
%left = arith.subi %rows, %i : index
%m = arith.minsi %left, %n : index
%a = pto.alloc_tile valid_row = %m : {kind32}
%b = pto.alloc_tile valid_row = %m : {kind16}
%px = pto.partition_view %vx, offsets = [%i, %c0], sizes = [%m, %c64] : !pto.tensor_view<?x64xf32> -> {part}f32>
%py = pto.partition_view %vy, offsets = [%i, %c0], sizes = [%m, %c64] : !pto.tensor_view<?x64xf16> -> {part}f16>
pto.tload ins(%px : {part}f32>) outs(%a : {kind32})
pto.tcvt ins(%a : {kind32}) outs(%b : {kind16})
pto.tstore ins(%b : {kind16}) outs(%py : {part}f16>)
}}""")


@pytest.mark.parametrize(("total", "extents"), [(40, [16, 16, 8]), (33, [16, 16, 1]), (16, [16]), (3, [3]), (0, [])])
def test_ragged_last_tile(total: int, extents: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    found = both(ragged(total), monkeypatch)
    loads = [operation for name, operation in issued(found) if name.startswith("tload")]
    assert [operation.bursts for operation in loads] == extents
    assert [operation.ub_address for operation in loads] == [0] * len(extents)  # the same place in every trip


SET_VALID = """
%a = pto.alloc_tile valid_row = %c16 valid_col = %c64 : !pto.tile_buf<vec, 16x64xf32, valid=?x?>
%b = pto.alloc_tile valid_row = %c16 valid_col = %c64 : !pto.tile_buf<vec, 16x64xf16, valid=?x?>
scf.for %i = %c1 to %c4 step %c1 {{
pto.set_validshape %a, {0} : !pto.tile_buf<vec, 16x64xf32, valid=?x?>
pto.set_validshape %b, {0} : !pto.tile_buf<vec, 16x64xf16, valid=?x?>
pto.tcvt ins(%a : !pto.tile_buf<vec, 16x64xf32, valid=?x?>) outs(%b : !pto.tile_buf<vec, 16x64xf16, valid=?x?>)
}}
pto.tcvt ins(%a : !pto.tile_buf<vec, 16x64xf32, valid=?x?>) outs(%b : !pto.tile_buf<vec, 16x64xf16, valid=?x?>)
"""


def test_set_validshape(monkeypatch: pytest.MonkeyPatch) -> None:
    # Whole rows of 64: one call per valid row; 1 + 2 + 3 in the loop, and 3 rows stay valid behind it.
    found = both(kernel(SET_VALID.format("%i, %c64")), monkeypatch)
    assert sum(name.startswith("tcvt") and op.pipe == "V" for name, op in issued(found)) == 1 + 2 + 3 + 3


@pytest.mark.parametrize("extent", [(32, 64), (16, 128), (-1, 64), (16, -1)])
def test_set_validshape_beyond_the_tile(extent: tuple[int, int]) -> None:
    text = kernel(SET_VALID.format("%m, %n"), "%m: index, %n: index")
    with pytest.raises(TileError, match=f"{extent[0]} x {extent[1]}|negative") as caught:
        walk(text, {"m": extent[0], "n": extent[1]})
    assert caught.value.span is not None


@pytest.mark.parametrize("value", [-1, 17, 2**40])
def test_valid_extent_out_of_range(value: int) -> None:
    text = f"%m = arith.constant {value} : index\n%a = pto.alloc_tile valid_row = %m : !pto.tile_buf<vec, 16x64xf32, valid=?x64>"
    with pytest.raises(TileError, match=str(value)) as caught:
        walk(kernel(text))
    assert caught.value.span is not None


# --------------------------------------------------------------------------------------------------------- placement
def places(text: str) -> list[int]:
    """Return where the results of casts lie that have no addresses, one tile behind the other."""
    consecutive = with_options(load_target("a2a3"), {"tile_placement": "consecutive"})
    found = [op for name, op in issued(walk(text, target=consecutive)) if name.startswith("tcvt")]
    return [op.destination.address for op in found if isinstance(op, StridedInstruction)]


def test_level_2_places_tiles_one_behind_the_other() -> None:
    tiles = "".join(
        f"%t{n} = pto.alloc_tile : !pto.tile_buf<vec, 1x{cols}xf16>\n" for n, cols in enumerate((16, 48, 64))
    )
    casts = "".join(
        f"%s{n} = pto.alloc_tile : !pto.tile_buf<vec, 1x{cols}xf32>\n"
        f"pto.tcvt ins(%s{n} : !pto.tile_buf<vec, 1x{cols}xf32>) outs(%t{n} : !pto.tile_buf<vec, 1x{cols}xf16>)\n"
        for n, cols in enumerate((16, 48, 64))
    )
    assert places(kernel(tiles + casts)) == [0, 32, 128]


def test_level_2_capacity_is_192_kib() -> None:
    # docs/reference/pto.md section 4: f32 + f16 tiles of 128 x 256 fit exactly, 129 x 256 do not.
    for rows, fits in ((128, True), (129, False)):
        text = kernel(
            f"%a = pto.alloc_tile : !pto.tile_buf<vec, {rows}x256xf32>\n%b = pto.alloc_tile : !pto.tile_buf<vec, {rows}x256xf16>"
        )
        if fits:
            walk(text)
            continue
        with pytest.raises(TileError, match=f"{256 * 6} bytes too few") as caught:
            walk(text)
        assert caught.value.span is not None


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (8, "32-byte aligned"), (196_608, "256 bytes past the end"), (196_384, "32 bytes past the end"), (-32, "-32"),
        (2**62, "past the end"),
    ],
)  # fmt: skip
def test_level_3_address_out_of_range(address: int, message: str) -> None:
    text = f"%p = arith.constant {address} : i64\n%a = pto.alloc_tile addr = %p : !pto.tile_buf<vec, 1x64xf32>"
    with pytest.raises(TileError, match=message) as caught:
        walk(kernel(text))
    assert caught.value.span is not None


def test_addresses_in_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tile whose address is the loop variable moves in the buffer."""
    text = f"""
scf.for %i = %c0 to %c4 step %c1 {{
%o = arith.muli %i, %size : index
%p = arith.index_cast %o : index to i64
%a = pto.alloc_tile addr = %p : {X32}
%px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c16, %c64] : !pto.tensor_view<?x64xf32> -> !pto.partition_tensor_view<16x64xf32>
pto.tload ins(%px : !pto.partition_tensor_view<16x64xf32>) outs(%a : {X32})
}}"""
    head = f"%rows = arith.constant 64 : index\n{VIEWS}%size = arith.constant 4096 : index\n"
    assert moved(both(kernel(head + text), monkeypatch), "tload") == [(0, 4096 * i) for i in range(4)]


def test_tiles_of_ssa_casts_get_places_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The spellings that create their destination: every instruction has its own tile, the same in every trip."""
    kinds = {name: f"!pto.tile_buf<vec, 1x64x{name}>" for name in ("f32", "f16", "i8", "i16")}
    cast = "%{0} = pto.tcvt %{1} : {2} -> {3}\n"
    body = (
        f"%a = pto.alloc_tile : {kinds['f32']}\n"
        + cast.format("h", "a", kinds["f32"], kinds["f16"])
        + cast.format("q", "h", kinds["f16"], kinds["i8"])
        + cast.format("w", "h", kinds["f16"], kinds["i16"])
    )
    assert places(kernel(body)) == [256, 384, 448]
    looped = f"scf.for %i = %c0 to %c3 step %c1 {{{body}}}"
    both(kernel(looped), monkeypatch)
    assert places(kernel(looped)) == [256, 384, 448] * 3


# --------------------------------------------------- level-2 placement of programs that only fit if tiles share bytes
BIG = "!pto.tile_buf<vec, 128x128xf32>"  # 64 KiB: three of them fill an A2/A3 buffer
CONSTANTS = "\n".join(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 4, 128)) + "\n%s = arith.constant 2.0 : f32"


def lifetimes(body: str, arguments: str = "") -> str:
    return f"func.func @k({arguments}) attributes {{pto.entry}} {{\n{CONSTANTS}\n{body}\nreturn\n}}\n"


def tiles(count: int) -> str:
    return "\n".join(f"%t{n} = pto.alloc_tile : {BIG}" for n in range(count))


def step(src: int, dst: int) -> str:
    return f"pto.tmuls ins(%t{src}, %s : {BIG}, f32) outs(%t{dst} : {BIG})"


def fill(dst: int) -> str:
    return f"pto.texpands ins(%s : f32) outs(%t{dst} : {BIG})"


def written(text: str) -> list[int]:
    found = []
    for lowered, _ in instances(walked(text, target("a2a3")).tree):
        if lowered.accesses:
            found.append(lowered.accesses[0].start)
    return found


def test_what_fits_is_placed_one_behind_the_other() -> None:
    text = lifetimes("\n".join([tiles(3), fill(0), step(0, 1), step(1, 2)]))
    assert written(text) == [0, 65536, 131072]
    assert not walked(text, target("a2a3")).warnings


def test_a_chain_of_tiles_shares_bytes() -> None:
    """Five tiles of 64 KiB, never more than two in use: 128 KiB are enough."""
    text = lifetimes("\n".join([tiles(5), fill(0), *(step(n, n + 1) for n in range(4))]))
    assert written(text) == [0, 65536, 0, 65536, 0]
    (warning,) = walked(text, target("a2a3")).warnings
    assert "its tiles take 327680 bytes, the buffer has 196608" in warning
    assert "131072 in all" in warning
    assert walked(text, target("a5")).warnings  # 248 KiB there


def test_what_is_in_use_together_does_not_fit() -> None:
    body = "\n".join([tiles(4), *(fill(n) for n in range(4)), *(step(n, (n + 1) % 4) for n in range(4))])
    with pytest.raises(TileError, match="65536 bytes too few") as caught:
        walked(lifetimes(body), target("a2a3"))
    assert caught.value.span is not None
    with pytest.raises(TileError, match="8192 bytes too few"):
        walked(lifetimes(body), target("a5"))


def test_a_loop_keeps_what_it_uses() -> None:
    """A tile of outside lives through the whole loop; tiles of inside live for a trip."""
    body = f"""
{tiles(2)}
{fill(0)}
scf.for %i = %c0 to %c4 step %c1 {{
  %t2 = pto.alloc_tile : {BIG}
  {step(0, 2)}
  %t3 = pto.alloc_tile : {BIG}
  {step(2, 3)}
}}
{fill(1)}
"""
    program = parse(lifetimes(body), "k.pto")
    lives = lifetimes_of(program.functions[0].body or ())
    zero, one, two, three = ((life.first, life.last) for life in lives)
    assert zero[0] < two[0] <= two[1] == three[0] <= three[1] < zero[1]
    assert one[0] == one[1] > zero[1]
    places = written(lifetimes(body))
    assert places[0] == 0
    assert len(set(places)) == 3


def test_aliases_prolong_a_life() -> None:
    flat = "!pto.tile_buf<vec, 64x256xf32>"
    body = "\n".join(
        [
            tiles(4), fill(0), f"%f = pto.treshape %t0 : {BIG} -> {flat}", fill(1), step(1, 2), step(2, 3),
            f"pto.tmuls ins(%f, %s : {flat}, f32) outs(%f : {flat})",
        ]
    )  # fmt: skip
    assert written(lifetimes(body)) == [0, 65536, 131072, 65536, 0]
