"""The whole command line as one parser of argparse, for what lists it: completion and the manual page.

Commands are read by parsers of their own, each of which is made only when it is needed; see `command_line`.
"""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Mapping

from castsim.commands.command_line import COMMANDS, NOTHING_GLOBAL, declaration, declare_global

DESCRIPTION = "Cycle-approximate, bit-exact simulator of the vector cast units of NPUs."


def whole_parser() -> tuple[ArgumentParser, Mapping[str, ArgumentParser]]:
    """Return the parser of the line, and those of its commands by name."""
    main = ArgumentParser(prog="castsim", description=DESCRIPTION, allow_abbrev=False)
    main.add_argument("-V", "--version", action="store_true", help="print the version and exit")
    declare_global(main, NOTHING_GLOBAL)
    commands = main.add_subparsers(dest="command", metavar="COMMAND", parser_class=ArgumentParser)
    found = {}
    for name in COMMANDS:
        command = declaration(name)
        found[name] = parser = commands.add_parser(
            name,
            help=command.SUMMARY,
            description=command.SUMMARY,
            epilog=command.__doc__,
            formatter_class=RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.declare(parser)
        declare_global(parser, NOTHING_GLOBAL)
    told = commands.add_parser("help", help="print the help of a command", description="print the help of a command")
    told.add_argument("of", metavar="COMMAND", nargs="?", choices=COMMANDS, help="the command")
    return main, found
