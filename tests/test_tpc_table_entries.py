"""GET_LUT_ENTRY_AND_INTERVAL_START, CALC_FP_SPECIAL, BREV and the divisions against exact models written apart.

Rules: docs/reference/tpc.md sections 5.4 to 5.6; what is inferred there is an option.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from oracle_formats import FLOATS, decode, fmt
from tpc_kernel_values import INCOME, MASK, every_code, run
from tpc_semantics_cases import INTEGER_TYPES, codes, vector
from tpc_text import GENERATIONS, target

from castsim.isa.errors import IllegalError
from castsim.isa.tpc import parse
from castsim.isa.tpc.encoding import assemble, disassemble
from castsim.targets.options import with_options
from castsim.targets.tpc_encoding import encoding_of

WIDE = ("f32", "bf16", "f16")
PAIR = (INCOME, INCOME[::-1].copy())


@pytest.mark.parametrize("name", [*INTEGER_TYPES, "f32", "bf16", "f16"])
def test_bits_in_the_opposite_order(name: str) -> None:
    bits = fmt(name).bits
    for some in every_code(name):
        got = run(f"brev.{name} V1, V2", src_a=vector(some, bits)).result
        assert codes(got, bits) == [int(f"{int(code):0{bits}b}"[::-1], 2) for code in some]
    assert run(f"brev.{name} S1, S2", slot="spu", income=0, src_a=1).result == 1 << (bits - 1)


# ----------------------------------------------------------------------------------------------------------- entries


@pytest.mark.parametrize("name", WIDE)
@pytest.mark.parametrize("kept", [0, 2, 6, 7])
def test_entry_and_start_of_every_code(name: str, kept: int) -> None:
    """The interval is one of 2**kept of equal length in the binade of x; x lies in it."""
    row = FLOATS[name]
    shift = row.fraction_bits - kept
    for some in every_code(name):
        got = run(
            f"get_lut_entry_and_interval_start.{name} D2, V4, {shift}", income=PAIR, src_a=vector(some, row.bits)
        ).result
        entries, starts = (codes(part, row.bits) for part in got)
        for code, entry, start in zip(map(int, some), entries, starts, strict=True):
            x, begin = decode(code, name), decode(start, name)
            if x.kind in ("nan", "inf"):
                continue
            least = decode(1 << row.fraction_bits, name).magnitude
            binade = least if x.magnitude < least else 2 ** math.floor(math.log2(x.magnitude))
            low = 0 if x.magnitude < least else binade
            assert begin.magnitude == low + binade * entry / 2**kept
            assert begin.magnitude <= x.magnitude < begin.magnitude + binade / 2**kept or x.magnitude == begin.magnitude
            assert begin.negative == x.negative


def test_a_predicate_keeps_bytes_of_both_registers() -> None:
    source = vector(range(1 << 15, (1 << 15) + 128), 16)
    text = "get_lut_entry_and_interval_start.bf16 D2, V4, 3"
    whole, masked = (
        run(text + end, income=PAIR, src_a=source, predicate=p).result for end, p in (("", True), (", VP1", MASK))
    )
    for new, kept, old in zip(whole, masked, PAIR, strict=True):
        assert np.array_equal(kept, np.where(MASK, new, old))


@pytest.mark.parametrize("word", ["tanh", "sqrt_rsqrt", "sin_cos", "log", "opt", "exp0"])
def test_entries_that_no_source_states_are_refused(word: str) -> None:
    with pytest.raises(IllegalError, match="no source states"):
        run(f"get_lut_entry_and_interval_start.bf16 {word} D2, V4, 3", income=PAIR, src_a=INCOME)


def test_parity_stands_above_the_fraction_under_its_option() -> None:
    chip = with_options(target("gaudi2"), {"lut_entry_variants": "inferred"})
    some = np.float32([1, 1.5, 2, 3, 4, 0.5])
    got = run("get_lut_entry_and_interval_start.f32 sqrt_rsqrt D2, V4, 17", chip=chip, income=PAIR,
              src_a=np.resize(some, 64).view(np.uint8)).result  # fmt: skip
    odd = [(int(np.floor(np.log2(x))) + 127) % 2 for x in some]
    assert codes(got[0], 32)[:6] == [
        64 * o + int((x / 2 ** np.floor(np.log2(x)) - 1) * 64) for o, x in zip(odd, some, strict=True)
    ]


@pytest.mark.parametrize(("name", "kept"), [("f32", 6), ("f16", 5), ("bf16", 4)])
@pytest.mark.parametrize("variant", ["sin_cos", "tanh"])
def test_equal_intervals_from_zero_on_under_its_option(variant: str, name: str, kept: int) -> None:
    """Every code of 16 bits: the interval holds x, its number is that of equal intervals below 1, then of binades."""
    chip, row = with_options(target("gaudi2"), {"lut_entry_variants": "inferred"}), FLOATS[name]
    text = f"get_lut_entry_and_interval_start.{name} {variant} D2, V4, {row.fraction_bits - kept}"
    for some in every_code(name):
        got = run(text, chip=chip, income=PAIR, src_a=vector(some, row.bits)).result
        entries, starts = (codes(part, row.bits) for part in got)
        for code, entry, start in zip(map(int, some), entries, starts, strict=True):
            x = decode(code, name)
            if x.kind in ("nan", "inf") or x.magnitude >= (1 if variant == "sin_cos" else 8):
                continue
            binade = 0 if x.magnitude < 1 or variant == "sin_cos" else math.floor(math.log2(x.magnitude)) + 1
            length = Fraction(1, 2**kept) * (1 if binade == 0 else 2 ** (binade - 1))
            first = 0 if binade == 0 else 2 ** (binade - 1)
            number = math.floor((Fraction(x.magnitude) - first) / length)
            assert entry == number + binade * 2**kept
            assert Fraction(decode(start, name).magnitude) == first + number * length
            assert decode(start, name).negative == x.negative


# --------------------------------------------------------------------------------------------------- special results

SAMPLES = [
    *(("-inf", -math.inf), ("-normal", -1.5), ("-subnormal", None), ("-0", -0.0), ("+0", 0.0)),
    *(("+subnormal", None), ("+normal", 1.5), ("+inf", math.inf), ("nan", math.nan), ("nan", math.nan)),
]


def by_numpy(function: str, x: float, y: float) -> float:
    """What IEEE 754 says, by NumPy's float64 functions, of representatives of two classes."""
    with np.errstate(all="ignore"):
        if function == "rsqrt":
            return float(np.float64(1) / np.sqrt(np.float64(x)))
        if function in ("recip", "div"):
            return float(np.float64(1 if function == "recip" else x) / np.float64(x if function == "recip" else y))
        if function == "pow":
            return float(np.power(np.float64(x), np.float64(y)))
        return float(getattr(np, function)(np.float64(x)))


def representatives(number: int, *, flushed: bool) -> list[float]:
    """Numbers of a class, far from and near to one; those of a subnormal are zero where it is flushed."""
    name, value = SAMPLES[number]
    if value is not None and name.endswith("normal"):
        sign = math.copysign(1, value)
        return [sign * each for each in (0.75, 1.0, 2.0, 3.0, 3.5)]
    if value is None:
        sign = -1.0 if name[0] == "-" else 1.0
        return [math.copysign(0.0, sign)] if flushed else [sign * 2.0**-140, sign * 2.0**-130]
    return [value]


def expected(function: str, first: int, second: int, *, flushed: bool) -> float | None:
    """The result that all members of the classes share, if it is 0, 1, infinite or NaN; else None."""
    binary = function in ("div", "pow")
    others = representatives(second, flushed=flushed) if binary else [1.0]
    found = {repr(by_numpy(function, x, y)) for x, y in product(representatives(first, flushed=flushed), others)}
    if len(found) > 1:
        return None
    (only,) = found
    value = float(only)
    finite = SAMPLES[first][0] not in ("-inf", "-0", "+0", "+inf", "nan") and not (
        flushed and SAMPLES[first][1] is None
    )
    if finite and not math.isnan(value) and function not in ("div", "pow"):
        return None
    zero = SAMPLES[second][0] in ("-0", "+0") or (flushed and SAMPLES[second][1] is None)
    if finite and value == 1 and function == "pow" and not zero:
        return None  # of float64, which rounds
    return value


def code_of(value: float, name: str) -> int:
    row = FLOATS[name]
    infinite = ((1 << row.exponent_bits) - 1) << row.fraction_bits
    if math.isnan(value):
        return (1 << (row.bits - 1)) - 1
    magnitude = (
        infinite
        if math.isinf(value)
        else 0
        if value == 0
        else ((1 << (row.exponent_bits - 1)) - 1) << row.fraction_bits
    )
    return magnitude | (math.copysign(1, value) < 0) << (row.bits - 1)


@pytest.mark.parametrize("name", WIDE)
@pytest.mark.parametrize("function", ["recip", "rsqrt", "sqrt", "log", "exp", "tanh", "div", "pow"])
def test_results_of_all_classes_by_the_functions_themselves(name: str, function: str) -> None:
    bits, flushed = fmt(name).bits, name != "f16"
    pairs = list(product(range(10), range(10)))
    lanes = 2048 // bits
    for start in range(0, 100, lanes):
        some = pairs[start : start + lanes]
        one, two = (vector([1 << pair[k] for pair in some], bits) for k in (0, 1))
        got = codes(run(f"calc_fp_special.{name} func={function} V1, V2, V3", src_a=one, src_b=two).result, bits)
        old = codes(INCOME, bits)
        for place, pair in enumerate(some):
            wanted = expected(function, *pair, flushed=flushed)
            assert got[place] == (old[place] if wanted is None else code_of(wanted, name)), (
                SAMPLES[pair[0]],
                SAMPLES[pair[1]],
            )


def test_no_class_is_no_result_and_scalars_do_alike() -> None:
    none = np.zeros(256, np.uint8)
    assert np.array_equal(run("calc_fp_special.f32 func=recip V1, V2, V3", src_a=none, src_b=none).result, INCOME)
    text = "calc_fp_special.bf16 func=recip S1, S2, S3"
    assert run(text, slot="spu", income=0xABCD, src_a=1 << 4, src_b=0).result == 0x7F80
    assert run(text, slot="spu", income=0xABCD, src_a=1 << 6, src_b=0).result == 0xABCD
    for option, line in (("special_results", text), ("division_values", "udiv.u32 Z2, S4, S5")):
        with pytest.raises(IllegalError, match=option):
            run(line, slot="spu", chip=with_options(target("gaudi2"), {option: "refuse"}), income=0, src_a=1, src_b=1)


def test_limit_of_classes_is_ignored_on_request() -> None:
    chip = with_options(target("gaudi2"), {"class_limit": "ignore"})
    some = vector(range(256), 16)
    with_limit = run("fclass.bf16 limit V1, V2", chip=chip, src_a=some).result
    assert np.array_equal(with_limit, run("fclass.bf16 V1, V2", src_a=some).result)


# --------------------------------------------------------------------------------------------------------- divisions


def operands(bits: int) -> list[tuple[int, int]]:
    if bits == 8:
        return list(product(range(256), range(1, 256)))[::7]
    rng = np.random.default_rng(bits)
    top = (1 << bits) - 1
    edges = (1, 2, 3, top, top - 1, top >> 1, (top >> 1) + 1, 10)
    random = [(int(rng.integers(top)), int(rng.integers(1, top) >> int(rng.integers(bits))) or 1) for _ in range(500)]
    return [*product((0, *edges), edges), *random]


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize(("generation", "mnemonic", "steps"), [("goya", "udiv_step", 1), ("gaudi", "udiv_4step", 4)])
def test_steps_make_a_whole_division(generation: str, mnemonic: str, steps: int, bits: int) -> None:
    for dividend, divisor in operands(bits)[:: 1 if bits == 8 else 3]:
        pair = dividend
        for step in range(0, bits, steps):
            pair = run(f"{mnemonic}.u{bits} Z2, S4, {step}", generation, slot="spu", income=pair, src_a=divisor).result
        quotient, remainder = divmod(dividend, divisor)
        assert pair == quotient | remainder << 32


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_whole_divisions(bits: int) -> None:
    swapped = with_options(target("gaudi2"), {"division_pair": "remainder_first"})
    for dividend, divisor in operands(bits):
        quotient, remainder = divmod(dividend, divisor)
        given = {"slot": "spu", "src_a": dividend, "src_b": divisor}
        assert run(f"udiv.u{bits} Z2, S4, S5", income=0, **given).result == quotient | remainder << 32
        assert run(f"udiv.u{bits} S2, S4, S5", income=0, **given).result == quotient
    assert run("udiv.u32 Z2, S4, S5", chip=swapped, slot="spu", income=0, src_a=17, src_b=5).result == 2 | 3 << 32


def test_steps_need_a_pair() -> None:
    with pytest.raises(IllegalError, match="a step needs a pair") as refusal:
        run("udiv_step.u32 S3, S4, 0", "goya", slot="spu", income=0, src_a=1)
    assert refusal.value.legal == ("Z2",)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_variants_are_encoded_and_read_back(generation: str) -> None:
    tables = encoding_of(target(generation))
    for word in ("", "tanh ", "sqrt_rsqrt ", "sin_cos ", "log "):
        text = f"nop; nop; get_lut_entry_and_interval_start.f32 {word}D4, V2, 0x11; nop"
        code = assemble(parse(f"{text}\n", target(generation).dialect), tables).code
        assert disassemble(code, tables).lines[0].text == text
