"""Strided-repeat instructions as rows, and the banks of their buffer (docs/reference/a2a3.md section 8)."""

from __future__ import annotations

from castsim.engines.fast_dataflow.encoding import Encoder, UnitOperation
from castsim.engines.fast_dataflow.execution_rows import MachineMemory
from castsim.engines.fast_dataflow.state import MASK, VECTOR, PortsRow, VectorRow, WalkRow
from castsim.execution.pipe_operations import BLOCK
from castsim.execution.tree import Operation
from castsim.isa.dataclass import dataclass
from castsim.machines.strided.strided_instructions import (
    StridedInstruction,
    always_fills,
    changes_mask,
    check_vector,
    facts_of,
    pace_of,
    places_of_blocks,
    repeat_blocks,
    result_delay,
)
from castsim.targets.strided_repeat import StridedRepeatTarget


@dataclass(frozen=True, slots=True)
class StridedRows:
    """The vector unit of one target."""

    target: StridedRepeatTarget

    def set_up(self, memory: MachineMemory) -> int:
        """Store port and bank of every block in a machine, and their exclusions; return the bytes of a turn."""
        facts = self.target.banks
        reads, writes, places = places_of_blocks(facts)
        banks = facts.groups * facts.banks_per_group
        memory.machine.ports = PortsRow(
            period=len(places),
            banks=banks,
            exclusive_ports=int(facts.exclusive_ports),
            exclusive_banks=int(facts.exclusive_banks),
        )
        memory.append("port_of", reads)
        memory.append("port_of", writes)
        memory.append("bank_of", places)
        memory.take("port_free", 2 * facts.groups)
        memory.take("bank_free", 2 * banks)
        return len(places) * BLOCK

    def check(self, operation: object) -> None:
        """Reject operations other than vector instructions of this mechanism, and timing rows that the target lacks."""
        check_vector(operation, self.target)

    def encode(self, operation: Operation, addresses: tuple[int, ...], encoder: Encoder) -> UnitOperation:
        """Store an instruction, with these addresses, in the tables."""
        if changes_mask(operation, self.target):
            return UnitOperation(MASK, self.target.timing.vector_pipe.mask_change_cycles, ("timing.vector_pipe",))
        assert isinstance(operation, StridedInstruction)  # checked before the run
        pace = pace_of(self.target, operation.timing, operation.repeats)
        walks, period = [], encoder.memory.machine.ports.period
        for stream, address in zip((operation.destination, *operation.sources), addresses, strict=True):
            offsets = repeat_blocks(stream, operation.lanes, operation.mask)
            distances = tuple(offset // BLOCK % period for offset in offsets)
            walks.append(WalkRow(address, stream.step, encoder.integers(distances), len(distances)))
        vector = VectorRow(
            head=pace.head,
            interval=pace.interval,
            rest=pace.rest,
            lost=encoder.integers(pace.lost),
            tail=pace.tail,
            late=pace.late,
            delay=result_delay(pace.tail, pace.at_once),
            repeats=operation.repeats,
            always=int(always_fills(self.target)) or pace.always,
            sources=len(operation.sources),
            first_walk=encoder.memory.append("walks", walks),
        )
        return UnitOperation(VECTOR, encoder.memory.append("vectors", [vector]), facts_of(operation))
