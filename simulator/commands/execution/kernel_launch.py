"""The launch of a kernel in C, as options give it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from castsim.commands.execution.kernel_options import HEADERS, LAUNCH, refuse
from castsim.isa.sources import CPP_SUFFIXES, KERNEL_SUFFIX, Source

if TYPE_CHECKING:
    from castsim.tpc_c.launching import LaunchRequest


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
        ReadError, IllegalError: as `castsim.running.kernels.load_kernel`.
    """
    found: Source = _compiler().bundles_asked(options, launch, arguments)
    return found


def _compiler() -> ModuleType:
    """Return the commands' part that loads the compiler, which is loaded once a kernel is named."""
    return import_module("castsim.commands.execution.kernels_in_c")
