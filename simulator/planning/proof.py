"""Proving a chain on every code of its source, or finding the smallest code on which it fails.

Up to 16 bits all codes are tried. Wider sources: where every step keeps the order of numbers and the destination has
up to 16 bits, the codes between two changes of the result are decided by the first and the last of them; else 32 bits
are all tried in machine code, if numba is there; else codes are sampled, which proves nothing, and is said. So is
where a function that is only known to agree on samples stands in for an instruction.
"""

from __future__ import annotations

from castsim.planning.breakpoints import judge_by_breakpoints
from castsim.planning.demand import Demand, Grading, Verdict
from castsim.planning.exhaustive import judge_exhaustively
from castsim.planning.judgement import Evidence, Judgement, Method, smallest_first
from castsim.planning.order import is_ordered
from castsim.planning.primitives import keeps_order
from castsim.planning.samples import telling_codes
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
    if demand.everything is not None:
        size = demand.everything.codes.size
        argument = f"all {size} codes of {demand.src.name}"
        return _tried(demand.everything, chain, Evidence(Method.EXHAUSTIVE, size, argument))
    if goes_by_breakpoints(demand, chain):
        return judge_by_breakpoints(demand, chain, progress)
    sampled = _sampled(demand, chain, samples)
    if quick or demand.src.storage_bits != 32:
        return sampled
    return judge_exhaustively(demand, chain, sampled, progress)


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
    codes = telling_codes(demand.src, formats, samples // (4 * len(formats)), seed=1)
    argument = f"{codes.size} structured and random codes of {demand.src.name}: not a proof"
    return _tried(Grading(demand, codes), chain, Evidence(Method.SAMPLED, codes.size, argument))
