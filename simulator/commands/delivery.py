"""Delivering what a command found: text to standard output, JSON to a file or to standard output."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simulator.commands.outcome import SCHEMA_VERSION, Outcome

STDOUT = "-"
"""What names standard output in place of a file."""


def deliver(outcome: Outcome, json_to: str | None, *, quiet: bool) -> None:
    """Write the JSON document if asked for, and print the text unless told not to or JSON takes standard output.

    Raises:
        OSError: the file or standard output cannot be written.
    """
    if json_to is not None:
        write_json(outcome.document, json_to)
    if quiet or json_to == STDOUT:
        return
    from simulator.reports.terminal import rendered, width_of  # noqa: PLC0415 - rich is for those who read its text

    _print(rendered(outcome.text(width_of(sys.stdout)), sys.stdout))


def write_json(document: Mapping[str, Any], destination: str) -> None:
    """Write a document, its version first: to a file, which is complete or absent, or to standard output.

    Raises:
        OSError: it cannot be written.
    """
    text = json.dumps({"schema_version": SCHEMA_VERSION, **document}, indent=2, allow_nan=False) + "\n"
    if destination == STDOUT:
        _print(text)
        return
    path = Path(destination)
    if path.exists() and not path.is_file():  # a pipe or a device, such as /dev/stderr, cannot be replaced
        path.write_text(text, encoding="utf-8")
        return
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".json")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    _open_up(Path(temporary))
    Path(temporary).replace(path)


def refuse_to_deliver(destination: str | None, error: OSError) -> int:
    """Say on standard error that a result could not be delivered, and return the exit code."""
    where = f"'{destination}'" if destination not in (None, STDOUT) else "standard output"
    print(f"error: cannot write {where}: {error.strerror or error}", file=sys.stderr)
    return 2


def _print(text: str) -> None:
    """Write to standard output, characters that its encoding lacks as escapes."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


def _open_up(path: Path) -> None:
    """Give a temporary file the permissions of an ordinary one; they are created private."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)
