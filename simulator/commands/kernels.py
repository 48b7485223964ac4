"""Kernels in C++ as `run`, `record`, `advise`, `diff` and `debug` take them: named on their line, and executed.

Nothing else compiles or executes one.
"""

from __future__ import annotations

import re
import tempfile
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from castsim.commands.option_parsers import (
    CORE,
    HEADERS,
    LAUNCH,
    assignments,
    headers_of,
    opaque_cycles,
    refuse,
    run_limits_of,
    scalars_of,
)
from castsim.commands.outcome import CommandOutcome, plain, stacked
from castsim.execution.run_limits import Limits
from castsim.execution.synchronisation.race_findings import IGNORE
from castsim.isa.codes import Codes
from castsim.isa.errors import ReadError
from castsim.isa.sources import CPP_SUFFIXES, KERNEL_SUFFIX, Language, Source
from castsim.running import LoadedProgram, load, run_loaded
from castsim.targets import Target
from castsim.targets.options import with_options

if TYPE_CHECKING:
    from rich.console import RenderableType

    from castsim.pto_cpp import CppRecording, Request
    from castsim.tpc_compiler.tpc_c.launching import LaunchRequest


def launch_of(options: Namespace, *programs: str | None) -> LaunchRequest | None:
    """Return the launch that options describe; None where none of the programs (default: that of options) is a kernel.

    Raises:
        ReadError: an option that cannot be read, or that is given for another program.
    """
    named = programs or (options.program,)
    if any(is_kernel(each) for each in named):
        found: LaunchRequest = _compiler().launch_asked(options)
        return found
    refuse(options, LAUNCH, named[0], (KERNEL_SUFFIX,))
    if not any(str(each or "").endswith(CPP_SUFFIXES) for each in named):
        refuse(options, HEADERS, named[0], (KERNEL_SUFFIX, *CPP_SUFFIXES))
    return None


def is_kernel(program: str | None) -> bool:
    """Whether a program that was named is a kernel in C."""
    return str(program or "").endswith(KERNEL_SUFFIX)


def bundles_of(options: Namespace, launch: LaunchRequest, arguments: Mapping[str, int | float]) -> Source:
    """Return the bundles of a kernel on its first engine as a program in assembly.

    Raises:
        ReadError, IllegalError: as `castsim.running.c_kernels.load_kernel`.
    """
    found: Source = _compiler().bundles_asked(options, launch, arguments)
    return found


def _compiler() -> ModuleType:
    """Return the commands' part that loads the compiler, which is loaded once a kernel is named."""
    from castsim.commands import kernels_in_c  # noqa: PLC0415 - as said

    return kernels_in_c


_CORE = re.compile(r"(\d{1,6})(?:/(\d{1,6}))?")


def is_cpp(program: str | None) -> bool:
    """Whether a program that was named is a kernel in C++."""
    return program is not None and program.endswith(CPP_SUFFIXES)


def refuse_elsewhere(options: Namespace, *programs: str | None) -> None:
    """Reject options of kernels in C++ where no program is one.

    Raises:
        ReadError: one was given.
    """
    if not any(map(is_cpp, programs)):
        in_c = any(str(each or "").endswith(KERNEL_SUFFIX) for each in programs)
        refuse(options, CORE if in_c else CORE | HEADERS, programs[0], CPP_SUFFIXES)


def request_of(options: Namespace, program: str, limits: Limits | None = None) -> Request:
    """Return what is to be recorded.

    Raises:
        ReadError: what was typed.
    """
    changes = assignments("--option", options.options)
    block, blocks = _core("--block", options.block)
    sub, subs = _core("--sub", options.sub)
    found: Request = _recorder().Request(
        Path(program), options.entry,
        scalars_of(options),
        assignments("--in", options.inputs), options.target, lambda target: with_options(target, changes), block,
        blocks, sub, subs or 1, *headers_of(options),
        run_limits_of(options) if limits is None else limits,
    )  # fmt: skip
    return found


def recording_of(options: Namespace, limits: Limits | None = None) -> CppRecording:
    """Compile and execute the kernel that a command names, on the core that it asks for."""
    return _recorded(request_of(options, options.program, limits))


def side_of(
    options: Namespace,
    program: str,
    entry: str | None,
    target: str | Path | Target | None,
    prepare: Callable[[Target], Target],
) -> Source:
    """Compile and execute the kernel that is one side of a comparison."""
    return _recorded(replace(request_of(options, program), entry=entry, target=target, prepare=prepare)).source


def _recorded(request: Request) -> CppRecording:
    found: list[CppRecording] = _recorder().record(request)
    return found[0]


def _recorder() -> ModuleType:
    """Return the recorder, which is loaded once a kernel in C++ is named."""
    import castsim.pto_cpp  # noqa: PLC0415 - as said

    return castsim.pto_cpp


def as_text(recording: CppRecording) -> Source:
    """Return a recording as a program in text, for those who change it."""
    return Source(f"{recording.request.file.stem}.pto", Language.TILES, recording.pto_text())


def without_arguments(options: Namespace) -> Namespace:
    """Return the options of a command for a kernel that has been recorded: its entry and scalars are settled."""
    return Namespace(**{**vars(options), "entry": None, "args": []})


def _core(option: str, text: str | None) -> tuple[int, int | None]:
    if text is None:
        return 0, None
    found = _CORE.fullmatch(text.strip())
    if found is None or (found[2] is not None and int(found[1]) >= int(found[2])):
        raise ReadError(f"{option} {text[:40]}: not a core", legal=(f"{option} 0", f"{option} 3/8"))
    return int(found[1]), None if found[2] is None else int(found[2])


RunSource = Callable[[Namespace, Source], CommandOutcome]


def execute_cpp(options: Namespace, run: RunSource) -> CommandOutcome:
    """Record the kernel and run what it did.

    Raises:
        CastsimError, EngineError: as `castsim.pto_cpp.record` and `castsim.running.run`.
    """
    if options.all_entries:
        raise ReadError("--all-entries is about .pto files", legal=("--entry F",))
    if not options.all_blocks:
        return run(without_arguments(options), recording_of(options).source)
    recordings, inputs = _recorder().record_all(request_of(options, options.program))
    return _on_all(options, recordings, dict(inputs), run)


def _on_all(
    options: Namespace, recordings: list[CppRecording], held: dict[str, Codes], run: RunSource
) -> CommandOutcome:
    """Run every core, the longest last: it finds in memory what the others left there, and is reported."""
    cycles = [_cycles(options, each) for each in recordings]
    longest = cycles.index(max(cycles))
    with tempfile.TemporaryDirectory(prefix="castsim-cores-") as folder:
        for number, recording in enumerate(recordings):
            if number != longest and not options.timing_only:
                held |= _outputs(options, recording, held)
        named = _as_files(recordings[longest], held, Path(folder)) if not options.timing_only else []
        outcome = run(
            Namespace(**{**vars(without_arguments(options)), "inputs": named}), recordings[longest].source
        )  # fmt: skip
    cores = [{"block": number, "cycles": count} for number, count in enumerate(cycles)]
    told = ", ".join(f"{count}" for count in cycles)

    def text(width: int) -> RenderableType:
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
    loaded = _loaded(options, recording)
    names = recording.extents
    given = {name: _padded(array, names[name]) for name, array in held.items() if name in names}
    return dict(run_loaded(loaded, given, engine=options.engine, races=IGNORE, limits=run_limits_of(options)).outputs)


def _as_files(recording: CppRecording, held: Mapping[str, Codes], folder: Path) -> list[str]:
    """Write arrays where `--in` can name them."""
    named = []
    for name, array in held.items():
        if name in recording.extents:
            plain = _padded(array, recording.extents[name])
            plain = plain if plain.dtype.isbuiltin == 1 else plain.view(f"<u{plain.dtype.itemsize}")
            np.save(folder / f"{name}.npy", plain)
            named.append(f"{name}={folder / f'{name}.npy'}")
    return named


def _padded(array: Codes, size: int) -> Codes:
    """Return an array as flat elements, at least so many."""
    flat = np.asarray(array).reshape(-1)
    return flat if flat.size >= size else np.concatenate([flat, np.zeros(size - flat.size, flat.dtype)])
