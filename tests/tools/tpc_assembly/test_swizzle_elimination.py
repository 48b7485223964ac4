"""Lane moves around element-wise work: found, removed, values unchanged; what must stay stays, with a reason."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kit.command_output import document_of, err_of, out_of
from kit.paths import PROGRAMS
from kit.tpc_machine import ran

from castsim.isa.tpc.parser import parse
from castsim.targets.loader import load_target
from castsim.targets.vliw import VliwTarget
from castsim.tools.tpc_assembly.swizzle_elimination import Elimination, eliminate
from castsim.tools.tpc_compiler.builtin_sequences import gather, spread
from castsim.tools.tpc_compiler.c_table import bits_of, path_of
from castsim.tools.tpc_compiler.cast_building import in_lane
from castsim.tools.tpc_compiler.code_generation import Sequence, schedule

LINEAR, SWIZZLED = (PROGRAMS / f"tpc_bf16_scale_{order}_gaudi.tpc" for order in ("linear", "swizzled"))

CASES = [
    ("goya", "i16", "i32"), ("goya", "i8", "i32"), ("goya", "u8", "i32"), ("gaudi", "bf16", "f32"),
    ("gaudi", "i8", "i16"), ("gaudi", "u16", "f32"), ("gaudib", "f16", "f32"), ("greco", "i8", "f32"),
    ("greco", "u16", "u32"), ("gaudi2", "bf16", "f32"), ("gaudi2", "f8_143", "f32"), ("gaudi2", "u8", "f32"),
]  # fmt: skip


def chip(name: str) -> VliwTarget:
    found = load_target(name)
    assert isinstance(found, VliwTarget)
    return found


def linear_program(generation: str, narrow: str, wide: str, tiles: int) -> str:
    """Return max(x + c, c), computed in a wider type with the elements in order all the way."""
    target, sequence = chip(generation), Sequence()
    number = 0x3F800000 if wide == "f32" else 3
    (x,) = sequence.input("x", narrow)
    results = []
    for value in spread(sequence, x, bits_of(narrow), bits_of(wide) // bits_of(narrow), target):
        for hop in path_of(narrow, wide, target).hops:
            value = in_lane(sequence, hop, value, "rhne", zeroed=True, into=None)  # noqa: PLW2901
        sums, largest = sequence.vector(), sequence.vector()
        sequence.vpu(f"add.{wide}", sums, value, number)
        sequence.vpu(f"max.{wide}", largest, sums, number)
        value = largest  # noqa: PLW2901
        for hop in path_of(wide, narrow, target).hops:
            value = in_lane(sequence, hop, value, "rhne", zeroed=False, into=None)  # noqa: PLW2901
        results.append(value)
    sequence.output("y", narrow, gather(sequence, results, bits_of(narrow), target))
    return schedule(sequence, target).text(tiles)


def eliminated(text: str, generation: str = "gaudi") -> Elimination:
    target = chip(generation)
    return eliminate(parse(text, target.dialect, "test.tpc"), target)


def outputs(text: str, generation: str, **inputs: np.ndarray) -> dict[str, bytes]:
    found = ran(text, generation, inputs)
    assert found.stale_reads == ()
    return {name: np.ascontiguousarray(array).tobytes() for name, array in found.outputs.items()}


@pytest.mark.parametrize(("generation", "narrow", "wide"), CASES)
@pytest.mark.parametrize("tiles", [1, 5])
def test_the_pair_goes_and_every_value_stays(generation: str, narrow: str, wide: str, tiles: int) -> None:
    text = linear_program(generation, narrow, wide, tiles)
    found = eliminated(text, generation)
    assert [block.reason for block in found.blocks] == [None]
    moves = ("pack", "unpack", "mov_dg", "mov_g")
    assert not any(f" {move}" in found.text for move in moves)
    removed = dict(found.blocks[0].removed)
    assert sum(removed.values()) == sum(text.count(f" {move}") for move in moves)
    before, after = found.blocks[0].operations
    assert before - after >= sum(removed.values()) - 6  # up to three shifts and three masks take the place of moves
    codes = np.random.default_rng(1).integers(0, 256, tiles * 256, np.uint8)
    native = {"bf16": np.uint16, "f16": np.float16, "f8_143": np.uint8, "i16": np.int16, "u16": np.uint16}
    given = codes.view(native.get(narrow, np.int8 if narrow == "i8" else np.uint8))
    assert outputs(found.text, generation, x=given) == outputs(text, generation, x=given)


def test_the_sample_programs_are_before_and_after() -> None:
    target = chip("gaudi")
    before, after = (parse(path.read_text(encoding="utf-8"), target.dialect, str(path)) for path in (LINEAR, SWIZZLED))
    found = eliminate(before, target)
    assert parse(found.text, target.dialect).items == after.items
    assert dict(found.blocks[0].removed) == {"mov_dg.all": 6, "mov_g": 1, "pack": 4, "unpack": 2}
    # By hand: 13 moves and 8 operations; one conversion up, two products, two sums, one conversion down remain.
    assert found.blocks[0].operations == (21, 6)


HEAD = """// castsim: target gaudi
// castsim: tensor 0 x in i16 [128]
// castsim: tensor 1 y out i16 [128]
// castsim: tensor 2 z in i32 [128]
// castsim: reg I0 = [0, 0, 0, 0, 0]
// castsim: reg I1 = [64, 0, 0, 0, 0]
"""
END = "nop; nop; nop; nop\n" * 3 + "nop; halt; halt; nop\n"


def one_per_bundle(*instructions: str) -> str:
    """Return instructions far enough apart that none reads early."""
    slots = {"ld_tnsr": "{}; nop; nop; nop", "st_tnsr": "nop; nop; nop; {}", "add.i32 b": "nop; {}; nop; nop"}
    lines = []
    for text in instructions:
        form = next((form for prefix, form in slots.items() if text.startswith(prefix)), "nop; nop; {}; nop")
        lines += [form.format(text), *["nop; nop; nop; nop"] * 6]
    return HEAD + "".join(f"{line}\n" for line in lines) + END


FIRST = "ld_tnsr V0, 0x0, I0"


def swapped(register: str, source: str) -> str:
    return f"mov_g g_en=0b11 dg_en=0b1111 {register}, {source}, 0xffffffff"


def between_swaps(*work: str, result: str = "V2") -> str:
    """Work on V1 that leaves a result, between two moves that cancel."""
    return one_per_bundle(FIRST, swapped("V1", "V0"), *work, swapped("V3", result), "st_tnsr 0x1, I0, V3")


def alike(found: Elimination, text: str) -> bytes:
    """The output of a program on numbers, which what is found of it has too."""
    inputs = {"x": np.arange(128, dtype=np.int16), "z": np.zeros(128, np.int32)}
    made = outputs(found.text, "gaudi", **inputs)
    assert made == outputs(text, "gaudi", **inputs)
    return made["y"]


def test_a_permutation_that_is_wanted_stays() -> None:
    text = one_per_bundle(FIRST, swapped("V1", "V0"), "st_tnsr 0x1, I0, V1")
    found = eliminated(text)
    assert not found.changed
    assert "element 0 is not made only of the loaded elements 0" in str(found.blocks[0].reason)
    assert parse(found.text, chip("gaudi").dialect).items == parse(text, chip("gaudi").dialect).items


def test_a_pair_of_moves_that_cancel_goes() -> None:
    text = between_swaps("add.i16 V2, V1, 0x5")
    found = eliminated(text)
    assert dict(found.blocks[0].removed) == {"mov_g": 2}
    alike(found, text)


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        (("mov V2, V_LANE_ID_16", "add.i16 V2, V2, V1"), "moves something else"),
        (("add.i16 V2, V1, V9",), "reads V9, which comes from before the block"),
        (("add.i16 V2, V1, 0x5, SP1",), "under a scalar predicate"),
        (("mul.i16 D4, V1, V1", "add.i16 V2, V1, V4"), "works on a group of registers"),
        (("shr.i16 V2, V1, S3",), None),
    ],
)
def test_work_that_depends_on_the_lane_keeps_its_order(work: tuple[str, ...], reason: str | None) -> None:
    found = eliminated(between_swaps(*work))
    assert (found.blocks[0].reason is None) is (reason is None)
    assert reason is None or reason in str(found.blocks[0].reason)


def test_a_number_from_before_the_loop_is_made_anew_in_it() -> None:
    text = LINEAR.read_text(encoding="utf-8")
    text = text.replace("nop; loop 0,", "mov.f32 V30, 0x3f400000; nop; nop; nop\nnop; loop 0,")
    for register in ("V5, V6", "V12, V10"):
        assert f"mul.f32 {register}, 0x3f400000" in text
        text = text.replace(f"mul.f32 {register}, 0x3f400000", f"mul.f32 {register}, V30")
    found = eliminated(text)
    assert found.changed
    given = np.arange(768, dtype=np.uint16) + np.uint16(0x3F00)
    assert outputs(found.text, "gaudi", x=given) == outputs(LINEAR.read_text(encoding="utf-8"), "gaudi", x=given)


def test_registers_that_another_block_needs_keep_their_block() -> None:
    more = "End:\nnop; nop; nop; st_tnsr 0x1, I0, V16\n" + "nop; nop; nop; nop\n" * 3
    found = eliminated(LINEAR.read_text(encoding="utf-8").replace("End:\n", more))
    assert not found.changed
    assert "reads V16 from before its block" in str(found.blocks[0].reason)


def test_a_wide_second_source_keeps_the_order() -> None:
    """i32 numbers loaded in order meet i16 elements that were spread: out of order they would not."""
    spread_out = (
        "unpack.i16 source_group=0 element_stride=2 group_half=0 V4, V0",
        "convert.i16 target_type=int32 rhne V5, V4",
    )
    back = "convert_int32 lane_sel=0 rhne to_16 V7, V6, 0x0", "pack.i16 source_group=0 element_stride=2 V8, V7"
    loads = FIRST, "ld_tnsr V10, 0x2, I0", "mov.i32 V4, 0x0"
    found = eliminated(one_per_bundle(*loads, *spread_out, "add.i32 V6, V5, V10", *back, "st_tnsr 0x1, I0, V8"))
    assert not found.changed
    assert "not made only of the loaded elements" in str(found.blocks[0].reason)


def test_masks_follow_their_elements() -> None:
    text = between_swaps("cmp_less.i16 VP1, V1, 0x40", "add.i16 V1, V1, 0x5, !VP1", result="V1")
    found = eliminated(text)
    assert found.changed
    changed = np.frombuffer(alike(found, text), np.int16)
    assert changed.tolist() == [n if n < 0x40 else n + 5 for n in range(128)]


def test_a_program_that_reads_early_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "early.tpc"
    early = f"{FIRST}; nop; nop; nop\nnop; nop; {swapped('V1', 'V0')}; nop\n"
    rest = "nop; nop; nop; nop\n" * 6 + f"nop; nop; nop; st_tnsr 0x1, I0, V1\n{END}"
    path.write_text(HEAD.replace("// castsim: tensor 2 z in i32 [128]\n", "") + early + rest, encoding="utf-8")
    err = err_of(capsys, ["unswizzle", str(path)], 1)
    assert "early.tpc:7" in err
    assert "before its new value is ready; its lanes cannot be tracked" in err


def test_the_command_shows_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """324 and 149 cycles are derived by hand in the expected reports of the two programs."""
    out = tmp_path / "shorter.tpc"
    text = out_of(capsys, ["unswizzle", str(LINEAR), "--out", str(out)])
    assert "324 cycles before, 149 after: 175 saved (54.0 %)" in text
    assert "outputs unchanged, bit by bit: y" in text
    found = document_of(capsys, "unswizzle", str(LINEAR), "--quiet", "--in", "x=random:7")
    assert found["text"] == out.read_text(encoding="utf-8")
    assert (found["cycles_before"], found["cycles_saved"], found["outputs_unchanged"]) == (324, 175, {"y": True})


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("absent.tpc",), 2, "absent.tpc"),
        ((str(LINEAR), "--in", "x"), 2, "expected NAME=VALUE"),
        ((str(LINEAR), "--in", "w=zeros"), 2, "w"),
        ((str(LINEAR), "--target", "a5"), 1, "a5 does not run"),
    ],
)
def test_bad_command_lines(arguments, code, text, capsys) -> None:
    assert text in err_of(capsys, ["unswizzle", *arguments], code)
