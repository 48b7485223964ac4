"""Tensor views of an argument and their parts, in elements (docs/reference/pto.md section 3.5)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from castsim.execution.interpreter.places import Pointer, View
from castsim.execution.tiles import Part
from castsim.isa.errors import TileError
from castsim.isa.pto import program as pto

RANK = 5
"""Every view gets leading dimensions of size 1 until it has five, as the library's views have."""


def make_view(node: pto.MakeView, pointer: Pointer, shape: tuple[int, ...], strides: tuple[int, ...]) -> View:
    """Return a view of an argument.

    Raises:
        TileError: a negative extent or stride, or an extent that contradicts the type.
    """
    for what, values in (("shape", shape), ("strides", strides)):
        if min(values, default=0) < 0:
            raise TileError(f"%{node.result}: {what} [{_comma(values)}] has a negative entry", span=node.span)
    for stated, given in zip(node.type.dims, shape, strict=True):
        if stated is not None and stated != given:
            raise TileError(
                f"%{node.result}: the type says {_times(node.type.dims)}, the shape operands {_times(shape)}",
                span=node.span,
            )
    if pointer.offset < 0:
        raise TileError(f"%{node.result}: the view begins {-pointer.offset} elements before %{pointer.name}")
    inferred = "dn" if len(shape) > 1 and strides[-1] != 1 and strides[-2] == 1 and shape[-2] > 1 else "nd"
    return View(pointer, shape, strides, node.layout or inferred)


def partition(node: pto.PartitionView, view: View, offsets: Sequence[int], sizes: Sequence[int]) -> Part:
    """Return a part of a view, in five dimensions.

    Raises:
        TileError: the part leaves the view, or its extents contradict its type.
    """
    _check_type(node, sizes)
    for start, size, extent in zip(offsets, sizes, view.shape, strict=True):
        if start < 0 or size < 0 or start + size > extent:
            raise TileError(
                f"%{node.result}: offsets [{_comma(offsets)}] and sizes [{_comma(sizes)}] leave the view of "
                f"{_times(view.shape)}",
                span=node.span,
            )
    return _part(view, offsets, sizes)


def whole_view(view: View) -> Part:
    """Return the part of a view that is all of it."""
    return _part(view, [0] * len(view.shape), view.shape)


def _part(view: View, offsets: Sequence[int], sizes: Sequence[int]) -> Part:
    missing = RANK - len(sizes)
    outer = view.strides[0] * view.shape[0] if view.shape else 0
    return Part(
        argument=view.pointer.name,
        format=view.pointer.format,
        offset=view.pointer.offset + sum(start * stride for start, stride in zip(offsets, view.strides, strict=True)),
        sizes=_five([1] * missing + list(sizes)),
        strides=_five([outer] * missing + list(view.strides)),
        layout=view.layout,
    )


def _check_type(node: pto.PartitionView, sizes: Sequence[int]) -> None:
    """The type has the view's dimensions, or fewer of the same number of elements."""
    dims = node.type.dims
    if len(dims) == len(sizes):
        agrees = all(stated in (None, given) for stated, given in zip(dims, sizes, strict=True))
    else:
        agrees = None in dims or prod(extent for extent in dims if extent is not None) == prod(sizes)
    if not agrees:
        raise TileError(f"%{node.result}: the type says {_times(dims)}, the sizes {_times(sizes)}", span=node.span)


def _five(values: Sequence[int]) -> tuple[int, int, int, int, int]:
    first, second, third, fourth, fifth = values
    return first, second, third, fourth, fifth


def _times(values: Sequence[int | None]) -> str:
    return " x ".join("?" if value is None else str(value) for value in values)


def _comma(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))
