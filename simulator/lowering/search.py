"""Finding chains: all of up to four steps, shortest first, on codes that tell wrong ones from right ones.

A prefix is dropped when two codes whose satisfying results differ have become one and the same: nothing behind it can
tell them apart again. Of prefixes that give the same codes in the same format only one is followed. Both are sound on
the codes tried, so a chain that is right on them is found whenever one exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain as all_of

import numpy as np

from castsim.execution.timing import ProgressCallback
from castsim.isa.codes import Codes
from castsim.isa.formats import Format
from castsim.lowering.catalogue import Catalogue
from castsim.lowering.demand import Demand, grading_of
from castsim.lowering.sharing import Numbers, Shared
from castsim.lowering.specifications.rescale import order_keys
from castsim.lowering.steps import Chain, FormatCast, Integral, LoweringStep, VectorForm
from castsim.numerics import Tier

_TIER = Tier.REFERENCE
"""So few codes are not worth a table or machine code."""

_LOWEST, _HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Prefix:
    """The beginning of a chain and what it makes of the codes tried; `length` counts instructions."""

    chain: Chain
    codes: Codes
    fmt: Format
    length: int
    rerun: bool = False


def search(
    catalogue: Catalogue, demand: Demand, codes: Codes, steps: int, progress: ProgressCallback = lambda *_: None
) -> list[Chain]:
    """Return the shortest chains of up to `steps` instructions that satisfy the demand on all of `codes`.

    All of one length are returned, one for every behaviour on the codes and every sequence of formats.
    """
    judge = _JUDGES.of((id(demand), codes.dtype.char, codes.tobytes()), lambda: _Judge(demand, codes), demand)
    seen: set[tuple[str, bytes]] = set()
    frontier = _with_rereads(catalogue, [Prefix((), codes, demand.src, 0)], demand, inside=True)
    found = [chain for prefix in frontier for chain in _ends(catalogue, prefix, demand, judge)]
    for length in range(1, steps + 1):
        if found:
            break
        progress(f"{length} steps", 0, 0)
        # What may be the end comes first: only where nothing is found is the rest worth running.
        arriving = list(_grown(catalogue, frontier, demand, leading=True))
        found = [chain for prefix in arriving for chain in _ends(catalogue, prefix, demand, judge)]
        if not found and length < steps:
            others = _grown(catalogue, frontier, demand, leading=False)
            kept = [prefix for prefix in all_of(arriving, others) if _goes_on(prefix, judge, seen)]
            frontier = _with_rereads(catalogue, kept, demand, inside=catalogue.rereads_inside)
    return list(dict.fromkeys(found))


def nearest(catalogue: Catalogue, demand: Demand, codes: Codes, steps: int = 2) -> tuple[Chain, int] | None:
    """Return the chain of up to `steps` instructions that fails on the fewest codes, and on how many.

    None if no chain of that length leads to the destination.
    """
    best: tuple[Chain, int] | None = None
    grading = grading_of(demand, codes)
    frontier = [Prefix((), codes, demand.src, 0)]
    for length in range(steps + 1):
        frontier = _with_rereads(catalogue, frontier, demand, inside=length == 0 or catalogue.rereads_inside)
        for prefix in frontier:
            for chain, results in _arrivals(catalogue, prefix, demand):
                failing = int((~grading.satisfied(results)).sum())
                if chain and (best is None or failing < best[1]):
                    best = chain, failing
        if length < steps:
            grown = (
                _after(prefix, step)
                for prefix in frontier
                for step in catalogue.from_format(prefix.fmt)
                if length + 1 < steps or _leads_to(catalogue, step, demand)
            )
            frontier = _first_of_each(grown)
    return best


def _first_of_each(prefixes: Iterable[Prefix]) -> list[Prefix]:
    """Return the first prefix of each format and codes: what follows another of them fails where it does."""
    kept: dict[tuple[str, bytes], Prefix] = {}
    for prefix in prefixes:
        kept.setdefault((prefix.fmt.name, prefix.codes.tobytes()), prefix)
    return list(kept.values())


def through(
    catalogue: Catalogue, demand: Demand, codes: Codes, legs: Sequence[RequestedStep]
) -> tuple[Chain, int] | None:
    """Return the chain by way of `legs` that fails on the fewest codes, and on how many; None: there is no such chain.

    The last leg leads to the destination.
    """
    frontier = [Prefix((), codes, demand.src, 0)]
    for leg in legs:
        frontier = _first_of_each(
            _after(prefix, step)
            for prefix in frontier
            for step in (*catalogue.from_format(prefix.fmt), *catalogue.rereads_of(prefix.fmt))
            if step.dst.name == leg.format and (leg.rounding is None or _rounds_by(step, leg.rounding))
        )
    judged = [(prefix.chain, int((~demand.satisfied(codes, prefix.codes)).sum())) for prefix in frontier]
    return min(judged, key=lambda one: one[1], default=None)


@dataclass(frozen=True, slots=True)
class RequestedStep:
    """One instruction of a chain that is asked for: the format it leads to and, where it matters, its rounding mode."""

    format: str
    rounding: str | None = None


def _rounds_by(step: LoweringStep, mode: str) -> bool:
    """Whether an instruction rounds by a mode, in the words of the abstract cast or of the chip."""
    form = step.forms[0]
    if isinstance(form, VectorForm) and form.rounding == mode:
        return True
    return any(
        primitive.policy.rounding == mode
        for primitive in step.primitives
        if isinstance(primitive, FormatCast | Integral)
    )


def _with_rereads(catalogue: Catalogue, frontier: list[Prefix], demand: Demand, *, inside: bool) -> list[Prefix]:
    """Add prefixes whose last codes are read as another format, where a chain may go on from there."""
    if not inside:
        return frontier
    more = [
        Prefix((*prefix.chain, step), prefix.codes, step.dst, prefix.length, rerun=True)
        for prefix in frontier
        if not prefix.rerun
        for step in catalogue.rereads_of(prefix.fmt)
        if step.dst != demand.dst
    ]
    return [*frontier, *more]


def _arrivals(catalogue: Catalogue, prefix: Prefix, demand: Demand) -> Iterator[tuple[Chain, Codes]]:
    """Yield the chains that end with a prefix: in the destination, or in a format that may be read as it."""
    if prefix.fmt == demand.dst:
        yield prefix.chain, prefix.codes
    elif not prefix.rerun:
        for step in catalogue.rereads_of(prefix.fmt):
            if step.dst == demand.dst:
                yield (*prefix.chain, step), prefix.codes


def _ends(catalogue: Catalogue, prefix: Prefix, demand: Demand, judge: _Judge) -> Iterator[Chain]:
    for chain, results in _arrivals(catalogue, prefix, demand):
        if judge.accepts(results):
            yield chain


def _leads_to(catalogue: Catalogue, step: LoweringStep, demand: Demand) -> bool:
    return step.dst == demand.dst or any(other.dst == demand.dst for other in catalogue.rereads_of(step.dst))


def _grown(catalogue: Catalogue, frontier: list[Prefix], demand: Demand, *, leading: bool) -> Iterator[Prefix]:
    """Yield the prefixes that are one instruction longer, by those that lead to the destination or by the others."""
    for prefix in frontier:
        for step in catalogue.from_format(prefix.fmt):
            if _leads_to(catalogue, step, demand) == leading:
                yield _after(prefix, step)


def _after(prefix: Prefix, step: LoweringStep) -> Prefix:
    """Return a prefix with one instruction more."""
    codes = prefix.codes
    key = _NUMBERS.of(step.primitives), codes.dtype.char, codes.tobytes()
    return Prefix((*prefix.chain, step), _RUNS.of(key, lambda: step.run(codes, _TIER)), step.dst, prefix.length + 1)


_NUMBERS = Numbers(1 << 14)
_RUNS: Shared[Codes] = Shared(1 << 12)
"""What instructions make of codes; some kilobytes each."""


def _goes_on(prefix: Prefix, judge: _Judge, seen: set[tuple[str, bytes]]) -> bool:
    """Whether a prefix may still lead somewhere, and is the first with its codes."""
    key = (prefix.fmt.name, prefix.codes.tobytes())
    if key in seen:
        return False
    seen.add(key)
    return judge.can_still_tell(prefix.codes)


class _Judge:
    """The satisfying results on the codes tried, ready for comparison."""

    def __init__(self, demand: Demand, codes: Codes) -> None:
        self._sets = demand.sets(codes)
        sets = self._sets
        lowest, highest = order_keys(sets.lowest, demand.dst), order_keys(sets.highest, demand.dst)
        further = order_keys(sets.further, demand.dst)
        lowest, highest = np.minimum(lowest, further), np.maximum(highest, further)
        only_nan = sets.nan & ~sets.numbers
        lowest, highest = np.where(only_nan, _HIGHEST, lowest), np.where(only_nan, _HIGHEST, highest)
        free = sets.anything | (sets.nan & sets.numbers)
        self._low, self._high = np.where(free, _LOWEST, lowest), np.where(free, _HIGHEST, highest)

    def accepts(self, results: Codes) -> bool:
        """Whether every result satisfies."""
        return bool(self._sets.contains(results).all())

    def can_still_tell(self, codes: Codes) -> bool:
        """Whether codes that have become equal still have a satisfying result in common."""
        order = np.argsort(codes, kind="stable")
        ranked = codes[order]
        starts = np.flatnonzero(np.concatenate(([True], ranked[1:] != ranked[:-1])))
        low = np.maximum.reduceat(self._low[order], starts)
        high = np.minimum.reduceat(self._high[order], starts)
        return bool((low <= high).all())


_JUDGES: Shared[_Judge] = Shared(32)
