"""Strided-repeat instructions as rows, and the banks of their buffer (docs/reference/a2a3.md section 8)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from castsim.engines.fast_dataflow.encoding import Banking, RowTables, UnitOperation
from castsim.engines.fast_dataflow.state import VectorRow, WalkRow
from castsim.engines.fast_dataflow.state_rows import MASK, VECTOR
from castsim.execution.pipe_operations import BLOCK
from castsim.execution.tree import Operation
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
from castsim.targets.strided_repeat import StridedBufferPorts, StridedRepeatTarget


@dataclass(frozen=True, slots=True)
class StridedRows:
    """The vector unit of one target."""

    target: StridedRepeatTarget
    banking: Banking = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "banking", _banking(self.target.banks))

    def check(self, operation: object) -> None:
        """Reject what is not a vector instruction of this mechanism, and timing rows that the target does not have."""
        check_vector(operation, self.target)

    def encode(self, operation: Operation, addresses: tuple[int, ...], places: RowTables) -> UnitOperation:
        """Put an instruction, with these addresses, into the tables."""
        if changes_mask(operation, self.target):
            return UnitOperation(MASK, self.target.timing.vector_pipe.mask_change_cycles, ("timing.vector_pipe",))
        assert isinstance(operation, StridedInstruction)  # checked before the run
        pace = pace_of(self.target, operation.timing, operation.repeats)
        walks = []
        for stream, address in zip((operation.destination, *operation.sources), addresses, strict=True):
            offsets = repeat_blocks(stream, operation.lanes, operation.mask)
            blocks = tuple(offset // BLOCK for offset in offsets)
            walks.append(WalkRow(address, stream.step, places.distances(blocks), len(blocks)))
        vector = VectorRow(
            head=pace.head,
            interval=pace.interval,
            rest=pace.rest,
            lost=places.integers(pace.lost),
            tail=pace.tail,
            late=pace.late,
            delay=result_delay(pace.tail, pace.at_once),
            repeats=operation.repeats,
            always=int(always_fills(self.target)) or pace.always,
            sources=len(operation.sources),
            first_walk=places.add("walks", walks),
        )
        return UnitOperation(VECTOR, places.add("vectors", [vector]), facts_of(operation))


@lru_cache(maxsize=16)
def _banking(banks: StridedBufferPorts) -> Banking:
    """Return port and bank of every block, and what they exclude."""
    reads, writes, places = places_of_blocks(banks)
    return Banking(
        period=len(places),
        port_of=(*reads, *writes),
        bank_of=places,
        ports=2 * banks.groups,
        banks=banks.groups * banks.banks_per_group,
        exclusive_ports=banks.exclusive_ports,
        exclusive_banks=banks.exclusive_banks,
    )
