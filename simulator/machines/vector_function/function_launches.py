"""The launches of vector functions, from the time of their instructions one by one (docs/reference/micro.md 6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from castsim.execution.dataflow.transfer_timing import TICKS
from castsim.execution.tree import Instruction, Lowered, Tree, elements, instances, operations
from castsim.isa.pto.micro_words import ROUNDINGS
from castsim.machines.launches import Launches, LaunchLine, LaunchSlice, LineWait
from castsim.machines.vector_function.function_operations import (
    Bitwise,
    Compute,
    Convert,
    CountDown,
    Gather,
    Interleave,
    Load,
    MemoryBarrier,
    Nest,
    RegisterOperation,
    SetAll,
    Spread,
    Store,
    TripSelect,
    VectorFunction,
    mnemonic,
)
from castsim.machines.vector_function.function_timing import bytes_of_row
from castsim.machines.vector_function.scopes.instruction_scoreboard import ScopeTiming
from castsim.machines.vector_function.scopes.operation import MicroFunction, time_scope
from castsim.machines.vector_function.scopes.scope import Instruction as ScopeInstruction
from castsim.machines.vector_function.scopes.scope import Kind, Scope
from castsim.machines.vector_function.trip_timing import Computing, LoadStep, StoreStep, row_address, trip_shape
from castsim.targets import Target
from castsim.targets.register_text import Mode, distribution_of
from castsim.targets.vector_function import VectorFunctionTarget
from castsim.timing import Cause, Timing, repeated

# The vector function of a tile operation, written out as the instructions of its kernel text.
#
# Source: docs/reference/micro.md 6.3.


class Kernel:
    """A vector function as one launch.

    `scope` is what it issues, by the nests whose time counts; for lines stand the numbers of instructions and loops in
    the order of the kernel.
    """

    def __init__(self, function: VectorFunction, target: VectorFunctionTarget) -> None:
        self.scope = Scope()
        self._function, self._target = function, target
        self._names: dict[str, int] = {}
        self._numbers: dict[tuple[int, str, int], int] = {}
        for number, nest in enumerate(function.timed):
            if nest.runs:
                self._nest(number, nest)

    @property
    def count(self) -> int:
        """How many instructions and loops the kernel has."""
        return len(self._numbers)

    def _line(self, nest: int, part: str, item: int) -> int:
        """Return the number of an instruction or a loop."""
        return self._numbers.setdefault((nest, part, item), len(self._numbers) + 1)

    def _nest(self, number: int, nest: Nest) -> None:
        if nest.row_loop:
            self.scope.begin_loop(nest.rows, self._line(number, "rows", 0))
        # Predicates that do not change are made before the loop (docs/reference/a5.md section 6.2, rule 3).
        still = nest.row_loop and nest.trips == 1
        trip = [item for item in nest.trip if not (still and isinstance(item, Spread | TripSelect))]
        shape = trip_shape(nest, self._target)
        inner = [each for each in shape.stores if not each.closing]
        closing = [each for each in shape.stores if each.closing]
        lead = row_address(self._function, nest, self._target)
        for row in range(nest.rows):
            self._issue(number, "row", nest.row, _Place(nest, row, 0, shape.row_loads, ()))
            self.scope.begin_loop(nest.trips, self._line(number, "trips", 0), lead)
            for turn in range(nest.trips):
                self._issue(number, "trip", trip, _Place(nest, row, turn, shape.loads, inner))
                self.scope.end_trip()
            self._issue(number, "close", nest.close, _Place(nest, row, 0, (), closing))
            if nest.row_loop:
                self.scope.end_trip()

    def _issue(self, number: int, part: str, items: Iterable[RegisterOperation], place: _Place) -> None:
        for index, item in enumerate(items):
            match item:
                case Load():
                    self._load(item, self._line(number, part, index), place)
                case Store():
                    self._store(item, self._line(number, part, index), place)
                case MemoryBarrier():
                    line = self._line(number, part, index)
                    self.scope.issue(
                        ScopeInstruction("mem_bar", Kind.BARRIER, word=item.kinds, line=line, text=_text(item))
                    )
                case TripSelect():
                    line = self._line(number, part, index)
                    self.scope.issue(ScopeInstruction("select", Kind.SELECT, line=line, text=_text(item)))
                case CountDown() | SetAll():
                    self._names.pop(item.result, None)
                case Bitwise() | Compute() | Convert() | Gather() | Interleave() | Spread():
                    self._compute(item, self._line(number, part, index))
                case _:
                    pass  # constants are made before the loops

    def _load(self, item: Load, line: int, place: _Place) -> None:
        step = next(place.loads)
        far, near = step.steps
        kind = ScopeInstruction(
            "vlds",
            Kind.LOAD,
            size=step.size,
            unpacks=distribution_of(item.distribution).mode is Mode.UNPK,
            updates=place.nest.post_update,
            masks=step.mask,
            line=line,
            text=_text(item),
        )
        self._put(kind, (), item.results, self._function.operand(step.operand) + place.row * far + place.trip * near)

    def _store(self, item: Store, line: int, place: _Place) -> None:
        step, nest = next(place.stores), place.nest
        start = place.trip * nest.destination_trip + step.offset
        row_bytes = bytes_of_row(nest.count, nest.destination_trip, nest.elements)
        size = step.size if step.closing else max(0, min(step.size, row_bytes - start))
        kind = ScopeInstruction("vsts", Kind.STORE, size=size, line=line, text=_text(item))
        base = self._function.destination if nest.writes is None else self._function.operand(nest.writes)
        self._put(kind, (item.source, item.predicate), (), base + place.row * nest.destination_row + start)

    def _compute(self, item: Computing, line: int) -> None:
        reads: tuple[str, ...]
        writes: tuple[str, ...]
        match item:
            case Bitwise():
                reads, writes = (*item.sources, item.predicate), (item.result,)
            case Interleave() | Compute():
                reads, writes = item.sources, item.results
            case Gather():
                reads, writes = (item.source, item.index), (item.result,)
            case Convert():
                reads, writes = (item.source, item.predicate), (item.result,)
            case Spread():
                reads, writes = (item.source,), (item.result,)
        width = item.width if isinstance(item, Bitwise | Interleave | Compute) else 32
        kind = ScopeInstruction(
            mnemonic(item), Kind.COMPUTE, width, masks=isinstance(item, Spread), line=line, text=_text(item)
        )
        self._put(kind, reads, writes)

    def _put(self, kind: ScopeInstruction, reads: Iterable[str], writes: tuple[str, ...], address: int = 0) -> None:
        known = [self._names[name] for name in reads if name in self._names]
        made = self.scope.issue(kind, known, len(writes), address)
        self._names.update(zip(writes, made, strict=True))


class _Place:
    """A trip of a nest: what is left of its loads and stores."""

    def __init__(self, nest: Nest, row: int, trip: int, loads: Iterable[LoadStep], stores: Iterable[StoreStep]) -> None:
        self.nest, self.row, self.trip = nest, row, trip
        self.loads, self.stores = iter(loads), iter(stores)


def _text(item: RegisterOperation) -> str:
    """Return an instruction as reports name it."""
    match item:
        case Load():
            return f"{'vldsx2' if len(item.results) > 1 else 'vlds'} {item.distribution}"
        case Store():
            return f"vsts {item.distribution}"
        case Convert():
            letter = next((one for one, mode in ROUNDINGS.items() if mode is item.policy.rounding), "")
            between = item.src.name if item.integral else f"{item.src.name} -> {item.dst.name}"
            return " ".join(filter(None, (mnemonic(item), between, letter, (item.part or "").removeprefix("PART_"))))
        case Bitwise() | Interleave() | Compute():
            return f"{mnemonic(item)} b{item.width}"
        case Gather() | Spread():
            return mnemonic(item)
        case MemoryBarrier():
            return f"mem_bar {item.kinds}"
        case TripSelect():
            return "scalar select"
        case _:
            return type(item).__name__.lower()


_LOOP = "loop"
_LAUNCH = "launch"


@dataclass(slots=True)
class _Total:
    """What the launches of one instruction add up to."""

    executions: int = 0
    cycles: int = 0
    causes: defaultdict[int, defaultdict[Cause, int]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(int))
    )
    counts: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    texts: dict[int, str] = field(default_factory=dict)
    waits: defaultdict[tuple[int, Cause, int], int] = field(default_factory=lambda: defaultdict(int))

    def add(self, timing: ScopeTiming, first: int = 0) -> None:
        """Take in a launch whose lines are counted from `first` on."""
        self.cycles += timing.cycles
        for (line, cause), cycles in timing.by_line.items():
            self.causes[line + first * (line > 0)][cause] += cycles
        for line, use in timing.uses.items():
            number = line + first
            self.counts[number] += use.executions
            self.texts.setdefault(number, " / ".join(use.texts))
            for (cause, behind), ticks in use.waits.items():
                self.waits[number, cause, behind and behind + first] += ticks

    def lines(self) -> tuple[LaunchLine, ...]:
        """Return the lines in order, what belongs to the launch itself first."""
        waits: defaultdict[int, list[LineWait]] = defaultdict(list)
        for (number, cause, behind), ticks in self.waits.items():
            made = (behind, self.texts.get(behind, _LOOP)) if behind else (None, None)
            waits[number].append(LineWait(cause, ticks / TICKS, *made))
        return tuple(self._line(number, waits[number]) for number in sorted({*self.causes, *self.counts}))

    def _line(self, number: int, waits: Iterable[LineWait]) -> LaunchLine:
        causes = {cause: self.causes[number][cause] for cause in Cause if self.causes[number].get(cause)}
        inside = number > 0
        return LaunchLine(
            number if inside else None,
            self.texts.get(number, _LOOP) if inside else _LAUNCH,
            self.counts[number] if inside else self.executions,
            sum(causes.values()),
            causes,
            tuple(sorted(waits, key=lambda each: -each.cycles)),
        )


def written(tree: Tree, target: Target) -> Sequence[Launches]:
    """Return the launches that a program writes itself."""
    assert isinstance(target, VectorFunctionTarget)
    found: defaultdict[int, _Total] = defaultdict(_Total)
    for lowered, _ in instances(tree):
        for operation in lowered.body.items:
            if isinstance(operation, MicroFunction):
                total = found[lowered.instruction]
                total.executions += 1
                total.add(operation.timed(target))
    return _launches(tree, found, {number: total.cycles for number, total in found.items()})


def slices(tree: Tree, timing: Timing, target: Target) -> Sequence[LaunchSlice]:
    """Return the cycles of the launches that a program writes itself, in order."""
    assert isinstance(target, VectorFunctionTarget)
    starts = {each.execution: each.start for each in timing.operations if each.pipe == target.pipes.vector}
    found: list[LaunchSlice] = []
    for number, (lowered, _) in enumerate(instances(tree)):
        for operation in lowered.body.items:
            if isinstance(operation, MicroFunction):
                found += _slices(operation.timed(target), starts[number])
    return found


def sent(lowered: Lowered, target: Target) -> Sequence[int]:
    """Return when the front end sends the instructions of a launch that a program writes itself."""
    assert isinstance(target, VectorFunctionTarget)
    found: list[int] = []
    for operation in lowered.body.items:
        if isinstance(operation, MicroFunction):
            time_scope(operation.scope, target, found.append)
    return found


def _slices(timing: ScopeTiming, start: int) -> Iterator[LaunchSlice]:
    before = start
    for span in timing.spans:
        use = timing.uses.get(span.line)
        text = " / ".join(use.texts) if use is not None else _LOOP if span.line else _LAUNCH
        yield LaunchSlice(before, start + span.until, span.cause, span.line or None, text)
        before = start + span.until


def lowered(tree: Tree, timing: Timing, target: Target) -> Sequence[Launches]:
    """Return the first launch of each tile operation as the instructions of its kernel."""
    assert isinstance(target, VectorFunctionTarget)
    found: dict[int, _Total] = {}
    counts = _executions(timing)
    for item in _first_executions(tree):
        total = _Total(counts.get(item.instruction, 0))
        first = 0
        for operation in operations(item, None):
            if isinstance(operation, VectorFunction):
                kernel = Kernel(operation, target)
                total.add(time_scope(kernel.scope, target), first)
                first += kernel.count
        if total.cycles:
            found[item.instruction] = total
    return _launches(tree, found, _cycles(tree, timing, found))


def _launches(tree: Tree, found: Mapping[int, _Total], cycles: Mapping[int, int]) -> Sequence[Launches]:
    made = [_launch(tree.instructions[number], total, cycles[number]) for number, total in found.items()]
    return sorted(made, key=lambda each: each.line)


def _launch(instruction: Instruction, total: _Total, pipe_cycles: int) -> Launches:
    return Launches(
        instruction.span.line, instruction.text, instruction.pipe, total.executions, total.cycles, pipe_cycles,
        total.lines(),
    )  # fmt: skip


def _first_executions(tree: Tree) -> Iterable[Lowered]:
    """Return every instruction as it is executed first."""
    seen: dict[int, Lowered] = {}
    for element in elements(tree.root):
        if isinstance(element, Lowered):
            seen.setdefault(element.instruction, element)
    return seen.values()


def _executions(timing: Timing) -> Mapping[int, int]:
    """Return how often every instruction was executed."""
    found: defaultdict[int, int] = defaultdict(int)
    for execution, _, times in repeated(timing.executions):
        found[execution.instruction] += times
    return found


def _cycles(tree: Tree, timing: Timing, wanted: Iterable[int]) -> Mapping[int, int]:
    """Return the cycles of the operations that the pipe of each instruction has in its first execution."""
    first = dict.fromkeys(wanted, len(timing.executions))
    found: defaultdict[int, int] = defaultdict(int)
    for operation, _, _ in repeated(timing.operations):
        number = timing.executions[operation.execution].instruction
        if operation.pipe != tree.instructions[number].pipe or operation.execution > first.get(number, -1):
            continue
        if operation.execution < first[number]:
            first[number], found[number] = operation.execution, 0
        found[number] += operation.end - operation.start
    return found
