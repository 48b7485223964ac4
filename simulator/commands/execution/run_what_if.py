"""What `castsim run` times the program again for: limits lifted one at a time, facts a little different."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.estimating.trust import sensitivities
from castsim.exploration.what_if import gains, limits_asked_for
from castsim.isa.errors import ReadError

_SHORT = 64
"""Operations of a program up to which a page and a document tell the weight of facts unasked: it is timed for each."""

if TYPE_CHECKING:
    from castsim.estimating.trust import Sensitivity
    from castsim.exploration.what_if import Gain
    from castsim.running import LoadedProgram, Result
    from castsim.targets import Target
    from castsim.timing import Timing


def check_what_if(options: Namespace) -> None:
    """Reject a program that cannot be read again.

    Raises:
        ReadError: it comes from standard input or another pipe.
    """
    if options.what_if is None or not _read_once(options):
        return
    held = "standard input" if options.program == "-" else f"'{options.program}'"
    raise ReadError(f"--what-if reads the program more than once, {held} has it only once", legal=("FILE",))


def _read_once(options: Namespace) -> bool:
    path = Path(options.program)
    return options.program == "-" or path.is_fifo() or path.is_char_device()


def names_of(options: Namespace, target: Target) -> tuple[str, ...]:
    """Return the limits to lift, none if the option was not given.

    Raises:
        ReadError: no such limit.
    """
    if options.what_if is None:
        return ()
    return limits_asked_for(target, [name.strip() for name in options.what_if.split(",")])


def weighed(
    options: Namespace,
    target: Target,
    result: Result,
    reload: Callable[[Callable[[Target], Target]], LoadedProgram],
    run: Callable[[LoadedProgram], Timing],
) -> tuple[Sensitivity, ...] | None:
    """Return how much numbers of facts weigh, if that is asked for or the program short; None otherwise."""
    timing = result.timing
    asked = options.facts or ((options.json or options.html) and len(timing.operations) <= _SHORT)
    if not asked or _read_once(options):
        return None
    return sensitivities(target, timing.facts, timing.total, lambda lift: run(reload(lift)).total)


def lift_limits(
    names: tuple[str, ...],
    target: Target,
    result: Result,
    reload: Callable[[Callable[[Target], Target]], LoadedProgram],
    run: Callable[[LoadedProgram], Timing],
) -> tuple[Gain, ...]:
    """Return the gain of lifting each limit, largest first."""
    latencies = result.loaded.latencies(result.timing) if names else None
    return gains(target, names, result.timing, lambda lift: run(reload(lift)), latencies)
