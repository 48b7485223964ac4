"""Values of strided-repeat operations: bytes of the buffer and of the arguments, without time.

Operations run in program order, each reading all lanes of a repeat before it writes any. A whole tile is converted in
one call if `natural_map` proves that the operations are equivalent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from castsim.execution.buffer_values import Bytes, TileValues, pack_nibbles, unpack_nibbles
from castsim.execution.pipe_operations import BLOCK
from castsim.execution.tree import Operation, Tile
from castsim.isa.dataclass import replace
from castsim.isa.errors import TileError
from castsim.isa.formats import Codes, Format, IntFormat, format_named
from castsim.machines.strided.strided_instructions import (
    Action,
    BitwiseAnd,
    Conversion,
    DuplicateCode,
    LaneInputs,
    LaneWork,
    Stream,
    StridedInstruction,
    element_bits,
    stream_extent,
)
from castsim.numerics.cast import round_to_integral_codes, scale_of, scaled_cast_codes
from castsim.numerics.tiers import convert_codes

# Proof that a tile cast may be converted in one call: its operations together are the tile's natural map.
#
# The natural map takes element (i, j) of the source tile to element (i, j) of the destination for the whole valid
# region. The proof looks at what the operations address, not at how they came about, so a wrong lowering fails it.


def natural_map(operations: Iterable[Operation], src: Tile, dst: Tile) -> StridedInstruction | None:
    """Return the natural map of a tile, its valid region as one instruction; None if the operations are not exactly it.

    Required: one action and the tiles' formats throughout, every element of the valid region written exactly once from
    its own source element, nothing else written, and no overlap of source and destination (tiles of equal element
    width and pitch in place are fine: every element is then read before it is written).
    """
    in_place = (src.address, src.element_bits, src.row_pitch) == (dst.address, dst.element_bits, dst.row_pitch)
    if src.address < dst.end and dst.address < src.end and not in_place:
        return None
    issued = [operation for operation in operations if isinstance(operation, StridedInstruction)]
    kinds = [(one.action, one.destination.format, *(stream.format for stream in one.sources)) for one in issued]
    if not kinds or any(kind != (kinds[0][0], dst.format, src.format) for kind in kinds):
        return None
    to, source = (Stream(tile.address, tile.format, 1, tile.row_pitch // BLOCK) for tile in (dst, src))
    rows, cols = dst.valid_rows, dst.valid_cols
    shapes: dict[tuple[int, ...], NDArray[np.int64]] = {}
    parts = []
    for one in issued:
        ends, mask = (one.sources[0], one.destination), one.mask & ((1 << one.lanes) - 1)
        shape = (mask, one.repeats, *(number for end in ends for number in (end.block_stride, end.step)))
        if shape not in shapes:
            moved = [replace(end, address=0) for end in ends]
            shapes[shape] = _moves(moved, _active_lanes(mask, one.lanes), one.repeats)
        parts.append(shapes[shape] + np.array([[end.address * _units(end)] for end in ends]))
    found = np.concatenate(parts, axis=1)
    if not np.array_equal(found[:, np.argsort(found[1], kind="stable")], _moves((source, to), slice(0, cols), rows)):
        return None
    return replace(issued[0], repeats=rows, lanes=cols, mask=(1 << cols) - 1, destination=to, sources=(source,))


def _moves(streams: Sequence[Stream], lanes: Lanes, repeats: int) -> NDArray[np.int64]:
    """Return the positions of the lanes of all repeats, a row for each stream."""
    return np.stack([lane_positions(stream, lanes, 0, repeats).reshape(-1) for stream in streams])


Lanes = slice | NDArray[np.int64]
"""Active lanes: a prefix slice, or lane indices."""


SCALE_FORMAT = format_named("f16")
"""Format of the dequantisation scale register (set_deqscale in asc-devkit takes a half)."""


def execute_vector(operation: StridedInstruction, buffer: Bytes) -> None:
    """Run one vector instruction on the unified buffer."""
    mask = operation.mask & ((1 << operation.lanes) - 1)
    if not mask or not operation.repeats:
        return
    lanes = _active_lanes(mask, operation.lanes)
    if _needs_order(operation):
        for repeat in range(operation.repeats):
            _step(operation, buffer, lanes, repeat, 1)
    else:
        _step(operation, buffer, lanes, 0, operation.repeats)


def apply_action(action: Action, sources: list[Codes], src: Format | None, dst: Format) -> Codes:
    """Return the codes that an action computes from its source codes; a single one for all lanes if it has none."""
    match action:
        case Conversion(policy, integral=True):
            return round_to_integral_codes(sources[0], dst, policy)
        case Conversion(policy, scale=None):
            assert src is not None
            return convert_codes(sources[0], src, dst, policy)
        case Conversion(policy, scale=int(scale)):
            assert isinstance(src, IntFormat)
            return scaled_cast_codes(sources[0], src, dst, scale_of(scale, SCALE_FORMAT), policy)
        case DuplicateCode(value):
            return np.full((1, 1), value, dtype=f"<u{dst.storage_bits // 8}")
        case BitwiseAnd():
            return sources[0] & sources[1]
    raise TypeError("part of a vector operation on tiles, which runs as a whole")


def gather(buffer: Bytes, stream: Stream, lanes: Lanes, repeat: int, repeats: int) -> Codes:
    """Return the codes of the given lanes, shape (repeats, lanes), from repeat number `repeat` on."""
    adjacent = _adjacent(buffer, stream, lanes, repeat, repeats)
    if adjacent is not None:
        return unpack_nibbles(adjacent) if element_bits(stream) == 4 else adjacent
    places, size = _places(buffer, stream, lanes, repeat, repeats), element_bits(stream) // 8
    if size == 0:
        return np.asarray(buffer[places >> 1] >> (places & 1) * 4 & 15, np.uint8)
    raw: Codes = buffer[places[..., None] + np.arange(size)].view(f"<u{size}")[..., 0]
    return raw


def scatter(buffer: Bytes, stream: Stream, lanes: Lanes, repeat: int, codes: Codes) -> None:
    """Write codes of shape (repeats, lanes) to the given lanes."""
    adjacent = _adjacent(buffer, stream, lanes, repeat, codes.shape[0])
    if adjacent is not None:
        adjacent[...] = pack_nibbles(codes) if element_bits(stream) == 4 else codes
        return
    places, size = _places(buffer, stream, lanes, repeat, codes.shape[0]), element_bits(stream) // 8
    if size == 0:
        # Two lanes share a byte: one after the other, or the second would overwrite the first.
        for half in (0, 1):
            chosen = (places & 1) == half
            bytes_of = places[chosen] >> 1
            buffer[bytes_of] = buffer[bytes_of] & (15 << 4 * (1 - half)) | codes[chosen] << 4 * half
        return
    raw = np.ascontiguousarray(codes).astype(f"<u{size}").view(np.uint8).reshape(*codes.shape, size)
    buffer[places[..., None] + np.arange(size)] = raw


def _convert_whole(whole: StridedInstruction, buffer: Bytes) -> None:
    """Run a natural map: every element is read before any is written."""
    _step(whole, buffer, slice(0, whole.lanes), 0, whole.repeats)


def _step(operation: StridedInstruction, buffer: Bytes, lanes: Lanes, repeat: int, repeats: int) -> None:
    dst = operation.destination
    sources = [gather(buffer, each, _own_lanes(each, lanes), repeat, repeats) for each in operation.sources]
    if isinstance(operation.action, LaneWork):
        result = operation.action.run(LaneInputs(buffer, sources, lanes))
    else:
        src = operation.sources[0].format if operation.sources else None
        result = apply_action(operation.action, sources, src, dst.format)
    scatter(buffer, dst, _own_lanes(dst, lanes), repeat, np.broadcast_to(result, (repeats, *result.shape[1:])))


def _own_lanes(stream: Stream, lanes: Lanes) -> Lanes:
    """Return the lanes of an operand: the active ones, or the first ones of those that have a number of their own."""
    return slice(0, stream.elements) if stream.elements else lanes


def _active_lanes(mask: int, lanes: int) -> Lanes:
    """Return the enabled lanes: a slice for the usual prefix mask, else their numbers."""
    count = mask.bit_length()
    if mask == (1 << count) - 1:
        return slice(0, count)
    return np.array([lane for lane in range(lanes) if mask >> lane & 1], np.int64)


def _needs_order(operation: StridedInstruction) -> bool:
    """Return whether a later repeat may read or overwrite bytes that an earlier one wrote."""
    if operation.repeats == 1 or (isinstance(operation.action, LaneWork) and operation.action.at_once):
        return False
    start, end = stream_extent(operation.destination, operation.repeats, operation.lanes, operation.mask)
    first, behind = stream_extent(operation.destination, 1, operation.lanes, operation.mask)
    if operation.destination.step < behind - first:
        return True
    for source in operation.sources:
        low, high = stream_extent(source, operation.repeats, operation.lanes, operation.mask)
        if low < end and start < high:
            return True
    return False


def _adjacent(buffer: Bytes, stream: Stream, lanes: Lanes, repeat: int, repeats: int) -> Codes | None:
    """Return a writable view of one stream if its active lanes are a prefix of adjacent bytes, else None.

    4-bit streams are packed bytes; an odd number of lanes has no such view.
    """
    bits = element_bits(stream)
    if not isinstance(lanes, slice) or (bits == 4 and lanes.stop % 2):
        return None
    size = max(bits // 8, 1)
    stored = lanes.stop * bits // 8 // size
    if stream.block_stride != 1 and stored * size > BLOCK:
        return None
    start = stream.address + repeat * stream.step
    _check_reach(buffer, start, start + (repeats - 1) * stream.step + stored * size)
    base = buffer[start : start + size].view(f"<u{size}")
    return as_strided(base, (repeats, stored), (stream.step, size), writeable=True)


def _places(buffer: Bytes, stream: Stream, lanes: Lanes, repeat: int, repeats: int) -> NDArray[np.int64]:
    """Return the positions of the lanes, which lie in the buffer."""
    places, unit = lane_positions(stream, lanes, repeat, repeats), _units(stream)
    size = max(element_bits(stream) // 8, 1)
    _check_reach(buffer, int(places.min()) // unit, int(places.max()) // unit + size)
    return places


def lane_positions(stream: Stream, lanes: Lanes, repeat: int, repeats: int) -> NDArray[np.int64]:
    """Return the position of each lane, shape (repeats, lanes): in bytes, or in nibbles for 4-bit streams."""
    bits, unit = element_bits(stream), _units(stream)
    numbers = np.arange(lanes.stop) if isinstance(lanes, slice) else lanes
    block, within = np.divmod(numbers, BLOCK * 8 // bits)
    inside = block * stream.block_stride * BLOCK * unit + within * max(bits // 8, 1)
    rows = stream.address + (repeat + np.arange(repeats)) * stream.step
    return np.asarray(rows[:, None] * unit + inside[None, :], np.int64)


def _units(stream: Stream) -> int:
    """Return the positions of a byte."""
    return 2 if element_bits(stream) == 4 else 1


def _check_reach(buffer: Bytes, start: int, end: int) -> None:
    if start < 0 or end > buffer.size:
        raise TileError(f"a vector instruction accesses bytes {start} .. {end - 1} of a buffer of {buffer.size}")


compute = TileValues(StridedInstruction, _convert_whole, StridedInstruction, execute_vector)
"""Function that computes the values of a lowered program."""
