"""The command `schedule`: pack instructions into bundles, and allocate registers."""

from __future__ import annotations

import sys
from argparse import Namespace

from castsim.commands.option_parsers import limits_of
from castsim.commands.outcome import CommandOutcome, plain, write_out
from castsim.isa.tpc.parser import print_instruction
from castsim.machines.vliw import chosen_target
from castsim.reports.documents import CommandDocument, Keys, says
from castsim.reports.schemas.keys import Bundles, Line, Name
from castsim.tools.tpc_assembly.asm import read_assembly
from castsim.tools.tpc_assembly.scheduling import BundleCount, Scheduled, schedule


class Length(Keys):
    """A number of bundles."""

    static: Bundles = says("Length of the text.")
    executed: Bundles | None = says("Length of a run; null if it is unknown.")


class Removed(Keys):
    """An instruction that was left out."""

    line: Line = says("Line of the source.", "span.line")
    instruction: str = says("The instruction.", lambda operation: print_instruction(operation.instruction))


class Schedule(CommandDocument, name="schedule", version=2):
    """A scheduled program."""

    file: str = says("The source.")
    target: str = says("Name of the target.")
    output: str | None = says("The output file; null if none was written.")
    method: str = says("Method of scheduling the loops.")
    bundles: Length = says("Its length.", "length")
    padding: Length = says("The length with one instruction a bundle and NOPs.")
    registers: dict[Name, list[str]] = says("The registers of each virtual one.")
    removed: list[Removed] = says("Removed instructions.")
    spilled: list[str] = says("Virtual registers whose values are spilled to local memory or recomputed.")
    program: str = says("The text.", "text")


def execute(options: Namespace) -> CommandOutcome:
    """Schedule the text.

    Raises:
        ReadError: the text cannot be read, names no target, or already has bundles.
        IllegalError: the target lacks an instruction, or has too few registers.
    """
    file, text = read_assembly(options.file, "schedule", "is scheduled by `castsim run` itself")
    target = chosen_target(text, file, options.target)
    limits = limits_of(statements=options.max_statements)
    result = schedule(text, file, target, limits.max_statements, longer=options.longer_text)
    written = write_out(options.out, result.text.encode(), options.file)
    document = Schedule.of(result, file=file, target=target, output=written)
    remarks = _remarks(result, written=written is not None)
    if remarks and options.json is None and not options.quiet:
        print(remarks, file=sys.stderr)
    shown = result.text.rstrip("\n") if written is None else f"{written}: {_length(result)}"
    return CommandOutcome(document, lambda _: plain(shown))


def _remarks(result: Scheduled, *, written: bool) -> str:
    """Return remarks on a program; they are limited to its length if standard output holds the program."""
    lines = [] if written else [_length(result)]
    if result.spilled:
        names = ", ".join(result.spilled)
        lines.append(f"spilled, because more registers were needed at once than are free: {names}")
    if result.removed:
        places = ", ".join(str(operation.span.line) for operation in result.removed)
        lines.append(f"left out, because nothing reads their virtual registers: the instructions of lines {places}")
    return "\n".join(lines)


def _length(result: Scheduled) -> str:
    """Return a sentence about the lengths."""
    return f"{_bundles(result.length)}; padded with NOP: {_bundles(result.padding)}"


def _bundles(length: BundleCount) -> str:
    executed = (
        "how many are executed is not known before the run"
        if length.executed is None
        else f"{length.executed} executed"
    )
    return f"{length.static} bundles, {executed}"
