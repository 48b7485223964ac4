"""The vendor's own tests: what the assembler is given, and what disassembler and compiler print."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import product

import pytest
from tpc_text import GENERATIONS, dialect, plain, program, table

from castsim.isa.errors import CastsimError
from castsim.isa.tpc import canonical_text

CORPUS = table("tpc_asm_corpus_dev.csv")
ASSEMBLED = [row for row in CORPUS if row["input_asm"]]
EXPECTED_ONLY = [row for row in CORPUS if not row["input_asm"]]

LEFT_OUT = {
    "convert.i16 lane_sel=0 target_type=f16": "the compiler prints a lane_sel of 0 here, against the canonical rule",
    "convert.i64 S": "no destination type before the operands, which every CONVERT prints",
}
"""Rows without input that are no canonical text, by their beginning, and why."""


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_assembled_row_prints_its_expectation(generation: str) -> None:
    rows = [row for row in ASSEMBLED if row["gen"] == generation]
    assert rows
    for row in rows:
        printed = canonical_text(row["input_asm"], dialect(generation))
        assert plain(printed) == plain(row["expected_canonical_or_encoding"]), row


@pytest.mark.parametrize("generation", GENERATIONS)
def test_canonical_rows_are_their_own_canonical_text(generation: str) -> None:
    for row in ASSEMBLED:
        if row["gen"] == generation:
            expected = row["expected_canonical_or_encoding"]
            assert plain(canonical_text(expected, dialect(generation))) == plain(expected)
            assert program(expected, generation) == program(row["input_asm"], generation)


def test_the_rows_with_input_are_all_there() -> None:
    assert Counter(row["gen"] for row in ASSEMBLED) == {
        "goya": 345,
        "gaudi": 231,
        "gaudib": 21,
        "greco": 188,
        "gaudi2": 21,
    }


# --------------------------------------------------------------------------------------- rows that are only patterns

_HOLE = re.compile(
    r"\{\{(?P<regex>(?:[^}]|\}(?!\}))*)\}\}"  # {{%V[0-9]+}}
    r"|\[\[(?P<name>\w+)(?::(?P<named>(?:[^\[\]]|\[[^\]]*\])*))?\]\]"  # [[DEST]], [[DEST:%V[0-9]+]]
)
_ENDINGS = (  # what a row leaves away at its end
    "",
    " V4, V8",
    ", V8",
    "4, V8",
    " V4, D8",
    " V4, A8",
    " D4, V8",
    " V4, D8, 0x0",
    " V4, A8, 0x0",
    ", 0x0",
    " S4, S8",
    " target_type=fp32 V4, V8",
    " src=0 dst=1 wr_lg=0x1 wr_ug=0x1 V4, V8, 0xf",
    " source_group=0 element_stride=2 group_half=0 V4, V8",
    ".i8 source_group=0 element_stride=2 group_half=0 V4, V8",
)


def _fillings(hole: re.Match[str], before: str) -> tuple[str, ...]:
    """What may stand for one hole of a pattern; `before` is the text left of it."""
    if re.search(r"%(V|D|A|S|I|SP|VP)$", before):  # the register file is spelled out, the hole is its number
        return ("4",)
    regex = hole["regex"] or hole["named"] or ""
    file = re.search(r"%(VP|SP|V|D|A|S|I)", regex)
    if file:
        return (f"%{file[1]}4",)
    if regex == "[0-9]+":
        return ("4",)
    if regex == ".*":
        return ("",)
    name = hole["name"] or ""
    if name.startswith(("VPRED", "VPRF")):
        return ("%VP4",)
    if name.startswith(("PRED", "SPRF", "SP0")):
        return ("%SP4", "%VP4")
    return ("%V4", "%S4", "%A4")


def _instances(pattern: str) -> Iterator[str]:
    """Yield concrete texts of a pattern, for every choice of its open registers."""
    pieces: list[tuple[str, ...]] = []
    end = 0
    for hole in _HOLE.finditer(pattern):
        pieces.append((pattern[end : hole.start()],))
        pieces.append(_fillings(hole, pattern[: hole.start()]))
        end = hole.end()
    pieces.append((pattern[end:],))
    for choice in product(*pieces):
        yield "".join(choice)


def _matches(row: dict[str, str]) -> bool:
    """Whether some instance of a row, completed, is printed back as the compiler prints it."""
    language = dialect(row["gen"])
    for instance, ending in product(_instances(row["expected_canonical_or_encoding"]), _ENDINGS):
        text = instance + ending
        try:
            printed = canonical_text(text, language)
        except CastsimError:
            continue
        # The compiler writes % before registers and immediates as signed numbers; a lone instruction is one slot.
        wanted = re.sub(r"-0x1\b", "0xffffffff", text.replace("%", ""))
        slots = [slot for slot in printed.split("; ") if slot != "nop"]
        if plain(wanted).removeprefix("nop; nop; ").removesuffix("; nop") in (plain(slot) for slot in slots):
            return True
    return False


def _left_out(row: dict[str, str]) -> str | None:
    return next((start for start in LEFT_OUT if row["expected_canonical_or_encoding"].startswith(start)), None)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_rows_without_input_match_as_patterns(generation: str) -> None:
    rows = [row for row in EXPECTED_ONLY if row["gen"] == generation and _left_out(row) is None]
    assert rows
    failed = sorted({row["expected_canonical_or_encoding"] for row in rows if not _matches(row)})
    assert failed == []


def test_every_row_left_out_is_counted_and_does_not_match() -> None:
    rows = [row for row in EXPECTED_ONLY if _left_out(row) is not None]
    assert Counter(_left_out(row) for row in rows) == dict.fromkeys(LEFT_OUT, 1)
    assert len(EXPECTED_ONLY) == 1307
    assert not any(_matches(row) for row in rows)
