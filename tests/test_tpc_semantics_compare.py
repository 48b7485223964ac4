"""MAX, MIN, bitwise operations, compares and selections in every element type (docs/reference/tpc.md section 5.1)."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from oracle_formats import FLOATS, INTS, decode, fmt
from oracle_tpc import number, pattern
from tpc_semantics_cases import FLOAT_TYPES, INTEGER_TYPES, both, codes, instruction, run, vector
from tpc_text import GENERATIONS, target

from castsim.isa.errors import IllegalError
from castsim.machines.vliw.semantics import prepare
from castsim.targets.options import with_options

RNG = np.random.default_rng(53)
MASK = RNG.integers(0, 2, 256).astype(bool)
INCOME = RNG.integers(0, 256, 256).astype(np.uint8)


def compared(x: int, y: int, name: str) -> int | None:
    """Return the sign of x - y, None with NaN."""
    if name in INTS:
        return (number(x, name) > number(y, name)) - (number(x, name) < number(y, name))
    sides = []
    for code in (x, y):
        value = decode(code, name)
        if value.kind == "nan":
            return None
        size = float("inf") if value.kind == "inf" else value.magnitude
        sides.append(-size if value.negative else size)
    return (sides[0] > sides[1]) - (sides[0] < sides[1])


@pytest.mark.parametrize("name", [*FLOAT_TYPES, *INTEGER_TYPES])
def test_extremes(name: str) -> None:
    bits = fmt(name).bits
    prefers = with_options(target("gaudi2"), {"min_max_nan": "number"})
    for a, b, expected_of in both(name):
        for operation, sign in (("max", 1), ("min", -1)):
            line = f"{operation}.{name} V1, V2, V3"
            order = [compared(x, y, name) for x, y in expected_of]
            got = run(line, income=INCOME, src_a=a, src_b=b)
            plain = [x if o is not None and o * sign >= 0 else y for o, (x, y) in zip(order, expected_of, strict=True)]
            assert codes(got.result, bits) == plain
            got = run(line, chip=prefers, income=INCOME, src_a=a, src_b=b)
            for (x, y), o, result in zip(expected_of, order, codes(got.result, bits), strict=True):
                second_is_nan = o is None and compared(y, y, name) is None
                first_is_number = compared(x, x, name) is not None
                keeps_first = o * sign >= 0 if o is not None else second_is_nan and first_is_number
                assert result == (x if keeps_first else y)


@pytest.mark.parametrize("name", [*FLOAT_TYPES, *INTEGER_TYPES])
def test_bits_and_magnitudes(name: str) -> None:
    bits = fmt(name).bits
    ones = (1 << bits) - 1
    inverts_first = with_options(target("gaudi2"), {"immediate_and_mask": "first"})
    for a, b, expected_of in both(name)[:2]:
        for operation, chip, function in (
            ("and", None, lambda x, y: x & y),
            ("or", None, lambda x, y: x | y),
            ("xor", None, lambda x, y: x ^ y),
            ("and andn", None, lambda x, y: x & ~y & ones),
            ("and andn", inverts_first, lambda x, y: ~x & y & ones),
        ):
            mnemonic, *switch = operation.split()
            line = f"{mnemonic}.{name} {' '.join(switch)} V1, V2, V3"
            got = run(line, chip=chip, income=INCOME, src_a=a, src_b=b)
            assert codes(got.result, bits) == [function(x, y) for x, y in expected_of]
        got = run(f"not.{name} V1, V2", income=INCOME, src_a=a)
        assert codes(got.result, bits) == [x ^ ones for x, _ in expected_of]
        got = run(f"abs.{name} V1, V2", income=INCOME, src_a=a)
        if name in FLOATS:
            assert codes(got.result, bits) == [x & ones >> 1 for x, _ in expected_of]
        else:
            assert codes(got.result, bits) == [pattern(abs(number(x, name)), name) for x, _ in expected_of]


def test_predicates_as_bits() -> None:
    a, b = RNG.integers(0, 2, (2, 256)).astype(bool)
    old = RNG.integers(0, 2, 256).astype(bool)
    for operation, expected in (("and", a & b), ("or", a | b), ("xor", a ^ b), ("and.b andn", a & ~b)):
        mnemonic = operation if "." in operation else f"{operation}.b"
        got = run(f"{mnemonic} VP1, VP2, VP3", income=old, src_a=a, src_b=b, predicate=MASK)
        assert np.array_equal(got.result, np.where(MASK, expected, old))
    assert np.array_equal(run("not.b VP1, VP2", income=old, src_a=a).result, ~a)
    for x, y in product((False, True), repeat=2):
        assert run("and.b SP1, SP2, SP3", slot="spu", income=False, src_a=x, src_b=y).result is (x and y)
        assert run("xor.b SP1, SP2, SP3", slot="spu", income=False, src_a=x, src_b=y).result is (x != y)
        assert run("not.b SP1, SP2", slot="spu", income=False, src_a=x).result is not x


# ------------------------------------------------------------------------------------------- compares, selections

TRUTH = {
    "eq": lambda o: o == 0,
    "neq": lambda o: o != 0,
    "less": lambda o: o is not None and o < 0,
    "leq": lambda o: o is not None and o <= 0,
    "grt": lambda o: o is not None and o > 0,
    "geq": lambda o: o is not None and o >= 0,
}


@pytest.mark.parametrize("name", [*FLOAT_TYPES, *INTEGER_TYPES])
def test_compares_and_selections(name: str) -> None:
    bits = fmt(name).bits
    c, d = (RNG.integers(0, 256, 256).astype(np.uint8) for _ in range(2))
    old = RNG.integers(0, 2, 256).astype(bool)
    for a, b, expected_of in both(name):
        order = [compared(x, y, name) for x, y in expected_of]
        for condition, holds in TRUTH.items():
            wide = np.repeat([bool(holds(o)) for o in order], bits // 8)
            got = run(f"cmp_{condition}.{name} VP1, V2, V3", income=old, src_a=a, src_b=b, predicate=MASK)
            assert np.array_equal(got.result, np.where(MASK, wide, old))
            sources = {"src_a": a, "src_b": b, "src_c": c, "src_d": d}
            got = run(f"sel_{condition}.{name} V1, V2, V3, V4, V5", income=INCOME, **sources, predicate=MASK)
            assert np.array_equal(got.result, np.where(MASK, np.where(wide, c, d), INCOME))
            if condition not in ("eq", "neq"):
                line = f"sel2_{condition}.{name} D10, V2, V3, V4, V5"
                got = run(line, income=(INCOME, d), **sources, predicate=MASK)
                assert np.array_equal(got.result[0], np.where(MASK, np.where(wide, c, d), INCOME))
                assert np.array_equal(got.result[1], np.where(MASK, np.where(wide, a, b), d))
    for (x, y), o in list(zip(expected_of, order, strict=True))[::7]:
        got = run(f"cmp_geq.{name} SP1, S2, S3", slot="spu", income=False, src_a=x, src_b=y)
        assert got.result is bool(TRUTH["geq"](o))


def test_selections_take_scalars_and_immediates() -> None:
    a, c = vector([1, 2, 3, 4], 16), vector([100], 16)
    got = run("sel_grt.i16 V1, V2, S3, V4, V5", income=INCOME, src_a=a, src_b=0xABCD0002, src_c=c, src_d=a)
    assert codes(got.result, 16)[:4] == [1, 2, 100, 100]
    got = run("sel_grt.i16 V1, V2, V3, V4, 7", income=INCOME, src_a=a, src_b=vector([2], 16), src_c=c)
    assert codes(got.result, 16)[:4] == [7, 7, 100, 100]


def test_mask_eq_zero() -> None:
    a, b = vector([0b1100, 0b0011], 32), vector([0b0011], 32)
    got = run("cmp_eq.i32 mask_eq_zero VP1, V2, V3", "gaudi", income=~MASK, src_a=a, src_b=b)
    assert got.result.tolist() == [True] * 4 + [False] * 4 + ([True] * 4 + [False] * 4) * 31


@pytest.mark.parametrize("generation", GENERATIONS)
def test_elements_that_the_generation_lacks(generation: str) -> None:
    have = [name for name in target(generation).elements.formats if 8 <= fmt(name).bits <= 32]
    lines = ("add.{} V1, V2, V3", "max.{} V1, V2, V3", "cmp_eq.{} VP1, V2, V3", "sel_eq.{} V1, V2, V3, V4, V5",
             "abs.{} V1, V2", "xor.{} S1, S2, S3")  # fmt: skip
    for name, line in product((*FLOAT_TYPES, "i4", "u4", *INTEGER_TYPES), lines):
        found = instruction(line.format(name), generation, "spu" if "S1" in line else "vpu")
        if name in have:
            prepare(found, target(generation))
        else:
            with pytest.raises(IllegalError, match=f"of {name}") as refusal:
                prepare(found, target(generation))
            assert list(refusal.value.legal) == have
