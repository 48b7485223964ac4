"""Prepared instructions of a program for repeated issue: computation, cells, distances, stages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

import numpy as np

from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import CastsimError, IllegalError
from castsim.isa.formats import FORMATS
from castsim.isa.tpc.forms import LOADS, STORES, TENSORS, Family, MemoryOperation, OperandSpec
from castsim.isa.tpc.program import (
    PREDICATES,
    DimensionMask,
    File,
    Register,
    Slot,
    Special,
    TpcInstruction,
    TpcProgram,
    is_constant,
)
from castsim.machines.vliw import semantics
from castsim.machines.vliw.findings import Findings, InstructionSite, StaleReadKind
from castsim.machines.vliw.lookup_tables import LOOKUPS, NO_TABLES, DeclaredTables, Rounded, prepare_lookup
from castsim.machines.vliw.semantics import PreparedInstruction
from castsim.machines.vliw.semantics.convert import ConvertInteger, PreparedConversion
from castsim.machines.vliw.semantics.moves import prepare_shuffle
from castsim.machines.vliw.semantics.operands import Effects, OperandValues, State, Unit, merged
from castsim.machines.vliw.semantics.products import prepare_accumulation, prepare_shifted
from castsim.machines.vliw.semantics.special_results import (
    BIT_FIELDS,
    DIVISIONS,
    UnstatedError,
    prepare_bit_field,
    prepare_division,
    prepare_entry,
    prepare_special,
)
from castsim.machines.vliw.stage_latency import (
    ACCUMULATOR,
    STORED,
    Distances,
    commit_stage,
    constant,
    is_vector,
    operand_key,
    read_distances,
)
from castsim.machines.vliw.storage import (
    CONSTANT,
    INCOME,
    RANDOM,
    GeneratorRead,
    RegisterCell,
    Registers,
)
from castsim.targets.vliw import VliwTarget
from castsim.targets.vliw_latency import PREDICATE, Commit

# From an instruction to what computes it, those of real kernels included, and what is known and not computed.
#
# `castsim.machines.vliw.semantics` holds the values of casts and of the arithmetic around them. Others are added
# here, so the proofs about those stay what they are.

_CONTROL = ("halt", "loop", "jmpr", "jmpa")

_NO_EFFECT = ("event", "prefetch", "aso", "dbg")
"""Instructions that change neither registers nor memory."""


_UNSTATED = {
    "high": "which coordinates set_indx writes with `high`",
    "keep_rs_for_add": "what a sum takes from a product that keeps its bits for it",
}
"""Facts that no source states about instructions with a switch."""


@dataclass(frozen=True, slots=True)
class NoEffect(Unit):
    """An instruction without any effect that a program can read."""

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return no effects."""
        return Effects(operands.income)


@dataclass(frozen=True, slots=True)
class NoEntry(Unit):
    """An entry of a table without values, for which the first one is returned."""

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return zeros."""
        zeros = np.zeros(self.vector_bytes, np.uint8)
        return Effects(merged((zeros, zeros), operands))


@dataclass(frozen=True, slots=True)
class NotComputed(Unit):
    """An instruction that castsim reads, encodes, lints and times without computing its values."""

    unstated: UnstatedError | None = None

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Raise an error.

        Raises:
            IllegalError: always.
        """
        if self.unstated is not None:
            raise self.unstated
        message = f"{self.instruction.mnemonic} the values of {self.instruction.mnemonic} are not modelled"
        raise IllegalError(message, span=self.instruction.span, legal=("castsim lint", "castsim run --timing-only"))


def computes(instruction: TpcInstruction) -> bool:
    """Return whether `prepare` supports the instruction: all except memory accesses and control."""
    return instruction.form.memory is None and instruction.mnemonic not in _CONTROL


def prepare(instruction: TpcInstruction, target: VliwTarget, tables: DeclaredTables = NO_TABLES) -> PreparedInstruction:
    """Check an instruction against the tables of a generation and prepare it; `tables` are those that it looks up.

    Raises:
        IllegalError: see `castsim.machines.vliw.semantics.prepare`; also a look-up that does not fit its table.
        ReadError: tables are declared, but not that of a look-up.
    """
    unstated = next((text for name, text in _UNSTATED.items() if instruction.switch(name) == 1), None)
    if unstated is None and instruction.operand("steps") is not None:
        unstated = f"which steps of a division the number of {instruction.mnemonic} chooses"
    if unstated is None and instruction.mnemonic in ("add", "sub") and "A" in instruction.form.operands[0].accepts:
        unstated = f"how the elements of {instruction.mnemonic}.{instruction.type} are laid out in four registers"
    try:
        unit: Unit
        if unstated is not None:
            legal = ("castsim lint", "castsim run --timing-only")
            raise UnstatedError(f"no source documents {unstated}", span=instruction.span, legal=legal)
        if semantics.computes(instruction) and not _beyond(instruction):
            return semantics.prepare(instruction, target)
        if instruction.mnemonic in LOOKUPS:
            unit = prepare_lookup(instruction, target, tables)
        elif instruction.mnemonic == "rounded":
            unit = Rounded(instruction, target, tables)
        else:
            unit = _FAMILIES.get(instruction.mnemonic, NotComputed)(instruction, target)
        return PreparedInstruction(instruction, unit.registers(), unit)
    except UnstatedError as error:
        unit = NotComputed(instruction, target, error)
        if instruction.mnemonic == "get_lut_entry_and_interval_start" and tables.codes and not tables.any():
            unit = NoEntry(instruction, target)
        return PreparedInstruction(instruction, unit.registers(), unit)
    except CastsimError as error:
        raise error.at(instruction.span) from None


_FAMILIES: Mapping[str, Callable[[TpcInstruction, VliwTarget], Unit]] = {
    **dict.fromkeys(_NO_EFFECT, NoEffect),
    **dict.fromkeys(BIT_FIELDS, prepare_bit_field),
    **dict.fromkeys(("mac", "madd", "add", "sub", "mul"), prepare_accumulation),
    "msac": prepare_shifted,
    "shuffle": prepare_shuffle,
    "calc_fp_special": prepare_special,
    "get_lut_entry_and_interval_start": prepare_entry,
    **dict.fromkeys(DIVISIONS, prepare_division),
}
"""The computing classes of further mnemonics; sums and products come here for pairs of registers."""


def _beyond(instruction: TpcInstruction) -> bool:
    """Return whether switches change the instruction: pairs, except of conversions and moves, or wide results."""
    pairs = instruction.switch("x2") == 1 and instruction.mnemonic not in ("convert", "mov")
    return pairs or (instruction.mnemonic == "mul" and instruction.switch("acc_fp32") == 1)


# The random generators as state of the machine: uses step them, reseeds replace it; both are seen later.

_State = TypeVar("_State")


@dataclass(frozen=True, slots=True)
class Use:
    """The use of a generator by an instruction: when its next state is committed, and which states it sees."""

    commit: Commit
    distances: Distances

    def distance_from(self, commit: Commit) -> int:
        """Return the distance after an earlier use's commit at which it sees that state; 0 if no table lists the
        use."""
        return 0 if commit.key is None else self.distances[commit]


@dataclass(frozen=True, slots=True)
class _PendingState(Generic[_State]):
    """A state on its way; a reseed has no commit stage, its distance is the same for all."""

    time: int
    commit: Commit | None
    state: _State
    writer: InstructionSite


class Generator(Generic[_State]):
    """One random generator.

    Uses in the window between a reseed and its effect continue the old sequence (docs/reference/tpc.md section 6.1,
    reseed 4); uses closer to each other than the stage tables allow draw from the same state (docs/reference/tpc.md
    section 6.1).
    """

    def __init__(self, name: str, state: _State, delay: int, horizon: int) -> None:
        self.name = name
        self._state = state
        self._delay = delay
        self._horizon = max(delay, horizon)
        self._pending: list[_PendingState[_State]] = []
        self._seeded = False

    def state(self, now: int, use: Use) -> _State:
        """Return the state that a use in bundle number `now` sees."""
        self._settle(now)
        for pending in reversed(self._pending):
            if now - pending.time >= self._needed(pending, use):
                return pending.state
        return self._state

    def used(self, reader: InstructionSite, use: Use, now: int, findings: Findings) -> None:
        """Record a use that misses a reseed or an earlier use, or that precedes any reseed."""
        self._settle(now)
        if not self._seeded:
            findings.add(StaleReadKind.UNWRITTEN, self.name, "random", reader, now)
        for pending in reversed(self._pending):
            needed = self._needed(pending, use)
            distance = now - pending.time
            if distance >= needed:
                return
            kind = StaleReadKind.SAME_BUNDLE if distance == 0 else StaleReadKind.EARLY
            findings.add(kind, self.name, "random", reader, now, pending.writer, distance, needed)
            if distance:
                return

    def step(self, state: _State, writer: InstructionSite, use: Use, now: int) -> None:
        """Schedule the state after a use; it lands before a reseed that the use has missed."""
        position = len(self._pending)
        while position and self._pending[position - 1].commit is None:
            if now - self._pending[position - 1].time >= self._delay:
                break
            position -= 1
        self._pending.insert(position, _PendingState(now, use.commit, state, writer))

    def reseed(self, state: _State, writer: InstructionSite, now: int) -> None:
        """Schedule a new state."""
        self._pending.append(_PendingState(now, None, state, writer))
        self._seeded = True

    def _needed(self, pending: _PendingState[_State], use: Use) -> int:
        return self._delay if pending.commit is None else use.distance_from(pending.commit)

    def _settle(self, now: int) -> None:
        while self._pending and now - self._pending[0].time >= self._horizon:
            self._state = self._pending.pop(0).state


_ELEMENTS = (MemoryOperation.ELEMENT_LOAD, MemoryOperation.ELEMENT_STORE)
_PRODUCTS = ("mul", "mac", "madd")
_SUMS = ("add", "sub")
_ARITHMETIC = (*_PRODUCTS, *_SUMS)
VECTOR_LFSR, SCALAR_LFSR = "vector_lfsr_polynomial", "scalar_lfsr_polynomial"
_OF_POLYNOMIAL = {VECTOR_LFSR: "LFSR", SCALAR_LFSR: "S_LFSR"}
"""The random generators by the configuration registers that hold their polynomials."""


@dataclass(frozen=True, slots=True)
class OperandPlan:
    """A register operand: its cells, one or those of a group, and the distance from which it sees their writes."""

    role: str
    cells: tuple[RegisterCell, ...]
    distances: Distances

    def needed(self, writer: InstructionPlan) -> int:
        """Return the smallest distance in bundles at which this operand sees an instruction's result."""
        return self.distances[writer.stage]


@dataclass(frozen=True, slots=True)
class InstructionPlan:
    """A prepared instruction.

    `results` are the cells of the destination (none for stores, jumps and reseeds), `stage` their commit stage.
    `income` reads the destination's old value. `depends` names the configuration registers that its values may depend
    on, `reseeds` and `samples` the random generator that it writes or reads as a register. `meaning` computes the
    result; accesses of memory and control have none. `memory` is its kind of access, `accesses` counts loads and stores
    of global memory.
    """

    site: InstructionSite
    meaning: PreparedInstruction | None
    sources: tuple[OperandPlan, ...]
    income: OperandPlan | None
    predicate: OperandPlan | None
    inverted: bool
    results: tuple[RegisterCell, ...]
    stage: Commit
    into_predicate: bool
    vector: bool
    depends: tuple[str, ...]
    reseeds: str | None
    samples: GeneratorRead | None
    random: Use
    program_counter: bool
    memory: MemoryOperation | None
    accesses: tuple[int, int]

    def at(self, site: InstructionSite) -> InstructionPlan:
        """Return the plan of the same instruction at another position."""
        meaning = None if self.meaning is None else self.meaning.at(site.instruction)
        return replace(self, site=site, meaning=meaning)

    @property
    def casts(self) -> tuple[tuple[str, str], ...]:
        """The formats (from, to) of the cast; empty for other instructions."""
        match self.meaning.unit if self.meaning else None:
            case PreparedConversion(src=src, dst=dst):
                return ((src, dst),)
            case ConvertInteger(src=source, dst=result):
                return ((source.name, result.name),)
        return ()

    @property
    def operands(self) -> tuple[OperandPlan, ...]:
        """Its sources and its predicate, without the old value of its destination."""
        return (*self.sources, *([self.predicate] if self.predicate else []))

    @property
    def read(self) -> frozenset[str]:
        """The registers that these operands read, by name."""
        return frozenset(cell.name for operand in self.operands for cell in operand.cells)

    @property
    def written(self) -> frozenset[str]:
        """The registers that it writes, by name."""
        return frozenset(cell.name for cell in self.results)

    @property
    def is_memory(self) -> bool:
        """Whether it accesses memory or computes an address; other instructions without a meaning decide the path."""
        return self.memory is not None and self.memory is not MemoryOperation.CACHE

    @property
    def mapped(self) -> bool:
        """Whether it accesses the configuration space."""
        return self.instruction.switch("mmio") == 1

    @property
    def stores_mapped(self) -> bool:
        """Whether it stores to the configuration space."""
        return self.mapped and self.memory is MemoryOperation.SCALAR_STORE

    @property
    def loads(self) -> bool:
        """Whether it loads its result from memory."""
        return self.memory in LOADS

    @property
    def generators(self) -> set[str]:
        """The random generators that it draws from."""
        drawn = {_OF_POLYNOMIAL[name] for name in self.depends if name in _OF_POLYNOMIAL}
        return drawn | ({self.samples.generator} if self.samples is not None else set())

    @property
    def instruction(self) -> TpcInstruction:
        """The instruction itself."""
        return self.site.instruction


def planned(
    program: TpcProgram, registers: Registers, target: VliwTarget, tables: DeclaredTables | None = None
) -> tuple[tuple[InstructionPlan, ...], ...]:
    """Prepare the instructions of every bundle; `tables` contain declared values. For errors see `prepared`.

    Repeated instructions are prepared once: only their position differs.
    """
    given = DeclaredTables.of(program.declarations) if tables is None else tables
    plans: dict[tuple[object, ...], InstructionPlan] = {}

    def plan(instruction: TpcInstruction, bundle: int, slot: Slot) -> InstructionPlan:
        its = instruction
        key = (slot, id(its.form), its.type, its.switches, its.operands, its.predicate)
        if key in plans:
            return plans[key].at(InstructionSite(bundle, slot, instruction))
        plans[key] = instruction_plan = prepared(instruction, bundle, slot, registers, target, given)
        return instruction_plan

    return tuple(
        tuple(plan(operation, index, slot) for slot, operation in bundle.occupied)
        for index, bundle in enumerate(program.bundles)
    )


def prepared(
    instruction: TpcInstruction,
    bundle: int,
    slot: Slot,
    registers: Registers,
    target: VliwTarget,
    tables: DeclaredTables = NO_TABLES,
) -> InstructionPlan:
    """Prepare one instruction.

    Raises:
        ReadError: the program declares tables, but not that of a look-up.
        IllegalError: it is not in the generation's tables, a group begins at a wrong register, or it writes a constant.
    """
    site = InstructionSite(bundle, slot, instruction)
    meaning = prepare(instruction, target, tables) if computes(instruction) else None
    groups = {} if meaning is None else meaning.registers
    sources: list[OperandPlan] = []
    results: tuple[RegisterCell, ...] = ()
    income, stage = None, STORED
    reseeds, samples = _generators(instruction)
    for spec, operand in _in_cells(instruction):
        cells = tuple(
            cell for register_operand in groups.get(spec.role, (operand,)) for cell in registers.cells(register_operand)
        )
        file = operand.name if isinstance(operand, Special) else str(operand.file)
        if spec.role == "dest":
            _check_writable(operand, instruction)
            results, stage = cells, commit_stage(target, slot, instruction, file)
            income = OperandPlan(INCOME, cells, constant(target.distances.tied_income))
            sources += _accumulators(instruction, slot, cells, file, target)
        else:
            sources.append(OperandPlan(spec.role, cells, read_distances(target, slot, instruction, spec.role, file)))
    return InstructionPlan(
        site=site,
        meaning=meaning,
        sources=tuple(sources),
        income=income,
        predicate=_predicate(instruction, slot, registers, target),
        inverted=instruction.predicate is not None and instruction.predicate.inverted,
        results=results,
        stage=stage,
        into_predicate=_file_of_destination(instruction) in PREDICATES,
        vector=is_vector(instruction),
        depends=_depends(instruction, slot, target),
        reseeds=reseeds,
        samples=samples,
        random=_random_use(instruction, slot, target),
        program_counter=Special("PC") in instruction.operands,
        memory=instruction.form.memory,
        accesses=_global_accesses(instruction, target),
    )


def _in_cells(instruction: TpcInstruction) -> Iterator[tuple[OperandSpec, Register | Special]]:
    """Yield the operands that registers hold: no immediates, random generators or lane numbers."""
    for spec, operand in instruction.specified:
        if isinstance(operand, Register) or (isinstance(operand, Special) and operand.name not in (*RANDOM, *CONSTANT)):
            yield spec, operand


def _generators(instruction: TpcInstruction) -> tuple[str | None, GeneratorRead | None]:
    """Return the random generator that an instruction writes as a register, and the one that it reads as one."""
    reseeds, samples = None, None
    for spec, operand in instruction.specified:
        if isinstance(operand, Special) and operand.name in RANDOM:
            if spec.role == "dest":
                reseeds = operand.name
            else:
                samples = RANDOM[operand.name]
    return reseeds, samples


def _check_writable(operand: Register | Special, instruction: TpcInstruction) -> None:
    if is_constant(operand):
        raise IllegalError(f"{operand} is always true and cannot be written", span=instruction.span)


def _accumulators(
    instruction: TpcInstruction, slot: Slot, cells: tuple[RegisterCell, ...], file: str, target: VliwTarget
) -> tuple[OperandPlan, ...]:
    """Return the destination as an operand if the instruction reads it."""
    if instruction.form.accumulator is None:
        return ()
    return (OperandPlan(ACCUMULATOR, cells, read_distances(target, slot, instruction, ACCUMULATOR, file)),)


def _random_use(instruction: TpcInstruction, slot: Slot, target: VliwTarget) -> Use:
    """Return when an instruction reads and advances the generator of its unit; at once if the tables do not state it.

    They state when conversions advance it, not when a MOV that reads it does.
    """
    source = instruction.operand("src_a")
    moved = source.name if isinstance(source, Special) and source.name in RANDOM else None
    name = moved or ("S_LFSR" if slot is Slot.SPU else "LFSR")
    key = operand_key(target, slot, instruction, "src_a", name)
    if target.latencies.row(key) is None:
        return Use(STORED, constant(0))
    commit = STORED if moved else target.latencies.commit(replace(key, random=True))
    return Use(commit, read_distances(target, slot, instruction, "src_a", name))


def in_multiplier(instruction: TpcInstruction, target: VliwTarget) -> bool:
    """Return whether a float result comes from the multiplier pipe: products, and sums of some formats."""
    if instruction.type is None or "f" not in instruction.type:
        return False
    paired = instruction.switch("x2") == 1
    sums = instruction.mnemonic in _SUMS and (instruction.type in target.issue_rules.multiplier_sums or paired)
    return instruction.mnemonic in target.issue_rules.multiplier_products or sums


def rounds_by_register(instruction: TpcInstruction) -> bool:
    """Return whether an instruction is arithmetic on floats, which takes its rounding mode from a register."""
    return instruction.mnemonic in _ARITHMETIC and instruction.type is not None and "f" in instruction.type


_KEEPING = ("pack", "unpack", "mov_dg", "mov_dg.all", "mov_dg.unpack", "mov_g")


def keeps_income(instruction: TpcInstruction) -> bool:
    """Return whether part of the destination may keep its old value."""
    if instruction.predicate is not None or instruction.mnemonic in _KEEPING:
        return True
    if instruction.form.half is not None or instruction.switch("partial"):
        return True
    if instruction.operand("section") is not None:
        return True
    mask = instruction.operand("mask")
    if mask is not None:
        return not isinstance(mask, DimensionMask) or mask.bits != 0b11111
    if instruction.form.family is Family.CONVERSION and instruction.switch("lane_sel") is not None:
        return instruction.switch("num_lanes") != "all_lanes" and _narrows(instruction)
    return False


def _narrows(instruction: TpcInstruction) -> bool:
    """Return whether a conversion writes narrower elements than it reads; the integer ones always do."""
    to = instruction.switch("target_type")
    if to is None or instruction.type is None:
        return True
    return FORMATS[str(to)].bits < FORMATS[instruction.type].bits


def _global_accesses(instruction: TpcInstruction, target: VliwTarget) -> tuple[int, int]:
    """Return how many accesses of the documented size an instruction makes in global memory, loads and stores."""
    memory, count = instruction.form.memory, 1
    if memory not in (*_ELEMENTS, *TENSORS):
        return 0, 0
    if memory in TENSORS:
        halves = 1 if instruction.form.half is None else 2
        count = -(-target.registers.vector_bytes // halves // target.global_memory.access_bytes)
    return (memory in LOADS) * count, (memory in STORES) * count


def _predicate(instruction: TpcInstruction, slot: Slot, registers: Registers, target: VliwTarget) -> OperandPlan | None:
    if instruction.predicate is None:
        return None
    register = instruction.predicate.register
    distances = read_distances(target, slot, instruction, PREDICATE, str(register.file))
    return OperandPlan(PREDICATE, registers.cells(register), distances)


def _file_of_destination(instruction: TpcInstruction) -> File | None:
    operand = instruction.operand("dest")
    return operand.file if isinstance(operand, Register) else None


def _depends(instruction: TpcInstruction, slot: Slot, target: VliwTarget) -> tuple[str, ...]:
    """Return the configuration registers that the values may depend on."""
    settings = []
    if instruction.switch("rounding") == "csr":
        settings.append("convert_round" if "convert_round" in target.configuration else "round")
    kinds = (instruction.type, instruction.switch("target_type"))
    settings += [f"{kind}_bias" for kind in kinds if f"{kind}_bias" in target.configuration]
    if rounds_by_register(instruction):
        settings.append("round")
        if instruction.type == "f16" and "f16_flush_inputs" in target.configuration:
            settings.append("f16_flush_inputs")
    steps = instruction.operand("src_a") in (Special("LFSR"), Special("S_LFSR"))
    if instruction.draws or steps:
        scalar = slot is Slot.SPU or instruction.operand("src_a") == Special("S_LFSR")
        settings.append(SCALAR_LFSR if scalar else VECTOR_LFSR)
    return tuple(settings)


Beside = tuple[InstructionPlan, OperandPlan, InstructionPlan]
"""A reader, its operand, and the writer of that register in the same bundle."""


def read_beside(plans: tuple[InstructionPlan, ...]) -> tuple[Beside, ...]:
    """Return the operands whose register a later slot of the same bundle writes.

    Slots are executed in order, so an operand sees a pending write of an earlier slot;
    these are the others. All of them get the old value.
    """
    pairs: list[Beside] = []
    for position, reader in enumerate(plans):
        for operand in reader.operands:
            names = {cell.name for cell in operand.cells}
            pairs += [(reader, operand, writer) for writer in plans[position + 1 :] if names & writer.written]
    return tuple(pairs)
