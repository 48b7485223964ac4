"""Speaks the Language Server Protocol on standard input and output, for editors to start. For .pto and .tpc files it
offers the findings of `castsim check` as the text changes, hover, completion, cycles beside the lines, and quick fixes.
It needs the extra `lsp`: pip install 'castsim[lsp]'. docs/editors/ explains the set-up for VS Code, Neovim and Emacs.

--target and --arg apply to every file, -D and -I to kernels in C; an editor may pass the same settings as
initializationOptions: {"target": "a5", "args": {"rows": 128}, "defines": {"WIDTH": "64"}, "folders": ["include"]}.

examples:
  castsim lsp
  castsim lsp --target a5
"""

from __future__ import annotations

from argparse import Namespace

from castsim.commands.option_parsers import headers_of, macros_of, scalars_of
from castsim.commands.outcome import CommandOutcome
from castsim.commands.shared_options import OptionParser
from castsim.isa.errors import installed, missing_package
from castsim.targets.loader import load_target


def declare(parser: OptionParser) -> None:
    """Add the arguments of `lsp`."""
    add = parser.add_argument
    parser.take(target="the one each program names")
    parser.take("arguments", "headers")
    what = "accepted for editors that pass it: standard input and output are always used"
    add("--stdio", action="store_true", help=what)


def execute(options: Namespace) -> CommandOutcome:
    """Serve an editor until it ends the session.

    Raises:
        ReadError: an option is wrong, the target is unknown, or pygls is not installed.
    """
    if not installed("pygls"):
        raise missing_package("castsim lsp", "pygls", "lsp")
    if options.target is not None:
        load_target(options.target)
    args = scalars_of(options)
    from castsim.commands.editor.program_slice import Settings  # noqa: PLC0415 - pygls may be missing
    from castsim.commands.editor.server import serve  # noqa: PLC0415 - as above

    serve(Settings(options.target, args, macros_of(options), tuple(map(str, headers_of(options)[0]))))
    return CommandOutcome({}, lambda _: "")
