"""Level-2 placement of programs that only fit if tiles share bytes."""

from __future__ import annotations

import numpy as np
import pytest
from work_programs import noise, target, walked

from castsim.execution.interpreter.tile_allocation import lifetimes_of
from castsim.execution.tree import instances
from castsim.isa.errors import TileError
from castsim.isa.pto.pto_parser import parse
from castsim.machines.mechanisms import compute_of

BIG = "!pto.tile_buf<vec, 128x128xf32>"  # 64 KiB: three of them fill an A2/A3 buffer
CONSTANTS = "\n".join(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 4, 128)) + "\n%s = arith.constant 2.0 : f32"


def kernel(body: str, arguments: str = "") -> str:
    return f"func.func @k({arguments}) attributes {{pto.entry}} {{\n{CONSTANTS}\n{body}\nreturn\n}}\n"


def tiles(count: int) -> str:
    return "\n".join(f"%t{n} = pto.alloc_tile : {BIG}" for n in range(count))


def step(src: int, dst: int) -> str:
    return f"pto.tmuls ins(%t{src}, %s : {BIG}, f32) outs(%t{dst} : {BIG})"


def fill(dst: int) -> str:
    return f"pto.texpands ins(%s : f32) outs(%t{dst} : {BIG})"


def written(text: str) -> list[int]:
    """Address of the destination of every operation."""
    found = []
    for lowered, _ in instances(walked(text, target("a2a3")).tree):
        if lowered.accesses:
            found.append(lowered.accesses[0].start)
    return found


def test_what_fits_is_placed_one_behind_the_other() -> None:
    text = kernel("\n".join([tiles(3), fill(0), step(0, 1), step(1, 2)]))
    assert written(text) == [0, 65536, 131072]
    assert not walked(text, target("a2a3")).warnings


def test_a_chain_of_tiles_shares_bytes() -> None:
    """Five tiles of 64 KiB, never more than two in use: 128 KiB are enough."""
    text = kernel("\n".join([tiles(5), fill(0), *(step(n, n + 1) for n in range(4))]))
    assert written(text) == [0, 65536, 0, 65536, 0]
    (warning,) = walked(text, target("a2a3")).warnings
    assert "its tiles take 327680 bytes, the buffer has 196608" in warning
    assert "131072 in all" in warning
    assert walked(text, target("a5")).warnings  # 248 KiB there


def test_what_is_in_use_together_does_not_fit() -> None:
    body = "\n".join([tiles(4), *(fill(n) for n in range(4)), *(step(n, (n + 1) % 4) for n in range(4))])
    with pytest.raises(TileError, match="65536 bytes missing") as caught:
        walked(kernel(body), target("a2a3"))
    assert caught.value.span is not None
    with pytest.raises(TileError, match="8192 bytes missing"):
        walked(kernel(body), target("a5"))


def test_a_loop_keeps_what_it_uses() -> None:
    """A tile of outside lives through the whole loop; tiles of inside live for a trip."""
    body = f"""
{tiles(2)}
{fill(0)}
scf.for %i = %c0 to %c4 step %c1 {{
  %t2 = pto.alloc_tile : {BIG}
  {step(0, 2)}
  %t3 = pto.alloc_tile : {BIG}
  {step(2, 3)}
}}
{fill(1)}
"""
    program = parse(kernel(body), "k.pto")
    lives = lifetimes_of(program.functions[0].body or ())
    zero, one, two, three = ((life.first, life.last) for life in lives)
    assert zero[0] < two[0] <= two[1] == three[0] <= three[1] < zero[1]
    assert one[0] == one[1] > zero[1]
    places = written(kernel(body))
    assert places[0] == 0
    assert len(set(places)) == 3


def test_aliases_prolong_a_life() -> None:
    flat = "!pto.tile_buf<vec, 64x256xf32>"
    body = "\n".join(
        [
            tiles(4),
            fill(0),
            f"%f = pto.treshape %t0 : {BIG} -> {flat}",
            fill(1),
            step(1, 2),
            step(2, 3),
            f"pto.tmuls ins(%f, %s : {flat}, f32) outs(%f : {flat})",
        ]
    )
    places = written(kernel(body))
    assert places == [0, 65536, 131072, 65536, 0]


def test_values_do_not_change() -> None:
    """The chain with and without sharing stores the same."""
    part = "!pto.partition_tensor_view<128x128xf32>"
    head = f"""
%v = pto.make_tensor_view %x, shape = [%c128, %c128], strides = [%c128, %c1] : !pto.tensor_view<?x?xf32>
%p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c128, %c128] : !pto.tensor_view<?x?xf32> -> {part}
"""
    load, store = (
        f"pto.tload ins(%p : {part}) outs(%t0 : {BIG})",
        lambda last: f"pto.tstore ins(%t{last} : {BIG}) outs(%p : {part})",
    )
    results = []
    for count in (2, 6):
        chain = [step(n, n + 1) for n in range(count - 1)]
        body = "\n".join([head, tiles(count), load, *chain, store(count - 1)])
        executed = walked(kernel(body, "%x: !pto.ptr<f32>"), target("a2a3"))
        x = np.arange(128 * 128, dtype=np.float32)
        memory = {"x": x.view(np.uint8).copy()}
        compute_of(target("a2a3"))(executed.tree, noise(target("a2a3")), memory)
        results.append(memory["x"].view(np.float32) / x.clip(1) * 0.5 ** (count - 1))
    assert np.array_equal(*results)
