"""Stated limits of what is read from a text, each with the option that raises it."""

from __future__ import annotations

from castsim.isa.errors import LimitError, Span

MAX_STATEMENTS = 200_000
"""Statements of a program, unless the caller says otherwise; bundles count in assembly."""


def too_many_statements(limit: int, span: Span, what: str = "statements") -> LimitError:
    """Return (not raise) the refusal of a text at its first statement too many."""
    return LimitError(
        f"the program has more than {limit} {what}, the limit of --max-statements",
        span=span,
        legal=("--max-statements N with a larger N",),
    )
