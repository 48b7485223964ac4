"""A whole lowered program as micro text: transfers, flags, control writes, vector functions, and surrounding loops."""

from __future__ import annotations

from collections.abc import Sequence

from castsim.execution.pipe_operations import (
    BLOCK,
    ControlWrite,
    FlagSignal,
    FlagWait,
    PipeBarrier,
    ScalarWork,
    Transfer,
)
from castsim.execution.tree import Block, Deltas, Instruction, Loop, Lowered, Node, Operation, Tree, width
from castsim.execution.vector_operations.effect import TileEffect
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import CastsimError, IllegalError
from castsim.isa.formats import format_named
from castsim.isa.pto import program as pto
from castsim.isa.pto.program import Function
from castsim.isa.pto.pto_printer import print_program
from castsim.isa.pto.types import lane_bits
from castsim.isa.pto.value_types import PointerType, ScalarType
from castsim.machines.vector_function.function_operations import Nest, VectorFunction
from castsim.machines.vector_function.plan import start_ctrl
from castsim.targets.loader import TileTarget
from castsim.tools.expand.computes import Given, check_structure
from castsim.tools.expand.nests import (
    WIDE,
    NestRules,
    NestWriter,
    accesses,
    element_of,
    needs_barrier,
    pointer_number,
    written,
)
from castsim.tools.expand.registers import (
    I64,
    Attributes,
    FunctionEmitter,
    NamedRegisters,
    buffer_pointer,
    far,
    unwritten,
)
from castsim.tools.micro_builder import INDEX, Use

# One vector function as a vecscope: setup, then loop nests, with counters carried from trip to trip.


@dataclass(frozen=True, slots=True)
class FunctionWriter:
    """Writer of vector functions."""

    out: FunctionEmitter
    attributes: Attributes

    def write(
        self,
        function: VectorFunction,
        addresses: tuple[str, ...],
        ctrl: int,
        given: Given | None = None,
        rules: tuple[NestRules, ...] = (),
    ) -> None:
        """Write a vecscope.

        Args:
            function: the function to write.
            addresses: the values (i64) of its addresses.
            ctrl: CTRL during the function.
            given: its vector operation; None if it is a cast.
            rules: the rules by which its nests follow run-time extents; empty if they do not.

        Raises:
            IllegalError: no vector instruction performs an operation.
        """
        if given is not None:
            check_structure(given)
            if given.format.storage_bits == WIDE:
                if rules:
                    raise unwritten("64-bit elements with run-time extents")
                words = format_named("u32")
                function = replace(function, source_format=words, destination_format=words)
        followed = rules or (None,) * len(function.nests)
        nests = [
            (nest_rule, rule)
            for nest, rule in zip(function.nests, followed, strict=True)
            if nest.runs
            for nest_rule in written(nest, given)
        ]
        pointers = self._pointers(function, [nest for nest, _ in nests], addresses)
        self.out.begin_scope()
        with self.out.region() as body:
            body.items.append(self.out.scope)
            registers = NamedRegisters(self.out, self.attributes, ctrl, function.policies)
            for operation in function.setup:
                registers.step(operation)
            for number, (nest, rule) in enumerate(nests):
                if number and needs_barrier(given):
                    self.out.micro("mem_bar", (), barrier="VST_VLD")
                NestWriter(self.out, function, nest, given, pointers, rule).write(registers)
        self.out.add(pto.Section("vecscope", body.flat()))

    def _pointers(
        self, function: VectorFunction, nests: Sequence[Nest], addresses: tuple[str, ...]
    ) -> dict[tuple[int, str], str]:
        """Cast each address to pointers to the elements of its accesses."""
        used = {
            (pointer_number(nest, item), element_of(function, nest, item)): None
            for nest in nests
            for item in accesses(nest)
        }
        pointers = {}
        for number, element in sorted(used, key=lambda key: key[0]):
            pointers[number, element] = self.out.buffer(addresses[number], element)
        return pointers


Moves = tuple[tuple[str, Deltas], ...]
"""Variables of the loops around an element of the tree, each with the movement of its addresses."""


def program_writer(function: Function, attributes: Attributes, taken: set[str]) -> ProgramWriter:
    """Return a writer of a function's operations that also sets CTRL; `taken` are reserved names."""
    types = {argument.name: argument.type for argument in function.arguments}
    pointers = {name: kind for name, kind in types.items() if isinstance(kind, PointerType)}
    out = FunctionEmitter({*types, *taken}, {})
    program = ProgramWriter(out, attributes.target, (), pointers, attributes=attributes)
    program.start(start_ctrl(attributes.target))
    return program


def framed(program: TreeWriter, function: Function) -> str:
    """Return the whole text: the module, the function, its lines, and the wait for all pipes."""
    out = program.out
    program.drain()
    arguments = (
        pto.Argument(argument.name, far(argument.type) if isinstance(argument.type, PointerType) else argument.type)
        for argument in function.arguments
    )
    body = (*out.head.flat(), *out.current.flat(), pto.Return())
    written = pto.Function(function.name, tuple(arguments), body, (("pto.kernel", ""),))
    arch = ("pto.target_arch", f'"{program.target.name}"')
    attributes = (("pto.kernel_kind", "#pto.kernel_kind<vector>"), arch)
    return print_program(pto.Program((written,), attributes), out.notes)


@dataclass(slots=True)
class TreeWriter:
    """A walk through the tree that writes transfers, flags, control writes and loops around vector instructions."""

    out: FunctionEmitter
    target: TileTarget
    instructions: Sequence[Instruction]
    arguments: dict[str, PointerType]
    ctrl: int = 0
    given: Given | None = None
    """The vector operation whose function is written next."""
    bases: dict[str, str] = field(default_factory=dict)
    """The pointers to global memory of the arguments, if they differ from the arguments."""
    moved: bool = False
    """Whether transfers outside the tree have been written."""
    _pipes: set[str] = field(default_factory=set)

    def start(self, ctrl: int) -> None:
        """Set CTRL to its state at the start of tile programs, which differs from that of vector instructions."""
        self.ctrl = ctrl
        self.out.micro("set_ctrl", [self.out.scalar(ctrl, I64)])

    def tree(self, tree: Tree) -> None:
        """Write a whole tree. Loops stay loops; decisions about scalars are already made."""
        self.instructions = tree.instructions
        self.block(tree.root, [()] * tree.root.width)

    def drain(self) -> None:
        """Wait for all pipes."""
        last = pto.Barrier(pto.Pipe.ALL)
        if (self._pipes or self.moved) and self.out.current.flat()[-1] != last:
            self.out.add(last)

    def block(self, block: Block, moves: Sequence[Moves]) -> None:
        """Write the nodes of a block; `moves` are the transfers of its elements."""
        start = 0
        for item in block.items:
            end = start + width(item)
            self._node(item, moves[start:end])
            start = end

    def _node(self, node: Node, moves: Sequence[Moves]) -> None:
        match node:
            case Block():
                self.block(node, moves)
            case Loop():
                self._loop(node, moves)
            case Lowered():
                self._lowered(node, moves)
            case _:
                self._operation(node, moves[0])

    def _loop(self, node: Loop, moves: Sequence[Moves]) -> None:
        """Write a loop, unless its body is empty."""
        variable = self.out.fresh("t")
        bounds = self.out.index(0), self.out.index(node.trips), self.out.index(1)
        inside = [(*moved_loop, (variable, step)) for moved_loop, step in zip(moves, node.steps, strict=True)]
        with self.out.region() as body:
            self.block(node.body, inside)
        if body.flat():
            self.out.add(pto.For(variable, *bounds, body.flat()))

    def _lowered(self, node: Lowered, moves: Sequence[Moves]) -> None:
        instruction = self.instructions[node.instruction]
        self.given = self.given_of(node.shortcut)
        written = instruction.role.value == "work" and not instruction.inserted
        try:
            with self.out.noted(f"{instruction.text}, line {instruction.span.line}" if written else ""):
                self.block(node.body, moves[1:])
        except CastsimError as error:
            raise IllegalError(
                f"expand cannot write pto.{instruction.name}: {error.message}", span=instruction.span
            ) from None

    def given_of(self, shortcut: object) -> Given | None:
        """Return the properties of a vector operation; None for casts and for work outside the vector unit."""
        if not isinstance(shortcut, TileEffect):
            return None
        rule = self.target.tile_operation(shortcut.work.mnemonic)
        return Given(shortcut.work, shortcut.behaviour, "" if rule is None else rule.structure)

    def _operation(self, operation: Operation, moves: Moves) -> None:
        match operation:
            case ScalarWork(kind="arithmetic" | "loop"):
                return
            case FlagSignal(pipe, waiter, event):
                self.out.add(pto.SetFlag(_pipe(pipe), _pipe(waiter), event))
            case FlagWait(pipe, signaller, event):
                self.out.add(pto.WaitFlag(_pipe(signaller), _pipe(pipe), event))
            case PipeBarrier(pipe):
                self.out.add(pto.Barrier(_pipe(pipe)))
            case ControlWrite(register="ctrl"):
                self.ctrl = operation.value
                self.out.micro("set_ctrl", [self.out.scalar(operation.value, I64)])
            case Transfer():
                self.transfer(operation, moves)
            case _ if self.vector(operation, moves):
                pass
            case _:
                kind = getattr(operation, "kind", type(operation).__name__)
                raise IllegalError(f"its lowering has {kind} on pipe {operation.pipe}")
        self._pipes.add(operation.pipe)

    def vector(self, operation: Operation, moves: Moves) -> bool:
        """Write an operation of the vector pipe; return whether it is one that programs can name."""
        del operation, moves
        return False

    def address(self, base: int, terms: tuple[tuple[str, int], ...]) -> str:
        """Return a byte address of the buffer as an i64."""
        if not any(factor for _, factor in terms):
            return self.out.constant(base, I64)
        return self.out.converted("index_cast", self.out.total(base, terms), INDEX, I64)

    def transfer(self, copy: Transfer, moves: Moves) -> None:
        """Write a transfer between global memory and the buffer."""
        kind = self.arguments[copy.argument.removeprefix("%")]
        inner, outer = buffer_pointer(kind.element), far(kind)
        address = self.address(copy.ub_address, tuple((name, deltas[0]) for name, deltas in moves))
        buffer = self.out.buffer(address, kind.element), inner
        distant = self._far(copy, moves, lane_bits(kind.element) // 8, outer), outer
        count, length = (self.out.constant(value, I64) for value in (copy.bursts, copy.burst_bytes))
        strides = copy.gm_pitch, copy.ub_pitch
        if copy.bursts <= 1:  # they are not used, and need be no multiples of a block
            strides = copy.burst_bytes, -(-copy.burst_bytes // BLOCK) * BLOCK
        gm, ub = (self.out.constant(stride, I64) for stride in strides)
        pad: Use | None = None
        if copy.load and copy.pad_pattern:
            kind_of_pad = ScalarType(f"i{8 * len(copy.pad_pattern)}")
            pad = self.out.scalar(int.from_bytes(copy.pad_pattern, "little", signed=True), kind_of_pad)
        self.copy((distant, buffer), length, (count, gm, ub), pad, load=copy.load)

    def copy(
        self, ends: tuple[Use, Use], length: str, bursts: tuple[str, str, str], pad: Use | None, *, load: bool
    ) -> None:
        """Write a transfer between global memory and the buffer; `bursts` are their count and strides at both ends."""
        (distant, buffer), (count, gm, ub) = ends, bursts
        groups = (("nburst", 3), *((("pad", 1),) if pad is not None else ()))
        uses: list[Use] = [distant, buffer, self.out.scalar(0, I64)] if load else [buffer, distant]
        uses += [(name, I64) for name in (length, count, *((gm, ub) if load else (ub, gm)))]
        uses += [] if pad is None else [pad]
        names, kinds = (tuple(side) for side in zip(*uses, strict=True))
        self.out.add(pto.MicroOperation("mte_gm_ub" if load else "mte_ub_gm", names, kinds, groups=groups))

    def _far(self, copy: Transfer, moves: Moves, size: int, kind: PointerType) -> str:
        """Return the pointer to global memory."""
        name = copy.argument.removeprefix("%")
        name = self.bases.get(name, name)
        terms = tuple((variable, deltas[1] // size) for variable, deltas in moves)
        if copy.gm_address == 0 and not any(factor for _, factor in terms):
            return name
        offset = self.out.total(copy.gm_address // size, terms)
        return self.out.moved(name, offset, kind, "gm")


@dataclass(slots=True, kw_only=True)
class ProgramWriter(TreeWriter):
    """A walk through the tree that writes vector functions as vecscopes."""

    attributes: Attributes
    rules: tuple[NestRules, ...] = ()
    """The rules by which the loops of the next function follow run-time extents."""

    def vector(self, operation: Operation, moves: Moves) -> bool:
        """Write a vector function."""
        if not isinstance(operation, VectorFunction):
            return False
        addresses = tuple(
            self.address(base, tuple((name, deltas[number]) for name, deltas in moves))
            for number, base in enumerate(operation.addresses)
        )
        FunctionWriter(self.out, self.attributes).write(operation, addresses, self.ctrl, self.given, self.rules)
        return True


def _pipe(name: str) -> pto.Pipe:
    return pto.Pipe(f"PIPE_{name}")
