"""What transfers do to bytes, and how two 4-bit elements share one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from isa.errors import TileError
from simulator.dataflow.operations import BLOCK, Transfer

Bytes = NDArray[np.uint8]
Codes = NDArray[Any]


def execute_transfer(operation: Transfer, buffer: Bytes, arguments: Mapping[str, Bytes]) -> None:
    """Copy the bursts of one DMA instruction; `buffer` is the unified buffer, `arguments` the global memory."""
    shape = (operation.bursts, operation.burst_bytes)
    far = _rows(arguments[operation.argument], operation.gm_address, operation.gm_pitch, shape)
    near = _rows(buffer, operation.ub_address, operation.ub_pitch, shape)
    if not operation.load:
        far[...] = near
        return
    near[...] = far
    gap = -operation.burst_bytes % BLOCK
    if operation.pad_pattern and gap:
        padding = _rows(
            buffer, operation.ub_address + operation.burst_bytes, operation.ub_pitch, (operation.bursts, gap)
        )
        padding[...] = np.resize(np.frombuffer(operation.pad_pattern, np.uint8), gap)


def unpack_nibbles(packed: Codes) -> Codes:
    """Spread bytes of shape (rows, n) into codes of shape (rows, 2n), low nibble first."""
    codes = np.empty((packed.shape[0], packed.shape[1] * 2), np.uint8)
    codes[:, 0::2] = packed & 15
    codes[:, 1::2] = packed >> 4
    return codes


def pack_nibbles(codes: Codes) -> Codes:
    """Join codes of shape (rows, 2n) into bytes of shape (rows, n), low nibble first."""
    packed: Codes = codes[:, 0::2] | codes[:, 1::2] << 4
    return packed


def _rows(memory: Bytes, address: int, pitch: int, shape: tuple[int, int]) -> Bytes:
    """Return rows of bytes, checked against the end of the memory."""
    rows, length = shape
    last = address + (rows - 1) * pitch + length
    if address < 0 or last > memory.size or pitch < 0:
        raise TileError(f"a transfer reaches bytes {address} .. {last - 1} of {memory.size}")
    return as_strided(memory[address:], shape, (pitch, 1), writeable=True)
