"""FILE holds one instruction per line, without slots; registers may be virtual: %v.NAME, %s.NAME, %i.NAME, %ad.NAME,
%vp.NAME, %sp.NAME, pairs %d.NAME and %z.NAME, quads %a.NAME. Labels, loops and declarations are as in any program. The
result is a program in bundles, on standard output or in the file given by -o; messages about it go to standard error.
It computes the same as the lines executed one after the other, and is never longer than with a NOP for every bundle of
waiting.

examples:
  castsim schedule lines.tpc --target gaudi2
  castsim schedule lines.tpc -o packed.tpc --json -
"""

from __future__ import annotations

import sys
from argparse import Namespace

from castsim.commands.asm import read_assembly, write_out
from castsim.commands.option_parsers import statements_of
from castsim.commands.outcome import CommandOutcome, plain
from castsim.commands.shared_options import OptionParser
from castsim.isa.tpc.parser import print_instruction
from castsim.machines.vliw import chosen_target
from castsim.reports.documents import VERSIONS
from castsim.tpc_compiler.scheduling import BundleCount, Scheduled, schedule


def declare(parser: OptionParser) -> None:
    """Add the arguments of `schedule`."""
    add = parser.add_argument
    add("file", metavar="FILE", help="assembly text, one instruction per line; - reads standard input")
    parser.take(target="the one the text declares")
    add("-o", "--out", metavar="FILE", help="write the program to FILE")
    add(
        "--longer-text", action="store_true", help="pipeline loops even where the text becomes longer than with padding"
    )
    parser.take("statements")


def execute(options: Namespace) -> CommandOutcome:
    """Schedule the text.

    Raises:
        ReadError: the text cannot be read, names no target, or already has bundles.
        IllegalError: the target lacks an instruction, or has too few registers.
    """
    file, text = read_assembly(options.file, "schedule", "is scheduled by `castsim run` itself")
    target = chosen_target(text, file, options.target)
    found = schedule(text, file, target, statements_of(options), longer=options.longer_text)
    written = write_out(options.out, found.text.encode(), options.file)
    document = {
        "schema_version": VERSIONS["schedule"],
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
        "spilled": list(found.spilled),
        "program": found.text,
    }
    remarks = _remarks(found, written=written is not None)
    if remarks and options.json is None and not options.quiet:
        print(remarks, file=sys.stderr)
    shown = found.text.rstrip("\n") if written is None else f"{written}: {_length(found)}"
    return CommandOutcome(document, lambda _: plain(shown))


def _remarks(found: Scheduled, *, written: bool) -> str:
    """Return remarks on a program; they are limited to its length if standard output holds the program."""
    lines = [] if written else [_length(found)]
    if found.spilled:
        names = ", ".join(found.spilled)
        lines.append(f"spilled, because more registers were needed at once than are free: {names}")
    if found.removed:
        places = ", ".join(str(each.span.line) for each in found.removed)
        lines.append(f"left out, because nothing reads their virtual registers: the instructions of lines {places}")
    return "\n".join(lines)


def _length(found: Scheduled) -> str:
    """Return a sentence about the lengths."""
    return f"{_bundles(found.length)}; padded with NOP: {_bundles(found.padding)}"


def _bundles(length: BundleCount) -> str:
    executed = (
        "how many are executed is not known before the run"
        if length.executed is None
        else f"{length.executed} executed"
    )
    return f"{length.static} bundles, {executed}"
