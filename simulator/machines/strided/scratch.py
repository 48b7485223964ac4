"""How many bytes of scratch a tile cast needs: the published sizing formulas, every term by name.

Source: the `pto.tcvt` instruction page, constraints on the temporary tile. The enumeration of docs/reference/a2a3.md
section 3.5 found them equal to the blocks really touched for every shape with at least one row.
"""

from __future__ import annotations

from dataclasses import dataclass

from castsim.isa.formats import Format
from castsim.isa.modes import Saturation
from castsim.isa.pto.program import RoundMode
from castsim.machines.strided.plan import CastPlan, plan_cast
from castsim.targets.strided_repeat import RepeatInstruction, StridedRepeatTarget


@dataclass(frozen=True, slots=True)
class ScratchNeed:
    """Scratch bytes of one cast; `terms` are the named parts of the formula whose largest decides."""

    total: int
    terms: tuple[tuple[str, int], ...]


NOTHING = ScratchNeed(0, ())


def scratch_need(plan: CastPlan, repeat: RepeatInstruction, rows: int, cols: int, row_stride: int) -> ScratchNeed:
    """Return the bytes that a cast of `rows` x `cols` valid elements needs; `row_stride` of the source in elements.

    Nothing is issued, and nothing needed, when either extent is 0 or the plan uses no scratch.
    """
    return scratch_formula(plan, repeat, rows, cols, row_stride) if rows else NOTHING


def packed_need(
    target: StridedRepeatTarget,
    pair: tuple[Format, Format],
    modes: tuple[RoundMode | None, Saturation | None],
    rows: int,
    cols: int,
) -> ScratchNeed:
    """Return what a cast with a tmp tile needs for source rows without gaps."""
    return scratch_need(plan_cast(target, *pair, *modes, scratch=True), target.repeat, rows, cols, cols)


def scratch_formula(plan: CastPlan, repeat: RepeatInstruction, rows: int, cols: int, row_stride: int) -> ScratchNeed:
    """Return what the published formulas say to the letter; they know the case of no columns, not that of no rows."""
    if plan.sequence is None or not cols:
        return NOTHING
    block = repeat.block_bytes
    if plan.sequence.steps == "via_i32":
        return _via_i32(repeat, rows, cols, row_stride)
    lanes = min(cols, plan.sequence.chunk_lanes or cols)
    wide = ("int32 chunk", block * _blocks(4 * lanes, block))
    if plan.sequence.steps == "chunked":
        return ScratchNeed(wide[1], (wide,))
    half = 2 * (plan.sequence.chunk_lanes or 0)
    masked = ("int16 chunk after the first half", half + block * _blocks(2 * lanes, block))
    return ScratchNeed(max(wide[1], masked[1]), (wide, masked))


def _via_i32(repeat: RepeatInstruction, rows: int, cols: int, row_stride: int) -> ScratchNeed:
    block = repeat.block_bytes
    lanes = repeat.repeat_bytes // 4
    head = repeat.repeat_bytes * min(cols // lanes, repeat.max_repeats)
    tail = 0
    if cols % lanes:
        row_blocks = row_stride * 4 // block
        tail = block * ((min(rows, repeat.max_repeats) - 1) * row_blocks + _blocks(4 * (cols % lanes), block))
    return ScratchNeed(
        max(head, tail), (("head: whole repeats of one row", head), ("tail: rows at the source pitch", tail))
    )


def _blocks(size: int, block: int) -> int:
    return -(-size // block)
