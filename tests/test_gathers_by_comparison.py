"""tgather that compares: numbers and counts against plain Python (docs/reference/pto.md section 7.7)."""

from __future__ import annotations

import numpy as np
import pytest
from tile_work_checks import ran
from work_model import special
from work_programs import NATIVE, Spot, computed, noise, program, target, walked

from castsim.isa.errors import CastsimError
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program

TARGETS = ("a2a3", "a5")
SCALAR = {"f32": "0.5", "f16": "0.5", "i32": "3", "i16": "3"}


def chosen(
    a: Spot, t: Spot | None, d: Spot, n: Spot, element: str, attributes: str = "{cmpMode = #pto<cmp gt>}"
) -> str:
    tmp = (f", %{t.name}", f", {t.type}") if t else ("", "")
    ins = f"ins(%{a.name}, %k{tmp[0]} : {a.type}, {element}{tmp[1]})"
    return f"pto.tgather {ins} outs(%{d.name}, %{n.name} : {d.type}, {n.type}) {attributes}"


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("element", ["f32", "f16", "i32", "i16"])
@pytest.mark.parametrize("mode", ["gt", "eq"])
@pytest.mark.parametrize("shape", [(1, 8), (7, 64), (3, 200)])
@pytest.mark.parametrize("across", [False, True])
def test_numbers_and_counts(name: str, element: str, mode: str, shape: tuple[int, int], across: bool) -> None:
    rows = shape[0]
    a, t = Spot("a", element, rows, 256, 0, shape), Spot("t", element, rows, 256, 16384, shape)
    d = Spot("d", "i32", rows, 256, 32768, shape)
    n = Spot("n", "ui32", 1, 8, 65536, (1, rows)) if across else Spot("n", "i32", rows, 8, 65536, (rows, 1))
    x = special(element, shape, rows)
    x[:, ::3] = NATIVE[element].type(float(SCALAR[element]))
    before = noise(target(name))
    a.put(before, x)
    operation = chosen(a, t, d, n, element, f"{{cmpMode = #pto<cmp {mode}>, offset = 5 : i32}}")
    text = program(operation, [a, t, d, n], {"k": (SCALAR[element], element)})
    if name == "a2a3" and (element == "i16" or (element == "i32" and mode == "gt")):
        with pytest.raises(CastsimError, match=r"does not take i16|for equality only"):
            walked(text, target(name))
        return
    limit, wanted, counts = float(SCALAR[element]), before.copy(), []
    for row, line in enumerate(x):
        found = [5 + j for j, v in enumerate(line) if (float(v) > limit if mode == "gt" else float(v) == limit)]
        counts.append(len(found))
        start = d.place(row, 0)
        wanted[start : start + 4 * len(found)] = np.array(found, "<i4").view(np.uint8)
    n.put(wanted, np.array([counts]).astype("<u4") if across else np.array(counts)[:, None].astype("<i4"))
    assert np.array_equal(ran(text, name, before), wanted)
    parsed = parse(text, "k.pto")
    assert parse(print_program(parsed), "k.pto") == parsed


A, T = Spot("a", "f32", 4, 64, 0), Spot("t", "f32", 4, 64, 4096)
D, N = Spot("d", "i32", 4, 64, 8192), Spot("n", "i32", 4, 64, 16384)
SMALL, H = Spot("s", "i32", 4, 8, 20480), Spot("h", "i16", 4, 64, 24576)


@pytest.mark.parametrize(
    ("operation", "name", "message"),
    [
        (chosen(A, None, D, N, "f32"), "a2a3", "needs a tmp tile"),
        (chosen(A, T, H, N, "f32"), "a5", "32-bit integers, %h holds i16"),
        (chosen(A, T, D, H, "f32"), "a5", "32-bit integers, %h holds i16"),
        (chosen(A, T, D, D, "f32"), "a5", "counts %d and %d share"),
        (chosen(A, T, D, N, "f32", "{cmpMode = #pto<cmp lt>}"), "a5", "unknown cmp 'lt'"),
        (chosen(A, T, D, N, "f32", "{offset = 1.5 : f32}"), "a5", "offset is a number of type i32"),
        (chosen(A, T, D, N, "f32", "{ofset = 1 : i32}"), "a5", "no attribute"),
        (f"pto.tgather ins(%a, %k : {A.type}, f32) outs(%d : {D.type})", "a5", "writes two tiles"),
    ],
)
def test_refusals(operation: str, name: str, message: str) -> None:
    text = program(operation, [A, T, D, N, SMALL, H], {"k": ("0.5", "f32")})
    if "ofset" in operation:
        assert any(message in str(warning) for warning in parse(text, "k.pto").warnings)
        return
    with pytest.raises(CastsimError) as caught:
        walked(text, target(name))
    assert message in str(caught.value), caught.value
    assert caught.value.span is not None


def test_more_than_the_result_holds_are_refused() -> None:
    before = noise(target("a5"))
    A.put(before, np.ones((4, 64), "<f4"))
    text = program(chosen(A, T, SMALL, N, "f32"), [A, T, SMALL, N], {"k": ("0.5", "f32")})
    with pytest.raises(CastsimError, match="64 elements of row 0 of %a compare so, a row of %s has 8"):
        computed(text, target("a5"), before)
