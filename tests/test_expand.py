"""`castsim expand`: the vector instructions of a tile program give its bytes, for all casts of the A5."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

import os
import random
from itertools import product
from pathlib import Path

import numpy as np
import oracle_a5
import pytest
from a5_cases import source_codes
from expand_differences import DIFFERENCES, OWN_SEQUENCES, PROFILED, bounds_of, function_in
from expand_works import Case

from castsim.isa.errors import CastsimError, IllegalError
from castsim.isa.formats import format_named
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program
from castsim.numerics import array_from_codes, code_dtype
from castsim.running import load, run
from castsim.running.expanding import expand
from castsim.running.loaded import LoadRequest
from castsim.running.program_loading import TileProgram
from castsim.targets import load_target
from castsim.targets.options import with_options

PROGRAMS = Path(__file__).parents[1] / "programs"
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
    """One tile loaded, cast and stored."""
    rows, cols, valid_rows, valid_cols = shape
    kinds = [
        f"!pto.tile_buf<vec, {rows}x{cols}x{WRITTEN.get(one, one)}, valid={valid_rows}x{valid_cols}>"
        for one in (src, dst)
    ]
    parts = [f"{valid_rows}x{valid_cols}x{WRITTEN.get(one, one)}" for one in (src, dst)]
    words = [f"rmode = #pto<round_mode {mode}>"] if mode else []
    words += [f"sat_mode = #pto<saturation_mode {saturation}>"] if saturation else []
    given = f" {{{', '.join(words)}}}" if words else ""
    views = "\n".join(
        f"""%v{name} = pto.make_tensor_view %{name}, shape = [%r, %c], strides = [%c, %one] : !pto.tensor_view<{part}>
        %p{name} = pto.partition_view %v{name}, offsets = [%zero, %zero], sizes = [%r, %c] : !pto.tensor_view<{part}> -> !pto.partition_tensor_view<{part}>"""
        for name, part in zip("xy", parts, strict=True)
    )
    return f"""module attributes {{pto.target_arch = "a5"}} {{
      func.func @cast(%x: !pto.ptr<{WRITTEN.get(src, src)}>, %y: !pto.ptr<{WRITTEN.get(dst, dst)}>) attributes {{pto.entry}} {{
        %zero = arith.constant 0 : index
        %one = arith.constant 1 : index
        %r = arith.constant {valid_rows} : index
        %c = arith.constant {valid_cols} : index
        {views}
        %a = pto.alloc_tile : {kinds[0]}
        %b = pto.alloc_tile : {kinds[1]}
        pto.tload ins(%px : !pto.partition_tensor_view<{parts[0]}>) outs(%a : {kinds[0]})
        pto.tcvt ins(%a{given} : {kinds[0]}) outs(%b : {kinds[1]})
        pto.tstore ins(%b : {kinds[1]}) outs(%py : !pto.partition_tensor_view<{parts[1]}>)
        return
      }}
    }}"""


@pytest.mark.parametrize(("pair", "mode", "saturation", "shape"), CASES)
def test_a_cast_gives_the_same_bytes(
    pair: tuple[str, str], mode: str | None, saturation: str | None, shape: tuple[int, int, int, int], tmp_path: Path
) -> None:
    tiles, micro = tmp_path / "tiles.pto", tmp_path / "micro.pto"
    tiles.write_text(program(*pair, mode, saturation, shape))
    micro.write_text(expand(tiles, LoadRequest()))
    if pair in PROFILED:
        tiles.write_text(OWN_SEQUENCES + tiles.read_text())
    fmt, size = format_named(pair[0]), (shape[2], shape[3])
    codes = np.resize(source_codes(*pair), size).astype(code_dtype(fmt))
    inputs = {"x": array_from_codes(codes, fmt)}
    whole, again = (run(path, inputs=inputs) for path in (tiles, micro))
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
    tiles, micro = tmp_path / "tiles.pto", tmp_path / "micro.pto"
    tiles.write_text(program(*pair, None, None, shape))
    micro.write_text(expand(tiles, LoadRequest()))
    if pair in PROFILED:
        tiles.write_text(OWN_SEQUENCES + tiles.read_text())
    whole, again = (run(path, timing_only=True) for path in (tiles, micro))
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
        tiles, micro = tmp_path / "tiles.pto", tmp_path / "micro.pto"
        tiles.write_text(program(*pair, None, None, shape))
        micro.write_text(expand(tiles, LoadRequest()))
        published, again = (run(path, timing_only=True).cycles for path in (tiles, micro))
        tiles.write_text(OWN_SEQUENCES + tiles.read_text())
        assert run(tiles, timing_only=True).cycles == again
        differences.append(published != again)
    assert any(differences)


def test_the_text_is_what_the_printer_reads(tmp_path: Path) -> None:
    text = expand(PROGRAMS / "a5_hif8_round_trip.pto", LoadRequest())
    parsed = parse(text, "x.pto")
    assert parse(print_program(parsed), "x.pto") == parsed


def test_another_target_is_refused() -> None:
    with pytest.raises(IllegalError) as caught:
        expand(PROGRAMS / "f32_to_f16.pto", LoadRequest())
    assert caught.value.exit_code == 1


def test_what_is_no_register_operation_is_refused_where_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "x.pto"
    path.write_text(Case("trem", "f32", (2, 64, 2, 64)).program())
    with pytest.raises(IllegalError) as caught:
        expand(path, LoadRequest())
    text = caught.value.render()
    assert "expand cannot write pto.trem: its lowering has conversions" in text
    assert caught.value.span is not None
    assert path.read_text().splitlines()[caught.value.span.line - 1].startswith("pto.trem")


def test_what_scalars_and_loops_do_is_kept(tmp_path: Path) -> None:
    for name in ("a5_f32_to_e4m3fn_padded", "a5_i64_to_i32", "a5_f32_to_i8_by_steps", "a5_bf16_to_f16_barriers"):
        micro = tmp_path / f"{name}.pto"
        micro.write_text(expand(PROGRAMS / f"{name}.pto", LoadRequest()))
        inputs = {"src": "random:3"}
        whole = run(PROGRAMS / f"{name}.pto", inputs=inputs).outputs
        drawn = run(micro, inputs=inputs).outputs
        assert {key: value.tobytes() for key, value in whole.items()} == {
            key: value.tobytes() for key, value in drawn.items()
        }


@pytest.mark.parametrize(
    ("line", "said", "column"),
    [
        ("// castsim: option micro_integer_to_float=as_ask", "as_asked", 20),
        ("// castsim: option micro_integer=1", "has no option", 20),
        ("// castsim: option ctrl_60_at_start", "NAME=VALUE", 20),
    ],
)
def test_a_wrong_option_is_refused_where_it_stands(line: str, said: str, column: int, tmp_path: Path) -> None:
    path = tmp_path / "x.pto"
    path.write_text(program("i32", "f32", None, None, SHAPES[0]) + f"\n{line}\n")
    with pytest.raises(CastsimError) as caught:
        run(path, inputs={"x": "random:1"})
    assert said in caught.value.render()
    assert caught.value.span is not None and caught.value.span.column == column


def test_an_option_of_the_text_holds_and_the_callers_wins(tmp_path: Path) -> None:
    path = tmp_path / "x.pto"
    path.write_text("// castsim: option nan_to_integer=maximum\n" + program("f32", "i32", None, None, SHAPES[0]))
    nan = {"x": np.full((1, 64), np.nan, np.float32)}
    assert run(path, inputs=nan).outputs["y"].flat[0] == 2**31 - 1
    micro = tmp_path / "micro.pto"
    micro.write_text(expand(path, LoadRequest()))
    assert "// castsim: option nan_to_integer=maximum" in micro.read_text()
    assert run(micro, inputs=nan).outputs["y"].flat[0] == 2**31 - 1
    loaded = load(path, None, None, {}, prepare=lambda target: with_options(target, {"nan_to_integer": "zero"}))
    assert loaded.target.option("nan_to_integer") == "zero"
    assert load_target("a5").option("nan_to_integer") == "zero"
