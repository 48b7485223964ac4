"""What the parts of one simulation share, and the order of events within a cycle."""

from __future__ import annotations

from dataclasses import dataclass, field

from simpy import Environment, Event
from simpy.events import EventPriority

from simulator.engines.event_strided.accounting import Ledger
from simulator.engines.event_strided.flags import Flags
from simulator.engines.event_strided.ports import Ports
from targets.strided_repeat import StridedRepeatTarget

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


@dataclass(slots=True, eq=False)
class Machine:
    """One run: clock, target, buffer ports, flags, and the records of what happened."""

    env: Environment
    target: StridedRepeatTarget
    ports: Ports
    flags: Flags
    ledger: Ledger
    facts: set[str] = field(default_factory=set)
