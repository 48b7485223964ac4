"""The option of `castsim run` that lifts limits of the target, one at a time."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulator.running import Loaded
    from simulator.vliw.assembled import Assembled
    from simulator.what_if import Gain
    from targets import Target


def declare_what_if(parser: ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument(
        "--what-if", metavar="NAMES", help="run again with a limit lifted: names with commas between them, or all"
    )


def check_what_if(options: Namespace) -> None:
    """Refuse a program that cannot be read again.

    Raises:
        ReadError: it comes from standard input or another pipe.
    """
    from pathlib import Path  # noqa: PLC0415

    from isa.errors import ReadError  # noqa: PLC0415

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
    from simulator.what_if import limits_asked_for  # noqa: PLC0415

    if options.what_if is None:
        return ()
    return limits_asked_for(target, [name.strip() for name in options.what_if.split(",")])


def lift_limits(
    names: tuple[str, ...],
    target: Target,
    cycles: int,
    reload: Callable[[Callable[[Target], Target]], Loaded | Assembled],
    run: Callable[[Loaded | Assembled], int],
) -> tuple[Gain, ...]:
    """Return what each limit is worth, largest gain first."""
    from simulator.what_if import gains  # noqa: PLC0415

    return gains(target, names, cycles, lambda lift: run(reload(lift)))
