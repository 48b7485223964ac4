"""Suggestions for misspelt words."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def closest(word: str, legal: Iterable[str], *, everything_up_to: int = 12) -> tuple[str, ...]:
    """Return the legal words nearest to `word`, best first.

    If none is near, the whole list is the help, as long as it has at most `everything_up_to` words.
    """
    words = tuple(dict.fromkeys(legal))
    folded = word.lower()
    near = [candidate for candidate in words if candidate.lower() == folded]
    # Long garbage is near to nothing, and comparing it would cost time for every word.
    if len(word) <= 64:
        near.extend(get_close_matches(word, words, n=3, cutoff=0.6))
    if near:
        return tuple(dict.fromkeys(near))
    return words if len(words) <= everything_up_to else ()
