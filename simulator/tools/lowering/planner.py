"""Planning of a cast: search, proof, ranking by simulated cost, and the program of the best chain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import islice, product
from typing import Any

import numpy as np

from castsim.execution.timing import ProgressCallback
from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import CastsimError, IllegalError, ReadError
from castsim.isa.formats import Codes, Format, IntFormat, format_named
from castsim.numerics.codec import value_of
from castsim.reports.documents import Document, Keys, derived, record, says
from castsim.reports.numbers import CodedNumber, bits_text, json_value
from castsim.reports.schemas.keys import Bits, Value
from castsim.targets.loader import Target, load_target
from castsim.tools.lowering.catalogue import (
    RANDOM_CODES,
    Assembly,
    Catalogue,
    ProgramCost,
    RequestedStep,
    assembly_of,
    catalogue_of,
    cost_of,
    nearest,
    nearest_format,
    search,
    through,
)
from castsim.tools.lowering.demand import (
    MOST_STEPS,
    CastRequest,
    Counterexample,
    Demand,
    Verdict,
    counterexample,
    decimal_text,
    grading_of,
    settle,
)
from castsim.tools.lowering.proof import Evidence, Judgement, Method, goes_by_breakpoints, judge, smallest_first
from castsim.tools.lowering.samples import all_codes, distinct, telling_codes
from castsim.tools.lowering.sharing import Shared
from castsim.tools.lowering.steps import (
    Chain,
    ConstantArithmetic,
    Form,
    FormatCast,
    Integral,
    LoweringStep,
    Primitive,
    RereadForm,
    TileCastForm,
    primitives_of,
    run_chain,
)

_SIMULATED = 6
"""Maximum number of chains of one length whose programs are simulated to rank them."""
_SPELLINGS = 6


def ranked(
    chains: list[Chain], demand: Demand, target: Target, request: CastRequest, codes: Codes
) -> list[tuple[Chain, Assembly, ProgramCost]]:
    """Return the most promising chains with their programs, the cheapest first.

    Raises:
        CastsimError: no chain can be written as a program; the first one's reason.
    """
    grading = grading_of(demand, codes)
    exact: dict[tuple[Primitive, ...], bool] = {}  # spellings of one chain share it

    def plainness(chain: Chain) -> tuple[int, ...]:
        primitives = primitives_of(chain)
        if primitives not in exact:
            exact[primitives] = grading.graded(run_chain(chain, codes)) is Verdict.EXACT
        return not exact[primitives], *_plainness(chain, demand)

    plain = sorted(chains, key=plainness)
    picked: dict[tuple[Any, ...], Chain] = {}
    for chain in (spelt for plain_chain in plain for spelt in _spellings(plain_chain)):
        picked.setdefault(_kind(chain), chain)
    candidates, reasons = [], []
    for chain in picked.values():
        try:
            assembly = assembly_of(chain, demand.src, demand.dst, target, request.rows, request.cols)
            candidates.append((chain, assembly, cost_of(assembly)))
        except CastsimError as error:
            reasons.append(error)
        if len(candidates) == _SIMULATED:
            break
    if not candidates:
        raise reasons[0]
    order = {id(chain): number for number, chain in enumerate(picked.values())}
    return sorted(
        candidates, key=lambda candidate: (candidate[2].rank, plainness(candidate[0]), order[id(candidate[0])])
    )


def _plainness(chain: Chain, demand: Demand) -> tuple[int, ...]:
    """Return the ranking key of equally exact chains: narrow, quickly proven, plain."""
    wanted = {policy.rounding for policy in demand.references}
    strange = sum(
        primitive.policy.rounding not in wanted
        for primitive in primitives_of(chain)
        if isinstance(primitive, FormatCast | Integral)
    )
    instructions = [step for step in chain if step.is_instruction]
    width = sum(max(step.src.bits, step.dst.bits) for step in instructions)
    options = sum(len(step.forms[0].options) for step in chain)
    slow = int(demand.src.bits > 16 and not goes_by_breakpoints(demand, chain))
    return width, slow, strange, len(chain), options


def _kind(chain: Chain) -> tuple[Any, ...]:
    """Return the key of a chain's cost: formats and kinds of instructions, not rounding modes or constants.

    Casts of tiles all have the same mnemonic, and rereading bits has none.
    """
    forms = [(step.src.name, step.dst.name, step.forms[0]) for step in chain]
    return tuple(
        (src, dst, type(form), None if isinstance(form, TileCastForm | RereadForm) else form.mnemonic, _switches(form))
        for src, dst, form in forms
    )


def _switches(form: Form) -> tuple[Any, ...]:
    return (form.saturation, form.scratch) if isinstance(form, TileCastForm) else ()


def _spellings(chain: Chain) -> Iterator[Chain]:
    """Yield a chain with every spelling of its steps that may affect the time."""
    choices: list[list[LoweringStep]] = []
    for step in chain:
        by_switches: dict[tuple[Any, ...], Form] = {}
        for form in step.forms:
            by_switches.setdefault(_switches(form), form)
        choices.append([replace(step, forms=(form,)) for form in by_switches.values()])
    yield from islice(product(*choices), _SPELLINGS)


_ADDED = 48
"""Failing codes of a refuted chain that join the sample."""


SAMPLED_MARK = "~"
"""Mark of a verdict that rests on samples, or on a substitute that does."""


class PlanKind(StrEnum):
    """The kind of a plan."""

    NATIVE = "native"
    """One instruction with its defaults."""
    OPTIONS = "native with options"
    """One instruction with required modes."""
    CHAIN = "chain"
    """Several instructions."""
    COPY = "copy"
    """No instruction: the bits stay unchanged."""
    NONE_FOUND = "none found"
    """No searched chain satisfies the request, which proves nothing about others."""
    IMPOSSIBLE = "impossible"
    """The target has no elements as wide as the source or the destination."""

    @property
    def fails(self) -> bool:
        """Whether there is no program."""
        return self in (PlanKind.NONE_FOUND, PlanKind.IMPOSSIBLE)


# What a plan holds, as JSON. Proofs of substitutes depend on the modules of steps and demands, which therefore import
# no report: a change of one would make the proofs stale.


class Step(Keys):
    """An instruction of a chain."""

    instruction: str = says("The instruction.", "name")
    options: list[str] = says("The required options of the instruction.", lambda step: step.forms[0].options)
    src: str = says("Name of its source format.")
    dst: str = says("Name of its destination format.")


def code_text(code: int, fmt: Format) -> str:
    """Return a code in hexadecimal; for a boolean the whole byte, which may be true without being 1."""
    whole = isinstance(fmt, IntFormat) and fmt.boolean
    return f"0x{code:02x}" if whole else bits_text(code, fmt)


class TracedValueEntry(Keys, title="TracedValue"):
    """An intermediate value of a chain."""

    step: str | None = says("The instruction that computes it; null for the input.")
    format: str = says("Name of its format.")
    bits: str = says("Its code in hexadecimal.", lambda traced: code_text(traced.code, traced.format))
    value: Value = says("Its number, or `nan`, `inf`, `-inf`.", lambda traced: json_value(traced.value, traced.format))


@record
class LoweredNumber(CodedNumber, title="Number"):
    """A code and the number that it stands for."""

    bits: Bits = derived("The code in hexadecimal.", lambda own: code_text(own.code, own.format))


class RequiredResult(Keys):
    """The correct results for one input."""

    lowest: LoweredNumber | None = says("The lowest number; null if there is none.")
    highest: LoweredNumber | None = says("The highest number; null if there is none.")
    further: LoweredNumber | None = says("A number outside that range; null if there is none.")
    nan: bool = says("Whether every NaN is accepted.")


def _required(counterexample: Counterexample) -> Document:
    required, dst = counterexample.required, counterexample.result.format
    ends = {
        name: None if end is None else LoweredNumber(end[0], end[1], dst)
        for name in ("lowest", "highest", "further")
        for end in [getattr(required, name)]
    }
    return RequiredResult.of(required, **ends)


class CounterexampleEntry(Keys):
    """An input for which a chain is wrong."""

    values: list[TracedValueEntry] = says("All values along the chain, the input first.")
    required: RequiredResult = says("The accepted results.", _required)


@dataclass(frozen=True, slots=True)
class Refuted:
    """A chain that might be expected, and where it fails."""

    chain: Chain
    counterexample: Counterexample
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a request.

    `chain` is the best one that satisfies it, or else (`kind` is NONE_FOUND) the one with the fewest failing codes,
    with its smallest `counterexample`; empty if the destination is unreachable. `assembly` and `cost` belong to a
    satisfying chain; `refuted` are native casts of the pair with fewer options than `chain` has. The plan of a given
    path (`plan_through`) has its way even if the chain differs.
    """

    request: CastRequest
    demand: Demand
    target: Target
    kind: PlanKind
    verdict: Verdict
    chain: Chain
    evidence: Evidence | None = None
    cost: ProgramCost | None = None
    assembly: Assembly | None = None
    counterexample: Counterexample | None = None
    refuted: tuple[Refuted, ...] = ()
    searched: int = 0
    """Number of steps available to chains as long as the chosen one, or as any that was tried."""
    reason: str | None = None
    """The reason why there is no chain, if there is none."""
    nearest: str | None = None
    """The reachable format nearest to the destination, if there is no chain."""

    @property
    def proven(self) -> bool:
        """Whether the verdict covers every code, or there is no chain: one example refutes a single chain, not all."""
        if self.kind.fails:
            return self.kind is PlanKind.IMPOSSIBLE
        return self.verdict is Verdict.DIFFERS or (self.evidence is not None and self.evidence.proves)

    @property
    def claim(self) -> str:
        """The verdict in words that claim no more than the evidence: samples are named as such."""
        if self.proven or self.evidence is None or self.verdict is Verdict.DIFFERS:
            return self.verdict.value  # one counterexample refutes a chain, wherever it came from
        finding = "no difference" if self.verdict is Verdict.EXACT else "nothing beyond the tolerance"
        if self.evidence.method is Method.SUBSTITUTE:
            return f"{finding} found in {self.evidence.codes} codes of a substitute{SAMPLED_MARK}"
        return f"{finding} found in {self.evidence.codes} samples{SAMPLED_MARK}"

    @property
    def text(self) -> str | None:
        """The program, None if nothing satisfies the request."""
        return None if self.assembly is None else self.assembly.text


def plan(
    request: CastRequest, progress: ProgressCallback = lambda *_: None, *, explain: bool = True, quick: bool = False
) -> Plan:
    """Find the best chain of a target's instructions that satisfies a request, and prove it.

    Chains are tried shortest first, up to `request.steps` instructions; those of one length are ranked by simulated
    cycles per element, scratch and registers. A proven chain takes precedence over a sampled one. Without
    `explain` failing native casts are not described. With `quick` the exhaustive trial of 32-bit codes is skipped.

    Raises:
        ReadError: a specification, target, format, version, attribute or mode is unknown.
        IllegalError: the specification lacks the cast, or a demand contradicts it.
    """
    return attempt(request, progress, explain=explain, quick=quick).plan


def attempt(
    request: CastRequest, progress: ProgressCallback = lambda *_: None, *, explain: bool = True, quick: bool = False
) -> Attempt:
    """Plan as `plan` does, but say which chain fails on the fewest codes only where `Attempt.plan` is read."""
    demand, target = _settled(request)
    catalogue = catalogue_of(target, demand.src, demand.dst)
    task = Task(catalogue, demand, target, request, progress, quick)
    if not catalogue.leads(demand.src, demand.dst, request.steps):
        return Attempt(task, None)
    telling = _TOLD.of((demand.src, demand.dst), lambda: telling_codes(demand.src, (demand.dst,), RANDOM_CODES))
    judged, codes = _proven(task, telling)
    if judged is None:
        return Attempt(task, None, codes)
    return Attempt(task, _standing(task, *judged, refuted=_refuted_natives(task, judged[0].chain) if explain else ()))


@dataclass(frozen=True)
class Attempt:
    """The best plan that satisfies a request, or None and the codes that were tried, if anything leads there."""

    task: Task
    satisfying: Plan | None
    tried: Codes | None = None

    @cached_property
    def plan(self) -> Plan:
        """The plan, also where nothing satisfies the request."""
        if self.satisfying is not None:
            return self.satisfying
        return _unreached(self.task) if self.tried is None else _none_found(self.task, self.tried)


_TOLD: Shared[Codes] = Shared(64)


def plan_through(request: CastRequest, path: Sequence[str], progress: ProgressCallback = lambda *_: None) -> Plan:
    """Judge the best chain through the named formats, with one instruction for each step.

    `path` contains `FORMAT` or `FORMAT:MODE`, MODE the rounding of the instruction that yields it; the destination may
    be its last entry.

    Raises:
        IllegalError: the target has no such chain; otherwise see `plan`.
    """
    demand, target = _settled(request)
    catalogue = catalogue_of(target, demand.src, demand.dst)
    task = Task(catalogue, demand, target, request, progress)
    legs = _legs_of(path, demand)
    codes = telling_codes(demand.src, [format_named(leg.format) for leg in legs], RANDOM_CODES)
    judgement = None
    while judgement is None:
        best = through(catalogue, demand, codes, legs)
        if best is None:
            shown = " -> ".join([demand.src.name, *(f"{leg.format} ({leg.rounding or 'any'})" for leg in legs)])
            raise IllegalError(f"{target.name} has no chain {shown}", legal=_legs(catalogue, demand, legs))
        judgement = task.judge(best[0])
        if best[1] == 0 and judgement.verdict is Verdict.DIFFERS:
            codes, judgement = _with_failing(codes, judgement), None
    if judgement.verdict is Verdict.DIFFERS:
        refused = _refusal(task, judgement)
        return replace(refused, kind=_planner_kind(judgement.chain))
    assembly = assembly_of(judgement.chain, demand.src, demand.dst, target, request.rows, request.cols)
    return _standing(task, judgement, assembly, cost_of(assembly))


def _standing(
    task: Task, judgement: Judgement, assembly: Assembly, cost: ProgramCost, refuted: tuple[Refuted, ...] = ()
) -> Plan:
    """Return the plan of a chain that satisfies the request."""
    return Plan(
        request=task.request,
        demand=task.demand,
        target=task.target,
        kind=_planner_kind(judgement.chain),
        verdict=judgement.verdict,
        chain=judgement.chain,
        evidence=judgement.evidence,
        cost=cost,
        assembly=assembly,
        refuted=refuted,
        searched=task.catalogue.count(task.demand.src, sum(step.is_instruction for step in judgement.chain)),
    )


def _settled(request: CastRequest) -> tuple[Demand, Target]:
    if not 1 <= request.steps <= MOST_STEPS:
        legal = [str(count) for count in range(1, MOST_STEPS + 1)]
        raise ReadError(f"chains of {request.steps} steps", legal=legal)
    if min(request.rows, request.cols) < 1:
        raise ReadError(f"a tensor of {request.rows} x {request.cols} elements", legal=("1 x 1 and more",))
    demand = settle(request)
    chip = load_target(request.target)
    _check_satisfiable(demand)
    return demand, chip


def _check_satisfiable(demand: Demand) -> None:
    """Reject a demand that no result can satisfy.

    Raises:
        IllegalError: there is one; the message names an input and the contradiction.
    """
    if not demand.narrowed:
        return
    everything = all_codes(demand.src)
    codes = telling_codes(demand.src, (demand.dst,), 1 << 10) if everything is None else everything
    contradicted = demand.unsatisfiable(codes)
    if contradicted.any():
        code = int(smallest_first(codes[contradicted], demand.src)[0])
        raise IllegalError(
            f"unsatisfiable: {demand.cast.label} does not accept the result of {demand.further}, "
            f"for example for {demand.src.name} {decimal_text(value_of(code, demand.src))} ({code:#x}): "
            f"its rule is '{demand.cast.rule.meaning}'"
        )


@dataclass(frozen=True, slots=True)
class Task:
    """A request with everything that is needed to work on it."""

    catalogue: Catalogue
    demand: Demand
    target: Target
    request: CastRequest
    progress: ProgressCallback
    quick: bool = False

    def judge(self, chain: Chain) -> Judgement:
        """Prove or refute a chain."""
        return judge(self.demand, chain, self.progress, quick=self.quick)


def _proven(task: Task, codes: Codes) -> tuple[tuple[Judgement, Assembly, ProgramCost] | None, Codes]:
    """Return the best chain that can be proven; a refuted one adds to the codes, and the search starts again."""
    judged: dict[tuple[Primitive, ...], Judgement] = {}
    request, demand = task.request, task.demand
    while True:
        chains = search(task.catalogue, demand, codes, request.steps, task.progress)
        if not chains:
            return None, codes
        sampled: tuple[Judgement, Assembly, ProgramCost] | None = None
        refuted = False
        for chain, assembly, cost in ranked(chains, demand, task.target, request, codes):
            # Spellings of one chain share their verdict.
            primitives = primitives_of(chain)
            if primitives not in judged:
                judged[primitives] = task.judge(chain)
            judgement = replace(judged[primitives], chain=chain)
            if judgement.verdict is Verdict.DIFFERS:
                codes, refuted = _with_failing(codes, judgement), True
                break
            if judgement.evidence.proves:
                return (judgement, assembly, cost), codes
            sampled = sampled or (judgement, assembly, cost)
        if not refuted:
            return sampled, codes


def _with_failing(codes: Codes, judgement: Judgement) -> Codes:
    """Add failing codes to those tried: the smallest, and others spread over all known ones."""
    failing = judgement.failing
    spread = failing[np.linspace(0, failing.size - 1, min(_ADDED, failing.size)).astype(np.intp)]
    more: Codes = distinct(np.concatenate((codes, spread))).astype(codes.dtype)
    return more


def _planner_kind(chain: Chain) -> PlanKind:
    instructions = [step for step in chain if step.is_instruction]
    if not instructions:
        return PlanKind.COPY
    if len(instructions) > 1:
        return PlanKind.CHAIN
    return PlanKind.OPTIONS if instructions[0].forms[0].options else PlanKind.NATIVE


def _none_found(task: Task, codes: Codes) -> Plan:
    catalogue, demand, request = task.catalogue, task.demand, task.request
    routes = nearest(catalogue, demand, codes, min(request.steps, 2))
    if not routes and request.steps > 2:
        routes = nearest(catalogue, demand, codes[: 1 << 8], request.steps)
    assert routes  # something leads there
    # Codes that tell chains apart are few: of the best on them, all codes decide, or many.
    whole = demand.everything or grading_of(demand, telling_codes(demand.src, (demand.dst,), _COUNTED))

    def failing(chain: Chain) -> int:
        return int((~whole.satisfied(run_chain(chain, whole.codes))).sum())

    return _refusal(task, task.judge(min((chain for chain, _ in routes[:_ROUTES]), key=failing)))


_ROUTES, _COUNTED = 8, 1 << 12
_OF_DATA = 1 << 10


def route_for(plan: Plan, codes: Codes) -> Chain:
    """Return the chain to run on codes if none satisfies the demand: the one with the fewest failing codes among these.

    Ties are decided by the failing codes of the planner's sample. Of more than 1,024 different
    codes, that many are tried, spread evenly.
    """
    demand, target = plan.demand, plan.target
    if not plan.chain or sum(step.is_instruction for step in plan.chain) > 2:
        return plan.chain
    data = distinct(codes.reshape(-1))
    data = data[np.linspace(0, data.size - 1, min(data.size, _OF_DATA)).astype(np.intp)]
    telling = telling_codes(demand.src, (demand.dst,), RANDOM_CODES)
    tried = np.concatenate((data, telling)).astype(telling.dtype)
    weights = np.where(np.arange(tried.size) < data.size, telling.size + 1, 1)
    routes = nearest(catalogue_of(target, demand.src, demand.dst), demand, tried, 2, weights)
    planned = int(weights[~demand.satisfied(tried, run_chain(plan.chain, tried))].sum())
    return routes[0][0] if routes and routes[0][1] < planned else plan.chain


def _refusal(task: Task, judgement: Judgement) -> Plan:
    return Plan(
        request=task.request,
        demand=task.demand,
        target=task.target,
        kind=PlanKind.NONE_FOUND,
        verdict=Verdict.DIFFERS,
        chain=judgement.chain,
        evidence=judgement.evidence,
        counterexample=counterexample(task.demand, judgement.chain, int(judgement.failing[0])),
        searched=task.catalogue.count(task.demand.src, task.request.steps),
        reason=f"of chains of up to {task.request.steps} instructions each fails on some code",
        nearest=nearest_format(task.catalogue, task.demand, task.request.steps),
    )


def _unreached(task: Task) -> Plan:
    """Return the plan where no chain leads to the destination: proven where the chip has no elements of the width."""
    demand, target, catalogue, steps = task.demand, task.target, task.catalogue, task.request.steps
    widths = catalogue.widths
    lacking = next((fmt for fmt in (demand.src, demand.dst) if fmt.storage_bits > max(widths)), None)
    if lacking is not None:
        kind = PlanKind.IMPOSSIBLE
        reason = f"{target.name} has no elements of {lacking.storage_bits} bits and therefore none of {lacking.name}"
    else:
        kind = PlanKind.NONE_FOUND
        reason = f"no chain of up to {steps} instructions leads from {demand.src.name} to {demand.dst.name}"
        unknown = {fmt.name: fmt for fmt in (demand.src, demand.dst) if not catalogue.holds(fmt)}
        if unknown:
            reason += f": {target.name} has no instruction for elements of {' and '.join(unknown)}"
            if all(isinstance(fmt, IntFormat) and fmt.bits < 8 for fmt in unknown.values()):
                reason += "; `castsim graph` holds each element in a byte"
    return Plan(
        task.request, demand, target, kind, Verdict.DIFFERS, (),
        searched=catalogue.count(demand.src, steps), reason=reason,
        nearest=nearest_format(catalogue, demand, steps),
    )  # fmt: skip


def _refuted_natives(task: Task, chain: Chain) -> tuple[Refuted, ...]:
    """Return the plain native cast of the pair if the chain is another and the plain one fails."""
    demand = task.demand
    options = sum(len(step.forms[0].options) for step in chain)
    native = [
        step
        for step in task.catalogue.from_format(demand.src)
        if step.dst == demand.dst
        and not any(isinstance(primitive, ConstantArithmetic) for primitive in step.primitives)
    ]
    plain = min(native, key=lambda step: len(step.forms[0].options), default=None)
    if plain is None or (plain.primitives == primitives_of(chain)):
        return ()
    if len(chain) == 1 and len(plain.forms[0].options) >= options:
        return ()
    judgement = judge(demand, (plain,), task.progress, quick=True)
    if judgement.verdict is not Verdict.DIFFERS:
        return ()
    example = counterexample(demand, (plain,), int(judgement.failing[0]))
    return (Refuted((plain,), example, judgement.evidence),)


def _legs_of(path: Sequence[str], demand: Demand) -> list[RequestedStep]:
    """Read a path.

    Raises:
        ReadError: an unknown format.
    """
    legs = []
    for text in path:
        name, _, mode = text.strip().partition(":")
        legs.append(RequestedStep(format_named(name).name, mode.lower() or None))
    if not legs or legs[-1].format != demand.dst.name:
        legs.append(RequestedStep(demand.dst.name))
    return legs


def _legs(catalogue: Catalogue, demand: Demand, legs: Sequence[RequestedStep]) -> list[str]:
    """Return the single casts that exist from the formats of a path."""
    formats = (demand.src, *(format_named(leg.format) for leg in legs[:-1]))
    pairs = [(fmt.name, step.dst.name) for fmt in formats for step in catalogue.from_format(fmt)]
    return [f"{src} -> {dst}" for src, dst in dict.fromkeys(pairs) if src != dst]
