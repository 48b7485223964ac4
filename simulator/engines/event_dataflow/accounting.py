"""Which cause every cycle of every pipe goes to, and what is reported in the end.

Rules beyond the obvious:

* Waiting is charged to the operation that waits, at the head of its queue; a pipe without one is `empty`.
* A cycle in which a vector pipe only finishes earlier work is `drain` up to the nominal end of that work and `bank
  conflict` or `port` after it, even if a flag is awaited or the queue is empty. A barrier or operand wait is
  charged as such: what it waits for is usually that very drain.
* Excess is `port` for as many cycles as one of the blocks waited while its port was held; the rest is `bank
  conflict`.
"""

from __future__ import annotations

from castsim.engines.account import PipeAccount
from castsim.engines.event_dataflow.records import Entry, ExecutionRecord
from castsim.execution.dataflow.naming import operation_name
from castsim.timing import Cause, Execution, Listener, OperationTiming

_PROGRESS_INTERVAL = 256
"""Operations between two calls of `Listener.progress`."""


class Account(PipeAccount):
    """The cycles of one pipe, which are among those of the operations that it spends them on."""

    def spend(self, cause: Cause, until: int, entry: Entry | None) -> None:
        """Charge the cycles up to `until` to `cause`, on behalf of `entry`."""
        cycles = self.charge(cause, until, None if entry is None else entry.index)
        # What the scalar unit spends on sending an operation is not among the operation's own cycles.
        if cycles and entry is not None and entry.causes is not None and entry.pipe == self.pipe:
            entry.causes[cause] = entry.causes.get(cause, 0) + cycles

    def spend_excess(self, due: int, until: int, held: int, entry: Entry) -> None:
        """Charge the cycles up to `until`: the first `held` after `due` to a held port, the rest to bank conflicts."""
        if held:
            self.spend(Cause.PORT, min(until, due + held), entry)
        self.spend(Cause.BANK_CONFLICT, until, entry)


class Ledger:
    """Executions and operations of the whole run; `latest` is the end of the last effect so far."""

    def __init__(self, listener: Listener | None, record_operations: bool) -> None:
        self.executions: list[ExecutionRecord] = []
        self.latest = 0
        self.finished = 0
        self.record_operations = record_operations
        self._operations: list[OperationTiming] = []
        self._listener = listener

    def finish(self, entry: Entry, end: int) -> None:
        """Settle that `entry` ends in cycle `end`."""
        entry.end = end
        entry.settle()
        entry.execution.close_one(end)
        self.latest = max(self.latest, end)
        self.finished += 1
        if entry.causes is not None:
            name = operation_name(entry.operation)
            self._operations.append(
                OperationTiming(entry.index, entry.execution_index, entry.pipe, name, entry.start, end, entry.causes)
            )
        if self._listener is not None and self.finished % _PROGRESS_INTERVAL == 0:
            self._listener.progress(self.latest, self.finished)

    def operations(self) -> tuple[OperationTiming, ...]:
        """Return the recorded operations in issue order."""
        return tuple(sorted(self._operations, key=lambda operation: operation.index))

    def executed(self) -> tuple[Execution, ...]:
        """Return the executions in program order."""
        return tuple(Execution(record.instruction, record.start, record.end) for record in self.executions)
