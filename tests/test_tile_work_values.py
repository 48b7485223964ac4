"""Every vector operation, element type and target against the formulas: whole buffers, partial regions included."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from work_model import TARGETS, TYPES, Model, special
from work_programs import Spot, computed, noise, program, statement, target

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
    code = np.ascontiguousarray(value.reshape(1)).view(f"<u{value.dtype.itemsize}")[0]
    return hex(int(code))


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
