"""tprint, which changes nothing, and row expansions of dense columns (docs/reference/pto.md sections 7.4 and 7.11)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tile_work_checks import expect
from work_programs import Spot, computed, noise, program, statement, synchronised, target, walked

from castsim import run
from castsim.execution.synchronisation.race_detector import find_races
from castsim.isa.errors import CastsimError
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program

TARGETS = ("a2a3", "a5")
A, D = Spot("a", "f32", 4, 64, 0), Spot("d", "f32", 4, 64, 4096)
PRINTED = program(f"pto.tprint ins(%a : {A.type})\n" + statement("tabs", [A], D), [A, D])


@pytest.mark.parametrize("name", TARGETS)
def test_a_print_changes_nothing(name: str) -> None:
    before = noise(target(name))
    plain = program(statement("tabs", [A], D), [A, D])
    assert np.array_equal(computed(PRINTED, target(name), before), computed(plain, target(name), before))
    assert any("nothing is printed" in str(warning) for warning in walked(PRINTED, target(name)).warnings)
    parsed = parse(PRINTED, "k.pto")
    assert parse(print_program(parsed), "k.pto") == parsed


def test_a_print_waits_for_what_it_shows(tmp_path: Path) -> None:
    """Inserted flags order it as a reader on the vector pipe."""
    kind, part = "!pto.tile_buf<vec, 4x64xf32>", "!pto.partition_tensor_view<4x64xf32>"
    path = tmp_path / "k.pto"
    path.write_text(f"""func.func @k(%x: !pto.ptr<f32>) attributes {{pto.entry}} {{
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c4 = arith.constant 4 : index
%c64 = arith.constant 64 : index
%v = pto.make_tensor_view %x, shape = [%c4, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
%p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c4, %c64] : !pto.tensor_view<?x?xf32> -> {part}
%a = pto.alloc_tile : {kind}
pto.tload ins(%p : {part}) outs(%a : {kind})
pto.tprint ins(%a : {kind})
return
}}
""")
    for name in TARGETS:
        made = synchronised(path.read_text(), target(name))
        assert "wait_flag MTE2 -> V id 0" in {each.text for each in made.tree.instructions}
        assert not find_races(made.tree, target(name))
        assert run(path, name, timing_only=True).cycles > 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"pto.tprint ins(%a : {D.type.replace('4x64', '2x64')})", "%a is defined as"),
        ("pto.tprint %a", "expected 'ins'"),
        (f"%r = pto.tprint ins(%a : {A.type})", "has no result"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(CastsimError, match=message) as caught:
        parse(program(text, [A, D]), "k.pto")
    assert caught.value.span is not None


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("element", ["i8", "i16", "i32", "f16", "bf16", "f32"])
@pytest.mark.parametrize("shape", [(1, 32), (32, 40), (7, 64), (32, 256)])
def test_expansions_of_dense_columns(name: str, element: str, shape: tuple[int, int]) -> None:
    """Element (i, j) of the result is element i of the column."""
    rows, cols = shape
    c = Spot("c", element, 32, 1, 0, (rows, 1), column=True)
    d = Spot("d", element, rows, 256, 4096, shape)
    before = noise(target(name))
    text = program(statement("trowexpand", [c], d), [c, d])
    expect(text, name, before, d, np.repeat(c.get(before), cols, axis=1))


def test_columns_of_more_than_one_are_refused() -> None:
    c = Spot("c", "f32", 8, 2, 0, column=True)
    d = Spot("d", "f32", 8, 64, 4096)
    with pytest.raises(CastsimError, match="tile %c is column-major"):
        walked(program(statement("trowexpand", [c], d), [c, d]), target("a5"))
