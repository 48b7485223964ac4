"""Programs that run a chain: text for the target, what it costs, and running it on codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isa.formats import FORMATS, Format, IntFormat
from simulator.numerics import array_from_codes, code_dtype, codes_from_array
from simulator.planning.steps import Chain
from targets import Target
from targets.vliw import VliwTarget

if TYPE_CHECKING:
    from simulator.running import Loaded
    from simulator.vliw.assembled import Assembled

Codes = NDArray[Any]

_NAME = "lowered"


@dataclass(frozen=True, slots=True)
class Assembly:
    """A program with input `src` and output `dst`.

    `suffix` is that of its files. `elements` is the size of both arguments, `source` and `destination` the formats by
    which the text declares them; elements keep their order. `scratch_bytes` are those of tmp tiles, `buffer_bytes`
    those of all tiles, `registers` vector registers.
    """

    target: Target
    text: str
    suffix: str
    elements: int
    source: Format
    destination: Format
    scratch_bytes: int
    buffer_bytes: int
    registers: int


@dataclass(frozen=True, slots=True)
class Cost:
    """What a program takes: cycles of all of it, loads and stores included, for `elements` elements."""

    cycles: int
    elements: int
    scratch_bytes: int
    buffer_bytes: int
    registers: int

    @property
    def cycles_per_element(self) -> float:
        """Cycles by elements."""
        return self.cycles / self.elements

    @property
    def rank(self) -> tuple[float, int, int, int]:
        """What chains are ranked by: cycles per element, scratch, registers, buffer."""
        return self.cycles_per_element, self.scratch_bytes, self.registers, self.buffer_bytes


def assembly_of(chain: Chain, src: Format, dst: Format, target: Target, rows: int, cols: int) -> Assembly:
    """Return the program that takes `rows` x `cols` elements through a chain.

    On a vector unit the tensors are filled up to whole registers.

    Raises:
        IllegalError, TileError: no program of the target can hold it, such as a tile too large for the buffer.
    """
    if isinstance(target, VliwTarget):
        from simulator.planning.vector_text import vector_assembly  # noqa: PLC0415

        return vector_assembly(chain, src, dst, target, rows * cols)
    from simulator.planning.tile_text import tile_assembly  # noqa: PLC0415

    return tile_assembly(chain, src, dst, target, rows, cols)


def cost_of(assembly: Assembly) -> Cost:
    """Simulate a program's time.

    Raises:
        IllegalError, TileError: the target refuses it.
    """
    from simulator.running import run_loaded  # noqa: PLC0415 - engines, only for chains that are right

    found = run_loaded(_loaded(assembly), {}, timing_only=True)
    return Cost(found.cycles, assembly.elements, assembly.scratch_bytes, assembly.buffer_bytes, assembly.registers)


def run_assembly(assembly: Assembly, codes: Codes) -> Codes:
    """Run a program on the simulated target over codes of any shape, as often as they take.

    Codes are those of the format that the text declares for its input; codes of its output come back.
    """
    from simulator.running import run_loaded  # noqa: PLC0415

    flat = codes.reshape(-1)
    pieces = []
    loaded = _loaded(assembly)
    for start in range(0, flat.size, assembly.elements):
        piece = np.zeros(assembly.elements, code_dtype(assembly.source))
        part = flat[start : start + assembly.elements]
        piece[: part.size] = part
        outputs = run_loaded(loaded, {"src": array_from_codes(piece, assembly.source)}, pipeline="hardware").outputs
        found = codes_from_array(outputs["dst"], assembly.destination).reshape(-1)
        pieces.append(found[: part.size])
    results = np.concatenate(pieces) if pieces else np.zeros(0, code_dtype(assembly.destination))
    return results.reshape(codes.shape)


def _loaded(assembly: Assembly) -> Loaded | Assembled:
    from simulator.running import load_text  # noqa: PLC0415

    return load_text(assembly.text, f"{_NAME}{assembly.suffix}", assembly.target)


def machine_formats(chain: Chain, src: Format, dst: Format, target: Target) -> tuple[Format, Format]:
    """Return the formats of the first and the last instruction, by which the text declares its arguments.

    Rereads at the ends are those declarations; a chain without instructions copies whatever of the width the target
    knows.
    """
    working = [step for step in chain if step.is_instruction]
    if working:
        return working[0].src, working[-1].dst
    known = {name for row in target.casts for name in (row.src, row.dst)}
    # A boolean lies in a byte.
    width = FORMATS["u8"].bits if isinstance(src, IntFormat) and src.boolean else src.bits
    likely = (src, dst, *FORMATS.values())
    copied = next((fmt for fmt in likely if fmt.name in known and fmt.bits == width), src)
    return copied, copied
