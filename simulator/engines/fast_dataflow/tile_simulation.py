"""One simulation: the program as tokens, the machine that executes them, and the report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from castsim.engines.fast_dataflow.encoding import EncodedUnit, Encoder, Piece, TokenStream
from castsim.engines.fast_dataflow.execution_rows import ExecutionRows, Records, RunRecords, sources
from castsim.engines.fast_dataflow.issue import first_need, issue_one
from castsim.engines.fast_dataflow.machine_steps import run
from castsim.engines.fast_dataflow.pipe_steps import close_segment, execution_of, rest, spend
from castsim.engines.fast_dataflow.skipping import Skipper, executions, operations
from castsim.engines.fast_dataflow.state import (
    AWAITING_FLAG,
    AWAITING_OPERANDS,
    BARRIER,
    CAUSES,
    CHECKPOINT,
    DONE,
    EMPTY,
    FLAG_WAIT,
    GO,
    GROW,
    LIMIT,
    MARKER,
    MISSED,
    NEVER,
    NONE,
    OPERAND_WAIT,
    PAUSE,
    SCALAR_AWAITS_FLAG,
    SCALAR_PIPE,
    SCALAR_RUNS,
    TOKENS,
    EntryRow,
    MachineState,
    PipeRow,
    chain,
)
from castsim.execution.pipe_operations import (
    LOOK_AHEAD,
    FlagSignal,
    FlagWait,
    Rest,
    Standstill,
    Survey,
    explain_deadlock,
    explain_limit,
)
from castsim.execution.timing import Listener, OperationTiming, PipeTiming, Timing, Watcher
from castsim.execution.tree import Operation, Tree
from castsim.files import folder_of
from castsim.isa.dataclass import replace
from castsim.isa.errors import EngineError
from castsim.machines.registry import MachinePart
from castsim.targets.loader import TileTarget

# Whether a run goes on interpreted or compiled: whichever has the machine at its end sooner.

Step = Callable[[MachineState], int]

_COMPILING = "castsim.engines.fast_dataflow.compiled_machine"
_KEPT = f"compiled_machine._machine.*.py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}.*.nbc"
"""numba's name of the cache file of the machine for this version of Python."""

_LOADED, _ON_DISK, _TO_COMPILE = (3, 4), (200, 1000), (3000, 40_000)
"""Milliseconds that a run must have taken, and promise still to take, until compiled code pays: if it is loaded, on
disk, or must be compiled. Only the duration of a run depends on them, not its results.
"""


class Driver:
    """The machine of one run: interpreted, until the run proves long. `total` is its number of operations."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._began = perf_counter()
        self._possible = True
        self.step: Step = run

    def pays_to_compile(self, remaining: int) -> bool:
        """Return whether the rest of the run, with a number of operations, is worth compiled code."""
        if not self._possible or self.step is not run:
            return False
        elapsed = int((perf_counter() - self._began) * 1000)
        if elapsed < _LOADED[0]:
            return False
        patience, promise = _LOADED if _COMPILING in sys.modules else _ON_DISK if _is_kept() else _TO_COMPILE
        done = max(1, self._total - remaining)
        return elapsed > patience and elapsed * remaining / done > promise

    def compile(self) -> bool:
        """Continue with compiled code; return whether there is a compiler."""
        try:
            from castsim.engines.fast_dataflow.compiled_machine import compiled_machine  # noqa: PLC0415 - imports numba
        except ImportError:
            self._possible = False
            return False
        self.step = compiled_machine()
        return True


@cache
def _is_kept() -> bool:
    """Return whether the machine has been compiled since its sources were written."""
    folder = folder_of(Path(__file__).parent)
    kept = [] if folder is None else [file.stat().st_mtime for file in folder.glob(_KEPT)]
    return bool(kept) and max(kept) > max(file.stat().st_mtime for file in sources())


# Why a run cannot go on, in the words that all engines share (`execution.pipe_operations`).

Refill = Callable[[int], MachineState]
"""Function that supplies what the machine has stopped for (one of its codes)."""


def deadlock(m: MachineState, encoder: Encoder, refill: Refill) -> EngineError | None:
    """Return the error that names every wait, None if nothing waits."""
    if not _waits(m, encoder):
        return None
    m = _run_on(m, refill)
    waits = _waits(m, encoder)
    unreached = list(islice(_unreached(m, encoder, refill), LOOK_AHEAD))

    def queued(signal: FlagSignal) -> int | None:
        p = encoder.pipes.index(signal.pipe) if signal.pipe in encoder.pipes else 0
        for entry in chain(m.entries, m.pipes[p].queue) if p else ():
            if entry.operation != MARKER and encoder.operations[entry.operation] == signal:
                return _instruction(m, entry)
        return None

    return explain_deadlock(encoder.tree, waits, Rest(encoder.pipes[0], queued, unreached))


def limit(m: MachineState, encoder: Encoder, max_cycles: int) -> EngineError:
    """Return the error of a run that exceeds its limit."""
    reached: list[EntryRow] = []
    if m.issuer.beyond != NONE:
        reached.append(m.entries[m.issuer.beyond])
    else:
        for p in range(1, m.pipe_count):
            pipe = m.pipes[p]
            started = [*chain(m.entries, pipe.in_flight)]
            if pipe.current != NONE:
                started.append(m.entries[pipe.current])
            reached += [entry for entry in started if not (entry.known and entry.end <= m.maximum)]
    first = min(reached, key=lambda entry: entry.index, default=None)
    return explain_limit(encoder.tree, max_cycles, None if first is None else _instruction(m, first))


def _instruction(m: MachineState, entry: EntryRow) -> int:
    return execution_of(m, entry.execution).instruction


def _waits(m: MachineState, encoder: Encoder) -> list[Standstill]:
    """Return all waits and their reasons."""
    standstills = []
    for p in range(1, m.pipe_count):
        pipe, name = m.pipes[p], encoder.pipes[p]
        if pipe.wake == NEVER and pipe.status == AWAITING_FLAG:
            standstills.append(_at_flag(m, encoder, name, m.entries[pipe.current]))
        elif pipe.wake == NEVER and pipe.status == AWAITING_OPERANDS:
            entry = m.entries[pipe.current]
            need = m.nodes[first_need(m, entry.execution, pipe.local)]
            needed = execution_of(m, need.execution).instruction
            standstills.append(Standstill(name, entry.index, _instruction(m, entry), needed=needed))
    if m.issuer.wait != SCALAR_RUNS:
        name, entry = encoder.pipes[0], m.entries[m.issuer.waiting]
        if m.issuer.wait == SCALAR_AWAITS_FLAG:
            standstills.append(_at_flag(m, encoder, name, entry))
        else:
            standstills.append(Standstill(name, entry.index, _instruction(m, entry)))
    return standstills


def _at_flag(m: MachineState, encoder: Encoder, pipe: str, entry: EntryRow) -> Standstill:
    flag = encoder.operations[entry.operation]
    assert isinstance(flag, FlagWait)
    return Standstill(pipe, entry.index, _instruction(m, entry), flag=flag)


def _run_on(m: MachineState, refill: Refill) -> MachineState:
    """Issue operations that no pipe demands: the machine would have issued them."""
    issued = 0
    while issued < LOOK_AHEAD and _goes_on(m):
        before = m.issuer.next
        code = issue_one(m)
        if code in (TOKENS, GROW):
            m = refill(code)
        elif code == GO and m.issuer.next != before:
            issued += 1
    return m


def _goes_on(m: MachineState) -> bool:
    """Return whether the scalar unit can issue another operation."""
    return m.issuer.wait == SCALAR_RUNS and m.issuer.beyond == NONE and not m.issuer.all_issued


def _unreached(m: MachineState, encoder: Encoder, refill: Refill) -> Iterator[Operation]:
    """Yield the operations that the scalar unit has not issued."""
    while True:
        issuer = m.issuer
        while issuer.next < issuer.end:
            issuer.next += 1
            yield encoder.operations[m.numbers[issuer.next - 1]]
        if issuer.all_issued:
            return
        code = issue_one(m)
        if code not in (GO, CHECKPOINT):
            m = refill(code)


# One attempt at a program: the machine is given what it stops for, until it has come to the end.

_PROGRESS_INTERVAL = 256
"""Operations between two calls of `Listener.progress`."""
_COMPILED_INTERVAL = 1 << 16
"""The interval for compiled runs, which execute more operations in the same time."""


class MachineAttempt:
    """The machine of one attempt and its supply: more of the program, more room, compiled code.

    `patient`: whether pipes may wait until a loop ends. `listener` receives progress.
    """

    def __init__(self, encoder: Encoder, listener: Listener | None, *, skip: bool, patient: bool) -> None:
        self._encoder = encoder
        self._memory = encoder.memory
        self._listener = listener
        self.patient = patient
        self._skipper = Skipper(encoder)
        self._rows = ExecutionRows(encoder.memory, [*encoder.spaces.values()], encoder.survey.executions)
        self._pieces: Iterator[Piece] = TokenStream(encoder, skip).pieces()
        self._piece = Piece([])
        self._driver = Driver(self._memory.machine.issuer.remaining)
        self._memory.machine.pause_at = _PROGRESS_INTERVAL

    def _refill(self, code: int) -> MachineState:
        """Supply what the machine has stopped for."""
        if code == GROW:
            self._memory.make_room()
            self._rows.make_room()
        elif code == PAUSE:
            self._pause()
        elif code == CHECKPOINT:
            assert self._piece.frame is not None
            self._skipper.look(self._memory.machine, self._piece.frame)
        elif code == TOKENS:
            self._next_piece()
        return self._memory.machine

    def _pause(self) -> None:
        """Report the progress of the run, and decide whether it continues in the same way."""
        m = self._memory.machine
        if self._listener is not None:
            self._listener.progress(*self._skipper.progress(m))
        if self._driver.pays_to_compile(m.issuer.remaining) and self._driver.compile():
            self._memory.compile()
            self._rows.widen()
            m = self._memory.machine
        m.pause_at = m.finished + (_COMPILED_INTERVAL if self._memory.is_compiled else _PROGRESS_INTERVAL)

    def _next_piece(self) -> None:
        piece = next(self._pieces, None)
        if piece is None:
            self._memory.machine.issuer.no_more = 1
            return
        self._piece = piece
        self._memory.put_tokens(piece.tokens)
        if self.patient:
            self._be_patient(piece)

    def _be_patient(self, piece: Piece) -> None:
        """Let pipes that are idle in a long loop wait until it ends, and keep the scalar unit from running ahead."""
        m = self._memory.machine
        m.issuer.demands = 0
        for p in range(1, len(self._encoder.pipes)):
            waits = piece.inside is not None and self._encoder.pipes[p] not in piece.inside.steps.pipes
            pipe = m.pipes[p]
            pipe.patient = int(waits)
            m.issuer.demands += pipe.demands * (1 - pipe.patient)

    def _step(self) -> int:
        """Run the machine; return why it has stopped."""
        return self._driver.step(self._memory.machine)


class Attempt(MachineAttempt):
    """A run to the end. With `final` no other attempt follows: a failure is raised, with its reason."""

    def __init__(
        self,
        encoder: Encoder,
        listener: Listener | None,
        max_cycles: int,
        *,
        skip: bool,
        patient: bool,
        final: bool,
    ) -> None:
        super().__init__(encoder, listener, skip=skip, patient=patient)
        self._memory.machine.maximum = self._max_cycles = max_cycles
        self._final = final

    def run(self) -> Timing | None:
        """Return the timing, None if the program must be run with less patience.

        Raises:
            EngineError: deadlock, or the end is beyond the limit.
        """
        code = self._step()
        while code not in (DONE, LIMIT, MISSED):
            self._refill(code)
            code = self._step()
        return None if code == MISSED else self._end(code)

    def operations(self) -> RunRecords[OperationTiming]:
        """Return the operations that the run has recorded."""
        return operations(self._encoder, self._skipper.operations)

    def _end(self, code: int) -> Timing | None:
        total = self._skipper.total(self._memory.machine)
        error = None
        if code == DONE:
            error = deadlock(self._memory.machine, self._encoder, self._refill)
        if error is None and (code == LIMIT or total > self._max_cycles):
            error = limit(self._memory.machine, self._encoder, self._max_cycles)
        if error is None:
            return self._timing(total)
        if self._final:
            raise error
        return None

    def _timing(self, total: int) -> Timing:
        m, encoder, skipper = self._memory.machine, self._encoder, self._skipper
        end = total - skipper.offset
        spend(m, SCALAR_PIPE, EMPTY, end, NONE)
        for p in range(1, len(encoder.pipes)):
            m.pipes[p].local = m.now + 1  # all ends are certain
            rest(m, p, EMPTY, end, NONE)
        pipes = {name: PipeTiming(skipper.causes(m, p)) for p, name in enumerate(encoder.pipes)}
        if self._listener is not None:
            self._listener.progress(total, skipper.finished(m))
        self._rows.close()
        executed = Records(partial(executions, self._rows, skipper.executions))
        return Timing(total, pipes, executed, (), frozenset(encoder.facts))


_SHORT = 512
"""Operations of a program that is executed trip by trip: looking for a steady state would take longer.

Of the shipped samples, those with up to 300 operations take up to a third less, those with 800 up to twice as long.
"""

_REPEATED = 2_000_000
"""Maximum number of operations of a failed run that is repeated step by step for the event engine's error."""

UNITS: MachinePart[Callable[[TileTarget], EncodedUnit]] = MachinePart(
    "vector unit",
    {
        "strided-repeat": "castsim.engines.fast_dataflow.strided_unit:StridedRows",
        "vector-function": "castsim.engines.fast_dataflow.function_unit:FunctionRows",
    },
)
"""The vector unit of a target."""


class FastSimulation:
    """A run of `tree` on `target`.

    Without `skip` every trip of every loop is executed.

    Raises:
        IllegalError: the target lacks a pipe or a timing row of the tree.
    """

    def __init__(
        self,
        tree: Tree,
        target: TileTarget,
        listener: Listener | None = None,
        *,
        record_operations: bool = True,
        skip: bool = True,
    ) -> None:
        unit = UNITS.of(target)(target)
        self._survey = Survey(tree)
        self._survey.check(target, unit.check)
        self._tree = tree
        self._listener = listener
        self._recording = record_operations
        self._skip = skip
        touched = [name for name in target.pipes.others if self._survey.operations[name]]
        working = (target.pipes.vector, target.pipes.load, target.pipes.store)
        self._pipes = (target.pipes.scalar, *working, *touched)
        self._target = target
        self._unit = unit

    def run(self, max_cycles: int) -> Timing:
        """Simulate to the end and return cycles and causes.

        Raises:
            EngineError: deadlock, or the end is beyond `max_cycles`.
        """
        timing, attempt = self._complete(max_cycles, patient=self._survey.operations.total() > _SHORT)
        if not self._recording:
            return timing
        patient = attempt.patient  # the attempt itself is not to be kept

        def record() -> RunRecords[OperationTiming]:
            return self._complete(max_cycles, patient=patient, recording=True)[1].operations()

        return replace(timing, operations=Records(record))

    def _complete(self, max_cycles: int, *, patient: bool, recording: bool = False) -> tuple[Timing, Attempt]:
        """Return the timing, and the attempt that has come to it."""
        if patient:
            attempt = self._attempt(max_cycles, patient=True, skip=self._skip, recording=recording)
            timing = attempt.run()
            if timing is not None:
                return timing, attempt
        # A pipe that was served late had something to do before, or something failed: as the event engine does it.
        by_steps = self._survey.operations.total() <= _REPEATED and not recording
        attempt = self._attempt(max_cycles, patient=False, skip=self._skip and not by_steps, recording=recording)
        timing = attempt.run()
        assert timing is not None
        return timing, attempt

    def _attempt(self, max_cycles: int, *, patient: bool, skip: bool, recording: bool = False) -> Attempt:
        final = not patient or self._survey.operations.total() > _REPEATED
        encoder = self.encoder(recording=recording)
        return Attempt(encoder, self._listener, max_cycles, skip=skip, patient=patient, final=final)

    def encoder(self, *, recording: bool = False) -> Encoder:
        """Return the program at its start."""
        return Encoder(self._tree, self._survey, self._target, self._unit, self._pipes, recording)


def simulate_tiles(
    tree: Tree,
    target: TileTarget,
    max_cycles: int,
    listener: Listener | None = None,
    *,
    record_operations: bool = True,
    skip: bool = True,
) -> Timing:
    """Return how long a tree of tile work takes; `skip` False steps through every trip of every loop.

    Raises:
        IllegalError, EngineError: see `FastSimulation` and its `run`.
    """
    run = FastSimulation(tree, target, listener, record_operations=record_operations, skip=skip)
    return run.run(max_cycles)


# Telling a watcher what every cycle of every pipe goes to, as `event_dataflow` does, every trip of every loop.
#
# The machine writes segments into a table and stops when that is full; here they are passed on.

_ROOM = 1 << 12
"""Segments that are passed on at once."""
_OF_A_PIPE = 16
"""Segments that a pipe completes at most between two looks at the table, those of a placed function left out."""
_FIRST_STEP = 64
"""Initial number of cycles by which time advances if a pipe has yet to finish its operation."""


def tell_tiles(tree: Tree, target: TileTarget, watcher: Watcher) -> int:
    """Report to a watcher the segments before the cycle until which it listens; return the number of issued operations.

    Raises:
        IllegalError: see `FastSimulation`.
    """
    return Telling(FastSimulation(tree, target).encoder(), watcher).run()


class Telling(MachineAttempt):
    """A run that ends where nobody listens any more."""

    def __init__(self, encoder: Encoder, watcher: Watcher) -> None:
        super().__init__(encoder, watcher, skip=False, patient=False)
        self._watcher = watcher
        self._memory.machine.telling = 1
        self._make_room()

    def run(self) -> int:
        """Simulate; return the number of issued operations.

        Working pipes then finish their operations. Waiting ones continue to wait, so
        the cause of their remaining cycles is known.
        """
        self._memory.machine.maximum = self._until()
        self._go_on()
        # What the watcher listens to is issued though no pipe demands it.
        self._memory.machine.issuer.eager = 1
        code, step = self._go_on(), _FIRST_STEP
        while code != DONE and self._is_behind():
            self._memory.machine.maximum = self._memory.machine.now + step
            code, step = self._go_on(), 2 * step
        self._end(code)
        return self._memory.machine.issuer.index

    def _go_on(self) -> int:
        """Run until nothing is left to do before the maximum; return which of the two ended it."""
        self._listen()
        code = self._step()
        while code not in (DONE, LIMIT):
            self._refill(code)
            self._make_room()
            self._pass_on()
            self._listen()
            code = self._step()
        return code

    def _until(self) -> int:
        return NEVER if self._watcher.until is None else self._watcher.until

    def _listen(self) -> None:
        """Go no further than the watcher listens by now."""
        m, until = self._memory.machine, self._until()
        if until < m.issuer.until:
            m.issuer.until = until
            m.maximum = min(m.maximum, max(until, m.now))

    def _make_room(self) -> None:
        """Ensure that there is room for all segments until the machine looks at the table again."""
        memory, m = self._memory, self._memory.machine
        margin = _OF_A_PIPE * (m.pipe_count + 1) + self._encoder.most_spans
        missing = _ROOM + margin - memory.size("segments")
        if missing > 0:
            memory.take("segments", missing)
        m.segment_most = memory.size("segments") - margin

    def _pass_on(self) -> None:
        """Tell of the segments that are complete."""
        m, names = self._memory.machine, self._encoder.pipes
        columns: dict[str, Any] = self._memory.columns("segments", 0, m.segment_count)
        m.segment_count = 0
        for p, begin, end, cause, index in zip(
            *(np.asarray(column).tolist() for column in columns.values()), strict=True
        ):
            self._watcher.segment(names[p], begin, end, CAUSES[cause], None if index == NONE else index)

    def _is_behind(self) -> bool:
        """Return whether a pipe finishes its operation later than it has reported."""
        m, until = self._memory.machine, self._until()
        return any(_works(m.pipes[p]) and m.accounts[p].cursor < until for p in range(1, m.pipe_count))

    def _end(self, code: int) -> None:
        """Attribute the cycles in which nothing more happens to an idle pipe, and report all."""
        m, end = self._memory.machine, self._until()
        if code == DONE:
            end = min(end, self._skipper.total(m))
        _rest_scalar_unit(m, end)
        for p in range(1, m.pipe_count):
            pipe = m.pipes[p]
            pipe.local = m.now + 1  # what is known now is certain
            if pipe.current != NONE and pipe.status == AWAITING_OPERANDS:
                rest(m, p, OPERAND_WAIT, end, pipe.current)
            elif pipe.current != NONE and pipe.status == AWAITING_FLAG:
                rest(m, p, FLAG_WAIT, end, pipe.current)
            else:
                rest(m, p, EMPTY, end, NONE)
        self._make_room()
        for p in range(m.pipe_count):
            close_segment(m, p)
        self._pass_on()


def _works(pipe: PipeRow) -> bool:
    """Return whether a pipe executes an operation that does not wait for another pipe, and so ends soon."""
    waits = pipe.status == AWAITING_OPERANDS or (pipe.status == AWAITING_FLAG and pipe.wake == NEVER)
    return pipe.current != NONE and not waits


def _rest_scalar_unit(m: MachineState, end: int) -> None:
    issuer = m.issuer
    if issuer.wait == SCALAR_RUNS:
        spend(m, SCALAR_PIPE, EMPTY, end, NONE)
    else:
        spend(m, SCALAR_PIPE, FLAG_WAIT if issuer.wait == SCALAR_AWAITS_FLAG else BARRIER, end, issuer.waiting)
