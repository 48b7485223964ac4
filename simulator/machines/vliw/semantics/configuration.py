"""What values take from machine state: element formats, rounding modes, random words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from castsim.isa.errors import IllegalError, Span
from castsim.isa.formats import FORMATS, Format, format_named
from castsim.isa.modes import Rounding
from castsim.isa.tpc.program import TpcInstruction
from castsim.machines.vliw.semantics.interface import Effects, State, Value, Words
from castsim.numerics import lfsr
from castsim.targets.vliw import RoundingMode, RoundingModes, VliwTarget

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
