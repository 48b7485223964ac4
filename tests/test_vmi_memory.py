"""Loads, stores and masks of logical registers against NumPy: rows, groups, blocks, slots, any alignment."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from vmi_text import OUTPUT, Body, as_bytes, blank, mask, ptr, reg, run_body

RNG = np.random.default_rng(11)
KINDS = {"i8": np.int8, "u16": np.uint16, "f32": np.float32}
SHAPES = [(8, 8), (64, 8), (96, 12), (256, 4), (256, 2), (320, 5), (30, 3), (640, 2), (40, 40), (24, 6)]
"""Lanes and groups: slots, blocks, parts of registers, whole ones, more than one, uneven ones."""


def numbers(element: str, count: int) -> NDArray[np.generic]:
    return RNG.integers(0, 100, count).astype(KINDS[element])


def rows_of(data: NDArray[np.generic], offset: int, lanes: int, groups: int, stride: int) -> NDArray[np.generic]:
    size = lanes // groups
    return np.concatenate([data[offset + g * stride : offset + g * stride + size] for g in range(groups)])


def access(body: Body, byte: int, element: str, offset: int, stride: int, *, dynamic: bool) -> tuple[str, str]:
    """A pointer with an offset in brackets, and a stride: constants, or what scalar arguments say."""
    where, apart = body.constant(offset), body.constant(stride)
    if dynamic:
        where, apart = (f"%{name}" for name in ("o", "s"))
    return f"{body.pointer(byte, element)}[{where}]", apart


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(("lanes", "groups"), SHAPES)
@pytest.mark.parametrize("element", KINDS)
def test_rows_that_are_apart(element: str, lanes: int, groups: int, *, dynamic: bool, wide: bool) -> None:
    """Every stride: side by side, aligned, unaligned, overlapping; `wide` ones share lanes with 32 bits."""
    size, unit = lanes // groups, 32 // KINDS[element]().itemsize
    for offset, stride in ((0, size), (unit, 2 * size), (0, -(-size // unit) * unit), (3, size + 1), (2 * unit, 0)):
        data = numbers(element, offset + groups * max(stride, 1) + size + 600)
        body = Body("%o: index, %s: index")
        where, apart = access(body, 0, element, offset, stride, dynamic=dynamic)
        kinds = f"{ptr(element)} -> {reg(lanes, element)}"
        value = body.make(f"pto.vmi.vload {where}, {apart} {{group = {groups}}} : {kinds}")
        name, found = element, KINDS[element]
        if wide and element != "f32":
            name, found = ("i32", np.int32) if element == "i8" else ("u32", np.uint32)
            value = body.make(f"pto.vmi.vcvt {value} : {reg(lanes, element)} -> {reg(lanes, name)}")
        body.store(value, lanes, name)
        want = rows_of(data, offset, lanes, groups, stride).astype(found)
        args = {"o": offset, "s": stride}
        got = run_body(body, as_bytes(data), -(-want.nbytes // 32) * 32, args)
        assert np.array_equal(got[: want.nbytes].view(found), want), (offset, stride)


@pytest.mark.parametrize("count", [None, 7, 29])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(("lanes", "groups"), SHAPES)
@pytest.mark.parametrize("element", KINDS)
def test_rows_stored_apart(element: str, lanes: int, groups: int, count: int | None, *, dynamic: bool) -> None:
    size, unit = lanes // groups, 32 // KINDS[element]().itemsize
    for offset, stride in ((0, size), (unit, -(-size // unit) * unit), (1, size + 2)):
        if element == "i8" and groups * (size + 2) > 40000:
            continue
        data = numbers(element, lanes)
        body = Body("%o: index, %s: index")
        value = body.load(lanes, element)
        more, kind = "", ""
        if count is not None:
            m = body.make(f"pto.vmi.create_mask {body.constant(count)} : index -> {mask(lanes)}")
            more, kind = f", {m}", f", {mask(lanes)}"
        where, apart = access(body, OUTPUT, element, offset, stride, dynamic=dynamic)
        body.line(
            f"pto.vmi.vstore {value}, {where}, {apart}{more} {{group = {groups}}} : "
            f"{reg(lanes, element)}, {ptr(element)}{kind}"
        )
        total = -(-(offset + groups * stride + size + 64) * data.itemsize // 32) * 32
        want = blank(total).copy()
        elements = want.view(KINDS[element])
        for lane in range(lanes if count is None else min(count, lanes)):
            elements[offset + lane // size * stride + lane % size] = data[lane]
        got = run_body(body, as_bytes(data), total, {"o": offset, "s": stride})
        assert np.array_equal(got, want), (offset, stride)


@pytest.mark.parametrize("offset", [0, 1, 8, 13, 32])
@pytest.mark.parametrize("lanes", [1, 64, 300])
@pytest.mark.parametrize("element", [*KINDS, "i64"])
def test_continuous_rows_anywhere(element: str, lanes: int, offset: int) -> None:
    kind = KINDS.get(element, np.int64)
    data = RNG.integers(0, 100, lanes + offset).astype(kind)
    body = Body()
    body.store(body.load(lanes, element, offset=offset, words=' {dist_mode = "continuous"}'), lanes, element)
    body.store(body.load(lanes, element), lanes, element, offset=lanes + offset)
    size = (2 * lanes + offset) * data.itemsize
    got = run_body(body, as_bytes(data), -(-size // 32) * 32)
    elements = got[:size].view(kind)
    assert np.array_equal(elements[:lanes], data[offset:])
    assert np.array_equal(elements[lanes + offset :], data[:lanes])
    assert np.array_equal(as_bytes(elements[lanes : lanes + offset]), blank(offset * data.itemsize))


@pytest.mark.parametrize("lanes", [5, 64, 200, 513])
@pytest.mark.parametrize(("near", "far"), [("u16", "u8"), ("u32", "u8"), ("u32", "u16"), ("i16", "i8")])
@pytest.mark.parametrize("offset", [0, 32, 3])
def test_unpacking_loads_extend_by_zero(near: str, far: str, lanes: int, offset: int) -> None:
    size = int(far[1:]) // 8
    data = RNG.integers(0, 256**size, lanes + offset).astype(f"<u{size}")
    body = Body()
    where = f"{body.pointer(0, far)}[{body.constant(offset)}]"
    value = body.make(f'pto.vmi.vload {where} {{dist_mode = "unpack"}} : {ptr(far)} -> {reg(lanes, near)}')
    body.store(value, lanes, near)
    want = data[offset:].astype(f"<u{int(near[1:]) // 8}")
    got = run_body(body, as_bytes(data), -(-want.nbytes // 32) * 32)
    assert np.array_equal(got[: want.nbytes].view(want.dtype), want)


@pytest.mark.parametrize("groups", [None, 1, 4, 20, 100])
@pytest.mark.parametrize("stride", [None, 0, 1, 3])
@pytest.mark.parametrize("element", KINDS)
def test_one_element_in_all_lanes(element: str, groups: int | None, stride: int | None) -> None:
    lanes, data = 300, numbers(element, 400)
    body = Body()
    where, words = f"{body.pointer(0, element)}[{body.constant(5)}]", '{dist_mode = "brc"}'
    if groups is not None:
        where += "" if stride is None else f", {body.constant(stride)}"
        words = f'{{dist_mode = "brc", group = {groups}}}'
    value = body.make(f"pto.vmi.vload {where} {words} : {ptr(element)} -> {reg(lanes, element)}")
    body.store(value, lanes, element)
    slots = [data[5 + g * (1 if stride is None else stride)] for g in range(groups or 1)]
    want = np.repeat(np.array(slots, data.dtype), lanes // (groups or 1))
    got = run_body(body, as_bytes(data), -(-want.nbytes // 32) * 32)
    assert np.array_equal(got[: want.nbytes].view(want.dtype), want)


@pytest.mark.parametrize("stride", [1, 2, 5])
@pytest.mark.parametrize("count", [None, 20, 75])
@pytest.mark.parametrize("wide", [False, True])
def test_blocks(stride: int, count: int | None, *, wide: bool) -> None:
    """Blocks of 32 bytes, `stride` blocks apart, loaded and stored; masks cut through blocks."""
    lanes, data = 160, numbers("u16", 160 * stride)
    body = Body()
    apart = body.constant(stride, "i16")
    where = f"{body.pointer(0, 'u16')}[{body.constant(0)}]"
    value = body.make(f"pto.vmi.vload {where}, {apart} : {ptr('u16')}, i16 -> {reg(lanes, 'u16')}")
    if wide:
        value = body.make(f"pto.vmi.vcvt {value} : {reg(lanes, 'u16')} -> {reg(lanes, 'u32')}")
        words = '{saturate = "NOSAT"}'
        value = body.make(f"pto.vmi.vcvt {value} {words} : {reg(lanes, 'u32')} -> {reg(lanes, 'u16')}")
    more, kind = "", ""
    if count is not None:
        m = body.make(f"pto.vmi.create_mask {body.constant(count)} : index -> {mask(lanes)}")
        more, kind = f", {m}", f", {mask(lanes)}"
    where = f"{body.pointer(OUTPUT, 'u16')}[{body.constant(16)}]"
    body.line(f"pto.vmi.vstore {value}, {where}, {apart}{more} : {reg(lanes, 'u16')}, {ptr('u16')}{kind}")
    want = blank(32 * (10 * stride + 2)).copy()
    for lane in range(lanes if count is None else count):
        place = lane // 16 * 16 * stride + lane % 16
        want.view(np.uint16)[16 + place] = data[place]
    assert np.array_equal(run_body(body, as_bytes(data), want.size), want)


@pytest.mark.parametrize("index", ["u16", "u32", "i32"])
@pytest.mark.parametrize("count", [None, 0, 37])
@pytest.mark.parametrize("element", KINDS)
def test_gathers(element: str, index: str, count: int | None) -> None:
    lanes = 130
    data = numbers(element, 512)
    places = RNG.integers(0, 500, lanes).astype(f"<u{int(index[1:]) // 8}")
    body = Body()
    named = body.load(lanes, index, byte=16384)
    more, kind = "", ""
    if count is not None:
        m = body.make(f"pto.vmi.create_mask {body.constant(count)} : index -> {mask(lanes)}")
        more, kind = f", {m}", f", {mask(lanes)}"
    where = f"{body.pointer(0, element)}[{body.constant(8)}]"
    kinds = f"{ptr(element)}, {reg(lanes, index)}{kind} -> {reg(lanes, element)}"
    value = body.make(f"pto.vmi.vgather {where}, {named}{more} : {kinds}")
    body.store(value, lanes, element)
    given = np.zeros(16384 + 4 * lanes, np.uint8)
    given[: data.nbytes] = as_bytes(data)
    given[16384 : 16384 + places.nbytes] = as_bytes(places)
    want = data[8 + places.astype(np.int64)].copy()
    want[lanes if count is None else count :] = 0
    got = run_body(body, given, -(-want.nbytes // 32) * 32)
    assert np.array_equal(got[: want.nbytes].view(want.dtype), want)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("count", [-3, 0, 5, 64, 200, 5000])
@pytest.mark.parametrize(("lanes", "groups"), [(300, None), (300, 5), (512, 2), (128, 16), (1024, 4), (64, 64)])
def test_masks_of_lanes_and_of_groups(lanes: int, groups: int | None, count: int, *, dynamic: bool) -> None:
    """On 8, 16, 32 and 64 bits: the mask of a store, from a number of the text or of an argument."""
    body, size = Body("%n: index"), lanes // (groups or 1)
    number = "%n" if dynamic else body.constant(count)
    name, words = "create_mask", ""
    if groups is not None:
        name, words = "create_group_mask", f" {{num_groups = {groups}, group_size = {size}}}"
    m = body.make(f"pto.vmi.{name} {number}{words} : index -> {mask(lanes)}")
    data = np.arange(1, 2 * lanes + 1) % 100
    given, want, place = np.zeros(65536, np.uint8), blank(65536).copy(), 0
    for element, kind in (("i8", np.int8), ("i16", np.int16), ("f32", np.float32), ("i64", np.int64)):
        codes = data[:lanes].astype(kind)
        given[place : place + codes.nbytes] = as_bytes(codes)
        body.store(body.load(lanes, element, byte=place), lanes, element, byte=OUTPUT + place, m=m)
        active = np.arange(lanes) % size < count
        want[place : place + codes.nbytes].view(kind)[active] = codes[active]
        place += 16384
    assert np.array_equal(run_body(body, given, want.size, {"n": count}), want)


def test_pairs_count_in_elements_of_their_pointer() -> None:
    data = np.arange(256, dtype=np.uint16)
    body = Body()
    where = f"{body.pointer(0, 'bf16')}[{body.constant(32)}]"
    value = body.make(f"pto.vmi.vload {where} : {ptr('bf16')} -> {reg(70, 'bf16_pair')}")
    body.store(value, 70, "bf16_pair", offset=8)
    got = run_body(body, as_bytes(data), 512).view(np.uint16)
    assert np.array_equal(got[16 : 16 + 140], data[32 : 32 + 140])


@pytest.mark.parametrize(
    ("wide", "narrow"), [("u16", "u8"), ("i16", "u8"), ("i32", "u8"), ("u32", "i8"), ("u32", "u16")]
)
@pytest.mark.parametrize("offset", [0, 32, 3])
def test_stores_of_wider_integers_write_their_low_bits(wide: str, narrow: str, offset: int) -> None:
    lanes, held = 200, np.dtype({"i": "int", "u": "uint"}[wide[0]] + wide[1:])
    kept = np.dtype(f"u{int(narrow[1:]) // 8}")
    data = RNG.integers(0, 1 << 8 * held.itemsize, lanes, dtype=np.uint64).astype(held)
    body = Body()
    value = body.load(lanes, wide)
    where = f"{body.pointer(OUTPUT, narrow)}[{body.constant(offset)}]"
    body.line(f"pto.vmi.vstore {value}, {where} : {reg(lanes, wide)}, {ptr(narrow)}")
    got = run_body(body, as_bytes(data), 512).view(kept)
    want = blank(512).view(kept)
    want[offset : offset + lanes] = data.astype(kept)
    assert np.array_equal(got, want)


@pytest.mark.parametrize(("pattern", "count"), [("PAT_ALL", 96), ("PAT_ALLF", 0), ("PAT_VL8", 8), ("PAT_VL128", 96)])
@pytest.mark.parametrize("sign", [":", ":  ->"])
def test_patterns_and_older_names_of_accesses(pattern: str, count: int, sign: str) -> None:
    data, body = numbers("f32", 96), Body()
    where = f"{body.pointer(0, 'f32')}[{body.constant(0)}]"
    value = body.make(f"pto.vmi.load {where} : {ptr('f32')} -> {reg(96, 'f32')}")
    m = body.make(f'pto.vmi.pset "{pattern}" {sign} {mask(96)}')
    where = f"{body.pointer(OUTPUT, 'f32')}[{body.constant(0)}]"
    body.line(f"pto.vmi.store {value}, {where}, {m} : {reg(96, 'f32')}, {ptr('f32')}, {mask(96)}")
    want = blank(384).view(np.float32)
    want[:count] = data[:count]
    assert np.array_equal(run_body(body, as_bytes(data), 384), want.view(np.uint8))
