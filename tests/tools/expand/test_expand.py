"""'castsim expand' gives the bytes of a tile program: casts, operations, what is decided at run time; its text."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import oracle_a5
import pytest
from kit.a5_cases import source_codes
from kit.command_output import err_of
from kit.execution_programs import kernel_file
from kit.expand_works import Case
from kit.paths import PROGRAMS
from kit.pto_text import asked, cast_program, compact
from kit.work_programs import NATIVE
from tools.expand.expand_differences import (
    KERNELS_TIMES,
    OWN_SEQUENCES,
    PROFILED,
    bounds_of,
    function_in,
    spread_of,
)

from castsim.__main__ import main
from castsim.isa.errors import CastsimError, IllegalError
from castsim.isa.formats import format_named
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind, Role
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import array_from_codes
from castsim.running.loaded import LoadRequest
from castsim.running.program_loading import TileProgram
from castsim.running.program_runs import run
from castsim.targets.loader import load_target
from castsim.targets.strided_repeat import STRUCTURES
from castsim.targets.vector_function import VectorFunctionTarget
from castsim.targets.vector_function_operations import VectorFunctionOperation
from castsim.tools.expand.expansion import expand

WRITTEN = {
    "e4m3fn": "f8E4M3FN", "e5m2": "f8E5M2", "e2m1": "f4E2M1x2", "e1m2": "f4E1M2x2",
    **{f"u{bits}": f"ui{bits}" for bits in (8, 16, 32)},
}  # fmt: skip
SHAPES = (
    (1, 64, 1, 64), (3, 256, 3, 192), (2, 512, 2, 386), (5, 128, 4, 2), (4, 320, 4, 320), (1, 1024, 1, 1000),
    (1, 256, 1, 192), (3, 256, 3, 128),
)  # fmt: skip
"""Rows and columns of both tiles, and of their valid region."""
MODES = (None, "RINT", "ROUND", "FLOOR", "CEIL", "TRUNC")
EVERY = list(product(oracle_a5.LEGAL, MODES, (None, "ON", "OFF"), SHAPES))
CASES = EVERY if "CASTSIM_THOROUGH" in os.environ else random.Random(17).sample(EVERY, 120)


def program(src: str, dst: str, mode: str | None, saturation: str | None, shape: tuple[int, int, int, int]) -> str:
    types = [WRITTEN.get(one, one) for one in (src, dst)]
    tiles = [compact(one, *shape) for one in types]
    return cast_program("a5", types, tiles, shape[2:], [asked(mode, saturation)])


def both(tiles_text: str, folder: Path, own: str = "") -> tuple[Path, Path]:
    """A program, behind an option of the target if there is one, and what it is expanded to without."""
    tiles = kernel_file(folder, tiles_text, "tiles.pto")
    micro = kernel_file(folder, KERNELS_TIMES + expand(tiles, LoadRequest()), "micro.pto")
    tiles.write_text(own + tiles_text)
    return tiles, micro


@pytest.mark.parametrize(("pair", "mode", "saturation", "shape"), CASES)
def test_a_cast_gives_the_same_bytes(pair, mode, saturation, shape, tmp_path: Path) -> None:
    paths = both(program(*pair, mode, saturation, shape), tmp_path, OWN_SEQUENCES if pair in PROFILED else "")
    fmt, size = format_named(pair[0]), (shape[2], shape[3])
    inputs = {"x": array_from_codes(np.resize(source_codes(*pair), size).astype(code_dtype(fmt)), fmt)}
    whole, again = (run(path, inputs=inputs) for path in paths)
    one, other = whole.outputs["y"], again.outputs["y"]
    assert (one.dtype, one.tobytes()) == (other.dtype, other.tobytes())
    assert isinstance(whole.loaded, TileProgram)
    least, most = bounds_of(function_in(whole.loaded.executed.tree))
    assert least <= again.cycles - whole.cycles <= most


def test_what_scalars_and_loops_do_is_kept(tmp_path: Path) -> None:
    for name in ("a5_f32_to_e4m3fn_padded", "a5_i64_to_i32", "a5_f32_to_i8_by_steps", "a5_bf16_to_f16_barriers"):
        micro = tmp_path / f"{name}.pto"
        micro.write_text(expand(PROGRAMS / f"{name}.pto", LoadRequest()))
        inputs = {"src": "random:3"}
        whole = run(PROGRAMS / f"{name}.pto", inputs=inputs).outputs
        drawn = run(micro, inputs=inputs).outputs
        assert {key: one.tobytes() for key, one in whole.items()} == {key: one.tobytes() for key, one in drawn.items()}


@pytest.mark.parametrize(
    ("line", "said", "column"),
    [
        ("// castsim: option micro_integer_to_float=as_ask", "as_asked", 20),
        ("// castsim: option micro_integer=1", "has no option", 20),
        ("// castsim: option ctrl_60_at_start", "NAME=VALUE", 20),
    ],
)
def test_a_wrong_option_is_refused_where_it_stands(line: str, said: str, column: int, tmp_path: Path) -> None:
    path = kernel_file(tmp_path, program("i32", "f32", None, None, SHAPES[0]) + f"\n{line}\n", "x.pto")
    with pytest.raises(CastsimError) as caught:
        run(path, inputs={"x": "random:1"})
    assert said in caught.value.render()
    assert caught.value.span is not None and caught.value.span.column == column


A5 = load_target("a5")
assert isinstance(A5, VectorFunctionTarget)
WORK_SHAPES = ((8, 256, 8, 256), (4, 512, 3, 300), (5, 128, 4, 70), (1, 64, 1, 64), (3, 64, 2, 33))
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
REARRANGING = (
    Kind.GATHER, Kind.PATTERN_GATHER, Kind.COMPARE_GATHER, Kind.SORT, Kind.MERGE, Kind.TRANSPOSE, Kind.CONCATENATE,
    Kind.COUNTED_CONCATENATE, Kind.QUANTISE, Kind.DEQUANTISE, Kind.PACK, Kind.BLOCK_QUANTISE, Kind.BOX,
    *STRUCTURES["combination"].kinds,
)  # fmt: skip
"""Kinds of which no operation is written; they are refused by their structures."""

UNWRITTEN = {
    "trem": ("f16", "f32", "i16", "i32"), "trems": ("f16", "f32", "i16", "i32"),
    "tfmod": ("f16", "f32", "i16", "i32"), "tfmods": ("f16", "f32", "i16", "i32"),
    "tdiv": ("i16", "i32"), "tdivs": ("i8", "i16", "i32"), "trowexpanddiv": ("i8", "i16", "i32"),
    "tcolexpanddiv": ("i8", "i16", "i32"), "taxpy": ("bf16",),
    "trowargmax": ("f16", "f32"), "trowargmin": ("f16", "f32"),
    "tcolargmax": ("i16", "i32", "f16", "f32"), "tcolargmin": ("i16", "i32", "f16", "f32"),
}  # fmt: skip
"""Operations that are refused, with their elements; row products of floats only in rows of more than a register."""


def cases() -> Iterator[Case]:
    """Every operation with every element, shape and list of operands."""
    for rule in A5.tile_operations:
        operation = VECTOR_OPERATIONS[rule.mnemonic]
        if operation.kind in REARRANGING:
            continue
        forms = [
            number
            for number, form in enumerate(operation.forms)
            if not (Role.TMP in form and rule.tmp in ("none", "refused") and number)
            and not (operation.kind is Kind.RAMP and Role.TMP not in form)  # a loop of the scalar unit
        ]
        for element in (each for each in rule.types if each in NATIVE):
            for shape in WORK_SHAPES:
                yield from (case for form in forms for case in _variants(rule, element, shape, form))


def _variants(
    rule: VectorFunctionOperation, element: str, shape: tuple[int, int, int, int], form: int
) -> Iterator[Case]:
    kind, name = VECTOR_OPERATIONS[rule.mnemonic].kind, rule.mnemonic
    if kind is Kind.ROW_BROADCAST:
        for column in (False, True):
            yield Case(name, element, shape, form, column=column)
            if column or shape[1] * NATIVE[element].itemsize != 32:
                yield Case(name, element, shape, form, column=column, first=True)
    elif kind is Kind.COMPARE:
        yield from (Case(name, element, shape, form, word=word) for word in COMPARISONS)
    elif kind is Kind.FILL:
        yield from (Case(name, element, shape, form, pad=pad) for pad in (1, 2, 3))
    else:
        yield Case(name, element, shape, form)


def unwritten(case: Case) -> bool:
    """Whether no instructions do what an operation does."""
    lanes = 256 // NATIVE[case.element].itemsize
    if case.mnemonic == "trowprod":
        return case.element in ("f16", "f32") and case.shape[3] > lanes
    return case.element in UNWRITTEN.get(case.mnemonic, ())


WORKS = list(cases())
WRITTEN_WORKS = [case for case in WORKS if not unwritten(case)]
WORK_CASES = WRITTEN_WORKS if "CASTSIM_THOROUGH" in os.environ else random.Random(4).sample(WRITTEN_WORKS, 110)
OPTIONS = (
    ("ctrl_60_at_start=1",), ("ctrl_60_at_start=1", "ctrl_48_at_start=1"), ("maximum_of_nan=number",),
    ("maximum_of_nan=first",), ("lane_order=sequential",), ("spare_mask_bits=keep",), ("shift_beyond_width=modulo",),
    ("axpy_rounding=twice",), ("relu_of_nan=nan",), *((f"implementation_kind={kind}",) for kind in (1, 2, 3, 4)),
    ("expansion_select=hidden",),
)  # fmt: skip


def checked(case: Case, folder: Path, seed: int = 3) -> tuple[float, TileProgram]:
    """Compare the bytes of a program and of its instructions; return how many cycles those take more."""
    inputs = case.inputs(seed)
    whole, again = (run(path, inputs=inputs) for path in both(case.program(), folder))
    assert whole.outputs["xd"].tobytes() == again.outputs["xd"].tobytes()
    assert isinstance(whole.loaded, TileProgram)
    return again.cycles - whole.cycles, whole.loaded


@pytest.mark.parametrize("case", WORK_CASES, ids=str)
def test_instructions_of_an_operation_give_its_bytes(case: Case, tmp_path: Path) -> None:
    more, loaded = checked(case, tmp_path)
    rule = A5.tile_operation(case.mnemonic)
    assert rule is not None
    nests = function_in(loaded.executed.tree).nests
    rows, trips = sum(each.rows for each in nests), sum(each.rows * each.trips for each in nests)
    least, most = spread_of(rule.structure, case.mnemonic).bounds(rows, trips)
    assert least <= more <= most


def test_elements_of_64_bits_are_moved_as_words(tmp_path: Path) -> None:
    assert checked(Case("tmov", "i64", WORK_SHAPES[1]), tmp_path)[0] == 0


@pytest.mark.parametrize("case", [each for each in WORKS if unwritten(each) and each.shape == WORK_SHAPES[1]], ids=str)
def test_what_has_no_instructions_is_refused_by_name(case: Case, tmp_path: Path) -> None:
    with pytest.raises(IllegalError) as caught:
        expand(kernel_file(tmp_path, case.program(), "x.pto"), LoadRequest())
    assert f"expand cannot write pto.{case.mnemonic}: its lowering has " in str(caught.value)
    assert caught.value.span is not None


@pytest.mark.parametrize("options", OPTIONS, ids=",".join)
def test_options_of_the_target_hold_for_the_instructions_too(options: tuple[str, ...], tmp_path: Path) -> None:
    rng = random.Random(str(options))
    bearing = {
        "maximum_of_nan": ("tmax", "tmaxs", "trowmax", "tcolmax", "tcolmin", "tcolexpandmax"),
        "lane_order": ("trowsum",), "spare_mask_bits": ("tcmp", "tcmps"), "shift_beyond_width": ("tshl", "tshrs"),
        "axpy_rounding": ("taxpy",), "relu_of_nan": ("trelu",),
    }.get(options[0].partition("=")[0])  # fmt: skip
    known = [case for case in WRITTEN_WORKS if bearing is None or case.mnemonic in bearing]
    for case in rng.sample(known, min(6, len(known))):
        checked(replace(case, options=options), tmp_path)


EXPANDABLE = [
    *sorted(each for each in PROGRAMS.glob("a5_*.pto")),
    *(PROGRAMS / "kernels" / f"{name}_a5.pto" for name in (
        "softmax_prepare", "rotary_cache", "quantise_rows_i8", "quantise_rows_fp8", "rms_norm",
        "serving/norm_quantise",
    )),
]  # fmt: skip
LEFT_OUT = {
    "gated_activation": "pto.load_scalar", "combine_experts": "pto.load_scalar", "online_softmax": "pto.load_scalar",
    "topk_routing": "pto.tci",
}  # fmt: skip
"""Kernels that are not written, and the operation for which they are not."""


@pytest.mark.parametrize("path", EXPANDABLE, ids=lambda path: path.stem)
def test_every_program_for_the_chip_is_written_as_legal_text(path: Path) -> None:
    text, source = expand(path, LoadRequest()), path.read_text()
    parsed = parse(text, "x.pto")
    assert not parsed.refused
    assert all("f4E" in str(each) for each in parsed.warnings)  # arguments that are arrays of 4-bit elements
    uncommented = "".join(line for line in text.splitlines(keepends=True) if not line.lstrip().startswith("//"))
    assert print_program(parsed) == uncommented
    assert text == expand(path, LoadRequest())
    names, written = (re.findall(r"func\.func @(\w+)\((.*?)\) attributes", each)[0] for each in (source, text))
    assert written[0] == names[0]
    assert re.findall(r"%\w+", written[1]) == re.findall(r"%\w+", names[1])


@pytest.mark.parametrize("name", LEFT_OUT)
def test_kernels_that_are_left_out_say_why(name: str) -> None:
    path = PROGRAMS / "kernels" / "serving" / f"{name}_a5.pto"
    with pytest.raises(IllegalError) as caught:
        expand(path, LoadRequest())
    assert f"expand cannot write {LEFT_OUT[name]}" in str(caught.value)
    assert caught.value.span is not None
    assert LEFT_OUT[name] in path.read_text().splitlines()[caught.value.span.line - 1]


def test_an_entry_is_chosen_and_a_file_written_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "two.pto", tmp_path / "micro.pto"
    text = program("f32", "f16", None, None, (1, 64, 1, 64))
    whole = text[text.index("func.func") : text.rindex("}")]
    other = whole.replace("@cast", "@second")
    path.write_text(f'module attributes {{pto.target_arch = "a5"}} {{\n{whole}\n{other}\n}}\n')
    assert main(["expand", str(path), "--entry", "second", "-o", str(out)]) == 0
    before = out.read_text()
    assert "func.func @second(" in before and "@cast" not in before
    refused = PROGRAMS / "kernels" / "serving" / f"{next(iter(LEFT_OUT))}_a5.pto"
    assert "error" in err_of(capsys, ["expand", str(refused), "-o", str(out)], 1)
    assert out.read_text() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["micro.pto", "two.pto"]


KERNELS = PROGRAMS / "kernels"
F32 = "!pto.tile_buf<vec, 16x256xf32, valid=?x?>"
F16 = "!pto.tile_buf<vec, 16x256xf16, valid=?x?>"
COLUMN = "!pto.tile_buf<vec, 16x1xf32, valid=?x1, blayout=col_major>"
BODIES = {
    "if": f"""
%seven = arith.constant 7 : i32
%big = arith.cmpi sgt, %k, %seven : i32
scf.if %big {{
  pto.tmuls ins(%t, %s : {F32}, f32) outs(%t : {F32})
}} else {{
  pto.tadds ins(%t, %s : {F32}, f32) outs(%t : {F32})
}}""",
    "for": f"""
%n = arith.index_cast %k : i32 to index
scf.for %i = %c0 to %n step %c2 {{
  pto.tsubs ins(%t, %s : {F32}, f32) outs(%t : {F32})
}}""",
    "for carrying": f"""
%n = arith.index_cast %k : i32 to index
%last = scf.for %i = %c0 to %n step %c3 iter_args(%f = %s) -> (f32) {{
  pto.tmuls ins(%t, %f : {F32}, f32) outs(%t : {F32})
  %g = arith.addf %f, %s : f32
  scf.yield %g : f32
}}
pto.tmaxs ins(%t, %last : {F32}, f32) outs(%t : {F32})""",
    "while": f"""
%zero = arith.constant 0 : i32
%three = arith.constant 3 : i32
%last = scf.while (%a = %k) : (i32) -> (i32) {{
  %go = arith.cmpi sgt, %a, %zero : i32
  scf.condition(%go) %a : i32
}} do {{
^bb0(%b: i32):
  pto.tdivs ins(%t, %s : {F32}, f32) outs(%t : {F32})
  %less = arith.subi %b, %three : i32
  scf.yield %less : i32
}}""",
    "set_validshape": f"""
%half = arith.ceildivsi %rows, %c2 : index
pto.set_validshape %t, %half, %cols : {F32}
pto.tmuls ins(%t, %s : {F32}, f32) outs(%t : {F32})
pto.set_validshape %t, %rows, %cols : {F32}""",
    "rows": f"""
%sums = pto.alloc_tile valid_row = %rows : {COLUMN}
%w = pto.alloc_tile valid_row = %rows valid_col = %cols : {F32}
pto.trowmax ins(%t, %w : {F32}, {F32}) outs(%sums : {COLUMN})
pto.trowexpandsub ins(%t, %sums : {F32}, {COLUMN}) outs(%w : {F32})
pto.texp ins(%w : {F32}) outs(%t : {F32})""",
}


def flow_program(body: str) -> str:
    """Load, the body, a cast, a store, with extents that arguments decide."""
    return f"""module attributes {{pto.target_arch = "a5"}} {{ func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f16>, %rows: index, %cols: index, %k: i32, %s: f32) attributes {{pto.entry}} {{
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%c3 = arith.constant 3 : index
%c16 = arith.constant 16 : index
%c256 = arith.constant 256 : index
%t = pto.alloc_tile valid_row = %rows valid_col = %cols : {F32}
%h = pto.alloc_tile valid_row = %rows valid_col = %cols : {F16}
%vx = pto.make_tensor_view %x, shape = [%c16, %c256], strides = [%c256, %c1] : !pto.tensor_view<?x?xf32>
%vy = pto.make_tensor_view %y, shape = [%c16, %c256], strides = [%c256, %c1] : !pto.tensor_view<?x?xf16>
%px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%rows, %cols] : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<?x?xf32>
%py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%rows, %cols] : !pto.tensor_view<?x?xf16> -> !pto.partition_tensor_view<?x?xf16>
pto.tload ins(%px : !pto.partition_tensor_view<?x?xf32>) outs(%t : {F32})
{body}
pto.tcvt ins(%t : {F32}) outs(%h : {F16})
pto.tstore ins(%h : {F16}) outs(%py : !pto.partition_tensor_view<?x?xf16>)
return
}} }}
"""


def same_bytes(tiles: Path, micro: Path, inputs: dict[str, str], args: dict[str, int | float]) -> tuple[int, int]:
    """Compare what both store; return their cycles."""
    whole, again = (run(path, inputs=inputs, args=args) for path in (tiles, micro))
    for name, value in whole.outputs.items():
        stored = again.outputs[name].reshape(-1)
        assert value.reshape(-1)[: stored.size].tobytes() == stored.tobytes()
        assert not np.any(value.reshape(-1)[stored.size :].view(np.uint8))
    return whole.cycles, again.cycles


@pytest.mark.parametrize("name", BODIES)
def test_what_arguments_decide_stays_in_the_text(name: str, tmp_path: Path) -> None:
    tiles, micro = tmp_path / "tiles.pto", tmp_path / "micro.pto"
    tiles.write_text(flow_program(BODIES[name]))
    text = expand(tiles, LoadRequest())
    micro.write_text(KERNELS_TIMES + text)
    for rows, cols, k, s in ((16, 256, 9, 1.5), (7, 100, 3, -2.0), (2, 1, 0, 0.5), (15, 65, 20, 1.1)):
        whole, again = same_bytes(tiles, micro, {"x": "random:4"}, {"rows": rows, "cols": cols, "k": k, "s": s})
        if name != "rows":  # reductions: see test_expand
            # The text spreads the divisor once, not in every row; casts of one vector a row have published cycles
            # without a turn of the loop, whose trips only the run knows here.
            spreads = rows * max(0, -(-k // 3)) if name == "while" else 0
            turns = 4 * rows if cols <= 128 else 2
            assert -5 - spreads <= again - whole <= turns - spreads
    assert {"for carrying": "scf.for", "rows": "", "set_validshape": ""}.get(name, f"scf.{name}") in text
    for kept in ("%rows: index", "%cols: index", "%k: i32", "%s: f32"):
        assert kept in text


def test_settled_arguments_need_not_be_given_again(tmp_path: Path) -> None:
    tiles = tmp_path / "tiles.pto"
    tiles.write_text(flow_program(BODIES["for"]))
    args: dict[str, int | float] = {"rows": 5, "cols": 70, "k": 4, "s": 0.25}
    texts = [expand(tiles, LoadRequest(args=given)) for given in ({}, args)]
    assert "= %c0 to %rows" in texts[0] or "to %rows" in texts[0]
    assert "to %rows" not in texts[1]
    found = []
    for number, text in enumerate(texts):
        micro = tmp_path / f"{number}.pto"
        micro.write_text(text)
        found.append(run(micro, inputs={"x": "random:4"}, args=args).outputs["y"].tobytes())
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("name", "settings", "inputs"),
    [
        ("softmax_prepare", [{"scale": 0.25}, {"scale": -1.5}], ("scores",)),
        ("rms_norm", [{"eps": 1e-6}], ("src", "gamma")),
        ("serving/norm_quantise", [{"rows": rows, "eps": 1e-6, "top": 448.0} for rows in (1, 16, 20)],
         ("x", "residual", "gamma")),
    ],
)  # fmt: skip
def test_kernels_give_their_bytes_for_every_argument(name, settings, inputs, tmp_path) -> None:
    tiles, micro = KERNELS / f"{name}_a5.pto", tmp_path / "micro.pto"
    micro.write_text(expand(tiles, LoadRequest()))
    given = {each: f"random:{number}" for number, each in enumerate(inputs)}
    for args in settings:
        whole, again = same_bytes(tiles, micro, given, args)
        assert abs(again - whole) <= 0.02 * whole  # launches of the text meet no transfer at the ports of the buffer


def test_rotary_cache_writes_where_its_position_says(tmp_path: Path) -> None:
    tiles, micro = KERNELS / "rotary_cache_a5.pto", tmp_path / "micro.pto"
    micro.write_text(expand(tiles, LoadRequest()))
    given = {"k": "random:1", "cos": "random:2", "sin": "random:3"}
    found = []
    for position in (0, 2):
        whole = run(tiles, inputs=given, args={"position": position}).outputs["cache"].reshape(-1)
        again = run(micro, inputs=given, args={"position": position}).outputs["cache"].reshape(-1)
        assert whole[: again.size].tobytes() == again.tobytes()
        found.append(again.tobytes())
    assert all(one != two for one, two in pairwise(found))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (f"pto.tcmps ins(%t, %s : {F32}, f32) outs(%m : {{M}})", "its loops follow %rows and %cols"),
        ("%v = pto.load_scalar %x[%c0] : !pto.ptr<f32> -> f32", "functions of vector instructions do not support it"),
    ],
)
def test_what_needs_settled_arguments_says_so_where_it_stands(body: str, said: str, tmp_path: Path) -> None:
    mask = "!pto.tile_buf<vec, 16x256xi8, valid=?x?>"
    head = f"%m = pto.alloc_tile valid_row = %rows valid_col = %cols : {mask}\n" if "%m" in body else ""
    path = tmp_path / "x.pto"
    path.write_text(flow_program(head + body.replace("{M}", mask)))
    with pytest.raises(IllegalError) as caught:
        expand(path, LoadRequest())
    assert said in str(caught.value)
    assert caught.value.span is not None
    word = body.partition("pto.")[2].split()[0]
    assert f"pto.{word}" in path.read_text().splitlines()[caught.value.span.line - 1]
