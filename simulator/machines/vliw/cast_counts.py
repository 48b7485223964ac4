"""What the CONVERTs of a program did to their numbers, judged from the operands and results of each execution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from castsim.execution.cast_tally import CastBatch, CastPlace, CastTally
from castsim.execution.outcomes import Judge
from castsim.isa.codes import Codes
from castsim.isa.formats import FORMATS, Format
from castsim.isa.modes import Overflow, Rounding
from castsim.machines.vliw.plans import InstructionPlan
from castsim.machines.vliw.semantics import Effects, OperandValues, Prepared, State, Value
from castsim.machines.vliw.semantics.configuration import convert_mode, element_format
from castsim.machines.vliw.semantics.convert import PreparedConversion
from castsim.machines.vliw.semantics.convert_integer import ConvertInteger
from castsim.machines.vliw.semantics.lanes import elements, given, integers
from castsim.machines.vliw.semantics.placement import ElementPlacement, admitted
from castsim.machines.vliw.semantics.policies import policy_of
from castsim.numerics import code_dtype

_SHIFTED = FORMATS["f64"]
"""Holds every shifted integer exactly."""

_FARTHEST = 900
"""A shift by more bits gives nothing but a fraction below every step, or a number beyond every range, as this does."""


@dataclass(slots=True)
class ConversionCounts:
    """Counts conversions line by line: lanes that an instruction converts and its predicate admits."""

    places: Mapping[int, CastPlace]
    tally: CastTally = field(default_factory=CastTally)
    _batches: dict[tuple[object, ...], CastBatch] = field(default_factory=dict)

    @classmethod
    def of(cls, plans: Sequence[Sequence[InstructionPlan]]) -> ConversionCounts:
        """Return the counts of a program, nothing counted yet."""
        return cls({id(plan.meaning): _place(plan) for own in plans for plan in own if plan.casts})

    def see(self, meaning: Prepared, operands: OperandValues, state: State, effects: Effects) -> None:
        """Count what an executed instruction has done, if it is a conversion."""
        place = self.places.get(id(meaning))
        if place is None or effects.result is None:
            return
        unit = meaning.unit
        if isinstance(unit, PreparedConversion):
            self._converted(unit, place, operands, state, effects.result)
        elif isinstance(unit, ConvertInteger):
            self._narrowed(unit, place, operands, effects.result)

    def _converted(
        self, unit: PreparedConversion, place: CastPlace, operands: OperandValues, state: State, result: Value
    ) -> None:
        target = unit.target
        src, dst = (element_format(name, target, state) for name in (unit.src, unit.dst))
        mode = convert_mode(unit.mode, target, state, unit.instruction.span)
        assert mode.rounding is not None
        key = id(unit), src.name, dst.name, mode.rounding
        batch = self._batches.get(key)
        if batch is None:
            wraps = policy_of(src, dst, mode, unit.clip, target).overflow is Overflow.WRAP
            batch = self._batches[key] = self.tally.batch(place, Judge(src, dst, mode.rounding, wraps))
        before = _codes(given(unit.instruction, operands, "src_a"), src, unit.placement, scatter=False)
        self._add(batch, before, _codes(result, dst, unit.placement, scatter=True), unit.placement, operands)

    def _narrowed(
        self, unit: ConvertInteger, place: CastPlace, operands: OperandValues, result: Value
    ) -> None:  # fmt: skip
        """Count a narrowing with shift: the number that is cast is the shifted one."""
        batch = self._batches.get((id(unit),))
        if batch is None:
            rounding = unit.mode.rounding or Rounding.RINT
            batch = self._batches[id(unit),] = self.tally.batch(place, Judge(_SHIFTED, unit.dst, rounding, wraps=False))
        codes = _codes(given(unit.instruction, operands, "src_a"), unit.src, unit.placement, scatter=False)
        shifts = np.clip(unit.shifts(given(unit.instruction, operands, "src_b")), -_FARTHEST, _FARTHEST).astype(
            np.int32
        )
        numbers = np.ldexp(integers(codes, unit.src).astype(np.float64), shifts)
        after = _codes(result, unit.dst, unit.placement, scatter=True)
        self._add(batch, numbers.view(np.uint64), after, unit.placement, operands)

    def _add(
        self, batch: CastBatch, before: Codes, after: Codes, placement: ElementPlacement | None, operands: OperandValues
    ) -> None:
        active = admitted(placement, operands)
        batch.add(*((before, after) if active is None else (before[active], after[active])))


def _place(plan: InstructionPlan) -> CastPlace:
    ((src, dst),) = plan.casts
    return CastPlace(plan.site.span.line, f"{plan.instruction.mnemonic} {src} -> {dst}", src, dst)


def _codes(value: Value, fmt: Format, placement: ElementPlacement | None, *, scatter: bool) -> Codes:
    """Return the elements that a conversion reads, or with `scatter` those that it writes."""
    if placement is None:
        assert isinstance(value, int)
        return np.array([value & (1 << fmt.bits) - 1], code_dtype(fmt))
    return elements(value, fmt)[placement.scatter if scatter else placement.gather]
