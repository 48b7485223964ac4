"""From the columns of a finished machine to the timing that every engine reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simulator.engines.event_dataflow.naming import operation_name
from simulator.engines.fast_dataflow.encoding import Encoder
from simulator.engines.fast_dataflow.execution_rows import ExecutionRows
from simulator.engines.fast_dataflow.layout import (
    BEGUN,
    CAUSES,
    E_CAUSES,
    E_END,
    E_EXECUTION,
    E_INDEX,
    E_OPERATION,
    E_START,
    INDEX,
    NONE,
    O_NUMBER,
    O_PIPE,
    SCALAR_END,
    SCALAR_PIPE,
    WIDTH,
)
from simulator.engines.fast_dataflow.records import Jump, Records, Shift
from simulator.timing import Cause, Execution, OperationTiming


def causes_of(cells: Sequence[int], place: int) -> Mapping[Cause, int]:
    """Return the cycles by cause that lie from `place` on, without those that cost nothing."""
    return {cause: int(cells[place + k]) for k, cause in enumerate(CAUSES) if cells[place + k]}


def executions(rows: ExecutionRows, jumps: Sequence[Jump]) -> Sequence[Execution]:
    """Return all executions in program order."""

    def make(x: int, shift: Shift, _: int) -> Execution:
        origin = rows.origins[x]
        start = int(rows.starts[x]) + (shift.pipes if origin & BEGUN else shift.scalar)
        end = int(rows.ends[x]) + (shift.scalar if origin & SCALAR_END else shift.pipes)
        return Execution(int(rows.instructions[x]), start, end)

    return Records(rows.count, jumps, make)


def operations(encoder: Encoder, jumps: Sequence[Jump]) -> Sequence[OperationTiming]:
    """Return all recorded operations in issue order."""
    m = encoder.heap.cells
    entries = [NONE] * int(m[INDEX])
    for first, count in encoder.heap.entries:
        for e in range(first, first + count * (E_CAUSES + WIDTH), E_CAUSES + WIDTH):
            if m[e + E_INDEX] != NONE:
                entries[m[e + E_INDEX]] = e
    names = [operation_name(operation) for operation in encoder.operations]

    def make(index: int, shift: Shift, number: int) -> OperationTiming:
        e = entries[index]
        row = m[e + E_OPERATION]
        p = m[row + O_PIPE]
        later = shift.scalar if p == SCALAR_PIPE else shift.pipes
        return OperationTiming(
            index=number,
            execution=int(m[e + E_EXECUTION]) + shift.executions,
            pipe=encoder.pipes[p],
            name=names[m[row + O_NUMBER]],
            start=int(m[e + E_START]) + later,
            end=int(m[e + E_END]) + later,
            causes=causes_of(m, e + E_CAUSES),
        )

    return Records(len(entries), jumps, make)
