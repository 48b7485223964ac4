"""What the instructions of a launch compete for: places in the queue, registers, execution ports, the buffer.

Instructions are placed in program order, each as early as the older ones allow. That is what a machine does that picks
the oldest ready instruction: a younger one only takes a slot that no older one wanted. Times are ticks.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from heapq import heappush, heapreplace

from castsim.execution.dataflow.operations import BLOCK
from castsim.execution.dataflow.timing import TICKS
from castsim.machines.vector_function.timing import group_has_room
from castsim.targets.vector_function import FunctionBufferPorts

_LONG = 1000 * TICKS
"""Longer than any special function holds its port."""

_ENDLESS = 1 << 62


class Queue:
    """Instructions that have been dispatched and wait for their start: at most `places`."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._latest: list[tuple[int, int]] = []

    @property
    def gate(self) -> tuple[int, int]:
        """When there is a place for the next instruction, and the number of the one that leaves it; (0, -1): now."""
        return self._latest[0] if len(self._latest) == self._places else (0, -1)

    def add(self, start: int, number: int) -> None:
        """Note that instruction `number` starts at tick `start`."""
        if len(self._latest) < self._places:
            heappush(self._latest, (start, number))
        elif start > self._latest[0][0]:
            heapreplace(self._latest, (start, number))


class Registers:
    """Physical registers: one is taken at dispatch and returns some time after its last reader has started."""

    def __init__(self, physical: int) -> None:
        self._physical = physical
        self._held = 0
        self._returns: list[tuple[int, int]] = []

    @property
    def gate(self) -> tuple[int, int]:
        """When a register is free, and the number of the instruction that frees it; (0, -1): now."""
        spare = self._physical - self._held
        if spare > len(self._returns):
            return 0, -1
        return self._returns[-spare] if spare > 0 else (self._returns[-1] if self._returns else (0, -1))

    def take(self) -> None:
        """Take one."""
        self._held += 1

    def give(self, tick: int, number: int) -> None:
        """Note that one returns at `tick`, as instruction `number` has read it."""
        self._held -= 1
        insort(self._returns, (tick, number))
        if len(self._returns) > self._physical:
            del self._returns[0]


class Ports:
    """Execution ports: each starts one instruction a cycle, and one of its results returns a cycle.

    A special function keeps others of its kind from its port for some cycles, all else may start behind it. Converts
    and their like go to the first port alone.
    """

    def __init__(self, ports: int) -> None:
        self._starts = [_Cycles() for _ in range(ports)]
        self._results: list[set[int]] = [set() for _ in range(ports)]
        self._special: list[list[int]] = [[] for _ in range(ports)]
        self._serial: list[tuple[int, int]] = []
        """When instructions for the first port alone hold it."""

    def start(self, ready: int, latency: int, cycles: int = 1) -> int:
        """Start an instruction on whichever port is first, which it holds for so many cycles; return when."""
        tick, port = min((self._first(port, ready, latency, cycles), -port) for port in range(len(self._starts)))
        return self._take(-port, tick, latency, cycles)

    def start_serial(self, ready: int, held: int) -> int:
        """Start an instruction on the first port alone, which it holds for so long; its result has a way of its own."""
        starts, serial, tick, cycles = self._starts[0], self._serial, ready, -(-held // TICKS)
        while True:
            near = bisect_right(serial, (tick, _ENDLESS))
            before = serial[near - 1][1] if near else 0
            if before > tick or (near < len(serial) and serial[near][0] < tick + held):
                tick = before if before > tick else serial[near][1]
                continue
            first = tick // TICKS
            taken = [each for each in range(first, first + cycles) if starts.first(each) != each]
            if not taken:
                break
            tick = (taken[-1] + 1) * TICKS
        for cycle in range(first, first + cycles):
            starts.take(cycle)
        insort(serial, (tick, tick + held))
        return tick

    def start_special(self, ready: int, latency: int, held: int) -> int:
        """Start a special function on whichever port is first; those of one port are `held` apart."""
        tick, port = min((self._first_special(port, ready, latency, held), port) for port in range(len(self._starts)))
        insort(self._special[port], tick)
        return self._take(port, tick, latency)

    def forget(self, tick: int) -> None:
        """Let go of the cycles before: nothing starts in them any more."""
        cycle = tick // TICKS
        for starts in self._starts:
            starts.forget(cycle)
        self._results = [{each for each in results if each >= cycle} for results in self._results]
        self._serial = [each for each in self._serial if each[1] >= tick - _LONG]
        self._special = [[each for each in special if each >= tick - _LONG] for special in self._special]

    def _first_special(self, port: int, tick: int, latency: int, held: int) -> int:
        special = self._special[port]
        while True:
            tick = self._first(port, tick, latency)
            near = bisect_right(special, tick - held)
            if near == len(special) or special[near] >= tick + held:
                return tick
            tick = special[near] + held

    def _first(self, port: int, tick: int, latency: int, cycles: int = 1) -> int:
        starts, results = self._starts[port], self._results[port]
        while True:
            free = starts.first(tick // TICKS)
            tick = max(tick, free * TICKS)
            held = all(starts.first(free + more) == free + more for more in range(1, cycles))
            if held and (tick + latency) // TICKS not in results:
                return tick
            tick = _next_cycle(tick)

    def _take(self, port: int, tick: int, latency: int, cycles: int = 1) -> int:
        for cycle in range(tick // TICKS, tick // TICKS + cycles):
            self._starts[port].take(cycle)
        self._results[port].add((tick + latency) // TICKS)
        return tick


class _Cycles:
    """Cycles that have been taken; `_after` leads from each towards the next that has not."""

    def __init__(self) -> None:
        self._after: dict[int, int] = {}

    def first(self, cycle: int) -> int:
        """Return the first cycle from this one on that is free."""
        after, passed = self._after, []
        while cycle in after:
            passed.append(cycle)
            cycle = after[cycle]
        for each in passed:
            after[each] = cycle
        return cycle

    def take(self, cycle: int) -> None:
        """Take a cycle."""
        self._after[cycle] = cycle + 1

    def forget(self, cycle: int) -> None:
        """Let go of the cycles before."""
        self._after = {key: after for key, after in self._after.items() if key >= cycle}


def _next_cycle(tick: int) -> int:
    return (tick // TICKS + 1) * TICKS


class BufferGroups:
    """The bank groups of the buffer as one launch uses them: of each cycle, reads and then writes of every group."""

    def __init__(self, facts: FunctionBufferPorts) -> None:
        self._facts = facts
        self._used: dict[int, list[int]] = {}

    def grant(self, cycle: int, address: int, size: int, *, write: bool) -> int:
        """Ask in `cycle` for the blocks of an access; return the cycle in which the last one passes."""
        groups, last = self._facts.groups, cycle
        for block in range(address // BLOCK, -(-(address + size) // BLOCK)):
            last = max(last, self._pass(block % groups, cycle, write=write))
        return last

    def forget(self, cycle: int) -> None:
        """Let go of the cycles before: nothing asks for them any more."""
        self._used = {key: used for key, used in self._used.items() if key >= cycle}

    def _pass(self, group: int, cycle: int, *, write: bool) -> int:
        facts, groups = self._facts, self._facts.groups
        while True:
            used = self._used.get(cycle)
            if used is None:
                used = self._used[cycle] = [0] * (2 * groups)
            if group_has_room(
                used[group],
                used[groups + group],
                write,
                facts.reads_per_group,
                facts.reads_beside_write,
                facts.writes_per_group,
            ):
                used[groups * write + group] += 1
                return cycle
            cycle += 1
