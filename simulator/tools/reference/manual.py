"""The command `manual`: print the manual page castsim(1)."""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser, Namespace
from collections.abc import Iterator

from castsim import __version__
from castsim.commands.command_line import DESCRIPTION, whole_parser
from castsim.commands.outcome import CommandOutcome, plain
from castsim.reports.documents import CommandDocument, says


class Manual(CommandDocument, name="manual"):
    """The output of `castsim manual`."""

    page: str = says("The manual page.")


_EXIT_CODES = (
    ("0", "done"),
    ("1", "well-formed, but rejected, or with findings"),
    ("2", "what was typed, or the form of a file, cannot be read"),
    ("130", "interrupted"),
)


def execute(_: Namespace) -> CommandOutcome:
    """Return the manual page."""
    page = "\n".join(_page()) + "\n"
    return CommandOutcome({"page": page}, lambda _: plain(page))


def _page() -> Iterator[str]:
    main, commands = whole_parser()
    yield from (f'.TH CASTSIM 1 "" "castsim {__version__}" "User Commands"', ".SH NAME")
    yield from (_text(f"castsim - {DESCRIPTION[0].lower()}{DESCRIPTION[1:].rstrip('.')}"), ".SH SYNOPSIS")
    yield from (".B castsim", _text("[-V] [--json FILE|-] [--quiet] [--max-file-bytes N] COMMAND ..."), ".br")
    yield from (".B castsim help", _text("[COMMAND]"), ".SH OPTIONS", _text("Before or after the command."))
    yield from _arguments(main)
    yield from (".SH COMMANDS", _text("castsim COMMAND --help, or castsim help COMMAND, shows one of them alone."))
    for name, parser in commands.items():
        yield from _command(name, parser)
    yield ".SH EXIT STATUS"
    for code, meaning in _EXIT_CODES:
        yield from (".TP", f".B {code}", _text(meaning))
    yield from (".SH ENVIRONMENT", ".TP", ".B CASTSIM_DEBUG")
    yield _text("1: an internal error shows where in castsim it happened")


def _command(name: str, parser: ArgumentParser) -> Iterator[str]:
    description, usage = parser.description or "", parser.format_usage().removeprefix("usage: ")
    yield from (
        f".SS castsim {name}",
        _text(f"{description[:1].upper()}{description[1:]}."),
        ".PP",
        _text(" ".join(usage.split())),
    )
    yield from _arguments(parser)
    words, _, examples = (parser.epilog or "").strip().partition("examples:")
    for paragraph in words.strip().split("\n\n"):
        yield ".PP"
        verbatim = any(line.startswith(" ") for line in paragraph.splitlines())
        yield from (
            (".nf", *map(_text, paragraph.splitlines()), ".fi") if verbatim else map(_text, paragraph.split("\n"))
        )
    if examples:
        yield from (".PP", "Examples:", ".PP", ".nf", *map(_text, examples.strip("\n").splitlines()), ".fi")


def _arguments(parser: ArgumentParser) -> Iterator[str]:
    general = {"help", "json", "quiet", "max_file_bytes", "max_memory"} if parser.prog != "castsim" else set()
    for action in parser._actions:
        if action.dest in general or action.help in {None, SUPPRESS}:
            continue
        yield from (".TP", f".B {_text(_name(action))}", _text(str(action.help)))


def _name(action: Action) -> str:
    taken = " ".join(action.metavar) if isinstance(action.metavar, tuple) else action.metavar or ""
    if not action.option_strings:
        return taken or action.dest
    names = ", ".join(action.option_strings)
    return names if action.nargs == 0 else f"{names} {taken}"


def _text(line: str) -> str:
    """Return a line for troff: backslashes and hyphens escaped, and no accidental request."""
    shown = line.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{shown}" if shown.startswith((".", "'")) else shown
