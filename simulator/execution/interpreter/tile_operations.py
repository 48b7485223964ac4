"""Tile operations as the walk meets them: operands resolved, views of other types made, the others refused by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from castsim.execution.interpreter.scalars import bits_of
from castsim.execution.tiles import ResolvedTileOp, Tile
from castsim.isa.errors import IllegalError
from castsim.isa.formats import Format, format_named
from castsim.isa.pto import program as pto
from castsim.isa.pto.attributes import enum_value
from castsim.isa.pto.gather_forms import OFFSET, offset_of
from castsim.isa.pto.packed import element_format
from castsim.isa.pto.scratch_forms import form_of
from castsim.isa.pto.spelling import closest
from castsim.isa.pto.types import SCALARS
from castsim.isa.pto.vector_operations import (
    ALIASES,
    COMPARISONS,
    DIRECTIONS,
    GROUP_AXES,
    PART_MOVES,
    PRINT,
    SCALE_ALGORITHMS,
    VECTOR_OPERATIONS,
    Kind,
    Role,
    VectorOperation,
)

TRANSFERS = ("tload", "tstore")
_SPELLED = tuple(name for name, row in VECTOR_OPERATIONS.items() if row.name == name)
SUPPORTED = (*TRANSFERS, "tcvt", *_SPELLED, *PART_MOVES, *ALIASES, PRINT)
"""Tile operations that programs may use."""


KNOWN: Mapping[str, str] = {
    "mgather": "its order of accesses to global memory has no source",
    "mscatter": "its order of accesses to global memory has no source",
    "tscatter": "no sheet states which of two equal indices wins",
    "tgatherb": "its blocks of indices have no source",
    "tpow": "no source states its results",
    "tpows": "no source states its results",
    "tsubc": "a difference of three, whose roundings have no source",
    "tget_scale_addr": "scales of the matrix unit",
    "tprefetch": "caches are not modelled",
}
"""Operations of public kernels and of the front end that are not modelled, and why."""


def resolve_work(
    node: pto.TileOperation, tile_of: Callable[[str], Tile], number_of: Callable[[str], int | float]
) -> ResolvedTileOp:
    """Return a vector operation with its tiles placed and its scalars as codes of their types.

    Args:
        node: the operation, whose operands the parser has found to be of one of its forms.
        tile_of: returns the tile behind a name.
        number_of: returns the value of a scalar.
    """
    operation = VECTOR_OPERATIONS[node.mnemonic]
    form = form_of(operation, node.input_types)
    assert form is not None  # the parser has let only such through
    tiles: dict[Role, list[Tile]] = {role: [] for role in Role}
    scalars: list[tuple[int, Format]] = []
    for role, name, kind in zip(form, node.inputs, node.input_types, strict=True):
        if isinstance(kind, pto.ScalarType):
            held = _scalar_kind(operation, kind.name, node)
            scalars.append((bits_of(number_of(name), held), format_named(held)))
        else:
            tiles[role].append(tile_of(name))
    if operation.tmp_behind and len(node.outputs) > operation.destinations:
        tiles[Role.TMP].append(tile_of(node.outputs[-1]))
    attributes = dict(node.attributes)
    return ResolvedTileOp(
        mnemonic=node.mnemonic,
        dst=tile_of(node.outputs[0]),
        sources=tuple(tiles[Role.SOURCE]),
        span=node.span,
        scalars=tuple(scalars),
        tmp=next(iter(tiles[Role.TMP]), None),
        mask=next(iter(tiles[Role.MASK]), None),
        mode=_mode(attributes, operation),
        scalar_first=form[0] is Role.SCALAR and len(form) > 1,
        binary=attributes.get("isBinary") == "true",
        descending=attributes.get("descending") == "true",
        names_tmp=bool(tiles[Role.TMP]),
        pattern=enum_value(attributes["maskPattern"])[1:] if operation.attribute == "maskPattern" else None,
        counts=tile_of(node.outputs[1]) if operation.kind is Kind.COMPARE_GATHER else None,
        further=tuple(map(tile_of, node.outputs[1:])) if operation.kind is Kind.BLOCK_QUANTISE else (),
        offset=offset_of(attributes.get(OFFSET, "0")) or 0,
        by_columns=attributes.get("direction") == DIRECTIONS[1] or GROUP_AXES[1] in attributes.get("grpAxis", ""),
        interleaved=attributes.get("interleave") == "true",
    )


def _scalar_kind(operation: VectorOperation, given: str, node: pto.TileOperation) -> str:
    """Return the format that a scalar is used in: of its own if the operation does not take another for its tiles.

    Scalars of unsigned tiles are signless, amounts of shifts are integers of any width, and the slope of `tlrelu` is
    f32 whatever the tile holds (docs/reference/pto.md section 7.3).
    """
    tile = next((kind for kind in (*node.input_types, *node.output_types) if isinstance(kind, pto.TileType)), None)
    if tile is None or given not in SCALARS.values() or tile.element not in SCALARS.values():
        return given
    wanted, integers = tile.element, given[0] == "i" and tile.element[0] in "iu"
    slope = operation.function == "prelu" and given == "f32" and wanted == "f16"
    signless = integers and given[1:] == wanted[1:] and operation.kind is not Kind.MERGE
    shift = integers and operation.function in ("shl", "shr")
    return wanted if slope or signless or shift else given


def alias_tile(node: pto.TileOperation, source: Tile, element_bits: Callable[[Format], int]) -> Tile:
    """Return the tile that a treshape or bitcast makes of the bytes of another: an alias, no movement."""
    (kind,) = node.output_types
    assert isinstance(kind, pto.TileType) and kind.valid_rows is not None and kind.valid_cols is not None
    fmt = element_format(kind.element)
    return Tile(node.outputs[0], fmt, kind, source.address, kind.valid_rows, kind.valid_cols, element_bits(fmt))


def foreign_tile(name: str, kind: pto.TileType, rows: int, cols: int) -> Tile:
    """Return a tile of another buffer, which nothing here looks into."""
    fmt = element_format(kind.element)
    return Tile(name, fmt, kind, 0, rows, cols, fmt.storage_bits)


def is_matrix_work(node: pto.TileOperation | pto.Tcvt) -> bool:
    """Whether an operation belongs to the matrix unit: by its name, or by a tile that the vector unit does not take."""
    if isinstance(node, pto.Tcvt):
        return "vec" not in {node.src_type.location, node.dst_type.location}
    return node.of_matrix_unit or node.foreign


def is_foreign(kind: pto.Type) -> bool:
    """Whether a type is a tile that the vector unit does not take: in another buffer, or made of boxes."""
    return isinstance(kind, pto.TileType) and kind.foreign


def unsupported(node: pto.TileOperation) -> IllegalError:
    """Return the refusal of an operation that is not modelled: why and what to do if it is known, else what is near."""
    reason = KNOWN.get(node.mnemonic)
    if reason is not None:
        return IllegalError(
            f"pto.{node.mnemonic} is known, not modelled: {reason}",
            span=node.span,
            legal=(f"--opaque {node.mnemonic}=CYCLES, which takes it for so many cycles and computes no result of it",),
        )
    words = (*SUPPORTED, *KNOWN)
    near: Sequence[str] = closest(node.mnemonic, words, everything_up_to=0) or SUPPORTED
    return IllegalError(
        f"unknown operation pto.{node.mnemonic}", span=node.span, legal=[f"pto.{name}" for name in near]
    )


def _mode(attributes: dict[str, str], operation: VectorOperation) -> str | None:
    """Return the comparison, or the rule of the scales of blocks."""
    if operation.kind is Kind.BLOCK_QUANTISE:
        text = attributes.get("quantScaleAlg")
        return SCALE_ALGORITHMS[0] if text is None else enum_value(text)
    if operation.attribute != "cmpMode":
        return None
    text = attributes.get("cmpMode")
    return COMPARISONS[0] if text is None else enum_value(text)
