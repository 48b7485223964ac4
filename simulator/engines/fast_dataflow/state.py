"""The state of a run: rows of named integers, in tables that refer to each other by row index.

A row is named after the corresponding object of the event engine (`event_dataflow`, `event_function`). While a
run is interpreted, the tables of `MachineState` are lists of rows; compiled code sees the same rows under the same
names as records in raw memory (`execution_rows`, `compiled_machine`). So every field is an integer, lists are linked
by `next`, and NONE ends them.

The type of a field is its comparison rule for earlier states (`relative`): `int` is not compared, or not by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from castsim.engines.fast_dataflow import state_rows
from castsim.engines.fast_dataflow.state_rows import (
    DRAIN,
    FREE,
    NEVER,
    NO_TIME,
    NONE,
    SCALAR_RUNS,
    Cycle,
    OperationIndex,
    StateRow,
    Tick,
    Value,
)
from castsim.execution.transfer_timing import NO_TICK

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
    functions: list[state_rows.FunctionRow]
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
