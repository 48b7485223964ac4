"""What the micro level adds to the operations of a program.

Its operations are alike but for their operands: one node holds each of them, and `castsim.isa.pto.micro.forms` tells
how it is written. Source: docs/reference/micro.md section 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from castsim.isa.located import Located
from castsim.isa.pto.value_types import Type


@dataclass(frozen=True, slots=True)
class MicroOperation(Located):
    """`%r = pto.NAME %a, %p[%i], "WORD", %m group(%x, %y) {key = "WORD"} : types -> types`.

    `operands` are all values in the order of the text, those of `groups` last; `groups` are the names of the groups
    and how many operands each has. `attributes` holds the words of the text by what they tell (`dist`, `rnd`), whether
    they stand between the operands or in the dictionary, under their short names (`R`, not `ROUND_R`).
    """

    mnemonic: str
    operands: tuple[str, ...]
    operand_types: tuple[Type, ...]
    results: tuple[str, ...] = ()
    result_types: tuple[Type, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    groups: tuple[tuple[str, int], ...] = ()

    def word(self, key: str) -> str | None:
        """Return a word of the text, None if it has none of the kind."""
        return next((text for name, text in self.attributes if name == key), None)
