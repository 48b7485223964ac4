"""The operations of a `.pto` program by which the scalar unit reads and writes memory.

`castsim.isa.pto.program` tells the whole.
"""

from __future__ import annotations

from dataclasses import dataclass

from castsim.isa.located import Located
from castsim.isa.pto.value_types import PointerType, ScalarType, TileType


@dataclass(frozen=True, slots=True)
class AddPointer(Located):
    """`%q = pto.addptr %p, %n : type -> type`: a pointer `offset` elements further on."""

    result: str
    pointer: str
    offset: str
    type: PointerType


@dataclass(frozen=True, slots=True)
class ScalarAccess(Located):
    """One element that the scalar unit reads or writes: `load_scalar`, `store_scalar`, `tgetval`, `tsetval`.

    `base` is a pointer or a tile, `offset` counts elements; `value` is the result of a read, the operand of a write.
    """

    mnemonic: str
    base: str
    base_type: PointerType | TileType
    offset: str
    value: str
    type: ScalarType

    @property
    def reads(self) -> bool:
        """Whether it is a read."""
        return self.mnemonic in ("load_scalar", "tgetval")


@dataclass(frozen=True, slots=True)
class CacheOperation(Located):
    """`pto.fence.barrier_all` or `pto.cmo.cacheinvalid` with its operands as `text`."""

    mnemonic: str
    text: str = ""
