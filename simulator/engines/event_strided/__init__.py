"""Discrete-event engine of the strided-repeat mechanism, on simpy.

The scalar unit issues in program order (`issue`), each pipe is a FIFO process (`pipes`, with `vector` and `transfer`
for the two kinds of work), blocks meet at the buffer's ports and banks (`ports`), and every cycle is accounted for
(`accounting`). Semantics: a2a3.md sections 6.4 (pipes, flags), 7 (barriers), 8 (banks).

Order within a cycle: first everything that control does (arrivals, flags, barriers), then the buffer requests, in
the order of their operations. A request has no effect before the following cycle, so this order is total.
"""

from simulator.engines.event_strided.simulation import EventSimulation

__all__ = ["EventSimulation"]
