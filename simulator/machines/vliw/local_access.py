"""Loads and stores of local memory and of the configuration space (docs/reference/tpc.md section 7.1, memory)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from castsim.execution.tree import Access
from castsim.isa.errors import IllegalError, Span, TileError
from castsim.isa.tpc import Immediate, Register
from castsim.isa.tpc.forms import Half
from castsim.isa.tpc.program import WORD_BYTES, WORD_MASK, File
from castsim.machines.vliw.configuration_space import ConfigurationSpace
from castsim.machines.vliw.findings import Findings, StaleReadKind
from castsim.machines.vliw.plans import InstructionPlan
from castsim.machines.vliw.registers import Held, vector
from castsim.targets.vliw import VliwTarget

# Vector and scalar local memory: bytes, their bounds, and which of them something has written.

Bytes = NDArray[np.uint8]


class LocalMemory:
    """One local memory of a core, zero at start."""

    def __init__(self, name: str, capacity: int) -> None:
        self.name = name
        self.capacity = capacity
        self.bytes: Bytes = np.zeros(capacity, np.uint8)
        self.written: NDArray[np.bool_] = np.zeros(capacity, np.bool_)

    def check(self, address: int, size: int, alignment: int, span: Span) -> None:
        """Reject an access outside the memory or at an odd place.

        Raises:
            TileError: names address, size, bounds and alignment.
        """
        if address + size > self.capacity:
            raise TileError(
                f"{self.name.upper()} address {address:#x}: {size} bytes there end beyond the {self.capacity} bytes of "
                "the memory",
                span=span,
                legal=(f"0x0 .. {self.capacity - size:#x}",),
            )
        if address % alignment:
            down = address - address % alignment
            raise TileError(
                f"{self.name.upper()} address {address:#x} is not a multiple of {alignment}",
                span=span,
                legal=(f"{down:#x}", f"{down + alignment:#x}"),
            )

    def load(self, address: int, size: int) -> Bytes:
        """Return a copy of some bytes."""
        return self.bytes[address : address + size].copy()

    def store(self, address: int, data: Bytes, mask: NDArray[np.bool_] | None = None) -> None:
        """Write bytes, only those under a mask if there is one."""
        place = slice(address, address + data.size)
        if mask is None:
            self.bytes[place] = data
            self.written[place] = True
        else:
            self.bytes[place][mask] = data[mask]
            self.written[place] |= mask

    def is_written(self, address: int, size: int) -> bool:
        """Whether all of some bytes have been written or declared."""
        return bool(self.written[address : address + size].all())


Mask = NDArray[np.bool_]
Sources = Mapping[str, Held]


class LocalAccess:
    """The local side of the LOAD and STORE slots; `touched` gathers the bytes that the current bundle accesses.

    `tables` says that the program has look-ups, whose tables take most of vector memory.
    """

    def __init__(
        self, target: VliwTarget, configuration: ConfigurationSpace, findings: Findings, *, tables: bool = False
    ) -> None:
        small = tables or target.option("vlm_size") == "small"
        memories = target.memories
        vlm_bytes = target.small_vector_memory.capacity_bytes if small else memories["vlm"].capacity_bytes
        self.vlm = LocalMemory("vlm", vlm_bytes)
        self.slm = LocalMemory("slm", memories["slm"].capacity_bytes)
        self.configuration = configuration
        self.touched: list[Access] = []
        self._findings = findings
        self._vector_bytes = target.registers.vector_bytes
        self._alignment = memories["vlm"].alignment_bytes
        self._word_alignment = memories["slm"].alignment_bytes

    def load_scalar(self, plan: InstructionPlan, sources: Sources, now: int) -> int | bool | None:
        """LD_L: a word of scalar memory or a memory-mapped register; a predicate takes bit 0."""
        address = address_of(plan, sources)
        if plan.instruction.switch("mmio"):
            word = self.configuration.load(address, plan.site, now, self._findings)
        else:
            self._check(self.slm, plan, address, WORD_BYTES, self._word_alignment, now, write=False)
            word = int(self.slm.load(address, WORD_BYTES).view("<u4")[0])
        return bool(word & 1) if plan.into_predicate and word is not None else word

    def store_scalar(self, plan: InstructionPlan, sources: Sources, now: int) -> bool:
        """ST_L: the reverse; a predicate stores 0 or 1. Return whether that can have changed what a load gets."""
        address, value = address_of(plan, sources), sources["src_c"]
        if plan.instruction.switch("mmio"):
            self.configuration.store(address, None if value is None else _number(value), plan.site, now)
            return True
        self._check(self.slm, plan, address, WORD_BYTES, self._word_alignment, now, write=True)
        if value is None:
            raise needs_values(plan, "the word that it stores")
        data = np.array([_number(value)], "<u4").view(np.uint8)
        changes = not np.array_equal(self.slm.load(address, WORD_BYTES), data)
        self.slm.store(address, data)
        return changes

    def load_vector(
        self, plan: InstructionPlan, sources: Sources, predicate: bool | Mask, income: Held, now: int, *, values: bool
    ) -> Held:
        """LD_L_V: a vector, half a vector, or the packed bits of a predicate."""
        place, address, size, alignment = self._vector_place(plan, sources)
        self._check(self.vlm, plan, address, size, alignment, now, write=False)
        if not values:
            return None
        data = self.vlm.load(address, size)
        if plan.into_predicate:
            return _under(predicate, np.unpackbits(data, bitorder="little").astype(np.bool_), income, place)
        return _under(predicate, data, income, place)

    def store_vector(
        self, plan: InstructionPlan, sources: Sources, predicate: bool | Mask, now: int, *, values: bool
    ) -> None:
        """ST_L_V: the reverse; a VP predicate is a byte mask."""
        place, address, size, alignment = self._vector_place(plan, sources)
        self._check(self.vlm, plan, address, size, alignment, now, write=True)
        mask = predicate[place] if isinstance(predicate, np.ndarray) else None
        if not values:
            self.vlm.written[address : address + size] = True
            return
        held = sources["src_c"]
        assert isinstance(held, np.ndarray)
        if held.dtype == np.bool_:
            bits = held[place] if mask is None else held[place] & mask
            self.vlm.store(address, np.packbits(bits, bitorder="little"))
        else:
            self.vlm.store(address, vector(held)[place], mask)

    def _vector_place(self, plan: InstructionPlan, sources: Sources) -> tuple[slice, int, int, int]:
        """Return which part of the register, the byte address, the bytes in memory, and the alignment."""
        address, half = address_of(plan, sources), plan.instruction.form.half
        alignment = self._alignment if half is None else self._alignment // 2
        place = slice(*part_of(self._vector_bytes, half))
        size = place.stop - place.start
        if _holds_bits(plan):
            return place, address + place.start // 8, size // 8, alignment // 8
        return place, address + place.start, size, alignment

    def _check(
        self,
        memory: LocalMemory,
        plan: InstructionPlan,
        address: int,
        size: int,
        alignment: int,
        now: int,
        *,
        write: bool,
    ) -> None:
        memory.check(address, size, alignment, plan.site.span)
        self.touched.append(Access(memory.name, address, address + size, write))
        if not write and not memory.is_written(address, size):
            place = f"{memory.name.upper()} {address:#x} .. {address + size - 1:#x}"
            self._findings.add(StaleReadKind.UNWRITTEN, place, "memory", plan.site, now)


def part_of(whole: int, half: Half | None) -> tuple[int, int]:
    """Return where the part of a register that an access moves begins and ends, of so many bytes or lanes."""
    if half is None:
        return 0, whole
    return (0, whole // 2) if half is Half.LOW else (whole // 2, whole)


def address_of(plan: InstructionPlan, sources: Sources) -> int:
    """Return the byte address of a local access: one operand, or the sum of two.

    Raises:
        IllegalError: it depends on values that are not computed.
    """
    total = 0
    for role in ("src_a", "src_b"):
        operand = plan.instruction.operand(role)
        if isinstance(operand, Immediate):
            total += operand.value
        elif operand is not None:
            part = sources[role]
            if not isinstance(part, int):
                raise needs_values(plan, "its address")
            total += part
    return total & WORD_MASK


def needs_values(plan: InstructionPlan, what: str) -> IllegalError:
    """Return (not raise) the refusal of what only a run that computes values can know."""
    message = f"{plan.instruction.mnemonic}: {what} depends on tensor data, which --timing-only does not compute"
    return IllegalError(message, span=plan.site.span)


def _holds_bits(plan: InstructionPlan) -> bool:
    """Whether a vector access moves a VP register."""
    data = plan.instruction.operand("src_c") or plan.instruction.operand("dest")
    return isinstance(data, Register) and data.file is File.VP


def _number(value: Held) -> int:
    assert isinstance(value, int)
    return int(value)


def _under(predicate: bool | Mask, data: NDArray[np.generic], income: Held, place: slice) -> Held:
    """Return the register after a load into part of it, under a predicate."""
    assert isinstance(income, np.ndarray)
    result = income.copy()
    if isinstance(predicate, np.ndarray):
        result[place][predicate[place]] = data[predicate[place]]
    else:
        result[place] = data
    result.flags.writeable = False
    return result
