"""`castsim expand` of operations other than casts: the bytes of the tile operation, its cycles or a known reason."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from expand_differences import SPREADS, function_in, spread_of
from expand_works import Case
from work_programs import NATIVE

from castsim.isa.errors import IllegalError
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind, Role
from castsim.running import run
from castsim.running.expanding import expand
from castsim.running.loaded import LoadRequest
from castsim.running.program_loading import TileProgram
from castsim.targets import load_target
from castsim.targets.vector_function import VectorFunctionTarget
from castsim.targets.vector_function_operations import VectorFunctionOperation

A5 = load_target("a5")
assert isinstance(A5, VectorFunctionTarget)
SHAPES = ((8, 256, 8, 256), (4, 512, 3, 300), (5, 128, 4, 70), (1, 64, 1, 64), (3, 64, 2, 33))
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
REARRANGING = (
    Kind.GATHER, Kind.PATTERN_GATHER, Kind.COMPARE_GATHER, Kind.SORT, Kind.MERGE, Kind.TRANSPOSE, Kind.CONCATENATE,
    Kind.COUNTED_CONCATENATE, Kind.QUANTISE, Kind.DEQUANTISE, Kind.PACK, Kind.BLOCK_QUANTISE, Kind.BOX,
)  # fmt: skip
"""Kinds of which no operation is written; they are refused by their structures."""

UNWRITTEN = {
    "trem": ("f16", "f32", "i16", "i32"), "trems": ("f16", "f32", "i16", "i32"),
    "tfmod": ("f16", "f32", "i16", "i32"), "tfmods": ("f16", "f32", "i16", "i32"),
    "tdiv": ("i16", "i32"), "tdivs": ("i8", "i16", "i32"), "trowexpanddiv": ("i8", "i16", "i32"),
    "tcolexpanddiv": ("i8", "i16", "i32"), "taxpy": ("bf16",),
    "trowargmax": ("f16", "f32"), "trowargmin": ("f16", "f32"),
    "tcolargmax": ("i16", "i32", "f16", "f32"), "tcolargmin": ("i16", "i32", "f16", "f32"),
}  # fmt: skip
"""Operations that are refused, with their elements; row products of floats only in rows of more than a register."""


def cases() -> Iterator[Case]:
    """Every operation with every element, shape and list of operands."""
    for rule in A5.tile_operations:
        operation = VECTOR_OPERATIONS[rule.mnemonic]
        if operation.kind in REARRANGING:
            continue
        forms = [
            number
            for number, form in enumerate(operation.forms)
            if not (Role.TMP in form and rule.tmp in ("none", "refused") and number)
            and not (operation.kind is Kind.RAMP and Role.TMP not in form)  # a loop of the scalar unit
        ]
        for element in (each for each in rule.types if each in NATIVE):
            for shape in SHAPES:
                yield from (case for form in forms for case in _variants(rule, element, shape, form))


def _variants(
    rule: VectorFunctionOperation, element: str, shape: tuple[int, int, int, int], form: int
) -> Iterator[Case]:
    kind, name = VECTOR_OPERATIONS[rule.mnemonic].kind, rule.mnemonic
    if kind is Kind.ROW_BROADCAST:
        for column in (False, True):
            yield Case(name, element, shape, form, column=column)
            if column or shape[1] * NATIVE[element].itemsize != 32:
                yield Case(name, element, shape, form, column=column, first=True)
    elif kind is Kind.COMPARE:
        yield from (Case(name, element, shape, form, word=word) for word in COMPARISONS)
    elif kind is Kind.FILL:
        yield from (Case(name, element, shape, form, pad=pad) for pad in (1, 2, 3))
    else:
        yield Case(name, element, shape, form)


def unwritten(case: Case) -> bool:
    """Whether no instructions do what an operation does."""
    lanes = 256 // NATIVE[case.element].itemsize
    if case.mnemonic == "trowprod":
        return case.element in ("f16", "f32") and case.shape[3] > lanes
    return case.element in UNWRITTEN.get(case.mnemonic, ())


EVERY = list(cases())
WRITTEN = [case for case in EVERY if not unwritten(case)]
CASES = WRITTEN if "CASTSIM_THOROUGH" in os.environ else random.Random(4).sample(WRITTEN, 110)
OPTIONS = (
    ("ctrl_60_at_start=1",), ("ctrl_60_at_start=1", "ctrl_48_at_start=1"), ("maximum_of_nan=number",),
    ("maximum_of_nan=first",), ("lane_order=sequential",), ("spare_mask_bits=keep",), ("shift_beyond_width=modulo",),
    ("axpy_rounding=twice",), ("relu_of_nan=nan",), *((f"implementation_kind={kind}",) for kind in (1, 2, 3, 4)),
    ("expansion_select=hidden",),
)  # fmt: skip


def checked(case: Case, folder: Path, seed: int = 3) -> tuple[float, TileProgram]:
    """Compare the bytes of a program and of its instructions; return how many cycles those take more."""
    tiles, micro = folder / "tiles.pto", folder / "micro.pto"
    tiles.write_text(case.program())
    micro.write_text(expand(tiles, LoadRequest()))
    inputs = case.inputs(seed)
    whole, again = (run(path, inputs=inputs) for path in (tiles, micro))
    assert whole.outputs["xd"].tobytes() == again.outputs["xd"].tobytes()
    assert isinstance(whole.loaded, TileProgram)
    return again.cycles - whole.cycles, whole.loaded


@pytest.mark.parametrize("case", CASES, ids=str)
def test_instructions_of_an_operation_give_its_bytes(case: Case, tmp_path: Path) -> None:
    more, loaded = checked(case, tmp_path)
    rule = A5.tile_operation(case.mnemonic)
    assert rule is not None
    nests = function_in(loaded.executed.tree).nests
    rows, trips = sum(each.rows for each in nests), sum(each.rows * each.trips for each in nests)
    least, most = spread_of(rule.structure, case.mnemonic).bounds(rows, trips)
    assert least <= more <= most


@pytest.mark.parametrize("case", [each for each in EVERY if unwritten(each) and each.shape == SHAPES[1]], ids=str)
def test_what_has_no_instructions_is_refused_by_name(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "x.pto"
    path.write_text(case.program())
    with pytest.raises(IllegalError) as caught:
        expand(path, LoadRequest())
    assert f"expand cannot write pto.{case.mnemonic}: its lowering has " in str(caught.value)
    assert caught.value.span is not None


@pytest.mark.parametrize("options", OPTIONS, ids=",".join)
def test_options_of_the_target_hold_for_the_instructions_too(options: tuple[str, ...], tmp_path: Path) -> None:
    rng = random.Random(str(options))
    bearing = {
        "maximum_of_nan": ("tmax", "tmaxs", "trowmax", "tcolmax", "tcolmin", "tcolexpandmax"),
        "lane_order": ("trowsum",), "spare_mask_bits": ("tcmp", "tcmps"), "shift_beyond_width": ("tshl", "tshrs"),
        "axpy_rounding": ("taxpy",), "relu_of_nan": ("trelu",),
    }.get(options[0].partition("=")[0])  # fmt: skip
    known = [case for case in WRITTEN if bearing is None or case.mnemonic in bearing]
    for case in rng.sample(known, min(6, len(known))):
        checked(replace(case, options=options), tmp_path)


NEEDED = {
    "ports": Case("texpands", "f32", SHAPES[0]),
    "comparisons": Case("tcmp", "f32", SHAPES[0]),
    "masks": Case("tsel", "f32", SHAPES[0]),
    "sums": Case("trowsum", "f32", (16, 1024, 16, 1024)),
    "fold": Case("trowprod", "i32", SHAPES[0]),
    "first": Case("tcolmax", "f32", (16, 1024, 16, 1024), options=("maximum_of_nan=number",)),
    "narrow rows": Case("trowexpandmul", "i8", (5, 128, 4, 70), column=True),
    "columns": Case("tcolexpand", "f32", SHAPES[0]),
    "unaligned": Case("tfillpad", "f32", SHAPES[2]),
    "barrier": Case("tpartadd", "f32", SHAPES[3]),
    "destination": Case("taxpy", "f32", (16, 1024, 16, 1024)),
    "special functions": Case("trsqrt", "f16", (16, 1024, 16, 1024)),
}
"""A case that shows each reason."""


@pytest.mark.parametrize("name", [each.name for each in SPREADS])
def test_every_reason_is_needed(name: str, tmp_path: Path) -> None:
    more, _ = checked(NEEDED[name], tmp_path)
    assert more != 0
