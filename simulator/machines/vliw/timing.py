"""What an access to global memory costs: a function on whole cycles, called by all engines."""

from __future__ import annotations


def load_cycles(interval: int, latency: int) -> int:
    """Return the cycles from when a load begins to cross its port until its data is there.

    Any access occupies the port for the `interval` of the sustained rate; a store is done then. The data of a load is
    there when it has crossed, and no sooner than the latency after it began to.
    """
    return max(interval, latency)
