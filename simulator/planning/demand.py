"""What satisfies a request: the accepted results of a cast, and how well those of a chain satisfy it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from castsim.isa.codes import Codes
from castsim.isa.formats import Format, IntFormat
from castsim.isa.modes import Overflow, Rounding
from castsim.numerics import Policy, abstract_policy, convert_codes, decode_to_float64
from castsim.numerics.policy import default_rounding
from castsim.planning.samples import all_codes
from castsim.planning.sharing import Shared
from castsim.specifications import AcceptanceSets, SpecifiedCast, acceptance
from castsim.specifications.acceptance import exact_policies
from castsim.specifications.rescale import is_nan
from castsim.targets.specification import Accept

Mask = NDArray[np.bool_]


class Verdict(StrEnum):
    """The verdict on a chain."""

    EXACT = "exact"
    """The one result of the cast, rounded once; any NaN counts as NaN, and anything goes where anything is accepted."""
    CONFORMS = "conforms"
    """Within the tolerance of the specification, not everywhere the nearest result."""
    DIFFERS = "differs"
    """Some result does not satisfy the request."""


class Grading:
    """A demand on some codes: what satisfies it and the reference results are computed once, however many chains."""

    def __init__(self, demand: Demand, codes: Codes) -> None:
        self.demand = demand
        self.codes = codes

    @cached_property
    def sets(self) -> AcceptanceSets:
        """The satisfying results."""
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
        found = [convert_codes(self.codes, src, dst, policy) for policy in self.demand.references]
        return [(codes, is_nan(codes, dst)) for codes in found]

    def matches_reference(self, results: Codes) -> Mask:
        """Return for each reference policy (rows) which results are its own, any NaN being one, or free."""
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
        """Specification, version, attributes and further demands."""
        return f"{self.cast.label} {self.further}" if self.further else self.cast.label

    @property
    def further(self) -> str:
        """The further demands beside the specification, in words."""
        words = [f"rounding {self.rounding}"] if self.rounding else []
        return " ".join([*words, "saturating"] if self.saturate else words)

    @cached_property
    def references(self) -> tuple[Policy, ...]:
        """Policies of which each gives satisfying results: those of an exact rule, else rounding to nearest."""
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
        """Whether something is asked for beside the specification."""
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
        """Return where what is asked for beside the specification contradicts it."""
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
        """Return results that are asked for beside the specification, each with the places where it is."""
        if not self.narrowed:
            return []
        mode = default_rounding(self.dst) if self.rounding is None else self.rounding
        # A float overflows if its nearest number does; directed modes stop at the largest one.
        judge = mode if isinstance(self.dst, IntFormat) else default_rounding(self.dst)
        clamped, other = (
            convert_codes(codes, self.src, self.dst, abstract_policy(self.src, self.dst, judge, overflow))
            for overflow in (Overflow.SATURATE, self._unclamped)
        )
        number = np.ones(codes.shape, np.bool_) if isinstance(self.src, IntFormat) else ~is_nan(codes, self.src)
        beyond = (clamped != other) & number
        if not isinstance(self.src, IntFormat):
            beyond |= np.isinf(decode_to_float64(codes, self.src))
        found = []
        if self.rounding is not None:
            policy = abstract_policy(self.src, self.dst, mode, Overflow.SATURATE)
            found.append((convert_codes(codes, self.src, self.dst, policy), ~beyond & number))
        if self.saturate:
            found.append((clamped, beyond))
        return found

    @property
    def _unclamped(self) -> Overflow:
        return Overflow.WRAP if isinstance(self.dst, IntFormat) else Overflow.SPECIAL


def grading_of(demand: Demand, codes: Codes) -> Grading:
    """Return the demand on some codes, made once for all that try chains on them."""
    key = id(demand), codes.dtype.char, codes.tobytes()
    return _GRADINGS.of(key, lambda: Grading(demand, codes), demand)


_GRADINGS: Shared[Grading] = Shared(16)
