"""Closed forms for the cycles of strided-repeat casts whose operands do not hold each other up.

The scalar unit issues without waiting, so the arrival of every instruction is a sum. Within the limits that `of` checks
on the facts, the vector pipe never catches up with it except between the whole repeats and the rest of the columns, and
what remains are counts of repeats, fills and drains (docs/reference/a2a3.md sections 2.3, 3.4, 6). No block waits for
one of its own operand: the blocks of one repeat lie in different groups, and no two repeats ask for a port in the same
cycle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from castsim.estimating.arithmetic import CastCycles, Number, NumberFunctions, Shape
from castsim.estimating.placement import TileCastRequest
from castsim.estimating.tiles import TileEstimator
from castsim.isa.errors import CastsimError
from castsim.machines.strided.plan import CastPlan, plan_cast
from castsim.machines.strided.timing_facts import always_fills
from castsim.machines.target_cast import CastAsked
from castsim.targets.strided_repeat import StridedRepeatTarget, VectorTiming
from castsim.timing import Cause

_CHUNK_STEPS = {
    "chunked": ("vconv", "vconv"),
    "chunked_masked": ("vconv", "vconv", "vector_dup", "vand", "vconv", "vconv"),
}
"""Timing rows of the instructions of one sub-chunk; a barrier follows each."""


class Calls(NamedTuple):
    """The calls of the conversion into which a shape splits: whole repeats of rows, then the rest of all rows together.

    `before` are the cycles of the scalar unit until it begins the first call.
    """

    heads: Number
    head_repeats: Number
    tails: Number
    tail_repeats: Number
    before: Number


def estimator(target: StridedRepeatTarget, asked: CastAsked) -> TileEstimator:
    """Return the estimator of one request."""
    request = TileCastRequest.of(asked)
    return TileEstimator(target, request, StridedForm.of(target, request))


@dataclass(frozen=True, slots=True)
class StridedForm:
    """The closed form of one pair: `issue`, `control`, `synchronise` are cycles of the scalar unit."""

    plan: CastPlan
    limit: int
    row: VectorTiming
    fills_always: bool
    issue: int
    control: int
    synchronise: int
    chunk_rows: tuple[VectorTiming, ...]

    @classmethod
    def of(cls, target: StridedRepeatTarget, request: TileCastRequest) -> StridedForm | None:
        """Return the closed form of a request, None if the facts leave none."""
        try:
            plan = plan_cast(
                target, request.src, request.dst, request.rounding, request.saturation, scratch=request.scratch
            )
        except CastsimError:
            return None
        steps = _CHUNK_STEPS.get(plan.sequence.steps, ()) if plan.sequence is not None else ()
        rows = target.timing.vector
        if any(step not in rows or rows[step].results_at_once for step in ("vconv", *steps)):
            return None
        scalar = target.timing.scalar
        form = cls(
            plan=plan,
            limit=target.repeat.max_repeats,
            row=rows["vconv"],
            fills_always=always_fills(target) or rows["vconv"].tail_cycles == 0,
            issue=scalar.issue_cycles,
            control=scalar.control_write_cycles,
            synchronise=scalar.synchronisation_cycles,
            chunk_rows=tuple(rows[step] for step in steps),
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
        """Whether operands in shared banks could hold each other up.

        Not where reads and writes of consecutive repeats never fall into one cycle: a repeat reads when it starts, and
        its writes come a tail less one cycle after the start of the next, which no gap and no fill shifts. And not
        where a barrier leaves one repeat alone in the pipe.
        """
        row = self.row
        shifted = self.fills_always or self.control > row.head_cycles
        return not self.chunk_rows and (shifted or (row.tail_cycles - 1) % row.repeat_cycles == 0)

    @property
    def even_columns(self) -> bool:
        """Whether elements of 4 bits are among the operands: a mask bit is for two of them."""
        return 4 in (self.plan.src.bits, self.plan.dst.bits)

    def reach(self, _shape: Shape) -> Number:
        """Return 0: casts write nothing but their elements."""
        return 0

    def account(self, shape: Shape, arithmetic: NumberFunctions) -> CastCycles:
        """Return the cycles of a shape."""
        whole, rest = shape.valid_cols // self.plan.rule.lanes, shape.valid_cols % self.plan.rule.lanes
        rows, limit = shape.valid_rows, self.limit
        with_rest = arithmetic.choose(rest > 0, rows, 0)
        heads = rows * -(-whole // limit)
        calls = Calls(
            heads=heads,
            head_repeats=rows * whole,
            tails=-(-with_rest // limit),
            tail_repeats=with_rest,
            before=self.control + arithmetic.choose(heads > 0, 0, self.control),
        )
        if self.chunk_rows:
            return self._chunked(calls, rest, arithmetic)
        if self.plan.sequence is not None:
            return self._through_scratch(calls, arithmetic)
        if self.plan.rule.action == "scaled":
            return self._scaled(calls, arithmetic)
        return self._plain(calls, arithmetic)

    def _keeps_up(self) -> bool:
        """Whether the scalar unit is always ahead of the vector pipe, but for a gap before the rest of the columns."""
        issue, control, synchronise, row = self.issue, self.control, self.synchronise, self.row
        filled = row.head_cycles + row.repeat_cycles
        if self.chunk_rows:
            return all(
                synchronise <= each.head_cycles + each.repeat_cycles
                and synchronise + 4 * control + issue <= each.head_cycles + each.repeat_cycles + each.tail_cycles
                for each in self.chunk_rows
            )
        if self.plan.sequence is not None:
            return (
                synchronise <= row.repeat_cycles
                and synchronise + control + issue <= row.repeat_cycles + row.tail_cycles
                and 2 * control + issue <= filled
            )
        if self.plan.rule.action == "scaled":
            return 2 * control + synchronise + issue <= filled
        return issue <= row.repeat_cycles

    def _scalar(self, calls: Calls, per_call: Number, arithmetic: NumberFunctions) -> Number:
        """Return all cycles of the scalar unit, whose calls take `per_call`."""
        masks = arithmetic.choose(calls.tails > 0, 2 * self.control, 0)
        return 2 * self.control + masks + (calls.heads + calls.tails) * per_call

    def _plain(self, calls: Calls, arithmetic: NumberFunctions) -> CastCycles:
        """One instruction per call; only the first one finds the pipe idle, and the first of the rest may."""
        row, each = self.row, self.row.head_cycles if self.fills_always else 0
        heads, tails = calls.heads, calls.tails
        head_fill = arithmetic.choose(heads > 0, arithmetic.larger(row.head_cycles, heads * each), 0)
        arrival = calls.before + self.issue
        free = arrival + head_fill + calls.head_repeats * row.repeat_cycles
        rest_arrival = arrival + arithmetic.choose(heads > 0, heads * self.issue + self.control, 0)
        gap = arithmetic.choose((tails > 0) & (heads > 0), arithmetic.larger(0, rest_arrival - free), 0)
        idle = (heads == 0) | (gap >= row.tail_cycles)
        rest_fill = arithmetic.choose(tails > 0, arithmetic.choose(idle, row.head_cycles, each) + (tails - 1) * each, 0)
        busy = (calls.head_repeats + calls.tail_repeats) * row.repeat_cycles
        drain = arithmetic.smaller(gap, row.tail_cycles)
        end = free + gap + rest_fill + calls.tail_repeats * row.repeat_cycles + row.tail_cycles
        causes = ((Cause.BUSY, busy), (Cause.FILL, head_fill + rest_fill), (Cause.DRAIN, drain + row.tail_cycles))
        return self._finish(calls, end, causes, self._scalar(calls, self.issue, arithmetic), arithmetic)

    def _scaled(self, calls: Calls, arithmetic: NumberFunctions) -> CastCycles:
        """A scale write and a barrier before every instruction, which therefore waits for the one before it."""
        row, number = self.row, calls.heads + calls.tails
        per_call = self.control + self.synchronise + self.issue
        busy = (calls.head_repeats + calls.tail_repeats) * row.repeat_cycles
        causes = (
            (Cause.BUSY, busy),
            (Cause.FILL, number * row.head_cycles),
            (Cause.DRAIN, row.tail_cycles),
            (Cause.BARRIER, (number - 1) * row.tail_cycles),
        )
        end = calls.before + per_call + busy + number * (row.head_cycles + row.tail_cycles)
        return self._finish(calls, end, causes, self._scalar(calls, per_call, arithmetic), arithmetic)

    def _through_scratch(self, calls: Calls, arithmetic: NumberFunctions) -> CastCycles:
        """Two instructions per call with a barrier between them; the second one waits for the first."""
        row, number = self.row, calls.heads + calls.tails
        first_fills = row.head_cycles * (number if self.fills_always else 1)
        busy = 2 * (calls.head_repeats + calls.tail_repeats) * row.repeat_cycles
        fill = first_fills + number * row.head_cycles
        barrier = number * row.tail_cycles
        per_call = 2 * self.control + 2 * self.issue + self.synchronise
        end = calls.before + self.control + self.issue + busy + fill + barrier + row.tail_cycles
        causes = ((Cause.BUSY, busy), (Cause.FILL, fill), (Cause.DRAIN, row.tail_cycles), (Cause.BARRIER, barrier))
        return self._finish(calls, end, causes, self._scalar(calls, per_call, arithmetic), arithmetic)

    def _chunked(self, calls: Calls, rest: Number, arithmetic: NumberFunctions) -> CastCycles:
        """Sub-chunks one after the other, every instruction behind a barrier."""
        assert self.plan.sequence is not None
        chunk, rows = self.plan.sequence.chunk_lanes or self.plan.rule.lanes, self.chunk_rows
        pieces = calls.head_repeats * -(-self.plan.rule.lanes // chunk) + calls.tail_repeats * -(-rest // chunk)
        causes = (
            (Cause.BUSY, pieces * sum(row.repeat_cycles for row in rows)),
            (Cause.FILL, pieces * sum(row.head_cycles for row in rows)),
            (Cause.BARRIER, pieces * sum(row.tail_cycles for row in rows)),
        )
        end = calls.before + 2 * self.control + self.issue + sum(cycles for _, cycles in causes)
        # CTRL is written twice per sub-chunk, the mask at its start and behind the last one of a call.
        per_piece = 3 * self.control + len(rows) * (self.issue + self.synchronise)
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
        """Return the account of a cast whose vector pipe is empty at `end`; nothing happens there without a call."""
        any_call = calls.heads + calls.tails > 0
        cycles = arithmetic.choose(any_call, arithmetic.larger(end, scalar), scalar)
        return CastCycles(
            cycles, tuple((cause, arithmetic.choose(any_call, value, 0)) for cause, value in causes), scalar
        )
