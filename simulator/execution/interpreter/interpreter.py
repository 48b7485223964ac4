"""The walk of a `.pto` program: control flow and addresses first; tile instructions are lowered when reached.

A loop without carried values is walked as far as its trips are not known to be alike (`rerolling.Pieces`): where its
variable reaches only view offsets, and those affinely, that is three trips. All other loops are walked trip by
trip, and runs of equal trips folded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeGuard

from castsim.execution.input_data import TOOLCHAIN, ArgumentUse, ProgramChoice
from castsim.execution.interpreter.arguments import (
    ArgumentPointer,
    TileHandle,
    View,
    argument_use,
    bind_arguments,
    make_view,
    partition,
    use_in_values,
    with_extents,
)
from castsim.execution.interpreter.lowerer import (
    Budget,
    Label,
    LoweredInstruction,
    Lowerer,
    Walk,
    bare,
    cast_label,
    check_form,
    main_pipe,
    order_label,
    reads_memory,
    repeats_itself,
    synchronises,
    work_label,
)
from castsim.execution.interpreter.memory import Accesses, Memory, ReadElement, deciding
from castsim.execution.interpreter.rerolling import DependentError, DependentScalar, Pieces, fold
from castsim.execution.interpreter.scalar_values import SATURATE, constant, evaluate
from castsim.execution.interpreter.tile_allocation import (
    TileMaker,
    TileSlots,
    alias_tile,
    check_dense,
    foreign_tile,
    is_foreign,
    is_matrix_work,
    part_move,
    resolve_work,
    tile_of_values,
    unsupported,
)
from castsim.execution.interpreter.vector_unit import BytePointer
from castsim.execution.run_limits import MAX_WALK
from castsim.execution.tree import (
    Block,
    Instruction,
    InstructionRole,
    Lowered,
    Node,
    Part,
    Tile,
    TileCast,
    TileTransfer,
    Tree,
)
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import IllegalError, ReadError, Span, WarningKind, Warnings, WarningText, closest
from castsim.isa.formats import Format, format_named
from castsim.isa.pto import program as pto
from castsim.isa.pto.program import nodes
from castsim.isa.pto.statement_reader import FollowUpError
from castsim.isa.pto.value_types import element_format
from castsim.isa.pto.vector_operations import ALIASES, PART_MOVES, PRINT, SUPPORTED, TRANSFERS, text_name

# Operations of which only the pipe and the bytes are known: the matrix unit's, those between cores, and what a run
# takes for such.
#
# A placeholder stands in for their time. What they write is not computed.

Opaque = pto.Tcvt | pto.TileOperation | pto.ForeignOperation
Cycles = Mapping[str, int]
"""The assumed cycles of operations, by their names without `pto.`; others take none."""


def name_of(node: Opaque) -> str:
    """Return the name of an operation without its dialect."""
    return "tcvt" if isinstance(node, pto.Tcvt) else node.mnemonic


def is_opaque(node: pto.Operation, named: Cycles) -> TypeGuard[Opaque]:
    """Return whether an operation is opaque: always, or because it is not modelled and in `named`."""
    if isinstance(node, pto.ForeignOperation):
        return True
    if isinstance(node, pto.Tcvt):
        return is_matrix_work(node)
    if not isinstance(node, pto.TileOperation):
        return False
    return is_matrix_work(node) or (text_name(node.mnemonic) not in SUPPORTED and node.mnemonic in named)


def check_named(body: Sequence[pto.Operation], named: Cycles) -> None:
    """Reject names that are not opaque operations of a program.

    Raises:
        ReadError: a name is not.
    """
    if not named:
        return
    names = {name_of(node) for node in nodes(body) if is_opaque(node, named)}
    for name in named:
        if name not in names:
            used = {node.mnemonic for node in nodes(body) if isinstance(node, pto.TileOperation)}
            why = "is modelled" if name in used else "is not in the program"
            near = closest(name, sorted(names)) or sorted(names)
            raise ReadError(
                f"--opaque {name}: pto.{name} {why}", legal=[f"--opaque {candidate}=CYCLES" for candidate in near]
            )


@dataclass(slots=True)
class OpaqueWork:
    """The opaque operations of one walk; `cycles` are their assumed cycles."""

    lowerer: Lowerer
    cycles: Cycles
    _popped: dict[tuple[int, str], Tile] = field(default_factory=dict)
    """The tiles from another core, by their operations; they are at the end of the buffer."""

    def lower(self, node: Opaque, values: Mapping[str, object]) -> tuple[Label, LoweredInstruction]:
        """Return the report label of an operation, and its placeholder."""
        name = name_of(node)
        cycles = self.cycles.get(name, 0)
        reads, writes = (list(_places(names, values)) for names in _ends(node))
        if isinstance(node, pto.ForeignOperation):
            writes = [tile for (key, _), tile in self._popped.items() if key == id(node)]
        taken = f"it counts as {cycles} cycles" if cycles else "no cycles are counted for it"
        warning = WarningText(WarningKind.UNTIMED, f"pto.{name} {_reason(node)}: opaque, {taken}")
        lowered = LoweredInstruction(Block(()))
        if name not in ALIASES:
            lowered = self.lowerer.opaque(node, cycles, reads, writes)
        return Label(f"{name} opaque", name, InstructionRole.OPAQUE), replace(lowered, warnings=(warning,))

    def alias(self, node: pto.TileOperation, source: Tile) -> Tile:
        """Return the tile of another type that a treshape or bitcast defines on a tile of the matrix unit."""
        (kind,) = node.output_types
        assert isinstance(kind, pto.TileType)
        if kind.location != "vec":
            return foreign_tile(node.outputs[0], kind, kind.valid_rows or 0, kind.valid_cols or 0)
        return alias_tile(node, source, self.lowerer.element_bits)

    def results(
        self, node: pto.ForeignOperation, unknown: Callable[[pto.ForeignOperation, str], DependentScalar]
    ) -> Iterator[tuple[str, DependentScalar | TileHandle]]:
        """Yield the results of an operation between cores: tiles get bytes, scalars are `unknown`."""
        for name, kind in zip(node.results, node.result_types, strict=True):
            tile = TileHandle(self._place(node, name, kind)) if isinstance(kind, pto.TileType) else None
            yield name, tile or unknown(node, name)

    def _place(self, node: pto.ForeignOperation, name: str, kind: pto.TileType) -> Tile:
        popped = self._popped.get((id(node), name))
        if popped is not None:
            return popped
        rows, cols = (
            whole if extent is None else extent
            for whole, extent in ((kind.rows, kind.valid_rows), (kind.cols, kind.valid_cols))
        )
        if kind.location != "vec":
            return foreign_tile(name, kind, rows, cols)
        fmt = format_named(kind.element)
        bits = self.lowerer.element_bits(fmt)
        _, capacity, alignment = self.lowerer.buffer()
        end = min((tile.address for tile in self._popped.values()), default=capacity)
        size = kind.rows * kind.cols * bits // 8
        address = max(0, (end - size) // alignment * alignment)
        tile = self._popped[id(node), name] = Tile(name, fmt, kind, address, rows, cols, bits)
        if not is_foreign(kind):
            self.lowerer.check_tile(tile, node.span)
        return tile


def _reason(node: Opaque) -> str:
    if isinstance(node, pto.ForeignOperation):
        return "belongs to several cores"
    return "belongs to the matrix unit" if is_matrix_work(node) else "is not modelled"


def _ends(node: Opaque) -> tuple[Sequence[str], Sequence[str]]:
    """Return the names that an operation reads and those that it writes."""
    if isinstance(node, pto.ForeignOperation):
        return node.operands, ()
    if isinstance(node, pto.Tcvt):
        return (node.src,), (node.dst, *([node.tmp] if node.tmp is not None else []))
    return node.inputs, () if node.mnemonic in ALIASES else node.outputs


def _places(names: Sequence[str], values: Mapping[str, object]) -> Iterator[Tile | Part]:
    """Yield the tiles of the vector unit's buffer and the parts of arguments behind names."""
    for name in names:
        value = values.get(name)
        if isinstance(value, Part):
            yield value
        elif isinstance(value, TileHandle) and value.tile.type.location == "vec":
            yield value.tile


# The operands of an operation as what they stood for when it was walked.


def named_operands(
    node: pto.Operation, environment: Mapping[str, object], element_bits: Callable[[Format], int]
) -> tuple[tuple[str, Tile | Part], ...]:
    """Return the tiles and parts of arguments that an operation names; pairs as two elements."""
    names: tuple[str | None, ...]
    match node:
        case pto.Tcvt():
            names = (node.src, node.dst, node.tmp)
        case pto.TileOperation():
            names = (*node.inputs, *node.outputs)
        case pto.ScalarAccess():
            names = (node.base,)
        case _:
            return ()
    operands: list[tuple[str, Tile | Part]] = []
    for name in names:
        value = None if name is None else environment.get(name)
        if name is not None and isinstance(value, TileHandle):
            operands.append((name, tile_of_values(value.tile, element_bits)))
        elif name is not None and isinstance(value, Part):
            operands.append((name, value))
    return tuple(operands)


class _Values(dict[str, object]):
    """The values met, by name; in a function with omitted statements, some may be missing."""

    def __missing__(self, name: str) -> object:
        raise FollowUpError(f"%{name} is unknown, because its definition was skipped")


@dataclass(slots=True, kw_only=True)
class Interpreter(Walk):
    """A walk through one function of tile operations: the instructions issued so far, and every value by its name."""

    function: pto.Function
    lowerer: Lowerer
    cycles: Cycles = field(default_factory=dict)
    """The assumed cycles of opaque operations."""
    environment: dict[str, object] = field(default_factory=_Values)
    instructions: list[Instruction] = field(default_factory=list)
    out: list[Node] = field(default_factory=list)
    """Operations that the current block has issued."""
    choices: dict[tuple[ProgramChoice, Span], None] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)
    repeating: dict[int, bool] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)
    accesses: Accesses = field(init=False)
    tiles: TileMaker = field(init=False)
    opaque: OpaqueWork = field(init=False)

    def __post_init__(self) -> None:
        active = reads_memory(self.function.body or ())
        self.accesses = Accesses(self.lowerer, self.loops, self.memory, self.arguments, active)
        self.tiles = TileMaker(self.function, self.lowerer)
        self.opaque = OpaqueWork(self.lowerer, self.cycles)
        if self.tiles.warning is not None:
            self.warnings[self.tiles.warning] = None

    # ------------------------------------------------------------------------------------------------- operations

    def step(self, node: pto.Operation) -> None:
        """Execute one operation; append what it issues to `out`."""
        match node:
            case pto.Constant():
                self.environment[node.result] = DependentScalar(constant(node.value, node.type.name))
            case pto.AllocTile() | pto.AllocTiles():
                self._allocate(node, id(node))
            case pto.Subview():
                self.environment[node.result] = TileHandle(
                    self.tiles.part(node, self._tile(node.source), self.constant)
                )
            case pto.GetTile():
                slots = self.environment[node.source]
                assert isinstance(slots, TileSlots)
                tile = slots.tile(node.result, self.constant(node.slot), node.span)
                self.environment[node.result] = TileHandle(tile)
            case pto.MakeView():
                self.environment[node.result] = self._make_view(node)
            case pto.PartitionView():
                self.environment[node.result] = self._partition(node)
            case pto.SetValidShape():
                self._set_valid_shape(node)
            case pto.AddPointer():
                pointer = self.environment[node.pointer]
                assert isinstance(pointer, ArgumentPointer)
                self.environment[node.result] = self.accesses.pointer(node, pointer, self.scalar(node.offset))
            case _:
                self._act(node)

    def _act(self, node: pto.Operation) -> None:
        """Execute a statement that issues operations or decides the path."""
        match node:
            case pto.Arith() | pto.Compare() | pto.Convert():
                self.environment[node.result] = evaluate(node, self.scalar, self.loops, self._beyond)
                self._keep_books(node, "arithmetic", "index arithmetic")
            case pto.Tcvt() | pto.TileOperation() | pto.ForeignOperation() if is_opaque(node, self.cycles):
                self._pass_over(node)
            case pto.Tcvt():
                self._cast(node)
            case pto.TileOperation():
                self._tile_operation(node)
            case pto.ScalarAccess():
                self._access(node)
            case pto.CacheOperation():
                fence = node.mnemonic == "fence.barrier_all"
                operation = self.lowerer.barrier("ALL", node.span) if fence else self.lowerer.scalar_work("arithmetic")
                self._issue(node, Label(node.mnemonic, node.mnemonic, InstructionRole.BOOKKEEPING), operation)
            case pto.SetFlag() | pto.WaitFlag() | pto.Barrier():
                self._synchronise(node)
            case pto.For():
                self._loop(node)
            case pto.While():
                self._while(node)
            case pto.If():
                self.branch(node)
            case pto.Section():
                self.walk(node.body)
            case _:
                raise AssertionError(f"unknown node {type(node).__name__}")

    def _allocate(self, node: pto.AllocTile | pto.AllocTiles, key: int) -> None:
        handle = self.tiles.allocate(node, key, self.constant)
        self.environment[node.result] = handle if isinstance(handle, TileSlots) else TileHandle(handle)

    def _make_view(self, node: pto.MakeView) -> View:
        pointer = self._argument(node.pointer)
        shape = tuple(self.constant(name) for name in node.shape)
        strides = tuple(self.constant(name) for name in node.strides)
        view = make_view(node, pointer, shape, strides)
        use = self.arguments[pointer.name]
        use.see_view(shape, strides, node.span, pointer.offset)
        use.follows_reads |= any(self.scalar(name).reads for name in node.shape)
        return view

    def _argument(self, name: str) -> ArgumentPointer:
        """Return a pointer to an argument's elements; beside vector instructions pointers count bytes."""
        pointer = self.environment[name]
        if isinstance(pointer, BytePointer):
            if pointer.argument is None:
                raise IllegalError(f"%{name} points into the buffer", legal=("a view of an argument",))
            return ArgumentPointer(pointer.argument, element_format(pointer.element), pointer.address // pointer.size)
        assert isinstance(pointer, ArgumentPointer)
        return pointer

    def _partition(self, node: pto.PartitionView) -> Part:
        view = self.environment[node.view]
        assert isinstance(view, View)
        offsets = [self.scalar(name) for name in node.offsets]
        for offset in offsets:
            self.accesses.decide(offset)
            if offset.periods is not None:
                raise self.loops.refusal(offset)
        sizes = [self.constant(name) for name in node.sizes]
        return partition(node, view, [int(offset.value) for offset in offsets], sizes)

    def _access(self, node: pto.ScalarAccess) -> None:
        base = self.environment[node.base]
        assert isinstance(base, ArgumentPointer | TileHandle)
        value = None if node.reads else self.scalar(node.value)
        label, lowered, read = self.accesses.access(node, base, self.scalar(node.offset), value)
        if read is not None:
            self.environment[node.value] = read
        self._emit(node, label, lowered)

    def _beyond(self, node: pto.Convert, text: str) -> bool:
        """Return whether a float that its integer type cannot hold saturates; if so, with a warning."""
        if self.lowerer.option("scalar_float_to_integer") != SATURATE:
            return False
        self.warnings[WarningText(WarningKind.SCALAR, text, node.span)] = None
        return True

    def _cast(self, node: pto.Tcvt) -> None:
        if node.defines_dst:
            kind = node.dst_type
            self._allocate(pto.AllocTile(node.dst, kind, span=node.span), id(node))
        tmp = self._tile(node.tmp) if node.tmp is not None else None
        src, dst = (tile_of_values(self._tile(name), self.lowerer.element_bits) for name in (node.src, node.dst))
        cast = TileCast(src, dst, tmp, node.rounding, node.saturation, node.span)
        self._emit(node, cast_label(cast), self.lowerer.cast(cast))

    def _tile_operation(self, node: pto.TileOperation) -> None:
        if text_name(node.mnemonic) not in SUPPORTED:
            raise unsupported(node)
        if node.mnemonic == PRINT:
            text = f"pto.{PRINT} is not modelled: it prints nothing and counts no cycles"
            warning = WarningText(WarningKind.UNTIMED, text)
            self._emit(node, Label(PRINT, PRINT), LoweredInstruction(Block(()), warnings=(warning,)))
        elif node.mnemonic in TRANSFERS:
            self._transfer(node)
        elif node.mnemonic in ALIASES:
            check_dense(node, self._tile(node.inputs[0]))
            tile = alias_tile(node, self._tile(node.inputs[0]), self.lowerer.element_bits)
            self.lowerer.check_tile(tile, node.span)
            self.environment[node.outputs[0]] = TileHandle(tile)
        else:
            check_form(node, str(self.lowerer.option(TOOLCHAIN)))
            if node.mnemonic in PART_MOVES:
                work = part_move(node, self._tile, self.constant)
            else:
                work = resolve_work(node, self._tile, self._number)
            self._emit(node, work_label(work, node.mnemonic), self.lowerer.work(work))

    def _pass_over(self, node: Opaque) -> None:
        """Replace an operation by a placeholder, because its effect is unknown."""
        if isinstance(node, pto.ForeignOperation):
            self.environment.update(self.opaque.results(node, self.accesses.unknown))
        elif isinstance(node, pto.Tcvt) and node.defines_dst:
            self._allocate(pto.AllocTile(node.dst, node.dst_type, span=node.span), id(node))
        elif isinstance(node, pto.TileOperation) and node.mnemonic in ALIASES:
            tile = self.opaque.alias(node, self._tile(node.inputs[0]))
            self.environment[node.outputs[0]] = TileHandle(tile)
        elif isinstance(node, pto.TileOperation):
            for name in node.outputs:
                if isinstance(part := self.environment.get(name), Part):
                    self.arguments[part.argument].stored = True
        self._emit(node, *self.opaque.lower(node, self.environment))

    def _transfer(self, node: pto.TileOperation) -> None:
        load = node.mnemonic == "tload"
        ends = (node.inputs, node.outputs) if load else (node.outputs, node.inputs)
        part, handle = (self.environment[names[0]] if len(names) == 1 else None for names in ends)
        if not isinstance(part, Part) or not isinstance(handle, TileHandle):
            raise ReadError(
                f"pto.{node.mnemonic} needs one partition and one tile",
                span=node.span,
                legal=("ins(%part) outs(%tile)" if load else "ins(%tile) outs(%part)",),
            )
        use = self.arguments[part.argument]
        if load and not use.stored:
            use.needs_input = True
        use.stored |= not load
        lowered = self.lowerer.transfer(TileTransfer(handle.tile, part, load, node.span))
        label = Label(f"{node.mnemonic} {part.format.name} {part.rows} x {part.cols}", node.mnemonic)
        self._emit(node, label, lowered)

    def _set_valid_shape(self, node: pto.SetValidShape) -> None:
        if self.loops:
            raise DependentError
        handle = self.environment[node.tile]
        assert isinstance(handle, TileHandle)
        tile = handle.tile
        rows, cols = self.constant(node.rows), self.constant(node.cols)
        changed = with_extents(node, tile, rows, cols)
        if not is_foreign(tile.type):
            self.lowerer.check_tile(changed, node.span)
        handle.tile = changed

    def _synchronise(self, node: pto.SetFlag | pto.WaitFlag | pto.Barrier) -> None:
        if isinstance(node, pto.Barrier):
            operation = self.lowerer.barrier(bare(node.pipe), node.span)
        else:
            make = self.lowerer.set_flag if isinstance(node, pto.SetFlag) else self.lowerer.wait_flag
            event = node.event if node.number is None else self.constant(node.number)
            operation = make(bare(node.src), bare(node.dst), event, node.span)
        self._issue(node, order_label(node), operation)

    # ---------------------------------------------------------------------------------------------- control flow

    def _loop(self, node: pto.For) -> None:
        values, trips = self.trip_values(node)
        with self.budget.inside(node):
            if trips > 1 and not node.carried and not (self.accesses.active and reads_memory(node.body)):
                self.out += self.accesses.sampled(lambda: self._pieces(node, values, trips))
            else:
                self.budget.foresee(node, trips)
                self.out += fold(self._blocks(self.for_trips(node, values)))

    def _while(self, node: pto.While) -> None:
        with self.budget.inside(node):
            self.out += fold(self._blocks(self.while_trips(node)))

    def begin_trip(self, node: pto.For | pto.While) -> None:
        """Issue the scalar unit's work for a trip."""
        self._keep_books(node, "loop", "loop")

    def _blocks(self, trips: Iterator[None]) -> Iterator[Block]:
        """Yield what each trip issues."""
        around = self.out
        try:
            self.out = []
            for _ in trips:
                yield Block(tuple(self.out))
                self.out = []
        finally:
            self.out = around

    def _pieces(self, node: pto.For, values: range, trips: int) -> list[Node]:
        """Return a loop without carried values, walked only as far as its trips differ."""
        saved, control, around = _Values(self.environment), self.lowerer.control(), self.out

        def walk(trip: int, loop: int | None, period: int) -> Block:
            if not trip:  # perhaps once more, behind a later one
                self.lowerer.set_control(control)
            slopes = None if loop is None else {loop: values.step * period}
            if loop is not None and repeats_itself(node, self.repeating):
                self.loops.repeat(loop)
            self.out = []
            self.trip(node, DependentScalar(values.start + trip * values.step, slopes))
            return Block(tuple(self.out))

        try:
            return Pieces(trips, walk, self.loops).nodes()
        finally:
            self.environment, self.out = saved, around

    # ------------------------------------------------------------------------------------------------------ values

    def constant(self, name: str) -> int:
        """Return an integer on which a decision depends."""
        self.accesses.decide(self.scalar(name))
        return int(self._number(name))

    def _number(self, name: str) -> int | float:
        """Return a number that takes part in a computation."""
        return self.accesses.constant(self.scalar(name))

    def _tile(self, name: str) -> Tile:
        handle = self.environment[name]
        assert isinstance(handle, TileHandle)
        return handle.tile

    # ------------------------------------------------------------------------------------------------------ output

    def _keep_books(self, node: pto.Operation, work: str, text: str) -> None:
        self._issue(node, Label(text, text, InstructionRole.BOOKKEEPING), self.lowerer.scalar_work(work))

    def _issue(self, node: pto.Operation, label: Label, operation: Node) -> None:
        self._emit(node, label, LoweredInstruction(Block((operation,))))

    def _emit(self, node: pto.Operation, label: Label, lowered: LoweredInstruction) -> None:
        number = self.numbers.get(id(node))
        if number is None:
            number = self.numbers[id(node)] = len(self.instructions)
            self.instructions.append(label.instruction(main_pipe(lowered.body), node.span))
        for warning in lowered.warnings:
            self.warnings[warning.at(node.span)] = None
        self.choices |= dict.fromkeys((choice, node.span) for choice in lowered.choices)
        operands = named_operands(node, self.environment, self.lowerer.element_bits)
        self.out.append(Lowered(number, lowered.body, lowered.accesses, lowered.shortcut, lowered.cast, operands))
        self.accesses.emitted(self.out[-1], lowered.accesses, by_scalar_unit=isinstance(node, pto.ScalarAccess))


# A program walked from its entry: arguments bound, walked, and what came out.


@dataclass(frozen=True, slots=True)
class Executed:
    """A walked program: the issued instructions, the required arguments, and the reads that decided its path."""

    tree: Tree
    arguments: Mapping[str, ArgumentUse]
    warnings: Warnings
    decided_by: tuple[ReadElement, ...] = ()
    numbers: Mapping[int, int] = field(default_factory=dict)
    """The instruction numbers of the tree, by the identity of the source operation."""
    choices: tuple[tuple[ProgramChoice, Span], ...] = ()
    """Options that decide what the program computes where its text leaves this open, with their places."""
    placement: str = ""
    """Placement of its tiles without addresses in the buffer (`Allocator.placement`), '' if it has none."""


def execute(
    program: pto.Program,
    function: pto.Function,
    lowerer: Lowerer,
    scalars: Mapping[str, int | float],
    *,
    cycles: Cycles | None = None,
    max_walk: int = MAX_WALK,
    memory: Memory | None = None,
) -> Executed:
    """Walk one function of a program and lower its operations.

    Args:
        program: supplies the warnings found while reading.
        function: the entry function.
        lowerer: the target's mechanism.
        scalars: values of the scalar arguments by name.
        cycles: the assumed cycles of opaque operations; others take none.
        max_walk: maximum number of trips, and statements inside loops, that are walked.
        memory: the memory that the scalar unit reads; None: it is empty, and no values are computed.

    Raises:
        ReadError: an argument has no value, placement levels are mixed, a step never ends a loop, or an element is
            read without a value.
        IllegalError, TileError, ScratchError: an instruction is refused; the error has its position.
        LimitError: the walk is too long; the error has the loop's position.
    """
    memory = memory or Memory()
    check_named(function.body or (), cycles or {})
    walker = Interpreter(
        budget=Budget(max_walk), function=function, lowerer=lowerer, cycles=cycles or {}, memory=memory
    )  # fmt: skip
    for name, value in bind_arguments(function, scalars).items():
        walker.environment[name] = value
        use = argument_use(value)
        if use is not None:
            walker.arguments[name] = use
    with_body = function.body or ()
    walker.walk(with_body)
    walker.accesses.check_views()
    for use in walker.arguments.values():
        use.follows_reads |= walker.accesses.active and not use.shapes
    memory.widen(walker.arguments)
    tree = Tree(Block(tuple(walker.out)), tuple(walker.instructions), interlocked=not synchronises(with_body))
    own = (*walker.warnings, *walker.accesses.closing_warnings())
    warnings = (*program.warnings, *own, *lowerer.closing_warnings())
    uses = {name: use_in_values(use) for name, use in walker.arguments.items()}
    return Executed(
        tree,
        uses,
        warnings,
        deciding(walker.accesses),
        walker.numbers,
        tuple(walker.choices),
        walker.tiles.allocator.placement,
    )
