"""Operations of the vector-function mechanism.

A vector function is one operation of the vector pipe: it runs loop nests whose trips load registers from the buffer,
compute, and store registers to it. Loops stay loops here: a nest says how often its trip runs and how far its
addresses move, and engines and values read the same register operations. Meaning of each: a5.md sections 1.1, 1.2.

Registers (`v..`), predicates and scalar counters are named as in the kernel text. A predicate has one bit per byte of
a register; a lane of w bytes is governed by the bit of its first byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from isa.formats import Format
from simulator.dataflow.operations import Barrier, ControlWrite, ScalarWork, SetFlag, Transfer, WaitFlag
from simulator.numerics import Policy
from simulator.tree import Deltas


@dataclass(frozen=True, slots=True)
class Load:
    """Fill `results` from the trip's source address by a distribution mode; not predicated."""

    results: tuple[str, ...]
    distribution: str


@dataclass(frozen=True, slots=True)
class Store:
    """Write the lanes of `source` that `predicate` enables, `offset` bytes beyond the trip's destination address."""

    source: str
    predicate: str
    distribution: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Convert:
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


@dataclass(frozen=True, slots=True)
class Bitwise:
    """`vor` or `vand` of two registers; inactive lanes (of `width` bits) become 0."""

    mnemonic: str
    result: str
    sources: tuple[str, str]
    predicate: str
    width: int


@dataclass(frozen=True, slots=True)
class Duplicate:
    """`vdup`: every lane of `width` bits holds `value`."""

    result: str
    width: int
    value: int


@dataclass(frozen=True, slots=True)
class Ascend:
    """`vci`: lane i of `width` bits holds `start + i`."""

    result: str
    width: int
    start: int


@dataclass(frozen=True, slots=True)
class Multiply:
    """`vmuls`: lanes of `width` bits times `factor`, low bits kept."""

    result: str
    source: str
    width: int
    factor: int


@dataclass(frozen=True, slots=True)
class Interleave:
    """`vintlv`: the lanes of both sources in turn; the first result holds those of the lower halves."""

    results: tuple[str, str]
    sources: tuple[str, str]
    width: int


@dataclass(frozen=True, slots=True)
class Gather:
    """`vselr`: byte i of the result is the byte of `source` that byte i of `index` names."""

    result: str
    source: str
    index: str


@dataclass(frozen=True, slots=True)
class SetAll:
    """`pset ALL`: a predicate of ones for lanes of `width` bits."""

    result: str
    width: int


@dataclass(frozen=True, slots=True)
class CountDown:
    """`plt`: as many leading lanes of `width` bits as `counter` says, at most `take`; the counter loses `take`.

    A constant has no counter: `take` lanes.
    """

    result: str
    width: int
    take: int
    counter: str | None


@dataclass(frozen=True, slots=True)
class Spread:
    """`punpack LOWER`: every bit of the lower half of a predicate becomes two, the first of which holds it."""

    result: str
    source: str


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


RegisterOperation = (
    Load
    | Store
    | Convert
    | Bitwise
    | Duplicate
    | Ascend
    | Multiply
    | Interleave
    | Gather
    | SetAll
    | CountDown
    | Spread
    | TripSelect
    | MemoryBarrier
)


@dataclass(frozen=True, slots=True)
class Nest:
    """A row loop around an inner loop (2D), or one loop (1D: `row_loop` False, `rows` 1).

    A row consists of `count` elements, `elements` per trip. Trip k of row r loads from byte
    `source + r * source_row + k * source_trip` and stores at `destination + r * destination_row + k *
    destination_trip` of the function. `counters` are set at the start of each row, then `row` runs, then the trips.
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

    @property
    def runs(self) -> bool:
        """Whether any trip is executed."""
        return self.rows > 0 and self.trips > 0


@dataclass(frozen=True, slots=True)
class VectorFunction:
    """One launch: `setup` once, then the nests in order, on registers of `register_bytes`.

    `source` and `destination` are the byte addresses of the tiles. `timed` are the nests that an engine times; they
    differ from `nests` only where published cycles are those of another instruction sequence.
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

    @property
    def addresses(self) -> tuple[int, ...]:
        """Destination first, then the source."""
        return (self.destination, self.source)

    def shifted(self, deltas: Deltas) -> VectorFunction:
        """Return the function with both tiles moved by `deltas` bytes."""
        if not any(deltas):
            return self
        return replace(self, destination=self.destination + deltas[0], source=self.source + deltas[1])


VectorFunctionOperation = VectorFunction | Transfer | ControlWrite | ScalarWork | SetFlag | WaitFlag | Barrier
