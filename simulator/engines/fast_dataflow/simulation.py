"""One simulation: the program as tokens, the machine that executes them, and what is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from castsim.engines.fast_dataflow import explain
from castsim.engines.fast_dataflow.codes import (
    CHECKPOINT,
    CHECKPOINT_TOKEN,
    DONE,
    EMPTY,
    GROW,
    LIMIT,
    MISSED,
    NEVER,
    NONE,
    PAUSE,
    SCALAR_PIPE,
    TOKENS,
)
from castsim.engines.fast_dataflow.drift_skipping import DriftSkipper
from castsim.engines.fast_dataflow.driving import Driver
from castsim.engines.fast_dataflow.encoding import Encoder
from castsim.engines.fast_dataflow.execution_rows import ExecutionRows
from castsim.engines.fast_dataflow.pipes import rest, spend
from castsim.engines.fast_dataflow.records import Later
from castsim.engines.fast_dataflow.report import executions, operations
from castsim.engines.fast_dataflow.start import FunctionRoom, start
from castsim.engines.fast_dataflow.state import MachineState
from castsim.engines.fast_dataflow.tokens import Piece, TokenStream
from castsim.engines.fast_dataflow.units import Unit
from castsim.execution.dataflow.survey import Survey
from castsim.execution.tree import Tree
from castsim.machines.registry import Parts
from castsim.targets.loader import TileTarget
from castsim.timing import Listener, OperationTiming, PipeTiming, Timing

_PROGRESS_INTERVAL = 256
"""Operations between two calls of `Listener.progress`."""
_COMPILED_INTERVAL = 1 << 16
"""The same for compiled runs, which have more of them done in less time."""
_PATIENCE = 4096
"""Entries of a queue beyond which the scalar unit does not run ahead for others."""
_REPEATED = 2_000_000
"""Operations of a program up to which a failed run is repeated step by step, to say what the event engine would."""

UNITS: Parts[Callable[[TileTarget], Unit]] = Parts(
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
        IllegalError: the tree needs a pipe or a timing row that the target does not have.
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
        self._remaining = self._survey.operations
        touched = [name for name in target.pipes.others if self._remaining[name]]
        working = (target.pipes.vector, target.pipes.load, target.pipes.store)
        self._pipes = (target.pipes.scalar, *working, *touched)
        self._target = target
        self._unit = unit

    def run(self, max_cycles: int) -> Timing:
        """Simulate to the end and return cycles and causes.

        Raises:
            EngineError: deadlock, or the end lies beyond `max_cycles`.
        """
        patient = True
        timing = self._attempt(max_cycles, patient=patient, skip=self._skip).run()
        if timing is None:
            # A pipe that was served late had something to do before, or something failed: as the event engine does it.
            patient = False
            repeated = self._remaining.total() <= _REPEATED
            timing = self._attempt(max_cycles, patient=patient, skip=self._skip and not repeated).run()
        assert timing is not None
        if not self._recording:
            return timing

        def record() -> Sequence[OperationTiming]:
            recorded = self._attempt(max_cycles, patient=patient, skip=self._skip, recording=True).run()
            assert recorded is not None
            return recorded.operations

        return replace(timing, operations=Later(record))

    def _attempt(self, max_cycles: int, *, patient: bool, skip: bool, recording: bool = False) -> _Run:
        encoder = Encoder(self._tree, self._survey, self._target, self._unit, self._pipes)
        patience = _PATIENCE if patient else NEVER
        start(encoder, self._remaining, max_cycles, recording=recording, patience=patience)
        final = not patient or self._remaining.total() > _REPEATED
        return _Run(
            encoder, self._listener, self._survey.executions, max_cycles, skip=skip, patient=patient, final=final
        )


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
        IllegalError, EngineError: as `FastSimulation` and its `run`.
    """
    run = FastSimulation(tree, target, listener, record_operations=record_operations, skip=skip)
    return run.run(max_cycles)


class _Run:
    """One attempt; `final`: there is no other, so it has to say why it fails. `count`: executions at most."""

    def __init__(
        self,
        encoder: Encoder,
        listener: Listener | None,
        count: int,
        max_cycles: int,
        *,
        skip: bool,
        patient: bool,
        final: bool,
    ) -> None:
        self._encoder = encoder
        self._memory = encoder.memory
        self._listener = listener
        self._max_cycles = max_cycles
        self._patient = patient
        self._final = final
        self._skipper = DriftSkipper(encoder)
        self._rows = ExecutionRows(encoder.memory, [*encoder.spaces.values()], count)
        self._room = FunctionRoom(encoder)
        self._pieces: Iterator[Piece] = TokenStream(encoder, skip, drifts=skip and patient).pieces()
        self._piece = Piece([])
        self._driver = Driver(self._memory.machine.issuer.remaining)
        self._memory.machine.pause_at = _PROGRESS_INTERVAL

    def run(self) -> Timing | None:
        """Return the timing, None if the program has to be run with less patience.

        Raises:
            EngineError: deadlock, or the end lies beyond the limit.
        """
        while True:
            code = self._driver.step(self._memory.machine)
            if code == MISSED:
                return None
            if code in (DONE, LIMIT):
                return self._end(code)
            self._refill(code)

    def _refill(self, code: int) -> MachineState:
        """Give the machine what it has stopped for."""
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
        """Tell how far the run has come, and see whether it goes on as it does."""
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
        if piece.aside is not None:
            self._skipper.turn_aside(self._memory.machine, piece.aside)
        self._memory.put_tokens(piece.tokens if piece.frame is None else [*piece.tokens, CHECKPOINT_TOKEN])
        self._room.make()
        if self._patient:
            self._be_patient(piece)

    def _be_patient(self, piece: Piece) -> None:
        """Let pipes that have nothing to do in a long loop wait until it ends, and the scalar unit not run ahead."""
        m = self._memory.machine
        m.issuer.demands = 0
        for p in range(1, len(self._encoder.pipes)):
            waits = piece.inside is not None and self._encoder.pipes[p] not in piece.inside.pipes
            pipe = m.pipes[p]
            pipe.patient = int(waits)
            m.issuer.demands += pipe.demands * (1 - pipe.patient)

    def _end(self, code: int) -> Timing | None:
        total = self._skipper.total(self._memory.machine)
        error = None
        if code == DONE:
            error = explain.deadlock(self._memory.machine, self._encoder, self._refill)
        if error is None and (code == LIMIT or total > self._max_cycles):
            error = explain.limit(self._memory.machine, self._encoder, self._max_cycles)
        if error is None:
            return self._timing(total)
        if self._final and not self._skipper.drifted:
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
        return Timing(
            total,
            pipes,
            executions(self._rows, skipper.executions),
            operations(encoder, skipper.operations) if m.recording else (),
            frozenset(encoder.facts),
        )
