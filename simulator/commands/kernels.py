"""Kernels in C and C++ as commands use them: C is compiled to bundles, C++ is compiled and executed.

No other module executes C++. The C compiler and the recorder are loaded once a kernel is named.
"""

from __future__ import annotations

import atexit
import json
import re
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from castsim.commands.option_parsers import (
    ASCENDC,
    CORE,
    HEADERS,
    LAUNCH,
    assignments,
    headers_of,
    macros_of,
    opaque_cycles,
    positive,
    refuse,
    run_limits_of,
    scalars_of,
)
from castsim.commands.outcome import CommandOutcome, plain, stacked, write_program
from castsim.execution.run_limits import Limits
from castsim.execution.synchronisation.race_findings import IGNORE
from castsim.isa.dataclass import replace
from castsim.isa.errors import ReadError
from castsim.isa.formats import Codes
from castsim.isa.reading import CPP_SUFFIXES, KERNEL_SUFFIX, Language, Source, read_bytes, read_source
from castsim.running.loaded import LoadedProgram, LoadRequest
from castsim.running.program_loading import load
from castsim.running.program_runs import run_loaded
from castsim.targets.description import with_options
from castsim.targets.loader import Target

if TYPE_CHECKING:
    from types import ModuleType

    from rich.console import RenderableType

    from castsim.cpp_recording.recording import CppRecording, Request
    from castsim.tpc_compiler.tpc_c.compiling import Compiled
    from castsim.tpc_compiler.tpc_c.launching import LaunchRequest


def launch_of(options: Namespace, *programs: str | None) -> LaunchRequest | None:
    """Return the launch that options describe; None if no program (default: the options' program) is a kernel.

    Raises:
        ReadError: an option cannot be read, or applies to other programs.
    """
    named = programs or (options.program,)
    if any(is_kernel(each) for each in named):
        return _launch_asked(options)
    refuse(options, LAUNCH, named[0], (KERNEL_SUFFIX,))
    if not any(str(each or "").endswith(CPP_SUFFIXES) for each in named):
        refuse(options, HEADERS, named[0], (KERNEL_SUFFIX, *CPP_SUFFIXES))
    return None


def is_kernel(program: str | None) -> bool:
    """Return whether the named program is a kernel in C."""
    return str(program or "").endswith(KERNEL_SUFFIX)


def _launch_asked(options: Namespace) -> LaunchRequest:
    from castsim.running.c_kernels import launch_request  # noqa: PLC0415 - loads the compiler

    return launch_request(
        assignments("--tensor", options.tensors),
        options.index_space,
        positive("--tpcs", options.tpcs) if options.tpcs else 1,
        options.accumulators,
        assignments("--in", getattr(options, "inputs", [])),
        macros_of(options),
        headers_of(options)[0],
    )


def _headers_asked(options: Namespace) -> LaunchRequest:
    from castsim.tpc_compiler.tpc_c.launching import LaunchRequest  # noqa: PLC0415 - loads the compiler

    return LaunchRequest(defines=macros_of(options), folders=headers_of(options)[0])


def compiled_of(options: Namespace, path: str) -> tuple[Source, Compiled]:
    """Return a kernel in C, compiled for the target in the options."""
    from castsim.running.c_kernels import compiled_kernel  # noqa: PLC0415 - loads the compiler

    source = read_source(Path(path), lambda: False)
    return source, compiled_kernel(source, LoadRequest(options.target, launch=_headers_asked(options)))


def bundles_of(options: Namespace, launch: LaunchRequest, arguments: Mapping[str, int | float]) -> Source:
    """Return the bundles of a kernel in C on its first engine as an assembly program.

    Raises:
        ReadError, IllegalError: see `castsim.running.c_kernels.load_kernel`.
    """
    from castsim.isa.tpc.parser import print_program  # noqa: PLC0415 - as below
    from castsim.running.c_kernels import load_kernel  # noqa: PLC0415 - loads the compiler

    changes = assignments("--option", options.options)
    request = LoadRequest(options.target, None, arguments, lambda target: with_options(target, changes), launch=launch)
    loaded = load_kernel(read_source(Path(options.program), lambda: False), request)
    return Source(f"{loaded.entry}.tpc", Language.ASSEMBLY, print_program(loaded.launch.engines[0]))


# Kernels in C++.

_CORE = re.compile(r"(\d{1,6})(?:/(\d{1,6}))?")


def is_cpp(program: str | None) -> bool:
    """Return whether the named program is a kernel in C++."""
    return program is not None and program.endswith(CPP_SUFFIXES)


def refuse_elsewhere(options: Namespace, *programs: str | None) -> None:
    """Reject options of kernels in C++ if no program is one.

    Raises:
        ReadError: such an option was given.
    """
    if not any(map(is_cpp, programs)):
        in_c = any(str(each or "").endswith(KERNEL_SUFFIX) for each in programs)
        refuse(options, CORE if in_c else CORE | HEADERS, programs[0], CPP_SUFFIXES)


def request_of(options: Namespace, program: str, limits: Limits | None = None) -> Request:
    """Return the recording request.

    Raises:
        ReadError: an option is wrong.
    """
    from castsim.cpp_recording.recording import Request  # noqa: PLC0415 - the recorder is for those who name a kernel

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
    found: dict[str, int | float] = {}

    def take(path: str, value: object) -> None:
        if isinstance(value, dict):
            for key, own in value.items():
                take(f"{path}.{key}", own)
        elif isinstance(value, list):
            for number, own in enumerate(value):
                take(f"{path}[{number}]", own)
        elif isinstance(value, int | float):
            found[path] = value
        else:
            raise ReadError(f"--tiling {name}: {path} is {json.dumps(value)[:40]}, not a number", legal=legal)

    if not isinstance(given, dict):
        raise ReadError(f"--tiling {name}: not an object", legal=legal)
    take("tiling", given)
    return found


def recorder_of(options: Namespace, program: str) -> ModuleType:
    """Return the package that records a kernel: AscendC's where its text includes `kernel_operator.h` alone.

    Raises:
        ReadError: the file cannot be read; an option of AscendC for another kernel.
    """
    from castsim.cpp_recording.host_compiler import INCLUDE, local_texts  # noqa: PLC0415 - as below

    path = Path(program)
    text = read_bytes(path, "program").decode("utf-8", "replace")
    names = [name for _, own in local_texts(path, text, headers_of(options)[0]) for name in INCLUDE.findall(own)]
    if "kernel_operator.h" in names and not any(name.startswith("pto/") for name in names):
        import castsim.ascendc as recorder  # noqa: PLC0415 - the recorder is for those who name a kernel
    else:
        refuse(options, ASCENDC, program, ("a kernel that includes kernel_operator.h",))
        import castsim.pto_cpp as recorder  # type: ignore[no-redef]  # noqa: PLC0415 - as above
    return recorder


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
    found = _CORE.fullmatch(text.strip())
    if found is None or (found[2] is not None and int(found[1]) >= int(found[2])):
        raise ReadError(f"{option} {text[:40]}: not a core number", legal=(f"{option} 0", f"{option} 3/8"))
    return int(found[1]), None if found[2] is None else int(found[2])


RunSource = Callable[[Namespace, Source], CommandOutcome]


def execute_cpp(options: Namespace, run: RunSource) -> CommandOutcome:
    """Record the kernel and run the recording.

    Raises:
        CastsimError, EngineError: see `castsim.pto_cpp.record` and `castsim.running.run`.
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
    options: Namespace, recordings: list[CppRecording], held: dict[str, Codes], run: RunSource
) -> CommandOutcome:
    """Run every core, the slowest last; it reads the memory that the others wrote, and its run is reported."""
    cycles = [_cycles(options, each) for each in recordings]
    longest = cycles.index(max(cycles))
    from tempfile import TemporaryDirectory  # noqa: PLC0415 - as above

    with TemporaryDirectory(prefix="castsim-cores-") as folder:
        for number, recording in enumerate(recordings):
            if number != longest and not options.timing_only:
                held |= _outputs(options, recording, held)
        named = [] if options.timing_only else as_files(_taken(recordings[longest], held), Path(folder))
        outcome = run(
            Namespace(**{**vars(options), "entry": None, "args": [], "inputs": named}), recordings[longest].source
        )  # fmt: skip
    cores = [{"block": number, "cycles": count} for number, count in enumerate(cycles)]
    told = ", ".join(f"{count}" for count in cycles)

    def text(width: int) -> RenderableType:
        if len(cores) == 1:
            return outcome.text(width)
        head = f"{len(cores)} cores; the longest, block {longest}, is shown. Cycles of each: {told}\n"
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


def _outputs(options: Namespace, recording: CppRecording, held: Mapping[str, Codes]) -> dict[str, Codes]:
    loaded, given = _loaded(options, recording), _taken(recording, held)
    return dict(run_loaded(loaded, given, engine=options.engine, races=IGNORE, limits=run_limits_of(options)).outputs)


def _taken(recording: CppRecording, held: Mapping[str, Codes]) -> dict[str, Codes]:
    """Return the arrays that a core reads and writes, each as large as the core needs."""
    sizes = recording.extents
    return {name: _padded(array, sizes[name]) for name, array in held.items() if name in sizes}


def as_files(arrays: Mapping[str, Codes], folder: Path) -> list[str]:
    """Write arrays to files, and return the `--in` values that name them."""
    for name, array in arrays.items():
        plain = np.ascontiguousarray(array)
        np.save(folder / f"{name}.npy", plain if plain.dtype.isbuiltin == 1 else plain.view(f"<u{plain.itemsize}"))
    return [f"{name}={folder / f'{name}.npy'}" for name in arrays]


def _padded(array: Codes, size: int) -> Codes:
    """Return an array as flat elements, padded to at least a given number."""
    flat = np.asarray(array).reshape(-1)
    return flat if flat.size >= size else np.concatenate([flat, np.zeros(size - flat.size, flat.dtype)])
