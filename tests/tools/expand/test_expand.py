"""'castsim expand' gives the bytes of a tile program: casts, operations, what is decided at run time; its text."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import oracle_a5
import pytest
from kit.a5_cases import source_codes
from kit.execution_programs import kernel_file
from kit.expand_works import Case
from kit.paths import PROGRAMS
from kit.pto_text import asked, cast_program, compact
from kit.work_programs import NATIVE
from tools.expand.expand_differences import (
    DIFFERENCES,
    KERNELS_TIMES,
    OWN_SEQUENCES,
    PROFILED,
    SPREADS,
    bounds_of,
    function_in,
    spread_of,
)
from tools.expand.micro_line_checks import check

from castsim.__main__ import main
from castsim.isa.errors import CastsimError, IllegalError
from castsim.isa.formats import format_named
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind, Role
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import array_from_codes
from castsim.running.loaded import LoadRequest
from castsim.running.program_loading import TileProgram, load
from castsim.running.program_runs import run
from castsim.targets.description import with_options
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


NEEDED = {
    "head": (("f32", "i64"), (1, 64, 1, 34)),
    "setup": (("e2m1", "bf16"), (2, 128, 2, 128)),
    "predicates": (("i8", "i32"), (3, 256, 3, 128)),
    "halves": (("bf16", "e2m1"), (3, 256, 3, 192)),
    "fill": (("bf16", "e2m1"), (10, 640, 10, 640)),
}
"""A cast that shows each difference."""


@pytest.mark.parametrize("name", [each.name for each in DIFFERENCES])
def test_every_named_difference_is_there(name: str, tmp_path: Path) -> None:
    pair, shape = NEEDED[name]
    paths = both(program(*pair, None, None, shape), tmp_path, OWN_SEQUENCES if pair in PROFILED else "")
    whole, again = (run(path, timing_only=True) for path in paths)
    assert isinstance(whole.loaded, TileProgram)
    function, more = function_in(whole.loaded.executed.tree), again.cycles - whole.cycles
    least, most = bounds_of(function, without=name)
    assert not least <= more <= most
    least, most = bounds_of(function)
    assert least <= more <= most


@pytest.mark.parametrize("pair", sorted(PROFILED))
def test_published_sequences_differ_from_the_instructions(pair: tuple[str, str], tmp_path: Path) -> None:
    """They do on some shape; with the kernel's own sequence nothing is left."""
    differences = []
    for shape in ((4, 320, 4, 320), (10, 640, 9, 600)):
        tiles, micro = both(program(*pair, None, None, shape), tmp_path)
        published, again = (run(path, timing_only=True).cycles for path in (tiles, micro))
        tiles.write_text(OWN_SEQUENCES + tiles.read_text())
        assert run(tiles, timing_only=True).cycles == again
        differences.append(published != again)
    assert any(differences)


def test_what_is_no_register_operation_is_refused_where_it_stands(tmp_path: Path) -> None:
    path = kernel_file(tmp_path, Case("trem", "f32", (2, 64, 2, 64)).program(), "x.pto")
    with pytest.raises(IllegalError) as caught:
        expand(path, LoadRequest())
    assert "expand cannot write pto.trem: its lowering has conversions" in caught.value.render()
    assert caught.value.span is not None
    assert path.read_text().splitlines()[caught.value.span.line - 1].startswith("pto.trem")


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


def test_an_option_of_the_text_holds_and_the_callers_wins(tmp_path: Path) -> None:
    path = kernel_file(
        tmp_path, "// castsim: option nan_to_integer=maximum\n" + program("f32", "i32", None, None, SHAPES[0]), "x.pto"
    )
    nan = {"x": np.full((1, 64), np.nan, np.float32)}
    assert run(path, inputs=nan).outputs["y"].flat[0] == 2**31 - 1
    micro = kernel_file(tmp_path, expand(path, LoadRequest()), "micro.pto")
    assert "// castsim: option nan_to_integer=maximum" in micro.read_text()
    assert run(micro, inputs=nan).outputs["y"].flat[0] == 2**31 - 1
    loaded = load(path, None, None, {}, prepare=lambda target: with_options(target, {"nan_to_integer": "zero"}))
    assert loaded.target.option("nan_to_integer") == "zero"
    assert load_target("a5").option("nan_to_integer") == "zero"


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


SHOWN_BY = {
    "ports": Case("texpands", "f32", WORK_SHAPES[0]), "comparisons": Case("tcmp", "f32", WORK_SHAPES[0]),
    "masks": Case("tsel", "f32", WORK_SHAPES[0]), "sums": Case("trowsum", "f32", (16, 1024, 16, 1024)),
    "fold": Case("trowprod", "i32", WORK_SHAPES[0]),
    "first": Case("tcolmax", "f32", (16, 1024, 16, 1024), options=("maximum_of_nan=number",)),
    "narrow rows": Case("trowexpandmul", "i8", (5, 128, 4, 70), column=True),
    "columns": Case("tcolexpand", "f32", WORK_SHAPES[0]), "unaligned": Case("tfillpad", "f32", WORK_SHAPES[2]),
    "barrier": Case("tpartadd", "f32", WORK_SHAPES[3]), "destination": Case("taxpy", "f32", (16, 1024, 16, 1024)),
    "special functions": Case("trsqrt", "f16", (16, 1024, 16, 1024)),
}  # fmt: skip
"""A case that shows each reason."""


@pytest.mark.parametrize("name", [each.name for each in SPREADS])
def test_every_reason_is_needed(name: str, tmp_path: Path) -> None:
    more, _ = checked(SHOWN_BY[name], tmp_path)
    assert more != 0


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


def texts() -> list[tuple[str, str]]:
    """Sources of all kinds: a sample of casts, one of operations."""
    rng = random.Random(8)
    casts = [(str(case), program(*case[0], *case[1:])) for case in rng.sample(EVERY, 25)]
    return [*casts, *((str(case), case.program()) for case in rng.sample(WRITTEN_WORKS, 60))]


def accepted(text: str) -> None:
    """Check a text by its lines, by the reader with its rules; it is what the printer of programs makes."""
    assert check(text) > 0
    parsed = parse(text, "x.pto")
    assert not parsed.refused
    assert all("f4E" in str(each) for each in parsed.warnings)  # arguments that are arrays of 4-bit elements
    uncommented = "".join(line for line in text.splitlines(keepends=True) if not line.lstrip().startswith("//"))
    assert print_program(parsed) == uncommented


@pytest.mark.parametrize("path", EXPANDABLE, ids=lambda path: path.stem)
def test_every_program_for_the_chip_is_written_as_legal_text(path: Path) -> None:
    text = expand(path, LoadRequest())
    accepted(text)
    assert text == expand(path, LoadRequest())
    source = path.read_text()
    names = re.findall(r"func\.func @(\w+)\((.*?)\) attributes", source)[0]
    written = re.findall(r"func\.func @(\w+)\((.*?)\) attributes", text)[0]
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


@pytest.mark.parametrize(("name", "source"), texts(), ids=lambda each: each if "%" not in each else "")
def test_samples_are_written_as_legal_text(name: str, source: str, tmp_path: Path) -> None:
    accepted(expand(kernel_file(tmp_path, source, "x.pto"), LoadRequest()))


def test_an_entry_is_chosen_and_a_file_written_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "two.pto", tmp_path / "micro.pto"
    text = program("f32", "f16", None, None, (1, 64, 1, 64))
    whole = text[text.index("func.func") : text.rindex("}")]
    other = whole.replace("@cast", "@second")
    path.write_text(f'module attributes {{pto.target_arch = "a5"}} {{\n{whole}\n{other}\n}}\n')
    assert main(["expand", str(path), "--entry", "second", "-o", str(out)]) == 0
    assert "func.func @second(" in out.read_text() and "@cast" not in out.read_text()
    before = out.read_text()
    refused = PROGRAMS / "kernels" / "serving" / f"{next(iter(LEFT_OUT))}_a5.pto"
    assert main(["expand", str(refused), "-o", str(out)]) == 1
    assert out.read_text() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["micro.pto", "two.pto"]
    assert "error" in capsys.readouterr().err
