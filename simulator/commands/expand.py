"""Prints the vector instructions that the A5 or the A2/A3 executes for a function of tile operations: each operation
becomes the vecscope of the vector function chosen by its lowering, on A2/A3 its pto.strided statements; tloads and
tstores become transfers, and flags missing from the source are added. The entry and its arguments keep their names, so
the same --in and --arg apply, and running the result gives the same bytes. Loops stay loops. Scalar arguments stay
arguments on the A5, and choices that depend on them are made when the text is run; if --arg gives all of them, as the
A2/A3 needs, the choices are made here. An operation that has no instructions is rejected with its location.

A function of logical registers (pto.vmi) is printed as the vector instructions that castsim makes of it, and so is a
kernel of TileLang, whose file is executed for it.

--option sets an option of the target, as in `castsim run`; the output itself names the options it needs.

examples:
  castsim expand programs/a5_bf16_to_e2m1.pto
  castsim expand kernel.py:per_token --arg num_tokens=32
  castsim expand programs/a5_bf16_to_e2m1.pto --option ctrl_60_at_start=1 -o micro.pto
"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.commands.asm import refuse_source
from castsim.commands.option_parsers import assignments, is_tilelang, refuse_tilelang, scalars_of
from castsim.commands.outcome import CommandOutcome, plain, write_program
from castsim.commands.shared_options import OptionParser
from castsim.isa.reading import STDIN
from castsim.running.block_lowering import expand
from castsim.running.loaded import LoadRequest
from castsim.targets.description import with_options

if TYPE_CHECKING:
    from rich.console import RenderableType


def declare(parser: OptionParser) -> None:
    """Add the arguments of `expand`."""
    add = parser.add_argument
    add("file", metavar="FILE", help="a .pto program of tile operations, or KERNEL.py:FUNCTION; - reads stdin")
    parser.take("target")
    add("--entry", metavar="F", help="function to expand; default: the entry")
    parser.take("arguments", "target_options", "tilelang")
    add("-o", "--out", metavar="FILE", help="write the program to FILE; default: standard output")
    parser.take("page")


def execute(options: Namespace) -> CommandOutcome:
    """Write the program.

    Raises:
        ReadError: what was typed; a file that cannot be read or written.
        IllegalError: as `castsim.running.block_lowering.expand`.
    """
    changes = assignments("--option", options.options)
    request = LoadRequest(
        target=options.target,
        entry=options.entry,
        args=scalars_of(options),
        prepare=lambda target: with_options(target, changes),
    )
    refuse_source(options.out, options.file)
    if is_tilelang(options.file):
        from castsim.commands.tilelang_kernels import kernel_of  # noqa: PLC0415 - loads the front end

        found = kernel_of(options, options.file).text
    else:
        refuse_tilelang(options, options.file)
        found = expand(Path("/dev/stdin" if options.file == STDIN else options.file), request)
    if options.out is not None:
        write_program(Path(options.out), found)

    def text(_: int) -> RenderableType:
        shown = found.rstrip("\n") if options.out is None else f"written to {options.out}"
        return plain(shown)

    return CommandOutcome({"file": options.file, "out": options.out, "program": found}, text)
