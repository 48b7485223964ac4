"""Findings that requests of one process share: made once, found again by their content, the oldest given up.

A matrix asks thousands of times for what differs in a name only: one instruction run on the same codes, one chain
proven for the same cast, one program timed. `Kept` holds such findings; `Shared` is kept as well, but calculates anew
within `unshared()`, which tests and benchmarks compare it with. Both are bounded: of more than `most` findings the one
that was not asked for the longest goes. Every process has its own, which its threads share.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import Generic, TypeVar

_Found = TypeVar("_Found")
_Thing = TypeVar("_Thing")


@dataclass(slots=True)
class _Switch:
    on: bool = True


_SHARING = _Switch()


@contextmanager
def unshared() -> Iterator[None]:
    """Calculate everything anew, as if each request were the only one."""
    before, _SHARING.on = _SHARING.on, False
    try:
        yield
    finally:
        _SHARING.on = before


class Kept(Generic[_Found]):
    """Up to `most` findings by key; for variables of modules, which live as long as the process."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._found: OrderedDict[Hashable, tuple[_Found, object]] = OrderedDict()
        self._lock = Lock()

    def of(self, key: Hashable, make: Callable[[], _Found], held: object = None) -> _Found:
        """Return the finding of a key, made on first use; an error of `make` is not kept.

        Where the key has identities (`id`), `held` are the objects that they are of: kept as long as the finding, so
        that no other object can get one of them. Of threads that make one finding at once, all get that of the first.
        """
        with self._lock:
            entry = self._found.get(key)
            if entry is not None:
                self._found.move_to_end(key)
                return entry[0]
        found = make()
        with self._lock:
            entry = self._found.setdefault(key, (found, held))
            if len(self._found) > self._most:
                self._found.popitem(last=False)
        return entry[0]

    def clear(self) -> None:
        """Give up all findings."""
        with self._lock:
            self._found.clear()

    def __len__(self) -> int:
        """Return how many findings there are."""
        return len(self._found)


_EVERY: list[Callable[[], None]] = []
"""What empties each of those that `forget` empties."""


def forget() -> None:
    """Give up what requests share: all that is `Shared`, and the first of equal objects."""
    for clear in _EVERY:
        clear()


class Shared(Kept[_Found]):
    """Findings that are made each time within `unshared`."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        _EVERY.append(self.clear)

    def of(self, key: Hashable, make: Callable[[], _Found], held: object = None) -> _Found:
        """See `Kept`."""
        return super().of(key, make, held) if _SHARING.on else make()


class Equals(Generic[_Thing]):
    """One object for all that are equal: for things without a hash, which are told apart by comparing them."""

    def __init__(self, most: int) -> None:
        self._known: list[_Thing] = []
        self._by_identity: Kept[_Thing] = Kept(most)
        self._most = most
        _EVERY.append(self.clear)

    def clear(self) -> None:
        """Give up all objects: the next of equal ones is the first again."""
        self._known = []
        self._by_identity.clear()

    def first(self, thing: _Thing) -> _Thing:
        """Return the first of the objects equal to `thing` that is known; `thing` itself if it is new."""
        return self._by_identity.of(id(thing), lambda: self._looked_up(thing), thing)

    def _looked_up(self, thing: _Thing) -> _Thing:
        found = next((known for known in self._known if known == thing), None)
        if found is not None:
            return found
        self._known = [*self._known, thing][-self._most :]
        return thing


class Numbers:
    """A number for everything equal, for keys that are looked up far more often than their parts are made."""

    def __init__(self, most: int) -> None:
        self._next = count()
        self._by_value: Kept[int] = Kept(most)
        self._by_identity: Kept[int] = Kept(most)

    def of(self, thing: Hashable) -> int:
        """Return the number of a thing; equal things have the same as long as it is kept, others never have it."""
        return self._by_identity.of(id(thing), lambda: self._by_value.of(thing, lambda: next(self._next)), thing)
