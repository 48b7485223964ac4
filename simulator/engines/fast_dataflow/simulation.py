"""One simulation: the program as tokens, the machine that executes them, and what is reported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from castsim.engines.fast_dataflow.attempt import Attempt
from castsim.engines.fast_dataflow.codes import NEVER
from castsim.engines.fast_dataflow.encoding import Encoder
from castsim.engines.fast_dataflow.records import Later
from castsim.engines.fast_dataflow.start import start
from castsim.engines.fast_dataflow.units import Unit
from castsim.execution.dataflow.survey import Survey
from castsim.execution.tree import Tree
from castsim.machines.registry import Parts
from castsim.targets.loader import TileTarget
from castsim.timing import Listener, OperationTiming, Timing

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
        timing, patient = self._complete(max_cycles, patient=True)
        if not self._recording:
            return timing

        def record() -> Sequence[OperationTiming]:
            return self._complete(max_cycles, patient=patient, recording=True)[0].operations

        return replace(timing, operations=Later(record))

    def at_every_step(self) -> tuple[Encoder, int]:
        """Return the program at its start, for a run without limit that executes every trip, and its executions."""
        return self._encoder(NEVER, recording=False, patience=NEVER), self._survey.executions

    def _complete(self, max_cycles: int, *, patient: bool, recording: bool = False) -> tuple[Timing, bool]:
        """Return the timing, and whether patience sufficed for it.

        Where operations are recorded it may not, though it did before: then trips of pipes that drift apart are
        executed, and their queues become so long that other pipes are served late.
        """
        if patient:
            timing = self._attempt(max_cycles, patient=True, skip=self._skip, recording=recording).run()
            if timing is not None:
                return timing, True
        # A pipe that was served late had something to do before, or something failed: as the event engine does it.
        by_steps = self._remaining.total() <= _REPEATED and not recording
        timing = self._attempt(max_cycles, patient=False, skip=self._skip and not by_steps, recording=recording).run()
        assert timing is not None
        return timing, False

    def _attempt(self, max_cycles: int, *, patient: bool, skip: bool, recording: bool = False) -> Attempt:
        encoder = self._encoder(max_cycles, recording=recording, patience=_PATIENCE if patient else NEVER)
        final = not patient or self._remaining.total() > _REPEATED
        return Attempt(
            encoder, self._listener, self._survey.executions, max_cycles, skip=skip, patient=patient, final=final
        )

    def _encoder(self, max_cycles: int, *, recording: bool, patience: int) -> Encoder:
        """Return the program at its start."""
        encoder = Encoder(self._tree, self._survey, self._target, self._unit, self._pipes)
        start(encoder, self._remaining, max_cycles, recording=recording, patience=patience)
        return encoder


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
