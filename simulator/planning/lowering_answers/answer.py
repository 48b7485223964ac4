"""What a target does for a request: as it stands, or with options that software sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from castsim.execution.notebook_display import NotebookMixin
from castsim.isa.errors import CastsimError, IllegalError
from castsim.planning import CastRequest, Plan, PlanKind, catalogue_of, plan, plan_through
from castsim.planning.lowering_answers.settings import MOST, Choice, Setting, changed, choices, setting_of
from castsim.targets import load_target
from castsim.timing import ProgressCallback

_AS_IT_STANDS = (PlanKind.NATIVE, PlanKind.OPTIONS, PlanKind.COPY)


@dataclass(frozen=True, slots=True)
class Alternative:
    """A plan for the target with further options set."""

    plan: Plan
    setting: Setting


@dataclass(frozen=True, slots=True, repr=False)
class Answer(NotebookMixin[Literal["steps"]]):
    """What `lower` answers: a plan, and the options of the target with which it holds.

    `plan` has the verdict, the instructions, the cost in cycles and bytes, and the counterexample if there is one.
    `given` are the options that were asked for, `chosen` further ones, without which nothing satisfies the request:
    `refuted` is the plan without them. `native` is one instruction with further options, where the plan without them
    is a chain.

    Notebooks show the steps, the proof and the program. The frame `steps` has a row per step of the chain: its number,
    the `instruction`, the formats `src` and `dst`, and the `options` that it has to be asked for.
    """

    plan: Plan
    given: Setting = ()
    chosen: Setting = ()
    refuted: Plan | None = None
    native: Alternative | None = None

    def __repr__(self) -> str:
        found = self.plan
        cast = f"{found.demand.src.name} -> {found.demand.dst.name} on {found.target.name}"
        return f"<Answer {cast}: {self.kind.value}, {found.claim}>"

    @property
    def settings(self) -> Setting:
        """All options with which the program is to be run."""
        return (*self.given, *self.chosen)

    @property
    def kind(self) -> PlanKind:
        """The kind of the plan; one instruction that needs options of the target is native with them."""
        return PlanKind.OPTIONS if self.chosen and self.plan.kind is PlanKind.NATIVE else self.plan.kind

    @property
    def text(self) -> str | None:
        """The program, its options in a comment before it; None if nothing satisfies the request."""
        return None if self.plan.text is None else with_options_named(self.plan.text, self.settings)


def with_options_named(program: str, setting: Setting) -> str:
    """Return the text of a program with the options that it is to be run with, in a comment before it."""
    return f"// castsim run {options_text(setting)}\n{program}" if setting else program


def options_text(setting: Setting) -> str:
    """Return a setting as the command line takes it."""
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
) -> Answer:
    """Plan a cast, where the target as it stands has no single instruction for it also with options that software sets.

    What conforms without further options goes before what needs them. If only chains do, `native` tells of a single
    instruction with options. If nothing does, the fewest options decide, of single instructions first, then of chains;
    of equally many the cheapest program. `options` of the target are kept at the values given. Without `alternatives`
    no single instruction is looked for where a chain does. Other arguments as `castsim.planning.plan`.

    Raises:
        ReadError: no such option, or a value that it cannot have; otherwise as `plan`.
        IllegalError, TileError: as `plan`.
    """
    asked, given = _with_options(request, options or {})
    found = plan(asked, progress, explain=explain, quick=quick)
    if found.kind in _AS_IT_STANDS:
        return Answer(found, given)
    search = _Search(asked, given, found, progress, quick)
    if found.kind is PlanKind.CHAIN:
        native = search.best(1, refused=CastsimError) if alternatives else None
        return Answer(found, given, native=native)
    best = search.best(1) or search.best(request.steps)
    return Answer(found, given) if best is None else Answer(best.plan, given, best.setting, found)


def answer_through(
    request: CastRequest,
    path: Sequence[str],
    progress: ProgressCallback = lambda *_: None,
    *,
    options: Mapping[str, int | str] | None = None,
) -> Answer:
    """Judge the best chain through the named formats, on the target with the options given and no others.

    Raises:
        ReadError, IllegalError, TileError: as `castsim.planning.plan_through` and `answer`.
    """
    asked, given = _with_options(request, options or {})
    return Answer(plan_through(asked, path, progress), given)


def _with_options(request: CastRequest, options: Mapping[str, int | str]) -> tuple[CastRequest, Setting]:
    target = load_target(request.target) if isinstance(request.target, str | Path) else request.target
    given = setting_of(target, options)
    return replace(request, target=changed(target, dict(given))), given


@dataclass(frozen=True, slots=True)
class _Search:
    """A search: the request to the target as it stands, and what was found."""

    request: CastRequest
    given: Setting
    found: Plan
    progress: ProgressCallback
    quick: bool

    def best(self, steps: int, refused: type[CastsimError] = IllegalError) -> Alternative | None:
        """Return the best plan of up to so many instructions with further options, None if there is none.

        With options for which no program can be written, as `refused`, nothing is done.
        """
        touching = list(self._touching(steps))
        for count in range(1, MOST + 1):
            tried = [
                (found.cost.rank, place, choice, found)
                for place, choice in enumerate(touching)
                if len(choice.setting) == count
                and (found := self._planned(choice, steps, refused, quick=True)) is not None
                and found.cost is not None
            ]
            for _, _, choice, found in sorted(tried, key=lambda one: one[:2]):
                proven = found if self.quick else self._planned(choice, steps, refused, quick=False)
                if proven is not None:
                    return Alternative(proven, choice.setting)
        return None

    def _touching(self, steps: int) -> Iterator[Choice]:
        target, demand = self.found.target, self.found.demand
        kept = frozenset(name for name, _ in self.given)
        catalogue = catalogue_of(target, demand.src, demand.dst)
        for choice in choices(target, kept):
            if choice.touches(catalogue, demand.src, demand.dst, steps):
                yield choice

    def _planned(self, choice: Choice, steps: int, refused: type[CastsimError], *, quick: bool) -> Plan | None:
        request = replace(self.request, target=choice.target, steps=steps)
        try:
            found = plan(request, self.progress, explain=False, quick=quick)
        except refused:
            return None
        return None if found.kind.fails else found
