"""Running the programs of kernels on their target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from castsim.execution.limits import DEFAULT_LIMITS, Limits
from castsim.graphs.program import NodeProgram
from castsim.isa.codes import Codes
from castsim.isa.formats import Format
from castsim.numerics import array_from_codes, code_dtype, codes_from_array
from castsim.running import LoadedProgram, computed, load_text, run_loaded


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """The result of running a program: codes by output, cycles of all of it, loads and stores included."""

    outputs: Mapping[str, Codes]
    cycles: int


def run_program(
    program: NodeProgram,
    inputs: Mapping[str, Codes],
    name: str,
    engine: str | None,
    timed: dict[str, tuple[LoadedProgram, int]],
    limits: Limits = DEFAULT_LIMITS,
) -> ProgramResult:
    """Run a program on flat codes of one length, filled up with zeros to whole tiles.

    `timed` are tile programs by text that ran before on the same target and engine, with their cycles, which do not
    depend on the values: those of nodes that are alike.

    Raises:
        ReadError: unknown engine.
        IllegalError, TileError: the target refuses it.
        EngineError: the cycle limit.
        LimitError: more of it would be walked than `limits` let through.
    """
    size = next(iter(inputs.values())).size
    arrays = {
        key: array_from_codes(_filled(inputs[key], fmt, program.elements), fmt) for key, fmt in program.inputs.items()
    }
    if program.text in timed:
        loaded, cycles = timed[program.text]
        found = computed(loaded, arrays, limits)
    else:
        fresh = load_text(program.text, f"{name}{program.suffix}", program.target, limits)
        result = run_loaded(fresh, arrays, engine=engine, limits=limits)
        found, cycles = dict(result.outputs), result.cycles
        if fresh.tree is not None:
            timed[program.text] = fresh, cycles
    outputs = {key: codes_from_array(found[key], fmt).reshape(-1)[:size] for key, fmt in program.outputs.items()}
    return ProgramResult(outputs, cycles)


def _filled(codes: Codes, fmt: Format, elements: int) -> Codes:
    whole = np.zeros(elements, code_dtype(fmt))
    whole[: codes.size] = codes
    return whole
