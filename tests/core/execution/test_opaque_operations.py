"""Operations that are passed over when only time is asked for: the command reports them as Python does."""

# A `.pto` statement stays on one line.

from __future__ import annotations

import json
from pathlib import Path

import pytest

from castsim import run
from castsim.__main__ import main
from castsim.execution.tree import InstructionRole
from castsim.isa.errors import CastsimError
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.vector_operations import ALIASES, VECTOR_OPERATIONS
from castsim.isa.pto.vector_operations import Role as Operand

ACC = "!pto.tile_buf<acc, 16x16xf32>"
VEC = "!pto.tile_buf<vec, 16x16xf32>"
PART = "!pto.partition_tensor_view<16x16xf32>"
VIEW = "!pto.tensor_view<16x16xf32>"
OTHERS = {
    "tload": f"pto.tload ins(%p : {PART}) outs(%a : {ACC})",
    "tstore": f"pto.tstore ins(%a : {ACC}) outs(%p : {PART})",
    "tmatmul": f"pto.tmatmul ins(%a, %a : {ACC}, {ACC}) outs(%a : {ACC})",
    "tcvt": f"pto.tcvt ins(%a {{rmode = #pto<round_mode RINT>}} : {ACC}) outs(%h : !pto.tile_buf<acc, 16x16xf16>)",
    **{name: f"%z = pto.{name} %a : {ACC} -> {ACC}" for name in ALIASES},
}


def statements() -> dict[str, str]:
    """A statement on tiles of the matrix unit for every operation, in its first form that the parser takes."""
    found = dict(OTHERS)
    for name, operation in VECTOR_OPERATIONS.items():
        for number, form in enumerate(operation.forms):
            scalars = [role is Operand.SCALAR for role in form]
            names = ", ".join("%s" if scalar else "%a" for scalar in scalars)
            types = ", ".join("f32" if scalar else ACC for scalar in scalars)
            found[f"{name} {number}"] = f"pto.{name} ins({names} : {types}) outs(%a : {ACC})"
    return found


def program(statement: str) -> str:
    return f"""func.func @k(%x: !pto.ptr<f32>, %s: f32) attributes {{pto.entry}} {{
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c16 = arith.constant 16 : index
%v = pto.make_tensor_view %x, shape = [%c16, %c16], strides = [%c16, %c1] : {VIEW}
%p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c16, %c16] : {VIEW} -> {PART}
%a = pto.alloc_tile : {ACC}
%h = pto.alloc_tile : !pto.tile_buf<acc, 16x16xf16>
%u = pto.alloc_tile : {VEC}
{statement}
return
}}
"""


def parses(statement: str) -> bool:
    try:
        parse(program(statement))
    except CastsimError:
        return False
    return True


WRITTEN = {name: statement for name, statement in statements().items() if parses(statement)}


def test_every_operation_has_a_statement():
    apart = {"tcmp", "tcmps", "tsel", "tsels"}
    assert {name.split()[0] for name in WRITTEN} >= {
        *OTHERS,
        *(each.name for each in VECTOR_OPERATIONS.values()),
    } - apart


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("name", WRITTEN)
def test_the_command_agrees_with_python(name: str, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path, mnemonic = tmp_path / "k.pto", name.split(maxsplit=1)[0]
    path.write_text(program(WRITTEN[name]))
    found = run(path, target, args={"s": 1.0}, timing_only=True)
    (opaque,) = [each for each in found.loaded.tree.instructions if each.role is InstructionRole.OPAQUE]
    assert (opaque.mnemonic, opaque.element) == (mnemonic, None)
    command = [
        "run",
        str(path),
        "--target",
        target,
        "--arg",
        "s=1.0",
        "--timing-only",
        "--report",
        "kernel",
        "--json",
        "-",
    ]
    assert main(command) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["total_cycles"] == found.cycles
    assert document["warnings"] == list(found.warnings)
    assert [entry["op"] for entry in document["instructions"]] == [mnemonic]
    assert "operations" not in document  # nothing is known of it
    assert main(command[:-2]) == 0
    assert f"{mnemonic} opaque" in capsys.readouterr().out
