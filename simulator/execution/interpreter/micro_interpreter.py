"""The walk through a micro program: control flow, scalars, pointers and transfers, in program order.

No register value decides the path, so a walk without values is complete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NoReturn

from castsim.execution.input_data import ArgumentUse
from castsim.execution.interpreter.arguments import ArgumentPointer as GlobalPointer
from castsim.execution.interpreter.arguments import bind_arguments
from castsim.execution.interpreter.interpreter import Interpreter
from castsim.execution.interpreter.lowerer import Budget, Lowerer, Walk, bare
from castsim.execution.interpreter.rerolling import DependentScalar
from castsim.execution.interpreter.scalar_values import bits_of, constant, evaluate, from_bits, width_of
from castsim.execution.interpreter.vector_unit import (
    BytePointer,
    Copy,
    CopyRegisters,
    MicroMemory,
    ReadElements,
    Value,
    VectorIssue,
    VectorUnit,
    check_buffer,
    check_place,
    resolve,
    run,
    store,
)
from castsim.execution.tree import Lowered
from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import (
    EngineError,
    IllegalError,
    Span,
    WarningKind,
    Warnings,
    WarningText,
)
from castsim.isa.formats import FORMATS, Format
from castsim.isa.pto import program as pto
from castsim.isa.pto.micro_forms import BURSTS, COPIES, LOOP_REGISTERS, OPAQUE, ROWS, SCOPES
from castsim.isa.pto.pto_scalars import CORE_NUMBERS
from castsim.isa.pto.statement_forms import PIPES
from castsim.isa.pto.value_types import (
    REGISTER_BITS,
    MicroOperation,
    PairFormat,
    PointerType,
    ScalarType,
    element_format,
)
from castsim.targets.dataflow import BLOCK_BYTES

# What micro operations contribute to the path: addresses, post-updated pointers, counts that are left.

BLOCK_ACCESSES = frozenset(("vsldb", "vsstb"))
GATHERS = frozenset(("vgather2", "vgather2_bc", "vgatherb", "vscatter"))


def buffer_access(node: MicroOperation, operands: tuple[Value, ...]) -> tuple[int | None, bool, BytePointer | None]:
    """Return the first byte that an instruction accesses, whether it updates a pointer, and that pointer.

    An instruction that updates its pointer accesses the base; the offset is the pointer's increment.
    """
    pointer = next((operand for operand in operands if isinstance(operand, BytePointer)), None)
    updates = any(isinstance(kind, PointerType) for kind in node.result_types)
    if pointer is None:
        return None, False, None
    base = operands.index(pointer)
    offsets = [int(operand.value) for operand in operands if isinstance(operand, DependentScalar)]
    if node.mnemonic in BLOCK_ACCESSES:
        further = BytePointer(pointer.argument, pointer.address + offsets[1] * BLOCK_BYTES, pointer.element)
        return (pointer if updates else further).address, updates, further
    if node.mnemonic in GATHERS:
        return pointer.address, False, None
    if node.mnemonic == "vldus":
        further = pointer.moved(offsets[0]) if offsets else pointer.moved(REGISTER_BITS // 8 // pointer.size)
        return pointer.address, updates, further
    if node.mnemonic in ("vstus", "vstas"):
        count = offsets[0] if offsets else 0
        return pointer.address, updates, pointer.moved(count)
    is_offset = base + 1 < len(operands) and isinstance(operands[base + 1], DependentScalar)
    further = pointer.moved(offsets[0]) if is_offset and offsets else pointer
    return (pointer if updates else further).address, updates, further


def left_over(node: MicroOperation, operands: tuple[Value, ...]) -> DependentScalar:
    """Return the second result of `plt_bN`: the number of remaining lanes."""
    (count,) = operands
    assert isinstance(count, DependentScalar)
    width = ROWS[node.mnemonic].width
    assert width is not None
    return DependentScalar(max(int(count.value) - REGISTER_BITS // width, 0))


def hands_on_scalar(node: MicroOperation) -> bool:
    """Return whether an instruction of the vector unit has a scalar result."""
    return any(isinstance(kind, ScalarType) for kind in node.result_types)


_TRANSFERS = frozenset((*BURSTS, *COPIES))
_TILE_LEVEL = (
    pto.AllocTile, pto.AllocTiles, pto.Subview, pto.GetTile, pto.MakeView, pto.PartitionView, pto.SetValidShape,
    pto.Tcvt, pto.TileOperation,
)  # fmt: skip
"""Statements of the tile level that may appear between vector instructions, outside vecscopes."""
_NO_EFFECT = frozenset(("dsb",))
"""Synchronisation that the order of a program already keeps here."""
_HOLDS = frozenset(("get_buf", "rls_buf"))


@dataclass(slots=True, kw_only=True)
class MicroInterpreter(Walk):
    """A walk through one function of vector instructions: every value by its name, the uses of arguments, warnings."""

    function: pto.Function
    unit: VectorUnit
    capacity: int
    control: int = 0
    """The CTRL register."""
    memory: MicroMemory | None = None
    elements: ReadElements = field(default_factory=ReadElements)
    lowerer: Lowerer | None = None
    """Lowerer of tile operations between vector instructions; None if there are none."""
    _tiles: Interpreter | None = None
    _copies: CopyRegisters = field(default_factory=CopyRegisters)
    _depth: int = 0
    _constants: set[str] = field(default_factory=set)
    """Names of the constants of the text."""
    _flags: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    _waits: dict[tuple[str, str, int], Span] = field(default_factory=dict)

    def check_flags(self) -> None:
        """Reject a wait for a flag that nothing sets.

        Raises:
            EngineError: there is such a wait; the program would never end.
        """
        for flag, count in self._flags.items():
            if count < 0:
                source, destination, event = flag
                raise EngineError(
                    f"deadlock: {destination} waits for flag {event} of {source}, which is set "
                    f"{-count} time{'s' * (count != -1)} too few",
                    span=self._waits[flag],
                )

    def step(self, node: pto.Operation) -> None:
        """Execute one operation."""
        match node:
            case pto.MicroOperation():
                self._micro(node)
            case pto.StridedStatement():
                operands = tuple(self.environment[name] for name in node.operands)
                self.control = self.unit.strided(node, operands, self.control)
            case pto.Constant() | pto.Arith() | pto.Compare() | pto.Convert():
                self._compute(node)
            case pto.AddPointer() | pto.ScalarAccess():
                self._address(node)
            case pto.SetFlag() | pto.WaitFlag() | pto.Barrier():
                self._synchronise(node)
            case pto.CacheOperation() | pto.External():
                self._outside(node)
            case pto.For():
                self._loop(node)
            case pto.While():
                self._while(node)
            case pto.If():
                self.unit.branch(node)
                self.branch(node)
            case pto.Section():
                self._section(node)
            case _ if isinstance(node, _TILE_LEVEL) and self.lowerer is not None:
                self._tile_level(node, self.lowerer)
            case _:
                self._refuse(node)

    def _compute(self, node: pto.Constant | pto.Arith | pto.Compare | pto.Convert) -> None:
        """Execute a computation of the scalar unit."""
        if isinstance(node, pto.Constant):
            self.environment[node.result] = DependentScalar(constant(node.value, node.type.name))
            self._constants.add(node.result)
        elif isinstance(node, pto.Arith) and node.operation == "select":
            self.unit.branch(node)
            taken = node.operands[1] if self.constant(node.operands[0]) else node.operands[2]
            self.environment[node.result] = self.environment[taken]
        else:
            self.environment[node.result] = evaluate(node, self.scalar, self.loops, lambda *_: False)

    def _outside(self, node: pto.CacheOperation | pto.External) -> None:
        """Execute a statement outside the unit: a function that is only declared; a fence has no effect here."""
        if isinstance(node, pto.External):
            self.unit.external(node)
            node.run(tuple(self.scalar(name).value for name in node.operands), self.arguments, self.memory, node.span)

    def _refuse(
        self,
        node: pto.Operation,
        what: str = "is not modelled in a function of vector instructions",
        legal: Sequence[str] = ("a function of tile operations alone", "one of vector instructions alone"),
    ) -> NoReturn:
        span = node.span
        raise IllegalError(f"{span.text[span.column - 1 :][: span.length]} {what}", span=span, legal=legal)

    # -------------------------------------------------------------------------------------------- tile operations

    def _tile_level(self, node: pto.Operation, lowerer: Lowerer) -> None:
        """Execute a statement of the tile level under the current CTRL; the unit receives the issued operations."""
        if self._depth:
            self._refuse(node, "is not allowed inside a vecscope", ("after the vecscope",))
        if isinstance(node, pto.AllocTile | pto.AllocTiles) and node.address is None:
            self._refuse(node, "needs an address beside vector instructions", ("addr = %value",))
        if self._tiles is None:
            self._tiles = Interpreter(
                budget=self.budget, function=self.function, lowerer=lowerer, arguments=self.arguments,
                warnings=self.warnings,
            )  # fmt: skip
        tiles = self._tiles
        tiles.environment, tiles.out = self.environment, []
        lowerer.set_control(self.control)
        tiles.step(node)
        self.control = self.control if (control := lowerer.control()) is None else control
        for lowered in tiles.out:
            assert isinstance(lowered, Lowered)
            self.unit.tile(node, lowered, tiles.instructions[lowered.instruction])

    # ------------------------------------------------------------------------------------------- micro operations

    def _micro(self, node: pto.MicroOperation) -> None:
        name = node.mnemonic
        if name in OPAQUE:
            text = f"pto.{name} is not modelled: its results are unknown and its cycles are assumed"
            self.warnings[WarningText(WarningKind.UNTIMED, text, node.span)] = None
        if name in _TRANSFERS:
            self._transfer(node)
        elif name == "castptr":
            self.environment[node.results[0]] = self._cast_pointer(node)
        elif name in LOOP_REGISTERS:
            self._copies.set(name, *(self.constant(operand) for operand in node.operands))
        elif name == "set_mov_pad_val":
            self._copies.pad = self._pattern(node.operands[0], node.operand_types[0])
        elif name in ("get_ctrl", "set_ctrl", "sbitset0", "sbitset1"):
            self._control(node)
        elif name in _HOLDS:
            self._hold(node)
        elif name not in _NO_EFFECT:
            self._vector(node)

    def _vector(self, node: pto.MicroOperation) -> None:
        operands = tuple(self.environment[name] for name in node.operands)
        address, updates, further = buffer_access(node, operands)
        given = iter(self.unit.execute(VectorIssue(node, operands, address, updates, self.control)))
        for name, kind in zip(node.results, node.result_types, strict=True):
            if isinstance(kind, pto.PointerType):
                assert further is not None
                self.environment[name] = further
            elif isinstance(kind, pto.ScalarType):
                assert hands_on_scalar(node)
                self.environment[name] = left_over(node, operands)
            else:
                self.environment[name] = next(given)

    def _cast_pointer(self, node: pto.MicroOperation) -> Value:
        value, kind = self.environment[node.operands[0]], node.result_types[0]
        if not isinstance(kind, pto.PointerType):
            assert isinstance(value, BytePointer)
            return DependentScalar(value.address)
        if isinstance(value, BytePointer):
            return BytePointer(value.argument, value.address, kind.element)
        return self.buffer_pointer(self.constant(node.operands[0]), kind.element)

    def buffer_pointer(self, address: int, element: str) -> BytePointer:
        """Return a pointer into the buffer.

        Raises:
            IllegalError: the buffer has no such byte.
        """
        if not 0 <= address < self.capacity:
            raise IllegalError(
                f"byte {address} is outside the buffer of {self.capacity}", legal=(f"0 .. {self.capacity - 1}",)
            )
        return BytePointer(None, address, element)

    def _transfer(self, node: pto.MicroOperation) -> None:
        kinds = dict(zip(node.operands, node.operand_types, strict=True))
        copy = resolve(
            node, self._pointer, self.constant, lambda name: self._pattern(name, kinds[name]), self._copies
        )  # fmt: skip
        check_buffer(copy, self.capacity)
        self._see(copy, node.span)
        self.unit.transfer(copy, node)
        if self.memory is not None:
            run(copy, self.memory)

    def _see(self, copy: Copy, span: Span) -> None:
        """Record the part of its argument that a transfer uses."""
        if 0 in copy.shape:
            return
        for side, pointer in enumerate((copy.source, copy.destination)):
            if pointer.argument is None:
                continue
            use = self.arguments[pointer.argument]
            _, end = copy.reach(side)
            bits = 4 if use.format.bits == 4 else use.format.storage_bits
            use.see_element(-(-end * 8 // bits) - 1, span)
            if copy.atomic and not use.stored:
                text = f"nothing is stored to {pointer.argument} ahead of an atomic store, which takes 0 for it"
                self.warnings[WarningText(WarningKind.OPERATION, f"{text}, unless it is given as an input", span)] = (
                    None
                )
            if side == 0 and not use.stored:
                use.needs_input = True
            use.stored |= side == 1

    def _address(self, node: pto.AddPointer | pto.ScalarAccess) -> None:
        """Move a pointer, or let the scalar unit read or write an element."""
        if isinstance(node, pto.AddPointer):
            self.environment[node.result] = self._pointer(node.pointer).moved(self.constant(node.offset))
        else:
            self._element(node)

    def _element(self, node: pto.ScalarAccess) -> None:
        if not isinstance(node.base_type, pto.PointerType):
            self._refuse(node)
        pointer = self._pointer(node.base).moved(self.constant(node.offset))
        check_place(pointer, self.capacity)
        code = b"" if node.reads else self._pattern(node.value, node.type)
        if pointer.argument is not None:
            use = self.arguments[pointer.argument]
            use.see_element(pointer.address // pointer.size, node.span)
            use.needs_input |= node.reads and not use.stored
            use.stored |= not node.reads
        self.unit.element(node, pointer, code)
        if node.reads:
            bits = self.elements.load(pointer, node.span, self.memory)
            self.environment[node.value] = DependentScalar(from_bits(bits, node.type.name))
        elif self.memory is not None:
            store(pointer, code, self.memory)

    def _control(self, node: pto.MicroOperation) -> None:
        """Read or write the CTRL register, or compute a value for it."""
        if node.mnemonic == "get_ctrl":
            self.environment[node.results[0]] = DependentScalar(self.control)
        elif node.mnemonic == "set_ctrl":
            self.control = self.constant(node.operands[0])
            self.unit.control(node, self.control)
        else:
            value, bit = (self.constant(name) for name in node.operands)
            mask = 1 << bit % 64
            self.environment[node.results[0]] = DependentScalar(
                value | mask if node.mnemonic == "sbitset1" else value & ~mask
            )

    # ---------------------------------------------------------------------------------------------- control flow

    def _section(self, node: pto.Section) -> None:
        if node.kind == "section.cube":
            raise IllegalError("castsim does not model the core of a cube section", legal=("section.vector",))
        if node.kind not in SCOPES:
            self.walk(node.body)
            return
        around = self.environment
        if node.kind == "strict_vecscope":  # which sees nothing else, and may use the names around it again
            core = {name: around[name] for name in CORE_NUMBERS}
            self.environment = core | dict(zip(node.carried, (around[name] for name in node.initial), strict=True))
        self.unit.enter(node)
        self._depth += 1
        self.walk(node.body)
        self._depth -= 1
        self.unit.leave(node)
        self.environment = around

    def _loop(self, node: pto.For) -> None:
        values, trips = self.trip_values(node)
        with self.budget.inside(node):
            self.budget.foresee(node, trips)
            if self._depth:
                self.unit.loop(node, trips, fixed=self._constants.issuperset((node.lower, node.upper, node.step)))
            for _ in self.for_trips(node, values):
                if self._depth:
                    self.unit.trip(node)

    def _while(self, node: pto.While) -> None:
        with self.budget.inside(node):
            for _ in self.while_trips(node):
                pass

    def _synchronise(self, node: pto.SetFlag | pto.WaitFlag | pto.Barrier) -> None:
        if isinstance(node, pto.Barrier):
            self.unit.synchronise(node, 0)
            return
        event = node.event if node.number is None else self.constant(node.number)
        flag = bare(node.src), bare(node.dst), event
        self.unit.synchronise(node, event)
        self._flags[flag] += 1 if isinstance(node, pto.SetFlag) else -1
        if isinstance(node, pto.WaitFlag):
            self._waits[flag] = node.span

    def _hold(self, node: pto.MicroOperation) -> None:
        pipe, word = node.word("pipe"), node.word("id")
        assert pipe is not None
        number = self.constant(node.operands[0]) if word is None else int(word)
        self.unit.hold(node, bare(PIPES[pipe]), number, release=node.mnemonic == "rls_buf")

    # ------------------------------------------------------------------------------------------------------ values

    def _pointer(self, name: str) -> BytePointer:
        value = self.environment[name]
        assert isinstance(value, BytePointer)
        return value

    def _pattern(self, name: str, kind: pto.Type) -> bytes:
        """Return the bytes of a scalar."""
        assert isinstance(kind, pto.ScalarType)
        return bits_of(self.scalar(name).value, kind.name).to_bytes(-(-width_of(kind.name) // 8), "little")


# A micro program walked from its entry: arguments bound, walked, and what they are used for.


@dataclass(frozen=True, slots=True)
class Walked:
    """The result of a walk: the uses of arguments, and warnings."""

    arguments: Mapping[str, ArgumentUse]
    warnings: Warnings


def argument_format(kind: pto.PointerType) -> Format:
    """Return the format of an argument's arrays: elements that are pairs become bytes."""
    element_type = element_format(kind.element)
    return FORMATS[f"u{element_type.storage_bits}"] if isinstance(element_type, PairFormat) else element_type


def walk_function(
    function: pto.Function,
    scalars: Mapping[str, int | float],
    unit: VectorUnit,
    capacity: int,
    max_walk: int,
    control: int = 0,
    memory: MicroMemory | None = None,
    elements: ReadElements | None = None,
    lowerer: Lowerer | None = None,
) -> Walked:
    """Walk a function of vector instructions.

    Args:
        function: the entry.
        scalars: values of scalar arguments by name.
        unit: executes vector instructions.
        capacity: size of the buffer in bytes.
        max_walk: maximum number of trips and statements inside loops that are walked.
        control: initial CTRL register.
        memory: the memory of transfers; None: nothing is computed.
        elements: records the reads of the scalar unit, or supplies them if nothing is computed.
        lowerer: lowers tile operations of the function; None: it has none.

    Raises:
        ReadError: an argument has no value, or a step never ends a loop.
        IllegalError, TileError: an instruction is refused; the error has its position.
        LimitError: the walk is too long. EngineError: nothing sets a flag that is waited for.
    """
    walker = MicroInterpreter(
        budget=Budget(max_walk), function=function, unit=unit, capacity=capacity, control=control, memory=memory,
        elements=elements or ReadElements(), lowerer=lowerer,
    )  # fmt: skip
    for name, value in bind_arguments(function, scalars).items():
        kind = next((argument for argument in function.arguments if argument.name == name), None)
        if kind is not None and isinstance(kind.type, pto.PointerType) and isinstance(value, DependentScalar):
            try:
                walker.environment[name] = walker.buffer_pointer(int(value.value), kind.type.element)
            except IllegalError as error:
                raise error.at(kind.span) from None
            continue
        if not isinstance(value, GlobalPointer):
            walker.environment[name] = value
            continue
        assert kind is not None and isinstance(kind.type, pto.PointerType)
        walker.environment[name] = BytePointer(name, 0, kind.type.element)
        use = ArgumentUse(argument_format(kind.type))
        use.follows_reads = True  # pointers have no extent: arrays may be longer than what is used of them
        walker.arguments[name] = use
    walker.walk(function.body or ())
    walker.check_flags()
    return Walked(walker.arguments, (*walker.warnings, *(lowerer.closing_warnings() if lowerer else ())))
