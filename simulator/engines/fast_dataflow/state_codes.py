"""Numbers that stand for something: causes, kinds of operations, what pipes and the scalar unit are at, why it stops.

Compiled code knows no enumerations, so they are plain integers.
"""

from __future__ import annotations

from castsim.execution.timing import Cause

NONE = -1
"""No row; the end of a list."""
NEVER = 1 << 60
"""A cycle that does not come."""
NO_TIME = -NEVER
"""A cycle that is not there."""

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

# `PendingStore.ready`: its trip has not computed, it has but is not released, the store may leave.
EXPECTED, COMPUTED, RELEASED = range(3)

# Phases of the front end of a vector function, in their order.
LAUNCHING, SETTING_UP, LOOPING, UNPACKING, UPDATING, OPENING = range(6)
ROW_TURNING, ROW_BRANCHING, BRANCHING, SENDING, HOLDING, TURNING, CLOSED = range(6, 13)
