"""What the conversions of vector instructions did to their numbers: lanes that are active and hold something known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from castsim.execution.cast_tally import CastBatch, CastPlace, CastTally
from castsim.execution.outcomes import Judge
from castsim.isa.codes import Codes
from castsim.isa.formats import format_named
from castsim.isa.modes import Overflow
from castsim.isa.pto.micro.conversions import Conversion
from castsim.isa.pto.micro.nodes import MicroOperation
from castsim.numerics import Policy


@dataclass(slots=True)
class ConversionCounts:
    """Counts conversions line by line: those of one line and pair together, whichever part of a register each fills."""

    tally: CastTally
    _known: dict[tuple[int, int], Callable[[Policy, Codes, Codes], None]] = field(default_factory=dict)

    def of(self, node: MicroOperation, pair: Conversion, control: int) -> Callable[[Policy, Codes, Codes], None]:
        """Return what takes in the policy and the codes of an execution, before and after."""
        key = id(node), control  # instructions of a program live as long as its run
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _Conversion(self.tally, node, pair)
        return found


@dataclass(slots=True)
class _Conversion:
    """A conversion of the text, under one value of CTRL: all its executions have one policy."""

    tally: CastTally
    node: MicroOperation
    pair: Conversion
    batch: CastBatch | None = None

    def __call__(self, policy: Policy, before: Codes, after: Codes) -> None:
        if self.batch is None:
            self.batch = self._begun(policy)
        self.batch.add(before, after)

    def _begun(self, policy: Policy) -> CastBatch:
        pair = self.pair
        place = CastPlace(self.node.span.line, f"{self.node.mnemonic} {pair.src} -> {pair.dst}", pair.src, pair.dst)
        wraps = policy.overflow is Overflow.WRAP
        return self.tally.batch(place, Judge(format_named(pair.src), format_named(pair.dst), policy.rounding, wraps))
