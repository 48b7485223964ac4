"""The TPC machine: vendor schedules, configuration and the generator, the checked mode."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from tpc_machine import END, assembled, early, nops, ran
from tpc_text import VECTORS

from castsim.machines.vliw.assembled import Ran
from castsim.machines.vliw.findings import StaleRead, StaleReadKind
from castsim.machines.vliw.lint_checking import keeps_income

NOP = "nop; nop; nop; nop\n"
X = "// castsim: tensor 0 x in {format} {shape}\n// castsim: tensor 1 y out {format} {out}\n"


def kinds(found: tuple[StaleRead, ...]) -> list[StaleReadKind]:
    return [each.kind for each in found]


# -------------------------------------------------------------------------------------------------- a vendor's kernel


def greco_schedule() -> list[str]:
    """The schedule of docs/reference/tpc.md section 6.4: sign extension of 256 i16 from VLM 0x0 to i32 at VLM 0x400."""
    with (VECTORS / "tpc_kernel_schedules_dev.csv").open(newline="", encoding="utf-8") as file:
        rows = [row["instructions_with_registers"] for row in csv.DictReader(file) if row["gen"] == "greco"]
    return [f"{{ {row.replace(' | ', ' ; ')} }}\n" for row in rows]


DATA = "// castsim: vlm 0x0 x i16 [256]\n// castsim: vlm 0x400 y out i32 [256]\n"
TIGHT = [
    (2, 6), (6, 11), (8, 13), (11, 17), (13, 19), (17, 22),
    (18, 23), (19, 24), (22, 26), (23, 27), (24, 28), (26, 30),
]  # fmt: skip


def test_the_greco_schedule_extends_signs_without_a_stale_read() -> None:
    x = np.random.default_rng(0).integers(-(2**15), 2**15, 256).astype(np.int16)
    found = ran(DATA + "".join(greco_schedule()), "greco", {"x": x})
    np.testing.assert_array_equal(found.outputs["y"], x.astype(np.int32))
    assert found.stale_reads == ()
    assert found.warnings == ()


@pytest.mark.parametrize(("writer", "reader"), TIGHT)
def test_removing_any_bundle_of_a_tight_dependence_is_reported(writer: int, reader: int) -> None:
    x = np.arange(256, dtype=np.int16)
    for removed in range(writer + 1, reader):
        rows = greco_schedule()
        del rows[removed]
        found = ran(DATA + "".join(rows), "greco", {"x": x})
        assert (writer, reader - 1) in early(found)
        pair = next(
            f for f in found.stale_reads if f.writer and (f.writer.bundle, f.reader.bundle) == (writer, reader - 1)
        )
        assert pair.missing == 1
        assert pair.needed == reader - writer


def goya_kernel(name: str) -> str:
    with (VECTORS / "tpc_kernel_schedules_dev.csv").open(newline="", encoding="utf-8") as file:
        rows = [row["instructions_with_registers"] for row in csv.DictReader(file) if name in row["source_test"]]
    return "".join(f"{row}\n" for row in rows)


@pytest.mark.parametrize("name", ["vect-01", "vect-02"])
def test_the_goya_kernels_shift_without_a_stale_read(name: str) -> None:
    head = "// castsim: vlm 0x0 x i16 [128]\n// castsim: vlm 0x100 y out i16 [128]\n// castsim: reg S0 = 0x100\n"
    head += "// castsim: reg S1 = 0\n// castsim: reg S2 = 3\n"
    x = np.arange(-64, 64, dtype=np.int16) * 100
    found = ran(head + goya_kernel(name), "goya", {"x": x})
    np.testing.assert_array_equal(found.outputs["y"], x >> 3)  # ash by -3 rounds down
    assert found.stale_reads == ()
    assert found.warnings == ("the program ends without HALT, after its last bundle",)


# ------------------------------------------------------------------------------------------- configuration and random


def test_the_configuration_can_be_read_back() -> None:
    text = "// castsim: tensor 0 y out i32 [1]\n// castsim: reg I0 = [0, 0, 0, 0, 0]\n// castsim: reg S1 = 3\n"
    text += f"nop; nop; nop; st_l mmio 0xd64, S1\n{nops(2)}ld_l mmio S2, 0xd64; nop; nop; nop\n{nops(4)}"
    text += f"nop; nop; mov.i32 V0, S2; nop\n{nops(4)}nop; nop; nop; st_tnsr 0x0, I0, V0\n{END}"
    found = ran(text)
    assert found.outputs["y"][0] == 3
    assert found.stale_reads == ()
    soon = ran(text.replace(f"S1\n{nops(2)}ld_l", f"S1\n{nops(1)}ld_l"))
    assert soon.outputs["y"][0] == 7  # the reset value of the bias
    assert [(f.place, f.distance, f.needed) for f in soon.stale_reads] == [("f8_143_bias", 2, 3)]


def test_the_bias_register_moves_the_minifloat() -> None:
    text = "// castsim: tensor 0 x in f32 [64]\n// castsim: tensor 1 y out f8_143@11 [256]\n"
    text += "// castsim: reg I0 = [0, 0, 0, 0, 0]\n// castsim: reg S1 = 11\n"
    text += f"ld_tnsr V0, 0x0, I0; nop; nop; st_l mmio 0xd64, S1\n{nops(3)}"
    text += f"nop; nop; convert.f32 target_type=f8_143 rhne V1, V0; nop\n{NOP}nop; nop; nop; st_tnsr 0x1, I0, V1\n{END}"
    y = ran(text, inputs={"x": np.full(64, 0.25, np.float32)}).outputs["y"]
    # 4 exponent bits biased by 11 above 3 fraction bits: 2^-2 has the field 9.
    assert {int(code) for code in y[::4]} == {9 << 3}


def test_uses_of_the_generator_before_any_seed_are_reported() -> None:
    text = f"nop; nop; mov V0, LFSR; nop\n{nops(4)}nop; nop; nop; st_l_v 0x0, V0\n{END}"
    (found,) = ran(text).stale_reads
    assert (found.kind, found.place) == (StaleReadKind.UNWRITTEN, "LFSR")


def test_reading_the_generator_advances_it_or_not() -> None:
    head = "// castsim: vlm 0x0 seed u32 [64]\n// castsim: vlm 0x100 y out u32 [64, 3]\n"
    text = f"ld_l_v V0, 0x0; nop; nop; nop\n{nops(3)}nop; nop; mov LFSR, V0; nop\n{nops(3)}"
    text += "nop; nop; mov V1, LFSR_NO_CHANGE; nop\nnop; nop; mov V2, LFSR; nop\nnop; nop; mov V3, LFSR; nop\n" + nops(
        4
    )
    text += "".join(f"nop; nop; nop; st_l_v {0x100 * (k + 1):#x}, V{k + 1}\n" for k in range(3)) + END
    seed = np.arange(1, 65, dtype=np.uint32) * 0x01234567
    found = ran(head + text, "greco", {"seed": seed})
    stepped = np.array([int(w) >> 1 ^ (0x800002CC if w & 1 else 0) for w in seed], np.uint32)
    np.testing.assert_array_equal(found.outputs["y"], [seed, seed, stepped])
    assert found.stale_reads == ()


# ------------------------------------------------------------------------------------------------- the checked mode


def test_registers_and_memory_that_nothing_wrote_are_reported() -> None:
    text = f"ld_l_v V0, 0x100; nop; add.f32 V1, V2, V3; nop\nnop; add.i32 S1, S2, 0x1, SP3; nop; nop\n{END}"
    found = ran(text, "gaudi").stale_reads
    assert {(f.kind, f.place) for f in found} == {
        (StaleReadKind.UNWRITTEN, place) for place in ("V2", "V3", "SP3", "VLM 0x100 .. 0x1ff")
    }  # a false predicate keeps S2 from being read
    assert ran(text, "gaudi", checked=False).stale_reads == ()


def test_repetitions_are_counted() -> None:
    text = f"nop; loop 0, 9, 1, <, End; nop; nop\n{NOP}nop; nop; mov.i32 V0, 0x1; nop\n"
    text += f"nop; nop; mov V1, V0; nop\n{nops(4)}End:\n"
    found = [f for f in ran(text + END).stale_reads if f.kind is StaleReadKind.EARLY]
    assert [(f.times, f.distance, f.needed, f.first) for f in found] == [(9, 1, 4, 3)]
    assert "line 3, bundle 2" in found[0].sentence()


def test_reads_beside_a_write_are_told_apart_from_early_ones() -> None:
    """Stepping an index in the bundle that uses it is how kernels are written: the old value, by definition."""
    text = X.format(format="f32", shape="[64]", out="[64]") + "// castsim: reg I0 = [0, 0, 0, 0, 0]\n"
    text += f"ld_tnsr V0, 0x0, I0; add.i32 b00001 I0, 0x40, I0; nop; nop\n{nops(4)}"
    text += f"nop; nop; nop; st_tnsr 0x1, I0, V0\n{END}"
    found = ran(text, inputs={"x": "random:0"}).stale_reads
    assert kinds(found) == [StaleReadKind.SAME_BUNDLE]
    assert (found[0].place, found[0].distance, found[0].needed) == ("I0", 0, 1)
    later = ran(f"// castsim: reg S1 = 7\nnop; mov.i32 S1, 0x1; nop; st_l 0x0, S1\n{END}").stale_reads
    assert [(f.kind, f.place, f.distance) for f in later] == [(StaleReadKind.SAME_BUNDLE, "S1", 0)]


def test_values_do_not_depend_on_the_mode() -> None:
    text = "// castsim: vlm 0x0 y out i32 [64]\nnop; nop; mov.i32 V0, 0x1; nop\nnop; nop; add.i32 V1, V0, 0x5; nop\n"
    text += f"{nops(8)}nop; nop; nop; st_l_v 0x0, V1\n{END}"
    checked, hardware = ran(text), ran(text, checked=False)
    assert checked.outputs["y"][0] == hardware.outputs["y"][0] == 5  # V0 was still zero
    assert early(checked) == [(0, 1)]


def test_income_is_kept_by_partial_writes_only() -> None:
    program = assembled(
        "nop; nop; mov V0, V1; nop\nnop; nop; mov V0, V1, VP1; nop\n"
        "nop; nop; convert.f32 target_type=int16 V0, V1; nop\n"
        "nop; nop; convert.f32 target_type=int32 V0, V1; nop\nld_l_v_low V0, 0x0; nop; nop; nop\n"
        "set_indx I0, b11111, 0x0; nop; nop; nop\nset_indx I0, b00001, 0x0; nop; nop; nop\n"
    ).program
    kept = [keeps_income(next(i for i in bundle.slots if i)) for bundle in program.bundles]
    assert kept == [False, True, True, False, True, False, True]


# ---------------------------------------------------------------------------------------------- uses of the generator


@pytest.mark.parametrize(("generation", "needed"), [("gaudi", 1), ("gaudib", 1), ("greco", 2), ("gaudi2", 2)])
def test_a_stochastic_conversion_sees_what_the_one_before_stepped(generation: str, needed: int) -> None:
    """docs/reference/tpc.md section 6.1: the generator is committed at e3 and read at e2; the older tables do not
    list it.
    """
    lanes = " single_lane" if generation in ("greco", "gaudi2") else ""
    head = (
        "// castsim: vlm 0x0 seed u32 [64]\n// castsim: vlm 0x100 x i32 [64]\n// castsim: vlm 0x200 y out u32 [64, 2]\n"
    )
    head += f"ld_l_v V0, 0x0; nop; nop; nop\nld_l_v V9, 0x100; nop; nop; nop\n{nops(4)}"
    head += f"nop; nop; mov LFSR, V0; nop\nnop; nop; mov.i32 V1, 0x0; nop\nnop; nop; mov.i32 V2, 0x0; nop\n{nops(3)}"
    draw = f"nop; nop; convert_int32 lane_sel=0{lanes} sr to_16 {{}}, V9, 0xfffffff0; nop\n"
    tail = nops(5) + "nop; nop; nop; st_l_v 0x200, V1\nnop; nop; nop; st_l_v 0x300, V2\n" + END
    rng = np.random.default_rng(3)
    given = {"seed": rng.integers(0, 1 << 32, 64, np.uint32), "x": rng.integers(0, 1 << 29, 64, np.int32)}

    def at(distance: int) -> Ran:
        return ran(head + draw.format("V1") + nops(distance - 1) + draw.format("V2") + tail, generation, given)

    apart = at(needed)
    one, two = apart.outputs["y"]
    assert (one != two).any()  # the second conversion drew other numbers
    assert apart.stale_reads == ()
    if needed > 1:
        soon = at(needed - 1)
        np.testing.assert_array_equal(*soon.outputs["y"])  # the same numbers twice
        assert [(f.place, f.distance, f.needed) for f in soon.stale_reads] == [("LFSR", 1, 2)]
