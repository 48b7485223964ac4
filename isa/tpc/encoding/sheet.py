"""The bits of one bundle while it is written, with every clash rejected by name."""

from __future__ import annotations

from castsim.isa.errors import IllegalError
from castsim.isa.tpc.encoding.tables import PREDICATE_INDEX_BITS, Layout
from castsim.isa.tpc.program import File, Slot, TpcInstruction


class Sheet:
    """The bits of a bundle while it is written; remembers who wrote which."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.bits = 0
        self._owners: list[tuple[int, TpcInstruction]] = []

    def put(
        self,
        slot: Slot | None,
        field: str,
        low: int,
        bits: int | None,
        number: int,
        owner: TpcInstruction | None = None,
    ) -> None:
        """Write a number; `owner` None is for fields that several may share and write alike.

        Raises:
            IllegalError: another instruction uses these bits, or the layout lacks them and the number needs them.
        """
        rest, mask, written = number, 0, 0
        for part in self.layout.parts(slot, field):
            first = max(low, part.low)
            last = part.low + part.bits if bits is None else min(low + bits, part.low + part.bits)
            if first >= last:
                continue
            under = ((1 << (last - first)) - 1) << (first - low)
            rest &= ~under
            start = part.start + first - part.low
            mask |= under >> (first - low) << start
            written |= (number & under) >> (first - low) << start
        if rest:
            raise self._missing(slot, field, number, owner)
        if owner is not None:
            self._claim(mask, owner)
        self.bits |= written

    def _claim(self, mask: int, owner: TpcInstruction) -> None:
        for used, other in self._owners:
            if used & mask and other is not owner:
                fields = ", ".join(self.layout.named(used & mask))
                message = f"{owner.mnemonic} and {other.mnemonic} cannot share a bundle: both need {fields}"
                raise IllegalError(message, span=owner.span, legal=("two bundles",))
        self._owners.append((mask, owner))

    def _missing(self, slot: Slot | None, field: str, number: int, owner: TpcInstruction | None) -> IllegalError:
        where = field if slot is None else f"{slot.name.lower()}.{field}"
        what = "the bundle" if owner is None else owner.mnemonic
        size = sum(part.bits for part in self.layout.parts(slot, field))
        message = f"{what}: {where} has no room for {number:#x} in layout {self.layout.name}"
        return IllegalError(message, span=owner.span if owner else None, legal=(f"{size} bits",))

    def put_predicate(self, slot: Slot, instruction: TpcInstruction) -> None:
        """Write the predicate of an instruction; none is SP0, not inverted."""
        predicate = instruction.predicate
        if predicate is not None:
            vector = int(predicate.register.file is File.VP)
            self.put(slot, "predicate", 0, None, predicate.register.index | vector << PREDICATE_INDEX_BITS)
            self.put(slot, "polarity", 0, None, int(predicate.inverted))
