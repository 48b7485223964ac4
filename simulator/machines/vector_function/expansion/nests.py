"""The loop nests of a function as they are written: what differs from the nests that are timed.

Source: docs/reference/micro.md section 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from castsim.machines.vector_function.expansion.constants import Given
from castsim.machines.vector_function.operations import (
    Compute,
    CountDown,
    Load,
    Nest,
    RegisterOperation,
    Store,
    VectorFunction,
)

MASK_ELEMENT = "u8"
"""The element of pointers to predicates in memory."""


@dataclass(frozen=True, slots=True)
class Written:
    """A nest that is written. `offsets` are bytes by which loads stand beyond their trip's place."""

    nest: Nest
    offsets: Mapping[Load, int] = field(default_factory=dict)


def written(nest: Nest, given: Given | None) -> Written:
    """Return a nest in the form in which it is written."""
    if given is None:
        return Written(nest)
    if given.structure == "compare" and given.format.storage_bits == 32 and nest.trips > 1:
        return _in_pairs(nest)
    if given.structure == "row_expansion":  # a block is not its first element again and again
        return Written(replace(nest, row=tuple(_spread(item, given.format.storage_bits) for item in nest.row)))
    if given.operation.accumulates:
        return Written(_with_destination(nest))
    return Written(nest)


def _spread(item: RegisterOperation, width: int) -> RegisterOperation:
    return replace(item, distribution=f"BRC_B{width}") if isinstance(item, Load) else item


def _with_destination(nest: Nest) -> Nest:
    """Load what the destination holds too, which an instruction that adds to it needs."""
    load = Load(("before",), "NORM", -1, (nest.destination_row, nest.destination_trip))
    return replace(nest, trip=(load, *nest.trip))


def _in_pairs(nest: Nest) -> Written:
    """Take two registers of 32-bit lanes a trip: the bits of one are too few for the store of a predicate."""
    trip: list[RegisterOperation] = []
    offsets: dict[Load, int] = {}
    loads = [item for item in nest.trip if isinstance(item, Load)]
    (compare,) = (item for item in nest.trip if isinstance(item, Compute))
    for number in range(2):
        for load in loads:
            row, step = load.steps or (nest.source_row, nest.source_trip)
            one = replace(load, results=tuple(f"{name}{number}" for name in load.results), steps=(row, 2 * step))
            offsets[one] = number * step
            trip.append(one)
    for number in range(2):
        sources = tuple(f"{name}{number}" for name in compare.sources)
        trip.append(CountDown(f"p{number}", compare.width, nest.elements, next(iter(nest.counters))))
        trip.append(replace(compare, results=(f"q{number}",), sources=sources))
    trip.append(Compute("pdintlv", ("q",), ("q0", "q1"), compare.width))
    trip.append(Store("q", "p", "MASK_B16"))
    pairs = replace(
        nest, trips=-(-nest.trips // 2), elements=2 * nest.elements, trip=tuple(trip),
        destination_trip=2 * nest.destination_trip, source_trip=2 * nest.source_trip,
    )  # fmt: skip
    return Written(pairs, offsets)


def needs_barrier(given: Given | None) -> bool:
    """Whether each nest of an operation loads what the one before it has stored."""
    return given is not None and (given.structure == "part" or given.work.binary)


def element_of(function: VectorFunction, nest: Nest, item: Load | Store) -> str:
    """Return the element of the pointer of an access."""
    if item.distribution.startswith("MASK"):
        return MASK_ELEMENT
    if isinstance(item, Load):
        return (function.destination_format if item.operand < 0 else function.source_format).name
    return (function.destination_format if nest.writes is None else function.source_format).name


def pointer_number(nest: Nest, item: Load | Store) -> int:
    """Return the number of an access's address among those of the function."""
    if isinstance(item, Load):
        return 1 + item.operand
    return 0 if nest.writes is None else 1 + nest.writes
