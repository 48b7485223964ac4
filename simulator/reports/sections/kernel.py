"""A whole kernel: cycles by source line and pipe, overlap of the pipes, buffers over time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, TypeAlias

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from castsim.execution.timing import WAITING, Cause, Limiter, Timing, limiter, share
from castsim.execution.tree import Access, Lowered, Tree, accesses, elements, instances, moved_accesses, scratch_reads
from castsim.isa.dataclass import dataclass, field
from castsim.reports.documents import Keys, apart, derived, extended, record, says
from castsim.reports.launches import LAUNCH, Launches, all_launches
from castsim.reports.numbers import grouped
from castsim.reports.run_cycles import launch_table
from castsim.reports.run_report import ReportSection, RunReport
from castsim.reports.schemas.keys import Bytes, CauseName, Cycles, Line, Name
from castsim.reports.terminal import indented, table
from castsim.running.program_runs import Result, SourceKey, SourceLine, listed, source_key, source_lines
from castsim.targets.loader import Target

# The content of the on-chip buffers of a program, cycle by cycle.
#
# The bytes from the first to the last that an access touches are taken as one stretch. Data live from the start of the
# instruction that writes them until the end of the last one that reads them before they are written again.

_MOST_PLACES = 512
"""Maximum number of different access addresses kept apart; beyond it, an operand's addresses count as one stretch."""

Interval: TypeAlias = tuple[int, int]
"""Cycles [start, end)."""

FromTo: TypeAlias = Annotated[Interval, ("minItems", 2), ("maxItems", 2), ("unit", "cycles")]


@record
class BufferStretch(Keys, title="Stretch"):
    """Bytes of a buffer that instructions treat alike. Pairs are cycles from the first to the one after the last.

    The pairs of a list are disjoint and in order. Contents live from a write to the last read before the next write.
    """

    start: int = says("Address of the first byte.", key="first_byte")
    end: int = apart()
    last_byte: int = derived("Address of the last byte.", lambda own: own.end - 1)
    scratch: bool = says("Whether it is an instruction's scratch tile.")
    written_by: Sequence[Line] = says("Lines that write it.", key="written_by_lines")
    read_by: Sequence[Line] = says("Lines that read it.", key="read_by_lines")
    live_cycles: Cycles = derived(
        "Cycles in which its content is live.", lambda own: sum(end - start for start, end in own.live)
    )
    live: Sequence[FromTo] = says("Intervals in which its content is live.")
    writes: Sequence[FromTo] = says("Intervals in which it is written.")
    reads: Sequence[FromTo] = says("Intervals in which it is read.")


@record
class BufferMap(Keys, title="Buffer"):
    """A buffer over time."""

    name: str = says("Name of the memory.")
    capacity: Bytes = says("Its size.", key="capacity_bytes")
    peak_bytes: Bytes = says("The largest number of bytes live at once.", key="peak_live_bytes")
    peak_cycle: Cycles = says("The first cycle with that number of live bytes.")
    stretches: Sequence[BufferStretch] = says("Its stretches, by address.")


@dataclass(slots=True)
class _Use:
    """The accesses to one stretch: (start, end, write) in cycles, and their lines."""

    events: list[tuple[int, int, bool]] = field(default_factory=list)
    written_by: set[int] = field(default_factory=set)
    read_by: set[int] = field(default_factory=set)
    scratch: bool = False


def buffer_maps(tree: Tree, timing: Timing, target: Target) -> tuple[BufferMap, ...]:
    """Return the map of every buffer that the program touches."""
    maps = []
    for name, memory in target.memories.items():
        uses = _uses(tree, timing, name)
        if uses:
            stretches = tuple(_merged(uses))
            maps.append(BufferMap(name, memory.capacity_bytes, *_peak(stretches), stretches))
    return tuple(maps)


def _uses(tree: Tree, timing: Timing, space: str) -> dict[Interval, _Use]:
    """Return the accesses to each elementary stretch of a buffer."""
    places = _Places(tree, space)
    uses: dict[Interval, _Use] = {}
    for (lowered, deltas), execution in zip(instances(tree), timing.executions, strict=True):
        line = tree.instructions[lowered.instruction].span.line
        scratch = scratch_reads(lowered.accesses)
        for number, access in enumerate(accesses(lowered, deltas)):
            if access.space != space or access.start >= access.end:
                continue
            for piece in places.pieces((lowered.instruction, number), access):
                use = uses.setdefault(piece, _Use())
                use.events.append((execution.start, execution.end, access.write))
                (use.written_by if access.write else use.read_by).add(line)
                use.scratch |= number in scratch
    return uses


class _Places:
    """The elementary stretches of a buffer: no access begins or ends inside one."""

    def __init__(self, tree: Tree, space: str) -> None:
        self._whole: dict[tuple[int, int], Interval] = {}
        edges = set()
        for lowered, deltas in instances(tree):
            edges |= {edge for a in accesses(lowered, deltas) if a.space == space for edge in (a.start, a.end)}
            if len(edges) > 2 * _MOST_PLACES:
                self._widen(tree, space)
                edges = {edge for stretch in self._whole.values() for edge in stretch}
                break
        self._edges = sorted(edges)

    def _widen(self, tree: Tree, space: str) -> None:
        """Treat all addresses of an operand as one stretch."""
        for key, access, (down, up) in moved_accesses(tree.root):
            if access.space == space:
                start, end = access.start + down, access.end + up
                low, high = self._whole.get(key, (start, end))
                self._whole[key] = (min(low, start), max(high, end))

    def pieces(self, key: tuple[int, int], access: Access) -> Iterator[Interval]:
        """Yield the elementary stretches of an access, which is operand `key[1]` of instruction `key[0]`."""
        start, end = self._whole.get(key, (access.start, access.end))
        first, last = bisect_left(self._edges, start), bisect_left(self._edges, end)
        edges = self._edges[first : last + 1]
        yield from pairwise(edges)


def _merged(uses: dict[Interval, _Use]) -> Iterator[BufferStretch]:
    """Yield the stretches in address order, with equally used neighbours merged."""
    open_at: Interval | None = None
    open_use = _Use()
    for (start, end), use in sorted(uses.items()):
        if open_at is not None and open_at[1] == start and open_use == use:
            open_at = (open_at[0], end)
            continue
        if open_at is not None:
            yield _stretch(open_at, open_use)
        open_at, open_use = (start, end), use
    if open_at is not None:
        yield _stretch(open_at, open_use)


def _stretch(interval: Interval, use: _Use) -> BufferStretch:
    return BufferStretch(
        *interval,
        use.scratch,
        tuple(sorted(use.written_by)),
        tuple(sorted(use.read_by)),
        tuple(joined(_lives(use.events))),
        tuple(joined((start, end) for start, end, write in use.events if write)),
        tuple(joined((start, end) for start, end, write in use.events if not write)),
    )


def _lives(events: Sequence[tuple[int, int, bool]]) -> Iterator[Interval]:
    """Yield the cycles in which contents are needed; an instruction that reads and overwrites reads first."""
    born: int | None = None
    needed = 0
    for start, end, write in sorted(events, key=lambda event: (event[0], event[2])):
        if not write:
            needed = max(needed, end)
        else:
            if born is not None:
                yield born, needed
            born, needed = start, end
    if born is not None:
        yield born, needed


def joined(intervals: Iterator[Interval] | Sequence[Interval]) -> Iterator[Interval]:
    """Yield the union of intervals, in order."""
    current: Interval | None = None
    for start, end in sorted(interval for interval in intervals if interval[0] < interval[1]):
        if current is not None and start <= current[1]:
            current = (current[0], max(current[1], end))
            continue
        if current is not None:
            yield current
        current = (start, end)
    if current is not None:
        yield current


def _peak(stretches: Sequence[BufferStretch]) -> Interval:
    """Return the peak of live bytes, and the first cycle that reaches it."""
    changes: dict[int, int] = {}
    for stretch in stretches:
        for start, end in stretch.live:
            changes[start] = changes.get(start, 0) + stretch.end - stretch.start
            changes[end] = changes.get(end, 0) - stretch.end + stretch.start
    most, when, live = 0, 0, 0
    for cycle in sorted(changes):
        live += changes[cycle]
        if live > most:
            most, when = live, cycle
    return most, when


_ROWS = 40
"""Maximum number of stretches of a buffer in the text; JSON has all."""

_NARROWEST, _WIDEST = 16, 100
"""Minimum and maximum number of columns of the map."""

_LEGEND = {
    "w": "w written", "r": "r read", "b": "b both", "=": "= not touched, still needed", ".": ". free",
    "s": "s after the bytes: scratch",
}  # fmt: skip
"""The letters of a map, each with its meaning."""


@record
class KernelLine(Keys):
    """The cost of a source line to its pipe."""

    source: SourceLine = apart()
    line: Line = derived("Line of the source.", "source.span.line")
    op: str = derived("The instruction.", "source.text")
    pipe: str = derived("Its pipe.", "source.pipe")
    executions: int = derived("Number of executions.", "source.executions")
    cycles: Cycles = derived("Cycles from start to end of its executions, which may overlap.", "source.cycles")
    pipe_cycles: Cycles = derived("Cycles that its pipe spent on it.", "source.pipe_cycles")
    share: float = says("Fraction of its pipe's occupied cycles, from 0 to 1.", key="share_of_pipe")
    causes: Mapping[CauseName, Cycles] = says("The pipe's cycles by cause.")

    @property
    def mostly(self) -> Cause | None:
        """The largest cause, None if its pipe spent nothing on it."""
        return max(self.causes, key=lambda cause: self.causes[cause], default=None)


@record
class PipesAtWork(Keys):
    """The cycles in which a number of pipes worked at once."""

    pipes: int = says("Number of pipes.")
    cycles: Cycles = says("Cycles in which exactly this number of pipes worked.")


def _achieved(overlap: PipeOverlap) -> float | None:
    possible = overlap.serial - max(overlap.busy.values(), default=0)
    return (overlap.serial - overlap.covered) / possible if possible else None


@record
class PipeOverlap(Keys, title="Overlap"):
    """The overlap of the pipes."""

    busy: Mapping[Name, Cycles] = says("Cycles in which each pipe is working.", key="work_cycles")
    serial: Cycles = derived(
        "Total of the cycles of all pipes.", lambda own: sum(own.busy.values()), key="serial_cycles"
    )
    covered: Cycles = derived(
        "Cycles in which at least one pipe works.",
        lambda own: sum(entry.cycles for entry in own.together),
        key="covered_cycles",
    )
    together: Sequence[PipesAtWork] = says("Cycles by the number of working pipes.", key="cycles_with_pipes_at_work")
    achieved: float | None = derived(
        "Part of the work that the busiest pipe could hide and does hide, from 0 to 1; null if only one pipe works.",
        _achieved,
    )


class Bound(Keys):
    """The bottleneck."""

    pipe: str = says("The pipe with the most occupied cycles.")
    cause: CauseName = says("The cause of most of these cycles.")
    cycles: Cycles = says("Cycles of that cause.")
    occupied_cycles: Cycles = says("Cycles in which the pipe is occupied.", "occupied")


@record
class LineCycles(Keys):
    """Cycles of a line."""

    line: Line | None = says("The line; see `lines`.")
    op: str = says("The instruction.")
    cycles: Cycles = says("Its cycles.")


def _behind_causes(launches: Launches) -> Mapping[Cause, Sequence[LineCycles]]:
    behind: dict[Cause, Sequence[LineCycles]] = {}
    for cause in Cause:
        lines = [
            LineCycles(line.line, line.op, line.causes[cause]) for line in launches.lines if line.causes.get(cause)
        ]
        if lines:
            behind[cause] = sorted(lines, key=lambda line: -line.cycles)
    return behind


@record
class LaunchesByCause(Launches):
    """All launches of one source instruction, with the lines behind each cause."""

    behind_causes: Mapping[CauseName, Sequence[LineCycles]] = derived(
        "The lines with cycles of each cause, most first.", _behind_causes
    )


@record
class Kernel(Keys):
    """A whole kernel."""

    total: int = apart()
    """Cycles of the run."""
    lines: Sequence[KernelLine] = says("The lines of the source.")
    overlap: PipeOverlap = says("The overlap of the pipes.")
    limiter: Limiter | None = apart()
    bound: Bound | None = derived("The bottleneck; null if no pipe worked.", "limiter")
    launches: Sequence[LaunchesByCause] = says("Details of launches.")
    buffers: Sequence[BufferMap] = says("The on-chip buffers.")


def kernel_report(result: Result) -> Kernel:
    """Derive the report of a tile program's run."""
    tree, timing, target = result.loaded.tree, result.timing, result.loaded.target
    return Kernel(
        total=timing.total,
        lines=_line_costs(tree, timing),
        overlap=_overlap(tree, timing),
        limiter=limiter(timing),
        launches=[extended(LaunchesByCause, launches) for launches in all_launches(tree, timing, target)],
        buffers=buffer_maps(tree, timing, target),
    )


class KernelKeys(Keys):
    """Keys of the kernel."""

    kernel: Kernel | None = says(
        "With `--report kernel`: the whole kernel.", lambda report: kernel_report(report.result), optional=True
    )


def _text(report: RunReport, width: int) -> Iterator[RenderableType]:
    overview = kernel_report(report.result)
    yield Text()
    yield Text("kernel", style="bold")
    yield from _overlap_text(overview.overlap)
    yield Text(overview.limiter.sentence() if overview.limiter else "No pipe has any work")
    yield Text()
    yield _lines(overview)
    for launches in overview.launches:
        yield Text()
        yield from _launches(launches)
    for buffer in overview.buffers:
        yield Text()
        yield from _buffer(buffer, overview.total, width)


def _overlap_text(overlap: PipeOverlap) -> Iterator[RenderableType]:
    busy = ", ".join(f"{pipe} {grouped(cycles)}" for pipe, cycles in overlap.busy.items())
    yield Text(f"cycles at work: {busy or 'none'}; {grouped(overlap.serial)} cycles without overlap")
    if overlap.achieved is not None:
        together = ", ".join(f"{entry.pipes} for {share(entry.cycles, overlap.covered)}" for entry in overlap.together)
        yield Text(
            f"overlap: {100 * overlap.achieved:.1f} % of what the busiest pipe could hide; number of pipes at work: "
            f"{together}"
        )


def _lines(report: Kernel) -> Table:
    numbers = (">times", ">cycles each", ">pipe cycles", ">share of pipe")
    grid = table(">line", "instruction", "pipe", *numbers, "mostly")
    for line in report.lines:
        mean = f"{line.cycles / line.executions:,.1f}"
        cells = (grouped(line.executions), mean, grouped(line.pipe_cycles), f"{100 * line.share:.1f} %")
        grid.add_row(str(line.line), line.op, line.pipe, *cells, str(line.mostly or ""))
    return grid


def _launches(launches: LaunchesByCause) -> Iterator[RenderableType]:
    """Yield the instructions of launches behind each cause, and those that make up a tile operation."""
    own = launches.op == LAUNCH
    times = f"{grouped(launches.executions)} time{'s' * (launches.executions != 1)}"
    which = "" if own or launches.executions == 1 else ", the first of them"
    yield Text(f"line {launches.line}, {launches.op}, {times}{which}: {grouped(launches.cycles)} cycles")
    if launches.cycles != launches.pipe_cycles:
        yield indented(
            Text(f"sum over its instructions; the table above counts {grouped(launches.pipe_cycles)} cycles")
        )
    if not own:
        yield launch_table(launches, "step")
        yield Text()
    rows = (
        (str(cause), grouped(sum(line.cycles for line in lines)), ", ".join(map(_named, lines)))
        for cause, lines in launches.behind_causes.items()
    )
    yield table("cause", ">cycles", "instructions behind it", rows=rows)


def _named(line: LineCycles) -> str:
    number = "" if line.line is None else f" ({line.line})"
    return f"{line.op}{number} {line.cycles}"


def _buffer(buffer: BufferMap, total: int, width: int) -> Iterator[RenderableType]:
    yield Text(
        f"buffer {buffer.name} over time: at most {grouped(buffer.peak_bytes)} of {grouped(buffer.capacity)} bytes in "
        f"use ({share(buffer.peak_bytes, buffer.capacity)}), first in cycle {grouped(buffer.peak_cycle)}"
    )
    shown = buffer.stretches[:_ROWS]
    names = [f"{grouped(s.start)} to {grouped(s.end - 1)}{' s' if s.scratch else ''}" for s in shown]
    users = [f"{_numbers(s.written_by)} > {_numbers(s.read_by)}" for s in shown]
    wide, used = max(map(len, names)), max(len("lines"), *map(len, users))
    columns = max(_NARROWEST, min(_WIDEST, width - wide - used - 14))
    buckets = min(columns, max(1, total))
    per = f"{total / buckets:,.0f} cycles per column" if total > buckets else "1 cycle per column"
    head = f"{'bytes':<{wide}}  {'lines':<{used}}  {'in use':>7}  0 to {grouped(total)}, {per}"
    yield indented(Text(head, style="bold"))
    letters = {"s" for stretch in shown if stretch.scratch}
    for stretch, name, lines in zip(shown, names, users, strict=True):
        live, picture = share(stretch.live_cycles, total), _picture(stretch, total, buckets)
        letters |= {*picture}
        row = f"{name:<{wide}}  {lines:<{used}}  {live:>7}  {picture}"
        yield Text(f"  {row}", no_wrap=True, overflow="ignore")
    if len(buffer.stretches) > len(shown):
        yield indented(Text(f"and {len(buffer.stretches) - len(shown)} more (--json has all)"))
    yield indented(Text(", ".join(meaning for letter, meaning in _LEGEND.items() if letter in letters), style="dim"))


def _numbers(lines: Sequence[int]) -> str:
    return ",".join(map(str, lines)) or "-"


def _picture(stretch: BufferStretch, total: int, buckets: int) -> str:
    """Return one character per bucket of cycles."""
    marks = []
    for bucket in range(buckets):
        span = (bucket * total // buckets, max((bucket + 1) * total // buckets, bucket * total // buckets + 1))
        writes, reads = _within(stretch.writes, span), _within(stretch.reads, span)
        live = _within(stretch.live, span)
        marks.append("b" if writes and reads else "w" if writes else "r" if reads else "=" if live else ".")
    return "".join(marks)


def _within(intervals: Sequence[Interval], span: Interval) -> bool:
    """Return whether an interval shares a cycle with `span`; the intervals are ordered and disjoint."""
    index = bisect_left(intervals, span[0] + 1, key=lambda interval: interval[1])
    return index < len(intervals) and intervals[index][0] < span[1]


def _line_costs(tree: Tree, timing: Timing) -> tuple[KernelLine, ...]:
    spent: dict[SourceKey, dict[Cause, int]] = {}
    occupied: dict[str, int] = {}
    for operation in timing.operations:
        instruction = tree.instructions[timing.executions[operation.execution].instruction]
        for cause, cycles in operation.causes.items():
            if cause not in WAITING:
                occupied[operation.pipe] = occupied.get(operation.pipe, 0) + cycles
            if operation.pipe == instruction.pipe and listed(instruction):
                own = spent.setdefault(source_key(instruction), {})
                own[cause] = own.get(cause, 0) + cycles
    working = {source_key(tree.instructions[number]) for number in _working(tree)}
    lines = (line for line in source_lines(tree, timing) if line.key in working)
    return tuple(_line_cost(line, spent.get(line.key, {}), occupied) for line in lines)


def _working(tree: Tree) -> set[int]:
    """Return the instructions that touch bytes: all but flags, barriers and scalar work."""
    return {element.instruction for element in elements(tree.root) if isinstance(element, Lowered) and element.accesses}


def _line_cost(line: SourceLine, spent: Mapping[Cause, int], occupied: Mapping[str, int]) -> KernelLine:
    causes = {cause: spent[cause] for cause in Cause if spent.get(cause)}
    working = sum(cycles for cause, cycles in causes.items() if cause not in WAITING)
    whole = occupied.get(line.pipe, 0)
    return KernelLine(line, working / whole if whole else 0.0, causes)


def _overlap(tree: Tree, timing: Timing) -> PipeOverlap:
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
    busy = {pipe: sum(end - start for start, end in intervals) for pipe, intervals in merged.items()}
    return PipeOverlap(busy, [PipesAtWork(pipes, cycles) for pipes, cycles in enumerate(together, 1)])


def _refusal(target: Target) -> str | None:
    if target.has_tiles:
        return None
    return "--report kernel is about pipes and tile buffers, which assembly does not have"


SECTION = ReportSection(_text, KernelKeys, refusal=_refusal)
