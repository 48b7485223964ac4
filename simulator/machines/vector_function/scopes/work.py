"""What a trip of a loop has for the serial port, for the loads and for the stores (docs/reference/micro.md 6.2)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from castsim.execution.dataflow.timing import TICKS
from castsim.machines.vector_function.scopes.facts import ScopeFacts
from castsim.machines.vector_function.scopes.scope import Issue, Item, Kind
from castsim.machines.vector_function.trip_shape import issue_ticks

Part = tuple[int, int]
"""A line, and the ticks up to which a trip's time is its own."""


class TripWork:
    """The work of one trip: `hold` are the ticks for which it keeps the front end.

    `fed`: the loop around it loads for all its trips, which then issue as if they did.
    """

    def __init__(self, trip: Sequence[Item], facts: ScopeFacts, *, fed: bool = False) -> None:
        full, others, per_cycle = 0, 0, facts.target.timing.loads.per_cycle
        copies = False
        loads: list[int] = []
        stores: list[int] = []
        serial: list[Part] = []
        for item in trip:
            if not isinstance(item, Issue):
                continue
            instruction = item.instruction
            alone = facts.alone(instruction)
            match instruction.kind:
                case Kind.LOAD:
                    copies = copies or bool(stores)
                    loads += [instruction.line] * (1 if alone is None else alone * per_cycle)
                    full += instruction.size >= facts.target.registers.register_bytes
                case Kind.STORE:
                    stores += [instruction.line] * (alone or 1)
                case Kind.COMPUTE if held := facts.cost(instruction).serial:
                    serial.append((instruction.line, held))
                case Kind.COMPUTE:
                    others += TICKS * facts.cost(instruction).held
        self.hold = sum(held for _, held in serial)
        self.serial_bound = bool(serial) and others <= self.hold and not copies
        """Whether it is that of the instructions for the first port alone, and the others have room on the second.

        Where a load stands behind a store, trips are written out: converts of a later one do not wait for an earlier.
        """
        self._lines = serial
        issue = issue_ticks(max(len(loads), fed), full, len(stores), facts.target)
        if issue > self.hold and (loads or stores):
            self.hold, self.serial_bound = issue, False
            lines = loads if len(loads) >= len(stores) else stores
            self._lines = [(line, self.hold // len(lines)) for line in lines]

    def parts(self) -> Sequence[Part]:
        """Return how the hold divides among the lines that make it as long as it is, in their order."""
        ends = list(accumulate(held for _, held in self._lines))
        ends[-1:] = [self.hold] * bool(ends)
        return [(line, end) for (line, _), end in zip(self._lines, ends, strict=True)]
