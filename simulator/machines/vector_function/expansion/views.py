"""Views of arguments whose offsets, sizes and strides are values of the program, and the transfers of their parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from castsim.execution.dataflow.transfers import MAXIMUM, MINIMUM, ZERO, pad_code
from castsim.execution.interpreter.lowerer import Lowerer
from castsim.execution.interpreter.places import Pointer
from castsim.execution.interpreter.places import View as SettledView
from castsim.execution.interpreter.views import partition
from castsim.execution.tiles import Part as SettledPart
from castsim.execution.tiles import Tile, TileTransfer
from castsim.isa.errors import IllegalError
from castsim.isa.pto import program as pto
from castsim.isa.pto.packed import element_format
from castsim.isa.pto.value_types import PointerType
from castsim.machines.vector_function.expansion.program import ProgramWriter
from castsim.machines.vector_function.expansion.texts import far, near
from castsim.machines.vector_function.expansion.writer import Writer


@dataclass(frozen=True, slots=True)
class Number:
    """A scalar, or pointer, of the program: its text, its value if that is known, the argument that it points to."""

    text: str
    known: int | float | None = None
    argument: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """A view of what a pointer points to; all in elements."""

    argument: str
    pointer: str
    kind: PointerType
    shape: tuple[Number, ...]
    strides: tuple[Number, ...]
    node: pto.MakeView


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a view."""

    view: View
    offsets: tuple[Number, ...]
    sizes: tuple[Number, ...]
    node: pto.PartitionView


def add_pointer(program: ProgramWriter, node: pto.AddPointer, base: tuple[str, str, PointerType]) -> Number:
    """Write a pointer some elements behind another."""
    argument, text, kind = base
    outer = far(kind)
    program.out.line(f"%{node.result} = pto.addptr {text}, %{node.offset} : {outer} -> {outer}")
    return Number(f"%{node.result}", None, argument)


def view_of(
    node: pto.MakeView, base: tuple[str, str, PointerType], shape: Sequence[Number], strides: Sequence[Number]
) -> View:
    """Return a view."""
    argument, text, kind = base
    return View(argument, text, kind, tuple(shape), tuple(strides), node)


def part_of(node: pto.PartitionView, view: View, offsets: Sequence[Number], sizes: Sequence[Number]) -> Part:
    """Return a part of a view."""
    return Part(view, tuple(offsets), tuple(sizes), node)


def move_part(
    program: ProgramWriter,
    lowerer: Lowerer,
    node: pto.TileOperation,
    part: Part,
    tile: Tile,
    extents: tuple[Number, Number],
    *,
    load: bool,
) -> None:
    """Write a transfer between a part and a tile: what is valid of the tile moves.

    Raises:
        IllegalError: extents or strides of run time in more than two dimensions, or in columns.
        TileError: see `castsim.execution.dataflow.transfers.lower_transfer`.
    """
    base = _base(program.out, part)
    settled = [*part.sizes, *part.view.strides, *extents]
    if all(each.known is not None for each in settled):
        transfer = TileTransfer(tile, _settled(part), load, node.span)
        program.bases[part.view.argument] = base
        try:
            body = lowerer.transfer(transfer).body
            program.block(body, [()] * body.width)
        finally:
            del program.bases[part.view.argument]
        return
    _move_rows(program, part, tile, extents, base, load=load)


def _base(out: Writer, part: Part) -> str:
    """Write the pointer to the first element of a part."""
    view = part.view
    constant, found = 0, ""
    for offset, stride in zip(part.offsets, view.strides, strict=True):
        if offset.known is not None and stride.known is not None:
            constant += int(offset.known) * int(stride.known)
        elif 0 not in (offset.known, stride.known):
            term = offset.text
            if stride.known != 1:
                term = out.define("at", f"arith.muli {offset.text}, {stride.text} : index")
            found = term if not found else out.define("at", f"arith.addi {found}, {term} : index")
    if constant:
        by = out.constant(constant)
        found = by if not found else out.define("at", f"arith.addi {found}, {by} : index")
    if not found:
        return view.pointer
    outer = far(view.kind)
    return out.define("gm", f"pto.addptr {view.pointer}, {found} : {outer} -> {outer}")


def _settled(part: Part) -> SettledPart:
    """Return a part all of whose extents and strides are known; it begins where the pointer is."""
    view = part.view
    sizes, strides = ([int(each.known or 0) for each in numbers] for numbers in (part.sizes, view.strides))
    pointer = Pointer(view.argument, element_format(view.kind.element))
    shape = [int(each.known or 0) for each in view.shape]
    whole = SettledView(pointer, tuple(sizes), tuple(strides), view.node.layout or _layout(shape, strides))
    return partition(part.node, whole, [0] * len(sizes), sizes)


def _layout(shape: Sequence[int], strides: Sequence[int]) -> str:
    return "dn" if len(shape) > 1 and strides[-1] != 1 and strides[-2] == 1 and shape[-2] > 1 else "nd"


def _move_rows(
    program: ProgramWriter, part: Part, tile: Tile, extents: tuple[Number, Number], base: str, *, load: bool
) -> None:
    """Write one instruction that moves rows."""
    out, view = program.out, part.view
    flat = tile.type.block_layout == "row_major" and all(each.known == 1 for each in part.sizes[:-2])
    if not flat or len(part.sizes) < 2 or view.strides[-1].known != 1:
        raise IllegalError(
            "expand cannot write a transfer whose extents only the run knows, but for rows of adjacent elements",
            legal=("--arg NAME=VALUE, which settles what it decides",),
        )
    bits = tile.element_bits
    if bits < 8:
        raise IllegalError(
            "expand cannot write a transfer of 4-bit elements whose extents only the run knows",
            legal=("--arg NAME=VALUE, which settles what it decides",),
        )
    size = bits // 8
    rows, length, stride = _long(out, extents[0], 1), _long(out, extents[1], size), _long(out, view.strides[-2], size)
    pitch = out.constant(tile.row_pitch, "i64")
    outer, ub = far(view.kind), near(view.kind.element)
    address = out.constant(tile.address, "i64")
    buffer = out.define("ub", f"pto.castptr {address} : i64 -> {ub}")
    if not load:
        text = f"pto.mte_ub_gm {buffer}, {base}, {length} nburst({rows}, {pitch}, {stride})"
        out.line(f"{text} : {ub}, {outer}, i64, i64, i64, i64")
        program.moved = True
        return
    pad, more = "", ""
    if tile.type.pad in (ZERO, MAXIMUM, MINIMUM):
        code = pad_code(tile.format, tile.type.pad)
        signed = code - (1 << bits) if code >> (bits - 1) & 1 else code
        pad, more = f" pad({out.constant(signed, f'i{bits}')})", f", pad i{bits}"
    text = f"pto.mte_gm_ub {base}, {buffer}, {out.constant(0, 'i64')}, {length} nburst({rows}, {stride}, {pitch}){pad}"
    out.line(f"{text} : {outer}, {ub}, i64, i64, i64, i64, i64{more}")
    program.moved = True


def _long(out: Writer, number: Number, times: int) -> str:
    """Write a number times a constant, as an i64."""
    if number.known is not None:
        return out.constant(int(number.known) * times, "i64")
    text = number.text
    if times != 1:
        text = out.define("bytes", f"arith.muli {text}, {out.constant(times)} : index")
    return out.define("long", f"arith.index_cast {text} : index to i64")
