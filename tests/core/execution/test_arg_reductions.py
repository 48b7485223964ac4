"""Arg-reductions, sums of three, widening products, concatenations by counts, gathers that compare."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from kit.strided_works import TARGET, listing, tile, work
from kit.work_model import special
from kit.work_programs import NATIVE, Spot, computed, expect, noise, program, ran, statement, target, walked

from castsim.isa.errors import CastsimError
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program

TARGETS = ("a2a3", "a5")
SHAPES = [(1, 8), (16, 32), (5, 63), (3, 64), (4, 65), (7, 200), (1, 1)]


def first_extreme(values: list[float], greatest: bool, nan: str = "nan") -> int:
    """The place that a search from the left ends with."""
    missing = [bool(np.isnan(value)) for value in values]
    if nan == "nan" and any(missing):
        return missing.index(True)
    best = 0
    for place, value in enumerate(values):
        old = values[best]
        if (nan == "number" and np.isnan(old) and not missing[place]) or (value > old if greatest else value < old):
            best = place
    return best


def places(values: np.ndarray, greatest: bool, nan: str = "nan") -> list[int]:
    return [first_extreme([float(value) for value in row], greatest, nan) for row in values]


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("mnemonic", ["trowargmax", "trowargmin"])
@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize("shape", SHAPES)
def test_places_in_rows(name: str, mnemonic: str, element: str, shape: tuple[int, int]) -> None:
    rows, cols = shape
    a, t = Spot("a", element, rows, 256, 0, shape), Spot("t", element, rows, 256, 16384, shape)
    column = Spot("d", "ui32", 16, 1, 32768, (rows, 1), column=True)
    for seed, d in enumerate([column, Spot("d", "i32", rows, 8, 32768, (rows, 1))]):
        x = special(element, shape, seed)
        if seed:  # many equal ones
            x = np.random.default_rng(cols).integers(-2, 2, shape).astype(NATIVE[element])
        before = noise(target(name))
        a.put(before, x)
        found = np.array(places(x, "max" in mnemonic))[:, None].astype(NATIVE[d.element])
        text = program(statement(mnemonic, [a, t], d), [a, t, d])
        expect(text, name, before, d, found)
        assert not any("equal" in str(w) for w in walked(text, target(name)).warnings)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("mnemonic", ["tcolargmax", "tcolargmin"])
@pytest.mark.parametrize("element", ["f32", "f16", "i32", "i16", "ui16"])
@pytest.mark.parametrize("shape", SHAPES)
def test_places_in_columns(name: str, mnemonic: str, element: str, shape: tuple[int, int]) -> None:
    rows, cols = shape
    a, t = Spot("a", element, rows, 256, 0, shape), Spot("t", element, rows, 256, 16384, shape)
    d = Spot("d", "ui32", 1, 256, 32768, (1, cols))
    for seed in range(2):
        x = special(element.removeprefix("u"), shape, seed).astype(NATIVE[element])
        if seed:
            x = np.random.default_rng(cols).integers(0, 3, shape).astype(NATIVE[element])
        before = noise(target(name))
        a.put(before, x)
        found = np.array([places(x.T, "max" in mnemonic)], "<u4")
        expect(program(statement(mnemonic, [a, t], d), [a, t, d]), name, before, d, found)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("nan", ["number", "nan", "first"])
@pytest.mark.parametrize("greatest", [True, False])
def test_what_nan_is_worth_is_an_option(name: str, nan: str, greatest: bool) -> None:
    n, i = np.nan, np.inf
    x = np.array([[n, 1, 2, n], [3, n, 4, 4], [n, n, n, n], [n, -i, -i, n], [-i, n, n, -i], [i, n, 5, i]], "<f4")
    a, t = Spot("a", "f32", 6, 8, 0, (6, 4)), Spot("t", "f32", 6, 8, 512, (6, 4))
    d = Spot("d", "i32", 6, 8, 1024, (6, 1))
    before = noise(target(name))
    a.put(before, x)
    found = np.array(places(x, greatest, nan))[:, None].astype("<i4")
    text = program(statement("trowargmax" if greatest else "trowargmin", [a, t], d), [a, t, d])
    expect(text, name, before, d, found, ("maximum_of_nan", nan))


def test_rows_of_several_repeats_go_through_two_stages() -> None:
    """Pairs of each repeat, sorted into values and places, the values reduced again; the rest on the scalar unit."""
    short = listing(work("trowargmax", tile("i32", 8, 8, 65536), tile("f32", 8, 64, 0), tmp=tile("f32", 8, 64, 32768)))
    assert [line.split()[0] for line in short] == [
        "vcmax", "barrier", "vreducev2", "setflag", "waitflag", *["scalar"] * 24, "setflag", "waitflag",
    ]  # fmt: skip
    assert short[0].startswith("vcmax x8 [128] @32768+8")
    wide = tile("f32", 8, 192, 0)
    long = listing(work("trowargmin", tile("i32", 8, 8, 65536), wide, tmp=tile("f32", 8, 192, 32768)))
    kinds = [line.split()[0] for line in long]
    assert kinds[:9] == ["vcmin"] * 3 + ["barrier", "vreducev2", "barrier", "vreducev2", "barrier", "mask"]
    assert kinds.count("vcmin") == 4
    assert TARGET.timing.vector["vreducev2"].repeat_cycles == 2  # the profile has 14, which count eight-fold


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("element", ["f32", "f16", "i32", "i16"])
def test_sums_of_three(name: str, element: str) -> None:
    """The first two, then the third, each sum rounded."""
    shape = (5, 70)
    a, b, c, d = (Spot(n, element, 5, 128, at, shape) for n, at in zip("abcd", range(0, 32768, 8192), strict=True))
    x, y, z = (special(element, shape, seed) for seed in range(3))
    before = noise(target(name))
    for spot, values in ((a, x), (b, y), (c, z)):
        spot.put(before, values)
    with np.errstate(all="ignore"):
        wanted = (x + y) + z
    if element == "f16" and name == "a5":  # clamped, and no NaN
        one = (x.astype("<f8") + y.astype("<f8")).astype("<f2")
        one = np.where(np.isnan(one), 0, np.clip(one, -65504, 65504)).astype("<f2")
        with np.errstate(all="ignore"):
            wanted = one + z
        wanted = np.where(np.isnan(wanted), 0, np.clip(wanted, -65504, 65504)).astype("<f2")
    found = d.get(ran(program(statement("taddc", [a, b, c], d), [a, b, c, d]), name, before))
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted)) if element[0] == "f" else found == wanted
    assert same.all()
    in_place = program(statement("taddc", [a, b, c], c), [a, b, c])
    if name == "a2a3":
        with pytest.raises(CastsimError, match="cannot run in place"):
            walked(in_place, target(name))
    else:
        assert np.array_equal(c.get(computed(in_place, target(name), before)).view("<u1"), found.view("<u1"))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("shape", [(16, 16), (3, 70), (1, 64)])
def test_products_of_halves_are_added_to_singles(name: str, shape: tuple[int, int]) -> None:
    """A product of two f16 is a number of f32, so the sum is rounded once, whatever the option says."""
    a, d = Spot("a", "f16", shape[0], 96, 0, shape), Spot("d", "f32", shape[0], 96, 8192, shape)
    rng = np.random.default_rng(5)
    x, y = rng.standard_normal(shape).astype("<f2"), rng.standard_normal(shape).astype("<f4")
    before = noise(target(name))
    a.put(before, x)
    d.put(before, y)
    exact = [Fraction(float(q)) + Fraction(float(p)) * Fraction(3, 8) for p, q in zip(x.flat, y.flat, strict=True)]
    # The exact sum has at most 53 bits here, so that a double holds it.
    wanted = np.array([float(one) for one in exact]).astype("<f4").reshape(shape)
    assert all(Fraction(float(one)) == one for one in exact)
    text = program(statement("taxpy", [a, ("s", "f16")], d), [a, d], {"s": ("0.375", "f16")})
    expect(text, name, before, d, wanted)
    with pytest.raises(CastsimError, match="is f16, not f32"):
        walked(program(statement("taxpy", [d, ("s", "f32")], a), [a, d], {"s": ("0.375", "f32")}), target(name))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("element", ["f32", "f16", "bf16", "i8", "i16", "i32"])
def test_concatenations_by_counts(name: str, element: str) -> None:
    rows, cols = 8, 64
    a, b = Spot("a", element, rows, cols, 0, (rows, 40)), Spot("b", element, rows, cols, 8192, (rows, 50))
    i, j = (Spot(n, "i32", rows, 8, at, (rows, 1)) for n, at in (("i", 16384), ("j", 20480)))
    d = Spot("d", element, rows, cols, 24576)
    before = noise(target(name))
    one, two = [0, 1, 40, 41, 10, -3, 64, 2**31 - 1], [5, 63, 60, 3, 64, 7, 1, -(2**31)]
    for spot, counts in ((i, one), (j, two)):
        spot.put(before, np.array(counts, "<i4")[:, None])
    wanted, x, y = d.get(before), a.get(before), b.get(before)
    for row, (p, q) in enumerate(zip(one, two, strict=True)):
        here = max(0, min(p, 40))
        there = max(0, min(q, 50, 64 - here))
        wanted[row, : here + there] = np.concatenate([x[row, :here], y[row, :there]])
    expect(program(statement("tconcatidx", [a, b, i, j], d), [a, b, i, j, d]), name, before, d, wanted)
    assert NATIVE["bf16"] == np.dtype(ml_dtypes.bfloat16)


A, T, B = Spot("a", "f32", 8, 64, 0), Spot("t", "f32", 8, 64, 4096), Spot("b", "bf16", 8, 64, 8192)
D, H = Spot("d", "i32", 8, 8, 16384, (8, 1)), Spot("h", "i16", 8, 16, 20480, (8, 1))
L, S = Spot("l", "i32", 1, 64, 24576), Spot("s", "f32", 1, 8, 28672)


@pytest.mark.parametrize(
    ("operation", "name", "message"),
    [
        (statement("trowargmax", [A, T], H), "a2a3", "32-bit integers, %h holds i16"),
        (statement("trowargmax", [A, T], A), "a5", "32-bit integers, %a holds f32"),
        (statement("trowargmax", [B, T], D), "a5", "does not take bf16"),
        (statement("trowargmin", [A, T], L), "a5", "number of valid rows of %a is 8"),
        (statement("trowargmin", [A], D), "a5", "does not take these operands"),
        (statement("trowargmin", [A, S], D), "a2a3", "tmp %s has 32 bytes, trowargmin needs 96"),
        (statement("trowargmin", [A, A], D), "a2a3", "tmp %a and %a share"),
        (statement("tcolargmax", [A, T], D), "a5", "number of valid columns of %a is 64"),
        (statement("tcolargmax", [A, S], L), "a2a3", "needs 288"),
        (statement("taddc", [A, A], T), "a5", "does not take these operands"),
        (statement("tconcatidx", [A, A, D, H], T), "a5", "takes numbers from a tile of 32-bit integers, %h holds i16"),
        (statement("tconcatidx", [A, A, D, L], T), "a5", "number of valid rows of %l is 1"),
    ],
)
def test_refusals(operation: str, name: str, message: str) -> None:
    with pytest.raises(CastsimError) as caught:
        walked(program(operation, [A, T, B, D, H, L, S]), target(name))
    assert message in str(caught.value), caught.value
    assert operation.split(maxsplit=1)[0] in getattr(caught.value.span, "text", "")


SCALAR = {"f32": "0.5", "f16": "0.5", "i32": "3", "i16": "3"}


def chosen(
    a: Spot, t: Spot | None, d: Spot, n: Spot, element: str, attributes: str = "{cmpMode = #pto<cmp gt>}"
) -> str:
    tmp = (f", %{t.name}", f", {t.type}") if t else ("", "")
    ins = f"ins(%{a.name}, %k{tmp[0]} : {a.type}, {element}{tmp[1]})"
    return f"pto.tgather {ins} outs(%{d.name}, %{n.name} : {d.type}, {n.type}) {attributes}"


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("element", ["f32", "f16", "i32", "i16"])
@pytest.mark.parametrize("mode", ["gt", "eq"])
@pytest.mark.parametrize("shape", [(1, 8), (7, 64), (3, 200)])
@pytest.mark.parametrize("across", [False, True])
def test_numbers_and_counts(name: str, element: str, mode: str, shape: tuple[int, int], across: bool) -> None:
    rows = shape[0]
    a, t = Spot("a", element, rows, 256, 0, shape), Spot("t", element, rows, 256, 16384, shape)
    d = Spot("d", "i32", rows, 256, 32768, shape)
    n = Spot("n", "ui32", 1, 8, 65536, (1, rows)) if across else Spot("n", "i32", rows, 8, 65536, (rows, 1))
    x = special(element, shape, rows)
    x[:, ::3] = NATIVE[element].type(float(SCALAR[element]))
    before = noise(target(name))
    a.put(before, x)
    operation = chosen(a, t, d, n, element, f"{{cmpMode = #pto<cmp {mode}>, offset = 5 : i32}}")
    text = program(operation, [a, t, d, n], {"k": (SCALAR[element], element)})
    if name == "a2a3" and (element == "i16" or (element == "i32" and mode == "gt")):
        with pytest.raises(CastsimError, match=r"does not take i16|can only compare for equality"):
            walked(text, target(name))
        return
    limit, wanted, counts = float(SCALAR[element]), before.copy(), []
    for row, line in enumerate(x):
        found = [5 + j for j, v in enumerate(line) if (float(v) > limit if mode == "gt" else float(v) == limit)]
        counts.append(len(found))
        start = d.place(row, 0)
        wanted[start : start + 4 * len(found)] = np.array(found, "<i4").view(np.uint8)
    n.put(wanted, np.array([counts]).astype("<u4") if across else np.array(counts)[:, None].astype("<i4"))
    assert np.array_equal(ran(text, name, before), wanted)
    parsed = parse(text, "k.pto")
    assert parse(print_program(parsed), "k.pto") == parsed


X, Y, R = Spot("a", "f32", 4, 64, 0), Spot("t", "f32", 4, 64, 4096), Spot("d", "i32", 4, 64, 8192)
N, SMALL, HALF = Spot("n", "i32", 4, 64, 16384), Spot("s", "i32", 4, 8, 20480), Spot("h", "i16", 4, 64, 24576)


@pytest.mark.parametrize(
    ("operation", "name", "message"),
    [
        (chosen(X, None, R, N, "f32"), "a2a3", "needs a tmp tile"),
        (chosen(X, Y, HALF, N, "f32"), "a5", "32-bit integers, %h holds i16"),
        (chosen(X, Y, R, HALF, "f32"), "a5", "32-bit integers, %h holds i16"),
        (chosen(X, Y, R, R, "f32"), "a5", "counts %d and %d share"),
        (chosen(X, Y, R, N, "f32", "{cmpMode = #pto<cmp lt>}"), "a5", "unknown cmp 'lt'"),
        (chosen(X, Y, R, N, "f32", "{offset = 1.5 : f32}"), "a5", "offset must be an i32 number"),
        (chosen(X, Y, R, N, "f32", "{ofset = 1 : i32}"), "a5", "no attribute"),
        (f"pto.tgather ins(%a, %k : {X.type}, f32) outs(%d : {R.type})", "a5", "writes two tiles"),
    ],
)
def test_gathers_that_are_refused(operation: str, name: str, message: str) -> None:
    text = program(operation, [X, Y, R, N, SMALL, HALF], {"k": ("0.5", "f32")})
    if "ofset" in operation:
        assert any(message in str(warning) for warning in parse(text, "k.pto").warnings)
        return
    with pytest.raises(CastsimError) as caught:
        walked(text, target(name))
    assert message in str(caught.value), caught.value
    assert caught.value.span is not None


def test_more_than_the_result_holds_are_refused() -> None:
    before = noise(target("a5"))
    X.put(before, np.ones((4, 64), "<f4"))
    text = program(chosen(X, Y, SMALL, N, "f32"), [X, Y, SMALL, N], {"k": ("0.5", "f32")})
    with pytest.raises(CastsimError, match="64 elements of row 0 of %a match, but a row of %s has 8"):
        computed(text, target("a5"), before)
