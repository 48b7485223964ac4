"""What a micro program issues, recorded as it is walked: a tree for the engines (docs/reference/micro.md 6.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from math import isfinite

import numpy as np

from castsim.execution.dataflow.operations import Barrier, ScalarAccess, SetFlag, Transfer, WaitFlag
from castsim.execution.interpreter.dependence import Scalar
from castsim.execution.micro.unit import Copy, Issue, Pointer, Value
from castsim.execution.tree import Access, Block, GlobalSpace, Instruction, Lowered, Operation, Tree
from castsim.execution.vector_operations.shapes import BUFFER
from castsim.isa.errors import Span
from castsim.isa.pto import program as pto
from castsim.isa.pto.micro.forms import OPAQUE
from castsim.isa.pto.micro.nodes import MicroOperation
from castsim.isa.pto.value_types import MaskType, PointerType, ScalarType, VectorType
from castsim.isa.warning_text import WarningKind, Warnings, WarningText
from castsim.machines.vector_function.scopes.instructions import extents, instruction_of, leading_bits, rows_of, touched
from castsim.machines.vector_function.scopes.operation import MicroFunction
from castsim.machines.vector_function.scopes.scope import Instruction as ScopeInstruction
from castsim.machines.vector_function.scopes.scope import Kind, Scope, ScopeFacts
from castsim.targets.vector_function import VectorFunctionTarget

# Loads of a launch that nothing keeps behind an earlier store of the same bytes (docs/reference/micro.md 6.5).

STORE_ORDERING = ("VST_VST", "VV_ALL")
"""What a `mem_bar` orders that keeps vector stores behind earlier vector stores."""

ORDERING = ("VST_VLD", "VV_ALL")
"""What a `mem_bar` orders that keeps vector loads behind earlier vector stores."""


def overtaking_loads(scope: Scope, capacity: int) -> Iterator[tuple[int, int, int]]:
    """Yield the lines of a load and of the store before it, and the first byte both touch, once for each pair of lines.

    An access counts as far as its mask may reach. `capacity` are the bytes of the buffer; what lies beyond it is
    not looked at.
    """
    writer = np.zeros(capacity, np.int64)
    lines = [0]
    ordered = 0
    found: set[tuple[int, int]] = set()
    for issue, start, end in extents(scope):
        instruction = issue.instruction
        touched = slice(max(start, 0), max(end, 0))
        match instruction.kind:
            case Kind.BARRIER if instruction.word in ORDERING:
                ordered = len(lines) - 1
            case Kind.STORE:
                writer[touched] = len(lines)
                lines.append(instruction.line)
            case Kind.LOAD if writer[touched].size:
                last = writer[touched]
                number = int(last.max())
                pair = instruction.line, lines[number]
                if number > ordered and pair not in found:
                    found.add(pair)
                    yield *pair, issue.address + int(np.argmax(last))


def overlapping_stores(scope: Scope, capacity: int) -> tuple[int, int] | None:
    """Return the lines of the first store over bytes of an earlier one of its launch that no barrier is between; None.

    Both may be one line, in two trips of a loop. Extents and `capacity` are as for `overtaking_loads`.
    """
    writer = np.zeros(capacity, np.int64)
    lines = [0]
    ordered = 0
    for issue, start, end in extents(scope):
        instruction = issue.instruction
        touched = slice(max(start, 0), max(end, 0))
        if instruction.kind is Kind.BARRIER and instruction.word in STORE_ORDERING:
            ordered = len(lines) - 1
        elif instruction.kind is Kind.STORE and writer[touched].size:
            before = int(writer[touched].max())
            if before > ordered:
                return instruction.line, lines[before]
            writer[touched] = len(lines)
            lines.append(instruction.line)
    return None


_FIRST_BUFFER = 1 << 10
"""Numbers of the flags that stand for buffers begin here, beyond those of events."""
_WORDS: Mapping[type[pto.Operation], str] = {
    pto.SetFlag: "set_flag",
    pto.WaitFlag: "wait_flag",
    pto.Barrier: "barrier",
}


@dataclass(frozen=True, slots=True)
class Named:
    """A register or mask of a program whose values nobody computes."""

    number: int


@dataclass(slots=True)
class Recorder:
    """Follows a walk (`castsim.execution.micro.VectorUnit`) and computes nothing.

    `untimed` says why the program has no cycles; the empty text if it has; `incomplete`: the tree lacks something that
    a pipe does. `warnings` tell of loads that may overtake stores. `as_written`: a program without flags is taken at
    its word too.
    """

    target: VectorFunctionTarget
    as_written: bool = False
    untimed: str = ""
    incomplete: bool = False
    warnings: Warnings = ()
    _instructions: dict[int, int] = field(default_factory=dict)
    _nodes: list[Instruction] = field(default_factory=list)
    _items: list[Lowered] = field(default_factory=list)
    _known: dict[int, ScopeInstruction] = field(default_factory=dict)
    _places: dict[int, Span] = field(default_factory=dict)
    _scope: Scope | None = None
    _released: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Of buffers, by their numbers, the pipe that released them last, and where in the program."""
    _unrolled: set[int] = field(default_factory=set)
    """Loops that are written out."""
    _flags: bool = False
    _facts: ScopeFacts = field(init=False)

    def __post_init__(self) -> None:
        self._facts = ScopeFacts(self.target)

    @property
    def tree(self) -> Tree:
        """What the machine issues; without flags its instructions wait for each other's bytes."""
        items = tuple(each for each in self._items if each.accesses or each.body.items)
        return Tree(Block(items), tuple(self._nodes), interlocked=not (self._flags or self.as_written))

    # ------------------------------------------------------------------------------------------------ vector functions

    def enter(self, scope: pto.Section) -> None:
        """Begin a launch of a vector function."""
        del scope
        self._scope = Scope()

    def leave(self, scope: pto.Section) -> None:
        """End it."""
        assert self._scope is not None
        pipe = self.target.pipes.vector
        function = MicroFunction("vecscope", self._scope, pipe)
        accesses = touched(self._scope, BUFFER, self.target.memories[BUFFER].capacity_bytes)
        self._look_for_hazards(self._scope)
        self._scope = None
        self._add(scope, "vecscope", pipe, (function,), accesses)

    def loop(self, loop: pto.For, trips: int, *, fixed: bool) -> None:
        """Begin a loop of so many trips inside a vecscope, unless the device compiler writes it out.

        It does so with a short loop of constant bounds inside of another, that carries nothing from trip to trip:
        functions with a published length are met so. Kernels of the tile library, which carry a count, turn theirs.
        """
        assert self._scope is not None
        if fixed and not loop.carried and self._scope.in_loop and self.target.option("short_loops") == "unrolled":
            micro = self.target.timing.micro
            if 1 < trips <= micro.unrolling.most_trips and not any(isinstance(item, pto.For) for item in loop.body):
                self._unrolled.add(id(loop))
                return
        self._unrolled.discard(id(loop))
        self._scope.begin_loop(trips, loop.span.line, fixed=fixed)

    def trip(self, loop: pto.For) -> None:
        """End a trip of the innermost loop."""
        assert self._scope is not None
        if id(loop) not in self._unrolled:
            self._scope.end_trip()

    def branch(self, node: pto.Operation) -> None:
        """Note a scalar select or a branch inside a vecscope."""
        if self._scope is not None:
            text = "scf.if" if isinstance(node, pto.If) else "arith.select"
            self._scope.issue(ScopeInstruction("select", Kind.SELECT, line=node.span.line, text=text))

    def execute(self, issue: Issue) -> tuple[Value, ...]:
        """Record an instruction; its results are numbered."""
        node = issue.node
        instruction = self._known.get(id(node))
        if instruction is None:
            instruction = self._known[id(node)] = instruction_of(node)
            self._places[instruction.line] = node.span
            if instruction.kind is Kind.COMPUTE and not self._facts.has(instruction.mnemonic, instruction.width):
                self._refuse(f"no cycles of pto.{node.mnemonic} are known")
        kinds = [kind for kind in node.result_types if not isinstance(kind, PointerType | ScalarType)]
        if self._scope is None:
            if node.mnemonic in OPAQUE:
                self.incomplete = True
                self._refuse(f"no cycles of pto.{node.mnemonic} are known")
            return (None,) * len(kinds)
        reads = [each.number for each in issue.operands if isinstance(each, Named)]
        numbered = [isinstance(kind, VectorType | MaskType) for kind in kinds]
        scalars = [each for each in issue.operands if isinstance(each, Scalar)]
        rows = rows_of(node, [int(each.value) if isfinite(each.value) else 0 for each in scalars])
        made = self._scope.issue(instruction, reads, sum(numbered), issue.address or 0, rows)
        if instruction.masks:
            leading = self._scope.leading
            bits = leading_bits(node, scalars, [leading[each] for each in reads if each in leading])
            leading.update(dict.fromkeys(made, bits))
        names = iter(made)
        return tuple(Named(next(names)) if each else None for each in numbered)

    # ------------------------------------------------------------------------------------------------------ all else

    def transfer(self, copy: Copy, node: MicroOperation) -> None:
        """Record a transfer: an instruction of the transfer engine for each of its outer repetitions."""
        load = copy.source.argument is not None
        if load == (copy.destination.argument is not None):
            self.incomplete = True
            self._refuse(f"no cycles of pto.{node.mnemonic} are known")
            return
        if 0 in copy.shape:
            return
        pipe = self.target.pipes.load if load else self.target.pipes.store
        outside, inside = (copy.source, copy.destination) if load else (copy.destination, copy.source)
        argument = outside.argument
        assert argument is not None
        *outer, (bursts, *pitches) = copy.levels or ((1, 0, 0),)
        far, near = pitches if load else reversed(pitches)
        operations = []
        for index in product(*(range(count) for count, _, _ in outer)):
            steps = [sum(i * level[1 + side] for i, level in zip(index, outer, strict=True)) for side in (0, 1)]
            there, here = steps if load else reversed(steps)
            operations.append(
                Transfer(
                    pipe, load, argument, outside.address + there, far, inside.address + here, near, bursts, copy.length
                )
            )
        spaces = (each.argument and GlobalSpace.of(each.argument) for each in (copy.source, copy.destination))
        accesses = tuple(copy.touched(side, space or BUFFER) for side, space in enumerate(spaces))
        self._add(node, node.mnemonic, pipe, tuple(operations), accesses)

    def synchronise(self, node: pto.SetFlag | pto.WaitFlag | pto.Barrier, event: int) -> None:
        """Record a flag or a barrier."""
        operation: Operation
        names: tuple[str, ...]
        match node:
            case pto.SetFlag():
                names, operation = (node.src.name, node.dst.name), SetFlag(node.src.name, node.dst.name, event)
            case pto.WaitFlag():
                names, operation = (node.src.name, node.dst.name), WaitFlag(node.dst.name, node.src.name, event)
            case _:
                names, operation = (node.pipe.name,), Barrier(node.pipe.name)
        self._flags |= not isinstance(node, pto.Barrier)
        if self._has_pipes(*names):
            self._add(node, _WORDS[type(node)], operation.pipe, (operation,), ())

    def element(self, node: pto.ScalarAccess, place: Pointer, code: bytes) -> None:
        """Record an element that the scalar unit reads or writes; one of the buffer counts as one of a tile."""
        if self._scope is not None:
            self._scope.issue(ScopeInstruction("select", Kind.SELECT, line=node.span.line, text=node.mnemonic))
            text = f"pto.{node.mnemonic} inside a vecscope: its cycles are assumed, those of a scalar branch"
            self.warnings = tuple(dict.fromkeys((*self.warnings, WarningText(WarningKind.UNTIMED, text, node.span))))
            return
        pipe = self.target.pipes.scalar
        kind = node.mnemonic if place.argument is not None else "tgetval" if node.reads else "tsetval"
        operation = ScalarAccess(kind, place.argument, place.address, code, pipe=pipe)
        space = BUFFER if place.argument is None else GlobalSpace.of(place.argument)
        access = Access(space, place.address, place.address + place.size, not node.reads)
        self._add(node, node.mnemonic, pipe, (operation,), (access,))

    def hold(self, node: MicroOperation, pipe: str, buffer: int, *, release: bool) -> None:
        """Record that a pipe takes a buffer, which waits as for a flag that another's release sets, or releases it."""
        self._flags = True
        if not self._has_pipes(pipe):
            return
        if release:
            self._released[buffer] = pipe, len(self._items)
            self._add(node, node.mnemonic, pipe, (), ())
            return
        holder, place = self._released.pop(buffer, (pipe, 0))
        if holder != pipe:
            event = _FIRST_BUFFER + buffer
            self._items[place] = replace(self._items[place], body=Block((SetFlag(holder, pipe, event),)))
            self._add(node, node.mnemonic, pipe, (WaitFlag(pipe, holder, event),), ())

    def external(self, node: pto.External) -> None:
        """Note that there are no cycles."""
        self.incomplete = True
        self._refuse(node.untimed)

    def _has_pipes(self, *names: str) -> bool:
        """Whether the target has these pipes; a program that names others has no cycles."""
        pipes = self.target.pipes
        known = {pipes.scalar, pipes.vector, pipes.load, pipes.store, *pipes.others, "ALL"}
        if not known.issuperset(names):
            self.incomplete = True
            self._refuse(f"{self.target.name} has no pipe {' or '.join(sorted({*names} - known))}")
        return known.issuperset(names)

    def _look_for_hazards(self, scope: Scope) -> None:
        found = []
        for load, store, byte in overtaking_loads(scope, self.target.memories[BUFFER].capacity_bytes):
            text = (
                f"this load may overtake the store in line {store}, which writes byte {byte} of the buffer too; values "
                'are computed in program order; pto.mem_bar "VST_VLD" between them keeps that order'
            )
            found.append(WarningText(WarningKind.OVERTAKING, text, self._places[load]))
        self.warnings = tuple(dict.fromkeys((*self.warnings, *found)))

    def _add(
        self,
        node: pto.Operation,
        text: str,
        pipe: str,
        operations: tuple[Operation, ...],
        accesses: tuple[Access, ...],
    ) -> None:
        number = self._instructions.get(id(node))
        if number is None:
            number = self._instructions[id(node)] = len(self._nodes)
            self._nodes.append(Instruction(text, pipe, node.span, mnemonic=text))
        self._items.append(Lowered(number, Block(operations), accesses))

    def _refuse(self, why: str) -> None:
        self.untimed = self.untimed or why
