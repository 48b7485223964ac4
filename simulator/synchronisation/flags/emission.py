"""What stands before and after each element once the flags have their ids (docs/reference/pto.md section 5.6)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from castsim.isa.pto import program as pto
from castsim.synchronisation.flags.elements import Element, ElementKind, Hold, Mark, Pair, Set, Wait
from castsim.targets.dataflow import DataflowTarget

Order = pto.SetFlag | pto.WaitFlag | pto.Barrier

DRAIN = pto.Barrier(pto.Pipe.ALL, inserted=True)
"""Waits for everything."""

HINT = "pto.auto_sync_tail_hint"
"""Attribute of a function that asks for another end than a barrier on all pipes."""

_TAILS: dict[str, tuple[Order, ...]] = {
    "mte3-to-s-event0": (
        pto.SetFlag(pto.Pipe.MTE3, pto.Pipe.S, 0, inserted=True),
        pto.WaitFlag(pto.Pipe.MTE3, pto.Pipe.S, 0, inserted=True),
    )
}


@dataclass(frozen=True, slots=True)
class Emitted:
    """What is inserted at the start and the end of a function, and around each of its elements."""

    start: tuple[Order, ...]
    before: tuple[tuple[Order, ...], ...]
    after: tuple[tuple[Order, ...], ...]
    end: tuple[Order, ...]


def emit(elements: list[Element], target: DataflowTarget, tail: tuple[Order, ...]) -> Emitted:
    """Return what is inserted into a program; equal marks at one place become one."""
    carried = [m.pair for e in elements for m in e.before if isinstance(m, Wait) and m.pair.loop and not m.pair.drained]
    around = [pair for pair in carried if not pair.at_loop]
    before, after = [], []
    for element in elements:
        first, last = list(_orders(element.before, target)), list(_orders(element.after, target))
        if element.kind is ElementKind.LOOP_BEGIN:
            first += [_set(pair) for pair in carried if pair.at_loop and pair.loop is element.region]
        elif element.kind is ElementKind.LOOP_END:
            last[:0] = [_wait(pair) for pair in carried if pair.at_loop and pair.loop is element.region]
        before.append(_once(first))
        after.append(_once(last))
    start, end = _once(_set(pair) for pair in around), _once([*(_wait(pair) for pair in around), *tail])
    return Emitted(start, tuple(before), tuple(after), end)


def tail_of(function: pto.Function) -> tuple[Order, ...]:
    """Return what ends a function."""
    hint = next((text.strip('"') for key, text in function.attributes if key == HINT), "")
    return _TAILS.get(hint, (DRAIN,))


def _once(orders: Iterable[Order]) -> tuple[Order, ...]:
    return tuple(dict.fromkeys(orders))


def _orders(marks: list[Mark], target: DataflowTarget) -> Iterable[Order]:
    for mark in marks:
        if isinstance(mark, Hold):
            # The tool leaves out barriers of a vector pipe that keeps the order by itself.
            if mark.pipe != target.pipes.vector or target.synchronisation.inserted_barriers:
                yield pto.Barrier(_pipe(mark.pipe), inserted=True)
        elif mark.pair.drained:
            yield DRAIN
        else:
            yield _set(mark.pair) if isinstance(mark, Set) else _wait(mark.pair)


def _set(pair: Pair) -> pto.SetFlag:
    return pto.SetFlag(_pipe(pair.signaller), _pipe(pair.waiter), pair.event, inserted=True)


def _wait(pair: Pair) -> pto.WaitFlag:
    return pto.WaitFlag(_pipe(pair.signaller), _pipe(pair.waiter), pair.event, inserted=True)


def _pipe(name: str) -> pto.Pipe:
    return pto.Pipe(f"PIPE_{name}")
