"""From one tile cast to the strided-repeat instructions a chip issues for it.

Whole repeats come first, row by row (the head); the columns left over follow, all rows together: one masked
instruction repeats down the rows (the tail). Each goes up to the repeat limit per instruction. Control writes bracket
the whole. Source: docs/reference/a2a3.md section 2.3 (order of instructions), 2.4 (int4 storage) and 3.4 (scratch
sequences), after pto-isa include/pto/npu/a2a3/TCvt.hpp @ 3186c381.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from castsim.execution.tiles import Tile, TileCast
from castsim.execution.tree import Block, Node, loop_of
from castsim.isa.errors import IllegalError, ScratchError, TileError
from castsim.isa.warning_text import WarningKind, Warnings, WarningText
from castsim.machines.strided.checks import check_cast
from castsim.machines.strided.operations import Barrier, ControlWrite, Stream, VectorOperation
from castsim.machines.strided.plan import CastPlan, plan_cast, start_ctrl, timing_of
from castsim.machines.strided.scratch import NOTHING, ScratchNeed, scratch_need
from castsim.machines.strided.sequences import Call, emit_call
from castsim.targets.strided_repeat import StridedRepeatTarget


@dataclass(frozen=True, slots=True)
class LoweredCast:
    """The operations of one tile cast, the plan they follow, the scratch they need and warnings for the program."""

    body: Block
    plan: CastPlan
    warnings: Warnings
    need: ScratchNeed = NOTHING


def lower_cast(target: StridedRepeatTarget, cast: TileCast, *, unsafe_scratch: bool = False) -> LoweredCast:
    """Split one tile cast into the instructions the target issues.

    With `unsafe_scratch` a tmp tile that is too small is taken as the chip takes it: the instructions write past it.

    Raises:
        IllegalError: no such type pair; masks are counts when the kernel starts.
        TileError: layout, alignment, extent or overlap that the instruction cannot take; narrowing in place that
            destroys unread elements.
        ScratchError: the tmp tile is smaller than the sequence needs; says how many bytes are missing.
    """
    plan = plan_cast(
        target, cast.src.format, cast.dst.format, cast.rounding, cast.saturation, scratch=cast.tmp is not None
    )
    if target.option("count_mask_at_start"):
        raise IllegalError(
            "count mode is on (option count_mask_at_start): the lane masks that a cast writes would be read as counts",
            span=cast.span,
            legal=("count_mask_at_start = 0",),
        )
    warnings = plan.warnings + check_cast(target, cast)
    _check_unread_tail(plan, cast)
    need = scratch_need(plan, target.repeat, cast.dst.valid_rows, cast.dst.valid_cols, cast.src.cols)
    if cast.tmp is not None:
        _check_scratch(target, plan, cast, need, unsafe=unsafe_scratch)
    lowered = emit_cast(target, plan, cast)
    return LoweredCast(lowered.body, plan, warnings + lowered.warnings, need)


def emit_cast(target: StridedRepeatTarget, plan: CastPlan, cast: TileCast) -> LoweredCast:
    """Split one tile cast without asking whether its tiles fit: what `lower_cast` does once nothing is refused."""
    lowering = _Lowering(target, plan, cast)
    body = Block((lowering.write_ctrl(plan.ctrl), *lowering.emit(), lowering.write_ctrl(start_ctrl(target))))
    return LoweredCast(body, plan, tuple(lowering.warnings))


def _check_unread_tail(plan: CastPlan, cast: TileCast) -> None:
    """Refuse narrowing in place where the heads of later rows overwrite tails that are read after all heads."""
    src, dst, lanes = cast.src, cast.dst, plan.rule.lanes
    head = dst.valid_cols // lanes * lanes
    same_pitch = (dst.element_bits, dst.row_pitch) == (src.element_bits, src.row_pitch)
    if src.address != dst.address or same_pitch or not head or head == dst.valid_cols:
        return
    written = head * dst.format.bits // 8
    for row in range(dst.valid_rows):
        start = row * src.row_pitch + head * src.element_bits // 8
        end = row * src.row_pitch + dst.valid_cols * src.element_bits // 8
        first = max((start - written) // dst.row_pitch + 1, 0)
        if first < dst.valid_rows and first * dst.row_pitch < end:
            raise TileError(
                f"%{dst.name} in place over %{src.name}: the whole repeats of row {first} overwrite columns {head} .. "
                f"{dst.valid_cols - 1} of row {row} before they are read",
                span=cast.span,
            )


def _check_scratch(
    target: StridedRepeatTarget, plan: CastPlan, cast: TileCast, need: ScratchNeed, *, unsafe: bool
) -> None:
    tmp = cast.tmp
    assert tmp is not None
    capacity = target.memories["ub"].capacity_bytes
    if unsafe and tmp.address + need.total > capacity:
        raise TileError(
            f"the sequence writes {need.total} bytes from tmp tile %{tmp.name} on, "
            f"{tmp.address + need.total - capacity} of them past the end of the buffer",
            span=cast.span,
        )
    if need.total > tmp.size and not unsafe:
        terms = ", ".join(f"{name} {size}" for name, size in need.terms)
        raise ScratchError(
            f"tmp tile %{tmp.name} has {tmp.size} bytes, {plan.src.name} -> {plan.dst.name} of "
            f"{cast.dst.valid_rows} x {cast.dst.valid_cols} with row stride {cast.src.cols} needs {need.total}: "
            f"{need.total - tmp.size} bytes missing ({terms})",
            span=cast.span,
        )


class _Lowering:
    """One tile cast being split; collects warnings on the way."""

    def __init__(self, target: StridedRepeatTarget, plan: CastPlan, cast: TileCast) -> None:
        self.target = target
        self.plan = plan
        self.cast = cast
        self.full_mask = (1 << target.repeat.mask_lanes) - 1
        self.warnings: list[WarningText] = []

    def write_ctrl(self, value: int) -> ControlWrite:
        return ControlWrite("ctrl", value, pipe=self.target.pipes.scalar)

    def emit(self) -> Iterator[Node]:
        """Yield head and tail."""
        rule, dst, src = self.plan.rule, self.cast.dst, self.cast.src
        whole, rest = divmod(dst.valid_cols, rule.lanes)
        if whole:
            yield from loop_of(dst.valid_rows, lambda row: self._head_row(row, whole))
        if rest and dst.valid_rows:
            if whole and self._is_packed(dst) | self._is_packed(src):
                self._warn(
                    WarningKind.STRIDE,
                    f"{dst.valid_cols} columns: the tail of a 4-bit row starts at byte "
                    f"{whole * rule.lanes} of the row, twice where its packed data would continue",
                )
            mask = (1 << rest) - 1
            yield self._write_mask(mask)
            yield from self._tail(whole * rule.lanes, mask)
            yield self._write_mask(self.full_mask)

    def _head_row(self, row: int, whole: int) -> Block:
        """All whole repeats of one row, at most the repeat limit per call."""
        rule, limit = self.plan.rule, self.target.repeat.max_repeats
        if whole > limit and self._is_packed(self.cast.dst) | self._is_packed(self.cast.src):
            columns = self.cast.dst.valid_cols
            text = f"{columns} columns: later calls of a 4-bit row start at twice their packed place"
            self._warn(WarningKind.STRIDE, text)
        calls: list[Node] = []
        for first in range(0, whole, limit):
            calls += self._call(
                min(limit, whole - first),
                self._address(self.cast.dst, row, first * rule.lanes),
                self._address(self.cast.src, row, first * rule.lanes),
                rule.dst_repeat_stride,
                rule.src_repeat_stride,
                self.full_mask,
            )
        return Block(tuple(calls))

    def _tail(self, column: int, mask: int) -> Iterator[Node]:
        """The leftover columns of all rows: one repeat per row, at most the repeat limit per call."""
        dst, src, limit = self.cast.dst, self.cast.src, self.target.repeat.max_repeats
        for first in range(0, dst.valid_rows, limit):
            yield from self._call(
                min(limit, dst.valid_rows - first),
                self._address(dst, first, column),
                self._address(src, first, column),
                self._row_stride(dst),
                self._row_stride(src),
                mask,
            )

    def _call(self, repeats: int, dst: int, src: int, dst_stride: int, src_stride: int, mask: int) -> Iterator[Node]:
        """Yield one conversion of `repeats` repeats: a single instruction, or the pair's sequence through scratch."""
        call = Call(repeats, dst, src, dst_stride, src_stride, mask)
        if self.plan.sequence is not None and self.cast.tmp is not None:
            yield from emit_call(self.target, self.plan, call, self.cast.tmp.address)
            return
        plan, rule = self.plan, self.plan.rule
        if rule.action == "scaled":
            yield ControlWrite("deqscale", self.target.dequantisation_scale.code, pipe=self.target.pipes.scalar)
            yield Barrier(self.target.pipes.vector)
        yield VectorOperation(
            mnemonic=plan.mnemonic,
            timing=timing_of(self.target, plan),
            repeats=repeats,
            lanes=rule.lanes,
            mask=mask,
            destination=Stream(dst, plan.dst, 1, self._field(plan.mnemonic, dst_stride, repeats)),
            sources=(Stream(src, plan.src, 1, self._field(plan.mnemonic, src_stride, repeats)),),
            action=plan.action,
            pipe=self.target.pipes.vector,
        )

    def _field(self, mnemonic: str, stride: int, repeats: int) -> int:
        """Return a repeat stride as the instruction word holds it."""
        bits = self.target.repeat.repeat_stride_field_bits
        for narrow in self.target.narrow_strides:
            if mnemonic in narrow.mnemonics:
                bits = narrow.repeat_stride_field_bits
        kept = stride & ((1 << bits) - 1)
        if kept != stride and repeats > 1:
            text = f"{mnemonic}: repeat stride {stride} does not fit {bits} bits and becomes {kept}: rows are misplaced"
            self._warn(WarningKind.STRIDE, text)
        return kept

    def _row_stride(self, tile: Tile) -> int:
        """Return the row pitch in blocks, from a row stride in elements that the chip cuts to its operand width."""
        elements_per_row = tile.cols & ((1 << self.target.repeat.row_stride_operand_bits) - 1)
        return elements_per_row * tile.element_bits // 8 // self.target.repeat.block_bytes

    def _address(self, tile: Tile, row: int, column: int) -> int:
        """Pointer arithmetic in elements, each `element_bits` wide."""
        return tile.address + row * tile.row_pitch + column * tile.element_bits // 8

    def _write_mask(self, mask: int) -> ControlWrite:
        return ControlWrite("mask", mask, pipe=self.target.pipes.vector)

    def _is_packed(self, tile: Tile) -> bool:
        return tile.element_bits > tile.format.bits and tile.format.bits == 4

    def _warn(self, kind: WarningKind, text: str) -> None:
        warning = WarningText(kind, text)
        if warning not in self.warnings:
            self.warnings.append(warning)
