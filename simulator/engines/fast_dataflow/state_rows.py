"""The vocabulary of the machine's state: symbolic numbers, row classes, the rows of a vector function.

Times are ticks of 1/100 cycle. Rows of functions are named after the objects of `event_function`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from functools import cache
from typing import Annotated, Any, dataclass_transform, get_type_hints

from castsim.execution.timing import Cause
from castsim.execution.transfer_timing import NO_TICK, TICKS

# Numbers that stand for something: causes, kinds of operations, what pipes and the scalar unit are at, why it stops.
#
# Compiled code knows no enumerations, so they are plain integers.

NONE = -1
"""No row; the end of a list."""
NEVER = 1 << 60
"""A cycle that never occurs."""
NO_TIME = -NEVER
"""A missing cycle."""

CAUSES = tuple(Cause)
WIDTH = len(CAUSES)
BUSY = CAUSES.index(Cause.BUSY)
FILL = CAUSES.index(Cause.FILL)
DRAIN = CAUSES.index(Cause.DRAIN)
OPERAND_WAIT = CAUSES.index(Cause.OPERAND_WAIT)
FLAG_WAIT = CAUSES.index(Cause.FLAG_WAIT)
BARRIER = CAUSES.index(Cause.BARRIER)
DEPENDENCE = CAUSES.index(Cause.DEPENDENCE)
STORE_BARRIER = CAUSES.index(Cause.STORE_BARRIER)
BANK_CONFLICT = CAUSES.index(Cause.BANK_CONFLICT)
INITIATION_INTERVAL = CAUSES.index(Cause.INITIATION_INTERVAL)
LOOP_TURNAROUND = CAUSES.index(Cause.LOOP_TURNAROUND)
PORT = CAUSES.index(Cause.PORT)
SERIALISING_BRANCH = CAUSES.index(Cause.SERIALISING_BRANCH)
MEMORY_LATENCY = CAUSES.index(Cause.MEMORY_LATENCY)
MEMORY_BANDWIDTH = CAUSES.index(Cause.MEMORY_BANDWIDTH)
EMPTY = CAUSES.index(Cause.EMPTY)

# Kinds of operations, as the machine tells them apart.
SCALAR, SET, WAIT, FENCE, FENCE_ALL, TRANSFER, VECTOR, FUNCTION, MASK = range(9)
MARKER = NONE
"""The operation of an entry that only waits for a pipe to drain."""

# What a token asks for: a whole instruction, or its beginning, some of its operations, its end one by one.
WHOLE, BEGIN, PART, END = range(4)
CHECKPOINT_TOKEN = -1

# Why the machine stops. GO: it does not.
GO, TOKENS, CHECKPOINT, GROW, DONE, LIMIT, PAUSE, MISSED = range(8)

# What a pipe is doing. FREE: about to take the next operation, if there is one; WORKING: it asks for blocks.
FREE, ARRIVING, AWAITING_OPERANDS, AWAITING_FLAG, AWAITING_DRAIN, WORKING = range(6)

# What the scalar unit waits for.
SCALAR_RUNS, SCALAR_AWAITS_FLAG, SCALAR_AWAITS_DRAIN = range(3)

SCALAR_PIPE = 0
"""Number of the scalar unit among the pipes."""

# `Node.kind` of an access: WRITTEN if it writes; STALE if its execution ended before trips were skipped.
WRITTEN, STALE = 1, 2

# `ExecutionRecord.open`: bits of its state, and above them the number of its operations that have not got their end.
# SCALAR_END: its end so far is one of the scalar unit.
ISSUED, BEGUN, SCALAR_END, ONE_OPEN = 1, 2, 4, 8

# What of a row of state must agree for two moments to have the same future, by the types of its fields.
#
# Times are compared relative to now, operations by how many were issued since.


class ComparisonRule(Enum):
    """The rule by which a field is compared."""

    VALUE = auto()
    CYCLE = auto()
    TICK = auto()
    OPERATION = auto()


Value = Annotated[int, ComparisonRule.VALUE]
"""A number that must be equal."""
Cycle = Annotated[int, ComparisonRule.CYCLE]
"""A cycle; NEVER and NO_TIME are equal at all times."""
Tick = Annotated[int, ComparisonRule.TICK]
"""A tick; NO_TICK is equal at all times."""
OperationIndex = Annotated[int, ComparisonRule.OPERATION]
"""The index of an operation, compared by the number issued since."""

State = tuple[object, ...]


@cache
def seen_fields(row: type) -> tuple[tuple[str, ComparisonRule], ...]:
    """Return the compared fields of a class of rows, with their rules."""
    hints = get_type_hints(row, include_extras=True)
    return tuple((name, hint.__metadata__[0]) for name, hint in hints.items() if hasattr(hint, "__metadata__"))


def relative(row: object, kind: type, now: int, since: Callable[[int], int]) -> State:
    """Return the fields of a row of a class that must agree; `since` counts operations issued since an operation."""
    values = []
    tick = now * TICKS
    for name, seen in seen_fields(kind):
        value = getattr(row, name)
        if seen is ComparisonRule.CYCLE:
            values.append(value if value in (NEVER, NO_TIME) else value - now)
        elif seen is ComparisonRule.TICK:
            values.append(value if value == NO_TICK else value - tick)
        else:
            values.append(since(value) if seen is ComparisonRule.OPERATION else value)
    return tuple(values)


def aged(state: State, kind: type, cycles: int, operations: int) -> State:
    """Return the result of `relative` for a row that has not changed, some cycles and operations later."""
    older: list[object] = []
    for value, (_, seen) in zip(state, seen_fields(kind), strict=True):
        assert isinstance(value, int)
        if seen is ComparisonRule.CYCLE and value not in (NEVER, NO_TIME):
            older.append(value - cycles)
        elif seen is ComparisonRule.OPERATION and value != NONE:
            older.append(value + operations)
        else:
            older.append(value)
    return tuple(older)


def shift(row: object, kind: type, cycles: int) -> None:
    """Move the cycles of a row into the past by some cycles."""
    for name, seen in seen_fields(kind):
        if seen is ComparisonRule.CYCLE and getattr(row, name) not in (NEVER, NO_TIME):
            setattr(row, name, getattr(row, name) - cycles)


# Classes of rows: integers with names, as dataclasses with slots have them, without what these take to be made.
#
# Some thirty classes are made whenever the engine is imported, and most programs use half of them. So the initialiser
# of a class is written when its first row is made.


@dataclass_transform()
class _RowType(type):
    """Gives a class a slot for every annotated field, and keeps the defaults for its initialiser."""

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> _RowType:
        names = tuple(body.get("__annotations__", ()))
        defaults = {field: body.pop(field) for field in names if field in body}
        created = super().__new__(cls, name, bases, {**body, "__slots__": names})
        created.__defaults = defaults
        return created

    __defaults: dict[str, int]

    def write_initialiser(cls) -> Callable[..., None]:
        """Return a function that sets all fields of a row, in order or by name."""
        parameters = [f"{name}={cls.__defaults[name]}" if name in cls.__defaults else name for name in names_of(cls)]
        lines = [f"    self.{name} = {name}" for name in names_of(cls)]
        namespace: dict[str, Any] = {}
        source = "\n".join((f"def initialise(self, {', '.join(parameters)}):", *lines))
        exec(source, namespace)
        initialise: Callable[..., None] = namespace["initialise"]
        return initialise


class StateRow(metaclass=_RowType):
    """A row; its fields are integers."""

    def __init__(self, *values: int, **named: int) -> None:
        kind = type(self)
        initialise = kind.write_initialiser()
        kind.__init__ = initialise  # type: ignore[method-assign]  # the next rows get it at once
        initialise(self, *values, **named)


def names_of(row: type) -> tuple[str, ...]:
    """Return the fields of a class of rows, in order."""
    names: tuple[str, ...] = row.__dict__["__slots__"]
    return names


# ------------------------------------------------------------------------------------------ what a function is made of


class FunctionRow(StateRow):
    """A function: `numbers` has a cause and an end cycle after the launch for each of its spans.

    From `first_access` on they are its accesses, in words (`function_timing.launch_reads`).
    """

    first_span: int = 0
    spans: int = 0
    first_access: int = 0
    accesses: int = 0
