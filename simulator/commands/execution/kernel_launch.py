"""The launch of a kernel in C, as options give it."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from castsim.isa.errors import ReadError
from castsim.isa.sources import KERNEL_SUFFIX

if TYPE_CHECKING:
    from castsim.tpc_c.launching import LaunchRequest


def launch_of(options: Namespace) -> LaunchRequest | None:
    """Return the launch that options describe; None for programs that are no kernels.

    Raises:
        ReadError: an option that cannot be read, or that is given for another program.
    """
    if str(options.program or "").endswith(KERNEL_SUFFIX):
        from castsim.commands.execution.kernels_in_c import launch_asked  # noqa: PLC0415 - loads the compiler

        return launch_asked(options)
    given = {"--tensor": options.tensors, "--index-space": options.index_space, "--tpcs": options.tpcs,
             "--define": options.macros, "--include": options.folders}  # fmt: skip
    for option, value in given.items():
        if value:
            raise ReadError(f"{option} is about kernels in C; {options.program} is none")
    return None
