"""Types of `.pto` text: the words for elements, scalars and layouts, reading a type, writing it canonically.

Source: docs/reference/pto.md section 2; the element spellings beyond the vendor's front end are castsim's (2.1.1).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import ReadError, Span, TileError, WarningKind, closest
from castsim.isa.formats import format_named
from castsim.isa.pto.lexer import PtoSource
from castsim.isa.pto.value_types import (
    REGISTER_BITS,
    AlignType,
    DialectType,
    MaskType,
    MultiTileType,
    PartitionType,
    PointerType,
    ScalarType,
    TileType,
    Type,
    VectorType,
    ViewType,
    dialect_module,
    dialect_of,
    dialect_types,
    element_format,
    held_element,
)

# The types of tiles, in all their spellings, and of registers.
#
# Source: docs/reference/pto.md section 2.3. Of a tile's spellings (key-value, compact, and two of the documentation)
# the front end reads the first two; the others occur in instruction pages only.

LOCATIONS = ("vec", "mat", "left", "right", "acc", "bias", "scaling")
BLOCK_LAYOUTS = ("row_major", "col_major")
SCATTER_LAYOUTS = ("none_box", "row_major", "col_major")
PADS = ("null", "zero", "max", "min")
COMPACTS = ("null", "normal", "row_plus_one")

_REQUIRED = ("loc", "dtype", "rows", "cols", "v_row", "v_col", "blayout", "slayout", "fractal", "pad")
_CAMEL_BLOCK = {"RowMajor": "row_major", "ColMajor": "col_major"}
_CAMEL_SCATTER = {"NoneBox": "none_box", **_CAMEL_BLOCK}
_CAMEL_PAD = {"Null": 0, "Zero": 1, "Max": 2, "Min": 3}
_DEFAULT_FRACTAL = 512
FRACTALS = (32, 512, 1024)
"""Permitted numbers of bytes of a box of a boxed tile."""

_SHAPE = re.compile(r"(\d{1,18})x(\d{1,18})x(\S*)")
_STARTS_SHAPE = re.compile(r"[\d?]")
_VALID = re.compile(r"(\d{1,18}|\?)x(\d{1,18}|\?)")
_NATURAL = re.compile(r"\d{1,18}")


@dataclass(frozen=True, slots=True)
class FieldText:
    """A piece of a type's text and its offset in the source."""

    source: PtoSource
    start: int
    text: str

    def span(self) -> Span:
        """Return the position of the whole piece."""
        return self.source.span(self.start, len(self.text))

    def error(self, message: str, legal: Iterable[str] = ()) -> ReadError:
        """Return (do not raise) an error about this piece."""
        return ReadError(message, span=self.span(), legal=legal)

    def part(self, offset: int, text: str) -> FieldText:
        """Return the piece `text` that begins `offset` characters into this one."""
        return replace(self, start=self.start + offset, text=text)

    def key_and_value(self) -> tuple[FieldText, FieldText]:
        """Split `key=value`; blanks around the sign are allowed."""
        key, equals, value = self.text.partition("=")
        if not equals:
            raise self.error(f"expected 'key=value', found '{self.text}'")
        blanks = len(value) - len(value.lstrip())
        return self.part(0, key.strip()), self.part(len(key) + 1 + blanks, value.strip())


ReadElement = Callable[[FieldText], str]
_T = TypeVar("_T")


def read_tile(fields: list[FieldText], read_element: ReadElement) -> TileType:
    """Read the parameters of a tile type, in either spelling.

    Raises:
        ReadError: a parameter is unknown, missing, repeated or misplaced.
        TileError: a box size is not permitted, or a valid extent exceeds the physical one.
    """
    first = fields[0]
    if "=" in first.text:
        positional = first.text.partition("=")[0].strip() == "loc" and len(fields) > 1 and "=" not in fields[1].text
        tile = _read_documented(fields, read_element) if positional else _read_key_value(fields, read_element)
    elif len(fields) == 1 and _STARTS_SHAPE.match(first.text):
        rows, cols, element = _shape(first, read_element)
        tile = TileType("vec", element, rows, cols, rows, cols)
    elif len(fields) >= 2 and _NATURAL.fullmatch(fields[1].text):
        tile = _read_documented(fields, read_element)
    else:
        tile = _read_compact(fields, read_element)
    _check_valid(tile, first)
    return tile


def format_tile(tile: TileType, element: str) -> str:
    """Return the compact spelling, without fields at their default."""
    parts = [tile.location, f"{tile.rows}x{tile.cols}x{element}"]
    if (tile.valid_rows, tile.valid_cols) != (tile.rows, tile.cols):
        extents = ("?" if extent is None else str(extent) for extent in (tile.valid_rows, tile.valid_cols))
        parts.append(f"valid={'x'.join(extents)}")
    for key, value, default in (
        ("blayout", tile.block_layout, "row_major"),
        ("slayout", tile.scatter_layout, "none_box"),
        ("fractal", tile.fractal, _DEFAULT_FRACTAL),
        ("pad", tile.pad, 0),
        ("compact", tile.compact, 0),
    ):
        if value != default:
            parts.append(f"{key}={value}")
    return f"!pto.tile_buf<{', '.join(parts)}>"


def _read_key_value(fields: list[FieldText], read_element: ReadElement) -> TileType:
    """Read `loc=vec, dtype=f32, rows=16, ...`: every key, in the fixed order, `compact` optional at the end."""
    values: dict[str, FieldText] = {}
    for position, field in enumerate(fields):
        key, value = field.key_and_value()
        expected = (*_REQUIRED, "compact")[position] if position <= len(_REQUIRED) else None
        if expected is None:
            raise key.error(f"unexpected '{key.text}' after the last key of a tile type")
        if key.text != expected:
            raise key.error(f"expected key '{expected}', found '{key.text}'; the order of keys is fixed", (expected,))
        values[key.text] = value
    if len(values) < len(_REQUIRED):
        missing = _REQUIRED[len(values)]
        raise fields[-1].error(f"the tile type lacks '{missing}'", (missing,))
    return TileType(
        location=_location(values["loc"]),
        element=read_element(values["dtype"]),
        rows=_natural(values["rows"], "rows"),
        cols=_natural(values["cols"], "cols"),
        valid_rows=_valid_extent(values["v_row"], "v_row"),
        valid_cols=_valid_extent(values["v_col"], "v_col"),
        **_keyed(values),
    )


def _read_compact(fields: list[FieldText], read_element: ReadElement) -> TileType:
    """Read `vec, 4x256xf32, valid=4x200, ...`: location and shape, then optional keys in any order."""
    location = _location(fields[0])
    if len(fields) < 2:
        raise fields[0].error("the shape of the tile type is missing; write it as 16x64xf32")
    rows, cols, element = _shape(fields[1], read_element)
    values: dict[str, FieldText] = {}
    for field in fields[2:]:
        key, value = field.key_and_value()
        if key.text not in _OPTIONAL:
            raise key.error(f"unknown key '{key.text}' in a tile type", closest(key.text, _OPTIONAL))
        if key.text in values:
            raise key.error(f"key '{key.text}' is given twice")
        values[key.text] = value
    valid_rows, valid_cols = _valid_pair(values["valid"]) if "valid" in values else (rows, cols)
    return TileType(location, element, rows, cols, valid_rows, valid_cols, **_keyed(values))


def _keyed(values: Mapping[str, FieldText]) -> dict[str, Any]:
    """Return the fields of a tile type that have keys in both spellings, as far as they are given."""
    return {name: read(values[key]) for key, (name, read) in _KEYED.items() if key in values}


def _read_documented(fields: list[FieldText], read_element: ReadElement) -> TileType:
    """Read `[loc=vec,] f32, 16, 16[, RowMajor, NoneBox, None, Zero]` of the instruction pages."""
    location = "vec"
    if "=" in fields[0].text:
        location = _location(fields[0].key_and_value()[1])
        fields = fields[1:]
    if len(fields) not in (3, 7):
        raise fields[-1].error(
            f"expected element type, rows, cols and then all or none of block layout, scatter layout, fractal, pad; "
            f"found {len(fields)} parameters",
            ("f32, 16, 16", "f32, 16, 16, RowMajor, NoneBox, None, Zero"),
        )
    element = read_element(fields[0])
    rows, cols = _natural(fields[1], "rows"), _natural(fields[2], "cols")
    tile = TileType(location, element, rows, cols, rows, cols)
    if len(fields) == 3:
        return tile
    return replace(
        tile,
        block_layout=_lookup(fields[3], "block layout", _CAMEL_BLOCK),
        scatter_layout=_lookup(fields[4], "scatter layout", _CAMEL_SCATTER),
        fractal=_DEFAULT_FRACTAL if fields[5].text == "None" else _natural(fields[5], "fractal"),
        pad=_lookup(fields[6], "pad", _CAMEL_PAD),
    )


def _location(field: FieldText) -> str:
    if field.text == "ub":
        raise field.error("unknown loc: ub; write vec for the unified buffer", ("vec",))
    return _choice(field, "loc", LOCATIONS)


def _choice(field: FieldText, what: str, legal: tuple[str, ...]) -> str:
    if field.text not in legal:
        raise field.error(f"unknown {what}: {field.text}", legal)
    return field.text


def _lookup(field: FieldText, what: str, legal: Mapping[str, _T]) -> _T:
    if field.text not in legal:
        raise field.error(f"unknown {what}: {field.text}", legal)
    return legal[field.text]


def _number_of(field: FieldText, what: str, names: tuple[str, ...]) -> int:
    if field.text not in map(str, range(len(names))):
        legal = (f"{number} ({name})" for number, name in enumerate(names))
        raise field.error(f"unknown {what}: {field.text}", legal)
    return int(field.text)


def _natural(field: FieldText, what: str) -> int:
    if not _NATURAL.fullmatch(field.text):
        raise field.error(f"{what} must be 0 or a positive integer, found '{field.text[:40]}'")
    return int(field.text)


def _valid_extent(field: FieldText, what: str) -> int | None:
    return None if field.text in ("?", "-1") else _natural(field, what)


def _valid_pair(field: FieldText) -> tuple[int | None, int | None]:
    match = _VALID.fullmatch(field.text)
    if match is None:
        raise field.error(f"write valid as ROWSxCOLS, each an integer or ?, not '{field.text[:40]}'")
    rows, cols = (None if extent == "?" else int(extent) for extent in match.groups())
    return rows, cols


def _shape(field: FieldText, read_element: ReadElement) -> tuple[int, int, str]:
    match = _SHAPE.fullmatch(field.text)
    if match is None:
        raise field.error(f"expected a shape such as 16x64xf32, found '{field.text[:40]}'")
    element = read_element(field.part(match.start(3), match.group(3)))
    return int(match.group(1)), int(match.group(2)), element


_KEYED: Mapping[str, tuple[str, Callable[[FieldText], object]]] = {
    "blayout": ("block_layout", lambda field: _choice(field, "blayout", BLOCK_LAYOUTS)),
    "slayout": ("scatter_layout", lambda field: _choice(field, "slayout", SCATTER_LAYOUTS)),
    "fractal": ("fractal", lambda field: _natural(field, "fractal")),
    "pad": ("pad", lambda field: _number_of(field, "pad", PADS)),
    "compact": ("compact", lambda field: _number_of(field, "compact", COMPACTS)),
}
"""The keys of a tile type in reading order, each with its field and reader."""
_OPTIONAL = ("valid", *_KEYED)


def _check_valid(tile: TileType, first: FieldText) -> None:
    if tile.fractal not in FRACTALS:
        sizes = [f"fractal={size}" for size in FRACTALS]
        raise TileError(f"a tile cannot have boxes of {tile.fractal} bytes", span=first.span(), legal=sizes)
    for what, valid, physical in (("rows", tile.valid_rows, tile.rows), ("columns", tile.valid_cols, tile.cols)):
        if valid is not None and valid > physical:
            raise TileError(f"{valid} valid {what} in a tile of {physical} {what}", span=first.span())


# The types of vector registers, masks and alignment states: reading and writing.
#
# Source: docs/reference/micro.md section 1.2.

_VECTOR = re.compile(r"(\d{1,9})x(\S+)")
_MASKS = {f"b{bits}": bits for bits in (8, 16, 32)}


def lane_bits(element: str) -> int:
    """Return the bit width of an element in a register and in memory: two 4-bit elements form one of 8 bits."""
    return max(8, element_format(element).bits)


def read_vector(
    fields: list[FieldText], read_element: Callable[[FieldText], str], spelling: Callable[[FieldText, str], str]
) -> VectorType:
    """Read the parameters of `!pto.vreg<64xf32>`.

    Raises:
        ReadError: the type is malformed, has an unknown element, or does not have 2048 bits.
    """
    examples = ("64xf32", "128xf16", "256xi8")
    lanes, field, element = read_lanes(fields, read_element, "a vector register", examples, ("i4", "f64"))
    wanted = REGISTER_BITS // lane_bits(element)
    if lanes != wanted:
        given = f"{lanes} lanes of {field.text} have {lanes * lane_bits(element)}"
        legal = (f"!pto.vreg<{wanted}x{field.text}>",)
        raise fields[0].error(f"a vector register has {REGISTER_BITS} bits, {given}", legal)
    return VectorType(lanes, element, spelling(field, element))


def read_lanes(
    fields: list[FieldText], read_element: ReadElement, what: str, examples: tuple[str, ...], refused: tuple[str, ...]
) -> tuple[int, FieldText, str]:
    """Read `64xf32` of a kind of register: its lanes, and the element, which must not be one of `refused`."""
    if len(fields) > 1:
        raise fields[1].error(f"{what} takes only a number of lanes and an element type")
    match = _VECTOR.fullmatch(fields[0].text)
    if match is None:
        raise fields[0].error(f"'{fields[0].text[:40]}' is not LANESxTYPE", examples)
    field = fields[0].part(match.start(2), match.group(2))
    element = read_element(field)
    if element in refused:
        raise field.error(f"{field.text} is not an element of {what}", ("f32", "f16", "i8"))
    return int(match.group(1)), field, element


UNSIZED_MASK = MaskType(0)
"""`!pto.mask`, whose width comes from the definition of the value."""


def read_mask(fields: list[FieldText]) -> MaskType:
    """Read the parameter of `!pto.mask<b32>`.

    Raises:
        ReadError: the mask does not exist.
    """
    text = fields[0].text
    if len(fields) > 1 or text not in _MASKS:
        raise fields[-1].error(f"a mask must be b8, b16 or b32, not '{text[:40]}'", _MASKS)
    return MaskType(_MASKS[text])


def read_align(source: PtoSource, start: int, text: str) -> AlignType:
    """Read `!pto.align`.

    Raises:
        ReadError: it has parameters, although it takes none.
    """
    if text != "!pto.align":
        raise source.error("type '!pto.align' has no parameters", start, len(text), ("!pto.align",))
    return AlignType()


def of_dialect(spelling: str) -> str:
    """Return the spelling of an element with its prefix as a type of the dialect."""
    return f"!pto.{spelling}" if spelling in ("hif8", "f4E2M1x2", "f4E1M2x2") else spelling


Warn = Callable[[WarningKind, str, Span], None]
ReadType = Callable[[list[FieldText], Callable[[FieldText], str], Callable[[FieldText, str], str]], Type]
"""Reader of a type's parameters, given those of an element and of its spelling."""

_INTEGERS = {
    spelling: name
    for bits in (8, 16, 32, 64)
    for spelling, name in ((f"i{bits}", f"i{bits}"), (f"si{bits}", f"i{bits}"), (f"ui{bits}", f"u{bits}"))
}
ELEMENTS: dict[str, str] = {
    **{name: name for name in ("f32", "f16", "bf16", "f64")},
    "f8E4M3FN": "e4m3fn",
    "f8E5M2": "e5m2",
    **_INTEGERS,
}
"""Format name of each element spelling of the vendor's front end."""

LOWERED: dict[str, str] = {
    "f8E4M3": "e4m3fn",
    "f8E4M3FNUZ": "e4m3fn",
    "f8E4M3B11FNUZ": "e4m3fn",
    "f8E5M2FNUZ": "e5m2",
}
"""Element spellings that the front end accepts but lowers to another format."""

EXTENSIONS: dict[str, str] = {"hif8": "hif8", "f4E2M1x2": "e2m1", "f4E1M2x2": "e1m2", "s4": "i4"}
"""Element spellings of castsim alone."""

PREFIXED: dict[str, str] = {
    "!pto.hif8": "hif8",
    "!pto.f8E8M0": "e8m0",
    "!pto.f4E2M1x2": "e2m1_pair",
    "!pto.f4E1M2x2": "e1m2_pair",
    "!pto.hif8x2": "hif8_pair",
    "!pto.bf16x2": "bf16_pair",
}
"""Element spellings of the vendor's newer front ends (docs/reference/pto.md section 2.4)."""

_ELEMENT_SPELLING: dict[str, str] = {}
for _spelling, _name in (*ELEMENTS.items(), *EXTENSIONS.items(), *PREFIXED.items()):
    _ELEMENT_SPELLING.setdefault(_name, _spelling)  # the first is the canonical one: i16 before si16

SCALARS: dict[str, str] = {
    "index": "index",
    "i1": "i1",
    **{name: name for name in ("f16", "bf16", "f32", "f64")},
    **_INTEGERS,
}
"""`ScalarType` name of each spelling of a builtin scalar."""
_SCALAR_SPELLING = {f"u{bits}": f"ui{bits}" for bits in (8, 16, 32, 64)}

_REFUSED: dict[str, tuple[str, tuple[str, ...]]] = {
    "i4": ("the front end lowers it to 32 bits; a signed 4-bit tile is spelled s4", ("s4",)),
    "si4": ("the front end lowers it to 32 bits; a signed 4-bit tile is spelled s4", ("s4",)),
    "ui4": ("the front end lowers it to 32 bits, and no target has unsigned 4-bit tiles", ("ui8",)),
    "i2": ("the front end lowers it to 32 bits, and no target has 2-bit tiles", ("i8",)),
    "i128": ("the front end lowers it to 32 bits", ("i64",)),
    "index": ("it is a scalar type", ("i32", "i64")),
    "i1": ("it is a scalar type; packed bits are stored as i8", ("i8",)),
    "tf32": ("no target stores it", ("f32",)),
}

_UNSPELT = "the text form cannot express this format"

_SPACES = ("gm", "ub")
_VIEW_RANK = 5  # every view is brought to five dimensions (docs/reference/pto.md section 3.5)
_TYPE = re.compile(r"!([A-Za-z_][\w.$]*)(?:\s*<(.*)>)?", re.DOTALL)
_SHAPED = re.compile(r"((?:(?:\d+|\?)x)*)(.*)", re.DOTALL)
_DIMENSION = re.compile(r"\d{1,18}|\?")
_KNOWN = (
    "!pto.tile_buf",
    "!pto.multi_tile_buf",
    "!pto.ptr",
    "!pto.tensor_view",
    "!pto.partition_tensor_view",
    "!pto.tile",
    "!pto.vreg",
    "!pto.mask",
    "!pto.align",
)
AFTER_LOWERING = "this text was already lowered; give the text before lowering"
"""Remark on types and operations that the assembler writes instead of those of its input."""
LOWERED_DIALECTS = ("memref", "emitc", "llvm")
_UNSUPPORTED = ("pto.eventid_array", "pto.pipe", "pto.async_session")


def read_element(field: FieldText, warn: Warn) -> str:
    """Return the format name of an element spelling.

    Warns if the front end lowers the spelling to another format, or only castsim has it.

    Raises:
        ReadError: it is not an element type of tiles, views and pointers.
    """
    text = field.text
    if text in ELEMENTS:
        return ELEMENTS[text]
    if text in LOWERED:
        lowered = f"element type {text} is read as {LOWERED[text]}, as in the vendor's front end"
        warn(WarningKind.ELEMENT_TYPE, lowered, field.span())
        return LOWERED[text]
    if text in EXTENSIONS:
        own = f"element type {text} is a castsim spelling; the vendor's front end cannot check this program"
        warn(WarningKind.ELEMENT_TYPE, own, field.span())
        return EXTENSIONS[text]
    if text in PREFIXED:
        return PREFIXED[text]
    if text in _REFUSED:
        reason, instead = _REFUSED[text]
        raise field.error(f"{text} is not an element type of a tile, view or pointer: {reason}", instead)
    name = _format_name(text)
    meant = _spelt(name, ELEMENTS, EXTENSIONS, PREFIXED)
    if name is not None and not meant:
        reason, instead = next(
            (why for spelling, why in _REFUSED.items() if _format_name(spelling) == name), (_UNSPELT, ())
        )
        raise field.error(f"{text} is not an element type of a tile, view or pointer: {reason}", instead or ELEMENTS)
    elements = (*ELEMENTS, *LOWERED, *EXTENSIONS, *PREFIXED)
    begun = tuple(element for element in elements if len(text) > 1 and element.lower().startswith(text.lower()))
    near = closest(text, elements, everything_up_to=0 if begun else 30)
    raise field.error(f"unknown element type '{text}'", meant or tuple(dict.fromkeys((*begun, *near))))


def _format_name(text: str) -> str | None:
    """Return the format that a word means everywhere else in castsim, None if it means none."""
    try:
        return format_named(text).name
    except ReadError:
        return None


def _spelt(name: str | None, *tables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the `.pto` spelling of a format; empty if it has none."""
    return tuple(spelling for table in tables for spelling, element in table.items() if element == name)


def read_type(source: PtoSource, start: int, text: str, warn: Warn) -> Type:
    """Read one type, given as a whole token that begins at offset `start` of the source.

    Raises:
        ReadError: the type is unknown or its parameters are malformed.
        TileError: a valid extent exceeds its physical one.
    """
    if not text.startswith("!"):
        return _read_scalar(source, start, text)
    match = _TYPE.fullmatch(text)
    name = match.group(1) if match else text[1:]
    if text in PREFIXED:
        raise source.error(f"{text} is an element type; a value cannot have it", start, len(text), _known_types())
    added = dialect_of(name)
    dialect = None if added is None else dialect_module(added, "operations", source.span(start, len(text)))
    if f"!{name}" not in (_KNOWN if dialect is None else dialect.TYPES):
        raise _unknown_type(source, start, text, name)
    if name == "pto.align" or text == "!pto.mask":
        return UNSIZED_MASK if name == "pto.mask" else read_align(source, start, text)
    if match is None or match.group(2) is None:
        raise source.error(f"type '!{name}' needs parameters in '<...>'", start, len(text))
    fields = _split(source, start + match.start(2), match.group(2))
    if name in ("pto.tile_buf", "pto.tile"):
        return read_tile(fields, lambda field: read_element(field, warn))
    if name == "pto.multi_tile_buf":
        return _read_several(fields, warn)
    if name == "pto.ptr":
        return _read_pointer(fields, warn)
    if name == "pto.mask":
        return read_mask(fields)
    if dialect is not None or name == "pto.vreg":
        read: ReadType = read_vector if dialect is None else dialect.READERS[name]
        return read(fields, lambda field: held_element(read_element(field, warn)), _own_spelling)
    dims, element = _read_shaped(fields, warn)
    return ViewType(dims, element) if name == "pto.tensor_view" else PartitionType(dims, element)


def _known_types() -> tuple[str, ...]:
    return *_KNOWN, *dialect_types()


def _unknown_type(source: PtoSource, start: int, text: str, name: str) -> ReadError:
    if name in _UNSUPPORTED:
        return source.error(f"type '!{name}' is not supported", start, len(text), _known_types())
    if name.partition(".")[0] in LOWERED_DIALECTS:
        return source.error(f"type '!{name}' is not supported: {AFTER_LOWERING}", start, len(text))
    return source.error(f"unknown type '!{name}'", start, len(name) + 1, closest(f"!{name}", _known_types()))


def parse_type(text: str) -> Type:
    """Parse a separate type, such as `!pto.tile_buf<vec, 4x256xf32>` or `index`.

    Raises:
        ReadError, TileError: see `read_type`.
    """
    return read_type(PtoSource("<type>", text), 0, text, lambda *_: None)


def element_spelling(element: str) -> str:
    """Return the spelling of an element format in registers and pointers; its own name if it has none."""
    return of_dialect(_ELEMENT_SPELLING.get(element, element))


def format_type(kind: Type) -> str:
    """Return the canonical spelling: tiles in the compact form without fields at their default.

    Raises:
        ReadError: `.pto` cannot spell the element format.
    """
    if isinstance(kind, ScalarType):
        return _SCALAR_SPELLING.get(kind.name, kind.name)
    if isinstance(kind, DialectType):
        return kind.text
    if isinstance(kind, AlignType):
        return "!pto.align"
    if isinstance(kind, MaskType):
        return f"!pto.mask<b{kind.bits}>" if kind.bits else "!pto.mask"
    if kind.element not in _ELEMENT_SPELLING:
        raise ReadError(f"format '{kind.element}' cannot be written in .pto", legal=_ELEMENT_SPELLING)
    element = _ELEMENT_SPELLING[kind.element]
    if isinstance(kind, VectorType):
        return f"!pto.vreg<{kind.lanes}x{of_dialect(kind.spelling or element)}>"
    if isinstance(kind, PointerType):
        element = kind.spelling or element
        return f"!pto.ptr<{element}>" if kind.space is None else f"!pto.ptr<{element}, {kind.space}>"
    if isinstance(kind, TileType):
        return format_tile(kind, element)
    if isinstance(kind, MultiTileType):
        return f"{format_tile(kind.tile, element).replace('tile_buf', 'multi_tile_buf', 1)[:-1]}, count={kind.count}>"
    name = "tensor_view" if isinstance(kind, ViewType) else "partition_tensor_view"
    shape = "".join(f"{'?' if extent is None else extent}x" for extent in kind.dims)
    return f"!pto.{name}<{shape}{element}>"


def _read_scalar(source: PtoSource, start: int, text: str) -> ScalarType:
    if text not in SCALARS:
        scalars = (*SCALARS, *_known_types())
        legal = _spelt(_format_name(text), SCALARS) or closest(text, scalars, everything_up_to=len(scalars))
        raise source.error(f"unknown type '{text}'", start, len(text), legal)
    return ScalarType(SCALARS[text])


def _split(source: PtoSource, start: int, body: str) -> list[FieldText]:
    """Split parameters at the commas, blanking comments, each with its offset in the source."""
    body = re.sub(r"//[^\n]*", lambda match: " " * len(match.group()), body)
    fields = []
    for piece in body.split(","):
        text = piece.strip()
        fields.append(FieldText(source, start + len(piece) - len(piece.lstrip()), text))
        start += len(piece) + 1
    return fields


def _read_several(fields: list[FieldText], warn: Warn) -> MultiTileType:
    """Read the parameters of a tile type and, last, `count=2`."""
    key, count = fields[-1].key_and_value() if "=" in fields[-1].text else (fields[-1], fields[-1])
    if key.text != "count" or len(fields) < 2 or not count.text.isdecimal() or not 1 <= int(count.text[:9]) <= 64:
        raise fields[-1].error("expected the number of tiles, 1 to 64", ("count=2",))
    return MultiTileType(read_tile(fields[:-1], lambda field: read_element(field, warn)), int(count.text))


def _read_pointer(fields: list[FieldText], warn: Warn) -> PointerType:
    if len(fields) > 2:
        raise fields[2].error("a pointer type takes an element type and optionally a memory space")
    element = read_element(fields[0], warn)
    spelling = _own_spelling(fields[0], element)
    if len(fields) == 1:
        return PointerType(element, spelling=spelling)
    if fields[1].text not in _SPACES:
        raise fields[1].error(f"unknown memory space '{fields[1].text}'", _SPACES)
    return PointerType(element, fields[1].text, spelling)


def _own_spelling(field: FieldText, element: str) -> str:
    """Return how a text spells an element if a program keeps that: signed integers, and types of the dialect."""
    return field.text if field.text in PREFIXED or field.text == f"s{element}" else ""


def _read_shaped(fields: list[FieldText], warn: Warn) -> tuple[tuple[int | None, ...], str]:
    """Read `16x?xf32`: extents, None where dynamic, and the element format."""
    field = fields[0]
    if len(fields) > 1:
        raise fields[1].error("a view type takes only a shape with an element type, such as 16x64xf32")
    match = _SHAPED.fullmatch(field.text)
    assert match is not None  # the pattern takes any text
    extents = match.group(1).split("x")[:-1]
    if not extents:
        raise field.error(f"'{field.text}' has no dimensions; write a view type such as 16x64xf32")
    if len(extents) > _VIEW_RANK:
        raise field.error(f"'{field.text}' has {len(extents)} dimensions; at most {_VIEW_RANK} are allowed")
    for extent in extents:
        if not _DIMENSION.fullmatch(extent):
            raise field.error(f"extent '{extent[:24]}...' is larger than any memory")
    dims = tuple(None if extent == "?" else int(extent) for extent in extents)
    return dims, read_element(field.part(match.start(2), match.group(2)), warn)
