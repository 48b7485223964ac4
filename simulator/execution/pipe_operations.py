"""Operations of the pipes around the vector unit, the same for every mechanism with a tile buffer.

Transfers (from one tile load or store to DMA instructions), control writes, scalar work, flags and barriers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Self

from castsim.execution.timing import Cause
from castsim.execution.tree import (
    Access,
    Block,
    Deltas,
    GlobalSpace,
    Loop,
    Lowered,
    Node,
    Operation,
    Tile,
    TileCast,
    TileTransfer,
    Tree,
    common_bytes,
    loop_of,
    strided,
)
from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import EngineError, IllegalError, Span, TileError, WarningKind, Warnings, WarningText
from castsim.isa.formats import FloatFormat, Format, IntFormat
from castsim.isa.pto.types import element_spelling, format_tile
from castsim.targets.dataflow import BLOCK_BYTES, DataflowTarget

BLOCK = BLOCK_BYTES
"""Bytes of one buffer access, the unit of strides (the instruction set's own definition, not a chip's)."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """One DMA instruction between global memory and the unified buffer: `bursts` rows of `burst_bytes`.

    Row k moves between byte `gm_address + k * gm_pitch` of argument `argument` and byte `ub_address + k * ub_pitch`.
    `pipe` is the target's load or store pipe; `load` tells the direction. A load with a `pad_pattern` fills the rest
    of the last 32-byte block of each row with it.
    """

    pipe: str
    load: bool
    argument: str
    gm_address: int
    gm_pitch: int
    ub_address: int
    ub_pitch: int
    bursts: int
    burst_bytes: int
    pad_pattern: bytes = b""

    @property
    def addresses(self) -> tuple[int, ...]:
        """Buffer address first, then the offset in global memory."""
        return (self.ub_address, self.gm_address)

    def shifted(self, deltas: Deltas) -> Transfer:
        """Return the transfer with both ends moved."""
        if not any(deltas):
            return self
        return replace(self, ub_address=self.ub_address + deltas[0], gm_address=self.gm_address + deltas[1])


@dataclass(frozen=True, slots=True)
class Unaddressed:
    """Base of operations that no loop can move."""

    @property
    def addresses(self) -> tuple[int, ...]:
        """None."""
        return ()

    def shifted(self, deltas: Deltas) -> Self:
        """Return the operation itself."""
        return self


@dataclass(frozen=True, slots=True)
class ControlWrite(Unaddressed):
    """A scalar write to control state: `register` is `ctrl`, `mask` or `deqscale`, `value` its new content."""

    register: str
    value: int
    pipe: str = "S"


@dataclass(frozen=True, slots=True)
class ScalarWork(Unaddressed):
    """Work of the scalar unit: `kind` is `arithmetic`, `loop` (one loop turnaround), `read` or `write` (of an element
    of the buffer)."""

    kind: str
    pipe: str = "S"


@dataclass(frozen=True, slots=True)
class Placeholder(Unaddressed):
    """A placeholder for an operation of which only the pipe is known; `cycles` are its assumed cycles.

    `kind` is the operation of the text. With 0 cycles, its issue is free too.
    """

    kind: str
    pipe: str
    cycles: int


@dataclass(frozen=True, slots=True)
class ScalarElementAccess:
    """One element that the scalar unit reads or writes, at byte `address` of an argument, or of the buffer (None).

    `kind` is the operation of the text (`load_scalar`, `store_scalar`, `tgetval`, `tsetval`), `code` the written value,
    empty for a read: decisions that depend on it are already made. A write to a tile counts for all `tile_bytes`.
    """

    kind: str
    argument: str | None
    address: int
    code: bytes = b""
    tile_bytes: tuple[int, int] | None = None
    pipe: str = "S"

    @property
    def addresses(self) -> tuple[int, ...]:
        """The byte address of the element."""
        return (self.address,)

    def shifted(self, deltas: Deltas) -> ScalarElementAccess:
        """Return the access moved."""
        return replace(self, address=self.address + deltas[0]) if any(deltas) else self


@dataclass(frozen=True, slots=True)
class FlagSignal(Unaddressed):
    """Signal `event` to pipe `waiter` once everything issued before it on `pipe` has finished."""

    pipe: str
    waiter: str
    event: int


@dataclass(frozen=True, slots=True)
class FlagWait(Unaddressed):
    """Hold `pipe` until the signal (`signaller`, `pipe`, `event`) arrives, and consume it."""

    pipe: str
    signaller: str
    event: int


@dataclass(frozen=True, slots=True)
class PipeBarrier(Unaddressed):
    """Later operations of `pipe` wait until all earlier ones retired; `pipe` ALL covers every pipe."""

    pipe: str


# What reports call an operation.


def operation_name(operation: Operation) -> str:
    """Return the report name of an operation."""
    match operation:
        case Transfer():
            return f"{'load' if operation.load else 'store'} {operation.argument}"
        case ControlWrite():
            return f"set {operation.register}"
        case ScalarWork() | Placeholder():
            return operation.kind
        case ScalarElementAccess():
            return operation.kind if operation.argument is None else f"{operation.kind} {operation.argument}"
        case FlagSignal():
            return f"set_flag {operation.pipe} -> {operation.waiter} id {operation.event}"
        case FlagWait():
            return f"wait_flag {operation.signaller} -> {operation.pipe} id {operation.event}"
        case PipeBarrier():
            return f"barrier {operation.pipe}"
        case _:
            return str(getattr(operation, "name", type(operation).__name__))


# What the scalar unit itself spends on an operation, before it executes it or sends it to a pipe.


def cost_of(operation: Operation, target: DataflowTarget) -> tuple[int, Cause, tuple[str, ...]]:
    """Return the cycles, their cause, and the paths of the facts behind them."""
    timing = target.timing.scalar
    match operation:
        case ControlWrite():
            cycles = timing.control_write_cycles
        case ScalarWork(kind):
            cycles, fact = target.timing.scalar_work(kind)
            return cycles, Cause.LOOP_TURNAROUND if kind == "loop" else Cause.BUSY, ("timing.scalar", fact)
        case ScalarElementAccess(kind):
            cycles, fact = target.timing.cycles_of_access(kind)
            return cycles, Cause.BUSY, ("timing.scalar", fact)
        case Placeholder(pipe=pipe, cycles=stated):
            cycles = stated if pipe == target.pipes.scalar else timing.issue_cycles if stated else 0
        case FlagSignal() | FlagWait() | PipeBarrier():
            cycles = timing.synchronisation_cycles
        case _:
            cycles = timing.issue_cycles
    return cycles, Cause.BUSY, ("timing.scalar",)


# Instructions that do nothing which some question is about, and loops of nothing but such.

Kinds = tuple[type, ...]

PATH_ONLY: Kinds = (ScalarWork,)
"""Operations that touch no byte and order nothing."""

NO_VALUES: Kinds = (ScalarWork, FlagSignal, FlagWait, PipeBarrier)
"""Operations that compute no value."""


class Idle:
    """A search for parts of a tree that consist only of some kinds of operations; it visits each node once."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._known: dict[int, bool] = {}

    def __call__(self, node: Node) -> bool:
        """Return whether nothing in `node` is of another kind. The tree must outlive this object."""
        if isinstance(node, Loop):
            return self(node.body)
        if isinstance(node, Lowered):
            return not node.accesses and node.shortcut is None and self(node.body)
        if not isinstance(node, Block):
            return isinstance(node, self._kinds)
        idle = self._known.get(id(node))
        if idle is None:
            idle = self._known[id(node)] = all(map(self, node.items))
        return idle


# What a program consists of and needs of the machine, seen without running it; both engines begin with it.
#
# Every distinct node is looked at once: a straight-line program of ten million instructions may consist of a dozen
# different ones.

ALL_PIPES = "ALL"
"""The name of all pipes in a barrier."""


class Survey:
    """A survey of one tree; its blocks must live as long."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._items: dict[int, tuple[Mapping[int, Node], Mapping[int, int]]] = {}
        self.executions = self._count_executions(tree.root)
        """The number of executed instructions, with loops multiplied instead of unrolled."""
        self.operations: Counter[str] = Counter()
        """The number of operations per pipe."""
        self._count_operations(tree.root, 1)

    def check(self, target: DataflowTarget, check_work: Callable[[object], None]) -> None:
        """Refuse operations that the target's machine cannot execute; `check_work` refuses those of the vector unit.

        Raises:
            IllegalError: an operation belongs to another mechanism or the scalar unit; a pipe or timing row is unknown.
        """
        span = None
        checked: set[int] = set()
        try:
            for element in self.elements():
                if isinstance(element, Lowered):
                    span = self._tree.instructions[element.instruction].span
                elif id(element) not in checked:
                    checked.add(id(element))
                    _check_operation(element, target, check_work)
        except IllegalError as error:
            raise (error.at(span) if span is not None else error) from None

    def followed_spaces(self) -> list[str]:
        """Return the address spaces in which accesses in flight must be followed.

        Global memory that the whole program only reads, or only writes, is excluded: loads do not disturb each
        other, and stores never overlap in time because a single pipe executes them in order.
        """
        touched: dict[str, set[bool]] = {}
        for element in self.elements():
            if isinstance(element, Lowered):
                for access in element.accesses:
                    touched.setdefault(access.space, set()).add(access.write)
        return [
            space
            for space, writes in touched.items()
            if True in writes and (len(writes) > 1 or not isinstance(space, GlobalSpace))
        ]

    def elements(self) -> Iterator[Lowered | Operation]:
        """Yield the elements of the tree in pre-order; repeated elements of a block appear once."""
        return self._elements(self._tree.root)

    def _elements(self, node: Node) -> Iterator[Lowered | Operation]:
        if isinstance(node, Block):
            for item in self._distinct(node)[0].values():
                yield from self._elements(item)
        elif isinstance(node, Loop):
            yield from self._elements(node.body)
        else:
            yield node
            if isinstance(node, Lowered):
                yield from self._elements(node.body)

    def _distinct(self, block: Block) -> tuple[Mapping[int, Node], Mapping[int, int]]:
        """Return the distinct items of a block by identity, and the count of each."""
        items_of_block = self._items.get(id(block))
        if items_of_block is None:
            items = block.items
            items_of_block = self._items[id(block)] = (
                dict(zip(map(id, items), items, strict=True)),
                Counter(map(id, items)),
            )
        return items_of_block

    def _count_executions(self, node: Node) -> int:
        if isinstance(node, Block):
            items, times = self._distinct(node)
            return sum(times[key] * self._count_executions(item) for key, item in items.items())
        return node.trips * self._count_executions(node.body) if isinstance(node, Loop) else 1

    def _count_operations(self, node: Node, times: int) -> None:
        if isinstance(node, Block):
            items, counts = self._distinct(node)
            for key, item in items.items():
                self._count_operations(item, times * counts[key])
        elif isinstance(node, Loop):
            self._count_operations(node.body, times * node.trips)
        elif isinstance(node, Lowered):
            self._count_operations(node.body, times)
        else:
            self.operations[node.pipe] += times


def _check_operation(operation: Operation, target: DataflowTarget, check_work: Callable[[object], None]) -> None:
    """Refuse an operation that the target's machine cannot execute; the error has no place yet."""
    pipes = target.pipes
    working = (pipes.vector, pipes.load, pipes.store)
    every = (pipes.scalar, *working, *pipes.others)
    match operation:
        case FlagSignal():
            _check_pipe(operation.pipe, every, target)
            _check_pipe(operation.waiter, every, target)
        case FlagWait():
            _check_pipe(operation.pipe, every, target)
            _check_pipe(operation.signaller, every, target)
        case PipeBarrier(pipe):
            _check_pipe(pipe, (*every, ALL_PIPES), target)
        case ScalarWork() | ScalarElementAccess():
            _check_pipe(operation.pipe, (pipes.scalar,), target)
        case ControlWrite(pipe=pipe) if pipe != pipes.vector:
            _check_pipe(pipe, (pipes.scalar,), target)
        case Placeholder():
            _check_pipe(operation.pipe, every, target)
        case Transfer():
            _check_pipe(operation.pipe, working, target)
        case _:
            check_work(operation)
            _check_pipe(operation.pipe, working, target)


def _check_pipe(name: str, legal: tuple[str, ...], target: DataflowTarget) -> None:
    if name not in legal:
        raise IllegalError(f"target '{target.name}' has no pipe '{name}' for this", legal=legal)


# Why a simulation cannot go on, in words that all engines share: who waits for whom, or where a limit struck.

LOOK_AHEAD = 100_000
"""Maximum number of later operations that are searched for a missing signal, which limits the time of an error."""


@dataclass(frozen=True, slots=True)
class Standstill:
    """The state of a stalled pipe: operation `index`, of source instruction `instruction`, is at its head.

    `flag` is set if it awaits a flag, `needed` if it awaits the bytes of that instruction, neither at a barrier.
    """

    pipe: str
    index: int
    instruction: int
    flag: FlagWait | None = None
    needed: int | None = None


@dataclass(frozen=True, slots=True)
class Rest:
    """The remaining operations of a deadlocked program.

    `queued` returns the instruction of a signal in a queue, None if there is none; `unreached` are the next operations
    that the scalar unit, called `scalar`, cannot reach.
    """

    scalar: str
    queued: Callable[[FlagSignal], int | None]
    unreached: Sequence[Operation]


def explain_deadlock(tree: Tree, waits: Sequence[Standstill], rest: Rest) -> EngineError:
    """Return the error that names every wait, in the order of the waiting operations."""
    ordered = sorted(waits, key=lambda wait: wait.index)
    sentences = [f"{wait.pipe} waits for {_reason(tree, wait, rest)}" for wait in ordered]
    return EngineError(f"deadlock: {'; '.join(sentences)}", span=tree.instructions[ordered[0].instruction].span)


def explain_limit(tree: Tree, max_cycles: int, reached: int | None) -> EngineError:
    """Return the error of a run that took longer than allowed and had reached that instruction, if any."""
    message = f"cycle limit of {max_cycles} reached"
    if reached is None:
        return EngineError(message)
    instruction = tree.instructions[reached]
    return EngineError(f"{message} at '{instruction.text}' ({instruction.span})", span=instruction.span)


def _reason(tree: Tree, wait: Standstill, rest: Rest) -> str:
    location = tree.instructions[wait.instruction].span
    if wait.flag is not None:
        key = wait.flag
        return f"flag {key.signaller} -> {key.pipe} id {key.event} ({location}), {_signal(tree, wait.flag, rest)}"
    if wait.needed is not None:
        needed = tree.instructions[wait.needed]
        return f"the bytes of '{needed.text}' ({needed.span}), which has not ended ({location})"
    return f"all pipes to drain ({location})"


def _signal(tree: Tree, flag: FlagWait, rest: Rest) -> str:
    """Return a sentence about the state of the signal."""
    signal = FlagSignal(flag.signaller, flag.pipe, flag.event)
    setter = rest.queued(signal)
    if setter is not None:
        return f"set after what {flag.signaller} waits for ({tree.instructions[setter].span})"
    if signal in rest.unreached:
        return f"not issued yet because {rest.scalar} waits"
    return "which nothing sets again"


# From one tile load or store to DMA instructions: one per leading index of the view, one burst per row.
#
# Source: docs/reference/pto.md section 3.5 (views and their five dimensions), section 10.2 (padding on load),
# docs/reference/a2a3.md section 6.3 (one transfer instruction per leading index).

# What a cast or transfer refuses before anything is issued: layout, alignment, extent, overlap.

_ORDERS = {"nd": "row_major", "dn": "col_major"}
"""Layout of a view -> order of the tiles that it is loaded into."""


def check_tile(target: DataflowTarget, tile: Tile, span: Span) -> None:
    """Reject a tile that the buffer or a vector instruction does not accept (docs/reference/a2a3.md section 5).

    Raises:
        TileError: wrong location or layout, a row that is not a whole number of blocks, a misaligned address, an end
            beyond the buffer, a valid region larger than the tile.
    """
    memory = target.memories["ub"]
    kind = tile.type
    if kind.location != "vec":
        raise TileError(f"tile %{tile.name} is in '{kind.location}'; the vector unit needs tiles in vec", span=span)
    if kind.scatter_layout != "none_box":
        raise TileError(f"tile %{tile.name} has slayout={kind.scatter_layout}; vec tiles must be none_box", span=span)
    if not kind.rows or not kind.cols:
        raise TileError(f"tile %{tile.name} of {kind.rows} rows and {kind.cols} columns is empty", span=span)
    line = kind.cols if kind.block_layout == "row_major" else kind.rows
    if line * tile.element_bits % (8 * target.block_bytes):
        raise TileError(
            f"tile %{tile.name}: {line} x {tile.format.name} is {line * tile.element_bits // 8} bytes per line, "
            f"not a multiple of {target.block_bytes}",
            span=span,
            legal=_whole_lines(tile, target.block_bytes),
        )
    if tile.address % memory.alignment_bytes:
        raise TileError(
            f"tile %{tile.name} starts at byte {tile.address}, which is not {memory.alignment_bytes}-byte aligned",
            span=span,
            legal=_aligned_offsets(tile, memory.alignment_bytes),
        )
    if tile.address < 0 or tile.end > memory.capacity_bytes:
        raise TileError(
            f"tile %{tile.name} takes bytes {tile.address} .. {tile.end - 1}, the buffer has {memory.capacity_bytes}: "
            f"{max(tile.end - memory.capacity_bytes, 0)} bytes past the end",
            span=span,
        )
    if tile.valid_rows > tile.rows or tile.valid_cols > tile.cols:
        raise TileError(
            f"tile %{tile.name}: valid region {tile.valid_rows} x {tile.valid_cols} exceeds {tile.rows} x {tile.cols}",
            span=span,
        )


def _whole_lines(tile: Tile, block_bytes: int) -> tuple[str, ...]:
    """Return types of the same elements whose lines are whole blocks, and the requirement of a transfer of a single
    line.

    A tile of one column is best column-major: operations treat it as a vector of one element per row.
    """
    kept, other = _padded(tile, tile.type.block_layout, block_bytes), ""
    if tile.type.block_layout == "row_major" and tile.type.cols == 1:
        other = f"{_padded(tile, 'col_major', block_bytes)} with {_declared('dn')}"
    if tile.type.block_layout == "col_major" and tile.type.rows == 1:
        other = f"{_padded(tile, 'row_major', block_bytes)} with {_declared('nd')}"
    return (other, kept) if other else (kept,)


def _padded(tile: Tile, order: str, block_bytes: int) -> str:
    """Return the type of a tile with the same valid elements in an order that has whole blocks in every line."""
    per_block = max(8 * block_bytes // tile.element_bits, 1)
    rows, cols = tile.type.rows, tile.type.cols
    if order == "row_major":
        cols = -(-cols // per_block) * per_block
    else:
        rows = -(-rows // per_block) * per_block
    kind = replace(
        tile.type, rows=rows, cols=cols, valid_rows=tile.valid_rows, valid_cols=tile.valid_cols, block_layout=order
    )
    return format_tile(kind, element_spelling(kind.element))


def _declared(layout: str) -> str:
    """Return the declaration of a view's layout."""
    return f"{{layout = #pto.layout<{layout}>}} at the make_tensor_view that is loaded or stored"


def check_transfer(target: DataflowTarget, transfer: TileTransfer) -> Warnings:
    """Refuse a load or store whose view and tile do not match; return warnings (docs/reference/pto.md section 3.5).

    Raises:
        TileError: see `check_tile`; different valid extents, formats, layouts, or too many bursts.
    """
    tile, part, span = transfer.tile, transfer.part, transfer.span
    check_tile(target, tile, span)
    what = "tload" if transfer.load else "tstore"
    if tile.format != part.format:
        raise TileError(f"{what}: the view holds {part.format.name}, tile %{tile.name} {tile.format.name}", span=span)
    wanted = _ORDERS.get(part.layout)
    one_line = not transfer.load and 1 in (tile.valid_rows, tile.valid_cols)
    if wanted is None:
        raise TileError(
            f"{what}: layout {part.layout} cannot be transferred to or from vec tiles", span=span, legal=("nd", "dn")
        )
    if tile.type.block_layout != wanted and not one_line:
        other = next(layout for layout, order in _ORDERS.items() if order != wanted)
        raise TileError(
            f"{what}: layout {part.layout} needs a {wanted} tile, %{tile.name} is {tile.type.block_layout}",
            span=span,
            legal=(_declared(other), f"%{tile.name} as {_padded(tile, wanted, target.block_bytes)}"),
        )
    if transfer.load and tile.type.pad > 1 and tile.format.name in target.transfer_limits.zero_pad_only:
        raise TileError(f"{what}: {tile.format.name} can be padded only with zero", span=span, legal=("0", "1"))
    limit = target.transfer_limits.max_bursts
    if limit is not None and max(part.sizes[3], tile.rows) > limit:
        raise TileError(f"{what}: {max(part.sizes[3], tile.rows)} rows, one transfer takes at most {limit}", span=span)
    if part.format.bits == 4:
        _check_nibbles(transfer, what, wanted)
    return _check_gap(target, transfer)


def _check_nibbles(transfer: TileTransfer, what: str, wanted: str) -> None:
    """Reject moves of half a byte; FP4 rows may end with one, integer rows may not."""
    tile, part, span = transfer.tile, transfer.part, transfer.span
    if part.offset % 2 or any(stride % 2 for stride in part.strides[:4]):
        raise TileError(f"{what}: offsets and strides of a 4-bit view must be even", span=span)
    if tile.type.block_layout != wanted:
        raise TileError(f"{what}: a 4-bit line cannot be moved across the layout of %{tile.name}", span=span)
    if isinstance(part.format, IntFormat) and part.cols % 2:
        raise TileError(f"{what}: {part.cols} columns of {part.format.name}; the number must be even", span=span)


def check_equal_regions(cast: TileCast) -> None:
    """Check regions: physical shapes may differ for the library; the parser enforces the text form's own rule."""
    src, dst = cast.src, cast.dst
    ours, theirs = (src.valid_rows, src.valid_cols), (dst.valid_rows, dst.valid_cols)
    if ours != theirs:
        raise TileError(
            f"tcvt: valid region of %{src.name} is {ours[0]} x {ours[1]}, of %{dst.name} {theirs[0]} x {theirs[1]}",
            span=cast.span,
        )


def check_overlap(cast: TileCast) -> Warnings:
    """Reject operands that overlap, unless the destination starts with the source and advances no faster."""
    src, dst, tmp = cast.src, cast.dst, cast.tmp
    for other in (src, dst):
        if tmp and _overlap(tmp, other):
            raise TileError(
                f"tmp tile %{tmp.name} ({_range(tmp)}) overlaps %{other.name} ({_range(other)})", span=cast.span
            )
    if not _overlap(src, dst):
        return ()
    slower = dst.element_bits <= src.element_bits and (dst.row_pitch <= src.row_pitch or dst.valid_rows < 2)
    if src.address == dst.address and slower:
        if (dst.element_bits, dst.row_pitch) == (src.element_bits, src.row_pitch):
            return ()
        text = f"%{dst.name} is narrowed in place over %{src.name}: relies on in-order repeats"
        return (WarningText(WarningKind.IN_PLACE, text),)
    raise TileError(
        f"%{dst.name} ({_range(dst)}) partly overlaps its source %{src.name} ({_range(src)})", span=cast.span
    )


def _check_gap(target: DataflowTarget, transfer: TileTransfer) -> Warnings:
    tile = transfer.tile
    gap = (tile.cols - tile.valid_cols) * tile.element_bits // 8
    block = target.block_bytes
    if transfer.load or tile.type.block_layout != "row_major" or tile.valid_rows < 2 or gap % block == 0:
        return ()
    message = (
        f"tstore: {gap} bytes of each row of %{tile.name} are not stored: not a whole number of {block}-byte blocks"
    )
    if "store_gap" in target.options and target.option("store_gap") == "refuse":
        raise TileError(message, span=transfer.span)
    return ()


def _aligned_offsets(tile: Tile, alignment: int) -> tuple[str, ...]:
    """Return the required divisor of a part's offset along its lines."""
    if tile.reach is None:
        return ()
    axis = "columns" if tile.type.block_layout == "row_major" else "rows"
    return (f"offsets of a multiple of {alignment * 8 // tile.element_bits} {axis}",)


def _overlap(first: Tile, second: Tile) -> bool:
    return common_bytes(_lines(first), _lines(second)) is not None


def _lines(tile: Tile) -> Access:
    """Return the bytes of a tile; for a part, without those between its lines."""
    if tile.reach is None:
        return Access("ub", tile.address, tile.end, write=False)
    line = tile.cols if tile.type.block_layout == "row_major" else tile.rows
    pitch = line * tile.element_bits // 8
    count = -(-tile.reach // pitch) if pitch else 0
    return strided("ub", tile.address, ((count, pitch),), tile.reach - (count - 1) * pitch, write=False)


def _range(tile: Tile) -> str:
    return f"bytes {tile.address} .. {tile.end - 1}"


ZERO, MAXIMUM, MINIMUM = 1, 2, 3
"""Values of the tile field `pad`; 0 leaves the bytes after a row unchanged."""


def lower_transfer(target: DataflowTarget, transfer: TileTransfer) -> tuple[Block, Warnings]:
    """Split a load or store into DMA instructions; return them with warnings.

    Raises:
        TileError: refusals of `check_transfer`; elements of a row (column for `dn`) that are not adjacent.
    """
    warnings = check_transfer(target, transfer)
    part = transfer.part
    if not part.rows or not part.cols:
        return Block(()), warnings
    by_column = part.layout == "dn" and transfer.tile.type.block_layout == "col_major"
    inner = 3 if by_column else 4
    if part.sizes[inner] > 1 and part.strides[inner] != 1:
        raise TileError(
            f"{'tload' if transfer.load else 'tstore'}: layout {part.layout} needs adjacent elements, "
            f"the view's stride is {part.strides[inner]}",
            span=transfer.span,
        )
    first, second, third = part.sizes[:3]

    def instruction(index: tuple[int, int, int]) -> Transfer:
        return _instruction(target, transfer, index, by_column=by_column)

    def along_third(i: int, j: int) -> tuple[Node, ...]:
        return tuple(loop_of(third, lambda k: Block((instruction((i, j, k)),))))

    def along_second(i: int) -> tuple[Node, ...]:
        return tuple(loop_of(second, lambda j: Block(along_third(i, j))))

    return Block(tuple(loop_of(first, lambda i: Block(along_second(i))))), warnings


def pad_code(fmt: Format, pad: int) -> int:
    """Return the code that a load writes after each row (docs/reference/pto.md section 7.2).

    Largest and smallest value of an integer, plus and minus infinity of a float; 0 for floats of eight bits or fewer.
    """
    if pad == ZERO:
        return 0
    if isinstance(fmt, IntFormat):
        return (fmt.maximum if pad == MAXIMUM else fmt.minimum) & ((1 << fmt.bits) - 1)
    if isinstance(fmt, FloatFormat) and fmt.bits > 8 and fmt.infinity_code is not None:
        return fmt.infinity_code | (fmt.sign_bit if pad == MINIMUM else 0)
    return 0


def _instruction(
    target: DataflowTarget, transfer: TileTransfer, index: tuple[int, int, int], *, by_column: bool
) -> Transfer:
    part, tile = transfer.part, transfer.tile
    bits = part.format.bits if part.format.bits == 4 else part.format.storage_bits
    offset = part.offset + sum(i * stride for i, stride in zip(index, part.strides[:3], strict=True))
    row = ((index[0] * part.sizes[1] + index[1]) * part.sizes[2] + index[2]) * part.sizes[3]
    bursts, length, pitch = part.sizes[3], part.sizes[4], part.strides[3]
    position, ub_pitch = row * tile.row_pitch, tile.row_pitch
    if tile.type.block_layout == "col_major":
        element, column = tile.element_bits // 8, tile.rows * tile.element_bits // 8
        position, ub_pitch = row * element, column
        if by_column:
            bursts, length, pitch = part.sizes[4], part.sizes[3], part.strides[4]
        elif tile.valid_cols == 1:  # one line against its layout: an element per burst
            ub_pitch = element
        else:
            bursts, length, pitch = part.sizes[4], 1, part.strides[4]
    pads = transfer.load and tile.type.pad in (ZERO, MAXIMUM, MINIMUM)
    code = pad_code(part.format, tile.type.pad)
    if part.format.bits == 4:
        code |= code << 4
    pattern = code.to_bytes(part.format.storage_bits // 8, "little") if pads else b""
    return Transfer(
        pipe=target.pipes.load if transfer.load else target.pipes.store,
        load=transfer.load,
        argument=part.argument,
        gm_address=offset * bits // 8,
        gm_pitch=pitch * bits // 8,
        ub_address=tile.address + position,
        ub_pitch=ub_pitch,
        bursts=bursts,
        burst_bytes=(length * bits + 7) // 8,
        pad_pattern=pattern,
    )
