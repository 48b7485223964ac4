"""POPCNT to SHUFFLE on every code, against models written bit by bit (docs/reference/tpc.md section 5.4)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from oracle_formats import FLOATS, decode, fmt
from tpc_kernel_values import INCOME, MASK, every_code, run
from tpc_semantics_cases import INTEGER_TYPES, codes, instruction, samples, vector
from tpc_text import target

from castsim.isa.errors import IllegalError
from castsim.isa.tpc import FORMS
from castsim.machines.vliw import semantics
from castsim.machines.vliw.plans import NotComputed, prepare
from castsim.targets.options import with_options

TPC_FLOATS = ("f32", "bf16", "f16", "f8_143", "f8_152")
FORM_WORDS = ("exp_add_bias", "force_sign0", "force_sign1", "exp_is_num", "sign_lsb")
# --------------------------------------------------------------------------------------------- bits, one source


def population(code: int, bits: int, wanted: int) -> int:
    return sum((code >> place & 1) == wanted for place in range(bits))


def first_place(code: int, bits: int, wanted: int, *, top: bool) -> int:
    places = [place for place in range(bits) if (code >> place & 1) == wanted]
    return (max(places) if top else min(places)) if places else bits


@pytest.mark.parametrize("wanted", [0, 1])
@pytest.mark.parametrize("name", [*INTEGER_TYPES, *TPC_FLOATS])
def test_bits_of_every_code(name: str, wanted: int) -> None:
    bits = fmt(name).bits
    texts: dict[str, Callable[[int], int]] = {
        "popcnt": lambda code: population(code, bits, wanted),
        "find_first start_lsb": lambda code: first_place(code, bits, wanted, top=False),
        "find_first start_msb": lambda code: first_place(code, bits, wanted, top=True),
    }
    for text, model in texts.items():
        mnemonic, _, start = text.partition(" ")
        for some in every_code(name):
            got = run(f"{mnemonic}.{name} set={wanted} {start} V1, V2", src_a=vector(some, bits)).result
            assert codes(got, bits) == [model(int(code)) for code in some], text


def exponent_field(code: int, name: str) -> int:
    row = FLOATS[name]
    return code >> row.fraction_bits & (1 << row.exponent_bits) - 1


def bias_of(name: str) -> int:
    return {"f32": 127, "bf16": 127, "f16": 15, "f8_143": 7, "f8_152": 15}[name]


@pytest.mark.parametrize("name", TPC_FLOATS)
def test_exponents_of_every_code(name: str) -> None:
    bits = fmt(name).bits
    for some in every_code(name):
        field = [exponent_field(int(code), name) for code in some]
        biased = run(f"extract_exp.{name} biased V1, V2", src_a=vector(some, bits)).result
        plain = run(f"extract_exp.{name} V1, V2", src_a=vector(some, bits)).result
        assert codes(biased, bits) == field
        assert codes(plain, bits) == [(each - bias_of(name)) % (1 << bits) for each in field]


def test_the_word_of_goya_is_read_by_its_name_or_as_the_shared_functions_pass_it() -> None:
    some = np.asarray(samples("f32")[:64])
    field = [exponent_field(int(code), "f32") for code in some]
    opposite = with_options(target("goya"), {"exponent_word": "opposite"})
    for word, chip in product(("", "subtract_bias"), (None, opposite)):
        got = run(f"extract_exp.f32 {word} V1, V2", "goya", src_a=vector(some, 32), chip=chip).result
        subtracts = (word == "subtract_bias") == (chip is None)
        assert codes(got, 32) == [(each - 127 * subtracts) % (1 << 32) for each in field]


def class_of(code: int, name: str) -> int:
    """The class by the number's value, and the bits of NaN."""
    row, value = FLOATS[name], decode(code, name)
    narrow = row.bits == 8
    if value.kind == "nan":
        return 7 if narrow else 9 if code >> (row.fraction_bits - 1) & 1 else 8
    smallest = decode(1 << row.fraction_bits, name).magnitude
    size = 0 if value.kind == "inf" else 1 if value.magnitude >= smallest else 2 if value.magnitude else 3
    if narrow and size == 3:
        return 3
    return size if value.negative else (6 if narrow else 7) - size


@pytest.mark.parametrize("name", TPC_FLOATS)
def test_classes_of_every_code(name: str) -> None:
    bits = fmt(name).bits
    for some in every_code(name):
        got = run(f"fclass.{name} V1, V2", src_a=vector(some, bits)).result
        expected = [1 << class_of(int(code), name) for code in some]
        assert codes(got, bits) == [code & ((1 << bits) - 1) for code in expected]
    with pytest.raises(IllegalError, match="what limit computes"):
        run(f"fclass.{name} limit V1, V2", src_a=INCOME)


def test_options_of_find_first() -> None:
    some = np.asarray([0, 1, 0x80000000, 0x00010000, 0xFFFFFFFF])
    distance = with_options(target("gaudi2"), {"find_first_position": "distance", "find_first_none": "ones"})
    got = run("find_first.i32 set=1 start_msb V1, V2", src_a=vector(some, 32), chip=distance).result
    assert codes(got, 32)[:5] == [255, 31, 0, 15, 0]
    low = run("find_first.i32 set=1 start_lsb V1, V2", src_a=vector(some, 32), chip=distance).result
    assert codes(low, 32)[:5] == [255, 0, 31, 16, 0]


def test_scalars_and_predicates() -> None:
    assert run("popcnt.i32 set=1 S1, S2", slot="spu", income=0, src_a=0xFF00FF01).result == 17
    assert run("popcnt.i16 set=1 S1, S2", slot="spu", income=0, src_a=0xFFFF0003).result == 2
    assert run("find_first.u8 set=0 start_msb S1, 0x7f", slot="spu", income=0).result == 7
    assert run("extract_exp.f32 S1, S2", slot="spu", income=0, src_a=0x3F000000).result == 0xFFFFFFFF
    assert run("fclass.bf16 S1, S2", slot="spu", income=0, src_a=0x7F80).result == 1 << 7
    source = vector(samples("i16"), 16)
    whole = run("popcnt.i16 set=1 V1, V2", src_a=source).result
    masked = run("popcnt.i16 set=1 V1, V2, VP1", src_a=source, predicate=MASK).result
    assert np.array_equal(masked, np.where(MASK, whole, INCOME))
    assert run("popcnt.i16 set=1 V1, V2, SP1", src_a=source, predicate=False).result is INCOME


# -------------------------------------------------------------------------------------------------- FORM_FP_NUM


def formed(a: int, b: int, c: int, name: str, words: str) -> int:
    row = FLOATS[name]
    field = a & 0xFF if "exp_is_num" in words else exponent_field(a, name)
    field = (field + bias_of(name) * ("exp_add_bias" in words)) % (1 << row.exponent_bits)
    sign = b >> (row.bits - 1) & 1
    sign = b & 1 if "sign_lsb" in words else 0 if "force_sign0" in words else 1 if "force_sign1" in words else sign
    return sign << (row.bits - 1) | field << row.fraction_bits | c & (1 << row.fraction_bits) - 1


@pytest.mark.parametrize("name", TPC_FLOATS)
def test_numbers_are_formed_of_every_code(name: str) -> None:
    bits = fmt(name).bits
    rng = np.random.default_rng(3)
    signs = ("", "force_sign0", "force_sign1", "sign_lsb")
    choices = [" ".join(filter(None, words)) for words in product(("", "exp_add_bias"), signs, ("", "exp_is_num"))]
    for place, some in enumerate(every_code(name)):
        words = choices[place % len(choices)]
        other = [rng.permutation(some) for _ in range(2)]
        ordered = sorted(words.split(), key=FORM_WORDS.index)
        line = f"form_fp_num.{name} {' '.join(ordered)} V1, V2, V3, V4"
        sources = {f"src_{role}": vector(each, bits) for role, each in zip("abc", (some, *other), strict=True)}
        got = codes(run(line, **sources).result, bits)
        assert got == [formed(int(a), int(b), int(c), name, words) for a, b, c in zip(some, *other, strict=True)], line


def test_what_form_fp_num_refuses() -> None:
    with pytest.raises(IllegalError, match="force_sign0 and sign_lsb exclude each other"):
        run("form_fp_num.f32 force_sign0 sign_lsb V1, V2, V3, V4", src_a=INCOME, src_b=INCOME, src_c=INCOME)
    with pytest.raises(IllegalError, match="what special_func computes"):
        run("form_fp_num.f32 special_func=1 V1, V2, V3, V4", src_a=INCOME, src_b=INCOME, src_c=INCOME)


def test_an_exponent_and_its_parts_come_back() -> None:
    """The use that the vendor's functions make of both: a mantissa scaled to [0.5, 1) and its exponent."""
    some = np.abs(np.random.default_rng(1).normal(size=64).astype(np.float32)) * 1000
    mantissa, exponent = np.frexp(some)
    source = some.view(np.uint8)
    unbiased = run("extract_exp.f32 V1, V2", src_a=source).result.view(np.int32)
    assert np.array_equal(unbiased + 1, exponent)
    line = "form_fp_num.f32 exp_add_bias force_sign0 exp_is_num V1, 0xff, V3, V4"
    assert np.array_equal(run(line, src_b=source, src_c=source).result.view(np.float32), mantissa)


# ------------------------------------------------------------------------------------------------------ SHUFFLE


def shuffled(value: bytes, directions: bytes, income: bytes, width: int) -> list[int]:
    out = list(income)
    for place in range(256):
        lane = place - place % width
        dual, chosen = place // 64 * 64, directions[lane]
        element = (chosen & 0x1F) % (32 // width)
        group = 32 if chosen & 0x20 else 0
        if directions[place] & 0x80:
            out[place] = value[dual + group + element * width + place % width]
    return out


@pytest.mark.parametrize("name", ["u8", "i8", "f8_143", "i16", "bf16", "f32", "u32"])
def test_shuffles(name: str) -> None:
    rng = np.random.default_rng(5)
    for _ in range(40):
        value, directions = (rng.integers(0, 256, 256).astype(np.uint8) for _ in range(2))
        got = run(f"shuffle.{name} V1, V2, V3", src_a=value, src_b=directions).result
        expected = shuffled(value.tobytes(), directions.tobytes(), INCOME.tobytes(), fmt(name).bits // 8)
        assert got.tolist() == expected
        masked = run(f"shuffle.{name} V1, V2, V3, VP1", src_a=value, src_b=directions, predicate=MASK).result
        assert masked.tolist() == np.where(MASK, expected, INCOME).tolist()


def test_directions_of_public_kernels() -> None:
    """0x81808180 in every word copies the first 16-bit element of a dual group (u8); 0x80 and 0x82 floats 0 and 2."""
    value = np.arange(256, dtype=np.uint8)
    first = np.full(64, 0x81808180, np.uint32).view(np.uint8)
    got = run("shuffle.u8 V1, V2, V3", src_a=value, src_b=first).result.view(np.uint16)
    assert np.array_equal(got, np.repeat(value.view(np.uint16)[::32], 32))
    for direction, lane in ((0x80, 0), (0x82, 2)):
        whole = np.full(256, direction, np.uint8)
        floats = run("shuffle.f32 V1, V2, V3", src_a=value, src_b=whole).result.view(np.uint32)
        assert np.array_equal(floats, np.repeat(value.view(np.uint32)[lane::16], 16))


# ---------------------------------------------------------------------------------------------- what is not computed


@pytest.mark.parametrize("text", ["st_tnsr_s 0x1, I2, S3", "st_tnsr_sqz 0x1, 0x0, I2, V3"])
def test_values_that_no_source_states_are_refused_by_name(text: str) -> None:
    with pytest.raises(IllegalError, match="its values are not modelled") as refusal:
        run(text, slot="store", src_a=(0, 0, 0, 0, 0), src_c=0, income=None)
    assert "castsim run --timing-only" in refusal.value.legal


def test_all_but_two_instructions_have_values() -> None:
    """One spelling of each instruction outside memory and control that `semantics` leaves out, or its stores."""
    texts = {
        "load": ("lookup BV32 V1, V2, 1", "lookup_1c BV32 V1, V2, 1", "lookup_2c BV32 D2, V4, 1", "prefetch AD1"),
        "goya": ("lookup_c0 BV32 V1, V2, 1", "lookup_c1c2 BV32 D2, V4, 1"),
        "spu": ("udiv.u32 Z2, S4, S5",),
        "gaudi": ("udiv_4step.u32 Z2, S4, S5",),
        "steps": ("udiv_step.u32 Z2, S4, S5",),
        "store": ("aso", "event spu 1", "st_tnsr_s 0x1, I2, S3", "st_tnsr_sqz 0x1, 0x0, I2, V3"),
        "vpu": (
            *("mac.f32 V1, V2, V3", "madd.f32 V1, V2, V3, V4", "msac.i8 normalize_c V1, V2, V3, V4, V5"),
            *(f"{name}.f32 V1, V2" for name in ("extract_exp", "fclass", "brev")),
            *(
                "popcnt.f32 set=1 V1, V2",
                "find_first.f32 set=1 start_msb V1, V2",
                "form_fp_num.f32 V1, V2, V3, V4",
                "shuffle.u8 V1, V2, V3",
            ),
            "rounded.f32 exp V1, V2, V3, V4, 0x100",
            *("calc_fp_special.f32 func=exp V1, V2, V3", "get_lut_entry_and_interval_start.f32 D2, V4, 17"),
        ),
    }
    places = {"goya": ("goya", "load"), "gaudi": ("gaudi", "spu"), "steps": ("goya", "spu")}
    found = {}
    for slot, some in texts.items():
        for text in some:
            read = instruction(text, *places.get(slot, ("gaudi2", slot)))
            found[read.mnemonic] = not isinstance(
                prepare(read, target(places.get(slot, ("gaudi2",))[0])).unit, NotComputed
            )
    left_out = {
        form.mnemonic
        for form in FORMS
        if form.memory is None and not semantics.computes(SimpleNamespace(mnemonic=form.mnemonic))  # type: ignore[arg-type]
    } - {"halt", "loop", "jmpr", "jmpa"}
    assert left_out == found.keys()
    assert {mnemonic for mnemonic, has in found.items() if not has} == {"st_tnsr_s", "st_tnsr_sqz"}
