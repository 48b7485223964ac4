"""What the level of logical registers adds to the operations of a program (docs/reference/micro.md section 9.1)."""

from __future__ import annotations

from dataclasses import dataclass

from castsim.isa.located import Located
from castsim.isa.pto.value_types import Type


@dataclass(frozen=True, slots=True)
class VmiOperation(Located):
    """`%r = pto.vmi.NAME %a, %p[%i], %m {key = value} : types -> types`.

    `operands` are all values in the order of the text; `offset_at` is the place of the one in brackets, whose type the
    text leaves out. Words have their short names (`R`, not `ROUND_R`).
    """

    mnemonic: str
    operands: tuple[str, ...]
    operand_types: tuple[Type, ...]
    results: tuple[str, ...] = ()
    result_types: tuple[Type, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    offset_at: int | None = None

    def word(self, key: str) -> str | None:
        """Return a word or number of the text, None if it has none of the kind."""
        return next((text for name, text in self.attributes if name == key), None)

    def count(self, key: str) -> int | None:
        """Return a number of the text, None if it has none of the kind."""
        text = self.word(key)
        return None if text is None else int(text)
