"""Ports and banks of the unified buffer, block by block (a2a3.md section 8).

Block n lies in group n mod `groups`; each group has one read port and one write port, each passing one block per
cycle, and each of its banks does one access per cycle, read or write. Blocks are served first come, first served.
"""

from __future__ import annotations

from functools import lru_cache

from isa.errors import TargetDataError
from simulator.engines.event_strided.records import Entry
from simulator.strided.operations import BLOCK
from simulator.timing import Observer
from targets.dataflow import Banks

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


class Ports:
    """When each port and bank is free next.

    `held` is the longest that a block of the last grant waited while `hold` kept its port busy.
    """

    def __init__(self, banks: Banks, observer: Observer | None) -> None:
        if banks.bank_bytes % BLOCK:
            raise TargetDataError(f"banks.bank_bytes {banks.bank_bytes} is no multiple of the block, {BLOCK} bytes")
        self.groups = banks.groups
        self.held = 0
        self._observer = observer
        self._holds: dict[int, list[tuple[int, int]]] = {}
        self._port_free = [0] * (2 * banks.groups)
        self._bank_free = [0] * (banks.groups * banks.banks_per_group)
        shape = (banks.groups, banks.banks_per_group, banks.bank_bytes // BLOCK)
        self._cells = {write: _cells(*shape, write) for write in (False, True)}
        self._patterns: dict[tuple[tuple[int, ...], bool], Pattern] = {}

    def pattern(self, offsets: tuple[int, ...], write: bool) -> Pattern:
        """Return the pattern of blocks at these byte offsets, multiples of the block size."""
        key = (offsets, write)
        if key not in self._patterns:
            self._patterns[key] = Pattern(self._cells[write], tuple(offset // BLOCK for offset in offsets), write)
        return self._patterns[key]

    def hold(self, group: int, write: bool, start: int, cycles: int) -> None:
        """Let nothing pass one port of `group` in the cycles [start, start + cycles)."""
        holds = self._holds.setdefault(_port(self.groups, group, write), [])
        holds.append((start, start + cycles))
        holds.sort()

    def grant(self, now: int, pattern: Pattern, block: int, entry: Entry) -> int:
        """Ask at `now` for the blocks of a pattern; return the cycle in which the last one passes."""
        if self._observer is not None or self._holds:
            return self._grant_watched(now, pattern, block, entry)
        port_free, bank_free = self._port_free, self._bank_free
        last = now
        # The innermost loop of the simulation: comparisons are three times as fast as calls of max.
        for port, bank in pattern.at(block):
            cycle = now
            if port_free[port] > cycle:  # noqa: PLR1730
                cycle = port_free[port]
            if bank_free[bank] > cycle:  # noqa: PLR1730
                cycle = bank_free[bank]
            port_free[port] = bank_free[bank] = cycle + 1
            if cycle > last:  # noqa: PLR1730
                last = cycle
        return last

    def _grant_watched(self, now: int, pattern: Pattern, block: int, entry: Entry) -> int:
        """Do the same with held ports and an observer."""
        last = now
        self.held = 0
        for (port, bank), distance in zip(pattern.at(block), pattern.distances, strict=True):
            cycle = max(now, self._port_free[port], self._bank_free[bank])
            held = 0
            for start, end in self._holds.get(port, ()):
                if start <= cycle < end:
                    cycle = end
                held += max(0, min(end, cycle) - max(start, now))
            self.held = max(self.held, held)
            self._port_free[port] = self._bank_free[bank] = cycle + 1
            last = max(last, cycle)
            if self._observer is not None:
                address = (block + distance) * BLOCK
                self._observer.block(cycle, entry.pipe, entry.index, address, pattern.write, now)
        return last


def _port(groups: int, group: int, write: bool) -> int:
    return group + groups if write else group


@lru_cache(maxsize=16)
def _cells(groups: int, banks: int, rows: int, write: bool) -> tuple[Cell, ...]:
    """Return port and bank of every block, `rows` of them in a bank; addresses beyond the buffer would start over."""
    cells = []
    for block in range(groups * banks * rows):
        row, group = divmod(block, groups)
        cells.append((_port(groups, group, write), group * banks + row // rows))
    return tuple(cells)
