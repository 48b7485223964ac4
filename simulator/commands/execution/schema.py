"""The execution of `castsim schema`."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import TYPE_CHECKING

from castsim.commands.outcome import Outcome
from castsim.reports.schemas.registry import every_command, list_document, schema_of, version_of

if TYPE_CHECKING:
    from rich.console import RenderableType


def execute(options: Namespace) -> Outcome:
    """Print the schema of a command's documents, or list the documents of all commands.

    Raises:
        ReadError: there is no such command.
    """
    if options.command is None:
        return Outcome(list_document(), lambda _: _listed())
    schema = schema_of(options.command)

    def text(_: int) -> RenderableType:
        from castsim.reports.listing import plain_text  # noqa: PLC0415 - rich, only if printed

        return plain_text(json.dumps(schema, indent=2))

    return Outcome({"command": options.command, "schema": schema}, text)


def _listed() -> RenderableType:
    from castsim.reports.terminal import table  # noqa: PLC0415 - rich, only if printed

    made = table("command", "document", "version", "content", numbers=("version",))
    for command, forms in every_command():
        for form in forms:
            made.add_row(command, form.NAME, str(version_of(form)), (form.__doc__ or "").strip())
    return made
