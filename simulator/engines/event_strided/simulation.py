"""One simulation of the strided-repeat mechanism."""

from __future__ import annotations

from castsim.engines.event_dataflow.simulation import DataflowSimulation
from castsim.engines.event_strided.ports import Ports
from castsim.engines.event_strided.vector import StridedUnit
from castsim.execution.tree import Tree
from castsim.targets.strided_repeat import StridedRepeatTarget
from castsim.timing import Listener, Observer


class EventSimulation(DataflowSimulation):
    """A run of `tree` on `target`, to be started once with `run`.

    Raises:
        IllegalError: the tree needs a pipe or a timing row that the target does not have.
    """

    def __init__(
        self,
        tree: Tree,
        target: StridedRepeatTarget,
        observer: Listener | None = None,
        *,
        record_operations: bool = True,
    ) -> None:
        ports = Ports(target.banks, observer if isinstance(observer, Observer) else None)
        super().__init__(tree, target, StridedUnit(target), ports, observer, record_operations=record_operations)
