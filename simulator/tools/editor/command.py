"""The command `lsp`: serve editors over the Language Server Protocol."""

from __future__ import annotations

from argparse import Namespace

from castsim.commands.kernels import KernelOptions
from castsim.commands.option_parsers import options_as, scalars
from castsim.commands.outcome import CommandOutcome
from castsim.isa.errors import installed, missing_package
from castsim.targets.loader import load_target


def execute(options: Namespace) -> CommandOutcome:
    """Serve an editor until it ends the session.

    Raises:
        ReadError: an option is wrong, the target is unknown, or pygls is not installed.
    """
    if not installed("pygls"):
        raise missing_package("castsim lsp", "pygls", "lsp")
    if options.target is not None:
        load_target(options.target)
    args, kernel = scalars(options.args), options_as(KernelOptions, options)
    from castsim.tools.editor.program_slice import Settings  # noqa: PLC0415 - pygls may be missing
    from castsim.tools.editor.server import serve  # noqa: PLC0415 - as above

    serve(Settings(options.target, args, kernel.macro_texts(), tuple(map(str, kernel.header_folders()))))
    return CommandOutcome({}, lambda _: "")
