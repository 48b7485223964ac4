"""The command line: `castsim COMMAND ...`, also `python -m simulator`.

Only what is needed to read the command is imported here; a command imports the rest when it runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from simulator.commands import line

INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 plus the number of SIGINT, as shells count."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0: done. 1: well-formed, but refused or failed. 2: what was typed, or the form of a file. 130: interrupted.
    Bad input never gives a traceback; an internal error gives one only with CASTSIM_DEBUG=1.
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return 0
    return code


def _run(arguments: list[str]) -> int:
    destination = line.json_destination(arguments)
    try:
        command, options = line.parse(arguments)
        outcome = command.execute(options)
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except SystemExit as leaving:  # argparse has printed the help or the version
        return int(leaving.code or 0)
    except Exception as error:
        from simulator.commands.failure import report_failure  # noqa: PLC0415 - only a failing run pays for it

        return report_failure(error, destination)
    from simulator.commands.delivery import deliver  # noqa: PLC0415 - only a command that found something needs it

    return deliver(outcome, options.json, quiet=options.quiet)


def _forget_stdout() -> None:
    """Point standard output nowhere, so that the interpreter's own flush at exit does not complain."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
