"""Random TPC assembly texts, binaries and ELF files."""

from __future__ import annotations

import struct
from functools import cache
from random import Random

from kit.tpc_random_instructions import some_instruction

from castsim.isa.errors import CastsimError
from castsim.isa.tpc.forms import Dialect, Form
from castsim.isa.tpc.instructions import FORMS, available
from castsim.isa.tpc.parser import print_program
from castsim.isa.tpc.program import Bundle, LabelDefinition, Slot, TpcProgram
from castsim.targets.vliw import VliwTarget
from castsim.tools.tpc_assembly.asm import encoded_target
from castsim.tools.tpc_binary.assembler import assemble
from castsim.tools.tpc_binary.encoding_tables import Encoding
from fuzz import seeds

GENERATIONS = ("goya", "gaudi", "gaudib", "greco", "gaudi2")

_DECLARATIONS = (
    "tensor 0 x in f32 [64, 16]", "tensor 1 y out bf16 [128, 8]", "tensor 0 z inout i8 [0, -1]",
    "reg I0 = [0, 1, 2, 0, 0]",
    "reg S4 = 0x10", "vlm 0x0 m in u32 [64, 8]", "table t lut_ptr 3 f32 [256, 4]", "reg V99 = 1", "target gaudi2",
    "tensor 99999999999 q in f32 [" + "9" * 30 + "]", "table u 7 f16 [4] = random:1",
)  # fmt: skip


@cache
def encoded(name: str) -> tuple[VliwTarget, Encoding]:
    return encoded_target(name)


def dialect_of(data: bytes) -> Dialect:
    """Return the language of the generation that a text names, by default of the newest."""
    found = next((name for name in reversed(GENERATIONS) if b"target " + name.encode() in data), "gaudi2")
    return encoded(found)[0].dialect


@cache
def _rows(name: str) -> tuple[Form, ...]:
    return tuple(form for form in FORMS if available(form, encoded(name)[0].dialect))


def _program(rng: Random, name: str) -> TpcProgram:
    language, items = encoded(name)[0].dialect, []
    for _ in range(rng.randint(1, 8)):
        form = rng.choice(_rows(name))
        slot = Slot(rng.choice(tuple(form.slots)))
        items.append(Bundle(**{slot.name.lower(): some_instruction(form, language, rng)}))
    return TpcProgram((), (*items, LabelDefinition("end")))


def text(rng: Random) -> bytes:
    """A text of random instructions of a generation, under declarations of which some are wrong."""
    name = rng.choice(GENERATIONS)
    lines = [f"// castsim: target {name}"]
    lines += [f"// castsim: {rng.choice(_DECLARATIONS)}" for _ in range(rng.choice((0, 0, 1, 3)))]
    body = print_program(_program(rng, name)).splitlines()
    if rng.random() < 0.3:
        body.insert(rng.randrange(len(body)), rng.choice((
            ".byte 0x1, 2, 300", "loop 0, 8, 1, <, end; nop; nop; nop", "jmpr end; nop; nop; nop", "{ nop; nop", "end:",
            "nop; nop; nop; nop; nop", "/* ", ".compressed", ".encoded 00ff", "halt",
        )))  # fmt: skip
    return "\n".join([*lines, *body, ""]).encode()


def binary(rng: Random) -> bytes:
    """Random instructions assembled, or random bits in the places of bundles."""
    target, encoding = encoded("gaudi2")
    if rng.random() < 0.5:
        code = b"".join(
            bytes(rng.choice((0, 0, 0, 0, rng.getrandbits(8))) for _ in range(32)) for _ in range(rng.randint(0, 4))
        )
        return code + rng.randbytes(rng.choice((0, 0, 0, 1, 16)))
    try:
        return assemble(_program(rng, target.name), encoding).code
    except CastsimError:
        return b"".join(rng.choice(seeds.binaries())[k : k + 32] for k in range(0, 32 * rng.randint(1, 4), 32))


def object_file(code: bytes, machine: int, *, wide: bool = True) -> bytes:
    """An ELF file with a `.text` section."""
    names = b"\0.text\0.shstrtab\0"
    head = 64 if wide else 52
    header, section, size = ("<HHIQQQIHHHHHH", "<IIQQQQIIQQ", 64) if wide else ("<HHIIIIIHHHHHH", "<IIIIIIIIII", 40)
    table = head + len(code) + len(names)
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1, 1]) + bytes(9)
    packed = struct.pack(header, 1, machine, 1, 0, 0, table, 0, head, 0, 0, size, 3, 2)
    rows = ((0, 0, 0, 0, 0, 0), (1, 1, 6, 0, head, len(code)), (7, 3, 0, 0, head + len(code), len(names)))
    return ident + packed + code + names + b"".join(struct.pack(section, *row, 0, 0, 1, 0) for row in rows)


def elf(rng: Random) -> bytes:
    machines = (*encoded("gaudi2")[1].machines, 62)
    return object_file(binary(rng), rng.choice(machines), wide=rng.random() < 0.7)


@cache
def elf_seeds() -> tuple[bytes, ...]:
    machine = encoded("gaudi2")[1].machines[0]
    return tuple(object_file(code, machine, wide=wide) for code in seeds.binaries() for wide in (True, False))
