"""Values and lanes of TPC instructions, as pure functions of operands and state (docs/reference/tpc.md sections 2, 5
and 7.1).

`prepare` checks an instruction against a generation once, `PreparedInstruction` runs it on operands as often as needed,
`evaluate` does both. Memory accesses and control flow are not among them; `computes` tells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from castsim.isa.errors import CastsimError
from castsim.isa.tpc.program import File, Register, TpcInstruction
from castsim.machines.vliw.semantics.configuration import (
    Coordinates,
    Effects,
    Mask,
    OperandValues,
    State,
    Value,
    Vector,
    Words,
)
from castsim.machines.vliw.semantics.convert import (
    ConvertInteger,
    PreparedConversion,
    prepare_convert,
    prepare_convert_integer,
    prepare_nearbyint,
)
from castsim.machines.vliw.semantics.element_lanes import Unit, destination_file
from castsim.machines.vliw.semantics.elementwise import KINDS, prepare_compare, prepare_elementwise, prepare_select
from castsim.machines.vliw.semantics.moves import MoveDimension, PermuteIndex, SetIndex, prepare_move, prepare_rearrange
from castsim.machines.vliw.semantics.policies import FormNotice
from castsim.machines.vliw.semantics.products import prepare_product
from castsim.targets.vliw import VliwTarget

__all__ = [
    "Coordinates",
    "Effects",
    "Mask",
    "OperandValues",
    "PreparedInstruction",
    "State",
    "Value",
    "Vector",
    "Words",
    "computes",
    "evaluate",
    "prepare",
]


_Prepare = Callable[[TpcInstruction, VliwTarget], Unit]


@dataclass(frozen=True, slots=True)
class PreparedInstruction:
    """An instruction whose legality is checked, ready to run any number of times.

    `registers` maps the roles of its register operands (`dest`, `src_a`, ..) to the registers they stand for: several
    for pairs and quads, also where a V operand names the first of them. Named registers and the predicate are left out.
    """

    instruction: TpcInstruction
    registers: Mapping[str, tuple[Register, ...]]
    unit: Unit

    def at(self, instruction: TpcInstruction) -> PreparedInstruction:
        """Return the meaning of the same instruction at another place, to which its refusals then point."""
        return PreparedInstruction(instruction, self.registers, replace(self.unit, instruction=instruction))

    @property
    def notices(self) -> tuple[FormNotice, ...]:
        """The notices on the form, whatever the values."""
        return self.unit.notices if isinstance(self.unit, PreparedConversion | ConvertInteger) else ()

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the effects on given operands; a false scalar predicate leaves everything as it was.

        Raises:
            IllegalError: values that nothing documents, under an option that refuses them; a configuration register
                that holds no rounding mode.
            ReadError: a configuration register with an impossible exponent bias.
        """
        if isinstance(operands.predicate, bool | np.bool_) and not operands.predicate:
            return Effects(operands.income)
        try:
            return self.unit(operands, state)
        except CastsimError as error:
            raise error.at(self.instruction.span) from None


def prepare(instruction: TpcInstruction, target: VliwTarget) -> PreparedInstruction:
    """Check an instruction against the tables of a generation and get it ready to run.

    Raises:
        IllegalError: the generation lacks the conversion, mode, lane, element type or switch (those it has are
            listed), or no source states what the instruction computes.
        KeyError: memory and control instructions compute nothing (`computes` tells).
    """
    try:
        unit = _chosen(instruction)(instruction, target)
        return PreparedInstruction(instruction, unit.registers(), unit)
    except CastsimError as error:
        raise error.at(instruction.span) from None


def evaluate(instruction: TpcInstruction, operands: OperandValues, state: State, target: VliwTarget) -> Effects:
    """Return the effects of one instruction on given operands; errors as `prepare` and `PreparedInstruction`."""
    return prepare(instruction, target)(operands, state)


def computes(instruction: TpcInstruction) -> bool:
    """Whether the instruction is one of those that `prepare` knows: all but memory accesses and control."""
    return _family(instruction.mnemonic) in _FAMILIES


def _family(mnemonic: str) -> str:
    for prefix in ("cmp_", "sel_", "sel2_", "convert_"):
        if mnemonic.startswith(prefix):
            return prefix
    return mnemonic


def _chosen(instruction: TpcInstruction) -> _Prepare:
    family = _family(instruction.mnemonic)
    if family == "mul" and _is_product(instruction):
        return prepare_product
    return _FAMILIES[family]


def _is_product(instruction: TpcInstruction) -> bool:
    """Whether a MUL keeps whole products of integers or rounds them."""
    return destination_file(instruction) in (File.D, File.A) or instruction.switch("double_and_round32") == 1


_FAMILIES: dict[str, _Prepare] = {
    "convert": prepare_convert,
    "convert_": prepare_convert_integer,
    "nearbyint": prepare_nearbyint,
    "pack": prepare_rearrange,
    "unpack": prepare_rearrange,
    "mov_dg": prepare_rearrange,
    "mov_dg.all": prepare_rearrange,
    "mov_dg.pack": prepare_rearrange,
    "mov_dg.unpack": prepare_rearrange,
    "mov_g": prepare_rearrange,
    "mov": prepare_move,
    "set_indx": SetIndex,
    "prmt_indx": PermuteIndex,
    "mov_irf_dim": MoveDimension,
    "cmp_": prepare_compare,
    "sel_": prepare_select,
    "sel2_": prepare_select,
    **dict.fromkeys(KINDS, prepare_elementwise),
}
