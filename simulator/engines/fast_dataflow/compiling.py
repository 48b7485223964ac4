"""The machine as compiled code: the same functions, through numba, kept on disk.

Importing this module imports numba. Compiling takes longer than any program that is not very long, so only those get
here (see `simulation`).
"""

from __future__ import annotations

import hashlib
import inspect
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, register_jitable

from simulator.engines.fast_dataflow import (
    executions,
    function_layout,
    function_trips,
    functions,
    issue,
    layout,
    machine,
    pipes,
    ports,
    requests,
    scoreboard,
)
from simulator.engines.fast_dataflow.layout import Cells

_MODULES = (executions, pipes, ports, scoreboard, issue, requests, function_trips, functions, machine)
_SIGNATURE = types.int64(types.intp, types.intp)

_settings: Any = numba.config
if _settings.DISABLE_JIT:
    raise ImportError("it is told not to compile, by NUMBA_DISABLE_JIT")


@intrinsic
def _pointer(_context: Any, _address: Any) -> Any:
    """Return an address as a pointer."""

    def generate(_codegen: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.intp), generate


_to_pointer: Any = _pointer
_view: Any = vars(numba)["carray"]  # of which numba's own types say nothing


@cache
def compiled_machine() -> Callable[[Cells], int]:
    """Return the compiled form of `machine.run`; it takes the memory as an array of 64-bit integers."""
    for module in _MODULES:
        for _, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__:
                register_jitable(function)
    try:
        compiled = _compiled(keep=True)
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        if isinstance(error, RuntimeError) and "cannot cache" not in str(error):
            raise  # not about the disk
        compiled = _compiled(keep=False)

    def run(m: Any) -> int:
        return compiled(m.ctypes.data, len(m))

    return run


def _compiled(*, keep: bool) -> Callable[[int, int], int]:
    make = numba.njit(_SIGNATURE, nogil=True, error_model="numpy", cache=keep)
    compiled: Callable[[int, int], int] = make(_machine(_source_stamp()))
    return compiled


def _machine(stamp: int) -> Callable[[int, int], int]:
    """Return the machine; the stamp becomes part of the key of what is kept, which knows this file alone."""

    def run(address: int, size: int) -> int:
        # numba counts the references to an array at every call; it knows of none to bare memory.
        memory = _view(_to_pointer(address), (size,), np.int64)
        return machine.run(memory) if stamp >= 0 else layout.DONE

    return run


def _source_stamp() -> int:
    """Return a hash of all sources that the machine consists of."""
    digest = hashlib.sha256()
    for module in (*_MODULES, layout, function_layout):
        digest.update(Path(inspect.getfile(module)).read_bytes())
    return int.from_bytes(digest.digest()[:7], "big")
