"""Translation of a tile program statement by statement, which preserves run-time scalars.

Scalar arithmetic, conditions and loops are written unchanged; tiles are placed and operations lowered when they are
reached. Run-time extents become bounds of loops, scalar operands those of instructions, view
offsets those of pointers. Source: docs/reference/micro.md section 7.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from castsim.execution.interpreter.arguments import ArgumentPointer, partition
from castsim.execution.interpreter.arguments import View as SettledView
from castsim.execution.interpreter.lowerer import LoweredInstruction, Lowerer, bare, check_form, is_inserted
from castsim.execution.interpreter.rerolling import DependentScalar, LoopDependence
from castsim.execution.interpreter.scalar_values import constant, evaluate
from castsim.execution.interpreter.tile_allocation import (
    TileMaker,
    TileSlots,
    alias_tile,
    check_dense,
    resolve_work,
    unsupported,
)
from castsim.execution.pipe_operations import MAXIMUM, MINIMUM, ZERO, pad_code
from castsim.execution.tree import Block, Tile, TileCast, TileTransfer, Tree
from castsim.execution.tree import Part as SettledPart
from castsim.isa.dataclass import dataclass, field, fields, replace
from castsim.isa.errors import CastsimError, IllegalError
from castsim.isa.pto import program as pto
from castsim.isa.pto.program import Function, nodes, regions_of, with_regions
from castsim.isa.pto.pto_printer import operation_text
from castsim.isa.pto.value_types import PointerType, ScalarType, element_format
from castsim.isa.pto.vector_operations import ALIASES, PRINT, SUPPORTED, TRANSFERS, text_name
from castsim.targets.vector_function import VectorFunctionTarget
from castsim.tools.expand.nests import Extents, named, rules_of
from castsim.tools.expand.program_writer import ProgramWriter, framed, program_writer
from castsim.tools.expand.registers import (
    I64,
    Attributes,
    FunctionEmitter,
    UnsettledError,
    buffer_pointer,
    far,
)
from castsim.tools.micro_builder import INDEX

# Views of arguments whose offsets, sizes and strides are values of the program, and the transfers of their parts.


@dataclass(frozen=True, slots=True)
class ScalarExpression:
    """A scalar or pointer of the program: its text, its value if known, and the argument that it points to."""

    text: str
    known: int | float | None = None
    argument: str = ""


@dataclass(frozen=True, slots=True)
class PointerView:
    """A view of a pointer's memory, in elements."""

    argument: str
    pointer: str
    kind: PointerType
    shape: tuple[ScalarExpression, ...]
    strides: tuple[ScalarExpression, ...]
    node: pto.MakeView


@dataclass(frozen=True, slots=True)
class ViewPart:
    """A part of a view."""

    view: PointerView
    offsets: tuple[ScalarExpression, ...]
    sizes: tuple[ScalarExpression, ...]
    node: pto.PartitionView


def add_pointer(program: ProgramWriter, node: pto.AddPointer, base: tuple[str, str, PointerType]) -> ScalarExpression:
    """Write a pointer that is a number of elements after another."""
    argument, text, kind = base
    program.out.add(pto.AddPointer(node.result, text, node.offset, far(kind)))
    return ScalarExpression(node.result, None, argument)


def view_of(
    node: pto.MakeView,
    base: tuple[str, str, PointerType],
    shape: Sequence[ScalarExpression],
    strides: Sequence[ScalarExpression],
) -> PointerView:
    """Return a view."""
    argument, text, kind = base
    return PointerView(argument, text, kind, tuple(shape), tuple(strides), node)


def part_of(
    node: pto.PartitionView, view: PointerView, offsets: Sequence[ScalarExpression], sizes: Sequence[ScalarExpression]
) -> ViewPart:
    """Return a part of a view."""
    return ViewPart(view, tuple(offsets), tuple(sizes), node)


def move_part(
    program: ProgramWriter,
    lowerer: Lowerer,
    node: pto.TileOperation,
    part: ViewPart,
    tile: Tile,
    extents: tuple[ScalarExpression, ScalarExpression],
    *,
    load: bool,
) -> None:
    """Write a transfer between a part and the valid region of a tile.

    Raises:
        IllegalError: run-time extents or strides occur in more than two dimensions, or in columns.
        TileError: see `castsim.execution.pipe_operations.lower_transfer`.
    """
    base = _base(program.out, part)
    settled = [*part.sizes, *part.view.strides, *extents]
    if all(number.known is not None for number in settled):
        transfer = TileTransfer(tile, _settled(part), load, node.span)
        program.bases[part.view.argument] = base
        try:
            body = lowerer.transfer(transfer).body
            program.block(body, [()] * body.width)
        finally:
            del program.bases[part.view.argument]
        return
    _move_rows(program, part, tile, extents, base, load=load)


def _base(out: FunctionEmitter, part: ViewPart) -> str:
    """Write the pointer to the first element of a part."""
    view = part.view
    constant, base_name = 0, ""
    for offset, stride in zip(part.offsets, view.strides, strict=True):
        if offset.known is not None and stride.known is not None:
            constant += int(offset.known) * int(stride.known)
        elif 0 not in (offset.known, stride.known):
            term = offset.text
            if stride.known != 1:
                term = out.arith("muli", (offset.text, stride.text), INDEX)
            base_name = term if not base_name else out.arith("addi", (base_name, term), INDEX)
    if constant:
        base_name = out.plus(base_name, constant) if base_name else out.index(constant)
    return out.moved(view.pointer, base_name, far(view.kind), "gm") if base_name else view.pointer


def _settled(part: ViewPart) -> SettledPart:
    """Return a part with known extents and strides; it begins at the pointer."""
    view = part.view
    sizes, strides = ([int(number.known or 0) for number in numbers] for numbers in (part.sizes, view.strides))
    pointer = ArgumentPointer(view.argument, element_format(view.kind.element))
    shape = [int(extent.known or 0) for extent in view.shape]
    whole = SettledView(pointer, tuple(sizes), tuple(strides), view.node.layout or _layout(shape, strides))
    return partition(part.node, whole, [0] * len(sizes), sizes)


def _layout(shape: Sequence[int], strides: Sequence[int]) -> str:
    return "dn" if len(shape) > 1 and strides[-1] != 1 and strides[-2] == 1 and shape[-2] > 1 else "nd"


def _move_rows(
    program: ProgramWriter,
    part: ViewPart,
    tile: Tile,
    extents: tuple[ScalarExpression, ScalarExpression],
    base: str,
    *,
    load: bool,
) -> None:
    """Write one instruction that moves rows."""
    out, view = program.out, part.view
    flat = tile.type.block_layout == "row_major" and all(extent.known == 1 for extent in part.sizes[:-2])
    if not flat or len(part.sizes) < 2 or view.strides[-1].known != 1:
        raise IllegalError(
            "expand cannot write a transfer with run-time extents unless its rows have adjacent elements",
            legal=("--arg NAME=VALUE, which settles what it decides",),
        )
    bits = tile.element_bits
    if bits < 8:
        raise IllegalError(
            "expand cannot write a transfer of 4-bit elements with run-time extents",
            legal=("--arg NAME=VALUE, which settles what it decides",),
        )
    size = bits // 8
    rows, length, stride = _long(out, extents[0], 1), _long(out, extents[1], size), _long(out, view.strides[-2], size)
    pitch = out.constant(tile.row_pitch, I64)
    element = view.kind.element
    buffer = out.buffer(out.constant(tile.address, I64), element)
    pad = None
    if load and tile.type.pad in (ZERO, MAXIMUM, MINIMUM):
        code = pad_code(tile.format, tile.type.pad)
        signed = code - (1 << bits) if code >> (bits - 1) & 1 else code
        pad = out.scalar(signed, ScalarType(f"i{bits}"))
    ends = (base, far(view.kind)), (buffer, buffer_pointer(element))
    program.copy(ends, length, (rows, stride, pitch), pad, load=load)
    program.moved = True


def _long(out: FunctionEmitter, number: ScalarExpression, times: int) -> str:
    """Write a number times a constant, as an i64."""
    if number.known is not None:
        return out.constant(int(number.known) * times, I64)
    return out.converted("index_cast", out.times(number.text, times), INDEX, I64)


# Names of a source that its text keeps, and scalars of it that nothing uses any more.

_SCALARS = pto.Constant | pto.Arith | pto.Compare | pto.Convert


def names_in(function: Function) -> set[str]:
    """Return every name that the text binds."""
    names: set[str] = set()
    for node in nodes(function.body or ()):
        for field_name in ("result", "variable", "dst"):
            names.add(str(getattr(node, field_name, "")))
        for attribute in ("results", "carried", "arguments", "outputs"):
            names.update(name.partition("#")[0] for name in getattr(node, attribute, ()))
    return names


def drop_unused(out: FunctionEmitter) -> None:
    """Remove scalars and constants that nothing uses; a preceding comment moves to the next operation."""
    runs, before = (out.head, out.current), -1
    while before != len(counts := Counter(_names_of([node for run in runs for node in run.flat()]))):
        before = len(counts)
        for run in runs:
            run.items = [*_used(run.flat(), counts, out.notes)]


def _names_of(body: Sequence[pto.Operation]) -> Iterator[str]:
    """Yield the names that operations define or use, as often as they occur."""
    for node in nodes(body):
        for node_field in fields(node):
            value = getattr(node, node_field.name)
            yield from (name for name in (value if isinstance(value, tuple) else (value,)) if isinstance(name, str))


def _used(body: Sequence[pto.Operation], counts: Counter[str], notes: dict[int, str]) -> Iterator[pto.Operation]:
    note: str | None = None
    for node in body:
        note = notes.pop(id(node), note)
        if isinstance(node, _SCALARS) and counts[node.result] < 2:
            continue
        kept = with_regions(node, lambda region: tuple(_used(region, counts, notes)))
        if note is not None:
            notes[id(kept)], note = note, None
        yield kept


_SETTLED = ("--arg NAME=VALUE, which settles what it decides",)
_WHOLE = ("index", "i8", "i16", "i32", "i64")
_FOLLOWING = ("compare", "column_reduction", "row_product", "fill", "part")
"""Kernel structures in which more than the bounds of loops depends on the extents."""


def expanded_functions(
    function: Function, issued: Tree | Lowerer, target: VectorFunctionTarget
) -> tuple[str, Mapping[str, str]]:
    """Return the vector functions of a tile function as text, and the options that the text needs.

    The scalar arguments of a function stay open unless it was walked.
    """
    needed: dict[str, str] = {}
    while True:
        attributes = Attributes(target, dict(needed))
        try:
            if isinstance(issued, Tree):
                program = program_writer(function, attributes, set())
                program.tree(issued)
            else:
                program = write_statements(function, issued, attributes)
            return framed(program, function), attributes.needed
        except UnsettledError as error:
            needed.update(error.options)


def write_statements(function: pto.Function, lowerer: Lowerer, attributes: Attributes) -> ProgramWriter:
    """Return a tile function written statement by statement; its scalar arguments stay arguments.

    Raises:
        IllegalError: something can be written only for known scalars, or not at all; the error has its position.
    """
    program = program_writer(function, attributes, names_in(function))
    _Source(function, lowerer, program).write()
    return program


@dataclass(slots=True)
class _Held:
    """A tile: its place, and its valid extents as values of the program; None where branches may differ in them."""

    tile: Tile
    extents: tuple[ScalarExpression, ScalarExpression] | None

    def named(self) -> dict[str, int]:
        """Return the extents of run time with their physical bounds."""
        if self.extents is None:
            raise IllegalError(f"the extents of %{self.tile.name} depend on the path taken here", legal=_SETTLED)
        bounds = self.tile.type.rows, self.tile.type.cols
        return {extent.text: most for extent, most in zip(self.extents, bounds, strict=True) if extent.known is None}

    def at(self, extents: Extents) -> Tile:
        """Return the tile with values for its extents."""
        assert self.extents is not None
        rows, cols = (
            int(extent.known) if extent.known is not None else extents[extent.text] for extent in self.extents
        )  # fmt: skip
        return replace(self.tile, valid_rows=rows, valid_cols=cols)


_Value = ScalarExpression | _Held | PointerView | ViewPart | TileSlots


@dataclass(slots=True)
class _Source:
    """A walk over the statements."""

    function: pto.Function
    lowerer: Lowerer
    program: ProgramWriter
    values: dict[str, _Value] = field(default_factory=dict)
    tiles: TileMaker = field(init=False)

    def __post_init__(self) -> None:
        self.tiles = TileMaker(self.function, self.lowerer)
        for argument in self.function.arguments:
            self.values[argument.name] = ScalarExpression(argument.name)

    def write(self) -> None:
        """Write the body."""
        self._region(self.function.body or ())
        drop_unused(self.program.out)

    # ------------------------------------------------------------------------------------------------- statements

    def _region(self, body: Sequence[pto.Operation]) -> None:
        for node in body:
            if isinstance(node, pto.Return):
                return
            try:
                self._step(node)
            except CastsimError as error:
                raise error.at(node.span) from None

    def _step(self, node: pto.Operation) -> None:
        out = self.program.out
        match node:
            case pto.Constant():
                self._constant_of(node)
            case pto.Arith() | pto.Compare() | pto.Convert():
                self.values[node.result] = ScalarExpression(node.result, self._known(node))
                out.add(node)
            case pto.For() | pto.While() | pto.If() | pto.Section():
                self._control(node)
            case pto.Yield() | pto.Condition():
                if isinstance(node, pto.Condition) or node.values:
                    out.add(node)
            case pto.SetFlag() | pto.WaitFlag() | pto.Barrier():
                self._synchronise(node)
            case pto.Tcvt() | pto.TileOperation():
                self._tile_operation(node)
            case _:
                self._place(node)

    def _constant_of(self, node: pto.Constant) -> None:
        """Store a constant; an integer that is valid in the whole function may also be an operand of instructions."""
        out, value = self.program.out, constant(node.value, node.type.name)
        self.values[node.result] = ScalarExpression(node.result, value)
        key = repr(value), node.type.name
        if not out.depth and node.type.name in _WHOLE and isinstance(value, int) and key not in out.constants:
            out.constants[key] = node.result
            out.head.items.append(node)
            if node.type == INDEX:
                out.known[node.result] = value
        else:
            out.add(node)

    def _place(self, node: pto.Operation) -> None:
        """Create tiles and views, which need no text."""
        match node:
            case pto.AllocTile() | pto.AllocTiles():
                self._allocate(node, id(node))
            case pto.Subview():
                source = self._held(node.source)
                tile = self.tiles.part(node, replace(source.tile), self._constant)
                self.values[node.result] = _Held(tile, (_fixed(tile.valid_rows), _fixed(tile.valid_cols)))
            case pto.GetTile():
                slots = self.values[node.source]
                assert isinstance(slots, TileSlots)
                tile = slots.tile(node.result, self._constant(node.slot), node.span)
                self.values[node.result] = _Held(tile, (_fixed(tile.valid_rows), _fixed(tile.valid_cols)))
            case pto.SetValidShape():
                self._held(node.tile).extents = self._number(node.rows), self._number(node.cols)
            case pto.AddPointer():
                self.values[node.result] = add_pointer(self.program, node, self._pointer(node.pointer))
            case pto.MakeView():
                kind = self._pointer(node.pointer)
                shape, strides = (
                    [self._number(number_name) for number_name in names] for names in (node.shape, node.strides)
                )
                self.values[node.result] = view_of(node, kind, shape, strides)
            case pto.PartitionView():
                view = self.values[node.view]
                assert isinstance(view, PointerView)
                offsets, sizes = (
                    [self._number(number_name) for number_name in names] for names in (node.offsets, node.sizes)
                )
                self.values[node.result] = part_of(node, view, offsets, sizes)
            case _:
                text = operation_text(node).partition(" = ")[2] or operation_text(node)
                raise IllegalError(
                    f"expand cannot write {text.split()[0]}: functions of vector instructions do not support it",
                )

    def _known(self, node: pto.Arith | pto.Compare | pto.Convert) -> int | float | None:
        names = (node.operand,) if isinstance(node, pto.Convert) else node.operands
        numbers = {name: self._number(name).known for name in names}
        if None in numbers.values() or not names:
            return None
        return evaluate(
            node, lambda name: DependentScalar(numbers[name] or 0), LoopDependence(), lambda *_: False
        ).value

    def _control(self, node: pto.For | pto.While | pto.If | pto.Section) -> None:
        """Write a loop or condition with its regions, after which the extents that they change are unknown."""
        if isinstance(node, pto.Section):
            self._region(node.body)
            return
        out = self.program.out
        inner = [inner_node for region in regions_of(node) for inner_node in nodes(region)]
        own = [inner_node.tile for inner_node in inner if isinstance(inner_node, pto.SetValidShape)]
        if not isinstance(node, pto.If):
            self._forget(own)
            names = (*node.carried, *((node.variable,) if isinstance(node, pto.For) else node.arguments))
            self.values.update({name: ScalarExpression(name) for name in names})

        def rewritten(region: Sequence[pto.Operation]) -> tuple[pto.Operation, ...]:
            tile_extents = {name: self._held(name).extents for name in own if name in self.values}
            with out.region() as body:
                self._region(region)
            for name, extents in tile_extents.items():
                self._held(name).extents = extents
            return body.flat()

        out.add(with_regions(node, rewritten))
        self._forget(own)
        self.values.update({name: ScalarExpression(name) for name in node.results})

    def _forget(self, names: Sequence[str]) -> None:
        for name in names:
            if name in self.values:
                self._held(name).extents = None

    def _synchronise(self, node: pto.SetFlag | pto.WaitFlag | pto.Barrier) -> None:
        if isinstance(node, pto.Barrier):
            operation = self.lowerer.barrier(bare(node.pipe), node.span)
        else:
            make = self.lowerer.set_flag if isinstance(node, pto.SetFlag) else self.lowerer.wait_flag
            event = node.event if node.number is None else self._constant(node.number)
            operation = make(bare(node.src), bare(node.dst), event, node.span)
        self.program.block(Block((operation,)), [()])

    # ------------------------------------------------------------------------------------------------------- tiles

    def _allocate(self, node: pto.AllocTile | pto.AllocTiles, key: int) -> None:
        kind = node.type.tile if isinstance(node, pto.AllocTiles) else node.type
        extents = tuple(
            self._number(name) if name is not None else _fixed(stated or 0)
            for stated, name in ((kind.valid_rows, node.valid_row), (kind.valid_cols, node.valid_col))
        )
        bounds = {name: most for name, most in ((node.valid_row, kind.rows), (node.valid_col, kind.cols)) if name}

        def number(name: str) -> int:
            known_value = self._number(name).known
            return bounds[name] if known_value is None and name in bounds else self._constant(name)

        allocated = self.tiles.allocate(node, key, number)
        rows, cols = extents
        self.values[node.result] = allocated if isinstance(allocated, TileSlots) else _Held(allocated, (rows, cols))

    def _tile_operation(self, node: pto.Tcvt | pto.TileOperation) -> None:
        if isinstance(node, pto.Tcvt):
            if node.defines_dst:
                self._allocate(pto.AllocTile(node.dst, node.dst_type, span=node.span), id(node))
            names = (node.src, node.dst, *((node.tmp,) if node.tmp is not None else ()))
            self._issue(node, names, lambda tile_of: self._cast(node, tile_of))
        elif text_name(node.mnemonic) not in SUPPORTED:
            raise unsupported(node)
        elif node.mnemonic in TRANSFERS:
            self._transfer(node)
        elif node.mnemonic in ALIASES:
            source = self._held(node.inputs[0])
            check_dense(node, source.tile)
            tile = alias_tile(node, source.tile, self.lowerer.element_bits)
            self.values[node.outputs[0]] = _Held(tile, (_fixed(tile.valid_rows), _fixed(tile.valid_cols)))
        elif node.mnemonic != PRINT:
            check_form(node, str(self.lowerer.option("toolchain")))
            names = tuple(name for name in (*node.inputs, *node.outputs) if isinstance(self.values[name], _Held))
            self._issue(node, names, lambda tile_of: self._work(node, tile_of))

    def _cast(self, node: pto.Tcvt, tile_of: Callable[[str], Tile]) -> LoweredInstruction:
        tmp = None if node.tmp is None else tile_of(node.tmp)
        cast = TileCast(tile_of(node.src), tile_of(node.dst), tmp, node.rounding, node.saturation, node.span)
        return self.lowerer.cast(cast)

    def _work(self, node: pto.TileOperation, tile_of: Callable[[str], Tile]) -> LoweredInstruction:
        def number(name: str) -> int | float:
            known_value = self._number(name).known
            return 1 if known_value is None else known_value

        return self.lowerer.work(resolve_work(node, tile_of, number))

    def _issue(
        self,
        node: pto.Tcvt | pto.TileOperation,
        names: Sequence[str],
        lower: Callable[[Callable[[str], Tile]], LoweredInstruction],
    ) -> None:
        """Lower an operation and write it."""
        program = self.program
        tiles = {name: self._held(name) for name in names}
        most: dict[str, int] = {}
        for tile in tiles.values():
            for name, bound in tile.named().items():
                most[name] = min(bound, most.get(name, bound))
        kind = "tcvt" if isinstance(node, pto.Tcvt) else node.mnemonic
        whole = lower(lambda name: tiles[name].at(most))
        program.given = program.given_of(whole.shortcut)
        body = whole.body
        try:
            if program.given is not None:
                program.given.scalar_name = self._run_time_scalar(node)
            if most:
                if program.given is not None and program.given.structure in _FOLLOWING:
                    raise IllegalError(f"its loops follow {named(most)}", legal=_SETTLED)
                body, program.rules = rules_of(most, lambda extents: lower(lambda name: tiles[name].at(extents)).body)
            with program.out.noted("" if is_inserted(node) else f"pto.{kind}, line {node.span.line}"):
                self._guarded(body, most)
        except CastsimError as error:
            raise IllegalError(
                f"expand cannot write pto.{kind}: {error.message}", span=node.span, legal=error.legal
            ) from None
        finally:
            program.rules = ()

    def _guarded(self, body: Block, most: Extents) -> None:
        """Write an operation; one that closes rows has no effect if there are no columns."""
        program, out = self.program, self.program.out
        closes = program.given is not None and program.given.structure == "row_reduction"
        columns = self._columns() if closes else None
        if columns is None or columns not in most:
            program.block(body, [()] * body.width)
            return
        some = out.compared("sgt", columns, out.index(0), "some")
        with out.region() as then:
            program.block(body, [()] * body.width)
        out.add(pto.If(some, then.flat()))

    def _columns(self) -> str | None:
        """Return the name of the valid columns of the source of the operation that is written."""
        assert self.program.given is not None
        source = self.values[self.program.given.work.sources[0].name]
        assert isinstance(source, _Held) and source.extents is not None
        return source.extents[1].text

    def _run_time_scalar(self, node: pto.Tcvt | pto.TileOperation) -> str | None:
        if isinstance(node, pto.Tcvt):
            return None
        scalars = [self.values[name] for name in node.inputs]
        return next(
            (scalar.text for scalar in scalars if isinstance(scalar, ScalarExpression) and scalar.known is None), None
        )

    def _transfer(self, node: pto.TileOperation) -> None:
        load = node.mnemonic == "tload"
        ends = (node.inputs, node.outputs) if load else (node.outputs, node.inputs)
        part, destination = (self.values[names[0]] for names in ends)
        if not isinstance(part, ViewPart) or not isinstance(destination, _Held):
            raise IllegalError(
                f"expand cannot write pto.{node.mnemonic} with these operands", legal=("a partition and a tile",)
            )
        tile = destination.at(destination.named())
        assert destination.extents is not None
        with self.program.out.noted(f"pto.{node.mnemonic}, line {node.span.line}"):
            move_part(self.program, self.lowerer, node, part, tile, destination.extents, load=load)

    # ------------------------------------------------------------------------------------------------------ values

    def _number(self, name: str) -> ScalarExpression:
        scalar = self.values[name]
        assert isinstance(scalar, ScalarExpression)
        return scalar

    def _constant(self, name: str) -> int:
        number_known = self._number(name).known
        if number_known is None:
            raise IllegalError(f"expand cannot write what depends on %{name}", legal=_SETTLED)
        return int(number_known)

    def _held(self, name: str) -> _Held:
        tile_value = self.values[name]
        assert isinstance(tile_value, _Held)
        return tile_value

    def _pointer(self, name: str) -> tuple[str, str, pto.PointerType]:
        """Return the argument of a pointer, the pointer's name, and its type."""
        scalar = self.values[name]
        assert isinstance(scalar, ScalarExpression)
        argument = scalar.argument or name
        return argument, scalar.text, self.program.arguments[argument]


def _fixed(value: int) -> ScalarExpression:
    return ScalarExpression("", value)
