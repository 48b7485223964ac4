"""The execution of `castsim schedule`."""

from __future__ import annotations

import sys
from argparse import Namespace

from castsim.commands.assembly_files import read_assembly, write_out
from castsim.commands.option_parsers import statements_of
from castsim.commands.outcome import Outcome
from castsim.isa.tpc import print_instruction
from castsim.machines.vliw.program_sources import chosen_target
from castsim.reports.listing import plain_text
from castsim.tpc_compiler.scheduling import Length, Scheduled, schedule


def execute(options: Namespace) -> Outcome:
    """Schedule the text.

    Raises:
        ReadError: the text cannot be read, names no target, or has bundles already.
        IllegalError: the target lacks an instruction, or has too few registers.
    """
    file, text = read_assembly(options.file, "schedule", "is scheduled by `castsim run` itself")
    target = chosen_target(text, file, options.target)
    found = schedule(text, file, target, statements_of(options), longer=options.longer_text)
    written = write_out(options.out, found.text.encode(), options.file)
    document = {
        "file": file,
        "target": target.name,
        "output": None if written is None else str(written),
        "method": found.method,
        "bundles": {"static": found.length.static, "executed": found.length.executed},
        "padding": {"static": found.padding.static, "executed": found.padding.executed},
        "registers": {name: list(registers) for name, registers in found.registers.items()},
        "removed": [
            {"line": each.span.line, "instruction": print_instruction(each.instruction)} for each in found.removed
        ],
        "program": found.text,
    }
    remarks = _remarks(found, written=written is not None)
    if remarks and options.json is None and not options.quiet:
        print(remarks, file=sys.stderr)
    shown = found.text.rstrip("\n") if written is None else f"{written}: {_length(found)}"
    return Outcome(document, lambda _: plain_text(shown))


def _remarks(found: Scheduled, *, written: bool) -> str:
    """Return what is said of a program beside it; its length only if standard output holds the program."""
    lines = [] if written else [_length(found)]
    if found.removed:
        places = ", ".join(str(each.span.line) for each in found.removed)
        lines.append(f"left out, because nothing reads their virtual registers: the instructions of lines {places}")
    return "\n".join(lines)


def _length(found: Scheduled) -> str:
    """Return the lengths as a sentence."""
    return f"{_bundles(found.length)}; padded with NOP: {_bundles(found.padding)}"


def _bundles(length: Length) -> str:
    executed = (
        "how many are executed is not known before the run"
        if length.executed is None
        else f"{length.executed} executed"
    )
    return f"{length.static} bundles, {executed}"
