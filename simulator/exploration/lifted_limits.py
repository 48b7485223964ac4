"""The cycles of a run with one limit of its target lifted: which limits matter, and how much.

Every answer is an ordinary simulation of the program on the description with the facts of the limit edited
(`castsim.targets.description`), but for the latencies of bundles: these stand in the text of the program, not in the
time of the machine, so that the answer is a bound for the program with its loops as they are written
(`castsim.machines.vliw.latency_bound`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.execution.run_limits import MAX_CYCLES, Limits
from castsim.execution.timing import WAITING, Cause, Timing
from castsim.isa.errors import MAX_STATEMENTS, ReadError
from castsim.isa.formats import Codes
from castsim.running.loaded import LoadedProgram
from castsim.running.program_loading import load
from castsim.running.program_runs import Result, run_loaded
from castsim.targets.description import lifted
from castsim.targets.loader import Target

if TYPE_CHECKING:
    from castsim.machines.vliw.latency_bound import LatencyBound


ALL = "all"
"""In place of names: every limit that the target names."""

Lift = Callable[[Target], Target]


@dataclass(frozen=True, slots=True)
class LiftedLimit:
    """A limit, the facts that lifting it edits, and the cycles of the run without it; `gained` are those it saves.

    `reason` says on what a run spends more where lifting costs cycles; '' where it does not.
    """

    name: str
    title: str
    facts: Mapping[str, object]
    cycles: int
    gained: int
    reason: str = ""


LATENCY = "latency"
"""The limit that a program of bundles has by its own text."""
_NO_LATENCY = "every result can be read in the next bundle"
_NAMED = 3
"""Causes that a reason names at the most."""
_WHY: Mapping[Cause, str] = {
    Cause.BANK_CONFLICT: "accesses come at other times and meet others at the buffer",
    Cause.PORT: "accesses come at other times and meet others at a port",
    Cause.FILL: "instructions come at other times, and more of them find the pipe idle",
    Cause.DRAIN: "more results are still on their way to the buffer when the pipe has nothing else to do",
}


def limits_known(target: Target) -> tuple[str, ...]:
    """Return the limits that can be lifted: those that the target names, and latencies where bundles expose them."""
    return (*target.what_if, *((LATENCY,) if "tpc" in target.languages else ()))


def limits_asked_for(target: Target, names: Sequence[str]) -> tuple[str, ...]:
    """Return the limits that are meant, each once.

    Raises:
        ReadError: one that is not known; those that are stand beside it.
    """
    known = limits_known(target)
    if ALL in names:
        names = [*(name for name in names if name != ALL), *known]
    for name in names:
        if name not in known:
            raise ReadError(f"{target.name} knows no what-if '{name}'", legal=known)
        if name in target.what_if:
            lifted(target, name)
    return tuple(dict.fromkeys(names))


def gains(
    target: Target,
    names: Sequence[str],
    timing: Timing,
    rerun: Callable[[Lift], Timing],
    latencies: LatencyBound | None = None,
) -> tuple[LiftedLimit, ...]:
    """Return the gain of lifting each limit, largest first.

    Args:
        target: where the program ran.
        names: limits, or `all`.
        timing: what it took.
        rerun: takes what changes the target, and returns what the program takes with it changed.
        latencies: what latencies cost it, of a program of bundles.

    Raises:
        ReadError: as `limits_asked_for`.
    """
    found = []
    for name in limits_asked_for(target, names):
        if name not in target.what_if:
            if latencies is not None:
                found.append(LiftedLimit(name, _NO_LATENCY, {}, timing.total - latencies.gained, latencies.gained))
            continue
        limit = target.what_if[name]
        without = rerun(lambda chosen, name=name: lifted(chosen, name))  # type: ignore[misc]
        gained = timing.total - without.total
        reason = _reason(timing, without) if gained < 0 else ""
        found.append(LiftedLimit(name, limit.title, dict(limit.set), without.total, gained, reason))
    return tuple(sorted(found, key=lambda gain: -gain.gained))


def _reason(before: Timing, after: Timing) -> str:
    """Return on which pipes what takes longer, largest growth first; waits only if nothing else does."""
    grown = [
        (cycles - before.pipes[pipe].causes.get(cause, 0), pipe, cause, cycles)
        for pipe, timing in after.pipes.items()
        for cause, cycles in timing.causes.items()
    ]
    grown = [each for each in grown if each[0] > 0]
    # Waiting grows on every other pipe when one takes longer: it is no reason by itself.
    own = [each for each in grown if each[2] not in WAITING] or grown
    named = sorted(own, key=lambda each: -each[0])[:_NAMED]
    numbers = [f"{cause} of {pipe} {cycles - more} -> {cycles}" for more, pipe, cause, cycles in named]
    why = [_WHY[cause] for cause in dict.fromkeys(each[2] for each in named) if cause in _WHY]
    return ": ".join(part for part in (", ".join(numbers), "; ".join(why)) if part)


def what_if(
    program: str | Path,
    names: Sequence[str] = (ALL,),
    target: str | Path | Target | None = None,
    entry: str | None = None,
    inputs: Mapping[str, Codes | str] | None = None,
    args: Mapping[str, int | float] | None = None,
    max_cycles: int = MAX_CYCLES,
    max_walk: int | None = None,
    max_statements: int = MAX_STATEMENTS,
) -> tuple[LiftedLimit, ...]:
    """Run a program once as it is and once with each limit lifted; return the gains, largest first.

    Inputs are needed only where they decide the path (assembly).

    Raises:
        ReadError: as `castsim.run`; a limit that the target does not name.
    """

    limits = Limits(max_statements, max_walk)

    def loaded(lift: Lift) -> LoadedProgram:
        return load(Path(program), target, entry, args or {}, prepare=lift, limits=limits)

    def ran(of: LoadedProgram) -> Result:
        given = inputs or {} if of.tree is None else {}  # which decide nothing where the path is known
        return run_loaded(of, given, timing_only=not given, max_cycles=max_cycles, limits=limits)

    first = loaded(lambda chosen: chosen)
    limits_asked_for(first.target, names)  # a wrong name must not cost a run
    before = ran(first)
    latencies = before.loaded.latencies(before.timing)
    return gains(first.target, names, before.timing, lambda lift: ran(loaded(lift)).timing, latencies)
