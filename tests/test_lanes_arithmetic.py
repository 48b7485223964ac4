"""Arithmetic, comparison and selection of registers, element by element in exact fractions, under every mask."""

from __future__ import annotations

from fractions import Fraction

import boundaries
import lanes_elements as el
import lanes_model as model
import numpy as np
import oracle
import pytest
from lanes_functions import BINARY, SCALAR, UNARY

from castsim.isa.errors import IllegalError
from castsim.isa.formats import format_named
from castsim.machines.vector_function.lane_operations import OPERATIONS, execute
from castsim.machines.vector_function.vector_registers import (
    Operands,
    PredicateRegister,
    Value,
    VectorRegister,
    documented_target,
)
from castsim.targets.options import with_options

A5 = documented_target()
INTEGERS = ("i8", "u8", "i16", "u16", "i32", "u32")
FLOATS = ("f16", "bf16", "f32")
NUMBERS = (*INTEGERS, *FLOATS)


def codes(name: str, seed: int) -> list[int]:
    """A register of edges, small numbers and random patterns, in an order of its own."""
    bits, rng = model.bits_of(name), np.random.default_rng(seed)
    count = 2048 // bits
    if bits == 8 and name not in oracle.INTS:
        return rng.permutation(256).tolist()
    edges = boundaries.own_edges(name)
    if name in oracle.INTS:
        edges += [value & ((1 << bits) - 1) for value in range(-3, 4)]
        pool = [*edges, *rng.integers(0, 1 << bits, count).tolist()]
    else:
        ordinary = [el.rounded(Fraction(x), name) for x in rng.normal(0, 3, count).tolist()]
        pool = [*edges, *ordinary, *rng.integers(0, 1 << bits, count // 2).tolist()]
    return rng.permutation(np.array(pool, np.uint64))[:count].tolist()


def register(values: list[int], name: str) -> VectorRegister:
    size = model.bits_of(name) // 8
    return model.register(b"".join(value.to_bytes(size, "little") for value in values))


def lanes_of(value: Value, name: str) -> list[int]:
    assert isinstance(value, VectorRegister)
    return value.lanes(model.bits_of(name)).tolist()


def run(
    op: str, name: str, *sources: list[int], mask: list[int] | None = None, masks: tuple[PredicateRegister, ...] = (),
    scalars: tuple[int, ...] = (), words: tuple[str, ...] = (), result: str | None = None, **options: str,
) -> tuple[Value, ...]:  # fmt: skip
    made = (*masks, *(() if mask is None else (model.predicate(mask),)))
    registers = tuple(register(each, name) for each in sources)
    fmt = format_named(name)
    width = min(32, model.bits_of(name))
    return execute(Operands(op, fmt, format_named(result or name), width, with_options(A5, options),
                            registers, made, scalars, words))  # fmt: skip


def active(mask: list[int], name: str) -> list[int]:
    return mask[:: model.bits_of(name) // 8]


def cases(table: dict[str, object]) -> list[tuple[str, str]]:
    return [(op, name) for op in table for name in OPERATIONS[op].types]


@pytest.mark.parametrize(("op", "name"), cases(BINARY))
def test_two_registers(op: str, name: str) -> None:
    a, b = codes(name, 1), codes(name, 2)
    want = [BINARY[op](x, y, name) for x, y in zip(a, b, strict=True)]
    for mask in model.masks(model.bits_of(name), 4):
        (got,) = run(op, name, a, b, mask=mask)
        assert lanes_of(got, name) == [w if m else 0 for w, m in zip(want, active(mask, name), strict=True)]


@pytest.mark.parametrize(("op", "name"), cases(UNARY))
def test_one_register(op: str, name: str) -> None:
    a = codes(name, 3)
    want = [UNARY[op](x, name) for x in a]
    for mask in model.masks(model.bits_of(name), 5):
        (got,) = run(op, name, a, mask=mask)
        assert lanes_of(got, name) == [w if m else 0 for w, m in zip(want, active(mask, name), strict=True)]
        assert isinstance(got, VectorRegister) and got.is_defined


@pytest.mark.parametrize(("op", "name"), cases(SCALAR))
def test_a_register_and_a_scalar(op: str, name: str) -> None:
    a = codes(name, 6)
    for scalar in codes(name, 7)[:6]:
        want = [BINARY[SCALAR[op]](x, scalar, name) for x in a]
        for mask in model.masks(model.bits_of(name), 8)[:3]:
            (got,) = run(op, name, a, mask=mask, scalars=(scalar,))
            assert lanes_of(got, name) == [w if m else 0 for w, m in zip(want, active(mask, name), strict=True)]


def test_scalars_that_are_negative_numbers() -> None:
    a = codes("i16", 6)
    full = model.masks(16, 0)[0]
    assert lanes_of(run("vadds", "i16", a, mask=full, scalars=(-5,))[0], "i16") == [(x - 5) & 0xFFFF for x in a]


@pytest.mark.parametrize(("op", "name"), cases({"vshl": 0, "vshr": 0}))
def test_shifts(op: str, name: str) -> None:
    bits, a = model.bits_of(name), codes(name, 9)
    amounts = np.random.default_rng(1).integers(0, bits, len(a)).tolist()
    mask = model.masks(bits, 2)[-1]
    function = op[1:]
    (got,) = run(op, name, a, amounts, mask=mask)
    want = [el.shift(function, x, n, name) for x, n in zip(a, amounts, strict=True)]
    assert lanes_of(got, name) == [w if m else 0 for w, m in zip(want, active(mask, name), strict=True)]
    for amount in range(bits):
        (got,) = run(f"{op}s", name, a, mask=mask, scalars=(amount,))
        want = [el.shift(function, x, amount, name) for x in a]
        assert lanes_of(got, name) == [w if m else 0 for w, m in zip(want, active(mask, name), strict=True)]
        assert isinstance(got, VectorRegister) and got.is_defined
    full = model.masks(bits, 0)[0]
    for amount in (bits, bits + 3, 200, -1, -32768):
        (got,) = run(f"{op}s", name, a, mask=full, scalars=(amount,))
        gone = [el.shift(function, x, bits, name) if function == "shr" else 0 for x in a]
        assert lanes_of(got, name) == gone
        assert isinstance(got, VectorRegister) and not got.defined.any()
        (got,) = run(f"{op}s", name, a, mask=full, scalars=(amount,), shift_beyond_width="modulo")
        assert lanes_of(got, name) == [el.shift(function, x, amount % bits, name) for x in a]
    (got,) = run(op, name, a, [bits if k == 3 else 1 for k in range(len(a))], mask=full)
    assert isinstance(got, VectorRegister)
    assert np.flatnonzero(~got.defined_lanes(bits)).tolist() == [3]


@pytest.mark.parametrize(("op", "function"), [("vexp", "exp"), ("vln", "ln")])
@pytest.mark.parametrize("name", ["f16", "f32"])
def test_transcendental_functions(op: str, function: str, name: str) -> None:
    """Not claimed to the bit: within one unit in the last place."""
    a, bits = codes(name, 12), model.bits_of(name)
    full = model.masks(bits, 0)[0]
    for x, got in zip(a, lanes_of(run(op, name, a, mask=full)[0], name), strict=True):
        want = el.transcendental(function, x, name)
        assert el.is_nan(got, name) if want is None else abs(got - want) <= 1, hex(x)


@pytest.mark.parametrize("name", NUMBERS)
def test_multiply_and_add(name: str) -> None:
    a, b, c = (codes(name, seed) for seed in (13, 14, 15))
    for mask in model.masks(model.bits_of(name), 6)[::3]:
        want = [el.fused(z, x, y, name) if m else 0 for x, y, z, m in zip(a, b, c, active(mask, name), strict=True)]
        assert lanes_of(run("vmula", name, c, a, b, mask=mask)[0], name) == want
    if name in OPERATIONS["vaxpy"].types:
        full, scalar = model.masks(model.bits_of(name), 0)[0], codes(name, 16)[5]
        want = [el.fused(y, x, scalar, name) for x, y in zip(a, b, strict=True)]
        assert lanes_of(run("vaxpy", name, a, b, mask=full, scalars=(scalar,))[0], name) == want
        twice = [el.add(y, el.mul(x, scalar, name), name) for x, y in zip(a, b, strict=True)]
        got = run("vaxpy", name, a, b, mask=full, scalars=(scalar,), axpy_rounding="twice")
        assert lanes_of(got[0], name) == twice


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("word", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons(word: str, name: str) -> None:
    a, b, bits = codes(name, 21), codes(name, 22), model.bits_of(name)
    b[::5] = a[::5]
    for mask in model.masks(bits, 7):
        (got,) = run("vcmp", name, a, b, mask=mask, words=(word,))
        found = [el.compare(word, x, y, name) and bool(m) for x, y, m in zip(a, b, active(mask, name), strict=True)]
        assert isinstance(got, PredicateRegister) and got.lanes(bits).tolist() == found
        assert got.bits.sum() == sum(found)
    for scalar in a[:4]:
        (got,) = run("vcmps", name, a, mask=model.masks(bits, 7)[0], scalars=(scalar,), words=(word,))
        assert isinstance(got, PredicateRegister) and got.lanes(bits).tolist() == [
            el.compare(word, x, scalar, name) for x in a
        ]


@pytest.mark.parametrize("name", OPERATIONS["vsel"].types)
def test_selection_does_not_zero(name: str) -> None:
    rng = np.random.default_rng(3)
    bits = model.bits_of(name)
    a, b = (rng.integers(0, 1 << bits, 2048 // bits).tolist() for _ in range(2))
    for mask in model.masks(bits, 8):
        (got,) = run("vsel", name, a, b, mask=mask)
        assert lanes_of(got, name) == [x if m else y for x, y, m in zip(a, b, active(mask, name), strict=True)]


@pytest.mark.parametrize("name", ["i32", "u32"])
@pytest.mark.parametrize("sense", ["borrow", "no_borrow"])
def test_carries(name: str, sense: str) -> None:
    a, b = codes(name, 31), codes(name, 32)
    b[::4] = a[::4]
    carried = [k % 3 == 0 for k in range(64)]
    carry_in = model.predicate([int(k % 4 == 0 and carried[k // 4]) for k in range(256)])
    for mask in model.masks(32, 9):
        seen = list(map(bool, active(mask, name)))
        for op, sign in (("vaddc", 1), ("vsubc", -1), ("vaddcs", 1), ("vsubcs", -1)):
            with_carry = op.endswith("s")
            masks = (carry_in,) if with_carry else ()
            total, carry = run(op, name, a, b, masks=masks, mask=mask, micro_subtraction_carry=sense)
            flips = sign < 0 and sense == "no_borrow"
            taken = [(c != flips) if with_carry else False for c in carried]
            exact = [x + sign * (y + c) for x, y, c in zip(a, b, taken, strict=True)]
            assert lanes_of(total, name) == [e & 0xFFFFFFFF if m else 0 for e, m in zip(exact, seen, strict=True)]
            over = [((not 0 <= e <= 0xFFFFFFFF) != flips) and m for e, m in zip(exact, seen, strict=True)]
            assert isinstance(carry, PredicateRegister) and carry.lanes(32).tolist() == over


def test_a_subtraction_carries_where_nothing_was_borrowed() -> None:
    # The newest page of the ISA: dst = a - b - (1 - carry), and the carry is 1 if nothing was borrowed.
    _, carry = run("vsubc", "u32", [5] * 64, [*[3] * 32, *[7] * 32], mask=[True] * 256)
    assert isinstance(carry, PredicateRegister) and carry.lanes(32).tolist() == [True] * 32 + [False] * 32


@pytest.mark.parametrize("name", ["i32", "u32"])
def test_long_products(name: str) -> None:
    a, b = codes(name, 41), codes(name, 42)
    mask = model.masks(32, 1)[-1]
    halves = [lanes_of(each, name) for each in run("vmull", name, a, b, mask=mask)]
    exact = [el.number(x, name) * el.number(y, name) if m else 0 for x, y, m in zip(a, b, mask[::4], strict=True)]
    assert halves == [[e & 0xFFFFFFFF for e in exact], [(e >> 32) & 0xFFFFFFFF for e in exact]]


@pytest.mark.parametrize(("name", "part"), [("f32", "EVEN"), ("f16", "EVEN"), ("f16", "ODD")])
def test_exponential_of_a_difference(name: str, part: str) -> None:
    rng, bits = np.random.default_rng(4), model.bits_of(name)
    kind = {"f32": "<f4", "f16": "<f2"}[name]
    a, b = (rng.normal(0, 2, 2048 // bits).astype(kind) for _ in range(2))
    mask = model.masks(bits, 3)[-1]
    first, step = int(part == "ODD" and bits == 16), 32 // bits
    one, two = (each.view(f"<u{bits // 8}").tolist() for each in (a, b))
    (got,) = run("vexpdif", name, one, two, mask=mask, words=(part,), result="f32")
    assert isinstance(got, VectorRegister)
    wide = np.exp(a.astype(np.float64) - b.astype(np.float64))[first::step]
    chosen = np.array(active(mask, name), bool)[first::step]
    np.testing.assert_allclose(got.lanes(32).view("<f4"), np.where(chosen, wide, 0), rtol=1e-6)


def test_extremes_with_nan_are_defined() -> None:
    full = model.masks(32, 0)[0]
    a = [el.rounded(Fraction(1), "f32")] * 64
    b = [oracle.fmt("f32").nan if k == 9 else a[0] for k in range(64)]
    for op in ("vmax", "vmin"):
        for pair in ((a, b), (b, a)):
            (got,) = run(op, "f32", *pair, mask=full)
            assert isinstance(got, VectorRegister) and got.defined_lanes(32).all()
            assert lanes_of(got, "f32")[9] == oracle.fmt("f32").nan
            (got,) = run(op, "f32", *pair, mask=full, maximum_of_nan="number")
            assert lanes_of(got, "f32")[9] == a[0]


@pytest.mark.parametrize(("name", "clamps"), [("f16", True), ("bf16", False), ("f32", False)])
def test_results_that_ctrl_clamps(name: str, clamps: bool) -> None:
    """f16 results of arithmetic while CTRL[60] is 1 and CTRL[48] is 0 (docs/reference/pto.md section 7.1)."""
    row, fmt = oracle.fmt(name), format_named(name)
    top, full = row.inf - 1, model.predicate(model.masks(model.bits_of(name), 0)[0])
    lanes = 2048 // row.bits
    source = register([(top, row.inf | row.sign_code, row.nan, 0)[k % 4] for k in range(lanes)], name)
    for ctrl, holds in ((0, False), (1 << 60, clamps), (1 << 60 | 1 << 48, False), (1 << 59, False)):
        (got,) = execute(Operands("vadd", fmt, fmt, 32, A5, (source, source), (full,), ctrl=ctrl))
        want = [top, top | row.sign_code, 0, 0] if holds else [row.inf, row.inf | row.sign_code, row.nan, 0]
        assert lanes_of(got, name)[:4] == want
        (got,) = execute(Operands("vcadd", fmt, fmt, 32, A5, (register([top] * lanes, name),), (full,), ctrl=ctrl))
        assert lanes_of(got, name)[0] == (top if holds else row.inf)


@pytest.mark.parametrize("op", ["vadd", "vmax", "vor", "vsel", "vmula", "vcmp", "vaddc", "vmull", "vprelu"])
def test_lanes_that_are_not_defined_spread_to_their_own(op: str) -> None:
    name = "i32" if "i32" in OPERATIONS[op].types else "f32"
    fmt, row = format_named(name), OPERATIONS[op]
    hole = VectorRegister(np.zeros(256, np.uint8), np.arange(256) != 21)  # lane 5
    whole = VectorRegister(np.zeros(256, np.uint8))
    count = row.operands[0].count("v")
    words = ("lt",) if "w" in row.operands[0] else ()
    for place in range(count):
        sources = tuple(hole if k == place else whole for k in range(count))
        for bits, hidden in ((np.ones(256, np.bool_), False), (np.arange(256) != 20, True)):
            found = execute(Operands(op, fmt, fmt, 32, A5, sources, (PredicateRegister(bits),), (), words))
            for each in found:
                assert isinstance(each, VectorRegister | PredicateRegister)
                want = [5] if not hidden and (op != "vsel" or place == 0) else []
                want = [5] if op == "vsel" and hidden and place == 1 else want
                assert np.flatnonzero(~each.defined_lanes(32)).tolist() == want, (op, place, hidden)
        doubt = PredicateRegister(np.ones(256, np.bool_), np.arange(256) != 28)
        for each in execute(Operands(op, fmt, fmt, 32, A5, (whole,) * count, (doubt,), (), words)):
            assert isinstance(each, VectorRegister | PredicateRegister)
            assert np.flatnonzero(~each.defined_lanes(32)).tolist() == [7]


def test_formats_that_an_instruction_does_not_take() -> None:
    full = model.masks(8, 0)[0]
    with pytest.raises(IllegalError, match="vadd does not take hif8") as refused:
        run("vadd", "hif8", [0] * 256, [0] * 256, mask=full)
    assert refused.value.legal == OPERATIONS["vadd"].types
    with pytest.raises(IllegalError, match="no comparison ult") as word:
        run("vcmp", "i8", [0] * 256, [0] * 256, mask=full, words=("ult",))
    assert word.value.legal == ("eq", "ne", "lt", "le", "gt", "ge")
