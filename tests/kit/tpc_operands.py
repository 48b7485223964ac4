"""Every result and operand of the instructions that castsim has, as instructions and as the published tables name them.

The names of the tables (`described`) are found here anew, not taken from castsim.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from kit.published_latency import Operand as Described
from kit.tpc_text import dialect, table, target

from castsim.isa.tpc.forms import Form, OperandSpec, Predication
from castsim.isa.tpc.instructions import FORMS, available
from castsim.isa.tpc.program import DimensionMask, File, Immediate, Operand, Register, Slot, Special, TpcInstruction

NAMED = {
    "LFSR": "vpu_lfsr", "LFSR_NO_CHANGE": "vpu_lfsr_ro", "S_LFSR": "spu_lfsr", "S_LFSR_NO_CHANGE": "spu_lfsr_ro",
    "V_CARRY": "v_carry", "S_CARRY": "s_carry", "ZP_REG": "zp", "PC": "pc", "DIV_STEP": "div_step",
    "M0": "irf_dim_mask0",
    "M1": "irf_dim_mask1", "M2": "irf_dim_mask2", "M3": "irf_dim_mask3", "LD_TNSR_ID_REG": "ld_tnsr_id",
    "ST_TNSR_ID_REG": "st_tnsr_id", "ST_RMW_REG": "st_rmw", "LD_PARTIAL_REG": "ld_partial",
    "ST_PARTIAL_REG": "st_partial",
    **{f"SQZ_CNTR{number}_{half}": f"sqz_cntr{number}_{half.lower()}" for number in range(8) for half in ("LO", "HI")},
}  # fmt: skip
NO_REGISTER = ("imm", "label", "mask", "compare", "V_LANE_ID_32", "V_LANE_ID_16", "V_LANE_ID_8")
IMPLICIT_SCALARS = ("S27", "S28", "S29", "S30", "S31")
FLOATS = ("f32", "bf16", "f16", "f8_143", "f8_152")
PAIRED = ("add", "sub", "mul", "mac", "madd", "lookup_1c", "lookup_2c")
"""Instructions whose pair form has rows or rules of its own."""
GROUPS = {"D": "V", "A": "V", "Z": "S"}


@dataclass(frozen=True)
class Place:
    """A result (`dest`) or operand of an instruction; `file` is a register file or a name."""

    slot: Slot
    instruction: TpcInstruction
    role: str
    file: str

    @property
    def read(self) -> str:
        """What registers it means: a file without groups, or a name."""
        return NAMED.get(self.file, GROUPS.get(self.file, self.file))


@cache
def opcodes() -> dict[tuple[str, str], int]:
    return {(row["slot"], row["mnemonic"].lower()): int(row["opcode"], 16) for row in table("tpc_opcodes.csv")}


def described(place: Place) -> Described:
    """The place as the columns of tpc_stages.csv."""
    slot, instruction = place.slot.name.lower(), place.instruction
    is_result, kind, dest = place.role == "dest", instruction.type, instruction.operand("dest")
    name = NAMED.get(place.file)
    if name is not None:
        operand = f"{'dst' if is_result else 'src'}_{name}"
    elif is_result:
        operand = "dst"
    elif place.role == "accumulator":  # the fifth operand of MSAC, the third of everything else
        operand = "src_e" if instruction.mnemonic == "msac" else "src_c"
    else:
        operand = {"start": "src_a", "bound": "src_b", "step": "src_c"}.get(place.role, place.role)
    flags = set()
    if kind in FLOATS:
        flags.add("is_float")
    if kind == "f16":
        flags.add("is_f16")
    if kind in ("f8_143", "f8_152"):
        flags.add("is_f8")
    if isinstance(dest, Register) and dest.file is File.I:
        flags.add("irf_dest")
    if instruction.switch("x2") == 1 and instruction.mnemonic in PAIRED:
        flags.add("x2")
    if is_result and place.file == "Z":
        flags.add("two_s_dest")
    into_vector = str(dest).startswith(("V", "D", "A", "Z", "LFSR")) and not str(dest).startswith(("AD", "DIV"))
    into_vector = into_vector and not (isinstance(dest, Register) and dest.file is File.Z)
    if not is_result and (slot == "vpu" or into_vector):
        flags.add("vector_pipe")
    mnemonic = "mov_dg" if instruction.mnemonic.startswith("mov_dg") else instruction.mnemonic
    return {
        "slot": slot, "opcode": opcodes()[slot, mnemonic], "operand": operand,
        "file": "hw" if name else GROUPS.get(place.file, place.file), "flags": frozenset(flags), "type": kind,
        "dest": dest.index if isinstance(dest, Register) else 0, "acc_fp32": instruction.switch("acc_fp32") == 1,
    }  # fmt: skip


def places(generation: str) -> Iterator[Place]:
    """All results and operands that distances of stages concern, of every form, slot, type and register file."""
    chip, language = target(generation), dialect(generation)
    for form in FORMS:
        if not available(form, language) or form.mnemonic == "rounded":  # castsim's own, in no table
            continue
        kinds = [kind for kind in form.types if kind == "b" or kind in chip.elements.formats] or [None]
        for kind in kinds:
            for instruction in _instructions(form, kind, generation):
                for slot in form.slots:
                    yield from _of(instruction, Slot(slot), generation)


def _instructions(form: Form, kind: str | None, generation: str) -> Iterator[TpcInstruction]:
    """One instruction per register file of the destination."""
    dests = next((spec.accepts for spec in form.operands if spec.role == "dest"), (None,))
    for dest in dests:
        operands = tuple(
            _operand(dest if spec.role == "dest" and dest else spec.accepts[0], spec, generation)
            for spec in form.operands
        )
        yield TpcInstruction(form=form, type=kind, switches=(), operands=operands)


def _operand(word: str, spec: OperandSpec, generation: str) -> Operand:
    word = _named(word, generation)
    if word == "mask":
        return DimensionMask(1)
    if word in NO_REGISTER[:4]:
        return Immediate(0)
    if word in File.__members__:
        return Register(File(word), 4 if word in GROUPS else 1)
    return Register(File.S, int(word[1:])) if word in IMPLICIT_SCALARS else Special(word)


def _named(word: str, generation: str) -> str:
    return dialect(generation).tensor_registers[word[1:]] if word.startswith("@") else word


def _of(instruction: TpcInstruction, slot: Slot, generation: str) -> Iterator[Place]:
    form = instruction.form
    for spec in form.operands:
        for word in spec.accepts:
            file = _named(word, generation)
            if spec.role == "dest":
                dest = instruction.operand("dest")
                if file == (dest.file if isinstance(dest, Register) else str(dest)):
                    yield Place(slot, instruction, "dest", file)
                    if form.accumulator is not None:
                        yield Place(slot, instruction, "accumulator", file)
            elif file not in (*NO_REGISTER, *IMPLICIT_SCALARS):
                yield Place(slot, instruction, spec.role, file)
    if form.predication is not Predication.NONE:
        yield Place(slot, instruction, "predicate", "SP")
    feature = form.vector_predicate
    if form.predication is Predication.VECTOR or (feature and target(generation).features.has[feature]):
        yield Place(slot, instruction, "predicate", "VP")
