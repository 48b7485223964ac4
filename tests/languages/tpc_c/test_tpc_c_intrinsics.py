"""Calls of intrinsics in C: prototypes of the vendor's header, switches, the order of conversions, cast helpers."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from kit.paths import TESTS

from castsim.__main__ import main
from castsim.isa.errors import CastsimError, IllegalError, ReadError
from castsim.languages.tpc_c.kernels import tensor_given
from castsim.running.loaded import LaunchRequest
from castsim.running.program_loading import load
from castsim.running.program_runs import run_loaded
from castsim.tools.tpc_compiler.c_language import GENERATIONS, constants

pytest.importorskip("pcpp")
ROWS = TESTS / "vectors" / "tpc_c_intrinsics.csv"
WIDTHS = {
    "i32": 32,
    "u32": 32,
    "f32": 32,
    "i16": 16,
    "u16": 16,
    "bf16": 16,
    "f16": 16,
    "i8": 8,
    "u8": 8,
    "f8": 8,
    "h8": 8,
}
VECTORS = {
    "f32": "float64", "bf16": "bfloat128", "f16": "half128", "f8": "minifloat256", "h8": "minihalf256", "i32": "int64",
    "u32": "uint64", "i16": "short128", "u16": "ushort128", "i8": "char256", "u8": "uchar256",
}  # fmt: skip
SCALARS = {
    "f32": "float", "bf16": "bf16", "f16": "half", "f8": "minifloat", "h8": "minihalf", "i32": "int32_t",
    "u32": "uint32_t", "i16": "int16_t", "u16": "uint16_t", "i8": "int8_t", "u8": "uint8_t",
}  # fmt: skip
FIRST = {"bf16": "gaudi", "f16": "gaudib", "f8": "gaudi2", "h8": "gaudi2"}


def made(
    folder: Path, text: str, target: str = "gaudi2", scalars: Mapping[str, int] | None = None, **tensors: str
) -> Any:
    """A kernel as a program; every tensor is one vector of f32 unless it says otherwise."""
    path = folder / "kernel.c"
    path.write_text(text, encoding="utf-8")
    names = re.findall(r"tensor (\w+)", text)
    given = {name: tensors.get(name, "f32[64]" if name == "x" else "out:f32[64]") for name in names}
    request = LaunchRequest({name: tensor_given(name, each) for name, each in given.items()}, (1,))
    return load(path, target, None, dict(scalars or {}), launch=request)


def outputs(folder: Path, text: str, target: str = "gaudi2", inputs: Any = None, **tensors: str) -> Mapping[str, Any]:
    program = made(folder, text, target, **tensors)
    return {
        name: np.asarray(each) for name, each in run_loaded(program, inputs or {}, stale_reads="stop").outputs.items()
    }


# ------------------------------------------------------------------------------------------------------- prototypes


def argument(declaration: str, number: int, every: bool) -> tuple[str, str] | None:
    """An argument for a parameter and the declaration that it needs; None where the parameter may be left away."""
    declared, _, default = declaration.partition("=")
    kind, name = re.fullmatch(r"(.*?)\s*(\w+)", declared.strip()).groups()  # type: ignore[union-attr]
    if default and not every:
        return None
    fixed = {"switches": "0", "options": "0", "polarity": "0", "tensor": "t", "fid": "0", "dimmask": "31"}
    if name in fixed or kind.startswith("const"):
        return fixed.get(name, "0"), ""
    if "__global" in kind:
        return "p", ""
    if kind == "int5":
        return "at", ""
    if kind == "uint32_t" and name == "b":  # the byte mask of MOV_G, which the instruction holds
        return "0xffffffff", ""
    variable = f"a{number}"
    if kind.startswith("bool") or (re.search(r"\d$", kind) and not kind.endswith("_t")) or "_pair_t" in kind:
        return variable, f"{kind} {variable} = {'s > 2' if kind == 'bool' else '0' if 'bool' in kind else '{0}'};"
    return variable, f"{kind} {variable} = ({kind})s;"


def call(name: str, result: str, parameters: str, every: bool) -> str:
    """A block that calls a function by its prototype, all parameters given or those without a default."""
    texts, declared = [], []
    for number, each in enumerate(filter(None, map(str.strip, re.split(r",(?![^{]*\})", parameters)))):
        found = argument(each, number, every)
        if found is None:
            break
        texts.append(found[0])
        declared.append(found[1])
    start = "" if result == "void" else f"{result} r = "
    return f"{{ {' '.join(declared)} {start}{name}({', '.join(texts)}); }}"


def refused(folder: Path, prototypes: list[tuple[str, str, str]], target: str) -> dict[str, str]:
    """The prototypes that do not compile, with the messages: all in one kernel, one by one only where that fails."""
    head = "void main(tensor t, int s)\n{ int5 at = {0}; __global__ float *p = gen_addr(at, t);\n"
    blocks = {
        f"{name} {every}": call(name, result, parameters, every)
        for name, result, parameters in prototypes
        for every in (False, True)
    }
    try:
        made(folder, head + "\n".join(blocks.values()) + "\n}\n", target, {"s": 1}, t="inout:f32[64]")
    except CastsimError:
        found = {}
        for title, block in blocks.items():
            try:
                made(folder, f"{head}{block}\n}}\n", target, {"s": 1}, t="inout:f32[64]")
            except CastsimError as error:
                found[title] = error.message
        return found
    return {}


@pytest.mark.parametrize("target", GENERATIONS)
def test_every_function_that_kernels_call_compiles_by_its_prototype(tmp_path: Path, target: str) -> None:
    with ROWS.open(newline="", encoding="utf-8") as file:
        rows = [
            row for row in csv.DictReader(file) if row["arguments"] and target in row["generations_ll_header"].split()
        ]
    assert len(rows) > 80
    assert not refused(tmp_path, [(row["intrinsic"], row["result"], row["arguments"]) for row in rows], target)


def mask(element: str) -> str:
    return f"bool{2048 // WIDTHS[element]}"


def since(*elements: str) -> str:
    return max((FIRST.get(each, "goya") for each in elements), key=GENERATIONS.index)


def group(element: str, count: int) -> str:
    kind = VECTORS[element]
    stem = kind.rstrip("0123456789")
    return kind if count == 1 else f"{stem}{2048 // WIDTHS[element] * count}"


def family(target: str) -> Iterator[tuple[str, str, str]]:
    """Prototypes whose types the naming rule and the shape of the instruction give: results of other types."""

    def both(name: str, result: str, parameters: str, lanes: str) -> Iterator[tuple[str, str, str]]:
        end = f"int switches=0, {result} income={{}}, bool predicate=1, bool polarity=0"
        yield f"{name}_b", result, f"{parameters}, {end}"
        yield f"{name}_vb", result, f"{parameters}, int switches, {result} income, {lanes} predicate, bool polarity=0"

    own = [each for each in VECTORS if GENERATIONS.index(since(each)) <= GENERATIONS.index(target)]
    for element in own:
        bits, kind = WIDTHS[element], VECTORS[element]
        yield from both(f"v_{element}_popcnt", "uchar256", f"{kind} a", mask(element))
        yield from both(f"v_{element}_find_first", "uchar256", f"{kind} a", mask(element))
        yield from both(f"v_{element}_brev", VECTORS[f"u{bits}"], f"{kind} a", mask(element))
        for other in own:
            if WIDTHS[other] == bits:
                pair = group(element, 2) if other == element else f"{kind}_{VECTORS[other]}_pair_t"
                parameters = f"{VECTORS[other]} a, {VECTORS[other]} b, {kind} c, {kind} d"
                yield from both(f"v_{element}_sel2_grt_{other}", pair, parameters, mask(element))
        if element in ("f32", "bf16", "f16", "f8", "h8") and target in ("greco", "gaudi2"):
            pair = f"{kind}_{VECTORS[f'i{bits}']}_pair_t"
            yield from both(f"v_{element}_nearbyint_cnvrt", pair, f"{kind} a", mask(element))
    for name, result in (("i4", "nibble512"), ("u4", "unibble512")):
        if target in ("greco", "gaudi2"):
            end = f"int switches=0, {result} income={{}}, bool predicate=1, bool polarity=0"
            yield f"v_{name}_ld_tnsr_b", result, f"int5 ndx, int8_t tensor, {end}"
            yield f"v_{name}_st_tnsr", "void", f"int5 ndx, int8_t tensor, {result} value, int switches=0"


def aggregates(target: str) -> Iterator[tuple[str, str, str]]:
    """`convert_S_to_D` of every pair of types and every number of registers; `int_convert_S_to_D` with a shift."""
    own = [each for each in VECTORS if GENERATIONS.index(since(each)) <= GENERATIONS.index(target)]
    for source in own:
        for result in own:
            for count in (64, 128, 256):
                registers = [count * WIDTHS[each] / 2048 for each in (source, result)]
                if source != result and all(each in (1, 2, 4) for each in registers):
                    old, new = (group(each, int(n)) for each, n in zip((source, result), registers, strict=True))
                    yield f"convert_{old}_to_{new}", new, f"{old} a, const int options"
    for sign in "iu":
        word = {"i": "int", "u": "uint"}[sign]
        for wide, narrow in ((32, 16), (32, 8), (16, 8)):
            old, new = group(f"{sign}{wide}", wide // narrow), VECTORS[f"{sign}{narrow}"]
            yield f"{word}_convert_{old}_to_{new}", new, f"{old} a, const int shift, const int options"
            yield f"{word}_convert_{old}_to_{new}", new, f"{old} a, char256 shift, const int options"


def accessors(target: str) -> Iterator[tuple[str, str, str]]:
    for name in ("float", "int", "uint", "short", "ushort", "char", "uchar"):
        kind = {"float": "float", "int": "int32_t", "uint": "uint32_t"}.get(name, f"{name.replace('u', '')}")
        yield f"get_pad_value_{name}", kind, "int32_t tensor"
        yield f"set_pad_value_{name}", "void", f"int32_t tensor, {kind} value"
    for name in ("dim_size", "dim_stride"):
        yield f"get_{name}", "uint32_t", "int32_t a, uint32_t dim"
        yield f"set_{name}", "void", "int32_t a, uint32_t dim, uint32_t value"
    division = {"goya": "udiv_step", "gaudi2": "udiv"}.get(target, "udiv_4step")
    for bits in (32, 16, 8):
        kind = f"uint{bits}_t"
        parameters = f"{kind} a, {kind} b" if division == "udiv" else f"{kind} a, const int step"
        end = f"int switches, {kind}_pair_t income, bool predicate=1, bool polarity=0"
        yield f"u{bits}_{division}", f"{kind}_pair_t", f"{parameters}, {end}"
    for name in ("read_lane_id_4b_b", "read_lfsr_b", "read_lfsr_no_change_b"):
        yield name, "uint64", "uint64 income={}, bool predicate=1, bool polarity=0"
    yield "read_lane_id_2b_vb", "ushort128", "ushort128 income, bool128 predicate, bool polarity=0"
    yield "get_csr_value", "uint32_t", "uint32_t address"
    if target == "gaudi2":
        yield "event", "void", "int number, int switches=0, bool predicate=1, bool polarity=0"
        yield "get_addr", "uint32_t_pair_t", "__global void *a"


@pytest.mark.parametrize("target", GENERATIONS)
@pytest.mark.parametrize("prototypes", [family, aggregates, accessors], ids=lambda each: each.__name__)
def test_families_of_the_header_compile(tmp_path: Path, target: str, prototypes: Any) -> None:
    """Types of results by the registers that an instruction writes; N registers to M of equally many elements."""
    assert not refused(tmp_path, list(prototypes(target)), target)


def test_an_income_without_a_predicate_is_kept_where_an_instruction_writes_a_part(tmp_path: Path) -> None:
    text = """void main(tensor x, tensor y)
    {
        int5 at = {0};
        float64 a = v_f32_ld_tnsr_b(at, x);
        v_f32_st_tnsr(at, y, v_f32_mov_dual_group_b(a, 0xffffffff, 1, 0, MkWr(1, 1), a));
    }"""
    x = np.arange(64, dtype=np.float32)
    expected = np.concatenate([x[16:32], x[16:]])
    assert np.array_equal(outputs(tmp_path, text, inputs={"x": x})["y"], expected)


# ---------------------------------------------------------------------------------------------------------- switches


@pytest.mark.parametrize(
    ("statement", "switch"),
    [
        ("v_f32_add_b(a, a, SW_SAT)", "0x1"),
        ("v_f32_mul_b(a, a, SW_LINEAR)", r"0x1000000 \(SW_LINEAR\)"),
        ("v_f32_ld_tnsr_b(at, x, SW_MASK_EQ_ZERO)", "0x1"),
        ("v_f32_max_b(a, a, SW_RZ)", "0x10000"),
        ("v_f32_mac_b(a, a, a, SW_SAT)", "0x1"),
        ("v_f32_sel_geq_f32_b(a, a, a, a, SW_MASK_EQ_ZERO)", "0x1"),
        ("v_f32_abs_b(a, SW_NEG)", "0x2"),
        ("v_convert_f32_to_i32_b(a, SW_SAT)", "0x1"),
        ("v_f32_mov_b(a, 1 << 30)", "0x40000000"),
        ("convert_int64_to_float64(v_i32_ld_tnsr_b(at, x), SW_NEG)", "0x2"),
        ("as_float64(v_i32_ld_tnsr_b(at, x), SW_LINEAR)", "0x1000000"),
        ("(float64)read_lane_id_4b_b()); aso(SW_SB", "0x1"),
    ],
)
def test_a_switch_that_a_call_does_not_know_is_an_error_at_its_line(
    tmp_path: Path, statement: str, switch: str
) -> None:
    text = f"void main(tensor x, tensor y)\n{{ int5 at = {{0}}; float64 a = 1.f;\nv_f32_st_tnsr(at, y, {statement}); }}"
    with pytest.raises(ReadError, match=f"does not take the switch {switch}") as caught:
        made(tmp_path, text)
    assert caught.value.span is not None
    assert caught.value.span.line == 3
    assert 1 <= len(caught.value.legal) <= 5


@pytest.mark.parametrize(
    "statement", ["v_f32_ld_tnsr_b(at, 1e308)", "v_f32_ld_tnsr_b(at, x, 1e308)", "(float64)1.f); aso(1e308"]
)
def test_a_float_beyond_all_integers_is_refused_where_an_integer_is_needed(tmp_path: Path, statement: str) -> None:
    text = f"void main(tensor x, tensor y)\n{{ int5 at = {{0}};\nv_f32_st_tnsr(at, y, {statement}); }}"
    with pytest.raises(ReadError, match="inf cannot be converted to int") as caught:
        made(tmp_path, text)
    assert caught.value.span is not None
    assert caught.value.span.line == 3


def test_constants_of_merging_stores_are_at_their_places() -> None:
    """Type, operation << 4, and the flag that says to merge, at bit 8 on gaudi2 and 6 before."""
    assert constants()["RMW_DT_FP32"] | constants()["RMW_OP_MAX"] == 7 | 3 << 4


@pytest.mark.parametrize("word", ["RMW_SET | RMW_OP_ADD | RMW_DT_FP32", "MkRMW(RMW_DT_FP32, RMW_OP_ADD, 1, 0)"])
@pytest.mark.parametrize("target", ["gaudi", "gaudi2"])
def test_a_merging_store_adds(tmp_path: Path, target: str, word: str) -> None:
    text = f"""void main(tensor x, tensor y)
    {{ int5 at = {{0}}; v_f32_st_tnsr_rmw(at, y, v_f32_ld_tnsr_b(at, x), {word}); aso(SW_INC | SW_VPU); }}"""
    x = np.arange(64, dtype=np.float32)
    assert np.array_equal(outputs(tmp_path, text, target, {"x": x, "y": x}, y="inout:f32[64]")["y"], 2 * x)


# ------------------------------------------------------------------------------------------------------- conversions


@pytest.mark.parametrize("name", ["v_convert_u8_to_bf16_all_b", "convert_uchar256_to_bfloat256"])
def test_the_linear_switch_keeps_the_order_towards_wider_elements(tmp_path: Path, name: str) -> None:
    text = f"""void main(tensor x, tensor y)
    {{
        int5 at = {{0}};
        const bfloat256 wide = {name}(v_u8_ld_tnsr_b(at, x), SW_LINEAR);
        v_bf16_st_tnsr(at, y, wide.v1);
        at[0] = 128;
        v_bf16_st_tnsr(at, y, wide.v2);
    }}"""
    x = np.arange(256, dtype=np.uint8)
    found = outputs(tmp_path, text, inputs={"x": x}, x="u8[256]", y="out:bf16[256]")["y"]
    assert np.array_equal(found.view(np.uint16), x.astype(ml_dtypes.bfloat16).view(np.uint16))


@pytest.mark.parametrize(
    ("call_text", "element", "expected"),
    [
        ("v_convert_f32_to_bf16_all_b(f, SW_LINEAR | SW_RD)", "bf16", np.floor),
        ("v_convert_f32_to_bf16_all_b(f, SW_LINEAR, b, s > 2)", "bf16", lambda x: np.zeros(128)),
        ("v_convert_f32_to_bf16_all_b(f, SW_LINEAR, b, s > 2, 1)", "bf16", np.rint),
        (
            "v_convert_int32_to_i16_all_b((int128)i, -1, SW_LINEAR | SW_RZ, (short128)b)",
            "i16",
            lambda x: np.trunc(x / 2),
        ),
        ("int_convert_int128_to_short128(i, -s, SW_LINEAR | SW_RZ)", "i16", lambda x: np.trunc(x / 2)),
    ],
)
def test_the_linear_switch_keeps_the_order_towards_narrower_elements(
    tmp_path: Path, call_text: str, element: str, expected: Any
) -> None:
    text = f"""void main(tensor x, tensor n, tensor y, int s)
    {{
        int5 at = {{0}}; int5 behind = {{64}}; bfloat128 b = 0;
        float128 f = {{v_f32_ld_tnsr_b(at, x), v_f32_ld_tnsr_b(behind, x)}};
        int128 i = {{v_i32_ld_tnsr_b(at, n), v_i32_ld_tnsr_b(behind, n)}};
        v_{element}_st_tnsr(at, y, {call_text});
    }}"""
    numbers = np.arange(-64, 64)
    program = made(tmp_path, text, "gaudi2", {"s": 1}, x="f32[128]", n="i32[128]", y=f"out:{element}[128]")
    given = {"x": numbers.astype(np.float32), "n": numbers.astype(np.int32)}
    found = np.asarray(run_loaded(program, given, stale_reads="stop").outputs["y"])
    if element == "bf16":
        found = found.view(ml_dtypes.bfloat16).astype(np.float32)
    assert np.array_equal(found, expected(numbers))


@pytest.mark.parametrize(
    ("call_text", "why"),
    [
        ("v_convert_bf16_to_f32_b(b, SW_LINEAR)", "one lane"),
        ("v_convert_bf16_to_f32_all_vb(b, SW_LINEAR, f, m).v1", "predicate"),
    ],
)
def test_an_order_that_no_source_states_is_refused(tmp_path: Path, call_text: str, why: str) -> None:
    text = f"""void main(tensor x, tensor y)
    {{ int5 at = {{0}}; bfloat128 b = 0; float128 f = {{0}}; bool128 m = 1;
      v_f32_st_tnsr(at, y, {call_text}); }}"""
    with pytest.raises(IllegalError, match=why) as caught:
        made(tmp_path, text)
    assert caught.value.legal


def test_four_registers_become_two_block_by_block(tmp_path: Path) -> None:
    """Register k of the result takes its elements in turn from registers 2k and 2k + 1; with SW_LINEAR all in order."""
    loads = " ".join(f"at[0] = {64 * n}; wide.v{n + 1} = v_f32_ld_tnsr_b(at, x);" for n in range(4))
    x = np.arange(256, dtype=np.float32)
    for switch, expected in (
        ("SW_RHNE", np.stack([x.reshape(2, 2, 64)[:, k] for k in (0, 1)], axis=-1).reshape(-1)),
        ("SW_LINEAR", x),
    ):
        text = f"""void main(tensor x, tensor y)
        {{
            int5 at = {{0}}; float256 wide = {{0}}; {loads}
            bfloat256 narrow = convert_float256_to_bfloat256(wide, {switch});
            at[0] = 0; v_bf16_st_tnsr(at, y, narrow.v1);
            at[0] = 128; v_bf16_st_tnsr(at, y, narrow.v2);
        }}"""
        found = outputs(tmp_path, text, inputs={"x": x}, x="f32[256]", y="out:bf16[256]")["y"]
        assert np.array_equal(found.view(ml_dtypes.bfloat16).astype(np.float32), expected)


@pytest.mark.parametrize(("mode", "rounded"), [("SW_RZ", np.trunc), ("SW_RU", np.ceil), ("SW_RHNE", np.rint)])
def test_as_t_with_a_mode_converts_in_it_and_without_keeps_the_bits(tmp_path: Path, mode: str, rounded: Any) -> None:
    text = f"""void main(tensor x, tensor y, tensor z)
    {{
        int5 at = {{0}}; float64 a = v_f32_ld_tnsr_b(at, x);
        v_i32_st_tnsr(at, y, as_int64(a, {mode}));
        v_i32_st_tnsr(at, z, as_int64(a));
    }}"""
    x = (np.arange(64, dtype=np.float32) - 32) * np.float32(0.75)
    found = outputs(tmp_path, text, inputs={"x": x}, y="out:i32[64]", z="out:i32[64]")
    assert np.array_equal(found["y"], rounded(x).astype(np.int32))
    assert np.array_equal(found["z"], x.view(np.int32))


def test_as_t_refuses_a_mode_that_its_pair_does_not_have(tmp_path: Path) -> None:
    text = """void main(tensor x, tensor y)
    { int5 at = {0}; v_u32_st_tnsr(at, y, as_uint64(v_i32_ld_tnsr_b(at, x), SW_RZ)); }"""
    with pytest.raises(IllegalError, match="no rounding mode rz"):
        made(tmp_path, text, x="i32[64]", y="out:u32[64]")


@pytest.mark.parametrize("prefix", ["", "__builtin_"])
@pytest.mark.parametrize("target", GENERATIONS)
def test_the_cast_helpers_are_functions(tmp_path: Path, target: str, prefix: str) -> None:
    """Four registers of f32 to one of u8 in order, through i16: to nearest, 0 to 255."""
    loads = " ".join(f"at[0] = {64 * n}; float64 v{n} = v_f32_ld_tnsr_b(at, x);" for n in range(4))
    text = f"""void main(tensor x, tensor y)
    {{ int5 at = {{0}}; {loads} at[0] = 0;
      v_u8_st_tnsr(at, y, {prefix}cast_f32_to_u8_lin_order(v0, v1, v2, v3)); }}"""
    x = np.linspace(-20, 300, 256).astype(np.float32)
    found = outputs(tmp_path, text, target, {"x": x}, x="f32[256]", y="out:u8[256]")["y"]
    assert np.array_equal(found, np.clip(np.rint(x), 0, 255).astype(np.uint8))


@pytest.mark.parametrize(
    ("call_text", "why"),
    [
        ("s_f32_ld_g_inc(p)", "no public source"),
        ("v_recip_i16(v, s)", "not public"),
        ("__builtin_v_tanh_i16(v, s, s, s, s)", "not public"),
        ("u32_udiv_4step(s, 1, 0, q)", "not available on gaudi2"),
    ],
)
def test_functions_that_no_source_describes_are_refused_by_name(tmp_path: Path, call_text: str, why: str) -> None:
    text = f"""void main(tensor x, tensor y, int s)
    {{ int5 at = {{0}}; __global__ float *p = gen_addr(at, x); short128 v = 0; uint32_t_pair_t q = {{0}};
      {call_text}; }}"""
    with pytest.raises(IllegalError, match=why) as caught:
        made(tmp_path, text, "gaudi2", {"s": 1})
    assert caught.value.legal
    assert caught.value.span is not None
    assert caught.value.span.line == 3


def test_a_cast_helper_of_other_generations_is_refused_at_its_line(tmp_path: Path) -> None:
    text = "void main(tensor x, tensor y)\n{ uchar256 a = 0; cast_bf16_to_u8_lin_order(a, a); }"
    with pytest.raises(IllegalError, match="goya has no builtin") as caught:
        made(tmp_path, text, "goya")
    assert caught.value.span is not None
    assert caught.value.span.line == 2


# ------------------------------------------------------------------------------- words of the machine, pairs of numbers


def test_a_division_gives_quotient_and_remainder(tmp_path: Path) -> None:
    text = """void main(tensor x, tensor y, uint32_t a, uint32_t b)
    {
        int5 at = {0}; uint32_t_pair_t q = u32_udiv(a, b);
        v_u32_st_tnsr(at, y, (uint64)q.v1 + (uint64)q.v2 * (uint64)1000);
    }"""
    program = made(tmp_path, text, "gaudi2", {"a": 1234567, "b": 89}, y="out:u32[64]", x="u32[64]")
    found = np.asarray(run_loaded(program, {"x": np.zeros(64, np.uint32)}).outputs["y"])
    assert np.array_equal(found, np.full(64, 1234567 // 89 + 1234567 % 89 * 1000, np.uint32))


@pytest.mark.parametrize(("kind", "value", "word"), [("short", "-2", 0xFFFEFFFE), ("uchar", "s", 0x07070707)])
def test_a_narrow_pad_value_fills_its_word(tmp_path: Path, kind: str, value: str, word: int) -> None:
    """The word in the descriptor holds the value in both halves or in all four bytes."""
    text = f"""void main(tensor x, tensor y, int s)
    {{ int5 at = {{0}}; set_pad_value_{kind}(x, {value}); v_u32_st_tnsr(at, y, (uint64)get_pad_value_uint(x)); }}"""
    program = made(tmp_path, text, "gaudi2", {"s": 7}, x="i32[64]", y="out:u32[64]")
    found = np.asarray(run_loaded(program, {"x": np.zeros(64, np.int32)}).outputs["y"])
    assert set(found.tolist()) == {word}


def test_the_size_of_a_tensor_whose_number_is_a_variable(tmp_path: Path) -> None:
    text = """void main(tensor x, tensor y, int s)
    { int5 at = {0}; v_i32_st_tnsr(at, y, (int64)get_dim_size(s, s)); }"""
    program = made(tmp_path, text, "gaudi2", {"s": 0}, x="i32[70]", y="out:i32[64]")
    assert set(np.asarray(run_loaded(program, {"x": np.zeros(70, np.int32)}).outputs["y"]).tolist()) == {70}


def test_kernels_and_compiled_both_say_what_as_t_means(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bits in a kernel without a mode, a conversion in `compiled` and with a mode."""
    assert main(["compiled", "f32", "i32", "1.5", "--target", "gaudi2"]) == 0
    assert "in kernels in C, as_T(x) keeps the bits" in capsys.readouterr().out
    path = tmp_path / "kernel.c"
    text = "int5 at = {0}; v_i32_st_tnsr(at, y, as_int64(v_f32_ld_tnsr_b(at, x)));"
    path.write_text(f"void main(tensor x, tensor y) {{ {text} }}", encoding="utf-8")
    words = ["--tensor", "x=f32[64]", "--tensor", "y=out:i32[64]", "--index-space", "1", "--in", "x=zeros"]
    assert main(["run", str(path), "--target", "gaudi2", *words]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "as_int64: the same bits; with a rounding mode as second argument it converts the values" in shown
