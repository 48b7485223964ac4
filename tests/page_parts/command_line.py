"""The table of commands."""

from __future__ import annotations

from castsim.commands.command_line import COMMANDS
from page_parts.markdown import code, prose, table


def commands() -> str:
    """Return a row per command: what it does; docs/hooks.py lists the options on the site."""
    return table(("command", "what it does"), ((code(name), prose(summary)) for name, summary in COMMANDS.items()))
