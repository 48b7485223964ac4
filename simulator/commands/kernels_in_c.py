"""Kernels in C as `run`, `asm` and `lint` take them; what is imported here loads the compiler of C."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from castsim.commands.option_parsers import assignments, headers_of, positive
from castsim.isa.errors import ReadError
from castsim.isa.sources import Language, Source, read_source
from castsim.isa.tpc.printer import print_program
from castsim.running.c_kernels import compiled_kernel, load_kernel, with_shapes
from castsim.running.loaded import LoadRequest
from castsim.targets.options import with_options
from castsim.tpc_compiler.tpc_c.compiling import Compiled
from castsim.tpc_compiler.tpc_c.launching import LaunchRequest, members_given, scheduled_kernel, tensor_given, text_of
from castsim.tpc_compiler.tpc_c.loops import ACCUMULATORS
from castsim.tpc_compiler.tpc_c.printing import without_prints

__all__ = ["bundles_asked", "compiled_of", "launch_asked", "scheduled_kernel", "sequential_text", "without_prints"]


def launch_asked(options: Namespace) -> LaunchRequest:
    """Return the launch that options describe.

    Raises:
        ReadError: an option that cannot be read.
    """
    order = options.accumulators or ACCUMULATORS[0]
    if order not in ACCUMULATORS:
        raise ReadError(f"--accumulators {order[:40]}: no order of sums", legal=ACCUMULATORS)
    tensors = {name: tensor_given(name, text) for name, text in assignments("--tensor", options.tensors).items()}
    wanted = replace(
        _headers_of(options),
        tensors=tensors,
        index_space=members_given(options.index_space) if options.index_space else (),
        accumulators=order,
        engines=positive("--tpcs", options.tpcs) if options.tpcs else 1,
    )
    return with_shapes(wanted, assignments("--in", getattr(options, "inputs", [])))


def compiled_of(options: Namespace, path: str) -> tuple[Source, Compiled]:
    """Return a kernel, compiled for the target that options name."""
    source = read_source(Path(path), lambda: False)
    return source, compiled_kernel(source, LoadRequest(options.target, launch=_headers_of(options)))


def bundles_asked(options: Namespace, wanted: LaunchRequest, arguments: Mapping[str, int | float]) -> Source:
    """Return the bundles of a kernel on its first engine as a program in assembly.

    Raises:
        ReadError, IllegalError: as `castsim.running.c_kernels.load_kernel`.
    """
    changes = assignments("--option", options.options)
    request = LoadRequest(options.target, None, arguments, lambda target: with_options(target, changes), launch=wanted)
    loaded = load_kernel(read_source(Path(options.program), lambda: False), request)
    text = print_program(loaded.launch.engines[0])
    return Source(f"{loaded.entry}.tpc", Language.ASSEMBLY, text)


def sequential_text(compiled: Compiled) -> str:
    """Return a kernel with one instruction a line."""
    return text_of(compiled, LaunchRequest(), {})


def _headers_of(options: Namespace) -> LaunchRequest:
    folders, macros = headers_of(options)
    defines = {name: value if given else "1" for name, given, value in (each.partition("=") for each in macros)}
    return LaunchRequest(defines=defines, folders=folders)
