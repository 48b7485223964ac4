"""Operations of the vector-function mechanism.

A vector function is one operation of the vector pipe: it runs loop nests whose trips load registers from the buffer,
compute, and store registers to it. Loops stay loops here: a nest states the number of its trips and the movement of its
addresses, and engines and values read the same register operations. Meaning of each: docs/reference/a5.md sections
1.1, 1.2.

Registers (`v..`), predicates and scalar counters are named as in the kernel text. A predicate has one bit per byte of
a register; a lane of w bytes is governed by the bit of its first byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from castsim.execution.tree import Deltas
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.formats import Format, format_named
from castsim.isa.pto.value_types import MaskType, MicroOperation, Type, VectorType, vector
from castsim.numerics.policy import Policy
from castsim.targets.vector_function import DESTINATION, NamedDistribution, distribution_of

# The instructions of a loop nest: operations of the micro level (`MicroOperation`) under the names of the kernel text.
#
# An instruction states the types of its results; operands have those of the instructions that make them. Pointers are
# numbers: operand 0 is the source, `DESTINATION` the destination, the others are the `operands` of the function.
# Beside the words of the text there are `row` and `trip` (bytes between rows and trips of a load, where they are not
# the nest's), `offset` (bytes beyond the trip's address), `take` (lanes that a `plt` sets at most), `full` (what a
# `select` gives in all trips of a row but the last), `number` (a scalar operand), and `held` (cycles for which an
# instruction holds the serial port where its addresses decide them).

LOADS = ("vlds", "vldsx2")
_UNTIMED = frozenset((*LOADS, "vsts", "pset", "plt", "select", "mem_bar"))
_WIDTHS = ("_b8", "_b16", "_b32", "_b64")
_OF_MASKS = frozenset(("vcmp", "vcmps", "punpack", "ppack", "pintlv", "pdintlv", "psel"))


def compute_step(
    name: str, results: tuple[str, ...], sources: tuple[str, ...], width: int, **words: str | int
) -> MicroOperation:
    """Return an instruction on registers and predicates with lanes of `width` bits (0: its name states it).

    `sources` are registers, then predicates. A result that is also a source is accumulated from trip to trip.
    Functions of vector operations other than casts carry time and byte streams only: their instructions leave out
    constants, and the values of a vector operation are computed as a whole.
    """
    kind: Type = MaskType(width) if name in _OF_MASKS else vector(f"i{width or 32}")
    kinds = (kind,) * len(results) if width else ()
    return MicroOperation(name, sources, (), results, kinds, tuple((key, str(word)) for key, word in words.items()))


def load_step(
    results: tuple[str, ...], distribution: str, operand: int = 0, steps: tuple[int, int] | None = None
) -> MicroOperation:
    """Return the load of `results` from an operand by a distribution mode.

    `steps` are the bytes between rows and between trips. A load in a mode for masks fills a predicate: one bit per
    lane.
    """
    moves = {} if steps is None else {"row": steps[0], "trip": steps[1]}
    name = LOADS[len(results) > 1]
    return with_words(MicroOperation(name, (str(operand),), (), results), dist=distribution, **moves)


def store_step(source: str, predicate: str, distribution: str, offset: int = 0) -> MicroOperation:
    """Return the store of the lanes of `source` that `predicate` enables, `offset` bytes beyond the trip's address."""
    moved = {"offset": offset} if offset else {}
    return with_words(MicroOperation("vsts", (source, DESTINATION, predicate), ()), dist=distribution, **moved)


def count_step(result: str, width: int, take: int, counter: str | None) -> MicroOperation:
    """Return the `plt` of the leading `counter` lanes of `width` bits, at most `take`; the counter decreases by `take`.

    A constant has no counter: `take` lanes.
    """
    counters = () if counter is None else (counter,)
    return with_words(MicroOperation(f"plt_b{width}", counters, (), (result,), (MaskType(width),)), take=take)


def set_step(result: str, width: int) -> MicroOperation:
    """Return the `pset` of a predicate of ones for lanes of `width` bits."""
    return with_words(MicroOperation(f"pset_b{width}", (), (), (result,), (MaskType(width),)), pattern="PAT_ALL")


def select_step(result: str, full: int, tail: str) -> MicroOperation:
    """Return a scalar select: `full`, but on the last trip of a row the value of `tail`."""
    return with_words(MicroOperation("select", (tail,), (), (result,)), full=full)


def barrier_step(kinds: str) -> MicroOperation:
    """Return a `mem_bar`: earlier accesses of the first kind complete before later ones of the second (`VST_VST`)."""
    return with_words(MicroOperation("mem_bar", (), ()), barrier=kinds)


def with_words(node: MicroOperation, **words: str | int) -> MicroOperation:
    """Return an instruction with its words of some kinds replaced."""
    kept = {**dict(node.attributes), **{key: str(word) for key, word in words.items()}}
    return replace(node, attributes=tuple(kept.items()))


@lru_cache(maxsize=256)
def family(name: str) -> str:
    """Return an instruction's name without the width of its lanes."""
    return name.rpartition("_b")[0] if name.endswith(_WIDTHS) else name


def mnemonic(node: MicroOperation) -> str:
    """Return the name of an instruction without widths and modes."""
    return family(node.mnemonic)


def width_of(node: MicroOperation) -> int:
    """Return the lane width in bits of an instruction's results; 0 if it does not state it.

    The time of a conversion between formats does not depend on the width: 32.
    """
    if node.operand_types:
        return 32
    return next((kind.bits for kind in node.result_types if isinstance(kind, VectorType | MaskType)), 0)


def number_of(node: MicroOperation, key: str, default: int = 0) -> int:
    """Return a numeric word of an instruction."""
    text = node.word(key)
    return default if text is None else int(text)


def distribution_in(node: MicroOperation) -> NamedDistribution:
    """Return the distribution of a load or a store."""
    return distribution_of(node.word("dist") or "NORM")


def formats_of(node: MicroOperation) -> tuple[Format, Format] | None:
    """Return the formats between which an instruction converts; None if it does not, or does not state them."""
    kinds = (*node.operand_types, *node.result_types)
    formats = [format_named(kind.element) for kind in kinds if isinstance(kind, VectorType)]
    return (formats[0], formats[1]) if node.operand_types and len(formats) > 1 else None


def computes(node: MicroOperation) -> bool:
    """Return whether an instruction takes time; predicates by counters are ready on demand.

    Source: docs/reference/a5.md section 7.
    """
    return mnemonic(node) not in _UNTIMED


def is_load(node: MicroOperation) -> bool:
    """Return whether an instruction loads registers or a predicate."""
    return node.mnemonic in LOADS


LONG_DIVISION = "division"
"""Mnemonic of the long body of the high-precision division, which is timed as a whole (`timing.division`)."""

INTEGER_DIVISION = "integer_division"
"""The mnemonic of integer division, which has the timing of a vector instruction but is not an instruction."""


@dataclass(frozen=True, slots=True)
class Nest:
    """A row loop around an inner loop (2D), or one loop (1D: `row_loop` False, `rows` 1).

    A row consists of `count` elements, `elements` per trip. Trip k of row r loads from byte `source + r * source_row +
    k * source_trip` and stores at `destination + r * destination_row + k * destination_trip` of the function, unless a
    load has separate steps. `counters` are set at the start of each row, then `row` runs, then the trips, then `close`,
    whose stores write up to `close_bytes` at the row's own address.
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
    row: tuple[MicroOperation, ...]
    trip: tuple[MicroOperation, ...]
    source_row: int
    source_trip: int
    destination_row: int
    destination_trip: int
    close: tuple[MicroOperation, ...] = ()
    close_bytes: int = 0
    writes: int | None = None
    post_update: bool = False
    runtime_trips: bool = False
    broadcasts: int = 0
    paced: str | None = None

    @property
    def runs(self) -> bool:
        """Whether any trip is executed."""
        return self.rows > 0 and self.trips > 0


@dataclass(frozen=True, slots=True)
class VectorFunction:
    """One launch: `setup` once, then the nests in order, on registers of `register_bytes`.

    `source` and `destination` are the byte addresses of the tiles, `operands` those of other sources. `timed` are the
    nests that an engine times; they differ from `nests` only if published cycles belong to another instruction
    sequence. `policies` are those of a cast's conversions by their formats; an instruction may round differently.
    """

    name: str
    source: int
    destination: int
    source_format: Format
    destination_format: Format
    register_bytes: int
    setup: tuple[MicroOperation, ...]
    nests: tuple[Nest, ...]
    timed: tuple[Nest, ...]
    pipe: str
    operands: tuple[int, ...] = ()
    policies: Mapping[tuple[str, str], Policy] = field(default_factory=dict)

    @property
    def addresses(self) -> tuple[int, ...]:
        """Destination first, then the source, then all further operands."""
        return (self.destination, self.source, *self.operands)

    def operand(self, number: int) -> int:
        """Return the address of an operand as numbered in loads: 0 is the source."""
        return self.source if number == 0 else self.operands[number - 1]

    def shifted(self, deltas: Deltas) -> VectorFunction:
        """Return the function with every tile moved by `deltas` bytes."""
        if not any(deltas):
            return self
        destination, source, *others = (address + delta for address, delta in zip(self.addresses, deltas, strict=True))
        return replace(self, destination=destination, source=source, operands=tuple(others))


def of_every_trip(nest: Nest) -> tuple[MicroOperation, ...]:
    """Return the operations of a trip without predicates that do not change from row to row.

    A row loop around single trips has no inner loop, so predicates that depend only on counters are set before it
    (docs/reference/a5.md section 6.2, rule 3).
    """
    if not nest.row_loop or nest.trips > 1:
        return nest.trip
    loaded: set[str] = set()
    kept: list[MicroOperation] = []
    for item in nest.trip:
        if is_load(item) or (computes(item) and not loaded.isdisjoint(item.operands)):
            loaded.update(item.results)
        elif item.mnemonic in ("select", "punpack"):
            continue
        kept.append(item)
    return tuple(kept)


# Which byte goes where: index maps of converts and interleaves; those of loads and stores stand with them
# (docs/reference/a5.md sections 1.1, 1.2).
#
# Values and the whole-tile proof read the same maps, so that both speak of the same machine.

Index = NDArray[np.int64]

_PART = {"EVEN": 0, "ODD": 1, "P0": 0, "P1": 1, "P2": 2, "P3": 3}


@lru_cache(maxsize=16)
def interleave_maps(width: int, register_bytes: int) -> tuple[Index, Index]:
    """Return both results of an interleave of lanes of `width` bits as bytes of the two sources laid end to end."""
    size = width // 8
    lane, byte = np.divmod(np.arange(2 * register_bytes), size)
    chosen = (lane // 2) * size + byte + (lane % 2) * register_bytes
    return chosen[:register_bytes], chosen[register_bytes:]


@lru_cache(maxsize=16)
def deinterleave_maps(width: int, register_bytes: int) -> tuple[Index, Index]:
    """Return the even and the odd lanes of `width` bits as bytes of two registers laid end to end."""
    size = width // 8
    lane, byte = np.divmod(np.arange(register_bytes), size)
    return 2 * lane * size + byte, (2 * lane + 1) * size + byte


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

    Two elements of a 4-bit format fill one 8-bit lane, which corresponds to two elements of the other side.
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
    """Return the bits of one element in a register: 4-bit formats share bytes, all others fill whole ones."""
    return fmt.bits if fmt.bits == 4 else fmt.storage_bits
