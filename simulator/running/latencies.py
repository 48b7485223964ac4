"""What the latencies of a run cost, of programs that wait for nothing but are written to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from castsim.targets.vliw import VliwTarget

if TYPE_CHECKING:
    from castsim.machines.vliw.latency_bound import LatencyBound
    from castsim.running.loaded import Loaded
    from castsim.timing import Timing


def latencies_of(loaded: Loaded, timing: Timing) -> LatencyBound | None:
    """Return what latencies cost a run, None of programs that are no bundles."""
    if loaded.bundles is None or not isinstance(loaded.target, VliwTarget):
        return None
    from castsim.machines.vliw.latency_bound import latency_bound  # noqa: PLC0415 - tile programs need none of it

    return latency_bound(loaded.bundles, loaded.target, timing)
