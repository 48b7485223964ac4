"""The code on which a chain fails, with every value on its way."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from castsim.isa.formats import Format
from castsim.numerics import code_dtype, value_of
from castsim.planning.demand import Demand
from castsim.planning.steps import Chain, intermediates

Number = Fraction | float


@dataclass(frozen=True, slots=True)
class TracedValue:
    """One value on the way: what made it (the input: None), its format, code and number."""

    step: str | None
    format: Format
    code: int
    value: Number


@dataclass(frozen=True, slots=True)
class Required:
    """The satisfying results: codes and numbers of the lowest and highest (None: no number), and whether any NaN is."""

    lowest: tuple[int, Number] | None
    highest: tuple[int, Number] | None
    further: tuple[int, Number] | None
    nan: bool


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A code on which a chain fails. `values` begin with the input and end with the result; `required` is right."""

    values: tuple[TracedValue, ...]
    required: Required

    @property
    def input(self) -> TracedValue:
        """The input."""
        return self.values[0]

    @property
    def result(self) -> TracedValue:
        """The value that the chain makes of it."""
        return self.values[-1]


def decimal_text(value: Number) -> str:
    """Return a number in decimal: whole where it is, else as short as tells it from other float64 numbers."""
    if isinstance(value, Fraction) and value.denominator == 1:
        return str(value.numerator)
    return repr(float(value))


def counterexample(demand: Demand, chain: Chain, code: int) -> Counterexample:
    """Return the trace of a chain on one code of the demand's source on which it fails."""
    codes = np.array([code], code_dtype(demand.src))
    values = [TracedValue(None, demand.src, code, value_of(code, demand.src))]
    for step, (fmt, found) in zip(chain, intermediates(chain, codes), strict=True):
        values.append(TracedValue(step.label, fmt, int(found[0]), value_of(int(found[0]), fmt)))
    return Counterexample(tuple(values), required(demand, code))


def required(demand: Demand, code: int) -> Required:
    """Return the satisfying results of one code of the source, for which not anything is."""
    sets = demand.sets(np.array([code], code_dtype(demand.src)))
    if not sets.numbers[0]:
        return Required(None, None, None, bool(sets.nan[0]))
    low, high, further = (
        (int(codes[0]), value_of(int(codes[0]), demand.dst)) for codes in (sets.lowest, sets.highest, sets.further)
    )
    return Required(low, high, None if further in (low, high) else further, bool(sets.nan[0]))
