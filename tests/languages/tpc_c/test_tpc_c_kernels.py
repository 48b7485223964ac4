"""Kernels in C against models in NumPy and a direct interpreter of C, for every generation; the order of sums."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from kit.paths import ROOT
from languages.tpc_c.random_kernels import kernel

import castsim
from castsim.__main__ import main
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.reading import Language, Source
from castsim.languages.tpc_c.kernels import parts_of, tensor_given
from castsim.running.loaded import LaunchRequest
from castsim.running.program_loading import load
from castsim.running.program_runs import run_loaded

pytest.importorskip("pcpp")
PROGRAMS = ROOT / "programs" / "tpc_c"
Arrays = Mapping[str, np.ndarray]
f32 = np.float32


def fused(a: np.ndarray, b: np.ndarray | float, c: np.ndarray | float) -> np.ndarray:
    """a * b + c rounded once to f32; the product of two f32 is exact in f64."""
    return (a.astype(np.float64) * np.float64(b) + np.asarray(c, np.float64)).astype(f32)


def drawn(*shape: int, scale: float = 4.0) -> np.ndarray:
    return (np.random.default_rng(sum(shape)).standard_normal(shape) * scale).astype(f32)


def quantised(x: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(fused(x, f32(37.5), 12.0)), -32768, 32767).astype(np.int16)


def small_floats(x: np.ndarray) -> np.ndarray:
    """f8_143 with a largest finite value of 240 is e4m3 of IEEE; scaled and clamped first."""
    return np.clip((x * f32(20.5)).astype(f32), -240, 240).astype(ml_dtypes.float8_e4m3).view(np.uint8)


def nibbles(codes: np.ndarray, exponents: np.ndarray) -> np.ndarray:
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], f32)
    each = np.stack([codes & 15, codes >> 4], axis=-1).reshape(len(codes), -1)
    signed = np.where(each & 8, -values[each & 7], values[each & 7])
    return (signed * np.repeat(2.0 ** (exponents - 127.0), 32, axis=1)).astype(ml_dtypes.bfloat16)


def scaled_rows(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    top = np.abs(x).max(axis=1, keepdims=True)
    return (x * 2.0 ** -np.floor(np.log2(top))).astype(f32), np.repeat(top, 64, axis=1)


def normed(x: np.ndarray, gain: np.ndarray) -> np.ndarray:
    """The order of the sum: lanes of every vector, then lanes 32, 16, 8, 4, 2, 1 apart."""
    filled = np.zeros((len(x), -(-x.shape[1] // 64) * 64), f32)
    filled[:, : x.shape[1]] = x
    total = np.zeros((len(x), 64), f32)
    for part in np.split(filled, filled.shape[1] // 64, axis=1):
        total = fused(part, part, total)
    for step in (32, 16, 8, 4, 2, 1):
        total = total + total[:, np.arange(64) ^ step]
    value = total * f32(1 / x.shape[1]) + f32(1e-5)
    half = value * f32(0.5)
    guess = (0x5F3759DF - (value.view(np.int32) >> 1)).astype(np.int32).view(f32)
    for _ in range(4):
        guess = guess * fused(-(half * guess), guess, np.full_like(guess, 1.5))
    return x * guess[:, :1] * gain


@dataclass(frozen=True)
class Case:
    file: str
    tensors: Mapping[str, str]
    space: tuple[int, ...]
    inputs: Arrays
    expected: Callable[[], Arrays]
    args: Mapping[str, int | float] = field(default_factory=dict)
    targets: tuple[str, ...] = ("gaudi2",)


X = drawn(5, 300)
BYTES = np.random.default_rng(3).integers(-128, 128, (4, 500)).astype(np.int8)
CODES = np.random.default_rng(4).integers(0, 256, (3, 128)).astype(np.uint8)
EXPONENTS = np.random.default_rng(5).integers(110, 140, (3, 8)).astype(np.int32)
GAIN = drawn(300, scale=1.0)
MODERN = ("gaudi", "gaudib", "greco", "gaudi2")

CASES = [
    Case("cast_f32_bf16", {"x": "f32[300,5]", "y": "bf16[300,5]"}, (3, 5), {"x": X},
         lambda: {"y": X.astype(ml_dtypes.bfloat16)}, targets=MODERN),
    Case("cast_f32_f8", {"x": "f32[300,5]", "y": "f8_143[300,5]"}, (2, 5), {"x": X},
         lambda: {"y": small_floats(X)}, {"scale": 20.5}),
    Case("quantise_i16", {"x": "f32[300,5]", "y": "i16[300,5]"}, (3, 5), {"x": X * 200},
         lambda: {"y": quantised(X * 200)}, {"scale": 37.5, "zero": 12}, MODERN),
    Case("dequantise_i8", {"x": "i8[500,4]", "y": "f32[500,4]"}, (2, 4), {"x": BYTES},
         lambda: {"y": (BYTES.astype(f32) - f32(3)) * f32(0.37)}, {"scale": 0.37, "zero": 3.0}),
    Case("dequantise_mxfp4", {"codes": "u8[128,3]", "exponents": "i32[8,3]", "y": "bf16[256,3]"}, (2, 3),
         {"codes": CODES, "exponents": EXPONENTS}, lambda: {"y": nibbles(CODES, EXPONENTS)}),
    Case("row_maximum_scale", {"x": "f32[300,5]", "y": "f32[300,5]", "largest": "f32[64,5]"}, (1, 5), {"x": X},
         lambda: dict(zip(("y", "largest"), scaled_rows(X), strict=True)), targets=MODERN),
    Case("rms_norm", {"x": "f32[300,5]", "gain": "f32[300]", "y": "f32[300,5]"}, (1, 5), {"x": X, "gain": GAIN},
         lambda: {"y": normed(X, GAIN)}, {"inverse_width": 1 / 300, "epsilon": 1e-5}, MODERN),
]  # fmt: skip


def ran(case: Case, target: str, engines: int = 1, values: bool = True) -> Arrays:
    tensors = {name: tensor_given(name, text) for name, text in case.tensors.items()}
    request = LaunchRequest(tensors, case.space, engines)
    program = load(PROGRAMS / f"{case.file}.c", target, None, case.args, launch=request)
    result = run_loaded(program, case.inputs, stale_reads="stop")
    assert not result.stale_reads
    return {name: np.asarray(each) for name, each in result.outputs.items()}


def same_bits(found: np.ndarray, wanted: np.ndarray) -> bool:
    return np.array_equal(found.view(np.uint8), np.ascontiguousarray(wanted).view(np.uint8).reshape(
        found.view(np.uint8).shape))  # fmt: skip


@pytest.mark.parametrize(
    ("case", "target"), [(c, t) for c in CASES for t in c.targets], ids=lambda e: getattr(e, "file", e)
)
def test_every_value_is_that_of_the_model_whatever_the_engines(case: Case, target: str) -> None:
    wanted = case.expected()
    for engines in (1, 3) if target == case.targets[-1] else (1,):
        found = ran(case, target, engines)
        assert set(found) == set(wanted)
        for name, values in wanted.items():
            assert same_bits(found[name], values), (name, engines)


def test_a_generation_without_the_type_is_refused_at_its_line() -> None:
    with pytest.raises(IllegalError, match=r"minifloat256 is not available on gaudi; from gaudi2 on|minifloat is not"):
        ran(CASES[1], "gaudi")


@pytest.mark.parametrize("missing", ["y", "scale", "space"])
def test_what_a_launch_lacks_is_named(missing: str) -> None:
    case = CASES[1]
    tensors = {name: tensor_given(name, text) for name, text in case.tensors.items() if name != missing}
    args = {name: value for name, value in case.args.items() if name != missing}
    request = LaunchRequest(tensors, () if missing == "space" else case.space)
    with pytest.raises(ReadError, match="index space" if missing == "space" else missing) as caught:
        load(PROGRAMS / f"{case.file}.c", "gaudi2", None, args, launch=request)
    assert caught.value.legal


def test_parts_cover_the_index_space_once() -> None:
    for engines in range(1, 9):
        parts = parts_of((2, 7, 3), engines)
        taken = [o[1] + k for o, s in parts for k in range(s[1])]
        assert taken == list(range(7))
        assert all(size[0] == 2 and size[2] == 3 for _, size in parts)


def by_rows(tensors: str, body: str, before: str = "") -> str:
    """A kernel that does the same with each row of its part of the index space; `at` is the row's beginning."""
    return f"""void main({", ".join(f"tensor {name}" for name in tensors.split())})
{{
    const int5 start = get_index_space_offset();
    const int5 end = get_index_space_size() + start;
    {before}
    for (int row = start[1]; row < end[1]; row++)
    {{
        int5 at = {{0, row}};
        {body}
    }}
}}
"""


def loaded(folder: Path, text: str, target: str, engines: int = 1, **tensors: str) -> Any:
    """A kernel, on tensors of three rows."""
    path = folder / "kernel.c"
    path.write_text(text, encoding="utf-8")
    request = LaunchRequest({name: tensor_given(name, each) for name, each in tensors.items()}, (1, 3), engines)
    return load(path, target, None, {}, launch=request)


IN_ORDER = by_rows(
    "x y z",
    """int5 behind = {64, row};
        float128 f = {v_f32_ld_tnsr_b(at, x), v_f32_ld_tnsr_b(behind, x)};
        float128 promoted = (bfloat128)f;
        v_bf16_st_tnsr(at, y, convert_float128_to_bfloat128(promoted, SW_LINEAR | SW_RD));
        v_i16_st_tnsr(at, z, as_short128(f, SW_RZ));""",
)


@pytest.mark.parametrize("target", MODERN)
def test_casts_between_aggregates_keep_the_order_of_elements(tmp_path: Path, target: str) -> None:
    program = loaded(tmp_path, IN_ORDER, target, 2, x="f32[128,3]", y="out:bf16[128,3]", z="out:i16[128,3]")
    x = drawn(3, 128, scale=300.0)
    found = run_loaded(program, {"x": x}, stale_reads="stop").outputs
    assert same_bits(np.asarray(found["y"]), x.astype(ml_dtypes.bfloat16))
    assert same_bits(np.asarray(found["z"]), np.trunc(x).astype(np.int16))


STEP = """#define STEP(K) { float128 w; at[0] = K * 128; w.v1 = v_f32_ld_tnsr_b(at, x); at[0] += 64; \\
    w.v2 = v_f32_ld_tnsr_b(at, x); at[0] -= 64; v_bf16_st_tnsr(at, y, convert_float128_to_bfloat128(w, SW_LINEAR)); }
"""


@pytest.mark.parametrize("target", MODERN)
@pytest.mark.parametrize("before", ["", "int5 kept = at;"], ids=["straight", "rows"])
def test_unrolled_ordered_casts_do_not_live_together(tmp_path: Path, target: str, before: str) -> None:
    """Eight casts of two registers to one, whose temporaries are first written in part."""
    steps = " ".join(f"STEP({number})" for number in range(8))
    text = STEP + by_rows("x y", before + steps)
    if not before:
        text = STEP + f"void main(tensor x, tensor y)\n{{ int5 at = {{0}}; {steps} }}\n"
    rows = 3 if before else 1
    program = loaded(tmp_path, text, target, x=f"f32[1024,{rows}]", y=f"out:bf16[1024,{rows}]")
    x = drawn(rows, 1024, scale=300.0)
    found = run_loaded(program, {"x": x}, stale_reads="stop").outputs
    assert same_bits(np.asarray(found["y"]).reshape(rows, 1024), x.astype(ml_dtypes.bfloat16))
    assert not program.launch.scheduled.spilled


def test_more_values_than_registers_are_spilled_beside_arrays(tmp_path: Path) -> None:
    """Forty-five vectors and an array in local memory, read back: the values are those of NumPy."""
    count = 45
    body = "".join(
        f"at[0] = {64 * n}; float64 a{n} = v_f32_ld_tnsr_b(at, x); kept[{n % 4}] = a{n};\n" for n in range(count)
    )
    body += "float64 s = 0.0f;\n" + "".join(f"s = s * 0.5f + a{n};\n" for n in reversed(range(count)))
    body += "at[0] = 0; int k = row & 3; v_f32_st_tnsr(at, y, s + kept[k]);"
    program = loaded(tmp_path, by_rows("x y", body, "float64 kept[4];"), "gaudi2", x="f32[2880,3]", y="out:f32[64,3]")
    x = np.random.default_rng(1).integers(-8, 9, (3, 2880)).astype(f32)
    parts, want = x.reshape(3, count, 64), np.zeros((3, 64), f32)
    for number in reversed(range(count)):
        want = ((want * f32(0.5)).astype(f32) + parts[:, number]).astype(f32)
    last = [44, 41, 42]  # the last vector put into element 0, 1, 2
    want += np.stack([parts[row, last[row]] for row in range(3)])
    outcome = run_loaded(program, {"x": x}, stale_reads="stop")
    assert same_bits(np.asarray(outcome.outputs["y"]), want)
    assert program.launch.scheduled.spilled
    assert any("spilled" in str(each.text) for each in program._said(1))


LOOKED_UP = by_rows(
    "n table y",
    "v_f32_st_tnsr(at, y, v_f32_lookup(v_u32_ld_tnsr_b(at, n), 0, SW_BV32 | SW_LUT_PTR));",
    "set_lut_256(table);",
)


def test_a_tensor_is_a_table(tmp_path: Path) -> None:
    given = {"n": "u32[64,3]", "table": "f32[256]", "y": "f32[64,3]"}
    n, table = np.random.default_rng(1).integers(0, 256, (3, 64)).astype(np.uint32), drawn(256)
    program = loaded(tmp_path, LOOKED_UP, "gaudi2", 2, **given)
    found = run_loaded(program, {"n": n, "table": table}, stale_reads="stop").outputs["y"]
    np.testing.assert_array_equal(found, table[n])
    with pytest.raises(IllegalError, match="set_lut_256 is not available on greco; from gaudi2 on"):
        loaded(tmp_path, LOOKED_UP, "greco", 2, **given)


SPECIAL = by_rows(
    "x y",
    """float64 v = v_f32_ld_tnsr_b(at, x);
        v = exp_f32(v) + v_rsqrt_f32(v) + v_reciprocal_f32(v) + v_tanh_f32(v) + v_pow2_f32(v) + v_div_f32(v, v + 1);
        v_f32_st_tnsr(at, y, v);""",
)


@pytest.mark.parametrize("target", ["goya", "gaudi2"])
def test_functions_of_private_tables_are_correctly_rounded_and_say_so(tmp_path: Path, target: str) -> None:
    path = tmp_path / "special.c"
    path.write_text(SPECIAL, encoding="utf-8")
    given = {name: tensor_given(name, "f32[64,3]") for name in "xy"}
    program = load(path, target, None, {}, launch=LaunchRequest(given, (1, 3), 2))
    x = np.random.default_rng(1).uniform(0.1, 5, (3, 64)).astype(f32)
    d = x.astype(np.float64)
    found = run_loaded(program, {"x": x}, stale_reads="stop")
    parts = [np.exp(d), 1 / np.sqrt(d), 1 / d, np.tanh(d), np.exp2(d), d / (x + f32(1)).astype(np.float64)]
    total = parts[0].astype(f32)
    for part in parts[1:]:
        total = total + part.astype(f32)
    np.testing.assert_array_equal(found.outputs["y"], total)
    said = [str(each) for each in found.warnings if "unlike the chip's" in str(each)]
    assert len(said) == 6
    assert any("v_tanh_f32 is correctly rounded" in each and "--in tanh=FILE" in each for each in said)


def test_a_table_that_is_given_is_what_the_instructions_read(tmp_path: Path) -> None:
    power = by_rows("x y", "v_f32_st_tnsr(at, y, v_pow2_f32(v_f32_ld_tnsr_b(at, x)));")
    program = loaded(tmp_path, power, "gaudi2", x="f32[64,3]", y="f32[64,3]")
    x = np.random.default_rng(2).integers(-9, 9, (3, 64)).astype(f32)
    table = np.zeros((64, 3), f32)
    table[0, 0] = 1.5
    outputs = [run_loaded(program, {"x": x, **more}, stale_reads="stop").outputs["y"] for more in ({}, {"pow2": table})]
    np.testing.assert_array_equal(outputs[0], np.exp2(x))
    np.testing.assert_array_equal(outputs[1], np.exp2(x) * f32(1.5))


COUNT = int(os.environ.get("CASTSIM_RANDOM_KERNELS", "12"))
TENSORS = {"numbers": "i32[64,5]", "floats": "f32[64,5]", "results": "out:i32[64,10]", "float_results": "out:f32[64,5]"}


@pytest.mark.parametrize("seed", range(COUNT))
def test_a_kernel_computes_what_c_says(seed: int) -> None:
    text, run = kernel(seed, pragmas=seed % 2 == 0)
    target = ("gaudi2", "gaudi", "greco", "goya", "gaudib")[seed % 5]
    rng = np.random.default_rng(seed)
    numbers = rng.integers(-(1 << 31), 1 << 31, (5, 64)).astype(np.int32)
    floats = (rng.integers(-64, 64, (5, 64)) * 1024).astype(np.float32)
    a, b = (int(each) for each in rng.integers(-500, 500, 2))
    request = LaunchRequest({name: tensor_given(name, each) for name, each in TENSORS.items()}, (1,))
    program = load(Source("k.c", Language.KERNEL, text), target, None, {"a_in": a, "b_in": b}, launch=request)
    result = run_loaded(program, {"numbers": numbers, "floats": floats}, stale_reads="stop")
    assert not result.stale_reads
    given = {"v": numbers[0], "w": numbers[1], "u": numbers[2].view(np.uint32), "f": floats[3], "g": floats[4]}
    wanted = run({"a": a, "b": b, **given})
    found, found_floats = (np.asarray(result.outputs[name]) for name in ("results", "float_results"))
    for row, name in enumerate(("v", "w", "u")):
        assert np.array_equal(found[row], np.asarray(wanted[name]).view(np.int32)), (name, text)
    for row, name in ((3, "f"), (4, "g")):
        assert np.array_equal(found_floats[row], np.asarray(wanted[name])), (name, text)
    for row, name in enumerate("abcde", start=5):
        number = int(wanted[name])  # type: ignore[call-overload]
        assert (found[row] == np.array(number & 0xFFFFFFFF, np.uint32).view(np.int32)).all(), (name, number, text)


KERNEL = """void main(tensor a, tensor b, tensor y)
{
    int5 at = {0};
    float64 total = 0.5f;
    #pragma loop_unroll(4)
    for (int row = 0; row < 12; row++)
    {
        at[1] = row;
        total = v_f32_mac_b(v_f32_ld_tnsr_b(at, a), v_f32_ld_tnsr_b(at, b), total);
    }
    at[1] = 0;
    v_f32_st_tnsr(at, y, total);
}
"""
A, B = (np.random.default_rng(seed).standard_normal((12, 64)).astype(np.float32) for seed in (1, 2))


def added(start: np.ndarray, rows: range) -> np.ndarray:
    """Fused products and sums, each rounded once; a product of two f32 is exact in f64, and so are these sums."""
    for row in rows:
        exact = A[row].astype(np.float64) * B[row].astype(np.float64) + start.astype(np.float64)
        start = exact.astype(np.float32)
    return start


def model(order: str) -> np.ndarray:
    first, zero = np.full(64, 0.5, np.float32), np.zeros(64, np.float32)
    if order == "source":
        return added(first, range(12))
    sums = [added(zero if place else first, range(place, 12, 4)) for place in range(4)]
    total = sums[3]
    for each in (sums[2], sums[1], sums[0]):
        total = total + each
    return total


def summed(folder: Path, order: str, text: str = KERNEL) -> np.ndarray:
    (folder / "sum.c").write_text(text, encoding="utf-8")
    for name, array in (("a", A), ("b", B)):
        np.save(folder / f"{name}.npy", array)
    words = ["run", str(folder / "sum.c"), "--target", "gaudi2", "--tensor", "a=f32[64,12]", "--tensor", "b=f32[64,12]",
             "--tensor", "y=f32[64]", "--index-space", "1", "--in", f"a={folder / 'a.npy'}",
             "--in", f"b={folder / 'b.npy'}", "--out", str(folder), "--quiet"]  # fmt: skip
    assert main([*words, "--accumulators", order]) == 0
    return np.asarray(np.load(folder / "y.npy"))


@pytest.mark.parametrize("order", ["source", "split"])
def test_sums_are_those_of_the_order(order: str, tmp_path: Path) -> None:
    assert not np.array_equal(model("source"), model("split"))
    np.testing.assert_array_equal(summed(tmp_path, order), model(order))


def test_without_the_promise_nothing_is_split(tmp_path: Path) -> None:
    text = KERNEL.replace("    #pragma loop_unroll(4)\n", "")
    np.testing.assert_array_equal(summed(tmp_path, "split", text), model("source"))


def test_a_sum_that_the_loop_also_reads_is_not_split(tmp_path: Path) -> None:
    text = KERNEL.replace("        at[1] = row;\n", "        at[1] = row;\n        float64 seen = total;\n")
    np.testing.assert_array_equal(summed(tmp_path, "split", text), model("source"))


def test_another_order_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sum.c").write_text(KERNEL, encoding="utf-8")
    assert main(["run", str(tmp_path / "sum.c"), "--target", "gaudi2", "--accumulators", "tree"]) == 2
    told = capsys.readouterr().err
    assert "--accumulators tree" in told
    assert "split" in told


SCALED = """typedef struct { float gain; float bias; } pair;
struct step { int5 at; int width; pair by[2]; float64 sum; };
static inline void next(int5 *p, int width) { (*p)[0] += width; }
static inline void twice(int *n) { *n += *n; next_number(n); }
static inline pair scaled(pair p, float by) { p.gain *= by; return p; }
static inline void start(struct step *s, int width) { s->width = width; s->at[0] = width; s->by[1].bias = 3.0f; }
"""
WITH_NEXT = SCALED.replace("static inline void twice", "static inline void next_number(int *n) { (*n)++; }\n"
                           "static inline void twice")  # fmt: skip
IN_C = {
    "members of a structure": ("pair p = {2.0f, 1.0f}; p.bias += 4; out = p.gain * 10 + p.bias;", 25),
    "members by name": ("pair p = {.bias = 7.0f}; out = p.gain + p.bias;", 7),
    "a structure copied": ("pair p = {2.0f, 1.0f}; pair q = p; q.gain = 5; p = q; q.gain = 9; out = p.gain;", 5),
    "a structure in a literal": ("pair p; p = (pair){3.0f, 4.0f}; out = p.gain + p.bias;", 7),
    "a structure passed and returned": (
        "pair p = {2.0f, 1.0f}; pair q = scaled(p, 4); out = 10 * q.gain + p.gain;", 82
    ),
    "structures in an array": ("pair p[3] = {{1, 2}, {3, 4}}; out = p[0].bias + 10 * p[1].gain + p[2].bias;", 32),
    "an array of structures unrolled": (
        "pair p[4]; for (int i = 0; i < 4; i++) { p[i].gain = i; p[i].bias = 2; }"
        "for (int i = 0; i < 4; i++) { out += p[i].gain * p[i].bias; }", 12,
    ),
    "a structure with vectors": (
        "struct step s = {0}; start(&s, 64); s.sum = 0.5f; s.sum += 1; out = s.width + s.at[0] + s.by[1].bias;", 131
    ),
    "the size of a structure": ("out = sizeof(pair) + sizeof(struct step);", 8 + 512),
    "a pointer to coordinates": ("int5 at = {1, 2}; next(&at, 64); next(&at, 3); out = at[0] * 10 + at[1];", 682),
    "a pointer to a number": ("int n = 5; twice(&n); out = n;", 11),
    "a pointer in a loop": ("int n = 1; for (int i = 0; i < 4; i++) { twice(&n); } out = n;", 31),
    "a bound behind a pointer": (
        "int n = 2; int k = 0; for (int i = 0; i < n; i++) { if (i < 3) { twice(&n); } k++; } out = k;", 23
    ),
    "a pointer to a member": ("pair p = {2.0f, 1.0f}; int n[2] = {1, 2}; twice(&n[1]); out = n[1] * 10 + n[0];", 51),
    "an array of aggregates of zeros": (
        "float128 a[2] = {0}; a[1].v2 = a[0].v1 + 1.0f; int b[2][3] = {0}; out = b[1][2];", 0
    ),
    "rows of which the last are left out": (
        "__local__ int t[2][2] = {{1, 2}}; int i = c[1]; out = t[i + 1][1] + 10 * t[i][1];", 20
    ),
    "absolute values and complements of coordinates": (
        "int5 p = {-3, 2, -5}; p = i_i32_abs(p, 3, 0, p); int5 q = i_i32_not(p, 1, 0, p);"
        "out = p[0] * 100 + q[0] * 10 + q[1] + p[2] * 1000;", -5000 + 300 - 40 + 2,
    ),
    "elements by number": ("int t[4] = {[2] = 5, 6}; out = t[0] + t[2] * 10 + t[3];", 56),
}  # fmt: skip


@pytest.mark.parametrize("target", ["goya", "gaudi2"])
@pytest.mark.parametrize("name", IN_C)
def test_structures_pointers_and_initialisers_are_those_of_c(name: str, target: str, tmp_path: Path) -> None:
    body, wanted = IN_C[name]
    text = f"""{WITH_NEXT}
void main(tensor y)
{{
    int5 c = {{0}};
    float out = 0;
    {body}
    float64 v = out;
    v_f32_st_tnsr(c, y, v);
}}
"""
    (tmp_path / "k.c").write_text(text, encoding="utf-8")
    request = LaunchRequest({"y": tensor_given("y", "out:f32[64]")}, (1,))
    found = run_loaded(load(tmp_path / "k.c", target, None, {}, launch=request), {}, stale_reads="stop").outputs["y"]
    assert np.asarray(found).tolist() == [wanted] * 64


POINTERS = {
    "set at the end": "p = gen_addr(at, x); for (int i = 0; i < 4; i++) { n += s_i32_ld_g(p); at[0] += 1;"
                      "p = gen_addr(at, x); }",
    "set first": "for (int i = 0; i < 4; i++) { p = (__global__ int *)gen_addr(at, x); n += *p; at[0] += 1; }",
    "set by a function": "p = first(at, x); for (int i = 0; i < 4; i++) { n += *p; at[0] += 1; p = first(at, x); }",
    "set on two ways": "p = gen_addr(at, x); for (int i = 0; i < 4; i++) { n += *p; at[0] += 1;"
                       "p = i > 7 ? gen_addr(at, y) : gen_addr(at, x); }",
    "set in a branch": "p = gen_addr(at, x); for (int i = 0; i < 4; i++) { n += *p; at[0] += 1;"
                       "if (i < 7) p = gen_addr(at, x); else p = gen_addr(at, y); }",
}  # fmt: skip


@pytest.mark.parametrize("target", ["goya", "gaudi", "gaudib", "greco", "gaudi2"])
@pytest.mark.parametrize("name", POINTERS)
def test_a_global_pointer_is_set_again_in_a_loop(name: str, target: str, tmp_path: Path) -> None:
    text = f"""__global__ int *first(int5 c, tensor t) {{ return (__global__ int *)gen_addr(c, t); }}
void main(tensor x, tensor y)
{{
    int5 at = {{0}};
    int n = 0;
    __global__ int *p;
    {POINTERS[name]}
    at[0] = 0;
    int64 v = n;
    v_i32_st_tnsr(at, y, v);
}}
"""
    (tmp_path / "k.c").write_text(text, encoding="utf-8")
    request = LaunchRequest({"x": tensor_given("x", "i32[64]"), "y": tensor_given("y", "out:i32[64]")}, (1,))
    x = np.arange(64, dtype=np.int32) ** 2 + 3
    program = load(tmp_path / "k.c", target, None, {}, launch=request)
    found = run_loaded(program, {"x": x}, stale_reads="stop").outputs["y"]
    assert np.asarray(found).tolist() == [3 + 4 + 7 + 12] * 64


# ------------------------------------------------------------------------------------------------- times on silicon


def test_kernels_take_the_time_that_a_chip_took() -> None:
    """One Gaudi2, 24 TPCs: 74.6 ns a row, 2,118 ns a block, at 1.79 GHz."""
    found = castsim.accuracy("gaudi2")
    measured = {row.row.name: row.row.measured_cycles for row in found.rows}
    assert measured["gaudi2_row_transform.c"] == pytest.approx(74.6 * 1.79 * 128, rel=1e-4)
    assert measured["gaudi2_block_inverse.c"] == pytest.approx(2118 * 1.79 * 64, rel=1e-4)
    assert [row.row.fitted for row in found.rows] == [False, True]
    assert all(abs(row.error) <= 15 for row in found.rows)


def test_a_stream_is_as_dense_as_by_hand(tmp_path: Path) -> None:
    """A kernel tuned by hand has 32 loads, 32 stores and 96 vector operations in 109 bundles."""
    path = tmp_path / "stream.c"
    path.write_text(
        "void main(tensor x, tensor w, tensor y) {\n"
        "  int5 at = {0}; int5 to = {0}; float64 v[32]; float64 g = v_f32_ld_tnsr_b(at, w);\n#pragma unroll\n"
        "  for (int k = 0; k < 32; k++) {\n    at[0] = k * 64; to[0] = k * 64; v[k] = v_f32_ld_tnsr_b(at, x);\n"
        "    v[k] = v_f32_max_b(v[k] * g, 0.0f); v[k] = v[k] + g; v_f32_st_tnsr(to, y, v[k]);\n  }\n}\n",
        encoding="utf-8",
    )
    x, w = np.arange(-1024, 1024, dtype=f32), np.full(64, 3, f32)
    given = {"tensors": {"y": "out:f32[2048]"}, "index_space": (1,)}
    found = castsim.run(path, "gaudi2", inputs={"x": x, "w": w}, **given)
    np.testing.assert_array_equal(found.outputs["y"], np.maximum(x * f32(3), f32(0)) + f32(3))
    assert len(found.timing.executions) <= 1.15 * 109
