"""Kernels in C, from their text to the outputs of a launch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from castsim.isa.reading import Language, Source
from castsim.languages.tpc_c.launching import tensor_given
from castsim.running.loaded import LaunchRequest
from castsim.running.program_loading import load
from castsim.running.program_runs import run_loaded

Arrays = Mapping[str, np.ndarray]


def loaded(
    text: str, target: str = "gaudi2", space: tuple[int, ...] = (1,), engines: int = 1,
    args: Mapping[str, float] | None = None, **tensors: str,
) -> Any:  # fmt: skip
    """Return a kernel as a program; x is an input and others are outputs of one vector of f32 unless described."""
    parameters = re.search(r"void main\(([^)]*)\)", text)
    names = re.findall(r"tensor (\w+)", parameters[1] if parameters else "")
    given = {name: tensors.get(name, "f32[64]" if name == "x" else "out:f32[64]") for name in names}
    request = LaunchRequest({name: tensor_given(name, shape) for name, shape in given.items()}, space, engines)
    return load(Source("kernel.c", Language.KERNEL, text), target, None, dict(args or {}), launch=request)


def outputs(program: Any, inputs: Arrays | None = None) -> dict[str, np.ndarray]:
    """Run a program, which must not read what an instruction has not written yet; return its outputs."""
    result = run_loaded(program, inputs or {}, stale_reads="stop")
    assert not result.stale_reads
    return {name: np.asarray(array) for name, array in result.outputs.items()}
