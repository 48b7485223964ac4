"""From the columns of a finished machine to the timing that every engine reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from castsim.engines.fast_dataflow.codes import BEGUN, CAUSES, NONE, SCALAR_END, SCALAR_PIPE, WIDTH
from castsim.engines.fast_dataflow.encoding import Encoder
from castsim.engines.fast_dataflow.execution_rows import ExecutionRows
from castsim.engines.fast_dataflow.records import Records, RecordShift, Stretch
from castsim.execution.dataflow.naming import operation_name
from castsim.timing import Cause, Execution, OperationTiming


def causes_of(cells: Sequence[int], place: int) -> Mapping[Cause, int]:
    """Return the cycles by cause that lie from `place` on, without those that cost nothing."""
    return {cause: cells[place + k] for k, cause in enumerate(CAUSES) if cells[place + k]}


def executions(rows: ExecutionRows, jumps: Sequence[Stretch]) -> Sequence[Execution]:
    """Return all executions in program order."""

    def make(x: int, shift: RecordShift, _: int) -> Execution:
        origin = rows.origins[x]
        if origin & BEGUN:
            start = int(rows.starts[x]) + shift.pipes
        else:
            opened, later = shift.opened or (x, shift.scalar)
            start = int(rows.starts[opened]) + later
        end = int(rows.ends[x]) + (shift.scalar if origin & SCALAR_END else shift.pipes)
        return Execution(int(rows.instructions[x]), start, end)

    return Records(rows.count, jumps, make)


def operations(encoder: Encoder, jumps: Sequence[Stretch]) -> Sequence[OperationTiming]:
    """Return all recorded operations in issue order."""
    m = encoder.memory.machine
    entries = [NONE] * m.issuer.index
    for e in range(encoder.memory.size("entries")):
        if m.entries[e].index != NONE:
            entries[m.entries[e].index] = e
    names = [operation_name(operation) for operation in encoder.operations]

    def make(index: int, shift: RecordShift, number: int) -> OperationTiming:
        entry = m.entries[entries[index]]
        operation = m.operations[entry.operation]
        later = shift.scalar if operation.pipe == SCALAR_PIPE else shift.pipes
        return OperationTiming(
            index=number,
            execution=entry.execution + shift.executions,
            pipe=encoder.pipes[operation.pipe],
            name=names[operation.number],
            start=entry.start + later,
            end=entry.end + later,
            causes=causes_of(m.entry_causes, entries[index] * WIDTH),
        )

    return Records(len(entries), jumps, make)
