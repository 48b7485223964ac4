"""Operations between cores or devices in a `.pto` program.

`castsim.isa.pto.program` tells the whole.
"""

from __future__ import annotations

from dataclasses import dataclass

from castsim.isa.located import Located
from castsim.isa.pto.value_types import Type


@dataclass(frozen=True, slots=True)
class ForeignOperation(Located):
    """An operation between cores or devices, of which nothing is known but its values.

    `tokens` are what stands behind its name, `%` for each of its `operands`; results are scalars and tiles.
    """

    mnemonic: str
    operands: tuple[str, ...]
    tokens: tuple[str, ...]
    results: tuple[str, ...] = ()
    result_types: tuple[Type, ...] = ()
