"""The reference of the command line, from its parsers."""

from __future__ import annotations

import argparse
from importlib import import_module

from castsim.commands.command_line import COMMANDS
from page_parts.markdown import code, prose, table


def commands() -> str:
    """Return a section per command: usage, arguments, options, what its help adds."""
    return "\n".join(_command(name) for name in COMMANDS)


def _command(name: str) -> str:
    module = import_module(f"castsim.commands.{name}")
    parser = argparse.ArgumentParser(prog=f"castsim {name}", add_help=False)
    module.declare(parser)
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    parts = [
        f"## castsim {name}",
        "",
        f"{module.SUMMARY[0].upper()}{module.SUMMARY[1:]}.",
        "",
        f"```text\n{usage}\n```",
    ]
    rows = [(code(_spelling(action)), _help(action)) for action in parser._actions]
    if rows:
        parts += ["", table(("argument", "what it is"), rows)]
    prose, _, examples = (module.__doc__ or "").partition("examples:")
    if prose.strip():
        parts += ["", *(_paragraph(text) for text in prose.strip().split("\n\n"))]
    if examples.strip():
        lines = "\n".join(line.strip() for line in examples.strip().splitlines())
        parts += ["", f"```text\n{lines}\n```"]
    return "\n".join(parts) + "\n"


def _spelling(action: argparse.Action) -> str:
    if not action.option_strings:
        return str(action.metavar or action.dest)
    value = "" if action.nargs == 0 else f" {_metavar(action)}"
    return ", ".join(f"{option}{value}" for option in action.option_strings)


def _metavar(action: argparse.Action) -> str:
    shown = action.metavar or action.dest.upper()
    return " ".join(shown) if isinstance(shown, tuple) else shown


def _help(action: argparse.Action) -> str:
    text = (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%")
    return prose(text)


def _paragraph(text: str) -> str:
    """Return a paragraph; lines that are indented stay as they are, as code."""
    lines = text.splitlines()
    if all(line.startswith(" ") for line in lines):
        return "```text\n" + "\n".join(line.strip() for line in lines) + "\n```\n"
    return prose(text) + "\n"
