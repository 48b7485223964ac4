"""Colours that are told apart on light and on dark pages, by colour-blind readers too.

Those of eight things are of Okabe and Ito, "Color Universal Design" (2008), without black; causes have fixed ones, so
that drawings can be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from castsim.reports.pipes import CAUSE_COLOURS
from castsim.timing import Cause

SERIES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a900", "#999999")
"""Colours of things in the order in which they appear; the last is for all that are left."""


def cause_colour(cause: Cause) -> str:
    """Return the colour of a cause."""
    return CAUSE_COLOURS[cause][0]


def colours_of(names: Iterable[str]) -> dict[str, str]:
    """Return a colour for each different name, in the order of their first appearance."""
    known = dict.fromkeys(names)
    return {name: SERIES[min(number, len(SERIES) - 1)] for number, name in enumerate(known)}


def meanings(colours: Mapping[str, str]) -> dict[str, str]:
    """Return the name behind each colour; of several names of one colour only that there are others."""
    found: dict[str, str] = {}
    for name, colour in colours.items():
        found[colour] = "others" if colour in found else name
    return found
