"""Skipping of hardware loop trips that repeat earlier ones, in a run without values.

Such a run computes the path, and addresses in local memory. After every trip of a loop that continues, the state on
which the rest of the run can depend is recorded *relative to now*: the registers of the body, with their pending
writes, and the memories that it stores to. If successive trips leave the same state except for registers that only
values depend on (`induction`), all further trips are equivalent, as long as the loop's own condition is true:

* they issue the same bundles, touch the same bytes of local memory and cause the same stale reads,
* linear registers change by the same amounts, trip by trip or, if a trip is shorter than a latency, in cycles of
several trips,
* loose registers are right again after a few trips, so that many trips are left to be walked.

A loop whose local memory address moves from trip to trip is not skipped: it leaves the memory after a few thousand
trips. Neither is a loop whose step is 0, which has no last trip.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import numpy as np

from castsim.isa.dataclass import dataclass, field
from castsim.isa.formats import FORMATS
from castsim.isa.tpc.forms import LOCAL, Family, MemoryOperation
from castsim.isa.tpc.program import WORD_BITS, WORD_MASK, DimensionMask, File, Register
from castsim.machines.vliw.control import Control, IssueTrace, LoopShape, RunningLoop, Structure, signed
from castsim.machines.vliw.findings import Counts, Findings
from castsim.machines.vliw.memory_access import LocalAccess
from castsim.machines.vliw.plans import InstructionPlan
from castsim.machines.vliw.storage import INCOME, ConfigurationSpace, Held, RegisterCell, Registers, Write
from castsim.targets.vliw import VliwTarget

# What the varying registers of a loop body may do without anything but values depending on them.
#
# A register *varies* if it holds another value in every trip. The body is read instruction by instruction, whatever
# path a trip takes through it, and each register that varies, or takes up what does, is put into one of two classes:
#
# * *linear*: S and I registers that only sums, differences, copies, and products and left shifts by steady operands
# write. All of these are linear in integers modulo 2**32. If all linear registers (and their writes on the way) have
# changed by the same amount in two trips running, they do so in every trip: the state x after a trip is A x + b, so
# that x'' - x' = A (x' - x), and a difference that A maps to itself once stays.
# * *loose*: everything else that is computed from varying registers (masked coordinates, compares, addresses of
# elements). No loose register may depend on its own value of an earlier trip, not even by way of others: what is in
# it is then made anew from linear and steady registers in a known number of trips.
#
# Neither may decide path, time or a place in local memory: predicates, bounds of loops, targets of jumps, addresses of
# local accesses, words that scalar memory gets, numbers of tensors, dimension masks. Coordinates, addresses in global
# memory and operands of vector instructions are free: a run without values makes nothing of them.

_WORDS = ("i32", "u32")
_SUMS = ("add", "sub")
_COPIES = ("set_indx", "mov_irf_dim", "prmt_indx", "not")
_HARMLESS = ("add", "sub", "mul", "max", "min", "and", "or", "xor", "shl", "shr", "ash", "abs", "not", "mov")
_PATH = ("loop", "jmpr", "jmpa")
_ALWAYS_STEADY = ("tensor", "mask")


@dataclass(frozen=True, slots=True)
class Induction:
    """The varying registers of a body by class."""

    linear: frozenset[str]
    loose: frozenset[str]

    @property
    def settling(self) -> int:
        """Maximum number of successive writes until every loose register is right."""
        return len(self.loose)


def follows_state(plan: InstructionPlan) -> bool:
    """Return whether an instruction of a run without values uses or changes state that is neither register nor memory.

    These are the scalar random generator and stores to the configuration space.
    """
    draws = plan.samples is not None or plan.reseeds is not None or "scalar_lfsr_polynomial" in plan.depends
    return plan.stores_mapped or (draws and not plan.vector)


def induction(
    plans: tuple[InstructionPlan, ...], dimensions: int, linear: frozenset[str], loose: frozenset[str]
) -> Induction | None:
    """Return the extent of variation in a body; None if it reaches an operand that must not vary.

    Args:
        plans: the instructions of the body.
        dimensions: the number of dimensions of an index register.
        linear: registers known to vary, of class S or I.
        loose: other registers known to vary.
    """
    straight, bent = set(linear - loose), set(loose)
    edges: dict[str, set[str]] = {}
    while True:
        size = len(straight), len(bent)
        for plan in plans:
            varying = _reads(plan, dimensions, straight | bent)
            if not varying:
                continue
            if not _may_take(plan, varying):
                return None
            if plan.vector or (plan.meaning is None and plan.memory is not MemoryOperation.ADDRESS):
                continue  # without values, what vectors and loads get is not computed
            names = {cell.name for cell in plan.results}
            read = {name for cells in varying.values() for name in cells}
            if _is_linear(plan, varying) and not read & bent and not names & bent:
                straight |= names
                continue
            bent |= names
            straight -= names
            for name in names:
                edges.setdefault(name, set()).update(read)
        if (len(straight), len(bent)) == size:
            break
    return None if _has_cycle(edges, bent) else Induction(frozenset(straight), frozenset(bent))


def _reads(plan: InstructionPlan, dimensions: int, varying: set[str]) -> Mapping[str, set[str]]:
    """Return the varying registers that an instruction's result depends on, by role."""
    operands = [*plan.operands]
    if plan.income is not None and _keeps_income(plan, dimensions):
        operands.append(plan.income)
    reads = {operand.role: varying.intersection(cell.name for cell in operand.cells) for operand in operands}
    return {role: names for role, names in reads.items() if names}


def _keeps_income(plan: InstructionPlan, dimensions: int) -> bool:
    """Return whether a part of the destination's old value stays."""
    instruction = plan.instruction
    mask = instruction.operand("mask")
    if mask is not None and not plan.into_predicate:
        return not isinstance(mask, DimensionMask) or mask.bits != (1 << dimensions) - 1
    if plan.into_predicate or instruction.type is None or instruction.type not in FORMATS:
        return False
    return FORMATS[instruction.type].bits < WORD_BITS


def _may_take(plan: InstructionPlan, varying: Mapping[str, set[str]]) -> bool:
    """Return whether an instruction may read varying values in these roles."""
    mnemonic = plan.instruction.mnemonic
    if "predicate" in varying or mnemonic in _PATH or any(role in varying for role in _ALWAYS_STEADY):
        return False
    if plan.memory in LOCAL:
        # The vectors that are stored are not computed; what is loaded replaces the old value.
        return set(varying) <= ({INCOME, "src_c"} if plan.memory is MemoryOperation.VECTOR_STORE else {INCOME})
    if plan.vector or plan.is_memory:
        return True
    if mnemonic in ("shl", "shr", "ash", "prmt_indx") and "src_b" in varying:
        return False
    whole = plan.instruction.type is None or plan.instruction.type == "b" or "f" not in plan.instruction.type
    return whole and (mnemonic in _HARMLESS or mnemonic in _COPIES or plan.instruction.form.family is Family.COMPARISON)


def _is_linear(plan: InstructionPlan, varying: Mapping[str, set[str]]) -> bool:
    """Return whether the result is linear in the varying operands, modulo 2**32."""
    instruction = plan.instruction
    dest, mnemonic = instruction.operand("dest"), instruction.mnemonic
    if not isinstance(dest, Register) or dest.file not in (File.S, File.I):
        return False
    if mnemonic in _COPIES:
        return instruction.type in (None, *_WORDS)
    if mnemonic == "mov":
        source = instruction.operand("src_a")
        return not isinstance(source, Register) or source.file in (File.S, File.I)
    if instruction.type not in _WORDS:
        return False
    if mnemonic in _SUMS:
        return not instruction.switch("st")
    if mnemonic == "mul":
        return not instruction.switch("upper32") and not {"src_a", "src_b"} <= set(varying)
    return mnemonic == "shl"


def _has_cycle(edges: Mapping[str, set[str]], among: set[str]) -> bool:
    """Return whether some register depends on itself, by way of `among`."""
    left = {name: edges.get(name, set()) & among for name in among}
    while left:
        free = {name for name, needs in left.items() if not needs & left.keys()}
        if not free:
            return True
        left = {name: needs for name, needs in left.items() if name not in free}
    return False


_HIGHEST, _LOWEST = (1 << 31) - 1, -(1 << 31)
_ORDERED = ("<", "<=", ">", ">=")
_FEWEST = 3
"""Minimum number of trip ends: they give two differences of each register."""
_WORTH = 8
"""Number of remaining trips up to which walking costs no more than comparing."""
_LOOKED_AT = 14
"""Number of successive trips after which comparing pauses."""
_PATIENCE = 4
"""The factor between the trips at successive comparisons."""
_LATEST = 1 << 20
"""Latest trip at which comparing begins, however often it failed in earlier executions of the loop."""

Alike = tuple[object, ...]
"""The state that must be equal after two trips."""


@dataclass(frozen=True, slots=True)
class SkippedTrips:
    """The sum of skipped trips, or of others."""

    cycles: int
    bundles: int


NONE = SkippedTrips(0, 0)


@dataclass(frozen=True, slots=True)
class _End:
    """The state after a trip: time, bundles, registers without and with their values, memories, findings so far."""

    now: int
    issued: int
    alike: Alike
    values: tuple[tuple[Held, ...], ...]
    found: Counts


class _Body:
    """The body of a loop: its instructions, its registers by name, and its known inductions."""

    def __init__(
        self,
        shape: LoopShape,
        plans: tuple[tuple[InstructionPlan, ...], ...],
        structure: Structure,
        registers: Registers,
    ) -> None:
        self.plans = tuple(plan for own in plans[shape.start : shape.end] for plan in own)
        inner = [loop for loop in structure.loops if shape.holds(loop.head)]
        (iterator,) = registers.cells(structure.iterator(shape.depth))
        counters = [cell for loop in inner for cell in registers.cells(structure.iterator(loop.depth))]
        self.cells = {cell.name: cell for cell in (iterator, *counters)}
        for plan in self.plans:
            read = [cell for operand in plan.operands for cell in operand.cells]
            self.cells.update({cell.name: cell for cell in (*read, *plan.results)})
        accesses = {plan.memory for plan in self.plans}
        self.stores_words = MemoryOperation.SCALAR_STORE in accesses
        self.stores_vectors = MemoryOperation.VECTOR_STORE in accesses
        self.iterator = iterator.name
        written = {cell.name for plan in self.plans for cell in plan.results}
        self.hopeless = self.iterator in written or any(map(follows_state, self.plans))
        self.first = 1
        self._found: dict[frozenset[str], Induction | None] = {}

    def induction(self, varying: frozenset[str], dimensions: int) -> Induction | None:
        """Return the classes of registers, given some that vary."""
        if varying not in self._found:
            linear = frozenset(name for name in varying if self.cells[name].file in (File.S, File.I))
            self._found[varying] = induction(self.plans, dimensions, linear, varying - linear)
        return self._found[varying]


@dataclass(slots=True)
class _Watch:
    """An active loop: finished trips, the next comparison, and the states after the last trips, as far as they are
    equal."""

    turn: RunningLoop
    first: int
    trips: int = 0
    skipped: bool = False
    ends: list[_End] = field(default_factory=list)


class Trips:
    """Observer of the hardware loops of one run. All its inputs are the machine's own state."""

    def __init__(
        self,
        structure: Structure,
        plans: tuple[tuple[InstructionPlan, ...], ...],
        target: VliwTarget,
        horizon: int,
        registers: Registers,
        local: LocalAccess,
        configuration: ConfigurationSpace,
        findings: Findings,
        control: Control,
        trace: IssueTrace,
    ) -> None:
        self._horizon = horizon
        self._dimensions = target.registers.index_dimensions
        self._local = local
        self._configuration = configuration
        self._findings = findings
        self._control = control
        self._trace = trace
        self._body: Callable[[LoopShape], _Body] = lambda shape: _Body(shape, plans, structure, registers)
        self._bodies: dict[int, _Body] = {}
        self._watched: dict[int, _Watch | None] = {}

    def skip(self, turn: RunningLoop, now: int, issued: int, limit: int) -> SkippedTrips:
        """Skip as many trips as possible, at the beginning of another trip of a loop, before bundle number `now`.

        Args:
            turn: the loop.
            now: the time of the next bundle.
            issued: number of bundles issued so far.
            limit: maximum number of bundles.
        """
        watch = self._watch(turn)
        if watch is None:
            return NONE
        watch.trips += 1
        if watch.trips < watch.first:
            return NONE
        if watch.trips >= watch.first + _LOOKED_AT:
            watch.first = watch.trips * _PATIENCE
            watch.ends.clear()
            return NONE
        body = self._bodies[turn.shape.number]
        end = self._end(body, now, issued)
        if watch.ends and watch.ends[-1].alike != end.alike:
            watch.ends.clear()
        watch.ends.append(end)
        variation = self._varying(body, watch.ends)
        trips = 0 if variation is None else _turns(body, variation, watch.ends)
        if variation is None or not trips:
            return NONE
        period = _between(watch.ends[-1 - trips], end)
        settling = variation.settling * (trips * self._horizon // period.cycles + 2)
        times = min((trips_left(turn) - settling) // trips, (limit - issued) // period.bundles)
        if times <= 0:
            return NONE
        self._jump(body, variation, watch.ends[-1 - trips], end, times)
        self._trace.repeat(times * trips)
        watch.ends.clear()
        watch.first = watch.trips + 1
        watch.skipped = True
        return SkippedTrips(times * period.cycles, times * period.bundles)

    def _watch(self, turn: RunningLoop) -> _Watch | None:
        """Return the record of a loop under way, None if it is not worth looking at."""
        number = turn.shape.number
        watch = self._watched.get(number)
        if watch is not None and watch.turn is turn:
            return watch
        if number not in self._bodies:
            self._bodies[number] = self._body(turn.shape)
        body = self._bodies[number]
        fits = not body.hopeless and body.induction(frozenset([body.iterator]), self._dimensions) is not None
        if watch is not None:  # what was in vain is begun later, when the loop is entered again
            body.first = 1 if watch.skipped else min(body.first * _PATIENCE, _LATEST)
        self._watched[number] = _Watch(turn, body.first) if fits and trips_left(turn) > _WORTH else None
        return self._watched[number]

    def _end(self, body: _Body, now: int, issued: int) -> _End:
        """Return the state that the trip just ended leaves."""
        alike: list[object] = [self._configuration.settled(now)]
        values = []
        for cell in body.cells.values():
            old, young = self._parted(cell, now)
            every = (old, *(write.value for write in young))
            # Arrays, which a run without values never makes, are compared by identity.
            cell_values = tuple(
                id(cell_value) if isinstance(cell_value, np.ndarray) else cell_value for cell_value in every
            )
            computed = tuple(cell_value is not None for cell_value in cell_values)
            written = cell.written or len(young) < len(cell.pending)
            alike.append((written, computed, [(now - write.time, write.stage, write.writer) for write in young]))
            values.append(cell_values)
        if body.stores_words:
            alike += [self._local.slm.bytes.tobytes(), self._local.slm.written.tobytes()]
        if body.stores_vectors:
            alike.append(np.packbits(self._local.vlm.written).tobytes())
        return _End(now, issued, tuple(alike), tuple(values), self._findings.counts())

    def _parted(self, cell: RegisterCell, now: int) -> tuple[Held, list[Write]]:
        """Return the value that all readers see in a register, and the writes that some may not see yet."""
        old, count = cell.settled, 0
        while count < len(cell.pending) and now - cell.pending[count].time >= self._horizon:
            old = cell.pending[count].value
            count += 1
        return old, cell.pending[count:]

    def _varying(self, body: _Body, ends: list[_End]) -> Induction | None:
        """Return which registers vary between trips that are otherwise equal, None if values may decide."""
        if len(ends) < _FEWEST or not ends[-1].alike[0] or not self._trace.stands_still:
            return None
        columns = zip(body.cells, *(end.values for end in ends), strict=True)
        changed = frozenset(name for name, *history in columns if history.count(history[0]) < len(history))
        return body.induction(changed | {body.iterator}, self._dimensions)

    def _jump(self, body: _Body, variation: Induction, before: _End, last: _End, times: int) -> None:
        """Advance the state by `times` times the difference between two ends."""
        cycles = times * _between(before, last).cycles
        for cell, earlier, later in zip(body.cells.values(), before.values, last.values, strict=True):
            old, young = self._parted(cell, last.now)
            cell.written |= len(young) < len(cell.pending)
            now_held = (old, *(write.value for write in young))
            if cell.name in variation.linear:
                now_held = tuple(map(_moved, now_held, _steps(earlier, later), [times] * len(later)))
            cell.settled, *values = now_held
            cell.pending[:] = [
                Write(write.time + cycles, write.stage, value, write.writer)
                for write, value in zip(young, values, strict=True)
            ]
        self._findings.repeat(before.found, last.found, times)
        self._control.pass_time(before.now, cycles)


def trips_left(turn: RunningLoop) -> int:
    """Return the number of trips that certainly follow the current one, up to the wrap-around of the iterator.

    It is 0 for a step of 0: such a loop has no last trip.
    """
    iterator = turn.iterator.newest
    assert isinstance(iterator, int)
    value, step, bound, sign = (
        signed(iterator & WORD_MASK),
        signed(turn.step & WORD_MASK),
        turn.bound,
        turn.compare.sign,
    )
    if step == 0 or sign == "==":
        return 0
    last = _HIGHEST if step > 0 else _LOWEST
    if sign == ("<" if step > 0 else ">"):
        last = bound - (1 if step > 0 else -1)
    elif sign == ("<=" if step > 0 else ">="):
        last = bound
    elif sign not in _ORDERED and (bound - value) % step == 0 and (bound - value) // step > 0:
        last = bound - step
    return max((last - value) // step, 0)


def _between(first: _End, second: _End) -> SkippedTrips:
    """Return the difference between the states at the ends of two trips."""
    return SkippedTrips(second.now - first.now, second.issued - first.issued)


def _turns(body: _Body, variation: Induction, ends: list[_End]) -> int:
    """Return the number of trips after which linear registers repeat their last change; 0 if never."""
    linear = [index for index, name in enumerate(body.cells) if name in variation.linear]
    changes = [
        [_steps(earlier.values[index], later.values[index]) for index in linear]
        for earlier, later in itertools.pairwise(ends)
    ]
    return next((trips for trips in range(1, len(changes)) if changes[-1 - trips] == changes[-1]), 0)


def _steps(first: tuple[Held, ...], second: tuple[Held, ...]) -> list[tuple[int, ...]]:
    """Return by how much the values of a register and of its writes on the way differ, modulo 2**32."""
    pairs = (zip(_numbers(a), _numbers(b), strict=True) for a, b in zip(first, second, strict=True))
    return [tuple((b - a) & WORD_MASK for a, b in pair) for pair in pairs]


def _moved(value: Held, step: tuple[int, ...], times: int) -> Held:
    """Return a value some steps further on; S holds unsigned numbers, I signed ones."""
    if not any(step):
        return value
    numbers = [(number + times * by) & WORD_MASK for number, by in zip(_numbers(value), step, strict=True)]
    return tuple(map(signed, numbers)) if isinstance(value, tuple) else numbers[0]


def _numbers(value: Held) -> tuple[int, ...]:
    """Return the content of a linear register, empty if it is not computed."""
    if isinstance(value, tuple):
        return tuple(part for part in value if isinstance(part, int))
    return (value,) if isinstance(value, int) else ()
