"""Instructions of the strided-repeat mechanism and their cycles.

An instruction works memory to memory, in `repeats` steps over `lanes` elements each; every operand stream advances
by its own repeat stride, inside a repeat by its block stride (docs/reference/a2a3.md section 2.1). Control state is
captured at issue, so an operation carries the policy in force when it was issued, and needs no later look-up.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import IllegalError, TargetDataError
from castsim.isa.formats import Codes, Format
from castsim.numerics.policy import Policy
from castsim.targets.strided_repeat import StridedBufferPorts, StridedRepeatTarget, VectorTiming


@dataclass(frozen=True, slots=True)
class Stream:
    """One operand of a strided-repeat instruction.

    Lane e of repeat r is at byte `address + r * step + 32 * b * block_stride + o` where b and o are the block and
    offset of element e in a packed row (two elements per byte for 4-bit formats, low nibble first). Strides count
    32-byte blocks.

    Operands that are packed closer than blocks (results of reductions and comparisons, mask bits, the source of a block
    broadcast) set `packed`, the bytes from repeat to repeat; `repeat_stride` is then 0. `elements` is the number of
    elements per repeat if it differs from that of the instruction's active lanes.
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
class Conversion:
    """Elementwise cast under a policy.

    `integral`: to an integral value of the same float format. With a `scale` (a code of f16), the product of it and an
    integer is rounded once.
    """

    policy: Policy
    integral: bool = False
    scale: int | None = None


@dataclass(frozen=True, slots=True)
class DuplicateCode:
    """Write the code `value` to every active lane."""

    value: int


@dataclass(frozen=True, slots=True)
class BitwiseAnd:
    """Bitwise AND of two sources."""


class LaneInputs(NamedTuple):
    """The buffer, the codes of the sources in their lanes, shape (repeats, lanes), and the active lanes (a slice or
    their numbers)."""

    buffer: NDArray[np.uint8]
    codes: list[Codes]
    lanes: slice | NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LaneWork:
    """The work of an instruction of the text: `run` returns the codes of the destination.

    `at_once`: all repeats read before any writes; `reach` are the bytes from the address of the last source that it may
    read beside its streams.
    """

    run: Callable[[LaneInputs], Codes]
    at_once: bool = False
    reach: int = 0


Action = Conversion | DuplicateCode | BitwiseAnd | LaneWork | None
"""The work of an instruction's lanes; None if `TileEffect` computes the values of its whole operation."""


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
    action: Action = None
    pipe: str = "V"

    @property
    def name(self) -> str:
        """The name in reports."""
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


# What an instruction costs (docs/reference/a2a3.md sections 6 and 8): functions on whole cycles. The event engine calls
# them as they are, the fast engine compiles them.


def passes(now: int, port_free: int, bank_free: int) -> int:
    """Return when a block passes that is requested at `now`: when its port and its bank are free."""
    return max(now, port_free, bank_free)


def next_repeat(interval_end: int, passed: int) -> int:
    """Return the start of the next repeat: after the interval, and after the last operand has passed its port."""
    return max(interval_end, passed + 1)


def is_delayed(passed: int, start: int, sources: int) -> int:
    """Whether operands of a repeat conflict: it begins at `start`, the last one passes at `passed`, two at once do."""
    return passed - start > (sources - 1) // 2


def result_delay(tail: int, at_once: int) -> int:
    """Return the delay of results after the next repeat's start; `at_once` makes it 0."""
    return 0 if at_once else tail


def results_due(next_start: int, delay: int) -> int:
    """Return when the results of a repeat should be in the buffer if the next one starts at `next_start`."""
    return next_start + delay


def drained(due: int, tail: int, delay: int) -> int:
    """Return the tick at which the pipe is empty: its stages need the tail even if results do not."""
    return due + tail - delay


def fills(always: int, in_flight: int, now: int, drain_end: int) -> int:
    """Return whether an instruction has to fill the pipe: it is empty, or the chip always does."""
    return always or (not in_flight and now >= drain_end)


def write_asked(due: int) -> int:
    """Return when results request their blocks that should be in the buffer at `due`: see `written`."""
    return due - 1


def written(passed: int) -> int:
    """Return when a block is in the buffer: one cycle after it has passed the port."""
    return passed + 1


# Where blocks lie in the banked buffer: block n in group n mod `groups`, its port and its bank.
#
# Source: docs/reference/a2a3.md section 8.

Places = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""The read port, write port and bank of every block; addresses beyond the buffer wrap around."""


@lru_cache(maxsize=16)
def places_of_blocks(banks: StridedBufferPorts) -> Places:
    """Return the ports and banks of every block.

    Raises:
        TargetDataError: a bank does not hold whole blocks.
    """
    if banks.bank_bytes % BLOCK:
        raise TargetDataError(f"banks.bank_bytes {banks.bank_bytes} is not a multiple of the block size, {BLOCK} bytes")
    groups, rows = banks.groups, banks.bank_bytes // BLOCK
    group_of = tuple(block % groups for block in range(groups * banks.banks_per_group * rows))
    bank_of = tuple(group * banks.banks_per_group + block // groups // rows for block, group in enumerate(group_of))
    return group_of, tuple(group + groups for group in group_of), bank_of


# Which bytes and blocks the lanes of a strided-repeat instruction touch.


def element_bits(stream: Stream) -> int:
    """Return the bits of one element in a packed row: 4-bit formats share bytes, all others fill whole ones."""
    return stream.format.bits if stream.format.bits == 4 else stream.format.storage_bits


def repeat_blocks(stream: Stream, lanes: int, mask: int) -> tuple[int, ...]:
    """Return the byte offsets, from the start of a repeat, of the blocks with at least one active lane.

    A block that several lanes share (block stride 0) passes once.
    """
    if stream.elements:
        lanes, mask = stream.elements, (1 << stream.elements) - 1
    return _repeat_blocks(element_bits(stream), stream.block_stride, lanes, mask)


@lru_cache(maxsize=1024)
def _repeat_blocks(bits: int, block_stride: int, lanes: int, mask: int) -> tuple[int, ...]:
    per_block = BLOCK * 8 // bits
    offsets = []
    for block in range((lanes + per_block - 1) // per_block):
        first = block * per_block
        count = min(per_block, lanes - first)
        if mask >> first & ((1 << count) - 1):
            offsets.append(block * block_stride * BLOCK)
    return tuple(dict.fromkeys(offsets))


def stream_extent(stream: Stream, repeats: int, lanes: int, mask: int) -> tuple[int, int]:
    """Return the bytes [start, end) that the active lanes of all repeats span; empty if there are none."""
    highest = stream.elements or (mask & ((1 << lanes) - 1)).bit_length()
    if not highest or not repeats:
        return stream.address, stream.address
    bits = element_bits(stream)
    block, offset = divmod((highest * bits + 7) // 8 - 1, BLOCK)
    last = (repeats - 1) * stream.step + block * stream.block_stride * BLOCK + offset + 1
    return stream.address, stream.address + last


# What a strided-repeat engine can time, and the facts that an instruction rests on.

_HEAD_ALWAYS = "always"


class Pace(NamedTuple):
    """The times of one instruction with a given number of repeats.

    These are cycles before the first repeat, between repeats, after the last one, those lost there by number of delayed
    repeats, and until the results are in the buffer, of which `late` belong to the startup; `at_once` if they already
    are; `always` if it also fills a busy pipe.
    """

    head: int
    interval: int
    rest: int
    lost: tuple[int, ...]
    tail: int
    late: int
    at_once: int
    always: int


@lru_cache(maxsize=1 << 14)
def _pace(row: VectorTiming, tail_of_pipe: int, repeats: int) -> Pace:
    lost = tuple(map(row.lost, range(repeats + 1))) if row.conflict_cycles else (0,) * (repeats + 1)
    tail = row.tail(repeats, tail_of_pipe)
    at_once, always = int(row.results_at_once), int(row.fills_always)
    return Pace(row.head, row.interval, row.rest(repeats), lost, tail, row.late, at_once, always)


def pace_of(target: StridedRepeatTarget, row: str, repeats: int) -> Pace:
    """Return the times of an instruction from its timing row, for a number of repeats."""
    return _pace(target.timing.vector[row], target.timing.vector_pipe.tail_cycles, repeats)


def start_ctrl(target: StridedRepeatTarget) -> int:
    """Return the initial CTRL of a kernel, from the target's options."""
    ctrl = with_bit(0, target.control.float_saturation_off, bool(target.option("float_saturation_off_at_start")))
    return with_bit(ctrl, target.control.integer_saturation_off, bool(target.option("integer_saturation_off_at_start")))


def with_bit(value: int, bit: int, on: bool) -> int:
    """Return `value` with one bit set or cleared."""
    return value | 1 << bit if on else value & ~(1 << bit)


def changes_mask(operation: object, target: StridedRepeatTarget) -> bool:
    """Return whether an operation of the vector pipe writes control state that the next instruction waits for."""
    return isinstance(operation, ControlWrite) and operation.pipe == target.pipes.vector


def check_vector(operation: object, target: StridedRepeatTarget) -> None:
    """Reject nodes other than vector instructions of this mechanism, and timing rows that the target lacks.

    Raises:
        IllegalError: there is such a node or row; the message names the rows that the target has.
    """
    if changes_mask(operation, target):
        return
    if not isinstance(operation, StridedInstruction):
        raise IllegalError(f"target '{target.name}' cannot execute a {type(operation).__name__}")
    if operation.timing not in target.timing.vector:
        raise IllegalError(
            f"target '{target.name}' has no vector timing '{operation.timing}'", legal=target.timing.vector
        )


def facts_of(operation: StridedInstruction) -> tuple[str, ...]:
    """Return the paths of the facts behind an instruction."""
    return (f"timing.vector.{operation.timing}", "timing.vector_pipe", "banks", "options.vector_head")


def always_fills(target: StridedRepeatTarget) -> bool:
    """Return whether an instruction fills the pipe even if it is busy."""
    return target.option("vector_head") == _HEAD_ALWAYS
