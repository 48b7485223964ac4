"""The execution of `castsim record`."""

from __future__ import annotations

from argparse import Namespace

from rich.console import RenderableType
from rich.text import Text

from castsim.commands.assembly_files import write_out
from castsim.commands.execution.cpp_kernels import is_cpp, recording_of
from castsim.commands.option_parsers import statements_of
from castsim.commands.outcome import Outcome
from castsim.execution.run_limits import Limits
from castsim.isa.errors import ReadError
from castsim.reports.documents import json_of


def execute(options: Namespace) -> Outcome:
    """Compile and execute the kernel, and write what it did.

    Raises:
        CastsimError, EngineError: as `castsim.pto_cpp.record`, and for what was typed.
    """
    if not is_cpp(options.program):
        raise ReadError(f"'{options.program}' is no kernel in C++", legal=("KERNEL.cpp",))
    recording = recording_of(options, Limits(statements_of(options)))
    written = recording.pto_text()
    path = write_out(options.out, written.encode(), options.program)
    statements = len(recording.program.functions[0].body or ())
    document = {
        "program": options.program,
        "blocks": recording.blocks,
        "statements": statements,
        "text": written,
        "output": json_of(path),
    }

    def text(_width: int) -> RenderableType:
        return Text(written.rstrip() if path is None else f"{statements} statements written to {path}")

    return Outcome(document, text)
