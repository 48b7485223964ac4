"""Where tiles and arguments live while a program is walked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from castsim.execution.tiles import Tile
from castsim.isa.errors import Span, TileError
from castsim.isa.formats import Format
from castsim.isa.pto.packed import held_format
from castsim.isa.pto.program import SetValidShape, TileType


@dataclass(slots=True)
class TileHandle:
    """A tile value of the program; `set_validshape` replaces the tile behind it."""

    tile: Tile


@dataclass(frozen=True, slots=True)
class Pointer:
    """A kernel argument that points to global memory, or a place `offset` elements behind where it points."""

    name: str
    format: Format
    offset: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """A tensor view of an argument: extents and strides in elements, `offset` where it starts."""

    pointer: Pointer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    layout: str


@dataclass(slots=True)
class ArgumentUse:
    """What the walk has learnt of one pointer argument.

    `elements` is the largest extent of the views made from it, `shapes` the shapes of those views, `padded` the
    number of elements with every row filled to its stride; `touched` ends with the last element that the scalar unit
    reads or writes; `needs_input` is True if it is loaded before any store.
    """

    format: Format
    elements: int = 0
    padded: set[int] = field(default_factory=set)
    shapes: set[tuple[int, ...]] = field(default_factory=set)
    contiguous: bool = True
    needs_input: bool = False
    stored: bool = False
    span: Span | None = None
    """Where the view of that extent is made."""
    viewed: int = 0
    touched: int = 0
    touched_at: Span | None = None
    follows_reads: bool = False
    """Whether the extents of a view rest on elements that the program reads: other values, other extents."""

    def see_view(
        self, shape: tuple[int, ...], strides: tuple[int, ...], span: Span | None = None, offset: int = 0
    ) -> None:
        """Widen the argument to hold one more view, made at `span`, that begins with element `offset`."""
        self.shapes.add(shape)
        if 0 in shape:
            return
        need = 1 + offset + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
        self.viewed = max(self.viewed, need)
        if need > self.elements:
            self.elements, self.span = need, span
        self.padded.add(offset + shape[0] * strides[0])
        self.contiguous &= offset == 0
        total = 1
        for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
            self.contiguous &= stride == total or extent == 1
            total *= extent

    def see_element(self, index: int, span: Span) -> None:
        """Widen the argument to hold an element that the scalar unit reads or writes."""
        if index >= self.touched:
            self.touched, self.touched_at = index + 1, span
        if index >= self.elements:
            self.elements, self.span = index + 1, span

    @property
    def is_open(self) -> bool:
        """Whether the tensor may have more elements than this run uses of it."""
        return bool(self.touched) or self.follows_reads

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array that a user gets: the view's if all views are the same dense one, else flat."""
        in_view = not self.is_open or self.touched <= self.viewed == self.elements
        if len(self.shapes) == 1 and self.contiguous and in_view:
            return next(iter(self.shapes))
        return (self.elements,)


def use_in_values(use: ArgumentUse) -> ArgumentUse:
    """Return what is known of an argument with each value counted that its elements hold, as its arrays are."""
    fmt, count = held_format(use.format)
    if count == 1:
        return use
    return replace(
        use,
        format=fmt,
        elements=use.elements * count,
        padded={size * count for size in use.padded},
        shapes={(*shape[:-1], shape[-1] * count) for shape in use.shapes},
        viewed=use.viewed * count,
        touched=use.touched * count,
    )


class Allocator:
    """Level-2 placement: tiles in the order of their `alloc_tile`, each at the next aligned byte, none reused.

    `placed` may hold addresses decided beforehand, for programs that only fit if tiles share bytes.
    """

    def __init__(self, capacity: int, alignment: int) -> None:
        self.capacity = capacity
        self.alignment = alignment
        self.next = 0
        self.placed: dict[int, int] = {}

    def place(self, key: int, name: str, kind: TileType, size: int, span: Span) -> int:
        """Return the byte address of the tile that the operation `key` allocates; the same each time it runs.

        Raises:
            TileError: the buffer is full; says by how much.
        """
        if key not in self.placed:
            address = -(-self.next // self.alignment) * self.alignment
            if address + size > self.capacity:
                raise TileError(
                    f"tile %{name} ({kind.rows} x {kind.cols}) needs {size} bytes at {address}; the buffer has "
                    f"{self.capacity}: {address + size - self.capacity} bytes missing",
                    span=span,
                )
            self.placed[key] = address
            self.next = address + size
        return self.placed[key]


def slot_bytes(size: int, alignment: int) -> int:
    """Return the bytes from one of several tiles of a size to the next."""
    return -(-size // alignment) * alignment


def with_extents(node: SetValidShape, tile: Tile, rows: int, cols: int) -> Tile:
    """Return a tile with other valid extents.

    Raises:
        TileError: its type fixes them at something else, or one is negative.
    """
    for stated, given in ((node.type.valid_rows, rows), (node.type.valid_cols, cols)):
        if stated is not None and stated != given:
            raise TileError(f"%{node.tile}: its type fixes a valid extent at {stated}, not {given}", span=node.span)
    if min(rows, cols) < 0:
        raise TileError(f"%{node.tile}: valid region {rows} x {cols} is negative", span=node.span)
    for axis, extent, physical in (("rows", rows, node.type.rows), ("columns", cols, node.type.cols)):
        if tile.reach is not None and extent > physical:  # the target looks at the shape of the whole
            raise TileError(f"%{node.tile}: {extent} valid {axis} of {physical}", span=node.span)
    return replace(tile, valid_rows=rows, valid_cols=cols)
