"""What is wrong with a kernel in C: syntax, types, what the generation lacks."""

from __future__ import annotations

from collections.abc import Iterator

from castsim.checking.finding import Finding, Severity, of_error, of_errors, placed
from castsim.isa.errors import CastsimError
from castsim.isa.sources import Source
from castsim.running.c_kernels import compiled_kernel
from castsim.running.request import LoadRequest
from castsim.tpc_c.launching import LaunchRequest, sequential


def kernel_findings(source: Source, request: LoadRequest) -> Iterator[Finding]:
    """Yield what is wrong with a kernel; what cannot run and is C all the same is a warning."""
    try:
        compiled = compiled_kernel(source, request)
        sequential(compiled, LaunchRequest(), {})
    except CastsimError as error:
        yield from of_errors(error, source.file)
        return
    for each in compiled.blocked:
        found = of_error(each, source.file)
        yield placed(Severity.WARNING, "not run", found.message, each.span, source.file, legal=found.legal)
    for text, span in compiled.notes.items():
        yield placed(Severity.NOTE, "kernel", text, span, source.file)
