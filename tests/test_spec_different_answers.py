"""Every row of the table "same cast, different answers", reproduced on what is modelled here."""

from __future__ import annotations

import math
from dataclasses import replace

import ml_dtypes
import numpy as np
import oracle
import pytest
from different_answers import ROWS, Abstract, Chip, Row, Script, Spec
from golden import load

from castsim.casting import cast_on_target
from castsim.isa import format_named
from castsim.isa.errors import IllegalError
from castsim.isa.modes import Overflow, Rounding, Saturation
from castsim.numerics import abstract_policy, cast_codes, encode_value
from castsim.specifications import Rescale, accepts, rescale, specified_cast
from castsim.targets import load_target
from castsim.targets.options import with_options

PTO = load("golden_pto_tcvt.npz")
CELLS = [(row, cell) for row in ROWS for cell in row.cells]
NAMES = [f"{row.number}-{type(cell).__name__}-{index}" for index, (row, cell) in enumerate(CELLS)]


def code_of(value: float, name: str) -> int:
    """Return the code of a number that the format has; NaN any of them."""
    encoded = encode_value(value, format_named(name))
    assert not encoded.inexact or name in ("f32", "f64"), f"{value} is no {name}"
    return encoded.code


def codes(value: float, name: str) -> np.ndarray:
    return np.array([code_of(value, name)], oracle.storage(name))


def same(code: int, expected: float, name: str) -> bool:
    value = oracle.decode(code, name)
    if math.isnan(expected):
        return value.kind == "nan"
    if math.isinf(expected):
        return value.kind == "inf" and value.negative == (expected < 0)
    negative = math.copysign(1, expected) < 0
    return value.kind == "finite" and value.magnitude == abs(expected) and value.negative == negative


@pytest.mark.parametrize(("row", "cell"), CELLS, ids=NAMES)
def test_cell(row: Row, cell: Abstract | Spec | Chip | Script) -> None:
    match cell:
        case Abstract():
            check_abstract(row, cell)
        case Spec():
            check_specification(row, cell)
        case Chip():
            check_chip(row, cell)
        case Script():
            check_script(row, cell)


def check_abstract(row: Row, cell: Abstract) -> None:
    dst = cell.dst or row.dst
    src, destination = format_named(row.src), format_named(dst)
    rounding = None if cell.rounding is None else Rounding(cell.rounding)
    overflow = None if cell.overflow is None else Overflow(cell.overflow)
    policy = abstract_policy(src, destination, rounding, overflow)
    assert same(int(cast_codes(codes(row.value, row.src), src, destination, policy)[0]), cell.expected, dst)


def check_specification(row: Row, cell: Spec) -> None:
    dst = cell.dst or row.dst
    if not cell.legal:
        with pytest.raises(IllegalError, match="has no cast"):
            specified_cast(cell.name, row.src, dst)
        return
    source = codes(row.value, row.src)

    def verdict(result: np.ndarray) -> bool:
        repeated = np.repeat(source, result.size)
        return bool(accepts(cell.name, row.src, dst, repeated, result, attributes=cell.attributes).all())

    if cell.anything:
        assert verdict(np.arange(16, dtype=np.uint64).astype(oracle.storage(dst)))
        assert verdict(np.array([oracle.fmt(dst).high if dst in oracle.INTS else 0], oracle.storage(dst)))
    assert cell.anything or cell.good
    for value in cell.good:
        assert verdict(codes(value, dst)), f"{value} must conform"
    for value in cell.bad:
        assert not verdict(codes(value, dst)), f"{value} must not conform"


def check_chip(row: Row, cell: Chip) -> None:
    target = with_options(load_target(cell.target), cell.options)
    src = cell.src or row.src
    saturation = None if cell.saturation is None else Saturation(cell.saturation)

    def run() -> int:
        source, destination = format_named(src), format_named(row.dst)
        result = cast_on_target(
            codes(row.value, src), source, destination, target,
            rounding=cell.rounding, saturation=saturation, scratch=cell.scratch,
        )  # fmt: skip
        return int(result.codes[0])

    if cell.expected is None:
        with pytest.raises(IllegalError, match=f"{cell.target} has no cast"):
            run()
    else:
        assert same(run(), cell.expected, row.dst)


def check_script(row: Row, cell: Script) -> None:
    """The published script gives the table's answer, or would on this input, and the model another."""
    source, result = PTO[f"{cell.key}__in"], PTO[f"{cell.key}__{cell.out}"]
    if row.dst == "e2m1":
        bits = source.astype(np.uint16)
        nibbles = np.stack([result & 0xF, result >> 4], axis=-1).reshape(-1)[: bits.size]
        assert nibbles[bits == 0x8000].tolist() == [0] * int((bits == 0x8000).sum())
        assert (bits == 0x8000).any()
        ours = cast_on_target(
            np.array([0x8000], np.uint16), format_named("bf16"), format_named("e2m1"), load_target("a5")
        )
        assert ours.codes.tolist() == [8] == np.array([-0.0], ml_dtypes.float4_e2m1fn).view(np.uint8).tolist()
        return
    twice = source.view(np.int64).astype(np.float64).astype(np.float32)
    assert np.array_equal(twice.view(np.uint32), result.view(np.uint32))  # the script is this chain
    assert np.float32(np.float64(row.value)) == cell.expected


def test_all_rows_are_there() -> None:
    assert {row.number for row in ROWS} == {*map(str, range(1, 34)), "19b"}  # and row 34 below


def test_row_34_rescale() -> None:
    """-0.5 and +0.5: SINGLE 0 and 1; INEXACT 0 or the neighbour away; DOUBLE as SINGLE up to shift 31."""
    operator = Rescale("i8", "i8", (1 << 30,), (31,))
    source = np.array([-1, 1], np.int8).view(np.uint8)
    for mode in ("SINGLE_ROUND", "DOUBLE_ROUND"):
        done = rescale(replace(operator, rounding_mode=mode), source).sets
        assert done is not None
        assert done.single.all()
        assert done.lowest.view(np.int8).tolist() == [0, 1]
    done = rescale(replace(operator, rounding_mode="INEXACT_ROUND"), source).sets
    assert done is not None
    for results, good in (([0, 0], True), ([-1, 1], True), ([0, 1], True), ([1, 0], False), ([-2, 0], False)):
        assert done.contains(np.array(results, np.int8).view(np.uint8)).all() == good
