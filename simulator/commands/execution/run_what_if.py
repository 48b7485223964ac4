"""The option of `castsim run` that lifts limits of the target, one at a time."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.exploration.what_if import gains, limits_asked_for
from castsim.isa.errors import ReadError

if TYPE_CHECKING:
    from castsim.exploration.what_if import Gain
    from castsim.running import LoadedProgram, Result
    from castsim.targets import Target
    from castsim.timing import Timing


def check_what_if(options: Namespace) -> None:
    """Reject a program that cannot be read again.

    Raises:
        ReadError: it comes from standard input or another pipe.
    """
    if options.what_if is None:
        return
    if options.program == "-":
        raise ReadError("--what-if reads the program more than once, standard input has it only once", legal=("FILE",))
    path = Path(options.program)
    if path.is_fifo() or path.is_char_device():
        raise ReadError(f"--what-if reads the program more than once, '{path}' has it only once", legal=("FILE",))


def names_of(options: Namespace, target: Target) -> tuple[str, ...]:
    """Return the limits to lift, none if the option was not given.

    Raises:
        ReadError: no such limit.
    """
    if options.what_if is None:
        return ()
    return limits_asked_for(target, [name.strip() for name in options.what_if.split(",")])


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
