"""Values and lanes of TPC instructions, as pure functions of operands and state (docs/reference/tpc.md sections 2, 5
and 7.1).

`prepare` checks an instruction against a generation once, `PreparedInstruction` runs it on operands repeatedly.
Memory accesses and control flow are excluded; see `computes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import CastsimError, IllegalError, ReadError, WarningKind, WarningText
from castsim.isa.formats import Codes, Format, Overflow, Rounding, Saturation
from castsim.isa.tpc.program import File, Register, TpcInstruction
from castsim.machines.mechanisms import CastAsked, ElementCast, saturation_in_force
from castsim.machines.vliw.semantics.convert import (
    ConvertInteger,
    FormNotice,
    PreparedConversion,
    converted,
    policy_of,
    prepare_convert,
    prepare_convert_integer,
    prepare_nearbyint,
)
from castsim.machines.vliw.semantics.elementwise import KINDS, prepare_compare, prepare_elementwise, prepare_select
from castsim.machines.vliw.semantics.moves import INDEX_MOVES, REARRANGEMENTS, prepare_move, prepare_rearrange
from castsim.machines.vliw.semantics.operands import (
    Effects,
    OperandValues,
    State,
    Unit,
    destination_file,
)
from castsim.machines.vliw.semantics.products import prepare_product
from castsim.targets.vliw import RoundingMode, VliwTarget


@dataclass(frozen=True, slots=True)
class PreparedInstruction:
    """A checked instruction that can run repeatedly.

    `registers` maps the roles of its register operands (`dest`, `src_a`, ..) to their registers: several for pairs and
    quads, even if a V operand names the first of them. Named registers and the predicate are omitted.
    """

    instruction: TpcInstruction
    registers: Mapping[str, tuple[Register, ...]]
    unit: Unit

    def at(self, instruction: TpcInstruction) -> PreparedInstruction:
        """Return the meaning of the same instruction at another position, for its errors."""
        return PreparedInstruction(instruction, self.registers, replace(self.unit, instruction=instruction))

    @property
    def notices(self) -> tuple[FormNotice, ...]:
        """The notices on the form, independent of values."""
        return self.unit.notices if isinstance(self.unit, PreparedConversion | ConvertInteger) else ()

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the effects on given operands; a false scalar predicate leaves everything unchanged.

        Raises:
            IllegalError: no source documents a value, and an option refuses it; a configuration register
                does not contain a rounding mode.
            ReadError: a configuration register has an illegal exponent bias.
        """
        if isinstance(operands.predicate, bool | np.bool_) and not operands.predicate:
            return Effects(operands.income)
        try:
            return self.unit(operands, state)
        except CastsimError as error:
            raise error.at(self.instruction.span) from None


def prepare(instruction: TpcInstruction, target: VliwTarget) -> PreparedInstruction:
    """Check an instruction against the tables of a generation and prepare it.

    Raises:
        IllegalError: the generation lacks the conversion, mode, lane, element type or switch (the message lists the
            legal ones), no source states the result of the instruction, or an operand has the wrong number of
            registers.
        KeyError: memory and control instructions have no computation (see `computes`).
    """
    try:
        family = _family(instruction.mnemonic)
        whole = destination_file(instruction) in (File.D, File.A) or instruction.switch("double_and_round32") == 1
        # A MUL that keeps whole products of integers, or rounds them, is another instruction.
        unit = (prepare_product if family == "mul" and whole else _FAMILIES[family])(instruction, target)
        return PreparedInstruction(instruction, unit.registers(), unit)
    except CastsimError as error:
        raise error.at(instruction.span) from None


def computes(instruction: TpcInstruction) -> bool:
    """Return whether `prepare` supports the instruction: all except memory accesses and control."""
    return _family(instruction.mnemonic) in _FAMILIES


def _family(mnemonic: str) -> str:
    for prefix in ("cmp_", "sel_", "sel2_", "convert_"):
        if mnemonic.startswith(prefix):
            return prefix
    return mnemonic


_FAMILIES: dict[str, Callable[[TpcInstruction, VliwTarget], Unit]] = {
    "convert": prepare_convert,
    "convert_": prepare_convert_integer,
    "nearbyint": prepare_nearbyint,
    **dict.fromkeys(REARRANGEMENTS, prepare_rearrange),
    "mov": prepare_move,
    **dict.fromkeys(INDEX_MOVES, prepare_move),
    "cmp_": prepare_compare,
    "sel_": prepare_select,
    "sel2_": prepare_select,
    **dict.fromkeys(KINDS, prepare_elementwise),
}


# A chip's cast of loose elements: what one CONVERT, or one narrowing with shift 0, makes of them. Rounding modes go by
# the chip's own words (`rhne`, `rz`) or by the abstract ones (`rint`, `trunc`).


def element_cast(target: VliwTarget, asked: CastAsked) -> ElementCast:
    """Return the conversion of elements by the vector unit.

    Raises:
        ReadError: the word is not a rounding mode.
        IllegalError: no single instruction converts the pair, or the mode is unavailable or needs random words.
    """
    src, dst = asked.src, asked.dst
    _check_loose_pair(target, src, dst)
    word, mode = _loose_mode(target, asked.rounding)
    policy = policy_of(src, dst, mode, False, target)
    through = target.special_values.intermediate
    clamps = Saturation.ON if policy.overflow is Overflow.SATURATE else Saturation.OFF
    warnings = []
    if asked.saturation not in (None, clamps):
        text = f"saturation {asked.saturation} is ignored: CONVERT {src.name} -> {dst.name} has no such switch"
        warnings.append(WarningText(WarningKind.SATURATION, text))
    if asked.scratch:
        warnings.append(WarningText(WarningKind.SCRATCH, "the tmp tile is ignored: CONVERT works on registers"))
    saturation = saturation_in_force(src, dst, policy.overflow, None)

    def run(codes: Codes) -> Codes:
        return converted(codes, src, dst, policy, None, through)

    return ElementCast(run, word, saturation, policy.overflow, tuple(warnings), policy=policy)


def _check_loose_pair(target: VliwTarget, src: Format, dst: Format) -> None:
    source, destination = (fmt.name.partition("@")[0] for fmt in (src, dst))
    pairs = {(row.src, row.dst) for row in target.converts if row.unit == "vpu"}
    pairs |= {(row.src, row.dst) for row in target.integer_converts if row.unit == "vpu"}
    if (source, destination) not in pairs:
        legal = sorted(to for other, to in pairs if other == source)
        has = f"from {source} it converts to: {', '.join(legal)}" if legal else f"it cannot convert {source}"
        raise IllegalError(
            f"{target.name} has no instruction {source} -> {destination}; {has}",
            legal=[f"{source} -> {other}" for other in legal],
        )


def _loose_mode(target: VliwTarget, asked: str | None) -> tuple[str, RoundingMode]:
    """Return the mode in force: the register's reset value where the instruction leaves it open."""
    modes = target.convert_rounding.modes
    fixed = {word: mode for word, mode in modes.items() if mode.rounding is not None}
    if asked is None or asked.lower() in (target.convert_rounding.default, "none"):
        register = target.configuration.get("convert_round", target.configuration.get("round"))
        reset = register.reset if register is not None else 0
        return next((word, mode) for word, mode in fixed.items() if mode.code == reset)
    wanted = asked.lower()
    for word, mode in fixed.items():
        if wanted in (word, mode.rounding if mode.subnormal_rounding is None else word):
            if mode.rounding is Rounding.STOCHASTIC:
                raise IllegalError(
                    f"rounding {word} uses the chip's random generator; run a program instead",
                    legal=[name for name, other in fixed.items() if other.rounding is not Rounding.STOCHASTIC],
                )
            return word, mode
    if wanted in {mode.value for mode in Rounding}:
        raise IllegalError(f"{target.name} has no rounding mode {asked}", legal=fixed)
    raise ReadError(f"unknown rounding mode '{asked}'", legal=fixed)
