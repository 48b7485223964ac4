"""Transfers of micro programs against a model that copies byte by byte (docs/reference/micro.md section 1.7)."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

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
