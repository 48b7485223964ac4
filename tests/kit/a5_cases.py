"""Tiles, buffers and source codes for the tests of the vector-function mechanism on A5."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import oracle
import oracle_a5
from kit import boundaries

from castsim.execution.interpreter.lowerer import LoweredInstruction
from castsim.execution.tree import Block, Instruction, Lowered, Tile, TileCast, Tree
from castsim.isa.errors import Span
from castsim.isa.formats import Saturation, format_named
from castsim.isa.pto.program import RoundMode, TileType
from castsim.machines.vector_function.function_lowering import VectorFunctionLowerer
from castsim.machines.vector_function.values import compute
from castsim.targets.loader import load_target
from castsim.targets.vector_function import VectorFunctionTarget

UB = 262_144
SPAN = Span("test.pto", 1, 1)
A5 = load_target("a5")


@cache
def lowerer(**options: int | str) -> VectorFunctionLowerer:
    """The lowering of A5 with some options changed."""
    assert isinstance(A5, VectorFunctionTarget)
    changed = {name: A5.options[name].model_copy(update={"value": value}) for name, value in options.items()}
    return VectorFunctionLowerer(A5.model_copy(update={"options": {**A5.options, **changed}}))


@cache
def source_codes(src: str, dst: str) -> np.ndarray:
    """Every code of a format up to 8 bits, else those at which the result changes, specials and random ones."""
    row = oracle.fmt(src)
    if row.bits <= 8:
        return np.arange(1 << row.bits, dtype=np.uint64)
    return boundaries.hard_codes(src, dst, points=40, reach=1, random=20, seed=5).astype(np.uint64)


@dataclass(frozen=True)
class Shape:
    """Tiles of `rows` x `cols` with a valid region; `dynamic` leaves its extents open in the type."""

    rows: int
    cols: int
    valid_rows: int
    valid_cols: int
    dynamic: bool = False

    @property
    def full(self) -> bool:
        """The condition of the 1D kernels."""
        return (self.valid_cols == self.cols and not self.dynamic) or self.rows == 1


def tile(name: str, element: str, shape: Shape, address: int) -> Tile:
    """A row-major `vec` tile at a byte address."""
    valid = (None, None) if shape.dynamic else (shape.valid_rows, shape.valid_cols)
    kind = TileType("vec", element, shape.rows, shape.cols, *valid)
    bits = oracle_a5.size(element)
    return Tile(name, format_named(element), kind, address, shape.valid_rows, shape.valid_cols, bits)


def make_cast(
    src: str,
    dst: str,
    shape: Shape,
    mode: str | None = None,
    saturation: str | None = None,
    *,
    places: tuple[int, int] | None = None,
) -> TileCast:
    """A cast between two tiles; by default the destination lies 4 KiB behind the source."""
    source = tile("src", src, shape, 0 if places is None else places[0])
    destination = tile("dst", dst, shape, -(-source.end // 4096) * 4096 + 4096 if places is None else places[1])
    rounding = None if mode is None else RoundMode[mode.upper()]
    return TileCast(source, destination, None, rounding, None if saturation is None else Saturation(saturation), SPAN)


def run(lowered: LoweredInstruction, buffer: np.ndarray, *, shortcuts: bool) -> None:
    body = Lowered(0, lowered.body, lowered.accesses, lowered.shortcut)
    tree = Tree(Block((body,)), (Instruction("tcvt", "V", SPAN),), interlocked=False)
    compute(tree, buffer, {}, shortcuts=shortcuts)


def fill(cast: TileCast, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a buffer of noise with the valid source region taken cyclically from `codes`, and that region."""
    buffer = np.random.default_rng(1).integers(0, 256, UB, dtype=np.uint8)
    src = cast.src
    region = np.resize(codes, (src.valid_rows, src.valid_cols))
    packed = oracle_a5.pack(region, src.format.name)
    for row in range(src.valid_rows):
        start = src.address + row * src.row_pitch
        buffer[start : start + packed.shape[1]] = packed[row]
    return buffer, region


def check(
    cast: TileCast,
    codes: np.ndarray,
    doubt: oracle_a5.Doubt = oracle_a5.DEFAULT,
    kind: int = 0,
    *,
    paths: tuple[bool, ...] = (False, True),
    **options: int | str,
) -> LoweredInstruction:
    """Compare the whole buffer after a cast with the oracle's, on each path (False: register by register)."""
    src, dst = cast.src.format.name, cast.dst.format.name
    if kind:
        options["implementation_kind"] = kind
    lowered = lowerer(**options).cast(cast)
    buffer, region = fill(cast, codes)
    tile_type = cast.dst.type
    full = tile_type.valid_cols == tile_type.cols == cast.src.type.valid_cols or cast.dst.rows == 1
    multi_step = oracle_a5.kernel(kind, full=full) != "2D_default"
    mode = None if cast.rounding is None else cast.rounding.name.lower()
    saturation = None if cast.saturation is None else cast.saturation.value
    expected = buffer.copy()
    wanted = oracle_a5.lanes(src, dst, region, mode, saturation, multi_step=multi_step, doubt=doubt)
    oracle_a5.write_tile(expected, cast.dst.address, cast.dst.row_pitch, dst, wanted, doubt)
    for shortcuts in paths:
        got = buffer.copy()
        run(lowered, got, shortcuts=shortcuts)
        bad = np.flatnonzero(got != expected)
        path = "whole tile" if shortcuts else "registers"
        assert not bad.size, f"{src} -> {dst} {mode} {saturation} {path}: {bad.size} bytes differ, first {bad[:4]}"
    return lowered
