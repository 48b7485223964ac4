"""The bottleneck of a run: the pipe that works the largest part of the time, and on what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from castsim.timing import WAITING, Cause, PipeTiming, Timing


@dataclass(frozen=True, slots=True)
class Limiter:
    """The pipe with the most occupied cycles, and the cause that takes the largest part of them."""

    pipe: str
    cause: Cause
    cycles: int
    occupied: int
    total: int

    def sentence(self) -> str:
        """Return it in words."""
        works = f"{self.pipe} is occupied {share(self.occupied, self.total)} of the time"
        return f"bound by {self.pipe}: {self.cause} {share(self.cycles, self.total)} ({works})"


def limiter(timing: Timing) -> Limiter | None:
    """Return the bottleneck of a run, None if no pipe did anything; of equals the pipe named first."""
    occupied = {name: _occupied(pipe) for name, pipe in timing.pipes.items()}
    pipe = max(occupied, key=lambda name: occupied[name], default=None)
    if pipe is None or not occupied[pipe]:
        return None
    own = {cause: cycles for cause, cycles in timing.pipes[pipe].causes.items() if cause not in WAITING}
    cause = max(own, key=lambda name: own[name])
    return Limiter(pipe, cause, own[cause], occupied[pipe], timing.total)


def causes_of(pipe: PipeTiming) -> dict[Cause, int]:
    """Return the cycles of a pipe by cause, without zeros, in the order of `Cause`."""
    return {cause: pipe.causes[cause] for cause in Cause if pipe.causes.get(cause)}


def present_causes(pipes: Mapping[str, PipeTiming]) -> list[Cause]:
    """Return the causes that some pipe has, in the order of `Cause`."""
    return [cause for cause in Cause if any(pipe.causes.get(cause) for pipe in pipes.values())]


def share(part: int, whole: int) -> str:
    """Return a percentage with one decimal."""
    return f"{100 * part / whole:.1f} %" if whole else "0.0 %"


def _occupied(pipe: PipeTiming) -> int:
    return sum(cycles for cause, cycles in pipe.causes.items() if cause not in WAITING)
