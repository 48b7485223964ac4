"""The command `lint`: check assembly against the issue rules without running it."""

from __future__ import annotations

from argparse import Namespace

from castsim.commands.kernels import KernelOptions, compiled_of, is_kernel
from castsim.commands.option_parsers import limits_of, options_as, refuse
from castsim.commands.outcome import CommandOutcome, stacked
from castsim.isa.reading import KERNEL_SUFFIX
from castsim.isa.tpc.parser import parse
from castsim.machines.vliw import chosen_target
from castsim.machines.vliw.findings import LintFinding
from castsim.reports.documents import CommandDocument, says
from castsim.reports.lint import Notice, lint_section, notice_section
from castsim.reports.schemas.keys import LintEntry
from castsim.running.languages import C, language_module
from castsim.tools.tpc_assembly.asm import read_assembly
from castsim.tools.tpc_lint.lint_checking import RULES, breaches
from castsim.tools.tpc_lint.lint_flow import Flow, notices


class Lint(CommandDocument, name="lint"):
    """Findings of the linter."""

    program: str = says("The file.")
    target: str = says("Name of the target.")
    rules: list[str] = says("The rules that it checks.")
    lint: list[LintEntry] = says("The certain findings.")
    lint_possible: list[LintEntry] = says("Findings that depend on the path, on predicates or on initial values.")
    notices: list[Notice] = says("Notices.")


def _all(findings: tuple[LintFinding, ...]) -> tuple[LintFinding, ...]:
    """Return the findings of a program without others' instructions."""
    return findings


def execute(options: Namespace) -> CommandOutcome:
    """Check the program.

    Raises:
        ReadError: the program cannot be read, or names no target.
        IllegalError: the target lacks an instruction, or the machine would refuse the program before running it.
    """
    kernel, own = options_as(KernelOptions, options), _all
    if is_kernel(options.program):
        source, compiled = compiled_of(options.program, options.target, kernel)
        file, target = source.file, compiled.target
        program, own = language_module(C).checked_kernel(compiled)
    else:
        refuse(kernel.headers, options.program, (KERNEL_SUFFIX,))
        file, text = read_assembly(
            options.program, "lint", "has no issue rules; `castsim run --timing-only` checks all of its rules"
        )
        target = chosen_target(text, file, options.target)
        program = parse(text, target.dialect, file, limits_of(statements=options.max_statements).max_statements)
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
