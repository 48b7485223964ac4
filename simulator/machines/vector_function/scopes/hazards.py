"""Loads of a launch that nothing keeps behind an earlier store of the same bytes (docs/reference/micro.md 6.5)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from castsim.machines.vector_function.scopes.extents import extents
from castsim.machines.vector_function.scopes.scope import Kind, Scope

STORE_ORDERING = ("VST_VST", "VV_ALL")
"""What a `mem_bar` orders that keeps vector stores behind earlier vector stores."""

ORDERING = ("VST_VLD", "VV_ALL")
"""What a `mem_bar` orders that keeps vector loads behind earlier vector stores."""


def overtaking_loads(scope: Scope, capacity: int) -> Iterator[tuple[int, int, int]]:
    """Yield the lines of a load and of the store before it, and the first byte both touch, once for each pair of lines.

    An access counts as far as its mask may reach. `capacity` are the bytes of the buffer; what lies beyond it is
    not looked at.
    """
    writer = np.zeros(capacity, np.int64)
    lines = [0]
    ordered = 0
    found: set[tuple[int, int]] = set()
    for issue, start, end in extents(scope):
        instruction = issue.instruction
        touched = slice(max(start, 0), max(end, 0))
        match instruction.kind:
            case Kind.BARRIER if instruction.word in ORDERING:
                ordered = len(lines) - 1
            case Kind.STORE:
                writer[touched] = len(lines)
                lines.append(instruction.line)
            case Kind.LOAD if writer[touched].size:
                last = writer[touched]
                number = int(last.max())
                pair = instruction.line, lines[number]
                if number > ordered and pair not in found:
                    found.add(pair)
                    yield *pair, issue.address + int(np.argmax(last))


def overlapping_stores(scope: Scope, capacity: int) -> tuple[int, int] | None:
    """Return the lines of the first store over bytes of an earlier one of its launch that no barrier is between; None.

    Both may be one line, in two trips of a loop. Extents and `capacity` are as for `overtaking_loads`.
    """
    writer = np.zeros(capacity, np.int64)
    lines = [0]
    ordered = 0
    for issue, start, end in extents(scope):
        instruction = issue.instruction
        touched = slice(max(start, 0), max(end, 0))
        if instruction.kind is Kind.BARRIER and instruction.word in STORE_ORDERING:
            ordered = len(lines) - 1
        elif instruction.kind is Kind.STORE and writer[touched].size:
            before = int(writer[touched].max())
            if before > ordered:
                return instruction.line, lines[before]
            writer[touched] = len(lines)
            lines.append(instruction.line)
    return None
