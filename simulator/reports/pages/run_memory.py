"""The buffers of a run over time: what their bytes hold, and how many of them are needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from castsim.reports.kernel_memory import BufferMap, BufferStretch, buffer_maps
from castsim.reports.pages.blocks import Block, Curve, Curves, Lanes, Line, Packed, Text, Tone
from castsim.reports.pages.run_timeline import interval_columns
from castsim.reports.pipes import share
from castsim.reports.views.counters import CounterTrack, counters
from castsim.reports.views.timeline import Timeline
from castsim.running import Result

_MOST_EXECUTIONS = 200_000
"""Executions of which the accesses are looked at; of more the page has no map."""

_MOST_ROWS = 40
"""Stretches of a buffer that have a row; `--report kernel --json` has all."""

_MOST_POINTS = 4000
"""Changes of a curve that are kept; of more, the largest value of each stretch of cycles."""

_TONES = (Tone("holds what is still needed", "live"), Tone("read", "read"), Tone("written", "write"))
_LIVE, _READ, _WRITTEN = range(3)


def memory_blocks(result: Result, timeline: Timeline) -> Iterator[Block]:
    """Yield the maps of the buffers that a run used, and their bytes in use; nothing for assembly, which has none."""
    target = result.loaded.target
    if not target.has_tiles:
        return
    if len(result.timing.executions) > _MOST_EXECUTIONS:
        yield Text((Line(f"No map: more than {_MOST_EXECUTIONS} instructions were executed.", "dim"),))
        return
    sizes = {name: memory.capacity_bytes for name, memory in target.memories.items()}
    for found in buffer_maps(result.loaded.tree, result.timing, target):
        yield _lanes(found, result.cycles)
    tracks = counters(result.loaded.tree, result.timing, timeline, sizes)
    where = f"cycles {timeline.start} .. {timeline.end}"
    for unit, what in (("bytes", "Bytes in use"), ("operations", "Operations that wait in the queues of pipes")):
        own = [track for track in tracks if track.unit == unit]
        if own:
            curves = tuple(_curve(track, sizes, timeline) for track in own)
            yield Curves(f"{what}, {where}", unit, timeline.start, timeline.end, curves)


def _curve(track: CounterTrack, sizes: Mapping[str, int], timeline: Timeline) -> Curve:
    return Curve(track.of, _fewer(track.values, timeline), sizes.get(track.of))


def _lanes(found: BufferMap, total: int) -> Lanes:
    stretches = found.stretches[:_MOST_ROWS]
    columns = interval_columns([_intervals(each, number) for number, each in enumerate(stretches, 1)], 0)
    columns["texts"] = [_told(found.name, each, total) for each in stretches]
    more = len(found.stretches) - len(stretches)
    return Lanes(
        caption=f"Buffer {found.name}: at most {found.peak_bytes} of {found.capacity} bytes in use "
        f"({share(found.peak_bytes, found.capacity)}), first in cycle {found.peak_cycle}",
        unit="cycles",
        start=0,
        end=total,
        rows=tuple(f"{each.start} .. {each.last_byte}" for each in stretches),
        tones=_TONES,
        packed=Packed(columns),
        notes=(f"{more} more stretches: --report kernel --json has all.",) if more else (),
    )


def _intervals(each: BufferStretch, item: int) -> list[tuple[int, int, int, int]]:
    """Return the cycles of a stretch: where it is written, else read, else only needed."""
    layers = ((each.writes, _WRITTEN), (each.reads, _READ), (each.live, _LIVE))
    edges = sorted({edge for intervals, _ in layers for interval in intervals for edge in interval})
    found: list[tuple[int, int, int, int]] = []
    nexts = [0] * len(layers)
    for start, end in pairwise(edges):
        tone = None
        for layer, (intervals, kind) in enumerate(layers):
            while nexts[layer] < len(intervals) and intervals[nexts[layer]][1] <= start:
                nexts[layer] += 1
            inside = nexts[layer] < len(intervals) and intervals[nexts[layer]][0] <= start
            if inside and tone is None:
                tone = kind
        if tone is None:
            continue
        if found and found[-1][1] == start and found[-1][2] == tone:
            found[-1] = (found[-1][0], end, tone, item)
        else:
            found.append((start, end, tone, item))
    return found


def _told(name: str, each: BufferStretch, total: int) -> list[str]:
    scratch = ", scratch" if each.scratch else ""
    return [
        f"{name} bytes {each.start} .. {each.last_byte}{scratch}",
        f"written by line {_numbers(each.written_by)}; read by line {_numbers(each.read_by)}",
        f"needed {share(each.live_cycles, total)} of the time",
    ]


def _numbers(lines: Sequence[int]) -> str:
    return ", ".join(map(str, lines)) or "-"


def _fewer(points: Sequence[tuple[int, int]], timeline: Timeline) -> tuple[tuple[int, int], ...]:
    """Return a curve's points; of very many, the largest of each of equally long stretches."""
    if len(points) <= _MOST_POINTS:
        return tuple(points)
    width = max(1, (timeline.end - timeline.start) // (_MOST_POINTS // 2))
    found: dict[int, tuple[int, int]] = {}
    for cycle, value in points:
        bucket = (cycle - timeline.start) // width
        if bucket not in found or found[bucket][1] < value:
            found[bucket] = (cycle, value)
    return tuple(found.values())
