"""Speaks the Language Server Protocol on standard input and output, for editors to start. For .pto and .tpc files it
offers the findings of `castsim check` as the text changes, hover, completion, cycles beside the lines, and quick fixes.
It needs the extra `lsp`: pip install 'castsim[lsp]'. docs/editors/ explains the set-up for VS Code, Neovim and Emacs.

--target and --arg apply to every file; an editor may pass the same settings as initializationOptions: {"target": "a5",
"args": {"rows": 128}}.

examples:
  castsim lsp
  castsim lsp --target a5
"""

from __future__ import annotations

from argparse import ArgumentParser

from castsim.commands.shared_options import declare_arguments, declare_target

SUMMARY = "serve editors over the Language Server Protocol"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `lsp`."""
    add = parser.add_argument
    declare_target(parser, "the one each program names")
    declare_arguments(parser)
    add(
        "--stdio",
        action="store_true",
        help="use standard input and output, as it always does; for editors that pass it",
    )
