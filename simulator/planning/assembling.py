"""Writing a chain as a program of the target, what that costs, and running it on codes."""

from __future__ import annotations

import re

import numpy as np

from castsim.isa.codes import Codes
from castsim.isa.formats import Format
from castsim.numerics import array_from_codes, code_dtype, codes_from_array
from castsim.planning.assembly import Assembly, ProgramCost
from castsim.planning.mechanisms import PLANNING
from castsim.planning.sharing import Shared
from castsim.planning.steps import Chain
from castsim.running import LoadedProgram, load_text, run_loaded
from castsim.targets import Target

_NAME = "lowered"


def assembly_of(chain: Chain, src: Format, dst: Format, target: Target, rows: int, cols: int) -> Assembly:
    """Return the program that takes `rows` x `cols` elements through a chain.

    On a vector unit the tensors are filled up to whole registers.

    Raises:
        IllegalError, TileError: no program of the target can hold it, such as a tile too large for the buffer.
    """
    written = tuple((id(step.src), id(step.dst), step.name, step.forms[0]) for step in chain)
    return _ASSEMBLIES.of(
        (id(target), written, id(src), id(dst), rows, cols),
        lambda: PLANNING.of(target).assembly(chain, src, dst, target, rows, cols),
        (target, chain, src, dst),
    )


_ASSEMBLIES: Shared[Assembly] = Shared(512)


def cost_of(assembly: Assembly) -> ProgramCost:
    """Simulate a program's time.

    Raises:
        IllegalError, TileError: the target refuses it.
    """
    cycles = _CYCLES.of(
        (id(assembly.target), assembly.suffix, _timed(assembly.text)),
        lambda: run_loaded(_loaded(assembly), {}, timing_only=True).cycles,
        assembly.target,
    )
    return ProgramCost(cycles, assembly.elements, assembly.scratch_bytes, assembly.buffer_bytes, assembly.registers)


_CYCLES: Shared[int] = Shared(4096)
_COMMENT = re.compile(r"^//.*\n")
_ELEMENT = re.compile(r"(?<== arith\.constant )\S+(?= : (?!index))")


def _timed(text: str) -> str:
    """Return what the time of a program follows from: not its comment, nor the values of constants for elements."""
    return _ELEMENT.sub("?", _COMMENT.sub("", text))


def run_assembly(assembly: Assembly, codes: Codes) -> Codes:
    """Run a program on the simulated target over codes of any shape, as often as they take.

    Codes are those of the format that the text declares for its input; codes of its output come back.
    """
    flat = codes.reshape(-1)
    pieces = []
    loaded = _loaded(assembly)
    for start in range(0, flat.size, assembly.elements):
        piece = np.zeros(assembly.elements, code_dtype(assembly.source))
        part = flat[start : start + assembly.elements]
        piece[: part.size] = part
        outputs = run_loaded(loaded, {"src": array_from_codes(piece, assembly.source)}, stale_reads="ignore").outputs
        found = codes_from_array(outputs["dst"], assembly.destination).reshape(-1)
        pieces.append(found[: part.size])
    results = np.concatenate(pieces) if pieces else np.zeros(0, code_dtype(assembly.destination))
    return results.reshape(codes.shape)


def _loaded(assembly: Assembly) -> LoadedProgram:
    return load_text(assembly.text, f"{_NAME}{assembly.suffix}", assembly.target)
