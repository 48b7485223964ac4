"""Predicate instructions (docs/reference/micro.md section 5).

A predicate has 256 bits. Those of lanes of w bits are every (w / 8)-th; instructions that name no width work on all
256 alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from castsim.isa.errors import IllegalError
from castsim.machines.vector_function.lanes.operands import Operands, Value, half_of, signed
from castsim.machines.vector_function.lanes.registers import REGISTER_BYTES, Bits, Mask, mask_of

_LENGTHS = (1, 2, 3, 4, 8, 16, 32, 64, 128)
PATTERNS = ("PAT_ALL", "PAT_ALLF", "PAT_H", "PAT_Q", "PAT_M3", "PAT_M4", *(f"PAT_VL{count}" for count in _LENGTHS))
"""The words of `pset` and `pge`."""


def counted(operands: Operands) -> tuple[Value, ...]:
    """`plt`: the first n lanes, and the count that is left, max(n - lanes, 0)."""
    (count,), width = operands.scalars, operands.width
    number = signed(count, 32)
    lanes = REGISTER_BYTES * 8 // width
    return mask_of(np.arange(lanes) < number, width), max(number - lanes, 0)


def counted_piece(operands: Operands) -> tuple[Value, ...]:
    """`pltm`: lane i where k * lanes + i < n."""
    (piece, count), width = operands.scalars, operands.width
    lanes = REGISTER_BYTES * 8 // width
    return (mask_of(signed(piece, 16) * lanes + np.arange(lanes) < signed(count, 32), width),)


def pattern(operands: Operands) -> tuple[Value, ...]:
    """`pset` and `pge`: the lanes that a word names.

    Raises:
        IllegalError: no such pattern.
    """
    (word,) = operands.words
    if word not in PATTERNS:
        raise IllegalError(f"no predicate pattern {word}", legal=PATTERNS)
    lanes = REGISTER_BYTES * 8 // operands.width
    lane = np.arange(lanes)
    if word in ("PAT_H", "PAT_Q"):
        count = lanes // (2 if word == "PAT_H" else 4)
        last = operands.target.option("micro_predicate_side") == "last"
        chosen = lane >= lanes - count if last else lane < count
    elif word in ("PAT_M3", "PAT_M4"):
        chosen = lane % int(word[-1]) == 0
    else:
        chosen = lane < {"PAT_ALL": lanes, "PAT_ALLF": 0}.get(word, int(word[6:]) if word[:6] == "PAT_VL" else 0)
    return (mask_of(chosen, operands.width),)


_LOGIC: Mapping[str, Callable[[Bits, Bits], Bits]] = {
    "pand": np.logical_and,
    "por": np.logical_or,
    "pxor": np.logical_xor,
}


def logic(operands: Operands) -> tuple[Value, ...]:
    """`pand`, `por`, `pxor`: bit by bit, 0 where the governing mask is 0."""
    one, two, mask = operands.masks
    bits = _LOGIC[operands.name](one.bits, two.bits) & mask.bits
    return (Mask(bits, (one.defined & two.defined | ~mask.bits) & mask.defined),)


def inverted(operands: Operands) -> tuple[Value, ...]:
    """`pnot`: every bit inverted, 0 where the governing mask is 0."""
    one, mask = operands.masks
    return (Mask(~one.bits & mask.bits, (one.defined | ~mask.bits) & mask.defined),)


def chosen(operands: Operands) -> tuple[Value, ...]:
    """`psel`: the bit of the first where the third is 1, of the second elsewhere."""
    one, two, which = operands.masks
    bits = np.where(which.bits, one.bits, two.bits)
    return (Mask(bits, np.where(which.bits, one.defined, two.defined) & which.defined),)


def packed(operands: Operands) -> tuple[Value, ...]:
    """`ppack`: bit 2i of the source is bit i of the named half; the other half is 0."""
    (source,) = operands.masks
    half = half_of(operands.words[0])
    bits, defined = np.zeros(REGISTER_BYTES, np.bool_), np.ones(REGISTER_BYTES, np.bool_)
    place = slice(half * REGISTER_BYTES // 2, (half + 1) * REGISTER_BYTES // 2)
    bits[place], defined[place] = source.bits[::2], source.defined[::2]
    return (Mask(bits, defined),)


def unpacked(operands: Operands) -> tuple[Value, ...]:
    """`punpack`: bit i of the named half is bit 2i of the result; odd bits are 0."""
    (source,) = operands.masks
    half = half_of(operands.words[0])
    place = slice(half * REGISTER_BYTES // 2, (half + 1) * REGISTER_BYTES // 2)
    return (mask_of(source.bits[place], 16, source.defined[place]),)


def interleaved(operands: Operands) -> tuple[Value, ...]:
    """`pintlv`: the lanes of both masks in turn; the first result has those of the lower halves."""
    one, two = operands.masks
    return _joined(operands.width, lambda a, b: np.stack((a, b), axis=1).ravel(), one, two)


def deinterleaved(operands: Operands) -> tuple[Value, ...]:
    """`pdintlv`: the even lanes of both masks laid end to end, and the odd ones."""
    one, two = operands.masks

    def parted(a: Bits, b: Bits) -> Bits:
        both = np.concatenate((a, b))
        return np.concatenate((both[::2], both[1::2]))

    return _joined(operands.width, parted, one, two)


def _joined(width: int, arrange: Callable[[Bits, Bits], Bits], one: Mask, two: Mask) -> tuple[Value, ...]:
    bits = arrange(one.lanes(width), two.lanes(width))
    defined = arrange(one.defined_lanes(width), two.defined_lanes(width))
    lanes = bits.size // 2
    return mask_of(bits[:lanes], width, defined[:lanes]), mask_of(bits[lanes:], width, defined[lanes:])


def same_bits(operands: Operands) -> tuple[Value, ...]:
    """`pbitcast`: another lane width for the same bits."""
    return (operands.masks[0],)
