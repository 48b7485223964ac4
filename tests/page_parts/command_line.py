"""The table of commands, from their parsers."""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator

from castsim.commands.command_line import COMMANDS, declaration
from castsim.commands.shared_options import OptionParser
from page_parts.markdown import code, codes, prose, table

_SHARED = 4
"""Commands from which on an option stands in a table of its own."""


def commands() -> str:
    """Return a row per command: what it does, its arguments and options."""
    shared = {action.option_strings[-1] for action in _shared()}
    rows = []
    for name, summary in COMMANDS.items():
        words = (
            action.option_strings[-1] if action.option_strings else str(action.metavar or action.dest)
            for action in _actions(name)
        )
        rows.append((code(name), prose(summary), codes(word for word in words if word not in shared)))
    return table(("command", "what it does", "arguments and options of its own"), rows)


def shared_options() -> str:
    """Return a row per option that several commands take: what it is."""
    return table(("option", "what it is"), ((code(_spelling(action)), _help(action)) for action in _shared()))


def _shared() -> Iterator[argparse.Action]:
    """Yield options of several commands, each as most of them explain it."""
    explained: defaultdict[str, list[argparse.Action]] = defaultdict(list)
    for name in COMMANDS:
        for action in _actions(name):
            for option in action.option_strings[-1:]:
                explained[option].append(action)
    for actions in explained.values():
        if len(actions) >= _SHARED:
            ((most, _),) = Counter(action.help for action in actions).most_common(1)
            yield next(action for action in actions if action.help == most)


def _actions(name: str) -> list[argparse.Action]:
    parser = OptionParser(prog=f"castsim {name}", add_help=False)
    declaration(name)[1](parser)
    return parser._actions


def _spelling(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else f" {_metavar(action)}"
    return ", ".join(f"{option}{value}" for option in action.option_strings)


def _metavar(action: argparse.Action) -> str:
    shown = action.metavar or action.dest.upper()
    return " ".join(shown) if isinstance(shown, tuple) else shown


def _help(action: argparse.Action) -> str:
    text = (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%")
    return prose(text)
