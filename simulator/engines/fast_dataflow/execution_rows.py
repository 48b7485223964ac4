"""Executions as a run leaves them: the rows of the ring are kept in columns once nothing refers to them any more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from simulator.engines.fast_dataflow.executions import at, over
from simulator.engines.fast_dataflow.heap import Heap
from simulator.engines.fast_dataflow.layout import (
    BEGUN,
    E_EXECUTION,
    E_NEXT,
    E_OPERATION,
    EXECUTION,
    EXECUTION_MASK,
    EXECUTION_WIDTH,
    EXECUTIONS_AT,
    FIRST_EXECUTION,
    INTERLOCKED,
    MARKER,
    N_EXECUTION,
    N_KIND,
    N_NEXT,
    NONE,
    NOW,
    P_ACTION,
    P_CURRENT,
    P_FLIGHT,
    P_QUEUE,
    PIPES,
    SCALAR_END,
    SPACE_FIRST,
    STALE,
    X_END,
    X_INSTRUCTION,
    X_NEEDS,
    X_OPEN,
    X_START,
)
from simulator.engines.fast_dataflow.snapshots import chain

_FIRST_ROOM = 256
_COMPILED_ROOM = 1 << 14
_LARGEST_GUESS = 1 << 24
"""Executions for which room is taken ahead: it costs nothing until it is written to."""
_BITS = BEGUN | SCALAR_END


class ExecutionRows:
    """Start, end, instruction and origin of every execution. `expected`: how many there will be at most."""

    def __init__(self, heap: Heap, spaces: list[int], expected: int) -> None:
        self._heap = heap
        self._spaces = spaces
        self._room = min(expected, _LARGEST_GUESS) + 1
        self.starts: Any = np.empty(self._room, np.int64)
        self.ends: Any = np.empty(self._room, np.int64)
        self.instructions: Any = np.empty(self._room, np.int32)
        self.origins: Any = np.empty(self._room, np.int8)
        self.count = 0
        heap.cells[EXECUTION_MASK] = NONE
        self._lengthen(_FIRST_ROOM)

    def make_room(self) -> None:
        """Make room in the ring if it may be too small for the next step."""
        m = self._heap.cells
        if m[EXECUTION] - m[FIRST_EXECUTION] < m[EXECUTION_MASK]:
            return
        self._forget_ended()
        self._keep(self._oldest())
        m = self._heap.cells
        if 2 * (m[EXECUTION] - m[FIRST_EXECUTION]) > m[EXECUTION_MASK]:
            self._lengthen(2 * (int(m[EXECUTION_MASK]) + 1))

    def widen(self) -> None:
        """Make the ring larger: compiled runs fill it in no time."""
        self._lengthen(max(_COMPILED_ROOM, int(self._heap.cells[EXECUTION_MASK]) + 1))

    def close(self) -> None:
        """Keep the rest, at the end of the run."""
        self._keep(int(self._heap.cells[EXECUTION]) + 1)

    def _lengthen(self, room: int) -> None:
        new = self._heap.take(room * EXECUTION_WIDTH)
        m = self._heap.cells
        old, mask = int(m[EXECUTIONS_AT]), int(m[EXECUTION_MASK])
        for x in range(int(m[FIRST_EXECUTION]), int(m[EXECUTION]) + 1):
            source, place = old + (x & mask) * EXECUTION_WIDTH, new + (x & (room - 1)) * EXECUTION_WIDTH
            m[place : place + EXECUTION_WIDTH] = m[source : source + EXECUTION_WIDTH]
        m[EXECUTIONS_AT], m[EXECUTION_MASK] = new, room - 1

    def _keep(self, end: int) -> None:
        """Move the rows before execution `end` from the ring to the columns."""
        m = self._heap.cells
        first, room = int(m[FIRST_EXECUTION]), int(m[EXECUTION_MASK]) + 1
        while first < end:
            place = first % room
            count = min(end - first, room - place)
            at = int(m[EXECUTIONS_AT]) + place * EXECUTION_WIDTH
            self._append(np.asarray(m[at : at + count * EXECUTION_WIDTH]).reshape(count, EXECUTION_WIDTH))
            first += count
        m[FIRST_EXECUTION] = max(int(m[FIRST_EXECUTION]), end)

    def _append(self, rows: Any) -> None:
        first, end = self.count, self.count + len(rows)
        if end > self._room:
            self._room = 2 * end
            for name in ("starts", "ends", "instructions", "origins"):
                old = getattr(self, name)
                new = np.empty(self._room, old.dtype)
                new[:first] = old[:first]
                setattr(self, name, new)
        self.starts[first:end] = rows[:, X_START]
        self.ends[first:end] = rows[:, X_END]
        self.instructions[first:end] = rows[:, X_INSTRUCTION]
        self.origins[first:end] = rows[:, X_OPEN] & _BITS
        self.count = end

    # ---------------------------------------------------------------------------------------- what is referred to

    def _oldest(self) -> int:
        """Return the oldest execution that anything refers to."""
        m = self._heap.cells
        oldest = min((self._of_entry(e) for e in self._entries()), default=int(m[EXECUTION]))
        for space in self._spaces:
            for n in chain(m, m[space + SPACE_FIRST], N_NEXT):
                if not m[n + N_KIND] & STALE:
                    oldest = min(oldest, int(m[n + N_EXECUTION]))
        for n in self._needs():
            if not m[n + N_KIND] & STALE:
                oldest = min(oldest, int(m[n + N_EXECUTION]))
        return oldest

    def _of_entry(self, e: int) -> int:
        m = self._heap.cells
        return int(m[EXECUTION]) if m[e + E_OPERATION] == MARKER else int(m[e + E_EXECUTION])

    def _needs(self) -> Iterator[int]:
        """Yield what executions wait for: those of the operations that have not been executed."""
        m = self._heap.cells
        waiting = {self._of_entry(e) for e in self._entries()} if m[INTERLOCKED] else set()
        for x in waiting:
            yield from chain(m, m[at(m, x) + X_NEEDS], N_NEXT)

    def _entries(self) -> Iterator[int]:
        m = self._heap.cells
        for p in range(1, m[PIPES]):
            for head in (m[P_QUEUE + p], m[P_FLIGHT + p], m[P_ACTION + p]):
                yield from chain(m, head, E_NEXT)
            if m[P_CURRENT + p] != NONE:
                yield int(m[P_CURRENT + p])

    def _forget_ended(self) -> None:
        """Note of executions that have ended only that they have."""
        m = self._heap.cells
        spaces = (n for space in self._spaces for n in chain(m, m[space + SPACE_FIRST], N_NEXT))
        for n in [*spaces, *self._needs()]:
            if not m[n + N_KIND] & STALE and over(m, int(m[n + N_EXECUTION]), int(m[NOW])):
                m[n + N_KIND] |= STALE
                m[n + N_EXECUTION] = NONE
