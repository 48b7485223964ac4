"""The memory of a run, and making more of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from simulator.engines.fast_dataflow.layout import (
    E_CAUSES,
    E_INDEX,
    E_NEXT,
    ENTRY_FREE,
    ENTRY_SPARE,
    HEAP,
    LIVE,
    MOST_ACCESSES,
    N_NEXT,
    NODE_FREE,
    NODE_SPARE,
    NODE_WIDTH,
    NONE,
    PIPES,
    RECORDING,
    TOKEN,
    TOKEN_END,
    WIDTH,
    WRITE_COUNT,
    WRITE_HEAD,
    WRITE_MASK,
    WRITE_WIDTH,
    WRITES_AT,
    Cells,
)

_FIRST_ROOM = 64


class Heap:
    """Cells, of which those up to `end` are taken; `entries` are place and number of the blocks of entries.

    `cells` is a list, until `compile` makes it an array.
    """

    def __init__(self) -> None:
        self.cells: Cells = [0] * HEAP
        self.end = HEAP
        self.entries: list[tuple[int, int]] = []
        self._tokens_at = 0
        self._tokens_room = 0
        self._nodes = 0
        self._entry_count = 0

    # ------------------------------------------------------------------------------------------------------ cells

    def take(self, size: int, fill: int = 0) -> int:
        """Take cells and return the address of the first."""
        place, self.end = self.end, self.end + size
        if not self.is_compiled:
            self.cells.extend([fill] * size)
            return place
        cells: Any = self.cells
        if self.end > len(cells):
            self.cells = cells = _longer(cells, 2 * self.end)
        cells[place : self.end] = fill
        return place

    def put(self, numbers: Iterable[int]) -> int:
        """Take cells for numbers and return the address of the first."""
        given = list(numbers)
        place = self.take(len(given))
        self.cells[place : self.end] = given
        return place

    def compile(self) -> None:
        """Turn the list into an array, as compiled code wants it."""
        import numpy as np  # noqa: PLC0415 - interpreted runs need none

        cells: Any = np.empty(2 * len(self.cells), np.int64)
        cells[: len(self.cells)] = self.cells
        self.cells = cells

    @property
    def is_compiled(self) -> bool:
        """Whether it has become an array."""
        return not isinstance(self.cells, list)

    # ------------------------------------------------------------------------------------------------------ tables

    def put_tokens(self, tokens: list[int]) -> None:
        """Hand the next tokens to the scalar unit."""
        if len(tokens) > self._tokens_room:
            self._tokens_room = max(2 * len(tokens), _FIRST_ROOM)
            self._tokens_at = self.take(self._tokens_room)
        m = self.cells
        m[TOKEN], m[TOKEN_END] = self._tokens_at, self._tokens_at + len(tokens)
        m[m[TOKEN] : m[TOKEN_END]] = tokens

    def make_room(self) -> None:
        """Make every table longer that may be too short for the next step; executions apart."""
        m = self.cells
        if m[ENTRY_SPARE] <= m[PIPES] + 2:
            self._add_entries(max(self._entry_count, _FIRST_ROOM))
        m = self.cells
        needed = max(2 * m[PIPES], (m[LIVE] + 2) * (2 * m[MOST_ACCESSES] + 1)) + 1
        if m[NODE_SPARE] <= needed:
            self._add_nodes(max(self._nodes, int(needed)))
        if self.cells[WRITE_COUNT] >= self.cells[WRITE_MASK]:
            self._double_writes()

    def _add_entries(self, count: int) -> None:
        width = E_CAUSES + (WIDTH if self.cells[RECORDING] else 0)
        first = self.take(count * width)
        m = self.cells
        for e in range(first, first + count * width, width):
            m[e + E_NEXT] = e + width
            m[e + E_INDEX] = NONE
        m[first + (count - 1) * width + E_NEXT] = m[ENTRY_FREE]
        m[ENTRY_FREE] = first
        m[ENTRY_SPARE] += count
        self.entries.append((first, count))
        self._entry_count += count

    def _add_nodes(self, count: int) -> None:
        first = self.take(count * NODE_WIDTH)
        m = self.cells
        for n in range(first, first + count * NODE_WIDTH, NODE_WIDTH):
            m[n + N_NEXT] = n + NODE_WIDTH
        m[first + (count - 1) * NODE_WIDTH + N_NEXT] = m[NODE_FREE]
        m[NODE_FREE] = first
        m[NODE_SPARE] += count
        self._nodes += count

    def _double_writes(self) -> None:
        """Double the ring of results on their way."""
        old, room = int(self.cells[WRITES_AT]), int(self.cells[WRITE_MASK]) + 1
        room = room if old else 0
        new = self.take(max(2 * room, _FIRST_ROOM) * WRITE_WIDTH)
        m = self.cells
        for k in range(m[WRITE_COUNT]):
            place = old + ((m[WRITE_HEAD] + k) % room) * WRITE_WIDTH
            m[new + k * WRITE_WIDTH : new + (k + 1) * WRITE_WIDTH] = m[place : place + WRITE_WIDTH]
        m[WRITES_AT], m[WRITE_HEAD] = new, 0
        m[WRITE_MASK] = max(2 * room, _FIRST_ROOM) - 1


def _longer(cells: Any, size: int) -> Any:
    """Return an array with the same cells and more."""
    import numpy as np  # noqa: PLC0415 - as above

    longer = np.empty(size, np.int64)
    longer[: len(cells)] = cells
    return longer
