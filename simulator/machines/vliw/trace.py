"""Building the operation tree while a program runs: loops stay loops where their trips issue the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import is_

from castsim.execution.interpreter.rerolling import address_steps
from castsim.execution.tree import Block, Deltas, Loop, Node


@dataclass(slots=True)
class _Frame:
    """A loop under way, or the program: nodes so far, and the run of equal trips at their end.

    Only the first and the last trip of a run are held; `steps` is how addresses move from trip to trip, `still` that
    they do not.
    """

    done: list[Node] = field(default_factory=list)
    trip: list[Node] = field(default_factory=list)
    first: Block | None = None
    last: Block | None = None
    steps: tuple[Deltas, ...] | None = None
    still: bool = False
    count: int = 0

    def end_trip(self) -> None:
        """Close a trip: another one of the run, or the first of a new run."""
        items, last = self.trip, self.last
        self.trip = []
        if self.still and last is not None and len(items) == len(last.items) and all(map(is_, items, last.items)):
            self.count += 1
            return
        trip = Block(tuple(items))
        found = None if last is None else address_steps(last, trip)
        if found is not None and self.steps in (None, found):
            if self.steps is None:
                self.still = not any(map(any, found))
            self.steps, self.last, self.count = found, trip, self.count + 1
            return
        self.flush()
        self.first = self.last = trip
        self.count = 1

    def flush(self) -> None:
        """Move the run of trips to the finished nodes."""
        if self.first is not None:
            if self.steps is not None:
                self.done.append(Loop(self.count, self.first, self.steps))
            else:
                self.done.extend(self.first.items)
        self.first, self.last, self.steps, self.still, self.count = None, None, None, False, 0


class Trace:
    """Receives what the machine issues, in order."""

    def __init__(self) -> None:
        self._frames = [_Frame()]

    def add(self, node: Node) -> None:
        """Record one issued bundle."""
        self._frames[-1].trip.append(node)

    def open_loop(self) -> None:
        """The first trip of a hardware loop begins."""
        self._frames.append(_Frame())

    def end_trip(self) -> None:
        """A trip of the innermost loop has ended."""
        self._frames[-1].end_trip()

    @property
    def stands_still(self) -> bool:
        """Whether the last trip of the innermost loop was the one before it again, at the same addresses."""
        return self._frames[-1].still

    def repeat(self, times: int) -> None:
        """Record more trips of the innermost loop that are the last one again."""
        self._frames[-1].count += times

    def close_loop(self) -> None:
        """The innermost loop has ended."""
        frame = self._frames.pop()
        frame.flush()
        self._frames[-1].trip.extend(frame.done)

    def finish(self) -> Block:
        """Return everything; loops that the program left by its end are closed."""
        while len(self._frames) > 1:
            self._frames[-1].end_trip()
            self.close_loop()
        return Block(tuple(self._frames[0].trip))
