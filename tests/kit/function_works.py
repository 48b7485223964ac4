"""Vector operations of A5 other than casts for tests: tiles one behind the other, lowered, timed."""

from __future__ import annotations

from dataclasses import replace

from kit.a5_cases import A5, SPAN
from kit.function_times import timed

from castsim.execution.tree import Block, ResolvedTileOp, Tile
from castsim.isa.formats import format_named
from castsim.isa.pto.program import TileType
from castsim.machines.vector_function.function_lowering import lower_work
from castsim.machines.vector_function.function_operations import VectorFunction
from castsim.targets.description import with_options
from castsim.targets.vector_function import VectorFunctionTarget

VECTORS = {"tadd": 2, "tsub": 2, "tmul": 2, "tdiv": 2, "tmax": 2, "tmin": 2, "tcmp": 2, "tsel": 2, "texpands": 0}
"""Tile operands of elementwise operations that have not exactly one."""


def tile(
    fmt: str,
    rows: int,
    cols: int,
    valid: tuple[int, int] | None = None,
    *,
    address: int = 0,
    layout: str = "row_major",
) -> Tile:
    """A tile; `valid` defaults to all of it."""
    valid = (rows, cols) if valid is None else valid
    kind = TileType("vec", fmt, rows, cols, *valid, block_layout=layout)
    element = format_named(fmt)
    return Tile("t", element, kind, address, *valid, element.bits if element.bits == 4 else element.storage_bits)


def placed(*tiles: Tile | None) -> list[Tile | None]:
    """The tiles one behind the other; None stays."""
    found, address = [], 0
    for one in tiles:
        found.append(None if one is None else replace(one, address=address))
        address += 0 if one is None else -(-one.size // 32) * 32
    return found


def work_of(
    mnemonic: str,
    dst: Tile,
    *sources: Tile,
    mask: Tile | None = None,
    tmp: Tile | None = None,
    binary: bool = False,
) -> ResolvedTileOp:
    """An operation on tiles that are placed sources first."""
    *sources, dst, mask, tmp = placed(*sources, dst, mask, tmp)
    return ResolvedTileOp(mnemonic, dst, tuple(sources), SPAN, mask=mask, tmp=tmp, binary=binary)


def lanewise(
    mnemonic: str, fmt: str, rows: int, cols: int, padding: int = 0, valid_cols: int | None = None
) -> ResolvedTileOp:
    """An elementwise operation or select on equal tiles; `padding` columns stand behind the valid ones."""
    count = VECTORS.get(mnemonic, 1)
    one = tile(fmt, rows, cols + padding, (rows, cols if valid_cols is None else valid_cols))
    mask = None
    if mnemonic in ("tsel", "tsels"):
        mask = tile("u8", rows, -(-(cols + padding) // 256) * 32, (rows, -(-cols // 8)))
    return work_of(mnemonic, one, *[one] * count, mask=mask)


def with_kind(kind: int) -> VectorFunctionTarget:
    return with_options(A5, {"implementation_kind": kind})


def function_of(work: ResolvedTileOp, target: VectorFunctionTarget = A5) -> VectorFunction:
    return next(item for item in lower_work(target, work).items if isinstance(item, VectorFunction))


def work_cycles(work: ResolvedTileOp, target: VectorFunctionTarget = A5) -> int:
    """Cycles from the launch of the function to its end."""
    execution = timed(Block((function_of(work, target),)), target=target).executions[0]
    return execution.end - execution.start
