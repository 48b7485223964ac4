"""PROGRAM is TPC assembly; tile programs (.pto) have no lanes to move. In every block without control flow, each stored
element is traced, byte by byte, to the loaded elements it is made of. Where that is the element in the same place, with
the same work done for all, the lane moves in between (PACK, UNPACK, MOV_DG, MOV_G) are removed, and the work is done in
the order that all_lanes conversions leave. Both programs are then run and timed on the same inputs: --in
NAME=FILE.npy|random:SEED or NAME=zeros (default random:0).

examples:
  castsim unswizzle programs/tpc_bf16_scale_linear_gaudi.tpc
  castsim unswizzle kernel.tpc --out shorter.tpc
"""

from __future__ import annotations

from argparse import Namespace

from castsim.commands.asm import read_assembly, write_out
from castsim.commands.option_parsers import limits_of
from castsim.commands.outcome import CommandOutcome
from castsim.commands.shared_options import OptionParser
from castsim.isa.errors import ReadError
from castsim.machines.vliw import chosen_target
from castsim.reports.listing import Unswizzled, unswizzle_text
from castsim.tpc_compiler.swizzle_elimination import compared


def declare(parser: OptionParser) -> None:
    """Add the arguments of `unswizzle`."""
    add = parser.add_argument
    add("program", metavar="PROGRAM", help="a .tpc or .s file; - reads standard input")
    parser.take("target", inputs="an input; default random:0")
    parser.take("walk")
    add("--out", metavar="FILE", help="write the new program to FILE")


def execute(options: Namespace) -> CommandOutcome:
    """Rewrite the program, and run both versions.

    Raises:
        ReadError: the program cannot be read or names no target, or an input is unknown or malformed.
        IllegalError: the target lacks an instruction, or the program reads a result too early.
        EngineError: the program does not end.
    """
    file, source = read_assembly(options.program, "unswizzle", "has no lanes to move")
    inputs = {}
    for given in options.inputs:
        name, equals, value = given.strip().partition("=")
        if not equals or not name or not value:
            raise ReadError(f"--in {given.strip()}: expected NAME=VALUE", legal=("NAME=FILE.npy", "NAME=random:SEED"))
        inputs[name] = value
    found = compared(source, file, chosen_target(source, file, options.target), inputs, limits_of(options))
    written = write_out(options.out, found.elimination.text.encode(), options.program)

    return CommandOutcome(Unswizzled.of(found, output=written), lambda _: unswizzle_text(found, written))
