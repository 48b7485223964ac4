"""One simulation of the strided-repeat mechanism."""

from __future__ import annotations

from castsim.engines.event_dataflow.simulation import DataflowSimulation
from castsim.engines.event_strided.ports import Ports
from castsim.engines.event_strided.vector import StridedUnit


class EventSimulation(DataflowSimulation):
    """A run of a tree on such a target."""

    VECTOR_UNIT = StridedUnit
    PORTS = Ports
