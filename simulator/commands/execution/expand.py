"""The execution of `castsim expand`."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.commands.assembly_files import refuse_source
from castsim.commands.execution.cpp_kernels import is_tilelang, refuse_tilelang
from castsim.commands.execution.tilelang_kernels import kernel_of
from castsim.commands.option_parsers import assignments, scalar
from castsim.commands.outcome import Outcome
from castsim.commands.output import write_program
from castsim.isa.reading import STDIN
from castsim.running.expanding import expand
from castsim.running.loaded import LoadRequest
from castsim.targets.options import with_options

if TYPE_CHECKING:
    from rich.console import RenderableType


def execute(options: Namespace) -> Outcome:
    """Write the program.

    Raises:
        ReadError: what was typed; a file that cannot be read or written.
        IllegalError: as `castsim.running.expanding.expand`.
    """
    changes = assignments("--option", options.options)
    request = LoadRequest(
        target=options.target,
        entry=options.entry,
        args={name: scalar(name, text) for name, text in assignments("--arg", options.args).items()},
        prepare=lambda target: with_options(target, changes),
    )
    refuse_source(options.out, options.file)
    if is_tilelang(options.file):
        found = kernel_of(options, options.file).text
    else:
        refuse_tilelang(options, options.file)
        found = expand(Path("/dev/stdin" if options.file == STDIN else options.file), request)
    if options.out is not None:
        write_program(Path(options.out), found)

    def text(_: int) -> RenderableType:
        from rich.text import Text  # noqa: PLC0415 - rich, only if printed

        shown = found.rstrip("\n") if options.out is None else f"written to {options.out}"
        return Text(shown, no_wrap=True)

    return Outcome({"file": options.file, "out": options.out, "program": found}, text)
