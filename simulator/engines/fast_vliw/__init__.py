"""The fast engine of a core that issues bundles: the same cycles and causes as the event engine, without events.

`bundle_recurrence` steps bundle by bundle, `loops` skips trips that repeat, `history` keeps what happened in columns,
`outcome` reads the columns back as executions and operations, `simulation` puts them together.
"""

from castsim.engines.fast_vliw.simulation import simulate_bundles

__all__ = ["simulate_bundles"]
