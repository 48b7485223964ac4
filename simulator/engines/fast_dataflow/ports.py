"""Ports and banks of the buffer: blocks are served first come, first served.

Two rules (see `event_strided.ports`, `event_function.ports`). Banked: each group has a port for reads and one for
writes, and no bank is read and written in one cycle, as far as the facts say so. Grouped: a group serves so many reads
and writes per cycle, fewer reads beside a write.
"""

from __future__ import annotations

from simulator.engines.fast_dataflow.layout import (
    BANK_FREE,
    BANK_OF,
    BANKS,
    EXCLUSIVE_BANKS,
    EXCLUSIVE_PORTS,
    GROUPED,
    PERIOD,
    PORT_FREE,
    PORT_OF,
    READS_BESIDE_WRITE,
    READS_PER_GROUP,
    WRITES_PER_GROUP,
    Cells,
)

BLOCK = 32


def grant_pattern(m: Cells, now: int, block: int, first: int, count: int, write: int) -> int:
    """Ask at `now` for blocks at known distances from `block`, banked; return the cycle in which the last passes."""
    period = m[PERIOD]
    phase = block % period
    port_of, bank_of = m[PORT_OF] + period * write, m[BANK_OF]
    ports, banks = m[EXCLUSIVE_PORTS], m[EXCLUSIVE_BANKS]
    port_free = m[PORT_FREE]
    own = m[BANK_FREE] + m[BANKS] * write
    other = m[BANK_FREE] + m[BANKS] * (1 - write)
    last = now
    for k in range(first, first + count):
        cell = phase + m[k]
        if cell >= period:
            cell -= period
        port = port_free + m[port_of + cell]
        bank = m[bank_of + cell]
        cycle = now
        if m[port] > cycle:  # noqa: PLR1730 - max would be a call
            cycle = m[port]
        if m[own + bank] > cycle:  # noqa: PLR1730
            cycle = m[own + bank]
        if ports:
            m[port] = cycle + 1
        if banks:
            m[other + bank] = cycle + 1
        if cycle > last:  # noqa: PLR1730
            last = cycle
    return last


def grant_block(m: Cells, now: int, block: int, write: int) -> int:
    """Ask at `now` for one block; return the cycle in which it passes."""
    cell = block % m[PERIOD]
    if m[GROUPED]:
        return _pass(m, cell, now, write)
    port = m[PORT_FREE] + m[m[PORT_OF] + m[PERIOD] * write + cell]
    bank = m[BANK_FREE] + m[m[BANK_OF] + cell]
    cycle = max(now, m[port], m[bank + m[BANKS] * write])
    if m[EXCLUSIVE_PORTS]:
        m[port] = cycle + 1
    if m[EXCLUSIVE_BANKS]:
        m[bank + m[BANKS] * (1 - write)] = cycle + 1
    return cycle


def grant_bytes(m: Cells, now: int, address: int, size: int, write: int) -> int:
    """Ask at `now` for `size` bytes; return the cycle in which the last block passes, `now` if there is none."""
    last = now
    if size > 0:
        for block in range(address // BLOCK, (address + size - 1) // BLOCK + 1):
            last = max(last, grant_block(m, now, block, write))
    return last


def _pass(m: Cells, group: int, now: int, write: int) -> int:
    """Serve a block of a group in its latest cycle, if there is room, or later.

    `port_free` holds that cycle, `bank_free` the reads it serves, plus a number beyond all reads for each write.
    """
    latest = m[m[PORT_FREE] + group]
    served = m[m[BANK_FREE] + group]
    cycle = max(now, latest)
    if cycle == latest:
        writes, reads = served // WRITE_SERVED, served % WRITE_SERVED
        if write:
            fits = writes < m[WRITES_PER_GROUP] and reads <= m[READS_BESIDE_WRITE]
        else:
            fits = reads < (m[READS_BESIDE_WRITE] if writes else m[READS_PER_GROUP])
        if not fits:
            cycle += 1
    if cycle > latest:
        m[m[PORT_FREE] + group] = cycle
        served = 0
    m[m[BANK_FREE] + group] = served + (WRITE_SERVED if write else 1)
    return cycle


WRITE_SERVED = 1 << 20
"""What a write counts in the number of accesses that a group serves in a cycle."""
