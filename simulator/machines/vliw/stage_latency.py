"""Timing of instructions: stages of results and operands, distances between them, accesses to global memory."""

from __future__ import annotations

from functools import cache
from typing import Self

from castsim.execution.tree import Deltas
from castsim.isa.dataclass import dataclass
from castsim.isa.tpc.instructions import FORMS
from castsim.isa.tpc.program import GROUPED, VECTOR_FILES, File, Register, Slot, Special, TpcInstruction, TpcProgram
from castsim.targets.vliw import VliwTarget
from castsim.targets.vliw_latency import (
    DESTINATION_KINDS,
    PREDICATE,
    RESULT,
    Commit,
    OperandKey,
    RowMark,
)

Distances = dict[Commit, int]
"""Smallest distance in bundles by the producer's commit stage."""

DEST = "dest"
"""Role of the destination in the instruction table."""
ACCUMULATOR = "accumulator"
"""The role of the destination's old value as a separate operand."""
STORED = Commit(None, 0)
"""The commit of a value other than an instruction's result; only constant distances use it."""

IMPLICIT = ("tensor", "range", "rmw")
"""The roles of registers that tensor accesses read implicitly."""
_LOOP_BOUNDS = {"start": "src_a", "bound": "src_b", "step": "src_c"}
_HARDWARE = "hw"
_NAMED = {
    "LFSR": "vpu_lfsr",
    "LFSR_NO_CHANGE": "vpu_lfsr_ro",
    "S_LFSR": "spu_lfsr",
    "S_LFSR_NO_CHANGE": "spu_lfsr_ro",
    "V_CARRY": "v_carry",
    "S_CARRY": "s_carry",
    "ZP_REG": "zp",
    "PC": "pc",
    "DIV_STEP": "div_step",
    **{name: name.lower() for name in (f"SQZ_CNTR{number}_{half}" for number in range(8) for half in ("LO", "HI"))},
    **{f"M{number}": f"irf_dim_mask{number}" for number in range(4)},
    "LD_TNSR_ID_REG": "ld_tnsr_id",
    "ST_TNSR_ID_REG": "st_tnsr_id",
    "ST_RMW_REG": "st_rmw",
    "LD_PARTIAL_REG": "ld_partial",
    "ST_PARTIAL_REG": "st_partial",
}
"""Registers with a name, as the stage tables call them."""
_VECTOR_NAMES = ("LFSR", "V_CARRY", "ZP_REG")
_PAIRED = ("add", "sub", "lookup", "lookup_1c", "lookup_2c")
"""Instructions whose rows or rules distinguish pairs of registers (`x2`)."""
_NO_OPCODE = -1
"""Distances of an instruction without an opcode, which has the default one."""
_WIDTHS = {"f16": RowMark.F16, "f8_143": RowMark.F8, "f8_152": RowMark.F8}


class _Constant(Distances):
    """Distances that do not depend on the producer."""

    def __init__(self, distance: int) -> None:
        super().__init__()
        self._distance = distance

    def __missing__(self, commit: Commit) -> int:
        return self._distance


class _AtLeast(Distances):
    """Distances of another operand, limited from below."""

    def __init__(self, distances: Distances, smallest: int) -> None:
        super().__init__()
        self._distances = distances
        self._smallest = smallest

    def __missing__(self, commit: Commit) -> int:
        distance = self[commit] = max(self._smallest, self._distances[commit])
        return distance


@cache
def constant(distance: int) -> Distances:
    """Return distances that do not depend on the producer."""
    return _Constant(distance)


def commit_stage(target: VliwTarget, slot: Slot, instruction: TpcInstruction, file: str) -> Commit:
    """Return when an instruction's result in a register file, or named register, becomes visible."""
    return target.latencies.commit(operand_key(target, slot, instruction, DEST, file))


def read_distances(target: VliwTarget, slot: Slot, instruction: TpcInstruction, role: str, file: str) -> Distances:
    """Return the distances of one operand; `role` as in the instruction table or `predicate`.

    Raises:
        KeyError: the slot lacks the instruction.
    """
    if role in IMPLICIT and file not in _NAMED:
        return constant(target.distances.tensor_register)
    distances = target.latencies.distances(operand_key(target, slot, instruction, role, file))
    if role in _LOOP_BOUNDS:
        return _AtLeast(distances, target.loop_rules.register_distance)
    return distances


def _opcode(target: VliwTarget, slot: Slot, instruction: TpcInstruction) -> int:
    """Return the opcode; for an instruction that the stage tables cannot list, the default one."""
    opcode = target.latencies.opcodes.get((slot.name.lower(), instruction.mnemonic))
    if opcode is None and slot not in instruction.form.slots:
        raise KeyError(slot.name.lower(), instruction.mnemonic)
    return _NO_OPCODE if opcode is None else opcode


def operand_key(target: VliwTarget, slot: Slot, instruction: TpcInstruction, role: str, file: str) -> OperandKey:
    """Return the stage tables' key of a result (role `dest`) or operand; `file` is a register file or name.

    Raises:
        KeyError: the slot lacks the instruction.
    """
    name = _NAMED.get(file)
    operand = _operand_name(instruction, role)
    if name is not None:
        operand = f"{RESULT if role == DEST else 'src'}_{name}"
    dest = instruction.operand(DEST)
    return OperandKey(
        slot=slot.name.lower(),
        opcode=_opcode(target, slot, instruction),
        operand=operand,
        file=_HARDWARE if name is not None else _ungrouped(file),
        marks=_marks(slot, instruction, operand, is_result=role == DEST),
        acc_fp32=instruction.switch("acc_fp32") == 1,
        index=dest.index % DESTINATION_KINDS if isinstance(dest, Register) else 0,
    )


def _operand_name(instruction: TpcInstruction, role: str) -> str:
    """Return the name of a role of the instruction table in the stage tables."""
    if role == ACCUMULATOR:
        assert instruction.form.accumulator is not None
        return instruction.form.accumulator
    return _LOOP_BOUNDS.get(role, RESULT if role == DEST else role)


def is_vector(instruction: TpcInstruction) -> bool:
    """Return whether the result is a vector, a mask or a vector's state."""
    dest = instruction.operand(DEST)
    if isinstance(dest, Special):
        return dest.name in _VECTOR_NAMES
    return isinstance(dest, Register) and dest.file in VECTOR_FILES


def horizon(target: VliwTarget, program: TpcProgram | None = None) -> int:
    """Return a distance at which every result is visible everywhere, for all instructions or for a program's."""
    rules = target.distances
    instructions = _modelled() if program is None else _used(program)
    return max(
        target.latencies.longest(instructions), rules.tied_income, rules.disjoint_parts,
        rules.predicate_load_then_write, rules.rounding_register, rules.random_register, rules.reseed,
        rules.tensor_register, target.loop_rules.register_distance,
    )  # fmt: skip


@cache
def _modelled() -> frozenset[tuple[str, str]]:
    """Return slot and mnemonic of all instructions that the instruction table has."""
    return frozenset((Slot(slot).name.lower(), form.mnemonic) for form in FORMS for slot in form.slots)


def _used(program: TpcProgram) -> frozenset[tuple[str, str]]:
    """Return slot and mnemonic of the instructions of a program."""
    return frozenset(
        (slot.name.lower(), instruction.mnemonic) for bundle in program.bundles for slot, instruction in bundle.occupied
    )


def _marks(slot: Slot, instruction: TpcInstruction, operand: str, *, is_result: bool) -> frozenset[RowMark]:
    """Return the marks that distinguish the rows of an operand, for this instruction."""
    marks = set()
    dest, kind = instruction.operand(DEST), instruction.type
    file = dest.file if isinstance(dest, Register) else None
    if kind is not None and "f" in kind:
        marks.add(RowMark.FLOAT)
        if kind in _WIDTHS and operand != PREDICATE:
            marks.add(_WIDTHS[kind])
    if file is File.I:
        marks.add(RowMark.INDEX)
    if file is File.Z and is_result:
        marks.add(RowMark.PAIR)
    if instruction.switch("x2") == 1 and instruction.mnemonic in _PAIRED:
        marks.add(RowMark.X2)
    if not is_result and (slot is Slot.VPU or is_vector(instruction) or instruction.switch("unit") == "vpu"):
        marks.add(RowMark.VECTOR)
    return frozenset(marks)


def _ungrouped(file: str) -> str:
    """Return the file of a group's registers."""
    return str(GROUPED[File(file)][0]) if File(file) in GROUPED else file


# The operation of this mechanism: one issued bundle, as far as time depends on it.

SLOTS = tuple(slot.name for slot in Slot)
"""The slots as pipes, in text order."""

ISSUE = "SPU"
"""The pipe under which an empty bundle is listed: the slot that decides the path."""


@dataclass(frozen=True, slots=True)
class BundleOperation:
    """A bundle in flight in the core.

    `slot_cycles` has, for each slot in the order of `SLOTS`, the cycles in which the slot is occupied (0: NOP), and
    `names` its contents. `loads` and `stores` count accesses of global memory; the data of loads must arrive `data_due`
    bundles later. `effect` is the number of cycles from issue to the last effect, memory aside. `bubbles` empty cycles
    follow it (a taken jump). Of the loads, `elements` are LD_G.
    """

    slot_cycles: tuple[int, int, int, int]
    names: tuple[str, str, str, str]
    loads: int
    stores: int
    data_due: int
    effect: int
    bubbles: int
    elements: int = 0

    @property
    def pipe(self) -> str:
        """The slot under which it is listed: the first occupied one of VPU, LOAD, STORE and SPU."""
        return main_pipe(self.names)

    @property
    def addresses(self) -> tuple[int, ...]:
        """The empty tuple: time does not depend on them."""
        return ()

    def shifted(self, deltas: Deltas) -> Self:
        """Return the operation itself; it has no addresses."""
        del deltas
        return self


def main_pipe(names: tuple[str, ...]) -> str:
    """Return the slot under which reports list a bundle, given the contents of its slots."""
    order = (Slot.VPU, Slot.LOAD, Slot.STORE, Slot.SPU)
    return next((slot.name for slot in order if names[slot]), ISSUE)


# What an access to global memory costs: pipes, facts and a function on whole cycles, for all engines.

SHARED_PORT = ("GLOBAL",)
"""The pipe of global memory if loads and stores share one port."""
SEPARATE_PORTS = ("GLOBAL LOAD", "GLOBAL STORE")
"""The ports of accesses if each has a separate one."""
LATENCY_FACT, ELEMENT_FACT = "options.global_latency_cycles", "element_loads"
"""Facts behind the core's wait for a tensor load, and for LD_G."""
_PARTS = 16
"""Parts of a cycle in which the interval between accesses is counted."""


@dataclass(frozen=True, slots=True)
class MemoryTiming:
    """Global memory: the interval between accesses in parts of a cycle, latencies in cycles, slots in the queue.

    `element` is the latency of LD_G, 0 if it equals that of a tensor load. Stores may have a separate port.
    """

    parts: int
    latency: int
    element: int
    entries: int
    shared: bool
    facts: frozenset[str]
    """Facts of the target behind the cycles of an access."""

    @classmethod
    def of(cls, target: VliwTarget) -> Self:
        """Return the timing in a target's description.

        The port accepts an access in an interval of the sustained rate; if several cores work, in no less than their
        share of the memory allows.
        """
        parts, memory, cores = target.global_memory.cycles_per_access * _PARTS, target.shared_memory, target.cores
        facts = {"global_memory", "options.global_ports", "options.global_queue_entries"}
        if memory is not None and cores is not None and cores.at_work > 1:
            facts |= {"shared_memory", "cores"}
            share = -(-target.global_memory.access_bytes * cores.at_work * _PARTS // memory.bytes_per_cycle)
            parts = max(parts, share)
        return cls(
            parts=parts,
            latency=int(target.option("global_latency_cycles")),
            element=target.element_loads.latency_cycles,
            entries=int(target.option("global_queue_entries")),
            shared=target.option("global_ports") == "shared",
            facts=frozenset(facts),
        )

    def busy(self, accesses: int) -> int:
        """Return for how many cycles a number of accesses occupies a port."""
        return accesses * self.parts // _PARTS

    def interval(self, before: int) -> int:
        """Return how long the port is occupied by the access with a given number of predecessors."""
        return self.busy(before + 1) - self.busy(before)

    def phase(self, accesses: int) -> int:
        """Return the state that the intervals of accesses after a given number depend on."""
        return accesses * self.parts % _PARTS

    def load_cycles(self, interval: int, *, element: bool) -> int:
        """Return the cycles from when a load begins to cross its port until its data arrives.

        Any access occupies the port for its `interval`; a store is then complete. A load's data arrives when it has
        crossed, and no sooner than the latency after it began to.
        """
        return max(interval, self.element if element else self.latency)
