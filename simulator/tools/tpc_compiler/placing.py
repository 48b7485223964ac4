"""Placement of the instructions of a block in bundles: in sequence, or by list scheduling.

List scheduling chooses, bundle by bundle, the instruction with the longest path to the end of the block among those
with available operands. Distances to instructions of earlier blocks are kept on every path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from itertools import chain

from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.tpc.forms import MemoryOperation
from castsim.isa.tpc.program import JUMPS, Bundle, File, LabelUse, Slot, TpcInstruction, TpcProgram
from castsim.machines.vliw.control import LoopShape, iterator, nested
from castsim.machines.vliw.plans import InstructionPlan
from castsim.targets.vliw import VliwTarget
from castsim.tools.tpc_compiler.scheduled_operations import (
    PARTS,
    Distances,
    OperationLookup,
    ScheduledOperation,
    Touched,
    drawn,
    renumbered,
)
from castsim.tools.tpc_compiler.virtual_registers import STRIDE, VirtualRegister, unit_of_cell
from castsim.tools.tpc_lint.lint_checking import side_by_side
from castsim.tools.tpc_lint.lint_flow import BundleStep, Flow, arrivals, entries, facts_at, live_behind

# Basic blocks of a text, its loops, and which block may follow which.


@dataclass(eq=False, slots=True)
class BasicBlock:
    """Instructions that are executed in sequence; `end` is the one that decides the next block, if any."""

    labels: list[str] = field(default_factory=list)
    operations: list[ScheduledOperation] = field(default_factory=list)
    end: ScheduledOperation | None = None

    @property
    def all(self) -> list[ScheduledOperation]:
        """The instructions including the last one."""
        return [*self.operations, *([self.end] if self.end else [])]


class BlockGraph:
    """The blocks of a text with their loops and steps.

    Raises:
        IllegalError: loops cross or are nested too deep, or a jump enters or leaves a loop body.
    """

    def __init__(self, blocks: list[BasicBlock], target: VliwTarget) -> None:
        self.blocks = blocks
        self._target = target
        self._at = {label: number for number, block in enumerate(blocks) for label in block.labels}
        self.loops = self._loops()
        self._check_jumps()
        steps = (step for number in range(len(blocks)) for step in self._behind(number))
        self.steps = tuple(step for step in steps if step.second < len(blocks))
        self.into: tuple[tuple[BundleStep, ...], ...] = tuple(
            tuple(step for step in self.steps if step.second == number) for number in range(len(blocks))
        )

    def head(self, loop: LoopShape) -> ScheduledOperation:
        """Return the LOOP of a loop."""
        loop_operation = self.blocks[loop.head].end
        assert loop_operation is not None
        return loop_operation

    def iterator(self, loop: LoopShape) -> str:
        """Return the register that counts a loop."""
        return str(iterator(self._target, loop.depth))

    def goal(self, jump: ScheduledOperation) -> int:
        """Return the target block of a jump."""
        return self._at[_goal(jump.instruction, "src_a")]

    def _loops(self) -> tuple[LoopShape, ...]:
        ends = [(number, block.end) for number, block in enumerate(self.blocks) if block.end is not None]
        heads = [(number, end) for number, end in ends if end.mnemonic == "loop"]
        bodies = [(number, number + 1, self._at[_goal(end.instruction, "end")]) for number, end in heads]
        limit = self._target.registers.loop_iterators
        shallow = (f"up to {limit} nested loops",)
        apart = ("an end before that of the loop around it, or the same",)
        return nested(bodies, [end.span for _, end in heads], limit, (shallow, apart))

    def _check_jumps(self) -> None:
        """Reject jumps into and out of loop bodies."""
        for number, block in enumerate(self.blocks):
            if block.end is None or not is_jump(block.end):
                continue
            name, goal = _goal(block.end.instruction, "src_a"), self.goal(block.end)
            if self._bodies(number) != self._bodies(goal):
                message = f"the jump to '{name}' enters or leaves a loop body; the label at its end is outside"
                inside = [
                    label
                    for label, block_number in self._at.items()
                    if self._bodies(block_number) == self._bodies(number)
                ]
                legal = (", ".join(inside) or "a label between the same loops as the jump",)
                raise IllegalError(message, span=block.end.span, legal=legal)

    def _bodies(self, block: int) -> list[LoopShape]:
        """Return the loops to whose bodies a block belongs."""
        return [loop for loop in self.loops if loop.holds(block)]

    def _behind(self, number: int) -> Iterator[BundleStep]:
        end = self.blocks[number].end
        if end is not None and end.mnemonic == "loop":
            yield from entries(self.loops, next(loop for loop in self.loops if loop.head == number))
            return
        if end is not None and is_jump(end):
            yield from arrivals(self.loops, number, self.goal(end))
        if end is None or not (end.mnemonic == "halt" or end.instruction.surely_acts):
            yield from arrivals(self.loops, number, number + 1)


_MOST_IN_BLOCK = 256
"""Maximum number of instructions of a block; a longer one is cut, because scheduling compares all pairs in a block."""


def blocks_of(operations: list[ScheduledOperation], labels: dict[int, list[str]]) -> list[BasicBlock]:
    """Return the text as blocks: cut at labels, by the number of the next instruction, and after ends of blocks.

    The last block is empty or ends the program; after LOOP, a jump and HALT a block always begins.
    """
    blocks = [BasicBlock()]
    ends = {
        _goal(instruction.instruction, "end"): n
        for n, instruction in enumerate(operations)
        if instruction.mnemonic == "loop"
    }

    def begin(number: int) -> None:
        here, names = labels.get(number, []), list[str]()
        inner_first = sorted((name for name in here if name in ends), key=ends.__getitem__, reverse=True)
        if inner_first != [name for name in here if name in ends]:  # labels of one place, the outer loop's first
            here = [*inner_first, *(name for name in here if name not in ends)]
        for name in here:
            if name in ends and names:  # inside the body until here: a jump over what ends it stays inside
                blocks.append(BasicBlock(names))
                names = []
            names = [*names, name]
        if names:
            blocks.append(BasicBlock(names))

    for number, operation in enumerate(operations):
        begin(number)
        if operation.ends_block:
            blocks[-1].end = operation
            blocks.append(BasicBlock())
        else:
            blocks[-1].operations.append(operation)
    begin(len(operations))
    return blocks


def cut(blocks: Sequence[BasicBlock]) -> list[BasicBlock]:
    """Return the blocks with long ones cut into several."""
    cut_blocks = []
    for block in blocks:
        pieces = [block.operations[at : at + _MOST_IN_BLOCK] for at in range(0, len(block.operations), _MOST_IN_BLOCK)]
        cut_blocks += [BasicBlock(block.labels if n == 0 else [], piece) for n, piece in enumerate(pieces or [[]])]
        cut_blocks[-1].end = block.end
    return cut_blocks


def _goal(instruction: TpcInstruction, role: str) -> str:
    label = instruction.operand(role)
    assert isinstance(label, LabelUse)
    return label.name


def is_jump(operation: ScheduledOperation) -> bool:
    """Return whether an instruction is a jump."""
    return operation.mnemonic in JUMPS


# Values in virtual registers: undefined ones, those that nothing reads, and a register of its own for each.


def check_defined(shape: BlockGraph, operations: OperationLookup, declared: Set[VirtualRegister]) -> None:
    """Reject reads of virtual registers that nothing has written on the first path to them.

    Raises:
        ReadError: a register is read unwritten; the message names it and the place.
    """
    cells = [f"{unit.file}{unit.base + k}" for unit in declared for k in range(STRIDE)]
    written = [
        {name for scheduled in block.all for name in operations.touched(scheduled).writes} for block in shape.blocks
    ]
    forwards: list[list[int]] = [[] for _ in written]
    for step in shape.steps:
        forwards[step.first] += [] if step.back else [step.second]
    before = facts_at(forwards, lambda number, defined: defined | written[number], {0: cells})
    for number in sorted(before):
        cells_before = before[number]
        for operation in shape.blocks[number].all:
            touched = operations.touched(operation)
            for cell in sorted(touched.reads - cells_before):
                unit = unit_of_cell(cell)
                if unit is not None:
                    raise _undefined(operation, unit, operations, cells_before)
            cells_before |= touched.writes


def _undefined(
    operation: ScheduledOperation, unit: VirtualRegister, operations: OperationLookup, defined: Set[str]
) -> ReadError:
    names = operations.names
    near = {
        candidate for cell in defined if (candidate := unit_of_cell(cell)) is not None and candidate.file is unit.file
    }
    legal = [names.spelling(candidate) for candidate in sorted(near, key=lambda candidate: candidate.number)][:8]
    shown = names.spelling(unit)
    message = f"virtual register {shown} is read here before anything writes it"
    span = names.places.get((operation.span.line, unit), operation.span)
    return ReadError(message, span=span, legal=(f"an instruction before that writes {shown}", *legal))


def without_unread(shape: BlockGraph, operations: OperationLookup) -> list[ScheduledOperation]:
    """Remove and return instructions whose only results are virtual registers that are not read later."""
    removed: list[ScheduledOperation] = []
    into = [[step.first for step in steps] for steps in shape.into]

    def before(number: int, behind: Set[str]) -> Set[str]:
        live = set(behind)
        for operation in reversed(shape.blocks[number].all):
            live = _before(operation, operations, live)
        return live

    while True:
        behind = live_behind(into, before)
        gone: list[ScheduledOperation] = []
        for number, block in enumerate(shape.blocks):
            live = set(behind[number])
            for operation in reversed(block.all):
                if _unread(operation, operations, live):
                    gone.append(operation)
                else:
                    live = _before(operation, operations, live)
        if not gone:
            return sorted(removed, key=lambda scheduled: (scheduled.span.line, scheduled.span.column))
        removed += gone
        left = set(gone)
        for block in shape.blocks:
            block.operations = [entry for entry in block.operations if entry not in left]


def _before(operation: ScheduledOperation, operations: OperationLookup, live: set[str]) -> set[str]:
    touched = operations.touched(operation)
    return (live - (touched.writes - touched.old)) | touched.reads


def _unread(operation: ScheduledOperation, operations: OperationLookup, live: Set[str]) -> bool:
    touched = operations.touched(operation)
    if not touched.writes or drawn(operations.first(operation)) or operation.ends_block:
        return False
    return live.isdisjoint(touched.writes) and all(unit_of_cell(cell) is not None for cell in touched.writes)


def mark_fresh(shape: BlockGraph, operations: OperationLookup, declared: Set[VirtualRegister]) -> None:
    """Mark the instructions of a text that keep no relevant part of their destination, on any path.

    The kept part was never written before, or others write it before it is read. `declared` have values at
    the start.
    """
    blocks = [[_kept_parts(scheduled, operations) for scheduled in block.all] for block in shape.blocks]
    kept = {cell for block in blocks for _, parts in block for cell in parts}
    if not kept:
        return

    def written(number: int, facts: dict[str, int]) -> dict[str, int]:
        written_parts = dict(facts)
        for touched, parts in blocks[number]:
            for cell in touched.writes & kept:
                written_parts[cell] = written_parts.get(cell, 0) | parts.get(cell, (_all_parts(cell), 0))[0]
        return written_parts

    def read(number: int, behind: dict[str, int]) -> dict[str, int]:
        read_parts = dict(behind)
        for touched, parts in reversed(blocks[number]):
            _pass_back(read_parts, touched, parts, kept)
        return read_parts

    ways = [(step.first, step.second) for step in shape.steps]
    start = {cell: _all_parts(cell) for cell in kept if unit_of_cell(cell) in declared}
    before = _parts_at(len(blocks), ways, written, start)
    behind = _parts_at(len(blocks), [(second, first) for first, second in ways], read, {})
    for number, block in enumerate(shape.blocks):
        facts, later = [before[number]], dict(behind[number])
        for touched, parts in blocks[number]:
            facts.append(dict(facts[-1]))
            for cell in touched.writes & kept:
                facts[-1][cell] = facts[-1].get(cell, 0) | parts.get(cell, (_all_parts(cell), 0))[0]
        for operation, (touched, parts), old in reversed(list(zip(block.all, blocks[number], facts, strict=False))):
            own = touched.old <= set(parts) and operation.instruction.form.accumulator is None
            if touched.old and own and not any(old.get(c, 0) & later.get(c, 0) & ~parts[c][1] for c in parts):
                operation.fresh = True
                operations.forget(operation)
            _pass_back(later, touched, parts, kept)


def _kept_parts(
    operation: ScheduledOperation, operations: OperationLookup
) -> tuple[Touched, dict[str, tuple[int, int]]]:
    """Return the cells of an instruction, and the parts it may and must write of virtual cells that it may keep."""
    touched = operations.touched(operation)
    parts = operations.parts(operation) if touched.old else None
    certain = parts if parts is not None and operation.instruction.predicate is None else 0
    cells = (cell for cell in touched.old if unit_of_cell(cell) is not None)
    return touched, {cell: (_all_parts(cell) if parts is None else parts, certain) for cell in cells}


def _pass_back(live: dict[str, int], touched: Touched, parts: Mapping[str, tuple[int, int]], kept: Set[str]) -> None:
    """Change the parts that are read after an instruction to those that are read before it."""
    for cell in touched.writes & kept:
        live[cell] = live.get(cell, 0) & ~parts[cell][1] if cell in parts else 0
    for cell in touched.reads & kept:
        live[cell] = _all_parts(cell)


def _parts_at(
    count: int,
    ways: Sequence[tuple[int, int]],
    passed: Callable[[int, dict[str, int]], dict[str, int]],
    start: Mapping[str, int],
) -> list[dict[str, int]]:
    """Return the parts of cells for which the property holds at each block on some path from any."""
    parts_of: list[dict[str, int]] = [dict(start) if number == 0 else {} for number in range(count)]
    waiting = list(range(count))
    steps: dict[int, list[int]] = {}
    for first, second in ways:
        steps.setdefault(first, []).append(second)
    while waiting:
        number = waiting.pop()
        facts = passed(number, parts_of[number])
        for other in steps.get(number, ()):
            new = {cell: parts_of[other].get(cell, 0) | parts for cell, parts in facts.items()}
            if any(parts_of[other].get(cell, 0) != parts for cell, parts in new.items()):
                parts_of[other] |= new
                waiting.append(other)
    return parts_of


def _all_parts(cell: str) -> int:
    """Return the bits of all parts of a virtual cell."""
    unit = unit_of_cell(cell)
    return 1 if unit is None else (1 << PARTS.get(unit.file, 1)) - 1


def rename_values(block: BasicBlock, operations: OperationLookup) -> None:
    """Give every value of a virtual register in a block, except the last, its own register."""
    changed = renamed(block.all, operations)
    if block.end is not None:
        block.end = changed.pop()
    block.operations = changed


def renamed(operations_in_order: Sequence[ScheduledOperation], operations: OperationLookup) -> list[ScheduledOperation]:
    """Return the instructions of a block with a separate register for every value of a virtual one except the last."""
    last: dict[VirtualRegister, int] = {}
    for index, operation in enumerate(operations_in_order):
        for unit in _begun(operation, operations):
            last[unit] = index
    current: dict[VirtualRegister, VirtualRegister] = {}
    rewritten = []
    for index, operation in enumerate(operations_in_order):
        results = dict(current)
        for unit in _begun(operation, operations):
            results[unit] = unit if last[unit] == index else operations.names.renamed(unit)
        changed = any(old != new for old, new in (*results.items(), *current.items()))
        rewritten.append(renumbered(operation, current, results) if changed else operation)
        current = results
    return rewritten


def _begun(operation: ScheduledOperation, operations: OperationLookup) -> set[VirtualRegister]:
    """Return the virtual registers for which an instruction begins a new value: it writes all, and keeps nothing."""
    touched = operations.touched(operation)
    if touched.old:
        return set()
    units = {unit for cell in touched.writes if (unit := unit_of_cell(cell)) is not None}
    sizes = operations.names.sizes
    return {unit for unit in units if all(f"{unit.file}{unit.base + k}" in touched.writes for k in range(sizes[unit]))}


def copies(operation: ScheduledOperation) -> ScheduledOperation:
    """Return a copy of an instruction, for another trip of a loop."""
    return ScheduledOperation(
        {slot: replace(instruction) for slot, instruction in operation.slots.items()}, operation.span, operation.fresh
    )


# Whether instructions may share a bundle: slots, immediates, operand fields, predicates, excluded neighbours.

Occupant = tuple[ScheduledOperation, Slot]
"""An instruction and its slot."""


class _OneBundle(Flow):
    """A bundle for the linter's rules on single bundles; virtual registers and labels need not exist yet."""

    def __init__(self, bundle: Bundle, plans: tuple[InstructionPlan, ...], target: VliwTarget) -> None:
        self.target = target
        self.program = TpcProgram((), (bundle,))
        self.bundles = (bundle,)
        self.plans = (plans,)
        self.jumps = ()
        self.loops = ()


class Room:
    """Decides whether instructions may share a bundle."""

    def __init__(self, operations: OperationLookup) -> None:
        self._operations = operations
        self._known: dict[frozenset[Occupant], bool] = {}

    def shared_by(self, occupants: Sequence[Occupant]) -> bool:
        """Return whether these instructions may be in one bundle."""
        if len(occupants) < 2:
            return True
        if len({slot for _, slot in occupants}) < len(occupants):
            return False
        if any(operation.mnemonic in ("loop", "halt") for operation, _ in occupants):
            return False
        key = frozenset(occupants)
        if key not in self._known:
            ordered = sorted(occupants, key=lambda occupant: occupant[1])
            plans = tuple(self._operations.plan(operation, slot) for operation, slot in ordered)
            flow = _OneBundle(bundle_of(ordered), plans, self._operations.target)
            self._known[key] = side_by_side(flow)
        return self._known[key]


def bundle_of(occupants: Sequence[Occupant]) -> Bundle:
    """Return the bundle with some instructions."""
    slots = {slot: operation.slots[slot] for operation, slot in occupants}
    span = min((operation.span for operation, _ in occupants), key=lambda span: (span.line, span.column))
    return Bundle(*(slots.get(slot) for slot in Slot), written=len(Slot), span=span)


@dataclass(slots=True)
class PlacedBlock:
    """A block in bundles: bundle and slot of each instruction, and the number of bundles including delay bundles."""

    places: dict[ScheduledOperation, tuple[int, Slot]] = field(default_factory=dict)
    length: int = 0

    def delay(self, end: ScheduledOperation | None, bundles: int) -> None:
        """Insert empty bundles at the end, before the instruction that ends the block."""
        self.length += bundles
        if end is not None and end in self.places:
            first = self.places[end][0]
            for operation, (bundle, slot) in self.places.items():
                if bundle >= first and (operation is end or bundle > first):
                    self.places[operation] = bundle + bundles, slot

    def postpone(self, bundles: int) -> None:
        """Insert empty bundles at the beginning."""
        self.length += bundles
        self.places = {operation: (bundle + bundles, slot) for operation, (bundle, slot) in self.places.items()}


@dataclass(frozen=True, slots=True)
class Entering:
    """An instruction of an earlier block, a number of bundles before the first one of a block.

    `pad` is the block to be lengthened if the distance is too small.
    """

    operation: ScheduledOperation
    slot: Slot
    gap: int
    pad: int


@dataclass(frozen=True, slots=True)
class PlacementPolicy:
    """The placement method: `one` per bundle, at least `apart` bundles from each other (None: in any); else a list.

    A list takes no instruction `window` or more after the first waiting one; with `spare` none that would
    leave fewer registers of a file for further values, as long as there are others.
    """

    one: bool = False
    apart: int | None = 1
    window: int | None = None
    spare: int | None = None


@dataclass(frozen=True, slots=True)
class LiveUnits:
    """The virtual registers with a value before a block, and those that are read after it."""

    before: frozenset[VirtualRegister] = frozenset()
    behind: frozenset[VirtualRegister] = frozenset()


class _Occupied:
    """Number of registers of each file with values that instructions of unplaced blocks, or others, read."""

    def __init__(self, block: Sequence[ScheduledOperation], placer: Placer, live: LiveUnits, spare: int) -> None:
        self._operations, self._behind = placer.operations, live.behind
        self._touched = {operation: self._units(operation) for operation in block}
        self._most = {file: count - spare for file, count in placer.registers.items()}
        self._readers: Counter[VirtualRegister] = Counter(
            unit for operation in block for unit in self._touched[operation][0]
        )
        self._live = set(live.before)
        self._count: Counter[File] = Counter()
        self._live |= live.behind
        for unit in self._live:
            self._count[unit.file] += self._size(unit)

    def admits(self, operation: ScheduledOperation) -> bool:
        """Return whether registers are available for the results of an instruction."""
        more = self._change(operation)
        return all(count <= 0 or self._count[file] + count <= self._most.get(file, 0) for file, count in more.items())

    def place(self, operation: ScheduledOperation) -> None:
        """Record that an instruction is placed."""
        self._count.update(self._change(operation))
        read, written = self._touched[operation]
        self._readers.subtract(read)
        self._live = {unit for unit in self._live | written if unit in self._behind or self._readers[unit] > 0}

    def _change(self, operation: ScheduledOperation) -> Counter[File]:
        read, written = self._touched[operation]
        change: Counter[File] = Counter()
        for unit in written - self._live:
            change[unit.file] += self._size(unit)
        for unit in read | written:
            if unit not in self._behind and self._readers[unit] <= (unit in read):
                change[unit.file] -= self._size(unit)
        return change

    def _units(self, operation: ScheduledOperation) -> tuple[set[VirtualRegister], set[VirtualRegister]]:
        touched = self._operations.touched(operation)
        read, written = (
            {unit for cell in cells if (unit := unit_of_cell(cell)) is not None}
            for cells in (touched.reads | touched.old, touched.writes)
        )
        return read, written

    def _size(self, unit: VirtualRegister) -> int:
        return self._operations.names.sizes[unit]


class Placer:
    """Places the blocks of one text; `registers` is the number in each file for values, `live` the values by block."""

    def __init__(
        self,
        operations: OperationLookup,
        distances: Distances,
        registers: Mapping[File, int] | None = None,
        live: Mapping[BasicBlock, LiveUnits] | None = None,
    ) -> None:
        self.operations = operations
        self.distances = distances
        self.registers = registers or {}
        self.room = Room(operations)
        self._live = live or {}
        self._target = operations.target

    def place(self, block: BasicBlock, entering: Sequence[Entering], policy: PlacementPolicy) -> PlacedBlock:
        """Return a block in bundles."""
        live = self._live.get(block, LiveUnits())
        run = _Run(self, block.operations, entering, policy, live)
        placed = run.placed()
        if block.end is not None:
            self._place_end(block, placed, run, policy)
        return placed

    # ------------------------------------------------------------------------------------------------- end of block

    def _place_end(self, block: BasicBlock, placed: PlacedBlock, run: _Run, policy: PlacementPolicy) -> None:
        """Place the end of a block; others may follow it into its delay bundles."""
        end = block.end
        assert end is not None
        slot = next(iter(end.slots))
        delay = 0
        if end.mnemonic != "halt":
            rules = self._target.jump_rules if is_jump(end) else self._target.loop_rules
            delay = rules.delay_bundles
        free = 0 if policy.one else delay
        at = max(0, placed.length - free - (0 if policy.one or not is_jump(end) else 1))
        at = max(at, placed.length) if policy.one else at
        while not self._end_fits(block, placed, run, (end, slot), at):
            at += 1
        placed.places[end] = at, slot
        placed.length = max(placed.length, at + 1 + delay)

    def _end_fits(self, block: BasicBlock, placed: PlacedBlock, run: _Run, end: Occupant, at: int) -> bool:
        allowed = self._target.jump_rules.delay_slots if is_jump(end[0]) else tuple(s.name.lower() for s in Slot)
        beside = [(other, slot) for other, (bundle, slot) in placed.places.items() if bundle == at]
        if not self.room.shared_by([*beside, end]) or at < run.entered(end[0], end[1]):
            return False
        for other, (bundle, slot) in placed.places.items():
            needed = self.distances.needed(other, slot, *end)
            if needed is not None and bundle + needed > at:
                return False
            if bundle > at and (end[0].mnemonic == "halt" or slot.name.lower() not in allowed):
                return False
        return True

    # --------------------------------------------------------------------------------------------------- what clashes

    def clashes(self, occupant: Occupant, at: int, others: Mapping[ScheduledOperation, tuple[int, Slot]]) -> bool:
        """Return whether an issue rule excludes an instruction from a bundle, given the places of others."""
        begins = self.distances.begins(occupant[0])
        for other, (bundle, slot) in others.items():
            if at > bundle and self.distances.begins(other):
                if at - bundle in self.distances.barred(other, slot, *occupant):
                    return True
            elif begins and bundle > at and bundle - at in self.distances.barred(*occupant, other, slot):
                return True
        return False

    def related(self, block: Sequence[ScheduledOperation]) -> dict[ScheduledOperation, list[ScheduledOperation]]:
        """Return, for each instruction, the earlier ones that it must follow, in the order of the text."""
        related_to: dict[ScheduledOperation, list[ScheduledOperation]] = {}
        by_name: dict[str, list[int]] = {}
        for index, operation in enumerate(block):
            touched = self.operations.touched(operation)
            names = touched.reads | touched.writes
            if self.operations.has_state(operation):
                names |= {"state"}
            near = sorted({other for name in names for other in by_name.get(name, ())})
            slot = next(iter(operation.slots))
            related_to[operation] = [
                block[other]
                for other in near
                if self.distances.needed(block[other], next(iter(block[other].slots)), operation, slot) is not None
            ]
            for name in names:
                by_name.setdefault(name, []).append(index)
        return related_to


class _Run:
    """Places the instructions of one block."""

    def __init__(
        self,
        placer: Placer,
        operations: Sequence[ScheduledOperation],
        entering: Sequence[Entering],
        policy: PlacementPolicy,
        live: LiveUnits,
    ) -> None:
        self._placer = placer
        spare = policy.spare
        self._occupied = None if spare is None else _Occupied(operations, placer, live, spare)
        self._operations = operations
        self._entering = entering
        self._policy = policy
        self._before = placer.related(operations)
        self._places: dict[ScheduledOperation, tuple[int, Slot]] = {}
        self._bundles: dict[int, list[Occupant]] = {}
        self._entered: dict[Occupant, int] = {}
        self._earlier: dict[Occupant, int] = {}

    def placed(self) -> PlacedBlock:
        """Return the places."""
        if self._policy.one:
            self._in_order()
        else:
            self._by_list()
        length = 1 + max((bundle for bundle, _ in self._places.values()), default=-1)
        return PlacedBlock(self._places, length)

    def entered(self, operation: ScheduledOperation, slot: Slot) -> int:
        """Return the first bundle that is far enough after all earlier blocks."""
        key = operation, slot
        if key not in self._entered:
            needed = self._placer.distances.needed
            wanted = [
                distance - entrant.gap
                for entrant in self._entering
                if (distance := needed(entrant.operation, entrant.slot, operation, slot)) is not None
            ]
            self._entered[key] = max([0, *wanted])
        return self._entered[key]

    def _earliest(self, operation: ScheduledOperation, slot: Slot) -> int:
        """Return the first bundle that is far enough after all predecessors, which are placed."""
        if (operation, slot) not in self._earlier:
            earliest = self.entered(operation, slot)
            for other in self._before[operation]:
                bundle, own = self._places[other]
                needed = self._placer.distances.needed(other, own, operation, slot)
                earliest = max(earliest, bundle + (needed or 0))
            self._earlier[operation, slot] = earliest
        return self._earlier[operation, slot]

    def _free(self, operation: ScheduledOperation, slot: Slot, at: int) -> bool:
        if not self._placer.room.shared_by([*self._bundles.get(at, ()), (operation, slot)]):
            return False
        barred, most = self._placer.distances.barred, self._placer.distances.most_barred
        near = {
            other: (bundle, own)
            for bundle in range(at - most, at + most + 1)
            for other, own in self._bundles.get(bundle, ())
        }
        if self._placer.clashes((operation, slot), at, near):
            return False
        return not any(
            at + entrant.gap <= most and at + entrant.gap in barred(entrant.operation, entrant.slot, operation, slot)
            for entrant in self._entering
        )

    def _put(self, operation: ScheduledOperation, slot: Slot, at: int) -> None:
        self._places[operation] = at, slot
        self._bundles.setdefault(at, []).append((operation, slot))
        if self._occupied is not None:
            self._occupied.place(operation)

    def _in_order(self) -> None:
        apart = self._policy.apart
        at = -(apart or 0)
        for operation in self._operations:
            slot = next(iter(operation.slots))
            soonest = self._earliest(operation, slot)
            at = soonest if apart is None else max(at + apart, soonest)
            while not self._free(operation, slot, at):
                at += 1
            self._put(operation, slot, at)

    def _by_list(self) -> None:
        alone = [next(iter(operation.slots)) for operation in self._operations if len(operation.slots) == 1]
        load = {slot: alone.count(slot) for slot in Slot}
        number = {operation: index for index, operation in enumerate(self._operations)}
        behind: dict[ScheduledOperation, list[ScheduledOperation]] = {candidate: [] for candidate in self._operations}
        missing = {operation: len(before) for operation, before in self._before.items()}
        for operation, before in self._before.items():
            for other in before:
                behind[other].append(operation)
        rank = self._ranks(behind, number)
        ready = sorted((candidate for candidate in self._operations if not missing[candidate]), key=rank.__getitem__)
        at = first = 0
        while first < len(number):
            progress = True
            while progress:
                progress = False
                opened: list[ScheduledOperation] = []
                forced = None if any(self._admits(candidate, number, first) for candidate in ready) else first
                for operation in ready:
                    allowed = number[operation] == forced or self._admits(operation, number, first)
                    slot = self._slot_at(operation, at, load) if allowed else None
                    if slot is None:
                        continue
                    self._put(operation, slot, at)
                    progress = True
                    for later in behind[operation]:
                        missing[later] -= 1
                        opened += [] if missing[later] else [later]
                if progress:
                    ready = sorted(
                        (candidate for candidate in chain(ready, opened) if candidate not in self._places),
                        key=rank.__getitem__,
                    )
                    while first < len(number) and self._operations[first] in self._places:
                        first += 1
            at += 1

    def _admits(self, operation: ScheduledOperation, number: Mapping[ScheduledOperation, int], first: int) -> bool:
        """Return whether the policy issues an instruction, given its place in the text and the first waiting one's."""
        window = self._policy.window
        near = window is None or number[operation] < first + window
        return near and (self._occupied is None or self._occupied.admits(operation))

    def _ranks(
        self,
        behind: Mapping[ScheduledOperation, Sequence[ScheduledOperation]],
        number: Mapping[ScheduledOperation, int],
    ) -> dict[ScheduledOperation, tuple[int, int, int]]:
        """Return the order of ready instructions: those with the longest path to the end of the block first.

        If registers are scarce, the instructions of the text's first result come before them: every waiting value
        takes a register.
        """
        heights, goals = self._heights(), dict.fromkeys(self._operations, 0)
        if self._policy.spare is not None:
            for operation in reversed(self._operations):
                later = behind[operation]
                goals[operation] = min(map(goals.__getitem__, later)) if later else number[operation]
        return {candidate: (goals[candidate], -heights[candidate], index) for candidate, index in number.items()}

    def _slot_at(self, operation: ScheduledOperation, at: int, load: Mapping[Slot, int]) -> Slot | None:
        """Return the least-loaded slot in which an instruction may be in a bundle, None if there is none."""
        used = {slot for _, slot in self._bundles.get(at, ())}
        slots = [slot for slot in operation.slots if slot not in used and self._earliest(operation, slot) <= at]
        slots.sort(key=lambda slot: (load[slot], slot))
        return next((slot for slot in slots if self._free(operation, slot, at)), None)

    def _heights(self) -> dict[ScheduledOperation, int]:
        """Return the distance of each instruction from the end of the block, in bundles."""
        heights = dict.fromkeys(self._operations, 0)
        waits = self._placer.operations.target.element_loads.latency_cycles
        for operation in reversed(self._operations):
            slot = next(iter(operation.slots))
            if self._placer.operations.first(operation).memory is MemoryOperation.ELEMENT_LOAD:
                heights[operation] += waits
            for other in self._before[operation]:
                needed = self._placer.distances.needed(other, next(iter(other.slots)), operation, slot)
                heights[other] = max(heights[other], heights[operation] + (needed or 0))
        return heights


def bundles_of(placed: PlacedBlock) -> Iterator[list[Occupant]]:
    """Yield the contents of each bundle of a block."""
    rows: list[list[Occupant]] = [[] for _ in range(placed.length)]
    for operation, (bundle, slot) in placed.places.items():
        rows[bundle].append((operation, slot))
    yield from rows
