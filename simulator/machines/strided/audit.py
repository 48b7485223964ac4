"""Audit of scratch sizes: the formula's bytes against the bytes that the emitted operations use.

The extents come from the address fields of the executed operations, never from a second formula.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from castsim.execution.pipe_operations import check_equal_regions, check_overlap, check_tile
from castsim.execution.tree import Block, Deltas, Loop, Node, Tile, TileCast, width
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import IllegalError, ScratchError, Span, TileError, WarningKind, Warnings, WarningText
from castsim.isa.formats import Format, Saturation, format_named
from castsim.isa.pto.program import RoundMode, TileType
from castsim.machines.strided.kernel_sequence import KernelSequence
from castsim.machines.strided.plan import (
    NOTHING,
    CastPlan,
    ScratchNeed,
    append_call,
    conversion,
    plan_cast,
    plan_of,
    scratch_formula,
    scratch_need,
)
from castsim.machines.strided.strided_instructions import Stream, StridedInstruction, stream_extent
from castsim.targets.strided_repeat import StridedRepeatTarget

# What a strided-repeat cast or transfer refuses before anything is issued: layout, alignment, extent, overlap.


def check_cast(target: StridedRepeatTarget, cast: TileCast) -> Warnings:
    """Reject tiles that one cast cannot combine; return warnings about unusual combinations.

    Raises:
        TileError: see `check_tile`; also different shapes or valid regions, a column-major tile, an odd number of
            4-bit columns, and operands whose overlap would destroy unread elements.
    """
    tiles = [cast.src, cast.dst] + ([cast.tmp] if cast.tmp else [])
    for tile in tiles:
        check_tile(target, tile, cast.span)
    for tile in (cast.src, cast.dst):
        if tile.type.block_layout != "row_major":
            raise TileError(f"tile %{tile.name} is {tile.type.block_layout}; tcvt takes row_major", span=cast.span)
    check_equal_regions(cast)
    for tile in (cast.src, cast.dst):
        if tile.format.bits == 4 and tile.valid_cols % 2:
            raise TileError(
                f"tile %{tile.name} has {tile.valid_cols} valid columns of {tile.format.name}; "
                "two share a byte, so the number must be even",
                span=cast.span,
            )
    return check_overlap(cast)


# From one tile cast to the strided-repeat instructions a chip issues for it.
#
# Whole repeats come first, row by row (the head); the columns left over follow, all rows together: one masked
# instruction repeats down the rows (the tail). Each goes up to the repeat limit per instruction. Control writes
# bracket the whole. Source: docs/reference/a2a3.md section 2.3 (order of instructions), 2.4 (int4 storage) and 3.4
# (scratch sequences), after pto-isa include/pto/npu/a2a3/TCvt.hpp @ 3186c381.


@dataclass(frozen=True, slots=True)
class SplitCast:
    """The operations of one tile cast, the plan they follow, the scratch they need and warnings for the program."""

    body: Block
    plan: CastPlan
    warnings: Warnings
    need: ScratchNeed = NOTHING


def lower_cast(target: StridedRepeatTarget, cast: TileCast, *, unsafe_scratch: bool = False) -> SplitCast:
    """Split one tile cast into the instructions the target issues.

    With `unsafe_scratch` a tmp tile that is too small is used as on the chip: the instructions write past it.

    Raises:
        IllegalError: the type pair does not exist, or masks are counts when the kernel starts.
        TileError: the instruction does not support a layout, alignment, extent or overlap, or narrowing in place
            destroys unread elements.
        ScratchError: the tmp tile is smaller than the sequence needs; the message states the missing bytes.
    """
    plan = plan_of(target, cast)
    if target.option("count_mask_at_start"):
        raise IllegalError(
            "count mode is on (option count_mask_at_start): it would read the lane masks of a cast as counts",
            span=cast.span,
            legal=("count_mask_at_start = 0",),
        )
    warnings = plan.warnings + check_cast(target, cast)
    _check_unread_tail(plan, cast)
    need = scratch_need(plan, target.repeat, cast.dst.valid_rows, cast.dst.valid_cols, cast.src.cols)
    if cast.tmp is not None:
        _check_scratch(target, plan, cast, need, unsafe=unsafe_scratch)
    lowered = emit_cast(target, plan, cast)
    return SplitCast(lowered.body, plan, warnings + lowered.warnings, need)


def emit_cast(target: StridedRepeatTarget, plan: CastPlan, cast: TileCast) -> SplitCast:
    """Split one tile cast without the checks of `lower_cast`."""
    sequence, split = KernelSequence(target), _CastSplit(target, plan, cast)
    sequence.add((sequence.control("ctrl", plan.ctrl),))
    split.append(sequence)
    sequence.mask(sequence.full)
    sequence.add((sequence.control("ctrl", sequence.normal_ctrl),))
    return SplitCast(sequence.close(), plan, tuple(split.warnings))


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
                f"%{dst.name} in place over %{src.name}: whole repeats of row {first} overwrite columns {head} .. "
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
            f"{need.total - tmp.size} bytes too few ({terms})",
            span=cast.span,
        )


@dataclass(frozen=True, slots=True)
class _CastSplit:
    """One tile cast being split; collects warnings on the way."""

    target: StridedRepeatTarget
    plan: CastPlan
    cast: TileCast
    warnings: list[WarningText] = field(default_factory=list)

    def append(self, sequence: KernelSequence) -> None:
        """Append head and tail."""
        rule, dst, src = self.plan.rule, self.cast.dst, self.cast.src
        whole, rest = divmod(dst.valid_cols, rule.lanes)
        packed = any(tile.element_bits > tile.format.bits == 4 for tile in (dst, src))

        def head(inner: KernelSequence, row: int) -> None:
            """All whole repeats of one row, at most the repeat limit per call."""
            if whole > inner.limit and packed:
                self._warn(f"{dst.valid_cols} columns: later calls on a 4-bit row start at twice their packed offset")
            strides = (rule.dst_repeat_stride, rule.src_repeat_stride)
            for first, repeats in inner.pieces(whole):
                self._call(inner, (repeats, inner.full), (row, first * rule.lanes), strides)

        if whole:
            sequence.each(dst.valid_rows, head)
        if not rest or not dst.valid_rows:
            return
        if whole and packed:
            self._warn(
                f"{dst.valid_cols} columns: the tail of a 4-bit row starts at byte {whole * rule.lanes} of the row, "
                "twice the offset of its packed data"
            )
        mask = (1 << rest) - 1
        sequence.mask(mask)
        for first, repeats in sequence.pieces(dst.valid_rows):
            strides = (self._row_stride(dst), self._row_stride(src))
            self._call(sequence, (repeats, mask), (first, whole * rule.lanes), strides)

    def _call(
        self, sequence: KernelSequence, extent: tuple[int, int], start: tuple[int, int], strides: tuple[int, int]
    ) -> None:
        """Append one conversion of (repeats, mask) from a row and column on: an instruction, or the pair's sequence
        through scratch."""
        plan, (row, column) = self.plan, start
        dst, src = (
            Stream(tile.address + row * tile.row_pitch + column * tile.element_bits // 8, tile.format, 1, stride)
            for tile, stride in zip((self.cast.dst, self.cast.src), strides, strict=True)
        )
        if plan.sequence is not None and self.cast.tmp is not None:
            append_call(sequence, plan, extent, dst, src, self.cast.tmp.address)
            return
        if plan.rule.action == "scaled":
            sequence.add((sequence.control("deqscale", self.target.dequantisation_scale.code),))
            sequence.barrier()
        dst, src = (replace(one, repeat_stride=self._field(one.repeat_stride, extent[0])) for one in (dst, src))
        sequence.add((conversion(sequence, plan, extent, dst, src),))

    def _field(self, stride: int, repeats: int) -> int:
        """Return a repeat stride as the instruction word holds it."""
        name, bits = self.plan.mnemonic, self.target.repeat.repeat_stride_field_bits
        for narrow in self.target.narrow_strides:
            if name in narrow.mnemonics:
                bits = narrow.repeat_stride_field_bits
        kept = stride & ((1 << bits) - 1)
        if kept != stride and repeats > 1:
            self._warn(
                f"{name}: repeat stride {stride} does not fit {bits} bits and becomes {kept}: rows are misplaced"
            )
        return kept

    def _row_stride(self, tile: Tile) -> int:
        """Return the row pitch in blocks, from a row stride in elements that the chip cuts to its operand width."""
        elements_per_row = tile.cols & ((1 << self.target.repeat.row_stride_operand_bits) - 1)
        return elements_per_row * tile.element_bits // 8 // self.target.repeat.block_bytes

    def _warn(self, text: str) -> None:
        warning = WarningText(WarningKind.STRIDE, text)
        if warning not in self.warnings:
            self.warnings.append(warning)


_HERE = Span("<scratch>", 1, 1)
UNEXPLAINED = "unexplained: formula and lowering disagree"
"""The reason for a difference without a known explanation."""

_FAR = 1 << 40
"""The address of the scratch tile in an audit, beyond the reach of the other operands."""


@dataclass(frozen=True, slots=True)
class ScratchAudit:
    """The audit of one shape: the formula with its terms, and the extent touched, to the byte and in whole blocks."""

    rows: int
    cols: int
    row_stride: int
    need: ScratchNeed
    exact: int
    in_blocks: int
    reasons: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """Whether the formula equals the extent in whole blocks."""
        return self.need.total == self.in_blocks

    @property
    def explained(self) -> bool:
        """Whether formula and lowering agree, or differ for a known reason."""
        return UNEXPLAINED not in self.reasons


class ScratchAuditor:
    """Auditor of one scratch-backed pair of one target over any shapes."""

    def __init__(self, target: StridedRepeatTarget, src: str, dst: str, rounding: RoundMode | None = None) -> None:
        """Plan the pair with saturation off and a tmp tile.

        Raises:
            IllegalError: the pair does not exist, or uses no scratch; the message names those that do.
        """
        self.target = target
        self.src, self.dst = format_named(src), format_named(dst)
        self.plan: CastPlan = plan_cast(target, self.src, self.dst, rounding, Saturation.OFF, scratch=True)
        if self.plan.sequence is None:
            pairs = [f"{rule.src} -> {rule.dst}" for rule in target.sequences_in_force]
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
        """Return the smallest row stride, in elements, for `cols` columns in whole blocks."""
        step = self.target.repeat.block_bytes * 8 // self.src.storage_bits
        return max(-(-cols // step), 1) * step

    def takes(self, cols: int, row_stride: int) -> bool:
        """Return whether a tile may have this row stride: whole blocks, and room for `cols` columns."""
        return row_stride >= cols and row_stride * self.src.storage_bits % (8 * self.target.repeat.block_bytes) == 0

    @property
    def plan_mode(self) -> RoundMode:
        """The rounding in force, in the instruction set's spelling."""
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
    """Return the number of bytes from `base` on that the operations of a cast touch: 0 if none."""
    end = base
    for operation, moves in _furthest(body, None):
        for stream, move in zip((operation.destination, *operation.sources), moves, strict=True):
            if stream.address >= base:
                end = max(end, stream_extent(stream, operation.repeats, operation.lanes, operation.mask)[1] + move)
    return end - base


def _furthest(node: Node, moves: Sequence[Deltas] | None) -> Iterator[tuple[StridedInstruction, Deltas]]:
    """Yield each vector operation once, with the greatest distances that loops move its addresses."""
    if isinstance(node, Block):
        start = 0
        for item in node.items:
            end = start + width(item)
            yield from _furthest(item, None if moves is None else moves[start:end])
            start = end
    elif isinstance(node, Loop):
        own = [tuple(max(0, step * (node.trips - 1)) for step in steps) for steps in node.steps]
        outer = [(0,) * len(steps) for steps in own] if moves is None else moves
        both = [tuple(map(sum, zip(*pair, strict=True))) for pair in zip(own, outer, strict=True)]
        yield from _furthest(node.body, both)
    elif isinstance(node, StridedInstruction):
        yield node, (0,) * len(node.addresses) if moves is None else moves[0]
