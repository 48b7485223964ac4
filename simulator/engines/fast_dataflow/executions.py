"""Rows of executions: the latest ones lie in a ring; those that nothing refers to any more are taken out of it."""

from __future__ import annotations

from simulator.engines.fast_dataflow.layout import (
    EXECUTION_MASK,
    EXECUTION_WIDTH,
    EXECUTIONS_AT,
    ISSUED,
    ONE_OPEN,
    X_END,
    X_OPEN,
    Cells,
)


def at(m: Cells, x: int) -> int:
    """Return where the row of an execution lies."""
    return m[EXECUTIONS_AT] + (x & m[EXECUTION_MASK]) * EXECUTION_WIDTH


def over(m: Cells, x: int, cycle: int) -> bool:
    """Whether an execution has ended by a cycle."""
    row = at(m, x)
    return m[row + X_OPEN] < ONE_OPEN and m[row + X_OPEN] & ISSUED != 0 and m[row + X_END] <= cycle


def known(m: Cells, x: int) -> bool:
    """Whether the end of an execution is certain."""
    row = at(m, x)
    return m[row + X_OPEN] < ONE_OPEN and m[row + X_OPEN] & ISSUED != 0
