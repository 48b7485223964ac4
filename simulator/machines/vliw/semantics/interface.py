"""What the values of an instruction depend on and what they change: the contract between machine and semantics.

The machine reads registers (old or new, as its pipeline says), hands them over, and commits what comes back. Nothing
here knows of cycles, slots or register numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.uint8]
"""One V register: its bytes, shape (vector_bytes,)."""

Mask = NDArray[np.bool_]
"""One VP register: an entry per byte of a vector, shape (vector_bytes,)."""

Words = NDArray[np.uint32]
"""State of the vector unit's random generator: one 32-bit word per register, shape (vector_bytes / 4,)."""

Coordinates = tuple[int, ...]
"""One I register: signed 32-bit integers, dimension 0 first."""

Value = Vector | Mask | tuple[Vector, ...] | int | Coordinates
"""What a register holds.

V: `Vector`; D, A and V operands that name a group: a tuple of two or four `Vector`; VP: `Mask`; SP: bool; S: the
unsigned 32-bit pattern; Z and AD: an unsigned 64-bit pattern; I: `Coordinates`.
"""


@dataclass(frozen=True, slots=True)
class OperandValues:
    """The values that an instruction reads from registers.

    `sources` maps roles (`src_a`, `src_b`, ..) to the values of register operands; `Prepared.registers` says which
    registers a role names. Immediates, dimension masks and section numbers stand in the instruction and are not given;
    a mask kept in a register (M0 to M3) is given under `mask` as an integer. Named registers are given as the file they
    are moved to or from (PC and hardware registers: int, S_CARRY: bool, V_CARRY: `Mask`, ZP_REG: `Vector`), except
    random generators and lane numbers, which come from `State` or are constant. `income` is the destination's old value
    in the form of the destination (None only where that is a random generator). `predicate` has its polarity applied:
    bool from SP, `Mask` from VP.

    Arrays are never written to.
    """

    sources: Mapping[str, Value]
    income: Value | None
    predicate: bool | Mask = True


@dataclass(frozen=True, slots=True)
class State:
    """Machine state beside the registers that values depend on.

    `configuration` holds what is visible in the memory-mapped registers, by the names of `VliwTarget.configuration`
    (`round`, `convert_round`, `vector_lfsr_polynomial`, `scalar_lfsr_polynomial`, `f8_143_bias`, `f16_flush_inputs`);
    one that is missing has its reset value. `vector_lfsr` and `scalar_lfsr` are the random generators.
    """

    configuration: Mapping[str, int]
    vector_lfsr: Words
    scalar_lfsr: int


@dataclass(frozen=True, slots=True)
class Effects:
    """The effects of an instruction.

    `result` is the destination's new value, complete: income where nothing is written or the predicate is false; the
    form is that of the destination (two or four vectors for a group). None: the destination is a random generator.
    `vector_lfsr` and `scalar_lfsr` are new states of the generators, None if they stay. `remarks` are sentences about
    uses that no source documents, for the checked mode.
    """

    result: Value | None
    vector_lfsr: Words | None = None
    scalar_lfsr: int | None = None
    remarks: tuple[str, ...] = field(default=())
