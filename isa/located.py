"""The base of all parts of a program that have a place in its source."""

from __future__ import annotations

from dataclasses import dataclass, field

from castsim.isa.spans import Span

NOWHERE = Span("<none>", 1, 1)
"""The place of a part that no source holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """Anything with a place in the source."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)
