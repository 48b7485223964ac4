"""The state of a run: rows of named integers, in tables that refer to each other by row index.

A row is named after the corresponding object of the event engine (`event_dataflow`, `event_function`). While a
run is interpreted, the tables of `MachineState` are lists of rows; compiled code sees the same rows under the same
names as records in raw memory (`execution_rows`, `compiled_machine`). So every field is an integer, lists are linked
by `next`, and NONE ends them. Times are ticks of 1/100 cycle.

The type of a field is its comparison rule for earlier states (`relative`): `int` is not compared, or not by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum, auto
from functools import cache
from typing import Annotated, Any, TypeVar, dataclass_transform, get_type_hints

from castsim.execution.timing import Cause
from castsim.execution.transfer_timing import NO_TICK, TICKS

# Symbolic numbers: causes, kinds of operations, what pipes and the scalar unit are at, why it stops.
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


# ----------------------------------------------------------------------------------------------------------- at work


class IssuerRow(StateRow):
    """The scalar unit; `clock` is the cycle in which it starts its next operation.

    `wait` is the reason of its wait, with the operation `waiting`, and `resumed_at` when it continues. Operations from
    `next` to `end` of `numbers` are those of the current execution, `closing` whether that is complete with them.
    `demands` counts the pipes that want work now, without patient ones; `urgent`: nothing else has
    anything to do. From cycle `until` on it issues nothing; `eager`: before that it issues even without demand.
    `significant` counts how often one of its times has delayed anything; `beyond` is the operation that reached
    the cycle limit.
    """

    clock: int = 0
    wait: int = SCALAR_RUNS
    waiting: int = NONE
    resumed_at: int = NONE
    undrained: int = 0
    drained_at: int = 0
    demands: int = 0
    urgent: int = 0
    until: int = NEVER
    eager: int = 0
    remaining: int = 0
    all_issued: int = 0
    no_more: int = 0
    beyond: int = NONE
    token: int = 0
    token_end: int = 0
    next: int = 0
    end: int = 0
    closing: int = 0
    execution: int = NONE
    index: int = 0
    significant: int = 0


class PipeRow(StateRow):
    """One in-order pipe: its activity since cycle `local`, and when it continues (`wake`) or requests next (`request`).

    Queue, operations in flight and actions that wait for these are lists of entries. `began...`: the execution whose
    start its latest operation moved. `version` counts changes; `patient`: it may wait until the loop ends;
    `reach`: cycles that memory takes to answer overlapping transfers; `behind`: the cause of its remaining earlier
    work.
    """

    status: Value = FREE
    wake: int = 0
    local: int = 0
    request: Cycle = NEVER
    remaining: int = 0
    demands: int = 0
    patient: int = 0
    reach: int = 0
    behind: int = DRAIN
    queued: int = 0
    version: int = 0
    current: int = NONE
    queue: int = NONE
    queue_end: int = NONE
    in_flight: int = NONE
    in_flight_end: int = NONE
    action: int = NONE
    action_end: int = NONE
    began: int = NONE
    began_at: int = 0
    began_index: int = 0
    began_arrival: int = 0


class AccountRow(StateRow):
    """The cycle up to which a pipe's cycles are attributed, and its remaining earlier work: until when, of which
    operation (by index; NONE if it is not needed).
    `answered` is when memory can answer the transfer at the head; `left` is when the last vector instruction had begun
    all of its repeats, or a write of the mask arrived at an idle pipe, `mask_ready` when the last mask takes effect.

    Its cycles by cause are `MachineState.causes`. If segments are reported, `segment...` describes the cycles before
    the cursor.
    """

    cursor: Cycle = 0
    drain_end: Cycle = NO_TIME
    draining: OperationIndex = NONE
    latest_end: Cycle = NO_TIME
    latest: OperationIndex = NONE
    answered: Cycle = NO_TIME
    left: Cycle = NO_TIME
    mask_ready: Cycle = NO_TIME
    segment_start: int = 0
    segment_cause: int = NONE
    segment_index: int = NONE


class SegmentRow(StateRow):
    """Cycles [start, end) of a pipe for a cause, on behalf of the operation with an index (NONE: of none)."""

    pipe: int = 0
    start: int = 0
    end: int = 0
    cause: int = 0
    index: int = NONE


class ProgressRow(StateRow):
    """The progress of a pipe with a transfer (burst, block of it) or a vector instruction (repeat, those delayed).

    Shared memory has `served` the last block by that tick.
    """

    step: Value = 0
    block: Value = 0
    stream: Cycle = 0
    passed: Cycle = NO_TIME
    served: Tick = NO_TICK


class EntryRow(StateRow):
    """An operation in flight. `known` is one more than the cycle since which its end is certain, 0 if it is not.

    `pending` repeats have not written, `written` is when the others had, `due` when a vector instruction or an action
    should end. An action waits for all operations up to index `behind`.
    """

    operation: int = NONE
    execution: int = NONE
    index: int = NONE
    arrival: int = 0
    start: int = 0
    end: int = 0
    known: int = 0
    pending: int = 0
    written: int = 0
    due: int = 0
    behind: int = NONE
    next: int = NONE


class ExecutionRow(StateRow):
    """One executed instruction; `open` is its state (`ISSUED` ...), `needs` a list of the executions it waits for."""

    instruction: int = 0
    start: int = 0
    end: int = 0
    open: int = 0
    needs: int = NONE


class NodeRow(StateRow):
    """An item of a list: a signal (its cycle is `first`), an access in flight (its bytes), a need (`first` is its
    rank in the order).
    """

    first: int = 0
    last: int = 0
    execution: int = NONE
    kind: int = 0
    next: int = NONE


class FlagRow(StateRow):
    """A flag between two units: its signals, its waiter, and whether the scalar unit sets it."""

    signals: int = NONE
    signals_end: int = NONE
    waiter: int = NONE
    from_scalar: int = 0
    version: int = 0


class SpaceRow(StateRow):
    """An address space: the accesses in flight, in program order."""

    first: int = NONE
    last: int = NONE


class ResultRow(StateRow):
    """Results of a repeat on their way to the buffer, in a ring, in the order of their requests."""

    time: int = 0
    entry: int = NONE


class PortsRow(StateRow):
    """Ports and banks of the buffer; addresses repeat after a `period` of blocks.

    `exclusive_ports` and `exclusive_banks` say which accesses exclude each other. `grouped`: instead, a group serves
    a limited number of accesses per cycle (`reads_per_group`, `reads_beside_write`, `writes_per_group`), without banks;
    those of the latest function, `launch`, take precedence from cycle `launched` on.
    """

    period: int = 0
    banks: int = 0
    grouped: int = 0
    exclusive_ports: int = 0
    exclusive_banks: int = 0
    reads_per_group: int = 0
    reads_beside_write: int = 0
    writes_per_group: int = 0
    launch: int = NONE
    launched: int = 0


# ------------------------------------------------------------------------------------------- what programs consist of


class OperationRow(StateRow):
    """An operation: the scalar unit's cycles and cause, its row in the table of its kind."""

    kind: int
    pipe: int
    cost: int
    cause: int
    flag: int
    row: int


class LoweredRow(StateRow):
    """An instruction, or part of one: its operations are in `numbers`, its accesses in `accesses`."""

    instruction: int
    first: int
    count: int
    first_access: int
    accesses: int


class AccessRow(StateRow):
    """Bytes of a space that an instruction touches."""

    space: int
    start: int
    end: int
    write: int


class TransferRow(StateRow):
    """Latency `ahead` of its stream and `behind` it, `rate` bytes `per` cycles, blocks, cycles of its stream.

    All `blocks` take `turns` ticks of shared memory.
    `overlaps`: the pipe continues when the stream ends.
    """

    ahead: int
    behind: int
    rate: int
    per: int
    write: int
    address: int
    pitch: int
    bursts: int
    burst_bytes: int
    streaming: int
    overlaps: int
    blocks: int = 0
    turns: int = 0


class VectorRow(StateRow):
    """A strided-repeat instruction; of its `walks`, from `first_walk` on, the first is the destination.

    Cycles lost by the number of delayed repeats are `numbers` from `lost` on.
    """

    head: int
    interval: int
    rest: int
    lost: int
    tail: int
    late: int
    delay: int
    repeats: int
    always: int
    sources: int
    first_walk: int


class WalkRow(StateRow):
    """The blocks of one operand: address, step between repeats, distances in blocks, which are `numbers`."""

    address: int
    step: int
    first: int
    count: int


# -------------------------------------------------------------------------------------------------------- the machine


class MachineState(StateRow):
    """One run. `entry_free` and `node_free` are lists of unused rows, `..._spare` their lengths.

    `causes` are the cycles of every pipe by cause, `WIDTH` for each; `operation_causes` those of operations, by index,
    while `recording`. While `telling`, `segments` are the complete segments and `segment_count` is their number;
    the run stops when they exceed `segment_most`. Time does not pass cycle `maximum`; nor does the scalar unit, unless
    `telling`. `late` is whether a pipe that was served late should already have requested blocks.
    `changed` is whether an end became known that others may wait for. The core's part of shared memory is free from
    tick `memory_free` on. Executions and pending results are in
    rings.

    `port_of` has the ports of all blocks for reads, then for writes; `bank_free` when banks are free for a read,
    then for a write (of groups: see `pipe_steps`).
    """

    issuer: IssuerRow
    ports: PortsRow
    pipes: list[PipeRow]
    accounts: list[AccountRow]
    progress: list[ProgressRow]
    causes: list[int]
    entries: list[EntryRow]
    operation_causes: list[int]
    segments: list[SegmentRow]
    executions: list[ExecutionRow]
    nodes: list[NodeRow]
    flags: list[FlagRow]
    spaces: list[SpaceRow]
    results: list[ResultRow]
    tokens: list[int]
    numbers: list[int]
    operations: list[OperationRow]
    lowered: list[LoweredRow]
    accesses: list[AccessRow]
    transfers: list[TransferRow]
    vectors: list[VectorRow]
    walks: list[WalkRow]
    port_of: list[int]
    bank_of: list[int]
    port_free: list[int]
    bank_free: list[int]
    functions: list[FunctionRow]
    now: int = 0
    maximum: int = 0
    recording: int = 0
    telling: int = 0
    segment_count: int = 0
    segment_most: int = 0
    interlocked: int = 0
    pipe_count: int = 0
    late: int = 0
    changed: int = 0
    memory_free: int = 0
    latest: int = NO_TIME
    finished: int = 0
    pause_at: int = 0
    entry_free: int = NONE
    entry_spare: int = 0
    node_free: int = NONE
    node_spare: int = 0
    live: int = 0
    most_accesses: int = 0
    execution_mask: int = NONE
    first_execution: int = 0
    result_head: int = 0
    result_count: int = 0
    result_mask: int = NONE


Linked = TypeVar("Linked", EntryRow, NodeRow)


def chain(rows: Sequence[Linked], first: int) -> Iterator[Linked]:
    """Yield the rows of a list that begins with row `first`."""
    while first != NONE:
        row = rows[first]
        first = row.next
        yield row
