"""The fragments that `castsim run -e` takes in place of a file."""

from __future__ import annotations

from argparse import Namespace

from castsim.isa.errors import ReadError
from castsim.running import LoadedProgram
from castsim.running.fragments import NAME, Fragment, whole
from castsim.targets import load_target

_DRAWN = "random:0"


def fragment_of(options: Namespace) -> Fragment | None:
    """Return the fragment that was typed, None for a file; the program is then called by the fragment's name.

    Raises:
        ReadError: neither or both were given, no target, or the fragment cannot be read.
    """
    if options.execute is None:
        if options.program is None:
            raise ReadError("nothing to run", legal=("PROGRAM", "-e TEXT"))
        return None
    if options.program is not None:
        raise ReadError(f"-e runs a fragment in place of '{options.program}'", legal=("PROGRAM", "-e TEXT"))
    if options.target is None:
        raise ReadError("a fragment names no target", legal=("--target T",))
    if options.all_entries or options.entry is not None:
        raise ReadError("a fragment has one entry; --entry and --all-entries are for .pto files")
    options.program = NAME
    return whole(options.execute, load_target(options.target))


def drawn_inputs(loaded: LoadedProgram) -> dict[str, str]:
    """Return random inputs for all that a program reads."""
    return {name: _DRAWN for name, use in loaded.arguments.items() if use.needs_input}
