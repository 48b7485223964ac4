"""Which bytes and blocks the lanes of a strided-repeat instruction touch."""

from __future__ import annotations

from functools import lru_cache

from castsim.machines.strided.operations import BLOCK, Stream


def element_bits(stream: Stream) -> int:
    """Return the bits one element takes in a packed row: 4-bit formats share bytes, all others fill whole ones."""
    return stream.format.bits if stream.format.bits == 4 else stream.format.storage_bits


def repeat_blocks(stream: Stream, lanes: int, mask: int) -> tuple[int, ...]:
    """Return the byte offsets, from the start of a repeat, of the blocks that hold at least one active lane.

    A block that several lanes share (block stride 0) passes once.
    """
    if stream.elements:
        lanes, mask = stream.elements, (1 << stream.elements) - 1
    return _repeat_blocks(element_bits(stream), stream.block_stride, lanes, mask)


def active_bytes(stream: Stream, lanes: int, mask: int) -> int:
    """Return the bytes from the start of a repeat to the end of the last active lane, block stride 1."""
    highest = min(lanes, (mask & ((1 << lanes) - 1)).bit_length())
    return (highest * element_bits(stream) + 7) // 8


@lru_cache(maxsize=1024)
def _repeat_blocks(bits: int, block_stride: int, lanes: int, mask: int) -> tuple[int, ...]:
    per_block = BLOCK * 8 // bits
    offsets = []
    for block in range((lanes + per_block - 1) // per_block):
        first = block * per_block
        count = min(per_block, lanes - first)
        if mask >> first & ((1 << count) - 1):
            offsets.append(block * block_stride * BLOCK)
    return tuple(dict.fromkeys(offsets))


def stream_extent(stream: Stream, repeats: int, lanes: int, mask: int) -> tuple[int, int]:
    """Return the bytes [start, end) that the active lanes of all repeats span; empty if there are none."""
    highest = stream.elements or (mask & ((1 << lanes) - 1)).bit_length()
    if not highest or not repeats:
        return stream.address, stream.address
    bits = element_bits(stream)
    block, offset = divmod((highest * bits + 7) // 8 - 1, BLOCK)
    last = (repeats - 1) * stream.step + block * stream.block_stride * BLOCK + offset + 1
    return stream.address, stream.address + last
