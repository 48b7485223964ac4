"""PROGRAM is TPC assembly; tile programs (.pto) have no lanes to move. In every block without control flow it is
followed, byte by byte, which loaded element each stored element is made of. Where that is the element of the same
place, by the same work for all, the lane moves between (PACK, UNPACK, MOV_DG, MOV_G) are removed: the work is done in
the order that all_lanes conversions leave. Both programs are run on the same inputs, --in NAME=FILE.npy|random:SEED or
NAME=zeros (default random:0), and timed.

examples:
  castsim unswizzle programs/tpc_bf16_scale_linear_gaudi.tpc
  castsim unswizzle kernel.tpc --out shorter.tpc
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulator.commands.outcome import Outcome

SUMMARY = "remove lane moves around element-wise work from an assembly program"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `unswizzle`."""
    add = parser.add_argument
    add("program", metavar="PROGRAM", help="a .tpc or .s file; - reads standard input")
    add("--target", metavar="T", help="name or path of a target description; default: the one the program names")
    add("--in", metavar="NAME=..", dest="inputs", action="append", default=[], help="an input; default random:0")
    add("--out", metavar="FILE", help="write the new program to FILE")


def execute(options: Namespace) -> Outcome:
    """Rewrite the program, run both.

    Raises:
        ReadError: the program cannot be read, names no target; an unknown or malformed input.
        IllegalError: the target lacks an instruction; the program reads early.
        EngineError: the program does not end.
    """
    from isa.errors import ReadError  # noqa: PLC0415
    from simulator.commands.asm import read_assembly, write_out  # noqa: PLC0415
    from simulator.commands.outcome import Outcome  # noqa: PLC0415
    from simulator.reports.unswizzle import unswizzle_document  # noqa: PLC0415
    from simulator.swizzles.comparing import compared  # noqa: PLC0415
    from simulator.vliw.source import chosen_target  # noqa: PLC0415

    file, source = read_assembly(options.program, "unswizzle", "has no lanes to move")
    inputs = {}
    for given in options.inputs:
        name, equals, value = given.strip().partition("=")
        if not equals or not name or not value:
            raise ReadError(f"--in {given.strip()}: not NAME=VALUE", legal=("NAME=FILE.npy", "NAME=random:SEED"))
        inputs[name] = value
    found = compared(source, file, chosen_target(source, file, options.target), inputs)
    written = write_out(options.out, found.elimination.text.encode(), options.program)

    def text(_: int) -> Any:
        from simulator.reports.unswizzle_text import unswizzle_text  # noqa: PLC0415 - rich, only if printed

        return unswizzle_text(found, written)

    return Outcome(unswizzle_document(found, written), text)
