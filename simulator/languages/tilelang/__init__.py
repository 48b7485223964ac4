"""Kernels of TileLang's dialect for the Ascend 950, lowered by TileLang itself and run as vector instructions.

`program` gives a kernel's text, `run` runs it, `simulated` simulates the kernels that a user's own host code calls.
TileLang is loaded on the first use of one of them; a Python file is executed only by the commands that name it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from castsim.languages.tilelang.programs import converted, lower
from castsim.languages.tilelang.running import CoreRuns, FunctionCycles, run, simulated

__all__ = ["CoreRuns", "FunctionCycles", "program", "run", "simulated"]


def program(
    prim: Any,
    core: int = 0,
    dims: Mapping[str, float] | None = None,
    schedule: bool = True,
    pass_configs: Mapping[str, Any] | None = None,
) -> str:
    """Return a kernel of TileLang as the text of a `.pto` program, for one of its cores.

    Args:
        prim: the function, as returned by `factory.get_tir(...)`.
        core: number of the core.
        dims: values of dynamic dimensions; omitted ones become scalar arguments.
        schedule: with the flags and versions of buffers of the device's schedule; False: in the order of the source.
        pass_configs: see `tilelang.jit`.

    Raises:
        ReadError: TileLang is missing or rejects the kernel, or it lacks the core or a dimension.
        IllegalError: castsim does not know a construct; the error has its line.
    """
    return converted(lower(prim, schedule, pass_configs), core, dims or {}).text
