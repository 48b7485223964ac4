"""The TPC machine: memories, tensors, control flow, configuration, random state, and what the checked mode tells."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from tpc_machine import END, assembled, chip, early, nops, ran
from tpc_text import GENERATIONS, VECTORS

from simulator.tree import Block, Loop, Lowered
from simulator.vliw.findings import Kind, StaleRead
from simulator.vliw.lint.unread import keeps_income

NOP = "nop; nop; nop; nop\n"
X = "// castsim: tensor 0 x in {format} {shape}\n// castsim: tensor 1 y out {format} {out}\n"


def kinds(found: tuple[StaleRead, ...]) -> list[Kind]:
    return [each.kind for each in found]


# -------------------------------------------------------------------------------------------------- a vendor's kernel


def greco_schedule() -> list[str]:
    """The schedule of tpc.md section 6.4: sign extension of 256 i16 from VLM 0x0 to i32 at VLM 0x400."""
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
    assert found.warnings == ("the program ends without HALT, behind its last bundle",)


# --------------------------------------------------------------------------------------------------------- tensors


def copy(*, load: str = "ld_tnsr V0, 0x0, I0", store: str = "st_tnsr 0x1, I1, V0", before: str = "") -> str:
    return f"{before}{load}; nop; nop; nop\n{nops(3)}nop; nop; nop; {store}\n{END}"


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("first", [-70, -64, -3, 0, 5, 40, 99, 100, 2**31 - 1, -(2**31)])
def test_lanes_outside_a_tensor_load_zero_and_are_not_stored(generation: str, first: int) -> None:
    text = X.format(format="f32", shape="[100]", out="[100]")
    text += f"// castsim: reg I0 = [{first}, 0, 0, 0, 0]\n// castsim: reg I1 = [10, 0, 0, 0, 0]\n" + copy()
    x = np.arange(1, 101, dtype=np.float32)
    expected = np.zeros(100, np.float32)
    for lane in range(64):
        if 0 <= 10 + lane < 100 and 0 <= first + lane < 100:
            expected[10 + lane] = x[first + lane]
    np.testing.assert_array_equal(ran(text, generation, {"x": x}).outputs["y"], expected)


@pytest.mark.parametrize("coordinate", [(0, 3, 0, 0, 0), (0, -1, 0, 0, 0), (0, 0, 1, 0, 0), (0, 0, 0, 0, -1)])
def test_rows_outside_a_tensor_are_outside_in_every_lane(coordinate: tuple[int, ...]) -> None:
    place = ", ".join(map(str, coordinate))
    text = X.format(format="f32", shape="[64, 3]", out="[64, 3]")
    x = np.ones((3, 64), np.float32)
    loaded = text + f"// castsim: reg I0 = [{place}]\n// castsim: reg I1 = [0, 0, 0, 0, 0]\n" + copy()
    assert not ran(loaded, inputs={"x": x}).outputs["y"].any()
    stored = text + f"// castsim: reg I1 = [{place}]\n// castsim: reg I0 = [0, 0, 0, 0, 0]\n" + copy()
    assert not ran(stored, inputs={"x": x}).outputs["y"].any()


def test_dimensions_beyond_the_first_are_rows_of_the_array() -> None:
    text = X.format(format="i32", shape="[64, 2, 3]", out="[64, 2, 3]")
    text += "// castsim: reg I0 = [0, 1, 2, 0, 0]\n// castsim: reg I1 = [0, 0, 1, 0, 0]\n" + copy()
    x = np.arange(384, dtype=np.int32).reshape(3, 2, 64)
    expected = np.zeros_like(x)
    expected[1, 0] = x[2, 1]
    np.testing.assert_array_equal(ran(text, inputs={"x": x}).outputs["y"], expected)


@pytest.mark.parametrize(("kind", "lanes"), [("u8", 256), ("i16", 128), ("f32", 64), ("i64", 32), ("u4", 512)])
def test_a_vector_holds_as_many_elements_as_fit(kind: str, lanes: int) -> None:
    text = X.format(format=kind, shape=f"[{lanes + 8}]", out=f"[{lanes + 8}]")
    text += "// castsim: reg I0 = [0, 0, 0, 0, 0]\n// castsim: reg I1 = [0, 0, 0, 0, 0]\n" + copy()
    found = ran(text, inputs={"x": "random:3"}).outputs["y"].astype(np.int64)
    again = ran(text.replace("st_tnsr", "st_tnsr_low"), inputs={"x": "random:3"}).outputs["y"].astype(np.int64)
    assert found[:lanes].any()
    assert not found[lanes:].any()
    np.testing.assert_array_equal(again[: lanes // 2], found[: lanes // 2])
    assert not again[lanes // 2 :].any()


def test_halves_and_ranges_keep_the_rest_of_the_register() -> None:
    text = X.format(format="i32", shape="[64]", out="[64, 4]")
    text += "// castsim: reg I0 = [8, 0, 0, 0, 0]\n// castsim: reg S1 = 0x507\n"
    text += "".join(f"// castsim: reg I{k + 1} = [0, {k}, 0, 0, 0]\n" for k in range(4))
    x = np.arange(100, 164, dtype=np.int32)
    loads = ["ld_tnsr_low V0, 0x0, I0", "ld_tnsr_high V1, 0x0, I0", "ld_tnsr partial V2, 0x0, I0, LD_PARTIAL_REG"]
    loads.append("ld_tnsr_high partial V3, 0x0, I0, LD_PARTIAL_REG")
    text += "mov LD_PARTIAL_REG, S1; nop; nop; nop\n" + nops(7)
    text += "".join(f"nop; nop; mov.i32 V{k}, 0xffffffff; nop\n" for k in range(4)) + nops(4)
    text += "".join(f"{load}; nop; nop; nop\n" for load in loads) + nops(4)
    text += "".join(f"nop; nop; nop; st_tnsr 0x1, I{k + 1}, V{k}\n" for k in range(4)) + END
    expected = np.full((4, 64), -1, np.int32)
    expected[0, :32] = expected[1, 32:] = x[8:40]
    expected[2, 5:13] = x[8:16]  # 8 lanes from lane 5
    expected[3, 37:45] = x[8:16]  # the same within the upper half
    found = ran(text, "gaudi2", {"x": x})
    np.testing.assert_array_equal(found.outputs["y"], expected)
    assert found.stale_reads == ()


def test_a_partial_store_writes_its_lanes_and_nothing_else() -> None:
    text = "// castsim: tensor 0 x in i32 [64]\n// castsim: tensor 1 y inout i32 [64]\n// castsim: reg S31 = 0x1003\n"
    text += "// castsim: reg I0 = [0, 0, 0, 0, 0]\n// castsim: reg I1 = [20, 0, 0, 0, 0]\n"
    text += copy(store="st_tnsr partial 0x1, I1, V0, S31")
    x, y = np.arange(64, dtype=np.int32), np.full(64, -1, np.int32)
    expected = y.copy()
    expected[20:24] = x[16:20]
    np.testing.assert_array_equal(ran(text, "gaudi", {"x": x, "y": y}).outputs["y"], expected)


def test_tensor_numbers_from_registers() -> None:
    text = X.format(format="i32", shape="[64]", out="[64]") + "// castsim: reg S27 = 0\n// castsim: reg S28 = 1\n"
    text += "// castsim: reg I0 = [0, 0, 0, 0, 0]\n"
    x = np.arange(64, dtype=np.int32)
    text += copy(load="ld_tnsr V0, S27, I0", store="st_tnsr S28, I0, V0")
    np.testing.assert_array_equal(ran(text, "gaudi", {"x": x}).outputs["y"], x)


def test_vector_predicates_mask_loads_by_byte_and_stores_by_element() -> None:
    text = X.format(format="i32", shape="[64]", out="[64]") + "// castsim: reg I0 = [0, 0, 0, 0, 0]\n"
    text += "nop; nop; mov.i32 V1, 0x7; nop\n"  # V1 starts at 7 in every lane
    text += f"nop; nop; mov VP1, 0xfffffff0; nop\n{nops(4)}"  # lane 0 of every eight is off
    text += f"ld_tnsr V1, 0x0, I0, VP1; nop; nop; nop\n{nops(4)}nop; nop; nop; st_tnsr 0x1, I0, V1, !VP1\n{END}"
    x = np.arange(100, 164, dtype=np.int32)
    loaded = np.where(np.arange(64) % 8 == 0, 7, x)
    expected = np.where(np.arange(64) % 8 == 0, loaded, 0)
    np.testing.assert_array_equal(ran(text, "gaudi2", {"x": x}).outputs["y"], expected)


def test_predicates_as_data_are_one_bit_per_byte_element() -> None:
    text = X.format(format="u8", shape="[256]", out="[256]") + "// castsim: reg I0 = [0, 0, 0, 0, 0]\n"
    text += copy(load="ld_tnsr VP1, 0x0, I0", store="st_tnsr 0x1, I0, VP1")
    x = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(ran(text, inputs={"x": x}).outputs["y"], x & 1)
    wide = text.replace(" u8 ", " u32 ").replace("[256]", "[64]")
    x32 = np.arange(64, dtype=np.uint32)
    target = chip("gaudi2", mask_of_wide_elements="one_bit_per_element")
    np.testing.assert_array_equal(ran(wide, target, {"x": x32}).outputs["y"], x32 & 1)


def test_direct_accesses_take_a_plain_address() -> None:
    text = X.format(format="f16", shape="[300]", out="[300]") + "// castsim: reg I0 = [20, 0, 0, 0, 0]\n"
    text += "// castsim: reg S4 = 0\n// castsim: reg S5 = 2\n"  # tensor 1 begins at 2 * 2**32
    text += f"gen_addr dt=int8 AD1, 0x0, I0; nop; nop; nop\n{nops(7)}nop; mov Z2, AD1; nop; nop\n{nops(7)}"
    text += copy(load="ld_tnsr direct V0, S2, S3", store="st_tnsr direct S4, S5, V0")
    x = np.arange(300, dtype=np.float16)
    found = ran(text, "gaudi2", {"x": x})
    np.testing.assert_array_equal(found.outputs["y"], np.concatenate([x[20:148], np.zeros(172, np.float16)]))


# ------------------------------------------------------------------------------------------ elements and local memory


def test_elements_by_address() -> None:
    text = X.format(format="i16", shape="[64, 2]", out="[64]") + "// castsim: reg I0 = [3, 1, 0, 0, 0]\n"
    text += "// castsim: reg I1 = [5, 0, 0, 0, 0]\n"
    text += f"gen_addr AD1, 0x0, I0; nop; nop; gen_addr AD2, 0x1, I1\n{nops(7)}ld_g S1, AD1; nop; nop; nop\n"
    text += f"ld_g V2, AD1; nop; nop; nop\n{nops(6)}nop; nop; nop; st_g AD2, S1\n"
    text += "nop; nop; nop; st_l_v 0x0, V2\n// castsim: vlm 0x0 v out i16 [128]\n" + END
    x = np.arange(-64, 64, dtype=np.int16).reshape(2, 64)
    found = ran(text, "gaudi", {"x": x})
    assert found.outputs["y"][5] == x[1, 3]
    assert np.count_nonzero(found.outputs["y"]) == 1
    assert (found.outputs["v"] == x[1, 3]).all()  # all lanes
    assert found.stale_reads == ()


def test_an_element_into_an_index_register() -> None:
    text = "// castsim: tensor 0 x in i32 [8]\n// castsim: tensor 1 y out i32 [64, 9]\n"
    text += "// castsim: reg I0 = [2, 0, 0, 0, 0]\n// castsim: reg I1 = [0, 0, 0, 0, 0]\n"
    text += f"gen_addr dt=int8 AD1, 0x0, I0; nop; mov.i32 V0, 0x1; nop\n{nops(7)}"
    text += f"ld_g b00010 I1, AD1; nop; nop; nop\n{nops(4)}nop; nop; nop; st_tnsr 0x1, I1, V0\n{END}"
    y = ran(text, "greco", {"x": np.full(8, 4, np.int32)}).outputs["y"]
    assert y[4].all()
    assert np.count_nonzero(y) == 64


def test_scalar_memory_and_predicates_in_it() -> None:
    text = "// castsim: tensor 0 y out i32 [1]\n// castsim: reg I0 = [0, 0, 0, 0, 0]\n"
    text += "nop; mov.i32 S1, 0x1234; nop; nop\nnop; mov SP1, 0x1; nop; nop\n" + nops(6)
    text += "nop; nop; nop; st_l 0x8, S1\nnop; nop; nop; st_l 0xc, SP1\nld_l S2, 0x8; nop; nop; nop\n"
    text += f"ld_l SP2, 0xc; nop; nop; nop\n{nops(4)}"
    text += f"nop; mov.i32 S3, S2, SP2; nop; nop\n{nops(4)}nop; nop; mov.i32 V0, S3; nop\n{nops(4)}"
    found = ran(f"{text}nop; nop; nop; st_tnsr 0x0, I0, V0\n{END}", "goya")
    assert found.stale_reads == ()
    assert found.outputs["y"][0] == 0x1234


def test_vector_memory_in_halves_and_as_masks() -> None:
    head = "// castsim: vlm 0x0 x u8 [256]\n// castsim: vlm 0x100 y out u8 [512]\n"
    text = "ld_l_v_low V0, 0x0; nop; nop; nop\nld_l_v_high V1, 0x0; nop; nop; nop\n" + nops(6)
    text += "nop; nop; nop; st_l_v_low 0x100, V0\nnop; nop; nop; st_l_v_high 0x200, V1\n" + END
    x = np.arange(1, 257).astype(np.uint8)
    y = ran(head + text, "gaudi", {"x": x}).outputs["y"]
    np.testing.assert_array_equal(y[:128], x[:128])
    np.testing.assert_array_equal(y[384:], x[128:])
    assert not y[128:384].any()
    text = f"ld_l_v VP1, 0x20; nop; nop; nop\n{nops(7)}nop; nop; nop; st_l_v 0x100, VP1\n{END}"
    y = ran(head + text, "gaudi", {"x": x}).outputs["y"]
    np.testing.assert_array_equal(y[:32], x[32:64])  # 256 bits are 32 bytes


def test_goya_adds_two_address_parts() -> None:
    head = "// castsim: vlm 0x300 x i32 [64]\n// castsim: vlm 0x0 y out i32 [64]\n// castsim: reg S1 = 0x100\n"
    text = f"ld_l_v V0, S1, 0x200; nop; nop; nop\n{nops(6)}nop; nop; nop; st_l_v S1, 0xffffff00, V0\n{END}"
    x = np.arange(64, dtype=np.int32)
    np.testing.assert_array_equal(ran(head + text, "goya", {"x": x}).outputs["y"], x)  # the sum is of 32 bits


def test_masked_store_of_gaudi2() -> None:
    head = "// castsim: vlm 0x0 x u8 [256]\n// castsim: vlm 0x100 y inout u8 [256]\n"
    text = f"ld_l_v V0, 0x0; nop; mov VP1, 0xff; nop\n{nops(4)}nop; nop; nop; st_l_v 0x100, V0, VP1\n{END}"
    x, y = np.arange(256).astype(np.uint8), np.full(256, 9, np.uint8)
    expected = np.where(np.arange(256) % 32 < 8, x, y)
    np.testing.assert_array_equal(ran(head + text, "gaudi2", {"x": x, "y": y}).outputs["y"], expected)


# ------------------------------------------------------------------------------------------------------------ control

COUNT = "nop; add.i32 S1, S1, 0x1; nop; nop\n" + nops(5)
"""A loop body that counts in S1."""


def counted(head: str, body: str = COUNT, target: str = "gaudi2", **start: int) -> int:
    """Return S1 after a loop, stored as the only element of y."""
    text = "// castsim: tensor 0 y out i32 [1]\n// castsim: reg S1 = 0\n// castsim: reg I0 = [0, 0, 0, 0, 0]\n"
    text += (
        f"{head}{NOP}{body}End:\n{nops(4)}nop; nop; mov.i32 V0, S1; nop\n{nops(4)}nop; nop; nop; st_tnsr 0x0, I0, V0\n"
    )
    found = ran(text + END, target, **start)
    assert found.stale_reads == ()
    return int(found.outputs["y"][0])


@pytest.mark.parametrize(
    ("start", "bound", "step", "compare", "trips"),
    [
        (0, 5, 1, "<", 5), (0, 5, 1, "<=", 6), (0, 5, 2, "<", 3), (5, 0, -1, ">", 5), (5, 0, -1, ">=", 6),
        (0, 6, 2, "!=", 3), (3, 3, 1, "==", 1), (5, 5, 1, "<", 0), (0, 5, 1, ">", 0), (-3, 0, 1, "<", 3),
        (2147483646, 0, 1, ">", 2),
    ],
)  # fmt: skip
def test_trips_of_a_hardware_loop(start: int, bound: int, step: int, compare: str, trips: int) -> None:
    head = f"nop; loop {start}, {bound}, {step}, {compare}, End; nop; nop\n"
    assert counted(head) == trips


def test_the_delay_bundle_runs_once_also_without_trips() -> None:
    text = "// castsim: tensor 0 y out i32 [1]\n// castsim: reg I0 = [0, 0, 0, 0, 0]\n// castsim: reg S1 = 0\n"
    for bound in (0, 3):
        body = (
            f"nop; loop 0, {bound}, 1, <, End; nop; nop\nnop; add.i32 S1, S1, 0x7; nop; nop\n{nops(6)}End:\n{nops(4)}"
        )
        tail = f"nop; nop; mov.i32 V0, S1; nop\n{nops(4)}nop; nop; nop; st_tnsr 0x0, I0, V0\n{END}"
        assert ran(text + body + tail).outputs["y"][0] == 7


def test_a_loop_under_a_false_predicate_is_skipped() -> None:
    assert counted("nop; loop 0, 5, 1, <, End, SP1; nop; nop\n// castsim: reg SP1 = 0\n") == 0
    assert counted("nop; loop 0, 5, 1, <, End, !SP1; nop; nop\n// castsim: reg SP1 = 0\n") == 5


def test_the_encoded_end_of_a_loop() -> None:
    """Bytes from LOOP to the last bundle of the body: 7 bundles on, of 32 bytes."""
    assert counted(f"nop; loop 0, 5, 1, <, {7 * 32}; nop; nop\n") == 5


def test_iterators_by_depth_and_after_the_loop() -> None:
    inner = "nop; loop 10, 40, 10, <, Inner; nop; nop\n" + NOP
    body = f"{nops(4)}{inner}nop; add.i32 S1, S1, S33; nop; nop\n{nops(5)}"
    body += f"Inner:\nnop; add.i32 S1, S1, S32; nop; nop\n{nops(5)}"
    head = "nop; loop 1, 4, 1, <, End; nop; nop\n"
    assert counted(head, body) == 3 * (10 + 20 + 30) + 1 + 2 + 3
    after = "nop; loop 0, 10, 4, <, End; nop; nop\n"
    text = "// castsim: tensor 0 y out i32 [1]\n// castsim: reg I0 = [0, 0, 0, 0, 0]\n"
    text += f"{after}{nops(7)}End:\nnop; nop; mov.i32 V0, S32; nop\n{nops(4)}nop; nop; nop; st_tnsr 0x0, I0, V0\n{END}"
    assert ran(text).outputs["y"][0] == 12  # the first value that fails


def test_loops_that_end_together() -> None:
    body = f"{nops(4)}nop; loop 0, 3, 1, <, End; nop; nop\n{NOP}{COUNT}"
    assert counted("nop; loop 0, 4, 1, <, End; nop; nop\n", body) == 12


@pytest.mark.parametrize("jump", ["jmpr Skip", "jmpr 0x60", "jmpa Skip", "jmpr S5", "jmpa S6", "jmpr Skip, SP1"])
def test_jumps_run_their_delay_bundle_and_skip_the_rest(jump: str) -> None:
    text = "// castsim: tensor 0 y out i32 [1]\n// castsim: reg I0 = [0, 0, 0, 0, 0]\n// castsim: reg S1 = 0\n"
    text += "// castsim: reg S5 = 96\n// castsim: reg S6 = 128\n// castsim: reg SP1 = 1\n"
    text += (
        f"{NOP}nop; {jump}; nop; nop\nnop; nop; mov.i32 V1, 0x5; nop\nnop; nop; mov.i32 V1, 0x9; nop\nSkip:\n{nops(4)}"
    )
    text += f"nop; nop; nop; st_tnsr 0x0, I0, V1\n{END}"
    assert ran(text).outputs["y"][0] == 5
    if "SP1" in jump:
        assert ran(text.replace("SP1 = 1", "SP1 = 0")).outputs["y"][0] == 9


def test_a_backward_jump_repeats() -> None:
    text = "// castsim: tensor 0 y out i32 [1]\n// castsim: reg I0 = [0, 0, 0, 0, 0]\n// castsim: reg S1 = 0\n"
    text += f"Again:\nnop; add.i32 S1, S1, 0x1; nop; nop\n{nops(4)}nop; cmp_less.i32 SP1, S1, 0x4; nop; nop\n{NOP}"
    text += f"nop; jmpr Again, SP1; nop; nop\n{NOP}{nops(4)}nop; nop; mov.i32 V0, S1; nop\n{nops(4)}"
    text += f"nop; nop; nop; st_tnsr 0x0, I0, V0\n{END}"
    found = ran(text)
    assert found.outputs["y"][0] == 4
    assert found.stale_reads == ()


def test_nothing_behind_halt_executes() -> None:
    text = "// castsim: tensor 0 y out i32 [1]\n// castsim: reg I0 = [0, 0, 0, 0, 0]\nnop; nop; mov.i32 V0, 0x1; nop\n"
    text += f"{nops(3)}nop; halt; halt; nop\nnop; nop; nop; st_tnsr 0x0, I0, V0\n"
    assert ran(text).outputs["y"][0] == 0


def test_the_program_counter_is_a_byte_address() -> None:
    text = "// castsim: tensor 0 y out i32 [1]\n// castsim: reg I0 = [0, 0, 0, 0, 0]\n"
    text += f"{nops(3)}nop; mov.i32 S1, PC; nop; nop\n{nops(4)}nop; nop; mov.i32 V0, S1; nop\n{nops(4)}"
    assert ran(text + f"nop; nop; nop; st_tnsr 0x0, I0, V0\n{END}").outputs["y"][0] == 3 * 32


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
    assert (found.kind, found.place) == (Kind.UNWRITTEN, "LFSR")


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
        (Kind.UNWRITTEN, place) for place in ("V2", "V3", "SP3", "VLM 0x100 .. 0x1ff")
    }  # a false predicate keeps S2 from being read
    assert ran(text, "gaudi", checked=False).stale_reads == ()


def test_repetitions_are_counted() -> None:
    text = f"nop; loop 0, 9, 1, <, End; nop; nop\n{NOP}nop; nop; mov.i32 V0, 0x1; nop\n"
    text += f"nop; nop; mov V1, V0; nop\n{nops(4)}End:\n"
    found = [f for f in ran(text + END).stale_reads if f.kind is Kind.EARLY]
    assert [(f.times, f.distance, f.needed, f.first) for f in found] == [(9, 1, 4, 3)]
    assert "line 3, bundle 2" in found[0].sentence()


def test_reads_beside_a_write_are_told_apart_from_early_ones() -> None:
    """Stepping an index in the bundle that uses it is how kernels are written: the old value, by definition."""
    text = X.format(format="f32", shape="[64]", out="[64]") + "// castsim: reg I0 = [0, 0, 0, 0, 0]\n"
    text += f"ld_tnsr V0, 0x0, I0; add.i32 b00001 I0, 0x40, I0; nop; nop\n{nops(4)}"
    text += f"nop; nop; nop; st_tnsr 0x1, I0, V0\n{END}"
    found = ran(text, inputs={"x": "random:0"}).stale_reads
    assert kinds(found) == [Kind.SAME_BUNDLE]
    assert (found[0].place, found[0].distance, found[0].needed) == ("I0", 0, 1)


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


# ---------------------------------------------------------------------------------------------------- without values


def test_the_path_needs_no_values() -> None:
    text = X.format(format="f32", shape="[64, 8]", out="[64, 8]") + "// castsim: reg I0 = [0, 0, 0, 0, 0]\n"
    text += f"nop; loop 0, 8, 1, <, End; nop; nop\n{NOP}ld_tnsr V0, 0x0, I0; nop; nop; nop\n{nops(4)}"
    text += f"nop; nop; nop; st_tnsr 0x1, I0, V0\nnop; add.i32 b00010 I0, 0x1, I0; nop; nop\n{nops(3)}End:\n{END}"
    with_values, without = ran(text, "greco", {"x": "random:0"}), ran(text, "greco", values=False)
    assert without.tree == with_values.tree
    assert without.outputs == {}
    assert without.stale_reads == with_values.stale_reads


def test_loops_stay_loops_in_the_tree() -> None:
    text = f"nop; loop 0, 1000, 1, <, End; nop; nop\n{nops(7)}End:\n{END}"
    tree = ran(text, values=False).tree
    (loop,) = [item for item in tree.root.items if isinstance(item, Loop)]
    assert loop.trips == 1000
    assert len(loop.body.items) == 6
    assert all(isinstance(item, Lowered) for item in loop.body.items)


def test_addresses_step_in_the_tree() -> None:
    head = (
        "// castsim: vlm 0x0 x f32 [64, 16]\n// castsim: vlm 0x4000 y out f32 [64, 16]\n// castsim: reg S1 = 0x4000\n"
    )
    text = f"nop; loop 0, 4096, 0x100, <, End; nop; nop\n{NOP}ld_l_v V0, S32, 0x0; nop; nop; nop\n{nops(6)}"
    text += f"nop; nop; nop; st_l_v S32, S1, V0\nEnd:\n{END}"
    found = ran(head + text, "goya", {"x": "random:0"})
    (loop,) = [item for item in found.tree.root.items if isinstance(item, Loop)]
    assert loop.trips == 16
    assert {step for step in loop.steps if step} == {(256,)}


def test_nested_loops_fold_from_the_inside() -> None:
    inner = f"nop; loop 0, 5, 1, <, Inner; nop; nop\n{nops(7)}Inner:\n"
    tree = ran(f"nop; loop 0, 3, 1, <, End; nop; nop\n{nops(2)}{inner}{nops(6)}End:\n{END}", values=False).tree
    (outer,) = [item for item in tree.root.items if isinstance(item, Loop)]
    (nested,) = [item for item in outer.body.items if isinstance(item, Loop)]
    assert (outer.trips, nested.trips) == (3, 5)
    assert isinstance(outer.body, Block)


def test_start_values_can_be_given() -> None:
    assert counted("nop; loop 0, S2, 1, <, End; nop; nop\n// castsim: reg S2 = 3\n") == 3
    assert counted("nop; loop 0, S2, 1, <, End; nop; nop\n// castsim: reg S2 = 3\n", S2=7) == 7


def test_small_vector_memory_is_an_option() -> None:
    text = f"ld_l_v V0, 0x4000; nop; nop; nop\n{END}"
    assert ran(text, "gaudi").tree
    with pytest.raises(Exception, match="beyond the 16384 bytes"):
        ran(text, chip("gaudi", vlm_size="small"))
