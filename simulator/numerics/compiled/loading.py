"""Compiling kernels and keeping them on disk where possible.

Importing this module imports numba.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
from numba import types

from castsim.files import kept_code
from castsim.numerics import rounding
from castsim.numerics.compiled import fields, kernels, lookups, shortcuts, steps, words
from castsim.numerics.compiled.hint import hint

_settings: Any = numba.config
if _settings.DISABLE_JIT:
    raise ImportError("it is told not to compile, by NUMBA_DISABLE_JIT")


@cache
def source_stamp() -> int:
    """Return a hash of all sources that decide what kernels compute."""
    digest = hashlib.sha256()
    for module in (rounding, fields, kernels, lookups, shortcuts, steps, words):
        assert module.__file__ is not None
        digest.update(Path(module.__file__).read_bytes())
    return int.from_bytes(digest.digest()[:7], "big")


@cache
def has_half_conversion() -> bool:
    """Whether the processor converts between f16 and f32; elsewhere a slow library routine would."""
    features = llvm.get_host_cpu_features()
    return bool(features.get("f16c")) or llvm.get_process_triple().startswith(("aarch64", "arm64"))


def compiled(make: Callable[[], Any], signature: Any) -> Callable[..., None]:
    """Return the machine code of the loop that `make` returns, from the disk where it is there."""
    loop, is_kept = kept_code.compiled(make(), signature, nogil=True)
    if not is_kept:
        hint(
            "compiled casts cannot be kept on disk and are compiled anew; set NUMBA_CACHE_DIR to a folder that "
            "only you can write to"
        )
    found: Callable[..., None] = loop
    return found


def signature(codes: np.dtype[Any], results: np.dtype[Any], extra: np.dtype[Any], parameters: np.dtype[Any]) -> Any:
    """Return the types of a loop over contiguous arrays of these dtypes, of which only the results are written."""
    read = [types.Array(numba.from_dtype(dtype), 1, "C", readonly=True) for dtype in (codes, extra, parameters)]
    return types.void(read[0], types.Array(numba.from_dtype(results), 1, "C"), read[1], read[2])
