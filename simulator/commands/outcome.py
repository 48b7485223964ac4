"""The outcome of a command, and its delivery: text to standard output, JSON to a file or to standard output."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import CastsimError, EngineError, ReadError, escaped

if TYPE_CHECKING:
    from rich.console import RenderableType

    from castsim.reports.pages.blocks import Page


SCHEMA_VERSION = 1
"""Version of the structure of all JSON documents; the first key of each document."""


def plain(text: str, *, no_wrap: bool = True) -> RenderableType:
    """Return text shown unchanged, however wide unless it may wrap; rich is loaded only if it is printed."""
    from rich.text import Text  # noqa: PLC0415 - as said

    return Text(text.removesuffix("\n"), no_wrap=no_wrap)


def stacked(*parts: RenderableType) -> RenderableType:
    """Return parts of a report one below the other; rich is loaded only if they are printed."""
    from rich.console import Group  # noqa: PLC0415 - as for `plain`

    return Group(*parts)


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """A finished command: its JSON document without the version, its text (made only if printed), its exit code.

    A document with its own `schema_version` differs from the first version.

    `text` takes the terminal's width in characters, as does `summary`, which replaces it where one screen
    is requested; None shows the beginning and the end of `text`. `delivered` is called after everything is written.
    """

    document: Mapping[str, Any]
    text: Callable[[int], RenderableType]
    code: int = 0
    summary: Callable[[int], RenderableType] | None = None
    delivered: Callable[[], None] | None = None


def answer(page: Callable[[Mapping[str, Any]], Page], document: Mapping[str, Any], code: int = 0) -> CommandOutcome:
    """Return the outcome of a look-up, whose text is the page that `page` builds from its document."""

    def text(_: int) -> RenderableType:
        from castsim.reports.pages.answer_pages import answer_text  # noqa: PLC0415 - rich, only if printed

        return answer_text(page(document))

    return CommandOutcome(document, text, code)


INTERNAL = "internal error"
"""Kind of an error that is a defect of castsim."""

STDOUT = "-"
"""Name of standard output in place of a file."""

UNWRITABLE = 2
"""Exit code if a result exists but cannot be written."""

_ERROR = "error:"
_CLOSED = OSError(errno.EBADF, "it is closed")

SCREEN = 24
"""Lines of a terminal, and of a report that must fit it."""

_ENDING = 7
"""Lines kept at the end of a report longer than one screen: they hold totals and verdicts."""


def deliver(outcome: CommandOutcome, json_to: str | None, *, quiet: bool, summary: bool = False) -> int:
    """Write the JSON document if requested; print the text unless it is disabled or JSON uses standard output.

    With `summary` the text fits one screen.

    Returns the exit code: the outcome's, or 2 with a message if something cannot be written.

    Raises:
        BrokenPipeError: the reader of standard output has closed it.
    """
    code = _delivered(outcome, json_to, quiet=quiet, summary=summary)
    if outcome.delivered is not None and code == outcome.code:
        if sys.stdout is not None:
            sys.stdout.flush()
        outcome.delivered()
    return code


def _delivered(outcome: CommandOutcome, json_to: str | None, *, quiet: bool, summary: bool) -> int:
    code = outcome.code
    if json_to is not None and not write_json(outcome.document, json_to):
        code = UNWRITABLE  # the text is printed all the same: a long run must not be lost to a mistyped path
    if quiet or json_to == STDOUT:
        return code
    if sys.stdout is None:
        return refuse_stdout(_CLOSED)
    from castsim.reports.terminal import pieces, rendered, width_of  # noqa: PLC0415 - rich is for those who read its text

    report = ((summary and outcome.summary) or outcome.text)(width_of(sys.stdout))
    text = one_screen(pieces(report, sys.stdout)) if summary else rendered(report, sys.stdout)
    return code if _print(text) else UNWRITABLE


def one_screen(sentences: Sequence[str]) -> str:
    """Return a report that fits one screen: its first and last sentences or rows, and the number of lines omitted.

    Sentences and rows are never cut: one longer than its part of the screen is omitted, except the first.
    """
    sizes = [sentence.count("\n") + 1 for sentence in sentences]
    if sum(sizes) < SCREEN:  # one line is for the prompt
        return "\n".join(sentences) + "\n"
    last = len(sentences)
    while last > 1 and sum(sizes[last - 1 :]) <= _ENDING:
        last -= 1
    room = SCREEN - 2 - sum(sizes[last:])
    first = 1
    while first < last and sum(sizes[: first + 1]) <= room:
        first += 1
    if first == last:
        return "\n".join(sentences) + "\n"
    middle = f"... {sum(sizes[first:last]):,} lines omitted; run without --summary to see them"
    return "\n".join([*sentences[:first], middle, *sentences[last:]]) + "\n"


def write_json(document: Mapping[str, Any], destination: str) -> bool:
    """Write a document, its version first: to a file, which is complete or absent, or to standard output.

    Returns False after a message on standard error if the document cannot be written.
    """
    import json  # noqa: PLC0415 - few results are written

    from castsim.files import whole_file  # noqa: PLC0415 - the same

    text = json.dumps({"schema_version": SCHEMA_VERSION, **document}, indent=2, allow_nan=False) + "\n"
    if destination == STDOUT:
        return _print(text)
    try:
        with whole_file(Path(destination)) as file:
            file.write(text.encode())
    except (OSError, ValueError) as error:  # the latter: a name that no file can have
        return _refuse(f"--json {destination!r}", error, help_="--json FILE, --json -")
    return True


def refuse_source(name: str | None, source: str | None) -> None:
    """Reject an `--out` file that is also the file `source`.

    Raises:
        ReadError: both are the same file.
    """
    if name is None or source is None:
        return
    path = Path(name)
    if path.is_file() and path.resolve() == Path(source).resolve():
        raise ReadError(f"--out {name} would overwrite its own input")


def write_out(name: str | None, data: bytes, source: str | None = None) -> Path | None:
    """Write a file, completely or not at all, and return its path; None if no file was requested.

    Raises:
        ReadError: the file cannot be written, or is the file `source`.
    """
    if name is None:
        return None
    refuse_source(name, source)
    write_file(Path(name), data, f"--out {name}")
    return Path(name)


def write_program(path: Path, text: str) -> None:
    """Write the text of a program, completely or not at all; raise ReadError on failure."""
    write_file(path, text.encode(), f"cannot write program '{path}'")


def write_file(path: Path, data: bytes, failure: str) -> None:
    """Write a file, completely or not at all.

    Raises:
        ReadError: the file cannot be written; `failure` begins the message.
    """
    from castsim.files import whole_file  # noqa: PLC0415 - few results are written

    try:
        with whole_file(path) as file:
            file.write(data)
    except (OSError, ValueError) as error:  # the latter: a name that no file can have
        raise ReadError(f"{failure}: {getattr(error, 'strerror', None) or error}") from None


def refuse_stdout(error: OSError) -> int:
    """Report on standard error that standard output cannot be written, and return that exit code."""
    _refuse("standard output", error)
    forget_stdout()
    return UNWRITABLE


def forget_stdout() -> None:
    """Redirect standard output to nowhere: otherwise the flush at exit would fail again."""
    with suppress(OSError, AttributeError):  # replaced by something without a descriptor, or closed
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print(text: str) -> bool:
    """Write to standard output, with escapes for characters that its encoding lacks; False if it cannot be written."""
    if sys.stdout is None:
        return _refuse("standard output", _CLOSED)
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        refuse_stdout(error)
        return False
    return True


def tell(message: str) -> None:
    """Write a message to standard error, with control characters escaped.

    A leading `error:` is bold red where colours are shown.
    """
    from castsim.files import is_coloured  # noqa: PLC0415 - only who is told something needs it

    shown = escaped(message)
    before, word, rest = shown.partition(_ERROR)
    if word and not before and is_coloured(sys.stderr):
        shown = f"\x1b[1;31m{word}\x1b[0m{rest}"
    print(shown, file=sys.stderr)


def _refuse(where: str, error: OSError | ValueError, help_: str = "") -> bool:
    tell(f"error: cannot write {where}: {getattr(error, 'strerror', None) or error}")
    if help_:
        tell(f"  help: {help_}")
    return False


def error_entry(error: Exception) -> dict[str, Any]:
    """Return an error as JSON: `kind, message, file, line, column, legal`; null where it has no position."""
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
