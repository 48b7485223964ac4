"""Loops found again in instructions that a kernel's loop issued one by one while it ran on the host.

Trips of a loop issue the same instructions from the same places; addresses and numbers grow evenly from trip to trip,
and each register is one of the trip, one from before the loop, or the trip's before. After Ketterlin and Clauss,
"Prediction and trace compression of data access addresses through nested loop recognition" (2008).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from castsim.isa.dataclass import dataclass, field

_CANDIDATES = 6
"""Earlier occurrences of an instruction, and loops, that may begin the trip that it ends."""


@dataclass(slots=True, eq=False)
class Step:
    """An instruction as it was issued, the `end`-th.

    `key` is what trips have in common, `numbers` are its integers, `reads` and `writes` the numbers of its values. Each
    number with nonzero `lanes` is a count that the instruction lowers by them, down to 0.
    """

    key: object
    numbers: Sequence[int]
    reads: Sequence[int]
    writes: Sequence[int]
    lanes: Sequence[int]
    end: int
    content: object = None


@dataclass(slots=True, eq=False)
class Trips:
    """A loop: `body` is its first trip; numbers, reads (from outside) and writes (of the last trip) are the body's.

    `slopes` are by how much numbers grow (None: counts that are lowered), `relations` the origin of each read of
    the body: `in` the trip's write of a number, `same` for all trips, `before`: the write of a number a trip earlier.
    """

    body: Sequence[Item]
    trips: int
    slopes: tuple[int | None, ...]
    relations: tuple[tuple[str, int], ...]
    numbers: Sequence[int]
    reads: Sequence[int]
    writes: Sequence[int]
    last: Sequence[int]
    end: int
    _keys: tuple[object, ...] = ()

    @property
    def key(self) -> object:
        """What equal loops have in common."""
        return self.trips, self._keys, self.slopes, self.relations

    @property
    def lanes(self) -> Sequence[int]:
        """Zeros: no count is lowered from loop to loop."""
        return (0,) * len(self.numbers)


Item = Step | Trips


def _all(items: Iterable[Item], what: str) -> list[int]:
    return [number for item in items for number in getattr(item, what)]


def _next(number: int, slope: int | None, lanes: int) -> int:
    return max(number - lanes, 0) if slope is None else number + slope


@dataclass(slots=True)
class TripFolding:
    """Instructions so far, with the loops that were found; `last_reads` tells when each value is read last."""

    last_reads: dict[int, int]
    items: list[Item] = field(default_factory=list)
    _places: dict[object, list[int]] = field(default_factory=dict)
    _loops: list[int] = field(default_factory=list)

    def add(self, item: Item) -> None:
        """Add an instruction, which may end a trip."""
        self._push(item)
        while self._continued() or self._begun():
            pass

    def _push(self, item: Item) -> None:
        place = len(self.items)
        self.items.append(item)
        self._places.setdefault(item.key, []).append(place)
        if isinstance(item, Trips):
            self._loops.append(place)

    def _pop(self, count: int) -> None:
        for item in reversed(self.items[-count:]):
            self._places[item.key].pop()
            if isinstance(item, Trips):
                self._loops.pop()
        del self.items[-count:]

    def _continued(self) -> bool:
        """Make the last items the next trip of the loop before them, if they are."""
        top = len(self.items)
        for place in reversed(self._loops[-_CANDIDATES:]):
            loop = self.items[place]
            assert isinstance(loop, Trips)
            trip = self.items[place + 1 :]
            if len(trip) != len(loop.body) or [each.key for each in trip] != [each.key for each in loop.body]:
                continue
            numbers, writes = _all(trip, "numbers"), _all(trip, "writes")
            lanes = _all(loop.body, "lanes")
            expected = [_next(*each) for each in zip(loop.last, loop.slopes, lanes, strict=True)]
            outside = iter(loop.reads)
            slots = {number: slot for slot, number in enumerate(writes)}
            fits = expected == numbers and self._ends(loop.writes, trip[-1].end)
            for (relation, slot), read in zip(loop.relations, _all(trip, "reads"), strict=True):
                given = next(outside) if relation != "in" else 0
                fits = fits and (
                    slots.get(read) == slot if relation == "in"
                    else read == (given if relation == "same" else loop.writes[slot])
                )  # fmt: skip
            if fits:
                self._pop(top - place)
                loop.trips, loop.last, loop.writes, loop.end = loop.trips + 1, numbers, writes, trip[-1].end
                self._push(loop)
                return True
        return False

    def _begun(self) -> bool:
        """Make the last items a loop of two trips, if they are two."""
        top = len(self.items)
        for place in reversed(self._places[self.items[-1].key][-1 - _CANDIDATES : -1]):
            size = top - 1 - place
            if 2 * size > top:
                return False
            one, other = self.items[-2 * size : -size], self.items[-size:]
            loop = self._loop(one, other) if [a.key for a in one] == [b.key for b in other] else None
            if loop is not None:
                self._pop(2 * size)
                self._push(loop)
                return True
        return False

    def _loop(self, one: Sequence[Item], other: Sequence[Item]) -> Trips | None:
        """Return two trips as a loop, None if they are none."""
        written, again = ({number: slot for slot, number in enumerate(_all(each, "writes"))} for each in (one, other))
        relations: list[tuple[str, int]] = []
        outside = []
        for read, later in zip(_all(one, "reads"), _all(other, "reads"), strict=True):
            if read in written:
                if again.get(later) != written[read]:
                    return None
                relations.append(("in", written[read]))
                continue
            if read != later and later not in written:
                return None
            relations.append(("same", 0) if read == later else ("before", written[later]))
            outside.append(read)
        if not self._ends(written, other[-1].end):
            return None
        first, second = _all(one, "numbers"), _all(other, "numbers")
        slopes = tuple(
            None if lanes and second[slot] != number and second[slot] == max(number - lanes, 0)
            else second[slot] - number
            for slot, (number, lanes) in enumerate(zip(first, _all(one, "lanes"), strict=True))
        )  # fmt: skip
        keys = tuple(each.key for each in one)
        return Trips(
            one, 2, slopes, tuple(relations), first, outside, _all(other, "writes"), second, other[-1].end, keys
        )  # fmt: skip

    def _ends(self, values: Iterable[int], end: int) -> bool:
        """Return whether nothing after an instruction reads any of some values."""
        return all(self.last_reads.get(value, -1) <= end for value in values)


def folded(steps: Sequence[Step]) -> Sequence[Item]:
    """Return instructions with their loops."""
    last_reads = {read: step.end for step in steps for read in step.reads}
    found = TripFolding(last_reads)
    for step in steps:
        found.add(step)
    return found.items


def unfolded(items: Iterable[Item], numbers: Sequence[int] | None = None) -> Iterator[tuple[object, tuple[int, ...]]]:
    """Yield the key and the numbers of every instruction, trip by trip."""
    at = 0
    for item in items:
        own = item.numbers if numbers is None else numbers[at : at + len(item.numbers)]
        at += len(item.numbers)
        if isinstance(item, Step):
            yield item.key, tuple(own)
            continue
        now, lanes = list(own), _all(item.body, "lanes")
        for _ in range(item.trips):
            yield from unfolded(item.body, now)
            now = [_next(*each) for each in zip(now, item.slopes, lanes, strict=True)]
