"""Programs made from kernels: their text, their arguments, and running them on the simulated target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isa.formats import Format
from simulator.graphs.kernel import Kernel
from simulator.numerics import array_from_codes, code_dtype, codes_from_array
from targets import Target
from targets.vliw import VliwTarget

Codes = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Program:
    """A kernel as text for a target.

    Arguments are named as the kernel's ports, their formats by name in `inputs` and `outputs`. `elements` is the size
    of each, whole tiles; `tiles` how many the loop takes.
    """

    target: Target
    text: str
    suffix: str
    inputs: Mapping[str, Format]
    outputs: Mapping[str, Format]
    elements: int
    tiles: int


@dataclass(frozen=True, slots=True)
class Executed:
    """What a run of a program gave: codes by output, cycles of all of it, loads and stores included."""

    outputs: Mapping[str, Codes]
    cycles: int


def program_of(kernel: Kernel, target: Target, elements: int) -> Program:
    """Write a kernel as a program over at least `elements` elements.

    Raises:
        IllegalError, TileError: the target has no program for it.
    """
    if isinstance(target, VliwTarget):
        from simulator.graphs.vector_program import vector_program  # noqa: PLC0415 - the mechanism in use

        return vector_program(kernel, target, elements)
    from simulator.graphs.tile_program import tile_program  # noqa: PLC0415 - as above

    return tile_program(kernel, target, elements)


def run_program(program: Program, inputs: Mapping[str, Codes], name: str, engine: str | None) -> Executed:
    """Run a program on flat codes of one length, filled up with zeros to whole tiles.

    Raises:
        ReadError: unknown engine.
        IllegalError, TileError: the target refuses it.
        EngineError: the cycle limit.
    """
    from simulator.running import load_text, run_loaded  # noqa: PLC0415 - engines

    size = next(iter(inputs.values())).size
    arrays = {
        key: array_from_codes(_filled(inputs[key], fmt, program.elements), fmt) for key, fmt in program.inputs.items()
    }
    loaded = load_text(program.text, f"{name}{program.suffix}", program.target)
    result = run_loaded(loaded, arrays, engine=engine)
    outputs = {}
    for key, fmt in program.outputs.items():
        found = codes_from_array(result.outputs[key], fmt).reshape(-1)
        outputs[key] = found[:size]
    return Executed(outputs, result.cycles)


def _filled(codes: Codes, fmt: Format, elements: int) -> Codes:
    whole = np.zeros(elements, code_dtype(fmt))
    whole[: codes.size] = codes
    return whole
