"""Comparing two ways to compute the same casts, code by code and bit by bit."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from castsim.evidence.verification.inputs import InputSet, input_set, random_words
from castsim.evidence.verification.oracle import check_oracle, oracle_results, undecided
from castsim.evidence.verification.part import ORACLE, VerificationPart, tier_named
from castsim.isa.codes import Codes
from castsim.isa.errors import ReadError
from castsim.isa.modes import Rounding
from castsim.numerics.blocks import code_dtype
from castsim.numerics.policy import Policy
from castsim.numerics.tiers import Tier, convert_codes, why_not_compiled

BLOCK = 1 << 18
"""Codes compared at a time: inputs and both results stay in the caches."""

SHOWN = 10
"""Mismatches that are kept of a part; all are counted."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A code for which the two disagree. `position` is that in the input set, `random` the word if one was used."""

    position: int
    code: int
    result: int
    expected: int
    random: int | None = None


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """The result of comparing positions `start` to `stop - 1`.

    `undecided` counts the codes that were left out, because the sources contradict each other or are silent.
    `cpu_seconds` is processor time of making the codes, computing both results and comparing them.
    """

    start: int
    stop: int
    mismatches: int
    undecided: int
    first: tuple[Mismatch, ...]
    cpu_seconds: float


@lru_cache(maxsize=4)
def _prepared(part: VerificationPart) -> tuple[InputSet, Policy]:
    return input_set(part), part.policy


def probe(part: VerificationPart) -> None:
    """Reject a part that cannot be computed, by trying one code.

    Raises:
        ReadError, IllegalError: as `VerificationPart.check`; an input set, tier or oracle that does not have the cast,
            or a tier that is not installed.
    """
    part.check()
    if Tier.COMPILED in (part.tier, part.against) and (missing := why_not_compiled()) is not None:
        raise ReadError(f"tier '{Tier.COMPILED}' is not available: {missing}", legal=(Tier.REFERENCE, Tier.TABLE))
    if part.against == ORACLE:
        check_oracle(part)
    compare(part, 0, 1)


def compare(part: VerificationPart, start: int, stop: int) -> ComparisonResult:
    """Compare both sides of a part on positions `start` to `stop - 1` of its input set."""
    began = time.thread_time()
    count = left_out = 0
    found: list[Mismatch] = []
    for first in range(start, stop, BLOCK):
        differing, skipped = _compare_block(part, first, min(first + BLOCK, stop), found)
        count += differing
        left_out += skipped
    return ComparisonResult(start, stop, count, left_out, tuple(found), time.thread_time() - began)


def _compare_block(part: VerificationPart, start: int, stop: int, found: list[Mismatch]) -> tuple[int, int]:
    """Return the numbers of differing and of undecided codes; append the first differing ones while few are kept."""
    inputs, policy = _prepared(part)
    codes = inputs.codes(start, stop)
    random = random_words(part, start, stop) if part.rounding is Rounding.STOCHASTIC else None
    results = _results(part, policy, part.tier, codes, random)
    expected = _results(part, policy, part.against, codes, random)
    skip = undecided(part, codes) if part.against == ORACLE else None
    skipped = 0 if skip is None else int(np.count_nonzero(skip))
    if np.array_equal(results, expected):
        return 0, skipped
    different = results != expected
    if skip is not None:
        different &= ~skip
    places = np.flatnonzero(different)
    for place in places[: max(SHOWN - len(found), 0)].tolist():
        word = None if random is None else int(random[place])
        code, result, wanted = (int(array[place]) for array in (codes, results, expected))
        found.append(Mismatch(start + place, code, result, wanted, word))
    return len(places), skipped


def _results(
    part: VerificationPart, policy: Policy, side: str, codes: Codes, random: NDArray[np.uint32] | None
) -> Codes:
    if side == ORACLE:
        return oracle_results(part, codes, random).astype(code_dtype(part.destination), copy=False)
    return convert_codes(codes, part.source, part.destination, policy, random=random, tier=tier_named(side))
