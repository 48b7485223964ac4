"""Predicate instructions against lists of bits."""

from __future__ import annotations

import lanes_model as model
import numpy as np
import pytest

from castsim.isa.errors import IllegalError
from castsim.isa.formats import format_named
from castsim.machines.vector_function.lane_operations import OPERATIONS, PATTERNS, execute
from castsim.machines.vector_function.vector_registers import Operands, PredicateRegister, Value, documented_target
from castsim.targets.options import with_options

A5 = documented_target()
BYTE = format_named("u8")
RNG = np.random.default_rng(23)
WIDTHS = (8, 16, 32)


def run(
    name: str, *masks: list[int], width: int = 8, scalars: tuple[int, ...] = (), words: tuple[str, ...] = (),
    **options: str,
) -> tuple[Value, ...]:  # fmt: skip
    target = with_options(A5, options)
    made = tuple(model.predicate(each) for each in masks)
    return execute(Operands(name, BYTE, BYTE, width, target, masks=made, scalars=scalars, words=words))


def bits(value: Value) -> list[int]:
    assert isinstance(value, PredicateRegister)
    return value.bits.astype(int).tolist()


def lanes(chosen: list[int], width: int) -> list[int]:
    """The predicate of lanes of a width: one bit each, in place of the lane's first byte."""
    result = [0] * 256
    for lane in chosen:
        result[lane * width // 8] = 1
    return result


def noise() -> list[int]:
    return RNG.integers(0, 2, 256).tolist()


@pytest.mark.parametrize("width", WIDTHS)
def test_counts(width: int) -> None:
    number = 2048 // width
    for count in (-(2**31), -1, 0, 1, 5, number - 1, number, number + 1, 1000, 2**31 - 1):
        for code in (count, count & 0xFFFF_FFFF):
            mask, left = run("plt", width=width, scalars=(code,))
            assert bits(mask) == lanes([i for i in range(number) if i < count], width)
            assert left == max(count - number, 0)
        for piece in (0, 1, 3, -1):
            (mask,) = run("pltm", width=width, scalars=(piece, count))
            assert bits(mask) == lanes([i for i in range(number) if piece * number + i < count], width)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["pset", "pge"])
def test_patterns(name: str, width: int) -> None:
    number = 2048 // width
    every = range(number)
    expected = {
        "PAT_ALL": list(every),
        "PAT_ALLF": [],
        "PAT_H": list(every[: number // 2]),
        "PAT_Q": list(every[: number // 4]),
        "PAT_M3": list(every[::3]),
        "PAT_M4": list(every[::4]),
        **{f"PAT_VL{k}": list(every[:k]) for k in (1, 2, 3, 4, 8, 16, 32, 64, 128)},
    }
    assert set(expected) == set(PATTERNS)
    for word, chosen in expected.items():
        assert bits(run(name, width=width, words=(word,))[0]) == lanes(chosen, width), word
    last = {"micro_predicate_side": "last"}
    assert bits(run(name, width=width, words=("PAT_H",), **last)[0]) == lanes(list(every[number // 2 :]), width)
    assert bits(run(name, width=width, words=("PAT_Q",), **last)[0]) == lanes(list(every[-(number // 4) :]), width)
    with pytest.raises(IllegalError, match="no predicate pattern PAT_VL5") as refused:
        run(name, width=width, words=("PAT_VL5",))
    assert refused.value.legal == PATTERNS


def test_logic() -> None:
    a, b, m = noise(), noise(), noise()
    rules = {"pand": lambda x, y: x & y, "por": lambda x, y: x | y, "pxor": lambda x, y: x ^ y}
    for name, rule in rules.items():
        assert bits(run(name, a, b, m)[0]) == [rule(x, y) & z for x, y, z in zip(a, b, m, strict=True)]
    assert bits(run("pnot", a, m)[0]) == [(1 - x) & z for x, z in zip(a, m, strict=True)]
    assert bits(run("psel", a, b, m)[0]) == [x if z else y for x, y, z in zip(a, b, m, strict=True)]
    assert bits(run("pbitcast", a)[0]) == a


@pytest.mark.parametrize(("word", "start"), [("LOWER", 0), ("HIGHER", 128), ("UPPER", 128)])
def test_packing(word: str, start: int) -> None:
    source = noise()
    packed = [0] * 256
    unpacked = [0] * 256
    for i in range(128):
        packed[start + i] = source[2 * i]
        unpacked[2 * i] = source[start + i]
    assert bits(run("ppack", source, words=(word,))[0]) == packed
    assert bits(run("punpack", source, words=(word,))[0]) == unpacked
    with pytest.raises(IllegalError, match="no half MIDDLE"):
        run("ppack", source, words=("MIDDLE",))


@pytest.mark.parametrize("width", WIDTHS)
def test_interleaving(width: int) -> None:
    step, number = width // 8, 2048 // width
    a, b = noise(), noise()
    one, two = a[::step], b[::step]
    turns = [bit for pair in zip(one, two, strict=True) for bit in pair]
    low, high = run("pintlv", a, b, width=width)
    assert bits(low) == lanes([i for i in range(number) if turns[i]], width)
    assert bits(high) == lanes([i for i in range(number) if turns[number + i]], width)
    both = one + two
    even, odd = run("pdintlv", a, b, width=width)
    assert bits(even) == lanes([i for i in range(number) if both[2 * i]], width)
    assert bits(odd) == lanes([i for i in range(number) if both[2 * i + 1]], width)
    assert isinstance(low, PredicateRegister) and isinstance(high, PredicateRegister)
    back = run("pdintlv", bits(low), bits(high), width=width)
    assert [bits(each) for each in back] == [lanes([i for i in range(number) if part[i]], width) for part in (one, two)]


def test_unknown_bits_spread() -> None:
    known = np.arange(256) != 6
    source, other, every = (
        PredicateRegister(np.ones(256, np.bool_), known),
        model.predicate(noise()),
        model.predicate([1] * 256),
    )

    def unknown(name: str, *masks: PredicateRegister, words: tuple[str, ...] = (), width: int = 16) -> list[list[int]]:
        found = execute(Operands(name, BYTE, BYTE, width, A5, masks=masks, words=words))
        return [np.flatnonzero(~each.defined).tolist() for each in found if isinstance(each, PredicateRegister)]

    for name in ("pand", "por", "pxor"):
        assert unknown(name, source, other, every) == [[6]]
        assert unknown(name, source, other, PredicateRegister(np.arange(256) != 6)) == [[]]
        assert unknown(name, other, other, source) == [[6]]
    assert unknown("pnot", source, every) == [[6]]
    assert unknown("psel", source, other, every) == [[6]]
    assert unknown("psel", other, source, every) == [[]]
    assert unknown("psel", other, other, source) == [[6]]
    assert unknown("ppack", source, words=("HIGHER",)) == [[131]]
    assert unknown("punpack", source, words=("LOWER",)) == [[12]]
    assert unknown("pintlv", source, other) == [[12], []]
    assert unknown("pdintlv", other, source) == [[], [130]]


def test_every_predicate_row_is_tried() -> None:
    tried = {"plt", "pltm", "pset", "pge", "pand", "por", "pxor", "pnot", "psel", "ppack", "punpack"}
    tried |= {"pintlv", "pdintlv", "pbitcast"}
    assert tried == {name for name, row in OPERATIONS.items() if not row.types}
    with pytest.raises(IllegalError, match="no instruction pfoo"):
        run("pfoo")
