"""Running one operation on tiles everywhere: walked, flagged, timed by both engines, searched for races, computed."""

from __future__ import annotations

import numpy as np
from work_programs import Spot, computed, synchronised, target

from castsim.engines import simulate
from castsim.execution.synchronisation.race_detector import find_races
from castsim.execution.synchronisation.race_findings import RaceKind


def ran(text: str, name: str, before: np.ndarray, *options: tuple[str, int | str]) -> np.ndarray:
    """The buffer after a program, which both engines time alike and whose inserted flags leave no race."""
    chip = target(name, *options)
    tree = synchronised(text, chip).tree
    fast, event = (simulate(tree, chip, None, engine=engine, max_cycles=10**7) for engine in ("fast", "event"))
    assert fast.total == event.total > 0
    assert fast.pipes == event.pipes
    assert not [finding for finding in find_races(tree, chip) if finding.kind is not RaceKind.UNWRITTEN]
    return computed(text, chip, before)


def expect(
    text: str, name: str, before: np.ndarray, spot: Spot, values: np.ndarray, *options: tuple[str, int | str]
) -> None:
    """Nothing but these values of a tile changes."""
    wanted = before.copy()
    spot.put(wanted, values)
    wrong = np.flatnonzero(ran(text, name, before, *options) != wanted)
    assert not wrong.size, f"bytes {wrong[:10]}"
