"""Proving a chain on every code of its source, or finding the smallest code on which it fails.

Up to 16 bits all codes are tried. Wider sources: where every step keeps the order of numbers and the destination has
up to 16 bits, the codes between two changes of the result are decided by the first and the last of them; else 32 bits
are all tried in machine code, if numba is there; else codes are sampled, which proves nothing, and is said.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isa.formats import Format
from simulator.planning.order import is_ordered, nearest_zero_first
from simulator.planning.primitives import keeps_order
from simulator.planning.request import Demand
from simulator.planning.samples import all_codes, telling_codes
from simulator.planning.steps import Chain, primitives_of, run_chain
from simulator.specifications.order import is_nan

Codes = NDArray[Any]
Heard = Callable[[str, int, int], None]
"""Is told what is going on, how far it is, and how far it goes."""


class Verdict(StrEnum):
    """What became of a chain."""

    EXACT = "exact"
    """The one result of the cast, rounded once; any NaN counts as NaN, and anything goes where anything is accepted."""
    CONFORMS = "conforms"
    """Within the tolerance of the specification, not everywhere the nearest result."""
    DIFFERS = "differs"
    """Some result does not satisfy the request."""


class Method(StrEnum):
    """How a verdict was reached."""

    EXHAUSTIVE = "exhaustive"
    BREAKPOINTS = "breakpoints"
    SAMPLED = "sampled"


@dataclass(frozen=True, slots=True)
class Evidence:
    """How many codes were tried and what that proves."""

    method: Method
    codes: int
    argument: str

    @property
    def proves(self) -> bool:
        """Whether no code is left out."""
        return self.method is not Method.SAMPLED


@dataclass(frozen=True, slots=True)
class Judgement:
    """Verdict on a chain; `failing` are codes on which it fails, the smallest magnitude first."""

    chain: Chain
    verdict: Verdict
    evidence: Evidence
    failing: Codes


def judge(
    demand: Demand,
    chain: Chain,
    heard: Heard = lambda *_: None,
    *,
    samples: int = 1 << 16,
    quick: bool = False,
) -> Judgement:
    """Return the verdict on a chain that leads from the demand's source to its destination.

    With `quick` codes of 32 bits are sampled where only trying all of them would prove anything, which takes seconds.
    """
    codes = all_codes(demand.src)
    if codes is not None:
        argument = f"all {codes.size} codes of {demand.src.name}"
        return _tried(demand, chain, codes, Evidence(Method.EXHAUSTIVE, codes.size, argument))
    if goes_by_breakpoints(demand, chain):
        from simulator.planning.breakpoints import judge_by_breakpoints  # noqa: PLC0415

        return judge_by_breakpoints(demand, chain, heard)
    sampled = _sampled(demand, chain, samples)
    if quick or demand.src.storage_bits != 32:
        return sampled
    from simulator.planning.everything import is_swift, judge_everything  # noqa: PLC0415

    return judge_everything(demand, chain, sampled, heard) if all(map(is_swift, primitives_of(chain))) else sampled


def goes_by_breakpoints(demand: Demand, chain: Chain) -> bool:
    """Whether a chain keeps order, and has few enough results that the places where they change can be found."""
    ordered = is_ordered(demand.src) and is_ordered(demand.dst) and demand.dst.bits <= 16
    return ordered and all(map(keeps_order, primitives_of(chain)))


def smallest_first(codes: Codes, fmt: Format) -> Codes:
    """Return codes by magnitude."""
    ordered: Codes = codes[nearest_zero_first(codes, fmt)]
    return ordered


def matches_reference(demand: Demand, codes: Codes, results: Codes) -> NDArray[np.bool_]:
    """Return for each reference policy (rows) which results are its own, any NaN being one, or free."""
    from simulator.numerics import convert_codes  # noqa: PLC0415

    nan = is_nan(results, demand.dst)
    free = demand.sets(codes).anything
    rows = []
    for policy in demand.references:
        reference = convert_codes(codes, demand.src, demand.dst, policy)
        rows.append((reference == results) | (nan & is_nan(reference, demand.dst)) | free)
    return np.array(rows)


def graded(demand: Demand, codes: Codes, results: Codes) -> Verdict:
    """Return EXACT or CONFORMS for results that all satisfy the demand."""
    if demand.narrowed:
        return Verdict.EXACT if bool(demand.sets(codes).single.all()) else _by_reference(demand, codes, results)
    return _by_reference(demand, codes, results)


def _by_reference(demand: Demand, codes: Codes, results: Codes) -> Verdict:
    exact = matches_reference(demand, codes, results).all(axis=1).any()
    return Verdict.EXACT if exact else Verdict.CONFORMS


def _tried(demand: Demand, chain: Chain, codes: Codes, evidence: Evidence) -> Judgement:
    results = run_chain(chain, codes)
    satisfied = demand.satisfied(codes, results)
    if satisfied.all():
        return Judgement(chain, graded(demand, codes, results), evidence, codes[:0])
    return Judgement(chain, Verdict.DIFFERS, evidence, smallest_first(codes[~satisfied], demand.src))


def _sampled(demand: Demand, chain: Chain, samples: int) -> Judgement:
    formats = [demand.dst, *(step.dst for step in chain)]
    codes = telling_codes(demand.src, formats, samples // (4 * len(formats)), seed=1)
    argument = f"{codes.size} structured and random codes of {demand.src.name}: not a proof"
    return _tried(demand, chain, codes, Evidence(Method.SAMPLED, codes.size, argument))
