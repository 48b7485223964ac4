"""In which order a program writes its results, where that is not the order of its inputs.

Conversions of 4-bit elements on a vector unit put even positions before odd ones, or the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.planning import Assembly

_SHOWN = 3
"""Elements shown of each run."""


@dataclass(frozen=True, slots=True)
class ElementOrder:
    """Results come in blocks of `block` elements; within one, `sources` are the elements of which they are the results.

    `loops` are (count, step), the outermost first, whose index sums give `sources`; None: there is no such nest.
    """

    block: int
    sources: tuple[int, ...]
    loops: tuple[tuple[int, int], ...] | None

    @property
    def text(self) -> str:
        """The order in words."""
        shown, inner = [], self.block if self.loops is None else self.loops[-1][0]
        for start in (0, inner):
            run = [str(number) for number in self.sources[start : start + inner]]
            shown += run if len(run) <= _SHOWN + 1 else [*run[:_SHOWN], "...", run[-1]]
        ends = "" if 2 * inner >= self.block else ", ..."
        return f"of every {self.block} results, one by one, those of elements {', '.join(shown)}{ends}"


def source_positions(assembly: Assembly) -> NDArray[np.intp] | None:
    """Return for every result the position of its source element, None if it is its own: what the planner knows."""
    return assembly.order


def in_order(assembly: Assembly, results: NDArray[Any]) -> NDArray[Any]:
    """Return the results of all elements of a program in the order of their sources."""
    positions = source_positions(assembly)
    if positions is None:
        return results
    ordered = np.empty_like(results)
    ordered[positions] = results
    return ordered


def element_order(assembly: Assembly | None) -> ElementOrder | None:
    """Return the order in which a program writes its results, None if it is that of its inputs."""
    positions = None if assembly is None else source_positions(assembly)
    if positions is None:
        return None
    block = _period(positions)
    sources = positions[:block]
    return ElementOrder(block, tuple(int(number) for number in sources), _loops(sources))


def _period(positions: NDArray[np.intp]) -> int:
    """Return the size of the smallest blocks that keep to themselves and all have the same order."""
    ends = np.flatnonzero(np.maximum.accumulate(positions) == np.arange(positions.size)) + 1
    for end in map(int, ends):
        if positions.size % end == 0:
            blocks = positions.reshape(-1, end)
            if (blocks == blocks[0] + np.arange(len(blocks))[:, None] * end).all():
                return end
    return int(positions.size)


def _loops(sources: NDArray[np.intp]) -> tuple[tuple[int, int], ...] | None:
    """Return the nest of loops whose index runs over `sources`."""
    found: list[tuple[int, int]] = []
    nest = sources[:1]
    while nest.size < sources.size:
        step = int(sources[nest.size] - sources[0])
        count = 1
        while np.array_equal(sources[count * nest.size : (count + 1) * nest.size], nest + count * step):
            count += 1
        if count == 1:
            return None
        found.insert(0, (count, step))
        nest = sources[: count * nest.size]
    return tuple(found) if prod(count for count, _ in found) == sources.size else None
