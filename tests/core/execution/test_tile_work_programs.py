"""Whole programs of vector operations: loops that move tiles, scalars that change, random programs; rows of tables."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.paths import ROOT
from kit.work_model import APART, TYPES, Model
from kit.work_programs import NATIVE, Spot, computed, noise, program, statement, target, walked

from castsim.engines import simulate
from castsim.execution.interpreter import interpreter
from castsim.execution.interpreter.interpreter import execute
from castsim.execution.tree import Loop
from castsim.isa.errors import TargetDataError, TileError
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind
from castsim.machines.mechanisms import compute_of, lowerer_of
from castsim.running.synchronisation.flags import insert
from castsim.targets.loader import load_target

F32 = np.float32
TARGETS = ["a2a3", "a5"]


def kernel(body: str, arguments: str = "") -> str:
    constants = "\n".join(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 2, 3, 4, 5, 8, 64))
    return f"func.func @k({arguments}) attributes {{pto.entry}} {{\n{constants}\n{body}\nreturn\n}}\n"


# ---------------------------------------------------------------------------------------------------------- loops
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("mnemonic", ["tadd", "trowexpandmul", "tsel", "tcolsum"])
def test_moved_tiles(mnemonic: str, name: str) -> None:
    """Every operand moves by its own step; the loop stays a loop and computes what its trips say."""
    starts = {"a": 0, "b": 16384, "d": 32768, "m": 49152, "t": 65536}
    spots = {letter: Spot(letter, "f32", 4, 64, at) for letter, at in starts.items()}
    spots["m"] = Spot("m", "ui8", 4, 32, starts["m"])
    spots["t"] = Spot("t", "ui32", 1, 16, starts["t"])
    if mnemonic == "trowexpandmul":
        spots["b"] = Spot("b", "f32", 4, 8, starts["b"])
    if mnemonic == "tcolsum":
        spots["d"] = Spot("d", "f32", 1, 64, starts["d"])
    ins = {"tsel": "mabt", "tcolsum": "a"}.get(mnemonic, "ab")
    used = [*ins, "d"]
    steps = {"a": 1024, "b": 2048, "d": 1536, "m": 128, "t": 64}
    lines = ["scf.for %i = %c0 to %c4 step %c1 {", "%n = arith.index_cast %i : index to i64"]
    for letter in used:
        lines += [
            f"%s{letter} = arith.constant {steps[letter]} : i64",
            f"%b{letter} = arith.constant {starts[letter]} : i64",
            f"%o{letter} = arith.muli %n, %s{letter} : i64",
            f"%p{letter} = arith.addi %o{letter}, %b{letter} : i64",
            f"%{letter} = pto.alloc_tile addr = %p{letter} : {spots[letter].type}",
        ]
    text = kernel("\n".join([*lines, statement(mnemonic, [spots[letter] for letter in ins], spots["d"]), "}"]))
    before = noise(target(name))
    before[:32768].view(F32)[:] = np.random.default_rng(4).standard_normal(8192).astype(F32)
    expected = before.copy()
    for trip in range(4):
        at = {letter: starts[letter] + trip * steps[letter] for letter in used}
        moved = [replace(spots[letter], address=at[letter]) for letter in used]
        expected = computed(program(statement(mnemonic, moved[:-1], moved[-1]), moved), target(name), expected)
    assert np.array_equal(computed(text, target(name), before), expected)
    executed = walked(text, target(name))
    if (mnemonic, name) != ("tsel", "a2a3"):  # its instructions hold the address of the mask
        assert any(isinstance(item, Loop) for item in executed.tree.root.items)


@pytest.mark.parametrize("name", TARGETS)
def test_scalars_that_change_from_trip_to_trip(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal operations on equal bytes, but not the same: folding must tell them apart."""
    a = Spot("a", "i32", 1, 64, 0)
    body = f"""
%at_a = arith.constant 0 : i64
%a = pto.alloc_tile addr = %at_a : {a.type}
%three = arith.constant 3 : i32
scf.for %i = %c0 to %c5 step %c1 {{
  %n = arith.index_cast %i : index to i32
  %m = arith.muli %n, %three : i32
  {statement("tadds", [a, ("m", "i32")], a)}
}}"""
    before = noise(target(name))
    start = a.get(before)
    assert np.array_equal(a.get(computed(kernel(body), target(name), before)), start + 3 * (0 + 1 + 2 + 3 + 4))
    monkeypatch.setattr(interpreter, "fold", lambda trips: [item for trip in trips for item in trip.items])
    assert np.array_equal(a.get(computed(kernel(body), target(name), before)), start + 30)


@pytest.mark.parametrize("name", TARGETS)
def test_valid_regions_that_change(name: str) -> None:
    """set_validshape: the last block of a loop is shorter."""
    kind = "!pto.tile_buf<vec, 4x64xf32, valid=?x64>"
    body = f"""
%at_a = arith.constant 0 : i64
%a = pto.alloc_tile addr = %at_a valid_row = %c4 : {kind}
pto.tadds ins(%a, %one : {kind}, f32) outs(%a : {kind})
pto.set_validshape %a, %c2, %c64 : {kind}
pto.tadds ins(%a, %one : {kind}, f32) outs(%a : {kind})
"""
    a = Spot("a", "f32", 4, 64, 0)
    before = noise(target(name))
    a.put(before, np.zeros((4, 64), F32))
    after = computed(kernel("%one = arith.constant 1.0 : f32\n" + body), target(name), before)
    assert a.get(after).tolist() == [[2.0] * 64] * 2 + [[1.0] * 64] * 2
    with pytest.raises(TileError, match="5 valid rows in a tile of 4 rows"):
        walked(kernel("%one = arith.constant 1.0 : f32\n" + body.replace("%a, %c2", "%a, %c5")), target(name))


@pytest.mark.parametrize("name", TARGETS)
def test_tiles_are_not_carried_but_views_are(name: str) -> None:
    """Views carried around a loop and yielded by a branch; the other view is loaded from then on."""
    part = "!pto.partition_tensor_view<1x64xf32>"
    tile = "!pto.tile_buf<vec, 1x64xf32>"
    body = f"""
%v = pto.make_tensor_view %x, shape = [%c8, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
%w = pto.make_tensor_view %y, shape = [%c1, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
%p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c1, %c64] : !pto.tensor_view<?x?xf32> -> {part}
%q = pto.partition_view %v, offsets = [%c5, %c0], sizes = [%c1, %c64] : !pto.tensor_view<?x?xf32> -> {part}
%o = pto.partition_view %w, offsets = [%c0, %c0], sizes = [%c1, %c64] : !pto.tensor_view<?x?xf32> -> {part}
%zero = arith.constant 0.0 : f32
%s = pto.alloc_tile : {tile}
%t = pto.alloc_tile : {tile}
pto.texpands ins(%zero : f32) outs(%s : {tile})
%r = scf.for %i = %c0 to %c4 step %c1 iter_args(%now = %p) -> ({part}) {{
  pto.tload ins(%now : {part}) outs(%t : {tile})
  pto.tadd ins(%s, %t : {tile}, {tile}) outs(%s : {tile})
  %late = arith.cmpi sgt, %i, %c0 : index
  %next = scf.if %late -> ({part}) {{
    scf.yield %q : {part}
  }} else {{
    scf.yield %p : {part}
  }}
  scf.yield %next : {part}
}}
pto.tload ins(%r : {part}) outs(%t : {tile})
pto.tadd ins(%s, %t : {tile}, {tile}) outs(%s : {tile})
pto.tstore ins(%s : {tile}) outs(%o : {part})
"""
    x = np.random.default_rng(2).integers(-99, 99, (8, 64)).astype(F32)
    memory = {"x": x.view(np.uint8).ravel().copy(), "y": np.zeros(256, np.uint8)}
    executed = walked(kernel(body, "%x: !pto.ptr<f32>, %y: !pto.ptr<f32>"), target(name))
    compute_of(target(name))(executed.tree, noise(target(name)), memory)
    assert np.array_equal(memory["y"].view(F32), 2 * x[0] + 3 * x[5])


# ------------------------------------------------------------------------------------------------ random programs
GRAMMAR = [m for m in TYPES if m not in ("tcmp", "tcmps", "tsel", "tsels")]
SCALAR = {"f32": "1.5", "f16": "1.5", "i16": "3", "i32": "-3", "bf16": "0.5", "i8": "2"}


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, str]:
    """A straight program, or one with a loop around part of it, over four tiles of one type, and its target."""
    name = draw(st.sampled_from(TARGETS))
    element = draw(st.sampled_from(["f32", "f16", "i16", "i32"]))
    rows, cols = draw(st.integers(1, 9)), draw(st.integers(1, 3)) * 64
    valid = (rows, draw(st.integers(1, cols)))
    size = NATIVE[element].itemsize
    room = -(-rows * cols * size // 256) * 256
    tiles = [Spot(f"t{i}", element, rows, cols, i * room, valid) for i in range(4)]
    block = 32 // size
    vector = Spot("v", element, rows, block, 5 * room, (rows, block))
    line = Spot("l", element, 1, cols, 6 * room, (1, valid[1]))
    legal = [m for m in GRAMMAR if element in TYPES[m][TARGETS.index(name)].split()]
    lines = []
    for _ in range(draw(st.integers(1, 8))):
        mnemonic = draw(st.sampled_from(legal))
        operation = VECTOR_OPERATIONS[mnemonic]
        a, b, d = draw(st.permutations(tiles))[:3]
        s = ("s", element)
        match operation.kind:
            case Kind.ELEMENTWISE if len(operation.forms[0]) == 2:
                ins = [a, s] if "as" in map("".join, operation.forms) else [a, b]
                lines.append(statement(mnemonic, ins, d))
            case Kind.ELEMENTWISE:
                lines.append(statement(mnemonic, [a], d))
            case Kind.PART:
                lines.append(statement(mnemonic, [a, b], d))
            case Kind.BROADCAST:
                lines.append(statement(mnemonic, [s], d))
            case Kind.ROW_REDUCE:
                column = Spot("v1", element, rows, block, vector.address, (rows, 1))
                lines.append(f"%v1_{len(lines)} = pto.treshape %v : {vector.type} -> {column.type}")
                out = Spot(f"v1_{len(lines) - 1}", element, rows, block, vector.address, (rows, 1))
                lines.append(statement(mnemonic, [a, b], out))
            case Kind.ROW_EXPAND:
                lines.append(statement(mnemonic, [vector], d))
            case Kind.ROW_BROADCAST:
                lines.append(statement(mnemonic, [a, vector], d))
            case Kind.COLUMN_REDUCE:
                lines.append(statement(mnemonic, [a], line))
            case Kind.COLUMN_EXPAND:
                lines.append(statement(mnemonic, [line], d))
            case _:
                lines.append(statement(mnemonic, [a, line], d))
    if draw(st.booleans()):
        body = "\n".join(lines)
        lines = [
            f"%z = arith.constant 0 : index\n%n = arith.constant 3 : index\n%u = arith.constant 1 : index\nscf.for %i = %z to %n step %u {{\n{body}\n}}"
        ]
    return program("\n".join(lines), [*tiles, vector, line], {"s": (SCALAR[element], element)}), name


@settings(max_examples=60, deadline=None, derandomize=True)
@given(programs())
def test_any_program_over_the_operations_runs(drawn: tuple[str, str]) -> None:
    """It is lowered, synchronised, computed and timed; the accesses hold; folding changes nothing."""
    text, name = drawn
    chip = target(name)
    parsed = parse(text, "k.pto")
    plan = insert(parsed.functions[0], lowerer_of(chip), chip)
    synchronised = execute(parsed, plan.function, lowerer_of(chip), {})
    assert simulate(synchronised.tree, chip, None, engine="event", max_cycles=10**7).total > 0
    with np.errstate(all="ignore"):
        after = computed(text, chip, noise(chip, 3))
    again = noise(chip, 3)
    compute_of(chip)(synchronised.tree, again, {})
    assert np.array_equal(after, again)


def test_the_model_has_the_function_of_every_operation() -> None:
    assert set(VECTOR_OPERATIONS) > APART
    for mnemonic in TYPES.keys() - {"tcmp", "tcmps", "tsel", "tsels", "texpands", "trowexpand", "tcolexpand"}:
        assert Model("f32", "a5").function(VECTOR_OPERATIONS[mnemonic].function or "")


# --------------------------------------------------------------------------------------- the table of vector operations


FOLDER = ROOT / "targets"


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


MANUAL = (ROOT / "docs" / "reference" / "pto.md").read_text(encoding="utf-8")


def is_named(mnemonic: str, number: str) -> bool:
    """Whether a section of the manual names an operation: in full, or as in `tcolexpandadd, -sub`."""
    section = re.search(rf"^#+ {re.escape(number)} .*?(?=^#|\Z)", MANUAL, re.MULTILINE | re.DOTALL)
    assert section, f"no section {number}"
    names, endings = (re.findall(pattern, section[0]) for pattern in (r"\bt[a-z]+\b", r"[-_][a-z]+\b"))
    shortened = {f"{name}{ending.lstrip('-')}" for name in names for ending in endings}
    return mnemonic in shortened or bool(re.search(rf"\b{mnemonic}\b", section[0]))


def test_the_section_of_a_row_describes_the_operation() -> None:
    assert [row.mnemonic for row in VECTOR_OPERATIONS.values() if not is_named(row.name, row.section)] == []
    assert not is_named("trowsum", "7.5")
    assert not is_named("tcolexpandmod", "7.5")
