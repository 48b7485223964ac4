"""Where the state of a run lies: one memory of integers, so that the same code runs interpreted and compiled.

`m` is a list in interpreted runs and an array in compiled ones. It begins with registers, a few cells for every pipe,
and the causes of all pipes. Everything else is a row somewhere behind, and is named by the address of its first cell:
an *entry* is an operation on its way, a *node* an item of a linked list, a *flag*, a *space* of addresses, an
*operation* or a *lowered* instruction what the program consists of. `NONE` ends a list. Only executions are named by
number, in program order: their rows lie in a ring (`executions`).
"""

from __future__ import annotations

from simulator.timing import Cause

Cells = list[int]
"""The memory; an int64 array in compiled runs."""

NONE = -1
NEVER = 1 << 60
"""A time that does not come."""
NO_TIME = -NEVER
"""A time that is not there."""

CAUSES = tuple(Cause)
WIDTH = len(CAUSES)
BUSY = CAUSES.index(Cause.BUSY)
FILL = CAUSES.index(Cause.FILL)
DRAIN = CAUSES.index(Cause.DRAIN)
OPERAND_WAIT = CAUSES.index(Cause.OPERAND_WAIT)
FLAG_WAIT = CAUSES.index(Cause.FLAG_WAIT)
BARRIER = CAUSES.index(Cause.BARRIER)
BANK_CONFLICT = CAUSES.index(Cause.BANK_CONFLICT)
INITIATION_INTERVAL = CAUSES.index(Cause.INITIATION_INTERVAL)
LOOP_TURNAROUND = CAUSES.index(Cause.LOOP_TURNAROUND)
PORT = CAUSES.index(Cause.PORT)
SERIALISING_BRANCH = CAUSES.index(Cause.SERIALISING_BRANCH)
MEMORY_LATENCY = CAUSES.index(Cause.MEMORY_LATENCY)
MEMORY_BANDWIDTH = CAUSES.index(Cause.MEMORY_BANDWIDTH)
EMPTY = CAUSES.index(Cause.EMPTY)

# Kinds of operations, as the machine tells them apart.
SCALAR, SET, WAIT, FENCE, FENCE_ALL, TRANSFER, VECTOR, FUNCTION = range(8)
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

# `N_KIND` of an access: WRITTEN if it writes; STALE if its execution ended before trips were skipped.
WRITTEN, STALE = 1, 2

# `X_OPEN`: bits of an execution's state, and above them the number of its operations that have not got their end.
# SCALAR_END: its end so far is one of the scalar unit.
ISSUED, BEGUN, SCALAR_END, ONE_OPEN = 1, 2, 4, 8

SCALAR_PIPE = 0
"""Number of the scalar unit among the pipes."""
MOST_PIPES = 16

(
    NOW,
    CLOCK,
    BLOCKED,
    BLOCKED_ENTRY,
    RESUMED_AT,
    UNDRAINED,
    DRAINED_AT,
    DEMANDS,
    URGENT,
    PATIENCE,
    CROWDED,
    AMISS,
    REMAINING,
    ALL_ISSUED,
    BEYOND,
    NO_MORE,
    OPERATION,
    OPERATION_END,
    CLOSING,
    EXECUTION,
    INDEX,
    ENTRY_FREE,
    ENTRY_SPARE,
    NODE_FREE,
    NODE_SPARE,
    LIVE,
    MOST_ACCESSES,
    WRITE_HEAD,
    WRITE_COUNT,
    CHANGED,
    SIGNIFICANT,
    LATEST,
    FINISHED,
    PAUSE_AT,
    MAXIMUM,
    NEXT_REQUEST,
    RECORDING,
    INTERLOCKED,
    PERIOD,
    GROUPED,
    READS_PER_GROUP,
    READS_BESIDE_WRITE,
    WRITES_PER_GROUP,
    EXCLUSIVE_PORTS,
    EXCLUSIVE_BANKS,
    PIPES,
    TOKEN,
    TOKEN_END,
    EXECUTIONS_AT,
    EXECUTION_MASK,
    FIRST_EXECUTION,
    WRITES_AT,
    WRITE_MASK,
    PORT_OF,
    BANK_OF,
    PORT_FREE,
    BANK_FREE,
    BANKS,
    FLIGHTS,
    PENDING,
    READY,
    SPECIAL,
) = range(62)
"""Registers. `..._AT`, `PORT_OF` and the like are addresses of tables.

`DEMANDS` are the pipes that want something to do now, the patient ones left out; `URGENT`: nobody else has anything
to do. The scalar unit does not fill queues beyond `PATIENCE` entries; `CROWDED` queues are that full. `AMISS`: a pipe
that was served late should have begun to ask for blocks in the past.
`EXECUTION` is the row of the execution being issued and `INDEX` that of the next operation; `SIGNIFICANT` counts how
often a time of the scalar unit has delayed anything; `LATEST` is the latest end of an operation of a pipe.
`BANK_FREE` holds when each of the `BANKS` is free for a read, then when each is free for a write.
"""

# Cells of every pipe; queue, operations in flight and actions that wait for these are lists of entries.
(
    P_STATUS,
    P_WAKE,
    P_LOCAL,
    P_REQUEST,
    P_CURSOR,
    P_REMAINING,
    P_DEMANDS,
    P_PATIENT,
    P_QUEUED,
    P_VERSION,
    P_CURRENT,
    P_QUEUE,
    P_QUEUE_END,
    P_FLIGHT,
    P_FLIGHT_END,
    P_ACTION,
    P_ACTION_END,
    P_DRAINING,
    P_DRAIN_END,
    P_LATEST,
    P_LATEST_END,
    P_STEP,
    P_BLOCK,
    P_STREAM,
    P_PASSED,
    P_BEGAN,
    P_BEGAN_AT,
    P_BEGAN_INDEX,
    P_BEGAN_ARRIVAL,
) = range(62, 62 + 29 * MOST_PIPES, MOST_PIPES)

CAUSES_AT = 62 + 29 * MOST_PIPES
"""Cycles of every pipe by cause, `WIDTH` cells each."""
FUNCTION_AT = CAUSES_AT + MOST_PIPES * WIDTH
"""Registers of the vector function at work (`function_layout`)."""
FUNCTION_REGISTERS = 36
HEAP = FUNCTION_AT + FUNCTION_REGISTERS
"""Where rows begin."""

# Entries; where operations are recorded, their causes follow.
(
    E_OPERATION,
    E_EXECUTION,
    E_INDEX,
    E_ARRIVAL,
    E_START,
    E_END,
    E_KNOWN,
    E_PENDING,
    E_WRITTEN,
    E_DUE,
    E_NEXT,
    E_BEHIND,
    E_CAUSES,
) = range(13)
# Nodes: signals of a flag, accesses in flight, needs of an execution.
N_FIRST, N_LAST, N_EXECUTION, N_KIND, N_NEXT, NODE_WIDTH = range(6)
# Executions.
X_INSTRUCTION, X_START, X_END, X_OPEN, X_NEEDS, EXECUTION_WIDTH = range(6)
# Flags, and spaces of addresses.
FLAG_SIGNALS, FLAG_SIGNALS_END, FLAG_WAITER, FLAG_SCALAR, FLAG_VERSION, FLAG_WIDTH = range(6)
SPACE_FIRST, SPACE_LAST, SPACE_WIDTH = range(3)
# Operations, what they are made of behind them; lowered instructions: their operations, then their accesses.
O_NUMBER, O_KIND, O_PIPE, O_COST, O_CAUSE, O_FLAG, O_VALUES = range(7)
L_INSTRUCTION, L_COUNT, L_ACCESSES, L_OPERATIONS = range(4)
A_SPACE, A_START, A_END, A_WRITE, ACCESS_WIDTH = range(5)
# Results on their way to the buffer lie in a ring, in the order in which they ask.
W_TIME, W_ENTRY, WRITE_WIDTH = range(3)
