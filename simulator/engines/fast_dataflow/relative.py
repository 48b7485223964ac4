"""What of a row of state must agree for two moments to have the same future, by the types of its fields.

Times are compared relative to now, operations by how many were issued since.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from functools import cache
from typing import Annotated, get_type_hints

from castsim.engines.fast_dataflow.codes import NEVER, NO_TIME, NONE
from castsim.execution.dataflow.timing import NO_TICK, TICKS


class Seen(Enum):
    """The rule by which a field is compared."""

    VALUE = auto()
    CYCLE = auto()
    DUE = auto()
    RECENT_CYCLE = auto()
    TICK = auto()
    RECENT_TICK = auto()
    ENTRY = auto()


Value = Annotated[int, Seen.VALUE]
"""A number that must be the same."""
Cycle = Annotated[int, Seen.CYCLE]
"""A cycle; NEVER and NO_TIME are the same at all times."""
Due = Annotated[int, Seen.DUE]
"""A cycle that only counts as long as it is not past; NEVER is the same at all times."""
RecentCycle = Annotated[int, Seen.RECENT_CYCLE]
"""A cycle of which only counts whether it is past."""
Tick = Annotated[int, Seen.TICK]
"""A tick; NO_TICK is the same at all times."""
RecentTick = Annotated[int, Seen.RECENT_TICK]
"""A tick with which only later ones are compared: none is before the cycle that ends now."""
EntryNumber = Annotated[int, Seen.ENTRY]
"""An entry of an operation: how many were issued since."""

State = tuple[object, ...]


@cache
def seen_fields(row: type) -> tuple[tuple[str, Seen], ...]:
    """Return the fields of a class of rows that are compared, and how."""
    hints = get_type_hints(row, include_extras=True)
    return tuple((name, hint.__metadata__[0]) for name, hint in hints.items() if hasattr(hint, "__metadata__"))


def relative(row: object, kind: type, now: int, since: Callable[[int], int]) -> State:
    """Return the fields of a row of a class that must agree; `since` counts operations issued since an entry's."""
    found = []
    tick = now * TICKS
    for name, seen in seen_fields(kind):
        value = getattr(row, name)
        if seen is Seen.CYCLE:
            found.append(value if value in (NEVER, NO_TIME) else value - now)
        elif seen is Seen.DUE:
            found.append(value if value == NEVER else max(value - now, 0))
        elif seen is Seen.RECENT_CYCLE:
            found.append(max(value - now, -1))
        elif seen is Seen.TICK:
            found.append(value if value == NO_TICK else value - tick)
        elif seen is Seen.RECENT_TICK:
            found.append(max(value - tick, -TICKS))
        else:
            found.append(since(value) if seen is Seen.ENTRY else value)
    return tuple(found)


def aged(state: State, kind: type, cycles: int, operations: int) -> State:
    """Return the result of `relative` for a row that has not changed, so many cycles and operations later."""
    older: list[object] = []
    for value, (_, seen) in zip(state, seen_fields(kind), strict=True):
        assert isinstance(value, int)
        if seen is Seen.CYCLE and value not in (NEVER, NO_TIME):
            older.append(value - cycles)
        elif seen is Seen.ENTRY and value != NONE:
            older.append(value + operations)
        else:
            older.append(value)
    return tuple(older)


def shift(row: object, kind: type, cycles: int) -> None:
    """Move the cycles of a row so far into the past."""
    for name, seen in seen_fields(kind):
        if seen is Seen.CYCLE and getattr(row, name) not in (NEVER, NO_TIME):
            setattr(row, name, getattr(row, name) - cycles)
