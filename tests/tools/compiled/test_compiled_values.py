"""Compiled casts: values against the oracle, vector and scalar chains, the tables of chains and of C-level casts."""

from __future__ import annotations

import os

import numpy as np
import oracle_compiled as oracle
import pytest
from kit.tpc_text import phrases, target
from kit.tpc_text import table as read_table
from tools.compiled import compiled_cases as cases
from tools.compiled.compiled_cases import compiled_cast

from castsim.__main__ import main
from castsim.isa.errors import IllegalError
from castsim.targets.description import Status
from castsim.targets.tpc_compiler import ChainReading, chains
from castsim.tools.compiled.compiled_casts import CompiledCast, compile_cast
from castsim.tools.tpc_compiler.c_table import NONE, HopMethod, Path, cast_table, path_of, spelled

THOROUGH = "CASTSIM_THOROUGH" in os.environ
MODES = {"goya": ("rz", "ru", "rd"), "gaudi": ("rz", "ru", "rd", "rhaz"), "greco": ("rz", "ru", "rd", "rhaz")}
"""Modes besides the nearest even, which every other test uses."""


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
    codes = np.array([40000], np.float32).view(np.uint32)
    for generation in ("goya", "gaudi", "gaudib", "greco"):
        assert compiled_cast(codes, "f32", "u16", target=generation).tolist() == [40000]
        assert compiled_cast(codes, "f32", "u16", target=generation, reading="document").tolist() == [32767]
    assert compiled_cast(codes, "f32", "u16", target="gaudi2", reading="document").tolist() == [40000]  # one CONVERT


def test_the_documents_chain_to_u16_on_boundaries() -> None:
    codes = cases.sample("f32", "u16")
    check(compile_cast("f32", "u16", "gaudi", reading="document"), codes, oracle.documented_u16(codes))


def test_the_correction_of_u32_is_the_compilers_alone() -> None:
    codes = np.array([3e9, 2**31, 2**32, -1], np.float32).view(np.uint32)
    assert compiled_cast(codes, "f32", "u32", target="gaudi").tolist() == [3000000000, 2**31, 2**32 - 1, 0]
    documented = compiled_cast(codes, "f32", "u32", target="gaudi", reading="document")
    assert documented.tolist() == [2**31 - 1, 2**31 - 1, 2**31 - 1, 0]


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


def scalar_pairs(generation: str) -> set[tuple[str, str]]:
    """Return the pairs that one instruction of the scalar unit converts."""
    rows = [*read_table("tpc_convert_pairs.csv"), *read_table("tpc_convert_int_pairs.csv")]
    pairs = {(row["src"], row["dst"]) for row in rows if (row["gen"], row["unit"]) == (generation, "spu")}
    return {pair for pair in pairs if not {*pair} & {"i4", "u4", "i64"}}


@pytest.mark.parametrize("generation", oracle.GENERATIONS)
def test_every_pair_of_the_scalar_unit(generation: str) -> None:
    for src, dst in sorted(scalar_pairs(generation)):
        codes = cases.sample(src, dst, points=6, random=2)[::7]
        cast = compile_cast(src, dst, generation, order="scalar")
        longer = generation in ("gaudi", "gaudib") and (src, dst) == ("i8", "bf16")  # LL test i8_to_bf16
        assert len(cast.path.hops) == 1 + longer
        assert cast.values(codes).tolist() == oracle.step(codes, src, dst, "RHNE").tolist(), (src, dst)
        assert cast.run(codes[:1]).stale_reads == ()


@pytest.mark.parametrize("generation", ["goya", "gaudi", "gaudib", "greco"])
def test_the_shortcut_of_u32_to_f32_loses_the_top_bit(generation: str) -> None:
    codes = np.array([5, 2**31 - 1, 2**31, 3000000000], np.uint32)
    found = compiled_cast(codes, "u32", "f32", target=generation, order="scalar")
    assert found.view(np.float32).tolist() == [np.float32(int(code) & 0x7FFFFFFF) for code in codes]
    vector = compiled_cast(codes, "u32", "f32", target=generation)
    assert vector.view(np.float32).tolist() == codes.astype(np.float32).tolist()


def test_scalars_go_to_u16_and_u32_through_signed_types() -> None:
    # LL tests fp32_to_u16 (f32, i32, i16, u16) and fptoui_f32_i32_s (f32, i32, u32).
    codes = np.array([40000, 3e9, 1.5], np.float32).view(np.uint32)
    assert compiled_cast(codes, "f32", "u16", target="greco", order="scalar").tolist() == [32767, 32767, 2]
    assert compiled_cast(codes, "f32", "u32", target="goya", order="scalar").tolist() == [40000, 2**31 - 1, 2]
    assert compiled_cast(codes, "f32", "u16", target="gaudi2", order="scalar").tolist() == [40000, 65535, 2]


def test_one_element_counts_bundles_of_the_scalar_unit(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["compiled", "u32", "f32", "3000000000", "--target", "gaudi", "--order", "scalar", "--form", "ir"]
    assert main(arguments) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("uint -> float on gaudi, LLVM IR uitofp")
    lost = np.array([3000000000 - 2**31], np.float32).view(np.uint32)[0]
    assert f"852516352 (0x{lost:08x}) 3000000000 (0x4f32d05e) differs" in out
    assert "one element in scalar registers" in out


def test_what_scalars_lack_is_refused() -> None:
    with pytest.raises(IllegalError, match="selects no"):
        compile_cast("i1", "u16", "gaudi", order="scalar")
    for reading, order in (("scalar", "linear"), ("document", "scalar")):
        with pytest.raises(IllegalError, match="cannot be combined"):
            compile_cast("f32", "u16", "gaudi", reading=reading, order=order)


VECTOR_CHAINS = """
    gaudi f32 i32 u32 u16; gaudi f32 i16 u8; gaudi bf16 f32 i32; gaudib f16 f32 bf16 i16 i8; greco f16 bf16 i16 u8;
    gaudib i32 f32 f16; gaudi u32 f32 bf16; gaudib f16 f32 bf16; greco f16 bf16; gaudi i8 i16 bf16
"""
"""Generation and types: docs/reference/tpc.md section 4, chains before Gaudi2."""


def path(generation: str, src: str, dst: str, reading: ChainReading = ChainReading.COMPILER) -> Path:
    return path_of(src, dst, target(generation), reading)


@pytest.mark.parametrize("chain", phrases(VECTOR_CHAINS))
def test_vectors_go_the_documented_way(chain: str) -> None:
    generation, *types = chain.split()
    assert path(generation, types[0], types[-1]).types == tuple(types)


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


def test_one_assumed_link_makes_a_path_assumed() -> None:
    assert path("gaudi", "f32", "u16").status is Status.DOCUMENTED
    assert path("gaudib", "u8", "f16").status is Status.ASSUMED
    assert [hop.means for hop in path("gaudi", "u16", "i8").hops] == [HopMethod.NARROW, HopMethod.CLAMP]


def test_what_nothing_leads_to_is_refused_with_what_is_possible() -> None:
    with pytest.raises(IllegalError, match="cannot convert f32 to i4") as caught:
        path("greco", "f32", "i4")
    assert "f32 -> u16" in caught.value.legal


TABLE = oracle.VECTORS / "tpc_builtin_support_gaudi.txt"

SLIPS = {
    # A signed conversion called unsigned (docs/reference/tpc.md section 4, seed against LL).
    ("BF16", "INT16"): ("fptoui-C", "fptoi-C"),
    # fpext of an integer: the step before sitofp is sext.
    ("INT16", "FP32"): ("sitofp(fpext)-C", "sitofp(sext)-C"),
    ("INT8", "FP32"): ("sitofp(fpext)-C", "sitofp(sext)-C"),
    # An integer becomes a float of its width: sitofp, not fptrunc, and misspelled.
    ("INT16", "BF16"): ("fptrun-C", "sitofp-C"),
    # The instruction is missing from the cell; CONVERT has the pair (docs/reference/tpc.md section 4).
    ("INT16", "INT32"): ("sext", "sext-C"),
    ("INT8", "INT32"): ("sext", "sext-C"),
    # The instruction in lower case.
    ("INT8", "INT16"): ("sext-c", "sext-C"),
    ("INT32", "UINT32"): ("zext-c", "zext-C"),
}
"""Cells of the document that are not as the instruction set has it, and what would be right."""


def documented() -> dict[tuple[str, str], str]:
    """Read the vendor's table, which is drawn with bars and dashes."""
    lines = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    heads = rows[0][1:]
    return {(row[0], head): cell for row in rows[1:] if row[0] for head, cell in zip(heads, row[1:], strict=True)}


def generated() -> dict[tuple[str, str], str]:
    return {(spelled(src), spelled(dst)): cell for (src, dst), cell in cast_table(target("gaudi")).cells.items()}


def test_every_cell_is_the_documents_or_one_of_its_slips() -> None:
    cells, ours = documented(), generated()
    assert len(cells) == 64
    assert {pair: (cells[pair], ours[pair]) for pair in SLIPS} == SLIPS
    assert {pair: cell for pair, cell in ours.items() if pair not in SLIPS} == {
        pair: cell for pair, cell in cells.items() if pair not in SLIPS
    }


def test_cells_name_the_instruction_that_is_emitted() -> None:
    prefixes = {"C": "convert.", "C-INT": "convert_"}
    table = cast_table(target("gaudi"))
    for (src, dst), cell in table.cells.items():
        if cell == NONE:
            continue
        instructions = compile_cast(src, dst, "gaudi").kernel.vector_instructions
        converting = [text for text in instructions if text.startswith("convert")]
        assert converting
        assert all(text.startswith(prefixes[cell.split("-", 1)[1]]) for text in converting), (cell, converting)


def test_pairs_without_an_instruction_are_listed_with_their_path(capsys: pytest.CaptureFixture[str]) -> None:
    table = cast_table(target("gaudi"))
    assert set(table.mediated) == {pair for pair, cell in table.cells.items() if cell == NONE and pair[0] != pair[1]}
    assert main(["compiled", "--table", "--target", "gaudi"]) == 0
    out = capsys.readouterr().out
    assert table.markdown() in out
    assert "\n  f32 -> i32 -> u32 -> u16\n" in out


@pytest.mark.parametrize("generation", oracle.GENERATIONS)
def test_every_generation_has_a_table(generation: str) -> None:
    table = cast_table(target(generation))
    with_instruction = {pair for pair, cell in table.cells.items() if cell != NONE}
    assert with_instruction == {pair for pair in oracle.direct(generation) if not set(pair) & {"i4", "u4"}}
