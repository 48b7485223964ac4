"""Discrete-event engine of the vector-function mechanism, on simpy: its vector unit (all else: `event_dataflow`).

The instructions of a launch are placed when it begins (`function_launches`); then its time passes, and its accesses
take the ports of the buffer before transfers do. Rules: docs/reference/a5.md sections 6.2, 7 and 8.
"""

from __future__ import annotations

from castsim.engines.event_dataflow import DataflowSimulation
from castsim.engines.event_pipes import BufferPorts, Pattern, PipeProcess, QueueEntry, Steps
from castsim.execution.pipe_operations import BLOCK
from castsim.execution.timing import Observer
from castsim.machines.vector_function.function_launches import FACTS, MicroFunction, check_function, timed
from castsim.machines.vector_function.function_operations import VectorFunction
from castsim.machines.vector_function.function_timing import (
    GROUPS_PER_WORD,
    group_has_room,
    launch_reads,
    launch_writes,
    words_of_cycle,
)
from castsim.machines.vector_function.instruction_scoreboard import ScopeTiming
from castsim.targets.vector_function import FunctionBufferPorts as PortFacts
from castsim.targets.vector_function import VectorFunctionTarget


class FunctionUnit:
    """The vector pipe of one target. A function ends before the next one is launched."""

    def __init__(self, target: VectorFunctionTarget) -> None:
        self._target = target

    def check(self, operation: object) -> None:
        """Reject operations other than vector functions, and instructions for which the target has no latency."""
        check_function(operation, self._target)

    def run(self, pipe: PipeProcess, entry: QueueEntry) -> Steps:
        """Launch a function; returns when it has ended."""
        env = pipe.machine.env
        function = entry.operation
        pipe.machine.facts.update(FACTS)
        # The published cycles of a cast count from here: they leave out the control writes.
        entry.begin(int(env.now))
        entry.execution.start_at(entry.start)
        assert isinstance(function, VectorFunction | MicroFunction)  # checked before the run
        timing = timed(function, self._target)
        ports = pipe.machine.ports
        assert isinstance(ports, GroupPorts)
        ports.launch(entry.start, timing)
        pipe.machine.facts.update(timing.facts)
        for span in timing.spans:
            pipe.account.spend(span.cause, entry.start + span.until, entry)
        pipe.machine.ledger.finish(entry, entry.start + timing.cycles)
        yield pipe.machine.env.timeout(timing.cycles)


# Ports of the buffer by bank group (docs/reference/a5.md section 8): so many reads or writes per cycle, fewer reads
# beside a write.
#
# Accesses of a launch pass as if there were no transfers; blocks of transfers follow, first come, first served, and
# those of different groups do not wait for each other.


class GroupPorts(BufferPorts):
    """For each group, the latest cycle that serves a block, and the numbers of reads and writes that it serves."""

    def __init__(self, facts: PortFacts, observer: Observer | None) -> None:
        cells = tuple((group, 0) for group in range(facts.groups))
        super().__init__({False: cells, True: cells}, observer)
        self._facts = facts
        self._cycle = [-1] * facts.groups
        self._reads = [0] * facts.groups
        self._writes = [0] * facts.groups
        self._start = 0
        self._launched: tuple[int, ...] = ()

    def grant(self, now: int, pattern: Pattern, block: int, entry: QueueEntry) -> int:
        """Request the blocks of a pattern at `now`; return the cycle in which the last one passes."""
        last = now
        for (group, _), distance in zip(pattern.at(block), pattern.distances, strict=True):
            cycle = self._pass(group, now, pattern.write)
            last = max(last, cycle)
            self._tell(cycle, now, (block + distance) * BLOCK, pattern.write, entry)
        return last

    def launch(self, start: int, timing: ScopeTiming) -> None:
        """Reserve all accesses of a launch, from its start on."""
        self._start, self._launched = start, timing.accesses

    def _pass(self, group: int, now: int, write: bool) -> int:
        cycle = max(now, self._cycle[group])
        while not self._fits(group, cycle, now, write):
            cycle += 1
        if cycle > self._cycle[group]:
            self._cycle[group], self._reads[group], self._writes[group] = cycle, 0, 0
        if write:
            self._writes[group] += 1
        else:
            self._reads[group] += 1
        return cycle

    def _fits(self, group: int, cycle: int, now: int, write: bool) -> bool:
        """Whether a cycle of a group, the latest or a later one, has room for another block that is requested at `now`.

        Requests in the cycle of a launch precede it.
        """
        facts, reads, writes = self._facts, 0, 0
        if cycle == self._cycle[group]:
            reads, writes = self._reads[group], self._writes[group]
        index = (cycle - self._start) * words_of_cycle(facts.groups) + group // GROUPS_PER_WORD
        if now > self._start and index < len(self._launched):
            word = self._launched[index]
            reads, writes = reads + launch_reads(word, group), writes + launch_writes(word, group)
        return group_has_room(
            reads, writes, write, facts.reads_per_group, facts.reads_beside_write, facts.writes_per_group
        )


class FunctionSimulation(DataflowSimulation):
    """A run of a tree on a target with vector functions."""

    VECTOR_UNIT = FunctionUnit
    PORTS = GroupPorts
