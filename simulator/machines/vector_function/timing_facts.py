"""What a vector-function engine can time, and the facts that every function rests on."""

from __future__ import annotations

from castsim.isa.errors import IllegalError
from castsim.machines.vector_function.operations import INTEGER_DIVISION, LONG_DIVISION, Compute, VectorFunction
from castsim.machines.vector_function.profile import mnemonic
from castsim.machines.vector_function.scopes.operation import MicroFunction, check_scope
from castsim.machines.vector_function.trip_timing import Computing
from castsim.targets.vector_function import VectorFunctionTarget

FACTS = ("timing.launch", "timing.access", "timing.loops", "timing.chain", "timing.port", "banks")
"""What the processes of every function read."""


def check_function(operation: object, target: VectorFunctionTarget) -> None:
    """Refuse what is no vector function, and instructions for which the target has no latency.

    Raises:
        IllegalError: as said; names the latencies that the target has.
    """
    if isinstance(operation, MicroFunction):
        check_scope(operation, target)
        return
    if not isinstance(operation, VectorFunction):
        raise IllegalError(f"target '{target.name}' cannot execute a {type(operation).__name__}")
    for nest in operation.timed:
        for item in (*nest.trip, *nest.close):
            if isinstance(item, Computing) and not _is_timed(item, target):
                known = (*target.timing.chain.latency_cycles, *target.arithmetic)
                raise IllegalError(f"target '{target.name}' has no latency for '{mnemonic(item)}'", legal=known)


def _is_timed(item: Computing, target: VectorFunctionTarget) -> bool:
    if isinstance(item, Compute):
        return (
            item.mnemonic in (LONG_DIVISION, INTEGER_DIVISION) or target.latency(item.mnemonic, item.width) is not None
        )
    return mnemonic(item) in target.timing.chain.latency_cycles
