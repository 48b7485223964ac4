"""A launch of a micro program as an operation of the vector pipe."""

from __future__ import annotations

from dataclasses import dataclass, field

from castsim.execution.dataflow.operations import Unaddressed
from castsim.isa.errors import IllegalError
from castsim.machines.vector_function.scopes.account import ScopeTiming
from castsim.machines.vector_function.scopes.facts import ScopeFacts
from castsim.machines.vector_function.scopes.scope import Kind, Scope, issues
from castsim.machines.vector_function.scopes.timing import time_scope
from castsim.targets.vector_function import VectorFunctionTarget


@dataclass(frozen=True, slots=True, eq=False)
class MicroFunction(Unaddressed):
    """One launch: what its instructions issued, addresses and all; it meets no transfer at the ports of the buffer."""

    name: str
    scope: Scope
    pipe: str
    _timed: list[tuple[VectorFunctionTarget, ScopeTiming]] = field(default_factory=list, repr=False)

    def timed(self, target: VectorFunctionTarget) -> ScopeTiming:
        """Return its time; of the target that asked last it is remembered."""
        if not self._timed or self._timed[0][0] is not target:
            self._timed[:] = [(target, time_scope(self.scope, target))]
        return self._timed[0][1]


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
