"""The distribution modes of loads and stores as index maps (docs/reference/micro.md sections 4.1, 4.2).

Modes that tile kernels use too are those of `castsim.machines.vector_function.byte_maps`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from castsim.isa.errors import IllegalError
from castsim.machines.vector_function.byte_maps import Index, StoreMap, interleave_maps, load_maps, store_map
from castsim.machines.vector_function.lanes.registers import REGISTER_BYTES
from castsim.targets.dataflow import BLOCK_BYTES

_BYTES = np.arange(REGISTER_BYTES)


@dataclass(frozen=True, slots=True)
class LoadDistribution:
    """Where the bytes of registers come from.

    `places` holds for each register the byte of memory, counted from the address, that every register byte takes; -1
    is a byte of zero. `alignment` is what the address must be a multiple of.
    """

    name: str
    places: tuple[Index, ...]
    alignment: int

    @property
    def size(self) -> int:
        """Bytes of memory that belong to the access: always a power of two, those behind the last one used too."""
        return 1 << max(int(place.max()) for place in self.places).bit_length()


@dataclass(frozen=True, slots=True)
class StoreDistribution:
    """Where bytes of memory come from: byte k of the target is byte `source[k]` of the registers laid end to end.

    It is written if bit `governor[k]` of the mask is set, or always where `governor` is None. `width` is the lane
    width of the mask.
    """

    name: str
    source: Index
    governor: Index | None
    alignment: int
    width: int
    registers: int = 1


def _lanes(width: int) -> tuple[Index, Index]:
    """Return lane and byte in the lane of every register byte."""
    lane, byte = np.divmod(_BYTES, width // 8)
    return lane, byte


def _kept(name: str) -> Callable[[int], tuple[Index, ...]]:
    """A mode of tile kernels."""
    return lambda width: load_maps(f"{name}_B{width}", REGISTER_BYTES)


def _broadcast(width: int) -> tuple[Index, ...]:
    return (_lanes(width)[1],)


def _unpack_by_four(width: int) -> tuple[Index, ...]:
    lane, byte = _lanes(width)
    return (np.where(lane % 4 == 0, lane // 4 * (width // 8) + byte, -1),)


def _every(step: int) -> Callable[[int], tuple[Index, ...]]:
    """Lane i holds element `step * i`."""

    def places(width: int) -> tuple[Index, ...]:
        lane, byte = _lanes(width)
        return (lane * step * (width // 8) + byte,)

    return places


def _twice(width: int) -> tuple[Index, ...]:
    lane, byte = _lanes(width)
    return (lane // 2 * (width // 8) + byte,)


def _element_to_block(width: int) -> tuple[Index, ...]:
    return (_BYTES // BLOCK_BYTES * (width // 8) + _lanes(width)[1],)


_LOADS: Mapping[str, tuple[tuple[int, ...], int, Callable[[int], tuple[Index, ...]]]] = {
    "BRC": ((8, 16, 32), 0, _broadcast),
    "UNPK": ((8, 16, 32), 16, _kept("UNPK")),
    "UNPK4": ((8,), 16, _unpack_by_four),
    "US": ((8, 16), 16, _twice),
    "DS": ((8, 16), 32, _every(2)),
    "E2B": ((16, 32), 16, _element_to_block),
    "SPLT2CHN": ((8, 16), 32, _every(2)),
    "SPLT4CHN": ((8,), 32, _every(4)),
    "DINTLV": ((8, 16, 32), 32, _kept("DINTLV")),
}
"""Mode: lane widths, alignment in bytes (0: that of an element), map."""

_BLOCK_PAIRS = tuple(_BYTES // BLOCK_BYTES * 2 * BLOCK_BYTES + odd + _BYTES % BLOCK_BYTES for odd in (0, BLOCK_BYTES))

_FIXED: Mapping[str, LoadDistribution] = {
    each.name: each
    for each in (
        LoadDistribution("NORM", (_BYTES,), 32),
        LoadDistribution("BRC_BLK", (_BYTES % BLOCK_BYTES,), 32),
        LoadDistribution("UNPK4", _unpack_by_four(8), 16),
        LoadDistribution("BDINTLV", _BLOCK_PAIRS, 32),
    )
}
"""Loads whose name has no width."""

LOADS: Mapping[str, LoadDistribution] = {
    **_FIXED,
    **{
        f"{mode}_B{width}": LoadDistribution(f"{mode}_B{width}", places(width), alignment or width // 8)
        for mode, (widths, alignment, places) in _LOADS.items()
        for width in widths
    },
}
"""Every distribution of a load by name; those with two registers are of `vldsx2`."""

SINGLE_LOADS = tuple(name for name, each in LOADS.items() if len(each.places) == 1)
DOUBLE_LOADS = tuple(name for name, each in LOADS.items() if len(each.places) == 2)


def _packed(width: int, kept: int) -> StoreMap:
    """Return the map that keeps the low `kept` bits of every lane of `width` bits."""
    if width == 2 * kept:
        return store_map(f"PK_B{width}", REGISTER_BYTES)
    lane, byte = np.divmod(np.arange(REGISTER_BYTES * kept // width), kept // 8)
    return StoreMap(lane * (width // 8) + byte, lane * (width // 8))


def _masked(name: str, places: StoreMap, width: int) -> StoreDistribution:
    return StoreDistribution(name, places.source, places.governor, BLOCK_BYTES, width)


def _interleaved(width: int) -> StoreDistribution:
    both = np.concatenate(interleave_maps(width, REGISTER_BYTES))
    return StoreDistribution(f"INTLV_B{width}", both, None, BLOCK_BYTES, width, registers=2)


STORES: Mapping[str, StoreDistribution] = {
    each.name: each
    for each in (
        *(_masked(f"NORM_B{w}", store_map(f"NORM_B{w}", REGISTER_BYTES), w) for w in (8, 16, 32)),
        *(StoreDistribution(f"1PT_B{w}", np.arange(w // 8), None, w // 8, w) for w in (8, 16, 32)),
        _masked("PK_B16", _packed(16, 8), 16),
        _masked("PK_B32", _packed(32, 16), 32),
        _masked("PK_B64", _packed(64, 32), 32),
        _masked("PK4_B32", _packed(32, 8), 32),
        *(_interleaved(w) for w in (8, 16, 32)),
    )
}
"""Every distribution of a store by name; those of two registers are of `vstsx2`."""

SINGLE_STORES = tuple(name for name, each in STORES.items() if each.registers == 1)
DOUBLE_STORES = tuple(name for name, each in STORES.items() if each.registers == 2)
UNSUPPORTED_STORES = ("MRG4CHN_B8", "MRG2CHN_B8", "MRG2CHN_B16")
"""Modes that the instruction set has and the chip is reported to lack."""


@lru_cache(maxsize=64)
def load_distribution(name: str, registers: int = 1) -> LoadDistribution:
    """Return a distribution of a load that fills so many registers.

    Raises:
        IllegalError: no such mode; lists those there are.
    """
    found = LOADS.get(name)
    if found is None or len(found.places) != registers:
        instruction = "vlds" if registers == 1 else "vldsx2"
        legal = SINGLE_LOADS if registers == 1 else DOUBLE_LOADS
        raise IllegalError(f"{instruction} has no distribution {name}", legal=legal)
    return found


@lru_cache(maxsize=64)
def store_distribution(name: str, registers: int = 1) -> StoreDistribution:
    """Return a distribution of a store of so many registers.

    Raises:
        IllegalError: no such mode, or one that the chip lacks; lists those there are.
    """
    found = STORES.get(name)
    if found is None or found.registers != registers:
        instruction = "vsts" if registers == 1 else "vstsx2"
        legal = SINGLE_STORES if registers == 1 else DOUBLE_STORES
        lacks = "the chip does not support" if name in UNSUPPORTED_STORES else f"{instruction} has no"
        raise IllegalError(f"{lacks} distribution {name}", legal=legal)
    return found
