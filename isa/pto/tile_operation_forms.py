"""Reader of the `pto` operations on tiles and views except tcvt: allocation, views, and `NAME ins(...) outs(...)`.

Source: docs/reference/pto.md sections 3, 3.5 and 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import Span, TileError, WarningKind, closest
from castsim.isa.pto.program import (
    AllocTile,
    AllocTiles,
    MakeView,
    Operation,
    PartitionType,
    PartitionView,
    PointerType,
    ScalarType,
    SetValidShape,
    Subview,
    TileOperation,
    TileType,
    Type,
    ViewType,
)
from castsim.isa.pto.statement_forms import (
    DIRECTION,
    INDEX,
    LAYOUTS,
    OFFSET,
    Attribute,
    Attributes,
    FormWord,
    StatementForm,
    StatementReading,
    check_comparison,
    check_keys,
    enum_word,
    form_of,
    handlers_of,
    read_attributes,
    sorted_texts,
    types_by_pattern,
    variant_of,
)
from castsim.isa.pto.statement_reader import Handler, NamedOperation, PtoReader, Use
from castsim.isa.pto.types import format_type
from castsim.isa.pto.value_types import element_format, held_element, is_foreign_work, unpacked
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

# Checks of the front end beyond grammar: shapes, valid regions, views.
#
# Everything here follows from the text alone; what depends on a run's values, on a target or on addresses is checked
# by whoever has them. Source: docs/reference/pto.md sections 3.5 and 4.


def check_cast_shapes(src: TileType, dst: TileType, span: Span, *, physical: bool = True) -> None:
    """Reject a cast between tiles of different shape or valid region; a dynamic extent agrees with any.

    A column of 4-bit pairs counts as two. Without `physical`, shapes may differ as long as valid regions agree.

    Raises:
        TileError: they differ; the message names both shapes, or both valid regions.
    """
    packed = [name for name, tile in (("src", src), ("dst", dst)) if unpacked(tile) is not tile]
    counted = f" ({' and '.join(packed)} in values, two per element)" if packed else ""
    src, dst = unpacked(src), unpacked(dst)
    if physical and (src.rows, src.cols) != (dst.rows, dst.cols):
        raise TileError(
            f"tcvt needs src and dst of the same shape: src has {src.rows}x{src.cols}, dst has {dst.rows}x{dst.cols}"
            f"{counted}",
            span=span,
        )
    pairs = ((src.valid_rows, dst.valid_rows), (src.valid_cols, dst.valid_cols))
    if any(a is not None and b is not None and a != b for a, b in pairs):
        raise TileError(
            f"tcvt needs src and dst with the same valid region: src has {_region(src)}, dst has {_region(dst)}"
            f"{counted}",
            span=span,
        )


def check_valid_operand(what: str, value: int | None, physical: int, span: Span) -> None:
    """Reject a known valid extent (`what` = rows or columns) that the tile lacks."""
    if value is not None and not 0 <= value <= physical:
        raise TileError(f"{value} valid {what} in a tile of {physical} {what}", span=span)


def check_view(kind: ViewType, shape: Sequence[int | None], span: Span) -> None:
    """Reject a view whose static extents differ from known shape operands."""
    for position, (extent, value) in enumerate(zip(kind.dims, shape, strict=True)):
        if value is not None and value < 0:
            raise TileError(f"extent {position} of the view is {value}", span=span)
        if extent is not None and value is not None and extent != value:
            raise TileError(f"extent {position} of the view is {extent} in the type but {value} in shape", span=span)


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
    """Reject a declared layout that contradicts known extents and strides.

    `nd` has its unit stride innermost, `dn` one dimension further out; `nz` is not checked. Extents of 1 are
    ignored, because their stride is never used.
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
    """Reject a partition that exceeds its view, or whose type contradicts the sizes of its operands.

    `extents` are the known ones of the view, from its type or from its shape operands. A part with fewer dimensions
    than the view must have the same number of elements.
    """
    for position, (extent, offset, size) in enumerate(zip(extents, offsets, sizes, strict=True)):
        if (offset or 0) < 0 or (size or 0) < 0:
            raise TileError(f"dimension {position}: offset {offset}, size {size}; both must be 0 or more", span=span)
        if extent is not None and offset is not None and size is not None and offset + size > extent:
            raise TileError(
                f"dimension {position}: offset {offset} and size {size} exceed the view's extent of {extent}", span=span
            )
    if len(part.dims) > len(view.dims):
        raise TileError(f"the part has {len(part.dims)} dimensions, the view has {len(view.dims)}", span=span)
    if len(part.dims) == len(view.dims):
        for position, (extent, size) in enumerate(zip(part.dims, sizes, strict=True)):
            if extent is not None and size is not None and extent != size:
                raise TileError(f"dimension {position} is {extent} in the type but {size} in sizes", span=span)
        return
    count, wanted = element_count(part.dims), element_count(sizes)
    if count is not None and wanted is not None and count != wanted:
        raise TileError(f"the part has {count} elements in the type but {wanted} in sizes", span=span)


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

    The target decides how many bytes a row of 4-bit elements takes, so their sizes are not compared.
    """
    if source.location != result.location:
        raise TileError(f"{mnemonic} cannot change the location from {source.location} to {result.location}", span=span)
    if mnemonic == "bitcast":
        if replace(result, element=source.element) != source:
            raise TileError("bitcast can change only the element type", span=span)
        if element_format(result.element).bits > element_format(source.element).bits:
            raise TileError(f"bitcast cannot widen elements from {source.element} to {result.element}", span=span)
        return
    if (source.scatter_layout == "none_box") != (result.scatter_layout == "none_box"):
        raise TileError("treshape cannot mix boxed and unboxed tiles", span=span)
    before, after = (tile.rows * tile.cols * element_format(tile.element).bits for tile in (source, result))
    if before != after and min(element_format(source.element).bits, element_format(result.element).bits) >= 8:
        raise TileError(f"treshape cannot change the size from {before // 8} to {after // 8} bytes", span=span)


def element_count(dims: Sequence[int | None]) -> int | None:
    """Return the product of the extents, None if one is dynamic."""
    extents = [extent for extent in dims if extent is not None]
    return prod(extents) if len(extents) == len(dims) else None


def _region(tile: TileType) -> str:
    return "x".join("?" if extent is None else str(extent) for extent in (tile.valid_rows, tile.valid_cols))


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


@dataclass(slots=True)
class OperandList:
    """The content of the parentheses of `ins` or `outs`: uses, their types, and the types' tokens."""

    uses: tuple[Use, ...]
    types: tuple[Type, ...]
    type_indices: tuple[int, ...]

    def typed(self, number: int) -> tuple[Use, Type, int]:
        """One of the uses with its type and the type's token."""
        return self.uses[number], self.types[number], self.type_indices[number]

    @property
    def names(self) -> tuple[str, ...]:
        """The value names."""
        return tuple(use[0] for use in self.uses)


def tile_type(reader: PtoReader, owner: str) -> tuple[TileType, int]:
    """Consume a type that must be a tile's; return it and its index."""
    index = reader.position
    kind = reader.type()
    if not isinstance(kind, TileType):
        raise reader.error(f"{owner} takes tiles, not {reader.texts[index]}", index, ("!pto.tile_buf<...>",))
    return kind, index


def read_operands(reader: PtoReader, attributes: Attributes | None = None) -> OperandList:
    """Read `(values [dict] : types)`; a dictionary is accepted only if the caller stores it.

    Raises:
        ReadError: values and types differ in number, or a type differs from the definition's.
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
        raise reader.error(f"{len(uses)} operands, but {len(types)} types", types[-1][1])
    if texts[reader.position] != ")":
        reader.unexpected("',' or ')'", (")",))
    reader.position += 1
    for use, (kind, index) in zip(uses, types, strict=True):
        reader.check_use(use, kind, index)
    kinds, indices = zip(*types, strict=True)
    return OperandList(tuple(uses), kinds, indices)


def read_tile_operation(reader: PtoReader, statement: NamedOperation) -> Operation:
    """Read `pto.NAME [ins(...)] outs(...) [dict]`, for any NAME."""
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
    operation = VECTOR_OPERATIONS.get(mnemonic)
    if operation is not None and operation.name != statement.operation:
        raise reader.error(f"unknown operation '{statement.name}'", statement.index, (f"pto.{operation.name}",))
    if operation is None and statement.operation == "tscatter" and "maskPattern" in attributes:
        enum_word(reader, attributes["maskPattern"], "mask_pattern", PATTERNS)
        mnemonic = statement.operation
    elif operation is None and "maskPattern" in attributes:
        index = attributes["maskPattern"].key_index
        raise reader.error(f"{statement.name} has no attribute 'maskPattern'", index, ("pto.tgather",))
    if operation is not None and not is_foreign_work(mnemonic, (*inputs.types, *outputs.types)):
        _check_operands(reader, statement, operation, inputs, outputs)
        _check_attributes(reader, statement, operation, inputs, outputs, attributes)
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
        and inputs.types[1:] == (INDEX, INDEX)
        and len(outputs.types) == 1
        and isinstance(outputs.types[0], TileType)
    ):
        raise reader.error(f"{statement.name} does not take these operands", statement.index, (form,))
    source, result = inputs.types[0], outputs.types[0]
    if not result.foreign and source.element != result.element:
        raise reader.error(
            f"{statement.name} cannot change the element type: %{inputs.names[0]} holds {source.element}, "
            f"%{outputs.names[0]} {result.element}",
            outputs.type_indices[0],
        )


def _check_operands(
    reader: PtoReader, statement: NamedOperation, operation: VectorOperation, inputs: OperandList, outputs: OperandList
) -> None:
    """Reject operands of a number or kind that the operation is not written with."""
    typed = zip((*inputs.types, *outputs.types), (*inputs.type_indices, *outputs.type_indices), strict=True)
    for kind, index in typed:
        if not isinstance(kind, TileType | ScalarType):
            raise reader.error(f"{statement.name} takes only tiles and scalars", index, operation.spellings)
    count = len(outputs.types) - (operation.tmp_behind and len(outputs.types) == operation.destinations + 1)
    if count != operation.destinations or not all(isinstance(kind, TileType) for kind in outputs.types):
        words = {
            1: ("one tile", "outs(%tile : T)"),
            2: ("two tiles", "outs(%tile, %other : T, T)"),
            4: ("four tiles", "outs(%codes, %exponents, %maxima, %scaling : T, T, T, T)"),
        }[operation.destinations]
        if operation.kind is Kind.BLOCK_QUANTISE and len(outputs.types) == 5:
            raise reader.error(
                f"{statement.name}: the fifth tile, exponents in boxes (exp_zz), works only in the CPU simulator",
                outputs.type_indices[-1],
                ("pto.tmov ins(%exponents, %tmp : T, T) outs(%zz : T), slayout=row_major, behind it",),
            )
        raise reader.error(f"{statement.name} writes {words[0]}", outputs.type_indices[-1], words[1:])
    if operation.kind is Kind.RAMP and any(isinstance(kind, TileType) and kind.cols == 1 for kind in outputs.types):
        raise reader.error(f"{statement.name} must not write more than one column", outputs.type_indices[0])
    if form_of(operation, inputs.types) is None:
        index = inputs.type_indices[0] if inputs.type_indices else statement.index
        raise reader.error(f"{statement.name} does not take these operands", index, operation.spellings)
    for kind, index in zip(inputs.types, inputs.type_indices, strict=True):
        if isinstance(kind, ScalarType) and kind.name in ("index", "i1"):
            raise reader.error(f"{statement.name} takes a scalar of the tile's element type, not {kind.name}", index)


def _check_attributes(
    reader: PtoReader,
    statement: NamedOperation,
    operation: VectorOperation,
    inputs: OperandList,
    outputs: OperandList,
    attributes: Attributes,
) -> None:
    """Reject an attribute of another operation and values that it cannot have; warn of unknown names."""
    for key, attribute in attributes.items():
        if key == {Kind.PATTERN_GATHER: DIRECTION, Kind.COMPARE_GATHER: OFFSET}.get(operation.kind):
            continue
        if operation.kind is Kind.BLOCK_QUANTISE and key in _BLOCK_ATTRIBUTES:
            continue
        if key not in (*_KNOWN_ATTRIBUTES, operation.attribute):
            message = f"{statement.name} has no attribute '{key}', which is ignored"
            reader.warn(WarningKind.ATTRIBUTE, message, reader.span(attribute.key_index))
        elif key != operation.attribute:
            raise reader.error(f"{statement.name} has no attribute '{key}'", attribute.key_index)
    given = None if operation.attribute is None else attributes.get(operation.attribute)
    if operation.kind is Kind.COMPARE_GATHER:
        check_comparison(reader, attributes)
    elif operation.attribute in _ENUMERATED and given is not None:
        enum_word(reader, given, *_ENUMERATED[operation.attribute])
    if operation.attribute == "quant_type":
        _check_quantisation(reader, statement, inputs, outputs, attributes)
    if operation.attribute in _TRUTHS and given is not None and given.text not in _BOOLEANS:
        raise reader.error(
            f"{operation.attribute} must be true or false, not '{given.text}'", given.value_index, _BOOLEANS
        )
    if operation.attribute == "isBinary" and given is None and len(inputs.types) > 1:
        legal = ("ins(%tile : T)", "ins(%tile, %tmp {isBinary = true} : T, T)")
        raise reader.error(f"{statement.name} takes isBinary and tmp only together", statement.index, legal)


def _check_quantisation(
    reader: PtoReader, statement: NamedOperation, inputs: OperandList, outputs: OperandList, attributes: Attributes
) -> None:
    """Reject a quantisation of an unknown kind, and an offset that its kind forbids or requires."""
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
    """Reject a block quantisation of an unknown kind, rule or axis, and codes that its kind does not have."""
    kind = enum_word(reader, given, "quant_type", BLOCK_QUANTISATIONS)
    for key, name, legal in (
        ("quantScaleAlg", "quant_scale_alg", SCALE_ALGORITHMS),
        ("grpAxis", "mx_group_axis", GROUP_AXES),
    ):
        if key in attributes:
            enum_word(reader, attributes[key], name, legal)
    interleave, store_mode = attributes.get("interleave"), attributes.get(_STORE_MODE)
    if interleave is not None and interleave.text not in _BOOLEANS:
        raise reader.error(f"interleave is '{interleave.text}', not true or false", interleave.value_index, _BOOLEANS)
    if store_mode is not None:
        raise reader.error("storeMode needs a fifth tile, which the A5 does not write", store_mode.key_index)
    codes = outputs.types[0]
    narrow = isinstance(codes, TileType) and held_element(codes.element) == "e2m1"
    if narrow != (kind == BLOCK_QUANTISATIONS[1]):
        wanted = ("!pto.f4E2M1x2",) if kind == BLOCK_QUANTISATIONS[1] else ("i8", "ui8")
        raise reader.error(f"{kind} must be written to tiles of {' or '.join(wanted)}", outputs.type_indices[0], wanted)


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
        raise reader.error(f"the result of {statement.name} must have static valid extents", result_index)
    mnemonic = statement.operation
    check_alias(mnemonic, source_type, result_type, statement.span)
    result = statement.define_one(reader, result_type)
    return TileOperation(
        mnemonic, (source[0],), (source_type,), (result,), (result_type,), sorted_texts(attributes), span=statement.span
    )


_PLACES = (("addr", "address", ScalarType("i64")), ("valid_row", "valid_row", INDEX), ("valid_col", "valid_col", INDEX))
"""The options of an allocation: the word in the text, the field of the node, the type."""


def _read_placement(reading: StatementReading, _: str) -> None:
    """Read `[addr = %a] [valid_row = %r] [valid_col = %c]`; `uses` receives the given ones."""
    reader = reading.reader
    for key, field, kind in _PLACES:
        if reader.take(key):
            reader.expect("=")
            use = reader.operand()
            reader.check_use(use, kind)
            reading.uses[field], reading.values[field] = (use,), use[0]
    if not reader.at(":") and not reader.at("{"):
        keys = [key for key, field, _ in _PLACES if field not in reading.uses]
        near = closest(reader.texts[reader.position], (*keys, ":"), everything_up_to=4)
        reader.unexpected("addr, valid_row, valid_col (in this order) or ':'", near)


def _placement_text(node: AllocTile | AllocTiles, _: str) -> str:
    given = ((key, getattr(node, field)) for key, field, _ in _PLACES)
    return " ".join(f"{key} = %{value}" for key, value in given if value is not None)


def _alloc(reading: StatementReading) -> None:
    """Reject valid extents that are given both or neither way, and those that the tile does not have."""
    reader, kind, index = reading.reader, reading.values["type"], reading.tokens["type"]
    for key, field, extent in (("valid_row", "v_row", kind.valid_rows), ("valid_col", "v_col", kind.valid_cols)):
        if extent is None and key not in reading.uses:
            raise reader.error(f"{key} operand is required because result type {field} is ?", index, (f"{key} = %x",))
        if extent is not None and key in reading.uses:
            message = f"{key} operand is not allowed because result type {field} is {extent}"
            raise reader.error(message, reading.uses[key][0][1])
    _check_valid_uses(reading, kind, "valid_row", "valid_col")


def _alloc_several(reading: StatementReading) -> None:
    """Reject valid extents that are given both or neither way."""
    tile = reading.values["type"].tile
    for key, extent in (("valid_row", tile.valid_rows), ("valid_col", tile.valid_cols)):
        if (extent is None) != (key in reading.uses):
            needed = "needs" if extent is None else "takes no"
            raise reading.reader.error(f"{reading.statement.name} of this type {needed} {key}", reading.tokens["type"])


def _check_valid_uses(reading: StatementReading, kind: TileType, *fields: str) -> None:
    for what, field, physical in zip(("rows", "columns"), fields, (kind.rows, kind.cols), strict=True):
        for use in reading.uses.get(field, ()):
            check_valid_operand(what, use[2].constant, physical, reading.reader.span(use[1]))


def _set_valid_shape(reading: StatementReading) -> None:
    for field in ("rows", "cols"):
        reading.check_uses(field, INDEX)
    _check_valid_uses(reading, reading.values["type"], "rows", "cols")


def _check_rank(reading: StatementReading, field: str, what: str, rank: int, index: int) -> None:
    if len(reading.uses[field]) != rank:
        raise reading.reader.error(f"{len(reading.uses[field])} {what} for a view of {rank} dimensions", index)


def _read_layout(reading: StatementReading, _: str) -> str | None:
    attributes = read_attributes(reading.reader)
    check_keys(reading.reader, attributes, ("layout",), reading.statement.name)
    given = attributes.get("layout")
    return None if given is None else enum_word(reading.reader, given, "layout", LAYOUTS)


def _layout_text(node: MakeView, _: str) -> str:
    return f"{{layout = #pto.layout<{node.layout}>}}" if node.layout else ""


def _make_view(reading: StatementReading) -> None:
    """Reject a view that its pointer, its extents or its strides contradict."""
    reader, kind, index = reading.reader, reading.values["type"], reading.tokens["type"]
    ((pointer, token, defined),) = reading.uses["pointer"]
    base = defined.type
    if not isinstance(base, PointerType):
        raise reader.error(f"%{pointer} is not a pointer", token, ("!pto.ptr<...>",))
    if base.element != kind.element:
        raise reader.error(f"the view has {kind.element} elements, its pointer {base.element}", index)
    _check_rank(reading, "shape", "shape operands", len(kind.dims), index)
    _check_rank(reading, "strides", "stride operands", len(kind.dims), index)
    reading.extents, steps, span = reading.constants("shape"), reading.constants("strides"), reading.statement.span
    check_view(kind, reading.extents, span)
    check_layout(reading.values["layout"], reading.extents, steps, span)
    check_packing(kind.element, steps, (), span)


def _read_part_type(reading: StatementReading, field: str) -> PartitionType:
    """Read `-> T`; newer front ends infer the type: extents that are constants, `?` for others."""
    reader = reading.reader
    reading.tokens[field] = reader.position
    if not reader.take("->"):
        return PartitionType(reading.constants("sizes"), reading.values["source_type"].element)
    index = reading.tokens[field] = reader.position
    kind = reader.type()
    if not isinstance(kind, PartitionType):
        legal = ("!pto.partition_tensor_view<...>",)
        raise reader.error(f"expected a partition type, found {reader.texts[index]}", index, legal)
    return kind


def result_type_text(node: PartitionView | Subview, _: str) -> str:
    """Return the text of an optional type."""
    return f"-> {format_type(node.type)}"


def _partition(reading: StatementReading) -> None:
    """Reject a part that its view does not have."""
    reader, source, kind = reading.reader, reading.values["source_type"], reading.values["type"]
    reading.check_uses("view", source, reading.tokens["source_type"])
    if source.element != kind.element:
        message = f"the part has {kind.element} elements, its view {source.element}"
        raise reader.error(message, reading.tokens["type"])
    view = reading.uses["view"][0]
    for field in ("offsets", "sizes"):
        _check_rank(reading, field, field, len(source.dims), view[1])
    starts, span = reading.constants("offsets"), reading.statement.span
    check_partition(source, _extents(view, source), starts, reading.constants("sizes"), kind, span)
    check_packing(kind.element, (), starts, span)


def _extents(view: Use, kind: ViewType) -> tuple[int | None, ...]:
    """Return the extents of a view as far as its type or its shape operands state them."""
    noted = view[2].extents
    if noted is None:
        return kind.dims
    return tuple(value if extent is None else extent for extent, value in zip(kind.dims, noted, strict=True))


_PLACEMENT = {"placement": FormWord(_read_placement, _placement_text)}
FORMS = (
    StatementForm(
        "%result = pto.alloc_tile {:placement} {:no_keys} : $type:tile", AllocTile, (), _alloc, words=_PLACEMENT
    ),
    StatementForm(
        "%result = pto.alloc_multi_tile {:placement} {:no_keys} : $type:tiles", AllocTiles, (), _alloc_several,
        words=_PLACEMENT,
    ),
    StatementForm(
        "%result = pto.make_tensor_view %pointer, shape = [%shape*:index]{:comma} strides = [%strides*:index] "
        "{layout:layout} : $type:view",
        MakeView, (), _make_view, words={"layout": FormWord(_read_layout, _layout_text)},
    ),
    StatementForm(
        "%result = pto.partition_view %view, offsets = [%offsets*:index], sizes = [%sizes*:index] {:no_keys} "
        ": $source_type:view {type:part}",
        PartitionView, (), _partition, words={"part": FormWord(_read_part_type, result_type_text)},
    ),
    StatementForm(
        "pto.set_validshape %tile, %rows, %cols : $type:tile=tile", SetValidShape, (), _set_valid_shape
    ),
)  # fmt: skip
"""Spellings of allocations and views."""

HANDLERS: dict[str, Handler] = {**handlers_of(FORMS), **{f"pto.{mnemonic}": _read_alias for mnemonic in ALIASES}}
"""The readers of tile and view operations with a special form."""
