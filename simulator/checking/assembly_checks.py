"""What is wrong with TPC assembly: syntax, what the generation lacks, and what the linter finds."""

from __future__ import annotations

from collections.abc import Iterator

from castsim.checking.check_finding import Finding, Severity, of_errors, placed
from castsim.isa.errors import CastsimError
from castsim.isa.sources import Source
from castsim.isa.tpc import parse
from castsim.isa.tpc.program import Immediate, TensorDeclaration, TpcProgram
from castsim.machines.vliw.lint_checking import breaches
from castsim.machines.vliw.lint_flow import Flow, LintFinding, notices
from castsim.machines.vliw.program_sources import chosen_target
from castsim.running.loaded import LoadRequest
from castsim.tpc_compiler.scheduling import schedule
from castsim.tpc_compiler.virtual_registers import has_virtual_registers


def assembly_findings(source: Source, request: LoadRequest) -> Iterator[Finding]:
    """Yield what is wrong with a program, in no order; one of virtual registers is scheduled first."""
    text, most = source.text, request.limits.max_statements
    try:
        target = chosen_target(text, source.file, request.target, request.prepare)
        if has_virtual_registers(text):
            schedule(text, source.file, target, most)
            return
        program = parse(text, target.dialect, source.file, most)
        flow = Flow(program, target)
        found, noticed = breaches(flow), notices(flow)
    except CastsimError as error:
        yield from of_errors(error, source.file)
        return
    yield from _undeclared_tensors(program, source.file)
    for one in found:
        yield _finding(one, Severity.ERROR if one.certain else Severity.WARNING, source.file)
    for one in noticed:
        yield _finding(one, Severity.NOTE, source.file)


def _undeclared_tensors(program: TpcProgram, file: str) -> Iterator[Finding]:
    """Yield tensors that a program uses without declaring them, if it declares any: a run would stop there."""
    known = {each.number: each.name for each in program.declarations if isinstance(each, TensorDeclaration)}
    legal = tuple(f"{number} ({name})" for number, name in known.items())
    for bundle in program.bundles if known else ():
        for each in filter(None, bundle.slots):
            number = each.operand("tensor")
            if isinstance(number, Immediate) and number.value not in known:
                message = f"tensor {number.value} is not declared"
                yield placed(Severity.ERROR, "tensor", message, each.span, file, legal=legal, exit_code=1)


def _finding(found: LintFinding, severity: Severity, file: str) -> Finding:
    return placed(severity, found.rule, found.message, found.span, file, exit_code=int(severity is Severity.ERROR))
