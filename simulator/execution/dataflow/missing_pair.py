"""Saying that a chip does not have a type pair, and what it has instead."""

from __future__ import annotations

from collections.abc import Sequence

from castsim.isa.errors import IllegalError

Pair = tuple[str, str]


def no_such_pair(target: str, pairs: Sequence[Pair], src: str, dst: str) -> IllegalError:
    """Return the error for a cast that `target` lacks: its destinations for the source, and two-step detours."""
    from_source = [other for source, other in pairs if source == src]
    if not from_source:
        sources = dict.fromkeys(source for source, _ in pairs)
        return IllegalError(f"{target} has no cast from {src}; it casts from: {', '.join(sources)}", legal=sources)
    message = f"{target} has no cast {src} -> {dst}; from {src} it has: {', '.join(from_source)}"
    detours = [f"{src} -> {middle} -> {dst}" for middle in from_source if (middle, dst) in pairs and middle != src]
    if detours:
        message += f"; in two steps: {' or '.join(detours)} (rounds twice)"
    return IllegalError(message, legal=[*(f"{src} -> {other}" for other in from_source), *detours])
