"""Where blocks lie in the banked buffer: block n in group n mod `groups`, its port and its bank.

Source: docs/reference/a2a3.md section 8.
"""

from __future__ import annotations

from functools import lru_cache

from castsim.execution.dataflow.operations import BLOCK
from castsim.isa.errors import TargetDataError
from castsim.targets.strided_repeat import StridedBufferPorts

Places = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""Of every block: its port for reads, its port for writes, its bank. Addresses beyond the buffer start over."""


@lru_cache(maxsize=16)
def places_of_blocks(banks: StridedBufferPorts) -> Places:
    """Return where every block lies.

    Raises:
        TargetDataError: a bank does not hold whole blocks.
    """
    if banks.bank_bytes % BLOCK:
        raise TargetDataError(f"banks.bank_bytes {banks.bank_bytes} is not a multiple of the block size, {BLOCK} bytes")
    groups, rows = banks.groups, banks.bank_bytes // BLOCK
    group_of = tuple(block % groups for block in range(groups * banks.banks_per_group * rows))
    bank_of = tuple(group * banks.banks_per_group + block // groups // rows for block, group in enumerate(group_of))
    return group_of, tuple(group + groups for group in group_of), bank_of
