"""The command line: `castsim COMMAND ...`, also `python -m castsim`.

Only the modules for reading the command are imported here; a command imports the rest when it runs.
"""

from __future__ import annotations

import os
import sys

INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 plus the number of SIGINT, as shells count."""

try:
    import errno
    import gc
    import signal
    from collections.abc import Iterator, Sequence
    from contextlib import contextmanager
    from types import FrameType
    from typing import TYPE_CHECKING

    from castsim.commands import command_line
except KeyboardInterrupt:  # `main` is not there yet to say so
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)

if TYPE_CHECKING:
    from argparse import Namespace

    from castsim.commands.outcome import CommandOutcome

_OBJECTS_BETWEEN_COLLECTIONS = 150_000
"""Python's 700 spends a tenth of a short command on looking for garbage among the classes that imports make.

There are about 100,000 objects when a short run ends.
"""


LEAST_ADDRESS_SPACE = 224 << 20
"""Minimum address space in bytes for loading NumPy; with less, its libraries end the process themselves."""


def address_space() -> int | None:
    """Return the bytes of address space that the system allows the process (`ulimit -v`), None for no limit."""
    try:
        import resource  # noqa: PLC0415 - Windows has none
    except ImportError:
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


_NO_SPACE = b"error: not enough memory: `ulimit -v` leaves too little address space\n"


def _lacks_space(error: Exception) -> bool:
    """Return whether an error may result from too little address space: mapping or compiling fails in many ways."""
    if isinstance(error, OSError):
        return error.errno in (None, errno.ENOMEM)
    return isinstance(error, MemoryError | ImportError | SystemError) and not isinstance(error, ModuleNotFoundError)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0: success. 1: well-formed, but rejected or failed. 2: malformed command or file. 130: interrupted.
    Bad input never gives a traceback; an internal error gives one only with CASTSIM_DEBUG=1.
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    # The command needs no plugins of pydantic, which looks for them in every installed package.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    if sys.stderr is None:  # closed: `print` would then take standard output, which may carry a document
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123 - lives as long as the process
    space = address_space()
    if space is not None:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each of its threads takes address space
        if space < LEAST_ADDRESS_SPACE:
            print(
                f"error: `ulimit -v` leaves {space >> 10} KiB of address space, castsim needs at least "
                f"{LEAST_ADDRESS_SPACE >> 10}",
                file=sys.stderr,
            )
            return 1
    try:
        with kept_interrupts():
            code = _run(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt as interrupt:  # whoever raised it may have added what was saved
        from castsim.isa.errors import escaped  # noqa: PLC0415 - only an interrupted run pays for it

        print(escaped("; ".join(("interrupted", *map(str, interrupt.args)))), file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        from castsim.commands.outcome import forget_stdout  # noqa: PLC0415 - only a failing run pays for it

        forget_stdout()
        return 0
    except OSError as error:  # the help or the version: all else is flushed where it is printed
        from castsim.commands.outcome import refuse_stdout  # noqa: PLC0415 - as above

        return refuse_stdout(error)
    return code


def _run(arguments: list[str]) -> int:
    destination = command_line.json_destination(arguments)
    try:
        name, options = command_line.parse(arguments)
        outcome = _executed(name, options)
    except (KeyboardInterrupt, BrokenPipeError, command_line.UnsaidError):
        raise
    except SystemExit as leaving:  # argparse has printed the help or the version
        return int(leaving.code or 0)
    except Exception as error:
        space = address_space()
        if space is not None and _lacks_space(error):
            error.__traceback__ = None  # which keeps what the command has taken
            error = MemoryError(f"`ulimit -v` leaves {space >> 10} KiB of address space")
        try:
            from castsim.commands.failure import report_failure  # noqa: PLC0415 - only a failing run pays for it

            return report_failure(error, destination)
        except (MemoryError, ImportError, SystemError):
            if space is None:
                raise
            os.write(2, _NO_SPACE)
            return 1
    from castsim.commands.outcome import deliver  # noqa: PLC0415 - only a command that found something needs it

    return deliver(outcome, options.json, quiet=options.quiet, summary=options.summary)


def _executed(name: str, options: Namespace) -> CommandOutcome:
    """Execute a command; on a terminal, a progress bar appears if that takes long."""
    if not sys.stderr.isatty() or command_line.is_interactive(name):
        return _bounded(name, options)
    from castsim.reports.progress import stage_progress  # noqa: PLC0415 - for terminals

    with stage_progress(options.quiet, options.json, name):
        return _bounded(name, options)


def _bounded(name: str, options: Namespace) -> CommandOutcome:
    if options.max_file_bytes is None and options.max_memory is None:
        return _at_its_options(name, options)
    from castsim.commands.option_parsers import bounded  # noqa: PLC0415 - only who sets a limit pays for it

    with bounded(options.max_file_bytes, options.max_memory):
        return _at_its_options(name, options)


def _at_its_options(name: str, options: Namespace) -> CommandOutcome:
    """Execute a command; an error that quotes an argument names the option."""
    try:
        return command_line.execute(name, options)
    except Exception as error:
        from castsim.commands.failure import name_option  # noqa: PLC0415 - only a failing run pays for it

        name_option(error, command_line.parser_of(name), options)
        raise


# Ctrl-C that is not lost while machine code is made: LLVM calls back into Python through ctypes, which drops whatever
# exception is raised there, KeyboardInterrupt too. So an interrupt that comes while numba compiles waits until numba is
# left; a second one does not wait.

RETRY_SECONDS = 0.05
"""The interval, in seconds, between checks whether the compiler has returned."""

_COMPILERS = ("numba", "llvmlite")


@contextmanager
def kept_interrupts() -> Iterator[None]:
    """Guarantee delivery of interrupts during the block; has no effect in other threads and without timers."""
    usual = signal.getsignal(signal.SIGINT)
    if not hasattr(signal, "setitimer") or usual is not signal.default_int_handler:
        yield
        return
    waiting = False

    def interrupt(_: int, frame: FrameType | None) -> None:
        nonlocal waiting
        if waiting or not _compiling(frame):
            raise KeyboardInterrupt
        waiting = True
        signal.setitimer(signal.ITIMER_REAL, RETRY_SECONDS, RETRY_SECONDS)

    def look_again(_: int, frame: FrameType | None) -> None:
        if not _compiling(frame):
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise KeyboardInterrupt

    try:
        alarm = signal.signal(signal.SIGALRM, look_again)
    except ValueError:  # a thread other than the main one, which gets no signals
        yield
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGINT, usual)
        signal.signal(signal.SIGALRM, alarm)


def _compiling(frame: FrameType | None) -> bool:
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] in _COMPILERS:
            return True
        frame = frame.f_back
    return False


if __name__ == "__main__":
    sys.exit(main())
