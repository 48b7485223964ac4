"""The protocol between program execution and a mechanism, and properties of a program's structure before the walk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from castsim.execution.input_data import MAKE_SCRATCH, TOOLCHAIN, ArgumentUse, ProgramChoice
from castsim.execution.interpreter.rerolling import DependentScalar, LoopDependence
from castsim.execution.run_limits import walk_limit
from castsim.execution.tree import (
    Access,
    Block,
    CastTiles,
    Instruction,
    InstructionRole,
    Lowered,
    Operation,
    Part,
    ResolvedTileOp,
    ScalarElement,
    Tile,
    TileCast,
    TileTransfer,
    elements,
)
from castsim.isa.dataclass import dataclass, field, fields
from castsim.isa.errors import CastsimError, LimitError, ReadError, Span, Warnings, WarningText
from castsim.isa.formats import Format
from castsim.isa.pto import program as pto
from castsim.isa.pto.program import nodes
from castsim.isa.pto.statement_forms import form_of, is_older
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, text_name
from castsim.targets.dataflow import Pipes, TilePlacement


@dataclass(frozen=True, slots=True)
class LoweredInstruction:
    """The operations of one instruction, the bytes they touch, their proven overall effect, and warnings."""

    body: Block
    accesses: tuple[Access, ...] = ()
    shortcut: object | None = None
    warnings: Warnings = field(default=())
    choices: tuple[ProgramChoice, ...] = ()
    """Options that decide results which the text leaves open."""
    cast: CastTiles | None = None
    """The tiles of a cast."""


class Lowerer(Protocol):
    """A mechanism's lowering for one target. Methods are pure, except for the control register.

    All methods refuse illegal operations with an error of `castsim.isa.errors` that carries the span.
    """

    def completed(self, function: pto.Function) -> tuple[pto.Function, tuple[tuple[ProgramChoice, Span], ...]]:
        """Return a function with its assembler's additions before tile placement, and its decisions with positions."""
        ...

    def element_bits(self, fmt: Format) -> int:
        """Return the bits of one element in a tile's pitch and in pointer arithmetic."""
        ...

    def control(self) -> int | None:
        """Return the control register as left by operations, None if none outlives its operation."""
        ...

    def set_control(self, value: int | None) -> None:
        """Set the assumed control register to the result of `control`."""
        ...

    def buffer(self) -> tuple[str, int, int]:
        """Return name, allocatable bytes and alignment of the tile buffer."""
        ...

    def tile_placement(self) -> TilePlacement | None:
        """Return how tiles without addresses are kept from sharing banks, None if they are adjacent."""
        ...

    def spared_scratch(self, node: pto.Tcvt | pto.TileOperation) -> str | None:
        """Return the tmp tile of an operation that does not touch it, None if there is none."""
        ...

    def check_tile(self, tile: Tile, span: Span) -> None:
        """Reject a tile that does not fit the buffer or the vector unit."""
        ...

    def cast(self, cast: TileCast) -> LoweredInstruction:
        """Lower one tile cast."""
        ...

    def transfer(self, transfer: TileTransfer) -> LoweredInstruction:
        """Lower one tile load or store."""
        ...

    def work(self, work: ResolvedTileOp) -> LoweredInstruction:
        """Lower one vector operation other than a cast."""
        ...

    def set_flag(self, signaller: str, waiter: str, event: int, span: Span) -> Operation:
        """Return the operation that signals a flag; pipes are named without the prefix PIPE_."""
        ...

    def wait_flag(self, signaller: str, waiter: str, event: int, span: Span) -> Operation:
        """Return the operation that waits for a flag."""
        ...

    def barrier(self, pipe: str, span: Span) -> Operation:
        """Return the barrier of one pipe, or of all (`ALL`)."""
        ...

    def scalar_work(self, kind: str) -> Operation:
        """Return the scalar unit's part in `arithmetic` or a `loop` turnaround."""
        ...

    def element(self, element: ScalarElement) -> LoweredInstruction:
        """Lower the scalar unit's access to an element."""
        ...

    def opaque(
        self,
        node: pto.Tcvt | pto.TileOperation | pto.ForeignOperation,
        cycles: int,
        reads: Sequence[Tile | Part],
        writes: Sequence[Tile | Part],
    ) -> LoweredInstruction:
        """Return the placeholder of an operation for which only pipe and bytes are known."""
        ...

    def option(self, name: str) -> int | str:
        """Return the value of a target option; KeyError if it does not exist."""
        ...

    def closing_warnings(self) -> Warnings:
        """Return the warnings about the whole program, after the walk."""
        ...


# Forms of operations that only some assemblers know.


def is_binary(node: pto.TileOperation) -> bool:
    """Return whether a column sum adds in pairs."""
    return dict(node.attributes).get("isBinary") == "true"


def check_form(node: pto.Operation, toolchain: str) -> None:
    """Reject an operation without the tmp tile that an older assembler requires.

    Raises:
        ReadError: the tmp tile is missing.
    """
    operation = VECTOR_OPERATIONS.get(node.mnemonic) if isinstance(node, pto.TileOperation) else None
    if operation is None or not isinstance(node, pto.TileOperation) or toolchain in MAKE_SCRATCH:
        return
    form = form_of(operation, node.input_types)
    if form is None or is_older(operation, form, binary=is_binary(node)):
        return
    if operation.attribute == "isBinary":
        message = f"pto.{node.mnemonic} takes isBinary and tmp only together"
    else:
        message = f"pto.{node.mnemonic} does not take these operands"
    raise ReadError(
        f"{message}; assemblers since {MAKE_SCRATCH[0]} add a tmp tile",
        span=node.span,
        legal=(*operation.spellings, f"--{TOOLCHAIN} {MAKE_SCRATCH[0]}"),
    )


# What the structure of a program tells before it is walked, and of a lowered body afterwards.


def repeats_itself(node: pto.For, repeating: dict[int, bool]) -> bool:
    """Whether, by its text, all trips of a loop without carried values are the same.

    This is true if nothing in the loop uses its variable, and no trip changes the state of the next one: the valid
    extents of a tile. `repeating` caches the answers, by the identity of the loop.
    """
    if id(node) not in repeating:
        inside = tuple(nodes(node.body))
        shaped = any(isinstance(operation, pto.SetValidShape) for operation in inside)
        repeating[id(node)] = not shaped and not any(node.variable in _words(operation) for operation in inside)
    return repeating[id(node)]


def reads_memory(body: Sequence[pto.Operation]) -> bool:
    """Return whether the scalar unit reads elements of memory or of tiles in a region."""
    return any(isinstance(node, pto.ScalarAccess) and node.reads for node in nodes(body))


def _words(node: pto.Operation) -> Iterator[str]:
    """Yield every word that an operation holds, the names of its values among them."""
    for attribute in node.__dataclass_fields__:
        words = getattr(node, attribute)
        yield from (part for part in (words if isinstance(words, tuple) else (words,)) if isinstance(part, str))


def synchronises(body: Sequence[pto.Operation]) -> bool:
    """Return whether a program has its own flags or barriers."""
    return any(isinstance(node, pto.SetFlag | pto.WaitFlag | pto.Barrier) for node in nodes(body))


def has_flags(body: Sequence[pto.Operation]) -> bool:
    """Return whether a program has its own flags; barriers alone do not count."""
    return any(isinstance(node, pto.SetFlag | pto.WaitFlag) for node in nodes(body))


def is_inserted(node: pto.Operation) -> bool:
    """Return whether an operation is an inserted flag or barrier."""
    return isinstance(node, pto.SetFlag | pto.WaitFlag | pto.Barrier) and node.inserted


def check_level(body: Sequence[pto.Operation], level: int | None) -> None:
    """Check a program against a placement level of the vendor's tool (docs/reference/pto.md section 3.3), unless None.

    Raises:
        ReadError: a tile has an address below level 3, or lacks one at level 3.
    """
    if level is None:
        return
    for node in nodes(body):
        if not isinstance(node, pto.AllocTile | pto.AllocTiles) or (node.address is not None) == (level == 3):
            continue
        if level == 3:
            raise ReadError(f"%{node.result} has no address; every tile needs one at level 3", span=node.span)
        raise ReadError(f"unexpected 'addr' operand: the tool places tiles at level {level}", span=node.span)


def has_addresses(body: Sequence[pto.Operation]) -> bool:
    """Return whether a program places its tiles itself (level 3)."""
    return any(isinstance(node, pto.AllocTile | pto.AllocTiles) and node.address is not None for node in nodes(body))


def main_pipe(body: Block) -> str:
    """Return the main pipe: that of the last operation outside the scalar unit."""
    pipes = [element.pipe for element in elements(body) if not isinstance(element, Lowered)]
    busy = [pipe for pipe in pipes if pipe != bare(pto.Pipe.S)]
    return busy[-1] if busy else bare(pto.Pipe.S)


def bare(pipe: pto.Pipe) -> str:
    """Return a pipe's name without the prefix PIPE_."""
    return pipe.name


# How much a walk may take: trips, and statements inside loops; outside of them the text itself is the limit.


@dataclass(slots=True)
class Budget:
    """The rest of a limit, and the active loops, outermost first, each with the rest at its start."""

    limit: int
    left: int = field(init=False)
    loops: list[tuple[pto.For | pto.While, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.left = self.limit

    def spend(self) -> None:
        """Deduct one trip, or one of its statements.

        Raises:
            LimitError: nothing is left; the error has the position of the innermost loop that took most of it at once.
        """
        if not self.loops:
            return
        self.left -= 1
        if self.left < 0:
            most = [node for node, before in self.loops if 2 * (before - self.left) > self.limit]
            raise self._spent((most or [self.loops[0][0]])[-1])

    def foresee(self, node: pto.For, trips: int) -> None:
        """Reject a loop whose trips must all be walked if there are too many.

        Raises:
            LimitError: there are too many.
        """
        statements = sum(not isinstance(operation, pto.Yield) and not is_inserted(operation) for operation in node.body)
        if trips * (1 + statements) > self.left:
            raise self._spent(node)

    @contextmanager
    def inside(self, node: pto.For | pto.While) -> Iterator[None]:
        """Attribute the walk inside to a loop."""
        self.loops.append((node, self.left))
        yield
        self.loops.pop()

    def _spent(self, node: pto.For | pto.While) -> LimitError:
        return walk_limit(self.limit, "trips and statements of this loop that have to be walked one by one", node.span)


@dataclass(slots=True)
class Walk:
    """A walk through one function in program order: its values by name, and its limit.

    Subclasses define the effect of an operation (`step`) and the work of a trip (`begin_trip`).
    """

    budget: Budget
    environment: dict[str, object] = field(default_factory=dict)
    arguments: dict[str, ArgumentUse] = field(default_factory=dict)
    warnings: dict[WarningText, None] = field(default_factory=dict)
    loops: LoopDependence = field(default_factory=LoopDependence)

    def step(self, node: pto.Operation) -> None:
        """Execute one operation."""
        raise NotImplementedError

    def begin_trip(self, node: pto.For | pto.While) -> None:
        """Process the beginning of a trip."""

    def walk(self, body: Sequence[pto.Operation]) -> tuple[object, ...]:
        """Walk a region and return its yielded values."""
        for node in body:
            if isinstance(node, pto.Yield | pto.Return | pto.Condition):
                return tuple(self.environment[name] for name in node.values)
            try:
                self.step(node)
            except CastsimError as error:
                raise error.at(node.span) from None
            if not is_inserted(node):
                self.budget.spend()
        return ()

    def branch(self, node: pto.If) -> None:
        """Walk the region that the condition selects."""
        taken = node.then_body if self.constant(node.condition) else node.else_body
        self.bind(node.results, self.walk(taken))

    def for_trips(self, node: pto.For, values: Sequence[int]) -> Iterator[None]:
        """Walk the trips of a loop one by one, with the values carried from the previous one."""
        carried = tuple(self.environment[name] for name in node.initial)
        for value in values:
            self.bind(node.carried, carried)
            carried = self.trip(node, DependentScalar(value))
            yield
        self.bind(node.results, carried)

    def trip(self, node: pto.For, variable: DependentScalar) -> tuple[object, ...]:
        """Walk one trip; return its yielded values."""
        self.budget.spend()
        self.environment[node.variable] = variable
        self.begin_trip(node)
        return self.walk(node.body)

    def while_trips(self, node: pto.While) -> Iterator[None]:
        """Walk every trip, because its condition is known only then; the last time only the first region."""
        state, goes_on, last = tuple(self.environment[name] for name in node.initial), True, node.before[-1]
        assert isinstance(last, pto.Condition)
        while goes_on:
            self.budget.spend()
            self.bind(node.carried, state)
            self.begin_trip(node)
            state = self.walk(node.before)
            goes_on = bool(self.constant(last.condition))
            if goes_on:
                self.bind(node.arguments, state)
                state = self.walk(node.after)
            yield
        self.bind(node.results, state)

    def trip_values(self, node: pto.For) -> tuple[range, int]:
        """Return the values of a loop's variable, and their number: `len` ends at 2**63.

        Raises:
            ReadError: the step never ends the loop.
        """
        lower, upper, step = (self.constant(name) for name in (node.lower, node.upper, node.step))
        if step <= 0:
            raise ReadError(f"scf.for with step {step} never ends; the step must be positive", span=node.span)
        return range(lower, upper, step), max(0, -(-(upper - lower) // step))

    def bind(self, names: Sequence[str], values: Sequence[object]) -> None:
        """Bind values to names."""
        self.environment.update(zip(names, values, strict=True))

    def scalar(self, name: str) -> DependentScalar:
        """Return the value of a scalar."""
        value = self.environment[name]
        assert isinstance(value, DependentScalar)
        return value

    def constant(self, name: str) -> int:
        """Return an integer on which a decision depends."""
        return int(self.scalar(name).value)


# What reports call an instruction, beside the facts that they go by.


@dataclass(frozen=True, slots=True)
class Label:
    """The label of an instruction: its text, mnemonic, role in reports, format of its work, and casts."""

    text: str
    mnemonic: str
    role: InstructionRole = InstructionRole.WORK
    element: str | None = None
    casts: tuple[tuple[str, str], ...] = ()
    inserted: bool = False
    spelling: str = ""

    def instruction(self, pipe: str, span: Span) -> Instruction:
        """Return the instruction at a position, with its main pipe."""
        return Instruction(
            pipe=pipe, span=span, **{attribute.name: getattr(self, attribute.name) for attribute in fields(self)}
        )


def order_label(node: pto.SetFlag | pto.WaitFlag | pto.Barrier) -> Label:
    """Return the report label of a flag or barrier; that of an inserted one includes its spelling in a program."""
    if isinstance(node, pto.Barrier):
        name, text = "barrier", f"barrier {bare(node.pipe)}"
    else:
        name = "set_flag" if isinstance(node, pto.SetFlag) else "wait_flag"
        text = (
            f"{name} {bare(node.src)} -> {bare(node.dst)} id {node.event if node.number is None else f'%{node.number}'}"
        )
    return Label(text, name, inserted=node.inserted, spelling=order_text(node) if node.inserted else "")


def order_text(node: pto.SetFlag | pto.WaitFlag | pto.Barrier) -> str:
    """Return a flag or barrier in program spelling."""
    if isinstance(node, pto.Barrier):
        return f"pto.barrier <{node.pipe}>"
    name = "set_flag" if isinstance(node, pto.SetFlag) else "wait_flag"
    return f"pto.{name}[<{node.src}>, <{node.dst}>, <EVENT_ID{node.event}>]"


def cast_label(cast: TileCast) -> Label:
    """Return the report label of a cast: its formats, and the rounding mode if it names one."""
    pair = (cast.src.format.name, cast.dst.format.name)
    mode = f" {cast.rounding.name}" if cast.rounding is not None else ""
    return Label(f"tcvt {pair[0]} -> {pair[1]}{mode}", "tcvt", casts=(pair,))


def work_label(work: ResolvedTileOp, name: str) -> Label:
    """Return the report label of a tile operation: its name in the text, element type and extents."""
    shown = work.sources[0] if work.sources else work.dst
    mode = f" {work.mode}" if work.mode else ""
    text = f"{name} {shown.format.name} {shown.valid_rows} x {shown.valid_cols}{mode}"
    return Label(text, name, element=shown.format.name)


# Which pipe an operation takes, also those of the matrix unit that nothing is known of but that.

_GATHERS = ("tgather", "tgatherb", "tscatter", "mgather", "mscatter")
"""Operations that make the tool keep all flags."""

_MOVES = {
    ("mat", "left"): pto.Pipe.MTE1,
    ("mat", "right"): pto.Pipe.MTE1,
    ("mat", "bias"): pto.Pipe.MTE1,
    ("mat", "scaling"): pto.Pipe.FIX,
    ("vec", "mat"): pto.Pipe.FIX,
}
"""Movements between memories: writing the accumulator is a product, reading it is FIX, all others are the vector
unit's."""


def gathers(node: pto.Operation) -> bool:
    """Return whether an operation is a gather or scatter."""
    return isinstance(node, pto.TileOperation) and text_name(node.mnemonic) in _GATHERS


def pipe_of(node: pto.Tcvt | pto.TileOperation, pipes: Pipes) -> str | None:
    """Return the pipe of an operation; None if the target has no such pipe (docs/reference/pto.md section 5.1)."""
    source, destination = _locations(node)
    if isinstance(node, pto.TileOperation):
        if node.mnemonic == "tload":
            return pipes.load
        if node.mnemonic == "tstore" and source != "acc":
            return pipes.store
        if _is_scalar(node):
            return pipes.scalar
    pipe = _matrix_pipe(source, destination)
    if pipe is None:
        return pipes.vector
    name = bare(pipe)
    return name if name in pipes.others else None


def _is_scalar(node: pto.TileOperation) -> bool:
    """Return whether the tool assigns an operation to the scalar unit.

    With a scratch tile it runs on the vector unit, and is ordered there, regardless of the tool.
    """
    operation = VECTOR_OPERATIONS.get(node.mnemonic)
    if operation is None or not operation.scalar_unit:
        return False
    return not any(isinstance(kind, pto.TileType) for kind in node.input_types)


def _matrix_pipe(source: str, destination: str) -> pto.Pipe | None:
    if destination == "acc":
        return pto.Pipe.M
    return pto.Pipe.FIX if source == "acc" else _MOVES.get((source, destination))


def _locations(node: pto.Tcvt | pto.TileOperation) -> tuple[str, str]:
    """Return the memories of the first tile that is read and the first that is written, empty where there is none."""
    if isinstance(node, pto.Tcvt):
        return node.src_type.location, node.dst_type.location
    sides = (node.input_types, node.output_types)
    locations = [[kind.location for kind in kinds if isinstance(kind, pto.TileType)] for kinds in sides]
    return locations[0][0] if locations[0] else "", locations[1][0] if locations[1] else ""
