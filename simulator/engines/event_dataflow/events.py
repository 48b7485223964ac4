"""The order of events within a cycle."""

from __future__ import annotations

from simpy import Environment, Event
from simpy.events import EventPriority

_AFTER_CONTROL = 2
"""First event priority of buffer requests: simpy itself uses 0 and 1, which stay with control."""


class At(Event):
    """An event `delay` cycles from now, in which operation `index` asks for blocks.

    Among the requests of one cycle the lowest operation index goes first.
    """

    def __init__(self, env: Environment, delay: int, index: int) -> None:
        # As simpy's own Timeout does it, but with a priority, which Timeout does not take.
        self.env = env
        self.callbacks = []
        self._ok = True
        self._value = None
        env.schedule(self, EventPriority(_AFTER_CONTROL + index), delay)
