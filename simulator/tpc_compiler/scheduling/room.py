"""Whether instructions may share a bundle: slots, immediates, operand fields, predicates, excluded neighbours."""

from __future__ import annotations

from collections.abc import Sequence

from castsim.isa.tpc import Bundle, Slot, TpcProgram
from castsim.machines.vliw.lint.bundles import side_by_side
from castsim.machines.vliw.lint.flow import Flow
from castsim.machines.vliw.plans import InstructionPlan
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.scheduling.operations import Operation, Operations

Occupant = tuple[Operation, Slot]
"""An instruction and its slot."""


class _OneBundle(Flow):
    """A bundle for the linter's rules on single bundles; virtual registers and labels need not exist yet."""

    def __init__(self, bundle: Bundle, plans: tuple[InstructionPlan, ...], target: VliwTarget) -> None:
        self.target = target
        self.program = TpcProgram((), (bundle,))
        self.bundles = (bundle,)
        self.plans = (plans,)
        self.jumps = ()
        self.loops = ()


class Room:
    """Answers whether instructions may share a bundle."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._known: dict[frozenset[Occupant], bool] = {}

    def shared_by(self, occupants: Sequence[Occupant]) -> bool:
        """Whether these may stand in one bundle."""
        if len(occupants) < 2:
            return True
        if len({slot for _, slot in occupants}) < len(occupants):
            return False
        if any(operation.mnemonic in ("loop", "halt") for operation, _ in occupants):
            return False
        key = frozenset(occupants)
        if key not in self._known:
            ordered = sorted(occupants, key=lambda each: each[1])
            plans = tuple(self._operations.plan(operation, slot) for operation, slot in ordered)
            flow = _OneBundle(bundle_of(ordered), plans, self._operations.target)
            self._known[key] = side_by_side(flow)
        return self._known[key]


def bundle_of(occupants: Sequence[Occupant]) -> Bundle:
    """Return the bundle of some instructions."""
    slots = {slot: operation.slots[slot] for operation, slot in occupants}
    span = min((operation.span for operation, _ in occupants), key=lambda span: (span.line, span.column))
    return Bundle(*(slots.get(slot) for slot in Slot), written=len(Slot), span=span)
