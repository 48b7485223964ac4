"""Transfers of micro programs against a model that copies byte by byte (docs/reference/micro.md section 1.7)."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from castsim import run
from castsim.isa.errors import IllegalError, RaceError, ReadError, TileError, WarningKind, of_kind
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program
from castsim.isa.reading import Language, Source
from castsim.running.loaded import LoadRequest, RunOptions
from castsim.running.program_loading import load_tiles

Bytes = NDArray[np.uint8]
SIZE = 4096
PAD = 0xAB


@dataclass
class Case:
    """A transfer: rows of `length` bytes, `levels` of (count, source step, destination step), innermost last."""

    length: int
    levels: list[tuple[int, int, int]]
    pad: tuple[int, int] | None = None
    constants: dict[int, str] = field(default_factory=dict)

    def name(self, value: int) -> str:
        return self.constants.setdefault(value, f"%k{len(self.constants)}")

    def names(self, *values: int) -> str:
        return ", ".join(self.name(value) for value in values)


def naive(case: Case, source: Bytes, destination: Bytes, start: int) -> None:
    """Copy byte by byte; the pad goes around each row up to the end of its last block of 32 bytes."""
    left, right = case.pad or (0, 0)
    for trip in product(*(range(count) for count, _, _ in case.levels)):
        first = sum(number * step for number, (_, step, _) in zip(trip, case.levels, strict=True))
        to = start + sum(number * step for number, (_, _, step) in zip(trip, case.levels, strict=True))
        row = [int(source[first + k]) for k in range(case.length)]
        if case.pad is not None:
            row = [PAD] * left + row + [PAD] * right
            row += [PAD] * (-len(row) % 32)
        for k, byte in enumerate(row):
            destination[to + k] = byte


def drawn(seed: int, *, into_buffer: bool, padded: bool, loops: int) -> Case:
    """A case whose rows in the buffer begin at multiples of 32 and do not overlap."""
    chosen = random.Random(seed)
    length = chosen.randint(1, 60)
    pad = (chosen.choice((0, 3)), chosen.choice((0, 5))) if padded else None
    near = chosen.choice((64, 96)) if padded else 64  # padded rows of 64 fall on each other
    levels: list[tuple[int, int, int]] = []
    for _ in range(loops + 1):
        count = chosen.randint(1, 3)
        far = chosen.randint(60, 100)
        levels.insert(0, (count, far, near) if into_buffer else (count, near, far))
        near = (near + chosen.choice((0, 32))) * count
    return Case(length, levels, pad)


def executed(case: Case, statements: list[str], data: Bytes) -> Bytes:
    """Load 4 KiB into the buffer, run a transfer, and return what is stored back from where it went."""
    constants = {
        **case.constants, 0: case.name(0), SIZE: case.name(SIZE), 1: case.name(1), 2 * SIZE: case.name(2 * SIZE),
    }  # fmt: skip
    lines = [f"{name} = arith.constant {value} : i64" for value, name in constants.items()]
    whole = f"nburst({constants[1]}, {constants[SIZE]}, {constants[SIZE]})"
    pointers = "!pto.ptr<ui8, gm>, !pto.ptr<ui8, ub>"
    back = "!pto.ptr<ui8, ub>, !pto.ptr<ui8, gm>"
    lines += [
        f"%u = pto.castptr {constants[0]} : i64 -> !pto.ptr<ui8, ub>",
        f"%w = pto.castptr {constants[SIZE]} : i64 -> !pto.ptr<ui8, ub>",
        f"%pad = arith.constant {PAD} : i8",
        "%yes = arith.constant true", "%no = arith.constant false",
        f"pto.mte_gm_ub %x, %u, {constants[0]}, {constants[SIZE]} {whole} : {pointers}, i64, i64, i64, i64, i64",
        f"pto.mte_gm_ub %z, %w, {constants[0]}, {constants[SIZE]} {whole} : {pointers}, i64, i64, i64, i64, i64",
        *statements,
    ]  # fmt: skip
    if not any("%y," in statement for statement in statements):
        lines.append(f"pto.mte_ub_gm %w, %y, {constants[SIZE]} {whole} : {back}, i64, i64, i64, i64")
    arguments = ", ".join(f"%{name}: !pto.ptr<ui8, gm>" for name in "xyz")
    body = "\n".join(lines)
    text = f"func.func @f({arguments}) {{\n{body}\nreturn\n}}\n"
    parsed = parse(text)
    assert parse(print_program(parsed)) == parsed
    loaded = load_tiles(Source("k.pto", Language.TILES, text), LoadRequest("a5"))
    blank = np.zeros(SIZE, np.uint8)
    outputs = loaded.issue({"x": data, "y": blank, "z": blank}, RunOptions()).outputs
    return outputs["y"]


def types(*groups: int) -> str:
    """`i64` as often as the groups say, those behind the first led by `loop`."""
    found = ["i64"] * groups[0]
    for count in groups[1:]:
        found += ["loop i64", *["i64"] * (count - 1)]
    return ", ".join(found)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("padded", [False, True])
def test_into_the_buffer(seed: int, padded: bool) -> None:
    case = drawn(seed, into_buffer=True, padded=padded, loops=seed % 3)
    *loops, burst = case.levels
    groups = f"nburst({case.names(*burst)})" + "".join(f" loop({case.names(*level)})" for level in reversed(loops))
    kinds = types(5, *([3] * len(loops)))
    if case.pad is not None:
        sides = f", {case.names(*case.pad)}" if any(case.pad) else ""
        groups, kinds = f"{groups} pad(%pad{sides})", f"{kinds}, pad i8{', i64, i64' if sides else ''}"
    statement = (
        f"pto.mte_gm_ub %x, %w, {case.names(0, case.length)} {groups} : !pto.ptr<ui8, gm>, !pto.ptr<ui8, ub>, {kinds}"
    )
    check(case, [statement])


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("padded", [False, True])
def test_into_the_buffer_by_registers(seed: int, padded: bool) -> None:
    case = drawn(seed, into_buffer=True, padded=padded, loops=2)
    outer, inner, burst = case.levels
    left, right = case.pad or (0, 0)
    statements = [
        f"pto.set_loop_size_outtoub {case.names(inner[0], outer[0])} : i64, i64",
        f"pto.set_loop1_stride_outtoub {case.names(*inner[1:])} : i64, i64",
        f"pto.set_loop2_stride_outtoub {case.names(*outer[1:])} : i64, i64",
        "pto.set_mov_pad_val %pad : i8",
        f"pto.copy_gm_to_ubuf %x, %w, {case.names(0, burst[0], case.length, left, right)}, "
        f"{'%yes' if padded else '%no'}, {case.names(0, *burst[1:])} : "
        "!pto.ptr<ui8, gm>, !pto.ptr<ui8, ub>, i64, i64, i64, i64, i64, i1, i64, i64, i64",
    ]
    check(case, statements)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("older", [False, True])
def test_out_of_the_buffer(seed: int, older: bool) -> None:
    case = drawn(seed, into_buffer=False, padded=False, loops=2 if older else seed % 3)
    *loops, (count, near, far) = case.levels
    back = "!pto.ptr<ui8, ub>, !pto.ptr<ui8, gm>"
    if older:
        outer, inner = loops
        statements = [
            f"pto.set_loop_size_ubtoout {case.names(inner[0], outer[0])} : i64, i64",
            f"pto.set_loop1_stride_ubtoout {case.names(*inner[1:])} : i64, i64",
            f"pto.set_loop2_stride_ubtoout {case.names(*outer[1:])} : i64, i64",
            # The destination's stride stands first here.
            f"pto.copy_ubuf_to_gm %u, %y, {case.names(0, count, case.length, 0, far, near)} : {back}, {types(6)}",
        ]
    else:
        groups = "".join(f" loop({case.names(*level)})" for level in reversed(loops))
        kinds = types(4, *([3] * len(loops)))
        burst = f"nburst({case.names(count, near, far)})"
        statements = [f"pto.mte_ub_gm %u, %y, {case.name(case.length)} {burst}{groups} : {back}, {kinds}"]
    check(case, statements)


ATOMIC = """func.func @f(%x: !pto.ptr<T, gm>, %y: !pto.ptr<T, gm>) {
%c0 = arith.constant 0 : i64
%c1 = arith.constant 1 : i64
%size = arith.constant LENGTH : i64
%u = pto.castptr %c0 : i64 -> !pto.ptr<T, ub>
pto.mte_gm_ub %x, %u, %c0, %size nburst(%c1, %c0, %c0) : !pto.ptr<T, gm>, !pto.ptr<T, ub>, i64, i64, i64, i64, i64
pto.barrier #pto.pipe<PIPE_ALL>
pto.mte_ub_gm %u, %y, %size nburst(%c1, %c0, %c0) {atomic = "WORD"}
  : !pto.ptr<T, ub>, !pto.ptr<T, gm>, i64, i64, i64, i64
pto.barrier #pto.pipe<PIPE_ALL>
return
}
"""


def atomic(element: str, length: int, word: str, **inputs: Bytes):
    text = ATOMIC.replace("<T,", f"<{element},").replace("LENGTH", str(length))
    text = text.replace("WORD", word)
    parsed = parse(text)
    assert parse(print_program(parsed)) == parsed
    return load_tiles(Source("k.pto", Language.TILES, text), LoadRequest("a5")).issue(inputs, RunOptions())


@pytest.mark.parametrize(("word", "function"), [("ADD", np.add), ("MAX", np.maximum), ("MIN", np.minimum)])
@pytest.mark.parametrize(("element", "kind"), [("f32", np.float32), ("f16", np.float16), ("i32", np.int32)])
def test_stores_that_combine_with_what_is_there(word: str, function: np.ufunc, element: str, kind: type) -> None:
    one, two = (np.random.default_rng(3).normal(0, 50, (2, 64))).astype(kind)
    found = atomic(element, one.nbytes, word, x=one, y=two)
    np.testing.assert_array_equal(found.outputs["y"], function(two, one))
    alone = atomic(element, one.nbytes, word, x=one)
    np.testing.assert_array_equal(alone.outputs["y"], function(np.zeros_like(one), one))
    assert any("ahead of an atomic store, which takes 0" in each.text for each in alone.loaded.executed.warnings)


def test_stores_that_cannot_combine() -> None:
    with pytest.raises(TileError, match="an atomic store of i64"):
        atomic("i64", 64, "ADD", x=np.zeros(8, np.int64))
    with pytest.raises(TileError, match="an atomic store of 30 bytes, elements of f32 have 4"):
        atomic("f32", 30, "ADD", x=np.zeros(8, np.float32))
    with pytest.raises(ReadError, match="unknown atomic 'XOR'"):
        atomic("f32", 64, "XOR", x=np.zeros(8, np.float32))


@pytest.mark.parametrize("seed", range(20))
def test_within_the_buffer(seed: int) -> None:
    chosen = random.Random(seed)
    count, blocks, near, far = (chosen.randint(1, 4) for _ in range(4))
    case = Case(blocks * 32, [(count, (blocks + near) * 32, (blocks + far) * 32)])
    both = "!pto.ptr<ui8, ub>, !pto.ptr<ui8, ub>"
    statement = f"pto.mte_ub_ub %u, %w, {case.name(blocks)} nburst({case.names(count, near, far)}) : {both}, {types(4)}"
    check(case, [statement])


def check(case: Case, statements: list[str]) -> None:
    data = np.random.default_rng(case.length).integers(0, 256, SIZE, dtype=np.uint8)
    expected = np.zeros(SIZE, np.uint8)
    naive(case, data, expected, 0)
    assert np.array_equal(executed(case, statements, data), expected)


# ------------ elements that the scalar unit of a program of vector instructions reads and writes: values, path, order
TEXT = """module attributes {pto.target_arch = "a5"} {
  func.func @k(%x: !pto.ptr<f32, gm>, %s: !pto.ptr<i32, gm>, %f: !pto.ptr<f32, gm>, %y: !pto.ptr<f32, gm>,
               %z: !pto.ptr<i32, gm>) attributes {pto.kernel} {
    %o = arith.constant 0 : i64
    %p = arith.constant 65536 : i64
    %one = arith.constant 1 : i64
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %step = arith.constant 64 : index
    %rows = pto.load_scalar %s[%c0] : !pto.ptr<i32, gm> -> i32
    %scale = pto.load_scalar %f[%c1] : !pto.ptr<f32, gm> -> f32
    %n = arith.index_cast %rows : i32 to index
    %w = arith.constant 256 : i64
    %r64 = arith.extsi %rows : i32 to i64
    %length = arith.muli %r64, %w : i64
    %in = pto.castptr %o : i64 -> !pto.ptr<f32, ub>
    %out = pto.castptr %p : i64 -> !pto.ptr<f32, ub>
    pto.mte_gm_ub %x, %in, %o, %length nburst(%one, %length, %length)
      : !pto.ptr<f32, gm>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64
    pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.vecscope {
      %m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>
      scf.for %i = %c0 to %n step %c1 {
        %at = arith.muli %i, %step : index
        %v = pto.vlds %in[%at] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
        %q = pto.vmuls %v, %scale, %m : !pto.vreg<64xf32>, f32, !pto.mask<b32> -> !pto.vreg<64xf32>
        pto.vsts %q, %out[%at], %m : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>
      }
    }
    pto.set_flag["PIPE_V", "PIPE_S", "EVENT_ID0"]
    pto.wait_flag["PIPE_V", "PIPE_S", "EVENT_ID0"]
    %first = pto.load_scalar %out[%c1] : !pto.ptr<f32, ub> -> f32
    pto.store_scalar %first, %out[%c0] : !pto.ptr<f32, ub>, f32
    pto.store_scalar %rows, %z[%c1] : !pto.ptr<i32, gm>, i32
    pto.set_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.wait_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.set_flag["PIPE_S", "PIPE_MTE3", "EVENT_ID0"]
    pto.wait_flag["PIPE_S", "PIPE_MTE3", "EVENT_ID0"]
    pto.mte_ub_gm %out, %y, %length nburst(%one, %length, %length)
      : !pto.ptr<f32, ub>, !pto.ptr<f32, gm>, i64, i64, i64, i64
    pto.barrier #pto.pipe<PIPE_ALL>
    return
  }
}
"""
"""As many rows as %s[0] says, times %f[1]; the second element then also stands for the first, and %s[0] in %z[1]."""

X = np.arange(192, dtype=np.float32)
INPUTS = {"x": X, "s": np.array([3], np.int32), "f": np.array([9, 2.5], np.float32)}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "k.pto"
    file.write_text(TEXT)
    return file


@pytest.mark.parametrize("engine", ["fast", "event"])
def test_elements_decide_sizes_and_values(program: Path, engine: str) -> None:
    result = run(program, inputs=INPUTS, engine=engine)
    expected = X * np.float32(2.5)
    expected[0] = expected[1]
    assert np.array_equal(result.outputs["y"], expected)
    assert result.outputs["z"].tolist() == [0, 3]
    assert not result.warnings
    launch = next(each for each in result.timing.operations if each.name == "vecscope")
    assert launch.end - launch.start == 22 + 2 + 6 + (8 - 3) + 9 + 12 + 2  # three trips; vmuls: VfSim's latency


def test_without_inputs_elements_are_taken_for_0_and_that_is_said(program: Path) -> None:
    result = run(program, timing_only=True)
    assert [each.text.split()[3] for each in of_kind(result.warnings, WarningKind.DEFAULT_READ)] == ["%s:", "%f:"]
    with pytest.raises(ReadError, match="no input was given"):
        run(program)


def test_a_function_of_tiles_has_no_pointers_into_the_buffer(tmp_path: Path) -> None:
    file = tmp_path / "k.pto"
    file.write_text(
        """func.func @k(%x: !pto.ptr<f32, ub>) {
        %c0 = arith.constant 0 : index
        %v = pto.load_scalar %x[%c0] : !pto.ptr<f32, ub> -> f32
        return
        }"""
    )
    with pytest.raises(IllegalError, match="tgetval") as error:
        run(file, "a5", timing_only=True)
    assert error.value.span is not None
    assert error.value.span.line == 3


@pytest.mark.parametrize(("one", "other"), [("V", "S"), ("S", "MTE3")])
def test_elements_race_without_flags(program: Path, one: str, other: str) -> None:
    flag = f'_flag["PIPE_{one}", "PIPE_{other}", "EVENT_ID0"]'
    program.write_text("\n".join(line for line in TEXT.splitlines() if flag not in line))
    with pytest.raises(RaceError, match="_scalar"):
        run(program, inputs=INPUTS)


@pytest.mark.parametrize(
    ("old", "new", "kind", "said"),
    [
        ("%z[%c1] :", "%z[%before] :", TileError, "4 bytes before %z"),
        ("%out[%c1] :", "%out[%far] :", TileError, "outside the buffer"),
        (
            "pto.vecscope {",
            "pto.vecscope { %no = pto.load_scalar %f[%c0] : !pto.ptr<f32, gm> -> f32",
            IllegalError,
            "inside",
        ),
    ],
)
def test_refusals(program: Path, old: str, new: str, kind: type[Exception], said: str) -> None:
    constants = "%before = arith.constant -1 : index\n%far = arith.constant 65536 : index\n%rows ="
    program.write_text(TEXT.replace("%rows =", constants, 1).replace(old, new))
    with pytest.raises(kind, match=said):
        run(program, inputs=INPUTS)


def test_elements_of_the_buffer_inside_a_vecscope(program: Path) -> None:
    """Each costs a scalar branch, and the report says that this is assumed."""
    program.write_text(TEXT)
    before = run(program, inputs=INPUTS)
    load = "%e = pto.load_scalar %in[%at] : !pto.ptr<f32, ub> -> f32\n%q = pto.vmuls %v, %e,"
    program.write_text(TEXT.replace("%q = pto.vmuls %v, %scale,", load))
    found = run(program, inputs=INPUTS)
    assert found.cycles > before.cycles
    assert any("inside a vecscope: its cycles are assumed" in str(each) for each in found.loaded.executed.warnings)
    x = INPUTS["x"].view(np.float32).reshape(-1, 64)
    y = found.outputs["y"].view(np.float32).reshape(-1, 64)
    assert np.array_equal(y[:, 1:], (x * x[:, :1])[: len(y), 1:])
