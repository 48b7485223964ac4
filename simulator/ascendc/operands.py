"""The words of a line: operands in the buffer, scalars, attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from castsim.isa.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor as an instruction uses it: its byte address, the bytes of its buffer, its strides in blocks."""

    element: str
    address: int
    low: int
    high: int
    block: int
    repeat: int

    @classmethod
    def of(cls, word: str) -> Operand:
        """Read `u,ELEMENT,ADDRESS,LOW,HIGH,BLOCK,REPEAT`."""
        _, element, *numbers = word.split(",")
        return cls(element, *map(int, numbers))


@dataclass(frozen=True, slots=True)
class Words:
    """Operands, the destination first; scalars as element type and code; attributes."""

    operands: tuple[Operand, ...]
    scalars: tuple[tuple[str, int], ...]
    attributes: Mapping[str, str]

    @classmethod
    def of(cls, words: Sequence[str]) -> Words:
        """Read the words of a line."""
        scalars = [word.split(",")[1:] for word in words if word[0] == "s"]
        return cls(
            tuple(Operand.of(word) for word in words if word[0] == "u"),
            tuple((element, int(code, 16)) for element, code in scalars),
            dict(word.split(",")[1:] for word in words if word[0] == "a"),
        )
