"""Values of compiled casts: what the emitted assembly computes in the machine, against the oracle."""

from __future__ import annotations

import os

import compiled_cases as cases
import numpy as np
import oracle_compiled as oracle
import pytest

from castsim.tpc_compiler.compiled_casts import CompiledCast, compile_cast, compiled_cast

THOROUGH = "CASTSIM_THOROUGH" in os.environ
MODES = {"goya": ("rz", "ru", "rd"), "gaudi": ("rz", "ru", "rd", "rhaz"), "greco": ("rz", "ru", "rd", "rhaz")}
"""Modes besides the nearest even, which every other test uses."""


def f32(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32).view(np.uint32)


def check(cast: CompiledCast, codes: np.ndarray, expected: np.ndarray) -> None:
    found = cast.values(codes)
    wrong = np.flatnonzero(found != expected)
    assert wrong.size == 0, [(hex(codes[i]), hex(found[i]), hex(expected[i])) for i in wrong[:5]]


@pytest.mark.parametrize(("generation", "src", "dst"), cases.ALL_PAIRS)
def test_every_pair_of_every_generation(generation: str, src: str, dst: str) -> None:
    codes = cases.sample(src, dst)
    ran = compile_cast(src, dst, generation).run(codes)
    assert ran.outputs["y"].reshape(-1)[: codes.size].tolist() == oracle.expected(codes, src, dst, generation).tolist()
    assert ran.stale_reads == ()
    assert all("lane_sel above 0" not in warning for warning in ran.warnings), ran.warnings


def distinct_paths() -> list[tuple[str, str, str]]:
    """Return a generation for each way that a 16-bit source takes to a destination."""
    ways: dict[tuple[str, ...], tuple[str, str, str]] = {}
    for generation, src, dst in cases.ALL_PAIRS:
        if cases.fmt(src).bits == 16:
            path = compile_cast(src, dst, generation).path
            ways.setdefault(tuple(map(str, path.hops)), (generation, src, dst))
    return list(ways.values())


EVERY = [case for case in cases.ALL_PAIRS if cases.fmt(case[1]).bits == 16] if THOROUGH else distinct_paths()


@pytest.mark.parametrize(("generation", "src", "dst"), EVERY)
def test_every_code_of_16_bits(generation: str, src: str, dst: str) -> None:
    codes = cases.every_code(src)
    check(compile_cast(src, dst, generation), codes, oracle.expected(codes, src, dst, generation))


@pytest.mark.parametrize(("generation", "mode"), [(name, mode) for name, modes in MODES.items() for mode in modes])
def test_one_mode_holds_on_the_whole_path(generation: str, mode: str) -> None:
    for src, dst in cases.pairs(generation):
        if "f" in src + dst:
            codes = cases.sample(src, dst, points=12, random=30)
            cast = compile_cast(src, dst, generation, rounding=f"SW_{mode.upper()}")
            check(cast, codes, oracle.expected(codes, src, dst, generation, mode.upper()))


def test_40000_tells_the_document_from_the_compiler() -> None:
    codes = f32(40000)
    for generation in ("goya", "gaudi", "gaudib", "greco"):
        assert compiled_cast(codes, "f32", "u16", target=generation).tolist() == [40000]
        assert compiled_cast(codes, "f32", "u16", target=generation, reading="document").tolist() == [32767]
    assert compiled_cast(codes, "f32", "u16", target="gaudi2", reading="document").tolist() == [40000]  # one CONVERT


def test_the_documents_chain_to_u16_on_boundaries() -> None:
    codes = cases.sample("f32", "u16")
    check(compile_cast("f32", "u16", "gaudi", reading="document"), codes, oracle.documented_u16(codes))


def test_the_correction_of_u32_is_the_compilers_alone() -> None:
    codes = f32(3e9, 2**31, 2**32, -1)
    assert compiled_cast(codes, "f32", "u32", target="gaudi").tolist() == [3000000000, 2**31, 2**32 - 1, 0]
    documented = compiled_cast(codes, "f32", "u32", target="gaudi", reading="document")
    assert documented.tolist() == [2**31 - 1, 2**31 - 1, 2**31 - 1, 0]


def test_halving_rounds_twice() -> None:
    number = 2**31 + 2**7 + 1  # just above a tie of f32, a tie once halved
    halved = compiled_cast([number], "u32", "f32", target="gaudi")[0]
    native = compiled_cast([number], "u32", "f32", target="gaudi2")[0]
    assert [halved, native] == f32(2**31, 2**31 + 256).tolist()


@pytest.mark.parametrize("generation", oracle.GENERATIONS)
def test_a_pair_of_the_instruction_set_is_one_instruction(generation: str) -> None:
    for src, dst in cases.pairs(generation):
        if (src, dst) in oracle.direct(generation):
            kernel = compile_cast(src, dst, generation, order="lane").kernel
            assert len(kernel.vector_instructions) == 1, (src, dst, kernel.vector_instructions)


def swizzled_order(codes: np.ndarray, ratio: int, *, up: bool) -> np.ndarray:
    """Return in which order all_lanes leaves the elements of one group of registers.

    Source: docs/reference/tpc.md section 2.2.
    """
    return codes.reshape(-1, ratio).T.reshape(-1) if up else codes.reshape(ratio, -1).T.reshape(-1)


@pytest.mark.parametrize("generation", oracle.GENERATIONS)
def test_swizzled_results_are_the_linear_ones_in_the_order_of_all_lanes(generation: str) -> None:
    refused = set()
    for src, dst in cases.pairs(generation):
        try:
            cast = compile_cast(src, dst, generation, order="swizzle")
            kernel = cast.kernel
        except ValueError:
            refused.add((src, dst))
            continue
        codes = cases.sample(src, dst)[: cast.dst.elements]
        codes = np.resize(codes, cast.dst.elements)
        wide, narrow = max(cast.src.bits, cast.dst.bits), min(cast.src.bits, cast.dst.bits)
        linear = oracle.expected(codes, src, dst, generation)
        order = swizzled_order(np.arange(codes.size), wide // narrow, up=cast.dst.bits > cast.src.bits)
        assert cast.run(codes).outputs["y"].reshape(-1).tolist() == linear[order].tolist(), (src, dst, kernel.text())
        assert cast.run(codes).stale_reads == ()
    assert refused == set()
