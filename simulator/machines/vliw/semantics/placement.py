"""Which element of which register a conversion reads and writes (docs/reference/tpc.md section 2.2).

With r the ratio of the widths, i an element of the wide side and k a lane, the narrow element of a pair is r*i + k.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from castsim.isa.codes import Codes
from castsim.isa.formats import Format
from castsim.machines.vliw.semantics.interface import Mask, OperandValues, Value
from castsim.machines.vliw.semantics.lanes import elements, lanes_of, vector_of

Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class ElementPlacement:
    """Element numbers of every conversion that one instruction performs, counted through the registers of a group.

    `gather` and `scatter` are the elements read and written, `places` the byte of the narrow element in its own
    register, whose predicate bit decides. `lane` numbers the conversions within a register, for random words;
    `sources` and `destinations` are numbers of registers.
    """

    gather: Indices
    scatter: Indices
    places: Indices
    lane: Indices
    sources: int
    destinations: int


def place(src: Format, dst: Format, vector_bytes: int, *, lane: int | None, registers: int) -> ElementPlacement:
    """Place the conversions of an instruction.

    `lane` is the lane_sel of a single_lane form, None for all_lanes; `registers` is how many registers an instruction
    between types of equal width converts.
    """
    ratio = max(src.bits, dst.bits) // min(src.bits, dst.bits)
    narrow_bits = min(src.bits, dst.bits)
    wide = vector_bytes * 8 // max(src.bits, dst.bits)
    if ratio == 1:
        every = np.arange(wide * registers)
        within = every % wide
        return ElementPlacement(every, every, within * narrow_bits // 8, within, registers, registers)
    if lane is not None:
        slots = np.arange(wide)
        narrow = slots * ratio + lane
        own = slots
    else:
        narrow = np.arange(wide * ratio)
        slots = narrow % ratio * wide + narrow // ratio
        own = narrow
    group = 1 if lane is not None else ratio
    places = narrow * narrow_bits // 8
    if dst.bits < src.bits:
        return ElementPlacement(slots, narrow, places, own, group, 1)
    return ElementPlacement(narrow, slots, places, own, 1, group)


def admitted(placement: ElementPlacement | None, operands: OperandValues) -> Mask | None:
    """Return which conversions a vector predicate admits, None if there is no such predicate."""
    if placement is None or not isinstance(operands.predicate, np.ndarray):
        return None
    return operands.predicate[placement.places]


def gathered(value: Value, src: Format, where: Indices) -> Codes:
    """Return elements of a vector or of a group of vectors."""
    return elements(value, src)[where]


def scattered(
    results: Codes, dst: Format, placement: ElementPlacement, operands: OperandValues, vector_bytes: int
) -> Value:
    """Return the destination with the results in their places, and income where none is or the predicate is false."""
    lanes = lanes_of(dst, vector_bytes)
    income = operands.income
    where, kept = placement.scatter, results
    active = admitted(placement, operands)
    if active is not None:
        where, kept = where[active], results[active]
    if where.size == lanes * placement.destinations or income is None:
        out = np.zeros(lanes * placement.destinations, results.dtype)
    else:
        out = elements(income, dst).astype(results.dtype)
    out[where] = kept
    if placement.destinations == 1 and not isinstance(income, tuple):
        return vector_of(out, dst)
    return tuple(vector_of(part, dst) for part in out.reshape(placement.destinations, lanes))
