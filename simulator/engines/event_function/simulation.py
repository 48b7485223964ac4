"""One simulation of the vector-function mechanism."""

from __future__ import annotations

from castsim.engines.event_dataflow.simulation import DataflowSimulation
from castsim.engines.event_function.ports import GroupPorts
from castsim.engines.event_function.unit import FunctionUnit
from castsim.execution.tree import Tree
from castsim.targets.vector_function import VectorFunctionTarget
from castsim.timing import Listener, Observer


class FunctionSimulation(DataflowSimulation):
    """A run of `tree` on `target`, to be started once with `run`.

    Raises:
        IllegalError: the tree needs a pipe, or a function an instruction latency, that the target does not have.
    """

    def __init__(
        self,
        tree: Tree,
        target: VectorFunctionTarget,
        observer: Listener | None = None,
        *,
        record_operations: bool = True,
    ) -> None:
        ports = GroupPorts(target.banks, observer if isinstance(observer, Observer) else None)
        super().__init__(tree, target, FunctionUnit(target), ports, observer, record_operations=record_operations)
