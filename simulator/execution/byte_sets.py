"""Which bytes two accesses have in common, rows with gaps and loops that move them included.

Whether rows of one meet rows of the other is a question about sums of multiples, answered by search over the largest
distances first: with rows that do not interleave deeper than their pitch it takes one or two steps per dimension.
"""

from __future__ import annotations

from collections.abc import Sequence

from castsim.execution.tree import Access

Move = tuple[int, int]
"""How often and how far (in bytes, of either sign) a loop moves an access: (trips, step)."""

Bytes = tuple[int, int]
"""First byte and first byte behind."""

_BUDGET = 4096
"""Steps of a search after which two accesses are taken to meet wherever their outermost bytes do."""

_Term = tuple[int, int, bool]
"""Coefficient, count, and whether it moves the first access."""


def strided(space: str, start: int, rows: Sequence[Move], length: int, *, write: bool) -> Access:
    """Return the access to `length` bytes at `start`, repeated by `rows`, outermost first; gapless rows are joined."""
    found = Access(space, start, start + length, write)
    for count, distance in reversed(rows):
        found = widened(found, count, distance)
    return found


def widened(access: Access, trips: int, step: int) -> Access:
    """Return all bytes that `trips` executions touch of which each lies `step` bytes behind the one before."""
    if trips <= 1 or step == 0 or access.start >= access.end:
        return access
    reach = (trips - 1) * step
    start, end = access.start + min(0, reach), access.end + max(0, reach)
    gapless = not access.runs and abs(step) <= access.end - access.start
    return Access(access.space, start, end, access.write, () if gapless else ((trips, abs(step)), *access.runs))


def run_length(access: Access) -> int:
    """Return the bytes of one stretch without gaps."""
    return access.end - access.start - sum((count - 1) * distance for count, distance in access.runs)


def common_bytes(one: Access, other: Access, shift: int = 0, moves: Sequence[Move] = ()) -> Bytes | None:
    """Return bytes that both touch, None if there are none.

    Args:
        one: stays where it is.
        other: lies `shift` bytes further on than it says, and `moves` may move it further, each on its own.
        shift: in bytes.
        moves: any number from 0 to trips - 1 of steps.

    Returns:
        Some bytes in common. If the search grows too long, what the stretches from first to last byte have in common,
        which may be more than the accesses have.
    """
    if one.space != other.space or one.start >= one.end or other.start >= other.end:
        return None
    low = other.start + shift + sum(min(0, (trips - 1) * step) for trips, step in moves)
    high = other.end + shift + sum(max(0, (trips - 1) * step) for trips, step in moves)
    if high <= one.start or one.end <= low:
        return None
    if not one.runs and not other.runs and not moves:
        return max(one.start, low), min(one.end, high)
    search = _Search(one, other, moves)
    found = search.run(0, other.start + shift - one.start, one.start)
    if found is None and search.left <= 0:
        return max(one.start, low), min(one.end, high)
    return found


class _Search:
    """Looks for a run of `one` and a run of `other` that meet; `left` counts down the steps it may take."""

    def __init__(self, one: Access, other: Access, moves: Sequence[Move]) -> None:
        terms: list[_Term] = [(-distance, count, True) for count, distance in one.runs]
        terms += [(distance, count, False) for count, distance in (*other.runs, *moves) if distance and count > 1]
        self.terms = sorted(terms, key=lambda term: -abs(term[0]))
        self.one_length = run_length(one)
        self.other_length = run_length(other)
        self.left = _BUDGET
        self.lowest, self.highest = [0], [0]
        for coefficient, count, _ in reversed(self.terms):
            reach = (count - 1) * coefficient
            self.lowest.append(self.lowest[-1] + min(0, reach))
            self.highest.append(self.highest[-1] + max(0, reach))
        self.lowest.reverse()
        self.highest.reverse()

    def run(self, depth: int, distance: int, place: int) -> Bytes | None:
        """Return bytes in common; `distance` is from the run of `one`, which starts at `place`, to that of `other`."""
        self.left -= 1
        if self.left <= 0:
            return None
        if depth == len(self.terms):
            if -self.other_length < distance < self.one_length:
                return place + max(0, distance), place + min(self.one_length, distance + self.other_length)
            return None
        coefficient, count, moves_one = self.terms[depth]
        # The rest of the terms adds lowest .. highest; the sum must come to lie in the window.
        least = -self.other_length + 1 - distance - self.highest[depth + 1]
        most = self.one_length - 1 - distance - self.lowest[depth + 1]
        size = abs(coefficient)
        first, last = (least, most) if coefficient > 0 else (-most, -least)
        for times in range(max(0, -(-first // size)), min(count - 1, last // size) + 1):
            at = place + (times * size if moves_one else 0)
            found = self.run(depth + 1, distance + times * coefficient, at)
            if found is not None:
                return found
        return None
