"""Registers made of the lanes of others, of scalars and of counts (docs/reference/micro.md section 3.9)."""

from __future__ import annotations

import numpy as np

from castsim.execution.vector_operations.arithmetic import clamped
from castsim.execution.vector_operations.elements import encoded, numbers
from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError
from castsim.isa.formats import IntFormat
from castsim.machines.vector_function.byte_maps import Index, interleave_maps
from castsim.machines.vector_function.lanes.lane_arithmetic import behaviour, scalar_codes
from castsim.machines.vector_function.lanes.vector_registers import (
    REGISTER_BYTES,
    Bits,
    Mask,
    Operands,
    Register,
    Value,
    every_of_row,
    half_of,
    masked,
    register_of,
)

POSITIONS = ("LOWEST", "HIGHEST")
ORDERS = ("ASC", "DESC")


def _picked(sources: tuple[Register, ...], places: Index) -> Register:
    """Return the register of bytes of several registers laid end to end."""
    data = np.concatenate([each.data for each in sources])
    defined = np.concatenate([each.defined for each in sources])
    return Register(data[places], defined[places])


def interleaved(operands: Operands) -> tuple[Value, ...]:
    """`vintlv`: the lanes of both registers in turn; the first result has those of the lower halves."""
    places = interleave_maps(operands.bits, REGISTER_BYTES)
    return tuple(_picked(operands.registers, each) for each in places)


def deinterleaved(operands: Operands) -> tuple[Value, ...]:
    """`vdintlv`: the even lanes of both registers laid end to end, and the odd ones."""
    size = operands.bits // 8
    lane, byte = np.divmod(np.arange(REGISTER_BYTES), size)
    return tuple(_picked(operands.registers, (2 * lane + odd) * size + byte) for odd in (0, 1))


def gathered_lanes(operands: Operands) -> tuple[Value, ...]:
    """`vselr`: lane i is the lane of the first register that lane i of the second names; beyond it: not defined."""
    source, index = operands.registers
    bits = operands.bits
    wanted = index.lanes(bits).astype(np.int64)
    lanes = wanted.size
    known = index.defined_lanes(bits) & (wanted < lanes)
    places = np.where(wanted < lanes, wanted, 0)
    codes = np.where(wanted < lanes, source.lanes(bits)[places], 0).astype(f"<u{bits // 8}")
    return (register_of(codes, source.defined_lanes(bits)[places] & known),)


def broadcast(operands: Operands) -> tuple[Value, ...]:
    """`vbr`: a scalar in every lane."""
    lanes = REGISTER_BYTES * 8 // operands.bits
    return (register_of(np.repeat(scalar_codes(operands)[0], lanes), np.ones(lanes, np.bool_)),)


def duplicated(operands: Operands) -> tuple[Value, ...]:
    """`vdup`: a scalar, or the first or last lane of a register, in every lane of the mask.

    Raises:
        IllegalError: no such position.
    """
    mask, bits = operands.masks[0], operands.bits
    lanes = REGISTER_BYTES * 8 // bits
    if not operands.registers:
        return (masked(np.repeat(scalar_codes(operands)[0], lanes), np.ones(lanes, np.bool_), mask),)
    word = operands.words[0] if operands.words else "LOWEST"
    if word not in POSITIONS:
        raise IllegalError(f"vdup has no position {word}", legal=POSITIONS)
    source, place = operands.registers[0], 0 if word == "LOWEST" else lanes - 1
    defined = np.full(lanes, source.defined_lanes(bits)[place])
    return (masked(np.full(lanes, source.lanes(bits)[place]), defined, mask),)


def counted_up(operands: Operands) -> tuple[Value, ...]:
    """`vci`: base + lane, or base - lane in the order DESC; floats clamp where results of arithmetic do.

    Raises:
        IllegalError: no such order.
    """
    word = operands.words[0] if operands.words else "ASC"
    if word not in ORDERS:
        raise IllegalError(f"vci has no order {word}", legal=ORDERS)
    fmt, (base,) = operands.element, scalar_codes(operands)
    lanes = REGISTER_BYTES * 8 // operands.bits
    steps = np.arange(lanes) if word == "ASC" else -np.arange(lanes)
    if isinstance(fmt, IntFormat):
        codes = (base.astype(np.int64) + steps).astype(base.dtype)
    else:
        exact = numbers(base, fmt).astype(np.float64) + steps
        codes = encoded(exact.astype(np.float32) if fmt.bits == 32 else exact, fmt)
        codes = clamped(codes, fmt, behaviour("arange", fmt, operands))
    return (register_of(codes, np.ones(lanes, np.bool_)),)


def packed(operands: Operands) -> tuple[Value, ...]:
    """`vpack`: the low half of every lane in the named half of the result, the other half 0."""
    (source,), bits = operands.registers, operands.bits
    half = half_of(operands.words[0])
    narrow = source.lanes(bits).astype(f"<u{bits // 16}")
    marks = every_of_row(source.defined.reshape(-1, bits // 8)[:, : bits // 16])
    lanes = narrow.size
    codes, defined = np.zeros(2 * lanes, narrow.dtype), np.ones(2 * lanes, np.bool_)
    codes[half * lanes : (half + 1) * lanes] = narrow
    defined[half * lanes : (half + 1) * lanes] = marks
    return (register_of(codes, defined),)


def unpacked(operands: Operands) -> tuple[Value, ...]:
    """`vsunpack`, `vzunpack`: the lanes of the lower (0) or upper (1) half, extended by sign or by zero.

    Raises:
        IllegalError: neither half.
    """
    (source,), bits = operands.registers, operands.bits
    half = operands.scalars[0] if operands.scalars else half_of(operands.words[0])
    if half not in (0, 1):
        raise IllegalError(f"{operands.name} has no half {half}", legal=("0", "1"))
    codes, marks = source.lanes(bits), source.defined_lanes(bits)
    lanes = codes.size // 2
    chosen = codes[half * lanes : (half + 1) * lanes]
    sign = "i" if operands.name == "vsunpack" else "u"
    wide: Codes = chosen.view(f"<{sign}{bits // 8}").astype(f"<{sign}{bits // 4}").view(f"<u{bits // 4}")
    return (register_of(wide, marks[half * lanes : (half + 1) * lanes]),)


def squeezed(operands: Operands) -> tuple[Value, ...]:
    """`vsqz`: the active lanes moved to the front in their order, the rest 0."""
    (source,), (mask,), bits = operands.registers, operands.masks, operands.bits
    active = mask.lanes(bits)
    count = int(active.sum())
    codes = np.zeros_like(source.lanes(bits))
    codes[:count] = source.lanes(bits)[active]
    defined = np.ones(codes.size, np.bool_)
    defined[:count] = source.defined_lanes(bits)[active]
    return (register_of(codes, defined & _known_prefix(mask, bits)),)


def squeezed_bytes(mask: Mask, bits: int) -> int:
    """Return how many bytes `vsqz` moves to the front: what it leaves in AR, which `vstur` stores."""
    return int(mask.lanes(bits).sum()) * bits // 8


def active_below(operands: Operands) -> tuple[Value, ...]:
    """`vusqz`: lane i is the number of active lanes below i."""
    (mask,), bits = operands.masks, operands.bits
    active = mask.lanes(bits)
    below: Index = np.cumsum(active, dtype=np.int64) - active
    return (register_of(below.astype(f"<u{bits // 8}"), _known_below(mask, bits)),)


def _known_prefix(mask: Mask, bits: int) -> Bits:
    """Return whether all of a mask is known, for every lane: each result lane depends on all bits."""
    known = mask.defined_lanes(bits)
    return np.full(known.size, known.all())


def _known_below(mask: Mask, bits: int) -> Bits:
    """Return for each lane whether all mask bits below it are known."""
    known = mask.defined_lanes(bits)
    result = np.ones(known.size, np.bool_)
    result[1:] = np.logical_and.accumulate(known)[:-1]
    return result


def same_bytes(operands: Operands) -> tuple[Value, ...]:
    """`vbitcast`: another type for the same bytes."""
    return (operands.registers[0],)
