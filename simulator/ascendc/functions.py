"""Vector functions of the A5: a call is a loop of load, instruction and store."""

from __future__ import annotations

from dataclasses import dataclass, field

from castsim.ascendc.call_words import Words
from castsim.cpp_recording.node_making import NodeMaker
from castsim.isa.errors import IllegalError


@dataclass(slots=True)
class FunctionWriter:
    """Writes the launches of one function under the mask that it finds."""

    maker: NodeMaker
    counts: bool = False
    mask: tuple[int, int] = field(default=((1 << 64) - 1, (1 << 64) - 1))

    def control(self, what: str, first: int, second: int) -> None:
        """Take in a word of control."""
        if what in ("count", "norm"):
            self.counts = what == "count"
        elif what in ("mask", "lanes"):
            self.mask = first, second

    def write(self, call: str, mnemonic: str, repeats: int, words: Words) -> None:
        """Write a call."""
        del mnemonic, repeats, words
        raise IllegalError(f"{call} is not modelled on the A5 yet", span=self.maker.span, legal=("--target a2a3",))
