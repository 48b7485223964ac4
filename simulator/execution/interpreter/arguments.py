"""The arguments of a kernel at the start of the walk: pointers to global memory, and scalars with their values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod

from castsim.execution.input_data import ArgumentUse
from castsim.execution.interpreter.rerolling import DependentScalar
from castsim.execution.interpreter.scalar_values import argument_value
from castsim.execution.tree import Part, Tile
from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import ReadError, Span, TileError
from castsim.isa.formats import Format
from castsim.isa.pto import program as pto
from castsim.isa.pto.micro_forms import is_micro
from castsim.isa.pto.program import SetValidShape, TileType, nodes
from castsim.isa.pto.pto_scalars import CORE_NUMBERS
from castsim.isa.pto.types import SCALARS
from castsim.isa.pto.value_types import element_format, held_format

# Where tiles and arguments live while a program is walked.


@dataclass(slots=True)
class TileHandle:
    """A tile value of the program; `set_validshape` replaces its tile."""

    tile: Tile


@dataclass(frozen=True, slots=True)
class ArgumentPointer:
    """A kernel argument that points to global memory, at an offset of `offset` elements."""

    name: str
    format: Format
    offset: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """A tensor view of an argument: extents and strides in elements, `offset` where it starts."""

    pointer: ArgumentPointer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    layout: str


def use_in_values(use: ArgumentUse) -> ArgumentUse:
    """Return the use of an argument with every value of its elements counted, as in its arrays."""
    fmt, count = held_format(use.format)
    if count == 1:
        return use
    return replace(
        use,
        format=fmt,
        elements=use.elements * count,
        padded={size * count for size in use.padded},
        shapes={(*shape[:-1], shape[-1] * count) for shape in use.shapes},
        axes={_in_values(axes, count) for axes in use.axes},
        viewed=use.viewed * count,
        touched=use.touched * count,
    )


def _in_values(axes: tuple[tuple[int, int], ...], count: int) -> tuple[tuple[int, int], ...]:
    """Return the extents and strides of a view with each of the `count` values counted that an element holds."""
    outer = tuple((size, step * count) for size, step in axes if step != 1)
    return (*outer, (count * next((size for size, step in axes if step == 1), 1), 1))


class Allocator:
    """Level-2 placement: tiles in the order of their `alloc_tile`, each at the next aligned byte, without reuse.

    `placed` may contain addresses decided beforehand, and `placement` names the rule (`tile_allocation.share_bytes`).
    """

    def __init__(self, capacity: int, alignment: int) -> None:
        self.capacity = capacity
        self.alignment = alignment
        self.next = 0
        self.placed: dict[int, int] = {}
        self.placement = ""

    def place(self, key: int, name: str, kind: TileType, size: int, span: Span) -> int:
        """Return the byte address of the tile that the operation `key` allocates; the same each time it runs.

        Raises:
            TileError: the buffer is full; the message states the missing bytes.
        """
        if key not in self.placed:
            address = -(-self.next // self.alignment) * self.alignment
            if address + size > self.capacity:
                raise TileError(
                    f"tile %{name} ({kind.rows} x {kind.cols}) needs {size} bytes at {address}; the buffer has "
                    f"{self.capacity}: {address + size - self.capacity} bytes too few",
                    span=span,
                )
            self.placed[key] = address
            self.next = address + size
        return self.placed[key]


def slot_bytes(size: int, alignment: int) -> int:
    """Return the distance in bytes between several tiles of a size."""
    return -(-size // alignment) * alignment


def with_extents(node: SetValidShape, tile: Tile, rows: int, cols: int) -> Tile:
    """Return a tile with other valid extents.

    Raises:
        TileError: its type fixes other extents, or one is negative.
    """
    for stated, given in ((node.type.valid_rows, rows), (node.type.valid_cols, cols)):
        if stated is not None and stated != given:
            raise TileError(f"%{node.tile}: the valid extent is {stated} in the type, {given} here", span=node.span)
    if min(rows, cols) < 0:
        raise TileError(f"%{node.tile}: valid region {rows} x {cols} is negative", span=node.span)
    for axis, extent, physical in (("rows", rows, node.type.rows), ("columns", cols, node.type.cols)):
        if tile.reach is not None and extent > physical:  # the target looks at the shape of the whole
            raise TileError(f"%{node.tile}: {extent} valid {axis} exceed the {physical} of the tile", span=node.span)
    return replace(tile, valid_rows=rows, valid_cols=cols)


# Tensor views of an argument and their parts, in elements (docs/reference/pto.md section 3.5).

RANK = 5
"""Rank of every view: leading dimensions of size 1 are added up to five, like the library's views."""


def make_view(node: pto.MakeView, pointer: ArgumentPointer, shape: tuple[int, ...], strides: tuple[int, ...]) -> View:
    """Return a view of an argument.

    Raises:
        TileError: an extent or stride is negative, or an extent contradicts the type.
    """
    for what, values in (("shape", shape), ("strides", strides)):
        if min(values, default=0) < 0:
            raise TileError(f"%{node.result}: {what} [{_comma(values)}] has a negative entry", span=node.span)
    for stated, given in zip(node.type.dims, shape, strict=True):
        if stated is not None and stated != given:
            raise TileError(
                f"%{node.result}: the type has {_times(node.type.dims)}, but the shape operands give {_times(shape)}",
                span=node.span,
            )
    if pointer.offset < 0:
        raise TileError(f"%{node.result}: the view begins {-pointer.offset} elements before %{pointer.name}")
    inferred = "dn" if len(shape) > 1 and strides[-1] != 1 and strides[-2] == 1 and shape[-2] > 1 else "nd"
    return View(pointer, shape, strides, node.layout or inferred)


def partition(node: pto.PartitionView, view: View, offsets: Sequence[int], sizes: Sequence[int]) -> Part:
    """Return a part of a view, in five dimensions.

    Raises:
        TileError: the part exceeds the view, or its extents contradict its type.
    """
    _check_type(node, sizes)
    for start, size, extent in zip(offsets, sizes, view.shape, strict=True):
        if start < 0 or size < 0 or start + size > extent:
            raise TileError(
                f"%{node.result}: offsets [{_comma(offsets)}] and sizes [{_comma(sizes)}] exceed the view of "
                f"{_times(view.shape)}",
                span=node.span,
            )
    return _part(view, offsets, sizes)


def whole_view(view: View) -> Part:
    """Return the part of a view that covers all of it."""
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
        raise TileError(f"%{node.result}: the type has {_times(dims)}, the sizes give {_times(sizes)}", span=node.span)


def _five(values: Sequence[int]) -> tuple[int, int, int, int, int]:
    first, second, third, fourth, fifth = values
    return first, second, third, fourth, fifth


def _times(values: Sequence[int | None]) -> str:
    return " x ".join("?" if value is None else str(value) for value in values)


def _comma(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))


Elements = Mapping[str, Mapping[int, int | float]]
"""Single elements of pointer arguments, by name and index."""

_ELEMENT = re.compile(r"([^\[\]]+)\[(\d{1,18})\]")


def split_arguments(
    function: pto.Function, given: Mapping[str, int | float]
) -> tuple[Mapping[str, int | float], Elements]:
    """Separate the values of scalar arguments from those of single elements, `NAME[INDEX]`.

    Raises:
        ReadError: the argument of an element is not a pointer, or its type cannot represent a value.
    """
    kinds = {argument.name: argument.type for argument in function.arguments}
    scalars: dict[str, int | float] = {}
    elements: dict[str, dict[int, int | float]] = {}
    for name, value in given.items():
        match = _ELEMENT.fullmatch(name)
        if match is None:
            scalars[name] = value
            continue
        base, kind = match[1], kinds.get(match[1])
        if not isinstance(kind, pto.PointerType) or kind.element not in SCALARS.values():
            pointers = [argument for argument, kind in kinds.items() if isinstance(kind, pto.PointerType)]
            raise ReadError(f"@{function.name} has no single elements of '{base}' to set", legal=pointers)
        elements.setdefault(base, {})[int(match[2])] = argument_value(name, value, kind.element)
    return scalars, elements


Bound = ArgumentPointer | View | Part | DependentScalar


def bind_arguments(function: pto.Function, scalars: Mapping[str, int | float]) -> dict[str, Bound]:
    """Return the value of every argument by its name, and of the core's numbers; views are contiguous.

    Raises:
        ReadError: a scalar has no value, a value belongs to no argument, or an argument has another kind.
    """
    addresses = is_micro(function)
    scalars_known = {
        argument.name
        for argument in function.arguments
        if isinstance(argument.type, pto.ScalarType) or in_buffer(argument.type)
    }
    core: dict[str, Bound] = {name: DependentScalar(value) for name, value in CORE_NUMBERS.items()}
    for name, value in scalars.items():
        if name in scalars_known:
            continue
        asked = core_numbers(function)
        if name not in asked:
            raise ReadError(f"@{function.name} has no scalar argument '{name}'", legal=sorted({*scalars_known, *asked}))
        core[f"pto.{name}"] = DependentScalar(argument_value(name, value, "i64"))
    return core | {argument.name: _bound(function, argument, scalars, addresses) for argument in function.arguments}


def in_buffer(kind: pto.Type) -> bool:
    """Return whether an argument points into a core's buffer: its value is then a byte address."""
    return isinstance(kind, pto.PointerType) and kind.space == "ub"


def core_numbers(function: pto.Function) -> set[str]:
    """Return the core numbers that a function reads; `--arg` accepts their names besides those of its arguments."""
    asked = (node.operation for node in nodes(function.body or ()) if isinstance(node, pto.Arith) and not node.operands)
    return {name.removeprefix("pto.") for name in asked}


def argument_use(value: Bound) -> ArgumentUse | None:
    """Return the initial use of the memory behind an argument; None for a scalar."""
    match value:
        case ArgumentPointer():
            return ArgumentUse(value.format)
        case View():
            use = ArgumentUse(value.pointer.format)
            use.see_view(value.shape, value.strides)
            return use
        case Part():
            use = ArgumentUse(value.format)
            use.see_view(value.sizes, value.strides)
            return use
    return None


def _bound(
    function: pto.Function, argument: pto.Argument, scalars: Mapping[str, int | float], addresses: bool
) -> Bound:
    kind = argument.type
    if addresses and in_buffer(kind):
        if argument.name not in scalars:
            raise ReadError(
                f"argument %{argument.name} of @{function.name} points into the buffer of a core: give a byte address",
                span=argument.span,
                legal=(f"--arg {argument.name}=0",),
            )
        return DependentScalar(argument_value(argument.name, scalars[argument.name], "i64"))
    if isinstance(kind, pto.PointerType):
        return ArgumentPointer(argument.name, element_format(kind.element))
    if isinstance(kind, pto.ViewType | pto.PartitionType) and None not in kind.dims:
        extents = tuple(extent for extent in kind.dims if extent is not None)
        view = View(ArgumentPointer(argument.name, element_format(kind.element)), extents, _dense(extents), "nd")
        return view if isinstance(kind, pto.ViewType) else whole_view(view)
    if not isinstance(argument.type, pto.ScalarType):
        raise ReadError(
            f"argument %{argument.name}: a kernel takes pointers, views of known extents, and scalars",
            span=argument.span,
            legal=(f"a function that makes the operand and calls @{function.name}",),
        )
    if argument.name not in scalars:
        raise ReadError(
            f"scalar argument %{argument.name} of @{function.name} needs a value",
            span=argument.span,
            legal=(f"--arg {argument.name}=VALUE",),
        )
    return DependentScalar(argument_value(argument.name, scalars[argument.name], argument.type.name))


def _dense(extents: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of an array without gaps, the last dimension running fastest."""
    return tuple(prod(extents[axis + 1 :]) for axis in range(len(extents)))
