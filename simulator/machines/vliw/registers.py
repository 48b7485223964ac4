"""Registers whose writes become visible late: each keeps the writes that some reader may not see yet.

Time counts issued bundles and the bubbles of taken jumps. A reader sees the newest write, in program order, that is
old enough for it: results of one register land in program order (docs/reference/tpc.md section 6.1, tied income 1),
with the one exception of loads into predicates, which a later write can overtake.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from castsim.isa.tpc.program import GROUPED, PREDICATES, WORD_BITS, WORD_MASK, File, Register, Special
from castsim.machines.vliw.findings import Findings, InstructionSite, StaleReadKind
from castsim.machines.vliw.semantics import Mask, Value, Vector
from castsim.machines.vliw.stage_latency import Distances
from castsim.targets.vliw import VliwTarget
from castsim.targets.vliw_latency import Commit

_Array = TypeVar("_Array", Vector, Mask)

Held = Value | None
"""What a register holds; None: not computed, because the run computes no vectors."""

GENERATORS = ("LFSR", "S_LFSR")
"""The random generators of vectors and of scalars."""


@dataclass(frozen=True, slots=True)
class GeneratorRead:
    """A read of a random generator by name: which one, and whether it steps."""

    generator: str
    steps: bool


RANDOM = {
    "LFSR": GeneratorRead("LFSR", steps=True),
    "LFSR_NO_CHANGE": GeneratorRead("LFSR", steps=False),
    "S_LFSR": GeneratorRead("S_LFSR", steps=True),
    "S_LFSR_NO_CHANGE": GeneratorRead("S_LFSR", steps=False),
}
"""Names of the random generators, which are not registers but state that steps."""
INCOME = "income"
"""The role under which an instruction reads the old value of its destination."""
CONSTANT = ("V_LANE_ID_32", "V_LANE_ID_16", "V_LANE_ID_8", "PC")
"""Names that are read and not held anywhere."""


@dataclass(frozen=True, slots=True)
class Write:
    """A result on its way: issued in bundle number `time`, visible as its commit stage says."""

    time: int
    stage: Commit
    value: Held
    writer: InstructionSite


@dataclass(slots=True)
class RegisterCell:
    """One register: what all readers see, and what only some do yet, in the order in which it lands.

    `file` is its register file, None for one that has a name instead of a number.
    """

    name: str
    settled: Held
    written: bool = False
    pending: list[Write] = field(default_factory=list)
    file: File | None = None

    def read(self, now: int, distances: Distances, role: str, reader: InstructionSite, findings: Findings) -> Held:
        """Return the value that a reader of bundle number `now` gets; report writes that it misses.

        What a destination holds before its first write is not meant to be read, and not reported.
        """
        pending = self.pending
        if not pending:
            if not self.written and role != INCOME:
                findings.add(StaleReadKind.UNWRITTEN, self.name, role, reader, now)
            return self.settled
        missed = False
        for write in reversed(pending):
            distance, needed = now - write.time, distances[write.stage]
            if distance >= needed:
                return write.value
            if distance == 0:
                findings.add(StaleReadKind.SAME_BUNDLE, self.name, role, reader, now, write.writer, distance, needed)
            elif not missed:
                findings.add(StaleReadKind.EARLY, self.name, role, reader, now, write.writer, distance, needed)
                missed = True
        return self.settled

    def write(self, write: Write, horizon: int) -> None:
        """Put a result on its way."""
        self.settle(write.time, horizon)
        self.pending.append(write)

    def write_before(self, write: Write, place: int) -> None:
        """Put a result on its way that lands before the pending one at `place`."""
        self.pending.insert(place, write)

    def settle(self, now: int, horizon: int) -> None:
        """Forget writes that all readers see."""
        pending = self.pending
        while pending and now - pending[0].time >= horizon:
            self.settled = pending.pop(0).value
            self.written = True

    def set(self, value: Held) -> None:
        """Give it a value that is visible at once."""
        self.settled = value
        self.written = True
        self.pending.clear()

    @property
    def newest(self) -> Held:
        """The value that it will have when everything has landed."""
        return self.pending[-1].value if self.pending else self.settled


class Registers:
    """All registers of a core, each a `RegisterCell`; they start at zero and unwritten, SP0 and VP0 constantly true."""

    def __init__(self, target: VliwTarget) -> None:
        sizes = target.registers
        self._vector_bytes = sizes.vector_bytes
        self._cells: dict[str, RegisterCell] = {}
        zeros: Mapping[File, Held] = {
            File.V: _frozen(np.zeros(sizes.vector_bytes, np.uint8)),
            File.S: 0,
            File.I: (0,) * sizes.index_dimensions,
            File.AD: 0,
            File.SP: False,
            File.VP: _frozen(np.zeros(sizes.vector_bytes, np.bool_)),
        }
        for file, zero in zeros.items():
            for index in range(getattr(sizes, file.value)):
                self._cells[f"{file}{index}"] = RegisterCell(f"{file}{index}", zero, file=file)
        self._cells["SP0"].set(True)
        self._cells["VP0"].set(_frozen(np.ones(sizes.vector_bytes, np.bool_)))
        self._named: Mapping[str, Held] = {
            "S_CARRY": False, "V_CARRY": zeros[File.VP], "ZP_REG": zeros[File.V],
        }  # fmt: skip

    def cells(self, register: Register | Special) -> tuple[RegisterCell, ...]:
        """Return the cells of a name: one, or those of a pair or quad."""
        if isinstance(register, Special):
            name = register.name
            if name not in self._cells:
                self._cells[name] = RegisterCell(name, self._named.get(name, 0))
            return (self._cells[name],)
        file, count = GROUPED.get(register.file, (register.file, 1))
        return tuple(self._cells[f"{file}{register.index + k}"] for k in range(count))


def is_constant(register: Register | Special) -> bool:
    """Whether writes of it have no effect: SP0 and VP0 are constantly true."""
    return isinstance(register, Register) and register.file in PREDICATES and register.index == 0


def vector(held: Held) -> Vector:
    """Return the bytes of a V register, which `held` is known to be."""
    assert isinstance(held, np.ndarray) and held.dtype == np.uint8
    return held.view(np.uint8)


def parts_of(held: Held, count: int) -> tuple[Held, ...]:
    """Return what each of so many registers gets of a result."""
    if count == 1 and not (isinstance(held, tuple) and isinstance(held[0], np.ndarray)):
        return (held,)
    if held is None:
        return (None,) * count
    if isinstance(held, int):
        return tuple(held >> (WORD_BITS * place) & WORD_MASK for place in range(count))
    assert isinstance(held, tuple) and len(held) == count
    return held


def _frozen(array: _Array) -> _Array:
    array.flags.writeable = False
    return array
