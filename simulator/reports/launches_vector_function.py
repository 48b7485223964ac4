"""Where the cycles of launches went, line by line: those written in a program, and those of tile operations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from castsim.execution.timing import Cause, Timing, repeated
from castsim.execution.transfer_timing import TICKS
from castsim.execution.tree import Lowered, Tree, elements, instances, operations
from castsim.isa.dataclass import dataclass, field
from castsim.machines.vector_function.front_end import time_scope
from castsim.machines.vector_function.function_launches import FunctionLaunch, MicroFunction
from castsim.machines.vector_function.function_operations import VectorFunction
from castsim.machines.vector_function.instruction_scoreboard import ScopeTiming
from castsim.reports.launches import Launches, LaunchLine, LaunchSlice, LineWait
from castsim.targets.vector_function import VectorFunctionTarget

_LOOP = "loop"
_LAUNCH = "launch"


@dataclass(slots=True)
class _Total:
    """The totals of an instruction's launches."""

    executions: int = 0
    cycles: int = 0
    causes: defaultdict[int, defaultdict[Cause, int]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(int))
    )
    counts: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    texts: dict[int, str] = field(default_factory=dict)
    waits: defaultdict[tuple[int, Cause, int], int] = field(default_factory=lambda: defaultdict(int))

    def add(self, timing: ScopeTiming, first: int = 0) -> None:
        """Add a launch whose lines are counted from `first` on."""
        self.cycles += timing.cycles
        for (line, cause), cycles in timing.by_line.items():
            self.causes[line + first * (line > 0)][cause] += cycles
        for line, use in timing.uses.items():
            number = line + first
            self.counts[number] += use.executions
            self.texts.setdefault(number, " / ".join(use.texts))
            for (cause, behind), waited in use.waits.items():
                self.waits[number, cause, behind and behind + first] += waited

    def lines(self) -> tuple[LaunchLine, ...]:
        """Return the lines in order, after the entry of the launch itself."""
        waits: defaultdict[int, list[LineWait]] = defaultdict(list)
        for (number, cause, behind), waited in self.waits.items():
            origin = (behind, self.texts.get(behind, _LOOP)) if behind else (None, None)
            waits[number].append(LineWait(cause, waited / TICKS, *origin))
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
            tuple(sorted(waits, key=lambda wait: -wait.cycles)),
        )


def written(tree: Tree, target: VectorFunctionTarget) -> Sequence[Launches]:
    """Return the launches written in a program."""
    found: defaultdict[int, _Total] = defaultdict(_Total)
    for lowered, _ in instances(tree):
        for launch in _launches_of(lowered):
            found[lowered.instruction].executions += 1
            found[lowered.instruction].add(launch.timed(target))
    return _launches(tree, found, {number: total.cycles for number, total in found.items()})


def slices(tree: Tree, timing: Timing, target: VectorFunctionTarget) -> Sequence[LaunchSlice]:
    """Return the cycles of the launches written in a program, in order."""
    starts = {each.execution: each.start for each in timing.operations if each.pipe == target.pipes.vector}
    return [
        part
        for number, (lowered, _) in enumerate(instances(tree))
        for launch in _launches_of(lowered)
        for part in _slices(launch.timed(target), starts[number])
    ]


def sent(lowered: Lowered, target: VectorFunctionTarget) -> Sequence[int]:
    """Return when the front end sends the instructions of a launch written in a program."""
    times: list[int] = []
    for launch in _launches_of(lowered):
        time_scope(launch.scope, target, times.append)
    return times


def _launches_of(lowered: Lowered) -> Iterator[MicroFunction]:
    return (operation for operation in lowered.body.items if isinstance(operation, MicroFunction))


def _slices(timing: ScopeTiming, start: int) -> Iterator[LaunchSlice]:
    before = start
    for span in timing.spans:
        use = timing.uses.get(span.line)
        text = " / ".join(use.texts) if use is not None else _LOOP if span.line else _LAUNCH
        yield LaunchSlice(before, start + span.until, span.cause, span.line or None, text)
        before = start + span.until


def lowered(tree: Tree, timing: Timing, target: VectorFunctionTarget) -> Sequence[Launches]:
    """Return the first launch of each tile operation as the instructions of its kernel."""
    totals: dict[int, _Total] = {}
    counts = _executions(timing)
    for item in _first_executions(tree):
        total = _Total(counts.get(item.instruction, 0))
        first = 0
        for operation in operations(item, None):
            if isinstance(operation, VectorFunction):
                kernel = FunctionLaunch(operation, target)
                total.add(time_scope(kernel.scope, target), first)
                first += kernel.count
        if total.cycles:
            totals[item.instruction] = total
    return _launches(tree, totals, _cycles(tree, timing, totals))


def _launches(tree: Tree, found: Mapping[int, _Total], cycles: Mapping[int, int]) -> Sequence[Launches]:
    launches = []
    for number, total in found.items():
        its = tree.instructions[number]
        sums = total.executions, total.cycles, cycles[number]
        launches.append(Launches(its.span.line, its.text, its.pipe, *sums, total.lines()))
    return sorted(launches, key=lambda each: each.line)


def _first_executions(tree: Tree) -> Iterable[Lowered]:
    """Return every instruction as it is executed first."""
    seen: dict[int, Lowered] = {}
    for element in elements(tree.root):
        if isinstance(element, Lowered):
            seen.setdefault(element.instruction, element)
    return seen.values()


def _executions(timing: Timing) -> Mapping[int, int]:
    """Return how often every instruction was executed."""
    counts: defaultdict[int, int] = defaultdict(int)
    for execution, _, times in repeated(timing.executions):
        counts[execution.instruction] += times
    return counts


def _cycles(tree: Tree, timing: Timing, wanted: Iterable[int]) -> Mapping[int, int]:
    """Return the cycles of each instruction's operations on its pipe in its first execution."""
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
