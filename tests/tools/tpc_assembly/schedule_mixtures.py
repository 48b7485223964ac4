"""Random texts of all kinds of instructions, in real registers and with virtual ones in their place.

A text is written in real registers, with a long wait behind every instruction: that is its sequential meaning. The text
to be scheduled is the same with names for most of the registers.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from kit.tpc_random_instructions import some_instruction
from kit.tpc_text import target as target_of

from castsim.isa.errors import CastsimError
from castsim.isa.tpc.forms import Dialect, Form
from castsim.isa.tpc.instructions import FORMS, available
from castsim.isa.tpc.parser import parse, print_instruction
from castsim.isa.tpc.program import GROUPED, DimensionMask, File, Immediate, Operand, Register, Slot, TpcInstruction
from castsim.machines.vliw.plans import NotComputed, computes, prepare, prepared
from castsim.machines.vliw.storage import Registers

WAIT = "nop; nop; nop; nop\n" * 16
_REAL: Mapping[str, tuple[int, ...]] = {
    "V": (28, 29, 30, 31, 33), "S": (12, 13, 14, 15), "I": (8,), "SP": (0, 6), "VP": (0, 6), "AD": (3,),
}  # fmt: skip
"""Registers that keep their numbers."""
_TOKEN = re.compile(r"\b(VP|SP|AD|[VDASZI])(\d+)\b")


def waiting(text: str) -> str:
    """The text in its sequential meaning: a long wait behind every instruction."""
    found = []
    for line in text.splitlines():
        plain = line.startswith("//") or line.endswith(":")
        found.append(f"{line}\n" if plain else "nop; halt; halt; nop\n" if line == "halt" else f"{line}\n{WAIT}")
    return "".join(found)


def named(text: str) -> str:
    """The text with virtual registers in place of all but some real ones."""
    lines = []
    for line in text.splitlines():
        outside = line.startswith("//") and " reg " not in line
        lines.append(line if outside else _TOKEN.sub(_virtual, line))
    return "\n".join(lines) + "\n"


def _virtual(found: re.Match[str]) -> str:
    file, number = found[1], int(found[2])
    whole = {"D": "V", "A": "V", "Z": "S"}.get(file, file)
    if number in _REAL.get(whole, ()) or (whole == "S" and (number >= 27)):
        return found[0]
    if whole == "V" and 12 <= number < 28:
        start = number - number % 4 if number >= 20 else number - number % 2
        member = f".{number - start}" if file == "V" else ""
        return f"%{file.lower()}.g{start}{member}"
    if whole == "S" and 8 <= number < 12 and not (number == 11 and file == "S"):
        start = number - number % 2
        return f"%{file.lower()}.g{start}{f'.{number - start}' if file == 'S' else ''}"
    return f"%{file.lower()}.r{number}"


ENTRIES = 64
"""As many as `upper_half` asks for."""


@dataclass(frozen=True)
class Table:
    """A table; `number` counts the tables of its size."""

    number: int
    format: str
    columns: int

    def function(self, generation: str) -> int:
        """The function id: upper bits 2 are 64 entries, of 16 numbers on Goya and 128 later."""
        return 2 * (16 if generation == "goya" else 128) + self.number

    @property
    def pointer(self) -> int:
        """What the register of `lut_ptr` holds: four times the number, and 2 for 64 entries."""
        return 4 * self.number + 2


ONE, THREE, SHORT, PAIR = TABLES = (Table(0, "i32", 1), Table(1, "f32", 3), Table(2, "i16", 1), Table(3, "bf16", 2))


def declarations(generation: str, rng: random.Random) -> list[str]:
    """The lines that declare the tables, with random contents."""
    found = []
    for table in TABLES[:2] if generation == "goya" else TABLES:
        bits = 16 if table in (SHORT, PAIR) else 32
        values = ", ".join(f"{rng.getrandbits(bits):#x}" for _ in range(ENTRIES * table.columns))
        shape = f"[{ENTRIES}]" if table.columns == 1 else f"[{table.columns}, {ENTRIES}]"
        found.append(
            f"// castsim: table t{table.number} {table.function(generation)} {table.format} {shape} = {values}"
        )
        if generation in ("greco", "gaudi2"):
            found.append(f"// castsim: table p{table.number} lut_ptr {table.pointer} {table.format} {shape} = {values}")
    return found


def table_of(instruction: TpcInstruction, generation: str) -> Table:
    """A table that a look-up may read."""
    one = instruction.mnemonic in ("lookup", "lookup_1c", "lookup_c0")
    if generation != "goya" and instruction.switch("entries") == "bv16":
        return SHORT if one else PAIR
    return ONE if one else THREE


def index_mask(instruction: TpcInstruction) -> int:
    """What leaves of every lane the number of an entry, of half a table at most."""
    word = str(instruction.switch("entries"))
    return 0x1F if word == "bv32" else 0x001F001F if word.startswith("bv16") else 0x1F1F1F1F


_HARDWARE = ("M0", "M1", "M2", "M3", "LD_TNSR_ID_REG", "ST_TNSR_ID_REG", "ST_RMW_REG", "LD_PARTIAL_REG",
             "ST_PARTIAL_REG")  # fmt: skip
_SKIPPED = ("loop", "jmpr", "jmpa", "halt", "prefetch")


@cache
def rows(generation: str) -> Mapping[str, tuple[Form, ...]]:
    """The rows of the table that a text may use by themselves, by mnemonic: no memory, no control."""
    found: dict[str, list[Form]] = {}
    language = target_of(generation).dialect
    for form in FORMS:
        known = form.mnemonic not in _SKIPPED and form.memory is None and available(form, language)
        words = {word for spec in form.operands for word in spec.accepts}
        if known and words.isdisjoint((*_HARDWARE, "PC")) and not ("Z" in words and "AD" in form.operands[0].accepts):
            found.setdefault(form.mnemonic, []).append(form)
    return {name: tuple(each) for name, each in found.items()}


@dataclass
class Known:
    """The registers that have values on every way to a place, by file."""

    V: set[int] = field(default_factory=set)
    SP: set[int] = field(default_factory=lambda: {0})
    VP: set[int] = field(default_factory=lambda: {0})
    AD: set[int] = field(default_factory=set)

    def copy(self) -> Known:
        return Known(set(self.V), set(self.SP), set(self.VP), set(self.AD))

    def holds(self, register: Register) -> bool:
        whole, size = GROUPED.get(register.file, (register.file, 1))
        known = getattr(self, whole.value, None)
        return known is None or set(range(register.index, register.index + size)) <= known

    def add(self, register: Register) -> None:
        whole, size = GROUPED.get(register.file, (register.file, 1))
        if hasattr(self, whole.value):
            getattr(self, whole.value).update(range(register.index, register.index + size))


def is_vector(operand: Operand) -> bool:
    return isinstance(operand, Register) and operand.file is File.V


ROWS = 16
_FEW: Mapping[str, tuple[int, ...]] = {
    "V": (0, 1, 2, 3, 4, 5, 28, 29), "D": (12, 14, 30), "A": (20,), "S": (0, 1, 2, 12), "Z": (8, 14), "I": (4, 8),
    "SP": (0, 1, 2, 6), "VP": (0, 1, 2, 6), "AD": (1, 3),
}  # fmt: skip
_MANY: Mapping[str, tuple[int, ...]] = {
    "V": (*range(12), *range(28, 40)), "D": (12, 14, 16, 18, 30), "A": (20, 24),
    "S": (0, 1, 2, *range(12, 26)), "Z": (8, 10, 14), "I": tuple(range(4, 32)),
    "SP": tuple(range(16)), "VP": tuple(range(16)), "AD": (1, 2, 3, 4, 5, 6, 7),
}  # fmt: skip
"""Registers of a text with few and with nearly all of them. Others: S4 to S7 and S26 hold addresses and ranges, I0 to
I3 coordinates, S11 counts a loop by a jump."""
_OFTEN = (*("mov",) * 8, *("convert",) * 5, *("mac", "madd", "mul", "add") * 2)
"""What stands in texts more often than other instructions, with many rows of their own."""
_ROUNDING = {"goya": 0x7FC, "gaudi": 0x8FC, "gaudib": 0x8FC, "greco": 0xCA8, "gaudi2": 0xCA8}


class Mixture:
    """Writes one random text in real registers."""

    def __init__(self, seed: int, generation: str) -> None:
        self.rng = random.Random(seed)
        self.generation = generation
        self.chip = target_of(generation)
        self.language = self.chip.dialect
        self.registers = Registers(self.chip)
        self.crowded = self.rng.random() < 0.25
        self.choices = _MANY if self.crowded else _FEW
        self.known = Known()
        self.lines: list[str] = []
        self.depth = 0
        self.labels = 0

    def text(self) -> str:
        rng = self.rng
        self.start()
        self.block(rng.randint(3, 10))
        for _ in range(rng.choice((0, 1, 1, 2))):
            rng.choice((self.loop, self.loop, self.loop, self.skip, self.back))()
            self.block(rng.randint(0, 5))
        self.end()
        return "\n".join([*self.head(), *self.lines, "halt", ""])

    def head(self) -> list[str]:
        declared = {1: "S0", 2: "S1", 3: "S2", 0x100: "S4", 0x1100: "S5", 0x10: "S6", 0x1F05: "S7", 0: "S26"}
        others = [f"S{k}" for k in (8, 9, 10, 11, 12, 13, 14, 15, *(range(16, 26) if self.crowded else ()))]
        values = {name: value for value, name in declared.items()}
        values |= {name: self.rng.choice((0, 5, 0x3F800000, 0x40200000, self.rng.getrandbits(32))) for name in others}
        indices = range(4, 32) if self.crowded else (4, 8)
        return [
            f"// castsim: target {self.generation}",
            *(declarations(self.generation, self.rng) if any("lookup" in line for line in self.lines) else ()),
            f"// castsim: tensor 0 x in f32 [64, {ROWS}]",
            f"// castsim: tensor 1 y inout i32 [64, {ROWS}]",
            f"// castsim: tensor 2 b inout i8 [256, {ROWS}]",
            f"// castsim: tensor 3 h inout i16 [128, {ROWS}]",
            "// castsim: vlm 0x0 m in u32 [64, 8]",
            "// castsim: vlm 0x1000 n inout u32 [64, 8]",
            *(f"// castsim: reg {name} = {value:#x}" for name, value in values.items()),
            *(f"// castsim: reg I{k} = [0, {k}, 0, 0, 0]" for k in range(4)),
            *(f"// castsim: reg I{k} = [{self.rng.randrange(64)}, 1, 0, 0, 0]" for k in indices),
        ]

    def add(self, line: str) -> None:
        self.lines.append(line)

    # ---------------------------------------------------------------------------------------------------- beginning

    def start(self) -> None:
        """Fill some registers."""
        wanted = list(self.choices["V"]) if self.crowded else [0, 1, 2, 28]
        wanted += self.rng.sample([12, 13, 14, 15, 20, 21, 22, 23, 30, 31], 4)
        for number in wanted:
            self.load(number)
        for number in self.choices["AD"]:
            self.line("gen_addr", AD=number)

    def line(self, mnemonic: str, **at: int) -> None:
        """Add an address of an element of a tensor."""
        typed = " dt=int32" if self.generation in ("greco", "gaudi2") else ""
        self.add(f"{mnemonic}{typed} AD{at['AD']}, 1, I{self.rng.randrange(4)}")
        self.known.AD.add(at["AD"])

    def end(self) -> None:
        """Store some of what there is."""
        for number in self.rng.sample(sorted(self.known.V), min(3, len(self.known.V))):
            self.add(f"st_tnsr 1, I{self.rng.randrange(4)}, V{number}")
            self.add(f"add.i32 b00010 I{self.rng.randrange(4)}, 1, I{self.rng.randrange(4)}")
        for number in self.rng.sample(self.choices["S"], 3):
            self.add(f"mov.i32 V0, S{number}")
            self.add(f"st_tnsr 1, I{self.rng.randrange(4)}, V0")
            self.known.V.add(0)
        for number in self.rng.sample(sorted(self.known.VP), min(2, len(self.known.VP))):
            self.add("mov.i32 V1, 0")
            self.add(f"mov.i32 V1, 0x7, VP{number}")
            self.add(f"st_l_v {self.place(0x1700)}, V1")

    # ------------------------------------------------------------------------------------------------- instructions

    def block(self, size: int) -> None:
        for _ in range(size):
            if self.rng.random() < 0.3:
                self.memory()
            else:
                self.any()

    def any(self) -> None:
        """Add any instruction that neither accesses memory nor decides the path."""
        table, before = rows(self.generation), len(self.lines)
        while True:
            form = self.rng.choice(table[self.rng.choice([*table, *(each for each in _OFTEN if each in table)])])
            instruction = some_instruction(form, self.language, self.rng, self.register)
            instruction = replace(instruction, operands=tuple(self.fitting(instruction)))
            instruction = self.prepared(instruction)
            if self.legal(instruction):
                break
            del self.lines[before:]
        self.add(print_instruction(instruction))
        self.written(instruction)

    def register(self, file: str, language: Dialect, source: random.Random) -> Register:
        if file == "S" and self.depth and source.random() < 0.1:
            return Register(File.S, 31 + self.depth)
        return Register(File(file), source.choice(self.choices[file]))

    def fitting(self, instruction: TpcInstruction) -> list[Operand]:
        """The operands, with small numbers and those that 16-bit floats have."""
        narrow = instruction.type in ("bf16", "f16", "f8_143", "f8_152")
        limit = 0xFF if narrow or self.rng.random() < 0.5 else 0xFFFFFFFF
        number: Immediate | None = None  # a bundle has room for one
        found: list[Operand] = []
        for operand in instruction.operands:
            if isinstance(operand, Immediate):
                number = number or Immediate(operand.value & limit)
                found.append(number)
            else:
                found.append(operand)
        return found

    def prepared(self, instruction: TpcInstruction) -> TpcInstruction:
        """Give an instruction that takes certain values only an operand that has them."""
        roles = [spec.role for spec in instruction.form.operands]
        operands = list(instruction.operands)
        if instruction.mnemonic == "msac":  # shifts to the right
            self.add("mov.i32 V2, 0xf8f9fafb")
            self.known.V.add(2)
            operands[roles.index("src_c")] = Register(File.V, 2)
            last = operands[roles.index("src_d")]
            operands[roles.index("src_d")] = Immediate(0xFDFDFEFE) if not is_vector(last) else Register(File.V, 2)
        elif instruction.mnemonic == "prmt_indx":
            self.add(f"mov.i32 S0, {self.rng.choice((0o43210, 0o01234, 0o00112)):#x}")
            operands[roles.index("src_b")] = Register(File.S, 0)
        elif instruction.mnemonic.startswith("lookup"):
            table = table_of(instruction, self.generation)
            self.add(f"and.i32 V2, V{self.rng.choice(sorted(self.known.V))}, {index_mask(instruction):#x}")
            self.known.V.add(2)
            operands[roles.index("src_a")] = Register(File.V, 2)
            if "function" in roles:
                operands[roles.index("function")] = Immediate(table.function(self.generation))
            else:
                self.add(f"mov.i32 S0, {table.pointer}")
                operands[roles.index("src_b")] = Register(File.S, 0)
        return replace(instruction, operands=tuple(operands))

    def legal(self, instruction: TpcInstruction) -> bool:
        dest = instruction.operand("dest")
        if DimensionMask(0) in instruction.operands:
            return False
        if isinstance(dest, Register) and (f"{dest}" in ("SP0", "VP0") or f"{dest}" in ("S32", "S33", "S34")):
            return False
        specs = zip(instruction.form.operands, instruction.operands, strict=True)
        read = [each for spec, each in specs if isinstance(each, Register) and spec.role != "dest"]
        read += [instruction.predicate.register] if instruction.predicate else []
        if instruction.form.accumulator is not None and isinstance(dest, Register):
            read.append(dest)
        if not all(map(self.known.holds, read)):
            return False
        try:
            slot = Slot(instruction.form.slots[0])
            again = parse(print_instruction(instruction) + "\n", self.language).bundles[0]
            found = next(each for each in again.slots if each is not None)
            plan = prepared(found, 0, slot, self.registers, self.chip)
            unit = prepare(found, self.chip).unit if computes(found) else None
        except CastsimError:
            return False
        sizes = {len(each.cells) for each in plan.sources if each.cells[0].file is File.V}
        spelled = {GROUPED.get(each.file, ("", 1))[1] for each in read if str(each.file) in "VDA"}
        if isinstance(dest, Register) and len(plan.results) != GROUPED.get(dest.file, ("", 1))[1]:
            return False  # a group that the text names as one register
        return not isinstance(unit, NotComputed) and sizes <= {*spelled, 1}

    def written(self, instruction: TpcInstruction) -> None:
        dest = instruction.operand("dest")
        if isinstance(dest, Register):
            self.known.add(dest)

    # ------------------------------------------------------------------------------------------------------- memory

    def place(self, address: int) -> str:
        """An address of local memory, in two parts on the first generation."""
        return f"{address:#x}, S26" if self.generation == "goya" else f"{address:#x}"

    def anywhere(self) -> str:
        """An address of local memory, by a number or a register."""
        rng = self.rng
        by = rng.choice(("S4, 0", "S5, 0") if self.generation == "goya" else ("S4", "S5"))
        return by if rng.random() < 0.4 else self.place(rng.choice((0x100, 0x200, 0x1000, 0x1100)))

    def guard(self, *files: str) -> str:
        """A predicate, or nothing."""
        if self.rng.random() > 0.25:
            return ""
        file = self.rng.choice(files)
        number = self.rng.choice(sorted(getattr(self.known, file)))
        return f", {self.rng.choice(('', '!')) if number else '!'}{file}{number}"

    def load(self, number: int) -> None:
        rng = self.rng
        kind = rng.randrange(6)
        guard = self.guard("SP") if number in self.known.V else ""
        if kind < 2 or (number not in self.known.V and kind > 3):
            self.add(f"ld_tnsr V{number}, {rng.choice((0, 1))}, I{rng.randrange(4)}{guard}")
        elif kind < 4:
            self.add(f"ld_l_v{rng.choice(('', '_low', '_high'))} V{number}, {self.anywhere()}{guard}")
        elif kind == 4:
            self.add(f"ld_tnsr_{rng.choice(('low', 'high'))} V{number}, 0, I{rng.randrange(4)}{guard}")
        elif self.generation in ("greco", "gaudi2"):
            self.add(f"ld_tnsr UNPCK_8_TO_16 unpack V{number}, 2, I{rng.randrange(4)}{guard}")
        self.known.V.add(number)

    def memory(self) -> None:
        rng, value = self.rng, self.rng.choice(sorted(self.known.V))
        kind = rng.randrange(12)
        if kind < 3:
            self.load(rng.choice(self.choices["V"]))
        elif kind < 5:
            self.add(f"st_tnsr {rng.choice((1, 1, 2))}, I{rng.randrange(4)}, V{value}{self.guard('SP')}")
        elif kind == 5:
            self.add(f"st_l_v{rng.choice(('', '_low', '_high'))} {self.anywhere()}, V{value}{self.guard('SP')}")
        elif kind == 6 and self.generation != "goya":
            word = "PCK_16_TO_8 " if self.generation in ("greco", "gaudi2") else ""
            self.add(f"st_tnsr {word}pack {2 if word else 3}, I{rng.randrange(4)}, V{value}{self.guard('SP')}")
        elif kind == 7:
            self.add(rng.choice(("ld_l S{0}, 0x10{1}", "ld_l S{0}, S6{1}", "ld_l SP2, 0x14", "st_l 0x10, S{0}{1}",
                                 "st_l S6, S{0}{1}", "st_l 0x14, S{0}")).format(rng.choice(self.choices["S"]),
                                                                               self.guard("SP")))  # fmt: skip
            self.known.SP |= {2} if self.lines[-1].startswith("ld_l SP2") else set()
        elif kind == 8:
            self.scattered()
        elif kind == 9:
            self.mapped()
        elif kind == 10:
            self.add(f"add.i32 b{rng.choice(('00010', '00001'))} I{rng.randrange(4)}, 1, I{rng.randrange(4)}")
        else:
            self.hardware()

    def scattered(self) -> None:
        """Elements of tensors."""
        number = self.rng.choice(sorted(self.known.AD))
        kinds = ["ld_g S{}, AD{}", "st_g AD{1}, S{0}"]
        if self.rng.random() < 0.4:
            self.line("gen_addr", AD=number)
        self.add(self.rng.choice(kinds).format(self.rng.choice(self.choices["S"]), number))

    def mapped(self) -> None:
        """The rounding register."""
        address = _ROUNDING[self.generation]
        if self.rng.random() < 0.6:
            self.add(f"mov.i32 S1, {self.rng.choice((0, 1, 2, 3))}")
            self.add(f"st_l mmio {address:#x}, S1")
        else:
            self.add(f"ld_l mmio S{self.rng.choice(self.choices['S'])}, {address:#x}")

    def hardware(self) -> None:
        """Registers with names, and accesses by them."""
        value = self.rng.choice(sorted(self.known.V))
        index = f"I{self.rng.randrange(4)}"
        if self.generation in ("greco", "gaudi2"):
            kinds = (
                ["mov.i32 S0, 5", "mov M1, S0", "mov M1 I4, I8"],
                ["mov LD_PARTIAL_REG, S7", f"ld_tnsr partial V{value}, 0, {index}, LD_PARTIAL_REG"],
                ["mov ST_PARTIAL_REG, S7", f"st_tnsr partial 1, {index}, V{value}, ST_PARTIAL_REG"],
                ["mov.i32 S0, 1", "mov LD_TNSR_ID_REG, S0", f"ld_tnsr V{value}, LD_TNSR_ID_REG, {index}"],
                ["mov S2, LD_PARTIAL_REG"],
            )
        elif self.generation == "goya":
            return
        else:
            kinds = (
                ["mov.i32 S30, S7", f"ld_tnsr V{value}, 0, {index}, S30"],
                ["mov.i32 S31, S7", f"st_tnsr partial 1, {index}, V{value}, S31"],
                ["mov.i32 S27, 1", f"ld_tnsr V{value}, S27, {index}"],
            )
        for line in self.rng.choice(kinds):
            self.add(line)

    # --------------------------------------------------------------------------------------------------------- path

    def label(self) -> str:
        self.labels += 1
        return f"L_{self.labels}"

    def loop(self) -> None:
        """A hardware loop of 0 to 9 trips, at most three deep."""
        rng, label, before = self.rng, self.label(), self.known.copy()
        trips = rng.choice((0, 1, 2, 3, 4, 6, 9))
        bounds = rng.choice((f"0, {trips}, 1, <", f"{trips}, 0, -1, >", f"0, {2 * trips}, 2, !="))
        if self.depth == 0 and rng.random() < 0.2:
            self.add(f"mov.i32 S11, {trips}")
            bounds = "0, S11, 1, <"
        self.add(f"loop {bounds}, {label}{self.guard('SP') if rng.random() < 0.3 else ''}")
        self.depth += 1
        self.block(rng.randint(2, 8))
        if self.depth < 3 and rng.random() < 0.25:
            self.loop()
        if rng.random() < 0.15:
            self.skip()
            self.memory()
            self.add("add.i32 S2, S2, 1")
        self.block(rng.randint(0, 3))
        if rng.random() < 0.6:
            value = rng.choice(sorted(self.known.V))
            self.add(f"st_tnsr 1, I1, V{value}")
            self.add("add.i32 b00010 I1, 1, I1")
        self.depth -= 1
        self.add(f"{label}:")
        self.known = before

    def skip(self) -> None:
        """Instructions that a jump passes over."""
        label, before = self.label(), self.known.copy()
        number = self.rng.choice(sorted(self.known.SP))
        self.add(f"jmpr {label}, {'' if number else '!'}SP{number}")
        self.block(self.rng.randint(1, 5))
        self.known = before
        self.add(f"{label}:")

    def back(self) -> None:
        """A loop by a jump."""
        label = self.label()
        self.add("mov.i32 S11, 0")
        self.add(f"{label}:")
        self.block(self.rng.randint(1, 6))
        self.add("add.i32 S11, S11, 1")
        self.add(f"cmp_less.i32 SP1, S11, {self.rng.randint(1, 4)}")
        self.add(f"jmpr {label}, SP1")
        self.known.SP.add(1)


def mixture(seed: int, generation: str) -> str:
    """A random text in real registers."""
    return Mixture(seed, generation).text()
