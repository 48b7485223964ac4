"""The table of chains as a table: nothing twice, everything used, and the documented ways."""

from __future__ import annotations

import oracle_compiled as oracle
import pytest

from castsim.isa.errors import IllegalError
from castsim.targets import load_target
from castsim.targets.description import Status
from castsim.targets.tpc_compiler import ChainReading, Decomposition, c_types, chains
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.c_table import HopMethod, Path, bits_of, path_of

VECTOR_CHAINS = {
    # docs/reference/tpc.md section 4, chains before Gaudi2.
    ("gaudi", "f32", "u16"): ("f32", "i32", "u32", "u16"),
    ("gaudi", "f32", "u8"): ("f32", "i16", "u8"),
    ("gaudi", "bf16", "i32"): ("bf16", "f32", "i32"),
    ("gaudib", "f16", "i8"): ("f16", "f32", "bf16", "i16", "i8"),
    ("greco", "f16", "u8"): ("f16", "bf16", "i16", "u8"),
    ("gaudib", "i32", "f16"): ("i32", "f32", "f16"),
    ("gaudi", "u32", "bf16"): ("u32", "f32", "bf16"),
    ("gaudib", "f16", "bf16"): ("f16", "f32", "bf16"),
    ("greco", "f16", "bf16"): ("f16", "bf16"),
    ("gaudi", "i8", "bf16"): ("i8", "i16", "bf16"),
}


def path(generation: str, src: str, dst: str, reading: ChainReading = ChainReading.COMPILER) -> Path:
    target = load_target(generation)
    assert isinstance(target, VliwTarget)
    return path_of(src, dst, target, reading)


@pytest.mark.parametrize(("case", "types"), VECTOR_CHAINS.items())
def test_vectors_go_the_documented_way(case: tuple[str, str, str], types: tuple[str, ...]) -> None:
    assert path(*case).types == types


def test_no_pair_is_listed_twice() -> None:
    keys = [(row.src, row.dst, row.reading) for row in chains()]
    assert len(keys) == len(set(keys))
    assert len({row.element for row in c_types()}) == len(c_types())


def test_every_chain_is_taken_by_some_generation() -> None:
    taken = set()
    for generation in oracle.GENERATIONS:
        for row in chains():
            reading = row.reading or ChainReading.COMPILER
            try:
                found = path(generation, row.src, row.dst, reading)
            except IllegalError:
                continue
            if row.source in found.sources:
                taken.add((row.src, row.dst, row.reading))
    assert taken == {(row.src, row.dst, row.reading) for row in chains()}


def test_chains_begin_and_end_with_their_pair_and_know_their_widths() -> None:
    for row in chains():
        assert (row.steps[0][0], row.steps[-1][0]) == (row.src, row.dst)
        if row.how is Decomposition.EXTEND:
            assert row.src.startswith("u")
            assert bits_of(row.src) < bits_of(row.dst)
        if row.how is Decomposition.CLAMP:
            assert bits_of(row.src) == bits_of(row.dst)
        for (before, _), (after, converted) in zip(row.steps, row.steps[1:], strict=False):
            assert converted or bits_of(before) == bits_of(after)


def test_one_assumed_link_makes_a_path_assumed() -> None:
    assert path("gaudi", "f32", "u16").status is Status.DOCUMENTED
    assert path("gaudib", "u8", "f16").status is Status.ASSUMED
    assert [hop.means for hop in path("gaudi", "u16", "i8").hops] == [HopMethod.NARROW, HopMethod.CLAMP]


def test_what_nothing_leads_to_is_refused_with_what_is_possible() -> None:
    with pytest.raises(IllegalError, match="no way from f32 to i4") as caught:
        path("greco", "f32", "i4")
    assert "f32 -> u16" in caught.value.legal
