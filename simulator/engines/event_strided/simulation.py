"""One simulation of the strided-repeat mechanism."""

from __future__ import annotations

from functools import lru_cache

from castsim.engines.event_dataflow.pipes import BufferPorts, Cell, Entry, Pattern
from castsim.engines.event_dataflow.simulation import DataflowSimulation
from castsim.engines.event_strided.vector import StridedUnit
from castsim.execution.dataflow.operations import BLOCK
from castsim.machines.strided.banks import places_of_blocks
from castsim.machines.strided.timing import passes
from castsim.targets.strided_repeat import StridedBufferPorts as BankFacts
from castsim.timing import Observer

# Ports and banks of the unified buffer, block by block (docs/reference/a2a3.md section 8).
#
# Block n lies in group n mod `groups`. With exclusive ports, each group has one read port and one write port, each
# passing one block per cycle; with exclusive banks, no bank is read and written in the same cycle. Blocks are served
# first come, first served.


class Ports(BufferPorts):
    """Ports and banks, and when each is free for a read, then for a write. Those that exclude nothing stay free."""

    def __init__(self, banks: BankFacts, observer: Observer | None) -> None:
        super().__init__(banks.groups, _cells(banks), banks.groups, observer)
        self._port_free = [0] * (2 * banks.groups)
        self._banks = banks.groups * banks.banks_per_group
        self._bank_free = [0] * (2 * self._banks)
        self._exclusive_ports = banks.exclusive_ports
        self._exclusive_banks = banks.exclusive_banks

    def grant(self, now: int, pattern: Pattern, block: int, entry: Entry) -> int:
        """Ask at `now` for the blocks of a pattern; return the cycle in which the last one passes."""
        if self._observer is not None or self._holds:
            return self._grant_watched(now, pattern, block, entry)
        port_free, bank_free = self._port_free, self._bank_free
        ports, banks = self._exclusive_ports, self._exclusive_banks
        own = self._banks if pattern.write else 0
        other = self._banks - own
        last = now
        # The innermost loop of the simulation: `passes` spelled out, as comparisons are three times as fast as calls.
        for port, bank in pattern.at(block):
            cycle = now
            if port_free[port] > cycle:  # noqa: PLR1730
                cycle = port_free[port]
            if bank_free[own + bank] > cycle:  # noqa: PLR1730
                cycle = bank_free[own + bank]
            if ports:
                port_free[port] = cycle + 1
            if banks:
                bank_free[other + bank] = cycle + 1
            if cycle > last:  # noqa: PLR1730
                last = cycle
        return last

    def _grant_watched(self, now: int, pattern: Pattern, block: int, entry: Entry) -> int:
        """Do the same with held ports and an observer."""
        last = now
        own = self._banks if pattern.write else 0
        other = self._banks - own
        self.held = 0
        for (port, bank), distance in zip(pattern.at(block), pattern.distances, strict=True):
            free = passes(now, self._port_free[port], self._bank_free[own + bank])
            cycle, held = self._beyond_holds(port, now, free)
            self.held = max(self.held, held)
            if self._exclusive_ports:
                self._port_free[port] = cycle + 1
            if self._exclusive_banks:
                self._bank_free[other + bank] = cycle + 1
            last = max(last, cycle)
            self._tell(cycle, now, (block + distance) * BLOCK, pattern.write, entry)
        return last


@lru_cache(maxsize=16)
def _cells(banks: BankFacts) -> dict[bool, tuple[Cell, ...]]:
    """Return port and bank of every block, for reads and for writes."""
    reads, writes, places = places_of_blocks(banks)
    return {write: tuple(zip(ports, places, strict=True)) for write, ports in ((False, reads), (True, writes))}


class EventSimulation(DataflowSimulation):
    """A run of a tree on such a target."""

    VECTOR_UNIT = StridedUnit
    PORTS = Ports
