"""One simulation: the machine put together, run, and reported."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import ClassVar

from simpy import Environment

from castsim.engines.event_dataflow import failure
from castsim.engines.event_dataflow.accounting import Ledger
from castsim.engines.event_dataflow.flags import Flags
from castsim.engines.event_dataflow.issue import Issuer
from castsim.engines.event_dataflow.pipes import DataflowRun, PipeProcess, VectorUnit
from castsim.engines.event_dataflow.ports import BufferPorts
from castsim.engines.event_dataflow.process import serve
from castsim.execution.dataflow.survey import Survey
from castsim.execution.tree import Tree
from castsim.targets.dataflow import DataflowTarget
from castsim.timing import Cause, IgnoresBlocks, Listener, Observer, Timing, Watcher


class DataflowSimulation:
    """A run of `tree` on `target`, to be started once with `run`; a mechanism adds its `VECTOR_UNIT` and `PORTS`.

    Raises:
        IllegalError: the tree needs a pipe, a timing row or an instruction latency that the target does not have.
    """

    VECTOR_UNIT: ClassVar[Callable[..., VectorUnit]]
    PORTS: ClassVar[Callable[..., BufferPorts]]

    def __init__(
        self, tree: Tree, target: DataflowTarget, observer: Listener | None = None, *, record_operations: bool = True
    ) -> None:
        survey, vector = Survey(tree), type(self).VECTOR_UNIT(target)
        survey.check(target, vector.check)
        self._tree = tree
        self._listener = observer
        details = self._observer = observer if isinstance(observer, Observer) else None
        self._machine = DataflowRun(
            env=Environment(),
            target=target,
            vector=vector,
            ports=type(self).PORTS(target.banks, None if isinstance(details, IgnoresBlocks) else details),
            flags=Flags(),
            ledger=Ledger(observer, record_operations),
        )
        counts = survey.operations
        working = (target.pipes.vector, target.pipes.load, target.pipes.store)
        touched = [name for name in target.pipes.others if counts[name]]
        self._pipes = {name: PipeProcess(name, self._machine, counts[name], details) for name in (*working, *touched)}

    def hold_port(self, group: int, write: bool, start: int, cycles: int) -> None:
        """Keep one port of bank group `group` busy in the cycles [start, start + cycles), as if something else used it.

        Raises:
            ValueError: there is no such group.
        """
        if not 0 <= group < self._machine.ports.groups:
            raise ValueError(f"bank group {group} is not in 0..{self._machine.ports.groups - 1}")
        self._machine.ports.hold(group, write, start, cycles)

    def run(self, max_cycles: int) -> Timing:
        """Simulate to the end and return cycles and causes.

        Raises:
            EngineError: deadlock, or the end lies beyond `max_cycles`.
        """
        machine = self._machine
        issuer = self._start(max_cycles)
        while issuer.beyond is None and machine.env.peek() <= max_cycles:
            machine.env.step()
        total = max(machine.ledger.latest, issuer.clock)
        idle = machine.env.peek() == float("inf")
        if issuer.beyond is None and idle:
            stuck = failure.deadlock(self._tree, issuer, self._pipes)
            if stuck is not None:
                raise stuck
        if issuer.beyond is not None or not idle or total > max_cycles:
            raise failure.limit(self._tree, issuer, self._pipes, max_cycles)
        return self._timing(issuer, total)

    def watch(self, watcher: Watcher) -> int:
        """Simulate as far as the watcher listens; return how many operations were issued.

        Pipes that work then finish what they are about. What waits goes on waiting for what has not happened yet, so
        the rest of its cycles is known.
        """
        env = self._machine.env
        issuer = self._start(sys.maxsize)
        issuer.watcher = watcher
        again = True
        while again:
            while env.peek() <= _last(watcher):
                env.step()
            again = issuer.catch_up()
        while env.peek() < float("inf") and any(
            pipe.working and pipe.account.cursor < _last(watcher) for pipe in self._pipes.values()
        ):
            env.step()
        end = _last(watcher)
        if env.peek() == float("inf"):
            end = min(end, max(self._machine.ledger.latest, issuer.clock))
        issuer.pause(end)
        for pipe in self._pipes.values():
            pipe.pause(end)
        return issuer.issued

    def _start(self, max_cycles: int) -> Issuer:
        """Set the pipes going."""
        issuer = Issuer(self._tree, self._machine, self._pipes, self._observer, max_cycles)
        for pipe in self._pipes.values():
            self._machine.env.process(serve(pipe, issuer))
        return issuer

    def _timing(self, issuer: Issuer, total: int) -> Timing:
        machine = self._machine
        issuer.account.spend(Cause.EMPTY, total, None)
        pipes = {issuer.name: issuer.account.close()}
        for name, pipe in self._pipes.items():
            pipe.rest(Cause.EMPTY, total, None)
            pipes[name] = pipe.account.close()
        if self._listener is not None:
            self._listener.progress(total, machine.ledger.finished)
        return Timing(total, pipes, machine.ledger.executed(), machine.ledger.operations(), frozenset(machine.facts))


def _last(watcher: Watcher) -> int:
    """Return the cycle until which the watcher listens; no run has as many cycles as stand for its end."""
    return sys.maxsize if watcher.until is None else watcher.until
