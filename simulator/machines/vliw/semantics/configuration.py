"""Operands, effects and machine state of an instruction; formats, rounding modes and random words from state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from castsim.isa.errors import IllegalError, Span
from castsim.isa.formats import FORMATS, Format, format_named
from castsim.isa.modes import Rounding
from castsim.isa.tpc.program import TpcInstruction
from castsim.numerics import lfsr
from castsim.targets.vliw import RoundingMode, RoundingModes, VliwTarget

# What the values of an instruction depend on and what they change: the contract between machine and semantics.
#
# The machine reads registers (old or new, as its pipeline says), hands them over, and commits what comes back. Nothing
# here knows of cycles, slots or register numbers.

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


ROUND = "round"
"""Configuration register of the arithmetic's rounding mode, and of CONVERT's where that has none of its own."""

CONVERT_ROUND = "convert_round"
"""Configuration register of CONVERT's rounding mode."""

_ARITHMETIC = (Rounding.RINT, Rounding.TRUNC, Rounding.CEIL, Rounding.FLOOR)
"""The modes that ADD, SUB and MUL have; any other acts as the first (docs/reference/tpc.md section 5.1)."""


def configured(state: State, target: VliwTarget, name: str) -> int:
    """Return the content of a memory-mapped register: what the state says, else its reset value."""
    value = state.configuration.get(name)
    return target.configuration[name].reset if value is None else value


# --------------------------------------------------------------------------------------------------------- formats

_format_named = lru_cache(maxsize=64)(format_named)


def check_element(instruction: TpcInstruction, target: VliwTarget, name: str | None, legal: tuple[str, ...]) -> str:
    """Return the element type of an instruction after checking that it has it.

    Raises:
        IllegalError: the generation or the instruction lacks it; `legal`, cut down to the generation, is listed.
    """
    available = tuple(known for known in legal if known in target.elements.formats)
    if name is None or name not in available:
        raise IllegalError(
            f"{target.name} has no {instruction.mnemonic} of {name}", span=instruction.span, legal=available
        )
    return name


def whole_bytes(target: VliwTarget) -> tuple[str, ...]:
    """Return the element types that the lanes of the arithmetic units have: of 8, 16 and 32 bits."""
    return tuple(name for name in target.elements.formats if 8 <= FORMATS[name].bits <= 32)


def element_format(name: str, target: VliwTarget, state: State) -> Format:
    """Return a format, with the exponent bias of the configuration register if it has one.

    Raises:
        ReadError: the register holds a bias that the format cannot have.
    """
    register = f"{name}_bias"
    if register not in target.configuration:
        return FORMATS[name]
    return _format_named(f"{name}@{configured(state, target, register)}")


# -------------------------------------------------------------------------------------------------------- rounding


def check_mode(instruction: TpcInstruction, modes: RoundingModes, word: object) -> RoundingMode:
    """Return the rounding mode of that name.

    Raises:
        IllegalError: the instruction has no such mode; the ones it has are listed.
    """
    if word not in modes.modes:
        message = f"{instruction.mnemonic} has no rounding mode {word} here"
        raise IllegalError(message, span=instruction.span, legal=modes.modes)
    return modes.modes[str(word)]


def convert_mode(mode: RoundingMode, target: VliwTarget, state: State, span: Span) -> RoundingMode:
    """Return the mode that CONVERT or NEARBYINT rounds by: its own, or the one in the configuration register.

    Raises:
        IllegalError: the register holds a number that is not a mode.
    """
    if mode.rounding is not None:
        return mode
    register = CONVERT_ROUND if CONVERT_ROUND in target.configuration else ROUND
    code = configured(state, target, register)
    found = _coded(code, target)
    if found is None:
        legal = [f"{mode.code} ({word})" for word, mode in target.convert_rounding.modes.items() if mode.rounding]
        message = f"configuration register {register} holds {code}: not a rounding mode"
        raise IllegalError(message, span=span, legal=legal)
    return found


def arithmetic_rounding(target: VliwTarget, state: State) -> Rounding:
    """Return the mode of float ADD, SUB and MUL."""
    found = _coded(configured(state, target, ROUND), target)
    return found.rounding if found is not None and found.rounding in _ARITHMETIC else _ARITHMETIC[0]


def _coded(code: int, target: VliwTarget) -> RoundingMode | None:
    modes = target.convert_rounding.modes.values()
    return next((mode for mode in modes if mode.code == code and mode.rounding is not None), None)


# ---------------------------------------------------------------------------------------------------------- random


@dataclass(frozen=True, slots=True)
class Drawn:
    """Random words, one per lane, and the generator after this use (one of the two, by unit)."""

    words: Words | None = None
    vector_lfsr: Words | None = None
    scalar_lfsr: int | None = None

    def effects(self, result: Value | None, remarks: tuple[str, ...] = ()) -> Effects:
        """Return the effects of an instruction that drew these words."""
        return Effects(result, self.vector_lfsr, self.scalar_lfsr, remarks)


def draw(
    rounding: Rounding | None,
    lanes: NDArray[np.intp] | None,
    active: NDArray[np.bool_] | None,
    target: VliwTarget,
    state: State,
) -> Drawn:
    """Return the random words of one instruction, if its rounding needs any.

    `lanes` are the numbers of the lanes of the vector unit: lane i reads word i modulo the number of words; None: the
    scalar unit. `active` marks those that the predicate admits (None: all). How a register of words serves more lanes
    than it has, and which words step, are options.

    Raises:
        IllegalError: more lanes than words, and option random_lane_word refuses that.
    """
    if rounding is not Rounding.STOCHASTIC:
        return Drawn()
    if lanes is None:
        words = np.array([state.scalar_lfsr], np.uint32)
        return Drawn(words, scalar_lfsr=int(stepped(words, "scalar_lfsr_polynomial", target, state)[0]))
    count = state.vector_lfsr.size
    if lanes.size and int(lanes.max()) >= count and target.option("random_lane_word") == "refuse":
        message = f"which random words serve lanes beyond {count} is not documented (option random_lane_word)"
        raise IllegalError(message, legal=(f"up to {count} lanes",))
    used = np.full(count, target.option("random_step") == "all")
    used[(lanes if active is None else lanes[active]) % count] = True
    after = stepped(state.vector_lfsr, "vector_lfsr_polynomial", target, state)
    return Drawn(state.vector_lfsr[lanes % count], vector_lfsr=np.where(used, after, state.vector_lfsr))


def stepped(words: Words, polynomial: str, target: VliwTarget, state: State) -> Words:
    """Return a generator after one step; `polynomial` names its configuration register."""
    return lfsr.step(words, configured(state, target, polynomial))
