"""The report of a whole kernel: cycles by source line and pipe, overlap of the pipes, buffers over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simulator.reports.kernel_memory import BufferMap, Interval, Stretch, buffer_maps, joined
from simulator.reports.lines import SourceLine, listed, source_lines
from simulator.reports.pipes import WAITING, Limiter, limiter
from simulator.running import Result
from simulator.timing import Cause, Timing
from simulator.tree import Lowered, Tree, elements
from targets.dataflow import DataflowTarget


@dataclass(frozen=True, slots=True)
class LineCost:
    """What a source line with tile work costs its pipe.

    `causes` are the cycles its pipe spent on it, `share` the part of that pipe's occupied cycles that are this line's;
    the drain of a pipe belongs to no line. `mostly` is the largest cause, None if its pipe spent nothing on it.
    """

    line: SourceLine
    causes: Mapping[Cause, int]
    share: float
    mostly: Cause | None


@dataclass(frozen=True, slots=True)
class Overlap:
    """How far the pipes work at the same time.

    `work` are the cycles in which each pipe has an instruction that touches bytes at work, `together[k]` those in
    which exactly k + 1 pipes do. One after the other would take the sum of `work`, the best order the longest of it.
    """

    work: Mapping[str, int]
    together: tuple[int, ...]

    @property
    def serial(self) -> int:
        """Cycles of the same work, one pipe after the other."""
        return sum(self.work.values())

    @property
    def covered(self) -> int:
        """Cycles in which some pipe works."""
        return sum(self.together)

    @property
    def achieved(self) -> float | None:
        """Part of what could be hidden behind the busiest pipe that is hidden; None if only one pipe works."""
        possible = self.serial - max(self.work.values(), default=0)
        return (self.serial - self.covered) / possible if possible else None


@dataclass(frozen=True, slots=True)
class KernelReport:
    """Everything that `castsim run --report kernel` adds to the report of a run."""

    total: int
    lines: tuple[LineCost, ...]
    overlap: Overlap
    bound: Limiter | None
    buffers: tuple[BufferMap, ...]


def kernel_report(result: Result) -> KernelReport:
    """Derive the report of a tile program's run."""
    assert isinstance(result.loaded.target, DataflowTarget)
    tree, timing = result.loaded.tree, result.timing
    return KernelReport(
        total=timing.total,
        lines=_line_costs(tree, timing),
        overlap=_overlap(tree, timing),
        bound=limiter(timing),
        buffers=buffer_maps(tree, timing, result.loaded.target),
    )


def kernel_document(report: KernelReport) -> dict[str, Any]:
    """Return the report as JSON; cycles are [start, end), `achieved` is null where only one pipe works."""
    overlap, bound = report.overlap, report.bound
    return {
        "lines": [
            {
                "line": cost.line.span.line,
                "op": cost.line.text,
                "pipe": cost.line.pipe,
                "executions": cost.line.executions,
                "cycles": cost.line.cycles,
                "pipe_cycles": cost.line.pipe_cycles,
                "share_of_pipe": cost.share,
                "causes": {str(cause): cycles for cause, cycles in cost.causes.items()},
            }
            for cost in report.lines
        ],
        "overlap": {
            "work_cycles": dict(overlap.work),
            "serial_cycles": overlap.serial,
            "covered_cycles": overlap.covered,
            "cycles_with_pipes_at_work": {str(k): cycles for k, cycles in enumerate(overlap.together, 1)},
            "achieved": overlap.achieved,
        },
        "bound": None
        if bound is None
        else {"pipe": bound.pipe, "cause": str(bound.cause), "cycles": bound.cycles, "occupied_cycles": bound.occupied},
        "buffers": [
            {
                "name": each.name,
                "capacity_bytes": each.capacity,
                "peak_live_bytes": each.peak_bytes,
                "peak_cycle": each.peak_cycle,
                "stretches": [_stretch_entry(stretch) for stretch in each.stretches],
            }
            for each in report.buffers
        ],
    }


def _stretch_entry(stretch: Stretch) -> dict[str, Any]:
    return {
        "first_byte": stretch.start,
        "last_byte": stretch.end - 1,
        "scratch": stretch.scratch,
        "written_by_lines": list(stretch.written_by),
        "read_by_lines": list(stretch.read_by),
        "live_cycles": stretch.live_cycles,
        "live": [list(interval) for interval in stretch.live],
        "writes": [list(interval) for interval in stretch.writes],
        "reads": [list(interval) for interval in stretch.reads],
    }


def _line_costs(tree: Tree, timing: Timing) -> tuple[LineCost, ...]:
    spent: dict[int, dict[Cause, int]] = {}
    occupied: dict[str, int] = {}
    for operation in timing.operations:
        number = timing.executions[operation.execution].instruction
        instruction = tree.instructions[number]
        for cause, cycles in operation.causes.items():
            if cause not in WAITING:
                occupied[operation.pipe] = occupied.get(operation.pipe, 0) + cycles
            if operation.pipe == instruction.pipe and listed(instruction):
                own = spent.setdefault(number, {})
                own[cause] = own.get(cause, 0) + cycles
    numbers = {(each.span, each.text): number for number, each in enumerate(tree.instructions) if not each.inserted}
    lines = [(numbers[line.span, line.text], line) for line in source_lines(tree, timing)]
    working = _working(tree)
    return tuple(_line_cost(line, spent.get(number, {}), occupied) for number, line in lines if number in working)


def _working(tree: Tree) -> set[int]:
    """Return the instructions that touch bytes: all but flags, barriers and scalar work."""
    return {each.instruction for each in elements(tree.root) if isinstance(each, Lowered) and each.accesses}


def _line_cost(line: SourceLine, spent: Mapping[Cause, int], occupied: Mapping[str, int]) -> LineCost:
    causes = {cause: spent[cause] for cause in Cause if spent.get(cause)}
    work = sum(cycles for cause, cycles in causes.items() if cause not in WAITING)
    whole = occupied.get(line.pipe, 0)
    mostly = max(causes, key=lambda cause: causes[cause], default=None)
    return LineCost(line, causes, work / whole if whole else 0.0, mostly)


def _overlap(tree: Tree, timing: Timing) -> Overlap:
    """Measure the overlap from start and end of the instructions that touch bytes."""
    working = _working(tree)
    times: dict[str, list[Interval]] = {}
    for execution in timing.executions:
        if execution.instruction in working:
            pipe = tree.instructions[execution.instruction].pipe
            times.setdefault(pipe, []).append((execution.start, execution.end))
    merged = {pipe: tuple(joined(intervals)) for pipe, intervals in sorted(times.items())}
    changes: dict[int, int] = {}
    for intervals in merged.values():
        for start, end in intervals:
            changes[start] = changes.get(start, 0) + 1
            changes[end] = changes.get(end, 0) - 1
    together = [0] * len(merged)
    at_work, since = 0, 0
    for cycle in sorted(changes):
        if at_work:
            together[at_work - 1] += cycle - since
        at_work, since = at_work + changes[cycle], cycle
    work = {pipe: sum(end - start for start, end in intervals) for pipe, intervals in merged.items()}
    return Overlap(work, tuple(together))
