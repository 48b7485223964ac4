"""Discrete-event engine of the strided-repeat mechanism, on simpy: its vector instructions (`vector`), repeat by
repeat, and the banks of its buffer (`ports`, a2a3.md section 8). Everything around them is `event_dataflow`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulator.engines.event_strided.simulation import EventSimulation

__all__ = ["EventSimulation"]


def __getattr__(name: str) -> Any:
    """Import simpy with the engine, not with what other engines share with it."""
    if name == "EventSimulation":
        from simulator.engines.event_strided.simulation import EventSimulation  # noqa: PLC0415

        return EventSimulation
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
