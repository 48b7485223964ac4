"""PROGRAM is TPC assembly. Findings give exit code 1. Tile programs (.pto) are checked by `castsim run --timing-only`:
whatever their target cannot do, tmp tiles that are too small, races.

examples:
  castsim lint kernel.tpc
  castsim lint kernel.s --target gaudi2 --json -
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from simulator.commands.outcome import Outcome

SUMMARY = "check the issue rules of an assembly program without running it"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `lint`."""
    add = parser.add_argument
    add("program", metavar="PROGRAM", help="a .tpc or .s file; - reads standard input")
    add("--target", metavar="T", help="name or path of a target description; default: the one the program names")


def execute(options: Namespace) -> Outcome:
    """Check the program.

    Raises:
        ReadError: the program cannot be read, or names no target.
        IllegalError: the target lacks an instruction, or the machine would refuse the program before running it.
    """
    from isa.tpc import parse  # noqa: PLC0415
    from simulator.commands.asm import read_assembly  # noqa: PLC0415
    from simulator.commands.outcome import Outcome  # noqa: PLC0415
    from simulator.reports.exposed import finding_entry  # noqa: PLC0415
    from simulator.vliw.lint import RULES, lint  # noqa: PLC0415
    from simulator.vliw.source import chosen_target  # noqa: PLC0415

    file, source = read_assembly(
        options.program, "lint", "has no issue rules; `castsim run --timing-only` checks all that it has"
    )
    target = chosen_target(source, file, options.target)
    findings = lint(parse(source, target.dialect, file), target)
    document = {
        "program": file,
        "target": target.name,
        "rules": list(RULES),
        "lint": [finding_entry(found) for found in findings],
    }

    def text(width: int) -> Any:
        from rich.console import Group  # noqa: PLC0415 - rich, only if printed

        from simulator.reports.exposed_text import lint_section  # noqa: PLC0415

        del width
        return Group(*lint_section(findings))

    return Outcome(document, text, code=1 if findings else 0)
