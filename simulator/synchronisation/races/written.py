"""Bytes of on-chip buffers that are read before anything has written them.

Reads are looked at in the trips that are followed, writes count in all trips that these stand for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from castsim.execution.byte_sets import Bytes, run_length
from castsim.execution.dataflow.operations import ScalarAccess
from castsim.execution.tree import Access, Instruction, scratch_reads
from castsim.synchronisation.flags.touches import Touch
from castsim.synchronisation.races.findings import Finding, RaceKind, RaceRegion
from castsim.synchronisation.races.unrolling import SLOTS, Instance

_PLACES = 65536
"""Stretches of bytes that one access is taken apart into; an access of more is taken as one piece."""


class WrittenBytes:
    """The bytes written so far, per buffer; `capacities` are their sizes in bytes."""

    def __init__(self, capacities: Mapping[str, int], instructions: Sequence[Instruction]) -> None:
        self._written = {name: np.zeros(size, bool) for name, size in capacities.items()}
        self._instructions = instructions
        self._told: set[int] = set()
        self._settled: set[Touch] = set()
        """Touches that no loop moves and whose bytes are all written."""

    def execute(self, instance: Instance) -> Iterator[Finding]:
        """Take in the next execution in program order; yield what it reads that nothing wrote."""
        own = scratch_reads(instance.lowered.accesses)
        for number, touch in enumerate(instance.touches):
            written = self._written.get(touch.access.space)
            if written is None or touch.access.write or number in own or instance.lowered.instruction in self._told:
                continue
            if touch in self._settled:
                continue
            gap = self._gap(instance, touch, written)
            if gap is None:
                self._settle(touch)
            else:
                self._told.add(instance.lowered.instruction)
                yield self._finding(instance, RaceRegion(touch.access.space, *gap))
        for touch in instance.touches:
            written = self._written.get(touch.access.space)
            if written is not None and touch.access.write and touch not in self._settled:
                self._settle(touch)
                for start, end in _stretches(touch.access, _moves(instance, touch, all_trips=True)):
                    written[max(0, start) : end] = True
                for start, end in _whole_tiles(instance):
                    written[max(0, start) : end] = True

    def _settle(self, touch: Touch) -> None:
        if not any(touch.steps):
            self._settled.add(touch)

    def _gap(self, instance: Instance, touch: Touch, written: NDArray[np.bool_]) -> Bytes | None:
        for start, end in _stretches(touch.access, _moves(instance, touch, all_trips=False)):
            found = written[max(0, start) : end]
            if not found.all():
                first = int(np.argmin(found))
                rest = np.flatnonzero(found[first:])
                length = int(rest[0]) if rest.size else found.size - first
                return start + first, start + first + length
        return None

    def _finding(self, instance: Instance, region: RaceRegion) -> Finding:
        instruction = self._instructions[instance.lowered.instruction]
        message = (
            f"{instruction.text} ({instruction.span}) on {instruction.pipe} reads {region} before anything writes them"
        )
        return Finding(RaceKind.UNWRITTEN, message, (instruction.span,), (instruction.pipe,), region)


def _whole_tiles(instance: Instance) -> Iterator[Bytes]:
    """Yield the tiles of which the scalar unit writes elements: such a tile counts as written (docs/reference/pto.md
    section 7.9).
    """
    for operation in instance.lowered.body.items:
        if isinstance(operation, ScalarAccess) and operation.code and operation.tile_bytes is not None:
            yield operation.tile_bytes


def _moves(instance: Instance, touch: Touch, *, all_trips: bool) -> list[Sequence[int]]:
    """Return per loop the bytes by which it moves an access: in the followed trip, or in all that it stands for."""
    found: list[Sequence[int]] = []
    for turn, step in zip(instance.path, touch.steps, strict=True):
        last = all_trips and not turn.exact and turn.slot == SLOTS - 1
        trips = range(turn.slot, turn.trips if last else turn.slot + 1)
        if step:
            found.append(range(trips.start * step, trips.stop * step, step))
    return found


def _stretches(access: Access, moves: Sequence[Sequence[int]]) -> Iterator[Bytes]:
    """Yield the stretches without gaps of an access moved by every combination of `moves`."""
    distances = [*moves, *(range(0, count * distance, distance) for count, distance in access.runs)]
    places = 1
    for each in distances:
        places *= len(each)
    if places > _PLACES:
        reach = [sorted((each[0], each[-1])) for each in moves]
        yield access.start + sum(low for low, _ in reach), access.end + sum(high for _, high in reach)
        return
    length = run_length(access)
    for offsets in product(*distances):
        start = access.start + sum(offsets)
        yield start, start + length
