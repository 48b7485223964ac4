"""One point of a space: the kernel with these choices, loaded, bounded, simulated."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path

import numpy as np

from castsim.execution.buffer_use import buffer_use
from castsim.execution.limits import DEFAULT_LIMITS, Limits
from castsim.exploration.tuning.bounds import Bounds
from castsim.exploration.tuning.space import Choices, Kind, Space
from castsim.isa.codes import Codes
from castsim.isa.errors import CastsimError, EngineError
from castsim.isa.expressions import Value
from castsim.isa.pto.parameters import with_values
from castsim.isa.sources import Language, Source
from castsim.running import MAX_CYCLES, Loaded, LoadedProgram, load, run_loaded
from castsim.targets import Target
from castsim.targets.options import with_options
from castsim.timing import WAITING, Timing


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of a point.

    `number` counts the points from 1 in the order of the space. `at_least` is a lower bound of the cycles, 0 where none
    is known; `cycles` are None until it is simulated. `bound_by` is the pipe that spends most cycles on work of its
    own. `buffer_bytes` is the size of the range of the tile buffer that the kernel touches, `elements` counts those of
    its outputs. `outputs` has the SHA-256 of each output where values were computed. `reason` says why it does not run;
    the empty text if it does, or nothing has been tried yet.
    """

    number: int
    choices: Choices
    at_least: int = 0
    buffer_bytes: int | None = None
    elements: int | None = None
    cycles: int | None = None
    bound_by: str | None = None
    outputs: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""

    @property
    def cycles_per_element(self) -> float | None:
        """Cycles for each element of the outputs, None if either is not known."""
        return self.cycles / self.elements if self.cycles is not None and self.elements else None


@dataclass(frozen=True, slots=True)
class Study:
    """A kernel, its space, and everything that is the same at all points."""

    source: Source
    space: Space
    target: str | Path | Target | None = None
    entry: str | None = None
    args: Mapping[str, int | float] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, Codes | str] = field(default_factory=dict)
    sync: str = "insert"
    engine: str | None = None
    max_cycles: int = MAX_CYCLES
    limits: Limits = DEFAULT_LIMITS

    def chosen(self, choices: Choices, kind: Kind) -> dict[str, Value | float]:
        """Return the choices of one kind."""
        return {axis.name: choices[axis.name] for axis in self.space.axes if axis.kind is kind}

    def load(self, choices: Choices) -> LoadedProgram:
        """Return the kernel with these choices.

        Raises:
            CastsimError: as `castsim.running.load`.
        """
        tiles = {name: each for name, each in self.chosen(choices, Kind.TILE).items() if not isinstance(each, float)}
        source = replace(self.source, text=with_values(self.source.text, self.source.file, tiles))
        given = {name: each for name, each in self.chosen(choices, Kind.ARGUMENT).items() if not isinstance(each, str)}
        options = {name: str(each) for name, each in self.chosen(choices, Kind.OPTION).items()}
        target = next((str(each) for each in self.chosen(choices, Kind.TARGET).values()), self.target)
        changes = {**self.options, **options}
        return load(
            source, target, self.entry, {**self.args, **given},
            lambda plain: with_options(plain, changes), sync=self.sync, limits=self.limits,
        )  # fmt: skip


class Points:
    """Loads, bounds and simulates the points of a study."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._bounds: dict[str, Bounds] = {}

    def bounded(self, row: Row) -> Row:
        """Return a row with what is known without simulating the kernel.

        Raises:
            CastsimError: the kernel cannot have these choices.
        """
        loaded = self._study.load(row.choices)
        tree = loaded.tree
        if tree is None or loaded.untimed or loaded.language != Language.TILES.value:
            return row
        key = repr([value for kind in (Kind.TARGET, Kind.OPTION)
                    for value in self._study.chosen(row.choices, kind).items()])  # fmt: skip
        bounds = self._bounds.setdefault(key, Bounds(loaded.target))
        return replace(_sized(row, loaded), at_least=bounds.of(tree))

    def simulated(self, row: Row) -> Row:
        """Return a row with its cycles.

        Raises:
            CastsimError, EngineError: as `castsim.run`.
        """
        study = self._study
        result = run_loaded(
            study.load(row.choices), study.inputs, engine=study.engine, timing_only=not study.inputs,
            max_cycles=study.max_cycles, limits=study.limits,
        )  # fmt: skip
        outputs = {name: _digest(each) for name, each in result.outputs.items()}
        return replace(
            _sized(row, result.loaded), cycles=result.cycles, bound_by=_bound_by(result.timing), outputs=outputs
        )


def refused(row: Row, error: CastsimError | EngineError) -> Row:
    """Return the row of a point that does not run."""
    place = f"{error.span}: " if error.span else ""
    return replace(row, reason=f"{place}{error.message}", cycles=None)


def _sized(row: Row, loaded: LoadedProgram | Loaded) -> Row:
    tree = loaded.tree
    if tree is None:
        return row
    used = [each.end - each.start for each in buffer_use(tree, loaded.target)]
    elements = sum(prod(use.shape) for use in loaded.arguments.values() if use.stored)
    return replace(row, buffer_bytes=sum(used), elements=elements)


def _bound_by(timing: Timing) -> str | None:
    """Return the pipe that spends most cycles on work of its own, the first one of equals."""
    own = {
        name: sum(cycles for cause, cycles in pipe.causes.items() if cause not in WAITING)
        for name, pipe in timing.pipes.items()
    }
    return max(own, key=lambda name: own[name], default=None)


def _digest(values: Codes) -> str:
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()


__all__ = ["Points", "Row", "Study", "refused"]
