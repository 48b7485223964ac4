"""The TPC machine: vendor schedules, generator, checked mode, loops, jumps, tensors, memories."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from kit.tpc_machine import END, chip, early, nops, ran
from kit.tpc_text import GENERATIONS, greco_schedule, table

from castsim.isa.errors import IllegalError
from castsim.machines.vliw.assembled import Ran, assemble, execute
from castsim.machines.vliw.findings import StaleReadKind
from castsim.tools.tpc_assembly.scheduling import schedule

NOP = "nop; nop; nop; nop\n"
I0 = "// castsim: reg I0 = [0, 0, 0, 0, 0]\n"
ONE = f"// castsim: tensor 0 y out i32 [1]\n{I0}"
"""A program that leaves one number; `STORE_V0` and `STORE_S1` write it."""
STORE_V0 = f"nop; nop; nop; st_tnsr 0x0, I0, V0\n{END}"
STORE_S1 = f"{nops(4)}nop; nop; mov.i32 V0, S1; nop\n{nops(4)}{STORE_V0}"


def x_and_y(shape: str) -> str:
    return f"// castsim: tensor 0 x in f32 {shape}\n// castsim: tensor 1 y out f32 {shape}\n{I0}"


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
        at = {(f.writer.bundle, f.reader.bundle): (f.missing, f.needed) for f in found.stale_reads[::-1] if f.writer}
        assert (writer, reader - 1) in early(found)
        assert at[writer, reader - 1] == (1, reader - writer)


def goya_kernel(name: str) -> str:
    rows = table("tpc_kernel_schedules_dev.csv")
    return "".join(f"{row['instructions_with_registers']}\n" for row in rows if name in row["source_test"])


@pytest.mark.parametrize("name", ["vect-01", "vect-02"])
def test_the_goya_kernels_shift_without_a_stale_read(name: str) -> None:
    head = "// castsim: vlm 0x0 x i16 [128]\n// castsim: vlm 0x100 y out i16 [128]\n// castsim: reg S0 = 0x100\n"
    head += "// castsim: reg S1 = 0\n// castsim: reg S2 = 3\n"
    x = np.arange(-64, 64, dtype=np.int16) * 100
    found = ran(head + goya_kernel(name), "goya", {"x": x})
    np.testing.assert_array_equal(found.outputs["y"], x >> 3)  # ash by -3 rounds down
    assert found.stale_reads == ()
    assert found.warnings == ("the program ends after its last bundle, without HALT",)


def test_registers_and_memory_that_nothing_wrote_are_reported() -> None:
    text = f"ld_l_v V0, 0x100; nop; add.f32 V1, V2, V3; nop\nnop; add.i32 S1, S2, 0x1, SP3; nop; nop\n{END}"
    found = ran(text, "gaudi").stale_reads
    assert {(f.kind, f.place) for f in found} == {
        (StaleReadKind.UNWRITTEN, place) for place in ("V2", "V3", "SP3", "VLM 0x100 .. 0x1ff")
    }  # a false predicate keeps S2 from being read
    assert ran(text, "gaudi", checked=False).stale_reads == ()


def test_reads_beside_a_write_are_told_apart_from_early_ones() -> None:
    """Stepping an index in the bundle that uses it is how kernels are written: the old value, by definition."""
    text = f"{x_and_y('[64]')}ld_tnsr V0, 0x0, I0; add.i32 b00001 I0, 0x40, I0; nop; nop\n{nops(4)}"
    text += f"nop; nop; nop; st_tnsr 0x1, I0, V0\n{END}"
    found = ran(text, inputs={"x": "random:0"}).stale_reads
    assert [(f.kind, f.place, f.distance, f.needed) for f in found] == [(StaleReadKind.SAME_BUNDLE, "I0", 0, 1)]
    later = ran(f"// castsim: reg S1 = 7\nnop; mov.i32 S1, 0x1; nop; st_l 0x0, S1\n{END}").stale_reads
    assert [(f.kind, f.place, f.distance) for f in later] == [(StaleReadKind.SAME_BUNDLE, "S1", 0)]


@pytest.mark.parametrize(("generation", "needed"), [("gaudi", 1), ("gaudib", 1), ("greco", 2), ("gaudi2", 2)])
def test_a_stochastic_conversion_sees_what_the_one_before_stepped(generation: str, needed: int) -> None:
    """docs/reference/tpc.md section 6.1: the generator is committed at e3 and read at e2; the older tables do not
    list it.
    """
    lanes = " single_lane" if generation in ("greco", "gaudi2") else ""
    head = (
        "// castsim: vlm 0x0 seed u32 [64]\n// castsim: vlm 0x100 x i32 [64]\n// castsim: vlm 0x200 y out u32 [64, 2]"
    )
    head += f"\nld_l_v V0, 0x0; nop; nop; nop\nld_l_v V9, 0x100; nop; nop; nop\n{nops(4)}nop; nop; mov LFSR, V0; nop\n"
    head += f"nop; nop; mov.i32 V1, 0x0; nop\nnop; nop; mov.i32 V2, 0x0; nop\n{nops(3)}"
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


COUNT = "nop; add.i32 S1, S1, 0x1; nop; nop\n" + nops(5)
"""A loop body that counts in S1."""


def counted(head: str, body: str = COUNT, target: str = "gaudi2", **start: int) -> int:
    """Return S1 after a loop, stored as the only element of y."""
    found = ran(f"{ONE}// castsim: reg S1 = 0\n{head}{NOP}{body}End:\n{STORE_S1}", target, **start)
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


def test_iterators_by_depth_and_after_the_loop() -> None:
    inner = "nop; loop 10, 40, 10, <, Inner; nop; nop\n" + NOP
    body = f"{nops(4)}{inner}nop; add.i32 S1, S1, S33; nop; nop\n{nops(5)}"
    body += f"Inner:\nnop; add.i32 S1, S1, S32; nop; nop\n{nops(5)}"
    head = "nop; loop 1, 4, 1, <, End; nop; nop\n"
    assert counted(head, body) == 3 * (10 + 20 + 30) + 1 + 2 + 3
    after = "nop; loop 0, 10, 4, <, End; nop; nop\n"
    text = f"{after}{nops(7)}End:\nnop; nop; mov.i32 V0, S32; nop\n{nops(4)}{STORE_V0}"
    assert ran(ONE + text).outputs["y"][0] == 12  # the first value that fails


@pytest.mark.parametrize("jump", ["jmpr Skip", "jmpr 0x60", "jmpa Skip", "jmpr S5", "jmpa S6", "jmpr Skip, SP1"])
def test_jumps_run_their_delay_bundle_and_skip_the_rest(jump: str) -> None:
    text = (
        f"{ONE}// castsim: reg S5 = 96\n// castsim: reg S6 = 128\n// castsim: reg SP1 = 1\n{NOP}nop; {jump}; nop; nop\n"
    )
    text += f"nop; nop; mov.i32 V0, 0x5; nop\nnop; nop; mov.i32 V0, 0x9; nop\nSkip:\n{nops(4)}{STORE_V0}"
    assert ran(text).outputs["y"][0] == 5
    if "SP1" in jump:
        assert ran(text.replace("SP1 = 1", "SP1 = 0")).outputs["y"][0] == 9


def test_the_path_needs_no_values() -> None:
    text = (
        f"{x_and_y('[64, 8]')}nop; loop 0, 8, 1, <, End; nop; nop\n{NOP}ld_tnsr V0, 0x0, I0; nop; nop; nop\n{nops(4)}"
    )
    text += f"nop; nop; nop; st_tnsr 0x1, I0, V0\nnop; add.i32 b00010 I0, 0x1, I0; nop; nop\n{nops(3)}End:\n{END}"
    with_values, without = ran(text, "greco", {"x": "random:0"}), ran(text, "greco", values=False)
    assert without.tree == with_values.tree
    assert without.outputs == {}
    assert without.stale_reads == with_values.stale_reads


def test_start_values_can_be_given() -> None:
    assert counted("nop; loop 0, S2, 1, <, End; nop; nop\n// castsim: reg S2 = 3\n") == 3
    assert counted("nop; loop 0, S2, 1, <, End; nop; nop\n// castsim: reg S2 = 3\n", S2=7) == 7


SETUP = (
    "// castsim: tensor 0 x in f32 [256]\n// castsim: reg S11 = 1\n// castsim: reg S12 = 0x107\n"
    f"// castsim: reg I3 = [0, 0, 0, 0, 0]\n{NOP}"
)
"""S12 is a range of 8 lanes from lane 1."""
SPECIAL = {  # what no stages give: the first instruction and the one that is too early behind it
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
    "SPU/VPU write to same SP or VP": ("ld_l SP1, 0x44; nop; nop; nop", "nop; mov SP1, 0x0; nop; nop"),
}


@pytest.mark.parametrize("row", [row for row in table("tpc_latency.csv") if row["consumer"] in SPECIAL])
def test_special_distances(row: dict[str, str]) -> None:
    generation, needed = row["gen"], int(row["latency_cycles"])
    configuration = chip(generation).configuration
    words = {
        "round": hex(configuration.get("convert_round", configuration["round"]).address or 0),
        "lanes": " single_lane" if generation in ("greco", "gaudi2") else "",
    }
    first, second = (text.format(**words) for text in SPECIAL[row["consumer"]])

    def stale(distance: int) -> list[StaleReadKind]:
        text = f"{SETUP}{first}\n{nops(distance - 1)}{second}\n{END}"
        reads = ran(text, generation, {"x": "random:0"}).stale_reads
        return [read.kind for read in reads if read.kind is not StaleReadKind.UNWRITTEN]

    assert stale(max(needed, 1)) == []
    if needed > 1:
        overtaken = "write to same SP" in row["consumer"]
        assert stale(needed - 1) == [StaleReadKind.OVERTAKEN if overtaken else StaleReadKind.EARLY]


def tensors(kind: str, shape: str, out: str = "", **registers: str | int) -> str:
    """Declare x, y and registers; an index register by its first coordinates."""
    text = f"// castsim: tensor 0 x in {kind} [{shape}]\n// castsim: tensor 1 y out {kind} [{out or shape}]\n"
    for name, value in registers.items():
        whole = f"[{', '.join([*str(value).split(), *'0000'][:5])}]" if name[0] == "I" else value
        text += f"// castsim: reg {name} = {whole}\n"
    return text


def copy(*, load: str = "ld_tnsr V0, 0x0, I0", store: str = "st_tnsr 0x1, I1, V0", before: str = "") -> str:
    return f"{before}{load}; nop; nop; nop\n{nops(3)}nop; nop; nop; {store}\n{END}"


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("first", [-70, -64, -3, 0, 5, 40, 99, 100, 2**31 - 1, -(2**31)])
def test_lanes_outside_a_tensor_load_zero_and_are_not_stored(generation: str, first: int) -> None:
    text = tensors("f32", "100", I0=first, I1=10) + copy()
    x = np.arange(1, 101, dtype=np.float32)
    expected = np.zeros(100, np.float32)
    for lane in range(64):
        if 0 <= 10 + lane < 100 and 0 <= first + lane < 100:
            expected[10 + lane] = x[first + lane]
    np.testing.assert_array_equal(ran(text, generation, {"x": x}).outputs["y"], expected)


@pytest.mark.parametrize("coordinate", [(0, 3, 0, 0, 0), (0, -1, 0, 0, 0), (0, 0, 1, 0, 0), (0, 0, 0, 0, -1)])
def test_rows_outside_a_tensor_are_outside_in_every_lane(coordinate: tuple[int, ...]) -> None:
    place, x = " ".join(map(str, coordinate)), np.ones((3, 64), np.float32)
    for places in ({"I0": place, "I1": 0}, {"I0": 0, "I1": place}):  # loaded and stored
        text = tensors("f32", "64, 3", **places) + copy()
        assert not ran(text, inputs={"x": x}).outputs["y"].any()


@pytest.mark.parametrize(("kind", "lanes"), [("u8", 256), ("i16", 128), ("f32", 64), ("i64", 32), ("u4", 512)])
def test_a_vector_holds_as_many_elements_as_fit(kind: str, lanes: int) -> None:
    text = tensors(kind, f"{lanes + 8}", I0=0, I1=0) + copy()
    found = ran(text, inputs={"x": "random:3"}).outputs["y"].astype(np.int64)
    again = ran(text.replace("st_tnsr", "st_tnsr_low"), inputs={"x": "random:3"}).outputs["y"].astype(np.int64)
    assert found[:lanes].any()
    assert not found[lanes:].any()
    np.testing.assert_array_equal(again[: lanes // 2], found[: lanes // 2])
    assert not again[lanes // 2 :].any()


def test_halves_and_ranges_keep_the_rest_of_the_register() -> None:
    text = tensors("i32", "64", "64, 4", I0=8, S1=0x507, **{f"I{k + 1}": f"0 {k}" for k in range(4)})
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


def test_vector_predicates_mask_loads_by_byte_and_stores_by_element() -> None:
    text = tensors("i32", "64", I0=0)
    text += "nop; nop; mov.i32 V1, 0x7; nop\n"  # V1 starts at 7 in every lane
    text += f"nop; nop; mov VP1, 0xfffffff0; nop\n{nops(4)}"  # lane 0 of every eight is off
    text += f"ld_tnsr V1, 0x0, I0, VP1; nop; nop; nop\n{nops(4)}nop; nop; nop; st_tnsr 0x1, I0, V1, !VP1\n{END}"
    x = np.arange(100, 164, dtype=np.int32)
    loaded = np.where(np.arange(64) % 8 == 0, 7, x)
    expected = np.where(np.arange(64) % 8 == 0, loaded, 0)
    np.testing.assert_array_equal(ran(text, "gaudi2", {"x": x}).outputs["y"], expected)


def test_predicates_as_data_are_one_bit_per_byte_element() -> None:
    text = tensors("u8", "256", I0=0) + copy(load="ld_tnsr VP1, 0x0, I0", store="st_tnsr 0x1, I0, VP1")
    x = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(ran(text, inputs={"x": x}).outputs["y"], x & 1)
    wide = text.replace(" u8 ", " u32 ").replace("[256]", "[64]")
    x32 = np.arange(64, dtype=np.uint32)
    target = chip("gaudi2", mask_of_wide_elements="one_bit_per_element")
    np.testing.assert_array_equal(ran(wide, target, {"x": x32}).outputs["y"], x32 & 1)


def test_direct_accesses_take_a_plain_address() -> None:
    text = tensors("f16", "300", I0=20, S4=0, S5=2)  # tensor 1 begins at 2 * 2**32
    text += f"gen_addr dt=int8 AD1, 0x0, I0; nop; nop; nop\n{nops(7)}nop; mov Z2, AD1; nop; nop\n{nops(7)}"
    text += copy(load="ld_tnsr direct V0, S2, S3", store="st_tnsr direct S4, S5, V0")
    x = np.arange(300, dtype=np.float16)
    found = ran(text, "gaudi2", {"x": x})
    np.testing.assert_array_equal(found.outputs["y"], np.concatenate([x[20:148], np.zeros(172, np.float16)]))


def test_elements_by_address() -> None:
    text = tensors("i16", "64, 2", "64", I0="3 1", I1=5)
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


# tpc-defs.h by the facts page: type | op << 4 | location << 7 | rmw << 8 (gaudi2) or << 6 (before).
TYPES = {"i8": 0, "i16": 1, "i32": 2, "u8": 3, "u16": 4, "u32": 5, "bf16": 6, "f32": 7}
NUMPY = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32,
         "bf16": ml_dtypes.bfloat16, "f32": np.float32}  # fmt: skip
OPERATIONS = {"add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum}
FLAG = {"gaudi": 6, "gaudi2": 8}


def left(text: str, name: str, **inputs: np.ndarray) -> np.ndarray:
    """Schedule a text of one instruction a line, run it and return y."""
    program = assemble(schedule(text, "t.tpc", chip(name)).text, "t.tpc", chip(name), {})
    found = execute(program, inputs, values=True, checked=True, max_bundles=10**6)
    assert not [each for each in found.stale_reads if each.kind is not StaleReadKind.SAME_BUNDLE]
    return np.asarray(found.outputs["y"])


def stored(name: str, kind: str, word: int, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    where = "S29" if name == "gaudi" else "ST_RMW_REG"
    move = f"mov.i32 S29, {hex(word)}" if name == "gaudi" else f"mov.i32 %s.w, {hex(word)}\nmov {where}, %s.w"
    text = f"// castsim: target {name}\n// castsim: tensor 0 x in {kind} [{len(x)}]\n"
    text += f"// castsim: tensor 1 y inout {kind} [{len(x)}]\n// castsim: reg %i.c = [0, 0, 0, 0, 0]\n"
    store = f"st_tnsr rmw_sel 0x1, %i.c, %v.x, {where}\n"
    return left(f"{text}{move}\nld_tnsr %v.x, 0x0, %i.c\n{store}{store}halt\n", name, x=x, y=y)


@pytest.mark.parametrize("target", FLAG)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("kind", TYPES)
def test_memory_becomes_memory_and_value_joined_twice(target: str, operation: str, kind: str) -> None:
    rng = np.random.default_rng(7)
    lanes = 256 // np.dtype(NUMPY[kind]).itemsize - 3
    x, y = ((rng.integers(-90, 90, lanes) / (1 if kind[0] in "iu" else 4)).astype(NUMPY[kind]) for _ in range(2))
    word = TYPES[kind] | list(OPERATIONS).index(operation) << 4 | 1 << FLAG[target]
    with np.errstate(over="ignore"):
        once = OPERATIONS[operation](y, x)
        want = OPERATIONS[operation](once, x)
    found = stored(target, kind, word, x, y)
    assert np.array_equal(found.view(np.uint8), want.astype(NUMPY[kind]).view(np.uint8))


# docs/reference/tpc.md section 3.1: base + size * tensor + 0x10 + e * dimension, the stride 4 behind.
PLACES = {
    "goya": (0x400, 0x4C, 0xC), "gaudi": (0x400, 0x38, 8), "gaudib": (0x400, 0x38, 8), "greco": (0, 0x38, 8),
    "gaudi2": (0, 0x50, 8),
}  # fmt: skip
DESCRIBED = """// castsim: target {name}
// castsim: tensor 0 x in f32 [64, 3, 5]
// castsim: tensor 1 y out i32 [64, 4]
// castsim: reg %i.c = [0, 0, 0, 0, 0]
"""


@pytest.mark.parametrize("name", PLACES)
def test_sizes_and_strides_are_read_where_the_compiler_reads_them(name: str) -> None:
    base, size, step = PLACES[name]
    offsets = [0x10, 0x10 + step, 0x10 + 2 * step, 0x10 + 2 * step + 4]
    lines = []
    for row, offset in enumerate(offsets):
        lines += [f"ld_l mmio %s.w, {hex(base + offset)}", "mov.i32 %v.w, %s.w", f"set_indx %i.c, b00010, {row}"]
        lines += ["st_tnsr 0x1, %i.c, %v.w"]
    text = DESCRIBED.format(name=name) + "\n".join([*lines, "halt\n"])
    found = left(text, name, x=np.zeros((5, 3, 64), np.float32))
    assert found[:, 0].tolist() == [64, 3, 5, 64 * 3]
    second = text.replace(hex(base + 0x10), hex(base + size + 0x10))
    assert left(second, name, x=np.zeros((5, 3, 64), np.float32))[0, 0] == 64


def test_the_configuration_can_be_read_back() -> None:
    text = f"{ONE}// castsim: reg S1 = 3\nnop; nop; nop; st_l mmio 0xd64, S1\n{nops(2)}"
    text += f"ld_l mmio S2, 0xd64; nop; nop; nop\n{nops(4)}nop; nop; mov.i32 V0, S2; nop\n{nops(4)}{STORE_V0}"
    result = ran(text)
    assert result.outputs["y"][0] == 3
    assert result.stale_reads == ()
    soon = ran(text.replace(f"S1\n{nops(2)}ld_l", f"S1\n{nops(1)}ld_l"))
    assert soon.outputs["y"][0] == 7  # the reset value of the bias
    assert [(f.place, f.distance, f.needed) for f in soon.stale_reads] == [("f8_143_bias", 2, 3)]


def test_the_delay_bundle_runs_once_also_without_trips() -> None:
    for bound in (0, 3):
        body = f"nop; loop 0, {bound}, 1, <, End; nop; nop\nnop; add.i32 S1, S1, 0x7; nop; nop\n{nops(6)}End:\n"
        assert ran(f"{ONE}// castsim: reg S1 = 0\n{body}{STORE_S1}").outputs["y"][0] == 7


def test_a_loop_under_a_false_predicate_is_skipped() -> None:
    assert counted("nop; loop 0, 5, 1, <, End, SP1; nop; nop\n// castsim: reg SP1 = 0\n") == 0
    assert counted("nop; loop 0, 5, 1, <, End, !SP1; nop; nop\n// castsim: reg SP1 = 0\n") == 5


def test_the_encoded_end_of_a_loop() -> None:
    """Bytes from LOOP to the last bundle of the body: 7 bundles on, of 32 bytes."""
    assert counted(f"nop; loop 0, 5, 1, <, {7 * 32}; nop; nop\n") == 5


def test_loops_that_end_together() -> None:
    body = f"{nops(4)}nop; loop 0, 3, 1, <, End; nop; nop\n{NOP}{COUNT}"
    assert counted("nop; loop 0, 4, 1, <, End; nop; nop\n", body) == 12


def test_nothing_behind_halt_executes() -> None:
    text = f"nop; nop; mov.i32 V0, 0x1; nop\n{nops(3)}nop; halt; halt; nop\nnop; nop; nop; st_tnsr 0x0, I0, V0\n"
    assert ran(ONE + text).outputs["y"][0] == 0


def test_the_program_counter_is_a_byte_address() -> None:
    assert ran(f"{ONE}{nops(3)}nop; mov.i32 S1, PC; nop; nop\n{STORE_S1}").outputs["y"][0] == 3 * 32


def test_a_partial_store_writes_its_lanes_and_nothing_else() -> None:
    text = tensors("i32", "64", S31=0x1003, I0=0, I1=20).replace(" out ", " inout ")
    text += copy(store="st_tnsr partial 0x1, I1, V0, S31")
    x, y = np.arange(64, dtype=np.int32), np.full(64, -1, np.int32)
    expected = y.copy()
    expected[20:24] = x[16:20]
    np.testing.assert_array_equal(ran(text, "gaudi", {"x": x, "y": y}).outputs["y"], expected)


def test_another_type_and_an_unknown_operation_are_refused() -> None:
    x = np.zeros(8, np.float32)
    with pytest.raises(IllegalError, match="a merging store of i8 to a tensor of f32"):
        stored("gaudi2", "f32", 1 << 8, x, x)
    with pytest.raises(IllegalError, match="operation 4"):
        stored("gaudi2", "f32", 7 | 4 << 4 | 1 << 8, x, x)


@pytest.mark.parametrize("word", ["0xf0", "0x9998"])
def test_a_word_that_is_not_modelled_is_refused_with_its_address(word: str) -> None:
    load = f"ld_l mmio %s.w, {word}\nmov.i32 %v.w, %s.w\nst_tnsr 0x1, %i.c, %v.w\nhalt\n"
    text = DESCRIBED.format(name="gaudi2") + load
    with pytest.raises(IllegalError, match=word):
        left(text, "gaudi2", x=np.zeros((5, 3, 64), np.float32))
