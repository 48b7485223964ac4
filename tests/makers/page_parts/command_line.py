"""The table of commands."""

from __future__ import annotations

from makers.page_parts.markdown import code, prose, table

from castsim.commands.feature import shipped_features


def commands() -> str:
    """Return a row per command: what it does; docs/hooks.py lists the options on the site."""
    return table(("command", "what it does"), ((code(each.name), prose(each.summary)) for each in shipped_features()))
