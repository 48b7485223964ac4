"""How much a walk may take: trips, and statements inside loops; outside of them the text itself is the limit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from castsim.execution.interpreter.structure import is_inserted
from castsim.execution.limits import walk_limit
from castsim.isa.errors import LimitError
from castsim.isa.pto import program as pto


@dataclass(slots=True)
class Budget:
    """What is left of a limit, and the loops that are being walked, outermost first, each with what was left then."""

    limit: int
    left: int = field(init=False)
    loops: list[tuple[pto.For | pto.While, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.left = self.limit

    def spend(self) -> None:
        """Take off one trip, or one statement of one.

        Raises:
            LimitError: nothing is left; the place is the innermost loop of which one execution took most of it.
        """
        if not self.loops:
            return
        self.left -= 1
        if self.left < 0:
            most = [node for node, before in self.loops if 2 * (before - self.left) > self.limit]
            raise self._spent((most or [self.loops[0][0]])[-1])

    def foresee(self, node: pto.For, trips: int) -> None:
        """Refuse a loop every trip of which is going to be walked if they cannot all be.

        Raises:
            LimitError: they cannot.
        """
        statements = sum(not isinstance(each, pto.Yield) and not is_inserted(each) for each in node.body)
        if trips * (1 + statements) > self.left:
            raise self._spent(node)

    @contextmanager
    def inside(self, node: pto.For | pto.While) -> Iterator[None]:
        """Count what is walked as that of a loop."""
        self.loops.append((node, self.left))
        yield
        self.loops.pop()

    def _spent(self, node: pto.For | pto.While) -> LimitError:
        return walk_limit(self.limit, "trips and statements of this loop that have to be walked one by one", node.span)
