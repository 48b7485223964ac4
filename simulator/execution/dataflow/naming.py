"""What reports call an operation."""

from __future__ import annotations

from castsim.execution.dataflow.operations import (
    Barrier,
    ControlWrite,
    Placeholder,
    ScalarAccess,
    ScalarWork,
    SetFlag,
    Transfer,
    WaitFlag,
)
from castsim.execution.tree import Operation


def operation_name(operation: Operation) -> str:
    """Return what reports call an operation."""
    match operation:
        case Transfer():
            return f"{'load' if operation.load else 'store'} {operation.argument}"
        case ControlWrite():
            return f"set {operation.register}"
        case ScalarWork() | Placeholder():
            return operation.kind
        case ScalarAccess():
            return operation.kind if operation.argument is None else f"{operation.kind} {operation.argument}"
        case SetFlag():
            return f"set_flag {operation.pipe} -> {operation.waiter} id {operation.event}"
        case WaitFlag():
            return f"wait_flag {operation.signaller} -> {operation.pipe} id {operation.event}"
        case Barrier():
            return f"barrier {operation.pipe}"
        case _:
            return str(getattr(operation, "name", type(operation).__name__))
