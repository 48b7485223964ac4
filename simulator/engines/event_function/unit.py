"""The vector pipe of a vector-function chip: launches one function after the other."""

from __future__ import annotations

from simulator.engines.event_dataflow.pipes import Pipe
from simulator.engines.event_dataflow.records import Entry, Steps
from simulator.engines.event_function.front_end import FrontEnd
from simulator.engines.event_function.legality import FACTS, check_function
from simulator.engines.event_function.shape import TICKS, ticks
from simulator.timing import Cause
from simulator.vector_function.operations import VectorFunction
from targets.vector_function import VectorFunctionTarget


class FunctionUnit:
    """The vector pipe of one target. A function ends before the next one is launched."""

    def __init__(self, target: VectorFunctionTarget) -> None:
        self._target = target

    def check(self, operation: object) -> None:
        """Refuse what is no vector function, and instructions for which the target has no latency."""
        check_function(operation, self._target)

    def run(self, pipe: Pipe, entry: Entry) -> Steps:
        """Launch a function; returns when it has ended."""
        env, timing = pipe.machine.env, self._target.timing
        function = entry.operation
        assert isinstance(function, VectorFunction)  # checked before the run
        pipe.machine.facts.update(FACTS)
        # The published cycles of a cast count from here: they leave out the control writes.
        entry.begin(int(env.now))
        entry.execution.start_at(entry.start)
        front_end = FrontEnd(pipe, entry, function, self._target)
        stores = front_end.stores
        served = env.process(stores.serve())
        yield from front_end.launch()
        if served.is_alive:
            yield served
        end = max(stores.completed_at, front_end.now) + ticks(timing.launch.drain_cycles)
        # Rounded once, half up.
        cycle = (end + TICKS // 2) // TICKS
        for cause, held in stores.held.items():
            pipe.account.spend(cause, min(cycle, pipe.account.cursor + held // TICKS), entry)
        pipe.account.spend(Cause.DRAIN, cycle, entry)
        pipe.machine.ledger.finish(entry, cycle)
        yield env.timeout(cycle - int(env.now))
