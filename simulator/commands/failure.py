"""Messages and exit codes of commands that failed: the wrong option, and the closest legal ones."""

from __future__ import annotations

import errno
import os
import re
import traceback
from argparse import Action, ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from castsim.commands.outcome import INTERNAL, error_entry, tell, write_json
from castsim.isa.errors import CastsimError, EngineError, ReadError

MOST_TOLD = 20
"""Maximum number of errors of one text that are shown in full."""

LONGEST_NAME = 80
"""Number of characters shown of a name that is too long."""


def report_failure(error: Exception, json_to: str | None) -> int:
    """Report an error and return its exit code.

    A refusal is shown with its position and the legal alternatives. Exhausted memory ends a run like
    any other limit; a name longer than any file's is a usage error. Anything else is a defect of castsim: one line, and
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
        write_json({"errors": [error_entry(failure) for failure in (error, *getattr(error, "further", ()))]}, json_to)
    return code


def _tell_all(errors: Sequence[CastsimError | EngineError]) -> int:
    """Report errors, the first ones in full, and return the highest of their exit codes."""
    for error in errors[:MOST_TOLD]:
        tell(f"error: {error.render()}")
    left = len(errors) - MOST_TOLD
    if left > 0:
        tell(f"and {left} more error{'s' * (left > 1)}; `castsim check` lists all")
    return max(error.exit_code for error in errors)


_PARTS = re.compile(r"[=,:]")
"""Separators between the parts of a value: NAME=VALUE, lists, F:M."""

_LONGEST_PART = 40
"""Maximum number of characters of a part that are compared with the legal values."""

_STANDING_FOR_NAMES = ("FILE.", "PATH.")
"""Beginnings of legal values that are placeholders: nobody types them literally."""

_ABSENT = ("No such file", "does not exist")
_WRITING = "cannot write"
"""Wording of messages about a file that is missing, and about a file to be written."""


class _Typed(NamedTuple):
    """A value that a message quotes in part; `option` is empty for positional arguments."""

    option: str
    form: str
    text: str
    parts: tuple[str, ...]


def reject_empty(parser: ArgumentParser, options: Namespace) -> None:
    """Reject options with an empty value, which no option takes.

    Raises:
        ReadError: an option has an empty value.
    """
    for action in parser._actions:
        if not action.option_strings or "" not in _texts(action, options):
            continue
        option, what = action.option_strings[-1], _metavar(action)
        if what.startswith("DIR"):
            raise ReadError(f"{option} needs a folder name", legal=(f"{option} .", f"{option} DIR"))
        fault = "an empty string is not a file name" if what.startswith("FILE") else "the value is missing"
        raise ReadError(f"{option} '': {fault}", legal=(f"{option} {what.removesuffix('|-')}",))


def name_option(error: Exception, parser: ArgumentParser, options: Namespace) -> None:
    """Add to an error about a typed value the option it belongs to, and the probable intention.

    An error with a position in a file stays as it is, unless the value does not occur there.
    """
    if not isinstance(error, CastsimError | EngineError) or _is_of_the_file(error):
        return
    typed = _blamed(error.message, parser, options)
    if typed is None:
        return
    if typed.option and re.search(rf"{typed.option}(?![\w-])", error.message) is None:
        shown = "" if _quoted(typed.text, error.message) else f" {typed.text}"
        error.message = f"{typed.option}{shown}: {error.message}"
    if isinstance(error, CastsimError):
        values = [choice for choice in error.values if not choice.startswith(_STANDING_FOR_NAMES)]
        near = (_nearest(part, values) or _nearest_file(part, error.message) for part in typed.parts)
        error.message += next((f"; did you mean '{candidate}'?" for candidate in near if candidate), "")
        if typed.option and not error.legal:
            error.legal = (f"{typed.option} {typed.form}",)


def _is_of_the_file(error: CastsimError | EngineError) -> bool:
    if error.span is None:
        return False
    quoted = re.search(r"'([^']*)'", error.message)
    return (
        not isinstance(error, ReadError)
        or not (quoted and error.values)
        or quoted[1] in error.span.text
        or quoted[1] in error.values
    )


def _blamed(message: str, parser: ArgumentParser, options: Namespace) -> _Typed | None:
    """Return the argument that a message quotes; None if it quotes none, or parts of several arguments.

    Of several options, the one that the message names counts.
    """
    blamed = list(_candidates(message, parser, options))
    if len({candidate.option for candidate in blamed}) > 1:
        blamed = [
            candidate
            for candidate in blamed
            if candidate.option and candidate.option.lstrip("-").partition("-")[0] in message
        ]
    return blamed[0] if len({candidate.option for candidate in blamed}) == 1 else None


def _candidates(message: str, parser: ArgumentParser, options: Namespace) -> Iterator[_Typed]:
    for action in parser._actions:
        option, form = (action.option_strings or [""])[-1], _metavar(action)
        for text in _texts(action, options):
            parts = [part for part in (text, *_PARTS.split(text)) if _quoted(part, message)]
            if parts:
                yield _Typed(option, form, text, tuple(parts))
            # An option of the target has a shorter way to set it; other messages begin with what is wrong.
            elif option and (f"'{action.dest}'" in message or message.startswith(f"{option} {text}")):
                yield _Typed(option, form, text, (text,))


def _texts(action: Action, options: Namespace) -> list[str]:
    """Return the texts given for an argument; empty for its default."""
    given = getattr(options, action.dest, None)
    if given is None or given == action.default:
        return []
    return [text for text in (given if isinstance(given, list | tuple) else [given]) if isinstance(text, str)]


def _metavar(action: Action) -> str:
    return action.metavar if isinstance(action.metavar, str) else " ".join(action.metavar or ())


def _quoted(part: str, message: str) -> bool:
    """Return whether a message quotes a part of a typed value, a file in a typed folder, or a function."""
    if not part:
        return False
    return (
        f"'{part}'" in message or f"'{part}/" in message or re.search(rf"@{re.escape(part)}(?!\w)", message) is not None
    )


def _nearest(part: str, legal: Iterable[str]) -> str | None:
    """Return the legal value closest to a typed one, if any is close and the typed one is not legal."""
    plain = {choice.removeprefix("@").lower(): choice for choice in legal}
    near = get_close_matches(part.lower()[:_LONGEST_PART], plain, 1)
    return plain[near[0]] if near and plain[near[0]] != part else None


def _nearest_file(part: str, message: str) -> str | None:
    """Return the existing file whose name is closest to a missing one."""
    path = Path(part)
    if _WRITING in message or not any(words in message for words in _ABSENT):
        return None
    try:
        near = _nearest(
            path.name,
            (sibling.name for sibling in path.parent.iterdir() if sibling.suffix == path.suffix and sibling.is_file()),
        )
    except OSError:
        return None
    return near and str(path.with_name(near))
