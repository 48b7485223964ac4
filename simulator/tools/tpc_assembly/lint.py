"""The command `lint`: check assembly against the issue rules without running it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable

from castsim.commands.kernels import compiled_of
from castsim.commands.option_parsers import HEADERS, refuse, statements_of
from castsim.commands.outcome import CommandOutcome, stacked
from castsim.isa.reading import KERNEL_SUFFIX
from castsim.isa.tpc.parser import parse
from castsim.isa.tpc.program import TpcProgram
from castsim.machines.vliw import chosen_target
from castsim.machines.vliw.findings import LintFinding
from castsim.reports.lint import lint_section, notice_section
from castsim.running.languages import C, language_module
from castsim.targets.vliw import VliwTarget
from castsim.tools.tpc_assembly.asm import read_assembly
from castsim.tools.tpc_assembly.listing import Lint
from castsim.tools.tpc_lint.lint_checking import RULES, breaches
from castsim.tools.tpc_lint.lint_flow import Flow, notices

_Own = Callable[[tuple[LintFinding, ...]], tuple[LintFinding, ...]]


def execute(options: Namespace) -> CommandOutcome:
    """Check the program.

    Raises:
        ReadError: the program cannot be read, or names no target.
        IllegalError: the target lacks an instruction, or the machine would refuse the program before running it.
    """
    if not options.program.endswith(KERNEL_SUFFIX):
        refuse(options, HEADERS, options.program, (KERNEL_SUFFIX,))
    is_kernel = options.program.endswith(KERNEL_SUFFIX)
    file, target, program, own = _kernel(options) if is_kernel else (*_assembly(options), tuple)
    flow = Flow(program, target)
    findings, noticed = own(breaches(flow)), own(notices(flow))
    certain, possible = ([finding for finding in findings if finding.certain is sure] for sure in (True, False))
    document = Lint.of(
        program=file, target=target, rules=[*RULES], lint=certain, lint_possible=possible, notices=noticed
    )

    return CommandOutcome(
        document,
        lambda _: stacked(*lint_section(findings), *notice_section(noticed)),
        code=1 if any(finding.certain for finding in findings) else 0,
    )


def _assembly(options: Namespace) -> tuple[str, VliwTarget, TpcProgram]:
    file, source = read_assembly(
        options.program, "lint", "has no issue rules; `castsim run --timing-only` checks all of its rules"
    )
    target = chosen_target(source, file, options.target)
    return file, target, parse(source, target.dialect, file, statements_of(options))


def _kernel(options: Namespace) -> tuple[str, VliwTarget, TpcProgram, _Own]:
    """Return a kernel's bundles, and a filter that keeps the findings about its own instructions."""
    source, compiled = compiled_of(options, options.program)
    program, own = language_module(C).checked_kernel(compiled)
    return source.file, compiled.target, program, own
