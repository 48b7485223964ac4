"""Executions: the latest ones lie in a ring; those that nothing refers to any more are taken out of it."""

from __future__ import annotations

from castsim.engines.fast_dataflow.codes import ISSUED, ONE_OPEN
from castsim.engines.fast_dataflow.state import ExecutionRecord, Machine


def execution_of(m: Machine, x: int) -> ExecutionRecord:
    """Return the row of an execution."""
    return m.executions[x & m.execution_mask]


def over(m: Machine, x: int, cycle: int) -> bool:
    """Whether an execution has ended by a cycle."""
    execution = m.executions[x & m.execution_mask]
    return execution.open < ONE_OPEN and execution.open & ISSUED != 0 and execution.end <= cycle


def known(m: Machine, x: int) -> bool:
    """Whether the end of an execution is certain."""
    execution = m.executions[x & m.execution_mask]
    return execution.open < ONE_OPEN and execution.open & ISSUED != 0
