"""Registers and masks as values: bytes, predicate bits, and which of them a program has defined.

A register has 256 bytes; lane i of w bits is the bytes from i * w / 8 on, little endian. A mask has one bit per byte;
the bit of a lane's first byte governs the lane (docs/reference/micro.md sections 3 and 5).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from castsim.execution.dataflow.buffer_values import Bytes
from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError
from castsim.isa.formats import Format
from castsim.isa.pto.micro_words import HALVES
from castsim.isa.pto.value_types import REGISTER_BITS
from castsim.targets.vector_function import VectorFunctionTarget

REGISTER_BYTES = REGISTER_BITS // 8

Bits = NDArray[np.bool_]


def _kept(array: NDArray[np.generic], size: int) -> None:
    """Make an array of a value read-only; it must hold one entry per byte of a register."""
    assert array.shape == (size,), array.shape
    array.flags.writeable = False


def _all_defined() -> Bits:
    return np.ones(REGISTER_BYTES, np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class Register:
    """The 256 bytes of a vector register, and for each whether the program has given it a value.

    A register takes its arrays over and makes them read-only. Bytes that are not defined read as they stand in `data`:
    what the chip would hold there is unknown.
    """

    data: Bytes
    defined: Bits = field(default_factory=_all_defined)

    def __post_init__(self) -> None:
        _kept(self.data, REGISTER_BYTES)
        _kept(self.defined, REGISTER_BYTES)

    def lanes(self, width: int) -> Codes:
        """Return the lanes of `width` bits as codes, read-only."""
        codes: Codes = self.data.view(f"<u{width // 8}")
        return codes

    def defined_lanes(self, width: int) -> Bits:
        """Return for each lane of `width` bits whether all of it is defined."""
        return whole_lanes(self.defined, width)

    @property
    def is_defined(self) -> bool:
        """Whether every byte has a value."""
        return bool(self.defined.all())


@dataclass(frozen=True, slots=True, eq=False)
class Mask:
    """The 256 bits of a predicate register, and for each whether the program has given it a value."""

    bits: Bits
    defined: Bits = field(default_factory=_all_defined)

    def __post_init__(self) -> None:
        _kept(self.bits, REGISTER_BYTES)
        _kept(self.defined, REGISTER_BYTES)

    def lanes(self, width: int) -> Bits:
        """Return the bit of each lane of `width` bits."""
        return self.bits[:: width // 8]

    def defined_lanes(self, width: int) -> Bits:
        """Return for each lane of `width` bits whether its bit is defined."""
        return self.defined[:: width // 8]


def whole_lanes(defined: Bits, width: int) -> Bits:
    """Return for each lane of `width` bits whether all its bytes are marked."""
    return defined if width == 8 else every_of_row(defined.reshape(-1, width // 8))


def every_of_row(marks: Bits) -> Bits:
    """Return for each row whether all its marks are set."""
    every: Bits = np.logical_and.reduce(marks, axis=1)
    return every


def unwritten() -> Register:
    """Return a register that nothing has written."""
    return Register(np.zeros(REGISTER_BYTES, np.uint8), np.zeros(REGISTER_BYTES, np.bool_))


def register_of(codes: Codes, defined: Bits) -> Register:
    """Return the register of all its lanes' codes, and of which of the lanes are defined."""
    size = codes.dtype.itemsize
    return Register(
        np.ascontiguousarray(codes).view(np.uint8).copy(), np.repeat(defined, size) if size > 1 else defined.copy()
    )


def masked(codes: Codes, defined: Bits, mask: Mask) -> Register:
    """Return the register of lanes that a masked operation yields: 0 where the mask's bit is 0.

    Source: docs/reference/micro.md section 3 (zeroing, never merging).
    """
    width = codes.dtype.itemsize * 8
    active = mask.lanes(width)
    zeroed = np.where(active, codes, codes.dtype.type(0))
    return register_of(zeroed, (defined | ~active) & mask.defined_lanes(width))


def mask_of(lanes: Bits, width: int, defined: Bits | None = None) -> Mask:
    """Return the mask whose lanes of `width` bits have these bits; the bits between are 0."""
    bits = np.zeros(REGISTER_BYTES, np.bool_)
    bits[:: width // 8] = lanes
    if defined is None:
        return Mask(bits)
    known = np.ones(REGISTER_BYTES, np.bool_)
    known[:: width // 8] = defined
    return Mask(bits, known)


def every_lane(width: int) -> Mask:
    """Return the mask of all lanes of `width` bits."""
    return mask_of(np.ones(REGISTER_BYTES * 8 // width, np.bool_), width)


# What an instruction is given and yields: operands by kind, in the order of its text.

Value = Register | Mask | int
"""A result: a register, a mask, or a scalar number."""


@dataclass(frozen=True, slots=True, eq=False)
class Operands:
    """The operands of one instruction, the kinds apart.

    `scalars` are codes of the element format (of integers any number with these low bits), counts and strides plain
    numbers. `words` are the quoted words. `element` is the format of the first register operand, of the result where
    there is none; `result` that of the first register result. `width` is the lane width of the instruction's masks,
    `ctrl` the CTRL register.
    """

    name: str
    element: Format
    result: Format
    width: int
    target: VectorFunctionTarget
    registers: tuple[Register, ...] = ()
    masks: tuple[Mask, ...] = ()
    scalars: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    ctrl: int = 0

    @property
    def bits(self) -> int:
        """Bits of a lane of the operands."""
        return self.element.storage_bits


_HALF_WORDS = {"LOWER": 0, "HIGHER": 1, "UPPER": 1}


def half_of(word: str) -> int:
    """Return 0 for the lower half, 1 for the higher.

    Raises:
        IllegalError: another word.
    """
    if word not in _HALF_WORDS:
        raise IllegalError(f"no half {word}", legal=HALVES)
    return _HALF_WORDS[word]


def signed(value: int, bits: int) -> int:
    """Return what the low bits of a number are as a two's complement."""
    low = low_bits(value, bits)
    return low - (1 << bits) if low >> (bits - 1) else low


def low_bits(value: int, bits: int) -> int:
    """Return the low bits of a number."""
    return value & ((1 << bits) - 1)
