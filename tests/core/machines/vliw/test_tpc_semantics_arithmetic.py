"""ADD to SEL2, MAX, MIN, bitwise operations and compares in every element type, against exact numbers."""

from __future__ import annotations

from itertools import product
from operator import and_, or_, xor

import numpy as np
import pytest
from kit import tpc_semantics_cases
from kit.tpc_semantics_cases import (
    FLOAT_TYPES,
    INTEGER_TYPES,
    MODES,
    both,
    codes,
    instruction,
    machine_in,
    prepared,
    run,
    samples,
    state,
    vector,
)
from kit.tpc_text import GENERATIONS, target
from oracle_formats import FLOATS, INTS, decode, fmt
from oracle_tpc import NAN, arithmetic_shift, float_operation, integer_operation, number, pattern

from castsim.isa.errors import IllegalError
from castsim.machines.vliw.semantics import prepare
from castsim.machines.vliw.semantics.operands import Effects
from castsim.targets.description import with_options

RNG = np.random.default_rng(51)
MASK = RNG.integers(0, 2, 256).astype(bool)
INCOME = RNG.integers(0, 256, 256).astype(np.uint8)
FLUSHED = ("f32", "bf16")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FLOAT_TYPES)
@pytest.mark.parametrize("operation", ["add", "sub", "mul"])
def test_float_sums_and_products(operation: str, name: str, mode: str) -> None:
    machine, flush = machine_in(mode, "gaudi2"), name in FLUSHED
    for a, b, expected_of in both(name):
        got = run(f"{operation}.{name} V1, V2, V3", income=INCOME, src_a=a, src_b=b, machine=machine)
        expected = [float_operation(operation, x, y, name, mode, flush=flush) for x, y in expected_of]
        assert codes(got.result, fmt(name).bits) == expected


def test_f16_operands_are_flushed_on_request() -> None:
    for a, b, expected_of in both("f16")[-2:]:
        expected = [float_operation("add", x, y, "f16", "RHNE", flush=False, flush_in=True) for x, y in expected_of]
        switched = run("add.f16 fp16_ftz_in V1, V2, V3", "gaudib", income=INCOME, src_a=a, src_b=b)
        machine = state({"f16_flush_inputs": 1})
        configured = run("add.f16 V1, V2, V3", "gaudi2", income=INCOME, src_a=a, src_b=b, machine=machine)
        assert codes(switched.result, 16) == codes(configured.result, 16) == expected
    with pytest.raises(IllegalError, match="no switch fp16_ftz_in") as refusal:
        prepared("add.f32 fp16_ftz_in V1, V2, V3", "gaudib")
    assert refusal.value.legal == ("add.f16",)
    with pytest.raises(IllegalError, match="no switch st"):
        prepared("add.f32 st V1, V2, V3")


def test_neg_changes_the_sign_of_the_rounded_result() -> None:
    a, b, expected_of = both("bf16")[0]
    for mode in ("RU", "RD"):
        got = run("mul.bf16 neg V1, V2, V3", income=INCOME, src_a=a, src_b=b, machine=machine_in(mode, "gaudi2"))
        plain = [float_operation("mul", x, y, "bf16", mode, flush=True) for x, y in expected_of]
        assert codes(got.result, 16) == [code if code == NAN["bf16"] else code ^ 0x8000 for code in plain]


@pytest.mark.parametrize("name", INTEGER_TYPES)
@pytest.mark.parametrize("operation", ["add", "sub"])
def test_integer_sums(operation: str, name: str) -> None:
    bits = fmt(name).bits
    for (a, b, expected_of), st, neg in product(both(name), (False, True), (False, True)):
        line = f"{operation}.{name} {'st' if st else ''} {'neg' if neg else ''} V1, V2, V3"
        got = run(line, "goya", income=INCOME, src_a=a, src_b=b, predicate=MASK)
        expected = [integer_operation(operation, x, y, name, saturate=st, negate=neg) for x, y in expected_of]
        assert np.array_equal(got.result, np.where(MASK, vector(expected, bits), INCOME))


@pytest.mark.parametrize("name", INTEGER_TYPES)
def test_whole_products(name: str) -> None:
    """Product j stands where an all_lanes conversion to the wider type would put element j.

    Source: docs/reference/tpc.md section 2.2.
    """
    bits, ratio = fmt(name).bits, 4 if fmt(name).bits == 8 else 2
    wide = bits * ratio
    mnemonic = f"mul.{name} {{}} {'A' if ratio == 4 else 'D'}4, V2, V3"
    income = tuple(RNG.integers(0, 256, 256).astype(np.uint8) for _ in range(ratio))
    for a, b, factors in both(name):
        for neg, mask in ((False, None), (True, MASK)):
            predicate = True if mask is None else mask
            got = run(mnemonic.format("neg" if neg else ""), "greco", income=income, src_a=a, src_b=b,
                      predicate=predicate).result  # type: ignore[arg-type]  # fmt: skip
            for j, (x, y) in enumerate(factors):
                product_of = number(x, name) * number(y, name) * (-1 if neg else 1) % (1 << wide)
                slot = slice(j // ratio * wide // 8, (j // ratio + 1) * wide // 8)
                held = int.from_bytes(got[j % ratio][slot].tobytes(), "little")
                kept = int.from_bytes(income[j % ratio][slot].tobytes(), "little")
                assert held == (product_of if mask is None or mask[j * bits // 8] else kept)


@pytest.mark.parametrize("name", ["i32", "u32"])
def test_doubled_upper_halves(name: str) -> None:
    row = INTS[name]
    for a, b, factors in both(name):
        got = run(f"mul.{name} double_and_round32 V1, V2, V3", income=INCOME, src_a=a, src_b=b)
        exact = [(2 * number(x, name) * number(y, name) + (1 << 31)) >> 32 for x, y in factors]
        assert codes(got.result, 32) == [pattern(max(row.low, min(row.high, value)), name) for value in exact]
        assert bool(got.remarks) == any(not row.low <= value <= row.high for value in exact)


@pytest.mark.parametrize("name", INTEGER_TYPES)
def test_scalar_products(name: str) -> None:
    for x, y in tpc_semantics_cases.pairs(name)[::9]:
        exact = number(x, name) * number(y, name)
        for switch, expected in (("", exact), ("upper32", exact >> 32), ("neg", -exact)):
            got = run(f"mul.{name} {switch} S1, S2, S3", slot="spu", income=0, src_a=x, src_b=y)
            assert got.result == expected % (1 << 32)


def test_products_that_the_generation_lacks() -> None:
    with pytest.raises(IllegalError):
        instruction("mul.i8 A4, V2, V3", "gaudi")
    assert isinstance(run("mul.i8 A4, V2, V3", "goya", income=(INCOME,) * 4, src_a=INCOME, src_b=INCOME), Effects)


@pytest.mark.parametrize("name", INTEGER_TYPES)
def test_logical_shifts(name: str) -> None:
    bits = fmt(name).bits
    values = vector(samples(name), bits)
    amounts = vector([*range(bits + 3), 1 << (bits - 1), (1 << bits) - 1], bits)
    for operation in ("shl", "shr"):
        by_vector = run(f"{operation}.{name} V1, V2, V3", income=INCOME, src_a=values, src_b=amounts)
        per_lane = list(zip(codes(values, bits), codes(amounts, bits), strict=True))
        assert codes(by_vector.result, bits) == [shifted(x, s, bits, operation) for x, s in per_lane]
        for amount in (0, 1, bits - 1, bits, 0x80000000, 0xFFFFFFFF):
            by_scalar = run(f"{operation}.{name} V1, V2, S3", income=INCOME, src_a=values, src_b=amount)
            expected = [shifted(x, amount, bits, operation) for x in codes(values, bits)]
            assert codes(by_scalar.result, bits) == expected
            x = samples(name)[7]
            in_scalar = run(f"{operation}.{name} S1, S2, S3", slot="spu", income=0, src_a=x, src_b=amount)
            assert in_scalar.result == shifted(x, amount, bits, operation)


def shifted(x: int, amount: int, bits: int, operation: str) -> int:
    if amount >= bits:
        return 0
    return (x << amount) % (1 << bits) if operation == "shl" else x >> amount


@pytest.mark.parametrize("name", INTEGER_TYPES)
@pytest.mark.parametrize("switches", ["", "rhu", "st=0", "rhu st=0"])
def test_arithmetic_shifts(name: str, switches: str) -> None:
    bits = fmt(name).bits
    rules = {"half_up": "rhu" in switches, "saturate": "st=0" not in switches}
    steps = [*range(-bits - 2, bits + 3), -128, 127]
    values = vector(samples(name), bits)
    # Above the lowest byte of a lane stands what must not count.
    noise = 0x5A5A5A00 & ((1 << bits) - 1)
    amounts = vector([step % 256 | noise for step in steps], bits)
    got = run(f"ash.{name} {switches} V1, V2, V3", "goya", income=INCOME, src_a=values, src_b=amounts)
    lanes = zip(codes(values, bits), np.resize(steps, 2048 // bits).tolist(), strict=True)
    assert codes(got.result, bits) == [arithmetic_shift(x, step, name, **rules) for x, step in lanes]
    # Of a scalar the low element counts: the vendor's Goya kernels make the amount of ash.i16 by sub.i16.
    for step in (each for each in (-200, -3, -1, 0, 1, 5, 200) if -(1 << bits - 1) <= each < 1 << bits - 1):
        got = run(f"ash.{name} {switches} V1, V2, S3", "goya", income=INCOME, src_a=values, src_b=step % (1 << 32))
        assert codes(got.result, bits) == [arithmetic_shift(x, step, name, **rules) for x in codes(values, bits)]
        got = run(f"ash.{name} {switches} S1, S2, {step}", "goya", slot="spu", income=0, src_a=samples(name)[9])
        assert got.result == arithmetic_shift(samples(name)[9], step, name, **rules)


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
            *(("and", None, and_), ("or", None, or_), ("xor", None, xor)),
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


TRUTH = {
    "eq": lambda o: o == 0, "less": lambda o: o is not None and o < 0, "leq": lambda o: o is not None and o <= 0,
    "neq": lambda o: o != 0, "grt": lambda o: o is not None and o > 0, "geq": lambda o: o is not None and o >= 0,
}  # fmt: skip


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


@pytest.mark.parametrize("name", ["f32", "f16"])
def test_float_sums_agree_with_a_second_library(name: str) -> None:
    """Nearest rounding is what the host's processor does, subnormals aside."""
    dtype = {"f32": np.float32, "f16": np.float16}[name]
    chip = with_options(target("gaudi2"), {"arithmetic_subnormals": "keep"})
    for a, b, _ in both(name):
        for operation, function in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply)):
            line = f"{operation}.{name} V1, V2, V3"
            got = run(line, chip=chip, income=INCOME, src_a=a, src_b=b).result.view(dtype)
            expected = function(a.view(dtype), b.view(dtype))
            assert np.array_equal(got, expected, equal_nan=True)
            assert np.array_equal(np.signbit(got)[got == 0], np.signbit(expected)[got == 0])


def test_shifts_that_are_refused() -> None:
    with pytest.raises(IllegalError, match="not modelled"):
        prepared("ash.i32 rhaz_rs V1, V2, V3", "greco")
    with pytest.raises(IllegalError, match="no ash of f32") as refusal:
        prepared("ash.f32 V1, V2, V3", "goya")
    assert refusal.value.legal == INTEGER_TYPES
