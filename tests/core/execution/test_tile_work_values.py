"""Every vector operation, element type and target against the formulas: whole buffers, partial regions included."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import oracle
import pytest
from kit.work_model import NAN, TARGETS, TYPES, Model, special
from kit.work_programs import NATIVE, Spot, computed, expect, noise, program, statement, target, walked

from castsim.isa.errors import CastsimError
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind

SHAPE, VALID = (5, 320), (4, 270)  # two pieces of 16-bit elements per row and a rest of 14; five of 32-bit ones


def cases(*kinds: Kind) -> Iterator[tuple[str, str, str]]:
    for mnemonic, types in TYPES.items():
        if VECTOR_OPERATIONS[mnemonic].kind in kinds:
            for name, listed in zip(TARGETS, types, strict=True):
                yield from ((mnemonic, element, name) for element in listed.split())


def literal(value: np.ndarray) -> str:
    if value.dtype.kind in "iu":
        return str(int(value))
    return hex(int(np.ascontiguousarray(value.reshape(1)).view(f"<u{value.dtype.itemsize}")[0]))


def filled(spots: dict[Spot, np.ndarray], name: str) -> np.ndarray:
    buffer = noise(target(name))
    for spot, values in spots.items():
        spot.put(buffer, values)
    return buffer


def check(text: str, name: str, before: np.ndarray, written: dict[Spot, np.ndarray]) -> None:
    """Everything that a program writes, and that it writes nothing else."""
    expected = before.copy()
    for spot, values in written.items():
        spot.put(expected, values)
    found = computed(text, target(name), before)
    wrong = np.flatnonzero(found != expected)
    assert not wrong.size, f"bytes {wrong[:10]}: {found[wrong[:10]]}, not {expected[wrong[:10]]}"


def three(element: str) -> tuple[Spot, Spot, Spot]:
    return (
        Spot("a", element, *SHAPE, 0, VALID),
        Spot("b", element, SHAPE[0], SHAPE[1] + 32, 8192, VALID),
        Spot("d", element, SHAPE[0] + 1, SHAPE[1], 20480, VALID),
    )


@pytest.mark.parametrize(("mnemonic", "element", "name"), [c for c in cases(Kind.ELEMENTWISE) if "sel" not in c[0]])
def test_elementwise(mnemonic: str, element: str, name: str) -> None:
    a, b, d = three(element)
    operation, model = VECTOR_OPERATIONS[mnemonic], Model(element, name)
    x, y = special(element, VALID, 1), special(element, VALID, 2)
    with np.errstate(all="ignore"):
        if mnemonic == "tdivs" and name == "a2a3" and not model.is_float:
            return  # its route through floats has a test of its own
        if "as" in map("".join, operation.forms):
            s = special(element, (40,), 3)
            for value in (s[0], s[1], s[2]):
                text = program(statement(mnemonic, [a, ("s", element)], d), [a, d], {"s": (literal(value), element)})
                expected = model.function(operation.function)(x, value.reshape(1, 1))
                check(text, name, filled({a: x}, name), {d: expected})
            return
        spots = [a, b][: len([role for role in operation.forms[0] if role == "a"])]
        text = program(statement(mnemonic, spots, d), [*spots, d])
        expected = model.function(operation.function)(*(x, y)[: len(spots)])
        check(text, name, filled(dict(zip(spots, (x, y), strict=False)), name), {d: expected})


@pytest.mark.parametrize(("mnemonic", "element", "name"), list(cases(Kind.PART)))
@pytest.mark.parametrize("smaller", [VALID, (2, 270), (4, 33), (3, 1), (0, 270)])
@pytest.mark.parametrize("swapped", [False, True])
def test_in_part(mnemonic: str, element: str, name: str, smaller: tuple[int, int], swapped: bool) -> None:
    """The function where both tiles are valid, the larger one elsewhere."""
    a, d = three(element)[0], three(element)[2]
    b = Spot("b", element, SHAPE[0], SHAPE[1] + 32, 8192, smaller)
    x, y = special(element, VALID, 1), special(element, VALID, 2)
    rows, cols = smaller
    part = (x[:rows, :cols], y[:rows, :cols])
    expected = x.copy()
    with np.errstate(all="ignore"):
        function = Model(element, name).function(VECTOR_OPERATIONS[mnemonic].function)
        expected[:rows, :cols] = function(*(part[::-1] if swapped else part))
    sources = [b, a] if swapped else [a, b]
    text = program(statement(mnemonic, sources, d), [a, b, d])
    check(text, name, filled({a: x, b: y[:rows, :cols]}, name), {d: expected})


@pytest.mark.parametrize(("mnemonic", "element", "name"), list(cases(Kind.BROADCAST)))
def test_a_scalar_everywhere(mnemonic: str, element: str, name: str) -> None:
    d = three(element)[2]
    value = special(element, (40,), 3)[0]
    text = program(statement(mnemonic, [("s", element)], d), [d], {"s": (literal(value), element)})
    check(text, name, noise(target(name)), {d: np.full(VALID, value)})


@pytest.mark.parametrize(("mnemonic", "element", "name"), list(cases(Kind.ROW_REDUCE)))
@pytest.mark.parametrize("column", [True, False])
def test_row_reductions(mnemonic: str, element: str, name: str, column: bool) -> None:
    model = Model(element, name)
    size = model.dtype.itemsize
    a = Spot("a", element, *SHAPE, 0, VALID)
    t = Spot("t", element, *SHAPE, 65536, VALID)
    d = Spot("d", element, 32, 1, 8192, (VALID[0], 1), column=True)
    if not column:
        d = Spot("d", element, 6, 64 // size, 8192, (VALID[0], 1))
    x = special(element, VALID, 4)
    x[1:] = np.where(np.isfinite(x[1:].astype(np.float64)), x[1:], model.one(2))
    with np.errstate(all="ignore"):
        expected = model.row_reduction(VECTOR_OPERATIONS[mnemonic].function, x)[:, None]
    check(program(statement(mnemonic, [a, t], d), [a, t, d]), name, filled({a: x}, name), {d: expected})


@pytest.mark.parametrize(("mnemonic", "element", "name"), list(cases(Kind.COLUMN_REDUCE)))
def test_column_reductions(mnemonic: str, element: str, name: str) -> None:
    a, _, _ = three(element)
    d = Spot("d", element, 2, SHAPE[1], 20480, (1, VALID[1]))
    x, model = special(element, VALID, 5), Model(element, name)
    with np.errstate(all="ignore"):
        expected = model.column_reduction(VECTOR_OPERATIONS[mnemonic].function, x)[None, :]
    check(program(statement(mnemonic, [a], d), [a, d]), name, filled({a: x}, name), {d: expected})


@pytest.mark.parametrize(("element", "name"), [(e, n) for m, e, n in cases(Kind.COLUMN_REDUCE) if m == "tcolsum"])
@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_column_sums_by_pairs(element: str, name: str, rows: int) -> None:
    valid = (rows, 100)
    a = Spot("a", element, 8, 128, 0, valid)
    t, d = Spot("t", element, 4, 128, 8192), Spot("d", element, 1, 128, 16384, (1, 100))
    x, model = special(element, valid, 6), Model(element, name)
    left, scratch = list(x), {}
    with np.errstate(all="ignore"):
        while len(left) > 1:
            odd = left.pop() if len(left) % 2 else None
            left = [model.function("add")(left[i], left[i + 1]) for i in range(0, len(left), 2)]
            if odd is not None:
                left[0] = model.function("add")(left[0], odd)
            scratch |= dict(enumerate(left))
    text = program(statement("tcolsum", [a, t], d, "{isBinary = true}"), [a, t, d])
    before = filled({a: x}, name)
    sums = {Spot(f"t{i}", element, 1, 128, t.address + i * 128 * t.size): row[None, :] for i, row in scratch.items()}
    check(text, name, before, {d: left[0][None, :], **sums})
    with np.errstate(all="ignore"):
        in_order = model.column_reduction("add", x)[None, :]
    text = program(statement("tcolsum", [a, t], d, "{isBinary = false}"), [a, t, d])
    check(text, name, before, {d: in_order})


@pytest.mark.parametrize(("mnemonic", "element", "name"), list(cases(Kind.ROW_EXPAND, Kind.COLUMN_EXPAND)))
def test_expansions(mnemonic: str, element: str, name: str) -> None:
    _, _, d = three(element)
    x = special(element, VALID, 7)
    if mnemonic == "trowexpand":
        a = Spot("a", element, 8, 32, 0, (VALID[0], 3))
        expected = np.repeat(x[:, :1], VALID[1], axis=1)
    else:
        a = Spot("a", element, 2, SHAPE[1], 0, (1, VALID[1]))
        expected = np.repeat(x[:1], VALID[0], axis=0)
    values = x[: a.region[0], : a.region[1]]
    check(program(statement(mnemonic, [a], d), [a, d]), name, filled({a: values}, name), {d: expected})


@pytest.mark.parametrize(("mnemonic", "element", "name"), list(cases(Kind.ROW_BROADCAST)))
@pytest.mark.parametrize("form", ["column", "block", "column first", "block first"])
def test_row_broadcasts(mnemonic: str, element: str, name: str, form: str) -> None:
    a, _, d = three(element)
    block = 32 // a.size
    v = Spot("v", element, 32, 1, 8192, (VALID[0], 1), column=True)
    if "block" in form:
        v = Spot("v", element, 6, block, 8192, (VALID[0], block))
    x, w = special(element, VALID, 8), special(element, v.region, 9)
    each = w if v.column else w[:, np.arange(VALID[1]) % block]
    operands, values = ([v, a], (each, x)) if "first" in form else ([a, v], (x, each))
    with np.errstate(all="ignore"):
        expected = Model(element, name).function(VECTOR_OPERATIONS[mnemonic].function)(*values)
    check(program(statement(mnemonic, operands, d), [a, v, d]), name, filled({a: x, v: w}, name), {d: expected})


@pytest.mark.parametrize(("mnemonic", "element", "name"), list(cases(Kind.COLUMN_BROADCAST)))
def test_column_broadcasts(mnemonic: str, element: str, name: str) -> None:
    a, _, _ = three(element)
    d = Spot("d", element, *SHAPE, 20480, VALID)
    v = Spot("v", element, 2, SHAPE[1], 40960, (2, VALID[1]))
    x, w = special(element, VALID, 10), special(element, v.region, 11)
    with np.errstate(all="ignore"):
        expected = Model(element, name).function(VECTOR_OPERATIONS[mnemonic].function)(x, w[:1])
    check(program(statement(mnemonic, [a, v], d), [a, v, d]), name, filled({a: x, v: w}, name), {d: expected})


# ------------ remainders, shifts, taxpy, exponentials, logarithms and roots against exact arithmetic; unstated points
EXACT_VALID = (3, 70)


def codes(values: np.ndarray | np.generic) -> np.ndarray:
    return np.asarray(values).view(f"<u{values.dtype.itemsize}")


def rounded(exact: Fraction, element: str) -> np.generic:
    """The nearest number, ties to the even code; found between the neighbours of NumPy's guess."""
    dtype = NATIVE[element]
    guess = np.array(float(exact)).astype(dtype)[()]
    near = [np.nextafter(guess, dtype.type(-np.inf)), guess, np.nextafter(guess, dtype.type(np.inf))]
    finite = [number for number in near if np.isfinite(number)]
    return min(finite, key=lambda number: (abs(Fraction(float(number)) - exact), codes(number) & 1))


def found(mnemonic: str, name: str, values: dict[Spot, np.ndarray], d: Spot, *options: tuple[str, str]) -> np.ndarray:
    chip = target(name, *options)
    buffer = noise(chip)
    for spot, given in values.items():
        spot.put(buffer, given)
    return d.get(computed(program(statement(mnemonic, list(values), d), [*values, d]), chip, buffer))


def spots(element: str) -> tuple[Spot, Spot, Spot]:
    one, two, three = (Spot(n, element, 3, 128, at, EXACT_VALID) for n, at in (("a", 0), ("b", 4096), ("d", 8192)))
    return one, two, three


@pytest.mark.parametrize("name", TARGETS)
def test_remainders_of_small_integers_are_exact(name: str) -> None:
    """Below 2^24 no step rounds: the sign is that of the divisor, of tfmod that of the dividend."""
    rng = np.random.default_rng(5)
    a, b, d = spots("i32")
    x, y = rng.integers(-(2**12), 2**12, EXACT_VALID, dtype="<i4"), rng.integers(1, 99, EXACT_VALID, dtype="<i4")
    y *= rng.choice(np.array([-1, 1], "<i4"), EXACT_VALID)
    pairs = list(zip(x.ravel().tolist(), y.ravel().tolist(), strict=True))
    assert found("trem", name, {a: x, b: y}, d).ravel().tolist() == [p % q for p, q in pairs]
    assert found("tfmod", name, {a: x, b: y}, d).ravel().tolist() == [int(math.fmod(p, q)) for p, q in pairs]


@pytest.mark.parametrize("name", TARGETS)
def test_options_of_what_no_source_states(name: str) -> None:
    a, b, d = spots("i32")
    x, y = np.full(EXACT_VALID, 7, "<i4"), np.zeros(EXACT_VALID, "<i4")
    assert (found("trem", name, {a: x, b: y}, d) == 0).all()
    assert (found("trem", name, {a: x, b: y}, d, ("remainder_by_zero", "dividend")) == 7).all()
    y[:] = 33
    assert (found("tshl", name, {a: x, b: y}, d) == 0).all()
    assert (found("tshl", name, {a: x, b: y}, d, ("shift_beyond_width", "modulo")) == 14).all()
    assert (found("tshr", name, {a: -x, b: y}, d) == -1).all()


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("element", ["f16", "f32"])
@pytest.mark.parametrize("rounding", ["once", "twice"])
def test_axpy_adds_to_what_is_there(name: str, element: str, rounding: str) -> None:
    """One rounding of the exact sum, by fractions; or two, in NumPy's own arithmetic."""
    kind, chip = NATIVE[element], target(name, ("axpy_rounding", rounding))
    a, _, d = spots(element)
    x, before = special(element, EXACT_VALID, 1), special(element, EXACT_VALID, 2)
    x[0, :8], before[0, :8] = kind.type(1 + 2.0**-10), -kind.type(1.25)
    s = kind.type(1.25 + 2.0**-9)
    buffer = noise(chip)
    a.put(buffer, x)
    d.put(buffer, before)
    text = program(statement("taxpy", [a, ("s", element)], d), [a, d], {"s": (hex(codes(s)), element)})
    result = d.get(computed(text, chip, buffer))
    with np.errstate(all="ignore"):
        rough = before + x * s
    for got, twice, u, v in zip(result.flat, rough.flat, x.flat, before.flat, strict=True):
        if not np.isfinite(twice):
            clamps = name == "a5" and element == "f16"
            limit = np.finfo(kind).max
            expected = (0 if np.isnan(twice) else math.copysign(limit, twice)) if clamps else twice
            assert float(got) == expected or (np.isnan(got) and np.isnan(expected))
            if np.isnan(got):
                assert codes(got) == NAN[element]
        elif rounding == "twice":
            assert got == twice
        else:
            assert got == rounded(Fraction(float(u)) * Fraction(float(s)) + Fraction(float(v)), element), (u, v)


# --------------------------------------------------------------------- against 50-digit decimals, rounded by fractions
FUNCTIONS: dict[str, tuple[Callable[[Decimal], Decimal], float, float]] = {
    "texp": (lambda x: x.exp(), -20.0, 11.0),
    "tlog": (lambda x: x.ln(), 1e-3, 6e4),
    "tsqrt": (lambda x: x.sqrt(), 1e-3, 6e4),
    "trsqrt": (lambda x: 1 / x.sqrt(), 1e-3, 6e4),
}


# A5 rounds the root and the quotient of trsqrt: that is among the formulas.
CASES = [(m, name) for m in FUNCTIONS for name in ("a2a3", "a5") if (m, name) != ("trsqrt", "a5")]


@pytest.mark.parametrize(("mnemonic", "name"), CASES)
@pytest.mark.parametrize("element", ["f16", "f32"])
def test_values_are_rounded_once(mnemonic: str, element: str, name: str) -> None:
    function, low, high = FUNCTIONS[mnemonic]
    rng = np.random.default_rng(3)
    x = np.exp(rng.uniform(np.log(low), np.log(high), 256)) if low > 0 else rng.uniform(low, high, 256)
    x = x.astype(NATIVE[element]).reshape(2, 128)
    a, d = Spot("a", element, 2, 128, 0), Spot("d", element, 2, 128, 4096)
    before = noise(target(name))
    a.put(before, x)
    found = d.get(computed(program(statement(mnemonic, [a], d), [a, d]), target(name), before))
    with localcontext() as context:
        context.prec = 50
        exact = [Fraction(function(Decimal(float(value)))) for value in x.ravel()]
    assert codes(found).ravel().tolist() == [codes(rounded(value, element)) for value in exact]


def test_the_rounding_of_this_test_is_the_oracles() -> None:
    values = np.random.default_rng(4).uniform(-9, 9, 200)
    right = oracle.cast_array(values.view(np.uint64), "f64", "f16", "rint", "special")
    assert [codes(rounded(Fraction(value), "f16")) for value in values.tolist()] == right.tolist()


# ---- tprint, which changes nothing, and row expansions of dense columns (docs/reference/pto.md sections 7.4 and 7.11)
A, D = Spot("a", "f32", 4, 64, 0), Spot("d", "f32", 4, 64, 4096)
PRINTED = program(f"pto.tprint ins(%a : {A.type})\n" + statement("tabs", [A], D), [A, D])


@pytest.mark.parametrize("name", TARGETS)
def test_a_print_changes_nothing(name: str) -> None:
    before = noise(target(name))
    plain = program(statement("tabs", [A], D), [A, D])
    assert np.array_equal(computed(PRINTED, target(name), before), computed(plain, target(name), before))
    assert any("it prints nothing" in str(warning) for warning in walked(PRINTED, target(name)).warnings)
    parsed = parse(PRINTED, "k.pto")
    assert parse(print_program(parsed), "k.pto") == parsed


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("element", ["i8", "i16", "i32", "f16", "bf16", "f32"])
@pytest.mark.parametrize("shape", [(1, 32), (32, 40), (7, 64), (32, 256)])
def test_expansions_of_dense_columns(name: str, element: str, shape: tuple[int, int]) -> None:
    """Element (i, j) of the result is element i of the column."""
    rows, cols = shape
    c = Spot("c", element, 32, 1, 0, (rows, 1), column=True)
    d = Spot("d", element, rows, 256, 4096, shape)
    before = noise(target(name))
    text = program(statement("trowexpand", [c], d), [c, d])
    expect(text, name, before, d, np.repeat(c.get(before), cols, axis=1))


def test_columns_of_more_than_one_are_refused() -> None:
    c = Spot("c", "f32", 8, 2, 0, column=True)
    d = Spot("d", "f32", 8, 64, 4096)
    with pytest.raises(CastsimError, match="tile %c is column-major"):
        walked(program(statement("trowexpand", [c], d), [c, d]), target("a5"))
