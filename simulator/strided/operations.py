"""Operations of the strided-repeat mechanism and of the pipes around it.

A strided-repeat instruction works memory to memory: `repeats` steps over `lanes` elements each; every operand stream
advances by its own repeat stride, inside a repeat by its block stride (a2a3.md section 2.1). Control state is
captured at issue, so an operation carries the policy that held when it was issued, and needs no later look-up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from isa.formats import Format
from simulator.numerics import Policy
from simulator.tree import Deltas

BLOCK = 32
"""Bytes of one buffer access, the unit of strides (the instruction set's own definition, not a chip's)."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One operand of a strided-repeat instruction.

    Lane e of repeat r lies at byte `address + 32 * (r * repeat_stride + b * block_stride) + o` where b and o are the
    block and offset of element e in a packed row (two elements per byte for 4-bit formats, low nibble first).
    Strides count 32-byte blocks.
    """

    address: int
    format: Format
    block_stride: int
    repeat_stride: int


@dataclass(frozen=True, slots=True)
class Convert:
    """Element-wise cast under a policy."""

    policy: Policy


@dataclass(frozen=True, slots=True)
class RoundToIntegral:
    """Round to an integral value of the same float format."""

    policy: Policy


@dataclass(frozen=True, slots=True)
class ScaledConvert:
    """Integer times the f16 `scale` (a code), rounded once to the destination."""

    scale: int
    policy: Policy


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Write the code `value` to every active lane."""

    value: int


@dataclass(frozen=True, slots=True)
class BitwiseAnd:
    """Bitwise AND of two sources."""


Action = Convert | RoundToIntegral | ScaledConvert | Duplicate | BitwiseAnd


@dataclass(frozen=True, slots=True)
class VectorOperation:
    """One strided-repeat instruction.

    `timing` names the target's timing row (`vconv`), `lanes` is the number of elements of a full repeat, `mask` the
    128-bit lane mask captured at issue (bit i enables lane i of every repeat).
    """

    mnemonic: str
    timing: str
    repeats: int
    lanes: int
    mask: int
    destination: Stream
    sources: tuple[Stream, ...]
    action: Action
    pipe: str = "V"

    @property
    def addresses(self) -> tuple[int, ...]:
        """Destination first, then the sources."""
        return (self.destination.address, *(source.address for source in self.sources))

    def shifted(self, deltas: Deltas) -> VectorOperation:
        """Return the operation with its streams moved by `deltas` bytes."""
        if not any(deltas):
            return self
        first, *rest = deltas
        return replace(
            self,
            destination=replace(self.destination, address=self.destination.address + first),
            sources=tuple(
                replace(source, address=source.address + delta)
                for source, delta in zip(self.sources, rest, strict=True)
            ),
        )


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
    """Scalar work that decides path or addresses: `kind` is `arithmetic` or `loop` (one loop turnaround)."""

    kind: str
    pipe: str = "S"


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


StridedOperation = VectorOperation | Transfer | ControlWrite | ScalarWork | SetFlag | WaitFlag | Barrier
