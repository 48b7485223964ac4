"""The generated table of C-level casts of Gaudi against the vendor's, cell by cell."""

from __future__ import annotations

from pathlib import Path

import oracle_compiled as oracle
import pytest

from castsim.__main__ import main
from castsim.targets import load_target
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.c_table import NONE, cast_table, spelled
from castsim.tpc_compiler.compiled_casts import compile_cast

TABLE = Path(__file__).parent / "vectors" / "tpc_builtin_support_gaudi.txt"

UNSIGNED_SLIP = "a signed conversion called unsigned (docs/reference/tpc.md section 4, seed against LL)"
INTEGER_EXTENSION = "fpext of an integer: the step before sitofp is sext"
WRONG_NAME = "an integer becomes a float of its width: sitofp, not fptrunc, and misspelled"
NO_SUFFIX = (
    "the instruction is missing from the cell; CONVERT has the pair (docs/reference/tpc.md section 4: the same pairs)"
)
LOWER_CASE = "the instruction in lower case"

SLIPS = {
    ("BF16", "INT16"): ("fptoui-C", "fptoi-C", UNSIGNED_SLIP),
    ("INT16", "FP32"): ("sitofp(fpext)-C", "sitofp(sext)-C", INTEGER_EXTENSION),
    ("INT8", "FP32"): ("sitofp(fpext)-C", "sitofp(sext)-C", INTEGER_EXTENSION),
    ("INT16", "BF16"): ("fptrun-C", "sitofp-C", WRONG_NAME),
    ("INT16", "INT32"): ("sext", "sext-C", NO_SUFFIX),
    ("INT8", "INT32"): ("sext", "sext-C", NO_SUFFIX),
    ("INT8", "INT16"): ("sext-c", "sext-C", LOWER_CASE),
    ("INT32", "UINT32"): ("zext-c", "zext-C", LOWER_CASE),
}
"""Cells of the document that are not as the instruction set has it: what stands there, what would be right, why."""


def gaudi() -> VliwTarget:
    target = load_target("gaudi")
    assert isinstance(target, VliwTarget)
    return target


def documented() -> dict[tuple[str, str], str]:
    """Read the vendor's table, which is drawn with bars and dashes."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in TABLE.read_text(encoding="utf-8").splitlines()
        if line.startswith("|")
    ]
    heads = rows[0][1:]
    return {(row[0], head): cell for row in rows[1:] if row[0] for head, cell in zip(heads, row[1:], strict=True)}


def generated() -> dict[tuple[str, str], str]:
    return {(spelled(src), spelled(dst)): cell for (src, dst), cell in cast_table(gaudi()).cells.items()}


def test_both_tables_have_the_same_64_cells() -> None:
    assert len(documented()) == 64
    assert generated().keys() == documented().keys()


@pytest.mark.parametrize("pair", sorted(documented()))
def test_every_cell_is_the_documents_or_one_of_its_slips(pair: tuple[str, str]) -> None:
    cell, ours = documented()[pair], generated()[pair]
    if pair in SLIPS:
        assert (cell, ours) == SLIPS[pair][:2]
    else:
        assert ours == cell


def test_what_the_compiler_has_beyond_the_document() -> None:
    # docs/reference/tpc.md section 4: CONVERT i16 -> i8 in the vector unit, i8 -> bf16 in the scalar unit.
    assert documented()["INT16", "INT8"] == "trunc-C-INT"
    assert gaudi().convert("i16", "i8") is not None
    assert documented()["INT8", "BF16"] == NONE
    assert gaudi().convert("i8", "bf16") is None
    assert gaudi().convert("i8", "bf16", "spu") is not None


def test_cells_name_the_instruction_that_is_emitted() -> None:
    prefixes = {"C": "convert.", "C-INT": "convert_"}
    table = cast_table(gaudi())
    for (src, dst), cell in table.cells.items():
        if cell == NONE:
            continue
        instructions = compile_cast(src, dst, "gaudi").kernel.vector_instructions
        converting = [text for text in instructions if text.startswith("convert")]
        assert converting
        assert all(text.startswith(prefixes[cell.split("-", 1)[1]]) for text in converting), (cell, converting)


def test_pairs_without_an_instruction_are_listed_with_their_path(capsys: pytest.CaptureFixture[str]) -> None:
    table = cast_table(gaudi())
    assert set(table.mediated) == {pair for pair, cell in table.cells.items() if cell == NONE and pair[0] != pair[1]}
    assert main(["compiled", "--table", "--target", "gaudi"]) == 0
    out = capsys.readouterr().out
    assert table.markdown() in out
    assert "\n  f32 -> i32 -> u32 -> u16\n" in out


@pytest.mark.parametrize("generation", oracle.GENERATIONS)
def test_every_generation_has_a_table(generation: str) -> None:
    target = load_target(generation)
    assert isinstance(target, VliwTarget)
    table = cast_table(target)
    with_instruction = {pair for pair, cell in table.cells.items() if cell != NONE}
    assert with_instruction == {pair for pair in oracle.direct(generation) if not set(pair) & {"i4", "u4"}}
