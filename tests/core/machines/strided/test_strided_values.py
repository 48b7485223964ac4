"""Single strided-repeat instructions with any stride, mask and overlap, against a model that takes lane after lane."""

from __future__ import annotations

import dataclasses
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.strided_cases import calls, hard_codes, lower, tile_cast
from kit.strided_model import STORED_BITS, Cast, lanes, read, write

from castsim.execution.tree import Operation
from castsim.isa.errors import TileError
from castsim.isa.formats import format_named
from castsim.isa.pto.program import RoundMode
from castsim.machines.strided.plan import plan_cast
from castsim.machines.strided.strided_instructions import BitwiseAnd, DuplicateCode, Stream, StridedInstruction
from castsim.machines.strided.values import execute_vector, natural_map
from castsim.targets.loader import load_target

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
            with pytest.raises(TileError, match="accesses bytes"):
                execute_vector(operation, buffer)


PROVABLE = Cast("f32", "f16", 3, 130, 144, 0, 65536)


def proof(operations: list[Operation], model: Cast = PROVABLE) -> object:
    described = tile_cast(model)
    return natural_map(operations, described.src, described.dst)


def with_stream(operation: StridedInstruction, end: str, **changes: object) -> StridedInstruction:
    if end == "dst":
        return dataclasses.replace(operation, destination=dataclasses.replace(operation.destination, **changes))
    return dataclasses.replace(operation, sources=(dataclasses.replace(operation.sources[0], **changes),))


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


def places_of(operations: list[StridedInstruction]) -> dict[int, tuple[int, ...]]:
    """Destination byte -> source byte of every lane of every operation, by the definition of docs/reference/a2a3.md
    section 2.1.
    """
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
