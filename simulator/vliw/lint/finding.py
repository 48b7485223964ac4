"""One thing that the linter objects to."""

from __future__ import annotations

from dataclasses import dataclass

from isa.errors import Span


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken rule: its name, where, and what is wrong in words. `bundle` counts from 0."""

    rule: str
    bundle: int
    message: str
    span: Span
