"""Proofs that a chain satisfies a request: by every code, by the breakpoints of a monotone chain, or on samples."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from castsim.execution.timing import ProgressCallback
from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import installed
from castsim.isa.formats import DETERMINISTIC, Codes, FloatFormat, Format, IntFormat, Overflow, Rounding
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import value_of
from castsim.numerics.policy import NanToInteger, Policy, is_power_format
from castsim.numerics.tiers import Tier, convert_codes
from castsim.reports.documents import Keys, derived, record, says
from castsim.running.acceptance import converted, is_nan, order_keys
from castsim.targets.specification import Case
from castsim.tools.lowering.demand import Demand, Grading, Verdict
from castsim.tools.lowering.samples import (
    Substitute,
    codes_at,
    distinct,
    is_ordered,
    nearest_zero_first,
    number_count,
    place_of,
    substitute_of,
    telling_codes,
)
from castsim.tools.lowering.sharing import Numbers, Shared
from castsim.tools.lowering.steps import (
    Chain,
    ConstantArithmetic,
    FormatCast,
    Integral,
    Primitive,
    Reread,
    Scaled,
    apply,
    keeps_order,
    primitives_of,
    run_chain,
)


class Method(StrEnum):
    """The method by which a verdict was reached."""

    EXHAUSTIVE = "exhaustive"
    """All codes went through the machine model, or through a function proven to be equal."""
    BREAKPOINTS = "breakpoints"
    """The chain is monotone: the ends of stretches of equal results represent all codes."""
    SUBSTITUTE = "substitute"
    """All codes went through a function that agrees with the machine model on samples, which is no proof."""
    SAMPLED = "sampled"
    """Some codes were tried, which is no proof."""


@record
class Evidence(Keys):
    """The method by which a verdict was reached."""

    method: Method = says("The method.")
    codes: int = says("Number of tried codes.")
    proves: bool = derived(
        "Whether these are all codes.", lambda own: own.method in (Method.EXHAUSTIVE, Method.BREAKPOINTS)
    )
    argument: str = says("The argument in words.")


@dataclass(frozen=True, slots=True)
class Judgement:
    """Verdict on a chain; `failing` are codes on which it fails, the smallest magnitude first."""

    chain: Chain
    verdict: Verdict
    evidence: Evidence
    failing: Codes


def smallest_first(codes: Codes, fmt: Format) -> Codes:
    """Return codes by magnitude."""
    ordered: Codes = codes[nearest_zero_first(codes, fmt)]
    return ordered


# Proof by breakpoints: a chain that keeps order is decided by the ends of the stretches on which it is constant.
#
# What a specification accepts moves in one direction too: lowest and highest acceptable results never fall as the
# source rises, and zeros that stand for flushed numbers reach from zero outwards. So a result that satisfies at both
# ends of a stretch satisfies all along it. NaN sources stand outside the order and are sampled: a conversion knows a
# NaN by its payload in no other way than by copying it.

Places = NDArray[np.uint64]
OrderKeys = NDArray[np.int64]

_BEYOND = np.int64(1 << 40)
"""Key of NaN from overflow, beyond that of every number of up to 16 bits."""
_NANS = 1 << 12


def judge_by_breakpoints(demand: Demand, chain: Chain, progress: ProgressCallback) -> Judgement:
    """Return the verdict on a chain whose steps are all monotone."""
    key = demand.src, demand.dst, primitives_of(chain)
    stretches = _STRETCHES.of(key, lambda: _stretches(demand, chain, progress))
    first, last = _split(demand, *stretches)
    nans = _nan_codes(demand.src)
    codes = np.concatenate((codes_at(np.concatenate((first, last)), demand.src), nans))
    results = run_chain(chain, codes)
    argument = (
        f"the cast is monotonic: the ends of its {first.size} runs of equal results decide all "
        f"{number_count(demand.src)} numbers of {demand.src.name}"
    )
    argument += f"; {nans.size} NaN codes tried as well" if nans.size else ""
    evidence = Evidence(Method.BREAKPOINTS, codes.size, argument)
    grading = Grading(demand, codes)
    good = grading.satisfied(results)
    if not good.all():
        good, good_nans = np.split(good, [codes.size - nans.size])
        failures = [_smallest_in(demand, chain, first, last, good), nans[~good_nans]]
        failing = np.concatenate([smallest_first(failures[0], demand.src), failures[1]])
        return Judgement(chain, Verdict.DIFFERS, evidence, failing)
    return Judgement(chain, _grade(grading, results), evidence, codes[:0])


_STRETCHES: Shared[tuple[Places, Places]] = Shared(16)
"""Cached positions where results of chains change, whatever the demand; up to a megabyte each."""


def _grade(grading: Grading, results: Codes) -> Verdict:
    """Return EXACT only if the references change where the chain does.

    Where a reference agrees at both ends of every stretch it is constant there, for it keeps order as well.
    """
    if grading.graded(results) is Verdict.EXACT:
        return Verdict.EXACT
    return Verdict.EXACT if grading.matches_reference(results).all(axis=1).any() else Verdict.CONFORMS


def _stretches(demand: Demand, chain: Chain, progress: ProgressCallback) -> tuple[Places, Places]:
    """Return first and last place of every stretch of equal results."""
    src, count = demand.src, number_count(demand.src)

    def keys(places: Places) -> OrderKeys:
        codes = codes_at(places, src)
        return _keys(run_chain(chain, codes), codes, demand)

    last = np.uint64(count - 1)
    low = np.array([0], np.uint64)
    bounds = np.array([0, count - 1], np.uint64)
    bound_keys = keys(bounds)
    # Every distinct result in between starts somewhere; all starts are looked for at once: first where rounding of any
    # kind would put them, then by halving.
    wanted = _all_keys(demand.dst, int(bound_keys[0]), int(bound_keys[1]))
    left, right = np.zeros(wanted.size, np.uint64), np.full(wanted.size, last)
    rounds = int(count).bit_length() + 1
    likely = _likely_starts(demand, chain, wanted)
    for turn in range(rounds + len(likely)):
        progress("breakpoints", turn, rounds + len(likely))
        unsettled = np.flatnonzero(left < right)
        if not unsettled.size:
            break
        lowest, highest = left[unsettled], right[unsettled]
        guess = likely[turn][unsettled] if turn < len(likely) else lowest + (highest - lowest) // np.uint64(2)
        middle = np.clip(guess, lowest, highest - np.uint64(1))
        reached = keys(middle) >= wanted[unsettled]
        right[unsettled] = np.where(reached, middle, highest)
        left[unsettled] = np.where(reached, lowest, middle + np.uint64(1))
    starts = distinct(np.concatenate((low, right)))
    ends = np.concatenate((starts[1:] - np.uint64(1), [last]))
    return starts, ends.astype(np.uint64)


def _likely_starts(demand: Demand, chain: Chain, wanted: OrderKeys) -> tuple[Places, ...]:
    """Return positions at which results probably begin: at a number, halfway to it, and right after the previous one.

    These are guesses: a wrong one only costs a test.
    """
    src, dst = demand.src, demand.dst
    codes = np.arange(1 << dst.bits, dtype=code_dtype(dst))
    keys = order_keys(codes, dst)
    rising = np.argsort(keys, kind="stable")
    places = place_of(converted(codes[rising], dst, src, Policy(Rounding.FLOOR, Overflow.SATURATE)), src)
    index = np.minimum(np.searchsorted(keys[rising], wanted), codes.size - 1)
    step = np.uint64(1)
    here, before = places[index], places[np.maximum(index - 1, 0)]
    halfway = before // 2 + here // 2 + (before & here & step)
    at_number, at_half = (here, before), (halfway, halfway - np.minimum(halfway, step))
    policies = [step.policy for step in primitives_of(chain) if isinstance(step, FormatCast | Integral | Scaled)]
    nearest = any(policy.rounding in (Rounding.RINT, Rounding.ROUND) for policy in policies)
    first = (*at_half, *at_number) if nearest else (*at_number, *at_half)
    return *first, before + step, here - np.minimum(here, step)


def _split(demand: Demand, first: Places, last: Places) -> tuple[Places, Places]:
    """Cut stretches where results become undefined: from some magnitude on, on either side of zero."""
    count = number_count(demand.src)
    middle = int((order_keys(codes_at(np.array([0], np.uint64), demand.src), demand.src) < 0)[0]) * (count // 2)

    def undefined(offset: int) -> bool:
        return bool(demand.sets(codes_at(np.array([offset], np.uint64), demand.src)).anything[0])

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


def _all_keys(dst: Format, lowest: int, highest: int) -> OrderKeys:
    """Return the keys of all codes of the destination from the second lowest that is reached to the highest."""
    codes = np.arange(1 << dst.bits, dtype=code_dtype(dst))
    keys = distinct(np.concatenate((order_keys(codes, dst), [-_BEYOND, _BEYOND])))
    reached: OrderKeys = keys[(keys > lowest) & (keys <= highest)]
    return reached


def _keys(results: Codes, codes: Codes, demand: Demand) -> OrderKeys:
    """Return the order of results; NaN from overflow lies beyond all numbers, on the side of its source."""
    keys = order_keys(results, demand.dst)
    nan = is_nan(results, demand.dst)
    if not nan.any():
        return keys
    below = order_keys(codes, demand.src) < 0
    return np.where(nan, np.where(below, -_BEYOND, _BEYOND), keys)


def _smallest_in(demand: Demand, chain: Chain, first: Places, last: Places, good: NDArray[np.bool_]) -> Codes:
    """Return failing codes, including the one of smallest magnitude.

    In a stretch the satisfying positions are contiguous: failing ones extend from an end to the first satisfying one.
    """
    good_first, good_last = good[: first.size], good[first.size :]
    candidates = [codes_at(first[~good_first], demand.src), codes_at(last[~good_last], demand.src)]
    mixed = good_first != good_last
    low, high, rising = first[mixed], last[mixed], good_first[mixed]
    while (high - low > 1).any():
        middle = low + (high - low) // np.uint64(2)
        codes = codes_at(middle, demand.src)
        like_low = demand.satisfied(codes, run_chain(chain, codes)) == rising
        low, high = np.where(like_low, middle, low), np.where(like_low, high, middle)
    candidates.append(codes_at(np.where(rising, high, low), demand.src))
    return distinct(np.concatenate(candidates))


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


# All codes of a 32-bit source in machine code, the nearest to zero first.

Substitutes = Mapping[ConstantArithmetic, Substitute]

_BLOCK = 1 << 16
_CHUNK = 1 << 22
_CODES = 1 << 32
_SLOW_LOOKS = 1 << 25
"""Maximum number of results unlike the reference's that are examined one by one before the proof is given up."""


def has_machine_code() -> bool:
    """Return whether numba is installed."""
    return installed("numba")


def judge_exhaustively(demand: Demand, chain: Chain, sampled: Judgement, progress: ProgressCallback) -> Judgement:
    """Return the verdict on all 2**32 codes; `sampled`, with a remark, if machine code or time is lacking.

    If a function replaces an instruction, the verdict is proven only if the function is; see `substitution`.
    """
    if not has_machine_code():
        return _remarked(sampled, "with numba, all 2**32 would be tried")
    if demand.narrowed:
        return _remarked(sampled, "demands beside the specification are not tried on all 2**32")
    substitutes, slow = _quick(primitives_of(chain))
    if slow is not None:
        return _remarked(sampled, f"{slow} is too slow to try all 2**32")
    reference = _nearest_reference(demand, chain)
    if _is_reference(demand, chain, reference, substitutes):
        evidence = _evidence(_CODES, f"all {_CODES} codes of {demand.src.name}", substitutes)
        return Judgement(chain, Verdict.EXACT, evidence, np.zeros(0, code_dtype(demand.src)))
    runners = [_Runner(demand, chain, reference, substitutes) for _ in range(os.cpu_count() or 1)]
    with ThreadPoolExecutor(len(runners)) as pool:
        for start in range(0, _CODES // 2, _CHUNK * len(runners)):
            progress("all codes", 2 * start, _CODES)
            starts = range(start, min(start + _CHUNK * len(runners), _CODES // 2), _CHUNK)
            # Machine code runs without the interpreter's lock; the first chunk with a failure has the smallest.
            failures = list(pool.map(_Runner.first_failing, runners, starts))
            wrong = next((codes for codes in failures if codes.size), None)
            if wrong is not None:
                return _refuted(demand, chain, sampled, wrong, 2 * (start + _CHUNK * len(runners)), substitutes)
            if sum(runner.looks for runner in runners) > _SLOW_LOOKS:
                return _remarked(sampled, "too many results lie within a tolerance to try all 2**32")
    evidence = _evidence(_CODES, f"all {_CODES} codes of {demand.src.name}", substitutes)
    verdict = Verdict.EXACT if all(runner.only_reference for runner in runners) else sampled.verdict
    return Judgement(chain, verdict, evidence, np.zeros(0, code_dtype(demand.src)))


def _quick(primitives: Iterable[Primitive]) -> tuple[Substitutes, str | None]:
    """Return the substitutes for the arithmetic of a chain, and the first primitive without a fast one."""
    chosen: dict[ConstantArithmetic, Substitute] = {}
    for primitive in primitives:
        if isinstance(primitive, ConstantArithmetic):
            substitute = chosen.get(primitive) or substitute_of(primitive)
            if substitute is None:
                return chosen, primitive.name
            chosen[primitive] = substitute
        elif isinstance(primitive, Integral):
            return chosen, f"rounding {primitive.src.name} to integral values"
        elif isinstance(primitive, Scaled):
            return chosen, f"scaling {primitive.src.name}"
    return chosen, None


def _refuted(
    demand: Demand, chain: Chain, sampled: Judgement, wrong: Codes, tried: int, substitutes: Substitutes
) -> Judgement:
    """Return the verdict for failing codes, confirmed on the machine model itself, not only with substitutes."""
    failing = wrong[~demand.satisfied(wrong, run_chain(chain, wrong))]
    if not failing.size:
        return _remarked(sampled, f"the substitute for {_names(substitutes)} gives different results")
    evidence = _evidence(tried, "all codes up to the first that fails", substitutes)
    return Judgement(chain, Verdict.DIFFERS, evidence, smallest_first(failing, demand.src))


def _evidence(tried: int, argument: str, substitutes: Substitutes) -> Evidence:
    """Return the evidence from trying codes: none for an instruction with an unproven substitute."""
    unproven = {primitive: substitute for primitive, substitute in substitutes.items() if not substitute.proven}
    if not unproven:
        return Evidence(Method.EXHAUSTIVE, tried, argument)
    samples = min(substitute.samples for substitute in unproven.values())
    doubt = f"with a substitute for {_names(unproven)}, recognised on {samples} samples: no proof of the instruction"
    return Evidence(Method.SUBSTITUTE, tried, f"{argument} {doubt}")


def _names(substitutes: Substitutes) -> str:
    return " and ".join(f"'{primitive.name}'" for primitive in substitutes)


def _remarked(sampled: Judgement, remark: str) -> Judgement:
    evidence = sampled.evidence
    remarked = Evidence(evidence.method, evidence.codes, f"{evidence.argument}; {remark}")
    return Judgement(sampled.chain, sampled.verdict, remarked, sampled.failing)


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

        A sign for which everything is accepted from the beginning of the chunk is left out; see `_free`.
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
        """Return whether everything is accepted for all codes of a block.

        Undefined results begin at some magnitude (out of range, then infinite, then NaN) or belong to one sign, so the
        smallest magnitude of a block decides; more are tested to be safe.
        """
        return bool(self.demand.sets(codes[:: _BLOCK // 64]).anything.all())


# Chains that are the reference by how they are made: nothing of them has to be tried.


def _is_reference(demand: Demand, chain: Chain, reference: Policy, substitutes: Substitutes) -> bool:
    """Return whether a chain gives for every code what the reference policy gives, but where anything is accepted."""
    steps = [step for step in primitives_of(chain) if not isinstance(step, Reread)]
    if isinstance(demand.dst, IntFormat) and demand.dst.boolean:
        return _tells_zero(demand, chain, substitutes)
    if steps and _by_low_bits(steps[0], demand, reference, substitutes):
        codes = np.arange(1 << _LOW_BITS, dtype=code_dtype(demand.src))
        expected = converted(codes, demand.src, demand.dst, reference)
        return np.array_equal(run_chain(chain, codes), expected)
    casts = [step for step in steps if isinstance(step, FormatCast)]
    if len(casts) < len(steps) or (casts and casts[0].src != demand.src):
        return False
    if not casts:
        return _keeps_bits(demand.src, demand.dst, reference)
    if len(casts) == 1 and _same_cast(casts[0], FormatCast(demand.src, demand.dst, reference)):
        return True
    return _only_in_range(demand, casts, reference)


_ZERO_OR_CONSTANT = ("constant unless zero", "constant unless a zero, kept")


def _tells_zero(demand: Demand, chain: Chain, substitutes: Substitutes) -> bool:
    """Return whether a chain to booleans makes one number of all that are not zero, which becomes 1, and 0 of zeros."""
    first, *others = primitives_of(chain)
    if not isinstance(first, ConstantArithmetic) or first.src != demand.src or first.constant is None:
        return False
    if substitutes[first].shape not in _ZERO_OR_CONSTANT:
        return False
    constant = first.constant & ((1 << first.src.bits) - 1)
    codes = np.array([0, 1 << (first.src.bits - 1), constant], code_dtype(first.src))
    if isinstance(first.src, IntFormat):
        codes[1] = 0  # which is the number of the sign alone only in floats
    for primitive in others:
        codes = apply(primitive, codes)
    return bool((codes == (0, 0, 1)).all())


_LOW_BITS = 16


def _by_low_bits(first: Primitive, demand: Demand, reference: Policy, substitutes: Substitutes) -> bool:
    """Whether neither the first step of a chain of integers nor the reference looks at more than some low bits."""
    src, dst = demand.src, demand.dst
    if not isinstance(src, IntFormat) or not isinstance(dst, IntFormat) or dst.bits > _LOW_BITS:
        return False
    if isinstance(first, ConstantArithmetic):
        low = substitutes[first].shape == "and" and first.constant is not None and first.src.bits == src.bits
        low = low and 0 <= (first.constant or 0) < 1 << _LOW_BITS
    else:
        low = isinstance(first, FormatCast) and _takes_low_bits(first) and first.src.bits == src.bits
    return low and _takes_low_bits(FormatCast(src, dst, reference))


def _takes_low_bits(cast: FormatCast) -> bool:
    """Whether a cast between integers is the low bits of its source."""
    if not isinstance(cast.src, IntFormat) or not isinstance(cast.dst, IntFormat) or cast.dst.boolean:
        return False
    return cast.dst.bits <= _LOW_BITS and _settled_policy(cast) == Policy(Rounding.RINT, Overflow.WRAP)


def _keeps_bits(src: Format, dst: Format, reference: Policy) -> bool:
    """Return whether the reference leaves the bits of every code as they are."""
    if not isinstance(src, IntFormat) or not isinstance(dst, IntFormat) or src.bits != dst.bits:
        return False
    return src == dst or (reference.overflow is Overflow.WRAP and reference.wrap_bits is None)


def _same_cast(cast: FormatCast, other: FormatCast) -> bool:
    """Return whether two casts of one source give the same bits, by their policies but for what cannot occur.

    Low bits do not tell signed integers from unsigned ones.
    """
    first, second = _settled_policy(cast), _settled_policy(other)
    if isinstance(cast.dst, IntFormat) and isinstance(other.dst, IntFormat) and first.overflow is Overflow.WRAP:
        return first == second and cast.dst.bits == other.dst.bits == other.dst.storage_bits
    return first == second and cast.dst == other.dst


def _settled_policy(cast: FormatCast) -> Policy:
    """Return the policy of a cast with the defaults of everything that does not matter to its formats."""
    src, dst, policy = cast.src, cast.dst, cast.policy
    usual = Policy(policy.rounding, policy.overflow)
    if policy.rounding not in DETERMINISTIC or policy.subnormal_rounding is not None:
        return policy
    if isinstance(src, IntFormat):
        kept = replace(policy, nan_to_float=usual.nan_to_float, nan_code=None, nan_to_integer=usual.nan_to_integer)
        kept = replace(kept, infinity_wrap=usual.infinity_wrap, infinity_to_max=False, keep_infinity=False)
        policy = replace(kept, flush_source=False)
        if policy.wrap_bits is not None and src.bits < policy.wrap_bits:
            policy = replace(policy, wrap_bits=None)
    if isinstance(dst, IntFormat):
        policy = replace(policy, flush_result=False, drop_negative_zero=False)
        policy = replace(policy, nan_to_float=usual.nan_to_float, nan_code=None)
        if policy.overflow is Overflow.SATURATE:
            policy = replace(policy, wrap_bits=None, infinity_wrap=usual.infinity_wrap)
        if isinstance(src, IntFormat):
            fits = dst.minimum <= src.minimum and src.maximum <= dst.maximum
            wraps = Overflow.WRAP if fits and policy.wrap_bits is None else policy.overflow
            policy = replace(policy, rounding=Rounding.RINT, overflow=wraps)
    elif not is_power_format(dst):
        policy = replace(policy, nan_to_integer=usual.nan_to_integer, infinity_wrap=usual.infinity_wrap, wrap_bits=None)
        policy = replace(policy, e8m0_rule=usual.e8m0_rule)
        if isinstance(src, IntFormat) and value_of(dst.max_finite_code, dst) >= 1 << src.bits:
            policy = replace(policy, overflow=Overflow.SPECIAL, flush_result=False, drop_negative_zero=False)
    return policy


def _only_in_range(demand: Demand, casts: Sequence[FormatCast], reference: Policy) -> bool:
    """Return whether floats become the right integer where it is one of the destination, and anything goes elsewhere.

    Every integer of the destination must come through unchanged: in formats that have it, or as its low bits at last.
    """
    first, last, dst = casts[0], casts[-1], demand.dst
    free = {Case.NAN, Case.INFINITE, Case.OUT_OF_RANGE} <= set(demand.cast.rule.undefined)
    if not free or demand.narrowed or not isinstance(dst, IntFormat) or isinstance(first.src, IntFormat):
        return False
    modes = {first.policy.rounding, reference.rounding}
    if len(modes) > 1 or not modes <= set(DETERMINISTIC) or first.policy.flush_source or reference.flush_source:
        return False

    def keeps(cast: FormatCast) -> bool:
        to, wraps = cast.dst, cast.policy.overflow is Overflow.WRAP
        if not isinstance(to, IntFormat) or to.boolean:
            return False
        if wraps and cast.policy.wrap_bits is not None and cast.policy.wrap_bits <= dst.bits:
            return False
        low_bits = wraps and cast is last and to.bits == dst.bits == dst.storage_bits
        return low_bits or (to.minimum <= dst.minimum and dst.maximum <= to.maximum)

    chained = all(before.dst == after.src for before, after in pairwise(casts))
    return chained and last.dst.bits == dst.bits and all(map(keeps, casts))


def _nearest_reference(demand: Demand, chain: Chain) -> Policy:
    """Return a policy that satisfies the demand everywhere and agrees with the chain as often as possible.

    Candidates are the references, and variants that differ only where everything is accepted.
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
        return int((converted(codes, demand.src, demand.dst, policy) != results).sum())

    return min(candidates, key=disagreements)


# Proving a chain on every code of its source, or finding the smallest code on which it fails.
#
# Up to 16 bits all codes are tried. Wider sources: where every step keeps the order of numbers and the destination has
# up to 16 bits, the codes between two changes of the result are decided by the first and the last of them; else 32 bits
# are all tried in machine code, if numba is there; else codes are sampled, which proves nothing, and is said. So is
# where a function that is only known to agree on samples stands in for an instruction.


def judge(
    demand: Demand,
    chain: Chain,
    progress: ProgressCallback = lambda *_: None,
    *,
    samples: int = 1 << 16,
    quick: bool = False,
) -> Judgement:
    """Return the verdict on a chain that leads from the demand's source to its destination.

    With `quick`, 32-bit codes are sampled if only an exhaustive trial, which takes seconds, would prove anything.
    """
    steps = tuple((_NUMBERS.of(step.primitives), step.dst.name) for step in chain)
    key = id(demand), steps, samples
    judgement = replace(_JUDGEMENTS.of(key, lambda: _quickly(demand, chain, progress, samples), demand), chain=chain)
    if quick or judgement.evidence.method is not Method.SAMPLED or demand.src.storage_bits != 32:
        return judgement
    return judge_exhaustively(demand, chain, judgement, progress)


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
    """Return whether a chain is monotone, and has few enough results to find all positions where they change."""
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
"""Cached demands on codes; some megabytes each."""
