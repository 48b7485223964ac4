"""The operation tree: issued operations in program order, with loops kept as loops, and their tiles.

`Block` is a sequence, `Loop` repeats its body and moves every address by a constant per trip, `Lowered` groups the
operations of one executed source instruction and names the bytes they touch, `Operation` is the work of one pipe.
Engines only read the tree: it holds no values, and nothing in it depends on them (design: path first, values second,
time third). Operation kinds of a mechanism are defined beside its lowering; this module defines only the shared ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import Span
from castsim.isa.formats import Format, Rounding, Saturation

if TYPE_CHECKING:
    from castsim.isa.pto.program import RoundMode, TileType
    from castsim.targets.loader import Target

# Tiles and views with their places: what an instruction gets to work on once the program has been walked.


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile in a buffer.

    `address` and `row_pitch` count bytes, extents elements. `element_bits` are the bits of one element in pitch and
    pointer arithmetic, which for 4-bit formats may differ from the packed width. For a part of another tile, `reach`
    counts the bytes from its first to its last element; `type` may then have the shape of the whole. `added` marks a
    tmp tile that the assembler adds.
    """

    name: str
    format: Format
    type: TileType
    address: int
    valid_rows: int
    valid_cols: int
    element_bits: int
    reach: int | None = None
    added: bool = False

    @property
    def rows(self) -> int:
        """Physical rows."""
        return self.type.rows

    @property
    def cols(self) -> int:
        """Physical columns; also the row stride in elements."""
        return self.type.cols

    @property
    def row_pitch(self) -> int:
        """Bytes from one row to the next (row-major)."""
        return self.cols * self.element_bits // 8

    @property
    def packed_bits(self) -> int:
        """The bits of an element among its neighbours: 4-bit elements share bytes."""
        return self.format.bits if self.format.bits == 4 else self.element_bits

    @property
    def size(self) -> int:
        """Bytes that the tile occupies; for a part of a tile, including those between its lines."""
        return self.reach if self.reach is not None else self.rows * self.cols * self.element_bits // 8

    @property
    def end(self) -> int:
        """The end of the tile in bytes."""
        return self.address + self.size


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a view of a kernel argument, as seen by a transfer.

    `offset` is the element at which it starts, `sizes` and `strides` count elements and have five dimensions
    (leading ones of size 1 added); `layout` is `nd`, `dn` or `nz`.
    """

    argument: str
    format: Format
    offset: int
    sizes: tuple[int, int, int, int, int]
    strides: tuple[int, int, int, int, int]
    layout: str

    @property
    def rows(self) -> int:
        """The rows of a tile for the part: the product of all dimensions except the last."""
        first, second, third, fourth, _ = self.sizes
        return first * second * third * fourth

    @property
    def cols(self) -> int:
        """Columns as a tile sees them: the last dimension."""
        return self.sizes[4]


@dataclass(frozen=True, slots=True)
class TileCast:
    """One fully resolved tile cast: the common input of every mechanism's lowering.

    Casts of equal tiles are equal everywhere, so they are lowered once; the same applies to operations.
    """

    src: Tile
    dst: Tile
    tmp: Tile | None
    rounding: RoundMode | None
    saturation: Saturation | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class CastTiles:
    """The tiles between which a cast converts element by element, and the modes in force.

    `wraps` tells whether integers beyond the range keep their low bits; None if only the result can tell. `stretches`
    are the first bytes of a row and the number of elements from there on, if a row of 4-bit elements has gaps.
    """

    src: Tile
    dst: Tile
    rounding: Rounding
    wraps: bool | None
    stretches: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class TileTransfer:
    """One tile load (`load`) or store."""

    tile: Tile
    part: Part
    load: bool
    span: Span


@dataclass(frozen=True, slots=True)
class ScalarElement:
    """One element that the scalar unit reads or writes: at byte `address` of an argument, or of the buffer for a tile.

    `mnemonic` is the operation of the text, `code` the written value (empty for a read), `size` its bytes.
    """

    mnemonic: str
    place: str | Tile
    address: int
    size: int
    code: bytes
    span: Span


@dataclass(frozen=True, slots=True)
class ResolvedTileOp:
    """One fully resolved vector operation on tiles other than a cast or transfer.

    `mnemonic` is the text's name without `pto.` (`tadd`), `sources` the tile operands in the order of the text without
    mask and tmp, `scalars` the scalar operands as codes of their formats. `scalar_first` distinguishes `s, a` from `a,
    s`; `mode` is the comparison (`lt`), `binary` the flag `isBinary` of column sums, `descending` that of ramps.
    `pattern` (`0101` of P0101) gives the columns that a gather keeps, rows with `by_columns`; `counts` receives the
    number of matches of a gather by comparison in each row, which adds `offset` to the numbers. `further` are the
    exponents, maxima and reciprocals of a block quantisation, whose rule is `mode`; its groups are rows with
    `by_columns`, the exponents of two of them then optionally `interleaved`. `names_tmp` tells that the text has a
    scratch tile, even if `tmp` is dropped because the target ignores it. `part` marks a copy out of or into a part of a
    larger tile, whose shape then does not matter.
    """

    mnemonic: str
    dst: Tile
    sources: tuple[Tile, ...]
    span: Span = field(compare=False)
    scalars: tuple[tuple[int, Format], ...] = ()
    tmp: Tile | None = None
    mask: Tile | None = None
    mode: str | None = None
    scalar_first: bool = False
    binary: bool = False
    descending: bool = False
    names_tmp: bool = False
    pattern: str | None = None
    by_columns: bool = False
    counts: Tile | None = None
    offset: int = 0
    part: bool = False
    further: tuple[Tile, ...] = ()
    interleaved: bool = False


Deltas = tuple[int, ...]
"""The movement of each address of one tree element, in bytes."""


class InstructionRole(Enum):
    """The role of an instruction in reports and checks.

    Bookkeeping only decides path and addresses; of an opaque instruction, cycles and bytes are unknown.
    """

    WORK = "work"
    BOOKKEEPING = "bookkeeping"
    OPAQUE = "opaque"


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of the source text, common to all its executions.

    `text` is only for reports (`tcvt f32 -> f16`); the other attributes hold its parts. `pipe` is the pipe of its main
    work, `mnemonic` the operation without its dialect, `element` the format of a vector operation's work, `casts` the
    formats (from, to) of its casts. `inserted` marks a flag or barrier that the source lacks; its position is its
    line's, and `spelling` its form in a source.
    """

    text: str
    pipe: str
    span: Span = field(compare=False)
    inserted: bool = False
    role: InstructionRole = InstructionRole.WORK
    mnemonic: str = ""
    element: str | None = None
    spelling: str = ""
    casts: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """The mnemonic, or a substitute if there is none."""
        return self.mnemonic or self.text


_GLOBAL = "gm:"


class GlobalSpace(str):
    """The address space of a program argument in global memory, `gm:NAME`."""

    __slots__ = ()

    @classmethod
    def of(cls, argument: str) -> GlobalSpace:
        """Return the address space of the argument with a name."""
        return cls(f"{_GLOBAL}{argument}")

    @property
    def argument(self) -> str:
        """The name of the argument."""
        return self[len(_GLOBAL) :]


@dataclass(frozen=True, slots=True)
class Access:
    """Bytes of an address space that an instruction reads or writes: the first at `start`, the last before `end`.

    `space` is a buffer of the target (`ub`) or the `GlobalSpace` of an argument of the program. Without `runs` all
    bytes in between are touched. Otherwise `runs` are (count, distance) of nested repetitions, outermost first, of
    one stretch of bytes: the rows of a tile that is not full are `((rows, pitch),)`. Distances are positive.
    """

    space: str
    start: int
    end: int
    write: bool
    runs: tuple[tuple[int, int], ...] = ()

    def shifted(self, delta: int) -> Access:
        """Return the same bytes, moved by `delta`."""
        return replace(self, start=self.start + delta, end=self.end + delta) if delta else self


@runtime_checkable
class Operation(Protocol):
    """The work of one pipe: immutable, with the addresses that a loop may move."""

    @property
    def pipe(self) -> str:
        """Name of the pipe that executes it."""
        ...

    @property
    def addresses(self) -> tuple[int, ...]:
        """The byte addresses in a fixed order."""
        ...

    def shifted(self, deltas: Deltas) -> Operation:
        """Return the operation with every address moved by its delta."""
        ...


@dataclass(frozen=True, slots=True)
class Block:
    """Nodes in sequence."""

    items: tuple[Node, ...]

    @property
    def width(self) -> int:
        """Number of addressed elements inside; each loop body counts once."""
        return sum(width(item) for item in self.items)


@dataclass(frozen=True, slots=True)
class Loop:
    """`body` executed `trips` times; in trip k, element i of the body has moved by k times `steps[i]`.

    Elements are numbered in pre-order: a `Lowered` counts as one (its accesses), followed by those of its body.
    """

    trips: int
    body: Block
    steps: tuple[Deltas, ...]

    @property
    def width(self) -> int:
        """Number of addressed elements inside, independent of `trips`."""
        return len(self.steps)


@dataclass(frozen=True, slots=True)
class Lowered:
    """The operations of one executed instruction: `instruction` indexes `Tree.instructions`.

    `shortcut` is the proven overall effect of all operations in one step (None: nothing proven). It is for values only
    and holds while no loop has moved the operations. `cast` are the tiles of a cast, before any loop has moved them.
    `operands` are the tiles and parts of arguments that the text names, for inspection.
    """

    instruction: int
    body: Block
    accesses: tuple[Access, ...] = ()
    shortcut: object | None = None
    cast: CastTiles | None = None
    operands: tuple[tuple[str, Tile | Part], ...] = field(default=(), compare=False, repr=False)

    @property
    def width(self) -> int:
        """Number of addressed elements: its own accesses and everything in its body."""
        return 1 + self.body.width

    @property
    def addresses(self) -> tuple[int, ...]:
        """Start of every access."""
        return tuple(access.start for access in self.accesses)


Node = Operation | Block | Loop | Lowered

_Row = TypeVar("_Row")


@dataclass(frozen=True, slots=True)
class Tree:
    """A whole program.

    `interlocked` is True for programs that synchronise nothing themselves: engines then let an instruction wait for
    the earlier ones whose bytes it needs. In programs with flags, only the flags order instructions.
    """

    root: Block
    instructions: tuple[Instruction, ...]
    interlocked: bool


def width(node: Node) -> int:
    """Return the number of addressed elements in `node`."""
    return node.width if isinstance(node, Block | Loop | Lowered) else 1


def elements(node: Node) -> Iterator[Lowered | Operation]:
    """Yield the addressed elements of `node` in pre-order, each loop body once."""
    if isinstance(node, Block):
        for item in node.items:
            yield from elements(item)
    elif isinstance(node, Loop):
        yield from elements(node.body)
    elif isinstance(node, Lowered):
        yield node
        yield from elements(node.body)
    else:
        yield node


def issued(node: Node, times: int = 1) -> Iterator[tuple[int, Lowered]]:
    """Yield the distinct instructions in `node` with their numbers of executions."""
    if isinstance(node, Block):
        for item in node.items:
            yield from issued(item, times)
    elif isinstance(node, Loop):
        yield from issued(node.body, times * node.trips)
    elif isinstance(node, Lowered):
        yield times, node


def without(tree: Tree, numbers: Collection[int]) -> Tree:
    """Return a program without some of its instructions, as if the source did not contain them."""
    root, _ = _node_without(tree.root, numbers)
    return replace(tree, root=root if isinstance(root, Block) else Block(()))


def _node_without(node: Node, numbers: Collection[int]) -> tuple[Node | None, list[bool]]:
    """Return a node without some instructions, None if it is empty, and which of its elements remain."""
    if isinstance(node, Lowered):
        left = node.instruction not in numbers
        return (node if left else None), [left] * node.width
    if isinstance(node, Block):
        items = [_node_without(item, numbers) for item in node.items]
        kept = tuple(item for item, _ in items if item is not None)
        return (Block(kept) if kept else None), [mark for _, marks in items for mark in marks]
    if isinstance(node, Loop):
        body, marks = _node_without(node.body, numbers)
        steps = tuple(step for step, left in zip(node.steps, marks, strict=True) if left)
        return (Loop(node.trips, body, steps) if isinstance(body, Block) else None), marks
    return node, [True]


def loop_of(trips: int, build: Callable[[int], Block]) -> Iterator[Node]:
    """Yield `trips` executions of `build(trip)` as one loop; the addresses must be affine in the trip number."""
    if trips <= 0:
        return
    first = build(0)
    if trips == 1:
        yield from first.items
        return
    steps: list[Deltas] = [
        tuple(after - before for before, after in zip(node.addresses, second_node.addresses, strict=True))
        for node, second_node in zip(elements(first), elements(build(1)), strict=True)
    ]
    yield Loop(trips, first, tuple(steps))


def instances(
    tree: Tree, idle: Callable[[Node], bool] = lambda _: False
) -> Iterator[tuple[Lowered, Sequence[Deltas] | None]]:
    """Yield every executed instruction in program order, loops unrolled lazily; nodes that are `idle` are left out.

    The second item holds the deltas of the instruction's elements (pre-order, itself first), None for all zero;
    hand both to `operations` to get what the pipes execute, or to `accesses` for the bytes.
    """
    yield from _instances(tree.root, None, idle)


def accesses(lowered: Lowered, deltas: Sequence[Deltas] | None) -> tuple[Access, ...]:
    """Return the bytes that this execution of the instruction touches."""
    if deltas is None:
        return lowered.accesses
    return tuple(access.shifted(delta) for access, delta in zip(lowered.accesses, deltas[0], strict=True))


def operations(lowered: Lowered, deltas: Sequence[Deltas] | None) -> Iterator[Operation]:
    """Yield the operations of one executed instruction in issue order, with their final addresses."""
    yield from _operations(lowered.body, None if deltas is None else deltas[1:])


def _operations(node: Node, deltas: Sequence[Deltas] | None) -> Iterator[Operation]:
    if isinstance(node, Block):
        for item, own in _parts(node, deltas):
            yield from _operations(item, own)
    elif isinstance(node, Loop):
        for trip in range(node.trips):
            yield from _operations(node.body, _advance(deltas, node.steps, trip))
    elif isinstance(node, Lowered):
        raise TypeError("an instruction cannot contain another one")
    else:
        yield node if deltas is None else node.shifted(deltas[0])


def _instances(
    node: Node, deltas: Sequence[Deltas] | None, idle: Callable[[Node], bool]
) -> Iterator[tuple[Lowered, Sequence[Deltas] | None]]:
    if idle(node):
        return
    if isinstance(node, Block):
        for item, own in _parts(node, deltas):
            yield from _instances(item, own, idle)
    elif isinstance(node, Loop):
        for trip in range(node.trips):
            yield from _instances(node.body, _advance(deltas, node.steps, trip), idle)
    elif isinstance(node, Lowered):
        yield node, deltas
    else:
        raise TypeError("an operation outside an instruction")


def _parts(block: Block, rows: Sequence[_Row] | None) -> Iterator[tuple[Node, Sequence[_Row] | None]]:
    """Yield the items of a block with the matching rows, one for each addressed element."""
    start = 0
    for item in block.items:
        end = start + width(item)
        yield item, None if rows is None else rows[start:end]
        start = end


def _advance(deltas: Sequence[Deltas] | None, steps: Sequence[Deltas], trip: int) -> Sequence[Deltas] | None:
    """Add `trip` times the steps to the deltas that surrounding loops have gathered."""
    if trip == 0:
        return deltas
    if deltas is None:
        return [tuple(trip * step for step in row) for row in steps]
    return [
        tuple(delta + trip * step for delta, step in zip(before, row, strict=True))
        for before, row in zip(deltas, steps, strict=True)
    ]


def scratch_reads(accesses: Sequence[Access]) -> frozenset[int]:
    """Return the accesses of an instruction that read its scratch tile, which the instruction itself writes first.

    After the destination, a read followed by a write of the same bytes marks a scratch tile.
    """
    return frozenset(
        number
        for number, (read, write) in enumerate(pairwise(accesses))
        if number
        and not read.write
        and write.write
        and (read.space, read.start, read.end) == (write.space, write.start, write.end)
    )


# The bytes of each on-chip buffer that a program touches.

Reach = tuple[int, int]
"""The distances by which loops move an address down and up, in bytes."""


@dataclass(frozen=True, slots=True)
class BufferUse:
    """The range [start, end) of a buffer that contains all touched bytes, whose number is `touched`.

    All bytes between the first and last byte of an access count, as do those of all positions that loops move it to.
    """

    name: str
    start: int
    end: int
    capacity: int
    touched: int


def buffer_use(tree: Tree, target: Target) -> tuple[BufferUse, ...]:
    """Return the use of every buffer of the target that the program touches at all; loops stay rolled."""
    ranges: dict[str, set[Reach]] = {}
    for _, access, (down, up) in moved_accesses(tree.root):
        ranges.setdefault(access.space, set()).add((access.start + down, access.end + up))
    uses = []
    for name, memory in target.memories.items():
        spans = sorted(ranges.get(name, ()))
        end = touched = 0
        for start, after in spans:
            touched += max(after - max(start, end), 0)
            end = max(end, after)
        if spans:
            uses.append(BufferUse(name, spans[0][0], end, memory.capacity_bytes, touched))
    return tuple(uses)


def moved_accesses(root: Block) -> Iterator[tuple[tuple[int, int], Access, Reach]]:
    """Yield every access of a program with its movement by loops, identified by (instruction, index of the operand)."""
    yield from _accesses(root, None)


def _accesses(node: Node, reach: Sequence[tuple[Reach, ...]] | None) -> Iterator[tuple[tuple[int, int], Access, Reach]]:
    """Yield the accesses below `node`; `reach` has one entry per addressed element, None without a surrounding loop."""
    if isinstance(node, Block):
        for item, own in _parts(node, reach):
            yield from _accesses(item, own)
    elif isinstance(node, Loop):
        yield from _accesses(node.body, _widened(reach, node.steps, node.trips))
    elif isinstance(node, Lowered):
        spans = reach[0] if reach is not None else ((0, 0),) * len(node.accesses)
        for number, (access, span) in enumerate(zip(node.accesses, spans, strict=True)):
            yield (node.instruction, number), access, span


def _widened(reach: Sequence[tuple[Reach, ...]] | None, steps: Sequence[Deltas], trips: int) -> list[tuple[Reach, ...]]:
    moves = [tuple((min(0, step * (trips - 1)), max(0, step * (trips - 1))) for step in row) for row in steps]
    if reach is None:
        return moves
    return [
        tuple((low + down, high + up) for (low, high), (down, up) in zip(outer, inner, strict=True))
        for outer, inner in zip(reach, moves, strict=True)
    ]


# Which bytes two accesses have in common, rows with gaps and loops that move them included.
#
# Whether rows of one meet rows of the other is a question about sums of multiples, answered by search over the largest
# distances first: with rows that do not interleave deeper than their pitch it takes one or two steps per dimension.

Move = tuple[int, int]
"""The movement of an access by a loop: (trips, step in bytes, possibly negative)."""

Bytes = tuple[int, int]
"""The first byte and the end."""

_BUDGET = 4096
"""Maximum number of steps of a search; then two accesses count as meeting if their outermost ranges do."""

_Term = tuple[int, int, bool]
"""Coefficient, count, and whether it moves the first access."""


def strided(space: str, start: int, rows: Sequence[Move], length: int, *, write: bool) -> Access:
    """Return the access to `length` bytes at `start`, repeated by `rows`, outermost first; gapless rows are joined."""
    access = Access(space, start, start + length, write)
    for count, distance in reversed(rows):
        access = widened(access, count, distance)
    return access


def widened(access: Access, trips: int, step: int) -> Access:
    """Return all bytes that `trips` executions touch, each `step` bytes after the previous one."""
    if trips <= 1 or step == 0 or access.start >= access.end:
        return access
    reach = (trips - 1) * step
    start, end = access.start + min(0, reach), access.end + max(0, reach)
    gapless = not access.runs and abs(step) <= access.end - access.start
    return Access(access.space, start, end, access.write, () if gapless else ((trips, abs(step)), *access.runs))


def run_length(access: Access) -> int:
    """Return the bytes of one stretch without gaps."""
    return access.end - access.start - sum((count - 1) * distance for count, distance in access.runs)


def common_bytes(first: Access, other: Access, shift: int = 0, moves: Sequence[Move] = ()) -> Bytes | None:
    """Return bytes that both accesses touch, None if there are none.

    Args:
        one: an access that stays in place.
        other: an access `shift` bytes after its own address, which `moves` may move further, independently.
        shift: distance in bytes.
        moves: steps, each taken between 0 and trips - 1 times.

    Returns:
        Some common bytes. If the search takes too long, the overlap of the ranges from first to last byte, which may
            exceed that of the accesses.
    """
    if first.space != other.space or first.start >= first.end or other.start >= other.end:
        return None
    low = other.start + shift + sum(min(0, (trips - 1) * step) for trips, step in moves)
    high = other.end + shift + sum(max(0, (trips - 1) * step) for trips, step in moves)
    if high <= first.start or first.end <= low:
        return None
    if not first.runs and not other.runs and not moves:
        return max(first.start, low), min(first.end, high)
    search = _MeetingSearch(first, other, moves)
    meeting = search.run(0, other.start + shift - first.start, first.start)
    if meeting is None and search.left <= 0:
        return max(first.start, low), min(first.end, high)
    return meeting


class _MeetingSearch:
    """Search for a run of `first` and a run of `other` that meet; `left` counts down its remaining steps."""

    def __init__(self, first: Access, other: Access, moves: Sequence[Move]) -> None:
        terms: list[_Term] = [(-distance, count, True) for count, distance in first.runs]
        terms += [(distance, count, False) for count, distance in (*other.runs, *moves) if distance and count > 1]
        self.terms = sorted(terms, key=lambda term: -abs(term[0]))
        self.one_length = run_length(first)
        self.other_length = run_length(other)
        self.left = _BUDGET
        self.lowest, self.highest = [0], [0]
        for coefficient, count, _ in reversed(self.terms):
            reach = (count - 1) * coefficient
            self.lowest.append(self.lowest[-1] + min(0, reach))
            self.highest.append(self.highest[-1] + max(0, reach))
        self.lowest.reverse()
        self.highest.reverse()

    def run(self, depth: int, distance: int, start: int) -> Bytes | None:
        """Return common bytes; `distance` is from the first run, which starts at `start`, to the other."""
        self.left -= 1
        if self.left <= 0:
            return None
        if depth == len(self.terms):
            if -self.other_length < distance < self.one_length:
                return start + max(0, distance), start + min(self.one_length, distance + self.other_length)
            return None
        coefficient, count, moves_one = self.terms[depth]
        # The rest of the terms adds lowest .. highest; the sum must come to lie in the window.
        least = -self.other_length + 1 - distance - self.highest[depth + 1]
        most = self.one_length - 1 - distance - self.lowest[depth + 1]
        size = abs(coefficient)
        first, last = (least, most) if coefficient > 0 else (-most, -least)
        for times in range(max(0, -(-first // size)), min(count - 1, last // size) + 1):
            at = start + (times * size if moves_one else 0)
            meeting = self.run(depth + 1, distance + times * coefficient, at)
            if meeting is not None:
                return meeting
        return None
