"""Every vector operation: its row and manual section; by itself between loads and stores nothing races."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from core.execution.test_tile_work_programs import SCALAR, TARGETS, kernel
from kit.paths import ROOT
from kit.work_model import TYPES
from kit.work_programs import NATIVE

from castsim import run
from castsim.execution.vector_operations import arithmetic
from castsim.isa.errors import TargetDataError
from castsim.isa.pto.vector_operations import COMPOSITIONS, VECTOR_OPERATIONS, Kind, Role, VectorOperation
from castsim.targets.loader import load_target
from castsim.targets.strided_repeat import STRUCTURES


def _element(kind: str) -> str:
    """The element of a tile's type."""
    return kind.split(", ")[1].split(">", maxsplit=1)[0].rsplit("x", 1)[1]


def _other_kinds(mnemonic: str, element: str, rows: int, cols: int, source: str) -> dict[str, str]:
    """The types of operands that differ from that of the source, by letter."""
    operation, size = VECTOR_OPERATIONS[mnemonic], NATIVE[element].itemsize
    kinds: dict[str, str] = {}
    if operation.kind is Kind.ROW_BROADCAST:
        kinds["b"] = f"!pto.tile_buf<vec, {rows}x{32 // size}x{element}>"
    if operation.kind is Kind.ROW_REDUCE:
        kinds["d"] = f"!pto.tile_buf<vec, {rows}x{32 // size}x{element}, valid={rows}x1>"
    if operation.kind is Kind.COLUMN_REDUCE:
        kinds["d"] = f"!pto.tile_buf<vec, 1x{cols}x{element}>"
    if operation.kind is Kind.COMPARE:
        kinds["d"] = f"!pto.tile_buf<vec, {rows}x{cols}xi8>"
    shapes = {
        Kind.FILL: f"{rows}x{cols}x{element}, pad=1",
        Kind.TRANSPOSE: f"{cols}x32x{element}, valid={cols}x{rows}",
        Kind.CONCATENATE: f"{rows}x{2 * cols}x{element}",
        Kind.RAMP: f"1x{cols}x{element}",
        Kind.COUNTED_CONCATENATE: f"{rows}x{cols}x{element}",
        Kind.SORT: f"{rows}x{cols * 8 // size}x{element}",
        Kind.MERGE: f"{rows}x{cols}x{element}",
        Kind.COMPARE_GATHER: f"{rows}x{cols}xi32",
        Kind.ROW_ARGUMENT: f"{rows}x8xi32, valid={rows}x1",
        Kind.COLUMN_ARGUMENT: f"1x{cols}xi32",
    }
    if operation.kind in shapes:
        kinds["d"] = f"!pto.tile_buf<vec, {shapes[operation.kind]}>"
    kinds |= {"m": f"!pto.tile_buf<vec, {rows}x{cols}xi8>", "t": source}
    if operation.kind is Kind.GATHER:
        kinds["b"] = kinds["t"] = f"!pto.tile_buf<vec, {rows}x{cols}xi32>"
    if mnemonic == "tsel":
        kinds["t"] = "!pto.tile_buf<vec, 1x16xui32>"
    if operation.kind is Kind.SORT:
        kinds["b"] = f"!pto.tile_buf<vec, {rows}x{cols}xui32>"
    if operation.kind is Kind.COUNTED_CONCATENATE:
        kinds["c"] = kinds["e"] = f"!pto.tile_buf<vec, {rows}x8xi32, valid={rows}x1>"
    return kinds


def transferred(mnemonic: str, element: str, name: str) -> str:
    """Loads, one operation, stores, without a flag; levels and places are the tool's."""
    rows, cols = 8, 256
    kinds = dict.fromkeys("abcd", f"!pto.tile_buf<vec, {rows}x{cols}x{element}>")
    operation = VECTOR_OPERATIONS[mnemonic]
    form = "".join(operation.forms[0])
    kinds |= _other_kinds(mnemonic, element, rows, cols, kinds["a"])
    sources = iter("abce")
    operands = [next(sources) if role == "a" else role for role in form]
    used = list(dict.fromkeys([*operands, "d"]))
    scalar = ("16", "i32") if operation.kind is Kind.MERGE else (SCALAR[element], element)
    lines = [f"%s = arith.constant {scalar[0]} : {scalar[1]}"]
    lines += [f"%{letter} = pto.alloc_tile : {kinds[letter]}" for letter in used if letter != "s"]
    for letter in used:
        if letter in "st":
            continue
        fields = kinds[letter].split("vec, ")[1].split(">")[0].split(", ")
        extents = next((f[6:] for f in fields if f.startswith("valid=")), fields[0].rsplit("x", 1)[0])
        height, width = extents.split("x")
        kind = fields[0].rsplit("x", 1)[1]
        part = f"!pto.partition_tensor_view<{height}x{width}x{kind}>"
        lines += [
            f"%h{letter} = arith.constant {height} : index",
            f"%w{letter} = arith.constant {width} : index",
            f"%v{letter} = pto.make_tensor_view %x{letter}, shape = [%h{letter}, %w{letter}], strides = [%w{letter}, %c1] : !pto.tensor_view<?x?x{kind}>",
            f"%p{letter} = pto.partition_view %v{letter}, offsets = [%c0, %c0], sizes = [%h{letter}, %w{letter}] : !pto.tensor_view<?x?x{kind}> -> {part}",
        ]
        moved = f"pto.tload ins(%p{letter} : {part}) outs(%{letter} : {kinds[letter]})"
        if letter == "d":
            types = ", ".join(scalar[1] if o == "s" else kinds[o] for o in operands)
            if operation.accumulates or operation.kind in (
                Kind.COMPARE,
                Kind.COUNTED_CONCATENATE,
                Kind.COMPARE_GATHER,
            ):  # writes some bytes of its tile, all of which are stored
                lines.append(moved)
            names = ", ".join("%" + o for o in operands)
            names += ", {maskPattern = #pto.mask_pattern<P1111>}" if operation.kind is Kind.PATTERN_GATHER else ""
            ins = f"ins({names} : {types})"
            outs = f"outs(%d : {kinds['d']})"
            if operation.kind is Kind.COMPARE_GATHER:
                lines.append(f"%n = pto.alloc_tile : {kinds['d']}")
                outs = f"outs(%d, %n : {kinds['d']}, {kinds['d']})"
            lines.append(f"pto.{operation.name} {ins} {outs}")
            moved = f"pto.tstore ins(%d : {kinds['d']}) outs(%pd : {part})"
        lines.append(moved)
    types = {letter: _element(kinds[letter]) for letter in used if letter not in "st"}
    return kernel("\n".join(lines), ", ".join(f"%x{letter}: !pto.ptr<{kind}>" for letter, kind in types.items()))


ALONE = [
    m for m, row in VECTOR_OPERATIONS.items()
    if m not in ("tfillpad_inplace", "tquant", "tquant.mx", "tdequant", "tpack") and row.kind not in STRUCTURES["combination"].kinds
]  # fmt: skip
"""`test_tile_quantisation` and `test_combined_operations` have those that take operands of several types or shapes."""


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("mnemonic", ALONE)
def test_no_operation_races_by_itself(mnemonic: str, name: str, tmp_path: Path) -> None:
    """With the flags that the tool inserts, loads, operation and store are in order; so are its own instructions."""
    path = tmp_path / "k.pto"
    legal = TYPES[mnemonic][TARGETS.index(name)].split() if mnemonic in TYPES else ["f16"]
    legal = ["i32"] if mnemonic in ("tmov", "tci") else legal
    path.write_text(transferred(mnemonic, "f16" if "f16" in legal else legal[0], name))
    result = run(path, name, timing_only=True)
    assert result.cycles > 0
    assert not result.races


# --------------------------------------------------------------------------------------- the table of vector operations


MANUAL = (ROOT / "docs" / "reference" / "pto.md").read_text(encoding="utf-8")
FOLDER = ROOT / "targets"
OPERATIONS = list(VECTOR_OPERATIONS.values())


def section(number: str) -> str:
    """The text of one section of the manual, up to the next heading."""
    found = re.search(rf"^#+ {re.escape(number)} .*?(?=^#|\Z)", MANUAL, re.MULTILINE | re.DOTALL)
    assert found, f"no section {number}"
    return found[0]


def is_named(mnemonic: str, text: str) -> bool:
    """Whether a text names an operation: in full, or as `tcolexpandadd, -sub` and `tfillpad, _expand` do."""
    if re.search(rf"\b{mnemonic}\b", text):
        return True
    names = re.findall(r"\bt[a-z]+\b", text)
    endings = re.findall(r"[-_][a-z]+\b", text)
    return any(f"{name}{ending.lstrip('-')}" == mnemonic for name in names for ending in endings)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.mnemonic)
def test_the_section_of_a_row_describes_the_operation(operation: VectorOperation) -> None:
    assert is_named(operation.name, section(operation.section))


def test_a_name_is_not_found_where_it_does_not_stand() -> None:
    assert not is_named("trowsum", section("7.5"))
    assert not is_named("tcolexpandmod", section("7.5"))


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.mnemonic)
def test_every_function_is_one_that_values_know(operation: VectorOperation) -> None:
    """Moves, fills, comparisons and selections have functions of their own for whole tiles."""
    whole = {Kind.MOVE: "move", Kind.FILL: "fill", Kind.COMPARE: "compare", Kind.SELECT: "select", Kind.RAMP: "ramp"}
    whole |= {
        Kind.COMPARE_GATHER: "compare",
        Kind.QUANTISE: "quantise",
        Kind.DEQUANTISE: "dequantise",
        Kind.BLOCK_QUANTISE: "quantise",
    }
    if operation.function in ("interleave", "deinterleave", "adddeqrelu"):
        assert operation.kind in (Kind.INTERLEAVE, Kind.NARROW)
        return
    if operation.kind in whole:
        assert operation.function == whole[operation.kind]
        return
    known = {*arithmetic._ARITHMETIC, *arithmetic._FUNCTIONS}
    assert set(operation.parts) <= known


def test_compositions_end_and_take_the_operands_that_they_have() -> None:
    for parts in COMPOSITIONS.values():
        assert not {part.function for part in parts} & {*COMPOSITIONS}
        assert all(
            part.constant is not None or part.function in ("exp", "log", "sqrt", "abs", "relu") for part in parts[1:]
        )


def test_roles_follow_from_kinds() -> None:
    for operation in OPERATIONS:
        for form in operation.forms:
            assert (Role.MASK in form) == (operation.kind is Kind.SELECT), operation.mnemonic
            assert (Role.SOURCE in form) == (operation.kind not in (Kind.BROADCAST, Kind.RAMP)), operation.mnemonic
        assert operation.kind is Kind.FILL or not (operation.in_place or operation.enlarges), operation.mnemonic


@pytest.mark.parametrize(
    ("chip", "mnemonic", "cells", "said"),
    [
        ("a2a3", "tdivs", {"instructions": "vdiv"}, "tdivs: 1 instructions, but structure 'division' takes 2"),
        ("a2a3", "tabs", {"instructions": "-"}, "tabs: 0 instructions, but structure 'elementwise' takes 1 to 16"),
        ("a2a3", "tmov", {"structure": "select"}, "structure 'select' is for operations of kind select, not move"),
        ("a2a3", "texpands", {"structure": "division"}, "is for operations of kind elementwise, not broadcast"),
        ("a2a3", "tadd", {"instructions": "vcadds"}, "tile_operations: tadd: no timing.vector.vcadds"),
        ("a2a3", "tadd", {"structure": "spiral"}, "mine.csv:6: structure"),
        ("a2a3", "tadd", {"source": "-"}, "mine.csv:6: source"),
        ("a5", "trowsum", {"structure": "row_product"}, "trowsum: 2 instructions, but structure 'row_product' takes 1"),
        ("a5", "tcmp", {"structure": "elementwise"}, "of kind elementwise, broadcast, not compare"),
        ("a5", "tadd", {"choice": "none"}, "tile_operations: tadd: no kernel_variants 'none'"),
        ("a5", "tadd", {"instructions": "vfoo"}, "tile_operations: tadd: no latency of 'vfoo'"),
    ],
)
def test_kernels_that_no_machine_can_lay_out_are_refused(
    chip: str, mnemonic: str, cells: dict[str, str], said: str, tmp_path: Path
) -> None:
    with (FOLDER / f"{chip}_operations.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    next(row for row in rows if row["mnemonic"] == mnemonic).update(cells)
    with (tmp_path / "mine.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    table = '[tile_operations]\ntable = "mine.csv"\nsource = "mine"\nstatus = "assumed"\n'
    path = tmp_path / "mine.toml"
    path.write_text(f'base = "{chip}"\nname = "mine"\n{table}', encoding="utf-8")
    with pytest.raises(TargetDataError, match=re.escape(said)):
        load_target(path)
