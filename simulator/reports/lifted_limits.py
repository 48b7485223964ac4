"""The cycles of a run without one limit of its target, or without one of its lines.

Every answer is an ordinary simulation of the program on the description with the limit's facts edited
(`castsim.targets.description`), except for the latencies of bundles: these are fixed in the program's text, not in
the machine's timing, so the answer is a bound for the program with its loops as written
(`castsim.machines.vliw.latency_bound`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.engines import simulate
from castsim.execution.run_limits import MAX_CYCLES, Limits
from castsim.execution.timing import WAITING, Cause, Timing, repeated
from castsim.execution.tree import Instruction, Tree, without
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import MAX_STATEMENTS, CastsimError, EngineError, ReadError
from castsim.isa.formats import Codes
from castsim.reports.documents import Keys, TextOrNull, apart, derived, record, says
from castsim.reports.schemas.keys import CauseName, Cycles, Line, Name, Scalar
from castsim.running.loaded import LoadedProgram
from castsim.running.program_loading import load
from castsim.running.program_runs import Result, run_loaded
from castsim.targets.description import ANY, lifted
from castsim.targets.loader import Target

if TYPE_CHECKING:
    from castsim.machines.vliw.latency_bound import LatencyBound


ALL = "all"
"""In place of names: every limit of the target."""

Lift = Callable[[Target], Target]


@record
class LiftedLimit(Keys, title="Gain"):
    """Cycles gained by lifting a limit of the target."""

    name: str = says("The limit.")
    title: str = says("Effect of lifting the limit.")
    facts: Mapping[Name, Scalar | Decimal] = says("The facts that lifting it changes, by path.")
    cycles: Cycles = says("Cycles of the run without the limit.", key="total_cycles")
    gained: Cycles = says("Cycles saved; negative if there are more cycles.", key="gained_cycles")
    reason: TextOrNull = says("The reason for additional cycles, if there are any; else null.", default="")


LATENCY = "latency"
"""The limit that a program of bundles has through its own text."""
_NO_LATENCY = "every result can be read in the next bundle"
_NAMED = 3
"""Maximum number of causes in a reason."""
_WHY: Mapping[Cause, str] = {
    Cause.BANK_CONFLICT: "accesses come at other times and meet others at the buffer",
    Cause.PORT: "accesses come at other times and meet others at a port",
    Cause.FILL: "instructions come at other times, and more of them find the pipe idle",
    Cause.DRAIN: "more results are still on their way to the buffer when the pipe has nothing else to do",
}


def limits_known(target: Target) -> tuple[str, ...]:
    """Return the limits that can be lifted: those of the target, and latencies where bundles expose them."""
    return (*target.what_if, *((LATENCY,) if "tpc" in target.languages else ()))


def limits_asked_for(target: Target, names: Sequence[str]) -> tuple[str, ...]:
    """Return the requested limits without duplicates.

    Raises:
        ReadError: a limit is unknown; the message lists the known ones.
    """
    limits = limits_known(target)
    if ALL in names:
        names = [*(name for name in names if name != ALL), *limits]
    for name in names:
        if name not in limits:
            raise ReadError(f"{target.name} has no what-if '{name}'", legal=limits)
        if name in target.what_if:
            lifted(target, name)
    return tuple(dict.fromkeys(names))


def gains(
    target: Target,
    names: Sequence[str],
    timing: Timing,
    rerun: Callable[[Lift], Timing],
    latencies: LatencyBound | None = None,
) -> tuple[LiftedLimit, ...]:
    """Return the gain of lifting each limit, largest first.

    Args:
        target: the target of the run.
        names: limits, or `all`.
        timing: cycles of the run.
        rerun: takes a change to the target, and returns the cycles with it.
        latencies: cost of latencies, for a program of bundles.

    Raises:
        ReadError: see `limits_asked_for`.
    """
    limits = []
    for name in limits_asked_for(target, names):
        if name not in target.what_if:
            if latencies is not None:
                limits.append(LiftedLimit(name, _NO_LATENCY, {}, timing.total - latencies.gained, latencies.gained))
            continue
        limit = target.what_if[name]
        without = rerun(lambda chosen, name=name: lifted(chosen, name))  # type: ignore[misc]
        gained = timing.total - without.total
        reason = _reason(timing, without) if gained < 0 else ""
        limits.append(LiftedLimit(name, limit.title, dict(limit.set), without.total, gained, reason))
    return tuple(sorted(limits, key=lambda gain: -gain.gained))


def _reason(before: Timing, after: Timing) -> str:
    """Return the pipes and causes with more cycles, largest growth first; waits only if nothing else grows."""
    grown = [
        (cycles - before.pipes[pipe].causes.get(cause, 0), pipe, cause, cycles)
        for pipe, timing in after.pipes.items()
        for cause, cycles in timing.causes.items()
    ]
    grown = [growth for growth in grown if growth[0] > 0]
    # Waiting grows on every other pipe when one takes longer: it is no reason by itself.
    own = [growth for growth in grown if growth[2] not in WAITING] or grown
    named = sorted(own, key=lambda growth: -growth[0])[:_NAMED]
    numbers = [f"{cause} of {pipe} {cycles - more} -> {cycles}" for more, pipe, cause, cycles in named]
    why = [_WHY[cause] for cause in dict.fromkeys(entry[2] for entry in named) if cause in _WHY]
    return ": ".join(part for part in (", ".join(numbers), "; ".join(why)) if part)


def what_if(
    program: str | Path,
    names: Sequence[str] = (ALL,),
    target: str | Path | Target | None = None,
    entry: str | None = None,
    inputs: Mapping[str, Codes | str] | None = None,
    args: Mapping[str, int | float] | None = None,
    max_cycles: int = MAX_CYCLES,
    max_walk: int | None = None,
    max_statements: int = MAX_STATEMENTS,
) -> tuple[LiftedLimit, ...]:
    """Run a program once unchanged and once with each limit lifted; return the gains, largest first.

    Inputs are needed only if they decide the path (assembly).

    Raises:
        ReadError: see `castsim.run`; or the target lacks a limit.
    """

    limits = Limits(max_statements, max_walk)

    def loaded(lift: Lift) -> LoadedProgram:
        return load(Path(program), target, entry, args or {}, prepare=lift, limits=limits)

    def ran(of: LoadedProgram) -> Result:
        given = inputs or {} if of.tree is None else {}  # which decide nothing where the path is known
        return run_loaded(of, given, timing_only=not given, max_cycles=max_cycles, limits=limits)

    first = loaded(lambda chosen: chosen)
    limits_asked_for(first.target, names)  # a wrong name must not cost a run
    before = ran(first)
    latencies = before.loaded.latencies(before.timing)
    return gains(first.target, names, before.timing, lambda lift: ran(loaded(lift)).timing, latencies)


# What a line of a program costs: the cycles that the run saves when its instructions are taken out of the tree.

_MOST_LINES = {True: 6, False: 48}
"""Maximum number of lines removed in turn, by whether the program works on tiles: bundles are timed quickly."""

_MOST_OPERATIONS = 150_000
"""Maximum number of operations executed in these runs; operations in loops that an engine skips do not count."""


def _largest(cost: LineCost) -> Cause:
    """Return the cause with the most cycles of the pipe, the first in the order of `Cause` if equal."""
    return max(Cause, key=lambda cause: cost.causes.get(cause, 0))


@record
class LineCost(Keys, title="LostMost"):
    """The line that costs most cycles.

    `instruction` is the one on the line that occupies its pipe longest, `total` the cycles of the run; the causes leave
    out waits for other pipes, and `limit` removes most of them. `retimed` is False for a run that is too long to
    repeat, whose `cycles` are an upper bound.
    """

    instruction: Instruction = apart()
    line: Line = derived("Line of the source.", "instruction.span.line")
    op: str = derived("Its instruction.", "instruction.name")
    pipe: str = derived("Its pipe.", "instruction.pipe")
    inserted: bool = derived("Whether castsim inserted it for synchronisation.", "instruction.inserted")
    cycles: Cycles = says(
        "Cycles that the run saves without the line; for a very long run, the sum of `causes`.", key="lost_cycles"
    )
    total: int = apart()
    cause: CauseName = derived("The largest cause among `causes`.", _largest)
    causes: Mapping[CauseName, Cycles] = says("Cycles of its pipe for all its executions, by cause.")
    limit: str = apart(default="")
    retimed: bool = apart(default=True)

    def sentence(self) -> str:
        """Return the cost and its reason: the cause that a limit removes, or else the pipe's cycles on the line."""
        inserted = "inserted " if self.inserted else ""
        costs = "costs" if self.retimed else f"occupies {self.pipe} for"
        line = f"Line {self.line}, {inserted}{self.op}"
        cost = f"{line}, {costs} {self.cycles:,} of the {self.total:,} cycles"
        if self.limit:
            return f"{cost}, mostly {self.cause}"
        return f"{cost}; {spending(self.pipe, self.causes)}"


_REASONS = 2
"""Maximum number of causes of one line in the headline."""


def spending(pipe: str, causes: Mapping[Cause, int]) -> str:
    """Return in words how many cycles a pipe spends on a line, and the cause of most of them."""
    largest = sorted(causes, key=lambda cause: -causes[cause])[:_REASONS]
    parts = ", ".join(f"{cause} {causes[cause]:,}" for cause in largest)
    return f"{pipe} spends {sum(causes.values()):,} on it ({parts})"


def longest_line(tree: Tree, timing: Timing, target: Target) -> str:
    """Return the line that occupies a pipe longest, in words: for runs in which no single line costs cycles."""
    lines = _occupied_lines(tree, timing, target).values()
    line = max(lines, key=lambda candidate: candidate.occupied, default=None)
    if line is None:
        return ""
    instruction = tree.instructions[line.costliest]
    occupies = f"line {instruction.span.line}, {instruction.name}, occupies {line.pipe} longest"
    return f"No single line sets the pace; {occupies} ({line.occupied:,} of {timing.total:,} cycles)"


def costliest_line(tree: Tree, timing: Timing, target: Target) -> LineCost | None:
    """Return the line without which the run is shortest, the first if equal; None if no line costs anything.

    Lines that occupy a pipe longest are tried first, and only while they can be better. Every bundle takes a cycle
    regardless of its content, so only lines that cost more than that count.
    """
    lines = sorted(_occupied_lines(tree, timing, target).values(), key=lambda line: -line.occupied)
    total, most = timing.total, min(_MOST_LINES[target.has_tiles], _repetitions(timing))
    if not most and lines:
        return lines[0].cost(tree, min(lines[0].occupied, total), timing, target, retimed=False)
    best: tuple[int, _LineUse] | None = None
    for line in lines[:most]:
        if best is not None and target.has_tiles and best[0] >= line.occupied:
            break
        saved = total - _cycles_without(tree, frozenset(line.numbers), total, target)
        least = 0 if target.has_tiles else line.causes.get(Cause.BUSY, 0)
        if saved > max(least, 0 if best is None else best[0]):
            best = saved, line
    return None if best is None else best[1].cost(tree, best[0], timing, target, retimed=True)


def limit_behind(tree: Tree, timing: Timing, target: Target, pipe: str, causes: Mapping[Cause, int]) -> str:
    """Return the limit whose removal saves most, among those behind the main cause of a pipe.

    '' if there is none, or if its removal saves less than half of these cycles: then other causes or other
    pipes limit the run. A program of bundles, or a run that is too long, is not timed again.
    """
    cause = max(Cause, key=lambda cause: causes.get(cause, 0))
    limits = [
        name
        for name, limit in target.what_if.items()
        if any(cause in own for at, own in limit.lifts.items() if at in (pipe, ANY))
    ]
    if not target.has_tiles or not _repetitions(timing):
        return limits[0] if limits else ""
    best, least = "", timing.total - (causes[cause] + 1) // 2
    for name in limits:
        try:
            cycles = simulate(tree, lifted(target, name), max_cycles=MAX_CYCLES, record_operations=False).total
        except (CastsimError, EngineError):  # a description of one's own may lack a fact
            continue
        if cycles <= least:
            best, least = name, cycles - 1
    return best


def _repetitions(timing: Timing) -> int:
    """Return how often a run may be timed again."""
    return _MOST_OPERATIONS // max(1, sum(1 for _ in repeated(timing.operations)))


_Line = tuple[str, int, bool]
"""File and number of a line, and whether its instruction is inserted."""


@dataclass(frozen=True, slots=True)
class _LineUse:
    """The instructions of a line, the pipe that they occupy longest, and its cycles by cause.

    `costliest` is the instruction that occupies this pipe longest.
    """

    numbers: Sequence[int]
    costliest: int
    pipe: str
    causes: Mapping[Cause, int]

    @property
    def occupied(self) -> int:
        """The sum of these cycles."""
        return sum(self.causes.values())

    def cost(self, tree: Tree, cycles: int, timing: Timing, target: Target, *, retimed: bool) -> LineCost:
        """Return the cost of the line; a cause with less than half of its cycles has no limit."""
        mostly = 2 * max(self.causes.values()) >= self.occupied
        limit = limit_behind(tree, timing, target, self.pipe, self.causes) if mostly else ""
        return LineCost(tree.instructions[self.costliest], cycles, timing.total, self.causes, limit, retimed)


def _occupied_lines(tree: Tree, timing: Timing, target: Target) -> dict[_Line, _LineUse]:
    """Return, by line, its instructions and the cycles of the pipe that they occupy longest, by cause.

    The pipe that issues for all others counts only if a line has no other.
    """
    spent: dict[_Line, dict[str, dict[Cause, int]]] = {}
    numbers: dict[_Line, list[int]] = {}
    for number, instruction in enumerate(tree.instructions):
        line = (instruction.span.file, instruction.span.line, instruction.inserted)
        numbers.setdefault(line, []).append(number)
    occupied: Counter[tuple[str, int]] = Counter()
    for operation, _, times in repeated(timing.operations):
        number = timing.executions[operation.execution].instruction
        instruction = tree.instructions[number]
        own = {cause: cycles for cause, cycles in operation.causes.items() if cycles and cause not in WAITING}
        if own:
            line = (instruction.span.file, instruction.span.line, instruction.inserted)
            of_pipe = spent.setdefault(line, {}).setdefault(operation.pipe, {})
            occupied[operation.pipe, number] += times * sum(own.values())
            for cause, cycles in own.items():
                of_pipe[cause] = of_pipe.get(cause, 0) + times * cycles
    lines = {}
    for line, pipes in sorted(spent.items()):
        pipe = max(pipes, key=lambda name: (name != target.scalar_pipe, sum(pipes[name].values())))
        causes = {cause: pipes[pipe][cause] for cause in Cause if cause in pipes[pipe]}
        costliest = max(numbers[line], key=lambda number, pipe=pipe: occupied[pipe, number])  # type: ignore[misc]
        lines[line] = _LineUse(numbers[line], costliest, pipe, causes)
    return lines


def _cycles_without(tree: Tree, numbers: frozenset[int], total: int, target: Target) -> int:
    """Return the cycles without some instructions, `total` if the rest cannot run because it waits for a signal."""
    try:
        return simulate(without(tree, numbers), target, max_cycles=2 * total + 1, record_operations=False).total
    except EngineError:
        return total
