"""Ports and banks of the buffer: blocks are served first come, first served.

Two rules (see `event_strided.ports`, `event_function.ports`). Banked: each group has a port for reads and one for
writes, and no bank is read and written in one cycle, as far as the facts say so. Grouped: a group serves so many reads
and writes per cycle, fewer reads beside a write.
"""

from __future__ import annotations

from castsim.engines.fast_dataflow.state import MachineState
from castsim.execution.dataflow.operations import BLOCK
from castsim.machines.strided.timing import passes
from castsim.machines.vector_function.timing import group_has_room


def grant_pattern(m: MachineState, now: int, block: int, first: int, count: int, write: int) -> int:
    """Ask at `now` for blocks at known distances from `block`, banked; return the cycle in which the last passes."""
    ports, period = m.ports, m.ports.period
    phase = block % period
    port_of, bank_of, distances = m.port_of, m.bank_of, m.numbers
    port_free, bank_free = m.port_free, m.bank_free
    exclusive_ports, exclusive_banks = ports.exclusive_ports, ports.exclusive_banks
    own, other, of_writes = ports.banks * write, ports.banks * (1 - write), period * write
    last = now
    for k in range(first, first + count):
        cell = phase + distances[k]
        if cell >= period:
            cell -= period
        port = port_of[of_writes + cell]
        bank = bank_of[cell]
        # `strided.timing.passes`, spelled out: it would be a call for every block.
        cycle = now
        if port_free[port] > cycle:  # noqa: PLR1730 - max would be a call
            cycle = port_free[port]
        if bank_free[own + bank] > cycle:  # noqa: PLR1730
            cycle = bank_free[own + bank]
        if exclusive_ports:
            port_free[port] = cycle + 1
        if exclusive_banks:
            bank_free[other + bank] = cycle + 1
        if cycle > last:  # noqa: PLR1730
            last = cycle
    return last


def grant_block(m: MachineState, now: int, block: int, write: int) -> int:
    """Ask at `now` for one block; return the cycle in which it passes."""
    ports = m.ports
    cell = block % ports.period
    if ports.grouped:
        return _pass(m, cell, now, write)
    port, bank = m.port_of[ports.period * write + cell], m.bank_of[cell]
    cycle = passes(now, m.port_free[port], m.bank_free[bank + ports.banks * write])
    if ports.exclusive_ports:
        m.port_free[port] = cycle + 1
    if ports.exclusive_banks:
        m.bank_free[bank + ports.banks * (1 - write)] = cycle + 1
    return cycle


def grant_bytes(m: MachineState, now: int, address: int, size: int, write: int) -> int:
    """Ask at `now` for `size` bytes; return the cycle in which the last block passes, `now` if there is none."""
    last = now
    if size > 0:
        for block in range(address // BLOCK, (address + size - 1) // BLOCK + 1):
            last = max(last, grant_block(m, now, block, write))
    return last


def _pass(m: MachineState, group: int, now: int, write: int) -> int:
    """Serve a block of a group in its latest cycle, if there is room, or later.

    `port_free` holds that cycle, `bank_free` the reads it serves, plus a number beyond all reads for each write.
    """
    ports, latest, served = m.ports, m.port_free[group], m.bank_free[group]
    cycle = max(now, latest)
    if cycle == latest and not group_has_room(
        served % WRITE_SERVED,
        served // WRITE_SERVED,
        write,
        ports.reads_per_group,
        ports.reads_beside_write,
        ports.writes_per_group,
    ):
        cycle += 1
    if cycle > latest:
        m.port_free[group] = cycle
        served = 0
    m.bank_free[group] = served + (WRITE_SERVED if write else 1)
    return cycle


WRITE_SERVED = 1 << 20
"""What a write counts in the number of accesses that a group serves in a cycle."""
