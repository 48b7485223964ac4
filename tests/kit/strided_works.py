"""Vector operations on tiles of A2/A3 for tests: built by hand, what they issue, how long they take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from castsim.engines import simulate
from castsim.execution.pipe_operations import FlagSignal, FlagWait, PipeBarrier, ScalarWork
from castsim.execution.tree import Block, Instruction, Lowered, Operation, ResolvedTileOp, Tile, Tree, operations
from castsim.isa.errors import Span
from castsim.isa.formats import format_named
from castsim.isa.pto.program import TileType
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind
from castsim.machines.strided.kernel_lowering import lower_work
from castsim.machines.strided.strided_instructions import StridedInstruction
from castsim.targets.loader import load_target
from castsim.targets.strided_repeat import StridedRepeatTarget

TARGET = load_target("a2a3")
SPAN = Span("work", 1, 1)
BANK = 64 * 1024
"""Bytes after which blocks lie in another bank of their group."""

MNEMONICS = tuple(rule.mnemonic for rule in TARGET.tile_operations)


def tile(
    element: str,
    rows: int,
    cols: int,
    at: int = 0,
    *,
    valid: tuple[int, int] | None = None,
    layout: str = "row_major",
    pad: int = 0,
    name: str = "t",
) -> Tile:
    valid_rows, valid_cols = valid or (rows, cols)
    fmt = format_named(element)
    kind = TileType("vec", fmt.name, rows, cols, valid_rows, valid_cols, block_layout=layout, pad=pad)
    return Tile(name, fmt, kind, at, valid_rows, valid_cols, fmt.storage_bits)


def work(mnemonic: str, dst: Tile, *sources: Tile, **details: Any) -> ResolvedTileOp:
    return ResolvedTileOp(mnemonic, dst, sources, SPAN, **details)


def column(element: str, rows: int, at: int) -> Tile:
    """A dense column, its physical rows a whole number of blocks."""
    per_block = 256 // format_named(element).storage_bits
    return tile(element, -(-rows // per_block) * per_block, 1, at, valid=(rows, 1), layout="col_major")


def example(mnemonic: str, element: str = "f32", rows: int = 20, cols: int = 192) -> ResolvedTileOp:
    """An operation of every kind on a tile of several repeats per row."""
    kind, shape = VECTOR_OPERATIONS[mnemonic].kind, (element, rows, cols)
    one, two, dst, tmp = (tile(*shape, at * BANK // 2) for at in range(4))
    if kind is Kind.BROADCAST:
        return work(mnemonic, dst, scalars=((0, dst.format),))
    if kind is Kind.FILL:
        return work(mnemonic, tile(*shape, BANK, pad=1), tile(*shape, 0, valid=(rows - 3, cols - 70)))
    if kind is Kind.COMPARE:
        sources = (one, two) if mnemonic == "tcmp" else (one,)
        return work(mnemonic, tile("i8", rows, 32, BANK), *sources, mode="ne")
    if mnemonic in ("tsel", "tsels"):
        sources = (one, two) if mnemonic == "tsel" else (one,)
        return work(
            mnemonic, dst, *sources, mask=tile("i8", rows, 32, 2 * BANK), tmp=tile("u32", 1, 16, 2 * BANK + 8192)
        )
    if kind is Kind.ROW_REDUCE:
        return work(mnemonic, column(element, rows, BANK), one, tmp=tmp)
    if kind is Kind.ROW_EXPAND:
        return work(mnemonic, dst, tile(element, rows, 16, 0, valid=(rows, 1)))
    if kind is Kind.ROW_BROADCAST:
        return work(mnemonic, dst, one, column(element, rows, 2 * BANK), tmp=tmp)
    if kind is Kind.COLUMN_REDUCE:
        return work(mnemonic, tile(element, 1, cols, BANK), one)
    if kind is Kind.COLUMN_EXPAND:
        return work(mnemonic, dst, tile(element, 1, cols))
    if kind is Kind.COLUMN_BROADCAST:
        return work(mnemonic, dst, one, tile(element, 1, cols, 2 * BANK))
    return _rearranging(mnemonic, element, rows, cols) or (
        work(mnemonic, dst, one, two, tmp)
        if "aaa" in _forms(mnemonic)
        else work(mnemonic, dst, one, two)
        if "aa" in _forms(mnemonic)
        else work(mnemonic, dst, one)
    )


def _rearranging(mnemonic: str, element: str, rows: int, cols: int) -> ResolvedTileOp | None:  # noqa: C901 - a row per kind
    kind, shape = VECTOR_OPERATIONS[mnemonic].kind, (element, rows, cols)
    one, two, dst, tmp = (tile(*shape, at * BANK // 2) for at in range(4))
    if kind is Kind.RAMP:
        return work(mnemonic, tile("i32", 1, cols, BANK), scalars=((0, dst.format),), tmp=tmp, names_tmp=True)
    if kind is Kind.PATTERN_GATHER:
        return work(mnemonic, tile(element, rows, cols // 2, BANK), one, pattern="0101")
    if kind is Kind.COMPARE_GATHER:
        counts, scalars = tile("i32", rows, 8, 2 * BANK, valid=(rows, 1)), ((0, one.format),)
        return work(mnemonic, tile("i32", rows, cols, BANK), one, tmp=tmp, counts=counts, scalars=scalars, mode="gt")
    if kind is Kind.SORT:
        pairs = tile(element, rows, cols * 64 // one.element_bits, BANK)
        return work(mnemonic, pairs, one, tile("u32", rows, cols, 2 * BANK), tmp=tmp)
    if kind is Kind.MERGE:
        return work(mnemonic, dst, one, scalars=((cols // 4, tile("i32", 1, 8).format),))
    if kind is Kind.GATHER:
        return work(mnemonic, dst, one, tile("i32", rows, cols, BANK // 2), tmp=tile("i32", rows, cols, 2 * BANK))
    if kind is Kind.QUANTISE:
        scale, zero = (column("f32", rows, 2 * BANK + at * 4096) for at in range(2))
        return work(mnemonic, tile("u8", rows, cols, BANK), one, scale, zero, tmp=tmp)
    if kind is Kind.DEQUANTISE:
        scale, zero = (column("f32", rows, 2 * BANK + at * 4096) for at in range(2))
        return work(mnemonic, dst, tile("i8", rows, cols, BANK), scale, zero)
    if kind is Kind.ROW_ARGUMENT:
        return work(mnemonic, column("i32", rows, BANK), one, tmp=tmp)
    if kind is Kind.COLUMN_ARGUMENT:
        return work(mnemonic, tile("i32", 1, cols, BANK), one, tmp=tmp)
    if kind is Kind.TRANSPOSE:
        return work(mnemonic, tile(element, cols, 32, BANK), one, tmp=tmp)
    if kind is Kind.CONCATENATE:
        return work(mnemonic, tile(element, rows, 2 * cols, BANK), one, two)
    if kind is Kind.COUNTED_CONCATENATE:
        counts = [tile("i32", rows, 8, at, valid=(rows, 1)) for at in (2 * BANK, 2 * BANK + 4096)]
        return work(mnemonic, dst, one, two, *counts)
    return None


def _forms(mnemonic: str) -> tuple[str, ...]:
    return tuple("".join(form) for form in VECTOR_OPERATIONS[mnemonic].forms)


def issued(made: ResolvedTileOp, target: StridedRepeatTarget = TARGET) -> list[Operation]:
    """All operations of a vector operation in issue order."""
    return list(operations(Lowered(0, lower_work(target, made)), None))


def vectors(made: ResolvedTileOp) -> list[StridedInstruction]:
    return [operation for operation in issued(made) if isinstance(operation, StridedInstruction)]


def listing(made: ResolvedTileOp) -> list[str]:
    """One line per operation: `vadd x32 mask 64 @dst+step <- @src+step` in bytes, `mask 64`, `barrier`, ..."""
    return [_line(operation) for operation in issued(made)]


_WORDS = {PipeBarrier: "barrier", FlagSignal: "setflag", FlagWait: "waitflag"}


def _line(operation: Operation) -> str:
    if not isinstance(operation, StridedInstruction):
        register = getattr(operation, "register", None)
        if register == "mask":
            return f"mask {_mask(getattr(operation, 'value', 0))}"
        if register is not None:
            return f"set {register}"
        return f"scalar {operation.kind}" if isinstance(operation, ScalarWork) else _WORDS[type(operation)]
    streams = [f"@{one.address}+{one.step}" for one in (operation.destination, *operation.sources)]
    sources = f" <- {' '.join(streams[1:])}" if streams[1:] else ""
    return f"{operation.mnemonic} x{operation.repeats} {_mask(operation.mask)} {streams[0]}{sources}"


def _mask(value: int) -> str:
    """A prefix mask as its number of lanes; others, and counts, as they are."""
    lanes = value.bit_length()
    return f"[{lanes}]" if value == (1 << lanes) - 1 else f"{value:#x}"


def tree_of(made: ResolvedTileOp, target: StridedRepeatTarget = TARGET) -> Tree:
    body: Block = lower_work(target, made)
    return Tree(Block((Lowered(0, body),)), (Instruction(made.mnemonic, "V", SPAN),), interlocked=False)


def cycles(target: StridedRepeatTarget, made: ResolvedTileOp) -> int:
    return simulate(tree_of(made, target), target, record_operations=False).total


def touched(operation: StridedInstruction, stream_number: int) -> Iterator[int]:
    """Yield every byte that one stream of an operation touches, repeat by repeat, from the definition of streams."""
    stream = (operation.destination, *operation.sources)[stream_number]
    size = stream.format.storage_bits // 8
    lanes = (
        range(stream.elements)
        if stream.elements
        else [lane for lane in range(operation.lanes) if operation.mask >> lane & 1]
    )
    for repeat in range(operation.repeats):
        for lane in lanes:
            block, inside = divmod(lane * size, 32)
            start = stream.address + repeat * stream.step + block * stream.block_stride * 32 + inside
            yield from range(start, start + size)
