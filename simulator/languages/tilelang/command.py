"""TileLang kernels as `run` and `expand` take them: the command line names FILE.py:FUNCTION, and the file is executed.

No other module executes one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from castsim.commands.kernels import KernelOptions
from castsim.commands.outcome import CommandOutcome
from castsim.commands.run_views import RunOutputs
from castsim.execution.input_data import ArgumentUse, from_memory, make_inputs, read_input
from castsim.isa.dataclass import replace
from castsim.isa.errors import ReadError
from castsim.isa.formats import Codes
from castsim.languages.tilelang import programs, running
from castsim.languages.tilelang.programs import LoweredKernel, TirProgram, functions_of, lowered_of
from castsim.running.languages import TILELANG_FORM
from castsim.running.loaded import Inputs
from castsim.running.program_loading import load
from castsim.running.program_runs import Result, RunConfig
from castsim.running.synchronisation.race_findings import STOP

RunSource = Callable[..., CommandOutcome]


ALL_CORES = "all"


def kernel_of(config: RunConfig, kernel: KernelOptions) -> TirProgram:
    """Execute the file that a command names, and return its function's kernel as a program of one core.

    Arguments (`--arg`) that the function takes are passed to it; others are dimensions of the kernel, which the shapes
    of input files also define.

    Raises:
        CastsimError: see `lowered_of` and `converted` in `castsim.languages.tilelang.programs`.
    """
    lowered, given, dims = _asked(config, scheduled=not kernel.unscheduled)
    return running.program_for(lowered, _core(kernel.core), given, dims)


def _asked(config: RunConfig, *, scheduled: bool) -> tuple[LoweredKernel, dict[str, Codes], dict[str, float]]:
    """Return the kernel, the arrays from files, and the dimensions from options."""
    program = config.program
    named = TILELANG_FORM.fullmatch(program)
    if named is None or not named[2]:
        names = functions_of(Path(program.rstrip(":")))
        legal = [f"{program.rstrip(':')}:{name}" for name in names or ("FUNCTION",)]
        raise ReadError(f"{program}: several functions could make the kernel; name one", legal=legal)
    lowered, taken = lowered_of(Path(named[1]), named[2], dict(config.args), scheduled)
    read = {name: _array(name, given) for name, given in config.inputs.items()}
    arrays = {name: array for name, array in read.items() if array is not None}
    return lowered, arrays, {name: value for name, value in config.args.items() if name not in taken}


def _array(name: str, given: Codes | str) -> Codes | None:
    """Return an input from a file; drawn inputs have the sizes that the program requires."""
    if not isinstance(given, str):
        return given
    return None if given.partition(":")[0] in ("zeros", "random") else read_input(given, name)


def _core(text: str | None) -> int:
    if text is not None and not text.isdecimal():
        raise ReadError(f"--core {text[:40]}: not a core", legal=("--core 0", "--core all with run"))
    return int(text or 0)


def execute_run(config: RunConfig, kernel: KernelOptions, outputs: RunOutputs, run: RunSource) -> CommandOutcome:
    """Build the kernel and run it; if the source states cycles of vector functions, the report shows both.

    Raises:
        CastsimError, EngineError: see `kernel_of` and `castsim.run`.
    """
    if outputs.all_entries or config.entry is not None:
        raise ReadError("--entry applies only to .pto files", legal=("KERNEL.py:FUNCTION",))
    if kernel.core == ALL_CORES:
        if config.options:
            raise ReadError("--core all takes no options of the target", legal=("--core N",))
        return _on_all(config, outputs, run, scheduled=not kernel.unscheduled)
    return _reported(config, outputs, kernel_of(config, kernel), run)


def _reported(
    config: RunConfig,
    outputs: RunOutputs,
    converted: TirProgram,
    run: RunSource,
    settle: Callable[[Result], Result] = lambda result: result,
) -> CommandOutcome:
    """Run a program on one core; `settle` chooses the contents of the report."""
    seen: list[Result] = []
    settled = replace(config, args={}, program=converted.file, source=converted.source())

    def see(result: Result) -> Result:
        seen.append(settle(result))
        return seen[-1]

    outcome = run(settled, outputs, see)

    def text(width: int) -> RenderableType:
        return Group(outcome.text(width), *(table for result in seen for table in _functions(result, converted)))

    return replace(outcome, text=text)


def _on_all(config: RunConfig, outputs: RunOutputs, run: RunSource, *, scheduled: bool) -> CommandOutcome:
    """Run every core; report the slowest, with the stores of all cores."""
    lowered, given, dims = _asked(config, scheduled=scheduled)
    if not config.timing_only:
        given = _drawn(lowered, given, dims, config.inputs)
    runs = running.run_lowered(
        lowered, given, ALL_CORES, dims, target=config.target, timing_only=config.timing_only, engine=config.engine,
        races=config.races or STOP,
    )  # fmt: skip

    def settle(result: Result) -> Result:
        uses = result.loaded.executed.arguments
        stored = {name: array for name, array in runs.outputs.items() if name in uses}
        return replace(result, outputs={name: _codes(array, uses[name]) for name, array in stored.items()})

    shown = (lambda result: result) if config.timing_only else settle
    outcome = _reported(replace(config, inputs=given), outputs, runs.programs[runs.longest], run, shown)
    cycles = [None if core_result.untimed else core_result.cycles for core_result in runs.results]
    timed = None not in cycles
    head = f"{len(cycles)} cores, whose outputs are put together; core {runs.longest} is shown\n"
    if timed:
        counts = ", ".join(map(str, cycles))
        head = f"{len(cycles)} cores; the longest, core {runs.longest}, is shown. Cycles of each: {counts}\n"
    cores = {"cores": [{"block": number, "cycles": count} for number, count in enumerate(cycles)]} if timed else {}

    def text(width: int) -> RenderableType:
        return Group(Text(head), outcome.text(width)) if len(cycles) > 1 else outcome.text(width)

    return replace(outcome, document={**outcome.document, **cores}, text=text)


def _codes(array: NDArray[Any], use: ArgumentUse) -> Codes:
    return from_memory(
        np.frombuffer(array.tobytes(), np.uint8), ArgumentUse(use.format, array.size, shapes={array.shape})
    )


def _drawn(
    lowered: LoweredKernel, given: Mapping[str, Codes], dims: Mapping[str, float], specifications: Inputs
) -> dict[str, Codes]:
    """Return arrays with the drawn ones (`random:SEED`, `zeros`) filled in, the same for all cores."""
    bound = programs.bind(lowered, given, dims)
    used = load(programs.converted(lowered, 0, programs.used_numbers(bound)).source(), None, None, {}).arguments
    shapes = {
        array.name: programs.extent_of(bound, array)[0]
        for array in lowered.arrays
        if not isinstance(array, str)
        and array.name in specifications
        and array.name not in given
        and array.name in used
    }
    uses = {
        name: ArgumentUse(use.format, prod(shapes[name]), shapes={shapes[name]}, viewed=prod(shapes[name]))
        for name, use in used.items()
        if name in shapes
    }
    return {**given, **make_inputs({name: str(specifications[name]) for name in uses}, uses)}


def _functions(result: Result, converted: TirProgram) -> list[RenderableType]:
    """Return the table of vector functions whose cycles the source states; empty if there are none."""
    rows = [row for row in running.function_cycles(result, converted) if row.latency]
    if not rows:
        return []
    table = Table("vector function", "launches", "cycles each", "latency=", box=None, header_style="")
    for row in rows:
        mean = f"{row.cycles / row.launches:,.0f}" if row.launches else ""
        table.add_row(Path(row.place).name, str(row.launches), mean, f"{row.latency:,}")
    return [Text("\nvector functions whose source gives a measured latency"), table]
