"""The launch of a kernel in C, as options give it."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from castsim.commands.execution.kernel_options import HEADERS, LAUNCH, refuse
from castsim.isa.sources import CPP_SUFFIXES, KERNEL_SUFFIX

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
    refuse(options, LAUNCH, options.program, (".c",))
    refuse(options, HEADERS, options.program, (".c", *CPP_SUFFIXES))
    return None
