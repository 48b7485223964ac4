"""Scheduling of a text: candidates, the linter's verdict on each, and the shortest that is no longer than NOP padding.

The padded program is the text in its order, one instruction a bundle, each as early as latencies and issue rules
allow. Source of the rules: docs/reference/tpc.md sections 6 and 7.3.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain
from math import prod
from time import process_time

from castsim.execution.tree import issued
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import MAX_STATEMENTS, CastsimError, EngineError, IllegalError, Span
from castsim.isa.formats import FORMATS
from castsim.isa.tpc.forms import LOCAL, LOCAL_VECTORS, STORES, Feature
from castsim.isa.tpc.parser import print_program
from castsim.isa.tpc.program import (
    Bundle,
    Declaration,
    Directive,
    File,
    Immediate,
    Item,
    LabelDefinition,
    Register,
    RegisterDeclaration,
    Slot,
    TpcInstruction,
    TpcProgram,
    VlmDeclaration,
)
from castsim.machines.vliw.assembled import execute, ready
from castsim.machines.vliw.findings import LintFinding
from castsim.targets.vliw import VliwTarget
from castsim.tools.tpc_assembly.pipelining import Schedule, pipelined, place_all
from castsim.tools.tpc_compiler.placing import (
    BasicBlock,
    BlockGraph,
    LiveUnits,
    PlacedBlock,
    PlacementPolicy,
    Placer,
    blocks_of,
    bundles_of,
    check_defined,
    cut,
    mark_fresh,
    rename_values,
    without_unread,
)
from castsim.tools.tpc_compiler.scheduled_operations import (
    Distances,
    OperationLookup,
    ScheduledOperation,
    drawn,
    reading_sources,
    renumbered,
)
from castsim.tools.tpc_compiler.virtual_registers import (
    STRIDE,
    Names,
    Numbers,
    SequentialProgram,
    VirtualRegister,
    WrittenInstruction,
    free_registers,
    in_place_of,
    read_sequential,
    unit_of,
    unit_of_cell,
    widened,
    with_registers,
    written_as,
)
from castsim.tools.tpc_lint.lint_checking import lint
from castsim.tools.tpc_lint.lint_flow import live_behind

# The bundles that a program issues when it runs.

_MOST_BUNDLES = 10**9
_MOST_WALK = 50_000


def executed_bundles(program: TpcProgram, file: str, target: VliwTarget) -> int | None:
    """Return the number of bundles that a program issues; None if data decides it, or if counting takes too long."""
    try:
        assembled = ready(program, file, target, {})
        ran = execute(assembled, {}, values=False, checked=False, max_bundles=_MOST_BUNDLES, max_walk=_MOST_WALK)
    except (CastsimError, EngineError):
        return None
    return sum(times for times, _ in issued(ran.tree.root))


# Real registers for virtual ones: liveness over all paths, interference bundle by bundle, colours by position.

_TAIL = 2
"""Number of bundles after a write in which no other value gets its register, read or not."""


@dataclass(frozen=True, slots=True)
class Pressure:
    """Excess of live virtual registers over a file: the file, its free registers, and the live ones at each place."""

    file: File
    free: int
    needed: int
    at: ScheduledOperation | None
    live: tuple[VirtualRegister, ...]


@dataclass(slots=True)
class Lives:
    """The virtual registers that must not share registers, and their order of appearance."""

    apart: dict[VirtualRegister, set[VirtualRegister]] = field(default_factory=lambda: defaultdict(set))
    order: dict[VirtualRegister, int] = field(default_factory=dict)
    most: dict[File, tuple[int, ScheduledOperation | None, frozenset[VirtualRegister]]] = field(default_factory=dict)


def lives_of(
    shape: BlockGraph, schedule: Sequence[PlacedBlock], operations: OperationLookup, declared: Set[VirtualRegister]
) -> Lives:
    """Return the virtual registers that must not share registers in a schedule; `declared` have values at the start."""
    behind = _live_behind(shape, schedule, operations)
    lives = Lives()
    count = 0
    for number, placed in enumerate(schedule):
        live = set(behind[number])
        rows = list(bundles_of(placed))
        recent: list[set[VirtualRegister]] = []
        for index in range(len(rows) - 1, -1, -1):
            written = {unit for operation, _ in rows[index] for unit in _units(operations.touched(operation).writes)}
            read = {unit for operation, _ in rows[index] for unit in _units(operations.touched(operation).reads)}
            after = _units(live)
            _keep_apart(
                lives,
                written,
                after | read | written | {unit for written_units in recent[:_TAIL] for unit in written_units},
            )
            for unit in written | read:
                lives.order[unit] = min(lives.order.get(unit, count + index), count + index)
            anyone = rows[index][0][0] if rows[index] else None
            _record(lives, after | written, anyone, operations.names)
            recent.insert(0, written)
            live = _before(live, rows[index], operations)
        if number == 0:
            start = _units(live) | declared
            _keep_apart(lives, start, start)
            for unit in start:
                lives.order[unit] = -1
            _record(lives, start, None, operations.names)
        count += placed.length
    return lives


def allocated(lives: Lives, names: Names, free: Mapping[File, list[int]]) -> dict[VirtualRegister, int] | Pressure:
    """Return the first register of every virtual one, or the place where registers are short."""
    for by_size in (True, False):
        coloring = _coloured(lives, names, free, by_size=by_size)
        if coloring is not None:
            return coloring
    for file, (needed, at, units) in lives.most.items():
        if needed > len(free[file]):
            return Pressure(file, len(free[file]), needed, at, tuple(sorted(units, key=lambda u: u.number)))
    file, (needed, at, units) = max(lives.most.items(), key=lambda entry: entry[1][0] - len(free[entry[0]]))
    return Pressure(file, len(free[file]), needed, at, tuple(sorted(units, key=lambda unit: unit.number)))


def _coloured(
    lives: Lives, names: Names, free: Mapping[File, list[int]], *, by_size: bool
) -> dict[VirtualRegister, int] | None:
    coloring: dict[VirtualRegister, int] = {}
    order = sorted(
        lives.order, key=lambda u: (-names.sizes[u] if by_size else 0, lives.order[u], -names.sizes[u], u.number)
    )
    for unit in order:
        size = names.sizes[unit]
        taken = {
            coloring[other] + k
            for other in lives.apart[unit]
            if other in coloring and other.file is unit.file
            for k in range(names.sizes[other])
        }
        usable = set(free[unit.file]) - taken
        starts = (index for index in free[unit.file] if index % size == 0)
        start = next((index for index in starts if usable.issuperset(range(index, index + size))), None)
        if start is None:
            return None
        coloring[unit] = start
    return coloring


def _keep_apart(lives: Lives, some: Set[VirtualRegister], others: Set[VirtualRegister]) -> None:
    if not some:
        return
    by_file: dict[File, set[VirtualRegister]] = defaultdict(set)
    for other in others:
        by_file[other.file].add(other)
    for unit in some:
        rivals = by_file[unit.file] - {unit}
        lives.apart[unit] |= rivals
        for other in rivals:
            lives.apart[other].add(unit)


def _record(lives: Lives, units: Set[VirtualRegister], at: ScheduledOperation | None, names: Names) -> None:
    """Remember where most registers of a file are needed."""
    needed: dict[File, int] = {}
    for unit in units:
        needed[unit.file] = needed.get(unit.file, 0) + names.sizes[unit]
    for file, count in needed.items():
        if count > lives.most.get(file, (0, None, frozenset()))[0]:
            lives.most[file] = count, at, frozenset(unit for unit in units if unit.file is file)


def _units(cells: Iterable[str]) -> set[VirtualRegister]:
    return {unit for cell in cells if (unit := unit_of_cell(cell)) is not None}


def _before(live: set[str], row: Sequence[tuple[ScheduledOperation, object]], operations: OperationLookup) -> set[str]:
    """Return the cells that are live before a bundle."""
    touched = [operations.touched(operation) for operation, _ in row]
    for touch in touched:
        live = live - (touch.writes - touch.old)
    for access in touched:
        live = live | access.reads | access.old
    return live


def _live_behind(
    shape: BlockGraph, schedule: Sequence[PlacedBlock], operations: OperationLookup
) -> dict[int, set[str]]:
    """Return the virtual cells that are live after each block."""
    rows = [list(bundles_of(placed)) for placed in schedule]

    def before(number: int, behind: Set[str]) -> Set[str]:
        live = set(behind)
        for row in reversed(rows[number]):
            live = _before(live, row, operations)
        return {cell for cell in live if unit_of_cell(cell) is not None}

    return live_behind([[step.first for step in steps] for steps in shape.into], before)


# Too few registers: values that wait in local memory, or are made again, between where they are written and read.

_SPILLABLE = {File.V: ("vlm", 256), File.VP: ("vlm", 256), File.S: ("slm", 4), File.SP: ("slm", 4), File.I: ("slm", 4)}
"""Memory for the values of a file, and bytes for each register; for index registers, bytes of a dimension."""
_MOST_SPILLS = 64
"""Rounds of choosing registers."""


Home = int | ScheduledOperation | VirtualRegister
"""The place of a spilled value: an address, the instruction that recomputes it, or two S (for an address register)."""


class Spiller:
    """Keeps values of virtual registers in local memory: stored after their writers, loaded before their readers.

    `source` and `operations` are the current text and its instructions' effects, `spilled` the registers so far, by
    their names in the text.
    """

    def __init__(self, source: SequentialProgram, operations: OperationLookup) -> None:
        self.source, self.operations = source, operations
        self.spilled: list[str] = []
        self._target = target = operations.target
        self._dimensions = target.registers.index_dimensions
        self._wide = widened(target.dialect)
        self._short_lived: set[VirtualRegister] = set()
        self._free = _free_memory(source, target)

    def without(
        self, written: Sequence[ScheduledOperation], depths: Mapping[ScheduledOperation, int], pressure: Pressure
    ) -> SequentialProgram | None:
        """Return a text with lower register pressure where it is highest; None if nothing can be spilled.

        `written` are the instructions of `source`, `depths` the loop depth of each.
        """
        names, touched = self.source.names, self.operations.touched
        costs: dict[VirtualRegister, float] = dict.fromkeys(set(pressure.live) - self._short_lived, 0.0)
        writers: dict[VirtualRegister, list[ScheduledOperation]] = defaultdict(list)
        for operation in written:
            for unit in _units(touched(operation).reads | touched(operation).writes) & costs.keys():
                costs[unit] += 10.0 ** depths.get(operation, 0)
            for unit in _units(touched(operation).writes):
                writers[unit].append(operation)
        last = {unit: n for n, instruction in enumerate(written) for unit in _units(touched(instruction).reads)}
        chosen: dict[VirtualRegister, Home] = {}
        needed = max(1, pressure.needed - pressure.free + _TAIL)
        for unit in sorted(costs, key=lambda candidate: (costs[candidate], -last.get(candidate, 0), candidate.number)):
            home = self._home(unit, writers[unit]) if needed > 0 else None
            if home is not None:
                chosen[unit] = home
                needed -= names.sizes[unit]
        self.spilled += [names.spelling(unit) for unit in chosen]
        return self._rewritten(written, chosen) if chosen else None

    def _home(self, unit: VirtualRegister, writers: Sequence[ScheduledOperation]) -> Home | None:
        """Return where a value waits, None for nowhere."""
        names = self.source.names
        if len(writers) == 1 and unit.file is not File.I:
            touched, plan = self.operations.touched(writers[0]), self.operations.first(writers[0])
            if not (touched.reads or touched.old or plan.memory or drawn(plan) or plan.depends):
                return writers[0]
        if unit.file is File.AD and Feature.ADDRESS_MOVES in self._target.dialect.features:
            pair = names.fresh(File.S, names.shown[unit])
            names.need(pair, 2)
            return pair
        if unit.file not in _SPILLABLE:
            return None
        memory, size = _SPILLABLE[unit.file]
        start, end = self._free[memory]
        after = start + size * (names.sizes[unit] if unit.file is not File.I else self._dimensions)
        self._free[memory] = min(after, end), end
        return start if after <= end else None

    def _rewritten(
        self, written: Sequence[ScheduledOperation], homes: Mapping[VirtualRegister, Home]
    ) -> SequentialProgram:
        instructions: list[WrittenInstruction] = []
        for declaration in self.source.declarations:
            unit = unit_of(declaration.register) if isinstance(declaration, RegisterDeclaration) else None
            if unit is not None and unit in homes:
                instructions += self._moved(unit, unit.base, range(1), homes[unit], written[0].span, load=False)
        places = []
        for operation in written:
            places.append(len(instructions))
            touched = self.operations.touched(operation)
            read, stored = ({*_units(cells)} & homes.keys() for cells in (touched.reads | touched.old, touched.writes))
            if any(homes[unit] is operation for unit in stored):
                continue
            new = {unit: self.source.names.renamed(unit) for unit in sorted(read | stored, key=lambda u: u.number)}
            self._short_lived |= set(new.values())
            for unit in (fresh_unit for fresh_unit in new if fresh_unit in read):
                members = _members(unit, touched.reads | touched.old)
                instructions += self._moved(unit, new[unit].base, members, homes[unit], operation.span, load=True)
            changed = renumbered(operation, new, new) if new else operation
            instructions.append(WrittenInstruction(dict(changed.slots), operation.span))
            for unit in (fresh_unit for fresh_unit in new if fresh_unit in stored):
                members = _members(unit, touched.writes)
                instructions += self._moved(unit, new[unit].base, members, homes[unit], operation.span, load=False)
        places.append(len(instructions))
        labels = tuple(replace(label, place=places[label.place]) for label in self.source.labels)
        return replace(self.source, instructions=tuple(instructions), labels=labels)

    def _moved(
        self, unit: VirtualRegister, base: int, members: Iterable[int], home: Home, span: Span, *, load: bool
    ) -> list[WrittenInstruction]:
        """Return the instructions between registers from number `base` on and where the value of a unit waits."""
        if isinstance(home, ScheduledOperation):
            other = VirtualRegister(unit.file, unit.number + (base - unit.base) // STRIDE)
            return [WrittenInstruction(dict(renumbered(home, {}, {unit: other}).slots), span)] if load else []
        if isinstance(home, VirtualRegister):
            ends = (f"AD{base}", f"Z{home.base}") if load else (f"Z{home.base}", f"AD{base}")
            return self._read([f"mov {', '.join(ends)}"], span)
        vector, size = _SPILLABLE[unit.file][0] == "vlm", _SPILLABLE[unit.file][1]
        two_part = vector and Feature.TWO_PART_ADDRESS in self._target.dialect.features
        scratch = self.source.names.fresh(File.S, "address") if two_part or unit.file is File.I else unit
        self._short_lived.add(scratch)
        word, access = f"S{scratch.base}", "l_v" if vector else "l"
        texts = [f"mov.i32 {word}, 0x0"] * two_part
        for number in members if unit.file is not File.I else range(self._dimensions):
            address, name = f"{f'{word}, ' * two_part}{home + size * number:#x}", f"{unit.file}{base + number}"
            if unit.file is not File.I:
                texts.append(f"ld_{access} {name}, {address}" if load else f"st_{access} {address}, {name}")
            elif load:
                texts += [f"ld_l {word}, {address}", f"set_indx I{base}, b{1 << number:05b}, {word}"]
            else:
                texts += [f"mov_irf_dim {number:#x} {word}, I{base}", f"st_l {address}, {word}"]
        return self._read(texts, span)

    def _read(self, texts: Sequence[str], span: Span) -> list[WrittenInstruction]:
        """Return instructions as if they stood in the text."""
        instructions = (written_as(text, span.file, self._wide) for text in texts)
        return [
            WrittenInstruction(
                {slot: replace(slot_instruction, span=span) for slot, slot_instruction in instruction.slots.items()},
                span,
            )
            for instruction in instructions
        ]


def _members(unit: VirtualRegister, cells: Iterable[str]) -> list[int]:
    """Return which registers of a unit are among cells."""
    return sorted(int(cell.removeprefix(unit.file)) - unit.base for cell in cells if unit_of_cell(cell) == unit)


def _free_memory(source: SequentialProgram, target: VliwTarget) -> dict[str, tuple[int, int]]:
    """Return the unused bytes of each local memory: none where they are unknown."""
    instructions = [written.instruction for written in source.instructions]
    small = (
        any(instruction.mnemonic.startswith("lookup") for instruction in instructions)
        or target.option("vlm_size") == "small"
    )
    ends = {memory: target.memories[memory].capacity_bytes for memory in ("vlm", "slm")}
    ends["vlm"] = target.small_vector_memory.capacity_bytes if small else ends["vlm"]
    starts = dict.fromkeys(ends, 0) if source.local is None else dict(source.local)
    for instruction in instructions:
        if instruction.form.memory not in LOCAL or instruction.switch("mmio"):
            continue
        memory = "vlm" if instruction.form.memory in LOCAL_VECTORS else "slm"
        address = [instruction.operand(role) for role in ("src_a", "src_b")]
        constants = [part.value for part in address if isinstance(part, Immediate)]
        if len(constants) == sum(part is not None for part in address):
            starts[memory] = max(starts.get(memory, 0), sum(constants) + (256 if memory == "vlm" else 4))
        elif source.local is None:
            starts[memory] = ends[memory]
    for declaration in source.declarations:
        if isinstance(declaration, VlmDeclaration):
            starts["vlm"] = max(
                starts["vlm"], declaration.address + prod(declaration.shape) * FORMATS[declaration.format].bits // 8
            )
    return {memory: (-(-starts.get(memory, 0) // 256) * 256, end) for memory, end in ends.items()}


# A schedule as a program: labels, bundles, real registers in place of virtual ones.


def assembled(
    source: SequentialProgram, shape: BlockGraph, schedule: Sequence[PlacedBlock], numbers: Numbers, target: VliwTarget
) -> TpcProgram:
    """Return the program of a schedule."""
    end = source.instructions[-1].span if source.instructions else None
    items: list[Item] = [Directive(text, span=end) if end else Directive(text) for text in source.directives]
    for block, placed in zip(shape.blocks, schedule, strict=True):
        spans = {label.name: label.span for label in source.labels}
        items += [LabelDefinition(name, span=spans[name]) for name in block.labels]
        items += [_bundle(row, numbers, target) for row in bundles_of(placed)]
    items += [_bundle([], numbers, target)] * _empty_at_end(items, target)
    return TpcProgram(tuple(_declared(declaration, numbers) for declaration in source.declarations), tuple(items))


def _bundle(row: Sequence[tuple[ScheduledOperation, Slot]], numbers: Numbers, target: VliwTarget) -> Bundle:
    slots: dict[Slot, TpcInstruction] = {}
    for operation, slot in row:
        if operation.mnemonic == "halt":
            halts = target.end_rules.halt_slots
            slots |= {halt_slot: operation.slots[halt_slot] for halt_slot in Slot if halt_slot.name.lower() in halts}
        else:
            slots[slot] = with_registers(operation.slots[slot], numbers, numbers)
    first = min((operation.span for operation, _ in row), key=lambda span: span.line, default=None)
    if first is None:
        return Bundle(written=len(Slot))
    return Bundle(*(slots.get(slot) for slot in Slot), written=len(Slot), span=first)


def _declared(declaration: Declaration, numbers: Numbers) -> Declaration:
    if isinstance(declaration, RegisterDeclaration):
        return replace(declaration, register=in_place_of(declaration.register, numbers))
    return declaration


def _empty_at_end(items: Sequence[Item], target: VliwTarget) -> int:
    """Return the missing empty bundles after the last store; those after HALT count."""
    bundles = [item for item in items if isinstance(item, Bundle)]
    empty = 0
    for bundle in reversed(bundles):
        occupants = [instruction for instruction in bundle.slots if instruction is not None]
        if any(instruction.form.memory in STORES for instruction in occupants):
            return max(0, target.end_rules.empty_after_store - empty)
        empty += not occupants
    return 0


_OF_THE_TEXT = ("unread result", "unwritten register", "slot count", "scalar load in loop")
"""Rules of the linter that speak of the text and not of its schedule."""
_PADDED = PlacementPolicy(one=True)
_LISTS = (
    PlacementPolicy(),
    PlacementPolicy(spare=3),
    PlacementPolicy(spare=8),
    *(PlacementPolicy(window=window) for window in (24, 8, 3)),
)
_MOST_SHOWN = 5
"""Registers that a refusal names."""
_SMALL = 400
"""Maximum number of instructions for which all candidates are tried."""


@dataclass(frozen=True, slots=True)
class BundleCount:
    """The bundles of a program: in its text, and issued when it runs (None: data decides it)."""

    static: int
    executed: int | None


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A scheduled program. `method` is the method of scheduling: `padding`, `list` or `pipelined`.

    `registers` maps virtual registers, by their names in the text, to real ones; `removed` are instructions with unread
    results, `spilled` the virtual registers whose values are kept in local memory or recomputed.
    """

    program: TpcProgram
    text: str
    method: str
    length: BundleCount
    padding: BundleCount
    registers: dict[str, tuple[str, ...]]
    removed: tuple[ScheduledOperation, ...]
    findings: tuple[LintFinding, ...]
    spilled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Candidate:
    method: str
    shape: BlockGraph
    schedule: Schedule


@dataclass(frozen=True, slots=True)
class _Draft:
    """A candidate with real registers, not linted yet."""

    method: str
    program: TpcProgram
    numbers: Numbers
    length: BundleCount


def schedule(
    text: str, file: str, target: VliwTarget, max_statements: int = MAX_STATEMENTS, *, longer: bool = False,
    until: float = math.inf,
) -> Scheduled:  # fmt: skip
    """Schedule a text of one instruction a line.

    The program is never longer than padded, in its text and in issued bundles; `longer` allows a longer text
    where the program issues fewer. After the time `until` of `process_time` no further candidate is made.

    Raises:
        ReadError: a line is malformed, the text has bundles, or a virtual register is read unwritten.
        IllegalError: the target lacks an instruction, or more virtual registers are live than a file has.
        LimitError: there are more instructions than `max_statements`.
    """
    source = read_sequential(text, file, target, max_statements)
    return schedule_program(source, target, longer=longer, until=until)


def schedule_program(
    source: SequentialProgram, target: VliwTarget, *, longer: bool = False, until: float = math.inf
) -> Scheduled:
    """Schedule a parsed text; see `schedule`."""
    scheduler = _Scheduler(source, target, longer=longer, until=until)
    try:
        return scheduler.best()
    except IllegalError:
        fitting, spilled = scheduler.fitting()
        if fitting is None:
            raise
    return replace(fitting.best(), spilled=spilled)


def _in_order(shape: BlockGraph) -> Schedule:
    """Return the blocks with one instruction a bundle, without scheduling."""
    return [
        PlacedBlock(
            {operation: (n, next(iter(operation.slots))) for n, operation in enumerate(block.all)}, len(block.all)
        )
        for block in shape.blocks
    ]


class _Scheduler:
    """Schedules one text."""

    def __init__(self, source: SequentialProgram, target: VliwTarget, *, longer: bool, until: float) -> None:
        self._longer, self._until = longer, until
        self._counted = True
        """Whether all issued bundles could be counted so far: the deciding data is the same for every candidate."""
        self._source = source
        self._target = target
        self._operations = OperationLookup(target, source.names)
        written = [ScheduledOperation(instruction.slots, instruction.span) for instruction in source.instructions]
        labels: dict[int, list[str]] = {}
        for label in source.labels:
            labels.setdefault(label.place, []).append(label.name)
        if not written or written[-1].mnemonic != "halt" or len(written) in labels:
            halt = written_as("halt", "<end>", target.dialect)
            written.append(ScheduledOperation(halt.slots, halt.span))
        self._written = written[: len(source.instructions)]
        self._declared = frozenset(
            unit
            for declaration in source.declarations
            if isinstance(declaration, RegisterDeclaration) and (unit := unit_of(declaration.register)) is not None
        )
        for operation in written:
            for unit, count in self._operations.units(operation).items():
                source.names.need(unit, count, operation.span)
        self._operations.maps = any(self._operations.first(scheduled).stores_mapped for scheduled in written)
        self._blocks = blocks_of(written, labels)
        self._shape = BlockGraph(self._blocks, target)
        check_defined(self._shape, self._operations, self._declared)
        self._removed = without_unread(self._shape, self._operations)
        self._read_sources()
        self._blocks = cut(self._blocks)
        self._shape = BlockGraph(self._blocks, target)
        mark_fresh(self._shape, self._operations, self._declared)
        self._placer = self._new_placer(self._shape)

    def _read_sources(self) -> None:
        """Let instructions read the original instead of its copy, and remove copies that are then unread."""
        now: dict[ScheduledOperation, ScheduledOperation] = {}
        for block in self._blocks:
            before, changed = block.all, reading_sources(block.all, self._operations)
            now.update(zip(before, changed, strict=True))
            block.end = changed.pop() if block.end is not None else None
            block.operations = changed
        self._written = [now.get(operation, operation) for operation in self._written]
        self._removed += without_unread(self._shape, self._operations)
        self._removed.sort(key=lambda operation: (operation.span.line, operation.span.column))

    def _new_placer(self, shape: BlockGraph) -> Placer:
        iterators = {shape.head(loop): shape.iterator(loop) for loop in shape.loops}
        in_order = _in_order(shape)
        behind = _live_behind(shape, in_order, self._operations)
        live = {}
        for number, block in enumerate(shape.blocks):
            before = set(behind[number])
            for operation in reversed(block.all):
                before = _before(before, [(operation, None)], self._operations)
            live[block] = LiveUnits(frozenset(_units(before)), frozenset(_units(behind[number])))
        free = free_registers(self._target, self._real())
        registers = {file: len(numbers) for file, numbers in free.items()}
        return Placer(self._operations, Distances(self._operations, iterators), registers, live)

    # -------------------------------------------------------------------------------------------------- candidates

    def best(self) -> Scheduled:
        """Return the shortest candidate without linter findings.

        The padded program is linted only if no other is shorter; if it breaks a rule, others need not be shorter.
        """
        padded = place_all(self._shape, self._placer, [_PADDED] * len(self._blocks))
        base = self._drafted(_Candidate("padding", self._shape, padded))
        padding = BundleCount(sum(block.length for block in padded), None)
        drafts, tried = map(self._drafted, self._candidates(padded)), list[_Draft | Pressure | CastsimError]()
        result: Scheduled | Pressure | CastsimError | None
        if isinstance(base, _Draft):
            result = self._shortest(drafts, base.length, base.length, tried)
            if result is None:
                result = self._checked(base)
            if isinstance(result, Scheduled):
                padding = base.length
        else:
            result = base
        if not isinstance(result, Scheduled):
            result = self._shortest(chain(tried, drafts), padding, None, []) or self._spaced(result)
        return replace(result, padding=padding, removed=tuple(self._removed))

    def fitting(self) -> tuple[_Scheduler | None, tuple[str, ...]]:
        """Return the scheduler of the text with values spilled where registers are short, and the spilled registers.

        Return None if spilling does not help or registers are not short.
        """
        scheduler, spiller = self, Spiller(self._source, self._operations)
        for _ in range(_MOST_SPILLS):
            blocks = scheduler._blocks
            pressure = scheduler._registers_of(scheduler._shape, _in_order(scheduler._shape))
            if not isinstance(pressure, Pressure):
                return None if scheduler is self else scheduler, tuple(dict.fromkeys(spiller.spilled))
            loops = scheduler._shape.loops
            depths = {
                operation: sum(loop.holds(n) for loop in loops)
                for n, block in enumerate(blocks)
                for operation in block.all
            }
            changed = spiller.without(scheduler._written, depths, pressure)
            if changed is None:
                break
            scheduler = _Scheduler(changed, self._target, longer=self._longer, until=self._until)
            spiller.source, spiller.operations = changed, scheduler._operations
        return None, ()

    def _shortest(
        self,
        drafts: Iterable[_Draft | Pressure | CastsimError],
        padding: BundleCount,
        shortest: BundleCount | None,
        tried: list[_Draft | Pressure | CastsimError],
    ) -> Scheduled | None:
        """Return the best draft that is shorter than `shortest` (None: of any length), None if there is none.

        `tried` collects the examined ones.
        """
        best: Scheduled | None = None
        for draft in drafts:
            tried.append(draft)
            if isinstance(draft, _Draft) and (
                shortest is None or (self._within(draft.length, padding) and _key(draft.length) < _key(shortest))
            ):
                result = self._checked(draft)
                if isinstance(result, Scheduled):
                    best, shortest = result, result.length
            if shortest is not None and process_time() > self._until:
                break
        return best

    def _candidates(self, padded: Schedule) -> Iterator[_Candidate]:
        size = sum(len(block.all) for block in self._blocks)
        blocks = [self._renamed(block) for block in self._blocks]
        shape = BlockGraph(blocks, self._target)
        placer = self._new_placer(shape)
        best: list[PlacedBlock] | None = None
        for policy in _LISTS if size <= _SMALL else _LISTS[:3]:
            schedule = place_all(shape, placer, [policy] * len(blocks))
            # No block is longer than padded, so that no path is.
            if all(block.length <= padded_block.length for block, padded_block in zip(schedule, padded, strict=True)):
                best = best or schedule
                yield _Candidate("list", shape, schedule)
        if best is None or size > _SMALL:
            return
        for most in (sum(placement.length for placement in padded), *([None] if self._longer else [])):
            for text in pipelined(blocks, most, self._operations, self._new_placer):
                yield _Candidate("pipelined", text.shape, text.schedule)

    def _renamed(self, block: BasicBlock) -> BasicBlock:
        copy = BasicBlock(block.labels, block.operations, block.end)
        rename_values(copy, self._operations)
        return copy

    def _within(self, length: BundleCount, padding: BundleCount) -> bool:
        """Return whether a program is within the requested length, in its text and when it runs."""
        if length.executed is None or padding.executed is None:
            return length.static <= padding.static
        return (self._longer or length.static <= padding.static) and length.executed <= padding.executed

    # ------------------------------------------------------------------------------------------------- one candidate

    def _drafted(self, candidate: _Candidate) -> _Draft | Pressure | CastsimError:
        """Return a candidate with real registers, or why it has none."""
        numbers = self._registers_of(candidate.shape, candidate.schedule)
        if isinstance(numbers, Pressure):
            return numbers
        try:
            program = assembled(self._source, candidate.shape, candidate.schedule, numbers, self._target)
            executed = executed_bundles(program, self._source.file, self._target) if self._counted else None
            self._counted = executed is not None
        except CastsimError as error:
            return error
        return _Draft(candidate.method, program, numbers, BundleCount(len(program.bundles), executed))

    def _registers_of(
        self, shape: BlockGraph, schedule: Sequence[PlacedBlock]
    ) -> dict[VirtualRegister, int] | Pressure:
        lives = lives_of(shape, schedule, self._operations, self._declared)
        return allocated(lives, self._source.names, free_registers(self._target, self._real()))

    def _checked(self, draft: _Draft) -> Scheduled | CastsimError:
        """Return a draft as the result, or the rule that it breaks."""
        try:
            findings = lint(draft.program, self._target)
        except CastsimError as error:
            return error
        broken = [finding for finding in findings if finding.rule not in _OF_THE_TEXT]
        if broken:
            return IllegalError(f"{broken[0].rule}: {broken[0].message}", span=broken[0].span)
        text, registers = print_program(draft.program), self._spelled(draft.numbers)
        return Scheduled(draft.program, text, draft.method, draft.length, draft.length, registers, (), findings)

    def _spaced(self, refusal: Pressure | CastsimError) -> Scheduled:
        """Return the program with all results awaited, if that is possible at all.

        Raises:
            IllegalError: there are not enough registers, or the text breaks a rule in any schedule.
        """
        policy = PlacementPolicy(one=True, apart=self._placer.distances.reach)
        schedule = place_all(self._shape, self._placer, [policy] * len(self._blocks))
        draft = self._drafted(_Candidate("padding", self._shape, schedule))
        result = self._checked(draft) if isinstance(draft, _Draft) else draft
        if isinstance(result, Scheduled):
            return result
        if isinstance(refusal, Pressure):
            raise self._too_many(refusal)
        raise refusal

    def _too_many(self, pressure: Pressure) -> IllegalError:
        names = self._source.names
        where: dict[VirtualRegister, int] = {}
        for block in self._blocks:
            for operation in block.all:
                for unit in self._operations.units(operation):
                    where.setdefault(unit, operation.span.line)
        shown = ", ".join(f"{names.spelling(unit)} (line {where.get(unit, 1)})" for unit in pressure.live[:_MOST_SHOWN])
        more = len(pressure.live) - _MOST_SHOWN
        shown += f" and {more} more" if more > 0 else ""
        line = f"line {pressure.at.span.line}" if pressure.at is not None else "the beginning"
        message = (
            f"{pressure.needed} {pressure.file} registers are needed at once in {line}, and {pressure.free} are free "
            f"beside those that the text names; live there: {shown}"
        )
        span = pressure.at.span if pressure.at is not None else None
        legal = (f"up to {pressure.free} live virtual registers of {pressure.file}", "values kept in memory meanwhile")
        return IllegalError(message, span=span, legal=legal)

    # ----------------------------------------------------------------------------------------------------- registers

    def _real(self) -> Iterator[Register]:
        for declaration in self._source.declarations:
            if isinstance(declaration, RegisterDeclaration) and unit_of(declaration.register) is None:
                yield declaration.register
        for block in self._blocks:
            for operation in block.all:
                yield from (register for register in operation.instruction.registers if unit_of(register) is None)

    def _spelled(self, numbers: Numbers) -> dict[str, tuple[str, ...]]:
        """Return the real registers of every virtual one, in the order of the text."""
        names = self._source.names
        spellings: dict[str, list[str]] = {}
        for unit in sorted(numbers, key=lambda unit: (unit.number, unit.file)):
            name, start = names.spelling(unit), numbers[unit]
            last = start + names.sizes[unit] - 1
            shown = f"{unit.file}{start}" + (f" .. {unit.file}{last}" if last > start else "")
            if shown not in spellings.setdefault(name, []):
                spellings[name].append(shown)
        return {name: tuple(spelled) for name, spelled in spellings.items()}


def _key(length: BundleCount) -> tuple[int, int]:
    """Return the sort key of lengths: executed bundles first, where they are known, then those of the text."""
    return (length.static if length.executed is None else length.executed, length.static)
