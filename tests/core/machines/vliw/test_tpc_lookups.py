"""Look-ups of tables that a program declares, and instructions on table entries, classes and divisions."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from kit import tpc_semantics_cases
from kit.tpc_machine import END, chip, nops, ran
from kit.tpc_semantics_cases import INTEGER_TYPES, codes, every_code, instruction, state, vector
from kit.tpc_text import dialect, target
from oracle_formats import FLOATS, decode, fmt

from castsim.isa.errors import CastsimError, IllegalError, ReadError
from castsim.isa.tpc.parser import canonical_text, parse
from castsim.isa.tpc.program import TableDeclaration
from castsim.machines.vliw.lookup_tables import DeclaredTables
from castsim.machines.vliw.plans import prepare
from castsim.machines.vliw.semantics.operands import OperandValues
from castsim.targets.description import with_options
from castsim.tools.tpc_lint.lint_checking import lint

RNG = np.random.default_rng(6)
INCOME = RNG.integers(0, 256, 256).astype(np.uint8)
run = partial(tpc_semantics_cases.run, income=INCOME)


def declared(text: str, generation: str = "gaudi2") -> TableDeclaration:
    (found,) = parse(f"// castsim: table {text}\nnop; nop; nop; nop\n", dialect(generation)).declarations
    assert isinstance(found, TableDeclaration)
    return found


def looked_up(text: str, table: str, values: np.ndarray, indices: np.ndarray, generation: str = "gaudi2", **more):  # type: ignore[no-untyped-def]
    """Run one look-up of a table, `values` of shape (entries, values)."""
    known = declared(table, generation)
    tables = DeclaredTables.of([known], {known.name: values.reshape(-1)})
    chosen = more.pop("options", None)
    found = prepare(
        instruction(text, generation, "load"), chip(generation, **chosen) if chosen else target(generation), tables
    )
    sources = {"src_a": indices.astype(f"<u{256 // indices.size}").view(np.uint8), **more.pop("sources", {})}
    return found(OperandValues(sources, more.pop("income", INCOME)), state()).result


def words(*arguments, bits: int = 32, **more) -> list[list[int]]:  # type: ignore[no-untyped-def]
    """The lanes of what a look-up leaves, register by register."""
    pair = arguments[0].split()[-3].startswith("D")
    found = looked_up(*arguments, **({"income": (INCOME, INCOME)} if pair else {}), **more)
    return [list(part.view(f"<u{bits // 8}")) for part in (found if pair else [found])]


LATER = ("gaudi", "gaudib", "greco", "gaudi2")


@pytest.mark.parametrize("generation", LATER)
@pytest.mark.parametrize(("function", "entries"), [(0, 256), (127, 256), (129, 128), (300, 64), (511, 64)])
def test_words_of_every_group(generation: str, function: int, entries: int) -> None:
    values = RNG.integers(0, 1 << 32, (entries, 3)).astype(np.uint32)
    indices = RNG.integers(0, entries, 64)
    for text, shape, columns, got in (
        ("lookup_2c BV32 D2", f"f32 [3, {entries}]", [0, 1, 2], [1, 2]),
        ("lookup_2c BV32 D2", f"u32 [2, {entries}]", [1, 2], [1, 2]),
        ("lookup_1c BV32 V2", f"f32 [3, {entries}]", [0, 1, 2], [0]),
        ("lookup BV32 V2", f"i32 [{entries}]", 2, [2]),
        ("lookup_1c BV32 V2", f"i32 [{entries}]", 2, [2]),
    ):
        table = f"t {function} {shape}"
        found = words(f"{text}, V4, {function}", table, values[:, columns].copy(), indices, generation)
        assert found == [list(values[indices, k]) for k in got]


@pytest.mark.parametrize("generation", LATER)
def test_every_entry_of_halves_in_both_registers(generation: str) -> None:
    """128 lanes with indices of 16 bits; 1C reads tables of one value, 2C of two, the first in the lower register."""
    values = RNG.permutation(1 << 16)[:512].astype(np.uint16).reshape(256, 2)
    for start in (0, 128):
        indices = RNG.permutation(np.arange(start, start + 128))
        both = [list(values[indices, k]) for k in (0, 1)]
        assert words("lookup_2c BV16 D2, V4, 1", "t 1 bf16 [2, 256]", values, indices, generation, bits=16) == both
        one = words("lookup_1c BV16 V2, V4, 1", "t 1 i16 [256]", values[:, 1].copy(), indices, generation, bits=16)
        assert one == both[1:]


@pytest.mark.parametrize(
    ("word", "bits", "part"),
    [("bv16_low", 16, 0), ("i16_high", 16, 1), *((f"bv8_{k}", 8, k) for k in range(4)), ("bv8_element_2", 8, 2)],
)
@pytest.mark.parametrize("pair", [False, True])
def test_parts_of_goya_write_their_lanes_only(word: str, bits: int, part: int, pair: bool) -> None:
    values = RNG.integers(0, 1 << 32, (64, 2 if pair else 1)).astype(np.uint32)
    indices = RNG.integers(0, 64, 2048 // bits)
    income = (INCOME, INCOME[::-1].copy()) if pair else INCOME
    name, dest, shape = ("lookup_c1c2", "D2", "[2, 64]") if pair else ("lookup", "V2", "[64]")
    found = looked_up(f"{name} {word} {dest}, V4, 40", f"t 40 u32 {shape}", values, indices, "goya", income=income)
    for number, register in enumerate(found if pair else [found]):
        before = (income[number] if pair else income).view(f"<u{bits // 8}")
        expected = [
            int(values[index, number]) >> part * bits & (1 << bits) - 1 if lane % (32 // bits) == part else int(old)
            for lane, (index, old) in enumerate(zip(indices, before, strict=True))
        ]
        assert list(register.view(f"<u{bits // 8}")) == expected


@pytest.mark.parametrize(("number", "entries"), [(0, 256), (4, 256), (1, 128), (6, 64), (3, 32)])
@pytest.mark.parametrize("generation", ["greco", "gaudi2"])
def test_a_pointer_in_a_register_names_the_table(generation: str, number: int, entries: int) -> None:
    values = RNG.integers(0, 1 << 32, entries).astype(np.uint32)
    indices = RNG.integers(0, entries, 64)
    given = "lookup BV32 V2, V4, S3", f"t lut_ptr {number} f32 [{entries}]", values, indices
    assert words(*given, generation, sources={"src_b": number}) == [list(values[indices])]
    with pytest.raises(ReadError, match=r"no table is declared for lut_ptr 9"):
        looked_up(*given, sources={"src_b": 9})


def test_options_of_entries_and_bytes() -> None:
    values, indices = np.arange(64, dtype=np.uint32) * 3, np.arange(64) + 5
    with pytest.raises(IllegalError, match=r"lane 59 selects entry 64 of table t, which has 64 here") as refusal:
        looked_up("lookup BV32 V2, V4, 256", "t 256 u32 [64]", values, indices)
    assert refusal.value.legal == ("0 .. 63",)
    found = words("lookup BV32 V2, V4, 256", "t 256 u32 [64]", values, indices, options={"lookup_beyond": "modulo"})
    assert found == [list(values[indices % 64])]
    halves, bytes_ = RNG.integers(0, 1 << 16, 256).astype(np.uint16), np.arange(256)
    with pytest.raises(IllegalError, match="what BV8_1 takes from an entry"):
        looked_up("lookup_1c BV8_1 V2, V4, 0", "t 0 u16 [256]", halves, bytes_)
    part = looked_up("lookup_1c BV8_1 V2, V4, 0", "t 0 u16 [256]", halves, bytes_, options={"lookup_bytes": "part"})
    assert np.array_equal(part, np.where(bytes_ % 2 == 1, halves[bytes_] >> 8, INCOME))


@pytest.mark.parametrize(
    ("generation", "text", "message", "legal"),
    [
        ("gaudi2", "t 0 f32 [128]", "256 entries of 1 to 3 values of f32, not [128]", "[3, 256]"),
        ("gaudi2", "t 129 bf16 [3, 128]", "128 entries of 1 to 2 values of bf16", "[2, 128]"),
        ("gaudi2", "t lut_ptr 3 f32 [64]", "the table of lut_ptr 3 has 32 entries", "[32]"),
        ("gaudi2", "t 0 f8_143 [256]", "cannot read entries of f8_143", "bf16"),
        ("goya", "t 0 bf16 [256]", "look-ups of goya cannot read entries of bf16", "f32"),
        ("goya", "t 64 f32 [64]", "function id 64 does not exist", "0 .. 63"),
        ("gaudi2", "t 512 f32 [64]", "function id 512 does not exist", "0 .. 511"),
        ("gaudi", "t lut_ptr 0 f32 [256]", "gaudi has no look-ups with lut_ptr", "table NAME NUMBER .."),
        ("gaudi2", "t 256 f32 [64] = 1, 2, 3", "declared with 64 values, but 3 follow", "64 numbers"),
        ("gaudi2", "t 256 [64]", "malformed declaration of table", "table NAME [lut_ptr] NUMBER"),
    ],
)
def test_bad_tables_are_refused_where_they_stand(generation: str, text: str, message: str, legal: str) -> None:
    with pytest.raises(CastsimError) as refusal:
        parse(f"\n  // castsim: table {text}\n", dialect(generation), "k.tpc")
    error = refusal.value
    assert message in error.message
    assert str(error.span).startswith("k.tpc:2:15")
    assert any(legal in each for each in error.legal)


def test_tables_are_declared_once_and_printed_as_read() -> None:
    for second in ("t 2 f32 [256]", "u 1 f32 [256]"):
        with pytest.raises(ReadError, match="declared twice"):
            declared(f"t 1 f32 [256]\n// castsim: table {second}")
    text = "// castsim: table t lut_ptr 3 bf16 [2, 32] = t.npy\nnop; nop; nop; nop\n"
    assert canonical_text(text, dialect("gaudi2")) == text


PROGRAM = """// castsim: tensor 0 x in i32 [64, 1]
// castsim: tensor 1 y out f32 [64, 1]
// castsim: reg I0 = [0, 0, 0, 0, 0]
// castsim: table square 256 f32 [64]{content}
ld_tnsr V1, 0x0, I0; nop; nop; nop
{gap}{lookup}; nop; nop; nop
{gap}nop; nop; nop; st_tnsr 0x1, I0, V2
{end}"""


def program(content: str = "", lookup: str = "lookup BV32 V2, V1, 0x100") -> str:
    return PROGRAM.format(content=content, gap=nops(8), lookup=lookup, end=END)


X = np.arange(64, dtype=np.int32)[::-1].copy()
SQUARES = np.arange(64, dtype=np.float32) ** 2


def test_contents_come_from_the_run_the_line_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("squares.npy", SQUARES)
    Path("squares.csv").write_text("\n".join(str(number * number) for number in range(64)))
    line = ", ".join(str(n * n) if n % 2 else f"{SQUARES.view(np.uint32)[n]:#x}" for n in range(64))
    given = {"x": X, "square": SQUARES}
    runs = [("", given), *((f" = {content}", {"x": X}) for content in (line, "squares.npy", "squares.csv"))]
    for content, inputs in runs:
        found = ran(program(content), inputs=inputs)
        assert np.array_equal(found.outputs["y"].reshape(-1), SQUARES[X])
        assert not found.stale_reads
    other = ran(program(f" = {line}"), inputs={"x": X, "square": SQUARES + 1}).outputs["y"]
    assert np.array_equal(other.reshape(-1), SQUARES[X] + 1)


def test_bad_contents_are_refused_where_the_table_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("short.npy", SQUARES[:63])
    np.save("wide.npy", SQUARES.astype(np.float64))
    for content, message in (
        ("short.npy", "short.npy holds 63 elements, but table square has 64"),
        ("wide.npy", "float64"),
        ("none.npy", "none.npy"),
        ("none.csv", "none.csv"),
        (", ".join(["1"] * 63 + ["x"]), "'x' is not a number of f32"),
    ):
        with pytest.raises(ReadError) as refusal:
            ran(program(f" = {content}"), inputs={"x": X})
        assert message in refusal.value.message
        assert str(refusal.value.span).startswith("test.tpc:4:13")
        assert refusal.value.legal or "none" in content
    with pytest.raises(ReadError, match="no input for square, which the program declares"):
        ran(program(), inputs={"x": X})


@pytest.mark.parametrize(
    ("lookup", "message", "legal"),
    [
        ("lookup BV32 V2, V1, 0x101", "no table is declared for function id 257", "256 (square)"),
        ("lookup_1c BV16 V2, V1, 0x100", "BV16 reads 16-bit values, but table square (line 4) has f32", "bf16"),
        ("lookup_2c BV32 D2, V1, 0x100", "needs 2 values per entry, but table square (line 4) has 1", "[2, 64]"),
    ],
)
def test_wrong_uses_are_refused_by_run_and_lint(lookup: str, message: str, legal: str) -> None:
    text = program(" = square.npy", lookup)
    for refuse in (
        lambda: ran(text, inputs={"x": X}, values=False),
        lambda: lint(parse(text, dialect("gaudi2"), "test.tpc"), chip("gaudi2")),
    ):
        with pytest.raises(CastsimError) as refusal:
            refuse()
        assert message in refusal.value.message
        assert str(refusal.value.span).startswith("test.tpc:14:1")
        assert legal in refusal.value.legal


WIDE = ("f32", "bf16", "f16")
PAIR = (INCOME, INCOME[::-1].copy())


@pytest.mark.parametrize("name", [*INTEGER_TYPES, "f32", "bf16", "f16"])
def test_bits_in_the_opposite_order(name: str) -> None:
    bits = fmt(name).bits
    for some in every_code(name):
        got = run(f"brev.{name} V1, V2", src_a=vector(some, bits)).result
        assert codes(got, bits) == [int(f"{int(code):0{bits}b}"[::-1], 2) for code in some]
    assert run(f"brev.{name} S1, S2", slot="spu", income=0, src_a=1).result == 1 << (bits - 1)


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
    zero, none = (
        SAMPLES[each][0] in ("-0", "+0") or (flushed and SAMPLES[each][1] is None) for each in (second, first)
    )
    finite = not none and SAMPLES[first][0] not in ("-inf", "+inf", "nan")
    if finite and not math.isnan(value) and function not in ("div", "pow"):
        return None
    if finite and value == 1 and function == "pow" and not zero:
        return None  # of float64, which rounds
    return value


def code_of(value: float, name: str) -> int:
    row = FLOATS[name]
    infinite = ((1 << row.exponent_bits) - 1) << row.fraction_bits
    if math.isnan(value):
        return (1 << (row.bits - 1)) - 1
    one = ((1 << (row.exponent_bits - 1)) - 1) << row.fraction_bits
    magnitude = infinite if math.isinf(value) else one * (value != 0)
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
            named = [SAMPLES[each] for each in pair]
            assert got[place] == (old[place] if wanted is None else code_of(wanted, name)), named


def test_no_class_is_no_result_and_scalars_do_alike() -> None:
    none = np.zeros(256, np.uint8)
    assert np.array_equal(run("calc_fp_special.f32 func=recip V1, V2, V3", src_a=none, src_b=none).result, INCOME)
    text = "calc_fp_special.bf16 func=recip S1, S2, S3"
    assert run(text, slot="spu", income=0xABCD, src_a=1 << 4, src_b=0).result == 0x7F80
    assert run(text, slot="spu", income=0xABCD, src_a=1 << 6, src_b=0).result == 0xABCD
    for option, line in (("special_results", text), ("division_values", "udiv.u32 Z2, S4, S5")):
        with pytest.raises(IllegalError, match=option):
            run(line, slot="spu", chip=with_options(target("gaudi2"), {option: "refuse"}), income=0, src_a=1, src_b=1)


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


def test_words_that_read_another_half_or_nothing_else() -> None:
    values = np.arange(64, dtype=np.uint32) * 7
    indices = np.arange(64) % 32
    upper = words("lookup BV32 upper_half V2, V4, 256", "t 256 u32 [64]", values, indices)
    assert upper == [list(values[indices + 32])]
    given = "t 256 u16 [64]", np.arange(64, dtype=np.uint16), np.arange(128) % 64
    assert words("lookup_1c BV16 V2, V4, 256", *given) == words("lookup_1c BV16 x2 V2, V4, 256", *given)
    with pytest.raises(IllegalError, match="what sbcd looks up"):
        looked_up("lookup BV32 sbcd V2, V4, 256", "t 256 u32 [64]", values, indices)
    with pytest.raises(IllegalError, match="upper_half needs a table of 64 entries"):
        looked_up("lookup BV32 upper_half V2, V4, 1", "t 1 u32 [256]", np.zeros(256, np.uint32), indices)


def test_an_undeclared_table_is_refused_only_for_values() -> None:
    text = "\n".join(line for line in program().splitlines() if "table" not in line) + "\n"
    assert ran(text, values=False).tree.root
    with pytest.raises(ReadError, match="no table is declared for function id 256") as refusal:
        ran(text, inputs={"x": X})
    assert refusal.value.legal == ("// castsim: table NAME 256 FORMAT [ENTRIES]",)
    assert str(refusal.value.span).startswith("test.tpc:13:1")


@pytest.mark.parametrize("word", ["tanh", "sqrt_rsqrt", "sin_cos", "log", "opt", "exp0"])
def test_entries_that_no_source_states_are_refused(word: str) -> None:
    with pytest.raises(IllegalError, match="no source documents"):
        run(f"get_lut_entry_and_interval_start.bf16 {word} D2, V4, 3", income=PAIR, src_a=INCOME)


def test_parity_stands_above_the_fraction_under_its_option() -> None:
    chip = with_options(target("gaudi2"), {"lut_entry_variants": "inferred"})
    some = np.float32([1, 1.5, 2, 3, 4, 0.5])
    got = run("get_lut_entry_and_interval_start.f32 sqrt_rsqrt D2, V4, 17", chip=chip, income=PAIR,
              src_a=np.resize(some, 64).view(np.uint8)).result  # fmt: skip
    odd = [(int(np.floor(np.log2(x))) + 127) % 2 for x in some]
    parts = [int((x / 2 ** np.floor(np.log2(x)) - 1) * 64) for x in some]
    assert codes(got[0], 32)[:6] == [64 * o + part for o, part in zip(odd, parts, strict=True)]


def test_limit_of_classes_is_ignored_on_request() -> None:
    chip = with_options(target("gaudi2"), {"class_limit": "ignore"})
    some = vector(range(256), 16)
    with_limit = run("fclass.bf16 limit V1, V2", chip=chip, src_a=some).result
    assert np.array_equal(with_limit, run("fclass.bf16 V1, V2", src_a=some).result)
