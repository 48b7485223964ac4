"""Kernels of TileLang as `run` and `expand` take them: FILE.py:FUNCTION on their line, and the file is executed.

Nothing else executes one.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from castsim.commands.execution.kernel_options import TILELANG
from castsim.commands.option_values import assignments, scalar
from castsim.commands.outcome import Outcome
from castsim.execution.inputs import read_input
from castsim.isa.codes import Codes
from castsim.isa.errors import ReadError
from castsim.isa.sources import Source
from castsim.running import Result

if TYPE_CHECKING:
    from castsim.tilelang.programs import Converted

RunSource = Callable[..., Outcome]


def kernel_of(options: Namespace, program: str) -> Converted:
    """Execute the file that a command names, and return what its function makes as a program of one core.

    Arguments (`--arg`) that the function takes are its own; others are dimensions of the kernel, which the shapes of
    inputs from files give too.

    Raises:
        CastsimError: as `castsim.tilelang.lowering.lowered_of` and `castsim.tilelang.programs.converted`.
    """
    named = TILELANG.fullmatch(program)
    if named is None or not named[2]:
        raise ReadError(f"{program}: which function makes the kernel?", legal=(f"{program.rstrip(':')}:FUNCTION",))
    lowering, running = import_module("castsim.tilelang.lowering"), import_module("castsim.tilelang.running")
    args = {name: scalar(name, text) for name, text in assignments("--arg", options.args).items()}
    lowered, taken = lowering.lowered_of(Path(named[1]), named[2], args, not options.unscheduled)
    arrays = {name: _array(name, text) for name, text in assignments("--in", getattr(options, "inputs", [])).items()}
    given = {name: array for name, array in arrays.items() if array is not None}
    dims = {name: value for name, value in args.items() if name not in taken}
    found: Converted = running.program_for(lowered, _core(options.core), given, dims)
    return found


def _array(name: str, text: str) -> Codes | None:
    """Return an input of a file; those that are drawn have the sizes that the program asks for."""
    return None if text.partition(":")[0] in ("zeros", "random") else read_input(text, name)


def _core(text: str | None) -> int:
    if text is not None and not text.isdecimal():
        raise ReadError(f"--core {text[:40]}: not a core", legal=("--core 0", 'castsim.tilelang.run(..., core="all")'))
    return int(text or 0)


def execute_tilelang(options: Namespace, run: RunSource) -> Outcome:
    """Make the kernel and run it; what the source says of its vector functions' cycles stands beside them.

    Raises:
        CastsimError, EngineError: as `kernel_of` and `castsim.running.run`.
    """
    if options.all_entries or options.entry is not None:
        raise ReadError("--entry is about .pto files", legal=("KERNEL.py:FUNCTION",))
    converted = kernel_of(options, options.program)
    seen: list[Result] = []
    settled = Namespace(**{**vars(options), "args": [], "program": converted.file})
    outcome = run(settled, source_of(converted), seen.append)

    def text(width: int) -> RenderableType:
        return Group(outcome.text(width), *(table for result in seen for table in _functions(result, converted)))

    return replace(outcome, text=text)


def source_of(converted: Converted) -> Source:
    """Return a kernel as castsim loads it."""
    return converted.source()


def _functions(result: Result, converted: Converted) -> list[RenderableType]:
    """Return the table of vector functions for which the source names cycles; nothing if it does for none."""
    rows = [row for row in import_module("castsim.tilelang.running").function_cycles(result, converted) if row.latency]
    if not rows:
        return []
    table = Table("vector function", "launches", "cycles each", "latency=", box=None, header_style="")
    for row in rows:
        each = f"{row.cycles / row.launches:,.0f}" if row.launches else ""
        table.add_row(Path(row.place).name, str(row.launches), each, f"{row.latency:,}")
    return [Text("\nvector functions whose source gives a measured latency"), table]
