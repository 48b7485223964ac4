"""Rows of 4-bit tiles on A2/A3: which bytes casts and transfers touch, and what a neighbour between them may be.

The touched bytes are those that the values really read and write: every byte is turned over, one at a time or all.
"""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kit.strided_cases import LOWERER, SPAN, computed, issued, tile

from castsim import run
from castsim.execution.buffer_values import CastCounts, execute_transfer
from castsim.execution.interpreter.lowerer import LoweredInstruction
from castsim.execution.tree import Access, Lowered, Part, TileCast, TileTransfer
from castsim.isa.errors import RaceError

COLUMNS = (32, 64, 96, 128, 160, 192, 256, 384)
SHAPES = [*((3, cols, cols) for cols in COLUMNS), (2, 130, 192), (1, 255 * 128 + 128, 32768), (1, 32832, 32832)]
FAR = 100_000
"""Where the tile of halves lies; the other one is at 0."""


def lowered(src: str, dst: str, rows: int, cols: int, declared: int) -> LoweredInstruction:
    places = {"i4": 0, "f16": FAR}
    ends = (tile(name, name, rows, declared, places[name], (rows, cols)) for name in (src, dst))
    return LOWERER.cast(TileCast(*ends, None, None, None, SPAN))


def touched(accesses: tuple[Access, ...], write: bool) -> set[int]:
    found: set[int] = set()
    for access in accesses:
        starts = [access.start]
        for count, distance in access.runs:
            starts = [start + n * distance for start in starts for n in range(count)]
        length = access.end - access.start - sum((count - 1) * distance for count, distance in access.runs)
        if access.write == write:
            found.update(at for start in starts for at in range(start, start + length))
    return found


def packed(rows: int, cols: int, declared: int) -> set[int]:
    """The same as docs/reference/a2a3.md section 2.4 has it."""
    return {row * declared + call * 128 + at for row in range(rows) for call, at in _in_row(cols)}


def _in_row(cols: int) -> set[tuple[int, int]]:
    whole, rest = divmod(cols, 128)
    head = {(first, at) for first in range(0, whole, 255) for at in range(min(255, whole - first) * 64)}
    return head | {(whole, at) for at in range(rest // 2)}


@pytest.mark.parametrize(("rows", "cols", "declared"), SHAPES)
def test_a_cast_to_four_bits_writes_what_it_says(rows, cols, declared):
    """Every byte of the buffer is 0xAA, then 0x55: what differs from both is what the cast wrote."""
    cast = lowered("f16", "i4", rows, cols, declared)
    halves = np.tile(np.array([1.0, 2.0, -3.0], np.float16), 65536)[: rows * declared].view(np.uint8)
    changed: set[int] = set()
    for filling in (0xAA, 0x55):
        buffer = np.full(196_608, filling, np.uint8)
        buffer[FAR : FAR + halves.size] = halves[: buffer.size - FAR]
        after = computed(cast, buffer, shortcuts=True)
        changed |= set(np.flatnonzero(after != buffer).tolist())
    assert changed == touched(cast.accesses, write=True) == packed(rows, cols, declared)


@pytest.mark.parametrize(("rows", "cols", "declared"), SHAPES)
def test_a_cast_from_four_bits_reads_what_it_says(rows, cols, declared):
    """Bytes that the cast does not name may hold anything; each of those that it names shows in the result."""
    cast = lowered("i4", "f16", rows, cols, declared)
    named = touched(cast.accesses, write=False)
    assert named == packed(rows, cols, declared)
    rng = np.random.default_rng(cols)
    buffer = rng.integers(0, 256, 196_608, dtype=np.uint8)
    out = sorted(touched(cast.accesses, write=True))
    wanted = computed(cast, buffer, shortcuts=True)[out]
    other = buffer.copy()
    unnamed = np.setdiff1d(np.arange(FAR), sorted(named))
    other[unnamed] ^= 0xFF
    assert np.array_equal(computed(cast, other, shortcuts=True)[out], wanted)
    other[sorted(named)] ^= 0xFF
    differing = computed(cast, other, shortcuts=True)[out].view(np.uint16) != wanted.view(np.uint16)
    assert differing.all()


@pytest.mark.parametrize(("src", "dst"), [("f16", "i4"), ("i4", "f16")])
def test_the_numbers_of_a_row_with_a_gap_are_counted(src, dst):
    rows, cols = 2, 192
    cast = lowered(src, dst, rows, cols, cols)
    assert cast.cast is not None
    buffer = np.random.default_rng(5).integers(0, 256, 196_608, dtype=np.uint8)
    halves = (np.arange(rows * cols) % 14 - 7).astype(np.float16)
    buffer[FAR : FAR + 2 * rows * cols] = halves.view(np.uint8)
    counts, node = CastCounts(), Lowered(0, cast.body, cast.accesses, cast.shortcut, cast.cast)
    pending = counts.before(node, None, buffer)
    assert pending is not None
    after = computed(cast, buffer, shortcuts=True)
    counts.after(node, pending, after)
    (found,) = counts.found.values()
    assert (found.elements, found.exact) == (rows * cols, rows * cols)
    if src == "f16":
        exact = halves.astype(np.int8).view(np.uint8) & 15
        row = after[: 192 * rows].reshape(rows, 192)
        low = np.concatenate([row[:, :64], row[:, 128:160]], axis=1)
        assert np.array_equal(low, (exact[0::2] | exact[1::2] << 4).reshape(rows, -1))


@pytest.mark.parametrize("pad", [0, 2])
@pytest.mark.parametrize("load", [True, False])
def test_transfers_touch_packed_rows(load, pad):
    rows, cols, declared = 3, 72, 192
    moved = tile("t", "i4", rows, declared, 0, (rows, cols), pad=pad)
    part = Part("x", moved.format, 0, (1, 1, 1, rows, cols), (rows * cols, rows * cols, rows * cols, cols, 1), "nd")
    transfer = LOWERER.transfer(TileTransfer(moved, part, load=load, span=SPAN))
    padded = 64 if load and pad else 36
    near = touched(tuple(one for one in transfer.accesses if one.space == "ub"), write=load)
    assert near == {row * declared + at for row in range(rows) for at in range(padded)}
    changed: set[int] = set()
    for filling in (0xAA, 0x55):
        buffer, far = np.full(4096, filling, np.uint8), np.full(rows * cols // 2, 0x0F, np.uint8)
        for operation in issued(transfer):
            execute_transfer(operation, buffer, {"x": far})
        changed |= set(np.flatnonzero(buffer != filling).tolist())
    assert changed == (near if load else set())


PROGRAM = """module attributes {{pto.target_arch = "a3"}} {{
  func.func @packed(%x: !pto.ptr<f16>, %z: !pto.ptr<i16>) attributes {{pto.entry}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 16 : index
    %cols = arith.constant {cols} : index
    %at = arith.constant {at} : i64
    %near = arith.constant 0 : i64
    %far = arith.constant 8192 : i64
    %vx = pto.make_tensor_view %x, shape = [%c1, %cols], strides = [%cols, %c1] : !pto.tensor_view<1x{cols}xf16>
    %px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c1, %cols] : !pto.tensor_view<1x{cols}xf16> -> !pto.partition_tensor_view<1x{cols}xf16>
    %vz = pto.make_tensor_view %z, shape = [%c1, %one], strides = [%one, %c1] : !pto.tensor_view<1x16xi16>
    %pz = pto.partition_view %vz, offsets = [%c0, %c0], sizes = [%c1, %one] : !pto.tensor_view<1x16xi16> -> !pto.partition_tensor_view<1x16xi16>
    %half = pto.alloc_tile addr = %far : !pto.tile_buf<vec, 1x{cols}xf16>
    %nibble = pto.alloc_tile addr = %near : !pto.tile_buf<vec, 1x{cols}xs4>
    %other = pto.alloc_tile addr = %at : !pto.tile_buf<vec, 1x16xi16>
    pto.tload ins(%px : !pto.partition_tensor_view<1x{cols}xf16>) outs(%half : !pto.tile_buf<vec, 1x{cols}xf16>)
    pto.set_flag[#pto.pipe<PIPE_MTE2>, #pto.pipe<PIPE_V>, #pto.event<EVENT_ID0>]
    pto.wait_flag[#pto.pipe<PIPE_MTE2>, #pto.pipe<PIPE_V>, #pto.event<EVENT_ID0>]
    pto.tload ins(%pz : !pto.partition_tensor_view<1x16xi16>) outs(%other : !pto.tile_buf<vec, 1x16xi16>)
    pto.tcvt ins(%half {{rmode = #pto<round_mode RINT>}} : !pto.tile_buf<vec, 1x{cols}xf16>) outs(%nibble : !pto.tile_buf<vec, 1x{cols}xs4>)
    pto.barrier #pto.pipe<PIPE_ALL>
    return
  }}
}}
"""


# A load of 32 bytes beside a cast that is not ordered with it: inside the touched bytes it is a race, in a gap none.
@pytest.mark.parametrize(
    ("cols", "at", "races"),
    [
        (64, 0, True), (64, 32, False), (256, 96, True), (256, 128, False), (256, 224, False),
        (192, 32, True), (192, 64, False), (192, 96, False), (192, 128, True), (192, 160, False),
        (160, 128, True), (160, 96, False), (384, 160, True), (384, 192, False), (384, 352, False),
    ],
)  # fmt: skip
def test_a_neighbour_in_a_gap_is_no_race(cols, at, races, tmp_path: Path):
    path = tmp_path / "packed.pto"
    path.write_text(PROGRAM.format(cols=cols, at=at))
    arguments = {"x": np.zeros((1, cols), np.float16), "z": np.zeros((1, 16), np.int16)}
    if races:
        with pytest.raises(RaceError, match="write after write"):
            run(path, target="a2a3", inputs=arguments, sync="program")
    else:
        run(path, target="a2a3", inputs=arguments, sync="program")
