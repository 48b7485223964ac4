"""Strided-repeat instructions as rows, and the banks of their buffer (a2a3.md section 8)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache

from isa.errors import TargetDataError
from simulator.engines.event_strided.legality import always_fills, check_vector, facts_of
from simulator.engines.fast_dataflow.layout import VECTOR
from simulator.engines.fast_dataflow.ports import BLOCK
from simulator.engines.fast_dataflow.units import Banking, Places, Work
from simulator.strided.geometry import repeat_blocks
from simulator.strided.operations import VectorOperation
from simulator.tree import Operation
from targets.strided_repeat import BufferPorts, StridedRepeatTarget


@dataclass(frozen=True, slots=True)
class StridedRows:
    """The vector unit of one target."""

    target: StridedRepeatTarget
    banking: Banking = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "banking", _banking(self.target.banks))

    def check(self, operation: object) -> None:
        """Refuse what is no vector instruction of this mechanism, and timing rows that the target does not have."""
        check_vector(operation, self.target)

    def encode(self, operation: Operation, addresses: tuple[int, ...], places: Places) -> Work:
        """Return an instruction with its addresses as numbers, in the order of `requests`."""
        assert isinstance(operation, VectorOperation)  # checked before the run
        row = self.target.timing.vector[operation.timing]
        values = [
            row.head_cycles,
            row.repeat_cycles,
            row.tail_cycles,
            operation.repeats,
            int(always_fills(self.target)),
            len(operation.sources),
        ]
        for stream, address in zip((operation.destination, *operation.sources), addresses, strict=True):
            offsets = repeat_blocks(stream, operation.lanes, operation.mask)
            blocks = tuple(offset // BLOCK for offset in offsets)
            values += [address, stream.step, places.distances(blocks), len(blocks)]
        return Work(VECTOR, tuple(values), facts_of(operation))


def _banking(banks: BufferPorts) -> Banking:
    """Return port and bank of every block, and what they exclude; addresses beyond the buffer start over."""
    if banks.bank_bytes % BLOCK:
        raise TargetDataError(f"banks.bank_bytes {banks.bank_bytes} is no multiple of the block, {BLOCK} bytes")
    places = _places(banks.groups, banks.banks_per_group, banks.bank_bytes // BLOCK)
    return replace(places, exclusive_ports=banks.exclusive_ports, exclusive_banks=banks.exclusive_banks)


@lru_cache(maxsize=16)
def _places(groups: int, banks: int, rows: int) -> Banking:
    period = groups * banks * rows
    group_of = [block % groups for block in range(period)]
    return Banking(
        period=period,
        port_of=[*group_of, *(group + groups for group in group_of)],
        bank_of=[group * banks + block // groups // rows for block, group in enumerate(group_of)],
        ports=2 * groups,
        banks=groups * banks,
    )
