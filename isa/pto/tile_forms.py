"""Reader of `subview`, `alloc_multi_tile` and `multi_tile_get`: other names for tiles and parts of tiles.

Source: docs/reference/pto.md section 7.8.
"""

from __future__ import annotations

from collections.abc import Sequence

from castsim.isa.dataclass import replace
from castsim.isa.errors import TileError, closest
from castsim.isa.formats import Saturation
from castsim.isa.pto.lexer import TokenKind
from castsim.isa.pto.program import (
    Barrier,
    GetTile,
    Operation,
    RoundMode,
    SetFlag,
    Subview,
    Tcvt,
    TileType,
    Type,
    WaitFlag,
)
from castsim.isa.pto.statement_forms import (
    INDEX,
    ROUND_MODES,
    SATURATIONS,
    Attribute,
    Attributes,
    FormWord,
    StatementForm,
    StatementReading,
    enum_word,
    read_attributes,
)
from castsim.isa.pto.statement_reader import Definition, Handler, NamedOperation, PtoReader, Use
from castsim.isa.pto.tile_operation_forms import check_cast_shapes, read_operands, result_type_text, tile_type
from castsim.isa.pto.types import format_type
from castsim.isa.pto.value_types import element_format

_AXES = ("row", "column")
_BOX_ROWS = 16  # of a box of 512 bytes, each row of 32 bytes; boxes of 1024 bytes have rows of 64
_BOXES: dict[int, tuple[int, int]] = {1024: (16, 16), 32: (16, 2)}

Pair = tuple[int | None, int | None]


def _read_pair(reading: StatementReading, field: str) -> tuple[str, ...]:
    """Read `[%i, %j]`, both of type index."""
    reader = reading.reader
    index = reader.expect("[")
    uses = reader.listed(reader.operand, "]")
    if len(uses) != 2:
        raise reader.error(f"a tile needs 2 indices (row, column), found {len(uses)}", index)
    reading.keep_uses(field, uses, INDEX)
    return uses[0][0], uses[1][0]


def _read_valid(reading: StatementReading, field: str) -> tuple[str, ...] | None:
    """Read the optional `valid [%vr, %vc]`."""
    reader = reading.reader
    if reader.take("valid"):
        return _read_pair(reading, field)
    if not reader.at(":") and not reader.at("{"):
        reader.unexpected("'valid' or ':'", ("valid [%rows, %cols]", ":"))
    return None


def _pair_text(node: Subview, field: str) -> str:
    first, second = getattr(node, field)
    return f"[%{first}, %{second}]"


def _valid_text(node: Subview, field: str) -> str:
    return f"valid {_pair_text(node, field)}" if node.valid else ""


def _read_sizes(reading: StatementReading, _: str) -> tuple[int, int]:
    """Read `[R, C]`, both at least 1."""
    reader = reading.reader
    index = reader.expect("[")
    numbers = reader.listed(lambda: reader.next_of(TokenKind.NUMBER, "a size such as 64"), "]")
    if len(numbers) != 2:
        raise reader.error(f"a tile needs 2 sizes (rows, columns), found {len(numbers)}", index)
    for text in numbers:
        if not text.isdecimal() or len(text) > 18 or not int(text):
            raise reader.error(f"a size must be a positive integer, not {text[:20]}", index)
    return int(numbers[0]), int(numbers[1])


def _subview(reading: StatementReading) -> None:
    """Find the type of a part; reject a stated type that differs, and a part that its tile does not have."""
    reader, source = reading.reader, reading.values["source_type"]
    valid, (rows, cols) = reading.uses.get("valid"), reading.values.pop("sizes")
    kind = _part_type(reader, source, (rows, cols), valid)
    if reader.take("->"):
        stated, index = tile_type(reader, reading.statement.name)
        _check_result(reader, index, kind, stated, valid)
        kind = stated
    _check_place(reading, source, kind)
    reading.values["type"] = kind


def _part_type(reader: PtoReader, source: TileType, sizes: tuple[int, int], valid: Sequence[Use] | None) -> TileType:
    """Return the type that a part has if the text does not state it."""
    valid_sizes: Pair = sizes
    if valid is not None:
        valid_sizes = valid[0][2].constant, valid[1][2].constant
        for axis, extent, size, use in zip(_AXES, valid_sizes, sizes, valid, strict=True):
            if extent is not None and not 0 <= extent <= size:
                raise TileError(f"{extent} valid {axis}s of a part of {size}", span=reader.span(use[1]))
    return replace(source, rows=sizes[0], cols=sizes[1], valid_rows=valid_sizes[0], valid_cols=valid_sizes[1])


def _check_result(
    reader: PtoReader, index: int, derived: TileType, stated: TileType, valid: Sequence[Use] | None
) -> None:
    """Reject a stated type other than the part's; only its valid region may add to what the operands leave open."""
    same = replace(stated, valid_rows=derived.valid_rows, valid_cols=derived.valid_cols) == derived
    if not same:
        raise reader.error(f"the result of pto.subview is {format_type(derived)}", index, (format_type(derived),))
    pairs = ((derived.valid_rows, stated.valid_rows), (derived.valid_cols, stated.valid_cols))
    for axis, (derived_extent, extent) in zip(_AXES, pairs, strict=True):
        if valid is None and extent is None:
            raise reader.error(
                f"the number of valid {axis}s is missing: neither the type nor an operand gives it",
                index,
                ("valid [%rows, %cols]",),
            )
        if valid is not None and extent is not None and extent != derived_extent:
            given = "known when the program runs" if derived_extent is None else str(derived_extent)
            raise reader.error(
                f"the type has {extent} valid {axis}s, but the operand is {given}",
                index,
                ("?" if derived_extent is None else given,),
            )


def _check_place(reading: StatementReading, source: TileType, part: TileType) -> None:
    """Refuse a part that begins before its tile, extends beyond it, or cuts a box."""
    offsets, constants = reading.uses["offsets"], reading.constants("offsets")
    physical, extents = (source.rows, source.cols), (part.valid_rows, part.valid_cols)
    for axis, offset, whole, extent, use in zip(_AXES, constants, physical, extents, offsets, strict=True):
        if offset is not None and (offset < 0 or offset + (extent or 0) > whole):
            what = f"{extent} valid {axis}s starting at {axis} {offset}" if extent else f"{axis} {offset}"
            raise TileError(f"{what} of a tile of {whole} {axis}s", span=reading.reader.span(use[1]))
    if source.scatter_layout == "none_box":
        return
    for axis, step, size, offset in zip(_AXES, _box(source), (part.rows, part.cols), constants, strict=True):
        if size % step or (offset or 0) % step:
            raise TileError(
                f"a part of a boxed tile must consist of whole boxes of {step} {axis}s: size {size}, offset {offset}",
                span=reading.statement.span,
            )


def _box(kind: TileType) -> tuple[int, int]:
    """Return rows and columns of the inner box of a tile."""
    if kind.fractal in _BOXES:
        return _BOXES[kind.fractal]
    across = max(32 * 8 // element_format(kind.element).bits, 1)
    return (_BOX_ROWS, across) if kind.scatter_layout == "row_major" else (across, _BOX_ROWS)


def _get_tile(reading: StatementReading) -> None:
    """Reject an index beyond the tiles."""
    reader, several, kind, index = (
        reading.reader,
        reading.values["source_type"],
        reading.values.pop("type"),
        reading.tokens,
    )
    if kind != several.tile:
        shown = format_type(several.tile)
        raise reader.error(f"its tiles are {shown}", index["type"], (shown,))
    (number,) = reading.constants("slot")
    if number is not None and not 0 <= number < several.count:
        raise TileError(f"no slot {number}: there are {several.count}", span=reader.span(reading.uses["slot"][0][1]))
    reading.result = kind


FORMS = (
    StatementForm(
        "%result = pto.subview %source{offsets:pair} sizes {sizes:sizes} {valid:valid} {:no_keys} "
        ": $source_type:tile=source {:result}",
        Subview, (), _subview,
        words={
            "pair": FormWord(_read_pair, _pair_text),
            "sizes": FormWord(_read_sizes, lambda node, _: f"[{node.type.rows}, {node.type.cols}]"),
            "valid": FormWord(_read_valid, _valid_text),
            "result": FormWord(lambda *_: None, result_type_text),
        },
    ),
    StatementForm(
        "%result = pto.multi_tile_get %source[%slot:index] {:no_keys} : $source_type:tiles=source -> $type:tile",
        GetTile, (), _get_tile,
    ),
    # Flags, events and barriers. Events are flags between the pipes of their endpoints (docs/reference/pto.md sections
    # 3, 3.1 and 3.4).
    *(
        StatementForm(f"pto.{name}_flag_dyn[{{src:pipe}}, {{dst:pipe}}, %number:index]", node, event=-1)
        for name, node in (("set", SetFlag), ("wait", WaitFlag))
    ),
    StatementForm("pto.set_flag[{src:pipe}, {dst:pipe}, {event:event}]", SetFlag),
    StatementForm("pto.wait_flag[{src:pipe}, {dst:pipe}, {event:event}]", WaitFlag),
    StatementForm("pto.record_event[{src:endpoint}, {dst:endpoint}, {event:event}]", SetFlag),
    StatementForm("pto.wait_event[{src:endpoint}, {dst:endpoint}, {event:event}]", WaitFlag),
    StatementForm("NAME {pipe:pipe}", Barrier, ("pto.barrier", "pto.pipe_barrier")),
    StatementForm("pto.barrier_sync[{pipe:endpoint}]", Barrier),
)  # fmt: skip
"""Spellings of parts of tiles and synchronisation."""


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
    """Distinguish the forms without quotes by the text after the name and the presence of a result."""
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
        raise reader.error("tcvt takes one source and at most one scratch tile", inputs.uses[2][1])
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
    typed = _typed(reader, uses, types)
    item = statement.results[0]
    result = (item.base, item.token, Definition(result_type, reader.starts[item.token]))
    if isinstance(result_type, TileType) and None in (result_type.valid_rows, result_type.valid_cols):
        raise reader.error("the result of tcvt must have static valid extents", result_index)
    tmp = typed[1] if len(typed) == 2 else None
    node = _build(reader, statement, typed[0], (result, result_type, result_index), tmp, attributes, defines_dst=True)
    statement.define_one(reader, result_type)
    return node


def _read_one_line(reader: PtoReader, statement: NamedOperation) -> Operation:
    """Read `tcvt %dst, %src[, %tmp] : type #key=value ...`.

    There is one type per operand in this order, or a single one, which must be that of one of the tiles; the other
    types are those of the definitions.
    """
    uses = [reader.operand()]
    while reader.take(","):
        uses.append(reader.operand())
    if not 2 <= len(uses) <= 3:
        raise reader.error("tcvt takes dst, src and at most one scratch tile", uses[-1][1])
    reader.expect(":")
    types = reader.types()
    defined = [use[2].type for use in uses]
    if len(types) == 1:
        if types[0][0] not in defined[:2]:
            reader.check_use(uses[0], *types[0])
        typed = [(use, kind, types[0][1]) for use, kind in zip(uses, defined, strict=True)]
    else:
        typed = _typed(reader, uses, types)
    attributes = _read_hash_attributes(reader)
    return _build(reader, statement, typed[1], typed[0], typed[2] if len(typed) == 3 else None, attributes)


def _read_hash_attributes(reader: PtoReader) -> Attributes:
    """Read `#rmode=FLOOR #sat_mode=ON`; the value may also be a whole dialect attribute."""
    attributes: Attributes = {}
    while reader.kinds[reader.position] is TokenKind.ATTRIBUTE:
        key_index = reader.position
        key = reader.texts[key_index][1:]
        reader.position += 1
        if key in attributes:
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
        attributes[key] = Attribute(text, key_index, value_index)
    return attributes


def _read_generic(reader: PtoReader, statement: NamedOperation) -> Operation:
    """Read `"pto.tcvt"(%s, %d[, %tmp]) [<dict>] [dict] : (T0, T1[, Tt]) -> ()`."""
    statement.no_result(reader)
    reader.expect("(")
    uses = reader.listed(reader.operand, ")")
    if not 2 <= len(uses) <= 3:
        raise reader.error("tcvt takes src, dst and at most one scratch tile", statement.index)
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
    typed = _typed(reader, uses, types)
    return _build(reader, statement, typed[0], typed[1], typed[2] if len(typed) == 3 else None, attributes)


def _typed(reader: PtoReader, uses: list[Use], types: list[tuple[Type, int]]) -> list[Typed]:
    reader.check_uses(uses, types)
    return [(use, kind, index) for use, (kind, index) in zip(uses, types, strict=True)]


def _tile(reader: PtoReader, typed: Typed) -> TileType:
    (name, *_), kind, index = typed
    if not isinstance(kind, TileType):
        spelling = reader.texts[index]
        raise reader.error(f"tcvt converts tiles; %{name} is {spelling}", index, ("!pto.tile_buf<...>",))
    return kind


def _modes(reader: PtoReader, attributes: Attributes) -> tuple[RoundMode | None, Saturation | None]:
    for key, attribute in attributes.items():
        if key not in _KEYS:
            meant = _OTHER_KEYS.get(key)
            legal = (meant,) if meant else closest(key, _KEYS)
            raise reader.error(f"tcvt has no attribute '{key}'", attribute.key_index, legal)
    mode = attributes.get("rmode")
    rounding = None if mode is None else ROUND_MODES[enum_word(reader, mode, "round_mode", ROUND_MODES)]
    given = [attributes[key] for key in ("sat_mode", "satmode") if key in attributes]
    if len(given) > 1:
        last = max(given, key=lambda attribute: attribute.key_index)
        raise reader.error("sat_mode and satmode are the same attribute; give one", last.key_index, ("sat_mode",))
    return rounding, SATURATIONS[enum_word(reader, given[0], "saturation_mode", SATURATIONS)] if given else None


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
    """Check the common rules of all forms and build the node."""
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
"""Readers of tcvt by name."""
