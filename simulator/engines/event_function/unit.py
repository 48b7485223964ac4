"""The vector pipe of a vector-function chip: launches one function after the other."""

from __future__ import annotations

from castsim.engines.event_dataflow.pipes import PipeProcess
from castsim.engines.event_dataflow.records import Entry, Steps
from castsim.engines.event_function.front_end import FrontEnd
from castsim.execution.dataflow.timing import TICKS
from castsim.machines.vector_function.operations import VectorFunction
from castsim.machines.vector_function.scopes import MicroFunction, ScopeTiming
from castsim.machines.vector_function.timing import FunctionTicks, function_end
from castsim.machines.vector_function.timing_facts import FACTS, check_function
from castsim.targets.vector_function import VectorFunctionTarget
from castsim.timing import Cause


class FunctionUnit:
    """The vector pipe of one target. A function ends before the next one is launched."""

    def __init__(self, target: VectorFunctionTarget) -> None:
        self._target = target
        self._facts = FunctionTicks.of(target)

    def check(self, operation: object) -> None:
        """Reject what is not a vector function, and instructions for which the target has no latency."""
        check_function(operation, self._target)

    def run(self, pipe: PipeProcess, entry: Entry) -> Steps:
        """Launch a function; returns when it has ended."""
        env = pipe.machine.env
        function = entry.operation
        pipe.machine.facts.update(FACTS)
        # The published cycles of a cast count from here: they leave out the control writes.
        entry.begin(int(env.now))
        entry.execution.start_at(entry.start)
        if isinstance(function, MicroFunction):
            yield from self._pass(pipe, entry, function.timed(self._target))
            return
        assert isinstance(function, VectorFunction)  # checked before the run
        front_end = FrontEnd(pipe, entry, function, self._target, self._facts)
        stores = front_end.stores
        served = env.process(stores.serve())
        yield from front_end.launch()
        if served.is_alive:
            yield served
        cycle = function_end(stores.completed_at, front_end.now, self._facts.drain)
        for cause, held in stores.held.items():
            pipe.account.spend(cause, min(cycle, pipe.account.cursor + held // TICKS), entry)
        pipe.account.spend(Cause.DRAIN, cycle, entry)
        pipe.machine.ledger.finish(entry, cycle)
        yield env.timeout(cycle - int(env.now))

    def _pass(self, pipe: PipeProcess, entry: Entry, timing: ScopeTiming) -> Steps:
        """Let the time of a launch pass whose instructions have been placed."""
        pipe.machine.facts.update(timing.facts)
        for span in timing.spans:
            pipe.account.spend(span.cause, entry.start + span.until, entry)
        pipe.machine.ledger.finish(entry, entry.start + timing.cycles)
        yield pipe.machine.env.timeout(timing.cycles)
