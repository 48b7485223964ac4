"""Operations of the vector-function mechanism.

A vector function is one operation of the vector pipe: it runs loop nests whose trips load registers from the buffer,
compute, and store registers to it. Loops stay loops here: a nest states how often its trip runs and how far its
addresses move, and engines and values read the same register operations. Meaning of each: docs/reference/a5.md sections
1.1, 1.2.

Registers (`v..`), predicates and scalar counters are named as in the kernel text. A predicate has one bit per byte of
a register; a lane of w bytes is governed by the bit of its first byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from castsim.execution.pipe_operations import (
    ControlWrite,
    FlagSignal,
    FlagWait,
    PipeBarrier,
    ScalarWork,
    Transfer,
)
from castsim.execution.tree import Deltas
from castsim.isa.formats import Format
from castsim.numerics.policy import Policy
from castsim.targets.vector_function import DistributionMode, distribution_of


@dataclass(frozen=True, slots=True)
class Load:
    """Fill `results` from the trip's address of an operand by a distribution mode; not predicated.

    `operand` 0 is the source, the others are the `operands` of the function; `steps` are the bytes between rows and
    between trips, None for those of the nest's source. A load of the mode `MASK_B16` fills a predicate: one bit per
    lane of 16 bits.
    """

    results: tuple[str, ...]
    distribution: str
    operand: int = 0
    steps: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class StoreLanes:
    """Write the lanes of `source` that `predicate` enables, `offset` bytes beyond the trip's destination address."""

    source: str
    predicate: str
    distribution: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class ConvertLanes:
    """`vcvt` (or `vtrc`, if `integral`): convert lanes between formats; `part` chooses lanes where widths differ.

    Inactive lanes and, when narrowing, the lanes of other parts become 0.
    """

    result: str
    source: str
    predicate: str
    part: str | None
    src: Format
    dst: Format
    policy: Policy
    integral: bool = False

    @property
    def mnemonic(self) -> str:
        """The instruction's name."""
        return "vtrc" if self.integral else "vcvt"

    @property
    def results(self) -> tuple[str, ...]:
        """The registers that it writes."""
        return (self.result,)

    @property
    def sources(self) -> tuple[str, ...]:
        """The registers that it reads."""
        return self.source, self.predicate

    @property
    def width(self) -> int:
        """Bits of the lanes by which its time is known: that of a conversion does not depend on them."""
        return 32


@dataclass(frozen=True, slots=True)
class SetAll:
    """`pset ALL`: a predicate of ones for lanes of `width` bits."""

    result: str
    width: int


@dataclass(frozen=True, slots=True)
class CountDown:
    """`plt`: set the leading `counter` lanes of `width` bits, at most `take`; the counter decreases by `take`.

    A constant has no counter: `take` lanes.
    """

    result: str
    width: int
    take: int
    counter: str | None


@dataclass(frozen=True, slots=True)
class TripSelect:
    """A scalar select: `full`, but on the last trip of a row the value of `tail`."""

    result: str
    full: int
    tail: str


@dataclass(frozen=True, slots=True)
class MemoryBarrier:
    """`mem_bar`: earlier accesses of the first kind happen before later ones of the second (`VST_VST`)."""

    kinds: str


@dataclass(frozen=True, slots=True)
class Compute:
    """Any other instruction on registers and predicates: `mnemonic` on lanes of `width` bits (0: it names none).

    `sources` are registers, then predicates. A result that is also a source is accumulated from trip to trip.
    Functions of vector operations other than casts carry time and byte streams only: their instructions leave out
    constants, and the values of a vector operation are worked out as a whole.
    """

    mnemonic: str
    results: tuple[str, ...]
    sources: tuple[str, ...]
    width: int
    held: int | None = None
    """Cycles for which it holds the serial port where its addresses decide them; None: as the table of the target has
    it."""
    number: int | None = None
    """The scalar operand: the value of `vdup`, the start of `vci`, the factor of `vmuls`."""


LONG_DIVISION = "division"
"""Mnemonic of the long body of the high-precision division, which is timed as a whole (`timing.division`)."""

INTEGER_DIVISION = "integer_division"
"""The mnemonic of integer division, which has the timing of a vector instruction but is none."""


Computing = Compute | ConvertLanes
"""Instructions that take time; predicates by counters are ready when wanted.

Source: docs/reference/a5.md section 7.
"""

RegisterOperation = Load | StoreLanes | ConvertLanes | SetAll | CountDown | TripSelect | MemoryBarrier | Compute


@dataclass(frozen=True, slots=True)
class Nest:
    """A row loop around an inner loop (2D), or one loop (1D: `row_loop` False, `rows` 1).

    A row consists of `count` elements, `elements` per trip. Trip k of row r loads from byte `source + r * source_row +
    k * source_trip` and stores at `destination + r * destination_row + k * destination_trip` of the function, unless a
    load has separate steps. `counters` are set at the start of each row, then `row` runs, then the trips, then `close`,
    whose stores write up to `close_bytes` at the row's own place.
    `writes` is the operand that stores go to, None for the destination. `post_update`: loads advance their addresses
    themselves. `runtime_trips`: the number of trips of a row is known only at run time, so the loop over them turns
    between rows even for a single trip, which folds away otherwise (docs/reference/a5.md section 9). `broadcasts` are
    the scalars that each row of such a nest spreads before its trips. `paced` names the fact of `timing.paced` that
    separates trips.
    """

    rows: int
    row_loop: bool
    trips: int
    count: int
    elements: int
    counters: Mapping[str, int]
    row: tuple[RegisterOperation, ...]
    trip: tuple[RegisterOperation, ...]
    source_row: int
    source_trip: int
    destination_row: int
    destination_trip: int
    close: tuple[RegisterOperation, ...] = ()
    close_bytes: int = 0
    writes: int | None = None
    post_update: bool = False
    runtime_trips: bool = False
    broadcasts: int = 0
    paced: str | None = None

    @property
    def loops(self) -> bool:
        """Whether it needs a loop: for several trips, or as nobody knew that there is one."""
        return self.rows > 1 or self.trips > 1 or (self.runtime_trips and self.row_loop)

    @property
    def runs(self) -> bool:
        """Whether any trip is executed."""
        return self.rows > 0 and self.trips > 0


@dataclass(frozen=True, slots=True)
class VectorFunction:
    """One launch: `setup` once, then the nests in order, on registers of `register_bytes`.

    `source` and `destination` are the byte addresses of the tiles, `operands` those of further sources. `timed` are the
    nests that an engine times; they differ from `nests` only if published cycles belong to another instruction
    sequence. `placed`: they are timed instruction by instruction, as a micro program is.
    """

    name: str
    source: int
    destination: int
    source_format: Format
    destination_format: Format
    register_bytes: int
    setup: tuple[RegisterOperation, ...]
    nests: tuple[Nest, ...]
    timed: tuple[Nest, ...]
    pipe: str
    operands: tuple[int, ...] = ()
    placed: bool = False

    @property
    def addresses(self) -> tuple[int, ...]:
        """Destination first, then the source, then all further operands."""
        return (self.destination, self.source, *self.operands)

    def operand(self, number: int) -> int:
        """Return the address of an operand as loads count them: 0 is the source."""
        return self.source if number == 0 else self.operands[number - 1]

    def shifted(self, deltas: Deltas) -> VectorFunction:
        """Return the function with every tile moved by `deltas` bytes."""
        if not any(deltas):
            return self
        destination, source, *others = (address + delta for address, delta in zip(self.addresses, deltas, strict=True))
        return replace(self, destination=destination, source=source, operands=tuple(others))


VectorFunctionOperation = VectorFunction | Transfer | ControlWrite | ScalarWork | FlagSignal | FlagWait | PipeBarrier


# What an engine needs to know of a loop nest: counts and the chain of a trip, no values.
#
# Source of what matters: docs/reference/a5.md section 6.2 (rules 1 to 9 of the published cycles).


@dataclass(frozen=True, slots=True)
class NestProfile:
    """One loop nest as an engine sees it.

    `rows` x `trips` executions of the trip; `row_loop` tells whether the row loop exists at all. `barrier`: a barrier
    between stores precedes each store. `branch`: the trip holds a scalar select that does not fold away.
    `unpacks`: the load unpacks. `half_bytes`: an address counts half bytes (4-bit tiles). `source_bytes` are the bytes
    that a row reads, tails included.
    """

    rows: int
    trips: int
    row_loop: bool
    loads: int
    stores: int
    barrier: bool
    branch: bool
    unpacks: bool
    half_bytes: bool
    source_bytes: int


def profile(function: VectorFunction, nest: Nest) -> NestProfile:
    """Return the profile of one nest of a function (of `nests` or of `timed`)."""
    loads = [operation for operation in nest.trip if isinstance(operation, Load)]
    source_bits = nest.source_trip * 8 // nest.elements
    return NestProfile(
        rows=nest.rows,
        trips=nest.trips,
        row_loop=nest.row_loop,
        loads=len(loads),
        stores=sum(isinstance(operation, StoreLanes) for operation in nest.trip),
        barrier=any(isinstance(operation, MemoryBarrier) for operation in nest.trip),
        branch=nest.trips > 1 and any(isinstance(operation, TripSelect) for operation in nest.trip),
        unpacks=any(distribution_of(operation.distribution).mode is DistributionMode.UNPK for operation in loads),
        half_bytes=4 in (function.source_format.bits, function.destination_format.bits),
        source_bytes=-(-nest.count * source_bits // 8),
    )


def mnemonic(operation: RegisterOperation) -> str:
    """Return the instruction's name without widths and modes."""
    return operation.mnemonic if isinstance(operation, Computing) else _MNEMONICS[type(operation)]


_MNEMONICS: Mapping[type, str] = {
    Load: "vlds",
    StoreLanes: "vsts",
    SetAll: "pset",
    CountDown: "plt",
    TripSelect: "select",
    MemoryBarrier: "mem_bar",
}


def of_every_trip(nest: Nest) -> tuple[RegisterOperation, ...]:
    """Return the operations of a trip without predicates that do not change from row to row.

    A row loop around single trips has no inner loop, so that predicates that rest on counters alone are made before it
    (docs/reference/a5.md section 6.2, rule 3).
    """
    if not nest.row_loop or nest.trips > 1:
        return nest.trip
    loaded: set[str] = set()
    kept: list[RegisterOperation] = []
    for item in nest.trip:
        if isinstance(item, Load) or (isinstance(item, Computing) and not loaded.isdisjoint(item.sources)):
            loaded.update(item.results)
        elif isinstance(item, TripSelect) or mnemonic(item) == "punpack":
            continue
        kept.append(item)
    return tuple(kept)


# Which byte goes where: index maps of converts and interleaves; those of loads and stores stand with them
# (docs/reference/a5.md sections 1.1, 1.2).
#
# Values and the whole-tile proof read the same maps, so that both speak of the same machine.

Index = NDArray[np.int64]

_PART = {"PART_EVEN": 0, "PART_ODD": 1, "PART_P0": 0, "PART_P1": 1, "PART_P2": 2, "PART_P3": 3}


@lru_cache(maxsize=16)
def lane_starts(width: int, register_bytes: int) -> Index:
    """Return, for every register byte, the first byte of its lane of `width` bits: the bit that governs it."""
    return np.arange(register_bytes) // (width // 8) * (width // 8)


@lru_cache(maxsize=16)
def interleave_maps(width: int, register_bytes: int) -> tuple[Index, Index]:
    """Return both results of an interleave of lanes of `width` bits as bytes of the two sources laid end to end."""
    size = width // 8
    lane, byte = np.divmod(np.arange(2 * register_bytes), size)
    chosen = (lane // 2) * size + byte + (lane % 2) * register_bytes
    return chosen[:register_bytes], chosen[register_bytes:]


@dataclass(frozen=True)
class ConvertMap:
    """Elements of a convert: `source` and `destination` count elements of either format in the register.

    `governor` is the predicate bit of each element: that of the first byte of its wider side.
    """

    source: Index
    destination: Index
    governor: Index


@lru_cache(maxsize=128)
def convert_map(src: Format, dst: Format, part: str | None, register_bytes: int) -> ConvertMap:
    """Return which elements a convert reads and writes.

    Two elements of a 4-bit format fill one 8-bit lane, which pairs with two elements of the other side.
    """
    per_unit = 2 if 4 in (src.bits, dst.bits) else 1
    from_bits, to_bits = (per_unit * _bits(fmt) for fmt in (src, dst))
    wide = max(from_bits, to_bits)
    ratio = wide // min(from_bits, to_bits)
    unit, inside = np.divmod(np.arange(register_bytes * 8 // wide * per_unit), per_unit)
    offset = _PART[part] if part is not None else 0
    narrow = (unit * ratio + offset) * per_unit + inside
    straight = unit * per_unit + inside
    widening = to_bits > from_bits
    governor = straight * (wide // per_unit) // 8
    return ConvertMap(narrow if widening else straight, straight if widening else narrow, governor)


def _bits(fmt: Format) -> int:
    """Bits of one element in a register: 4-bit formats share bytes, all others fill whole ones."""
    return fmt.bits if fmt.bits == 4 else fmt.storage_bits
