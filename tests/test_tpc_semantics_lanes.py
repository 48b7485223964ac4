"""PACK to MOV_G against a naive model, and the vendor's linear casts built from them.

Source: docs/reference/tpc.md sections 2.5 and 3.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from oracle_formats import fmt
from tpc_semantics_cases import instruction, prepared, run, state, vector
from tpc_text import GENERATIONS, target

from castsim.isa.errors import IllegalError
from castsim.machines.vliw.semantics import OperandValues, prepare
from castsim.targets.options import with_options

RNG = np.random.default_rng(25)
SOURCE = RNG.permutation(256).astype(np.uint8)
INCOME = RNG.integers(0, 256, 256).astype(np.uint8)
MASK = RNG.integers(0, 2, 256).astype(bool)
LATER = ("gaudi", "gaudib", "greco", "gaudi2")


def check(line: str, generation: str, moved: dict[int, int]) -> None:
    """Compare an instruction with a map from bytes of the destination to bytes of the source."""
    expected = INCOME.copy()
    for to, of in moved.items():
        expected[to] = SOURCE[of]
    got = run(line, generation, income=INCOME, src_a=SOURCE).result
    assert np.array_equal(got, expected), line
    masked = run(line, generation, income=INCOME, src_a=SOURCE, predicate=MASK).result
    assert np.array_equal(masked, np.where(MASK, expected, INCOME)), line


@pytest.mark.parametrize(("kind", "group", "stride"), list(product(("i8", "u16", "f32"), (0, 1), (2, 4))))
def test_pack(kind: str, group: int, stride: int) -> None:
    size = fmt(kind).bits // 8
    moved = {}
    for dual in range(4):
        kept = []
        for number in range(0, 32 // size, stride):
            kept += [dual * 64 + group * 32 + number * size + byte for byte in range(size)]
        height = 32 // stride
        assert len(kept) == height
        for offset in range(64):
            within = offset % (2 * height)
            if group * height <= within < (group + 1) * height:
                moved[dual * 64 + offset] = kept[within - group * height]
    check(f"pack.{kind} source_group={group} element_stride={stride} V1, V2", "goya", moved)


@pytest.mark.parametrize(
    ("kind", "group", "stride", "half", "lane"),
    list(product(("i8", "u16", "bf16"), (0, 1), (2, 4), (0, 1), (0, 1, 2, 3))),
)
def test_unpack(kind: str, group: int, stride: int, half: int, lane: int) -> None:
    size = fmt(kind).bits // 8
    line = f"unpack.{kind} source_group={group} element_stride={stride} group_half={half} unpack_lane={lane} V1, V2"
    if lane >= stride:
        with pytest.raises(IllegalError, match="no unpack_lane") as refusal:
            prepare(instruction(line), target("gaudi2"))
        assert refusal.value.legal == ("unpack_lane=0", "unpack_lane=1")
        return
    moved = {}
    for dual in range(4):
        for number in range(64 // (size * stride)):
            of = dual * 64 + group * 32 + (16 * half if stride == 4 else 0) + number * size
            to = dual * 64 + (number * stride + lane) * size
            moved |= {to + byte: of + byte for byte in range(size)}
    check(line, "gaudi2", moved)
    if lane == 0:
        check(line.replace(" unpack_lane=0", ""), "goya" if kind != "bf16" else "gaudi", moved)


def under_mask(dual: int, group: int, source: int, bits: int) -> dict[int, int]:
    """Bytes of one group of 32, as far as a bit per byte admits them; `source` is the first byte taken."""
    return {dual * 64 + group * 32 + byte: source + byte for byte in range(32) if bits >> byte & 1}


@pytest.mark.parametrize("seed", range(12))
def test_moves_of_dual_groups_and_groups(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bits = int(rng.integers(0, 1 << 32))
    source, dest, lower, upper = (int(rng.integers(0, high)) for high in (4, 4, 2, 2))
    moved: dict[int, int] = {}
    for group, enabled in ((0, lower), (1, upper)):
        if enabled:
            moved |= under_mask(dest, group, source * 64 + group * 32, bits)
    check(f"mov_dg src={source} dst={dest} wr_lg={lower:#x} wr_ug={upper:#x} V1, V2, {bits:#x}", "goya", moved)

    sources, enables = rng.integers(0, 4, 4).tolist(), rng.integers(0, 4, 4).tolist()
    moved = {}
    for dual, group in product(range(4), (0, 1)):
        if enables[dual] >> group & 1:
            moved |= under_mask(dual, group, sources[dual] * 64 + group * 32, bits)
    words = " ".join(
        [*(f"sdg{i}={value}" for i, value in enumerate(sources)), *(f"weg{i}={v}" for i, v in enumerate(enables))]
    )
    for generation in LATER:
        check(f"mov_dg.all {words} V1, V2, {bits:#x}", generation, moved)

    groups, duals = int(rng.integers(0, 4)), int(rng.integers(0, 16))
    moved = {}
    for dual, group in product(range(4), (0, 1)):
        if duals >> dual & 1 and groups >> group & 1:
            moved |= under_mask(dual, group, dual * 64 + (1 - group) * 32, bits)
    for generation in GENERATIONS:
        check(f"mov_g g_en={groups:#b} dg_en={duals:#b} V1, V2, {bits:#x}", generation, moved)


def test_moves_that_pack_take_what_pack_fills() -> None:
    """The place of the result is documented; after PACK of both groups it does not matter which copy is taken."""
    check("mov_dg.pack pack_type=0 V1, V2", "greco", {32 * d + i: 64 * d + i for d in range(4) for i in range(32)})
    check("mov_dg.pack pack_type=1 V1, V2", "gaudi2", {16 * d + i: 64 * d + i for d in range(4) for i in range(16)})
    assert run("mov_dg.pack pack_type=1 V1, V2", income=INCOME, src_a=SOURCE).remarks
    machine = Machine("greco", 16)
    machine.registers["V0"] = vector(np.arange(64), 32)
    machine.run("pack.i16 source_group=0 element_stride=2 V1, V0")
    machine.run("pack.i16 source_group=1 element_stride=2 V1, V0")
    machine.run("mov_dg.pack pack_type=0 V2, V1")
    assert machine.registers["V2"][:128].view("<u2").tolist() == list(range(64))


def test_moves_that_unpack_are_refused() -> None:
    words = "sdg0=0 sdg1=0 sdg2=1 sdg3=1 weg0=3 weg1=3 weg2=3 weg3=3"
    line = f"mov_dg.unpack unpack_type=1 {words} V1, V2, 0xffffffff"
    for generation in ("gaudib", "gaudi2"):
        with pytest.raises(IllegalError, match="not documented"):
            prepare(instruction(line, generation), target(generation))
    guess = with_options(target("gaudib"), {"unpacked_lane_order": "every_second"})
    got = run(line, "gaudib", chip=guess, income=INCOME, src_a=SOURCE)
    assert got.remarks
    shorts, old = SOURCE.view("<u2"), INCOME.view("<u2")
    expected = [shorts[32 * (i // 16 // 2) + 2 * (i % 16) + 1] for i in range(64)]
    assert got.result.view("<u2")[::2].tolist() == expected
    assert np.array_equal(got.result.view("<u2")[1::2], old[1::2])


def test_elements_that_the_generation_lacks() -> None:
    with pytest.raises(IllegalError, match="no pack of bf16") as refusal:
        prepared("pack.bf16 source_group=0 element_stride=2 V1, V2", "goya")
    assert refusal.value.legal == ("f32", "i32", "u32", "i16", "u16", "i8", "u8")
    with pytest.raises(IllegalError, match="no unpack of i4"):
        prepared("unpack.i4 source_group=0 element_stride=2 group_half=0 V1, V2", "greco")


# -------------------------------------------------------------------------------------------------- vendor sequences


class Machine:
    """Vector registers, the income rule, and a count of operations; copies of registers do not count (section 3)."""

    def __init__(self, generation: str, bits: int) -> None:
        self.generation = generation
        self.bits = bits
        self.registers: dict[str, np.ndarray] = {}
        self.count = 0

    def run(self, line: str) -> None:
        found = prepared(line, self.generation)
        names = {role: str(registers[0]) for role, registers in found.registers.items()}
        income = self.registers.get(names["dest"], np.zeros(256, np.uint8))
        sources = {role: self.registers[name] for role, name in names.items() if role != "dest"}
        self.registers[names["dest"]] = found(OperandValues(sources, income), state()).result  # type: ignore[assignment]
        self.count += 1

    def copy(self, to: str, of: str) -> None:
        self.registers[to] = self.registers[of]

    def move(self, to: str, of: str, dual: tuple[int, int], groups: int = 3, mask: int = 0xFFFFFFFF) -> None:
        lower, upper = groups & 1, groups >> 1
        self.run(f"mov_dg src={dual[0]} dst={dual[1]} wr_lg={lower:#x} wr_ug={upper:#x} {to}, {of}, {mask:#x}")

    def move_all(self, to: str, of: str, duals: str, enables: str) -> None:
        words = [f"sdg{i}={d}" for i, d in enumerate(duals)] + [f"weg{i}={e}" for i, e in enumerate(enables)]
        self.run(f"mov_dg.all {' '.join(words)} {to}, {of}, 0xffffffff")

    def pack(self, to: str, of: str, stride: int) -> None:
        for group in (0, 1):
            self.run(f"pack.i{self.bits} source_group={group} element_stride={stride} {to}, {of}")

    def unpack(self, to: str, of: str, group: int, stride: int, half: int = 0) -> None:
        self.registers[to] = np.zeros(256, np.uint8)
        self.run(f"unpack.u{self.bits} source_group={group} element_stride={stride} group_half={half} {to}, {of}")


def two_to_one(machine: Machine) -> None:
    """V0, V1 hold results in lane 0 of their slots; V8 becomes their linear order."""
    machine.pack("V8", "V0", 2)
    machine.pack("V9", "V1", 2)
    if machine.generation == "goya":  # in place: the first half of V8 stays where it is
        machine.move("V8", "V8", (1, 0), 2)
        machine.move("V8", "V8", (2, 1), 1)
        machine.move("V8", "V8", (3, 1), 2)
        for dual in range(4):
            machine.move("V8", "V9", (dual, 2 + dual // 2), 1 + dual % 2)
        return
    machine.registers["V10"] = np.zeros(256, np.uint8)
    machine.move_all("V10", "V8", "0200", "1100")
    machine.move_all("V10", "V8", "1300", "2200")
    machine.move_all("V10", "V9", "0002", "0011")
    machine.move_all("V10", "V9", "0013", "0022")
    machine.copy("V8", "V10")


def four_to_one(machine: Machine) -> None:
    """V0 to V3 hold bytes in lane 0 of 32-bit slots; V8 becomes their linear order."""
    for source in range(4):
        machine.pack(f"V{8 + source}", f"V{source}", 4)
    for source, dual in product(range(4), range(4)):
        if (source, dual) != (0, 0):
            mask = 0xFFFF0000 if dual % 2 else 0x0000FFFF
            machine.move("V8", f"V{8 + source}", (dual, source), 1 + dual // 2, mask)


def one_to_two(machine: Machine) -> None:
    """V0 holds elements in linear order; V8 and V9 get them zero-extended."""
    if machine.generation == "goya" or machine.bits == 8:
        machine.unpack("V10", "V0", 0, 2)
        machine.unpack("V11", "V0", 1, 2)
        machine.copy("V8", "V10")
        machine.copy("V9", "V11")
        if machine.generation == "goya":
            for to, of, dual in (
                ("V8", "V11", (0, 1)), ("V8", "V10", (1, 2)), ("V8", "V11", (1, 3)),
                ("V9", "V10", (2, 0)), ("V9", "V11", (2, 1)), ("V9", "V10", (3, 2)),
            ):  # fmt: skip
                machine.move(to, of, dual)
            return
        machine.move_all("V8", "V10", "0010", "3030")
        machine.move_all("V8", "V11", "0001", "0303")
        machine.move_all("V9", "V10", "2030", "3030")
        machine.move_all("V9", "V11", "0203", "0303")
        return
    machine.registers["V11"] = np.zeros(256, np.uint8)
    machine.run("mov_g g_en=0b11 dg_en=0b1111 V10, V0, 0xffffffff")
    machine.move_all("V11", "V0", "0213", "1212")
    machine.move_all("V11", "V10", "2031", "2121")
    machine.unpack("V8", "V11", 0, 2)
    machine.unpack("V9", "V11", 1, 2)


def one_to_four(machine: Machine) -> None:
    """V0 holds bytes in linear order; V8 to V11 get them zero-extended: four UNPACK, then a transposition."""
    for quarter in range(4):
        machine.unpack(f"V{8 + quarter}", "V0", quarter // 2, 4, quarter % 2)
    if machine.generation == "goya":
        for quarter in range(4):
            machine.copy(f"V{12 + quarter}", f"V{8 + quarter}")
        for dest, quarter in product(range(4), range(4)):
            if dest != quarter:
                machine.move(f"V{8 + dest}", f"V{12 + quarter}", (dest, quarter))
        return
    for distance, low, high in ((2, ("0001", "0033"), ("2300", "3300")), (1, ("0002", "0303"), ("1030", "3030"))):
        for quarter in range(4):
            machine.copy(f"V{12 + quarter}", f"V{8 + quarter}")
        for quarter in range(4):
            other = f"V{12 + (quarter ^ distance)}"
            machine.move_all(f"V{8 + quarter}", other, *(high if quarter & distance else low))


def narrow(machine: Machine, count: int, wide: int) -> np.ndarray:
    """Fill lane 0 of the slots of V0.. with numbered elements, and anything else beside them."""
    narrow_type = f"<u{machine.bits // 8}"
    numbers = RNG.integers(0, 1 << machine.bits, 2048 // machine.bits).astype(narrow_type)
    for source, part in enumerate(numbers.reshape(count, -1)):
        noise = RNG.integers(0, 256, 256).astype(np.uint8)
        noise.view(narrow_type)[:: wide // machine.bits] = part
        machine.registers[f"V{source}"] = noise
    return numbers


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("bits", [16, 8])
def test_two_registers_to_one(generation: str, bits: int) -> None:
    machine = Machine(generation, bits)
    numbers = narrow(machine, 2, 2 * bits)
    two_to_one(machine)
    assert np.array_equal(machine.registers["V8"].view(numbers.dtype), numbers)
    assert machine.count == (11 if generation == "goya" else 8)  # docs/reference/tpc.md section 3


@pytest.mark.parametrize("generation", GENERATIONS)
def test_four_registers_to_one(generation: str) -> None:
    machine = Machine(generation, 8)
    numbers = narrow(machine, 4, 32)
    four_to_one(machine)
    assert np.array_equal(machine.registers["V8"], numbers)
    assert machine.count == 23


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("bits", [16, 8])
def test_one_register_to_two(generation: str, bits: int) -> None:
    machine = Machine(generation, bits)
    numbers = RNG.integers(0, 1 << bits, 2048 // bits).astype(f"<u{bits // 8}")
    machine.registers["V0"] = numbers.view(np.uint8)
    one_to_two(machine)
    wide = np.concatenate([machine.registers["V8"], machine.registers["V9"]]).view(f"<u{bits // 4}")
    assert np.array_equal(wide, numbers)
    assert machine.count == (8 if generation == "goya" else 5 if bits == 16 else 6)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_one_register_to_four(generation: str) -> None:
    machine = Machine(generation, 8)
    numbers = RNG.permutation(256).astype(np.uint8)
    machine.registers["V0"] = numbers
    one_to_four(machine)
    wide = np.concatenate([machine.registers[f"V{8 + i}"] for i in range(4)]).view("<u4")
    assert np.array_equal(wide, numbers)
    assert machine.count == (16 if generation == "goya" else 12)  # the vendor's own for Goya takes 19


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_whole_cast_down_and_up_again(generation: str) -> None:
    """i32 -> i16 with a shift and back: converted lane by lane, moved, compared with integers."""
    numbers = RNG.integers(-(1 << 20), 1 << 20, 128)
    down = Machine(generation, 16)
    for source in (0, 1):
        down.registers[f"V{20 + source}"] = vector(numbers[64 * source :][:64] % (1 << 32), 32)
        down.run(f"convert_int32 lane_sel=0 rd to_16 V{source}, V{20 + source}, -4")
    two_to_one(down)
    expected = np.clip(numbers >> 4, -32768, 32767)
    assert np.array_equal(down.registers["V8"].view("<i2"), expected)
    up = Machine(generation, 16)
    up.registers["V0"] = down.registers["V8"]
    one_to_two(up)
    for half in (0, 1):
        up.run(f"convert.i16 target_type=int32 rhne V{20 + half}, V{8 + half}")
    wide = np.concatenate([up.registers["V20"], up.registers["V21"]]).view("<i4")
    assert np.array_equal(wide, expected)
