"""Random programs that read and write elements of an argument and of a tile, against the same programs in Python."""

# A `.pto` statement stays on one line.

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from execution_programs import kernel
from scalar_programs import HEAD, PART, ROW, ran


class Writer:
    """A random program on the argument %t (16 x i32) and the tile %a (1 x 16 x i32), and what it does, in Python."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.names = 0
        self.steps: list[object] = []

    def name(self) -> str:
        self.names += 1
        return f"%v{self.names}"

    def block(self, depth: int, visible: list[str]) -> tuple[list[str], list[tuple]]:
        lines: list[str] = []
        steps: list[tuple] = []
        visible = list(visible)
        for _ in range(self.random.randint(2, 5)):
            kind = self.random.choice(["load", "store", "get", "set", "tload", "tstore", "add", "if", "for"])
            if kind in ("if", "for") and depth == 2:
                continue
            getattr(self, f"_{kind}")(lines, steps, visible, depth)
        return lines, steps

    def _index(self, lines: list[str], steps: list[tuple], visible: list[str]) -> str:
        """An index 0 .. 15 made of a visible value."""
        value, masked, index = self.random.choice(visible), self.name(), self.name()
        lines += [f"{masked} = arith.andi {value}, %k15 : i32", f"{index} = arith.index_cast {masked} : i32 to index"]
        steps.append(("mask", index, value))
        return index

    def _load(self, lines: list[str], steps: list[tuple], visible: list[str], depth: int) -> None:
        index, name = self._index(lines, steps, visible), self.name()
        lines.append(f"{name} = pto.load_scalar %t[{index}] : !pto.ptr<i32> -> i32")
        steps.append(("load", name, index))
        visible.append(name)

    def _get(self, lines: list[str], steps: list[tuple], visible: list[str], depth: int) -> None:
        index, name = self._index(lines, steps, visible), self.name()
        lines.append(f"{name} = pto.tgetval ins(%a, {index} : {ROW}, index) outs : i32")
        steps.append(("get", name, index))
        visible.append(name)

    def _store(self, lines: list[str], steps: list[tuple], visible: list[str], depth: int) -> None:
        index, value = self._index(lines, steps, visible), self.random.choice(visible)
        lines.append(f"pto.store_scalar {value}, %t[{index}] : !pto.ptr<i32>, i32")
        steps.append(("store", value, index))

    def _set(self, lines: list[str], steps: list[tuple], visible: list[str], depth: int) -> None:
        index, value = self._index(lines, steps, visible), self.random.choice(visible)
        lines.append(f"pto.tsetval ins({index}, {value} : index, i32) outs(%a : {ROW})")
        steps.append(("set", value, index))

    def _tload(self, lines: list[str], steps: list[tuple], visible: list[str], depth: int) -> None:
        lines.append(f"pto.tload ins(%p : {PART}) outs(%a : {ROW})")
        steps.append(("tload",))

    def _tstore(self, lines: list[str], steps: list[tuple], visible: list[str], depth: int) -> None:
        lines.append(f"pto.tstore ins(%a : {ROW}) outs(%p : {PART})")
        steps.append(("tstore",))

    def _add(self, lines: list[str], steps: list[tuple], visible: list[str], depth: int) -> None:
        lines.append(f"pto.tadds ins(%a, %k3 : {ROW}, i32) outs(%a : {ROW})")
        steps.append(("add",))

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
            case _:
                done(step, t, a, values)


def done(step: tuple, t: np.ndarray, a: np.ndarray, values: dict[str, int]) -> None:
    match step:
        case ("mask", name, value):
            values[name] = values[value] % 16
        case ("load", name, index):
            values[name] = int(t[values[index]])
        case ("get", name, index):
            values[name] = int(a[values[index]])
        case ("store", value, index):
            t[values[index]] = values[value]
        case ("set", value, index):
            a[values[index]] = values[value]
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
    writer = Writer(seed)
    lines, steps = writer.block(0, ["%k0", "%k3", "%k7"])
    text = kernel(HEAD + "\n".join([*lines, f"pto.tstore ins(%a : {ROW}) outs(%p : {PART})"]), "%t: !pto.ptr<i32>")
    t = np.random.default_rng(seed).integers(-9, 40, 16).astype(np.int32)
    wanted, a = t.copy(), t.copy()
    obeyed([*steps, ("tstore",)], wanted, a, {"%k0": 0, "%k3": 3, "%k7": 7})
    got = ran(tmp_path, text, target=target, inputs={"t": t})
    assert np.array_equal(got.outputs["t"].reshape(-1), wanted)
