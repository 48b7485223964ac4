"""The execution of `castsim lsp`."""

from __future__ import annotations

from argparse import Namespace
from importlib.util import find_spec

from castsim.commands.option_parsers import assignments, scalar
from castsim.commands.outcome import Outcome
from castsim.editor.document import Settings
from castsim.isa.errors import ReadError
from castsim.targets import load_target


def execute(options: Namespace) -> Outcome:
    """Serve an editor until it ends the session.

    Raises:
        ReadError: what was typed; an unknown target; pygls is not installed.
    """
    if find_spec("pygls") is None:
        raise ReadError("castsim lsp needs the package pygls", legal=("pip install 'castsim[lsp]'",))
    if options.target is not None:
        load_target(options.target)
    args = {name: scalar(name, text) for name, text in assignments("--arg", options.args).items()}
    from castsim.editor.server import serve  # noqa: PLC0415 - pygls may be missing

    serve(Settings(options.target, args))
    return Outcome({}, lambda _: "")
