"""Programs that run a chain: their text, what they take, and how they declare their arguments."""

from __future__ import annotations

from dataclasses import dataclass

from castsim.isa.formats import FORMATS, Format, IntFormat
from castsim.planning.steps import Chain
from castsim.targets import Target


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
class ProgramCost:
    """The cost of a program: cycles of all of it, loads and stores included, for `elements` elements."""

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
        """The key by which chains are ranked: cycles per element, scratch, registers, buffer."""
        return self.cycles_per_element, self.scratch_bytes, self.registers, self.buffer_bytes


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
