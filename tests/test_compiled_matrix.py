"""The compiler's lowering matrix: transcribed whole, every kind and every entry with a known meaning run."""

from __future__ import annotations

import csv
import os
from collections import Counter

import compiled_cases as cases
import numpy as np
import oracle_compiled as oracle
import pytest

from castsim.isa.errors import IllegalError
from castsim.targets import load_target
from castsim.targets.tpc_compiler import LoweringKind
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.cast_building import Order
from castsim.tpc_compiler.compiled_casts import MatrixEntry, entries, lowered, order_of

THOROUGH = "CASTSIM_THOROUGH" in os.environ

INSTRUCTIONS = {
    LoweringKind.HARD_LANE: 1,
    LoweringKind.INT_HARD: 1,
    LoweringKind.HARD_OR_INT_HARD: 1,
    LoweringKind.SKIP: 0,
}
"""VPU operations of the kinds that are one instruction, where one register becomes one register."""


def target(generation: str) -> VliwTarget:
    found = load_target(generation)
    assert isinstance(found, VliwTarget)
    return found


def known(generation: str) -> list[MatrixEntry]:
    """Return the entries that say what they convert, between types that the generation has."""
    chip = target(generation)
    has = {*chip.elements.formats, "i1"}
    return [
        each
        for each in entries(chip)
        if order_of(each, chip) is not None and {each.src.element, each.dst.element} <= has
    ]


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
    with (oracle.VECTORS / "tpc_lowering_matrix.csv").open(newline="", encoding="utf-8") as file:
        rows = {tuple(row.values()) for row in csv.DictReader(file)}
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


def test_every_kind_occurs() -> None:
    assert {entry.kind for name in oracle.GENERATIONS for entry in known(name)} == set(LoweringKind)


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
def test_entries_without_a_documented_meaning_are_refused(generation: str) -> None:
    chip = target(generation)
    unknown = [each for each in entries(chip) if order_of(each, chip) is None]
    kinds = Counter(each.kind for each in unknown)
    assert kinds[LoweringKind.SPLIT] > kinds[LoweringKind.SOFT] > 0
    for entry in unknown[::40]:
        with pytest.raises(IllegalError, match="not documented"):
            lowered(entry, chip)


@pytest.mark.parametrize("generation", oracle.GENERATIONS[:4])
def test_entries_of_types_that_the_generation_lacks_are_refused(generation: str) -> None:
    chip = target(generation)
    absent = [
        each for each in entries(chip) if not {each.src.element, each.dst.element} <= {*chip.elements.formats, "i1"}
    ]
    assert absent
    assert {each.kind for each in absent} == {LoweringKind.SPLIT}
    for entry in absent:
        if order_of(entry, chip) is not None:
            with pytest.raises(IllegalError, match="has no elements of"):
                lowered(entry, chip)
