"""Reading the `pto` operations on tiles and views other than tcvt: allocation, views, and `NAME ins(...) outs(...)`.

Source: docs/reference/pto.md sections 3, 3.5 and 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from castsim.isa.errors import Span, TileError
from castsim.isa.pto.attributes import (
    Attribute,
    Attributes,
    check_keys,
    enum_word,
    layout_from,
    read_attributes,
    sorted_texts,
)
from castsim.isa.pto.lexer import closest
from castsim.isa.pto.operand_forms import DIRECTION, OFFSET, check_comparison, form_of, types_by_pattern, variant_of
from castsim.isa.pto.packed import element_format, held_element, unpacked
from castsim.isa.pto.program import (
    AllocTile,
    MakeView,
    Operation,
    PartitionType,
    PartitionView,
    PointerType,
    ScalarType,
    SetValidShape,
    TileOperation,
    TileType,
    Type,
    ViewType,
)
from castsim.isa.pto.statement_reader import Handler, NamedOperation, PtoReader
from castsim.isa.pto.value_types import is_foreign_work
from castsim.isa.pto.vector_operations import (
    ALIASES,
    BLOCK_QUANTISATIONS,
    COMPARISONS,
    GROUP_AXES,
    MATRIX,
    PART_MOVES,
    PATTERNS,
    QUANTISATIONS,
    SCALE_ALGORITHMS,
    VECTOR_OPERATIONS,
    Kind,
    VectorOperation,
)
from castsim.isa.warning_text import WarningKind

# Checks of the front end beyond grammar: shapes, valid regions, views.
#
# Everything here follows from the text alone; what depends on a run's values, on a target or on addresses is checked
# by whoever has them. Source: docs/reference/pto.md sections 3.5 and 4.


def check_cast_shapes(src: TileType, dst: TileType, span: Span, *, physical: bool = True) -> None:
    """Reject a cast between tiles of different shape or valid region; a dynamic extent agrees with any.

    A column of 4-bit pairs stands for two. Without `physical`, shapes may differ as long as valid regions agree.

    Raises:
        TileError: both shapes, or both valid regions, are named.
    """
    packed = [name for name, tile in (("src", src), ("dst", dst)) if unpacked(tile) is not tile]
    counted = f" ({' and '.join(packed)} counted in values, two per element)" if packed else ""
    src, dst = unpacked(src), unpacked(dst)
    if physical and (src.rows, src.cols) != (dst.rows, dst.cols):
        raise TileError(
            f"tcvt expects src and dst of one shape: src has {src.rows}x{src.cols}, dst has {dst.rows}x{dst.cols}"
            f"{counted}",
            span=span,
        )
    pairs = ((src.valid_rows, dst.valid_rows), (src.valid_cols, dst.valid_cols))
    if any(a is not None and b is not None and a != b for a, b in pairs):
        raise TileError(
            f"tcvt expects src and dst with the same valid region: src has {_region(src)}, dst has {_region(dst)}"
            f"{counted}",
            span=span,
        )


def check_valid_operand(what: str, value: int | None, physical: int, span: Span) -> None:
    """Reject a known valid extent (`what` = rows or columns) that the tile does not have."""
    if value is not None and not 0 <= value <= physical:
        raise TileError(f"{value} valid {what} in a tile of {physical} {what}", span=span)


def check_view(kind: ViewType, shape: Sequence[int | None], span: Span) -> None:
    """Reject a view whose static extents differ from known shape operands."""
    for position, (extent, value) in enumerate(zip(kind.dims, shape, strict=True)):
        if value is not None and value < 0:
            raise TileError(f"extent {position} of the view is {value}", span=span)
        if extent is not None and value is not None and extent != value:
            raise TileError(f"extent {position} of the view is {extent} in the type, but {value} in shape", span=span)


def check_packing(element: str, strides: Sequence[int | None], offsets: Sequence[int | None], span: Span) -> None:
    """Reject known strides and offsets of a view of 4-bit elements that fall inside a byte (docs/reference/pto.md
    section 2.2).

    Two elements share a byte, so every stride is even except the unit stride innermost, and a part begins at an even
    element.
    """
    if element_format(element).bits != 4:
        return
    for position, stride in enumerate(strides):
        innermost = position == len(strides) - 1
        if stride is not None and stride % 2 and not (innermost and stride == 1):
            raise TileError(f"stride {position} of a view of 4-bit elements is {stride}; it must be even", span=span)
    if offsets and offsets[-1] is not None and offsets[-1] % 2:
        raise TileError(f"a part of 4-bit elements begins at column {offsets[-1]}; it must be even", span=span)


def check_layout(layout: str | None, shape: Sequence[int | None], strides: Sequence[int | None], span: Span) -> None:
    """Reject a declared layout that known extents and strides contradict.

    `nd` has its unit stride innermost, `dn` one dimension further out; `nz` is taken as given. Extents of 1 tell
    nothing, since their stride is never taken.
    """
    if layout in (None, "nz") or len(shape) < 2:
        return
    (outer, inner), (outer_stride, inner_stride) = shape[-2:], strides[-2:]
    if None in (outer, inner, outer_stride, inner_stride) or 1 in (outer, inner) or outer_stride == inner_stride:
        return
    inferred = {1: "nd"}.get(inner_stride or 0) or {1: "dn"}.get(outer_stride or 0)
    if inferred is not None and inferred != layout:
        raise TileError(
            f"layout mismatch: {layout} is declared, strides {outer_stride}, {inner_stride} make it {inferred}",
            span=span,
            legal=(inferred,),
        )


def check_partition(
    view: ViewType,
    extents: Sequence[int | None],
    offsets: Sequence[int | None],
    sizes: Sequence[int | None],
    part: PartitionType,
    span: Span,
) -> None:
    """Reject a partition that leaves its view, or whose type does not say the size its operands do.

    `extents` are those of the view as far as they are known, from its type or from its shape operands. A part with
    fewer dimensions than the view has to hold the same number of elements.
    """
    for position, (extent, offset, size) in enumerate(zip(extents, offsets, sizes, strict=True)):
        if (offset or 0) < 0 or (size or 0) < 0:
            raise TileError(f"dimension {position}: offset {offset}, size {size}; neither may be negative", span=span)
        if extent is not None and offset is not None and size is not None and offset + size > extent:
            raise TileError(
                f"dimension {position}: offset {offset} and size {size} reach beyond the view's extent {extent}",
                span=span,
            )
    if len(part.dims) > len(view.dims):
        raise TileError(f"a part of {len(part.dims)} dimensions of a view of {len(view.dims)}", span=span)
    if len(part.dims) == len(view.dims):
        for position, (extent, size) in enumerate(zip(part.dims, sizes, strict=True)):
            if extent is not None and size is not None and extent != size:
                raise TileError(f"dimension {position} is {extent} in the type, but {size} in sizes", span=span)
        return
    count, wanted = element_count(part.dims), element_count(sizes)
    if count is not None and wanted is not None and count != wanted:
        raise TileError(f"the part has {count} elements in the type, but {wanted} in sizes", span=span)


def check_transfer(mnemonic: str, inputs: Sequence[Type], outputs: Sequence[Type], span: Span) -> None:
    """Reject a load or store between a part and a valid region of different size."""
    ends = (*inputs, *outputs)
    if len(ends) != 2:
        return
    tile = next((end for end in ends if isinstance(end, TileType)), None)
    part = next((end for end in ends if isinstance(end, PartitionType)), None)
    if tile is None or part is None:
        return
    count, wanted = element_count(part.dims), element_count((tile.valid_rows, tile.valid_cols))
    if count is not None and wanted is not None and count != wanted:
        raise TileError(
            f"{mnemonic} between a part of {count} elements and a tile whose valid region {_region(tile)} has {wanted}",
            span=span,
        )


def check_alias(mnemonic: str, source: TileType, result: TileType, span: Span) -> None:
    """Reject a treshape or bitcast whose two types cannot name the same bytes (docs/reference/pto.md section 7.2).

    How many bytes a row of 4-bit elements takes is the target's affair, so for these no sizes are compared.
    """
    if source.location != result.location:
        raise TileError(f"{mnemonic} keeps the location: {source.location} to {result.location}", span=span)
    if mnemonic == "bitcast":
        if replace(result, element=source.element) != source:
            raise TileError("bitcast changes the element type alone", span=span)
        if element_format(result.element).bits > element_format(source.element).bits:
            raise TileError(f"bitcast to a wider element: {source.element} to {result.element}", span=span)
        return
    if (source.scatter_layout == "none_box") != (result.scatter_layout == "none_box"):
        raise TileError("treshape between a boxed tile and one without boxes", span=span)
    before, after = (tile.rows * tile.cols * element_format(tile.element).bits for tile in (source, result))
    if before != after and min(element_format(source.element).bits, element_format(result.element).bits) >= 8:
        raise TileError(f"treshape keeps the size: {before // 8} bytes to {after // 8}", span=span)


def element_count(dims: Sequence[int | None]) -> int | None:
    """Return the product of the extents, None if one is dynamic."""
    known = [extent for extent in dims if extent is not None]
    return prod(known) if len(known) == len(dims) else None


def _region(tile: TileType) -> str:
    return "x".join("?" if extent is None else str(extent) for extent in (tile.valid_rows, tile.valid_cols))


_INDEX = ScalarType("index")
_I64 = ScalarType("i64")
_STORE_MODE = "storeMode"
_KNOWN_ATTRIBUTES = ("cmpMode", "isBinary", "descending", "maskPattern", "quant_type")
_BLOCK_ATTRIBUTES = ("quantScaleAlg", "grpAxis", "interleave", _STORE_MODE)
_CAST_ATTRIBUTES = ("rmode", "sat_mode", "satmode")
_ENUMERATED = {
    "cmpMode": ("cmp", COMPARISONS),
    "maskPattern": ("mask_pattern", PATTERNS),
    "grpAxis": ("mx_group_axis", GROUP_AXES),
}
"""Name and words of attributes that are of an enumeration."""
_TRUTHS = ("isBinary", "descending")
_BOOLEANS = ("true", "false")

Use = tuple[str, int]


@dataclass(slots=True)
class OperandList:
    """The content of the parentheses of `ins` or `outs`: uses, their types, and the tokens of those."""

    uses: tuple[Use, ...]
    types: tuple[Type, ...]
    type_indices: tuple[int, ...]

    def typed(self, number: int) -> tuple[Use, Type, int]:
        """One of the uses with its type and the token of that."""
        return self.uses[number], self.types[number], self.type_indices[number]

    @property
    def names(self) -> tuple[str, ...]:
        """The value names."""
        return tuple(use[0] for use in self.uses)


def tile_type(reader: PtoReader, owner: str) -> tuple[TileType, int]:
    """Take a type that must be a tile's; return it and its index."""
    index = reader.position
    kind = reader.type()
    if not isinstance(kind, TileType):
        raise reader.error(f"{owner} works on tiles, not on {reader.texts[index]}", index, ("!pto.tile_buf<...>",))
    return kind, index


def read_operands(reader: PtoReader, attributes: Attributes | None = None) -> OperandList:
    """Read `(values [dict] : types)`; a dictionary is accepted only if there is somewhere to put it.

    Raises:
        ReadError: values and types differ in number, or a type is not that of the definition.
    """
    reader.expect("(")
    texts = reader.texts
    uses = [reader.operand()]
    while texts[reader.position] == ",":
        reader.position += 1
        if attributes is not None and reader.at("{"):
            break
        uses.append(reader.operand())
    if attributes is not None:
        read_attributes(reader, attributes)
    if texts[reader.position] != ":":
        reader.unexpected("',' or ':'" if attributes is None else "',', '{' or ':'", (":",))
    reader.position += 1
    by_pattern = attributes is not None and "maskPattern" in attributes and len(uses) == 1
    types = types_by_pattern(reader, attributes) if attributes is not None and by_pattern else reader.types()
    if len(types) != len(uses):
        raise reader.error(f"{len(uses)} operands with {len(types)} types", types[-1][1])
    if texts[reader.position] != ")":
        reader.unexpected("',' or ')'", (")",))
    reader.position += 1
    for use, (kind, index) in zip(uses, types, strict=True):
        reader.check_use(use, kind, index)
    kinds, indices = zip(*types, strict=True)
    return OperandList(tuple(uses), kinds, indices)


def read_tile_operation(reader: PtoReader, statement: NamedOperation) -> Operation:
    """Read `pto.NAME [ins(...)] outs(...) [dict]`, whatever NAME is."""
    mnemonic = statement.operation
    statement.no_result(reader)
    attributes: Attributes = {}
    inputs = read_operands(reader, attributes) if reader.take("ins") else OperandList((), (), ())
    reader.expect("outs")
    outputs = read_operands(reader)
    read_attributes(reader, attributes)
    for key, attribute in attributes.items():
        # The keys of unmodelled operations are not known here; what is nearly a known key is a slip.
        near = closest(key, _KNOWN_ATTRIBUTES, everything_up_to=0)
        if key in _CAST_ATTRIBUTES and mnemonic not in VECTOR_OPERATIONS:
            continue  # more likely a slip in `tcvt` itself, which is reported by its name
        if key not in _KNOWN_ATTRIBUTES and near:
            raise reader.error(f"{statement.name} has no attribute '{key}'", attribute.key_index, near)
    mnemonic = variant_of(mnemonic, attributes, inputs.types, outputs.types)
    known = VECTOR_OPERATIONS.get(mnemonic)
    if known is not None and known.name != statement.operation:
        raise reader.error(f"unknown operation '{statement.name}'", statement.index, (f"pto.{known.name}",))
    if known is None and "maskPattern" in attributes:
        index = attributes["maskPattern"].key_index
        raise reader.error(f"{statement.name} has no attribute 'maskPattern'", index, ("pto.tgather",))
    if known is not None and not is_foreign_work(mnemonic, (*inputs.types, *outputs.types)):
        _check_operands(reader, statement, known, inputs, outputs)
        _check_attributes(reader, statement, known, inputs, outputs, attributes)
    if mnemonic in PART_MOVES and not any(isinstance(kind, TileType) and kind.foreign for kind in inputs.types):
        _check_part_move(reader, statement, inputs, outputs)
    if mnemonic == "tstore" and not reader.recorded:
        check_transfer(mnemonic, inputs.types, outputs.types, statement.span)
    return TileOperation(
        mnemonic,
        inputs.names,
        inputs.types,
        outputs.names,
        outputs.types,
        sorted_texts(attributes),
        mnemonic.startswith(MATRIX),
        span=statement.span,
    )


def _check_part_move(reader: PtoReader, statement: NamedOperation, inputs: OperandList, outputs: OperandList) -> None:
    """Reject a copy out of or into a part of a tile that is not written with the tiles and where the part begins."""
    form = "ins(%tile, %row, %column : T, index, index) outs(%tile : T)"
    if not (
        len(inputs.types) == 3
        and isinstance(inputs.types[0], TileType)
        and inputs.types[1:] == (_INDEX, _INDEX)
        and len(outputs.types) == 1
        and isinstance(outputs.types[0], TileType)
    ):
        raise reader.error(f"{statement.name} is not written with these operands", statement.index, (form,))
    source, result = inputs.types[0], outputs.types[0]
    if not result.foreign and source.element != result.element:
        raise reader.error(
            f"{statement.name} copies elements of one type: %{inputs.names[0]} holds {source.element}, "
            f"%{outputs.names[0]} {result.element}",
            outputs.type_indices[0],
        )


def _check_operands(
    reader: PtoReader, statement: NamedOperation, known: VectorOperation, inputs: OperandList, outputs: OperandList
) -> None:
    """Reject operands of a number or kind that the operation is not written with."""
    typed = zip((*inputs.types, *outputs.types), (*inputs.type_indices, *outputs.type_indices), strict=True)
    for kind, index in typed:
        if not isinstance(kind, TileType | ScalarType):
            raise reader.error(f"{statement.name} works on tiles and scalars", index, known.spellings)
    count = len(outputs.types) - (known.tmp_behind and len(outputs.types) == known.destinations + 1)
    if count != known.destinations or not all(isinstance(kind, TileType) for kind in outputs.types):
        words = {
            1: ("one tile", "outs(%tile : T)"),
            2: ("two tiles", "outs(%tile, %counts : T, T)"),
            4: ("four tiles", "outs(%codes, %exponents, %maxima, %scaling : T, T, T, T)"),
        }[known.destinations]
        if known.kind is Kind.BLOCK_QUANTISE and len(outputs.types) == 5:
            raise reader.error(
                f"{statement.name}: only the CPU simulator writes a fifth tile of exponents in boxes (exp_zz)",
                outputs.type_indices[-1],
                ("pto.tmov ins(%exponents, %tmp : T, T) outs(%zz : T), slayout=row_major, behind it",),
            )
        raise reader.error(f"{statement.name} writes {words[0]}", outputs.type_indices[-1], words[1:])
    if known.kind is Kind.RAMP and any(isinstance(kind, TileType) and kind.cols == 1 for kind in outputs.types):
        raise reader.error(f"{statement.name} writes more than one column", outputs.type_indices[0])
    if form_of(known, inputs.types) is None:
        index = inputs.type_indices[0] if inputs.type_indices else statement.index
        raise reader.error(f"{statement.name} is not written with these operands", index, known.spellings)
    for kind, index in zip(inputs.types, inputs.type_indices, strict=True):
        if isinstance(kind, ScalarType) and kind.name in ("index", "i1"):
            raise reader.error(f"{statement.name} takes a scalar of the tile's element type, not {kind.name}", index)


def _check_attributes(
    reader: PtoReader,
    statement: NamedOperation,
    known: VectorOperation,
    inputs: OperandList,
    outputs: OperandList,
    attributes: Attributes,
) -> None:
    """Reject an attribute of another operation and values that it cannot have; warn of unknown names."""
    for key, attribute in attributes.items():
        if key == {Kind.PATTERN_GATHER: DIRECTION, Kind.COMPARE_GATHER: OFFSET}.get(known.kind):
            continue
        if known.kind is Kind.BLOCK_QUANTISE and key in _BLOCK_ATTRIBUTES:
            continue
        if key not in (*_KNOWN_ATTRIBUTES, known.attribute):
            message = f"{statement.name} has no attribute '{key}'; it has no effect"
            reader.warn(WarningKind.ATTRIBUTE, message, reader.span(attribute.key_index))
        elif key != known.attribute:
            raise reader.error(f"{statement.name} has no attribute '{key}'", attribute.key_index)
    given = None if known.attribute is None else attributes.get(known.attribute)
    if known.kind is Kind.COMPARE_GATHER:
        check_comparison(reader, attributes)
    elif known.attribute in _ENUMERATED and given is not None:
        enum_word(reader, given, *_ENUMERATED[known.attribute])
    if known.attribute == "quant_type":
        _check_quantisation(reader, statement, inputs, outputs, attributes)
    if known.attribute in _TRUTHS and given is not None and given.text not in _BOOLEANS:
        raise reader.error(f"{known.attribute} is true or false, not '{given.text}'", given.value_index, _BOOLEANS)
    if known.attribute == "isBinary" and given is None and len(inputs.types) > 1:
        legal = ("ins(%tile : T)", "ins(%tile, %tmp {isBinary = true} : T, T)")
        raise reader.error(f"{statement.name} has isBinary if and only if it has tmp", statement.index, legal)


def _check_quantisation(
    reader: PtoReader, statement: NamedOperation, inputs: OperandList, outputs: OperandList, attributes: Attributes
) -> None:
    """Reject a quantisation of no known kind, and an offset that its kind does not have or lacks."""
    given = attributes.get("quant_type")
    by_blocks = statement.operation != "tquant"
    if given is None:
        kinds = BLOCK_QUANTISATIONS if by_blocks else QUANTISATIONS
        legal = tuple(f"quant_type = #pto<quant_type {kind}>" for kind in kinds)
        raise reader.error(f"{statement.name} needs the attribute quant_type", statement.index, legal)
    if by_blocks:
        _check_block_quantisation(reader, given, outputs, attributes)
        return
    kind = enum_word(reader, given, "quant_type", QUANTISATIONS)
    offset = kind == QUANTISATIONS[1]
    if len(inputs.types) != 2 + offset:
        legal = ("ins(%src, %scale, %offset : T, T, T)",) if offset else ("ins(%src, %scale : T, T)",)
        raise reader.error(f"{kind} {'needs' if offset else 'has no'} offset", inputs.type_indices[-1], legal)


def _check_block_quantisation(
    reader: PtoReader, given: Attribute, outputs: OperandList, attributes: Attributes
) -> None:
    """Reject a block quantisation of no known kind, rule or axis, and codes that its kind does not have."""
    kind = enum_word(reader, given, "quant_type", BLOCK_QUANTISATIONS)
    for key, name, legal in (
        ("quantScaleAlg", "quant_scale_alg", SCALE_ALGORITHMS),
        ("grpAxis", "mx_group_axis", GROUP_AXES),
    ):
        if key in attributes:
            enum_word(reader, attributes[key], name, legal)
    interleave, store_mode = attributes.get("interleave"), attributes.get(_STORE_MODE)
    if interleave is not None and interleave.text not in _BOOLEANS:
        raise reader.error(f"interleave is true or false, not '{interleave.text}'", interleave.value_index, _BOOLEANS)
    if store_mode is not None:
        raise reader.error("storeMode goes with a fifth tile, which the A5 does not write", store_mode.key_index)
    codes = outputs.types[0]
    narrow = isinstance(codes, TileType) and held_element(codes.element) == "e2m1"
    if narrow != (kind == BLOCK_QUANTISATIONS[1]):
        wanted = ("!pto.f4E2M1x2",) if kind == BLOCK_QUANTISATIONS[1] else ("i8", "ui8")
        raise reader.error(f"{kind} is written to tiles of {' or '.join(wanted)}", outputs.type_indices[0], wanted)


def _read_alias(reader: PtoReader, statement: NamedOperation) -> Operation:
    """Read `%r = pto.treshape %a : T0 -> T1`; the front end has no ins/outs form of it."""
    if reader.at("ins") or reader.at("outs"):
        form = f"%r = {statement.name} %a : T0 -> T1"
        raise reader.error(f"{statement.name} has no ins/outs form", legal=(form,))
    source = reader.operand()
    attributes = read_attributes(reader)
    check_keys(reader, attributes, (), statement.name)
    reader.expect(":")
    source_type, source_index = tile_type(reader, statement.name)
    reader.expect("->")
    result_type, result_index = tile_type(reader, statement.name)
    reader.check_use(source, source_type, source_index)
    if None in (result_type.valid_rows, result_type.valid_cols):
        raise reader.error(f"the result of {statement.name} needs static valid extents", result_index)
    mnemonic = statement.operation
    check_alias(mnemonic, source_type, result_type, statement.span)
    result = statement.define_one(reader, result_type)
    return TileOperation(
        mnemonic,
        (source[0],),
        (source_type,),
        (result,),
        (result_type,),
        sorted_texts(attributes),
        span=statement.span,
    )


def read_placement(reader: PtoReader, statement: NamedOperation) -> dict[str, Use]:
    """Read `[addr = %a] [valid_row = %r] [valid_col = %c] :` and return what is given, by its key."""
    given: dict[str, Use] = {}
    for key, operand_type in (("addr", _I64), ("valid_row", _INDEX), ("valid_col", _INDEX)):
        if reader.take(key):
            reader.expect("=")
            given[key] = reader.operand()
            reader.check_use(given[key], operand_type)
    if not reader.at(":") and not reader.at("{"):
        keys = [key for key in ("addr", "valid_row", "valid_col") if key not in given]
        near = closest(reader.texts[reader.position], (*keys, ":"), everything_up_to=4)
        reader.unexpected("addr, valid_row, valid_col (in this order) or ':'", near)
    check_keys(reader, read_attributes(reader), (), statement.name)
    reader.expect(":")
    return given


def _read_alloc(reader: PtoReader, statement: NamedOperation) -> Operation:
    given = read_placement(reader, statement)
    kind, index = tile_type(reader, statement.name)
    for key, field, extent in (("valid_row", "v_row", kind.valid_rows), ("valid_col", "v_col", kind.valid_cols)):
        if extent is None and key not in given:
            raise reader.error(f"{key} operand is required because result type {field} is ?", index, (f"{key} = %x",))
        if extent is not None and key in given:
            raise reader.error(f"{key} operand is not allowed because result type {field} is {extent}", given[key][1])
    _check_valid_uses(reader, kind, given.get("valid_row"), given.get("valid_col"))
    result = statement.define_one(reader, kind)
    names = {key: use[0] for key, use in given.items()}
    return AllocTile(
        result, kind, names.get("addr"), names.get("valid_row"), names.get("valid_col"), span=statement.span
    )


def _check_valid_uses(reader: PtoReader, kind: TileType, rows: Use | None, cols: Use | None) -> None:
    for what, use, physical in (("rows", rows, kind.rows), ("columns", cols, kind.cols)):
        if use is not None:
            check_valid_operand(what, reader.definition(use).constant, physical, reader.span(use[1]))


def _read_set_valid_shape(reader: PtoReader, statement: NamedOperation) -> Operation:
    statement.no_result(reader)
    tile = reader.operand()
    reader.expect(",")
    rows = reader.operand()
    reader.expect(",")
    cols = reader.operand()
    reader.expect(":")
    kind, index = tile_type(reader, statement.name)
    reader.check_use(tile, kind, index)
    reader.check_use(rows, _INDEX)
    reader.check_use(cols, _INDEX)
    _check_valid_uses(reader, kind, rows, cols)
    return SetValidShape(tile[0], rows[0], cols[0], kind, span=statement.span)


def _named_list(reader: PtoReader, key: str) -> list[Use]:
    """Read `, key = [%a, %b]`, all of type index."""
    reader.expect(",")
    reader.expect(key)
    reader.expect("=")
    reader.expect("[")
    uses = reader.listed(reader.operand, "]")
    for use in uses:
        reader.check_use(use, _INDEX)
    return uses


def _known(reader: PtoReader, uses: list[Use]) -> tuple[int | None, ...]:
    return tuple(reader.definition(use).constant for use in uses)


def _check_rank(reader: PtoReader, uses: list[Use], what: str, rank: int, index: int) -> None:
    if len(uses) != rank:
        raise reader.error(f"{len(uses)} {what} for a view of {rank} dimensions", index)


def _read_make_view(reader: PtoReader, statement: NamedOperation) -> Operation:
    pointer = reader.operand()
    shape = _named_list(reader, "shape")
    strides = _named_list(reader, "strides")
    attributes = read_attributes(reader)
    check_keys(reader, attributes, ("layout",), statement.name)
    layout = layout_from(reader, attributes["layout"]) if "layout" in attributes else None
    reader.expect(":")
    index = reader.position
    kind = reader.type()
    if not isinstance(kind, ViewType):
        raise reader.error(f"expected a view type, found {reader.texts[index]}", index, ("!pto.tensor_view<...>",))
    base = reader.definition(pointer).type
    if not isinstance(base, PointerType):
        raise reader.error(f"%{pointer[0]} is not a pointer", pointer[1], ("!pto.ptr<...>",))
    if base.element != kind.element:
        raise reader.error(f"a view of {kind.element} elements on a pointer to {base.element}", index)
    _check_rank(reader, shape, "shape operands", len(kind.dims), index)
    _check_rank(reader, strides, "stride operands", len(kind.dims), index)
    extents, steps = _known(reader, shape), _known(reader, strides)
    check_view(kind, extents, statement.span)
    check_layout(layout, extents, steps, statement.span)
    check_packing(kind.element, steps, (), statement.span)
    result = statement.define_one(reader, kind)
    reader.scope.note_extents(result, extents)
    names = tuple(use[0] for use in shape), tuple(use[0] for use in strides)
    return MakeView(result, pointer[0], *names, layout, kind, span=statement.span)


def _read_partition(reader: PtoReader, statement: NamedOperation) -> Operation:
    view = reader.operand()
    offsets = _named_list(reader, "offsets")
    sizes = _named_list(reader, "sizes")
    check_keys(reader, read_attributes(reader), (), statement.name)
    reader.expect(":")
    source_index = reader.position
    source = reader.type()
    if not isinstance(source, ViewType):
        found = reader.texts[source_index]
        raise reader.error(f"expected a view type, found {found}", source_index, ("!pto.tensor_view<...>",))
    index = reader.position
    if reader.take("->"):
        index = reader.position
        kind = reader.type()
    else:
        # Newer front ends infer the type: extents that are constants, `?` for others.
        kind = PartitionType(_known(reader, sizes), source.element)
    if not isinstance(kind, PartitionType):
        legal = ("!pto.partition_tensor_view<...>",)
        raise reader.error(f"expected a partition type, found {reader.texts[index]}", index, legal)
    reader.check_use(view, source, source_index)
    if source.element != kind.element:
        raise reader.error(f"a part of {kind.element} elements of a view of {source.element}", index)
    _check_rank(reader, offsets, "offsets", len(source.dims), view[1])
    _check_rank(reader, sizes, "sizes", len(source.dims), view[1])
    extents = _extents(reader, view, source)
    starts = _known(reader, offsets)
    check_partition(source, extents, starts, _known(reader, sizes), kind, statement.span)
    check_packing(kind.element, (), starts, statement.span)
    result = statement.define_one(reader, kind)
    names = tuple(use[0] for use in offsets), tuple(use[0] for use in sizes)
    return PartitionView(result, view[0], *names, source, kind, span=statement.span)


def _extents(reader: PtoReader, view: Use, kind: ViewType) -> tuple[int | None, ...]:
    """Return the extents of a view as far as its type or its shape operands tell."""
    noted = reader.definition(view).extents
    if noted is None:
        return kind.dims
    return tuple(value if extent is None else extent for extent, value in zip(kind.dims, noted, strict=True))


HANDLERS: dict[str, Handler] = {
    "pto.alloc_tile": _read_alloc,
    "pto.make_tensor_view": _read_make_view,
    "pto.partition_view": _read_partition,
    "pto.set_validshape": _read_set_valid_shape,
    **{f"pto.{mnemonic}": _read_alias for mnemonic in ALIASES},
}
"""Reader of every tile or view operation with a form of its own."""
