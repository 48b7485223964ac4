"""What an access to global memory costs: pipes, facts and a function on whole cycles, for all engines."""

from __future__ import annotations

SHARED_PORT = ("GLOBAL",)
"""The pipe of global memory where loads and stores have one port together."""
SEPARATE_PORTS = ("GLOBAL LOAD", "GLOBAL STORE")
"""The same where each has its own."""
MEMORY_FACTS = ("global_memory", "options.global_ports", "options.global_queue_entries")
"""Facts of the target that the cycles of an access rest on."""


def load_cycles(interval: int, latency: int) -> int:
    """Return the cycles from when a load begins to cross its port until its data is there.

    Any access occupies the port for the `interval` of the sustained rate; a store is done then. The data of a load is
    there when it has crossed, and no sooner than the latency after it began to.
    """
    return max(interval, latency)
