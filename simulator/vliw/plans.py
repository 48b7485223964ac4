"""Instructions of a program, prepared for being issued many times: cells, distances and stages looked up once."""

from __future__ import annotations

from dataclasses import dataclass

from isa.errors import IllegalError
from isa.tpc import Instruction, Program, Register, Slot, Special
from isa.tpc.program import File
from simulator.vliw.findings import Site
from simulator.vliw.latency import Distances, commit_stage, constant, read_distances
from simulator.vliw.registers import CONSTANT, INCOME, RANDOM, Cell, Registers, is_constant
from simulator.vliw.semantics import Prepared, computes, prepare
from targets.vliw import VliwTarget

PREDICATE = "predicate"
_VECTOR_FILES = (File.V, File.D, File.A, File.VP)
_VECTOR_NAMES = ("LFSR", "V_CARRY", "ZP_REG")
_MEMORY = ("ld_l", "st_l", "ld_g", "st_g", "ld_tnsr", "st_tnsr", "gen_addr")
_ARITHMETIC = ("add", "sub", "mul")


@dataclass(frozen=True, slots=True)
class OperandPlan:
    """A register operand: its cells, one or those of a group, and from which distance on it sees their writes."""

    role: str
    cells: tuple[Cell, ...]
    distances: Distances


@dataclass(frozen=True, slots=True)
class InstructionPlan:
    """One instruction, looked up.

    `results` are the cells of the destination (none for stores, jumps and reseeds), `stage` their commit stage.
    `income` reads the destination's old value. `depends` names the configuration registers that its values may depend
    on, `reseeds` and `samples` the random generator that it writes or reads as a register. `meaning` computes the
    result; accesses of memory and control have none. `accesses` counts loads and stores of global memory.
    """

    site: Site
    meaning: Prepared | None
    sources: tuple[OperandPlan, ...]
    income: OperandPlan | None
    predicate: OperandPlan | None
    inverted: bool
    results: tuple[Cell, ...]
    stage: int
    into_predicate: bool
    vector: bool
    depends: tuple[str, ...]
    reseeds: str | None
    samples: str | None
    program_counter: bool
    accesses: tuple[int, int]

    @property
    def instruction(self) -> Instruction:
        """The instruction itself."""
        return self.site.instruction

    @property
    def is_memory(self) -> bool:
        """Whether it accesses memory or makes an address; what is neither this nor has a meaning decides the path."""
        return self.instruction.mnemonic.startswith(_MEMORY)


def planned(program: Program, registers: Registers, target: VliwTarget) -> tuple[tuple[InstructionPlan, ...], ...]:
    """Prepare the instructions of every bundle. Errors as `prepared`."""
    return tuple(
        tuple(
            prepared(instruction, index, Slot(slot), registers, target)
            for slot, instruction in enumerate(bundle.slots)
            if instruction is not None
        )
        for index, bundle in enumerate(program.bundles)
    )


def prepared(
    instruction: Instruction, bundle: int, slot: Slot, registers: Registers, target: VliwTarget
) -> InstructionPlan:
    """Prepare one instruction.

    Raises:
        IllegalError: not in the tables of the generation, a group that does not begin where it must, a constant
            written.
    """
    site = Site(bundle, slot, instruction)
    meaning = prepare(instruction, target) if computes(instruction) else None
    groups = {} if meaning is None else meaning.registers
    sources: list[OperandPlan] = []
    results: tuple[Cell, ...] = ()
    income, samples, reseeds, stage, counter = None, None, None, 0, False
    for spec, operand in zip(instruction.form.operands, instruction.operands, strict=True):
        if not isinstance(operand, Register | Special):
            continue
        if isinstance(operand, Special) and operand.name in (*RANDOM, *CONSTANT):
            counter |= operand.name == "PC"
            if operand.name in RANDOM:
                reseeds, samples = (operand.name, samples) if spec.role == "dest" else (reseeds, operand.name)
            continue
        cells = tuple(cell for each in groups.get(spec.role, (operand,)) for cell in registers.cells(each))
        file = operand.name if isinstance(operand, Special) else str(operand.file)
        if spec.role == "dest":
            if is_constant(operand):
                raise IllegalError(f"{operand} is constantly true and cannot be written", span=instruction.span)
            results, stage = cells, commit_stage(target, slot, instruction, file)
            income = OperandPlan(INCOME, cells, constant(target.distances.tied_income))
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
        into_predicate=_file_of_destination(instruction) in (File.SP, File.VP),
        vector=_is_vector(instruction),
        depends=_depends(instruction, slot, target),
        reseeds=reseeds,
        samples=samples,
        program_counter=counter,
        accesses=_global_accesses(instruction, target),
    )


def _global_accesses(instruction: Instruction, target: VliwTarget) -> tuple[int, int]:
    """Return how many accesses of the documented size an instruction makes in global memory, loads and stores."""
    mnemonic, count = instruction.mnemonic, 1
    if mnemonic not in ("ld_g", "st_g"):
        halves = 2 if mnemonic.endswith(("_low", "_high")) else 1
        count = -(-target.registers.vector_bytes // halves // target.global_memory.access_bytes)
    loads, stores = mnemonic.startswith(("ld_g", "ld_tnsr")), mnemonic.startswith(("st_g", "st_tnsr"))
    return loads * count, stores * count


def _predicate(instruction: Instruction, slot: Slot, registers: Registers, target: VliwTarget) -> OperandPlan | None:
    if instruction.predicate is None:
        return None
    register = instruction.predicate.register
    distances = read_distances(target, slot, instruction, PREDICATE, str(register.file))
    return OperandPlan(PREDICATE, registers.cells(register), distances)


def _file_of_destination(instruction: Instruction) -> File | None:
    operand = instruction.operand("dest")
    return operand.file if isinstance(operand, Register) else None


def _is_vector(instruction: Instruction) -> bool:
    """Whether the result is a vector, a mask or a vector's state."""
    operand = instruction.operand("dest")
    if isinstance(operand, Special):
        return operand.name in _VECTOR_NAMES
    return isinstance(operand, Register) and operand.file in _VECTOR_FILES


def _depends(instruction: Instruction, slot: Slot, target: VliwTarget) -> tuple[str, ...]:
    """Return the configuration registers that the values may depend on."""
    found = []
    if instruction.switch("rounding") == "csr":
        found.append("convert_round" if "convert_round" in target.configuration else "round")
    kinds = (instruction.type, instruction.switch("target_type"))
    found += [f"{kind}_bias" for kind in kinds if f"{kind}_bias" in target.configuration]
    if instruction.mnemonic in _ARITHMETIC and instruction.type is not None and "f" in instruction.type:
        found.append("round")
        if instruction.type == "f16" and "f16_flush_inputs" in target.configuration:
            found.append("f16_flush_inputs")
    draws = str(instruction.switch("rounding")).startswith("sr")
    steps = instruction.operand("src_a") in (Special("LFSR"), Special("S_LFSR"))
    if draws or steps:
        scalar = slot is Slot.SPU or instruction.operand("src_a") == Special("S_LFSR")
        found.append("scalar_lfsr_polynomial" if scalar else "vector_lfsr_polynomial")
    return tuple(found)
