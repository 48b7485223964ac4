"""Types of `.pto` text: the words for elements and scalars, reading a type, writing it canonically.

Source: docs/reference/pto.md section 2; the element spellings beyond the vendor's front end are castsim's (2.1.1).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from castsim.isa.errors import ReadError, Span, WarningKind
from castsim.isa.formats import format_named
from castsim.isa.pto.lexer import PtoSource, closest
from castsim.isa.pto.program import (
    AlignType,
    MaskType,
    MultiTileType,
    PartitionType,
    PointerType,
    ScalarType,
    TileType,
    Type,
    VectorType,
    ViewType,
)
from castsim.isa.pto.tile_types import (
    FieldText,
    format_logical,
    format_micro,
    format_tile,
    of_dialect,
    read_align,
    read_logical_mask,
    read_logical_vector,
    read_mask,
    read_tile,
    read_vector,
)
from castsim.isa.pto.value_types import LogicalMaskType, LogicalVectorType, held_element

Warn = Callable[[WarningKind, str, Span], None]

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
"""Element spelling of the vendor's front end -> format name."""

LOWERED: dict[str, str] = {
    "f8E4M3": "e4m3fn",
    "f8E4M3FNUZ": "e4m3fn",
    "f8E4M3B11FNUZ": "e4m3fn",
    "f8E5M2FNUZ": "e5m2",
}
"""Element spellings that the front end accepts but lowers to another format than they say."""

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
"""Spelling of a builtin scalar -> name of its `ScalarType`."""
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

_UNSPELT = "the text form has no spelling of this format"

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
    "!pto.vmi.vreg",
    "!pto.vmi.mask",
)
_UNSUPPORTED = ("pto.eventid_array", "pto.pipe", "pto.async_session")


def read_element(field: FieldText, warn: Warn) -> str:
    """Return the format name that an element spelling means.

    Warns where the spelling says another format than the front end lowers it to, and where the spelling is castsim's.

    Raises:
        ReadError: not an element type of tiles, views and pointers.
    """
    text = field.text
    if text in ELEMENTS:
        return ELEMENTS[text]
    if text in LOWERED:
        lowered = f"element type {text} is read as {LOWERED[text]}, to which the vendor's front end lowers it"
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
        reason, instead = next((why for each, why in _REFUSED.items() if _format_name(each) == name), (_UNSPELT, ()))
        raise field.error(f"{text} is not an element type of a tile, view or pointer: {reason}", instead or ELEMENTS)
    known = (*ELEMENTS, *LOWERED, *EXTENSIONS, *PREFIXED)
    begun = tuple(each for each in known if len(text) > 1 and each.lower().startswith(text.lower()))
    near = closest(text, known, everything_up_to=0 if begun else 30)
    raise field.error(f"unknown element type '{text}'", meant or tuple(dict.fromkeys((*begun, *near))))


def _format_name(text: str) -> str | None:
    """Return the format that a word means everywhere else in castsim, None if it means none."""
    try:
        return format_named(text).name
    except ReadError:
        return None


def _spelt(name: str | None, *tables: Mapping[str, str]) -> tuple[str, ...]:
    """Return how `.pto` spells a format; nothing if it does not."""
    return tuple(each for table in tables for each, held in table.items() if held == name)


def read_type(source: PtoSource, start: int, text: str, warn: Warn) -> Type:
    """Read one type, given as a whole token that begins at offset `start` of the source.

    Raises:
        ReadError: unknown type or malformed parameters.
        TileError: a valid extent beyond its physical one.
    """
    if not text.startswith("!"):
        return _read_scalar(source, start, text)
    match = _TYPE.fullmatch(text)
    name = match.group(1) if match else text[1:]
    if text in PREFIXED:
        raise source.error(f"{text} is an element type: no value is of that type", start, len(text), _KNOWN)
    if f"!{name}" not in _KNOWN:
        if name in _UNSUPPORTED:
            raise source.error(f"type '!{name}' is not supported", start, len(text), _KNOWN)
        raise source.error(f"unknown type '!{name}'", start, len(name) + 1, closest(f"!{name}", _KNOWN))
    if name == "pto.align":
        return read_align(source, start, text)
    if match is None or match.group(2) is None:
        raise source.error(f"type '!{name}' needs parameters in '<...>'", start, len(text))
    fields = _split(source, start + match.start(2), match.group(2))
    if name in ("pto.tile_buf", "pto.tile"):
        return read_tile(fields, lambda field: read_element(field, warn))
    if name == "pto.multi_tile_buf":
        return _read_several(fields, warn)
    if name == "pto.ptr":
        return _read_pointer(fields, warn)
    if name in _MASKS:
        return _MASKS[name](fields)
    if name in _REGISTERS:
        return _REGISTERS[name](fields, lambda field: held_element(read_element(field, warn)), _own_spelling)
    dims, element = _read_shaped(fields, warn)
    return ViewType(dims, element) if name == "pto.tensor_view" else PartitionType(dims, element)


def parse_type(text: str) -> Type:
    """Read a type that stands alone, as `!pto.tile_buf<vec, 4x256xf32>` or `index`.

    Raises:
        ReadError, TileError: as `read_type`.
    """
    return read_type(PtoSource("<type>", text), 0, text, lambda *_: None)


def element_spelling(element: str) -> str:
    """Return how registers and pointers of programs spell an element format; its own name if they do not."""
    return of_dialect(_ELEMENT_SPELLING.get(element, element))


def format_type(kind: Type) -> str:
    """Return the canonical spelling: tiles in the compact form without the fields that have their default.

    Raises:
        ReadError: the element format has no spelling in `.pto`.
    """
    if isinstance(kind, ScalarType):
        return _SCALAR_SPELLING.get(kind.name, kind.name)
    if isinstance(kind, VectorType | MaskType | AlignType):
        return format_micro(kind, _ELEMENT_SPELLING)
    if isinstance(kind, LogicalVectorType | LogicalMaskType):
        return format_logical(kind, _ELEMENT_SPELLING)
    if kind.element not in _ELEMENT_SPELLING:
        raise ReadError(f"format '{kind.element}' has no spelling in .pto", legal=_ELEMENT_SPELLING)
    element = _ELEMENT_SPELLING[kind.element]
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
        known = (*SCALARS, *_KNOWN)
        legal = _spelt(_format_name(text), SCALARS) or closest(text, known, everything_up_to=len(known))
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
        raise fields[-1].error("expected how many tiles there are, 1 to 64", ("count=2",))
    return MultiTileType(read_tile(fields[:-1], lambda field: read_element(field, warn)), int(count.text))


def _read_pointer(fields: list[FieldText], warn: Warn) -> PointerType:
    if len(fields) > 2:
        raise fields[2].error("a pointer has an element type and at most a memory space")
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
        raise fields[1].error("a view type has a shape with its element type, as 16x64xf32, and nothing more")
    match = _SHAPED.fullmatch(field.text)
    assert match is not None  # the pattern takes any text
    extents = match.group(1).split("x")[:-1]
    if not extents:
        raise field.error(f"'{field.text}' has no dimensions; a view type is written as 16x64xf32")
    if len(extents) > _VIEW_RANK:
        raise field.error(f"'{field.text}' has {len(extents)} dimensions, the most is {_VIEW_RANK}")
    for extent in extents:
        if not _DIMENSION.fullmatch(extent):
            raise field.error(f"extent '{extent[:24]}...' is beyond any memory")
    dims = tuple(None if extent == "?" else int(extent) for extent in extents)
    return dims, read_element(field.part(match.start(2), match.group(2)), warn)


_MASKS: Mapping[str, Callable[[list[FieldText]], Type]] = {"pto.mask": read_mask, "pto.vmi.mask": read_logical_mask}
_REGISTERS: Mapping[
    str, Callable[[list[FieldText], Callable[[FieldText], str], Callable[[FieldText, str], str]], Type]
] = {"pto.vreg": read_vector, "pto.vmi.vreg": read_logical_vector}
