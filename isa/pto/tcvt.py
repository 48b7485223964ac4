"""Reading tcvt in each of its nine spellings; all give the same `Tcvt`.

The vendor's front end reads the ins/outs form and the generic form; the SSA, bare and one-line forms occur in
instruction pages only, and castsim reads them too. Source: docs/reference/pto.md section 1.
"""

from __future__ import annotations

from castsim.isa.modes import Saturation
from castsim.isa.pto.attributes import (
    ROUND_MODES,
    SATURATIONS,
    Attribute,
    Attributes,
    read_attributes,
    rounding_from,
    saturation_from,
)
from castsim.isa.pto.lexer import TokenKind
from castsim.isa.pto.program import Operation, RoundMode, Tcvt, TileType, Type
from castsim.isa.pto.reader import PtoReader
from castsim.isa.pto.spelling import closest
from castsim.isa.pto.statement import Handler, Statement
from castsim.isa.pto.tile_operations import Use, check_cast_shapes, read_operands

_KEYS = ("rmode", "sat_mode", "satmode")
# Names seen for the two attributes elsewhere; the front end keeps them silently and ignores them.
_OTHER_KEYS = {
    **dict.fromkeys(("round", "rounding", "round_mode", "roundmode", "rnd", "mode"), "rmode"),
    **dict.fromkeys(("sat", "saturate", "saturation", "saturation_mode", "satMode"), "sat_mode"),
}
Typed = tuple[Use, Type, int]


def _read_any_form(reader: PtoReader, statement: Statement) -> Operation:
    """Tell the forms without quotes apart by what follows the name and whether there is a result."""
    if reader.at("ins"):
        return _read_ins_outs(reader, statement)
    if reader.kinds[reader.position] is not TokenKind.VALUE:
        reader.unexpected("'ins' or a value", ("ins", "%src"))
    return _read_ssa(reader, statement) if statement.results else _read_one_line(reader, statement)


def _read_ins_outs(reader: PtoReader, statement: Statement) -> Operation:
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


def _read_ssa(reader: PtoReader, statement: Statement) -> Operation:
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


def _read_one_line(reader: PtoReader, statement: Statement) -> Operation:
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


def _read_generic(reader: PtoReader, statement: Statement) -> Operation:
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
    statement: Statement,
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
