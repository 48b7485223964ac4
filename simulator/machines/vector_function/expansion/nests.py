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

WIDE = 64
"""Bits of elements that are moved as two words."""

MASK_ELEMENT = "u8"
"""The element of pointers to predicates in memory."""


@dataclass(frozen=True, slots=True)
class Written:
    """A nest that is written. `offsets` are bytes by which loads stand beyond their trip's place."""

    nest: Nest
    offsets: Mapping[Load, int] = field(default_factory=dict)


def written(nest: Nest, given: Given | None) -> tuple[Written, ...]:
    """Return a nest in the form in which it is written."""
    if given is None:
        return (Written(nest),)
    if given.structure == "compare":
        keeps = ("spare_mask_bits", "keep") in given.behaviour.choices
        return _comparisons(nest, given.format.storage_bits, keeps=keeps)
    if given.structure == "row_expansion":  # a block is not its first element again and again
        return (Written(replace(nest, row=tuple(_spread(item, given.format.storage_bits) for item in nest.row))),)
    if given.operation.accumulates:
        return (Written(_with_destination(nest)),)
    if given.format.storage_bits == WIDE:
        return (Written(_in_words(nest)),)
    return (Written(nest),)


def _spread(item: RegisterOperation, width: int) -> RegisterOperation:
    return replace(item, distribution=f"BRC_B{width}") if isinstance(item, Load) else item


def _with_destination(nest: Nest) -> Nest:
    """Load what the destination holds too, which an instruction that adds to it needs."""
    load = Load(("before",), "NORM", -1, (nest.destination_row, nest.destination_trip))
    return replace(nest, trip=(load, *nest.trip))


def _in_words(nest: Nest) -> Nest:
    """Move elements of 64 bits as two of 32: no predicate has lanes of 64."""
    trip: list[RegisterOperation] = []
    for item in nest.trip:
        if isinstance(item, CountDown):
            trip.append(replace(item, width=32, take=2 * item.take))
        elif isinstance(item, Store):
            trip.append(replace(item, distribution="NORM_B32"))
        else:
            trip.append(item)
    return replace(nest, trip=tuple(trip), counters={name: 2 * start for name, start in nest.counters.items()})


def _comparisons(nest: Nest, width: int, *, keeps: bool) -> tuple[Written, ...]:
    """Return a comparison as its stores of predicates can be: of 16 bytes or 32.

    What a row has beyond them comes first, with the bits that are there kept, then all full ones.
    """
    each = 256 if width == 8 else 128
    full, rest = nest.count // each * each, nest.count % each
    return (
        *([_comparison(nest, width, full, rest, keeps=keeps)] if rest else []),
        *([_comparison(nest, width, 0, full, keeps=keeps)] if full else []),
    )


def _comparison(nest: Nest, width: int, first: int, count: int, *, keeps: bool) -> Written:
    """Return the comparison of some columns. 32-bit lanes go two registers a trip, unless there are fewer."""
    counter = next(iter(nest.counters))
    counters = {counter: count}
    each = 256 if width == 8 else 128
    registers = 2 if width == 32 and count > nest.elements else 1
    trip, offsets, found = _compared(nest, width, first, registers, counter)
    bits = min(16, width)
    if first or count < each:
        old = Load(("old",), f"MASK_B{bits}", -1, (nest.destination_row, each // 8))
        offsets[old] = first // 8
        counters["bits"] = count if keeps else -(-count // 8) * 8
        chosen = Compute("psel", ("kept",), (found, "old", "taken"), bits)
        trip, found = [old, *trip, CountDown("taken", bits, each, "bits"), chosen], "kept"
    store = Store(found, "p", f"MASK_B{bits}", first // 8)
    whole = replace(
        nest, trips=-(-count // each), count=count, elements=each, counters=counters, trip=(*trip, store),
        destination_trip=each // 8,
    )  # fmt: skip
    return Written(whole, offsets)


def _compared(
    nest: Nest, width: int, first: int, registers: int, counter: str
) -> tuple[list[RegisterOperation], dict[Load, int], str]:
    """Return the instructions up to a predicate of lanes of 8 or 16 bits, the places of their loads, its name."""
    trip: list[RegisterOperation] = []
    offsets: dict[Load, int] = {}
    loads = [item for item in nest.trip if isinstance(item, Load)]
    (compare,) = (item for item in nest.trip if isinstance(item, Compute))
    for number in range(registers):
        for load in loads:
            row, step = load.steps or (nest.source_row, nest.source_trip)
            one = replace(
                load, results=tuple(f"{name}{number}" for name in load.results), steps=(row, registers * step)
            )
            offsets[one] = first * width // 8 + number * step
            trip.append(one)
    for number in range(registers):
        sources = tuple(f"{name}{number}" for name in compare.sources)
        trip.append(CountDown(f"p{number}", width, nest.elements, counter))
        trip.append(replace(compare, results=(f"q{number}",), sources=sources))
    if width < 32:
        return trip, offsets, "q0"
    names = tuple(f"q{number}" for number in range(registers))
    trip.append(Compute("pdintlv" if registers > 1 else "ppack", ("q",), names, width))
    return trip, offsets, "q"


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
