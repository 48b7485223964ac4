"""The buffer and the global memory of a micro program, and which of their bytes the program has defined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Marks = NDArray[np.bool_]


@dataclass(slots=True)
class MicroMemory:
    """Bytes of the buffer and of every argument; `defined` tells which bytes of the buffer something has written.

    `undefined` marks the bytes of arguments that were stored without being defined, `written` all that were stored.
    """

    buffer: Bytes
    arguments: Mapping[str, Bytes]
    defined: Marks = field(init=False)
    undefined: dict[str, Marks] = field(default_factory=dict)
    written: dict[str, Marks] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.defined = np.zeros(self.buffer.size, np.bool_)

    def marks(self, argument: str) -> Marks:
        """Return the marks of an argument's bytes that are not defined."""
        return self._marks(self.undefined, argument)

    def stores(self, argument: str) -> Marks:
        """Return the marks of an argument's bytes that were stored."""
        return self._marks(self.written, argument)

    def _marks(self, marks: dict[str, Marks], argument: str) -> Marks:
        if argument not in marks:
            marks[argument] = np.zeros(self.arguments[argument].size, np.bool_)
        return marks[argument]
