"""COMMAND is a command that takes --json, or `errors`: what every command writes when it fails. Without COMMAND, the
documents of all commands are listed with their versions; the version goes up with every change to the structure.

examples:
  castsim schema
  castsim schema run
  castsim schema errors
"""

from __future__ import annotations

import json
from argparse import Namespace
from typing import TYPE_CHECKING

from castsim.commands.outcome import CommandOutcome, plain
from castsim.commands.shared_options import OptionParser
from castsim.reports.schemas.registry import every_command, list_document, schema_of, version_of

if TYPE_CHECKING:
    from rich.console import RenderableType


def declare(parser: OptionParser) -> None:
    """Add the arguments of `schema`."""
    parser.add_argument("command", metavar="COMMAND", nargs="?", help="a command, or `errors`; default: list all")


def execute(options: Namespace) -> CommandOutcome:
    """Print the schema of a command's documents, or list the documents of all commands.

    Raises:
        ReadError: the command does not exist.
    """
    if options.command is None:
        return CommandOutcome(list_document(), lambda _: _listed())
    schema = schema_of(options.command)

    return CommandOutcome({"command": options.command, "schema": schema}, lambda _: plain(json.dumps(schema, indent=2)))


def _listed() -> RenderableType:
    from castsim.reports.terminal import table  # noqa: PLC0415 - rich, only if printed

    rows = (
        (command, form.NAME, str(version_of(form)), (form.__doc__ or "").strip())
        for command, forms in every_command()
        for form in forms
    )
    return table("command", "document", ">version", "content", rows=rows)
