"""Reading the command line: global options, the command, its arguments."""

from __future__ import annotations

import argparse
import errno
import os
import re
import shutil
import sys
from argparse import Namespace
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn, Protocol

from castsim import __version__
from castsim.commands.feature import COMMANDS, GROUPS, feature_of, shipped_features
from castsim.commands.shared_options import OptionParser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from _typeshed import SupportsWrite

    from castsim.commands.feature import Feature
    from castsim.commands.outcome import CommandOutcome
    from castsim.isa.errors import ReadError

DESCRIPTION = "Cycle-approximate, bit-exact simulator of the vector cast units of NPUs."

WITHDRAWN = {"--kanata": "use `--trace FILE`, which ui.perfetto.dev opens"}
"""Options of earlier versions, and what replaces them."""

LONGEST = 4096
"""Maximum number of characters of an argument: no path is longer, and no number needs more digits."""

LONGEST_NAME = 40
"""Maximum number of characters of a mistyped name that are compared with the legal names."""

NOTHING_GLOBAL = Namespace(json=None, quiet=False, max_file_bytes=None, max_memory=None, summary=False)
"""The global options with their defaults."""

_NEGATIVE_NUMBER = re.compile(r"-(?:\d|\.\d|inf|nan)", re.IGNORECASE)


class PageModule(Protocol):
    """Interface of the module that writes pages of reports."""

    def paged(self, name: str, options: Namespace, execute: Callable[[Namespace], CommandOutcome]) -> CommandOutcome:
        """Execute a command, and write its page."""
        ...


class Parser(OptionParser):
    """An argument parser that raises an error instead of exiting; usage errors are then reported like all others."""

    def error(self, message: str) -> NoReturn:
        """Reject the command line.

        Raises:
            ReadError: always.
        """
        if gone := WITHDRAWN.keys() & _options_in(message):
            raise _refusal("; ".join(f"{name} is gone: {WITHDRAWN[name]}" for name in sorted(gone)))
        near = [option for name in _options_in(message) for option in _near(name, self._option_string_actions)]
        raise _refusal(f"{message} (see `{self.prog} --help`)", legal=near)

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """Print the help, the only thing that argparse still prints once errors are raised."""
        del file  # standard output
        _say(message)


class UnsaidError(OSError):
    """Standard output cannot take the help or the version."""


def _say(text: str) -> None:
    """Print the help or the version on standard output.

    Raises:
        UnsaidError: standard output cannot be written.
        BrokenPipeError: standard output is no longer read.
    """
    try:
        if sys.stdout is None:
            raise OSError(errno.EBADF, "it is closed")
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UnsaidError(error.errno, error.strerror) from None


_UNRECOGNIZED = "unrecognized arguments: "
"""Beginning of argparse's message for an unknown option."""


def _options_in(message: str) -> tuple[str, ...]:
    """Return the options that argparse does not know."""
    words = message.removeprefix(_UNRECOGNIZED).split() if message.startswith(_UNRECOGNIZED) else ()
    return tuple(word.partition("=")[0] for word in words if word.startswith("-"))


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Formatter that fills the paragraphs of a help to the terminal's width; indented lines are kept as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        del indent  # always empty: no group of arguments has a description
        return "\n\n".join(
            part if "\n  " in part or part.startswith("  ") else _filled(part, min(width, WIDEST))
            for part in text.strip("\n").split("\n\n")
        )


WIDEST = 118
"""Maximum number of columns of a help's paragraphs."""


def _filled(text: str, width: int, first: str = "", rest: str = "") -> str:
    from textwrap import fill  # noqa: PLC0415 - as argparse does: only a help needs it

    return fill(
        " ".join(text.split()),
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


class _MainParser(Parser):
    """Parser whose help ends with the list of commands."""

    def format_help(self) -> str:
        """Return the help."""
        width = min(shutil.get_terminal_size().columns - 2, WIDEST)
        features = shipped_features()
        name_width = max(len(feature.name) for feature in features)
        parts = ["Start with:", *(f"  {feature.start}" for feature in features if feature.start)]
        for group in GROUPS:
            parts += ["", f"{group[:1].upper()}{group[1:]}:"]
            parts += (
                _filled(feature.summary, width, f"  {feature.name:{name_width}}  ", " " * (name_width + 4))
                for feature in features
                if feature.group == group
            )
        self.epilog = "\n".join([*parts, "", "For help on a command: castsim help COMMAND"])
        return super().format_help()


class _Version(argparse.Action):
    """Action that prints the version."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        _say(f"castsim {__version__}\n")
        parser.exit()


def parse(arguments: Sequence[str]) -> tuple[str, Namespace]:
    """Return the name of the command that begins `arguments`, and its options.

    Raises:
        ReadError: a command or option is unknown, or an argument is missing.
        SystemExit: the help or version was printed, on request or because there are no arguments.
        UnsaidError: the help or version cannot be printed.
    """
    _check(arguments)
    main = _main_parser()
    head = main.parse_args(arguments)
    if head.command == "help":
        return parse([*head.rest[:1], "--help"])
    if head.command is None:
        main.print_help()
        main.exit()
    parser = parser_of(head.command, head)
    # A leading blank keeps argparse from taking a negative number for an option.
    rest = [f" {text}" if _NEGATIVE_NUMBER.match(text) else text for text in head.rest]
    options = _without_blanks(parser.parse_intermixed_args(rest))
    if "" in rest or any(text.endswith("=") for text in rest):
        from castsim.commands.failure import reject_empty  # noqa: PLC0415 - only a failing command line needs it

        reject_empty(parser, options)
    return head.command, options


def _without_blanks(options: Namespace) -> Namespace:
    """Remove the blanks that were inserted before negative numbers."""

    def stripped(value: object) -> object:
        if isinstance(value, list):
            return [stripped(item) for item in value]
        if isinstance(value, str) and value.startswith(" -") and _NEGATIVE_NUMBER.match(value, 1):
            return value[1:]
        return value

    return Namespace(**{name: stripped(value) for name, value in vars(options).items()})


def parser_of(name: str, defaults: Namespace = NOTHING_GLOBAL) -> Parser:
    """Return the parser of a command; `defaults` are the options before its name.

    Raises:
        ReadError: there is no such command. CastsimError: see `feature_of`.
    """
    feature = _feature(name)
    parser = Parser(
        prog=f"castsim {name}",
        description=feature.summary,
        epilog=feature.text,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    feature.declare(parser)
    declare_global(parser, defaults)
    return parser


def _feature(name: str) -> Feature:
    feature = feature_of(name)
    if feature is None:
        raise _refusal(
            f"unknown command '{name}' (see `castsim --help`)", legal=_near(name, COMMANDS) or tuple(COMMANDS)
        )
    return feature


def whole_parser() -> tuple[argparse.ArgumentParser, Mapping[str, argparse.ArgumentParser]]:
    """Return one parser of the command line, and its commands' parsers by name, for completion and the manual."""
    main = argparse.ArgumentParser(prog="castsim", description=DESCRIPTION, allow_abbrev=False)
    main.add_argument("-V", "--version", action="store_true", help="print the version and exit")
    declare_global(main, NOTHING_GLOBAL)
    commands = main.add_subparsers(dest="command", metavar="COMMAND", parser_class=OptionParser)
    parsers = {}
    for feature in shipped_features():
        parsers[feature.name] = parser = commands.add_parser(
            feature.name, help=feature.summary, description=feature.summary, epilog=feature.text,
            formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
        )  # fmt: skip
        feature.declare(parser)
        declare_global(parser, NOTHING_GLOBAL)
    help_parser = commands.add_parser(
        "help", help="print the help of a command", description="print the help of a command"
    )
    help_parser.add_argument("of", metavar="COMMAND", nargs="?", choices=tuple(COMMANDS), help="the command")
    return main, parsers


def execute(name: str, options: Namespace) -> CommandOutcome:
    """Execute a command; its module is imported only now.

    Raises:
        CastsimError, EngineError: as raised by the command.
    """
    feature = _feature(name)
    if feature.needs is not None:
        from castsim.isa.errors import installed, missing_package  # noqa: PLC0415 - few commands need an extra

        if not installed(feature.needs[0]):
            raise missing_package(f"castsim {name}", *feature.needs)
    command: Callable[[Namespace], CommandOutcome] = getattr(import_module(feature.module), feature.function)
    if feature.pages and options.html is not None:
        pages: PageModule = import_module("castsim.commands.run_views")
        return pages.paged(name, options, command)
    return command(options)


def is_interactive(name: str) -> bool:
    """Return whether a command waits for a person."""
    return _feature(name).interactive


def json_destination(arguments: Sequence[str]) -> str | None:
    """Return the argument of `--json`, also on a command line that cannot be parsed.

    None if the option is missing, or if another argument names the same file or its ledger: neither must be
    overwritten.
    """
    destination = _json_argument(arguments)
    if destination is None:
        return None
    from castsim.files import LEDGER  # noqa: PLC0415 - a help needs no path library

    return None if _is_shared(destination, (*arguments, *(f"{text}{LEDGER}" for text in arguments))) else destination


def _json_argument(arguments: Sequence[str]) -> str | None:
    destination = None
    for position, text in enumerate(arguments):
        if text == "--":
            break
        if text == "--json" and position + 1 < len(arguments):
            destination = arguments[position + 1]
        elif text.startswith("--json="):
            destination = text.removeprefix("--json=")
    return destination


def _is_shared(document: str, arguments: Sequence[str]) -> bool:
    """Return whether an existing file that the JSON document would replace is named a second time."""
    if not os.path.isfile(document):  # noqa: PTH113 - the help must not wait for pathlib
        return False
    named = [text.rpartition("=")[2] for text in arguments if "\0" not in text]
    return sum(os.path.realpath(text) == os.path.realpath(document) for text in named) > 1


def _check(arguments: Sequence[str]) -> None:
    """Reject arguments that are neither names nor numbers before a library rejects them in its own words."""
    for text in arguments:
        fault = "contains a null character" if "\0" in text else "is too long" if len(text) > LONGEST else None
        if fault is not None:
            raise _refusal(f"the argument {text[:40]!r} {fault}", legal=(f"up to {LONGEST} characters",))
    document = _json_argument(arguments)
    if document is not None and _is_shared(document, arguments):
        raise _refusal(f"--json would overwrite '{document}', which another argument names")


def _main_parser() -> _MainParser:
    parser = _MainParser(
        prog="castsim",
        usage="castsim [-V] [--json FILE|-] [--quiet] [--max-file-bytes N]\n"
        "               [--max-memory N] COMMAND ...",
        description=DESCRIPTION,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("-V", "--version", action=_Version, nargs=0, help="print the version and exit")
    declare_global(parser, NOTHING_GLOBAL)
    parser.add_argument("command", metavar="COMMAND", nargs="?", help="one of the commands below")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def declare_global(parser: argparse.ArgumentParser, defaults: Namespace) -> None:
    """Add the options that may precede or follow the name of a command."""
    parser.add_argument(
        "--json",
        metavar="FILE|-",
        default=defaults.json,
        help="write the result or the errors as JSON to FILE; - means stdout",
    )
    parser.add_argument(
        "--max-file-bytes",
        metavar="N",
        default=defaults.max_file_bytes,
        help="read files of up to N bytes; default: 16777216, for ONNX models 268435456; no limit for .npy files",
    )
    parser.add_argument(
        "--max-memory",
        metavar="N",
        default=defaults.max_memory,
        help="use at most N bytes of memory, such as 512M or 4G; default: no limit",
    )
    parser.add_argument("--summary", action="store_true", default=defaults.summary, help="print at most one screen")
    parser.add_argument("--quiet", action="store_true", default=defaults.quiet, help="print no report")


def _near(word: str, candidates: Iterable[str]) -> list[str]:
    """Return the legal words closest to a misspelled one; empty if none is close."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a failing command line pays for it

    return get_close_matches(word[:LONGEST_NAME], list(candidates), 3)


def _refusal(message: str, legal: Sequence[str] = ()) -> ReadError:
    from castsim.isa.errors import ReadError  # noqa: PLC0415 - only a failing command line pays for it

    return ReadError(message, legal=legal)
