"""Construction of the instructions of one vector operation on tiles: operands, mask and count state, calls, barriers.

Three forms cover a region of `lines` x `length` elements (docs/reference/a2a3.md sections 2.2, 2.3 and 6; the call
patterns are those that the published issue cycles and the model's own predictions show, section 6.3):

* flat: all elements as one line, whole repeats first, then one masked repeat;
* columns: one call per column of whole repeats, one repeat per line, then one masked call for the columns left over;
* counted: one instruction under a mask that contains the number of elements: for each line, if lines are farther
  apart than a repeat stride allows; for all of them, if they are adjacent, longer than a repeat and no whole ones
  (docs/reference/a2a3.md section 6.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from castsim.execution.pipe_operations import BLOCK, ControlWrite, FlagSignal, FlagWait, PipeBarrier, ScalarWork
from castsim.execution.tree import Block, Node, ResolvedTileOp, Tile, loop_of
from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import IllegalError
from castsim.isa.formats import Format, format_named
from castsim.machines.strided.strided_instructions import Action, Stream, StridedInstruction, start_ctrl, with_bit
from castsim.targets.strided_repeat import StridedOperation, StridedRepeatTarget

BITS, WORDS = format_named("i8"), format_named("i16")
"""The formats of packed bits and of lanes that move pairs of bytes."""
_HALF_LANES = "_half_lanes"
"""Ending of the timing rows of instructions under a mask of at most half the lanes."""


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand; element c of line r is at byte `address + r * line_step + c * size`.

    `shared` means that all columns use the first block of their line (block stride 0).
    """

    address: int
    format: Format
    line_step: int
    shared: bool = False

    @property
    def size(self) -> int:
        """Size of an element in bytes."""
        return self.format.storage_bits // 8

    def at(self, line: int = 0, column: int = 0) -> Operand:
        """Return the operand from another line and column on."""
        inside = 0 if self.shared else column * self.size
        return replace(self, address=self.address + line * self.line_step + inside)

    def down(self) -> Stream:
        """Return the stream with one repeat per line."""
        return Stream(self.address, self.format, 0 if self.shared else 1, self.line_step // BLOCK)

    def along(self, stride: int) -> Stream:
        """Return the stream with repeats along the line, `stride` blocks each."""
        return Stream(self.address, self.format, 0 if self.shared else 1, 0 if self.shared else stride)


@dataclass(frozen=True, slots=True)
class LineRegion:
    """The region that an operation covers: `lines` lines of `length` elements."""

    lines: int
    length: int


def words(fmt: Format) -> Format:
    """Return the format for instructions without 8-bit lanes: pairs of bytes."""
    return WORDS if fmt.storage_bits < 16 else fmt


def operand_of(tile: Tile, fmt: Format | None = None) -> Operand:
    """Return a tile as an operand, line by line of its layout, in another format of the same width if given."""
    if tile.type.block_layout == "row_major":
        return Operand(tile.address, fmt or tile.format, tile.row_pitch)
    return Operand(tile.address, fmt or tile.format, tile.rows * tile.element_bits // 8)


def region_of(tile: Tile) -> LineRegion:
    """Return the valid region of a tile, in lines of its layout."""
    if tile.type.block_layout == "row_major":
        return LineRegion(tile.valid_rows, tile.valid_cols)
    return LineRegion(tile.valid_cols, tile.valid_rows)


def packed(address: int, fmt: Format, step: int, elements: int) -> Stream:
    """Return a stream whose repeats are `step` bytes apart, closer than blocks."""
    return Stream(address, fmt, 1, 0, step, elements)


def scratch_of(work: ResolvedTileOp) -> Tile:
    """Return the tmp tile of an operation that requires one."""
    if work.tmp is None:
        raise IllegalError(f"{work.mnemonic} needs a tmp tile", span=work.span)
    return work.tmp


class KernelSequence:
    """The instructions of one operation, in issue order. Mask and count mode are written only when they change."""

    def __init__(self, target: StridedRepeatTarget, lines: str = "never") -> None:
        """Begin one; for the words of `lines` see `castsim.targets.strided_repeat.StridedOperation`."""
        self.target = target
        self.lines = lines
        self.full = (1 << target.repeat.mask_lanes) - 1
        self.limit = target.repeat.max_repeats
        self.normal_ctrl = start_ctrl(target)
        self.repeat_blocks = target.repeat.repeat_bytes // target.repeat.block_bytes
        self._nodes: list[Node] = []
        self._mask = self.full
        self._counting = False

    def lanes(self, fmt: Format) -> int:
        """Return the elements of a full repeat."""
        return self.target.repeat.repeat_bytes * 8 // fmt.storage_bits

    def block_elements(self, fmt: Format) -> int:
        """Return the elements of a block."""
        return self.target.repeat.block_bytes * 8 // fmt.storage_bits

    def close(self) -> Block:
        """Return all instructions, with mask and count mode restored."""
        self.leave_count()
        self.mask(self.full)
        return Block(tuple(self._nodes))

    def add(self, nodes: Iterable[Node]) -> None:
        """Append nodes unchanged."""
        self._nodes += nodes

    def each(self, count: int, make: Callable[[KernelSequence, int], None]) -> None:
        """Append a loop; `make` appends the nodes of a trip, after which mask and count mode are restored."""

        def trip(number: int) -> Block:
            inner = KernelSequence(self.target, self.lines)
            make(inner, number)
            return inner.close()

        self.add(loop_of(count, trip))

    def pieces(self, total: int) -> Iterator[tuple[int, int]]:
        """Yield the first repeat and the number of repeats of every call."""
        for first in range(0, total, self.limit):
            yield first, min(self.limit, total - first)

    def calls(self, total: int, limit: int, call: Callable[[int, int], StridedInstruction]) -> None:
        """Append a loop of calls of `limit` repeats and a call of the rest; `call` receives the first repeat and their
        number."""
        whole, rest = divmod(total, limit)
        self.add(loop_of(whole, lambda index: Block((call(index * limit, limit),))))
        if rest:
            self.add((call(whole * limit, rest),))

    def work_of_scalars(self, count: int, *kinds: str) -> None:
        """Append a loop of scalar work of the given kinds."""
        trip = Block(tuple(self.scalar(kind) for kind in kinds))
        self.add(loop_of(count, lambda _: trip))

    def barrier(self) -> None:
        """Append a barrier that waits for earlier vector instructions."""
        self._nodes.append(PipeBarrier(self.target.pipes.vector))

    def control(self, register: str, value: int, *, changes: bool = True) -> ControlWrite:
        """Return a write to control state; a mask write that `changes` anything goes through the vector pipe."""
        pipes = self.target.pipes
        masks = register in ("mask", "cmpmask") and changes
        return ControlWrite(register, value, pipe=pipes.vector if masks else pipes.scalar)

    def scalar(self, kind: str) -> ScalarWork:
        """Return work of the scalar unit."""
        return ScalarWork(kind, pipe=self.target.pipes.scalar)

    def mask(self, value: int) -> None:
        """Set the lane mask to `value`; bit i is lane i."""
        if value != self._mask:
            self.leave_count()
            self._nodes.append(self.control("mask", value))
            self._mask = value

    def enter_count(self, elements: int) -> None:
        """Enter count mode: instructions cover the first `elements` elements, whatever their repeats."""
        if self._counting and self._mask == -elements:
            return
        if not self._counting:
            ctrl = with_bit(self.normal_ctrl, self.target.control.mask_is_count, True)
            self._nodes.append(self.control("ctrl", ctrl))
            self._counting = True
        self._nodes.append(self.control("mask", elements))
        self._mask = -elements

    def leave_count(self) -> None:
        """Restore lane masks after count mode."""
        if self._counting:
            self._nodes.append(self.control("ctrl", self.normal_ctrl))
            self._counting = False

    def await_vector(self) -> None:
        """Append a wait of the scalar unit for the vector pipe, before it reads the buffer."""
        pipes = self.target.pipes
        self._nodes += (FlagSignal(pipes.vector, pipes.scalar, 0), FlagWait(pipes.scalar, pipes.vector, 0))

    def await_scalar(self) -> None:
        """Append a wait of the vector pipe for the scalar unit, until it has read its operands."""
        pipes = self.target.pipes
        self._nodes += (FlagSignal(pipes.scalar, pipes.vector, 0), FlagWait(pipes.vector, pipes.scalar, 0))

    def vector(
        self,
        mnemonic: str,
        repeats: int,
        dst: Stream,
        sources: Iterable[Stream] = (),
        *,
        mask: int | None = None,
        lanes: int | None = None,
        timing: str | None = None,
        row: str | None = None,
        action: Action = None,
    ) -> StridedInstruction:
        """Return one instruction under the current mask, or under `mask` in count mode.

        `timing` is the instruction whose cycles it takes, by default its own; `row` the row of that table.
        """
        if mask is None:
            mask = self._mask
        timing, element = timing or mnemonic, dst.format.name
        if row is None and lanes is None and 0 < mask < 1 << self.lanes(dst.format) // 2:
            row = self.target.timing_row(f"{timing}{_HALF_LANES}", element)
        return StridedInstruction(
            mnemonic=mnemonic,
            timing=row or self.target.timing_row(timing, element) or timing,
            repeats=repeats,
            lanes=lanes or self.lanes(dst.format),
            mask=mask,
            destination=dst,
            sources=tuple(sources),
            action=action,
            pipe=self.target.pipes.vector,
        )

    def issue(self, mnemonic: str, repeats: int, dst: Stream, sources: Iterable[Stream] = ()) -> None:
        """Append one instruction under the current mask."""
        self._nodes.append(self.vector(mnemonic, repeats, dst, sources))

    def down(
        self, mnemonic: str, region: LineRegion, dst: Operand, sources: Sequence[Operand], timing: str | None = None
    ) -> None:
        """Cover a region that is at most one repeat wide: one repeat per line, under the mask for its length."""
        self.mask(self.prefix(region.length, dst.format))
        operands = (dst, *sources)
        limit = self.limit if self._strides_fit(operands) else 1

        def call(first: int, lines: int) -> StridedInstruction:
            to, *origins = (operand.at(first).down() for operand in operands)
            return self.vector(mnemonic, lines, to, origins, timing=timing)

        self.calls(region.lines, limit, call)

    def columns(
        self, mnemonic: str, region: LineRegion, dst: Operand, sources: Sequence[Operand], timing: str | None = None
    ) -> None:
        """Cover a region in the columns form."""
        lanes = self.lanes(dst.format)
        for column in range(0, region.length, lanes):
            width = min(lanes, region.length - column)
            moved = [operand.at(column=column) for operand in (dst, *sources)]
            self.down(mnemonic, LineRegion(region.lines, width), moved[0], moved[1:], timing)

    def parts(self, elements: int, fmt: Format) -> Iterator[tuple[int, int, int]]:
        """Yield the first element, the repeats and the mask of the whole repeats of a line, then of the rest."""
        lanes = self.lanes(fmt)
        whole, rest = divmod(elements, lanes)
        if whole:
            yield 0, whole, self.full
        if rest:
            yield whole * lanes, 1, (1 << rest) - 1

    def along(
        self, mnemonic: str, first: int, repeats: int, dst: Operand, sources: Sequence[Operand], mask: int | None = None
    ) -> StridedInstruction:
        """Return one instruction along a line from an element on; for `mask` see `vector`."""
        to, *origins = (operand.at(column=first).along(self.repeat_blocks) for operand in (dst, *sources))
        return self.vector(mnemonic, repeats, to, origins, mask=mask)

    def flat(self, mnemonic: str, elements: int, dst: Operand, sources: Sequence[Operand]) -> None:
        """Cover adjacent elements in the flat form."""
        lanes = self.lanes(dst.format)
        for first, repeats, mask in self.parts(elements, dst.format):
            self.mask(mask)
            for start, count in self.pieces(repeats):
                self.add((self.along(mnemonic, first + start * lanes, count, dst, sources),))

    def counted(
        self, mnemonic: str, length: int, dst: Operand, sources: Sequence[Operand]
    ) -> Iterator[StridedInstruction]:
        """Yield one instruction in count mode over `length` elements of one line.

        The count ends within the last repeat, which is a separate operation here; it starts after the others and
        takes the same time.
        """
        for first, repeats, mask in self.parts(length, dst.format):
            yield self.along(mnemonic, first, repeats, dst, sources, mask)

    def counted_lines(self, mnemonic: str, region: LineRegion, dst: Operand, sources: Sequence[Operand]) -> None:
        """Cover a region in the counted form."""
        self.enter_count(region.length)

        def line(number: int) -> Block:
            moved = [operand.at(number) for operand in (dst, *sources)]
            return Block(tuple(self.counted(mnemonic, region.length, moved[0], moved[1:])))

        self.add(loop_of(region.lines, line))
        self.leave_count()

    def cover(
        self, mnemonic: str, region: LineRegion, dst: Operand, sources: Sequence[Operand], merges: str | None = None
    ) -> None:
        """Cover a region in the form that fits; one call takes together adjacent lines as `merges`, by default
        `lines`, says."""
        merges = merges or self.lines
        operands, lanes = (dst, *sources), self.lanes(dst.format)
        adjacent = all(not one.shared and one.line_step == region.length * one.size for one in operands)
        elements = region.lines * region.length
        whole, shorter = region.length % lanes == 0, region.length < lanes
        if adjacent and (merges == "always" or (merges != "never" and whole) or (merges == "up_to_repeat" and shorter)):
            self.flat(mnemonic, elements, dst, sources)
        elif adjacent and merges != "never" and region.lines > 1 and region.length > lanes:
            self.enter_count(elements)
            self.add(self.counted(mnemonic, elements, dst, sources))
        elif not self._strides_fit(operands):
            self.counted_lines(mnemonic, region, dst, sources)
        elif region.lines == 1:
            self.flat(mnemonic, region.length, dst, sources)
        else:
            self.columns(mnemonic, region, dst, sources)

    def prefix(self, length: int, fmt: Format) -> int:
        """Return the mask of the first `length` lanes, the full one if that is a whole repeat."""
        return self.full if length >= self.lanes(fmt) else (1 << length) - 1

    def copy(self, dst: Operand, src: Operand, size: int) -> StridedInstruction:
        """Return the copy of `size` bytes in whole blocks."""
        blocks = -(-size // BLOCK)
        to, origin = dst.along(1), src.along(1)
        return self.vector("copy_ubuf_to_ubuf", blocks, to, (origin,), mask=self.full, lanes=BLOCK // dst.size)

    def _strides_fit(self, operands: Iterable[Operand]) -> bool:
        return all(operand.line_step // BLOCK <= self.target.repeat.max_repeat_stride for operand in operands)


KernelLayout = Callable[[KernelSequence, ResolvedTileOp, StridedOperation], None]
LAYOUTS: dict[str, KernelLayout] = {}
"""The functions that append the instructions of a kernel, by its structure."""


def lays_out(structure: str) -> Callable[[KernelLayout], KernelLayout]:
    """Register the function of a structure."""
    return lambda function: LAYOUTS.setdefault(structure, function)
