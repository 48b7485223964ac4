"""Values of GET_LUT_ENTRY_AND_INTERVAL_START (docs/reference/tpc.md section 5.5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from castsim.isa.formats import FORMATS, FloatFormat
from castsim.isa.tpc.program import Immediate, Register, TpcInstruction
from castsim.machines.vliw.semantics.configuration import check_element
from castsim.machines.vliw.semantics.interface import Effects, OperandValues, State
from castsim.machines.vliw.semantics.lanes import broadcast, given, lanes_of, merged, vector_of
from castsim.machines.vliw.semantics.registers import plain_registers
from castsim.machines.vliw.semantics.unstated import UnstatedError
from castsim.numerics import code_dtype
from castsim.targets.vliw import VliwTarget

_FLOATS = ("f32", "bf16", "f16")
_Intervals = tuple[NDArray[np.int64], NDArray[np.int64]]
_Rule = Callable[[NDArray[np.int64], FloatFormat, int], _Intervals]
"""From codes to the numbers of their entries and the codes of the starts; the shift leaves so many bits away."""


def _by_fraction(codes: NDArray[np.int64], fmt: FloatFormat, shift: int, exponent_bits: int = 0) -> _Intervals:
    """Return the entries that the highest fraction bits name, below some of the exponent's lowest bits."""
    wanted = (1 << (fmt.fraction_bits + exponent_bits)) - 1
    dropped = (1 << min(shift, fmt.fraction_bits)) - 1
    return (codes & wanted) >> shift, codes & ~dropped


def _by_parity(codes: NDArray[np.int64], fmt: FloatFormat, shift: int) -> _Intervals:
    return _by_fraction(codes, fmt, shift, 1)


def _uniform(codes: NDArray[np.int64], fmt: FloatFormat, shift: int) -> _Intervals:
    """Return the entries of intervals of equal length from 0 on, as many as a binade has below 1, modulo 1 above."""
    magnitude = codes & (fmt.sign_bit - 1)
    exponent = np.maximum(magnitude >> fmt.fraction_bits, 1)
    significand = (magnitude & fmt.fraction_mask) + np.where(magnitude > fmt.fraction_mask, 1 << fmt.fraction_bits, 0)
    down = shift + fmt.bias - exponent  # an interval is 2 ** (shift - fraction bits) long
    kept = np.clip(down, 0, fmt.fraction_bits + 1)
    entries = (significand >> kept) & ((1 << max(0, fmt.fraction_bits - shift)) - 1)
    starts = np.where(significand >> kept == 0, 0, magnitude & ~((1 << kept) - 1))
    return np.where(down < 0, 0, entries), starts | codes & fmt.sign_bit


def _by_binade(codes: NDArray[np.int64], fmt: FloatFormat, shift: int) -> _Intervals:
    """Return equal intervals below 1, and from there on the binades of 1, 2 and 4 behind each other, modulo 8."""
    entries, starts = _uniform(codes, fmt, shift)
    above, beginnings = _by_fraction(codes, fmt, shift)
    binade = ((codes & (fmt.sign_bit - 1)) >> fmt.fraction_bits) - fmt.bias + 1
    count = 1 << max(0, fmt.fraction_bits - shift)
    far = binade > 0
    return np.where(far, above + binade % _BINADES * count, entries), np.where(far, beginnings, starts)


_BINADES = 4
_VARIANTS: Mapping[str, _Rule] = {"sqrt_rsqrt": _by_parity, "sin_cos": _uniform, "tanh": _by_binade}
"""What the variants do, inferred from the sizes of the tables that the vendor's functions read by them."""


@dataclass(frozen=True, slots=True)
class TableEntry:
    """The instruction ready to run."""

    instruction: TpcInstruction
    target: VliwTarget
    fmt: FloatFormat
    shift: int
    rule: _Rule

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the numbers of the entries, and where their intervals begin."""
        fmt = self.fmt
        lanes = lanes_of(fmt, self.target.registers.vector_bytes)
        codes = broadcast(given(self.instruction, operands, "src_a"), fmt, lanes).astype(np.int64)
        entries, starts = (part.astype(code_dtype(fmt)) for part in self.rule(codes, fmt, self.shift))
        return Effects(merged((vector_of(entries, fmt), vector_of(starts, fmt)), operands))

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)


def prepare_entry(instruction: TpcInstruction, target: VliwTarget) -> TableEntry:
    """Check the instruction.

    Raises:
        IllegalError: the generation lacks the type.
        UnstatedError: a variant or switch of which no source states the arithmetic.
    """
    name = check_element(instruction, target, instruction.type, _FLOATS)
    for switch in ("opt", "exp0"):
        if instruction.switch(switch) == 1:
            message = f"no source states what {switch} does to the entry"
            raise UnstatedError(message, legal=(f"{instruction.mnemonic} without {switch}",))
    variant = str(instruction.switch("entry_variant"))
    inferred = variant in _VARIANTS and target.option("lut_entry_variants") == "inferred"
    if variant != "none" and not inferred:
        options = (f"{variant} under option lut_entry_variants=inferred",) if variant in _VARIANTS else ()
        raise UnstatedError(f"no source states which entry variant {variant} takes", legal=("no variant", *options))
    shift = instruction.operand("shift")
    fmt = FORMATS[name]
    assert isinstance(shift, Immediate) and isinstance(fmt, FloatFormat)
    return TableEntry(instruction, target, fmt, shift.value, _VARIANTS[variant] if inferred else _by_fraction)
