"""Ports of the unified buffer, block by block: what all bankings share. A mechanism says who waits for whom."""

from __future__ import annotations

from abc import ABC, abstractmethod

from castsim.engines.event_dataflow.records import Entry
from castsim.execution.dataflow.operations import BLOCK
from castsim.timing import Observer

Cell = tuple[int, int]
"""Port and bank that a block needs."""


class Pattern:
    """Blocks at fixed distances, as those of one repeat: where they lie depends only on the first block's number."""

    def __init__(self, cells: tuple[Cell, ...], distances: tuple[int, ...], write: bool) -> None:
        self.distances = distances
        self.write = write
        self._cells = cells
        self._known: dict[int, tuple[Cell, ...]] = {}

    def at(self, block: int) -> tuple[Cell, ...]:
        """Return the cells of the pattern that starts at `block`."""
        phase = block % len(self._cells)
        known = self._known.get(phase)
        if known is None:
            known = tuple(self._cells[(phase + distance) % len(self._cells)] for distance in self.distances)
            self._known[phase] = known
        return known


class BufferPorts(ABC):
    """The ports, and when each is free next. `held` is the longest wait of a block of the last grant for a held port.

    `cells` are port and bank of every block, for reads and for writes, starting over where they end; `write_ports`
    is the distance from the number of a group's read port to that of its write port.
    """

    def __init__(
        self, groups: int, cells: dict[bool, tuple[Cell, ...]], write_ports: int, observer: Observer | None
    ) -> None:
        self.groups = groups
        self.held = 0
        self._observer = observer
        self._cells = cells
        self._write_ports = write_ports
        self._holds: dict[int, list[tuple[int, int]]] = {}
        self._patterns: dict[tuple[tuple[int, ...], bool], Pattern] = {}

    def pattern(self, offsets: tuple[int, ...], write: bool) -> Pattern:
        """Return the pattern of blocks at these byte offsets, multiples of the block size."""
        key = (offsets, write)
        if key not in self._patterns:
            self._patterns[key] = Pattern(self._cells[write], tuple(offset // BLOCK for offset in offsets), write)
        return self._patterns[key]

    def hold(self, group: int, write: bool, start: int, cycles: int) -> None:
        """Let nothing pass one port of `group` in the cycles [start, start + cycles)."""
        holds = self._holds.setdefault(group + self._write_ports * write, [])
        holds.append((start, start + cycles))
        holds.sort()

    @abstractmethod
    def grant(self, now: int, pattern: Pattern, block: int, entry: Entry) -> int:
        """Ask at `now` for the blocks of a pattern; return the cycle in which the last one passes."""

    def _beyond_holds(self, port: int, now: int, cycle: int) -> tuple[int, int]:
        """Return when a block that asked at `now` can pass a port in or after `cycle`, and how long it was held."""
        held = 0
        for start, end in self._holds.get(port, ()):
            if start <= cycle < end:
                cycle = end
            held += max(0, min(end, cycle) - max(start, now))
        return cycle, held

    def _tell(self, cycle: int, now: int, address: int, write: bool, entry: Entry) -> None:
        if self._observer is not None:
            self._observer.block(cycle, entry.pipe, entry.index, address, write, now)
