"""PACK to MOV_G, the vendor's linear casts, MOV in every form, index registers, random generators."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product

import numpy as np
import pytest
from kit.tpc_semantics_cases import POLYNOMIAL, instruction, prepared, run, state, vector
from kit.tpc_text import GENERATIONS, program, table, target
from oracle_formats import fmt
from oracle_tpc import stepped

from castsim.isa.errors import CastsimError, IllegalError
from castsim.isa.tpc.instructions import mnemonics
from castsim.machines.vliw.semantics import computes, prepare
from castsim.machines.vliw.semantics.operands import OperandValues
from castsim.targets.description import with_options

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


def of_all(duals: Iterable[object], enables: Iterable[object]) -> str:
    return " ".join(f"{word}{i}={n}" for word, some in (("sdg", duals), ("weg", enables)) for i, n in enumerate(some))


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
    for generation in LATER:
        check(f"mov_dg.all {of_all(sources, enables)} V1, V2, {bits:#x}", generation, moved)

    groups, duals = int(rng.integers(0, 4)), int(rng.integers(0, 16))
    moved = {}
    for dual, group in product(range(4), (0, 1)):
        if duals >> dual & 1 and groups >> group & 1:
            moved |= under_mask(dual, group, dual * 64 + (1 - group) * 32, bits)
    for generation in GENERATIONS:
        check(f"mov_g g_en={groups:#b} dg_en={duals:#b} V1, V2, {bits:#x}", generation, moved)


def test_moves_that_unpack_are_refused() -> None:
    line = f"mov_dg.unpack unpack_type=1 {of_all('0011', '3333')} V1, V2, 0xffffffff"
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


@pytest.mark.parametrize(
    ("line", "generation", "message"),
    [
        ("pack.bf16 source_group=0 element_stride=2 V1, V2", "goya", "no pack of bf16"),
        ("unpack.i4 source_group=0 element_stride=2 group_half=0 V1, V2", "greco", "no unpack of i4"),
        ("mov.bf16 V1, S2", "goya", "no mov of bf16"),
        ("mov.u4 V1, 3", "gaudib", "no mov of u4"),
    ],
)
def test_elements_that_the_generation_lacks(line: str, generation: str, message: str) -> None:
    with pytest.raises(IllegalError, match=message) as refusal:
        prepared(line, generation)
    if line.startswith("pack"):
        assert refusal.value.legal == ("f32", "i32", "u32", "i16", "u16", "i8", "u8")


OLD = RNG.integers(0, 2, 256).astype(bool)
BOTH_SLOTS = ("load", "vpu")
WORDS = [int(word) for word in RNG.integers(0, 1 << 32, 64)]


@pytest.mark.parametrize("slot", BOTH_SLOTS)
@pytest.mark.parametrize(
    ("kind", "byte_list"),
    [("i8", [0x78]), ("u16", [0x78, 0x56]), ("bf16", [0x78, 0x56]), ("f32", [0x78, 0x56, 0x34, 0x12]), ("u4", [0x88])],
)
def test_broadcasts_of_low_bits(slot: str, kind: str, byte_list: list[int]) -> None:
    expected = np.resize(np.array(byte_list, np.uint8), 256)
    by_register = run(f"mov.{kind} V1, S2", "greco", slot=slot, income=INCOME, src_a=0x12345678)
    by_number = run(f"mov.{kind} V1, 0x12345678", "greco", slot=slot, income=INCOME)
    assert np.array_equal(by_register.result, expected)
    assert np.array_equal(by_number.result, expected)


def bits_of(word: int) -> list[bool]:
    return [bool(word >> bit & 1) for bit in range(32)]


@pytest.mark.parametrize("slot", BOTH_SLOTS)
def test_moves_to_vector_predicates(slot: str) -> None:
    assert np.array_equal(run("mov VP1, VP2", slot=slot, income=OLD, src_a=MASK).result, MASK)
    for truth in (False, True):
        assert run("mov VP1, SP2", slot=slot, income=OLD, src_a=truth).result.tolist() == [truth] * 256
    word = 0x8001F00F
    assert run("mov VP1, S2", slot=slot, income=OLD, src_a=word).result.tolist() == bits_of(word) * 8
    assert run(f"mov VP1, {word:#x}", slot=slot, income=OLD).result.tolist() == bits_of(word) * 8
    for section in range(8):
        got = run(f"mov {section:#x} VP1, S2", slot=slot, income=OLD, src_a=word).result.tolist()
        expected = OLD.tolist()
        expected[32 * section : 32 * section + 32] = bits_of(word)
        assert got == expected
    masked = run("mov VP1, S2", slot=slot, income=OLD, src_a=word, predicate=MASK).result
    assert np.array_equal(masked, np.where(MASK, bits_of(word) * 8, OLD))


@pytest.mark.parametrize("slot", BOTH_SLOTS)
def test_moves_between_vectors_and_predicates(slot: str) -> None:
    lanes = SOURCE.view("<u4")
    got = run("mov VP1, V2", "greco", slot=slot, income=OLD, src_a=SOURCE).result
    assert got.tolist() == [bool(int(lane) >> bit & 1) for lane in lanes for bit in range(4)]
    back = run("mov V1, VP2", "greco", slot=slot, income=INCOME, src_a=got).result
    assert np.array_equal(back.view("<u4"), lanes & 0xF)


def test_moves_to_scalars() -> None:
    for slot in ("load", "spu"):
        assert run("mov.i32 S1, S2", slot=slot, income=5, src_a=0xFFFFFFFF).result == 0xFFFFFFFF
        for line, number in (("i32 S1, -2", 0xFFFFFFFE), ("i16 S1, 0x12345678", 0x5678), ("i8 S1, 0x78", 0x78)):
            assert run(f"mov.{line}", slot=slot, income=5).result == number
        assert run("mov SP1, S2", slot=slot, income=True, src_a=0xFFFFFFFE).result is False
        assert run("mov SP1, 3", slot=slot, income=False).result is True
    keeps = with_options(target("gaudi2"), {"narrow_scalar_result": "keep"})
    assert run("mov.i8 S1, 0x78", slot="spu", chip=keeps, income=0xAABBCCDD).result == 0xAABBCC78
    assert run("mov SP1, SP2", slot="spu", income=False, src_a=True).result is True
    assert run("mov.i32 S1, S2", slot="spu", income=5, src_a=7, predicate=False).result == 5


def test_moves_of_named_registers() -> None:
    for line, number in (
        ("S4, PC", 640), ("LD_PARTIAL_REG, S1", 0x1F), ("S1, M2", 0b10110), ("AD3, AD4", 1 << 40), ("Z2, AD4", 1 << 40),
    ):  # fmt: skip
        assert run(f"mov {line}", slot="spu", income=0, src_a=number).result == number
    assert np.array_equal(run("mov ZP_REG, V4", income=INCOME, src_a=SOURCE).result, SOURCE)
    assert np.array_equal(run("mov VP4, V_CARRY", income=OLD, src_a=MASK).result, MASK)
    assert run("mov SP4, S_CARRY", slot="spu", income=False, src_a=True).result is True


def test_reading_the_generator_advances_it_unless_told_not_to() -> None:
    machine = state(words=WORDS)
    bits = np.array(WORDS, "<u4").view(np.uint8)
    read = run("mov V4, LFSR", income=INCOME, machine=machine, predicate=MASK)
    assert np.array_equal(read.result, np.where(MASK, bits, INCOME))
    assert read.vector_lfsr.tolist() == stepped(WORDS, POLYNOMIAL)
    peeked = run("mov V4, LFSR_NO_CHANGE", income=INCOME, machine=machine)
    assert np.array_equal(peeked.result, bits)
    assert peeked.vector_lfsr is None
    scalar = run("mov.i32 S1, S_LFSR", slot="spu", income=0, machine=state(scalar=3))
    assert (scalar.result, scalar.scalar_lfsr) == (3, stepped([3], POLYNOMIAL)[0])
    scalar = run("mov.i32 S1, S_LFSR_NO_CHANGE", slot="load", income=0, machine=state(scalar=3))
    assert (scalar.result, scalar.scalar_lfsr) == (3, None)


def test_reseeding() -> None:
    machine = state(words=WORDS)
    got = run("mov LFSR, V4", income=None, src_a=SOURCE, machine=machine)
    assert got.result is None
    assert got.vector_lfsr.tolist() == SOURCE.view("<u4").tolist()
    got = run("mov LFSR, V4", income=None, src_a=SOURCE, machine=machine, predicate=MASK)
    mixed = np.where(MASK, SOURCE, np.array(WORDS, "<u4").view(np.uint8))
    assert got.vector_lfsr.tolist() == mixed.view("<u4").tolist()
    assert run("mov S_LFSR, S4", "greco", slot="spu", income=None, src_a=9).scalar_lfsr == 9
    nothing = run("mov LFSR, V4", income=None, src_a=SOURCE, predicate=False)
    assert (nothing.result, nothing.vector_lfsr) == (None, None)


def test_lane_numbers() -> None:
    for bits in (32, 16, 8):
        got = run(f"mov V1, V_LANE_ID_{bits}", "goya", income=INCOME).result
        assert got.view(f"<u{bits // 8}").tolist() == list(range(2048 // bits))


HERE, THERE, OLD_INDEX = (1, -2, 3, -4, 5), (10, 20, -30, 40, 1 << 30), (100, 200, 300, 400, 500)


def admitted(new: tuple[int, ...], mask: str) -> tuple[int, ...]:
    """The mask is written with dimension 0 last."""
    return tuple(one if bit == "1" else old for one, bit, old in zip(new, reversed(mask), OLD_INDEX, strict=True))


def wrapped(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


@pytest.mark.parametrize("mask", ["00000", "00001", "10000", "01101", "11111"])
def test_index_moves(mask: str) -> None:
    for slot in ("load", "spu", "store"):
        got = run(f"set_indx I2, b{mask}, S3", slot=slot, income=OLD_INDEX, src_a=0xFFFFFFFF)
        assert got.result == admitted((-1,) * 5, mask)
    assert run(f"set_indx I2, b{mask}, 7", income=OLD_INDEX, slot="spu").result == admitted((7,) * 5, mask)
    assert run(f"mov b{mask} I1, I2", slot="spu", income=OLD_INDEX, src_a=HERE).result == admitted(HERE, mask)
    assert run(f"mov b{mask} I1, 0x7b", slot="load", income=OLD_INDEX).result == admitted((123,) * 5, mask)
    by_register = run("mov M2 I1, S4", slot="spu", income=OLD_INDEX, src_a=8, mask=int(mask, 2))
    assert by_register.result == admitted((8,) * 5, mask)
    assert run(f"mov b{mask} I1, 5", slot="spu", income=OLD_INDEX, predicate=False).result == OLD_INDEX


def test_a_mask_register_with_other_bits_is_refused() -> None:
    with pytest.raises(IllegalError, match="beyond the 5 dimensions") as refusal:
        run("mov M2 I1, S4", slot="spu", income=OLD_INDEX, src_a=8, mask=0x20)
    assert refusal.value.legal == ("0 to 0x1f",)


def test_permutations_and_single_coordinates() -> None:
    order = (4, 0, 0, 3, 1)
    word = sum(dimension << 3 * k for k, dimension in enumerate(order)) | 0xF << 28
    for slot in ("load", "store"):
        got = run("prmt_indx I3, I4, S5", slot=slot, income=OLD_INDEX, src_a=THERE, src_b=word)
        assert got.result == tuple(THERE[dimension] for dimension in order)
    with pytest.raises(IllegalError, match="names dimension 5"):
        run("prmt_indx I3, I4, S5", slot="load", income=OLD_INDEX, src_a=THERE, src_b=5 << 6)
    for dimension in range(5):
        got = run(f"mov_irf_dim {dimension:#x} S2, I3", slot="spu", income=0, src_a=THERE)
        assert got.result == THERE[dimension] % (1 << 32)


OPERATIONS = {
    "add": lambda a, b: wrapped(a + b), "sub": lambda a, b: wrapped(a - b), "mul": lambda a, b: wrapped(a * b),
    "max": max, "min": min, "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
}  # fmt: skip


@pytest.mark.parametrize("operation", OPERATIONS)
def test_index_arithmetic(operation: str) -> None:
    function = OPERATIONS[operation]
    for mask in ("11011", "00100"):
        head = f"{operation}.i32 b{mask} I5"
        got = run(f"{head}, I1, I2", slot="spu", income=OLD_INDEX, src_a=HERE, src_b=THERE)
        assert got.result == admitted(tuple(map(function, HERE, THERE)), mask)
        got = run(f"{head}, S5, I2", slot="spu", income=OLD_INDEX, src_a=0xFFFFFFF9, src_b=THERE)
        assert got.result == admitted(tuple(function(-7, there) for there in THERE), mask)
        got = run(f"{head}, I1, 6", slot="spu", income=OLD_INDEX, src_a=HERE)
        assert got.result == admitted(tuple(function(here, 6) for here in HERE), mask)


def test_index_shifts() -> None:
    amounts = (0, 1, 2, 31, 32)
    got = run("shl.i32 b11111 I1, I2, I3", slot="spu", income=OLD_INDEX, src_a=HERE, src_b=amounts)
    assert got.result == tuple(wrapped(a << s) if s < 32 else 0 for a, s in zip(HERE, amounts, strict=True))
    got = run("shr.i32 b00101 I1, I1, S3", slot="spu", income=OLD_INDEX, src_a=HERE, src_b=1)
    assert got.result == admitted(tuple(wrapped(a % (1 << 32) >> 1) for a in HERE), "00101")
    got = run("ash.i32 b11111 I1, I2, S3", slot="spu", income=OLD_INDEX, src_a=HERE, src_b=0xFFFFFFFF)
    assert got.result == tuple(a >> 1 for a in HERE)
    got = run("ash.i32 b11111 I1, I2, 3", "gaudi", slot="spu", income=OLD_INDEX, src_a=THERE)
    assert got.result == (80, 160, -240, 320, (1 << 31) - 1)


def test_index_compares() -> None:
    line = "cmp_less.i32 b{} SP1, I2, {}"
    for dimension in range(5):
        mask = f"{1 << dimension:05b}"
        got = run(line.format(mask, "I3"), slot="spu", income=False, src_a=HERE, src_b=THERE)
        assert got.result is (HERE[dimension] < THERE[dimension])
        assert not got.remarks
        got = run(line.format(mask, "0"), slot="spu", income=False, src_a=HERE)
        assert got.result is (HERE[dimension] < 0)
    got = run(line.format("01011", "I3"), slot="spu", income=False, src_a=HERE, src_b=THERE)
    assert got.result is True
    assert got.remarks
    assert run(line.format("00111", "I3"), slot="spu", income=True, src_a=HERE, src_b=THERE).result is False
    with pytest.raises(IllegalError, match="no dimension"):
        run(line.format("00000", "I3"), slot="spu", income=False, src_a=HERE, src_b=THERE)


def test_every_instruction_is_computed_here_or_by_the_machine() -> None:
    elsewhere = {name for name in mnemonics() if name.startswith(("ld_", "st_"))}
    elsewhere |= {"gen_addr", "halt", "loop", "jmpr", "jmpa", "cache_flush", "cache_invalidate"}
    for generation, slot in product(GENERATIONS, ("load", "spu", "vpu", "store")):
        for line in CORPUS[generation]:
            found = getattr(line, slot)
            if found is not None:
                assert computes(found) == (found.mnemonic not in elsewhere)


def corpus(generation: str) -> list[object]:
    """The bundles of the vendor's assembler tests that this generation reads."""
    found = []
    for row in table("tpc_asm_corpus_dev.csv"):
        if row["gen"] == generation and row["input_asm"]:
            try:
                found += program(row["input_asm"], generation).bundles
            except CastsimError:
                continue
    return found


CORPUS = {generation: corpus(generation) for generation in GENERATIONS}


def test_operands_are_never_written() -> None:
    frozen = [vector(np.arange(64), 32) for _ in range(3)]
    for one in frozen:
        one.setflags(write=False)
    lines = ("add.i32 V1, V2, V3", "convert.i32 lane_sel=1 target_type=uint8 rhne V1, V2", "mov V1, V2",
             "pack.i8 source_group=0 element_stride=2 V1, V2", "sel_grt.i8 V1, V2, V3, V2, V3")  # fmt: skip
    sources = {"src_a": frozen[0], "src_b": frozen[1], "src_c": frozen[0], "src_d": frozen[1]}
    for line in lines:
        found = prepared(line, "gaudi2")
        given = {role: sources[role] for role in found.registers if role != "dest"}
        found(OperandValues(given, frozen[2], MASK), state())


class Machine:
    """Vector registers, the income rule, and a count of operations; copies of registers do not count (section 3)."""

    def __init__(self, generation: str, bits: int) -> None:
        self.generation = generation
        self.bits = bits
        self.registers: dict[str, np.ndarray] = {}
        self.count = 0

    def run(self, line: str) -> None:
        compute = prepared(line, self.generation)
        names = {role: str(registers[0]) for role, registers in compute.registers.items()}
        income = self.registers.get(names["dest"], np.zeros(256, np.uint8))
        sources = {role: self.registers[name] for role, name in names.items() if role != "dest"}
        self.registers[names["dest"]] = compute(OperandValues(sources, income), state()).result  # type: ignore[assignment]
        self.count += 1

    def copy(self, to: str, of: str) -> None:
        self.registers[to] = self.registers[of]

    def move(self, to: str, of: str, dual: tuple[int, int], groups: int = 3, mask: int = 0xFFFFFFFF) -> None:
        lower, upper = groups & 1, groups >> 1
        self.run(f"mov_dg src={dual[0]} dst={dual[1]} wr_lg={lower:#x} wr_ug={upper:#x} {to}, {of}, {mask:#x}")

    def move_all(self, to: str, of: str, duals: str, enables: str) -> None:
        self.run(f"mov_dg.all {of_all(duals, enables)} {to}, {of}, 0xffffffff")

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
@pytest.mark.parametrize(
    ("sequence", "bits", "registers", "goya", "later"),
    [(two_to_one, 16, 2, 11, 8), (two_to_one, 8, 2, 11, 8), (four_to_one, 8, 4, 23, 23)],
)
def test_registers_to_one(
    sequence: Callable[[Machine], None], bits: int, registers: int, goya: int, later: int, generation: str
) -> None:
    """Numbers of instructions: docs/reference/tpc.md section 3."""
    machine = Machine(generation, bits)
    numbers = narrow(machine, registers, registers * bits)
    sequence(machine)
    assert np.array_equal(machine.registers["V8"].view(numbers.dtype), numbers)
    assert machine.count == (goya if generation == "goya" else later)


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize(
    ("sequence", "bits", "registers", "goya", "later"),
    [(one_to_two, 16, 2, 8, 5), (one_to_two, 8, 2, 8, 6), (one_to_four, 8, 4, 16, 12)],
)
def test_one_register_to_several(
    sequence: Callable[[Machine], None], bits: int, registers: int, goya: int, later: int, generation: str
) -> None:
    """The vendor's own for Goya takes 19 from one to four."""
    machine = Machine(generation, bits)
    numbers = RNG.permutation(1 << bits)[: 2048 // bits].astype(f"<u{bits // 8}")
    machine.registers["V0"] = numbers.view(np.uint8)
    sequence(machine)
    wide = np.concatenate([machine.registers[f"V{8 + i}"] for i in range(registers)])
    assert np.array_equal(wide.view(f"<u{bits * registers // 8}"), numbers)
    assert machine.count == (goya if generation == "goya" else later)


def test_the_polynomial_is_a_register() -> None:
    machine = state({"vector_lfsr_polynomial": 0x80200003, "scalar_lfsr_polynomial": 0xA3000000}, WORDS, 5)
    assert run("mov V4, LFSR", income=INCOME, machine=machine).vector_lfsr.tolist() == stepped(WORDS, 0x80200003)
    assert run("mov.i32 S1, S_LFSR", slot="spu", income=0, machine=machine).scalar_lfsr == 2 ^ 0xA3000000
