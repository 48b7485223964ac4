"""Recording of the issued instructions of a micro program as a tree for the engines; the vector units of a chip.

Source: docs/reference/micro.md 6.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite

import numpy as np

from castsim.execution.interpreter.micro_interpreter import BLOCK_ACCESSES
from castsim.execution.interpreter.rerolling import DependentScalar
from castsim.execution.interpreter.vector_unit import (
    LOAD,
    STORE,
    Body,
    BytePointer,
    MicroMemory,
    Value,
    VectorIssue,
)
from castsim.execution.outcomes import CastTally
from castsim.execution.pipe_operations import BLOCK
from castsim.execution.tree import Access, widened
from castsim.execution.vector_operations.shapes import BUFFER
from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import IllegalError, Span, WarningKind, WarningText
from castsim.isa.pto import program as pto
from castsim.isa.pto.micro_forms import OPAQUE, ROWS, micro_operations
from castsim.isa.pto.micro_words import INTERFACE_CONVERSIONS, detour
from castsim.isa.pto.types import lane_bits
from castsim.isa.pto.value_types import (
    REGISTER_BITS,
    AlignType,
    MaskType,
    MicroOperation,
    PointerType,
    ScalarType,
    VectorType,
    dialect_module,
    element_format,
)
from castsim.machines.program_recorder import ProgramRecorder, no_strided
from castsim.machines.vector_function.front_end import time_scope
from castsim.machines.vector_function.function_launches import MicroFunction, check_scope
from castsim.machines.vector_function.lane_unit import ConversionCounts, LaneUnit
from castsim.machines.vector_function.launched_scope import (
    Scope,
    ScopeFacts,
    ScopeInstruction,
    ScopeIssue,
    TimingKind,
    issues,
)
from castsim.machines.vector_function.loads_stores import accessed_bytes
from castsim.machines.vector_function.plan import ctrl_of_level
from castsim.targets.vector_function import VectorFunctionTarget

# The bytes of the buffer that the loads and stores of a launch touch, as far as its masks tell.
#
# Source: docs/reference/micro.md 6.5.

REGISTER_BYTES = REGISTER_BITS // 8
"""Number of bytes of a register, and of bits of a mask: one bit per byte."""

_FIRST = re.compile(r"PAT_VL(\d+)$")
_BY_LANES = ("NORM", "UNPK", "US", "DS", "PK", "DINTLV", "")
"""Distributions that process the lanes of a register in memory order, by the first part of their names."""


def leading_bits(node: MicroOperation, scalars: Sequence[DependentScalar], masks: Sequence[int]) -> int:
    """Return how many leading bits of an instruction's result mask may be set, given `masks`, those it reads."""
    row = ROWS[node.mnemonic]
    name, lane = row.family or node.mnemonic, (row.width or 8) // 8
    first = _FIRST.match(node.word("pattern") or "")
    if name in ("plt", "pltm"):
        numbers = [int(scalar.value) for scalar in scalars]
        left = numbers[-1] - (numbers[0] * (REGISTER_BYTES // lane) if name == "pltm" else 0)
        return min(max(left, 0) * lane, REGISTER_BYTES)
    if name in ("pset", "pge") and first is not None:
        return min(int(first[1]) * lane, REGISTER_BYTES)
    if name in ("pset", "pge") and node.word("pattern") == "PAT_ALLF":
        return 0
    if name in ("ppack", "punpack", "pbitcast") and masks:
        return _moved(name, masks[0], higher=node.word("half") == "HIGHER")
    if name == "pand" or (name in ("vcmp", "vcmps", "pnot", "por", "pxor") and masks):
        return min(masks) if name == "pand" else masks[-1]  # the last one governs
    return REGISTER_BYTES


def _moved(name: str, bits: int, *, higher: bool) -> int:
    """Return the leading bits of a mask whose bits are packed, spread or kept (docs/reference/micro.md 5.3)."""
    half = REGISTER_BYTES // 2
    if name == "ppack":
        return -(-bits // 2) + half * (higher and bits > 0)
    if name == "punpack":
        return min(max(2 * (bits - half * higher), 0), REGISTER_BYTES)
    return bits


def rows_of(node: MicroOperation, numbers: Sequence[int]) -> tuple[int, int, int] | None:
    """Return count, distance and length of an access's stretches from its operands; None if unknown."""
    if node.mnemonic in BLOCK_ACCESSES:
        return REGISTER_BYTES // BLOCK, numbers[0] * BLOCK, BLOCK
    if node.mnemonic == "vstus":
        stored = next(kind for kind in node.operand_types if isinstance(kind, VectorType))
        return 1, 0, numbers[0] * lane_bits(stored.element) // 8
    return None


def extents(scope: Scope) -> Iterator[tuple[ScopeIssue, int, int]]:
    """Yield the issued accesses in program order, with the first byte and the end of each.

    For a load, only the bytes count that some instruction may use; instructions other than accesses touch none. A block
    access is listed once for each block.
    """
    needed = _needed(scope)
    for issue in issues(scope.body):
        instruction = issue.instruction
        size = instruction.size
        if instruction.kind is TimingKind.LOAD and issue.writes and not instruction.masks:
            size = _part(issue, max(needed.get(name, 0) for name in issue.writes))
        elif instruction.kind is TimingKind.STORE:
            size = _part(issue, _governing(issue, scope.leading))
        if issue.rows is None:
            yield issue, issue.address, issue.address + size
            continue
        count, distance, length = issue.rows
        if count > 1:
            count = -(-count * _governing(issue, scope.leading) // REGISTER_BYTES)
        for number in range(count):
            start = issue.address + number * distance
            yield issue, start, start + length


def touched(scope: Scope, buffer: str, capacity: int) -> tuple[Access, ...]:
    """Return the bytes that a launch reads and those that it writes, with evenly spaced stretches combined."""
    marks = {kind: np.zeros(capacity + 1, np.bool_) for kind in (TimingKind.LOAD, TimingKind.STORE)}
    for issue, start, end in extents(scope):
        if issue.instruction.kind in marks:
            marks[issue.instruction.kind][max(start, 0) : max(min(end, capacity), 0)] = True
    accesses: list[Access] = []
    for kind, marked in marks.items():
        edges = (np.flatnonzero(marked[1:] != marked[:-1]) + 1).tolist()
        edges[:0] = [0] * bool(marked[0])
        accesses += _spaced(list(zip(edges[::2], edges[1::2], strict=True)), buffer, write=kind is TimingKind.STORE)
    return tuple(accesses)


def _needed(scope: Scope) -> Mapping[int, int]:
    """Return the number of leading bytes that are used of every register."""
    needed: dict[int, int] = {}
    for issue in issues(scope.body):
        instruction, looks = issue.instruction, REGISTER_BYTES
        if instruction.lanewise or (instruction.kind is TimingKind.STORE and _by_lanes(issue)):
            looks = _governing(issue, scope.leading)
        for register in issue.reads:
            needed[register] = max(needed.get(register, 0), looks)
    return needed


def _governing(issue: ScopeIssue, leading: Mapping[int, int]) -> int:
    """Return how many leading bits of the mask of an instruction may be set."""
    masks = [leading[name] for name in issue.reads if name in leading]
    return masks[-1] if masks else REGISTER_BYTES


def _by_lanes(issue: ScopeIssue) -> bool:
    return (
        issue.instruction.mnemonic in ("vlds", "vldsx2", "vldus", "vsts")
        and issue.instruction.word.partition("_")[0].rstrip("4") in _BY_LANES
    )


def _part(issue: ScopeIssue, leading: int) -> int:
    """Return the bytes of an access if only a number of leading bytes of the register count."""
    size = issue.instruction.size
    return -(-size * leading // REGISTER_BYTES) if _by_lanes(issue) else size


def _spaced(stretches: Sequence[tuple[int, int]], buffer: str, *, write: bool) -> list[Access]:
    """Return ordered stretches as accesses: each covers equal ones at one distance."""
    accesses: list[Access] = []
    index = 0
    while index < len(stretches):
        start, end = stretches[index]
        count, distance = 1, 0
        while index + count < len(stretches):
            first, last = stretches[index + count]
            step = first - stretches[index + count - 1][0]
            if last - first != end - start or (distance and step != distance):
                break
            count, distance = count + 1, step
        access = Access(buffer, start, end, write)
        accesses.append(widened(access, count, distance) if count > 1 else access)
        index += count
    return accesses


# Instructions of the text as time sees them: what they are, the bytes of their access.
#
# Source: docs/reference/micro.md 6.2.


def instruction_of(node: MicroOperation, target: VectorFunctionTarget) -> ScopeInstruction:
    """Return an instruction of the text."""
    row = ROWS[node.mnemonic]
    name, kind = row.family or node.mnemonic, TimingKind[row.work.upper()] if row.work else TimingKind.COMPUTE
    results = [kind for kind in node.result_types if not isinstance(kind, PointerType | ScalarType | AlignType)]
    masks = bool(results) and all(isinstance(kind, MaskType) for kind in results)
    word = node.word("barrier" if name == "mem_bar" else "dist") or ""
    return ScopeInstruction(
        mnemonic=name,
        kind=kind,
        width=_width(node),
        word=word,
        size=_bytes(node, name) if kind in (TimingKind.LOAD, TimingKind.STORE) else 0,
        updates=kind is TimingKind.LOAD
        and any(isinstance(result_type, PointerType) for result_type in node.result_types),
        unpacks=kind is TimingKind.LOAD and word.startswith("UNPK"),
        masks=masks,
        integers=_integers(node),
        lanewise=row.lanewise,
        row=_row(node, target),
        line=node.span.line,
        text=_text(node),
    )


def _text(node: MicroOperation) -> str:
    """Return an instruction as reports name it: its elements, or those it converts, and its words."""
    kinds = (
        next((kind.element for kind in side if isinstance(kind, VectorType)), "")
        for side in (node.operand_types, node.result_types)
    )
    between = " -> ".join(dict.fromkeys(filter(None, kinds)))
    return " ".join(filter(None, (node.mnemonic, between, *(word for _, word in node.attributes))))


def _width(node: MicroOperation) -> int:
    """Return the bits of a lane of the first register that an instruction names."""
    kinds = (*node.operand_types, *node.result_types)
    return next((lane_bits(kind.element) for kind in kinds if isinstance(kind, VectorType)), 32)


def _integers(node: MicroOperation) -> bool:
    """Return whether the lanes of the first register that an instruction names are integers."""
    kinds = (*node.operand_types, *node.result_types)
    element = next((kind.element for kind in kinds if isinstance(kind, VectorType)), "")
    return element.removeprefix("u").removeprefix("s").startswith("i")


def _row(node: MicroOperation, target: VectorFunctionTarget) -> str:
    """Return the row of the table of instructions for one that is not timed by its name, otherwise ''."""
    if node.mnemonic == "vintlv" and target.follows_families(kernel=False):
        return "vintlv_lanes"
    if node.mnemonic != "vcvt":
        return ""
    kinds = (*node.operand_types, *node.result_types)
    src, dst = (element_format(kind.element) for kind in kinds if isinstance(kind, VectorType))
    return target.conversion_row(src, dst)


def _bytes(node: MicroOperation, name: str) -> int:
    """Return the bytes that an access touches when all of its lanes are active."""
    if name in ("plds", "pldi", "psts", "psti") or name in OPAQUE:
        return REGISTER_BYTES // 8
    if name in ("vstas", "vstar", "vscatter"):
        return 0
    return accessed_bytes(node) if name in ("vlds", "vldsx2", "vsts", "vstsx2") else REGISTER_BYTES


# Loads of a launch that nothing keeps behind an earlier store of the same bytes (docs/reference/micro.md 6.5).

ORDERING = ("VST_VLD", "VV_ALL")
"""The effect of a `mem_bar` that orders vector loads after earlier vector stores."""


def overtaking_loads(scope: Scope, capacity: int) -> Iterator[tuple[int, int, int]]:
    """Yield the lines of a load and of an earlier store, and the first common byte, once for each pair of lines.

    An access extends as far as its mask may. `capacity` is the size of the buffer; bytes beyond it are ignored.
    """
    pairs: set[tuple[int, int]] = set()
    for issue, store, byte in behind_stores(scope, capacity, TimingKind.LOAD, ORDERING):
        pair = issue.instruction.line, store
        if pair not in pairs:
            pairs.add(pair)
            yield *pair, issue.address + byte


def behind_stores(
    scope: Scope, capacity: int, kind: TimingKind, ordering: Sequence[str]
) -> Iterator[tuple[ScopeIssue, int, int]]:
    """Yield every access of a kind to bytes of an earlier store that no barrier of these words separates from it.

    Each comes with the line of that store, and the first common byte.
    """
    writer = np.zeros(capacity, np.int64)
    lines, ordered = [0], 0
    for issue, start, end in extents(scope):
        instruction, before = issue.instruction, writer[max(start, 0) : max(end, 0)]
        if instruction.kind is TimingKind.BARRIER and instruction.word in ordering:
            ordered = len(lines) - 1
        if instruction.kind is kind and before.size and before.max() > ordered:
            yield issue, lines[int(before.max())], int(np.argmax(before))
        if instruction.kind is TimingKind.STORE:
            before[:] = len(lines)
            lines.append(instruction.line)


@dataclass(frozen=True, slots=True)
class UncomputedRegister:
    """A register or mask whose values are not computed."""

    number: int


@dataclass(slots=True)
class ScopeRecorder(ProgramRecorder):
    """Recorder of launches of vector functions; `warnings` report loads that may overtake stores."""

    target: VectorFunctionTarget
    _known: dict[int, ScopeInstruction] = field(default_factory=dict)
    _places: dict[int, Span] = field(default_factory=dict)
    _scope: Scope | None = None
    _unrolled: set[int] = field(default_factory=set)
    """Loops that are written out."""
    _facts: ScopeFacts = field(init=False)

    def __post_init__(self) -> None:
        self._facts = ScopeFacts(self.target)

    # ------------------------------------------------------------------------------------------------ vector functions

    def enter(self, scope: pto.Section) -> None:
        """Begin a launch of a vector function."""
        del scope
        self._scope = Scope()

    def leave(self, scope: pto.Section) -> None:
        """End a launch of a vector function."""
        assert self._scope is not None
        pipe = self.target.pipes.vector
        function = MicroFunction("vecscope", self._scope, pipe)
        accesses = touched(self._scope, BUFFER, self.target.memories[BUFFER].capacity_bytes)
        self._look_for_hazards(self._scope)
        self._scope = None
        self._add(scope, "vecscope", pipe, (function,), accesses)

    def loop(self, loop: pto.For, trips: int, *, fixed: bool) -> None:
        """Begin a loop inside a vecscope, unless the device compiler unrolls it.

        It unrolls a short loop of constant bounds inside another one, without carried values: the published lengths of
        functions then fit. Kernels of the tile library, which carry a count, turn theirs.
        Loops that carry a register turn a single trip too, as in a tcolsum of four rows.
        """
        assert self._scope is not None
        if fixed and not loop.carried and self._scope.in_loop and self.target.option("short_loops") == "unrolled":
            micro = self.target.timing.micro
            if 1 < trips <= micro.unrolling.most_trips and not any(isinstance(item, pto.For) for item in loop.body):
                self._unrolled.add(id(loop))
                return
        self._unrolled.discard(id(loop))
        carries = any(isinstance(kind, VectorType) for kind in loop.result_types)
        self._scope.begin_loop(trips, loop.span.line, fixed=fixed and not carries)

    def trip(self, loop: pto.For) -> None:
        """End a trip of the innermost loop."""
        assert self._scope is not None
        if id(loop) not in self._unrolled:
            self._scope.end_trip()

    def branch(self, node: pto.Operation) -> None:
        """Record a scalar select or a branch inside a vecscope."""
        if self._scope is not None:
            text = "scf.if" if isinstance(node, pto.If) else "arith.select"
            self._scope.issue(ScopeInstruction("select", TimingKind.SELECT, line=node.span.line, text=text))

    def execute(self, issue: VectorIssue) -> tuple[Value, ...]:
        """Record an instruction; its results are numbered."""
        node = issue.node
        instruction = self._known.get(id(node))
        if instruction is None:
            instruction = self._known[id(node)] = instruction_of(node, self.target)
            self._places[instruction.line] = node.span
            if instruction.kind is TimingKind.COMPUTE and not self._facts.has(instruction.mnemonic, instruction.width):
                self._refuse(f"the cycles of pto.{node.mnemonic} are unknown")
        kinds = [kind for kind in node.result_types if not isinstance(kind, PointerType | ScalarType)]
        if self._scope is None:
            if node.mnemonic in OPAQUE:
                self.incomplete = True
                self._refuse(f"the cycles of pto.{node.mnemonic} are unknown")
            return (None,) * len(kinds)
        reads = [register.number for register in issue.operands if isinstance(register, UncomputedRegister)]
        numbered = [isinstance(kind, VectorType | MaskType) for kind in kinds]
        scalars = [operand for operand in issue.operands if isinstance(operand, DependentScalar)]
        rows = rows_of(node, [int(scalar.value) if isfinite(scalar.value) else 0 for scalar in scalars])
        registers = self._scope.issue(instruction, reads, sum(numbered), issue.address or 0, rows)
        if instruction.masks:
            leading = self._scope.leading
            bits = leading_bits(node, scalars, [leading[number] for number in reads if number in leading])
            leading.update(dict.fromkeys(registers, bits))
        names = iter(registers)
        return tuple(UncomputedRegister(next(names)) if is_number else None for is_number in numbered)

    def element(self, node: pto.ScalarAccess, pointer: BytePointer, code: bytes) -> None:
        """Record an element that the scalar unit reads or writes, inside a launch as a branch of it."""
        if self._scope is not None:
            self._scope.issue(ScopeInstruction("select", TimingKind.SELECT, line=node.span.line, text=node.mnemonic))
            text = f"pto.{node.mnemonic} inside a vecscope: its cycles are assumed to be those of a scalar branch"
            self.warnings = tuple(dict.fromkeys((*self.warnings, WarningText(WarningKind.UNTIMED, text, node.span))))
            return
        ProgramRecorder.element(self, node, pointer, code)

    def _look_for_hazards(self, scope: Scope) -> None:
        warnings = []
        for load, store, byte in overtaking_loads(scope, self.target.memories[BUFFER].capacity_bytes):
            text = (
                f"this load may overtake the store in line {store}, which writes byte {byte} of the buffer too; values "
                'are computed in program order; pto.mem_bar "VST_VLD" between them keeps that order'
            )
            warnings.append(WarningText(WarningKind.OVERTAKING, text, self._places[load]))
        self.warnings = tuple(dict.fromkeys((*self.warnings, *warnings)))


# The cycles of a body of vector instructions that stands in a published table, written out as a launch.


def body_cycles(body: Body, target: VectorFunctionTarget) -> int:
    """Return the cycles of a body from launch to end.

    Raises:
        IllegalError: the latency of an instruction is unknown.
    """
    scope = _scope(body, target.registers.register_bytes)
    check_scope(MicroFunction("estimate", scope, target.pipes.vector), target)
    return time_scope(scope, target).cycles


def _scope(body: Body, register_bytes: int) -> Scope:
    """Unroll the loops; every buffer has room for the trips of one loop, after earlier ones."""
    scope = Scope()
    buffers = list(dict.fromkeys(step.operands[0] for step in body.steps if step.mnemonic in (LOAD, STORE)))
    places = {name: number * register_bytes * body.trips for number, name in enumerate(buffers)}
    for loop in range(body.loops):
        if loop and body.between:
            scope.issue(ScopeInstruction("mem_bar", TimingKind.BARRIER, word=body.between))
        whole, rest = divmod(body.trips, body.unroll)
        for first, trips, copies in ((0, whole, body.unroll), (whole * body.unroll, rest, 1)):
            scope.begin_loop(trips)
            for trip in range(trips):
                _trip(scope, body, places, register_bytes, range(first + trip * copies, first + (trip + 1) * copies))
                scope.end_trip()
    return scope


def _trip(scope: Scope, body: Body, places: dict[str, int], register_bytes: int, numbers: range) -> None:
    names: list[dict[str, int]] = [{} for _ in numbers]
    for step in body.steps:
        for number, own in zip(numbers, names, strict=True):
            buffer, *values = step.operands if step.mnemonic in (LOAD, STORE) else ("", *step.operands)
            reads = [own[name] for name in values if name in own]
            address = places.get(buffer, 0) + number * register_bytes
            registers = scope.issue(_instruction(step, body.width, register_bytes), reads, len(step.results), address)
            own.update(zip(step.results, registers, strict=True))


def _instruction(step: MicroOperation, width: int, register_bytes: int) -> ScopeInstruction:
    if step.mnemonic == "mem_bar":
        return ScopeInstruction("mem_bar", TimingKind.BARRIER, word=step.word("barrier") or "")
    kind = {LOAD: TimingKind.LOAD, STORE: TimingKind.STORE}.get(step.mnemonic, TimingKind.COMPUTE)
    return ScopeInstruction(step.mnemonic, kind, width, size=0 if kind is TimingKind.COMPUTE else register_bytes)


# The units of a chip: one computes values, the other records what the engines time.


@dataclass(frozen=True, slots=True)
class LaneUnits:
    """Vector units of a chip; see `castsim.machines.mechanisms.VectorUnits`."""

    target: VectorFunctionTarget

    def unit(self, memory: MicroMemory, casts: CastTally | None = None) -> LaneUnit:
        """Return a unit that computes values."""
        return LaneUnit(memory, self.target, None if casts is None else ConversionCounts(casts))

    def recorder(self, *, as_written: bool) -> ScopeRecorder:
        """Return a recorder of a program for the engines; without flags, it runs unchanged or waits for bytes."""
        return ScopeRecorder(self.target, as_written)

    def control_at_start(self, *, saturating: bool) -> int:
        """Return CTRL according to the options; the tool chain clears its bit 60 at the head of functions with a `sat`
        (docs/reference/micro.md section 3.4)."""
        start = ctrl_of_level(self.target, "micro")
        return start & ~(1 << self.target.control.saturation_global) if saturating else start

    def lowered(self, function: pto.Function) -> pto.Function:
        """Return a function with the operations of dialects replaced by vector instructions."""
        strided = next(
            (node for node in pto.nodes(function.body or ()) if isinstance(node, pto.StridedStatement)), None
        )
        if strided is not None:
            raise no_strided(self.target, strided)
        operations = [node for node in pto.nodes(function.body or ()) if isinstance(node, pto.DialectOperation)]
        for dialect in dict.fromkeys(node.dialect for node in operations):
            function = dialect_module(dialect, "lowering").lower_function(function)
        for node in micro_operations(function.body or ()):
            if node.mnemonic == "vcvt":
                self._check_pair(node)
        return function

    def _check_pair(self, node: MicroOperation) -> None:
        """Reject a conversion that the target supports only with an option, if that is not set."""
        kinds = (node.operand_types[0], node.result_types[0])
        src, dst = (kind.element for kind in kinds if isinstance(kind, VectorType))
        if (src, dst) not in INTERFACE_CONVERSIONS or self.target.option("interface_casts") == "accept":
            return
        if self.target.interface_cast(src, dst, level="micro") is None:
            raise IllegalError(f"{self.target.name} has no vcvt {src} -> {dst}", span=node.span)
        raise IllegalError(
            f"vcvt {src} -> {dst}: the vendor's verifier rejects this pair, another source lists it{detour(src, dst)}",
            span=node.span,
            legal=("option interface_casts=accept",),
        )  # fmt: skip

    def body_cycles(self, body: Body) -> int:
        """Return the cycles of a body of a published table."""
        return body_cycles(body, self.target)
