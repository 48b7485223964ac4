"""Walking a `.pto` program: control flow and addresses first; every tile instruction is lowered where it is met.

A loop without carried values is walked as far as its trips are not known to be alike (`castsim.execution.walk.pieces`):
where its variable reaches only view offsets, and those affinely, that is three trips. All other loops are walked trip
by trip, and runs of equal trips folded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from castsim.execution.limits import MAX_WALK
from castsim.execution.tiles import Part, Tile, TileCast, TileTransfer
from castsim.execution.tree import Block, Instruction, Lowered, Node, Role, Tree
from castsim.execution.walk.arguments import bind_arguments
from castsim.execution.walk.budget import Budget
from castsim.execution.walk.dependence import DependentError, Loops, Scalar
from castsim.execution.walk.folding import fold
from castsim.execution.walk.labels import Label, cast_label, order_label, work_label
from castsim.execution.walk.lifetimes import share_bytes
from castsim.execution.walk.lowerer import LoweredInstruction, Lowerer
from castsim.execution.walk.pieces import Pieces
from castsim.execution.walk.places import Allocator, ArgumentUse, Pointer, TileHandle, View, with_extents
from castsim.execution.walk.scalars import constant, evaluate
from castsim.execution.walk.structure import bare, has_addresses, is_inserted, main_pipe, repeats_itself, synchronises
from castsim.execution.walk.views import make_view, partition
from castsim.execution.walk.works import (
    SUPPORTED,
    TRANSFERS,
    alias_tile,
    foreign_tile,
    is_foreign,
    is_matrix_work,
    refuse_matrix_work,
    resolve_work,
    unsupported,
)
from castsim.isa.errors import CastsimError, IllegalError, ReadError, TileError
from castsim.isa.formats import format_named
from castsim.isa.pto import program as pto
from castsim.isa.pto.vector_operations import ALIASES
from castsim.isa.warning_text import WarningKind, Warnings, WarningText

Value = Scalar | Pointer | View | Part | TileHandle


@dataclass(frozen=True, slots=True)
class Executed:
    """A walked program: what the machine issues, and what its arguments must hold.

    `numbers` are those of the instructions of the tree, by the identity of the operation that each comes from.
    """

    tree: Tree
    arguments: Mapping[str, ArgumentUse]
    warnings: Warnings
    numbers: Mapping[int, int] = field(default_factory=dict)


def execute(
    program: pto.Program,
    function: pto.Function,
    lowerer: Lowerer,
    scalars: Mapping[str, int | float],
    *,
    opaque: bool = False,
    max_walk: int = MAX_WALK,
) -> Executed:
    """Walk one function of a program and lower what it does.

    Args:
        program: supplies the warnings found while reading.
        function: the entry function.
        lowerer: the target's mechanism.
        scalars: values of the scalar arguments by name.
        opaque: take operations of the matrix unit for nothing, with a warning, instead of refusing them.
        max_walk: trips, and statements inside loops, that are walked.

    Raises:
        ReadError: an argument without a value, mixed placement levels, a step that never ends a loop.
        IllegalError, TileError, ScratchError: whatever an instruction is refused for; each carries its place.
        LimitError: the walk is longer than it may be; the place is that of the loop.
    """
    walker = _Walker(function, lowerer, Budget(max_walk), opaque=opaque)
    for name, value in bind_arguments(function, scalars).items():
        walker.environment[name] = value
        if isinstance(value, Pointer):
            walker.arguments[name] = ArgumentUse(value.format)
    with_body = function.body or ()
    nodes: list[Node] = []
    walker.walk(with_body, nodes)
    tree = Tree(Block(tuple(nodes)), tuple(walker.instructions), interlocked=not synchronises(with_body))
    warnings = (*program.warnings, *walker.warnings, *lowerer.closing_warnings())
    return Executed(tree, walker.arguments, warnings, walker.numbers)


@dataclass(slots=True)
class _Walker:
    function: pto.Function
    lowerer: Lowerer
    budget: Budget
    opaque: bool = False
    environment: dict[str, Value] = field(default_factory=dict)
    arguments: dict[str, ArgumentUse] = field(default_factory=dict)
    instructions: list[Instruction] = field(default_factory=list)
    warnings: dict[WarningText, None] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)
    repeating: dict[int, bool] = field(default_factory=dict)
    loops: Loops = field(default_factory=Loops)
    allocator: Allocator = field(init=False)
    fixed_addresses: bool = field(init=False)

    def __post_init__(self) -> None:
        _, capacity, alignment = self.lowerer.buffer()
        self.allocator = Allocator(capacity, alignment)
        self.fixed_addresses = has_addresses(self.function.body or ())
        if not self.fixed_addresses:
            warning = share_bytes(self.function, self.allocator, self.lowerer.element_bits)
            if warning is not None:
                self.warnings[warning.at(self.function.span)] = None

    # ------------------------------------------------------------------------------------------------- operations

    def walk(self, body: Sequence[pto.Operation], out: list[Node]) -> tuple[Value, ...]:
        """Walk a region, append what it issues to `out`, return what it yields."""
        for node in body:
            if isinstance(node, pto.Yield | pto.Return):
                return tuple(self.environment[name] for name in node.values)
            try:
                self._step(node, out)
            except CastsimError as error:
                raise error.at(node.span) from None
            if not is_inserted(node):
                self.budget.spend()
        return ()

    def _step(self, node: pto.Operation, out: list[Node]) -> None:
        match node:
            case pto.Constant():
                self.environment[node.result] = Scalar(constant(node.value, node.type.name))
            case pto.AllocTile():
                self.environment[node.result] = self._allocate(node, id(node))
            case pto.MakeView():
                self.environment[node.result] = self._make_view(node)
            case pto.PartitionView():
                self.environment[node.result] = self._partition(node)
            case pto.SetValidShape():
                self._set_valid_shape(node)
            case _:
                self._act(node, out)

    def _act(self, node: pto.Operation, out: list[Node]) -> None:
        """Do what issues operations or decides the path."""
        match node:
            case pto.Arith() | pto.Compare() | pto.Convert():
                self.environment[node.result] = evaluate(node, self._scalar, self.loops)
                self._keep_books(node, "arithmetic", "index arithmetic", out)
            case pto.Tcvt() | pto.TileOperation() if self.opaque and is_matrix_work(node):
                self._pass_over(node, out)
            case pto.Tcvt():
                self._cast(node, out)
            case pto.TileOperation():
                self._tile_operation(node, out)
            case pto.SetFlag() | pto.WaitFlag() | pto.Barrier():
                self._synchronise(node, out)
            case pto.For():
                self._loop(node, out)
            case pto.If():
                self._branch(node, out)
            case pto.Section(kind="section.cube") if not self.opaque:
                raise IllegalError("a cube section runs on another core", span=node.span, legal=("section.vector",))
            case pto.Section():
                self.walk(node.body, out)
            case _:
                raise AssertionError(f"unknown node {type(node).__name__}")

    def _allocate(self, node: pto.AllocTile, key: int) -> TileHandle:
        """Place a tile; `key` identifies the source operation, which gets the same place each time it runs."""
        if self.fixed_addresses and node.address is None:
            raise ReadError(
                f"%{node.result}: other tiles of this function have addresses (level 3), so this one needs one too",
                span=node.span,
                legal=("addr = %value",),
            )
        rows = self._extent(node.type.valid_rows, node.valid_row)
        cols = self._extent(node.type.valid_cols, node.valid_col)
        if is_foreign(node.type) and not self.opaque:
            refuse_matrix_work(self.function.body or ())
        elif is_foreign(node.type):
            return TileHandle(foreign_tile(node.result, node.type, rows, cols))
        fmt = format_named(node.type.element)
        bits = self.lowerer.element_bits(fmt)
        if node.address is not None:
            address = self._constant(node.address)
        else:
            size = node.type.rows * node.type.cols * bits // 8
            address = self.allocator.place(key, node.result, node.type, size, node.span)
        tile = Tile(node.result, fmt, node.type, address, rows, cols, bits)
        self.lowerer.check_tile(tile, node.span)
        return TileHandle(tile)

    def _make_view(self, node: pto.MakeView) -> View:
        pointer = self.environment[node.pointer]
        assert isinstance(pointer, Pointer)
        shape = tuple(self._constant(name) for name in node.shape)
        strides = tuple(self._constant(name) for name in node.strides)
        view = make_view(node, pointer, shape, strides)
        self.arguments[pointer.name].see_view(shape, strides, node.span)
        return view

    def _partition(self, node: pto.PartitionView) -> Part:
        view = self.environment[node.view]
        assert isinstance(view, View)
        offsets = [self._scalar(name) for name in node.offsets]
        for offset in offsets:
            if offset.periods is not None:
                raise self.loops.refusal(offset)
        sizes = [self._constant(name) for name in node.sizes]
        return partition(node, view, [int(offset.value) for offset in offsets], sizes)

    def _cast(self, node: pto.Tcvt, out: list[Node]) -> None:
        if node.defines_dst:
            kind = node.dst_type
            self.environment[node.dst] = self._allocate(pto.AllocTile(node.dst, kind, span=node.span), id(node))
        tmp = self._tile(node.tmp) if node.tmp is not None else None
        cast = TileCast(self._tile(node.src), self._tile(node.dst), tmp, node.rounding, node.saturation, node.span)
        self._emit(node, cast_label(cast), self.lowerer.cast(cast), out)

    def _tile_operation(self, node: pto.TileOperation, out: list[Node]) -> None:
        if node.mnemonic not in SUPPORTED or is_matrix_work(node):
            raise unsupported(node)
        if node.mnemonic in TRANSFERS:
            self._transfer(node, out)
        elif node.mnemonic in ALIASES:
            tile = alias_tile(node, self._tile(node.inputs[0]), self.lowerer.element_bits)
            self.lowerer.check_tile(tile, node.span)
            self.environment[node.outputs[0]] = TileHandle(tile)
        else:
            work = resolve_work(node, self._tile, self._number)
            self._emit(node, work_label(work), self.lowerer.work(work), out)

    def _pass_over(self, node: pto.Tcvt | pto.TileOperation, out: list[Node]) -> None:
        """Take an operation of the matrix unit for nothing: what it costs is not known."""
        name = node.mnemonic if isinstance(node, pto.TileOperation) else "tcvt"
        text = f"pto.{name} belongs to the matrix unit: opaque, no cycles are counted for it"
        warning = WarningText(WarningKind.UNTIMED, text)
        if isinstance(node, pto.TileOperation) and name in ALIASES:
            (kind,) = node.output_types
            assert isinstance(kind, pto.TileType)
            tile = foreign_tile(node.outputs[0], kind, kind.valid_rows or 0, kind.valid_cols or 0)
            self.environment[node.outputs[0]] = TileHandle(tile)
        label = Label(f"{name} opaque", name, Role.OPAQUE)
        self._emit(node, label, LoweredInstruction(Block(()), warnings=(warning,)), out)

    def _transfer(self, node: pto.TileOperation, out: list[Node]) -> None:
        load = node.mnemonic == "tload"
        ends = (node.inputs, node.outputs) if load else (node.outputs, node.inputs)
        part, handle = (self.environment[names[0]] if len(names) == 1 else None for names in ends)
        if not isinstance(part, Part) or not isinstance(handle, TileHandle):
            raise ReadError(
                f"pto.{node.mnemonic} moves one partition and one tile",
                span=node.span,
                legal=("ins(%part) outs(%tile)" if load else "ins(%tile) outs(%part)",),
            )
        use = self.arguments[part.argument]
        if load and not use.stored:
            use.needs_input = True
        use.stored |= not load
        lowered = self.lowerer.transfer(TileTransfer(handle.tile, part, load, node.span))
        label = Label(f"{node.mnemonic} {part.format.name} {part.rows} x {part.cols}", node.mnemonic)
        self._emit(node, label, lowered, out)

    def _set_valid_shape(self, node: pto.SetValidShape) -> None:
        if self.loops:
            raise DependentError
        handle = self.environment[node.tile]
        assert isinstance(handle, TileHandle)
        tile = handle.tile
        rows, cols = self._constant(node.rows), self._constant(node.cols)
        changed = with_extents(node, tile, rows, cols)
        if not is_foreign(tile.type):
            self.lowerer.check_tile(changed, node.span)
        handle.tile = changed

    def _synchronise(self, node: pto.SetFlag | pto.WaitFlag | pto.Barrier, out: list[Node]) -> None:
        if isinstance(node, pto.Barrier):
            operation = self.lowerer.barrier(bare(node.pipe), node.span)
        else:
            make = self.lowerer.set_flag if isinstance(node, pto.SetFlag) else self.lowerer.wait_flag
            operation = make(bare(node.src), bare(node.dst), node.event, node.span)
        self._issue(node, order_label(node), operation, out)

    # ---------------------------------------------------------------------------------------------- control flow

    def _branch(self, node: pto.If, out: list[Node]) -> None:
        taken = node.then_body if self._constant(node.condition) else node.else_body
        self._bind(node.results, self.walk(taken, out))

    def _loop(self, node: pto.For, out: list[Node]) -> None:
        lower, upper, step = (self._constant(name) for name in (node.lower, node.upper, node.step))
        if step <= 0:
            raise ReadError(f"scf.for with step {step} never ends; the step must be positive", span=node.span)
        trips = max(0, -(-(upper - lower) // step))
        with self.budget.inside(node):
            if trips > 1 and not node.carried:
                out += self._pieces(node, lower, step, trips)
            else:
                self.budget.foresee(node, trips)
                self._one_by_one(node, range(lower, upper, step), out)

    def _one_by_one(self, node: pto.For, values: Sequence[int], out: list[Node]) -> None:
        """Walk every trip, as each gets what the one before it hands on."""
        carried = tuple(self.environment[name] for name in node.initial)
        results: list[tuple[Value, ...]] = [carried]
        out += fold(self._trips(node, values, results))
        self._bind(node.results, results[0])

    def _trips(self, node: pto.For, values: Sequence[int], results: list[tuple[Value, ...]]) -> Iterator[Block]:
        for value in values:
            self._bind(node.carried, results[0])
            block, results[0] = self._trip(node, Scalar(value))
            yield block

    def _pieces(self, node: pto.For, lower: int, step: int, trips: int) -> list[Node]:
        """Return a loop that carries nothing, walked no further than its trips differ."""
        saved = dict(self.environment)

        def walk(trip: int, loop: int | None, period: int) -> Block:
            slopes = None if loop is None else {loop: step * period}
            if loop is not None and repeats_itself(node, self.repeating):
                self.loops.repeat(loop)
            return self._trip(node, Scalar(lower + trip * step, slopes))[0]

        try:
            return Pieces(trips, walk, self.loops).nodes()
        finally:
            self.environment = saved

    def _trip(self, node: pto.For, variable: Scalar) -> tuple[Block, tuple[Value, ...]]:
        self.budget.spend()
        self.environment[node.variable] = variable
        body: list[Node] = []
        self._keep_books(node, "loop", "loop", body)
        yielded = self.walk(node.body, body)
        return Block(tuple(body)), yielded

    # ------------------------------------------------------------------------------------------------------ values

    def _bind(self, names: Sequence[str], values: Sequence[Value]) -> None:
        for name, value in zip(names, values, strict=True):
            self.environment[name] = value

    def _scalar(self, name: str) -> Scalar:
        value = self.environment[name]
        assert isinstance(value, Scalar)
        return value

    def _constant(self, name: str) -> int:
        """Return an integer that something is decided by."""
        return int(self._number(name))

    def _number(self, name: str) -> int | float:
        """Return a number that takes part in a computation."""
        scalar = self._scalar(name)
        if not scalar.constant:
            raise self.loops.refusal(scalar)
        return scalar.value

    def _extent(self, stated: int | None, operand: str | None) -> int:
        if operand is not None:
            given = self._constant(operand)
            if given < 0 or (stated is not None and stated != given):
                raise TileError(f"valid extent {given} where the type says {'?' if stated is None else stated}")
            return given
        assert stated is not None
        return stated

    def _tile(self, name: str) -> Tile:
        handle = self.environment[name]
        assert isinstance(handle, TileHandle)
        return handle.tile

    # ------------------------------------------------------------------------------------------------------ output

    def _keep_books(self, node: pto.Operation, work: str, text: str, out: list[Node]) -> None:
        self._issue(node, Label(text, text, Role.BOOKKEEPING), self.lowerer.scalar_work(work), out)

    def _issue(self, node: pto.Operation, label: Label, operation: Node, out: list[Node]) -> None:
        self._emit(node, label, LoweredInstruction(Block((operation,))), out)

    def _emit(self, node: pto.Operation, label: Label, lowered: LoweredInstruction, out: list[Node]) -> None:
        number = self.numbers.get(id(node))
        if number is None:
            number = self.numbers[id(node)] = len(self.instructions)
            self.instructions.append(label.instruction(main_pipe(lowered.body), node.span))
        for warning in lowered.warnings:
            self.warnings[warning.at(node.span)] = None
        out.append(Lowered(number, lowered.body, lowered.accesses, lowered.shortcut))
