"""What a mechanism adds to the fast engine: its operations as rows of numbers, its banks.

A unit is to a vector pipe what `event_dataflow.machine.VectorUnit` is in the event engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from castsim.execution.dataflow.operations import BLOCK
from castsim.execution.tree import Operation


@dataclass(frozen=True, slots=True)
class Banking:
    """The buffer's ports: where each block of a `period` lies, after which the pattern starts over.

    `port_of` holds the ports for reads, then those for writes; which accesses exclude each other say
    `exclusive_ports` and `exclusive_banks`. `grouped`: instead, a group serves so many accesses per cycle
    (`reads_per_group`, `reads_beside_write`, `writes_per_group`), and there are no banks.
    """

    period: int
    port_of: tuple[int, ...]
    bank_of: tuple[int, ...]
    ports: int
    banks: int
    exclusive_ports: bool = False
    exclusive_banks: bool = False
    grouped: bool = False
    reads_per_group: int = 0
    reads_beside_write: int = 0
    writes_per_group: int = 0

    @property
    def bytes(self) -> int:
        """Bytes after which addresses start over."""
        return self.period * BLOCK


@dataclass(frozen=True, slots=True)
class Work:
    """An operation of the vector unit: its kind, the number of its row, and the facts it rests on."""

    kind: int
    row: int
    facts: tuple[str, ...]


class Places(Protocol):
    """The tables of the program's rows."""

    def add(self, table: str, rows: Sequence[object]) -> int:
        """Append rows to a table and return the number of the first."""

    def distances(self, blocks: tuple[int, ...]) -> int:
        """Store distances in blocks from the first block of a repeat and return where they begin in `numbers`."""

    def integers(self, numbers: tuple[int, ...]) -> int:
        """Store integers and return where they begin in `numbers`."""

    def make_room(self, **rows: int) -> None:
        """Ensure that tables have so many rows for the vector function at work."""


class Unit(Protocol):
    """The vector unit of one target."""

    @property
    def banking(self) -> Banking:
        """Ports and banks of the buffer."""

    def check(self, operation: object) -> None:
        """Reject an operation of the vector pipe that the unit cannot execute.

        Raises:
            IllegalError: it is of another mechanism, or needs a fact that the target does not have.
        """

    def encode(self, operation: Operation, addresses: tuple[int, ...], places: Places) -> Work:
        """Put the operation, with these addresses, into the tables."""
