"""Proving a chain on every code of its source, or finding the smallest code on which it fails.

Up to 16 bits all codes are tried. Wider sources: where every step keeps the order of numbers and the destination has
up to 16 bits, the codes between two changes of the result are decided by the first and the last of them; else 32 bits
are all tried in machine code, if numba is there; else codes are sampled, which proves nothing, and is said. So is
where a function that is only known to agree on samples stands in for an instruction.
"""

from __future__ import annotations

from dataclasses import replace

from castsim.isa.codes import Codes
from castsim.planning.breakpoints import judge_by_breakpoints
from castsim.planning.demand import Demand, Grading, Verdict
from castsim.planning.exhaustive import judge_exhaustively
from castsim.planning.judgement import Evidence, Judgement, Method, smallest_first
from castsim.planning.order import is_ordered
from castsim.planning.primitives import keeps_order
from castsim.planning.samples import telling_codes
from castsim.planning.sharing import Numbers, Shared
from castsim.planning.steps import Chain, primitives_of, run_chain
from castsim.timing import ProgressCallback


def judge(
    demand: Demand,
    chain: Chain,
    progress: ProgressCallback = lambda *_: None,
    *,
    samples: int = 1 << 16,
    quick: bool = False,
) -> Judgement:
    """Return the verdict on a chain that leads from the demand's source to its destination.

    With `quick` codes of 32 bits are sampled where only trying all of them would prove anything, which takes seconds.
    """
    steps = tuple((_NUMBERS.of(step.primitives), step.dst.name) for step in chain)
    key = id(demand), steps, samples
    found = replace(_JUDGEMENTS.of(key, lambda: _quickly(demand, chain, progress, samples), demand), chain=chain)
    if quick or found.evidence.method is not Method.SAMPLED or demand.src.storage_bits != 32:
        return found
    return judge_exhaustively(demand, chain, found, progress)


_NUMBERS = Numbers(1 << 12)
_JUDGEMENTS: Shared[Judgement] = Shared(32)
"""The last verdicts that took no run of machine code; targets and options of them come to the same chains."""


def _quickly(demand: Demand, chain: Chain, progress: ProgressCallback, samples: int) -> Judgement:
    if demand.everything is not None:
        size = demand.everything.codes.size
        argument = f"all {size} codes of {demand.src.name}"
        return _tried(demand.everything, chain, Evidence(Method.EXHAUSTIVE, size, argument))
    if goes_by_breakpoints(demand, chain):
        return judge_by_breakpoints(demand, chain, progress)
    return _sampled(demand, chain, samples)


def goes_by_breakpoints(demand: Demand, chain: Chain) -> bool:
    """Whether a chain keeps order, and has few enough results that the places where they change can be found."""
    ordered = is_ordered(demand.src) and is_ordered(demand.dst) and demand.dst.bits <= 16
    return ordered and all(map(keeps_order, primitives_of(chain)))


def _tried(grading: Grading, chain: Chain, evidence: Evidence) -> Judgement:
    codes = grading.codes
    results = run_chain(chain, codes)
    satisfied = grading.satisfied(results)
    if satisfied.all():
        return Judgement(chain, grading.graded(results), evidence, codes[:0])
    return Judgement(chain, Verdict.DIFFERS, evidence, smallest_first(codes[~satisfied], grading.demand.src))


def _sampled(demand: Demand, chain: Chain, samples: int) -> Judgement:
    formats = [demand.dst, *(step.dst for step in chain)]
    count = samples // (4 * len(formats))
    names = tuple(fmt.name for fmt in formats)
    codes = _SAMPLES.of((demand.src, names, count), lambda: telling_codes(demand.src, formats, count, seed=1))
    grading = _GRADINGS.of((id(demand), names, count), lambda: Grading(demand, codes), demand)
    argument = f"{codes.size} structured and random codes of {demand.src.name}: not a proof"
    return _tried(grading, chain, Evidence(Method.SAMPLED, codes.size, argument))


_SAMPLES: Shared[Codes] = Shared(8)
_GRADINGS: Shared[Grading] = Shared(4)
"""Some megabytes each."""
