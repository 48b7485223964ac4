"""Answers: the lowering of a cast on a target, with the options that software can set.

found = answer(CastRequest("f32", "f16", "a5", spec="tosa"))
found.kind, found.plan.verdict, found.settings   # OPTIONS, CONFORMS, (("ctrl_48_at_start", 1),)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import combinations, product
from pathlib import Path
from typing import Literal

import numpy as np

from castsim.execution.outcomes import NotebookMixin
from castsim.execution.timing import ProgressCallback
from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import CastsimError, IllegalError, arguments_checked
from castsim.isa.formats import Codes, Format, format_named
from castsim.isa.value_expressions import format_spelled
from castsim.numerics.codec import FormatLike, format_name
from castsim.running.acceptance import parse_specification
from castsim.targets.description import with_options
from castsim.targets.loader import Target, load_target
from castsim.targets.specification import Specification
from castsim.tools.lowering.catalogue import PLANNING, Catalogue, Steps, arithmetic_between
from castsim.tools.lowering.demand import MOST_STEPS, CastRequest
from castsim.tools.lowering.planner import Attempt, Plan, PlanKind, attempt, plan_through
from castsim.tools.lowering.samples import telling_codes
from castsim.tools.lowering.sharing import Kept, Shared
from castsim.tools.lowering.steps import LoweringStep

# Options of a target that software sets, and which settings of them change what its instructions do to elements.
#
# Options that stand for a doubtful point are never varied here: what the hardware does is not for a program to choose.

Setting = tuple[tuple[str, int | str], ...]
"""Options and their values, in the order of the description."""

MOST = 2
"""Maximum number of options that are changed together."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A setting, the target before and with it, and the (source, destination) pairs whose casts it changes."""

    setting: Setting
    before: Target
    target: Target
    pairs: frozenset[tuple[str, str]]

    def touches(self, catalogue: Catalogue, src: Format, dst: Format, steps: int) -> bool:
        """Whether a chain of up to some instructions from `src` to `dst` may contain one that the setting affects.

        `catalogue` is the target's for this cast, without the setting.
        """

        def leads_through(pairs: Iterable[tuple[str, str]]) -> bool:
            return any(
                catalogue.leads(src, format_named(before), index)
                and catalogue.leads(format_named(after), dst, steps - 1 - index)
                for before, after in pairs
                for index in range(steps)
            )

        return leads_through(self.pairs) or leads_through(self._calculating(src, dst))

    def _calculating(self, src: Format, dst: Format) -> frozenset[tuple[str, str]]:
        """Return the pairs of operations with a constant that the setting changes, as results on telling codes show."""
        before, after = (arithmetic_between(target, src, dst) for target in (self.before, self.target))
        return _CALCULATING.of(
            (id(before), id(after)), lambda: frozenset(_changed_pairs(before, after)), (before, after)
        )


_CALCULATING: Shared[frozenset[tuple[str, str]]] = Shared(1 << 12)


def _changed_pairs(before: Steps, after: Steps) -> Iterator[tuple[str, str]]:
    others = {step.name: step for steps in after.values() for step in steps}
    for step in (step for steps in before.values() for step in steps):
        other = others[step.name]
        key = id(step.primitives), id(other.primitives)
        if not _ALIKE.of(key, partial(_alike, step, other), (step, other)):
            yield step.src.name, step.dst.name


def _alike(step: LoweringStep, other: LoweringStep) -> bool:
    """Return whether two operations give the same on telling codes; equal ones, digests of facts included, do."""
    if step.primitives == other.primitives:
        return True
    codes = _telling(step.src, step.dst)
    return np.array_equal(step.run(codes), other.run(codes))


_ALIKE: Shared[bool] = Shared(1 << 14)


@cache
def _telling(src: Format, dst: Format) -> Codes:
    """Return codes of `src` on which operations to `dst` differ, cached for all cells and settings."""
    return telling_codes(src, (dst,), 0)


def settable(target: Target) -> tuple[str, ...]:
    """Return the options that software can set."""
    return tuple(name for name, option in target.options.items() if option.set_by)


def changed(target: Target, values: Mapping[str, int | str]) -> Target:
    """Return the target with changed options, the same object each time.

    Raises:
        ReadError: an option does not exist, or its value is not legal.
    """
    key = tuple((name, str(value)) for name, value in values.items())
    return _CHANGED.of((id(target), key), lambda: with_options(target, values), target) if key else target


def setting_of(target: Target, values: Mapping[str, int | str]) -> Setting:
    """Return values of options in the spelling of the description.

    Raises:
        ReadError: an option does not exist, or its value is not legal.
    """
    changed_target = changed(target, values)
    return tuple((name, option.value) for name, option in changed_target.options.items() if name in values)


def choices(target: Target, without: frozenset[str] = frozenset()) -> tuple[Choice, ...]:
    """Return the settings of up to `MOST` settable options that change the effect of any cast on elements.

    Of several equivalent ones, only one with the fewest options is included. Options in `without` stay
    unchanged. Settings with the fewest options come first.
    """
    return _CHOICES.of((id(target), without), lambda: tuple(_choices(target, without)), target)


def _choices(target: Target, without: frozenset[str]) -> Iterator[Choice]:
    settings = tuple(searched_settings(target, without))
    before = PLANNING.of(target).behaviours(target) if settings else {}
    different = [before]
    for setting in settings:
        other = changed(target, dict(setting))
        behaviours = PLANNING.of(other).behaviours(other)
        if behaviours not in different:
            different.append(behaviours)
            pairs = frozenset(pair for pair in {**before, **behaviours} if before.get(pair) != behaviours.get(pair))
            yield Choice(setting, target, other, pairs)


def searched_settings(target: Target, without: frozenset[str] = frozenset()) -> Iterator[Setting]:
    """Yield the settings of up to `MOST` settable options that differ from the current ones, fewest options first."""
    names = [name for name in settable(target) if name not in without]
    for count in range(1, MOST + 1):
        for together in combinations(names, count):
            values = [
                [value for value in option.legal if value not in (option.value, target.option(name))]
                for name, option in ((name, target.options[name]) for name in together)
            ]
            for setting in product(*values):
                yield tuple(zip(together, setting, strict=True))


_CHANGED: Kept[Target] = Kept(256)
_CHOICES: Kept[tuple[Choice, ...]] = Kept(64)


_AS_IT_STANDS = (PlanKind.NATIVE, PlanKind.OPTIONS, PlanKind.COPY)


@dataclass(frozen=True, slots=True)
class Alternative:
    """A plan for the target with additional options."""

    plan: Plan
    setting: Setting


@dataclass(frozen=True, slots=True, repr=False)
class Answer(NotebookMixin[Literal["steps"]]):
    """Result of `lower`: a plan, and the target options that it needs.

    `plan` has the verdict, the instructions, the cost in cycles and bytes, and the counterexample if there is one.
    `given` are the requested options, `chosen` additional ones, without which nothing satisfies the request:
    `refuted` is the plan without them. `native` is one instruction with additional options, if the plan without them
    is a chain.

    Notebooks show the steps, the proof and the program. The frame `steps` has a row per step of the chain: its number,
    the `instruction`, the formats `src` and `dst`, and its required `options`.
    """

    plan: Plan
    given: Setting = ()
    chosen: Setting = ()
    refuted: Plan | None = None
    native: Alternative | None = None

    def __repr__(self) -> str:
        plan = self.plan
        cast = f"{plan.demand.src.name} -> {plan.demand.dst.name} on {plan.target.name}"
        return f"<Answer {cast}: {self.kind.value}, {plan.claim}>"

    @property
    def settings(self) -> Setting:
        """All options for running the program."""
        return (*self.given, *self.chosen)

    @property
    def kind(self) -> PlanKind:
        """The kind of the plan; one instruction that needs target options is native with them."""
        return PlanKind.OPTIONS if self.chosen and self.plan.kind is PlanKind.NATIVE else self.plan.kind

    @property
    def text(self) -> str | None:
        """The program, preceded by a comment with its options; None if nothing satisfies the request."""
        return None if self.plan.text is None else with_options_named(self.plan.text, self.settings)


def with_options_named(program: str, setting: Setting) -> str:
    """Return the text of a program, preceded by a comment with its options."""
    return f"// castsim run {options_text(setting)}\n{program}" if setting else program


def options_text(setting: Setting) -> str:
    """Return a setting in command-line syntax."""
    return " ".join(f"--option {name}={value}" for name, value in setting)


def setting_text(setting: Setting) -> str:
    """Return a setting in words."""
    return ", ".join(f"{name}={value}" for name, value in setting)


def answer(
    request: CastRequest,
    progress: ProgressCallback = lambda *_: None,
    *,
    options: Mapping[str, int | str] | None = None,
    explain: bool = True,
    quick: bool = False,
    alternatives: bool = True,
    refuted: bool = True,
) -> Answer:
    """Plan a cast; if no single instruction of the target is enough, also with options that software sets.

    A result without additional options takes precedence. If only chains work, `native` names a single
    instruction with options. If nothing works, the fewest options win, single instructions before chains;
    for equally many, the cheapest program. `options` of the target keep the given values. Without `alternatives`
    no single instruction is sought if a chain works. Without `refuted` the plan without additional options is not
    kept. For other arguments see `castsim.tools.lowering.planner.plan`.

    Raises:
        ReadError: an option does not exist, or its value is not legal; otherwise see `plan`.
        IllegalError, TileError: see `plan`.
    """
    asked, given = _with_options(request, options or {})
    tried = attempt(asked, progress, explain=explain, quick=quick)
    plan = tried.satisfying
    if plan is not None and plan.kind in _AS_IT_STANDS:
        return Answer(plan, given)
    search = _Search(tried, given)
    if plan is not None:
        native = search.best(1, refused=CastsimError) if alternatives else None
        return Answer(plan, given, native=native)
    best = search.best(1) or search.best(request.steps)
    if best is None:
        return Answer(tried.plan, given)
    return Answer(best.plan, given, best.setting, tried.plan if refuted else None)


def answer_through(
    request: CastRequest,
    path: Sequence[str],
    progress: ProgressCallback = lambda *_: None,
    *,
    options: Mapping[str, int | str] | None = None,
) -> Answer:
    """Judge the best chain through the named formats, on the target with only the given options.

    Raises:
        ReadError, IllegalError, TileError: see `castsim.tools.lowering.planner.plan_through` and `answer`.
    """
    asked, given = _with_options(request, options or {})
    return Answer(plan_through(asked, path, progress), given)


def _with_options(request: CastRequest, options: Mapping[str, int | str]) -> tuple[CastRequest, Setting]:
    target = load_target(request.target)
    given = setting_of(target, options)
    return replace(request, target=changed(target, dict(given))), given


@dataclass(frozen=True, slots=True)
class _Search:
    """A search for options, after what became of the request without them."""

    tried: Attempt
    given: Setting

    def best(self, steps: int, refused: type[CastsimError] = IllegalError) -> Alternative | None:
        """Return the best plan of up to a number of instructions with additional options, None if there is none.

        Options for which no program can be written, such as `refused`, are skipped.
        """
        touching = list(self._touching(steps))
        for count in range(1, MOST + 1):
            tried = [
                (plan.cost.rank, number, choice, plan)
                for number, choice in enumerate(touching)
                if len(choice.setting) == count
                and (plan := self._planned(choice, steps, refused, quick=True)) is not None
                and plan.cost is not None
            ]
            for _, _, choice, plan in sorted(tried, key=lambda candidate: candidate[:2]):
                proven = plan if self.tried.task.quick else self._planned(choice, steps, refused, quick=False)
                if proven is not None:
                    return Alternative(proven, choice.setting)
        return None

    def _touching(self, steps: int) -> Iterator[Choice]:
        task, kept = self.tried.task, frozenset(name for name, _ in self.given)
        for choice in choices(task.target, kept):
            if choice.touches(task.catalogue, task.demand.src, task.demand.dst, steps):
                yield choice

    def _planned(self, choice: Choice, steps: int, refused: type[CastsimError], *, quick: bool) -> Plan | None:
        task = self.tried.task
        request = replace(task.request, target=choice.target, steps=steps)
        try:
            return attempt(request, task.progress, explain=False, quick=quick).satisfying
        except refused:
            return None


@arguments_checked
def lower(
    src: FormatLike,
    dst: FormatLike,
    *,
    target: str | Path | Target,
    spec: str | Specification = "exact",
    rounding: str | None = None,
    saturate: bool = False,
    via: Sequence[str] = (),
    options: Mapping[str, int | str] | None = None,
    rows: int = 16,
    cols: int = 256,
    steps: int = MOST_STEPS,
) -> Answer:
    """Find the cheapest instructions of a target that meet a specification for a cast, and prove them.

        found = lower("f32", "i8", target="a2a3", spec="tosa@1.1")
        found.kind, found.plan.verdict, found.settings, found.text

    Args:
        src, dst: formats, as for `castsim.cast`.
        target: a chip.
        spec: `NAME[@VERSION][:ATTRIBUTE=VALUE]...` as on the command line, or a specification.
        rounding, saturate: demands beyond the specification: a rounding mode; results out of range clamped.
        via: judge the chain through these formats, each `FORMAT[:MODE]`, instead of searching.
        options: target options, as listed by `castsim targets T`.
        rows, cols: extent in elements of the tensor that the program converts.
        steps: maximum number of instructions of a chain, 1 to 4.

    Returns:
        The plan with its proof, its cycles and its program; if nothing meets the demand, the smallest input
        that shows it. That is an answer, not an error.

    Raises:
        ReadError: a format, target, specification, option or mode is unknown.
        IllegalError: the specification lacks the cast.
        TileError: no program of the target fits a tensor of that extent.
    """
    version: str | None = None
    attributes: Mapping[str, str] = {}
    if isinstance(spec, str):
        spec, version, attributes = parse_specification(spec)
    source, destination = (format_spelled(format_name(format_text)).name for format_text in (src, dst))
    request = CastRequest(source, destination, target, spec, version, attributes, rounding, saturate, rows, cols, steps)
    return answer_through(request, via, options=options) if via else answer(request, options=options)
