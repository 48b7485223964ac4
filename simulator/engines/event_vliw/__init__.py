"""Discrete-event engine of the VLIW mechanism, on simpy.

Two kinds of process: the core (`bundle_issue`) issues one bundle per cycle and stands still while data is missing or
the queue of global memory is full; each port of global memory (`memory`) serves that queue in order. Rules and facts:
docs/reference/tpc.md sections 6.2 and 6.3; what these leave open are options of the target.
"""

from castsim.engines.event_vliw.simulation import VliwSimulation

__all__ = ["VliwSimulation"]
