"""The launch of a kernel in C, as options give it."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from castsim.commands.option_values import assignments, positive
from castsim.isa.errors import ReadError
from castsim.isa.sources import KERNEL_SUFFIX
from castsim.running.kernels import with_shapes
from castsim.tpc_c.launching import LaunchRequest, members_given, tensor_given


def headers_of(options: Namespace) -> LaunchRequest:
    """Return the macros and the folders of headers that options give."""
    defines = dict(each.split("=", 1) if "=" in each else (each, "1") for each in options.macros)
    return LaunchRequest(defines=defines, folders=tuple(map(Path, options.folders)))


def launch_of(options: Namespace) -> LaunchRequest | None:
    """Return the launch that options describe; None for programs that are no kernels.

    Raises:
        ReadError: an option that cannot be read, or that is given for another program.
    """
    given = {"--tensor": options.tensors, "--index-space": options.index_space, "--tpcs": options.tpcs,
             "--define": options.macros, "--include": options.folders}  # fmt: skip
    if not str(options.program or "").endswith(KERNEL_SUFFIX):
        for option, value in given.items():
            if value:
                raise ReadError(f"{option} is about kernels in C; {options.program} is none")
        return None
    tensors = {name: tensor_given(name, text) for name, text in assignments("--tensor", options.tensors).items()}
    wanted = replace(
        headers_of(options),
        tensors=tensors,
        index_space=members_given(options.index_space) if options.index_space else (),
        engines=positive("--tpcs", options.tpcs) if options.tpcs else 1,
    )
    return with_shapes(wanted, assignments("--in", getattr(options, "inputs", [])))
