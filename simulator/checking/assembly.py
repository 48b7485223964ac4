"""What is wrong with TPC assembly: syntax, what the generation lacks, and what the linter finds."""

from __future__ import annotations

from collections.abc import Iterator

from castsim.checking.finding import Finding, Severity, of_errors, placed
from castsim.isa.errors import CastsimError
from castsim.isa.sources import Source
from castsim.isa.tpc import parse
from castsim.machines.vliw.lint import LintFinding, lint, notices
from castsim.machines.vliw.source import chosen_target
from castsim.running.request import LoadRequest
from castsim.tpc_compiler.scheduling import has_virtual_registers, schedule


def assembly_findings(source: Source, request: LoadRequest) -> Iterator[Finding]:
    """Yield what is wrong with a program, in no order; one of virtual registers is scheduled first."""
    text, most = source.text, request.limits.max_statements
    try:
        target = chosen_target(text, source.file, request.target, request.prepare)
        if has_virtual_registers(text):
            schedule(text, source.file, target, most)
            return
        program = parse(text, target.dialect, source.file, most)
        found, noticed = lint(program, target), notices(program, target)
    except CastsimError as error:
        yield from of_errors(error, source.file)
        return
    for one in found:
        yield _finding(one, Severity.ERROR if one.certain else Severity.WARNING, source.file)
    for one in noticed:
        yield _finding(one, Severity.NOTE, source.file)


def _finding(found: LintFinding, severity: Severity, file: str) -> Finding:
    return placed(severity, found.rule, found.message, found.span, file, exit_code=int(severity is Severity.ERROR))
