"""Flags that others make needless (docs/reference/pto.md section 5.4).

A pair goes if, on the way from its set to its wait, the same two pipes meet over another pair. Programs with gathers
or scatters keep all.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from castsim.synchronisation.flags.elements import (
    BranchSpan,
    Element,
    ElementKind,
    Hold,
    LoopSpan,
    Mark,
    Pair,
    Set,
    Wait,
)


def remove_needless(elements: list[Element], pairs: list[Pair]) -> list[Pair]:
    """Take out the pairs that others make needless; return those that are left."""
    if any(element.gathers for element in elements):
        return pairs
    alike = Counter(pair.pipes for pair in pairs)
    carried = sorted((p for p in pairs if p.loop), key=lambda p: (_end(p), p.number), reverse=True)
    forward = sorted((p for p in pairs if not p.loop), key=lambda p: p.number, reverse=True)
    gone: set[int] = set()
    for pair in (*carried, *forward):
        if alike[pair.pipes] > 1 and _Way(elements, pair).needless():
            gone.add(pair.number)
            alike[pair.pipes] -= 1
            elements[pair.set_at].after.remove(Set(pair))
            elements[pair.wait_at].before.remove(Wait(pair))
    return [pair for pair in pairs if pair.number not in gone]


def _end(pair: Pair) -> int:
    return pair.loop.end if pair.loop else -1


@dataclass(slots=True)
class _Way:
    """The way from the set of a pair to its wait, and the sets of other pairs of the same pipes passed on it."""

    elements: list[Element]
    pair: Pair
    passed: set[int] = field(default_factory=set)

    def needless(self) -> bool:
        """Whether another pair is set and waited for on the way."""
        pair, elements = self.pair, self.elements
        behind = elements[pair.set_at].after
        here = elements[pair.wait_at].before
        last = here[: here.index(Wait(pair))]
        if self._met(behind[behind.index(Set(pair)) + 1 :]):
            return True
        if pair.loop is None:
            return self._through(pair.set_at + 1, pair.wait_at) or self._met(last)
        loop = pair.loop
        if self._through(pair.set_at + 1, loop.end) or self._through(loop.begin + 1, pair.wait_at):
            return True
        return self._met(last)

    def _through(self, start: int, end: int) -> bool:
        """Go from element `start` to before `end`; loops on the way may run no trip and are passed by."""
        position = start
        while position < end:
            element = self.elements[position]
            if self._met(element.before):
                return True
            if (
                element.kind is ElementKind.LOOP_BEGIN
                and isinstance(element.region, LoopSpan)
                and element.region.end < end
            ):
                position = element.region.end
            elif element.kind is ElementKind.IF_BEGIN and isinstance(element.region, BranchSpan):
                if element.region.end < end:
                    if all(self._apart(*part) for part in element.region.parts):
                        return True
                    position = element.region.end
                elif element.region.else_begin < end:
                    # Whoever goes into the else part does not go through the then part.
                    position = element.region.else_begin
            elif element.kind is ElementKind.THEN_END and isinstance(element.region, BranchSpan):
                # Whoever comes from inside the then part does not go through the else part.
                position = element.region.else_end
            if self._met(self.elements[position].after):
                return True
            position += 1
        return False

    def _apart(self, start: int, end: int) -> bool:
        return _Way(self.elements, self.pair, set(self.passed))._through(start, end)

    def _met(self, marks: list[Mark]) -> bool:
        """Pass marks in their order; tell whether the wait of a pair whose set was passed is among them."""
        for mark in marks:
            if isinstance(mark, Hold) or mark.pair is self.pair or mark.pair.pipes != self.pair.pipes:
                continue
            if isinstance(mark, Set):
                self.passed.add(mark.pair.number)
            elif mark.pair.number in self.passed:
                return True
        return False
