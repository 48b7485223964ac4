"""Which operations a strided-repeat cast becomes, in which order: worked out by hand from a2a3.md 2.3 and 3.4."""

from __future__ import annotations

import dataclasses
from itertools import product

import numpy as np
import oracle_a2a3
import pytest
from strided_cases import LOWERER, SPAN, issued, tile, tile_cast
from strided_model import SIZE, Cast, repeat_shape

from isa.errors import IllegalError, ScratchError, TileError
from isa.formats import format_named
from isa.modes import Overflow, Rounding, Saturation
from isa.pto.program import RoundMode
from simulator.strided.geometry import repeat_blocks
from simulator.strided.operations import (
    Barrier,
    BitwiseAnd,
    ControlWrite,
    Convert,
    Duplicate,
    RoundToIntegral,
    ScaledConvert,
    VectorOperation,
)
from simulator.strided.plan import plan_cast
from simulator.strided.scratch import scratch_need
from simulator.strided.whole_tile import natural_map
from simulator.tiles import TileCast
from simulator.tree import Operation
from targets import load_target

A2A3 = load_target("a2a3")
FULL = (1 << 128) - 1
OFF = 1 << 59
CTRL_ON, CTRL_OFF = "ctrl 0", "ctrl off"
TMP = 131_072


def text(operation: Operation) -> str:
    """One operation in the shorthand of this file: `NAME REPEATSxMASKLANES dst+STRIDE <- src+STRIDE`."""
    if isinstance(operation, ControlWrite):
        if operation.register == "ctrl":
            assert operation.value in (0, OFF)
            return CTRL_OFF if operation.value else CTRL_ON
        if operation.register == "mask":
            lanes = operation.value.bit_length()
            assert operation.value == (1 << lanes) - 1
            return f"mask {lanes}"
        return f"{operation.register} {operation.value:#x}"
    if isinstance(operation, Barrier):
        return f"barrier {operation.pipe}"
    assert isinstance(operation, VectorOperation)
    lanes = operation.mask.bit_length()
    assert operation.mask == (1 << lanes) - 1
    streams = (operation.destination, *operation.sources)
    assert all(stream.block_stride == 1 for stream in streams)
    dst, *sources = (f"{stream.address}+{stream.repeat_stride}" for stream in streams)
    return f"{operation.mnemonic} {operation.repeats}x{min(lanes, operation.lanes)} {dst} <- {', '.join(sources)}"


def lower(model: Cast, tmp_bytes: int = 0) -> list[Operation]:
    return issued(LOWERER.cast(tile_cast(model, tmp_bytes)))


def texts(model: Cast, tmp_bytes: int = 0) -> list[str]:
    return [text(operation) for operation in lower(model, tmp_bytes)]


def calls(operations: list[Operation]) -> list[VectorOperation]:
    return [operation for operation in operations if isinstance(operation, VectorOperation)]


# ---------------------------------------------------------------------------------------------------- head and tail


def test_head_and_tail() -> None:
    # f32 -> f16, 3 x 130 in tiles of 144 columns: E = 64, nRep = 2, nRem = 2. Row pitches 576 and 288 bytes, that is
    # 18 and 9 blocks. Head: one call of 2 repeats per row, strides 8 and 4. Tail: column 128, one repeat per row.
    model = Cast("f32", "f16", 3, 130, 144, 0, 65536, mode="floor")
    assert texts(model) == [
        CTRL_ON,
        "vconv_f322f16f 2x64 65536+4 <- 0+8",
        "vconv_f322f16f 2x64 65824+4 <- 576+8",
        "vconv_f322f16f 2x64 66112+4 <- 1152+8",
        "mask 2",
        "vconv_f322f16f 3x2 65792+9 <- 512+18",
        "mask 128",
        CTRL_ON,
    ]


def test_rows_are_never_merged() -> None:
    # a2a3.md 2.3: a tile with C = E costs R calls of one repeat each, although its rows are contiguous.
    model = Cast("f32", "f16", 4, 64, 64, 0, 65536)
    head = [f"vconv_f322f16r 1x64 {65536 + 128 * row}+4 <- {256 * row}+8" for row in range(4)]
    assert texts(model) == [CTRL_ON, *head, CTRL_ON]


def test_tail_alone_goes_down_the_rows() -> None:
    # R = 256, C = 32 f32 -> f16: two tail calls, 255 rows and 1. Pitches 128 and 64 bytes, 4 and 2 blocks.
    model = Cast("f32", "f16", 256, 32, 32, 0, 65536)
    assert texts(model) == [
        CTRL_ON,
        "mask 32",
        "vconv_f322f16r 255x32 65536+2 <- 0+4",
        f"vconv_f322f16r 1x32 {65536 + 255 * 64}+2 <- {255 * 128}+4",
        "mask 128",
        CTRL_ON,
    ]


def test_rows_longer_than_255_repeats() -> None:
    # f32 -> bf16, 1 x 16385: nRep = 256 = 255 + 1, nRem = 1. The second call starts 255 * 64 elements on; declared
    # columns 16400: 65600 bytes = 2050 blocks, 32800 bytes = 1025 blocks.
    model = Cast("f32", "bf16", 1, 16385, 16400, 0, 98304, mode="odd")
    assert texts(model) == [
        CTRL_ON,
        "vconv_f322bf16r 255x64 98304+4 <- 0+8",
        f"vconv_f322bf16r 1x64 {98304 + 255 * 128}+4 <- {255 * 256}+8",
        "mask 1",
        f"vconv_f322bf16r 1x1 {98304 + 256 * 128}+1025 <- {256 * 256}+2050",
        "mask 128",
        CTRL_ON,
    ]


def test_int4_pointer_counts_bytes() -> None:
    # f16 -> s4, 2 x 192 in tiles of 192 columns: one head call per row (E = 128, s4 stride 2 blocks), row pitches 384
    # and 192 bytes; the tail's s4 address is 128 bytes into the row, where 64 would continue the packed data (2.4).
    model = Cast("f16", "i4", 2, 192, 192, 0, 65536, mode="none")
    assert texts(model) == [
        CTRL_ON,
        "vconv_f162s4 1x128 65536+2 <- 0+8",
        "vconv_f162s4 1x128 65728+2 <- 384+8",
        "mask 64",
        "vconv_f162s4 2x64 65664+6 <- 256+12",
        "mask 128",
        CTRL_ON,
    ]


def test_int4_source_of_more_than_255_repeats() -> None:
    # s4 -> f16, 1 x 32768: 256 repeats; the second call reads from byte 128 * 255 of the row (2.4).
    model = Cast("i4", "f16", 1, 32768, 32768, 0, 65536)
    assert texts(model)[1:-1] == [
        "vconv_s42f16 255x128 65536+8 <- 0+2",
        f"vconv_s42f16 1x128 {65536 + 255 * 256}+8 <- {255 * 128}+2",
    ]


def test_scaled_conversion_writes_its_scale_before_every_call() -> None:
    # i32 -> f16, 2 x 66: 1.0 as f16 is 0x3C00. Pitches 80 * 4 = 320 bytes = 10 blocks, 160 bytes = 5 blocks.
    model = Cast("i32", "f16", 2, 66, 80, 0, 65536, mode="floor")
    before = ["deqscale 0x3c00", "barrier V"]
    assert texts(model) == [
        CTRL_ON,
        *before,
        "vconv_deq 1x64 65536+4 <- 0+8",
        *before,
        "vconv_deq 1x64 65696+4 <- 320+8",
        "mask 2",
        *before,
        "vconv_deq 2x2 65664+5 <- 256+10",
        "mask 128",
        CTRL_ON,
    ]


# a2a3.md 2.1 and 3.5: fields of 8 bits. 2064 i32 are 258 blocks, cut to 2; 4128 f16 are 258 blocks, cut to 2.
@pytest.mark.parametrize(
    ("pair", "cols", "tail"),
    [
        (("i32", "f16"), 2064, f"vconv_deq 2x16 {98304 + 2048 * 2}+129 <- {2048 * 4}+2"),
        (("i4", "f16"), 4128, f"vconv_s42f16 2x32 {98304 + 4096 * 2}+2 <- 4096+129"),
    ],
)
def test_narrow_stride_fields(pair: tuple[str, str], cols: int, tail: str) -> None:
    assert tail in texts(Cast(*pair, 2, cols, cols, 0, 98304))


def test_wide_stride_fields() -> None:
    # 65504 u8 are 2047 blocks and fit 12 bits; as f16 they are 4094 blocks and fit too. 65536 is cut to 0 by the
    # 16-bit operand before it becomes a stride (2.3), harmlessly: there is room for one row only.
    for cols, strides in ((65504, (4094, 2047)), (65536, (0, 0))):
        tail = calls(lower(Cast("u8", "f16", 1, cols - 64, cols, 131_072, 0)))[-1]
        assert (tail.destination.repeat_stride, tail.sources[0].repeat_stride) == strides


@pytest.mark.parametrize("rows", [0, 1, 2, 254, 255, 256, 300, 511])
@pytest.mark.parametrize("pair", [("f32", "f16"), ("f16", "u8"), ("i64", "f32")], ids="-".join)
def test_number_of_calls_and_repeats(pair: tuple[str, str], rows: int) -> None:
    per = repeat_shape(*pair)[0]
    for cols in (0, 1, per - 1, per, per + 1, 2 * per, 3 * per + per // 2):
        declared = -(-max(cols, 1) // 32) * 32
        if max(rows, 1) * declared * (SIZE[pair[0]] + SIZE[pair[1]]) > 196_608:
            continue
        whole, rest = divmod(cols, per)
        issue = lower(Cast(*pair, rows, cols, declared, 0, max(rows, 1) * declared * SIZE[pair[0]]))
        operations = calls(issue)
        # a2a3.md 6.1: two CTRL writes, two mask writes if there is a tail, nothing else but the conversions.
        assert len(issue) - len(operations) == 2 + (2 if rest and rows else 0)
        # Head R x ceil(nRep / 255), tail ceil(R / 255); repeats R x nRep + R if there is a tail.
        assert len(operations) == rows * -(-whole // 255) + (-(-rows // 255) if rest else 0)
        assert sum(operation.repeats for operation in operations) == rows * whole + (rows if rest else 0)


@pytest.mark.parametrize("pair", oracle_a2a3.legal_pairs(), ids="-".join)
def test_nothing_is_converted_in_an_empty_tile(pair: tuple[str, str]) -> None:
    for rows, cols in ((0, 64), (4, 0), (0, 0), (0, 66)):
        operations = lower(Cast(*pair, rows, cols, 96, 0, 65536))
        assert not calls(operations)
        assert [text(operation) for operation in (operations[0], operations[-1])][-1] == CTRL_ON


# ------------------------------------------------------------------------------------------------- control and policy


@pytest.mark.parametrize("pair", oracle_a2a3.legal_pairs(), ids="-".join)
def test_control_register_brackets_the_cast(pair: tuple[str, str]) -> None:
    for saturation, with_tmp in product((None, "on", "off"), (False, True)):
        model = Cast(*pair, 1, 2, 32, 0, 65536, TMP if with_tmp else None, "rint", saturation)
        off = oracle_a2a3.effective_saturation(*pair, saturation, with_tmp) == "off"
        got = texts(model, 256)
        assert (got[0], got[-1]) == (CTRL_OFF if off else CTRL_ON, CTRL_ON)  # CTRL[59] starts at 0 and is put back
        for operation in calls(lower(model, 256)):
            policy = getattr(operation.action, "policy", None)
            if operation.timing == "vconv" and operation.destination.format.name == pair[1] and pair[1][0] in "iu":
                assert policy is not None
                assert policy.overflow is (Overflow.WRAP if off else Overflow.SATURATE)


@pytest.mark.parametrize("pair", oracle_a2a3.legal_pairs(), ids="-".join)
def test_mnemonic_and_mode(pair: tuple[str, str]) -> None:
    # Stems: f/s/u and the width, bf16 as itself (a2a3.md section 1).
    named = [name.replace("i", "s") for name in pair]
    stem = "vconv_deq" if pair == ("i32", "f16") else f"vconv_{named[0]}2{named[1]}"
    for mode in (None, *RoundMode):
        asked = "rint" if mode is None else mode.name.lower()
        plan = plan_cast(A2A3, format_named(pair[0]), format_named(pair[1]), mode, Saturation.ON, scratch=False)
        rounding = oracle_a2a3.effective_mode(*pair, asked)
        selectable, fallback = oracle_a2a3._PAIRS[pair]
        # Where the last column of the table says "plain", NONE and every unlisted mode take the unsuffixed form.
        plain = not selectable or (fallback == oracle_a2a3.PLAIN and asked in ("none", "odd"))
        assert plan.mnemonic == (stem if plain else stem + oracle_a2a3.SUFFIX[rounding])
        assert plan.rounding is Rounding(rounding)
        honoured = not selectable or asked == "none" or oracle_a2a3.SUFFIX[asked] in selectable
        if selectable:
            assert bool(plan.warnings) == (not honoured)


def test_actions() -> None:
    def action(src: str, dst: str) -> object:
        return calls(lower(Cast(src, dst, 1, 2, 32, 0, 65536)))[0].action

    assert isinstance(action("f32", "f32"), RoundToIntegral)
    assert isinstance(action("i32", "f32"), Convert)
    scaled = action("i32", "f16")
    assert isinstance(scaled, ScaledConvert)
    assert scaled.scale == 0x3C00


def test_saturation_asked_in_vain_is_reported() -> None:
    lowered = LOWERER.cast(tile_cast(Cast("f32", "i32", 1, 2, 32, 0, 65536, saturation="off")))
    assert any("OFF is ignored" in warning for warning in lowered.warnings)
    lowered = LOWERER.cast(tile_cast(Cast("f32", "i32", 1, 2, 32, 0, 65536, TMP, saturation="off"), 32))
    assert not lowered.warnings


def test_pair_outside_the_table_names_the_legal_ones() -> None:
    with pytest.raises(IllegalError, match="f32 -> i8") as caught:
        LOWERER.cast(TileCast(tile("a", "f32", 1, 32, 0), tile("b", "i8", 1, 32, 1024), None, None, None, SPAN))
    assert {"f32 -> f16", "f32 -> i16"} <= set(caught.value.legal)
    assert caught.value.span is SPAN


# ------------------------------------------------------------------------------------------------ scratch sequences


def test_sequence_a() -> None:
    # f32 -> i16 OFF with tmp, 3 x 66 in tiles of 80 columns: head calls of one repeat at stride 8, then the tail:
    # 3 rows at the source pitch of 320 bytes = 10 blocks, on both sides of tmp; destination pitch 160 bytes = 5.
    model = Cast("f32", "i16", 3, 66, 80, 0, 65536, TMP, "trunc", "off")

    def call(wide: str, narrow: str) -> list[str]:
        return [CTRL_ON, f"vconv_f322s32z {wide}", "barrier V", CTRL_OFF, f"vconv_s322s16 {narrow}"]

    expected = [CTRL_OFF]
    for row in range(3):
        expected += call(f"1x64 {TMP}+8 <- {320 * row}+8", f"1x64 {65536 + 160 * row}+4 <- {TMP}+8")
    expected += ["mask 2", *call(f"3x2 {TMP}+10 <- 256+10", f"3x2 {65536 + 128}+5 <- {TMP}+10"), "mask 128", CTRL_ON]
    assert texts(model, 704) == expected  # 32 x (2 x 10 + 1) = 672 bytes, and one block to spare


def chunk_b(lanes: int, dst: int, src: int) -> list[str]:
    return [
        f"mask {lanes}",
        CTRL_ON,
        f"vconv_f162s32a 1x{lanes} {TMP}+8 <- {src}+8",
        "barrier V",
        CTRL_OFF,
        f"vconv_s322s16 1x{lanes} {dst}+8 <- {TMP}+8",
        "barrier V",
    ]


def test_sequence_b() -> None:
    # f16 -> i16 OFF with tmp, 2 x 200 in tiles of 208 columns (416 bytes a row): head of one repeat per row, sub-chunks
    # of 64 and 64 lanes; tail of 72 lanes: sub-chunks of 64 and 8. The mask is written full after each call.
    model = Cast("f16", "i16", 2, 200, 208, 0, 65536, TMP, "round", "off")
    expected = [CTRL_OFF]
    for row in (0, 416):
        expected += [*chunk_b(64, 65536 + row, row), *chunk_b(64, 65536 + row + 128, row + 128), "mask 128"]
    expected.append("mask 72")
    for row in (256, 672):
        expected += [*chunk_b(64, 65536 + row, row), *chunk_b(8, 65536 + row + 128, row + 128)]
    expected += ["mask 128", "mask 128", CTRL_ON]
    assert texts(model, 256) == expected


def test_sequence_c() -> None:
    # f16 -> i8 OFF with tmp, 2 x 70 in tiles of 96 columns: tail only, 192 source bytes and 96 destination bytes a row.
    model = Cast("f16", "i8", 2, 70, 96, 0, 65536, TMP, None, "off")

    def chunk(lanes: int, dst: int, src: int) -> list[str]:
        one = f"1x{lanes}"
        return [
            f"mask {lanes}",
            CTRL_ON,
            f"vconv_f162s32r {one} {TMP}+8 <- {src}+8",
            "barrier V",
            CTRL_OFF,
            f"vconv_s322s16 {one} {TMP}+8 <- {TMP}+8",
            "barrier V",
            f"vector_dup {one} {TMP + 128}+8 <- ",
            "barrier V",
            f"vand {one} {TMP}+8 <- {TMP}+8, {TMP + 128}+8",
            "barrier V",
            f"vconv_s162f16 {one} {TMP + 128}+8 <- {TMP}+8",
            "barrier V",
            f"vconv_f162s8z {one} {dst}+8 <- {TMP + 128}+8",
            "barrier V",
        ]

    expected = [CTRL_OFF, "mask 70"]
    for row in (0, 1):
        expected += [*chunk(64, 65536 + 96 * row, 192 * row), *chunk(6, 65536 + 96 * row + 64, 192 * row + 128)]
    expected += ["mask 128", "mask 128", CTRL_ON]
    assert texts(model, 256) == expected
    operations = calls(lower(model, 256))
    duplicates = [operation.action for operation in operations if operation.mnemonic == "vector_dup"]
    assert duplicates == [Duplicate(255)] * 4
    assert sum(isinstance(operation.action, BitwiseAnd) for operation in operations) == 4


@pytest.mark.parametrize("mode", ["none", "odd"])
def test_sequences_round_unlisted_modes_toward_zero(mode: str) -> None:
    for src, dst in sorted(oracle_a2a3.TMP_BACKED):
        first = calls(lower(Cast(src, dst, 1, 2, 32, 0, 65536, TMP, mode, "off"), 256))[0]
        assert first.mnemonic.endswith("s32z")


@pytest.mark.parametrize("pair", sorted(oracle_a2a3.TMP_BACKED), ids="-".join)
def test_saturation_on_leaves_scratch_alone(pair: tuple[str, str]) -> None:
    operations = calls(lower(Cast(*pair, 2, 70, 96, 0, 65536, TMP, None, "on"), 32))
    assert all(operation.destination.address < TMP for operation in operations)


# Each instruction of a sequence clamps or wraps by the CTRL value written last before it.
@pytest.mark.parametrize("pair", sorted(oracle_a2a3.TMP_BACKED), ids="-".join)
def test_operations_capture_the_control_state_of_their_issue(pair: tuple[str, str]) -> None:
    ctrl, seen = None, set()
    for operation in lower(Cast(*pair, 2, 130, 160, 0, 65536, TMP, None, "off"), 2048):
        if isinstance(operation, ControlWrite) and operation.register == "ctrl":
            ctrl = operation.value
        elif isinstance(operation, VectorOperation) and isinstance(operation.action, Convert):
            policy = operation.action.policy
            if operation.destination.format.name != "f16":
                assert policy.overflow is (Overflow.WRAP if ctrl else Overflow.SATURATE)
                seen.add(ctrl)
    assert seen == {0, OFF}


# ----------------------------------------------------------------------------------------------------- scratch sizes


def formula(pair: tuple[str, str], rows: int, cols: int, stride: int) -> int:
    """The sizing formulas of the instruction page, transcribed term by term; 0 where nothing is issued."""
    if not rows or not cols:
        return 0
    if pair == ("f32", "i16"):
        head = 4 * 64 * min(cols // 64, 255)
        tail = 32 * ((min(rows, 255) - 1) * stride // 8 + -(-(cols % 64) // 8)) if cols % 64 > 0 else 0
        return max(head, tail)
    half = min(cols, 64)
    if pair == ("f16", "i16"):
        return 32 * -(-half // 8)
    return max(32 * -(-half // 8), 128 + 32 * -(-half // 16))


def touched(operations: list[Operation]) -> int:
    """Bytes from TMP to the end of the last block that an active lane touches."""
    end = TMP
    for operation in calls(operations):
        for stream in (operation.destination, *operation.sources):
            if stream.address < TMP:
                continue
            blocks = repeat_blocks(stream, operation.lanes, operation.mask)
            last = stream.address + (operation.repeats - 1) * stream.repeat_stride * 32 + max(blocks) + 32
            end = max(end, last)
    return end - TMP


SHAPES = [
    *product((0, 1, 2, 3), (0, 1, 7, 8, 9, 63, 64, 65, 127, 128, 129, 200)),
    *product((254, 255, 256, 300), (0, 1, 8, 9, 17)),
    *((1, 255 * 64), (1, 255 * 64 + 63), (2, 640), (20, 65), (1, 256 * 64 + 1)),
]


@pytest.mark.parametrize("pair", sorted(oracle_a2a3.TMP_BACKED), ids="-".join)
def test_scratch_size(pair: tuple[str, str]) -> None:
    plan = plan_cast(A2A3, *map(format_named, pair), None, Saturation.OFF, scratch=True)
    for rows, cols in SHAPES:
        for spare in (0, 1, 3):
            declared = -(-max(cols, 1) // 32) * 32 + 32 * spare
            need = scratch_need(plan, A2A3.repeat, rows, cols, declared)
            assert need.total == formula(pair, rows, cols, declared), (rows, cols, declared)
            assert not need.total or need.total == max(size for _, size in need.terms)
            total = max(rows, 1) * declared * (SIZE[pair[0]] + SIZE[pair[1]])
            if total > TMP or need.total > 196_608 - TMP:
                continue
            model = Cast(*pair, rows, cols, declared, 0, max(rows, 1) * declared * SIZE[pair[0]], TMP, None, "off")
            assert touched(lower(model, max(need.total, 32))) == need.total, (rows, cols, declared)


def test_scratch_is_needed_by_three_pairs_and_off_only() -> None:
    for pair in oracle_a2a3.legal_pairs():
        for saturation in (None, Saturation.ON, Saturation.OFF):
            plan = plan_cast(A2A3, *map(format_named, pair), None, saturation, scratch=True)
            off = saturation is not Saturation.ON
            needs = pair in oracle_a2a3.TMP_BACKED and off
            assert bool(scratch_need(plan, A2A3.repeat, 2, 70, 96).total) == needs
        plan = plan_cast(A2A3, *map(format_named, pair), None, Saturation.OFF, scratch=False)
        assert scratch_need(plan, A2A3.repeat, 2, 70, 96).total == 0


@pytest.mark.parametrize(
    ("pair", "shape", "given", "missing"),
    [
        (("f32", "i16"), (3, 66, 80), 640, 32),  # 32 x (2 x 10 + 1) = 672
        (("f32", "i16"), (2, 640, 640), 2048, 512),  # 256 x 10
        (("f16", "i16"), (5, 64, 64), 224, 32),  # 4 x 64 = 256
        (("f16", "i8"), (5, 33, 64), 192, 32),  # 128 + 32 x 3 = 224
    ],
)
def test_scratch_too_small_names_the_missing_bytes(
    pair: tuple[str, str], shape: tuple[int, int, int], given: int, missing: int
) -> None:
    model = Cast(*pair, *shape, 0, 65536, TMP, None, "off")
    with pytest.raises(ScratchError, match=f"{missing} bytes missing") as caught:
        LOWERER.cast(tile_cast(model, given))
    assert caught.value.span is SPAN
    assert str(given) in caught.value.message
    assert str(given + missing) in caught.value.message
    LOWERER.cast(tile_cast(model, given + missing))


# ------------------------------------------------------------------------------------------------------- refusals


def cast(src: object, dst: object, tmp: object = None, **asked: object) -> None:
    LOWERER.cast(TileCast(src, dst, tmp, asked.get("mode"), asked.get("saturation"), SPAN))


@pytest.mark.parametrize(
    ("src", "dst", "message"),
    [
        (tile("a", "f32", 2, 20, 0), tile("b", "f16", 2, 20, 4096), "80 bytes per line, no multiple of 32"),
        (tile("a", "f32", 2, 32, 16), tile("b", "f16", 2, 32, 4096), "byte 16, which is not 32-byte aligned"),
        (tile("a", "f32", 2, 32, 196_608 - 224), tile("b", "f16", 2, 32, 0), "32 bytes too far"),
        (tile("a", "f32", 2, 32, -32), tile("b", "f16", 2, 32, 4096), "takes bytes -32"),
        (tile("a", "f32", 2, 32, 0, (3, 32)), tile("b", "f16", 2, 32, 4096, (3, 32)), "3 x 32 exceeds 2 x 32"),
        (tile("a", "f32", 2, 32, 0), tile("b", "f16", 2, 64, 4096), "valid region of %a is 2 x 32, of %b 2 x 64"),
        (tile("a", "f32", 2, 32, 0, (1, 32)), tile("b", "f16", 2, 32, 4096), "valid region of %a is 1 x 32"),
        (tile("a", "f16", 2, 32, 0, (2, 31)), tile("b", "i4", 2, 32, 4096, (2, 31)), "must be even"),
        (tile("a", "f32", 2, 32, 0), tile("b", "f16", 2, 32, 128), "partly overlaps"),
        (tile("a", "f16", 2, 32, 0), tile("b", "f32", 2, 32, 0), "partly overlaps"),
    ],
)
def test_tiles_that_do_not_fit(src: object, dst: object, message: str) -> None:
    with pytest.raises(TileError, match=message):
        cast(src, dst)


def test_layouts_that_do_not_fit() -> None:
    good = tile("b", "f16", 32, 32, 8192)
    for field, value in (("location", "mat"), ("scatter_layout", "row_major"), ("block_layout", "col_major")):
        bad = tile("a", "f32", 32, 32, 0)
        bad = dataclasses.replace(bad, type=dataclasses.replace(bad.type, **{field: value}))
        with pytest.raises(TileError, match=f"%a.*{value}"):
            cast(bad, good)


@pytest.mark.parametrize("at", [0, 4064, 65536])
def test_scratch_may_not_overlap_the_operands(at: int) -> None:
    src, dst = tile("a", "f32", 2, 512, 0), tile("b", "i16", 2, 512, 65536)
    with pytest.raises(TileError, match="overlaps"):
        cast(src, dst, tile("t", "i32", 1, 512, at), saturation=Saturation.OFF)


# --------------------------------------------------------------------------------------------------- natural map

PROVABLE = Cast("f32", "f16", 3, 130, 144, 0, 65536)


def proof(operations: list[Operation], model: Cast = PROVABLE) -> object:
    described = tile_cast(model)
    return natural_map(operations, described.src, described.dst)


def with_stream(operation: VectorOperation, end: str, **changes: object) -> VectorOperation:
    if end == "dst":
        return dataclasses.replace(operation, destination=dataclasses.replace(operation.destination, **changes))
    return dataclasses.replace(operation, sources=(dataclasses.replace(operation.sources[0], **changes),))


def test_natural_map_of_the_right_operations() -> None:
    found = proof(lower(PROVABLE))
    assert found is not None
    assert (found.rows, found.cols) == (3, 130)
    assert (found.source.address, found.source.repeat_stride) == (0, 18)
    assert (found.destination.address, found.destination.repeat_stride) == (65536, 9)


@pytest.mark.parametrize("index", range(4))  # three heads and the tail
@pytest.mark.parametrize("end", ["src", "dst"])
@pytest.mark.parametrize(
    "change",
    [
        *({"address": delta} for delta in (-32, -4, -2, -1, 1, 2, 4, 32, 64, 256, 288, 576)),
        *({"repeat_stride": delta} for delta in (-1, 1, 4)),
        {"block_stride": 1},
    ],
    ids=str,
)
def test_natural_map_fails_for_a_moved_stream(index: int, end: str, change: dict[str, int]) -> None:
    operations = lower(PROVABLE)
    places = [place for place, operation in enumerate(operations) if isinstance(operation, VectorOperation)]
    operation = operations[places[index]]
    stream = operation.destination if end == "dst" else operation.sources[0]
    changed = {name: getattr(stream, name) + delta for name, delta in change.items()}
    operations[places[index]] = with_stream(operation, end, **changed)
    if "block_stride" in change and index == 3:
        assert proof(operations) is not None  # two lanes lie in one block: its stride does not matter
    else:
        assert proof(operations) is None


@pytest.mark.parametrize("index", range(4))
def test_natural_map_fails_for_a_missing_or_doubled_operation(index: int) -> None:
    operations = calls(lower(PROVABLE))
    assert proof(operations[:index] + operations[index + 1 :]) is None
    assert proof([*operations, operations[index]]) is None
    assert proof([]) is None


@pytest.mark.parametrize("index", range(4))
def test_natural_map_fails_for_another_action_mask_or_length(index: int) -> None:
    right = calls(lower(PROVABLE))
    ceil = calls(lower(dataclasses.replace(PROVABLE, mode="ceil")))[0].action
    mask = right[index].mask
    for change in (
        {"action": ceil},
        {"mask": mask & ~1},
        {"mask": mask & ~2},
        {"mask": mask >> 1 if index == 3 else (1 << 63) - 1},
        {"lanes": right[index].lanes - 63},
        {"repeats": right[index].repeats - 1},
        {"repeats": right[index].repeats + 1},
        {"sources": right[index].sources * 2},
        {"sources": ()},
    ):
        wrong = list(right)
        wrong[index] = dataclasses.replace(right[index], **change)
        assert proof(wrong) is None, change


@pytest.mark.parametrize("index", range(4))
def test_natural_map_fails_for_another_format(index: int) -> None:
    # Same width, other format: the bytes are the right ones, their meaning is not.
    for end, fmt in (("src", "i32"), ("dst", "bf16")):
        wrong = calls(lower(PROVABLE))
        wrong[index] = with_stream(wrong[index], end, format=format_named(fmt))
        assert proof(wrong) is None, (end, fmt)


def test_natural_map_of_permuted_operations() -> None:
    # Order does not matter where nothing overlaps.
    assert proof(calls(lower(PROVABLE))[::-1]) is not None


def test_natural_map_fails_for_crossed_rows() -> None:
    first, second, *rest = calls(lower(PROVABLE))
    crossed = [
        with_stream(first, "src", address=second.sources[0].address),
        with_stream(second, "src", address=first.sources[0].address),
        *rest,
    ]
    assert proof(crossed) is None


def test_natural_map_of_different_pitches() -> None:
    model = Cast("f32", "i32", 3, 130, 144, 0, 65536, dst_declared=160)
    assert proof(calls(lower(model)), model) is not None
    # In place such a map moves rows onto others: all at once is not one after the other.
    model = Cast("f32", "i32", 2, 64, 128, 0, 0, dst_declared=64)
    assert proof(calls(lower(model)), model) is None


def test_natural_map_in_place() -> None:
    model = Cast("f32", "i32", 3, 130, 144, 0, 0)
    operations = calls(lower(model))
    assert proof(operations, model) is not None
    narrower = Cast("f32", "f16", 2, 64, 64, 0, 0)
    assert proof(calls(lower(narrower)), narrower) is None


def test_random_changes_never_keep_a_wrong_proof() -> None:
    """Any random change that the proof lets through must leave the bytes as they are."""
    rng = np.random.default_rng(5)
    right = calls(lower(PROVABLE))
    for _ in range(400):
        wrong = list(right)
        place = int(rng.integers(len(wrong)))
        name = str(rng.choice(["address", "repeat_stride", "block_stride", "mask", "repeats", "lanes"]))
        delta = int(rng.integers(-3, 4)) * (int(rng.choice([1, 2, 4, 32, 128, 256])) if name == "address" else 1)
        if name in ("address", "repeat_stride", "block_stride"):
            end = str(rng.choice(["src", "dst"]))
            stream = wrong[place].destination if end == "dst" else wrong[place].sources[0]
            wrong[place] = with_stream(wrong[place], end, **{name: getattr(stream, name) + delta})
        elif name == "mask":
            wrong[place] = dataclasses.replace(wrong[place], mask=wrong[place].mask ^ 1 << int(rng.integers(130)))
        else:
            wrong[place] = dataclasses.replace(wrong[place], **{name: getattr(wrong[place], name) + delta})
        if proof(wrong) is not None:
            assert places_of(wrong) == places_of(right), wrong[place]


def places_of(operations: list[VectorOperation]) -> dict[int, tuple[int, ...]]:
    """Destination byte -> source byte of every lane of every operation, by the definition of a2a3.md 2.1."""
    found: dict[int, list[int]] = {}
    for operation in operations:
        for repeat, lane in product(range(operation.repeats), range(operation.lanes)):
            if not operation.mask >> lane & 1:
                continue
            ends = []
            for stream, size in ((operation.destination, 2), (operation.sources[0], 4)):
                block, rest = divmod(lane * size, 32)
                ends.append(stream.address + 32 * (repeat * stream.repeat_stride + block * stream.block_stride) + rest)
            found.setdefault(ends[0], []).append(ends[1])
    return {dst: tuple(sources) for dst, sources in found.items()}
