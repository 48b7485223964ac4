"""Runs of kernels in C++ for tests: those of programs/pto_cpp, and texts."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from kit.paths import PROGRAMS

from castsim.languages.pto_cpp import Request, record, run

KERNELS = PROGRAMS / "pto_cpp"

needs_compiler = pytest.mark.skipif(
    shutil.which("c++") is None and shutil.which("g++") is None, reason="kernels in C++ need a compiler"
)


def ran(name, **how):
    return run(KERNELS / f"{name}.cpp", **how)


def written(folder, body, head="#include <pto/pto-inst.hpp>\nusing namespace pto;\n"):
    path = folder / "kernel.cpp"
    path.write_text(head + body)
    return path


def recorded(folder, body, **how):
    (found,) = record(Request(written(folder, body), **how))
    return found


def same_bits(one, other):
    """Whether two arrays hold the same bytes in the same order."""
    one, other = (np.ascontiguousarray(each).reshape(-1).view(np.uint8) for each in (one, other))
    return one.size == other.size and bool((one == other).all())
