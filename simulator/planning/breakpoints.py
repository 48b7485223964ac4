"""Proof by breakpoints: a chain that keeps order is decided by the ends of the stretches on which it is constant.

What a specification accepts moves in one direction too: lowest and highest acceptable results never fall as the
source rises, and zeros that stand for flushed numbers reach from zero outwards. So a result that satisfies at both
ends of a stretch satisfies all along it. NaN sources stand outside the order and are sampled: a conversion knows a NaN
by its payload in no other way than by copying it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from castsim.isa.codes import Codes
from castsim.isa.formats import FloatFormat, Format
from castsim.numerics import code_dtype
from castsim.planning.demand import Demand, Grading, Verdict
from castsim.planning.judgement import Evidence, Judgement, Method, smallest_first
from castsim.planning.order import codes_at, distinct, number_count
from castsim.planning.sharing import Shared
from castsim.planning.steps import Chain, primitives_of, run_chain
from castsim.specifications.rescale import is_nan, order_keys
from castsim.timing import ProgressCallback

Places = NDArray[np.uint64]
Keys = NDArray[np.int64]

_BEYOND = np.int64(1 << 40)
"""Key of NaN from overflow, beyond that of every number of up to 16 bits."""
_NANS = 1 << 12


def judge_by_breakpoints(demand: Demand, chain: Chain, progress: ProgressCallback) -> Judgement:
    """Return the verdict on a chain whose every step keeps the order of numbers."""
    key = demand.src, demand.dst, primitives_of(chain)
    stretches = _STRETCHES.of(key, lambda: _stretches(demand, chain, progress))
    first, last = _split(demand, *stretches)
    ends = np.concatenate((first, last))
    codes = codes_at(ends, demand.src)
    results = run_chain(chain, codes)
    nans = _nan_codes(demand.src)
    of_nans = run_chain(chain, nans)
    argument = (
        f"the cast is monotonic: the ends of its {first.size} runs of equal results decide all "
        f"{number_count(demand.src)} numbers of {demand.src.name}"
    )
    argument += f"; {nans.size} NaN codes tried as well" if nans.size else ""
    evidence = Evidence(Method.BREAKPOINTS, codes.size + nans.size, argument)
    good = demand.satisfied(codes, results)
    good_nans = demand.satisfied(nans, of_nans)
    if not (good.all() and good_nans.all()):
        found = [_smallest_in(demand, chain, first, last, good), nans[~good_nans]]
        failing = np.concatenate([smallest_first(found[0], demand.src), found[1]])
        return Judgement(chain, Verdict.DIFFERS, evidence, failing)
    every, of_every = np.concatenate((codes, nans)), np.concatenate((results, of_nans))
    return Judgement(chain, _grade(demand, chain, every, of_every), evidence, codes[:0])


_STRETCHES: Shared[tuple[Places, Places]] = Shared(16)
"""Where results of chains change, whatever is asked of them; up to a megabyte each."""


def _grade(demand: Demand, chain: Chain, codes: Codes, results: Codes) -> Verdict:
    """Return EXACT only if the references change where the chain does.

    Where a reference agrees at both ends of every stretch it is constant there, for it keeps order as well.
    """
    grading = Grading(demand, codes)
    if grading.graded(results) is Verdict.EXACT:
        return Verdict.EXACT
    return Verdict.EXACT if grading.matches_reference(results).all(axis=1).any() else Verdict.CONFORMS


def _stretches(demand: Demand, chain: Chain, progress: ProgressCallback) -> tuple[Places, Places]:
    """Return first and last place of every stretch of equal results."""
    src, count = demand.src, number_count(demand.src)

    def keys(places: Places) -> Keys:
        codes = codes_at(places, src)
        return _keys(run_chain(chain, codes), codes, demand)

    last = np.uint64(count - 1)
    low = np.array([0], np.uint64)
    bounds = np.array([0, count - 1], np.uint64)
    found_keys = keys(bounds)
    # Every distinct result in between starts somewhere; all starts are looked for at once, by halving.
    wanted = _all_keys(demand.dst, int(found_keys[0]), int(found_keys[1]))
    left, right = np.zeros(wanted.size, np.uint64), np.full(wanted.size, last)
    rounds = int(count).bit_length() + 1
    for turn in range(rounds):
        progress("breakpoints", turn, rounds)
        middle = left + (right - left) // np.uint64(2)
        reached = keys(middle) >= wanted
        right = np.where(reached, middle, right)
        left = np.where(reached, left, np.minimum(middle + np.uint64(1), right))
        if (left >= right).all():
            break
    starts = distinct(np.concatenate((low, right)))
    ends = np.concatenate((starts[1:] - np.uint64(1), [last]))
    return starts, ends.astype(np.uint64)


def _split(demand: Demand, first: Places, last: Places) -> tuple[Places, Places]:
    """Cut stretches where results become undefined: from some magnitude on, on either side of zero."""
    count = number_count(demand.src)
    middle = int((order_keys(codes_at(np.array([0], np.uint64), demand.src), demand.src) < 0)[0]) * (count // 2)

    def undefined(place: int) -> bool:
        return bool(demand.sets(codes_at(np.array([place], np.uint64), demand.src)).anything[0])

    cuts = [middle]
    for nearest, farthest in ((middle, count - 1), (middle - 1, 0)):
        if nearest < 0 or undefined(nearest) or not undefined(farthest):
            continue
        defined, beyond = nearest, farthest
        while abs(beyond - defined) > 1:
            between = (defined + beyond) // 2
            defined, beyond = (defined, between) if undefined(between) else (between, beyond)
        cuts.append(max(defined, beyond))
    starts = distinct(np.concatenate((first, np.array(cuts, np.uint64))))
    return starts, np.concatenate((starts[1:] - np.uint64(1), last[-1:])).astype(np.uint64)


def _all_keys(dst: Format, lowest: int, highest: int) -> Keys:
    """Return the keys of all codes of the destination from the second lowest that is reached to the highest."""
    codes = np.arange(1 << dst.bits, dtype=code_dtype(dst))
    keys = distinct(np.concatenate((order_keys(codes, dst), [-_BEYOND, _BEYOND])))
    found: Keys = keys[(keys > lowest) & (keys <= highest)]
    return found


def _keys(results: Codes, codes: Codes, demand: Demand) -> Keys:
    """Return the order of results; NaN from overflow lies beyond all numbers, on the side of its source."""
    keys = order_keys(results, demand.dst)
    nan = is_nan(results, demand.dst)
    if not nan.any():
        return keys
    below = order_keys(codes, demand.src) < 0
    return np.where(nan, np.where(below, -_BEYOND, _BEYOND), keys)


def _smallest_in(demand: Demand, chain: Chain, first: Places, last: Places, good: NDArray[np.bool_]) -> Codes:
    """Return failing codes, among them the one of smallest magnitude.

    In a stretch the places that satisfy lie together: those that fail reach from an end to where satisfaction begins.
    """
    good_first, good_last = good[: first.size], good[first.size :]
    found = [codes_at(first[~good_first], demand.src), codes_at(last[~good_last], demand.src)]
    mixed = good_first != good_last
    low, high, rising = first[mixed], last[mixed], good_first[mixed]
    while (high - low > 1).any():
        middle = low + (high - low) // np.uint64(2)
        codes = codes_at(middle, demand.src)
        like_low = demand.satisfied(codes, run_chain(chain, codes)) == rising
        low, high = np.where(like_low, middle, low), np.where(like_low, high, middle)
    found.append(codes_at(np.where(rising, high, low), demand.src))
    return distinct(np.concatenate(found))


def _nan_codes(fmt: Format) -> Codes:
    """Return NaN codes: every single payload bit, the ends, and random payloads, of both signs."""
    if not isinstance(fmt, FloatFormat) or not fmt.has_nan or fmt.infinity_code is None:
        return np.zeros(0, code_dtype(fmt))
    rng = np.random.default_rng(0)
    payloads = np.concatenate(
        ([1 << bit for bit in range(fmt.fraction_bits)], [fmt.fraction_mask], rng.integers(1, fmt.fraction_mask, _NANS))
    ).astype(np.uint64)
    codes = distinct(payloads) | np.uint64(fmt.infinity_code)
    return np.concatenate((codes, codes | np.uint64(fmt.sign_bit))).astype(code_dtype(fmt))
