"""The compiler's lowering matrix run entry by entry, and casts of LLVM IR against the vendor's tests row by row."""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import NamedTuple

import numpy as np
import oracle_compiled as oracle
import pytest
from kit.tpc_text import table, target
from tools.compiled import compiled_cases as cases
from tools.compiled.compiled_cases import lowered, order_of

from castsim.isa.errors import IllegalError
from castsim.isa.tpc.program import Slot
from castsim.targets.tpc_compiler import LoweringKind, c_types
from castsim.tools.compiled.compiled_casts import CompiledCast, MatrixEntry, compile_cast, entries
from castsim.tools.tpc_compiler.cast_building import Order

THOROUGH = "CASTSIM_THOROUGH" in os.environ

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
    """The modes of the calls of a row; one cast without a mode if it is no call."""
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
