"""The execution of `castsim unswizzle`."""

from __future__ import annotations

from argparse import Namespace

from castsim.commands.assembly_files import read_assembly, write_out
from castsim.commands.option_parsers import limits_of
from castsim.commands.outcome import Outcome
from castsim.isa.errors import ReadError
from castsim.machines.vliw.source import chosen_target
from castsim.reports.listing import unswizzle_document, unswizzle_text
from castsim.tpc_compiler.swizzles.comparing import compared


def execute(options: Namespace) -> Outcome:
    """Rewrite the program, run both.

    Raises:
        ReadError: the program cannot be read, names no target; an unknown or malformed input.
        IllegalError: the target lacks an instruction; the program reads early.
        EngineError: the program does not end.
    """
    file, source = read_assembly(options.program, "unswizzle", "has no lanes to move")
    inputs = {}
    for given in options.inputs:
        name, equals, value = given.strip().partition("=")
        if not equals or not name or not value:
            raise ReadError(f"--in {given.strip()}: not NAME=VALUE", legal=("NAME=FILE.npy", "NAME=random:SEED"))
        inputs[name] = value
    found = compared(source, file, chosen_target(source, file, options.target), inputs, limits_of(options))
    written = write_out(options.out, found.elimination.text.encode(), options.program)

    return Outcome(unswizzle_document(found, written), lambda _: unswizzle_text(found, written))
