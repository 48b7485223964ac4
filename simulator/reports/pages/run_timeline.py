"""The timeline of a run as lanes (pipes or slots, critical path, latency windows), and the values of its outputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from castsim.engines import observe
from castsim.execution.timing import Cause
from castsim.execution.tree import Access, Tree, accesses, instances
from castsim.isa.dataclass import dataclass, replace
from castsim.isa.formats import Codes, Format, IntFormat
from castsim.numerics.codec import codes_from_array, decode_to_float64, is_codes
from castsim.reports.documents import Json, identifier
from castsim.reports.numbers import grouped
from castsim.reports.pages.blocks import Block, Histogram, Lanes, Line, Packed, Text, Tone
from castsim.reports.views.recording import (
    SegmentRecorder,
    Window,
    cut_segment,
    free_tracks,
    operation_segments,
)
from castsim.reports.views.timeline import (
    Dependence,
    DrawnOperation,
    PathStep,
    Timeline,
    critical_path,
    dependences,
    make_timeline,
)
from castsim.running.program_runs import Result

if TYPE_CHECKING:
    from castsim.machines.vliw.latency_bound import AwaitedResult


_IN_DETAIL, _CYCLES_IN_DETAIL = 2500, 60_000
"""Maximum number of operations and cycles of a run shown cycle by cycle; longer runs show whole operations
unless a window is requested: the page has an item for every cause of every cycle, and bundles, whose cycles only the
event engine reports, take about 5 us each.
"""

_MOST = 200_000
"""Maximum number of operations on a page, the first ones unless a window is requested."""

_TONES = tuple(Tone(str(cause), identifier(cause)) for cause in Cause if cause is not Cause.EMPTY)
_ISSUE, _WINDOW, _CHAIN = range(len(_TONES), len(_TONES) + 3)
_ALL_TONES = (
    *_TONES, Tone("not issued yet", "empty"), Tone("latency", "window"), Tone("dependence chain", "chain")
)  # fmt: skip
_NUMBER = {tone.name: number for number, tone in enumerate(_TONES)}
_PATH, _BINDING = "critical path", "binding chain"
_ABOVE = "latency"

_Interval = tuple[int, int, int, int]
"""Start, end, tone, and item number plus 1."""


@dataclass(frozen=True, slots=True)
class BindingLink:
    """A link of the binding chain, as executed: from the issue of its producer to that of its consumer.

    `execution` is the producer's, `nops` the bundles between them in which every slot is empty.
    """

    link: AwaitedResult
    execution: int
    start: int
    end: int
    nops: int


@dataclass(frozen=True, slots=True)
class RunTimeline:
    """A run cycle by cycle as a page shows it: events, dependences, the critical path (empty for bundles).

    `chain` are the links that limit a program of bundles, trip by trip; `notes` describe the shown part of the run, if
    it is not all of it.
    """

    timeline: Timeline
    dependences: tuple[Dependence, ...]
    path: tuple[PathStep, ...]
    notes: tuple[str, ...]
    chain: tuple[BindingLink, ...] = ()


def chain_steps(links: Sequence[AwaitedResult], result: Result, window: tuple[int, int]) -> Iterator[BindingLink]:
    """Yield the chain as executed in a window, trip by trip; of overlapping trips, only the first."""
    if not links:
        return
    instructions, index, begun = result.loaded.tree.instructions, 0, None
    empty = 0  # bundles of nothing so far
    for number, execution in enumerate(result.timing.executions):
        if execution.start >= window[1]:
            return
        if begun is not None and execution.instruction == links[index].consumer.bundle:
            producer, start, before = begun
            if start >= window[0]:
                yield BindingLink(links[index], producer, start, execution.start, empty - before)
            index, begun = (index + 1) % len(links), None
        if begun is None and execution.instruction == links[index].producer.bundle:
            begun = number, execution.start, empty
        empty += instructions[execution.instruction].text == "nop"


def run_timeline(result: Result, window: Window | None = None, links: Sequence[AwaitedResult] = ()) -> RunTimeline:
    """Return the timeline of a run; `window` None chooses the cycles, `links` are the chain that limits the run.

    Raises:
        ReadError: the window reaches beyond the run.
    """
    timing, tree, target = result.timing, result.loaded.tree, result.loaded.target
    notes: list[str] = []
    chosen = window
    if chosen is None:
        beyond = next(iter(islice(timing.operations, _MOST, None)), None)
        chosen = Window() if beyond is None else Window(0, max(1, beyond.start))
        if beyond is not None:
            notes.append(f"The first {chosen.end:,} of {timing.total:,} cycles; `--window A:B` shows others.")
    start, end = chosen.within(timing.total)
    recorder = SegmentRecorder(Window(start, end))
    short = timing.total <= _CYCLES_IN_DETAIL and len(timing.operations) <= _IN_DETAIL
    in_detail = short or window is not None
    if in_detail:
        recorder.issued = observe(tree, target, recorder)
    else:
        notes.append(
            "Each operation is drawn as a whole: waits, then work, with causes in a fixed order; `--window A:B` shows "
            "every cycle of a part."
        )
    timeline = make_timeline("", tree, timing, recorder, Window(start, end))
    if not in_detail:
        segments = (cut_segment(segment, start, end) for segment in operation_segments(timing, start, end))
        timeline = replace(timeline, segments=tuple(segment for segment in segments if segment.start < segment.end))
    if timeline.cut is not None:
        notes.append(
            f"The timeline ends in cycle {timeline.cut:,}, at its largest size; choose a part with `--window A:B`."
        )
    needed = dependences(tree, timeline)
    path = critical_path(timeline, needed) if target.has_tiles else ()
    chain = chain_steps(tuple(dict.fromkeys(links)), result, (start, end))
    return RunTimeline(timeline, needed, path, tuple(notes), tuple(chain))


def timeline_lanes(result: Result, shown: RunTimeline) -> Lanes:
    """Return the lanes of a run."""
    timeline = shown.timeline
    rows = sorted((*timeline.rows, *timeline.sent), key=lambda row: row.index)
    items = {row.index: number for number, row in enumerate(rows, 1)}
    by_row: dict[str, list[_Interval]] = {pipe: [] for pipe in timeline.pipes}
    if shown.path:
        path = [(step.start, step.end, *_of_path(step, items)) for step in shown.path]
        by_row = {_PATH: path, **by_row}
    if shown.chain:
        own = {(row.execution, row.pipe): items[row.index] for row in rows}
        chain = [
            (link.start, link.end, _CHAIN, own.get((link.execution, link.link.producer.slot.name), 0))
            for link in shown.chain
        ]
        by_row = {_BINDING: chain, **by_row}
    for segment in timeline.segments:
        if segment.cause is not Cause.EMPTY:
            item = 0 if segment.operation is None else items.get(segment.operation, 0)
            by_row[segment.pipe].append((segment.start, segment.end, _NUMBER[str(segment.cause)], item))
    if not result.loaded.target.has_tiles:
        by_row |= _latencies(timeline, rows, items)
    columns = interval_columns(by_row.values(), timeline.start)
    columns["operations"] = _operations(result, shown, rows, {name: index for index, name in enumerate(by_row)})
    used = {tone for intervals in by_row.values() for _, _, tone, _ in intervals}
    return Lanes(
        caption=f"Cycles {grouped(timeline.start)} .. {grouped(timeline.end)} of {grouped(timeline.total)}",
        unit="cycles",
        start=timeline.start,
        end=timeline.end,
        rows=tuple(by_row),
        tones=tuple(
            lane_tone if number in used else replace(lane_tone, name="") for number, lane_tone in enumerate(_ALL_TONES)
        ),
        packed=Packed(columns),
        details="operations",
        notes=shown.notes,
    )


def interval_columns(rows: Iterable[Sequence[_Interval]], start: int) -> dict[str, Json]:
    """Return the intervals of each row, which are ordered and disjoint, packed as for `Lanes`."""
    columns: dict[str, list[list[int]]] = {"gap": [], "length": [], "tone": [], "item": []}
    for intervals in rows:
        at, before = start, 0
        for values in columns.values():
            values.append([])
        for begin, end, tone, item in sorted(intervals):
            for name, value in (("gap", begin - at), ("length", end - begin), ("tone", tone), ("item", item - before)):
                columns[name][-1].append(value)
            at, before = end, item
    return dict(columns)


def _of_path(step: PathStep, items: Mapping[int, int]) -> tuple[int, int]:
    if step.row is None:
        return _ISSUE, 0
    return _NUMBER[Cause.BUSY], items.get(step.row.index, 0)


def _latencies(
    timeline: Timeline, rows: Sequence[DrawnOperation], items: Mapping[int, int]
) -> dict[str, list[_Interval]]:
    """Return rows for the cycles from the issue of an operation to its result: as many per slot as overlap."""
    latencies: dict[str, list[_Interval]] = {}
    for pipe in timeline.pipes:
        own = [
            (start, end, items[row.index])
            for row in rows
            if row.pipe == pipe
            for start, end in [(max(row.start, timeline.start), min(row.end, timeline.end))]
            if end - start >= 2
        ]
        tracks = free_tracks((start, end) for start, end, _ in own)
        for track, (start, end, item) in zip(tracks, own, strict=True):
            name = f"{pipe} {_ABOVE}" + (f" {track}" if track > 1 else "")
            latencies.setdefault(name, []).append((start, end, _WINDOW, item))
    return latencies


def _operations(
    result: Result, shown: RunTimeline, rows: Sequence[DrawnOperation], places: Mapping[str, int]
) -> dict[str, Json]:
    """Return the columns that describe operations; see `lanes.operations` in `lanes_data.js`."""
    tree, timing = result.loaded.tree, result.timing
    numbers = {execution: index for index, execution in enumerate(sorted({row.execution for row in rows}))}
    executed = [timing.executions[execution].instruction for execution in numbers]
    instructions = {number: index for index, number in enumerate(dict.fromkeys(executed))}
    names = {name: index for index, name in enumerate(dict.fromkeys(row.name for row in rows))}
    item = {row.index: number for number, row in enumerate(rows)}
    edges = sorted(
        (item[dependence.producer], item[dependence.consumer], dependence.why) for dependence in shown.dependences
    )
    whys = {why: index for index, why in enumerate(dict.fromkeys(why for _, _, why in edges))}
    return {
        "names": list(names),
        "name": [names[row.name] for row in rows],
        "index": _differences(row.index for row in rows),
        "row": [places[row.pipe] for row in rows],
        "start": _differences((row.start for row in rows), shown.timeline.start),
        "length": [row.end - row.start for row in rows],
        "execution": _differences(numbers[row.execution] for row in rows),
        "instruction": [instructions[number] for number in executed],
        "instructions": [_instruction(tree, number) for number in instructions],
        "producer": _differences(edge[0] for edge in edges),
        "consumer": _differences(edge[1] for edge in edges),
        "why": [whys[edge[2]] for edge in edges],
        "whys": list(whys),
        **_bytes(tree, numbers),
    }


def _instruction(tree: Tree, number: int) -> Json:
    instruction = tree.instructions[number]
    return {"text": instruction.text, "line": 0 if instruction.inserted else instruction.span.line}


def _bytes(tree: Tree, numbers: Mapping[int, int]) -> dict[str, Json]:
    """Return the bytes that the executions touch: shapes of their accesses, and the addresses in order."""
    last = max(numbers, default=-1)
    templates: dict[tuple[tuple[str, str, int, str], ...], int] = {}
    places: list[int] = []
    addresses: list[int] = []
    for number, (lowered, deltas) in enumerate(islice(instances(tree), last + 1)):
        if number not in numbers:
            continue
        touched = accesses(lowered, deltas)
        shape = tuple(_shape(access) for access in touched)
        places.append(templates.setdefault(shape, len(templates)) if shape else -1)
        addresses += (access.start for access in touched)
    return {"templates": [list(map(list, shape)) for shape in templates], "places": places, "addresses": addresses}


def _shape(access: Access) -> tuple[str, str, int, str]:
    stretches = prod(count for count, _ in access.runs)
    more = f", {stretches} stretches" if stretches > 1 else ""
    return str(access.space), "writes" if access.write else "reads", access.end - access.start, more


def _differences(values: Iterable[int], before: int = 0) -> list[int]:
    return list(_each_difference(values, before))


def _each_difference(values: Iterable[int], before: int) -> Iterator[int]:
    for value in values:
        yield value - before
        before = value


# The values of a run's outputs: their spread, and how many are special or at the ends of their format's range.

_BINS = 48

_COUNTED = 16
"""Bit width up to which a format's codes are counted; elements of wider formats are examined one by one."""

_MOST_VALUES = 1 << 22
"""Maximum number of elements of wider formats that are examined."""


def output_blocks(result: Result) -> Iterator[Block]:
    """Yield a histogram for each computed output."""
    for name, array in result.outputs.items():
        yield from value_blocks(name, array, result.loaded.arguments[name].format)


def value_blocks(name: str, array: Codes, fmt: Format) -> Iterator[Block]:
    """Yield the histogram of an output: numbers in the native dtype of their format, or codes."""
    caption = f"Output {name}: {fmt.name} [{' x '.join(map(str, array.shape))}]"
    codes = array if is_codes(array, fmt) else codes_from_array(array, fmt)
    if not codes.size:
        yield Text((Line(f"{caption}: no elements", "dim"),))
        return
    every = -(-codes.size // _MOST_VALUES) if fmt.storage_bits > _COUNTED else 1
    if every > 1:
        caption = f"{caption}, one element in {every}"
    values, times = _distinct(np.ascontiguousarray(codes).reshape(-1)[::every], fmt)
    finite_mask = np.isfinite(values)
    marks = tuple((label, float(count)) for label, count in _counts(values, times, fmt))
    if not finite_mask.any():
        yield Histogram(f"{caption}: no finite values", (), (), marks)
        return
    finite, weights = values[finite_mask], None if times is None else times[finite_mask]
    counts, edges = _histogram(finite, weights, fmt)
    low, high = finite.min(), finite.max()
    mean = np.average(finite, weights=weights)
    caption = f"{caption}, {low:.6g} .. {high:.6g}, mean {mean:.6g}"
    yield Histogram(caption, tuple(map(float, edges)), tuple(map(int, counts)), marks)


def _distinct(codes: Codes, fmt: Format) -> tuple[NDArray[np.float64], NDArray[np.int64] | None]:
    """Return distinct numbers with their counts; for formats with very many codes, each element and None."""
    if fmt.storage_bits > _COUNTED:
        return decode_to_float64(codes, fmt), None
    times = np.bincount(codes)
    present = np.flatnonzero(times)
    return decode_to_float64(present.astype(codes.dtype), fmt), times[present]


def _counts(values: NDArray[np.float64], times: NDArray[np.int64] | None, fmt: Format) -> Iterator[tuple[str, int]]:
    """Yield the numbers of special values: values at the largest finite value of either sign are `saturated`."""

    def count(those: NDArray[np.bool_]) -> int:
        return int(np.count_nonzero(those) if times is None else times[those].sum())

    low, high = finite_range(fmt)
    yield "values", count(np.ones(values.shape, np.bool_))
    yield "saturated", count((values == high) | ((values == low) & (low != 0)))
    yield "zero", count(values == 0)
    if not isinstance(fmt, IntFormat):
        yield "NaN", count(np.isnan(values))
        yield "infinite", count(np.isinf(values))


def finite_range(fmt: Format) -> tuple[float, float]:
    """Return the least and the largest finite value of a format."""
    if isinstance(fmt, IntFormat):
        return float(fmt.minimum), float(fmt.maximum)
    ends = np.array([fmt.max_finite_code], dtype=np.uint64)
    dtype = np.dtype(f"u{max(1, fmt.storage_bits // 8)}")
    high = float(decode_to_float64(ends.astype(dtype), fmt)[0])
    return -high, high


def _histogram(
    finite: NDArray[np.float64], weights: NDArray[np.int64] | None, fmt: Format
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return counts and edges of bins.

    Each bin of integers holds equally many; a format with few values has one bin per value; others are equally wide.
    """
    low, high = float(finite.min()), float(finite.max())
    if isinstance(fmt, IntFormat) or (high - low < _BINS and np.array_equal(finite, np.rint(finite))):
        step = max(1.0, -(-(high - low + 1) // _BINS))
        counts, edges = np.histogram(finite, bins=np.arange(low, high + step + 1, step), weights=weights)
        if edges[-2] > high:
            counts, edges = counts[:-1], edges[:-1]
        return counts, edges
    distinct = np.unique(finite)
    if len(distinct) <= _BINS:
        counts, edges = np.histogram(finite, bins=np.append(distinct, np.nextafter(high, np.inf)), weights=weights)
    elif np.isfinite(high - low):
        counts, edges = np.histogram(finite, bins=_BINS, range=(low, high), weights=weights)
    else:
        counts, edges = np.histogram(finite / 2, bins=_BINS, range=(low / 2, high / 2), weights=weights)
        edges = edges * 2
    return counts, edges
