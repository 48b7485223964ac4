"""The operation of this mechanism: one issued bundle, as far as time depends on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from castsim.execution.tree import Deltas
from castsim.isa.tpc import Slot

SLOTS = tuple(slot.name for slot in Slot)
"""The slots as pipes, in the order of the text."""

ISSUE = "SPU"
"""The pipe that an empty bundle is listed under: the slot that decides the path."""


@dataclass(frozen=True, slots=True)
class BundleOperation:
    """One bundle on its way through the core.

    `slot_cycles` holds, for each slot in the order of `SLOTS`, the cycles in which the slot is occupied (0: NOP), and
    `names` what is in it. `loads` and `stores` count accesses of global memory; the data of loads must be there
    `data_due` bundles later. `effect` is the number of cycles from issue to the last effect, memory aside. `bubbles`
    empty cycles follow it (a taken jump).
    """

    slot_cycles: tuple[int, int, int, int]
    names: tuple[str, str, str, str]
    loads: int
    stores: int
    data_due: int
    effect: int
    bubbles: int

    @property
    def pipe(self) -> str:
        """The slot that it is listed under: the first occupied one of VPU, LOAD, STORE and SPU."""
        return main_pipe(self.names)

    @property
    def addresses(self) -> tuple[int, ...]:
        """The empty tuple: time does not depend on them."""
        return ()

    def shifted(self, deltas: Deltas) -> Self:
        """Return the operation itself; it has no addresses."""
        del deltas
        return self


def main_pipe(names: tuple[str, ...]) -> str:
    """Return the slot that a bundle is listed under, given what is in each slot."""
    order = (Slot.VPU, Slot.LOAD, Slot.STORE, Slot.SPU)
    return next((slot.name for slot in order if names[slot]), ISSUE)
