"""Operations of the pipes around the vector unit, the same for every mechanism with a tile buffer: transfers, control
writes, scalar work, flags and barriers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from castsim.execution.tree import Deltas
from castsim.targets.dataflow import BLOCK_BYTES

BLOCK = BLOCK_BYTES
"""Bytes of one buffer access, the unit of strides (the instruction set's own definition, not a chip's)."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """One DMA instruction between global memory and the unified buffer: `bursts` rows of `burst_bytes`.

    Row k moves between byte `gm_address + k * gm_pitch` of argument `argument` and byte `ub_address + k * ub_pitch`.
    `pipe` is the target's load or store pipe; `load` tells the direction. A load with `pad_byte_pattern` fills the
    rest of the last 32-byte block of each row with it.
    """

    pipe: str
    load: bool
    argument: str
    gm_address: int
    gm_pitch: int
    ub_address: int
    ub_pitch: int
    bursts: int
    burst_bytes: int
    pad_pattern: bytes = b""

    @property
    def addresses(self) -> tuple[int, ...]:
        """Buffer address first, then the offset in global memory."""
        return (self.ub_address, self.gm_address)

    def shifted(self, deltas: Deltas) -> Transfer:
        """Return the transfer with both ends moved."""
        if not any(deltas):
            return self
        return replace(self, ub_address=self.ub_address + deltas[0], gm_address=self.gm_address + deltas[1])


@dataclass(frozen=True, slots=True)
class Unaddressed:
    """Base of operations that no loop can move."""

    @property
    def addresses(self) -> tuple[int, ...]:
        """None."""
        return ()

    def shifted(self, deltas: Deltas) -> Self:
        """Return the operation itself."""
        return self


@dataclass(frozen=True, slots=True)
class ControlWrite(Unaddressed):
    """A scalar write to control state: `register` is `ctrl`, `mask` or `deqscale`, `value` its new content."""

    register: str
    value: int
    pipe: str = "S"


@dataclass(frozen=True, slots=True)
class ScalarWork(Unaddressed):
    """Work of the scalar unit: `kind` is `arithmetic`, `loop` (one loop turnaround), `read` or `write` (of an element
    of the buffer).
    """

    kind: str
    pipe: str = "S"


@dataclass(frozen=True, slots=True)
class Placeholder(Unaddressed):
    """What stands in for an operation of which nothing is known but its pipe: `cycles` is what it is taken for.

    `kind` is the operation of the text. For 0 cycles not even its issue costs anything.
    """

    kind: str
    pipe: str
    cycles: int


@dataclass(frozen=True, slots=True)
class ScalarAccess:
    """One element that the scalar unit reads or writes, at byte `address` of an argument, or of the buffer (None).

    `kind` is the operation of the text (`load_scalar`, `store_scalar`, `tgetval`, `tsetval`), `code` what is written,
    empty for a read: that what it read decides has been decided. A write to a tile counts for all `tile_bytes`.
    """

    kind: str
    argument: str | None
    address: int
    code: bytes = b""
    tile_bytes: tuple[int, int] | None = None
    pipe: str = "S"

    @property
    def addresses(self) -> tuple[int, ...]:
        """Where the element is."""
        return (self.address,)

    def shifted(self, deltas: Deltas) -> ScalarAccess:
        """Return the access moved."""
        return replace(self, address=self.address + deltas[0]) if any(deltas) else self


@dataclass(frozen=True, slots=True)
class SetFlag(Unaddressed):
    """Signal `event` to pipe `waiter` once everything issued before it on `pipe` has finished."""

    pipe: str
    waiter: str
    event: int


@dataclass(frozen=True, slots=True)
class WaitFlag(Unaddressed):
    """Hold `pipe` until the signal (`signaller`, `pipe`, `event`) arrives, and consume it."""

    pipe: str
    signaller: str
    event: int


@dataclass(frozen=True, slots=True)
class Barrier(Unaddressed):
    """Later operations of `pipe` wait until all earlier ones retired; `pipe` ALL covers every pipe."""

    pipe: str
