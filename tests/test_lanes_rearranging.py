"""Rearranging, filling and reducing registers: lanes as lists, exact arithmetic, every mask."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import reduce

import lanes_elements as el
import lanes_model as model
import numpy as np
import oracle
import pytest
from test_lanes_arithmetic import A5, active, codes, lanes_of, register, run

from castsim.isa.errors import IllegalError
from castsim.isa.formats import format_named
from castsim.machines.vector_function.lane_operations import OPERATIONS, execute, squeezed_bytes
from castsim.machines.vector_function.vector_registers import Operands, PredicateRegister, VectorRegister, every_lane

ONE_PER_WIDTH = ("u8", "bf16", "i32")


def every(name: str) -> list[int]:
    return model.masks(model.bits_of(name), 0)[0]


@pytest.mark.parametrize("name", OPERATIONS["vintlv"].types)
def test_interleaving(name: str) -> None:
    a, b = codes(name, 1), codes(name, 2)
    half = len(a)
    low, high = (lanes_of(each, name) for each in run("vintlv", name, a, b))
    turns = [x for pair in zip(a, b, strict=True) for x in pair]
    assert (low, high) == (turns[:half], turns[half:])
    both = a + b
    even, odd = (lanes_of(each, name) for each in run("vdintlv", name, a, b))
    assert (even, odd) == (both[::2], both[1::2])
    assert [lanes_of(each, name) for each in run("vdintlv", name, low, high)] == [a, b]


@pytest.mark.parametrize("name", OPERATIONS["vselr"].types)
def test_lanes_by_number(name: str) -> None:
    a, bits = codes(name, 3), model.bits_of(name)
    lanes = len(a)
    index = np.random.default_rng(5).integers(0, lanes, lanes).tolist()
    assert lanes_of(run("vselr", name, a, index)[0], name) == [a[i] for i in index]
    if bits > 8:
        (got,) = run("vselr", name, a, [lanes if k == 2 else 0 for k in range(lanes)])
        assert isinstance(got, VectorRegister) and np.flatnonzero(~got.defined_lanes(bits)).tolist() == [2]


@pytest.mark.parametrize("name", OPERATIONS["vdup"].types)
def test_scalars_and_lanes_everywhere(name: str) -> None:
    a, bits = codes(name, 4), model.bits_of(name)
    value = a[3]
    assert lanes_of(run("vbr", name, scalars=(value,))[0], name) == [value] * len(a)
    for mask in model.masks(bits, 3):
        seen = active(mask, name)
        assert lanes_of(run("vdup", name, mask=mask, scalars=(value,))[0], name) == [value if m else 0 for m in seen]
        for word, lane in (((), 0), (("LOWEST",), 0), (("HIGHEST",), -1)):
            got = run("vdup", name, a, mask=mask, words=word)
            assert lanes_of(got[0], name) == [a[lane] if m else 0 for m in seen]
    with pytest.raises(IllegalError, match="no position MIDDLE"):
        run("vdup", name, a, mask=every(name), words=("MIDDLE",))


@pytest.mark.parametrize("name", OPERATIONS["vci"].types)
def test_ramps(name: str) -> None:
    lanes = 2048 // model.bits_of(name)
    bases = [0, 5, (1 << model.bits_of(name)) - 3] if name in oracle.INTS else [0, el.rounded(Fraction(5, 2), name)]
    for base in bases:
        for words, sign in (((), 1), (("ASC",), 1), (("DESC",), -1)):
            if name in oracle.INTS:
                want = [el.low(base + sign * i, name) for i in range(lanes)]
            else:
                want = [el.rounded(el.exact(oracle.decode(base, name)) + sign * i, name) for i in range(lanes)]
            assert lanes_of(run("vci", name, scalars=(base,), words=words)[0], name) == want
    with pytest.raises(IllegalError, match="no order UP"):
        run("vci", name, scalars=(0,), words=("UP",))


@pytest.mark.parametrize("name", OPERATIONS["vpack"].types)
def test_packing(name: str) -> None:
    a, bits = codes(name, 6), model.bits_of(name)
    narrow = [x & ((1 << bits // 2) - 1) for x in a]
    small = f"u{bits // 2}"
    zeros = [0] * len(a)
    assert lanes_of(run("vpack", name, a, words=("LOWER",), result=small)[0], small) == narrow + zeros
    for word in ("HIGHER", "UPPER"):
        assert lanes_of(run("vpack", name, a, words=(word,), result=small)[0], small) == zeros + narrow
    hole = np.arange(256) != bits // 8 + bits // 16  # the upper half of lane 1, which is not kept
    for defined, want in ((hole, []), (np.arange(256) != bits // 8, [1])):
        fmt = format_named(name)
        source = (VectorRegister(np.zeros(256, np.uint8), defined),)
        (got,) = execute(Operands("vpack", fmt, format_named(small), 8, A5, source, words=("LOWER",)))
        assert isinstance(got, VectorRegister) and np.flatnonzero(~got.defined_lanes(bits // 2)).tolist() == want


@pytest.mark.parametrize("op", ["vsunpack", "vzunpack"])
@pytest.mark.parametrize("name", OPERATIONS["vsunpack"].types)
def test_unpacking(op: str, name: str) -> None:
    a, bits = codes(name, 7), model.bits_of(name)
    wide, half = f"{name[0]}{2 * bits}", len(a) // 2
    for which in (0, 1):
        chosen = a[which * half : (which + 1) * half]
        signed = [x - (1 << bits) if op == "vsunpack" and x >> (bits - 1) else x for x in chosen]
        got = run(op, name, a, scalars=(which,), result=wide)
        assert lanes_of(got[0], wide) == [x & ((1 << 2 * bits) - 1) for x in signed]
    with pytest.raises(IllegalError, match="no half 2"):
        run(op, name, a, scalars=(2,), result=wide)


@pytest.mark.parametrize("name", OPERATIONS["vsqz"].types)
def test_squeezing(name: str) -> None:
    a, bits = codes(name, 8), model.bits_of(name)
    for mask in model.masks(bits, 4):
        seen = active(mask, name)
        kept = [x for x, m in zip(a, seen, strict=True) if m]
        assert lanes_of(run("vsqz", name, a, mask=mask)[0], name) == kept + [0] * (len(a) - len(kept))
        assert squeezed_bytes(model.predicate(mask), bits) == len(kept) * bits // 8
        if name in OPERATIONS["vusqz"].types:
            below = [sum(seen[:i]) & ((1 << bits) - 1) for i in range(len(a))]
            assert lanes_of(run("vusqz", name, a, mask=mask)[0], name) == below
    unknown = PredicateRegister(np.ones(256, np.bool_), np.arange(256) != 2 * bits // 8)
    fmt = format_named(name)
    (got,) = execute(Operands("vsqz", fmt, fmt, bits, A5, (register(a, name),), (unknown,)))
    assert isinstance(got, VectorRegister) and not got.defined.any()
    if name in OPERATIONS["vusqz"].types:
        (got,) = execute(Operands("vusqz", fmt, fmt, bits, A5, (register(a, name),), (unknown,)))
        assert isinstance(got, VectorRegister) and got.defined_lanes(bits).tolist() == [i < 3 for i in range(len(a))]


def test_another_type_for_the_same_bytes() -> None:
    a = codes("f32", 9)
    (got,) = run("vbitcast", "f32", a, result="u16")
    assert isinstance(got, VectorRegister) and got.data.tobytes() == register(a, "f32").data.tobytes()


RULES: dict[str, Callable[[int, int, str], int]] = {
    "add": el.add,
    "max": lambda a, b, name: el.extreme(a, b, name, largest=True),
    "min": lambda a, b, name: el.extreme(a, b, name, largest=False),
}


def neutral(function: str, name: str) -> int:
    if function == "add":
        return 0
    if name in oracle.INTS:
        row = oracle.fmt(name)
        return el.low(row.low if function == "max" else row.high, name)
    return el.infinity(name, negative=function == "max")


def tree(function: str, values: list[int], name: str) -> int:
    """Neighbours in pairs, each step rounded."""
    while len(values) > 1:
        values = [RULES[function](values[k], values[k + 1], name) for k in range(0, len(values), 2)]
    return values[0]


@pytest.mark.parametrize("function", RULES)
@pytest.mark.parametrize("name", OPERATIONS["vcadd"].types)
def test_reductions(function: str, name: str) -> None:
    a, bits = codes(name, 10), model.bits_of(name)
    if name not in oracle.INTS:
        a = [x if oracle.decode(x, name).kind == "finite" else 0 for x in a]
    sums = [("vcadd", 1, result) for result in (OPERATIONS["vcadd"].result_types or {})[name]]
    same = [(f"vc{function}", 1, name), (f"vcg{function}", 8, name)]
    for op, parts, result in (*same, *(sums if function == "add" else ())):
        for mask in model.masks(bits, 6):
            start = neutral(function, result)
            values = [x if m else start for x, m in zip(a, active(mask, name), strict=True)]
            if result != name:
                values = [el.low(el.number(x, name), result) for x in values]
            size = len(a) // parts
            groups = [values[k * size : (k + 1) * size] for k in range(parts)]
            want = [RULES[function](start, tree(function, group, result), result) for group in groups]
            (got,) = run(op, name, a, mask=mask, result=result)
            assert lanes_of(got, result) == want + [0] * (2048 // model.bits_of(result) - parts), op
    if name not in oracle.INTS and function == "add":
        (got,) = run("vcadd", name, a, mask=every(name), lane_order="sequential")
        assert lanes_of(got, name)[0] == reduce(lambda x, y: el.add(x, y, name), a)


@pytest.mark.parametrize("name", ["f16", "f32"])
def test_sums_of_pairs(name: str) -> None:
    a, bits = codes(name, 12), model.bits_of(name)
    a = [x if oracle.decode(x, name).kind == "finite" else 0 for x in a]
    for mask in model.masks(bits, 4):
        taking_part = iter(zip(a, active(mask, name), strict=True))
        pairs = [[x for x, m in (one, other) if m] for one, other in zip(taking_part, taking_part, strict=True)]
        want = [el.add(*pair, name) if len(pair) > 1 else sum(pair) for pair in pairs]
        (got,) = run("vcpadd", name, a, mask=mask)
        assert lanes_of(got, name) == want + [0] * len(want)


@pytest.mark.parametrize(
    ("name", "given", "want"),
    [
        ("f16", 0xFBFF, 0xFC00), ("f16", 0x7BFF, 0x7C00), ("f16", 0, 0), ("f16", 0x8000, 0x8000),
        ("f16", 0x7C00, 0x7C00), ("f32", 0xFF7FFFFF, 0xFF800000), ("f32", 0x7F7FFFFF, 0x7F800000),
        ("f32", 0x80000000, 0x80000000), ("f32", 0xFF800000, 0xFF800000),
    ],
)  # fmt: skip
def test_documented_sums_of_pairs(name: str, given: int, want: int) -> None:
    """The vendor's table of special values for a sum of pairs on the A5, saturation off."""
    count = 2048 // model.bits_of(name)
    (got,) = run("vcpadd", name, [given] * count, mask=every(name))
    assert lanes_of(got, name)[: count // 2] == [want] * (count // 2)


def test_what_is_not_defined_in_reductions() -> None:
    fmt = format_named("f32")
    hole = VectorRegister(np.zeros(256, np.uint8), np.arange(256) != 70)  # lane 17, block 2
    for op, want in (("vcadd", [0]), ("vcgadd", [2]), ("vcmax", [0]), ("vcgmin", [2])):
        (got,) = execute(Operands(op, fmt, fmt, 32, A5, (hole,), (every_lane(32),)))
        assert isinstance(got, VectorRegister) and np.flatnonzero(~got.defined_lanes(32)).tolist() == want
        (got,) = execute(Operands(op, fmt, fmt, 32, A5, (hole,), (PredicateRegister(np.arange(256) % 8 == 0),)))
        assert isinstance(got, VectorRegister) and got.is_defined


def test_every_row_is_tried() -> None:
    """Rows of registers that no test of this file or of the arithmetic names."""
    from pathlib import Path  # noqa: PLC0415

    folder = Path(__file__).parent
    names = ("lanes_functions.py", "test_lanes_arithmetic.py", "test_lanes_rearranging.py")
    texts = "".join((folder / name).read_text() for name in names)
    formed = {f"{op}s" for op in ("vshl", "vshr")} | {f"vc{g}{f}" for g in ("", "g") for f in RULES}
    missing = [name for name, row in OPERATIONS.items() if row.types and f'"{name}"' not in texts]
    assert set(missing) <= formed
