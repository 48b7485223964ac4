"""Every vector operation by itself between loads and stores: with the flags that the tool inserts, nothing races."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

from pathlib import Path

import pytest
from test_tile_work_programs import SCALAR, TARGETS, kernel
from work_model import TYPES
from work_programs import NATIVE

from castsim import run
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind


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


ALONE = [m for m in VECTOR_OPERATIONS if m not in ("tfillpad_inplace", "tquant", "tquant.mx", "tdequant", "tpack")]
"""The last four take operands of several types: `test_tile_quantisation` has them in whole programs."""


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
