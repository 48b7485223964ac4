"""The execution of `castsim completion`."""

from __future__ import annotations

from argparse import Action, Namespace

import shtab

from castsim.commands.completion import SHELLS
from castsim.commands.execution.option_words import words_of
from castsim.commands.full_parser import whole_parser
from castsim.commands.outcome import Outcome
from castsim.isa.errors import ReadError
from castsim.reports.listing import plain_text


def execute(options: Namespace) -> Outcome:
    """Make the script.

    Raises:
        ReadError: a shell that there is no script for.
    """
    if options.shell not in SHELLS:
        raise ReadError(f"no script for the shell '{options.shell}'", legal=SHELLS)
    main, commands = whole_parser()
    for action in main._actions:
        _teach("", action)
    for name, parser in commands.items():
        for action in parser._actions:
            _teach(name, action)
    script = shtab.complete(main, options.shell)
    return Outcome({"shell": options.shell, "script": script}, lambda _: plain_text(script))


def _teach(command: str, action: Action) -> None:
    """Let an argument know what it can be completed with."""
    words = words_of(command, action)
    if words:
        action.choices = list(words)
    elif isinstance(action.metavar, str) and action.metavar.startswith("DIR"):
        action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]  # what shtab looks for
    elif action.dest in _FILES or (isinstance(action.metavar, str) and action.metavar.startswith("FILE")):
        action.complete = shtab.FILE  # type: ignore[attr-defined]  # as above


_FILES = ("program", "file", "files", "what")
"""Arguments that are files without saying so in the help; `what` of `scratch` may be one."""
