"""Operations that combine: fused and narrowing sums, powers, interleaving, gathers of blocks, arguments of parts."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from kit.work_programs import Spot, computed, noise, program, ran, statement, target, walked

from castsim.isa.errors import CastsimError

TARGETS = ("a2a3", "a5")
REGIONS = [(16, 64), (7, 61), (1, 40), (3, 200)]


def nearest(number: Fraction, kind: type) -> float:
    """The number of a type next to an exact one, ties to even; infinity beyond half a step behind the largest."""
    info = ml_dtypes.finfo(kind)
    digits, lowest = info.nmant, info.minexp - info.nmant
    if number == 0:
        return 0.0
    size = abs(number)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    step = Fraction(2) ** max(exponent - digits, lowest)
    rounded = round(size / step) * step  # Fraction rounds ties to even
    value = float(rounded) if rounded <= Fraction(float(info.max)) else float("inf")
    return value if number > 0 else -value


def checked(text: str, name: str, before: np.ndarray, written: dict[Spot, np.ndarray], *options) -> None:
    """Both engines agree, and nothing but these values changes."""
    wanted = before.copy()
    for spot, values in written.items():
        spot.put(wanted, values)
    wrong = np.flatnonzero(ran(text, name, before, *options) != wanted)
    assert not wrong.size, f"bytes {wrong[:10]}"


def two_results(mnemonic: str, ins: Sequence[Spot], outs: tuple[Spot, Spot]) -> str:
    names, types = (", ".join(part) for part in zip(*((f"%{one.name}", one.type) for one in outs), strict=True))
    return statement(mnemonic, ins, outs[0]).rpartition("outs")[0] + f"outs({names} : {types})"


def wide(name: str, element: str, valid: tuple[int, int], number: int, cols: int | None = None) -> Spot:
    return Spot(name, element, 16, cols or (64 if valid[1] <= 64 else 256), number * 32768, valid)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("valid", REGIONS)
@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize("rounding", ["once", "twice"])
def test_fused_sums(name: str, valid: tuple[int, int], element: str, rounding: str) -> None:
    """dst + a b, dst a + b, and its positive part; values whose exact sums lie between two numbers of the type."""
    kind = {"f32": np.float32, "f16": np.float16}[element]
    a, b, d = (wide(letter, element, valid, number) for number, letter in enumerate("abd"))
    rng = np.random.default_rng(3)
    x, y, z = (rng.uniform(-2, 2, valid).astype(kind) for _ in range(3))
    before = noise(target(name))
    for spot, values in ((a, x), (b, y), (d, z)):
        spot.put(before, values)
    for mnemonic in ("tmuladddst", "tfusedmuladd", "tfusedmuladdrelu"):
        factors, addend = ((x, y), z) if mnemonic == "tmuladddst" else ((x, z), y)
        wanted = np.zeros(valid, kind)
        for place in np.ndindex(*valid):
            product = Fraction(float(factors[0][place])) * Fraction(float(factors[1][place]))
            if rounding == "twice":
                product = Fraction(nearest(product, kind))
            wanted[place] = nearest(product + Fraction(float(addend[place])), kind)
        if mnemonic == "tfusedmuladdrelu":
            wanted = np.where(wanted > 0, wanted, kind(0))
        text = program(statement(mnemonic, [a, b], d), [a, b, d])
        checked(text, name, before, {d: wanted}, ("axpy_rounding", rounding))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("valid", REGIONS)
@pytest.mark.parametrize(("source", "result"), [("f32", "f16"), ("f16", "i8"), ("i16", "i8")])
@pytest.mark.parametrize("sign", [1, -1])
def test_sums_narrowed(name: str, valid: tuple[int, int], source: str, result: str, sign: int) -> None:
    """The positive part of a sum, to nearest even, clamped: 126.5 to 126, 127.5 and more to 127, 70000 to 65504."""
    a, b = (wide(letter, source, valid, number) for number, letter in enumerate("ab"))
    d = wide("d", result, valid, 2)
    rng = np.random.default_rng(4)
    kind = {"f32": np.float32, "f16": np.float16, "i16": np.int16}[source]
    top = 40000 if source == "f32" else 100
    x, y = (rng.uniform(-top, top, valid).astype(kind) for _ in range(2))
    if source != "i16":
        x, y = (np.round(values * 2) / 2 for values in (x, y))  # halves, which tie
        x, y = x.astype(kind), y.astype(kind)
    before = noise(target(name))
    a.put(before, x)
    b.put(before, y)
    wanted = np.zeros(valid, {"f16": np.float16, "i8": np.int8}[result])
    for place in np.ndindex(*valid):
        total = Fraction(float(x[place])) + sign * Fraction(float(y[place]))
        total = Fraction(nearest(total, kind)) if source != "i16" else total
        total = max(total, Fraction(0))
        wanted[place] = min(round(total), 127) if result == "i8" else min(nearest(total, np.float16), 65504.0)
    text = program(statement("taddreluconv" if sign > 0 else "tsubreluconv", [a, b], d), [a, b, d])
    checked(text, name, before, {d: wanted})


@pytest.mark.parametrize("name", TARGETS)
def test_sums_of_integers_scaled_to_halves(name: str) -> None:
    """(a + b) 2^-17 scale 2^17, each rounded in f32, to f16, its positive part."""
    valid = (7, 61)
    a, b, d = wide("a", "i32", valid, 0), wide("b", "i32", valid, 1), wide("d", "f16", valid, 2)
    rng = np.random.default_rng(5)
    x, y = (rng.integers(-(2**30), 2**30, valid).astype(np.int32) for _ in range(2))
    x[0], y[0] = np.arange(-30, 31), np.arange(-61, 0)
    before = noise(target(name))
    a.put(before, x)
    b.put(before, y)
    wanted = np.zeros(valid, np.float16)
    for place in np.ndindex(*valid):
        total = nearest(Fraction(int(x[place]) + int(y[place])), np.float32)
        scaled = nearest(Fraction(total) / 2**17 * Fraction(3, 8), np.float32)
        wanted[place] = max(0.0, min(65504.0, nearest(Fraction(scaled) * 2**17, np.float16)))
    text = program(statement("tadddeqrelu", [a, b, ("s", "f32")], d), [a, b, d], {"s": ("0.375", "f32")})
    checked(text, name, before, {d: wanted})


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("valid", REGIONS)
@pytest.mark.parametrize("element", ["f32", "f16"])
def test_pairs_of_a_row_are_added(name: str, valid: tuple[int, int], element: str) -> None:
    kind = {"f32": np.float32, "f16": np.float16}[element]
    a = wide("a", element, (valid[0], 2 * valid[1]), 0, cols=512)
    d = wide("d", element, valid, 2)
    x = np.random.default_rng(6).uniform(-9, 9, a.region).astype(kind)
    before = noise(target(name))
    a.put(before, x)
    checked(program(statement("tpairreducesum", [a], d), [a, d]), name, before, {d: x[:, ::2] + x[:, 1::2]})


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("element", ["i8", "i16", "ui32", "f16", "bf16", "f32"])
@pytest.mark.parametrize("valid", [(16, 64), (7, 61), (1, 40), (3, 20)])
def test_elements_by_turns_and_apart(name: str, element: str, valid: tuple[int, int]) -> None:
    a, b, d, e = (wide(letter, element, valid, number) for number, letter in enumerate("abde"))
    before = noise(target(name))
    kind = np.dtype(f"<u{a.size}")  # the bits, whatever they stand for
    x, y = (spot.get(before).view(kind).tolist() for spot in (a, b))
    turns = np.array([[one for pair in zip(p, q, strict=True) for one in pair] for p, q in zip(x, y, strict=True)])
    cols = valid[1]
    text = program(two_results("tinterleave", [a, b], (d, e)), [a, b, d, e])
    checked(text, name, before, {d: turns[:, :cols].astype(kind), e: turns[:, cols:].astype(kind)})
    joined = np.array([p + q for p, q in zip(x, y, strict=True)])
    text = program(two_results("tdeinterleave", [a, b], (d, e)), [a, b, d, e])
    checked(text, name, before, {d: joined[:, ::2].astype(kind), e: joined[:, 1::2].astype(kind)})
    d, e = (wide(letter, element, (valid[0], half), at) for letter, half, at in
            (("d", -(-cols // 2), 2), ("e", cols // 2, 3)))  # fmt: skip
    text = program(two_results("tdeinterleave", [a], (d, e)), [a, d, e])
    alone = np.array(x)
    checked(text, name, before, {d: alone[:, ::2].astype(kind), e: alone[:, 1::2].astype(kind)})


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(
    ("element", "valid", "each"),
    [("f32", (2, 128), 8), ("ui16", (7, 100), 16), ("i8", (2, 256), 32), ("f16", (3, 40), 1)],
)
def test_blocks_at_byte_offsets(name: str, element: str, valid: tuple[int, int], each: int) -> None:
    a, d = Spot("a", element, 16, 256, 0), Spot("d", element, 16, 256, 65536, valid)
    count = -(-valid[1] // each)
    o = Spot("o", "ui32", 16, 64, 32768, (valid[0], count))
    rng = np.random.default_rng(7)
    size = a.size * (each if each > 1 else 1)
    offsets = rng.integers(0, (a.end - a.address) // size, o.region) * size
    before = noise(target(name))
    o.put(before, offsets.astype(np.uint32))
    wanted = np.zeros(valid, a.get(before).dtype)
    for row, col in np.ndindex(*valid):
        start = int(offsets[row, col // each]) + col % each * a.size
        wanted[row, col] = np.frombuffer(before[start : start + a.size].tobytes(), wanted.dtype)[0]
    text = program(statement("tgatherb", [a, o], d), [a, o, d])
    bits = wanted.view(f"<u{a.size}")
    assert np.array_equal(d.get(computed(text, target(name), before)).view(bits.dtype), bits)
    o.put(before, np.full(o.region, a.end - a.address, np.uint32))
    with pytest.raises(CastsimError, match=r"offset \(0, 0\) of %o is .*: outside %a, which has"):
        computed(text, target(name), before)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(("element", "index"), [("f32", "i32"), ("f16", "ui16"), ("i16", "i16"), ("i32", "ui32")])
@pytest.mark.parametrize(("one", "two"), [((16, 64), (16, 64)), ((9, 64), (16, 64)), ((16, 64), (16, 40))])
@pytest.mark.parametrize("least", [True, False])
def test_the_better_part_with_its_number(
    name: str, element: str, index: str, one: tuple[int, int], two: tuple[int, int], least: bool
) -> None:
    """Of equal elements the second source's number; where one source alone is valid, that one's."""
    a, i = wide("a", element, one, 0), Spot("i", index, 16, 64, 131072, one)
    b, j = wide("b", element, two, 1), Spot("j", index, 16, 64, 139264, two)
    d, e = wide("d", element, (16, 64), 2), Spot("e", index, 16, 64, 147456, (16, 64))
    before, rng = noise(target(name)), np.random.default_rng(8)
    x, y = (rng.integers(-3, 4, one), rng.integers(-3, 4, two))
    a.put(before, x.astype(a.get(before).dtype))
    b.put(before, y.astype(a.get(before).dtype))
    m, n = i.get(before), j.get(before)
    values, places = np.zeros((16, 64), a.get(before).dtype), np.zeros((16, 64), m.dtype)
    for row, col in np.ndindex(16, 64):
        here, there = row < one[0] and col < one[1], row < two[0] and col < two[1]
        first = here and (not there or (x[row, col] < y[row, col] if least else x[row, col] > y[row, col]))
        values[row, col], places[row, col] = (x[row, col], m[row, col]) if first else (y[row, col], n[row, col])
    mnemonic = "tpartargmin" if least else "tpartargmax"
    text = program(two_results(mnemonic, [a, b, i, j], (d, e)), [a, b, i, j, d, e])
    checked(text, name, before, {d: values, e: places})


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("mnemonic", ["tpartmax", "tpartadd"])
def test_parts_that_leave_a_corner(name: str, mnemonic: str) -> None:
    """The library takes parts of which neither covers the result; what no part reaches stays."""
    a, b, d = Spot("a", "i16", 9, 64, 0), Spot("b", "i16", 16, 48, 4096, (16, 40)), Spot("d", "i16", 16, 64, 8192)
    before = noise(target(name))
    x, y, wanted = a.get(before), b.get(before), d.get(before)
    wanted[:9], wanted[:, :40] = x, y
    wanted[:9, :40] = np.maximum(x[:, :40], y[:9]) if mnemonic == "tpartmax" else x[:, :40] + y[:9]
    text = program(statement(mnemonic, [a, b], d), [a, b, d])
    checked(text, name, before, {d: wanted}, ("library_types", "accept"))
    with pytest.raises(CastsimError, match="valid region"):
        walked(text, target(name))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("element", ["f32", "f16"])
def test_powers_of_floats(name: str, element: str) -> None:
    """Exact powers, and the special cases: negative bases keep the parity of whole exponents, else there is none."""
    pairs = {
        (2.0, 10.0): 1024.0, (-2.0, 3.0): -8.0, (-2.0, 2.0): 4.0, (2.0, -1.0): 0.5, (9.0, 0.5): 3.0,
        (-8.0, 0.5): np.nan, (0.0, 0.0): 1.0, (0.0, 3.0): 0.0, (0.0, -1.0): np.inf, (7.0, 0.0): 1.0,
        (1.0, 9.0): 1.0, (-1.0, 5.0): -1.0,
        (1.5, 2.0): 2.25, (4.0, 1.5): 8.0, (np.inf, -1.0): 0.0,
    }  # fmt: skip
    kind = {"f32": np.float32, "f16": np.float16}[element]
    valid = (1, len(pairs))
    a, b, d = (wide(letter, element, valid, number) for number, letter in enumerate("abd"))
    before = noise(target(name))
    a.put(before, np.array([[one for one, _ in pairs]], kind))
    b.put(before, np.array([[two for _, two in pairs]], kind))
    wanted = np.array([list(pairs.values())], kind)
    if element == "f16" and name == "a5":  # results of f16 clamp there, and NaN becomes 0
        wanted = np.nan_to_num(wanted, nan=0, posinf=65504)
    checked(program(statement("tpow", [a, b], d), [a, b, d]), name, before, {d: wanted})
    text = program(statement("tpows", [a, ("s", element)], d), [a, d], {"s": ("2.0", element)})
    found = d.get(computed(text, target(name), before))[0, 0]
    assert found == 4.0


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("element", ["i8", "i16", "i32", "ui32"])
def test_powers_of_integers(name: str, element: str) -> None:
    """Low bits of the product; a negative exponent gives the quotient of 1, truncated."""
    bits = int(element.lstrip("ui"))
    pairs = [(3, 4), (-2, 3), (2, bits - 1), (7, 30), (0, 0), (1, -4), (-1, -3), (5, -1), (10, 1), (-1, 6)]
    if element[0] == "u":
        pairs = [(abs(one), abs(two)) for one, two in pairs]
    a, b, d = (wide(letter, element, (1, len(pairs)), number) for number, letter in enumerate("abd"))
    before = noise(target(name))
    kind = a.get(before).dtype
    for place, spot in enumerate((a, b)):
        spot.put(before, np.array([[pair[place] for pair in pairs]], kind))
    exact = [int(Fraction(one) ** two) if one or two >= 0 else 0 for one, two in pairs]
    wanted = np.array([[one % (1 << bits) for one in exact]], np.uint64).astype(f"<u{bits // 8}").view(kind)
    checked(program(statement("tpow", [a, b], d), [a, b, d]), name, before, {d: wanted})


@pytest.mark.parametrize("name", TARGETS)
def test_a_scalar_everywhere_in_columns(name: str) -> None:
    for element, rows, cols, valid in (("f32", 64, 8, (61, 7)), ("i16", 64, 1, None), ("bf16", 32, 3, (30, 3))):
        d = Spot("d", element, rows, cols, 4096, valid, column=True)
        before = noise(target(name))
        text = program(
            statement("texpands", [("s", element)], d),
            [d],
            {"s": ("3", element) if element == "i16" else ("3.0", element)},
        )
        checked(text, name, before, {d: np.full(d.region, 3).astype(d.get(before).dtype)})


A, B, T = Spot("a", "f32", 16, 64, 0), Spot("b", "f32", 16, 64, 8192), Spot("t", "f32", 16, 64, 16384)
HALF, NUMBERS, SHORT = (
    Spot("h", "f16", 16, 64, 24576),
    Spot("i", "i32", 16, 64, 32768),
    Spot("o", "f32", 16, 64, 40960, (16, 60)),
)


@pytest.mark.parametrize(
    ("operation", "spots", "message"),
    [
        (statement("taddreluconv", [A, B], T), [A, B, T], "narrows f32 to f16: %t holds f32"),
        (two_results("tinterleave", [A, B], (T, SHORT)), [A, B, T, SHORT], "128 valid columns of the sources"),
        (two_results("tinterleave", [A, B], (T, HALF)), [A, B, T, HALF], "single element type: %h is f16, not f32"),
        (two_results("tdeinterleave", [A], (T, B)), [A, T, B], "64 valid columns of the sources do not make"),
        (statement("tinterleave", [A, B], T), [A, B, T], "writes two tiles"),
        (two_results("tpartargmin", [A, B, HALF, HALF], (T, HALF)), [A, B, T, HALF], "integer type: %h holds f16"),
        (statement("tgatherb", [A, B], T), [A, B, T], "takes numbers from a tile of 32-bit integers, %b holds f32"),
        (statement("tpairreducesum", [A], T), [A, T], "valid region of %a is 16 x 64, of %t 16 x 64"),
        (statement("tpow", [A, NUMBERS], T), [A, NUMBERS, T], "needs a single element type: %i is i32, not f32"),
        (two_results("tinterleave", [A, B], (T, T)), [A, B, T], "share bytes"),
        (statement("tfusedmuladd", [HALF, HALF], T), [HALF, T], "single element type: %t is f32, not f16"),
    ],
)  # fmt: skip
def test_operands_that_do_not_fit(operation: str, spots: list[Spot], message: str) -> None:
    for name in TARGETS:
        with pytest.raises(CastsimError, match=message):
            walked(program(operation, spots), target(name))
