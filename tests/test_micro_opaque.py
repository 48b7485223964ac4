"""Stores of vector programs whose bytes no text gives: read, checked and timed; their values are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from castsim import run
from castsim.__main__ import main
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program

UB = "!pto.ptr<f32, ub>"
MASKS = "!pto.ptr<ui8, ub>"
STORES = {
    "sprsti": f'pto.sprsti "AR", %u[%i] : {MASKS}, index',
    "sprsts": f'pto.sprsts "AR", %u, %i : {MASKS}, index',
    "pstu": f"%b, %v = pto.pstu %a, %m, %u : !pto.align, !pto.mask<b32>, {MASKS} -> !pto.align, {MASKS}",
    "one result": f"%b = pto.pstu %a, %m, %u : !pto.align, !pto.mask<b32>, {MASKS} -> !pto.align",
}
SORT = f"pto.vbitsort %p, %q, %q, %i : {UB}, {UB}, {UB}, index"


def program(inside: str, outside: str = "") -> str:
    return f"""module attributes {{pto.target_arch = "a5"}} {{
func.func @k(%x: !pto.ptr<f32, gm>) {{
%i = arith.constant 0 : index
%z = arith.constant 0 : i64
%one = arith.constant 1 : i64
%w = arith.constant 256 : i64
%h = arith.constant 4096 : i64
%p = pto.castptr %z : i64 -> {UB}
%q = pto.castptr %h : i64 -> {UB}
%u = pto.castptr %h : i64 -> {MASKS}
pto.vecscope {{
%m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>
%a = pto.init_align : !pto.align
%r = pto.vlds %p[%i] : {UB} -> !pto.vreg<64xf32>
%s = pto.vadd %r, %r, %m : !pto.vreg<64xf32>, !pto.vreg<64xf32>, !pto.mask<b32> -> !pto.vreg<64xf32>
pto.vsts %s, %p[%i], %m : !pto.vreg<64xf32>, {UB}, !pto.mask<b32>
{inside}
}}
{outside}
return
}}
}}
"""


def saved(folder: Path, text: str) -> Path:
    path = folder / "kernel.pto"
    path.write_text(text)
    return path


@pytest.mark.parametrize("form", STORES)
def test_it_is_timed_and_warned_of(form: str, tmp_path: Path) -> None:
    path = saved(tmp_path, program(STORES[form]))
    name = STORES[form].partition("pto.")[2].split()[0]
    assert main(["check", str(path)]) == 0
    found = run(path, timing_only=True)
    assert any(f"pto.{name} is not modelled" in str(warning) for warning in found.warnings)
    assert found.cycles >= run(saved(tmp_path, program("")), timing_only=True).cycles
    both = run(saved(tmp_path, program(STORES[form])), timing_only=True, engine="event")
    assert both.cycles == found.cycles


@pytest.mark.parametrize("form", STORES)
def test_its_values_are_refused_by_name_and_place(form: str, tmp_path: Path) -> None:
    with pytest.raises(IllegalError, match="no text at hand says what it writes") as caught:
        run(saved(tmp_path, program(STORES[form])))
    assert caught.value.span is not None
    assert caught.value.span.line == 17
    assert "--timing-only" in caught.value.legal


@pytest.mark.parametrize("text", [*(program(each) for each in STORES.values()), program("", SORT)])
def test_it_is_printed_as_it_is_read(text: str) -> None:
    read = parse(text)
    assert parse(print_program(read)) == read


def test_a_sort_stands_outside_and_has_no_cycles(tmp_path: Path) -> None:
    path = saved(tmp_path, program("", SORT))
    assert main(["check", str(path)]) == 0
    assert "vbitsort" in run(path, timing_only=True).untimed
    with pytest.raises(IllegalError, match="not allowed inside"):
        run(saved(tmp_path, program(SORT)), timing_only=True)


def test_a_malformed_one_shows_the_form() -> None:
    with pytest.raises(ReadError) as caught:
        parse(program(f"pto.pstu %m : {MASKS}"))
    assert caught.value.span is not None
    assert caught.value.span.line == 17
