"""NEARBYINT: floats rounded to integral values, and with `cnvrt` the same as integers.

Source: docs/reference/tpc.md section 2.3 (modes) and 5 (values), docs/reference/tpc.md section 5.2 (`cnvrt`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, FloatFormat
from castsim.isa.tpc.program import File, Register, TpcInstruction
from castsim.machines.vliw.semantics.configuration import (
    check_element,
    check_mode,
    convert_mode,
    draw,
    element_format,
    whole_bytes,
)
from castsim.machines.vliw.semantics.interface import Effects, OperandValues, State, Value
from castsim.machines.vliw.semantics.lanes import given, vectors
from castsim.machines.vliw.semantics.moves import narrow_result
from castsim.machines.vliw.semantics.placement import ElementPlacement, admitted, gathered, place, scattered
from castsim.machines.vliw.semantics.policies import converted, integral_policy, policy_of
from castsim.machines.vliw.semantics.registers import destination_file, group_of
from castsim.numerics import code_dtype, round_to_integral_codes
from castsim.targets.vliw import RoundingMode, VliwTarget

_INTEGER_OF = {32: "i32", 16: "i16", 8: "i8"}
"""The integer that `cnvrt` makes of a float, by its width."""


@dataclass(frozen=True, slots=True)
class NearbyInt:
    """Rounding of floats to integral values, ready to run.

    `placement` is None in the scalar unit. `integer` is the format of a second result (None: there is one): the
    rounded value in the source type goes to the first register of a pair, the same value as an integer to the second.
    """

    instruction: TpcInstruction
    target: VliwTarget
    element: str
    mode: RoundingMode
    placement: ElementPlacement | None
    integer: str | None = None

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the rounded elements."""
        target, placement = self.target, self.placement
        fmt = element_format(self.element, target, state)
        assert isinstance(fmt, FloatFormat)
        mode = convert_mode(self.mode, target, state, self.instruction.span)
        policy = integral_policy(fmt, mode)
        value = given(self.instruction, operands, "src_a")
        lanes = placement.lane if placement else None
        random = draw(mode.rounding, lanes, admitted(placement, operands), target, state)
        if placement is None:
            assert isinstance(value, int)
            codes = np.array([value & (1 << fmt.bits) - 1], code_dtype(fmt))
            code = int(round_to_integral_codes(codes, fmt, policy, random=random.words)[0])
            return random.effects(narrow_result(code, fmt, operands, target))
        codes = gathered(value, fmt, placement.gather)
        results = round_to_integral_codes(codes, fmt, policy, random=random.words)
        if self.integer is None:
            return random.effects(scattered(results, fmt, placement, operands, target.registers.vector_bytes))
        whole = FORMATS[self.integer]
        through = target.special_values.intermediate
        numbers = converted(codes, fmt, whole, policy_of(fmt, whole, mode, False, target), random.words, through)
        return random.effects(self._pair(operands, placement, results, numbers))

    def _pair(self, operands: OperandValues, placement: ElementPlacement, results: Codes, numbers: Codes) -> Value:
        """Return both registers; a false predicate keeps both."""
        assert operands.income is not None and self.integer is not None
        size = self.target.registers.vector_bytes
        parts = zip((self.element, self.integer), (results, numbers), vectors(operands.income), strict=True)
        return tuple(
            vector
            for name, codes, income in parts
            for vector in vectors(scattered(codes, FORMATS[name], placement, replace(operands, income=income), size))
        )

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        counts = {"src_a": 1, "dest": 1 if self.integer is None else 2}
        return {role: group_of(self.instruction, role, count, self.target) for role, count in counts.items()}


def prepare_nearbyint(instruction: TpcInstruction, target: VliwTarget) -> NearbyInt:
    """Check a NEARBYINT.

    Raises:
        IllegalError: no float of the generation, no such mode, another integer than `cnvrt` makes of the type, or a
            destination of another number of registers.
    """
    floats = tuple(name for name in whole_bytes(target) if isinstance(FORMATS[name], FloatFormat))
    element = check_element(instruction, target, instruction.type, floats)
    mode = check_mode(instruction, target.convert_rounding, instruction.switch("rounding"))
    placement, integer = None, None
    if destination_file(instruction) is not File.S:
        fmt = FORMATS[element]
        placement = place(fmt, fmt, target.registers.vector_bytes, lane=None, registers=1)
        if instruction.switch("cnvrt"):
            integer = _INTEGER_OF[fmt.bits]
            if instruction.switch("target_type") != integer:
                message = f"nearbyint.{element} cnvrt makes {integer} of {element}"
                raise IllegalError(message, span=instruction.span, legal=(f"target_type=int{fmt.bits}",))
    found = NearbyInt(instruction, target, element, mode, placement, integer)
    found.registers()
    return found
