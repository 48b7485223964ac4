"""Auditing scratch sizes: what the formula asks for against the bytes that the emitted operations really touch.

The extents come from the address fields of the operations that a run executes, never from a second formula.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from castsim.execution.tiles import Tile, TileCast
from castsim.execution.tree import Block, Deltas, Loop, Node
from castsim.isa.errors import IllegalError, Span
from castsim.isa.formats import Format, format_named
from castsim.isa.modes import Saturation
from castsim.isa.pto.program import RoundMode, TileType
from castsim.machines.strided.geometry import stream_extent
from castsim.machines.strided.lowering import emit_cast
from castsim.machines.strided.operations import VectorOperation
from castsim.machines.strided.plan import CastPlan, plan_cast
from castsim.machines.strided.scratch import ScratchNeed, scratch_formula
from castsim.targets.strided_repeat import StridedRepeatTarget

_HERE = Span("<scratch>", 1, 1)
UNEXPLAINED = "unexplained: formula and lowering disagree"
"""The reason that no known deviation accounts for."""

_FAR = 1 << 40
"""Where the scratch tile of an audit lies: behind anything the other operands can reach."""


@dataclass(frozen=True, slots=True)
class ScratchAudit:
    """One shape: the formula with its terms, and the extent touched, to the byte and in whole blocks."""

    rows: int
    cols: int
    row_stride: int
    need: ScratchNeed
    exact: int
    in_blocks: int
    reasons: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """Whether the formula is the extent in whole blocks."""
        return self.need.total == self.in_blocks

    @property
    def explained(self) -> bool:
        """Whether formula and lowering agree, or differ for a reason that is known."""
        return UNEXPLAINED not in self.reasons


class ScratchAuditor:
    """Audits one scratch-backed pair of one target over any shapes."""

    def __init__(self, target: StridedRepeatTarget, src: str, dst: str, rounding: RoundMode | None = None) -> None:
        """Settle the plan of the pair with saturation off and a tmp tile.

        Raises:
            IllegalError: no such pair, or one that uses no scratch; names those that do.
        """
        self.target = target
        self.src, self.dst = format_named(src), format_named(dst)
        self.plan: CastPlan = plan_cast(target, self.src, self.dst, rounding, Saturation.OFF, scratch=True)
        if self.plan.sequence is None:
            pairs = [f"{rule.src} -> {rule.dst}" for rule in target.scratch_sequences]
            raise IllegalError(f"{self.src.name} -> {self.dst.name} uses no scratch on {target.name}", legal=pairs)

    def audit(self, rows: int, cols: int, row_stride: int) -> ScratchAudit:
        """Compare formula and touched bytes for `rows` x `cols` valid elements, source rows `row_stride` apart."""
        need = scratch_formula(self.plan, self.target.repeat, rows, cols, row_stride)
        tmp = Tile("tmp", self.src, TileType("vec", "i32", 1, 8, 1, 8), _FAR, 1, 8, 32)
        source = self._tile("src", self.src, 0, rows, cols, row_stride)
        destination = self._tile("dst", self.dst, source.end, rows, cols, row_stride)
        cast = TileCast(source, destination, tmp, self.plan_mode, Saturation.OFF, _HERE)
        exact = scratch_extent(emit_cast(self.target, self.plan, cast).body, _FAR)
        block = self.target.repeat.block_bytes
        in_blocks = -(-exact // block) * block
        return ScratchAudit(
            rows, cols, row_stride, need, exact, in_blocks, self._reasons(rows, row_stride, need, exact)
        )

    def packed_stride(self, cols: int) -> int:
        """Return the smallest row stride, in elements, that holds `cols` columns in whole blocks."""
        step = self.target.repeat.block_bytes * 8 // self.src.storage_bits
        return max(-(-cols // step), 1) * step

    def takes(self, cols: int, row_stride: int) -> bool:
        """Whether a tile may have this row stride: whole blocks, and room for `cols` columns."""
        return row_stride >= cols and row_stride * self.src.storage_bits % (8 * self.target.repeat.block_bytes) == 0

    @property
    def plan_mode(self) -> RoundMode:
        """The rounding in force, as the instruction set names it."""
        return RoundMode[self.plan.rounding.name]

    def _tile(self, name: str, fmt: Format, address: int, rows: int, cols: int, row_stride: int) -> Tile:
        kind = TileType("vec", fmt.name, max(rows, 1), row_stride, rows, cols)
        return Tile(name, fmt, kind, address, rows, cols, fmt.storage_bits)

    def _reasons(self, rows: int, row_stride: int, need: ScratchNeed, exact: int) -> tuple[str, ...]:
        if need.total == exact:
            return ()
        limit = 1 << self.target.repeat.row_stride_operand_bits
        if not rows:
            return ("no rows: nothing is issued",)
        if row_stride >= limit:
            return (f"the row stride is cut to {row_stride % limit} elements",)
        if -(-exact // self.target.repeat.block_bytes) * self.target.repeat.block_bytes == need.total:
            return ("the last block is partly used",)
        return (UNEXPLAINED,)


def scratch_extent(body: Block, base: int) -> int:
    """Return how many bytes from `base` on the operations of a cast touch: 0 if none."""
    end = base
    for operation, reach in _moved(body, None):
        for stream, (_, furthest) in zip((operation.destination, *operation.sources), reach, strict=True):
            if stream.address >= base:
                last = stream_extent(stream, operation.repeats, operation.lanes, operation.mask)[1]
                end = max(end, last + furthest)
    return end - base


def _moved(
    node: Node, moves: list[list[tuple[int, int]]] | None
) -> Iterator[tuple[VectorOperation, list[tuple[int, int]]]]:
    """Yield each vector operation once, with how far loops move its addresses at the least and at the most."""
    if isinstance(node, Block):
        start = 0
        for item in node.items:
            end = start + (item.width if isinstance(item, Block | Loop) else 1)
            yield from _moved(item, None if moves is None else moves[start:end])
            start = end
    elif isinstance(node, Loop):
        own = [_ranges(steps, node.trips) for steps in node.steps]
        yield from _moved(node.body, own if moves is None else [_sum(a, b) for a, b in zip(own, moves, strict=True)])
    elif isinstance(node, VectorOperation):
        yield node, [(0, 0)] * len(node.addresses) if moves is None else moves[0]


def _ranges(steps: Deltas, trips: int) -> list[tuple[int, int]]:
    return [(min(0, step * (trips - 1)), max(0, step * (trips - 1))) for step in steps]


def _sum(one: list[tuple[int, int]], two: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(a + c, b + d) for (a, b), (c, d) in zip(one, two, strict=True)]
