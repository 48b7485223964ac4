"""Bits, exponents and classes of elements: POPCNT to FORM_FP_NUM (docs/reference/tpc.md section 5.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, FloatFormat, Format
from castsim.isa.tpc.program import File, Register, TpcInstruction
from castsim.machines.vliw.semantics.configuration import check_element, element_format, whole_bytes
from castsim.machines.vliw.semantics.interface import Effects, OperandValues, State, Value
from castsim.machines.vliw.semantics.lanes import broadcast, given, lanes_of, merged, vector_of
from castsim.machines.vliw.semantics.moves import narrow_result
from castsim.machines.vliw.semantics.registers import destination_file, plain_registers
from castsim.numerics import code_dtype
from castsim.targets.vliw import VliwTarget

Wide = NDArray[np.int64]

_Rule = Callable[[tuple[Wide, ...], Format, TpcInstruction, VliwTarget], Wide]
"""From the codes of all sources to the result's, whose bits above the element are dropped."""


# ------------------------------------------------------------------------------------------------------- bits


def _wanted(codes: Wide, fmt: Format, instruction: TpcInstruction) -> Wide:
    """Return codes whose ones are the bits that are counted or searched."""
    return codes if instruction.switch("set") == 1 else codes ^ ((1 << fmt.bits) - 1)


def _count(sources: tuple[Wide, ...], fmt: Format, instruction: TpcInstruction, target: VliwTarget) -> Wide:
    del target
    return np.bitwise_count(_wanted(sources[0], fmt, instruction)).astype(np.int64)


def _find_first(sources: tuple[Wide, ...], fmt: Format, instruction: TpcInstruction, target: VliwTarget) -> Wide:
    """Return the place of the first bit; where there is none, what an option says."""
    codes = _wanted(sources[0], fmt, instruction)
    lowest = np.bitwise_count((codes & -codes) - 1).astype(np.int64)
    spread = codes.copy()
    for step in (1, 2, 4, 8, 16):
        spread |= spread >> step
    highest = np.bitwise_count(spread).astype(np.int64) - 1
    found = lowest
    if instruction.switch("start") == "start_msb":
        found = highest if target.option("find_first_position") == "bit" else fmt.bits - 1 - highest
    nothing = fmt.bits if target.option("find_first_none") == "width" else 0xFF
    return np.where(codes == 0, nothing, found)


def _reverse(sources: tuple[Wide, ...], fmt: Format, instruction: TpcInstruction, target: VliwTarget) -> Wide:
    """Return elements with their bits in the opposite order."""
    del instruction, target
    found = np.zeros_like(sources[0])
    for place in range(fmt.bits):
        found |= (sources[0] >> place & 1) << (fmt.bits - 1 - place)
    return found


# -------------------------------------------------------------------------------------------------- exponents


def _exponent(codes: Wide, fmt: FloatFormat) -> Wide:
    return codes >> fmt.fraction_bits & fmt.exponent_mask


def _extract(sources: tuple[Wide, ...], fmt: Format, instruction: TpcInstruction, target: VliwTarget) -> Wide:
    """Return the exponent field, or the field less the bias."""
    assert isinstance(fmt, FloatFormat)
    field = _exponent(sources[0], fmt)
    if instruction.switch("biased") is not None:
        subtracts = instruction.switch("biased") == 0
    else:
        subtracts = (instruction.switch("subtract_bias") == 1) == (target.option("exponent_word") == "named")
    return field - fmt.bias if subtracts else field


_FORCED = ("force_sign0", "force_sign1", "sign_lsb")


def _form(sources: tuple[Wide, ...], fmt: Format, instruction: TpcInstruction, target: VliwTarget) -> Wide:
    """Return numbers put together from the exponent of the first source, the sign of the second, the third's rest."""
    del target
    assert isinstance(fmt, FloatFormat)
    exponent, sign, mantissa = sources
    field = exponent & 0xFF if instruction.switch("exp_is_num") == 1 else _exponent(exponent, fmt)
    if instruction.switch("exp_add_bias") == 1:
        field = field + fmt.bias
    top = sign >> (fmt.bits - 1)
    if instruction.switch("sign_lsb") == 1:
        top = sign & 1
    if instruction.switch("force_sign0") == 1:
        top = np.zeros_like(sign)
    if instruction.switch("force_sign1") == 1:
        top = np.ones_like(sign)
    return (top & 1) << (fmt.bits - 1) | (field & fmt.exponent_mask) << fmt.fraction_bits | mantissa & fmt.fraction_mask


def _classes(sources: tuple[Wide, ...], fmt: Format, instruction: TpcInstruction, target: VliwTarget) -> Wide:
    """Return one bit per class: -inf, -normal, -subnormal, -0, +0, and so on; 8-bit types have one zero and one NaN."""
    del instruction, target
    assert isinstance(fmt, FloatFormat)
    codes = sources[0]
    field, fraction, negative = _exponent(codes, fmt), codes & fmt.fraction_mask, codes >> (fmt.bits - 1) & 1
    special, small = field == fmt.exponent_mask, field == 0
    distance = np.select([special, ~small, fraction != 0], [0, 1, 2], 3)  # from infinity towards zero
    narrow = fmt.bits == 8
    last = 6 if narrow else 7
    place = np.where(negative == 1, distance, last - distance)
    quiet = 7 if narrow else 8 + (fraction >> (fmt.fraction_bits - 1))
    return np.left_shift(1, np.where(special & (fraction != 0), quiet, place))


# -------------------------------------------------------------------------------------------------------- units


@dataclass(frozen=True, slots=True)
class _Kind:
    """One mnemonic: its rule, the roles of its sources, whether integers have it, the type of its result."""

    rule: _Rule
    roles: tuple[str, ...] = ("src_a",)
    integers: bool = True
    result: str = "u"
    """`u` or `i` and the width of the source, or empty for the source's own type."""


_KINDS: Mapping[str, _Kind] = {
    "popcnt": _Kind(_count),
    "brev": _Kind(_reverse, result=""),
    "find_first": _Kind(_find_first),
    "extract_exp": _Kind(_extract, integers=False, result="i"),
    "form_fp_num": _Kind(_form, ("src_a", "src_b", "src_c"), integers=False, result=""),
    "fclass": _Kind(_classes, integers=False),
}
BIT_FIELDS = tuple(_KINDS)
"""The mnemonics of this module."""


@dataclass(frozen=True, slots=True)
class BitField:
    """An operation on the bits of elements, ready to run."""

    instruction: TpcInstruction
    target: VliwTarget
    kind: _Kind

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the result in the form of the destination."""
        target = self.target
        fmt = element_format(str(self.instruction.type), target, state)
        scalar = destination_file(self.instruction) is File.S
        lanes = 1 if scalar else lanes_of(fmt, target.registers.vector_bytes)
        sources = tuple(self._codes(operands, role, fmt, lanes) for role in self.kind.roles)
        found = self.kind.rule(sources, fmt, self.instruction, target) & ((1 << fmt.bits) - 1)
        codes: Codes = found.astype(code_dtype(fmt))
        if not scalar:
            return Effects(merged(vector_of(codes, fmt), operands))
        dst = FORMATS[f"{self.kind.result}{fmt.bits}"] if self.kind.result else fmt
        return Effects(merged(narrow_result(int(codes[0]), dst, operands, target), operands))

    def _codes(self, operands: OperandValues, role: str, fmt: Format, lanes: int) -> Wide:
        value: Value = given(self.instruction, operands, role)
        return broadcast(value, fmt, lanes).astype(np.int64)

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)


def prepare_bit_field(instruction: TpcInstruction, target: VliwTarget) -> BitField:
    """Check an operation on bits.

    Raises:
        IllegalError: the generation or the operation lacks the element type, or no source states what a switch does.
    """
    kind = _KINDS[instruction.mnemonic]
    legal = tuple(name for name in whole_bytes(target) if kind.integers or isinstance(FORMATS[name], FloatFormat))
    check_element(instruction, target, instruction.type, legal)
    for name in ("limit", "special_func"):
        ignored = name == "limit" and target.option("class_limit") == "ignore"
        if instruction.switch(name) and not ignored:
            message = f"{instruction.mnemonic}: no source states what {name} computes"
            raise IllegalError(message, span=instruction.span, legal=(f"{instruction.mnemonic} without {name}",))
    forced = [name for name in _FORCED if instruction.switch(name) == 1]
    if len(forced) > 1:
        message = f"{instruction.mnemonic}: {' and '.join(forced)} exclude each other"
        raise IllegalError(message, span=instruction.span, legal=_FORCED)
    return BitField(instruction, target, kind)
