"""Operations of the strided-repeat mechanism; those of the pipes around it are shared by all mechanisms.

A strided-repeat instruction works memory to memory: `repeats` steps over `lanes` elements each; every operand stream
advances by its own repeat stride, inside a repeat by its block stride (docs/reference/a2a3.md section 2.1). Control
state is captured at issue, so an operation carries the policy that held when it was issued, and needs no later look-up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from castsim.execution.pipe_operations import (
    BLOCK,
    ControlWrite,
    FlagSignal,
    FlagWait,
    PipeBarrier,
    ScalarWork,
    Transfer,
)
from castsim.execution.tree import Deltas
from castsim.isa.formats import Format
from castsim.numerics import Policy

__all__ = [
    "BLOCK",
    "Action",
    "BitwiseAnd",
    "ControlWrite",
    "DuplicateCode",
    "ElementwiseCast",
    "FlagSignal",
    "FlagWait",
    "PipeBarrier",
    "RoundToIntegral",
    "ScalarWork",
    "ScaledConvert",
    "Stream",
    "StridedInstruction",
    "StridedOperation",
    "TimedArithmetic",
    "Transfer",
]


@dataclass(frozen=True, slots=True)
class Stream:
    """One operand of a strided-repeat instruction.

    Lane e of repeat r lies at byte `address + r * step + 32 * b * block_stride + o` where b and o are the block and
    offset of element e in a packed row (two elements per byte for 4-bit formats, low nibble first). Strides count
    32-byte blocks.

    Operands that are packed closer than blocks (results of reductions and comparisons, mask bits, the source of a
    block broadcast) say so by `packed`, the bytes from repeat to repeat; `repeat_stride` is then 0. `elements` is the
    number of elements per repeat where it is not that of the instruction's active lanes.
    """

    address: int
    format: Format
    block_stride: int
    repeat_stride: int
    packed: int = 0
    elements: int = 0

    @property
    def step(self) -> int:
        """Bytes from repeat to repeat."""
        return self.packed or self.repeat_stride * BLOCK


@dataclass(frozen=True, slots=True)
class ElementwiseCast:
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
class DuplicateCode:
    """Write the code `value` to every active lane."""

    value: int


@dataclass(frozen=True, slots=True)
class BitwiseAnd:
    """Bitwise AND of two sources."""


@dataclass(frozen=True, slots=True)
class TimedArithmetic:
    """Part of a vector operation on tiles, whose values its `TileEffect` computes: time and byte streams only."""


Action = ElementwiseCast | RoundToIntegral | ScaledConvert | DuplicateCode | BitwiseAnd | TimedArithmetic


@dataclass(frozen=True, slots=True)
class StridedInstruction:
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
    def name(self) -> str:
        """What reports call it."""
        return self.mnemonic

    @property
    def addresses(self) -> tuple[int, ...]:
        """Destination first, then the sources."""
        return (self.destination.address, *(source.address for source in self.sources))

    def shifted(self, deltas: Deltas) -> StridedInstruction:
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


StridedOperation = StridedInstruction | Transfer | ControlWrite | ScalarWork | FlagSignal | FlagWait | PipeBarrier
