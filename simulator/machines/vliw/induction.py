"""What the varying registers of a loop body may do without anything but values depending on them.

A register *varies* if it holds another value in every trip. The body is read instruction by instruction, whatever path
a trip takes through it, and each register that varies, or takes up what does, is put into one of two classes:

* *linear*: S and I registers that only sums, differences, copies, and products and left shifts by steady operands
  write. All of these are linear in integers modulo 2**32. If all linear registers (and their writes on the way) have
  changed by the same amount in two trips running, they do so in every trip: the state x after a trip is A x + b, so
  that x'' - x' = A (x' - x), and a difference that A maps to itself once stays.
* *loose*: everything else that is computed from varying registers (masked coordinates, compares, addresses of
  elements). No loose register may depend on its own value of an earlier trip, not even by way of others: what is in
  it is then made anew from linear and steady registers in a known number of trips.

Neither may decide path, time or a place in local memory: predicates, bounds of loops, targets of jumps, addresses of
local accesses, words that scalar memory gets, numbers of tensors, dimension masks. Coordinates, addresses in global
memory and operands of vector instructions are free: a run without values makes nothing of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from castsim.isa.formats import FORMATS
from castsim.isa.tpc import DimensionMask, Register
from castsim.isa.tpc.forms import LOCAL, Family, MemoryOperation
from castsim.isa.tpc.program import WORD_BITS, File
from castsim.machines.vliw.plans import InstructionPlan
from castsim.machines.vliw.registers import INCOME

_WORDS = ("i32", "u32")
_SUMS = ("add", "sub")
_COPIES = ("set_indx", "mov_irf_dim", "prmt_indx", "not")
_HARMLESS = ("add", "sub", "mul", "max", "min", "and", "or", "xor", "shl", "shr", "ash", "abs", "not", "mov")
_PATH = ("loop", "jmpr", "jmpa")
_ALWAYS_STEADY = ("tensor", "mask")


@dataclass(frozen=True, slots=True)
class Induction:
    """The varying registers of a body by class."""

    linear: frozenset[str]
    loose: frozenset[str]

    @property
    def settling(self) -> int:
        """The most writes, one after the other, until every loose register is right."""
        return len(self.loose)


def follows_state(plan: InstructionPlan) -> bool:
    """Whether an instruction of a run without values uses or changes state that is neither register nor memory.

    These are the scalar random generator and stores to the configuration space.
    """
    if plan.memory is MemoryOperation.SCALAR_STORE and plan.instruction.switch("mmio"):
        return True
    draws = plan.samples is not None or plan.reseeds is not None or "scalar_lfsr_polynomial" in plan.depends
    return draws and not plan.vector


def induction(
    plans: tuple[InstructionPlan, ...], dimensions: int, linear: frozenset[str], loose: frozenset[str]
) -> Induction | None:
    """Return how far variation reaches in a body, None if something must not take it up.

    Args:
        plans: the instructions of the body.
        dimensions: how many an index register has.
        linear: registers known to vary that are S or I.
        loose: others that are known to vary.
    """
    straight, bent = set(linear - loose), set(loose)
    edges: dict[str, set[str]] = {}
    while True:
        size = len(straight), len(bent)
        for plan in plans:
            varying = _reads(plan, dimensions, straight | bent)
            if not varying:
                continue
            if not _may_take(plan, varying):
                return None
            if plan.vector or (plan.meaning is None and plan.memory is not MemoryOperation.ADDRESS):
                continue  # without values, what vectors and loads get is not computed
            names = {cell.name for cell in plan.results}
            read = {name for cells in varying.values() for name in cells}
            if _is_linear(plan, varying) and not read & bent and not names & bent:
                straight |= names
                continue
            bent |= names
            straight -= names
            for name in names:
                edges.setdefault(name, set()).update(read)
        if (len(straight), len(bent)) == size:
            break
    return None if _has_cycle(edges, bent) else Induction(frozenset(straight), frozenset(bent))


def _reads(plan: InstructionPlan, dimensions: int, varying: set[str]) -> Mapping[str, set[str]]:
    """Return the varying registers that an instruction's result depends on, by role."""
    operands = [*plan.sources, *([plan.predicate] if plan.predicate else [])]
    if plan.income is not None and _keeps_income(plan, dimensions):
        operands.append(plan.income)
    found = {operand.role: varying.intersection(cell.name for cell in operand.cells) for operand in operands}
    return {role: names for role, names in found.items() if names}


def _keeps_income(plan: InstructionPlan, dimensions: int) -> bool:
    """Whether a part of the destination's old value stays."""
    instruction = plan.instruction
    mask = instruction.operand("mask")
    if mask is not None and not plan.into_predicate:
        return not isinstance(mask, DimensionMask) or mask.bits != (1 << dimensions) - 1
    if plan.into_predicate or instruction.type is None or instruction.type not in FORMATS:
        return False
    return FORMATS[instruction.type].bits < WORD_BITS


def _may_take(plan: InstructionPlan, varying: Mapping[str, set[str]]) -> bool:
    """Whether an instruction may read what varies in these roles."""
    mnemonic = plan.instruction.mnemonic
    if "predicate" in varying or mnemonic in _PATH or any(role in varying for role in _ALWAYS_STEADY):
        return False
    if plan.memory in LOCAL:
        # The vectors that are stored are not computed; what is loaded replaces the old value.
        return set(varying) <= ({INCOME, "src_c"} if plan.memory is MemoryOperation.VECTOR_STORE else {INCOME})
    if plan.vector or plan.is_memory:
        return True
    if mnemonic in ("shl", "shr", "ash", "prmt_indx") and "src_b" in varying:
        return False
    whole = plan.instruction.type is None or plan.instruction.type == "b" or "f" not in plan.instruction.type
    return whole and (mnemonic in _HARMLESS or mnemonic in _COPIES or plan.instruction.form.family is Family.COMPARISON)


def _is_linear(plan: InstructionPlan, varying: Mapping[str, set[str]]) -> bool:
    """Whether the result is linear in what varies, modulo 2**32."""
    instruction = plan.instruction
    dest, mnemonic = instruction.operand("dest"), instruction.mnemonic
    if not isinstance(dest, Register) or dest.file not in (File.S, File.I):
        return False
    if mnemonic in _COPIES:
        return instruction.type in (None, *_WORDS)
    if mnemonic == "mov":
        source = instruction.operand("src_a")
        return not isinstance(source, Register) or source.file in (File.S, File.I)
    if instruction.type not in _WORDS:
        return False
    if mnemonic in _SUMS:
        return not instruction.switch("st")
    if mnemonic == "mul":
        return not instruction.switch("upper32") and not {"src_a", "src_b"} <= set(varying)
    return mnemonic == "shl"


def _has_cycle(edges: Mapping[str, set[str]], among: set[str]) -> bool:
    """Whether some register depends on itself, by way of `among`."""
    left = {name: edges.get(name, set()) & among for name in among}
    while left:
        free = {name for name, needs in left.items() if not needs & left.keys()}
        if not free:
            return True
        left = {name: needs for name, needs in left.items() if name not in free}
    return False
