"""What a program leaves unordered, by brute force: every trip unrolled, every byte a set member, every path searched.

Written from the rules of flags and barriers (docs/reference/a2a3.md section 7) over start and end of every instruction:
pipes start in order, all but the vector pipe do one thing after the other, a signal is sent when everything before it
on its pipe has ended, the k-th wait takes the k-th signal, and a barrier on all pipes holds whatever is issued after
it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from castsim.execution.pipe_operations import FlagSignal, FlagWait, PipeBarrier
from castsim.execution.tree import Block, Loop, Lowered, Tree

VECTOR = "V"


@dataclass
class Event:
    """One executed instruction: `touched` are (space, bytes, write)."""

    number: int
    pipe: str
    operation: object
    touched: list[tuple[str, frozenset[int], bool]]


@dataclass
class Verdict:
    """What was found: instructions of unordered conflicts in program order, flags that do not match, the end."""

    races: set[tuple[int, int]] = field(default_factory=set)
    barriers: set[tuple[int, int]] = field(default_factory=set)
    deadlock: bool = False
    pending_twice: bool = False
    left_over: bool = False
    unfinished: bool = False

    @property
    def clean(self) -> bool:
        return self == Verdict()


def judge(tree: Tree, hazards: tuple[str, ...], unordered: int = 10**9) -> Verdict:
    """Judge a program; `hazards` are those between vector instructions that need a barrier.

    They need none over `unordered` bytes or more without gaps that the first writes and the second reads.
    """
    events = list(unrolled(tree))
    verdict = Verdict()
    _count_flags(events, verdict)
    graph = _Graph(events)
    if graph.deadlock:
        verdict.deadlock = True
        return verdict
    works = [k for k, event in enumerate(events) if event.touched]
    for one, other in itertools.combinations(works, 2):
        first, second = events[one], events[other]
        for (space, mine, write), (there, theirs, rewrites) in itertools.product(first.touched, second.touched):
            if space != there or not (write or rewrites) or not mine & theirs:
                continue
            if graph.before(one, other) or graph.before(other, one):
                continue
            if first.pipe != second.pipe:
                verdict.races.add((first.number, second.number))
            elif first.pipe == VECTOR and _hazard(write, rewrites) in hazards:
                read = [each for where, each, writes in second.touched if where == space and not writes]
                whole = max(mine) - min(mine) + 1 == len(mine) >= unordered
                if whole and mine == theirs and mine in read:
                    continue
                verdict.barriers.add((first.number, second.number))
    verdict.unfinished = any(not graph.before_end(k) for k in works)
    return verdict


def _hazard(write: bool, rewrites: bool) -> str:
    return f"{'write' if rewrites else 'read'} after {'write' if write else 'read'}"


def _count_flags(events: list[Event], verdict: Verdict) -> None:
    pending: dict[tuple, int] = {}
    for event in events:
        match event.operation:
            case FlagSignal(pipe, waiter, number):
                key = (pipe, waiter, number)
                pending[key] = pending.get(key, 0) + 1
                verdict.pending_twice |= pending[key] > 1
            case FlagWait(pipe, signaller, number):
                key = (signaller, pipe, number)
                pending[key] = pending.get(key, 0) - 1
    verdict.left_over = any(count > 0 for count in pending.values())


class _Graph:
    """Start and end of event k are nodes 2 k and 2 k + 1; the last node is the end of the scalar unit."""

    def __init__(self, events: list[Event]) -> None:
        self.count = len(events)
        self.edges: dict[int, set[int]] = {}
        self.deadlock = False
        self.last: dict[str, int] = {}
        self.scalar: int | None = None
        self.ended: dict[str, list[int]] = {}
        self._flags(events, {})
        for k, event in enumerate(events):
            self._edge(2 * k, 2 * k + 1)
            if self.scalar is not None:
                self._edge(self.scalar, 2 * k)
            if event.pipe in ("S", "ALL"):
                self._issuer(k, event.pipe)
            else:
                self._queue(k, event)
        if self.scalar is not None:
            self._edge(self.scalar, 2 * len(events))
        self._close()

    def _issuer(self, k: int, pipe: str) -> None:
        self.scalar = 2 * k + 1
        for node in itertools.chain(self.last.values(), *self.ended.values()) if pipe == "ALL" else ():
            self._edge(node, self.scalar)

    def _queue(self, k: int, event: Event) -> None:
        start, end, pipe = 2 * k, 2 * k + 1, event.pipe
        if pipe in self.last:
            self._edge(self.last[pipe], start)
        self.last[pipe] = start
        before = self.ended.setdefault(pipe, [])
        if isinstance(event.operation, FlagWait):
            self.last[pipe] = end  # what follows starts when it is over
            return
        waited = end if isinstance(event.operation, FlagSignal) else start
        if event.operation is not None or pipe != VECTOR:
            for node in before:
                self._edge(node, waited)
        if event.operation is None:
            before.append(end)

    def _flags(self, events: list[Event], signals: dict[tuple, list[int]]) -> None:
        for k, event in enumerate(events):
            if isinstance(event.operation, FlagSignal):
                flag = event.operation
                signals.setdefault((flag.pipe, flag.waiter, flag.event), []).append(2 * k + 1)
        for k, event in enumerate(events):
            if isinstance(event.operation, FlagWait):
                flag = event.operation
                there = signals.get((flag.signaller, flag.pipe, flag.event), [])
                if there:
                    self._edge(there.pop(0), 2 * k + 1)
                else:
                    self.deadlock = True

    def _edge(self, a: int, b: int) -> None:
        self.edges.setdefault(a, set()).add(b)

    def _close(self) -> None:
        """Compute what every node reaches, as bit sets, in reverse topological order; a cycle is a deadlock."""
        nodes = range(2 * self.count + 1)
        indegree = dict.fromkeys(nodes, 0)
        for targets in self.edges.values():
            for target in targets:
                indegree[target] += 1
        ready, order = [node for node in nodes if not indegree[node]], []
        while ready:
            node = ready.pop()
            order.append(node)
            for target in self.edges.get(node, ()):
                indegree[target] -= 1
                if not indegree[target]:
                    ready.append(target)
        self.deadlock |= len(order) < len(nodes)
        self.reach = dict.fromkeys(nodes, 0)
        for node in reversed(order):
            for target in self.edges.get(node, ()):
                self.reach[node] |= self.reach[target] | 1 << target

    def before(self, one: int, other: int) -> bool:
        return bool(self.reach[2 * one + 1] >> (2 * other) & 1)

    def before_end(self, one: int) -> bool:
        return bool(self.reach[2 * one + 1] >> (2 * self.count) & 1)


def unrolled(tree: Tree):
    """Yield every executed instruction."""
    yield from _unroll(tree.root, [()] * _size(tree.root), tree)


def _unroll(node, moved, tree: Tree):
    if isinstance(node, Loop):
        for trip in range(node.trips):
            rows = [
                tuple(a + trip * b for a, b in zip(row, step, strict=True)) if row else tuple(trip * b for b in step)
                for row, step in zip(moved, node.steps, strict=True)
            ]
            yield from _unroll(node.body, rows, tree)
    elif isinstance(node, Block):
        for item in node.items:
            yield from _unroll(item, moved[: _size(item)], tree)
            moved = moved[_size(item) :]
    else:
        only = node.body.items[0] if len(node.body.items) == 1 else None
        flag = only if isinstance(only, FlagSignal | FlagWait | PipeBarrier) else None
        touched = [
            (access.space, _bytes(access, shift), access.write)
            for access, shift in zip(node.accesses, moved[0] or (0,) * len(node.accesses), strict=True)
        ]
        pipe = flag.pipe if flag else tree.instructions[node.instruction].pipe
        yield Event(node.instruction, pipe, flag, touched)


def _size(node) -> int:
    if isinstance(node, Block):
        return sum(_size(item) for item in node.items)
    if isinstance(node, Loop):
        return _size(node.body)
    return 1 + _size(node.body) if isinstance(node, Lowered) else 1


def _bytes(access, shift: int) -> frozenset[int]:
    length = access.end - access.start - sum((count - 1) * distance for count, distance in access.runs)
    starts = [0]
    for count, distance in access.runs:
        starts = [start + k * distance for start in starts for k in range(count)]
    return frozenset(access.start + shift + start + k for start in starts for k in range(length))
