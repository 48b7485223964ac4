"""The parts that every mechanism supplies, selected by the mechanism's name and loaded on first use.

A package with a part per mechanism (engines, estimators, reports) lists it in one table; no other code asks which
mechanism a target has.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from operator import attrgetter
from typing import Any, Generic, TypeVar, cast

from castsim.isa.errors import ReadError
from castsim.targets.loader import Target

_Part = TypeVar("_Part")


class MachinePart(Generic[_Part]):
    """One part of every machine; `what` describes it, `places` are import paths (`module:name` or modules) by
    mechanism."""

    def __init__(self, what: str, places: Mapping[str, str]) -> None:
        self.what = what
        self.places = places
        self._loaded: dict[str, _Part] = {}

    def of(self, target: Target) -> _Part:
        """Return the part of the target's mechanism, without loading any other mechanism.

        Raises:
            ReadError: the mechanism has none; the message lists the available ones.
        """
        mechanism = target.mechanism
        if mechanism not in self._loaded:
            if mechanism not in self.places:
                raise ReadError(f"{target.name}: no {self.what} for mechanism '{mechanism}'", legal=self.places)
            self._loaded[mechanism] = cast("_Part", loaded(self.places[mechanism]))
        return self._loaded[mechanism]


def loaded(path: str) -> Any:
    """Return the object at the import path `module:name`, or the module `module`."""
    module, _, name = path.partition(":")
    imported = import_module(module)
    return attrgetter(name)(imported) if name else imported
