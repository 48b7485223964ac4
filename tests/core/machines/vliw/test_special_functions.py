"""Special functions of TPC-C: values by exact arithmetic, correctly rounded values, tables of the user, counts.

Rules: docs/reference/tpc.md section 3.1.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from kit.tpc_machine import chip, nops, ran
from kit.tpc_semantics_cases import samples
from kit.tpc_text import GENERATIONS, target
from oracle_formats import decode
from oracle_tpc import float_operation, fused, nearby

from castsim.isa.errors import CastsimError, IllegalError, ReadError
from castsim.isa.tpc.parser import parse
from castsim.machines.vliw.lookup_tables import BINARY, KNOWN, rounded
from castsim.targets.tpc_compiler import FunctionKind, SpecialFunction, library_functions, special_functions
from castsim.targets.vliw import VliwTarget
from castsim.tools.tpc_binary.assembler import assemble, disassemble
from castsim.tools.tpc_binary.encoding_tables import encoding_of
from castsim.tools.tpc_compiler.builtin_calls import (
    FunctionProgram,
    call_function,
    descriptor_call,
    function_program,
)
from castsim.tools.tpc_compiler.builtin_sequences import find_function
from castsim.tools.tpc_lint.lint_checking import lint

INFINITY, MINUS_INFINITY, NAN = 0x7F800000, 0xFF800000, 0x7FFFFFFF


def _fma(a: int, b: int, c: int, *, neg: bool = False) -> int:
    return fused(a, b, c, "f32", "f32", "RHNE", negate=neg)


def _op(name: str, a: int, b: int) -> int:
    return float_operation(name, a, b, "f32", "RHNE", flush=True)


def _number(code: int) -> Fraction:
    value = decode(code, "f32")
    return -value.magnitude if value.negative else value.magnitude


def _float(number: int) -> int:
    """The code of a small integer."""
    if number == 0:
        return 0
    size = abs(number)
    exponent = size.bit_length() - 1
    return (number < 0) << 31 | (exponent + 127) << 23 | (size << 23 >> exponent) & 0x7FFFFF


def divide(x: int, y: int, rc: int) -> int:
    q = _op("mul", x, rc)
    return _fma(_fma(y, q, x, neg=True), rc, q)


EXP = (0x39506967, 0x3AB743CE, 0x3C088908, 0x3D2AA9C1, 0x3E2AAAAA, 0x3F000000)


def exp_cephes(x: int, *, full: bool = True) -> int:
    kind = decode(x, "f32").kind
    if full:
        if kind == "nan":
            return x
        if x == MINUS_INFINITY or (kind == "finite" and _number(x) <= _number(0xC2AEAC08)):
            return 0
        if x == INFINITY or _number(x) >= _number(0x42B171AA):
            return INFINITY
    z = nearby(_fma(x, 0x3FB8AA3B, 0x3F000000), "f32", "RD")
    r = _fma(z, 0xB95E8083, _fma(z, 0x3F318000, x, neg=True), neg=True)
    square, poly = _op("mul", r, r), EXP[0]
    for each in EXP[1:]:
        poly = _fma(poly, r, each)
    return (_fma(poly, square, _op("add", r, 0x3F800000)) + (int(_number(z)) << 23)) & 0xFFFFFFFF


LOG = (0x3D9021BB, 0xBDEBD1B8, 0x3DEF251A, 0xBDFE5D4F, 0x3E11E9BF, 0xBE2AAE50, 0x3E4CCEAC, 0xBE7FFFFC, 0x3EAAAAAA)


def log(x: int, *, binary: bool, full: bool = True) -> int:
    if full:
        value = decode(x, "f32")
        if value.kind == "nan" or (value.negative and value.kind == "inf"):
            return NAN
        if value.kind == "inf":
            return INFINITY
        if value.magnitude == 0:
            return MINUS_INFINITY
        if value.negative:
            return NAN
    e = (x >> 23 & 255) - 127 + 1
    m = x & 0x807FFFFF | 126 << 23
    s = _op("sub", m, 0x3F3504F3) >> 31
    e -= s
    m = _op("add", m, _op("add", _op("mul", _float(s), m), 0xBF800000))
    square, p = _op("mul", m, m), LOG[0]
    for each in LOG[1:]:
        p = _fma(p, m, each)
    t = _op("sub", _op("mul", m, _op("mul", square, p)), _op("mul", square, 0x3F000000))
    r = _op("add", _op("mul", t, 0x3EE2A8ED), _op("mul", m, 0x3EE2A8ED))
    for each in (t, m, _float(e)):
        r = _op("add", r, each)
    return r if binary else _op("mul", r, 0x3F317218)


ROWS = {row.name: row for row in library_functions()}
ARITHMETIC = tuple(n for n, row in ROWS.items() if row.kind in (FunctionKind.SEQUENCE, FunctionKind.TABLE))
AS_COUNTED = {
    *("s_div_fast_f32", "v_exp_cephes_f32", "v_exp_cephes_fast_f32", "v_log_f32", "v_log_fast_f32", "v_log2_f32"),
    *("v_log2_fast_f32", "v_reciprocal_fast_f32", "v_sqrt_f32", "v_tanh_fast_f32", "v_div_fast_f32", "v_rsqrt_f32"),
    *("v_rsqrt_fast_f32", "v_sqrt_fast_f32", "v_tanh_f32", "v_reciprocal_f32"),
}
"""Functions with as many instructions as the vendor's library."""


def program(name: str, where: str | VliwTarget = "gaudi2") -> FunctionProgram:
    return function_program(ROWS[name], target(where) if isinstance(where, str) else where)


def called(name: str, *given: np.ndarray, where: str | VliwTarget = "gaudi2", **tables: np.ndarray) -> np.ndarray:
    found = program(name, where)
    result = call_function(found, dict(zip(found.operands, given, strict=True)), tables)
    assert result.stale_reads == ()
    assert result.claimed is (not found.tables or bool(tables))
    return np.asarray(result.outputs[found.output]).view(np.uint32)


def f32(codes: list[int] | tuple[int, ...]) -> np.ndarray:
    return np.array(codes, np.uint32).view(np.float32)


EDGES = (0xC2AEAC08, 0xC2AEAC07, 0xC2AEAC09, 0x42B171AA, 0x42B171A9, 0x42B171AB, 0x3F3504F3, 0x3F3504F2, 0x3F800001)


def operands(name: str) -> list[int]:
    """Boundary codes, and numbers where the functions have something to compute."""
    rng = np.random.default_rng(len(name))
    some = np.concatenate([rng.uniform(-90, 90, 100), 2.0 ** rng.uniform(-120, 120, 100)]).astype(np.float32)
    return [*samples("f32"), *EDGES, *some.view(np.uint32).tolist()]


MODELS: dict[str, Callable[[int], int]] = {
    "v_exp_cephes_f32": exp_cephes,
    "v_log_f32": lambda x: log(x, binary=False),
    "v_log2_f32": lambda x: log(x, binary=True),
    "v_log_fast_f32": lambda x: log(x, binary=False, full=False),
    "v_log2_fast_f32": lambda x: log(x, binary=True, full=False),
}


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("name", MODELS)
def test_instructions_compute_as_the_algorithm_says(name: str, generation: str) -> None:
    codes = operands(name)
    if "fast" in name:  # without the selects nothing is promised of special operands
        codes = [code for code in codes if 0x00800000 <= code < 0x7F800000]
    got = called(name, f32(codes), where=generation)
    assert got.tolist() == [MODELS[name](code) for code in codes]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_exp_without_selects(generation: str) -> None:
    codes = [code for code in operands("exp") if -87 < float(f32([code])[0]) < 88]
    got = called("v_exp_cephes_fast_f32", f32(codes), where=generation)
    assert got.tolist() == [exp_cephes(code, full=False) for code in codes]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_fast_division_on_lanes_and_in_scalar_registers(generation: str) -> None:
    rng = np.random.default_rng(5)
    x, y = (rng.uniform(0.5, 4096, 200).astype(np.float32) * np.float32(2) ** rng.integers(-9, 9, 200) for _ in "xy")
    x, y = x.astype(np.float32), y.astype(np.float32)
    rc = (1 / y.astype(np.float64)).astype(np.float32)
    got = called("s_div_fast_f32", x, y, rc, where=generation)
    exact = [divide(*some) for some in zip(*(each.view("u4").tolist() for each in (x, y, rc)), strict=True)]
    assert got.tolist() == exact
    assert np.array_equal(got.view(np.float32), (x.astype(np.float64) / y).astype(np.float32))
    found = program("s_div_fast_f32", generation)
    start = {f"S{k}": int(each[7].view(np.uint32)) for k, each in enumerate((x, y, rc))}
    kept = "// castsim: tensor 0 r out f32 [64, 1]\n// castsim: reg I2 = [0, 0, 0, 0, 0]\n"
    stored = f"mov.f32 V1, S3; nop; nop; nop\n{nops(8)}nop; nop; nop; st_tnsr 0x0, I2, V1\n{nops(6)}nop; halt"
    text = kept + found.kernel.text().replace("nop; halt", f"{nops(8)}{stored}")
    result = ran(text, generation, **start).outputs["r"].reshape(-1).view(np.uint32)
    assert set(result.tolist()) == {exact[7]}


EXACT: dict[str, Callable[..., np.ndarray]] = {
    "acos": np.arccos, "asin": np.arcsin, "asinh": np.arcsinh, "cos": np.cos, "div": lambda x: x / x, "exp": np.exp,
    "pow": lambda x: x**x, "pow2": np.exp2, "reciprocal": np.reciprocal, "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin, "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh,
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in ARITHMETIC if ROWS[name].kind is FunctionKind.TABLE])
def test_values_without_a_table_are_named_as_not_claimed(name: str) -> None:
    found = program(name)
    x = np.random.default_rng(4).uniform(0.01, 1, (3, 50)).astype(np.float32)
    result = call_function(found, dict.fromkeys(found.operands, x))
    (warning,) = result.warnings
    assert "not claimed to be the chip's" in str(warning)
    assert all(f"--in {each.table}=FILE" in str(warning) for each in found.tables)
    assert (result.claimed, result.outputs[found.output].shape, result.calls) == (False, (3, 50), 3)
    exact = EXACT[name.split("_")[1]](x.astype(np.longdouble)).astype(np.float32)
    assert np.array_equal(result.outputs[found.output], exact)


def test_correct_rounding_where_f64_does_not_decide() -> None:
    """Halfway powers, huge angles, and values checked with 60 digits."""
    half = np.float32([4097, 4097, 3]).view(np.uint32)
    two = np.float32([2, 0.5, 40]).view(np.uint32)
    got = rounded("pow", half, two).view(np.float32)
    nearest = [Fraction(4097) ** 2, None, Fraction(3) ** 40]
    for value, exact in zip(got, nearest, strict=True):
        if exact is not None:
            below, above = (abs(Fraction(float(np.nextafter(value, np.float32(side)))) - exact) for side in (0, np.inf))
            assert abs(Fraction(float(value)) - exact) <= min(below, above)
    with localcontext() as context:
        context.prec = 60
        root = Decimal(4097).sqrt()
    assert abs(Decimal(float(got[1])) - root) < Decimal(float(np.spacing(got[1]))) / 2
    huge = np.float32([1e22, 2.0**100]).view(np.uint32)
    # sin(1e22) and sin(2**100) of f32(1e22) are those of NumPy's f64, which reduces by many digits of pi
    sines = np.sin(huge.view(np.float32).astype("f8")).astype("f4")
    assert rounded("sin", huge).view(np.float32).tolist() == sines.tolist()
    assert rounded("acos", np.float32([-1, 2]).view(np.uint32)).tolist() == [0x40490FDB, 0x7FFFFFFF]


@pytest.mark.parametrize("function", KNOWN)
def test_decimal_arithmetic_agrees_with_f64(function: str) -> None:
    from castsim.machines.vliw import lookup_tables as calling  # noqa: PLC0415 - its inner rule is tried here

    x = np.random.default_rng(8).uniform(0.01, 0.99, 12).astype(np.float32)
    given = (x, x[::-1].copy()) if function in BINARY else (x,)
    plain = rounded(function, *(each.view(np.uint32) for each in given))
    for place, code in enumerate(plain):
        near = np.uint32(code).view(np.float32)
        for start in (near, np.nextafter(near, np.float32(0))):
            decided = calling._decided(function, tuple(float(each[place]) for each in given), start)
            assert decided == code


def taylor(function: Callable, starts: np.ndarray, step: float) -> np.ndarray:  # type: ignore[type-arg]
    """Coefficients by differences of f64 at the beginnings of intervals."""
    h = step / 2
    y0, y1, y2 = (function(starts + k * h) for k in range(3))
    c2 = (y2 - 2 * y1 + y0) / (2 * h * h)
    return np.stack([y0, (y1 - y0) / h - c2 * h, c2], axis=1).astype(np.float32)


RCP = taylor(lambda s: 1 / s, 1 + np.arange(128) / 128, 1 / 128)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_table_of_reciprocals_is_computed_with_to_the_bit(generation: str) -> None:
    x = np.float32(2) ** np.random.default_rng(9).integers(-60, 60, 300) * np.random.default_rng(3).uniform(1, 2, 300)
    x = (x * np.where(np.arange(300) % 2, 1, -1)).astype(np.float32)
    got = called("v_reciprocal_fast_f32", x, where=generation, rcp=RCP)
    expected = []
    for code in x.view(np.uint32).tolist():
        entry, away = code >> 16 & 127, _op("sub", code & 0x7FFFFF | 0x3F800000, code & 0x7F0000 | 0x3F800000)
        c0, c1, c2 = RCP.view(np.uint32)[entry].tolist()
        r = _fma(_fma(c2, away, c1), away, c0)
        exponent = (r >> 23) - (code >> 23 & 255) + 127
        expected.append(code & 0x80000000 | exponent << 23 | r & 0x7FFFFF)
    assert got.tolist() == expected
    assert np.max(np.abs(got.view(np.float32) * x.astype(np.float64) - 1)) < 1e-6


def inferred(name: str) -> VliwTarget:
    return chip(name, lut_entry_variants="inferred")


PARTS = np.arange(64) / 64
SINES = np.concatenate([taylor(lambda s: np.sinc(s / np.pi), PARTS, 1 / 64), taylor(np.cos, PARTS, 1 / 64)])
POWERS = taylor(np.exp2, PARTS, 1 / 64)
STARTS = np.concatenate([np.arange(64) / 64, *(2.0**k * (1 + np.arange(64) / 64) for k in range(3))])
TANH = taylor(lambda s: np.where(s < 1, np.tanh(np.maximum(s, 1e-9)) / np.maximum(s, 1e-9), np.tanh(s)), STARTS, 1 / 64)


def test_roots_in_the_order_of_parity() -> None:
    """An even exponent has an odd field: its entries are the upper 64."""
    table = np.concatenate([taylor(np.sqrt, 2 + 2 * PARTS, 1 / 32), taylor(np.sqrt, 1 + PARTS, 1 / 64)])
    x = np.exp(np.random.default_rng(1).uniform(-60, 60, 500)).astype(np.float32)
    got = called("v_sqrt_f32", x, where=inferred("gaudi2"), sqrt=table).view(np.float32)
    assert np.max(np.abs(got / np.sqrt(x.astype(np.float64)) - 1)) < 1e-6
    edges = f32([0, 0x80000000, 0x7F800000, 0xBF800000, 0x7FC00000])
    special = called("v_sqrt_f32", edges, where=inferred("gaudi"), sqrt=table)
    assert special.tolist() == [0, 0x80000000, 0x7F800000, 0x7FFFFFFF, 0x7FFFFFFF]
    for name, function, low, high in (
        ("v_acos_cephes_f32", np.arccos, -0.999, 0.999),
        ("v_asinh_f32", np.arcsinh, -50, 50),
    ):
        x = np.random.default_rng(2).uniform(low, high, 500).astype(np.float32)
        got = called(name, x, where=inferred("greco"), sqrt=table).view(np.float32)
        assert np.max(np.abs(got - function(x.astype(np.float64)))) < 3e-6


@pytest.mark.parametrize(("name", "function"), [("v_sin_f32", np.sin), ("v_cos_f32", np.cos)])
def test_sines_and_cosines_in_all_octants(name: str, function: Callable) -> None:  # type: ignore[type-arg]
    x = np.random.default_rng(3).uniform(-50, 50, 1000).astype(np.float32)
    got = called(name, x, where=inferred("gaudi2"), sin_cos=SINES).view(np.float32)
    assert np.max(np.abs(got - function(x.astype(np.float64)))) < 2e-6
    far = called(name, f32([0x46010000, 0x4B800000, 0x7F800000, 0x7FC00000]), where=inferred("gaudi2"), sin_cos=SINES)
    assert far.tolist() == [0, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF]


def test_reciprocals_of_roots_and_quotients() -> None:
    table = np.concatenate([taylor(lambda s: 1 / np.sqrt(s), start * (1 + np.arange(128) / 128), start / 128)
                            for start in (2, 1)])  # fmt: skip
    x = np.exp(np.random.default_rng(1).uniform(-60, 60, 500)).astype(np.float32)
    for name in ("v_rsqrt_f32", "v_rsqrt_fast_f32"):
        got = called(name, x, where=inferred("gaudi2"), rsqrt=table).view(np.float32)
        assert np.max(np.abs(got * np.sqrt(x.astype(np.float64)) - 1)) < 1e-6
    edges = f32([0, 0x80000000, 0x7F800000, 0xBF800000, 0x7FC00000])
    infinities = [0x7F800000, 0xFF800000]
    found = called("v_rsqrt_f32", edges, where=inferred("goya"), rsqrt=table).tolist()
    assert found == [*infinities, 0, 0x7FFFFFFF, 0x7FFFFFFF]
    assert called("v_reciprocal_f32", edges, rcp=RCP).tolist() == [*infinities, 0, 0xBF800000, 0x7FFFFFFF]
    y = np.where(np.arange(500) % 2, x, -x)
    for name in ("v_div_f32", "v_div_fast_f32"):
        got = called(name, x[::-1].copy(), y, rcp=RCP).view(np.float32)
        exact = x[::-1].astype(np.float64) / y
        fine = (np.abs(exact) < 1e37) & (np.abs(exact) > 1e-37)
        assert np.max(np.abs(got / exact - 1)[fine]) < 2e-6


def test_tangent_power_and_tanh() -> None:
    rng = np.random.default_rng(5)
    x = rng.uniform(-1.5, 1.5, 500).astype(np.float32)
    got = called("v_tan_cephes_f32", x, rcp=RCP).view(np.float32)
    assert np.max(np.abs(got / np.tan(x.astype(np.float64)) - 1)) < 4e-5  # a third of 1e-4 where it leaves out the cube
    base, power = rng.uniform(0.1, 8, 500).astype(np.float32), rng.uniform(-5, 5, 500).astype(np.float32)
    got = called("v_pow_f32", base, power, pow2=POWERS).view(np.float32)
    assert np.max(np.abs(got / base.astype(np.float64) ** power - 1)) < 5e-6
    signs = np.float32([[-2, -2, -2, 7, 0], [3, 2, 0.5, 0, 2]])
    signed = called("v_pow_f32", *signs, pow2=POWERS).view(np.float32)
    assert np.round(signed[:2], 4).tolist() == [-8, 4]
    assert np.isnan(signed[2])
    assert signed[3:].tolist() == [1, 0]
    x = rng.uniform(-80, 80, 500).astype(np.float32)
    for name, exact in (("v_exp", np.exp), ("v_exp_fast", np.exp), ("v_pow2", np.exp2), ("v_pow2_fast", np.exp2)):
        got = called(f"{name}_f32", x, pow2=POWERS).view(np.float32)
        assert np.max(np.abs(got / exact(x.astype(np.float64)) - 1)) < 1e-6, name
    special = called("v_exp_f32", f32([0xFF800000, 0xC2D00000, 0x42D00000, 0x7F800000, 0x7FC00000, 0]), pow2=POWERS)
    assert special.tolist() == [0, 0, 0x7F800000, 0x7F800000, 0x7FC00000, 0x3F800000]
    x = rng.uniform(-10, 10, 500).astype(np.float32)
    got = called("v_tanh_fast_f32", x, where=inferred("gaudi"), tanh=TANH).view(np.float32)
    assert np.max(np.abs(got - np.tanh(x.astype(np.float64)))) < 1e-4
    with pytest.raises(IllegalError, match="which entry variant tanh uses"):
        called("v_tanh_fast_f32", x, tanh=TANH)


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_programs_have_the_published_counts_lint_clean_and_make_binaries(name: str, generation: str) -> None:
    found = program(name, generation)
    assert found.in_published_counts is (name in AS_COUNTED)
    text, dialect = found.text(3), target(generation).dialect
    chosen = target(generation)
    rules = {each.rule for each in lint(parse(text, dialect, "f.tpc"), chosen)}
    assert rules <= ({"unwritten register", "unread result"} if name == "s_div_fast_f32" else set())
    code = assemble(parse(text, dialect), encoding_of(chosen)).code
    lines = disassemble(code, encoding_of(chosen)).lines
    mnemonics = [each.split()[0] for line in lines for each in (line.text or "").split(";") if each.strip() != "nop"]
    written = [
        text for bundle in text.splitlines() if ";" in bundle for text in bundle.split(";") if text.strip() != "nop"
    ]
    assert mnemonics == [each.split()[0] for each in written]


RECIPROCALS = np.zeros((128, 3), np.float32)
"""As large as the table of reciprocals."""


def found_name(name: str, generation: str) -> str:
    row = find_function(name, target(generation))
    assert isinstance(row, SpecialFunction)
    return row.builtin


def test_names_long_and_short() -> None:
    assert found_name("cos", "gaudi") == "__builtin_v_cos_f32"
    for name in ("div_fast", "s_div_fast_f32"):
        assert found_name(name, "goya") == "__builtin_s_div_fast_f32"
    assert [found_name(each, "goya") for each in ("div", "exp", "rsqrt")] == ["v_div_f32", "v_exp_f32", "v_rsqrt_f32"]
    assert found_name("log2", "gaudi2") == "v_log2_f32"
    assert found_name("acos", "greco") == "__builtin_v_acos_cephes_f32"
    assert found_name("tanh", "gaudi") == "v_tanh_f32"
    for row in special_functions():
        for generation in row.generations:
            assert found_name(row.builtin, generation) == row.builtin
    with pytest.raises(ReadError, match="several builtins are called 'get_pad_value'"):
        find_function("get_pad_value", target("goya"))
    with pytest.raises(IllegalError, match="gaudi has no builtin 'exp_i8'") as refusal:
        find_function("exp_i8", target("gaudi"))
    assert refusal.value.legal == ("--target goya",)
    assert find_function("cosine", target("gaudi")) is None


def test_the_five_of_goya_are_refused_by_name() -> None:
    unpublished = [row for row in special_functions() if row.kind is FunctionKind.UNPUBLISHED]
    assert len(unpublished) == 5
    for row in unpublished:
        with pytest.raises(IllegalError, match="its instructions and number formats are not public"):
            function_program(row, target("goya"))


def test_bad_operands_and_tables() -> None:
    x = np.ones(3, np.float32)
    cases: list[tuple[str, dict[str, np.ndarray], dict[str, np.ndarray], str]] = [
        ("v_cos_f32", {}, {}, "also needs x"),
        ("v_cos_f32", {"x": x, "z": x}, {}, "has no operand 'z'"),
        ("v_cos_f32", {"x": x.astype(np.float64)}, {}, "x: "),
        ("v_cos_f32", {"x": x[:0]}, {}, "x is empty"),
        ("v_pow_f32", {"x": x, "y": x[:2]}, {}, "operands of several shapes"),
        ("v_cos_f32", {"x": x}, {"rcp": RECIPROCALS}, "reads no table 'rcp'"),
        ("v_cos_f32", {"x": x}, {"sin_cos": RECIPROCALS[:64]}, "input 'sin_cos' has shape"),
    ]
    for name, given, tables, message in cases:
        with pytest.raises(CastsimError) as refusal:
            call_function(function_program(ROWS[name], target("gaudi2")), given, tables)
        assert message in refusal.value.message


@pytest.mark.parametrize(
    ("name", "generation", "given", "address", "stored"),
    [
        ("set_pad_value_int", "goya", {"tensor": 0, "value": -5}, 0x408, 0xFFFFFFFB),
        ("get_dim_stride", "goya", {"tensor": 1, "dimension": 0}, 0x460, None),
        ("get_dim_stride", "gaudi2", {"tensor": 2, "dimension": 0}, 0xB4, None),
        ("set_dim_stride", "greco", {"tensor": 1, "dimension": 4, "value": 7}, 0x38 + 0x10 + 32 + 4, 7),
        ("set_pad_value_short", "gaudi", {"tensor": 3, "value": -2}, 0x400 + 3 * 0x38 + 8, 0xFFFEFFFE),
        ("set_pad_value_float", "gaudib", {"tensor": 0, "value": 1.5}, 0x408, 0x3FC00000),
    ],
)
def test_words_of_descriptors(
    name: str, generation: str, given: dict[str, int], address: int, stored: int | None
) -> None:
    found = descriptor_call(ROWS[name], target(generation), given)
    assert (found.address, found.stored) == (address, stored)
    assert f"{address:#x}" in found.text()
    rules = {each.rule for each in lint(parse(found.text(), target(generation).dialect), target(generation))}
    assert rules <= {"unread result"}


def test_results_of_descriptors_by_their_types() -> None:
    word = 0xFFFE8180
    expected = {"short": -32384, "ushort": 0x8180, "char": -128, "uchar": 0x80, "float": float("nan")}
    for kind, value in expected.items():
        found = descriptor_call(ROWS[f"get_pad_value_{kind}"], target("gaudi"), {"tensor": 0, "word": word})
        assert found.result == value or (kind == "float" and np.isnan(value))
    for given, message in (
        ({}, "takes tensor"),
        ({"tensor": 99}, "tensor=99"),
        ({"tensor": 0, "size": 1}, "has no argument 'size'"),
        ({"tensor": 0, "value": 40000}, "does not fit the type"),
    ):
        row = ROWS["set_pad_value_short"]
        with pytest.raises(ReadError, match=message):
            descriptor_call(row, target("gaudi"), {"value": 1, **given} if "value" not in given else given)


@pytest.mark.parametrize(("name", "function", "ulp"), [("v_exp_cephes_f32", np.exp, 1.26), ("v_log_f32", np.log, 1.67)])
def test_accuracy_is_the_measured_one(name: str, function: Callable, ulp: float) -> None:  # type: ignore[type-arg]
    rng = np.random.default_rng(2)
    x = (rng.uniform(-87, 88, 6400) if "exp" in name else np.exp(rng.uniform(-80, 80, 6400))).astype(np.float32)
    exact = function(x.astype(np.float64))
    got = called(name, x).view(np.float32).astype(np.float64)
    kept = np.abs(exact) > (0.1 if "log" in name else 0)
    assert np.max((np.abs(got - exact) / np.spacing(np.abs(exact).astype(np.float32)))[kept]) <= ulp
