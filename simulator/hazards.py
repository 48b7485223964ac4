"""How two accesses to the same bytes depend on each other."""

from __future__ import annotations

from simulator.tree import Access
from targets.dataflow import Hazard


def hazard_between(first: Access, second: Access) -> Hazard | None:
    """Return what the second access must not overtake, None if both only read; bytes are not compared."""
    if first.write:
        return Hazard.WRITE_AFTER_WRITE if second.write else Hazard.READ_AFTER_WRITE
    return Hazard.WRITE_AFTER_READ if second.write else None
