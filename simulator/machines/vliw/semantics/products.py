"""MUL of integers in the vector unit, which keeps the whole products (docs/reference/tpc.md section 5.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from castsim.isa.codes import Codes
from castsim.isa.formats import FORMATS, Format, IntFormat
from castsim.isa.tpc.program import File, Register, TpcInstruction
from castsim.machines.vliw.semantics import integer_arithmetic
from castsim.machines.vliw.semantics.configuration import check_element, whole_bytes
from castsim.machines.vliw.semantics.interface import Effects, OperandValues, State
from castsim.machines.vliw.semantics.lanes import broadcast, elements, given, lanes_of, merged, vector_of
from castsim.machines.vliw.semantics.placement import ElementPlacement, place, scattered
from castsim.machines.vliw.semantics.registers import destination_file, plain_registers
from castsim.targets.vliw import VliwTarget

BEYOND = "the doubled product is beyond the range: saturated, which no source states"
"""Remark on a rounded product without documented value."""

_WIDENING = {File.D: 2, File.A: 4}
"""How many times wider than its sources a product is, by the class of its destination."""


@dataclass(frozen=True, slots=True)
class Product:
    """Whole products in the lane order of an all_lanes conversion to the wider type, ready to run."""

    instruction: TpcInstruction
    target: VliwTarget
    src: Format
    dst: Format
    placement: ElementPlacement

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the products in their registers."""
        a, b = _sources(self.instruction, operands, self.src, self.target)
        negate = self.instruction.switch("neg") == 1
        bits = integer_arithmetic.product_bits(a, b, self.src, negate=negate)
        products = (bits & np.uint64((1 << self.dst.bits) - 1)).astype(f"u{self.dst.storage_bits // 8}")
        vector_bytes = self.target.registers.vector_bytes
        return Effects(scattered(products, self.dst, self.placement, operands, vector_bytes))

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)


@dataclass(frozen=True, slots=True)
class RoundedProduct:
    """The upper halves of twice the products, ready to run."""

    instruction: TpcInstruction
    target: VliwTarget
    src: IntFormat

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the rounded halves."""
        a, b = _sources(self.instruction, operands, self.src, self.target)
        codes, beyond = integer_arithmetic.doubled_upper_half(a, b, self.src)
        remarks = (BEYOND,) if beyond.any() else ()
        return Effects(merged(vector_of(codes, self.src), operands), remarks=remarks)

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)


def _sources(
    instruction: TpcInstruction, operands: OperandValues, fmt: Format, target: VliwTarget
) -> tuple[Codes, Codes]:
    lanes = lanes_of(fmt, target.registers.vector_bytes)
    first = elements(given(instruction, operands, "src_a"), fmt)
    return first, broadcast(given(instruction, operands, "src_b"), fmt, lanes)


def prepare_product(instruction: TpcInstruction, target: VliwTarget) -> Product | RoundedProduct:
    """Prepare an integer MUL of the vector unit.

    Raises:
        IllegalError: the generation lacks the element type.
    """
    legal = tuple(name for name in whole_bytes(target) if isinstance(FORMATS[name], IntFormat))
    src = FORMATS[check_element(instruction, target, instruction.type, legal)]
    assert isinstance(src, IntFormat)
    file = destination_file(instruction)
    if file not in _WIDENING:
        return RoundedProduct(instruction, target, src)
    bits = src.bits * _WIDENING[file]
    dst = FORMATS[f"{'i' if src.signed else 'u'}{bits}"]
    placement = place(src, dst, target.registers.vector_bytes, lane=None, registers=1)
    return Product(instruction, target, src, dst, placement)
