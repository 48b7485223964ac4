"""Arrays of elements in the memories of a stopped program: where their bits are, and what they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from castsim.execution.interpreter import ArgumentUse
from castsim.execution.tiles import Part, Tile
from castsim.execution.vector_operations.shapes import is_column
from castsim.isa.codes import Codes
from castsim.isa.errors import ReadError
from castsim.isa.formats import Format
from castsim.isa.pto.packed import held_format
from castsim.numerics import code_dtype

Bytes = NDArray[np.uint8]

BUFFER = "ub"
"""The memory of tiles."""
UNKNOWN = "?"
"""Begins the name of the memory that marks which bytes of another are not computed (255; others 0)."""
_BYTE = 8


def packed_bits(fmt: Format) -> int:
    """Return the bits from one element to the next in a dense row: formats of 2 and 4 bits share bytes."""
    return fmt.bits if fmt.bits in (2, 4) else fmt.storage_bits


@dataclass(frozen=True, slots=True)
class Place:
    """Elements of `format`: the first at bit `offset` of a memory, `strides` the bits from one to the next."""

    space: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    format: Format

    def moved(self, count: int) -> Place:
        """Return the same elements, so many bytes further on."""
        return replace(self, offset=self.offset + count * _BYTE) if count else self

    def read_as(self, fmt: Format) -> Place:
        """Return the same bits as elements of another format, whose indices count its own elements.

        Raises:
            ReadError: elements that do not lie side by side have another width.
        """
        old, new = packed_bits(self.format), packed_bits(fmt)
        if old == new or (self.strides and self.strides[-1] == new):
            return replace(self, format=fmt)
        dense = self.strides and self.strides[-1] == old and self.shape[-1] * old >= new
        if not dense:
            raise ReadError(
                f"elements of {old} bits that do not lie side by side cannot be read as {fmt.name} of {new}",
                legal=(self.format.name,),
            )
        shape = (*self.shape[:-1], self.shape[-1] * old // new)
        return replace(self, shape=shape, strides=(*self.strides[:-1], new), format=fmt)

    def part(self, index: Sequence[slice | int]) -> tuple[Place, list[tuple[int, ...]]]:
        """Return some of the elements as a place, and the index that each has in this one.

        Raises:
            IndexError: an index that no element has.
        """
        taken = [range(extent)[each] for each, extent in zip(index, self.shape, strict=False)]
        ranges = [each if isinstance(each, range) else range(each, each + 1) for each in taken]
        ranges += [range(extent) for extent in self.shape[len(ranges) :]]
        offset = self.offset + sum(each.start * step for each, step in zip(ranges, self.strides, strict=True))
        shape = tuple(map(len, ranges))
        grids = np.indices(shape).reshape(len(shape), -1) if shape else np.zeros((0, 1), int)
        starts = np.array([each.start for each in ranges], int).reshape(-1, 1)
        indices = [tuple(map(int, each)) for each in (grids + starts).T]
        return replace(self, offset=offset, shape=shape), indices

    def codes(self, memories: Mapping[str, Bytes]) -> Codes:
        """Return the codes of all elements, flat, in C order.

        Raises:
            ReadError: they reach beyond the memory.
        """
        bits = np.full(self.shape or (1,), self.offset, np.int64)
        for axis, (extent, stride) in enumerate(zip(self.shape, self.strides, strict=True)):
            bits += (np.arange(extent) * stride).reshape((-1,) + (1,) * (len(self.shape) - axis - 1))
        places = bits.reshape(-1)
        size = packed_bits(self.format)
        memory = memories[self.space]
        if places.size and (places.min() < 0 or (places.max() + size - 1) // _BYTE >= memory.size):
            raise ReadError(f"the elements reach beyond the {memory.size} bytes of their memory")
        if size < _BYTE:
            found: Codes = memory[places // _BYTE] >> (places % _BYTE).astype(np.uint8) & np.uint8((1 << size) - 1)
            return found
        count = size // _BYTE
        rows = memory[(places // _BYTE)[:, None] + np.arange(count)]
        codes: Codes = np.ascontiguousarray(rows).view(f"<u{count}").reshape(-1).astype(code_dtype(self.format))
        return codes

    @property
    def size(self) -> int:
        """How many elements there are."""
        return prod(self.shape)


def tile_place(tile: Tile) -> Place:
    """Return the valid elements of a tile."""
    fmt, _ = held_format(tile.format)
    inner = tile.element_bits if tile.element_bits >= _BYTE and fmt.bits not in (2, 4) else packed_bits(fmt)
    strides = (inner, tile.rows * inner) if is_column(tile) else (tile.row_pitch * _BYTE, inner)
    return Place(BUFFER, tile.address * _BYTE, (tile.valid_rows, tile.valid_cols), strides, fmt)


def part_place(part: Part) -> Place:
    """Return the elements of a part of an argument, leading dimensions of one element left out."""
    fmt, count = held_format(part.format)
    first = next((axis for axis, size in enumerate(part.sizes[:-2]) if size != 1), len(part.sizes) - 2)
    bits = packed_bits(fmt) * count
    sizes, strides = part.sizes[first:], tuple(stride * bits for stride in part.strides[first:])
    if count > 1:
        sizes, strides = (*sizes, count), (*strides, packed_bits(fmt))
    return Place(global_space(part.argument), part.offset * bits, sizes, strides, fmt)


def global_space(argument: str) -> str:
    """Return the name of the memory that an argument is."""
    return f"gm:{argument}"


def argument_place(name: str, use: ArgumentUse, memory: Bytes) -> Place:
    """Return the elements of an argument as its arrays have them."""
    bits = packed_bits(use.format)
    held = memory.size * _BYTE // bits
    shape = (held,) if use.is_open and held > use.elements else use.shape
    return dense(global_space(name), 0, shape, use.format)


def dense(space: str, address: int, shape: tuple[int, ...], fmt: Format, bits: int | None = None) -> Place:
    """Return elements side by side from a byte on, the last dimension fastest; `bits` from one to the next."""
    strides = []
    step = packed_bits(fmt) if bits is None else bits
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return Place(space, address * _BYTE, shape, tuple(reversed(strides)), fmt)
