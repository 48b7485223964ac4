"""The machine against every published producer-consumer distance: fresh at it, stale and reported one bundle earlier.

Each row becomes a program: registers get old values, the producer writes one of them, the consumer follows at a
distance. What the consumer leaves is compared with the same program at a large distance (fresh) and without the
producer (old).
"""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np
import pytest
from test_tpc_latency import NOT_MODELLED, SPECIAL, modelled
from tpc_text import GENERATIONS, dialect, table, target

from castsim.isa.tpc import Bundle, Register, TensorDeclaration, TpcProgram, parse
from castsim.isa.tpc.program import Declaration, File
from castsim.machines.vliw.findings import StaleRead, StaleReadKind
from castsim.machines.vliw.machine import VliwCore
from castsim.machines.vliw.memories import GlobalMemory

SHIFT = 0xFFFFFFFE
"""-2, the old value of shift operands."""
FAR = 20
"""More than any latency: the largest stage is e13."""

SETUP = """
// castsim: tensor 0 x inout f32 [256, 2]
// castsim: reg S2 = 0x44800000
// castsim: reg S3 = 256
// castsim: reg S4 = 0x0d800000
// castsim: reg S6 = 0x40000000
// castsim: reg S7 = 1024
// castsim: reg S11 = 1
// castsim: reg S12 = 0x107
// castsim: reg I2 = [64, 0, 0, 0, 0]
// castsim: reg AD1 = 0x100000000
{setup}
nop; nop; nop; nop
"""
"""S2 = 1024.0, S4 = 2^-100, S6 = 2.0; S12 is a range of 8 lanes from lane 1."""

SIMPLE_PRODUCERS = {  # a new value in V0, S1, SP1, VP1, I1 or AD1, from registers that hold still
    "LD_TNSR": "ld_tnsr V0, 0x0, I2; nop; nop; nop",
    "LD_TNSR_LOW": "ld_tnsr_low V0, 0x0, I2; nop; nop; nop",
    "LD_G.V": "ld_g V0, AD2; nop; nop; nop",
    "MOV(load slot) V": "mov V0, V8; nop; nop; nop",
    "LD_L.S": "ld_l S1, 0x40; nop; nop; nop",
    "LD_L.SP": "ld_l SP1, 0x44; nop; nop; nop",
    "SET_INDX(load) I": "set_indx I1, b00001, 0x40; nop; nop; nop",
    "CONVERT": "nop; nop; convert.f32 target_type=int32 V0, V8; nop",
    "CONVERT(int src)": "nop; nop; convert.i32 target_type=fp32 V0, V9; nop",
    "CONVERT_INT32": "nop; nop; convert_int32 lane_sel={lane} rhne to_16 V0, V9, 0x0; nop",
    "CONVERT_INT16": "nop; nop; convert_int16 lane_sel={lane} rhne V0, V9, 0x0; nop",
    "CONVERT_INT8": "nop; nop; convert_int8 rhne V0, D8, 0x0; nop",
    "NEARBYINT": "nop; nop; nearbyint.f32 V0, V8; nop",
    "MOV(vpu) V": "nop; nop; mov V0, V8; nop",
    "PACK": "nop; nop; pack.i16 source_group=0 element_stride=2 V0, V8; nop",
    "UNPACK": "nop; nop; unpack.i8 source_group=0 element_stride=2 group_half=0 V0, V8; nop",
    "MOV_G": "nop; nop; mov_g g_en=0b11 dg_en=0b1111 V0, V8, 0xffffffff; nop",
    "MOV_DG": "nop; nop; mov_dg src=1 dst=0 wr_lg=0x1 wr_ug=0x1 V0, V8, 0xffffffff; nop",
    "AND": "nop; nop; and.i32 V0, V8, V9; nop",
    "SHL": "nop; nop; shl.i32 V0, V9, 0x3; nop",
    "ASH": "nop; nop; ash.i32 V0, V9, V11; nop",
    "ADD.i32": "nop; nop; add.i32 V0, V9, V9; nop",
    "ADD.f32": "nop; nop; add.f32 V0, V8, V8; nop",
    "SUB.f32": "nop; nop; sub.f32 V0, V8, V10; nop",
    "MUL.f32": "nop; nop; mul.f32 V0, V8, V8; nop",
    "MUL.i32": "nop; nop; mul.i32 D0, V9, V9; nop",
    "MAX.f32": "nop; nop; max.f32 V0, V8, V10; nop",
    "CMP_GRT->VP": "nop; nop; cmp_grt.f32 VP1, V8, V10; nop",
    "SEL_GRT": "nop; nop; sel_grt.f32 V0, V8, V10, V8, V9; nop",
    "SPU CONVERT": "nop; convert.f32 target_type=int32 S1, S2; nop; nop",
    "SPU CONVERT_INT32": "nop; convert_int32 rhne to_16 S1, S7, 0xffffffff; nop; nop",
    "SPU MOV S": "nop; mov.i32 S1, 0x200; nop; nop",
    "SPU ADD.i32": "nop; add.i32 S1, S3, 0x100; nop; nop",
    "SPU ADD.i32 I": "nop; add.i32 b00001 I1, 0x40, I3; nop; nop",
    "SPU MUL.f32": "nop; mul.f32 S1, S4, S4; nop; nop",
    "SPU CMP->SP": "nop; cmp_grt.i32 SP1, S7, S3; nop; nop",
    "SPU MOV->SP": "nop; mov SP1, S11; nop; nop",
    "SPU MOV I": "nop; mov b00001 I1, 0x40; nop; nop",
}
SIMPLE_CONSUMERS = {  # reads V0, S1, SP1, VP1, I1 or AD1; leaves its result elsewhere
    ("CONVERT", "src_a.v"): "nop; nop; convert.f32 target_type=int32 V16, V0; nop",
    ("CONVERT_INT32 value", "src_a.v"): "nop; nop; convert_int32 lane_sel=0 rhne to_16 V16, V0, 0xfffffff0; nop",
    ("CONVERT_INT32 shift", "src_b.v"): "nop; nop; convert_int32 lane_sel=0 rhne to_16 V16, V9, V0; nop",
    ("CONVERT_INT32 shift", "src_b.s"): "nop; nop; convert_int32 lane_sel=0 rhne to_16 V16, V9, S1; nop",
    ("PACK", "src_a.v"): "nop; nop; pack.i16 source_group=0 element_stride=2 V16, V0; nop",
    ("UNPACK", "src_a.v"): "nop; nop; unpack.i16 source_group=0 element_stride=2 group_half=0 V16, V0; nop",
    ("MOV_DG", "src_a.v"): "nop; nop; mov_dg src=0 dst=1 wr_lg=0x1 wr_ug=0x1 V16, V0, 0xffffffff; nop",
    ("MOV_G", "src_a.v"): "nop; nop; mov_g g_en=0b11 dg_en=0b1111 V16, V0, 0xffffffff; nop",
    ("MOV", "src_a.v"): "nop; nop; mov V16, V0; nop",
    ("AND", "src_a.v"): "nop; nop; and.i32 V16, V0, V12; nop",
    ("AND", "src_b.v"): "nop; nop; and.i32 V16, V12, V0; nop",
    ("ADD.f32", "src_a.v"): "nop; nop; add.f32 V16, V0, V10; nop",
    ("MUL.f32", "src_a.v"): "nop; nop; mul.f32 V16, V0, V10; nop",
    ("MUL.f32", "src_a.s"): "nop; nop; mul.f32 V16, V10, S1; nop",
    ("CMP_GRT", "src_a.v"): "nop; nop; cmp_grt.f32 VP2, V0, V8; nop",
    ("NEARBYINT", "src_a.v"): "nop; nop; nearbyint.f32 V16, V0; nop",
    ("MOV(load) src", "src_a.v"): "mov V16, V0; nop; nop; nop",
    ("ST_TNSR data", "src_c.v"): "nop; nop; nop; st_tnsr 0x0, I3, V0",
    ("ST_TNSR indx", "src_a.i"): "nop; nop; nop; st_tnsr 0x0, I1, V9",
    ("LD_TNSR indx", "src_a.i"): "ld_tnsr V16, 0x0, I1; nop; nop; nop",
    ("ST_TNSR pred", "pred.sp"): "nop; nop; nop; st_tnsr 0x0, I3, V9, SP1",
    ("LD_TNSR pred", "pred.sp"): "ld_tnsr V16, 0x0, I3, SP1; nop; nop; nop",
    ("CONVERT pred", "pred.sp"): "nop; nop; convert.f32 target_type=int32 V16, V8, SP1; nop",
    ("CONVERT pred", "pred.vp"): "nop; nop; convert.f32 target_type=int32 V16, V8, VP1; nop",
    ("MUL.f32 pred", "pred.vp"): "nop; nop; mul.f32 V16, V8, V8, VP1; nop",
    ("PACK pred", "pred.sp"): "nop; nop; pack.i16 source_group=0 element_stride=2 V16, V8, SP1; nop",
    ("LD_G addr", "src_a.a"): "ld_g S9, AD1; nop; nop; nop",
    ("SPU CONVERT", "src_a.s"): "nop; convert.f32 target_type=int32 S9, S1; nop; nop",
    ("SPU CONVERT_INT32", "src_a.s"): "nop; convert_int32 rhne to_16 S9, S1, 0x0; nop; nop",
    ("SPU ADD.i32", "src_a.s"): "nop; add.i32 S9, S1, S3; nop; nop",
    ("SPU MUL.f32", "src_a.s"): "nop; mul.f32 S9, S1, S6; nop; nop",
    ("SPU pred", "pred.sp"): "nop; add.i32 S9, S3, S3, SP1; nop; nop",
    ("JMPR pred", "pred.sp"): "nop; jmpr 0x60, SP1; nop; nop",
}
BEHIND = "nop; nop; nop; nop\n nop; mov.i32 S10, 0x1; nop; nop\n nop; nop; nop; nop"
"""What follows the consumer: a delay bundle, and an effect that a taken jump skips."""


def old_scalar(consumer: str) -> int:
    """S1 before: an address, a shift (then V0 holds it too), or 7.25."""
    return 0x100 if "addr" in consumer else SHIFT if "shift" in consumer else 0x40E80000


@lru_cache(maxsize=4096)
def bundles(text: str, generation: str) -> tuple[Bundle, ...]:
    return parse(text, dialect(generation)).bundles


def producer_text(name: str, generation: str, consumer: str) -> str:
    """Narrow results go to the lane that decides what the consumer sees: low for shifts and PACK, high for floats."""
    address = "S0, 0x200" if generation == "goya" else "0x200"
    if name in ("LD_L_V", "LD_L_V.VP"):
        return f"ld_l_v {'V0' if name == 'LD_L_V' else 'VP1'}, {address}; nop; nop; nop"
    if name == "GEN_ADDR(load) AD":
        return "gen_addr AD1, 0x0, I2; nop; nop; nop"
    lanes = " single_lane" if generation in ("greco", "gaudi2") else ""
    return SIMPLE_PRODUCERS[name].replace("{lane}", f"{0 if 'shift' in consumer or consumer == 'PACK' else 1}{lanes}")


def consumer_text(name: str, operand: str, generation: str) -> str:
    two = ", 0x0" if generation == "goya" else ""
    local = {
        ("ST_L_V data", "src_c.v"): f"nop; nop; nop; st_l_v S0{two}, V0",
        ("ST_L_V addr", "src_a.s"): f"nop; nop; nop; st_l_v S1{two}, V9",
        ("LD_L_V addr", "src_a.s"): f"ld_l_v V16, S1{two}; nop; nop; nop",
    }
    text = local[name, operand] if (name, operand) in local else SIMPLE_CONSUMERS[name, operand]
    return text.replace("lane_sel=0", "lane_sel=0 single_lane") if generation in ("greco", "gaudi2") else text


@cache
def declarations(generation: str) -> tuple[Declaration, ...]:
    return parse(SETUP.format(setup=""), dialect(generation)).declarations


class Run:
    """A finished run: what the consumer left, and what was found."""

    def __init__(self, generation: str, items: tuple[Bundle, ...], s1: int, changes: dict[str, int]) -> None:
        chip = target(generation)
        rng = np.random.default_rng(0)
        tensor = TensorDeclaration(0, "x", "inout", "f32", (256, 2))
        codes = rng.uniform(-100, 100, 512).astype(np.float32).view(np.uint32)
        declared = declarations(generation)
        machine = VliwCore(TpcProgram(declared, items), chip, GlobalMemory((tensor,), {"x": codes}, chip.tensors.limit))
        vectors = {
            0: np.full(64, s1 if s1 == SHIFT else 0x40E80007, np.uint32),
            8: rng.uniform(-100, 100, 64).astype(np.float32),
            9: rng.integers(-30000, 30000, 64, dtype=np.int32), 10: np.full(64, 3.5, np.float32),
            11: np.full(64, -3, np.int32), 12: np.full(64, -1, np.int32), 16: np.zeros(64, np.int32),
        }  # fmt: skip
        for index, data in vectors.items():
            machine.registers.cells(Register(File.V, index))[0].set(data.view(np.uint8))
        for name in ("V1", "V2", "V3", "S0", "S5", "S9", "S10", "I1", "I3", "SP1", "VP1", "VP2"):
            cell = machine.registers._cells[name]
            cell.set(cell.settled)
        machine.registers._cells["S1"].set(s1)
        machine.registers._cells["AD2"].set((1 << 32) + 256)
        for name, value in changes.items():
            machine.registers._cells[name].set(value)
        machine.local.vlm.store(0, rng.integers(0, 256, 4096, dtype=np.uint8))
        machine.local.slm.store(0x40, np.array([0x200, 1], "<u4").view(np.uint8))
        machine.run(1000)
        self.machine = machine
        self.stale: tuple[StaleRead, ...] = machine.findings.all()
        self.tensor = codes

    def left(self, *but: str) -> tuple[object, ...]:
        """Everything that the program can see, without the registers that the producer writes."""
        cells = {name: cell.newest for name, cell in self.machine.registers._cells.items() if name not in but}
        shown = {name: v.tobytes() if isinstance(v, np.ndarray) else v for name, v in cells.items()}
        return shown, self.machine.local.vlm.bytes.tobytes(), self.tensor.tobytes()


PRODUCED = ("V0", "V1", "S1", "SP1", "VP1", "I1", "AD1")
SLOTS = ("load", "spu", "vpu", "store")


def joined(one: Bundle, two: Bundle) -> Bundle | None:
    """Both in one bundle, None if they need the same slot."""
    both = {slot: (getattr(one, slot), getattr(two, slot)) for slot in SLOTS}
    if any(a is not None and b is not None for a, b in both.values()):
        return None
    return Bundle(**{slot: a or b for slot, (a, b) in both.items()})


def at_distance(producer: Bundle, consumer: Bundle, distance: int, behind: tuple[Bundle, ...]) -> tuple[Bundle, ...]:
    if distance == 0:
        both = joined(producer, consumer)
        assert both is not None
        return (both, *behind)
    return (producer, *(Bundle() for _ in range(distance - 1)), consumer, *behind)


def ordinary(generation: str) -> list[dict[str, str]]:
    rows = [row for row in table("tpc_latency.csv") if row["gen"] == generation and modelled(row)]
    return [row for row in rows if row["consumer"] not in SPECIAL]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_row_is_fresh_at_its_distance_and_stale_one_bundle_earlier(generation: str) -> None:
    behind = bundles(BEHIND, generation)
    rows = ordinary(generation)
    assert len(rows) > 380
    tested_earlier, without = 0, {}
    for row in rows:
        (producer,) = bundles(producer_text(row["producer"], generation, row["consumer"]), generation)
        (consumer,) = bundles(consumer_text(row["consumer"], row["operand"], generation), generation)
        needed, s1 = int(row["latency_cycles"]), old_scalar(row["consumer"])

        def run(items: tuple[Bundle, ...], s1: int = s1) -> Run:
            return Run(generation, items, s1, {})

        fresh = run(at_distance(producer, consumer, FAR, behind))
        alone = row["consumer"], row["operand"], s1
        if alone not in without:
            without[alone] = run((consumer, *behind)).left(*PRODUCED)
        old = without[alone]
        assert fresh.left(*PRODUCED) != old, row  # the consumer shows the difference
        at = run(at_distance(producer, consumer, needed, behind))
        assert at.left(*PRODUCED) == fresh.left(*PRODUCED), row
        assert not at.stale, (row, at.stale)
        if needed == 1 and joined(producer, consumer) is None:
            continue
        tested_earlier += 1
        early = run(at_distance(producer, consumer, needed - 1, behind))
        assert early.left(*PRODUCED) == old, row
        found = [f for f in early.stale if f.needed == needed]
        assert found, row
        assert {(f.distance, f.missing) for f in found} == {(needed - 1, 1)}, row
        assert {f.kind for f in found} == {StaleReadKind.EARLY if needed > 1 else StaleReadKind.SAME_BUNDLE}, row
        assert {f.writer.instruction for f in found} <= {i for i in producer.slots if i}, row
        assert {f.reader.instruction for f in found} <= {i for i in consumer.slots if i}, row
    assert tested_earlier > 340


def test_the_rows_left_out_are_those_of_instructions_that_no_cast_needs() -> None:
    left_out = [row for row in table("tpc_latency.csv") if not modelled(row)]
    assert all(row["producer"] in NOT_MODELLED or row["consumer"] in NOT_MODELLED for row in left_out)


# ----------------------------------------------------------------------------------------------- special distances


def special_rows() -> list[tuple[str, str, int]]:
    rows = [row for row in table("tpc_latency.csv") if row["consumer"] in SPECIAL]
    return [(row["gen"], row["consumer"], int(row["latency_cycles"])) for row in rows]


LANES = " single_lane"
CASES = {  # producer, consumer, the registers to compare
    "next writer of the same V (income/WAW order)": (
        "mov V16, V8; nop; nop; nop",
        "nop; nop; pack.i16 source_group=0 element_stride=2 V16, V9; nop",
    ),
    "CONVERT lane_sel=b (a != b) same destination": (
        "nop; nop; convert.f32 lane_sel=0 target_type=int16 rhne V16, V8; nop",
        "nop; nop; convert.f32 lane_sel=1 target_type=int16 rhne V16, V10; nop",
    ),
    "PACK group_source=b same destination": (
        "nop; nop; pack.i16 source_group=0 element_stride=2 V16, V8; nop",
        "nop; nop; pack.i16 source_group=1 element_stride=2 V16, V9; nop",
    ),
    "MOV_DG dst dual group b same destination": (
        "nop; nop; mov_dg src=1 dst=0 wr_lg=0x1 wr_ug=0x1 V16, V8, 0xffffffff; nop",
        "nop; nop; mov_dg src=1 dst=3 wr_lg=0x1 wr_ug=0x1 V16, V9, 0xffffffff; nop",
    ),
    "CONVERT with rounding CSR": (
        "nop; nop; nop; st_l mmio {round}, S11",
        "nop; nop; convert.f32 target_type=int32 V16, V8; nop",
    ),
    "instruction using SR": (
        "nop; nop; mov LFSR, V8; nop",
        "nop; nop; convert_int32 lane_sel=0{lanes} sr to_16 V16, V9, 0xfffffffb; nop",
    ),
    "LD_TNSR / ST_TNSR using tensor-size modifiers": (
        "nop; mov.i32 S30, S12; nop; nop",
        "ld_tnsr V16, 0x0, I3, S30; nop; nop; nop",
    ),
}


@pytest.mark.parametrize(("generation", "case", "needed"), [row for row in special_rows() if row[1] in CASES])
def test_special_distances(generation: str, case: str, needed: int) -> None:
    chip = target(generation)
    register = chip.configuration.get("convert_round", chip.configuration["round"])
    lanes = LANES if generation in ("greco", "gaudi2") else ""
    producer, consumer = (
        bundles(text.format(round=hex(register.address or 0), lanes=lanes), generation)[0] for text in CASES[case]
    )
    behind = bundles(BEHIND, generation)
    but = ("S30",)

    def run(*items: Bundle) -> Run:
        return Run(generation, (*items, *behind), 0, {"S30": 0})

    fresh = run(producer, *(Bundle() for _ in range(FAR)), consumer)
    old = run(consumer).left(*but)
    assert fresh.left(*but) != old
    at = run(*at_distance(producer, consumer, max(needed, 1), ()))
    assert at.left(*but) == fresh.left(*but)
    assert not [f for f in at.stale if f.kind is not StaleReadKind.UNWRITTEN]
    if needed > 1 or (needed == 1 and joined(producer, consumer) is not None):
        early = run(*at_distance(producer, consumer, needed - 1, ()))
        (found,) = [f for f in early.stale if f.kind is not StaleReadKind.UNWRITTEN]
        assert (found.distance, found.needed, found.missing) == (needed - 1, needed, 1)
        if needed > 1:
            assert early.left(*but) == old


@pytest.mark.parametrize(
    ("load", "write", "register"),
    [
        ("ld_l SP1, 0x44; nop; nop; nop", "nop; mov SP1, 0x0; nop; nop", "SP1"),
        ("ld_l_v VP1, {address}; nop; nop; nop", "nop; nop; mov VP1, 0x0; nop", "VP1"),
    ],
)
@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_write_of_a_predicate_can_be_overtaken_by_an_earlier_load(
    generation: str, load: str, write: str, register: str
) -> None:
    needed = next(
        n for g, consumer, n in special_rows() if (g, consumer) == (generation, "SPU/VPU write to same SP or VP")
    )
    address = "S0, 0x200" if generation == "goya" else "0x200"
    (one,), (two,) = bundles(load.format(address=address), generation), bundles(write, generation)
    for distance, overtaken in ((needed, False), (needed - 1, True)):
        done = Run(generation, at_distance(one, two, distance, bundles(BEHIND, generation)), 0, {})
        last = done.machine.registers._cells[register].newest
        assert bool(np.any(last)) is overtaken
        assert [f.kind for f in done.stale] == ([StaleReadKind.OVERTAKEN] if overtaken else [])


def test_a_masked_store_of_gaudi2_sees_the_mask_of_its_own_bundle() -> None:
    """docs/reference/tpc.md section 6.1: ST_L_V under a VP, where the rule gives 0."""
    compare, store = "nop; nop; cmp_grt.f32 VP1, V8, V10; nop", "nop; nop; nop; st_l_v S0, V9, VP1"
    (one,), (two,) = bundles(compare, "gaudi2"), bundles(store, "gaudi2")
    together = Run("gaudi2", at_distance(one, two, 0, ()), 0, {})
    apart = Run("gaudi2", at_distance(one, two, FAR, ()), 0, {})
    assert together.left() == apart.left()
    assert not together.stale
