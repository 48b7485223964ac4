"""Estimating the cycles of one tile cast without writing a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from isa.errors import ReadError, Span
from isa.formats import format_named
from isa.modes import Saturation
from isa.pto.program import RoundMode, TileType
from simulator.engines import simulate
from simulator.execution import Lowerer
from simulator.execution.lowerer import LoweredInstruction
from simulator.mechanisms import lowerer_of
from simulator.tiles import Tile, TileCast
from simulator.timing import Cause
from simulator.tree import Block, Instruction, Lowered, Tree
from targets import Target, load_target

_HERE = Span("<estimate>", 1, 1)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Cycles of an operation alone: first control write until the vector pipe is empty.

    `causes` are those of the pipe that computes, `bound_by` its largest.
    """

    cycles: int
    bound_by: Cause
    causes: Mapping[Cause, int]


def estimate(
    src: str,
    dst: str,
    rows: int,
    cols: int,
    *,
    target: str | Path | Target,
    row_stride: int | None = None,
    dst_row_stride: int | None = None,
    valid_rows: int | None = None,
    valid_cols: int | None = None,
    rounding: str | None = None,
    saturation: str | None = None,
    scratch: bool = False,
) -> Estimate:
    """Simulate one cast of a `rows` x `cols` tile and return its cycles and what bounds it.

    Args:
        src, dst: format names.
        rows, cols: extents of both tiles, in elements.
        target: a chip.
        row_stride, dst_row_stride: elements from row to row of source and destination, if not `cols`.
        valid_rows, valid_cols: valid region, if not the whole tile.
        rounding: a mode of the chip, or none; None takes the default.
        saturation: on, off or None.
        scratch: whether a tmp tile is given; it then has the size of an int32 tile of the source's shape, which
            always suffices (a2a3.md section 3.5), or what is left of the buffer.

    Raises:
        ReadError, IllegalError, TileError, ScratchError: see `isa.errors`.
    """
    chip = target if not isinstance(target, str | Path) else load_target(target)
    lowerer = lowerer_of(chip)
    placer = _Placer(lowerer, rows, valid_rows, valid_cols, cols)
    source = placer.place("src", src, row_stride or cols)
    destination = placer.place("dst", dst, dst_row_stride or cols)
    tmp = placer.place_rest("tmp", source) if scratch else None
    mode = None if rounding is None else _mode(rounding)
    wanted = None if saturation is None else Saturation(saturation)
    lowered = lowerer.cast(TileCast(source, destination, tmp, mode, wanted, _HERE))
    return timed_alone(chip, lowered, f"tcvt {src} -> {dst}")


def timed_alone(chip: Target, lowered: LoweredInstruction, text: str) -> Estimate:
    """Simulate one lowered instruction of the vector pipe and nothing else; `text` names it in messages."""
    body = Lowered(0, lowered.body, lowered.accesses)
    tree = Tree(Block((body,)), (Instruction(text, "V", _HERE),), interlocked=False)
    timing = simulate(tree, chip)
    execution = timing.executions[0]
    # Whoever converts is occupied longest; a pipe may be so without being busy, at a barrier or a branch.
    causes = min((pipe.causes for pipe in timing.pipes.values()), key=lambda causes: causes.get(Cause.EMPTY, 0))
    bound_by = max(causes, key=lambda cause: causes[cause]) if causes else Cause.EMPTY
    return Estimate(execution.end - execution.start, bound_by, causes)


def _mode(rounding: str) -> RoundMode:
    name = rounding.upper().removeprefix("CAST_")
    if name not in RoundMode.__members__:
        raise ReadError(f"unknown rounding mode '{rounding}'", legal=[mode.name.lower() for mode in RoundMode])
    return RoundMode[name]


class _Placer:
    """Puts tiles one behind the other into the buffer."""

    def __init__(self, lowerer: Lowerer, rows: int, valid_rows: int | None, valid_cols: int | None, cols: int) -> None:
        self.lowerer = lowerer
        self.rows = rows
        self.valid_rows = rows if valid_rows is None else valid_rows
        self.valid_cols = cols if valid_cols is None else valid_cols
        self.next = 0
        _, self.capacity, self.alignment = lowerer.buffer()

    def place(self, name: str, element: str, row_stride: int) -> Tile:
        fmt = format_named(element)
        kind = TileType("vec", fmt.name, self.rows, row_stride, self.valid_rows, self.valid_cols)
        bits = self.lowerer.element_bits(fmt)
        tile = Tile(name, fmt, kind, self.next, self.valid_rows, self.valid_cols, bits)
        self.lowerer.check_tile(tile, _HERE)
        self.next = -(-tile.end // self.alignment) * self.alignment
        return tile

    def place_rest(self, name: str, source: Tile) -> Tile:
        """Place an int32 tile of the source's shape, cut to what is left of the buffer."""
        words = min(source.rows * source.cols, (self.capacity - self.next) // 4)
        words -= words % (self.alignment // 4)
        kind = TileType("vec", "i32", 1, words, 1, words)
        return Tile(name, format_named("i32"), kind, self.next, 1, words, 32)
