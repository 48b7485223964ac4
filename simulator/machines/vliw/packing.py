"""Packed stores and unpacked loads: which lane of the register each element of memory comes from or goes to.

With n narrow elements in a register, r = wide / narrow width and m = n / r, element m*k + i of memory is element
r*i + k of the register (k < r, i < m). A mask counts where the element stands in the register, as for plain accesses.
Source: docs/reference/tpc.md section 2.6 (index maps of the compiler); the place of the mask is assumed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, Format
from castsim.isa.tpc.memory_forms import packed_widths
from castsim.isa.tpc.program import File, Register, TpcInstruction
from castsim.machines.vliw.tensors import Bytes, Tensor, bytes_to_lanes, lanes_to_bytes

Lanes = NDArray[np.intp]
Mask = NDArray[np.bool_]
_BYTE = 8


def packed_lanes(instruction: TpcInstruction, vector_bytes: int) -> Lanes | None:
    """Return the register's lane of every element in the order of memory; None for a plain access.

    Raises:
        IllegalError: a half or a range of the register, or a mask: which elements count then is not documented.
    """
    widths = packed_widths(instruction)
    if widths is None:
        return None
    wide, narrow = widths
    word = "pack" if instruction.switch("pack") else "unpack"
    half = instruction.form.half
    obstacle = f"_{half.value}" if half is not None else "partial" if instruction.switch("partial") else None
    value = instruction.operand("dest") or instruction.operand("src_c")
    if isinstance(value, Register) and value.file is File.VP:
        obstacle = "a VP"
    if obstacle is not None:
        message = f"{instruction.mnemonic}: which elements {word} moves with {obstacle} is not documented"
        legal = (f"{word} of a whole vector register", f"{instruction.mnemonic} without {word}")
        raise IllegalError(message, span=instruction.span, legal=legal)
    ratio = wide // narrow
    return np.arange(vector_bytes * _BYTE // narrow).reshape(-1, ratio).T.reshape(-1)


def check_packed_tensor(instruction: TpcInstruction, tensor: Tensor) -> None:
    """Reject a tensor whose elements are not the narrow ones of a packed access.

    Raises:
        IllegalError: as said.
    """
    widths = packed_widths(instruction)
    if widths is not None and tensor.format.bits != widths[1]:
        wide, narrow = widths
        way = f"packs {wide} to {narrow} bits" if instruction.switch("pack") else f"unpacks {narrow} to {wide} bits"
        message = f"{instruction.mnemonic} {way}; the elements of {tensor.name} are {tensor.format.name}"
        raise IllegalError(message, span=instruction.span, legal=(f"a tensor of {narrow}-bit elements",))


def as_in_register(instruction: TpcInstruction, data: Bytes) -> Bytes:
    """Return consecutive bytes of memory as the register holds them. Errors as `packed_lanes`."""
    lanes = packed_lanes(instruction, data.size)
    if lanes is None:
        return data
    fmt = _narrow(instruction)
    codes = bytes_to_lanes(data, fmt)
    filled = np.empty_like(codes)
    filled[lanes] = codes
    return lanes_to_bytes(filled, fmt)


def as_in_memory(instruction: TpcInstruction, data: Bytes, mask: Mask) -> tuple[Bytes, Mask]:
    """Return the bytes of a register, and a mask of them, in the order of memory.

    Raises:
        IllegalError: as `packed_lanes`; a mask that parts two elements of one byte.
    """
    lanes = packed_lanes(instruction, data.size)
    if lanes is None:
        return data, mask
    fmt = _narrow(instruction)
    if fmt.bits < _BYTE and not mask.all():
        message = f"{instruction.mnemonic}: a mask cannot part the two elements of a byte at a plain address"
        raise IllegalError(message, span=instruction.span, legal=("access by coordinates",))
    first_bytes = lanes * fmt.bits // _BYTE
    wanted = mask if mask.all() else np.repeat(mask[first_bytes], fmt.bits // _BYTE)
    return lanes_to_bytes(bytes_to_lanes(data, fmt)[lanes], fmt), wanted


def _narrow(instruction: TpcInstruction) -> Format:
    """Return the narrow elements of a packed access as numbers without a meaning of their own."""
    widths = packed_widths(instruction)
    assert widths is not None
    return FORMATS[f"u{widths[1]}"]
