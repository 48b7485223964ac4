"""The document of `castsim tune`."""

from __future__ import annotations

from typing import ClassVar

from castsim.reports.schemas.keys import Bytes, Cycles, Form, Keys, Name, Sha256


class TuningAxis(Keys):
    """A choice."""

    name: str
    """Its name."""
    kind: str
    """What it is about: tile, arg, option or target."""
    values: list[int | float | str]
    """The values to choose from."""


class TuningRow(Keys):
    """A point of the space."""

    choices: dict[Name, int | float | str]
    """The value of each choice."""
    cycles: Cycles | None
    """Cycles; null if it was not simulated or does not run."""
    at_least: Cycles
    """A lower bound of the cycles; 0 if none is known."""
    cycles_per_element: float | None
    """Cycles for each element of the outputs; null as `cycles`."""
    buffer_bytes: Bytes | None
    """Size of the range of the tile buffer that the program touches; null if it is not known."""
    bound_by: str | None
    """The pipe that spends most cycles on work of its own; null as `cycles`."""
    pareto: bool
    """Whether no simulated point has fewer cycles or bytes and no more of the other."""
    outputs: dict[Name, Sha256]
    """Digest of the elements of each output; empty if no values were computed."""
    reason: str | None
    """Why it does not run; null if it does, or was not tried."""


class TuningDifference(Keys):
    """A point whose outputs are not those of the best."""

    choices: dict[Name, int | float | str]
    """The value of each choice."""
    outputs: list[str]
    """The names of the outputs that differ."""


class Tune(Form):
    """The tile shapes and choices of a kernel, ranked."""

    NAME: ClassVar[str] = "tune"

    program: str
    """The program."""
    space: list[TuningAxis]
    """The choices."""
    conditions: list[str]
    """The conditions between them."""
    combinations: int
    """Combinations of all values."""
    left_out: int
    """Combinations for which a condition does not hold."""
    points: int
    """The other combinations."""
    simulated: int
    """Points with cycles."""
    refused: int
    """Points that do not run."""
    best_is_proven: bool
    """Whether no other point can have fewer cycles."""
    pareto_is_proven: bool
    """Whether no other point can be on the front."""
    best: TuningRow | None
    """The point with fewest cycles; null if none runs."""
    command: str | None
    """The command that runs it; null as `best`."""
    outputs_equal: bool | None
    """Whether all simulated points give the same bits; null if no inputs were given."""
    differing: list[TuningDifference]
    """The points that do not."""
    rows: list[TuningRow]
    """All points: simulated ones by cycles, then the others by lower bounds, then those that do not run."""
