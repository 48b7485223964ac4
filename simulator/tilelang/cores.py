"""Cores that wait for each other, by value: each runs by itself, again until what the others left is what it read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castsim.isa.errors import IllegalError, LimitError

UNTIMED = "cores wait for each other, which is computed; their cycles are not modelled"
ALL_CORES, OWN_GROUP = 0, 1
"""Modes of flags: between all vector cores of a launch, and between the two of a group."""
_MOST_ROUNDS = 64

_Stores = Mapping[str, tuple[NDArray[np.uint8], NDArray[np.bool_]]]


class Meeting:
    """Flags between the cores of a launch: what each core has stored when it sets one, for those that wait for it.

    A core waits for the others' n-th setting of the flag with its own n-th wait. Since the cores run one after the
    other, a round is repeated until no core finds anything new.
    """

    def __init__(self, cores: range, launched: int = 1) -> None:
        self.cores, self.launched = cores, launched
        self.rounds = 0
        self._left: dict[tuple[int, int, int, int], _Stores] = {}
        self._before: dict[tuple[int, int, int, int], _Stores] | None = None
        self._memory: Any = None
        self._counts: Counter[tuple[bool, int, int]] = Counter()
        self._waits = False

    def goes_on(self) -> bool:
        """End a round, and say whether another is needed.

        Raises:
            LimitError: there is no end of it.
        """
        self.rounds += 1
        if self.rounds > _MOST_ROUNDS:
            raise LimitError(f"cores wait for each other more than {_MOST_ROUNDS} times")
        settled = self._before is not None and _equal(self._before, self._left)
        self._before = dict(self._left)
        return self._waits and not settled

    def _next(self, memory: Any, *key: Any) -> int:
        if memory is not self._memory:
            self._memory, self._counts = memory, Counter()
        self._counts[key] += 1
        return self._counts[key]

    def arrive(self, core: int, mode: int, values: tuple[float, ...], uses: Any, memory: Any, span: Any) -> None:
        """Set a flag."""
        if memory is not None:
            number = self._next(memory, True, mode, int(values[0]))
            stores = {name: (memory.arguments[name].copy(), at.copy()) for name, at in memory.written.items()}
            self._left[core, mode, int(values[0]), number] = stores

    def wait(self, core: int, mode: int, values: tuple[float, ...], uses: Any, memory: Any, span: Any) -> None:
        """Wait for the flag of the other cores, and see what they have stored.

        Raises:
            IllegalError: they are not run.
        """
        others = [each for each in self.cores if each != core and (mode == ALL_CORES or each // 2 == core // 2)]
        if len(self.cores) < self.launched:
            raise IllegalError(f"core {core} waits for other cores", legal=("--core all", 'core="all"'))
        self._waits = True
        if memory is None:
            return
        number = self._next(memory, False, mode, int(values[0]))
        for other in others:
            for name, (found, marks) in self._left.get((other, mode, int(values[0]), number), {}).items():
                size = min(found.size, memory.arguments[name].size) if name in memory.arguments else 0
                at = marks[:size]
                if size:
                    memory.arguments[name][:size][at] = found[:size][at]


def _equal(a: Mapping[Any, _Stores], b: Mapping[Any, _Stores]) -> bool:
    return a.keys() == b.keys() and all(
        stores.keys() == b[key].keys()
        and all(
            np.array_equal(one, two) for name in stores for one, two in zip(stores[name], b[key][name], strict=True)
        )
        for key, stores in a.items()
    )
