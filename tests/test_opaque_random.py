"""Random kernels with loops in which vector and matrix work take turns: engines, flags, and what is not computed."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from test_opaque_values import ACC, KNOWN, VEC, move, program, two

from castsim import run

MAT = "!pto.tile_buf<mat, 16x64xf32, blayout=col_major, slayout=row_major>"
UNKNOWN = f"pto.tmov ins(%a : {ACC}) outs(%{{}} : {VEC})\n"
LINES = {
    "product": lambda pick: f"pto.tmatmul ins(%a, %a : {ACC}, {ACC}) outs(%a : {ACC})\n",
    "unknown": lambda pick: UNKNOWN.format(pick("utr")),
    "sum": lambda pick: two(pick(["tadd", "tmax"]), f"%{pick('utr')}", f"%{pick('utr')}", f"%{pick('utr')}"),
    "store": lambda pick: move(pick("yz"), f"%{pick('utr')}", load=False),
    "load": lambda pick: move(pick("xyz"), f"%{pick('utr')}", load=True),
    "away": lambda pick: f"pto.tmov ins(%{pick('utr')} : {VEC}) outs(%m : {MAT})\n",
    "matrix load": lambda pick: f"pto.tload ins(%px : !pto.partition_tensor_view<16x64xf32>) outs(%m : {MAT})\n",
}


def lines(source: random.Random, depth: int = 0) -> str:
    """A few random statements, some of them loops."""
    found = ""
    for _ in range(source.randint(2, 5)):
        kind = source.choice([*LINES, *(["loop"] if depth < 2 else [])])
        if kind == "loop":
            head = f"scf.for %k{source.getrandbits(40)} = %c0 to %c{source.choice([0, 1, 2, 3, 8])} step %c1"
            found += f"{head} {{\n{lines(source, depth + 1)}}}\n"
        else:
            found += LINES[kind](source.choice)
    return found


def kernel(seed: int) -> str:
    """A kernel whose tiles all have been loaded before."""
    loaded = move("x", "%u", load=True) + move("x", "%r", load=True)
    return program(f"%m = pto.alloc_tile : {MAT}\n" + loaded + lines(random.Random(seed)), unknown=KNOWN)


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("seed", range(12))
def test_engines_agree_and_inserted_flags_suffice(seed: int, target: str, tmp_path: Path):
    text, path = kernel(seed), tmp_path / "k.pto"
    path.write_text(text)
    cycles = {name: 77 * (seed % 4) for name in ("tmatmul", "tmov") if f"pto.{name}" in text}
    for sync in ("insert", "barriers", "interlock"):
        fast, event = (
            run(path, target, timing_only=True, opaque=cycles, sync=sync, engine=engine) for engine in ("fast", "event")
        )
        assert fast.cycles == event.cycles
        assert {name: pipe.causes for name, pipe in fast.pipes.items()} == {
            name: pipe.causes for name, pipe in event.pipes.items()
        }


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("seed", range(12, 36))
def test_what_is_computed_does_not_rest_on_the_unknown(seed: int, target: str, tmp_path: Path):
    """The same kernel with loads in place of what gives the unknown, twice with other contents."""
    text, path, plain = kernel(seed), tmp_path / "k.pto", tmp_path / "plain.pto"
    path.write_text(text)
    for tile in "utr":
        text = text.replace(UNKNOWN.format(tile), move("w", f"%{tile}", load=True))
    plain.write_text(text)
    random_numbers = np.random.default_rng(seed)
    inputs = {name: random_numbers.integers(-9, 9, (16, 64)).astype(np.float32) for name in "xwyz"}
    needed = {name: array for name, array in inputs.items() if f"tload ins(%p{name} " in path.read_text()}
    found = run(path, target, inputs=needed)
    others = []
    for w in (inputs["w"], inputs["w"] + 100):
        others.append(run(plain, target, inputs={**inputs, "w": w}).outputs)
    for name, first in others[0].items():
        partial = found.partial.get(name)
        computed = np.ones(first.shape, bool) if partial is None else partial.computed
        values = found.outputs[name] if partial is None else partial.values
        np.testing.assert_array_equal(values[computed], first[computed])
        assert not (others[0][name] != others[1][name])[computed].any()
