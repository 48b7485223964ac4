"""The scalar unit: executes control in program order and sends everything else to the queues.

Its time depends on nothing but the flags and barriers that it waits for itself, so it runs ahead of the simulation's
clock, and only as far as some pipe needs it: otherwise the queues would come to hold the whole program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from castsim.engines.event_dataflow.accounting import Account
from castsim.engines.event_dataflow.pipes import DataflowRun, DrainMarker, PipeProcess, Wait
from castsim.engines.event_dataflow.records import Entry, ExecutionRecord
from castsim.engines.event_dataflow.scoreboard import Scoreboard
from castsim.execution.dataflow.operations import Barrier, Placeholder, ScalarAccess, ScalarWork, SetFlag, WaitFlag
from castsim.execution.dataflow.scalar_unit import cost_of
from castsim.execution.dataflow.survey import ALL_PIPES
from castsim.execution.tree import Operation, Tree, accesses, instances, operations
from castsim.timing import Cause, Observer, Watcher


class Issuer:
    """The scalar unit. `clock` is the cycle in which it starts its next operation."""

    def __init__(
        self,
        tree: Tree,
        machine: DataflowRun,
        pipes: Mapping[str, PipeProcess],
        observer: Observer | None,
        max_cycles: int,
    ) -> None:
        self.name = machine.target.pipes.scalar
        self.clock = 0
        self.issued = 0
        self.wait: Wait | None = None
        self.finished = False
        self.beyond: Entry | None = None
        """The operation that ran into the cycle limit."""
        self.account = Account(self.name, observer)
        self.watcher: Watcher | None = None
        """Who listens to the beginning of the run only: what follows is not issued."""
        self._machine = machine
        self._pipes = pipes
        self._remaining = sum(pipe.remaining for pipe in pipes.values())
        self._max_cycles = max_cycles
        self._demanding: set[str] = set()
        self._undrained = 0
        self._drained_at = 0
        self._costs: dict[object, tuple[int, Cause]] = {}
        self._entries = self._draw(tree)

    def demand(self, pipe: PipeProcess) -> None:
        """Go on until `pipe` has got something to do, or its flag."""
        if pipe.remaining or pipe.wait is not None:
            self._demanding.add(pipe.name)
        self.advance()

    def advance(self) -> None:
        """Go on while a pipe demands it, or nothing but scalar work is left."""
        while self._ready() and (self._demanding or not self._remaining):
            entry = next(self._entries, None)
            if entry is None:
                self.finished = True
                return
            self._issue(entry)

    def catch_up(self) -> bool:
        """Issue what the watcher listens to though no pipe demands it; return whether there was anything."""
        issued = False
        while self._ready():
            entry = next(self._entries, None)
            if entry is None:
                self.finished = True
                break
            self._issue(entry)
            issued = True
        return issued

    def pause(self, until: int) -> None:
        """Account for the cycles up to `until`, in which nothing more happens, and report."""
        if self.wait is None:
            self.account.spend(Cause.EMPTY, until, None)
        else:
            self.account.spend(Cause.BARRIER if self.wait.flag is None else Cause.FLAG_WAIT, until, self.wait.entry)
        self.account.close()

    def run_on(self, count: int) -> list[Operation]:
        """Issue up to `count` operations that no pipe demands; return as many that the scalar unit cannot reach.

        Only to explain a run that has failed: the machine would have issued them.
        """
        for _ in range(count):
            if self.wait is not None or self.beyond is not None:
                break
            entry = next(self._entries, None)
            if entry is None:
                break
            self._issue(entry)
        return [entry.operation for entry in islice(self._entries, count)]

    def _draw(self, tree: Tree) -> Iterator[Entry]:
        """Yield the operations of the program in order."""
        ledger = self._machine.ledger
        scoreboard = Scoreboard(tree) if tree.interlocked else None
        index = 0
        for number, (lowered, deltas) in enumerate(instances(tree)):
            execution = ExecutionRecord(instruction=lowered.instruction, start=self.clock, end=self.clock)
            ledger.executions.append(execution)
            if scoreboard is not None:
                touched = accesses(lowered, deltas)
                execution.needs = scoreboard.enter(execution, touched, int(self._machine.env.now))
            for operation in operations(lowered, deltas):
                execution.open += 1
                yield Entry(
                    operation=operation,
                    pipe=self.name if operation.pipe == ALL_PIPES else operation.pipe,
                    index=index,
                    execution=execution,
                    execution_index=number,
                    causes={} if ledger.record_operations else None,
                )
                index += 1
            execution.close_issue()

    def _ready(self) -> bool:
        """Return whether it can go on, and has a listener."""
        until = None if self.watcher is None else self.watcher.until
        return self.wait is None and self.beyond is None and (until is None or self.clock < until)

    def _issue(self, entry: Entry) -> None:
        self.issued += 1
        entry.start = self.clock
        cycles, cause = self._cost(entry.operation)
        self.clock += cycles
        self.account.spend(cause, self.clock, entry)
        if self.clock > self._max_cycles:
            self.beyond = entry
        elif entry.pipe == self.name:
            self._execute(entry)
        else:
            entry.arrival = self.clock
            pipe = self._pipes[entry.pipe]
            pipe.remaining -= 1
            self._remaining -= 1
            if pipe.wait is None:  # else it wants a flag of the scalar unit
                self._demanding.discard(entry.pipe)
            pipe.push(entry)

    def _cost(self, operation: Operation) -> tuple[int, Cause]:
        """Return the cycles that the scalar unit itself takes for an operation: all of a kind take the same."""
        kind: object = operation.kind if isinstance(operation, ScalarWork | ScalarAccess) else type(operation)
        if isinstance(operation, Placeholder):
            kind = (Placeholder, operation.pipe, operation.cycles)
        known = self._costs.get(kind)
        if known is None:
            cycles, cause, facts = cost_of(operation, self._machine.target)
            self._machine.facts.update(facts)
            known = self._costs[kind] = (cycles, cause)
        return known

    def _execute(self, entry: Entry) -> None:
        """Do what an operation of the scalar unit does once its cycles are spent."""
        operation = entry.operation
        flags = self._machine.flags
        match operation:
            case SetFlag():
                if flags.fire((operation.pipe, operation.waiter, operation.event), self.clock):
                    self._demanding.discard(operation.waiter)
                self._machine.ledger.finish(entry, self.clock)
            case WaitFlag():
                key = (operation.signaller, operation.pipe, operation.event)
                self.wait = Wait(entry, flag=operation)
                cycle = flags.take(key)
                if cycle is None:
                    flags.wait(key, self._signalled)
                else:
                    self._resume(Cause.FLAG_WAIT, cycle)
            case Barrier(pipe) if pipe == ALL_PIPES:
                self.wait = Wait(entry)
                self._undrained = len(self._pipes)
                for name in self._pipes:
                    self._pipes[name].push(DrainMarker(self._drained))
            case _:
                self._machine.ledger.finish(entry, self.clock)

    def _signalled(self, cycle: int) -> None:
        self._resume(Cause.FLAG_WAIT, cycle)
        self.advance()

    def _drained(self, cycle: int) -> None:
        self._drained_at = max(self._drained_at, cycle)
        self._undrained -= 1
        if self._undrained == 0:
            self._resume(Cause.BARRIER, self._drained_at)
            self.advance()

    def _resume(self, cause: Cause, cycle: int) -> None:
        """End the wait in `cycle`, or at once if that is past."""
        if self.wait is None:
            return
        entry, self.wait = self.wait.entry, None
        self.clock = max(self.clock, cycle)
        self.account.spend(cause, self.clock, entry)
        self._machine.ledger.finish(entry, self.clock)
