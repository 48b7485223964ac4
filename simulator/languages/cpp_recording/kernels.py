"""Kernels in C++ as commands use them: each is compiled and executed, and what it does is recorded as a program.

No other module executes C++. The compiler and the recorder are loaded once a kernel is named.
"""

from __future__ import annotations

import json
import re
from argparse import Namespace
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from castsim.commands.kernels import KernelOptions, is_cpp, run_config_of
from castsim.commands.option_parsers import options_as, refuse
from castsim.commands.outcome import CommandOutcome, plain, stacked, write_out, write_program
from castsim.commands.run_views import RunOutputs
from castsim.execution.run_limits import MAX_CYCLES
from castsim.isa.dataclass import replace
from castsim.isa.errors import ReadError
from castsim.isa.formats import Codes
from castsim.isa.reading import Language, Source, read_bytes
from castsim.reports.documents import CommandDocument, record, says
from castsim.running.loaded import Inputs
from castsim.running.program_runs import RunConfig
from castsim.running.synchronisation.race_findings import IGNORE
from castsim.targets.loader import Target

if TYPE_CHECKING:
    from types import ModuleType

    from rich.console import RenderableType

    from castsim.languages.cpp_recording.recording import CppRecording, Request


_CORE = re.compile(r"(\d{1,6})(?:/(\d{1,6}))?")


def request_of(config: RunConfig, kernel: KernelOptions, prepare: Callable[[Target], Target] | None = None) -> Request:
    """Return the recording request; `prepare` replaces the target options of the run.

    Raises:
        ReadError: an option is wrong.
    """
    from castsim.languages.cpp_recording.recording import Request  # noqa: PLC0415 - the recorder is for those who name a kernel

    block, blocks = _core("--block", kernel.block)
    sub, subs = _core("--sub", kernel.sub)
    given = kernel.auto_sync or "on"
    if given not in ("on", "off"):
        raise ReadError(f"--auto-sync {given[:40]}: not a choice", legal=("on", "off"))
    return Request(
        Path(config.program), config.entry, {**(_tiling_of(kernel.tiling) if kernel.tiling else {}), **config.args},
        config.inputs, config.target, prepare or config.prepared, block, blocks, sub, subs or 1,
        kernel.header_folders(), kernel.macros, kernel.tiling_struct, given == "on", config.limits,
    )  # fmt: skip


def _tiling_of(name: str) -> dict[str, int | float]:
    """Return the fields that a JSON file gives, as arguments: `tiling.f`, `tiling.a.b`, `tiling.list[3]`.

    Raises:
        ReadError: it cannot be read, or is no object of numbers.
    """
    legal = ('{"total": 4096, "scale": 0.5, "list": [1, 2]}',)
    try:
        given = json.loads(read_bytes(Path(name), "tiling").decode("utf-8"))
    except ValueError as error:
        raise ReadError(f"--tiling {name}: {error}", legal=legal) from None
    values: dict[str, int | float] = {}

    def take(path: str, value: object) -> None:
        if isinstance(value, dict):
            for key, own in value.items():
                take(f"{path}.{key}", own)
        elif isinstance(value, list):
            for number, own in enumerate(value):
                take(f"{path}[{number}]", own)
        elif isinstance(value, int | float):
            values[path] = value
        else:
            raise ReadError(f"--tiling {name}: {path} is {json.dumps(value)[:40]}, not a number", legal=legal)

    if not isinstance(given, dict):
        raise ReadError(f"--tiling {name}: not an object", legal=legal)
    take("tiling", given)
    return values


def recorder_of(program: str, kernel: KernelOptions) -> ModuleType:
    """Return the package that records a kernel: AscendC's where its text includes `kernel_operator.h` alone.

    Raises:
        ReadError: the file cannot be read; an option of AscendC for another kernel.
    """
    from castsim.languages.cpp_recording.host_compiler import INCLUDE, local_texts  # noqa: PLC0415 - as below

    path = Path(program)
    text = read_bytes(path, "program").decode("utf-8", "replace")
    names = [name for _, own in local_texts(path, text, kernel.header_folders()) for name in INCLUDE.findall(own)]
    if "kernel_operator.h" in names and not any(name.startswith("pto/") for name in names):
        return import_module("castsim.languages.ascendc")
    refuse(kernel.ascendc, program, ("a kernel that includes kernel_operator.h",))
    return import_module("castsim.languages.pto_cpp")


def recording_of(
    config: RunConfig, kernel: KernelOptions, prepare: Callable[[Target], Target] | None = None
) -> CppRecording:
    """Compile and execute a kernel on the core that `kernel` names; `prepare` as in `request_of`."""
    request = request_of(config, kernel, prepare)
    recording: CppRecording = recorder_of(config.program, kernel).record(request)[0]
    return recording


def as_text(recording: CppRecording) -> Source:
    """Return a recording as program text, for commands that change the text."""
    return Source(f"{recording.request.file.stem}.pto", Language.TILES, recording.pto_text())


def settled(config: RunConfig, recording: CppRecording, inputs: Inputs) -> RunConfig:
    """Return the run of a recording: its entry and scalars are fixed."""
    return replace(config, source=recording.source, entry=None, args={}, inputs=inputs)


def _core(option: str, text: str | None) -> tuple[int, int | None]:
    if text is None:
        return 0, None
    match = _CORE.fullmatch(text.strip())
    if match is None or (match[2] is not None and int(match[1]) >= int(match[2])):
        raise ReadError(f"{option} {text[:40]}: not a core number", legal=(f"{option} 0", f"{option} 3/8"))
    return int(match[1]), None if match[2] is None else int(match[2])


RunSource = Callable[[RunConfig, RunOutputs], CommandOutcome]


def execute_run(config: RunConfig, kernel: KernelOptions, outputs: RunOutputs, run: RunSource) -> CommandOutcome:
    """Record the kernel and run the recording.

    Raises:
        CastsimError, EngineError: see `castsim.languages.pto_cpp.record` and `castsim.run`.
    """
    if outputs.all_entries:
        raise ReadError("--all-entries applies only to .pto files", legal=("--entry F",))
    if not kernel.all_blocks:
        recording = recording_of(config, kernel)
        if outputs.emit_sync is not None and recording.of_instructions:
            write_program(Path(outputs.emit_sync), recording.pto_text())
            outputs = replace(outputs, emit_sync=None)
        return run(settled(config, recording, recording.inputs), outputs)
    recordings, inputs = recorder_of(config.program, kernel).record_all(request_of(config, kernel))
    return _on_all(config, outputs, recordings, dict(inputs), run)


def _on_all(
    config: RunConfig, outputs: RunOutputs, recordings: list[CppRecording], arrays: dict[str, Codes], run: RunSource
) -> CommandOutcome:
    """Run every core, the slowest last; it reads the memory that the others wrote, and its run is reported."""
    runs = [
        replace(settled(config, recording, {}), races=IGNORE, max_cycles=MAX_CYCLES, skip=True, stale_reads=None)
        for recording in recordings
    ]
    cycles = [_cycles(core_run, recording) for core_run, recording in zip(runs, recordings, strict=True)]
    longest = cycles.index(max(cycles))
    if not config.timing_only:
        for number, (core_run, recording) in enumerate(zip(runs, recordings, strict=True)):
            if number != longest:
                given = replace(core_run, inputs=_taken(recording, arrays))
                arrays |= given.run(given.load()).outputs
    inputs = {} if config.timing_only else _taken(recordings[longest], arrays)
    outcome = run(settled(config, recordings[longest], inputs), outputs)
    cores = [{"block": number, "cycles": count} for number, count in enumerate(cycles)]
    counts = ", ".join(f"{count}" for count in cycles)

    def text(width: int) -> RenderableType:
        if len(cores) == 1:
            return outcome.text(width)
        head = f"{len(cores)} cores; the longest, block {longest}, is shown. Cycles of each: {counts}\n"
        return stacked(plain(f"{head}\n", no_wrap=False), outcome.text(width))

    return replace(outcome, document={**outcome.document, "cores": cores}, text=text)


def _cycles(core_run: RunConfig, recording: CppRecording) -> int:
    loaded = core_run.load()
    return replace(core_run, inputs=recording.arrays, timing_only=loaded.tree is not None).run(loaded).cycles


def _taken(recording: CppRecording, arrays: Mapping[str, Codes]) -> dict[str, Codes]:
    """Return the arrays that a core reads and writes, each as large as the core needs."""
    sizes = recording.extents
    return {name: _padded(array, sizes[name]) for name, array in arrays.items() if name in sizes}


def _padded(array: Codes, size: int) -> Codes:
    """Return an array as flat elements, padded to at least a given number."""
    flat = np.asarray(array).reshape(-1)
    return flat if flat.size >= size else np.concatenate([flat, np.zeros(size - flat.size, flat.dtype)])


# The command `record`.


@record
class Recorded(CommandDocument, name="record"):
    """A kernel in C++ as a `.pto` program of its recorded operations."""

    program: str = says("The kernel.")
    blocks: Annotated[int, ("minimum", 1)] = says("The number of cores that the kernel sees.")
    statements: Annotated[int, ("minimum", 0)] = says("Number of statements in the function of the program.")
    text: str = says("The program.")
    output: Path | None = says("The output file; null if none was written.")


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
    document = Recorded(options.program, recording.blocks, statements, written, path).as_json()
    shown = written.rstrip() if path is None else f"{statements} statements written to {path}"
    return CommandOutcome(document, lambda _: plain(shown, no_wrap=path is None))
