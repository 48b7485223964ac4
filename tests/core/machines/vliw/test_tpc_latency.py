"""Published distances, a second calculator on the published stage tables, and stage tables with mistakes."""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from kit import published_latency
from kit.published_latency import Operand
from kit.tpc_operands import Place, described, places
from kit.tpc_text import GENERATIONS, dialect, phrases, table, target

from castsim.isa.errors import TargetDataError
from castsim.isa.tpc.parser import parse
from castsim.isa.tpc.program import Slot, TpcInstruction
from castsim.machines.vliw.stage_latency import DEST, operand_key
from castsim.targets.loader import SHIPPED, load_target
from castsim.targets.vliw import VliwTarget
from castsim.targets.vliw_latency import OperandKey, RowMark, stage_name

ROWS = table("tpc_latency.csv")
NOT_MODELLED = {"LOOKUP": 222, "LOOKUP_1C": 95, "SHUFFLE": 95, "MAC.f32": 95, "MAC.f32 acc": 127}
"""Producers and consumers that no cast needs, and the rows left out for their sake."""

PRODUCERS = """
    LD_L_V: load ld_l_v - V; LD_TNSR: load ld_tnsr - V; LD_TNSR_LOW: load ld_tnsr_low - V; LD_G.V: load ld_g - V;
    MOV(load slot) V: load mov i32 V; LD_L.S: load ld_l - S; LD_L_V.VP: load ld_l_v - VP; LD_L.SP: load ld_l - SP;
    SET_INDX(load) I: load set_indx - I; GEN_ADDR(load) AD: load gen_addr - AD; CONVERT: vpu convert f32 V;
    CONVERT(int src): vpu convert i32 V; CONVERT_INT32: vpu convert_int32 - V; CONVERT_INT16: vpu convert_int16 - V;
    CONVERT_INT8: vpu convert_int8 - V; NEARBYINT: vpu nearbyint f32 V; MOV(vpu) V: vpu mov i32 V;
    PACK: vpu pack i16 V; UNPACK: vpu unpack i16 V; MOV_G: vpu mov_g - V; MOV_DG: vpu mov_dg - V; AND: vpu and i32 V;
    SHL: vpu shl i32 V; ASH: vpu ash i32 V; ADD.i32: vpu add i32 V; ADD.f32: vpu add f32 V; SUB.f32: vpu sub f32 V;
    MUL.f32: vpu mul f32 V; MUL.i32: vpu mul i32 D; MAX.f32: vpu max f32 V; CMP_GRT->VP: vpu cmp_grt f32 VP;
    SEL_GRT: vpu sel_grt f32 V; SPU CONVERT: spu convert f32 S; SPU CONVERT_INT32: spu convert_int32 - S;
    SPU MOV S: spu mov i32 S; SPU ADD.i32: spu add i32 S; SPU ADD.i32 I: spu add i32 I; SPU MUL.f32: spu mul f32 S;
    SPU CMP->SP: spu cmp_grt f32 SP; SPU MOV->SP: spu mov - SP; SPU MOV I: spu mov - I
"""
"""How tpc_latency.csv names a writer: slot, mnemonic, element, destination file."""
CONSUMERS = """
    LD_L_V addr: load ld_l_v; LD_TNSR indx: load ld_tnsr; LD_TNSR pred: load ld_tnsr; LD_G addr: load ld_g;
    MOV(load) src: load mov; CONVERT_INT32 value: vpu convert_int32; CONVERT_INT32 shift: vpu convert_int32;
    CONVERT pred: vpu convert; MUL.f32 pred: vpu mul; PACK pred: vpu pack; SPU CONVERT: spu convert;
    SPU CONVERT_INT32: spu convert_int32; SPU ADD.i32: spu add; SPU MUL.f32: spu mul; SPU pred: spu add;
    JMPR pred: spu jmpr; ST_L_V addr: store st_l_v; ST_L_V data: store st_l_v; ST_TNSR data: store st_tnsr;
    ST_TNSR indx: store st_tnsr; ST_TNSR pred: store st_tnsr; CONVERT: vpu convert; PACK: vpu pack;
    UNPACK: vpu unpack; MOV_DG: vpu mov_dg; MOV_G: vpu mov_g; MOV: vpu mov; AND: vpu and; ADD.f32: vpu add;
    MUL.f32: vpu mul; CMP_GRT: vpu cmp_grt; NEARBYINT: vpu nearbyint
"""
"""How it names a reader: slot and mnemonic; the column `operand` has role and file."""
WRITERS, READERS = (
    {name: row.split() for name, row in (each.split(": ") for each in phrases(text))} for text in (PRODUCERS, CONSUMERS)
)
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
    slot, mnemonic, element, file = WRITERS[name]
    marks = TYPES.get(element, frozenset()) | ({RowMark.INDEX} if file == "I" else set())
    return OperandKey(slot, chip.latencies.opcodes[slot, mnemonic], "dst", "V" if file == "D" else file, marks)


def read(chip: VliwTarget, name: str, operand: str) -> OperandKey:
    slot, mnemonic = READERS[name]
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
    keys = (operand_key(target(generation), slot, each, wanted, file)
            for slot, each, wanted in zip(slots, (first, second), (DEST, role), strict=True))  # fmt: skip
    found = target(generation).latencies.latency(*keys)
    assert (found.distance, found.rule.name) == (distance, rule)


MARKS = {
    "is_float": RowMark.FLOAT, "is_f16": RowMark.F16, "is_f8": RowMark.F8, "irf_dest": RowMark.INDEX,
    "vector_pipe": RowMark.VECTOR, "two_s_dest": RowMark.PAIR, "x2": RowMark.X2,
}  # fmt: skip
LEAST_PAIRS = {"goya": 30_000, "gaudi": 30_000, "gaudib": 50_000, "greco": 60_000, "gaudi2": 100_000}


def by_registers(generation: str, found: Iterable[Place]) -> dict[str, list[tuple[OperandKey, Operand]]]:
    """What concerns the same registers, as castsim and as the tables name it; equals of both are one."""
    groups: dict[str, dict[tuple[object, ...], tuple[OperandKey, Operand]]] = defaultdict(dict)
    chip = target(generation)
    for place in found:
        key, operand = operand_key(chip, place.slot, place.instruction, place.role, place.file), described(place)
        names = (operand[name] for name in ("slot", "opcode", "operand", "file", "flags"))
        groups[place.read.removesuffix("_ro")][key, *names] = key, operand
    return {read: list(group.values()) for read, group in groups.items()}


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_pair_of_every_instruction_is_at_the_distance_of_the_tables(generation: str) -> None:
    latencies, every = target(generation).latencies, list(places(generation))
    results = by_registers(generation, (place for place in every if place.role == "dest"))
    operands = by_registers(generation, (place for place in every if place.role != "dest"))
    assert {"V", "S", "I", "AD", "SP", "VP"} <= results.keys() & operands.keys()
    wrong, compared = [], 0
    for registers in results.keys() & operands.keys():
        for (producer, given), (consumer, read) in product(results[registers], operands[registers]):
            distance = latencies.latency(producer, consumer).distance
            compared += 1
            if distance != published_latency.distance(generation, given, read):
                wrong.append((given, read, distance))
    assert wrong == []
    assert compared > LEAST_PAIRS[generation]


def key_of(operand: dict[str, Any]) -> OperandKey:
    marks = frozenset(MARKS[flag] for flag in operand["flags"])
    names = ("slot", "opcode", "operand", "file")
    return OperandKey(
        *(operand[name] for name in names), marks, acc_fp32=operand.get("acc_fp32", False), index=operand.get("dest", 0)
    )


def rows_as_operands(generation: str) -> list[dict[str, Any]]:
    names = ("slot", "opcode", "operand", "file", "flags")
    return [dict(zip(names, key, strict=True)) for key in published_latency.rows(generation)]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_pair_of_rows_is_at_the_distance_of_the_tables(generation: str) -> None:
    """The whole tables, with the instructions that castsim does not have."""
    latencies = target(generation).latencies
    results, operands = defaultdict(list), defaultdict(list)
    for operand in rows_as_operands(generation):
        is_result, file = operand["operand"].startswith("dst"), operand["file"]
        place = operand["operand"].partition("_")[2].removesuffix("_ro") if file == "hw" else file
        (results if is_result else operands)[place].append((operand, key_of(operand)))
    wrong = []
    for place in results:
        for (given, producer), (read, consumer) in product(results[place], operands[place]):
            distance = latencies.latency(producer, consumer).distance
            if distance != published_latency.distance(generation, given, read):
                wrong.append((given, read, distance))
    assert wrong == []


ACCUMULATORS = [
    {"slot": slot, "opcode": 0, "file": file, "flags": {"is_float", *narrow, *({"vector_pipe"} & pipe)}, "type": kind}
    for slot, file, pipe in (("vpu", "V", {"vector_pipe"}), ("spu", "S", set()))
    for kind, narrow in (("f32", ()), ("bf16", ()), ("f16", ("is_f16",)), ("f8_143", ("is_f8",)))
]


@pytest.mark.parametrize("generation", GENERATIONS[1:])
def test_accumulators_pass_by_destination_and_width(generation: str) -> None:
    """Rule 9b, whose cases castsim's own instructions do not reach: MAC with and without acc_fp32."""
    latencies, seen = target(generation).latencies, set()
    for first, second in product(ACCUMULATORS, ACCUMULATORS):
        if first["slot"] != second["slot"]:
            continue
        for wide, wide_too, dest, other in product((False, True), (False, True), range(5), (0, 1)):
            if (wide and first["type"] == "f32") or (wide_too and second["type"] == "f32"):
                continue
            flags = frozenset(first["flags"]) - {"vector_pipe"}
            given = {**first, "operand": "dst", "flags": flags, "acc_fp32": wide, "dest": dest}
            read = {**second, "operand": "src_c", "acc_fp32": wide_too, "dest": other}
            expected = published_latency.distance(generation, given, read)
            assert latencies.latency(key_of(given), key_of(read)).distance == expected, (given, read)
            seen.add(expected)
    assert seen == {4, 6}


def test_the_shipped_tables_are_the_published_ones() -> None:
    for generation in GENERATIONS:
        chip = target(generation)
        shipped = {
            (row.slot, row.opcode, row.operand, row.register_file, row.marks): (row.stage, row.entry_port or "")
            for row in chip.stages
        }
        published = {
            (slot, opcode, operand, file, frozenset(MARKS[flag] for flag in flags)): (
                stage, "" if operand.startswith("dst") and port == "" else port,
            )
            for (slot, opcode, operand, file, flags), (stage, port) in published_latency.rows(generation).items()
        }  # fmt: skip
        assert shipped == published
        assert {port.name: port.stage for port in chip.entry_ports} == published_latency.ports(generation)
    assert len(table("tpc_stages.csv")) == sum(len(target(name).stages) for name in GENERATIONS if name != "gaudib")


FIRST = "load,0,gen_addr,src_a,I,e1,load_ia_bypass,"
"""Line 2 of the shipped table of Goya."""


def changed(folder: Path, old: str, new: str, table: str = "tpc_stages_goya.csv") -> Path:
    """A copy of Goya whose table is changed at its first row."""
    text = (SHIPPED / table).read_text(encoding="utf-8")
    assert text.count(old) == 1
    (folder / table).write_text(text.replace(old, new), encoding="utf-8")
    shutil.copy(SHIPPED / "goya.toml", folder / "mine.toml")
    return folder / "mine.toml"


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (FIRST.replace("e1", "e14"), "tpc_stages_goya.csv:2: stage: unknown stage 'e14'"),
        (FIRST.replace("load_ia_bypass", ""), "tpc_stages_goya.csv:2: entry_port: src_a of gen_addr has no entry port"),
        (FIRST.replace("load_ia_bypass", "load_x"), "tpc_stages_goya.csv:2: entry_port: unknown port 'load_x'"),
        (f"{FIRST}\n{FIRST}", "tpc_stages_goya.csv:3: the same slot, opcode, operand, file and marks twice"),
        (FIRST.replace("load,", "lane,"), "tpc_stages_goya.csv:2: slot: "),
        (FIRST.replace(",I,", ",J,"), "tpc_stages_goya.csv:2: register_file: "),
        (FIRST.replace(",0,", ",64,"), "tpc_stages_goya.csv:2: opcode: "),
        (FIRST + "fast", "tpc_stages_goya.csv:2: marks: "),
        (FIRST.replace("src_a", "a"), "tpc_stages_goya.csv:2: operand: "),
        (f"{FIRST},1", "tpc_stages_goya.csv:2:1: tpc_stages_goya.csv: a row has more cells than the header"),
    ],
)
def test_bad_rows_are_refused_with_file_and_line(tmp_path: Path, new: str, message: str) -> None:
    with pytest.raises(TargetDataError) as refused:
        load_target(changed(tmp_path, FIRST + "\n", new + "\n"))
    assert message in str(refused.value)


def test_rows_left_out_are_counted() -> None:
    left_out = [
        row["producer"] if row["producer"] in NOT_MODELLED else row["consumer"] for row in ROWS if not modelled(row)
    ]
    assert Counter(left_out) == NOT_MODELLED
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


# docs/reference/tpc.md section 6.1, last table, and section 1's own examples: producer, consumer, operand, distance.
ADD16 = {"slot": "vpu", "opcode": 2, "operand": "dst", "file": "V", "flags": {"is_float", "is_f16"}}
MUL16 = {**ADD16, "opcode": 1}
ADD8 = {**ADD16, "flags": {"is_float", "is_f8"}}
VALUE = {"slot": "vpu", "opcode": 1, "operand": "src_a", "file": "V", "flags": {"is_float", "is_f16", "vector_pipe"}}
SUM_A = {**VALUE, "opcode": 2}
SUM_B = {**SUM_A, "operand": "src_b"}
SCALAR = {"slot": "spu", "opcode": 8, "operand": "dst", "file": "S", "flags": set()}
LOCAL = {"slot": "store", "opcode": 5, "operand": "src_c", "file": "S", "flags": set()}
GLOBAL = {**LOCAL, "opcode": 6}
MAC_PAIR = {**ADD16, "opcode": 0, "flags": {"is_float"}, "acc_fp32": True, "type": "bf16", "dest": 6}
MAC_INTO_PAIR = {**MAC_PAIR, "operand": "src_c", "flags": {"is_float", "vector_pipe"}}
MAC_F32 = {**MAC_PAIR, "acc_fp32": False, "type": "f32"}
FROM_GAUDIB = ("gaudib", "greco", "gaudi2")


@pytest.mark.parametrize(
    ("generations", "producer", "consumer", "distance"),
    [
        (FROM_GAUDIB, ADD16, VALUE, 6),
        (FROM_GAUDIB, ADD16, SUM_B, 6),
        (FROM_GAUDIB, ADD16, SUM_A, 4),
        (FROM_GAUDIB, MUL16, SUM_A, 4),
        (FROM_GAUDIB, {**MUL16, "opcode": 3}, {**SUM_A, "opcode": 3}, 4),
        (("gaudi2",), ADD8, {**VALUE, "flags": {"is_float", "is_f8", "vector_pipe"}}, 6),
        (("gaudi2",), {**ADD8, "flags": {"is_float", "x2"}}, {**SUM_A, "flags": {"is_float", "x2", "vector_pipe"}}, 4),
        (GENERATIONS, SCALAR, LOCAL, 7),
        (GENERATIONS, SCALAR, GLOBAL, 7),
        (("gaudi", "gaudib", "greco", "gaudi2"), MAC_PAIR, MAC_INTO_PAIR, 4),
        (("gaudi", "gaudib", "greco", "gaudi2"), MAC_F32, MAC_INTO_PAIR, 6),
    ],
)
def test_the_corrected_distances(
    generations: tuple[str, ...], producer: dict[str, Any], consumer: dict[str, Any], distance: int
) -> None:
    for generation in generations:
        latency = target(generation).latencies.latency(key_of(producer), key_of(consumer))
        assert latency.distance == distance, (generation, latency)
        assert published_latency.distance(generation, producer, consumer) == distance


def test_bad_ports_are_refused_with_file_and_line(tmp_path: Path) -> None:
    ports = "tpc_entry_ports_goya.csv"
    with pytest.raises(TargetDataError, match=r"tpc_entry_ports_goya\.csv:3: port 'load_a' is listed twice"):
        load_target(changed(tmp_path, "load_a,e3\n", "load_a,e3\nload_a,e3\n", ports))


def test_a_rule_that_names_no_instruction_is_refused(tmp_path: Path) -> None:
    text = (SHIPPED / "goya.toml").read_text(encoding="utf-8")
    (tmp_path / "mine.toml").write_text(text.replace('"spu.set_indx", "load.set_indx"', '"spu.setindx"', 1))
    with pytest.raises(TargetDataError, match="the spu slot has no instruction 'setindx'"):
        load_target(tmp_path / "mine.toml")
