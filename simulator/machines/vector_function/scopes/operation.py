"""A launch of a micro program as an operation of the vector pipe."""

from __future__ import annotations

from dataclasses import dataclass

from castsim.execution.dataflow.operations import Unaddressed
from castsim.isa.errors import IllegalError
from castsim.machines.vector_function.scopes.facts import ScopeFacts
from castsim.machines.vector_function.scopes.scope import Kind, Scope, issues
from castsim.targets.vector_function import VectorFunctionTarget


@dataclass(frozen=True, slots=True, eq=False)
class MicroFunction(Unaddressed):
    """One launch: what its instructions issued, addresses and all; it meets no transfer at the ports of the buffer."""

    name: str
    scope: Scope
    pipe: str


def check_scope(function: MicroFunction, target: VectorFunctionTarget) -> None:
    """Refuse instructions for which the target has no latency.

    Raises:
        IllegalError: as said; names the latencies that the target has.
    """
    facts = ScopeFacts(target)
    for issue in issues(function.scope.body):
        instruction = issue.instruction
        if instruction.kind is Kind.COMPUTE and not facts.has(instruction.mnemonic, instruction.width):
            known = (*target.timing.chain.latency_cycles, *target.arithmetic)
            raise IllegalError(f"target '{target.name}' has no latency for '{instruction.mnemonic}'", legal=known)
