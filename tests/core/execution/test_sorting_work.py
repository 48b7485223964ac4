"""Gathers by pattern, sorts and merges: values against plain Python, cycles, refusals, text.

Source: docs/reference/pto.md section 7.7; a pair is (element, number) in eight bytes.
"""

from __future__ import annotations

import heapq

import numpy as np
import pytest
from kit.strided_works import TARGET, cycles, tile, work
from kit.work_programs import NATIVE, Spot, computed, expect, noise, program, ran, statement, target, walked

from castsim.isa.errors import CastsimError
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program

TARGETS = ("a2a3", "a5")
PAIR = {"f32": 2, "f16": 4}
"""Elements of a tile that a pair takes."""


def masked(a: Spot, d: Spot, pattern: str, direction: str = ', "row"') -> str:
    attribute = f"{{maskPattern = #pto.mask_pattern<{pattern}>}}"
    return f"pto.tgather ins(%{a.name}, {attribute} : {a.type}{direction}) outs(%{d.name} : {d.type})"


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("element", ["i8", "i16", "f16", "bf16", "i32", "f32"])
@pytest.mark.parametrize(
    ("pattern", "first", "step"),
    [
        ("P0101", 0, 2), ("P1010", 1, 2), ("P0001", 0, 4), ("P0010", 1, 4), ("P0100", 2, 4), ("P1000", 3, 4),
        ("P1111", 0, 1),
    ],
)  # fmt: skip
@pytest.mark.parametrize("cols", [5, 64])
def test_columns_and_rows_by_pattern(name: str, element: str, pattern: str, first: int, step: int, cols: int) -> None:
    if name == "a2a3" and element == "i8":
        with pytest.raises(CastsimError, match="does not take i8"):
            a, d = Spot("a", "i8", 8, 64, 0), Spot("d", "i8", 8, 32, 4096)
            walked(program(masked(a, d, "P0101"), [a, d]), target(name))
        return
    a = Spot("a", element, 5, 256, 0, (5, cols * step))
    d = Spot("d", element, 5, 64, 16384, (5, cols))
    before = noise(target(name))
    text = program(masked(a, d, pattern, "" if cols == 5 else ', "row"'), [a, d])
    expect(text, name, before, d, a.get(before)[:, first::step])
    parsed = parse(text, "k.pto")
    assert parse(print_program(parsed), "k.pto") == parsed
    a, d = Spot("a", element, 3 * step, 64, 0, (3 * step, cols)), Spot("d", element, 3, 64, 16384, (3, cols))
    text = program(masked(a, d, pattern, ', "col"'), [a, d])
    expect(text, name, before, d, a.get(before)[first::step])


def test_cycles_of_gathers_by_pattern_are_those_of_the_vendors_profile() -> None:
    """2 cycles for each row, a repeat of any length: 2.0 r - 2, preferred to a profile that counts eight-fold."""

    def rows(count: int, cols: int) -> int:
        made = work("tgather.mask", tile("f32", count, cols // 2, 65536), tile("f32", count, cols, 0), pattern="0101")
        return cycles(TARGET, made)

    assert rows(5, 64) - rows(4, 64) == 2
    assert rows(4, 64) <= rows(4, 1024)  # of longer rows some blocks meet in a bank


def pairs(buffer: np.ndarray, spot: Spot, count: int) -> list[list[tuple[float, int]]]:
    rows = []
    for row in range(spot.region[0]):
        start = spot.place(row, 0)
        raw = buffer[start : start + 8 * count].reshape(count, 8)
        values = np.ascontiguousarray(raw[:, : spot.size]).view(NATIVE[spot.element])[:, 0]
        assert not raw[:, spot.size : 4].any()
        numbers = np.ascontiguousarray(raw[:, 4:]).view("<u4")[:, 0]
        rows.append([(float(value), int(number)) for value, number in zip(values, numbers, strict=True)])
    return rows


def written(spot: Spot, buffer: np.ndarray, rows: list[list[tuple[float, int]]]) -> None:
    for row, line in enumerate(rows):
        for place, (value, number) in enumerate(line):
            start = spot.place(row, 0) + 8 * place
            code = np.array([value], NATIVE[spot.element]).view(np.uint8)
            buffer[start : start + 8] = np.concatenate(
                [code, np.zeros(4 - code.size, np.uint8), np.array([number], "<u4").view(np.uint8)]
            )


def known(shape: tuple[int, int], element: str, seed: int) -> np.ndarray:
    """Numbers with many equal ones, infinities and zeros of both signs."""
    rng = np.random.default_rng(seed)
    values = np.where(rng.random(shape) < 0.5, rng.integers(-3, 4, shape), rng.standard_normal(shape) * 100)
    values = np.where(rng.random(shape) < 0.1, np.inf * np.sign(values), values)
    return np.nan_to_num(values, nan=-0.0, posinf=np.inf, neginf=-np.inf).astype(NATIVE[element])


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize("shape", [(1, 32), (3, 64), (2, 256), (1, 8192), (4, 50), (1, 5)])
def test_sorts(name: str, element: str, shape: tuple[int, int]) -> None:
    rows, cols = shape
    whole = -(-cols // 32) * 32
    a, i = Spot("a", element, rows, whole, 0, shape), Spot("i", "ui32", rows, whole, 32768, shape)
    d = Spot("d", element, rows, PAIR[element] * whole, 65536, (rows, PAIR[element] * cols))
    t = Spot("t", element, rows, whole, 131072, shape)
    before = noise(target(name))
    x = known(shape, element, cols)
    given = np.random.default_rng(1).permutation(rows * cols).reshape(shape).astype("<u4") + np.uint32(2**31 - 10)
    a.put(before, x)
    i.put(before, given)
    operands = [a, i, t] if cols % 32 else [a, i]
    found = ran(program(statement("tsort32", operands, d), [*operands, d]), name, before)
    wanted = []
    for values, numbers in zip(x, given, strict=True):
        line = [(float(value), int(number)) for value, number in zip(values, numbers, strict=True)]
        groups = (line[start : start + 32] for start in range(0, cols, 32))
        wanted.append([pair for group in groups for pair in sorted(group, key=lambda pair: (-pair[0], pair[1]))])
    assert pairs(found, d, cols) == wanted
    for row in range(rows):
        found[d.place(row, 0) : d.place(row, 0) + 8 * cols] = before[d.place(row, 0) : d.place(row, 0) + 8 * cols]
    assert np.array_equal(found, before)


def lists(count: int, length: int, element: str, seed: int) -> list[list[tuple[float, int]]]:
    values = known((count, length), element, seed)
    return [
        sorted(((float(v), 1000 * row + n) for n, v in enumerate(line)), key=lambda pair: -pair[0])
        for row, line in enumerate(values)
    ]


def merged(parts: list[list[tuple[float, int]]]) -> list[tuple[float, int]]:
    return list(heapq.merge(*parts, key=lambda pair: -pair[0]))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize(("blocks", "length"), [(4, 32), (8, 16), (4, 512), (1024, 4)])
def test_merges_of_blocks(name: str, element: str, blocks: int, length: int) -> None:
    cols = blocks * length * PAIR[element]
    a, d = Spot("a", element, 1, cols, 0), Spot("d", element, 1, cols, 65536)
    before = noise(target(name))
    given = lists(blocks, length, element, blocks)
    written(a, before, [[pair for block in given for pair in block]])
    literal = str(length * PAIR[element])
    text = program(statement("tmrgsort", [a, ("n", "i32")], d), [a, d], {"n": (literal, "i32")})
    found = pairs(ran(text, name, before), d, blocks * length)[0]
    assert found == [pair for first in range(0, blocks, 4) for pair in merged(given[first : first + 4])]


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("lengths", [(40, 7), (16, 16, 16), (32, 1, 64, 5)])
def test_merges_of_several_tiles(name: str, lengths: tuple[int, ...]) -> None:
    spots = [
        Spot(n, "f32", 1, 128, at, (1, 2 * k)) for n, at, k in zip("abcd", range(0, 4096, 512), lengths, strict=False)
    ]
    d = Spot("r", "f32", 1, 512, 8192, (1, 2 * sum(lengths)))
    before = noise(target(name))
    given = [lists(1, length, "f32", length)[0] for length in lengths]
    for spot, part in zip(spots, given, strict=True):
        written(spot, before, [part])
    after = ran(program(statement("tmrgsort", spots, d), [*spots, d]), name, before)
    assert pairs(after, d, sum(lengths))[0] == merged(given)


def test_lists_that_are_not_sorted_are_merged_by_their_first_elements() -> None:
    """What a comparison of the lists' first elements gives, step by step."""
    rng = np.random.default_rng(3)
    parts = [[(float(v), 8 * row + n) for n, v in enumerate(rng.integers(-4, 4, 8))] for row in range(4)]
    a, d = Spot("a", "f32", 1, 64, 0), Spot("d", "f32", 1, 64, 4096)
    before = noise(target("a5"))
    written(a, before, [[pair for part in parts for pair in part]])
    text = program(statement("tmrgsort", [a, ("n", "i32")], d), [a, d], {"n": ("16", "i32")})
    wanted, left = [], [list(part) for part in parts]
    while any(left):
        best = max((number for number in range(4) if left[number]), key=lambda number: (left[number][0][0], -number))
        wanted.append(left[best].pop(0))
    assert pairs(computed(text, target("a5"), before), d, 32)[0] == wanted


@pytest.mark.parametrize(
    ("elements", "block", "published"), [(256, 64, 98), (512, 64, 176), (2048, 256, 176), (1024, 64, 332)]
)
def test_cycles_of_merges_are_the_published_ones(elements: int, block: int, published: int) -> None:
    """78 for every four blocks, and 20."""
    a, d = tile("f32", 1, elements, 0), tile("f32", 1, elements, 65536 + 32)
    assert cycles(TARGET, work("tmrgsort", d, a, scalars=((block, tile("i32", 1, 8).format),))) == published


A, N, D = Spot("a", "f32", 2, 64, 0), Spot("i", "ui32", 2, 64, 4096), Spot("d", "f32", 2, 128, 8192)
R, H = Spot("r", "f32", 2, 64, 16384, (2, 50)), Spot("h", "i16", 2, 64, 20480)
J = Spot("j", "ui32", 2, 64, 24576, (2, 50))
BY_PATTERN = "{maskPattern = #pto.mask_pattern<P0101>}"


@pytest.mark.parametrize(
    ("operation", "name", "message"),
    [
        (statement("tsort32", [A, N], R), "a5", "64 pairs are 512 bytes, a row of %r has 256"),
        (statement("tsort32", [A, H], D), "a5", "takes numbers from a tile of 32-bit integers, %h holds i16"),
        (statement("tsort32", [A, J], D), "a5", "valid region of %j is 2 x 50, of %a 2 x 64"),
        (statement("tsort32", [R, J], D), "a2a3", "needs a tmp tile to pad rows of 50 elements to a multiple of 32"),
        (statement("tsort32", [H, N], D), "a5", "%d is f32, not i16"),
        (statement("tsort32", [N, N], N), "a5", "does not take u32"),
        (statement("tmrgsort", [D, ("n", "i32")], D), "a2a3", "cannot run in place"),
        (statement("tmrgsort", [D, ("n", "i32")], A), "a5", "64 pairs are 512 bytes, a row of %a has 256"),
        (
            statement("tmrgsort", [A, ("m", "i32")], D),
            "a5",
            "four blocks of 12 elements, whole pairs, do not divide the 64",
        ),
        (statement("tmrgsort", [A, ("z", "i32")], D), "a5", "four blocks of 0 elements"),
        (statement("tmrgsort", [A, ("f", "f32")], D), "a5", "the scalar is no integer"),
        (masked(A, D, "P0101"), "a5", "valid region of %a is 2 x 64, %d with 2 x 128 takes 2 x 256"),
        (masked(A, D, "P0111"), "a5", "unknown mask_pattern 'P0111'"),
        (masked(A, D, "P0101", ', "diagonal"'), "a5", "unknown direction"),
        (statement("tadd", [A, A], A, BY_PATTERN), "a5", "no attribute 'maskPattern'"),
        (statement("tabs", [A], A, BY_PATTERN), "a5", "no attribute 'maskPattern'"),
        (
            "pto.tgather.mask ins(%a : " + A.type + ") outs(%d : " + D.type + ")",
            "a5",
            "unknown operation 'pto.tgather.mask'",
        ),
    ],
)
def test_refusals(operation: str, name: str, message: str) -> None:
    numbers = {"n": ("16", "i32"), "m": ("12", "i32"), "z": ("0", "i32"), "f": ("1.0", "f32")}
    with pytest.raises(CastsimError) as caught:
        walked(program(operation, [A, N, D, R, H, J], numbers), target(name))
    assert message in str(caught.value), caught.value
    assert caught.value.span is not None
