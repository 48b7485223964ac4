"""Checks of the front end beyond grammar: shapes, valid regions, views.

Everything here follows from the text alone; what depends on a run's values, on a target or on addresses is checked
by whoever has them. Source: docs/reference/pto.md sections 3.5 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from castsim.isa.errors import Span, TileError
from castsim.isa.pto.packed import element_format, unpacked
from castsim.isa.pto.program import PartitionType, TileType, Type, ViewType


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
