"""The execution of `castsim record`."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from castsim.commands.assembly_files import write_out
from castsim.commands.execution.cpp_kernels import is_cpp, request_of
from castsim.commands.option_values import statements_of
from castsim.commands.outcome import Outcome
from castsim.execution.limits import Limits
from castsim.isa.errors import ReadError
from castsim.pto_cpp import record

if TYPE_CHECKING:
    from rich.console import RenderableType


def execute(options: Namespace) -> Outcome:
    """Compile and execute the kernel, and write what it did.

    Raises:
        CastsimError, EngineError: as `castsim.pto_cpp.record`, and for what was typed.
    """
    if not is_cpp(options.program):
        raise ReadError(f"'{options.program}' is no kernel in C++", legal=("KERNEL.cpp",))
    (recording,) = record(request_of(options, options.program, Limits(statements_of(options))))
    written = recording.pto_text()
    path = write_out(options.out, written.encode(), options.program)
    statements = len(recording.program.functions[0].body or ())
    document = {"program": options.program, "blocks": recording.blocks, "statements": statements, "text": written}

    def text(_width: int) -> RenderableType:
        from rich.text import Text  # noqa: PLC0415 - rich, only if printed

        return Text(written.rstrip() if path is None else f"{statements} statements written to {path}")

    return Outcome(document, text)
