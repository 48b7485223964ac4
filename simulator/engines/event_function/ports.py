"""Ports of the buffer by bank group (docs/reference/a5.md section 8): so many reads or writes per cycle, fewer reads
beside a write.

Blocks of a group are served first come, first served; those of different groups do not wait for each other.
"""

from __future__ import annotations

from castsim.engines.event_dataflow.ports import BufferPorts, Pattern
from castsim.engines.event_dataflow.records import Entry
from castsim.execution.dataflow.operations import BLOCK
from castsim.machines.vector_function.timing import group_has_room
from castsim.targets.vector_function import FunctionBufferPorts as PortFacts
from castsim.timing import Observer


class GroupPorts(BufferPorts):
    """For each group the latest cycle that serves a block, and how many reads and writes it serves."""

    def __init__(self, facts: PortFacts, observer: Observer | None) -> None:
        cells = tuple((group, 0) for group in range(facts.groups))
        super().__init__(facts.groups, {False: cells, True: cells}, facts.groups, observer)
        self._facts = facts
        self._cycle = [-1] * facts.groups
        self._reads = [0] * facts.groups
        self._writes = [0] * facts.groups

    def grant(self, now: int, pattern: Pattern, block: int, entry: Entry) -> int:
        """Ask at `now` for the blocks of a pattern; return the cycle in which the last one passes."""
        last = now
        self.held = 0
        for (group, _), distance in zip(pattern.at(block), pattern.distances, strict=True):
            cycle = self._pass(group, now, pattern.write)
            last = max(last, cycle)
            self._tell(cycle, now, (block + distance) * BLOCK, pattern.write, entry)
        return last

    def _pass(self, group: int, now: int, write: bool) -> int:
        cycle = max(now, self._cycle[group])
        if cycle == self._cycle[group] and not self._fits(group, write):
            cycle += 1
        if self._holds:
            cycle, held = self._beyond_holds(group + self.groups * write, now, cycle)
            self.held = max(self.held, held)
        if cycle > self._cycle[group]:
            self._cycle[group], self._reads[group], self._writes[group] = cycle, 0, 0
        if write:
            self._writes[group] += 1
        else:
            self._reads[group] += 1
        return cycle

    def _fits(self, group: int, write: bool) -> bool:
        """Whether the group's latest cycle has room for one more block."""
        facts, reads, writes = self._facts, self._reads[group], self._writes[group]
        return group_has_room(
            reads, writes, write, facts.reads_per_group, facts.reads_beside_write, facts.writes_per_group
        )
