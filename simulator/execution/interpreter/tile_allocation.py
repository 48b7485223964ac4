"""Allocation of tiles during the walk: at the program's addresses, or at the next free byte."""

from __future__ import annotations

from bisect import bisect, insort
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

from castsim.execution.interpreter.arguments import Allocator, slot_bytes
from castsim.execution.interpreter.lowerer import Lowerer, has_addresses
from castsim.execution.interpreter.scalar_values import bits_of
from castsim.execution.tree import ResolvedTileOp, Tile
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import CastsimError, IllegalError, ReadError, Span, TileError, WarningKind, WarningText
from castsim.isa.formats import Format, format_named
from castsim.isa.pto import program as pto
from castsim.isa.pto.statement_forms import OFFSET, enum_value, form_of, offset_of
from castsim.isa.pto.types import SCALARS, format_tile
from castsim.isa.pto.value_types import element_format, held_format, unpacked
from castsim.isa.pto.vector_operations import (
    ALIASES,
    COMPARISONS,
    DIRECTIONS,
    GROUP_AXES,
    SCALE_ALGORITHMS,
    UNMODELLED,
    VECTOR_OPERATIONS,
    Kind,
    Role,
    VectorOperation,
    unknown_operation,
)
from castsim.targets.dataflow import APART, CONSECUTIVE, PARTLY_APART, TilePlacement

# Tile operations as the walk meets them: operands resolved, views of other types made, the others refused by name.


def resolve_work(
    node: pto.TileOperation, tile_of: Callable[[str], Tile], number_of: Callable[[str], int | float]
) -> ResolvedTileOp:
    """Return a vector operation with its tiles placed and its scalars as codes of their types.

    Args:
        node: the operation, whose operands match one of its forms.
        tile_of: returns the tile of a name.
        number_of: returns the value of a scalar.
    """
    operation = VECTOR_OPERATIONS[node.mnemonic]
    form = form_of(operation, node.input_types)
    assert form is not None  # the parser has let only such through
    tiles: dict[Role, list[Tile]] = {role: [] for role in Role}
    scalars: list[tuple[int, Format]] = []
    for role, name, kind in zip(form, node.inputs, node.input_types, strict=True):
        if isinstance(kind, pto.ScalarType):
            scalar_kind = _scalar_kind(operation, kind.name, node)
            scalars.append((bits_of(number_of(name), scalar_kind), format_named(scalar_kind)))
        else:
            tiles[role].append(tile_of(name))
    if operation.tmp_behind and len(node.outputs) > operation.destinations:
        tiles[Role.TMP].append(tile_of(node.outputs[-1]))
    attributes = dict(node.attributes)
    return ResolvedTileOp(
        mnemonic=node.mnemonic,
        dst=tile_of(node.outputs[0]),
        sources=tuple(tiles[Role.SOURCE]),
        span=node.span,
        scalars=tuple(scalars),
        tmp=next(iter(tiles[Role.TMP]), None),
        mask=next(iter(tiles[Role.MASK]), None),
        mode=_mode(attributes, operation),
        scalar_first=form[0] is Role.SCALAR and len(form) > 1,
        binary=attributes.get("isBinary") == "true",
        descending=attributes.get("descending") == "true",
        names_tmp=bool(tiles[Role.TMP]),
        pattern=enum_value(attributes["maskPattern"])[1:] if operation.attribute == "maskPattern" else None,
        counts=tile_of(node.outputs[1]) if operation.counts_finds else None,
        further=tuple(map(tile_of, node.outputs[1 : operation.destinations])) if not operation.counts_finds else (),
        offset=offset_of(attributes.get(OFFSET, "0")) or 0,
        by_columns=attributes.get("direction") == DIRECTIONS[1] or GROUP_AXES[1] in attributes.get("grpAxis", ""),
        interleaved=attributes.get("interleave") == "true",
    )


def _scalar_kind(operation: VectorOperation, given: str, node: pto.TileOperation) -> str:
    """Return the format of a scalar: its own unless the operation uses another for its tiles.

    Scalars of unsigned tiles are signless, amounts of shifts are integers of any width, and the slope of `tlrelu` is
    f32 for all tiles (docs/reference/pto.md section 7.3).
    """
    tile = next((kind for kind in (*node.input_types, *node.output_types) if isinstance(kind, pto.TileType)), None)
    if tile is None or given not in SCALARS.values() or tile.element not in SCALARS.values():
        return given
    wanted, integers = tile.element, given[0] == "i" and tile.element[0] in "iu"
    slope = operation.function == "prelu" and given == "f32" and wanted == "f16"
    signless = integers and given[1:] == wanted[1:] and operation.kind is not Kind.MERGE
    shift = integers and operation.function in ("shl", "shr")
    return wanted if slope or signless or shift else given


def alias_tile(node: pto.TileOperation, source: Tile, element_bits: Callable[[Format], int]) -> Tile:
    """Return the tile that a treshape or bitcast defines on another tile's bytes: an alias without movement."""
    (kind,) = node.output_types
    assert isinstance(kind, pto.TileType) and kind.valid_rows is not None and kind.valid_cols is not None
    fmt = element_format(kind.element)
    return Tile(node.outputs[0], fmt, kind, source.address, kind.valid_rows, kind.valid_cols, element_bits(fmt))


def foreign_tile(name: str, kind: pto.TileType, rows: int, cols: int) -> Tile:
    """Return a tile of another buffer, whose contents are not examined."""
    fmt = element_format(kind.element)
    return Tile(name, fmt, kind, 0, rows, cols, fmt.storage_bits)


def is_matrix_work(node: pto.TileOperation | pto.Tcvt) -> bool:
    """Return whether an operation belongs to the matrix unit: by its name, or a tile the vector unit rejects."""
    if isinstance(node, pto.Tcvt):
        return "vec" not in {node.src_type.location, node.dst_type.location}
    return node.of_matrix_unit or node.foreign


def is_foreign(kind: pto.Type) -> bool:
    """Return whether the vector unit rejects a tile type: because it is in another buffer, or made of boxes."""
    return isinstance(kind, pto.TileType) and kind.foreign


def unsupported(node: pto.TileOperation) -> CastsimError:
    """Return the error about an unsupported operation: the reason and remedy if known, otherwise similar names."""
    reason = UNMODELLED.get(node.mnemonic)
    if reason is None:
        return unknown_operation(node.mnemonic).at(node.span)
    return IllegalError(
        f"pto.{node.mnemonic} is not modelled: {reason}",
        span=node.span,
        legal=(f"--opaque {node.mnemonic}=CYCLES, which takes it for so many cycles and computes no result of it",),
    )


def _mode(attributes: dict[str, str], operation: VectorOperation) -> str | None:
    """Return the comparison, or the rule of the scales of blocks."""
    if operation.kind is Kind.BLOCK_QUANTISE:
        text = attributes.get("quantScaleAlg")
        return SCALE_ALGORITHMS[0] if text is None else enum_value(text)
    if operation.attribute != "cmpMode":
        return None
    text = attributes.get("cmpMode")
    return COMPARISONS[0] if text is None else enum_value(text)


# Tiles made of other tiles' bytes: parts of a tile, and one of several that lie one behind the other.
#
# Source: docs/reference/pto.md section 7.8.


@dataclass(frozen=True, slots=True)
class TileSlots:
    """Several tiles of one type: the first one, and their distance in bytes."""

    first: Tile
    count: int
    distance: int

    def tile(self, name: str, slot: int, span: Span) -> Tile:
        """Return the tile in a slot, named `name`.

        Raises:
            TileError: there is no such slot.
        """
        if not 0 <= slot < self.count:
            raise TileError(f"slot {slot} does not exist: %{self.first.name} has {self.count}", span=span)
        return replace(self.first, name=name, address=self.first.address + slot * self.distance)


def part_of(node: pto.Subview, source: Tile, offsets: tuple[int, int], extents: tuple[int, int]) -> Tile:
    """Return a part of a tile, which keeps its pitch; `offsets` and `extents` are rows and columns.

    It is a tile of the part's shape if that has the pitch of the whole, otherwise one of the shape of the whole with
    only the part valid.

    Raises:
        TileError: it begins before its tile, its valid region extends beyond the tile, or it begins inside a byte.
    """
    sizes, whole = (node.type.rows, node.type.cols), (node.source_type.rows, node.source_type.cols)
    for axis, offset, extent, size, physical in zip(("row", "column"), offsets, extents, sizes, whole, strict=True):
        if not 0 <= extent <= size:
            raise TileError(f"%{node.result}: {extent} valid {axis}s of a part of {size}", span=node.span)
        if offset < 0 or offset + extent > physical:
            raise TileError(
                f"%{node.result}: {extent} valid {axis}s from {axis} {offset} on leave %{node.source}, a tile of "
                f"{physical} {axis}s",
                span=node.span,
                legal=(f"0 to {physical - extent}",),
            )
    down, across = _strides(source.type)
    bits = (offsets[0] * down + offsets[1] * across) * source.element_bits
    if bits % 8:
        raise TileError(f"%{node.result} starts inside a byte of %{node.source}", span=node.span)
    dense = _strides(node.type) == (down, across)
    kind = node.type if dense else _of_parent(node.type, source.type)
    part_sizes = [
        max(min(size, physical - offset), 0) for size, physical, offset in zip(sizes, whole, offsets, strict=True)
    ]
    last = (part_sizes[0] - 1) * down + (part_sizes[1] - 1) * across + 1 if min(part_sizes) else 0
    return Tile(
        name=node.result,
        format=source.format,
        type=kind,
        address=source.address + bits // 8,
        valid_rows=extents[0],
        valid_cols=extents[1],
        element_bits=source.element_bits,
        reach=(last * source.element_bits + 7) // 8,
    )


def part_move(
    node: pto.TileOperation, tile_of: Callable[[str], Tile], number_of: Callable[[str], int]
) -> ResolvedTileOp:
    """Return a textract or tinsert between tiles of the buffer: a copy whose source, or destination, is a part.

    An extraction fills the destination's valid region, an insertion copies the source's.

    Raises:
        TileError: the part exceeds its tile.
    """
    source, dst = tile_of(node.inputs[0]), tile_of(node.outputs[0])
    offsets = number_of(node.inputs[1]), number_of(node.inputs[2])
    whole, other = (source, dst) if node.mnemonic == "textract" else (dst, source)
    extents = other.valid_rows, other.valid_cols
    kind = replace(whole.type, rows=other.rows, cols=other.cols, valid_rows=extents[0], valid_cols=extents[1])
    view = pto.Subview(whole.name, whole.name, (node.inputs[1], node.inputs[2]), whole.type, kind, span=node.span)
    part = part_of(view, whole, offsets, extents)
    source, dst = (part, other) if whole is source else (other, part)
    return ResolvedTileOp("tmov", dst, (source,), node.span, part=True)


def tile_of_values(tile: Tile, element_bits: Callable[[Format], int]) -> Tile:
    """Return a tile as a cast reads it: for 4-bit pairs, it has one element per value."""
    kind = unpacked(tile.type)
    if kind is tile.type:
        return tile
    fmt, count = held_format(tile.format)
    rows, cols = (1, count) if kind.block_layout == "row_major" else (count, 1)
    return replace(
        tile,
        format=fmt,
        type=kind,
        valid_rows=tile.valid_rows * rows,
        valid_cols=tile.valid_cols * cols,
        element_bits=element_bits(fmt),
    )


def check_dense(node: pto.TileOperation, source: Tile) -> None:
    """Reject another type for the bytes of a part with gaps between its lines.

    Raises:
        TileError: it has gaps.
    """
    kind = node.input_types[0]
    assert isinstance(kind, pto.TileType)
    if _strides(kind) != _strides(source.type) and min(kind.rows, kind.cols) > 1:
        element = kind.element
        raise TileError(
            f"pto.{node.mnemonic}: %{source.name} ({format_tile(kind, element)}) is a part whose lines are "
            f"{source.row_pitch if kind.block_layout == 'row_major' else source.rows * source.element_bits // 8} bytes "
            f"apart; another type cannot express this",
            span=node.span,
            legal=("a part of whole lines",),
        )


def _strides(kind: pto.TileType) -> tuple[int, int]:
    """Return the distances in elements between rows and between columns."""
    return (kind.cols, 1) if kind.block_layout == "row_major" else (1, kind.rows)


def _of_parent(part: pto.TileType, whole: pto.TileType) -> pto.TileType:
    return replace(whole, valid_rows=part.valid_rows, valid_cols=part.valid_cols)


# When the tiles of a program are in use, and how those that never are at the same time may share bytes.
#
# The vendor's level-2 planner counts live tiles (docs/reference/pto.md section 4); which bytes it gives them is not
# published.

TileNode = pto.AllocTile | pto.AllocTiles | pto.Tcvt
"""A node that creates tiles: an allocation, or a cast in a form that defines its destination."""

Spared = Callable[[pto.Tcvt | pto.TileOperation], str | None]
"""Function that returns the tmp tile of an operation that its chip does not touch."""


@dataclass(slots=True)
class Lifetime:
    """Indices of the first and the last operation of the text that use a tile.

    None: no instruction does. Such a tile counts as always in use. `needed` tells whether an instruction uses it
    for more than scratch that the chip does not touch.
    """

    node: TileNode
    depth: int
    first: int | None = None
    last: int | None = None
    needed: bool = False

    @property
    def spare(self) -> bool:
        """Whether its bytes are never touched: it is scratch of operations that need none."""
        return self.first is not None and not self.needed

    def use(self, first: int, last: int) -> None:
        """Widen it to contain one more use."""
        self.first = first if self.first is None else min(self.first, first)
        self.last = last if self.last is None else max(self.last, last)


@dataclass(slots=True)
class _TileUses:
    """Numbering of a function's operations and the tiles that each uses; `loops` are the enclosing ones, by number."""

    spared: Spared
    lifetimes: list[Lifetime] = field(default_factory=list)
    held: dict[str, tuple[Lifetime, ...]] = field(default_factory=dict)
    pairs: list[tuple[Lifetime, Lifetime, bool]] = field(default_factory=list)
    """Tiles that one operation reads together or, if True, of which it reads the first and writes the second."""
    loops: list[int] = field(default_factory=list)
    pending: list[tuple[Lifetime, int]] = field(default_factory=list)
    number: int = 0

    def region(self, body: Sequence[pto.Operation]) -> None:
        """Read a region; its names are forgotten at its end."""
        saved = dict(self.held)
        for node in body:
            self.number += 1
            self._operation(node)
        self.held = saved

    def _operation(self, node: pto.Operation) -> None:
        match node:
            case pto.AllocTile() | pto.AllocTiles():
                self._create(node.result, node)
            case pto.Tcvt():
                if node.defines_dst:
                    self._create(node.dst, node)
                self._work(node, (node.src, node.dst, *((node.tmp,) if node.tmp else ())))
                self._pair((node.src,), (node.dst,))
            case pto.Subview() | pto.GetTile():
                self.held[node.result] = self.held.get(node.source, ())
            case pto.TileOperation() if node.mnemonic in ALIASES:
                self.held[node.outputs[0]] = self.held.get(node.inputs[0], ())
            case pto.TileOperation():
                self._work(node, (*node.inputs, *node.outputs))
                self._pair([name for name in node.inputs if name != self.spared(node)], node.outputs[:1])
            case pto.ScalarAccess():
                self._use((node.base,))
            case pto.Yield() | pto.Condition():
                self._use(node.values)
            case _:
                self._control(node)

    def _control(self, node: pto.Operation) -> None:
        match node:
            case pto.For():
                self._loop(node, (node.body,))
            case pto.While():
                self._loop(node, (node.before, node.after))
            case pto.If():
                self._branch(node)
            case pto.Section():
                self.region(node.body)

    def _create(self, name: str, node: TileNode) -> None:
        lifetime = Lifetime(node, len(self.loops))
        self.lifetimes.append(lifetime)
        self.held[name] = (lifetime,)

    def _work(self, node: pto.Tcvt | pto.TileOperation, names: Sequence[str]) -> None:
        spared = self.spared(node)
        self._use((name for name in names if name != spared), needed=True)
        self._use((name for name in names if name == spared), needed=False)

    def _pair(self, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Record which tiles the repeats of one operation access together."""
        sources = list({id(lifetime): lifetime for name in inputs for lifetime in self.held.get(name, ())}.values())
        results = [lifetime for name in outputs for lifetime in self.held.get(name, ())]
        self.pairs += [(*pair, False) for pair in combinations(sources, 2)]
        self.pairs += [(source, result, True) for source in sources for result in results if source is not result]

    def _use(self, names: Iterable[str], *, needed: bool = True) -> None:
        """A use inside loops that the tile is created outside of lasts as long as the outermost of them."""
        for lifetime in {
            id(tile_lifetime): tile_lifetime for name in names for tile_lifetime in self.held.get(name, ())
        }.values():
            lifetime.needed |= needed
            if len(self.loops) > lifetime.depth:
                self.pending.append((lifetime, self.loops[lifetime.depth]))
            else:
                lifetime.use(self.number, self.number)

    def _loop(self, node: pto.For | pto.While, bodies: Sequence[Sequence[pto.Operation]]) -> None:
        start = self.number
        carried = tuple(tile_lifetime for name in node.initial for tile_lifetime in self.held.get(name, ()))
        self._use(node.initial)
        self.loops.append(start)
        for name in (*node.carried, *(node.arguments if isinstance(node, pto.While) else ())):
            self.held[name] = carried
        for body in bodies:
            self.region(body)
        self.loops.pop()
        self.number += 1
        ended = [lifetime for lifetime, loop in self.pending if loop == start]
        self.pending = [(lifetime, loop) for lifetime, loop in self.pending if loop != start]
        for lifetime in ended:
            lifetime.use(start, self.number)
        for name in node.results:
            self.held[name] = (*carried, *ended)

    def _branch(self, node: pto.If) -> None:
        self.region(node.then_body)
        self.region(node.else_body)
        # What a branch yields may be any tile seen so far: results that are tiles keep all of them.
        anything = tuple(self.lifetimes) if any(isinstance(kind, pto.TileType) for kind in node.result_types) else ()
        for name in node.results:
            self.held[name] = anything


def _all_needed(_: pto.Tcvt | pto.TileOperation) -> None:
    """Spare no tile."""


def lifetimes_of(body: Sequence[pto.Operation], spared: Spared = _all_needed) -> tuple[Lifetime, ...]:
    """Return when every tile of a function is in use, in the order in which the text creates them."""
    reader = _TileUses(spared)
    reader.region(body)
    return tuple(reader.lifetimes)


# Tiles that share no bank with those that the same operation reads or writes.


Pairs = Sequence[tuple[int, int, bool]]
"""Indices of two tiles that an operation reads together or, if True, of which it reads one and writes the other."""


def apart_addresses(
    sizes: Sequence[int], pairs: Pairs, rule: TilePlacement, capacity: int
) -> tuple[list[int], int] | None:
    """Return an address for each tile, and the number of pairs that still share banks; None if the buffer is too small.

    Tiles are placed in order, each where it shares banks with the fewest others, at the lowest such address.
    """
    met: list[list[tuple[int, bool]]] = [[] for _ in sizes]
    for first, other, written in pairs:
        met[max(first, other)].append((min(first, other), written))
    phases = {0, rule.sources_bytes, rule.results_bytes}

    def aligned(start: int) -> set[int]:
        return {start + (phase - start) % rule.period_bytes for phase in phases}

    possible = set[int]().union(*map(aligned, {0, *range(0, capacity, rule.region_bytes or capacity)}))
    taken: list[tuple[int, int]] = []
    addresses: list[int] = []
    shared = 0
    for size, others in zip(sizes, met, strict=True):

        def meetings(address: int, size: int = size, others: list[tuple[int, bool]] = others) -> int:
            spans = (((addresses[other], sizes[other]), written) for other, written in others)
            return sum(_share_banks((address, size), span, rule, written=written) for span, written in spans)

        best = min(((meetings(at), at) for at in possible if _is_free(at, size, taken, capacity)), default=None)
        if best is None:
            return None
        shared += best[0]
        addresses.append(best[1])
        insort(taken, (best[1], best[1] + size))
        possible |= aligned(best[1] + size)
        possible = {at for at in possible if _is_free(at, 1, taken, capacity)}
    return addresses, shared


def _is_free(start: int, size: int, taken: Sequence[tuple[int, int]], capacity: int) -> bool:
    """Return whether bytes from `start` on lie in the buffer and outside the occupied spans, which are sorted."""
    index = bisect(taken, (start, start + size))
    before = index == 0 or taken[index - 1][1] <= start
    return before and start + size <= (capacity if index == len(taken) else taken[index][0])


def _share_banks(left: tuple[int, int], other: tuple[int, int], rule: TilePlacement, *, written: bool) -> bool:
    """Return whether accesses to two tiles, each a start and a size, meet in a bank during an operation on both."""
    distance = (left[0] - other[0]) % rule.period_bytes
    if not written:
        return distance != rule.sources_bytes
    if not rule.region_bytes:
        return distance == 0
    region = rule.region_bytes
    return left[0] // region <= (sum(other) - 1) // region and other[0] // region <= (sum(left) - 1) // region


def share_bytes(function: pto.Function, allocator: Allocator, lowerer: Lowerer) -> WarningText | None:
    """Choose the addresses of tiles that are not adjacent; return a warning.

    Operands of one operation share no bank if the buffer has room. If a program does not fit otherwise, tiles that
    are never in use together share bytes; untouched scratch shares bytes of others before that, without
    a warning. `allocator.placement` then names the result.
    """

    def size_of(node: TileNode) -> int:
        count, kind = 1, node.dst_type if isinstance(node, pto.Tcvt) else node.type
        if isinstance(kind, pto.MultiTileType):
            count, kind = kind.count, kind.tile
        size = kind.rows * kind.cols * lowerer.element_bits(element_format(kind.element)) // 8
        size = 0 if kind.location != "vec" else slot_bytes(size, allocator.alignment) * (count - 1) + size
        return slot_bytes(size, allocator.alignment)

    reader, capacity = _TileUses(lowerer.spared_scratch), allocator.capacity
    reader.region(function.body or ())
    lifetimes, rule = reader.lifetimes, lowerer.tile_placement()
    sizes = {id(lifetime): size for lifetime in lifetimes if (size := size_of(lifetime.node))}
    allocator.placement = CONSECUTIVE if sizes else ""
    if sum(sizes.values()) <= capacity:
        number = {identity: index for index, identity in enumerate(sizes)}
        pairs = sorted(
            {(number[id(first)], number[id(other)], written)
             for first, other, written in reader.pairs if id(first) in number and id(other) in number}
        )  # fmt: skip
        placed = None if rule is None else apart_addresses([*sizes.values()], pairs, rule, capacity)
        if placed is not None and sizes:
            nodes = (id(lifetime.node) for lifetime in lifetimes if id(lifetime) in sizes)
            allocator.placed.update(zip(nodes, placed[0], strict=True))
            allocator.placement = PARTLY_APART if placed[1] else APART
        return None
    needed = [lifetime for lifetime in lifetimes if not lifetime.spare]
    total = sum(size_of(lifetime.node) for lifetime in needed)
    apart = total <= capacity
    addresses, need = shared_addresses(needed, size_of, (lambda _one, _other: True) if apart else _together)
    spare = {id(lifetime.node): capacity - size_of(lifetime.node) for lifetime in lifetimes if lifetime.spare}
    if need > capacity or any(address < 0 for address in spare.values()):
        return None
    allocator.placed.update(addresses | spare)
    return None if apart else WarningText(
        WarningKind.SHARED_BYTES,
        f"its tiles take {total} bytes, the buffer has {capacity}: tiles that are never live together share bytes, "
        f"{need} in all",
    )  # fmt: skip


def shared_addresses(
    lifetimes: Sequence[Lifetime], size_of: Callable[[TileNode], int], together: Callable[[Lifetime, Lifetime], bool]
) -> tuple[dict[int, int], int]:
    """Return an address per tile (by the identity of its node) and the total number of bytes.

    Tiles are placed in text order, each at the lowest address where it meets no tile that is in use
    `together` with it. Sizes are whole units of the buffer.
    """
    placed: list[tuple[Lifetime, int, int]] = []
    addresses: dict[int, int] = {}
    for lifetime in lifetimes:
        size = size_of(lifetime.node)
        taken = sorted((start, end) for other, start, end in placed if together(lifetime, other))
        address = 0
        for start, end in taken:
            if address + size <= start:
                break
            address = max(address, end)
        addresses[id(lifetime.node)] = address
        placed.append((lifetime, address, address + size))
    return addresses, max((end for _, _, end in placed), default=0)


def _together(left: Lifetime, other: Lifetime) -> bool:
    if left.first is None or left.last is None or other.first is None or other.last is None:
        return True
    return left.first <= other.last and other.first <= left.last


Number = Callable[[str], int]
"""A function that returns the integer value of a name, on which a decision depends."""


@dataclass(slots=True)
class TileMaker:
    """Creator of the tiles of one function; `warning` tells that they share bytes."""

    function: pto.Function
    lowerer: Lowerer
    warning: WarningText | None = None
    allocator: Allocator = field(init=False)
    fixed_addresses: bool = field(init=False)

    def __post_init__(self) -> None:
        _, capacity, alignment = self.lowerer.buffer()
        self.allocator = Allocator(capacity, alignment)
        self.fixed_addresses = has_addresses(self.function.body or ())
        if not self.fixed_addresses:
            warning = share_bytes(self.function, self.allocator, self.lowerer)
            self.warning = None if warning is None else warning.at(self.function.span)

    def allocate(self, node: pto.AllocTile | pto.AllocTiles, key: int, number: Number) -> Tile | TileSlots:
        """Place a tile, or several; `key` identifies the source operation, which gets the same address each time.

        Raises:
            ReadError: it has no address although others have.
            IllegalError, TileError: it does not fit the buffer.
        """
        if self.fixed_addresses and node.address is None:
            raise ReadError(
                f"%{node.result}: missing address: the other tiles of this function have one (level 3)",
                span=node.span,
                legal=("addr = %value",),
            )
        kind = node.type.tile if isinstance(node, pto.AllocTiles) else node.type
        rows = _extent(kind.valid_rows, node.valid_row, number)
        cols = _extent(kind.valid_cols, node.valid_col, number)
        count = node.type.count if isinstance(node, pto.AllocTiles) else None
        if kind.location != "vec":
            foreign = foreign_tile(node.result, kind, rows, cols)
            return foreign if count is None else TileSlots(foreign, count, 0)
        fmt = element_format(kind.element)
        bits = self.lowerer.element_bits(fmt)
        size = kind.rows * kind.cols * bits // 8
        distance = slot_bytes(size, self.allocator.alignment)
        if node.address is not None:
            address = number(node.address)
        else:
            whole = size if count is None else distance * (count - 1) + size
            address = self.allocator.place(key, node.result, kind, whole, node.span)
        added = isinstance(node, pto.AllocTile) and node.added
        tile = Tile(node.result, fmt, kind, address, rows, cols, bits, added=added)
        if count is None:
            self._check(tile, node.span)
            return tile
        slots = TileSlots(tile, count, distance)
        for slot in range(count):
            self._check(slots.tile(node.result, slot, node.span), node.span)
        return slots

    def _check(self, tile: Tile, span: Span) -> None:
        """Reject a tile that does not fit the buffer; for a boxed one only its address is checked.

        Raises:
            TileError: it does not fit.
        """
        if not is_foreign(tile.type):
            self.lowerer.check_tile(tile, span)
            return
        if not tile.rows or not tile.cols:
            raise TileError(f"tile %{tile.name} of {tile.rows} rows and {tile.cols} columns is empty", span=span)
        capacity, alignment = self.allocator.capacity, self.allocator.alignment
        if tile.address % alignment:
            raise TileError(f"tile %{tile.name} starts at byte {tile.address}, not {alignment}-byte aligned", span=span)
        if not 0 <= tile.address <= tile.end <= capacity:
            what = f"bytes {tile.address} .. {tile.end - 1}, the buffer has {capacity}"
            raise TileError(f"tile %{tile.name} needs {what}", span=span)

    def part(self, node: pto.Subview, source: Tile, number: Number) -> Tile:
        """Return a part of a tile.

        Raises:
            TileError: the part exceeds its tile.
        """
        names = node.valid or (None, None)
        stated = (node.type.valid_rows, node.type.valid_cols)
        rows, cols = (
            _extent(None if name else extent, name, number) for extent, name in zip(stated, names, strict=True)
        )
        if is_foreign(node.type):  # of a boxed tile, which bytes the part has is not known
            return replace(
                source, name=node.result, type=node.type, valid_rows=rows, valid_cols=cols, reach=source.size
            )
        return part_of(node, source, (number(node.offsets[0]), number(node.offsets[1])), (rows, cols))


def _extent(stated: int | None, operand: str | None, number: Number) -> int:
    if operand is not None:
        given = number(operand)
        if given < 0 or (stated is not None and stated != given):
            raise TileError(f"valid extent {given} where the type has {'?' if stated is None else stated}")
        return given
    assert stated is not None
    return stated
