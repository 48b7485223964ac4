"""One thing that the linter objects to."""

from __future__ import annotations

from dataclasses import dataclass

from castsim.isa.errors import Span


@dataclass(frozen=True, slots=True)
class LintFinding:
    """A broken rule: its name, where, and what is wrong in words. `bundle` counts from 0.

    `certain` is False for what depends on more than the text: the path, a predicate, values that registers start with.
    """

    rule: str
    bundle: int
    message: str
    span: Span
    certain: bool = True
