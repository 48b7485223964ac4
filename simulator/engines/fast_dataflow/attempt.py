"""One attempt at a program: the machine is given what it stops for, until it has come to the end."""

from __future__ import annotations

from collections.abc import Iterator

from castsim.engines.fast_dataflow import explain
from castsim.engines.fast_dataflow.codes import (
    CHECKPOINT,
    CHECKPOINT_TOKEN,
    DONE,
    EMPTY,
    GROW,
    LIMIT,
    MISSED,
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
from castsim.engines.fast_dataflow.report import executions, operations
from castsim.engines.fast_dataflow.start import FunctionRoom
from castsim.engines.fast_dataflow.state import MachineState
from castsim.engines.fast_dataflow.tokens import Piece, TokenStream
from castsim.timing import Listener, PipeTiming, Timing

_PROGRESS_INTERVAL = 256
"""Operations between two calls of `Listener.progress`."""
_COMPILED_INTERVAL = 1 << 16
"""The same for compiled runs, which have more of them done in less time."""


class Machine:
    """The machine of one attempt and what it needs: more of the program, more room, compiled code.

    `count`: executions at most; `patient`: whether pipes may wait until a loop ends. `listener` hears of progress.
    """

    def __init__(
        self,
        encoder: Encoder,
        listener: Listener | None,
        count: int,
        *,
        skip: bool,
        patient: bool,
    ) -> None:
        self._encoder = encoder
        self._memory = encoder.memory
        self._listener = listener
        self._patient = patient
        self._skipper = DriftSkipper(encoder)
        self._rows = ExecutionRows(encoder.memory, [*encoder.spaces.values()], count)
        self._room = FunctionRoom(encoder)
        self._pieces: Iterator[Piece] = TokenStream(encoder, skip, drifts=skip and patient).pieces()
        self._piece = Piece([])
        self._driver = Driver(self._memory.machine.issuer.remaining)
        self._memory.machine.pause_at = _PROGRESS_INTERVAL

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

    def _step(self) -> int:
        """Let the machine run; return why it has stopped."""
        return self._driver.step(self._memory.machine)


class Attempt(Machine):
    """A run to the end. With `final` no other attempt follows: a failure is raised, with its reason."""

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
        super().__init__(encoder, listener, count, skip=skip, patient=patient)
        self._max_cycles = max_cycles
        self._final = final

    def run(self) -> Timing | None:
        """Return the timing, None if the program has to be run with less patience.

        Raises:
            EngineError: deadlock, or the end lies beyond the limit.
        """
        code = self._step()
        while code not in (DONE, LIMIT, MISSED):
            self._refill(code)
            code = self._step()
        return None if code == MISSED else self._end(code)

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
