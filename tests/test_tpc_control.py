"""Loops, jumps, the end of programs, and runs without values on the TPC machine."""

from __future__ import annotations

import pytest
from tpc_machine import END, chip, nops, ran

from castsim.execution.tree import Block, Loop, Lowered

NOP = "nop; nop; nop; nop\n"
X = "// castsim: tensor 0 x in {format} {shape}\n// castsim: tensor 1 y out {format} {out}\n"


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
