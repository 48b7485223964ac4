"""Vector functions as rows, and the groups of their buffer (docs/reference/a5.md sections 6 to 8)."""

from __future__ import annotations

from castsim.engines.fast_dataflow.encoding import Encoder, UnitOperation
from castsim.engines.fast_dataflow.execution_rows import MachineMemory
from castsim.engines.fast_dataflow.state import CAUSES, FUNCTION, NONE, FunctionRow, PortsRow
from castsim.execution.tree import Operation
from castsim.isa.dataclass import dataclass, replace
from castsim.machines.vector_function.function_launches import FACTS, MicroFunction, check_function, timed, turn_bytes
from castsim.machines.vector_function.function_operations import VectorFunction
from castsim.targets.vector_function import VectorFunctionTarget


@dataclass(frozen=True, slots=True)
class FunctionRows:
    """The vector unit of one target."""

    target: VectorFunctionTarget

    def set_up(self, memory: MachineMemory) -> int:
        """Store the groups of the buffer in a machine; return the bytes of a turn around the banks."""
        facts = self.target.banks
        memory.machine.ports = PortsRow(
            period=facts.groups,
            grouped=1,
            reads_per_group=facts.reads_per_group,
            reads_beside_write=facts.reads_beside_write,
            writes_per_group=facts.writes_per_group,
        )
        memory.take("port_free", facts.groups, NONE)
        memory.take("bank_free", facts.groups)
        return turn_bytes(self.target)

    def check(self, operation: object) -> None:
        """Reject operations other than vector functions, and instructions for which the target has no latency."""
        check_function(operation, self.target)

    def encode(self, operation: Operation, addresses: tuple[int, ...], encoder: Encoder) -> UnitOperation:
        """Store a function, with these addresses, in the tables."""
        assert isinstance(operation, VectorFunction | MicroFunction)  # checked before the run
        if isinstance(operation, VectorFunction):
            destination, source, *operands = addresses
            operation = replace(operation, destination=destination, source=source, operands=tuple(operands))
        timing = timed(operation, self.target)
        spans = tuple(number for span in timing.spans for number in (CAUSES.index(span.cause), span.until))
        encoder.most_spans = max(encoder.most_spans, len(timing.spans))
        function = FunctionRow(
            first_span=encoder.integers(spans),
            spans=len(timing.spans),
            first_access=encoder.integers(timing.accesses),
            accesses=len(timing.accesses),
        )
        return UnitOperation(FUNCTION, encoder.memory.append("functions", [function]), (*FACTS, *timing.facts))
