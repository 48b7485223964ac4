"""What a run would take with one limit of its target lifted: which limits matter, and how much.

Every answer is an ordinary simulation of the program on the description with the facts of the limit edited
(`targets.what_if`); nothing is estimated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulator.running import MAX_CYCLES, Loaded, load, run_loaded
from targets import Target
from targets.what_if import lifted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simulator.vliw.assembled import Assembled

ALL = "all"
"""In place of names: every limit that the target names."""

Lift = Callable[[Target], Target]


@dataclass(frozen=True, slots=True)
class Gain:
    """A limit, the facts that lifting it edits, and the cycles of the run without it; `gained` are those it saves."""

    name: str
    title: str
    facts: Mapping[str, object]
    cycles: int
    gained: int


def limits_asked_for(target: Target, names: Sequence[str]) -> tuple[str, ...]:
    """Return the limits that are meant, each once.

    Raises:
        ReadError: one that the target does not name; those that it names are listed.
    """
    if ALL in names:
        names = [*(name for name in names if name != ALL), *target.what_if]
    for name in names:
        lifted(target, name)
    return tuple(dict.fromkeys(names))


def gains(target: Target, names: Sequence[str], cycles: int, rerun: Callable[[Lift], int]) -> tuple[Gain, ...]:
    """Return what lifting each limit gains, largest gain first.

    Args:
        target: where the program ran.
        names: limits, or `all`.
        cycles: what it took.
        rerun: takes what changes the target, and returns the cycles with it changed.

    Raises:
        ReadError: as `limits_asked_for`.
    """
    found = []
    for name in limits_asked_for(target, names):
        limit = target.what_if[name]
        without = rerun(lambda chosen, name=name: lifted(chosen, name))  # type: ignore[misc]
        found.append(Gain(name, limit.title, dict(limit.set), without, cycles - without))
    return tuple(sorted(found, key=lambda gain: -gain.gained))


def what_if(
    program: str | Path,
    names: Sequence[str] = (ALL,),
    target: str | Path | Target | None = None,
    entry: str | None = None,
    inputs: Mapping[str, NDArray[Any] | str] | None = None,
    args: Mapping[str, int | float] | None = None,
    max_cycles: int = MAX_CYCLES,
) -> tuple[Gain, ...]:
    """Run a program once as it is and once with each limit lifted; return the gains, largest first.

    Inputs are needed only where they decide the path (assembly).

    Raises:
        ReadError: as `simulator.run`; a limit that the target does not name.
    """

    def loaded(lift: Lift) -> Loaded | Assembled:
        return load(Path(program), target, entry, args or {}, prepare=lift)

    def cycles(of: Loaded | Assembled) -> int:
        # Tile programs take the same path whatever their values are.
        given = {} if isinstance(of, Loaded) else inputs or {}
        return run_loaded(of, given, timing_only=not given, max_cycles=max_cycles).cycles

    first = loaded(lambda chosen: chosen)
    limits_asked_for(first.target, names)  # a wrong name must not cost a run
    return gains(first.target, names, cycles(first), lambda lift: cycles(loaded(lift)))
