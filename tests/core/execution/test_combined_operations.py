"""Operations that rearrange or combine tiles, against NumPy and plain Python: values, cycles, refusals.

Sources: docs/reference/pto.md section 7.7; cycles are the published ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from kit.paths import VECTORS
from kit.strided_works import TARGET, cycles, tile, work
from kit.work_programs import (
    NATIVE,
    Spot,
    computed,
    expect,
    noise,
    program,
    ran,
    statement,
    synchronised,
    target,
    walked,
)

from castsim import run
from castsim.isa.errors import CastsimError
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.running.synchronisation.race_detector import find_races
from castsim.running.synchronisation.race_findings import RaceKind
from castsim.tools.estimate.operation_estimates import estimate_tile_operation

TARGETS = ("a2a3", "a5")


KERNEL = VECTORS / "pto_own" / "top_k.pto"


@pytest.mark.parametrize("name", ["a2a3", "a5"])
@pytest.mark.parametrize("seed", range(4))
def test_the_greatest_and_where_they_stand(name: str, seed: int) -> None:
    """Many equal numbers among them: of those the earlier stand first."""
    rng = np.random.default_rng(seed)
    given = rng.standard_normal((1, 1024)).astype("<f4")
    if seed % 2:
        given = rng.integers(-20, 20, (1, 1024)).astype("<f4")
        given[0, rng.integers(0, 1024, 5)] = -np.inf
    result = run(KERNEL, name, inputs={"in": given})
    order = sorted(range(1024), key=lambda place: (-float(given[0, place]), place))[:64]
    assert result.outputs["places"].view("<i4").reshape(-1).tolist() == order
    assert np.array_equal(result.outputs["values"].view("<f4").reshape(-1), given[0, order])
    assert not result.races
    assert result.cycles == run(KERNEL, name, inputs={"in": given}, engine="event").cycles


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


MOVED = ("i8", "i16", "i32", "f16", "bf16", "f32")
S = ("s", "i32")


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("element", ["i32", "i16"])
@pytest.mark.parametrize("cols", [8, 63, 64, 200])
@pytest.mark.parametrize("tmp", [False, True])
@pytest.mark.parametrize("down", [False, True])
def test_ramps(name: str, element: str, cols: int, tmp: bool, down: bool) -> None:
    start = 32760 if element == "i16" else 2**31 - 5
    d, t = Spot("d", element, 1, 256, 0, (1, cols)), Spot("t", "f32", 1, 448, 2048)
    ins = [("s", element), *([t] if tmp else [])]
    text = program(
        statement("tci", ins, d) + (" {descending = true}" if down else ""), [d, t], {"s": (str(start), element)}
    )
    values = [start - j if down else start + j for j in range(cols)]
    if down and tmp and name == "a2a3":
        values = [-(start + j) for j in range(cols)]
        assert any("negates" in str(warning) for warning in walked(text, target(name)).warnings)
    bits = 8 * d.size
    wrapped = [(value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1) for value in values]
    expect(text, name, noise(target(name)), d, np.array([wrapped], NATIVE[element]))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(("element", "width"), [("f32", 32), ("i32", 32), ("f16", 32), ("i16", 32)])
@pytest.mark.parametrize("shape", [(1, 16), (16, 64), (5, 208)])
def test_gathers(name: str, element: str, width: int, shape: tuple[int, int]) -> None:
    """Numbers count over the physical storage of the source."""
    rows, cols = shape
    s = Spot("s", element, 17, 48, 0)
    i, t = Spot("i", f"i{width}", rows, cols, 8192), Spot("t", f"i{width}", rows, cols, 40960)
    d = Spot("d", element, rows, cols, 65536)
    before, chosen = noise(target(name)), np.random.default_rng(rows).integers(0, 17 * 48, shape).astype("<i4")
    i.put(before, chosen)
    text = program(statement("tgather", [s, i, t], d), [s, i, t, d])
    expect(text, name, before, d, s.get(before, 17, 48).reshape(-1)[chosen])


@pytest.mark.parametrize(("element", "width"), [("i8", 16), ("bf16", 16), ("f16", 16)])
def test_gathers_by_short_numbers(element: str, width: int) -> None:
    s, i, d = Spot("s", element, 16, 64, 0), Spot("i", f"i{width}", 4, 64, 8192), Spot("d", element, 4, 64, 16384)
    before, chosen = noise(target("a5")), np.random.default_rng(1).integers(0, 1024, (4, 64)).astype("<i2")
    i.put(before, chosen)
    expect(program(statement("tgather", [s, i], d), [s, i, d]), "a5", before, d, s.get(before).reshape(-1)[chosen])


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("number", [-1, 64, 2**31 - 1])
def test_a_number_outside_the_tile_is_refused_where_it_is_used(name: str, number: int) -> None:
    s, i, t, d = (
        Spot(n, k, 1, 64, at)
        for n, k, at in zip("sitd", ("f32", "i32", "i32", "f32"), range(0, 4096, 1024), strict=True)
    )
    before, chosen = noise(target(name)), np.zeros((1, 64), "<i4")
    chosen[0, 7] = number
    i.put(before, chosen)
    with pytest.raises(
        CastsimError, match=rf"element \(0, 7\) of %i is {number}, but %s has elements 0 .. 63"
    ) as caught:
        computed(program(statement("tgather", [s, i, t], d), [s, i, t, d]), target(name), before)
    assert caught.value.span is not None


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("element", MOVED)
@pytest.mark.parametrize("valid", [(32, 32), (32, 64), (64, 32), (10, 33), (33, 7), (1, 64)])
def test_transpositions(name: str, element: str, valid: tuple[int, int]) -> None:
    s, t = Spot("s", element, 64, 64, 0, valid), Spot("t", element, 64, 64, 16384)
    d = Spot("d", element, 64, 64, 32768, (1, 1))
    before = noise(target(name))
    text = program(statement("ttrans", [s, t], d), [s, t, d])
    found, wanted = ran(text, name, before), before.copy()
    d.put(wanted, s.get(before).T)
    if name == "a2a3":  # up to the next block behind each row nothing is claimed
        length = -(-valid[0] * d.size // 32) * 32
        for row in range(valid[1]):
            start = d.place(row, valid[0])
            found[start : d.place(row, 0) + length] = wanted[start : d.place(row, 0) + length]
        whole = valid[0] * d.size % 32 == 0
        warned = any("whole blocks" in str(warning) for warning in walked(text, target(name)).warnings)
        assert warned != whole
    assert np.array_equal(found, wanted)


def test_a_transposition_in_place_goes_through_tmp() -> None:
    s, t = Spot("s", "f32", 16, 16, 0), Spot("t", "f32", 16, 16, 4096)
    before = noise(target("a2a3"))
    expect(program(statement("ttrans", [s, t], s), [s, t]), "a2a3", before, s, s.get(before).T)
    with pytest.raises(CastsimError, match="cannot run in place"):
        walked(program(statement("ttrans", [s, t], s), [s, t]), target("a5"))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("element", MOVED)
@pytest.mark.parametrize("widths", [(64, 64), (32, 20), (37, 5), (1, 31), (0, 40), (40, 0)])
def test_concatenations(name: str, element: str, widths: tuple[int, int]) -> None:
    """On A2/A3 whole blocks: behind the last column the bytes of the second source, if that begins at a block."""
    one, two = Spot("a", element, 7, 64, 0, (5, widths[0])), Spot("b", element, 6, 64, 8192, (5, widths[1]))
    d = Spot("d", element, 8, 192, 16384, (5, sum(widths)))
    before = noise(target(name))
    values = np.concatenate([one.get(before), two.get(before)], axis=1)
    text = program(statement("tconcat", [one, two], d), [one, two, d])
    found, wanted = ran(text, name, before), before.copy()
    block = 32 // d.size
    if name == "a2a3":
        wide = -(-widths[0] // block) * block
        d.put(wanted, one.get(before, 5, wide))
        if widths[0] % block == 0:
            wide = -(-widths[1] // block) * block
            Spot("e", element, 8, 192, d.address + widths[0] * d.size).put(wanted, two.get(before, 5, wide))
    d.put(wanted, values)
    assert np.array_equal(found, wanted)


def test_cycles_of_gathers_are_the_measured_ones() -> None:
    """46.6 cycles for each further row of f32, measured on 910B3."""

    def rows(count: int) -> int:
        spots = [tile(e, count, 64, at) for e, at in (("f32", 0), ("f32", 65536), ("i32", 131072), ("i32", 163840))]
        dst, src, places, tmp = spots
        return cycles(TARGET, work("tgather", dst, src, places, tmp=tmp))

    assert (rows(33) - rows(1)) / 32 == pytest.approx(46.6, abs=0.5)


def test_cycles_of_a_transposition_are_near_the_measured_ones() -> None:
    """501 cycles measured for 128 x 128 of f32."""
    transposition = work(
        "ttrans", tile("f32", 128, 128, 65536), tile("f32", 128, 128, 0), tmp=tile("f32", 128, 128, 131072)
    )
    assert cycles(TARGET, transposition) == pytest.approx(501, rel=0.05)


@pytest.mark.parametrize("name", TARGETS)
def test_a_ramp_without_tmp_is_work_of_the_scalar_unit(name: str) -> None:
    """A store and a turnaround per element; a reader on the vector pipe has to wait."""
    d, x = Spot("d", "i32", 1, 64, 0), Spot("x", "i32", 1, 64, 1024)
    text = program("\n".join([statement("tci", [S], d), statement("tadd", [d, d], x)]), [d, x], {"s": ("0", "i32")})
    tree = walked(text, target(name)).tree
    assert [each.pipe for each in tree.instructions if each.mnemonic in ("tci", "tadd")] == ["S", "V"]
    inserted = synchronised(text, target(name)).tree
    assert {"set_flag S -> V id 0", "wait_flag S -> V id 0"} <= {each.text for each in inserted.instructions}
    assert not [finding for finding in find_races(inserted, target(name)) if finding.kind is not RaceKind.UNWRITTEN]
    assert VECTOR_OPERATIONS["tci"].scalar_unit
    short, long = (estimate_tile_operation("tci", "i32", 1, cols, target=name).cycles for cols in (64, 128))
    assert long - short == 2 * 64


def test_a_race_with_the_scalar_unit_is_found() -> None:
    """A program with flags of its own that forgets the one from S to V."""
    d, x = Spot("d", "i32", 1, 64, 0), Spot("x", "i32", 1, 64, 1024)
    event = "[#pto.pipe<PIPE_S>, #pto.pipe<PIPE_V>, #pto.event<EVENT_ID0>]"
    for flags, races in (("", 1), (f"pto.set_flag{event}\npto.wait_flag{event}", 0)):
        body = "\n".join(
            [statement("tci", [S], d), flags, statement("tadd", [d, d], x), "pto.barrier #pto.pipe<PIPE_ALL>"]
        )
        tree = walked(program(body, [d, x], {"s": ("0", "i32")}), target("a5")).tree
        assert len(find_races(tree, target("a5"))) == races


F, G = Spot("f", "f32", 8, 64, 0), Spot("g", "f32", 8, 32, 4096)
N, H = Spot("i", "i32", 8, 64, 8192), Spot("h", "i16", 8, 64, 16384)
D, R = Spot("d", "f32", 8, 64, 24576), Spot("r", "i32", 1, 64, 32768)
C = Spot("c", "f32", 8, 64, 36864, (8, 60))
EVERY = [F, G, N, H, D, R, C]


@pytest.mark.parametrize(
    ("operation", "name", "message"),
    [
        (statement("tci", [S], N), "a2a3", "must have one row of more than one element, not 8 x 64"),
        (statement("tci", [("v", "i16")], R), "a5", "the scalar is i16, not i32"),
        (statement("tci", [("x", "f32")], Spot("f", "f32", 8, 64, 0)), "a5", "does not take f32"),
        (statement("tci", [S, Spot("h", "i16", 8, 64, 16384)], R), "a2a3", "its elements of 32 bits"),
        (statement("tci", [S, R], Spot("r", "i32", 1, 64, 32768)), "a2a3", "has 256 bytes, tci needs 768"),
        (statement("tci", [S], R) + " {descending = 1 : i32}", "a5", "descending must be true or false"),
        (statement("tadd", [F, F], D) + " {descending = true}", "a5", "no attribute 'descending'"),
        (statement("tgather", [F, N], D), "a2a3", "needs a tmp tile of the type and valid region of %i"),
        (statement("tgather", [F, H, H], D), "a2a3", "%h holds i16"),
        (statement("tgather", [F, H], D), "a5", "%h holds i16"),
        (statement("tgather", [F, N, F], D), "a2a3", "tmp tile of the type and valid region"),
        (statement("tgather", [F, N, N], C), "a2a3", "all columns of %c must be valid, 60 of 64"),
        (statement("tgather", [D, N], D), "a5", "cannot run in place"),
        (statement("tgather", [F, R], D), "a5", "valid region of %r is 1 x 64"),
        (statement("ttrans", [F], G), "a5", "become 64 x 8, %g has 8 x 32"),
        (statement("ttrans", [N], D), "a5", "%d is f32, not i32"),
        (statement("tconcat", [F, F], D), "a2a3", "64 and 64 columns of %f and %f do not fit into the 64 of %d"),
        (statement("tconcat", [G, Spot("g", "f32", 8, 32, 4096)], C), "a5", "do not make the 60 of %c"),
        (statement("tconcat", [G, R], D), "a5", "%r is i32"),
        (statement("tpartmax", [F, Spot("d", "f32", 8, 64, 24576)], N), "a5", "is i32"),
    ],
)  # fmt: skip
def test_refusals(operation: str, name: str, message: str) -> None:
    scalars = {"s": ("0", "i32"), "v": ("0", "i16"), "x": ("0.0", "f32")}
    with pytest.raises(CastsimError) as caught:
        walked(program(operation, EVERY, scalars), target(name))
    assert message in str(caught.value), caught.value
    assert caught.value.span is not None


def test_the_option_of_ramps() -> None:
    fast = target("a5", ("ramp_without_tmp", "vector"))
    assert estimate_tile_operation("tci", "i32", 1, 1024, target=fast) == estimate_tile_operation(
        "tci", "i32", 1, 1024, target="a5", scratch=True
    )


OWN = VECTORS / "pto_own"


@pytest.mark.parametrize("name", TARGETS)
def test_a_kernel_that_reverses_a_row(name: str) -> None:
    """out[j] = f16(in[63 - j]), by descending numbers."""
    given = np.random.default_rng(7).standard_normal((1, 64)).astype("<f4")
    result = run(OWN / "gather_pairs.pto", name, inputs={"in": given})
    assert np.array_equal(result.outputs["out"].view("<f2").reshape(-1), given[0, ::-1].astype("<f2"))
    assert result.cycles > 0


def test_a_kernel_that_joins_transposed_tiles() -> None:
    given = np.random.default_rng(8).standard_normal((16, 8)).astype("<f4")
    result = run(OWN / "transpose_concat.pto", inputs={"in": given})
    found = result.outputs["out"].view("<f4").reshape(8, 32)
    assert np.array_equal(found, np.concatenate([given.T, given.T], axis=1))
