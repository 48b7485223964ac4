"""Instructions from text, operands, sample values and machine states that the tests of TPC semantics share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from kit.tpc_text import program, target
from oracle_formats import FLOATS, INTS, fmt

from castsim.isa.tpc.forms import TARGET_SPELLINGS
from castsim.isa.tpc.program import TpcInstruction
from castsim.machines.vliw.plans import prepare
from castsim.machines.vliw.semantics import PreparedInstruction
from castsim.machines.vliw.semantics.operands import Effects, OperandValues, State
from castsim.targets.vliw import VliwTarget

POLYNOMIAL = 0x800002CC
MODES = ("RHNE", "RZ", "RU", "RD")
SLOTS = ("load", "spu", "vpu", "store")
SPELLED = TARGET_SPELLINGS


def instruction(text: str, generation: str = "gaudi2", slot: str = "vpu") -> TpcInstruction:
    before = SLOTS.index(slot)
    line = "; ".join(["nop"] * before + [text] + ["nop"] * (3 - before))
    found = getattr(program(line, generation).bundles[0], slot)
    assert isinstance(found, TpcInstruction)
    return found


@lru_cache(maxsize=4096)
def prepared(text: str, generation: str = "gaudi2", slot: str = "vpu") -> PreparedInstruction:
    return prepare(instruction(text, generation, slot), target(generation))


def state(configuration: dict[str, int] | None = None, words: list[int] | None = None, scalar: int = 1) -> State:
    vector = np.array(words if words is not None else range(1, 65), np.uint32)
    return State(configuration or {}, vector, scalar)


def run(
    text: str, generation: str = "gaudi2", *, slot: str = "vpu", income: Any = None, predicate: Any = True,
    machine: State | None = None, chip: VliwTarget | None = None, **sources: Any,
) -> Effects:  # fmt: skip
    """Run one instruction; `chip` stands in for the generation when its options are changed."""
    found = prepared(text, generation, slot) if chip is None else prepare(instruction(text, generation, slot), chip)
    return found(OperandValues(sources, income, predicate), machine or state())


def machine_in(mode: str, generation: str = "gaudi2") -> State:
    return state({"round": target(generation).convert_rounding.modes[mode.lower()].code})


def vector(codes: Any, bits: int) -> np.ndarray:
    """Return the bytes of a vector of codes of 8, 16 or 32 bits, the codes repeated to fill it."""
    count = 2048 // bits
    return np.resize(np.asarray(codes, np.uint64), count).astype(f"<u{bits // 8}").view(np.uint8)


def codes(register: np.ndarray, bits: int) -> list[int]:
    return [int(code) for code in np.ascontiguousarray(register).view(f"<u{bits // 8}")]


_F32_EDGES = (
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x00007FFF, 0x00008000, 0x00008001, 0x0000FFFF, 0x00018000,
    0x007FFFFF, 0x00800000, 0x00800001, 0x807FFFFF, 0x80800000, 0x3F800000, 0xBF800000, 0x3F808000, 0x3F808001,
    0x3F818000, 0x3F80FFFF, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F7F0000, 0x7F7F7FFF, 0x7F7F8000, 0x7F800000, 0xFF800000,
    0x7F800001, 0xFF800001, 0x7FC00000, 0x7FFFFFFF, 0xFFFFFFFF,
    # f16: half and whole smallest subnormal, smallest normal, largest, overflow threshold
    0x33000000, 0x33000001, 0x32FFFFFF, 0x33800000, 0x33C00000, 0x387FC000, 0x38800000, 0x477FE000, 0x477FEFFF,
    0x477FF000, 0x477FFFFF, 0x47800000, 0xC77FE000, 0xC77FF000, 0xC7800000,
    # f8_152 and f8_143: the same
    0x36FFFFFF, 0x37000000, 0x37000001, 0x37800000, 0x38000000, 0x47600000, 0x476FFFFF, 0x47700000,
    0x3A7FFFFF, 0x3A800000, 0x3A800001, 0x3B000000, 0x3C800000, 0x43700000, 0x4377FFFF, 0x43780000, 0x43800000,
    # integers: halves, 0.499.., bounds of 4 to 32 bits
    0x3F000000, 0x3EFFFFFF, 0x3FC00000, 0xBFC00000, 0x40200000, 0xC0200000, 0x42FE0000, 0x42FF0000, 0x43000000,
    0xC3000000, 0xC3008000, 0xC3010000, 0x437F0000, 0x437F8000, 0x46FFFE00, 0x46FFFF00, 0x47000000, 0xC7000000,
    0xC7000100, 0x477FFF00, 0x477FFF80, 0x4EFFFFFF, 0x4F000000, 0xCF000000, 0xCF000001, 0x4F7FFFFF, 0x4F800000,
)  # fmt: skip


@lru_cache(maxsize=32)
def samples(name: str) -> tuple[int, ...]:
    """Return 256 codes of a format: all of them, or edges and seeded random ones."""
    row = fmt(name)
    if row.bits <= 8:
        return tuple(np.resize(np.arange(1 << row.bits), 256).tolist())
    rng = np.random.default_rng(row.bits + len(name))
    if name == "f32":
        near_one = np.float32(rng.uniform(-1, 1, 100) * 2.0 ** rng.integers(-20, 34, 100)).view(np.uint32)
        some = [*_F32_EDGES, *near_one.tolist(), *rng.integers(0, 1 << 32, 256).tolist()]
    elif name in INTS:
        top = 1 << (row.bits - 1)
        edges = [0, 1, 2, 3, top - 1, top - 2, top, top + 1, 2 * top - 1, 2 * top - 2]
        powers = [1 << bit for bit in range(row.bits)]
        near = [(power + step) % (2 * top) for power in powers for step in (-1, 1)]
        negative = [2 * top - power for power in powers]
        some = [*edges, *powers, *near, *negative, *rng.integers(0, 2 * top, 256).tolist()]
    else:
        exponents = range(1 << row.exponent_bits)  # type: ignore[union-attr]
        edges = [exponent << row.fraction_bits | low for exponent in exponents for low in (0, 1)]  # type: ignore[union-attr]
        picked = rng.permutation(edges)[:80].tolist()
        special = [row.inf, row.inf + 1, row.max_code, 0x7FFF, 0x8000, 0xFFFF, 1, 0]  # type: ignore[union-attr,operator]
        some = [*special, *picked, *rng.integers(0, 1 << 16, 256).tolist()]
    return tuple(int(code) for code in some[:256])


def every_code(name: str) -> Iterator[np.ndarray]:
    """Vectors of all codes of 8 and 16 bits; of 32 bits the samples."""
    bits = fmt(name).bits
    some = np.asarray(samples(name) if bits == 32 else range(1 << bits))
    lanes = 2048 // bits
    for start in range(0, some.size, lanes):
        yield np.resize(some[start : start + lanes], lanes)


FLOAT_TYPES = ("f32", "bf16", "f16", "f8_143", "f8_152")
INTEGER_TYPES = ("i32", "u32", "i16", "u16", "i8", "u8")


def pairs(name: str) -> list[tuple[int, int]]:
    """Codes of two operands: anything beside anything, neighbours in size, tiny ones, equal and opposite ones."""
    some, rng = samples(name), np.random.default_rng(51)
    row = fmt(name)
    sign, unit = 1 << (row.bits - 1), 1 << max(0, getattr(row, "fraction_bits", 4) - 2)
    found = list(zip(some, rng.permutation(some).tolist(), strict=True))
    found += [(code, (code + int(step)) % (1 << row.bits)) for code, step in zip(
        some, rng.integers(-4 * unit, 4 * unit, len(some)), strict=True)]  # fmt: skip
    found += [(code, code ^ sign) for code in some[::4]] + [(code, code) for code in some[::4]]
    if name in FLOATS:
        tiny = rng.integers(0, 3 << getattr(row, "fraction_bits", 0), (64, 2)).tolist()
        found += [(a | sign * int(i % 3 == 0), b | sign * int(i % 2)) for i, (a, b) in enumerate(tiny)]
    return [(int(a), int(b)) for a, b in found]


def both(name: str) -> list[tuple[np.ndarray, np.ndarray, list[tuple[int, int]]]]:
    """The pairs as vectors, together with the pairs of each."""
    bits, lanes = fmt(name).bits, 2048 // fmt(name).bits
    found = pairs(name)
    found += found[: -len(found) % lanes]
    found += [found[0]] * (-len(found) % lanes)
    chunks = [found[start : start + lanes] for start in range(0, len(found), lanes)]
    return [(vector([a for a, _ in c], bits), vector([b for _, b in c], bits), c) for c in chunks]
