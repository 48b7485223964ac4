"""The command `schema`: print the JSON Schema of a command's --json output."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import TYPE_CHECKING

from castsim.commands.document_schemas import every_command, list_document, schema_of
from castsim.commands.outcome import CommandOutcome, plain

if TYPE_CHECKING:
    from rich.console import RenderableType


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
        (command, form.NAME, str(form.VERSION), (form.__doc__ or "").strip())
        for command, forms in every_command()
        for form in forms
    )
    return table("command", "document", ">version", "content", rows=rows)
