"""What operations changed, in the order of the program: enough to go either way.

A change of bytes is kept as the exclusive or of what was there and what came: applied once more it takes itself back.
"""

from __future__ import annotations

from collections.abc import Mapping
from tempfile import SpooledTemporaryFile
from typing import NamedTuple
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from castsim.isa.errors import LimitError

Bytes = NDArray[np.uint8]

IN_MEMORY = 64 << 20
"""Bytes of changes that are held in memory; more go to a temporary file without a name."""
MOST_BYTES = 8 << 30
"""Bytes of changes after which a run is given up: the temporary folder should not fill up."""
_GAP = 64
"""Bytes that did not change and are kept all the same, as another stretch would take more."""
_WORD = 8


class Stretch(NamedTuple):
    """Bytes of a memory that changed: the first, how many, and where their change lies in the journal."""

    space: str
    start: int
    size: int
    kept: int


class Change(NamedTuple):
    """What one operation changed: stretches of memories, and registers with what they held before and after."""

    stretches: tuple[Stretch, ...] = ()
    registers: tuple[tuple[str, object, object], ...] = ()


class Journal:
    """The changes of all operations; their bytes lie in one file, held in memory while it is small."""

    def __init__(self) -> None:
        self._changes: list[Change] = []
        self._file = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - lives as long as the journal
        finalize(self, self._file.close)
        self._size = 0

    def __len__(self) -> int:
        return len(self._changes)

    def add(self, stretches: list[tuple[str, int, Bytes]], registers: list[tuple[str, object, object]]) -> None:
        """Append the change of one operation; its bytes come as the exclusive or of old and new.

        Raises:
            LimitError: all changes together take more than `MOST_BYTES`.
        """
        kept = []
        for space, start, changed in stretches:
            kept.append(Stretch(space, start, changed.size, self._size))
            self._file.write(changed.tobytes())
            self._size += changed.size
        if self._size > MOST_BYTES:
            raise LimitError(
                f"what the operations write takes more than {MOST_BYTES >> 30} GiB to keep: too much to step through",
                legal=("a smaller run",),
            )
        self._changes.append(Change(tuple(kept), tuple(registers)))

    def apply(self, number: int, memories: Mapping[str, Bytes], registers: dict[str, object], *, back: bool) -> None:
        """Make the change of one operation, or take it back."""
        change = self._changes[number]
        for stretch in change.stretches:
            self._file.seek(stretch.kept)
            changed = np.frombuffer(self._file.read(stretch.size), np.uint8)
            memories[stretch.space][stretch.start : stretch.start + stretch.size] ^= changed
        for name, before, after in change.registers:
            value = before if back else after
            if value is None:
                registers.pop(name, None)
            else:
                registers[name] = value


def changed_bytes(before: Bytes, now: Bytes, start: int = 0, end: int | None = None) -> list[tuple[int, Bytes]]:
    """Return where bytes [start, end) differ, as stretches of their exclusive or, and bring `before` up to date."""
    end = now.size if end is None else min(end, now.size)
    start = max(0, start - start % _WORD)
    whole = end - (end - start) % _WORD
    found = []
    for low, high, word in ((start, whole, _WORD), (whole, end, 1)):
        if low >= high:
            continue
        old, new = before[low:high].view(f"u{word}"), now[low:high].view(f"u{word}")
        places = np.flatnonzero(old != new)
        if not places.size:
            continue
        breaks = np.flatnonzero(np.diff(places) > max(1, _GAP // word)) + 1
        for run in np.split(places, breaks):
            first, last = low + int(run[0]) * word, low + (int(run[-1]) + 1) * word
            found.append((first, before[first:last] ^ now[first:last]))
            before[first:last] = now[first:last]
    return found
