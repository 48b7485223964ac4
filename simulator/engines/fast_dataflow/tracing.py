"""Telling a watcher what every cycle of every pipe goes to, as `event_dataflow` does, every trip of every loop.

The machine writes segments into a table and stops when that is full; here they are passed on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from castsim.engines.fast_dataflow.codes import (
    AWAITING_FLAG,
    AWAITING_OPERANDS,
    BARRIER,
    CAUSES,
    DONE,
    EMPTY,
    FLAG_WAIT,
    LIMIT,
    NEVER,
    NONE,
    OPERAND_WAIT,
    SCALAR_AWAITS_FLAG,
    SCALAR_PIPE,
    SCALAR_RUNS,
)
from castsim.engines.fast_dataflow.encoding import Encoder
from castsim.engines.fast_dataflow.pipes import close_segment, rest, spend
from castsim.engines.fast_dataflow.simulation import FastSimulation, Machine
from castsim.engines.fast_dataflow.state import MachineState, PipeRow
from castsim.execution.tree import Tree
from castsim.targets.loader import TileTarget
from castsim.timing import Watcher

_ROOM = 1 << 12
"""Segments that are passed on at once."""
_OF_A_PIPE = 16
"""Segments that a pipe completes at most between two looks at the table, those of a placed function left out."""
_FIRST_STEP = 64
"""Cycles by which time goes on, at first, where a pipe has yet to finish what it is about."""


def tell_tiles(tree: Tree, target: TileTarget, watcher: Watcher) -> int:
    """Tell a watcher of the segments before the cycle until which it listens; return how many operations were issued.

    Raises:
        IllegalError: as `FastSimulation`.
    """
    encoder, count = FastSimulation(tree, target).at_every_step()
    return Telling(encoder, watcher, count).run()


class Telling(Machine):
    """One run that goes no further than somebody listens."""

    def __init__(self, encoder: Encoder, watcher: Watcher, count: int) -> None:
        super().__init__(encoder, watcher, count, skip=False, patient=False)
        self._watcher = watcher
        self._memory.machine.telling = 1
        self._make_room()

    def run(self) -> int:
        """Simulate; return how many operations were issued.

        Pipes that work then finish what they are about. What waits goes on waiting for what has not happened yet, so
        the rest of its cycles is known.
        """
        self._memory.machine.maximum = self._until()
        self._go_on()
        # What the watcher listens to is issued though no pipe demands it.
        self._memory.machine.issuer.eager = 1
        code, step = self._go_on(), _FIRST_STEP
        while code != DONE and self._is_behind():
            self._memory.machine.maximum = self._memory.machine.now + step
            code, step = self._go_on(), 2 * step
        self._end(code)
        return self._memory.machine.issuer.index

    def _go_on(self) -> int:
        """Run until nothing is left to do before the maximum; return which of the two it was."""
        self._listen()
        code = self._step()
        while code not in (DONE, LIMIT):
            self._refill(code)
            self._make_room()
            self._pass_on()
            self._listen()
            code = self._step()
        return code

    def _until(self) -> int:
        return NEVER if self._watcher.until is None else self._watcher.until

    def _listen(self) -> None:
        """Go no further than the watcher listens by now."""
        m, until = self._memory.machine, self._until()
        if until < m.issuer.until:
            m.issuer.until = until
            m.maximum = min(m.maximum, max(until, m.now))

    def _make_room(self) -> None:
        """Ensure that there is room for all segments until the machine looks at the table again."""
        memory, m = self._memory, self._memory.machine
        margin = _OF_A_PIPE * (m.pipe_count + 1) + self._encoder.room.get("segments", 0)
        missing = _ROOM + margin - memory.size("segments")
        if missing > 0:
            memory.take("segments", missing)
        m.segment_most = memory.size("segments") - margin

    def _pass_on(self) -> None:
        """Tell of the segments that are complete."""
        m, names = self._memory.machine, self._encoder.pipes
        columns: dict[str, Any] = self._memory.columns("segments", 0, m.segment_count)
        m.segment_count = 0
        for p, start, end, cause, index in zip(*(np.asarray(each).tolist() for each in columns.values()), strict=True):
            self._watcher.segment(names[p], start, end, CAUSES[cause], None if index == NONE else index)

    def _is_behind(self) -> bool:
        """Whether a pipe is about something that it finishes later than it has told of."""
        m, until = self._memory.machine, self._until()
        return any(_works(m.pipes[p]) and m.accounts[p].cursor < until for p in range(1, m.pipe_count))

    def _end(self, code: int) -> None:
        """Account for the cycles in which nothing more happens to a pipe that does not work, and tell of all."""
        m, end = self._memory.machine, self._until()
        if code == DONE:
            end = min(end, max(m.latest, m.issuer.clock))
        _rest_scalar_unit(m, end)
        for p in range(1, m.pipe_count):
            pipe = m.pipes[p]
            pipe.local = m.now + 1  # what is known now is certain
            if pipe.current != NONE and pipe.status == AWAITING_OPERANDS:
                rest(m, p, OPERAND_WAIT, end, pipe.current)
            elif pipe.current != NONE and pipe.status == AWAITING_FLAG:
                rest(m, p, FLAG_WAIT, end, pipe.current)
            else:
                rest(m, p, EMPTY, end, NONE)
        self._make_room()
        for p in range(m.pipe_count):
            close_segment(m, p)
        self._pass_on()


def _works(pipe: PipeRow) -> bool:
    """Whether a pipe is about an operation that does not wait for another pipe: one that ends soon."""
    waits = pipe.status == AWAITING_OPERANDS or (pipe.status == AWAITING_FLAG and pipe.wake == NEVER)
    return pipe.current != NONE and not waits


def _rest_scalar_unit(m: MachineState, end: int) -> None:
    issuer = m.issuer
    if issuer.wait == SCALAR_RUNS:
        spend(m, SCALAR_PIPE, EMPTY, end, NONE)
    else:
        spend(m, SCALAR_PIPE, FLAG_WAIT if issuer.wait == SCALAR_AWAITS_FLAG else BARRIER, end, issuer.waiting)
