"""What a demand says of results, for codes that are asked about again and again."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from castsim.isa.codes import Codes
from castsim.numerics import convert_codes
from castsim.specifications.order import is_nan

if TYPE_CHECKING:
    from castsim.planning.request import Demand
    from castsim.specifications import AcceptanceSets

Mask = NDArray[np.bool_]


class Verdict(StrEnum):
    """What became of a chain."""

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
