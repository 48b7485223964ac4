"""The launch of a kernel in C, as options give it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from castsim.commands.option_values import assignments, positive
from castsim.isa.errors import ReadError
from castsim.isa.sources import KERNEL_SUFFIX
from castsim.running.kernels import with_shapes
from castsim.tpc_c.launching import LaunchRequest, members_given, tensor_given


def launch_of(options: Namespace, scalars: Mapping[str, int | float] | None = None) -> LaunchRequest | None:
    """Return the launch that options describe; None for programs that are no kernels.

    Raises:
        ReadError: an option that cannot be read, or that is given for another program.
    """
    del scalars
    given = {"--tensor": options.tensors, "--index-space": options.index_space, "--tpcs": options.tpcs,
             "--define": options.defines, "--include": options.includes}  # fmt: skip
    if not str(options.program or "").endswith(KERNEL_SUFFIX):
        for option, value in given.items():
            if value:
                raise ReadError(f"{option} is about kernels in C; {options.program} is none")
        return None
    tensors = {name: tensor_given(name, text) for name, text in assignments("--tensor", options.tensors).items()}
    defines = dict(each.split("=", 1) if "=" in each else (each, "1") for each in options.defines)
    wanted = LaunchRequest(
        tensors,
        members_given(options.index_space) if options.index_space else (),
        positive("--tpcs", options.tpcs) if options.tpcs else 1,
        defines,
        tuple(map(Path, options.includes)),
    )
    return with_shapes(wanted, assignments("--in", getattr(options, "inputs", [])))
