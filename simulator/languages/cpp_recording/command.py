"""The command `record`: run a PTO C++ kernel, and save its actions as a .pto program."""

from __future__ import annotations

from argparse import Namespace
from typing import Annotated

from rich.text import Text

from castsim.commands.kernels import KernelOptions, is_cpp, run_config_of
from castsim.commands.option_parsers import options_as
from castsim.commands.outcome import CommandOutcome, write_out
from castsim.isa.errors import ReadError
from castsim.languages.cpp_recording.kernels import recording_of
from castsim.reports.documents import CommandDocument, json_of, says


class Recorded(CommandDocument, name="record"):
    """A kernel in C++ as a `.pto` program of its recorded operations."""

    program: str = says("The kernel.")
    blocks: Annotated[int, ("minimum", 1)] = says("The number of cores that the kernel sees.")
    statements: Annotated[int, ("minimum", 0)] = says("Number of statements in the function of the program.")
    text: str = says("The program.")
    output: str | None = says("The output file; null if none was written.")


def execute(options: Namespace) -> CommandOutcome:
    """Compile and execute the kernel, and write the recorded program.

    Raises:
        CastsimError, EngineError: see `castsim.languages.pto_cpp.record`; also for a wrong option.
    """
    if not is_cpp(options.program):
        raise ReadError(f"'{options.program}' is not a C++ kernel", legal=("KERNEL.cpp",))
    recording = recording_of(run_config_of(options, options.program), options_as(KernelOptions, options))
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

    return CommandOutcome(
        document,
        lambda _width: Text(
            written.rstrip() if path is None else f"{statements} statements written to {path}",
            no_wrap=path is None,
            overflow="ignore",
        ),
    )
