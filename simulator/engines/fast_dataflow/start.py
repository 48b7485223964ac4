"""A machine at the start of a program."""

from __future__ import annotations

from collections.abc import Mapping

from castsim.engines.fast_dataflow.codes import MEMORY_LATENCY, NONE, WIDTH
from castsim.engines.fast_dataflow.encoding import Encoder
from castsim.engines.fast_dataflow.state import PortsRow
from castsim.execution.dataflow.timing import NO_TICK
from castsim.execution.dataflow.transfer_plan import latency_ahead


def start(encoder: Encoder, remaining: Mapping[str, int], max_cycles: int, *, recording: bool, patience: int) -> None:
    """Set up the machine, pipes and ports; `remaining` is the number of the program's operations by pipe."""
    memory, banking, count = encoder.memory, encoder.unit.banking, len(encoder.pipes)
    m = memory.machine
    m.maximum, m.recording, m.interlocked = max_cycles, int(recording), int(encoder.tree.interlocked)
    m.pipe_count, m.issuer.patience = count, patience
    for table in ("pipes", "accounts", "progress"):
        memory.take(table, count)
    memory.take("causes", count * WIDTH)
    for pipe, name in zip(m.pipes[1:], encoder.pipes[1:], strict=True):
        pipe.remaining = remaining.get(name, 0)
        pipe.reach = latency_ahead(encoder.target, name)
        if name == encoder.target.pipes.store:
            pipe.behind = MEMORY_LATENCY
        m.issuer.remaining += pipe.remaining
    m.ports = PortsRow(
        period=banking.period,
        banks=banking.banks,
        grouped=int(banking.grouped),
        exclusive_ports=int(banking.exclusive_ports),
        exclusive_banks=int(banking.exclusive_banks),
        reads_per_group=banking.reads_per_group,
        reads_beside_write=banking.reads_beside_write,
        writes_per_group=banking.writes_per_group,
    )
    memory.append("port_of", banking.port_of)
    memory.append("bank_of", banking.bank_of)
    memory.take("port_free", banking.ports, NONE if banking.grouped else 0)
    memory.take("bank_free", 2 * banking.banks)
    memory.make_room()


class FunctionRoom:
    """Room for the vector function at work; grows with the largest one that the program has shown so far."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def make(self) -> None:
        """Ensure that there is room for what was encoded last; what is at work keeps its rows."""
        memory = self._encoder.memory
        memory.machine.most_accesses = self._encoder.most_accesses
        for table, needed in self._encoder.room.items():
            if needed > memory.size(table):
                memory.take(table, 2 * needed - memory.size(table), NO_TICK)
