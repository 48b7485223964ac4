"""Event ids for planned flags (docs/reference/pto.md section 5.5).

An id of a pair of pipes is taken from where its flag is set to where it is waited for; a flag that the next trip of a
loop waits for takes it for the whole function. An id that was never used is preferred to one that is free again. Where
none is free, a flag joins another one that guards the same buffers; failing that, flags of loops take their ids for
their loops only; failing that, a barrier on all pipes does the work of the flag.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from castsim.synchronisation.flags.elements import Element, Pair, Set, Wait

_Pipes = tuple[str, str]
_Life = tuple[int, int]


def assign_events(elements: list[Element], pairs: list[Pair], ids_of: Callable[[_Pipes], int]) -> list[Pair]:
    """Give every pair an id, `ids_of` of which its pipes have, or let it be joined or drained; return who is left."""
    by_pipes: dict[_Pipes, list[Pair]] = {}
    for element in elements:
        for mark in element.before:
            if isinstance(mark, Wait):
                by_pipes.setdefault(mark.pair.pipes, []).append(mark.pair)
    kept: list[Pair] = []
    for pipes, waiting in by_pipes.items():
        kept += _Assignment(elements, len(elements), ids_of(pipes)).assign(waiting)
    left = {pair.number for pair in kept}
    return [pair for pair in pairs if pair.number in left]


@dataclass(slots=True)
class _Assignment:
    """The ids of one pair of pipes; `lives` of those that have each."""

    elements: list[Element]
    count: int
    ids: int
    lives: dict[int, list[tuple[_Life, Pair]]] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    """Where the last life of each ends."""

    def assign(self, waiting: list[Pair]) -> list[Pair]:
        """Give ids to pairs in the order of their waits; return those that are left, and the drained ones."""
        kept: list[Pair] = []
        for pair in waiting:
            if self._take(pair):
                kept.append(pair)
            elif not self._join(pair, kept):
                return self._again([*kept, *waiting[waiting.index(pair) :]])
        return kept

    def _again(self, waiting: list[Pair]) -> list[Pair]:
        """Start over with flags of loops that hold their ids for their loops only."""
        self.lives.clear()
        self.ends.clear()
        for pair in waiting:
            pair.event, pair.at_loop = -1, pair.loop is not None
        for pair in waiting:
            if not self._take(pair):
                pair.drained = True
                self.elements[pair.set_at].after.remove(Set(pair))
        for lives in self.lives.values():
            for _, pair in lives:
                # With an id of its own, a flag of a loop is set and waited for at the ends of the function.
                pair.at_loop &= len(lives) > 1
        return waiting

    def _life(self, pair: Pair) -> _Life:
        if pair.loop is None:
            return 2 * pair.set_at + 1, 2 * pair.wait_at
        return (2 * pair.loop.begin, 2 * pair.loop.end + 1) if pair.at_loop else (-1, 2 * self.count)

    def _take(self, pair: Pair) -> bool:
        """Give a pair the lowest id that was never used, or else the lowest one that is free; tell whether there is."""
        life = self._life(pair)
        free = (n for n in sorted(self.lives) if self._free(n, life))
        event = next((n for n in range(self.ids) if n not in self.lives), next(free, -1))
        if event < 0:
            return False
        pair.event = event
        self.lives.setdefault(event, []).append((life, pair))
        self.ends[event] = max(life[1], self.ends.get(event, life[1]))
        return True

    def _free(self, event: int, life: _Life) -> bool:
        return life[0] > self.ends[event] or not any(_meet(life, other) for other, _ in self.lives[event])

    def _join(self, pair: Pair, kept: list[Pair]) -> bool:
        """Let a pair join an earlier one that stands in the same place and guards the same buffers.

        The flag of both is set where the later one was, and waited for where the earlier one is.
        """
        block = self.elements[pair.set_at].block
        for other in kept:
            same = other.loop is pair.loop and other.buffers == pair.buffers
            places = (other.set_at, other.wait_at, pair.wait_at)
            together = all(self.elements[place].block == block for place in places)
            if not same or not together or (pair.loop is None and other.wait_at <= pair.set_at):
                continue
            if other.set_at < pair.set_at:
                self.elements[other.set_at].after.remove(Set(other))
                self.elements[pair.set_at].after.append(Set(other))
                other.set_at = pair.set_at
            self.elements[pair.set_at].after.remove(Set(pair))
            self.elements[pair.wait_at].before.remove(Wait(pair))
            return True
        return False


def _meet(one: _Life, other: _Life) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]
