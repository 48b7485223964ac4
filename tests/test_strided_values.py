"""Single strided-repeat instructions with any stride, mask and overlap, against a model that takes lane after lane."""

from __future__ import annotations

import numpy as np
import oracle_a2a3
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strided_cases import hard_codes
from strided_model import STORED_BITS, lanes, read, write

from castsim.isa.errors import TileError
from castsim.isa.formats import format_named
from castsim.isa.pto.program import RoundMode
from castsim.machines.strided.operations import BitwiseAnd, DuplicateCode, Stream, StridedInstruction
from castsim.machines.strided.plan import plan_cast
from castsim.machines.strided.values import execute_vector
from castsim.targets import load_target

A2A3 = load_target("a2a3")
SIZE = 16_384
PAIRS = (("f32", "f16"), ("f32", "f32"), ("f16", "i4"), ("i4", "f16"), ("i64", "i32"), ("i32", "f16"), ("f16", "u8"))


def place(stream: Stream, repeat: int, lane: int) -> tuple[int, int]:
    """Byte and lane within it.

    Source: docs/reference/a2a3.md section 2.1: 32-byte blocks, block and repeat strides in blocks, low nibble first.
    """
    bits = STORED_BITS[stream.format.name]
    block, inside = divmod(lane, 256 // bits)
    byte = stream.address + 32 * (repeat * stream.repeat_stride + block * stream.block_stride) + inside * bits // 8
    return byte, lane % 2 if bits == 4 else 0


def peek(buffer: np.ndarray, stream: Stream, repeat: int, lane: int) -> int:
    byte, half = place(stream, repeat, lane)
    return int(read(buffer, stream.format.name, byte, half + 1)[half])


def poke(buffer: np.ndarray, stream: Stream, repeat: int, lane: int, code: int) -> None:
    byte, half = place(stream, repeat, lane)
    if STORED_BITS[stream.format.name] == 4:
        buffer[byte] = buffer[byte] & (0xF0 >> 4 * half) | code << 4 * half
    else:
        write(buffer, stream.format.name, byte, np.array([code], np.uint64))


def model(operation: StridedInstruction, buffer: np.ndarray, convert: object) -> None:
    """Repeats in order; all active lanes of one are read before any is written."""
    active = [lane for lane in range(operation.lanes) if operation.mask >> lane & 1]
    for repeat in range(operation.repeats):
        rows = [[peek(buffer, source, repeat, lane) for lane in active] for source in operation.sources]
        for number, lane in enumerate(active):
            poke(buffer, operation.destination, repeat, lane, convert(*(row[number] for row in rows)))


@st.composite
def streams(draw: st.DrawFn, name: str, *, written: bool) -> Stream:
    address = 32 * draw(st.integers(0, 24))
    # Two lanes of one repeat writing one byte is left open by every source.
    block = draw(st.sampled_from([1, 1, 1, 2, 3] if written else [1, 1, 1, 0, 2, 3]))
    return Stream(address, format_named(name), block, draw(st.integers(0, 12)))


MASKS = st.one_of(
    st.integers(0, 128).map(lambda count: (1 << count) - 1),
    st.integers(0, (1 << 128) - 1),
    st.sampled_from([1 << 5, 1 << 127, (1 << 128) - 2]),
)
SLOW = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SLOW
@given(st.data())
def test_conversion(data: st.DataObject) -> None:
    src, dst = data.draw(st.sampled_from(PAIRS))
    plan = plan_cast(A2A3, format_named(src), format_named(dst), RoundMode.RINT, None, scratch=False)
    operation = StridedInstruction(
        mnemonic=plan.mnemonic, timing="vconv", repeats=data.draw(st.integers(0, 4)), lanes=plan.rule.lanes,
        mask=data.draw(MASKS), destination=data.draw(streams(dst, written=True)),
        sources=(data.draw(streams(src, written=False)),), action=plan.action,
    )  # fmt: skip
    buffer = np.random.default_rng(9).integers(0, 256, SIZE, np.uint8)
    codes = np.random.default_rng(8).choice(hard_codes(src), SIZE * 8 // STORED_BITS[src])
    if data.draw(st.booleans()):
        write(buffer, src, 0, codes)
    wanted = buffer.copy()
    one = lanes(src, dst, "rint", None, False)
    model(operation, wanted, lambda code: int(one(np.array([code], np.uint64))[0]))
    execute_vector(operation, buffer)
    assert np.array_equal(buffer, wanted)


def test_later_repeats_see_what_earlier_ones_wrote() -> None:
    # Destination one repeat behind the source: repeat 0's result is what repeat 1 rounds and passes on, and so forth.
    plan = plan_cast(A2A3, format_named("f32"), format_named("f32"), RoundMode.CEIL, None, scratch=False)
    operation = StridedInstruction(
        plan.mnemonic, "vconv", 4, 64, (1 << 64) - 1,
        Stream(256, plan.dst, 1, 8), (Stream(0, plan.src, 1, 8),), plan.action,
    )  # fmt: skip
    buffer = np.zeros(SIZE, np.uint8)
    numbers = buffer.view("<f4")
    numbers[:320] = np.arange(320) / 8
    first = np.ceil(numbers[:64].copy())
    execute_vector(operation, buffer)
    assert np.array_equal(numbers[64:320], np.tile(first, 4))


def test_overlapping_results_keep_the_last() -> None:
    # f32 -> f16, destination stride 0: all repeats land on one place.
    plan = plan_cast(A2A3, format_named("f32"), format_named("f16"), RoundMode.RINT, None, scratch=False)
    operation = StridedInstruction(
        plan.mnemonic, "vconv", 3, 64, (1 << 64) - 1,
        Stream(8192, plan.dst, 1, 0), (Stream(0, plan.src, 1, 8),), plan.action,
    )  # fmt: skip
    buffer = np.zeros(SIZE, np.uint8)
    buffer.view("<f4")[:192] = np.arange(192)
    execute_vector(operation, buffer)
    assert buffer[8192:8320].view("<f2").tolist() == list(range(128, 192))


@SLOW
@given(st.data())
def test_bitwise_and_and_duplicate(data: st.DataObject) -> None:
    binary = data.draw(st.booleans())
    count = 2 if binary else 0
    operation = StridedInstruction(
        mnemonic="vand", timing="vand", repeats=data.draw(st.integers(1, 4)), lanes=128, mask=data.draw(MASKS),
        destination=data.draw(streams("i16", written=True)),
        sources=tuple(data.draw(streams("i16", written=False)) for _ in range(count)),
        action=BitwiseAnd() if binary else DuplicateCode(255),
    )  # fmt: skip
    buffer = np.random.default_rng(9).integers(0, 256, SIZE, np.uint8)
    wanted = buffer.copy()
    model(operation, wanted, (lambda a, b: a & b) if binary else (lambda: 255))
    execute_vector(operation, buffer)
    assert np.array_equal(buffer, wanted)


@pytest.mark.parametrize("end", ["src", "dst"])
@pytest.mark.parametrize("mask", [(1 << 64) - 1, 1 << 63])
def test_reach_beyond_the_buffer_is_refused(end: str, mask: int) -> None:
    plan = plan_cast(A2A3, format_named("f32"), format_named("f32"), RoundMode.CEIL, None, scratch=False)
    for address, fits in ((SIZE - 256, True), (SIZE - 224, False), (-32, False)):
        at = {"src": 0, "dst": 1024, end: address}
        operation = StridedInstruction(
            plan.mnemonic, "vconv", 1, 64, mask, Stream(at["dst"], plan.dst, 1, 8),
            (Stream(at["src"], plan.src, 1, 8),), plan.action,
        )  # fmt: skip
        buffer = np.zeros(SIZE, np.uint8)
        if fits:
            execute_vector(operation, buffer)
        elif address > 0 or mask != 1 << 63:  # lane 63 of a repeat that starts 32 bytes early lies inside
            with pytest.raises(TileError, match="reaches bytes"):
                execute_vector(operation, buffer)


def test_pairs_are_legal() -> None:
    assert set(PAIRS) <= set(oracle_a2a3.legal_pairs())
