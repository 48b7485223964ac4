"""From an instruction to what computes it, those of real kernels included, and what is known and not computed.

`castsim.machines.vliw.semantics` holds the values of casts and of the arithmetic around them. Others are added here, so
that the proofs about those stay what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from castsim.isa.errors import CastsimError, IllegalError
from castsim.isa.tpc.program import Register, TpcInstruction
from castsim.machines.vliw import semantics
from castsim.machines.vliw.elementary import Rounded
from castsim.machines.vliw.lookups import prepare_lookup
from castsim.machines.vliw.semantics import Effects, OperandValues, Prepared, State
from castsim.machines.vliw.semantics.accumulation import prepare_accumulation, prepare_shifted
from castsim.machines.vliw.semantics.bit_fields import BIT_FIELDS, prepare_bit_field
from castsim.machines.vliw.semantics.lanes import merged
from castsim.machines.vliw.semantics.registers import plain_registers
from castsim.machines.vliw.semantics.shuffles import prepare_shuffle
from castsim.machines.vliw.semantics.special_results import (
    DIVISIONS,
    UnstatedError,
    prepare_division,
    prepare_entry,
    prepare_special,
)
from castsim.machines.vliw.tables import LOOKUPS, NO_TABLES, Tables
from castsim.targets.vliw import VliwTarget

_CONTROL = ("halt", "loop", "jmpr", "jmpa")

_NO_EFFECT = ("event", "prefetch", "aso")
"""Instructions that change neither registers nor memory."""


_UNSTATED = {
    "high": "which coordinates set_indx writes with `high`",
    "keep_rs_for_add": "what a sum takes from a product that keeps its bits for it",
}
"""What no source says of instructions under a switch."""


@dataclass(frozen=True, slots=True)
class NoEffect:
    """An instruction that changes nothing that a program can read."""

    instruction: TpcInstruction
    target: VliwTarget

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return no effects."""
        return Effects(operands.income)

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)


@dataclass(frozen=True, slots=True)
class NoEntry:
    """An entry of a table that has no values, so that none counts: the first."""

    instruction: TpcInstruction
    target: VliwTarget

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return zeros."""
        zeros = np.zeros(self.target.registers.vector_bytes, np.uint8)
        return Effects(merged((zeros, zeros), operands))

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)


@dataclass(frozen=True, slots=True)
class NotComputed:
    """An instruction that is read, encoded, linted and timed, and whose values are not modelled, or not stated."""

    instruction: TpcInstruction
    target: VliwTarget
    unstated: UnstatedError | None = None

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Refuse.

        Raises:
            IllegalError: always.
        """
        if self.unstated is not None:
            raise self.unstated
        message = f"{self.instruction.mnemonic} is known, but its values are not modelled"
        raise IllegalError(message, span=self.instruction.span, legal=("castsim lint", "castsim run --timing-only"))

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)


def computes(instruction: TpcInstruction) -> bool:
    """Whether `prepare` knows the instruction: all but memory accesses and control."""
    return instruction.form.memory is None and instruction.mnemonic not in _CONTROL


def prepare(instruction: TpcInstruction, target: VliwTarget, tables: Tables = NO_TABLES) -> Prepared:
    """Check an instruction against the tables of a generation and get it ready to run; `tables` are those it looks up.

    Raises:
        IllegalError: as `castsim.machines.vliw.semantics.prepare`; a look-up that its table does not serve.
        ReadError: tables are declared, and not the one of a look-up.
    """
    unstated = next((text for name, text in _UNSTATED.items() if instruction.switch(name) == 1), None)
    if unstated is None and instruction.operand("steps") is not None:
        unstated = f"which steps of a division the number of {instruction.mnemonic} chooses"
    if unstated is None and instruction.mnemonic in ("add", "sub") and "A" in instruction.form.operands[0].accepts:
        unstated = f"how the elements of {instruction.mnemonic}.{instruction.type} lie in four registers"
    if unstated is not None:
        legal = ("castsim lint", "castsim run --timing-only")
        refusal = UnstatedError(f"no source states {unstated}", span=instruction.span, legal=legal)
        refused = NotComputed(instruction, target, refusal)
        return Prepared(instruction, refused.registers(), refused)
    if semantics.computes(instruction) and not _beyond(instruction):
        return semantics.prepare(instruction, target)
    try:
        unit: _Unit
        if instruction.mnemonic in LOOKUPS:
            unit = prepare_lookup(instruction, target, tables)
        elif instruction.mnemonic == "rounded":
            unit = Rounded(instruction, target, tables)
        else:
            unit = _FAMILIES.get(instruction.mnemonic, NotComputed)(instruction, target)
        return Prepared(instruction, unit.registers(), unit)
    except UnstatedError as error:
        unit = NotComputed(instruction, target, error)
        if instruction.mnemonic == "get_lut_entry_and_interval_start" and tables.codes and not tables.any():
            unit = NoEntry(instruction, target)
        return Prepared(instruction, unit.registers(), unit)
    except CastsimError as error:
        raise error.at(instruction.span) from None


class _Unit(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __call__(self, operands: OperandValues, state: State) -> Effects: ...

    def registers(self) -> Mapping[str, tuple[Register, ...]]: ...


_FAMILIES: Mapping[str, Callable[[TpcInstruction, VliwTarget], _Unit]] = {
    **dict.fromkeys(_NO_EFFECT, NoEffect),
    **dict.fromkeys(BIT_FIELDS, prepare_bit_field),
    **dict.fromkeys(("mac", "madd", "add", "sub", "mul"), prepare_accumulation),
    "msac": prepare_shifted,
    "shuffle": prepare_shuffle,
    "calc_fp_special": prepare_special,
    "get_lut_entry_and_interval_start": prepare_entry,
    **dict.fromkeys(DIVISIONS, prepare_division),
}
"""Whatever `semantics` does not know, by mnemonic; sums and products come here for pairs of registers."""


def _beyond(instruction: TpcInstruction) -> bool:
    """Whether switches make another instruction of it: pairs, but of conversions and moves, or wide results."""
    pairs = instruction.switch("x2") == 1 and instruction.mnemonic not in ("convert", "mov")
    return pairs or (instruction.mnemonic == "mul" and instruction.switch("acc_fp32") == 1)
