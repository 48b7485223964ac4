"""Tiles, buffers and hard source codes for the strided-repeat tests."""

from __future__ import annotations

from functools import cache

import numpy as np
import oracle
from kit import strided_model
from kit.strided_model import Cast

from castsim.execution.interpreter.lowerer import LoweredInstruction
from castsim.execution.pipe_operations import ControlWrite, PipeBarrier
from castsim.execution.tree import Block, Instruction, Lowered, Operation, Tile, TileCast, Tree, operations
from castsim.isa.errors import Span
from castsim.isa.formats import Saturation, format_named
from castsim.isa.pto.program import RoundMode, TileType
from castsim.machines.strided.strided_instructions import StridedInstruction
from castsim.machines.strided.strided_lowering import StridedLowerer
from castsim.machines.strided.values import compute
from castsim.targets.loader import load_target

UB = 196_608
SPAN = Span("test.pto", 1, 1)
LOWERER = StridedLowerer(load_target("a2a3"))

_BOUNDS = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, 0.25, -0.75, 1.0009765625, 3.1415927, 1e-8, -1e-8]
_EDGES = [7.5, 8, -8.5, 127, 127.5, 128, -128.5, -129, 255, 255.5, 256, 300, -200, 2049, 4095.5]
_WIDE = [32767.5, 32768, -32768.5, -32769, 65504, 65519.9, 65520, 65536, 3e9, -3e9, 2**24 + 1, 2**31 - 64, 2**31]
_HUGE = [-(2**31), 2**32 + 2**9, 2**53, 2**62, 2**63, -(2**63), 2**64, 1e20, -1e30, 3.4e38]
_FLOAT_VALUES = _BOUNDS + _EDGES + _WIDE + _HUGE


@cache
def hard_codes(name: str) -> np.ndarray:
    """Codes of a format among which are its specials, ties, range edges of every narrower type, and random ones."""
    row = oracle.fmt(name)
    rng = np.random.default_rng(sum(map(ord, name)))
    if row.bits <= 8:
        return np.arange(1 << row.bits, dtype=np.uint64)
    if isinstance(row, oracle.Int):
        powers = [1 << bit for bit in (0, 1, 7, 8, 11, 12, 15, 16, 24, 25, 31, 32, 33, 53, 62, 63) if bit < row.bits]
        values = {sign * power + step for power in powers for sign in (1, -1) for step in (-1, 0, 1)}
        values |= {3 << 24, (1 << 24) + 3, 65504, 65519, 65520, 2049, 2050, 2051, -2049, 4098, 4099}
        codes = {value & ((1 << row.bits) - 1) for value in values}
    else:
        nearest = oracle.cast_array(
            np.array(_FLOAT_VALUES, np.float64).view(np.uint64), "f64", name, "trunc", "saturate"
        )
        codes = {int(code) + step for code in nearest for step in (-1, 0, 1)}
        codes |= {code | row.sign_code for code in codes}
        for sign in (0, row.sign_code):
            # zero, the subnormals' ends, the smallest normal, the largest number, infinity, two NaNs
            codes |= {sign | code for code in (0, 1, 2, (1 << row.fraction_bits) - 1, 1 << row.fraction_bits)}
            codes |= {sign | code for code in (row.inf - 1, row.inf, row.inf + 1, row.nan, row.nan + 1)}
        codes = {code for code in codes if 0 <= code < 1 << row.bits}
    some = rng.integers(0, 1 << row.bits, 40, dtype=np.uint64, endpoint=False) if row.bits < 64 else _words(rng)
    return np.array(sorted(codes | set(some.tolist())), dtype=np.uint64)


def _words(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 2**64 - 1, 40, dtype=np.uint64, endpoint=True) >> rng.integers(0, 63, 40).astype(np.uint64)


def tile(
    name: str, element: str, rows: int, cols: int, address: int, valid: tuple[int, int] | None = None, **fields: int
) -> Tile:
    """A row-major `vec` tile at a byte address."""
    fmt = format_named(element)
    valid_rows, valid_cols = valid or (rows, cols)
    kind = TileType("vec", element, rows, cols, valid_rows, valid_cols, **fields)
    return Tile(name, fmt, kind, address, valid_rows, valid_cols, LOWERER.element_bits(fmt))


def granule(src: str, dst: str) -> int:
    """Columns in which both tiles have whole blocks per row."""
    return 32 // min(strided_model.SIZE[src], strided_model.SIZE[dst])


def round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def tile_cast(model: strided_model.Cast, tmp_bytes: int = 0) -> TileCast:
    """The product's description of the cast that `model` describes."""
    rows, valid, (dst_pitch, src_pitch) = max(model.rows, 1), (model.rows, model.cols), model.pitches
    tmp = None if model.tmp_at is None else tile("t", "i32", 1, tmp_bytes // 4, model.tmp_at)
    return TileCast(
        tile("a", model.src, rows, src_pitch, model.src_at, valid),
        tile("b", model.dst, rows, dst_pitch, model.dst_at, valid),
        tmp,
        None if model.mode is None else RoundMode[model.mode.upper()],
        None if model.saturation is None else Saturation(model.saturation),
        SPAN,
    )


def as_tree(lowered: LoweredInstruction) -> Tree:
    node = Lowered(0, lowered.body, lowered.accesses, lowered.shortcut)
    return Tree(Block((node,)), (Instruction("tcvt", "V", SPAN),), interlocked=True)


def issued(lowered: LoweredInstruction) -> list[Operation]:
    return list(operations(Lowered(0, lowered.body), None))


def computed(lowered: LoweredInstruction, buffer: np.ndarray, *, shortcuts: bool) -> np.ndarray:
    after = buffer.copy()
    compute(as_tree(lowered), after, {}, shortcuts=shortcuts)
    return after


def filled_buffer(model: strided_model.Cast, seed: int) -> np.ndarray:
    """Random bytes everywhere, hard codes all over the source tile, padding included."""
    rng = np.random.default_rng(seed)
    buffer = rng.integers(0, 256, UB, dtype=np.uint8)
    # int4 tiles have a row pitch of `declared` bytes, each holding two elements.
    count = model.rows * model.declared * (2 if model.src == "i4" else 1)
    strided_model.write(buffer, model.src, model.src_at, rng.choice(hard_codes(model.src), count))
    return buffer


# ---------------------------- casts lowered in the buffer of the strided model, and their operations as lines of text
A2A3 = load_target("a2a3")
FULL = (1 << 128) - 1
START = 1 << 48  # the Inf/NaN mode
OFF = 1 << 59
CTRL_ON, CTRL_OFF = "ctrl 0", "ctrl off"
TMP = 131_072


def text(operation: Operation) -> str:
    """One operation in the shorthand of this file: `NAME REPEATSxMASKLANES dst+STRIDE <- src+STRIDE`."""
    if isinstance(operation, ControlWrite):
        if operation.register == "ctrl":
            assert operation.value in (START, START | OFF)
            return CTRL_OFF if operation.value & OFF else CTRL_ON
        if operation.register == "mask":
            lanes = operation.value.bit_length()
            assert operation.value == (1 << lanes) - 1
            return f"mask {lanes}"
        return f"{operation.register} {operation.value:#x}"
    if isinstance(operation, PipeBarrier):
        return f"barrier {operation.pipe}"
    assert isinstance(operation, StridedInstruction)
    lanes = operation.mask.bit_length()
    assert operation.mask == (1 << lanes) - 1
    streams = (operation.destination, *operation.sources)
    assert all(stream.block_stride == 1 for stream in streams)
    dst, *sources = (f"{stream.address}+{stream.repeat_stride}" for stream in streams)
    return f"{operation.mnemonic} {operation.repeats}x{min(lanes, operation.lanes)} {dst} <- {', '.join(sources)}"


def lower(model: Cast, tmp_bytes: int = 0) -> list[Operation]:
    return issued(LOWERER.cast(tile_cast(model, tmp_bytes)))


def texts(model: Cast, tmp_bytes: int = 0) -> list[str]:
    return [text(operation) for operation in lower(model, tmp_bytes)]


def calls(operations: list[Operation]) -> list[StridedInstruction]:
    return [operation for operation in operations if isinstance(operation, StridedInstruction)]
