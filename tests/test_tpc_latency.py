"""The published producer-consumer distances against the stage tables and the rule of the descriptions."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from tpc_text import GENERATIONS, dialect, table, target

from castsim.isa.tpc import Slot, TpcInstruction, parse
from castsim.machines.vliw.stage_latency import latency, read_distances
from castsim.targets.vliw import VliwTarget
from castsim.targets.vliw_latency import OperandKey, RowMark, stage_name

ROWS = table("tpc_latency.csv")
NOT_MODELLED = {"LOOKUP": 222, "LOOKUP_1C": 95, "SHUFFLE": 95, "MAC.f32": 95, "MAC.f32 acc": 127}
"""Producers and consumers that no cast needs, and the rows left out for their sake."""

PRODUCERS = {  # how tpc_latency.csv names a writer: slot, mnemonic, element, destination file
    "LD_L_V": ("load", "ld_l_v", None, "V"),
    "LD_TNSR": ("load", "ld_tnsr", None, "V"),
    "LD_TNSR_LOW": ("load", "ld_tnsr_low", None, "V"),
    "LD_G.V": ("load", "ld_g", None, "V"),
    "MOV(load slot) V": ("load", "mov", "i32", "V"),
    "LD_L.S": ("load", "ld_l", None, "S"),
    "LD_L_V.VP": ("load", "ld_l_v", None, "VP"),
    "LD_L.SP": ("load", "ld_l", None, "SP"),
    "SET_INDX(load) I": ("load", "set_indx", None, "I"),
    "GEN_ADDR(load) AD": ("load", "gen_addr", None, "AD"),
    "CONVERT": ("vpu", "convert", "f32", "V"),
    "CONVERT(int src)": ("vpu", "convert", "i32", "V"),
    "CONVERT_INT32": ("vpu", "convert_int32", None, "V"),
    "CONVERT_INT16": ("vpu", "convert_int16", None, "V"),
    "CONVERT_INT8": ("vpu", "convert_int8", None, "V"),
    "NEARBYINT": ("vpu", "nearbyint", "f32", "V"),
    "MOV(vpu) V": ("vpu", "mov", "i32", "V"),
    "PACK": ("vpu", "pack", "i16", "V"),
    "UNPACK": ("vpu", "unpack", "i16", "V"),
    "MOV_G": ("vpu", "mov_g", None, "V"),
    "MOV_DG": ("vpu", "mov_dg", None, "V"),
    "AND": ("vpu", "and", "i32", "V"),
    "SHL": ("vpu", "shl", "i32", "V"),
    "ASH": ("vpu", "ash", "i32", "V"),
    "ADD.i32": ("vpu", "add", "i32", "V"),
    "ADD.f32": ("vpu", "add", "f32", "V"),
    "SUB.f32": ("vpu", "sub", "f32", "V"),
    "MUL.f32": ("vpu", "mul", "f32", "V"),
    "MUL.i32": ("vpu", "mul", "i32", "D"),
    "MAX.f32": ("vpu", "max", "f32", "V"),
    "CMP_GRT->VP": ("vpu", "cmp_grt", "f32", "VP"),
    "SEL_GRT": ("vpu", "sel_grt", "f32", "V"),
    "SPU CONVERT": ("spu", "convert", "f32", "S"),
    "SPU CONVERT_INT32": ("spu", "convert_int32", None, "S"),
    "SPU MOV S": ("spu", "mov", "i32", "S"),
    "SPU ADD.i32": ("spu", "add", "i32", "S"),
    "SPU ADD.i32 I": ("spu", "add", "i32", "I"),
    "SPU MUL.f32": ("spu", "mul", "f32", "S"),
    "SPU CMP->SP": ("spu", "cmp_grt", "f32", "SP"),
    "SPU MOV->SP": ("spu", "mov", None, "SP"),
    "SPU MOV I": ("spu", "mov", None, "I"),
}
CONSUMERS = {  # how it names a reader: slot and mnemonic; the column `operand` has role and file
    "LD_L_V addr": ("load", "ld_l_v"),
    "LD_TNSR indx": ("load", "ld_tnsr"),
    "LD_TNSR pred": ("load", "ld_tnsr"),
    "LD_G addr": ("load", "ld_g"),
    "MOV(load) src": ("load", "mov"),
    "CONVERT_INT32 value": ("vpu", "convert_int32"),
    "CONVERT_INT32 shift": ("vpu", "convert_int32"),
    "CONVERT pred": ("vpu", "convert"),
    "MUL.f32 pred": ("vpu", "mul"),
    "PACK pred": ("vpu", "pack"),
    "SPU CONVERT": ("spu", "convert"),
    "SPU CONVERT_INT32": ("spu", "convert_int32"),
    "SPU ADD.i32": ("spu", "add"),
    "SPU MUL.f32": ("spu", "mul"),
    "SPU pred": ("spu", "add"),
    "JMPR pred": ("spu", "jmpr"),
    "ST_L_V addr": ("store", "st_l_v"),
    "ST_L_V data": ("store", "st_l_v"),
    "ST_TNSR data": ("store", "st_tnsr"),
    "ST_TNSR indx": ("store", "st_tnsr"),
    "ST_TNSR pred": ("store", "st_tnsr"),
    **{
        name: ("vpu", re.sub(r"\..*", "", name).lower())
        for name in (
            ["CONVERT", "PACK", "UNPACK", "MOV_DG", "MOV_G", "MOV", "AND", "ADD.f32", "MUL.f32", "CMP_GRT", "NEARBYINT"]
        )
    },
}
FILES = {"v": "V", "s": "S", "i": "I", "a": "AD", "sp": "SP", "vp": "VP"}
SPECIAL = {
    "next writer of the same V (income/WAW order)": "tied_income",
    "CONVERT lane_sel=b (a != b) same destination": "disjoint_parts",
    "PACK group_source=b same destination": "disjoint_parts",
    "MOV_DG dst dual group b same destination": "disjoint_parts",
    "SPU/VPU write to same SP or VP": "predicate_load_then_write",
    "CONVERT with rounding CSR": "rounding_register",
    "instruction using SR": "reseed",
    "LD_TNSR / ST_TNSR using tensor-size modifiers": "tensor_register",
}


def modelled(row: dict[str, str]) -> bool:
    return row["producer"] not in NOT_MODELLED and row["consumer"] not in NOT_MODELLED


TYPES = {"f32": frozenset({RowMark.FLOAT})}
INTO_VECTOR = ("LD_L_V addr", "LD_TNSR indx", "LD_TNSR pred", "MOV(load) src")
"""Readers of the LOAD slot whose result is a vector; LD_G is published for a scalar."""
FLOAT_CONSUMERS = ("CONVERT", "ADD.f32", "MUL.f32", "CMP_GRT", "NEARBYINT", "MUL.f32 pred", "CONVERT pred")


def written(chip: VliwTarget, name: str) -> OperandKey:
    slot, mnemonic, element, file = PRODUCERS[name]
    marks = TYPES.get(element or "", frozenset()) | ({RowMark.INDEX} if file == "I" else set())
    return OperandKey(slot, chip.latencies.opcodes[slot, mnemonic], "dst", "V" if file == "D" else file, marks)


def read(chip: VliwTarget, name: str, operand: str) -> OperandKey:
    slot, mnemonic = CONSUMERS[name]
    role, file = operand.split(".")
    marks = set(TYPES["f32"]) if name in FLOAT_CONSUMERS or "MUL.f32" in name or name == "SPU CONVERT" else set()
    marks |= {RowMark.VECTOR} if slot == "vpu" or name in INTO_VECTOR else set()
    role = "predicate" if role == "pred" else role
    return OperandKey(slot, chip.latencies.opcodes[slot, mnemonic], role, FILES[file], frozenset(marks))


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_published_distance_follows(generation: str) -> None:
    chip = target(generation)
    rows = [row for row in ROWS if row["gen"] == generation and modelled(row)]
    wrong = []
    for row in rows:
        if row["consumer"] in SPECIAL:
            assert getattr(chip.distances, SPECIAL[row["consumer"]]) == int(row["latency_cycles"])
            continue
        found = chip.latencies.latency(written(chip, row["producer"]), read(chip, row["consumer"], row["operand"]))
        assert found.producer_stage is not None and found.consumer_stage is not None
        stages = (stage_name(found.producer_stage), stage_name(found.consumer_stage))
        published = (row["producer_commit_stage"] or stages[0], row["consumer_read_stage"] or stages[1])
        if found.distance != int(row["latency_cycles"]) or stages != published:
            wrong.append((row, found))
    assert wrong == []


def test_rows_left_out_are_counted() -> None:
    counts = Counter(
        row["producer"] if row["producer"] in NOT_MODELLED else row["consumer"] for row in ROWS if not modelled(row)
    )
    assert counts == NOT_MODELLED
    assert len(ROWS) == 3191


@pytest.mark.parametrize(
    ("producer", "consumer", "distances"),
    [  # docs/reference/tpc.md section 6.1, last table: Goya, Gaudi, Greco, Gaudi2
        ("PACK", ("ST_L_V data", "src_c.v"), (7, 7, 5, 2)),
        ("MUL.f32", ("ST_L_V data", "src_c.v"), (7, 7, 6, 3)),
        ("ADD.f32", ("MUL.f32", "src_b.v"), (6, 4, 4, 4)),
        ("LD_L.S", ("SPU ADD.i32", "src_b.s"), (4, 4, 4, 4)),
        ("LD_L.S", ("CONVERT_INT32 shift", "src_b.s"), (1, 1, 1, 1)),
        ("SPU CMP->SP", ("JMPR pred", "pred.sp"), (2, 2, 2, 2)),
        ("GEN_ADDR(load) AD", ("LD_G addr", "src_a.a"), (7, 7, 7, 7)),
    ],
)
def test_distances_of_tpc_md(producer: str, consumer: tuple[str, str], distances: tuple[int, int, int, int]) -> None:
    for generation, expected in zip(("goya", "gaudi", "greco", "gaudi2"), distances, strict=True):
        chip = target(generation)
        assert chip.latencies.latency(written(chip, producer), read(chip, *consumer)).distance == expected


def at(text: str, generation: str, slot: Slot) -> TpcInstruction:
    (bundle,) = parse(text, dialect(generation)).bundles
    found = bundle.slots[slot]
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("generation", "producer", "consumer", "role", "file", "distance", "rule"),
    [  # docs/reference/tpc.md section 6.1: table of corrected distances, rules 2, 3, 4, 9a and 9b
        ("greco", "nop; nop; add.f16 V1, V2, V3; nop", "nop; nop; mul.f16 V4, V1, V2; nop", "src_a", "V", 6, "STAGES"),
        ("gaudib", "nop; nop; mul.f16 V1, V2, V3; nop", "nop; nop; sub.f16 V4, V1, V2; nop", "src_a", "V", 4,
         "FORWARDED_ACCUMULATOR"),
        ("gaudi2", "nop; nop; sub.f8_143 V1, V2, V3; nop", "nop; nop; convert.f8_143 target_type=bf16 V4, V1; nop",
         "src_a", "V", 6, "STAGES"),
        ("gaudi2", "nop; nop; mov_dg src=0 dst=1 wr_lg=0x1 wr_ug=0x1 V1, V2, 0xffffffff; nop",
         "nop; nop; add.f16 V4, V1, V2; nop", "src_a", "V", 6, "LATE_ACCUMULATOR"),
        ("goya", "nop; mov.i32 S1, 0x4; nop; nop", "nop; nop; nop; st_l 0x10, S1", "src_c", "S", 7, "PORT"),
        ("gaudi", "prmt_indx I1, I2, S3; nop; nop; nop", "ld_tnsr V1, 0x0, I1; nop; nop; nop", "src_a", "I", 4,
         "INDEX_BYPASS"),
        ("gaudi2", "nop; nop; cmp_grt.f32 VP1, V2, V3; nop", "nop; nop; nop; st_l_v 0x100, VP1", "src_c", "VP", 0,
         "MASKED_STORE"),
        ("goya", "nop; nop; cmp_grt.f32 VP1, V2, V3; nop", "ld_g V4, AD1, VP1; nop; nop; nop", "predicate", "VP", 4,
         "UNLISTED"),
        ("greco", "nop; mov.i32 LD_TNSR_ID_REG, S1; nop; nop", "ld_tnsr V1, LD_TNSR_ID_REG, I2; nop; nop; nop",
         "tensor", "LD_TNSR_ID_REG", 2, "STAGES"),
    ],
)  # fmt: skip
def test_distances_of_instructions_and_why(
    generation: str, producer: str, consumer: str, role: str, file: str, distance: int, rule: str
) -> None:
    slots = [next(slot for slot in Slot if text.split("; ")[slot] != "nop") for text in (producer, consumer)]
    first, second = (at(text, generation, slot) for text, slot in zip((producer, consumer), slots, strict=True))
    found = latency(target(generation), (slots[0], first, file), (slots[1], second, role, file))
    assert (found.distance, found.rule.name) == (distance, rule)


def test_what_the_slot_does_not_have_is_an_error() -> None:
    instruction = at("nop; nop; add.f32 V1, V2, V3; nop", "goya", Slot.VPU)
    with pytest.raises(KeyError):
        read_distances(target("goya"), Slot.STORE, instruction, "src_a", "V")
