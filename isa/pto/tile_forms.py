"""Reading `subview`, `alloc_multi_tile` and `multi_tile_get`: other names for tiles and parts of tiles.

Source: docs/reference/pto.md section 7.8.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial

from castsim.isa.errors import TileError
from castsim.isa.modes import Saturation
from castsim.isa.pto.attributes import (
    ENDPOINTS,
    EVENTS,
    PIPES,
    ROUND_MODES,
    SATURATIONS,
    Attribute,
    Attributes,
    check_keys,
    enum_word,
    read_attributes,
    rounding_from,
    saturation_from,
)
from castsim.isa.pto.lexer import TokenKind, closest
from castsim.isa.pto.packed import element_format
from castsim.isa.pto.program import (
    AllocTiles,
    Barrier,
    GetTile,
    MultiTileType,
    Operation,
    Pipe,
    RoundMode,
    ScalarType,
    SetFlag,
    Subview,
    Tcvt,
    TileType,
    Type,
    WaitFlag,
)
from castsim.isa.pto.statement_reader import Handler, NamedOperation, PtoReader
from castsim.isa.pto.tile_operation_forms import Use, check_cast_shapes, read_operands, read_placement, tile_type
from castsim.isa.pto.types import format_type

_INDEX = ScalarType("index")
_AXES = ("row", "column")
_BOX_ROWS = 16  # of a box of 512 bytes, each row of 32 bytes; boxes of 1024 bytes have rows of 64
_BOXES: dict[int, tuple[int, int]] = {1024: (16, 16), 32: (16, 2)}

Pair = tuple[int | None, int | None]


def _read_subview(reader: PtoReader, statement: NamedOperation) -> Operation:
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
    reader: PtoReader, statement: NamedOperation, source: TileType, part: TileType, offsets: tuple[Use, Use]
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


def _read_alloc_tiles(reader: PtoReader, statement: NamedOperation) -> Operation:
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


def _read_get_tile(reader: PtoReader, statement: NamedOperation) -> Operation:
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


# Reading tcvt in each of its nine spellings; all give the same `Tcvt`.
#
# The vendor's front end reads the ins/outs form and the generic form; the SSA, bare and one-line forms occur in
# instruction pages only, and castsim reads them too. Source: docs/reference/pto.md section 1.

_KEYS = ("rmode", "sat_mode", "satmode")
# Names seen for the two attributes elsewhere; the front end keeps them silently and ignores them.
_OTHER_KEYS = {
    **dict.fromkeys(("round", "rounding", "round_mode", "roundmode", "rnd", "mode"), "rmode"),
    **dict.fromkeys(("sat", "saturate", "saturation", "saturation_mode", "satMode"), "sat_mode"),
}
Typed = tuple[Use, Type, int]


def _read_any_form(reader: PtoReader, statement: NamedOperation) -> Operation:
    """Tell the forms without quotes apart by what follows the name and whether there is a result."""
    if reader.at("ins"):
        return _read_ins_outs(reader, statement)
    if reader.kinds[reader.position] is not TokenKind.VALUE:
        reader.unexpected("'ins' or a value", ("ins", "%src"))
    return _read_ssa(reader, statement) if statement.results else _read_one_line(reader, statement)


def _read_ins_outs(reader: PtoReader, statement: NamedOperation) -> Operation:
    """Read `ins(%s[, %tmp] [dict] : types) outs(%d : type) [dict]`."""
    statement.no_result(reader)
    attributes: Attributes = {}
    reader.expect("ins")
    inputs = read_operands(reader, attributes)
    if len(inputs.uses) > 2:
        raise reader.error("tcvt reads one source and at most one scratch tile", inputs.uses[2][1])
    reader.expect("outs")
    outputs = read_operands(reader)
    if len(outputs.uses) > 1:
        raise reader.error("tcvt writes one tile", outputs.uses[1][1])
    read_attributes(reader, attributes)
    dst, tmp = outputs.typed(0), inputs.typed(1) if len(inputs.uses) == 2 else None
    return _build(reader, statement, inputs.typed(0), dst, tmp, attributes)


def _read_ssa(reader: PtoReader, statement: NamedOperation) -> Operation:
    """Read `%d = tcvt %s[, %tmp] [dict] : T0[, Tt] -> T1`."""
    uses = [reader.operand()]
    if reader.take(","):
        uses.append(reader.operand())
    attributes = read_attributes(reader)
    reader.expect(":")
    if reader.take("("):
        types = reader.types()
        reader.expect(")")
    else:
        types = reader.types()
    reader.expect("->")
    result_index = reader.position
    result_type = reader.type()
    _check_count(reader, uses, types)
    typed = [(use, kind, index) for use, (kind, index) in zip(uses, types, strict=True)]
    for use, kind, index in typed:
        reader.check_use(use, kind, index)
    result = (statement.results[0].base, statement.results[0].index)
    if isinstance(result_type, TileType) and None in (result_type.valid_rows, result_type.valid_cols):
        raise reader.error("the result of tcvt needs static valid extents", result_index)
    tmp = typed[1] if len(typed) == 2 else None
    node = _build(reader, statement, typed[0], (result, result_type, result_index), tmp, attributes, defines_dst=True)
    statement.define_one(reader, result_type)
    return node


def _read_one_line(reader: PtoReader, statement: NamedOperation) -> Operation:
    """Read `tcvt %dst, %src[, %tmp] : type #key=value ...`.

    The types are one per operand in this order, or a single one, which must be that of one of the tiles; the other
    types are those of the definitions.
    """
    uses = [reader.operand()]
    while reader.take(","):
        uses.append(reader.operand())
    if not 2 <= len(uses) <= 3:
        raise reader.error("tcvt names dst, src and at most one scratch tile", uses[-1][1])
    reader.expect(":")
    types = reader.types()
    defined = [reader.definition(use).type for use in uses]
    if len(types) == 1:
        if types[0][0] not in defined[:2]:
            reader.check_use(uses[0], *types[0])
        typed = [(use, kind, types[0][1]) for use, kind in zip(uses, defined, strict=True)]
    else:
        _check_count(reader, uses, types)
        typed = [(use, kind, index) for use, (kind, index) in zip(uses, types, strict=True)]
        for use, kind, index in typed:
            reader.check_use(use, kind, index)
    attributes = _read_hash_attributes(reader)
    return _build(reader, statement, typed[1], typed[0], typed[2] if len(typed) == 3 else None, attributes)


def _read_hash_attributes(reader: PtoReader) -> Attributes:
    """Read `#rmode=FLOOR #sat_mode=ON`; the value may also be a whole dialect attribute."""
    found: Attributes = {}
    while reader.kinds[reader.position] is TokenKind.ATTRIBUTE:
        key_index = reader.position
        key = reader.texts[key_index][1:]
        reader.position += 1
        if key in found:
            raise reader.error(f"attribute '{key}' is given twice", key_index)
        reader.expect("=")
        value_index = reader.position
        if reader.kinds[value_index] not in (TokenKind.WORD, TokenKind.ATTRIBUTE):
            modes = tuple(SATURATIONS)
            words = {"rmode": tuple(ROUND_MODES), "sat_mode": modes, "satmode": modes}.get(key, ())
            reader.unexpected(f"a value of {key}", words)
        reader.position += 1
        text = reader.texts[value_index]
        name = {"rmode": "round_mode", "sat_mode": "saturation_mode", "satmode": "saturation_mode"}.get(key)
        if name is not None and reader.kinds[value_index] is TokenKind.WORD:
            text = f"#pto<{name} {text}>"
        found[key] = Attribute(text, key_index, value_index)
    return found


def _read_generic(reader: PtoReader, statement: NamedOperation) -> Operation:
    """Read `"pto.tcvt"(%s, %d[, %tmp]) [<dict>] [dict] : (T0, T1[, Tt]) -> ()`."""
    statement.no_result(reader)
    reader.expect("(")
    uses = reader.listed(reader.operand, ")")
    if not 2 <= len(uses) <= 3:
        raise reader.error("tcvt has the operands src, dst and at most one scratch tile", statement.index)
    attributes: Attributes = {}
    if reader.take("<"):
        read_attributes(reader, attributes)
        reader.expect(">")
    read_attributes(reader, attributes)
    reader.expect(":")
    reader.expect("(")
    types = reader.types()
    reader.expect(")")
    reader.expect("->")
    reader.expect("(")
    reader.expect(")")
    _check_count(reader, uses, types)
    typed = [(use, kind, index) for use, (kind, index) in zip(uses, types, strict=True)]
    for use, kind, index in typed:
        reader.check_use(use, kind, index)
    return _build(reader, statement, typed[0], typed[1], typed[2] if len(typed) == 3 else None, attributes)


def _check_count(reader: PtoReader, uses: list[Use], types: list[tuple[Type, int]]) -> None:
    if len(types) != len(uses):
        raise reader.error(f"{len(uses)} operands with {len(types)} types", types[-1][1])


def _tile(reader: PtoReader, typed: Typed) -> TileType:
    (name, _), kind, index = typed
    if not isinstance(kind, TileType):
        found = reader.texts[index]
        raise reader.error(f"tcvt converts tiles; %{name} is {found}", index, ("!pto.tile_buf<...>",))
    return kind


def _modes(reader: PtoReader, attributes: Attributes) -> tuple[RoundMode | None, Saturation | None]:
    for key, attribute in attributes.items():
        if key not in _KEYS:
            meant = _OTHER_KEYS.get(key)
            legal = (meant,) if meant else closest(key, _KEYS)
            raise reader.error(f"tcvt has no attribute '{key}'", attribute.key_index, legal)
    rounding = rounding_from(reader, attributes["rmode"]) if "rmode" in attributes else None
    given = [attributes[key] for key in ("sat_mode", "satmode") if key in attributes]
    if len(given) > 1:
        last = max(given, key=lambda attribute: attribute.key_index)
        raise reader.error("sat_mode and satmode are one attribute; tcvt takes it once", last.key_index, ("sat_mode",))
    return rounding, saturation_from(reader, given[0]) if given else None


def _build(
    reader: PtoReader,
    statement: NamedOperation,
    src: Typed,
    dst: Typed,
    tmp: Typed | None,
    attributes: Attributes,
    *,
    defines_dst: bool = False,
) -> Tcvt:
    """Check what all forms share and build the node."""
    rounding, saturation = _modes(reader, attributes)
    src_type, dst_type = _tile(reader, src), _tile(reader, dst)
    tmp_type = None if tmp is None else _tile(reader, tmp)
    check_cast_shapes(src_type, dst_type, statement.span, physical=not reader.recorded)
    return Tcvt(
        dst=dst[0][0],
        src=src[0][0],
        dst_type=dst_type,
        src_type=src_type,
        tmp=None if tmp is None else tmp[0][0],
        tmp_type=tmp_type,
        rounding=rounding,
        saturation=saturation,
        defines_dst=defines_dst,
        span=statement.span,
    )


TCVT_READERS: dict[str, Handler] = {"pto.tcvt": _read_any_form, "tcvt": _read_any_form, '"pto.tcvt"': _read_generic}
"""Reader of tcvt under each of its names."""


# Reading flags, events and barriers. Events are flags between the pipes of their endpoints.
#
# Source: docs/reference/pto.md sections 3, 3.1 and 3.4.

_ENDPOINT_NAMES = ("pipe_event_type", "sync_op_type")


def _read_word(reader: PtoReader, name: str, legal: Collection[str], *, quoted: bool = True) -> str:
    """Read `<WORD>`, `#pto.NAME<WORD>` or (the older form) `"WORD"`."""
    index = reader.position
    kind = reader.kinds[index]
    if kind is TokenKind.ATTRIBUTE:
        reader.position += 1
        text = reader.texts[index]
        return enum_word(reader, Attribute(text, index, index), name, legal)
    if kind is TokenKind.STRING and quoted:
        reader.position += 1
        word = reader.texts[index].strip('"')
    elif reader.take("<"):
        index = reader.position
        word = reader.next_of(TokenKind.WORD, f"a value of {name}", legal)
        reader.expect(">")
    else:
        first = next(iter(legal))
        reader.unexpected(f"a value of {name}", (f"<{first}>", f"#pto.{name}<{first}>"))
    if word not in legal:
        raise reader.error(f"unknown {name} '{word}'", index, legal)
    return word


def _read_pipe(reader: PtoReader) -> Pipe:
    return PIPES[_read_word(reader, "pipe", PIPES)]


def _read_event(reader: PtoReader) -> int:
    return EVENTS[_read_word(reader, "event", EVENTS)]


def _read_endpoint(reader: PtoReader) -> Pipe:
    text = reader.texts[reader.position]
    name = next((name for name in _ENDPOINT_NAMES if name in text), _ENDPOINT_NAMES[0])
    return ENDPOINTS[_read_word(reader, name, ENDPOINTS, quoted=False)]


def _read_flag(
    node: type[SetFlag | WaitFlag], end: Callable[[PtoReader], Pipe], reader: PtoReader, statement: NamedOperation
) -> Operation:
    """Read `[SOURCE, DESTINATION, EVENT]`, the ends by `end`."""
    statement.no_result(reader)
    reader.expect("[")
    src = end(reader)
    reader.expect(",")
    dst = end(reader)
    reader.expect(",")
    event = _read_event(reader)
    reader.expect("]")
    return node(src, dst, event, span=statement.span)


def _read_numbered(node: type[SetFlag | WaitFlag], reader: PtoReader, statement: NamedOperation) -> Operation:
    """Read `[SOURCE, DESTINATION, %number]`."""
    statement.no_result(reader)
    reader.expect("[")
    src = _read_pipe(reader)
    reader.expect(",")
    dst = _read_pipe(reader)
    reader.expect(",")
    number = reader.operand()
    reader.check_use(number, ScalarType("index"))
    reader.expect("]")
    return node(src, dst, -1, number[0], span=statement.span)


def _read_barrier(reader: PtoReader, statement: NamedOperation) -> Operation:
    statement.no_result(reader)
    return Barrier(_read_pipe(reader), span=statement.span)


def _read_barrier_sync(reader: PtoReader, statement: NamedOperation) -> Operation:
    statement.no_result(reader)
    reader.expect("[")
    pipe = _read_endpoint(reader)
    reader.expect("]")
    return Barrier(pipe, span=statement.span)


SYNCHRONISATION_READERS: dict[str, Handler] = {
    "pto.set_flag": partial(_read_flag, SetFlag, _read_pipe),
    "pto.wait_flag": partial(_read_flag, WaitFlag, _read_pipe),
    "pto.set_flag_dyn": partial(_read_numbered, SetFlag),
    "pto.wait_flag_dyn": partial(_read_numbered, WaitFlag),
    "pto.record_event": partial(_read_flag, SetFlag, _read_endpoint),
    "pto.wait_event": partial(_read_flag, WaitFlag, _read_endpoint),
    "pto.barrier": _read_barrier,
    "pto.pipe_barrier": _read_barrier,
    "pto.barrier_sync": _read_barrier_sync,
}
"""Reader of every synchronisation."""
