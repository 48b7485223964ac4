"""Reading `subview`, `alloc_multi_tile` and `multi_tile_get`: other names for tiles and parts of tiles.

Source: docs/reference/pto.md section 7.8.
"""

from __future__ import annotations

from dataclasses import replace

from castsim.isa.errors import TileError
from castsim.isa.pto.attributes import check_keys, read_attributes
from castsim.isa.pto.lexer import TokenKind
from castsim.isa.pto.packed import element_format
from castsim.isa.pto.program import AllocTiles, GetTile, MultiTileType, Operation, ScalarType, Subview, TileType
from castsim.isa.pto.reader import PtoReader
from castsim.isa.pto.statement import Handler, Statement
from castsim.isa.pto.tile_operations import Use, read_placement, tile_type
from castsim.isa.pto.types import format_type

_INDEX = ScalarType("index")
_AXES = ("row", "column")
_BOX_ROWS = 16  # of a box of 512 bytes, each row of 32 bytes; boxes of 1024 bytes have rows of 64
_BOXES: dict[int, tuple[int, int]] = {1024: (16, 16), 32: (16, 2)}

Pair = tuple[int | None, int | None]


def _read_subview(reader: PtoReader, statement: Statement) -> Operation:
    """Read `%t[%i, %j] sizes [R, C] [valid [%vr, %vc]] : T [-> T]`."""
    source = reader.operand()
    offsets = _index_pair(reader)
    reader.expect("sizes")
    sizes = _sizes(reader)
    valid = _index_pair(reader) if reader.take("valid") else None
    if valid is None and not reader.at(":") and not reader.at("{"):
        reader.unexpected("'valid' or ':'", ("valid [%rows, %cols]", ":"))
    check_keys(reader, read_attributes(reader), (), statement.name)
    reader.expect(":")
    source_type, index = tile_type(reader, statement.name)
    reader.check_use(source, source_type, index)
    found = _part_type(reader, source_type, sizes, valid)
    if reader.take("->"):
        result_type, index = tile_type(reader, statement.name)
        _check_result(reader, index, found, result_type, valid)
        found = result_type
    _check_place(reader, statement, source_type, found, offsets)
    result = statement.define_one(reader, found)
    names = None if valid is None else (valid[0][0], valid[1][0])
    begin = (offsets[0][0], offsets[1][0])
    return Subview(result, source[0], begin, source_type, found, names, span=statement.span)


def _index_pair(reader: PtoReader) -> tuple[Use, Use]:
    """Read `[%i, %j]`, both of type index."""
    index = reader.expect("[")
    uses = reader.listed(reader.operand, "]")
    if len(uses) != 2:
        raise reader.error(f"a tile has a row and a column, {len(uses)} values are given", index)
    for use in uses:
        reader.check_use(use, _INDEX)
    return uses[0], uses[1]


def _sizes(reader: PtoReader) -> tuple[int, int]:
    """Read `[R, C]`, both at least 1."""
    index = reader.expect("[")
    numbers = reader.listed(lambda: reader.next_of(TokenKind.NUMBER, "a size such as 64"), "]")
    if len(numbers) != 2:
        raise reader.error(f"a tile has rows and columns, {len(numbers)} sizes are given", index)
    for text in numbers:
        if not text.isdecimal() or len(text) > 18 or not int(text):
            raise reader.error(f"a size is a whole number from 1, not {text[:20]}", index)
    return int(numbers[0]), int(numbers[1])


def _constants(reader: PtoReader, uses: tuple[Use, Use]) -> Pair:
    return reader.definition(uses[0]).constant, reader.definition(uses[1]).constant


def _part_type(reader: PtoReader, source: TileType, sizes: tuple[int, int], valid: tuple[Use, Use] | None) -> TileType:
    """Return the type that a part has if the text does not state it."""
    known: Pair = sizes
    if valid is not None:
        known = _constants(reader, valid)
        for axis, extent, size, use in zip(_AXES, known, sizes, valid, strict=True):
            if extent is not None and not 0 <= extent <= size:
                raise TileError(f"{extent} valid {axis}s of a part of {size}", span=reader.span(use[1]))
    return replace(source, rows=sizes[0], cols=sizes[1], valid_rows=known[0], valid_cols=known[1])


def _check_result(
    reader: PtoReader, index: int, found: TileType, stated: TileType, valid: tuple[Use, Use] | None
) -> None:
    """Refuse a stated type that is not the part's: only its valid region may say what the operands leave open."""
    same = replace(stated, valid_rows=found.valid_rows, valid_cols=found.valid_cols) == found
    if not same:
        raise reader.error(f"the result of pto.subview is {format_type(found)}", index, (format_type(found),))
    pairs = ((found.valid_rows, stated.valid_rows), (found.valid_cols, stated.valid_cols))
    for axis, (known, extent) in zip(_AXES, pairs, strict=True):
        if valid is None and extent is None:
            raise reader.error(
                f"the type leaves the valid {axis}s open, and no operand gives them", index, ("valid [%rows, %cols]",)
            )
        if valid is not None and extent is not None and extent != known:
            given = "known when the program runs" if known is None else str(known)
            raise reader.error(
                f"the type says {extent} valid {axis}s, the operand is {given}",
                index,
                ("?" if known is None else given,),
            )


def _check_place(
    reader: PtoReader, statement: Statement, source: TileType, part: TileType, offsets: tuple[Use, Use]
) -> None:
    """Refuse a part that begins before its tile, reaches behind it, or cuts a box."""
    known = _constants(reader, offsets)
    physical, extents = (source.rows, source.cols), (part.valid_rows, part.valid_cols)
    for axis, offset, whole, extent, use in zip(_AXES, known, physical, extents, offsets, strict=True):
        if offset is not None and (offset < 0 or offset + (extent or 0) > whole):
            what = f"{extent} valid {axis}s from {axis} {offset} on" if extent else f"{axis} {offset}"
            raise TileError(f"{what} of a tile of {whole} {axis}s", span=reader.span(use[1]))
    if source.scatter_layout == "none_box":
        return
    for axis, step, size, offset in zip(_AXES, _box(source), (part.rows, part.cols), known, strict=True):
        if size % step or (offset or 0) % step:
            raise TileError(
                f"a part of a boxed tile is made of whole boxes of {step} {axis}s: size {size}, offset {offset}",
                span=statement.span,
            )


def _box(kind: TileType) -> tuple[int, int]:
    """Return rows and columns of the inner box of a tile."""
    if kind.fractal in _BOXES:
        return _BOXES[kind.fractal]
    across = max(32 * 8 // element_format(kind.element).bits, 1)
    return (_BOX_ROWS, across) if kind.scatter_layout == "row_major" else (across, _BOX_ROWS)


def _read_alloc_tiles(reader: PtoReader, statement: Statement) -> Operation:
    """Read `[addr = %a] [valid_row = %r] [valid_col = %c] : !pto.multi_tile_buf<...>`."""
    given = read_placement(reader, statement)
    kind = _multi_tile_type(reader)
    for key, extent in (("valid_row", kind.tile.valid_rows), ("valid_col", kind.tile.valid_cols)):
        if (extent is None) != (key in given):
            needed = "needs" if extent is None else "takes no"
            raise reader.error(f"{statement.name} of this type {needed} {key}", reader.position - 1)
    result = statement.define_one(reader, kind)
    names = {key: use[0] for key, use in given.items()}
    return AllocTiles(
        result, kind, names.get("addr"), names.get("valid_row"), names.get("valid_col"), span=statement.span
    )


def _read_get_tile(reader: PtoReader, statement: Statement) -> Operation:
    """Read `%m[%k] : !pto.multi_tile_buf<...> -> T`."""
    source = reader.operand()
    reader.expect("[")
    slot = reader.operand()
    reader.check_use(slot, _INDEX)
    reader.expect("]")
    check_keys(reader, read_attributes(reader), (), statement.name)
    reader.expect(":")
    index = reader.position
    kind = _multi_tile_type(reader)
    reader.check_use(source, kind, index)
    reader.expect("->")
    found, index = tile_type(reader, statement.name)
    if found != kind.tile:
        raise reader.error(f"its tiles are {format_type(kind.tile)}", index, (format_type(kind.tile),))
    number = reader.definition(slot).constant
    if number is not None and not 0 <= number < kind.count:
        raise TileError(f"slot {number} of {kind.count}", span=reader.span(slot[1]))
    result = statement.define_one(reader, found)
    return GetTile(result, source[0], slot[0], kind, span=statement.span)


def _multi_tile_type(reader: PtoReader) -> MultiTileType:
    index = reader.position
    kind = reader.type()
    if not isinstance(kind, MultiTileType):
        raise reader.error(f"{reader.texts[index]} is not several tiles", index, ("!pto.multi_tile_buf<...>",))
    return kind


ALIAS_READERS: dict[str, Handler] = {
    "pto.subview": _read_subview,
    "pto.alloc_multi_tile": _read_alloc_tiles,
    "pto.multi_tile_get": _read_get_tile,
}
"""Reader of every operation that names tiles or parts of tiles."""
