"""Kernels in C as commands use them: they are compiled to bundles; and what options apply to kernels in C++."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from castsim.commands.option_parsers import (
    CORE,
    HEADERS,
    LAUNCH,
    assignments,
    headers_of,
    macros_of,
    positive,
    refuse,
)
from castsim.isa.formats import Codes
from castsim.isa.reading import CPP_SUFFIXES, KERNEL_SUFFIX, Language, Source, read_source
from castsim.running.languages import C, language_module
from castsim.running.loaded import LaunchRequest, LoadRequest
from castsim.targets.description import with_options


def launch_of(options: Namespace, *programs: str | None) -> LaunchRequest | None:
    """Return the launch that options describe; None if no program (default: the options' program) is a kernel.

    Raises:
        ReadError: an option cannot be read, or applies to other programs.
    """
    named = programs or (options.program,)
    if any(is_kernel(program) for program in named):
        return _launch_asked(options)
    refuse(options, LAUNCH, named[0], (KERNEL_SUFFIX,))
    if not any(str(program or "").endswith(CPP_SUFFIXES) for program in named):
        refuse(options, HEADERS, named[0], (KERNEL_SUFFIX, *CPP_SUFFIXES))
    return None


def is_kernel(program: str | None) -> bool:
    """Return whether the named program is a kernel in C."""
    return str(program or "").endswith(KERNEL_SUFFIX)


def _launch_asked(options: Namespace) -> LaunchRequest:
    launch: LaunchRequest = language_module(C).launch_request(
        assignments("--tensor", options.tensors),
        options.index_space,
        positive("--tpcs", options.tpcs) if options.tpcs else 1,
        options.accumulators,
        assignments("--in", getattr(options, "inputs", [])),
        macros_of(options),
        headers_of(options)[0],
    )
    return launch


def _headers_asked(options: Namespace) -> LaunchRequest:
    return LaunchRequest(defines=macros_of(options), folders=headers_of(options)[0])


def compiled_of(options: Namespace, path: str) -> tuple[Source, Any]:
    """Return a kernel in C, compiled for the target in the options."""
    source = read_source(Path(path), lambda: False)
    request = LoadRequest(options.target, launch=_headers_asked(options))
    return source, language_module(C).compiled_kernel(source, request)


def bundles_of(options: Namespace, launch: LaunchRequest, arguments: Mapping[str, int | float]) -> Source:
    """Return the bundles of a kernel in C on its first engine as an assembly program.

    Raises:
        ReadError, IllegalError: the kernel cannot be compiled.
    """
    from castsim.isa.tpc.parser import print_program  # noqa: PLC0415 - few commands name a kernel

    changes = assignments("--option", options.options)
    request = LoadRequest(options.target, None, arguments, lambda target: with_options(target, changes), launch=launch)
    loaded = language_module(C).load_kernel(read_source(Path(options.program), lambda: False), request)
    return Source(f"{loaded.entry}.tpc", Language.ASSEMBLY, print_program(loaded.launch.engines[0]))


# Kernels in C++.


def is_cpp(program: str | None) -> bool:
    """Return whether the named program is a kernel in C++."""
    return program is not None and program.endswith(CPP_SUFFIXES)


def refuse_elsewhere(options: Namespace, *programs: str | None) -> None:
    """Reject options of kernels in C++ if no program is one.

    Raises:
        ReadError: such an option was given.
    """
    if not any(map(is_cpp, programs)):
        in_c = any(str(program or "").endswith(KERNEL_SUFFIX) for program in programs)
        refuse(options, CORE if in_c else CORE | HEADERS, programs[0], CPP_SUFFIXES)


def as_files(arrays: Mapping[str, Codes], folder: Path) -> list[str]:
    """Write arrays to files, and return the `--in` values that name them."""
    for name, array in arrays.items():
        plain = np.ascontiguousarray(array)
        np.save(folder / f"{name}.npy", plain if plain.dtype.isbuiltin == 1 else plain.view(f"<u{plain.itemsize}"))
    return [f"{name}={folder / f'{name}.npy'}" for name in arrays]
