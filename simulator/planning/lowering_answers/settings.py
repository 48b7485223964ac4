"""Options of a target that software sets, and which settings of them change what its instructions do to elements.

Options that stand for a doubtful point are never varied here: what the hardware does is not for a program to choose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from typing import Generic, TypeVar

import numpy as np

from castsim.isa.codes import Codes
from castsim.isa.formats import Format, format_named
from castsim.planning import Catalogue, LoweringStep, catalogue_of
from castsim.planning.primitives import ConstantArithmetic
from castsim.planning.samples import telling_codes
from castsim.targets import Target
from castsim.targets.options import with_options

Setting = tuple[tuple[str, int | str], ...]
"""Options and their values, in the order of the description."""

MOST = 2
"""Options that are changed together."""
_KEPT = 64
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Choice:
    """A setting, the target with it, and the (source, destination) pairs whose casts it changes."""

    setting: Setting
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

        return leads_through(self.pairs) or leads_through(self._calculating(catalogue, src, dst))

    def _calculating(self, catalogue: Catalogue, src: Format, dst: Format) -> Iterator[tuple[str, str]]:
        """Yield the pairs of operations with a constant that the setting changes, as results on telling codes show."""
        others = {step.name: step for step in _arithmetic(catalogue_of(self.target, src, dst))}
        for step in _arithmetic(catalogue):
            codes = _telling(step.src, step.dst)
            if not np.array_equal(step.run(codes), others[step.name].run(codes)):
                yield step.src.name, step.dst.name


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
    return _CHANGED.of(target, key, lambda: with_options(target, values)) if key else target


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
    return _CHOICES.of(target, tuple(sorted(without)), lambda: tuple(_choices(target, without)))


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
            yield Choice(setting, other, frozenset((step.src.name, step.dst.name) for step in steps ^ before))


def _settings(target: Target, names: list[str]) -> Iterator[Setting]:
    for count in range(1, MOST + 1):
        for together in combinations(names, count):
            values = [
                [value for value in target.options[name].legal if value != target.option(name)] for name in together
            ]
            for setting in product(*values):
                yield tuple(zip(together, setting, strict=True))


def _casts(target: Target) -> frozenset[LoweringStep]:
    """Return the casts of a target, whatever they lead to; operations with a constant depend on the request."""
    first = format_named(target.casts[0].src)
    return frozenset(step for step in _all(catalogue_of(target, first, first)) if not _calculates(step))


def _arithmetic(catalogue: Catalogue) -> list[LoweringStep]:
    return [step for step in _all(catalogue) if _calculates(step)]


def _calculates(step: LoweringStep) -> bool:
    return any(isinstance(primitive, ConstantArithmetic) for primitive in step.primitives)


def _all(catalogue: Catalogue) -> Iterator[LoweringStep]:
    for steps in catalogue.steps.values():
        yield from steps


class _ByTarget(Generic[_Found]):
    """The findings for targets, by their identity and a key; targets have no hash."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, object], tuple[Target, _Found]] = {}

    def of(self, target: Target, key: object, make: Callable[[], _Found]) -> _Found:
        """Return the entry of a target and a key, made on first use."""
        place = id(target), key
        if place not in self._found:
            if len(self._found) >= _KEPT:
                self._found.clear()
            # The target is kept too, so that no other object can get its identity.
            self._found[place] = target, make()
        return self._found[place][1]


_CHANGED: _ByTarget[Target] = _ByTarget()
_CHOICES: _ByTarget[tuple[Choice, ...]] = _ByTarget()
