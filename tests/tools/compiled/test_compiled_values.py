"""Compiled casts: values against the oracle, tables of chains, the lowering matrix, the vendor's tests of LLVM IR."""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import NamedTuple

import numpy as np
import oracle_compiled as oracle
import pytest
from kit.command_output import out_of
from kit.tpc_text import phrases, table, target
from kit.tpc_text import table as read_table
from tools.compiled import compiled_cases as cases
from tools.compiled.compiled_cases import compiled_cast, lowered, order_of

from castsim.isa.errors import IllegalError
from castsim.isa.tpc.program import Slot
from castsim.targets.description import Status
from castsim.targets.tpc_compiler import ChainReading, LoweringKind, c_types
from castsim.tools.compiled.compiled_casts import CompiledCast, MatrixEntry, compile_cast, entries
from castsim.tools.tpc_compiler.c_table import NONE, HopMethod, Path, cast_table, path_of, spelled
from castsim.tools.tpc_compiler.cast_building import Order

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
    out = " ".join(out_of(capsys, arguments).split())
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
    out = out_of(capsys, ["compiled", "--table", "--target", "gaudi"])
    assert table.markdown() in out
    assert "\n  f32 -> i32 -> u32 -> u16\n" in out


@pytest.mark.parametrize("generation", oracle.GENERATIONS)
def test_every_generation_has_a_table(generation: str) -> None:
    table = cast_table(target(generation))
    with_instruction = {pair for pair, cell in table.cells.items() if cell != NONE}
    assert with_instruction == {pair for pair in oracle.direct(generation) if not set(pair) & {"i4", "u4"}}


ONE = (LoweringKind.HARD_LANE, LoweringKind.INT_HARD, LoweringKind.HARD_OR_INT_HARD)
INSTRUCTIONS = {**dict.fromkeys(ONE, 1), LoweringKind.SKIP: 0}
"""VPU operations of the kinds that are one instruction, where one register becomes one register."""


def known(generation: str) -> list[MatrixEntry]:
    """Return the entries that say what they convert, between types that the generation has."""
    chip = target(generation)
    meant = (each for each in entries(chip) if order_of(each, chip) is not None)
    return [each for each in meant if {each.src.element, each.dst.element} <= {*chip.elements.formats, "i1"}]


def linear(entry: MatrixEntry, generation: str, codes: np.ndarray) -> np.ndarray:
    """Return the converted elements in the order of the source."""
    src, dst = entry.src.element, entry.dst.element
    if src == "i1":
        return np.where(codes != 0, one(dst), 0)
    return codes if src == dst else oracle.expected(codes, src, dst, generation)


def one(dst: str) -> int:
    """Return the code of 1."""
    return int(oracle.step(np.array([1], np.uint16), "u16", dst, "RHNE")[0])


def inputs(entry: MatrixEntry) -> np.ndarray:
    """Return one vector of the source type."""
    if entry.src.element == "i1":
        codes = cases.sample("u8", "i8")[: entry.dst.elements].astype(cases.storage(f"u{entry.dst.bits}"))
        return np.resize(np.roll(codes, 3), entry.dst.elements)
    return np.resize(cases.sample(entry.src.element, "i8" if entry.dst.element == "i1" else "i16"), entry.src.elements)


def expected(entry: MatrixEntry, order: Order, generation: str, codes: np.ndarray) -> tuple[np.ndarray, slice]:
    """Return the elements that the result must have, and where."""
    found = linear(entry, generation, codes)
    if entry.kind is LoweringKind.SKIP:
        return found[: entry.dst.elements], slice(None)
    if order is Order.LANE:
        ratio = max(entry.src.bits, entry.dst.bits) // min(entry.src.bits, entry.dst.bits)
        down = entry.dst.bits < entry.src.bits
        return (found, slice(None, None, ratio)) if down else (found[::ratio], slice(None))
    if order is Order.SWIZZLE:  # two 4-bit elements to a byte: all_lanes gives the even ones, then the odd ones
        return np.concatenate([found[0::2], found[1::2]]), slice(None)
    return found, slice(None)


def test_the_matrix_is_the_vendors() -> None:
    rows = {tuple(row.values()) for row in table("tpc_lowering_matrix.csv")}
    ours = {
        (name, e.src.element, str(e.src.elements), e.dst.element, str(e.dst.elements), e.kind.value)
        for name in oracle.GENERATIONS
        for e in entries(target(name))
    }
    assert len(rows) == 2574
    assert ours == rows


@pytest.mark.parametrize("generation", oracle.GENERATIONS)
def test_every_entry_with_a_meaning_computes_it(generation: str) -> None:
    chip, kinds = target(generation), set()
    entries_run = [entry for entry in known(generation) if entry.kind is not LoweringKind.SPLIT]
    split = [entry for entry in known(generation) if entry.kind is LoweringKind.SPLIT]
    for entry in entries_run + split[:: 1 if THOROUGH else 5]:
        order, codes = order_of(entry, chip), inputs(entry)
        assert order is not None
        ran = lowered(entry, chip).run(codes)
        values, where = expected(entry, order, generation, codes)
        found = ran.outputs["y"].reshape(-1)[where]
        assert found.tolist() == values.tolist(), (str(entry), order)
        assert ran.stale_reads == (), str(entry)
        if order is not Order.LINEAR and entry.kind in INSTRUCTIONS:
            assert ran.vector_operations == INSTRUCTIONS[entry.kind], str(entry)
        kinds.add(entry.kind)
    # On Gaudi2 the table has these two kinds only between unequal numbers of elements, which say nothing.
    silent = {LoweringKind.SOFT, LoweringKind.CHAIN} if generation == "gaudi2" else set()
    assert kinds == {entry.kind for entry in entries(chip)} - silent


@pytest.mark.parametrize("generation", ["greco", "gaudi2"])
def test_hard_is_one_instruction_where_the_instruction_set_has_the_pair(generation: str) -> None:
    chip = target(generation)
    missing = set()
    for entry in known(generation):
        pair = (entry.src.element, entry.dst.element)
        if entry.kind is not LoweringKind.HARD or order_of(entry, chip) is not Order.LANE:
            continue
        if pair not in oracle.direct(generation):
            missing.add(pair)
            continue
        assert lowered(entry, chip).run(inputs(entry)).vector_operations == 1, str(entry)
    # The matrix calls these Hard; the intrinsic header has them from Gaudi2 on (docs/reference/tpc.md section 4).
    assert missing == (
        {("u16", "f32"), ("f32", "u16"), ("f16", "i32"), ("f16", "u8"), ("bf16", "u8"), ("i32", "u16")}
        if generation == "greco"
        else set()
    )


@pytest.mark.parametrize("generation", oracle.GENERATIONS)
def test_one_instruction_converts_several_registers_by_x2_and_x4(generation: str) -> None:
    chip = target(generation)
    for entry in known(generation):
        if entry.kind is LoweringKind.MULTIPLE and entry.src.element in ("i32", "u32"):
            kernel = lowered(entry, chip).kernel
            assert len(kernel.vector_instructions) == 1
            assert f" x{entry.src.elements // 64} " in kernel.vector_instructions[0]


@pytest.mark.parametrize("generation", oracle.GENERATIONS)
def test_entries_without_a_documented_meaning_or_with_types_that_the_generation_lacks_are_refused(
    generation: str,
) -> None:
    chip = target(generation)
    has = {*chip.elements.formats, "i1"}
    unknown = [each for each in entries(chip) if order_of(each, chip) is None]
    absent = [each for each in entries(chip) if not {each.src.element, each.dst.element} <= has]
    assert unknown
    assert bool(absent) == (generation != "gaudi2")
    absent = [each for each in absent if order_of(each, chip) is not None]
    for refused, message in ((unknown[::40], "not documented"), (absent, "has no elements of")):
        for entry in refused:
            with pytest.raises(IllegalError, match=message):
                lowered(entry, chip)


ROWS = [row for row in table("tpc_ir_casts.csv") if row["status"] != "xfail"]
DIFFERENCES = [("goya", "u8", "bf16", "scalar")]
"""Rows that castsim does not print: Goya has no bf16, the test is for the default processor, nothing executes it."""

CONVERSIONS = ("convert", "nearbyint")
MOVES = ("pack", "unpack", "mov_dg", "mov_g", "mov", "and")
C_NAMES = {row.element: row.name for row in c_types()}
_OPERAND = re.compile(r"%?(?:r|V|D|A|S|VP|SP)\d+(?:r\d+)?$")


class Step(NamedTuple):
    """An instruction without its registers: mnemonic and switches, and its immediate."""

    head: str
    immediate: int | None


def step_of(text: str) -> Step:
    words = text.replace(",", " ").replace("mov_dg all", "mov_dg.all").split()
    numbers = [word for word in words if re.fullmatch(r"-?0x[0-9a-f]+", word)]
    head = " ".join(word for word in words if not _OPERAND.match(word) and word not in numbers)
    return Step(head, int(numbers[-1], 16) % 2**32 if numbers else None)


def is_open(text: str) -> bool:
    """Whether a test leaves the rest of the line open: no operands, or two placeholders run together."""
    return not re.search(r"\br\d+\b", text) or bool(re.search(r"r\d+r\d+", text))


def agrees(expected: str, ours: Step) -> bool:
    wanted = step_of(expected)
    if is_open(expected):
        return (f"{ours.head} ").startswith((f"{wanted.head} ", f"{wanted.head}.")) or (
            # `r2r3` stands for a rounding word and a register
            "r2r3" in expected and ours.head.rsplit(" ", 1)[0] == wanted.head
        )
    return wanted == ours


def kind(text: str) -> str:
    return re.split(r"[. ]", text.strip())[0]


def cast_of(row: dict[str, str], rounding: str | None = None) -> CompiledCast:
    form = "convert_to" if "convert_to" in row["casts"] else "ir"
    if row["unit"] == "scalar":
        return compile_cast(row["src"], row["dst"], row["gen"], form=form, order="scalar")
    names = (f"{C_NAMES[row[side]]}{row['elements']}" for side in ("src", "dst"))
    return compile_cast(*names, row["gen"], form=form, rounding=rounding)


def instructions_of(cast: CompiledCast) -> list[str]:
    """The instructions of a cast in order of issue, without its accesses to memory."""
    slots = (Slot.LOAD, Slot.SPU, Slot.VPU)
    found = [line[slot] or "" for line in cast.kernel.body for slot in slots]
    return [text for text in found if kind(text) in (*MOVES, *CONVERSIONS)]


def roundings(row: dict[str, str]) -> list[str | None]:
    """The mode of each call of a row; None once if the row is not a call."""
    if "convert_to" not in row["casts"]:
        return [None]
    return [None if call.endswith(" 0") else call.split()[-1] for call in row["casts"].split("; ")]


def name_of(row: dict[str, str]) -> str:
    named = [row[key] for key in ("gen", "src", "dst", "unit", "elements", "function")]
    return "-".join(named) + row["source_test"][-24:]


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_every_row_is_what_castsim_prints(row: dict[str, str]) -> None:
    expected = [text for text in row["expected_sequence"].split(" | ") if kind(text) in (*MOVES, *CONVERSIONS)]
    if (row["gen"], row["src"], row["dst"], row["unit"]) in DIFFERENCES:
        with pytest.raises(IllegalError, match=r"no elements of bf16; the vendor's compiler prints u8 -> bf16"):
            cast_of(row)
        return
    ours = [step_of(text) for mode in roundings(row) for text in instructions_of(cast_of(row, mode))]
    wanted = [text for text in expected if kind(text) in CONVERSIONS]
    found = [step for step in ours if kind(step.head) in CONVERSIONS]
    if row["unit"] == "scalar":
        assert len(ours) == len(expected) + 1  # and the MOV to the vector that is stored
        assert all(map(agrees, expected, ours)), (expected, ours)
    if wanted:  # a test of vectors may show one of several equal instructions, and none that castsim lacks
        assert all(any(agrees(text, step) for text in wanted) for step in found), (wanted, found)
        rest = iter(found)
        assert all(any(agrees(text, step) for step in rest) for text in wanted), (wanted, found)
    moves = [text for text in expected if kind(text) in MOVES]
    left = Counter(ours)
    for text in sorted(moves, key=is_open):
        match = next((step for step in left if left[step] and agrees(text, step)), None)
        assert match is not None, (text, left)
        left[match] -= 1
