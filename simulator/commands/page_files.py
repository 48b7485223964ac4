"""`--html FILE` and `--ledger FILE` of commands: the names of files checked before, the page written after.

From its ledger a second start of a command goes on.
"""

from __future__ import annotations

import os
import signal
import threading
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from castsim.commands.outcome import SCHEMA_VERSION, STDOUT, CommandOutcome, tell
from castsim.files import whole_file
from castsim.isa.errors import ReadError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from castsim.reports.pages.blocks import Page
    from castsim.reports.pages.page_of_result import Found


def check_page(options: Namespace, others: Mapping[str, str | None]) -> None:
    """Reject the name of a page that cannot be made, or is that of another file, before anything is done.

    `others` are the files that the command reads and writes otherwise, by option or argument; `--json` is known.

    Raises:
        ReadError: as said.
    """
    html: str | None = options.html
    if html is None:
        return
    check_file("--html", html)
    refuse_same("--html", html, {"--json": options.json, **others})


def refuse_same(option: str, file: str, others: Mapping[str, str | None]) -> None:
    """Reject the file of an option that is named for something else too.

    `others` are the other files, by option or argument; None: not given.

    Raises:
        ReadError: as said.
    """
    path = os.path.realpath(file)
    for name, other in others.items():
        if other not in (None, STDOUT) and os.path.realpath(other) == path and not _is_device(path):
            raise ReadError(f"{name} and {option} name the same file, '{file}'", legal=(f"{option} FILE",))


def check_file(option: str, text: str) -> None:
    """Reject the name of a file that cannot be made.

    Raises:
        ReadError: it is standard output, a folder, in a folder that is missing, or a link that leads nowhere.
    """
    if text == STDOUT:
        raise ReadError(f"{option} takes a file: standard output is the report's", legal=(f"{option} FILE",))
    path = Path(os.path.realpath(text))
    if path.is_symlink():
        raise ReadError(f"{option} {text}: cannot be written: symbolic links form a loop")
    if path.is_dir() or text.endswith("/"):
        raise ReadError(f"{option} {text}: cannot be written: it is itself a folder")
    if not path.parent.is_dir():
        raise ReadError(f"{option} {text}: cannot be written: no such folder: {Path(text).parent}")


def write_page(file: str, page: Page) -> None:
    """Write a page to a file, which is then complete or as it was.

    Raises:
        ReadError: it cannot be written.
    """
    from castsim.reports.pages.blocks import page_html  # noqa: PLC0415 - html and resources, 15 ms, and few ask for a page

    data = page_html(page).encode("utf-8", "backslashreplace")
    try:
        with whole_file(Path(file)) as target:
            target.write(data)
    except (OSError, ValueError) as error:
        raise ReadError(f"--html {file}: cannot be written: {getattr(error, 'strerror', None) or error}") from None


def write_page_of(found: Found, options: Namespace, out: str | None = None) -> None:
    """Write the page of what was found, if one was asked for; `out` is the file that its program was written to.

    Raises:
        ReadError: it cannot be written.
    """
    if options.html is None:
        return
    from castsim.reports.pages.page_of_result import page_of  # noqa: PLC0415 - loads rich, and few ask for a page

    write_page(options.html, page_of(found, out))


_WIDTH = 120
"""Columns that a report is asked for whose page is made of its text."""


def paged(name: str, options: Namespace, execute: Callable[[Namespace], CommandOutcome]) -> CommandOutcome:
    """Do what a command is for, and write the page that is made of its report.

    Raises:
        ReadError: the page cannot be written; a report of another format.
        CastsimError, EngineError: as the command.
    """
    words = [name]
    named: dict[str, str | None] = {}
    for key, value in vars(options).items():
        texts = [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]
        if key not in ("html", "json"):
            named |= dict.fromkeys((f"--{key.replace('_', '-')}",), texts[0] if texts else None)
        if key in ("file", "files", "what", "program", "diff"):
            words += texts
    check_page(options, named)
    if getattr(options, "format", "text") != "text":
        raise ReadError("--html shows the report as text", legal=("--format text",))
    outcome = execute(options)
    from castsim.reports.pages.page_of_result import plain_page  # noqa: PLC0415 - as below

    document = {"schema_version": SCHEMA_VERSION, **outcome.document}
    write_page(options.html, plain_page(name, " ".join(words), outcome.text(_WIDTH), document))
    return replace(outcome, text=lambda width: with_note(outcome.text(width), options))


def with_note(report: RenderableType, options: Namespace, *notes: str) -> RenderableType:
    """Return a report with a line on its page, if there is one, after those given."""
    lines = [*notes] if options.html is None else [*notes, f"html: written to {options.html}"]
    if not lines:
        return report
    from castsim.reports.terminal import noted  # noqa: PLC0415 - rich, only if printed

    for line in lines:
        report = noted(report, line)
    return report


def _is_device(path: str) -> bool:
    return os.path.exists(path) and not os.path.isfile(path)  # noqa: PTH110, PTH113 - beside realpath


# The ledger of a long command.


def ledger_of(options: Namespace, **others: str | None) -> Path | None:
    """Return the ledger that was named.

    `others` are the files that the command reads and writes, by option; `--json` and `--html` are known.

    Raises:
        ReadError: it cannot be made, or is another of the files.
    """
    if options.ledger is None:
        return None
    check_file("--ledger", options.ledger)
    named = {"json": options.json, "html": options.html, **others}
    refuse_same("--ledger", options.ledger, {f"--{name}": file for name, file in named.items()})
    return Path(options.ledger)


def removal(ledger: Path | None) -> Callable[[], None] | None:
    """Return what removes a ledger once the results are written."""
    if ledger is None:
        return None

    def remove() -> None:
        with suppress(OSError):
            ledger.unlink()

    return remove


@contextmanager
def resume_hint(ledger: Path | str | None, what: str) -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, and say then how `what` goes on."""
    try:
        with _terminated_is_interrupted():
            yield
    except KeyboardInterrupt:
        if ledger is not None:
            tell(f"the {what} was interrupted; the same command continues from {ledger}")
        raise


@contextmanager
def _terminated_is_interrupted() -> Iterator[None]:
    """For the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
