"""Kernels in C++ as commands use them: each is compiled and executed, and what it does is recorded as a program.

No other module executes C++. The compiler and the recorder are loaded once a kernel is named.
"""

from __future__ import annotations

import atexit
import json
import re
from argparse import Namespace
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from castsim.commands.kernels import as_files
from castsim.commands.option_parsers import (
    ASCENDC,
    assignments,
    headers_of,
    opaque_cycles,
    refuse,
    run_limits_of,
    scalars_of,
)
from castsim.commands.outcome import CommandOutcome, plain, stacked, write_program
from castsim.execution.run_limits import Limits
from castsim.isa.dataclass import replace
from castsim.isa.errors import ReadError
from castsim.isa.formats import Codes
from castsim.isa.reading import Language, Source, read_bytes
from castsim.running.loaded import LoadedProgram
from castsim.running.program_loading import load
from castsim.running.program_runs import run_loaded
from castsim.running.synchronisation.race_findings import IGNORE
from castsim.targets.description import with_options
from castsim.targets.loader import Target

if TYPE_CHECKING:
    from types import ModuleType

    from rich.console import RenderableType

    from castsim.languages.cpp_recording.recording import CppRecording, Request


_CORE = re.compile(r"(\d{1,6})(?:/(\d{1,6}))?")


def request_of(options: Namespace, program: str, limits: Limits | None = None) -> Request:
    """Return the recording request.

    Raises:
        ReadError: an option is wrong.
    """
    from castsim.languages.cpp_recording.recording import Request  # noqa: PLC0415 - the recorder is for those who name a kernel

    changes = assignments("--option", options.options)
    block, blocks = _core("--block", options.block)
    sub, subs = _core("--sub", options.sub)
    given = options.auto_sync or "on"
    if given not in ("on", "off"):
        raise ReadError(f"--auto-sync {given[:40]}: not a choice", legal=("on", "off"))
    return Request(
        Path(program), options.entry,
        {**(_tiling_of(options.tiling) if options.tiling else {}), **scalars_of(options)},
        assignments("--in", options.inputs), options.target, lambda target: with_options(target, changes), block,
        blocks, sub, subs or 1, *headers_of(options), options.tiling_struct, given == "on",
        run_limits_of(options) if limits is None else limits,
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


def recorder_of(options: Namespace, program: str) -> ModuleType:
    """Return the package that records a kernel: AscendC's where its text includes `kernel_operator.h` alone.

    Raises:
        ReadError: the file cannot be read; an option of AscendC for another kernel.
    """
    from castsim.languages.cpp_recording.host_compiler import INCLUDE, local_texts  # noqa: PLC0415 - as below

    path = Path(program)
    text = read_bytes(path, "program").decode("utf-8", "replace")
    names = [name for _, own in local_texts(path, text, headers_of(options)[0]) for name in INCLUDE.findall(own)]
    if "kernel_operator.h" in names and not any(name.startswith("pto/") for name in names):
        return import_module("castsim.languages.ascendc")
    refuse(options, ASCENDC, program, ("a kernel that includes kernel_operator.h",))
    return import_module("castsim.languages.pto_cpp")


def recording_of(options: Namespace, limits: Limits | None = None) -> CppRecording:
    """Compile and execute the kernel that a command names, on the core that it asks for."""
    return _recorded(options, request_of(options, options.program, limits))


def side_of(
    options: Namespace,
    program: str,
    entry: str | None,
    target: str | Path | Target | None,
    prepare: Callable[[Target], Target],
) -> CppRecording:
    """Compile and execute the kernel that is one side of a comparison."""
    return _recorded(options, replace(request_of(options, program), entry=entry, target=target, prepare=prepare))


def _recorded(options: Namespace, request: Request) -> CppRecording:
    recording: CppRecording = recorder_of(options, str(request.file)).record(request)[0]
    return recording


def as_text(recording: CppRecording) -> Source:
    """Return a recording as program text, for commands that change the text."""
    return Source(f"{recording.request.file.stem}.pto", Language.TILES, recording.pto_text())


def without_arguments(options: Namespace, recording: CppRecording) -> Namespace:
    """Return the options of a command for a recorded kernel: its entry and scalars are fixed.

    Files for the members of an array of arguments become separate files until the command ends.
    """
    inputs = [f"{name}={given}" for name, given in recording.inputs.items() if isinstance(given, str)]
    arrays = {name: np.asarray(given) for name, given in recording.inputs.items() if not isinstance(given, str)}
    if arrays:
        from tempfile import TemporaryDirectory  # noqa: PLC0415 - few kernels are in C++

        folder = TemporaryDirectory(prefix="castsim-arguments-")
        atexit.register(folder.cleanup)
        inputs += as_files(arrays, Path(folder.name))
    return Namespace(**{**vars(options), "entry": None, "args": [], "inputs": inputs})


def _core(option: str, text: str | None) -> tuple[int, int | None]:
    if text is None:
        return 0, None
    match = _CORE.fullmatch(text.strip())
    if match is None or (match[2] is not None and int(match[1]) >= int(match[2])):
        raise ReadError(f"{option} {text[:40]}: not a core number", legal=(f"{option} 0", f"{option} 3/8"))
    return int(match[1]), None if match[2] is None else int(match[2])


RunSource = Callable[[Namespace, Source], CommandOutcome]


def execute_run(options: Namespace, run: RunSource) -> CommandOutcome:
    """Record the kernel and run the recording.

    Raises:
        CastsimError, EngineError: see `castsim.languages.pto_cpp.record` and `castsim.run`.
    """
    if options.all_entries:
        raise ReadError("--all-entries applies only to .pto files", legal=("--entry F",))
    if not options.all_blocks:
        recording = recording_of(options)
        if options.emit_sync is not None and recording.of_instructions:
            write_program(Path(options.emit_sync), recording.pto_text())
            options = Namespace(**{**vars(options), "emit_sync": None})
        return run(without_arguments(options, recording), recording.source)
    recordings, inputs = recorder_of(options, options.program).record_all(request_of(options, options.program))
    return _on_all(options, recordings, dict(inputs), run)


def _on_all(
    options: Namespace, recordings: list[CppRecording], arrays: dict[str, Codes], run: RunSource
) -> CommandOutcome:
    """Run every core, the slowest last; it reads the memory that the others wrote, and its run is reported."""
    cycles = [_cycles(options, core_recording) for core_recording in recordings]
    longest = cycles.index(max(cycles))
    from tempfile import TemporaryDirectory  # noqa: PLC0415 - as above

    with TemporaryDirectory(prefix="castsim-cores-") as folder:
        for number, recording in enumerate(recordings):
            if number != longest and not options.timing_only:
                arrays |= _outputs(options, recording, arrays)
        named = [] if options.timing_only else as_files(_taken(recordings[longest], arrays), Path(folder))
        outcome = run(
            Namespace(**{**vars(options), "entry": None, "args": [], "inputs": named}), recordings[longest].source
        )  # fmt: skip
    cores = [{"block": number, "cycles": count} for number, count in enumerate(cycles)]
    counts = ", ".join(f"{count}" for count in cycles)

    def text(width: int) -> RenderableType:
        if len(cores) == 1:
            return outcome.text(width)
        head = f"{len(cores)} cores; the longest, block {longest}, is shown. Cycles of each: {counts}\n"
        return stacked(plain(f"{head}\n", no_wrap=False), outcome.text(width))

    return replace(outcome, document={**outcome.document, "cores": cores}, text=text)


def _cycles(options: Namespace, recording: CppRecording) -> int:
    loaded = _loaded(options, recording)
    return run_loaded(
        loaded, recording.arrays, engine=options.engine, races=IGNORE, timing_only=loaded.tree is not None
    ).cycles


def _loaded(options: Namespace, recording: CppRecording) -> LoadedProgram:
    request = recording.request
    return load(
        recording.source, request.target, None, {}, request.prepare, opaque=opaque_cycles(options.opaque),
        limits=run_limits_of(options),
    )  # fmt: skip


def _outputs(options: Namespace, recording: CppRecording, arrays: Mapping[str, Codes]) -> dict[str, Codes]:
    loaded, given = _loaded(options, recording), _taken(recording, arrays)
    return dict(run_loaded(loaded, given, engine=options.engine, races=IGNORE, limits=run_limits_of(options)).outputs)


def _taken(recording: CppRecording, arrays: Mapping[str, Codes]) -> dict[str, Codes]:
    """Return the arrays that a core reads and writes, each as large as the core needs."""
    sizes = recording.extents
    return {name: _padded(array, sizes[name]) for name, array in arrays.items() if name in sizes}


def _padded(array: Codes, size: int) -> Codes:
    """Return an array as flat elements, padded to at least a given number."""
    flat = np.asarray(array).reshape(-1)
    return flat if flat.size >= size else np.concatenate([flat, np.zeros(size - flat.size, flat.dtype)])
