"""Options of a target that software sets, and which settings of them change what its instructions do to elements.

Options that stand for a doubtful point are never varied here: what the hardware does is not for a program to choose.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations, product

import numpy as np

from castsim.isa.codes import Codes
from castsim.isa.formats import Format, format_named
from castsim.planning import Catalogue, LoweringStep, catalogue_of
from castsim.planning.catalogue import Steps
from castsim.planning.mechanisms import arithmetic_between
from castsim.planning.primitives import ConstantArithmetic
from castsim.planning.samples import telling_codes
from castsim.planning.sharing import Kept, Shared
from castsim.targets import Target
from castsim.targets.options import with_options

Setting = tuple[tuple[str, int | str], ...]
"""Options and their values, in the order of the description."""

MOST = 2
"""Options that are changed together."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A setting, the target `before` and with it, and the (source, destination) pairs whose casts it changes."""

    setting: Setting
    before: Target
    target: Target
    pairs: frozenset[tuple[str, str]]

    def touches(self, catalogue: Catalogue, src: Format, dst: Format, steps: int) -> bool:
        """Whether a chain of up to so many instructions from `src` to `dst` can hold one that the setting changes.

        `catalogue` is that of the target without the setting for this cast.
        """

        def leads_through(pairs: Iterable[tuple[str, str]]) -> bool:
            return any(
                catalogue.leads(src, format_named(before), place)
                and catalogue.leads(format_named(after), dst, steps - 1 - place)
                for before, after in pairs
                for place in range(steps)
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
    """Whether two operations give the same on telling codes; equal ones, digests of facts included, do."""
    if step.primitives == other.primitives:
        return True
    codes = _telling(step.src, step.dst)
    return np.array_equal(step.run(codes), other.run(codes))


_ALIKE: Shared[bool] = Shared(1 << 14)


@cache
def _telling(src: Format, dst: Format) -> Codes:
    """Return codes of `src` on which operations to `dst` differ; every cell and setting asks for them."""
    return telling_codes(src, (dst,), 0)


def settable(target: Target) -> tuple[str, ...]:
    """Return the options that software sets."""
    return tuple(name for name, option in target.options.items() if option.set_by)


def changed(target: Target, values: Mapping[str, int | str]) -> Target:
    """Return the target with other values for some of its options, the same object each time.

    Raises:
        ReadError: no such option, or a value that it cannot have.
    """
    key = tuple((name, str(value)) for name, value in values.items())
    return _CHANGED.of((id(target), key), lambda: with_options(target, values), target) if key else target


def setting_of(target: Target, values: Mapping[str, int | str]) -> Setting:
    """Return values for options as the description writes them.

    Raises:
        ReadError: no such option, or a value that it cannot have.
    """
    found = changed(target, values)
    return tuple((name, option.value) for name, option in found.options.items() if name in values)


def choices(target: Target, without: frozenset[str] = frozenset()) -> tuple[Choice, ...]:
    """Return the settings of up to `MOST` settable options that change what some cast does to elements.

    Of several that come to the same, only one of those with the fewest options is there. Options `without` stay as
    they are. Those with the fewest options come first.
    """
    return _CHOICES.of((id(target), without), lambda: tuple(_choices(target, without)), target)


def _choices(target: Target, without: frozenset[str]) -> Iterator[Choice]:
    names = [name for name in settable(target) if name not in without]
    if not names:
        return
    before = _casts(target)
    known = {before}
    for setting in _settings(target, names):
        other = changed(target, dict(setting))
        steps = _casts(other)
        if steps not in known:
            known.add(steps)
            yield Choice(setting, target, other, frozenset((step.src.name, step.dst.name) for step in steps ^ before))


def _settings(target: Target, names: list[str]) -> Iterator[Setting]:
    for count in range(1, MOST + 1):
        for together in combinations(names, count):
            values = [
                [value for value in option.legal if value not in (option.value, target.option(name))]
                for name, option in ((name, target.options[name]) for name in together)
            ]
            for setting in product(*values):
                yield tuple(zip(together, setting, strict=True))


def _casts(target: Target) -> frozenset[LoweringStep]:
    """Return the casts of a target, whatever they lead to; operations with a constant depend on the request."""
    first = format_named(target.casts[0].src)
    return frozenset(step for step in _all(catalogue_of(target, first, first)) if not _calculates(step))


def _calculates(step: LoweringStep) -> bool:
    return any(isinstance(primitive, ConstantArithmetic) for primitive in step.primitives)


def _all(catalogue: Catalogue) -> Iterator[LoweringStep]:
    for steps in catalogue.steps.values():
        yield from steps


_CHANGED: Kept[Target] = Kept(256)
_CHOICES: Kept[tuple[Choice, ...]] = Kept(64)
