"""Event ids for planned flags.

A pair of pipes has a few ids. An id is taken from where its flag is set to where it is waited for, in program order;
a flag around a loop takes its id for the whole loop. The lowest free id is chosen. If none is free, the flag joins the
youngest one of its pair that is still taken in the same block: that one is set later, and waited for no later than the
earlier of the two. If there is no such flag either, a barrier on all pipes does its work. Which ids the vendor's tool
chooses, and what it does when they run out, is not published; times depend on the latter only.
"""

from __future__ import annotations

from dataclasses import dataclass

from castsim.synchronisation.flags.planning import BackEdge, BlockPlan, LoopPlan, Pair, PlannedFlag

_Taken = dict[Pair, frozenset[int]]


def assign_events(plan: BlockPlan, event_ids: int) -> None:
    """Give every flag of a plan an id below `event_ids`, or replace it; the plan is changed in place."""
    _Assignment(event_ids).block(plan, {})


@dataclass(slots=True)
class _Assignment:
    event_ids: int

    def block(self, plan: BlockPlan, taken: _Taken) -> None:
        """Assign the flags of a block within which the ids `taken` belong to others."""
        live: dict[Pair, list[PlannedFlag]] = {}
        around: dict[Pair, list[tuple[int, int]]] = {}
        self._loops(plan, taken)
        for number, loop in plan.loops.items():
            for edge in loop.back_edges:
                around.setdefault(edge.pair, []).append((number, edge.event))
        kept: list[PlannedFlag] = []
        for flag in sorted(plan.flags, key=lambda flag: (flag.after, flag.before)):
            same = live.setdefault(flag.pair, [])
            same[:] = [other for other in same if other.before > flag.after]
            blocked = {event for loop, event in around.get(flag.pair, ()) if flag.after < loop < flag.before}
            busy = {other.event for other in same} | taken.get(flag.pair, frozenset()) | blocked
            self._give(plan, flag, same, busy, kept)
        plan.flags = kept
        for number, loop in plan.loops.items():
            self.block(loop.body, self._inside(plan, number, loop, taken))

    def _loops(self, plan: BlockPlan, taken: _Taken) -> None:
        """Give the back edges of the loops of a block their ids, which the flags around the loops avoid."""
        for loop in plan.loops.values():
            kept: list[BackEdge] = []
            for edge in loop.back_edges:
                busy = {other.event for other in kept if other.pair == edge.pair} | taken.get(edge.pair, frozenset())
                edge.event = self._lowest(busy)
                if edge.event < self.event_ids:
                    kept.append(edge)
                else:
                    loop.drain_at_top = True
            loop.back_edges = kept

    def _give(
        self, plan: BlockPlan, flag: PlannedFlag, same: list[PlannedFlag], busy: set[int], kept: list[PlannedFlag]
    ) -> None:
        """Give one flag the lowest free id, let it join another, or put a barrier in its place."""
        event = self._lowest(busy)
        if event < self.event_ids:
            flag.event = event
            same.append(flag)
            kept.append(flag)
        elif same:
            youngest = max(same, key=lambda other: other.after)
            youngest.after = flag.after
            youngest.before = min(youngest.before, flag.before)
        else:
            plan.drains.add(flag.before)

    def _inside(self, plan: BlockPlan, number: int, loop: LoopPlan, taken: _Taken) -> _Taken:
        """Return the ids that the body of loop `number` cannot use."""
        found = {pair: set(events) for pair, events in taken.items()}
        for flag in plan.flags:
            if flag.after < number < flag.before:
                found.setdefault(flag.pair, set()).add(flag.event)
        for edge in loop.back_edges:
            found.setdefault(edge.pair, set()).add(edge.event)
        return {pair: frozenset(events) for pair, events in found.items()}

    def _lowest(self, busy: set[int]) -> int:
        """Return the lowest id that is not busy, `event_ids` if there is none."""
        return next((event for event in range(self.event_ids) if event not in busy), self.event_ids)
