"""Loads and stores of registers and predicates (docs/reference/micro.md section 4).

An address is a byte of the memory's buffer. The caller updates pointers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from castsim.execution.interpreter.vector_unit import MicroMemory
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import IllegalError, TileError
from castsim.isa.pto.types import lane_bits
from castsim.isa.pto.value_types import MicroOperation, VectorType
from castsim.machines.vector_function.function_operations import Index, deinterleave_maps, interleave_maps
from castsim.machines.vector_function.vector_registers import (
    REGISTER_BYTES,
    Bits,
    PredicateRegister,
    VectorRegister,
    every_of_row,
    masked,
)
from castsim.targets.dataflow import BLOCK_BYTES

# The distribution modes of loads and stores as index maps (docs/reference/micro.md sections 4.1, 4.2).

_BYTES = np.arange(REGISTER_BYTES)


@dataclass(frozen=True, slots=True)
class LoadDistribution:
    """The source bytes of loaded registers.

    `places` has for each register the memory byte, counted from the address, of every register byte; -1 is a zero
    byte. `alignment` is the required divisor of the address.
    """

    name: str
    places: tuple[Index, ...]
    alignment: int

    @property
    def size(self) -> int:
        """The size of the access in bytes: a power of two, including unused bytes at the end."""
        return 1 << max(int(indices.max()) for indices in self.places).bit_length()


@dataclass(frozen=True, slots=True)
class StoreDistribution:
    """The source bytes of a store: byte k of the target is byte `source[k]` of the concatenated registers.

    It is written if bit `governor[k]` of the mask is set, or always if `governor` is None. `width` is the lane
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


def _unpack(width: int) -> tuple[Index, ...]:
    """The upper half of a lane is no part of an element; it is zero."""
    wide, inside = np.divmod(_BYTES, width // 4)
    return (np.where(inside < width // 8, wide * (width // 8) + inside, -1),)


def _deinterleave(width: int) -> tuple[Index, ...]:
    return deinterleave_maps(width, REGISTER_BYTES)


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
    "UNPK": ((8, 16, 32), 16, _unpack),
    "UNPK4": ((8,), 16, _unpack_by_four),
    "US": ((8, 16), 16, _twice),
    "DS": ((8, 16), 32, _every(2)),
    "E2B": ((16, 32), 16, _element_to_block),
    "SPLT2CHN": ((8, 16), 32, _every(2)),
    "SPLT4CHN": ((8,), 32, _every(4)),
    "DINTLV": ((8, 16, 32), 32, _deinterleave),
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
"""The loads whose name contains no width."""

LOADS: Mapping[str, LoadDistribution] = {
    **_FIXED,
    **{
        f"{mode}_B{width}": LoadDistribution(f"{mode}_B{width}", places(width), alignment or width // 8)
        for mode, (widths, alignment, places) in _LOADS.items()
        for width in widths
    },
}
"""Every load distribution by name; those with two registers belong to `vldsx2`."""

SINGLE_LOADS = tuple(name for name, each in LOADS.items() if len(each.places) == 1)
DOUBLE_LOADS = tuple(name for name, each in LOADS.items() if len(each.places) == 2)


def _masked(name: str, width: int, kept: int) -> StoreDistribution:
    """Keep the low `kept` bits of every lane of `width` bits; the mask bit of a lane is that of its first byte."""
    lane, byte = np.divmod(np.arange(REGISTER_BYTES * kept // width), kept // 8)
    return StoreDistribution(name, lane * (width // 8) + byte, lane * (width // 8), BLOCK_BYTES, width)


def _interleaved(width: int) -> StoreDistribution:
    both = np.concatenate(interleave_maps(width, REGISTER_BYTES))
    return StoreDistribution(f"INTLV_B{width}", both, None, BLOCK_BYTES, width, registers=2)


STORES: Mapping[str, StoreDistribution] = {
    each.name: each
    for each in (
        *(_masked(f"NORM_B{w}", w, w) for w in (8, 16, 32)),
        *(StoreDistribution(f"1PT_B{w}", np.arange(w // 8), None, w // 8, w) for w in (8, 16, 32)),
        *(_masked(f"PK_B{w}", w, w // 2) for w in (16, 32, 64)),
        _masked("PK4_B32", 32, 8),
        *(_interleaved(w) for w in (8, 16, 32)),
    )
}
"""The distributions of stores by name; those of two registers belong to `vstsx2`."""

SINGLE_STORES = tuple(name for name, each in STORES.items() if each.registers == 1)
DOUBLE_STORES = tuple(name for name, each in STORES.items() if each.registers == 2)
UNSUPPORTED_STORES = ("MRG4CHN_B8", "MRG2CHN_B8", "MRG2CHN_B16")
"""Modes of the instruction set that the chip reportedly lacks."""


def distribution_name(node: MicroOperation) -> str:
    """Return the distribution of a load or store, with the width that its text leaves to the type."""
    name = node.word("dist") or "NORM"
    if name == "NORM" and node.mnemonic == "vsts":
        return f"NORM_B{min(32, _element_bits(node))}"
    if name in ("SPLT2CHN", "SPLT4CHN"):
        return f"{name}_B{_element_bits(node)}"
    return "BDINTLV" if name == "BDINTLV_BLK" else name


def _element_bits(node: MicroOperation) -> int:
    kinds = (*node.operand_types, *node.result_types)
    return lane_bits(next(kind for kind in kinds if isinstance(kind, VectorType)).element)


def accessed_bytes(node: MicroOperation) -> int:
    """Return the bytes of memory that a load or store by distribution touches when all of its lanes are active."""
    name = distribution_name(node)
    if node.mnemonic in ("vlds", "vldsx2"):
        return LOADS[name].size if name in LOADS else REGISTER_BYTES
    return STORES[name].source.size if name in STORES else REGISTER_BYTES


@lru_cache(maxsize=64)
def load_distribution(name: str, registers: int = 1) -> LoadDistribution:
    """Return the distribution of a load that fills `registers` registers.

    Raises:
        IllegalError: the mode does not exist; the message lists the legal ones.
    """
    distribution = LOADS.get(name)
    if distribution is None or len(distribution.places) != registers:
        instruction = "vlds" if registers == 1 else "vldsx2"
        legal = SINGLE_LOADS if registers == 1 else DOUBLE_LOADS
        raise IllegalError(f"{instruction} has no distribution {name}", legal=legal)
    return distribution


@lru_cache(maxsize=64)
def store_distribution(name: str, registers: int = 1) -> StoreDistribution:
    """Return the distribution of a store of `registers` registers.

    Raises:
        IllegalError: the mode does not exist, or the chip lacks it; the message lists the legal ones.
    """
    distribution = STORES.get(name)
    if distribution is None or distribution.registers != registers:
        instruction = "vsts" if registers == 1 else "vstsx2"
        legal = SINGLE_STORES if registers == 1 else DOUBLE_STORES
        lacks = "the chip does not support" if name in UNSUPPORTED_STORES else f"{instruction} has no"
        raise IllegalError(f"{lacks} distribution {name}", legal=legal)
    return distribution


BLOCKS = REGISTER_BYTES // BLOCK_BYTES


def load(memory: MicroMemory, address: int, dist: str, registers: int = 1) -> tuple[VectorRegister, ...]:
    """Load the register of `vlds`, or both of `vldsx2` (`registers` 2), from a byte on, by a distribution: `NORM`,
    `UNPK_B16`, `DINTLV_B32` ...

    Raises:
        IllegalError: the distribution does not exist. TileError: the address is misaligned, or memory is exceeded.
    """
    mode = load_distribution(dist, registers)
    check_address(f"a load {dist}", memory, address, mode.size, mode.alignment)
    return tuple(_picked(memory, address, places) for places in mode.places)


def load_blocks(memory: MicroMemory, address: int, block_stride: int, mask: PredicateRegister) -> VectorRegister:
    """Load eight blocks of 32 bytes, `block_stride` blocks apart (`vsldb`).

    A block without a set predicate bit is zero and not read.

    Raises:
        TileError: see `load`.
    """
    offsets, enabled = _block_offsets(block_stride, mask)
    active = np.repeat(enabled, BLOCK_BYTES)
    _check_blocks("a block load", memory, address, offsets[active])
    base = address + min(7 * block_stride * BLOCK_BYTES, 0)  # so that no place of a block that is read is negative
    loaded = _picked(memory, base, np.where(active, offsets + (address - base), -1))
    return VectorRegister(loaded.data.copy(), loaded.defined & _known_blocks(mask))


def store(
    sources: Sequence[VectorRegister], memory: MicroMemory, address: int, dist: str, mask: PredicateRegister
) -> None:
    """Store one register (`vsts`) or two (`vstsx2`); memory of inactive lanes is unchanged.

    `1PT` and `INTLV` ignore the mask. Bytes that a mask of unknown bits may have written become undefined.

    Raises:
        IllegalError, TileError: see `load`; bytes that no lane writes may be beyond the memory.
    """
    mode = store_distribution(dist, len(sources))
    size = mode.source.size
    written = np.arange(size) if mode.governor is None else np.flatnonzero(mask.bits[mode.governor])
    check_address(f"a store {dist}", memory, address, int(written[-1]) + 1 if written.size else 0, mode.alignment)
    data, marks = sources[0].data, sources[0].defined
    if len(sources) > 1:
        data = np.concatenate(np.broadcast_arrays(*(source.data for source in sources)), axis=-1)
        marks = np.concatenate([source.defined for source in sources])
    whole = written.size == size
    places = slice(address, address + size) if whole else address + written
    taken = mode.source if whole else mode.source[written]
    memory.buffer[..., places] = np.take(data, taken, axis=-1)
    memory.defined[places] = marks[taken]
    if mode.governor is not None and not mask.is_defined:
        _forget(memory, address + np.flatnonzero(~mask.defined[mode.governor]))


def store_blocks(
    source: VectorRegister, memory: MicroMemory, address: int, block_stride: int, mask: PredicateRegister
) -> None:
    """Store eight blocks of 32 bytes, `block_stride` blocks apart (`vsstb`).

    A block without a set predicate bit is not written.

    Raises:
        TileError: see `load`.
    """
    offsets, enabled = _block_offsets(block_stride, mask)
    active = np.repeat(enabled, BLOCK_BYTES)
    _check_blocks("a block store", memory, address, offsets[active])
    memory.buffer[address + offsets[active]] = source.data[active]
    memory.defined[address + offsets[active]] = source.defined[active]
    _forget(memory, address + offsets[~_known_blocks(mask)])


def load_unaligned(memory: MicroMemory, address: int) -> VectorRegister:
    """Load 256 bytes from any address (`vldus` after `vldas`).

    Raises:
        TileError: the access exceeds the memory.
    """
    check_address("an unaligned load", memory, address, REGISTER_BYTES, 1)
    return _picked(memory, address, np.arange(REGISTER_BYTES))


def store_unaligned(source: VectorRegister, memory: MicroMemory, address: int, count: int) -> None:
    """Store the first `count` bytes of a register at any address (`vstus`, `vstur`; the flush then adds nothing).

    The chip keeps the bytes of the last, incomplete block until `vstas` or `vstar`; without one, the program
    does not store them (docs/reference/micro.md section 4.4).

    Raises:
        TileError: the access exceeds the memory. IllegalError: there are more bytes than a register has.
    """
    if not 0 <= count <= REGISTER_BYTES:
        raise IllegalError(f"an unaligned store of {count} bytes", legal=(f"0 to {REGISTER_BYTES}",))
    check_address("an unaligned store", memory, address, count, 1)
    memory.buffer[address : address + count] = source.data[:count]
    memory.defined[address : address + count] = source.defined[:count]


_PREDICATE_LOADS = ("NORM", "US", "DS")
_PREDICATE_STORES = ("NORM", "PK")


def load_predicate(memory: MicroMemory, address: int, dist: str = "NORM") -> PredicateRegister:
    """Load a predicate (`plds`, `pldi`): its 32 bytes, or every bit of 16 twice (US), or every second bit of 64 (DS).

    Raises:
        IllegalError: the mode does not exist. TileError: see `load`.
    """
    if dist not in _PREDICATE_LOADS:
        raise IllegalError(f"plds has no distribution {dist}", legal=_PREDICATE_LOADS)
    bits = np.arange(REGISTER_BYTES)
    places = {"NORM": bits, "US": bits // 2, "DS": bits * 2}[dist]
    size = (int(places[-1]) + 8) // 8
    check_address(f"a predicate load {dist}", memory, address, size, min(size, BLOCK_BYTES))
    loaded = np.unpackbits(memory.buffer[address : address + size], bitorder="little")[places].astype(np.bool_)
    return PredicateRegister(loaded, np.repeat(memory.defined[address : address + size], 8)[places])


def store_predicate(mask: PredicateRegister, memory: MicroMemory, address: int, dist: str = "NORM") -> None:
    """Store a predicate (`psts`, `psti`): its 32 bytes, or every second bit of it in 16 bytes (PK).

    Raises:
        IllegalError: the mode does not exist. TileError: see `load`.
    """
    if dist not in _PREDICATE_STORES:
        raise IllegalError(f"psts has no distribution {dist}", legal=_PREDICATE_STORES)
    step = 1 if dist == "NORM" else 2
    image = np.packbits(mask.bits[::step], bitorder="little")
    check_address(f"a predicate store {dist}", memory, address, image.size, image.size)
    memory.buffer[address : address + image.size] = image
    memory.defined[address : address + image.size] = every_of_row(mask.defined[::step].reshape(-1, 8))


def gather(
    memory: MicroMemory, address: int, offsets: VectorRegister, offset_bits: int, bits: int, mask: PredicateRegister
) -> VectorRegister:
    """Load the elements whose indices are in lanes (`vgather2`); inactive lanes are 0 and not read.

    Args:
        memory: the source.
        address: byte of element 0.
        offsets: the unsigned index of an element in each lane.
        offset_bits: bits of those lanes, and of the lanes of the result.
        bits: bits of an element in memory; narrower ones are extended by zero.
        mask: lanes of `offset_bits`.

    Raises:
        TileError: the element of an active lane is outside the memory.
    """
    size, active = bits // 8, mask.lanes(offset_bits)
    starts = address + offsets.lanes(offset_bits)[active].astype(np.int64) * size
    _check_elements("a gather", memory, starts, size)
    places = starts[:, None] + np.arange(size)
    codes = np.zeros(active.size, f"<u{offset_bits // 8}")
    codes[active] = np.ascontiguousarray(memory.buffer[places]).view(f"<u{size}")[:, 0]
    marks = offsets.defined_lanes(offset_bits).copy()
    marks[active] &= every_of_row(memory.defined[places])
    return masked(codes, marks, mask)


def gather_blocks(
    memory: MicroMemory, address: int, offsets: VectorRegister, mask: PredicateRegister
) -> VectorRegister:
    """Load the blocks of 32 bytes that the first eight lanes of 32 bits name (`vgatherb`); the others are 0, not read.

    Args:
        memory: the source.
        address: the byte to which offsets are added, a multiple of 32.
        offsets: the unsigned byte offsets of the blocks, multiples of 32.
        mask: a block with any set bit is read.

    Raises:
        TileError: a selected block is not aligned, or is outside the memory.
    """
    check_address("a gather of blocks", memory, address, 0, BLOCK_BYTES)
    active = _blocks_with_bits(mask)
    starts = address + offsets.lanes(32)[:BLOCKS].astype(np.int64)
    for start in starts[active]:
        check_address("a gather of blocks", memory, int(start), BLOCK_BYTES, BLOCK_BYTES)
    places = np.where(active[:, None], starts[:, None] + np.arange(BLOCK_BYTES), -1).ravel()
    gathered = _picked(memory, 0, places)
    valid = np.repeat(offsets.defined_lanes(32)[:BLOCKS] | ~active, BLOCK_BYTES)
    return VectorRegister(gathered.data.copy(), gathered.defined & valid & _known_blocks(mask))


def scatter(
    source: VectorRegister, memory: MicroMemory, address: int, offsets: VectorRegister, bits: int,
    mask: PredicateRegister,
) -> None:  # fmt: skip
    """Write active lanes to the elements whose indices are in lanes of the same width; of equal ones the later wins.

    Raises:
        TileError: see `gather`.
    """
    size, active = bits // 8, mask.lanes(bits)
    starts = address + offsets.lanes(bits)[active].astype(np.int64) * size
    _check_elements("a scatter", memory, starts, size)
    places = (starts[:, None] + np.arange(size)).ravel()
    chosen = np.repeat(active, size)
    memory.buffer[places] = source.data[chosen]
    memory.defined[places] = source.defined[chosen]


def check_address(what: str, memory: MicroMemory, address: int, size: int, alignment: int) -> None:
    """Reject an access that is misaligned or exceeds the memory.

    Raises:
        TileError: it does; the message names the legal values.
    """
    if address % alignment:
        raise TileError(f"{what} at byte {address} is not aligned", legal=(f"multiples of {alignment} bytes",))
    capacity = memory.buffer.shape[-1]
    if address < 0 or address + size > capacity:
        last = max(capacity - size, 0)
        raise TileError(
            f"{what} accesses bytes {address} .. {address + max(size, 1) - 1} of a memory of {capacity}",
            legal=(f"addresses 0 to {last}",),
        )


def _picked(memory: MicroMemory, address: int, places: Index) -> VectorRegister:
    """Return the register of the bytes at `places` after the address; -1 is zero."""
    if places is _BYTES:
        end = address + REGISTER_BYTES
        return VectorRegister(memory.buffer[..., address:end].copy(), memory.defined[address:end].copy())
    none = places < 0
    where = address + places
    np.copyto(where, 0, where=none)
    data, defined = memory.buffer.take(where, axis=-1), memory.defined.take(where)
    np.copyto(data, 0, where=none)
    np.copyto(defined, True, where=none)
    return VectorRegister(data, defined)


def _block_offsets(block_stride: int, mask: PredicateRegister) -> tuple[Index, Bits]:
    """Return the offset of every register byte from the address, and which blocks have a predicate bit."""
    block, inside = np.divmod(np.arange(REGISTER_BYTES), BLOCK_BYTES)
    return block * block_stride * BLOCK_BYTES + inside, _blocks_with_bits(mask)


def _blocks_with_bits(mask: PredicateRegister) -> Bits:
    """Return for each block of 32 bytes whether the predicate has a bit for any of its bytes."""
    return ~every_of_row(~mask.bits.reshape(BLOCKS, BLOCK_BYTES))


def _known_blocks(mask: PredicateRegister) -> Bits:
    return np.repeat(every_of_row(mask.defined.reshape(BLOCKS, BLOCK_BYTES)), BLOCK_BYTES)


def _check_blocks(what: str, memory: MicroMemory, address: int, offsets: Index) -> None:
    first, last = (int(offsets.min()), int(offsets.max()) + 1) if offsets.size else (0, 0)
    check_address(what, memory, address + first, last - first, BLOCK_BYTES)


def _check_elements(what: str, memory: MicroMemory, starts: Index, size: int) -> None:
    outside = starts[(starts < 0) | (starts + size > memory.buffer.size)]
    if outside.size:
        raise TileError(f"{what} accesses byte {int(outside[0])} of a memory of {memory.buffer.size}")


def _forget(memory: MicroMemory, places: Index) -> None:
    """Mark bytes as no longer defined, as far as they exist."""
    memory.defined[places[(places >= 0) & (places < memory.defined.size)]] = False
