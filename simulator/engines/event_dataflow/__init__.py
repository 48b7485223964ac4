"""Discrete-event engine of chips whose pipes pass tiles through one buffer, on simpy: all but the vector unit.

The scalar unit issues in program order (`issue`), each pipe is a FIFO process (`pipes`, `process`), transfers move
block by block (`transfer`), blocks meet at the ports of the buffer (`ports`), and every cycle is accounted for
(`accounting`). A mechanism adds its vector unit and its banks. Semantics: docs/reference/a2a3.md section 6.4 (pipes,
flags) and 7 (barriers).

Order within a cycle: first everything that control does (arrivals, flags, barriers), then the buffer requests, in
the order of their operations. A request has no effect before the following cycle, so this order is total.
"""
