"""What the parts of one simulation share, and the order of events within a cycle."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from simpy import Environment, Event
from simpy.events import EventPriority

from castsim.engines.event_dataflow.accounting import Ledger
from castsim.engines.event_dataflow.flags import Flags
from castsim.engines.event_dataflow.ports import BufferPorts
from castsim.engines.event_dataflow.records import Entry, Steps
from castsim.targets.dataflow import DataflowTarget

if TYPE_CHECKING:
    from castsim.engines.event_dataflow.pipes import Pipe

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


class VectorUnit(Protocol):
    """What a mechanism adds: the work of the vector pipe."""

    def check(self, operation: object) -> None:
        """Refuse an operation of the vector pipe that the unit cannot execute.

        Raises:
            IllegalError: it is of another mechanism, or needs a timing row that the target does not have.
        """

    def run(self, pipe: Pipe, entry: Entry) -> Steps:
        """Execute the operation of `entry`; returns when the pipe can take the next one."""


@dataclass(slots=True, eq=False)
class Machine:
    """One run: clock, target, vector unit, buffer ports, flags, and the records of what happened."""

    env: Environment
    target: DataflowTarget
    vector: VectorUnit
    ports: BufferPorts
    flags: Flags
    ledger: Ledger
    facts: set[str] = field(default_factory=set)
