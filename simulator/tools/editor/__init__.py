"""Editor services for programs: findings as the text changes, hover, completion, cycles of lines, repairs.

`server` speaks the Language Server Protocol; only it and its private modules import pygls (extra `lsp`).
"""

from __future__ import annotations

from castsim.commands.feature import Feature
from castsim.commands.shared_options import OptionParser


def _lsp(parser: OptionParser) -> None:
    """Speaks the Language Server Protocol on standard input and output, for editors to start. For .pto and .tpc
    files it offers the findings of `castsim check` as the text changes, hover, completion, cycles beside the lines,
    and quick fixes. It needs the extra `lsp`: pip install 'castsim[lsp]'. docs/editors/ explains the set-up for VS
    Code, Neovim and Emacs.

    --target and --arg apply to every file, -D and -I to kernels in C; an editor may pass the same settings as
    initializationOptions: {"target": "a5", "args": {"rows": 128}, "defines": {"WIDTH": "64"}, "folders":
    ["include"]}.

    examples:
      castsim lsp
      castsim lsp --target a5
    """
    add = parser.add_argument
    parser.take(target="the one each program names")
    parser.take("arguments", "headers")
    what = "accepted for editors that pass it: standard input and output are always used"
    add("--stdio", action="store_true", help=what)


FEATURES = (
    Feature(
        "lsp",
        "editors and scripts",
        "serve editors over the Language Server Protocol",
        _lsp,
        "castsim.tools.editor.server",
        needs=("pygls", "lsp"),
        interactive=True,
    ),
)
