"""Elements that the scalar unit reads and writes: values, paths, refusals; against programs in Python."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from kit.execution_programs import kernel, kernel_file
from kit.paths import ROOT
from kit.pto_text import VECTORS

from castsim import run
from castsim.__main__ import main
from castsim.execution.timing import Cause
from castsim.execution.tree import instances
from castsim.isa.errors import CastsimError, LimitError, ReadError, TileError, WarningKind, of_kind
from castsim.running.program_runs import Result
from castsim.targets.description import with_options
from castsim.targets.loader import load_target

ROW = "!pto.tile_buf<vec, 1x16xi32>"
PART = "!pto.partition_tensor_view<1x16xi32>"


def ran(tmp_path: Path, text: str, **options: object) -> Result:
    """Run a program by both engines, which have to agree, and return what the default one found."""
    path = kernel_file(tmp_path, text)
    fast = run(path, **options)  # type: ignore[arg-type]
    slow = run(path, **options, engine="event")  # type: ignore[arg-type]
    assert fast.cycles == slow.cycles
    assert {name: pipe.causes for name, pipe in fast.pipes.items()} == {
        name: pipe.causes for name, pipe in slow.pipes.items()
    }
    return fast


CONSTANTS = "\n".join(f"%k{n} = arith.constant {n} : i32" for n in (0, 3, 7, 15))
VIEWED = f"""
%w = pto.make_tensor_view %t, shape = [%c1, %c16], strides = [%c16, %c1] : !pto.tensor_view<?x?xi32>
%p = pto.partition_view %w, offsets = [%c0, %c0], sizes = [%c1, %c16] : !pto.tensor_view<?x?xi32> -> {PART}
%a = pto.alloc_tile : {ROW}
"""
HEAD = f"\n{CONSTANTS}{VIEWED}pto.tload ins(%p : {PART}) outs(%a : {ROW})\n"

LOAD = "%r = pto.load_scalar %n[%c0] : !pto.ptr<i32> -> i32\n%e = arith.index_cast %r : i32 to index"
STEP = f"pto.tload ins(%p : {PART}) outs(%a : {ROW})"
LENGTH = kernel(
    HEAD + LOAD + f"\nscf.for %i = %c0 to %e step %c1 {{\n{STEP}\n}}", "%t: !pto.ptr<i32>, %n: !pto.ptr<i32>"
)


TARGETS = ["a2a3", "a5"]
OWN = VECTORS / "pto_scalars"


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_rows_are_found_through_a_table(target: str) -> None:
    x = np.random.default_rng(3).standard_normal((8, 128)).astype(np.float32)
    table = np.array([5, 0, 3, 7], np.int32)
    got = run(OWN / "scalar_offset.pto", target, inputs={"in": x, "table": table}, args={"n": 3})
    assert np.array_equal(got.outputs["out"].view(np.uint16), x[[5, 0, 3]].astype(ml_dtypes.bfloat16).view(np.uint16))
    assert [(read.text, read.value, str(read.origin)) for read in got.loaded.executed.decided_by] == [
        ("load_scalar %table[0]", 5, "input"),
        ("load_scalar %table[1]", 0, "input"),
        ("load_scalar %table[2]", 3, "input"),
    ]


# ------------------------------------------------------------------------------------------------------ whole kernels


@pytest.mark.parametrize("scale", [100.0, -100.0, 0.001])
def test_a_branch_rests_on_a_vector_result(target: str, scale: float) -> None:
    x = (np.random.default_rng(4).random((8, 64)) * scale).astype(np.float32)
    got = run(OWN / "element_access.pto", target, inputs={"in": x})
    largest = x[2].max()
    wanted = np.ones((1, 8), np.float32)
    wanted[0, 5] = largest if int(largest) > 0 else 0
    assert got.outputs["count"].tolist() == [int(largest)]
    assert np.array_equal(got.outputs["out"], wanted)


def test_flags_stand_where_the_scalar_unit_waits(target: str) -> None:
    """V -> S before tgetval, S -> MTE3 and V -> MTE3 before the store; without them the race detector objects."""
    found = run(OWN / "element_access.pto", target, inputs={"in": "random:0"}).loaded.synchronised
    assert found is not None
    spelt = {note.text for note in found.notes}
    found_pipes = {(text.split("[")[0].removeprefix("pto."), *re.findall("PIPE_([A-Z0-9]+)", text)) for text in spelt}
    assert {("set_flag", "V", "S"), ("wait_flag", "V", "S"), ("wait_flag", "S", "MTE3")} <= found_pipes


# ----------------------------------------------------------------------------------------------- what is read when
def loads(result: Result) -> int:
    tree = result.loaded.tree
    return sum(tree.instructions[lowered.instruction].mnemonic == "tload" for lowered, _ in instances(tree))


def test_timing_takes_lengths_from_inputs_arguments_or_a_default(tmp_path: Path, target: str) -> None:
    given = ran(tmp_path, LENGTH, target=target, timing_only=True, inputs={"n": np.array([5], np.int32)})
    assert loads(given) == 6
    assert not of_kind(given.warnings, WarningKind.DEFAULT_READ)
    typed = ran(tmp_path, LENGTH, target=target, timing_only=True, args={"n[0]": 5})
    assert typed.cycles == given.cycles
    assert [str(read.origin) for read in typed.loaded.executed.decided_by] == ["argument"]
    default = ran(tmp_path, LENGTH, target=target, timing_only=True)
    assert loads(default) == 1
    (warning,) = of_kind(default.warnings, WarningKind.DEFAULT_READ)
    assert "load_scalar %n[0]" in warning
    assert warning.place is not None


def test_what_a_run_stores_itself_is_known_to_timing(tmp_path: Path) -> None:
    body = f"pto.store_scalar %k3, %n[%c0] : !pto.ptr<i32>, i32\n{LOAD}\nscf.for %i = %c0 to %e step %c1 {{\n{STEP}\n}}"
    text = kernel(HEAD + body, "%t: !pto.ptr<i32>, %n: !pto.ptr<i32>")
    got = ran(tmp_path, text, target="a5", timing_only=True)
    assert loads(got) == 4
    assert not got.warnings


def test_what_instructions_store_is_not_known_to_timing(tmp_path: Path) -> None:
    """A tstore writes the argument of which an element is read: with values it is known, without it is taken for 0."""
    body = f"""
pto.tadds ins(%a, %k3 : {ROW}, i32) outs(%a : {ROW})
pto.tstore ins(%a : {ROW}) outs(%p : {PART})
%r = pto.load_scalar %t[%c4] : !pto.ptr<i32> -> i32
%e = arith.index_cast %r : i32 to index
scf.for %i = %c0 to %e step %c1 {{
{STEP}
}}
"""
    text = kernel(HEAD + body, "%t: !pto.ptr<i32>")
    t = np.arange(16, dtype=np.int32)
    assert loads(ran(tmp_path, text, target="a5", inputs={"t": t})) == 1 + 4 + 3
    timed = ran(tmp_path, text, target="a5", inputs={"t": t}, timing_only=True)
    assert loads(timed) == 1
    assert "load_scalar %t[4]" in of_kind(timed.warnings, WarningKind.DEFAULT_READ)[0]


@pytest.mark.parametrize(
    ("element", "dtype", "values"),
    [
        ("i32", np.int32, [-7, 9]), ("i64", np.int64, [-(2**40), 2**62]), ("i8", np.int8, [-128, 127]),
        ("ui16", np.uint16, [1, 65535]), ("f32", np.float32, [-0.0, 1.1]), ("f16", np.float16, [np.inf, 6e-8]),
        ("bf16", ml_dtypes.bfloat16, [1.5, -3e38]), ("f64", np.float64, [1e300, 5e-324]),
    ],
)  # fmt: skip
def test_elements_keep_their_bits(element: str, dtype: type, values: list[float], tmp_path: Path) -> None:
    """Read, swapped and written through a pointer some elements further on, bit for bit."""
    body = f"""
%q = pto.addptr %x, %c1 : !pto.ptr<{element}> -> !pto.ptr<{element}>
%a = pto.load_scalar %x[%c0] : !pto.ptr<{element}> -> {element}
%b = pto.load_scalar %q[%c0] : !pto.ptr<{element}> -> {element}
pto.store_scalar %b, %y[%c0] : !pto.ptr<{element}>, {element}
%z = pto.addptr %y, %c2 : !pto.ptr<{element}> -> !pto.ptr<{element}>
%m = arith.constant -1 : index
pto.store_scalar %a, %z[%m] : !pto.ptr<{element}>, {element}
"""
    x = np.array(values, np.float64).astype(dtype) if element[0] in "fb" else np.array(values, dtype)
    text = kernel(body, f"%x: !pto.ptr<{element}>, %y: !pto.ptr<{element}>")
    got = ran(tmp_path, text, target="a2a3", inputs={"x": x})
    assert got.outputs["y"].tobytes() == x[::-1].tobytes()


def test_elements_of_a_column_are_rows(tmp_path: Path, target: str) -> None:
    """The offset is linear over the storage of the tile: layout and valid region play no part."""
    kind = "!pto.tile_buf<vec, 8x8xi32, valid=3x2>"
    body = f"""
%w = pto.make_tensor_view %t, shape = [%c3, %c2], strides = [%c2, %c1] : !pto.tensor_view<?x?xi32>
%p = pto.partition_view %w, offsets = [%c0, %c0], sizes = [%c3, %c2] : !pto.tensor_view<?x?xi32> -> !pto.partition_tensor_view<3x2xi32>
%a = pto.alloc_tile : {kind}
pto.tload ins(%p : !pto.partition_tensor_view<3x2xi32>) outs(%a : {kind})
%r = pto.tgetval ins(%a, %c16 : {kind}, index) outs : i32
%s = arith.addi %r, %r : i32
%c9 = arith.constant 9 : index
pto.tsetval ins(%c9, %s : index, i32) outs(%a : {kind})
pto.tstore ins(%a : {kind}) outs(%p : !pto.partition_tensor_view<3x2xi32>)
"""
    t = np.array([[1, 2], [3, 4], [5, 6]], np.int32)
    got = ran(tmp_path, kernel(body, "%t: !pto.ptr<i32>"), target=target, inputs={"t": t})
    assert got.outputs["t"].tolist() == [[1, 2], [3, 10], [5, 6]]


def test_an_input_may_be_longer_than_what_is_touched(tmp_path: Path) -> None:
    text = kernel("%k = arith.constant 4 : i32\npto.store_scalar %k, %t[%c1] : !pto.ptr<i32>, i32", "%t: !pto.ptr<i32>")
    got = ran(tmp_path, text, target="a5", inputs={"t": np.arange(6, dtype=np.int32)})
    assert got.outputs["t"].tolist() == [0, 4, 2, 3, 4, 5]


RAGGED_TILE = "!pto.tile_buf<vec, 4x64xf32, valid=?x?>"
RAGGED_PART = "!pto.partition_tensor_view<?x?xf32>"
RAGGED = f"""
%w = pto.make_tensor_view %x, shape = [%c4, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
%u = pto.make_tensor_view %y, shape = [%c4, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
%z = arith.constant 0 : i32
%s, %last = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %z, %prev = %z) -> (i32, i32) {{
%l = pto.load_scalar %n[%i] : !pto.ptr<i32> -> i32
%m = arith.maxsi %l, %z : i32
%e = arith.index_cast %m : i32 to index
%big = arith.cmpi sgt, %m, %prev : i32
%scale = scf.if %big -> (f32) {{
%q = pto.load_scalar %k[%i] : !pto.ptr<f32> -> f32
scf.yield %q : f32
}} else {{
%one = arith.constant 1.0 : f32
scf.yield %one : f32
}}
%a = pto.alloc_tile valid_row = %c1 valid_col = %e : {RAGGED_TILE}
%p = pto.partition_view %w, offsets = [%i, %c0], sizes = [%c1, %e] : !pto.tensor_view<?x?xf32> -> {RAGGED_PART}
%o = pto.partition_view %u, offsets = [%i, %c0], sizes = [%c1, %e] : !pto.tensor_view<?x?xf32> -> {RAGGED_PART}
pto.tload ins(%p : {RAGGED_PART}) outs(%a : {RAGGED_TILE})
pto.tmuls ins(%a, %scale : {RAGGED_TILE}, f32) outs(%a : {RAGGED_TILE})
pto.tstore ins(%a : {RAGGED_TILE}) outs(%o : {RAGGED_PART})
%t = arith.addi %acc, %m : i32
scf.yield %t, %m : i32, i32
}}
pto.store_scalar %s, %r[%c0] : !pto.ptr<i32>, i32
"""


@pytest.mark.parametrize("lengths", [[3, 64, 0, 8], [-1, 7, 7, 1], [0, 0, 0, 0]])
def test_rows_of_read_lengths(lengths: list[int], tmp_path: Path, target: str) -> None:
    """Lengths from memory, clamped at 0, become extents; a row longer than the one before it is scaled."""
    arguments = "%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %n: !pto.ptr<i32>, %k: !pto.ptr<f32>, %r: !pto.ptr<i32>"
    x = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)
    k = np.array([2, 3, 4, 5], np.float32)
    clamped = np.maximum(lengths, 0)
    grows = clamped > np.concatenate([[0], clamped[:-1]])
    wanted = np.where(np.arange(64) < clamped[:, None], x * np.where(grows, k, 1).astype(np.float32)[:, None], 0)
    inputs = {"x": x, "n": np.array(lengths, np.int32), "k": k}
    got = ran(tmp_path, kernel(RAGGED, arguments), target=target, inputs=inputs)
    assert np.array_equal(got.outputs["y"], wanted)
    assert got.outputs["r"].tolist() == [clamped.sum()]


def test_a_tensor_that_this_path_does_not_reach_takes_any_input(tmp_path: Path) -> None:
    body = f"{LOAD}\n%q = arith.cmpi sgt, %e, %c0 : index\nscf.if %q {{\n{HEAD}}}"
    text = kernel(body, "%t: !pto.ptr<i32>, %n: !pto.ptr<i32>")
    for length in (0, 1):
        inputs = {"t": np.zeros(16, np.int32), "n": np.array([length], np.int32)}
        assert loads(ran(tmp_path, text, target="a5", inputs=inputs)) == length


@pytest.mark.parametrize(("value", "wanted"), [(np.nan, 0), (1e30, 2**31 - 1), (-np.inf, -(2**31)), (-2.9, -2)])
def test_a_float_beyond_its_integer_saturates_if_asked(value: float, wanted: int, tmp_path: Path) -> None:
    body = """
%r = pto.load_scalar %x[%c0] : !pto.ptr<f32> -> f32
%w = arith.fptosi %r : f32 to i32
pto.store_scalar %w, %y[%c0] : !pto.ptr<i32>, i32
"""
    text, inputs = kernel(body, "%x: !pto.ptr<f32>, %y: !pto.ptr<i32>"), {"x": np.array([value], np.float32)}
    lenient = with_options(load_target("a2a3"), {"scalar_float_to_integer": "saturate"})
    got = ran(tmp_path, text, target=lenient, inputs=inputs)
    assert got.outputs["y"].tolist() == [wanted]
    assert len(of_kind(got.warnings, WarningKind.SCALAR)) == (value != -2.9)
    if value != -2.9:
        with pytest.raises(ReadError, match="undefined"):
            ran(tmp_path, text, target="a2a3", inputs=inputs)


def test_the_command_takes_elements_and_names_the_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = kernel_file(tmp_path, LENGTH)
    assert main(["run", str(path), "--timing-only", "--arg", "n[0]=3", "--report", "full"]) == 0
    assert "load_scalar %n[0] = 3 (given by --arg)" in " ".join(capsys.readouterr().out.split())
    assert main(["run", str(path), "--timing-only", "--arg", "n[0]=3", "--json", str(tmp_path / "r.json")]) == 0
    (found,) = json.loads((tmp_path / "r.json").read_text())["path_decided_by"]
    assert (found["read"], found["value"], found["origin"]) == ("load_scalar %n[0]", 3, "argument")


def test_a_fence_is_a_barrier_on_all_pipes(tmp_path: Path, target: str) -> None:
    def cycles(word: str) -> int:
        body = f"{HEAD}{word}\npto.tstore ins(%a : {ROW}) outs(%p : {PART})\npto.barrier <PIPE_ALL>"
        return ran(tmp_path, kernel(body, "%t: !pto.ptr<i32>"), target=target, timing_only=True).cycles

    assert cycles("pto.fence.barrier_all #pto.fence_scope<gm>") == cycles("pto.barrier <PIPE_ALL>")


def test_a_cache_operation_costs_a_scalar_cycle(tmp_path: Path, target: str) -> None:
    def busy(word: str) -> int:
        text = kernel(f"{HEAD}{word}", "%t: !pto.ptr<i32>")
        return ran(tmp_path, text, target=target, timing_only=True).pipes["S"].causes[Cause.BUSY]

    assert busy("pto.cmo.cacheinvalid %t single_cache_line : !pto.ptr<i32>") == busy("") + 1


# ------------------------------------------- random programs that read and write elements of an argument and of a tile,
ACTS = {
    "load": ("{name} = pto.load_scalar %t[{index}] : !pto.ptr<i32> -> i32", "load {name} {index}"),
    "get": (f"{{name}} = pto.tgetval ins(%a, {{index}} : {ROW}, index) outs : i32", "get {name} {index}"),
    "store": ("pto.store_scalar {value}, %t[{index}] : !pto.ptr<i32>, i32", "store {value} {index}"),
    "set": (f"pto.tsetval ins({{index}}, {{value}} : index, i32) outs(%a : {ROW})", "set {value} {index}"),
    "tload": (f"pto.tload ins(%p : {PART}) outs(%a : {ROW})", "tload"),
    "tstore": (f"pto.tstore ins(%a : {ROW}) outs(%p : {PART})", "tstore"),
    "add": (f"pto.tadds ins(%a, %k3 : {ROW}, i32) outs(%a : {ROW})", "add"),
}
"""Statements, and the steps that they are."""


class Writer:
    """A random program on the argument %t (16 x i32) and the tile %a (1 x 16 x i32), and what it does, in Python."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = 0

    def name(self) -> str:
        self.names += 1
        return f"%v{self.names}"

    def block(self, depth: int, visible: list[str]) -> tuple[list[str], list[tuple]]:
        lines: list[str] = []
        steps: list[tuple] = []
        visible = list(visible)
        for _ in range(self.random.randint(2, 5)):
            kind = self.random.choice(["load", "store", "get", "set", "tload", "tstore", "add", "if", "for"])
            if kind in ACTS:
                self._act(*ACTS[kind], lines, steps, visible)
            elif depth < 2:
                getattr(self, f"_{kind}")(lines, steps, visible, depth)
        return lines, steps

    def _act(self, line: str, step: str, lines: list[str], steps: list[tuple], visible: list[str]) -> None:
        words = {}
        if "{index}" in line:  # 0 .. 15, made of a visible value
            value, masked, index = self.random.choice(visible), self.name(), self.name()
            lines.append(
                f"{masked} = arith.andi {value}, %k15 : i32\n{index} = arith.index_cast {masked} : i32 to index"
            )
            steps.append(("mask", index, value))
            words["index"] = index
        if "{value}" in line:
            words["value"] = self.random.choice(visible)
        if "{name}" in line:
            words["name"] = self.name()
            visible.append(words["name"])
        lines.append(line.format(**words))
        steps.append(tuple(step.format(**words).split()))

    def _if(self, lines: list[str], steps: list[tuple], visible: list[str], depth: int) -> None:
        value, truth = self.random.choice(visible), self.name()
        (yes, yes_steps), (no, no_steps) = self.block(depth + 1, visible), self.block(depth + 1, visible)
        lines += [f"{truth} = arith.cmpi slt, {value}, %k7 : i32", f"scf.if {truth} {{", *yes, "} else {", *no, "}"]
        steps.append(("if", value, yes_steps, no_steps))

    def _for(self, lines: list[str], steps: list[tuple], visible: list[str], depth: int) -> None:
        trips, variable, as_i32 = self.random.choice([2, 3, 4]), self.name(), self.name()
        body, body_steps = self.block(depth + 1, [*visible, as_i32])
        cast = f"{as_i32} = arith.index_cast {variable} : index to i32"
        lines += [f"scf.for {variable} = %c0 to %c{trips} step %c1 {{", cast, *body, "}"]
        steps.append(("for", trips, as_i32, body_steps))


def obeyed(steps: list[tuple], t: np.ndarray, a: np.ndarray, values: dict[str, int]) -> None:
    for step in steps:
        match step:
            case ("if", value, yes, no):
                obeyed(yes if values[value] < 7 else no, t, a, values)
            case ("for", trips, name, body):
                for trip in range(trips):
                    values[name] = trip
                    obeyed(body, t, a, values)
            case ("mask", name, value):
                values[name] = values[value] % 16
            case ("load" | "get" as kind, name, index):
                values[name] = int((t if kind == "load" else a)[values[index]])
            case ("store" | "set" as kind, value, index):
                (t if kind == "store" else a)[values[index]] = values[value]
            case ("tload",):
                a[:] = t
            case ("tstore",):
                t[:] = a
            case ("add",):
                a += np.int32(3)


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed: int, target: str, tmp_path: Path) -> None:
    """Values are those of the program in Python, and the inserted flags leave no race (a race would be refused)."""
    lines, steps = Writer(seed).block(0, ["%k0", "%k3", "%k7"])
    text = kernel(HEAD + "\n".join([*lines, ACTS["tstore"][0]]), "%t: !pto.ptr<i32>")
    t = np.random.default_rng(seed).integers(-9, 40, 16).astype(np.int32)
    wanted, a = t.copy(), t.copy()
    obeyed([*steps, ("tstore",)], wanted, a, {"%k0": 0, "%k3": 3, "%k7": 7})
    got = ran(tmp_path, text, target=target, inputs={"t": t})
    assert np.array_equal(got.outputs["t"].reshape(-1), wanted)


# ---------------------------------------- what is refused of programs that read and write elements, each with its place
@pytest.mark.parametrize(
    ("body", "inputs", "message"),
    [
        ("%v = pto.load_scalar %n[%c3] : !pto.ptr<i32> -> i32", {"n": 3}, "element 3 of %n, which has 3"),
        ("%v = pto.load_scalar %n[%m] : !pto.ptr<i32> -> i32", {"n": 3}, "element -1 of %n"),
        ("%v = pto.load_scalar %t[%c16] : !pto.ptr<i32> -> i32", {}, "whose views have 16"),
        ("pto.store_scalar %k3, %n[%m] : !pto.ptr<i32>, i32", {}, "element -1 of %n"),
        ("%q = pto.addptr %n, %m : !pto.ptr<i32> -> !pto.ptr<i32>\n%v = pto.load_scalar %q[%c0] : !pto.ptr<i32> -> i32", {"n": 3}, "element -1"),
        (f"%v = pto.tgetval ins(%a, %far : {ROW}, index) outs : i32", {}, "outside the buffer"),
        ("%v = pto.load_scalar %n[%c0] : !pto.ptr<i32> -> i32", {}, "no input was given"),
        ("%v = arith.divsi %k3, %k0 : i32", {}, "division by zero"),
        ("%v = pto.load_scalar %n[%c0] : !pto.ptr<i32> -> i32\n%u = arith.remsi %k3, %v : i32", {"n": 2}, "division by zero"),
    ],
)  # fmt: skip
def test_refused_with_a_place(body: str, inputs: dict[str, int], message: str, tmp_path: Path) -> None:
    more = "%m = arith.constant -1 : index\n%far = arith.constant 1000000 : index\n"
    text = kernel(HEAD + more + body, "%t: !pto.ptr<i32>, %n: !pto.ptr<i32>")
    path = kernel_file(tmp_path, text)
    arrays = {name: np.zeros(size, np.int32) for name, size in inputs.items()}
    with pytest.raises((ReadError, TileError)) as caught:
        run(path, "a5", inputs={"t": "zeros", **arrays})
    assert message in caught.value.message
    assert caught.value.span is not None
    assert text.splitlines()[caught.value.span.line - 1] in body.splitlines()


@pytest.mark.parametrize(
    ("args", "message"),
    [({"z[0]": 1}, "no single elements of 'z'"), ({"n[0]": 1.5}, "is i32"), ({"n[0]": 2**40}, "is i32"), ({"n[x]": 1}, "no scalar")],
)  # fmt: skip
def test_bad_elements(args: dict[str, float], message: str, tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=message):
        run(kernel_file(tmp_path, LENGTH), "a5", args=args, timing_only=True)


def test_interlock_has_no_flags_for_the_scalar_unit() -> None:
    with pytest.raises(ReadError, match="interlock"):
        run(OWN / "scalar_offset.pto", sync="interlock", timing_only=True, args={"n": 1})


def test_a_long_loop_around_a_read_meets_the_limit(tmp_path: Path) -> None:
    text = kernel(
        f"%much = arith.constant 100000000 : index\nscf.for %i = %c0 to %much step %c1 {{\n{LOAD}\n}}",
        "%n: !pto.ptr<i32>",
    )
    with pytest.raises(LimitError):
        run(kernel_file(tmp_path, text), "a5", timing_only=True)


def test_own_flags_are_taken_at_their_word(tmp_path: Path) -> None:
    """A tgetval behind a load with no flag MTE2 -> S is a race."""
    flags = "pto.set_flag[<PIPE_MTE2>, <PIPE_S>, <EVENT_ID0>]\npto.wait_flag[<PIPE_MTE2>, <PIPE_S>, <EVENT_ID0>]\n"
    read = f"%v = pto.tgetval ins(%a, %c0 : {ROW}, index) outs : i32\n"
    path = kernel_file(tmp_path, kernel(f"{HEAD}{flags}{read}", "%t: !pto.ptr<i32>"))
    run(path, "a5", inputs={"t": "zeros"})
    other = flags.replace("PIPE_S", "PIPE_V")
    path.write_text(kernel(f"{HEAD}{other}{read}pto.barrier <PIPE_ALL>", "%t: !pto.ptr<i32>"))
    with pytest.raises(CastsimError, match="MTE2"):
        run(path, "a5", inputs={"t": "zeros"})


def test_an_index_that_asks_for_any_number_of_elements_meets_the_limit() -> None:
    """An index of 2**30 into f32: 4 GiB, of which nothing is allocated."""
    file = ROOT / "programs/kernels/serving/gated_activation_a5.pto"
    experts = np.full(16, 1 << 30, np.int32)
    with pytest.raises(LimitError, match="'scales' has 1073741825 elements") as caught:
        run(file, inputs={"experts": experts, "both": "zeros", "scales": "zeros"}, args={"rows": 255})
    assert caught.value.span is not None
