"""Which byte goes where: index maps of distribution modes, converts and interleaves (docs/reference/a5.md sections 1.1,
1.2).

Values and the whole-tile proof read the same maps, so that both speak of the same machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from castsim.isa.formats import Format
from castsim.targets.register_text import Mode, distribution_of

Index = NDArray[np.int64]

_PART = {"PART_EVEN": 0, "PART_ODD": 1, "PART_P0": 0, "PART_P1": 1, "PART_P2": 2, "PART_P3": 3}


@lru_cache(maxsize=64)
def load_maps(distribution: str, register_bytes: int) -> tuple[Index, ...]:
    """Return, for every register a load fills, the memory byte that each register byte takes; -1: none.

    The upper half of an unpacked lane is not part of the element; it is zero here, and no kernel reads it.
    """
    everything = np.arange(register_bytes)
    read = distribution_of(distribution)
    if read.mode is Mode.NORM:
        return (everything,)
    size = (read.bits or 0) // 8
    lane, byte = np.divmod(everything, size)
    if read.mode is Mode.DINTLV:
        return tuple((2 * lane + odd) * size + byte for odd in (0, 1))
    wide, inside = np.divmod(everything, 2 * size)
    return (np.where(inside < size, wide * size + inside, -1),)


@lru_cache(maxsize=16)
def lane_starts(width: int, register_bytes: int) -> Index:
    """Return, for every register byte, the first byte of its lane of `width` bits: the bit that governs it."""
    return np.arange(register_bytes) // (width // 8) * (width // 8)


@dataclass(frozen=True)
class StoreMap:
    """Memory byte k comes from register byte `source[k]` and is written if predicate bit `governor[k]` is set."""

    source: Index
    governor: Index


@lru_cache(maxsize=64)
def store_map(distribution: str, register_bytes: int) -> StoreMap:
    """Return how a store writes: contiguous (NORM), or the low half of every lane, packed (PK)."""
    read = distribution_of(distribution)
    size = (read.bits or 0) // 8
    if read.mode is Mode.NORM:
        source = np.arange(register_bytes)
        return StoreMap(source, source // size * size)
    lane, byte = np.divmod(np.arange(register_bytes // 2), size // 2)
    return StoreMap(lane * size + byte, lane * size)


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
