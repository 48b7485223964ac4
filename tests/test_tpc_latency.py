"""The published producer-consumer distances against the stage tables and the rule of the descriptions."""

from __future__ import annotations

import re
from collections import Counter
from itertools import product

import pytest
from tpc_text import GENERATIONS, dialect, table, target

from isa.tpc import FORMS, Slot, available
from targets.vliw import VliwTarget

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


def distance(chip: VliwTarget, row: dict[str, str]) -> int:
    if row["consumer"] in SPECIAL:
        return int(getattr(chip.distances, SPECIAL[row["consumer"]]))
    role, file = row["operand"].split(".")
    role = "predicate" if role == "pred" else role
    read = chip.read_stage(*CONSUMERS[row["consumer"]], role, FILES[file])
    return read.distance(chip.commit_stage(*PRODUCERS[row["producer"]]))


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_published_distance_follows(generation: str) -> None:
    chip = target(generation)
    rows = [row for row in ROWS if row["gen"] == generation and modelled(row)]
    wrong = [(row, distance(chip, row)) for row in rows if distance(chip, row) != int(row["latency_cycles"])]
    assert wrong == []
    for row in rows:
        if row["producer_commit_stage"]:
            stage = {"d1": -1, "d2": 0} | {f"e{n}": n for n in range(1, 14)}
            assert chip.commit_stage(*PRODUCERS[row["producer"]]) == stage[row["producer_commit_stage"]]


def test_rows_left_out_are_counted() -> None:
    counts = Counter(
        row["producer"] if row["producer"] in NOT_MODELLED else row["consumer"] for row in ROWS if not modelled(row)
    )
    assert counts == NOT_MODELLED
    assert len(ROWS) == 3191


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_instruction_has_stages(generation: str) -> None:
    """Every result and operand of the instruction table, in every slot, under every register file it may use."""
    chip, language = target(generation), dialect(generation)
    for form in FORMS:
        if not available(form, language):
            continue
        for slot, kind in product(form.slots, form.types or (None,)):
            name = Slot(slot).name.lower()
            for spec in form.operands:
                for file in spec.accepts:
                    if file in ("imm", "label", "mask", "compare"):
                        continue
                    if spec.role == "dest":
                        assert 1 <= chip.commit_stage(name, form.mnemonic, kind, file) <= 6
                    else:
                        read = chip.read_stage(name, form.mnemonic, spec.role, "S" if file[0] == "@" else file)
                        assert 0 <= read.read_stage <= read.sharing_stage <= 6
            for file in ("SP", "VP"):
                chip.read_stage(name, form.mnemonic, "predicate", file) if (name, file) != ("spu", "VP") else None


@pytest.mark.parametrize(
    ("producer", "consumer", "distances"),
    [  # tpc.md section 6.1, last table: Goya, Gaudi, Greco, Gaudi2
        ("PACK", ("store", "st_l_v", "src_c", "V"), (7, 7, 5, 2)),
        ("MUL.f32", ("store", "st_l_v", "src_c", "V"), (7, 7, 6, 3)),
        ("ADD.f32", ("vpu", "add", "src_b", "V"), (6, 4, 4, 4)),
        ("LD_L.S", ("spu", "add", "src_b", "S"), (4, 4, 4, 4)),
        ("LD_L.S", ("vpu", "ash", "src_b", "S"), (1, 1, 1, 1)),
        ("SPU CMP->SP", ("spu", "jmpr", "predicate", "SP"), (2, 2, 2, 2)),
        ("GEN_ADDR(load) AD", ("load", "ld_g", "src_a", "AD"), (7, 7, 7, 7)),
    ],
)
def test_distances_of_tpc_md(
    producer: str, consumer: tuple[str, str, str, str], distances: tuple[int, int, int, int]
) -> None:
    for generation, expected in zip(("goya", "gaudi", "greco", "gaudi2"), distances, strict=True):
        chip = target(generation)
        assert chip.read_stage(*consumer).distance(chip.commit_stage(*PRODUCERS[producer])) == expected


def test_what_no_row_covers_is_an_error() -> None:
    with pytest.raises(KeyError, match="no commit stage"):
        target("goya").commit_stage("store", "st_l", None, "S")
