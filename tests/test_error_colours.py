"""Errors are coloured on a terminal, a real one, and follow NO_COLOR, FORCE_COLOR and CLICOLOR."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress

import pytest

VARIABLES = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE")
FAILING = (sys.executable, "-m", "castsim", "cast", "f32", "f99", "1")
RED = b"\x1b[1;31merror:\x1b[0m unknown format"


def environment(variables: dict[str, str]) -> dict[str, str]:
    """The variables, and of all others those that do not decide about colour."""
    rest = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    return {**rest, "TERM": "xterm-256color", **variables}


def on_terminal(variables: dict[str, str]) -> bytes:
    """What a failing command writes to a pseudo-terminal: a few lines, which its buffer holds."""
    ours, theirs = pty.openpty()
    try:
        subprocess.run(FAILING, stdout=theirs, stderr=theirs, env=environment(variables), check=False)
    finally:
        os.close(theirs)
    written = b""
    with suppress(OSError), os.fdopen(ours, "rb", buffering=0) as terminal:  # nobody has it open: EIO at the end
        while more := terminal.read(4096):
            written += more
    return written


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"CLICOLOR": "0"}, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
    ],
)
def test_errors_on_a_terminal(variables: dict[str, str], coloured: bool) -> None:
    written = on_terminal(variables)
    assert written.startswith(RED if coloured else b"error: unknown format")
    assert (b"\x1b" in written) == coloured


@pytest.mark.parametrize(("variables", "coloured"), [({}, False), ({"FORCE_COLOR": "1"}, True)])
def test_errors_in_a_pipe(variables: dict[str, str], coloured: bool) -> None:
    done = subprocess.run(FAILING, capture_output=True, env=environment(variables), check=False)
    assert done.stderr.startswith(RED if coloured else b"error: unknown format")
