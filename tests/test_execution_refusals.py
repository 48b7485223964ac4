"""What the walk of a program refuses."""

# A `.pto` statement stays on one line.

from __future__ import annotations

import pytest
from execution_programs import kernel, walk
from walker_cases import X32, loop, program, step

from castsim.execution.tree import Block
from castsim.isa.errors import CastsimError, IllegalError, ReadError
from castsim.isa.pto import program as pto
from castsim.isa.pto.pto_parser import parse

# ----------------------------------------------------------------------------------------------------------- refusals


def test_unsupported_operation() -> None:
    text = program(step("%c0") + f"pto.tcolsums ins(%a : {X32}) outs(%a : {X32})")
    with pytest.raises(IllegalError, match=r"pto\.tcolsums") as caught:
        walk(text)
    assert caught.value.span is not None
    assert "pto.tcolsum" in caught.value.legal


def test_sections() -> None:
    assert walk(program("pto.section.cube {" + step("%c0") + "}")).tree.interlocked
    assert walk(program("pto.section.vector {" + step("%c0") + "}")).tree.interlocked


def test_division_by_zero_is_refused() -> None:
    for operation in ("divsi", "remsi", "divui", "remui"):
        with pytest.raises(ReadError, match="zero") as caught:
            walk(kernel(f"%r = arith.{operation} %c8, %c0 : index"))
        assert caught.value.span is not None


@pytest.mark.parametrize("pipe", ["PIPE_MTE4", "PIPE_MTE5", "PIPE_V2"])
def test_pipes_that_the_chip_lacks(pipe: str) -> None:
    with pytest.raises(IllegalError, match=pipe.removeprefix("PIPE_")):
        walk(program(f"pto.barrier <{pipe}>"))
    with pytest.raises(IllegalError):
        walk(program(f"pto.set_flag[<PIPE_V>, <{pipe}>, <EVENT_ID0>]"))


def test_every_refusal_has_a_place() -> None:
    for body in (
        "pto.tload ins(%px : !pto.partition_tensor_view<16x64xf32>) outs(%b : !pto.tile_buf<vec, 16x64xf16>)",
        "pto.tload ins(%px : !pto.partition_tensor_view<16x64xf32>) outs(%s : !pto.tile_buf<vec, 24x64xf32>)",
    ):
        text = program(
            "%s = pto.alloc_tile : !pto.tile_buf<vec, 24x64xf32>\n"
            "%px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c16, %c64] : !pto.tensor_view<?x64xf32> -> "
            "!pto.partition_tensor_view<16x64xf32>\n" + body
        )
        with pytest.raises(CastsimError) as caught:
            walk(text)
        assert caught.value.span is not None
        assert caught.value.span.text.startswith("pto.tload")


def test_empty_function() -> None:
    found = walk("func.func @k() attributes {pto.entry} {\nreturn\n}")
    assert found.tree.root == Block(())
    assert found.arguments == {}


def test_programs_are_parsed_as_written() -> None:
    """The templates here mean what they seem to mean."""
    parsed = parse(program(loop(step())), "k.pto")
    (function,) = parsed.functions
    assert sum(isinstance(node, pto.For) for node in function.body) == 1
