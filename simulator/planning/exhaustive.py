"""All codes of a 32-bit source in machine code, the nearest to zero first."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec

import numpy as np

from castsim.isa.codes import Codes
from castsim.isa.formats import IntFormat
from castsim.isa.modes import Overflow
from castsim.numerics import NanToInteger, Policy, Tier, code_dtype, convert_codes
from castsim.planning.demand import Demand, Grading, Verdict
from castsim.planning.judgement import Evidence, Judgement, Method, smallest_first
from castsim.planning.primitives import ConstantArithmetic, FormatCast, Integral, Primitive, Scaled, apply
from castsim.planning.samples import telling_codes
from castsim.planning.steps import Chain, primitives_of, run_chain
from castsim.planning.substitution import Substitute, substitute_of
from castsim.targets.specification import Case
from castsim.timing import ProgressCallback

Substitutes = Mapping[ConstantArithmetic, Substitute]

_BLOCK = 1 << 16
_CHUNK = 1 << 22
_CODES = 1 << 32
_SLOW_LOOKS = 1 << 25
"""Results unlike the reference's that are looked at one by one before the search for a proof is given up."""


def has_machine_code() -> bool:
    """Whether numba is installed."""
    try:
        return find_spec("numba") is not None
    except ValueError:  # something else was put in its place
        return False


def judge_exhaustively(demand: Demand, chain: Chain, sampled: Judgement, progress: ProgressCallback) -> Judgement:
    """Return the verdict on all 2**32 codes; `sampled`, with a remark, where machine code or time is lacking.

    Where a function stands in for an instruction, the verdict is proven only if that was; see `substitution`.
    """
    if not has_machine_code():
        return _remarked(sampled, "with numba, all 2**32 would be tried")
    if demand.narrowed:
        return _remarked(sampled, "demands beside the specification are not tried on all 2**32")
    substitutes, slow = _quick(primitives_of(chain))
    if slow is not None:
        return _remarked(sampled, f"{slow} is too slow to try all 2**32")
    reference = _nearest_reference(demand, chain)
    runners = [_Runner(demand, chain, reference, substitutes) for _ in range(os.cpu_count() or 1)]
    with ThreadPoolExecutor(len(runners)) as pool:
        for start in range(0, _CODES // 2, _CHUNK * len(runners)):
            progress("all codes", 2 * start, _CODES)
            starts = range(start, min(start + _CHUNK * len(runners), _CODES // 2), _CHUNK)
            # Machine code runs without the interpreter's lock; the first chunk with a failure has the smallest.
            found = list(pool.map(_Runner.first_failing, runners, starts))
            wrong = next((codes for codes in found if codes.size), None)
            if wrong is not None:
                return _refuted(demand, chain, sampled, wrong, 2 * (start + _CHUNK * len(runners)), substitutes)
            if sum(runner.looks for runner in runners) > _SLOW_LOOKS:
                return _remarked(sampled, "too many results lie within a tolerance to try all 2**32")
    evidence = _evidence(_CODES, f"all {_CODES} codes of {demand.src.name}", substitutes)
    verdict = Verdict.EXACT if all(runner.only_reference for runner in runners) else sampled.verdict
    return Judgement(chain, verdict, evidence, np.zeros(0, code_dtype(demand.src)))


def _quick(primitives: Iterable[Primitive]) -> tuple[Substitutes, str | None]:
    """Return the substitutes for the arithmetic of a chain, and the first primitive that nothing makes quick."""
    found: dict[ConstantArithmetic, Substitute] = {}
    for primitive in primitives:
        if isinstance(primitive, ConstantArithmetic):
            substitute = found.get(primitive) or substitute_of(primitive)
            if substitute is None:
                return found, primitive.name
            found[primitive] = substitute
        elif isinstance(primitive, Integral):
            return found, f"rounding {primitive.src.name} to integral values"
        elif isinstance(primitive, Scaled):
            return found, f"scaling {primitive.src.name}"
    return found, None


def _refuted(
    demand: Demand, chain: Chain, sampled: Judgement, wrong: Codes, tried: int, substitutes: Substitutes
) -> Judgement:
    """Return the verdict where codes fail: on the machine model itself, not only with what stands in for it."""
    failing = wrong[~demand.satisfied(wrong, run_chain(chain, wrong))]
    if not failing.size:
        return _remarked(sampled, f"the substitute for {_names(substitutes)} gives different results")
    evidence = _evidence(tried, "all codes up to the first that fails", substitutes)
    return Judgement(chain, Verdict.DIFFERS, evidence, smallest_first(failing, demand.src))


def _evidence(tried: int, argument: str, substitutes: Substitutes) -> Evidence:
    """Return the evidence that trying codes gives: none of an instruction for which something unproven stands in."""
    unproven = {primitive: one for primitive, one in substitutes.items() if not one.proven}
    if not unproven:
        return Evidence(Method.EXHAUSTIVE, tried, argument)
    samples = min(one.samples for one in unproven.values())
    doubt = f"with a substitute for {_names(unproven)}, recognised on {samples} samples: no proof of the instruction"
    return Evidence(Method.SUBSTITUTE, tried, f"{argument} {doubt}")


def _names(substitutes: Substitutes) -> str:
    return " and ".join(f"'{primitive.name}'" for primitive in substitutes)


def _remarked(sampled: Judgement, remark: str) -> Judgement:
    evidence = sampled.evidence
    told = Evidence(evidence.method, evidence.codes, f"{evidence.argument}; {remark}")
    return Judgement(sampled.chain, sampled.verdict, told, sampled.failing)


def _both_signs(demand: Demand, start: int) -> tuple[Codes, Codes]:
    """Return the codes of `start` and the next magnitudes, of either sign."""
    block = _RAMP + np.uint32(start)
    if isinstance(demand.src, IntFormat):
        if not demand.src.signed:
            return block, block + np.uint32(1 << 31)
        return block, ~block
    return block, block | np.uint32(1 << 31)


_RAMP = np.arange(_BLOCK, dtype=np.uint32)


class _Runner:
    """Runs chain and reference over blocks, in memory that stays in the caches."""

    def __init__(self, demand: Demand, chain: Chain, reference: Policy, substitutes: Substitutes) -> None:
        self.demand = demand
        self.primitives = primitives_of(chain)
        self.reference = reference
        self.substitutes = substitutes
        self.looks = 0
        self.only_reference = True
        formats = [primitive.dst for primitive in self.primitives if isinstance(primitive, FormatCast)]
        self.buffers = [np.empty(_BLOCK, code_dtype(fmt)) for fmt in formats]
        self.expected = np.empty(_BLOCK, code_dtype(demand.dst))

    def first_failing(self, start: int) -> Codes:
        """Return the codes of the first block from a magnitude on, within a chunk, on which the chain fails.

        A sign for which anything is accepted from the beginning of the chunk is left out; see `_free`.
        """
        signs = [sign for sign, codes in enumerate(_both_signs(self.demand, start)) if not self._free(codes)]
        wrong = np.zeros(0, code_dtype(self.demand.src))
        for begin in range(start, start + _CHUNK, _BLOCK) if signs else ():
            blocks = _both_signs(self.demand, begin)
            wrong = np.concatenate([self.failing(blocks[sign]) for sign in signs])
            if wrong.size:
                break
        return wrong

    def failing(self, codes: Codes) -> Codes:
        """Return the codes of a block on which the chain fails."""
        results, buffers = codes, iter(self.buffers)
        for primitive in self.primitives:
            if isinstance(primitive, FormatCast):
                out = next(buffers)
                convert_codes(results, primitive.src, primitive.dst, primitive.policy, tier=Tier.COMPILED, out=out)
                results = out
            elif isinstance(primitive, ConstantArithmetic):
                results = self.substitutes[primitive].run(results)
            else:
                results = apply(primitive, results)
        demand = self.demand
        convert_codes(codes, demand.src, demand.dst, self.reference, tier=Tier.COMPILED, out=self.expected)
        if np.array_equal(results, self.expected):
            return codes[:0]
        unlike = results != self.expected
        if self._free(codes):
            return codes[:0]
        codes, results = codes[unlike], results[unlike].copy()
        self.looks += codes.size
        satisfied = demand.satisfied(codes, results)
        if self.only_reference:
            self.only_reference = bool(Grading(demand, codes).matches_reference(results).all(axis=1).any())
        return codes[~satisfied]

    def _free(self, codes: Codes) -> bool:
        """Whether anything is accepted for all codes of a block.

        What is undefined is so from some magnitude on (out of range, then infinite, then NaN) or for one sign, so the
        smallest magnitude of a block decides; more are looked at all the same.
        """
        return bool(self.demand.sets(codes[:: _BLOCK // 64]).anything.all())


def _nearest_reference(demand: Demand, chain: Chain) -> Policy:
    """Return a policy that satisfies the demand everywhere and agrees with the chain as often as one can.

    Such are the references, and what differs from them only where anything is accepted.
    """
    codes = telling_codes(demand.src, (demand.dst,), 1 << 10)
    results = run_chain(chain, codes)
    candidates = list(demand.references)
    undefined = demand.cast.rule.undefined
    if isinstance(demand.dst, IntFormat) and not isinstance(demand.src, IntFormat) and Case.NAN in undefined:
        beyond = {Case.OUT_OF_RANGE, Case.INFINITE} <= set(undefined)
        candidates += [
            replace(policy, overflow=overflow, nan_to_integer=nan)
            for policy in demand.references
            for overflow in ((Overflow.SATURATE, Overflow.WRAP) if beyond else (policy.overflow,))
            for nan in NanToInteger
        ]

    def disagreements(policy: Policy) -> int:
        return int((convert_codes(codes, demand.src, demand.dst, policy) != results).sum())

    return min(candidates, key=disagreements)
