"""The memory-mapped registers of a core: which address is which, and stores that become visible late."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from castsim.isa.errors import IllegalError
from castsim.isa.tpc.program import INDEX_DIMENSIONS, WORD_BITS, WORD_MASK
from castsim.machines.vliw.findings import Findings, Site
from castsim.machines.vliw.latency import STORED, Distances, constant
from castsim.machines.vliw.registers import RegisterCell, Write
from castsim.targets.tpc_compiler import Descriptors
from castsim.targets.vliw import VliwTarget

_PAD, _FIRST_DIMENSION, _PREFETCH = 8, 0x10, 0x38
"""Where words stand in a descriptor: the pad value, the size of dimension 0, the stride of prefetching (0: none)."""
_RANDOM = ("vector_lfsr_polynomial", "scalar_lfsr_polynomial")


class TensorWords(Protocol):
    """What a descriptor tells of a tensor."""

    @property
    def number(self) -> int:
        """Its number."""
        ...

    @property
    def base(self) -> int:
        """The byte address of its first element."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes, dimension 0 first."""
        ...


class ConfigurationSpace:
    """Registers by name (those of the target description) and by address; an unnamed address is a plain word.

    A store is visible to its dependents a fixed number of bundles later (docs/reference/tpc.md section 6.1, CSR).
    """

    def __init__(self, target: VliwTarget, horizon: int) -> None:
        self._horizon = horizon
        self._cells = {
            name: RegisterCell(name, register.reset, written=True) for name, register in target.configuration.items()
        }
        self._names = {r.address: name for name, r in target.configuration.items() if r.address is not None}
        rules = target.distances
        self._usual = constant(rules.rounding_register)
        self._random = constant(rules.random_register)
        self._described = range(0)
        self._visible: dict[str, int] = {}
        self._settled_at = 0
        self._found_at = 0

    def describe(self, tensors: Iterable[TensorWords], place: Descriptors, limit: int) -> None:
        """Put descriptors of tensors where programs read them; the rest of their area cannot be read.

        Source: docs/reference/tpc.md section 3.1; dimensions that a tensor lacks have size 1 (inferred).
        """
        self._described = range(place.base, place.base + place.descriptor_bytes * limit)
        for tensor in tensors:
            start = place.base + place.descriptor_bytes * tensor.number
            words = {0: tensor.base, 4: tensor.base >> WORD_BITS, _PAD: 0, _PREFETCH: 0}
            stride = 1
            for dimension in range(INDEX_DIMENSIONS):
                size = tensor.shape[dimension] if dimension < len(tensor.shape) else 1
                at = _FIRST_DIMENSION + place.dimension_bytes * dimension
                words |= {at: size, at + 4: stride}
                stride *= size
            for offset, word in words.items():
                if offset < place.descriptor_bytes:
                    name = f"mmio {start + offset:#x}"
                    self._cells[name] = RegisterCell(name, word & WORD_MASK, written=True)

    def name_at(self, address: int) -> str | None:
        """Return the name of the register at a byte address, None if the description knows none there."""
        return self._names.get(address)

    def store(self, address: int, value: int | None, writer: Site, now: int) -> None:
        """Write the register at an address."""
        self._cell(address).write(Write(now, STORED, value, writer), self._horizon)
        self._settled_at = now + self._horizon

    def load(self, address: int, reader: Site, now: int, findings: Findings) -> int | None:
        """Return the value that a load of bundle number `now` sees at an address.

        Raises:
            IllegalError: a word of the tensors' descriptors that nothing is known of.
        """
        if address in self._described and address not in self._names and f"mmio {address:#x}" not in self._cells:
            message = f"the word at {address:#x} of the configuration space is not modelled"
            raise IllegalError(message, span=reader.span, legal=("words of the descriptors of declared tensors",))
        return self._read(self._cell(address), reader, now, findings)

    def depend(self, name: str, reader: Site, now: int, findings: Findings) -> None:
        """Report stores that an instruction which depends on a register does not see."""
        cell = self._cells.get(name)
        if cell is not None and cell.pending:
            self._read(cell, reader, now, findings)

    def visible(self, now: int) -> Mapping[str, int]:
        """Return the content of all named registers as instructions of bundle number `now` see it."""
        if self._found_at <= self._settled_at or not self._visible:
            self._found_at = now
            self._visible = {
                name: value
                for name, cell in self._cells.items()
                if (value := _seen(cell, now, self.distances(name))) is not None
            }
        return self._visible

    def settled(self, now: int) -> bool:
        """Whether everything sees the same from now on, as long as nothing is stored."""
        return now >= self._settled_at

    def _cell(self, address: int) -> RegisterCell:
        name = self._names.get(address, f"mmio {address:#x}")
        if name not in self._cells:
            self._cells[name] = RegisterCell(name, 0)
        return self._cells[name]

    def _read(self, cell: RegisterCell, reader: Site, now: int, findings: Findings) -> int | None:
        value = cell.read(now, self.distances(cell.name), "configuration", reader, findings)
        assert value is None or isinstance(value, int)
        return value

    def distances(self, name: str) -> Distances:
        """Return from which distance on a store to a register is seen by what depends on it or loads it."""
        return self._random if name in _RANDOM else self._usual


def _seen(cell: RegisterCell, now: int, distances: Distances) -> int | None:
    for write in reversed(cell.pending):
        if now - write.time >= distances[write.stage]:
            assert write.value is None or isinstance(write.value, int)
            return write.value
    assert cell.settled is None or isinstance(cell.settled, int)
    return cell.settled
