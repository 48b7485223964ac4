"""The demand on the planner, the results that satisfy it, and the code on which a chain fails."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import DETERMINISTIC, Codes, Format, IntFormat, Overflow, Rounding, format_named
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import decode_to_float64, value_of
from castsim.numerics.policy import Policy, abstract_policy, default_rounding, legal_roundings
from castsim.running.acceptance import (
    AcceptanceSets,
    SpecifiedCast,
    acceptance,
    converted,
    exact_policies,
    is_nan,
    specified_cast,
)
from castsim.targets.loader import Target, load_specification
from castsim.targets.specification import Accept, Specification
from castsim.tools.lowering.samples import all_codes
from castsim.tools.lowering.sharing import Shared
from castsim.tools.lowering.steps import Chain, intermediates

Mask = NDArray[np.bool_]


class Verdict(StrEnum):
    """The verdict on a chain."""

    EXACT = "exact"
    """The single result of the cast, rounded once; all NaNs are equal, and where anything is accepted, all is right."""
    CONFORMS = "conforms"
    """Within the tolerance of the specification, but not always the nearest result."""
    DIFFERS = "differs"
    """Some result does not satisfy the request."""


class Grading:
    """A demand on some codes: its satisfying and reference results are computed once for all chains."""

    def __init__(self, demand: Demand, codes: Codes) -> None:
        self.demand = demand
        self.codes = codes

    @cached_property
    def sets(self) -> AcceptanceSets:
        """The sets of satisfying results."""
        return self.demand.sets(self.codes)

    def satisfied(self, results: Codes) -> Mask:
        """Return which results satisfy the demand."""
        if self.demand.narrowed:
            return self.demand.satisfied(self.codes, results)
        return self.sets.contains(results)

    @cached_property
    def _references(self) -> list[tuple[Codes, Mask]]:
        """Results of every reference policy, and which of them are NaN."""
        src, dst = self.demand.src, self.demand.dst
        conversions = [converted(self.codes, src, dst, policy) for policy in self.demand.references]
        return [(codes, is_nan(codes, dst)) for codes in conversions]

    def matches_reference(self, results: Codes) -> Mask:
        """Return for each reference policy (rows) which results equal its own (any NaN being equal), or are free."""
        nan, free = is_nan(results, self.demand.dst), self.sets.anything
        return np.array([(codes == results) | (nan & of_nan) | free for codes, of_nan in self._references])

    def graded(self, results: Codes) -> Verdict:
        """Return EXACT or CONFORMS for results that all satisfy the demand."""
        if self.demand.narrowed and bool(self.sets.single.all()):
            return Verdict.EXACT
        exact = self.matches_reference(results).all(axis=1).any()
        return Verdict.EXACT if exact else Verdict.CONFORMS


@dataclass(frozen=True)
class Demand:
    """The results that satisfy a request, for codes of `src`."""

    cast: SpecifiedCast
    src: Format
    dst: Format
    rounding: Rounding | None
    saturate: bool

    @property
    def label(self) -> str:
        """Specification, version, attributes and additional demands."""
        return f"{self.cast.label} {self.further}" if self.further else self.cast.label

    @property
    def further(self) -> str:
        """The additional demands, in words."""
        words = [f"rounding {self.rounding}"] if self.rounding else []
        return " ".join([*words, "saturating"] if self.saturate else words)

    @cached_property
    def references(self) -> tuple[Policy, ...]:
        """Policies that each give satisfying results: those of an exact rule, otherwise rounding to nearest."""
        if self.cast.rule.accept is Accept.EXACT:
            return exact_policies(self.cast, self.src, self.dst)
        return (abstract_policy(self.src, self.dst),)

    @cached_property
    def everything(self) -> Grading | None:
        """All codes of the source, None if it has more than 16 bits."""
        codes = all_codes(self.src)
        return None if codes is None else Grading(self, codes)

    @property
    def narrowed(self) -> bool:
        """Whether there are demands beyond the specification."""
        return self.rounding is not None or self.saturate

    def sets(self, codes: Codes) -> AcceptanceSets:
        """Return the satisfying results, one set per code."""
        sets = acceptance(self.cast, self.src, self.dst, codes)
        return self._narrow(sets, codes) if self.narrowed else sets

    def satisfied(self, codes: Codes, results: Codes) -> Mask:
        """Return which results satisfy the request."""
        accepted = self.sets_of_specification(codes).contains(results)
        for wanted, where in self._wanted(codes):
            accepted &= ~where | (results == wanted)
        return accepted

    def sets_of_specification(self, codes: Codes) -> AcceptanceSets:
        """Return the results that the specification alone accepts."""
        return acceptance(self.cast, self.src, self.dst, codes)

    def unsatisfiable(self, codes: Codes) -> Mask:
        """Return where additional demands contradict the specification."""
        sets, contradicted = self.sets_of_specification(codes), np.zeros(codes.shape, np.bool_)
        for wanted, where in self._wanted(codes):
            contradicted |= where & ~sets.contains(wanted)
        return contradicted

    def _narrow(self, sets: AcceptanceSets, codes: Codes) -> AcceptanceSets:
        for wanted, where in self._wanted(codes):
            nan = is_nan(wanted, self.dst)
            sets = replace(
                sets,
                lowest=np.where(where, wanted, sets.lowest),
                highest=np.where(where, wanted, sets.highest),
                further=np.where(where, wanted, sets.further),
                numbers=np.where(where, ~nan, sets.numbers),
                nan=np.where(where, nan, sets.nan),
                anything=sets.anything & ~where,
            )
        return sets

    def _wanted(self, codes: Codes) -> list[tuple[Codes, Mask]]:
        """Return results that additional demands require, each with the positions where they do."""
        if not self.narrowed:
            return []
        mode = default_rounding(self.dst) if self.rounding is None else self.rounding
        # A float overflows if its nearest number does; directed modes stop at the largest one.
        judge = mode if isinstance(self.dst, IntFormat) else default_rounding(self.dst)
        clamped, other = (
            converted(codes, self.src, self.dst, abstract_policy(self.src, self.dst, judge, overflow))
            for overflow in (Overflow.SATURATE, self._unclamped)
        )
        number = np.ones(codes.shape, np.bool_) if isinstance(self.src, IntFormat) else ~is_nan(codes, self.src)
        beyond = (clamped != other) & number
        if not isinstance(self.src, IntFormat):
            beyond |= np.isinf(decode_to_float64(codes, self.src))
        wanted = []
        if self.rounding is not None:
            policy = abstract_policy(self.src, self.dst, mode, Overflow.SATURATE)
            wanted.append((converted(codes, self.src, self.dst, policy), ~beyond & number))
        if self.saturate:
            wanted.append((clamped, beyond))
        return wanted

    @property
    def _unclamped(self) -> Overflow:
        return Overflow.WRAP if isinstance(self.dst, IntFormat) else Overflow.SPECIAL


def grading_of(demand: Demand, codes: Codes) -> Grading:
    """Return the demand on some codes, built once for all chains that are tried on them."""
    key = id(demand), codes.dtype.char, codes.tobytes()
    return _GRADINGS.of(key, lambda: Grading(demand, codes), demand)


_GRADINGS: Shared[Grading] = Shared(16)


# What is asked of the planner: a cast of a specification on a target, and the results that satisfy it.

MOST_STEPS = 4
"""Largest permitted value of `steps`."""


@dataclass(frozen=True, slots=True)
class CastRequest:
    """A request to plan a cast.

    `spec` and `target` are objects, names or paths; for `version` and `attributes` see
    `castsim.running.acceptance.specified_cast`. `rounding` requires results in range rounded by that mode,
    `saturate` results out of range clamped: by an attribute of the specification with that effect if it has one,
    otherwise as an additional demand. `rows` and `cols` are the extent of the tensor that the assembly converts,
    `steps` is the maximum length of a chain.
    """

    src: str
    dst: str
    target: str | Path | Target
    spec: str | Path | Specification = "exact"
    version: str | None = None
    attributes: Mapping[str, str | int] = field(default_factory=dict)
    rounding: str | None = None
    saturate: bool = False
    rows: int = 16
    cols: int = 256
    steps: int = MOST_STEPS


def settle(request: CastRequest) -> Demand:
    """Return the demand of the cast: one object for all targets.

    Raises:
        ReadError: a specification, format, version, attribute or mode is unknown.
        IllegalError: the specification lacks the cast, it is a cast of text, or a mode does not apply to it.
    """
    rounding = request.rounding
    if rounding is not None and rounding not in [mode.value for mode in DETERMINISTIC]:
        raise ReadError(f"unknown rounding mode '{rounding}'", legal=[mode.value for mode in DETERMINISTIC])
    spec = load_specification(request.spec) if isinstance(request.spec, str | Path) else request.spec
    attributes = tuple(sorted((name, str(value)) for name, value in request.attributes.items()))
    key = id(spec), request.src, request.dst, request.version, attributes, rounding, request.saturate
    return _DEMANDS.of(key, lambda: _demand(request, spec), spec)


_DEMANDS: Shared[Demand] = Shared(8)
"""Demands of the last casts; their satisfying results for all codes take some megabytes each."""


def _demand(request: CastRequest, spec: Specification) -> Demand:
    attributes = dict(request.attributes)
    rounding, saturate = request.rounding, request.saturate
    cast = specified_cast(spec, request.src, request.dst, version=request.version, attributes=attributes)
    effects = {attribute.effect: name for name, attribute in cast.spec.attributes.items()}
    if rounding is not None and "rounding" in effects:
        attributes[effects["rounding"]], rounding = rounding, None
    if saturate and "overflow" in effects:
        attributes[effects["overflow"]], saturate = Overflow.SATURATE.value, False
    cast = specified_cast(cast.spec, request.src, request.dst, version=request.version, attributes=attributes)
    if cast.src is None or cast.dst is None:
        raise IllegalError(f"{cast.label}: a chip cannot convert text")
    mode = None if rounding is None else Rounding(rounding)
    if mode is not None and mode not in legal_roundings(cast.src, cast.dst):
        legal = [legal.value for legal in legal_roundings(cast.src, cast.dst) if legal in DETERMINISTIC]
        raise IllegalError(f"rounding {mode} is not defined for {request.src} -> {request.dst}", legal=legal)
    # A signless source that an attribute reads as unsigned is loaded as the unsigned type of its width.
    return Demand(cast, format_named(cast.src.name), cast.dst, mode, saturate)


# The code on which a chain fails, with every value on its way.

Number = Fraction | float


@dataclass(frozen=True, slots=True)
class TracedValue:
    """One intermediate value: its instruction (None for the input), format, code and number."""

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
    """A code on which a chain fails. `values` run from the input to the result; `required` is the correct result."""

    values: tuple[TracedValue, ...]
    required: Required

    @property
    def input(self) -> TracedValue:
        """The input."""
        return self.values[0]

    @property
    def result(self) -> TracedValue:
        """The result of the chain."""
        return self.values[-1]


def decimal_text(value: Number) -> str:
    """Return a number in decimal: an integer in full, otherwise the shortest text that identifies the float64."""
    if isinstance(value, Fraction) and value.denominator == 1:
        return str(value.numerator)
    return repr(float(value))


def counterexample(demand: Demand, chain: Chain, code: int) -> Counterexample:
    """Return the trace of a chain on one code of the demand's source on which it fails."""
    codes = np.array([code], code_dtype(demand.src))
    values = [TracedValue(None, demand.src, code, value_of(code, demand.src))]
    for step, (fmt, step_codes) in zip(chain, intermediates(chain, codes), strict=True):
        values.append(TracedValue(step.label, fmt, int(step_codes[0]), value_of(int(step_codes[0]), fmt)))
    return Counterexample(tuple(values), required(demand, code))


def required(demand: Demand, code: int) -> Required:
    """Return the satisfying results of one source code that does not accept everything."""
    sets = demand.sets(np.array([code], code_dtype(demand.src)))
    if not sets.numbers[0]:
        return Required(None, None, None, bool(sets.nan[0]))
    low, high, further = (
        (int(codes[0]), value_of(int(codes[0]), demand.dst)) for codes in (sets.lowest, sets.highest, sets.further)
    )
    return Required(low, high, None if further in (low, high) else further, bool(sets.nan[0]))
