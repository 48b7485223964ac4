"""Values of GET_LUT_ENTRY_AND_INTERVAL_START (docs/reference/tpc.md section 5.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, FloatFormat
from castsim.isa.tpc.program import Immediate, Register, TpcInstruction
from castsim.machines.vliw.semantics.configuration import check_element
from castsim.machines.vliw.semantics.interface import Effects, OperandValues, State
from castsim.machines.vliw.semantics.lanes import broadcast, given, lanes_of, merged, vector_of
from castsim.machines.vliw.semantics.registers import plain_registers
from castsim.numerics import code_dtype
from castsim.targets.vliw import VliwTarget

_FLOATS = ("f32", "bf16", "f16")
_PARITY = "sqrt_rsqrt"


@dataclass(frozen=True, slots=True)
class TableEntry:
    """The instruction ready to run: the entry is the fraction above `shift`, and `exponent_bits` of the exponent."""

    instruction: TpcInstruction
    target: VliwTarget
    fmt: FloatFormat
    shift: int
    exponent_bits: int

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the numbers of the entries, and where their intervals begin."""
        fmt = self.fmt
        lanes = lanes_of(fmt, self.target.registers.vector_bytes)
        codes = broadcast(given(self.instruction, operands, "src_a"), fmt, lanes).astype("i8")
        wanted = (1 << (fmt.fraction_bits + self.exponent_bits)) - 1
        dtype = code_dtype(fmt)
        entries = ((codes & wanted) >> self.shift).astype(dtype)
        dropped = (1 << min(self.shift, fmt.fraction_bits)) - 1
        starts = (codes & ~dropped).astype(dtype)
        return Effects(merged((vector_of(entries, fmt), vector_of(starts, fmt)), operands))

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)


def prepare_entry(instruction: TpcInstruction, target: VliwTarget) -> TableEntry:
    """Check the instruction.

    Raises:
        IllegalError: the generation lacks the type; a variant or switch of which no source states the arithmetic.
    """
    name = check_element(instruction, target, instruction.type, _FLOATS)
    for switch in ("opt", "exp0"):
        if instruction.switch(switch) == 1:
            message = f"no source states what {switch} does to the entry"
            raise IllegalError(message, legal=(f"{instruction.mnemonic} without {switch}",))
    variant = str(instruction.switch("variant"))
    parity = variant == _PARITY and target.option("lut_entry_variants") == "parity"
    if variant != "none" and not parity:
        also = ("sqrt_rsqrt under option lut_entry_variants=parity",)
        raise IllegalError(f"no source states which entry variant {variant} takes", legal=("no variant", *also))
    shift = instruction.operand("shift")
    fmt = FORMATS[name]
    assert isinstance(shift, Immediate) and isinstance(fmt, FloatFormat)
    return TableEntry(instruction, target, fmt, shift.value, int(parity))
