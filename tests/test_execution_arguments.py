"""Arguments of a program and the views made of them."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

import pytest
from execution_programs import kernel, moved, walk
from walker_cases import Y16, loop, program, step

from castsim.isa.errors import CastsimError, ReadError, TileError

# --------------------------------------------------------------------------------------------------------- arguments


def use(text: str, name: str, args: dict[str, int] | None = None) -> object:
    return walk(text, args).arguments[name]


def test_needs_input_and_output() -> None:
    found = walk(program(step("%c0")))
    assert (found.arguments["x"].needs_input, found.arguments["x"].stored) == (True, False)
    assert (found.arguments["y"].needs_input, found.arguments["y"].stored) == (False, True)


def test_loaded_only_after_it_was_stored() -> None:
    part = "!pto.partition_tensor_view<16x64xf16>"
    again = f"pto.tload ins(%py : {part}) outs(%b : {Y16})\n"
    assert not use(program(step("%c0") + again), "y").needs_input
    reverse = step("%c0").replace("pto.tload ins(%px", again + "pto.tload ins(%px")
    found = use(program(reverse), "y")
    assert (found.needs_input, found.stored) == (True, True)
    # In a loop the load of the first trip comes before every store.
    assert use(program(loop(reverse.replace("%c0, %c0]", "%i, %c0]"), upper="%c64")), "y").needs_input


def test_branch_not_taken_does_not_count() -> None:
    body = "%q = arith.cmpi sgt, %i, %c256 : index\nscf.if %q {" + step("%i") + "}"
    found = walk(program(loop(body))).arguments
    assert not found["x"].needs_input
    assert not found["y"].stored


@pytest.mark.parametrize(
    ("shape", "strides", "elements"),
    [
        (["%c16", "%c64"], ["%c64", "%c1"], 1024),
        (["%c16", "%c64"], ["%c128", "%c1"], 15 * 128 + 64),  # 1 + sum((extent - 1) * stride)
        (["%c16", "%c64"], ["%c1", "%c16"], 15 + 63 * 16 + 1),
        (["%c2", "%c3", "%c64"], ["%c256", "%c64", "%c1"], 256 + 128 + 64),
        (["%c0", "%c64"], ["%c64", "%c1"], 0),
        (["%c4", "%c64"], ["%c0", "%c1"], 64),
    ],
)
def test_argument_size(shape: list[str], strides: list[str], elements: int) -> None:
    dims = "x".join("?" * len(shape))
    view = f"%v = pto.make_tensor_view %x, shape = [{', '.join(shape)}], strides = [{', '.join(strides)}] : !pto.tensor_view<{dims}xf32>"
    assert use(kernel(view), "x").elements == elements


def test_argument_size_is_the_largest_view() -> None:
    views = "".join(
        f"%v{n} = pto.make_tensor_view %x, shape = [%c{n}, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>\n"
        for n in (4, 16, 8)
    )
    assert use(kernel(views), "x").elements == 1024


def test_extents_from_scalar_arguments() -> None:
    view = "%v = pto.make_tensor_view %x, shape = [%n, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x64xf32>"
    text = kernel(view, "%x: !pto.ptr<f32>, %n: index")
    assert use(text, "x", {"n": 5}).elements == 320
    with pytest.raises(ReadError, match="%n") as caught:
        walk(text)
    assert caught.value.legal == ("--arg n=VALUE",)
    with pytest.raises(ReadError, match="'m'") as caught:
        walk(text, {"m": 5})
    assert "n" in caught.value.legal
    with pytest.raises(ReadError):
        walk(text, {"n": 5, "x": 1})
    with pytest.raises(CastsimError, match="negative"):
        walk(text, {"n": -5})


@pytest.mark.parametrize("value", [2.5, 2**32, -(2**31) - 1, float("nan"), float("inf")])
def test_scalar_argument_that_is_not_of_its_type(value: float) -> None:
    text = kernel("%r = arith.index_cast %n : i32 to index", "%x: !pto.ptr<f32>, %n: i32")
    with pytest.raises(ReadError, match=r"argument %n"):
        walk(text, {"n": value})


def test_unsigned_reading_of_a_scalar_argument() -> None:
    # 0xFFFFFFFF for an i32 is -1, as it would be in a register.
    text = kernel(
        "%r = arith.index_cast %n : i32 to index\n%s = arith.addi %r, %c8 : index\n"
        "%v = pto.make_tensor_view %x, shape = [%s], strides = [%c1] : !pto.tensor_view<?xf32>",
        "%x: !pto.ptr<f32>, %n: i32",
    )
    assert use(text, "x", {"n": 0xFFFFFFFF}).elements == use(text, "x", {"n": -1}).elements == 7


def test_scalar_argument_reaches_a_view() -> None:
    text = kernel(
        "%r = arith.index_cast %n : i32 to index\n"
        + "%v = pto.make_tensor_view %x, shape = [%r], strides = [%c1] : !pto.tensor_view<?xf32>",
        "%x: !pto.ptr<f32>, %n: i32",
    )
    assert use(text, "x", {"n": 7}).elements == 7


def test_view_extents_contradict_the_type() -> None:
    view = "%v = pto.make_tensor_view %x, shape = [%n, %c64], strides = [%c64, %c1] : !pto.tensor_view<8x64xf32>"
    with pytest.raises(TileError, match=r"8 x 64.*9 x 64"):
        walk(kernel(view, "%x: !pto.ptr<f32>, %n: index"), {"n": 9})
    assert use(kernel(view, "%x: !pto.ptr<f32>, %n: index"), "x", {"n": 8}).elements == 512


def test_negative_extents_and_strides() -> None:
    for shape, strides in (("%m, %c64", "%c64, %c1"), ("%c4, %c64", "%m, %c1")):
        text = f"%m = arith.subi %c0, %c1 : index\n%v = pto.make_tensor_view %x, shape = [{shape}], strides = [{strides}] : !pto.tensor_view<?x?xf32>"
        with pytest.raises(CastsimError, match=r"-1|negative"):
            walk(kernel(text))


def test_partition_sizes_contradict_the_type() -> None:
    part = (
        "%px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%n, %c64] : !pto.tensor_view<?x64xf32> -> "
        "!pto.partition_tensor_view<16x64xf32>"
    )
    with pytest.raises(TileError, match=r"16.*8|8.*16") as caught:
        walk(program(part, extra=", %n: index"), {"n": 8})
    assert caught.value.span is not None
    walk(program(part, extra=", %n: index"), {"n": 16})


def test_part_with_fewer_dimensions() -> None:
    text = """
%v = pto.make_tensor_view %x, shape = [%c2, %c1, %c4, %c8, %c64], strides = [%s, %s, %c512, %c64, %c1] : !pto.tensor_view<2x1x4x8x64xf32>
%p = pto.partition_view %v, offsets = [%c0, %c0, %c0, %c0, %c0], sizes = [%c2, %c1, %c4, %c8, %c64] : !pto.tensor_view<2x1x4x8x64xf32> -> !pto.partition_tensor_view<64x64xf32>
%t = pto.alloc_tile : !pto.tile_buf<vec, 64x64xf32>
pto.tload ins(%p : !pto.partition_tensor_view<64x64xf32>) outs(%t : !pto.tile_buf<vec, 64x64xf32>)
"""
    head = "%s = arith.constant 2048 : index\n%c512 = arith.constant 512 : index\n"
    # One transfer per index of the three leading dimensions: 2 x 1 x 4.
    assert len(moved(walk(kernel(head + text)), "tload")) == 8


@pytest.mark.parametrize("rank", [1, 6])
def test_views_of_other_ranks(rank: int) -> None:
    dims, ones = "x".join("?" * rank), ", ".join(["%c1"] * rank)
    text = f"%v = pto.make_tensor_view %x, shape = [{ones}], strides = [{ones}] : !pto.tensor_view<{dims}xf32>\n%p = pto.partition_view %v, offsets = [{', '.join(['%c0'] * rank)}], sizes = [{ones}] : !pto.tensor_view<{dims}xf32> -> !pto.partition_tensor_view<{dims}xf32>"
    if rank > 5:
        with pytest.raises(CastsimError):
            walk(kernel(text))
    else:
        walk(kernel(text))
