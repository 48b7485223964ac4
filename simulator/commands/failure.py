"""Reporting that a command failed: words to standard error, JSON where asked for, and the exit code."""

from __future__ import annotations

import errno
import os
import traceback
from collections.abc import Sequence
from typing import Any

from castsim.commands.output import tell, write_json
from castsim.isa.errors import CastsimError, EngineError, ReadError

MOST_TOLD = 20
"""Errors of one text that are shown in full."""

LONGEST_NAME = 80
"""Characters of a name that is too long that are shown."""

INTERNAL = "internal error"
"""Kind of an error that is castsim's own fault."""


def report_failure(error: Exception, json_to: str | None) -> int:
    """Tell of an error and return the exit code it stands for.

    A refusal is rendered with its place and the legal alternatives. A machine with too little memory ends a run like
    any other limit; a name longer than any file's is what was typed. Anything else is castsim's fault: one line, and
    the traceback only with CASTSIM_DEBUG=1.
    """
    if isinstance(error, MemoryError):
        error = EngineError(f"not enough memory: {error}" if str(error) else "not enough memory")
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:  # wherever a path was asked what lies there
        error = ReadError(f"'{str(error.filename)[:LONGEST_NAME]}...': {error.strerror}")
    if isinstance(error, CastsimError | EngineError):
        code = _tell_all((error, *getattr(error, "further", ())))
    else:
        if os.environ.get("CASTSIM_DEBUG") == "1":
            tell("".join(traceback.format_exception(error)).rstrip("\n"))
        described = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        tell(f"error: {INTERNAL}: {described}; please report it (CASTSIM_DEBUG=1 shows where)")
        code = 1
    if json_to is not None:
        write_json({"errors": [error_entry(one) for one in (error, *getattr(error, "further", ()))]}, json_to)
    return code


def _tell_all(errors: Sequence[CastsimError | EngineError]) -> int:
    """Tell of errors, the first ones in full, and return the highest of their exit codes."""
    for error in errors[:MOST_TOLD]:
        tell(f"error: {error.render()}")
    left = len(errors) - MOST_TOLD
    if left > 0:
        tell(f"and {left} more error{'s' * (left > 1)}; `castsim check` lists all")
    return max(error.exit_code for error in errors)


def error_entry(error: Exception) -> dict[str, Any]:
    """Return an error as JSON: `kind, message, file, line, column, legal`; null where it has no place."""
    refusal = error if isinstance(error, CastsimError | EngineError) else None
    span = refusal.span if refusal else None
    return {
        "kind": refusal.kind if refusal else INTERNAL,
        "message": refusal.message if refusal else f"{type(error).__name__}: {error}",
        "file": span.file if span else None,
        "line": span.line if span else None,
        "column": span.column if span else None,
        "legal": list(error.legal) if isinstance(error, CastsimError) else [],
    }
