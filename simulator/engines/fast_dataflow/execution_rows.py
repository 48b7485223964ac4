"""Executions as a run leaves them: the rows of the ring are kept in columns once nothing refers to them any more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from castsim.engines.fast_dataflow.codes import BEGUN, MARKER, NONE, SCALAR_END, STALE
from castsim.engines.fast_dataflow.executions import execution_of, over
from castsim.engines.fast_dataflow.memory import MachineMemory
from castsim.engines.fast_dataflow.state import EntryRow, NodeRow, chain, entries_of

_FIRST_ROOM = 256
"""A power of two, at least 2; what comes out does not depend on it, only how often the ring is tidied up."""
_COMPILED_ROOM = 1 << 14
_LARGEST_GUESS = 1 << 24
"""Executions for which room is taken ahead: it costs nothing until it is written to."""
_BITS = BEGUN | SCALAR_END


class ExecutionRows:
    """Start, end, instruction and origin of every execution. `expected`: how many there will be at most."""

    def __init__(self, memory: MachineMemory, spaces: list[int], expected: int) -> None:
        self._memory = memory
        self._spaces = spaces
        self._room = min(expected, _LARGEST_GUESS) + 1
        self.starts: Any = np.empty(self._room, np.int64)
        self.ends: Any = np.empty(self._room, np.int64)
        self.instructions: Any = np.empty(self._room, np.int32)
        self.origins: Any = np.empty(self._room, np.int8)
        self.count = 0
        memory.lengthen_executions(_FIRST_ROOM)

    def make_room(self) -> None:
        """Make room in the ring if it may be too small for the next step."""
        m = self._memory.machine
        if m.issuer.execution - m.first_execution < m.execution_mask:
            return
        self._forget_ended()
        self._keep(self._oldest())
        if 2 * (m.issuer.execution - m.first_execution) > m.execution_mask:
            self._memory.lengthen_executions(2 * (m.execution_mask + 1))

    def widen(self) -> None:
        """Make the ring larger: compiled runs fill it in no time."""
        self._memory.lengthen_executions(max(_COMPILED_ROOM, self._memory.machine.execution_mask + 1))

    def close(self) -> None:
        """Keep the rest, at the end of the run."""
        self._keep(self._memory.machine.issuer.execution + 1)

    def _keep(self, end: int) -> None:
        """Move the rows before execution `end` from the ring to the columns."""
        m = self._memory.machine
        first, room = m.first_execution, m.execution_mask + 1
        while first < end:
            place = first % room
            count = min(end - first, room - place)
            self._append(self._memory.columns("executions", place, place + count))
            first += count
        m.first_execution = max(m.first_execution, end)

    def _append(self, rows: Mapping[str, Any]) -> None:
        first, end = self.count, self.count + len(rows["start"])
        if end > self._room:
            self._room = 2 * end
            for name in ("starts", "ends", "instructions", "origins"):
                old = getattr(self, name)
                new = np.empty(self._room, old.dtype)
                new[:first] = old[:first]
                setattr(self, name, new)
        self.starts[first:end] = rows["start"]
        self.ends[first:end] = rows["end"]
        self.instructions[first:end] = rows["instruction"]
        self.origins[first:end] = np.asarray(rows["open"]) & _BITS
        self.count = end

    # ---------------------------------------------------------------------------------------- what is referred to

    def _oldest(self) -> int:
        """Return the oldest execution that anything refers to."""
        latest = self._memory.machine.issuer.execution
        entries = (entry.execution for entry in self._entries() if entry.operation != MARKER)
        nodes = (node.execution for node in (*self._accesses(), *self._needs()) if not node.kind & STALE)
        return min((*entries, *nodes), default=latest)

    def _accesses(self) -> Iterator[NodeRow]:
        """Yield the accesses in flight."""
        m = self._memory.machine
        for space in self._spaces:
            yield from chain(m.nodes, m.spaces[space].first)

    def _needs(self) -> Iterator[NodeRow]:
        """Yield what executions wait for: those of the operations that have not been executed.

        The latest execution is one of them before any of its operations is issued. What it needs may be found nowhere
        else: it has taken the bytes it writes from the accesses before it.
        """
        m = self._memory.machine
        waiting = {entry.execution for entry in self._entries() if entry.operation != MARKER}
        if m.issuer.execution != NONE:
            waiting.add(m.issuer.execution)
        for x in waiting if m.interlocked else ():
            yield from chain(m.nodes, execution_of(m, x).needs)

    def _entries(self) -> Iterator[EntryRow]:
        m = self._memory.machine
        for p in range(1, m.pipe_count):
            yield from entries_of(m, p)

    def _forget_ended(self) -> None:
        """Keep of executions that have ended only that they have."""
        m = self._memory.machine
        for node in (*self._accesses(), *self._needs()):
            if not node.kind & STALE and over(m, node.execution, m.now):
                node.kind |= STALE
                node.execution = NONE
