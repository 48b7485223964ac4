"""`castsim run KERNEL.cpp`: the kernel is recorded, on one core or on all, and what it did is run."""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from castsim.commands.execution.cpp_kernels import recording_of, request_of, without_arguments
from castsim.commands.option_parsers import opaque_cycles, run_limits_of
from castsim.commands.outcome import Outcome
from castsim.isa.codes import Codes
from castsim.isa.errors import ReadError
from castsim.isa.sources import Source
from castsim.pto_cpp import Recording, record_all
from castsim.running import LoadedProgram, load, run_loaded
from castsim.synchronisation.race_findings import IGNORE

RunSource = Callable[[Namespace, Source], Outcome]


def execute_cpp(options: Namespace, run: RunSource) -> Outcome:
    """Record the kernel and run what it did.

    Raises:
        CastsimError, EngineError: as `castsim.pto_cpp.record` and `castsim.running.run`.
    """
    if options.all_entries:
        raise ReadError("--all-entries is about .pto files", legal=("--entry F",))
    if not options.all_blocks:
        return run(without_arguments(options), recording_of(options).source)
    recordings, inputs = record_all(request_of(options, options.program))
    return _on_all(options, recordings, dict(inputs), run)


def _on_all(options: Namespace, recordings: list[Recording], held: dict[str, Codes], run: RunSource) -> Outcome:
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
        return Group(Text(head), outcome.text(width))

    return replace(outcome, document={**outcome.document, "cores": cores}, text=text)


def _cycles(options: Namespace, recording: Recording) -> int:
    loaded = _loaded(options, recording)
    return run_loaded(
        loaded, recording.arrays, engine=options.engine, races=IGNORE, timing_only=loaded.tree is not None
    ).cycles


def _loaded(options: Namespace, recording: Recording) -> LoadedProgram:
    request = recording.request
    return load(
        recording.source, request.target, None, {}, request.prepare, opaque=opaque_cycles(options.opaque),
        limits=run_limits_of(options),
    )  # fmt: skip


def _outputs(options: Namespace, recording: Recording, held: Mapping[str, Codes]) -> dict[str, Codes]:
    loaded = _loaded(options, recording)
    names = recording.extents
    given = {name: _padded(array, names[name]) for name, array in held.items() if name in names}
    return dict(run_loaded(loaded, given, engine=options.engine, races=IGNORE, limits=run_limits_of(options)).outputs)


def _as_files(recording: Recording, held: Mapping[str, Codes], folder: Path) -> list[str]:
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
