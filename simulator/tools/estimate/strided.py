"""Closed forms for the cycles of strided-repeat casts whose operands do not delay each other.

The scalar unit issues without waiting, so the arrival of every instruction is a sum. Within the limits that `of` checks
on the facts, the vector pipe never catches up with it except between the whole repeats and the remaining columns, and
only counts of repeats, fills and drains remain (docs/reference/a2a3.md sections 2.3, 3.4, 6). No block waits for
another of its own operand: the blocks of one repeat lie in different groups, and no two repeats request a port in the
same cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from castsim.execution.interpreter.lowerer import LoweredInstruction
from castsim.execution.timing import Cause
from castsim.execution.tree import Block
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import CastsimError, IllegalError
from castsim.isa.formats import Format
from castsim.machines.mechanisms import CastAsked
from castsim.machines.strided.kernel_sequence import KernelSequence
from castsim.machines.strided.plan import CastPlan, element_steps, plan_cast, timing_of
from castsim.machines.strided.strided_instructions import Pace, Stream, StridedInstruction, always_fills, pace_of
from castsim.targets.loader import Target
from castsim.targets.strided_repeat import StridedOperation, StridedRepeatTarget
from castsim.tools.estimate.cast_estimates import (
    CastCycles,
    CastShape,
    Number,
    NumberFunctions,
    TileCastRequest,
    timed_alone,
)
from castsim.tools.estimate.tile_estimates import TileEstimator

_SEQUENCES = ("via_i32", "chunked", "chunked_masked")
"""Sequences through scratch that have a closed form: barriers stand between the instructions of a call or sub-chunk."""


class Times(NamedTuple):
    """The times of one instruction by its number of repeats, from 0 to the maximum per call."""

    head: int
    busy: tuple[int, ...]
    tail: tuple[int, ...]

    @classmethod
    def of(cls, target: StridedRepeatTarget, row: str) -> Times:
        """Return the times of a row."""
        paces: list[Pace] = [pace_of(target, row, repeats) for repeats in range(target.repeat.max_repeats + 1)]
        busy = tuple(repeats * pace.interval + pace.rest for repeats, pace in enumerate(paces))
        return cls(paces[0].head, busy, tuple(pace.tail for pace in paces))


class Calls(NamedTuple):
    """The calls of the conversion into which a shape splits: whole repeats of rows, then the rest of all rows together.

    A row has `row_full` calls of the most repeats and one of `row_last` (0: none); the rest has `rest_full` and one of
    `rest_last`.
    """

    rows: Number
    row_full: Number
    row_last: Number
    rest_full: Number
    rest_last: Number
    heads: Number
    tails: Number


def estimator(target: StridedRepeatTarget, asked: CastAsked) -> TileEstimator:
    """Return the estimator of one request."""
    request = TileCastRequest.of(asked)
    return TileEstimator(target, request, StridedForm.of(target, request))


def _rows_of(target: StridedRepeatTarget, plan: CastPlan) -> tuple[str, ...]:
    """Return the timing rows of the instructions of one call, or sub-chunk."""
    if plan.sequence is None:
        return (timing_of(target, plan),)
    return tuple(step.timing for step in element_steps(target, plan) if isinstance(step, StridedInstruction))


@dataclass(frozen=True, slots=True)
class StridedForm:
    """The closed form of one pair: `steps` are the instructions of a call or sub-chunk.

    `issue`, `control` and `synchronise` are cycles of the scalar unit.
    """

    plan: CastPlan
    limit: int
    steps: tuple[Times, ...]
    fills_always: bool
    issue: int
    control: int
    synchronise: int
    mask_change: int

    @classmethod
    def of(cls, target: StridedRepeatTarget, request: TileCastRequest) -> StridedForm | None:
        """Return the closed form of a request, None if the facts allow none."""
        try:
            plan = plan_cast(
                target, request.src, request.dst, request.rounding, request.saturation, scratch=request.scratch
            )
            if plan.sequence is not None and plan.sequence.steps not in _SEQUENCES:
                return None
            rows = _rows_of(target, plan)
        except CastsimError:
            return None
        vector = target.timing.vector
        if any(row not in vector or vector[row].results_at_once or vector[row].late for row in rows):
            return None
        scalar = target.timing.scalar
        form = cls(
            plan=plan,
            limit=target.repeat.max_repeats,
            steps=tuple(Times.of(target, row) for row in rows),
            fills_always=always_fills(target),
            issue=scalar.issue_cycles,
            control=scalar.control_write_cycles,
            synchronise=scalar.synchronisation_cycles,
            mask_change=target.timing.vector_pipe.mask_change_cycles,
        )
        blocks = target.repeat.repeat_bytes // target.repeat.block_bytes
        if blocks > target.banks.groups or target.option("count_mask_at_start") or not form._keeps_up():
            return None
        return form

    @property
    def uses_scratch(self) -> bool:
        """Whether the cast needs its tmp tile."""
        return self.plan.sequence is not None

    @property
    def needs_apart(self) -> bool:
        """Whether operands in shared banks could delay each other.

        They cannot if a barrier leaves one repeat alone in the pipe; otherwise repeats read while others write.
        """
        return not self._is_chunked

    @property
    def _is_chunked(self) -> bool:
        return self.plan.sequence is not None and self.plan.sequence.steps != "via_i32"

    @property
    def even_columns(self) -> bool:
        """Whether any operand has 4-bit elements: a mask bit covers two of them."""
        return 4 in (self.plan.src.bits, self.plan.dst.bits)

    def reach(self, _shape: CastShape) -> Number:
        """Return 0: casts write only their elements."""
        return 0

    def account(self, shape: CastShape, arithmetic: NumberFunctions) -> CastCycles:
        """Return the cycles of a shape."""
        whole, rest = shape.valid_cols // self.plan.rule.lanes, shape.valid_cols % self.plan.rule.lanes
        rows, limit = shape.valid_rows, self.limit
        with_rest = arithmetic.choose(rest > 0, rows, 0)
        heads = rows * -(-whole // limit)
        calls = Calls(
            rows=rows,
            row_full=whole // limit,
            row_last=whole % limit,
            rest_full=with_rest // limit,
            rest_last=with_rest % limit,
            heads=heads,
            tails=-(-with_rest // limit),
        )
        if self._is_chunked:
            return self._chunked(calls, whole, rest, arithmetic)
        if self.plan.sequence is not None:
            return self._through_scratch(calls, arithmetic)
        if self.plan.rule.action == "scaled":
            return self._scaled(calls, arithmetic)
        return self._plain(calls, arithmetic)

    def _keeps_up(self) -> bool:
        """Return whether the scalar unit is always ahead of the vector pipe."""
        issue, control, synchronise = self.issue, self.control, self.synchronise
        first = self.steps[0]
        # What follows a change of the mask arrives before that has taken effect, and finds the pipe empty.
        ahead = control + synchronise + 3 * max(issue, control) <= self.mask_change
        # The last results before it are written before the first ones behind it.
        ahead = ahead and max(self.steps[-1].tail) <= self.mask_change + first.head + min(first.tail)
        if self.plan.sequence is not None or self.plan.rule.action == "scaled":
            # Behind a barrier at least a tail passes, and until the results of one repeat are there.
            between = [step.head + step.busy[1] + step.tail[1] for step in self.steps]
            shortest = min(
                step.busy[repeats] + step.tail[repeats] for step in self.steps for repeats in (1, self.limit)
            )
            return ahead and 3 * control + 2 * issue + 2 * synchronise <= min(*between, shortest)
        return ahead and issue <= first.busy[1] and control <= issue + first.head

    def _scalar(self, calls: Calls, per_call: Number, arithmetic: NumberFunctions) -> Number:
        """Return all cycles of the scalar unit, whose calls take `per_call`."""
        masks = arithmetic.choose(calls.tails > 0, 2 * self.control, 0)
        return 2 * self.control + masks + (calls.heads + calls.tails) * per_call

    def _sums(
        self, table: tuple[int, ...], calls: Calls, arithmetic: NumberFunctions
    ) -> tuple[Number, Number, Number, Number]:
        """Return the sums of a table by repeats over the calls of whole repeats, over the others, and at each end.

        The ends are 0 if there is no such call.
        """
        full = table[self.limit]
        row_last, rest_last = arithmetic.look_up(table, calls.row_last), arithmetic.look_up(table, calls.rest_last)
        choose = arithmetic.choose
        rows = calls.rows * (calls.row_full * full + choose(calls.row_last > 0, row_last, 0))
        rest = calls.rest_full * full + choose(calls.rest_last > 0, rest_last, 0)
        row_end = choose(calls.heads > 0, choose(calls.row_last > 0, row_last, full), 0)
        rest_end = choose(calls.tails > 0, choose(calls.rest_last > 0, rest_last, full), 0)
        return rows, rest, row_end, rest_end

    def _fills(self, tail: tuple[int, ...], calls: Calls, arithmetic: NumberFunctions) -> tuple[Number, Number]:
        """Return how many calls of whole repeats, and how many others, fill the pipe.

        The first call fills it, and any after a call that ends without a tail: by repeats, calls end with `tail`.
        """
        alone = tuple(int(self.fills_always or not cycles) for cycles in tail)
        heads, others, head_end, other_end = self._sums(alone, calls, arithmetic)
        choose = arithmetic.choose
        return choose(calls.heads > 0, 1 + heads - head_end, 0), choose(calls.tails > 0, 1 + others - other_end, 0)

    def _plain(self, calls: Calls, arithmetic: NumberFunctions) -> CastCycles:
        """Return the account of a cast with one instruction per call."""
        (times,), choose = self.steps, arithmetic.choose
        heads, tails = calls.heads, calls.tails
        head_fill, rest_fill = (times.head * fills for fills in self._fills(times.tail, calls, arithmetic))
        head_busy, tail_busy, _, _ = self._sums(times.busy, calls, arithmetic)
        _, _, head_end, tail_end = self._sums(times.tail, calls, arithmetic)
        free = self.control + choose(heads > 0, self.issue + head_fill + head_busy, 0)
        written = self.control + heads * self.issue + self.control
        changed = choose(tails > 0, arithmetic.larger(free, written), free)
        arrival = arithmetic.larger(free, written + self.issue)
        drain = choose(
            tails > 0, arithmetic.smaller(arrival - free, head_end) + changed + self.mask_change - arrival, 0
        )
        wait = choose(tails > 0, self.mask_change, 0)
        last = choose(tails > 0, tail_end, head_end)
        causes = (
            (Cause.BUSY, head_busy + tail_busy),
            (Cause.FILL, head_fill + rest_fill),
            (Cause.DRAIN, drain + last),
        )
        end = changed + wait + rest_fill + tail_busy + last
        return self._finish(calls, end, causes, self._scalar(calls, self.issue, arithmetic), arithmetic)

    def _scaled(self, calls: Calls, arithmetic: NumberFunctions) -> CastCycles:
        """Return the account with a scale write and a barrier before every instruction; each waits for the last one."""
        (times,), number, choose = self.steps, calls.heads + calls.tails, arithmetic.choose
        per_call = self.control + self.synchronise + self.issue
        head_busy, tail_busy, _, _ = self._sums(times.busy, calls, arithmetic)
        head_tail, tail_tail, head_end, tail_end = self._sums(times.tail, calls, arithmetic)
        last = choose(calls.tails > 0, tail_end, head_end)
        drained = head_tail + tail_tail - last
        # Without whole repeats the mask is written first, and holds after the barrier has let the first call through.
        both = (calls.tails > 0) & (calls.heads > 0)
        alone = (calls.tails > 0) & (calls.heads == 0)
        behind = arithmetic.larger(self.mask_change - head_end, 0)
        mask = choose(both, behind, choose(alone, self.mask_change - per_call, 0))
        start = self.control + choose(alone, self.control, 0) + per_call
        busy, fill = head_busy + tail_busy, number * times.head
        causes = ((Cause.BUSY, busy), (Cause.FILL, fill), (Cause.DRAIN, mask + last), (Cause.BARRIER, drained))
        end = start + busy + fill + drained + mask + last
        return self._finish(calls, end, causes, self._scalar(calls, per_call, arithmetic), arithmetic)

    def _through_scratch(self, calls: Calls, arithmetic: NumberFunctions) -> CastCycles:
        """Return the account with two instructions per call and a barrier between them, at which the second waits."""
        (first, second), number, choose = self.steps, calls.heads + calls.tails, arithmetic.choose
        both, alone = (calls.tails > 0) & (calls.heads > 0), (calls.tails > 0) & (calls.heads == 0)
        first_busy, first_rest, _, _ = self._sums(first.busy, calls, arithmetic)
        second_busy, second_rest, _, _ = self._sums(second.busy, calls, arithmetic)
        head_wait, tail_wait, _, _ = self._sums(first.tail, calls, arithmetic)
        _, _, head_end, tail_end = self._sums(second.tail, calls, arithmetic)
        busy = first_busy + first_rest + second_busy + second_rest
        fill = first.head * sum(self._fills(second.tail, calls, arithmetic)) + second.head * number
        barrier = head_wait + tail_wait
        last = choose(calls.tails > 0, tail_end, head_end)
        mask = choose(both, self.mask_change, choose(alone, self.mask_change - self.control - self.issue, 0))
        per_call = 2 * self.control + 2 * self.issue + self.synchronise
        start = self.control + choose(alone, self.control, 0) + self.control + self.issue
        end = start + busy + fill + barrier + mask + last
        causes = ((Cause.BUSY, busy), (Cause.FILL, fill), (Cause.DRAIN, mask + last), (Cause.BARRIER, barrier))
        return self._finish(calls, end, causes, self._scalar(calls, per_call, arithmetic), arithmetic)

    def _chunked(self, calls: Calls, whole: Number, rest: Number, arithmetic: NumberFunctions) -> CastCycles:
        """Return the account of sub-chunks in turn, with a barrier per instruction and a mask write per sub-chunk."""
        assert self.plan.sequence is not None
        chunk, steps, lanes = self.plan.sequence.chunk_lanes or self.plan.rule.lanes, self.steps, self.plan.rule.lanes
        with_rest = calls.rest_full * self.limit + calls.rest_last
        pieces = calls.rows * whole * -(-lanes // chunk) + with_rest * -(-rest // chunk)
        alone = arithmetic.choose(calls.heads > 0, 0, self.control)
        # The mask of the first sub-chunk is written before it arrives; that of others while the results drain.
        arrival = self.control + alone + 2 * self.control + self.issue
        first = self.mask_change - self.control - self.issue
        between = max(self.mask_change - steps[-1].tail[1], 0)
        causes = (
            (Cause.BUSY, pieces * sum(step.busy[1] for step in steps)),
            (Cause.FILL, pieces * sum(step.head for step in steps)),
            (Cause.DRAIN, first + (pieces - 1) * between),
            (Cause.BARRIER, pieces * sum(step.tail[1] for step in steps)),
        )
        end = arrival + sum(cycles for _, cycles in causes)
        # CTRL is written twice per sub-chunk, the mask at its start and behind the last one of a call.
        per_piece = 3 * self.control + len(steps) * (self.issue + self.synchronise)
        scalar = self._scalar(calls, self.control, arithmetic) + pieces * per_piece
        return self._finish(calls, end, causes, scalar, arithmetic)

    def _finish(
        self,
        calls: Calls,
        end: Number,
        causes: tuple[tuple[Cause, Number], ...],
        scalar: Number,
        arithmetic: NumberFunctions,
    ) -> CastCycles:
        """Return the account of a cast whose vector pipe is empty at `end`; without a call, nothing happens there."""
        any_call = calls.heads + calls.tails > 0
        cycles = arithmetic.choose(any_call, arithmetic.larger(end, scalar), scalar)
        return CastCycles(
            cycles, tuple((cause, arithmetic.choose(any_call, value, 0)) for cause, value in causes), scalar
        )


def further_repeats(
    target: Target, operation: str, fmt: Format, repeats: int, addresses: Sequence[int], block_stride: int
) -> int:
    """Return the cycles of `repeats` repeats after as many others of the first instruction of an operation.

    Args:
        target: a chip of this mechanism.
        operation: mnemonic of the operation that contains the instruction.
        fmt: format of all operands.
        repeats: number of repeats.
        addresses: byte addresses of the sources, then of the result.
        block_stride: blocks from block to block of the sources; result blocks are adjacent.

    Raises:
        IllegalError: the target has another mechanism, or the operation does not exist.
    """
    kernel = target.tile_operation(operation) if target.has_tiles else None
    if not isinstance(kernel, StridedOperation):
        raise IllegalError(f"{target.name} has no strided instruction of {operation}")
    # Only chips of this mechanism have strided operations.
    sequence, mnemonic = KernelSequence(cast("StridedRepeatTarget", target)), kernel.instructions[0]
    *origins, to = addresses
    step = sequence.repeat_blocks

    def cycles(count: int) -> int:
        sources = tuple(Stream(at, fmt, block_stride, step) for at in origins)
        instruction = sequence.vector(mnemonic, count, Stream(to, fmt, 1, step), sources)
        return timed_alone(target, LoweredInstruction(Block((instruction,))), operation).cycles

    return cycles(2 * repeats) - cycles(repeats)
