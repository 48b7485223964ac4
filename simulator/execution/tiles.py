"""Tiles and views with their places: what an instruction gets to work on once the program has been walked."""

from __future__ import annotations

from dataclasses import dataclass, field

from castsim.isa.errors import Span
from castsim.isa.formats import Format
from castsim.isa.modes import Rounding, Saturation
from castsim.isa.pto.program import RoundMode, TileType


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile in a buffer.

    `address` and `row_pitch` count bytes, extents elements. `element_bits` is what one element takes in pitch and
    pointer arithmetic, which for 4-bit formats may differ from the packed width. Of a part of another tile, `reach`
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
        """Bits that an element takes beside its neighbours: 4-bit elements share bytes."""
        return self.format.bits if self.format.bits == 4 else self.element_bits

    @property
    def size(self) -> int:
        """Bytes the tile occupies; of a part of a tile, those between its lines included."""
        return self.reach if self.reach is not None else self.rows * self.cols * self.element_bits // 8

    @property
    def end(self) -> int:
        """First byte behind the tile."""
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
        """Rows as a tile sees them: the product of all dimensions but the last."""
        first, second, third, fourth, _ = self.sizes
        return first * second * third * fourth

    @property
    def cols(self) -> int:
        """Columns as a tile sees them: the last dimension."""
        return self.sizes[4]


@dataclass(frozen=True, slots=True)
class TileCast:
    """One tile cast with everything resolved: the common input of every mechanism's lowering.

    Those of equal tiles are equal wherever they stand, so that they are lowered once; of works likewise.
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
    are the first bytes of a row and the elements from there on where a row of 4-bit elements has gaps.
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
    """One element that the scalar unit reads or writes: at byte `address` of an argument, or of the buffer in a tile.

    `mnemonic` is the operation of the text, `code` what is written (empty for a read), `size` its bytes.
    """

    mnemonic: str
    place: str | Tile
    address: int
    size: int
    code: bytes
    span: Span


@dataclass(frozen=True, slots=True)
class ResolvedTileOp:
    """One vector operation on tiles other than a cast or transfer, with everything resolved.

    `mnemonic` is the text's name without `pto.` (`tadd`), `sources` the tile operands in the order of the text
    without mask and tmp, `scalars` the scalar operands as codes of their formats. `scalar_first` tells `s, a` from
    `a, s`; `mode` is the comparison (`lt`), `binary` the flag `isBinary` of column sums, `descending` that of ramps.
    `pattern` (`0101` of P0101) says which columns a gather keeps, rows where `by_columns`;
    `counts` gets how many numbers one by comparison finds in each row, to which it adds `offset`.
    `further` are the exponents, maxima and reciprocals of a block quantisation, whose rule `mode` names; its groups
    are of rows where `by_columns`, the exponents of two of them then perhaps `interleaved`.
    `names_tmp` says that the text has a scratch tile, also where `tmp` is forgotten because the target ignores it.
    `part` says that a copy is one out of or into a part of a larger tile, whose shape then is not asked for.
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
