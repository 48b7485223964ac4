"""Which lines of one program are which of another: by what they say, by their instruction, by their position.

What both programs begin and end with is put aside; runs of equal lines are found in the rest (difflib), and the lines
between them are paired so that those that have most in common meet, in their order (the alignment of Needleman and
Wunsch). A line that is gone from one place and stands at another has moved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from castsim.exploration.differences.statements import Statement

Lines = Sequence[Statement]


class Pair(NamedTuple):
    """A line of each program, None where one has none that matches; one that moved is where it is in the second."""

    first: Statement | None
    second: Statement | None
    moved: bool = False


Key = tuple[str, ...]
Pairing = Callable[[Lines, Lines], Iterator[Pair]]

_MOST_PAIRS = 20_000
"""Pairs of lines between equal runs that are compared one by one; where there are more, names of values are ignored."""

_POPULAR = 2000
"""Lines from which difflib takes no run of lines for a landmark that are frequent: it would take quadratic time."""

_LEAST_LIKENESS = 0.4
"""Likeness, at most 1, of two lines from which one may have become the other."""

_OTHER_INSTRUCTION = 0.6
"""What is left of the likeness where the instructions differ."""

_SHORTEST_MOVED = 3
"""Tokens of a line that may have moved: a brace closes something else."""


def matched(first: Lines, second: Lines) -> tuple[Pair, ...]:
    """Return every line of both programs once, with the one that it is in the other, in the order of the programs."""
    return tuple(_with_moves(list(_aligned(first, second))))


def _aligned(first: Lines, second: Lines) -> Iterator[Pair]:
    """Yield pairs, those of equal lines found first."""
    start = _common(first, second)
    yield from map(Pair, first[:start], second[:start])
    first, second = first[start:], second[start:]
    behind = _common(first[::-1], second[::-1])
    ends = first[len(first) - behind :], second[len(second) - behind :]
    first, second = first[: len(first) - behind], second[: len(second) - behind]
    keys = [[each.tokens for each in lines] for lines in (first, second)]
    yield from _between_runs(keys, first, second, _alike)
    yield from map(Pair, *ends)


def _common(first: Lines, second: Lines) -> int:
    """Return how many lines both begin with."""
    pairs = zip(first, second, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a.tokens != b.tokens), min(len(first), len(second)))


def _between_runs(keys: Sequence[Sequence[Key]], first: Lines, second: Lines, pairing: Pairing) -> Iterator[Pair]:
    """Yield the pairs of runs with equal keys, and between them those that `pairing` finds."""
    matcher = SequenceMatcher(None, keys[0], keys[1], autojunk=max(map(len, keys)) > _POPULAR)
    for tag, a, a_end, b, b_end in matcher.get_opcodes():
        if tag == "equal":
            yield from map(Pair, first[a:a_end], second[b:b_end])
        else:
            yield from pairing(first[a:a_end], second[b:b_end])


def _alike(first: Lines, second: Lines) -> Iterator[Pair]:
    """Yield the pairs of two stretches without equal runs."""
    if len(first) * len(second) <= _MOST_PAIRS:
        yield from _most_alike(first, second)
        return
    yield from _between_runs(
        [[each.without_names() for each in lines] for lines in (first, second)], first, second, _by_position
    )


def _by_position(first: Lines, second: Lines) -> Iterator[Pair]:
    """Yield pairs by position where there are as many lines of one instruction after the other; else none match."""
    if [each.instruction for each in first] == [each.instruction for each in second]:
        yield from map(Pair, first, second)
    else:
        yield from (Pair(each, None) for each in first)
        yield from (Pair(None, each) for each in second)


def _most_alike(first: Lines, second: Lines) -> Iterator[Pair]:
    """Yield the pairs, in their order, whose likenesses are largest together."""
    bags = [[Counter(each.tokens) for each in lines] for lines in (first, second)]
    likeness = [
        [_likeness(a, b, bag, other) for b, other in zip(second, bags[1], strict=True)]
        for a, bag in zip(first, bags[0], strict=True)
    ]
    best = [[0.0] * (len(second) + 1) for _ in range(len(first) + 1)]  # of what is left from line a, line b
    for a in reversed(range(len(first))):
        for b in reversed(range(len(second))):
            best[a][b] = max(best[a + 1][b], best[a][b + 1], best[a + 1][b + 1] + likeness[a][b])
    a = b = 0
    while a < len(first) and b < len(second):
        if likeness[a][b] and best[a][b] == best[a + 1][b + 1] + likeness[a][b]:
            yield Pair(first[a], second[b])
            a, b = a + 1, b + 1
        elif best[a][b] == best[a + 1][b]:
            yield Pair(first[a], None)
            a += 1
        else:
            yield Pair(None, second[b])
            b += 1
    yield from (Pair(each, None) for each in first[a:])
    yield from (Pair(None, each) for each in second[b:])


def _likeness(first: Statement, second: Statement, bag: Counter[str], other: Counter[str]) -> float:
    """Return the part of their tokens that two lines share, cubed so that one good match outweighs two poor ones."""
    shared = 2 * (bag & other).total() / (bag.total() + other.total())
    if first.instruction != second.instruction:
        shared *= _OTHER_INSTRUCTION
    return shared**3 if shared >= _LEAST_LIKENESS else 0.0


def _with_moves(pairs: list[Pair]) -> Iterator[Pair]:
    """Yield the pairs; a line that is gone and one that is new and says the same become one pair."""
    gone: dict[Key, list[Statement]] = {}
    for line, other, _ in pairs:
        if line is not None and other is None and len(line.tokens) >= _SHORTEST_MOVED:
            gone.setdefault(line.tokens, []).append(line)
    moved = {
        other.line: gone[other.tokens].pop(0)
        for line, other, _ in pairs
        if line is None and other is not None and gone.get(other.tokens)
    }
    taken = {line.line for line in moved.values()}
    for line, other, _ in pairs:
        if line is None and other is not None and other.line in moved:
            yield Pair(moved[other.line], other, moved=True)
        elif other is not None or (line is not None and line.line not in taken):
            yield Pair(line, other)
