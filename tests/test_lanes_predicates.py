"""Predicate instructions against lists of bits."""

from __future__ import annotations

import lanes_model as model
import numpy as np
import pytest

from castsim.isa.errors import IllegalError
from castsim.isa.formats import format_named
from castsim.machines.vector_function.lane_operations import PATTERNS, execute
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


@pytest.mark.parametrize("name", ["pset", "pge"])
def test_patterns_of_the_last_lanes_are_an_option(name: str) -> None:
    for width in (8, 16, 32):
        number = 2048 // width
        for word, part in (("PAT_H", 2), ("PAT_Q", 4)):
            found = bits(run(name, width=width, words=(word,), micro_predicate_side="last")[0])
            assert found == lanes([*range(number - number // part, number)], width)
    with pytest.raises(IllegalError, match="no predicate pattern PAT_VL5") as refused:
        run(name, words=("PAT_VL5",))
    assert refused.value.legal == PATTERNS


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
