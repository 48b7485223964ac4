"""The command `expand`: show a tile program as the vector instructions that the A5 executes."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.commands.kernels import KernelOptions, refuse_tilelang
from castsim.commands.option_parsers import assignments, options_as, scalars
from castsim.commands.outcome import CommandOutcome, plain, refuse_source, write_program
from castsim.isa.reading import STDIN
from castsim.running.languages import TILELANG, language_module, language_of
from castsim.running.loaded import LoadRequest
from castsim.running.program_runs import RunConfig
from castsim.targets.description import with_options
from castsim.tools.expand.expansion import expand

if TYPE_CHECKING:
    from rich.console import RenderableType


def execute(options: Namespace) -> CommandOutcome:
    """Write the program.

    Raises:
        ReadError: an option is wrong, or a file cannot be read or written.
        IllegalError: see `castsim.tools.expand.expansion.expand`.
    """
    changes = assignments("--option", options.options)
    request = LoadRequest(
        target=options.target,
        entry=options.entry,
        args=scalars(options.args),
        prepare=lambda target: with_options(target, changes),
    )
    kernel = options_as(KernelOptions, options)
    refuse_source(options.out, options.file)
    if language_of(options.file) == TILELANG:
        config = RunConfig(options.file, args=request.args)
        program = language_module(TILELANG).kernel_of(config, kernel).text
    else:
        refuse_tilelang(kernel, options.file)
        program = expand(Path("/dev/stdin" if options.file == STDIN else options.file), request)
    if options.out is not None:
        write_program(Path(options.out), program)

    def text(_: int) -> RenderableType:
        shown = program.rstrip("\n") if options.out is None else f"written to {options.out}"
        return plain(shown)

    return CommandOutcome({"file": options.file, "out": options.out, "program": program}, text)
