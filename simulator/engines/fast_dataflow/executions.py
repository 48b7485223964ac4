"""Executions: the latest ones lie in a ring; those that nothing refers to any more are taken out of it."""

from __future__ import annotations

from castsim.engines.fast_dataflow.codes import ISSUED, ONE_OPEN
from castsim.engines.fast_dataflow.state import ExecutionRow, MachineState


def execution_of(m: MachineState, x: int) -> ExecutionRow:
    """Return the row of an execution."""
    return m.executions[x & m.execution_mask]


def over(m: MachineState, x: int, cycle: int) -> bool:
    """Whether an execution has ended by a cycle."""
    execution = m.executions[x & m.execution_mask]
    return execution.open < ONE_OPEN and execution.open & ISSUED != 0 and execution.end <= cycle


def known(m: MachineState, x: int) -> bool:
    """Whether the end of an execution is certain."""
    execution = m.executions[x & m.execution_mask]
    return execution.open < ONE_OPEN and execution.open & ISSUED != 0
