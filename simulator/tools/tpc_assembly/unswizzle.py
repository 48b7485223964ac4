"""The command `unswizzle`: remove lane moves around element-wise work."""

from __future__ import annotations

from argparse import Namespace

from castsim.commands.option_parsers import limits_of
from castsim.commands.outcome import CommandOutcome, write_out
from castsim.isa.errors import ReadError
from castsim.machines.vliw import chosen_target
from castsim.tools.tpc_assembly.asm import read_assembly
from castsim.tools.tpc_assembly.listing import Unswizzled, unswizzle_text
from castsim.tools.tpc_assembly.swizzle_elimination import compared


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
    limits = limits_of(options.max_walk, options.max_statements)
    comparison = compared(source, file, chosen_target(source, file, options.target), inputs, limits)
    written = write_out(options.out, comparison.elimination.text.encode(), options.program)

    return CommandOutcome(Unswizzled.of(comparison, output=written), lambda _: unswizzle_text(comparison, written))
