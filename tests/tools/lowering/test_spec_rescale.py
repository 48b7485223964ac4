"""TOSA RESCALE: published outputs, every ERROR and REQUIRE, the bound of INEXACT_ROUND.

Expected: docs/reference/semantics.md section 2 and the pseudocode of apply_scale_32 and apply_scale_16."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import oracle
import oracle_acceptance
import pytest
from kit.golden import load
from tools.lowering.different_answers import ROWS, Abstract, Chip, Row, Script, Spec

from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import Overflow, Rounding, Saturation, format_named
from castsim.machines.casting import cast_on_target
from castsim.numerics.cast import cast_codes
from castsim.numerics.codec import encode_value
from castsim.numerics.policy import abstract_policy
from castsim.running.acceptance import accepts, specified_cast
from castsim.targets.description import with_options
from castsim.targets.loader import load_target
from castsim.tools.graphs.tosa_operators import GraphValidity, Rescale, Rescaled, rescale

DATA = load("golden_tosa_rescale.npz")
CASES = [dict(zip(DATA["meta_cols"].tolist(), row, strict=True)) for row in DATA["meta"].tolist()]
MODES = {1: "SINGLE_ROUND", 2: "INEXACT_ROUND", 3: "DOUBLE_ROUND"}
STORAGE = {8: np.uint8, 16: np.uint16, 32: np.uint32, 48: np.uint64}
SIMPLE = Rescale("i8", "i8", (1 << 30,), (31,))


def operator_of(case: dict[str, int]) -> Rescale:
    factors = slice(case["mult_offset"], case["mult_offset"] + case["channels"])
    multiplier, shift = DATA["mult"][factors].tolist(), DATA["shift"][factors].tolist()
    if not case["per_channel"]:
        assert len({*multiplier}) == len({*shift}) == 1
        multiplier, shift = multiplier[:1], shift[:1]
    return Rescale(
        f"i{case['in_bits']}", f"i{case['out_bits']}", tuple(multiplier), tuple(shift),
        rounding_mode=MODES[case["rounding_mode"]], input_zp=case["input_zp"], output_zp=case["output_zp"],
        **{name: bool(case[name]) for name in ("scale32", "per_channel")},
        **{f"{side}put_unsigned": bool(case[f"{side}_unsigned"]) for side in ("in", "out")},
    )  # fmt: skip


def arrays_of(case: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return input and output as mathematical values, channel last."""
    where = slice(case["io_offset"], case["io_offset"] + case["rows"] * case["channels"])
    shape = case["rows"], case["channels"]
    return DATA["inp"][where].reshape(shape), DATA["out"][where].reshape(shape)


def codes_of(values: np.ndarray, bits: int) -> np.ndarray:
    return values.astype(np.int64).astype(STORAGE[bits])


def limits(bits: int, unsigned: int) -> tuple[int, int]:
    return (0, (1 << bits) - 1) if unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)


@pytest.mark.parametrize("mode", MODES)
def test_published_outputs(mode: int) -> None:
    seen = 0
    for case in (case for case in CASES if case["rounding_mode"] == mode):
        source, result = arrays_of(case)
        done = rescale(operator_of(case), codes_of(source, case["in_bits"]))
        assert done.outcome is GraphValidity.VALID, case
        assert done.sets is not None
        assert done.sets.contains(codes_of(result, case["out_bits"])).all(), case
        assert done.sets.single.all() or mode == 2
        outside = outside_of(done, case)
        assert len(outside) == 2
        for wrong, exists in outside:
            assert not done.sets.contains(codes_of(wrong, case["out_bits"]))[exists].any()
        seen += source.size
    assert seen > 5000


def outside_of(done: Rescaled, case: dict[str, int]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the values next to the sets on either side, and where they exist."""
    assert done.sets is not None
    low, high = limits(case["out_bits"], case["out_unsigned"])
    signed = f"{'u' if case['out_unsigned'] else 'i'}{case['out_bits'] // 8}"
    below, above = (
        done.sets.lowest.view(signed).astype(np.int64) - 1,
        done.sets.highest.view(signed).astype(np.int64) + 1,
    )
    return [(below, below >= low), (above, above <= high)]


def test_inexact_bounds_in_rational_arithmetic() -> None:
    """Float64, by which TOSA defines the bounds, gives the same integers on the published inputs."""
    widest = 0
    for case in (case for case in CASES[::4] if case["rounding_mode"] == 2):
        operator = operator_of(case)
        source, _ = arrays_of(case)
        done = rescale(operator, codes_of(source, case["in_bits"]))
        assert done.sets is not None
        ends = limits(case["out_bits"], case["out_unsigned"])
        signed = f"{'u' if case['out_unsigned'] else 'i'}{case['out_bits'] // 8}"
        lowest, highest = done.sets.lowest.view(signed), done.sets.highest.view(signed)
        for place, value in np.ndenumerate(source):
            index = place[1] if operator.per_channel else 0
            product = (int(value) - operator.input_zp) * operator.multiplier[index]
            bounds = oracle_acceptance.inexact_bounds(product, operator.shift[index], operator.output_zp)
            expected = [max(ends[0], min(ends[1], bound)) for bound in bounds]
            assert [int(lowest[place]), int(highest[place])] == expected
            widest = max(widest, expected[1] - expected[0])
    assert widest > 1


@pytest.mark.parametrize(
    ("mode", "expected"), [("SINGLE_ROUND", [(-1, -1), (0, 0), (1, 1), (2, 2)]),
                           ("DOUBLE_ROUND", [(-1, -1), (0, 0), (1, 1), (2, 2)]),
                           ("INEXACT_ROUND", [(-2, -1), (-1, 0), (0, 1), (1, 2)])]
)  # fmt: skip
def test_halves(mode: str, expected: list[tuple[int, int]]) -> None:
    """Section 2.2: -3, -1, 1, 3 halved; half rounds up, and INEXACT_ROUND leaves both neighbours of a half.

    Row 34 of the table below is -1 and 1.
    """
    done = rescale(replace(SIMPLE, rounding_mode=mode), np.array([-3, -1, 1, 3], np.int8).view(np.uint8))
    assert done.sets is not None
    ends = zip(done.sets.lowest.view(np.int8).tolist(), done.sets.highest.view(np.int8).tolist(), strict=True)
    assert list(ends) == expected


def test_double_rounding_moves_thresholds() -> None:
    """Section 2.2: multiplier 2**30, shift 33, -16 to 16: differs from single rounding at -12, -4, 3 and 11."""
    source = np.arange(-16, 17, dtype=np.int8)
    operator = replace(SIMPLE, shift=(33,))
    operators = (replace(operator, rounding_mode=mode) for mode in ("SINGLE_ROUND", "DOUBLE_ROUND"))
    one, other = (rescale(each, source.view(np.uint8)).sets.lowest.view(np.int8) for each in operators)
    where = np.flatnonzero(one != other)
    assert list(zip(source[where].tolist(), other[where].tolist(), one[where].tolist(), strict=True)) == [
        (-12, -2, -1), (-4, -1, 0), (3, 1, 0), (11, 2, 1)
    ]  # fmt: skip


# -------------------------------------------------------------------------------------------------- the outcome ERROR

ERRORS: list[tuple[dict[str, Any], str]] = [
    ({"src": "i16", "input_zp": 1}, "input_zp 1 with i16"),
    ({"src": "i32", "dst": "i32", "input_zp": -1}, "input_zp -1 with i32"),
    ({"src": "i16", "input_unsigned": True, "input_zp": 1}, "input_zp 1 with unsigned i16"),
    ({"dst": "i16", "output_zp": 5}, "output_zp 5 with i16"),
    ({"dst": "i32", "output_zp": 5}, "output_zp 5 with i32"),
    ({"dst": "i16", "output_unsigned": True, "output_zp": 40000}, "output_zp 40000 with unsigned i16"),
    ({"src": "i48"}, "scale32 with i48 input"),
    ({"scale32": False, "multiplier": (1 << 14,), "rounding_mode": "DOUBLE_ROUND"}, "DOUBLE_ROUND without scale32"),
    ({"input_unsigned": True, "output_unsigned": True}, "input_unsigned and output_unsigned together"),
    ({"src": "i32", "input_unsigned": True}, "input_unsigned with i32 input"),
    ({"src": "i48", "scale32": False, "multiplier": (1,), "input_unsigned": True}, "input_unsigned with i48 input"),
    ({"dst": "i32", "input_unsigned": True}, "input_unsigned with i32 output"),
    ({"src": "i32", "output_unsigned": True}, "output_unsigned with i32 input"),
    ({"src": "i48", "scale32": False, "multiplier": (1,), "output_unsigned": True}, "output_unsigned with i48 input"),
    ({"dst": "i32", "output_unsigned": True}, "output_unsigned with i32 output"),
    ({"multiplier": (1, 2)}, "multiplier has 2 entries for 1"),
    ({"per_channel": True}, "shift has 1 entries for 3"),
]


@pytest.mark.parametrize(("change", "reason"), ERRORS)
def test_illegal_graphs(change: dict[str, Any], reason: str) -> None:
    operator = replace(SIMPLE, **change)
    done = rescale(operator, np.zeros((2, 3), STORAGE[int(operator.src[1:])]))
    assert done.outcome is GraphValidity.ERROR
    assert reason in done.reasons
    assert done.sets is None


@pytest.mark.parametrize(
    "signed", [("i8", "i16", False, False), ("i16", "i8", True, False), ("i16", "i16", False, True)]
)
def test_legal_signedness_and_zero_points(signed: tuple[str, str, bool, bool]) -> None:
    src, dst, from_unsigned, to_unsigned = signed
    zero = {"i8": 7, "i16": 32768}
    operator = Rescale(
        src, dst, (1 << 30,), (30,),
        input_zp=zero[src] if from_unsigned or src == "i8" else 0,
        output_zp=zero[dst] if to_unsigned or dst == "i8" else 0,
        input_unsigned=from_unsigned, output_unsigned=to_unsigned,
    )  # fmt: skip
    assert rescale(operator, np.zeros(2, STORAGE[int(src[1:])])).outcome is GraphValidity.VALID


# ------------------------------------------------------------------------------------------ the outcome UNPREDICTABLE

REQUIRES: list[tuple[dict[str, Any], int, str]] = [
    ({"multiplier": (-1,)}, 0, "multiplier -1 is negative"),
    ({"shift": (1,)}, 0, "shift 1 is outside 2 to 62"),
    ({"shift": (63,)}, 0, "shift 63 is outside 2 to 62"),
    ({"shift": (-3,)}, 0, "shift -3 is outside 2 to 62"),
    ({"shift": (7,)}, 64, "value 64 is outside"),
    ({"src": "i32", "dst": "i32", "shift": (31,)}, -(1 << 31), "value -2147483648 is outside"),
    ({"src": "i48", "dst": "i32", "scale32": False, "multiplier": (1 << 14,), "shift": (14,)}, 1 << 31,
     "scaled value 2147483648 is outside i32"),
    ({"src": "i48", "dst": "i32", "scale32": False, "multiplier": (32767,), "shift": (2,)}, -(1 << 47),
     "is outside i32"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "value", "reason"), REQUIRES)
def test_violated_requirements(change: dict[str, Any], value: int, reason: str) -> None:
    operator = replace(SIMPLE, **change)
    done = rescale(operator, codes_of(np.array([0, value]), int(operator.src[1:])))
    assert done.outcome is GraphValidity.UNPREDICTABLE
    assert any(reason in given for given in done.reasons)
    assert done.sets is not None
    assert done.sets.anything.all()


def test_the_edges_of_the_requirements_are_valid() -> None:
    for operator, value in (
        (replace(SIMPLE, multiplier=(0,), shift=(2,)), 1),
        (replace(SIMPLE, shift=(62,)), 127),
        (replace(SIMPLE, shift=(8,)), 127),
        (replace(SIMPLE, shift=(7,)), -64),
        (replace(SIMPLE, src="i32", dst="i32", shift=(32,)), -(1 << 31)),
        (Rescale("i48", "i32", (1 << 14,), (14,), scale32=False), (1 << 31) - 1),
        (Rescale("i48", "i32", (1 << 14,), (14,), scale32=False), -(1 << 31)),
        (Rescale("i48", "i8", (32767,), (62,), scale32=False), -(1 << 47)),
    ):
        done = rescale(operator, codes_of(np.array([value]), int(operator.src[1:])))
        assert (done.outcome, done.reasons) == (GraphValidity.VALID, ()), operator


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, ("PRO-INT",)),
        ({"rounding_mode": "DOUBLE_ROUND"}, ("PRO-INT", "EXT-DOUBLEROUND")),
        ({"rounding_mode": "INEXACT_ROUND"}, ("PRO-INT", "EXT-INEXACTROUND")),
        ({"src": "i48", "scale32": False, "multiplier": (1,)}, ("EXT-INT16",)),
    ],
)
def test_profiles_and_extensions(change: dict[str, Any], expected: tuple[str, ...]) -> None:
    operator = replace(SIMPLE, **change)
    assert rescale(operator, codes_of(np.zeros(1), int(operator.src[1:]))).requires == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"src": "i64"}, "RESCALE does not take type 'i64' here"),
        ({"dst": "i48"}, "RESCALE does not take type 'i48' here"),
        ({"rounding_mode": "HALF"}, "unknown rounding mode 'HALF'"),
        ({"multiplier": (1 << 31,)}, "multiplier 2147483648 is not a value of i32"),
        ({"scale32": False}, "multiplier 1073741824 is not a value of i16"),
        ({"shift": (200,)}, "shift 200 is not a value of i8"),
        ({"input_zp": 200}, "input_zp 200 is not a value of i8"),
        ({"output_zp": -1, "output_unsigned": True}, "output_zp -1 is not a value of u8"),
    ],
)
def test_what_no_graph_can_hold(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ReadError, match=message):
        rescale(replace(SIMPLE, **change), np.zeros(2, np.uint8))


def test_wrong_arrays_and_specifications() -> None:
    with pytest.raises(ReadError, match="codes of i8 come as uint8, not int8"):
        rescale(SIMPLE, np.zeros(2, np.int8))
    with pytest.raises(IllegalError, match="onnx has no RESCALE"):
        rescale(SIMPLE, np.zeros(2, np.uint8), "onnx")


# ----------------------------------------- every row of the table "same cast, different answers", reproduced on what is


PTO = load("golden_pto_tcvt.npz")
CELLS = [
    pytest.param(row, cell, id=f"{row.number}-{type(cell).__name__}-{index}")
    for index, (row, cell) in enumerate((row, cell) for row in ROWS for cell in row.cells)
]


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


CHECKS = {Abstract: check_abstract, Spec: check_specification, Chip: check_chip, Script: check_script}


@pytest.mark.parametrize(("row", "cell"), CELLS)
def test_cell(row: Row, cell: Abstract | Spec | Chip | Script) -> None:
    CHECKS[type(cell)](row, cell)  # type: ignore[operator]
