"""The types of tiles, in all their spellings, and of registers.

Source: docs/reference/pto.md section 2.3. Of a tile's spellings (key-value, compact, and two of the documentation) the
front end reads the first two; the others occur in instruction pages only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from castsim.isa.errors import ReadError, Span, TileError
from castsim.isa.pto.lexer import PtoSource, closest
from castsim.isa.pto.program import TileType
from castsim.isa.pto.value_types import (
    REGISTER_BITS,
    AlignType,
    LogicalMaskType,
    LogicalVectorType,
    MaskType,
    VectorType,
    element_format,
)

LOCATIONS = ("vec", "mat", "left", "right", "acc", "bias", "scaling")
BLOCK_LAYOUTS = ("row_major", "col_major")
SCATTER_LAYOUTS = ("none_box", "row_major", "col_major")
PADS = ("null", "zero", "max", "min")
COMPACTS = ("null", "normal", "row_plus_one")

_REQUIRED = ("loc", "dtype", "rows", "cols", "v_row", "v_col", "blayout", "slayout", "fractal", "pad")
_OPTIONAL = ("valid", "blayout", "slayout", "fractal", "pad", "compact")
_CAMEL_BLOCK = {"RowMajor": "row_major", "ColMajor": "col_major"}
_CAMEL_SCATTER = {"NoneBox": "none_box", **_CAMEL_BLOCK}
_CAMEL_PAD = {"Null": 0, "Zero": 1, "Max": 2, "Min": 3}
_DEFAULT_FRACTAL = 512
FRACTALS = (32, 512, 1024)
"""Bytes that a box of a boxed tile may have."""

_SHAPE = re.compile(r"(\d{1,18})x(\d{1,18})x(\S*)")
_STARTS_SHAPE = re.compile(r"[\d?]")
_VALID = re.compile(r"(\d{1,18}|\?)x(\d{1,18}|\?)")
_NATURAL = re.compile(r"\d{1,18}")


@dataclass(frozen=True, slots=True)
class FieldText:
    """A piece of a type's text and where it begins in the source."""

    source: PtoSource
    start: int
    text: str

    def span(self) -> Span:
        """Return the place of the whole piece."""
        return self.source.span(self.start, len(self.text))

    def error(self, message: str, legal: Iterable[str] = ()) -> ReadError:
        """Return (not raise) the refusal of this piece."""
        return ReadError(message, span=self.span(), legal=legal)

    def part(self, offset: int, text: str) -> FieldText:
        """Return the piece `text` that begins `offset` characters into this one."""
        return replace(self, start=self.start + offset, text=text)

    def key_and_value(self) -> tuple[FieldText, FieldText]:
        """Split `key=value`, blanks around the sign allowed."""
        key, equals, value = self.text.partition("=")
        if not equals:
            raise self.error(f"expected 'key=value', found '{self.text}'")
        blanks = len(value) - len(value.lstrip())
        return self.part(0, key.strip()), self.part(len(key) + 1 + blanks, value.strip())


ReadElement = Callable[[FieldText], str]
_T = TypeVar("_T")


def read_tile(fields: list[FieldText], read_element: ReadElement) -> TileType:
    """Read the parameters of a tile type, whichever spelling they are in.

    Raises:
        ReadError: unknown, missing, repeated or misplaced parameter.
        TileError: boxes of no size that there is, a valid extent larger than the physical one.
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
    """Return the compact spelling; fields that have their default are left out."""
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
            raise key.error(
                f"expected key '{expected}', found '{key.text}'; the order of the keys is fixed", (expected,)
            )
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
        block_layout=_choice(values["blayout"], "blayout", BLOCK_LAYOUTS),
        scatter_layout=_choice(values["slayout"], "slayout", SCATTER_LAYOUTS),
        fractal=_natural(values["fractal"], "fractal"),
        pad=_number_of(values["pad"], "pad", PADS),
        compact=_number_of(values["compact"], "compact", COMPACTS) if "compact" in values else 0,
    )


def _read_compact(fields: list[FieldText], read_element: ReadElement) -> TileType:
    """Read `vec, 4x256xf32, valid=4x200, ...`: location and shape, then optional keys in any order."""
    location = _location(fields[0])
    if len(fields) < 2:
        raise fields[0].error("the tile type lacks its shape, written as 16x64xf32")
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
    tile = TileType(location, element, rows, cols, valid_rows, valid_cols)
    if "blayout" in values:
        tile = replace(tile, block_layout=_choice(values["blayout"], "blayout", BLOCK_LAYOUTS))
    if "slayout" in values:
        tile = replace(tile, scatter_layout=_choice(values["slayout"], "slayout", SCATTER_LAYOUTS))
    if "fractal" in values:
        tile = replace(tile, fractal=_natural(values["fractal"], "fractal"))
    if "pad" in values:
        tile = replace(tile, pad=_number_of(values["pad"], "pad", PADS))
    if "compact" in values:
        tile = replace(tile, compact=_number_of(values["compact"], "compact", COMPACTS))
    return tile


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
        raise field.error("unknown loc: ub; the unified buffer is called vec", ("vec",))
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
        raise field.error(f"{what} must be a whole number from 0, found '{field.text[:40]}'")
    return int(field.text)


def _valid_extent(field: FieldText, what: str) -> int | None:
    return None if field.text in ("?", "-1") else _natural(field, what)


def _valid_pair(field: FieldText) -> tuple[int | None, int | None]:
    match = _VALID.fullmatch(field.text)
    if match is None:
        raise field.error(f"valid is written as ROWSxCOLS, each a whole number or ?, found '{field.text[:40]}'")
    rows, cols = (None if extent == "?" else int(extent) for extent in match.groups())
    return rows, cols


def _shape(field: FieldText, read_element: ReadElement) -> tuple[int, int, str]:
    match = _SHAPE.fullmatch(field.text)
    if match is None:
        raise field.error(f"expected a shape as 16x64xf32, found '{field.text[:40]}'")
    element = read_element(field.part(match.start(3), match.group(3)))
    return int(match.group(1)), int(match.group(2)), element


def _check_valid(tile: TileType, first: FieldText) -> None:
    if tile.fractal not in FRACTALS:
        sizes = [f"fractal={size}" for size in FRACTALS]
        raise TileError(f"no tile has boxes of {tile.fractal} bytes", span=first.span(), legal=sizes)
    for what, valid, physical in (("rows", tile.valid_rows, tile.rows), ("columns", tile.valid_cols, tile.cols)):
        if valid is not None and valid > physical:
            raise TileError(f"{valid} valid {what} in a tile of {physical} {what}", span=first.span())


# The types of vector registers, masks and alignment states: reading and writing.
#
# Source: docs/reference/micro.md section 1.2.

_VECTOR = re.compile(r"(\d{1,9})x(\S+)")
_MASKS = {f"b{bits}": bits for bits in (8, 16, 32)}


def lane_bits(element: str) -> int:
    """Return the bits that an element takes in a register and in memory: two of 4 bits make one of 8."""
    return max(8, element_format(element).bits)


def read_vector(
    fields: list[FieldText], read_element: Callable[[FieldText], str], spelling: Callable[[FieldText, str], str]
) -> VectorType:
    """Read the parameters of `!pto.vreg<64xf32>`.

    Raises:
        ReadError: malformed, an unknown element, or not 2048 bits.
    """
    if len(fields) > 1:
        raise fields[1].error("a vector register has a number of lanes with its element type and nothing more")
    match = _VECTOR.fullmatch(fields[0].text)
    if match is None:
        raise fields[0].error(f"'{fields[0].text[:40]}' is not LANESxTYPE", ("64xf32", "128xf16", "256xi8"))
    field = fields[0].part(match.start(2), match.group(2))
    element = read_element(field)
    if element in ("i4", "f64"):
        raise field.error(f"{field.text} is not an element of a vector register", ("f32", "f16", "i8"))
    lanes, wanted = int(match.group(1)), REGISTER_BITS // lane_bits(element)
    if lanes != wanted:
        given = f"{lanes} lanes of {field.text} have {lanes * lane_bits(element)}"
        legal = (f"!pto.vreg<{wanted}x{field.text}>",)
        raise fields[0].error(f"a vector register has {REGISTER_BITS} bits, {given}", legal)
    return VectorType(lanes, element, spelling(field, element))


def read_mask(fields: list[FieldText]) -> MaskType:
    """Read the parameter of `!pto.mask<b32>`.

    Raises:
        ReadError: no such mask.
    """
    text = fields[0].text
    if len(fields) > 1 or text not in _MASKS:
        raise fields[-1].error(f"a mask is for lanes of 8, 16 or 32 bits, not '{text[:40]}'", _MASKS)
    return MaskType(_MASKS[text])


def read_align(source: PtoSource, start: int, text: str) -> AlignType:
    """Read `!pto.align`.

    Raises:
        ReadError: it has parameters.
    """
    if text != "!pto.align":
        raise source.error("type '!pto.align' has no parameters", start, len(text), ("!pto.align",))
    return AlignType()


def format_micro(kind: VectorType | MaskType | AlignType, spellings: Mapping[str, str]) -> str:
    """Return the canonical spelling; `spellings` are those of elements, by their formats.

    Raises:
        ReadError: the element format has no spelling in `.pto`.
    """
    if isinstance(kind, AlignType):
        return "!pto.align"
    if isinstance(kind, MaskType):
        return f"!pto.mask<b{kind.bits}>"
    if kind.element not in spellings:
        raise ReadError(f"format '{kind.element}' has no spelling in .pto", legal=spellings)
    return f"!pto.vreg<{kind.lanes}x{of_dialect(kind.spelling or spellings[kind.element])}>"


def of_dialect(spelling: str) -> str:
    """Return the spelling of an element with the prefix that it has as a type of the dialect."""
    return f"!pto.{spelling}" if spelling in ("hif8", "f4E2M1x2", "f4E1M2x2") else spelling


# The types of logical registers and masks: reading and writing (docs/reference/micro.md section 9.1).

_MASK = re.compile(r"(\d{1,9})(?:x(pred|b8|b16|b32))?")
MOST_LANES = 65536
"""Lanes of a logical register: 256 KiB of bytes fill the buffer four times over."""


def read_logical_vector(
    fields: list[FieldText], read_element: Callable[[FieldText], str], spelling: Callable[[FieldText, str], str]
) -> LogicalVectorType:
    """Read the parameters of `!pto.vmi.vreg<256xf32>`.

    Raises:
        ReadError: malformed, an unknown element, or a number of lanes that no program has.
    """
    if len(fields) > 1:
        raise fields[1].error("a logical register has a number of lanes with its element type and nothing more")
    match = _VECTOR.fullmatch(fields[0].text)
    if match is None:
        raise fields[0].error(f"'{fields[0].text[:40]}' is not LANESxTYPE", ("256xf32", "128xf16"))
    field = fields[0].part(match.start(2), match.group(2))
    element = read_element(field)
    if element in ("i4", "f64", "e8m0"):
        raise field.error(f"{field.text} is not an element of a logical register", ("f32", "f16", "i8"))
    _check_lanes(fields[0], int(match.group(1)))
    return LogicalVectorType(int(match.group(1)), element, spelling(field, element))


def read_logical_mask(fields: list[FieldText]) -> LogicalMaskType:
    """Read the parameter of `!pto.vmi.mask<256xpred>`.

    Raises:
        ReadError: no such mask.
    """
    match = _MASK.fullmatch(fields[0].text)
    if len(fields) > 1 or match is None:
        raise fields[-1].error(f"'{fields[-1].text[:40]}' is not LANES or LANESxpred", ("256xpred", "256"))
    _check_lanes(fields[0], int(match.group(1)))
    return LogicalMaskType(int(match.group(1)), match.group(2) or "")


def _check_lanes(field: FieldText, lanes: int) -> None:
    if not 1 <= lanes <= MOST_LANES:
        raise field.error(f"{lanes} lanes", (f"1 to {MOST_LANES}",))


def format_logical(kind: LogicalVectorType | LogicalMaskType, spellings: Mapping[str, str]) -> str:
    """Return the canonical spelling; `spellings` are those of elements, by their formats."""
    if isinstance(kind, LogicalMaskType):
        return f"!pto.vmi.mask<{kind.lanes}{f'x{kind.granularity}' if kind.granularity else ''}>"
    spelling = kind.spelling or spellings[kind.element]
    known = spelling.startswith("!") or spelling not in ("hif8", "f4E2M1x2", "f4E1M2x2")
    return f"!pto.vmi.vreg<{kind.lanes}x{spelling if known else f'!pto.{spelling}'}>"
