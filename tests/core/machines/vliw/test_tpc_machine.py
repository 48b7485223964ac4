"""The TPC machine: vendor schedules, generator, checked mode, loops, jumps, and distances that no stages give."""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np
import pytest
from core.machines.vliw.test_tpc_latency import SPECIAL
from kit.tpc_machine import END, assembled, chip, early, nops, ran
from kit.tpc_text import GENERATIONS, dialect, greco_schedule, table, target

from castsim.execution.tree import Block, Loop, Lowered
from castsim.isa.tpc.parser import parse
from castsim.isa.tpc.program import Bundle, Declaration, File, Register, TensorDeclaration, TpcProgram
from castsim.machines.vliw.assembled import Ran
from castsim.machines.vliw.findings import StaleRead, StaleReadKind
from castsim.machines.vliw.machine import VliwCore
from castsim.machines.vliw.plans import keeps_income
from castsim.machines.vliw.storage import GlobalMemory

NOP = "nop; nop; nop; nop\n"
I0 = "// castsim: reg I0 = [0, 0, 0, 0, 0]\n"
ONE = f"// castsim: tensor 0 y out i32 [1]\n{I0}"
"""A program that leaves one number; `STORE_V0` and `STORE_S1` write it."""
STORE_V0 = f"nop; nop; nop; st_tnsr 0x0, I0, V0\n{END}"
STORE_S1 = f"{nops(4)}nop; nop; mov.i32 V0, S1; nop\n{nops(4)}{STORE_V0}"


def x_and_y(shape: str) -> str:
    return f"// castsim: tensor 0 x in f32 {shape}\n// castsim: tensor 1 y out f32 {shape}\n{I0}"


# -------------------------------------------------------------------------------------------------- a vendor's kernel


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


# ------------------------------------------------------------------------------------------- configuration and random


def test_the_configuration_can_be_read_back() -> None:
    text = f"{ONE}// castsim: reg S1 = 3\nnop; nop; nop; st_l mmio 0xd64, S1\n{nops(2)}"
    text += f"ld_l mmio S2, 0xd64; nop; nop; nop\n{nops(4)}nop; nop; mov.i32 V0, S2; nop\n{nops(4)}{STORE_V0}"
    found = ran(text)
    assert found.outputs["y"][0] == 3
    assert found.stale_reads == ()
    soon = ran(text.replace(f"S1\n{nops(2)}ld_l", f"S1\n{nops(1)}ld_l"))
    assert soon.outputs["y"][0] == 7  # the reset value of the bias
    assert [(f.place, f.distance, f.needed) for f in soon.stale_reads] == [("f8_143_bias", 2, 3)]


def test_the_bias_register_moves_the_minifloat() -> None:
    text = (
        f"// castsim: tensor 0 x in f32 [64]\n// castsim: tensor 1 y out f8_143@11 [256]\n{I0}// castsim: reg S1 = 11\n"
    )
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
    text += "nop; nop; mov V1, LFSR_NO_CHANGE; nop\nnop; nop; mov V2, LFSR; nop\nnop; nop; mov V3, LFSR; nop\n"
    text += nops(4) + "".join(f"nop; nop; nop; st_l_v {0x100 * (k + 1):#x}, V{k + 1}\n" for k in range(3)) + END
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
    text = f"{x_and_y('[64]')}ld_tnsr V0, 0x0, I0; add.i32 b00001 I0, 0x40, I0; nop; nop\n{nops(4)}"
    text += f"nop; nop; nop; st_tnsr 0x1, I0, V0\n{END}"
    found = ran(text, inputs={"x": "random:0"}).stale_reads
    assert [(f.kind, f.place, f.distance, f.needed) for f in found] == [(StaleReadKind.SAME_BUNDLE, "I0", 0, 1)]
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


# ------------------------------------------------------------------------------------------------------------ control

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


def test_iterators_by_depth_and_after_the_loop() -> None:
    inner = "nop; loop 10, 40, 10, <, Inner; nop; nop\n" + NOP
    body = f"{nops(4)}{inner}nop; add.i32 S1, S1, S33; nop; nop\n{nops(5)}"
    body += f"Inner:\nnop; add.i32 S1, S1, S32; nop; nop\n{nops(5)}"
    head = "nop; loop 1, 4, 1, <, End; nop; nop\n"
    assert counted(head, body) == 3 * (10 + 20 + 30) + 1 + 2 + 3
    after = "nop; loop 0, 10, 4, <, End; nop; nop\n"
    text = f"{after}{nops(7)}End:\nnop; nop; mov.i32 V0, S32; nop\n{nops(4)}{STORE_V0}"
    assert ran(ONE + text).outputs["y"][0] == 12  # the first value that fails


def test_loops_that_end_together() -> None:
    body = f"{nops(4)}nop; loop 0, 3, 1, <, End; nop; nop\n{NOP}{COUNT}"
    assert counted("nop; loop 0, 4, 1, <, End; nop; nop\n", body) == 12


@pytest.mark.parametrize("jump", ["jmpr Skip", "jmpr 0x60", "jmpa Skip", "jmpr S5", "jmpa S6", "jmpr Skip, SP1"])
def test_jumps_run_their_delay_bundle_and_skip_the_rest(jump: str) -> None:
    text = (
        f"{ONE}// castsim: reg S5 = 96\n// castsim: reg S6 = 128\n// castsim: reg SP1 = 1\n{NOP}nop; {jump}; nop; nop\n"
    )
    text += f"nop; nop; mov.i32 V0, 0x5; nop\nnop; nop; mov.i32 V0, 0x9; nop\nSkip:\n{nops(4)}{STORE_V0}"
    assert ran(text).outputs["y"][0] == 5
    if "SP1" in jump:
        assert ran(text.replace("SP1 = 1", "SP1 = 0")).outputs["y"][0] == 9


def test_a_backward_jump_repeats() -> None:
    text = f"Again:\nnop; add.i32 S1, S1, 0x1; nop; nop\n{nops(4)}nop; cmp_less.i32 SP1, S1, 0x4; nop; nop\n{NOP}"
    found = ran(f"{ONE}// castsim: reg S1 = 0\n{text}nop; jmpr Again, SP1; nop; nop\n{NOP}{STORE_S1}")
    assert found.outputs["y"][0] == 4
    assert found.stale_reads == ()


def test_nothing_behind_halt_executes() -> None:
    text = f"nop; nop; mov.i32 V0, 0x1; nop\n{nops(3)}nop; halt; halt; nop\nnop; nop; nop; st_tnsr 0x0, I0, V0\n"
    assert ran(ONE + text).outputs["y"][0] == 0


def test_the_program_counter_is_a_byte_address() -> None:
    assert ran(f"{ONE}{nops(3)}nop; mov.i32 S1, PC; nop; nop\n{STORE_S1}").outputs["y"][0] == 3 * 32


# ---------------------------------------------------------------------------------------------------- without values


def test_the_path_needs_no_values() -> None:
    text = (
        f"{x_and_y('[64, 8]')}nop; loop 0, 8, 1, <, End; nop; nop\n{NOP}ld_tnsr V0, 0x0, I0; nop; nop; nop\n{nops(4)}"
    )
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
    with pytest.raises(Exception, match="exceeds the memory of 16384 bytes"):
        ran(text, chip("gaudi", vlm_size="small"))


FAR = 20
"""More than any latency: the largest stage is e13."""

SETUP = f"// castsim: reg S11 = 1\n// castsim: reg S12 = 0x107\n// castsim: reg I2 = [64, 0, 0, 0, 0]\n{NOP}"
"""S12 is a range of 8 lanes from lane 1."""
BEHIND = (Bundle(),) * 3


@lru_cache(maxsize=4096)
def bundles(text: str, generation: str) -> tuple[Bundle, ...]:
    return parse(text, dialect(generation)).bundles


@cache
def declarations(generation: str) -> tuple[Declaration, ...]:
    return parse(SETUP, dialect(generation)).declarations


class Run:
    """A finished run: what the consumer left, and what was found."""

    def __init__(self, generation: str, items: tuple[Bundle, ...]) -> None:
        chip = target(generation)
        rng = np.random.default_rng(0)
        tensor = TensorDeclaration(0, "x", "inout", "f32", (256, 2))
        codes = rng.uniform(-100, 100, 512).astype(np.float32).view(np.uint32)
        declared = declarations(generation)
        machine = VliwCore(TpcProgram(declared, items), chip, GlobalMemory((tensor,), {"x": codes}, chip.tensors.limit))
        vectors = {
            8: rng.uniform(-100, 100, 64).astype(np.float32),
            9: rng.integers(-30000, 30000, 64, dtype=np.int32),
            10: np.full(64, 3.5, np.float32),
            16: np.zeros(64, np.int32),
        }
        for index, data in vectors.items():
            machine.registers.cells(Register(File.V, index))[0].set(data.view(np.uint8))
        for name in ("S0", "S30", "I3", "VP1"):
            cell = machine.registers._cells[name]
            cell.set(cell.settled)
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
    but = ("S30",)

    def run(*items: Bundle) -> Run:
        return Run(generation, (*items, *BEHIND))

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
        done = Run(generation, at_distance(one, two, distance, BEHIND))
        last = done.machine.registers._cells[register].newest
        assert bool(np.any(last)) is overtaken
        assert [f.kind for f in done.stale] == ([StaleReadKind.OVERTAKEN] if overtaken else [])


def test_a_masked_store_of_gaudi2_sees_the_mask_of_its_own_bundle() -> None:
    """docs/reference/tpc.md section 6.1: ST_L_V under a VP, where the rule gives 0."""
    compare, store = "nop; nop; cmp_grt.f32 VP1, V8, V10; nop", "nop; nop; nop; st_l_v S0, V9, VP1"
    (one,), (two,) = bundles(compare, "gaudi2"), bundles(store, "gaudi2")
    together = Run("gaudi2", at_distance(one, two, 0, ()))
    apart = Run("gaudi2", at_distance(one, two, FAR, ()))
    assert together.left() == apart.left()
    assert not together.stale
