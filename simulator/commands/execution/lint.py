"""The execution of `castsim lint`."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from castsim.commands.assembly_files import read_assembly
from castsim.commands.execution.kernel_options import HEADERS, refuse
from castsim.commands.option_values import statements_of
from castsim.commands.outcome import Outcome
from castsim.isa.sources import KERNEL_SUFFIX
from castsim.isa.tpc import TpcProgram, parse
from castsim.machines.vliw.lint import RULES, Flow, breaches, notices
from castsim.machines.vliw.source import chosen_target
from castsim.reports.sections.lint import lint_entries, notice_entry
from castsim.targets.vliw import VliwTarget


def execute(options: Namespace) -> Outcome:
    """Check the program.

    Raises:
        ReadError: the program cannot be read, or names no target.
        IllegalError: the target lacks an instruction, or the machine would refuse the program before running it.
    """
    if not options.program.endswith(KERNEL_SUFFIX):
        refuse(options, HEADERS, options.program, (KERNEL_SUFFIX,))
    file, target, program = _kernel(options) if options.program.endswith(KERNEL_SUFFIX) else _assembly(options)
    flow = Flow(program, target)
    findings, noticed = breaches(flow), notices(flow)
    document = {
        "program": file,
        "target": target.name,
        "rules": list(RULES),
        **lint_entries(findings),
        "notices": [notice_entry(found) for found in noticed],
    }

    def text(width: int) -> Any:
        from rich.console import Group  # noqa: PLC0415 - rich, only if printed

        from castsim.reports.sections.lint import lint_section, notice_section  # noqa: PLC0415 - rich, only if printed

        del width
        return Group(*lint_section(findings), *notice_section(noticed))

    return Outcome(document, text, code=1 if any(found.certain for found in findings) else 0)


def _assembly(options: Namespace) -> tuple[str, VliwTarget, TpcProgram]:
    file, source = read_assembly(
        options.program, "lint", "has no issue rules; `castsim run --timing-only` checks all that it has"
    )
    target = chosen_target(source, file, options.target)
    return file, target, parse(source, target.dialect, file, statements_of(options))


def _kernel(options: Namespace) -> tuple[str, VliwTarget, TpcProgram]:
    from castsim.commands.execution.kernels_in_c import compiled_of, scheduled_kernel  # noqa: PLC0415 - loads a compiler

    source, compiled = compiled_of(options, options.program)
    return source.file, compiled.target, scheduled_kernel(compiled).program
