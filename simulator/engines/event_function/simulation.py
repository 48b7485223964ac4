"""One simulation of the vector-function mechanism."""

from __future__ import annotations

from castsim.engines.event_dataflow.simulation import DataflowSimulation
from castsim.engines.event_function.ports import GroupPorts
from castsim.engines.event_function.unit import FunctionUnit


class FunctionSimulation(DataflowSimulation):
    """A run of a tree on such a target."""

    VECTOR_UNIT = FunctionUnit
    PORTS = GroupPorts
